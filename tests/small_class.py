"""A class of a few students, and the command that grades it, for tests of a grading."""

import csv
import json
import subprocess
import sys
import time
from pathlib import Path

from nbgrader.api import Gradebook

from tests import sample_class

CHAPTER = "03_positional_encoding"
STUDENTS = ("amelia.brandt", "chiara.ricci", "grace.lin", "ines.costa")
CLASS = [
    each
    for each in sample_class.read_class()
    if each.chapter == CHAPTER and each.student in STUDENTS
]


def build(folder: Path) -> Path:
    """Write what was handed in; one student handed in something that is no notebook."""
    sample_class.build(folder, CLASS)
    broken = folder / "zoe.broken" / CHAPTER / f"{CHAPTER}.ipynb"
    broken.parent.mkdir(parents=True)
    broken.write_text('{"cells": [')
    return folder


def command(submissions: Path, out: Path, *more: str) -> list[str]:
    """Return the command that grades the class."""
    return [
        *(sys.executable, "-m", "autograder", "grade", "--chapter", CHAPTER),
        *("--submissions", str(submissions), "--out", str(out), *more),
    ]


def grade(submissions: Path, out: Path, *more: str) -> subprocess.CompletedProcess:
    """Grade the class to the end."""
    line = command(submissions, out, *more)
    return subprocess.run(line, capture_output=True, text=True, check=False)


def results(out: Path) -> tuple[bytes, list[tuple]]:
    """Return grades.csv, and what audit.jsonl says less what differs between runs."""
    entries = [
        json.loads(line)
        for line in (out / "audit.jsonl").read_text("utf-8").splitlines()
    ]
    fields = ("student", "chapter", "status", "repairs", "limited", "sha256", "scores")
    facts = [tuple(entry[field] for field in fields) for entry in entries]
    return (out / "grades.csv").read_bytes(), facts


def is_as_written(out: Path) -> bool:
    """Tell whether the grades are those that the sample class must earn."""
    with (out / "grades.csv").open(newline="", encoding="utf-8") as file:
        scores = {row["student_id"]: row["score"] for row in csv.DictReader(file)}
    wanted = {each.student: str(each.score) for each in CLASS} | {"zoe.broken": ""}
    return scores == wanted


def in_gradebook(address: str) -> dict[str, float]:
    """Return the scores that nbgrader's gradebook holds, by student."""
    with Gradebook(address) as gradebook:
        assignment = gradebook.find_assignment(CHAPTER)
        return {each.student.id: each.score for each in assignment.submissions}


def wait_for_line(path: Path, process: subprocess.Popen) -> None:
    """Wait until a journal has a line, or the process has ended."""
    while process.poll() is None:
        if path.exists() and b"\n" in path.read_bytes():
            return
        time.sleep(0.05)
