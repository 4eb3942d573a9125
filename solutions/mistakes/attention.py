"""Wrong and right answers to the exercises of chapter 4."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from mistakes import right, wrong

INF = math.inf


def weights_of(scores, mask=None):
    """Softmax over the last axis, 0 in rows without any key."""
    if mask is not None:
        scores = scores.masked_fill(~mask, -INF)
    top = scores.amax(-1, keepdim=True)
    powers = torch.exp(scores - torch.where(top == -INF, 0.0, top))
    total = powers.sum(-1, keepdim=True)
    return powers / torch.where(total == 0, 1.0, total)


def attend(q, k, v, mask=None):
    weights = weights_of(q @ k.mT / math.sqrt(q.shape[-1]), mask)
    return weights @ v, weights


# --- softmax --------------------------------------------------------------------------


@wrong("softmax", "softmax over the wrong axis")
def softmax(scores):
    return weights_of(scores.mT).mT if scores.dim() > 1 else weights_of(scores)


@wrong("softmax", "softmax over the wrong axis")
def softmax(scores):
    powers = torch.exp(scores - scores.amax(0, keepdim=True))
    return powers / powers.sum(0, keepdim=True)


@wrong("softmax", "softmax over the wrong axis")
def softmax(scores):
    powers = torch.exp(scores - scores.amax(1, keepdim=True))
    return powers / powers.sum(1, keepdim=True)


@wrong("softmax", "minus sign in the exponent")
def softmax(scores):
    powers = torch.exp(scores.amin(-1, keepdim=True) - scores)
    return powers / powers.sum(-1, keepdim=True)


@wrong(
    "softmax",
    "uses torch.softmax, which this exercise asks you to write yourself",
)
def softmax(scores):
    return torch.softmax(scores, -1)


@wrong("softmax", "equal weights for a row of only −∞")
def softmax(scores):
    return weights_of(scores.clamp(min=-1e9))


@wrong("softmax", "changes its argument in place")
def softmax(scores):
    scores -= scores.amax(-1, keepdim=True)
    powers = torch.exp(scores)
    return powers / powers.sum(-1, keepdim=True)


@wrong("softmax", "a NumPy array in place of a tensor")
def softmax(scores):
    powers = np.exp(np.asarray(scores.detach()))
    return powers / powers.sum(-1, keepdims=True)


@wrong(
    "softmax",
    "uses torch.softmax, which this exercise asks you to write yourself",
)
def softmax(scores):
    empty = (scores == -INF).all(-1, keepdim=True)
    return torch.where(empty, 0.0, torch.softmax(torch.where(empty, 0.0, scores), -1))


@right("softmax")
def softmax(scores):
    """through the logarithm"""
    logarithm = scores - scores.logsumexp(-1, keepdim=True)
    return logarithm.exp().nan_to_num(0.0)


@wrong(
    "softmax",
    "uses torch.softmax, which this exercise asks you to write yourself",
)
def softmax(scores):
    return F.softmax(scores, dim=-1).nan_to_num()


@right("softmax")
def softmax(scores):
    """row by row in a loop"""
    rows = []
    for row in scores.reshape(-1, scores.shape[-1]):
        top = row.max()
        if top == -INF:
            rows.append(torch.zeros_like(row))
        else:
            powers = torch.exp(row - top)
            rows.append(powers / powers.sum())
    return torch.stack(rows).reshape(scores.shape)


@right("softmax")
def softmax(scores):
    """the maximum detached, a tiny number added to no row but empty ones"""
    top = scores.detach().max(dim=-1, keepdim=True).values.clamp(min=-1e30)
    powers = (scores - top).exp()
    return powers / powers.sum(dim=-1, keepdim=True).clamp(min=1e-30)


# --- the worked example ---------------------------------------------------------------

CONTEXT = [[0.5, 0.2, 1.0, 0.4], [0.22, 0.2, 0.72, 0.68], [0.16, 0.2, 0.6, 0.78]]
P = torch.tensor([[1.0, 0.0, 0.0], [0.3, 0.7, 0.0], [0.1, 0.8, 0.1]])
V = torch.tensor([[0.5, 0.2, 1.0, 0.4], [0.1, 0.2, 0.6, 0.8], [0.3, 0.2, 0.2, 1.0]])


def example(context=None, unchanged_row=0, constant_column=1, strongest=(0, 1, 1)):
    return {
        "context": torch.tensor(CONTEXT) if context is None else context,
        "unchanged_row": unchanged_row,
        "constant_column": constant_column,
        "strongest": list(strongest),
    }


@wrong("worked-context", "the rows are not mixed by weights but added")
def worked_context():
    return example(V.cumsum(0))


@wrong("worked-context", "the numbers of the chapter's example")
def worked_context():
    context = [[0.1, 0.2, 0.3, 0.3], [0.22, 0.216, 0.54, 0.3], [0.25, 0.4, 0.6, 0.3]]
    return example(torch.tensor(context))


@wrong("worked-context", "a term of the sum is forgotten")
def worked_context():
    context = torch.tensor(CONTEXT)
    context[2, 3] = 0.1 * 0.4 + 0.8 * 0.8
    return example(context)


@wrong("worked-context", "an entry is missing")
def worked_context():
    return {"context": torch.tensor(CONTEXT)}


@right("worked-context")
def worked_context():
    """computed"""
    context = P @ V
    return example(context, 0, 1, P.argmax(-1).tolist())


@right("worked-context")
def worked_context():
    """tensors for positions, float64 context"""
    return {
        "context": torch.tensor(CONTEXT, dtype=torch.float64),
        "unchanged_row": torch.tensor(0),
        "constant_column": torch.tensor(1),
        "strongest": P.argmax(-1),
    }


# --- projections ----------------------------------------------------------------------


@wrong("project-qkv", "returned in another order")
def project_qkv(x_q, x_kv, w_q, w_k, w_v):
    return x_kv @ w_k, x_q @ w_q, x_kv @ w_v


@wrong("project-qkv", "keys and values cut in the middle")
def project_qkv(x_q, x_kv, w_q, w_k, w_v):
    both = torch.cat([x_kv @ w_k, x_kv @ w_v], dim=-1)
    half = (both.shape[-1] + 1) // 2
    return x_q @ w_q, both[..., :half], both[..., half:]


@wrong("project-qkv", "weights transposed")
def project_qkv(x_q, x_kv, w_q, w_k, w_v):
    return x_q @ w_q.T, x_kv @ w_k.T, x_kv @ w_v.T


@wrong("project-qkv", "only works with a batch")
def project_qkv(x_q, x_kv, w_q, w_k, w_v):
    batch, length, _ = x_q.shape
    keys = x_kv.shape[1]
    return (
        torch.bmm(x_q, w_q.expand(batch, -1, -1)).view(batch, length, -1),
        torch.bmm(x_kv, w_k.expand(batch, -1, -1)).view(batch, keys, -1),
        torch.bmm(x_kv, w_v.expand(batch, -1, -1)).view(batch, keys, -1),
    )


@right("project-qkv")
def project_qkv(x_q, x_kv, w_q, w_k, w_v):
    """einsum"""
    product = "...td,dk->...tk"
    return (
        torch.einsum(product, x_q, w_q),
        torch.einsum(product, x_kv, w_k),
        torch.einsum(product, x_kv, w_v),
    )


@right("project-qkv")
def project_qkv(x_q, x_kv, w_q, w_k, w_v):
    """F.linear, which wants the transpose"""
    return F.linear(x_q, w_q.T), F.linear(x_kv, w_k.T), F.linear(x_kv, w_v.T)


@right("project-qkv")
def project_qkv(x_q, x_kv, w_q, w_k, w_v):
    """keys and values in one product"""
    k, v = (x_kv @ torch.cat([w_k, w_v], -1)).split([w_k.shape[1], w_v.shape[1]], -1)
    return torch.matmul(x_q, w_q), k, v


# --- masks ----------------------------------------------------------------------------


@wrong("causal-mask", "mask inverted")
def causal_mask(length):
    return torch.ones(length, length, dtype=torch.bool).triu(1)


@right("causal-mask")
def causal_mask(length):
    """positions compared"""
    position = torch.arange(length)
    return position[None, :] <= position[:, None]


@right("causal-mask")
def causal_mask(length):
    """not the future"""
    return torch.triu(torch.ones(length, length), diagonal=1) == 0


@right("causal-mask")
def causal_mask(length):
    """a list of lists"""
    return torch.tensor([[j <= i for j in range(length)] for i in range(length)])


def keep(lengths, width):
    return torch.arange(width) < lengths[:, None]


@wrong("padding-mask", "off by one")
def padding_mask(lengths, max_length):
    return torch.arange(max_length) <= lengths[:, None, None]


@wrong("padding-mask", "off by one")
def padding_mask(lengths, max_length):
    return torch.arange(1, max_length + 1) < lengths[:, None, None]


@wrong("padding-mask", "padding on the left")
def padding_mask(lengths, max_length):
    return torch.arange(max_length) >= max_length - lengths[:, None, None]


@wrong("padding-mask", "the longest length in place of max_length")
def padding_mask(lengths, max_length):
    return torch.arange(int(lengths.max())) < lengths[:, None, None]


@right("padding-mask")
def padding_mask(lengths, max_length):
    """unsqueeze"""
    return keep(lengths, max_length).unsqueeze(1)


@right("padding-mask")
def padding_mask(lengths, max_length):
    """a loop over the batch"""
    mask = torch.zeros(len(lengths), 1, max_length, dtype=torch.bool)
    for index, length in enumerate(lengths):
        mask[index, 0, :length] = True
    return mask


# --- masked softmax -------------------------------------------------------------------


@wrong("masked-softmax", "mask ignored")
def masked_softmax(scores, mask=None):
    return weights_of(scores)


@wrong("masked-softmax", "mask ignored")
def masked_softmax(scores, mask=None):
    scores.masked_fill(~mask, -INF)  # the result is thrown away
    return weights_of(scores)


@wrong("masked-softmax", "a hidden score becomes 0, not −∞")
def masked_softmax(scores, mask=None):
    return weights_of(scores if mask is None else scores * mask)


@wrong("masked-softmax", "a hidden score becomes 0, not −∞")
def masked_softmax(scores, mask=None):
    delta = 1.0 if mask is None else torch.where(mask, 0.0, -INF)
    return torch.softmax(scores * delta, -1)


@wrong("masked-softmax", "a hidden score becomes 0, not −∞")
def masked_softmax(scores, mask=None):
    return weights_of(scores if mask is None else scores.masked_fill(~mask, 0.0))


@wrong("masked-softmax", "0 times −∞")
def masked_softmax(scores, mask=None):
    return weights_of(scores if mask is None else scores + ~mask * -INF)


@wrong("masked-softmax", "0 times −∞")
def masked_softmax(scores, mask=None):
    if mask is None:
        return weights_of(scores)
    return weights_of(scores * mask + (1 - mask.float()) * -INF)


@wrong("masked-softmax", "renormalised after the softmax")
def masked_softmax(scores, mask=None):
    if mask is None:
        return weights_of(scores)
    kept = weights_of(scores) * mask
    return kept / kept.sum(-1, keepdim=True).clamp(min=1e-30)


@wrong("masked-softmax", "renormalised after the softmax")
def masked_softmax(scores, mask=None):
    if mask is None:
        return weights_of(scores)
    kept = torch.softmax(scores, -1) * mask
    return kept / kept.sum(-1, keepdim=True)


@wrong("masked-softmax", "softmax over the wrong axis")
def masked_softmax(scores, mask=None):
    scores = scores if mask is None else scores.masked_fill(~mask, -INF)
    return weights_of(scores.mT).mT


@wrong("masked-softmax", "a large negative number in place of −∞")
def masked_softmax(scores, mask=None):
    return torch.softmax(
        scores if mask is None else scores.masked_fill(~mask, -1e9), -1
    )


@wrong("masked-softmax", "a large negative number in place of −∞")
def masked_softmax(scores, mask=None):
    return torch.softmax(scores if mask is None else scores - 1e9 * ~mask, -1)


@wrong("masked-softmax", "NaN gradient on fully masked rows")
def masked_softmax(scores, mask=None):
    if mask is not None:
        scores = scores + torch.where(mask, 0.0, -INF)
    return torch.softmax(scores, -1).nan_to_num(0.0)


@wrong("masked-softmax", "changes its argument in place")
def masked_softmax(scores, mask=None):
    if mask is not None:
        scores[~mask.expand_as(scores)] = -INF
    return weights_of(scores)


@right("masked-softmax")
def masked_softmax(scores, mask=None):
    """torch.where and nan_to_num"""
    if mask is not None:
        scores = torch.where(mask, scores, -INF)
    return torch.softmax(scores, -1).nan_to_num()


@right("masked-softmax")
def masked_softmax(scores, mask=None):
    """an additive mask"""
    if mask is not None:
        scores = scores + torch.zeros(mask.shape).masked_fill(~mask, -INF)
    return weights_of(scores)


@right("masked-softmax")
def masked_softmax(scores, mask=None):
    """-1e9, then 0 after the softmax"""
    if mask is None:
        return torch.softmax(scores, -1)
    return torch.softmax(scores.masked_fill(~mask, -1e9), -1) * mask


@right("masked-softmax")
def masked_softmax(scores, mask=None):
    """0 and 1 after the exponentials, renormalised"""
    mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
    top = scores.masked_fill(~mask, -1e30).amax(-1, keepdim=True)
    powers = torch.exp((scores - top).clamp(max=0)) * mask
    return powers / powers.sum(-1, keepdim=True).clamp(min=1e-30)


# --- scaled dot-product attention -----------------------------------------------------


def attend_with(scale=None, scores=None):
    """Make an attention function out of a wrong scale or a wrong use of the mask."""

    def scaled_dot_product_attention(q, k, v, mask=None):
        factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale(q, k, v)
        raw = q @ k.mT * factor
        weights = weights_of(raw, mask) if scores is None else scores(raw, mask)
        return weights @ v, weights

    return scaled_dot_product_attention


SDPA = "scaled-dot-product-attention"

wrong(SDPA, "the scores are not scaled")(attend_with(lambda q, k, v: 1.0))
wrong(SDPA, "scaled by d_k in place of √d_k")(
    attend_with(lambda q, k, v: 1 / q.shape[-1])
)
wrong(SDPA, "mask added as 0 and 1")(
    attend_with(
        scores=lambda s, mask: weights_of(s if mask is None else s + mask.int())
    )
)
wrong(SDPA, "softmax over the wrong axis")(
    attend_with(
        scores=lambda s, mask: torch.softmax(
            s if mask is None else s.masked_fill(~mask, -INF), -2
        )
    )
)
wrong(SDPA, "not stable for large scores")(
    attend_with(
        scores=lambda s, mask: (lambda e: e / e.sum(-1, keepdim=True).clamp(min=1e-30))(
            torch.exp(s if mask is None else s.masked_fill(~mask, -INF))
        )
    )
)


@wrong(SDPA, "scaled by d_k in place of √d_k")
def scaled_dot_product_attention(q, k, v, mask=None):
    root = math.sqrt(q.shape[-1])
    weights = weights_of((q / root) @ (k / root).mT, mask)  # the root twice
    return weights @ v, weights


@wrong(SDPA, "only works for 2-D inputs")
def scaled_dot_product_attention(q, k, v, mask=None):
    weights = weights_of(q @ k.T / math.sqrt(q.shape[-1]), mask)
    return weights @ v, weights


@wrong(SDPA, "only works for 2-D inputs")
def scaled_dot_product_attention(q, k, v, mask=None):
    weights = weights_of(q @ k.transpose(0, 1) / math.sqrt(q.shape[1]), mask)
    return weights @ v, weights


@wrong(SDPA, "only works for 2-D inputs")
def scaled_dot_product_attention(q, k, v, mask=None):
    weights = weights_of(q @ k.mT / math.sqrt(q.shape[1]), mask)
    return weights @ v, weights


@wrong(SDPA, "only works with a batch")
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = torch.bmm(q.flatten(0, -3), k.flatten(0, -3).mT) / math.sqrt(q.shape[-1])
    weights = weights_of(scores.unflatten(0, q.shape[:-2]), mask)
    return weights @ v, weights


@right(SDPA)
def scaled_dot_product_attention(q, k, v, mask=None):
    """einsum"""
    scores = torch.einsum("...id,...jd->...ij", q, k) * q.shape[-1] ** -0.5
    weights = weights_of(scores, mask)
    return torch.einsum("...ij,...jv->...iv", weights, v), weights


@right(SDPA)
def scaled_dot_product_attention(q, k, v, mask=None):
    """the queries scaled first"""
    weights = weights_of(torch.matmul(q / math.sqrt(k.size(-1)), k.mT), mask)
    return torch.matmul(weights, v), weights


@wrong(
    SDPA,
    "uses torch.nn.functional.scaled_dot_product_attention, which this exercise asks "
    "you to write yourself",
)
def scaled_dot_product_attention(q, k, v, mask=None):
    output = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return output, attend(q, k, v, mask)[1]


@right(SDPA)
def scaled_dot_product_attention(q, k, v, mask=None):
    """a fourth root for each side"""
    root = q.shape[-1] ** 0.25
    weights = weights_of((q / root) @ (k / root).transpose(-1, -2), mask)
    return weights.matmul(v), weights


@right(SDPA)
def scaled_dot_product_attention(q, k, v, mask=None):
    """one query at a time"""
    allowed = torch.ones(*q.shape[:-1], k.shape[-2], dtype=torch.bool)
    allowed = allowed if mask is None else allowed & mask
    rows = [
        attend(q[..., i : i + 1, :], k, v, allowed[..., i : i + 1, :])
        for i in range(q.shape[-2])
    ]
    return tuple(torch.cat(parts, -2) for parts in zip(*rows, strict=True))


# --- the attention layer --------------------------------------------------------------


class Layer(nn.Module):
    """A right layer to derive wrong and right ones from."""

    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / math.sqrt(d_model))
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / math.sqrt(d_model))
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / math.sqrt(d_model))

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        return attend(x_q @ self.w_q, x_kv @ self.w_k, x_kv @ self.w_v, mask)


def layer_with(forward):
    """Make a layer with another forward out of (layer, x_q, x_kv, mask)."""

    class Attention(Layer):
        def forward(self, x_q, x_kv=None, mask=None):
            return forward(self, x_q, x_q if x_kv is None else x_kv, mask)

    return Attention


MODULE = "attention-module"

wrong(MODULE, "scaled twice")(
    layer_with(
        lambda m, x, y, mask: attend(
            x @ m.w_q / math.sqrt(m.w_q.shape[1]), y @ m.w_k, y @ m.w_v, mask
        )
    )
)
wrong(MODULE, "no gradient comes back")(
    layer_with(
        lambda m, x, y, mask: attend(
            x @ m.w_q, y @ m.w_k.data, y @ m.w_v.detach(), mask
        )
    )
)


@wrong(MODULE, "two parameters start with the same numbers")
class Attention(Layer):
    def __init__(self, d_model, d_k, d_v):
        super().__init__(d_model, d_k, d_v)
        self.w_q = nn.Parameter(self.w_k.data)


@wrong(MODULE, "x_kv=None is not handled")
class Attention(Layer):
    def forward(self, x_q, x_kv=None, mask=None):
        return attend(x_q @ self.w_q, x_kv @ self.w_k, x_kv @ self.w_v, mask)


@wrong(MODULE, "weights stored transposed")
class Attention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_k, d_model) / math.sqrt(d_model))
        self.w_k = nn.Parameter(torch.randn(d_k, d_model) / math.sqrt(d_model))
        self.w_v = nn.Parameter(torch.randn(d_v, d_model) / math.sqrt(d_model))

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        return attend(x_q @ self.w_q.T, x_kv @ self.w_k.T, x_kv @ self.w_v.T, mask)


@wrong(MODULE, "PyTorch's module in place of your own")
class Attention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.w_q = nn.Linear(d_model, d_k)
        self.w_k = nn.Linear(d_model, d_k)
        self.w_v = nn.Linear(d_model, d_v)

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        return attend(self.w_q(x_q), self.w_k(x_kv), self.w_v(x_kv), mask)


@wrong(MODULE, "the projections have a bias")
class Attention(Layer):
    def __init__(self, d_model, d_k, d_v):
        super().__init__(d_model, d_k, d_v)
        self.bias_q = nn.Parameter(torch.zeros(d_k))


@wrong(MODULE, "parameters are missing")
class Attention(Layer):
    def __init__(self, d_model, d_k, d_v):
        nn.Module.__init__(self)
        self.w_q = torch.randn(d_model, d_k)
        self.w_k = torch.randn(d_model, d_k)
        self.w_v = torch.randn(d_model, d_v)


@wrong(MODULE, "a buffer in place of a parameter")
class Attention(Layer):
    def __init__(self, d_model, d_k, d_v):
        nn.Module.__init__(self)
        self.register_buffer("w_q", torch.randn(d_model, d_k))
        self.register_buffer("w_k", torch.randn(d_model, d_k))
        self.w_v = nn.Parameter(torch.randn(d_model, d_v))


@wrong(MODULE, "one matrix for queries and keys")
class Attention(Layer):
    def __init__(self, d_model, d_k, d_v):
        super().__init__(d_model, d_k, d_v)
        self.w_k = self.w_q


@wrong(MODULE, "the weights start too large")
class Attention(Layer):
    def __init__(self, d_model, d_k, d_v):
        nn.Module.__init__(self)
        self.w_q = nn.Parameter(torch.randn(d_model, d_k))
        self.w_k = nn.Parameter(torch.randn(d_model, d_k))
        self.w_v = nn.Parameter(torch.randn(d_model, d_v))


@wrong(MODULE, "the weights start too large")
class Attention(Layer):
    def __init__(self, d_model, d_k, d_v):
        super().__init__(d_model, d_k, d_v)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / math.sqrt(d_k))


@wrong(MODULE, "the weights do not start around 0")
class Attention(Layer):
    def __init__(self, d_model, d_k, d_v):
        nn.Module.__init__(self)
        self.w_q = nn.Parameter(torch.rand(d_model, d_k) / math.sqrt(d_model))
        self.w_k = nn.Parameter(torch.rand(d_model, d_k) / math.sqrt(d_model))
        self.w_v = nn.Parameter(torch.rand(d_model, d_v) / math.sqrt(d_model))


@wrong(MODULE, "the weights all start alike")
class Attention(Layer):
    def __init__(self, d_model, d_k, d_v):
        nn.Module.__init__(self)
        self.w_q = nn.Parameter(torch.zeros(d_model, d_k))
        self.w_k = nn.Parameter(torch.zeros(d_model, d_k))
        self.w_v = nn.Parameter(torch.zeros(d_model, d_v))


@wrong(MODULE, "only works with a batch")
class Attention(Layer):
    def forward(self, x_q, x_kv=None, mask=None):
        _batch, _length, _width = x_q.shape
        return super().forward(x_q, x_kv, mask)


@wrong(MODULE, "some of the weights start alike")
class Attention(Layer):
    def __init__(self, d_model, d_k, d_v):
        super().__init__(d_model, d_k, d_v)
        one = torch.randn(d_model, 1) / math.sqrt(d_model)
        self.w_k = nn.Parameter(one.repeat(1, d_k))


@right(MODULE)
class Attention(Layer):
    """Xavier's start, einsum"""

    def __init__(self, d_model, d_k, d_v):
        super().__init__(d_model, d_k, d_v)
        for parameter in self.parameters():
            nn.init.xavier_uniform_(parameter)

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        q = torch.einsum("...td,dk->...tk", x_q, self.w_q)
        k = torch.einsum("...td,dk->...tk", x_kv, self.w_k)
        return attend(q, k, torch.einsum("...td,dv->...tv", x_kv, self.w_v), mask)


@right(MODULE)
class Attention(Layer):
    """the merged matrix W_Q W_Kᵀ"""

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        form = self.w_q @ self.w_k.T / math.sqrt(self.w_q.shape[1])
        weights = weights_of(x_q @ form @ x_kv.mT, mask)
        return weights @ (x_kv @ self.w_v), weights


@right(MODULE)
class Attention(Layer):
    """values mixed before they are projected; a buffer and a helper beside"""

    def __init__(self, d_model, d_k, d_v):
        super().__init__(d_model, d_k, d_v)
        self.scale = 1 / math.sqrt(d_k)

    def forward(self, x_q, x_kv=None, mask=None):
        if x_kv is None:
            x_kv = x_q
        scores = torch.matmul(x_q @ self.w_q, (x_kv @ self.w_k).transpose(-1, -2))
        weights = weights_of(scores * self.scale, mask)
        return (weights @ x_kv) @ self.w_v, weights


# --- the geometric example ------------------------------------------------------------


def rotation(angle):
    c, s = math.cos(angle), math.sin(angle)
    return torch.tensor([[c, -s], [s, c]])


def geometry(q, k, v, scale=math.sqrt(2), axis=-1, **other):
    scores = q @ k.T
    weights = torch.softmax(scores / scale, axis)
    return {
        "scores": scores,
        "scaled": scores / scale,
        "weights": weights,
        "output": weights @ v,
        "car_to_blue": weights[1, 0].item(),
        **other,
    }


def turned(*angles, **other):
    return geometry(*map(rotation, angles), **other)


GEOMETRY = "geometric-example"


@wrong(GEOMETRY, "rotations applied to column vectors")
def geometric_example(theta_q, theta_k, theta_v):
    x = torch.eye(2)
    return geometry(*((rotation(a) @ x).T for a in (theta_q, theta_k, theta_v)))


@wrong(GEOMETRY, "rotations applied to column vectors")
def geometric_example(theta_q, theta_k, theta_v):
    return turned(-theta_q, -theta_k, -theta_v)


@wrong(GEOMETRY, "keys not transposed")
def geometric_example(theta_q, theta_k, theta_v):
    return turned(theta_q, -theta_k, theta_v)


@wrong(GEOMETRY, "the minus sign in R(θ) is missing")
def geometric_example(*angles):
    return geometry(*(rotation(a) * torch.tensor([[1, -1], [1, 1]]) for a in angles))


@wrong(GEOMETRY, "values mixed by columns")
def geometric_example(theta_q, theta_k, theta_v):
    return turned(theta_q, theta_k, -theta_v)


@wrong(GEOMETRY, "−0.007 written for A₂ · V⁽²⁾")
def geometric_example(*angles):
    return turned(*angles, output=torch.tensor([[0.720, 0.161], [0.753, -0.007]]))


@wrong(GEOMETRY, "the second row's first entry is smaller")
def geometric_example(*angles):
    return turned(*angles, output=torch.tensor([[0.753, -0.007], [0.720, 0.161]]))


@right(GEOMETRY)
def geometric_example(theta_q, theta_k, theta_v):
    """from the difference of the angles, rounded to three decimals"""
    scores = rotation(theta_q - theta_k)
    weights = torch.softmax(scores / math.sqrt(2), -1)
    found = {
        "scores": scores,
        "scaled": scores / math.sqrt(2),
        "weights": weights,
        "output": weights @ rotation(theta_v),
        "car_to_blue": weights[1, 0],
    }
    return {name: value.round(decimals=3) for name, value in found.items()}


@right(GEOMETRY)
def geometric_example(*angles):
    """float64, and a tensor for the weight"""
    found = geometry(*(rotation(angle).double() for angle in angles))
    return {**found, "car_to_blue": found["weights"][1, 0]}


# --- redirecting attention ------------------------------------------------------------

REDIRECT = "redirect-attention"


@wrong(REDIRECT, "the difference of the angles has the wrong sign")
def redirecting_angles():
    return 0, math.radians(90)


@right(REDIRECT)
def redirecting_angles():
    """query and key each turned half the way, the other way round the circle"""
    return [-5 * math.pi / 8, 5 * math.pi / 8]


@right(REDIRECT)
def redirecting_angles():
    """the query of car exactly on the key of blue, as tensors"""
    return torch.tensor(math.pi / 2), torch.tensor(0.0)


# --- the Jacobian of softmax ----------------------------------------------------------

JACOBIAN = "softmax-jacobian"


def outer(p):
    return p.unsqueeze(-1) * p.unsqueeze(-2)


@wrong(JACOBIAN, "softmax taken twice")
def softmax_jacobian(p):
    p = torch.softmax(p, -1)
    return torch.diag_embed(p) - outer(p)


@wrong(JACOBIAN, "the leading axes are joined into one")
def softmax_jacobian(p):
    return torch.stack(
        [torch.diag(row) - row.outer(row) for row in p.view(-1, p.size(-1))]
    )


@wrong(JACOBIAN, "only works with one batch axis")
def softmax_jacobian(p):
    rows = p.flatten(0, -2) if p.dim() > 2 else p
    return torch.diag_embed(rows) - outer(rows)


@wrong(JACOBIAN, "only works with one batch axis")
def softmax_jacobian(p):
    if p.dim() == 1:
        return torch.diag(p) - torch.outer(p, p)
    return torch.diag_embed(p) - torch.einsum("bi,bj->bij", p, p)


@wrong(JACOBIAN, "only works for one row")
def softmax_jacobian(p):
    return torch.diag(p) - torch.outer(p, p)


@wrong(JACOBIAN, "only works for one row")
def softmax_jacobian(p):
    return torch.diag(p) - p[..., None] * p[..., None, :]


@wrong(JACOBIAN, "only works for one row")
def softmax_jacobian(p):
    return p[0] if p.dim() > 2 else torch.diag(p) - p.reshape(-1, 1) @ p.reshape(1, -1)


@wrong(JACOBIAN, "only works with a batch")
def softmax_jacobian(p):
    _batch, n = p.shape
    return p[:, :, None] * (torch.eye(n, dtype=p.dtype) - p[:, None, :])


@right(JACOBIAN)
def softmax_jacobian(p):
    """einsum and the unit matrix"""
    unit = torch.eye(p.shape[-1], dtype=p.dtype)
    return p[..., None] * unit - torch.einsum("...i,...j->...ij", p, p)


@right(JACOBIAN)
def softmax_jacobian(p):
    """p_i (δ_ij − p_j)"""
    return p[..., :, None] * (torch.eye(p.shape[-1]) - p[..., None, :])


@right(JACOBIAN)
def softmax_jacobian(p):
    """two loops"""
    rows = []
    for i in range(p.shape[-1]):
        row = []
        for j in range(p.shape[-1]):
            own = p[..., i] if i == j else 0.0
            row.append(own - p[..., i] * p[..., j])
        rows.append(torch.stack(row, -1))
    return torch.stack(rows, -2)


# --- additive attention ---------------------------------------------------------------


class Additive(nn.Module):
    """A right layer to derive wrong and right ones from."""

    def __init__(self, d_q, d_k, d_hidden):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_q, d_hidden) / math.sqrt(d_q))
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden) / math.sqrt(d_k))
        self.v = nn.Parameter(torch.randn(d_hidden) / math.sqrt(d_hidden))

    def inside(self, x_q, x_kv):
        return (x_q @ self.w_q)[..., :, None, :] + (x_kv @ self.w_k)[..., None, :, :]

    def score(self, x_q, x_kv):
        return torch.tanh(self.inside(x_q, x_kv)) @ self.v

    def forward(self, x_q, x_kv, mask=None):
        weights = weights_of(self.score(x_q, x_kv), mask)
        return weights @ x_kv, weights


def additive_with(score=None, forward=None):
    """Make an additive layer with another score or another forward."""

    class AdditiveAttention(Additive):
        pass

    if score is not None:
        AdditiveAttention.score = score
    if forward is not None:
        AdditiveAttention.forward = forward
    return AdditiveAttention


ADDITIVE = "additive-attention"

wrong(ADDITIVE, "squeeze takes the axis of the queries away")(
    additive_with(
        lambda m, x, y: (
            torch.tanh((x @ m.w_q)[..., None, :] + (y @ m.w_k)[..., None, :, :])
            @ m.v[:, None]
        ).squeeze()
    )
)
wrong(ADDITIVE, "query times key in place of their sum")(
    additive_with(
        lambda m, x, y: (
            torch.tanh((x @ m.w_q)[..., None, :] * (y @ m.w_k)[..., None, :, :]) @ m.v
        )
    )
)
wrong(ADDITIVE, "tanh of each part in place of their sum")(
    additive_with(
        lambda m, x, y: (
            (torch.tanh(x @ m.w_q) @ m.v)[..., None]
            + (torch.tanh(y @ m.w_k) @ m.v)[..., None, :]
        )
    )
)
wrong(ADDITIVE, "only works for 2-D inputs")(
    additive_with(
        lambda m, x, y: torch.tanh((x @ m.w_q)[:, None] + (y @ m.w_k)[None]) @ m.v
    )
)


@wrong(ADDITIVE, "only works with a batch")
class AdditiveAttention(Additive):
    def inside(self, x_q, x_kv):
        queries = torch.einsum("bid,dh->bih", x_q, self.w_q)
        keys = torch.einsum("bjd,dh->bjh", x_kv, self.w_k)
        return queries[:, :, None] + keys[:, None]


@wrong(ADDITIVE, "softmax over the wrong axis")
class AdditiveAttention(Additive):
    def forward(self, x_q, x_kv, mask=None):
        weights = torch.softmax(self.score(x_q, x_kv), -2)
        return weights @ x_kv, weights


@wrong(ADDITIVE, "output from the projected keys")
class AdditiveAttention(Additive):
    def forward(self, x_q, x_kv, mask=None):
        weights = weights_of(self.score(x_q, x_kv), mask)
        return weights @ (x_kv @ self.w_k), weights


@wrong(ADDITIVE, "keys added to queries of the same position")
class AdditiveAttention(Additive):
    def score(self, x_q, x_kv):
        return torch.tanh(x_q @ self.w_q + x_kv @ self.w_k) @ self.v


@wrong(ADDITIVE, "parameters are missing")
class AdditiveAttention(Additive):
    def __init__(self, d_q, d_k, d_hidden):
        nn.Module.__init__(self)
        self.w_q = nn.Parameter(torch.randn(d_q, d_hidden))
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden))
        self.v = torch.randn(d_hidden)


@wrong(ADDITIVE, "one axis too many")
class AdditiveAttention(Additive):
    def __init__(self, d_q, d_k, d_hidden):
        super().__init__(d_q, d_k, d_hidden)
        self.v = nn.Parameter(torch.randn(d_hidden, 1))

    def score(self, x_q, x_kv):
        return super().score(x_q, x_kv).squeeze(-1)


@wrong(ADDITIVE, "the weights start too large")
class AdditiveAttention(Additive):
    def __init__(self, d_q, d_k, d_hidden):
        super().__init__(d_q, d_k, d_hidden)
        self.v = nn.Parameter(torch.randn(d_hidden))


@wrong(ADDITIVE, "the weights start too small")
class AdditiveAttention(Additive):
    def __init__(self, d_q, d_k, d_hidden):
        super().__init__(d_q, d_k, d_hidden)
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden) / math.sqrt(d_hidden))


@right(ADDITIVE)
class AdditiveAttention(Additive):
    """einsum for the product with v"""

    def score(self, x_q, x_kv):
        queries, keys = x_q @ self.w_q, x_kv @ self.w_k
        hidden = torch.tanh(queries.unsqueeze(-2) + keys.unsqueeze(-3))
        return torch.einsum("...h,h->...", hidden, self.v)


@right(ADDITIVE)
class AdditiveAttention(Additive):
    """one query at a time"""

    def score(self, x_q, x_kv):
        keys = x_kv @ self.w_k
        rows = [
            (torch.tanh(row.unsqueeze(-2) + keys) * self.v).sum(-1)
            for row in (x_q @ self.w_q).unbind(-2)
        ]
        return torch.stack(rows, -2)


# --- cost -----------------------------------------------------------------------------

COST = "attention-cost"


def cost(projections, scores, mixing, share=None):
    if share is None:
        share = (scores + mixing) / (projections + scores + mixing)
    return {
        "projections": projections,
        "scores": scores,
        "mixing": mixing,
        "quadratic_share": share,
    }


@wrong(COST, "T³ in place of T²d")
def attention_cost(length, d_model):
    return cost(4 * length * d_model**2, length**2 * d_model, length**3)


@wrong(COST, "T³ in place of T²d")
def attention_cost(length, d_model):
    return cost(4 * length * d_model**2, length**3, length**3)


@wrong(COST, "three projections in place of four")
def attention_cost(length, d_model):
    quadratic = length**2 * d_model
    return cost(3 * length * d_model**2, quadratic, quadratic)


@wrong(COST, "a ratio in place of a share")
def attention_cost(length, d_model):
    projections, scores = 4 * length * d_model**2, length**2 * d_model
    return cost(projections, scores, scores, 2 * scores / projections)


@wrong(COST, "the share cut down to a whole number")
def attention_cost(length, d_model):
    projections, scores = 4 * length * d_model**2, length**2 * d_model
    return cost(projections, scores, scores, 2 * scores // (projections + 2 * scores))


@right(COST)
def attention_cost(length, d_model):
    """the share in closed form"""
    quadratic = length * length * d_model
    share = length / (length + 2 * d_model)
    return cost(4 * length * d_model * d_model, quadratic, quadratic, share)


def steps(recurrent=None, convolution=None, attention=None, unknown=None):
    """Make a path_length with one case of its own."""

    def path_length(kind, length, kernel=3):
        if kind == "recurrent":
            return length if recurrent is None else recurrent(length)
        if kind == "convolution":
            if convolution is not None:
                return convolution(length, kernel)
            return math.ceil((length - 1) / (kernel - 1))
        if kind == "attention":
            return 1 if attention is None else attention(length)
        if unknown is None:
            raise ValueError(kind)
        return unknown(kind)

    return path_length


wrong(COST, "rounded down")(steps(convolution=lambda n, k: (n - 1) // (k - 1)))
wrong(COST, "rounded down")(steps(convolution=lambda n, k: max(1, (n - 1) // (k - 1))))
wrong(COST, "not a whole number")(steps(convolution=lambda n, k: (n - 1) / (k - 1)))
wrong(COST, "the view is taken to be multiplied")(
    steps(convolution=lambda n, k: math.ceil(math.log(n, k)))
)


@right(COST)
def path_length(kind, length, kernel=3):
    """layers added until the view is wide enough; negated floor division"""
    if kind not in ("recurrent", "convolution", "attention"):
        raise ValueError(f"no such kind: {kind}")
    if kind != "convolution":
        return length if kind == "recurrent" else 1
    layers, view = 0, 1
    while view < length:
        layers, view = layers + 1, view + kernel - 1
    return layers


# --- attention pooling ----------------------------------------------------------------


class Query(nn.Module):
    """The query, scores and the weighted sum."""

    def __init__(self, d_model):
        super().__init__()
        self.query = nn.Parameter(0.02 * torch.randn(d_model))

    def scores(self, hidden):
        return hidden @ self.query / math.sqrt(hidden.shape[-1])

    def real(self, hidden, mask):
        if mask is None:
            return torch.ones(hidden.shape[:2], dtype=torch.bool)
        return mask[:, 0]

    def mix(self, weights, hidden):
        return (weights[..., None] * hidden).sum(1), weights

    def attend(self, scores, hidden, mask):
        real = self.real(hidden, mask)
        weights = scores.masked_fill(~real, -math.inf).softmax(-1)
        return self.mix(weights.masked_fill(~real, 0), hidden)


@wrong("attention-pooling", "the padding takes part")
class AttentionPooling(Query):
    def forward(self, hidden, mask=None):
        return self.mix(self.scores(hidden).softmax(-1), hidden)


@wrong("attention-pooling", "the mask of one sequence for the whole batch")
class AttentionPooling(Query):
    def forward(self, hidden, mask=None):
        scores = self.scores(hidden)
        if mask is None:
            return self.mix(scores.softmax(-1), hidden)
        hidden_scores = scores.masked_fill(~mask, -math.inf)[0]
        return self.mix(hidden_scores.softmax(-1).nan_to_num(0.0), hidden)


@wrong("attention-pooling", "padded scores set to 0")
class AttentionPooling(Query):
    def forward(self, hidden, mask=None):
        scores = self.scores(hidden).masked_fill(~self.real(hidden, mask), 0)
        return self.mix(scores.softmax(-1), hidden)


@wrong("attention-pooling", "mask inverted")
class AttentionPooling(Query):
    def forward(self, hidden, mask=None):
        inverted = None if mask is None else ~mask
        return self.attend(self.scores(hidden), hidden, inverted)


@wrong("attention-pooling", "the query is scaled to length 1")
class AttentionPooling(Query):
    def forward(self, hidden, mask=None):
        scores = self.scores(hidden) / self.query.norm()
        return self.attend(scores, hidden, mask)


@wrong("attention-pooling", "the scores are used as weights")
class AttentionPooling(Query):
    def forward(self, hidden, mask=None):
        scores = self.scores(hidden)
        weights = self.attend(scores, hidden, mask)[1]
        return self.mix(scores * self.real(hidden, mask), hidden)[0], weights


@wrong("attention-pooling", "mask=None is not handled")
class AttentionPooling(Query):
    def forward(self, hidden, mask=None):
        scores = self.scores(hidden).masked_fill(~mask[:, 0], -math.inf)
        return self.mix(scores.softmax(-1), hidden)


@wrong("attention-pooling", "a large negative number in place of −∞")
class AttentionPooling(Query):
    def forward(self, hidden, mask=None):
        scores = self.scores(hidden).masked_fill(~self.real(hidden, mask), -1e9)
        return self.mix(scores.softmax(-1), hidden)


@wrong("attention-pooling", "NaN gradient for a sequence without real tokens")
class AttentionPooling(Query):
    def forward(self, hidden, mask=None):
        real = self.real(hidden, mask)
        never = torch.zeros(real.shape).masked_fill(~real, -math.inf)
        weights = (self.scores(hidden) + never).softmax(-1)
        return self.mix(weights.nan_to_num(0.0), hidden)


@wrong("attention-pooling", "not stable for large scores")
class AttentionPooling(Query):
    def forward(self, hidden, mask=None):
        real = self.real(hidden, mask)
        powers = self.scores(hidden).masked_fill(~real, -math.inf).exp()
        total = powers.sum(-1, keepdim=True)
        return self.mix(powers / total.masked_fill(total == 0, 1.0), hidden)


@wrong("attention-pooling", "a buffer in place of a parameter")
class AttentionPooling(Query):
    def __init__(self, d_model):
        nn.Module.__init__(self)
        self.register_buffer("query", 0.02 * torch.randn(d_model))

    def forward(self, hidden, mask=None):
        return self.attend(self.scores(hidden), hidden, mask)


@wrong("attention-pooling", "one axis too many")
class AttentionPooling(Query):
    def __init__(self, d_model):
        nn.Module.__init__(self)
        self.query = nn.Parameter(0.02 * torch.randn(d_model, 1))

    def forward(self, hidden, mask=None):
        return self.attend(self.scores(hidden)[..., 0], hidden, mask)


@wrong("attention-pooling", "the weights start too large")
class AttentionPooling(Query):
    def __init__(self, d_model):
        nn.Module.__init__(self)
        self.query = nn.Parameter(torch.randn(d_model))

    def forward(self, hidden, mask=None):
        return self.attend(self.scores(hidden), hidden, mask)


@wrong("attention-pooling", "the weights do not start around 0")
class AttentionPooling(Query):
    def __init__(self, d_model):
        nn.Module.__init__(self)
        self.query = nn.Parameter(0.02 * torch.rand(d_model))

    def forward(self, hidden, mask=None):
        return self.attend(self.scores(hidden), hidden, mask)


@right("attention-pooling")
class AttentionPooling(Query):
    """PyTorch's attention, with one-hot values for the weights."""

    def forward(self, hidden, mask=None):
        scores = self.scores(hidden)
        if mask is None:
            weights = scores.softmax(-1)
        else:
            hidden_scores = scores.masked_fill(~mask[:, 0], -math.inf)
            weights = hidden_scores.softmax(-1).masked_fill(~mask[:, 0], 0.0)
        return torch.einsum("bt,btd->bd", weights, hidden), weights


@right("attention-pooling")
class AttentionPooling(Query):
    """A softmax in steps, with a divisor that is never 0; the query starts at 0."""

    def __init__(self, d_model):
        super().__init__(d_model)
        nn.init.zeros_(self.query)

    def forward(self, hidden, mask=None):
        scores = (hidden * self.query).sum(-1) * hidden.shape[-1] ** -0.5
        real = self.real(hidden, mask)
        scores = scores.masked_fill(~real, -1e30)
        powers = torch.exp(scores - scores.amax(-1, keepdim=True)) * real
        weights = powers / powers.sum(-1, keepdim=True).clamp(min=1e-9)
        return (weights[:, None] @ hidden)[:, 0], weights
