"""Examining a submission: right scores, words for what fails, and nothing that escapes.

Most of it runs without walls, which makes no difference to a score; what the walls are
for is in test_sandbox.py and test_attacks.py.
"""

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace

import nbformat
import psutil
import pytest
from nbgrader.utils import determine_grade, is_grade

from autograder import generator
from autograder.chapters import attention, results
from autograder.expect import CheckFailure
from autograder.grading import grader as grader_module
from autograder.grading.examine import examine
from autograder.grading.grader import Grader
from autograder.grading.job import NOT_RUN, Job, Outcome
from autograder.grading.limits import Limits
from autograder.grading.paper import Paper
from autograder.grading.reading import LARGEST_NOTEBOOK, MOST_CELLS, Refused, parse
from autograder.grading.sandbox import Sandbox, problem
from autograder.grading.sitting import FACT
from autograder.interface import LocalFunction
from tests import strangers
from tests.sample_class import notebooks
from tests.strangers import models_of

CHAPTER = "04_attention"
SOME = (  # of its exercises: a short notebook shows as well how a notebook is treated
    *strangers.FEW,
    "masked-softmax",
    "scaled-dot-product-attention",
    "redirect-attention",
    "attention-cost",
    "explain-scaling",
)
QUICK = ("03_positional_encoding", CHAPTER)
CHAPTERS = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
    for name in generator.chapters()
]
SHORT = Limits(cell_seconds=8, call_seconds=4)  # for what never ends
PAPERS: dict[str, Paper] = {}


def paper(chapter: str) -> Paper:
    if chapter not in PAPERS:
        PAPERS[chapter] = Paper.of(chapter)
    return PAPERS[chapter]


@pytest.fixture(scope="module", params=["unsafe", "sandbox"])
def either(request):
    """A sandbox without walls, and one with them."""
    if request.param == "sandbox" and problem():
        pytest.skip(problem())
    with Sandbox(Limits(), unsafe=request.param == "unsafe") as sandbox:
        yield sandbox


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(Limits(), unsafe=True) as made:
        yield made


@pytest.fixture(autouse=True)
def beside_the_notebook(monkeypatch):
    """Other tests let checks look for models elsewhere."""
    monkeypatch.setattr(results, "PLACE", results.Path())


def some() -> Paper:
    """The paper of the short notebook."""
    return strangers.paper(only=SOME)


def job(notebook, chapter: str = "", **options: object) -> Job:
    """A submission of a whole chapter, or of the short notebook."""
    is_file = isinstance(notebook, bytes)
    data = notebook if is_file else json.dumps(notebook).encode()
    given = {"paper": paper(chapter) if chapter else some(), "unsafe": True} | options
    return Job("amelia.brandt", chapter or CHAPTER, data, **given)


def solved(**answers: str) -> nbformat.NotebookNode:
    """The short notebook, solved, some of its answers followed by other code."""
    whole = notebooks._solved(CHAPTER)
    notebook = nbformat.from_dict(strangers.cut(whole, SOME))
    for name, code in answers.items():
        cell = notebooks._cell(notebook, name.replace("_", "-"))
        cell.source += f"\n\n{code}"
    return notebook


def full() -> float:
    """The points of the short notebook that no person gives."""
    waiting = some().points["explain-scaling"]
    return sum(some().points.values()) - waiting


def lost(outcome: Outcome) -> set[str]:
    return {each.exercise for each in outcome.verdicts if each.score < each.points}


def verdict(outcome: Outcome, exercise: str):
    return next(each for each in outcome.verdicts if each.exercise == exercise)


# --- scores ---------------------------------------------------------------------------


EITHER = [
    pytest.param(*each.values, way, marks=each.marks)
    for way, some in (("sandbox", CHAPTERS), ("unsafe", CHAPTERS[::4]))
    for each in some
]


@pytest.mark.parametrize(("chapter", "either"), EITHER, indirect=["either"])
def test_a_solved_notebook_earns_all_points_and_an_untouched_one_none(
    chapter, either
) -> None:
    given = {"models": models_of(chapter), "unsafe": either.unsafe}
    outcome = examine(job(notebooks._solved(chapter), chapter, **given), either)
    assert (outcome.status, outcome.reason, lost(outcome)) == ("graded", "", set())
    by_hand = sum(each["points"] for each in outcome.by_hand)
    assert (
        outcome.score + by_hand == outcome.points == sum(paper(chapter).points.values())
    )
    untouched = examine(job(paper(chapter).released.encode(), chapter, **given), either)
    assert (untouched.status, untouched.score) == ("graded", 0)
    assert untouched.by_hand == []
    assert [each.grade_id for each in untouched.verdicts] == list(paper(chapter).points)


def test_nbgrader_reads_the_same_scores_from_the_executed_notebook(sandbox) -> None:
    wrong = solved(softmax="def softmax(scores, dim=-1):\n    return scores")
    outcome = examine(job(wrong), sandbox)
    assert outcome.reason == ""
    notebook = nbformat.reads(outcome.notebook, as_version=4)
    nbformat.validate(notebook)
    grades = {
        cell.metadata.nbgrader.grade_id: determine_grade(cell)[0]
        for cell in notebook.cells
        if is_grade(cell)
    }
    waiting = {each["grade_id"]: None for each in outcome.by_hand}
    assert grades == {v.grade_id: v.score for v in outcome.verdicts} | waiting
    assert "softmax" in lost(outcome)
    assert "BEGIN HIDDEN TESTS" in outcome.notebook


def test_an_outcome_survives_being_written_down(sandbox) -> None:
    outcome = examine(job(solved()), sandbox)
    assert Outcome.from_dict(json.loads(json.dumps(outcome.to_dict()))) == outcome
    made = job(solved())
    assert Job.from_dict(made.to_dict()) == made


def test_what_is_missing_or_misnamed_earns_nothing(sandbox) -> None:
    notebook = solved()
    notebooks._cell(notebook, "softmax").source = "soft_max = None"
    outcome = examine(job(notebook), sandbox)
    assert "softmax" in lost(outcome)
    assert verdict(outcome, "softmax").failure["what"] == "is not there"


def test_a_failure_says_what_and_where_and_in_which_part(sandbox) -> None:
    wrong = "softmax = lambda x, dim=-1: x.exp() / x.exp().sum(0, keepdim=True)"
    notebook = solved(softmax=wrong)
    failed = verdict(examine(job(notebook), sandbox), "softmax")
    assert failed.part == "visible"
    assert failed.failure["mistake"] == "softmax over the wrong axis"
    assert failed.failure["text"].startswith("softmax: softmax over the wrong axis")
    assert "04_attention.html" in failed.failure["read"]
    assert failed.title


def test_a_forbidden_name_that_runs_costs_its_own_exercise(sandbox) -> None:
    there = "from torch._decomp import decompositions as steps\n\n\n"
    there += "def softmax(scores):\n"
    there += "    return steps._softmax(scores, -1, False).nan_to_num()"
    notebook = solved(softmax=there)
    outcome = examine(job(notebook), sandbox)
    failed = verdict(outcome, "softmax")
    assert (failed.score, failed.part) == (0, "visible")
    words = "uses torch.softmax, which this exercise asks you to write yourself"
    assert failed.failure["mistake"] == failed.failure["what"] == words
    assert "steps._softmax(scores" in failed.failure["got"]
    assert "04_attention.html" in failed.failure["read"]
    assert lost(outcome) == {"softmax"}
    assert outcome.flags == []
    executed = nbformat.reads(outcome.notebook, as_version=4)
    assert determine_grade(notebooks._cell(executed, "test-softmax"))[0] == 0


def test_what_cannot_be_told_keeps_its_points_and_is_flagged(sandbox) -> None:
    there = "name = open('/dev/null').read() or 'nothing'\n"
    there += "attend_by = getattr(torch, name, None)"
    there += "\n\n\nbefore = softmax\n\n\ndef softmax(scores):\n"
    there += "    return attend_by(scores) if attend_by else before(scores)"
    outcome = examine(job(solved(softmax=there)), sandbox)
    assert lost(outcome) == set()
    using = {"softmax", "scaled-dot-product-attention"}  # the second calls the first
    assert {flag["exercise"] for flag in outcome.flags} == using
    for flag in outcome.flags:
        assert "getattr(torch, name" in flag["text"]
        assert "put together while it runs" in flag["why"]


def test_an_answer_that_knows_the_visible_part_fails_the_hidden_one(
    sandbox, monkeypatch
) -> None:
    def check(student, seed=0):
        if seed:
            raise CheckFailure("is wrong")

    monkeypatch.setattr(attention, "softmax", check)
    assert verdict(examine(job(solved()), sandbox), "softmax").part == "hidden"


@pytest.mark.parametrize(
    ("where", "code", "says"),
    [
        ("answer", "torch.get_default_device = None", "could not be kept"),
        ("end", "torch.set_default_dtype = None", "does not try|hidden tests use"),
    ],
)
def test_names_that_are_lost_fail_the_hidden_part(where, code, says, sandbox) -> None:
    """Before any hidden test has run, a student may read why."""
    notebook = strangers.solved(only=strangers.FEW)
    if where == "answer":
        notebook = strangers.put(notebook, "softmax", "after", code)
    else:
        notebook["cells"].append(strangers.code_cell(code))
    of = strangers.paper(only=strangers.FEW)
    outcome = examine(strangers.job(notebook, paper=of), sandbox)
    (verdict,) = (each for each in outcome.verdicts if each.exercise == "softmax")
    assert verdict.score == 0 and verdict.part == "hidden"
    assert verdict.failure["what"] == "cannot be checked by the hidden tests"
    cells = json.loads(outcome.notebook)["cells"]
    told = cells[strangers.find({"cells": cells}, "test-softmax")]["metadata"]
    assert re.search(says, " ".join(told["for_students"].split()))


def test_written_answers_wait_for_a_person_if_anything_was_written(sandbox) -> None:
    notebook = solved()
    notebooks._cell(notebook, "explain-scaling").source = "Because.\x00\ud800"
    (waiting,) = examine(job(notebook), sandbox).by_hand
    assert waiting["answer"] == "Because.\\x00?"  # what cannot be seen is written out
    release = nbformat.reads(some().released, as_version=4)
    stub = notebooks._cell(release, "explain-scaling").source
    notebooks._cell(notebook, "explain-scaling").source = stub
    outcome = examine(job(notebook), sandbox)
    assert outcome.by_hand == []
    assert verdict(outcome, "explain-scaling").part == NOT_RUN


# --- code that does not end, or ends too much -----------------------------------------


def test_a_cell_without_an_end_is_stopped_and_grading_goes_on(sandbox) -> None:
    notebook = solved()
    loop = nbformat.v4.new_code_cell("while True: pass")
    notebook.cells.insert(2, loop)
    outcome = examine(job(notebook, limits=SHORT), sandbox)
    assert (outcome.status, lost(outcome)) == ("graded", set())
    assert outcome.limited == ["cell number 3: stopped after 8 seconds"]
    assert "Does a loop never end?" in outcome.notebook


def test_a_call_without_an_end_fails_its_check_only(sandbox) -> None:
    endless = "def attention_cost(*args):\n    while True: pass"
    outcome = examine(job(solved(attention_cost=endless), limits=SHORT), sandbox)
    assert lost(outcome) == {"attention-cost"}
    assert verdict(outcome, "attention-cost").failure["what"] == "does not return"


def test_a_notebook_that_takes_too_long_is_not_graded(sandbox) -> None:
    limits = Limits(cell_seconds=5, notebook_seconds=1)
    notebook = solved(softmax="while True: pass")
    outcome = examine(job(notebook, limits=limits), sandbox)
    assert outcome.status == "ungraded"
    assert outcome.reason.startswith("the notebook was stopped after 1 seconds, while")


@pytest.mark.parametrize("call", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_a_kernel_that_dies_leaves_a_reason(call, sandbox) -> None:
    notebook = solved(redirect_attention=f"import os; {call}")
    outcome = examine(job(notebook), sandbox)
    assert outcome.status == "ungraded"
    wanted = "the kernel died while running exercise redirect-attention ("
    assert outcome.reason.startswith(wanted)
    assert (outcome.verdicts, outcome.notebook) == ([], "")
    assert examine(job(solved()), sandbox).score == full()


def test_endless_output_is_cut(sandbox) -> None:
    outcome = examine(job(solved(softmax='print("x" * 10**7)')), sandbox)
    assert outcome.limited == ["cell softmax: output cut"]
    assert len(outcome.notebook) < 10**6


# --- odd answers ----------------------------------------------------------------------

ODD = {
    "a long text": '"x" * 10**6',
    "a long list": "list(range(10**5))",
    "control characters": '"\\x1b[2J\\x00\\ud800"',
    "a number of many digits": "10**5000",
    "nothing": "None",
    "an object": "object()",
    "a type": "int",
    "a deep list": "[[[[[[[[[[[[1]]]]]]]]]]]]",
    "a dict with odd keys": "{(1, 2): 3, None: 4}",
}


@pytest.mark.parametrize("value", ODD.values(), ids=ODD)
def test_odd_answers_fail_and_stay_small(value, sandbox) -> None:
    code = f"def softmax(scores, dim=-1):\n    return {value}"
    outcome = examine(job(solved(softmax=code)), sandbox)
    assert outcome.status == "graded"
    failure = verdict(outcome, "softmax").failure
    assert all(len(str(text or "")) <= 10 * FACT for text in failure.values())
    assert "\x1b" not in failure["text"]
    failure["text"].encode()


def test_a_check_that_cannot_deal_with_an_answer_fails_it(sandbox, monkeypatch) -> None:
    def broken(*students, seed=0):
        raise ZeroDivisionError("of the check's own")

    monkeypatch.setattr(attention, "softmax", broken)
    outcome = examine(job(solved()), sandbox)
    assert lost(outcome) == {"softmax"}
    assert outcome.limited == [
        "check test-softmax could not be run: ZeroDivisionError: of the check's own"
    ]


def test_an_error_in_the_grader_is_an_outcome_too(sandbox) -> None:
    faulty = replace(some(), source="{}")
    outcome = examine(job(solved(), paper=faulty), sandbox)
    assert outcome.status == "ungraded"
    assert (
        outcome.reason.endswith("in the grader: ") or "in the grader" in outcome.reason
    )
    assert "Traceback" in outcome.log


# --- files ----------------------------------------------------------------------------


def test_what_is_no_notebook_is_not_graded(sandbox) -> None:
    outcome = examine(job(b"[" * 100_000, notes=["a note"]), sandbox)
    assert (outcome.status, outcome.repairs) == ("ungraded", ["a note"])
    assert "not valid JSON" in outcome.reason
    assert len(outcome.sha256) == 64


def test_a_notebook_of_any_size_is_read_or_refused() -> None:
    cell = {"cell_type": "markdown", "source": "x", "metadata": {}}
    many = {"cells": [cell] * (MOST_CELLS + 1), "nbformat": 4}
    with pytest.raises(Refused, match="cells"):
        parse(json.dumps(many).encode())
    with pytest.raises(Refused, match="too many values"):
        parse(b"[" * 3_000_000)
    with pytest.raises(Refused, match="larger than"):
        parse(b" " * (LARGEST_NOTEBOOK + 1))
    long = {"cells": [cell | {"source": "x" * 3_000_000}], "nbformat": 4}
    notebook, notes = parse(json.dumps(long).encode())
    assert len(notebook.cells[0].source) == 1_000_000
    assert notes == ("cell number 1: its text of 3000000 characters was cut",)


def test_half_characters_are_replaced() -> None:
    content = {"cells": [{"cell_type": "code", "source": "'\ud800'"}], "nbformat": 4}
    notebook, _ = parse(json.dumps(content).encode())
    assert notebook.cells[0].source == "'?'"


NAMES = (
    "/etc",
    "//etc",
    "..",
    "a/../..",
    "~root",
    "c:x",
    "\ud800",
    "x" * 300,
    "a\0",
    "",
)


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_a_model_is_looked_for_beside_the_notebook_only(name, tmp_path) -> None:
    demand = results.Demand("vit", budget=1)
    with pytest.raises(CheckFailure, match="not beside the notebook"):
        results.submitted(LocalFunction(lambda: name, "my_model"), demand)


def test_a_link_beside_the_notebook_leads_nowhere(tmp_path, monkeypatch) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.mkdir()
    (inside / "model").symlink_to(outside)
    monkeypatch.setattr(results, "PLACE", inside)
    demand = results.Demand("vit", budget=1)
    with pytest.raises(CheckFailure, match="no such folder"):
        results.submitted(LocalFunction(lambda: "model", "my_model"), demand)


def test_nothing_is_kept_of_a_submission(sandbox, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = {"models": models_of("10_vision") | {"../out": {"config.json": b"{}"}}}
    outcome = examine(
        job(notebooks._solved("10_vision"), "10_vision", **given), sandbox
    )
    assert outcome.status == "graded"
    assert (results._loaded, results._measured) == ({}, {})
    assert os.getcwd() == str(tmp_path)
    assert list(tmp_path.parent.glob("out")) == []


# --- killed from outside --------------------------------------------------------------


@pytest.fixture
def fresh():
    """A sandbox, and a function that finds its processes, the outermost first."""
    before = below(os.getpid())
    with Sandbox(Limits(), unsafe=bool(problem()), imports=()) as made:
        yield made, lambda: [p for p in below(os.getpid()) if p not in before]


def test_a_submission_that_is_killed_from_outside_is_worth_another_try(fresh) -> None:
    sandbox, processes = fresh

    def kill(where: str) -> None:
        if where == "exercise softmax":
            processes()[-1].kill()  # the one that runs the submission

    outcome = examine(job(solved()), sandbox, kill)
    assert (outcome.status, outcome.again) == ("ungraded", True)
    assert outcome.reason.startswith("the kernel died while running exercise ")
    assert examine(job(solved()), sandbox).score == full()


@pytest.mark.parametrize("which", [0, -1], ids=["outermost", "innermost"])
def test_a_sandbox_that_is_killed_is_replaced_at_once(which, fresh) -> None:
    sandbox, processes = fresh
    sandbox.start()
    processes()[which].kill()
    assert examine(job(solved()), sandbox).score == full()


# --- the process ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def grader():
    with Grader() as made:
        yield made


def below(process: int) -> list[psutil.Process]:
    return psutil.Process(process).children(recursive=True)


def gone(processes: list[psutil.Process], patience: float = 20) -> bool:
    return not psutil.wait_procs(processes, timeout=patience)[1]


def test_a_process_grades_many_and_is_replaced_when_killed(grader) -> None:
    assert grader.grade(job(solved())).score == full()
    first = grader.process
    assert grader.grade(job(some().released.encode())).score == 0
    assert grader.process == first
    left = below(first)
    psutil.Process(first).kill()
    outcome = grader.grade(job(solved()))
    if outcome.again:  # the kill was not noticed before the job was sent
        outcome = grader.grade(job(solved()))
    assert outcome.score == full()
    assert grader.process != first
    assert gone(left)


def test_a_process_that_hangs_is_replaced(grader) -> None:
    endless = solved()
    endless.cells.insert(0, nbformat.v4.new_code_cell("while True: pass"))
    limits = Limits(cell_seconds=100)
    grader.grade(job(solved(), limits=limits))  # so that all has been started
    left = [psutil.Process(grader.process), *below(grader.process)]
    outcome = grader.grade(job(endless, limits=limits), deadline=15)
    assert (outcome.status, outcome.again) == ("ungraded", False)
    assert outcome.reason == "stopped after 15 seconds, while running cell number 1"
    assert gone(left)


@pytest.mark.parametrize(
    "code", ["raise SystemExit(3)", "import os; os.kill(os.getpid(), 9)"]
)
def test_a_process_that_does_not_start_leaves_a_reason(
    code, tmp_path, monkeypatch
) -> None:
    (tmp_path / "faulty.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(grader_module, "MODULE", "faulty")
    with Grader() as faulty:
        outcome = faulty.grade(job(b""))
    assert outcome.again
    assert outcome.reason.startswith("the grading process ")
    assert outcome.reason.endswith(("ended with code 3", "was killed (SIGKILL)"))


def test_a_traceback_of_the_process_itself_is_told(tmp_path, monkeypatch) -> None:
    (tmp_path / "faulty.py").write_text("def main():\n    raise KeyError('a')\nmain()")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(grader_module, "MODULE", "faulty")
    with Grader() as faulty:
        outcome = faulty.grade(job(b""))
    assert outcome.reason == "the grading process failed: KeyError: 'a'"
    assert outcome.log.startswith("Traceback") and "in main" in outcome.log


def test_no_secret_of_the_environment_is_passed_on(monkeypatch) -> None:
    monkeypatch.setenv("DATABASE_PASSWORD", "secret")
    assert "secret" not in grader_module.trusted_environment().values()


USER = """
import sys
from tests.grading.test_examine import Grader, job, solved, Limits
grader = Grader()
grader.grade(job(b""))
print(grader.process, flush=True)
grader.grade(job(solved(softmax="while True: pass"), limits=Limits(cell_seconds=100)))
"""


def test_when_whoever_asks_is_killed_nothing_is_left() -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    user = subprocess.Popen(
        [sys.executable, "-c", USER], stdout=subprocess.PIPE, env=environment
    )
    process = int(user.stdout.readline())
    time.sleep(3)  # it is in the middle of the endless loop, or about to be
    left = [psutil.Process(process), *below(process)]
    user.kill()
    user.wait()
    user.stdout.close()
    assert gone(left)
