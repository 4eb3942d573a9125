"""Faults: every honest accident ends with the status that is written beside it.

Each file of ``tests/faults/`` is a submission in which one thing went wrong: in its
code, in its cells, or in the files that were handed in. The comments at its head say
what must come out; where they say nothing, that is full points and no repair:

    status    graded (default), ungraded, or any
    reason    words of the reason, if it is ungraded
    lost      the exercises that earn nothing, separated by |
    says      words of the message of the first exercise that was lost
    limited   words of the note on what was stopped or cut
    repairs   words of each repair, separated by |; or any
"""

import copy
import json
import os
import tarfile
import zipfile
from pathlib import Path

import nbformat
import pytest

from autograder.grading import sandbox, submission
from autograder.grading.grader import Grader
from autograder.grading.job import GRADED, UNGRADED, Outcome
from autograder.grading.reading import Refused
from tests import strangers

FAULTS = strangers.read_all(Path(__file__).parents[1] / "faults")
GROUPS = ("cells", "code", "files")
OF_ALL = {"status", "reason", "lost", "says", "limited", "repairs"}
HEADERS = OF_ALL | {"exercise", "where", "student"}

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem() or "works"),
]


def of(group: str) -> list:
    return [
        pytest.param(fault, id=fault.path.stem)
        for fault in FAULTS
        if fault.label.startswith(group)
    ]


@pytest.fixture(scope="module")
def grader():
    with Grader() as made:
        yield made


# --- making ---------------------------------------------------------------------------


def write(path: Path, content: dict | bytes) -> None:
    """Write a notebook or bytes, in a folder that is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(data)


def released(name: str) -> str:
    """The text of a cell as it was handed out."""
    notebook = strangers.blank()
    return notebook["cells"][strangers.find(notebook, name)]["source"]


def function_of(fault: strangers.Entry, name: str):
    """The function that a file of cells/ or files/ defines."""
    known = {
        "code_cell": strangers.code_cell,
        "copy": copy,
        "find": strangers.find,
        "json": json,
        "nbformat": nbformat,
        "os": os,
        "released": released,
        "tarfile": tarfile,
        "write": write,
        "zipfile": zipfile,
    }
    exec(compile(fault.code, str(fault.path), "exec"), known)
    return known[name]


def with_code(fault: strangers.Entry, notebook: dict) -> dict:
    """A solved notebook with a fault's code in, around or beside an answer."""
    exercise, where = fault.get("exercise"), fault.get("where")
    answer = notebook["cells"][strangers.find(notebook, exercise)]["source"]
    if where == "with":
        return strangers.put(notebook, exercise, "answer", f"{answer}\n\n{fault.code}")
    if where == "magic":
        return strangers.put(notebook, exercise, "answer", f"{fault.code}{answer}")
    return strangers.put(notebook, exercise, where, fault.code)


# --- comparing ------------------------------------------------------------------------


def compare(fault: strangers.Entry, outcome: Outcome, paper) -> None:
    """See that what came out is what the file says."""
    wanted = fault.get("status", GRADED)
    assert outcome.status in (GRADED, UNGRADED)
    assert outcome.status == wanted or wanted == "any", outcome.reason
    assert fault.get("reason") in outcome.reason
    assert "in the grader" not in outcome.reason, outcome.log
    noted = " | ".join(outcome.limited)
    assert fault.get("limited") in noted
    assert "could not be run" not in noted
    if outcome.status == GRADED and fault.get("lost") != "any":
        lost = dict.fromkeys(fault.words("lost"), 0)
        failed = {v.exercise: v.failure["text"] for v in outcome.verdicts if v.failure}
        assert strangers.scores(outcome) == strangers.full(paper) | lost, failed
        if lost:
            assert fault.get("says") in failed[next(iter(lost))]
    if outcome.status == GRADED and fault.get("repairs") != "any":
        words = fault.words("repairs")
        assert len(outcome.repairs) == len(words), outcome.repairs
        for word, repair in zip(words, outcome.repairs, strict=True):
            assert word in repair


# --- tests ----------------------------------------------------------------------------


def test_there_are_enough_faults() -> None:
    assert len(FAULTS) >= 60
    assert {each.label.partition("/")[0] for each in FAULTS} == set(GROUPS)
    assert len({each.says for each in FAULTS}) == len(FAULTS)
    assert set().union(*(each.headers for each in FAULTS)) <= HEADERS


@pytest.mark.parametrize("fault", of("code"))
def test_code(fault, grader) -> None:
    only = strangers.FEW
    if fault.get("exercise") not in only:
        only = strangers.EXERCISES[strangers.CHAPTER]
    paper = strangers.paper(only=only)
    notebook = with_code(fault, strangers.solved(only=only))
    outcome = grader.grade(strangers.job(notebook, paper=paper))
    compare(fault, outcome, paper)


@pytest.mark.parametrize("fault", of("cells"))
def test_cells(fault, grader) -> None:
    paper = strangers.paper(only=strangers.FEW)
    notebook = strangers.solved(only=strangers.FEW)
    data = function_of(fault, "change")(notebook)
    handed_in = notebook if data is None else data
    outcome = grader.grade(strangers.job(handed_in, paper=paper))
    compare(fault, outcome, paper)


@pytest.mark.parametrize("fault", of("files"))
def test_files(fault, grader, tmp_path) -> None:
    paper = strangers.paper(only=strangers.FEW)
    student = tmp_path / fault.get("student", "ada")
    function_of(fault, "hand_in")(student, strangers.solved(only=strangers.FEW))
    outcome = grade_folder(student, paper, grader)
    compare(fault, outcome, paper)


def grade_folder(student: Path, paper, grader) -> Outcome:
    """Find, read and grade what lies in a student's folder."""
    empty = strangers.job(b"", paper=paper)
    try:
        content = submission.read(submission.find(student, strangers.CHAPTER))
    except Refused as refused:
        return empty.ungraded(str(refused))
    notes, models = list(content.notes), content.models
    job = strangers.job(content.notebook, paper=paper, notes=notes, models=models)
    return grader.grade(job)
