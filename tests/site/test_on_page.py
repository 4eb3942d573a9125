"""Exercises in the page: the checks say the same where no torch can be imported."""

import ast
import inspect
import json
import random
import re
import subprocess
import sys
import textwrap

import pytest
import torch
import torch.nn.functional as F

from autograder.chapters.class_token import behaviour
from autograder.chapters.decoder.writing import ngrams
from autograder.chapters.translator import smoothing
from autograder.exercise import inputs
from autograder.generator.modules import without_markers
from autograder.grading.imports import ROOT
from autograder.on_page import runner
from tests import chapters, without_torch
from tools.site import fetch_on_page, on_page
from tools.site.live_models import facts_of

EXERCISES = [
    (page, exercise) for page in on_page.pages() for exercise in on_page.exercises(page)
]
NAMES = [exercise["name"] for _, exercise in EXERCISES]


def solution(page: str, name: str) -> str:
    """The right answer of an exercise, as a student would have it in the cell."""
    found = next(e for e in chapters.source(page).exercises if e.name == name)
    return "\n\n".join(without_markers(cell.text) for cell in found.answers)


def by_hand(page: str, name: str) -> list[str]:
    """The bank's answers by hand that are functions which need nothing around them."""
    texts = []
    for entry in chapters.bank(page):
        written = inspect.isfunction(entry.answer) and not entry.replaces
        if entry.exercise == name and written and not is_needy(entry.answer):
            tree = ast.parse(textwrap.dedent(inspect.getsource(entry.answer)))
            tree.body[0].decorator_list = []
            texts.append(ast.unparse(tree))
    return [text for text in texts if not re.search(r"\b(torch|nn)\.", text)]


def is_needy(function) -> bool:
    """Whether a function looks up what its module has and a notebook has not."""
    found = inspect.getclosurevars(function)
    return bool(found.globals or found.unbound or found.nonlocals)


@pytest.fixture(scope="module")
def jobs() -> list[dict]:
    found = []
    for page, exercise in EXERCISES:
        names = [*(name for name, _ in exercise["earlier"]), exercise["name"]]
        found.append(
            {
                "exercise": exercise,
                "written": {name: solution(page, name) for name in names},
                "others": [exercise["stub"], *by_hand(page, exercise["name"])],
            }
        )
    return found


@pytest.fixture(scope="module")
def there(jobs, monkeypatch_module) -> dict:
    """What is told where torch is."""
    return {each["name"]: each for each in without_torch.verdicts(jobs)}


@pytest.fixture(scope="module")
def monkeypatch_module():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_LOOK", "0")
        yield patch


@pytest.fixture(scope="module")
def here(jobs, monkeypatch_module) -> dict:
    """What is told where torch cannot be imported."""
    return {each["name"]: each for each in asked(jobs)}


def asked(jobs: list[dict]) -> list[dict]:
    """Judge in a process where torch cannot be imported."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.without_torch"],
        input=json.dumps(jobs),
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


def all_told(verdicts: dict) -> dict[str, dict]:
    """Put the verdicts on an exercise's answers side by side."""
    others = {f"by hand {i}": each for i, each in enumerate(verdicts["others"])}
    return {"right": verdicts["right"]} | others | verdicts["derived"]


def test_at_least_fourteen_exercises_run_in_a_page() -> None:
    assert sorted(NAMES) == sorted(on_page.WITHOUT_TORCH)
    assert len(NAMES) >= 14


@pytest.mark.parametrize("name", NAMES)
def test_a_page_is_told_what_a_notebook_is_told(here, there, name: str) -> None:
    assert here[name]["right"]["passed"], here[name]["right"]["words"]
    ours, theirs = all_told(here[name]), all_told(there[name])
    assert len(ours) == len(theirs) >= 5
    for label, told in ours.items():
        assert told["words"] == theirs[label]["words"], label
        assert told == theirs[label], label
    for each in here[name]["derived"].values():
        assert each["mistake"] == each["known"], each["words"]


def test_torch_in_an_answer_is_said_in_words_with_the_reader_s_line() -> None:
    exercise = next(e for _, e in EXERCISES if e["name"] == "attention-parameters")
    text = """import torch


def attention_parameters(d_model, heads, kv_heads=None):
    return torch.zeros(d_model, heads).numel()
"""
    job = {
        "exercise": exercise,
        "written": {
            "attention-parameters": solution(
                "05_multi_head_attention", "attention-parameters"
            )
        },
        "others": [text],
    }
    told = asked([job])[0]["others"][0]
    assert not told["passed"]
    assert "torch.zeros cannot be used here" in told["words"]
    assert "line 5: return torch.zeros(d_model, heads).numel()" in told["words"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "def attention_parameters(heads:\n    return 1",
            "in line 1: def attention_parameters",
        ),
        ("1 / 0", "stopped with ZeroDivisionError"),
        ("x = 1", "is not there"),
        ("def attention_parameters(*given):\n    return [0] * 10**12", "MemoryError"),
        (
            "def attention_parameters(*all):\n    return attention_parameters(*all)",
            "Recursion",
        ),
        (
            "def attention_parameters(*given):\n    print('so' * 9000)",
            "ends without `return`",
        ),
    ],
)
def test_what_is_no_answer_is_said_in_words(text: str, words: str) -> None:
    exercise = next(e for _, e in EXERCISES if e["name"] == "attention-parameters")
    told = runner.judge(exercise, {"attention-parameters": text}, "../../book")
    assert not told["passed"]
    assert words in told["words"]
    assert "not yet right" in told["card"] and len(told["printed"]) < 5000


def test_an_earlier_answer_that_fails_stays_a_stub() -> None:
    exercise = next(e for _, e in EXERCISES if e["name"] == "bpe-encode")
    written = {
        "bpe-encode": solution("01_embeddings", "bpe-encode"),
        "merge-pair": "def merge_pair(",
    }
    told = runner.judge(exercise, written)
    assert "merge_pair, which is not written yet" in told["words"]


# --- what is drawn, and what is right, where no torch is ------------------------------


@pytest.mark.parametrize("seed", [0, 1, 5209, 2**31 - 1])
def test_whole_numbers_are_drawn_as_torch_draws_them(seed: int) -> None:
    ours, theirs = inputs.WholeNumbers(seed), inputs.seeded(seed)
    for count in (1, 7, 700):
        for low, high in ((0, 2), (3, 40), (50, 900)):
            several = [inputs.draw_several(s, low, high, count) for s in (ours, theirs)]
            assert several[0] == several[1]
        assert inputs.draw_order(ours, count) == inputs.draw_order(theirs, count)
    assert inputs.draw_sizes(ours, 3) == inputs.draw_sizes(theirs, 3)
    assert inputs.draw_whole(ours, 9) == inputs.draw_whole(theirs, 9)


@pytest.mark.parametrize("smoothing_share", [0.0, 0.05, 0.3, 0.9])
def test_the_smoothed_loss_is_pytorch_s(smoothing_share: float) -> None:
    for size in (2, 7, 3000):
        chances = torch.full((size,), smoothing_share / size, dtype=torch.double)
        chances[0] += 1 - smoothing_share
        scores = chances.clamp(min=1e-300).log().unsqueeze(0)
        loss = F.cross_entropy(
            scores, torch.tensor([0]), label_smoothing=smoothing_share
        )
        ours = smoothing.by_cross_entropy(size, smoothing_share)
        assert ours == pytest.approx(abs(loss.item()), abs=1e-12)


def test_what_is_stated_of_readouts_is_what_an_encoder_does() -> None:
    assert behaviour.stated() == behaviour.measured()


def test_bleu_by_the_checks_own_rules_is_sacrebleu_s() -> None:
    drawn = random.Random(3)
    for number in range(60):
        corpora = ngrams._corpus(
            inputs.WholeNumbers(number), 1 + number % 6, 3 + number % 7, number % 5 - 2
        )
        maximum = drawn.randint(1, 5)
        theirs = ngrams._sacrebleu(*corpora, maximum)
        assert ngrams._bleu(*corpora, maximum) == pytest.approx(theirs, abs=1e-9)


# --- what is packed -------------------------------------------------------------------


def test_no_answer_and_no_hidden_test_travels_with_the_checks() -> None:
    files = on_page.course_files()
    assert all(name.startswith("autograder/") for name in files)
    assert sum(map(len, files.values())) < 800_000
    for page in on_page.pages():
        text = json.dumps(on_page.chapter_data(page))
        assert "BEGIN SOLUTION" not in text and "HIDDEN TESTS" not in text


def test_a_damaged_part_is_refused(tmp_path, monkeypatch) -> None:
    sums = fetch_on_page.FOLDER / "SHA256SUMS"
    (tmp_path / "SHA256SUMS").write_text(sums.read_text().replace("0", "1"))
    part = f"{fetch_on_page.LOCK}.xz"
    (tmp_path / part).write_bytes((fetch_on_page.FOLDER / part).read_bytes())
    monkeypatch.setattr(fetch_on_page, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match="damaged"):
        fetch_on_page.unpacked(fetch_on_page.LOCK)


def test_what_travels_is_small() -> None:
    shared = on_page.shared_scripts()
    sizes = [facts_of(name, content)["bytes"] for name, content in shared.items()]
    assert sum(sizes) < 6_500_000


def test_texts_say_how_many_exercises_are_done_in_their_pages() -> None:
    word = {14: "fourteen", 15: "fifteen", 16: "sixteen", 17: "seventeen"}[
        len(on_page.WITHOUT_TORCH)
    ]
    for path in ("README.md", "book/students.md", "CHANGELOG.md"):
        text = (on_page.ROOT / path).read_text("utf-8").lower()
        assert f"{word} exercises" in text, path
