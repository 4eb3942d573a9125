"""A layer of heads, step by step, and what goes wrong when a step is another one."""

import itertools
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

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


def _attended(divisor: Callable, soften: Callable, q, k, v, mask=None) -> Pair:
    weights = soften(q @ k.mT / divisor(q), mask)
    return weights @ v, weights


def changed(
    x_q,
    x_kv,
    mask,
    state: State,
    heads: int,
    kv_heads: int | None = None,
    *,
    change: Callable | None = None,
    sources: Callable = lambda x_q, x_kv: (x_q, x_kv),
    masked: Callable = lambda mask, crossed: mask,
    matrices: Callable = lambda state: {},
    biases: Callable = lambda state: {},
    counted: Callable = lambda heads: heads,
    divisor: Callable = lambda q: q.shape[-1] ** 0.5,
    soften: Callable = weights_of,
    form: Callable = lambda output, weights, x_q: (output, weights),
    **steps: Any,
) -> Pair:
    """Compute output and weights with slips, which may be several.

    Args:
        x_q: where queries come from.
        x_kv: where keys and values come from, if it is not x_q.
        mask: if there is one.
        state: the parameters.
        heads: of queries.
        kv_heads: of keys and values, if they are shared.
        change: makes x_q, x_kv, mask and parameters of the right ones.
        sources: makes the first two of them.
        masked: makes a mask of the mask and whether this is cross-attention.
        matrices: makes parameters that are others, of all.
        biases: makes more of them.
        counted: how many heads there are.
        divisor: of the scores, made of the queries.
        soften: makes weights of scores and mask.
        form: makes the results of output, weights and x_q.
        steps: of ``run_layer``.
    """
    crossed, own = x_kv is not None, x_q
    x_q, x_kv = sources(x_q, x_kv if crossed else x_q)
    mask = None if mask is None else masked(mask, crossed)
    state = state | matrices(state) | biases(state)
    if change:
        x_q, x_kv, mask, state = change(x_q, x_kv, mask, state)
    steps = {"attention": partial(_attended, divisor, soften), **steps}
    found = run_layer(
        x_q, x_kv, state, counted(heads), mask, kv_heads=kv_heads, **steps
    )
    return form(*found, own)


def stated(
    specs: Iterable[Module],
    name: str,
    why: str,
    change: Callable | None = None,
    when: Callable | None = None,
    **steps: Any,
) -> None:
    """State a mistake that is one step done in another way.

    Args:
        specs: the layers in which it is known.
        name: what the message calls it.
        why: the reason.
        change: makes x_q, x_kv, mask and parameters of the right ones.
        when: whether it shows.
        steps: what ``changed`` does in another way.
    """
    steps |= {"change": change} if change else {}
    for spec in specs:
        spec.mistake(name, why, when=when)(partial(changed, **steps))


SOURCES = "Queries come from x_q; keys and values come from x_kv."
for name, why, steps in (
    (
        "mask laid over the heads",
        "The mask (B, T_q, T_k) meets scores (B, h, T_q, T_k), and its batch lines up "
        "with the heads: an error where B is not h, and silently wrong where it is. "
        "Give it an axis of size 1 for the heads: mask.unsqueeze(-3).",
        {"lay": lambda mask: mask},
    ),
    (
        "the axis for the heads is counted from the front",
        "unsqueeze(1) suits a mask (B, T_q, T_k) only; a mask (T_q, T_k) becomes "
        "(T_q, 1, T_k), and its queries line up with the heads. Count from the end: "
        "mask.unsqueeze(-3).",
        {"lay": lambda mask: mask.unsqueeze(1)},
    ),
    (
        "mask ignored",
        "The result is the one without a mask. Does forward hand the mask on to "
        "attention?",
        {"masked": lambda mask, crossed: None},
    ),
    (
        "mask dropped for cross-attention",
        "The result is the one without a mask. In self-attention yours obeys the mask; "
        "hand it on when x_kv is given as well: the source has padding, too.",
        {"masked": lambda mask, crossed: None if crossed else mask},
    ),
    (
        "mask dropped for self-attention",
        "The result is the one without a mask. In cross-attention yours obeys the "
        "mask; hand it on when x_kv is None as well.",
        {"masked": lambda mask, crossed: mask if crossed else None},
    ),
    (
        "mask inverted",
        'True means "may attend" in this course; only nn.MultiheadAttention and its '
        'relatives mean "blocked" by it.',
        {"masked": lambda mask, crossed: ~mask},
    ),
    (*VIEW, {"split": viewed}),
    (*VIEW, {"split": viewed, "merge": unviewed}),
    (*UNMERGED, {"merge": unviewed}),
    (*DEALT, {"split": dealt}),
    (*DEALT, {"split": dealt, "merge": interleaved}),
    (*INTERLEAVED, {"merge": interleaved}),
    (
        *NO_W_O,
        {
            "matrices": lambda state: {"w_o": torch.eye(len(state["w_o"]))},
            "without": "o",
        },
    ),
    (
        "scaled by √d_model in place of √d_k",
        "The scores of a head are sums over its d_k = d_model/heads features, so they "
        "are divided by √d_k. Split first, then attend.",
        {"divisor": lambda q: (q.shape[-3] * q.shape[-1]) ** 0.5},
    ),
    (
        "the scores are not scaled",
        "The scores are not divided by √d_k. Your scaled_dot_product_attention does "
        "that.",
        {"divisor": lambda q: 1},
    ),
    (*TWICE, {"divisor": lambda q: q.shape[-1]}),
    (
        "weights zeroed after the softmax without renormalising",
        "The rows no longer sum to 1. Hide the scores before the softmax: then the "
        "allowed keys share the whole weight.",
        {
            "soften": lambda scores, mask: (
                scores.softmax(-1) * (True if mask is None else mask)
            )
        },
    ),
    (
        "softmax over the wrong axis",
        "The weights sum to 1 along another axis. Each row, along the last axis, "
        "belongs to a query.",
        {"soften": partial(weights_of, axis=-2)},
    ),
    (
        "keys and values from x_q",
        "Called with x_kv, the layer takes keys and values from it.",
        {"sources": lambda x_q, x_kv: (x_q, x_q)},
    ),
    (
        "queries from x_kv",
        SOURCES,
        {"sources": lambda x_q, x_kv: (x_kv, x_kv)},
    ),
    (
        "queries and keys exchanged",
        SOURCES,
        {"sources": lambda x_q, x_kv: (x_kv, x_q)},
    ),
    (
        "the input is added",
        "The layer returns what attention has found. The residual connection belongs "
        "to the block around it.",
        {"form": lambda output, weights, x_q: (output + x_q, weights)},
    ),
    (
        "weights returned first",
        "Return output and weights, in this order.",
        {"form": lambda output, weights, x_q: (weights, output)},
    ),
    *(
        (
            "weights averaged over the heads",
            "Return the weights of every head, (…, h, T_q, T_k). Averaged, they hide "
            "that heads differ. (nn.MultiheadAttention averages them unless told not "
            "to.)",
            {
                "form": lambda output, weights, x_q, keep=keep: (
                    *(output, weights.mean(-3, keepdim=keep)),
                )
            },
        )
        for keep in (False, True)
    ),
    (
        "the weights of one head",
        "Return the weights of every head, (…, h, T_q, T_k).",
        {"form": lambda output, weights, x_q: (output, weights[..., 0, :, :])},
    ),
):
    stated(BOTH, name, why, **steps)

# with biases: missing, in another place, or others
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


def _added_before(names: str, state: State) -> State:
    return {f"b_{name}": state[f"b_{name}"] @ state[f"w_{name}"] for name in names}


for names in ("o", "v", "q", "qkv", "qkvo"):
    stated(
        (layers,),
        "a bias is added before the product",
        "A projection is x W + b: the product with the matrix comes first, then the "
        f"bias. Look at {', '.join(f'b_{name}' for name in names)}.",
        biases=partial(_added_before, names),
    )
for names, added in (
    *itertools.permutations("qkvo", 2),
    ("qkv", "q"),
    ("qkvo", "q"),
    ("kv", "q"),
):
    if names != "k":  # that of the keys is the same for all and has no effect
        stated(
            (layers,),
            "the bias of another projection",
            "Each projection has a bias of its own, with the name of its matrix: w_q "
            "and b_q, w_k and b_k, w_v and b_v, w_o and b_o. All start at 0, so this "
            f"shows after training only. Look at where b_{added} is added.",
            biases=lambda state, names=names, added=added: {
                f"b_{each}": state[f"b_{added}"] for each in names
            },
        )


def _transposed(names: str, state: State) -> State:
    return {f"w_{name}": state[f"w_{name}"].mT for name in names}


for names in ("qkvo", "qkv", "o", "q", "k", "v"):
    stated(
        (layers,),
        "weights transposed",
        "Vectors are rows: y = x W + b, without a transpose. Only nn.Linear multiplies "
        "by the transpose.",
        matrices=partial(_transposed, names),
    )
NAMES = {"q": "queries", "k": "keys", "v": "values"}
for made, by in itertools.permutations("qkv", 2):
    name = f"{NAMES[made]} made by the {NAMES[by]}' matrix"
    own, other = (f"{NAMES[each]}, w_{each}" for each in (made, by))
    why = f"Each has a matrix of its own: {own}; {other}."
    rules = {"matrices": lambda state, m=made, b=by: {f"w_{m}": state[f"w_{b}"]}}
    more = {"biases": lambda state, m=made, b=by: {f"b_{m}": state[f"b_{b}"]}}
    stated(BOTH if {made, by} == {"k", "v"} else (layers,), name, why, **rules)
    stated((layers,), name, why, **rules, **more)
stated(
    (layers,),
    "one head of full width",
    "Attention ran over all features at once: there is one set of weights. Split "
    "queries, keys and values into heads before you attend.",
    counted=lambda heads: 1,
    form=lambda output, weights, x_q: (output, weights.squeeze(-3)),
)
