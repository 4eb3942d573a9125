"""What this course adds to nbgrader's own steps; settings.py says where they stand."""

import atexit
import functools
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import ClearHiddenTests, NbGraderPreprocessor
from nbgrader.utils import is_grade
from traitlets import Bool, Float

from autograder.grading import sandbox, seeds, submission
from autograder.grading.grader import Grader
from autograder.grading.job import GRADED, Job
from autograder.grading.limits import Limits
from autograder.grading.paper import Paper
from autograder.grading.repair import repair
from autograder.grading.telling import FOR_STUDENTS

FAILED = "CheckFailure"
NOT_SAID = "The check failed; your instructor sees how."


class RepairSubmission(NbGraderPreprocessor):
    """Compare a submission with what was released; put right what grading needs."""

    def preprocess(
        self, nb: NotebookNode, resources: dict
    ) -> tuple[NotebookNode, dict]:
        """Repair a notebook; log what was done."""
        release = self._release(resources["nbgrader"])
        if release is None:
            return nb, resources
        nb, notes = repair(nb, nbformat.read(release, as_version=4))
        for note in notes:
            self.log.warning("Repaired: %s", note)
        return nb, resources

    def _release(self, names: dict) -> Path | None:
        course = self.parent.parent.coursedir  # the exporter's converter has it
        for step in (course.release_directory, course.source_directory):
            folder = Path(course.format_path(step, ".", names["assignment"]))
            path = folder / f"{names['notebook']}.ipynb"
            if path.is_file():
                return path
        self.log.warning("No released notebook %s: not repaired", path)
        return None


class ExecuteSubmission(NbGraderPreprocessor):
    """Run a submission in the sandbox, in place of nbgrader's own ``Execute``.

    Its outputs are such that SaveAutoGrades gives the points that the checks gave.
    """

    cell_seconds = Float(30, help="Seconds after which a cell is stopped.").tag(
        config=True
    )
    unsafe = Bool(
        False,
        help="Run submissions without a sandbox: only those you would run yourself.",
    ).tag(config=True)

    carried_forward = Float(
        1.0,
        min=0.0,
        max=1.0,
        help="The share of its points that an answer gets which is right once the "
        "wrong ones that it uses are replaced by right ones; 0 for none.",
    ).tag(config=True)

    def preprocess(
        self, nb: NotebookNode, resources: dict
    ) -> tuple[NotebookNode, dict]:
        """Run a notebook; fail with the reason if it cannot be graded."""
        if not self.unsafe and sandbox.problem():
            raise NotGradedError(sandbox.problem())
        names, course = resources["nbgrader"], self.parent.parent.coursedir
        models, _ = submission.read_models(Path(resources["metadata"]["path"]))
        notebook = nbformat.writes(nb).encode()
        job = Job(
            student=names["student"],
            chapter=names["assignment"],
            notebook=notebook,
            paper=_paper(course, names["assignment"]),
            models=models,
            limits=Limits(cell_seconds=self.cell_seconds),
            unsafe=self.unsafe,
            keys=_keys(course, names, notebook),
            carried_forward=self.carried_forward,
        )
        outcome = _grader().grade(job)
        if outcome.status != GRADED:
            raise NotGradedError(outcome.reason)
        for note in outcome.limited:
            self.log.warning("Limited: %s", note)
        return nbformat.reads(outcome.notebook, as_version=4), resources


class NotGradedError(Exception):
    """A submission was not graded; says why."""


@functools.cache
def _grader() -> Grader:
    """Start the grading process, once for all submissions of a command."""
    grader = Grader()
    atexit.register(grader.close)
    return grader


def _keys(course: CourseDirectory, names: dict, notebook: bytes) -> seeds.Keys:
    """Derive a submission's keys from the file as it was handed in.

    ``notebook`` is what the steps before have made of it.
    """
    student, chapter = names["student"], names["assignment"]
    folder = course.format_path(course.submitted_directory, student, chapter)
    path = Path(folder) / f"{names['notebook']}.ipynb"
    if path.is_file():
        notebook = path.read_bytes()
    return seeds.Keys.of(seeds.secret_of(Path(course.root)), chapter, notebook)


def _paper(course: CourseDirectory, chapter: str) -> Paper:
    """Read what a chapter is graded by from the course's own folders."""
    source, release = (
        Path(course.format_path(step, ".", chapter))
        for step in (course.source_directory, course.release_directory)
    )
    name = f"{chapter}.ipynb"
    if not (source / name).is_file() or not (release / name).is_file():
        raise NotGradedError(
            f"{chapter} was never released; to do so: "
            f"nbgrader generate_assignment {chapter}"
        )
    return Paper.of_notebooks(
        chapter,
        (release / name).read_text(encoding="utf-8"),
        (source / name).read_text(encoding="utf-8"),
        {
            f"transformer/{path.name}": path.read_text(encoding="utf-8")
            for path in sorted((source / "transformer").glob("*.py"))
        },
    )


class HideHiddenTests(ClearHiddenTests):
    """Keep hidden tests, and what they have asked, out of what students get back.

    An error in a check cell says what ``examine`` has written down for students: all of
    a check that they see, and of a hidden test no input and nothing of their own code.
    An error that nothing was written down for was made by another grader.
    """

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict, cell_index: int
    ) -> tuple[NotebookNode, dict]:
        """Cut hidden tests from a check cell, and what its error would give away."""
        if cell.cell_type != "code" or not is_grade(cell):
            return cell, resources
        for output in cell.outputs:
            if output.output_type == "error":
                said = str(cell.metadata.get(FOR_STUDENTS, NOT_SAID))
                output.ename, output.evalue, output.traceback = FAILED, said, [said]
        return super().preprocess_cell(cell, resources, cell_index)
