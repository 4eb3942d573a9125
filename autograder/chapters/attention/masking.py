"""Masked softmax: forbidden keys get nothing, the allowed ones share the rest."""

import functools
import itertools
import math
from collections.abc import Callable, Iterator

import torch

from autograder import expect
from autograder.chapters.attention.chapter import chapter
from autograder.chapters.attention.oracles import weights_of
from autograder.chapters.attention.weights import (
    AXES,
    ONE_BY_ONE,
    WRONG_AXIS,
    has_axis,
    plain,
    softmax,
    stable,
)
from autograder.exercise.inputs import draw_mask, draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction

masked = Function("masked-softmax", "masked_softmax", weights_of)

# --- what goes wrong ------------------------------------------------------------------


def has_mask(scores: torch.Tensor, mask: torch.Tensor | None = None) -> bool:
    """Whether there is a mask to go wrong with."""
    return mask is not None


NO_MASK = (
    "mask=None is not handled",
    "The mask is optional. Without one, every key may be attended to.",
)
masked.mistake(*NO_MASK)(
    lambda scores, mask=None: weights_of(scores.masked_fill(~mask, -math.inf))
)
masked.accident("None", *NO_MASK)

INVERTED = (
    "mask inverted",
    "The allowed keys got no weight, the forbidden ones got it all. True means 'may "
    "attend': −∞ goes where the mask is False.",
)
masked.mistake(*INVERTED, when=has_mask)(lambda scores, mask: weights_of(scores, ~mask))
IGNORED = (
    "mask ignored",
    "These are the weights without any mask. Is `mask` used on the way?",
)
masked.mistake(*IGNORED, when=has_mask)(lambda scores, mask: weights_of(scores))
NEVER_MULTIPLY = (
    "mask multiplied into the scores",
    "A product with the mask cannot hide a score: 0 is an ordinary score, exp(0) = 1, "
    "so the hidden key keeps some weight. With a mask of 0 and −∞, 0 times an allowed "
    "score is 0, −∞ times a negative score is +∞, and times zero it is NaN. Where the "
    "mask is False, put −∞ in place of the score.",
)
masked.mistake(*NEVER_MULTIPLY, when=has_mask)(
    lambda scores, mask: torch.softmax(scores * mask, -1)
)
masked.mistake(*NEVER_MULTIPLY, when=has_mask)(
    lambda scores, mask: torch.softmax(scores * torch.where(mask, 0.0, -math.inf), -1)
)
masked.mistake(
    "a score of 0 is taken for a hidden one",
    "A score of 0 is an ordinary score: query and key are at right angles. Ask the "
    "mask which keys are hidden, not the scores.",
    when=has_mask,
)(lambda scores, mask: weights_of(scores, scores * mask != 0))
masked.mistake(
    "mask added as 0 and 1",
    "Adding True adds 1 to an allowed score: a nudge, not a prohibition. What is "
    "forbidden has to become −∞.",
    when=has_mask,
)(lambda scores, mask: torch.softmax(scores + mask.to(scores.dtype), -1))
masked.mistake(
    "0 times −∞",
    "Every row is NaN. A mask times −∞ is −∞ where it is 1, but NaN where it is 0, and "
    "one NaN spoils its row. Choose in place of multiplying: masked_fill or "
    "torch.where puts −∞ where the mask is False.",
    when=has_mask,
)(lambda scores, mask: torch.softmax(scores + ~mask * -math.inf, -1))
masked.mistake(
    "weights zeroed after the softmax without renormalising",
    "The rows no longer sum to 1. Hide the scores before the softmax: then the allowed "
    "keys share the whole weight.",
    when=has_mask,
)(lambda scores, mask: torch.softmax(scores, -1) * mask)
masked.mistake(
    "−∞ put in after the softmax",
    "−∞ is a score, not a weight. Put it in before the softmax, which turns it into a "
    "weight of exactly 0.",
    when=has_mask,
)(lambda scores, mask: torch.softmax(scores, -1).masked_fill(~mask, -math.inf))


def along(axis: int, soften: Callable, scores, mask=None) -> torch.Tensor:
    """Take the softmax of the masked scores along an axis."""
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return soften(scores, axis)


for axis, soften in itertools.product(AXES, (stable, plain)):
    masked.mistake(*WRONG_AXIS, when=functools.partial(has_axis, axis))(
        functools.partial(along, axis, soften)
    )


def _renormalised(scores, mask, least: float):
    kept = torch.softmax(scores, -1) * mask
    return kept / kept.sum(-1, keepdim=True).clamp(min=least)


for least in (1e-30, 0.0):
    masked.mistake(
        "renormalised after the softmax",
        "Hiding keys after the softmax and dividing by the new sum is right on paper. "
        "But where a hidden key has by far the largest score, the softmax over all "
        "keys gives the allowed ones weights that are 0 in floating point, and no "
        "division brings them back. Hide the scores before the softmax.",
        when=has_mask,
    )(functools.partial(_renormalised, least=least))

NOTHING = (
    "This query may attend to nothing (padding, for example). 'Nothing' means weights "
    "of 0, so that nothing is mixed in."
)
for how in (
    *(
        lambda scores, mask, number=number: scores.masked_fill(~mask, number)
        for number in (-10.0, -20.0, -50.0, -100.0, -1e3, -1e4, -1e9)
    ),
    *(
        lambda scores, mask, below=below: torch.where(
            mask, scores, scores.amin() - below
        )
        for below in (1.0, 10.0, 100.0, 1e9)
    ),
    lambda scores, mask: scores - 1e4 * ~mask,
):
    masked.mistake(
        "a large negative number in place of −∞",
        f"{NOTHING} With −1e9 or the like in every place, the row is a row of equal "
        "scores, and the softmax shares the weight out among keys that are all "
        "forbidden. And in other rows a hidden key keeps some weight, unless the "
        "number is far below every score.",
        when=has_mask,
    )(lambda scores, mask, how=how: torch.softmax(how(scores, mask), -1))
EMPTY = (
    "NaN on fully masked rows",
    f"{NOTHING} A softmax over only −∞ computes 0/0.",
)
masked.mistake(*EMPTY, when=has_mask)(
    lambda scores, mask: torch.softmax(scores.masked_fill(~mask, -math.inf), -1)
)
EMPTY_GRADIENT = (
    "NaN gradient on fully masked rows",
    "The weights are right, the backward pass is not: it runs through a 0/0 or ∞-∞ "
    "that was only replaced afterwards, and NaN times 0 stays NaN. One such row would "
    "spoil all parameters in one step. Replace the scores before the softmax "
    "(masked_fill or torch.where) and keep the division from being 0/0.\n"
    "If your softmax makes a NaN and replaces it in the end, with "
    "nan_to_num for example, that is the place to mend.",
)


@masked.mistake(*EMPTY_GRADIENT, when=has_mask)
def _(scores, mask):
    hidden = scores + torch.where(mask, 0.0, -math.inf)
    return torch.softmax(hidden, -1).nan_to_num(0.0)


# --- the check ------------------------------------------------------------------------


def masked_scores(seed: int) -> Iterator[Case]:
    """Make scores of both signs and zero with masks that broadcast; huge; no mask."""
    generator = seeded(seed)
    hand = torch.tensor([[1.0, -2.0, 0.0], [0.0, 3.0, -1.0]])
    yield shown(hand, torch.tensor([[True, True, False], [True, False, True]]))
    batch, heads, t_q, t_k = draw_sizes(generator, 4)
    for shape, mask_shape in (
        ((batch, t_q, t_k), (t_q, t_k)),
        ((batch, t_q, t_k), (batch, 1, t_k)),
        ((batch, heads, t_q, t_k), (batch, 1, t_q, t_k)),
    ):
        scores = 2 * normal(generator, *shape)
        scores[..., 0, :] = 0.0  # a query to which all keys are alike
        mask = draw_mask(generator, *mask_shape)
        yield Case(f"scores {shape}, mask {mask_shape}", (scores, mask))
    scores = torch.tensor([[10_000.0, -10_000.0, 9_999.0], [0.0, -10_000.0, 2.0]])
    mask = torch.tensor([[True, True, True], [False, True, False]])
    yield shown(scores, mask, tolerance=ONE_BY_ONE)  # as in softmax
    yield Case("mask=None", (normal(generator, batch, t_q, t_k),))


def shown(scores: torch.Tensor, mask: torch.Tensor, **options: object) -> Case:
    """Make a case whose message shows all of its numbers."""
    on = f"scores {scores.tolist()}\nmask   {mask.tolist()}"
    return Case(on, (scores, mask), **options)


def expect_masked_softmax(student: StudentFunction, seed: int) -> None:
    """Expect masked weights, with zeros and no NaN where nothing is allowed."""
    masked.judge_all(student, masked_scores(seed))
    generator = seeded(seed + 1)
    scores = (4 * normal(generator, 2, 3)).round() / 4
    mask = torch.tensor([[False, False, False], [True, False, True]])
    masked.judge(student, shown(scores, mask, unless_finite=EMPTY))
    case = shown(scores, mask, unless_finite=EMPTY_GRADIENT)
    masked.judge_gradient(student, case, normal(generator, 2, 3))


@chapter.check(section="attention-masks")
def masked_softmax(
    student: StudentFunction, softmax_student: StudentFunction, seed: int = 0
) -> None:
    """Scores of both signs and zero, masks that broadcast, rows without any key."""
    with expect.relying_on(softmax, softmax_student):
        expect_masked_softmax(student, seed)


@chapter.check(section="attention-masks")
def alone(student: StudentFunction, seed: int = 0) -> None:
    """Check masked softmax without asking what it relies on."""
    expect_masked_softmax(student, seed)
