"""The sinusoidal encoding: values by hand, other sizes and bases, far positions."""

import random
from collections.abc import Iterator

import torch

from autograder.chapters.positional_encoding import formula
from autograder.chapters.positional_encoding.chapter import chapter
from autograder.chapters.positional_encoding.forms import (
    FAR,
    NEAR,
    explaining,
    judge_typed,
    refuses_odd_width,
)
from autograder.exercise.naming import Mistake
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction

KEPT = (
    "The same size came before with another base: a table that is kept from call to "
    "call has to be kept under all three arguments."
)
LARGEST = 100  # entries of a table for which two slips at once are tried
STEEPEST = 500.0  # an angle whose sine is still the same in float32


def encoded(length: int, d_model: int, base: float = formula.BASE) -> torch.Tensor:
    """Return the right table, float32."""
    return formula.table(length, d_model, base).float()


class _Encoding(Function):
    """A specification that also knows two slips at once."""

    def known(self, length: int, d_model: int, base: float) -> Iterator[Mistake]:
        """Yield single slips first; two make a table that none of them makes."""
        seen = [encoded(length, d_model, base)]
        for each in super().known(length, d_model, base):
            seen.append(each.value)
            yield each
        if length * d_model > LARGEST:
            return
        singles = torch.stack(seen)
        for name, changes, why, section in formula.pairs_of_slips():
            value = formula.table(length, d_model, base, **changes).float()
            if (singles - value).abs().amax((1, 2)).min() > NEAR:
                yield Mistake(name, value, why, section)


encoding = _Encoding(
    "sinusoidal-positional-encoding", "sinusoidal_positional_encoding", encoded
)


def _usual(length: int, d_model: int, base: float) -> bool:
    return base == formula.BASE


def _unusual(length: int, d_model: int, base: float) -> bool:
    return base != formula.BASE


def _gentle(length: int, d_model: int, base: float) -> bool:
    """Whether angles that grow from pair to pair still have a sine in float32."""
    return length * base ** (1 - 2 / d_model) < STEEPEST


def _narrow(length: int, d_model: int, base: float) -> bool:
    """The same of angles that grow with the width."""
    return length * d_model < STEEPEST


for name, changes, why, section in formula.SLIPS:
    when = {
        "base 1000": _usual,  # as a default it shows where no base is passed
        "multiplied in place of divided": _gentle,
        "brackets missing around 2i/d": _narrow,
    }.get(name)
    encoding.mistake(name, why, section=section, when=when)(
        lambda length, d_model, base, changes=changes: formula.table(
            length, d_model, base, **changes
        ).float()
    )


@encoding.mistake(
    "cosine first, and a new frequency in each column",
    "It starts with a cosine, has the base 1000, an exponent for every column, and "
    "counts positions and columns from 1.",
    section=formula.MISTAKES,
    when=_usual,
)
def _(length, d_model, base):
    changes = formula.changes_of(*formula.UNPAIRED)
    return formula.table(length, d_model, base, **changes).float()


@encoding.mistake("base not used", formula.BASE_UNUSED, when=_unusual)
def _(length, d_model, base):
    return encoded(length, d_model)


COLUMN = (
    "Positions (length,) and divisors (d_model/2,) do not fit together, nor does a "
    "table (length, d_model) fit angles (length, d_model/2). Give the positions a "
    "second axis, (length, 1), and fill every second column."
)
FIRST = (
    "A row for each position, a column for each entry: (length, d_model). Where is the "
    "first wrong entry? In row 0: look at the order of sines and cosines. In column 0 "
    "or 1: at the positions. Further right: at the exponents."
)
CONSTANT = (
    "At length 3, d_model 4 and base 10000 it was right: does a number in your code "
    "stand where length, d_model or base should?"
)
STEPS = (
    "The first rows are right, later ones are not: keep positions and angles in "
    "float32 or better, and do not sum up small steps."
)


def _asked(length, d_model, base=formula.BASE, *, why, tolerance=NEAR) -> Case:
    """Ask with a base only if it is not what it is by default."""
    usual = base == formula.BASE
    on = f"length = {length}, d_model = {d_model}"
    on += ", base left at its default" if usual else f", base = {base:g}"
    inputs, given = (length, d_model, base), ()
    if usual:
        inputs, given = (length, d_model), (base,)
    what = "the encoding"
    return Case(on, inputs, given=given, tolerance=tolerance, what=what, why=why)


@chapter.check(section="position-sinusoidal")
def sinusoidal_positional_encoding(student: StudentFunction, seed: int = 0) -> None:
    """Compare with values by hand, in other sizes and bases, and far out."""
    with explaining(RuntimeError=COLUMN):
        judge_typed(encoding, student, _asked(3, 4, why=FIRST))
    draw = random.Random(seed)
    base = draw.choice([50.0, 100.0, 300.0])
    sizes = draw.sample([(7, 6), (1, 10), (23, 8), (60, 26), (5, 2)], 4)
    for length, d_model in sizes:
        asked = _asked(length, d_model, base, why=CONSTANT)
        judge_typed(encoding, student, asked)
    judge_typed(encoding, student, _asked(length, d_model, base + 25, why=KEPT))
    length, d_model = draw.choice([(1500, 6), (2000, 4)])
    far = _asked(length, d_model, why=STEPS, tolerance=FAR)
    judge_typed(encoding, student, far)
    refuses_odd_width(student, 4, draw.choice([5, 7]))
