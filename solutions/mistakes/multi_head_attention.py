"""Wrong and right answers to the exercises of chapter 5."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

from mistakes import right, wrong


def split(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(-3, -2)


def merge(x):
    return x.transpose(-3, -2).flatten(-2)


def attend(q, k, v, mask=None, scale=None):
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, -1).nan_to_num(0.0)
    return weights @ v, weights


def check_heads(d, heads):
    if d % heads:
        raise ValueError("not divisible")


# --- split-heads ----------------------------------------------------------------------


@wrong("split-heads", "features dealt out in turn")
def split_heads(x, heads):
    check_heads(x.shape[-1], heads)
    return x.unflatten(-1, (-1, heads)).movedim(-1, -3)


@wrong("split-heads", "only works with a batch")
def split_heads(x, heads):
    batch, length, d = x.shape
    check_heads(d, heads)
    return x.view(batch, length, heads, d // heads).transpose(1, 2)


@wrong("split-heads", "only works with a batch")
def split_heads(x, heads):
    check_heads(x.shape[-1], heads)
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


@wrong("split-heads", "a width that heads does not divide is accepted")
def split_heads(x, heads):
    width = x.shape[-1] // heads
    return split(x[..., : heads * width], heads)


@wrong("split-heads", "a width that heads does not divide is accepted")
def split_heads(x, heads):
    return split(x, heads)  # a RuntimeError of PyTorch's, not a ValueError


@wrong("split-heads", "no gradient comes back")
def split_heads(x, heads):
    check_heads(x.shape[-1], heads)
    return split(x, heads).detach()


@right("split-heads")
def split_heads(x, heads):
    """chunk and stack"""
    check_heads(x.shape[-1], heads)
    return torch.stack(x.chunk(heads, dim=-1), dim=-3)


@right("split-heads")
def split_heads(x, heads):
    """reshape and movedim"""
    *leading, length, d = x.shape
    check_heads(d, heads)
    return x.reshape(*leading, length, heads, d // heads).movedim(-2, -3).contiguous()


# --- merge-heads ----------------------------------------------------------------------


@wrong("merge-heads", "heads interleaved")
def merge_heads(x):
    return x.movedim(-3, -1).flatten(-2)


@wrong("merge-heads", "the heads are put below each other")
def merge_heads(x):
    return x.flatten(-3, -2)


@wrong("merge-heads", "only works with a batch")
def merge_heads(x):
    return x.transpose(1, 2).flatten(2)


@wrong("merge-heads", "view of exchanged axes")
def merge_heads(x):
    *leading, heads, length, width = x.shape
    return x.transpose(-3, -2).view(*leading, length, heads * width)


@wrong("merge-heads", "no gradient comes back")
def merge_heads(x):
    return merge(x.data)


@right("merge-heads")
def merge_heads(x):
    """concatenation"""
    return torch.cat(x.unbind(-3), dim=-1)


@right("merge-heads")
def merge_heads(x):
    """contiguous and view"""
    x = x.transpose(-3, -2).contiguous()
    return x.view(*x.shape[:-2], x.shape[-2] * x.shape[-1])


# --- loop-of-heads --------------------------------------------------------------------

LOOP = "loop-of-heads"


def outputs_of(x_q, x_kv, w_q, w_k, w_v, mask=None, scale=None):
    return [
        attend(x_q @ w_q[i], x_kv @ w_k[i], x_kv @ w_v[i], mask, scale)[0]
        for i in range(len(w_q))
    ]


@wrong(LOOP, "no output projection")
def loop_of_heads(x_q, x_kv, w_q, w_k, w_v, w_o, mask=None):
    """Source 1: that's it."""
    return torch.cat(outputs_of(x_q, x_kv, w_q, w_k, w_v, mask), -1)


@wrong(LOOP, "concatenation of the scores")
def loop_of_heads(x_q, x_kv, w_q, w_k, w_v, w_o, mask=None):
    """Source 0's words, taken literally."""
    scores = [
        x_q @ q @ (x_kv @ k).mT / math.sqrt(q.shape[-1]) for q, k in zip(w_q, w_k)
    ]
    return torch.cat(scores, -1)


@wrong(LOOP, "concatenation of the scores")
def loop_of_heads(x_q, x_kv, w_q, w_k, w_v, w_o, mask=None):
    heads = range(len(w_q))
    parts = [attend(x_q @ w_q[i], x_kv @ w_k[i], x_kv @ w_v[i], mask) for i in heads]
    return torch.cat([weights for _, weights in parts], -1)


@wrong(LOOP, "scaled twice")
def loop_of_heads(x_q, x_kv, w_q, w_k, w_v, w_o, mask=None):
    heads = [
        attend(x_q @ q / math.sqrt(q.shape[1]), x_kv @ k, x_kv @ v, mask)[0]
        for q, k, v in zip(w_q, w_k, w_v)
    ]
    return torch.cat(heads, dim=-1) @ w_o


@wrong(LOOP, "mask for the first head only")
def loop_of_heads(x_q, x_kv, w_q, w_k, w_v, w_o, mask=None):
    first = outputs_of(x_q, x_kv, w_q, w_k, w_v, mask)[:1]
    return torch.cat(first + outputs_of(x_q, x_kv, w_q, w_k, w_v)[1:], -1) @ w_o


@wrong(LOOP, "a tuple where a tensor is wanted")
def loop_of_heads(x_q, x_kv, w_q, w_k, w_v, w_o, mask=None):
    outputs = [
        attend(x_q @ w_q[i], x_kv @ w_k[i], x_kv @ w_v[i], mask)
        for i in range(len(w_q))
    ]
    return torch.cat(outputs, -1) @ w_o


@wrong(LOOP, "heads stacked in place of parallel")
def loop_of_heads(x_q, x_kv, w_q, w_k, w_v, w_o, mask=None):
    """The other reading of source 1's "stack"."""
    x, total = x_q, 0
    for q, k, v, o in zip(w_q, w_k, w_v, w_o.chunk(len(w_q))):
        x = attend(x @ q, x_kv @ k, x_kv @ v, mask)[0] @ o
        total = total + x
    return total


@wrong(LOOP, "a tuple is returned")
def loop_of_heads(x_q, x_kv, w_q, w_k, w_v, w_o, mask=None):
    return torch.cat(outputs_of(x_q, x_kv, w_q, w_k, w_v, mask), -1) @ w_o, None


@wrong(LOOP, "mask=None is not handled")
def loop_of_heads(x_q, x_kv, w_q, w_k, w_v, w_o, mask=None):
    return torch.cat(outputs_of(x_q, x_kv, w_q, w_k, w_v, mask.bool()), -1) @ w_o


@right(LOOP)
def loop_of_heads(x_q, x_kv, w_q, w_k, w_v, w_o, mask=None):
    """einsum, all heads at once"""
    q = torch.einsum("...sd,hde->...hse", x_q, w_q)
    k = torch.einsum("...sd,hde->...hse", x_kv, w_k)
    v = torch.einsum("...sd,hde->...hse", x_kv, w_v)
    z, _ = attend(q, k, v, None if mask is None else mask.unsqueeze(-3))
    return torch.einsum("...htv,hvd->...td", z, w_o.unflatten(0, (len(w_q), -1)))


@right(LOOP)
def loop_of_heads(x_q, x_kv, w_q, w_k, w_v, w_o, mask=None):
    """a sum of contributions"""
    z = outputs_of(x_q, x_kv, w_q, w_k, w_v, mask)
    return sum(each @ rows for each, rows in zip(z, w_o.chunk(len(z))))


# --- sum-over-heads -------------------------------------------------------------------

SUM = "sum-over-heads"


def contributions(z, w_o):
    return z @ w_o.unflatten(0, (z.shape[-3], z.shape[-1]))


@wrong(SUM, "the sum is missing")
def sum_over_heads(z, w_o):
    blocks = w_o.chunk(z.shape[-3])
    return torch.stack([z[..., i, :, :] @ b for i, b in enumerate(blocks)])


@wrong(SUM, "only one head is used")
def sum_over_heads(z, w_o):
    for i in range(z.shape[-3]):
        total = z[..., i, :, :] @ w_o[i * z.shape[-1] : (i + 1) * z.shape[-1]]
    return total


@wrong(SUM, "w_o cut by columns")
def sum_over_heads(z, w_o):
    d_v = z.shape[-1]
    if w_o.shape[0] != w_o.shape[1]:
        return contributions(z, w_o).sum(-3)
    return sum(
        z[..., i, :, :] @ w_o[:, i * d_v : (i + 1) * d_v].T for i in range(z.shape[-3])
    )


@wrong(SUM, "blocks of another height than d_v")
def sum_over_heads(z, w_o):
    """as many rows as a head would have columns"""
    rows = w_o.shape[1] // z.shape[-3]
    blocks = w_o.split(max(rows, 1))
    return sum(z[..., i, :, :] @ blocks[i] for i in range(z.shape[-3]))


@right(SUM)
def sum_over_heads(z, w_o):
    """a loop"""
    total, d_v = 0.0, z.shape[-1]
    for i in range(z.shape[-3]):
        total = total + z[..., i, :, :] @ w_o[i * d_v : (i + 1) * d_v, :]
    return total


@right(SUM)
def sum_over_heads(z, w_o):
    """einsum"""
    blocks = w_o.reshape(z.shape[-3], z.shape[-1], -1)
    return torch.einsum("...htv,hvd->...td", z, blocks)


# --- the layer ------------------------------------------------------------------------

MHA = "multi-head-attention"


class MultiHeadAttention(nn.Module):
    """A right layer to derive others from, one step of which can be replaced."""

    split, merge, attention = map(staticmethod, (split, merge, attend))
    spread, bias = 1.0, 0.0

    def __init__(self, d_model, heads):
        super().__init__()
        check_heads(d_model, heads)
        self.heads = heads
        for name in "qkvo":
            matrix = self.spread * torch.randn(d_model, d_model) / math.sqrt(d_model)
            setattr(self, f"w_{name}", nn.Parameter(matrix))
            setattr(self, f"b_{name}", nn.Parameter(torch.full((d_model,), self.bias)))

    def project(self, x_q, x_kv):
        q = self.split(x_q @ self.w_q + self.b_q, self.heads)
        k = self.split(x_kv @ self.w_k + self.b_k, self.heads)
        v = self.split(x_kv @ self.w_v + self.b_v, self.heads)
        return q, k, v

    def lay(self, mask):
        return None if mask is None else mask.unsqueeze(-3)

    def attend(self, q, k, v, mask=None):
        z, weights = self.attention(q, k, v, self.lay(mask))
        return self.merge(z) @ self.w_o + self.b_o, weights

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        return self.attend(*self.project(x_q, x_kv), mask)


Right = MultiHeadAttention


def view(x, heads):
    return x.reshape(*x.shape[:-2], heads, x.shape[-2], x.shape[-1] // heads)


def unview(x):
    heads, length, width = x.shape[-3:]
    return x.reshape(*x.shape[:-3], length, heads * width)


def named(exercise, mistake, base, **changes):
    """Derive a wrong layer from a right one, under the same name."""
    changes = {k: staticmethod(v) if callable(v) and k in
               ("split", "merge", "attention", "times") else v
               for k, v in changes.items()}  # fmt: skip
    return wrong(exercise, mistake)(type(base.__name__, (base,), changes))


def without_nan_care(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights = torch.softmax(scores, -1)
    return weights @ v, weights


def with_a_large_number(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    weights = torch.softmax(scores, -1)
    return weights @ v, weights


named(MHA, "view without transpose", Right, split=view, merge=unview)
named(MHA, "heads interleaved", Right, merge=lambda x: x.movedim(-3, -1).flatten(-2))


@wrong(MHA, "scaled twice")
class MultiHeadAttention(Right):
    def project(self, x_q, x_kv):
        q, k, v = super().project(x_q, x_kv)
        return q / math.sqrt(q.shape[-1]), k, v


@wrong(MHA, "one parameter under several names")
class MultiHeadAttention(Right):
    def __init__(self, d_model, heads):
        super().__init__(d_model, heads)
        self.b_q = self.b_k = self.b_v = self.b_o = nn.Parameter(torch.zeros(d_model))


@wrong(MHA, "only works with a batch")
class MultiHeadAttention(Right):
    def attend(self, q, k, v, mask=None):
        z, weights = self.attention(q, k, v, self.lay(mask))
        rows = z.transpose(-3, -2).reshape(len(q), -1, self.w_o.shape[0])
        return rows @ self.w_o + self.b_o, weights


@wrong(MHA, "b_v added after the weighted mean")
class MultiHeadAttention(Right):
    def project(self, x_q, x_kv):
        q, k, v = super().project(x_q, x_kv)
        return q, k, v - self.split(self.b_v[None], self.heads)

    def attend(self, q, k, v, mask=None):
        output, weights = super().attend(q, k, v, mask)
        return output + self.b_v @ self.w_o, weights


@wrong(MHA, "keys and values cut by the sizes of x_q")
class MultiHeadAttention(Right):
    def project(self, x_q, x_kv):
        *leading, d = x_q.shape
        cut = (*leading, self.heads, d // self.heads)
        parts = (
            (x @ getattr(self, f"w_{name}") + getattr(self, f"b_{name}"))
            for name, x in zip("qkv", (x_q, x_kv, x_kv), strict=True)
        )
        return tuple(part.reshape(cut).transpose(-3, -2) for part in parts)


@wrong(MHA, "only works with one batch axis")
class MultiHeadAttention(Right):
    def forward(self, x_q, x_kv=None, mask=None):
        if x_q.ndim == 2:
            x_kv = None if x_kv is None else x_kv[None]
            output, weights = self.forward(x_q[None], x_kv, mask)
            return output[0], weights[0]
        _batch, _length, _width = x_q.shape
        return super().forward(x_q, x_kv, mask)


named(MHA, "NaN on fully masked rows", Right, attention=without_nan_care)
named(
    MHA,
    "a large negative number in place of −∞",
    Right,
    attention=with_a_large_number,
)
named(
    MHA,
    "mask laid over the heads",
    Right,
    lay=lambda self, mask: None if mask is None else mask.unsqueeze(0),
)
named(
    MHA,
    "the axis for the heads is counted from the front",
    Right,
    lay=lambda self, mask: None if mask is None else mask.unsqueeze(1),
)
named(
    MHA,
    "mask does not fit the scores",
    Right,
    lay=lambda self, mask: None if mask is None else mask.unsqueeze(-2),
)
named(MHA, "an argument that is None", Right, lay=lambda self, mask: mask.unsqueeze(-3))
named(
    MHA,
    "an argument that is None",
    Right,
    forward=lambda self, x_q, x_kv=None, mask=None: self.attend(
        *self.project(x_q, x_kv), mask
    ),
)
named(
    MHA,
    "mask dropped for cross-attention",
    Right,
    forward=lambda self, x_q, x_kv=None, mask=None: (
        self.attend(*self.project(x_q, x_q), mask)
        if x_kv is None
        else self.attend(*self.project(x_q, x_kv))
    ),
)
named(
    MHA,
    "only the output is returned",
    Right,
    forward=lambda self, *args, **named: Right.forward(self, *args, **named)[0],
)
named(MHA, "the weights start too large", Right, spread=5.0)
named(MHA, "the weights start too small", Right, spread=0.1)
named(MHA, "the weights all start alike", Right, spread=0.0)
named(MHA, "the biases do not start at zero", Right, bias=1.0)


named(
    MHA,
    "a tuple where a tensor is wanted",
    Right,
    attend=lambda self, q, k, v, mask=None: (
        self.merge(attend(q, k, v, self.lay(mask))) @ self.w_o,
        None,
    ),
)


def without_w_o(self, q, k, v, mask=None):
    z, weights = attend(q, k, v, self.lay(mask))
    return merge(z), weights


def without_b_o(self, q, k, v, mask=None):
    z, weights = attend(q, k, v, self.lay(mask))
    return merge(z) @ self.w_o, weights


def project_without_biases(self, x_q, x_kv):
    parts = x_q @ self.w_q, x_kv @ self.w_k, x_kv @ self.w_v
    return tuple(split(each, self.heads) for each in parts)


def project_transposed(self, x_q, x_kv):
    q = F.linear(x_q, self.w_q, self.b_q)
    k, v = F.linear(x_kv, self.w_k, self.b_k), F.linear(x_kv, self.w_v, self.b_v)
    return tuple(split(each, self.heads) for each in (q, k, v))


def attend_detached(self, q, k, v, mask=None):
    return Right.attend(self, q.detach(), k.detach(), v.detach(), mask)


named(MHA, "weights transposed", Right, project=project_transposed)
named(MHA, "no gradient comes back", Right, attend=attend_detached)


@wrong(MHA, "one head of full width")
class MultiHeadAttention(Right):
    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        q, k, v = (merge(each) for each in self.project(x_q, x_kv))
        z, weights = attend(q, k, v, mask)
        return z @ self.w_o + self.b_o, weights


@wrong(MHA, "no output projection")
class MultiHeadAttention(Right):
    """Sources 0 and 1 end at the concatenation."""

    attend = without_w_o

    def __init__(self, d_model, heads):
        super().__init__(d_model, heads)
        del self.w_o, self.b_o


@wrong(MHA, "the biases are missing")
class MultiHeadAttention(Right):
    project, attend = project_without_biases, without_b_o

    def __init__(self, d_model, heads):
        super().__init__(d_model, heads)
        del self.b_q, self.b_k, self.b_v, self.b_o


@wrong(MHA, "a width that heads does not divide is accepted")
class MultiHeadAttention(Right):
    def __init__(self, d_model, heads):
        super().__init__(d_model, 1)
        self.heads = heads


@wrong(MHA, "parameters are missing")
class MultiHeadAttention(Right):
    def __init__(self, d_model, heads):
        super().__init__(d_model, heads)
        for name in "qkvo":
            delattr(self, f"w_{name}")
            setattr(self, f"w_{name}", torch.randn(d_model, d_model))


@wrong(MHA, "PyTorch's module in place of your own")
class MultiHeadAttention(Right):
    def __init__(self, d_model, heads):
        super().__init__(d_model, heads)
        for name in "qkvo":
            delattr(self, f"w_{name}")
            delattr(self, f"b_{name}")
            setattr(self, f"w_{name}", nn.Linear(d_model, d_model))


@wrong(MHA, "a matrix for each head")
class MultiHeadAttention(Right):
    def __init__(self, d_model, heads):
        super().__init__(d_model, heads)
        for name in "qkv":
            matrices = torch.randn(heads, d_model, d_model // heads)
            setattr(self, f"w_{name}", nn.Parameter(matrices))


@wrong(MHA, "each head as wide as the model")
class MultiHeadAttention(Right):
    def __init__(self, d_model, heads):
        super().__init__(d_model, heads)
        for name in "qkv":
            matrix = torch.randn(d_model, heads * d_model)
            setattr(self, f"w_{name}", nn.Parameter(matrix))


@wrong(MHA, "all heads start alike")
class MultiHeadAttention(Right):
    def __init__(self, d_model, heads):
        super().__init__(d_model, heads)
        for name in "qkv":
            first = split(getattr(self, f"w_{name}").detach(), heads)[0]
            setattr(self, f"w_{name}", nn.Parameter(first.repeat(1, heads)))


@right(MHA)
class MultiHeadAttention(Right):
    """a loop over the heads"""

    def attend(self, q, k, v, mask=None):
        parts = [
            attend(q[..., i, :, :], k[..., i, :, :], v[..., i, :, :], mask)
            for i in range(self.heads)
        ]
        outputs, weights = zip(*parts, strict=True)
        return torch.cat(outputs, -1) @ self.w_o + self.b_o, torch.stack(weights, -3)


@right(MHA)
class MultiHeadAttention(Right):
    """PyTorch's attention for the output, parameters one by one"""

    def __init__(self, d_model, heads):
        nn.Module.__init__(self)
        check_heads(d_model, heads)
        self.heads = heads
        self.b_o = nn.Parameter(torch.zeros(d_model))
        self.w_o = nn.Parameter(torch.randn(d_model, d_model) * d_model**-0.5)
        self.w_q, self.w_k, self.w_v = (
            nn.Parameter(torch.empty(d_model, d_model).normal_(std=d_model**-0.5))
            for _ in range(3)
        )
        self.b_q, self.b_k, self.b_v = (
            nn.Parameter(torch.zeros(d_model)) for _ in range(3)
        )

    def attend(self, q, k, v, mask=None):
        mask = None if mask is None else mask[..., None, :, :]
        z = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return merge(z) @ self.w_o + self.b_o, attend(q, k, v, mask)[1]


# forward right, and the methods not


def forward_apart(self, x_q, x_kv=None, mask=None):
    """Do without the methods."""
    return Right.forward(right_layer(self), x_q, x_kv, mask)


def right_layer(layer):
    same = copy.copy(layer)
    same.__class__ = Right
    return same


def unsplit(self, x_q, x_kv):
    parts = Right.project(self, x_q, x_kv)
    return tuple(merge(each) for each in parts)


named(
    MHA,
    "project does not split into heads",
    Right,
    project=unsplit,
    attend=lambda self, q, k, v, mask=None: Right.attend(
        self, *(split(each, self.heads) for each in (q, k, v)), mask
    ),
)


@wrong(MHA, "mask ignored")
class MultiHeadAttention(Right):
    """forward leaves the mask behind"""

    left = None

    def attend(self, q, k, v, mask=None):
        return super().attend(q, k, v, self.left)

    def forward(self, x_q, x_kv=None, mask=None):
        self.left = mask
        found = super().forward(x_q, x_kv, mask)
        self.left = None
        return found


@wrong(MHA, "mask laid over the heads")
class MultiHeadAttention(Right):
    """forward gives it the axis"""

    def attend(self, q, k, v, mask=None):
        z, weights = attend(q, k, v, mask)
        return merge(z) @ self.w_o + self.b_o, weights

    def forward(self, x_q, x_kv=None, mask=None):
        return super().forward(x_q, x_kv, self.lay(mask))


@wrong(MHA, "no output projection")
class MultiHeadAttention(Right):
    """which forward makes"""

    attend = without_w_o

    def forward(self, x_q, x_kv=None, mask=None):
        z, weights = super().forward(x_q, x_kv, mask)
        return z @ self.w_o + self.b_o, weights


@wrong(MHA, "the queries are scaled in project")
class MultiHeadAttention(Right):
    """and attend does not divide"""

    def project(self, x_q, x_kv):
        q, k, v = super().project(x_q, x_kv)
        return q * q.shape[-1] ** -0.5, k, v

    def attend(self, q, k, v, mask=None):
        return super().attend(q * q.shape[-1] ** 0.5, k, v, mask)


named(
    MHA,
    "keys and values from x_q",
    Right,
    forward=forward_apart,
    project=lambda self, x_q, x_kv: Right.project(self, x_q, x_q),
)
named(
    MHA,
    "forward does without a method that is asked for",
    Right,
    forward=forward_apart,
    attend=None,
)
named(
    MHA,
    "only one of two results",
    Right,
    forward=forward_apart,
    attend=lambda self, *given: Right.attend(self, *given)[0],
)


@wrong(MHA, "forward does without a method that is asked for")
class MultiHeadAttention(Right):
    """its stub is still there"""

    forward = forward_apart

    def project(self, x_q, x_kv):
        raise NotImplementedError


@right(MHA)
class MultiHeadAttention(Right):
    """forward by itself, and both methods besides"""

    forward = forward_apart


# --- attention-from-torch -------------------------------------------------------------

TORCH = "attention-from-torch"


def translate(state, order="qkv", turn=("q", "k", "v", "o"), chunks=None):
    matrices = chunks or state["in_proj_weight"].chunk(3)
    result = dict(zip((f"w_{n}" for n in order), matrices))
    result |= dict(zip((f"b_{n}" for n in order), state["in_proj_bias"].chunk(3)))
    result |= {"w_o": state["out_proj.weight"], "b_o": state["out_proj.bias"]}
    return result | {f"w_{n}": result[f"w_{n}"].T for n in turn}


@wrong(TORCH, "the three parts in another order")
def attention_from_torch(state):
    return translate(state, order="kqv")


@wrong(TORCH, "rows dealt out in turn")
def attention_from_torch(state):
    result = translate(state)
    for i, n in enumerate("qkv"):
        result[f"w_{n}"] = state["in_proj_weight"][i::3].T
        result[f"b_{n}"] = state["in_proj_bias"][i::3]
    return result


@wrong(TORCH, "reshaped in place of transposed")
def attention_from_torch(state):
    d = state["out_proj.bias"].numel()
    turned = state["in_proj_weight"].view(d, 3 * d)
    return translate(state, turn="o", chunks=turned.split(d, dim=1))


@wrong(TORCH, "biases left out")
def attention_from_torch(state):
    return {name: x for name, x in translate(state).items() if name[0] == "w"}


@wrong(TORCH, "the result has other names")
def attention_from_torch(state):
    return {name.upper(): x for name, x in translate(state).items()}


@right(TORCH)
def attention_from_torch(state):
    """transposed first, then cut by columns"""
    matrices = state["in_proj_weight"].T.chunk(3, dim=1)
    return translate(state, turn="o", chunks=list(matrices))


@right(TORCH)
def attention_from_torch(state):
    """slices"""
    d = state["out_proj.bias"].shape[0]
    result = {"w_o": state["out_proj.weight"].t(), "b_o": state["out_proj.bias"]}
    for i, name in enumerate("qkv"):
        result["w_" + name] = state["in_proj_weight"][i * d : i * d + d].t().clone()
        result["b_" + name] = state["in_proj_bias"][i * d : i * d + d].clone()
    return result


# --- attention-parameters -------------------------------------------------------------

COUNT = "attention-parameters"


def count(d, narrow, biases=1):
    return 2 * (d * d + biases * d) + 2 * (d * narrow + biases * narrow)


@wrong(COUNT, "each head as wide as the model")
def attention_parameters(d_model, heads, kv_heads=None):
    return 4 * heads * (d_model**2 + d_model)


@wrong(COUNT, "kv heads of another width")
def attention_parameters(d_model, heads, kv_heads=None):
    return count(d_model, d_model // (kv_heads or 1))


@wrong(COUNT, "kv_heads=None is not handled")
def attention_parameters(d_model, heads, kv_heads=None):
    return count(d_model, kv_heads * d_model // heads)


@wrong(COUNT, "not a whole number")
def attention_parameters(d_model, heads, kv_heads=None):
    return count(d_model, (kv_heads or heads) * d_model / heads)


@right(COUNT)
def attention_parameters(d_model, heads, kv_heads=None):
    """counted from tensors"""
    narrow = (kv_heads or heads) * (d_model // heads)
    layers = [nn.Linear(d_model, n) for n in (d_model, narrow, narrow, d_model)]
    return sum(p.numel() for layer in layers for p in layer.parameters())


# --- without-heads --------------------------------------------------------------------

OFF = "without-heads"


@wrong(OFF, "removed in the columns")
def without_heads(w_o, heads, removed):
    result, width = w_o.clone(), -(-w_o.shape[1] // heads)
    for head in removed:
        result[:, head * width : (head + 1) * width] = 0
    return result


@wrong(OFF, "changes its argument in place")
def without_heads(w_o, heads, removed):
    d_v = w_o.shape[0] // heads
    for head in removed:
        w_o[head * d_v : (head + 1) * d_v] = 0
    return w_o


@wrong(OFF, "changes its argument in place")
def without_heads(w_o, heads, removed):
    blocks = w_o.reshape(heads, -1, w_o.shape[1])
    blocks[removed] = 0
    return blocks.reshape(w_o.shape)


@wrong(OFF, "heads counted from 1")
def without_heads(w_o, heads, removed):
    result, d_v = w_o.clone(), w_o.shape[0] // heads
    for head in removed:
        result[(head - 1) * d_v : head * d_v] = 0
    return result


@wrong(OFF, "only one of the heads is removed")
def without_heads(w_o, heads, removed):
    result, d_v = w_o.clone(), w_o.shape[0] // heads
    for head in removed:
        result = w_o.clone()
        result[head * d_v : (head + 1) * d_v] = 0
    return result


@wrong(OFF, "the caller's own matrix is returned")
def without_heads(w_o, heads, removed):
    result, d_v = w_o.view(w_o.shape), w_o.shape[0] // heads
    for head in removed:
        keep = (torch.arange(len(w_o)) // d_v != head)[:, None]
        result = result * keep
    return result


@wrong(OFF, "the caller's own matrix is returned")
def without_heads(w_o, heads, removed):
    """cut off from the graph, and no copy all the same"""
    keep = ~torch.isin(
        torch.arange(len(w_o)) // (len(w_o) // heads), torch.tensor(removed)
    )
    return w_o * keep[:, None] if removed else w_o.detach()


@wrong(OFF, "the caller's own matrix is returned")
def without_heads(w_o, heads, removed):
    """NumPy's array and the tensor have one memory"""
    result = w_o.numpy()
    if removed:
        result = result.copy()
        result.reshape(heads, -1)[removed] = 0
    return torch.from_numpy(result)


@right(OFF)
def without_heads(w_o, heads, removed):
    """a copy by Python's own module"""
    result, d_v = copy.deepcopy(w_o), w_o.shape[0] // heads
    for head in removed:
        result = result.index_fill(0, torch.arange(head * d_v, (head + 1) * d_v), 0.0)
    return result


@right(OFF)
def without_heads(w_o, heads, removed):
    """a copy by way of NumPy"""
    result = w_o.numpy().copy()
    for head in removed:
        result.reshape(heads, -1)[head] = 0
    return torch.from_numpy(result)


@right(OFF)
def without_heads(w_o, heads, removed):
    """a copy by way of a list"""
    result, d_v = torch.tensor(w_o.tolist()), w_o.shape[0] // heads
    for head in removed:
        result = result * (torch.arange(len(w_o)) // d_v != head)[:, None]
    return result


@right(OFF)
def without_heads(w_o, heads, removed):
    """a mask of rows"""
    keep = torch.ones(heads)
    keep[removed] = 0
    return w_o * keep.repeat_interleave(w_o.shape[0] // heads)[:, None]


@right(OFF)
def without_heads(w_o, heads, removed):
    """blocks put together again"""
    blocks = w_o.chunk(heads)
    parts = [0 * b if i in removed else b for i, b in enumerate(blocks)]
    return torch.cat(parts)


# --- two-lookups ----------------------------------------------------------------------

LOOK = "two-lookups"


def lookups(gap=40.0, marks=(0, 1), slots=(0, 3), asks=(5, 5)):
    w = {name: torch.zeros(6, 6) for name in ("w_q", "w_k", "w_v", "w_o")}
    for head in range(2):
        own = slice(3 * head, 3 * head + 3)
        w["w_q"][asks[head], 3 * head] = gap
        w["w_k"][marks[head], 3 * head] = 1.0
        w["w_v"][2:5, own] = torch.eye(3)
        w["w_o"][own, slots[head] : slots[head] + 3] = torch.eye(3)
    return w


@wrong(LOOK, "the attention is not sharp enough")
def two_lookups():
    return lookups(gap=8.0)


@wrong(LOOK, "the attention is not sharp enough")
def two_lookups():
    return lookups(gap=1.0)


@wrong(LOOK, "the heads avoid the marked tokens")
def two_lookups():
    return lookups(gap=-40.0)


@wrong(LOOK, "the slots are exchanged")
def two_lookups():
    return lookups(slots=(3, 0))


@wrong(LOOK, "both heads look up the same token")
def two_lookups():
    return lookups(marks=(0, 0))


@wrong(LOOK, "queries and keys exchanged")
def two_lookups():
    w = lookups()
    return w | {"w_q": w["w_k"], "w_k": w["w_q"]}


@wrong(LOOK, "weights transposed")
def two_lookups():
    return {name: matrix.T for name, matrix in lookups().items()}


@wrong(LOOK, "features dealt out in turn")
def two_lookups():
    w, back = lookups(), [0, 3, 1, 4, 2, 5]
    columns = {name: w[name][:, back] for name in ("w_q", "w_k", "w_v")}
    return columns | {"w_o": w["w_o"][back]}


@wrong(LOOK, "the heads are added up")
def two_lookups():
    return lookups(slots=(0, 0))


@wrong(LOOK, "one head looks at nothing")
def two_lookups():
    return lookups(marks=(0, 5))


@wrong(LOOK, "both marks in head 0")
def two_lookups():
    w = lookups()
    for name, row in (("w_q", 5), ("w_k", 1)):
        w[name][row, 1], w[name][row, 3] = w[name][row, 3].clone(), 0.0
    return w


@wrong(LOOK, "all tokens get the same weight")
def two_lookups():
    return lookups(marks=(5, 5))


@wrong(LOOK, "only the marked tokens ask")
def two_lookups():
    return lookups(asks=(0, 1))


@wrong(LOOK, "the average of both")
def two_lookups():
    w = lookups()
    w["w_k"][0, 3] = w["w_k"][1, 0] = 1.0  # each head finds both marks
    return w


@wrong(LOOK, "one mark taken off the other")
def two_lookups():
    w = lookups()
    w["w_k"][0, 3] = w["w_k"][1, 0] = -1.0
    return w


@wrong(LOOK, "one slot stays empty")
def two_lookups():
    w = lookups()
    w["w_v"][:, 3:] = 0
    return w


@wrong(LOOK, "an entry is missing")
def two_lookups():
    w = lookups()
    return {name: w[name] for name in ("w_q", "w_k", "w_v")}


@right(LOOK)
def two_lookups():
    """other features, smaller steps"""
    w = {name: torch.zeros(6, 6) for name in ("w_q", "w_k", "w_v", "w_o")}
    w["w_q"][5] = torch.tensor([0, 6.0, 6, 0, 0, -9])
    w["w_k"][0, 1:3] = 3.0
    w["w_k"][1, 5] = -5.0
    w["w_k"][5] = 1.0
    w["w_v"][2:5] = torch.tensor([[0, 0, 2.0], [2, 0, 0], [0, 2, 0]]).repeat(1, 2)
    block = torch.tensor([[0, 0.5, 0], [0, 0, 0.5], [0.5, 0, 0]])
    w["w_o"] = torch.block_diag(block, block)
    return w


# --- grouped-query attention ----------------------------------------------------------

GQA = "grouped-query-attention"


def neighbours(x, times):
    return x.repeat_interleave(times, dim=-3)


def in_turn(x, times):
    return torch.cat([x] * times, dim=-3)


class GroupedQueryAttention(nn.Module):
    """A right layer to derive others from, one step of which can be replaced."""

    split, merge, attention, times = map(
        staticmethod, (split, merge, attend, neighbours)
    )
    spread = 1.0

    def __init__(self, d_model, heads, kv_heads):
        super().__init__()
        check_heads(d_model, heads)
        check_heads(heads, kv_heads)
        self.heads, self.kv_heads = heads, kv_heads
        narrow = kv_heads * (d_model // heads)
        widths = zip("qkvo", (d_model, narrow, narrow, d_model), strict=True)
        for name, width in widths:
            matrix = self.spread * torch.randn(d_model, width) / math.sqrt(d_model)
            setattr(self, f"w_{name}", nn.Parameter(matrix))

    def lay(self, mask):
        return None if mask is None else mask.unsqueeze(-3)

    def repeat(self, k, v):
        times = self.heads // self.kv_heads
        return self.times(k, times), self.times(v, times)

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        q = self.split(x_q @ self.w_q, self.heads)
        k = self.split(x_kv @ self.w_k, self.kv_heads)
        v = self.split(x_kv @ self.w_v, self.kv_heads)
        z, weights = self.attention(q, *self.repeat(k, v), self.lay(mask))
        return self.merge(z) @ self.w_o, weights


Grouped = GroupedQueryAttention

named(GQA, "kv heads dealt out in turn", Grouped, times=in_turn)
named(
    GQA,
    "keys and values repeated in different ways",
    Grouped,
    repeat=lambda self, k, v: (
        neighbours(k, self.heads // self.kv_heads),
        in_turn(v, self.heads // self.kv_heads),
    ),
)
named(
    GQA,
    "keys and values are not repeated",
    Grouped,
    repeat=lambda self, k, v: (k, v),
)
named(GQA, "NaN on fully masked rows", Grouped, attention=without_nan_care)
named(
    GQA,
    "a large negative number in place of −∞",
    Grouped,
    attention=with_a_large_number,
)
named(GQA, "mask laid over the heads", Grouped, lay=lambda self, mask: mask)
named(
    GQA,
    "only the output is returned",
    Grouped,
    forward=lambda self, *args, **named: Grouped.forward(self, *args, **named)[0],
)
named(GQA, "the weights start too large", Grouped, spread=5.0)


@wrong(GQA, "the values (or the keys) come from x_q")
class GroupedQueryAttention(Grouped):
    def forward(self, x_q, x_kv=None, mask=None):
        known = x_q if x_kv is None else x_kv
        q = self.split(x_q @ self.w_q, self.heads)
        k = self.split(known @ self.w_k, self.kv_heads)
        v = self.split(x_q @ self.w_v, self.kv_heads)
        z, weights = self.attention(q, *self.repeat(k, v), self.lay(mask))
        return self.merge(z) @ self.w_o, weights


@wrong(GQA, "no output projection")
class GroupedQueryAttention(Grouped):
    def __init__(self, d_model, heads, kv_heads):
        super().__init__(d_model, heads, kv_heads)
        del self.w_o


@wrong(GQA, "keys and values as wide as the queries")
class GroupedQueryAttention(Grouped):
    def __init__(self, d_model, heads, kv_heads):
        super().__init__(d_model, heads, heads)
        self.kv_heads = kv_heads


@wrong(GQA, "kv heads of another width")
class GroupedQueryAttention(Grouped):
    def __init__(self, d_model, heads, kv_heads):
        super().__init__(d_model, heads, kv_heads)
        self.w_k = nn.Parameter(torch.randn(d_model, d_model // kv_heads))
        self.w_v = nn.Parameter(torch.randn(d_model, d_model // kv_heads))


@wrong(GQA, "the projections have a bias")
class GroupedQueryAttention(Grouped):
    def __init__(self, d_model, heads, kv_heads):
        super().__init__(d_model, heads, kv_heads)
        self.b_q = nn.Parameter(torch.zeros(d_model))


@wrong(GQA, "kv_heads that does not divide heads is accepted")
class GroupedQueryAttention(Grouped):
    def __init__(self, d_model, heads, kv_heads):
        check_heads(d_model, heads)
        super().__init__(d_model, heads, heads)
        self.kv_heads = kv_heads
        narrow = kv_heads * (d_model // heads)
        self.w_k = nn.Parameter(torch.randn(d_model, narrow) / math.sqrt(d_model))
        self.w_v = nn.Parameter(torch.randn(d_model, narrow) / math.sqrt(d_model))


@right(GQA)
class GroupedQueryAttention(Grouped):
    """queries in groups, nothing repeated"""

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        q = split(x_q @ self.w_q, self.heads).unflatten(-3, (self.kv_heads, -1))
        k = split(x_kv @ self.w_k, self.kv_heads).unsqueeze(-3)
        v = split(x_kv @ self.w_v, self.kv_heads).unsqueeze(-3)
        mask = None if mask is None else mask[..., None, None, :, :]
        z, weights = attend(q, k, v, mask)
        return merge(z.flatten(-4, -3)) @ self.w_o, weights.flatten(-4, -3)


@right(GQA)
class GroupedQueryAttention(Grouped):
    """PyTorch's grouped attention"""

    def forward(self, x_q, x_kv=None, mask=None):
        weights = Grouped.forward(self, x_q, x_kv, mask)[1]
        x_kv = x_q if x_kv is None else x_kv
        q = split(x_q @ self.w_q, self.heads)
        k = split(x_kv @ self.w_k, self.kv_heads)
        v = split(x_kv @ self.w_v, self.kv_heads)
        mask = None if mask is None else mask.unsqueeze(-3)
        z = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
        return merge(z) @ self.w_o, weights


# --- how many texts are served --------------------------------------------------------

SERVED = "texts-served"


def text_bytes(layers, d_model, heads, kv_heads, length, cache_bits):
    """What a text takes, in bytes, which may be no whole number."""
    scale = 2 if cache_bits < 16 else 0
    vector = d_model / heads * cache_bits / 8 + scale
    return 2 * layers * kv_heads * length * vector


def room(memory, parameters, weight_bits):
    return memory - parameters * weight_bits / 8


def serve(per_text):
    """Make an answer from what a text takes, in bytes."""

    def texts_served(
        memory,
        parameters,
        layers,
        d_model,
        heads,
        kv_heads,
        length,
        weight_bits=16,
        cache_bits=16,
    ):
        sizes = layers, d_model, heads, kv_heads, length, cache_bits
        left = room(memory, parameters, weight_bits)
        return int(max(0, left) // per_text(*sizes))

    return texts_served


wrong(SERVED, "the scale is forgotten")(
    serve(lambda n, d, h, kv, t, bits: 2 * n * t * kv * (d // h) * bits / 8)
)
wrong(SERVED, "keys and values of all heads are kept")(
    serve(lambda n, d, h, kv, t, bits: text_bytes(n, d, h, h, t, bits))
)
wrong(SERVED, "each head as wide as the model")(
    serve(lambda n, d, h, kv, t, bits: text_bytes(n, d, 1, kv, t, bits))
)
wrong(SERVED, "keys or values alone")(serve(lambda *sizes: text_bytes(*sizes) / 2))
wrong(SERVED, "one position in place of a text")(
    serve(lambda n, d, h, kv, t, bits: text_bytes(n, d, h, kv, 1, bits))
)


@wrong(SERVED, "bytes taken for bits")
def texts_served(
    memory, parameters, layers, d, heads, kv, length, weight_bits=16, cache_bits=16
):
    sizes = layers, d, heads, kv, length, cache_bits
    left = memory - parameters * weight_bits
    return 0 if left < 0 else int(left / 8 // text_bytes(*sizes))


@wrong(SERVED, "not a whole number")
def texts_served(
    memory, parameters, layers, d, heads, kv, length, weight_bits=16, cache_bits=16
):
    sizes = layers, d, heads, kv, length, cache_bits
    left = max(0, room(memory, parameters, weight_bits))
    return left // text_bytes(*sizes)


@wrong(SERVED, "a text that fits exactly is left out")
def texts_served(
    memory, parameters, layers, d, heads, kv, length, weight_bits=16, cache_bits=16
):
    sizes = layers, d, heads, kv, length, cache_bits
    left, count = room(memory, parameters, weight_bits), 0
    while text_bytes(*sizes) * (count + 1) < left:
        count += 1
    return count


@right(SERVED)
def texts_served(
    memory, parameters, layers, d, heads, kv, length, weight_bits=16, cache_bits=16
):
    """One text after another, until there is no room."""
    left = 8 * memory - parameters * weight_bits
    scale = 0 if cache_bits >= 16 else 16
    text = sum((d // heads * cache_bits + scale) * kv * length for _ in range(layers))
    count = 0
    while left >= 2 * text:
        left -= 2 * text
        count += 1
    return count


right(SERVED)(serve(text_bytes))
