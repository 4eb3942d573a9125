r"""Make what a student chose fit for the place where it is shown or kept.

A folder's name may hold anything but a slash, a cell and an exception's text anything
at all. Inside the grader such texts stay as they are; on its way out each passes one of
these functions, by the kind of output:

    say, line   a terminal: nothing that moves the cursor or turns the text round
    csv_file    a spreadsheet: no cell begins a formula
    plain       a page or a message; the templates escape what HTML means something by
    json_line   a line of JSON, whatever reader splits the file into lines
    sql         a database, of which PostgreSQL takes no NUL and no half character

What cannot be seen is written as Python writes it, such as ``\x07``: two names that
differ still differ, and nobody can take the name of another.
"""

import csv
import io
import json
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, but for tab and new line
    "\u2028\u2029"  # separators that some readers take for the end of a line
    "\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069"  # that turn the direction
    "\ud800-\udfff]"  # half characters, and bytes that are no UTF-8
)
COLOURS = re.compile("\x1b\\[[0-9;]*[A-Za-z]")  # of a terminal, in an exception's text
# What spreadsheets take for the beginning of a formula; the full-width signs count in
# East Asian settings. An apostrophe makes a text of it, and is taken off again when we
# read it: so what begins with one before a formula gets another.
FORMULA = re.compile(r"[\s']*[=+\-@\t\r\n＝＋－＠]")
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]\d+)?|-", re.ASCII)  # "-": Moodle's no grade


def visible(text: str) -> str:
    r"""Write what cannot be seen, or changes how the rest is seen, in plain letters.

    >>> print(visible("a" + chr(7) + "b"), visible("ren" + chr(0xDCE9)))
    a\x07b ren\udce9
    """
    return UNSEEN.sub(lambda found: _escaped(found[0]), text)


def _escaped(text: str) -> str:
    return text.encode("unicode_escape").decode("ascii")


def writable(text: str) -> str:
    """Replace what no encoding can write, such as half of a pair of surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


def plain(text: object, most: int) -> str:
    """Make a message or a name fit for a page and for keeping: visible, and not long.

    >>> plain("a" * 10, 4), plain("fine", 4)
    ('aaaa…', 'fine')
    """
    text = str(text)
    shown = visible(COLOURS.sub("", text[: most + 1]))
    return f"{shown[:most]}…" if len(text) > most else shown


# --- a terminal -----------------------------------------------------------------------


def say(text: str, file: TextIO | None = None) -> None:
    """Print a text on a terminal, whatever it holds and whatever its encoding is."""
    file = file or sys.stdout
    encoding = file.encoding or "utf-8"
    shown = visible(text).encode(encoding, "backslashreplace").decode(encoding)
    print(shown, file=file)


def line(text: str) -> str:
    """Keep a text on one line, for a table or a list on a terminal."""
    return re.sub("[\t\n]", lambda found: _escaped(found[0]), visible(text))


# --- CSV ------------------------------------------------------------------------------


def csv_file(rows: Iterable[Sequence]) -> str:
    """Write rows as CSV; a text that would begin a formula gets an apostrophe."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerows([csv_cell(value) for value in row] for row in rows)
    return text.getvalue()


def csv_cell(value: object) -> object:
    """Keep a spreadsheet from taking a text for a formula; numbers stay numbers."""
    if not isinstance(value, str):
        return value
    shown = visible(value)
    return f"'{shown}" if is_formula(shown) else shown


def from_csv_cell(text: str) -> str:
    """Return the text that ``csv_cell`` made a cell of."""
    is_marked = text.startswith("'") and is_formula(text[1:])
    return text[1:] if is_marked else text


def is_formula(text: str) -> bool:
    """Tell whether a spreadsheet may take a text for a formula."""
    return bool(FORMULA.match(text)) and not NUMBER.fullmatch(text)


# --- JSON and SQL ---------------------------------------------------------------------


def json_line(value: Any) -> str:
    """Write a value as one line of JSON, with its end; letters stay readable."""
    text = json.dumps(value, ensure_ascii=False)
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


def sql(text: str, most: int) -> str:
    """Make a text fit for any database, in a column of so many characters."""
    return visible(text)[:most]
