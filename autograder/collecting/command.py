"""``python -m autograder collect``: a download in, the class folder out."""

import argparse
import contextlib
import errno
import fcntl
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import astuple, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from tqdm import tqdm

from autograder.collecting import canvas, exchange, moodle, notebooks, placing
from autograder.collecting import repositories as git
from autograder.collecting.archives import is_zip, list_zip, unpacked
from autograder.collecting.people import People, read_table
from autograder.collecting.placing import NEW, Attempt
from autograder.collecting.sources import (
    LIMITS,
    CollectError,
    File,
    HandedIn,
    Limits,
    Line,
    NotUnderstood,
    Person,
    free_bytes,
    list_folder,
    shown,
)
from autograder.collecting.times import Times
from autograder.files import said, write_beside
from autograder.grading import classfile
from autograder.grading.classfile import Class, ClassError
from autograder.grading.clean import csv_file, line, plain, say
from autograder.grading.deadlines import MOST_ATTEMPTS
from autograder.grading.guard import Fault, guarded

DESCRIPTION = """\
Turn what was downloaded into the class folder that `grade` reads.

PATH, by --from:
  canvas    the zip of Download Submissions, or the folder it was unpacked to
  moodle    the zip of Download all submissions, or the folder it was unpacked to
  nbgrader  an exchange, a course in it, its inbound/, or a course's submitted/
  git       a folder of clones, one a student, named USER or ASSIGNMENT-USER

Writes CLASS/STUDENT/CHAPTER/ATTEMPT/CHAPTER.ipynb, where ATTEMPT is the time at which
it was handed in, or attempt-N where that is unknown; and, in CLASS/.collected/:
collected.csv (all that was ever collected), not_understood.csv (what was not, and why),
originals/ (files beside notebooks) and downloads/ (the zips). The download itself is
only read. The same command again, or a later download, adds what is new and changes
nothing that is there.

Whose it is says class.yml in CLASS, with its names and ids, or a file given with --ids.
With one of them, who is in neither is listed and not placed. Without, everybody gets an
id made of the download's own.
"""
EXITS = """\
Exit codes: 0 all was understood; 1 done, and not_understood.csv says what was not;
2 it could not begin or go on (a wrong argument, a full disk); 130 stopped by Ctrl-C.
"""
OPEN = 1  # the exit code where something was not understood
CANVAS, MOODLE, NBGRADER, GIT = "canvas", "moodle", "nbgrader", "git"
FORMS = (CANVAS, MOODLE, NBGRADER, GIT)
NEVER = datetime.min.replace(tzinfo=UTC)
OF_THE_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
MOST_SHOWN = 20  # lines of the list
COLLECTED_HEAD = (
    *("student", "chapter", "attempt", "handed_in", "late", "download", "where"),
    *("person", "notes"),
)
LIST_HEAD = ("download", "where", "who", "reason")
COLLECTED_CSV, LIST_CSV = "collected.csv", "not_understood.csv"
NO_NOTEBOOK = "holds no notebook: placed as it is, and ungraded until you put one there"
REST_TOO_LARGE = "holds too much: its other files were not kept"
TOO_MANY = f"has {MOST_ATTEMPTS} attempts after it, and no more are graded"
LATE = (
    "is marked as late, and Canvas does not say by how much: give its time with "
    "--times, or it counts as in time"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXITS
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("paths", nargs="+", type=Path, metavar="PATH", help="what was downloaded")
    add("--from", dest="form", required=True, choices=FORMS, help="where it is from")
    add("--out", type=Path, required=True, metavar="CLASS", help="the class folder")
    add(
        "--chapter",
        action="append",
        default=[],
        metavar="NAME",
        help="collect only this chapter (may be repeated); a single one is also that "
        "of notebooks of which neither cells nor name tell",
    )
    add(
        "--ids",
        type=Path,
        metavar="CSV",
        help="whose it is: a first line such as `student,canvas,email,login,name`, "
        "then the class's own ids and what the download knows them by",
    )
    add(
        "--times",
        type=Path,
        metavar="CSV",
        help="when it was handed in: Moodle's grading worksheet in English, or columns "
        "such as `student,chapter,time`; without a zone in that of class.yml",
    )
    add(
        "--class",
        dest="class_file",
        type=Path,
        metavar="FILE",
        help="the class's file (default: class.yml in CLASS, if it is there)",
    )
    add("--dry-run", action="store_true", help="say what would be done, write nothing")


def run(arguments: argparse.Namespace) -> int:
    """Collect what came in from Canvas, Moodle, nbgrader or git."""
    try:
        collection = _begin(arguments)
        if arguments.dry_run:
            collection.collect_all(arguments.paths, arguments.form)
        else:
            with _locked(collection.to.hidden):
                collection.collect_all(arguments.paths, arguments.form)
                collection.write_lists()
    except (CollectError, ClassError) as error:
        say(f"error: {error}", sys.stderr)
        return 2
    except OSError as error:
        say(f"error: {said(error, arguments.out)}", sys.stderr)
        return 2
    except KeyboardInterrupt:
        kept = "stopped; what was placed is whole, and the same command goes on"
        say(kept, sys.stderr)
        return 130
    collection.tell()
    return OPEN if collection.lines else 0


def _begin(arguments: argparse.Namespace, limits: Limits = LIMITS) -> "Collection":
    """Check the arguments before anything is written."""
    out = arguments.out.resolve()
    if out.exists() and not out.is_dir():
        raise CollectError(f"{out}: is a file; choose another --out")
    for path in arguments.paths:
        if not path.exists():
            raise CollectError(f"{path}: no such file or folder")
        found = path.resolve()
        if found.is_dir() and (out == found or found in out.parents):
            raise CollectError(f"{out}: is inside the download; choose another --out")
        if out in found.parents and not found.is_file():
            raise CollectError(f"{path}: is inside the class folder; move it elsewhere")
    known = notebooks.assignments()
    unknown = [name for name in arguments.chapter if name not in known]
    if unknown:
        raise CollectError(
            f"no chapter is named {unknown[0]!r}; there are: {', '.join(known)}"
        )
    of_class = classfile.find(arguments.class_file, out, known)
    return Collection(
        to=placing.Class(
            out, arguments.dry_run, min(free_bytes(out), limits.total_bytes)
        ),
        of_class=of_class,
        people=People(of_class, arguments.ids),
        times=Times(arguments.times, of_class.time_zone),
        asked=arguments.chapter,
        limits=limits,
    )


@contextlib.contextmanager
def _locked(hidden: Path) -> Iterator[None]:
    """Let one command at a time collect into a class folder."""
    hidden.mkdir(parents=True, exist_ok=True)
    with (hidden / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            where = hidden.parent
            raise CollectError(f"{where}: another command collects there") from None
        yield


# --- collecting -----------------------------------------------------------------------


@dataclass(frozen=True)
class Done:
    """What was done with an attempt."""

    student: str
    chapter: str
    attempt: str
    handed_in: datetime | None
    what: str

    @property
    def place(self) -> tuple[str, str, str]:
        """Chapter, student and attempt."""
        return self.chapter, self.student, self.attempt


@dataclass
class Collection:
    """One run of the command.

    Attributes:
        to: the class folder.
        of_class: its rules.
        people: whose it is.
        times: when it was handed in, where the download does not say.
        asked: the only chapters that are collected; empty: all.
        limits: how much is read.
        done: what was placed, or was there.
        lines: what was not understood.
        downloads: the names of what was collected; of a zip that of its copy.
        whose: by student, whom the download calls so.
    """

    to: placing.Class
    of_class: Class
    people: People
    times: Times
    asked: list[str] = field(default_factory=list)
    limits: Limits = LIMITS
    done: list[Done] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    downloads: list[str] = field(default_factory=list)
    whose: dict[str, Person] = field(default_factory=dict)

    def collect_all(self, paths: list[Path], form: str) -> None:
        """Collect downloads, one after the other."""
        for path in paths:
            self.whose.clear()  # Moodle's numbers are of one download
            self.downloads.append(placing.name_of_download(path))
            with contextlib.ExitStack() as stack:
                found = list(self._open(path, form, stack))
                if not path.is_dir():
                    self.to.keep_download(path, self.downloads[-1])
                self._collect(found, path)

    def _open(
        self, path: Path, form: str, stack: contextlib.ExitStack
    ) -> Iterator[HandedIn]:
        """Give what was handed in; note what is none of that."""
        download = self.downloads[-1]
        if form == GIT:
            root = _folder(path)
            for each in git.handed_in(root, self.people, download, self.limits):
                if isinstance(each, Line):
                    self.lines.append(each)
                else:
                    yield each
            return
        root, is_inbound = path, False
        if form == NBGRADER:
            root, is_inbound = exchange.place_of(_folder(path))
        if root.is_dir():
            listing = list_folder(root, self.limits)
        else:
            try:
                listing = list_zip(stack.enter_context(root.open("rb")), self.limits)
            except NotUnderstood as why:
                raise CollectError(f"{path}: {why}") from None
        self.lines += [Line(download, where, "", why) for where, why in listing.wrong]
        if form == CANVAS:
            found, lines = canvas.handed_in(listing, download)
        elif form == MOODLE:
            found, lines = moodle.handed_in(listing, download, self.times)
        else:
            found, lines = exchange.handed_in(root, is_inbound, listing, download)
        self.lines += lines
        yield from found

    def _collect(self, found: list[HandedIn], path: Path) -> None:
        if not found and not self.lines:
            raise CollectError(f"{path}: holds nothing that was handed in")
        unclear, told = [], set()
        # small ones first: what one person packed takes no room from the others
        found.sort(key=lambda each: (each.size, each.where))
        found = self._without_too_many(_in_time(found))
        with tqdm(total=len(found), unit="submission", desc="collecting") as progress:
            for each in found:
                of = self._guarded(each, "")
                told |= of
                if not of and each.is_whole:
                    unclear.append(each)
                else:
                    progress.update()
            chapter = notebooks.told_chapters(told)
            for each in unclear:
                self._guarded(each, chapter or "?")
                progress.update()

    def _without_too_many(self, found: list[HandedIn]) -> list[HandedIn]:
        """Keep as many attempts of each person as are graded, the latest ones."""
        later: Counter[tuple[Person, str]] = Counter()
        kept = []
        for each in reversed(found):
            later[each.person, each.chapter] += 1
            if later[each.person, each.chapter] > MOST_ATTEMPTS:
                self._list(each, each.where, TOO_MANY)
            else:
                kept.append(each)
        return kept[::-1]

    def _guarded(self, of: HandedIn, otherwise: str) -> set[str]:
        """Collect what one person handed in; a fault of ours costs nobody else."""
        found = guarded(self._one, of, otherwise)
        if isinstance(found, Fault):
            self._list(of, of.where, str(found))
            say(found.log, sys.stderr)
            return {""}
        return found

    def _one(self, of: HandedIn, otherwise: str) -> set[str]:
        """Collect what one person handed in; return the chapters it was of.

        Args:
            of: what was handed in.
            otherwise: the chapter, where nothing tells; "": leave that for later.
        """
        try:
            student = self.people.find(of.person)
        except NotUnderstood as why:
            self._list(of, of.where, str(why))
            return {""}
        other = self.whose.setdefault(student, of.person)
        if other != of.person and not otherwise:
            why = f"is taken for {student}, as is {other.name}: are they one person?"
            self._list(of, of.where, why)
        noted = len(self.lines)
        files, packed = self._files(of)
        by_chapter = self._by_chapter(of, files, otherwise)
        if not by_chapter:
            if not otherwise and of.is_whole:
                del self.lines[noted:]  # it is going to be said the second time
                return set()
            has_notebook = any(map(notebooks.is_notebook, files))
            if of.is_whole and not has_notebook:
                self._place_as_it_is(of, student, otherwise)
            elif len(self.lines) == noted:
                wanted = ", ".join(self.asked) or "a chapter that can be told"
                self._list(of, of.where, f"holds no notebook of {wanted}")
            return {""}
        choices = notebooks.choose(files, by_chapter, packed)
        for chapter, choice in choices.items():
            self._place(of, student, chapter, choice)
        return set(choices)

    def _files(self, of: HandedIn) -> tuple[list[File], set[str]]:
        """Return the files, with those in archives, and the paths of the latter."""
        files, packed, room = list(of.files), set(), self.limits.person_bytes
        if not of.is_whole:
            return files, packed
        for file in of.files:
            if not is_zip(file):
                continue
            try:
                listing = unpacked(file, self.limits)
            except NotUnderstood as why:
                self._list(of, file.path, str(why))
                continue
            room -= sum(each.size for each in listing.files)
            if room < 0:
                self._list(of, file.path, "holds too much, with the archives before it")
                break
            for where, why in listing.wrong:
                self._list(of, f"{file.path}: {where}", why)
            for each in listing.files:
                path = f"{file.path}/{each.path}"
                files.append(replace(each, path=path, order=file.order))
                packed.add(path)
        return files, packed

    def _by_chapter(
        self, of: HandedIn, files: list[File], otherwise: str
    ) -> dict[str, list[File]]:
        """Return the notebooks of each chapter that is asked for."""
        by_chapter, unclear = defaultdict(list), []
        for file in filter(notebooks.is_notebook, files):
            try:
                chapter = of.chapter or notebooks.chapter_of(file, file.read())
            except NotUnderstood as why:
                self._list(of, file.path, str(why))
                continue
            if not chapter:
                unclear.append(file)
            else:
                by_chapter[chapter].append(file)
        if unclear and not by_chapter and of.is_whole:
            chapter = self.asked[0] if len(self.asked) == 1 else otherwise
            if chapter in notebooks.assignments():
                by_chapter[chapter] = unclear
                of.notes.append("neither cells nor name tell the chapter")
        return self._asked_for(of, by_chapter)

    def _asked_for(
        self, of: HandedIn, by_chapter: dict[str, list[File]]
    ) -> dict[str, list[File]]:
        for chapter in [c for c in by_chapter if self.asked and c not in self.asked]:
            del by_chapter[chapter]
            if of.is_whole:
                why = notebooks.wrong_chapter(chapter, self.asked)
                self._list(of, of.where, str(why))
        return by_chapter

    def _place_as_it_is(self, of: HandedIn, student: str, otherwise: str) -> None:
        """Place what was handed in without a notebook, so that it is not forgotten."""
        known = [of.chapter, *self.asked[: len(self.asked) == 1], otherwise]
        chapter = next((name for name in known if name in notebooks.assignments()), "")
        if not chapter or (self.asked and chapter not in self.asked):
            why = "holds no notebook, and nothing tells of which chapter it is"
            self._list(of, of.where, why)
            return
        self._list(of, of.where, NO_NOTEBOOK)
        try:
            if of.size > self.limits.person_bytes:
                raise NotUnderstood("holds too much to be placed")
            read = placing.as_it_is(of.files)
            self._finish(of, student, chapter, notebooks.Choice([]), read)
        except NotUnderstood as why:
            self._list(of, of.where, str(why))

    def _place(
        self, of: HandedIn, student: str, chapter: str, choice: notebooks.Choice
    ) -> None:
        try:
            room = self.limits.person_bytes - sum(each.size for each in choice.used)
            if room < 0:
                raise NotUnderstood("holds too much: notebook and models are too large")
            if of.is_whole and sum(file.size for file in choice.rest) > room:
                choice.rest = []
                self._list(of, of.where, REST_TOO_LARGE)
            if len(choice.notebooks) > 1:
                self._list(of, of.where, choice.notes[-1])
            read = placing.contents(chapter, choice)
            self._finish(of, student, chapter, choice, read)
        except NotUnderstood as why:
            self._list(of, of.where, str(why))

    def _finish(
        self,
        of: HandedIn,
        student: str,
        chapter: str,
        choice: notebooks.Choice,
        read: dict[str, bytes],
    ) -> None:
        when, key = of.handed_in, of.key
        if of.dated:
            when, key = of.dated([file.path for file in choice.used])
        when = self.times.find(of.person, student, chapter) or when
        if of.is_late and not when:
            self._list(of, of.where, LATE)
        attempt = Attempt(student, chapter, of, choice, when, key, read)
        try:
            what, name = self.to.place(attempt)
        except OSError as error:
            if error.errno in OF_THE_DISK:
                raise
            raise NotUnderstood(f"cannot be written ({error.strerror})") from None
        self.done.append(Done(student, chapter, name, when, what))

    def _list(self, of: HandedIn, where: str, why: str) -> None:
        self.lines.append(Line(of.download, where, of.person.name, why))

    # --- telling

    def write_lists(self) -> None:
        """Write the two lists."""
        rows = [
            (
                *(each.student, each.chapter, each.attempt, each.handed_in),
                *("late" if each.is_late else "", each.download, each.where),
                *(each.person, "; ".join(each.notes)),
            )
            for each in placing.records(self.to.root, notebooks.assignments())
        ]
        write_beside(self.to.hidden / COLLECTED_CSV, csv_file([COLLECTED_HEAD, *rows]))
        path = self.to.hidden / LIST_CSV
        kept = [row for row in _rows(path) if row[0] not in self.downloads]
        mine = [[plain(cell, 1_000) for cell in astuple(each)] for each in self.lines]
        write_beside(path, csv_file([LIST_HEAD, *kept, *mine]))

    def tell(self) -> None:
        """Say what was done."""
        if self.to.is_rehearsal:
            for each in sorted(self.done, key=lambda each: each.place):
                say(line("  ".join((*each.place, each.what))))
        say(self._table())
        if self.lines:
            say(f"\nnot understood, or to be looked at: {len(self.lines)}")
        for each in self.lines[:MOST_SHOWN]:
            who = f" ({shown(each.who)})" if each.who else ""
            say(line(f"  {shown(each.where)}{who}: {each.reason}"))
        if len(self.lines) > MOST_SHOWN:
            say(f"  … and {len(self.lines) - MOST_SHOWN} more")
        if self.to.is_rehearsal:
            say("\ndry run: nothing was written")
        else:
            say(f"\n{self.to.hidden / COLLECTED_CSV}\n{self.to.hidden / LIST_CSV}")

    def _table(self) -> str:
        head = f"{'chapter':<26} {'students':>8} {'new':>6} {'there already':>14}"
        head += f" {'without a time':>15}"
        rows = [head]
        for chapter in sorted({each.chapter for each in self.done}):
            mine = [each for each in self.done if each.chapter == chapter]
            students = len({each.student for each in mine})
            new = sum(each.what == NEW for each in mine)
            untimed = sum(not each.handed_in for each in mine)
            row = f"{chapter:<26} {students:>8} {new:>6} {len(mine) - new:>14}"
            rows.append(f"{row} {untimed:>15}")
        return "\n".join(rows)


def _in_time(found: list[HandedIn]) -> list[HandedIn]:
    """Put what one person handed in several times into the order of its times."""
    times = defaultdict(list)
    for each in found:
        times[each.person].append(each)
    return [
        each
        for mine in times.values()
        for each in sorted(mine, key=lambda each: each.handed_in or NEVER)
    ]


def _folder(path: Path) -> Path:
    if not path.is_dir():
        raise CollectError(f"{path}: is no folder; unpack it first")
    return path


def _rows(path: Path) -> list[list[str]]:
    """Read the list of earlier collections."""
    if not os.path.exists(path):
        return []
    return [row for row in read_table(path)[1:] if len(row) == len(LIST_HEAD)]
