"""Linear maps as convolutions of size 1, patches as a convolution with a stride.

The first as in Huang 2017, attention-is-all-you-need-pytorch; the second as in
Dosovitskiy et al. 2020, equation 1, in the code of timm. The norm is a group norm with
one group (Wu and He 2018, section 3).
"""

import torch
import torch.nn.functional as F
from torch import nn


class LayerNorm(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.epsilon = epsilon

    def forward(self, x):
        rows = x.reshape(-1, x.shape[-1])
        rows = F.group_norm(rows, 1, self.gamma, self.beta, self.epsilon)
        return rows.reshape(x.shape)


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__()
        if activation not in ("relu", "gelu"):
            raise ValueError(f"no activation {activation}")
        self.act = getattr(F, activation)
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) / d_model**0.5)
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / d_ff**0.5)
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        tokens = x.reshape(-1, *x.shape[-2:]).transpose(1, 2)
        hidden = self.act(F.conv1d(tokens, self.w_1.T.unsqueeze(-1), self.b_1))
        output = F.conv1d(hidden, self.w_2.T.unsqueeze(-1), self.b_2)
        return output.transpose(1, 2).reshape(x.shape)


class PatchEmbedding(nn.Module):
    def __init__(self, patch_size, channels, d_model):
        super().__init__()
        self.shape = patch_size, patch_size, channels
        count = patch_size * patch_size * channels
        self.weight = nn.Parameter(torch.randn(count, d_model) / count**0.5)
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, images):
        size = self.shape[0]
        if images.shape[-2] % size or images.shape[-1] % size:
            raise ValueError(f"patches of {size} do not fill {tuple(images.shape)}")
        kernel = self.weight.T.unflatten(-1, self.shape).movedim(-1, 1)
        x = F.conv2d(images, kernel, self.bias, stride=size)
        return x.flatten(2).transpose(1, 2)
