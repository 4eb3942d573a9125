"""A helper that one exercise accepts never fails a later one.

Each answer of a chapter is replaced by every right variant, of the bank and of the
files in ``tests/outside``, one at a time, in the chapter's solved notebook. Then the
checks of all exercises that use it run, directly or through another answer, with what
is hidden.
"""

import ast
import contextlib
import functools
import io
import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch._dynamo  # the first optimiser would import it, in the time of its call
from IPython.core.compilerop import CachingCompiler

from tests import chapters
from tests.checks.test_outside import ANSWERS

Variant = tuple[str, str, str, Callable[[dict], None]]


@functools.cache
def reads(chapter: str) -> dict[str, set[str]]:
    """What each function and class of the notebook reads, in the end or on the way."""
    found: dict[str, set[str]] = {}
    for text in chapters.code_cells(chapter):
        for node in ast.parse(text).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found[node.name] = names_in(node)
    for _ in found:  # a chain is no longer than there are definitions
        for used in found.values():
            used |= set().union(*(found[name] for name in used & found.keys()))
    return found


def names_in(node: ast.AST) -> set[str]:
    """The names that occur in a piece of code."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


@functools.cache
def users(chapter: str, exercise: str) -> list[str]:
    """The other exercises whose checks come to use what this one defines."""
    exercises = chapters.source(chapter).exercises
    defined = next(set(each.defines) for each in exercises if each.name == exercise)
    found = []
    for other in exercises:
        if other.name == exercise or other.by_hand:
            continue
        cells = chapters.check_cells(chapter, other.name, hidden=True)
        asked = set().union(*(names_in(ast.parse(text)) for text in cells))
        known = reads(chapter)
        asked |= set().union(*(known[name] for name in asked & known.keys()))
        if asked & defined:
            found.append(other.name)
    return found


def put(name: str, answer: object) -> Callable[[dict], None]:
    """Make what puts an answer of the bank into a notebook."""
    return lambda names: names.update({name: answer})


def run(text: str) -> Callable[[dict], None]:
    """Make what runs a cell in a notebook."""
    compiler = CachingCompiler()  # TorchScript reads the source

    def execute(names: dict) -> None:
        exec(compiler(text, compiler.cache(text), "exec"), names)

    return execute


def variants() -> list[Variant]:
    """Every right variant that another exercise uses: where it stands, what puts it."""
    found = [
        (chapter, entry.exercise, entry.label, put(entry.answer.__name__, entry.answer))
        for chapter in chapters.CHAPTERS
        for entry in chapters.bank(chapter)
        if not entry.mistake
    ]
    found += [
        (chapter, exercise, f"{exercise}: {style}", run(text))
        for style, by_chapter in ANSWERS.items()
        for chapter, cells in by_chapter.items()
        for exercise, text in cells.items()
    ]
    return [each for each in found if users(*each[:2])]


VARIANTS = [
    pytest.param(*each[:2], each[3], id=f"{each[0][:2]} {each[2]} {number}")
    for number, each in enumerate(variants())
]


@pytest.mark.parametrize(("chapter", "exercise", "replace"), VARIANTS)
def test_what_uses_a_right_variant_passes(chapter, exercise, replace) -> None:
    passes(chapter, replace, users(chapter, exercise))


def passes(chapter: str, replace: Callable[[dict], None], exercises: list[str]) -> None:
    """Run checks on a solved notebook in which something has been replaced."""
    names = chapters.written(chapter)
    before = dict(names)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")  # PyTorch's, of TorchScript
            replace(names)
            for exercise in exercises:
                for text in chapters.check_cells(chapter, exercise, hidden=True):
                    exec(compile(text, f"check of {exercise}", "exec"), names)
    finally:
        names.clear()
        names.update(before)


def encumbered(answer: type, *, saved: bool) -> type:
    """Derive a class with buffers that nobody asked for, all in another order."""

    class Encumbered(answer):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self._parameters = dict(reversed(self._parameters.items()))
            self._modules = dict(reversed(self._modules.items()))
            mask = torch.ones(5, 5, dtype=torch.bool).tril()
            self.register_buffer("a_mask", mask, persistent=saved)
            self.register_buffer("zeros", torch.zeros(3, 4), persistent=saved)
            self.register_buffer("step", torch.tensor(7), persistent=saved)

    Encumbered.__name__ = answer.__name__
    return Encumbered


MODULES = [
    pytest.param(chapter, exercise, id=f"{chapter[:2]} {exercise.name}")
    for chapter in chapters.CHAPTERS
    for exercise in chapters.source(chapter).exercises
    if any(name in chapters.written_classes(chapter) for name in exercise.defines)
]


@pytest.mark.parametrize(("chapter", "exercise"), MODULES)
def test_buffers_and_the_order_of_registration_do_not_count(chapter, exercise) -> None:
    # the exercise's point is that nothing is saved
    saved = exercise.name != "sinusoidal-module"

    def replace(names: dict) -> None:
        for name in set(exercise.defines) & chapters.written_classes(chapter):
            names[name] = encumbered(names[name], saved=saved)

    passes(chapter, replace, [exercise.name, *users(chapter, exercise.name)])


def in_other_forms(value: object) -> object:
    """NumPy's numbers, lists for tuples, int32: what counts as the same."""
    if type(value) in (bool, int, float):
        return np.asarray(value)[()]
    if isinstance(value, torch.Tensor):
        return value.int() if value.dtype == torch.int64 else value
    if isinstance(value, dict):
        return {key: in_other_forms(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [in_other_forms(item) for item in value]
    return value


ANSWERED = [
    pytest.param(chapter, exercise, id=f"{chapter[:2]} {exercise.name}")
    for chapter in chapters.CHAPTERS
    for exercise in chapters.source(chapter).exercises
    # the results of two are made keys of a dict, and a folder's name has one form
    if not exercise.by_hand
    and exercise.name not in ("merge-pair", "train-bpe")
    and "my_model" not in exercise.defines
]


@pytest.mark.parametrize(("chapter", "exercise"), ANSWERED)
def test_what_stands_for_the_same_counts(chapter: str, exercise) -> None:
    def replace(names: dict) -> None:
        for name in exercise.defines:
            answer = names[name]
            if isinstance(answer, type):
                forward = answer.forward

                def changed(*args, forward=forward, **kwargs):
                    return in_other_forms(forward(*args, **kwargs))

                made = type(name, (answer,), {"forward": changed})
            else:

                def made(*args, answer=answer, **kwargs):
                    return in_other_forms(answer(*args, **kwargs))

            names[name] = made

    passes(chapter, replace, [exercise.name])


def test_a_variant_that_breaks_what_follows_is_found() -> None:
    """The notebook's own functions call what was put in the place of their helper."""
    with pytest.raises(AssertionError):
        test_what_uses_a_right_variant_passes(
            "04_attention", "softmax", put("softmax", lambda scores: scores)
        )


def test_later_exercises_are_found_through_others() -> None:
    assert "attention-module" in users("04_attention", "masked-softmax")
    assert len(VARIANTS) > 80
