"""Two slips at once: which two known mistakes add up to what came.

What two mistakes do to a value often adds up (a bias left out and a residual added) or
multiplies (no scale and half the heads). Then ``A + B − right`` or ``A · B / right`` is
what came, on every input.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from autograder.interface import Data

FEWEST = 4  # different numbers in an answer: fewer are met by chance
LARGEST = 20_000  # numbers in an answer
ROUNDED = 4  # times the tolerance, since the errors of two values add up

Values = dict  # the value of each mistake on one input, by its key
Way = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
WAYS: tuple[Way, ...] = (
    lambda first, second, right: first + second - right,
    lambda first, second, right: first * second / right,
)


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
    cases = [each for each in cases if _tells(*each[:2])]
    wrong = [each for each in cases if not _close(each[0], each[1], each[3])]
    if not wrong:
        return None
    # some mistakes do not show on some inputs
    got, right, values, tolerance = max(wrong, key=lambda case: len(case[2]))
    known = {
        key: value.double()
        for key, value in values.items()
        if _alike(value, right) and not _close(value, right, tolerance)
    }
    for way, (one, other) in itertools.product(WAYS, itertools.combinations(known, 2)):
        both = way(known[one], known[other], right.double())
        if _close(got, both, tolerance) and all(
            _explains(way, one, other, case) for case in cases
        ):
            return one, other
    return None


def _tells(got: Data, right: Data) -> bool:
    if not _alike(got, right) or not right.is_floating_point():
        return False
    return right.numel() <= LARGEST and got.unique().numel() >= FEWEST


def _alike(got: Data, right: Data) -> bool:
    both = isinstance(got, torch.Tensor) and isinstance(right, torch.Tensor)
    return both and got.shape == right.shape and got.is_floating_point()


def _explains(way: Way, one: object, other: object, case: tuple) -> bool:
    got, right, values, tolerance = case
    shown = [values[key] for key in (one, other) if key in values]
    if not all(_alike(value, right) for value in shown):
        return False
    if len(shown) < 2:  # the other mistake does not show on this input
        return all(_close(got, value, tolerance) for value in shown)
    both = way(shown[0].double(), shown[1].double(), right.double())
    return _close(got, both, tolerance)


def _close(got: torch.Tensor, value: torch.Tensor, tolerance: float) -> bool:
    limit = ROUNDED * tolerance
    return torch.allclose(got.double(), value.double(), rtol=limit, atol=limit)
