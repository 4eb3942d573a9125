"""Moodle's *Download all submissions*: a zip with a folder or a prefix a student.

A folder is named ``Full Name_123456_assignsubmission_file_``; without *Download
submissions in folders* that stands before the file's name. In blind marking the name is
*Participant* for all. The number is the participant's, and of this assignment alone:
the grading worksheet has it beside the address. No name has a ``_`` in it, for Moodle
makes a space of it, and the first part of a path that looks so is Moodle's: so nobody's
file or name can stand for another's number. What is relied on was read in
``mod/assign/locallib.php`` of moodle/moodle.
"""

import re
from collections import defaultdict
from dataclasses import replace

from autograder.collecting.people import NAME, PARTICIPANT, numbered, same_value
from autograder.collecting.sources import (
    File,
    HandedIn,
    Line,
    Listing,
    Person,
    fingerprint,
)
from autograder.collecting.times import Times

NAMED = re.compile(
    r"(?:[^/]*/)*?(?P<name>[^_/]*)_(?P<number>\d+)_assignsubmission_(?P<kind>[a-z]+)"
    r"(?:_?/|_)(?P<file>.+)",
    re.DOTALL,
)
TEXT = "onlinetext"


def handed_in(
    listing: Listing, download: str, times: Times
) -> tuple[list[HandedIn], list[Line]]:
    """Return what each student handed in, and what is no file of Moodle's."""
    lines, by_person = [], defaultdict(list)
    for file in listing.files:
        match = NAMED.fullmatch(file.path)
        if not match:
            reason = "is not named as Moodle names what it downloads"
            lines.append(Line(download, file.path, "", reason))
        elif match["kind"] == TEXT:
            reason = "is a text typed into Moodle, no file"
            lines.append(Line(download, file.path, match["name"], reason))
        else:
            own = replace(file, path=match["file"])
            by_person[match["name"], match["number"]].append((file, own))
    several = numbered(name for name, _ in by_person)
    whole = fingerprint(listing.files)
    found = [
        _one(name, number, files, download, times, same_value(NAME, name) in several)
        for (name, number), files in by_person.items()
    ]
    for each in found:
        each.fingerprint = whole
    return found, lines


def _one(
    name: str,
    number: str,
    files: list[tuple[File, File]],
    download: str,
    times: Times,
    is_shared: bool,
) -> HandedIn:
    """Make one of somebody's files; others may have this name, too."""
    known = times.keys_of(number)
    keys = [(PARTICIPANT, number)]
    keys += [key for key in known if key[0] not in (PARTICIPANT, NAME)]
    own = ".".join(name.lower().split())
    notes = []
    if is_shared:
        own = f"{own}.{number}"
    else:
        keys.append((NAME, name))
    if is_shared and not known:
        notes.append("others have this name, too: its number was put behind it")
    return HandedIn(
        person=Person(tuple(dict.fromkeys(keys)), name, own),
        files=[file for _, file in files],
        download=download,
        where=files[0][0].path,
        notes=notes,
    )
