"""``python -m autograder grade``: submissions in, grades and feedback out."""

import argparse
import contextlib
import fcntl
import gc
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm import tqdm

from autograder import generator
from autograder.files import said
from autograder.generator import Missing, SourceError
from autograder.grading import (
    classfile,
    control_groups,
    dry_run,
    planning,
    report,
    sandbox,
    submission,
)
from autograder.grading.build import CourseError, build
from autograder.grading.classfile import Class, ClassError
from autograder.grading.clean import line, say
from autograder.grading.course import Course
from autograder.grading.gradebook import GradebookError
from autograder.grading.guard import Fault, guarded
from autograder.grading.job import Job
from autograder.grading.journal import Journal
from autograder.grading.limits import Limits
from autograder.grading.paper import Paper
from autograder.grading.planning import Terms, Work
from autograder.grading.seeds import SecretError, secret_of
from autograder.sheets import SheetError

if TYPE_CHECKING:
    from autograder.grading.record import Record, Tables

DESCRIPTION = """\
Grade a class. DIR holds STUDENT/CHAPTER/CHAPTER.ipynb, where CHAPTER is a chapter
or a sheet of your own, sheets/CHAPTER.yml.

Writes, in OUT: grades.csv (nbgrader's columns, then `status` and `reason`; ungraded
has no score, which is not 0), feedback/STUDENT/CHAPTER.html, report/report.html (the
class at a glance), audit.jsonl (a line a submission), and course/, an nbgrader course
with the gradebook in which formgrader and the other nbgrader commands work.

The same command again goes on where it was stopped: what is graded already, by the
same checks, is kept, and so is everything graded by hand.

Each submission runs in a sandbox without network, which needs Linux and bubblewrap.

Exit codes: 0 done, whatever students handed in; 2 it could not begin or go on (a wrong
argument, a full disk, a database that is gone); 3 done, but the grader itself failed
over a submission, which is ungraded (`log` in audit.jsonl says where); 130 stopped by
Ctrl-C.
"""
FAULTY = 3  # the exit code where the grader itself failed over a submission
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
    SecretError,
    SheetError,
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
        help="grade this chapter or sheet (may be repeated); without it, all that "
        "at least one student handed in",
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
        help="grade on the cluster of this Dask scheduler, such as tls://host:8786; "
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
        "--submission-timeout",
        type=_positive,
        default=int(Limits().wall_seconds),
        metavar="S",
        help="seconds after which a submission is stopped, whatever it waits for; an "
        "honest one takes a few (default: %(default)s)",
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
    from autograder.grading.cluster import ClusterError

    out = arguments.out
    try:
        request = _inspect(arguments)
        out = request.out
        if arguments.dry_run:
            return _dry_run(request.with_secret(make=False), arguments.workers)
        with _locked(out):
            tables = _grade(request.with_secret(make=True), arguments)
    except (*ERRORS, ClusterError) as error:
        say(f"error: {error}", sys.stderr)
        return 2
    except OSError as error:
        say(f"error: {said(error, out)}", sys.stderr)
        return 2
    except KeyboardInterrupt:
        kept = (
            "stopped; what was graded is kept, and the same command goes on from there"
        )
        say(kept, sys.stderr)
        return 130
    say(report.table(tables.rows))
    _say_places(out)
    return _say_faults(tables.faults, f"`log` in {out / 'audit.jsonl'}")


def _say_places(out: Path) -> None:
    say(f"\n{out / 'grades.csv'}\n{out / 'feedback'}{os.sep}")
    say(f"{out / 'report' / 'report.html'}\n{out / 'audit.jsonl'}")


def _say_faults(number: int, where: str) -> int:
    """Tell of faults of the grader itself; return the exit code."""
    if number == 0:
        return 0
    times = "once" if number == 1 else f"{number} times"
    text = f"the grader itself failed {times}; {where} says where, please report it"
    say(f"error: {text}", sys.stderr)
    return FAULTY


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
        """Give a place for what each student handed in for each chapter, unread."""
        for chapter in sorted(self.terms.papers):
            for student in self.students:
                yield Work(student, chapter)

    def with_secret(self, *, make: bool) -> "Request":
        """Return the same, with the secret of the class; make one if there is none."""
        secret = secret_of(self.course.root, make=make)
        return replace(self, terms=replace(self.terms, secret=secret))


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
    of_class = classfile.find(arguments.class_file, folder, generator.assignments())
    students = _students(folder, of_class)
    chapters = _chapters(arguments.chapter, folder, students)
    _check_sandbox(arguments)
    terms = Terms(
        papers={chapter: Paper.of(chapter) for chapter in chapters},
        of_class=of_class,
        limits=Limits(
            cell_seconds=arguments.cell_timeout,
            wall_seconds=arguments.submission_timeout,
        ),
        unsafe=arguments.unsafe,
        regrade=arguments.regrade,
    )
    return Request(out, students, terms, arguments.db, arguments.site)


def _check_sandbox(arguments: argparse.Namespace) -> None:
    """Refuse to grade without a sandbox; a cluster's workers are asked later."""
    if arguments.unsafe:
        say(UNSAFE.rstrip(), sys.stderr)
    elif not (arguments.scheduler or arguments.dry_run) and sandbox.problem():
        raise BadInput(sandbox.problem())


def _students(folder: Path, of_class: Class) -> list[Path]:
    """Find the students' folders; add whom only the class's list has."""
    students = {folder / name for name in of_class.students}
    for path in sorted(folder.iterdir()):
        hidden = path.name.startswith(".")
        is_ours = path.name in (classfile.NAME, classfile.COLLECTED)
        if is_ours or (hidden and not os.path.isdir(path)):
            continue
        if _is_students(path) and (not hidden or _holds_a_chapter(path)):
            students.add(path)
        elif not hidden and submission.is_archive(path):
            students.add(submission.packed_student(path))
        else:
            say(line(f"{path}: is no student's folder, passed over"), sys.stderr)
    if not students:
        raise BadInput(
            f"{folder}: holds no student's folder; expected STUDENT/CHAPTER/"
        )
    names = [path.name for path in students if os.path.isdir(path)]
    for text in of_class.unknown(names):
        say(line(text), sys.stderr)
    return sorted(students)


def _is_students(path: Path) -> bool:
    """Tell whether it is a folder, or a link that stands in the place of one."""
    return os.path.isdir(path) or (path.is_symlink() and not os.path.isfile(path))


def _holds_a_chapter(path: Path) -> bool:
    return any(_handed_in(path, chapter) for chapter in generator.assignments())


def _chapters(asked: list[str] | None, folder: Path, students: list[Path]) -> list[str]:
    known = generator.assignments()
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
    """Tell whether a student has something that can be graded for a chapter.

    A link or an odd file of that name is refused where the class is graded for it, and
    must not be what brings a chapter into the grading of all others.
    """
    # os.path's functions say no where pathlib's raise: no folder may stop the others
    folder, notebook = student / chapter, student / f"{chapter}.ipynb"
    is_folder = os.path.isdir(folder) and not os.path.islink(folder)
    return is_folder or (os.path.isfile(notebook) and not os.path.islink(notebook))


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


def _dry_run(request: Request, workers: int) -> int:
    """Say what would be done with every submission; return the exit code."""
    planned, faults = [], []
    with Journal(request.course.root / "journal.jsonl", read_only=True) as journal:
        for work in request.work():
            found = guarded(_plan, work, journal, request.terms)
            if isinstance(found, Fault):
                faults.append(found)
                work.refuse(found)
                found = list(planning.plan(work, is_graded=False))
            planned += found
            work.forget()
    points = {
        chapter: sum(paper.points.values())
        for chapter, paper in request.terms.papers.items()
    }
    speeds = dry_run.speeds(request.out / "audit.jsonl")
    of_class = request.terms.of_class
    say(dry_run.text(planned, of_class, points, speeds, workers, faults))
    for fault in faults:
        say(fault.log, sys.stderr)
    return _say_faults(len(faults), "the log above")


def _plan(work: Work, journal: Journal, terms: Terms) -> list[dry_run.Planned]:
    work.read(terms)
    is_kept = planning.is_kept(journal.find(*work.key), work, terms)
    return list(planning.plan(work, is_kept))


def _grade(request: Request, arguments: argparse.Namespace) -> "Tables":
    from autograder.grading.cluster import Cluster

    course, limits = request.course, request.terms.limits
    here = not (arguments.scheduler or arguments.unsafe)
    held = control_groups.words() if here else ""  # asked before anything is started
    if arguments.scheduler:
        from autograder.grading import doors

        print(doors.warning(arguments.scheduler), end="", file=sys.stderr)
    with Cluster(
        arguments.workers,
        arguments.scheduler,
        arguments.unsafe,
        limits,
        request.terms.imports,
    ) as cluster:
        # slow to import; the graders start meanwhile
        from autograder.grading.record import Record

        gc.freeze()  # nothing of it needs collecting
        gc.enable()
        build(course, list(request.terms.papers.values()))
        with Record(request.out, course, request.terms, request.site) as record:
            record.enter_students(request.students)
            if held:
                say(held, sys.stderr)
            works = list(request.work())
            seconds = request.terms.of_class.line_search / max(1, len(works))
            terms = replace(request.terms, line_seconds=seconds)
            with tqdm(total=len(works), unit="notebook", desc="grading") as progress:
                jobs = _jobs(works, record, terms, progress)
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
                say(f"{kept} graded before and not changed since: kept")
            return record.finish(request.students)


def _jobs(
    works: list[Work], record: "Record", terms: Terms, progress: tqdm
) -> Iterator[tuple[tuple[Work, int], Job]]:
    """Read what is to be graded, just before it is; pass over what is graded."""
    for work in works:
        jobs = guarded(_jobs_of, work, record, terms)
        if jobs is None:
            # it takes no time, so it must not count in the time that is left
            progress.total -= 1
            progress.refresh()
            work.forget()
        elif isinstance(jobs, Fault):
            record.fail(work.key, jobs)
            work.forget()
            progress.update()
        elif not jobs:  # there was nothing to grade
            record.add([work])
            work.forget()
            progress.update()
        else:
            yield from jobs


def _jobs_of(
    work: Work, record: "Record", terms: Terms
) -> list[tuple[tuple[Work, int], Job]] | None:
    """Read a submission and give its jobs; None if it is graded already."""
    work.read(terms)
    return None if record.keep(work) else list(work.jobs(terms))
