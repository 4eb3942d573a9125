"""What can be read out of a language model while it reads: weights, residual stream."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from workbench.data.text_tokenizer import TextTokenizer
from workbench.model import models
from workbench.model.blocks import rotate
from workbench.model.language_model import LanguageModel
from workbench.use import results


def load(name: str) -> tuple[LanguageModel, TextTokenizer]:
    """Load a recorded language model with its tokenizer, in evaluation mode.

    Raises:
        WorkbenchError: no model of this name is kept.
    """
    folder = results.model_folder(name)
    return models.load(folder)[0], TextTokenizer.load(folder)


@torch.no_grad()
def attention_weights(model: LanguageModel, ids: torch.Tensor) -> torch.Tensor:
    """Return how all heads attend while a text is read.

    Args:
        model: a LanguageModel, in evaluation mode.
        ids: (T,), integers.

    Returns:
        (layers, heads, T, T), rows sum to 1.
    """
    found = []

    def look(block: Any, given: tuple, _: torch.Tensor) -> None:
        x, turns = given[:2]
        q, k, _ = block.project(x)
        if turns is not None:
            q, k = rotate(q, turns), rotate(k, turns)
        k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
        scores = q @ k.mT / math.sqrt(q.shape[-1])  # (1, heads, T, T)
        later = torch.ones_like(scores, dtype=torch.bool).triu(1)
        found.append(scores.masked_fill(later, -math.inf).softmax(dim=-1)[0])

    with hooked(model, look):
        model(ids.unsqueeze(0))
    return torch.stack(found)


@torch.no_grad()
def residual_stream(model: LanguageModel, ids: torch.Tensor) -> torch.Tensor:
    """Return the residual stream while a text is read.

    Args:
        model: a LanguageModel, in evaluation mode.
        ids: (T,), integers.

    Returns:
        (layers + 1, T, d_model): the embeddings, then what each block gives.
    """
    found: list[torch.Tensor] = []

    def look(_: nn.Module, given: tuple, output: torch.Tensor) -> None:
        found.extend([given[0], output] if not found else [output])

    with hooked(model, look):
        model(ids.unsqueeze(0))
    return torch.cat(found)


@contextlib.contextmanager
def hooked(model: LanguageModel, look: Callable) -> Iterator[None]:
    """Show each block, what it is given and what it gives, inside of this."""
    hooks = [block.register_forward_hook(look) for block in model.blocks]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
