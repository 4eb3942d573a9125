"""The sinusoidal encoding, part by part, and how each part is misread.

Every table of the chapter is made here, the right one and the wrong
ones, so that each misreading is written once.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch

BASE = 10_000.0


def _interleaved(column: torch.Tensor, width: int) -> tuple:
    return column // 2, column % 2 == 1


def _sines_and_cosines(angle: torch.Tensor, odd: torch.Tensor) -> torch.Tensor:
    return torch.where(odd, angle.cos(), angle.sin())


def table(
    length: int,
    d_model: int,
    base: float = BASE,
    *,
    first: int = 0,
    columns: Callable = _interleaved,
    exponent: Callable = lambda pair, column, d: 2 * pair / d,
    of_base: Callable = lambda base: base,
    angle: Callable = lambda p, base, e, d: p / base**e,
    waves: Callable = _sines_and_cosines,
) -> torch.Tensor:
    """Compute the encoding in float64, (length, d_model).

    Args:
        length: the number of positions.
        d_model: the width.
        base: as in the exercise.
        first: the first position.
        columns: gives the pair of each column, and whether it is the odd one.
        exponent: of the base, from pair, column and width.
        of_base: what is taken for the base.
        angle: from position, base, exponent and width.
        waves: from angles and what is odd.
    """
    p = torch.arange(first, first + length, dtype=torch.float64)[:, None]
    column = torch.arange(d_model, dtype=torch.float64)
    pair, odd = columns(column, d_model)
    e = exponent(pair, column, d_model)
    return waves(angle(p, of_base(base), e, d_model), odd)


Changes = dict[str, Any]

NOT_TWICE = (
    "i counts pairs, 0 ... d/2 - 1, and the exponent is 2i/d: it runs from 0 to "
    "nearly 1, not to nearly 1/2."
)
TWICE = "torch.arange(0, d, 2) is 2i already; 2 * that / d is 4i/d."
BASE_1000 = (
    "The base is 10000. With 1000, the longest wavelength shrinks about tenfold."
)
BASE_UNUSED = "The result is the one of base 10000: use the argument base."
MISTAKES, FORMULA = "position-mistakes", "position-sinusoidal"

SLIPS: tuple[tuple[str, Changes, str, str], ...] = (  # name, changes, why, section
    (
        "exponent outside the base",
        {"angle": lambda p, base, e, d: (p / base) ** e},
        "sin((p/10000)^(2i/d)) raises the position, too. The exponent belongs to the "
        "base alone: sin(p / 10000^(2i/d)).\nSigns: the first pair never changes after "
        "row 0, and row 1 is right by accident, as 1^x = 1.",
        MISTAKES,
    ),
    (
        "base 1000",
        {"of_base": lambda base: 1_000.0 if base == BASE else base},
        BASE_1000,
        MISTAKES,
    ),
    (
        "cosine first",
        {"waves": lambda angle, odd: _sines_and_cosines(angle, ~odd)},
        "Even columns are sines, odd columns cosines: row 0 reads 0, 1, 0, 1, ...",
        MISTAKES,
    ),
    (
        "positions from 1",
        {"first": 1},
        "Row 0 belongs to position 0 and reads 0, 1, 0, 1, ...: positions count from "
        "0 like Python's indices.",
        MISTAKES,
    ),
    (
        "sine block, then cosine block",
        {"columns": lambda column, d: (column % (d // 2), column >= d // 2)},
        "All sines are on the left, all cosines on the right. The formula interleaves: "
        "column 2i is a sine, column 2i+1 the cosine of the same angle.",
        FORMULA,
    ),
    (
        "exponent i/d in place of 2i/d",
        {"exponent": lambda pair, column, d: pair / d},
        NOT_TWICE,
        FORMULA,
    ),
    (
        "factor 2 counted twice",
        {"exponent": lambda pair, column, d: 4 * pair / d},
        TWICE,
        FORMULA,
    ),
    (
        "exponents up to 1",
        {"exponent": lambda pair, column, d: pair / max(d / 2 - 1, 1)},
        "The exponents are 0/d, 2/d, ..., (d-2)/d: the last one is less than 1. "
        "torch.linspace(0, 1, d // 2) includes its end.",
        FORMULA,
    ),
    (
        "i counts columns in place of pairs",
        {"exponent": lambda pair, column, d: 2 * column / d},
        "Columns 0 and 1 are the sine and the cosine of one angle, with i = 0; columns "
        "2 and 3 have i = 1. With the column's number as i, exponents run to nearly 2.",
        FORMULA,
    ),
    (
        "an exponent for every column",
        {"exponent": lambda pair, column, d: column / d},
        "Columns 2i and 2i+1 share one frequency: both have the exponent 2i/d. With "
        "an exponent c/d for column c, no rotation shifts the positions.",
        MISTAKES,
    ),
    (
        "exponents from 1/d",
        {"exponent": lambda pair, column, d: (column + 1) / d},
        "Columns are counted from 0 and come in pairs of one frequency: exponents "
        "0/d, 0/d, 2/d, 2/d, ..., not 1/d, 2/d, 3/d, ...",
        MISTAKES,
    ),
    (
        "columns counted from 1",
        {"columns": lambda column, d: _interleaved(column + 1, d)},
        "The first column is column 0, a sine. Counted from 1, the first sine never "
        "appears and the last column gets the exponent d/d.",
        MISTAKES,
    ),
    (
        "sines only",
        {"waves": lambda angle, odd: angle.sin()},
        "Odd columns are cosines. With sines alone, two positions can get the same "
        "pair value, and a shift is no linear map.",
        FORMULA,
    ),
    (
        "one exponent for all pairs",
        {"exponent": lambda pair, column, d: 0 * pair},
        "Every pair has the exponent 0 and turns like the first one. Was 2i // d meant "
        "to be 2i / d? With // the result is cut down to 0.",
        FORMULA,
    ),
    (
        "degrees in place of radians",
        {"angle": lambda p, base, e, d: torch.deg2rad(p / base**e)},
        "The angle p / base^(2i/d) is in radians, as torch.sin and torch.cos expect: "
        "convert nothing. Row 1 starts with sin 1 = .8415.",
        "position-by-hand",
    ),
    (
        "multiplied in place of divided",
        {"angle": lambda p, base, e, d: p * base**e},
        "The angle is p / base^(2i/d): later pairs turn more slowly, not faster.",
        FORMULA,
    ),
    (
        "log10 in place of the natural logarithm",
        {"angle": lambda p, base, e, d: p * torch.exp(-e * math.log10(base))},
        "base^x is exp(x · ln base), with the natural logarithm: math.log, not "
        "math.log10. Or leave logarithms out and write base**x.",
        FORMULA,
    ),
    *(
        (
            "brackets missing around 2i/d",
            {"angle": angle},
            "Python reads base ** i2 / d as (base ** i2) / d: powers come first. Write "
            "base ** (i2 / d), or compute the exponents in a line of their own.",
            FORMULA,
        )
        for angle in (
            lambda p, base, e, d: p / base ** (e * d) / d,
            lambda p, base, e, d: p / (base ** (e * d) / d),
        )
    ),
)


def changes_of(*names: str) -> Changes:
    """What misreadings of these names change together."""
    changes: Changes = {}
    for name, change, _, _ in SLIPS:
        changes |= change if name in names else {}
    return changes


UNPAIRED = ("cosine first", "base 1000", "exponents from 1/d", "positions from 1")


def pairs_of_slips() -> Iterator[tuple[str, Changes, str, str]]:
    """Yield two misreadings at once, wherever they concern different parts."""
    for one, other in itertools.combinations(SLIPS, 2):
        if one[1].keys().isdisjoint(other[1]):
            why = f"{one[2]}\n{other[2]}"
            yield f"{one[0]}, and {other[0]}", one[1] | other[1], why, one[3]


def rates(d_model: int, base: float = BASE) -> torch.Tensor:
    """Return the angle per position of each pair, (d/2,), in float64."""
    return torch.logspace(0, -1, d_model // 2 + 1, base=base, dtype=torch.float64)[:-1]
