"""The layer with heads, against PyTorch's."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import nn

from autograder import expect, forbidden
from autograder.chapters.attention.batches import only_a_batch
from autograder.chapters.multi_head_attention.chapter import (
    chapter,
    exception_named,
    pair_named,
)
from autograder.chapters.multi_head_attention.heads import (
    cut,
    merge_heads,
    split_heads,
)
from autograder.chapters.multi_head_attention.methods import judge_methods
from autograder.chapters.multi_head_attention.steps import Pair, layers
from autograder.exercise.inputs import draw_mask, draw_sizes, normal, seeded
from autograder.exercise.parameters import (
    State,
    expect_biases_of_zero,
    expect_parameters,
    expect_spread,
)
from autograder.exercise.spec import Case, Module, expect_gradients, judge_parts
from autograder.expect import close, refuse, refuse_if, show
from autograder.forms import several
from autograder.interface import StudentFunction, StudentInstance, StudentModule


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
    heads, batch, t_q, t_k = 3, 4, 5, 6 + seed % 2
    # with a width of 3, d_k would be √d_model
    width = next(size for size in draw_sizes(generator, 2) if size != heads)
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

    source, given, right = draw(batch, t_k), (state, heads), True
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
        right &= judge_layer(layers, layer, inputs, given, build, oracle)
    expect_empty_row(layer, draw(t_q), state, heads, build)
    inputs = draw(batch, t_q), source, None
    expect_layer_gradients(layers, layer, inputs, given, build, {"b_k"})
    if right:
        judge_methods(layer, seed, state, heads, build)
    expect_start(student, (96, 12), "MultiHeadAttention(d_model=96, heads=12)")


def judge_layer(spec: Module, layer, inputs: tuple, given, build: str, oracle) -> bool:
    """Call a layer of heads; name what its exception or its values tell.

    Returns:
        Whether it is right: a wrong value ends nothing where all are taken note of.
    """
    x_q, x_kv, mask = inputs
    on = f"{build}, x_q {tuple(x_q.shape)}"
    on += f", x_kv {tuple(x_kv.shape)}" if x_kv is not None else ", x_kv None"
    on += f", mask {tuple(mask.shape)}" if mask is not None else ", no mask"
    passed = 3 if mask is not None else 2 if x_kv is not None else 1
    expected = oracle(x_q, x_q if x_kv is None else x_kv, mask)
    case = Case(on, inputs[:passed], expected, (*inputs[passed:], *given))
    with (
        only_a_batch(layer, case.inputs, lambda: expected),
        _shapes_named(*inputs),
        pair_named(),
    ):
        got = several(layer(*case.inputs))
    say = {"on": on, "got": show(got), "expected": show(expected)}
    why = "Return output and weights, in this order."
    alone = close(got, expected[0])
    refuse_if(alone, "only the output is returned", why, **say)
    say["why"] = "The function ends without `return`." if got is None else ""
    pair = isinstance(got, tuple) and len(got) == 2
    expect.true(pair, "the result is not a pair (output, weights)", **say)
    judge_parts(spec, got, case, ("the output", "the weights"))
    return close(got, expected)


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
            "Any number of axes may come before the tokens, here two. Count axes from "
            "the end, as in x.shape[-1] and transpose(-3, -2)."
        )
        return exception_named("only works with one batch axis", why)
    if x_kv is not None and x_kv.shape != x_q.shape:
        why = (
            "Keys and values have as many rows as x_kv has tokens, not as many as x_q. "
            "Take the sizes from the tensor that is cut into heads."
        )
        name = "keys and values cut by the sizes of x_q"
        return exception_named(name, why, ("RuntimeError",), "invalid for input")
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
    why = "w_o (d_model, d_model) mixes the heads. Many texts leave it out."
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


UNEVEN = (
    "a width that heads does not divide is accepted",
    "Heads must all have the same whole width. Say so when the layer is built, not "
    "when it is used: raise ValueError.",
)


def expect_refusal(
    student: StudentModule,
    sizes: tuple,
    on: str,
    name_and_why: tuple[str, str] = UNEVEN,
) -> None:
    """Expect a ValueError for numbers of which one does not divide the other."""
    name, why = name_and_why
    build = partial(student.build, *sizes)
    expect.raises("ValueError", lambda: build() and None, on=on, why=why, mistake=name)


def expect_empty_row(
    layer: StudentInstance, x: torch.Tensor, state: State, heads: int, build: str
) -> None:
    """Expect weights of zero where a query sees nothing."""
    length = x.shape[0]
    mask = torch.ones(length, length, dtype=torch.bool)
    mask[2] = False
    on = f"{build}, x_q {tuple(x.shape)}, a mask whose row 2 is all False"
    output, weights = several(layer(x, x, mask))
    bias = state.get("b_o", torch.zeros(x.shape[-1]))
    left = "only b_o comes out" if bias.any() else "the output is zero"
    why = f"A query that sees nothing has weights of zero, and {left}."
    for what, value, expected in (
        ("weights[:, 2]", weights[:, 2], torch.zeros(heads, length)),
        ("output[2]", output[2], bias),
    ):
        wrong = not close(value, expected)
        say = {"on": on, "got": f"{what} = {show(value)}", "expected": show(expected)}
        nan = wrong and not value.isfinite().all()
        refuse_if(nan, "NaN on fully masked rows", why, **say)
        for applies, name, more in _finite_rows(weights[:, 2], output[2], state, bias):
            refuse_if(wrong and applies, name, f"{why} {more}", **say)
        expect.true(not wrong, f"{what} is wrong", why=why, **say)


def _finite_rows(weights, output, state: State, bias) -> Iterator[tuple]:
    """Yield what may have become of a query that sees nothing."""
    yield (
        close(weights.sum(-1), torch.ones(len(weights))),
        "a large negative number in place of −∞",
        "With −1e9 or the like in every place, the row is a row of equal scores, and "
        "all keys share the weight although all are forbidden.",
    )
    yield (
        "b_v" in state and close(output, state["b_v"] @ state["w_o"] + bias),
        "b_v added after the weighted mean",
        "Each value x W_V + b_v has its bias before it is weighted. Added to the mean, "
        "b_v comes in full also where the weights do not sum to 1.",
    )


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
    first, second, *_ = cut(state["w_q"], heads)
    if close(first, second) and first.std() > 0:
        refuse(
            "all heads start alike",
            "Heads that start alike get the same gradient and stay alike: several "
            "heads that do the work of one.",
            on=f"{on}, freshly built",
            got="w_q: the columns of head 1 equal those of head 0",
            expected="independent random numbers for each head",
        )
    for name in (f"w_{each}" for each in "qkvo"):
        expect_spread(
            state[name], d**-0.5, on, name=name, formula="1/√d_model", why=why
        )
    expect_biases_of_zero(state, [name for name in state if name[0] == "b"], on)
