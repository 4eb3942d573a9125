"""One product for queries, keys and values, cut in three, as in GPT-2.

Radford et al. 2019; the same in minGPT, nanoGPT and vit-pytorch.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        if d_model % heads:
            raise ValueError(f"n_embd {d_model}, n_head {heads}")
        self.n_embd, self.n_head = d_model, heads
        for name in ("q", "k", "v", "o"):
            weight = torch.empty(d_model, d_model)
            nn.init.normal_(weight, mean=0.0, std=d_model**-0.5)
            setattr(self, f"w_{name}", nn.Parameter(weight))
            setattr(self, f"b_{name}", nn.Parameter(torch.zeros(d_model)))
        self.attn_dropout, self.resid_dropout = nn.Dropout(0.0), nn.Dropout(0.0)

    def c_attn(self, x, names):
        weight = torch.cat([getattr(self, f"w_{name}") for name in names], dim=1)
        bias = torch.cat([getattr(self, f"b_{name}") for name in names])
        parts = (x @ weight + bias).split(self.n_embd, dim=-1)
        size = self.n_head, self.n_embd // self.n_head
        return [part.view(*x.shape[:-1], *size).transpose(-3, -2) for part in parts]

    def project(self, x_q, x_kv):
        return *self.c_attn(x_q, "q"), *self.c_attn(x_kv, "kv")

    def forward(self, x_q, x_kv=None, mask=None):
        if x_kv is None:
            return self.attend(*self.c_attn(x_q, "qkv"), mask)
        return self.attend(*self.project(x_q, x_kv), mask)

    def attend(self, q, k, v, mask=None):
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        if mask is not None:
            hidden = ~mask.unsqueeze(-3)
            att = att.masked_fill(hidden, torch.finfo(att.dtype).min)
            att = F.softmax(att, dim=-1).masked_fill(hidden, 0.0)
        else:
            att = F.softmax(att, dim=-1)
        y = self.attn_dropout(att) @ v
        y = y.transpose(-3, -2).contiguous().flatten(-2)
        return self.resid_dropout(y @ self.w_o + self.b_o), att


class FeedForward(nn.Module):
    """Its matrices used as GPT-2's Conv1D: addmm over the tokens of all sentences."""

    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__()
        self.act = {"relu": nn.ReLU(), "gelu": nn.GELU()}.get(activation)
        if self.act is None:
            raise ValueError(activation)
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) * d_model**-0.5)
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) * d_ff**-0.5)
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        hidden = self.act(torch.addmm(self.b_1, x.reshape(-1, x.size(-1)), self.w_1))
        return torch.addmm(self.b_2, hidden, self.w_2).view(x.shape)


class Encoder(nn.Module):
    """Blocks in a plain list first, shortcuts by a variable of their own."""

    def __init__(
        self,
        layers,
        d_model,
        heads,
        d_ff,
        dropout=0.0,
        norm_first=False,
        activation="relu",
    ):
        super().__init__()
        settings = (d_model, heads, d_ff, dropout, norm_first, activation)
        self.layers = nn.ModuleList([EncoderLayer(*settings) for _ in range(layers)])
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(self, x, mask=None):
        for block in self.layers:
            x = block(x, mask)
        return self.norm(x)


class EncoderLayer(nn.Module):
    def __init__(
        self, d_model, heads, d_ff, dropout=0.0, norm_first=False, activation="relu"
    ):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm_1, self.norm_2 = LayerNorm(d_model), LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        shortcut = x
        x = self.norm_1(x) if self.norm_first else x
        x, _ = self.attention(x, mask=mask)
        x = self.dropout(x) + shortcut
        x = x if self.norm_first else self.norm_1(x)
        shortcut = x
        x = self.norm_2(x) if self.norm_first else x
        x = self.dropout(self.feed_forward(x)) + shortcut
        return x if self.norm_first else self.norm_2(x)


class LayerNorm(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.eps = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True, unbiased=False)
        return self.gamma * ((x - mean) * torch.rsqrt(var + self.eps)) + self.beta
