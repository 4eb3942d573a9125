"""A class whose notebooks fail in every ordinary way, and what each must earn.

``class.yml`` says who handed in what and what must come out; ``notebooks.py`` makes the
notebooks from the course's own sources, so that no answer stands here.
"""

import csv
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from autograder import generator

sys.path.insert(0, str(generator.ROOT / "solutions"))
from tests.sample_class import notebooks

LIST = Path(__file__).with_name("class.yml")
CELL_TIMEOUT = 10  # seconds: an endless loop should not hold up the class


@dataclass(frozen=True, eq=False)
class Submission:
    """A student's notebook of a chapter, and what must come out."""

    student: str
    chapter: str
    made: str  # a function of notebooks.py, with its arguments
    shows: str = ""
    lost: dict[str, int] | str = field(default_factory=dict)  # points, or "all"
    ungraded: str = ""  # the reason, where there is no grade
    by_hand: bool = True  # whether a written answer waits for a person
    repairs: tuple[str, ...] = ()
    feedback: tuple[str, ...] = ()

    @property
    def score(self) -> float | None:
        """The points it must earn."""
        points = automatic_points(self.chapter)
        if self.ungraded:
            return None
        lost = points if self.lost == "all" else {n: points[n] for n in self.lost}
        return float(sum(points.values()) - sum(lost.values()))


def automatic_points(chapter: str) -> dict[str, int]:
    """Points of the exercises that check cells grade."""
    exercises = generator.read(chapter).exercises
    return {each.name: each.points for each in exercises if not each.by_hand}


def read_class() -> list[Submission]:
    """Read class.yml; who is not listed for a chapter handed nothing in."""
    listed = [
        Submission(student, chapter, **_tuples(entry))
        for chapter, students in yaml.safe_load(LIST.read_text("utf-8")).items()
        for student, entry in students.items()
    ]
    there = {(each.student, each.chapter) for each in listed}
    missing = [
        Submission(student, chapter, "nothing", ungraded="no notebook was submitted")
        for student in sorted({each.student for each in listed})
        for chapter in sorted({each.chapter for each in listed})
        if (student, chapter) not in there
    ]
    return listed + missing


def _tuples(entry: dict) -> dict:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in entry.items()}


def build(folder: Path, submissions: list[Submission]) -> None:
    """Write the notebooks as students hand them in."""
    for each in submissions:
        place = folder / each.student / each.chapter
        place.parent.mkdir(parents=True, exist_ok=True)
        function, *arguments = [word.strip() for word in each.made.split("|")]
        getattr(notebooks, function)(place, *arguments)


# --- comparing ------------------------------------------------------------------------


def read_grades(out: Path) -> dict[tuple[str, str], dict[str, str]]:
    """Read grades.csv by student and chapter."""
    with (out / "grades.csv").open(newline="", encoding="utf-8") as file:
        return {(r["student_id"], r["assignment"]): r for r in csv.DictReader(file)}


def read_audit(out: Path) -> dict[tuple[str, str], dict]:
    """Read audit.jsonl by student and chapter."""
    lines = (out / "audit.jsonl").read_text("utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    return {(entry["student"], entry["chapter"]): entry for entry in entries}


def differences(
    out: Path, submissions: list[Submission]
) -> dict[Submission, list[str]]:
    """Compare what came out with what must; an empty list is agreement."""
    grades, audit = read_grades(out), read_audit(out)
    found = {}
    for each in submissions:
        key = each.student, each.chapter
        if key in grades and key in audit:
            page = out / "feedback" / each.student / f"{each.chapter}.html"
            text = page.read_text("utf-8") if page.exists() else ""
            found[each] = _compare(each, grades[key], audit[key], text)
        else:
            found[each] = ["no row in grades.csv or audit.jsonl"]
    return found


def _compare(each: Submission, row: dict, entry: dict, page: str) -> list[str]:
    score = "" if each.score is None else str(each.score)
    status = "ungraded" if each.ungraded else "graded"
    wrong = [
        f"{name} is {got!r}, expected {wanted!r}"
        for name, got, wanted in (
            ("score", row["score"], score),
            ("status", row["status"], status),
            ("number of repairs", len(entry["repairs"]), len(each.repairs)),
        )
        if got != wanted
    ]
    phrases = [*each.repairs, each.ungraded]
    if each.by_hand and not each.ungraded:
        phrases.append("to be graded by hand")
    wrong += [
        f"reason lacks {p!r}: {row['reason']}"
        for p in phrases
        if p not in row["reason"]
    ]
    wrong += [f"feedback lacks {text!r}" for text in each.feedback if text not in page]
    if wrong and entry["scores"]:
        lost = [name for name, s in entry["scores"].items() if s["score"] < s["points"]]
        wrong.append(f"points lost in: {', '.join(lost)}")
    return wrong


__all__ = ["Submission", "build", "differences", "read_class"]
