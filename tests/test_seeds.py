"""Hidden seeds: drawn from a secret and the submission, and fair whatever is drawn.

The long version, with as many seeds a check as SEEDS says: SEEDS=500 pytest
tests/test_seeds.py
"""

import ast
import contextlib
import functools
import io
import os
import random

import pytest

from autograder.expect import CheckFailure
from autograder.grading import seeds
from autograder.grading.examine import _split
from tests import chapters

SEEDS = int(os.environ.get("SEEDS", "6"))
CHECKED = [
    pytest.param(chapter, exercise.name, id=f"{chapter[:2]} {exercise.name}")
    for chapter in chapters.CHAPTERS
    for exercise in chapters.source(chapter).exercises
    if not exercise.by_hand
]


@functools.cache
def hidden_parts(chapter: str, exercise: str) -> list:
    """The hidden tests of an exercise, compiled."""
    texts = [_split(t)[1] for t in chapters.check_cells(chapter, exercise, hidden=True)]
    trees = [seeds.with_drawn_seeds(text, exercise) for text in texts]
    return [compile(tree, f"<{exercise}>", "exec") for tree in trees]


def fails(chapter: str, exercise: str, names: dict, seed: int) -> CheckFailure | None:
    """Run the hidden tests with a seed; return what the first says that fails."""
    own = names | {seeds.DRAW: lambda *facts: seed}
    with contextlib.redirect_stdout(io.StringIO()):
        for code in hidden_parts(chapter, exercise):
            try:
                exec(code, own)
            except CheckFailure as failure:
                return failure
    return None


def drawn(label: str) -> list[int]:
    """Seeds of the range, the same ones each time."""
    draw = random.Random(label)
    return [draw.randint(1, seeds.LARGEST) for _ in range(SEEDS)]


@pytest.mark.parametrize(("chapter", "exercise"), CHECKED)
def test_a_right_answer_passes_whatever_is_drawn(chapter: str, exercise: str) -> None:
    names = chapters.solved(chapter)
    bank = [each for each in chapters.bank(chapter) if each.exercise == exercise]
    variants = [each.answer for each in bank if not each.mistake]
    for answer in [None, *variants]:
        own = names | ({answer.__name__: answer} if answer else {})
        for seed in drawn(exercise):
            failure = fails(chapter, exercise, own, seed)
            assert failure is None, (answer and answer.__doc__, seed, str(failure))
