"""How far somebody has come: which checks have passed, by chapter and exercise.

It is kept in a small file beside the notebook. The file is no part of any grade, and
may be deleted or damaged at any time: then it is begun anew.
"""

import contextlib
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autograder.exercise import chapters, front_end
from autograder.exercise.chapters import Cell, Chapter, Exercise
from autograder.files import read_regular, write_beside

FILE = ".progress.json"
LARGEST = 1_000_000  # bytes of it that are read
PASSED, NOT_YET, NOT_TRIED = "passed", "not yet", "not tried"
BY_HAND = "graded by a person"

Results = dict[str, dict[str, bool]]  # by chapter and call, whether a check passed

_unsaved: dict[str, dict[str, bool | None]] = {}  # None: to be forgotten
_sheet: Chapter | None = None  # what the notebook asks for, if it is no chapter


# --- a sheet --------------------------------------------------------------------------


def begin_sheet(title: str, points: Mapping[str, Sequence[int]]) -> None:
    """Count, from here on, the exercises of a sheet in place of a chapter's.

    Args:
        title: of the sheet.
        points: of each graded cell, by the exercises' ids, in order.
    """
    global _sheet
    known = chapters.exercises()
    asked = (_with_points(known[name], each) for name, each in points.items())
    _sheet = Chapter("", 0, title, tuple(asked))


def _with_points(exercise: Exercise, points: Sequence[int]) -> Exercise:
    pairs = zip(exercise.cells, points, strict=False)  # by hand: points, and no cell
    cells = tuple(replace(cell, points=each) for cell, each in pairs)
    return replace(exercise, points=sum(points), cells=cells)


def _standing(page: str) -> "Standing":
    """Return what has passed of the chapter, or of the sheet that was begun."""
    known = results()
    if _sheet is None:
        return Standing(chapters.chapters()[page], known)
    calls = {call: passed for each in known.values() for call, passed in each.items()}
    return Standing(_sheet, {_sheet.page: calls})  # no two chapters have a call alike


# --- what a check reports -------------------------------------------------------------


def passed(page: str, check: str, options: Mapping[str, object]) -> str:
    """Note that a check has passed; return the line that says so.

    Args:
        page: the chapter.
        check: the name of the check.
        options: with which it was called.
    """
    exercise, call = _asked(page, check, options)
    if exercise is None:
        return f"{check}: passed"
    if not call or front_end.kernel() is None:
        return f"{exercise.number} {check}: passed"
    _note(page, call, True)
    standing = _standing(page)
    return f"{standing.word(exercise)} · {standing.sums()}"


def failed(page: str, check: str, options: Mapping[str, object], *, tried: bool) -> str:
    """Note that a check has failed; return its exercise's number, "" if it has none.

    Args:
        page: the chapter.
        check: the name of the check.
        options: with which it was called.
        tried: whether there is an answer.
    """
    exercise, call = _asked(page, check, options)
    if call and front_end.kernel() is not None:
        _note(page, call, False if tried else None)
    return exercise.number if exercise else ""


def _asked(
    page: str, check: str, options: Mapping[str, object]
) -> tuple[Exercise | None, str]:
    """Return whose check it is, and the call if the notebook makes it visibly."""
    chapter = chapters.chapters().get(page)
    exercise = chapter.exercise_of(check) if chapter else None
    if exercise is None:
        return None, ""
    call = chapters.call_of(check, options)
    return exercise, call if call in exercise.calls else ""


# --- the file -------------------------------------------------------------------------


def results() -> Results:
    """Return what is known: what lies beside the notebook, and what is newer."""
    folder = front_end.notebook_folder()
    return _merged(read(folder / FILE) if folder else {}, _unsaved)


def read(path: Path) -> Results:
    """Read the file; what is missing, damaged or no result counts as nothing."""
    try:
        content = json.loads(read_regular(path, LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(content, dict):
        return {}
    return {
        page: {call: result for call, result in calls.items() if type(result) is bool}
        for page, calls in content.items()
        if isinstance(calls, dict)
    }


def _note(page: str, call: str, result: bool | None) -> None:
    """Keep a result, in the file if there is one to be written."""
    _unsaved.setdefault(page, {})[call] = result
    folder = front_end.notebook_folder()
    if folder is None:
        return
    content = json.dumps(results(), indent=1, sort_keys=True) + "\n"
    with contextlib.suppress(OSError):  # a folder that cannot be written: in memory
        write_beside(folder / FILE, content)
        _unsaved.clear()


def _merged(old: Results, new: Mapping[str, Mapping[str, bool | None]]) -> Results:
    found = {page: dict(calls) for page, calls in old.items()}
    for page, calls in new.items():
        together: dict[str, bool | None] = {**found.get(page, {}), **calls}
        found[page] = {
            call: result for call, result in together.items() if result is not None
        }
    return found


# --- what it amounts to ---------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """A chapter, and what has passed of it."""

    chapter: Chapter
    results: Results

    def has_passed(self, cell: Cell) -> bool:
        """Whether all checks of a cell have passed."""
        known = self.results.get(self.chapter.page, {})
        return all(known.get(call) is True for call in cell.calls)

    def state(self, exercise: Exercise) -> str:
        """Say what became of an exercise; all of its visible checks count."""
        if not exercise.cells:
            return BY_HAND
        if all(map(self.has_passed, exercise.cells)):
            return PASSED
        known = self.results.get(self.chapter.page, {})
        return NOT_YET if known.keys() & set(exercise.calls) else NOT_TRIED

    def word(self, exercise: Exercise) -> str:
        """Say in words that a check of an exercise has passed."""
        if self.state(exercise) == PASSED:
            return f"{exercise.number} passed"
        known = self.results.get(self.chapter.page, {})
        right = sum(known.get(call) is True for call in exercise.calls)
        return f"{exercise.number}: {right} of {len(exercise.calls)} checks passed"

    def open(self) -> list[Exercise]:
        """Return the exercises that a check has still to pass, in order."""
        states = (NOT_YET, NOT_TRIED)
        return [each for each in self.chapter.exercises if self.state(each) in states]

    def counts(self) -> tuple[int, int, int, int]:
        """Count exercises that passed, all, their points, and all; none by hand."""
        checked = [each for each in self.chapter.exercises if each.cells]
        cells = [cell for each in checked for cell in each.cells]
        return (
            sum(self.state(each) == PASSED for each in checked),
            len(checked),
            sum(cell.points for cell in cells if self.has_passed(cell)),
            sum(cell.points for cell in cells),
        )

    def sums(self) -> str:
        """Say how many exercises have passed, and for how many points."""
        done, exercises, points, all_points = self.counts()
        return f"{done} of {exercises} · {points} of {all_points} points"

    @property
    def heading(self) -> str:
        """The chapter and its sums."""
        done, exercises, points, all_points = self.counts()
        chapter = f"Chapter {self.chapter.number}, " if self.chapter.number else ""
        return (
            f"{chapter}{self.chapter.title}: {done} of "
            f"{exercises} exercises · {points} of {all_points} points"
        )


# --- the table ------------------------------------------------------------------------


def show(page: str) -> None:
    """Show a chapter or sheet as a table, with links to what is open."""
    standing = _standing(page)
    front_end.display(as_html(standing), as_text(standing))


def as_text(standing: Standing) -> str:
    """Write a chapter as lines of text."""
    wide = max(len(each.title) for each in standing.chapter.exercises)
    lines = [
        f"  {each.number:<5} {each.title:<{wide}}  {_points(each):>9}  "
        f"{standing.state(each)}"
        for each in standing.chapter.exercises
    ]
    return "\n".join([standing.heading, *lines])


def as_html(standing: Standing) -> str:
    """Write a chapter as an HTML table, in whatever colours surround it."""
    rows = "".join(_row(standing, each) for each in standing.chapter.exercises)
    head = "".join(
        f'<th scope="col" style="{CELL}{style}">{word}</th>'
        for word, style in (
            ("Exercise", ""),
            ("Points", NUMBER),
            ("State", ""),
        )
    )
    return (
        f'<table style="{TABLE}"><caption style="{CAPTION}">'
        f"{html.escape(standing.heading)}</caption>"
        f'<thead><tr style="{ROW}">{head}</tr></thead><tbody>{rows}</tbody></table>'
    )


TABLE = (
    "border-collapse:collapse;margin:.5em 0;max-width:100%;color:inherit;"
    "font-family:system-ui,-apple-system,'Segoe UI',sans-serif;font-size:14px;"
)
CAPTION = (
    "caption-side:top;text-align:left;font-weight:600;color:inherit;padding:.2em .7em;"
)
ROW = "background:none;border-bottom:1px solid rgba(128,128,128,.45);"
CELL = (
    "text-align:left;vertical-align:top;padding:.25em .7em;color:inherit;"
    "white-space:normal;"
)
NUMBER = "text-align:right;"
SYMBOLS = {PASSED: "✓", NOT_YET: "✗", NOT_TRIED: "○", BY_HAND: "…"}


def _row(standing: Standing, exercise: Exercise) -> str:
    state = standing.state(exercise)
    name = html.escape(f"{exercise.number} {exercise.title}")
    if state in (NOT_YET, NOT_TRIED):
        link = f'href="#{exercise.anchor}" style="color:inherit"'
        name = f"<a {link}>{name}</a>"
    weight = "font-weight:600;" if state == NOT_YET else "font-weight:400;"
    symbol = f'<span aria-hidden="true">{SYMBOLS[state]}</span>'
    return (
        f'<tr style="{ROW}"><th scope="row" style="{CELL}{weight}">{name}</th>'
        f'<td style="{CELL}{NUMBER}">{exercise.points}</td>'
        f'<td style="{CELL}{weight}">{symbol} {state}</td></tr>'
    )


def _points(exercise: Exercise) -> str:
    return "1 point" if exercise.points == 1 else f"{exercise.points} points"
