"""A layer of heads, step by step, and what goes wrong when a step is another one."""

import itertools
from collections.abc import Callable
from functools import partial

import torch

from autograder.chapters.attention.oracles import torch_attention, weights_of
from autograder.chapters.multi_head_attention.heads import (
    DEALT,
    INTERLEAVED,
    UNMERGED,
    VIEW,
    cut,
    dealt,
    interleaved,
    join,
    neighbours,
    unviewed,
    viewed,
)
from autograder.chapters.multi_head_attention.loop import NO_W_O, TWICE
from autograder.exercise.parameters import State
from autograder.exercise.spec import Module

Pair = tuple[torch.Tensor, torch.Tensor]


def new_axis(mask: torch.Tensor) -> torch.Tensor:
    """Give a mask its axis for the heads."""
    return mask.unsqueeze(-3)


def run_layer(
    x_q,
    x_kv,
    state: State,
    heads: int,
    mask=None,
    *,
    kv_heads: int | None = None,
    split: Callable = cut,
    merge: Callable = join,
    repeat: Callable = neighbours,
    repeat_values: Callable | None = None,
    attention: Callable = torch_attention,
    lay: Callable = new_axis,
    without: str = "",
) -> Pair:
    """Compute output and weights of a layer of heads, with a step done in another way.

    Args:
        x_q: where queries come from.
        x_kv: where keys and values come from.
        state: the parameters, by name, with or without biases.
        heads: of queries.
        mask: True where a query may attend.
        kv_heads: of keys and values, if they are shared.
        split: cuts into heads.
        merge: joins heads.
        repeat: makes copies of shared keys and values.
        repeat_values: if the values are repeated in another way.
        attention: of queries, keys, values and a mask.
        lay: gives the mask its axis for the heads.
        without: the projections whose biases are left out.
    """
    zero = torch.zeros(1)

    def project(x, name, count):
        bias = zero if name in without else state.get(f"b_{name}", zero)
        return split(x @ state[f"w_{name}"] + bias, count)

    shared = kv_heads or heads
    k, v = (project(x_kv, name, shared) for name in "kv")
    if kv_heads:
        k = repeat(k, heads // kv_heads)
        v = (repeat_values or repeat)(v, heads // kv_heads)
    q, mask = project(x_q, "q", heads), None if mask is None else lay(mask)
    z, weights = attention(q, k, v, mask)
    bias = zero if "o" in without else state.get("b_o", zero)
    return merge(z) @ state["w_o"] + bias, weights


def _run(x_q, x_kv, mask, state: State, heads: int, kv_heads: int | None = None):
    x_kv = x_q if x_kv is None else x_kv
    return run_layer(x_q, x_kv, state, heads, mask, kv_heads=kv_heads)


# told of both inputs, the mask, the parameters, and the numbers of heads
layers = Module(
    "multi-head-attention",
    "MultiHeadAttention",
    _run,
    given=lambda layer: (dict(layer.named_parameters()), layer.heads),
)
groups = Module(
    "grouped-query-attention",
    "GroupedQueryAttention",
    _run,
    given=lambda layer: (*layers.given(layer), layer.kv_heads),
)
BOTH = (layers, groups)


# --- what goes wrong ------------------------------------------------------------------


def stated(specs, name: str, why: str, change: Callable | None = None, **steps) -> None:
    """State a mistake that is one step done in another way.

    Args:
        specs: the layers in which it is known.
        name: what the message calls it.
        why: the reason.
        change: makes x_q, x_kv, mask and parameters of the right ones.
        steps: what ``run_layer`` does in another way.
    """
    when = steps.pop("when", None)

    def answer(x_q, x_kv, mask, state, heads, kv_heads=None):
        given = x_q, x_q if x_kv is None else x_kv, mask, state
        q, kv, mask, state = change(*given) if change else given
        return run_layer(q, kv, state, heads, mask, kv_heads=kv_heads, **steps)

    for spec in specs:
        spec.mistake(name, why, when=when)(answer)


def _masked(x_q, x_kv, mask, *_):
    return mask is not None


def _crossed(x_q, x_kv, mask, *_):
    return x_kv is not None


def _scaled(divisor, q, k, v, mask=None):
    weights = weights_of(q @ k.mT / divisor(q), mask)
    return weights @ v, weights


def _unmasked(q, kv, mask, state):
    return q, kv, None, state


SOURCES = "Queries come from x_q; keys and values come from x_kv."
stated(
    BOTH,
    "mask laid over the heads",
    "The mask (B, T_q, T_k) meets scores (B, h, T_q, T_k), and its batch lines up with "
    "the heads: an error where B is not h, and silently wrong where it is. Give it an "
    "axis of size 1 for the heads: mask.unsqueeze(-3).",
    when=_masked,
    lay=lambda mask: mask,
)
stated(
    BOTH,
    "the axis for the heads is counted from the front",
    "unsqueeze(1) suits a mask (B, T_q, T_k) only; a mask (T_q, T_k) becomes "
    "(T_q, 1, T_k), and its queries line up with the heads. Count from the end: "
    "mask.unsqueeze(-3).",
    when=_masked,
    lay=lambda mask: mask.unsqueeze(1),
)
stated(
    BOTH,
    "mask ignored",
    "The result is the one without a mask. Does forward hand the mask on to attention?",
    _unmasked,
    when=_masked,
)
stated(
    BOTH,
    "mask dropped for cross-attention",
    "The result is the one without a mask. In self-attention yours obeys the mask; "
    "hand it on when x_kv is given as well: the source has padding, too.",
    _unmasked,
    when=lambda *given: _masked(*given) and _crossed(*given),
)
stated(
    BOTH,
    "mask inverted",
    'True means "may attend" in this course; only nn.MultiheadAttention and its '
    'relatives mean "blocked" by it.',
    lambda q, kv, mask, state: (q, kv, ~mask, state),
    when=_masked,
)
stated(BOTH, *VIEW, split=viewed)
stated(BOTH, *VIEW, split=viewed, merge=unviewed)
stated(BOTH, *UNMERGED, merge=unviewed)
stated(BOTH, *DEALT, split=dealt)
stated(BOTH, *DEALT, split=dealt, merge=interleaved)
stated(BOTH, *INTERLEAVED, merge=interleaved)
stated(
    BOTH,
    *NO_W_O,
    lambda q, kv, mask, state: (q, kv, mask, state | {"w_o": torch.eye(q.shape[-1])}),
    without="o",
)
stated(
    BOTH,
    "scaled by √d_model in place of √d_k",
    "The scores of a head are sums over its d_k = d_model/heads features, so they are "
    "divided by √d_k. Split first, then attend.",
    attention=partial(_scaled, lambda q: (q.shape[-3] * q.shape[-1]) ** 0.5),
)
stated(
    BOTH,
    "missing the scaling by 1/√d_k",
    "The scores are not divided by √d_k. Your scaled_dot_product_attention does that.",
    attention=partial(_scaled, lambda q: 1),
)
stated(
    BOTH,
    *TWICE,
    attention=partial(_scaled, lambda q: q.shape[-1]),
)
stated(
    BOTH,
    "keys and values from x_q",
    "Called with x_kv, the layer takes keys and values from it.",
    lambda q, kv, mask, state: (q, q, mask, state),
    when=_crossed,
)
stated(
    BOTH,
    "queries from x_kv",
    SOURCES,
    lambda q, kv, mask, state: (kv, kv, mask, state),
    when=_crossed,
)
stated(
    BOTH,
    "queries and keys exchanged",
    SOURCES,
    lambda q, kv, mask, state: (kv, q, mask, state),
    when=_crossed,
)
for without, of in (
    ("qkvo", "all"),
    ("o", "the output"),
    ("qkv", "queries, keys and values"),
    ("q", "the queries"),
    ("v", "the values"),
    ("qo", "queries and output"),
    ("vo", "values and output"),
):
    why = f"The bias of {of} is not added: each projection is x W + b."
    stated((layers,), "the biases are missing", why, without=without)


def _added_before(names, q, kv, mask, state):
    moved = {f"b_{name}": state[f"b_{name}"] @ state[f"w_{name}"] for name in names}
    return q, kv, mask, state | moved


for names in ("o", "v", "q", "qkv", "qkvo"):
    stated(
        (layers,),
        "a bias is added before the product",
        "A projection is x W + b: the product with the matrix comes first, then the "
        f"bias. Look at {', '.join(f'b_{name}' for name in names)}.",
        partial(_added_before, names),
    )
for bias, added in (
    *itertools.permutations("qkvo", 2),
    ("qkv", "q"),
    ("qkvo", "q"),
    ("kv", "q"),
):
    if bias != "k":  # that of the keys is the same for all and has no effect
        stated(
            (layers,),
            "the bias of another projection",
            "Each projection has a bias of its own, with the name of its matrix: w_q "
            "and b_q, w_k and b_k, w_v and b_v, w_o and b_o. All start at 0, so this "
            f"shows after training only. Look at where b_{added} is added.",
            lambda q, kv, mask, state, bias=bias, added=added: (
                *(q, kv, mask),
                state | {f"b_{each}": state[f"b_{added}"] for each in bias},
            ),
        )
VALUES = (
    "values made by the keys' matrix",
    "Values have a matrix of their own, w_v; keys are made by w_k.",
)
stated(
    BOTH,
    *VALUES,
    lambda q, kv, mask, state: (q, kv, mask, state | {"w_v": state["w_k"]}),
)
stated(
    (layers,),
    *VALUES,
    lambda q, kv, mask, state: (
        *(q, kv, mask),
        state | {"w_v": state["w_k"], "b_v": state["b_k"]},
    ),
)


def _transposed(names, q, kv, mask, state):
    turned = {f"w_{name}": state[f"w_{name}"].mT for name in names}
    return q, kv, mask, state | turned


for names in ("qkvo", "qkv", "o"):
    stated(
        (layers,),
        "weights transposed",
        "Vectors are rows: y = x W + b, without a transpose. Only nn.Linear multiplies "
        "by the transpose.",
        partial(_transposed, names),
    )

AVERAGED = (
    "weights averaged over the heads",
    "Return the weights of every head, (…, h, T_q, T_k). Averaged, they hide that "
    "heads differ. (nn.MultiheadAttention averages them unless told not to.)",
)
for spec in BOTH:

    @spec.mistake(*AVERAGED)
    def _(*given):
        output, weights = _run(*given)
        return output, weights.mean(-3)

    @spec.mistake(*AVERAGED)
    def _(*given):
        output, weights = _run(*given)
        return output, weights.mean(-3, keepdim=True)

    @spec.mistake("weights returned first", "Return output and weights, in this order.")
    def _(*given):
        return _run(*given)[::-1]


@layers.mistake(
    "one head of full width",
    "Attention ran over all features at once: there is one set of weights. Split "
    "queries, keys and values into heads before you attend.",
)
def _(x_q, x_kv, mask, state, heads):
    output, weights = _run(x_q, x_kv, mask, state, 1)
    return output, weights.squeeze(-3)
