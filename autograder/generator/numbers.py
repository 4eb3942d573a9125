"""Exercises are named by id; their numbers follow from their order.

In a text notebook a heading is ``## Exercise · Softmax``, and ``{ex}`softmax``` in any
text, of a page too, stands for its number, 4.1. So dropping or moving an exercise is
one edit, and a reference to one that is not there is found.
"""

import functools
import re
from pathlib import Path

HEADING = "## Exercise · "
REFERENCE = re.compile(r"\{ex\}`([^`\n]*)`")
SOURCES = "[0-9][0-9]_*.md"
_CHAPTER = re.compile(r"^course: \{number: (\d+)", re.MULTILINE)
_DESCRIPTION = re.compile(r'^\+\+\+ \{"exercise": "([\w-]+)"', re.MULTILINE)


class UnknownExercise(LookupError):
    """A text refers to an exercise that is not there; ``line`` counts from 0."""

    def __init__(self, name: str, line: int) -> None:
        super().__init__(f"no exercise is named {name!r}")
        self.line = line


def numbers(folder: Path) -> dict[str, str]:
    """Return the number of each exercise, "4.1", by its id.

    Args:
        folder: where the chapters' text notebooks are.
    """
    return _numbers(state(folder))


def state(folder: Path) -> tuple[tuple[Path, int], ...]:
    """Return the text notebooks of a folder, each with the time of its last change."""
    return tuple(
        (path, path.stat().st_mtime_ns) for path in sorted(folder.glob(SOURCES))
    )


def chapters(folder: Path) -> dict[str, str]:
    """Return the chapter of each exercise, "04_attention", by its id.

    Args:
        folder: where the chapters' text notebooks are.
    """
    found: dict[str, str] = {}
    for path in sorted(folder.glob(SOURCES)):
        for name in _DESCRIPTION.findall(path.read_text("utf-8", errors="replace")):
            found.setdefault(name, path.stem)
    return found


@functools.lru_cache(maxsize=8)
def _numbers(files: tuple[tuple[Path, int], ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path, _ in files:
        text = path.read_text(encoding="utf-8", errors="replace")
        chapter = _CHAPTER.search(text)
        for place, name in enumerate(_DESCRIPTION.findall(text), start=1):
            found.setdefault(name, f"{chapter[1] if chapter else '?'}.{place}")
    return found


def with_numbers(text: str, known: dict[str, str]) -> str:
    """Write numbers for references; raise ``UnknownExercise``."""

    def number(match: re.Match) -> str:
        if match[1] not in known:
            raise UnknownExercise(match[1], text.count("\n", 0, match.start()))
        return known[match[1]]

    return REFERENCE.sub(number, text)


def with_numbered_heading(text: str, number: str) -> str:
    """Put an exercise's number into its heading."""
    return text.replace(HEADING, f"## Exercise {number} · ", 1)
