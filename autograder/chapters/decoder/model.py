"""The arithmetic of a Transformer, taken apart so that it varies."""

from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F

from autograder.chapters.decoder.parts import DecoderParts
from autograder.chapters.decoder.parts import stack as run_decoder
from autograder.chapters.decoder.stack import parts_of as decoder_parts
from autograder.chapters.encoder.classifier import sinusoids
from autograder.chapters.encoder.parts import (
    Map,
    Parts,
    State,
    final_norm,
    same,
    under,
)
from autograder.chapters.encoder.parts import stack as run_encoder
from autograder.chapters.encoder.stack import parts_of as encoder_parts


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
