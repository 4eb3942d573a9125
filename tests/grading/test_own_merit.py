"""Own merit: what uses a wrong answer is judged again with a right one in its place.

The notebooks run without walls, which makes no difference to a score; attacks on what
is given are in tests/attacks (``given_*.py``), behind all walls.
"""

import inspect
import json
import os
from dataclasses import replace

import nbformat
import pytest
import torch
from nbgrader.utils import determine_grade, is_grade

from autograder import generator
from autograder.boundary import given as stand_ins_module
from autograder.boundary.given import CannotBeGivenError, stand_ins
from autograder.grading import class_report, classfile, feedback, given, report
from autograder.grading.classfile import Class, ClassError
from autograder.grading.examine import examine
from autograder.grading.given import Given, Plan, answers_of
from autograder.grading.job import Job, Outcome
from autograder.grading.limits import Limits
from autograder.grading.paper import Paper
from autograder.grading.planning import Terms
from autograder.grading.reference import NoReferenceError, Reference
from autograder.grading.sandbox import Sandbox
from tests.sample_class import notebooks
from tests.strangers import models_of
from transformer import attention, encoder
from transformer.multi_head_attention import MultiHeadAttention

CHAPTER = "04_attention"
WRONG = "def softmax(scores):\n    return scores\n"
PAPERS: dict[str, Paper] = {}
BROKEN = {
    "function": "def {}(*args, **kwargs):\n    raise ValueError('wrong')\n",
    "class": "class {}(torch.nn.Module):\n    def __init__(self, *args): 1 / 0\n",
}


def paper(chapter: str = CHAPTER) -> Paper:
    if chapter not in PAPERS:
        PAPERS[chapter] = Paper.of(chapter)
    return PAPERS[chapter]


def chapters() -> list[str]:
    return [name for name in generator.chapters() if used(name)]


def used(chapter: str) -> list[str]:
    """The exercises whose answers other right answers of a chapter use."""
    answers = answers_of(paper(chapter))
    names = frozenset().union(*answers.uses.values())
    return sorted({answers.owner[name] for name in names})


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(Limits(), unsafe=True) as made:
        yield made
    given.close()


def submission(chapter: str = CHAPTER, **answers: str) -> nbformat.NotebookNode:
    """A solved notebook in which some answers are other code."""
    notebook = notebooks._solved(chapter)
    for name, code in answers.items():
        notebooks._cell(notebook, name.replace("_", "-")).source = code
    return notebook


def judged(sandbox, notebook, chapter: str = CHAPTER, **options) -> Outcome:
    data = json.dumps(notebook).encode()
    options = {"models": models_of(chapter), "unsafe": True} | options
    job = Job("ada", chapter, data, paper(chapter), **options)
    outcome = examine(job, sandbox)
    assert (outcome.status, outcome.reason, outcome.log) == ("graded", "", "")
    return outcome


def lost(outcome: Outcome) -> set[str]:
    return {each.exercise for each in outcome.verdicts if each.score < each.points}


# --- points ---------------------------------------------------------------------------


def test_with_only_softmax_wrong_everything_else_has_its_points(sandbox) -> None:
    outcome = judged(sandbox, submission(softmax=WRONG))
    assert lost(outcome) == {"softmax"}
    assert sum(v.points for v in outcome.verdicts) - outcome.score == 2
    assert {v.exercise for v in outcome.verdicts if v.given == ["softmax"]} == {
        *("masked-softmax", "scaled-dot-product-attention", "attention-module"),
        *("geometric-example", "additive-attention", "attention-pooling"),
    }
    assert outcome.limited == []


def broken(chapter: str, exercise: str) -> nbformat.NotebookNode:
    """A solved notebook in which nothing that an exercise defines works."""
    notebook = notebooks._solved(chapter)
    cell = notebooks._cell(notebook, exercise)
    names = [n for n, o in answers_of(paper(chapter)).owner.items() if o == exercise]
    kinds = [
        "class" if f"class {name}" in cell.source else "function" for name in names
    ]
    parts = [BROKEN[kind].format(name) for kind, name in zip(kinds, names, strict=True)]
    cell.source = "import torch\n\n\n" + "\n\n".join(parts)
    return notebook


@pytest.mark.slow
@pytest.mark.parametrize("chapter", chapters())
def test_one_wrong_early_answer_costs_its_own_points_only(chapter, sandbox) -> None:
    """Every eighth is broken, and with BANK=all in the environment each of them."""
    early = used(chapter)
    if os.environ.get("BANK") != "all":
        early = early[::8]
    for exercise in early:
        outcome = judged(sandbox, broken(chapter, exercise), chapter)
        assert lost(outcome) == {exercise}
        assert any(verdict.given for verdict in outcome.verdicts), exercise


def test_several_wrong_answers_cost_their_own_points_only(sandbox) -> None:
    answers = {
        "softmax": WRONG,
        "scaled_dot_product_attention": BROKEN["function"].format(
            "scaled_dot_product_attention"
        ),
    }
    outcome = judged(sandbox, submission(**answers))
    assert lost(outcome) == {"softmax", "scaled-dot-product-attention"}
    by_name = {v.exercise: v.given for v in outcome.verdicts}
    assert by_name["masked-softmax"] == ["softmax"]
    assert by_name["attention-module"] == ["scaled_dot_product_attention"]


def test_what_is_wrong_in_itself_stays_wrong(sandbox) -> None:
    forgets = "def masked_softmax(scores, mask=None):\n    return softmax(scores)\n"
    outcome = judged(sandbox, submission(softmax=WRONG, masked_softmax=forgets))
    assert lost(outcome) == {"softmax", "masked-softmax"}
    verdict = next(v for v in outcome.verdicts if v.exercise == "masked-softmax")
    assert (verdict.part, verdict.given) == ("visible", [])
    assert verdict.failure["text"]


def test_an_answer_as_it_was_handed_out_earns_nothing(sandbox) -> None:
    notebook = submission(softmax=WRONG)
    release = nbformat.reads(paper().released, as_version=4)
    for name in ("masked-softmax", "attention-module"):
        cell = notebooks._cell(notebook, name)
        cell.source = notebooks._cell(release, name).source
    outcome = judged(sandbox, notebook)
    assert lost(outcome) == {"softmax", "masked-softmax", "attention-module"}


def test_a_later_definition_of_the_same_name_is_replaced_as_well(sandbox) -> None:
    notebook = submission(softmax=WRONG)
    cell = notebooks._cell(notebook, "scaled-dot-product-attention")
    cell.source = f"{WRONG}\n\n{cell.source}"
    assert lost(judged(sandbox, notebook)) == {"softmax"}


def test_a_name_that_was_never_defined_is_given(sandbox) -> None:
    outcome = judged(sandbox, submission(softmax="def sotfmax(scores:"))
    assert lost(outcome) == {"softmax"}


@pytest.mark.parametrize(("share", "points"), [(0, 0), (0.5, 8), (1, 16)])
def test_the_share_of_the_points_is_the_same_for_nbgrader(
    share, points, sandbox
) -> None:
    outcome = judged(sandbox, submission(softmax=WRONG), carried_forward=share)
    own = sum(v.points for v in outcome.verdicts) - 2 - 16
    assert outcome.score == own + points
    notebook = nbformat.reads(outcome.notebook, as_version=4)
    nbformat.validate(notebook)
    grades = {
        cell.metadata.nbgrader.grade_id: determine_grade(cell)[0]
        for cell in notebook.cells
        if is_grade(cell) and cell.cell_type == "code"
    }
    assert grades.items() <= {v.grade_id: v.score for v in outcome.verdicts}.items()
    assert ("Solved, given a right softmax" in outcome.notebook) == bool(share)


def test_without_such_failures_there_is_no_second_sitting(sandbox, monkeypatch) -> None:
    def refuse(answers):
        raise AssertionError("a second sitting")

    monkeypatch.setattr(given, "reference_for", refuse)
    wrong = {"padding_mask": "def padding_mask(lengths, max_length):\n    return 1\n"}
    assert lost(judged(sandbox, submission(**wrong))) == {"padding-mask"}
    assert lost(judged(sandbox, nbformat.reads(paper().released, as_version=4)))


def test_a_second_sitting_that_fails_leaves_the_first_as_it_was(sandbox) -> None:
    notebook = submission(softmax=WRONG)
    cell = notebooks._cell(notebook, "masked-softmax")
    cell.source += "\n\nfrom autograder.boundary import given\n"
    cell.source += "if given._Line.ask:\n    import os\n    os._exit(1)\n"
    outcome = judged(sandbox, notebook)
    assert "softmax" in lost(outcome) and "causal-mask" not in lost(outcome)
    assert not any(verdict.given for verdict in outcome.verdicts)
    (note,) = outcome.unseen  # why may be a student's choice, after hidden tests
    assert note.startswith("not everything was judged once more: ")


# --- stand-ins ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def right():
    """Make stand-ins of a chapter, which anybody may ask."""
    made: list[Reference] = []

    def make(chapter: str) -> dict:
        answers = answers_of(paper(chapter))
        made.append(Reference(answers.code))
        plan = Plan({"anybody": frozenset(answers.owner)})
        gate = Given(made[-1], plan)
        gate.turn("anybody")
        return stand_ins(gate.describe(answers.owner), gate.answer)

    yield make
    for each in made:
        each.close()


def gradients(function, *inputs: torch.Tensor) -> list[torch.Tensor]:
    own = [each.clone().requires_grad_() for each in inputs]
    value = function(*own)
    value = value if isinstance(value, tuple) else (value,)
    random = torch.Generator().manual_seed(5)
    total = sum((v * torch.randn(v.shape, generator=random)).sum() for v in value)
    return [*value, *torch.autograd.grad(total, own)]


def test_functions_have_the_values_gradients_and_signatures_of_right_ones(
    right,
) -> None:
    names = right(CHAPTER)
    for name, shapes in {
        "softmax": [(2, 3, 5)],
        "scaled_dot_product_attention": [(4, 5), (7, 5), (7, 2)],
        "project_qkv": [(4, 5), (7, 5), (5, 2), (5, 2), (5, 3)],
        "softmax_jacobian": [(3, 4)],
    }.items():
        inputs = [torch.randn(shape) for shape in shapes]
        expected = gradients(getattr(attention, name), *inputs)
        got = gradients(names[name], *inputs)
        for one, other in zip(got, expected, strict=True):
            torch.testing.assert_close(one, other)
        parameters = inspect.signature(getattr(attention, name)).parameters
        assert list(inspect.signature(names[name]).parameters) == list(parameters)
    mask = names["causal_mask"](3)
    assert mask.dtype == torch.bool and not mask.requires_grad
    with pytest.raises(TypeError):
        names["softmax"]()


def test_modules_have_the_states_and_gradients_of_right_ones(right) -> None:
    names = right("06_encoder")
    made = names["EncoderLayer"](8, 2, 16)
    expected = encoder.EncoderLayer(8, 2, 16)
    state = expected.state_dict()
    assert {k: v.shape for k, v in made.state_dict().items()} == {
        k: v.shape for k, v in state.items()
    }
    assert isinstance(made.dropout, torch.nn.Dropout) and made.norm_first is False
    made.load_state_dict(state)
    x = torch.randn(2, 5, 8)
    for one, other in zip(gradients(made, x), gradients(expected, x), strict=True):
        torch.testing.assert_close(one, other)
    for module in (made, expected):
        module(x).square().sum().backward()
    found = dict(made.named_parameters())
    for name, parameter in expected.named_parameters():
        torch.testing.assert_close(found[name].grad, parameter.grad)
    inner = made.attention(x)[0], expected.attention(x)[0]
    torch.testing.assert_close(*inner)


def test_a_module_draws_by_the_seed_here_and_only_in_training(right) -> None:
    layer = right("06_encoder")["EncoderLayer"](8, 2, 16, dropout=0.5)
    x = torch.randn(2, 5, 8)

    def run(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return layer(x)

    torch.testing.assert_close(run(1), run(1))
    assert not torch.equal(run(1), run(2))
    layer.eval()
    torch.testing.assert_close(run(1), run(2))
    layer.train()
    torch.manual_seed(1)
    once = gradients(layer, x)
    torch.manual_seed(1)
    assert all(map(torch.equal, once, gradients(layer, x)))


def test_modules_can_be_built_upon_copied_and_called_by_their_methods(right) -> None:
    names = right("05_multi_head_attention")
    kind = names["MultiHeadAttention"]

    class Own(kind):
        def forward(self, x):
            return super().forward(x)[0]

    own, x = Own(8, 2), torch.randn(3, 8)
    expected = MultiHeadAttention(8, 2)
    expected.load_state_dict(own.state_dict())
    torch.testing.assert_close(own(x), expected(x)[0])
    q, k, v = own.project(x, x)
    torch.testing.assert_close(q, expected.project(x, x)[0])
    torch.testing.assert_close(own.attend(q, k, v)[0], expected(x)[0])
    assert own.heads == 2
    with pytest.raises(ValueError, match="raised by a right MultiHeadAttention"):
        kind(8, 3)


def test_what_cannot_be_asked_is_told(right) -> None:
    names = right(CHAPTER)
    for odd in (object(), lambda: 0, [[[[[[[[[[1]]]]]]]]]], range(3)):
        with pytest.raises(CannotBeGivenError):
            names["softmax"](odd)
    with pytest.raises(CannotBeGivenError, match="too large"):
        names["softmax"](torch.ones(4_000_001))


# --- questions ------------------------------------------------------------------------


class Echo:
    """Stands for the process with the right answers."""

    def __init__(self) -> None:
        self.heard: list[dict] = []

    def ask(self, question: dict) -> dict:
        self.heard.append(question)
        return {"value": 1, "depends": [], "seconds": 0.0}


CALL = {
    **{"do": "call", "name": "softmax", "seed": 0, "args": (), "kwargs": {}},
    **{"state": {}, "wanted": []},
}
MODULE = {"path": "", "method": "forward", "modes": {}, "build": ((), {})}
ODD = [
    *(None, 1, "softmax", [], {}, {"do": "call"}, {"do": []}, CALL | {"do": "names"}),
    *(
        CALL | {"name": "masked_softmax"},
        CALL | {"name": 1},
        CALL | {"name": "x" * 2000},
    ),
    *(CALL | {"seed": -1}, CALL | {"seed": 2**31}, CALL | {"seed": True}),
    *(CALL | {"more": 1}, CALL | {"args": []}, CALL | {"kwargs": {1: 1}}),
    *(CALL | {"wanted": [1]}, CALL | {"state": {"w": None, "v": 1}}),
    *(CALL | {"args": (torch.ones(2, dtype=torch.complex64),)},),
    *(CALL | {"args": (torch.ones(4_000_001, dtype=torch.bool),)},),
    *(CALL | {"args": ([0] * 100_001,)}, CALL | MODULE | {"modes": {"": 1}}),
    *(CALL | MODULE | {"build": ([], {})}, CALL | MODULE | {"build": ((), {}, 1)}),
    *(CALL | {"do": "pull"}, CALL | {"do": "pull", "cotangents": (1,)}),
    *({"do": "build", "name": "softmax", "seed": 0, "build": ((), {1: 2})},),
]


@pytest.mark.parametrize("question", ODD, ids=range(len(ODD)))
def test_what_is_no_question_reaches_nobody(question) -> None:
    echo = Echo()
    gate = Given(echo, Plan({"masked-softmax": frozenset({"softmax"})}))
    gate.turn("masked-softmax")
    assert list(gate.answer(question)) == ["refused"]
    assert (echo.heard, gate.asked) == ([], set())
    assert "value" in gate.answer(CALL)
    assert "value" in gate.answer(CALL | MODULE)


def test_each_exercise_may_ask_for_what_its_right_answer_uses(monkeypatch) -> None:
    gate = Given(Echo(), Plan({"masked-softmax": frozenset({"softmax"})}))
    for exercise, allowed in {"": 0, "softmax": 0, "masked-softmax": 1}.items():
        gate.turn(exercise)
        assert ("value" in gate.answer(CALL)) == bool(allowed)
        assert gate.asked == ({"softmax"} if allowed else set())
    monkeypatch.setattr(gate, "_questions", 2)
    answers = [gate.answer(CALL) for _ in range(4)]
    assert ["value" in each for each in answers] == [True, True, False, False]


def test_who_uses_whom_is_read_off_right_answers() -> None:
    uses = answers_of(paper()).uses
    assert uses["masked-softmax"] == {"softmax"}
    assert uses["attention-module"] == {
        *("project_qkv", "scaled_dot_product_attention", "masked_softmax", "softmax")
    }
    assert uses["softmax"] == uses["causal-mask"] == frozenset()
    # what no right answer of a chapter needs is given to nobody
    cells = ["def causal_mask(n):\n    return softmax(n)\n"]
    plan = given.plan(
        answers_of(paper()),
        ["softmax", "causal-mask"],
        {"causal-mask": cells[0]},
        cells,
    )
    assert plan.again == {}


# --- the process with the right answers -----------------------------------------------


@pytest.fixture(scope="module")
def reference():
    with Reference(answers_of(paper()).code) as made:
        yield made


def test_the_process_takes_little_memory_and_time(reference) -> None:
    masks = CALL | {"name": "causal_mask", "args": (1_000_000,)}
    found = reference.ask(masks)
    assert "value" not in found
    x = torch.ones(1, 40_000, 1)
    more = {"name": "scaled_dot_product_attention", "wanted": [False] * 3}
    assert "value" not in reference.ask(CALL | more | {"args": (x, x, x)})
    assert "value" in reference.ask(
        CALL | {"args": (torch.ones(2),), "wanted": [False]}
    )


def test_the_process_can_open_and_start_nothing(reference) -> None:
    reference.describe()
    process = reference._process.pid
    with open(f"/proc/{process}/limits", encoding="ascii") as file:
        limits = {line[:26].strip(): line[26:].split()[:2] for line in file}
    for name in ("Max open files", "Max processes", "Max file size"):
        assert limits[name] == ["0", "0"]
    assert limits["Max address space"][0] != "unlimited"
    assert not os.path.exists(os.readlink(f"/proc/{process}/cwd"))


def test_a_process_that_dies_is_replaced_and_its_question_refused(reference) -> None:
    gate = Given(reference, Plan({"masked-softmax": frozenset({"softmax"})}))
    gate.turn("masked-softmax")
    reference.describe()
    reference._process.kill()
    reference._process.wait()
    question = CALL | {"args": (torch.ones(2),), "wanted": [False]}
    assert "value" in gate.answer(question)  # noticed before it was asked

    class Dies:
        def ask(self, question):
            raise NoReferenceError("closed")

    gate = Given(Dies(), Plan({"masked-softmax": frozenset({"softmax"})}))
    gate.turn("masked-softmax")
    assert gate.answer(question) == {"refused": "it took too much"}
    assert gate.answer(question) == {"refused": "too many questions"}


def test_nothing_but_names_and_signatures_is_described(reference) -> None:
    known = reference.describe()
    assert known["softmax"] == {"kind": "function", "parameters": [("scores", 1, ())]}
    assert known["Attention"]["kind"] == "class"
    assert set(known["Attention"]) == {"kind", "parameters", "methods"}
    made = stand_ins(known, Echo().ask)
    for each in made.values():
        code = getattr(each, "__code__", None)
        assert code is None or code.co_filename == stand_ins_module.__file__


# --- what people read -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "share"),
    [("", 1.0), ("carried_forward: 0.5", 0.5), ("carried_forward: 0", 0.0)],
)
def test_the_class_says_the_share(text, share, tmp_path) -> None:
    (tmp_path / "class.yml").write_text(text)
    found = classfile.read(tmp_path / "class.yml", [CHAPTER])
    assert found.carried_forward == share


@pytest.mark.parametrize("text", ["2", "-0.5", "50 %", "yes", "nan", "1e-1", ""])
def test_what_is_no_share_is_told(text, tmp_path) -> None:
    path = tmp_path / "class.yml"
    path.write_text(f"late: none\ncarried_forward: {text}\n")
    with pytest.raises(ClassError, match=r"class\.yml:2: .*is no share; write a "):
        classfile.read(path, [CHAPTER])


def test_another_share_grades_again() -> None:
    terms = Terms({CHAPTER: paper()}, Class(), Limits())
    other = replace(terms, of_class=Class(carried_forward=0.5))
    assert terms.fingerprint(CHAPTER) != other.fingerprint(CHAPTER)


@pytest.fixture
def outcome(sandbox) -> Outcome:
    return judged(sandbox, submission(softmax=WRONG), carried_forward=0.5)


def test_feedback_report_and_audit_say_it(outcome, tmp_path) -> None:
    page = feedback.page(outcome, paper())
    assert "Solved, given a right <code>softmax</code>" in page
    assert "1.5 of 3 points" in page
    about = class_report.Report({CHAPTER: paper()})
    about.add(outcome.to_dict())
    about.write(tmp_path)
    rows = (tmp_path / "students.csv").read_text().splitlines()
    assert f"ada,{CHAPTER},graded,masked-softmax,given" in rows
    assert f"ada,{CHAPTER},graded,softmax,visible" in rows
    entry = outcome.to_dict() | dict.fromkeys(report.AUDIT, "")
    entry |= {"repairs": [], "limited": [], "unseen": [], "notes": []}
    line = json.loads(report.audit(entry, None))
    assert line["given"]["masked-softmax"] == ["softmax"]
    assert Outcome.from_dict(outcome.to_dict()) == outcome
