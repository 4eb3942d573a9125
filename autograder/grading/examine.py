"""Grade one submission: its cells run over there, its checks are judged here.

>>> outcome = examine(job, sandbox)
>>> outcome.status, outcome.score, outcome.points
('graded', 26.0, 30.0)

Nothing that a submission does, sends or returns raises an exception here: it ends as
graded, or as ungraded with a reason. Use it from the main thread of a process, which
alone can be interrupted by an alarm.
"""

import ast
import contextlib
import copy
import errno
import gc
import hashlib
import io
import json
import random
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from types import CodeType

import nbformat
import torch
from nbformat import NotebookNode

from autograder.chapters import results
from autograder.expect import CheckFailure, failure_of
from autograder.grading import alarms, given, shown, usage
from autograder.grading.causes import (
    Stop,
    explained,
    first_cause,
    missing_name,
    packages_not_here,
    shortened,
)
from autograder.grading.clean import plain
from autograder.grading.job import GRADED, NOT_RUN, Job, Outcome, Verdict
from autograder.grading.kernel import Kernel, KernelGone
from autograder.grading.limits import WALL, Limits
from autograder.grading.needless import binds, needless
from autograder.grading.paper import RUBRIC, Paper, exercise_of
from autograder.grading.reading import Refused, parse
from autograder.grading.remote import Names, imports_of
from autograder.grading.repair import repair
from autograder.grading.sandbox import Cage, Sandbox, SandboxError
from autograder.grading.seeds import drawing, with_drawn_seeds
from autograder.grading.submission import MODEL_FILES
from autograder.grading.telling import FOR_STUDENTS, told
from autograder.interface import Data, StudentError

REPAIR_SECONDS = 60
READING_SECONDS = 20  # of the code, for what it uses
CALLS_SECONDS = 60  # of all calls of the student's code in a part of a check
LONGEST_CHECK = 60  # seconds of processor time of a part of a check on this side
CHECKING_SECONDS = 120  # the same, of all checks of a notebook; one second is usual
RINGS_LATER = 1.0  # seconds: the student's process is ended first, and says why
# what the machine lacks, and no submission can take
LACKS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE)
MOST_LIMITED = 50  # notes; a loop over thousands of cells can cause as many
FACT = 2_000  # characters of a part of a message; the checks' own are far shorter
ANSWER = 50_000  # characters of a written answer
BEGIN_HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
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
VISIBLE, HIDDEN = "visible", "hidden"  # parts of a check
HIDDEN_TESTS = "the hidden tests"  # a reason does not say which: an answer can choose

Tell = Callable[[str], None]  # is told what is being run


class _Stopped(Exception):
    """The submission cannot be graded; the text is the reason."""


def examine(job: Job, sandbox: Sandbox, tell: Tell = lambda where: None) -> Outcome:
    """Grade a submission.

    Args:
        job: the submission, and what it is graded by.
        sandbox: where its code runs.
        tell: is called with what is about to run, such as "exercise softmax".

    Returns:
        What became of it; no exception is raised.
    """
    started = time.monotonic()
    outcome = job.ungraded("")
    outcome.sha256 = hashlib.sha256(job.notebook).hexdigest()
    try:
        sandbox.start()  # takes seconds, and none of the submission's
        started = time.monotonic()
        tell("the first cell")
        _examine(job, sandbox, outcome, tell, started + job.limits.wall_seconds)
    except (Refused, _Stopped, SandboxError) as error:
        outcome.reason = str(error)
        outcome.again |= isinstance(error, SandboxError)
    except Exception as error:  # whatever it is, it must cost nobody else anything
        outcome.reason = plain(f"{type(error).__name__} in the grader: {error}", 500)
        outcome.again = isinstance(error, OSError) and error.errno in LACKS
        outcome.log = plain(traceback.format_exc(), 20_000)
    finally:
        results.forget()
        gc.collect()
    for noted in (outcome.limited, outcome.unseen, outcome.stopped):
        noted[:] = list(dict.fromkeys(noted))[:MOST_LIMITED]
    if outcome.status != GRADED:
        outcome.verdicts, outcome.by_hand, outcome.notebook = [], [], ""
    outcome.seconds = round(time.monotonic() - started, 3)
    return outcome


def _examine(
    job: Job, sandbox: Sandbox, outcome: Outcome, tell: Tell, end: float
) -> None:
    sheet = _sheet_of(job.paper)
    notebook = _repaired(job, sheet, outcome, end)
    cage = sandbox.open(_files(job))
    sitting = _Sitting(job, sheet, outcome, tell, end)
    try:
        with _beside(job.models, outcome.limited), alarms.until(end + RINGS_LATER):
            sitting.run(notebook, cage)
    except alarms.TimeIsOver:
        raise _Stopped(_over(job.limits, sitting)) from None
    except KernelGone as gone:
        outcome.again = cage.lost
        if gone.reason == WALL:
            raise _Stopped(_over(job.limits, sitting)) from None
        if met := job.limits.words(gone.reason):
            sitting.notes.append(f"{sitting.where}: stopped, {met}")
        text = f"the kernel died while running {sitting.where}"
        if sitting.where == HIDDEN_TESTS:
            sitting.notes.append(f"{sitting.part}: {gone.reason}")
            raise _Stopped(text) from None
        raise _Stopped(f"{text} ({gone.reason})") from None
    finally:
        cage.end()
    _judge_again(job, sandbox, sitting, notebook)
    _judge_usage(notebook, sheet, outcome)
    outcome.verdicts.sort(key=lambda verdict: sheet.order[verdict.grade_id])
    _put_rubrics_beside(notebook, sheet)
    outcome.notebook = json.dumps(notebook, ensure_ascii=False)
    outcome.status = GRADED


def _over(limits: Limits, sitting: "_Sitting") -> str:
    """Note that the submission's time on the wall was over; return it as a reason."""
    sitting.notes.append(f"{sitting.where}: stopped, {limits.words(WALL)}")
    seconds = f"{limits.wall_seconds:g} seconds on the wall"
    return f"the submission was stopped after {seconds}, while running {sitting.where}"


# --- the paper ------------------------------------------------------------------------


@dataclass(frozen=True)
class _Check:
    """An instructor's check cell: what it says it checks, and its two parts."""

    cell: NotebookNode
    title: str
    parts: dict[str, CodeType]  # visible and hidden


@dataclass(frozen=True)
class _Sheet:
    """A paper, read: once in a process, because all of a class have the same."""

    paper: Paper
    release: NotebookNode
    checks: dict[str, _Check]
    given: frozenset[str]  # the code that is nobody's answer
    imports: list[str]  # the statements that bring the checks in
    order: dict[str, int]  # of the graded cells
    blank: dict[str, str]  # what was handed out for an answer, by grade_id
    demands: dict[str, usage.Demand]  # of checks that forbid something
    rubrics: dict[str, str]  # model answers and rubrics of written answers


_sheets: dict[str, _Sheet] = {}  # by chapter


def _sheet_of(paper: Paper) -> _Sheet:
    known = _sheets.get(paper.chapter)
    if known is None or known.paper != paper:
        known = _sheets[paper.chapter] = _read(paper)
    return known


def _read(paper: Paper) -> _Sheet:
    release = nbformat.reads(paper.released, as_version=4)
    source = nbformat.reads(paper.source, as_version=4)
    metadata = {
        cell.metadata.nbgrader.grade_id: cell.metadata
        for cell in release.cells
        if "nbgrader" in cell.metadata
    }
    checks = {}
    for cell in source.cells:
        grading = cell.metadata.get("nbgrader", {})
        if grading.get("grade") and not grading.get("solution"):
            cell.metadata = copy.deepcopy(metadata[grading.grade_id])
            cell.metadata.nbgrader.checksum = paper.checksums[grading.grade_id]
            checks[grading.grade_id] = _check_of(cell)
    given = [
        cell.source
        for cell in source.cells
        if cell.cell_type == "code" and "nbgrader" not in cell.metadata
    ]
    order = {grade_id: place for place, grade_id in enumerate(paper.points)}
    imports, blank = imports_of(given), {}
    for cell in release.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            blank[cell.metadata.nbgrader.grade_id] = cell.source
    demands = usage.demands({n: c.cell.source for n, c in checks.items()}, imports)
    rubrics = {
        cell.metadata.nbgrader.grade_id: _between_markers(cell.source)
        for cell in source.cells
        if _is_written(cell)
    }
    graded = checks, frozenset(given), imports, order, blank, demands, rubrics
    return _Sheet(paper, release, *graded)


def _check_of(cell: NotebookNode) -> _Check:
    name = cell.metadata.nbgrader.grade_id
    visible, hidden = _split(cell.source)
    title = ast.get_docstring(ast.parse(visible)) or name
    drawn = with_drawn_seeds(hidden, name)
    parts = {
        VISIBLE: compile(visible, f"<{name}>", "exec"),
        HIDDEN: compile(drawn, f"<{name}, hidden tests>", "exec"),
    }
    return _Check(cell, title, parts)


def _is_written(cell: NotebookNode) -> bool:
    """Tell whether a person grades a cell."""
    grading = cell.metadata.get("nbgrader", {})
    return bool(grading.get("grade") and grading.get("solution"))


def _between_markers(text: str) -> str:
    _, _, behind = text.partition(BEGIN_SOLUTION)
    return behind.partition(END_SOLUTION)[0].strip()


def _put_rubrics_beside(notebook: NotebookNode, sheet: _Sheet) -> None:
    """Give formgrader what a person grades by; take out what calls itself so."""
    for cell in notebook.cells:
        cell.metadata.pop(RUBRIC, None)
        if _is_written(cell) and _grade_id(cell) in sheet.rubrics:
            cell.metadata[RUBRIC] = sheet.rubrics[_grade_id(cell)]


def _split(text: str) -> tuple[str, str]:
    """Take the hidden tests out of a check cell; lines keep their numbers."""
    visible, hidden, inside = [], [], False
    for line in text.splitlines():
        marker = line.strip() in (BEGIN_HIDDEN, END_HIDDEN)
        inside = line.strip() == BEGIN_HIDDEN if marker else inside
        visible.append("" if inside or marker else line)
        hidden.append(line if inside and not marker else "")
    return "\n".join(visible), "\n".join(hidden)


# --- what was handed in ---------------------------------------------------------------


def _repaired(job: Job, sheet: _Sheet, outcome: Outcome, end: float) -> NotebookNode:
    """Read and repair the notebook; put the instructor's check cells into it."""
    try:
        with alarms.own_time(REPAIR_SECONDS), alarms.until(end):
            submitted, notes = parse(job.notebook)
            notebook, repairs = repair(submitted, sheet.release)
            code = [each.source for each in notebook.cells if each.cell_type == "code"]
            packages = packages_not_here(code)
    except (alarms.TookTooLong, alarms.TimeIsOver):
        text = f"the notebook could not be read within {REPAIR_SECONDS} seconds"
        raise Refused(text) from None
    except (RecursionError, MemoryError) as error:
        text = f"the notebook could not be read ({type(error).__name__})"
        raise Refused(text) from None
    outcome.repairs, outcome.packages = [*outcome.repairs, *notes, *repairs], packages
    for place, cell in enumerate(notebook.cells):
        name = _grade_id(cell)
        if name in sheet.checks:
            notebook.cells[place] = copy.deepcopy(sheet.checks[name].cell)
            notebook.cells[place].id = cell.id
    return notebook


def _grade_id(cell: NotebookNode) -> str:
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")


def _files(job: Job) -> dict[str, bytes]:
    """Give what lies beside the notebook: earlier chapters' parts, trained models."""
    parts = {name: text.encode() for name, text in job.paper.parts.items()}
    parts |= shown.given_to(job.paper.released)
    models = {
        f"{folder}/{name}": content
        for folder, name, content in _model_files(job.models)
    }
    room = min(job.limits.temporary_bytes // 2, 2 * job.limits.file_bytes)
    fits = sum(map(len, models.values())) <= room
    return parts | models if fits else parts


def _model_files(models: dict) -> Iterator[tuple[str, str, bytes]]:
    """Give the files of models by folder, which is a name and no path, and name."""
    for folder, files in models.items():
        if PurePath(folder).name == folder and "\0" not in folder:
            for name in MODEL_FILES:
                if name in files:
                    yield folder, name, files[name]


@contextlib.contextmanager
def _beside(models: dict, limited: list[str]) -> Iterator[None]:
    """Make a folder with the models the working directory, as checks expect it."""
    with tempfile.TemporaryDirectory(prefix="models-") as folder:
        for model, name, content in _model_files(models):
            try:
                place = Path(folder, model)
                place.mkdir(exist_ok=True)
                (place / name).write_bytes(content)
            except OSError as error:
                why = error.strerror or "no valid name"
                limited.append(plain(f"{model}/{name} was not used: {why}", 200))
        with contextlib.chdir(folder):
            yield


# --- running --------------------------------------------------------------------------


@dataclass
class _Judgement:
    """A check while it judges an answer."""

    cell: NotebookNode
    check: _Check
    verdict: Verdict
    names: Names
    printed: io.StringIO
    moment: int | None = None  # when the visible part had passed


class _Sitting:
    """One submission while it runs."""

    answer: Callable[[Data], Data] | None = None  # to what its process asks

    def __init__(
        self, job: Job, sheet: _Sheet, outcome: Outcome, tell: Tell, last: float
    ) -> None:
        self.limits, self.sheet, self.outcome = job.limits, sheet, outcome
        self.where, self.tell, self.last = "the first cell", tell, last
        self.end = time.process_time() + CHECKING_SECONDS
        self.keys, self.notes = job.keys, outcome.limited
        self.passed: list[_Judgement] = []  # the visible part
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
        name = _grade_id(cell)
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
        raise _Stopped(f"{text}, while running {self.where}")

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
            cell.outputs.append(_error("TimeoutError", said))
            result.error = f"TimeoutError: {text}"
        if result.error and cell.source != self.sheet.blank.get(exercise):
            error = shortened(result.error)
            stop = Stop(number, exercise, cell.source, error, result.line)
            self.stops.append(stop)
            self.outcome.stopped.append(str(stop))

    # --- judging ----------------------------------------------------------------------

    def _check(self, cell: NotebookNode, check: _Check) -> None:
        """Judge an answer by what students see of a check."""
        name = _grade_id(cell)
        points = self.sheet.paper.points[name]
        verdict = Verdict(exercise_of(name), name, points, 0.0, title=check.title)
        names = Names(self.kernel, self.sheet.imports)
        judgement = _Judgement(cell, check, verdict, names, io.StringIO())
        self.outcome.verdicts.append(verdict)
        if self._passes(judgement, VISIBLE):
            judgement.moment = self.kernel.remember()
            self.passed.append(judgement)

    def _hidden_tests(self) -> None:
        """Judge by the rest of each check, as if it stood where the check stands."""
        self.where, self.notes = HIDDEN_TESTS, self.outcome.unseen
        for judgement in self.passed:
            self.tell(self.where)
            judgement.names.update(drawing(self.keys))
            if not self.kernel.go_back(judgement.moment):
                self._enter_not_kept(judgement)
            elif self._passes(judgement, HIDDEN):
                judgement.verdict.score = judgement.verdict.points
            self._time_left()

    def _passes(self, judgement: _Judgement, part: str) -> bool:
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

    def _enter_not_kept(self, judgement: _Judgement) -> None:
        """Fail the hidden part of an answer whose names are not there any more.

        Once a hidden test has run, a student's process may choose when to fail: why it
        does is then for the instructor only.
        """
        failure = _no_answer("cannot be checked by the hidden tests", NOT_KEPT)
        facts = _facts(failure, judgement.verdict.grade_id)
        safe = facts if judgement.moment is None else told(facts)
        self._enter_failure(judgement, HIDDEN, facts, safe["text"])

    def _enter_failure(
        self, judgement: _Judgement, part: str, failure: dict, for_students: str
    ) -> None:
        """Write down, for instructors and for the student, why an answer fails."""
        judgement.verdict.part, judgement.verdict.failure = part, failure
        judgement.cell.outputs = [_error("CheckFailure", failure["text"])]
        judgement.cell.metadata[FOR_STUDENTS] = for_students

    def _explained(self, failure: dict, exercise: str) -> dict:
        """Say which cell stopped first, if something is missing for that reason."""
        name = missing_name(failure["got"] or "")
        stop = first_cause(self.stops, name, exercise) if name else None
        if stop is None:
            return failure
        made = CheckFailure("")
        for fact, text in (failure | explained(failure, stop, exercise)).items():
            setattr(made, fact, text)
        return _facts(made, exercise)

    def _failure(
        self, name: str, code: CodeType, names: Names, printed: io.StringIO
    ) -> dict | None:
        """Run a part of a check; return what it says against the answer."""
        self.kernel.begin_check()
        try:
            with alarms.own_time(self._longest()), _silence(printed):
                exec(code, names)
        except StudentError as error:
            return _facts(failure_of(error), name)
        except CheckFailure as failure:
            return _facts(failure, name)
        except KernelGone:
            raise
        except alarms.TookTooLong:
            if self.kernel.broken_off:  # an answer may be on its way
                raise _Stopped(f"{self.where} could not be interrupted") from None
            self.notes.append(f"check {name}: stopped, too slow")
            return _facts(_no_answer("takes too long", TOO_SLOW), name)
        except Exception as error:  # no value may be odd enough to stop the grader
            said = plain(f"{type(error).__name__}: {error}", 300)
            self.notes.append(f"check {name} could not be run: {said}")
            return _facts(_no_answer("cannot be checked", ODD), name)
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
        name = _grade_id(cell)
        points = self.sheet.paper.points[name]
        if cell.source != self.sheet.blank[name]:
            answer = plain(cell.source, ANSWER)
            entry = {"exercise": exercise_of(name), "grade_id": name}
            self.outcome.by_hand.append(entry | {"points": points, "answer": answer})
        else:
            failure = _facts(CheckFailure("nothing was written"), exercise_of(name))
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

    def begin_check(self) -> None:
        """Give the next part of a check its time."""
        self.calls_left = CALLS_SECONDS

    def ask(self, method: str, handle: int, *request: object) -> Data:
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


# --- once more, with right answers given ----------------------------------------------


def _judge_again(
    job: Job, sandbox: Sandbox, first: _Sitting, notebook: NotebookNode
) -> None:
    """Judge once more what fails and uses what is wrong; whatever fails, all stays."""
    outcome = first.outcome
    try:
        rings = first.last + RINGS_LATER
        left = replace(job.limits, notebook_seconds=first.kernel.seconds_left)
        if job.carried_forward == 0 or left.notebook_seconds <= 0:
            return
        with alarms.until(rings):
            plan = _plan(first, notebook)
        if not plan.again:
            return
        second = _SecondSitting(job, left, first, plan)
        ran, cage = copy.deepcopy(notebook), sandbox.open(_files(job))
        try:
            with _beside(job.models, []), alarms.until(rings):
                second.run(ran, cage)
        finally:
            cage.end()
            second.enter(notebook, job.carried_forward)
    except alarms.TimeIsOver:
        words = job.limits.words(WALL)
        outcome.unseen.append(f"not everything was judged once more: {words}")
    except (
        *(KernelGone, _Stopped, SandboxError),
        *(StudentError, given.NoReferenceError),
    ) as error:
        said = plain(f"not everything was judged once more: {error}", 300)
        outcome.unseen.append(said)
    except Exception as error:  # our own fault costs nobody the first sitting's points
        said = plain(f"{type(error).__name__} in the grader: {error}", 300)
        outcome.unseen.append(f"not everything was judged once more: {said}")
        outcome.log = plain(traceback.format_exc(), 20_000)


def _plan(first: _Sitting, notebook: NotebookNode) -> given.Plan:
    """Say what to judge again after a sitting."""
    failed = [each.exercise for each in first.outcome.verdicts if each.failure]
    if not failed:
        return given.Plan({})
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    blank = first.sheet.blank
    written = {
        _grade_id(cell): cell.source
        for cell in cells
        if _grade_id(cell) in blank and cell.source != blank[_grade_id(cell)]
    }
    code = [cell.source for cell in cells]
    return given.plan(given.answers_of(first.sheet.paper), failed, written, code)


class _SecondSitting(_Sitting):
    """The same notebook in a fresh process, with right answers for wrong ones.

    Its answers are those of autograder.grading.given; what it shows is not kept.
    """

    def __init__(
        self, job: Job, limits: Limits, first: _Sitting, plan: given.Plan
    ) -> None:
        super().__init__(job, first.sheet, job.ungraded(""), first.tell, first.last)
        self.limits, self.end, self.plan = limits, first.end, plan
        self.failed = {v.grade_id: v for v in first.outcome.verdicts if v.failure}
        self.answers = given.answers_of(self.sheet.paper)
        self.given = given.Given(given.reference_for(self.answers), plan)
        self.known = self.given.describe(plan.names)
        self.answer = self.given.answer
        self.solved: dict[str, list[str]] = {}  # by check, the names that it asked
        self.asked: dict[str, set[str]] = {}  # by an exercise's own cell
        self.in_place: dict[str, Data] = {}
        self.checked: set[str] = set()

    def _cell(self, cell: NotebookNode, number: int) -> None:
        name = _grade_id(cell)
        self.given.turn(exercise_of(name) if name else "")
        super()._cell(cell, number)
        if name in self.sheet.checks:
            self.checked.add(name)
            self._replace(exercise_of(name))
        elif self.in_place.keys() & binds(cell.source):
            self.kernel.give(self.in_place)

    def _check(self, cell: NotebookNode, check: _Check) -> None:
        name = _grade_id(cell)
        if name not in self.failed or exercise_of(name) not in self.plan.again:
            return
        names, printed = Names(self.kernel, self.sheet.imports), io.StringIO()
        names.update(drawing(self.keys))
        in_its_cell = self.asked.setdefault(exercise_of(name), {*self.given.asked})
        self.given.asked.clear()
        self.given.asked.update(in_its_cell)
        if self._failure(name, check.parts[VISIBLE], names, printed) is None:
            asked = sorted(self.given.asked)  # what is asked later may tell inputs
            right = self._failure(name, check.parts[HIDDEN], names, printed) is None
            if right and asked:
                self.solved[name] = asked

    def _replace(self, exercise: str) -> None:
        """Put stand-ins in the place of a wrong answer, once nothing checks it."""
        checks = {each for each in self.sheet.checks if exercise_of(each) == exercise}
        wrong = checks & self.failed.keys() - self.solved.keys()
        names = {n for n in self.known if self.answers.owner[n] == exercise}
        if names and wrong and checks <= self.checked:
            self.in_place |= {name: self.known[name] for name in names}
            self.kernel.give(self.in_place)

    def enter(self, notebook: NotebookNode, share: float) -> None:
        """Give points for what passed, in the verdicts and as nbgrader reads them."""
        cells = {_grade_id(cell): cell for cell in notebook.cells}
        for name, names in self.solved.items():
            verdict = self.failed[name]
            verdict.given, verdict.part, verdict.failure = names, "", None
            verdict.score = share * verdict.points
            cells[name].outputs = _given_outputs(verdict)
            cells[name].metadata.pop(FOR_STUDENTS, None)


def _given_outputs(verdict: Verdict) -> list[dict]:
    """Say what was given; of fewer points, nbgrader wants the number as a result."""
    text = f"Solved, given a right {' and '.join(verdict.given)}.\n"
    outputs = [{"output_type": "stream", "name": "stdout", "text": text}]
    if verdict.score < verdict.points:
        data = {"text/plain": repr(verdict.score)}
        result = {"data": data, "metadata": {}, "execution_count": None}
        outputs.append({"output_type": "execute_result", **result})
    return outputs


# --- by what the code uses ----------------------------------------------------------


def _judge_usage(notebook: NotebookNode, sheet: _Sheet, outcome: Outcome) -> None:
    """Take the points of answers that use what is forbidden; flag what may use it."""
    code = [
        usage.Cell(number, cell.source, _grade_id(cell), cell.source in sheet.given)
        for number, cell in enumerate(notebook.cells, start=1)
        if cell.cell_type == "code"
    ]
    try:
        with alarms.own_time(READING_SECONDS):
            findings = usage.read(code, sheet.demands)
    except alarms.TookTooLong:
        findings = usage.unread(sheet.demands)
    outcome.flags += [each.flag() for each in findings if not each.is_certain]
    certain = {each.grade_id: each for each in reversed(findings) if each.is_certain}
    cells = {_grade_id(cell): cell for cell in notebook.cells}
    for verdict in outcome.verdicts:
        found = certain.get(verdict.grade_id)
        if found is not None and verdict.score:
            failure = found.failure(sheet.demands[verdict.grade_id])
            verdict.failure = _facts(failure, verdict.grade_id)
            verdict.score, verdict.part, verdict.given = 0.0, VISIBLE, []
            text = verdict.failure["text"]
            cells[verdict.grade_id].outputs = [_error("CheckFailure", text)]
            cells[verdict.grade_id].metadata[FOR_STUDENTS] = text


# --- words ----------------------------------------------------------------------------


def _facts(failure: CheckFailure, name: str) -> dict[str, str | bool | None]:
    """Return what a failed check says, part by part; what came from outside, cut."""
    failure.check = failure.check or exercise_of(name)
    for fact in FACTS:
        if getattr(failure, fact):
            setattr(failure, fact, plain(str(getattr(failure, fact)), FACT))
    facts = {fact: getattr(failure, fact) for fact in FACTS}
    return facts | {"raised": failure.raised, "text": str(failure)}


def _no_answer(what: str, why: str) -> CheckFailure:
    failure = CheckFailure(what, why=why)
    failure.raised = True
    return failure


def _error(name: str, text: str) -> dict:
    said = {"ename": name, "evalue": text, "traceback": [text]}
    return {"output_type": "error", **said}


# --- while a check runs ---------------------------------------------------------------


@contextlib.contextmanager
def _silence(printed: io.StringIO) -> Iterator[None]:
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
