"""A submission to grade, and what became of it."""

import contextlib
from dataclasses import dataclass, field
from pathlib import Path

GRADED, UNGRADED = "graded", "ungraded"


@dataclass(frozen=True)
class Task:
    """A submission to grade."""

    student: str
    chapter: str
    notebook: str  # its path
    sha256: str
    notes: tuple[str, ...]
    course: str  # the course's folder
    db: str
    out: str
    cell_timeout: int

    @property
    def seconds(self) -> int:
        """How long the whole submission may take."""
        return 180 + 10 * self.cell_timeout

    def result(self, reason: str = "") -> "Result":
        """Return a result without a grade."""
        return Result(
            self.student,
            self.chapter,
            UNGRADED,
            reason,
            list(self.notes),
            sha256=self.sha256,
        )


@dataclass
class Result:
    """What became of a submission."""

    student: str
    chapter: str
    status: str = UNGRADED
    reason: str = ""
    repairs: list[str] = field(default_factory=list)
    scores: dict[str, dict] = field(default_factory=dict)  # by exercise
    row: dict[str, str] = field(default_factory=dict)  # of grades.csv
    sha256: str = ""
    seconds: float = 0.0


def read_word(job: Path, name: str) -> str:
    """Return what the worker's process left word of, or nothing."""
    with contextlib.suppress(OSError):
        return (job / name).read_text(encoding="utf-8")
    return ""


def keep_log(task: Task, text: str) -> None:
    """Keep the end of a log in the course's logs/."""
    path = Path(task.course) / "logs" / task.student / f"{task.chapter}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text[-200_000:], encoding="utf-8")
