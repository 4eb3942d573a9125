"""The lowest loss that label smoothing leaves."""

import contextlib
import math
import operator
from collections.abc import Callable

from autograder.chapters.translator.chapter import chapter
from autograder.exercise.inputs import WholeNumbers, draw_whole
from autograder.exercise.spec import Case, Function, errors_named
from autograder.interface import StudentFunction

UNSMOOTHED = (
    "fails without smoothing",
    "0 · ln 0 counts as 0: without smoothing the floor is 0.",
)


def by_cross_entropy(vocab_size: int, smoothing: float) -> float:
    """Add up the smoothed loss of the best prediction, class by class."""
    target = [smoothing / vocab_size] * vocab_size
    target[0] += 1 - smoothing
    best = [math.log(max(chance, 1e-300)) for chance in target]
    return abs(sum(map(operator.mul, target, best)))  # no negative zero


floor = Function("smoothing-floor", "smoothing_floor", by_cross_entropy)


# --- what goes wrong ------------------------------------------------------------------


def _entropy(first: float, other: float, count: int) -> float:
    """Give the entropy of one chance and of ``count`` others, in nats."""
    total = first * math.log(first) if first else 0.0
    return -(total + count * other * math.log(other)) if other else -total


def _right(size: int, smoothing: float) -> float:
    """The chance of the right class."""
    return 1 - smoothing + smoothing / size


ONLY_RIGHT = "only the right class counted"
FORMULAS: tuple[tuple[str, str, Callable[[int, float], float]], ...] = (
    (
        "spread over the wrong classes only",
        "PyTorch and the paper spread it over all V classes, so the right one gets its "
        "share, too: 1 - ε + ε/V.",
        lambda size, e: _entropy(1 - e, e / (size - 1), size - 1),
    ),
    (
        "the right class without its share",
        "ε is spread over all V classes, the right one included: 1 - ε + ε/V. The "
        "chances sum to 1.",
        lambda size, e: _entropy(1 - e, e / size, size - 1),
    ),
    (
        "all V classes counted as wrong ones",
        "V - 1 classes are not the right one.",
        lambda size, e: _entropy(_right(size, e), e / size, size),
    ),
    (
        ONLY_RIGHT,
        "That is the loss without smoothing of this prediction. The smoothed loss asks "
        "for the other classes, too.",
        lambda size, e: -math.log(_right(size, e)),
    ),
    (
        ONLY_RIGHT,
        "An entropy is a sum over all classes; those that are not right add the most.",
        lambda size, e: _entropy(_right(size, e), 0.0, 0),
    ),
    (
        "one wrong class in place of V - 1",
        "V - 1 classes have the probability ε/V; multiply by their number.",
        lambda size, e: _entropy(_right(size, e), e / size, 1),
    ),
    (
        "sign not changed",
        "Logarithms of probabilities are negative, and a loss is not.",
        lambda size, e: -_entropy(_right(size, e), e / size, size - 1),
    ),
    (
        "the loss of an even guess",
        "This is one of two parts. Write down the probabilities of all V classes, "
        "then their entropy.",
        lambda size, e: e * math.log(size),
    ),
    ("", "", lambda size, e: _entropy(_right(size, e), e / size, size - 1)),
)
BASES = (
    (math.e, ""),
    (2, "The cross-entropy of PyTorch is in nats: math.log, not math.log2."),
    (10, "The cross-entropy of PyTorch is in nats: math.log, not math.log10."),
)
for base, other_base in BASES:
    for name, why, formula in FORMULAS:
        if name or other_base:

            @floor.mistake(
                name or f"base {base} in place of e", f"{why} {other_base}".strip()
            )
            def _(vocab_size, smoothing, formula=formula, base=base):
                return formula(vocab_size, smoothing) / math.log(base)


@floor.mistake(
    "the perplexity in place of the loss",
    "Perplexity is exp of the cross-entropy. Return the cross-entropy itself.",
)
def _(vocab_size, smoothing):
    return math.exp(by_cross_entropy(vocab_size, smoothing))


@floor.mistake(
    "the smoothing itself",
    "The floor is the entropy of the smoothed target; ε is a part of it.",
)
def _(vocab_size, smoothing):
    return smoothing


@floor.mistake(*UNSMOOTHED)
def _(vocab_size, smoothing):
    other = smoothing / vocab_size
    right = 1 - smoothing + other
    others = (vocab_size - 1) * other * math.log(other)
    return -(right * math.log(right) + others)


@floor.mistake(*UNSMOOTHED)
def _(vocab_size, smoothing):
    return by_cross_entropy(vocab_size, smoothing) if smoothing else math.nan


# --- the check ------------------------------------------------------------------------


@chapter.check(section="translator-curves")
def smoothing_floor(student: StudentFunction, seed: int = 0) -> None:
    """By hand, the smoothed cross-entropy of the best, no smoothing."""
    source = WholeNumbers(seed)
    drawn = [(10 + draw_whole(source, 3000), each) for each in (0.1, 0.3, 0.05)]
    for vocab_size, smoothing in [(4, 0.2), *drawn, (2, 0.9), (7, 0.0)]:
        on = f"vocab_size {vocab_size}, smoothing {smoothing:g}"
        case = Case(
            on,
            (vocab_size, smoothing),
            unless_finite=None if smoothing else UNSMOOTHED,
        )
        named = errors_named(("math domain", *UNSMOOTHED), ("positive", *UNSMOOTHED))
        with contextlib.nullcontext() if smoothing else named:
            floor.judge(student, case)
