"""Write grades into nbgrader's gradebook, as its own ``autograde`` would.

nbgrader opens the database some ten times for a submission. Here one connection stays
open, and what is known about a submission is one transaction: a kill leaves all of it
or nothing. Nothing graded by hand is ever changed.
"""

import contextlib
import json
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import nbformat
import sqlalchemy
from nbgrader.api import (
    Assignment,
    Comment,
    Grade,
    Gradebook,
    GradeCell,
    Notebook,
    SolutionCell,
    Student,
    SubmittedAssignment,
    SubmittedNotebook,
    TaskCell,
)
from nbgrader.preprocessors import AssignLatePenalties
from nbgrader.utils import compute_checksum
from sqlalchemy.orm import Session

from autograder.grading.clean import sql
from autograder.grading.course import Course
from autograder.grading.deadlines import after_penalty
from autograder.grading.guard import ConcernsAll, Fault, guarded
from autograder.grading.job import Outcome, flag_text
from autograder.grading.paper import exercise_of

NO_RESPONSE = "No response."  # nbgrader's words for an answer as it was handed out
TO_READ = "To be read by a person:"
# what a database says of a value, and not of itself
OF_ONE = (sqlalchemy.exc.DataError, sqlalchemy.exc.IntegrityError)
NAME = 128  # characters of a student's name in nbgrader's tables
PATIENCE = 2  # seconds before a write that the database refused is tried once more


class GradebookError(ConcernsAll):
    """The gradebook's database cannot be used; says which and why."""


@dataclass(frozen=True)
class Lateness:
    """When a submission came, by a class's own dates.

    Args:
        handed_in: when; None if unknown.
        due: the student's due date, with the extension; None without one.
        penalty: points taken off. None leaves it to nbgrader's own late rule.
    """

    handed_in: datetime | None = None
    due: datetime | None = None
    penalty: float | None = None

    def is_for_nbgrader(self, due: datetime | None) -> bool:
        """Tell whether nbgrader's own late rule has to say what it costs.

        Args:
            due: of the chapter, as the gradebook has it.
        """
        if self.penalty is not None or due is None or self.handed_in is None:
            return False
        return self.handed_in.astimezone(UTC).replace(tzinfo=None) > due


@dataclass
class Row:
    """What the gradebook holds about a submission."""

    columns: dict[str, str]  # as in nbgrader's CSV export
    scores: dict[str, dict[str, float]] = field(default_factory=dict)  # by exercise
    by_hand: list[str] = field(default_factory=list)  # exercises that wait
    confirm: list[str] = field(default_factory=list)  # points given before this run
    hand: dict[str, tuple[float | None, str]] = field(default_factory=dict)


@dataclass(frozen=True)
class _Chapter:
    """The keys of a chapter's rows, read once."""

    assignment: str
    notebook: str
    graded: dict[str, str]  # from a cell's id to its name
    commented: dict[str, str]


@dataclass(frozen=True)
class _Entry:
    """What is entered for a submission, beside its grades and comments."""

    student: str
    timestamp: datetime | None
    notebook: str | None  # the key of the student's notebook
    penalty: float


@dataclass(frozen=True)
class _Result:
    """What is entered for a submission: scores and comments by the cell's name."""

    student: str
    chapter: str
    scores: dict[str, float | None]
    comments: dict[str, str | None]
    late: Lateness

    @classmethod
    def of(cls, outcome: Outcome, late: Lateness) -> "_Result":
        """Take it from an outcome."""
        scores: dict[str, float | None] = {
            each.grade_id: each.score for each in outcome.verdicts
        }
        scores |= {each["grade_id"]: None for each in outcome.by_hand}
        comments = _comments(outcome.notebook) | _flagged(outcome.flags)
        return cls(outcome.student, outcome.chapter, scores, comments, late)


class Book:
    """nbgrader's gradebook, open for a whole grading; not for several threads."""

    def __init__(self, course: Course) -> None:
        self.course = course
        self._where = sqlalchemy.make_url(course.db_url).render_as_string()
        self._chapters: dict[str, _Chapter] = {}
        self._late_rule = AssignLatePenalties(config=course.config())
        self._late_rule.init_plugin()
        with self._errors():
            self._gradebook = Gradebook(course.db_url)

    def close(self) -> None:
        """Close the connection."""
        self._gradebook.close()

    def __enter__(self) -> "Book":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @contextlib.contextmanager
    def _errors(self, of_one: tuple[type[Exception], ...] = ()) -> Iterator[None]:
        """Tell in one line what the database's driver tells in many; but for some."""
        try:
            yield
        except of_one:
            raise
        except (sqlalchemy.exc.SQLAlchemyError, ModuleNotFoundError) as error:
            cause = " ".join(str(getattr(error, "orig", error)).split())
            text = f"{self._where}: the gradebook cannot be used ({cause})"
            raise GradebookError(text) from None

    def _transaction(
        self,
        work: Callable[[Session], None],
        of_one: tuple[type[Exception], ...] = (),
    ) -> None:
        """Do all of some work or nothing; once more if the connection was lost."""
        session = self._gradebook.db
        with self._errors(of_one):
            try:
                work(session)
                session.commit()
            except sqlalchemy.exc.OperationalError:
                session.rollback()
                time.sleep(PATIENCE)
                work(session)
                session.commit()
            finally:
                with contextlib.suppress(sqlalchemy.exc.SQLAlchemyError):
                    session.rollback()  # nothing stays open, and nothing in memory

    # --- the class

    def enter_students(self, students: dict[str, dict[str, str]]) -> None:
        """Enter students that are not there yet.

        Args:
            students: by id, with what is known of ``first_name``, ``last_name`` and
                ``email``; other values stay as they are.
        """

        def work(session: Session) -> None:
            there = {student.id: student for student in session.query(Student)}
            for name, facts in students.items():
                student = there.get(name) or Student(id=name)
                for key, value in facts.items():
                    if value:
                        setattr(student, key, sql(value, NAME))
                session.add(student)

        self._transaction(work)

    def students(self) -> dict[str, dict[str, str]]:
        """Return what is known of the students, by id, as columns of grades.csv."""
        with self._errors():
            columns = ("last_name", "first_name", "email")
            found = {
                student.id: {name: getattr(student, name) or "" for name in columns}
                for student in self._gradebook.db.query(Student)
            }
            self._gradebook.db.rollback()
        return found

    def enter_due_dates(self, dates: dict[str, datetime]) -> None:
        """Enter when chapters are due."""

        def work(session: Session) -> None:
            for chapter, due in dates.items():
                found = session.query(Assignment).filter_by(name=chapter).one()
                found.duedate = _naive(due)

        self._transaction(work)

    def facts(self, chapter: str) -> dict[str, str]:
        """Return the columns of grades.csv that a student without a grade has, too."""
        with self._errors():
            assignment = self._gradebook.find_assignment(chapter)
            facts = {
                "duedate": str(assignment.duedate or ""),
                "max_score": str(assignment.max_score),
            }
            self._gradebook.db.rollback()
        return facts

    def handed_in(self) -> set[tuple[str, str]]:
        """Return the students and chapters that have an entry."""
        query = sqlalchemy.select(SubmittedAssignment.student_id, Assignment.name).join(
            Assignment, Assignment.id == SubmittedAssignment.assignment_id
        )
        with self._errors():
            found = {tuple(row) for row in self._gradebook.db.execute(query)}
            self._gradebook.db.rollback()
        return found

    # --- a submission

    def write(self, outcome: Outcome, late: Lateness) -> None:
        """Enter a graded submission, in place of what an earlier grading entered."""
        self.write_all([(outcome, late)])

    def write_all(self, graded: Sequence[tuple[Outcome, Lateness]]) -> None:
        """Enter graded submissions, all in one transaction."""
        results = [_Result.of(outcome, late) for outcome, late in graded]

        def work(session: Session) -> None:
            for name in sorted({result.chapter for result in results}):
                self._enter(session, name, [r for r in results if r.chapter == name])

        if results:
            self._transaction(work, OF_ONE)

    def _enter(self, session: Session, name: str, results: list["_Result"]) -> None:
        """Enter results of a chapter; those of students without an entry at once."""
        chapter = self._chapter(session, name)
        due = session.scalar(
            sqlalchemy.select(Assignment.duedate).filter_by(id=chapter.assignment)
        )
        query = sqlalchemy.select(SubmittedAssignment.student_id).where(
            SubmittedAssignment.assignment_id == chapter.assignment,
            SubmittedAssignment.student_id.in_([each.student for each in results]),
        )
        there, new = set(session.scalars(query)), []
        for result in results:
            if result.student in there or result.late.is_for_nbgrader(due):
                self._overwrite(session, chapter, result)
            else:
                new.append(result)
        _insert(session, chapter, new, due)

    def _overwrite(
        self, session: Session, chapter: _Chapter, result: "_Result"
    ) -> None:
        submitted = self._submission(session, chapter, result.student)
        (notebook,) = submitted.notebooks
        for grade in notebook.grades:
            name = chapter.graded[grade.cell_id]
            if name in result.scores:
                _enter_score(grade, result.scores[name])
        for comment in notebook.comments:
            name = chapter.commented[comment.cell_id]
            if name in result.comments:
                comment.auto_comment = result.comments[name]
        self._enter_lateness(session, submitted, result.late)

    def write_lateness(self, student: str, chapter: str, late: Lateness) -> None:
        """Enter another date or penalty for a submission; its grades stay."""

        def work(session: Session) -> None:
            ids = self._chapter(session, chapter)
            submitted = self._submission(session, ids, student)
            self._enter_lateness(session, submitted, late)

        self._transaction(work, OF_ONE)

    def _chapter(self, session: Session, name: str) -> _Chapter:
        if name not in self._chapters:
            notebook = (
                session.query(Notebook)
                .join(Assignment, Assignment.id == Notebook.assignment_id)
                .filter(Assignment.name == name, Notebook.name == name)
                .one()
            )

            def names(kind: type) -> dict[str, str]:
                found: Any = session.query(kind).filter_by(notebook_id=notebook.id)
                return {cell.id: cell.name for cell in found}

            self._chapters[name] = _Chapter(
                notebook.assignment_id,
                notebook.id,
                names(GradeCell) | names(TaskCell),
                names(SolutionCell) | names(TaskCell),
            )
        return self._chapters[name]

    def _submission(
        self, session: Session, chapter: _Chapter, student: str
    ) -> SubmittedAssignment:
        """Find a student's entry, or make it with a row for each cell."""
        ids = {"assignment_id": chapter.assignment, "student_id": student}
        found = session.query(SubmittedAssignment).filter_by(**ids).one_or_none()
        if found is not None:
            return found
        made = SubmittedAssignment(**ids)
        notebook = SubmittedNotebook(notebook_id=chapter.notebook, assignment=made)
        for cell in chapter.graded:
            Grade(cell_id=cell, notebook=notebook)
        for cell in chapter.commented:
            Comment(cell_id=cell, notebook=notebook)
        session.add(made)
        return made

    def _enter_lateness(
        self, session: Session, submitted: SubmittedAssignment, late: Lateness
    ) -> None:
        submitted.timestamp = _naive(late.handed_in)
        (notebook,) = submitted.notebooks
        notebook.late_submission_penalty = None
        session.flush()
        if late.penalty is None:
            penalty = self._penalty_by_nbgrader(session, submitted, notebook)
        else:
            penalty = late.penalty or None
            submitted.extension = _extension(submitted.assignment.duedate, late.due)
        notebook.late_submission_penalty = penalty

    def _penalty_by_nbgrader(
        self,
        session: Session,
        submitted: SubmittedAssignment,
        notebook: SubmittedNotebook,
    ) -> float | None:
        """Apply the late rule of nbgrader's settings, as AssignLatePenalties does."""
        seconds = submitted.total_seconds_late
        if seconds <= 0:
            return None
        session.refresh(notebook, ["score"])
        penalty = self._late_rule.plugin_inst.late_submission_penalty(
            submitted.student_id, notebook.score, seconds
        )
        if penalty is None:
            return None
        return self._late_rule._check_late_penalty(notebook, penalty)

    # --- reading

    def rows(self, chapter: str) -> dict[str, Row | Fault]:
        """Return what is entered for a chapter, by student."""
        with self._errors():
            session = self._gradebook.db
            try:
                return self._rows(session, chapter)
            finally:
                session.rollback()
                session.expunge_all()

    def _rows(self, session: Session, chapter: str) -> dict[str, Row | Fault]:
        ids = self._chapter(session, chapter)
        assignment = session.get(Assignment, ids.assignment)
        students = {student.id: student for student in session.query(Student)}
        grades, comments = self._grades(session, ids), self._comments(session, ids)

        def row(entry: _Entry) -> Row:
            own = grades.get(entry.notebook or "", [])
            points = sum((grade.score for grade, _ in own), start=0.0)
            found = Row(_columns(entry, students[entry.student], assignment, points))
            for grade, most in own:
                _add_grade(found, ids.graded[grade.cell_id], grade, most)
            for comment in comments.get(entry.notebook or "", []):
                _add_comment(found, ids.commented[comment.cell_id], comment)
            return found

        return {each.student: guarded(row, each) for each in _entries(session, ids)}

    def _grades(
        self, session: Session, ids: _Chapter
    ) -> dict[str, list[tuple[sqlalchemy.Row, float]]]:
        """Return the grades with the most points of each, by a student's notebook."""
        most = {
            cell.id: cell.max_score
            for kind in (GradeCell, TaskCell)
            for cell in session.query(kind).filter_by(notebook_id=ids.notebook)
        }
        found = _by_notebook(
            session.query(
                Grade.notebook_id,
                Grade.cell_id,
                Grade.score.label("score"),
                Grade.manual_score,
                Grade.needs_manual_grade,
            ).filter(Grade.cell_id.in_(ids.graded))
        )
        order = list(ids.graded).index
        return {
            notebook: [
                (grade, most[grade.cell_id])
                for grade in sorted(grades, key=lambda grade: order(grade.cell_id))
            ]
            for notebook, grades in found.items()
        }

    def _comments(
        self, session: Session, ids: _Chapter
    ) -> dict[str, list[sqlalchemy.Row]]:
        """Return what persons have written, by a student's notebook."""
        return _by_notebook(
            session.query(
                Comment.notebook_id, Comment.cell_id, Comment.manual_comment
            ).filter(
                Comment.cell_id.in_(ids.commented), Comment.manual_comment.isnot(None)
            )
        )


def _entries(session: Session, ids: _Chapter) -> Iterator[_Entry]:
    """Give what a chapter's submissions have one of.

    nbgrader's own properties, such as SubmittedAssignment.score, ask the database for
    each student, which looks through all grades for it. Here and in the reading of
    grades each table is read once, and no join asks for a column without an index.
    """
    found = (
        session.query(
            SubmittedAssignment.student_id,
            SubmittedAssignment.timestamp,
            SubmittedNotebook.id,
            SubmittedNotebook.late_submission_penalty,
        )
        .outerjoin(
            SubmittedNotebook,
            (SubmittedNotebook.notebook_id == ids.notebook)
            & (SubmittedNotebook.assignment_id == SubmittedAssignment.id),
        )
        .filter(SubmittedAssignment.assignment_id == ids.assignment)
    )
    for student, timestamp, notebook, penalty in found:
        yield _Entry(student, timestamp, notebook, penalty or 0.0)


def _by_notebook(found: Iterable[sqlalchemy.Row]) -> dict[str, list[sqlalchemy.Row]]:
    rows: dict[str, list[sqlalchemy.Row]] = {}
    for each in found:
        rows.setdefault(each.notebook_id, []).append(each)
    return rows


def _insert(
    session: Session, chapter: _Chapter, results: list[_Result], due: datetime | None
) -> None:
    """Enter results of students who have no entry, by one statement for each table.

    One object for each row, as _submission makes them, takes ten times as long.
    """
    rows: dict[Any, list[dict]] = {
        kind: [] for kind in (SubmittedAssignment, SubmittedNotebook, Grade, Comment)
    }
    for result in results:
        for kind, row in _rows_of(result, chapter, due):
            rows[kind].append(row)
    for kind, values in rows.items():
        if values:
            session.execute(sqlalchemy.insert(kind.__table__), values)


def _rows_of(
    result: _Result, chapter: _Chapter, due: datetime | None
) -> Iterator[tuple[type, dict]]:
    """Give the rows of a new entry, by table."""
    submitted, notebook = _new_key(), _new_key()
    yield (
        SubmittedAssignment,
        {
            "id": submitted,
            "assignment_id": chapter.assignment,
            "student_id": result.student,
            "timestamp": _naive(result.late.handed_in),
            "extension": None
            if result.late.penalty is None
            else _extension(due, result.late.due),
        },
    )
    yield (
        SubmittedNotebook,
        {
            "id": notebook,
            "assignment_id": submitted,
            "notebook_id": chapter.notebook,
            "late_submission_penalty": result.late.penalty or None,
        },
    )
    for cell, name in chapter.graded.items():
        score = result.scores.get(name)
        row = {"id": _new_key(), "notebook_id": notebook, "cell_id": cell}
        yield Grade, row | {"auto_score": score, "needs_manual_grade": score is None}
    for cell, name in chapter.commented.items():
        row = {"id": _new_key(), "notebook_id": notebook, "cell_id": cell}
        yield Comment, row | {"auto_comment": result.comments.get(name)}


def _new_key() -> str:
    """Make a key like nbgrader's, of 32 hexadecimal digits, larger than those before.

    Rows then lie at the end of every index. A random key lies anywhere: the larger the
    class, the more pages are written for each student.
    """
    return f"{time.time_ns():016x}{secrets.token_hex(8)}"


def _enter_score(grade: Grade, score: float | None) -> None:
    """Enter points; a person looks where there are none, or where one gave others."""
    grade.auto_score = score
    grade.needs_manual_grade = grade.manual_score is not None or score is None


def _comments(notebook: str) -> dict[str, str | None]:
    """Say of each answer in an executed notebook whether it is as handed out."""
    found = {}
    for plain in json.loads(notebook)["cells"]:
        if plain["metadata"].get("nbgrader", {}).get("solution"):
            cell = nbformat.from_dict(plain | {"outputs": []})
            cell.source = "".join(cell.source)  # in a file it may be a list of lines
            grading = cell.metadata.nbgrader
            untouched = grading.get("checksum") == compute_checksum(cell)
            found[grading.grade_id] = NO_RESPONSE if untouched else None
    return found


def _flagged(flags: list[dict]) -> dict[str, str]:
    """Say by exercise which lines a person should read.

    It accuses nobody: stock nbgrader shows the comment to the student.
    """
    found: dict[str, list[str]] = {}
    for each in flags:
        found.setdefault(each["exercise"], [TO_READ]).append(flag_text(each))
    return {exercise: "\n".join(lines) for exercise, lines in found.items()}


def _naive(when: datetime | None) -> datetime | None:
    """Return a time as nbgrader keeps it: UTC, without a zone."""
    return when and when.astimezone(UTC).replace(tzinfo=None)


def _extension(general: datetime | None, own: datetime | None) -> timedelta | None:
    own = _naive(own)
    if general is None or own is None or own == general:
        return None
    return own - general


def _columns(
    entry: _Entry, student: Student, assignment: Assignment, points: float
) -> dict[str, str]:
    """Return the columns that nbgrader's own CSV export has."""
    row = {
        "assignment": assignment.name,
        "duedate": assignment.duedate,
        "timestamp": entry.timestamp,
        "student_id": student.id,
        "last_name": student.last_name,
        "first_name": student.first_name,
        "email": student.email,
        "raw_score": points,
        "late_submission_penalty": entry.penalty,
        "score": after_penalty(points, entry.penalty),
        "max_score": assignment.max_score,
    }
    return {key: "" if value is None else str(value) for key, value in row.items()}


def _add_comment(row: Row, name: str, comment: sqlalchemy.Row) -> None:
    score, _ = row.hand.get(name, (None, ""))
    row.hand[name] = score, comment.manual_comment


def _add_grade(row: Row, name: str, grade: sqlalchemy.Row, most: float) -> None:
    exercise = exercise_of(name)
    entry = row.scores.setdefault(exercise, {"score": 0.0, "points": 0.0})
    entry["score"] += grade.score or 0.0
    entry["points"] += most
    if grade.needs_manual_grade:
        waiting = row.by_hand if grade.manual_score is None else row.confirm
        waiting.append(exercise)
    if grade.manual_score is not None:
        row.hand[name] = grade.score, ""
