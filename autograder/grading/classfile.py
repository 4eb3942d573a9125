"""Read ``class.yml``, where an instructor writes down who, until when, and the rules.

Everything in it is optional. What is wrong in it is told with file, line and what is
allowed instead; nothing is guessed, for a due date that is not read costs points.
"""

import difflib
import re
import zoneinfo
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import NoReturn, TypeVar

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from autograder.grading.deadlines import BEST, LAST, YEARS, LateRule, parse_rule

Value = TypeVar("Value")  # what a text of the file stands for

NAME = "class.yml"
COLLECTED = ".collected"  # beside it, what `collect` keeps


class ClassError(Exception):
    """The file cannot be used; says where and what to do."""


@dataclass(frozen=True)
class Student:
    """Who a student's folder belongs to."""

    id: str  # the folder's name
    first: str = ""
    last: str = ""
    email: str = ""
    canvas: str = ""  # the column ID of a gradebook that Canvas exported
    sis: str = ""  # SIS User ID in Canvas, ID number in Moodle
    login: str = ""  # SIS Login ID in Canvas


@dataclass(frozen=True)
class Class:
    """A class: its rules, due dates, extensions, and students.

    Without a file it is ``Class()``: no due dates, no rules, whoever has a folder.
    """

    time_zone: tzinfo = UTC
    attempts: str = LAST
    carried_forward: float = 1.0  # of the points, given a right earlier answer
    line_search: float = 60.0  # seconds for all lines to look at that are searched for
    late: LateRule = field(default_factory=LateRule)
    due: dict[str, datetime] = field(default_factory=dict)
    extensions: dict[str, dict[str, datetime | timedelta]] = field(default_factory=dict)
    students: dict[str, Student] = field(default_factory=dict)

    def due_for(self, student: str, chapter: str) -> datetime | None:
        """Return a student's own due date, with the extension; None without one."""
        due = self.due.get(chapter)
        own = self.extensions.get(student, {})
        extension = own.get(chapter, own.get(ALL))
        if due is None or extension is None:
            return due
        if isinstance(extension, timedelta):
            return due + extension
        return max(due, extension)

    def unknown(self, folders: Iterable[str]) -> list[str]:
        """Say which folders and names of the class do not belong together.

        Args:
            folders: the names of the students' folders that came in.

        Returns:
            A line each; empty if all is well.
        """
        folders = sorted(folders)
        lines = []
        if self.students:
            lines = [
                f"{name}: is in no list of students{_did_you_mean(name, self.students)}"
                for name in folders
                if name not in self.students
            ]
        else:
            lines = [
                f"{name}: has an extension, but no folder{_did_you_mean(name, folders)}"
                for name in sorted(self.extensions)
                if name not in folders
            ]
        return lines


ALL = ""  # the key of an extension for every chapter
KEYS = (
    *("time_zone", "late", "grace", "attempts", "carried_forward", "line_search"),
    *("due", "extensions", "students"),
)
STUDENT_KEYS = tuple(each.name for each in fields(Student) if each.name != "id")
DATES = "a date such as 2026-12-01 18:00"
DURATIONS = {
    "minute": timedelta(minutes=1),
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(weeks=1),
}


def read(path: Path, chapters: list[str]) -> Class:
    """Read a class's file.

    Args:
        path: the file.
        chapters: those of the course.

    Raises:
        ClassError: file, line, and what is allowed.
    """
    return _Reader(path, chapters).read()


def find(given: Path | None, submissions: Path, chapters: list[str]) -> Class:
    """Read the file that was asked for, else class.yml in the submissions, if any."""
    if given is not None:
        return read(given, chapters)
    path = submissions / NAME
    return read(path, chapters) if path.is_file() else Class()


class _Reader:
    """One reading of a file; keeps what error messages and dates need."""

    def __init__(self, path: Path, chapters: list[str]) -> None:
        self.path, self.chapters = path, chapters
        self.zone: tzinfo = UTC

    def read(self) -> Class:
        top = self._entries(self._compose(), KEYS)
        self.zone = self._scalar(top, "time_zone", "UTC", self._zone)
        grace = self._scalar(top, "grace", "0", _minutes)
        due = dict(self._due(top.get("due")))
        students = dict(self._students(top.get("students")))
        return Class(
            time_zone=self.zone,
            attempts=self._scalar(top, "attempts", LAST, _attempts),
            carried_forward=self._scalar(top, "carried_forward", "1", _share),
            line_search=self._scalar(top, "line_search", "60", _seconds),
            late=self._scalar(top, "late", "none", lambda t: parse_rule(t, grace)),
            due=due,
            extensions=dict(self._extensions(top.get("extensions"), due, students)),
            students=students,
        )

    # --- parts of the file

    def _due(self, node: Node | None) -> Iterator[tuple[str, datetime]]:
        for chapter, value in self._entries(node, self.chapters, "chapter").items():
            yield chapter, self._value(value, self._date)

    def _students(self, node: Node | None) -> Iterator[tuple[str, Student]]:
        for name, value in self._entries(node).items():
            texts = self._entries(value, STUDENT_KEYS)
            yield name, Student(name, **{k: self._text(v) for k, v in texts.items()})

    def _extensions(
        self, node: Node | None, due: dict, students: dict
    ) -> Iterator[tuple[str, dict[str, datetime | timedelta]]]:
        known = list(students) or None
        for name, value in self._entries(node, known, "student").items():
            if isinstance(value, ScalarNode):  # one for all chapters
                extended: datetime | timedelta = self._value(value, _days)
                yield name, {ALL: extended}
                continue
            own = self._entries(value, self.chapters, "chapter")
            for chapter, each in own.items():
                if chapter not in due:
                    self._fail(each, f"{chapter} has no due date to extend")
            read = {c: self._value(v, self._extension) for c, v in own.items()}
            for chapter, date in read.items():
                if isinstance(date, datetime) and date < due[chapter]:
                    self._fail(own[chapter], f"is before the due date of {chapter}")
            yield name, read

    # --- values

    def _zone(self, text: str) -> tzinfo:
        if text == "UTC":
            return UTC
        try:
            return zoneinfo.ZoneInfo(text)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            known = zoneinfo.available_timezones()
            hint = _did_you_mean(text, known) or ", such as Europe/Berlin or UTC"
            raise ValueError(f"{text!r} is no time zone{hint}") from None

    def _date(self, text: str) -> datetime:
        match = re.fullmatch(r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d?:\d\d))?", text)
        if not match:
            raise ValueError(f"{text!r} is no date; write {DATES}")
        try:
            day = datetime.strptime(match[1], "%Y-%m-%d")
            clock = time(23, 59, 59)  # a day alone is over when it ends
            if match[2]:
                clock = datetime.strptime(match[2], "%H:%M").time()
        except ValueError:
            raise ValueError(f"{text!r}: there is no such day or time") from None
        if day.year not in YEARS:
            raise ValueError(f"{text!r}: the year is not in {YEARS[0]} to {YEARS[-1]}")
        # fold: the night that has an hour twice gives its second one
        local = datetime.combine(day, clock, self.zone).replace(fold=1)
        if local.astimezone(UTC).astimezone(self.zone).time() != clock:
            raise ValueError(f"{text!r}: clocks skip this hour in {self.zone}")
        return local.astimezone(UTC)

    def _extension(self, text: str) -> datetime | timedelta:
        return self._date(text) if re.match(r"\d{4}-", text) else _days(text)

    # --- YAML

    def _compose(self) -> Node | None:
        """Read the file's nodes: values stay text, and know their lines."""
        try:
            text = self.path.read_text(encoding="utf-8-sig")
            return yaml.compose(text, Loader=yaml.SafeLoader)
        except OSError as error:
            raise ClassError(f"{self.path}: {error.strerror}") from None
        except UnicodeDecodeError:
            raise ClassError(f"{self.path}: is not UTF-8 text") from None
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            raise ClassError(
                f"{self.path}:{line}: is no YAML ({error.problem})"
            ) from None
        except (yaml.YAMLError, RecursionError) as error:
            what = " ".join(str(error).split())
            raise ClassError(f"{self.path}: is no YAML ({what})") from None

    def _entries(
        self, node: Node | None, known: Iterable[str] | None = None, what: str = "key"
    ) -> dict[str, Node]:
        """Return a mapping's entries, each key once and known."""
        if node is None or (isinstance(node, ScalarNode) and not node.value):
            return {}
        if not isinstance(node, MappingNode):
            self._fail(node, "expected lines of the form `name: value` here")
        entries: dict[str, Node] = {}
        for key, value in node.value:
            name = self._text(key)
            if known is not None and name not in known:
                hint = _did_you_mean(name, known) or f"; allowed: {', '.join(known)}"
                self._fail(key, f"no {what} is named {name!r}{hint}")
            if name in entries:
                self._fail(key, f"{name} stands here a second time")
            entries[name] = value
        return entries

    def _scalar(
        self,
        top: dict[str, Node],
        key: str,
        default: str,
        convert: Callable[[str], Value],
    ) -> Value:
        return self._value(top[key], convert) if key in top else convert(default)

    def _value(self, node: Node, convert: Callable[[str], Value]) -> Value:
        try:
            return convert(self._text(node))
        except ValueError as error:
            self._fail(node, str(error))

    def _text(self, node: Node) -> str:
        if not isinstance(node, ScalarNode):
            self._fail(node, "expected a single value here")
        return node.value.strip()

    def _fail(self, node: Node, message: str) -> NoReturn:
        raise ClassError(f"{self.path}:{node.start_mark.line + 1}: {message}")


def _attempts(text: str) -> str:
    if text not in (LAST, BEST):
        raise ValueError(f"{text!r}; allowed: {LAST} or {BEST}")
    return text


def _share(text: str) -> float:
    if not re.fullmatch(r"0(\.\d{1,4})?|1(\.0{1,4})?", text):
        raise ValueError(
            f"{text!r} is no share; write a number from 0 to 1, such as 0.5"
        )
    return float(text)


def _seconds(text: str) -> float:
    if not re.fullmatch(r"\d{1,6}", text):
        raise ValueError(f"{text!r} is no number of seconds; write one such as 60")
    return float(text)


def _minutes(text: str) -> timedelta:
    return _duration(text, "minute", "minutes, such as 15 minutes")


def _days(text: str) -> timedelta:
    return _duration(text, "day", f"days, such as 2 days, or {DATES}")


def _duration(text: str, unit: str, allowed: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,4}(?:\.\d+)?) ?(minute|hour|day|week)?s?", text)
    if not match:
        raise ValueError(f"{text!r} is no number of {allowed}")
    return float(match[1]) * DURATIONS[match[2] or unit]


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""
