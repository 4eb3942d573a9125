"""Softmax: scores become weights."""

import math
from collections.abc import Callable, Iterator
from functools import partial

import torch

from autograder import expect, forbidden
from autograder.chapters.attention.chapter import chapter
from autograder.chapters.attention.oracles import weights_of
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import CUT_OFF, Case, Function, foreseen
from autograder.expect import refuse, show
from autograder.interface import Data, StudentFunction

weights = Function("softmax", "softmax", weights_of)

ONE_BY_ONE = 1e-3  # tolerance at scores of 10,000, where a logarithm is rounded

# --- what goes wrong ------------------------------------------------------------------


def has_axis(axis: int, scores: torch.Tensor, *_: Data) -> bool:
    """Whether the scores have this axis, and others."""
    return scores.dim() > 1 and -scores.dim() <= axis < scores.dim()


def _same(x: torch.Tensor) -> torch.Tensor:
    return x


def _largest(scores: torch.Tensor, axis: int) -> torch.Tensor:
    top = scores.amax(axis, keepdim=True)
    return torch.where(top.isinf(), 0.0, top)


def _nothing(scores: torch.Tensor, axis: int) -> float:
    return 0.0


def _of_all(scores: torch.Tensor, axis: int) -> torch.Tensor:
    return scores.max()


def _raw(powers: torch.Tensor, axis: int) -> torch.Tensor:
    return powers.sum(axis, keepdim=True)


def _sum(powers: torch.Tensor, axis: int) -> torch.Tensor:
    total = _raw(powers, axis)
    return torch.where(total == 0, 1.0, total)


def softened(
    scores: torch.Tensor,
    *,
    taken: Callable = _same,
    axis: int = -1,
    top: Callable = _largest,
    power: Callable = torch.exp,
    divisor: Callable = _sum,
    empty: Callable = torch.all,
    instead: Callable[[int], float] = lambda n: 0.0,
    given: Callable = _same,
) -> torch.Tensor:
    """Compute the weights by rules that can be varied, without PyTorch's own.

    Args:
        scores: (…, n).
        taken: what is made of the scores first.
        axis: along which it runs.
        top: what is subtracted, of scores and axis.
        power: what is made of the differences.
        divisor: of the powers, of them and the axis.
        empty: which rows have nothing to attend to, of where -inf is.
        instead: the weights in such a row, of its length.
        given: what is made of the weights in the end.
    """
    scores = taken(scores)
    powers = power(scores - top(scores, axis))
    found = powers / divisor(powers, axis)
    lost = empty(scores.isneginf(), dim=axis, keepdim=True)
    return given(torch.where(lost, instead(scores.shape[axis]), found))


AXES = (0, 1, 2, -2, -3)  # that may be taken for the last
WRONG_AXIS = (
    "softmax over the wrong axis",
    "The weights sum to 1 along another axis. Each row, along the last axis, belongs "
    "to one query and shares out that query's attention: pass dim=-1 wherever you take "
    "a sum or a maximum.",
)
for axis in AXES:
    shows = partial(has_axis, axis)
    for rules in (
        {"axis": axis},
        {"axis": axis, "instead": lambda n: math.nan},
        {"divisor": lambda p, _, axis=axis: _sum(p, axis)},
    ):
        weights.mistake(*WRONG_AXIS, when=shows)(partial(softened, **rules))
    weights.mistake(
        "the maximum over the wrong axis",
        "All scores of a row have to be lowered by the same number, or the weights "
        "change. Take the largest score of each row: dim=-1.",
        when=shows,
    )(partial(softened, top=lambda scores, _, axis=axis: _largest(scores, axis)))

UNSTABLE = (
    "not stable for large scores",
    "exp(10000) is infinite in floating point, and ∞/∞ is NaN; exp(-10000) is 0, and "
    "0/0 is NaN. Subtract the row's largest score from the whole row before exp: the "
    "weights stay the same and the largest exponent is 0.",
)
ONE_MAXIMUM = (
    "one maximum for all rows",
    "The maximum of the whole tensor was subtracted, so every exponential of a row far "
    "below it is 0. Take the maximum of each row (dim=-1, keepdim=True).",
)
WHOLE = (
    "one softmax over the whole tensor",
    "All weights together sum to 1, so the rows take from each other. Give the sum "
    "dim=-1 and keepdim=True: every row sums to 1 by itself.",
)
LINEAR = (
    "no exponential",
    "The scores themselves are divided by their sum. A negative score would get a "
    "negative weight; exp makes every entry positive first.",
)
MINUS = (
    "minus sign in the exponent",
    "The smallest score got the largest weight. Subtract the maximum from the scores, "
    "not the scores from the maximum.",
)
CUT = (
    "large scores are cut off",
    "Scores that differ by 1 got the same weight. Cutting scores off at some limit "
    "loses their differences; subtracting the row's largest score keeps them.",
)
EMPTY = (
    "NaN for a row of only −∞",
    "A row of only -inf has nothing to attend to, and its weights must be 0. Its "
    "maximum is -inf, and -inf - (-inf) is NaN; its sum is 0, and 0/0 is NaN: replace "
    "both before they are used.",
)
ADDED = (
    "a number is added to the sum",
    "What is added to the sum makes every weight too small. Where the sum is 0, put 1 "
    "in its place; leave the others as they are.",
)
weights.slips(
    softened,
    (*WHOLE, {"divisor": lambda powers, axis: powers.sum()}),
    (*WHOLE, {"divisor": lambda powers, axis: powers.sum(), "top": _of_all}),
    (*LINEAR, {"power": _same}),
    (*LINEAR, {"power": _same, "top": _nothing}),
    (*LINEAR, {"power": _same, "divisor": _raw}),
    (*LINEAR, {"power": _same, "divisor": _raw, "top": _nothing}),
    (*MINUS, {"taken": torch.neg}),
    (*MINUS, {"taken": torch.neg, "top": lambda s, axis: s.amax(axis, keepdim=True)}),
    (
        "the sigmoid in place of softmax",
        "Each score is squashed on its own, so the weights of a row do not compete and "
        "do not sum to 1.",
        {"power": torch.sigmoid, "top": _nothing, "divisor": lambda *_: 1.0},
    ),
    (
        "the sigmoid in place of the exponential",
        "The sigmoid of a large score is hardly more than that of a small one. Softmax "
        "divides exponentials by their sum.",
        {"power": torch.sigmoid, "top": _nothing},
    ),
    (*CUT, {"taken": lambda scores: scores.clamp(-50, 50)}),
    (*CUT, {"taken": lambda scores: scores.clamp(max=50)}),
    (
        "−∞ is taken for a score of 0",
        "-inf means 'never'. With 0 in its place it is an ordinary score, and exp(0) "
        "is 1. In a row of only -inf replace the maximum, not the scores.",
        {"taken": lambda scores: scores.masked_fill(scores.isneginf(), 0.0)},
    ),
    (*UNSTABLE, {"top": _nothing}),
    (*ONE_MAXIMUM, {"top": _of_all}),
    (
        "the largest absolute value in place of the largest score",
        "In a row of negative scores the largest absolute value belongs to the "
        "smallest score, with the wrong sign: the exponents reach -20000, and every "
        "exponential is 0. Take the maximum of the scores themselves, without abs.",
        {"top": lambda scores, axis: _largest(scores.abs(), axis)},
    ),
    (
        "the maximum is taken to be at least 0",
        "In a row of very negative scores nothing is then subtracted, and every "
        "exponential is 0. Replace the maximum only where it is -inf.",
        {"top": lambda scores, axis: _largest(scores, axis).clamp(min=0)},
    ),
    (
        "the exponentials are not divided by their sum",
        "The rows do not sum to 1. Divide each exponential by the sum of its row.",
        {"divisor": lambda powers, axis: 1.0},
    ),
    (
        "divided by the root of the sum of squares",
        "The squares of the weights sum to 1, not the weights. Divide by the sum of "
        "the exponentials, not by their Euclidean norm.",
        {"divisor": lambda powers, axis: _sum(powers.square(), axis).sqrt()},
    ),
    (
        "a mean in place of the sum",
        "The weights of a row sum to n. Divide by the sum of the row.",
        {"divisor": lambda p, axis: _sum(p, axis) / p.shape[axis]},
    ),
    (
        "the number of scores in place of the sum",
        "Divide each exponential by the sum of the exponentials of its row.",
        {"divisor": lambda powers, axis: powers.shape[axis]},
    ),
    *(
        (*ADDED, {"divisor": lambda p, axis, e=e: _raw(p, axis) + e})
        for e in (1.0, 0.1, 1e-2, 1e-3, 1e-4)
    ),
    (*EMPTY, {"instead": lambda n: math.nan}),
    (
        "equal weights for a row of only −∞",
        "-inf means 'never attend here', so a row of only -inf gets weights of 0, not "
        "1/3 each. Do not replace -inf by an ordinary number before the exponential.",
        {"instead": lambda n: 1 / n},
    ),
    (
        "a row with any −∞ is taken for an empty one",
        "Such a row still has scores that share the weight out. Only a row in which "
        "every score is -inf gets zeros: .all, not .any.",
        {"empty": torch.any},
    ),
    (
        "one row of only −∞ empties all rows",
        "Each row is empty or not by itself: .all(dim=-1, keepdim=True), and "
        "torch.where or masked_fill in place of `if`.",
        {"empty": lambda never, dim, keepdim: never.all(dim, keepdim).any()},
    ),
    (
        "the logarithm of the weights",
        "These are log-probabilities, useful in a loss; here the weights are wanted.",
        {"given": torch.log},
    ),
)

PRECISION = (
    "computed in another precision",
    "The weights keep the dtype of the scores: no .float() or dtype=... on the way. "
    "(In float64, scores are tested for small differences.)",
)
weights.mistake(*PRECISION)(lambda scores: softened(scores.float()))
weights.mistake("no gradient comes back", CUT_OFF)(
    lambda scores: softened(scores).detach()
)

# --- the check ------------------------------------------------------------------------


def rows(seed: int) -> Iterator[Case]:
    """Make scores by hand, at random, huge, and infinite."""
    generator = seeded(seed)
    a, b, c, n = draw_sizes(generator, 4)
    hand = torch.tensor([[0.0, math.log(2), math.log(5)], [0.0, 0.0, 0.0]])
    expected = torch.tensor([[0.125, 0.25, 0.625], [1 / 3, 1 / 3, 1 / 3]])
    yield Case("softmax([[0, ln 2, ln 5], [0, 0, 0]])", (hand,), expected)
    for shape in ((b, n), (a, b, n), (a, b, c, n), (n,), (b, 1)):
        scores = 2 * normal(generator, *shape)
        yield Case(f"random scores of shape {shape}", (scores,))
    double = normal(generator, b, n).double()
    yield Case(f"float64 scores of shape {(b, n)}", (double,))
    large = torch.tensor([[10_000.0, 9_999.0, -10_000.0]])
    small = torch.tensor([[-10_000.0, -10_001.0, -9_999.0]])
    for scores, accident in (
        (large, UNSTABLE),
        (small, UNSTABLE),
        (torch.cat([large, small]), ONE_MAXIMUM),
    ):
        on = f"softmax({scores.tolist()})"  # show would round them to equal ones
        yield Case(on, (scores,), tolerance=ONE_BY_ONE, unless_finite=accident)
    both = torch.tensor([[1.0, -10_000.0, 0.0]])  # -10000 is the largest without sign
    yield Case(f"softmax({both.tolist()})", (both,), unless_finite=UNSTABLE)
    partly = torch.tensor([[0.0, -math.inf, math.log(3)]])
    quarters = torch.tensor([[0.25, 0.0, 0.75]])
    yield Case("softmax([[0, -inf, ln 3]])", (partly,), quarters)
    empty = torch.tensor([[-math.inf] * 3, [0.0, 0.0, 0.0]])
    yield Case(f"softmax({show(empty)})", (empty,), unless_finite=EMPTY)


def expect_precision(got: Data, scores: torch.Tensor, on: str) -> None:
    """Expect the dtype of the scores."""
    expect.form(got, scores, on=on)
    if isinstance(got, torch.Tensor) and got.dtype != scores.dtype:
        say = {"got": f"{got.dtype}", "expected": f"{scores.dtype}"}
        refuse(*PRECISION, on=on, **say)


@chapter.check(section="attention-softmax", forbidden=(forbidden.SOFTMAX,))
def softmax(student: StudentFunction, seed: int = 0) -> None:
    """Values by hand and PyTorch's, large scores, rows of -inf, the gradient."""
    for case in foreseen(student, rows(seed)):
        got = student(*case.inputs)
        expect_precision(got, *case.inputs, case.on)
        weights.compare(got, case)
    generator = seeded(seed + 1)
    b, n = draw_sizes(generator, 2)
    case = Case(f"random scores of shape {(b, n)}", (normal(generator, b, n),))
    weights.judge_gradient(student, case, normal(generator, b, n))
