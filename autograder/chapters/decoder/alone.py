"""The decoder alone: what goes wrong, and the check."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F

from autograder.chapters.decoder.chapter import chapter
from autograder.chapters.decoder.inputs import draw_sizes
from autograder.chapters.decoder.stack import DEEPER
from autograder.chapters.encoder.oracles import (
    draw_state,
    encoder_shapes,
    network_keeps_width,
    torch_encoder,
)
from autograder.chapters.encoder.parts import (
    Map,
    Parts,
    State,
    final_norm,
    same,
    stack,
    under,
)
from autograder.chapters.encoder.stack import parts_of
from autograder.exercise.inputs import seeded
from autograder.exercise.parameters import Shapes, expect_parameters
from autograder.exercise.spec import Case, Module, expect_gradients
from autograder.interface import StudentModule


def _causal(ids: torch.Tensor) -> torch.Tensor:
    return torch.ones(ids.shape[1], ids.shape[1]).tril().bool()


@dataclass(frozen=True)
class LanguageModel:
    """A decoder-only model with given parameters, taken apart so that it varies.

    Args:
        table: the embeddings (V, d).
        positions: the table of positions.
        layers: the parts of each block.
        norm: at the end of the blocks.
        drop: what the dropout of the positions does.
    """

    table: torch.Tensor
    positions: torch.Tensor
    layers: list[Parts]
    norm: Map
    drop: Map = same

    @classmethod
    def of(cls, model: Any) -> "LanguageModel":
        """Take it from a model that was built as the course builds it."""
        layers = [Parts.of(each) for each in model.blocks.layers]
        tables = model.embedding.weight, model.position.table
        return cls(*tables, layers, model.blocks.norm, model.position.dropout)

    def varied(self, **changes: Any) -> "LanguageModel":
        """Return the same model with something else in it."""
        return replace(self, **changes)

    def with_layers(self, **changes: Any) -> "LanguageModel":
        """Return the same model with other dropout or activation in all blocks."""
        return self.varied(layers=[each.varied(**changes) for each in self.layers])

    def words(self, ids: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        """Look up."""
        return F.embedding(ids, self.table) * self.table.shape[1] ** 0.5 * scale

    def embed(self, ids: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        """Look up, add positions, and drop."""
        return self.drop(self.words(ids, scale) + self.positions[: ids.shape[1]])

    def run(self, x: torch.Tensor, mask) -> torch.Tensor:
        """Run the blocks, with the norm at their end."""
        return stack(x, self.layers, self.norm, mask, True)

    def read(self, x: torch.Tensor, mask) -> torch.Tensor:
        """Run the blocks and compute the logits."""
        return F.linear(self.run(x, mask), self.table)

    def logits(self, ids: torch.Tensor) -> torch.Tensor:
        """Run the whole model."""
        return self.read(self.embed(ids), _causal(ids))


models = Module(
    "decoder-only",
    "DecoderOnly",
    lambda ids, model: model.logits(ids),
    given=lambda model: (LanguageModel.of(model),),
)

# --- what goes wrong ------------------------------------------------------------------

TURNED = (
    "the mask is turned",
    "Row i sees the columns up to i: causal_mask(T) as it is, True = may attend.",
)
LOGITS = (
    "a softmax in the model",
    "The model gives logits; cross_entropy takes the softmax itself.",
)
LAST = (
    "logits of the last position only",
    "Training needs the logits of all positions, (B, T, V).",
)
DROPOUT = "Both the positions and the blocks have a dropout: hand it on to both."
for name, why, answer in (
    (
        "sees the future",
        "The mask did not reach the blocks: self.blocks(x, mask). A model that sees "
        "the next token has nothing left to learn.",
        lambda ids, model: model.read(model.embed(ids), None),
    ),
    (*TURNED, lambda ids, model: model.read(model.embed(ids), _causal(ids).T)),
    (*TURNED, lambda ids, model: model.read(model.embed(ids), ~_causal(ids))),
    (
        "id 0 is hidden",
        "Nothing is padding here: an id 0 is a token like any other.",
        lambda ids, model: model.read(
            model.embed(ids), _causal(ids) & (ids != 0).unsqueeze(1)
        ),
    ),
    (
        "embeddings scaled twice",
        "Embedding multiplies by √d_model itself.",
        lambda ids, model: model.read(
            model.embed(ids, model.table.shape[1] ** 0.5), _causal(ids)
        ),
    ),
    (
        "embeddings not scaled",
        "Look the ids up with self.embedding(ids), which multiplies by √d_model.",
        lambda ids, model: model.read(
            model.embed(ids, model.table.shape[1] ** -0.5), _causal(ids)
        ),
    ),
    (
        "no positions",
        "After the embedding comes self.position.",
        lambda ids, model: model.read(model.words(ids), _causal(ids)),
    ),
    (
        "ReLU in place of GELU",
        'The blocks use GELU: Encoder(..., activation="gelu").',
        lambda ids, model: model.with_layers(activation=torch.relu).logits(ids),
    ),
    (*LOGITS, lambda ids, model: model.logits(ids).softmax(-1)),
    (*LOGITS, lambda ids, model: model.logits(ids).log_softmax(-1)),
    (*LAST, lambda ids, model: model.logits(ids)[:, -1]),
    (*LAST, lambda ids, model: model.logits(ids)[:, -1:]),
    (
        "hidden states in place of logits",
        "forward ends with tied_logits(hidden, self.embedding.weight).",
        lambda ids, model: model.run(model.embed(ids), _causal(ids)),
    ),
    (
        "heads not passed on",
        "Encoder(layers, d_model, heads, d_ff, ...): hand the number of heads on.",
        lambda ids, model: model.with_layers(heads=1).logits(ids),
    ),
    (
        "dropout not passed on",
        DROPOUT,
        lambda ids, model: model.with_layers(drop=same).varied(drop=same).logits(ids),
    ),
    (
        "dropout not passed to the positions",
        DROPOUT,
        lambda ids, model: model.varied(drop=same).logits(ids),
    ),
    (
        "dropout not passed to the blocks",
        DROPOUT,
        lambda ids, model: model.with_layers(drop=same).logits(ids),
    ),
):
    models.mistake(name, why)(answer)

# --- the check ------------------------------------------------------------------------


@chapter.check(section="decoder-only")
def decoder_only(student: StudentModule, seed: int = 0) -> None:
    """Parameters, PyTorch's blocks, the future unseen, dropout."""
    generator = seeded(seed)
    b, t, _, heads, d, d_ff, n = draw_sizes(generator)
    longest, vocabulary = d - 1, 13 + 4 * heads
    sizes = vocabulary, d, heads, n, d_ff, longest
    on = (
        f"DecoderOnly(vocab_size={vocabulary}, d_model={d}, heads={heads}, "
        f"layers={n}, d_ff={d_ff}, max_length={longest})"
    )
    shapes = {"embedding.weight": (vocabulary, d), "position.table": (longest, d)}
    inner = encoder_shapes(n, d, d_ff, True)
    shapes |= {f"blocks.{name}": shape for name, shape in inner.items()}
    model = student.build(*sizes)
    expect_parameters(model, shapes, on, functools.partial(_own, shapes))
    state = draw_state(generator, shapes)
    state["embedding.weight"] *= (vocabulary / d) ** 0.5
    state["position.table"] *= longest**0.5
    model.load_state_dict(state)
    blocks = under("blocks.", state)
    right = torch_encoder(blocks, n, d, heads, d_ff, True, "gelu")
    layers = parts_of(blocks, n, heads, F.gelu)
    tables = state["embedding.weight"], state["position.table"]
    own = LanguageModel(*tables, layers, final_norm(blocks, True))
    say = {"what": "the logits", "tolerance": DEEPER}
    for width in (t, longest, 1):
        ids = torch.randint(vocabulary, (b, width), generator=generator)
        ids[0, width // 2] = 0
        with torch.no_grad():
            expected = F.linear(right(own.embed(ids), mask=~_causal(ids)), own.table)
        where = f"{on}, ids {(b, width)}"
        models.judge(model, Case(where, (ids,), expected, (own,), **say))
    dropping = student.build(*sizes, 1.0)
    dropping.load_state_dict(state)
    dropping.train(True)
    dropped = own.with_layers(drop=torch.zeros_like).varied(drop=torch.zeros_like)
    where = f"{on}, dropout=1 in training"
    say["what"] = "the logits with dropout"  # another slip than one in the blocks
    models.judge(dropping, Case(where, (ids,), given=(dropped,), **say))
    ids = torch.randint(vocabulary, (b, t), generator=generator)
    expect_gradients(model.gradients(ids, wrt=()).parameters, on)


def _own(shapes: Shapes, state: State, missing: list, extra: list) -> Iterator[tuple]:
    why = (
        "There is no memory to attend to. A decoder layer without cross-attention is "
        "an encoder layer, so the blocks are chapter 6's Encoder. A second attention "
        "without a mask would show every position the future."
    )
    second = any("cross_attention" in name for name in extra)
    yield second, "a second attention", why
    vocabulary = shapes["embedding.weight"][0]
    why = (
        "Input and output share one table: tied_logits(hidden, self.embedding.weight), "
        "no matrix of its own at the end."
    )
    alone = any(vocabulary in state[name].shape for name in extra)
    yield alone, "more than one table", why
    why = "The blocks are pre-norm: Encoder(..., norm_first=True)."
    final = set(missing) == {"blocks.norm.gamma", "blocks.norm.beta"} and not extra
    yield final, "post-norm in place of pre-norm", why
    why = "The positions are learned: LearnedPositionalEncoding, a trained table."
    yield missing == ["position.table"] and not extra, "sinusoidal positions", why
    table = state.get("position.table")
    turned = table is not None and tuple(table.shape) == shapes["position.table"][::-1]
    why = "LearnedPositionalEncoding(max_length, d_model, dropout): the length first."
    yield turned, "arguments of the table exchanged", why
    yield from network_keeps_width(shapes)(state, missing, extra)
