"""The names of a notebook, of a function and of a class, and what they stand for."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from autograder.grading.usage.values import ANYTHING, NONE, Note, Values, join

Notes = frozenset[Note]
NO_NOTES: Notes = frozenset()
OWN_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Binding:
    """What a name may stand for, and what was found while that was computed.

    Args:
        values: what it may stand for.
        notes: what was found.
        earlier: what it stands for if its cell stopped before it was bound anew.
    """

    values: Values = NONE
    notes: Notes = NO_NOTES
    earlier: Binding | None = None

    def __or__(self, other: Binding) -> Binding:
        values = join(self.values, other.values)
        earlier = self.earlier or other.earlier
        if self.earlier and other.earlier:
            earlier = self.earlier | other.earlier
        return Binding(values, self.notes | other.notes, earlier)

    def over(self, old: Binding) -> Binding:
        """Return the same, in the place of an old one that may have stayed."""
        if old.values <= self.values | ANYTHING and old.notes <= self.notes:
            return replace(self, earlier=old.earlier)
        before = Binding(old.values, old.notes)
        return replace(self, earlier=before | old.earlier if old.earlier else before)


@dataclass(eq=False)
class Scope:
    """The names of a notebook, a function or a class.

    Args:
        kind: "notebook", "function" or "class".
        parent: the scope around it.
        bound: names that are its own; of a notebook, all.
        shared: names that a ``global`` or ``nonlocal`` statement gives to another.
    """

    kind: str
    parent: Scope | None = None
    bound: frozenset[str] = frozenset()
    shared: dict[str, str] = field(default_factory=dict)
    names: dict[str, Binding] = field(default_factory=dict)

    def notebook(self) -> Scope:
        """Return the outermost scope."""
        return self if self.parent is None else self.parent.notebook()

    def holder(self, name: str) -> Scope:
        """Return the scope in which an assignment to a name binds it."""
        how = self.shared.get(name)
        if how == "global":
            return self.notebook()
        if how == "nonlocal" and self.parent is not None:
            return self.parent.finder(name) or self.notebook()
        return self

    def finder(self, name: str) -> Scope | None:
        """Return the scope in which a name is looked up; None if nobody binds it."""
        if self.parent is None:
            return self if name in self.names else None
        if self.shared.get(name) == "global":
            return self.notebook().finder(name)
        if name in self.names and name not in self.shared:
            return self
        if name in self.bound and self.kind == "function":
            return self
        around = self.parent
        while around.kind == "class" and around.parent is not None:
            around = around.parent  # a class's names are not seen from inside
        return around.finder(name)


def own_names(body: Sequence[ast.stmt]) -> tuple[frozenset[str], dict[str, str]]:
    """Return the names that statements bind, and those that they give to another."""
    found: set[str] = set()
    shared: dict[str, str] = {}
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                found.add(name)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                found.add(node.name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                found |= {
                    (each.asname or each.name).partition(".")[0] for each in aliases
                }
            case ast.Global(names=names):
                shared |= dict.fromkeys(names, "global")
            case ast.Nonlocal(names=names):
                shared |= dict.fromkeys(names, "nonlocal")
            case ast.ExceptHandler(name=str(name)):
                found.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                found.add(name)
            case ast.MatchMapping(rest=str(name)):
                found.add(name)
        if isinstance(node, OWN_SCOPES):
            waiting += getattr(node, "decorator_list", [])
        elif isinstance(node, COMPREHENSIONS):
            found |= {
                each.target.id
                for each in ast.walk(node)
                if isinstance(each, ast.NamedExpr)
            }
        else:
            waiting += ast.iter_child_nodes(node)
    return frozenset(found - shared.keys()), shared
