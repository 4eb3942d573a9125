"""``python -m autograder export``: grades.csv, as Canvas or Moodle read it.

What is relied on was read in the importers themselves: ``lib/gradebook_importer.rb``
and ``lib/gradebook_exporter.rb`` of instructure/canvas-lms, and
``grade/import/csv/classes/load_data.php`` of moodle/moodle. Where they differ from
what one would expect, a comment says so.
"""

import argparse
import csv
import io
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

from autograder import generator
from autograder.files import said, write_beside
from autograder.grading import classfile
from autograder.grading.classfile import Class, ClassError, Student
from autograder.grading.clean import csv_file, from_csv_cell, is_formula, line, say

CANVAS, MOODLE = "canvas", "moodle"
POINTS_POSSIBLE = "    Points Possible"  # as Canvas writes it
CANVAS_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
EXCUSED = "EX"
# Moodle reads "-" as no grade everywhere. An empty cell is that in a column of an
# assignment that is there, but 0 in one that the import makes.
NO_GRADE = "-"
MOODLE_NAMES = ("First name", "Last name", "Surname")
EMAIL, ID_NUMBER, USERNAME = "Email address", "ID number", "Username"
NEEDED = ("assignment", "student_id", "score", "max_score", "status", "reason")
BY_HAND = "to be graded by hand"


class ExportError(Exception):
    """The files cannot be used; says what to do."""


# --- what was graded ------------------------------------------------------------------


@dataclass(frozen=True)
class Grade:
    """A row of grades.csv; ``score`` is None if it was not graded."""

    score: float | None
    maximum: str
    penalty: float
    reason: str


@dataclass(frozen=True)
class Grades:
    """The grades of a class, by chapter and student."""

    chapters: list[str]
    students: dict[str, Student]
    grades: dict[tuple[str, str], Grade]  # by student and chapter

    def maximum(self, chapter: str) -> str:
        """Return the points of a chapter."""
        return next(g.maximum for (_, c), g in self.grades.items() if c == chapter)


def read_grades(
    path: Path, chapters: Iterable[str] = (), of_class: Class | None = None
) -> Grades:
    """Read grades.csv.

    Args:
        path: the file that grading wrote.
        chapters: those wanted; none means all.
        of_class: the class (``classfile.read``), for names and the systems' ids.

    Raises:
        ExportError: it is another file, or lacks a chapter.
    """
    rows = _read_csv(path)
    if not rows or any(name not in rows[0] for name in NEEDED):
        raise ExportError(
            f"{path}: is no grades.csv of this grader, which has the columns "
            f"{', '.join(NEEDED)}; nbgrader's own export has 0 for what was not graded"
        )
    entries = [
        dict(zip(rows[0], map(from_csv_cell, row), strict=False)) for row in rows[1:]
    ]
    there = list(dict.fromkeys(entry["assignment"] for entry in entries))
    wanted = list(chapters) or there
    missing = [chapter for chapter in wanted if chapter not in there]
    if missing or not there:
        raise ExportError(f"{path}: holds no grades of {', '.join(missing) or 'any'}")
    listed = of_class.students if of_class else {}
    chosen = [entry for entry in entries if entry["assignment"] in wanted]
    students = {e["student_id"]: _student(e, listed) for e in chosen}
    grades = {(e["student_id"], e["assignment"]): _grade(path, e) for e in chosen}
    return Grades(wanted, students, grades)


def _student(entry: dict[str, str], listed: dict[str, Student]) -> Student:
    name = entry["student_id"]
    known = listed.get(name, Student(name))
    return Student(
        name,
        known.first or entry.get("first_name", ""),
        known.last or entry.get("last_name", ""),
        known.email or entry.get("email", ""),
        known.canvas,
        known.sis,
        known.login,
    )


def _grade(path: Path, entry: dict[str, str]) -> Grade:
    graded = entry["status"] == "graded"
    try:
        return Grade(
            score=_finite(entry["score"]) if graded else None,
            maximum=_number(_finite(entry["max_score"])),
            penalty=_finite(entry.get("late_submission_penalty") or "0"),
            reason=entry["reason"],
        )
    except ValueError:
        where = f"{entry['student_id']}, {entry['assignment']}"
        raise ExportError(f"{path}: {where}: the score is no number") from None


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _number(value: float) -> str:
    """Write a number with the two decimals that both systems keep, at most."""
    cents = Decimal(str(value)).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return f"{cents:f}".rstrip("0").rstrip(".")


def _read_csv(path: Path) -> list[list[str]]:
    """Read a CSV file; the systems write semicolons where commas are decimal."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ExportError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ExportError(f"{path}: is not UTF-8; export it as CSV again") from None
    head = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=head.count)
    try:
        csv.field_size_limit(len(text) + 1)  # by default less than a long reason
        rows = list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error as error:
        raise ExportError(f"{path}: is no CSV file ({error})") from None
    return [row for row in rows if any(cell.strip() for cell in row)]


# --- the roster -----------------------------------------------------------------------


@dataclass(frozen=True)
class Roster:
    """What a system exported of its own gradebook."""

    path: Path
    header: list[str]
    rows: list[list[str]]
    points: list[str] = field(default_factory=list)  # Canvas's row of points possible

    def column(self, name: str) -> int | None:
        """Return a column's position, or None."""
        return self.header.index(name) if name in self.header else None

    def cell(self, row: list[str], name: str) -> str:
        """Return a row's cell; empty if there is no such column."""
        position = self.column(name)
        if position is None or position >= len(row):
            return ""
        return row[position].strip()


def read_roster(path: Path, system: str) -> Roster:
    """Read a gradebook that Canvas or Moodle exported as CSV.

    Raises:
        ExportError: it is another file.
    """
    rows = _read_csv(path)
    header = [cell.strip() for cell in rows[0]] if rows else []
    rows = [row + [""] * (len(header) - len(row)) for row in rows]
    if system == MOODLE:
        if not {EMAIL, ID_NUMBER, USERNAME} & set(header):
            raise ExportError(
                f"{path}: is no gradebook that Moodle exported in English: it has none "
                f"of the columns {EMAIL}, {ID_NUMBER}, {USERNAME}"
            )
        return Roster(path, header, rows[1:])
    if "ID" not in header or "Section" not in header:
        raise ExportError(
            f"{path}: is no gradebook that Canvas exported: the columns ID and Section "
            "are missing"
        )
    points = [row for row in rows[1:] if "Points Possible" in row[0]]
    people = [row for row in rows[1:] if row not in points and not _is_muted(row)]
    return Roster(path, header, people, points[0] if points else [])


def _is_muted(row: list[str]) -> bool:
    """Tell Canvas's line on assignments whose grades are not posted."""
    cells = [cell.strip().lower() for cell in row]
    return all(not c or c == "muted" or c.startswith("manual posting") for c in cells)


def match(
    grades: Grades, roster: Roster, ids: dict[str, Callable[[Student], str]]
) -> tuple[dict[str, int], list[str], list[int]]:
    """Find the students' rows in a roster.

    An id that the class's file gives decides. Without one a student is found by the
    folder's name or e-mail address where the system has its ids, else by the full name.

    Args:
        grades: the class.
        roster: of the system.
        ids: the roster's columns that identify, and what a student has for each.

    Returns:
        The rows by student; students without a row; rows without a student.
    """
    places = {column: _places(roster, column) for column in ids}
    names = _unique(
        {_full_name(roster, row): n for n, row in enumerate(roster.rows)},
        Counter(_full_name(roster, row) for row in roster.rows),
    )
    found: dict[str, int] = {}
    for student in grades.students.values():
        row = _place(student, places, names, ids)
        if row is not None:
            found[student.id] = row
    twice = [row for row, number in Counter(found.values()).items() if number > 1]
    if twice:
        both = [student for student, row in found.items() if row == twice[0]]
        raise ExportError(
            f"{' and '.join(both)}: are one person in {roster.path}; give them ids in "
            "the class's file"
        )
    lost = [student for student in grades.students if student not in found]
    rest = [n for n in range(len(roster.rows)) if n not in found.values()]
    return found, lost, rest


def _place(
    student: Student,
    places: dict[str, dict[str, int]],
    names: dict[str, int],
    ids: dict[str, Callable[[Student], str]],
) -> int | None:
    given = {c: own(student).lower() for c, own in ids.items() if own(student)}
    for column, value in given.items():
        if value in places[column]:
            return places[column][value]
    if any(column != EMAIL for column in given):
        return None  # what was written down is not there: do not guess another
    for column in ids:
        for value in (student.id.lower(), student.email.lower()):
            if value in places[column]:
                return places[column][value]
    return names.get(f"{student.first} {student.last}".strip().lower())


def _places(roster: Roster, column: str) -> dict[str, int]:
    values = [roster.cell(row, column).lower() for row in roster.rows]
    return _unique({value: n for n, value in enumerate(values)}, Counter(values))


def _unique(places: dict[str, int], number: Counter) -> dict[str, int]:
    return {key: n for key, n in places.items() if key and number[key] == 1}


def _full_name(roster: Roster, row: list[str]) -> str:
    """Return a person's name, the first name first, in lower case."""
    if roster.column("Student") is not None:
        last, _, first = roster.cell(row, "Student").partition(",")
    else:
        first = roster.cell(row, "FirstName") or roster.cell(row, "First name")
        last = next(
            (roster.cell(row, n) for n in ("LastName", "Last name", "Surname")
             if roster.column(n) is not None), ""
        )  # fmt: skip
    return f"{first.strip()} {last.strip()}".strip().lower()


# --- Canvas ---------------------------------------------------------------------------

CANVAS_IDS: dict[str, Callable[[Student], str]] = {
    "ID": lambda student: student.canvas,
    "SIS User ID": lambda student: student.sis,
    "SIS Login ID": lambda student: student.login,
}


@dataclass(frozen=True)
class Export:
    """A file to import, and what whoever imports it has to know."""

    text: str
    students: int
    notes: list[str]


def canvas(grades: Grades, roster: Roster | None = None) -> Export:
    """Write the CSV that Canvas imports into its gradebook.

    Its first columns say who; the last of them has to be Section. Then comes a column
    for each assignment, whose header Canvas writes as ``title (id)``. A row named
    Points Possible *sets* the points of an assignment: so with a roster, its own are
    kept. Students and assignments that are not in the file stay as they are; a cell
    that is empty where Canvas has a score shows as a change in its preview.

    Args:
        grades: the class.
        roster: a gradebook that Canvas exported: rows keep its ids, sections and order.
    """
    if roster is None:
        head = [*CANVAS_COLUMNS, *grades.chapters]
        points = [POINTS_POSSIBLE, *[""] * (len(CANVAS_COLUMNS) - 1)]
        points += [grades.maximum(chapter) for chapter in grades.chapters]
        rows = [
            [_sortable(s), s.canvas, s.sis, s.login or s.id, "", *_cells(grades, s.id)]
            for s in grades.students.values()
        ]
        return Export(csv_file([head, points, *rows]), len(rows), [])
    found, lost, rest = match(grades, roster, CANVAS_IDS)
    columns = [_canvas_column(roster, chapter) for chapter in grades.chapters]
    width = roster.header.index("Section") + 1
    notes = [f"{name}: has grades, but no row in {roster.path.name}" for name in lost]
    notes += _without_grades(roster, rest)
    head, points = roster.header[:width], [POINTS_POSSIBLE, *[""] * (width - 1)]
    for chapter, column in zip(grades.chapters, columns, strict=True):
        head.append(column or chapter)
        points.append(_points(grades, roster, chapter, column, notes))
    rows = []
    for student, number in sorted(found.items(), key=lambda item: item[1]):
        row = roster.rows[number]
        there = [roster.cell(row, column) if column else "" for column in columns]
        rows.append([*row[:width], *_merged(grades, student, there, notes)])
    return Export(csv_file([head, points, *rows]), len(rows), notes)


def _sortable(student: Student) -> str:
    name = ", ".join(part for part in (student.last, student.first) if part)
    return name or student.id


def _cells(grades: Grades, student: str, empty: str = "") -> list[str]:
    """Return a student's scores; what was not graded is no 0."""
    found = [grades.grades.get((student, chapter)) for chapter in grades.chapters]
    return [
        empty if grade is None or grade.score is None else _number(grade.score)
        for grade in found
    ]


def _canvas_column(roster: Roster, chapter: str) -> str:
    """Find the assignment of a chapter: its title is or contains the chapter's name."""
    width = roster.header.index("Section") + 1
    titles = {
        header: re.sub(r" \(\d+\)$", "", header) for header in roster.header[width:]
    }
    same = [header for header, title in titles.items() if title == chapter]
    within = [header for header, title in titles.items() if chapter in title]
    found = same or within
    if len(found) > 1:
        raise ExportError(
            f"{roster.path}: several assignments are named {chapter}: "
            f"{', '.join(found)}; rename all but one in Canvas"
        )
    return found[0] if found else ""


def _points(
    grades: Grades, roster: Roster, chapter: str, column: str, notes: list[str]
) -> str:
    ours = grades.maximum(chapter)
    theirs = roster.cell(roster.points, column).replace(",", ".") if column else ""
    if not column:
        notes.append(
            f"{chapter}: no such assignment in Canvas; it will offer to make it"
        )
    elif theirs and _as_number(theirs) != float(ours):
        notes.append(
            f"{chapter}: {theirs} points in Canvas, {ours} here; nothing was rescaled"
        )
    return theirs or ours


def _as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _merged(
    grades: Grades, student: str, there: list[str], notes: list[str]
) -> list[str]:
    """Return a student's cells; who is excused in Canvas stays so."""
    cells = []
    mine = _cells(grades, student)
    for chapter, score, theirs in zip(grades.chapters, mine, there, strict=True):
        where = f"{student}, {chapter}"
        excused = theirs.upper() == EXCUSED
        if excused and score:
            notes.append(
                f"{where}: is excused in Canvas, the score {score} is left out"
            )
        elif not score and _as_number(theirs.replace(",", ".")) is not None:
            notes.append(f"{where}: has {theirs} in Canvas, and no grade here")
        cells.append(EXCUSED if excused else score)
    return cells


def _without_grades(roster: Roster, rows: list[int]) -> list[str]:
    named = [(n, _full_name(roster, roster.rows[n])) for n in rows]
    return [
        f"{_shown(roster, roster.rows[n])}: is in {roster.path.name}, but not graded: "
        "no row written"
        for n, name in named
        if name != "test student"  # Canvas's own
    ]


def _shown(roster: Roster, row: list[str]) -> str:
    columns = ("Student", "First name", "Last name", "Surname", "LastName", "FirstName")
    parts = [roster.cell(row, column) for column in columns]
    return " ".join(part for part in parts if part) or row[0]


# --- Moodle ---------------------------------------------------------------------------

MOODLE_IDS: dict[str, Callable[[Student], str]] = {
    EMAIL: lambda student: student.email,
    ID_NUMBER: lambda student: student.sis,
    USERNAME: lambda student: student.login,
}


def moodle(grades: Grades, roster: Roster | None = None) -> Export:
    """Write the CSV that Moodle imports: who, and a grade and feedback a chapter.

    One column identifies. Moodle gives a row in which that cell is empty to the person
    of the row *before*, and stops at the first person it does not know: so nobody
    without an id, and with a roster nobody who is not in it, gets a row. Addresses keep
    the roster's capitals, for Moodle compares them.

    Args:
        grades: the class.
        roster: a gradebook that Moodle exported.
    """
    notes: list[str] = []
    if roster is None:
        people = {
            s.id: {"First name": s.first, "Last name": s.last}
            | {column: own(s) for column, own in MOODLE_IDS.items()}
            for s in grades.students.values()
        }
    else:
        found, lost, rest = match(grades, roster, MOODLE_IDS)
        notes += [
            f"{name}: has grades, but no row in {roster.path.name}" for name in lost
        ]
        notes += _without_grades(roster, rest)
        wanted = [*MOODLE_NAMES, *MOODLE_IDS]
        people = {
            student: {c: roster.cell(roster.rows[n], c) for c in wanted}
            for student, n in found.items()
        }
    if roster is None and not any(p[c] for p in people.values() for c in MOODLE_IDS):
        notes.append(f"no addresses or ids are known: folders' names as {USERNAME}")
        for student, person in people.items():
            person[USERNAME] = student
    identity = max(MOODLE_IDS, key=lambda c: sum(bool(p[c]) for p in people.values()))
    _refuse_twins(people, identity)
    kept = {}
    for student, person in people.items():
        if not person[identity]:
            notes.append(f"{student}: has no {identity}, no row written")
        elif is_formula(person[identity]):  # with an apostrophe Moodle stops at it
            notes.append(
                f"{student}: the {identity} {person[identity]} begins like a formula, "
                "no row written; enter the grade in Moodle"
            )
        else:
            kept[student] = person
    names = [name for name in MOODLE_NAMES if any(p.get(name) for p in kept.values())]
    head = [*names, identity]
    for chapter in grades.chapters:
        head += [chapter, f"{chapter} (feedback)"]
    rows = [
        [
            *(person[column] for column in [*names, identity]),
            *_with_words(grades, student),
        ]
        for student, person in kept.items()
    ]
    steps = [
        f"in Moodle, map from and to: {identity}; map each column to its grade item",
        *(
            f"{c}: its maximum grade must be {grades.maximum(c)}"
            for c in grades.chapters
        ),
    ]
    return Export(csv_file([head, *rows]), len(rows), notes + steps)


def _refuse_twins(people: dict[str, dict[str, str]], identity: str) -> None:
    number = Counter(p[identity].lower() for p in people.values() if p[identity])
    for student, person in people.items():
        if number[person[identity].lower()] > 1:
            raise ExportError(
                f"{student}: another student has the {identity} {person[identity]}, too"
            )


def _with_words(grades: Grades, student: str) -> list[str]:
    cells = []
    scores = _cells(grades, student, NO_GRADE)
    for chapter, score in zip(grades.chapters, scores, strict=True):
        grade = grades.grades.get((student, chapter))
        cells += [score, _feedback(grade) if grade else ""]
    return cells


def _feedback(grade: Grade) -> str:
    if grade.score is None:
        return f"not graded: {grade.reason}"
    parts = [f"{_number(grade.score)} of {grade.maximum} points"]
    if grade.penalty:
        parts.append(f"{_number(grade.penalty)} taken off for being late")
    if BY_HAND in grade.reason:
        parts.append("an answer is still to be graded by hand")
    return "; ".join(parts)


# --- the command ----------------------------------------------------------------------


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments."""
    add = parser.add_argument
    add("--grades", type=Path, required=True, metavar="FILE", help="OUT/grades.csv")
    add("--for", dest="system", required=True, choices=(CANVAS, MOODLE))
    add("--out", type=Path, required=True, metavar="FILE", help="the file to import")
    add(
        "--roster",
        type=Path,
        metavar="FILE",
        help="the gradebook that Canvas or Moodle exports as CSV; its ids are kept",
    )
    add(
        "--class",
        dest="class_file",
        type=Path,
        metavar="FILE",
        help="the class's file, for names and the systems' ids",
    )
    add(
        "--chapter",
        action="append",
        default=[],
        metavar="NAME",
        help="export this chapter (may be repeated; default: all)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write grades.csv as a file that Canvas or Moodle imports."""
    try:
        grades, made = _export(arguments)
        write_beside(arguments.out, made.text)
    except (ExportError, ClassError) as error:
        say(f"error: {error}", sys.stderr)
        return 2
    except OSError as error:
        say(f"error: {said(error, arguments.out)}", sys.stderr)
        return 2
    chapters = ", ".join(grades.chapters)
    say(f"{arguments.out}: {made.students} students, {chapters}")
    for text in [*made.notes, *_open(grades)]:
        say(line(f"  {text}"))
    return 0


def _export(arguments: argparse.Namespace) -> tuple[Grades, Export]:
    given = [arguments.grades, arguments.roster, arguments.class_file]
    if arguments.out.resolve() in [path.resolve() for path in given if path]:
        raise ExportError(
            f"{arguments.out}: would be overwritten; choose another --out"
        )
    of_class = None
    if arguments.class_file:
        of_class = classfile.read(arguments.class_file, generator.assignments())
    grades = read_grades(arguments.grades, arguments.chapter, of_class)
    roster = None
    if arguments.roster:
        roster = read_roster(arguments.roster, arguments.system)
    write = canvas if arguments.system == CANVAS else moodle
    return grades, write(grades, roster)


def _open(grades: Grades) -> list[str]:
    """List what is not final: not graded, or an answer that waits for a person."""
    lines = []
    for (student, chapter), grade in grades.grades.items():
        if grade.score is None:
            lines.append(f"{student}, {chapter}: no score: {grade.reason}")
        elif BY_HAND in grade.reason:
            lines.append(f"{student}, {chapter}: without points to be given by hand")
    return lines
