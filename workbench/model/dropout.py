"""Dropout that a CPU draws sooner: eight decisions from one random number."""

from __future__ import annotations

import torch
from torch import nn

LEVELS = 256  # of a byte


class ByteDropout(nn.Dropout):
    """nn.Dropout, but each entry is kept or not by one byte.

    PyTorch draws a number for each entry, and on a CPU that takes longer than the
    products of a small model. Here 64 random bits decide about eight entries. The share
    that is dropped is a multiple of 1/256; what is kept is scaled by that share, so
    that the expectation is exact.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Drop entries in training; input and result have any shape."""
        kept = round(LEVELS * (1 - self.p))
        if not self.training or kept == LEVELS:
            return input
        if not kept:
            return input * 0.0
        count = input.numel()
        limits = torch.iinfo(torch.int64)
        words = torch.randint(limits.min, limits.max, (-(-count // 8),))
        noise = words.view(torch.uint8)[:count].view(input.shape)
        return input * ((noise < kept).to(input.dtype) * (LEVELS / kept))


def drop_by_bytes(model: nn.Module) -> None:
    """Let every nn.Dropout of a model that is on a CPU draw bytes."""
    for module in model.modules():
        if type(module) is nn.Dropout:
            module.__class__ = ByteDropout
