"""A mask that is added, 0 or the smallest number there is, as in the code of BERT.

Devlin et al. 2018, and its port to PyTorch in Hugging Face's transformers; the zeros
after the softmax as in ESPnet. Norm and GELU are written as there, too.
"""

import math

import torch
from torch import nn

from transformer.encoder import FeedForward
from transformer.multi_head_attention import MultiHeadAttention


def extended(mask, dtype):
    return (1.0 - mask.to(dtype)) * torch.finfo(dtype).min


def masked_softmax(scores, mask=None):
    if mask is None:
        return nn.Softmax(dim=-1)(scores)
    scores = scores + extended(mask, scores.dtype)
    return nn.Softmax(dim=-1)(scores.masked_fill(~mask, -1e30)).masked_fill(~mask, 0.0)


class LayerNorm(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.variance_epsilon = epsilon

    def forward(self, x):
        u = x.mean(-1, keepdim=True)
        s = (x - u).pow(2).mean(-1, keepdim=True)
        x = (x - u) / torch.sqrt(s + self.variance_epsilon)
        return self.gamma * x + self.beta


def gelu(x):
    return x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))


def dead_units(x, activation):
    x = x.detach().clone().requires_grad_(True)
    (torch.relu if activation == "relu" else gelu)(x).sum().backward()
    return x.grad.abs().amax(dim=tuple(range(x.dim() - 1))) == 0


class EncoderLayer(nn.Module):
    """Each half a method that is given its own input again, to add it."""

    def __init__(
        self, d_model, heads, d_ff, dropout=0.0, norm_first=False, activation="relu"
    ):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm_1, self.norm_2 = LayerNorm(d_model), LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def output(self, hidden_states, input_tensor, norm):
        hidden_states = self.dropout(hidden_states) + input_tensor
        return hidden_states if self.norm_first else norm(hidden_states)

    def forward(self, x, mask=None):
        states = self.norm_1(x) if self.norm_first else x
        x = self.output(self.attention(states, states, mask)[0], x, self.norm_1)
        states = self.norm_2(x) if self.norm_first else x
        return self.output(self.feed_forward(states), x, self.norm_2)
