"""Layers by deep copies, residuals by lambdas, as in The Annotated Transformer.

Rush 2018, "The Annotated Transformer"; Huang et al. 2022, its second edition. There the
copies are drawn anew, and so they are here.
"""

import copy
import math

import torch
from torch import nn

from transformer.encoder import FeedForward, LayerNorm


def clones(module, count):
    copies = nn.ModuleList([copy.deepcopy(module) for _ in range(count)])
    for parameter in copies.parameters():
        if parameter.dim() > 1:
            nn.init.xavier_uniform_(parameter)
    return copies


def attention(query, key, value, mask=None, dropout=None):
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p_attn = scores.softmax(dim=-1)
    if mask is not None:
        p_attn = p_attn.masked_fill(mask == 0, 0.0)
    dropped = p_attn if dropout is None else dropout(p_attn)
    return torch.matmul(dropped, value), p_attn


class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_length=5_000, dropout=0.0):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        table = torch.zeros(max_length, d_model)
        position = torch.arange(max_length).unsqueeze(1)
        rates = torch.exp(torch.arange(0, d_model, 2) * -(math.log(1e4) / d_model))
        table[:, 0::2] = torch.sin(position * rates)
        table[:, 1::2] = torch.cos(position * rates)
        self.register_buffer("table", table, persistent=False)

    def forward(self, x):
        if x.size(-2) > len(self.table):
            raise ValueError("too many tokens")
        return self.dropout(x + self.table[: x.size(-2)].requires_grad_(False))


def causal_mask(length):
    ahead = torch.triu(torch.ones(length, length), diagonal=1).type(torch.uint8)
    return ahead == 0


def scaled_dot_product_attention(q, k, v, mask=None):
    return attention(q, k, v, mask)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads, dropout=0.0):
        super().__init__()
        if d_model % heads:
            raise ValueError("every head needs the same width")
        self.d_k, self.h = d_model // heads, heads
        for name in "qkvo":
            start = torch.randn(d_model, d_model) / math.sqrt(d_model)
            self.register_parameter(f"w_{name}", nn.Parameter(start))
            self.register_parameter(f"b_{name}", nn.Parameter(torch.zeros(d_model)))
        self.attn = None
        self.dropout = nn.Dropout(p=dropout)

    def project(self, x_q, x_kv):
        return tuple(
            (x @ weight + bias).view(*x.shape[:-1], self.h, self.d_k).transpose(-3, -2)
            for x, weight, bias in (
                (x_q, self.w_q, self.b_q),
                (x_kv, self.w_k, self.b_k),
                (x_kv, self.w_v, self.b_v),
            )
        )

    def attend(self, q, k, v, mask=None):
        mask = None if mask is None else mask.unsqueeze(-3)
        x, self.attn = attention(q, k, v, mask, self.dropout)
        x = x.transpose(-3, -2).contiguous().flatten(-2)
        return x @ self.w_o + self.b_o, self.attn

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        return self.attend(*self.project(x_q, x_kv), mask)


def connect(layer, x, norm, sublayer):
    """Add a sub-layer's output, with the norm before or after it."""
    if layer.norm_first:
        return x + layer.dropout(sublayer(norm(x)))
    return norm(x + layer.dropout(sublayer(x)))


class EncoderLayer(nn.Module):
    def __init__(
        self, d_model, heads, d_ff, dropout=0.0, norm_first=False, activation="relu"
    ):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm_1, self.norm_2 = clones(LayerNorm(d_model), 2)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x, mask=None):
        x = connect(self, x, self.norm_1, lambda x: self.attention(x, x, mask)[0])
        return connect(self, x, self.norm_2, self.feed_forward)


class Encoder(nn.Module):
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
        layer = EncoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
        self.layers = clones(layer, layers)
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


class DecoderLayer(nn.Module):
    def __init__(
        self, d_model, heads, d_ff, dropout=0.0, norm_first=False, activation="relu"
    ):
        super().__init__()
        attentions = clones(MultiHeadAttention(d_model, heads), 2)
        self.self_attention, self.cross_attention = attentions
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm_1, self.norm_2, self.norm_3 = clones(LayerNorm(d_model), 3)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x, memory, mask=None, memory_mask=None):
        m = memory
        look_back = lambda x: self.self_attention(x, x, mask)[0]  # noqa: E731
        look_across = lambda x: self.cross_attention(x, m, memory_mask)[0]  # noqa: E731
        x = connect(self, x, self.norm_1, look_back)
        x = connect(self, x, self.norm_2, look_across)
        return connect(self, x, self.norm_3, self.feed_forward)


class Decoder(nn.Module):
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
        layer = DecoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
        self.layers = clones(layer, layers)
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(self, x, memory, mask=None, memory_mask=None):
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask)
        return self.norm(x)
