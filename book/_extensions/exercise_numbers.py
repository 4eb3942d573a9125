"""Exercises are named by id on pages, {ex}`softmax`; readers see the number, 4.1."""

from pathlib import Path

from sphinx.errors import ExtensionError

from autograder.generator.numbers import (
    REFERENCE,
    UnknownExercise,
    numbers,
    with_numbers,
)

SOLUTIONS = Path(__file__).resolve().parents[2] / "solutions"


def write_numbers(app, docname: str, source: list[str]) -> None:
    """Replace each reference in a page that is being read; refuse an unknown one."""
    if not REFERENCE.search(source[0]):
        return
    try:
        source[0] = with_numbers(source[0], numbers(SOLUTIONS))
    except UnknownExercise as unknown:
        where = f"{app.env.doc2path(docname)}:{unknown.line + 1}"
        raise ExtensionError(f"{where}: {unknown}") from None
    naming(app.env).add(docname)


def naming(env) -> set[str]:
    """The pages that name exercises."""
    if not hasattr(env, "pages_naming_exercises"):
        env.pages_naming_exercises = set()
    return env.pages_naming_exercises


def outdated(_app, env, _added, _changed, _removed) -> list[str]:
    """Read the pages that name exercises again when numbers have changed."""
    known = numbers(SOLUTIONS)
    changed = getattr(env, "exercise_numbers", known) != known
    env.exercise_numbers = known
    return sorted(naming(env) & env.found_docs) if changed else []


def merge(_app, env, _docnames, other) -> None:
    """Take over what another process has read."""
    naming(env).update(naming(other))


def setup(app) -> dict:
    """Tell Sphinx of it."""
    app.connect("source-read", write_numbers)
    app.connect("env-get-outdated", outdated)
    app.connect("env-merge-info", merge)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
