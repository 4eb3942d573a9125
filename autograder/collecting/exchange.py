"""nbgrader's folders: an exchange's ``inbound/``, or a course's ``submitted/``.

``inbound/`` holds ``STUDENT+ASSIGNMENT+TIME+SECRET/``, every attempt there ever was;
``submitted/`` holds ``STUDENT/ASSIGNMENT/`` with a ``timestamp.txt``.
"""

import os
import pwd
import re
from collections import defaultdict
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from autograder.collecting.notebooks import assignments
from autograder.collecting.people import LOGIN
from autograder.collecting.sources import (
    CollectError,
    File,
    HandedIn,
    Line,
    Listing,
    NotUnderstood,
    Person,
)
from autograder.grading.deadlines import TIMESTAMP, parse_time

INBOUND = re.compile(
    r"(?P<student>.+)\+(?P<assignment>[^+]+)"
    r"\+(?P<time>\d{4}-\d\d-\d\d[^+]*(?:\+\d\d:?\d\d)?)(?:\+(?P<secret>[\w=-]+))?"
)
EXPECTED = (
    "expected an exchange, ROOT/COURSE/inbound/, or a course's folder submitted/, with "
    "STUDENT/ASSIGNMENT/ in it"
)


def place_of(path: Path) -> tuple[Path, bool]:
    """Find the folder of submissions, and whether it is an exchange's.

    Raises:
        CollectError: there is none, or several.
    """
    if any(INBOUND.fullmatch(each.name) for each in _folders(path)):
        return path, True
    found = [path, *_folders(path)]
    inbound = [each / "inbound" for each in found if (each / "inbound").is_dir()]
    if len(inbound) > 1:
        names = ", ".join(each.parent.name for each in inbound)
        raise CollectError(f"{path}: holds several courses, give one of: {names}")
    if inbound:
        return inbound[0], True
    submitted = path if path.name == "submitted" else path / "submitted"
    if submitted.is_dir():
        return submitted, False
    raise CollectError(f"{path}: {EXPECTED}")


def _folders(path: Path) -> list[Path]:
    return [each for each in sorted(path.iterdir()) if os.path.isdir(each)]


def handed_in(
    place: Path, is_inbound: bool, listing: Listing, download: str
) -> tuple[list[HandedIn], list[Line]]:
    """Return what each student handed in, each time."""
    depth = 1 if is_inbound else 2
    by_folder: dict[str, list[File]] = defaultdict(list)
    lines = []
    for file in listing.files:
        parts = file.path.split("/")
        if len(parts) <= depth:
            reason = "lies in nobody's folder"
            lines.append(Line(download, file.path, "", reason))
        else:
            own = replace(file, path="/".join(parts[depth:]))
            by_folder["/".join(parts[:depth])].append(own)
    found = []
    for each in place.glob("/".join("*" * depth)):
        folder = "/".join(each.parts[-depth:])
        if not each.is_symlink() and each.is_dir() and folder not in by_folder:
            lines.append(Line(download, folder, "", "holds no file"))
    for folder, files in by_folder.items():
        try:
            read = _inbound if is_inbound else _submitted
            found.append(read(folder, files, download))
        except NotUnderstood as why:
            lines.append(Line(download, folder, "", str(why)))
    for each in found if is_inbound else ():
        if reason := _foreign(place / each.where, each.person.name):
            each.notes.append(reason)
            lines.append(Line(download, each.where, each.person.name, reason))
    return found, lines


def _inbound(folder: str, files: list[File], download: str) -> HandedIn:
    match = INBOUND.fullmatch(folder)
    if not match:
        raise NotUnderstood("is not named STUDENT+ASSIGNMENT+TIME+SECRET")
    try:
        when = parse_time(match["time"])
    except ValueError as error:
        raise NotUnderstood(str(error)) from None
    made = _made(match["student"], match["assignment"], files, folder, download)
    made.handed_in, made.key = when, f"exchange {folder}"
    written, problem = _timestamp(files)
    if problem or (written and written.replace(microsecond=0) != when):
        made.notes.append(f"{TIMESTAMP} says another time: the folder's name counts")
    return made


def _submitted(folder: str, files: list[File], download: str) -> HandedIn:
    student, _, assignment = folder.partition("/")
    made = _made(student, assignment, files, folder, download)
    made.handed_in, problem = _timestamp(files)
    made.notes += [problem] if problem else []
    return made


def _made(
    student: str, assignment: str, files: list[File], folder: str, download: str
) -> HandedIn:
    return HandedIn(
        person=Person(((LOGIN, student),), student, student),
        files=[file for file in files if file.path != TIMESTAMP],
        download=download,
        where=folder,
        chapter=assignment if assignment in assignments() else "",
    )


def _timestamp(files: list[File]) -> tuple[datetime | None, str]:
    """Read timestamp.txt; return the time, and what is wrong with it."""
    for file in files:
        if file.path == TIMESTAMP:
            try:
                return parse_time(file.read()[:200].decode("utf-8", "replace")), ""
            except (NotUnderstood, ValueError):
                return None, f"{TIMESTAMP} is no date, not used"
    return None, ""


def _foreign(folder: Path, student: str) -> str:
    """Say if a folder belongs to neither the student nor whoever collects."""
    try:
        owner = folder.lstat().st_uid
        name = pwd.getpwuid(owner).pw_name
    except (OSError, KeyError):
        return ""
    if owner == os.getuid() or name == student:
        return ""
    return f"the folder says {student}, and belongs to {name}: ask both"
