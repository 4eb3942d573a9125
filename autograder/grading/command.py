"""``python -m autograder grade``: submissions in, grades and feedback out."""

import argparse
import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from autograder import generator
from autograder.generator import Missing, SourceError
from autograder.grading import classfile, dry_run, planning, report, sandbox, submission
from autograder.grading.build import CourseError, build
from autograder.grading.classfile import Class, ClassError
from autograder.grading.course import Course
from autograder.grading.gradebook import GradebookError
from autograder.grading.job import Job
from autograder.grading.journal import Journal
from autograder.grading.limits import Limits
from autograder.grading.paper import Paper
from autograder.grading.planning import Terms, Work

if TYPE_CHECKING:
    from autograder.grading.record import Record

DESCRIPTION = """\
Grade a class. DIR holds STUDENT/CHAPTER/CHAPTER.ipynb.

Writes, in OUT: grades.csv (nbgrader's columns, then `status` and `reason`; ungraded
has no score, which is not 0), feedback/STUDENT/CHAPTER.html, report/report.html (the
class at a glance), audit.jsonl (a line a submission), and course/, an nbgrader course
with the gradebook in which formgrader and the other nbgrader commands work.

The same command again goes on where it was stopped: what is graded already, by the
same checks, is kept, and so is everything graded by hand.

Each submission runs in a sandbox without network, which needs Linux and bubblewrap.
"""
UNSAFE = """\
warning: --unsafe: submissions run without a sandbox, as you, on this machine. They
can read your files and the hidden tests, and change grades. The grades are marked.
"""


class BadInput(Exception):
    """Something on the command line cannot be; says what to do."""


ERRORS = (
    BadInput,
    ClassError,
    CourseError,
    GradebookError,
    Missing,
    SourceError,
)


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
        "--class",
        dest="class_file",
        type=Path,
        metavar="FILE",
        help="due dates, late rules, attempts, students (default: class.yml in DIR, "
        "if it is there)",
    )
    add("--dry-run", action="store_true", help="say what would be done, write nothing")
    add(
        "--regrade",
        action="store_true",
        help="grade again what is graded already and has not changed",
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
        "its workers need this package and bubblewrap, no shared files",
    )
    add(
        "--db",
        default="",
        metavar="URL",
        help="the gradebook's database, such as postgresql+psycopg://user@host/name "
        "(default: SQLite, OUT/course/gradebook.db)",
    )
    add(
        "--cell-timeout",
        type=_positive,
        default=int(Limits().cell_seconds),
        metavar="S",
        help="seconds after which a cell is stopped (default: %(default)s)",
    )
    add(
        "--site",
        default="",
        metavar="URL",
        help="the address of the course's site, for links in feedback",
    )
    add(
        "--unsafe",
        action="store_true",
        help="run submissions without a sandbox, and mark the grades: only for "
        "notebooks that you would run yourself",
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
    # Dask takes a second to import
    from autograder.grading.cluster import ClusterError

    out = arguments.out
    try:
        request = _inspect(arguments)
        out = request.out
        if arguments.dry_run:
            print(_dry_run(request, arguments.workers))
            return 0
        with _locked(out):
            rows = _grade(request, arguments)
    except (*ERRORS, ClusterError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        where = error.filename or out
        print(f"error: {where}: {error.strerror or error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        kept = (
            "stopped; what was graded is kept, and the same command goes on from there"
        )
        print(kept, file=sys.stderr)
        return 130
    print(report.table(rows))
    _print_places(out)
    return 0


def _print_places(out: Path) -> None:
    print(f"\n{out / 'grades.csv'}\n{out / 'feedback'}{os.sep}")
    print(f"{out / 'report' / 'report.html'}\n{out / 'audit.jsonl'}")


# --- input ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """What is to be graded, and where results go."""

    out: Path
    students: list[Path]
    terms: Terms
    db: str = ""
    site: str = ""

    @property
    def course(self) -> Course:
        """The nbgrader course in the folder for results."""
        return Course(self.out / "course", self.db)

    def work(self) -> Iterator[Work]:
        """Give what each student handed in, unread."""
        terms = self.terms
        return planning.find_work(self.students, sorted(terms.papers), terms.of_class)


def _inspect(arguments: argparse.Namespace) -> Request:
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
    of_class = classfile.find(arguments.class_file, folder, generator.chapters())
    students = _students(folder, of_class)
    chapters = _chapters(arguments.chapter, folder, students)
    _check_sandbox(arguments)
    terms = Terms(
        papers={chapter: Paper.of(chapter) for chapter in chapters},
        of_class=of_class,
        limits=Limits(cell_seconds=arguments.cell_timeout),
        unsafe=arguments.unsafe,
        regrade=arguments.regrade,
    )
    return Request(out, students, terms, arguments.db, arguments.site)


def _check_sandbox(arguments: argparse.Namespace) -> None:
    """Refuse to grade without a sandbox; a cluster's workers are asked later."""
    if arguments.unsafe:
        print(UNSAFE, end="", file=sys.stderr)
    elif not (arguments.scheduler or arguments.dry_run) and sandbox.problem():
        raise BadInput(sandbox.problem())


def _students(folder: Path, of_class: Class) -> list[Path]:
    """Find the students' folders; add whom only the class's list has."""
    students = {folder / name for name in of_class.students}
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name == classfile.NAME:
            continue
        if path.is_dir():
            students.add(path)
        elif submission.is_archive(path):
            students.add(submission.packed_student(path))
        else:
            print(f"{path}: is no student's folder, passed over", file=sys.stderr)
    if not students:
        raise BadInput(
            f"{folder}: holds no student's folder; expected STUDENT/CHAPTER/"
        )
    names = [path.name for path in students if path.is_dir()]
    for line in of_class.unknown(names):
        print(line, file=sys.stderr)
    return sorted(students)


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


def _dry_run(request: Request, workers: int) -> str:
    """Say what would be done with every submission."""
    planned = []
    with Journal(request.course.root / "journal.jsonl", read_only=True) as journal:
        for work in request.work():
            work.read(request.terms)
            kept = planning.is_kept(journal.find(*work.key), work, request.terms)
            planned += planning.plan(work, kept)
    points = {
        chapter: sum(paper.points.values())
        for chapter, paper in request.terms.papers.items()
    }
    speeds = dry_run.speeds(request.out / "audit.jsonl")
    return dry_run.text(planned, request.terms.of_class, points, speeds, workers)


def _grade(request: Request, arguments: argparse.Namespace) -> list[dict[str, str]]:
    from autograder.grading.cluster import Cluster

    course, limits = request.course, request.terms.limits
    with Cluster(
        arguments.workers,
        arguments.scheduler,
        arguments.unsafe,
        limits,
        request.terms.imports,
    ) as cluster:
        # slow to import; the graders start meanwhile
        from autograder.grading.record import Record

        build(course, list(request.terms.papers.values()))
        with Record(request.out, course, request.terms, request.site) as record:
            record.enter_students(request.students)
            works = list(request.work())
            with tqdm(total=len(works), unit="notebook", desc="grading") as progress:
                jobs = _jobs(works, record, request.terms, progress)
                for group in cluster.grade_in_groups(jobs):
                    done = []
                    for (work, number), outcome in group:
                        work.outcomes[number] = outcome
                        if work.is_done:
                            done.append(work)
                    record.add(done)
                    for work in done:
                        work.forget()
                        progress.update()
                progress.leave = progress.total > 0
            if kept := len(works) - progress.total:
                print(f"{kept} graded before and not changed since: kept")
            rows = record.write_tables(request.students)
            record.write_report(request.students)
    return rows


def _jobs(
    works: list[Work], record: "Record", terms: Terms, progress: tqdm
) -> Iterator[tuple[tuple[Work, int], Job]]:
    """Read what is to be graded, just before it is; pass over what is graded."""
    for work in works:
        work.read(terms)
        if record.keep(work):
            # it takes no time, so it must not count in the time that is left
            progress.total -= 1
            progress.refresh()
            work.forget()
            continue
        jobs = list(work.jobs(terms))
        yield from jobs
        if not jobs:  # there was nothing to grade
            record.add([work])
            progress.update()
