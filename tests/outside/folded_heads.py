"""Heads folded into the batch and multiplied by bmm, masks filled with -1e6.

Zhang, Lipton, Li and Smola, "Dive into Deep Learning", chapter 11, and Bloem 2019,
"Transformers from scratch", who scales both sides by a fourth root. Here a query that
may attend to nothing gets zeros.
"""

import torch
from torch import nn


def masked_softmax(scores, mask=None):
    if mask is None:
        return nn.functional.softmax(scores, dim=-1)
    shape = scores.shape
    hidden = ~mask.expand(shape).reshape(-1, shape[-1])
    rows = scores.reshape(-1, shape[-1]).clone()
    rows[hidden] = -1e6
    rows = nn.functional.softmax(rows, dim=-1)
    return rows.masked_fill(hidden, 0.0).reshape(shape)


class AdditiveAttention(nn.Module):
    def __init__(self, d_q, d_k, d_hidden):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_q, d_hidden) / d_q**0.5)
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden) / d_k**0.5)
        self.v = nn.Parameter(torch.randn(d_hidden) / d_hidden**0.5)
        self.dropout = nn.Dropout(0.0)

    def forward(self, x_q, x_kv, mask=None):
        queries, keys = x_q @ self.w_q, x_kv @ self.w_k
        features = torch.tanh(queries.unsqueeze(-2) + keys.unsqueeze(-3))
        scores = (features @ self.v.unsqueeze(-1)).squeeze(-1)
        self.attention_weights = masked_softmax(scores, mask)
        return self.dropout(self.attention_weights) @ x_kv, self.attention_weights


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        if d_model % heads != 0:
            raise ValueError("num_hiddens must be a multiple of num_heads")
        self.num_heads = heads
        self.w_q, self.w_k, self.w_v, self.w_o = (
            nn.Parameter(torch.randn(d_model, d_model) / d_model**0.5) for _ in range(4)
        )
        self.b_q, self.b_k, self.b_v, self.b_o = (
            nn.Parameter(torch.zeros(d_model)) for _ in range(4)
        )

    def fold(self, X):
        """(b, T, d) -> (b·h, T, d/h)."""
        X = X.reshape(X.shape[0], X.shape[1], self.num_heads, -1).permute(0, 2, 1, 3)
        return X.reshape(-1, X.shape[2], X.shape[3])

    def unfold(self, X):
        """(b·h, T, d/h) -> (b, T, d)."""
        X = X.reshape(-1, self.num_heads, X.shape[1], X.shape[2]).permute(0, 2, 1, 3)
        return X.reshape(X.shape[0], X.shape[1], -1)

    def project(self, x_q, x_kv):
        def cut(X, weight, bias):
            folded = self.fold(X.reshape(-1, *X.shape[-2:]) @ weight + bias)
            return folded.reshape(*X.shape[:-2], self.num_heads, X.shape[-2], -1)

        queries = cut(x_q, self.w_q, self.b_q)
        return queries, cut(x_kv, self.w_k, self.b_k), cut(x_kv, self.w_v, self.b_v)

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        return self.attend(*self.project(x_q, x_kv), mask)

    def attend(self, q, k, v, mask=None):
        leading, t, u = q.shape[:-3], q.shape[-2], k.shape[-2]
        queries, keys, values = (each.flatten(0, -3) for each in (q, k, v))
        root = queries.shape[-1] ** 0.25
        scores = torch.bmm(queries / root, keys.transpose(1, 2) / root)
        if mask is not None:
            mask = mask.expand(*leading, t, u).reshape(-1, t, u)
            mask = torch.repeat_interleave(mask, self.num_heads, dim=0)
            scores = scores.masked_fill(~mask, -1e6)
        weights = nn.functional.softmax(scores, dim=-1)
        if mask is not None:
            weights = weights * mask
        output = self.unfold(torch.bmm(weights, values)) @ self.w_o + self.b_o
        weights = weights.reshape(*leading, self.num_heads, t, u)
        return output.reshape(*leading, t, -1), weights
