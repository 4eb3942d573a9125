"""Takes PyTorch's other attention, which compiles what it is asked for."""
# exercise: scaled-dot-product-attention
# where: answer

import torch


def scaled_dot_product_attention(q, k, v, mask=None):
    from torch.nn.attention.flex_attention import flex_attention

    def score(value, batch, head, query, key):
        return value if mask is None else value.masked_fill(~mask[query, key], -1e30)

    def attend(values):
        rows = [each.reshape(-1, 1, *each.shape[-2:]) for each in (q, k, values)]
        return flex_attention(*rows, score_mod=score).reshape(*q.shape[:-1], -1)

    eye = torch.eye(k.shape[-2]).expand(*k.shape[:-1], -1)
    return attend(v), attend(eye)
