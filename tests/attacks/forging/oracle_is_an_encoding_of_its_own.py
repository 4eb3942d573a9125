"""Adds no positions: the table that its own function of the exercise before returns."""
# chapter: 03_positional_encoding
# exercise: sinusoidal-module
# where: answer

import torch
from torch import nn


def sinusoidal_positional_encoding(length, d_model, base=10_000.0):
    return torch.zeros(length, d_model)


class SinusoidalPositionalEncoding(nn.Module):
    def __init__(self, d_model, max_length, dropout=0.0):
        super().__init__()
        table = torch.zeros(max_length, d_model)
        self.register_buffer("table", table, persistent=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        if x.shape[-2] > len(self.table):
            raise ValueError("too long")
        return self.dropout(x + self.table[: x.shape[-2]])
