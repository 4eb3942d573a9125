"""What every relation of a diagnosis needs: equality, enough of it, and sizes.

A relation is told only if it could not hold by chance, so it counts how many different
values speak for it. Everything here is computed in float64, and NaN equals NaN.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import torch

from autograder.exercise.comparison import Comparison
from autograder.interface import Data

LARGEST = 100_000  # entries of a tensor that is looked at; larger ones are passed over
ENOUGH = 4  # different values that must agree
NUMBERS = (int, float)
Way = TypeVar("Way")  # what is said of one


@dataclass(frozen=True, eq=False)
class Case:
    """A wrong answer of the right shape, as float64, and which entries are wrong."""

    comparison: Comparison
    got: torch.Tensor
    expected: torch.Tensor
    wrong: torch.Tensor

    @property
    def tolerance(self) -> float:
        """The tolerance of the comparison."""
        return self.comparison.tolerance

    @property
    def boolean(self) -> bool:
        """Whether truth values are asked for."""
        expected = self.comparison.expected
        return isinstance(expected, torch.Tensor) and expected.dtype == torch.bool


Relation = Callable[[list[Case]], str]


def real(value: Data) -> torch.Tensor | None:
    """Return a number, or a dense real tensor that is not too large, as float64."""
    if type(value) in NUMBERS:
        return torch.tensor(float(value), dtype=torch.float64)
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return None
    if value.is_complex() or value.numel() > LARGEST:
        return None
    return value.detach().to(torch.float64)


def entries_close(a: torch.Tensor, b: torch.Tensor, tolerance: float) -> torch.Tensor:
    """Mark equal entries of two float64 tensors that broadcast."""
    return torch.isclose(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


def same_tensors(a: torch.Tensor, b: torch.Tensor, tolerance: float) -> bool:
    """Compare two float64 tensors by shape and value."""
    return a.shape == b.shape and bool(entries_close(a, b, tolerance).all())


def _same_numbers(a: float, b: float, tolerance: float) -> bool:
    """Compare two numbers as ``entries_close`` does."""
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or abs(a - b) <= tolerance + tolerance * abs(b) < math.inf


def _dense(value: torch.Tensor) -> bool:
    return value.layout == torch.strided


def same(a: Data, b: Data, tolerance: float) -> bool:
    """Compare data of any nesting by type, shape and value, not by dtype."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        if a.shape != b.shape:
            return False
        first, second = real(a), real(b)
        if first is None or second is None:
            return a is b or (_dense(a) and _dense(b) and torch.equal(a, b))
        return same_tensors(first, second, tolerance)
    if type(a) in NUMBERS and type(b) in NUMBERS:
        return _same_numbers(a, b, tolerance)
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(
            same(x, y, tolerance) for x, y in zip(a, b, strict=True)
        )
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k], tolerance) for k in a)
    return bool(a == b)


def is_right(comparison: Comparison) -> bool:
    """Say whether the answer has the right value and the right type of entries."""
    got, expected = comparison.got, comparison.expected
    if isinstance(got, torch.Tensor) and isinstance(expected, torch.Tensor):
        large = max(got.numel(), expected.numel()) > LARGEST
        if large and (got.shape != expected.shape or got.dtype != expected.dtype):
            return False
        if large and got.is_floating_point():
            tolerance = comparison.tolerance
            return torch.allclose(got, expected, tolerance, tolerance, equal_nan=True)
        if got.dtype != expected.dtype:
            return False
    return same(got, expected, comparison.tolerance)


def case_of(comparison: Comparison) -> Case | None:
    """Prepare a comparison of two tensors, or numbers, of one shape."""
    got, expected = real(comparison.got), real(comparison.expected)
    if got is None or expected is None or got.shape != expected.shape:
        return None
    wrong = ~entries_close(got, expected, comparison.tolerance)
    return Case(comparison, got, expected, wrong) if wrong.any() else None


def distinct(values: torch.Tensor, tolerance: float) -> int:
    """Count the finite values that differ by more than the tolerance."""
    finite = values[values.isfinite()]
    if not finite.numel():
        return 0
    steps = finite.sort().values.diff()
    return 1 + int((steps > 10 * tolerance).sum())


def speaks(cases: Iterable[Case]) -> bool:
    """Say whether the wrong entries are enough to tell a relation from chance.

    Enough are four different values in one tensor or, of truth values and the like,
    two inputs with eight wrong entries together.
    """
    cases = list(cases)
    for case in cases:
        got, right = case.got[case.wrong], case.expected[case.wrong]
        if min(distinct(each, case.tolerance) for each in (got, right)) >= ENOUGH:
            return True
    shapes = {(case.expected.shape, int(case.wrong.sum())) for case in cases}
    return len(shapes) > 1 and sum(int(case.wrong.sum()) for case in cases) >= 8


def common(found: Iterable[dict[str, Way]]) -> dict[str, Way]:
    """Keep the entries that all dicts have by their keys, in the order of the first."""
    first, *others = list(found) or [{}]
    return {key: first[key] for key in first if all(key in other for other in others)}


def tensors_given(comparison: Comparison) -> dict[str, torch.Tensor]:
    """List the arguments and parameters that are tensors, as float64, by name."""
    given = (comparison.arguments or {}) | (comparison.parameters or {})
    found = {
        name: real(value)
        for name, value in given.items()
        if isinstance(value, torch.Tensor)
    }
    return {name: value for name, value in found.items() if value is not None}


def sizes(comparison: Comparison) -> dict[str, int]:
    """List what the sizes of arguments, of parameters and of the result are called."""
    given = (comparison.arguments or {}) | (comparison.parameters or {})
    found = {}
    for name, value in given.items():
        if isinstance(value, torch.Tensor):
            for axis in range(-1, -value.ndim - 1, -1):
                found[f"the {ordinal(axis)} size of {name}"] = value.shape[axis]
        elif type(value) is int:
            found[name] = value
        elif isinstance(value, (list, tuple, dict, str)):
            found[f"the length of {name}"] = len(value)
    return found


def ordinal(axis: int) -> str:
    """Write a negative axis in words: "last", "second last"."""
    words = {-1: "last", -2: "second last", -3: "third last", -4: "fourth last"}
    return words.get(axis, f"{-axis}th last")


def axis_name(axis: int) -> str:
    """Name a negative axis, alike for tensors of any number of axes."""
    return f"the {ordinal(axis)} axis"


def number(value: float) -> str:
    """Write a number shortly, with a true minus sign."""
    return f"{value:.4g}".replace("-", "−")


def subject(cases: list[Case]) -> str:
    """Return what a message calls the value."""
    return cases[0].comparison.what


def of_what(cases: list[Case]) -> str:
    """Say which value is meant, where a sentence does not."""
    what = subject(cases)
    return "" if what == "the result" else f" ({what})"


def telling_arguments(case: Case) -> dict[str, torch.Tensor]:
    """List the arguments and parameters that have enough different values.

    Of a table with more rows than the result also the first rows, as many as it has.
    """
    found = {}
    shape = case.got.shape
    for name, value in tensors_given(case.comparison).items():
        found[name] = value
        if value.ndim == 2 and len(shape) > 1 and value.shape[1] == shape[-1]:
            if len(value) > shape[-2] > 1:
                found[f"the first rows of {name}"] = value[: shape[-2]]
            elif len(value) == shape[-2]:
                found[f"the first rows of {name}"] = value
    return {
        name: value
        for name, value in found.items()
        if distinct(value, case.tolerance) >= ENOUGH
    }
