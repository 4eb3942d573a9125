"""How nbgrader is set up for this course, in autograder/ and wherever it grades."""

import os
import sys
from pathlib import Path

from traitlets.config import Config

PREPROCESSORS = "autograder.grading.preprocessors"


def put_environment_on_path() -> None:
    """Let nbgrader find ``alembic``, which lies beside the interpreter, by name."""
    here = str(Path(sys.executable).parent)
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    if here not in folders:
        os.environ["PATH"] = os.pathsep.join([here, *folders])


def configure(config: Config, root: Path, db_url: str = "") -> Config:
    """Set the options of a course whose folders are in ``root``; return them."""
    put_environment_on_path()
    config.CourseDirectory.root = str(root)
    # what Gradebook() takes, too: PostgreSQL refuses rows of a course that is not there
    config.CourseDirectory.course_id = "default_course"
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
        "nbgrader.preprocessors.SaveAutoGrades",
        "nbgrader.preprocessors.AssignLatePenalties",
        "nbgrader.preprocessors.CheckCellMetadata",
    ]
    config.GenerateFeedback.preprocessors = [
        "nbgrader.preprocessors.GetGrades",
        f"{PREPROCESSORS}.HideHiddenTests",
        "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
    ]
    _keep_scripts_out(config)
    return config


def _keep_scripts_out(config: Config) -> None:
    """Let no text or output of a student's act in formgrader or in feedback."""
    # formgrader's template sends every text through the first of these filters, and
    # nbconvert's templates send it through the second, whose own version allows no
    # headings and no paragraphs
    clean = "autograder.grading.notebook_html.clean_html"
    config.HTMLExporter.sanitize_html = True
    config.HTMLExporter.filters = {
        "strip_files_prefix": clean,
        "clean_html": clean,
        # nbconvert's own stops at an attachment that is missing: no page at all
        "markdown2html": "autograder.grading.notebook_html.markdown_to_html",
    }
