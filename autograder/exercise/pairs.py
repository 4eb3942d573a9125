"""Two slips at once: which two known mistakes add up to what came.

What two mistakes do to a value often adds up (a bias left out and a residual added) or
multiplies (no scale and half the heads). Then ``A + B − right`` or ``A · B / right`` is
what came, on every input. Of truth values, what both turn round is as it was. One slip
may also be none that is known by a name, and still be plain beside one that is: all
values are a factor away from what the known one gives.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from autograder.interface import Data

FEWEST = 4  # different numbers in all answers: fewer are met by chance
LARGEST = 20_000  # numbers in an answer
ROUNDED = 4  # times the tolerance, since the errors of two values add up
# In a page without PyTorch its name stands for nothing, and no pair is computed.
COMPUTES = isinstance(torch, ModuleType)
SMALL = 1e-6  # a right value that nothing can be divided by

Values = dict  # the value of each mistake on one input, by its key
Way = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]


def _product(
    first: torch.Tensor, second: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    """Multiply two effects; where the right value is 0 it cannot be told (NaN)."""
    made = first * second / right
    return made.masked_fill(right.abs() < SMALL, torch.nan)


WAYS: tuple[Way, ...] = (
    lambda first, second, right: first + second - right,
    _product,
)
OF_TRUTH: tuple[Way, ...] = (  # of 0 and 1
    lambda first, second, right: (first + second + right) % 2,
    lambda first, second, right: first * second,
    lambda first, second, right: torch.maximum(first, second),
)


@dataclass(frozen=True)
class _Case:
    """An answer as numbers: what came, what is right, what the mistakes give."""

    got: torch.Tensor
    right: torch.Tensor
    values: dict[Any, torch.Tensor]
    limit: float
    truth: bool

    def is_right(self) -> bool:
        return self.close(self.right)

    def close(self, value: torch.Tensor) -> bool:
        """Whether the answer is this value, where there is one."""
        told = ~value.isnan() | self.got.isnan()
        return torch.allclose(
            self.got[told], value[told], rtol=self.limit, atol=self.limit
        )

    def spoilt_by(self, key: Any) -> bool:
        value = self.values[key]
        return not torch.allclose(value, self.right, self.limit, self.limit)


def two_at_once(
    cases: Sequence[tuple[Data, Data, Values, float]],
) -> tuple[Any, Any] | None:
    """Find two mistakes that together explain every case.

    Args:
        cases: what came, what is right, the values of the mistakes, the tolerance.

    Returns:
        The keys of the two, in the order of the values; None if no two do, or the
        answers tell too little.
    """
    if not COMPUTES:
        return None
    made = _prepared(cases)
    wrong = [each for each in made if not each.is_right()]
    if not wrong or not _tell(wrong):
        return None
    # some mistakes do not show on some inputs
    shown = [[key for key in each.values if each.spoilt_by(key)] for each in wrong]
    known, most = max(zip(shown, wrong, strict=True), key=lambda both: len(both[0]))
    ways = OF_TRUTH if most.truth else WAYS
    for way, (one, other) in itertools.product(ways, itertools.combinations(known, 2)):
        both = way(most.values[one], most.values[other], most.right)
        if most.close(both) and _all_explained(made, way, one, other):
            return one, other
    return None


def _all_explained(cases: list[_Case], way: Way, one: object, other: object) -> bool:
    """Whether all cases are, some where both mistakes show and differ."""
    telling = 0
    for each in cases:
        shown = [key for key in (one, other) if key in each.values]
        if len(shown) < 2:  # the other mistake does not show on this input
            if shown and not each.close(each.values[shown[0]]):
                return False
            continue
        both = way(each.values[one], each.values[other], each.right)
        if not each.close(both):
            return False
        alone = each.close(each.values[one]) or each.close(each.values[other])
        told = both[~both.isnan()]
        telling += 0 if alone else min(told.unique().numel(), FEWEST)
    return telling >= FEWEST


def _prepared(cases: Sequence[tuple[Data, Data, Values, float]]) -> list[_Case]:
    """Take the cases that are numbers, of one form with what is right."""
    found = []
    for got, right, values, tolerance in cases:
        mine, wanted = _numbers(got), _numbers(right)
        if mine is None or wanted is None or _form(got) != _form(right):
            continue
        form = _form(right)
        made = {
            key: number
            for key, value in values.items()
            if _form(value) == form and (number := _numbers(value)) is not None
        }
        found.append(_Case(mine, wanted, made, ROUNDED * tolerance, _of_truth(right)))
    return found


def _tell(wrong: list[_Case]) -> bool:
    """Whether wrong answers have enough different numbers, or are enough of them."""
    if all(each.truth for each in wrong):
        return sum(each.got.numel() for each in wrong) >= 4 * FEWEST
    return torch.cat([each.got for each in wrong]).unique().numel() >= FEWEST


def _numbers(value: Data) -> torch.Tensor | None:
    """Write all numbers of a value in a row; None if it is no numbers."""
    if isinstance(value, torch.Tensor):
        fits = value.numel() <= LARGEST and not value.is_complex()
        return value.detach().double().flatten() if fits else None
    if isinstance(value, (bool, int, float)):
        return torch.tensor([float(value)], dtype=torch.float64)
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, (list, tuple)) or len(value) > LARGEST:
        return None
    parts = [_numbers(each) for each in value]
    known = [each for each in parts if each is not None]
    return torch.cat(known) if known and len(known) == len(parts) else None


def _form(value: Data) -> object:
    """Say what a value's numbers mean: a shape, a length, the keys."""
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype == torch.bool
    if isinstance(value, dict):
        return tuple((key, _form(each)) for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return [_form(each) for each in value]
    return isinstance(value, bool)


def _of_truth(value: Data) -> bool:
    if isinstance(value, torch.Tensor):
        return value.dtype == torch.bool
    if isinstance(value, (list, tuple)) and value:
        return all(map(_of_truth, value))
    return isinstance(value, bool)


# --- one known mistake, and what else is plain ----------------------------------------


def one_and_more(
    cases: Sequence[tuple[Data, Data, Values, float]],
) -> tuple[Any, str] | None:
    """Find a mistake from which all answers differ in one plain way.

    Args:
        cases: what came, what is right, the values of the mistakes, the tolerance.

    Returns:
        The key of the mistake, and a sentence; None if there is none, or if several
        are as good.
    """
    tensors = [
        each
        for each in cases
        if isinstance(each[0], torch.Tensor) and each[0].is_floating_point()
        if isinstance(each[1], torch.Tensor)
    ]
    wrong = [each for each in tensors if not _same(each[0], each[1], each[3])]
    if len(wrong) < 2 or len(tensors) < len(cases):
        return None
    found: dict[Any, str] = {}
    shared = set.intersection(*(set(values) for _, _, values, _ in wrong))
    for key in [key for key in wrong[0][2] if key in shared]:
        if any(
            key in values and not _same(values[key], right, tolerance)
            for got, right, values, tolerance in cases
            if _same(got, right, tolerance)
        ):
            continue  # it would spoil what is right
        said = next(filter(None, (way(wrong, key) for way in PLAIN)), "")
        if said:
            found.setdefault(said, key)
    if len(found) != 1:
        return None
    ((said, key),) = found.items()
    return key, said


def _pairs(cases: Sequence, key: object) -> Iterator[tuple]:
    for got, right, values, tolerance in cases:
        yield got.double(), values[key].double(), right.double(), ROUNDED * tolerance


def _fits(cases: Sequence, key: object) -> bool:
    """Whether the mistake shows, and has the form of the answer, everywhere."""
    for got, right, values, tolerance in cases:
        value = values[key]
        if not isinstance(value, torch.Tensor) or value.shape != got.shape:
            return False
        if value.unique().numel() < FEWEST or _same(value, right, tolerance):
            return False
        if not bool(got.isfinite().all() and value.isfinite().all()):
            return False
    return True


def _times(cases: Sequence, key: object) -> str:
    if not _fits(cases, key):
        return ""
    factors = []
    for got, value, _, limit in _pairs(cases, key):
        factor = float((got * value).sum() / value.square().sum().clamp(min=1e-30))
        if abs(factor) < 1e-3 or not torch.allclose(got, factor * value, limit, limit):
            return ""
        factors.append(factor)
    same = max(factors) - min(factors) < 1e-3 * abs(factors[0])
    if not same or abs(factors[0] - 1) < 1e-2:
        return ""
    return f"Besides, every value is {factors[0]:.4g} times what that gives."


PLAIN = (_times,)


def _same(got: Data, value: Data, tolerance: float) -> bool:
    both = isinstance(got, torch.Tensor) and isinstance(value, torch.Tensor)
    if not both or got.shape != value.shape:
        return False
    limit = ROUNDED * tolerance
    return torch.allclose(
        got.double(), value.double(), rtol=limit, atol=limit, equal_nan=True
    )
