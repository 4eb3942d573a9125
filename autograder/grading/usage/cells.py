"""Turn the text of a cell into a tree, as IPython would, within limits."""

import ast
import re
import warnings
from functools import lru_cache

LONGEST_CELL = 200_000  # characters; nobody types so much
LONGEST_MAGIC = 20_000  # characters of a cell that is not Python alone
MOST_NODES = 60_000
MOST_MAGICS = 60  # lines; IPython reads the whole cell once for each
MAGIC = re.compile(r"^\s*[%!?/,;]|\?\s*$|=\s*[%!]", re.MULTILINE)


class TooLong(Exception):
    """A text is too long or too deep to be read."""


@lru_cache(maxsize=256)  # of a class, all have the same given cells
def tree(text: str) -> ast.Module | None:
    """Read a cell; return None if it is no code and never runs.

    Raises:
        TooLong: it could be code, and cannot be read.
    """
    if len(text) > LONGEST_CELL:
        raise TooLong
    try:
        return parse(text)
    except (SyntaxError, ValueError):
        pass
    if not MAGIC.search(text) and ">>>" not in text and "In [" not in text:
        return None
    if len(text) > LONGEST_MAGIC or len(MAGIC.findall(text)) > MOST_MAGICS:
        raise TooLong
    try:
        return parse(_transformed(text))
    except (SyntaxError, ValueError):
        return None


def parse(text: str) -> ast.Module:
    """Read Python's own language.

    Raises:
        SyntaxError, ValueError: it is none.
        TooLong: it is nested too deeply, or too long.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = ast.parse(text)
    except (RecursionError, MemoryError):
        raise TooLong from None
    if sum(1 for _ in ast.walk(found)) > MOST_NODES:
        raise TooLong
    return found


@lru_cache(maxsize=256)
def _transformed(text: str) -> str:
    """Turn magics, shell lines and questions into calls."""
    # slow to import, and hardly a cell needs it
    from IPython.core.inputtransformer2 import TransformerManager

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return TransformerManager().transform_cell(text)
    except (SyntaxError, ValueError, RecursionError, IndexError):
        raise SyntaxError(text[:20]) from None
