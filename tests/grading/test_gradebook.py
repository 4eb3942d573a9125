"""The gradebook: our rows are those that nbgrader's own ``autograde`` writes.

Both get the same executed notebook. So formgrader, export and feedback, which read the
rows, cannot tell who wrote them.
"""

import json
from dataclasses import replace
from datetime import UTC, datetime

import nbformat
import pytest
import sqlalchemy
from nbgrader.api import get_alembic_version
from nbgrader.converters import Autograde

from autograder.grading.build import build
from autograder.grading.course import Course
from autograder.grading.gradebook import Book, GradebookError, Lateness
from autograder.grading.job import GRADED, Outcome, Verdict
from autograder.grading.paper import Paper, exercise_of

CHAPTER, STUDENT = "03_positional_encoding", "amelia.brandt"
HANDED_IN = datetime(2026, 12, 2, 18, tzinfo=UTC)
DUE = datetime(2026, 12, 1, 18, tzinfo=UTC)
TABLES = {
    "grade": "auto_score manual_score extra_credit needs_manual_grade name",
    "comment": "auto_comment manual_comment name",
    "submitted_notebook": "flagged late_submission_penalty",
    "submitted_assignment": "timestamp extension student_id",
}


@pytest.fixture(scope="module")
def paper() -> Paper:
    return Paper.of(CHAPTER)


@pytest.fixture
def course(tmp_path, paper):
    """Make a course in which the chapter is released."""

    def make(name: str) -> Course:
        course = Course(tmp_path / name)
        build(course, [paper])
        with Book(course) as book:
            book.enter_students({STUDENT: {}})
        return course

    return make


def executed(paper: Paper) -> Outcome:
    """An answer that fails every other check, and has written nothing by hand."""
    notebook = nbformat.reads(paper.released, as_version=4)
    source = {
        cell.metadata.nbgrader.grade_id: cell.source
        for cell in nbformat.reads(paper.source, as_version=4).cells
        if "nbgrader" in cell.metadata
    }
    outcome = Outcome(STUDENT, CHAPTER, GRADED)
    answers = 0
    for cell in notebook.cells:
        grading = cell.metadata.get("nbgrader", {})
        if grading.get("solution") and not grading["grade"]:
            answers += 1
            cell.source += "\n# an answer" if answers % 2 else ""
        elif grading.get("solution") and grading["grade"]:
            cell.source += "\n\nAn answer."
            facts = {"exercise": grading.grade_id, "grade_id": grading.grade_id}
            facts |= {"points": grading.points, "answer": cell.source}
            outcome.by_hand.append(facts)
        elif grading.get("grade"):
            cell.source = source[grading.grade_id]
            passed = len(outcome.verdicts) % 2 == 0
            if not passed:
                error = {"ename": "CheckFailure", "evalue": "no", "traceback": ["no"]}
                cell.outputs = [nbformat.v4.new_output("error", **error)]
            score = grading.points if passed else 0
            exercise = exercise_of(grading.grade_id)
            outcome.verdicts.append(
                Verdict(exercise, grading.grade_id, grading.points, score)
            )
    outcome.notebook = nbformat.writes(notebook)
    return outcome


def by_nbgrader(course: Course, outcome: Outcome, late: bool) -> None:
    """Let nbgrader's own converter save what a notebook's outputs say."""
    path = course.notebook("submitted", STUDENT, CHAPTER)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(outcome.notebook, encoding="utf-8")
    if late:
        stamp = path.with_name("timestamp.txt")
        stamp.write_text(HANDED_IN.strftime("%Y-%m-%d %H:%M:%S UTC"))
    config = course.config()
    config.Autograde.sanitize_preprocessors = []
    config.Autograde.autograde_preprocessors = [
        "nbgrader.preprocessors.SaveAutoGrades",
        "nbgrader.preprocessors.AssignLatePenalties",
    ]
    config.LateSubmissionPlugin.penalty_method = "zero" if late else "none"
    done = course.convert(Autograde, CHAPTER, STUDENT, config)
    assert done["success"], done


def rows(course: Course) -> dict[str, list[dict]]:
    """Read the tables that a grading writes, less their random keys."""
    with sqlalchemy.create_engine(course.db_url).connect() as database:
        found = {}
        for table, columns in TABLES.items():
            join = (
                " JOIN base_cell ON base_cell.id = cell_id" if "name" in columns else ""
            )
            query = f"SELECT {', '.join(columns.split())} FROM {table}{join}"
            result = database.execute(sqlalchemy.text(query)).mappings()
            found[table] = sorted(map(dict, result), key=repr)
    return found


def late_rule(course: Course, monkeypatch) -> None:
    """Set a due date and the rule that late work earns nothing."""
    with Book(course) as book:
        book.enter_due_dates({CHAPTER: DUE})
    config = course.config()
    config.LateSubmissionPlugin.penalty_method = "zero"
    monkeypatch.setattr(Course, "config", lambda self: config.copy())


@pytest.mark.parametrize("late", [False, True], ids=["in time", "late"])
def test_the_rows_are_nbgraders_own(late, course, paper, monkeypatch) -> None:
    outcome = executed(paper)
    theirs, ours = course("theirs"), course("ours")
    if late:
        with Book(theirs) as book:
            book.enter_due_dates({CHAPTER: DUE})
    for _ in range(2):  # a second grading changes nothing
        by_nbgrader(theirs, outcome, late)
    if late:
        late_rule(ours, monkeypatch)
    with Book(ours) as book:
        for _ in range(2):
            book.write(outcome, Lateness(HANDED_IN if late else None))
    found = rows(ours)
    assert found == rows(theirs)
    assert len(found["grade"]) == len(paper.points)
    assert any(row["auto_comment"] == "No response." for row in found["comment"])
    penalties = [row["late_submission_penalty"] for row in found["submitted_notebook"]]
    assert penalties == [outcome.score if late else None]


def test_a_line_to_be_read_is_a_comment_on_its_answer(course, paper) -> None:
    outcome = executed(paper)
    flag = {"exercise": "wavelengths", "cell": 5, "line": 2, "text": "f(x)", "why": "…"}
    outcome.flags = [flag]
    ours = course("ours")
    with Book(ours) as book:
        book.write(outcome, Lateness())
        assert book.rows(CHAPTER)[STUDENT].hand == {}  # our feedback says nothing of it
    comments = {row["name"]: row["auto_comment"] for row in rows(ours)["comment"]}
    said = "To be read by a person:\nwavelengths: cell 5, line 2: f(x) (…)"
    assert comments["wavelengths"] == said
    assert comments["shift-matrix"] != said
    grades = [row for row in rows(ours)["grade"] if row["name"] == "test-wavelengths"]
    assert not grades[0]["needs_manual_grade"]  # its points stay


def test_points_given_by_hand_stay_and_are_looked_at_again(course, paper) -> None:
    outcome = executed(paper)
    theirs, ours = course("theirs"), course("ours")
    exercise = outcome.by_hand[0]["grade_id"]
    by_nbgrader(theirs, outcome, late=False)
    with Book(ours) as book:
        book.write(outcome, Lateness())
    for each in (theirs, ours):
        with each.gradebook() as gradebook:
            grade = gradebook.find_grade(exercise, CHAPTER, CHAPTER, STUDENT)
            grade.manual_score, grade.needs_manual_grade = 2, False
            gradebook.db.commit()
    with Book(ours) as book:
        assert book.rows(CHAPTER)[STUDENT].by_hand == []
        book.write(outcome, Lateness())
        assert book.rows(CHAPTER)[STUDENT].confirm == [exercise]
    by_nbgrader(theirs, outcome, late=False)
    assert rows(ours) == rows(theirs)


def test_a_class_with_its_own_dates(course, paper) -> None:
    ours = course("ours")
    with Book(ours) as book:
        book.enter_due_dates({CHAPTER: DUE})
        own = datetime(2026, 12, 2, 6, tzinfo=UTC)
        book.write(executed(paper), Lateness(HANDED_IN, own, 1.5))
        (row,) = book.rows(CHAPTER).values()
    assert float(row.columns["late_submission_penalty"]) == 1.5
    assert row.columns["timestamp"] == "2026-12-02 18:00:00"
    raw, score = float(row.columns["raw_score"]), float(row.columns["score"])
    assert score == raw - 1.5
    with ours.gradebook() as gradebook:
        submission = gradebook.find_submission(CHAPTER, STUDENT)
        assert submission.duedate == datetime(2026, 12, 2, 6)


def steps_of_reading(book: Book) -> int:
    """Count what SQLite does to read a chapter's rows, in thousands of its steps."""
    found = 0

    def count() -> None:
        nonlocal found
        found += 1

    connection = book._gradebook.db.connection().connection.driver_connection
    connection.set_progress_handler(count, 1000)
    assert book.rows(CHAPTER)
    connection.set_progress_handler(None, 0)
    return found


def test_a_large_class_is_read_back_as_fast_as_a_small_one(course, paper) -> None:
    outcome = executed(paper)
    with Book(course("ours")) as book:
        taken = []
        for students in (range(50), range(50, 400)):
            names = [f"student-{number}" for number in students]
            book.enter_students({name: {} for name in names})
            book.write_all([(replace(outcome, student=n), Lateness()) for n in names])
            taken.append(steps_of_reading(book))
        read = book.rows(CHAPTER).values()
    assert len(read) == 400
    assert {row.columns["raw_score"] for row in read} == {str(float(outcome.score))}
    assert taken[1] <= 9 * taken[0]  # of eight times as many


def test_a_transaction_is_all_or_nothing(course, paper, monkeypatch) -> None:
    ours, outcome = course("ours"), executed(paper)

    enter = Book._enter

    def fail(*args) -> None:
        enter(*args)
        raise sqlalchemy.exc.OperationalError("", {}, OSError("the disk is full"))

    monkeypatch.setattr("autograder.grading.gradebook.PATIENCE", 0)
    with Book(ours) as book:
        with monkeypatch.context() as patched:
            patched.setattr(Book, "_enter", fail)
            with pytest.raises(GradebookError, match="the disk is full"):
                book.write(outcome, Lateness())
        assert book.handed_in() == set()
        book.write(outcome, Lateness())
        assert book.handed_in() == {(STUDENT, CHAPTER)}


def test_a_release_is_made_once_and_again_if_it_differs(course, paper) -> None:
    ours = course("ours")
    release = ours.root / "release" / CHAPTER / f"{CHAPTER}.ipynb"
    before = release.stat().st_mtime_ns
    build(ours, [paper])
    assert release.stat().st_mtime_ns == before
    source = ours.root / "source" / CHAPTER / f"{CHAPTER}.ipynb"
    source.write_text(json.dumps(json.loads(paper.source)))
    build(ours, [paper])
    assert release.stat().st_mtime_ns > before


def test_a_new_gradebook_has_the_version_that_nbgrader_gives_one(tmp_path):
    """nbgrader asks a program for it; ours says it without, and must say the same."""
    engine = sqlalchemy.create_engine(Course(tmp_path).db_url)
    Course(tmp_path).gradebook().close()
    with engine.begin() as connection:
        (row,) = connection.execute(sqlalchemy.text("select * from alembic_version"))
    assert tuple(row) == (get_alembic_version(),)
