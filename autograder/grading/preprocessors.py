"""What this course adds to nbgrader's own steps; settings.py says where they stand."""

import re
from pathlib import Path

import nbformat
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbgrader.preprocessors import ClearHiddenTests, Execute, NbGraderPreprocessor
from nbgrader.utils import is_grade
from traitlets import Unicode

from autograder.files import write_beside
from autograder.grading.repair import repair


def exercise_of(grade_id: str) -> str:
    """Name the exercise of a cell: test-softmax and test-softmax-2 belong to softmax.

    >>> exercise_of("test-causal-mask-2"), exercise_of("causal-mask")
    ('causal-mask', 'causal-mask')
    """
    if not grade_id.startswith("test-"):
        return grade_id
    return re.sub(r"-\d+$", "", grade_id.removeprefix("test-"))


class RepairSubmission(NbGraderPreprocessor):
    """Compare a submission with what was released; put right what grading needs."""

    def preprocess(self, nb, resources):
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


class ExecuteSubmission(Execute):
    """Run a submission, and leave word of where it is and what stopped it."""

    report_folder = Unicode(
        "", help="A folder for two small files: `where` and `stopped`."
    ).tag(config=True)

    _where = "the first cell"
    _begun = False

    def timeout_func(self, cell):
        """Give what stands before the first exercise time to import (for nbclient)."""
        self._begun = self._begun or "nbgrader" in cell.metadata
        return self.timeout if self._begun else max(self.timeout, self.startup_timeout)

    def on_cell_execute(self, cell, cell_index):
        """Note which cell is about to run (called by nbclient)."""
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        number = f"cell number {cell_index + 1}"
        self._where = f"exercise {exercise_of(name)}" if name else number
        self._leave_word("where", self._where)

    def preprocess(self, nb, resources, km=None):
        """Run the notebook; where that fails, say why in plain words."""
        try:
            return super().preprocess(nb, resources, km)
        except DeadKernelError:
            self._leave_word("stopped", f"the kernel died while running {self._where}")
            raise
        except CellTimeoutError:
            self._leave_word("stopped", f"{self._where} could not be interrupted")
            raise

    def _leave_word(self, name: str, text: str) -> None:
        if self.report_folder:
            write_beside(Path(self.report_folder) / name, text)


class HideHiddenTests(ClearHiddenTests):
    """Keep the source of hidden tests out of what students get back.

    An error in a check cell keeps its name and text; its traceback, which would quote
    the cell, goes. The message of a failed check is its text.
    """

    def preprocess_cell(self, cell, resources, cell_index):
        """Cut hidden tests from a check cell, and tracebacks that would quote them."""
        if cell.cell_type != "code" or not is_grade(cell):
            return cell, resources
        for output in cell.outputs:
            if output.output_type == "error":
                message = output.evalue
                if output.ename != "CheckFailure":
                    message = f"{output.ename}: {output.evalue}"
                output.traceback = [message]
        return super().preprocess_cell(cell, resources, cell_index)
