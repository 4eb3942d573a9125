"""A Vision Transformer that reads smaller images than it was built for."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from workbench.model.models import Parts


@contextlib.contextmanager
def use_sizes(model: nn.Module, parts: Parts) -> Iterator[None]:
    """Let a Vision Transformer read images of every size that it can cut, in the block.

    Early in training, small images teach nearly as much, and half the side is a quarter
    of the tokens. The model is the written one but for the table of positions, which is
    fitted to the smaller grid.

    Args:
        model: chapter 8's, of these parts.
        parts: whose ``interpolate_positions`` is used.
    """
    written = model.forward
    model.forward = functools.partial(
        classify, model, written, parts.vision_transformer.interpolate_positions
    )
    try:
        yield
    finally:
        del model.forward


def classify(
    model: Any, written: Any, interpolate_positions: Any, images: torch.Tensor
) -> torch.Tensor:
    """Classify images (B, C, H, W) of one size; logits (B, classes)."""
    own, size = tuple(model.image_size), tuple(images.shape[-2:])
    if size == own:
        result: torch.Tensor = written(images)
        return result
    patch = model.patches.patch_size
    grids = [tuple(side // patch for side in sides) for sides in (own, size)]
    table = model.position.table
    special = len(table) - grids[0][0] * grids[0][1]
    x = model.class_token(model.patches(images))  # (B, N+1, d)
    x = model.position.dropout(x + interpolate_positions(table, *grids, special))
    found: torch.Tensor = model.head(model.encoder(x))
    return found
