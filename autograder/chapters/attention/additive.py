"""Additive attention: a small network scores each pair of query and key."""

import math
from collections.abc import Callable, Iterator

import torch

from autograder import expect
from autograder.chapters.attention import masking
from autograder.chapters.attention.chapter import chapter
from autograder.chapters.attention.masking import IGNORED, INVERTED, NO_MASK, WRONG_AXIS
from autograder.chapters.attention.oracles import Pair, weights_of
from autograder.chapters.attention.pairs import (
    MORE_AXES,
    judge_pair,
    mistakes_in_returning,
    more_axes,
    named,
)
from autograder.exercise.inputs import draw_mask, draw_sizes, normal, seeded
from autograder.exercise.parameters import expect_parameters, expect_spread
from autograder.exercise.spec import CUT_OFF, Case, Module, foreseen, squeezed
from autograder.interface import StudentFunction, StudentModule


def pair_by_pair(x_q, x_kv, mask, w_q, w_k, v) -> Pair:
    """Compute Bahdanau's score for one query and one key at a time."""
    rows = [
        torch.stack(
            [
                (torch.tanh(query @ w_q + key @ w_k) * v).sum(-1)
                for key in x_kv.unbind(-2)
            ],
            -1,
        )
        for query in x_q.unbind(-2)
    ]
    weights = weights_of(torch.stack(rows, -2), mask)
    return weights @ x_kv, weights


layer = Module("additive-attention", "AdditiveAttention", pair_by_pair)

# --- what goes wrong ------------------------------------------------------------------


def scored_by(score: Callable) -> Callable:
    """Make a layer whose scores are a function of projected queries, keys, and v.

    Queries are (…, T_q, 1, d_hidden), keys (…, 1, T_k, d_hidden).
    """

    def answer(x_q, x_kv, mask, w_q, w_k, v) -> Pair:
        queries, keys = (x_q @ w_q).unsqueeze(-2), (x_kv @ w_k).unsqueeze(-3)
        weights = weights_of(score(queries, keys, v), mask)
        return weights @ x_kv, weights

    return answer


CANCELS = (
    "the query's part of the score is the same for every key and cancels in the "
    "softmax: every query gets the same weights."
)
OTHER = "Bahdanau's score uses the hyperbolic tangent, torch.tanh."
for name, score, why in (
    (
        "no tanh",
        lambda queries, keys, v: (queries + keys) @ v,
        f"Without tanh {CANCELS}",
    ),
    (
        "ReLU in place of tanh",
        lambda queries, keys, v: torch.relu(queries + keys) @ v,
        OTHER,
    ),
    (
        "the sigmoid in place of tanh",
        lambda queries, keys, v: torch.sigmoid(queries + keys) @ v,
        OTHER,
    ),
    (
        "query times key in place of their sum",
        lambda queries, keys, v: torch.tanh(queries * keys) @ v,
        "Additive: the projected query and the projected key are added, before tanh.",
    ),
    (
        "tanh of each part in place of their sum",
        lambda queries, keys, v: (queries.tanh() + keys.tanh()) @ v,
        f"tanh acts on the sum. Taken of each part, {CANCELS}",
    ),
    (
        "a sum in place of the product with v",
        lambda queries, keys, v: torch.tanh(queries + keys).sum(-1),
        "The hidden features are weighted by the parameter v before they are summed; "
        "without it v never learns.",
    ),
    (
        "tanh after the product with v",
        lambda queries, keys, v: torch.tanh((queries + keys) @ v),
        "tanh comes before v: tanh(…) v. Outside, it would squeeze every score between "
        "−1 and 1.",
    ),
    (
        "scaled as a dot product",
        lambda queries, keys, v: torch.tanh(queries + keys) @ v / math.sqrt(len(v)),
        "Additive scores are not divided by a root: tanh keeps the hidden features "
        "between −1 and 1.",
    ),
    (
        "keys added to queries of the same position",
        lambda queries, keys, v: torch.tanh(queries.squeeze(-2) + keys.squeeze(-3)) @ v,
        "x_q has T_q rows and x_kv has T_k. Every query meets every key: give the "
        "queries a new axis before the last, (…, T_q, 1, d_hidden), and the keys one "
        "before their tokens, (…, 1, T_k, d_hidden).",
    ),
):
    layer.mistake(name, why)(scored_by(score))


def scores_of(x_q, x_kv, w_q, w_k, v) -> torch.Tensor:
    """Compute the right scores."""
    inside = (x_q @ w_q).unsqueeze(-2) + (x_kv @ w_k).unsqueeze(-3)
    return torch.tanh(inside) @ v


def mixed_by(weigh: Callable) -> Callable:
    """Make a layer whose right scores become weights in this way."""

    def answer(x_q, x_kv, mask, *parameters: torch.Tensor) -> Pair:
        weights = weigh(scores_of(x_q, x_kv, *parameters), mask)
        return weights @ x_kv, weights

    return answer


def has_mask(x_q, x_kv, mask, *_: torch.Tensor) -> bool:
    """Whether there is a mask to go wrong with."""
    return mask is not None


for soften in (
    lambda scores, mask: torch.softmax(scores, -2),
    lambda scores, mask: weights_of(scores, mask, -2),
):
    layer.mistake(
        WRONG_AXIS[0],
        "The weights sum to 1 over the queries. The keys are the last axis of the "
        "scores, and the weights of each query sum to 1 over them.",
    )(mixed_by(soften))
layer.mistake(
    IGNORED[0],
    "The layer takes a mask but does not use it: masked_softmax does.",
    when=has_mask,
)(mixed_by(lambda scores, mask: weights_of(scores)))
layer.mistake(
    INVERTED[0], "True means 'may attend'; hand the mask on as it is.", when=has_mask
)(mixed_by(lambda scores, mask: weights_of(scores, ~mask)))
layer.mistake(*NO_MASK)(mixed_by(lambda scores, mask: weights_of(scores, mask.bool())))
layer.mistake(*squeezed("queries", "with a single query"))(
    mixed_by(lambda scores, mask: weights_of(scores.squeeze(), mask))
)
layer.mistake("no gradient comes back", CUT_OFF)(
    mixed_by(lambda scores, mask: weights_of(scores.detach(), mask))
)


@layer.mistake("only works for 2-D inputs", MORE_AXES)
def _(x_q, x_kv, mask, w_q, w_k, v):
    scores = torch.tanh((x_q @ w_q)[:, None] + (x_kv @ w_k)[None]) @ v
    weights = weights_of(scores, mask)
    return weights @ x_kv, weights


@layer.mistake(
    "output from the projected keys",
    "What is averaged are the rows of x_kv themselves; their projection serves the "
    "scores only.",
)
def _(x_q, x_kv, mask, w_q, w_k, v):
    weights = weights_of(scores_of(x_q, x_kv, w_q, w_k, v), mask)
    return weights @ x_kv @ w_k, weights


mistakes_in_returning(layer, pair_by_pair)

# --- the check ------------------------------------------------------------------------


def expect_additive(student: StudentModule, seed: int) -> None:
    """Expect parameters, scores, masks, gradients, and the start."""
    generator = seeded(seed)
    # where a product in the wrong order has a value, too, and the value a name
    square = (4,) * 6
    for t_q, t_kv, d_q, d_k, d_hidden, batch in (square, draw_sizes(generator, 6)):
        build = f"AdditiveAttention(d_q={d_q}, d_k={d_k}, d_hidden={d_hidden})"
        module = student.build(d_q, d_k, d_hidden)
        shapes = {"w_q": (d_q, d_hidden), "w_k": (d_k, d_hidden), "v": (d_hidden,)}
        expect_parameters(module, shapes, build)
        state = {name: normal(generator, *shape) for name, shape in shapes.items()}
        module.load_state_dict(state)
        x_q = normal(generator, batch, t_q, d_q)
        x_kv = normal(generator, batch, t_kv, d_k)
        mask = draw_mask(generator, batch, 1, t_kv)
        cases = sequences(build, tuple(state.values()), x_q, x_kv, mask)
        for case in foreseen(module, cases):
            with named(*NO_MASK, saying="None"), more_axes(case.inputs[0].dim()):
                judge_pair(layer, module, case)
        layer.judge_gradient(
            module, case, normal(generator, batch, t_q, d_k), wrt=(0, 1), output=0
        )
    expect_start(student)


def sequences(build: str, parameters: tuple, x_q, x_kv, mask) -> Iterator[Case]:
    """Attend from one sequence to another, then in a batch, without and with a mask."""
    first = x_q[0], x_kv[0]
    for inputs in (
        (*first, None),
        (*first, mask[0]),
        (x_q, x_kv, None),
        (x_q[:, :1], x_kv, mask),
        (x_q, x_kv, mask),
    ):
        given = zip(("x_q", "x_kv", "mask"), inputs, strict=True)
        shapes = [f"{name} {tuple(x.shape)}" for name, x in given if x is not None]
        yield Case(", ".join([build, *shapes]), inputs, given=parameters)


def expect_start(student: StudentModule) -> None:
    """Expect a spread of one over the root of the first size, in each parameter."""
    d_q, d_k, d_hidden = 60, 15, 1200
    module = student.build(d_q, d_k, d_hidden)
    on = f"AdditiveAttention(d_q={d_q}, d_k={d_k}, d_hidden={d_hidden})"
    first = {"w_q": "d_q", "w_k": "d_k", "v": "d_hidden"}
    for name, value in module.parameters().items():
        say = {
            "name": name,
            "formula": f"1/√{first[name]}",
            "why": f"A product with {name} has {first[name]} terms. Divide the random "
            "numbers by the root of that, and the sums have a spread of about 1: tanh "
            "is neither at its limits nor a straight line.",
        }
        expect_spread(value, value.shape[0] ** -0.5, on, **say)


@chapter.check(section="attention-additive")
def additive_attention(
    student: StudentModule, masked_softmax_student: StudentFunction, seed: int = 0
) -> None:
    """Parameters, scores one pair at a time as in the formula, masks, gradients."""
    with expect.relying_on(masking.alone, masked_softmax_student):
        expect_additive(student, seed)
