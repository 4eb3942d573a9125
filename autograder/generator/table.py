"""From the text notebooks to the table of exercises that comes with the package."""

import ast
import json
from collections.abc import Sequence
from pathlib import Path

import yaml

from autograder.exercise.chapters import call_of
from autograder.generator.source import (
    BEGIN_HIDDEN,
    END_HIDDEN,
    Cell,
    Exercise,
    Source,
    without_regions,
)

PLACE = Path("autograder", "exercise", "chapters.json")


def table(sources: Sequence[Source], site: str) -> str:
    """Write what ``autograder.exercise.chapters`` reads.

    Args:
        sources: of all chapters, in order.
        site: the address of the book's site, "" if it has none.
    """
    content = {
        "about": "Generated from solutions/*.md by `make exercises`; change those.",
        "site": site,
        "chapters": {source.chapter: _chapter(source) for source in sources},
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def site_of(root: Path) -> str:
    """Return the site's address, as the book's configuration names it; "" if not."""
    path = root / "_config.yml"
    if not path.is_file():
        return ""
    settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    return settings.get("html", {}).get("baseurl", "")


def _chapter(source: Source) -> dict:
    return {
        "number": source.header["number"],
        "title": source.title,
        "exercises": [_exercise(exercise) for exercise in source.exercises],
    }


def _exercise(exercise: Exercise) -> dict:
    checks = [cell for cell in exercise.graded if cell.kind == "check"]
    return {
        "name": exercise.name,
        "number": exercise.number,
        "title": exercise.title.partition(" · ")[2],
        "points": exercise.points,
        "cells": [
            {"points": cell.options["points"], "calls": _calls(cell)} for cell in checks
        ],
    }


def _calls(cell: Cell) -> list[str]:
    """Return the calls of checks in the part of a cell that a student sees."""
    tree = ast.parse(without_regions(cell.text, BEGIN_HIDDEN, END_HIDDEN))
    calls = [
        statement.value
        for statement in tree.body
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    ]
    return [
        call_of(
            ast.unparse(call.func).rpartition(".")[2],
            {each.arg: ast.literal_eval(each.value) for each in call.keywords},
        )
        for call in calls
    ]
