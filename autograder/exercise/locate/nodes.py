"""Pieces of a syntax tree: what they are, and others made of them."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Nodes = Iterator[ast.AST]


@dataclass(frozen=True)
class Scope:
    """The names that a function may use in each other's place.

    Args:
        names: its parameters and what it assigns.
        unused: those of them that it never reads.
        attributes: what its class assigns to ``self``.
    """

    names: tuple[str, ...] = ()
    unused: frozenset[str] = frozenset()
    attributes: tuple[str, ...] = ()


def number(value: float) -> ast.expr:
    """Make the node of a number, a negative one as Python parses it."""
    if value < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)


def value_of(node: ast.AST | None) -> float | None:
    """Return the number that a node is, or None."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = value_of(node.operand)
        return None if inner is None else -inner
    value = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if is_number else None


def is_integer(node: ast.AST | None) -> bool:
    """Tell whether a node is a whole number."""
    return type(value_of(node)) is int


def called(node: ast.Call) -> str:
    """Return the last part of what is called: sum for x.sum and torch.sum."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def call_like(
    node: ast.Call, args: list | None = None, keywords: list | None = None
) -> ast.Call:
    """Call the same with other arguments; None leaves them as they are."""
    args = node.args if args is None else args
    return ast.Call(node.func, args, node.keywords if keywords is None else keywords)


def with_keyword(node: ast.Call, name: str, value: bool | float | str) -> ast.Call:
    """Set a keyword argument of a call."""
    others = [each for each in node.keywords if each.arg != name]
    return call_like(node, keywords=[*others, ast.keyword(name, ast.Constant(value))])


def method_of(node: ast.expr, name: str, *args: ast.expr) -> ast.Call:
    """Call a method of a node."""
    return ast.Call(ast.Attribute(node, name, ast.Load()), list(args), [])


def replaced(items: list, index: int, item: object) -> list:
    """Return a copy of a list with another item in one place."""
    return [*items[:index], item, *items[index + 1 :]]


def exchanged(items: list, first: int, second: int) -> list:
    """Return a copy of a list with two items in each other's place."""
    items = list(items)
    items[first], items[second] = items[second], items[first]
    return items


def plus(node: ast.expr, step: int) -> ast.expr:
    """Add 1 or subtract it; of a number, the number."""
    value = value_of(node)
    if is_integer(node) and value is not None:
        return number(value + step)
    for op, sign in ((ast.Add, 1), (ast.Sub, -1)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, op):
            last = value_of(node.right)
            if type(last) is int and sign * last == -step:
                return node.left
    return ast.BinOp(node, ast.Add() if step > 0 else ast.Sub(), ast.Constant(1))


def inner_of(node: ast.AST) -> tuple[ast.expr, Callable[[ast.expr], ast.expr]] | None:
    """Return what a call is made on, and how it is made on something else."""
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and not is_library(node.func.value):
        func, of_self = node.func, is_of_self(node.func.value)
        if not of_self:
            return func.value, lambda new: ast.Call(
                ast.Attribute(new, func.attr, ast.Load()), node.args, node.keywords
            )
    if node.args and not isinstance(node.args[0], ast.Starred):
        return node.args[0], lambda new: call_like(node, [new, *node.args[1:]])
    return None


def is_library(node: ast.expr) -> bool:
    """Tell whether a node names a module of PyTorch, NumPy or math."""
    names = ("torch", "math", "nn", "F", "np", "functional")
    last = getattr(node, "attr", getattr(node, "id", ""))
    return isinstance(node, (ast.Name, ast.Attribute)) and last in names


def is_of_self(node: ast.expr) -> bool:
    """Tell whether a node is ``self`` or begins with it."""
    if isinstance(node, ast.Attribute):
        return is_of_self(node.value)
    return isinstance(node, ast.Name) and node.id == "self"
