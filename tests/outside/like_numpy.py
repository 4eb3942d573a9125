"""Tables and masks made by NumPy, sums written out, as in early ports to PyTorch.

Huang 2017, attention-is-all-you-need-pytorch; Jung 2019, nlp-tutorial.
"""

import numpy as np
import torch
from torch import nn


def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    if d_model % 2:
        raise ValueError("an odd width")

    def angles(position):
        return [
            position / np.power(base, 2 * (j // 2) / d_model) for j in range(d_model)
        ]

    table = np.array([angles(position) for position in range(length)])
    table[:, 0::2] = np.sin(table[:, 0::2])
    table[:, 1::2] = np.cos(table[:, 1::2])
    return torch.FloatTensor(table)


def softmax(scores):
    top = scores.max(-1, keepdim=True)[0]
    top = torch.where(torch.isinf(top), torch.zeros_like(top), top)
    e_x = torch.exp(scores - top)
    total = e_x.sum(-1, keepdim=True)
    return e_x / (total + (total == 0).to(total.dtype))


def causal_mask(length):
    ahead = np.triu(np.ones((length, length)), k=1).astype("uint8")
    return torch.from_numpy(ahead) == 0


def padding_mask(lengths, max_length):
    rows = [[1] * n + [0] * (max_length - n) for n in lengths.tolist()]
    return torch.from_numpy(np.array(rows, dtype=bool))[:, np.newaxis, :]


class RMSNorm(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.from_numpy(np.ones(d_model, dtype=np.float32)))

    def forward(self, x):
        square = (x * x).sum(axis=-1, keepdims=True) / x.shape[-1]
        return x * (square + self.epsilon) ** -0.5 * self.gamma


class LayerNorm(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.from_numpy(np.ones(d_model, dtype=np.float32)))
        self.beta = nn.Parameter(torch.from_numpy(np.zeros(d_model, dtype=np.float32)))

    def forward(self, x):
        mu = x.sum(axis=-1, keepdims=True) / x.shape[-1]
        square = ((x - mu) ** 2).sum(axis=-1, keepdims=True) / x.shape[-1]
        return (x - mu) * (square + self.epsilon) ** -0.5 * self.gamma + self.beta
