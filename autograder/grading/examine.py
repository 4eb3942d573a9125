"""Grade one submission: its cells run over there, its checks are judged here.

>>> outcome = examine(job, sandbox)
>>> outcome.status, outcome.score, outcome.points
('graded', 26.0, 30.0)

Nothing that a submission does, sends or returns raises an exception here: it ends as
graded, or as ungraded with a reason. Use it from the main thread of a process, which
alone can be interrupted by an alarm.
"""

import copy
import errno
import gc
import hashlib
import json
import time
import traceback

from nbformat import NotebookNode

from autograder.chapters import results
from autograder.grading import alarms, usage
from autograder.grading.beside import files_beside, models_beside
from autograder.grading.causes import packages_not_here
from autograder.grading.clean import plain
from autograder.grading.job import GRADED, Job, Outcome
from autograder.grading.kernel import KernelGone
from autograder.grading.limits import WALL, Limits
from autograder.grading.lines import look_for_lines
from autograder.grading.reading import Refused, parse
from autograder.grading.repair import repair
from autograder.grading.sandbox import Sandbox, SandboxError
from autograder.grading.second_sitting import judge_again
from autograder.grading.sheet import (
    VISIBLE,
    Sheet,
    grade_id_of,
    put_rubrics_beside,
    sheet_of,
)
from autograder.grading.sitting import (
    HIDDEN_TESTS,
    RINGS_LATER,
    Sitting,
    Stopped,
    Tell,
    error_output,
    facts_of,
)
from autograder.grading.telling import FOR_STUDENTS

REPAIR_SECONDS = 60
READING_SECONDS = 20  # of the code, for what it uses
# what the machine lacks, and no submission can take
LACKS = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EMFILE, errno.ENFILE)
MOST_LIMITED = 50  # notes; a loop over thousands of cells can cause as many


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
    except (Refused, Stopped, SandboxError) as error:
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
    sheet = sheet_of(job.paper)
    notebook = _repaired(job, sheet, outcome, end)
    cage = sandbox.open(files_beside(job))
    sitting = Sitting(job, sheet, outcome, tell, end)
    try:
        models = models_beside(job.models, outcome.limited)
        with models, alarms.until(end + RINGS_LATER):
            sitting.run(notebook, cage)
            look_for_lines(sitting, notebook, job.line_seconds)
    except alarms.TimeIsOver:
        raise Stopped(_over(job.limits, sitting)) from None
    except KernelGone as gone:
        outcome.again = cage.lost
        if gone.reason == WALL:
            raise Stopped(_over(job.limits, sitting)) from None
        if met := job.limits.words(gone.reason):
            sitting.notes.append(f"{sitting.where}: stopped, {met}")
        text = f"the kernel died while running {sitting.where}"
        if sitting.where == HIDDEN_TESTS:
            sitting.notes.append(f"{sitting.part}: {gone.reason}")
            raise Stopped(text) from None
        raise Stopped(f"{text} ({gone.reason})") from None
    finally:
        cage.end()
    judge_again(job, sandbox, sitting, notebook)
    _judge_usage(notebook, sheet, outcome)
    outcome.verdicts.sort(key=lambda verdict: sheet.order[verdict.grade_id])
    put_rubrics_beside(notebook, sheet)
    outcome.notebook = json.dumps(notebook, ensure_ascii=False)
    outcome.status = GRADED


def _over(limits: Limits, sitting: "Sitting") -> str:
    """Note that the submission's time on the wall was over; return it as a reason."""
    sitting.notes.append(f"{sitting.where}: stopped, {limits.words(WALL)}")
    seconds = f"{limits.wall_seconds:g} seconds on the wall"
    return f"the submission was stopped after {seconds}, while running {sitting.where}"


# --- what was handed in ---------------------------------------------------------------


def _repaired(job: Job, sheet: Sheet, outcome: Outcome, end: float) -> NotebookNode:
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
        name = grade_id_of(cell)
        if name in sheet.checks:
            notebook.cells[place] = copy.deepcopy(sheet.checks[name].cell)
            notebook.cells[place].id = cell.id
    return notebook


# --- by what the code uses ----------------------------------------------------------


def _judge_usage(notebook: NotebookNode, sheet: Sheet, outcome: Outcome) -> None:
    """Take the points of answers that use what is forbidden; flag what may use it."""
    code = [
        usage.Cell(number, cell.source, grade_id_of(cell), cell.source in sheet.given)
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
    cells = {grade_id_of(cell): cell for cell in notebook.cells}
    for verdict in outcome.verdicts:
        found = certain.get(verdict.grade_id)
        if found is not None and verdict.score:
            failure = found.failure(sheet.demands[verdict.grade_id])
            verdict.failure = facts_of(failure, verdict.grade_id)
            verdict.score, verdict.part, verdict.given = 0.0, VISIBLE, []
            text = verdict.failure["text"]
            cells[verdict.grade_id].outputs = [error_output("CheckFailure", text)]
            cells[verdict.grade_id].metadata[FOR_STUDENTS] = text
