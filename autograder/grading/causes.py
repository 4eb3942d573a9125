"""Why an answer is not there: which cell stopped, where, and with which error.

An answer that a check does not find was often written: its cell, or one before it,
stopped. What is said then is the first cause, not the name that is missing because of
it. The errors are the student's word, from cells that have seen no hidden test.
"""

import ast
import importlib.util
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from autograder.grading.clean import plain
from autograder.grading.trees import parse_flat, remembered

BINDS = re.compile(  # such a cell may be one that Python cannot read
    r"^(?:async +)?(?:def|class) +(\w+)|^(\w+) *(?::[^=\n]*)?=(?!=)"
    r"|^(?:from +[\w.]+ +)?import +(.+)$",
    re.MULTILINE,
)
MAGIC = ("%", "!")  # lines that are IPython's
MISSING = re.compile(r"[Nn]ame '?(\w+)'? is not defined")
OWN = ("transformer", "autograder", "workbench")  # packages of the course
LONGEST = 300  # characters of an error
MOST_NAMES = 200  # of packages that are looked for
ADVICE = {
    "ModuleNotFoundError": "This package is no part of the course, and not installed "
    "where notebooks are graded. The exercises need none but the course's own: remove "
    "the import, and write it without.",
    "SyntaxError": "Python could not read the cell, so nothing in it was run. Look at "
    "that line, and at the end of the one above.",
    "IndentationError": "Python could not read the cell, so nothing in it was run. "
    "Lines of one block begin in the same column: with spaces, not tabs.",
    "TabError": "Python could not read the cell, so nothing in it was run. Use spaces, "
    "not tabs, at the beginning of every line.",
    "TimeoutError": "Does a loop never end? Look at what its condition tests.",
}
RESTART = (
    "What stands below that line was not run. Restart the kernel and run all cells: "
    "you will see the same error."
)


@dataclass(frozen=True)
class Stop:
    """A cell of the student's that an error ended.

    Args:
        number: of the cell in the notebook, from 1.
        exercise: whose answer it is; "" for a cell of their own.
        source: its code.
        error: such as "NameError: name 'x' is not defined".
        line: of the cell, from 1; 0 if it is not known.
    """

    number: int
    exercise: str
    source: str
    error: str
    line: int = 0

    def __str__(self) -> str:
        cell = f"the cell of {self.exercise}" if self.exercise else "a cell"
        at = f" at line {self.line}" if self.line else ""
        return f"{cell} (number {self.number}) stopped{at}: {self.error}"

    @property
    def binds(self) -> set[str]:
        """The names that it would have defined."""
        found = set()
        for one, other, imported in BINDS.findall(self.source):
            found |= {one or other}
            for part in imported.partition("#")[0].split(","):
                found |= set(part.strip("() \t").split()[-1:])  # as it is called here
        return found - {""}


def missing_name(text: str) -> str:
    """Return the name that an error's text says is not defined, or "".

    >>> missing_name("name 'softmax' is not defined")
    'softmax'
    """
    found = MISSING.search(text)
    return found[1] if found else ""


def first_cause(stops: Iterable[Stop], name: str, exercise: str) -> Stop | None:
    """Find the cell that stopped first of those for which a name is missing.

    Args:
        stops: the cells that stopped, in order.
        name: what is not defined.
        exercise: whose answer is wanted.
    """
    stops = list(stops)
    found = _last(s for s in stops if s.exercise == exercise or name in s.binds)
    while found and (wanted := missing_name(found.error)):
        before = [each for each in stops if each.number < found.number]
        earlier = _last(each for each in before if wanted in each.binds)
        if earlier is None:
            break
        found = earlier
    return found


def _last(stops: Iterable[Stop]) -> Stop | None:
    found = list(stops)
    return found[-1] if found else None


def explained(failure: Mapping, stop: Stop, exercise: str) -> dict[str, str]:
    """Return what a check's failure says of it in place of a name that is missing.

    If the failure says something else, such as an error in a call, it keeps its words,
    and the cell is what to begin with.
    """
    own = stop.exercise == exercise
    cell = "the cell of your answer" if own else f"cell {stop.number} of your notebook"
    at = f" at line {stop.line}" if stop.line else ""
    said = f"{cell} stopped{at}: {stop.error}"
    if failure["what"] != "is not there":
        return {"first": f"{said} Begin there."}
    kind = stop.error.partition(":")[0]
    return {"what": said, "on": "", "got": "", "why": ADVICE.get(kind, RESTART)}


def packages_not_here(codes: Iterable[str]) -> list[str]:
    """Name the packages that cells import and that are not installed here."""
    found = set().union(*map(_imported, codes)) - {*OWN}
    return [name for name in sorted(found)[:MOST_NAMES] if not _is_here(name)]


@remembered(1000)
def _imported(code: str) -> frozenset[str]:
    """Name the packages that a cell imports; none if Python cannot read it."""
    lines = [line for line in code.split("\n") if not line.lstrip().startswith(MAGIC)]
    tree = parse_flat("\n".join(lines))
    nodes = list(ast.walk(tree)) if tree else []
    found = [
        n.name for each in nodes if isinstance(each, ast.Import) for n in each.names
    ]
    found += [
        each.module
        for each in nodes
        if isinstance(each, ast.ImportFrom) and each.level == 0 and each.module
    ]
    return frozenset(name.partition(".")[0] for name in found)


def _is_here(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # such as __main__
        return True


def shortened(error: str) -> str:
    """Return the first line of an error, cut."""
    return plain(error.strip().partition("\n")[0], LONGEST)
