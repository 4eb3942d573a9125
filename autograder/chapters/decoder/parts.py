"""The arithmetic of a decoder layer, written from its formulas, so that it varies.

Mistakes are put together from these parts. What is right comes from PyTorch's own
layers, in ``oracles``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from autograder.chapters.encoder.parts import (
    Map,
    Parts,
    State,
    attend,
    same,
    under,
)


class DecoderParts(Parts):
    """The functions that a decoder layer is made of, with given parameters."""

    def __init__(
        self, state: State, heads: int, activation: Map, drop: Map = same
    ) -> None:
        super().__init__(state, heads, activation, drop)
        self.own = under("self_attention.", state)
        self.cross = under("cross_attention.", state)
        self.norms.append(under("norm_3.", state))

    @classmethod
    def of(cls, layer: Any) -> "DecoderParts":
        """Take them from a layer that was built as the course builds it."""
        state = dict(layer.named_parameters(remove_duplicate=False))
        activation = layer.feed_forward.activation
        return cls(state, layer.self_attention.heads, activation, layer.dropout)


@dataclass(frozen=True)
class Pass:
    """One pass of tokens through a layer, taken apart.

    Args:
        x: the tokens of the target.
        memory: what is attended to.
        mask: of self-attention, or None.
        memory_mask: of cross-attention, or None.
        parts: of the layer.
        pre: whether it is in pre-norm.
    """

    x: torch.Tensor
    memory: torch.Tensor
    mask: torch.Tensor | None
    memory_mask: torch.Tensor | None
    parts: DecoderParts
    pre: bool

    def varied(self, **changes: Any) -> "Pass":
        """Return the same pass with other tokens, masks, parts or order."""
        return replace(self, **changes)

    def attend(self, u, p: State, mask, source=None) -> torch.Tensor:
        """Attend with the parameters of one of the attentions, and drop."""
        return self.parts.drop(attend(u, p, self.parts.heads, mask, source))

    def look(self, u: torch.Tensor) -> torch.Tensor:
        """Look back at what is written."""
        return self.attend(u, self.parts.own, self.mask)

    def across(self, u: torch.Tensor) -> torch.Tensor:
        """Look across at the memory."""
        return self.attend(u, self.parts.cross, self.memory_mask, self.memory)

    def feed(self, u: torch.Tensor) -> torch.Tensor:
        """Feed forward."""
        return self.parts.drop(self.parts.feed(u))

    @property
    def branches(self) -> tuple[Map, Map, Map]:
        """All three branches, each with its dropout."""
        return self.look, self.across, self.feed

    @property
    def norms(self) -> list[Map]:
        """All three norms."""
        return [lambda u, i=i: self.parts.norm(i, u) for i in (1, 2, 3)]

    def join(
        self,
        branches: Sequence[Callable] | None = None,
        norms: Sequence[Map] | None = None,
    ) -> torch.Tensor:
        """Join branches, or others in their place."""
        x = self.x
        pairs = zip(branches or self.branches, norms or self.norms, strict=True)
        for branch, norm in pairs:
            x = x + branch(norm(x)) if self.pre else norm(x + branch(x))
        return x


def run(x, memory, mask, memory_mask, parts: DecoderParts, pre: bool) -> torch.Tensor:
    """Run one layer."""
    return Pass(x, memory, mask, memory_mask, parts, pre).join()


def stack(
    x, memory, mask, memory_mask, layers: list[DecoderParts], norm: Map, pre: bool
) -> torch.Tensor:
    """Run layers one after the other, then a norm."""
    for parts in layers:
        x = run(x, memory, mask, memory_mask, parts, pre)
    return norm(x)
