"""The nbgrader course that a class is graded in: its folders and its gradebook."""

import copy
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from nbgrader.api import Gradebook
from nbgrader.converters import BaseConverter
from nbgrader.coursedir import CourseDirectory
from nbgrader.dbutil import ALEMBIC_DIR
from nbgrader.utils import capture_log
from traitlets.config import Config

from autograder.files import replacing
from autograder.grading.settings import configure


@dataclass(frozen=True)
class Course:
    """Where a class is graded."""

    root: Path
    db: str = ""  # the URL asked for; SQLite in the course's folder without one

    @property
    def gradebook_file(self) -> Path:
        """Where the gradebook is, if it is no database of a server."""
        return self.root / "gradebook.db"

    @property
    def db_url(self) -> str:
        """The gradebook's address; formgrader may write as well, so wait for a lock."""
        return self.db or f"sqlite:///{self.gradebook_file}?timeout=60"

    def config(self) -> Config:
        """Return nbgrader's configuration."""
        return configure(Config(), self.root, self.db_url)

    def convert(
        self, converter: type[BaseConverter], chapter: str, student: str, config: Config
    ) -> dict:
        """Run one of nbgrader's steps; return its success, log and error."""
        config = copy.deepcopy(config)
        config.CourseDirectory.assignment_id = chapter
        config.CourseDirectory.student_id = student
        step = converter(coursedir=CourseDirectory(config=config), config=config)
        step.force = True
        return capture_log(step)

    def gradebook(self) -> Gradebook:
        """Open the gradebook, and make it if it is not there; close it after use."""
        path = self.gradebook_file
        if not self.db and not path.exists():
            # a kill must not leave one with half of its tables
            with replacing(path) as beside:
                _stamp(f"sqlite:///{beside}")
                Gradebook(f"sqlite:///{beside}").close()
        return Gradebook(self.db_url)

    def notebook(self, step: str, student: str, chapter: str) -> Path:
        """Return where nbgrader has a notebook in a step such as ``autograded/``."""
        return self.root / step / student / chapter / f"{chapter}.ipynb"


def _stamp(url: str) -> None:
    """Say in an empty database which version of nbgrader's tables it is going to have.

    nbgrader does it by starting a program, which takes seconds.
    """
    engine = sqlalchemy.create_engine(url)
    with engine.begin() as connection:
        MigrationContext.configure(connection).stamp(
            ScriptDirectory(ALEMBIC_DIR), "head"
        )
    engine.dispose()
