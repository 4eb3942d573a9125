"""One submission while it runs: its cells over there, its checks here.

Cells run in order, and a check where it stands; hidden tests come behind the last cell.
"""

import contextlib
import io
import random
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

import torch
from nbformat import NotebookNode

from autograder.chapters import results
from autograder.exercise.length import keep_short
from autograder.expect import CheckFailure, failure_of
from autograder.grading import alarms
from autograder.grading.causes import (
    Stop,
    explained,
    first_cause,
    missing_name,
    shortened,
)
from autograder.grading.clean import plain
from autograder.grading.job import NOT_RUN, Job, Outcome, Verdict
from autograder.grading.kernel import Kernel, KernelGone
from autograder.grading.limits import Limits
from autograder.grading.needless import binds, needless
from autograder.grading.paper import exercise_of
from autograder.grading.remote import Names
from autograder.grading.sandbox import Cage
from autograder.grading.seeds import drawing
from autograder.grading.sheet import HIDDEN, VISIBLE, Check, Sheet, grade_id_of
from autograder.grading.telling import FOR_STUDENTS, told
from autograder.interface import Data, StudentError

CALLS_SECONDS = 60  # of all calls of the student's code in a part of a check
LONGEST_CHECK = 60  # seconds of processor time of a part of a check on this side
CHECKING_SECONDS = 120  # the same, of all checks of a notebook; one second is usual
RINGS_LATER = 1.0  # seconds: the student's process is ended first, and says why
FACT = 2_000  # characters of a part of a message; the checks' own are far shorter
ANSWER = 50_000  # characters of a written answer
TOO_SLOW = (
    f"All its calls together took more than {CALLS_SECONDS} seconds; a right answer "
    "needs less than one. Does a loop do what one operation on a tensor could?"
)
ODD = (
    "The check could not deal with what the answer returned. Does it return what the "
    "docstring says? If it does, show this message to your instructor."
)
NOT_KEPT = (
    "The hidden tests run after the last cell, and are to find the names that the "
    "visible check found. These could not be kept, or brought back. Does a cell change "
    "functions of Python or PyTorch?"
)
FACTS = (
    *("check", "what", "mistake", "alternatives", "first", "on", "call", "got"),
    *("expected", "hint", "why", "besides", "read"),
)
HIDDEN_TESTS = "the hidden tests"  # a reason does not say which: an answer can choose

Tell = Callable[[str], None]  # is told what is being run


class Stopped(Exception):
    """The submission cannot be graded; the text is the reason."""


@dataclass
class Judgement:
    """A check while it judges an answer."""

    cell: NotebookNode
    check: Check
    verdict: Verdict
    names: Names
    printed: io.StringIO
    moment: int | None = None  # when the visible part had passed


class Sitting:
    """One submission while it runs."""

    answer: Callable[[Data], Data] | None = None  # to what its process asks

    def __init__(
        self, job: Job, sheet: Sheet, outcome: Outcome, tell: Tell, last: float
    ) -> None:
        self.limits, self.sheet, self.outcome = job.limits, sheet, outcome
        self.where, self.tell, self.last = "the first cell", tell, last
        self.end = time.process_time() + CHECKING_SECONDS
        self.keys, self.notes = job.keys, outcome.limited
        self.passed: list[Judgement] = []  # the visible part
        self.part = ""  # of the check that runs
        self.stops: list[Stop] = []

    def run(self, notebook: NotebookNode, cage: Cage) -> None:
        """Run all cells in order, and judge the answers where their checks stand.

        Hidden tests come last: no cell can show then what they have asked.
        """
        self.kernel = _Patient(cage, self.limits, self.last, self.answer)
        left_out = self._left_out(notebook)
        for number, cell in enumerate(notebook.cells, start=1):
            if cell.cell_type == "code" and number in left_out:
                cell.outputs, cell.execution_count = [], None
            elif cell.cell_type == "code":
                cell.execution_count = number
                self._cell(cell, number)
            elif cell.metadata.get("nbgrader", {}).get("grade"):
                self._written(cell)
        self._hidden_tests()

    def _left_out(self, notebook: NotebookNode) -> set[int]:
        """Return the numbers of given cells that show something, and do no more."""
        code = {
            number: cell.source
            for number, cell in enumerate(notebook.cells, start=1)
            if cell.cell_type == "code"
        }
        numbers = list(code)
        found = needless(list(code.values()), self.sheet.given)
        return {numbers[place] for place in found}

    def _cell(self, cell: NotebookNode, number: int) -> None:
        name = grade_id_of(cell)
        self.where = (
            f"exercise {exercise_of(name)}" if name else f"cell number {number}"
        )
        self.tell(self.where)
        if name in self.sheet.checks:
            self._check(cell, self.sheet.checks[name])
        else:
            self._run(cell, name, number)
        self._time_left()

    def _time_left(self) -> None:
        """Stop if the notebook has used its time, or its checks have."""
        text = (
            f"the notebook was stopped after {self.limits.notebook_seconds:g} seconds"
        )
        if time.process_time() > self.end:
            text = f"the checks were stopped after {CHECKING_SECONDS} seconds"
        elif self.kernel.seconds_left > 0:
            return
        self.outcome.limited.append(f"{self.where}: {text}")
        raise Stopped(f"{text}, while running {self.where}")

    def _run(self, cell: NotebookNode, exercise: str, number: int) -> None:
        """Run a cell of the student's."""
        name = exercise or f"number {number}"
        result = self.kernel.run_cell(cell.source)
        self.kernel.try_again(binds(cell.source))
        cell.outputs = result.outputs
        for output in cell.outputs:
            if "execution_count" in output:
                output["execution_count"] = cell.execution_count
        if result.cut:
            self.outcome.limited.append(f"cell {name}: output cut")
        if result.stopped:
            self._time_left()
            text = f"stopped after {self.limits.cell_seconds:g} seconds"
            self.outcome.limited.append(f"cell {name}: {text}")
            said = f"{text}. Does a loop never end?"
            cell.outputs.append(error_output("TimeoutError", said))
            result.error = f"TimeoutError: {text}"
        if result.error and cell.source != self.sheet.blank.get(exercise):
            error = shortened(result.error)
            stop = Stop(number, exercise, cell.source, error, result.line)
            self.stops.append(stop)
            self.outcome.stopped.append(str(stop))

    # --- judging ----------------------------------------------------------------------

    def _check(self, cell: NotebookNode, check: Check) -> None:
        """Judge an answer by what students see of a check."""
        name = grade_id_of(cell)
        points = self.sheet.paper.points[name]
        verdict = Verdict(exercise_of(name), name, points, 0.0, title=check.title)
        names = Names(self.kernel, self.sheet.imports)
        judgement = Judgement(cell, check, verdict, names, io.StringIO())
        self.outcome.verdicts.append(verdict)
        if self._passes(judgement, VISIBLE):
            judgement.moment = self.kernel.remember()
            self.passed.append(judgement)

    def _hidden_tests(self) -> None:
        """Judge by the rest of each check, as if it stood where the check stands."""
        self.where, self.notes = HIDDEN_TESTS, self.outcome.unseen
        for judgement in self.passed:
            self.tell(self.where)
            names = judgement.names
            names.update(drawing(self.keys))
            asked = names.asked_by(judgement.check.parts[HIDDEN])
            found = self.kernel.go_back(judgement.moment, asked)
            names.take(found or {})
            if found is None:
                self._enter_not_kept(judgement)
            elif self._passes(judgement, HIDDEN):
                judgement.verdict.score = judgement.verdict.points
            self._time_left()

    def _passes(self, judgement: Judgement, part: str) -> bool:
        """Run a part of a check; keep what it says in its cell."""
        cell, verdict, printed = judgement.cell, judgement.verdict, judgement.printed
        self.part = f"{verdict.grade_id}, {part} part"
        code = judgement.check.parts[part]
        failure = self._failure(verdict.grade_id, code, judgement.names, printed)
        self._note_stopped(verdict.grade_id)
        self._note_flags(verdict.exercise)
        if failure is None:
            text = plain(printed.getvalue(), FACT)
            cell.outputs = [{"output_type": "stream", "name": "stdout", "text": text}]
            return True
        found = self._explained(failure, verdict.exercise)
        safe = told(failure) if part == HIDDEN else found
        self._enter_failure(judgement, part, found, safe["text"])
        return False

    def _enter_not_kept(self, judgement: Judgement) -> None:
        """Fail the hidden part of an answer whose names are not there any more.

        Once a hidden test has run, a student's process may choose when to fail: why it
        does is then for the instructor only.
        """
        failure = _no_answer("cannot be checked by the hidden tests", NOT_KEPT)
        facts = facts_of(failure, judgement.verdict.grade_id)
        safe = facts if judgement.moment is None else told(facts)
        self._enter_failure(judgement, HIDDEN, facts, safe["text"])

    def _enter_failure(
        self, judgement: Judgement, part: str, failure: dict, for_students: str
    ) -> None:
        """Write down, for instructors and for the student, why an answer fails."""
        judgement.verdict.part, judgement.verdict.failure = part, failure
        judgement.cell.outputs = [error_output("CheckFailure", failure["text"])]
        judgement.cell.metadata[FOR_STUDENTS] = for_students

    def _explained(self, failure: dict, exercise: str) -> dict:
        """Say which cell stopped first, if something is missing for that reason."""
        name = missing_name(failure["got"] or "")
        stop = first_cause(self.stops, name, exercise) if name else None
        if stop is None:
            return failure
        made = failure_with(failure | explained(failure, stop, exercise))
        return facts_of(made, exercise)

    def _failure(
        self, name: str, code: CodeType, names: Names, printed: io.StringIO
    ) -> dict | None:
        """Run a part of a check; return what it says against the answer."""
        self.kernel.begin_check()
        try:
            with alarms.own_time(self._longest()), silence(printed):
                exec(code, names)
        except StudentError as error:
            return facts_of(failure_of(error), name)
        except CheckFailure as failure:
            return facts_of(failure, name)
        except KernelGone:
            raise
        except alarms.TookTooLong:
            if self.kernel.broken_off:  # an answer may be on its way
                raise Stopped(f"{self.where} could not be interrupted") from None
            self.notes.append(f"check {name}: stopped, too slow")
            return facts_of(_no_answer("takes too long", TOO_SLOW), name)
        except Exception as error:  # no value may be odd enough to stop the grader
            said = plain(f"{type(error).__name__}: {error}", 300)
            self.notes.append(f"check {name} could not be run: {said}")
            return facts_of(_no_answer("cannot be checked", ODD), name)
        return None

    def _note_stopped(self, name: str) -> None:
        """Write down what a part of a check asked in vain, or did not ask for again."""
        notes, self.kernel.stopped = self.kernel.stopped, []
        self.notes += [f"check {name}: {plain(each, 200)}" for each in notes]

    def _note_flags(self, exercise: str) -> None:
        """Pass on what a check leaves to a person."""
        for why in results.flags:
            where = {"exercise": exercise, "cell": 0, "line": 0, "text": ""}
            flag = where | {"why": plain(why, FACT)}
            if flag not in self.outcome.flags:  # both parts of a check may see it
                self.outcome.flags.append(flag)
        results.flags.clear()

    def _longest(self) -> float:
        """Return the seconds that a part of a check may take now."""
        return max(0.1, min(LONGEST_CHECK, self.end - time.process_time()))

    def _written(self, cell: NotebookNode) -> None:
        """Leave a written answer to a person, unless nothing was written."""
        name = grade_id_of(cell)
        points = self.sheet.paper.points[name]
        if cell.source != self.sheet.blank[name]:
            answer = plain(cell.source, ANSWER)
            entry = {"exercise": exercise_of(name), "grade_id": name}
            self.outcome.by_hand.append(entry | {"points": points, "answer": answer})
        else:
            failure = facts_of(CheckFailure("nothing was written"), exercise_of(name))
            self.outcome.verdicts.append(
                Verdict(exercise_of(name), name, points, 0.0, NOT_RUN, "", failure)
            )


class _Patient(Kernel):
    """A kernel that a check may ask until its calls have taken too long together."""

    def __init__(
        self, cage: Cage, limits: Limits, end: float, answer: Callable | None
    ) -> None:
        self.calls_left, self.broken_off = 0.0, False
        super().__init__(cage, limits, end, answer)

    @contextlib.contextmanager
    def not_counted(self, seconds: float) -> Iterator[None]:
        """Let what is asked in the block leave no note, and take none of its time.

        Args:
            seconds: that the block has instead.
        """
        before = self._left, self._room, set(self._endless), list(self.stopped)
        self._left = min(self._left, seconds)
        try:
            yield
        finally:
            self._left, self._room, self._endless, self.stopped = before

    def begin_check(self) -> None:
        """Give the next part of a check its time."""
        self.calls_left = CALLS_SECONDS

    def ask(self, method: str, handle: int, *request: Any) -> Data:
        """Ask for a call of the student's code."""
        if self.calls_left <= 0:
            why = f"had taken {CALLS_SECONDS} seconds in many calls"
            self.give_up(self.name(handle), why)
            raise alarms.TookTooLong
        before = self.seconds_left
        try:
            return super().ask(method, handle, *request)
        except alarms.TookTooLong:
            self.broken_off = True
            raise
        finally:
            self.calls_left -= before - self.seconds_left


# --- words ----------------------------------------------------------------------------


def facts_of(failure: CheckFailure, name: str) -> dict[str, Any]:
    """Return what a failed check says, part by part; what came from outside, cut."""
    failure.check = failure.check or exercise_of(name)
    for fact in FACTS:
        if getattr(failure, fact):
            setattr(failure, fact, plain(str(getattr(failure, fact)), FACT))
    keep_short(failure)
    facts = {fact: getattr(failure, fact) for fact in FACTS}
    return facts | {"raised": failure.raised, "text": str(failure)}


def failure_with(facts: Mapping[str, Any]) -> CheckFailure:
    """Make the failure of its facts again."""
    made = CheckFailure("")
    for fact, text in facts.items():
        setattr(made, fact, text)
    return made


def _no_answer(what: str, why: str) -> CheckFailure:
    failure = CheckFailure(what, why=why)
    failure.raised = True
    return failure


def error_output(name: str, text: str) -> dict:
    """Write an error as the output of a cell."""
    said = {"ename": name, "evalue": text, "traceback": [text]}
    return {"output_type": "error", **said}


# --- while a check runs ---------------------------------------------------------------


@contextlib.contextmanager
def silence(printed: io.StringIO) -> Iterator[None]:
    """Collect what a check prints; let it begin as any other time it is run."""
    # on the processor alone: torch.manual_seed asks after every other kind of device
    torch.default_generator.manual_seed(0)
    random.seed(0)
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        yield
