"""Judge once more what used a wrong answer, with a right one in its place."""

import copy
import io
import traceback
from dataclasses import replace
from typing import Any

from nbformat import NotebookNode

from autograder.grading import alarms, given
from autograder.grading.beside import files_beside, models_beside
from autograder.grading.clean import plain
from autograder.grading.job import Job, Verdict
from autograder.grading.kernel import KernelGone
from autograder.grading.limits import WALL, Limits
from autograder.grading.needless import binds
from autograder.grading.paper import exercise_of
from autograder.grading.remote import Names
from autograder.grading.sandbox import Sandbox, SandboxError
from autograder.grading.seeds import drawing
from autograder.grading.sheet import HIDDEN, VISIBLE, Check, grade_id_of
from autograder.grading.sitting import RINGS_LATER, Sitting, Stopped
from autograder.grading.telling import FOR_STUDENTS
from autograder.interface import Data, StudentError


def judge_again(
    job: Job, sandbox: Sandbox, first: Sitting, notebook: NotebookNode
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
        ran, cage = copy.deepcopy(notebook), sandbox.open(files_beside(job))
        try:
            with models_beside(job.models, []), alarms.until(rings):
                second.run(ran, cage)
        finally:
            cage.end()
            second.enter(notebook, job.carried_forward)
    except alarms.TimeIsOver:
        words = job.limits.words(WALL)
        outcome.unseen.append(f"not everything was judged once more: {words}")
    except (
        *(KernelGone, Stopped, SandboxError),
        *(StudentError, given.NoReferenceError),
    ) as error:
        said = plain(f"not everything was judged once more: {error}", 300)
        outcome.unseen.append(said)
    except Exception as error:  # our own fault costs nobody the first sitting's points
        said = plain(f"{type(error).__name__} in the grader: {error}", 300)
        outcome.unseen.append(f"not everything was judged once more: {said}")
        outcome.log = plain(traceback.format_exc(), 20_000)


def _plan(first: Sitting, notebook: NotebookNode) -> given.Plan:
    """Say what to judge again after a sitting."""
    failed = [each.exercise for each in first.outcome.verdicts if each.failure]
    if not failed:
        return given.Plan({})
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    blank = first.sheet.blank
    written = {
        grade_id_of(cell): cell.source
        for cell in cells
        if grade_id_of(cell) in blank and cell.source != blank[grade_id_of(cell)]
    }
    code = [cell.source for cell in cells]
    return given.plan(given.answers_of(first.sheet.paper), failed, written, code)


class _SecondSitting(Sitting):
    """The same notebook in a fresh process, with right answers for wrong ones.

    Its answers are those of autograder.grading.given; what it shows is not kept.
    """

    def __init__(
        self, job: Job, limits: Limits, first: Sitting, plan: given.Plan
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
        name = grade_id_of(cell)
        self.given.turn(exercise_of(name) if name else "")
        super()._cell(cell, number)
        if name in self.sheet.checks:
            self.checked.add(name)
            self._replace(exercise_of(name))
        elif self.in_place.keys() & binds(cell.source):
            self.kernel.give(self.in_place)

    def _check(self, cell: NotebookNode, check: Check) -> None:
        name = grade_id_of(cell)
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
        cells = {grade_id_of(cell): cell for cell in notebook.cells}
        for name, names in self.solved.items():
            verdict = self.failed[name]
            verdict.given, verdict.part, verdict.failure = names, "", None
            verdict.score = share * verdict.points
            cells[name].outputs = _given_outputs(verdict)
            cells[name].metadata.pop(FOR_STUDENTS, None)


def _given_outputs(verdict: Verdict) -> list[dict]:
    """Say what was given; of fewer points, nbgrader wants the number as a result."""
    text = f"Solved, given a right {' and '.join(verdict.given)}.\n"
    outputs: list[dict[str, Any]] = [
        {"output_type": "stream", "name": "stdout", "text": text}
    ]
    if verdict.score < verdict.points:
        data = {"text/plain": repr(verdict.score)}
        result = {"data": data, "metadata": {}, "execution_count": None}
        outputs.append({"output_type": "execute_result", **result})
    return outputs
