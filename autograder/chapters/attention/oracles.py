"""Attention by PyTorch's own functions: what is right in this chapter and the next."""

import math

import torch
import torch.nn.functional as F

Pair = tuple[torch.Tensor, torch.Tensor]  # output and weights


def weights_of(
    scores: torch.Tensor, mask: torch.Tensor | None = None, axis: int = -1
) -> torch.Tensor:
    """Compute weights by PyTorch; rows with nothing to attend to are zero.

    Their gradient is zero, too: no NaN comes up on the way.
    """
    if mask is not None:
        scores = torch.where(mask, scores, -math.inf)
    empty = scores.isneginf().all(axis, keepdim=True)
    weights = F.softmax(torch.where(empty, 0.0, scores), axis)
    return torch.where(empty, 0.0, weights)


def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
) -> Pair:
    """Compute output and weights by the formula, as what goes wrong is built on it."""
    weights = weights_of(q @ k.mT / math.sqrt(q.shape[-1]), mask)
    return weights @ v, weights


def torch_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
) -> Pair:
    """Compute output and weights by PyTorch; values of one-hot rows give the weights.

    A row with nothing to attend to is zero, and so is its gradient.
    """
    one_hot = torch.eye(k.shape[-2], dtype=k.dtype).expand(*k.shape[:-1], k.shape[-2])
    attend = F.scaled_dot_product_attention
    if mask is None:
        return attend(q, k, v), attend(q, k, one_hot)
    empty = ~mask.any(-1, keepdim=True)
    output, weights = (attend(q, k, x, attn_mask=mask | empty) for x in (v, one_hot))
    return torch.where(empty, 0.0, output), torch.where(empty, 0.0, weights)
