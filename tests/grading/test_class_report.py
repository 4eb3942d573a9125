"""What an instructor gets: how checks went, commonest mistakes, who looks alike."""

import ast
import collections
import csv
import inspect
import itertools
import math
import random
import re
import textwrap
import weakref
from pathlib import Path

import pytest

from autograder.grading import class_report, likeness
from autograder.grading.job import GRADED, NOT_RUN, Outcome, Verdict
from autograder.grading.paper import Paper, exercise_of
from tests import chapters

CHAPTER = "04_attention"
BAD = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def paper() -> Paper:
    return Paper.of(CHAPTER)


def outcome(paper: Paper, student: str, wrong: dict | None = None, **more) -> dict:
    """Everything right but for some exercises: exercise -> part, what, mistake."""
    made = Outcome(student, CHAPTER, GRADED, **more)
    for grade_id, points in paper.points.items():
        exercise = exercise_of(grade_id)
        verdict = Verdict(
            exercise, grade_id, points, points, "", f"{exercise}: checked"
        )
        if exercise in (wrong or {}):
            part, what, mistake = wrong[exercise]
            verdict.part, verdict.score = part, 0.0
            verdict.failure = {"what": what, "mistake": mistake}
        if grade_id.startswith("test-"):
            made.verdicts.append(verdict)
        else:
            fields = {"exercise": exercise, "grade_id": grade_id, "points": points}
            made.by_hand.append(fields | {"answer": "…"})
    return made.to_dict()


def read(path) -> list[dict]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


SCALING = "the scores are not scaled"


@pytest.fixture
def a_class(paper) -> list[dict]:
    attention = "scaled-dot-product-attention"
    return [
        outcome(paper, "amelia"),
        outcome(paper, "boris", {attention: ("visible", SCALING, SCALING)}),
        outcome(paper, "chiara", {attention: ("hidden", SCALING, SCALING)}),
        outcome(
            paper,
            "daniel",
            {
                attention: ("visible", "the result: 3 of 8 values are wrong", None),
                "softmax": ("visible", "not written yet", None),
            },
            repairs=["check cell test-softmax: missing, put back"],
        ),
        outcome(
            paper,
            "elena",
            {attention: ("visible", "the result: 5 of 8 values are wrong", None)},
            repairs=["check cell test-softmax: missing, put back"],
            limited=["cell softmax: stopped after 30 seconds"],
            packages=["einops"],
            flags=[
                {
                    "exercise": "softmax",
                    "cell": 5,
                    "line": 2,
                    "text": "=f(x)",
                    "why": "a name is put together",
                }
            ],
        ),
        Outcome("farid", CHAPTER, reason="no notebook was submitted").to_dict(),
    ]


def write(folder: Path, outcomes, papers) -> Path:
    """Write the report on a class; return the page."""
    report = class_report.Report(papers)
    for each in outcomes:
        report.add(each)
    return report.write(folder)


def test_the_tables_say_what_the_class_did(a_class, paper, tmp_path):
    write(tmp_path, iter(a_class), {CHAPTER: paper})
    checks = {row["check"]: row for row in read(tmp_path / "checks.csv")}
    assert list(checks) == list(paper.points)
    row = checks["test-scaled-dot-product-attention"]
    assert (row["students"], row["passed"], row["visible"], row["hidden"]) == tuple(
        "5131"
    )
    assert checks["test-softmax"]["untouched"] == "1"
    assert checks["explain-scaling"]["waiting"] == "5"
    mistakes = read(tmp_path / "mistakes.csv")
    found = [(row["mistake"], row["is_named"], row["students"]) for row in mistakes]
    assert found == [
        ("the result: … of … values are wrong", "no", "2"),
        (SCALING, "yes", "2"),
    ]
    states = {
        (row["student"], row["exercise"]): row["state"]
        for row in read(tmp_path / "students.csv")
    }
    assert states["boris", "scaled-dot-product-attention"] == "visible"
    assert states["daniel", "softmax"] == "untouched"
    assert states["farid", ""] == ""
    notes = {(row["kind"], row["student"]) for row in read(tmp_path / "notes.csv")}
    assert notes == {
        ("repaired", "daniel"),
        ("repaired", "elena"),
        ("limited", "elena"),
        ("to be read", "elena"),
        ("not graded", "farid"),
    }


def test_the_page_shows_it_with_plots_symbols_and_words(a_class, paper, tmp_path):
    page = write(tmp_path, a_class, {CHAPTER: paper}).read_text("utf-8")
    assert page.count('<svg role="img" aria-label="') == 2
    assert "Fewest passed scaled-dot-product-attention: 20%." in page
    assert f"<strong>{SCALING}</strong>" in page
    assert re.search(r'class="visible" title="fails">✗<', page)
    assert "no notebook was submitted" in page
    assert "<code>einops</code> (1 student)" in page
    for word in ("<script", "url(http", "<link", "@import", "<img"):
        assert word not in page
    assert '<html lang="en">' in page and "<main" in page


def test_the_same_class_gives_the_same_files(a_class, paper, tmp_path):
    for name in ("a", "b"):
        write(tmp_path / name, a_class, {CHAPTER: paper})
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert len(files) == 7
    for name in files:
        a, b = ((tmp_path / folder / name).read_bytes() for folder in "ab")
        assert a == b, name


def test_a_class_without_a_grade_and_no_class_at_all(paper, tmp_path):
    ungraded = Outcome("a", CHAPTER, reason="no notebook was submitted").to_dict()
    page = write(tmp_path / "one", [ungraded], {}).read_text("utf-8")
    assert "no notebook was submitted" in page and "<svg" not in page
    page = write(tmp_path / "none", [], {}).read_text("utf-8")
    assert "Nothing has been graded yet." in page


def test_several_chapters_have_a_part_each(a_class, paper, tmp_path):
    other = Paper.of("01_embeddings")
    second = outcome(other, "amelia") | {"chapter": other.chapter}
    papers = {CHAPTER: paper, other.chapter: other}
    page = write(tmp_path, [*a_class, second], papers).read_text("utf-8")
    assert re.findall(r'<article id="(\w+)"', page) == [other.chapter, CHAPTER]


def test_what_students_wrote_stays_text(paper, tmp_path):
    wrong = {
        "softmax": ("visible", f"stopped with {BAD}", None),
        "causal-mask": ("visible", f"=cmd|{BAD}\ud800\x00", None),
        "padding-mask": (NOT_RUN, BAD, BAD),
    }
    bad = outcome(paper, "=HYPERLINK(1)", wrong, repairs=[f"-{BAD}"], limited=[BAD])
    bad["notebook"] = '{"cells": [{"cell_type": "code"}, 5]}'
    page = write(tmp_path, [bad], {CHAPTER: paper}).read_text("utf-8")
    assert "<script" not in page and "&lt;script&gt;" in page
    for path in tmp_path.glob("*.csv"):
        for row in read(path):
            assert not any(value.startswith(("=", "-")) for value in row.values())


# --- which look alike -----------------------------------------------------------------


def variants(paper: Paper) -> tuple[dict, dict, dict[str, list[str]]]:
    """The stubs, the model answers, and the right answers of the bank by exercise."""
    starters = class_report._answers(paper.released)
    models = class_report._answers(paper.source)
    found: dict[str, list[str]] = {name: [] for name in starters}
    for entry in chapters.by_hand(paper.chapter):
        if entry.mistake is None:
            found[entry.exercise].append(source_of(entry.answer))
    return starters, models, found


def source_of(answer: object) -> str:
    text = textwrap.dedent(inspect.getsource(answer))
    start = ast.parse(text).body[0].lineno - 1
    return "\n".join(text.splitlines()[start:])


def disguise(text: str) -> str:
    """Rename the variables, add comments, annotations and a docstring."""

    class Rename(ast.NodeTransformer):
        def visit_Name(self, node):
            return ast.Name(names.get(node.id, node.id), node.ctx)

        def visit_arg(self, node):
            return ast.arg(names.get(node.arg, node.arg), ast.Name("object"))

        def visit_FunctionDef(self, node):
            self.generic_visit(node)
            node.body.insert(0, ast.Expr(ast.Constant("My own work.")))
            return node

    tree = ast.parse(text)
    bound = {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    bound |= {
        n.id
        for n in ast.walk(tree)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    names = {name: f"mine_{i}" for i, name in enumerate(sorted(bound - {"self"}))}
    lines = ast.unparse(Rename().visit(tree)).splitlines()
    return "\n".join(f"{line}  # line {i}" for i, line in enumerate(lines))


@pytest.mark.parametrize("chapter", [CHAPTER, "07_decoder", "08_vision_transformer"])
def test_independent_right_answers_are_not_alike_and_a_disguised_copy_is(chapter):
    starters, models, right = variants(Paper.of(chapter))
    class_ = likeness.Class(starters, models)
    class_.add("model", models)
    students = max(map(len, right.values()))
    for number in range(
        students
    ):  # each answers in a way of its own, where there is one
        answers = {k: v[number] for k, v in right.items() if number < len(v)}
        class_.add(f"own-{number}", models | answers)
    assert class_.pairs() == []
    copied = {name: disguise(texts[0]) for name, texts in right.items() if texts}
    class_.add("copy", models | copied)
    found = [(pair.first, pair.second) for pair in class_.pairs()]
    assert found == [("own-0", "copy")]
    assert len(class_.pairs()[0].exercises) >= 4


def test_a_large_class_that_answers_like_the_model_is_not_alike(paper):
    starters, models, _ = variants(paper)
    class_ = likeness.Class(starters, models)
    for number in range(120):
        class_.add(f"student-{number}", models)
    assert class_.pairs() == []


def test_stubs_count_nothing(paper):
    starters, models, _ = variants(paper)
    class_ = likeness.Class(starters, models)
    for name in ("a", "b"):
        class_.add(name, starters)
    assert class_.pairs() == []


def test_one_short_answer_in_common_is_no_surprise(paper):
    starters, models, right = variants(paper)
    class_ = likeness.Class(starters, models)
    for name in ("a", "b"):
        class_.add(name, {"causal-mask": right["causal-mask"][0]})
    assert class_.pairs() == []


def statements(seed: int, *, rare: bool) -> str:
    """A statement that half of a class might write, or one that nobody else does."""
    draw = random.Random(seed)
    names = [f"f{draw.randrange(10**9 if rare else 4)}" for _ in range(6)]
    return f"x = {'('.join(names)}(x{')' * 6}"


def crowd(students: int, templates: int, seed: int, exercises: int = 4) -> list[dict]:
    """Answers by exercise: a template each, or a friend's, of which lines change."""
    draw = random.Random(seed)
    bases = [
        [statements(draw.randrange(2**40), rare=True) for _ in range(8)]
        for _ in range(templates)
    ]
    made: list[dict[str, list[str]]] = []
    for _ in range(students):
        friend = draw.choice(made) if made and draw.random() < 0.3 else {}
        answers = {}
        for name in (f"exercise-{number}" for number in range(exercises)):
            answers[name] = list(friend.get(name) or draw.choice(bases))
            for _ in range(draw.randrange(3)):
                line = statements(draw.randrange(2**40), rare=draw.random() < 0.5)
                answers[name][draw.randrange(len(bases[0]))] = line
        made.append(answers)
    return [{name: "\n".join(own) for name, own in each.items()} for each in made]


def class_of(answers: list[dict], models: dict) -> likeness.Class:
    class_ = likeness.Class(dict.fromkeys(answers[0], ""), models)
    for number, each in enumerate(answers):
        class_.add(str(number), each)
    return class_


def every_pair(answers: list[dict], models: dict) -> dict[tuple, tuple[float, dict]]:
    """Compare every answer with every other, as the module's docstring says it."""
    size = len(answers) + likeness.UNSEEN
    found: dict[tuple, tuple[float, dict]] = {}
    for name, model in models.items():
        sets = [likeness.fingerprints(each[name]) for each in (*answers, {name: model})]
        owners = collections.Counter(each for one in sets[:-1] for each in one)
        owners.update(dict.fromkeys(sets[-1], size / 2))

        def weight(prints: frozenset, owners=owners) -> float:
            return sum(math.log2(size / min(owners[each], size)) for each in prints)

        shares = [
            [weight(a & b) / max(weight(a | b), 1e-9) for b in sets] for a in sets[:-1]
        ]
        for a, b in itertools.combinations(range(len(answers)), 2):
            if shares[a][b] < likeness.SHARE:
                continue
            alike = [share >= likeness.SHARE for share in shares[a]]
            writers = sum(alike[:-1]) + alike[-1] * size / 2
            rare = weight(sets[a] & sets[b]) / math.log2(size / 2)
            bits = math.log2(size / min(max(writers, 2), size))
            bits *= min(rare / likeness.USUAL, likeness.MOST)
            if bits >= likeness.LEAST:
                total, exercises = found.get((str(a), str(b)), (0, {}))
                shown = exercises | {name: shares[a][b]}
                found[str(a), str(b)] = total + bits, shown
    least = math.log2(math.comb(size, 2)) + likeness.MARGIN
    return {pair: each for pair, each in found.items() if each[0] >= least}


def test_no_pair_of_a_small_class_is_missed():
    reported = 0
    for seed in range(6):
        answers = crowd(8 + 6 * seed, 1 + 12 * seed, seed)
        models = answers[0] if seed % 2 else dict.fromkeys(answers[0], "")
        class_ = class_of(answers, models)
        found = {
            (pair.first, pair.second): (pair.bits, pair.exercises)
            for pair in class_.pairs()
        }
        wanted = every_pair(answers, models)
        assert found.keys() == wanted.keys()
        for pair, (bits, shares) in wanted.items():
            assert found[pair][0] == pytest.approx(bits)
            assert found[pair][1] == pytest.approx(shares)
        assert class_.crowded == []
        reported += len(found)
    assert reported > 10


def test_a_class_of_thousands_from_a_few_templates_shows_who_copied():
    answers = crowd(3000, 4, seed=1, exercises=2)
    for name in answers[0]:  # two who wrote something that nobody else did
        answers[17][name] = "\n".join(
            statements(seed, rare=True) for seed in range(len(name), len(name) + 12)
        )
    answers[2345] = {name: disguise(text) for name, text in answers[17].items()}
    class_ = class_of(answers, dict.fromkeys(answers[0], ""))
    assert ("17", "2345") in [(pair.first, pair.second) for pair in class_.pairs()]
    assert class_.crowded == list(answers[0])
    links = likeness._Answers(*class_._table(class_._exercises["exercise-0"]))._links
    assert (links.sum(axis=0) <= likeness.CROWD).all()


def test_one_rare_line_in_what_a_crowd_wrote_is_no_surprise(monkeypatch):
    names = [f"exercise-{number}" for number in range(6)]
    lines = [statements(seed, rare=True) for seed in range(14)]
    answers = [dict.fromkeys(names, "\n".join(lines)) for _ in range(60)]
    for number in range(60, 120):
        others = [statements(number * 100 + line, rare=True) for line in range(12)]
        answers.append(dict.fromkeys(names, "\n".join(others)))
    shared = "\n".join([*lines, statements(99, rare=True)])
    answers[3] = answers[5] = dict.fromkeys(names, shared)
    monkeypatch.setattr(likeness, "CROWD", 40)
    class_ = class_of(answers, dict.fromkeys(names, ""))
    assert class_.pairs() == []
    assert class_.crowded == names
    alike = class_._alike(class_._exercises[names[0]])
    assert list(alike.pairs) == [3 * len(answers) + 5]  # it counts little
    assert alike.bits == pytest.approx(2 * math.log2(130 / 60), abs=0.7)


def test_the_page_says_where_pairs_were_left_out(paper, tmp_path, monkeypatch):
    outcomes = [outcome(paper, name, notebook=paper.source) for name in ("a", "b", "c")]
    words = "not every pair was compared"
    page = write(tmp_path / "all", outcomes, {CHAPTER: paper})
    assert words not in page.read_text("utf-8")
    monkeypatch.setattr(likeness, "CROWD", 2)
    page = write(tmp_path / "few", outcomes, {CHAPTER: paper}).read_text("utf-8")
    assert words in page and "more than 2 students" in page
    assert "left pairs out in " in page


@pytest.mark.parametrize(
    "text",
    [
        "def f(x:\n    return (",
        "(" * 5000,
        "-" * 20_000 + "1",
        "x = " + "[" * 90 + "]" * 90,
        "f" + "(0)" * 5000,
        "a" + ".b" * 20_000,
        "not " * 12_000 + "x",
        "1 + " * 12_000 + "1",
        "\x00",
        "\ud800",
        "%matplotlib inline\n!rm -rf /\nx = 1",
        "x = '\\d'",
        "",
    ],
)
def test_code_that_cannot_be_read_is_survived(text, recwarn):
    assert len(likeness.fingerprints(text)) >= 0
    assert not recwarn.list


def test_a_broken_line_costs_only_that_line():
    text = "\n".join(f"x{i} = torch.zeros({i}).sum() + {i}" for i in range(20))
    broken = text.replace("x7 = torch", "x7 == = torch")
    whole, rest = likeness.fingerprints(text), likeness.fingerprints(broken)
    assert len(whole & rest) > 0.7 * len(whole)


def test_names_comments_layout_and_annotations_do_not_count():
    text = "def f(a, b):\n    c = a @ b\n    return c / c.sum(dim=-1, keepdim=True)\n"
    other = (
        'import os\ndef f(q: int, k: "text") -> float:\n    """Words."""\n    # more\n'
        "    total: float = (q @\n        k)\n    pass\n"
        "    return total / total.sum(dim=-1, keepdim=True)\n"
    )
    assert likeness.tokens(text) == likeness.tokens(other)
    assert likeness.tokens(text) != likeness.tokens(text.replace("@", "*"))


def test_a_shared_run_of_nodes_shares_a_fingerprint():
    length = likeness.RUN + likeness.WINDOW - 1
    shared = [f"word{i}" for i in range(length)]
    hashes = [
        set(likeness.winnow(likeness._hashes([*before, *shared, *after])))
        for before, after in itertools.product(
            [["a"] * 9, ["b"] * 7], [["c"], ["d"] * 20]
        )
    ]
    assert all(a & b for a, b in itertools.combinations(hashes, 2))


def test_outcomes_are_let_go_of_one_by_one(paper, tmp_path):
    class Kept(dict):
        """An outcome that can be asked whether it is still there."""

    seen: list[weakref.ref] = []
    most = 0

    def outcomes():
        nonlocal most
        for number in range(8):
            each = Kept(outcome(paper, f"student-{number}", notebook=paper.source))
            seen.append(weakref.ref(each))
            yield each
            del each
            most = max(most, sum(one() is not None for one in seen))

    write(tmp_path, outcomes(), {CHAPTER: paper})
    assert len(seen) == 8 and most <= 2
