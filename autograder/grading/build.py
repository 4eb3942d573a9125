"""Set up the course that a class is graded in: sources, release, students."""

import sqlalchemy
from nbgrader.converters import GenerateAssignment

from autograder.files import write_beside
from autograder.generator import write_nbgrader_source
from autograder.grading.course import Course
from autograder.grading.tasks import UNGRADED, Result

CONFIG = '''"""nbgrader's settings for this class: in this folder, run `nbgrader …`."""

from pathlib import Path

from autograder.grading.settings import configure

configure(get_config(), Path(__file__).resolve().parent, db_url={db_url!r})
'''


class CourseError(Exception):
    """The course cannot be set up; says what to do."""


def build(course: Course, chapters: list[str], students: list[str]) -> dict[str, dict]:
    """Write the sources, release them, enter the students; return facts by chapter."""
    course.root.mkdir(parents=True, exist_ok=True)
    _write_config(course)
    for chapter in chapters:
        write_nbgrader_source(chapter, course.root / "source" / chapter)
    try:
        with course.gradebook():
            pass  # creates the tables before several processes would
        for chapter in chapters:
            _release(course, chapter)
        return _enter(course, chapters, students)
    except (sqlalchemy.exc.SQLAlchemyError, ModuleNotFoundError) as error:
        cause = " ".join(str(getattr(error, "orig", error)).split())
        where = sqlalchemy.make_url(course.db_url).render_as_string()
        raise CourseError(f"{where}: the gradebook cannot be used ({cause})") from None


def _write_config(course: Course) -> None:
    text = CONFIG.format(db_url=course.db)
    # only its owner reads it: the gradebook's URL may hold a password
    write_beside(course.root / "nbgrader_config.py", text, mode=0o600)


def _release(course: Course, chapter: str) -> None:
    done = course.convert(GenerateAssignment, chapter, ".", course.config())
    if not done["success"]:
        if "submissions associated" in done["error"] + done.get("log", ""):
            raise CourseError(
                f"{course.root}: holds grades for another version of {chapter}. "
                "Give another --out, or move this folder away."
            )
        last = done["error"].strip().splitlines()[-1]
        raise CourseError(f"{chapter}: nbgrader cannot release it ({last})")


def _enter(course: Course, chapters: list[str], students: list[str]) -> dict[str, dict]:
    with course.gradebook() as gradebook:
        for student in students:
            gradebook.update_or_create_student(student)
        facts = {}
        for chapter in chapters:
            assignment = gradebook.find_assignment(chapter)
            facts[chapter] = {
                "duedate": str(assignment.duedate or ""),
                "max_score": str(assignment.max_score),
            }
        return facts


def handed_in(course: Course) -> set[tuple[str, str]]:
    """Return the students and chapters that have an entry in the gradebook."""
    with course.gradebook() as gradebook:
        return {
            (submission.student.id, assignment.name)
            for assignment in gradebook.assignments
            for submission in assignment.submissions
        }


def forget_ungraded(
    course: Course, results: list[Result], before: set[tuple[str, str]]
) -> None:
    """Remove the entries that a failed grading left: they would be exported as 0.

    An entry that was there before keeps its grades.
    """
    new = handed_in(course) - before
    with course.gradebook() as gradebook:
        for result in results:
            if result.status == UNGRADED and (result.student, result.chapter) in new:
                gradebook.remove_submission(result.chapter, result.student)
