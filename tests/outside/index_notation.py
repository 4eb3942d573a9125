"""Everything by einsum, an axis a letter, as in labml's papers and TransformerLens.

Rogozhnikov 2022, "Einops", argues for the style. The cutting of images is as in He et
al. 2021, "Masked Autoencoders".
"""

import math

import torch
from torch import einsum, nn


def project_qkv(x_q, x_kv, w_q, w_k, w_v):
    q = einsum("...id,dk->...ik", x_q, w_q)
    k = einsum("...jd,dk->...jk", x_kv, w_k)
    v = einsum("...jd,dv->...jv", x_kv, w_v)
    return q, k, v


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = einsum("...ik,...jk->...ij", q, k) * k.shape[-1] ** -0.5
    allowed = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
    scores = torch.where(allowed, scores, -1e30)
    weights = torch.where(allowed, scores.softmax(dim=-1), 0.0)
    return einsum("...ij,...jv->...iv", weights, v), weights


def softmax_jacobian(probabilities):
    p = probabilities
    return torch.diag_embed(p) - einsum("...i,...j->...ij", p, p)


def loop_of_heads(x_q, x_kv, w_q, w_k, w_v, w_o, mask=None):
    q = einsum("...id,hdk->...hik", x_q, w_q)
    k = einsum("...jd,hdk->...hjk", x_kv, w_k)
    v = einsum("...jd,hdv->...hjv", x_kv, w_v)
    mask = None if mask is None else mask.unsqueeze(-3)
    scores = einsum("...hik,...hjk->...hij", q, k) / math.sqrt(k.shape[-1])
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf)
    z = einsum("...hij,...hjv->...hiv", scores.softmax(dim=-1).nan_to_num(), v)
    return einsum("...hiv,hvd->...id", z, w_o.unflatten(0, (w_q.shape[0], -1)))


def sum_over_heads(z, w_o):
    return einsum("...hiv,hvd->...id", z, w_o.reshape(z.shape[-3], z.shape[-1], -1))


class GroupedQueryAttention(nn.Module):
    """g groups of r query heads, with keys and values that are never repeated."""

    def __init__(self, d_model, heads, kv_heads):
        super().__init__()
        if d_model % heads or heads % kv_heads:
            raise ValueError("heads do not divide")
        self.g, self.r, self.k = kv_heads, heads // kv_heads, d_model // heads
        for name, width in (
            ("w_q", d_model),
            ("w_k", kv_heads * self.k),
            ("w_v", kv_heads * self.k),
            ("w_o", d_model),
        ):
            start = torch.randn(d_model, width) / math.sqrt(d_model)
            setattr(self, name, nn.Parameter(start))

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        w_q = self.w_q.unflatten(-1, (self.g, self.r, self.k))
        w_k, w_v = (w.unflatten(-1, (self.g, self.k)) for w in (self.w_k, self.w_v))
        w_o = self.w_o.unflatten(0, (self.g, self.r, self.k))
        q = einsum("...id,dgrk->...igrk", x_q, w_q)
        k = einsum("...jd,dgk->...jgk", x_kv, w_k)
        v = einsum("...jd,dgv->...jgv", x_kv, w_v)
        scores = einsum("...igrk,...jgk->...grij", q, k) / self.k**0.5
        allowed = torch.tensor(True) if mask is None else mask[..., None, None, :, :]
        scores = torch.where(allowed, scores, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1) * allowed
        z = einsum("...grij,...jgv->...igrv", weights, v)
        return einsum("...igrv,grvd->...id", z, w_o), weights.flatten(-4, -3)


def patchify(images, patch_size):
    p = patch_size
    n, c, height, width = images.shape
    if height % p or width % p:
        raise ValueError("a remainder is left over")
    x = images.reshape(n, c, height // p, p, width // p, p)
    x = einsum("nchpwq->nhwpqc", x)
    return x.reshape(n, (height // p) * (width // p), p**2 * c)
