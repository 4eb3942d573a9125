"""What code imports, by reading it: modules by name, and files of the course."""

from __future__ import annotations

import ast
import contextlib
import functools
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_one_at_a_time = threading.Lock()  # two threads that parse disturb Python 3.11
OURS = ("autograder.chapters.", "workbench.")  # packages whose imports count as well


def modules_of(texts: Iterable[str], ours: tuple[str, ...] = OURS) -> set[str]:
    """Name the modules that code imports anywhere, and those that they do, if ours.

    Not every name is a module: `from package import name` may be of either kind.

    Args:
        texts: the code.
        ours: what the names of modules begin with whose own imports count as well.

    >>> sorted(modules_of(["import math", "from torch import nn"]))
    ['math', 'torch', 'torch.nn']
    """
    found: set[str] = set()
    waiting = list(texts)
    while waiting:
        statements = _imports(waiting.pop())
        new = {name for module, names in statements for name in (module, *names)}
        new -= found
        found |= new
        for name in new:
            file = file_of(name)
            if name.startswith(ours) and file:
                waiting.append(file.read_text(encoding="utf-8"))
    return found


def files_behind(
    modules: Iterable[str], root: Path = ROOT, *, without: str = ""
) -> set[Path]:
    """Find the files of modules, and of all that these import anywhere.

    Of a package counts what is taken from it: `from package.module import name` needs
    that module, not what else the package's own file imports.

    Args:
        modules: names; those that are not below ``root`` are passed over.
        root: the folder in which the packages are.
        without: a package that is not followed.

    Returns:
        Files below ``root``.
    """
    place_of = functools.cache(functools.partial(file_of, root=root))
    found, waiting = set(), list(modules)
    while waiting:
        name = waiting.pop()
        file = place_of(name)
        is_left_out = f"{name}.".startswith(f"{without}.")
        if file is None or file in found or is_left_out:
            continue
        found.add(file)
        for module, names in _imports(file.read_text(encoding="utf-8")):
            inside = [each for each in names if place_of(each)]
            waiting += (
                inside if names and len(inside) == len(names) else [module, *inside]
            )
    return found


def file_of(module: str, root: Path = ROOT) -> Path | None:
    """Return the file of a module below a folder; None if there is none."""
    place = root.joinpath(*module.split("."))
    files = (place.with_suffix(".py"), place / "__init__.py")
    return next(filter(Path.is_file, files), None)


@functools.lru_cache(maxsize=1000)
def _imports(text: str) -> list[tuple[str, list[str]]]:
    """List the modules that are imported, each with the dotted names taken from it."""
    tree = ast.Module([], [])
    found: list[tuple[str, list[str]]] = []
    with contextlib.suppress(SyntaxError), _one_at_a_time:  # it is said where it runs
        tree = ast.parse(text)
    for node in _statements(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, []) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            found.append((node.module, names))
    return found


def _statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Give all statements of a tree; to look into expressions as well is slow."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, field, ())
