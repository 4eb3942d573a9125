"""What is known of a value without running anything: a set of the forms below.

An expression stands for a frozenset of them. A form that is not known is ``UNKNOWN``;
an empty set means that no value has been seen yet.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autograder.grading.usage.scopes import Binding, Scope

Defining = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

MOST_FORMS = 24  # of one expression; more become UNKNOWN
MOST_ITEMS = 512


@dataclass(frozen=True)
class Note:
    """Something that was found: where, and what it stands for or why it cannot be told.

    Args:
        cell: the place of its cell among those that were read.
        line: its number in the cell.
        what: the dotted name of a library, or why it cannot be told.
        names: the forbidden names that it is a way to; none if it cannot be told.
        always: whether it counts wherever it stands.
        about: of one that cannot be told, the forbidden names that it may lead to; none
            if it may lead to all.
    """

    cell: int
    line: int
    what: str
    names: frozenset[str] = frozenset()
    always: bool = False
    about: frozenset[str] = frozenset()

    def concerns(self, forbidden: frozenset[str]) -> bool:
        """Tell whether it says something about one of some forbidden names."""
        found = self.names or self.about
        return not found or bool(found & forbidden)


@dataclass(frozen=True)
class Known:
    """A constant: a number, a text, bytes, a truth value, None, a range or a slice."""

    value: object
    kind: type = field(init=False)  # True equals 1, and is another value

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", type(self.value))

    def __hash__(self) -> int:
        return hash((self.kind, repr(self.value)))


@dataclass(frozen=True)
class Text:
    """A text of which some parts are known; between two of them anything may stand."""

    parts: tuple[str, ...] = ("", "")

    def can_be(self, word: str) -> bool:
        """Tell whether a word fits."""
        first, *middle, last = self.parts
        if not (word.startswith(first) and word.endswith(last)):
            return False
        end = len(word) - len(last)
        at = len(first)
        for part in middle:
            at = word.find(part, at, end)
            if at < 0:
                return False
            at += len(part)
        return at <= end


@dataclass(frozen=True)
class Outside:
    """An object of a library, by its dotted name; ``note`` says where it was named."""

    path: str
    note: Note | None = None


@dataclass(frozen=True)
class Namespace:
    """The names of a library's object as a dict; "" has those of the notebook."""

    path: str


@dataclass(frozen=True)
class Shell:
    """What ``get_ipython()`` returns."""


@dataclass(frozen=True)
class Method:
    """A method of a known value, by its name."""

    receiver: Value
    name: str


@dataclass(frozen=True)
class Prepared:
    """A function with its first arguments, as ``functools.partial`` makes it."""

    function: Value
    arguments: tuple[Values, ...]


@dataclass(frozen=True)
class Unknown:
    """Any value that the notebook computes, such as a tensor."""


@dataclass(frozen=True)
class Given:
    """An argument that only a check gives, such as scores, or the name of a function.

    A name that comes so is the check's choice, and none of the answer's.
    """


@dataclass(eq=False)
class Collection:
    """A list, tuple, set or dict, by the place where it is made.

    Args:
        items: its elements in order, if they are known.
        table: its values by known keys.
        rest: what else it may hold.
    """

    items: list[Values] | None = None
    table: dict[object, Values] = field(default_factory=dict)
    rest: Values = frozenset()

    def everything(self) -> Values:
        """Return all that it may hold."""
        return frozenset().union(*(self.items or ()), *self.table.values(), self.rest)


@dataclass(eq=False)
class Function:
    """A function of the notebook's."""

    node: Defining
    scope: Scope  # that it is defined in
    cell: int
    owner: Class | None = None
    line: int = 0  # of the text that it was made of, if that is no cell
    parameters: dict[str, Values] = field(default_factory=dict)


@dataclass(eq=False)
class Class:
    """A class of the notebook's."""

    name: str
    bases: Values
    scope: Scope
    fields: dict[str, Binding] = field(default_factory=dict)


@dataclass(frozen=True)
class Instance:
    """An object of one of the notebook's classes; with ``above`` as super() sees it."""

    of: Class
    above: bool = False


Value = (
    Known
    | Text
    | Outside
    | Namespace
    | Shell
    | Method
    | Prepared
    | Unknown
    | Given
    | Collection
    | Function
    | Class
    | Instance
)
Values = frozenset[Value]

NONE: Values = frozenset()
UNKNOWN = Unknown()
ANYTHING: Values = frozenset({UNKNOWN})
GIVEN: Values = frozenset({Given()})
ANY_TEXT: Values = frozenset({Text()})


def join(*parts: Values) -> Values:
    """Put sets together; too many constants become any text or UNKNOWN."""
    found = frozenset().union(*parts)
    if len(found) <= MOST_FORMS:
        return found
    kept = {each for each in found if not isinstance(each, (Known, Text))}
    return frozenset([*list(kept)[: 4 * MOST_FORMS], Text(), UNKNOWN])


def known(value: object) -> Values:
    """Return the set with one constant."""
    return frozenset({Known(value)})
