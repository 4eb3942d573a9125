"""Write down what became of a submission, so that a kill at any moment loses nothing.

In this order: the notebooks and the feedback page, which may be written twice; the
gradebook, in one transaction; then the journal's line. What has no line is graded
again. The tables are made of both at the end, as often as one likes.

If one of these steps fails over a submission, this one is ungraded with the fault as
its reason, in this run: it has no line, so that the next run grades it again.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from autograder.files import write_beside
from autograder.grading import class_report, deadlines, feedback, report, seeds
from autograder.grading.clean import say
from autograder.grading.course import Course
from autograder.grading.deadlines import Choice
from autograder.grading.gradebook import Book, Lateness, Row
from autograder.grading.guard import Fault, guarded
from autograder.grading.job import GRADED, Outcome
from autograder.grading.journal import Journal, Key
from autograder.grading.planning import Terms, Work, is_id, is_kept
from autograder.grading.reading import Refused
from autograder.grading.submission import Content
from autograder.grading.version import page_version, versions


@dataclass
class Tables:
    """What is told of a class at the end.

    Attributes:
        rows: of grades.csv.
        lines: of audit.jsonl.
        faults: how often the grader itself failed.
    """

    rows: list[dict[str, str]]
    lines: list[str]
    faults: int = 0


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
        self._faults: dict[Key, Fault] = {}
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
        for student in filter(lambda path: is_id(path.name), students):
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

        A due date that has changed since then is entered, and a page that would be
        written otherwise is written again; the grades stay.
        """
        entry = self._journal.find(*work.key)
        if entry is None or not is_kept(entry, work, self._terms):
            return False
        if not self._page(work.key).is_file():
            return False
        facts: dict[str, Any] = {"page": page_version()}
        is_graded = entry["status"] == GRADED
        if is_graded:
            if work.key not in self._entered:
                return False  # another gradebook, perhaps
            choice = self._choose(work, [each["score"] for each in entry["attempts"]])
            if choice.number != entry["choice"]:
                return False
            facts |= self._lateness_facts(work, choice)
        if facts != {name: entry.get(name) for name in facts}:
            self._write_page(entry | facts)
            if is_graded:
                self._book.write_lateness(*work.key, self._lateness(work, choice))
            self._journal.add(entry | facts)
        return True

    def add(self, works: Sequence[Work]) -> None:
        """Write down submissions whose attempts all have an outcome.

        Those of a group share a transaction of the gradebook and a wait for the disk:
        before the journal has their lines, none of them counts as graded. If the group
        cannot be entered, each is by itself: the fault is one submission's.
        """
        written = []
        for work in works:
            done = guarded(self._write_files, work)
            if isinstance(done, Fault):
                self.fail(work.key, done)
            else:
                written.append((work.key, *done))
        if isinstance(guarded(self._enter, written), Fault):
            for each in written:
                fault = guarded(self._enter, [each])
                if isinstance(fault, Fault):
                    self.fail(each[0], fault)

    def fail(self, key: Key, fault: Fault) -> None:
        """Let a submission be ungraded because the grader failed over it."""
        self._faults[key] = fault
        if isinstance(guarded(self._write_page, self._entry_of(key)), Fault):
            self._page(key).unlink(missing_ok=True)  # what it said holds no more

    def _enter(
        self, written: Sequence[tuple[Key, dict, tuple[Outcome, Lateness] | None]]
    ) -> None:
        """Enter what was written to files into the gradebook, then the journal."""
        self._book.write_all([graded for _, _, graded in written if graded])
        self._entered |= {key for key, _, graded in written if graded}
        self._journal.add(*(entry for _, entry, _ in written))

    def _write_files(self, work: Work) -> tuple[dict, tuple[Outcome, Lateness] | None]:
        """Write notebooks and feedback; return what journal and gradebook get."""
        scores = [o.score if o.status == GRADED else None for o in work.done]
        choice = self._choose(work, scores)
        outcome, content = work.done[choice.number], work.contents[choice.number]
        if not isinstance(content, Refused):
            outcome.sha256 = content.sha256()
        outcome.versions = outcome.versions or versions()
        entry = self._entry(work, choice, scores)
        if outcome.status != GRADED or isinstance(content, Refused):
            self._write_page(entry)
            return entry, None
        self._write_notebooks(work, choice, content)
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

    def _write_notebooks(self, work: Work, choice: Choice, content: Content) -> None:
        """Write what came in and what ran to where nbgrader has them."""
        attempt = work.attempts[choice.number]
        executed = self._course.notebook("autograded", *work.key)
        write_beside(executed, work.done[choice.number].notebook)
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
        outcome = work.done[choice.number]
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
                work.attempts, work.done, scores, strict=True
            )
        ]
        return entry | {
            "fingerprint": work.fingerprint,
            "page": page_version(),
            "paper": self._terms.digests[work.chapter],
            "seeds": seeds.digest(self._terms.secret),
            "attempt": work.attempts[choice.number].name,
            "attempts": attempts,
            "choice": choice.number,
        }

    def _entry_of(self, key: Key) -> dict:
        """Return what there is to say of a submission: the fault, or the journal's."""
        fault = self._faults.get(key)
        if fault is None:
            entry = self._journal.find(*key)
            if entry is None:
                raise LookupError(f"the journal has no entry of {' and '.join(key)}")
            return entry
        outcome = Outcome(*key, reason=str(fault), log=fault.log)
        outcome.unsafe, outcome.versions = self._terms.unsafe, versions()
        unknown: dict[str, Any] = {"handed_in": None, "due": None, "penalty": None}
        unknown["notes"] = []
        known = {"paper": self._terms.digests[key[1]], "attempt": ""}
        known["seeds"] = seeds.digest(self._terms.secret)
        return outcome.to_dict() | unknown | known

    # --- the class

    def finish(self, students: list[Path]) -> Tables:
        """Write grades.csv, audit.jsonl, and the report on the class.

        Feedback that lacks what a person gave is written again.

        Args:
            students: those of this class; the journal may hold others.
        """
        names = sorted(path.name for path in students)
        tables, about = Tables([], []), class_report.Report(self._terms.papers)
        known = self._book.students()
        for chapter in sorted(self._terms.papers):
            facts, entered = self._book.facts(chapter), self._book.rows(chapter)
            for student in names:
                own = facts | known.get(student, {})
                self._tell((student, chapter), entered.get(student), own, tables, about)
        write_beside(self._out / "grades.csv", report.grades(tables.rows))
        self._write_report(about, tables)
        write_beside(self._out / "audit.jsonl", "".join(tables.lines))
        return tables

    def _tell(
        self,
        key: Key,
        row: Row | Fault | None,
        own: dict[str, str],
        tables: Tables,
        about: class_report.Report,
    ) -> None:
        """Add a submission to the tables and to the report on the class."""
        told = guarded(self._told, key, row, own)
        if isinstance(told, Fault):
            self.fail(key, told)
        fault = guarded(self._report, key, about)
        if isinstance(fault, Fault):
            self.fail(key, fault)
            guarded(self._report, key, about)  # as ungraded; else it is without it
        if isinstance(told, Fault) or key in self._faults:
            told = report.of_a_fault(self._entry_of(key), own)
        tables.rows.append(told[0])
        tables.lines.append(told[1])
        tables.faults += bool(self._entry_of(key)["log"])

    def _told(
        self, key: Key, row: Row | Fault | None, own: dict[str, str]
    ) -> tuple[dict[str, str], str]:
        """Return a row and a line; add to the page what was given by hand."""
        if isinstance(row, Fault):
            raise row
        entry = self._entry_of(key)
        row = row if entry["status"] == GRADED else None
        if row and row.hand:
            self._write_page(entry, row)
        return report.grade(entry, row, own), report.audit(entry, row)

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

    def _report(self, key: Key, about: class_report.Report) -> None:
        """Add a submission to the report on the class; its notebook is read for it."""
        about.add(self._outcome(self._entry_of(key)).to_dict())

    def _write_report(self, about: class_report.Report, tables: Tables) -> None:
        """Write the page for the instructor; without it, the grades stand."""
        fault = guarded(about.write, self._out / "report")
        if isinstance(fault, Fault):
            say(f"warning: no report on the class ({fault})", sys.stderr)
            tables.lines.append(report.audit_of_the_report(fault))
            tables.faults += 1


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()
