"""Attention: the answers to the exercises of chapter 4.

Generated from solutions/04_attention.md by `make exercises`; change that file.
"""

import math

import torch
from torch import nn


def softmax(scores: torch.Tensor) -> torch.Tensor:
    """Turn scores into weights: positive, and each row sums to 1.

    Args:
        scores: (..., n); -inf means "never" and gets the weight 0.

    Returns:
        Weights (..., n) in [0, 1]. A row of only -inf gives a row of zeros.

    Defined in Exercise 4.1 · Softmax.
    """
    # 1. The largest score of each row; 0 for a row of only -inf.
    # 2. The exponentials of what exceeds it.
    # 3. Divide by their sum; by 1 where the sum is 0.
    # It cancels out again, so no gradient has to go through it.
    largest = scores.detach().amax(dim=-1, keepdim=True)  # (..., 1)
    largest = largest.masked_fill(largest == -math.inf, 0.0)
    exponentials = torch.exp(scores - largest)  # (..., n)
    total = exponentials.sum(dim=-1, keepdim=True)  # (..., 1)
    return exponentials / total.masked_fill(total == 0, 1.0)


def project_qkv(
    x_q: torch.Tensor,
    x_kv: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Project one sequence to queries and one to keys and values.

    Args:
        x_q: (..., T_q, d_model), the sequence that asks.
        x_kv: (..., T_k, d_model), the sequence that is looked up.
        w_q: (d_model, d_k).
        w_k: (d_model, d_k).
        w_v: (d_model, d_v).

    Returns:
        q (..., T_q, d_k), k (..., T_k, d_k) and v (..., T_k, d_v).

    Defined in Exercise 4.3 · Queries, keys and values.
    """
    # 1. Queries from x_q. 2. Keys and values from x_kv. 3. Return all three.
    q = x_q @ w_q  # (..., T_q, d_k)
    k = x_kv @ w_k  # (..., T_k, d_k)
    v = x_kv @ w_v  # (..., T_k, d_v)
    return q, k, v


def causal_mask(length: int) -> torch.Tensor:
    """Let every position attend to itself and to the positions before it.

    Args:
        length: T, the number of positions.

    Returns:
        Boolean (T, T), True where query i (row) may attend to key j (column).

    Defined in Exercise 4.4 · The causal mask.
    """
    # 1. Compare positions: j <= i. 2. Return booleans.
    return torch.ones(length, length, dtype=torch.bool).tril()


def padding_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    """Let every query attend to the real tokens of its sequence only.

    Args:
        lengths: (B,), how many real tokens each sequence has; the rest is padding.
        max_length: T, the width of the padded batch.

    Returns:
        Boolean (B, 1, T), True for real tokens; it broadcasts over the queries.

    Defined in Exercise 4.5 · The padding mask.
    """
    # 1. Compare each position with each length. 2. Leave an axis for the queries.
    positions = torch.arange(max_length, device=lengths.device)  # (T,)
    return positions < lengths[:, None, None]  # (B, 1, T)


def masked_softmax(
    scores: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    """Turn scores into weights, 0 where the mask is False.

    Args:
        scores: (..., T_q, T_k).
        mask: boolean, broadcasts to the shape of the scores; True = may attend. None
            allows everything.

    Returns:
        Weights (..., T_q, T_k). Each row sums to 1 over the keys that are allowed; a
        row in which none is allowed is zero, and so is its gradient.

    Defined in Exercise 4.6 · Spot the bug: masked softmax.
    """
    # 1. Put -inf where the mask is False. 2. Take the softmax of the rows.
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return softmax(scores)


def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Mix the values with weights from the queries and keys.

    Vaswani et al. (2017), equation 1; the mask is put in before the softmax.

    Args:
        q: (..., T_q, d_k).
        k: (..., T_k, d_k).
        v: (..., T_k, d_v).
        mask: boolean, broadcasts to (..., T_q, T_k); True = may attend.

    Returns:
        Output (..., T_q, d_v) and weights (..., T_q, T_k).

    Defined in Exercise 4.7 · Scaled dot-product attention.
    """
    # 1. Scores: every query times every key. 2. Divide by the root of d_k.
    # 3. Weights. 4. Mix the rows of the values.
    d_k = q.shape[-1]
    scores = q @ k.transpose(-2, -1) / math.sqrt(d_k)  # (..., T_q, T_k)
    weights = masked_softmax(scores, mask)  # (..., T_q, T_k)
    output = weights @ v  # (..., T_q, d_v)
    return output, weights


class Attention(nn.Module):
    """Attend from one sequence to another, or to itself.

    Parameters: w_q (d_model, d_k), w_k (d_model, d_k), w_v (d_model, d_v); no bias.

    Defined in Exercise 4.8 · The attention layer.
    """

    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        """Draw the parameters with a standard deviation of 1/√d_model."""
        super().__init__()
        # 1. The three parameters.
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / math.sqrt(d_model))
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / math.sqrt(d_model))
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / math.sqrt(d_model))

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Attend from x_q to x_kv; to x_q itself if x_kv is None.

        Args:
            x_q: (..., T_q, d_model).
            x_kv: (..., T_k, d_model).
            mask: boolean, broadcasts to (..., T_q, T_k); True = may attend.

        Returns:
            Output (..., T_q, d_v) and weights (..., T_q, T_k).
        """
        # 2. Self-attention if x_kv is None. 3. Project, then attend.
        x_kv = x_q if x_kv is None else x_kv
        q, k, v = project_qkv(x_q, x_kv, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q, k, v, mask)


def softmax_jacobian(probabilities: torch.Tensor) -> torch.Tensor:
    """Differentiate softmax at scores that gave these probabilities.

    Args:
        probabilities: (..., n), the results p of a softmax.

    Returns:
        (..., n, n), entry [i, j] = the derivative of p_i by score j.

    Defined in Exercise 4.11 · The derivative of softmax.
    """
    # 1. p on the diagonal. 2. Minus p as a column times p as a row.
    column = probabilities.unsqueeze(-1)  # (..., n, 1)
    row = probabilities.unsqueeze(-2)  # (..., 1, n)
    return torch.diag_embed(probabilities) - column * row  # (..., n, n)


class AdditiveAttention(nn.Module):
    """Attend by a small network instead of a dot product: Bahdanau et al. (2015).

    Parameters: w_q (d_q, d_hidden), w_k (d_k, d_hidden), v (d_hidden,); no bias.

    Defined in Exercise 4.12 · Additive attention.
    """

    def __init__(self, d_q: int, d_k: int, d_hidden: int) -> None:
        """Draw each parameter with a standard deviation of 1/√(its first size)."""
        super().__init__()
        # 1. The three parameters.
        self.w_q = nn.Parameter(torch.randn(d_q, d_hidden) / math.sqrt(d_q))
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden) / math.sqrt(d_k))
        self.v = nn.Parameter(torch.randn(d_hidden) / math.sqrt(d_hidden))

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Attend from x_q to x_kv, whose rows are keys and values.

        Args:
            x_q: (..., T_q, d_q).
            x_kv: (..., T_k, d_k).
            mask: boolean, broadcasts to (..., T_q, T_k); True = may attend.

        Returns:
            Output (..., T_q, d_k) and weights (..., T_q, T_k).
        """
        # 2. Every projected query plus every projected key. 3. tanh, then v.
        # 4. Weights, and with them a mix of the rows of x_kv.
        queries = (x_q @ self.w_q).unsqueeze(-2)  # (..., T_q, 1, d_hidden)
        keys = (x_kv @ self.w_k).unsqueeze(-3)  # (..., 1, T_k, d_hidden)
        scores = torch.tanh(queries + keys) @ self.v  # (..., T_q, T_k)
        weights = masked_softmax(scores, mask)  # (..., T_q, T_k)
        return weights @ x_kv, weights


class AttentionPooling(nn.Module):
    """Average the real tokens with weights that a trained query chooses.

    Parameters: query (d_model,).

    Defined in Exercise 4.14 · Pooling by attention.
    """

    def __init__(self, d_model: int) -> None:
        """Draw the query with a standard deviation of 0.02."""
        super().__init__()
        # 1. The parameter.
        self.query = nn.Parameter(0.02 * torch.randn(d_model))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Pool each sequence into one vector.

        Args:
            hidden: (B, T, d_model).
            mask: boolean (B, 1, T), True for real tokens; None: all are real.

        Returns:
            Pooled vectors (B, d_model) and weights (B, T), which sum to 1; zeros for a
            sequence without real tokens.
        """
        # 2. Scores. 3. Weights of the real tokens. 4. The weighted sum, and the weights.
        scores = hidden @ self.query / math.sqrt(hidden.shape[-1])  # (B, T)
        weights = masked_softmax(scores, None if mask is None else mask[:, 0])
        return (weights[..., None] * hidden).sum(dim=1), weights
