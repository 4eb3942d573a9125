"""Whether the difference of two systems is more than chance."""

import itertools
import math
import statistics
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from autograder.chapters.translator.chapter import chapter
from autograder.exercise.inputs import seeded
from autograder.exercise.spec import Case, Function, expect_several, judge_parts
from autograder.interface import StudentFunction

NAMES = ("the difference", "the low end", "the high end")


def by_numpy(first: torch.Tensor, second: torch.Tensor, indices: torch.Tensor) -> tuple:
    """Let NumPy do it, sample by sample."""
    a, b = first.double().numpy(), second.double().numpy()
    found = [b[rows].mean() - a[rows].mean() for rows in indices.numpy()]
    low, high = np.percentile(found, (2.5, 97.5))
    return float(b.mean() - a.mean()), float(low), float(high)


intervals = Function("paired-bootstrap", "paired_bootstrap", by_numpy)


# --- what goes wrong ------------------------------------------------------------------


def _quantile(samples: torch.Tensor, level: float, how: str = "linear") -> float:
    return torch.quantile(samples, level, interpolation=how).item()


def sampled(
    first: torch.Tensor,
    second: torch.Tensor,
    indices: torch.Tensor,
    *,
    gap: Callable = lambda first, second: second - first,
    again: Callable | None = None,
    rows: Callable = lambda indices: (indices, indices),
    average: Callable = lambda drawn, indices, gaps: drawn.mean(dim=-1),
    whole: Callable = lambda gaps, samples: gaps.mean(),
    levels: tuple[float, float] = (0.025, 0.975),
    read: tuple[Callable, Callable] = (_quantile, _quantile),
    apart: bool = False,
    ends: Callable = lambda low, high, middle, samples, gaps: (low, high),
    form: Callable = lambda middle, low, high: (middle, low, high),
) -> tuple:
    """Compute difference and interval with slips, which may be several.

    Args:
        first: the scores of one system.
        second: those of the other.
        indices: the sentences of each sample.
        gap: what is compared, of both systems' scores.
        again: the same in the samples, if it is another.
        rows: the sentences of either system, of the indices.
        average: makes one number of each sample.
        whole: the first result, of the sentences' differences and those of samples.
        levels: of the two ends.
        read: what reads the low end from the samples, and what reads the high one.
        apart: whether the ends are those of either system, subtracted.
        ends: makes something else of the two ends.
        form: what is made of the three results.
    """
    scores = first.double(), second.double()
    drawn = [each[which] for each, which in zip(scores, rows(indices), strict=True)]

    def averaged(part: Callable) -> torch.Tensor:
        return average(part(*drawn), indices, part(*scores))

    def ends_of(samples: torch.Tensor) -> list[float]:
        return [each(samples, at) for each, at in zip(read, levels, strict=True)]

    gaps, samples = gap(*scores), averaged(again or gap)
    middle, both = float(whole(gaps, samples)), ends_of(samples)
    if apart:
        systems = (lambda a, b: a, lambda a, b: b)
        a, b = (ends_of(averaged(each)) for each in systems)
        both = [after - before for before, after in zip(a, b, strict=True)]
    return form(middle, *ends(*both, middle, samples, gaps))


def _once(drawn: torch.Tensor, indices: torch.Tensor, gaps: torch.Tensor) -> Any:
    return torch.stack([gaps[row.unique()].mean() for row in indices])


def _all(indices: torch.Tensor) -> torch.Tensor:
    """Take each sentence once in each sample."""
    return torch.arange(indices.shape[1]).expand_as(indices)


def _at_share(samples: torch.Tensor, level: float) -> float:
    """Read the sorted samples at a share of their number."""
    return samples.sort().values[int(level * len(samples))].item()


def _below_share(samples: torch.Tensor, level: float) -> float:
    return samples.sort().values[math.ceil(level * len(samples)) - 1].item()


def _beyond(samples: torch.Tensor, level: float) -> float:
    """Read a percentile as Python's statistics does unless it is told otherwise."""
    return statistics.quantiles(samples.tolist(), n=40)[round(40 * level) - 1]


def _bell(
    low: float,
    high: float,
    middle: float,
    samples: torch.Tensor,
    gaps: torch.Tensor,
    *,
    times: float,
    own: bool,
    deviation: Callable,
) -> list[float]:
    """Go so many deviations away from the difference, or from the samples' own mean."""
    centre = samples.mean().item() if own else middle
    far = times * deviation(samples, gaps).item()
    return [centre - far, centre + far]


REVERSED = (
    "first minus second",
    "A positive difference says that the second system is better.",
)
APART = (
    "the samples of the two systems drawn apart",
    "Both are judged on the same sentences: a sample takes the same rows of both. "
    "Otherwise the luck of the draw counts twice.",
)
ONE_ONLY = (
    "only one of the systems is sampled",
    "Both are judged on the same sentences: take the rows of a sample of both scores.",
)
DIFFERENCE = "The interval is that of the difference."
COUNTS = (
    "counts in place of means",
    "Scores are shares of the test set: divide by the number of sentences.",
)
LEVELS = "An interval of 95 % leaves out 2.5 % at either end: 0.025 and 0.975."
PERCENT = (
    "percent and shares mixed up",
    "np.percentile asks for percent, 2.5 and 97.5; torch.quantile and np.quantile ask "
    "for shares, 0.025 and 0.975.",
)
intervals.accident("in the range [0, 1]", *PERCENT)
ORDER = (
    "the difference is not the first result",
    "Return the difference, then the low end, then the high end.",
)
NEAREST = (
    "one of the samples in place of the percentile",
    "A percentile lies between two samples, here a part of the way from one to the "
    "next, as torch.quantile computes it.",
)
PICKS = tuple(partial(_quantile, how=how) for how in ("nearest", "lower", "higher"))
SLIPS: tuple[tuple[str, str, dict], ...] = (
    (*REVERSED, {"gap": lambda first, second: first - second}),
    (*REVERSED, {"again": lambda first, second: first - second}),
    (*REVERSED, {"whole": lambda gaps, samples: -gaps.mean()}),
    (
        "won or lost in place of the difference",
        "A sentence counts by how much its two scores differ. Their order alone says "
        "the same only where all scores are 0 or 1.",
        {"gap": lambda first, second: (second - first).sign()},
    ),
    (
        "the sign of the differences is lost",
        "Where the first system is better the difference is negative: no absolute "
        "values.",
        {"gap": lambda first, second: (second - first).abs()},
    ),
    (
        "the interval of the second system alone",
        DIFFERENCE,
        {"again": lambda first, second: second},
    ),
    (
        "the interval of the first system alone",
        DIFFERENCE,
        {"again": lambda first, second: first},
    ),
    (
        "the percentiles of the two systems subtracted",
        "The sample that is low for one system need not be low for the other. Subtract "
        "in each sample; then take the percentiles of the differences.",
        {"apart": True},
    ),
    (*APART, {"rows": lambda indices: (indices, indices.flip(0))}),
    (*APART, {"rows": lambda indices: (indices, indices.roll(1, 0))}),
    (*ONE_ONLY, {"rows": lambda indices: (_all(indices), indices)}),
    (*ONE_ONLY, {"rows": lambda indices: (indices, _all(indices))}),
    (
        "a sentence that is drawn twice counts once",
        "A sample is a test set of N sentences, in which one that is drawn twice "
        "counts twice. Without repetitions the samples differ too little.",
        {"average": _once},
    ),
    (
        "the interval of sentences, not of samples",
        "How much sentences differ is another question. Average over each sample "
        "first; then look how much the averages differ.",
        {"average": lambda drawn, indices, gaps: gaps},
    ),
    (
        "averaged over the samples, not over the sentences",
        "indices is (samples, sentences): a sample is a row. Average along the last "
        "axis.",
        {"average": lambda drawn, indices, gaps: drawn.mean(dim=0)},
    ),
    (
        "the percentiles of all drawn sentences",
        "Each row of indices is a test set of its own, with one mean. Average along "
        "the last axis first; the percentiles are those of the means.",
        {"average": lambda drawn, indices, gaps: drawn.flatten()},
    ),
    (
        "the median of each sample",
        "The difference is one of means, on each sample as on the whole test set.",
        {"average": lambda drawn, indices, gaps: drawn.median(dim=-1).values},
    ),
    (*COUNTS, {"whole": lambda gaps, samples: gaps.sum()}),
    (*COUNTS, {"average": lambda drawn, indices, gaps: drawn.sum(dim=-1)}),
    (
        *COUNTS,
        {
            "whole": lambda gaps, samples: gaps.sum(),
            "average": lambda drawn, indices, gaps: drawn.sum(dim=-1),
        },
    ),
    (
        "the mean of the samples as the difference",
        "The difference is that of the whole test set; samples only tell how sure it "
        "is.",
        {"whole": lambda gaps, samples: samples.mean()},
    ),
    (
        "the median of the samples as the difference",
        "The difference is that of the means on the whole test set; samples only tell "
        "how sure it is.",
        {"whole": lambda gaps, samples: samples.quantile(0.5)},
    ),
    ("5 and 95 percent", LEVELS, {"levels": (0.05, 0.95)}),
    ("25 and 75 percent", LEVELS, {"levels": (0.25, 0.75)}),
    ("0.5 and 99.5 percent", LEVELS, {"levels": (0.005, 0.995)}),
    (*PERCENT, {"levels": (0.00025, 0.00975)}),
    (*PERCENT, {"levels": (2.5, 97.5)}),  # which are refused
    (
        "the smallest and the largest sample",
        "They grow with the number of samples. Take the percentiles 2.5 and 97.5.",
        {"levels": (0.0, 1.0)},
    ),
    *(
        (*NEAREST, {"read": both})
        for both in itertools.product((*PICKS, _at_share), (*PICKS, _below_share))
    ),
    (
        "percentiles beyond the samples",
        "statistics.quantiles takes samples for a part of more extreme ones, unless "
        'it is told method="inclusive". Here percentile 0 is the smallest of the '
        "samples, and percentile 100 the largest.",
        {"read": (_beyond, _beyond)},
    ),
    *(
        (
            f"{times} deviations in place of percentiles",
            "That assumes a bell curve. Take the percentiles of the samples "
            "themselves.",
            {"ends": partial(_bell, times=times, own=own, deviation=deviation)},
        )
        for times, own in itertools.product((1.96, 2), (False, True))
        for deviation in (
            lambda samples, gaps: samples.std(correction=0),
            lambda samples, gaps: samples.std(),
            lambda samples, gaps: gaps.std() / len(gaps) ** 0.5,
        )
    ),
    (
        "low and high exchanged",
        "The low end comes before the high one.",
        {"ends": lambda low, high, *_: (high, low)},
    ),
    (
        "the interval mirrored at the difference",
        "Return the percentiles themselves, not 2 · difference minus them.",
        {"ends": lambda low, high, middle, *_: (2 * middle - high, 2 * middle - low)},
    ),
    (
        "the interval moved to zero",
        "The interval lies around the difference: do not subtract it.",
        {"ends": lambda low, high, middle, *_: (low - middle, high - middle)},
    ),
    (
        "the distances to the ends in place of the ends",
        "Return the two percentiles themselves.",
        {"ends": lambda low, high, middle, *_: (middle - low, high - middle)},
    ),
    (*ORDER, {"form": lambda middle, low, high: (low, high, middle)}),
    (*ORDER, {"form": lambda middle, low, high: (low, middle, high)}),
    (
        "percent in place of shares",
        "Scores of 0 and 1 have means from 0 to 1: return them as they are.",
        {"form": lambda *three: tuple(100 * each for each in three)},
    ),
)
intervals.slips(sampled, *SLIPS)


# --- the check ------------------------------------------------------------------------


@chapter.check(section="translator-significance")
def paired_bootstrap(student: StudentFunction, seed: int = 0) -> None:
    """By hand, NumPy's percentiles, right and wrong sentences, other scores."""
    generator = seeded(seed)
    first = torch.tensor([1.0, 0.0, 0.0, 1.0])
    second = torch.tensor([1.0, 1.0, 1.0, 0.0])
    draws = torch.tensor([[0, 1, 2, 3], [1, 1, 2, 2], [3, 3, 0, 0]])
    cases = [Case("the example by hand", (first, second, draws))]
    for size, samples in ((60, 200), (37, 150)):
        drawn = torch.rand(2, size, generator=generator)
        if samples == 200:
            drawn = (drawn < torch.tensor([[0.6], [0.75]])).float()
        indices = torch.randint(size, (samples, size), generator=generator)
        on = f"{size} sentences, {samples} samples"
        cases.append(Case(on, (drawn[0].clone(), drawn[1].clone(), indices)))
    for case in cases:
        with intervals.accidents_named():
            got = expect_several(student(*case.inputs), NAMES, case.on)
        judge_parts(intervals, got, case, NAMES)
