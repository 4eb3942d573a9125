"""A cluster whose graders answer at once, for tests of all that is around a grading.

Each submission that it is asked for gets the same outcome: some checks passed, others
failed, an answer waits for a person. What lies in a notebook is never looked at.
"""

import csv
import itertools
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder import __main__ as command_line
from autograder.grading import cluster, sandbox
from autograder.grading.build import build
from autograder.grading.course import Course
from autograder.grading.job import Job, Outcome
from autograder.grading.paper import Paper
from tests.grading.test_gradebook import CHAPTER, executed


class Cluster:
    """In the place of ``cluster.Cluster``."""

    def __init__(self, *arguments: object) -> None:
        self._outcome = executed(Paper.of(CHAPTER)).to_dict()

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def grade_in_groups(self, jobs: Iterator) -> Iterator[list]:
        """Give each job its outcome, two and two together."""
        while group := list(itertools.islice(jobs, 2)):
            yield [(label, self._of(job)) for label, job in group]

    def _of(self, job: Job) -> Outcome:
        given = {"student": job.student, "chapter": job.chapter}
        return Outcome.from_dict(self._outcome | given)


def released(folder: Path) -> Path:
    """Make a folder for results in which the chapter is released: it takes seconds."""
    build(Course(folder / "course"), [Paper.of(CHAPTER)])
    return folder


def grade(submissions: Path, out: Path, fresh: Path, *more: str) -> int:
    """Run the command in this process, with that cluster; return its exit code.

    Args:
        submissions: the class.
        out: where results go; made if it is not there.
        fresh: what ``released`` made.
        more: further arguments.
    """
    if not out.exists():
        shutil.copytree(fresh, out)
    line = ["grade", "--submissions", str(submissions), "--out", str(out), *more]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "Cluster", Cluster)
        patch.setattr(sandbox, "problem", str)
        patch.setattr(sys, "argv", ["autograder", *line])
        return command_line.main()


def hand_in(folder: Path, text: str = "{}") -> Path:
    """Write a notebook as a student hands it in; return its path."""
    path = folder / CHAPTER / f"{CHAPTER}.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


def rows(out: Path) -> dict[str, dict[str, str]]:
    """The rows of grades.csv by student."""
    with (out / "grades.csv").open(newline="", encoding="utf-8") as file:
        return {row["student_id"]: row for row in csv.DictReader(file)}


def audit(out: Path) -> dict[str | None, dict]:
    """The lines of audit.jsonl by student."""
    lines = (out / "audit.jsonl").read_text("utf-8").splitlines()
    return {entry["student"]: entry for entry in map(json.loads, lines)}
