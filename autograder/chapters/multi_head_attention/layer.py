"""The layer with heads, and what goes wrong in it and in the one that shares heads."""

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import nn

from autograder import expect, forbidden
from autograder.chapters.attention_mistakes import torch_attention, weights_of
from autograder.chapters.multi_head_attention.chapter import (
    chapter,
    exception_named,
    pair_named,
)
from autograder.chapters.multi_head_attention.heads import (
    DEALT,
    INTERLEAVED,
    UNMERGED,
    VIEW,
    cut,
    dealt,
    interleaved,
    join,
    merge_heads,
    neighbours,
    split_heads,
    unviewed,
    viewed,
)
from autograder.chapters.multi_head_attention.loop import NO_W_O
from autograder.exercise.inputs import draw_mask, draw_sizes, normal, seeded
from autograder.exercise.parameters import (
    expect_biases_of_zero,
    expect_parameters,
    expect_spread,
)
from autograder.exercise.spec import Case, Module, expect_gradients, judge_parts
from autograder.exercise.state_dicts import State
from autograder.expect import close, refuse, refuse_if, show
from autograder.forms import several
from autograder.interface import (
    StudentFunction,
    StudentInstance,
    StudentModule,
)

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


def _scaled(power, q, k, v, mask=None):
    d_model = q.shape[-1] * q.shape[-3]
    weights = weights_of(q @ k.mT * d_model**power, mask)
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
    attention=partial(_scaled, -0.5),
)
stated(
    BOTH,
    "missing the scaling by 1/√d_k",
    "The scores are not divided by √d_k. Your scaled_dot_product_attention does that.",
    attention=partial(_scaled, 0),
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
):
    why = f"The bias of {of} is not added: each projection is x W + b."
    stated((layers,), "the biases are missing", why, without=without)
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


# --- the check ------------------------------------------------------------------------


def torch_layer(
    x_q: torch.Tensor, x_kv: torch.Tensor, state: State, heads: int, mask=None
) -> Pair:
    """Compute what nn.MultiheadAttention gives with these parameters.

    Its matrices are transposed, and in its mask True means blocked.
    """
    leading, (t_q, d_model), t_k = x_q.shape[:-2], x_q.shape[-2:], x_kv.shape[-2]
    layer = nn.MultiheadAttention(d_model, heads, batch_first=True)
    layer.load_state_dict(
        {
            "in_proj_weight": torch.cat([state[f"w_{n}"].T for n in "qkv"]),
            "in_proj_bias": torch.cat([state[f"b_{n}"] for n in "qkv"]),
            "out_proj.weight": state["w_o"].T,
            "out_proj.bias": state["b_o"],
        }
    )
    if mask is not None:
        mask = mask.expand(*leading, t_q, t_k).reshape(-1, t_q, t_k)
        mask = ~mask.repeat_interleave(heads, dim=0)
    q, kv = (x.reshape(-1, *x.shape[-2:]) for x in (x_q, x_kv))
    with torch.no_grad():
        output, weights = layer(q, kv, kv, attn_mask=mask, average_attn_weights=False)
    return output.reshape(x_q.shape), weights.reshape(*leading, heads, t_q, t_k)


@chapter.check(section="multi-head-layer", forbidden=(forbidden.MULTI_HEAD,))
def multi_head_attention(
    student: StudentModule,
    split_student: StudentFunction,
    merge_student: StudentFunction,
    seed: int = 0,
) -> None:
    """Against nn.MultiheadAttention with the same numbers: masks, cross-attention."""
    with (
        expect.relying_on(merge_heads, merge_student),
        expect.relying_on(split_heads, split_student),
    ):
        _check_layer(student, seed)


def _check_layer(student: StudentModule, seed: int) -> None:
    generator = seeded(seed)
    width, *_ = draw_sizes(generator, 1)
    heads, batch, t_q, t_k = 3, 4, 5, 6 + seed % 2
    d = heads * width
    build = f"MultiHeadAttention(d_model={d}, heads={heads})"
    layer = student.build(d, heads)
    shapes = {f"w_{n}": (d, d) for n in "qkvo"} | {f"b_{n}": (d,) for n in "qkvo"}
    expect_parameters(layer, shapes, build, partial(own_mistakes, d, heads))
    expect_refusal(student, (d + 1, heads), f"MultiHeadAttention({d + 1}, {heads})")
    state = {
        name: normal(generator, *shape) / (d**0.5 if name[0] == "w" else 1)
        for name, shape in shapes.items()
    }
    layer.load_state_dict(state)

    def draw(*shape: int) -> torch.Tensor:
        return normal(generator, *shape, d)

    def mask(*shape: int) -> torch.Tensor:
        return draw_mask(generator, *shape)

    def oracle(x_q, x_kv, mask):
        return torch_layer(x_q, x_kv, state, heads, mask)

    source, given = draw(batch, t_k), (state, heads)
    for inputs in (
        (draw(t_q), None, None),
        (draw(batch, t_q), None, None),
        (draw(batch, t_q), source, None),
        (draw(heads, t_q), None, mask(heads, t_q, t_q)),  # B = h
        (draw(heads, t_q), draw(heads, t_k), mask(heads, t_q, t_k)),
        (draw(batch, heads), None, mask(heads, heads)),  # T = h
        (draw(batch, t_q), None, mask(batch, 1, t_q)),
        (draw(batch, t_q), source, mask(batch, 1, t_k)),
        (draw(batch, t_q), source, mask(batch, t_q, t_k)),
        (draw(t_q), draw(t_k), mask(t_q, t_k)),
        (draw(2, batch, t_q), None, None),
        (draw(2, batch, t_q), None, mask(batch, 1, t_q)),
    ):
        judge_layer(layers, layer, inputs, given, build, oracle)
    expect_empty_row(layer, draw(t_q), state["b_o"], heads, build)
    inputs = draw(batch, t_q), source, None
    expect_layer_gradients(layers, layer, inputs, given, build, {"b_k"})
    expect_start(student, (96, 12), "MultiHeadAttention(d_model=96, heads=12)")


def judge_layer(spec: Module, layer, inputs: tuple, given, build: str, oracle) -> None:
    """Call a layer of heads; name what its exception or its values tell."""
    x_q, x_kv, mask = inputs
    on = f"{build}, x_q {tuple(x_q.shape)}"
    on += f", x_kv {tuple(x_kv.shape)}" if x_kv is not None else ", x_kv None"
    on += f", mask {tuple(mask.shape)}" if mask is not None else ", no mask"
    passed = 3 if mask is not None else 2 if x_kv is not None else 1
    expected = oracle(x_q, x_q if x_kv is None else x_kv, mask)
    case = Case(on, inputs[:passed], expected, (*inputs[passed:], *given))
    with _shapes_named(*inputs), pair_named():
        got = several(layer(*case.inputs))
    say = {"on": on, "got": show(got), "expected": show(expected)}
    why = "Return output and weights, in this order."
    alone = close(got, expected[0])
    refuse_if(alone, "only the output is returned", why, **say)
    say["why"] = "The function ends without `return`." if got is None else ""
    pair = isinstance(got, tuple) and len(got) == 2
    expect.true(pair, "the result is not a pair (output, weights)", **say)
    judge_parts(spec, got, case, ("the output", "the weights"))


def _shapes_named(x_q, x_kv, mask):
    """Name what an exception at inputs of these shapes means."""
    if mask is not None:
        why = (
            "The mask has to broadcast to the weights (…, h, T_q, T_k). It comes "
            "without an axis for the heads: mask.unsqueeze(-3) adds it."
        )
        kinds = ("RuntimeError", "IndexError")
        return exception_named("mask does not fit the scores", why, kinds)
    if x_q.ndim > 3:
        why = (
            "Any number of axes may stand before the tokens, here two. Count axes from "
            "the end, as in x.shape[-1] and transpose(-3, -2)."
        )
        return exception_named("only works with one batch axis", why)
    why = (
        "Called with x_q alone, the layer is self-attention: keys and values come from "
        "x_q; and without a mask everything is allowed."
    )
    kinds = ("AttributeError", "TypeError")
    return exception_named("an argument that is None", why, kinds, "None")


def own_mistakes(
    d: int, heads: int, state: State, missing: list[str], extra: list[str]
) -> Iterator[tuple]:
    """Yield what ``expect_parameters`` is told of projections of heads."""
    projection = set(missing) in ({"w_o"}, {"w_o", "b_o"})
    why = "w_o (d_model, d_model) mixes the heads. Sources 0 and 1 leave it out."
    yield projection and not extra, "no output projection", why
    if missing or extra:
        return
    matrices = [state[name] for name in ("w_q", "w_k", "w_v")]
    why = (
        "Here the heads' matrices stand side by side in one: its columns are cut after "
        "the product, by split_heads."
    )
    yield any(each.dim() == 3 for each in matrices), "a matrix for each head", why
    why = (
        "Heads are d_model/heads wide, so that all of them together are as wide as the "
        "model."
    )
    wide = any(tuple(each.shape) == (d, heads * d) for each in matrices)
    yield wide, "each head as wide as the model", why


def expect_refusal(student: StudentModule, sizes: tuple, on: str) -> None:
    """Expect a ValueError for a width that heads does not divide."""
    expect.raises(
        "ValueError",
        lambda: student.build(*sizes) and None,
        on=on,
        why="Heads must all have the same whole width. Say so when the layer is built, "
        "not when it is used: raise ValueError.",
        mistake="a width that heads does not divide is accepted",
    )


def expect_empty_row(layer: StudentInstance, x, bias, heads: int, build: str) -> None:
    """Expect weights of zero where a query sees nothing."""
    length = x.shape[0]
    mask = torch.ones(length, length, dtype=torch.bool)
    mask[2] = False
    on = f"{build}, x_q {tuple(x.shape)}, a mask whose row 2 is all False"
    output, weights = several(layer(x, x, mask))
    left = "only b_o comes out" if bias.any() else "the output is zero"
    for what, value, expected in (
        ("weights[:, 2]", weights[:, 2], torch.zeros(heads, length)),
        ("output[2]", output[2], bias),
    ):
        name = "NaN on fully masked rows"
        why = f"A query that sees nothing has weights of zero, and {left}."
        if value.isfinite().all():
            name = "a large negative number in place of −∞"
            why += (
                " With −1e9 or the like in every place, the row is a row of equal "
                "scores, and all keys share the weight although all are forbidden."
            )
        say = {"got": f"{what} = {show(value)}", "expected": show(expected)}
        refuse_if(not close(value, expected), name, why, on=on, **say)


def expect_layer_gradients(
    spec: Module, layer, inputs: tuple, given: tuple, on: str, without: set[str]
) -> None:
    """Expect gradients of both inputs, and of parameters other than ``without``."""
    x_q, x_kv, _ = inputs
    cotangent = torch.ones(x_q.shape).cumsum(-1)
    found = layer.gradients(x_q, x_kv, wrt=(0, 1), cotangent=cotangent, output=0)
    got = dict(zip(("x_q", "x_kv"), found.inputs, strict=True))
    expect_gradients(got | found.parameters, on)
    leaves = [x.clone().requires_grad_() for x in (x_q, x_kv)]
    value = spec.oracle(*leaves, None, *given)[0]
    wanted = torch.autograd.grad((value * cotangent).sum(), leaves)
    for (name, gradient), expected in zip(got.items(), wanted, strict=True):
        where, what = f"the gradient; {on}", f"the gradient of {name}"
        expect.equal(gradient, expected, on=where, what=what, tolerance=1e-3)
    for name, gradient in found.parameters.items():
        moved = name in without or bool(gradient.abs().sum() > 0)
        where = f"the gradient with respect to {name}; {on}"
        expect.true(moved, "the gradient is zero", on=where)


def expect_start(student: StudentModule, sizes: tuple, on: str) -> None:
    """Expect random matrices of the right size, and biases of zero."""
    d, heads = sizes[:2]
    state = student.build(*sizes).parameters()
    why = (
        "Queries and keys have a spread of about 1 if the matrices are random numbers "
        "divided by √d_model: larger ones saturate the softmax before the first step, "
        "smaller ones make all scores alike."
    )
    for name in (f"w_{each}" for each in "qkvo"):
        expect_spread(
            state[name], d**-0.5, on, name=name, formula="1/√d_model", why=why
        )
    expect_biases_of_zero(state, [name for name in state if name[0] == "b"], on)
    first, second, *_ = cut(state["w_q"], heads)
    if close(first, second):
        refuse(
            "all heads start alike",
            "Heads that start alike get the same gradient and stay alike: several "
            "heads that do the work of one.",
            on=f"{on}, freshly built",
            got="w_q: the columns of head 1 equal those of head 0",
            expected="independent random numbers for each head",
        )
