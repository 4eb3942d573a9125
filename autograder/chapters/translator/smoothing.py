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


def summed(
    size: int,
    smoothing: float,
    *,
    right: Callable = lambda size, e: 1 - e + e / size,
    other: Callable = lambda size, e, right: e / size,
    weigh: Callable = lambda size, e, right, other: (right, other),
    count: Callable = lambda size: size - 1,
    log: Callable = math.log,
    form: Callable = lambda entropy, size, e, log: entropy,
    zero: Callable = lambda size: 0.0,
) -> float:
    """Add up the entropy with slips, which may be several.

    Args:
        size: of the vocabulary.
        smoothing: the share that is spread.
        right: the chance of the right class.
        other: the chance of each other class; it is told that of the right one, too.
        weigh: the factors of the two logarithms.
        count: how many other classes there are.
        log: the logarithm.
        form: what is made of the sum.
        zero: what comes out without smoothing.
    """
    if not smoothing:
        return zero(size)
    first = right(size, smoothing)
    each = other(size, smoothing, first)
    factor, factors = weigh(size, smoothing, first, each)
    total = factor * log(first) + count(size) * factors * log(each)
    return form(-total, size, smoothing, log)


FULL = "the right class keeps its full share"
EXCHANGED = (
    "the two shares are exchanged",
    "1 - ε belongs to the right class, and ε is spread over all of them.",
)
ONLY_RIGHT = "only the right class counted"
SHARE = (
    "the right class without its share",
    "ε is spread over all V classes, the right one included: 1 - ε + ε/V. The chances "
    "sum to 1.",
)
SUM = (
    "the sum over the classes in place of their mean",
    "The even part is the mean over the V classes: each of them has the weight ε/V.",
)
EVEN = (
    "the loss of an even guess",
    "This is one of two parts. Write down the probabilities of all V classes, then "
    "their entropy.",
)
TINY = (
    "a small number added in the logarithm",
    "It changes small chances, and ε/V is one. Only without smoothing is there a "
    "logarithm of 0: treat that first.",
)
LEAST = (
    "a least chance for every class",
    "Without smoothing the other classes have no chance at all, and the floor is 0. "
    "Held above a small number, V − 1 of them add up: treat 0 by itself.",
)
floor.slips(
    summed,
    (
        "spread over the wrong classes only",
        "PyTorch and the paper spread it over all V classes, so the right one gets its "
        "share, too: 1 - ε + ε/V.",
        {
            "right": lambda size, e: 1 - e,
            "other": lambda size, e, right: e / (size - 1),
        },
    ),
    (*SHARE, {"right": lambda size, e: 1 - e}),
    (*SHARE, {"weigh": lambda size, e, right, other: (1 - e, other)}),
    (
        "the right class loses too little",
        "All of ε is taken from the right class, and it gets back ε/V: 1 - ε + ε/V.",
        {"right": lambda size, e: 1 - e / size},
    ),
    (
        FULL,
        "What goes to all classes is taken from the right one: 1 - ε + ε/V.",
        {"right": lambda size, e: 1 + e / size},
    ),
    (
        FULL,
        "The loss of the right class has the weight 1 - ε, the mean over all ε.",
        {"weigh": lambda size, e, right, other: (1 + other, other)},
    ),
    (
        "the other classes share more than is left",
        "Each other class has ε/V. With ε/(V - 1) the chances of all classes add up to "
        "more than 1, since the right one keeps its ε/V.",
        {"other": lambda size, e, right: e / (size - 1)},
    ),
    (
        "all of the smoothing for each class",
        "ε is shared by the V classes: each other class has ε/V.",
        {"other": lambda size, e, right: e},
    ),
    (
        "the wrong classes counted as one",
        "What is not the right class is V - 1 classes of ε/V each, and each has a term "
        "of its own in the sum.",
        {"other": lambda size, e, right: 1 - right, "count": lambda size: 1},
    ),
    (
        "the mean over the wrong classes alone",
        "The share ε belongs to the mean over all V classes, and the right one is one "
        "of them.",
        {"weigh": lambda size, e, right, other: (1 - e, e / (size - 1))},
    ),
    (*SUM, {"weigh": lambda size, e, right, other: (1, e)}),
    (*SUM, {"weigh": lambda size, e, right, other: (1 - e, e)}),
    (
        *EXCHANGED,
        {
            "right": lambda size, e: e + (1 - e) / size,
            "other": lambda size, e, right: (1 - e) / size,
        },
    ),
    (*EXCHANGED, {"weigh": lambda size, e, *_: (e + (1 - e) / size, (1 - e) / size)}),
    (
        "the logarithms are not weighted",
        "In an entropy each logarithm is multiplied by its own probability.",
        {"weigh": lambda size, e, right, other: (1, 1)},
    ),
    (
        "all V classes counted as wrong ones",
        "V - 1 classes are not the right one.",
        {"count": lambda size: size},
    ),
    (
        "V - 2 classes counted as wrong ones",
        "Only one class is the right one; V - 1 are not.",
        {"count": lambda size: size - 2},
    ),
    (
        ONLY_RIGHT,
        "That is the loss without smoothing of this prediction. The smoothed loss asks "
        "for the other classes, too.",
        {"weigh": lambda size, e, right, other: (1, 0)},
    ),
    (
        ONLY_RIGHT,
        "An entropy is a sum over all classes; those that are not right add the most.",
        {"count": lambda size: 0},
    ),
    (
        "only the wrong classes counted",
        "An entropy is a sum over all classes, the right one included.",
        {"weigh": lambda size, e, right, other: (0, other)},
    ),
    (
        "one wrong class in place of V - 1",
        "V - 1 classes have the probability ε/V; multiply by their number.",
        {"count": lambda size: 1},
    ),
    *(
        (
            f"base {base} in place of e",
            f"The cross-entropy of PyTorch is in nats: math.log, not math.log{base}.",
            {"log": log},
        )
        for base, log in ((2, math.log2), (10, math.log10))
    ),
    *(
        (*TINY, {"log": lambda x, tiny=10.0**-power: math.log(x + tiny)})
        for power in range(5, 9)
    ),
    (
        "sign not changed",
        "Logarithms of probabilities are negative, and a loss is not.",
        {"form": lambda entropy, *_: -entropy},
    ),
    (
        "divided by the number of classes",
        "An entropy is a sum over the classes; their probabilities are the weights.",
        {"form": lambda entropy, size, e, log: entropy / size},
    ),
    (*EVEN, {"form": lambda entropy, size, e, log: e * log(size)}),
    *(
        (name, why, {"form": form, **end})
        for name, why, form, zero in (
            (
                "the perplexity in place of the loss",
                "Perplexity is exp of the cross-entropy. Return the cross-entropy "
                "itself.",
                lambda entropy, *_: math.exp(entropy),
                lambda size: 1.0,
            ),
            (*EVEN, lambda entropy, size, e, log: log(size), math.log),
            (
                "the distance from an even guess",
                "ln V minus the entropy says how far the target is from an even guess. "
                "Return the entropy itself.",
                lambda entropy, size, e, log: log(size) - entropy,
                math.log,
            ),
        )
        for end in ({}, {"zero": zero})  # with smoothing 0 treated first, and not
    ),
    (
        "the divergence in place of the cross-entropy",
        "The cross-entropy is the divergence plus the entropy of the target. The best "
        "prediction makes the divergence 0, and the entropy is what stays.",
        {"form": lambda *_: 0.0},
    ),
    (
        "the smoothing itself",
        "The floor is the entropy of the smoothed target; ε is a part of it.",
        {"form": lambda entropy, size, e, log: e},
    ),
    *(
        (
            *LEAST,
            {"zero": lambda size, x=10.0**-power: -(size - 1) * x * math.log(x)},
        )
        for power in range(5, 11)
    ),
    *(
        (
            "the result is rounded",
            "Whoever shows the number may round it. Return all of its digits.",
            {"form": lambda entropy, *_, digits=digits: round(entropy, digits)},
        )
        for digits in (1, 2, 3, 4)
    ),
    (*UNSMOOTHED, {"zero": lambda size: -math.log(0)}),
    (*UNSMOOTHED, {"zero": lambda size: math.nan}),
)


# --- the check ------------------------------------------------------------------------


@chapter.check(section="translator-curves")
def smoothing_floor(student: StudentFunction, seed: int = 0) -> None:
    """By hand, the smoothed cross-entropy of the best, no smoothing."""
    source = WholeNumbers(seed)
    drawn = [(10 + draw_whole(source, 3000), each) for each in (0.1, 0.3, 0.05)]
    without = [(7, 0.0), (30_000, 0.0)]
    for vocab_size, smoothing in [(4, 0.2), *drawn, (2, 0.9), *without]:
        on = f"vocab_size {vocab_size}, smoothing {smoothing:g}"
        case = Case(
            on,
            (vocab_size, smoothing),
            unless_finite=None if smoothing else UNSMOOTHED,
            why="" if smoothing else UNSMOOTHED[1],
        )
        named = errors_named(("math domain", *UNSMOOTHED), ("positive", *UNSMOOTHED))
        with contextlib.nullcontext() if smoothing else named:
            floor.judge(student, case)
