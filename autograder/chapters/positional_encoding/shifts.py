"""The matrix that moves the encoding on by some positions: rotations of pairs."""

import math
import random
from collections.abc import Callable, Iterator
from functools import partial

import torch

from autograder import expect
from autograder.chapters.positional_encoding import formula
from autograder.chapters.positional_encoding.chapter import chapter
from autograder.chapters.positional_encoding.forms import (
    NEAR,
    expect_type,
    refuses_odd_width,
)
from autograder.exercise.naming import Mistake, Pairs, pairs_wanted
from autograder.exercise.spec import Function
from autograder.interface import Data, StudentFunction


def shifting(offset: int, d_model: int, base: float) -> torch.Tensor:
    """Return M_k = exp(k G), where G turns by one position at an infinitesimal rate."""
    rates = formula.rates(d_model, base)
    still = torch.zeros_like(rates)
    blocks = torch.stack((still, -rates, rates, still), -1).view(-1, 2, 2)
    return torch.linalg.matrix_exp(offset * torch.block_diag(*blocks)).float()


FASTER = "multiplied in place of divided"


def _is_exact(offset: int, d_model: int, base: float) -> bool:
    """Whether angles that are multiplied are small enough for float32."""
    return abs(offset) * base ** (1 - 2 / d_model) < 500


class _Shifts(Function):
    def known(self, *given: Data, **options: Data) -> Iterator[Mistake]:
        """Leave out of two slips as well what float32 cannot compute."""
        for each in super().known(*given, **options):
            if FASTER not in each.name or _is_exact(*given):
                yield each


shifts = _Shifts("shift-matrix", "shift_matrix", shifting)

# --- what goes wrong ------------------------------------------------------------------


def _along_diagonal(blocks: torch.Tensor) -> torch.Tensor:
    return torch.block_diag(*blocks)


def _in_quarters(blocks: torch.Tensor) -> torch.Tensor:
    rows = [torch.cat([blocks[:, i, j].diag() for j in (0, 1)], 1) for i in (0, 1)]
    return torch.cat(rows)


def turning(
    offset: int,
    d_model: int,
    base: float,
    *,
    distance: Callable = lambda offset: offset,
    exponent: Callable = lambda pair, column, d: 2 * pair / d,
    of_base: Callable = lambda base: base,
    angle: Callable = lambda offset, base, e, d: offset / base**e,
    entries: Callable = lambda cos, sin: (cos, -sin, sin, cos),
    place: Callable = _along_diagonal,
    turned: bool = False,
) -> torch.Tensor:
    """Make the matrix with slips, which may be several; some are ``formula``'s.

    Args:
        offset: as in the exercise.
        d_model: the width.
        base: as in the exercise.
        distance: what is taken for the offset.
        exponent: of the base, from pairs, their first columns and the width.
        of_base: what is taken for the base.
        angle: from offset, base, exponents and width.
        entries: the four of a block, row by row, from cosine and sine.
        place: makes the matrix of the blocks.
        turned: whether it is transposed in the end.
    """
    pairs = torch.arange(d_model // 2, dtype=torch.float64)
    e = exponent(pairs, 2 * pairs, d_model)
    angles = angle(distance(offset), of_base(base), e, d_model)
    blocks = torch.stack(entries(angles.cos(), angles.sin()), -1).view(-1, 2, 2)
    matrix = place(blocks).float()
    return matrix.T if turned else matrix


EXCHANGED = (
    "sine and cosine on each other's places",
    "Cosines belong on the diagonal: at offset 0 the matrix must be the identity.",
)
OUTSIDE = (
    "exponent outside the base",
    "The angle of pair i is k / base^(2i/d), not (k / base)^(2i/d).",
)
OF_FORMULA = (
    "exponent i/d in place of 2i/d",
    "factor 2 counted twice",
    "exponents up to 1",
    "log10 in place of the natural logarithm",
    "brackets missing around 2i/d",
)
for name, why, slip, when in (
    (
        "transposed: made for column vectors",
        "PE[p] is a row, to the left of M. This matrix takes PE[p] to PE[p - k]; it is "
        "the right one for columns, M @ PE[p]. For rows the block is [[cos, -sin], "
        "[sin, cos]].",
        {"turned": True},
        None,
    ),
    (
        "both sines with the same sign",
        "cos(a + b) = cos a cos b - sin a sin b: one of the two sines is negative; "
        "else the block is no rotation.",
        {"entries": lambda cos, sin: (cos, sin, sin, cos)},
        None,
    ),
    *(
        (*EXCHANGED, {"entries": entries}, None)
        for entries in (
            lambda cos, sin: (sin, -cos, cos, sin),
            lambda cos, sin: (sin, cos, -cos, sin),
            lambda cos, sin: (sin, cos, cos, -sin),
        )
    ),
    (
        "laid out for a sine block and a cosine block",
        "The encoding is interleaved: pair i occupies columns 2i and 2i+1, so the 2 × "
        "2 blocks lie along the diagonal.",
        {"place": _in_quarters},
        None,
    ),
    (
        "sign of the offset lost",
        "A negative offset shifts back: M[-k] undoes M[k].",
        {"distance": abs},
        None,
    ),
    (
        "a negative offset shifts nothing",
        "A loop over range(offset) makes no step where the offset is negative, and the "
        "identity is left. M[-k] undoes M[k].",
        {"distance": lambda offset: max(offset, 0)},
        lambda offset, d_model, base: offset < 0,
    ),
    (
        "one angle for all pairs",
        "Pair i turns by k / base^(2i/d): every block has its own angle.",
        {"exponent": lambda pair, column, d: 0 * pair},
        None,
    ),
    (*OUTSIDE, {"angle": lambda offset, base, e, d: (offset / base) ** e}, None),
    (  # for whom a negative number has no such power
        *OUTSIDE,
        {
            "angle": lambda offset, base, e, d: (
                math.copysign(1, offset) * (abs(offset) / base) ** e
            )
        },
        lambda offset, d_model, base: offset != 0,
    ),
    (
        "degrees in place of radians",
        "The angle k / base^(2i/d) is in radians, as torch.sin and torch.cos expect: "
        "convert nothing. At k = 1 the first block has cos 1 = .5403.",
        {"angle": lambda offset, base, e, d: torch.deg2rad(offset / base**e)},
        None,
    ),
    (
        "off by one position",
        "The matrix shifts by k positions, the offset as it is given; k = 0 gives the "
        "identity.",
        {"distance": lambda offset: offset + 1},
        None,
    ),
    (
        FASTER,
        "The angle is k / base^(2i/d): later pairs turn more slowly, not faster.",
        {"angle": lambda offset, base, e, d: offset * base**e},
        _is_exact,
    ),
    (
        "base 1000",
        formula.BASE_1000,
        {"of_base": lambda base: 1_000.0},
        lambda offset, d_model, base: base == formula.BASE,
    ),
    (
        "base not used",
        formula.BASE_UNUSED,
        {"of_base": lambda base: formula.BASE},
        lambda offset, d_model, base: base != formula.BASE,
    ),
    *(
        (name, why, change, None)
        for name, change, why, _ in formula.SLIPS
        if name in OF_FORMULA
    ),
):
    shifts.mistake(name, why, when=when)(partial(turning, **slip))

# --- the check ------------------------------------------------------------------------

FREE = (
    "entries outside the 2 × 2 blocks",
    "Pair i owns rows and columns 2i and 2i+1; a block put at [i:i+2] overlaps the one "
    "before it.\nA matrix fitted freely (least squares) may shift the rows it has "
    "seen, but it fits wrong encodings just as well and proves nothing: write the "
    "blocks down from the addition theorems.",
)
WHY = (
    "A row of the encoding times this matrix is such a row again: row p, times it, "
    "must be row p + k. The 2 × 2 blocks lie along the diagonal of one matrix: "
    "torch.block_diag(*blocks). Look at the block of the first pair, rows and columns "
    "0 and 1: all four entries belong to its one angle, k. If cosines of other pairs "
    "are there, look at the axis you stacked along (dim=-1)."
)


def _known(got: Data, *asked: Data) -> Iterator[Mistake]:
    """Yield the mistakes; what has entries where nothing belongs is one of its own."""
    for each in shifts.known(*asked):
        if expect.close(got, each.value, NEAR):
            got = None
        yield each
    if got is not None and pairs_wanted.get() is None:
        token = pairs_wanted.set(Pairs())
        two = any(expect.close(got, each.value, NEAR) for each in shifts.known(*asked))
        got = None if two else got
        pairs_wanted.reset(token)
    shape = (asked[1], asked[1])
    if isinstance(got, torch.Tensor) and got.shape == shape and got.isfinite().all():
        pair = torch.arange(asked[1]) // 2
        if got.masked_fill(pair[:, None] == pair, 0).abs().max() > NEAR:
            yield Mistake(FREE[0], got, FREE[1])


@chapter.check(section="position-shift")
def shift_matrix(student: StudentFunction, seed: int = 0) -> None:
    """Compare with the matrix exponential: forwards, backwards, and not at all."""
    draw = random.Random(seed)
    drawn = draw.choice([60.0, 90.0, 250.0])
    for offset, d_model, base in (
        (2, 4, formula.BASE),
        (draw.choice([3, 5, 17]), 6, drawn),
        (-draw.choice([2, 4, 9]), 10, drawn),
        (0, 8, drawn),
        (1, 2, drawn),
        (draw.choice([31, 40]), 32, formula.BASE),
    ):
        usual = base == formula.BASE
        on = f"offset = {offset}, d_model = {d_model}"
        on += "" if usual else f", base = {base:g}"
        asked = (offset, d_model, base)
        got = student(*(asked[:2] if usual else asked))
        real = isinstance(got, torch.Tensor) and got.is_floating_point()
        value = got.float() if real else got
        expect.equal(
            value,
            shifting(*asked),
            what="the shift matrix",
            on=on,
            why=WHY,
            mistakes=_known(value, *asked),
            tolerance=NEAR,
        )
        expect_type(got, on)
    refuses_odd_width(student, 1, draw.choice([5, 7]))
