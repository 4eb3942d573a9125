"""What hidden tests ask comes back to no student, in whatever a student gets to read.

Each attack of ``tests/attacks/leaking/hidden_*.py`` meets two hidden tests that ask
different numbers. It tells them apart, and tries to say which it was. All that its
author gets back must be the same both times, to the last character.
"""

import dataclasses
import json
import shutil
from pathlib import Path

import nbformat
import pytest
from nbgrader.converters import Autograde, GenerateFeedback

from autograder.grading import feedback, sandbox
from autograder.grading.build import build
from autograder.grading.course import Course
from autograder.grading.grader import Grader
from autograder.grading.job import GRADED, Outcome
from autograder.grading.preprocessors import NOT_SAID, HideHiddenTests
from autograder.grading.telling import FOR_STUDENTS
from tests import strangers

FOLDER = Path(__file__).parents[1] / "attacks" / "leaking"
ATTACKS = [strangers.read(path) for path in sorted(FOLDER.glob("hidden_*.py"))]
LIMITS = dataclasses.replace(strangers.LIMITS, call_seconds=1, cell_seconds=2)
DIGITS = [str(int(asked)) for asked in strangers.ASKED]

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem() or "works"),
]


@pytest.fixture(scope="module")
def grader():
    with Grader() as made:
        yield made


def attacked(attack: strangers.Entry) -> dict:
    """The notebook that an attack hands in."""
    known = {"listen": strangers.listen}
    exec(compile(attack.code, str(attack.path), "exec"), known)
    notebook = strangers.solved(only=strangers.FEW)
    known["change"](notebook)
    return notebook


def read_by_the_student(outcome: Outcome, paper) -> str:
    """All that feedback says: the course's own page, and nbgrader's cells."""
    page = feedback.page(outcome, paper)
    if outcome.status != GRADED:
        return page
    notebook = nbformat.reads(outcome.notebook, as_version=4)
    hide = HideHiddenTests()
    cells = [
        hide.preprocess_cell(cell, {}, number)[0].get("outputs")
        for number, cell in enumerate(notebook.cells)
    ]
    return page + json.dumps(cells, indent=1)


def test_there_are_enough_attacks() -> None:
    assert len(ATTACKS) >= 20
    assert all(attack.get("hidden") for attack in ATTACKS)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.path.stem)
def test_a_student_learns_nothing_of_what_was_asked(attack, grader) -> None:
    notebook, said = attacked(attack), []
    for asked in strangers.ASKED:
        paper = strangers.asking(asked)
        job = strangers.job(notebook, paper=paper, limits=LIMITS)
        outcome = grader.grade(job)
        assert outcome.status == attack.get("status", GRADED), outcome.reason
        failed = [each.part for each in outcome.verdicts if each.failure]
        assert failed == ["hidden"] or outcome.status != GRADED
        said.append(read_by_the_student(outcome, paper))
    assert said[0] == said[1]
    assert [digits for digits in DIGITS if digits in said[0]] == []


def test_the_instructor_sees_what_a_student_does_not(grader) -> None:
    notebook = strangers.solved(only=strangers.FEW)
    strangers.listen(notebook, asked="raise ValueError(str(value))")
    paper = strangers.asking(strangers.ASKED[0])
    outcome = grader.grade(strangers.job(notebook, paper=paper, limits=LIMITS))
    (failed,) = [each for each in outcome.verdicts if each.failure]
    assert failed.failure["what"] == "stopped with ValueError"
    assert DIGITS[0] in failed.failure["text"]
    assert DIGITS[0] in outcome.notebook


def test_what_another_grader_wrote_is_not_shown() -> None:
    cell = nbformat.v4.new_code_cell("check.softmax(softmax)")
    cell.metadata.nbgrader = {"grade": True, "solution": False, "grade_id": "test-a"}
    error = {"ename": "ValueError", "evalue": DIGITS[0], "traceback": [DIGITS[0]]}
    cell.outputs = [nbformat.v4.new_output("error", **error)]
    assert FOR_STUDENTS not in cell.metadata
    shown, _ = HideHiddenTests().preprocess_cell(cell, {}, 0)
    assert DIGITS[0] not in str(shown.outputs) and NOT_SAID in str(shown.outputs)


# --- nbgrader's own feedback ----------------------------------------------------------

LATE = """\
import sys

print(SEEN)
print(SEEN, file=sys.stderr)
display(SEEN)
raise ValueError(str(SEEN))
"""


@pytest.mark.parametrize("asked", ["raise ValueError(str(scores))", "return scores"])
def test_stock_feedback_shows_no_hidden_input(asked, tmp_path) -> None:
    chapter, student = strangers.CHAPTER, "ada"
    course = Course(tmp_path / "course")
    build(course, [strangers.asking(strangers.ASKED[0])])
    notebook = strangers.solved(only=strangers.FEW)
    strangers.listen(notebook, asked=asked, late=LATE)
    path = course.notebook("submitted", student, chapter)
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(notebook))
    for step in (Autograde, GenerateFeedback):
        done = course.convert(step, chapter, student, course.config())
        assert done["success"], done
    executed = course.notebook("autograded", student, chapter).read_text("utf-8")
    assert DIGITS[0] in executed
    page = course.notebook("feedback", student, chapter).with_suffix(".html")
    text = page.read_text("utf-8")
    assert DIGITS[0] not in text and "HIDDEN TESTS" not in text
    assert "hidden tests use" in text or "does not try" in text
    shutil.rmtree(course.root)
