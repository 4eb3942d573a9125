"""Whether the difference of two systems is more than chance."""

import itertools
from collections.abc import Callable

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


def _ends(samples: torch.Tensor, low=0.025, high=0.975, how="linear") -> tuple:
    ends = torch.tensor([low, high], dtype=torch.double)
    return tuple(torch.quantile(samples, ends, interpolation=how).tolist())


APART = (
    "the samples of the two systems drawn apart",
    "Both are judged on the same sentences: a sample takes the same rows of both. "
    "Otherwise the luck of the draw counts twice.",
)
for moved in (lambda indices: indices.flip(0), lambda indices: indices.roll(1, 0)):

    @intervals.mistake(*APART)
    def _(first, second, indices, moved=moved):
        first, second = first.double(), second.double()
        samples = second[moved(indices)].mean(-1) - first[indices].mean(-1)
        return (second - first).mean().item(), *_ends(samples)


def _around(centre: float, deviation: torch.Tensor) -> list[float]:
    return [centre + sign * 1.96 * deviation.item() for sign in (-1, 1)]


ORDER = (
    "the difference is not the first result",
    "Return the difference, then the low end, then the high end.",
)
NEAREST = (
    "one of the samples in place of the percentile",
    "A percentile lies between two samples, here a part of the way from one to the "
    "next, as torch.quantile computes it.",
)
# of the mean of the sentences' differences, of these (N,), and of the samples' (R,)
INTERVALS: tuple[tuple[str, str, Callable], ...] = (
    (
        "first minus second",
        "A positive difference says that the second system is better.",
        lambda mean, gap, samples: (-mean, *_ends(-samples)),
    ),
    (
        "5 and 95 percent",
        "An interval of 95 % leaves out 2.5 % at either end.",
        lambda mean, gap, samples: (mean, *_ends(samples, 0.05, 0.95)),
    ),
    (
        "the interval of sentences, not of samples",
        "How much sentences differ is another question. Average over each sample "
        "first; then look how much the averages differ.",
        lambda mean, gap, samples: (mean, *_ends(gap)),
    ),
    (
        "the smallest and the largest sample",
        "They grow with the number of samples. Take the percentiles 2.5 and 97.5.",
        lambda mean, gap, samples: (mean, *_ends(samples, 0.0, 1.0)),
    ),
    *(
        (
            "1.96 deviations in place of percentiles",
            "That assumes a bell curve. Take the percentiles of the samples "
            "themselves.",
            lambda mean, gap, samples, less=less, own=own: (
                mean,
                *_around(samples.mean().item() if own else mean, samples.std(0, less)),
            ),
        )
        for less, own in itertools.product((True, False), repeat=2)
    ),
    (
        "the mean of the samples as the difference",
        "The difference is that of the whole test set; samples only tell how sure it "
        "is.",
        lambda mean, gap, samples: (samples.mean().item(), *_ends(samples)),
    ),
    (
        "low and high exchanged",
        "The low end comes before the high one.",
        lambda mean, gap, samples: (mean, *_ends(samples, 0.975, 0.025)),
    ),
    (*ORDER, lambda mean, gap, samples: (*_ends(samples), mean)),
    (
        *ORDER,
        lambda mean, gap, samples: (_ends(samples)[0], mean, _ends(samples)[1]),
    ),
    *(
        (
            *NEAREST,
            lambda mean, gap, samples, low=low, high=high: (
                mean,
                _ends(samples, how=low)[0],
                _ends(samples, how=high)[1],
            ),
        )
        for low, high in itertools.product(("nearest", "lower", "higher"), repeat=2)
    ),
)
for name, why, made in INTERVALS:

    @intervals.mistake(name, why)
    def _(first, second, indices, made=made):
        gap = (second - first).double()
        return made(gap.mean().item(), gap, gap[indices].mean(dim=-1))


@intervals.mistake(
    "the interval of the second system alone", "The interval is that of the difference."
)
def _(first, second, indices):
    samples = second[indices].double().mean(dim=-1)
    return (second - first).double().mean().item(), *_ends(samples)


@intervals.mistake(
    "won or lost in place of the difference",
    "A sentence counts by how much its two scores differ. Their order alone says the "
    "same only where all scores are 0 or 1.",
)
def _(first, second, indices):
    won = (second - first).double().sign()
    return won.mean().item(), *_ends(won[indices].mean(dim=-1))


@intervals.mistake(
    "averaged over the samples, not over the sentences",
    "indices is (samples, sentences): a sample is a row. Average along the last axis.",
)
def _(first, second, indices):
    gap = (second - first).double()
    return gap.mean().item(), *_ends(gap[indices].mean(dim=0))


@intervals.mistake(
    "the percentiles of all drawn sentences",
    "Each row of indices is a test set of its own, with one mean. Average along the "
    "last axis first; the percentiles are those of the means.",
)
def _(first, second, indices):
    gap = (second - first).double()
    return gap.mean().item(), *_ends(gap[indices].flatten())


@intervals.mistake(
    "counts in place of means",
    "Scores are shares of the test set: divide by the number of sentences.",
)
def _(first, second, indices):
    gap = (second - first).double()
    return gap.sum().item(), *_ends(gap[indices].sum(dim=-1))


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
        got = expect_several(student(*case.inputs), NAMES, case.on)
        judge_parts(intervals, got, case, NAMES)
