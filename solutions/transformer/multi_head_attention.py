"""Multi-head attention: the answers to the exercises of chapter 5.

Generated from solutions/05_multi_head_attention.md by `make exercises`; change that file.
"""

import math

import torch
from torch import nn

from transformer.attention import scaled_dot_product_attention


def split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    """Give each head its piece of the features of all tokens.

    Args:
        x: (..., T, d).
        heads: how many pieces; it must divide d.

    Returns:
        (..., heads, T, d/heads); head 0 has the first features.

    Raises:
        ValueError: if heads does not divide d.

    Defined in Exercise 5.1 · Split into heads.
    """
    # 1. Refuse what cannot be divided. 2. Cut the last axis in two.
    # 3. Exchange tokens and heads.
    d_model = x.shape[-1]
    if d_model % heads:
        raise ValueError(f"{d_model} features are not divisible by {heads} heads")
    pieces = x.unflatten(-1, (heads, d_model // heads))  # (..., T, heads, d/heads)
    return pieces.transpose(-3, -2)  # (..., heads, T, d/heads)


def merge_heads(x: torch.Tensor) -> torch.Tensor:
    """Put the heads of every token side by side.

    Args:
        x: (..., heads, T, d_v).

    Returns:
        (..., T, heads·d_v), head 0 first.

    Defined in Exercise 5.2 · Merge the heads.
    """
    # 1. Exchange heads and tokens. 2. Join the last two axes.
    return x.transpose(-3, -2).flatten(-2)


def loop_of_heads(
    x_q: torch.Tensor,
    x_kv: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
    w_o: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    """Run multi-head attention one head after the other.

    Vaswani et al. (2017), section 3.2.2.

    Args:
        x_q: (..., T_q, d_model).
        x_kv: (..., T_k, d_model).
        w_q: (heads, d_model, d_k).
        w_k: (heads, d_model, d_k).
        w_v: (heads, d_model, d_v).
        w_o: (heads·d_v, d_model).
        mask: boolean, broadcasts to (..., T_q, T_k); True = may attend. The same for
            all heads.

    Returns:
        (..., T_q, d_model).

    Defined in Exercise 5.3 · One head after the other.
    """
    # 1. The output of each head. 2. Side by side. 3. Mixed by w_o.
    outputs = []
    for head in range(len(w_q)):
        q, k, v = x_q @ w_q[head], x_kv @ w_k[head], x_kv @ w_v[head]
        output, _ = scaled_dot_product_attention(q, k, v, mask)
        outputs.append(output)  # (..., T_q, d_v)
    return torch.cat(outputs, dim=-1) @ w_o


def sum_over_heads(z: torch.Tensor, w_o: torch.Tensor) -> torch.Tensor:
    """Add up what each head contributes to the output.

    Args:
        z: (..., heads, T, d_v), the output of each head.
        w_o: (heads·d_v, d_model); head i owns the rows i·d_v to (i + 1)·d_v - 1.

    Returns:
        (..., T, d_model).

    Defined in Exercise 5.4 · A sum over heads.
    """
    # 1. Each head's rows of w_o. 2. Its contribution. 3. The sum over the heads.
    heads, _, d_v = z.shape[-3:]
    blocks = w_o.unflatten(0, (heads, d_v))  # (heads, d_v, d_model)
    contributions = z @ blocks  # (..., heads, T, d_model)
    return contributions.sum(dim=-3)


class MultiHeadAttention(nn.Module):
    """Attend with several heads at once, and mix what they found.

    Parameters: w_q, w_k, w_v, w_o (d_model, d_model); b_q, b_k, b_v, b_o (d_model,).
    Each head has the width d_k = d_v = d_model/heads. A mask never has an axis for the
    heads: (T_q, T_k), (B, T_q, T_k) or (B, 1, T_k); True = may attend.

    Defined in Exercise 5.5 · The multi-head attention layer.
    """

    def __init__(self, d_model: int, heads: int) -> None:
        """Draw the matrices with a standard deviation of 1/√d_model; biases are 0.

        Raises:
            ValueError: if heads does not divide d_model.
        """
        super().__init__()
        # 1. Check, keep heads, make the parameters.
        if d_model % heads:
            raise ValueError(f"d_model {d_model} is not divisible by {heads} heads")
        self.heads = heads
        for name in ("q", "k", "v", "o"):
            matrix = torch.randn(d_model, d_model) / math.sqrt(d_model)
            setattr(self, f"w_{name}", nn.Parameter(matrix))
            setattr(self, f"b_{name}", nn.Parameter(torch.zeros(d_model)))

    def project(
        self, x_q: torch.Tensor, x_kv: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Project and split.

        Args:
            x_q: (..., T_q, d_model).
            x_kv: (..., T_k, d_model).

        Returns:
            q (..., heads, T_q, d_k), k and v (..., heads, T_k, d_k).
        """
        # 2. Queries from x_q, keys and values from x_kv; each split into heads.
        q = split_heads(x_q @ self.w_q + self.b_q, self.heads)
        k = split_heads(x_kv @ self.w_k + self.b_k, self.heads)
        v = split_heads(x_kv @ self.w_v + self.b_v, self.heads)
        return q, k, v

    def attend(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Attend in all heads, merge them and mix them.

        Args:
            q: (..., heads, T_q, d_k).
            k: (..., heads, T_k, d_k).
            v: (..., heads, T_k, d_k).
            mask: boolean, broadcasts to (..., T_q, T_k), without an axis for heads.

        Returns:
            Output (..., T_q, d_model) and weights (..., heads, T_q, T_k).
        """
        # 3. An axis for the mask, attention, merge, output projection.
        if mask is not None:
            mask = mask.unsqueeze(-3)  # (..., 1, T_q, T_k)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o + self.b_o, weights

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
            mask: boolean, broadcasts to (..., T_q, T_k), without an axis for heads.

        Returns:
            Output (..., T_q, d_model) and weights (..., heads, T_q, T_k).
        """
        # 4. Self-attention if x_kv is None. Project, then attend.
        x_kv = x_q if x_kv is None else x_kv
        q, k, v = self.project(x_q, x_kv)
        return self.attend(q, k, v, mask)


def attention_from_torch(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Translate a state dict of nn.MultiheadAttention for MultiHeadAttention.

    Args:
        state: "in_proj_weight" (3·d_model, d_model), "in_proj_bias" (3·d_model,),
            "out_proj.weight" (d_model, d_model), "out_proj.bias" (d_model,).

    Returns:
        "w_q", "w_k", "w_v", "w_o" (d_model, d_model), "b_q", "b_k", "b_v", "b_o"
        (d_model,).

    Defined in Exercise 5.6 · Weights from PyTorch.
    """
    # 1. Three matrices and three biases. 2. Transpose. 3. The output projection.
    w_q, w_k, w_v = state["in_proj_weight"].chunk(3)
    b_q, b_k, b_v = state["in_proj_bias"].chunk(3)
    w_o, b_o = state["out_proj.weight"], state["out_proj.bias"]
    matrices = {"w_q": w_q.T, "w_k": w_k.T, "w_v": w_v.T, "w_o": w_o.T}
    return {**matrices, "b_q": b_q, "b_k": b_k, "b_v": b_v, "b_o": b_o}


def without_heads(w_o: torch.Tensor, heads: int, removed: list[int]) -> torch.Tensor:
    """Copy an output projection, with nothing passing from some heads.

    Args:
        w_o: (heads·d_v, d_model).
        heads: number of heads.
        removed: the heads to switch off, counted from 0; may be empty.

    Returns:
        (heads·d_v, d_model), the rows of the removed heads zero; w_o is unchanged.

    Defined in Exercise 5.8 · Switch heads off.
    """
    # 1. A copy. 2. Zeros in the rows of each removed head.
    result = w_o.clone()
    d_v = w_o.shape[0] // heads
    for head in removed:
        result[head * d_v : (head + 1) * d_v] = 0.0
    return result


def repeat_heads(x: torch.Tensor, times: int) -> torch.Tensor:
    """Give each of a group of query heads its copy of the group's keys or values.

    Args:
        x: (..., kv_heads, T, d_k).
        times: how many query heads share a head.

    Returns:
        (..., kv_heads·times, T, d_k); head i stands at i·times to (i + 1)·times - 1.
    """
    return x.repeat_interleave(times, dim=-3)


class GroupedQueryAttention(nn.Module):
    """Attend with many heads of queries and few heads of keys and values.

    Ainslie et al. (2023). Parameters: w_q, w_o (d_model, d_model), w_k, w_v
    (d_model, kv_heads·d_model/heads); no biases. Masks as in MultiHeadAttention.

    Defined in Exercise 5.10 · Grouped-query attention.
    """

    def __init__(self, d_model: int, heads: int, kv_heads: int) -> None:
        """Draw the matrices with a standard deviation of 1/√d_model.

        Raises:
            ValueError: if heads does not divide d_model, or kv_heads not heads.
        """
        super().__init__()
        # 1. Check both divisions, keep the numbers, make the parameters.
        if d_model % heads or heads % kv_heads:
            raise ValueError(f"cannot divide {d_model} by {heads}, or it by {kv_heads}")
        self.heads, self.kv_heads = heads, kv_heads
        d_kv = kv_heads * d_model // heads
        for name, width in (("q", d_model), ("k", d_kv), ("v", d_kv), ("o", d_model)):
            matrix = torch.randn(d_model, width) / math.sqrt(d_model)
            setattr(self, f"w_{name}", nn.Parameter(matrix))

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
            mask: boolean, broadcasts to (..., T_q, T_k), without an axis for heads.

        Returns:
            Output (..., T_q, d_model) and weights (..., heads, T_q, T_k).
        """
        # 2. Project and split. 3. Repeat keys and values. 4. Attend, merge, mix.
        x_kv = x_q if x_kv is None else x_kv
        times = self.heads // self.kv_heads
        q = split_heads(x_q @ self.w_q, self.heads)
        k = repeat_heads(split_heads(x_kv @ self.w_k, self.kv_heads), times)
        v = repeat_heads(split_heads(x_kv @ self.w_v, self.kv_heads), times)
        mask = None if mask is None else mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o, weights
