"""Additive attention: a small network scores each pair of query and key."""

import math
from collections.abc import Callable, Iterator
from functools import partial

import torch

from autograder import expect
from autograder.chapters.attention import masking
from autograder.chapters.attention.batches import ONLY_A_BATCH
from autograder.chapters.attention.chapter import chapter
from autograder.chapters.attention.masking import (
    IGNORED,
    INVERTED,
    NO_MASK,
    WRONG_AXIS,
    masked_by,
)
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
from autograder.interface import Data, StudentFunction, StudentModule


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


def layer_by(
    x_q: torch.Tensor,
    x_kv: torch.Tensor,
    mask: torch.Tensor | None,
    *parameters: torch.Tensor,
    project: Callable = lambda x_q, x_kv, w_q, w_k: (x_q @ w_q, x_kv @ w_k),
    combine: Callable = lambda queries, keys: queries[..., :, None, :] + _row(keys),
    early: Callable | None = None,
    act: Callable = torch.tanh,
    score: Callable = lambda hidden, v: hidden @ v,
    divisor: Callable = lambda w_q, w_k, v: 1.0,
    then: Callable = lambda scores: scores,
    mix: Callable = lambda weights, x_q, x_kv, w_k: weights @ x_kv,
    **rules: Data,
) -> Pair:
    """Attend by rules that can be varied.

    Args:
        x_q: (…, T_q, d_q).
        x_kv: (…, T_k, d_k).
        mask: broadcasts to (…, T_q, T_k).
        parameters: w_q, w_k and v.
        project: makes queries and keys, of both sequences and w_q and w_k.
        combine: makes (…, T_q, T_k, d_hidden) of queries and keys.
        early: puts the mask into that, in place of into the scores.
        act: makes the hidden features of it.
        score: of the hidden features and v.
        divisor: of the scores, made of the parameters.
        then: what is made of the scores before they are masked.
        mix: makes the output of weights, both sequences and w_k.
        rules: of ``masked_by``.
    """
    w_q, w_k, v = parameters
    inside = combine(*project(x_q, x_kv, w_q, w_k))
    if early and mask is not None:
        inside, mask = early(inside, mask), None
    scores = then(score(act(inside), v) / divisor(*parameters))
    weights = masked_by(scores, mask, **rules)
    return mix(weights, x_q, x_kv, w_k), weights


def _row(keys: torch.Tensor) -> torch.Tensor:
    return keys[..., None, :, :]


def _same(x: torch.Tensor) -> torch.Tensor:
    return x


CANCELS = (
    "the query's part of the score is the same for every key and cancels in the "
    "softmax: every query gets the same weights."
)
OTHER = "Bahdanau's score uses the hyperbolic tangent, torch.tanh."
SCALED = (
    "scaled as a dot product",
    "Additive scores are not divided by a root: tanh keeps the hidden features between "
    "−1 and 1.",
)
COLUMNS = (
    WRONG_AXIS[0],
    "The weights sum to 1 over the queries. The keys are the last axis of the scores, "
    "and the weights of each query sum to 1 over them.",
)
layer.slips(
    layer_by,
    ("no tanh", f"Without tanh {CANCELS}", {"act": _same}),
    ("ReLU in place of tanh", OTHER, {"act": torch.relu}),
    ("the sigmoid in place of tanh", OTHER, {"act": torch.sigmoid}),
    (
        "query times key in place of their sum",
        "Additive: the projected query and the projected key are added, before tanh.",
        {"combine": lambda queries, keys: queries[..., :, None, :] * _row(keys)},
    ),
    *(
        (
            "a difference in place of the sum",
            "The projected query and the projected key are added, before tanh.",
            {"combine": lambda q, k, sign=sign: sign * (q[..., :, None, :] - _row(k))},
        )
        for sign in (1, -1)
    ),
    (
        "tanh of each part in place of their sum",
        f"tanh acts on the sum. Taken of each part, {CANCELS}",
        {
            "combine": lambda queries, keys: (
                queries.tanh()[..., :, None, :] + _row(keys.tanh())
            ),
            "act": _same,
        },
    ),
    (
        "keys added to queries of the same position",
        "x_q has T_q rows and x_kv has T_k. Every query meets every key: give the "
        "queries a new axis before the last, (…, T_q, 1, d_hidden), and the keys one "
        "before their tokens, (…, 1, T_k, d_hidden).",
        {"combine": torch.add},
    ),
    (
        "only works for 2-D inputs",
        MORE_AXES,
        {"combine": lambda queries, keys: queries[:, None] + keys[None]},
    ),
    (
        *ONLY_A_BATCH,
        {"combine": lambda queries, keys: queries.unsqueeze(2) + keys.unsqueeze(1)},
    ),
    (
        "w_q and w_k exchanged",
        "w_q makes the queries of x_q, w_k the keys of x_kv. The widths d_q and d_k "
        "may differ, and then the other way round fails.",
        {"project": lambda x_q, x_kv, w_q, w_k: (x_q @ w_k, x_kv @ w_q)},
    ),
    (
        "a sum in place of the product with v",
        "The hidden features are weighted by the parameter v before they are summed; "
        "without it v never learns.",
        {"score": lambda hidden, v: hidden.sum(-1)},
    ),
    (
        "tanh after the product with v",
        "tanh comes before v: tanh(…) v. Outside, it would squeeze every score between "
        "−1 and 1.",
        {"act": _same, "score": lambda hidden, v: torch.tanh(hidden @ v)},
    ),
    (
        "tanh taken twice",
        "tanh comes before v, and only there. Outside, it squeezes every score between "
        "−1 and 1.",
        {"score": lambda hidden, v: torch.tanh(hidden @ v)},
    ),
    (*SCALED, {"divisor": lambda w_q, w_k, v: math.sqrt(len(v))}),
    (*SCALED, {"divisor": lambda w_q, w_k, v: math.sqrt(len(w_k))}),
    (*SCALED, {"divisor": lambda w_q, w_k, v: math.sqrt(len(w_q))}),
    (*SCALED, {"divisor": lambda w_q, w_k, v: len(v)}),
    (*squeezed("queries", "with a single query"), {"then": torch.squeeze}),
    (*COLUMNS, {"axis": -2}),
    (*COLUMNS, {"axis": -2, "seen": torch.ones_like}),
    (
        IGNORED[0],
        "The layer takes a mask but does not use it: masked_softmax does.",
        {"seen": torch.ones_like},
    ),
    (
        INVERTED[0],
        "True means 'may attend'; hand the mask on as it is.",
        {"seen": torch.logical_not},
    ),
    (
        "the mask is put in before tanh",
        "tanh(−∞) is −1, a number like others: the hidden key keeps a score, and a "
        "weight. Hand the mask to masked_softmax, with the scores.",
        {"early": lambda x, mask: x.masked_fill(~mask[..., None], -math.inf)},
    ),
    (
        "output from the projected keys",
        "What is averaged are the rows of x_kv themselves; their projection serves the "
        "scores only.",
        {"mix": lambda weights, x_q, x_kv, w_k: weights @ x_kv @ w_k},
    ),
    (
        "weights transposed before mixing",
        "Row i of the weights mixes the rows of x_kv for query i.",
        {"mix": lambda weights, x_q, x_kv, w_k: weights.mT @ x_kv},
    ),
    (
        "output from x_q in place of x_kv",
        "The values are the rows of x_kv, one for each key.",
        {"mix": lambda weights, x_q, x_kv, w_k: weights @ x_q},
    ),
)

HERE = (  # what is done to a mask that shows without rows of nothing and huge scores
    "a hidden score becomes 0, not −∞",
    "mask added as 0 and 1",
    "0 times −∞",
    "weights zeroed after the softmax without renormalising",
    "−∞ put in after the softmax",
    "mask=None is taken for a causal mask",
    "mask=None hides every key",
    "the mask of one sequence for the whole batch",
    "a row with any hidden key is taken for an empty one",
)
for known in masking.masked.mistakes:
    if known.name in HERE:
        layer.mistake(known.name, known.why)(partial(layer_by, **known.answer.keywords))
layer.mistake(*NO_MASK)(
    lambda x_q, x_kv, mask, *given: layer_by(x_q, x_kv, mask.bool(), *given)
)
layer.mistake("no gradient comes back", CUT_OFF)(
    lambda *given: layer_by(*given, then=torch.Tensor.detach)
)
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
    d_q, d_k, d_hidden = 120, 15, 1200  # so far apart that their roots are, too
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
