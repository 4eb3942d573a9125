"""Put what was handed in where the grader looks; what is there is never changed.

An attempt is ``STUDENT/CHAPTER/ATTEMPT/``, where ATTEMPT is its time or ``attempt-N``.
It is made beside its place and renamed, so that a kill leaves all of it or nothing. A
hidden file in it, which the grader passes over, says where it came from: by that an
attempt is known when it is collected again. Files that are no part of an attempt go to
``.collected/originals/STUDENT/CHAPTER/ATTEMPT/``.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from autograder.collecting.notebooks import Choice
from autograder.collecting.sources import (
    CollectError,
    File,
    HandedIn,
    NotUnderstood,
    clean_name,
    same_name,
    shown,
    unlike,
)
from autograder.files import entries, read_regular, replacing, write_beside
from autograder.grading.classfile import COLLECTED
from autograder.grading.deadlines import MOST_ATTEMPTS, TIMESTAMP, parse_time

RECORD = ".collected.json"
ORIGINALS, DOWNLOADS = "originals", "downloads"
LARGEST_RECORD = 1_000_000  # bytes
MOST_SEEN = 100
NUMBERED = re.compile(r"attempt-(\d{1,6})")


@dataclass(frozen=True)
class Record:
    """Where an attempt came from.

    Attributes:
        student: the class's id.
        chapter: what it is an attempt at.
        attempt: the folder's name.
        download: what was collected.
        seen: checksums of the downloads that it was in, where it has no key.
        where: the place in the download.
        person: what the download calls the student.
        key: the download's own name for this handing in.
        order: a higher one was handed in later; 0: unknown.
        handed_in: the time in ISO format, "" if it is unknown.
        is_late: whether the download calls it late.
        digest: a checksum of the files.
        notes: what was unusual.
    """

    student: str
    chapter: str
    attempt: str
    download: str
    seen: tuple[str, ...]
    where: str
    person: str
    key: str
    order: int
    handed_in: str
    is_late: bool
    digest: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Attempt:
    """What is to be placed."""

    student: str
    chapter: str
    of: HandedIn
    choice: Choice
    handed_in: datetime | None
    key: str
    contents: dict[str, bytes]  # of the grader's files, by their place in the attempt

    @property
    def digest(self) -> str:
        """A checksum of what is graded."""
        made = hashlib.sha256()
        for name, data in sorted(self.contents.items()):
            made.update(f"{name}\0{hashlib.sha256(data).hexdigest()}\n".encode())
        return made.hexdigest()

    @property
    def order(self) -> int:
        """The number by which a later one is known, 0 without one."""
        return max((file.order for file in self.of.files), default=0)

    @property
    def size(self) -> int:
        """Bytes that are going to be written."""
        rest = sum(file.size for file in self.choice.rest) if self.of.is_whole else 0
        return sum(map(len, self.contents.values())) + rest


# --- reading back ---------------------------------------------------------------------


def read_record(folder: Path) -> Record | None:
    """Read where an attempt came from; None if it was put there by hand."""
    try:
        data = read_regular(folder / RECORD, LARGEST_RECORD, follow=False)
        found = json.loads(data)
        lists = {name: tuple(found[name]) for name in ("seen", "notes")}
        record = Record(**found | lists)
    except (OSError, ValueError, TypeError, KeyError):
        return None
    # a folder that was copied belongs to whom it lies with
    student, chapter = folder.parents[1].name, folder.parent.name
    return replace(record, student=student, chapter=chapter, attempt=folder.name)


def records(class_folder: Path, chapters: list[str]) -> Iterator[Record]:
    """Give all that was ever collected into a class folder, in the order of names."""
    for student in entries(class_folder, 100_000):
        if student.is_symlink() or student.name.startswith("."):
            continue
        for chapter in chapters:
            for folder in _attempts(student / chapter):
                if record := read_record(folder):
                    yield record


def _attempts(place: Path) -> list[Path]:
    with contextlib.suppress(OSError):  # of a folder that was copied there by hand
        if not place.is_symlink():
            found = entries(place)
            return [p for p in found if os.path.isdir(p) and not p.is_symlink()]
    return []


def _by_hand(folder: Path, chapter: str) -> Record | None:
    """Describe an attempt that somebody else put there, if it can be compared."""
    name = f"{chapter}.ipynb"
    try:
        data = read_regular(folder / name, 200_000_000, follow=False)
    except OSError:
        return None
    digest = Attempt("", chapter, None, Choice([]), None, "", {name: data}).digest
    when = ""
    with contextlib.suppress(ValueError):
        when = parse_time(folder.name).isoformat()
    with contextlib.suppress(OSError, ValueError):
        text = read_regular(folder / TIMESTAMP, 200, follow=False)
        when = parse_time(text.decode("utf-8", "replace")).isoformat()
    unknown = dict.fromkeys(("download", "where", "person", "key"), "")
    return Record(
        student="", chapter=chapter, attempt=folder.name, order=0, handed_in=when,
        is_late=False, digest=digest, seen=(), **unknown,
    )  # fmt: skip


# --- placing --------------------------------------------------------------------------


NEW, THERE, DATED = "new", "there already", "dated"


@dataclass
class Class:
    """The class folder.

    Attributes:
        root: the folder.
        is_rehearsal: whether nothing is written.
        room: bytes that may still be written.
    """

    root: Path
    is_rehearsal: bool
    room: int

    @property
    def hidden(self) -> Path:
        """Where lists and originals are kept, which the grader passes over."""
        return self.root / COLLECTED

    def place(self, attempt: Attempt) -> tuple[str, str]:
        """Place an attempt; return what was done, and the attempt's name.

        Raises:
            NotUnderstood: it cannot be placed; says why.
            OSError: the disk is full.
        """
        place = self.root / attempt.student / attempt.chapter
        for folder in (place.parent, place):
            if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
                raise NotUnderstood(f"{folder.name} in the class folder is no folder")
        there = self._there(place, attempt.chapter)
        if same := self._same(attempt, there):
            if attempt.handed_in and not same.handed_in and same.download:
                return self._date(place / same.attempt, same, attempt.handed_in)
            self._note(place / same.attempt, same, attempt.of.fingerprint)
            return THERE, same.attempt
        self._refuse(attempt, there)
        name = self._name(attempt, place)
        if not self.is_rehearsal:
            self._write(attempt, place / name)
        self.room -= attempt.size
        return NEW, name

    def _there(self, place: Path, chapter: str) -> list[Record]:
        """Describe the attempts that are there, the earliest first."""
        folders = [*_attempts(place), *([place] if place.is_dir() else [])]
        found = [read_record(each) or _by_hand(each, chapter) for each in folders]
        return sorted(filter(None, found), key=_when)

    def _same(self, attempt: Attempt, there: list[Record]) -> Record | None:
        """Find an attempt that this one is, and not another that is alike.

        What has no name and no time of its own is taken for the last one if that is
        alike, and for any in the same download: it was collected before.
        """
        when = attempt.handed_in.isoformat() if attempt.handed_in else ""
        for record in reversed(there):
            if record.digest != attempt.digest:
                continue
            if record.key and attempt.key:
                is_same = record.key == attempt.key
            elif record.handed_in and when:
                is_same = _seconds(record.handed_in) == _seconds(when)
            else:
                is_same = record is there[-1] or attempt.of.fingerprint in record.seen
            if is_same:
                return record
        return None

    def _refuse(self, attempt: Attempt, there: list[Record]) -> None:
        if len(there) >= MOST_ATTEMPTS:
            raise NotUnderstood(
                f"{attempt.student} has {len(there)} attempts at {attempt.chapter}, "
                "more are not graded: take earlier ones away"
            )
        timed = [each for each in there if each.handed_in]
        if timed and not attempt.handed_in:
            raise NotUnderstood(
                f"has no time, and {timed[-1].attempt} has one, so that nobody can "
                "tell which is the later: give times with --times"
            )
        later = [each for each in there if each.order > attempt.order > 0]
        if later and not attempt.handed_in:
            raise NotUnderstood(
                f"is older than {later[-1].attempt}, which was collected before: "
                "give times with --times, or collect downloads in their order"
            )
        if attempt.size > self.room:
            raise NotUnderstood("there is no room left for it on the disk")

    def _name(self, attempt: Attempt, place: Path) -> str:
        if attempt.handed_in:
            name = f"{attempt.handed_in.astimezone(UTC):%Y-%m-%dT%H-%M-%S}"
            if not os.path.lexists(place / name):
                return name
        numbers = [
            int(match[1])
            for each in (entries(place) if place.is_dir() else [])
            if (match := NUMBERED.fullmatch(each.name))
        ]
        return f"attempt-{max(numbers, default=0) + 1}"

    def _write(self, attempt: Attempt, place: Path) -> None:
        beside = self.hidden / "unfinished"
        shutil.rmtree(beside, ignore_errors=True)
        for name, data in attempt.contents.items():
            _write_new(beside / name, data)
        if attempt.handed_in:
            _write_new(beside / TIMESTAMP, stamp(attempt.handed_in))
        notes = [*attempt.of.notes, *attempt.choice.notes]
        if attempt.of.is_whole and attempt.choice.rest:
            notes += self._keep(attempt, place.name)
        record = _record(attempt, place.name, notes)
        _write_new(beside / RECORD, _json(record))
        place.parent.mkdir(parents=True, exist_ok=True)
        os.rename(beside, place)  # fails if anything is there

    def _keep(self, attempt: Attempt, name: str) -> list[str]:
        """Keep the files that are no part of an attempt; return notes on them."""
        folder = self.hidden / ORIGINALS / attempt.student / attempt.chapter / name
        folder.mkdir(parents=True, exist_ok=True)
        notes, taken = [], {same_name(each.name) for each in entries(folder)}
        for file in attempt.choice.rest:
            try:
                data = file.read()
            except NotUnderstood as error:
                notes.append(f"{shown(file.path)}: {error}")
                continue
            flat = _flat(file)
            if not _holds(folder / flat, data):  # of a collection that was stopped
                write_beside(folder / unlike(flat, taken), data)
        names = ", ".join(shown(file.path) for file in attempt.choice.rest[:3])
        more = ", …" if len(attempt.choice.rest) > 3 else ""
        return [*notes, f"other files are in {COLLECTED}/{ORIGINALS}: {names}{more}"]

    def _note(self, place: Path, record: Record, fingerprint: str) -> None:
        """Note in which downloads an attempt was, by which it is known again."""
        if record.download and fingerprint and fingerprint not in record.seen:
            seen = (*record.seen, fingerprint)[-MOST_SEEN:]
            if not self.is_rehearsal:
                write_beside(place / RECORD, _json(replace(record, seen=seen)))

    def _date(self, place: Path, record: Record, when: datetime) -> tuple[str, str]:
        """Write the time beside an attempt that had none."""
        if not self.is_rehearsal:
            write_beside(place / TIMESTAMP, stamp(when))
            dated = replace(record, handed_in=when.isoformat())
            write_beside(place / RECORD, _json(dated))
        return DATED, place.name

    def keep_download(self, path: Path, name: str) -> None:
        """Keep an archive as it was downloaded, once."""
        kept = self.hidden / DOWNLOADS / name
        if self.is_rehearsal or kept.exists():
            return
        if path.stat().st_size > self.room:
            raise CollectError(f"{path}: there is no room left for a copy of it")
        with replacing(kept) as beside:
            shutil.copyfile(path, beside)
        self.room -= kept.stat().st_size


def name_of_download(path: Path) -> str:
    """Return what a download is called: its name, of a file with a checksum."""
    path = path.resolve()
    if path.is_dir():
        return path.name
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()[:12]
    return f"{clean_name(path.stem)}-{digest}{path.suffix}"


def _holds(path: Path, data: bytes) -> bool:
    with contextlib.suppress(OSError):
        return read_regular(path, len(data) + 1, follow=False) == data
    return False


def _when(record: Record) -> tuple:
    match = NUMBERED.fullmatch(record.attempt)
    return _seconds(record.handed_in), int(match[1]) if match else 0, record.attempt


def _seconds(when: str) -> float:
    return datetime.fromisoformat(when).timestamp() // 1 if when else float("-inf")


def _record(attempt: Attempt, name: str, notes: list[str]) -> Record:
    of, when = attempt.of, attempt.handed_in
    return Record(
        student=attempt.student,
        chapter=attempt.chapter,
        attempt=name,
        download=of.download,
        seen=(of.fingerprint,) if of.fingerprint else (),
        where=of.where,
        person=of.person.name,
        key=attempt.key,
        order=attempt.order,
        handed_in=when.isoformat() if when else "",
        is_late=of.is_late,
        digest=attempt.digest,
        notes=tuple(notes),
    )


def _json(record: Record) -> str:
    return json.dumps(asdict(record), indent=1) + "\n"


def stamp(when: datetime) -> str:
    """Write a time as nbgrader does."""
    return f"{when.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC\n"


def _write_new(path: Path, content: str | bytes) -> None:
    """Write a file into a folder that nobody reads yet."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = content.encode() if isinstance(content, str) else content
    with path.open("xb") as file:
        file.write(data)


def contents(chapter: str, choice: Choice) -> dict[str, bytes]:
    """Read what the grader reads of an attempt, by its place there.

    Raises:
        NotUnderstood: a notebook cannot be read. What cannot be read of a model is
            noted.
    """
    single = len(choice.notebooks) == 1
    read, taken = {}, {same_name(TIMESTAMP)}
    for file in choice.notebooks:
        name = f"{chapter}.ipynb" if single else _other_name(file, chapter, taken)
        read[name] = file.read()
    for folder, files in choice.models.items():
        place = unlike(clean_name(folder), taken)
        for name, file in files.items():
            try:
                read[f"{place}/{name}"] = file.read()
            except NotUnderstood as error:
                choice.notes.append(f"{shown(file.path)}: {error}")
    return read


def as_it_is(files: list[File]) -> dict[str, bytes]:
    """Read what somebody handed in without a notebook, so that the grader says so."""
    read, taken = {}, {same_name(TIMESTAMP)}
    for file in files:
        read[unlike(_flat(file), taken)] = file.read()
    return read


def _flat(file: File) -> str:
    """Return a name that says in which folders a file lay."""
    return clean_name("__".join(map(clean_name, file.path.split("/"))))


def _other_name(file: File, chapter: str, taken: set[str]) -> str:
    """Name one of several notebooks, of which none may look like the chosen one."""
    taken.add(same_name(f"{chapter}.ipynb"))
    return unlike(clean_name(file.name), taken)
