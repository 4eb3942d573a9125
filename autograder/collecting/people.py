"""Whose work it is: from what a download knows of a person to the class's own id.

The class's lists are ``class.yml`` and the file given as ``--ids``. With either of
them, nobody is guessed: who is in neither is listed, and nothing of theirs is placed.
Without any list, everybody gets an id made of what the download says.
"""

import csv
import io
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from autograder.collecting.sources import (
    CollectError,
    NotUnderstood,
    Person,
    clean_name,
)
from autograder.files import read_regular
from autograder.grading import classfile
from autograder.grading.classfile import Class
from autograder.grading.clean import from_csv_cell
from autograder.grading.planning import is_id

CANVAS, PARTICIPANT, EMAIL, SIS = "canvas", "participant", "email", "sis"
LOGIN, NAME, ANY = "login", "name", "any"
LARGEST_LIST = 20_000_000  # bytes
COLUMNS = {  # what columns of lists are called, in lower case; others are any kind
    "canvas": CANVAS,
    "canvas id": CANVAS,
    "participant": PARTICIPANT,
    "email": EMAIL,
    "email address": EMAIL,
    "sis": SIS,
    "sis user id": SIS,
    "id number": SIS,
    "login": LOGIN,
    "sis login id": LOGIN,
    "username": LOGIN,
    "github_username": LOGIN,
    "github_id": "github",  # a number like Canvas's, and another
    "name": NAME,
    "full name": NAME,
}
STUDENT = ("student", "student_id", "identifier")
LONGEST_ID = 200  # bytes


class People:
    """The class's people, by all that a download may know them by."""

    def __init__(self, of_class: Class, ids: Path | None = None) -> None:
        self._known: dict[tuple[str, str], set[str]] = defaultdict(set)
        for student in of_class.students.values():
            self._add(student.id, LOGIN, student.id)
            for kind in (CANVAS, SIS, LOGIN, EMAIL):
                self._add(student.id, kind, getattr(student, kind))
            self._add(student.id, NAME, f"{student.first} {student.last}")
        if ids:
            self._read(ids)
        self._own: dict[str, str] = {}  # ids that were made, by what they were made of

    @property
    def is_listed(self) -> bool:
        """Whether the class has a list."""
        return bool(self._known)

    def _add(self, student: str, kind: str, value: str) -> None:
        # systems begin a name with its first or its last part
        words = value.split() if kind == NAME else [value]
        for at in range(len(words)):
            if same := _same(kind, " ".join((*words[at:], *words[:at]))):
                self._known[kind, same].add(student)

    def _read(self, path: Path) -> None:
        rows = read_table(path)
        head = [cell.lower() for cell in rows[0]]
        at = next((head.index(name) for name in STUDENT if name in head), None)
        if at is None or len(head) < 2:
            raise CollectError(
                f"{path}: needs a first line such as: student,canvas,name; its column "
                "`student` has the class's own ids"
            )
        for number, row in enumerate(rows[1:], start=2):
            student = row[at] if at < len(row) else ""
            if not any(row):
                continue
            if not is_student(student):
                raise CollectError(
                    f"{path}:{number}: {student!r} cannot be a student's id"
                )
            self._add(student, LOGIN, student)
            for column, value in zip(head, row, strict=False):
                if column not in STUDENT:
                    self._add(student, COLUMNS.get(column, ANY), value)

    def find(self, person: Person) -> str:
        """Return the id of a person in the class.

        Raises:
            NotUnderstood: nobody is known by these keys, or two people are.
        """
        if not self.is_listed:
            return self._make(person)
        unclear = ""
        for kind, value in person.keys:
            found = sorted(self._found(kind, value))
            if len(found) > 1:
                both = " or ".join(found)
                unclear = f"{value!r} may be {both}: give ids with --ids"
            elif found and not is_student(found[0]):
                raise NotUnderstood(f"{found[0]!r} cannot be a student's id")
            elif found:
                return found[0]
        raise NotUnderstood(
            unclear
            or f"is in no list of students: add {_told(person)} to class.yml or to a "
            "file given with --ids, and collect again"
        )

    def knows(self, login: str) -> bool:
        """Whether a list has somebody by this name of an account."""
        return bool(self._found(LOGIN, login))

    def _found(self, kind: str, value: str) -> set[str]:
        same = _same(kind, value)
        return set(self._known.get((kind, same), set())) | set(
            self._known.get((ANY, _same(ANY, value)), set())
        )

    def _make(self, person: Person) -> str:
        made = made_id(person.own)
        # a disk may take two ids for one that differ in capitals
        other = self._own.setdefault(made.casefold(), person.own)
        if other != person.own:
            raise NotUnderstood(
                f"the id {made} would be that of {other!r}, too: give ids with --ids"
            )
        return made


def made_id(text: str) -> str:
    """Make an id of what a download calls a person.

    >>> made_id("Amelia  Brandt?"), made_id("..")
    ('Amelia_Brandt_', '_..')
    """
    name = re.sub(r"[\s*?\[\]{}]+", "_", clean_name(" ".join(text.split())))
    return name if is_student(name) else f"_{name}"


def is_student(name: str) -> bool:
    """Tell whether the grader takes a name for a student's id."""
    is_folder = name not in ("", classfile.NAME) and "/" not in name
    return is_folder and is_id(name) and len(name.encode()) <= LONGEST_ID


def _told(person: Person) -> str:
    told = [person.name, *(v for kind, v in person.keys if kind not in (NAME, EMAIL))]
    return " ".join(dict.fromkeys(filter(None, told)))


def _same(kind: str, value: str) -> str:
    """Return a value as it is compared.

    Of names, letters and digits count, for Canvas leaves out the rest; so do not the
    marks above letters, which one system keeps and another takes off.
    """
    value = value.strip().casefold()
    if kind == NAME:
        apart = unicodedata.normalize("NFKD", value)
        return "".join(each for each in apart if each.isalnum())
    return value


def same_value(kind: str, value: str) -> str:
    """Return a key's value as it is compared."""
    return _same(kind, value)


def read_table(path: Path) -> list[list[str]]:
    """Read a CSV file with a first line.

    Raises:
        CollectError: it is none.
        OSError: it cannot be read.
    """
    data = read_regular(path, LARGEST_LIST + 1)
    if len(data) > LARGEST_LIST:
        raise CollectError(f"{path}: is too large for a list")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise CollectError(f"{path}: is not UTF-8; save it as UTF-8") from None
    delimiter = ";" if text.partition("\n")[0].count(";") else ","
    try:
        rows = list(csv.reader(io.StringIO(text), delimiter=delimiter))
    except csv.Error as error:
        raise CollectError(f"{path}: is no CSV file ({error})") from None
    if not rows or not any(rows[0]):
        raise CollectError(f"{path}: is empty")
    return [[from_csv_cell(cell).strip() for cell in row] for row in rows]


def numbered(people: Iterable[str]) -> set[str]:
    """Return the names, as they are compared, that several people have."""
    seen: dict[str, int] = defaultdict(int)
    for name in people:
        seen[_same(NAME, name)] += 1
    return {name for name, number in seen.items() if number > 1}
