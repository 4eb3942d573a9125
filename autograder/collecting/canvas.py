"""Canvas's *Download Submissions*: a zip of files, or the folder it was unpacked to.

A file is named ``NAME_LATE_USER_ATTACHMENT_FILE``, of which ``LATE`` stands only in
late work, and NAME is the name as Canvas sorts by it, in small letters without any
signs. In anonymous grading ``anon_XYZ`` is in the place of NAME and USER. Only a
student's latest submission is in it, and no time at all. What is relied on was read in
``lib/content_zipper.rb`` of instructure/canvas-lms.
"""

import re
from collections import defaultdict
from dataclasses import replace

from autograder.collecting.people import CANVAS, NAME
from autograder.collecting.sources import File, HandedIn, Line, Listing, Person

NAMED = re.compile(
    r"(?:(?P<name>.*?)_)?(?:(?P<late>LATE)_)?"
    r"(?:(?P<user>\d+)|(?P<anonymous>anon_[A-Za-z0-9]+))"
    r"_(?:(?P<attachment>\d+)_(?P<file>.+)|(?P<typed>text|link)\.html)",
    re.DOTALL,
)
LATE = "LATE"
TYPED = {"text": "is a text typed into Canvas, no file", "link": "is a link, no file"}


def handed_in(listing: Listing, download: str) -> tuple[list[HandedIn], list[Line]]:
    """Return what each student handed in, and what is no file of Canvas's."""
    lines, by_user = [], defaultdict(list)
    for file in listing.files:
        match = NAMED.fullmatch(file.name)
        if not match:
            reason = "is not named as Canvas names what it downloads"
            lines.append(Line(download, file.path, "", reason))
        elif match["typed"]:
            lines.append(Line(download, file.path, _name(match), TYPED[match["typed"]]))
        else:
            by_user[match["user"] or match["anonymous"]].append((match, file))
    found = []
    for user, files in by_user.items():
        names = {_name(match) for match, _ in files}
        if len(names) > 1:
            # a name of one's own choice must not stand for another's number
            reason = f"the number {user} has several names: {', '.join(sorted(names))}"
            lines += [Line(download, file.path, user, reason) for _, file in files]
        else:
            found.append(_one(user, files, download))
    return found, lines


def _name(match: re.Match) -> str:
    name = match["name"] or ""  # names are in small letters, so this is none
    return "" if name == LATE else name


def _one(user: str, files: list[tuple[re.Match, File]], download: str) -> HandedIn:
    name = _name(files[0][0])
    named = [
        replace(file, path=match["file"], order=int(match["attachment"]))
        for match, file in files
    ]
    numbers = sorted(file.order for file in named)
    own = f"{name}_{user}" if name else user
    keys = ((CANVAS, user), (NAME, name)) if name else ((CANVAS, user),)
    return HandedIn(
        person=Person(keys, name or user, own),
        files=named,
        download=download,
        where=files[0][1].path,
        key=f"canvas {' '.join(map(str, numbers))}",
        is_late=any(LATE in (match["late"], match["name"]) for match, _ in files),
    )
