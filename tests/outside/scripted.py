"""Pieces compiled by TorchScript, norms in float32, as in the code of LLaMA and NeMo.

Touvron et al. 2023; Shoeybi et al. 2019, "Megatron-LM", scripts its fused GELU.
"""

import torch
import torch.nn.functional as F
from torch import nn


@torch.jit.script
def normalise(x, gamma, epsilon: float):
    """Scale each token in float32, and go back to the precision that came in."""
    output = x.float()
    output = output * torch.rsqrt(output.pow(2).mean(-1, keepdim=True) + epsilon)
    return output.type_as(x) * gamma


class RMSNorm(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.eps = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        return normalise(x, self.gamma, self.eps)


@torch.jit.script
def gelu(x):
    return x * 0.5 * (1.0 + torch.erf(x / 1.4142135623730951))


def dead_units(x, activation):
    if activation == "relu":
        slopes = (x > 0).float()
    else:
        slopes = torch.special.ndtr(x) + x * torch.exp(-(x**2) / 2) / 2.5066282746310002
    return ~slopes.bool().flatten(0, -2).any(0)


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.w_gate = nn.Parameter(torch.randn(d_model, d_ff) / d_model**0.5)
        self.w_up = nn.Parameter(torch.randn(d_model, d_ff) / d_model**0.5)
        self.w_down = nn.Parameter(torch.randn(d_ff, d_model) / d_ff**0.5)

    def forward(self, x):
        return (F.silu(x @ self.w_gate) * (x @ self.w_up)) @ self.w_down
