"""Texts that the checks draw, cut and write down; nothing here is a tensor in the end.

A text is drawn as pieces, so a check knows the pieces without cutting it.
"""

import re
from collections.abc import Callable, Hashable, Iterable
from itertools import pairwise

from autograder.exercise.inputs import Source, draw_several
from autograder.exercise.showing import shortened
from autograder.expect import show
from autograder.interface import Data

ORDINARY = r" ?\w+| ?[^\w\s]+|\s+(?!\S)|\s+"
SPECIAL = ("<eos>", "<sos>")

Words = dict[tuple[str, ...], int]
Pair = tuple[str, str]
Merges = list[Pair]


def write(value: Data) -> str:
    """Write lists and dicts longer than other checks do: a token list is read whole."""
    if isinstance(value, (str, list, tuple, dict)):
        return shortened(repr(value), 320)
    return show(value)


def called(name: str, *arguments: Data) -> str:
    """Write a call."""
    return f"{name}({', '.join(map(write, arguments))})"


def draw_pieces(
    source: Source, count: int, specials: tuple[str, ...] = ()
) -> list[str]:
    """Draw words over few letters, full stops and special tokens, as pieces of a text.

    Words repeat, and a special token may follow a word or a full stop at once.
    """
    lengths = draw_several(source, 1, 6, 9)
    stock = ["".join("abcn"[i] for i in draw_several(source, 0, 4, n)) for n in lengths]
    pieces: list[str] = []
    for draw in draw_several(source, 0, 12, count):
        last = pieces[-1] if pieces else ""
        if draw == 9 and last and last != "." and last not in specials:
            pieces.append(".")
        elif draw == 10 and specials:
            pieces.append(specials[len(pieces) % len(specials)])
        else:
            space = " " if last and last not in specials else ""
            pieces.append(space + stock[draw % 9])
    return pieces


def split_words(text: str, specials: Iterable[str] = ()) -> list[str]:
    """Cut a text into pieces, as the function does that the notebook gives."""
    special = "|".join(map(re.escape, sorted(specials, key=len, reverse=True)))
    parts = re.split(f"({special})", text) if special else [text]
    return [
        piece
        for part in parts
        for piece in ([part] if part in specials else re.findall(ORDINARY, part))
    ]


def stripped(pieces: Iterable[str], specials: Iterable[str]) -> list[str]:
    """Take the spaces off the pieces."""
    return [piece if piece in specials else piece.strip() for piece in pieces]


def neighbours(symbols: tuple[str, ...]) -> Merges:
    """List the pairs of neighbours of one word."""
    return list(pairwise(symbols))


def counted(
    words: Iterable[tuple[tuple, int]], found: Callable[[tuple], Iterable] = neighbours
) -> dict[Hashable, int]:
    """Count what is found in words, as often as they occur."""
    counts: dict = {}
    for symbols, occurrences in words:
        for each in found(symbols):
            counts[each] = counts.get(each, 0) + occurrences
    return counts


def merged(
    symbols: Iterable[str],
    pair: Pair,
    *,
    is_pair: Callable[[tuple, Pair], bool] = lambda two, pair: two == pair,
    most: float = float("inf"),
    skip: int = 2,
    write: Callable[[str, str], Data] = lambda left, right: left + right,
) -> tuple:
    """Merge a pair, with a few things to get wrong."""
    symbols, new, i, done = tuple(symbols), [], 0, 0
    while i < len(symbols):
        two = symbols[i : i + 2]
        if len(two) == 2 and done < most and is_pair(two, pair):
            new.append(write(*two))
            i, done = i + skip, done + 1
        else:
            new.append(symbols[i])
            i += 1
    return tuple(new)
