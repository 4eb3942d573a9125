"""The learning rate that warms up."""

import itertools
import math
from collections.abc import Callable

from autograder import expect
from autograder.chapters.decoder.chapter import chapter
from autograder.exercise.inputs import WholeNumbers, draw_several
from autograder.exercise.spec import Case, Function, errors_named
from autograder.interface import StudentFunction

# --- the learning rate: what goes wrong -----------------------------------------------


def _right(step: int, d: int, warmup: int = 4000) -> float:
    if step <= warmup:
        return step / warmup / math.sqrt(d * warmup)
    return 1 / math.sqrt(d * step)


def curves(
    step: int,
    d: int,
    warmup: int = 4000,
    *,
    factor: Callable[[int], float] = lambda d: d**-0.5,
    falls: Callable[[int, int], float] = lambda s, w: s**-0.5,
    rises: Callable[[int, int], float] = lambda s, w: s * w**-1.5,
    choose: Callable[[float, float], float] = min,
    scaled: tuple[bool, bool] = (True, True),
    later: int = 0,
    longest: int | None = None,
    again: Callable[[float], float] = lambda share: 1.0,
) -> float:
    """Compute the rate with slips, which may be several.

    Args:
        step: as in the exercise.
        d: the width.
        warmup: as in the exercise.
        factor: of the curves, from the width.
        falls: the one curve, of step and warm-up.
        rises: the other.
        choose: one of the two.
        scaled: which of them get the factor.
        later: is added to the step.
        longest: a warm-up in place of the one that is given.
        again: a factor from the share of the warm-up.
    """
    s, w = step + later, longest or warmup
    factors = (factor(d) if on else 1 for on in scaled)
    return again(s / w) * choose(
        falls(s, w) * next(factors), rises(s, w) * next(factors)
    )


rates = Function("noam-rate", "noam_rate", _right)
POWER = "another power of d_model", "The exponent of d_model is −1/2."
ONE_CURVE = (
    "the factor only for one of the curves",
    "Both curves are compared first; the factor d_model^(−1/2) is for the smaller.",
)
ANEW = "the step is counted anew", "The step is used as it is given, from 1."
WARMUP = (
    "another power of warmup",
    "The exponent of w, the warm-up, is −3/2. Only so both curves meet at step w: "
    "w · w^(−3/2) = w^(−1/2).",
)
LINE = (
    "the rising curve is no straight line",
    "While the model warms up the rate grows with the step itself, s · w^(−3/2): the "
    "power belongs to w alone.",
)
SMALLER = (
    "The minimum of two curves: while it warms up, the line; afterwards, the root."
)
TWICE = "warmed up twice", "The rising line is the warm-up already."
BRACKETS = (
    "brackets are missing around the exponent",
    "Powers come before quotients: d ** -1/2 is (1/d)/2. As an exponent −1/2 needs "
    "brackets, or is written −0.5, and so with the two other powers.",
)
HALVES: dict[str, Callable] = {
    "factor": lambda d: d**-1 / 2,
    "falls": lambda s, w: s**-1 / 2,
    "rises": lambda s, w: s * w**-3 / 2,
}
rates.slips(
    curves,
    (
        "min and max exchanged",
        "The smaller of the two: while the model warms up the rising line is below the "
        "falling curve. With the larger the rate starts at d^(−1/2) and later grows "
        "without end.",
        {"choose": max},
    ),
    (
        "d_model is left out",
        "The whole is multiplied by d_model^(−1/2): wide models take smaller steps.",
        {"factor": lambda d: 1},
    ),
    *((*POWER, {"factor": lambda d, p=p: d**p}) for p in (0.5, -1, -1.5, 1)),
    *(
        (*WARMUP, {"rises": lambda s, w, p=p: s * w**p})
        for p in (-0.5, -1, -2, -2 / 3, -1 / 3)
    ),
    *(
        (*LINE, {"rises": rises})
        for rises in (
            lambda s, w: (s * w) ** -1.5,
            lambda s, w: (s / w) ** 1.5,
            lambda s, w: s**0.5 / w,
            lambda s, w: w**-1.5,
            lambda s, w: s**-0.5 * w**-1.5,
        )
    ),
    ("no warm-up", SMALLER, {"choose": lambda falling, rising: falling}),
    ("the rate never falls", SMALLER, {"choose": lambda falling, rising: rising}),
    ("the two curves are added", SMALLER, {"choose": lambda *both: sum(both)}),
    (*ONE_CURVE, {"scaled": (True, False)}),
    (*ONE_CURVE, {"scaled": (False, True)}),
    (*ANEW, {"later": 1}),
    (*ANEW, {"later": -1}),
    (
        "falls with the step itself",
        "After the warm-up the rate falls with the root of the step, step^(−1/2).",
        {"falls": lambda s, w: 1 / s},
    ),
    (
        "falls with the step itself",
        "Both curves meet at the warm-up, as they should. From there on the rate falls "
        "with the root of the step, step^(−1/2): with the step itself it is soon too "
        "small to learn.",
        {"falls": lambda s, w: w**0.5 / s},
    ),
    ("constant after the warm-up", SMALLER, {"falls": lambda s, w: w**-0.5}),
    (
        "the two exponents are exchanged",
        "The step of the falling curve has the exponent −1/2, the warm-up of the "
        "rising one −3/2.",
        {"falls": lambda s, w: s**-1.5, "rises": lambda s, w: s * w**-0.5},
    ),
    (*TWICE, {"again": lambda share: share}),
    (*TWICE, {"again": lambda share: min(1.0, share)}),
    (
        "warmup is always 4000",
        "The third argument says how long the warm-up lasts: use it.",
        {"longest": 4000},
    ),
    *(
        (*BRACKETS, {part: HALVES[part] for part in parts})
        for count in (1, 2, 3)
        for parts in itertools.combinations(HALVES, count)
    ),
    when=lambda s, *_: s >= 1,
)
UNREFUSED = (
    "step 0 is not refused",
    "Steps are counted from 1; at step 0 the formula divides by zero. Say so: raise "
    "ValueError(...) before computing.",
)
rates.mistake(*UNREFUSED, when=lambda s, *_: s < 1)(
    lambda s, d, w=4000: _right(max(s, 1), d, w)
)
FIRST = (
    "step 1 is refused",
    "Steps are counted from 1, so step 1 is the first: refuse what is below 1.",
)


@rates.mistake(*FIRST, when=lambda s, *_: s == 1)
def _(step, d, warmup=4000):
    raise ValueError(f"step {step} is refused")


# --- the check ------------------------------------------------------------------------


@chapter.check(section="decoder-schedule")
def noam_rate(student: StudentFunction, seed: int = 0) -> None:
    """By hand, the peak, both branches, step 0 refused."""
    source = WholeNumbers(seed)
    say = {"tolerance": 1e-9, "what": "the learning rate"}
    for factor in (9.0, 1.5, 0.7, 0.0):
        d, warmup = draw_several(source, 50, 900, 2)
        step = round(factor * warmup) or 2
        on = f"step {step}, d_model {d}, warmup {warmup}"
        rates.judge(student, Case(on, (step, d, warmup), **say))
    for inputs, right in (
        ((1, 4, 4), 0.0625),
        ((4, 4, 4), 0.25),
        ((16, 4, 4), 0.125),
        ((4000, 512), (512 * 4000) ** -0.5),
    ):
        step, d, *warmup = inputs
        on = f"step {step}, d_model {d}, warmup {[*warmup, '4000 by default'][0]}"
        with errors_named(*[("ValueError", *FIRST)] * (step == 1)):
            rates.judge(student, Case(on, inputs, right, **say))
    name, why = UNREFUSED
    for step in (0, -3):
        expect.raises(
            "ValueError",
            lambda step=step: student(step, 512, 4000),
            on=f"step {step}",
            why=why,
            mistake=name,
        )
