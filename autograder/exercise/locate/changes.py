"""One-step changes of a piece of code, the likely ones first.

A change is made in the syntax tree itself and taken back: most changes are tried once
and lead to nothing, and a copy of the tree for each would take longer than the try.
"""

import ast
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from autograder.exercise.locate import kinds_of_code
from autograder.exercise.locate.kinds import KINDS
from autograder.exercise.locate.nodes import Scope

TORCH = kinds_of_code.TORCH  # the name under which changed code finds PyTorch
REMOVES = {  # what is taken away until little is left may be any known mistake
    *("whether both parts belong here", "whether everything belongs here"),
    *("whether this call belongs here", "whether this line belongs here"),
    *("the name", "the arguments", "the condition", "the number", "the exponent"),
    *("what ends the loop", "what the loop runs over"),
}
Edit = tuple[ast.AST, str, object]  # a node, the name of a field, what it becomes


@dataclass(frozen=True, eq=False)
class Change:
    """One step: where it is made, what a student should look at there, and what it is.

    Args:
        rank: how likely it is, 1 the most.
        line: of the file that the tree was parsed from.
        look_at: words for a student, without a word of the changed code.
        edits: of the tree.
    """

    rank: int
    line: int
    look_at: str
    edits: tuple[Edit, ...]

    @contextlib.contextmanager
    def made(self) -> Iterator[None]:
        """Change the tree, and put back what was there."""
        before = [
            (owner, field, getattr(owner, field)) for owner, field, _ in self.edits
        ]
        for owner, field, value in self.edits:
            setattr(owner, field, value)
        try:
            yield
        finally:
            for owner, field, value in before:
                setattr(owner, field, value)


def changes(tree: ast.AST) -> list[Change]:
    """Return all one-step changes of a tree, the most likely first."""
    found = list(_of_nodes(tree, Scope())) + list(_of_bodies(tree))
    return sorted(found, key=lambda change: change.rank)  # stable: then by place


def _of_nodes(owner: ast.AST, scope: Scope) -> Iterator[Change]:
    scope = _scope_inside(owner, scope)
    for field, value in ast.iter_fields(owner):
        if field in ("annotation", "returns", "decorator_list", "ctx"):
            continue
        if isinstance(value, ast.AST):
            for rank, look_at, node in _in_place_of(value, scope):
                yield Change(rank, _line(value), look_at, ((owner, field, node),))
            yield from _of_nodes(value, scope)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                if not isinstance(item, ast.AST):
                    continue
                for rank, look_at, node in _in_place_of(item, scope):
                    new = [*value[:index], node, *value[index + 1 :]]
                    yield Change(rank, _line(item), look_at, ((owner, field, new),))
                yield from _of_nodes(item, scope)


def _in_place_of(node: ast.AST, scope: Scope) -> Iterator[tuple[int, str, ast.AST]]:
    if isinstance(getattr(node, "ctx", None), ast.Store):
        return
    for rank, look_at, types, function in KINDS:
        if isinstance(node, types):
            for each in function(node, scope):
                better = rank - 3 * _brings_back(each, scope)
                yield better, look_at, each


def _brings_back(node: ast.AST, scope: Scope) -> bool:
    """Tell whether a name is put in that the function otherwise never reads."""
    return isinstance(node, ast.Name) and node.id in scope.unused


def _line(node: ast.AST) -> int:
    """Say on which line a reader looks for a node: that of a method's own name."""
    if isinstance(node, ast.Call):
        return node.func.end_lineno or node.lineno
    if isinstance(node, (ast.BinOp, ast.Compare)):
        return node.left.end_lineno or node.lineno
    if isinstance(node, ast.Subscript):
        return node.slice.lineno
    if isinstance(node, ast.keyword):
        return node.value.lineno
    if isinstance(node, ast.comprehension):
        return node.iter.lineno
    return getattr(node, "lineno", 0)


def _scope_inside(owner: ast.AST, scope: Scope) -> Scope:
    if isinstance(owner, ast.ClassDef):
        stored = [
            node.attr
            for node in ast.walk(owner)
            if isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        ]
        return Scope(attributes=tuple(dict.fromkeys(stored)))
    if not isinstance(owner, ast.FunctionDef):
        return scope
    names = [node for node in ast.walk(owner) if isinstance(node, ast.Name)]
    parts = owner.args.posonlyargs + owner.args.args + owner.args.kwonlyargs
    bound = [part.arg for part in parts if part.arg != "self"]
    bound += [node.id for node in names if isinstance(node.ctx, ast.Store)]
    read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    own = tuple(dict.fromkeys([*bound, *scope.names]))
    return Scope(own, frozenset(own) - read, scope.attributes)


# --- whole statements -----------------------------------------------------------------


# What is not exchanged with the line above: what would follow an end is left out
_STAYS = (ast.FunctionDef, ast.ClassDef, ast.Return, ast.Raise, ast.Break, ast.Continue)


def _of_bodies(tree: ast.AST) -> Iterator[Change]:
    """Leave out, exchange and move whole statements."""
    for owner in ast.walk(tree):
        for field in ("body", "orelse"):
            body = getattr(owner, field, None)
            if isinstance(body, list) and not isinstance(owner, ast.Module):
                yield from _of_body(owner, field, body)


def _of_body(owner: ast.AST, field: str, body: list[ast.stmt]) -> Iterator[Change]:
    for index, statement in enumerate(body):
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)) or _is_text(
            statement
        ):
            continue
        before, after = body[:index], body[index + 1 :]
        line = statement.lineno
        rest = [*before, *after] or [ast.Pass()]
        yield _step(4, line, "whether this line belongs here", owner, field, rest)
        if after and not isinstance(after[0], _STAYS):
            new = [*before, after[0], statement, *after[1:]]
            yield _step(
                3, line, "the order of this line and the next", owner, field, new
            )
        if isinstance(statement, (ast.For, ast.While, ast.If, ast.With)):
            yield from _of_block(owner, field, body, index)


def _of_block(owner: ast.AST, field: str, body: list, index: int) -> Iterator[Change]:
    """Move the last line out of a block, and the next one in."""
    block, before, after = body[index], body[:index], body[index + 1 :]
    parts = dict(ast.iter_fields(block))
    *first, last = block.body
    look_at = "how far this line is indented"
    if first:
        shorter = type(block)(**{**parts, "body": first})
        new = [*before, shorter, last, *after]
        yield _step(2, last.lineno, look_at, owner, field, new)
    if after:
        longer = type(block)(**{**parts, "body": [*block.body, after[0]]})
        new = [*before, longer, *after[1:]]
        yield _step(2, after[0].lineno, look_at, owner, field, new)


def _step(
    rank: int, line: int, look_at: str, owner: ast.AST, field: str, new: object
) -> Change:
    return Change(rank, line, look_at, ((owner, field, new),))


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
