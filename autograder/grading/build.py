"""Set up the course that a class is graded in: sources and release."""

import contextlib
import json
import sqlite3
from collections.abc import Iterator

import sqlalchemy
from nbgrader.api import Gradebook, MissingEntry
from nbgrader.converters import GenerateAssignment

from autograder.files import write_beside
from autograder.generator import write_folder
from autograder.grading.course import Course
from autograder.grading.paper import Paper

CONFIG = '''"""nbgrader's settings for this class: in this folder, run `nbgrader …`."""

from pathlib import Path

from autograder.grading.settings import configure

configure(get_config(), Path(__file__).resolve().parent, db_url={db_url!r})
'''


class CourseError(Exception):
    """The course cannot be set up; says what to do."""


def build(course: Course, papers: list[Paper]) -> None:
    """Write the sources and release them, where that has not been done already.

    Raises:
        CourseError: the folder or the gradebook holds something else, or the database
            cannot be used.
    """
    course.root.mkdir(parents=True, exist_ok=True)
    _write_config(course)
    is_new = not (course.db or course.gradebook_file.exists())
    try:
        with course.gradebook() as gradebook:
            new = [each for each in papers if not _is_released(course, gradebook, each)]
        for paper in new:
            folder = course.root / "source" / paper.chapter
            write_folder(paper.chapter, folder, paper.source, paper.parts)
            with _many_small_steps() if is_new else contextlib.nullcontext():
                _release(course, paper.chapter)
    except (sqlalchemy.exc.SQLAlchemyError, ModuleNotFoundError) as error:
        cause = " ".join(str(getattr(error, "orig", error)).split())
        where = sqlalchemy.make_url(course.db_url).render_as_string()
        raise CourseError(f"{where}: the gradebook cannot be used ({cause})") from None


@contextlib.contextmanager
def _many_small_steps() -> Iterator[None]:
    """Let SQLite not wait for the disk after each step: nbgrader makes some sixty.

    Only for a gradebook without grades. What a kill leaves half done is released again,
    and the first grades that are entered wait for all that came before.
    """

    def hurry(connection: sqlite3.Connection, record: object) -> None:
        connection.execute("PRAGMA synchronous=OFF")

    sqlalchemy.event.listen(sqlalchemy.Engine, "connect", hurry)
    try:
        yield
    finally:
        sqlalchemy.event.remove(sqlalchemy.Engine, "connect", hurry)


def _write_config(course: Course) -> None:
    text = CONFIG.format(db_url=course.db)
    # only its owner reads it: the gradebook's URL may hold a password
    write_beside(course.root / "nbgrader_config.py", text, mode=0o600)


def _is_released(course: Course, gradebook: Gradebook, paper: Paper) -> bool:
    """Tell whether the folder and the gradebook have just this version of a chapter.

    A release takes seconds, and a grading that goes on after a kill needs none.
    """
    name = f"{paper.chapter}.ipynb"
    source = course.root / "source" / paper.chapter / name
    release = course.root / "release" / paper.chapter / name
    if not (source.is_file() and release.is_file()):
        return False
    if source.read_text(encoding="utf-8") != paper.source:
        return False
    try:
        notebook = gradebook.find_notebook(paper.chapter, paper.chapter)
    except MissingEntry:
        return False
    points = {cell.name: cell.max_score for cell in notebook.grade_cells}
    texts = {cell.name: cell.source for cell in notebook.source_cells}
    return points == paper.points and texts == _texts(paper)


def _texts(paper: Paper) -> dict[str, str]:
    """Return what nbgrader keeps of a chapter's cells: stubs, and checks in full."""
    kept = {}
    for notebook in (paper.released, paper.source):
        for cell in json.loads(notebook)["cells"]:
            grading = cell["metadata"].get("nbgrader")
            if grading and (grading["locked"] or grading["grade_id"] not in kept):
                kept[grading["grade_id"]] = "".join(cell["source"])
    return kept


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
