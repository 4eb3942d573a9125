"""Reaches PyTorch's own attention through one of its transformations of functions."""
# exercise: scaled-dot-product-attention
# where: answer

import torch
import torch.nn.functional as F


def scaled_dot_product_attention(q, k, v, mask=None):
    attend = torch.vmap(F.scaled_dot_product_attention)
    if mask is not None:
        mask = mask.expand(*q.shape[:-1], k.shape[-2])
        return attend(q, k, v, mask), attend(q, k, torch.eye(k.shape[-2]), mask)
    eye = torch.eye(k.shape[-2]).expand(q.shape[0], -1, -1)
    return attend(q, k, v), attend(q, k, eye)
