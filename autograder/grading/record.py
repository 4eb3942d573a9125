"""Write down what became of a submission, so that a kill at any moment loses nothing.

In this order: the notebooks and the feedback page, which may be written twice; the
gradebook, in one transaction; then the journal's line. What has no line is graded
again. The tables are made of both at the end, as often as one likes.
"""

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from autograder.files import write_beside
from autograder.grading import class_report, deadlines, feedback, report
from autograder.grading.course import Course
from autograder.grading.deadlines import Choice
from autograder.grading.gradebook import Book, Lateness, Row
from autograder.grading.job import GRADED, Outcome
from autograder.grading.journal import Journal
from autograder.grading.planning import Terms, Work, is_kept
from autograder.grading.reading import Refused
from autograder.grading.version import versions


class Record:
    """Where a class's results are written.

    Args:
        out: the folder for results.
        course: the nbgrader course in it.
        terms: by which the class is graded.
        site: the address of the course's site, for links in feedback.
    """

    def __init__(self, out: Path, course: Course, terms: Terms, site: str = "") -> None:
        self._out, self._course, self._terms, self._site = out, course, terms, site
        self._book = Book(course)
        self._journal = Journal(course.root / "journal.jsonl")
        self._entered = self._book.handed_in()
        if terms.of_class.due:
            due = terms.of_class.due
            chapters = {name: due[name] for name in terms.papers if name in due}
            self._book.enter_due_dates(chapters)

    def close(self) -> None:
        """Close the gradebook and the journal."""
        self._book.close()
        self._journal.close()

    def __enter__(self) -> "Record":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def enter_students(self, students: list[Path]) -> None:
        """Enter the class into the gradebook."""
        known = self._terms.of_class.students
        entries = {}
        for student in students:
            facts = known.get(student.name)
            entries[student.name] = (
                {
                    "first_name": facts.first,
                    "last_name": facts.last,
                    "email": facts.email,
                }
                if facts
                else {}
            )
        self._book.enter_students(entries)

    # --- one submission

    def keep(self, work: Work) -> bool:
        """Tell whether a submission is graded already, with all that belongs to it.

        A due date that has changed since then is entered; the grades stay.
        """
        entry = self._journal.find(*work.key)
        if not is_kept(entry, work, self._terms) or not self._page(work.key).is_file():
            return False
        if entry["status"] != GRADED:
            return True
        if work.key not in self._entered:
            return False  # another gradebook, perhaps
        choice = self._choose(work, [each["score"] for each in entry["attempts"]])
        if choice.number != entry["choice"]:
            return False
        facts = self._lateness_facts(work, choice)
        if facts != {name: entry.get(name) for name in facts}:
            self._write_page(entry | facts)
            self._book.write_lateness(*work.key, self._lateness(work, choice))
            self._journal.add(entry | facts)
        return True

    def add(self, works: Sequence[Work]) -> None:
        """Write down submissions whose attempts all have an outcome.

        Those of a group share a transaction of the gradebook and a wait for the disk:
        before the journal has their lines, none of them counts as graded.
        """
        done = [self._write_files(work) for work in works]
        graded = [each for _, each in done if each]
        self._book.write_all(graded)
        self._entered |= {(outcome.student, outcome.chapter) for outcome, _ in graded}
        self._journal.add(*(entry for entry, _ in done))

    def _write_files(self, work: Work) -> tuple[dict, tuple[Outcome, Lateness] | None]:
        """Write notebooks and feedback; return what journal and gradebook get."""
        scores = [o.score if o.status == GRADED else None for o in work.outcomes]
        choice = self._choose(work, scores)
        outcome, content = work.outcomes[choice.number], work.contents[choice.number]
        if not isinstance(content, Refused):
            outcome.sha256 = content.sha256()
        outcome.versions = outcome.versions or versions()
        entry = self._entry(work, choice, scores)
        if outcome.status != GRADED:
            self._write_page(entry)
            return entry, None
        self._write_notebooks(work, choice)
        self._write_page(entry)
        return entry, (outcome, self._lateness(work, choice))

    def _page(self, key: tuple[str, str]) -> Path:
        student, chapter = key
        return self._out / "feedback" / student / f"{chapter}.html"

    def _choose(self, work: Work, scores: list[float | None]) -> Choice:
        of_class = self._terms.of_class
        most = sum(self._terms.papers[work.chapter].points.values())
        due = of_class.due_for(*work.key)
        return deadlines.choose(work.attempts, scores, most, of_class.late, due)

    def _lateness(self, work: Work, choice: Choice) -> Lateness:
        of_class = self._terms.of_class
        return Lateness(
            work.attempts[choice.number].handed_in,
            of_class.due_for(*work.key),
            choice.penalty if work.chapter in of_class.due else None,
        )

    def _lateness_facts(self, work: Work, choice: Choice) -> dict:
        late = self._lateness(work, choice)
        return {
            "handed_in": _iso(late.handed_in),
            "due": _iso(late.due),
            "penalty": late.penalty,
            "notes": list(choice.notes),
        }

    def _write_notebooks(self, work: Work, choice: Choice) -> None:
        """Write what came in and what ran to where nbgrader has them."""
        attempt, content = (
            each[choice.number] for each in (work.attempts, work.contents)
        )
        executed = self._course.notebook("autograded", *work.key)
        write_beside(executed, work.outcomes[choice.number].notebook)
        submitted = self._course.notebook("submitted", *work.key)
        write_beside(submitted, content.notebook)
        for model, files in content.models.items():
            for name, data in files.items():
                write_beside(submitted.parent / model / name, data)
        if attempt.handed_in:
            time = attempt.handed_in.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
            for folder in (executed.parent, submitted.parent):
                write_beside(folder / deadlines.TIMESTAMP, time)

    def _entry(self, work: Work, choice: Choice, scores: list[float | None]) -> dict:
        outcome = work.outcomes[choice.number]
        entry = outcome.to_dict() | self._lateness_facts(work, choice)
        del entry["notebook"]
        attempts = [
            {
                "name": attempt.name,
                "handed_in": _iso(attempt.handed_in),
                "status": each.status,
                "reason": each.reason,
                "score": score,
            }
            for attempt, each, score in zip(
                work.attempts, work.outcomes, scores, strict=True
            )
        ]
        return entry | {
            "fingerprint": work.fingerprint,
            "paper": self._terms.digests[work.chapter],
            "attempt": work.attempts[choice.number].name,
            "attempts": attempts,
            "choice": choice.number,
        }

    # --- the class

    def write_tables(self, students: list[Path]) -> list[dict]:
        """Write grades.csv and audit.jsonl, and feedback with what was given by hand.

        Args:
            students: those of this class; the journal may hold others.

        Returns:
            The rows of grades.csv.
        """
        rows, lines, known = [], [], self._book.students()
        for chapter in sorted(self._terms.papers):
            facts, entered = self._book.facts(chapter), self._book.rows(chapter)
            for student in sorted(path.name for path in students):
                entry = self._journal.find(student, chapter)
                row = entered.get(student) if entry["status"] == GRADED else None
                if row and row.hand:
                    self._write_page(entry, row)
                own = facts | known.get(student, {})
                rows.append(report.grade(entry, row, own))
                lines.append(report.audit(entry, row))
        write_beside(self._out / "audit.jsonl", "".join(lines))
        write_beside(self._out / "grades.csv", report.grades(rows))
        return rows

    def _write_page(self, entry: dict, row: Row | None = None) -> None:
        """Write a student's feedback, with what a person gave and said."""
        outcome = self._outcome(entry)
        hand = [
            feedback.HandGrade(name, score, comment)
            for name, (score, comment) in (row.hand if row else {}).items()
        ]
        page = feedback.page(
            outcome,
            self._terms.papers[outcome.chapter],
            hand=hand,
            site=self._site,
            penalty=entry["penalty"] or 0.0,
            notes=entry["notes"],
        )
        write_beside(self._page((outcome.student, outcome.chapter)), page)

    def _outcome(self, entry: dict) -> Outcome:
        outcome = Outcome.from_dict(entry)
        path = self._course.notebook("autograded", outcome.student, outcome.chapter)
        if outcome.status == GRADED and path.is_file():
            outcome.notebook = path.read_text(encoding="utf-8")
        return outcome

    def write_report(self, students: list[Path]) -> None:
        """Write the page for the instructor; without it, the grades stand."""
        try:
            outcomes = self._outcomes(students)
            class_report.write(self._out / "report", outcomes, self._terms.papers)
        except Exception as error:  # whatever it is, the class is graded
            what = f"{type(error).__name__}: {error}"
            print(f"warning: no report on the class ({what})", file=sys.stderr)

    def _outcomes(self, students: list[Path]) -> Iterator[dict]:
        """Give what became of every submission, with its notebook, one at a time."""
        names = {path.name for path in students}
        for entry in self._journal.entries():
            if entry["student"] in names and entry["chapter"] in self._terms.papers:
                yield self._outcome(entry).to_dict()


def _iso(time: datetime | None) -> str | None:
    return time and time.isoformat()
