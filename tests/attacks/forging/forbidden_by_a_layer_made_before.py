"""Makes a layer of PyTorch's before any check, and gives it the answer's weights."""
# exercise: attention-module
# where: answer

import torch
from torch import nn

heads = nn.MultiheadAttention(8, 1, batch_first=True, bias=False)


class Attention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model**0.5)

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        q, k, v = x_q @ self.w_q, x_kv @ self.w_k, x_kv @ self.w_v
        weights = q @ k.mT / k.shape[-1] ** 0.5
        if mask is not None:
            weights = weights.masked_fill(~mask, -torch.inf)
        weights = weights.softmax(-1).nan_to_num(nan=0.0)
        heads(torch.zeros(1, 2, 8), torch.zeros(1, 2, 8), torch.zeros(1, 2, 8))
        return weights @ v, weights
