"""The Transformer: what goes wrong, and the check."""

import contextlib
import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F

from autograder import expect, forbidden
from autograder.chapters.decoder import oracles
from autograder.chapters.decoder.chapter import chapter
from autograder.chapters.decoder.inputs import draw_ids, draw_sizes
from autograder.chapters.decoder.parts import DecoderParts
from autograder.chapters.decoder.parts import stack as run_decoder
from autograder.chapters.decoder.stack import DEEPER, decoder_alone
from autograder.chapters.decoder.stack import parts_of as decoder_parts
from autograder.chapters.encoder.classifier import sinusoids
from autograder.chapters.encoder.oracles import draw_state, network_keeps_width
from autograder.chapters.encoder.parts import (
    ACTIVATIONS,
    Map,
    Parts,
    State,
    final_norm,
    same,
    under,
)
from autograder.chapters.encoder.parts import stack as run_encoder
from autograder.chapters.encoder.stack import parts_of as encoder_parts
from autograder.exercise.inputs import seeded
from autograder.exercise.parameters import expect_parameters
from autograder.exercise.spec import Case, Module, expect_gradients
from autograder.expect import describe_error, refuse
from autograder.interface import StudentError, StudentModule


@dataclass(frozen=True)
class Model:
    """A Transformer with given parameters, taken apart so that it varies.

    Args:
        table: the embeddings (V, d).
        encoder: the parts of each layer.
        decoder: the same of the decoder.
        norms: at the end of encoder and decoder.
        pre: whether both are in pre-norm.
        pad: the id of padding.
        drop: what the dropout of the positions does.
        scale: what the embeddings are multiplied by besides √d.
        placed: whether source and target get positions.
        hidden: whether padding is hidden in the encoder, the decoder, the memory.
        zero: in which of the three masks padding is taken to be 0.
        causal: whether the target's future is hidden.
        turned: whether True stands for padding.
    """

    table: torch.Tensor
    encoder: list[Parts]
    decoder: list[DecoderParts]
    norms: tuple[Map, Map]
    pre: bool
    pad: int
    drop: Map = same
    scale: float = 1.0
    placed: tuple[bool, bool] = (True, True)
    hidden: tuple[bool, bool, bool] = (True, True, True)
    zero: tuple[bool, bool, bool] = (False, False, False)
    causal: bool = True
    turned: bool = False

    @classmethod
    def of(cls, model: Any) -> "Model":
        """Take it from a model that was built as the course builds it."""
        return cls(
            model.embedding.weight,
            [Parts.of(each) for each in model.encoder.layers],
            [DecoderParts.of(each) for each in model.decoder.layers],
            (model.encoder.norm, model.decoder.norm),
            model.encoder.layers[0].norm_first,
            model.pad_id,
            model.position.dropout,
        )

    @classmethod
    def made(cls, state: State, n: int, heads: int, activation, pre, pad) -> "Model":
        """Make it of the parameters."""
        inner, outer = under("encoder.", state), under("decoder.", state)
        return cls(
            state["embedding.weight"],
            encoder_parts(inner, n, heads, activation),
            decoder_parts(outer, n, heads, activation),
            (final_norm(inner, pre), final_norm(outer, pre)),
            pre,
            pad,
        )

    @property
    def d(self) -> int:
        """How wide a token is."""
        return self.table.shape[1]

    def varied(self, **changes: Any) -> "Model":
        """Return the same model with something else in it."""
        return replace(self, **changes)

    def with_layers(self, **changes: Any) -> "Model":
        """Return the same model with other dropout or activation in all layers."""
        encoder = [each.varied(**changes) for each in self.encoder]
        decoder = [each.varied(**changes) for each in self.decoder]
        return self.varied(encoder=encoder, decoder=decoder)

    def embed(self, ids: torch.Tensor, place: bool = True) -> torch.Tensor:
        """Look up, add positions, and drop."""
        x = F.embedding(ids, self.table) * self.d**0.5 * self.scale
        return self.drop(x + sinusoids(ids.shape[1], self.d)) if place else x

    def real(self, ids: torch.Tensor, mask: int) -> torch.Tensor:
        """Mark what is no padding, for one of the three masks."""
        pad = 0 if self.zero[mask] else self.pad
        return ((ids != pad) ^ self.turned).unsqueeze(1)

    def encode(self, source: torch.Tensor) -> torch.Tensor:
        """Read the source."""
        mask = self.real(source, 0) if self.hidden[0] else None
        x = self.embed(source, self.placed[0])
        return run_encoder(x, self.encoder, self.norms[0], mask, self.pre)

    def decode(self, target, memory, source) -> torch.Tensor:
        """Read the target and the memory."""
        length = target.shape[1]
        mask = torch.ones(length, length).tril().bool() if self.causal else None
        if self.hidden[1]:
            real = self.real(target, 1)
            mask = real if mask is None else mask & real
        memory_mask = self.real(source, 2) if self.hidden[2] else None
        x = self.embed(target, self.placed[1])
        masks = mask, memory_mask
        return run_decoder(x, memory, *masks, self.decoder, self.norms[1], self.pre)

    def logits(self, source, target, memory=None) -> torch.Tensor:
        """Run the whole model, or the decoder on another memory."""
        memory = self.encode(source) if memory is None else memory
        return F.linear(self.decode(target, memory, source), self.table)


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


for name, why, change, *when in (
    (*FUTURE, lambda m: m.varied(causal=False)),
    (*FUTURE, lambda m: m.varied(causal=False, hidden=(True, False, True))),
    (
        "padding of the target is not hidden",
        "Where the target is padding, no query may attend: join both masks by &.",
        lambda m: m.varied(hidden=(True, False, True)),
    ),
    (
        "the encoder sees padding",
        "Hand the padding mask of the source to the encoder, as its second argument.",
        lambda m: m.varied(hidden=(False, True, True)),
    ),
    (
        "cross-attention sees padding",
        "The memory has rows for padding, too. decode gets the source for this: its "
        "padding mask is the decoder's memory_mask.",
        lambda m: m.varied(hidden=(True, True, False)),
    ),
    (*NOT_HIDDEN, lambda m: m.varied(hidden=(False, True, False))),
    (*NOT_HIDDEN, lambda m: m.varied(hidden=(False,) * 3)),
    (*NOT_HIDDEN, lambda m: m.varied(hidden=(False,) * 3, causal=False)),
    (
        "the padding masks are turned round",
        "A mask is True for real tokens: ids != self.pad_id.",
        lambda m: m.varied(turned=True),
    ),
    *(
        (
            "pad_id is ignored",
            ELSE.format("which need not be 0, in each of the three masks"),
            lambda m, zero=zero: m.varied(zero=zero),
            lambda source, target, m: m.pad != 0,
        )
        for zero in itertools.product((True, False), repeat=3)
        if any(zero)
    ),
    (
        "pad_id is ignored",
        ELSE.format("0 unless another is given"),
        lambda m: m.varied(pad=-1),
        lambda source, target, m: m.pad == 0,
    ),
    ("no positions", PLACED, lambda m: m.varied(placed=(False, False))),
    ("no positions in the decoder", PLACED, lambda m: m.varied(placed=(True, False))),
    ("no positions in the encoder", PLACED, lambda m: m.varied(placed=(False, True))),
    (
        "embeddings scaled twice",
        "Embedding multiplies by √d_model itself.",
        lambda m: m.varied(scale=m.d**0.5),
    ),
    (
        "embeddings not scaled",
        "Between table and positions comes the factor √d_model; Embedding has it. A "
        "row of the table has the length 1, one of the positions √(d/2).",
        lambda m: m.varied(scale=m.d**-0.5),
    ),
    (
        "activation not passed on",
        "Hand the activation on to Encoder and Decoder.",
        lambda m: m.with_layers(activation=torch.relu),
        lambda source, target, m: m.decoder[0].activation is not torch.relu,
    ),
    (
        "dropout not passed on",
        DROPOUT,
        lambda m: m.with_layers(drop=same).varied(drop=same),
    ),
    ("dropout not passed to the positions", DROPOUT, lambda m: m.varied(drop=same)),
    ("dropout not passed to the layers", DROPOUT, lambda m: m.with_layers(drop=same)),
):
    models.mistake(name, why, when=when[0] if when else None)(
        lambda source, target, model, change=change: change(model).logits(
            source, target
        )
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
for name, why, change in (
    ("a softmax in the model", AFTERWARDS, lambda logits, d: logits.softmax(-1)),
    ("a softmax in the model", AFTERWARDS, lambda logits, d: logits.log_softmax(-1)),
    (*SCALED, lambda logits, d: logits * d**0.5),
    (*SCALED, lambda logits, d: logits / d**0.5),
    (*LAST, lambda logits, d: logits[:, -1]),
    (*LAST, lambda logits, d: logits[:, -1:]),
):
    models.mistake(name, why)(
        lambda source, target, model, change=change: change(
            model.logits(source, target), model.d
        )
    )


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
