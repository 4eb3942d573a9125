"""Layer norm and GELU by one kernel of PyTorch each: the same numbers, sooner."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import nn

if TYPE_CHECKING:
    from workbench.model.models import Parts


@contextlib.contextmanager
def use_kernels(model: nn.Module, parts: Parts) -> Iterator[None]:
    """Let a model's layer norms and GELUs be PyTorch's, in the block.

    As they are written, every mean, difference and root is a pass over all tokens, and
    on a CPU a layer norm takes seven times as long.

    Args:
        model: made of these parts.
        parts: exercises 6.1 and 6.4 say which modules and functions are meant.
    """
    norms = [each for each in model.modules() if is_norm(each, parts)]
    with_gelu = [each for each in model.modules() if has_gelu(each, parts)]
    for norm in norms:
        norm.forward = functools.partial(layer_norm, norm)  # type: ignore[method-assign]
    for each in with_gelu:
        each.activation = F.gelu  # type: ignore[assignment]
    try:
        yield
    finally:
        for norm in norms:
            del norm.forward
        for each in with_gelu:
            each.activation = parts.encoder.gelu


def is_norm(module: nn.Module, parts: Parts) -> bool:
    """Tell whether a module is exercise 6.1's, with the attributes that it asks for."""
    named = all(hasattr(module, name) for name in ("gamma", "beta", "epsilon"))
    return named and isinstance(module, parts.LayerNorm)


def has_gelu(module: nn.Module, parts: Parts) -> bool:
    """Tell whether a module's activation is exercise 6.4's."""
    gelu = getattr(parts.encoder, "gelu", None)
    return gelu is not None and getattr(module, "activation", None) is gelu


def layer_norm(norm: Any, x: torch.Tensor) -> torch.Tensor:
    """Normalise as the module does: x and result (..., d_model)."""
    return F.layer_norm(x, norm.gamma.shape, norm.gamma, norm.beta, norm.epsilon)
