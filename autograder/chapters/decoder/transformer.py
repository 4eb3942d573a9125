"""The Transformer: what goes wrong, and the check."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator

import torch

from autograder import expect, forbidden
from autograder.chapters.decoder import oracles
from autograder.chapters.decoder.chapter import chapter
from autograder.chapters.decoder.inputs import draw_ids, draw_sizes
from autograder.chapters.decoder.methods import judge_methods
from autograder.chapters.decoder.model import Model
from autograder.chapters.decoder.stack import DEEPER, decoder_alone
from autograder.chapters.encoder.oracles import draw_state, network_keeps_width
from autograder.chapters.encoder.parts import (
    ACTIVATIONS,
    Map,
    State,
    same,
)
from autograder.exercise.inputs import seeded
from autograder.exercise.parameters import expect_parameters
from autograder.exercise.spec import Case, Module, expect_gradients
from autograder.expect import describe_error, refuse
from autograder.interface import StudentError, StudentModule

models = Module(
    "transformer",
    "Transformer",
    lambda source, target, model: model.logits(source, target),
    given=lambda model: (Model.of(model),),
)

# --- what goes wrong ------------------------------------------------------------------

FUTURE = (
    "the decoder sees the future",
    "A position may see itself and what is before it. The mask of the decoder's "
    "self-attention is the causal mask *and* the padding of the target.",
)
NOT_HIDDEN = (
    "padding is not hidden",
    "Padding of source and target has to be hidden in all three attentions.",
)
PLACED = "Both embedded sentences go through self.position."
ELSE = "Padding is where an id equals self.pad_id, {}."
DROPOUT = "Positions, encoder and decoder have a dropout: hand it on to all of them."
AFTERWARDS = (
    "The model gives logits; cross_entropy and the sampling take the softmax "
    "themselves. Taken twice it keeps the loss from ever coming near 0."
)
SCALED = (
    "the logits are scaled by √d",
    "tied_logits uses the table as it is; √d belongs to the input side only.",
)
LAST = (
    "logits of the last position only",
    "Training needs the logits of all positions, (B, T_tgt, V).",
)


def varied(
    source,
    target,
    model: Model,
    *,
    activation: Map | None = None,
    layer_drop: Map | None = None,
    end: Callable = lambda logits, d: logits,
    **changes,
) -> torch.Tensor:
    """Run a model by rules that can be varied.

    Args:
        source: ids.
        target: ids.
        model: as it should be.
        activation: another one in all layers.
        layer_drop: another dropout in all layers.
        end: makes the result of the logits and d.
        changes: of the model.
    """
    for name, value in (("activation", activation), ("drop", layer_drop)):
        model = model.with_layers(**{name: value}) if value else model
    return end(model.varied(**changes).logits(source, target), model.d)


FULL = {"hides_source": False, "hides_target": False, "hides_memory": False}
for name, why, rules, *when in (
    (*FUTURE, {"causal": False}),
    (*FUTURE, {"causal": False, "hides_target": False}),
    (
        "a causal mask in the encoder",
        "The source is there as a whole before a word is written: each of its tokens "
        "may see those behind it, too. The encoder's mask hides padding only.",
        {"causal_source": True},
    ),
    (
        "padding of the target is not hidden",
        "Where the target is padding, no query may attend: join both masks by &.",
        {"hides_target": False},
    ),
    (
        "the encoder sees padding",
        "Hand the padding mask of the source to the encoder, as its second argument.",
        {"hides_source": False},
    ),
    (
        "cross-attention sees padding",
        "The memory has rows for padding, too. decode gets the source for this: its "
        "padding mask is the decoder's memory_mask.",
        {"hides_memory": False},
    ),
    (*NOT_HIDDEN, {"hides_source": False, "hides_memory": False}),
    (*NOT_HIDDEN, FULL),
    (*NOT_HIDDEN, FULL | {"causal": False}),
    (
        "the padding masks are turned round",
        "A mask is True for real tokens: ids != self.pad_id.",
        {"turned": True},
    ),
    *(
        (
            "pad_id is ignored",
            ELSE.format("which need not be 0, in each of the three masks"),
            {"zero": zero},
            lambda source, target, m: m.pad != 0,
        )
        for zero in itertools.product((True, False), repeat=3)
        if any(zero)
    ),
    (
        "pad_id is ignored",
        ELSE.format("0 unless another is given"),
        {"pad": -1},
        lambda source, target, m: m.pad == 0,
    ),
    ("no positions", PLACED, {"placed": (False, False)}),
    ("no positions in the decoder", PLACED, {"placed": (True, False)}),
    ("no positions in the encoder", PLACED, {"placed": (False, True)}),
    (
        "embeddings scaled twice",
        "Embedding multiplies by √d_model itself.",
        {"power": 1.0},
    ),
    (
        "embeddings not scaled",
        "Between table and positions comes the factor √d_model; Embedding has it. A "
        "row of the table has the length 1, one of the positions √(d/2).",
        {"power": 0.0},
    ),
    (
        "activation not passed on",
        "Hand the activation on to Encoder and Decoder.",
        {"activation": torch.relu},
        lambda source, target, m: m.decoder[0].activation is not torch.relu,
    ),
    ("dropout not passed on", DROPOUT, {"layer_drop": same, "drop": same}),
    ("dropout not passed to the positions", DROPOUT, {"drop": same}),
    ("dropout not passed to the layers", DROPOUT, {"layer_drop": same}),
    ("a softmax in the model", AFTERWARDS, {"end": lambda x, d: x.softmax(-1)}),
    ("a softmax in the model", AFTERWARDS, {"end": lambda x, d: x.log_softmax(-1)}),
    (*SCALED, {"end": lambda x, d: x * d**0.5}),
    (*SCALED, {"end": lambda x, d: x / d**0.5}),
    (*LAST, {"end": lambda x, d: x[:, -1]}),
    (*LAST, {"end": lambda x, d: x[:, -1:]}),
):
    models.mistake(name, why, when=when[0] if when else None)(
        functools.partial(varied, **rules)
    )


@models.mistake(
    "the encoder is left out",
    "The decoder reads what the encoder made of the source, not its embeddings.",
)
def _(source, target, model):
    return model.logits(source, target, memory=model.embed(source))


@models.mistake(
    "source and target exchanged",
    "The source goes into the encoder, the target into the decoder.",
)
def _(source, target, model):
    return model.logits(target, source)


@models.mistake(
    "hidden states in place of logits",
    "forward ends with tied_logits(hidden, self.embedding.weight).",
)
def _(source, target, model):
    return model.decode(target, model.encode(source), source)


# --- the check ------------------------------------------------------------------------


@chapter.check(
    section="decoder-transformer",
    forbidden=(forbidden.TRANSFORMER, forbidden.ENCODER_LAYER, forbidden.DECODER_LAYER),
)
def transformer(
    student: StudentModule, decoder_student: StudentModule, seed: int = 0
) -> None:
    """PyTorch's whole model with the same weights, padding, the future, dropout."""
    with expect.relying_on(decoder_alone, decoder_student):
        check_transformer(student, seed)


@chapter.check(section="decoder-transformer")
def transformer_alone(student: StudentModule, seed: int = 0) -> None:
    """Check the model for what is built on it."""
    check_transformer(student, seed)


def check_transformer(student: StudentModule, seed: int) -> None:
    """Judge parameters, logits of several lengths, dropout, gradients."""
    generator = seeded(seed)
    b, t, s, heads, d, d_ff, n = draw_sizes(generator)
    vocabulary, longest = 11, max(t, s + 1)
    for pre, activation, pad in ((False, "relu", 0), (True, "gelu", 3)):
        sizes = vocabulary, d, heads, n, d_ff, longest
        on = (
            f"Transformer(vocab_size={vocabulary}, d_model={d}, heads={heads}, "
            f"layers={n}, d_ff={d_ff}, max_length={longest}, norm_first={pre}, "
            f"activation={activation!r}, pad_id={pad})"
        )
        model = student.build(*sizes, 0.0, pre, activation, pad)
        shapes = oracles.transformer_shapes(vocabulary, n, d, d_ff, pre)
        expect_parameters(model, shapes, on, functools.partial(_own, shapes, pre))
        state = draw_state(generator, shapes)
        state["embedding.weight"] *= (vocabulary / d) ** 0.5
        model.load_state_dict(state)
        right = oracles.torch_transformer(n, d, heads, d_ff, pre, activation, pad)
        own = Model.made(state, n, heads, ACTIVATIONS[activation], pre, pad)
        say = {"what": "the logits", "tolerance": DEEPER}
        is_right, asked = True, []
        for width, length in ((s, t), (t, t), (s + 1, 1)):
            source = draw_ids(generator, b, width, vocabulary, pad)
            target = draw_ids(generator, b, max(3, length), vocabulary, pad)
            inputs = source, target[:, :length].contiguous()
            where = f"{on}, source {(b, width)}, target {(b, length)}"
            with _wrong_mask_named(width, length):
                got = model(*inputs)
            with torch.no_grad():
                expected = right(state, *inputs)
            models.compare(got, Case(where, inputs, expected, (own,), **say))
            is_right &= expect.close(got, expected, DEEPER)
            asked.append(inputs)
        if is_right:
            settings = n, d, heads, d_ff, pre, activation, pad
            judge_methods(model, seed, asked[0], state, settings, own, on)
        dropping = student.build(*sizes, 1.0, pre, activation, pad)
        dropping.load_state_dict(state)
        dropping.train(True)
        dropped = own.with_layers(drop=torch.zeros_like).varied(drop=torch.zeros_like)
        where = f"{on}, dropout=1 in training"
        models.judge(dropping, Case(where, inputs, given=(dropped,), **say))
    found = model.gradients(*inputs, wrt=())
    expect_gradients(found.parameters, on)


@contextlib.contextmanager
def _wrong_mask_named(width: int, length: int) -> Iterator[None]:
    """Name the mistake behind sizes of both sentences that meet in an error."""
    try:
        yield
    except StudentError as error:
        sizes = f"({width})", f"({length})"
        clash = "must match the size" in error.text
        if width != length and clash and all(each in error.text for each in sizes):
            why = (
                "The padding mask of one sentence is where that of the other "
                "belongs. In decode, mask is T_tgt by T_tgt, from the target; "
                "memory_mask has a column for each source token, from the source."
            )
            said = f"{error.kind}: {describe_error(error)}"
            name = "the padding masks are exchanged"
            refuse(name, why, on=error.call, got=said)
        raise


def _own(shapes, pre: bool, state: State, missing: list, extra: list) -> Iterator:
    why = "Positions are sinusoidal: SinusoidalPositionalEncoding has no parameters."
    learned = any(name.startswith("position") for name in extra)
    yield learned, "learned positions", why
    vocabulary = shapes["embedding.weight"][0]
    why = (
        "Source, target and output share one table, embedding.weight: embed both with "
        "self.embedding, and compute the logits by tied_logits."
    )
    alone = any(vocabulary in state[name].shape for name in extra)
    yield alone, "more than one table", why
    final = {
        f"{part}.norm.{name}"
        for part in ("encoder", "decoder")
        for name in ("gamma", "beta")
    }
    changed = missing if pre else extra
    only = bool(changed) and set(missing + extra) <= final
    yield only, "norm_first not passed on", "Hand norm_first on to Encoder and Decoder."
    yield from network_keeps_width(shapes)(state, missing, extra)
