"""The Transformer: what goes wrong, and the check."""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator
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
        power: of d, by which the embeddings are multiplied.
        placed: whether source and target get positions.
        hides_source: whether padding is hidden in the encoder.
        hides_target: whether it is in the decoder.
        hides_memory: whether it is in the memory.
        zero: in which of the three masks padding is taken to be 0.
        causal: whether the target's future is hidden.
        causal_source: whether the source's is.
        turned: whether True stands for padding.
    """

    table: torch.Tensor
    encoder: list[Parts]
    decoder: list[DecoderParts]
    norms: tuple[Map, Map]
    pre: bool
    pad: int
    drop: Map = same
    power: float = 0.5
    placed: tuple[bool, bool] = (True, True)
    hides_source: bool = True
    hides_target: bool = True
    hides_memory: bool = True
    zero: tuple[bool, bool, bool] = (False, False, False)
    causal: bool = True
    causal_source: bool = False
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
        x = F.embedding(ids, self.table) * self.d**self.power
        return self.drop(x + sinusoids(ids.shape[1], self.d)) if place else x

    def real(self, ids: torch.Tensor, mask: int) -> torch.Tensor:
        """Mark what is no padding, for one of the three masks."""
        pad = 0 if self.zero[mask] else self.pad
        return ((ids != pad) ^ self.turned).unsqueeze(1)

    def seen(self, ids, mask: int, causal: bool, hides: bool) -> torch.Tensor | None:
        """Make the mask of tokens that look at each other."""
        length = ids.shape[1]
        past = torch.ones(length, length).tril().bool() if causal else None
        if not hides:
            return past
        real = self.real(ids, mask)
        return real if past is None else past & real

    def encode(self, source: torch.Tensor) -> torch.Tensor:
        """Read the source."""
        mask = self.seen(source, 0, self.causal_source, self.hides_source)
        x = self.embed(source, self.placed[0])
        return run_encoder(x, self.encoder, self.norms[0], mask, self.pre)

    def decode(self, target, memory, source) -> torch.Tensor:
        """Read the target and the memory."""
        mask = self.seen(target, 1, self.causal, self.hides_target)
        memory_mask = self.real(source, 2) if self.hides_memory else None
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
