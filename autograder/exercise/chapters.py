"""The chapters' exercises: numbers, titles, points, and the checks that give them.

``chapters.json`` beside this module is generated from the text notebooks, because a
student has the notebook of one chapter and this package, and not the sources.
"""

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

TABLE = Path(__file__).with_name("chapters.json")


@dataclass(frozen=True)
class Cell:
    """A check cell: its points and its calls, as ``call_of`` writes them."""

    points: int
    calls: tuple[str, ...]


@dataclass(frozen=True)
class Exercise:
    """An exercise; ``cells`` is empty if a person grades it."""

    name: str
    number: str  # "4.7"
    title: str
    points: int
    cells: tuple[Cell, ...]

    @property
    def calls(self) -> list[str]:
        """The calls of all its check cells."""
        return [call for cell in self.cells for call in cell.calls]

    @property
    def anchor(self) -> str:
        """The id of its place in the notebook."""
        return anchor_of(self.number)


@dataclass(frozen=True)
class Chapter:
    """A chapter of exercises; ``page`` names its notebook: "04_attention"."""

    page: str
    number: int
    title: str
    exercises: tuple[Exercise, ...]

    def exercise_of(self, check: str) -> Exercise | None:
        """Return the exercise whose answer a check looks at; None if there is none."""
        for exercise in self.exercises:
            if any(call.startswith(f"{check}(") for call in exercise.calls):
                return exercise
        return None


def anchor_of(number: str) -> str:
    """Return the id of an exercise's place in its notebook.

    >>> anchor_of("4.7")
    'exercise-4-7'
    """
    return f"exercise-{number.replace('.', '-')}"


def call_of(check: str, options: Mapping[str, object]) -> str:
    """Write which check was called; one function may stand for several.

    >>> call_of("softmax", {}), call_of("exact_match", {"least": 80})
    ('softmax()', 'exact_match(least=80)')
    """
    given = ", ".join(f"{name}={value!r}" for name, value in options.items())
    return f"{check}({given})"


@functools.cache
def chapters() -> dict[str, Chapter]:
    """Read the chapters, by the names of their pages, in order."""
    return {
        page: Chapter(
            page,
            content["number"],
            content["title"],
            tuple(map(_exercise, content["exercises"])),
        )
        for page, content in _table()["chapters"].items()
    }


@functools.cache
def exercises() -> dict[str, Exercise]:
    """Read the exercises of all chapters, by their names, in order."""
    return {
        exercise.name: exercise
        for chapter in chapters().values()
        for exercise in chapter.exercises
    }


def site() -> str:
    """Return the address of the book's site, "" if it has none."""
    return _table()["site"]


@functools.cache
def _table() -> dict:
    return json.loads(TABLE.read_text(encoding="utf-8"))


def _exercise(content: dict) -> Exercise:
    cells = tuple(
        Cell(cell["points"], tuple(cell["calls"])) for cell in content["cells"]
    )
    facts = {key: content[key] for key in ("name", "number", "title", "points")}
    return Exercise(**facts, cells=cells)
