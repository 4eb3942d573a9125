"""The matrix that moves the encoding on by some positions: rotations of pairs."""

import contextlib
import itertools
import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from autograder import expect
from autograder.chapters.positional_encoding import formula
from autograder.chapters.positional_encoding.chapter import chapter
from autograder.chapters.positional_encoding.forms import (
    NEAR,
    expect_type,
    refuses_odd_width,
)
from autograder.exercise.naming import Mistake
from autograder.exercise.spec import UNFIT, Function
from autograder.interface import Data, StudentFunction


def _in_blocks(*entries: torch.Tensor) -> torch.Tensor:
    """Put the four entries of each block along the diagonal."""
    return torch.block_diag(*torch.stack(entries, -1).view(-1, 2, 2)).float()


def _turning(angle: torch.Tensor) -> torch.Tensor:
    return _in_blocks(angle.cos(), -angle.sin(), angle.sin(), angle.cos())


def shifting(offset: int, d_model: int, base: float) -> torch.Tensor:
    """Return M_k = exp(k G), where G turns by one position at an infinitesimal rate."""
    rates = formula.rates(d_model, base)
    still = torch.zeros_like(rates)
    blocks = torch.stack((still, -rates, rates, still), -1).view(-1, 2, 2)
    return torch.linalg.matrix_exp(offset * torch.block_diag(*blocks)).float()


@dataclass(frozen=True)
class _Slip:
    """A mistake in the angles or in the places of their sines and cosines."""

    name: str
    why: str
    change: Callable[..., torch.Tensor]
    when: Callable[..., bool] | None = None


_slips_in_angles: list[_Slip] = []
_slips_in_places: list[_Slip] = []


class _Shifts(Function):
    """A specification that also knows two slips at once: in angles and in places."""

    def known(self, offset: int, d_model: int, base: float) -> Iterator[Mistake]:
        """Yield single slips first; two make a matrix that none of them makes."""
        asked = offset, d_model, base
        seen = [shifting(*asked)]
        for each in super().known(*asked):
            seen.append(each.value)
            yield each
        for place, angle in itertools.product(_slips_in_places, _slips_in_angles):
            if angle.when is None or angle.when(*asked):
                with contextlib.suppress(*UNFIT):
                    angles = angle.change(offset, _exponents(d_model), base)
                    value = place.change(angles)
                    if not any(expect.close(value, each, NEAR) for each in seen):
                        name = f"{place.name}, and {angle.name}"
                        yield Mistake(name, value, f"{place.why}\n{angle.why}")


shifts = _Shifts("shift-matrix", "shift_matrix", shifting)


def _exponents(d_model: int) -> torch.Tensor:
    return torch.arange(0, d_model, 2, dtype=torch.float64) / d_model


def _angles(offset: int, d_model: int, base: float) -> torch.Tensor:
    return offset / base ** _exponents(d_model)


def _misread(name: str, why: str, angle: Callable, **options: Callable) -> None:
    """Add a mistake in the angle, a function of offset, exponents 2i/d and base."""
    _slips_in_angles.append(_Slip(name, why, angle, **options))
    shifts.mistake(name, why, **options)(
        lambda offset, d_model, base: _turning(angle(offset, _exponents(d_model), base))
    )


_misread(
    "sign of the offset lost",
    "A negative offset shifts back: M[-k] undoes M[k].",
    lambda offset, e, base: abs(offset) / base**e,
)
_misread(
    "a negative offset shifts nothing",
    "A loop over range(offset) makes no step where the offset is negative, and the "
    "identity is left. M[-k] undoes M[k].",
    lambda offset, e, base: max(offset, 0) / base**e,
    when=lambda offset, d_model, base: offset < 0,
)


def _misplaced(name: str, why: str) -> Callable:
    """Add a mistake in the places of sines and cosines, a function of the angles."""

    def add(place: Callable[[torch.Tensor], torch.Tensor]) -> None:
        _slips_in_places.append(_Slip(name, why, place))
        shifts.mistake(name, why)(lambda *asked: place(_angles(*asked)))

    return add


_misplaced(
    "transposed: made for column vectors",
    "PE[p] is a row, to the left of M. This matrix takes PE[p] to PE[p - k]; it is "
    "the right one for columns, M @ PE[p]. For rows the block is [[cos, -sin], [sin, "
    "cos]].",
)(lambda angle: _turning(angle).T)
_misplaced(
    "both sines with the same sign",
    "cos(a + b) = cos a cos b - sin a sin b: one of the two sines is negative; else "
    "the block is no rotation.",
)(lambda angle: _in_blocks(angle.cos(), angle.sin(), angle.sin(), angle.cos()))
for exchanged in (
    lambda cos, sin: (sin, -cos, cos, sin),
    lambda cos, sin: (sin, cos, -cos, sin),
    lambda cos, sin: (sin, cos, cos, -sin),
):
    _misplaced(
        "sine and cosine on each other's places",
        "Cosines belong on the diagonal: at offset 0 the matrix must be the identity.",
    )(
        lambda angle, exchanged=exchanged: _in_blocks(
            *exchanged(angle.cos(), angle.sin())
        )
    )


@_misplaced(
    "laid out for a sine block and a cosine block",
    "The encoding is interleaved: pair i occupies columns 2i and 2i+1, so the 2 × 2 "
    "blocks lie along the diagonal.",
)
def _(angle):
    cos, sin = angle.cos().diag(), angle.sin().diag()
    return torch.cat((torch.cat((cos, -sin), 1), torch.cat((sin, cos), 1))).float()


_misread(
    "one angle for all pairs",
    "Pair i turns by k / base^(2i/d): every block has its own angle.",
    lambda offset, e, base: offset + 0 * e,
)
OUTSIDE = (
    "exponent outside the base",
    "The angle of pair i is k / base^(2i/d), not (k / base)^(2i/d).",
)
_misread(*OUTSIDE, lambda offset, e, base: (offset / base) ** e)
_misread(  # for whom a negative number has no such power
    *OUTSIDE,
    lambda offset, e, base: math.copysign(1, offset) * (abs(offset) / base) ** e,
    when=lambda offset, d_model, base: offset != 0,
)
_misread(
    "exponent i/d in place of 2i/d",
    formula.NOT_TWICE,
    lambda offset, e, base: offset / base ** (e / 2),
)
_misread(
    "factor 2 counted twice",
    formula.TWICE,
    lambda offset, e, base: offset / base ** (2 * e),
)
_misread(
    "multiplied in place of divided",
    "The angle is k / base^(2i/d): later pairs turn more slowly, not faster.",
    lambda offset, e, base: offset * base**e,
    when=lambda offset, d_model, base: abs(offset) * base ** (1 - 2 / d_model) < 500,
)
_misread(
    "base 1000",
    formula.BASE_1000,
    lambda offset, e, base: offset / 1_000.0**e,
    when=lambda offset, d_model, base: base == formula.BASE,
)
_misread(
    "base not used",
    formula.BASE_UNUSED,
    lambda offset, e, base: offset / formula.BASE**e,
    when=lambda offset, d_model, base: base != formula.BASE,
)

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
