"""Two systems on the same test: the difference, and how far it is chance.

The paired bootstrap (Koehn 2004): draw the test set anew from itself, with replacement,
and score both systems on the same draw, many times. The seeds of training are another
kind of chance, which this says nothing about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from workbench.errors import WorkbenchError

TIMES, SEED = 1000, 0


class Judged(NamedTuple):
    """One metric on a test set: what each example adds to it, and what follows."""

    rows: np.ndarray  # (N, k), a row per example
    score: Callable[[np.ndarray], float]  # of the sum of rows, (k,)

    def whole(self) -> float:
        """Score the whole test set."""
        return self.score(self.rows.sum(0))


class Difference(NamedTuple):
    """By how much the first system is better."""

    value: float
    low: float  # 95 % of the draws lie from here
    high: float  # to here
    better: float  # share of the draws in which the first system scores higher


def judge_right(found: Sequence, expected: Sequence) -> Judged:
    """Judge what is right or wrong as a whole; the score is in percent."""
    pairs = zip(found, expected, strict=True)
    rows = np.array([[a == b, 1] for a, b in pairs], dtype=np.int64)
    return Judged(rows, lambda sums: 100 * sums[0] / sums[1])


def paired_bootstrap(
    first: Judged, second: Judged, times: int = TIMES, seed: int = SEED
) -> Difference:
    """Compare two systems that were judged on the same examples, in the same order.

    Args:
        first: N rows.
        second: N rows; scored as the first is.
        times: draws.
        seed: of the draws; the same seed gives the same answer.

    Raises:
        WorkbenchError: no examples, or not as many on both sides.
    """
    count = len(first.rows)
    if not count or len(second.rows) != count:
        raise WorkbenchError(
            f"{count} and {len(second.rows)} examples: both systems must be judged on "
            "the same ones, and on at least one"
        )
    generator = np.random.default_rng(seed)
    drawn = np.array(
        [
            difference(first, second, generator.integers(count, size=count))
            for _ in range(times)
        ]
    )
    whole = difference(first, second, np.arange(count))
    low, high = np.percentile(drawn, [2.5, 97.5])
    return Difference(whole, float(low), float(high), float((drawn > 0).mean()))


def difference(first: Judged, second: Judged, chosen: np.ndarray) -> float:
    """Return by how much the first system is better on chosen examples."""
    return first.score(first.rows[chosen].sum(0)) - second.score(
        second.rows[chosen].sum(0)
    )


def told(name: str, found: Difference) -> str:
    """Say it in a line."""
    return (
        f"{name:28} {found.value:+.2f}   95 % of {TIMES} draws: {found.low:+.2f} to "
        f"{found.high:+.2f}; better in {100 * found.better:.0f} %"
    )
