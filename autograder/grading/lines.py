"""The line of a slip, looked for in grading where nothing else says what is wrong.

All verdicts have fallen by then, and none is touched. The steps are made here, on the
text that was handed in; a changed answer runs in the submission's own process, like any
cell, and the check says here whether it passes. So nothing of a student's runs on this
side. What that process can choose is which line is told, and one of a few words for it.
Hidden tests are left out: what passes them would tell something of their inputs.
"""

import ast
import contextlib
import io
from collections.abc import Iterator

from nbformat import NotebookNode

from autograder import interface
from autograder.chapters import results
from autograder.exercise import locate
from autograder.exercise.locate.changes import Change
from autograder.expect import CheckFailure
from autograder.grading import alarms
from autograder.grading.clean import plain
from autograder.grading.job import Verdict
from autograder.grading.kernel import KernelGone
from autograder.grading.remote import Names
from autograder.grading.sheet import VISIBLE, Check, grade_id_of
from autograder.grading.sitting import (
    Sitting,
    error_output,
    facts_of,
    failure_with,
    silence,
)
from autograder.grading.telling import FOR_STUDENTS
from autograder.grading.trees import parse_flat
from autograder.interface import StudentError

LONGEST = 6_000  # characters of an answer; those of the course have at most 2,000
KEPT = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assign)


class _Over(BaseException):
    """No more is looked for: the budget is spent, or the process is gone."""


def look_for_lines(sitting: Sitting, notebook: NotebookNode, seconds: float) -> None:
    """Say of answers without a name which line to look at; whatever fails, all stays.

    Args:
        sitting: of the submission, which has run to its end.
        notebook: as it ran; what is found is written into it.
        seconds: for all of the submission's answers together.
    """
    wanted = [each for each in sitting.outcome.verdicts if _is_unnamed(each)]
    if not wanted or seconds <= 0:
        return
    end = locate.now() + seconds
    cells = {grade_id_of(cell): cell for cell in notebook.cells}
    with (
        contextlib.suppress(_Over, KernelGone, alarms.TookTooLong, Exception),
        sitting.kernel.not_counted(seconds),
    ):
        for verdict in wanted:
            check = sitting.sheet.checks[verdict.grade_id]
            answer = _answer_of(notebook, verdict.exercise)
            code = answer and _Cell.of(answer.source)
            if code:
                place = _place(code, sitting, check, end)
                if place:
                    _enter(verdict, cells[verdict.grade_id], place)
    results.flags.clear()


def _is_unnamed(verdict: Verdict) -> bool:
    failure = verdict.failure or {}
    named = failure.get("mistake") or failure.get("first")
    untold = str(failure.get("what", "")).startswith(locate.UNTOLD)
    return verdict.part == VISIBLE and not (named or untold or verdict.given)


def _answer_of(notebook: NotebookNode, exercise: str) -> NotebookNode | None:
    """Find the cell in which an answer was written."""
    found = [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code"
        if grade_id_of(cell) == exercise
    ]
    return found[0] if len(found) == 1 else None


class _Cell:
    """The text of an answer, which is changed and written out again and again."""

    def __init__(self, tree: ast.Module, lines: list[str]) -> None:
        self.tree, self._lines = tree, lines

    @classmethod
    def of(cls, text: str) -> "_Cell | None":
        """Read a cell; None if it is no plain, short Python."""
        tree = parse_flat(text) if len(text) <= LONGEST else None
        if tree is None:
            return None
        tree.body = [each for each in tree.body if isinstance(each, KEPT)]
        return cls(tree, text.splitlines()) if tree.body else None

    def made(self) -> str:
        """Write the tree as it is now."""
        return ast.unparse(ast.fix_missing_locations(self.tree))

    def place(self, change: Change) -> locate.Place:
        """Say where a change is made."""
        text = plain(self._lines[change.line - 1].strip(), locate.LONGEST)
        return locate.Place(change.line, text, change.look_at)


def _place(
    code: _Cell, sitting: Sitting, check: Check, end: float
) -> locate.Place | None:
    """Look for one or two steps after which the visible check passes."""

    def judge(text: object) -> bool:
        if locate.now() >= end:
            raise _Over
        return _passes(str(text), sitting, check)

    last = min(end, locate.now() + locate.SECONDS)
    return locate.Search(code, judge, last, locate.now, _unlimited).place()


@contextlib.contextmanager
def _unlimited(seconds: float) -> Iterator[None]:
    """Set no alarm of its own: the kernel's limits hold, and the submission's."""
    del seconds
    yield


def _passes(text: str, sitting: Sitting, check: Check) -> bool:
    """Run a changed answer over there, and the check here."""
    result = sitting.kernel.run_cell(text)
    if result.error or result.stopped:
        return False
    sitting.kernel.begin_check()
    names = Names(sitting.kernel, sitting.sheet.imports)
    trying = interface.trying(locate.SECONDS_PER_CALL)
    try:
        with alarms.own_time(locate.SECONDS), silence(io.StringIO()), trying:
            exec(check.parts[VISIBLE], names)
    except (StudentError, CheckFailure):
        return False
    return True


def _enter(verdict: Verdict, cell: NotebookNode, place: locate.Place) -> None:
    """Write the line into what the student reads."""
    if verdict.failure is None:
        return
    made = failure_with(verdict.failure)
    made.place = place
    verdict.failure |= facts_of(made, verdict.grade_id) | {"look": str(place)}
    text = verdict.failure["text"]
    cell.outputs = [error_output("CheckFailure", text)]
    cell.metadata[FOR_STUDENTS] = text
