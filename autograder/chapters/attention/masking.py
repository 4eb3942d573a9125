"""Masked softmax: forbidden keys get nothing, the allowed ones share the rest."""

import math
from collections.abc import Callable, Iterator
from functools import partial

import torch

from autograder import expect
from autograder.chapters.attention.chapter import chapter
from autograder.chapters.attention.oracles import weights_of
from autograder.chapters.attention.weights import (
    AXES,
    ONE_BY_ONE,
    WRONG_AXIS,
    has_axis,
    softmax,
)
from autograder.exercise.inputs import draw_mask, draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction

masked = Function("masked-softmax", "masked_softmax", weights_of)

# --- what goes wrong ------------------------------------------------------------------


def _with(hidden: torch.Tensor | float) -> Callable:
    """Put this in place of hidden scores."""
    return lambda scores, mask: torch.where(mask, scores, hidden)


_as_never = _with(-math.inf)


def _not_at_all(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return scores


def masked_by(
    scores: torch.Tensor,
    mask: torch.Tensor | None = None,
    *,
    default: Callable = lambda scores: None,
    seen: Callable = lambda mask: mask,
    hide: Callable = _as_never,
    soften: Callable = lambda scores, axis: weights_of(scores, axis=axis),
    axis: int = -1,
    after: Callable = lambda weights, mask: weights,
) -> torch.Tensor:
    """Compute masked weights by rules that can be varied.

    Args:
        scores: (…, T_q, T_k).
        mask: broadcasts to that.
        default: the mask that is taken where there is none, of the scores.
        seen: what is made of a mask first.
        hide: puts the mask into the scores.
        soften: the softmax, of scores and axis.
        axis: along which it runs.
        after: what is done to the weights, with the mask.
    """
    mask = default(scores) if mask is None else seen(mask)
    if mask is None:
        return soften(scores, axis)
    return after(soften(hide(scores, mask), axis), mask)


NO_MASK = (
    "mask=None is not handled",
    "The mask is optional. Without one, every key may be attended to.",
)
masked.mistake(*NO_MASK)(
    lambda scores, mask=None: weights_of(scores.masked_fill(~mask, -math.inf))
)
masked.accident("None", *NO_MASK)
for name, why, default in (
    (
        "mask=None is taken for a causal mask",
        "Without a mask every key may be attended to, the later ones as well.",
        lambda scores: torch.ones(scores.shape[-2:], dtype=torch.bool).tril(),
    ),
    (
        "mask=None hides every key",
        "Without a mask every key may be attended to: the weights are those of "
        "softmax.",
        lambda scores: torch.zeros(scores.shape[-2:], dtype=torch.bool),
    ),
):
    masked.mistake(name, why)(partial(masked_by, default=default))

INVERTED = (
    "mask inverted",
    "The allowed keys got no weight, the forbidden ones got it all. True means 'may "
    "attend': −∞ goes where the mask is False.",
)
IGNORED = (
    "mask ignored",
    "These are the weights without any mask. Is `mask` used on the way?",
)
ONE_MASK = (
    "the mask of one sequence for the whole batch",
    "Every sequence of the batch has its own mask. Leave the mask's axes as they are: "
    "it broadcasts.",
)
for name, why, seen in (
    (*INVERTED, torch.logical_not),
    (*IGNORED, torch.ones_like),
    (*ONE_MASK, lambda mask: mask[:1] if mask.dim() > 2 else mask),
    (*ONE_MASK, lambda mask: mask[-1:] if mask.dim() > 2 else mask),
    (
        "the mask of one query for all queries",
        "Every query, a row of the mask, may have keys of its own. Leave the mask's "
        "axes as they are.",
        lambda mask: mask[..., :1, :],
    ),
):
    masked.mistake(name, why)(partial(masked_by, seen=seen))

for axis in AXES:
    for rules in ({}, {"soften": torch.softmax}):
        masked.mistake(*WRONG_AXIS, when=partial(has_axis, axis))(
            partial(masked_by, axis=axis, **rules)
        )


def _renormalised(least: float) -> Callable:
    def after(weights, mask):
        kept = weights * mask
        return kept / kept.sum(-1, keepdim=True).clamp(min=least)

    return after


NEVER_MULTIPLY = (
    "a hidden score becomes 0, not −∞",
    "A product with the mask cannot hide a score: 0 is an ordinary score, exp(0) = 1, "
    "so the hidden key keeps some weight. With a mask of 0 and −∞, an allowed score "
    "becomes 0, a hidden negative one +∞, and a hidden zero NaN. Where the mask is "
    "False, put −∞ in place of the score.",
)
RENORMALISED = (
    "renormalised after the softmax",
    "Hiding keys after the softmax and dividing by the new sum is right on paper. But "
    "where a hidden key has by far the largest score, the softmax over all keys gives "
    "the allowed ones weights that are 0 in floating point, and no division brings "
    "them back. Hide the scores before the softmax.",
)
NOTHING = (
    "This query may attend to nothing (padding, for example). 'Nothing' means weights "
    "of 0, so that nothing is mixed in."
)
LARGE = (
    "a large negative number in place of −∞",
    f"{NOTHING} With −1e9 in every place the scores are equal, and the softmax shares "
    "the weight out among forbidden keys. In other rows a hidden key keeps some "
    "weight, unless the number is far below every score.",
)
EMPTY = (
    "NaN on fully masked rows",
    f"{NOTHING} A softmax over only −∞ computes 0/0.",
)
masked.slips(
    masked_by,
    (*NEVER_MULTIPLY, {"hide": _with(0.0)}),
    (
        *NEVER_MULTIPLY,
        {"hide": lambda s, mask: s * torch.where(mask, 0.0, -math.inf)},
    ),
    (
        "a score of 0 is taken for a hidden one",
        "A score of 0 is an ordinary score: query and key are at right angles. Ask the "
        "mask which keys are hidden, not the scores.",
        {"hide": lambda s, mask: torch.where(s * mask != 0, s, -math.inf)},
    ),
    (
        "mask added as 0 and 1",
        "Adding True adds 1 to an allowed score: a nudge, not a prohibition. What is "
        "forbidden has to become −∞.",
        {"hide": lambda s, mask: s + mask.to(s.dtype)},
    ),
    (
        "0 times −∞",
        "Every row is NaN. A mask times −∞ is −∞ where it is 1, but NaN where it is 0, "
        "and one NaN spoils its row. Choose in place of multiplying: masked_fill or "
        "torch.where puts −∞ where the mask is False.",
        {"hide": lambda s, mask: s + ~mask * -math.inf},
    ),
    (
        "weights zeroed after the softmax without renormalising",
        "The rows no longer sum to 1. Hide the scores before the softmax: then the "
        "allowed keys share the whole weight.",
        {"hide": _not_at_all, "after": torch.mul},
    ),
    (
        "−∞ put in after the softmax",
        "−∞ is a score, not a weight. Put it in before the softmax, which turns it "
        "into a weight of exactly 0.",
        {"hide": _not_at_all, "after": lambda w, mask: w.masked_fill(~mask, -math.inf)},
    ),
    *(
        (*RENORMALISED, {"hide": _not_at_all, "after": _renormalised(least)})
        for least in (1e-30, 0.0)
    ),
    *(
        (*LARGE, {"hide": _with(number)})
        for number in (-10.0, -100.0, -1e3, -1e4, -1e9)
    ),
    *(
        (
            *LARGE,
            {"hide": lambda s, mask, b=below, f=least: torch.where(mask, s, f(s) - b)},
        )
        for below in (0.0, 1.0, 10.0)
        for least in (torch.amin, lambda s: s.amin(-1, keepdim=True))
    ),
    *(
        (*LARGE, {"hide": lambda s, mask, number=number: s - number * ~mask})
        for number in (10.0, 100.0, 1e4, 1e9)
    ),
    (*EMPTY, {"soften": torch.softmax}),
    (
        "a row with any hidden key is taken for an empty one",
        "Such a row still has keys that share the weight out. Only a row in which no "
        "key is allowed gets zeros.",
        {"after": lambda w, mask: w * mask.all(-1, keepdim=True)},
    ),
)
EMPTY_GRADIENT = (
    "NaN gradient on fully masked rows",
    "The weights are right, the backward pass is not: it runs through a 0/0 or ∞-∞ "
    "that was only replaced afterwards, and NaN times 0 stays NaN. Replace the scores "
    "before the softmax (masked_fill or torch.where), keep the division from being "
    "0/0, and mend a softmax of yours that replaces NaN in the end (nan_to_num).",
)


masked.mistake(*EMPTY_GRADIENT)(
    partial(
        masked_by,
        hide=lambda scores, mask: scores + torch.where(mask, 0.0, -math.inf),
        soften=lambda scores, axis: torch.softmax(scores, axis).nan_to_num(0.0),
    )
)


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
    mask = torch.tensor([[[True, True, False]], [[False, True, True]]])
    yield Case("two sequences, two masks", (normal(generator, 2, 4, 3), mask))
    rows = [[10_000.0, -10_000.0, 9_999.0], [0.0, -10_000.0, 2.0], [10_000.0, 0.0, 2.0]]
    scores = torch.tensor(rows)
    mask = torch.tensor([[True] * 3, [False, True, False], [True, False, False]])
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
