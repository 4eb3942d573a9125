"""Find the given cells that need not run: demonstrations on which no answer depends.

Figures and tables that a notebook was handed out with take most of its time, and nobody
sees them while a class is graded. Such a cell is left out if it stands as it was handed
out, binds no name that a running cell reads, and reads no data that a running cell has
made, which it might change. What a student wrote always runs; so does every given cell,
if the student's code looks names up in ways of its own.
"""

import ast
import re
from collections.abc import Iterable, Sequence

from autograder.grading.trees import LONGEST, parse_flat, remembered

DRAWING = {"plt", "plots"}  # modules, although notebooks bind them by an assignment
NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
DEFINITIONS = (ast.Import, ast.ImportFrom, *NAMED)
BY_NAME = {"eval", "exec", "globals", "locals", "vars", "get_ipython", "__main__"}


def needless(cells: Sequence[str], given: Iterable[str]) -> set[int]:
    """Return the places of the cells that need not run.

    Args:
        cells: the code of a notebook's cells in order, checks included.
        given: the code of the cells that were handed out and are nobody's answer.
    """
    given = set(given)
    own = [place for place, text in enumerate(cells) if text not in given]
    if any(words(cells[place]) & BY_NAME for place in own):
        return set()
    left_out = {
        place for place, text in enumerate(cells) if text in given and _only_shows(text)
    }
    while True:
        running = [text for place, text in enumerate(cells) if place not in left_out]
        read = set().union(*map(reads, running))
        data = set().union(*map(assigned, running)) - DRAWING
        needed = {
            place
            for place in left_out
            if binds(cells[place]) & read or reads(cells[place]) & data
        }
        if not needed:
            return left_out
        left_out -= needed


@remembered(1000)
def _only_shows(text: str) -> bool:
    """Tell whether a cell changes nothing but what it binds itself."""
    tree = parse_flat(text)
    if tree is None or not tree.body:
        return False
    own = binds(text) | {
        node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)
    }
    for node in ast.walk(tree):
        if isinstance(node, (ast.Global, ast.Delete)):
            return False
        if not isinstance(node, (ast.Attribute, ast.Subscript)):
            continue
        if not isinstance(node.ctx, ast.Load) and _root(node) not in own:
            return False
    return True


def _root(node: ast.expr) -> str:
    """Name what a chain of calls, attributes and subscripts begins with."""
    while isinstance(node, (ast.Call, ast.Attribute, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def words(text: str) -> set[str]:
    """Return whatever might be a name in a text; a long one may do anything."""
    found = set(re.findall(r"\w+", text[:LONGEST]))
    return found | BY_NAME if len(text) > LONGEST else found


@remembered(1000)
def binds(text: str) -> frozenset[str]:
    """Name all that a cell binds: data, functions, classes and modules."""
    tree = parse_flat(text)
    if tree is None:
        return frozenset(words(text))
    names = set(assigned(text))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        elif isinstance(node, NAMED):
            names.add(node.name)
    return frozenset(names)


@remembered(1000)
def assigned(text: str) -> frozenset[str]:
    """Name what a cell binds to data: by assignments, loops and the like.

    >>> sorted(assigned("x, y = 1, [z for z in w]; f = lambda a: a"))
    ['f', 'x', 'y', 'z']
    """
    tree = parse_flat(text)
    if tree is None:
        return frozenset(words(text))
    return frozenset(_bound(tree))


def _bound(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Name):
        return set() if isinstance(node.ctx, ast.Load) else {node.id}
    if isinstance(node, (*DEFINITIONS, ast.Lambda)):
        return set()
    return set().union(*map(_bound, ast.iter_child_nodes(node)))


@remembered(1000)
def reads(text: str) -> frozenset[str]:
    """Name what a cell may read of what other cells have bound, or a bit more.

    >>> sorted(reads("x = y; a = [i + x for i in w]; f = lambda b: b + c"))
    ['c', 'w', 'y']
    """
    tree = parse_flat(text)
    if tree is None:
        return frozenset(words(text))
    read: set[str] = set()
    bound: set[str] = set()
    for statement in tree.body:
        read |= _loaded(statement) - bound
        if not isinstance(statement, (ast.If, ast.Try, ast.While)):
            bound |= _bound(statement) | binds(ast.unparse(statement))
    return frozenset(read)


def _loaded(node: ast.AST) -> set[str]:
    """Name what a statement reads that is not its own: a loop's, or a function's."""
    if isinstance(node, ast.Name):
        return {node.id} if isinstance(node.ctx, ast.Load) else set()
    found = set().union(*map(_loaded, ast.iter_child_nodes(node)))
    if isinstance(node, ast.AugAssign):
        return found | _bound(node.target)
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        return found - _local(node)
    if isinstance(node, (ast.For, ast.With)):
        return found - _bound(node)
    if isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return found - _bound(node)
    return found


def _local(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> set[str]:
    """Name the parameters and variables of a function."""
    names = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    body = function.body if isinstance(function.body, list) else [function.body]
    shared = {
        name
        for node in ast.walk(function)
        if isinstance(node, (ast.Global, ast.Nonlocal))
        for name in node.names
    }
    return (names | set().union(*map(_bound, body))) - shared
