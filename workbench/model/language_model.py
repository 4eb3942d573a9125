"""A language model: embedding, blocks, and the embedding's table once more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import nn

from workbench.model.blocks import Cache, build_block, make_norm, turns_of

if TYPE_CHECKING:
    from workbench.model.models import LanguageModelConfig, Parts


class LanguageModel(nn.Module):
    """Scores the next token at each position.

    Submodules: embedding, position (only if learned), blocks, norm, dropout. The logits
    are the products with the embedding's rows. ``fused`` says whether attention is
    PyTorch's one kernel or chapter 4's as it is written: the same numbers.
    """

    turns: torch.Tensor | None

    def __init__(self, config: LanguageModelConfig, parts: Parts) -> None:
        """Build the parts, with new parameters."""
        super().__init__()
        self.fused, self.max_length = False, config.max_length
        self.embedding: Any = parts.Embedding(config.vocab_size, config.d_model)
        self.position: Any = None
        turns = None
        if config.positions == "learned":
            self.position = parts.LearnedPositionalEncoding(
                config.max_length, config.d_model
            )
        else:
            d_k = config.d_model // config.heads
            turns = turns_of(config.max_length, d_k, parts)
        self.register_buffer("turns", turns, persistent=False)
        self.dropout = nn.Dropout(config.dropout)
        self.blocks = nn.ModuleList(
            build_block(config, parts) for _ in range(config.layers)
        )
        self.norm = make_norm(config, parts)
        self.tied_logits = parts.tied_logits

    def forward(
        self, ids: torch.Tensor, caches: list[Cache] | None = None
    ) -> torch.Tensor:
        """Score what follows.

        Args:
            ids: (B, T), integers.
            caches: what ``new_caches`` gave, if ids continue what was read with it.

        Returns:
            Logits (B, T, V).

        Raises:
            ValueError: more positions than the model has.
        """
        start, length = read_by(caches), ids.shape[-1]
        end = start + length
        if end > self.max_length:
            raise ValueError(f"{end} tokens, but {self.max_length} positions")
        x = self.embedding(ids)  # (B, T, d)
        if self.position is not None:  # it begins at 0: let it count what was read
            x = self.position(F.pad(x, (0, 0, start, 0)))[..., start:, :]
        x = self.dropout(x)
        turns = None if self.turns is None else self.turns[start:end]
        for number, block in enumerate(self.blocks):
            cache = None if caches is None else caches[number]
            x = block(x, turns, cache, self.fused)
        return self.tied_logits(self.norm(x), self.embedding.weight)

    def new_caches(self) -> list[Cache]:
        """Return an empty cache for each block."""
        return [{} for _ in self.blocks]


def read_by(caches: list[Cache] | None) -> int:
    """Return how many positions caches hold."""
    return caches[0]["k"].shape[-2] if caches and caches[0] else 0
