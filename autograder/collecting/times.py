"""When it was handed in, where the download does not say.

Canvas's never does, Moodle's only in its grading worksheet. A file's own time is not
used: packing changes it.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo
from pathlib import Path

from autograder.collecting.people import ANY, COLUMNS, PARTICIPANT, STUDENT, read_table
from autograder.collecting.people import same_value as same
from autograder.collecting.sources import CollectError, Person
from autograder.grading.deadlines import YEARS, parse_time

# Moodle's worksheet, Canvas's interface for programs, and a file of one's own
TIME = ("last modified (submission)", "submitted_at", "handed_in", "time")
IDENTIFIER = "identifier"  # in Moodle's worksheet "Participant 123456"
CHAPTER = ("chapter", "assignment")
MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
MOODLE = re.compile(  # "Tuesday, 1 December 2026, 6:09 PM"
    r"(?:\w+, )?(\d{1,2}) ([a-z]+) (\d{4}), (\d{1,2}):(\d\d)\s?(am|pm)?", re.IGNORECASE
)
ZONE = re.compile(r"(Z|UTC|[+-]\d\d:?\d\d)$")

Key = tuple[str, str]


class Times:
    """The times of a list, by what it knows people by."""

    def __init__(self, path: Path | None = None, zone: tzinfo = UTC) -> None:
        self._times: dict[tuple[Key, str], datetime] = {}
        self._more: dict[str, tuple[Key, ...]] = {}  # of a participant's number
        if path:
            self._read(path, zone)

    def _read(self, path: Path, zone: tzinfo) -> None:
        rows = read_table(path)
        head = [cell.lower() for cell in rows[0]]
        at = next((head.index(name) for name in TIME if name in head), None)
        if at is None:
            raise CollectError(
                f"{path}: has no column of times; expected one named `time`, or "
                "Moodle's grading worksheet in English"
            )
        is_worksheet = head[at] == TIME[0]
        for number, row in enumerate(rows[1:], start=2):
            entry = dict(zip(head, row, strict=False))
            keys = tuple(_keys(entry, is_worksheet))
            for kind, value in keys:
                if kind == PARTICIPANT:
                    self._more[value] = keys
            text = entry.get(head[at], "")
            if text in ("", "-"):
                continue
            try:
                when = read_time(text, zone)
            except ValueError as error:
                raise CollectError(f"{path}:{number}: {error}") from None
            chapter = next((entry[name] for name in CHAPTER if entry.get(name)), "")
            for kind, value in keys:
                self._times[(kind, same(kind, value)), chapter] = when

    def keys_of(self, participant: str) -> tuple[Key, ...]:
        """Return what the worksheet knows of a participant, such as the address."""
        return self._more.get(participant, ())

    def find(self, person: Person, student: str, chapter: str) -> datetime | None:
        """Return when somebody handed in a chapter, if the list says so."""
        keys: Iterable[Key] = ((ANY, student), *person.keys)
        for kind, value in keys:
            for column in (kind, ANY):
                for of in (chapter, ""):
                    found = self._times.get(((column, same(kind, value)), of))
                    if found:
                        return found
        return None


def _keys(entry: dict[str, str], is_worksheet: bool) -> Iterable[Key]:
    for column, value in entry.items():
        if not value or column in (*TIME, *CHAPTER):
            continue
        if is_worksheet and column == IDENTIFIER:
            if number := re.search(r"(\d+)$", value):
                yield PARTICIPANT, number[1]
        elif column in STUDENT or column == "id":
            yield ANY, value
        elif column == "user_id":
            yield "canvas", value
        elif column in COLUMNS:
            yield COLUMNS[column], value


def read_time(text: str, zone: tzinfo) -> datetime:
    """Read a time; one that names no zone is the class's.

    Raises:
        ValueError: it is no time.

    >>> read_time("Tuesday, 1 December 2026, 6:09 PM", UTC).isoformat()
    '2026-12-01T18:09:00+00:00'
    """
    text = " ".join(text.split())
    if found := MOODLE.fullmatch(text):
        day, month, year, hour, minute, half = found.groups()
        if month.lower() not in MONTHS or int(year) not in YEARS:
            raise ValueError(f"{text!r} is no date and time in English")
        number = int(hour) % 12 + 12 * (half.lower() == "pm") if half else int(hour)
        month_number = MONTHS.index(month.lower()) + 1
        local = datetime(int(year), month_number, int(day), number, int(minute))
        return local.replace(tzinfo=zone).astimezone(UTC)
    when = parse_time(text)
    if ZONE.search(text):
        return when
    return when.replace(tzinfo=zone).astimezone(UTC)
