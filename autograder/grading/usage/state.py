"""What the reader knows so far: names, changed attributes, findings, and its limits."""

import ast
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from autograder.grading.usage import ways
from autograder.grading.usage.scopes import Binding, Scope
from autograder.grading.usage.values import (
    ANYTHING,
    Class,
    Collection,
    Defining,
    Function,
    Instance,
    Method,
    Namespace,
    Note,
    Outside,
    Prepared,
    Value,
    Values,
    join,
)

MOST_STEPS = 400_000  # expressions that are looked at, of a notebook
DEEPEST = 40  # texts that run texts


# by name: what another exercise forbids, and the value that it answers for
Elsewhere = dict[str, tuple[frozenset[str], Values]]


class TooMuch(Exception):
    """A notebook takes too long to follow."""


@dataclass(frozen=True)
class Moment:
    """The notebook's names at a time, and the modules of which all were imported."""

    names: dict[str, Binding]
    stars: list[str]


class State(ABC):
    """The state of a reading; what reads expressions and statements is built on it.

    Its layers call one another in a circle: to read a name may mean to read a function,
    and so its statements. What a layer asks of those above it is declared here.
    """

    def __init__(self) -> None:
        self.notebook = Scope("notebook")
        self.cell, self.line = 0, 0  # line: of a text that is run, or 0
        self.trusted = False  # whether the cell was handed out
        self.notes: set[Note] = set()
        self.always: set[Note] = set()
        self.patches: dict[str, Binding] = {}  # attributes that were set on a library's
        self.modules: dict[str, Binding] = {}  # entered into sys.modules
        self.stars: list[str] = []  # modules of which all names were imported
        self.own_attributes: set[str] = set()
        self.elsewhere: Elsewhere = {}  # see Interpreter.judge
        self.late: dict[str, Binding] = {}  # names of the notebook's, by functions
        self.unsure = False  # whether the cell may have stopped before this statement
        self.doubting = False  # whether names may stand for what they stood for before
        self.epoch, self.steps, self.depth = 0, 0, 0
        self.results: dict[Function, tuple[int, Binding]] = {}
        self.running: set[Function] = set()
        self.scopes: dict[Function, Scope] = {}
        self.parameters: dict[Function, dict[str, Values]] = {}
        self.functions: dict[tuple[ast.AST, int], Function] = {}
        self.classes: dict[tuple[ast.AST, int], Class] = {}
        self.owners: dict[Scope, Class] = {}
        self.touching: set[Class] = set()
        self.sums: dict[ast.AugAssign, ast.BinOp] = {}  # x + y, of x += y
        self.collections: dict[tuple[ast.AST, str], Collection] = {}

    # --- of the layers above ----------------------------------------------------------

    @abstractmethod
    def touch(self, values: Values) -> None:
        """Read the bodies of what is used."""

    @abstractmethod
    def gathered(self, node: ast.AST, parts: list[Values], part: str = "") -> Values:
        """Return the collection of some values in no known order."""

    @abstractmethod
    def call_value(
        self,
        value: Value,
        arguments: list[Values],
        keywords: dict[str, Values],
        node: ast.AST,
    ) -> Values:
        """Return what the call of a value may give."""

    @abstractmethod
    def call_library(
        self,
        value: Outside,
        arguments: list[Values],
        keywords: dict[str, Values],
        node: ast.AST,
    ) -> Values:
        """Return what a call of a library's object may give."""

    @abstractmethod
    def call_method(
        self,
        method: Method,
        arguments: list[Values],
        keywords: dict[str, Values],
        node: ast.AST,
    ) -> Values:
        """Return what a method of a known value may give."""

    @abstractmethod
    def function(
        self, node: Defining, scope: Scope, owner: Class | None = None
    ) -> Function:
        """Return the function that is defined at a place of the text."""

    @abstractmethod
    def called_by_others(self, function: Function) -> None:
        """Note that a function is called with arguments that nobody knows."""

    @abstractmethod
    def call_function(
        self, function: Function, arguments: list[Values], keywords: dict[str, Values]
    ) -> Values:
        """Return what a function of the notebook's may give."""

    @abstractmethod
    def execute(self, body: Iterable[ast.stmt], scope: Scope, *, strong: bool) -> None:
        """Read statements in their order."""

    @abstractmethod
    def assign(
        self, target: ast.expr, found: Binding, scope: Scope, *, strong: bool = False
    ) -> None:
        """Enter what a target of an assignment stands for."""

    @abstractmethod
    def set_attribute(
        self, objects: Values, name: str, found: Binding, node: ast.AST
    ) -> None:
        """Enter an attribute that is set."""

    @abstractmethod
    def set_entry(
        self, namespace: Namespace, keys: Values, found: Binding, node: ast.AST
    ) -> None:
        """Enter a name into a namespace."""

    # --- names ------------------------------------------------------------------------

    def remember(self) -> Moment:
        """Return what the names stand for now."""
        return Moment(dict(self.notebook.names), list(self.stars))

    def go_back(self, moment: Moment) -> None:
        """Let the names stand for what they stood for at a moment."""
        self.notebook.names, self.stars = dict(moment.names), list(moment.stars)

    # --- findings ---------------------------------------------------------------------

    def note(
        self,
        node: ast.AST,
        what: str,
        names: frozenset[str] = frozenset(),
        *,
        always: bool = False,
        about: frozenset[str] = frozenset(),
    ) -> Note | None:
        """Write a finding down, unless it stands in a cell that was handed out."""
        if self.trusted and not names:
            return None
        line = self.line or getattr(node, "lineno", 0)
        found = Note(self.cell, line, what, names, always, about)
        self.notes.add(found)
        if always:
            self.always.add(found)
        return found

    def outside(self, path: str, node: ast.AST) -> Values:
        """Name an object of a library."""
        names, found = ways.names_of(path), None
        if names:
            found = self.note(node, path, names)
        elif why := ways.why_meddling(path):
            self.note(node, f"{path}: {why}", always=True)
        elif why := ways.why_computed(path):
            self.note(node, f"{path}: {why}")
        return frozenset({Outside(path, found)})

    @contextlib.contextmanager
    def noting(self) -> Iterator[set[Note]]:
        """Collect findings apart."""
        before, self.notes = self.notes, set()
        try:
            yield self.notes
        finally:
            self.notes = before

    def step(self) -> None:
        """Count an expression."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooMuch

    # --- names ------------------------------------------------------------------------

    def bind(self, name: str, new: Binding, scope: Scope, *, strong: bool) -> None:
        """Enter what a name stands for; not strong: it may stand for the old, too."""
        holder = scope.holder(name)
        old = holder.names.get(name, Binding())
        if holder is self.notebook and scope is not self.notebook:
            self.changed(self.late, name, new)  # a function may be called at any time
        if not strong or not holder is scope is self.notebook:
            found = old | new
        else:
            found = new.over(old) if self.unsure else new
        if found != old:
            holder.names[name] = found
            if not (found.values | old.values) <= ANYTHING or found.notes != old.notes:
                self.epoch += 1

    def current(self, name: str) -> Binding:
        """Return what a name of the notebook's may stand for now."""
        found = self.notebook.names[name]
        if self.doubting:
            for other in (found.earlier, self.late.get(name)):
                found = found | other if other else found
        return found

    def emit(self, found: Binding) -> Values:
        """Take over what a name stands for with what was found about it."""
        self.notes |= found.notes
        self.notes |= {
            each.note
            for each in found.values
            if isinstance(each, Outside) and each.note
        }
        return found.values

    def changed(self, table: dict[str, Binding], name: str, new: Binding) -> None:
        """Enter an attribute or the like, beside what it was before."""
        old = table.get(name, Binding())
        if (old | new) != old:
            table[name] = old | new
            if not new.values <= ANYTHING or new.notes:
                self.epoch += 1

    def collection(self, node: ast.AST, part: str = "") -> Collection:
        """Return the collection that is made at a place of the text."""
        return self.collections.setdefault((node, part), Collection())

    def grow(self, collection: Collection, values: Values) -> None:
        """Put values into a collection, at no known place."""
        if not values <= collection.rest:
            collection.rest = join(collection.rest, values)
            if not values <= ANYTHING:
                self.epoch += 1

    def taken(self, values: Values) -> Values:
        """Take values out of a collection; what is forbidden among them is noted."""
        return self.emit(Binding(values)) if values else ANYTHING


def callables(values: Values) -> Values:
    """Keep what can be called: a function that is handed on may come back."""
    return frozenset(
        each
        for each in inside(values)
        if isinstance(each, (Function, Class, Prepared, Instance))
        or (isinstance(each, Outside) and each.note)
    )


def inside(values: Values, depth: int = 4) -> Iterator[Value]:
    """Give values, and those that they hold."""
    for value in values:
        yield value
        if depth and isinstance(value, Collection):
            yield from inside(value.everything(), depth - 1)
        elif depth and isinstance(value, Prepared):
            yield from inside(frozenset({value.function}), depth - 1)
            for argument in value.arguments:
                yield from inside(argument, depth - 1)
