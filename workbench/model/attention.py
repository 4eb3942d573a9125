"""Attention by PyTorch's one kernel, in place of the written one: the same numbers."""

from typing import Any

import torch
import torch.nn.functional as F


def attention_kernel(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any
) -> torch.Tensor:
    """Call PyTorch's kernel, in the precision in which it is fast.

    On a CPU its gradient takes three to ten times as long in bfloat16 as in float32.

    Args:
        q: (..., T_q, d_k).
        k: (..., T_k, d_k).
        v: (..., T_k, d_v).
        options: what `F.scaled_dot_product_attention` takes besides.

    Returns:
        (..., T_q, d_v); float32 where a CPU computes in mixed precision.
    """
    if q.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
        with torch.autocast("cpu", enabled=False):
            q, k, v = q.float(), k.float(), v.float()
            return F.scaled_dot_product_attention(q, k, v, **options)
    return F.scaled_dot_product_attention(q, k, v, **options)


def fused_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, None]:
    """Compute what scaled_dot_product_attention does, without keeping the weights.

    Args:
        q: (..., T_q, d_k).
        k: (..., T_k, d_k).
        v: (..., T_k, d_v).
        mask: boolean, broadcasts to (..., T_q, T_k); True = may attend.

    Returns:
        Output (..., T_q, d_v), zero where a query may attend to nothing, and None.
    """
    if mask is None:
        return attention_kernel(q, k, v), None
    # PyTorch's kernels do not agree about such rows: let them attend to everything,
    # and put zeros in their place. Neither values nor gradients then pass.
    empty = ~mask.any(dim=-1, keepdim=True)  # (..., T_q or 1, 1)
    output = attention_kernel(q, k, v, attn_mask=mask | empty)
    return output.masked_fill(empty, 0.0), None
