"""Read what strangers handed in: within limits, and never by a link."""

import contextlib
import hashlib
import itertools
import os
import re
import shutil
import stat
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from autograder.grading.clean import plain, visible
from autograder.grading.guard import ConcernsAll

JUNK = {
    *("__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini"),
    *(".ipynb_checkpoints", "__pycache__", ".git", ".venv", ".progress.json"),
}
LONGEST_NAME = 120  # bytes of a file's name; file systems take 255
LONGEST_PATH = 1_000  # characters


class NotUnderstood(Exception):
    """Something cannot be collected; the text says why, for the list."""


class CollectError(ConcernsAll):
    """The command cannot begin, or not go on; says what to do."""


@dataclass(frozen=True)
class Limits:
    """How much is read; bytes are those of unpacked files.

    Attributes:
        file_bytes: of a file.
        person_bytes: of all that one person handed in at a time.
        total_bytes: of everything.
        entries: files in an archive, or in the uppermost folder of a download.
        person_entries: files and folders in an archive or a folder of one person's.
        ratio: how many times larger an unpacked file may be, from ``ratio_from`` on.
        ratio_from: bytes; smaller files fill no disk.
        directory_bytes: of an archive's list of contents, which is read at once.
        depth: folders within one another.
    """

    file_bytes: int = 100_000_000
    person_bytes: int = 200_000_000
    total_bytes: int = 50_000_000_000
    entries: int = 200_000
    person_entries: int = 2_000
    ratio: int = 150
    ratio_from: int = 10_000_000
    directory_bytes: int = 32_000_000
    depth: int = 20


LIMITS = Limits()
RESERVE = 1_000_000_000  # bytes of the disk that stay free


@dataclass(frozen=True)
class File:
    """A file that was handed in.

    Attributes:
        path: its place, with ``/``, checked by ``checked_path``.
        size: bytes, as far as they are known before it is read.
        read: returns its content, or raises ``NotUnderstood``.
        order: files with a higher number were handed in later; 0: unknown.
        mark: what tells it from a changed one without reading it, if anything does.
    """

    path: str
    size: int
    read: Callable[[], bytes] = field(repr=False, compare=False)
    order: int = 0
    mark: str = ""

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]

    @property
    def folder(self) -> str:
        """The path without the name."""
        return self.path.rpartition("/")[0]


@dataclass(frozen=True)
class Line:
    """A line of the list of what was not understood."""

    download: str
    where: str
    who: str
    reason: str


@dataclass
class Listing:
    """What lies in a folder or an archive: files, and what is wrong with the rest."""

    files: list[File] = field(default_factory=list)
    wrong: list[tuple[str, str]] = field(default_factory=list)  # where, and why


@dataclass(frozen=True)
class Person:
    """Who handed something in, as the download knows it.

    Attributes:
        keys: kinds and values by which the class's lists may know the person.
        name: shown in lists.
        own: the id that the person gets where the class has no list.
    """

    keys: tuple[tuple[str, str], ...]
    name: str
    own: str


@dataclass
class HandedIn:
    """What one person handed in at a time.

    Attributes:
        person: who.
        files: what.
        download: the name of what was downloaded.
        where: the place in it, for lists.
        handed_in: when, if the download says so.
        key: names this handing in, if the download has a name for it.
        is_late: whether the download calls it late.
        chapter: the one that it was handed in for, if the download says so.
        is_whole: whether all of it was handed in for this; else only the notebooks
            and what belongs to them were, as in a repository.
        dated: gives time and key of some of the files, where each has its own.
        fingerprint: of the download, for what has neither time nor key.
        notes: what was unusual.
    """

    person: Person
    files: list[File]
    download: str
    where: str
    handed_in: datetime | None = None
    key: str = ""
    is_late: bool = False
    chapter: str = ""
    is_whole: bool = True
    dated: Callable[[list[str]], tuple[datetime, str]] | None = None
    fingerprint: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Bytes, before archives in it are unpacked."""
        return sum(file.size for file in self.files)


# --- names ----------------------------------------------------------------------------


def checked_path(name: str, limits: Limits = LIMITS) -> str:
    """Return a path within an archive or folder, with ``/``.

    Raises:
        NotUnderstood: it leads outside, or is no path of a file.
    """
    path = name.replace("\\", "/")  # what some programs write on Windows
    if "\0" in path:
        raise NotUnderstood("its name holds a zero byte")
    if path.startswith("/") or re.match("[A-Za-z]:", path):
        raise NotUnderstood("its name is an absolute path, which leads outside")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise NotUnderstood("its name holds .., which leads outside")
    if not parts or len(path) > LONGEST_PATH or len(parts) > limits.depth:
        raise NotUnderstood("its name is empty, too long or too deep")
    return "/".join(parts)


def is_junk(path: str) -> bool:
    """Tell whether a program left a file there, and nobody handed it in."""
    parts = path.split("/")
    return bool(JUNK.intersection(parts)) or parts[-1].startswith("._")


def same_name(path: str) -> str:
    """Return what two paths have in common that some disk takes for one."""
    return unicodedata.normalize("NFC", path).casefold()


def clean_name(name: str) -> str:
    r"""Return a student's name of a file as one that any disk takes and none hides.

    >>> clean_name(".a/b"), clean_name("a" + chr(7))
    ('_.a_b', 'a_x07')
    """
    shown = re.sub(r'[/\\:*?"<>|]', "_", visible(name))
    shown = "".join(each if each.isprintable() else "_" for each in shown).strip()
    shown = shown or "_"
    stem, dot, end = shown.rpartition(".")
    if len(shown.encode()) > LONGEST_NAME:
        end = _cut(end, 20)
        shown = f"{_cut(stem or shown, LONGEST_NAME - 25)}{dot}{end}"
    return f"_{shown}" if shown.startswith(".") else shown


def _cut(text: str, most: int) -> str:
    """Cut a text to so many bytes."""
    return text.encode()[:most].decode(errors="ignore")


def unlike(name: str, taken: set[str]) -> str:
    """Return the name, or a numbered one where a disk takes it for a taken one."""
    stem, dot, end = name.rpartition(".")
    stem, end = (stem, dot + end) if stem else (name, "")
    number, free = 1, name
    while same_name(free) in taken:
        number += 1
        free = f"{stem}-{number}{end}"
    taken.add(same_name(free))
    return free


# --- folders --------------------------------------------------------------------------


def list_folder(root: Path, limits: Limits = LIMITS) -> Listing:
    """List the regular files below a folder; no link is followed.

    Each folder in it is one person's, or one handing in: one that holds too much costs
    nobody else anything.
    """
    listing = Listing()
    for top in _entries(root, "", listing, limits.entries):
        if not top.is_dir(follow_symlinks=False):
            _add_file(root, top.name, listing, limits)
            continue
        found = _walk(root, top.name, listing, limits)
        most = limits.person_entries
        for path, is_file in itertools.islice(found, most):
            if is_file:
                _add_file(root, path, listing, limits)
        if next(found, None):
            listing.wrong.append((top.name, f"holds more than {most} files"))
    return listing


def _walk(
    root: Path, below: str, listing: Listing, limits: Limits
) -> Iterator[tuple[str, bool]]:
    """Give the paths of all that lies below a folder, and whether it is no folder."""
    if below.count("/") >= limits.depth:
        listing.wrong.append((below, "is too deep a folder"))
        return
    for entry in _entries(root, below, listing, limits.person_entries):
        path = f"{below}/{entry.name}"
        is_file = not entry.is_dir(follow_symlinks=False)
        yield path, is_file
        if not is_file:
            yield from _walk(root, path, listing, limits)


def _entries(
    root: Path, below: str, listing: Listing, most: int
) -> list[os.DirEntry[str]]:
    """Return what lies in a folder, by name, without what programs left there."""
    try:
        with os.scandir(root / below) as found:
            entries = list(itertools.islice(found, most + 1))
    except OSError as error:
        listing.wrong.append((below, f"cannot be read ({error.strerror})"))
        return []
    if len(entries) > most:
        listing.wrong.append((below, f"holds more than {most} files"))
        return []
    kept = [entry for entry in entries if not is_junk(entry.name)]
    return sorted(kept, key=lambda entry: entry.name)


def _add_file(root: Path, path: str, listing: Listing, limits: Limits) -> None:
    try:
        found = os.lstat(root / path)
    except OSError as error:
        listing.wrong.append((path, f"cannot be read ({error.strerror})"))
        return
    if not stat.S_ISREG(found.st_mode):
        kind = "a link" if stat.S_ISLNK(found.st_mode) else "no regular file"
        listing.wrong.append((path, f"is {kind}, not followed"))
    elif found.st_size > limits.file_bytes:
        listing.wrong.append((path, too_large(found.st_size, limits)))
    else:

        def read() -> bytes:
            try:
                return read_within(root, path, limits.file_bytes)
            except OSError as error:
                why = f"cannot be read ({error.strerror or error})"
                raise NotUnderstood(why) from None

        listing.files.append(File(path, found.st_size, read))


def too_large(size: int, limits: Limits) -> str:
    """Say that a file is too large."""
    most = limits.file_bytes / 10**6
    return f"is too large: {size / 10**6:.0f} MB, at most {most:g} MB are read"


def read_within(root: Path, path: str, most: int) -> bytes:
    """Read a regular file below a folder; no part of its path may be a link by now.

    Raises:
        NotUnderstood: it grew too large.
        OSError: it cannot be read, or is a link.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    *folders, name = path.split("/")
    at = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for folder in folders:
            below = os.open(folder, flags | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = below
        with open(os.open(name, flags, dir_fd=at), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise NotUnderstood("is no regular file")
            data = file.read(most + 1)
    finally:
        os.close(at)
    if len(data) > most:
        raise NotUnderstood("is too large")
    return data


def free_bytes(folder: Path) -> int:
    """Return how much may be written to a folder's disk; it may not be there yet."""
    while not folder.exists():
        folder = folder.parent
    return max(0, shutil.disk_usage(folder).free - RESERVE)


def fingerprint(files: list[File]) -> str:
    """Return a checksum of a download: of names, sizes and contents."""
    made = hashlib.sha256()
    for file in sorted(files, key=lambda file: file.path):
        mark = file.mark
        if not mark:
            with contextlib.suppress(NotUnderstood):
                mark = hashlib.sha256(file.read()).hexdigest()
        text = f"{file.path}\0{file.size}\0{mark}\n"
        made.update(text.encode("utf-8", "backslashreplace"))
    return made.hexdigest()


def shown(text: str) -> str:
    """Make a path or a name fit for a list."""
    return plain(text, 200)
