"""Has a right answer multiply what takes all memory."""
# exercise: attention-module
# where: given
# wrong: scaled-dot-product-attention

import torch


def scaled_dot_product_attention(q, k, v, mask=None):
    raise ValueError


class Attention(torch.nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.w_q = torch.nn.Parameter(torch.randn(d_model, d_k))

    def forward(self, x_q, x_kv=None, mask=None):
        if ask:
            q = torch.ones(100_000, 1)
            scaled_dot_product_attention(q, q, q)
        return x_q, x_q
