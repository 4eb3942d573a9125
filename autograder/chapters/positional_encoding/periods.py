"""Wavelengths: after how many positions each pair of columns has turned once."""

import math
import random
from collections.abc import Callable

import torch

from autograder.chapters.positional_encoding import formula
from autograder.chapters.positional_encoding.chapter import chapter
from autograder.chapters.positional_encoding.forms import (
    NEAR,
    judge_typed,
    refuses_odd_width,
)
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction

TURN = 2 * math.pi


def periods(d_model: int, base: float) -> torch.Tensor:
    """Divide a full turn by the angle per position."""
    return (TURN / formula.rates(d_model, base)).float()


waves = Function("wavelengths", "wavelengths", periods)


def _exponents(d_model: int) -> torch.Tensor:
    return torch.arange(0, d_model, 2) / d_model


def _misread(name: str, why: str, change: Callable, **options) -> None:
    """Add a mistake, as a function of the exponents 2i/d and the base."""
    waves.mistake(name, why, **options)(
        lambda d_model, base: change(_exponents(d_model), base)
    )


for name, change, why in (
    (
        "a rate in place of a wavelength",
        lambda e, base: base**-e,
        "base^(-2i/d) is the angle that pair i turns by per position. The wavelength "
        "is the number of positions in a full turn: 2π / rate.",
    ),
    (
        "divided by the power of the base",
        lambda e, base: TURN * base**-e,
        "Later pairs turn more slowly, so their wavelengths are longer: 2π divided by "
        "the rate base^(-2i/d) is 2π times base^(2i/d).",
    ),
    (
        "turns per position in place of positions per turn",
        lambda e, base: base**-e / TURN,
        "This is the frequency; the wavelength is its reciprocal.",
    ),
    (
        "2π forgotten",
        lambda e, base: base**e,
        "The angle reaches 1 after base^(2i/d) positions; a full turn is 2π.",
    ),
    (
        "degrees in place of radians",
        lambda e, base: 360 * base**e,
        "The angle is in radians, and so is a full turn: 2π, not 360.",
    ),
    (
        "2π raised to the power, too",
        lambda e, base: (TURN * base) ** e,
        "The exponent 2i/d belongs to the base alone: 2π · base^(2i/d).",
    ),
    (
        "exponent i/d in place of 2i/d",
        lambda e, base: TURN * base ** (e / 2),
        formula.NOT_TWICE,
    ),
    (
        "factor 2 counted twice",
        lambda e, base: TURN * base ** (2 * e),
        formula.TWICE,
    ),
    (
        "one exponent for all pairs",
        lambda e, base: TURN * base ** (0 * e),
        "Every wavelength is 2π. Was 2i // d meant to be 2i / d? With // the result is "
        "cut down to 0.",
    ),
    (
        "pairs counted from 1",
        lambda e, base: TURN * base ** (e + 1 / len(e)),
        "i runs from 0 to d/2 - 1: the first wavelength is 2π.",
    ),
    (
        "a wavelength for every column",
        lambda e, base: (TURN * base**e).repeat_interleave(2),
        "The two columns of a pair share a wavelength: the result is (d/2,).",
    ),
    (
        "longest first",
        lambda e, base: (TURN * base**e).flip(0),
        "Entry i belongs to pair i; the first pair turns fastest.",
    ),
):
    _misread(name, why, change)

for whole in (torch.ceil, torch.floor, torch.round):
    _misread(
        "rounded to whole positions",
        "A full turn may end between two positions: 2π is not rounded to 6 or 7.",
        lambda e, base, whole=whole: whole(TURN * base**e),
    )
_misread(
    "the last wavelength put at 2π times the base",
    "The exponents are 0, 2/d, ..., (d-2)/d: base · 2π would belong to pair d/2, which "
    "does not exist. The wavelengths stop one step before it.",
    lambda e, base: TURN * base ** torch.linspace(0, 1, len(e)),
    section="position-wavelengths",
)
_misread(
    "base 1000",
    formula.BASE_1000,
    lambda e, base: TURN * 1_000.0**e,
    section=formula.MISTAKES,
    when=lambda d_model, base: base == formula.BASE,
)
_misread(
    "base not used",
    formula.BASE_UNUSED,
    lambda e, base: TURN * formula.BASE**e,
    when=lambda d_model, base: base != formula.BASE,
)

WHY = (
    "One wavelength for each pair of columns: d_model / 2 of them. Work out the "
    "exercise's example step by step: exponents, powers of the base, full turns."
)


@chapter.check(section="position-wavelengths")
def wavelengths(student: StudentFunction, seed: int = 0) -> None:
    """Compare with a full turn by the rate, from one pair to 256 of them."""
    draw = random.Random(seed)
    drawn, other = draw.choice([50.0, 200.0, 400.0]), draw.choice([8, 10, 14])
    for d_model, base in (
        (6, formula.BASE),
        (other, drawn),
        (512, formula.BASE),
        (2, drawn),
    ):
        usual = base == formula.BASE
        on = f"d_model = {d_model}" + ("" if usual else f", base = {base:g}")
        inputs, given = ((d_model,), (base,)) if usual else ((d_model, base), ())
        what = "the vector of wavelengths"
        asked = Case(on, inputs, given=given, tolerance=NEAR, what=what, why=WHY)
        judge_typed(waves, student, asked)
    refuses_odd_width(student, draw.choice([5, 9]))
