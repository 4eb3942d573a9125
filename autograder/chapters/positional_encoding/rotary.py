"""Rotary encoding: each pair of entries turned by an angle for its position."""

import contextlib
import itertools
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
    explaining,
    judge_typed,
    wrong_axis_named,
)
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.naming import Mistake
from autograder.exercise.spec import UNFIT, Case, Function
from autograder.expect import refuse_if, show_both
from autograder.interface import StudentFunction


def turned(x: torch.Tensor, base: float) -> torch.Tensor:
    """Rotate pairs as complex numbers, in float64."""
    length, width = x.shape[-2:]
    position = torch.arange(length, dtype=torch.float64)
    angle = position[:, None] * formula.rates(width, base)
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    pairs = pairs * torch.polar(torch.ones_like(angle), angle)
    return torch.view_as_real(pairs).flatten(-2).to(x.dtype)


class _Rotary(Function):
    """A specification that also knows two slips at once."""

    def known(self, x: torch.Tensor, base: float) -> Iterator[Mistake]:
        """Yield single slips first; two make a result that none of them makes."""
        seen = [turned(x, base)]
        for each in super().known(x, base):
            seen.append(each.value)
            yield each
        if x.numel() > LARGEST:
            return
        for one, other in itertools.combinations(_slips, 2):
            if one.shows(x, base) and other.shows(x, base) and one.apart(other):
                with contextlib.suppress(*UNFIT):
                    value = _misturned(x, base, **one.changes, **other.changes)
                    if not any(expect.close(value, each, NEAR) for each in seen):
                        name = f"{one.name}, and {other.name}"
                        yield Mistake(name, value, f"{one.why}\n{other.why}")


LARGEST = 700  # entries for which two slips at once are tried
rotary = _Rotary("rotary-encoding", "apply_rotary", turned)


# --- what goes wrong ------------------------------------------------------------------


def _exponents(x: torch.Tensor) -> torch.Tensor:
    return torch.arange(0, x.shape[-1], 2, dtype=torch.float64) / x.shape[-1]


def _angles(x: torch.Tensor, base: float) -> torch.Tensor:
    return torch.arange(x.shape[-2])[:, None] / base ** _exponents(x)


def _interleaved(even: torch.Tensor, odd: torch.Tensor) -> torch.Tensor:
    return torch.stack((even, odd), -1).flatten(-2)


def _halved(even: torch.Tensor, odd: torch.Tensor) -> torch.Tensor:
    return torch.cat((even, odd), -1)


def _neighbours(x: torch.Tensor) -> tuple:
    return x[..., 0::2], x[..., 1::2]


def _rotation(a, b, c, s) -> tuple:
    return a * c - b * s, a * s + b * c


def _misturned(
    x: torch.Tensor,
    base: float,
    *,
    angle: Callable = _angles,
    pairs: Callable = _neighbours,
    rotation: Callable = _rotation,
    together: Callable = _interleaved,
) -> torch.Tensor:
    """Rotate with other angles, pairs, rotations, or places of the results."""
    turn = angle(x, base)
    found = rotation(*pairs(x), turn.cos(), turn.sin())
    return together(*found).to(x.dtype)


@dataclass(frozen=True)
class _Slip:
    """A mistake in some of the parts of the rotation, and where it shows."""

    name: str
    why: str
    changes: dict[str, Callable]
    when: Callable[..., bool] | None

    def shows(self, x: torch.Tensor, base: float) -> bool:
        return self.when is None or self.when(x, base)

    def apart(self, other: "_Slip") -> bool:
        return self.changes.keys().isdisjoint(other.changes)


_slips: list[_Slip] = []


def _misread(
    name: str,
    why: str,
    *,
    section: str | None = None,
    when: Callable[..., bool] | None = None,
    **changes: Callable,
) -> None:
    """Add a mistake in the angles, the pairs, their rotation, or their places."""
    _slips.append(_Slip(name, why, changes, when))
    rotary.mistake(name, why, section=section, when=when)(
        lambda x, base: _misturned(x, base, **changes)
    )


def _wide(x: torch.Tensor, base: float) -> bool:
    return x.shape[-1] > 2


_misread(
    "pairs (i, i + d/2) in place of (2i, 2i + 1)",
    "This is the half-split layout of several published models: a convention, but not "
    "the one of the paper and of this exercise, and weights trained with one do not "
    "work with the other. Take columns 0::2 and 1::2.",
    pairs=lambda x: x.chunk(2, -1),
    together=_halved,
    section="position-relative",
    when=_wide,
)
_misread(
    "right pairs, written back in halves",
    "The rotated pairs must go back to columns 2i and 2i+1: stack them on a new last "
    "axis and flatten; torch.cat puts all first entries in front.",
    together=_halved,
    when=_wide,
)
_misread(
    "pairs (i, i + d/2), written back side by side",
    "The pairs are columns 2i and 2i+1, before and after: take x[..., 0::2] and "
    "x[..., 1::2].",
    pairs=lambda x: x.chunk(2, -1),
    when=_wide,
)
_misread(
    "rotated backwards",
    "(1, 0) at position 1 must become (cos 1, sin 1) = (.5403, .8415). The scores "
    "alone cannot tell: they depend on the offset either way.",
    rotation=lambda a, b, c, s: (a * c + b * s, b * c - a * s),
)
_misread(
    "positions from 1",
    "Row 0 must come back unchanged. The scores cannot tell, as only offsets matter "
    "there; the values can.",
    angle=lambda x, base: _angles(x, base) + 1 / base ** _exponents(x),
)
_misread(
    "both sines with the same sign",
    "The first of a pair becomes a cos - b sin. With two equal signs the map is no "
    "rotation: lengths change.",
    rotation=lambda a, b, c, s: (a * c + b * s, a * s + b * c),
)
_misread(
    "the second of a pair computed from the new first",
    "The first entry was overwritten before the second one was computed: both need the "
    "old values.",
    rotation=lambda a, b, c, s: (a * c - b * s, (a * c - b * s) * s + b * c),
)
_misread(
    "the encoding added in place of rotated",
    "Rotary encoding multiplies: it turns each pair of x by the angle of its position.",
    rotation=lambda a, b, c, s: (a + s, b + c),
)
for name, change, why in (
    (
        "one angle for all pairs",
        lambda e, base: base ** (0 * e),
        "Pair i turns by p / base^(2i/d): every pair has its own rate.",
    ),
    (
        "exponent i/d in place of 2i/d",
        lambda e, base: base ** (e / 2),
        formula.NOT_TWICE,
    ),
    ("factor 2 counted twice", lambda e, base: base ** (2 * e), formula.TWICE),
    (
        "multiplied in place of divided",
        lambda e, base: base**-e,
        "The angle is p / base^(2i/d): later pairs turn more slowly, not faster.",
    ),
):
    _misread(
        name,
        why,
        angle=lambda x, base, change=change: (
            torch.arange(x.shape[-2])[:, None] / change(_exponents(x), base)
        ),
    )
_misread(
    "base not used",
    formula.BASE_UNUSED,
    angle=lambda x, base: _angles(x, formula.BASE),
    when=lambda x, base: base != formula.BASE,
)
_misread(
    "base 1000",
    formula.BASE_1000,
    angle=lambda x, base: _angles(x, 1_000.0),
    section=formula.MISTAKES,
    when=lambda x, base: base == formula.BASE,
)
AXIS = (
    "position read from the wrong axis",
    "The tokens lie along the last but one axis, however many axes x has. Take T from "
    "x.shape[-2]; (T, d_k/2) broadcasts over the rest.",
)
for axis in (-3, -4):

    def _along(x, base, axis=axis):
        position = torch.arange(x.shape[axis]).reshape(-1, *[1] * (-axis - 1))
        return position / base ** _exponents(x)

    _misread(*AXIS, angle=_along, when=lambda x, base, axis=axis: x.dim() >= -axis)
_misread(
    *AXIS,
    angle=lambda x, base: torch.arange(x.shape[1])[:, None] / base ** _exponents(x),
    when=lambda x, base: x.dim() != 3,
)
for rotation in (
    lambda a, b, c, s: (a * c - b * s, b * s + a * c),
    lambda a, b, c, s: (a * s - b * c, a * c + b * s),
):
    _misread(
        "sine and cosine exchanged",
        "The first of a pair becomes a cos - b sin, the second a sin + b cos: at "
        "position 0, where the sine is 0, every pair stays as it is.",
        rotation=rotation,
    )


@rotary.mistake(
    "angles laid out in halves",
    "Columns 2i and 2i+1 turn by one angle, so lay the angles out as 0, 0, 1, 1, "
    "...: repeat_interleave does that. repeat and torch.cat give 0, 1, 0, 1.",
    when=_wide,
)
def _(x, base):
    angle = torch.cat((_angles(x, base),) * 2, -1)
    even, odd = _neighbours(x)
    quarter = _interleaved(-odd, even)
    return (x * angle.cos() + quarter * angle.sin()).to(x.dtype)


@rotary.mistake("nothing rotated", "The output equals x.")
def _(x, base):
    return x.clone()


# --- the check ------------------------------------------------------------------------

COARSE = (
    "angles rounded to the type of x",
    "The positions or the angles went through bfloat16, which has 8 bits for a number: "
    "257 is 256 there, and far tokens turn by another angle. Compute cosine and sine "
    "in float32, and only then go over to the type of x.",
)
ROUGH = 0.1  # of a value in bfloat16 that was computed in any order
COMPLEX = (
    "x may be bfloat16, and not every function takes that. Compute in float32 or "
    "better, and finish with .to(x.dtype)."
)
COLUMNS = (
    "Columns are the last axis however many axes x has: x[..., 0::2], not x[:, 0::2]. "
    "Angles (T, d_k/2) fit x[..., 0::2] by broadcasting; T is x.shape[-2]."
)
WHY = (
    "Rotating changes values only: shape and type are those of x. Try one pair: (1, 0) "
    "at position 1 must become (cos 1, sin 1) = (.5403, .8415)."
)


def _asked(x: torch.Tensor, base: float = formula.BASE, on: str = "") -> Case:
    """Ask with a base only if it is not what it is by default."""
    usual = base == formula.BASE
    on = on or f"x of shape {tuple(x.shape)}" + ("" if usual else f", base = {base:g}")
    inputs, given = ((x,), (base,)) if usual else ((x, base), ())
    what = "the rotated x"
    return Case(on, inputs, given=given, tolerance=NEAR, what=what, why=WHY)


@chapter.check(section="position-relative")
def apply_rotary(student: StudentFunction, seed: int = 0) -> None:
    """Compare with complex multiplication: any axes, float64, the gradient."""
    draw, values = random.Random(seed), seeded(seed)
    base = draw.choice([40.0, 90.0, 500.0])
    length, heads = draw.choice([6, 7]), draw.choice([2, 3])
    hand = torch.tensor([[1.0, 0, 1, 0]] * 3)
    for case in (
        _asked(hand, on="three rows (1, 0, 1, 0), shape (3, 4)"),
        _asked(normal(values, length, 6), base),
        _asked(normal(values, heads + 2, length, 8)),
        _asked(normal(values, heads + 3, heads, length, 4), base),
        _asked(normal(values, 2, 1, 50, 10)),
        _asked(normal(values, 3, 1, 2)),
        _asked(normal(values, 2, 5, 6).double(), on="x of shape (2, 5, 6) in float64"),
    ):
        named = wrong_axis_named(*AXIS, axes=case.inputs[0].dim())
        with explaining(RuntimeError=COLUMNS), named:
            judge_typed(rotary, student, case, case.inputs[0].dtype)
    x, cotangent = normal(values, 2, 3, 5, 6)
    rotary.judge_gradient(student, _asked(x), cotangent, tolerance=NEAR)
    _expect_fine_angles(student, normal(values, 2, 300, 4).bfloat16())
    expect.raises(
        "ValueError",
        lambda: student(torch.ones(2, 3, 5)),
        on="x of shape (2, 3, 5)",
        why="Entries are rotated in pairs: an odd width leaves one without a partner. "
        "Say so: raise ValueError(...).",
        mistake="odd width accepted",
    )


def _expect_fine_angles(student: StudentFunction, x: torch.Tensor) -> None:
    """Expect far positions to be turned in bfloat16 as they are in float32."""
    judge_typed(rotary, student, _asked(x.float()))
    with explaining(RuntimeError=COMPLEX):
        got = student(x)
    on, right = f"x of shape {tuple(x.shape)} in bfloat16", turned(x, formula.BASE)
    shown = dict(zip(("got", "expected"), show_both(got, right, ROUGH), strict=True))
    far = isinstance(got, torch.Tensor) and not expect.close(got.float(), right, ROUGH)
    refuse_if(far, *COARSE, on=on, **shown)
    expect_type(got, on, x.dtype)
