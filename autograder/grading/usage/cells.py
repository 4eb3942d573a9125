"""Turn the text of a cell into a tree, as IPython would, within limits."""

import ast
import re
import warnings

from autograder.grading.trees import TooLong, parse, remembered

LONGEST_MAGIC = 20_000  # characters of a cell that is not Python alone
MOST_MAGICS = 60  # lines; IPython reads the whole cell once for each
# what IPython takes off before it reads, in strings too
PROMPT = re.compile(r"^\s*(>>>|\.{3}|(\[(nav|ins)\] ?)?In \[)", re.MULTILINE)
MAGIC = re.compile(r"^\s*[%!?/,;]|\?\s*$|=\s*[%!]", re.MULTILINE)


@remembered(128)  # of a class, all have the same given cells
def tree(text: str) -> ast.Module | None:
    """Read a cell; return None if it is no code and never runs.

    Raises:
        TooLong: it could be code, and cannot be read.
    """
    changed = text[:1].isspace() or PROMPT.search(text)
    if not changed:
        try:
            return parse(text)
        except (SyntaxError, ValueError):
            pass
    if not changed and not MAGIC.search(text):
        return None
    if len(text) > LONGEST_MAGIC or len(MAGIC.findall(text)) > MOST_MAGICS:
        raise TooLong
    try:
        return parse(_transformed(text))
    except (SyntaxError, ValueError):
        return None


@remembered(64)
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
