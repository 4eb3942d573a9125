"""The nbgrader course that a class is graded in: its folders and its gradebook."""

from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.converters import BaseConverter
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import capture_log
from traitlets.config import Config

from autograder.grading.settings import configure


@dataclass(frozen=True)
class Course:
    """Where a class is graded, and by which limits."""

    root: Path
    db: str = ""  # the URL asked for; SQLite in the course's folder without one
    cell_timeout: int = 30

    @property
    def db_url(self) -> str:
        """The gradebook's address; many processes may write, so wait for a lock."""
        return self.db or f"sqlite:///{self.root / 'gradebook.db'}?timeout=60"

    def config(self) -> Config:
        """Return nbgrader's configuration."""
        return configure(Config(), self.root, self.db_url, self.cell_timeout)

    def convert(
        self, converter: type[BaseConverter], chapter: str, student: str, config: Config
    ) -> dict:
        """Run one of nbgrader's steps; return its success, log and error."""
        config = config.copy()
        config.CourseDirectory.assignment_id = chapter
        config.CourseDirectory.student_id = student
        step = converter(coursedir=CourseDirectory(config=config), config=config)
        step.force = True
        return capture_log(step)

    def gradebook(self) -> Gradebook:
        """Open the gradebook; close it after use."""
        return Gradebook(self.db_url)
