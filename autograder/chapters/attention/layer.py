"""The attention layer: attention with parameters of its own."""

import math
from collections.abc import Callable, Iterator

import torch

from autograder import expect
from autograder.chapters.attention import dot_product
from autograder.chapters.attention.chapter import chapter
from autograder.chapters.attention.dot_product import PYTORCHS_OWN
from autograder.chapters.attention.masking import IGNORED, INVERTED, NO_MASK
from autograder.chapters.attention.masks import lower
from autograder.chapters.attention.oracles import Pair, attend, torch_attention
from autograder.chapters.attention.pairs import (
    judge_pair,
    mistakes_in_returning,
    more_axes,
    named,
)
from autograder.chapters.attention.projections import project_qkv, projected
from autograder.exercise.inputs import draw_mask, draw_sizes, normal, seeded
from autograder.exercise.parameters import (
    Shapes,
    State,
    expect_parameters,
    expect_spread,
)
from autograder.exercise.spec import CUT_OFF, Case, Module, foreseen
from autograder.interface import StudentFunction, StudentModule


def fed(project: Callable, using: Callable = attend) -> Callable:
    """Make a layer out of what projects and what attends."""

    def answer(x_q, x_kv, mask, w_q, w_k, w_v) -> Pair:
        x_kv = x_q if x_kv is None else x_kv
        return using(*project(x_q, x_kv, w_q, w_k, w_v), mask)

    return answer


right = fed(projected.oracle)
layer = Module("attention-module", "Attention", fed(projected.oracle, torch_attention))

# --- what goes wrong ------------------------------------------------------------------

OF_THE_PARTS = (  # in a layer nobody sees them, or they make no product
    "returned in another order",
    "queries scaled already",
    "keys and values cut in the middle",
)
for known in projected.mistakes:
    if known.name not in OF_THE_PARTS:
        layer.mistake(known.name, known.why)(fed(known.answer))


def scaled_by(factor: Callable) -> Callable:
    """Make a layer whose queries are multiplied by a function of w_q."""

    def answer(x_q, x_kv, mask, w_q, w_k, w_v) -> Pair:
        return right(x_q, x_kv, mask, factor(w_q) * w_q, w_k, w_v)

    return answer


layer.mistake(
    "the scores are not scaled",
    "The scores are not divided by √d_k. If the module calls your own "
    "scaled_dot_product_attention, look there.",
)(scaled_by(lambda w: math.sqrt(w.shape[1])))
layer.mistake(
    "scaled by √d_model in place of √d_k",
    "A score is a sum over the d_k features of a projected query, not over the d_model "
    "of the input.",
)(scaled_by(lambda w: math.sqrt(w.shape[1] / w.shape[0])))
layer.mistake("scaled twice", "scaled_dot_product_attention divides by √d_k already.")(
    scaled_by(lambda w: 1 / math.sqrt(w.shape[1]))
)


def has_mask(x_q, x_kv, mask, *_: torch.Tensor) -> bool:
    """Whether there is a mask to go wrong with."""
    return mask is not None


layer.mistake(
    IGNORED[0], "The layer takes a mask but does not hand it on.", when=has_mask
)(fed(projected.oracle, lambda q, k, v, mask: attend(q, k, v)))
layer.mistake(
    "the mask is dropped in self-attention",
    "The mask is used only where x_kv is given. A decoder's self-attention needs it "
    "most: hand it on in both cases.",
    when=has_mask,
)(
    lambda x_q, x_kv, mask, *matrices: right(
        x_q, x_kv, None if x_kv is None else mask, *matrices
    )
)
layer.mistake(
    "mask dropped for cross-attention",
    "The mask is used only where x_kv is missing. Hand it on when x_kv is given as "
    "well: the source has padding, too.",
    when=has_mask,
)(
    lambda x_q, x_kv, mask, *matrices: right(
        x_q, x_kv, mask if x_kv is None else None, *matrices
    )
)
layer.mistake(
    INVERTED[0], "True means 'may attend'; hand the mask on as it is.", when=has_mask
)(fed(projected.oracle, lambda q, k, v, mask: attend(q, k, v, ~mask)))
layer.mistake(*NO_MASK)(
    fed(projected.oracle, lambda q, k, v, mask: attend(q, k, v, mask.bool()))
)
NO_OTHER = (
    "x_kv=None is not handled",
    "Called with x_q alone, the layer is self-attention: keys and values come from x_q "
    "as well.",
)
layer.mistake(*NO_OTHER)(
    lambda x_q, x_kv, mask, *matrices: attend(
        *projected.oracle(x_q, x_kv, *matrices), mask
    )
)
layer.mistake("no gradient comes back", CUT_OFF)(
    fed(
        projected.oracle,
        lambda q, k, v, mask: attend(q, k.detach(), v.detach(), mask),
    )
)
mistakes_in_returning(layer, right)

# --- the check ------------------------------------------------------------------------


def expect_layer(student: StudentModule, seed: int) -> None:
    """Expect parameters, self- and cross-attention, masks, gradients, and the start."""
    generator = seeded(seed)
    sizes = draw_sizes(generator, 6)
    expect_shapes(student, *sizes[2:5])
    # where a product in the wrong order has a value, too, and the value a name
    square = (4,) * 6
    for t_q, t_kv, d_model, d_k, d_v, batch in (square, sizes):
        build = f"Attention(d_model={d_model}, d_k={d_k}, d_v={d_v})"
        module = student.build(d_model, d_k, d_v)
        shapes = shapes_of(d_model, d_k, d_v)
        state = {name: normal(generator, *shape) for name, shape in shapes.items()}
        module.load_state_dict(state)
        x_q = normal(generator, batch, t_q, d_model)
        x_kv = normal(generator, batch, t_kv, d_model)
        mask = draw_mask(generator, batch, 1, t_kv)
        cases = sequences(build, tuple(state.values()), x_q, x_kv, mask)
        for case in foreseen(module, cases):
            missing = NO_OTHER if case.inputs[1] is None else NO_MASK
            with named(*missing, saying="None"), more_axes(case.inputs[0].dim()):
                judge_pair(layer, module, case)
        layer.judge_gradient(
            module, case, normal(generator, batch, t_q, d_v), wrt=(0, 1), output=0
        )
    expect_start(student)


def shapes_of(d_model: int, d_k: int, d_v: int) -> Shapes:
    """Say which parameters a layer has."""
    return {"w_q": (d_model, d_k), "w_k": (d_model, d_k), "w_v": (d_model, d_v)}


def expect_shapes(student: StudentModule, d_model: int, d_k: int, d_v: int) -> None:
    """Expect three matrices, of which no two are one."""
    on = f"Attention(d_model={d_model}, d_k={d_k}, d_v={d_v})"
    module = student.build(d_model, d_k, d_v)
    expect_parameters(module, shapes_of(d_model, d_k, d_v), on, _one_for_two)


def sequences(build: str, matrices: tuple, x_q, x_kv, mask) -> Iterator[Case]:
    """Attend within one sequence, then from one to another, without and with a mask."""
    for inputs, what in (
        ((x_q[0], x_kv[0], None), "one sequence"),
        ((x_q, x_kv, None), "a batch"),
        ((x_q[0], None, None), "self-attention over one sequence"),
        ((x_q, None, None), "self-attention over a batch"),
        ((x_q, None, lower(x_q.shape[-2])), "self-attention over a batch"),
        ((x_q, x_kv, mask), "a batch"),
    ):
        given = zip(("x_q", "x_kv", "mask"), inputs, strict=True)
        shapes = [f"{name} {tuple(x.shape)}" for name, x in given if x is not None]
        yield Case(", ".join([build, what, *shapes]), inputs, given=matrices)


def _one_for_two(state: State, missing: list, extra: list) -> Iterator[tuple]:
    one = missing == ["w_k"] and not extra and "w_k" in state
    yield (
        one and torch.equal(state["w_k"], state["w_q"]),
        "one matrix for queries and keys",
        "w_k is the same parameter as w_q. Then every score of self-attention is "
        "symmetric, S = Sᵀ: 'car' would find 'blue' as much as 'blue' finds 'car'.",
    )


def expect_start(student: StudentModule) -> None:
    """Expect a spread of 1/√d_model, which is far from the root of another width."""
    d_model, d_k, d_v = 128, 20, 12
    state = student.build(d_model, d_k, d_v).parameters()
    why = (
        "A standard deviation of 1/√d_model keeps queries, keys and values at the "
        "spread of the tokens. With larger entries the softmax is saturated before the "
        "first step, with smaller ones all weights are equal."
    )
    on = f"Attention(d_model={d_model}, d_k={d_k}, d_v={d_v})"
    for name, matrix in state.items():
        say = {"name": name, "formula": "1/√d_model", "why": why}
        expect_spread(matrix, d_model**-0.5, on, **say)


@chapter.check(section="attention-cross", forbidden=PYTORCHS_OWN)
def attention_module(
    student: StudentModule,
    attention_student: StudentFunction,
    project_student: StudentFunction,
    seed: int = 0,
) -> None:
    """Parameters, self- and cross-attention with given weights, masks, gradients."""
    with (
        expect.relying_on(dot_product.alone, attention_student),
        expect.relying_on(project_qkv, project_student),
    ):
        expect_layer(student, seed)
