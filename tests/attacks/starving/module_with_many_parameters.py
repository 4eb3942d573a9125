"""Builds a module with a hundred thousand parameters, each under a long name."""
# exercise: attention-module
# where: answer

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        for number in range(100_000):
            self.register_parameter(f"{number:0500}", nn.Parameter(torch.zeros(1)))
