"""One thing has one name, and every name is proved by a wrong answer."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from autograder.generator import ROOT
from tests import chapters

CHECKS = ROOT / "autograder"
SOURCES = (*CHECKS.glob("chapters/**/*.py"), *CHECKS.glob("exercise/*.py"))
ARTICLES = {"a", "an", "the", "is", "are", "was", "were"}


def names_in(path: Path) -> Iterator[tuple[str, int]]:
    """Every name that a module of the checks may give, with its line."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            yield from called(node)
        elif isinstance(node, ast.Tuple):
            yield from listed(node)


def called(node: ast.Call) -> Iterator[tuple[str, int]]:
    """``refuse(name, …)``, ``spec.mistake(name, …)``, ``Mistake(name, …)``."""
    function = node.func
    word = getattr(function, "attr", getattr(function, "id", ""))
    place = {"refuse": 0, "mistake": 0, "Mistake": 0, "refuse_if": 1, "accident": 1}
    if word in place and len(node.args) > place[word]:
        yield from literal(node.args[place[word]])
    for keyword in node.keywords:
        if keyword.arg == "mistake":
            yield from literal(keyword.value)


def listed(node: ast.Tuple) -> Iterator[tuple[str, int]]:
    """``(whether, name, why)`` and ``(name, what it gives, why)``."""
    if len(node.elts) != 3 or not is_text(node.elts[2]):
        return
    first, second, _ = node.elts
    if is_text(second) and not is_text(first):
        yield from literal(second)
    elif isinstance(second, ast.Lambda):
        yield from literal(first)


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def literal(node: ast.expr) -> Iterator[tuple[str, int]]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value, node.lineno


def proved() -> set[str]:
    """The names under which answers of the bank are refused."""
    entries = [each for name in chapters.CHAPTERS for each in chapters.bank(name)]
    return {each.mistake for each in entries if each.mistake}


def test_every_name_is_proved_by_a_wrong_answer() -> None:
    known = proved()
    unproved = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted(SOURCES)
        for name, line in names_in(path)
        if name not in known
    ]
    assert not unproved, "\n".join(unproved)


def same_thing(name: str) -> str:
    """What two ways of writing one name have in common."""
    words = re.findall(r"[\w√−]+", name.lower().replace("instead of", "in place of"))
    return " ".join(word for word in words if word not in ARTICLES)


def test_one_thing_has_one_name() -> None:
    found: dict[str, set[str]] = {}
    for name in proved():
        found.setdefault(same_thing(name), set()).add(name)
    assert not {key: names for key, names in found.items() if len(names) > 1}
