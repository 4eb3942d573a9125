"""``python -m autograder grade``: submissions in, grades and feedback out."""

import argparse
import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from tqdm import tqdm

from autograder import generator
from autograder.files import write_beside
from autograder.generator import Missing, SourceError
from autograder.grading import report, submission
from autograder.grading.apart import SchedulerError, grade_all, pool
from autograder.grading.build import CourseError, build, forget_ungraded, handed_in
from autograder.grading.course import Course
from autograder.grading.settings import CELL_TIMEOUT
from autograder.grading.tasks import UNGRADED, Result, Task

DESCRIPTION = """\
Grade a class with nbgrader. DIR holds STUDENT/CHAPTER/CHAPTER.ipynb.

Writes, in OUT: grades.csv (nbgrader's columns, then `status` and `reason`; ungraded
has no score, which is not 0), feedback/STUDENT/CHAPTER.html, audit.jsonl (a line a
submission), and course/, an nbgrader course with the gradebook in which formgrader
and the other nbgrader commands work. Grading again into the same OUT keeps what was
graded by hand there.

The notebooks are run as nbgrader runs them: as you, on this machine. Grade only what
you would run yourself.
"""


class BadInput(Exception):
    """Something on the command line cannot be; says what to do."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.description = DESCRIPTION
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("--submissions", type=Path, required=True, metavar="DIR", help="what came in")
    add("--out", type=Path, required=True, metavar="DIR", help="where results go")
    add(
        "--chapter",
        action="append",
        metavar="NAME",
        help="grade this chapter (may be repeated); without it, every chapter that at "
        "least one student handed in",
    )
    add(
        "--workers",
        type=_positive,
        default=_cores(),
        metavar="N",
        help="how many submissions at a time (default: one a core)",
    )
    add(
        "--scheduler",
        metavar="ADDRESS",
        help="grade on the cluster of this Dask scheduler, such as tcp://host:8786; "
        "its workers must see the same files at the same paths",
    )
    add(
        "--db",
        default="",
        metavar="URL",
        help="the gradebook's database (default: SQLite, OUT/course/gradebook.db)",
    )
    add(
        "--cell-timeout",
        type=_positive,
        default=CELL_TIMEOUT,
        metavar="S",
        help="seconds after which a cell is stopped (default: %(default)s)",
    )


def _cores() -> int:
    """Count the cores this process may use, where the system tells."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def run(arguments: argparse.Namespace) -> int:
    """Grade a class: grades.csv, feedback and an audit log."""
    out = arguments.out
    try:
        out, students, chapters = _inspect(arguments)
        with _locked(out):
            results = _grade(arguments, out, students, chapters)
    except (BadInput, CourseError, SchedulerError, Missing, SourceError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {error.filename or out}: {error.strerror}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; no results were written", file=sys.stderr)
        return 130
    print(report.table(results))
    print(f"\n{out / 'grades.csv'}\n{out / 'feedback'}{os.sep}\n{out / 'audit.jsonl'}")
    return 0


# --- input ----------------------------------------------------------------------------


def _inspect(arguments: argparse.Namespace) -> tuple[Path, list[Path], list[str]]:
    """Check the arguments before anything is written."""
    folder, out = arguments.submissions.resolve(), arguments.out.resolve()
    if not folder.is_dir():
        what = "is no folder" if folder.exists() else "no such folder"
        raise BadInput(f"{folder}: {what}; give the one that holds STUDENT/CHAPTER/")
    if out == folder or folder in out.parents:
        raise BadInput(f"{out}: is inside the submissions; choose another --out")
    if out in folder.parents and folder.relative_to(out).parts[0] in (
        "course",
        "feedback",
    ):
        raise BadInput(
            f"{folder}: is a folder that grading writes to; copy it elsewhere"
        )
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out}: is a file; choose another --out")
    students = _students(folder)
    return out, students, _chapters(arguments.chapter, folder, students)


def _students(folder: Path) -> list[Path]:
    students = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith("."):
            continue
        if path.is_dir():
            students.append(path)
        else:
            print(f"{path}: is no student's folder, passed over", file=sys.stderr)
    if not students:
        raise BadInput(
            f"{folder}: holds no student's folder; expected STUDENT/CHAPTER/"
        )
    return students


def _chapters(asked: list[str] | None, folder: Path, students: list[Path]) -> list[str]:
    known = generator.chapters()
    unknown = [name for name in asked or [] if name not in known]
    if unknown:
        raise BadInput(
            f"no chapter is named {unknown[0]!r}; there are: {', '.join(known)}"
        )
    if asked:
        return [name for name in known if name in asked]
    found = [name for name in known if any(_handed_in(s, name) for s in students)]
    if not found:
        raise BadInput(
            f"{folder}: no student's folder holds a chapter; expected "
            f"STUDENT/CHAPTER/CHAPTER.ipynb with CHAPTER one of {', '.join(known)}"
        )
    return found


def _handed_in(student: Path, chapter: str) -> bool:
    return (student / chapter).is_dir() or (student / f"{chapter}.ipynb").is_file()


@contextlib.contextmanager
def _locked(out: Path) -> Iterator[None]:
    """Let one command at a time write into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BadInput(
                f"{out}: another grading writes there; wait for it"
            ) from None
        yield


# --- grading --------------------------------------------------------------------------


def _grade(
    arguments: argparse.Namespace, out: Path, students: list[Path], chapters: list[str]
) -> list[Result]:
    course = Course(out / "course", arguments.db, arguments.cell_timeout)
    tasks, results = _plan(course, out, students, chapters)
    with pool(arguments.workers, arguments.scheduler) as executor:
        facts = build(course, chapters, sorted({task.student for task in tasks}))
        before = handed_in(course)
        with tqdm(total=len(tasks), unit="notebook", desc="grading") as progress:
            for result in grade_all(executor, tasks):
                results.append(result)
                progress.update()
    forget_ungraded(course, results, before)
    results.sort(key=lambda result: (result.chapter, result.student))
    _write(out, results, facts)
    return results


def _write(out: Path, results: list[Result], facts: dict[str, dict]) -> None:
    for result in results:
        if result.status == UNGRADED:
            page = out / "feedback" / result.student / f"{result.chapter}.html"
            write_beside(page, report.ungraded_page(result))
    write_beside(out / "audit.jsonl", report.audit(results))
    write_beside(out / "grades.csv", report.grades(results, facts))


def _plan(
    course: Course, out: Path, students: list[Path], chapters: list[str]
) -> tuple[list[Task], list[Result]]:
    """Find the notebooks; what cannot be graded is a result at once."""
    tasks, refused = [], []
    for student in students:
        for chapter in chapters:
            try:
                tasks.append(_task(course, out, student, chapter))
            except submission.Refused as error:
                refused.append(Result(student.name, chapter, reason=str(error)))
    return tasks, refused


def _task(course: Course, out: Path, student: Path, chapter: str) -> Task:
    _refuse_odd_name(student.name)
    found = submission.find(student, chapter)
    return Task(
        student=student.name,
        chapter=chapter,
        notebook=str(found.path),
        sha256=found.sha256(),
        notes=found.notes,
        course=str(course.root),
        db=course.db,
        out=str(out),
        cell_timeout=course.cell_timeout,
    )


def _refuse_odd_name(name: str) -> None:
    """Refuse a folder's name that nbgrader's patterns and gradebook would misread."""
    if set(name) & set("*?[]{}") or name != name.strip() or not _is_text(name):
        raise submission.Refused(
            "the folder's name cannot be a student's id: at most 128 letters of UTF-8, "
            "none of * ? [ ] { }, no space at either end"
        )


def _is_text(name: str) -> bool:
    """Tell whether a name is printable UTF-8 that fits into nbgrader's column."""
    return name.isprintable() and len(name) <= 128
