"""A list of small heads, called one by one and concatenated.

Tunstall, von Werra and Wolf 2022, "Natural Language Processing with Transformers",
chapter 3; Raschka 2024, "Build a Large Language Model (From Scratch)", chapter 3, shows
it first, too. A head here owns columns of the layer's matrices.
"""

import torch
from torch import nn

from transformer.attention import scaled_dot_product_attention


class Attention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        queries, keys, values = x_q @ self.w_q, x_kv @ self.w_k, x_kv @ self.w_v
        attn_scores = queries @ keys.transpose(-2, -1)
        if mask is not None:
            attn_scores.masked_fill_(~mask, -torch.inf)
        attn_weights = torch.softmax(attn_scores / keys.shape[-1] ** 0.5, dim=-1)
        return attn_weights @ values, attn_weights


class Head:
    """What a layer does with the columns from first to last."""

    def __init__(self, layer, first, last):
        self.layer, self.columns = layer, slice(first, last)

    def project(self, x, name):
        weight = getattr(self.layer, f"w_{name}")[:, self.columns]
        return x @ weight + getattr(self.layer, f"b_{name}")[self.columns]

    def projected(self, x_q, x_kv):
        return (
            self.project(x_q, "q"),
            self.project(x_kv, "k"),
            self.project(x_kv, "v"),
        )

    def __call__(self, x_q, x_kv, mask):
        return scaled_dot_product_attention(*self.projected(x_q, x_kv), mask)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        width, rest = divmod(d_model, heads)
        if rest:
            raise ValueError(f"{d_model} = {heads} · {width} + {rest}")
        for name in "qkvo":
            start = torch.randn(d_model, d_model) / d_model**0.5
            setattr(self, f"w_{name}", nn.Parameter(start))
            setattr(self, f"b_{name}", nn.Parameter(torch.zeros(d_model)))
        self.heads = [Head(self, i * width, (i + 1) * width) for i in range(heads)]

    def project(self, x_q, x_kv):
        threes = [head.projected(x_q, x_kv) for head in self.heads]
        return [torch.stack(parts, dim=-3) for parts in zip(*threes, strict=True)]

    def attend(self, q, k, v, mask=None):
        heads = zip(q.unbind(-3), k.unbind(-3), v.unbind(-3), strict=True)
        return self.joined(scaled_dot_product_attention(*each, mask) for each in heads)

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        return self.joined(head(x_q, x_kv, mask) for head in self.heads)

    def joined(self, pairs):
        outputs, weights = zip(*pairs, strict=True)
        x = torch.cat(outputs, dim=-1) @ self.w_o + self.b_o
        return x, torch.stack(weights, dim=-3)
