"""A line to look at in grading: found after the verdicts, and none is touched by it."""

import itertools
import json

import nbformat
import pytest

from autograder.exercise import locate
from autograder.grading import classfile, feedback
from autograder.grading.classfile import Class, ClassError
from autograder.grading.examine import examine
from autograder.grading.job import Job, Outcome
from autograder.grading.limits import Limits
from autograder.grading.sandbox import Sandbox
from tests import strangers

CHAPTER = "04_attention"
PAPER = strangers.paper(only=strangers.FEW)
SECONDS = 250.0  # a busy machine may take its time; what is tried is counted
# a sum that is one too large, which no check has a name for
ODD = """def softmax(scores):
    largest = scores.amax(-1, keepdim=True)
    powers = torch.exp(scores - torch.where(largest.isinf(), 0.0, largest))
    total = powers.sum(-1, keepdim=True) + 0.25
    return powers / torch.where(total == 0, 1.0, total)
"""
# the same, but where its cell runs a second time, it ends the process: at once
AGAIN = """import os, pathlib
again = pathlib.Path("ran").exists() or pathlib.Path("ran").touch()
"""
ENDS = f"{AGAIN}end = again and os._exit(1)\n{ODD}"
# or when the function is called
ENDS_LATER = AGAIN + ODD.replace(
    "    largest", "    again and os._exit(1)\n    largest", 1
)


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox(Limits(), unsafe=True) as made:
        yield made


@pytest.fixture(autouse=True)
def counted(monkeypatch) -> None:
    """Let tries pass in place of seconds: what is found depends on no clock."""
    readings = itertools.count()
    monkeypatch.setattr(locate, "now", lambda: next(readings) * locate.SECONDS / 520)


def judged(sandbox, answer: str, seconds: float, name: str = "softmax") -> Outcome:
    notebook = strangers.solved(only=strangers.FEW)
    notebook = strangers.put(notebook, name, "answer", answer)
    data = json.dumps(notebook).encode()
    job = Job("ada", CHAPTER, data, PAPER, unsafe=True)
    job.carried_forward, job.line_seconds = 0.0, seconds
    outcome = examine(job, sandbox)
    assert (outcome.status, outcome.reason, outcome.log) == ("graded", "", "")
    return outcome


def of_softmax(outcome: Outcome):
    return next(each for each in outcome.verdicts if each.exercise == "softmax")


def test_an_answer_without_a_name_is_led_to_its_line(sandbox) -> None:
    without, found = (judged(sandbox, ODD, seconds) for seconds in (0, SECONDS))
    plain, verdict = of_softmax(without), of_softmax(found)
    assert plain.failure["mistake"] is None and "look" not in plain.failure
    assert verdict.failure["look"].startswith("line 4: `total = powers.sum(")
    assert "0.0" not in verdict.failure["look"]  # never the changed code
    assert verdict.failure["text"].index("look") < verdict.failure["text"].index("read")
    scores = [[(v.grade_id, v.score) for v in o.verdicts] for o in (without, found)]
    assert scores[0] == scores[1]
    assert without.limited == found.limited
    notebook = nbformat.reads(found.notebook, as_version=4)
    nbformat.validate(notebook)
    assert "line 4" in found.notebook
    page = feedback.page(found, PAPER)
    assert "Line 4:" in page and "Line 4:" not in feedback.page(without, PAPER)


@pytest.mark.parametrize("answer", [ENDS, ENDS_LATER])
def test_a_process_that_ends_in_the_search_costs_nothing(sandbox, answer: str) -> None:
    without, found = (judged(sandbox, answer, seconds) for seconds in (0, SECONDS))
    assert [v.score for v in without.verdicts] == [v.score for v in found.verdicts]


def test_a_named_mistake_is_not_searched(sandbox) -> None:
    named = "def softmax(scores):\n    return scores.exp() / scores.exp().sum(0)\n"
    outcome = judged(sandbox, named, SECONDS)
    assert of_softmax(outcome).failure["mistake"]
    assert "look" not in of_softmax(outcome).failure


@pytest.mark.parametrize(("text", "seconds"), [("", 60.0), ("line_search: 0", 0.0)])
def test_a_class_says_how_long(tmp_path, text: str, seconds: float) -> None:
    path = tmp_path / "class.yml"
    path.write_text(text + "\n", "utf-8")
    assert classfile.read(path, [CHAPTER]).line_search == seconds
    assert Class().line_search == 60.0


def test_a_class_that_says_no_number_is_refused(tmp_path) -> None:
    path = tmp_path / "class.yml"
    path.write_text("line_search: long\n", "utf-8")
    with pytest.raises(ClassError, match="no number of seconds"):
        classfile.read(path, [CHAPTER])
