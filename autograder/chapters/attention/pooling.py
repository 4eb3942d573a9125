"""Pooling by attention: a weighted mean, whose weights a trained query chooses."""

import math
from collections.abc import Callable
from functools import partial

import torch

from autograder import expect
from autograder.chapters.attention import masking
from autograder.chapters.attention.chapter import chapter
from autograder.chapters.attention.oracles import Pair, torch_attention, weights_of
from autograder.chapters.attention.pairs import judge_pair
from autograder.chapters.padding import (
    EMPTY,
    EMPTY_GRADIENT,
    GARBAGE,
    NO_MASK,
    padded,
)
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.parameters import State, expect_parameters, expect_spread
from autograder.exercise.spec import CUT_OFF, Case, Module, foreseen, squeezed
from autograder.interface import StudentFunction, StudentInstance, StudentModule


def torch_pooling(hidden, mask, query) -> Pair:
    """Pool by PyTorch's attention, with the query of every sequence."""
    asked = query.expand(len(hidden), 1, -1)
    pooled, weights = torch_attention(asked, hidden, hidden, mask)
    return pooled[:, 0], weights[:, 0]


pooling = Module("attention-pooling", "AttentionPooling", torch_pooling)
pooling.accident("None", *NO_MASK)

# --- what goes wrong ------------------------------------------------------------------


def scored(hidden, mask, query) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute scaled scores, and which positions are real: both (B, T)."""
    scores = hidden @ query / math.sqrt(len(query))
    real = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask[:, 0]
    return scores, real


def pooled_by(hidden, mask, query, *, weigh: Callable) -> Pair:
    """Pool by weights that are a function of scores, real, and query."""
    weights = weigh(*scored(hidden, mask, query), query)
    return (weights[..., None] * hidden).sum(1), weights


def _has_mask(hidden, mask, query) -> bool:
    return mask is not None


SQUEEZED = squeezed("tokens", "for sequences of a single token")
INVERTED = (
    "mask inverted",
    "The padding was kept and the words were hidden. masked_fill fills where its mask "
    "is True; real tokens have True here, so it takes ~real.",
)
for name, weigh, why in (
    (
        "the padding takes part",
        lambda scores, real, query: scores.softmax(-1),
        "Weights of the padding must be 0, and the others sum to 1: set the scores to "
        "−∞ where the mask is False, before the softmax.",
    ),
    (
        "padded scores set to 0",
        lambda scores, real, query: (scores * real).softmax(-1),
        "A score of 0 is an ordinary score, e⁰ = 1. 'Never' is −∞.",
    ),
    (
        INVERTED[0],
        lambda scores, real, query: weights_of(scores, ~real),
        INVERTED[1],
    ),
    (
        INVERTED[0],
        lambda scores, real, query: scores.masked_fill(real, -math.inf).softmax(-1),
        INVERTED[1],
    ),
    (
        "the mask of one sequence for the whole batch",
        lambda scores, real, query: weights_of(scores, real[:1]),
        "Each sequence has padding of its own, and so a row of the mask: bring the "
        "mask (B, 1, T) into the form of the scores, (B, T), before they meet.",
    ),
    (
        SQUEEZED[0],
        lambda scores, real, query: weights_of(scores, real.squeeze()),
        SQUEEZED[1],
    ),
    (
        "masked after the softmax",
        lambda scores, real, query: scores.softmax(-1) * real,
        "The weights of the real tokens no longer sum to 1: the padding had taken its "
        "share before it was removed. Mask the scores, not the weights.",
    ),
):
    pooling.mistake(name, why, when=_has_mask)(partial(pooled_by, weigh=weigh))

EMPTY_WEIGHTS = (
    EMPTY,
    "A softmax over only −∞ computes 0/0. Nothing may be attended to, so the weights "
    "are 0: put 0 where the mask is False after the softmax, as well as −∞ before it.",
)
LATE = (
    EMPTY_GRADIENT,
    "The values are right, the backward pass is not: it runs through a 0/0 that was "
    "only replaced afterwards. One empty sequence would spoil all parameters in one "
    "step. masked_fill(~real, 0.0) of the weights stops it, and so does a divisor that "
    "is never 0.",
)
UNSTABLE = (
    "not stable for large scores",
    "exp of a large score is infinite, and ∞/∞ is NaN. torch.softmax takes the largest "
    "score off first.",
)


def _never(real: torch.Tensor) -> torch.Tensor:
    return torch.where(real, 0.0, -math.inf)


def _in_steps(scores, real, query) -> torch.Tensor:
    powers = torch.exp(scores + _never(real))
    return powers / powers.sum(-1, keepdim=True).clamp(min=1e-30)


for name, weigh, why in (
    (
        "the scores are not scaled",
        lambda scores, real, query: weights_of(scores * len(query) ** 0.5, real),
        "Divide by √d_model: a sum of d_model products grows with the width, and a "
        "softmax of large scores takes one token only.",
    ),
    (
        "divided by d_model in place of its root",
        lambda scores, real, query: weights_of(scores / len(query) ** 0.5, real),
        "The spread of a sum of d_model products is √d_model; divide by the root.",
    ),
    (
        "multiplied by √d_model",
        lambda scores, real, query: weights_of(scores * len(query), real),
        "The root of d_model makes large scores smaller: divide by it.",
    ),
    (
        "divided by the root of the number of tokens",
        lambda scores, real, query: weights_of(
            scores * math.sqrt(len(query) / scores.shape[1]), real
        ),
        "A score is a sum of d_model products; how many tokens there are does not "
        "matter to it. hidden.shape[-1] is d_model.",
    ),
    (
        "the query is scaled to length 1",
        lambda scores, real, query: weights_of(scores / query.norm(), real),
        "Take the query as it is: by its length, training decides how sharp the "
        "weights are.",
    ),
    (
        "the sigmoid in place of softmax",
        lambda scores, real, query: scores.sigmoid() * real,
        "The weights of one sequence share out 1 among its tokens; sigmoids do not sum "
        "to 1.",
    ),
    (
        "softmax over the batch",
        lambda scores, real, query: (scores + _never(real)).softmax(0),
        "The weights of one sequence sum to 1: softmax along the positions, dim=-1.",
    ),
    (
        "no softmax",
        lambda scores, real, query: scores * real,
        "Scores are no weights: they may be negative and do not sum to 1.",
    ),
    (
        "the mean in place of a weighted mean",
        lambda scores, real, query: real / real.sum(-1, keepdim=True).clamp(min=1),
        "The weights are all equal, so the query has no say.",
    ),
    (
        "a large negative number in place of −∞",
        lambda scores, real, query: scores.masked_fill(~real, -1e9).softmax(-1),
        "With −1e9 or the like in every place all scores are equal, and the softmax "
        "shares the weight out among tokens that are all padding.",
    ),
    (
        EMPTY_WEIGHTS[0],
        lambda scores, real, query: (scores + _never(real)).softmax(-1),
        EMPTY_WEIGHTS[1],
    ),
    (
        LATE[0],
        lambda scores, real, query: (scores + _never(real)).softmax(-1).nan_to_num(0.0),
        LATE[1],
    ),
    (UNSTABLE[0], _in_steps, UNSTABLE[1]),
    (
        "no gradient comes back",
        lambda scores, real, query: weights_of(scores.detach(), real),
        CUT_OFF,
    ),
):
    pooling.mistake(name, why)(partial(pooled_by, weigh=weigh))
pooling.mistake(*NO_MASK)(
    lambda hidden, mask, query: torch_pooling(hidden, mask[:, :1], query)
)


@pooling.mistake(
    "the scores are used as weights",
    "The weights come out right and are not used: multiply hidden by them.",
)
def _(hidden, mask, query):
    scores, real = scored(hidden, mask, query)
    mixed = ((scores * real)[..., None] * hidden).sum(1)
    return mixed, torch_pooling(hidden, mask, query)[1]


LEFT_OVER = "an axis of size 1 is left over"
NO_AXIS = "One query for each sequence: pooled is (B, d_model) and the weights (B, T)."
for name, change, why in (
    (
        "divided by T after the weights",
        lambda pooled, weights, query: (pooled / weights.shape[1], weights),
        "The weights sum to 1 already: take the sum over the positions, not the mean.",
    ),
    (
        "the values are multiplied by the query, too",
        lambda pooled, weights, query: (pooled * query, weights),
        "The query decides on the weights only; what is averaged is hidden itself.",
    ),
    (
        "the order of the pair",
        lambda pooled, weights, query: (weights, pooled),
        "First the pooled vectors, then the weights.",
    ),
    (
        "the weights are not returned",
        lambda pooled, weights, query: pooled,
        "The weights are wanted, too, to be looked at: return pooled, weights.",
    ),
    (LEFT_OVER, lambda p, weights, query: (p, weights[:, None]), NO_AXIS),
    (LEFT_OVER, lambda p, weights, query: (p[:, None], weights[:, None]), NO_AXIS),
    (LEFT_OVER, lambda p, weights, query: (p[:, None], weights), NO_AXIS),
):
    pooling.mistake(name, why)(
        lambda hidden, mask, query, change=change: change(
            *torch_pooling(hidden, mask, query), query
        )
    )

# --- the check ------------------------------------------------------------------------


def _matrix(state: State, missing: list, extra: list):
    found = tuple(state["query"].shape) if "query" in state else ()
    yield (
        len(found) == 2 and 1 in found,
        "one axis too many",
        "The query is one vector, (d_model,). hidden @ query multiplies each token "
        "with it and leaves (B, T), with nothing to squeeze away.",
    )


def loaded(student: StudentModule, query: torch.Tensor) -> StudentInstance:
    """Build the module, and give it this query."""
    module = student.build(len(query))
    on = f"AttentionPooling({len(query)})"
    expect_parameters(module, {"query": (len(query),)}, on, _matrix)
    module.load_state_dict({"query": query})
    return module


def expect_pooled(student: StudentModule, *cases: Case) -> StudentInstance:
    """Expect what is pooled, and the weights, in cases with the same query."""
    module = loaded(student, *cases[0].given)
    for case in foreseen(module, cases):
        judge_pair(pooling, module, case, ("pooled", "weights"))
    return module


def expect_start(student: StudentModule) -> None:
    """Expect small random numbers, or zeros."""
    d_model = 1200
    query = student.build(d_model).parameters()["query"]
    why = (
        "Start small, with 0.02 times random numbers: all scores are then near 0 and "
        "the weights nearly equal, so training starts from the mean."
    )
    if query.any():
        on = f"AttentionPooling({d_model})"
        expect_spread(query, 0.02, on, name="query", formula="the factor", why=why)


def expect_large(student: StudentModule, generator: torch.Generator) -> None:
    """Expect scores of thousands, whose exponentials overflow.

    Scores are equal or far apart, and exact in float32: in between, the rounding of a
    right answer would show.
    """
    query = 2 * torch.sign(normal(generator, 4))
    hidden = 1000 * torch.sign(normal(generator, 3, 5, 4))
    hidden[:, 0] = 500 * query  # a score of 4000
    on = "hidden (3, 5, 4) of 1000 and -1000"
    large = Case(on, (hidden, None), given=(query,), unless_finite=UNSTABLE)
    expect_pooled(student, large)


@chapter.check(section="attention-pooling")
def attention_pooling(
    student: StudentModule, masked_softmax_student: StudentFunction, seed: int = 0
) -> None:
    """One query over all real tokens, against PyTorch's attention; empty sequences."""
    with expect.relying_on(masking.alone, masked_softmax_student):
        expect_pooling(student, seed)


def expect_pooling(student: StudentModule, seed: int) -> None:
    """Expect the example by hand, padding, large scores, and empty sequences."""
    generator = seeded(seed)
    say = {"tolerance": 1e-4}
    hand = torch.tensor([[[1.0986123, 0.0, 0.0, 0.0], [0.0, 4.0, 0.0, 0.0]]])
    query = torch.tensor([2.0, 0.0, 0.0, 0.0])
    wanted = torch.tensor([[0.8239592, 1.0, 0.0, 0.0]]), torch.tensor([[0.75, 0.25]])
    case = Case("the example by hand", (hand, None), wanted, given=(query,), **say)
    expect_pooled(student, case)
    for hidden, mask, shapes in padded(seed):
        given = (2 * normal(generator, hidden.shape[2]),)
        cases = [Case(shapes, (hidden, mask), given=given, **say)]
        if hidden.abs().amax() < GARBAGE:  # which only a mask hides
            on = f"hidden {tuple(hidden.shape)}, mask=None"
            cases.insert(0, Case(on, (hidden, None), given=given, **say))
        expect_pooled(student, *cases)
    expect_large(student, generator)
    hidden = normal(generator, *hidden.shape)
    cotangent = normal(generator, len(hidden), hidden.shape[2])
    nothing = mask.clone()
    nothing[1] = False
    on = "a batch in which sequence 1 has no real token"
    case = Case(on, (hidden, nothing), given=given, unless_finite=EMPTY_WEIGHTS, **say)
    words = hidden[:2, :1], torch.ones(2, 1, 1, dtype=torch.bool)
    short = Case("two sequences of one token, with a mask", words, given=given, **say)
    module = expect_pooled(student, short, case)
    case = Case(on, (hidden, nothing), given=given, unless_finite=LATE)
    pooling.judge_gradient(module, case, cotangent, output=0)
    expect_start(student)
