"""The learning rate that warms up."""

import math

from autograder import expect
from autograder.chapters.decoder.chapter import chapter
from autograder.exercise.inputs import WholeNumbers, draw_several
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction

# --- the learning rate: what goes wrong -----------------------------------------------


def _right(step: int, d: int, warmup: int = 4000) -> float:
    if step <= warmup:
        return step / warmup / math.sqrt(d * warmup)
    return 1 / math.sqrt(d * step)


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
SMALLER = (
    "The minimum of two curves: while it warms up, the line; afterwards, the root."
)
for name, why, answer in (
    (
        "min and max exchanged",
        "The smaller of the two: while the model warms up the rising line is below the "
        "falling curve. With the larger the rate starts at d^(−1/2) and later grows "
        "without end.",
        lambda s, d, w=4000: d**-0.5 * max(s**-0.5, s * w**-1.5),
    ),
    (
        "d_model is left out",
        "The whole is multiplied by d_model^(−1/2): wide models take smaller steps.",
        lambda s, d, w=4000: min(s**-0.5, s * w**-1.5),
    ),
    (*POWER, lambda s, d, w=4000: d**0.5 * min(s**-0.5, s * w**-1.5)),
    (*POWER, lambda s, d, w=4000: d**-1 * min(s**-0.5, s * w**-1.5)),
    (*POWER, lambda s, d, w=4000: d**-1.5 * min(s**-0.5, s * w**-1.5)),
    (*WARMUP, lambda s, d, w=4000: d**-0.5 * min(s**-0.5, s * w**-0.5)),
    (*WARMUP, lambda s, d, w=4000: d**-0.5 * min(s**-0.5, s / w)),
    (*WARMUP, lambda s, d, w=4000: d**-0.5 * min(s**-0.5, s * w**-2)),
    (*WARMUP, lambda s, d, w=4000: d**-0.5 * min(s**-0.5, s * w ** (-2 / 3))),
    ("no warm-up", SMALLER, lambda s, d, w=4000: d**-0.5 * s**-0.5),
    ("the rate never falls", SMALLER, lambda s, d, w=4000: d**-0.5 * s * w**-1.5),
    (*ONE_CURVE, lambda s, d, w=4000: min(d**-0.5 * s**-0.5, s * w**-1.5)),
    (*ONE_CURVE, lambda s, d, w=4000: min(s**-0.5, d**-0.5 * s * w**-1.5)),
    (*ANEW, lambda s, d, w=4000: _right(s + 1, d, w)),
    (*ANEW, lambda s, d, w=4000: _right(s - 1, d, w)),
    (
        "falls with the step itself",
        "After the warm-up the rate falls with the root of the step, step^(−1/2).",
        lambda s, d, w=4000: d**-0.5 * min(1 / s, s * w**-1.5),
    ),
    (
        "constant after the warm-up",
        SMALLER,
        lambda s, d, w=4000: d**-0.5 * min(w**-0.5, s * w**-1.5),
    ),
    (
        "warmed up twice",
        "The rising line is the warm-up already.",
        lambda s, d, w=4000: s / w * _right(s, d, w),
    ),
    (
        "warmup is always 4000",
        "The third argument says how long the warm-up lasts: use it.",
        lambda s, d, w=4000: _right(s, d),
    ),
):
    rates.mistake(name, why, when=lambda s, *_: s >= 1)(answer)
UNREFUSED = (
    "step 0 is not refused",
    "Steps are counted from 1; at step 0 the formula divides by zero. Say so: raise "
    "ValueError(...) before computing.",
)
rates.mistake(*UNREFUSED, when=lambda s, *_: s < 1)(
    lambda s, d, w=4000: _right(max(s, 1), d, w)
)

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
