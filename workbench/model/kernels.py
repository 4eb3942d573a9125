"""Norms, feed-forward and projections by PyTorch's kernels: the same numbers, sooner.

As they are written, every mean, difference, root and bias is a pass over all tokens; in
mixed precision, adding a bias makes float32 of what was bfloat16. On a CPU a written
layer norm takes seven times as long as the kernel, a feed-forward network twice.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import nn

if TYPE_CHECKING:
    from workbench.model.models import Parts

Forward = Callable[[torch.Tensor], torch.Tensor]
IN_FEED_FORWARD = ("w_1", "b_1", "w_2", "b_2")
IN_ATTENTION = ("heads", "w_q", "b_q", "w_k", "b_k", "w_v", "b_v")


@contextlib.contextmanager
def use_kernels(model: nn.Module, parts: Parts) -> Iterator[None]:
    """Let a model's norms, networks and projections use kernels, in the block.

    Args:
        model: made of these parts.
        parts: LayerNorm, FeedForward and MultiHeadAttention are meant; one with other
            attributes than their exercises ask for stays as it is written.
    """
    found = [(module, kernel_of(module, parts)) for module in model.modules()]
    replaced = [(module, *kernel) for module, kernel in found if kernel]
    for module, method, kernel in replaced:
        setattr(module, method, kernel)
    try:
        yield
    finally:
        for module, method, _ in replaced:
            delattr(module, method)


def kernel_of(module: nn.Module, parts: Parts) -> tuple[str, Callable] | None:
    """Return which of a module's methods can be replaced, and by what."""
    encoder, attention = vars(parts.encoder), vars(parts.multi_head_attention)
    if is_whole(module, encoder.get("LayerNorm"), "gamma", "beta", "epsilon"):
        return "forward", functools.partial(layer_norm, module)
    if is_whole(module, encoder.get("FeedForward"), "activation", *IN_FEED_FORWARD):
        activation: Any = module.activation
        activation = F.gelu if activation is encoder.get("gelu") else activation
        return "forward", functools.partial(feed_forward, module, activation)
    if is_whole(module, attention.get("MultiHeadAttention"), "project", *IN_ATTENTION):
        return "project", functools.partial(project, module, attention["split_heads"])
    return None


def is_whole(module: nn.Module, kind: type | None, *names: str) -> bool:
    """Tell whether a module is of a kind, and has these attributes."""
    known = kind is not None and isinstance(module, kind)
    return known and all(hasattr(module, name) for name in names)


def layer_norm(norm: Any, x: torch.Tensor) -> torch.Tensor:
    """Normalise as LayerNorm does: x and result (..., d_model)."""
    return F.layer_norm(x, norm.gamma.shape, norm.gamma, norm.beta, norm.epsilon)


def feed_forward(network: Any, activation: Forward, x: torch.Tensor) -> torch.Tensor:
    """Expand, activate, contract, as FeedForward does: x and result (..., d_model)."""
    hidden = activation(F.linear(x, network.w_1.mT, network.b_1))  # (..., d_ff)
    return F.linear(hidden, network.w_2.mT, network.b_2)


def project(
    attention: Any,
    split_heads: Callable[[torch.Tensor, int], torch.Tensor],
    x_q: torch.Tensor,
    x_kv: torch.Tensor,
) -> tuple[torch.Tensor, ...]:
    """Project and split heads; what is of one input, in one product.

    Args:
        attention: a MultiHeadAttention.
        split_heads: chapter 5's function.
        x_q: (..., T_q, d_model).
        x_kv: (..., T_k, d_model).

    Returns:
        q (..., heads, T_q, d_k), k and v (..., heads, T_k, d_k).
    """
    inputs = ((x_q, "qkv"),) if x_q is x_kv else ((x_q, "q"), (x_kv, "kv"))
    found: list[torch.Tensor] = []
    for x, names in inputs:
        matrix = torch.cat([getattr(attention, f"w_{name}") for name in names], 1)
        bias = torch.cat([getattr(attention, f"b_{name}") for name in names])
        found += F.linear(x, matrix.mT, bias).chunk(len(names), dim=-1)
    return tuple(split_heads(x, attention.heads) for x in found)
