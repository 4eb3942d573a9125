"""What chapters 1 and 7 decided about the embeddings, undone, for comparison.

An ablation changes one decision and trains again. These two are not arguments of the
students' Transformer, so they are made to a model that has been built.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn


def untie(model: Any, parts: Any) -> nn.Module:
    """Give the logits a matrix of their own, ``output`` (vocab_size, d_model).

    It begins as a copy of the embedding's, and is trained apart from it.
    """

    class Untied(type(model)):  # type: ignore[misc]  # the class that somebody wrote
        def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
            hidden = self.decode(target, self.encode(source), source)
            return parts.tied_logits(hidden, self.output)

    model.output = nn.Parameter(model.embedding.weight.detach().clone())
    model.__class__ = Untied
    return model


def unscale(model: Any) -> nn.Module:
    """Take the factor √d_model from the embedded tokens, not from their table."""
    root = math.sqrt(model.embedding.weight.shape[1])
    model.embedding.register_forward_hook(lambda _, inputs, output: output / root)
    return model


def output_matrix(model: Any) -> torch.Tensor:
    """Return the matrix that scores the vocabulary, (vocab_size, d_model)."""
    return getattr(model, "output", model.embedding.weight)
