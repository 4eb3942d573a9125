"""What tests of the chapters share: the solved notebook, run once, cell by cell."""

import ast
import contextlib
import functools
import importlib
import io
import pkgutil

import matplotlib

import mistakes
from autograder import generator
from autograder.chapters import results
from autograder.exercise.spec import Specification
from autograder.generator.modules import without_markers
from autograder.generator.source import BEGIN_HIDDEN, END_HIDDEN, without_regions
from autograder.grading.needless import needless
from mistakes import handed_in

CHAPTERS = generator.chapters()
results.PLACE = handed_in.PLACE  # where models that are handed in lie


@functools.cache
def source(chapter: str) -> generator.Source:
    """The chapter's source."""
    return generator.read(chapter)


def points(chapter: str) -> tuple[int, int]:
    """How many points a chapter's checks give, and how many there are in all."""
    exercises = source(chapter).exercises
    by_check = sum(each.points for each in exercises if not each.by_hand)
    return by_check, sum(each.points for each in exercises)


def code_cells(chapter: str) -> list[str]:
    """The code of a solved notebook without its checks, cell by cell."""
    return [
        without_markers(cell.text)
        for cell in source(chapter).cells
        if cell.node.cell_type == "code" and cell.kind != "check"
    ]


@functools.cache
def _solved(chapter: str) -> dict:
    matplotlib.use("agg")
    names: dict = {"__name__": "__main__"}
    if chapter in handed_in.CHAPTERS:
        handed_in.right(handed_in.CHAPTERS[chapter])
    with contextlib.redirect_stdout(io.StringIO()):
        for text in code_cells(chapter):
            exec(compile(text, chapter, "exec"), names)
    return names


def solved(chapter: str) -> dict:
    """The names that a solved notebook has in the end; a fresh copy."""
    return dict(_solved(chapter))


@functools.cache
def written(chapter: str) -> dict:
    """The names of a solved notebook without what only shows something: not a copy.

    The notebook's functions look each other up in this dict.
    """
    matplotlib.use("agg")
    cells = [each for each in source(chapter).cells if each.node.cell_type == "code"]
    texts = [without_markers(each.text) for each in cells]
    pairs = list(zip(cells, texts, strict=True))
    left_out = needless(texts, [text for cell, text in pairs if cell.kind == "given"])
    names: dict = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()):
        for place, (cell, text) in enumerate(pairs):
            if cell.kind != "check" and place not in left_out:
                exec(compile(text, chapter, "exec"), names)
    return names


@functools.cache
def written_classes(chapter: str) -> set[str]:
    """The classes that the answers of a chapter define."""
    return {
        node.name
        for exercise in source(chapter).exercises
        for cell in exercise.answers
        for node in ast.parse(cell.text).body
        if isinstance(node, ast.ClassDef)
    }


@functools.cache
def specifications(chapter: str) -> list[Specification]:
    """The specifications of a chapter's exercises, where its checks are written."""
    package = importlib.import_module(f"autograder.chapters.{source(chapter).module}")
    exported = filter(callable, vars(package).values())
    checks = [each for each in exported if hasattr(each, "forbidden")]
    packages = {check.__module__.rpartition(".")[0] for check in checks}
    found = [
        value
        for name in sorted(packages)
        if name.startswith("autograder.chapters.")
        for module in pkgutil.iter_modules(importlib.import_module(name).__path__)
        for value in vars(importlib.import_module(f"{name}.{module.name}")).values()
        if isinstance(value, Specification)
    ]
    return list({id(each): each for each in found}.values())


@functools.cache
def derived(chapter: str) -> list[mistakes.Entry]:
    """The bank's own copy of each mistake that a specification states."""
    return [
        mistakes.Entry(
            spec.exercise,
            known.name,
            functools.partial(spec.handed_in, known),
            replaces=spec.answer,
        )
        for spec in specifications(chapter)
        for known in spec.mistakes
    ]


@functools.cache
def by_hand(chapter: str) -> list[mistakes.Entry]:
    """The bank's answers that are written out, in another style than the checks'."""
    own = source(chapter).module
    importlib.import_module(f"mistakes.{own}")
    # vision_transformer is a chapter of its own, and no part of vision
    modules = {f"mistakes.{source(each).module}" for each in CHAPTERS}
    others = modules - {f"mistakes.{own}"}
    entries = mistakes.entries(f"mistakes.{own}")
    return [each for each in entries if each.answer.__module__ not in others]


@functools.cache
def bank(chapter: str) -> list[mistakes.Entry]:
    """The bank of mistakes and variants of a chapter."""
    return derived(chapter) + by_hand(chapter)


def count_bank() -> str:
    """Say how large the bank of mistakes is."""
    exercises = [each for chapter in CHAPTERS for each in source(chapter).exercises]
    entries = [each for chapter in CHAPTERS for each in bank(chapter)]
    wrong = sum(bool(entry.mistake) for entry in entries)
    by_hand = sum(exercise.by_hand for exercise in exercises)
    return (
        f"bank of mistakes: {len(exercises)} exercises ({by_hand} graded by hand), "
        f"{wrong} wrong answers, {len(entries) - wrong} correct variants"
    )


def check_cells(chapter: str, exercise: str, *, hidden: bool) -> list[str]:
    """The text of an exercise's check cells, with or without what is hidden."""
    found = next(each for each in source(chapter).exercises if each.name == exercise)
    texts = [cell.text for cell in found.graded if cell.kind == "check"]
    if hidden:
        return texts
    return [without_regions(text, BEGIN_HIDDEN, END_HIDDEN) for text in texts]


def hidden_tests(chapter: str, exercise: str) -> list[str]:
    """The text of an exercise's hidden tests alone."""
    texts = check_cells(chapter, exercise, hidden=True)
    return [
        part.partition(END_HIDDEN)[0]
        for text in texts
        for part in text.split(BEGIN_HIDDEN)[1:]
    ]


def run_checks(chapter: str, entry: mistakes.Entry, *, hidden: bool) -> None:
    """Run an exercise's check cells with an answer of the bank in the notebook."""
    names = solved(chapter)
    entry.hand_in(names)
    if entry.name == "my_model":
        entry.answer()  # what it hands in is made before its time is limited
    for text in check_cells(chapter, entry.exercise, hidden=hidden):
        exec(compile(text, f"check of {entry.exercise}", "exec"), names)
