"""Softmax: scores become weights."""

import functools
import itertools
import math
from collections.abc import Iterator

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


def stable(scores: torch.Tensor, axis: int = -1) -> torch.Tensor:
    """Compute the weights as a student may, who must not call PyTorch's."""
    largest = scores.amax(axis, keepdim=True)
    powers = torch.exp(scores - torch.where(largest.isinf(), 0.0, largest))
    total = powers.sum(axis, keepdim=True)
    return powers / torch.where(total == 0, 1.0, total)


def plain(scores: torch.Tensor, axis: int = -1) -> torch.Tensor:
    """Compute the weights as if no row were empty."""
    powers = torch.exp(scores - scores.amax(axis, keepdim=True))
    return powers / powers.sum(axis, keepdim=True)


AXES = (0, 1, 2, -2, -3)  # that may be taken for the last
WRONG_AXIS = (
    "softmax over the wrong axis",
    "The weights sum to 1 along another axis. Each row, along the last axis, belongs "
    "to one query and shares out that query's attention: pass dim=-1 wherever you take "
    "a sum or a maximum.",
)
for axis, soften in itertools.product(AXES, (stable, plain)):
    weights.mistake(*WRONG_AXIS, when=functools.partial(has_axis, axis))(
        functools.partial(soften, axis=axis)
    )


@weights.mistake(
    "one softmax over the whole tensor",
    "All weights together sum to 1, so the rows take from each other. Give the sum "
    "dim=-1 and keepdim=True: every row sums to 1 by itself.",
)
def _(scores):
    return plain(scores.flatten()).reshape(scores.shape)


@weights.mistake(
    "no exponential",
    "The scores themselves are divided by their sum. A negative score would get a "
    "negative weight; exp makes every entry positive first.",
)
def _(scores):
    return scores / scores.sum(-1, keepdim=True)


for powers in (lambda scores: torch.exp(scores - scores.amax(-1, True)), torch.exp):
    weights.mistake(
        "the exponentials are not divided by their sum",
        "The rows do not sum to 1. Divide each exponential by the sum of its row.",
    )(powers)
weights.mistake(
    "the logarithm of the weights",
    "These are log-probabilities, useful in a loss; here the weights are wanted.",
)(lambda scores: scores - scores.logsumexp(-1, True))
weights.mistake(
    "the sigmoid in place of softmax",
    "Each score is squashed on its own, so the weights of a row do not compete and do "
    "not sum to 1.",
)(torch.sigmoid)
weights.mistake(
    "minus sign in the exponent",
    "The smallest score got the largest weight. Subtract the maximum from the scores, "
    "not the scores from the maximum.",
)(lambda scores: plain(-scores))


def _divided(powers: torch.Tensor) -> torch.Tensor:
    return powers / powers.sum(-1, keepdim=True)


UNSTABLE = (
    "not stable for large scores",
    "exp(10000) is infinite in floating point, and ∞/∞ is NaN; exp(-10000) is 0, and "
    "0/0 is NaN. Subtract the row's largest score from the whole row before exp: the "
    "weights stay the same and the largest exponent is 0.",
)
weights.mistake(*UNSTABLE)(lambda scores: _divided(scores.exp()))
weights.mistake(*UNSTABLE)(
    lambda scores: _divided(torch.exp(scores - scores.mean(-1, keepdim=True)))
)
weights.mistake(
    "large scores are cut off",
    "Scores that differ by 1 got the same weight. Cutting scores off at some limit "
    "loses their differences; subtracting the row's largest score keeps them.",
)(lambda scores: plain(scores.clamp(-50, 50)))
ONE_MAXIMUM = (
    "one maximum for all rows",
    "The maximum of the whole tensor was subtracted, so every exponential of a row far "
    "below it is 0. Take the maximum of each row (dim=-1, keepdim=True).",
)


@weights.mistake(*ONE_MAXIMUM)
def _(scores):
    return _divided(torch.exp(scores - scores.max()))


@weights.mistake(*ONE_MAXIMUM)
def by_one_maximum(scores: torch.Tensor) -> torch.Tensor:
    """Subtract the maximum of the whole tensor; a row that is lost is zeros."""
    powers = torch.exp(scores - scores.max())
    total = powers.sum(-1, keepdim=True)
    return powers / total.masked_fill(total == 0, 1.0)


@weights.mistake(
    f"{ONE_MAXIMUM[0]}, and equal weights for a row of only −∞",
    f"{ONE_MAXIMUM[1]} And a row of only -inf gets zeros.",
)
def _(scores):
    empty = scores.isneginf().all(-1, keepdim=True)
    return torch.where(empty, 1 / scores.shape[-1], by_one_maximum(scores))


@weights.mistake(
    "the largest absolute value in place of the largest score",
    "In a row of negative scores the largest absolute value belongs to the smallest "
    "score, with the wrong sign: the exponents reach -20000, and every exponential is "
    "0. Take the maximum of the scores themselves, without abs.",
)
def _(scores):
    top = scores.abs().amax(-1, keepdim=True)
    powers = torch.exp(scores - torch.where(top.isinf(), 0.0, top))
    total = powers.sum(-1, keepdim=True)
    return powers / torch.where(total == 0, 1.0, total)


EMPTY = (
    "NaN for a row of only −∞",
    "A row of only -inf has nothing to attend to, and its weights must be 0. Its "
    "maximum is -inf, and -inf - (-inf) is NaN; its sum is 0, and 0/0 is NaN: replace "
    "both before they are used.",
)
weights.mistake(*EMPTY)(plain)
weights.mistake(
    "equal weights for a row of only −∞",
    "-inf means 'never attend here', so a row of only -inf gets weights of 0, not 1/3 "
    "each. Do not replace -inf by an ordinary number before the exponential.",
)(lambda scores: plain(scores.clamp(min=-1e9)))
PRECISION = (
    "computed in another precision",
    "The weights keep the dtype of the scores: no .float() or dtype=... on the way. "
    "(In float64, scores are tested for small differences.)",
)
weights.mistake(*PRECISION)(lambda scores: stable(scores.float()))
weights.mistake("no gradient comes back", CUT_OFF)(
    lambda scores: stable(scores).detach()
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
