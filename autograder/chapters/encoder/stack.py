"""The stack of encoder layers."""

import functools
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import nn

from autograder import expect, forbidden
from autograder.chapters.encoder import oracles
from autograder.chapters.encoder.chapter import chapter
from autograder.chapters.encoder.layer import layer_alone, say_mask
from autograder.chapters.encoder.parts import (
    ACTIVATIONS,
    Map,
    Parts,
    State,
    final_norm,
    run,
    same,
    stack,
    under,
)
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.parameters import Shapes, expect_parameters
from autograder.exercise.spec import Case, Module, expect_gradients
from autograder.expect import refuse_if
from autograder.interface import StudentInstance, StudentModule

LAYERS = 3
DEEPER = 1e-4  # tolerance of what has gone through several layers


def _given(encoder: nn.Module) -> tuple[list[Parts], Map, bool]:
    parts = [Parts.of(each) for each in encoder.layers]
    return parts, encoder.norm, encoder.layers[0].norm_first


# told of the input, the mask, the parts of each layer, the norm at the end, and whether
# the stack is in pre-norm
stacks = Module(
    "encoder",
    "Encoder",
    lambda x, mask, layers, norm, pre: stack(x, layers, norm, mask, pre),
    given=_given,
)


# --- what goes wrong ------------------------------------------------------------------


def _is_pre(x, mask, layers, norm, pre):
    return pre


FINAL = (
    "In pre-norm nothing normalises the stream itself, so the stack ends with a norm: "
    "return self.norm(x)."
)
AT_THE_END = "The norm comes at the end of the stack, after the last layer only."


@stacks.mistake("no final norm in pre-norm", FINAL, when=_is_pre)
def _(x, mask, layers, norm, pre):
    return stack(x, layers, same, mask, pre)


@stacks.mistake("the final norm after every layer", AT_THE_END, when=_is_pre)
def _(x, mask, layers, norm, pre):
    for parts in layers:
        x = norm(run(x, parts, mask, pre))
    return x


@stacks.mistake("the final norm before the first layer", AT_THE_END, when=_is_pre)
def _(x, mask, layers, norm, pre):
    return stack(norm(x), layers, same, mask, pre)


@stacks.mistake(
    "final norm in post-norm",
    "In post-norm each layer ends with a norm: nn.Identity() at the end.",
    when=lambda x, mask, layers, norm, pre: not pre,
)
def _(x, mask, layers, norm, pre):
    return F.layer_norm(stack(x, layers, same, mask, pre), x.shape[-1:])


def _masked(x, mask, *_):
    return mask is not None


EVERY_MASK = "Every layer gets the mask: layer(x, mask). Padding stays padding."


@stacks.mistake("mask not passed on", EVERY_MASK, when=_masked)
def _(x, mask, layers, norm, pre):
    return stack(x, layers, norm, None, pre)


@stacks.mistake("mask only for the first layer", EVERY_MASK, when=_masked)
def _(x, mask, layers, norm, pre):
    return stack(run(x, layers[0], mask, pre), layers[1:], norm, None, pre)


NEXT = "The output of a layer is the input of the next: x = layer(x, mask)."


@stacks.mistake("every layer reads the first input", NEXT)
def _(x, mask, layers, norm, pre):
    return norm(run(x, layers[-1], mask, pre))


@stacks.mistake("the outputs of the layers are added", NEXT)
def _(x, mask, layers, norm, pre):
    return norm(sum(run(x, parts, mask, pre) for parts in layers))


TURNS = "Every layer of self.layers has its turn, from the first to the last."
for name, why, choose in (
    ("the first layer again and again", TURNS, lambda n: [0] * n),
    (
        "only the first layer runs",
        "The result is that of one layer. Is `return` inside the loop?",
        lambda n: [0],
    ),
    ("a layer is left out", TURNS, lambda n: range(n - 1)),
    ("a layer is left out", TURNS, lambda n: range(1, n)),
    ("the layers in reverse", TURNS, lambda n: reversed(range(n))),
    ("every layer runs twice", TURNS, lambda n: [i for i in range(n) for _ in "12"]),
):

    def _chosen(x, mask, layers, norm, pre, choose=choose):
        chosen = [layers[i] for i in choose(len(layers))]
        return stack(x, chosen, norm, mask, pre)

    stacks.mistake(name, why)(_chosen)


@stacks.mistake("norm_first not passed on", "Hand norm_first on to EncoderLayer.")
def _(x, mask, layers, norm, pre):
    return stack(x, layers, norm, mask, not pre)


def _default_layers(x, mask, layers, norm, pre, *, activation, after_each):
    """Run layers in post-norm, with the final norm at the end or after each layer."""
    if activation:
        layers = [parts.varied(activation=torch.relu) for parts in layers]
    for parts in layers:
        x = run(x, parts, mask, pre=False)
        x = norm(x) if after_each else x
    return x if after_each else norm(x)


for activation, after_each in ((False, True), (True, False), (True, True)):
    also = " The final norm stands after the last layer only." if after_each else ""
    name, why = "norm_first not passed on", "Hand norm_first on to EncoderLayer."
    if activation:
        name = "norm_first and activation not passed on"
        why = "Hand norm_first and activation on to EncoderLayer: its last arguments."
    stacks.mistake(name, f"{why}{also}", when=_is_pre)(
        functools.partial(_default_layers, activation=activation, after_each=after_each)
    )


def _has_other_activation(x, mask, layers, norm, pre):
    return layers[0].activation is not torch.relu


@stacks.mistake(
    "activation not passed on",
    "Hand the activation on to EncoderLayer.",
    when=_has_other_activation,
)
def _(x, mask, layers, norm, pre):
    relu = [parts.varied(activation=torch.relu) for parts in layers]
    return stack(x, relu, norm, mask, pre)


@stacks.mistake(
    "heads not passed on", "Hand the number of heads on to EncoderLayer, after d_model."
)
def _(x, mask, layers, norm, pre):
    single = [parts.varied(heads=1) for parts in layers]
    return stack(x, single, norm, mask, pre)


@stacks.mistake(
    "dropout not passed on",
    "Hand dropout on to EncoderLayer(d_model, heads, d_ff, dropout, ...).",
)
def _(x, mask, layers, norm, pre):
    undropped = [parts.varied(drop=same) for parts in layers]
    return stack(x, undropped, norm, mask, pre)


# --- the check ------------------------------------------------------------------------


@chapter.check(section="encoder-stack", forbidden=(forbidden.ENCODER_LAYER,))
def encoder(
    student: StudentModule, layer_student: StudentModule, seed: int = 0
) -> None:
    """PyTorch's stack with the same weights, both orders, masks, dropout."""
    with expect.relying_on(layer_alone, layer_student):
        check_encoder(student, seed)


@chapter.check(section="encoder-stack")
def encoder_alone(student: StudentModule, seed: int = 0) -> None:
    """Check the stack for what is built on it."""
    check_encoder(student, seed)


def check_encoder(student: StudentModule, seed: int) -> None:
    """Judge parameters, values in both orders with every mask, dropout, gradients."""
    generator = seeded(seed)
    b, t, heads, d, d_ff = oracles.layer_sizes(generator)
    x = normal(generator, b, t, d)
    for pre, activation in ((False, "relu"), (True, "gelu")):
        on = (
            f"Encoder(layers={LAYERS}, d_model={d}, heads={heads}, d_ff={d_ff}, "
            f"norm_first={pre}, activation={activation!r})"
        )
        sizes = LAYERS, d, heads, d_ff
        built = student.build(*sizes, 0.0, pre, activation)
        shapes = oracles.encoder_shapes(LAYERS, d, d_ff, pre)
        expect_layers(built, shapes, pre, on)
        state = oracles.draw_state(generator, shapes)
        built.load_state_dict(state)
        right = oracles.torch_encoder(state, LAYERS, d, heads, d_ff, pre, activation)
        layers = parts_of(state, LAYERS, heads, ACTIVATIONS[activation])
        norm = final_norm(state, pre)
        for mask in (None, *oracles.draw_masks(generator, b, t)):
            with torch.no_grad():
                expected = right(x, mask=oracles.torch_mask(mask, x, heads))
            where = say_mask(f"{on}, x {tuple(x.shape)}", mask)
            inputs = (x,) if mask is None else (x, mask)
            given = (None, layers, norm, pre)[len(inputs) - 1 :]
            stacks.judge(built, Case(where, inputs, expected, given, DEEPER))
        dropping = student.build(*sizes, 1.0, pre, activation)
        dropping.load_state_dict(state)
        dropping.train(True)
        dropped = [parts.varied(drop=torch.zeros_like) for parts in layers]
        given, where = (None, dropped, norm, pre), f"{on}, dropout=1 in training"
        stacks.judge(dropping, Case(where, (x,), given=given, tolerance=DEEPER))
    found = built.gradients(x)
    expect_gradients({"x": found.inputs[0], **found.parameters}, on)


def parts_of(state: State, n: int, heads: int, activation: Map) -> list[Parts]:
    """Take the parts of each layer of a stack."""
    states = [under(f"layers.{i}.", state) for i in range(n)]
    return [Parts(each, heads, activation) for each in states]


def expect_layers(
    built: StudentInstance,
    shapes: Shapes,
    pre: bool,
    on: str,
    layer: str = "EncoderLayer",
) -> None:
    """Expect the parameters of a stack, and layers that do not start alike.

    Args:
        built: the stack.
        shapes: the shape of each parameter; those of a layer start as the first does.
        pre: whether it is in pre-norm.
        on: how it was built.
        layer: what its layers are.
    """
    expect_parameters(built, shapes, on, _own(shapes, pre, layer))
    state = built.state_dict()
    query = next(name for name in shapes if name.endswith(".w_q"))
    first, second = state[query], state[query.replace(".0.", ".1.")]
    why = (
        "The layers are copies of one, with equal numbers. Draw each for itself: call "
        f"{layer}(...) once for each layer instead of copying one."
    )
    inside = query.removeprefix("layers.0.")
    say = {"on": f"{on}, freshly built", "got": f"equal {inside} in two layers"}
    refuse_if(torch.equal(first, second), "the layers start as copies", why, **say)


def _own(shapes: Shapes, pre: bool, layer: str) -> Callable[..., Iterator[tuple]]:
    """Make what ``expect_parameters`` is told of this exercise's own mistakes."""

    def own(state: State, missing: list, extra: list) -> Iterator[tuple]:
        final = {"norm.gamma", "norm.beta"}
        kept = not any(name.startswith("layers.") for name in state)
        why = (
            "PyTorch looks for modules in attributes, and does not look into Python "
            "lists: nn.ModuleList([...]). An optimiser would train nothing here."
        )
        yield kept, "the layers are in a Python list", why
        repeated = {
            name for name in shapes if not name.startswith(("layers.0.", "norm."))
        }
        why = (
            "All layers are one and the same object, with one set of parameters. Build "
            f"a new {layer} for each: [{layer}(...) for _ in range(layers)]."
        )
        shared = repeated <= set(missing) and repeated <= set(state)
        yield shared, "one layer, repeated", why
        why = (
            "In pre-norm nothing normalises the stream itself, so it leaves the last "
            "layer unnormalised: self.norm = LayerNorm(d_model) if norm_first."
        )
        yield pre and final <= set(missing), "no final norm in pre-norm", why
        why = "In post-norm each layer ends with a norm already: nn.Identity()."
        yield not pre and final <= set(extra), "final norm in post-norm", why
        numbers = {name.split(".")[1] for name in state if name.startswith("layers.")}
        asked = {name.split(".")[1] for name in shapes if name.startswith("layers.")}
        why = f"{len(asked)} layers were asked for, and {len(numbers)} are there."
        yield len(numbers) != len(asked), "another number of layers", why
        yield from oracles.network_keeps_width(shapes)(state, missing, extra)

    return own
