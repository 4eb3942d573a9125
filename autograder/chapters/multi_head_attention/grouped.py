"""Grouped-query attention: several heads of queries share one of keys and values."""

import contextlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import partial

import torch
import torch.nn.functional as F

from autograder import expect, forbidden
from autograder.chapters.multi_head_attention.chapter import chapter, exception_named
from autograder.chapters.multi_head_attention.heads import (
    OTHER_GROUPS,
    cut,
    join,
    merge_heads,
    split_heads,
)
from autograder.chapters.multi_head_attention.layer import (
    UNEVEN,
    expect_empty_row,
    expect_layer_gradients,
    expect_refusal,
    expect_start,
    judge_layer,
    own_mistakes,
)
from autograder.chapters.multi_head_attention.steps import (
    Pair,
    groups,
    new_axis,
    stated,
)
from autograder.exercise.inputs import draw_mask, normal, seeded
from autograder.exercise.parameters import State, expect_parameters
from autograder.interface import StudentFunction, StudentModule

# --- what goes wrong ------------------------------------------------------------------


def _shares(x_q, x_kv, mask, state, heads, kv_heads):
    return kv_heads > 1


for name, why, steps in OTHER_GROUPS:
    stated((groups,), name, why, when=_shares, **steps)
for one_head, which in ((True, "is 1"), (False, "is more than 1")):
    stated(
        (groups,),
        "mask ignored",
        f"Where kv_heads {which}, the result is the one without a mask. Hand the mask "
        "on in every branch of forward.",
        lambda q, kv, mask, state: (q, kv, None, state),
        when=lambda x_q, x_kv, mask, state, heads, kv_heads, one_head=one_head: (
            mask is not None and (kv_heads == 1) == one_head
        ),
    )
NO_GROUPS = (
    "kv_heads that does not divide heads is accepted",
    "6 heads of queries cannot share 4 heads of keys and values in groups of one size. "
    "Test heads % kv_heads, too, when the layer is built, and raise ValueError.",
)

# --- the check ------------------------------------------------------------------------


def torch_grouped(
    x_q, x_kv, state: State, heads: int, kv_heads: int, mask=None
) -> Pair:
    """Compute by PyTorch's own grouped attention; one-hot values give the weights."""
    q = cut(x_q @ state["w_q"], heads)
    k, v = (cut(x_kv @ state[name], kv_heads) for name in ("w_k", "w_v"))
    mask = None if mask is None else new_axis(mask)
    one_hot = torch.eye(k.shape[-2]).expand(*k.shape[:-1], k.shape[-2])
    z, weights = (
        F.scaled_dot_product_attention(q, k, each, attn_mask=mask, enable_gqa=True)
        for each in (v, one_hot)
    )
    return join(z) @ state["w_o"], weights


@chapter.check(section="multi-head-grouped", forbidden=(forbidden.MULTI_HEAD,))
def grouped_query_attention(
    student: StudentModule,
    split_student: StudentFunction,
    merge_student: StudentFunction,
    seed: int = 0,
) -> None:
    """Against PyTorch's grouped attention, from one kv head to as many as heads."""
    with (
        expect.relying_on(merge_heads, merge_student),
        expect.relying_on(split_heads, split_student),
    ):
        for heads, kv_heads in ((6, 2), (4, 1), (3, 3)):
            _check_grouped(student, heads, kv_heads, seed)
        on = "GroupedQueryAttention(d_model={}, heads={}, kv_heads={})"
        for sizes, name_and_why in (((13, 4, 2), UNEVEN), ((12, 6, 4), NO_GROUPS)):
            expect_refusal(student, sizes, on.format(*sizes), name_and_why)
        expect_start(student, (128, 16, 1), on.format(128, 16, 1))


def _check_grouped(
    student: StudentModule, heads: int, kv_heads: int, seed: int
) -> None:
    generator = seeded(seed)
    width, batch, t_q, t_k = 2 + seed % 2, 4, 5, 7
    d, narrow = heads * width, kv_heads * width
    build = f"GroupedQueryAttention(d_model={d}, heads={heads}, kv_heads={kv_heads})"
    layer = student.build(d, heads, kv_heads)
    shapes = {"w_q": (d, d), "w_k": (d, narrow), "w_v": (d, narrow), "w_o": (d, d)}
    expect_parameters(layer, shapes, build, partial(_own, d, heads, kv_heads))
    state = {name: normal(generator, *shape) / d**0.5 for name, shape in shapes.items()}
    layer.load_state_dict(state)

    def draw(*shape: int) -> torch.Tensor:
        return normal(generator, *shape, d)

    def mask(*shape: int) -> torch.Tensor:
        return draw_mask(generator, *shape)

    def oracle(x_q, x_kv, mask):
        return torch_grouped(x_q, x_kv, state, heads, kv_heads, mask)

    given = state, heads, kv_heads
    for inputs in (
        (draw(batch, t_q), None, None),
        (draw(t_q), None, None),
        (draw(batch, t_q), draw(batch, t_k), None),
        (draw(heads, t_q), draw(heads, t_k), mask(heads, t_q, t_k)),  # B = h
        (draw(heads, t_q), None, mask(heads, t_q, t_q)),
        (draw(batch, heads), None, mask(heads, heads)),  # T = h
        (draw(batch, t_q), draw(batch, t_k), mask(batch, 1, t_k)),
        (draw(2, batch, t_q), None, mask(t_q, t_q)),
    ):
        with _named(inputs, heads, kv_heads):
            judge_layer(groups, layer, inputs, given, build, oracle)
    expect_empty_row(layer, draw(t_q), state, heads, build)
    inputs = draw(batch, t_q), draw(batch, t_k), None
    expect_layer_gradients(groups, layer, inputs, given, build, set())


def _named(inputs: tuple, heads: int, kv_heads: int) -> AbstractContextManager:
    """Name an exception that comes where no mask is given."""
    _, x_kv, mask = inputs
    if mask is not None:
        return contextlib.nullcontext()
    if x_kv is not None:
        name = "the values (or the keys) come from x_q"
        why = (
            "x_kv has another number of tokens than x_q, so what comes from x_q does "
            "not fit. Project keys *and* values from x_kv."
        )
        return exception_named(name, why, ("RuntimeError",))
    why = (
        f"{heads} heads of queries meet {kv_heads} of keys and values. With one kv "
        "head they broadcast, else they do not: repeat_heads gives each query head "
        "its copy."
    )
    return exception_named("keys and values are not repeated", why, ("RuntimeError",))


def _own(d, heads, kv_heads, state: State, missing: list, extra: list) -> Iterator:
    yield from own_mistakes(d, heads, state, missing, extra)
    if not missing and not extra and kv_heads < heads:
        why = "There are kv_heads of them, each d_model/heads wide: fewer columns."
        wide = all(tuple(state[name].shape) == (d, d) for name in ("w_k", "w_v"))
        yield wide, "keys and values as wide as the queries", why
        why = (
            "A head of keys is as wide as a head of queries, d_model/heads, and there "
            "are kv_heads of them: the more of them, the more columns."
        )
        shared = (d, d // kv_heads)
        other = all(tuple(state[name].shape) == shared for name in ("w_k", "w_v"))
        yield other, "kv heads of another width", why
