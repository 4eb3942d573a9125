"""Wrong answers to chapter 4, written from its notebook alone."""

# ruff: noqa: E501, F811

import math

import torch
from torch import nn

from tests.tutor.bank import stranger


@stranger(
    "softmax",
    "the maximum of the whole tensor is subtracted",
    kind="subtle",
    first="shown",
    verdict="named",
    says="one maximum for all rows",
)
def softmax(scores):
    top = scores.max()
    if top == -math.inf:
        top = torch.zeros(())
    powers = torch.exp(scores - top)
    total = powers.sum(dim=-1, keepdim=True)
    total = total.masked_fill(total == 0, 1.0)
    return powers / total


@stranger(
    "softmax",
    "the softmax runs along axis 0 of a batch",
    kind="plain",
    first="named",
    verdict="named",
    says="softmax over the wrong axis",
)
def softmax(scores):
    top = scores.amax(dim=0, keepdim=True)
    top = top.masked_fill(top == -math.inf, 0.0)
    powers = torch.exp(scores - top)
    total = powers.sum(dim=0, keepdim=True)
    return powers / total.masked_fill(total == 0, 1.0)


@stranger(
    "softmax",
    "a row of only -inf gets equal weights, 1/n, as the scores become 0",
    kind="subtle",
    first="named",
    verdict="named",
    says="equal weights for a row of only −∞",
)
def softmax(scores):
    top = scores.amax(dim=-1, keepdim=True)
    shifted = scores - top
    shifted = torch.where(torch.isnan(shifted), 0.0, shifted)
    powers = shifted.exp()
    return powers / powers.sum(dim=-1, keepdim=True)


@stranger(
    "softmax",
    "1e-9 is added to the sum, and nothing is subtracted: large scores overflow",
    kind="double",
    first="named",
    verdict="named",
    says="not stable for large scores",
)
def softmax(scores):
    powers = scores.exp()
    return powers / (powers.sum(dim=-1, keepdim=True) + 1e-9)


@stranger(
    "softmax",
    "the mean and not the maximum of the row is subtracted",
    kind="subtle",
    first="named",
    verdict="named",
    says="not stable for large scores",
)
def softmax(scores):
    finite = scores.masked_fill(scores == -math.inf, 0.0)
    powers = torch.exp(scores - finite.mean(dim=-1, keepdim=True))
    total = powers.sum(dim=-1, keepdim=True)
    return powers / torch.where(total == 0, 1.0, total)


@stranger(
    "softmax",
    "only a tensor of nothing but -inf is caught, not one such row among others",
    kind="subtle",
    first="named",
    verdict="named",
    says="NaN for a row of only −∞",
)
def softmax(scores):
    if (scores == -math.inf).all():
        return torch.zeros_like(scores)
    powers = torch.exp(scores - scores.max(dim=-1, keepdim=True).values)
    return powers / powers.sum(dim=-1, keepdim=True)


@stranger(
    "worked-context",
    "columns of P: the weights are transposed",
    first="named",
    verdict="named",
    says="rows and columns exchanged",
)
def worked_context():
    p = torch.tensor([[1.0, 0.0, 0.0], [0.3, 0.7, 0.0], [0.1, 0.8, 0.1]])
    v = torch.tensor([[0.5, 0.2, 1.0, 0.4], [0.1, 0.2, 0.6, 0.8], [0.3, 0.2, 0.2, 1.0]])
    return {
        "context": p.T @ v,
        "unchanged_row": 0,
        "constant_column": 1,
        "strongest": [0, 1, 1],
    }


@stranger(
    "worked-context",
    "strongest read down the columns: who is attended to most by whom",
    kind="subtle",
    first="named",
    verdict="named",
    says="rows and columns exchanged",
)
def worked_context():
    p = torch.tensor([[1.0, 0.0, 0.0], [0.3, 0.7, 0.0], [0.1, 0.8, 0.1]])
    v = torch.tensor([[0.5, 0.2, 1.0, 0.4], [0.1, 0.2, 0.6, 0.8], [0.3, 0.2, 0.2, 1.0]])
    return {
        "context": p @ v,
        "unchanged_row": 0,
        "constant_column": 1,
        "strongest": [0, 2, 2],
    }


@stranger(
    "worked-context",
    "one number is wrong (0.17, a slip in the last row) AND positions from 1",
    kind="double",
    first="told",
    verdict="told",
)
def worked_context():
    context = torch.tensor(
        [[0.5, 0.2, 1.0, 0.4], [0.22, 0.2, 0.72, 0.68], [0.17, 0.2, 0.6, 0.78]]
    )
    return {
        "context": context,
        "unchanged_row": 1,
        "constant_column": 2,
        "strongest": [1, 2, 2],
    }


@stranger(
    "project-qkv",
    "values from x_q",
    kind="subtle",
    first="named",
    verdict="named",
    says="values from x_q",
)
def project_qkv(x_q, x_kv, w_q, w_k, w_v):
    q = x_q @ w_q
    k = x_kv @ w_k
    v = x_q @ w_v
    return q, k, v


@stranger(
    "project-qkv",
    "keys are made with w_q",
    kind="plain",
    first="named",
    verdict="named",
    says="w_q used for the keys, too",
)
def project_qkv(x_q, x_kv, w_q, w_k, w_v):
    q, k, v = x_q @ w_q, x_kv @ w_q, x_kv @ w_v
    return q, k, v


@stranger(
    "causal-mask",
    "the diagonal is not allowed",
    first="named",
    verdict="named",
    says="off by one: the diagonal is blocked",
)
def causal_mask(length):
    return torch.tril(torch.ones(length, length, dtype=torch.bool), diagonal=-1)


@stranger(
    "causal-mask",
    "True means blocked",
    first="named",
    verdict="named",
    says="mask inverted",
)
def causal_mask(length):
    return torch.triu(torch.ones(length, length), diagonal=1).bool()


@stranger(
    "causal-mask",
    "made by stop of arange one too early: T-1 positions",
    kind="subtle",
    first="shown",
    verdict="named",
    says="one position too few",
)
def causal_mask(length):
    positions = torch.arange(1, length)
    return positions[:, None] >= positions[None, :]


@stranger(
    "padding-mask",
    "<=: one padding token is let through",
    kind="subtle",
    first="named",
    verdict="named",
    says="off by one",
)
def padding_mask(lengths, max_length):
    positions = torch.arange(max_length)
    return positions <= lengths[:, None, None]


@stranger(
    "padding-mask",
    "the width is the longest of the lengths, not max_length",
    kind="subtle",
    first="named",
    verdict="named",
    says="the longest length in place of max_length",
)
def padding_mask(lengths, max_length):
    positions = torch.arange(int(lengths.max()))
    return positions[None, None, :] < lengths[:, None, None]


@stranger(
    "padding-mask",
    "the axis of size 1 is at the end AND True means padding",
    kind="double",
    first="shown",
    verdict="named",
    says="masks queries in place of keys, and mask inverted",
)
def padding_mask(lengths, max_length):
    positions = torch.arange(max_length)
    return (positions[None, :] >= lengths[:, None]).unsqueeze(-1)


@stranger(
    "masked-softmax",
    "the scores are multiplied by the mask",
    first="named",
    verdict="named",
    says="a hidden score becomes 0, not −∞",
)
def masked_softmax(scores, mask=None):
    if mask is not None:
        scores = scores * mask
    return softmax(scores)


@stranger(
    "masked-softmax",
    "-1e9 in place of -inf",
    kind="subtle",
    first="named",
    verdict="named",
    says="a large negative number in place of −∞",
)
def masked_softmax(scores, mask=None):
    if mask is None:
        return softmax(scores)
    return softmax(scores.masked_fill(~mask, -1e9))


@stranger(
    "masked-softmax",
    "the mask is turned round",
    first="named",
    verdict="named",
    says="mask inverted",
)
def masked_softmax(scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(mask, float("-inf"))
    return softmax(scores)


@stranger(
    "masked-softmax",
    "the smallest positive number in place of 0 for the forbidden: scores filled with "
    "the least score minus 10, so a little weight stays",
    kind="subtle",
    first="shown",
    verdict="named",
    says="a large negative number in place of −∞",
)
def masked_softmax(scores, mask=None):
    if mask is None:
        return softmax(scores)
    low = scores.amin() - 10
    return softmax(torch.where(mask, scores, low))


@stranger(
    "masked-softmax",
    "weights times the mask after the softmax, divided by their sum: 0/0 in empty rows, "
    "repaired by nan_to_num AND large forbidden scores take all weight",
    kind="double",
    first="named",
    verdict="named",
    says="renormalised after the softmax",
)
def masked_softmax(scores, mask=None):
    weights = softmax(scores)
    if mask is None:
        return weights
    weights = weights * mask
    return torch.nan_to_num(weights / weights.sum(dim=-1, keepdim=True))


@stranger(
    "scaled-dot-product-attention",
    "divided by the root of d_v",
    kind="subtle",
    first="named",
    verdict="named",
    says="scaled by √d_v in place of √d_k",
)
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(v.shape[-1])
    weights = masked_softmax(scores, mask)
    return weights @ v, weights


@stranger(
    "scaled-dot-product-attention",
    "scaled after the softmax",
    first="named",
    verdict="named",
    says="scaled after the softmax",
)
def scaled_dot_product_attention(q, k, v, mask=None):
    weights = masked_softmax(q @ k.mT, mask) / math.sqrt(q.shape[-1])
    return weights @ v, weights


@stranger(
    "scaled-dot-product-attention",
    "divided by the root of the number of keys",
    kind="subtle",
    first="named",
    verdict="named",
    says="scaled by the number of keys",
)
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.mT
    scores = scores / math.sqrt(scores.shape[-1])
    weights = masked_softmax(scores, mask)
    return weights @ v, weights


@stranger(
    "scaled-dot-product-attention",
    "divided by d_k, not its root AND the mask is not handed on",
    kind="double",
    first="named",
    verdict="named",
    says="scaled by d_k in place of √d_k, and mask ignored",
)
def scaled_dot_product_attention(q, k, v, mask=None):
    d_k = q.size(-1)
    scores = torch.matmul(q, k.transpose(-1, -2)) / d_k
    weights = masked_softmax(scores)
    return torch.matmul(weights, v), weights


@stranger(
    "scaled-dot-product-attention",
    "the scores that are exactly 0 are taken for masked ones",
    kind="subtle",
    first="passed",
    verdict="named",
    says="a score of 0 is taken for a hidden one",
)
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = (q @ k.mT) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores * mask
        scores = scores.masked_fill(scores == 0, -math.inf)
    weights = masked_softmax(scores, None)
    return weights @ v, weights


@stranger(
    "scaled-dot-product-attention",
    "weights and output in the wrong order",
    kind="plain",
    first="named",
    verdict="named",
    says="weights returned first",
)
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(k.shape[-1])
    weights = masked_softmax(scores, mask)
    return weights, weights @ v


@stranger(
    "scaled-dot-product-attention",
    "the weights that are returned are detached, and so the output has no gradient "
    "to queries and keys",
    kind="subtle",
    first="named",
    verdict="named",
    says="no gradient comes back",
)
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = masked_softmax(scores, mask).detach()
    return weights @ v, weights


@stranger(
    "attention-module",
    "the mask is dropped in self-attention",
    kind="subtle",
    first="passed",
    verdict="named",
    says="the mask is dropped in self-attention",
)
class Attention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / math.sqrt(d_model))
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / math.sqrt(d_model))
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / math.sqrt(d_model))

    def forward(self, x_q, x_kv=None, mask=None):
        if x_kv is None:
            q, k, v = project_qkv(x_q, x_q, self.w_q, self.w_k, self.w_v)
            return scaled_dot_product_attention(q, k, v)
        q, k, v = project_qkv(x_q, x_kv, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q, k, v, mask)


@stranger(
    "attention-module",
    "w_v is divided by √d_v and w_k by √d_k",
    kind="subtle",
    first="passed",
    verdict="named",
    says="the weights start too large",
)
class Attention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / math.sqrt(d_k))
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / math.sqrt(d_k))
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / math.sqrt(d_v))

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        q, k, v = project_qkv(x_q, x_kv, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q, k, v, mask)


@stranger(
    "attention-module",
    "x_kv is always replaced by x_q, no cross-attention AND w_q and w_k are one matrix",
    kind="double",
    first="named",
    verdict="named",
    says="two parameters start with the same numbers",
)
class Attention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        start = torch.randn(d_model, d_k) / math.sqrt(d_model)
        self.w_q = nn.Parameter(start)
        self.w_k = nn.Parameter(start.clone())
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / math.sqrt(d_model))

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q
        q, k, v = project_qkv(x_q, x_kv, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q, k, v, mask)


@stranger(
    "geometric-example",
    "the rotation turns the other way: signs exchanged",
    first="named",
    verdict="named",
    says="rotations applied to column vectors",
)
def geometric_example(theta_q, theta_k, theta_v):
    def rotation(theta):
        c, s = math.cos(theta), math.sin(theta)
        return torch.tensor([[c, s], [-s, c]])

    q, k, v = rotation(theta_q), rotation(theta_k), rotation(theta_v)
    scores = q @ k.T
    scaled = scores / math.sqrt(2)
    weights = softmax(scaled)
    return {
        "scores": scores,
        "scaled": scaled,
        "weights": weights,
        "output": weights @ v,
        "car_to_blue": weights[1, 0].item(),
    }


@stranger(
    "geometric-example",
    "car_to_blue reads the column of car AND the weights come from the unscaled scores",
    kind="double",
    first="told",
    verdict="named",
    says="softmax of the unscaled scores, and rows and columns exchanged",
)
def geometric_example(theta_q, theta_k, theta_v):
    def rotation(theta):
        c, s = math.cos(theta), math.sin(theta)
        return torch.tensor([[c, -s], [s, c]])

    q, k, v = rotation(theta_q), rotation(theta_k), rotation(theta_v)
    scores = q @ k.T
    weights = softmax(scores)
    return {
        "scores": scores,
        "scaled": scores / math.sqrt(2),
        "weights": weights,
        "output": weights @ v,
        "car_to_blue": float(weights[0, 1]),
    }


@stranger(
    "redirect-attention",
    "turned the wrong way: -135 degrees, so blue attends to car",
    first="named",
    verdict="named",
    says="the difference of the angles has the wrong sign",
)
def redirecting_angles():
    # the key of blue has to meet the query of car
    return 0.0, math.pi * 3 / 4


@stranger(
    "redirect-attention",
    "turned by 45 degrees only: both scores of car are equal",
    first="told",
    verdict="named",
    says="'car' attends to itself as much as to 'blue'",
)
def redirecting_angles():
    return math.pi / 4, 0.0


@stranger(
    "softmax-jacobian",
    "the sign of the products is forgotten off the diagonal",
    first="told",
    verdict="named",
    says="the sign off the diagonal is missing",
)
def softmax_jacobian(probabilities):
    column = probabilities.unsqueeze(-1)
    row = probabilities.unsqueeze(-2)
    n = probabilities.shape[-1]
    products = column * row
    eye = torch.eye(n, dtype=torch.bool)
    diagonal = torch.diag_embed(probabilities * (1 - probabilities))
    return torch.where(eye, diagonal, products)


@stranger(
    "softmax-jacobian",
    "the diagonal is p, not p (1 - p)",
    kind="subtle",
    first="told",
    verdict="named",
    says="the diagonal is p in place of p (1 − p)",
)
def softmax_jacobian(probabilities):
    n = probabilities.shape[-1]
    products = -probabilities[..., :, None] * probabilities[..., None, :]
    eye = torch.eye(n, dtype=torch.bool)
    return torch.where(eye, torch.diag_embed(probabilities), products)


@stranger(
    "softmax-jacobian",
    "the products of a batch are taken across the rows: outer of the flattened batch",
    kind="subtle",
    first="told",
    verdict="named",
    says="only works for one row",
)
def softmax_jacobian(probabilities):
    if probabilities.ndim == 1:
        return torch.diag(probabilities) - torch.outer(probabilities, probabilities)
    mean = probabilities.flatten(0, -2).mean(0)
    return torch.diag_embed(probabilities) - torch.outer(mean, mean)


@stranger(
    "additive-attention",
    "tanh of the product with v, not before it",
    first="named",
    verdict="named",
    says="tanh after the product with v",
)
class AdditiveAttention(nn.Module):
    def __init__(self, d_q, d_k, d_hidden):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_q, d_hidden) / math.sqrt(d_q))
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden) / math.sqrt(d_k))
        self.v = nn.Parameter(torch.randn(d_hidden) / math.sqrt(d_hidden))

    def forward(self, x_q, x_kv, mask=None):
        queries = (x_q @ self.w_q).unsqueeze(-2)
        keys = (x_kv @ self.w_k).unsqueeze(-3)
        scores = torch.tanh((queries + keys) @ self.v)
        weights = masked_softmax(scores, mask)
        return weights @ x_kv, weights


@stranger(
    "additive-attention",
    "the scores are scaled by the root of d_hidden",
    kind="subtle",
    first="named",
    verdict="named",
    says="scaled as a dot product",
)
class AdditiveAttention(nn.Module):
    def __init__(self, d_q, d_k, d_hidden):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_q, d_hidden) / math.sqrt(d_q))
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden) / math.sqrt(d_k))
        self.v = nn.Parameter(torch.randn(d_hidden) / math.sqrt(d_hidden))

    def forward(self, x_q, x_kv, mask=None):
        queries = (x_q @ self.w_q).unsqueeze(-2)
        keys = (x_kv @ self.w_k).unsqueeze(-3)
        scores = torch.tanh(queries + keys) @ self.v / math.sqrt(self.v.shape[0])
        weights = masked_softmax(scores, mask)
        return weights @ x_kv, weights


@stranger(
    "additive-attention",
    "tanh of each part before they are added AND the mask is forgotten",
    kind="double",
    first="named",
    verdict="named",
    says="tanh of each part in place of their sum, and mask ignored",
)
class AdditiveAttention(nn.Module):
    def __init__(self, d_q, d_k, d_hidden):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_q, d_hidden) / math.sqrt(d_q))
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden) / math.sqrt(d_k))
        self.v = nn.Parameter(torch.randn(d_hidden) / math.sqrt(d_hidden))

    def forward(self, x_q, x_kv, mask=None):
        queries = torch.tanh(x_q @ self.w_q).unsqueeze(-2)
        keys = torch.tanh(x_kv @ self.w_k).unsqueeze(-3)
        weights = softmax((queries + keys) @ self.v)
        return weights @ x_kv, weights


@stranger(
    "additive-attention",
    "v starts as ones divided by the root",
    kind="subtle",
    first="passed",
    verdict="named",
    says="the weights all start alike",
)
class AdditiveAttention(nn.Module):
    def __init__(self, d_q, d_k, d_hidden):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_q, d_hidden) / math.sqrt(d_q))
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden) / math.sqrt(d_k))
        self.v = nn.Parameter(torch.ones(d_hidden) / math.sqrt(d_hidden))

    def forward(self, x_q, x_kv, mask=None):
        queries = (x_q @ self.w_q).unsqueeze(-2)
        keys = (x_kv @ self.w_k).unsqueeze(-3)
        scores = torch.tanh(queries + keys) @ self.v
        weights = masked_softmax(scores, mask)
        return weights @ x_kv, weights


@stranger(
    "attention-cost",
    "three projections, the output projection is forgotten",
    first="named",
    verdict="named",
    says="three projections in place of four",
)
def attention_cost(length, d_model):
    projections = 3 * length * d_model**2
    scores = length * length * d_model
    mixing = length * length * d_model
    return {
        "projections": projections,
        "scores": scores,
        "mixing": mixing,
        "quadratic_share": (scores + mixing) / (projections + scores + mixing),
    }


@stranger(
    "attention-cost",
    "quadratic_share is the ratio to the projections",
    kind="subtle",
    first="named",
    verdict="named",
    says="a ratio in place of a share",
)
def attention_cost(length, d_model):
    projections = 4 * length * d_model * d_model
    scores = length * d_model * length
    mixing = length * length * d_model
    return {
        "projections": projections,
        "scores": scores,
        "mixing": mixing,
        "quadratic_share": (scores + mixing) / projections,
    }


@stranger(
    "attention-cost",
    "every convolution widens the view by kernel: ceil(length / kernel)",
    kind="subtle",
    first="named",
    verdict="named",
    says="each layer is taken to add a whole kernel",
)
def path_length(kind, length, kernel=3):
    if kind == "recurrent":
        return length
    if kind == "convolution":
        return math.ceil(length / kernel)
    if kind == "attention":
        return 1
    raise ValueError(f"unknown kind {kind}")


@stranger(
    "attention-cost",
    "rounded down and one added: one layer too many where it fits exactly AND "
    "length - 1 steps of a recurrent network",
    kind="double",
    first="named",
    verdict="named",
    says="the first token's own step is not counted",
)
def path_length(kind, length, kernel=3):
    if kind == "recurrent":
        return length - 1
    if kind == "convolution":
        return (length - 1) // (kernel - 1) + 1
    if kind == "attention":
        return 1
    raise ValueError(kind)


# --- a second round, after the checks were mended from the first ---


@stranger(
    "softmax",
    "the largest absolute score is subtracted: very negative rows become zeros",
    kind="subtle",
    first="shown",
    verdict="named",
    says="the largest absolute value in place of the largest score",
    round=2,
)
def softmax(scores):
    top = scores.abs().amax(dim=-1, keepdim=True)
    top = torch.where(torch.isinf(top), 0.0, top)
    powers = torch.exp(scores - top)
    total = powers.sum(dim=-1, keepdim=True)
    return powers / torch.where(total == 0, 1.0, total)


@stranger(
    "worked-context",
    "the column is counted from 1 AND the strongest is looked up down the columns",
    kind="double",
    first="named",
    verdict="named",
    says="counted from 1",
    round=2,
)
def worked_context():
    context = torch.tensor(
        [[0.5, 0.2, 1.0, 0.4], [0.22, 0.2, 0.72, 0.68], [0.16, 0.2, 0.6, 0.78]]
    )
    return {
        "context": context,
        "unchanged_row": 0,
        "constant_column": 2,
        "strongest": [0, 2, 2],
    }


@stranger(
    "project-qkv",
    "the einsum wants exactly one batch axis",
    kind="subtle",
    first="told",
    verdict="named",
    says="only works with a batch",
    round=2,
)
def project_qkv(x_q, x_kv, w_q, w_k, w_v):
    q = torch.einsum("btd,dk->btk", x_q, w_q)
    k = torch.einsum("btd,dk->btk", x_kv, w_k)
    v = torch.einsum("btd,dv->btv", x_kv, w_v)
    return q, k, v


@stranger(
    "causal-mask",
    "only the first position sees itself",
    first="told",
    verdict="named",
    says="only the first position sees itself",
    round=2,
)
def causal_mask(length):
    mask = torch.ones(length, length, dtype=torch.bool).tril(diagonal=-1)
    mask[0, 0] = True
    return mask


@stranger(
    "padding-mask",
    "one token too many (<=) AND the axis of size 1 at the end, not in the middle",
    kind="double",
    first="told",
    verdict="named",
    says="masks queries in place of keys, and off by one",
    round=2,
)
def padding_mask(lengths, max_length):
    positions = torch.arange(max_length)
    mask = positions[None, :] <= lengths[:, None]
    return mask.unsqueeze(-1)


@stranger(
    "masked-softmax",
    "masked after the softmax and divided anew: 0 where a forbidden score is far above",
    kind="subtle",
    first="named",
    verdict="named",
    says="renormalised after the softmax",
    round=2,
)
def masked_softmax(scores, mask=None):
    weights = softmax(scores)
    if mask is None:
        return weights
    weights = weights * mask
    return weights / (weights.sum(dim=-1, keepdim=True) + 1e-9)


@stranger(
    "scaled-dot-product-attention",
    "divided by the root of the number of keys AND the mask is not used",
    kind="double",
    first="named",
    verdict="named",
    says="scaled by the number of keys, and mask ignored",
    round=2,
)
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(k.shape[-2])
    weights = masked_softmax(scores)
    return weights @ v, weights


@stranger(
    "attention-module",
    "the matrices are divided by the root of their output width",
    first="told",
    verdict="told",
    says="the weights start too large",
    round=2,
)
class Attention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / math.sqrt(d_k))
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / math.sqrt(d_k))
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / math.sqrt(d_v))

    def forward(self, x_q, x_kv=None, mask=None):
        if x_kv is None:
            x_kv = x_q
        q, k, v = project_qkv(x_q, x_kv, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q, k, v, mask)


@stranger(
    "geometric-example",
    "the weights are the softmax of the unscaled scores AND car_to_blue is blue to car",
    kind="double",
    first="named",
    verdict="named",
    says="softmax of the unscaled scores, and rows and columns exchanged",
    round=2,
)
def geometric_example(theta_q, theta_k, theta_v):
    def rotation(theta):
        return torch.tensor(
            [
                [math.cos(theta), -math.sin(theta)],
                [math.sin(theta), math.cos(theta)],
            ]
        )

    q, k, v = rotation(theta_q), rotation(theta_k), rotation(theta_v)
    scores = q @ k.T
    scaled = scores / math.sqrt(2)
    weights = softmax(scores)
    return {
        "scores": scores,
        "scaled": scaled,
        "weights": weights,
        "output": weights @ v,
        "car_to_blue": weights[0, 1].item(),
    }


@stranger(
    "softmax-jacobian",
    "p(1 - p) on the diagonal, and the product with itself subtracted there again",
    first="named",
    verdict="named",
    says="the diagonal subtracted twice",
    round=2,
)
def softmax_jacobian(probabilities):
    column = probabilities.unsqueeze(-1)
    row = probabilities.unsqueeze(-2)
    diagonal = torch.diag_embed(probabilities * (1 - probabilities))
    return diagonal - column * row


@stranger(
    "additive-attention",
    "tanh of query and key each for itself AND the mask is not used",
    kind="double",
    first="named",
    verdict="named",
    round=2,
    says="tanh of each part in place of their sum, and mask ignored",
)
class AdditiveAttention(nn.Module):
    def __init__(self, d_q, d_k, d_hidden):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_q, d_hidden) / math.sqrt(d_q))
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden) / math.sqrt(d_k))
        self.v = nn.Parameter(torch.randn(d_hidden) / math.sqrt(d_hidden))

    def forward(self, x_q, x_kv, mask=None):
        queries = torch.tanh(x_q @ self.w_q).unsqueeze(-2)
        keys = torch.tanh(x_kv @ self.w_k).unsqueeze(-3)
        scores = (queries + keys) @ self.v
        weights = masked_softmax(scores)
        return weights @ x_kv, weights


@stranger(
    "attention-cost",
    "the number of layers is rounded to the nearest, not up",
    kind="subtle",
    first="shown",
    verdict="named",
    says="rounded to the nearest",
    round=2,
)
def path_length(kind, length, kernel=3):
    if kind == "recurrent":
        return length
    if kind == "convolution":
        return round((length - 1) / (kernel - 1))
    if kind == "attention":
        return 1
    raise ValueError(kind)


@stranger(
    "attention-pooling",
    "divided by d and not by its root",
    kind="subtle",
    first="named",
    verdict="named",
    says="divided by d_model in place of its root",
)
class AttentionPooling(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.query = nn.Parameter(0.02 * torch.randn(d_model))

    def forward(self, hidden, mask=None):
        scores = hidden @ self.query / hidden.shape[-1]
        if mask is not None:
            scores = scores.masked_fill(~mask[:, 0], -math.inf)
        weights = scores.softmax(-1)
        if mask is not None:
            weights = weights.masked_fill(~mask[:, 0], 0)
        return (weights[..., None] * hidden).sum(1), weights


@stranger(
    "attention-pooling",
    "divided by the root of the length, not of the width",
    kind="subtle",
    first="named",
    verdict="named",
    says="divided by the root of the number of tokens",
)
class AttentionPooling(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.query = nn.Parameter(0.02 * torch.randn(d_model))

    def forward(self, hidden, mask=None):
        scores = hidden @ self.query / math.sqrt(hidden.size(1))
        if mask is not None:
            scores = scores.masked_fill(~mask[:, 0], float("-inf"))
        weights = torch.softmax(scores, dim=1)
        if mask is not None:
            weights = weights.masked_fill(~mask[:, 0], 0.0)
        pooled = (weights.unsqueeze(-1) * hidden).sum(dim=1)
        return pooled, weights


@stranger(
    "attention-pooling",
    "padding is set to 0 after the softmax without renormalising",
    kind="subtle",
    first="named",
    verdict="named",
    says="masked after the softmax",
)
class AttentionPooling(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.query = nn.Parameter(0.02 * torch.randn(d_model))

    def forward(self, hidden, mask=None):
        weights = torch.softmax(hidden @ self.query / hidden.shape[-1] ** 0.5, dim=-1)
        if mask is not None:
            weights = weights * mask.squeeze(1)
        return (weights[..., None] * hidden).sum(1), weights


@stranger(
    "attention-pooling",
    "the masked score is -1e9: an empty sequence gets equal weights",
    kind="subtle",
    first="named",
    verdict="named",
    says="a large negative number in place of −∞",
)
class AttentionPooling(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.query = nn.Parameter(0.02 * torch.randn(d_model))

    def forward(self, hidden, mask=None):
        scores = hidden @ self.query / hidden.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask[:, 0], -1e9)
        weights = scores.softmax(dim=-1)
        pooled = torch.einsum("bt,btd->bd", weights, hidden)
        return pooled, weights


@stranger(
    "attention-pooling",
    "no division by the root of d AND nan_to_num only on what is pooled",
    kind="double",
    first="named",
    verdict="named",
    says="the scores are not scaled",
)
class AttentionPooling(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.query = nn.Parameter(0.02 * torch.randn(d_model))

    def forward(self, hidden, mask=None):
        scores = hidden @ self.query
        if mask is not None:
            scores = scores.masked_fill(~mask[:, 0], -math.inf)
        weights = scores.softmax(dim=-1)
        pooled = torch.einsum("bt,btd->bd", weights, hidden)
        return torch.nan_to_num(pooled), weights


@stranger(
    "attention-pooling",
    "divided by d in place of its root AND NaN weights for an empty sequence",
    kind="double",
    first="named",
    verdict="named",
    says="divided by d_model in place of its root",
    round=2,
)
class AttentionPooling(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.query = nn.Parameter(0.02 * torch.randn(d_model))

    def forward(self, hidden, mask=None):
        scores = hidden @ self.query / hidden.shape[-1]
        if mask is not None:
            scores = scores.masked_fill(~mask[:, 0], -math.inf)
        weights = torch.softmax(scores, dim=-1)
        pooled = (weights[..., None] * hidden).sum(dim=1)
        return torch.nan_to_num(pooled), weights


@stranger(
    "attention-pooling",
    "the query is brought to length 1 first",
    first="named",
    verdict="named",
    says="the query is scaled to length 1",
    round=2,
)
class AttentionPooling(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.query = nn.Parameter(0.02 * torch.randn(d_model))

    def forward(self, hidden, mask=None):
        query = self.query / self.query.norm()
        scores = hidden @ query / math.sqrt(hidden.shape[-1])
        if mask is None:
            weights = torch.softmax(scores, dim=-1)
        else:
            real = mask[:, 0]
            weights = torch.softmax(scores.masked_fill(~real, -math.inf), dim=-1)
            weights = weights.masked_fill(~real, 0.0)
        return (weights[..., None] * hidden).sum(dim=1), weights


# --- a third round, of what came later ---


@stranger(
    "attention-pooling",
    "the scores are not divided by the root of d",
    kind="plain",
    first="named",
    verdict="named",
    says="the scores are not scaled",
    round=3,
)
class AttentionPooling(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.query = nn.Parameter(0.02 * torch.randn(d_model))

    def forward(self, hidden, mask=None):
        scores = hidden @ self.query
        weights = masked_softmax(scores, None if mask is None else mask[:, 0])
        pooled = (weights.unsqueeze(-1) * hidden).sum(dim=1)
        return pooled, weights


@stranger(
    "attention-pooling",
    "hidden vectors of the padding are set to 0 in place of their weights: a score of 0 "
    "takes its share of the softmax",
    kind="subtle",
    first="named",
    verdict="named",
    says="padded scores set to 0",
    round=3,
)
class AttentionPooling(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.query = nn.Parameter(torch.randn(d_model) * 0.02)

    def forward(self, hidden, mask=None):
        if mask is not None:
            hidden = hidden * mask.transpose(1, 2)
        scores = hidden @ self.query / math.sqrt(hidden.shape[-1])
        weights = torch.softmax(scores, dim=-1)
        return torch.einsum("bt,btd->bd", weights, hidden), weights


@stranger(
    "attention-pooling",
    "the root of T in place of that of d AND the mask of the first sentence is used for "
    "all of the batch",
    kind="double",
    first="named",
    verdict="named",
    says="divided by the root of the number of tokens",
    round=3,
)
class AttentionPooling(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.query = nn.Parameter(torch.normal(0.0, 0.02, (d_model,)))

    def forward(self, hidden, mask=None):
        scores = hidden @ self.query / math.sqrt(hidden.shape[1])
        weights = masked_softmax(scores, mask[0] if mask is not None else None)
        pooled = torch.bmm(weights.unsqueeze(1), hidden).squeeze(1)
        return pooled, weights


@stranger(
    "attention-pooling",
    "the weights are multiplied by the mask after an ordinary softmax, so they do not sum "
    "to 1",
    kind="subtle",
    first="named",
    verdict="named",
    says="masked after the softmax",
    round=3,
)
class AttentionPooling(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.query = nn.Parameter(0.02 * torch.randn(d_model))

    def forward(self, hidden, mask=None):
        d = hidden.size(-1)
        s = (hidden * self.query).sum(-1) / math.sqrt(d)
        w = s.softmax(dim=1)
        if mask is not None:
            w = w * mask[:, 0].float()
        return (w[..., None] * hidden).sum(1), w
