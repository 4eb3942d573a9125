"""Read a cell as a tree, within limits: a megabyte of code is a gigabyte of tree."""

import ast
import functools
import warnings
from collections.abc import Callable, Iterator
from typing import TypeVar

LONGEST = 100_000  # characters of a cell; nobody types so much
MOST_NODES = 60_000
SHORT = 4_000  # characters; what is read of a longer cell is not kept
DEEPEST = 100  # what goes through a tree by calling itself gets no deeper


Read = TypeVar("Read")


class TooLong(Exception):
    """A text is too long or too deep to be read."""


def parse(text: str) -> ast.Module:
    """Read Python's own language.

    Raises:
        SyntaxError, ValueError: it is none.
        TooLong: it is nested too deeply, or too long.
    """
    if len(text) > LONGEST:
        raise TooLong
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = ast.parse(text)
    except (RecursionError, MemoryError):
        raise TooLong from None
    if sum(map(len, _levels(found))) > MOST_NODES:
        raise TooLong
    return found


def _levels(tree: ast.Module) -> Iterator[list[ast.AST]]:
    """Give the nodes of a tree, those of one depth at a time."""
    level: list[ast.AST] = [tree]
    while level:
        yield level
        level = [below for node in level for below in ast.iter_child_nodes(node)]


def parse_flat(text: str) -> ast.Module | None:
    """Read Python's own language; None if it is none, or too long or too deep."""
    try:
        found = parse(text)
    except (SyntaxError, ValueError, TooLong):
        return None
    return found if sum(1 for _ in _levels(found)) <= DEEPEST else None


def remembered(most: int) -> Callable[[Callable[[str], Read]], Callable[[str], Read]]:
    """Keep what a function has read of short texts: a class has many of them alike."""

    def decorate(function: Callable[[str], Read]) -> Callable[[str], Read]:
        known = functools.lru_cache(maxsize=most)(function)

        @functools.wraps(function)
        def read(text: str) -> Read:
            return known(text) if len(text) <= SHORT else function(text)

        return read

    return decorate
