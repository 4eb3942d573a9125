"""The stack of decoder layers: what goes wrong, and the check."""

import functools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from autograder import expect, forbidden
from autograder.chapters.decoder import oracles
from autograder.chapters.decoder.calls import (
    Judged,
    call,
    lengths_named,
    say_masks,
    torch_masks,
)
from autograder.chapters.decoder.chapter import chapter
from autograder.chapters.decoder.inputs import draw_kinds, draw_sizes
from autograder.chapters.decoder.layer import decoder_layer
from autograder.chapters.decoder.parts import DecoderParts, run, stack
from autograder.chapters.encoder.oracles import draw_state
from autograder.chapters.encoder.parts import (
    ACTIVATIONS,
    Map,
    State,
    final_norm,
    same,
    under,
)
from autograder.chapters.encoder.stack import expect_layers
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.spec import Case, Module, expect_gradients
from autograder.interface import StudentModule

DEEPER = 2e-4  # tolerance of what has gone through several layers


def _given(decoder: nn.Module) -> tuple[list[DecoderParts], Map, bool]:
    parts = [DecoderParts.of(each) for each in decoder.layers]
    return parts, decoder.norm, decoder.layers[0].norm_first


# told of the input, the memory, both masks, the parts of each layer, the norm at the
# end, and whether the stack is in pre-norm
stacks = Module("decoder", "Decoder", stack, given=_given)


# --- what goes wrong ------------------------------------------------------------------


def _told(mask, memory_mask, number: int) -> tuple:
    """Both masks as they are, for each layer."""
    return mask, memory_mask


def varied(
    x,
    memory,
    mask,
    memory_mask,
    layers,
    norm,
    pre,
    *,
    masks: Callable = _told,
    step: Callable = lambda x, memory, found: (found, memory),
    turns: Callable = lambda layers: layers,
    norms: Callable = lambda norm: (same, norm),
    other_order: bool = False,
    **changes,
) -> torch.Tensor:
    """Run a stack by rules that can be varied.

    Args:
        x: the tokens of the target.
        memory: what is attended to.
        mask: of self-attention, or None.
        memory_mask: of cross-attention, or None.
        layers: the parts of each.
        norm: at the end.
        pre: whether the stack is in pre-norm.
        masks: makes those of a layer, of both and its number.
        step: makes of x, the memory and a layer's output what the next one gets.
        turns: picks the layers that run.
        norms: makes the norm after each layer and the one at the end.
        other_order: whether pre-norm and post-norm are exchanged.
        changes: of the parts of all layers.
    """
    each, last = norms(norm)
    found = x
    for number, parts in enumerate(turns([one.varied(**changes) for one in layers])):
        told = masks(mask, memory_mask, number)
        found = each(run(x, memory, *told, parts, pre != other_order))
        x, memory = step(x, memory, found)
    return last(found)


def ruled(name: str, why: str, when: Callable | None = None, **rules) -> None:
    """State a mistake by rules."""
    stacks.mistake(name, why, when=when)(functools.partial(varied, **rules))


OVERWRITTEN = (
    "the memory is overwritten",
    "The output of a layer became the memory of the next, so the decoder's own text "
    "passes for the source. The loop overwrites x, and only x.",
)
ruled(*OVERWRITTEN, step=lambda x, memory, found: (found, found))
ruled(*OVERWRITTEN, step=lambda x, memory, found: (x, found))


def _masked(x, memory, mask, *_):
    return mask is not None


def _memory_masked(x, memory, mask, memory_mask, *_):
    return memory_mask is not None


BOTH = "Every layer gets both masks: layer(x, memory, mask, memory_mask)."
ORDER = "layer(x, memory, mask, memory_mask): mask first, memory_mask second."
for name, why, masks, when in (
    ("mask not passed on", BOTH, lambda m, mm, i: (None, mm), _masked),
    ("memory_mask not passed on", BOTH, lambda m, mm, i: (m, None), _memory_masked),
    ("no masks passed on", BOTH, lambda m, mm, i: (None, None), None),
    ("the masks are exchanged", ORDER, lambda m, mm, i: (mm, m), None),
    (
        "mask only for the first layer",
        BOTH,
        lambda m, mm, i: (None if i else m, mm),
        _masked,
    ),
    (
        "mask only for the first layer",
        BOTH,
        lambda m, mm, i: (None, None) if i else (m, mm),
        _masked,
    ),
    (
        "memory_mask only for the first layer",
        BOTH,
        lambda m, mm, i: (m, None if i else mm),
        _memory_masked,
    ),
):
    ruled(name, why, when, masks=masks)


def _is_pre(*given):
    return given[-1]


ruled(
    "no final norm in pre-norm",
    "In pre-norm nothing normalises the stream itself, so the stack ends with a norm: "
    "return self.norm(x).",
    _is_pre,
    norms=lambda norm: (same, same),
)
ruled(
    "the final norm after every layer",
    "The norm is at the end of the stack, after the last layer only.",
    _is_pre,
    norms=lambda norm: (norm, same),
)
ruled(
    "final norm in post-norm",
    "In post-norm each layer ends with a norm: nn.Identity() at the end.",
    lambda *given: not given[-1],
    norms=lambda norm: (same, lambda x: F.layer_norm(x, x.shape[-1:])),
)
NEXT = "The output of a layer is the input of the next: x = layer(x, ...)."


@stacks.mistake("the outputs of the layers are added", NEXT)
def _(x, memory, mask, memory_mask, layers, norm, pre):
    return norm(sum(run(x, memory, mask, memory_mask, each, pre) for each in layers))


TURNS = "Every layer of self.layers has its turn, from the first to the last."
for name, why, turns in (
    ("every layer reads the first input", NEXT, lambda layers: layers[-1:]),
    (
        "only the first layer runs",
        "The result is that of one layer. Is `return` inside the loop?",
        lambda layers: layers[:1],
    ),
    (
        "the first layer again and again",
        TURNS,
        lambda layers: layers[:1] * len(layers),
    ),
    ("a layer is left out", TURNS, lambda layers: layers[:-1]),
    ("a layer is left out", TURNS, lambda layers: layers[1:]),
    ("the layers in reverse", TURNS, lambda layers: layers[::-1]),
):
    ruled(name, why, turns=turns)
ruled(
    "activation not passed on",
    "Hand the activation on to DecoderLayer.",
    lambda *given: given[4][0].activation is not torch.relu,
    activation=torch.relu,
)
ruled("heads not passed on", "Hand the number of heads on to DecoderLayer.", heads=1)
ruled(
    "dropout not passed on",
    "Hand dropout on to DecoderLayer(d_model, heads, d_ff, dropout, ...).",
    drop=same,
)
ruled(
    "norm_first not passed on",
    "Hand norm_first on to DecoderLayer.",
    other_order=True,
)


# --- the check ------------------------------------------------------------------------


@chapter.check(section="decoder-stack", forbidden=(forbidden.DECODER_LAYER,))
def decoder(
    student: StudentModule, layer_student: StudentModule, seed: int = 0
) -> None:
    """PyTorch's stack with the same weights, both orders, masks, dropout."""
    with expect.relying_on(decoder_layer, layer_student):
        check_decoder(student, seed)


@chapter.check(section="decoder-stack")
def decoder_alone(student: StudentModule, seed: int = 0) -> None:
    """Check the stack for what is built on it."""
    check_decoder(student, seed)


def check_decoder(student: StudentModule, seed: int) -> None:
    """Judge parameters, values in both orders with every mask, dropout, gradients."""
    generator = seeded(seed)
    b, t, s, heads, d, d_ff, n = draw_sizes(generator)
    x, memory = normal(generator, b, t, d), 2 * normal(generator, b, s, d)
    for pre, activation in ((False, "relu"), (True, "gelu")):
        sizes = n, d, heads, d_ff
        on = (
            f"Decoder(layers={n}, d_model={d}, heads={heads}, d_ff={d_ff}, "
            f"norm_first={pre}, activation={activation!r})"
        )
        built = student.build(*sizes, 0.0, pre, activation)
        shapes = oracles.decoder_shapes(n, d, d_ff, pre)
        expect_layers(built, shapes, pre, on, "DecoderLayer")
        state = draw_state(generator, shapes)
        built.load_state_dict(state)
        right = oracles.torch_decoder(state, n, d, heads, d_ff, pre, activation)
        layers = parts_of(state, n, heads, ACTIVATIONS[activation])
        norm = final_norm(state, pre)
        judged = Judged(stacks, (layers, norm, pre), on, DEEPER)
        for masks in draw_kinds(generator, b, t, s):
            _judge_masked(built, right, x, memory, masks, judged)
        dropping = student.build(*sizes, 1.0, pre, activation)
        dropping.load_state_dict(state)
        dropping.train(True)
        dropped = [each.varied(drop=torch.zeros_like) for each in layers]
        given = None, None, dropped, norm, pre
        on = f"{on}, dropout=1 in training"
        case = Case(on, (x, memory), given=given, tolerance=DEEPER)
        stacks.judge(dropping, case)
    found = built.gradients(x, memory, wrt=(0, 1))
    inputs = {"x": found.inputs[0], "the memory": found.inputs[1]}
    expect_gradients({**inputs, **found.parameters}, on)


def _judge_masked(built, right, x, memory, masks, judged: Judged) -> None:
    on = say_masks(judged.on, x, memory, *masks)
    with lengths_named(built, x, memory, masks, judged, on):
        got = call(built, x, memory, *masks)
    heads = judged.given[0][0].heads
    with torch.no_grad():
        expected = right(x, memory, **torch_masks(*masks, x, heads))
    given = (*masks, *judged.given)
    stacks.compare(got, Case(on, (x, memory), expected, given, DEEPER))


def parts_of(state: State, n: int, heads: int, activation: Map) -> list[DecoderParts]:
    """Take the parts of each layer of a stack."""
    states = [under(f"layers.{i}.", state) for i in range(n)]
    return [DecoderParts(each, heads, activation) for each in states]
