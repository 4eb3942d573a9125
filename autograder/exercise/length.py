"""How long a message may be: what it shows is cut, what it says is not.

The name of a mistake and its reason stay whole. What was asked, what came and what is
right share the words that are left.
"""

import re
from collections.abc import Sequence
from typing import Protocol

from autograder.exercise.showing import (
    Shown,
    Span,
    first_difference,
    show_first_difference,
)

MOST_WORDS = 160  # of a message: nobody reads more
FEWEST = 7  # that are left of a value
CUT = "…"  # stands for the words that are left out, and counts as one


class Failure(Protocol):
    """What is shortened; every fact is "" if there is none."""

    on: str
    call: str
    got: str
    expected: str


def keep_short(failure: Failure) -> None:
    """Shorten what a failure shows until its message has few enough words.

    A call is to be typed in again: it is left out rather than cut.
    """
    if count_words(failure) <= MOST_WORDS:
        return
    failure.call = ""
    shown = (failure.on, failure.got, failure.expected)
    counts = list(map(count_words, shown))
    said = count_words(failure) - sum(counts)
    most = _share(counts, MOST_WORDS - said)
    failure.on = _from_word(failure.on, 0, most)
    failure.got, failure.expected = cut_both(failure.got, failure.expected, most)


def count_words(text: object) -> int:
    """Count the words of a message, or of a part of it."""
    return len(str(text).split())


def cut_both(got: str, expected: str, most: int) -> tuple[str, str]:
    """Cut two texts to so many words each, so that what differs can still be seen."""
    before = got, expected
    after = tuple(
        _around(text, place, most)
        for text, place in zip(before, _first_difference(*before), strict=True)
    )
    if after[0] == after[1] and got != expected:
        return show_first_difference(got, expected)
    return after[0], after[1]


def _share(counts: Sequence[int], room: int) -> int:
    """Say how many words each of several texts may have, if the room is for all."""
    most = max(counts)
    while most > FEWEST and sum(min(count, most) for count in counts) > room:
        most -= 1
    return most


def _first_difference(got: str, expected: str) -> tuple[int, int]:
    """Say where two texts first differ: where that is marked, or letter by letter."""
    marks: Sequence[Span] = getattr(got, "marks", ())
    others: Sequence[Span] = getattr(expected, "marks", ())
    if marks and others:
        return marks[0][0], others[0][0]
    first = first_difference(got, expected)
    return first, first


def _around(text: str, place: int, most: int) -> str:
    """Cut a text to so many words, among which is the one at a place."""
    ends = [word.end() for word in re.finditer(r"\S+", text)]
    number = next((n for n, end in enumerate(ends) if end >= place), 0)
    return _from_word(text, number if number >= most - 1 else 0, most)


def _from_word(text: str, first: int, most: int) -> str:
    """Take so many words of a text from one of them on, with "…" for the others."""
    words = [word.span() for word in re.finditer(r"\S+", text)]
    if len(words) <= most:
        return text
    before = f"{CUT} " if first else ""
    left = most - bool(first)
    after = f" {CUT}" if len(words) > first + left else ""
    last = min(len(words), first + left - bool(after)) - 1
    return _part(text, words[first][0], words[last][1], before, after)


def _part(text: str, start: int, end: int, before: str, after: str) -> Shown:
    """Take a part of a text, with those of its marks that are in it."""
    moved = len(before) - start
    marks: Sequence[Span] = getattr(text, "marks", ())
    kept = [(a + moved, b + moved) for a, b in marks if start <= a and b <= end]
    value = getattr(text, "value", None)
    return Shown(f"{before}{text[start:end]}{after}", kept, value)
