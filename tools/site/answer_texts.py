"""Answers to an exercise as texts: right ones, the bank's wrong ones, and one step off.

The bank's answers are functions and classes in modules of its own, with helpers beside
them. A reader sees a text that stands alone, in one layout, without comments.
"""

import ast
import builtins
import contextlib
import copy
import functools
import linecache
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autograder.exercise.locate.changes import TORCH, changes
from autograder.generator.modules import without_markers
from autograder.generator.source import Exercise
from mistakes import Entry
from tests.tutor.bank import Stranger

WIDTH = 76  # characters of a line
MOST_LINES = 46  # of an answer that is shown
MOST_STEPS = 160  # of one right answer that are looked at
DEFINITIONS = (ast.FunctionDef, ast.ClassDef)
NOTES = ("right", "wrong", "stranger")  # decorators that are no part of an answer
IN_NOTEBOOKS = ("transformer", "mistakes")  # what is imported from there is known


@dataclass(frozen=True)
class Text:
    """An answer.

    Args:
        name: what it defines, of the names that the exercise asks for.
        code: as Python.
        mistake: the name that a check must give it; None if it is right.
        repaired: the right answer of which it is one step off; "" if that is not known.
    """

    name: str
    code: str
    mistake: str | None
    repaired: str = ""


# --- right answers --------------------------------------------------------------------


def references(exercise: Exercise) -> list[Text]:
    """Give what the course itself answers, a text for each definition."""
    found = []
    for cell in exercise.answers:
        for node in ast.parse(without_markers(cell.text)).body:
            if isinstance(node, DEFINITIONS):
                found.append(Text(node.name, plain(ast.Module([node], [])), None))
    return found


def of_bank(entry: Entry, names: dict[str, Any]) -> Text | None:
    """Give an answer that was written by hand; None if it cannot stand alone.

    Args:
        entry: of the bank.
        names: of the solved notebook, which an answer may use.
    """
    if entry.replaces or not isinstance(entry.answer, (type, types.FunctionType)):
        return None
    return _alone(entry.answer, Text(entry.name, "", entry.mistake), names)


def of_stranger(entry: Stranger, names: dict[str, Any]) -> Text | None:
    """Give an answer of a stranger's that is told its cause; None as of the bank's."""
    if not entry.says:
        return None
    return _alone(entry.answer, Text(entry.answer.__name__, "", entry.says), names)


def _alone(answer: Any, text: Text, names: dict[str, Any]) -> Text | None:
    """Write down an answer with what it needs of its module; None if that cannot be."""
    module = sys.modules[answer.__module__]
    own = definition_of(answer, module)
    if own is None:
        return None
    own = copy.deepcopy(own)
    own.decorator_list = [
        each for each in own.decorator_list if _called(each) not in NOTES
    ]
    try:
        helpers = sorted(_helpers(own, module, names), key=lambda node: node.lineno)
    except LookupError:
        return None
    code = plain(ast.Module([*helpers, own], []))
    if len(code.splitlines()) > MOST_LINES:
        return None
    return replace(text, code=code)


def definition_of(answer: object, module: types.ModuleType) -> ast.stmt | None:
    """Find a function or class in its module, which may define its name often."""
    if isinstance(answer, type):
        methods = [each for each in vars(answer).values() if hasattr(each, "__code__")]
        lines = [each.__code__.co_firstlineno for each in methods]
    else:
        lines = [answer.__code__.co_firstlineno]
    for node in _tree(module.__file__).body:
        if isinstance(node, DEFINITIONS) and node.name == answer.__name__:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if any(first <= line <= node.end_lineno for line in lines):
                return node
    return None


def source(answer: object, module: types.ModuleType) -> str:
    """Give the lines that define an answer; "" if it is not defined in its module."""
    node = definition_of(answer, module)
    lines = linecache.getlines(module.__file__)
    return (
        "".join(lines[node.lineno - 1 : node.end_lineno]).rstrip("\n") if node else ""
    )


@functools.cache
def _tree(file: str) -> ast.Module:
    return ast.parse(Path(file).read_text("utf-8"))


def _called(decorator: ast.expr) -> str:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return getattr(function, "id", "")


def _helpers(own: ast.stmt, module: types.ModuleType, names: dict) -> Iterator[ast.AST]:
    """Find what an answer uses of its module and a notebook has not.

    Raises:
        LookupError: something is used that has no text of its own.
    """
    seen, waiting = set(), [own]
    while waiting:
        read = {n.id for n in ast.walk(waiting.pop()) if isinstance(n, ast.Name)}
        for name in sorted(read - seen - vars(builtins).keys()):
            seen.add(name)
            if name not in vars(module):
                continue  # a name of the function itself
            value = vars(module)[name]
            if name in names and names[name] is value:
                continue
            node = _binding(name, value, module)
            if isinstance(node, ast.ImportFrom) and _is_of_course(node, name, names):
                continue
            if isinstance(node, DEFINITIONS) and node.decorator_list:
                raise LookupError(f"{name} is an answer itself")
            yield node
            if not isinstance(node, (ast.Import, ast.ImportFrom)):
                waiting.append(node)


def _is_of_course(node: ast.ImportFrom, name: str, names: dict) -> bool:
    """Whether an import gives what the notebook has under this name."""
    if node.module.partition(".")[0] not in IN_NOTEBOOKS:
        return False
    if name not in names:
        raise LookupError(f"a notebook has no {name}")
    return True


def _binding(name: str, value: object, module: types.ModuleType) -> ast.stmt:
    """Find the statement of a module that gives a name its value."""
    if getattr(value, "__module__", "") == module.__name__:
        found = definition_of(value, module)
        if found is not None:
            return found
    for node in reversed(_tree(module.__file__).body):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if any((each.asname or each.name) == name for each in node.names):
                kept = copy.deepcopy(node)
                kept.names = [e for e in node.names if (e.asname or e.name) == name]
                return kept
        elif isinstance(node, ast.Assign) and name in map(ast.unparse, node.targets):
            return node
    raise LookupError(name)


# --- one step off ---------------------------------------------------------------------


def one_step_off(right: Text) -> Iterator[Text]:
    """Change one thing in a right answer, as the search for a line does.

    The likely changes come first; of many, every second or third is left out.
    """
    tree = ast.parse(right.code)
    found = changes(tree)
    stride = -(-len(found) // MOST_STEPS)
    for change in found[::stride] if stride > 1 else found:
        with change.made():
            code = ast.unparse(ast.fix_missing_locations(tree))
        if code != ast.unparse(tree) and not re.search(rf"\b{TORCH}\b", code):
            yield Text(right.name, code, None, right.code)


# --- layout ---------------------------------------------------------------------------


class _Plain(ast.NodeTransformer):
    """Takes out what says nothing of the answer: annotations and docstrings."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        node.returns = None
        return _without_text(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        self.generic_visit(node)
        return _without_text(node)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node


def _without_text(node: ast.AST) -> ast.AST:
    first = node.body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    if is_text and isinstance(first.value.value, str):
        node.body = node.body[1:] or [ast.Pass()]
    return node


def plain(tree: ast.Module) -> str:
    """Write code without comments, annotations and docstrings."""
    return ast.unparse(ast.fix_missing_locations(_Plain().visit(copy.deepcopy(tree))))


BRACKETS = (  # that ast.unparse writes and nobody else
    re.compile(r"(?<=return )\((.*)\)$", re.MULTILINE),
    re.compile(r"(?<=\()\((\w[^()\n]* for .*)\)(?=\))"),
)


def without_brackets(code: str) -> str:
    """Take away brackets that change nothing."""
    wanted = ast.dump(ast.parse(code))
    for pattern in BRACKETS:
        for match in reversed(list(pattern.finditer(code))):
            shorter = code[: match.start()] + match[1] + code[match.end() :]
            with contextlib.suppress(SyntaxError):
                if ast.dump(ast.parse(shorter)) == wanted:
                    code = shorter
    return code


@functools.cache
def laid_out(code: str) -> str:
    """Break lines that are too long, as the course's own code is."""
    code = without_brackets(code)
    command = [sys.executable, "-m", "ruff", "format", "--isolated"]
    command += ["--line-length", str(WIDTH), "--stdin-filename", "answer.py", "-"]
    ran = subprocess.run(
        command, input=code, capture_output=True, text=True, check=True
    )
    return ran.stdout.rstrip("\n")
