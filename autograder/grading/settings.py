"""How nbgrader is set up for this course, in autograder/ and wherever it grades."""

import os
import sys
from pathlib import Path

from traitlets.config import Config

CELL_TIMEOUT = 30  # seconds; a check takes less than one
PREPROCESSORS = "autograder.grading.preprocessors"


def put_environment_on_path() -> None:
    """Let nbgrader find ``alembic``, which lies beside the interpreter, by name."""
    here = str(Path(sys.executable).parent)
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    if here not in folders:
        os.environ["PATH"] = os.pathsep.join([here, *folders])


def configure(
    config: Config, root: Path, db_url: str = "", cell_timeout: int = CELL_TIMEOUT
) -> Config:
    """Set the options of a course whose folders are in ``root``; return them."""
    put_environment_on_path()
    config.CourseDirectory.root = str(root)
    if db_url:
        config.CourseDirectory.db_url = db_url
    config.Autograde.sanitize_preprocessors = [
        f"{PREPROCESSORS}.RepairSubmission",
        "nbgrader.preprocessors.ClearOutput",
        "nbgrader.preprocessors.DeduplicateIds",
        "nbgrader.preprocessors.OverwriteKernelspec",
        "nbgrader.preprocessors.OverwriteCells",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    config.Autograde.autograde_preprocessors = [
        f"{PREPROCESSORS}.ExecuteSubmission",
        "nbgrader.preprocessors.IgnorePattern",
        "nbgrader.preprocessors.LimitOutput",
        "nbgrader.preprocessors.SaveAutoGrades",
        "nbgrader.preprocessors.AssignLatePenalties",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    config.GenerateFeedback.preprocessors = [
        "nbgrader.preprocessors.GetGrades",
        f"{PREPROCESSORS}.HideHiddenTests",
        "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
    ]
    # a right answer that warns, logs or shows a progress bar is still right
    config.IgnorePattern.enabled = True
    config.IgnorePattern.pattern = r"(?s)."
    _set_limits(config, cell_timeout)
    return config


def _set_limits(config: Config, cell_timeout: int) -> None:
    stopped = f"stopped after {cell_timeout} seconds. Does a loop never end?"
    config.Execute.timeout = cell_timeout
    config.Execute.startup_timeout = 120  # a busy machine starts kernels slowly
    config.Execute.iopub_timeout = 20
    config.Execute.error_on_timeout = {
        "ename": "TimeoutError",
        "evalue": stopped,
        "traceback": [f"TimeoutError: {stopped}"],
    }
