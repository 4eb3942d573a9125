"""Wrong answers to chapter 5, written from its notebook alone."""

# ruff: noqa: E501, F811, F821

import math

import torch
from torch import nn

from tests.tutor.bank import stranger


@stranger(
    "split-heads",
    "reshaped in one step, tokens and features mixed",
    first="named",
    verdict="named",
    says="view without transpose",
)
def split_heads(x, heads):
    *leading, length, d = x.shape
    if d % heads:
        raise ValueError("heads must divide d")
    return x.reshape(*leading, heads, length, d // heads)


@stranger(
    "split-heads",
    "the last axis is cut into (d/h, h)",
    kind="plain",
    first="named",
    verdict="named",
    says="features dealt out in turn",
)
def split_heads(x, heads):
    if x.shape[-1] % heads:
        raise ValueError("heads must divide d")
    return x.unflatten(-1, (x.shape[-1] // heads, heads)).movedim(-1, -3)


@stranger(
    "split-heads",
    "transpose(1, 2): right with one batch axis only",
    kind="subtle",
    first="shown",
    verdict="named",
    says="only works with a batch",
)
def split_heads(x, heads):
    d = x.shape[-1]
    if d % heads != 0:
        raise ValueError(f"{heads} heads do not divide {d}")
    return x.reshape(*x.shape[:-1], heads, d // heads).transpose(1, 2)


@stranger(
    "split-heads",
    "what cannot be divided is cut off, not refused",
    kind="subtle",
    first="named",
    verdict="named",
    says="a width that heads does not divide is accepted",
)
def split_heads(x, heads):
    width = x.shape[-1] // heads
    x = x[..., : width * heads]
    return x.unflatten(-1, (heads, width)).transpose(-2, -3)


@stranger(
    "split-heads",
    "the test for the division asks the number of tokens AND an AssertionError",
    kind="double",
    first="told",
    verdict="named",
    says="a width that heads divides is refused",
)
def split_heads(x, heads):
    assert x.shape[-2] % heads == 0, "heads must divide d"
    return x.unflatten(-1, (heads, -1)).transpose(-2, -3)


@stranger(
    "merge-heads",
    "flattened without exchanging the axes",
    first="named",
    verdict="named",
    says="merged without transpose",
)
def merge_heads(x):
    *leading, heads, length, width = x.shape
    return x.reshape(*leading, length, heads * width)


@stranger(
    "merge-heads",
    "joined in the order (d_v, h): interleaved",
    kind="plain",
    first="named",
    verdict="named",
    says="heads interleaved",
)
def merge_heads(x):
    return x.movedim(-3, -1).flatten(-2)


@stranger(
    "merge-heads",
    "axes from the front: transpose(0, 1) for a tensor without a batch",
    kind="subtle",
    first="shown",
    verdict="named",
    says="only works with a batch",
)
def merge_heads(x):
    if x.ndim == 3:
        return x.transpose(0, 1).reshape(x.shape[1], -1)
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


@stranger(
    "merge-heads",
    "the last head first",
    kind="subtle",
    first="named",
    verdict="named",
    says="the last head comes first",
)
def merge_heads(x):
    return torch.cat(x.flip(-3).unbind(dim=-3), dim=-1)


@stranger(
    "loop-of-heads",
    "without the output projection",
    kind="plain",
    first="named",
    verdict="named",
    says="no output projection",
)
def loop_of_heads(x_q, x_kv, w_q, w_k, w_v, w_o, mask=None):
    outputs = []
    for i in range(w_q.shape[0]):
        q, k, v = x_q @ w_q[i], x_kv @ w_k[i], x_kv @ w_v[i]
        output, _ = scaled_dot_product_attention(q, k, v, mask)
        outputs.append(output)
    return torch.cat(outputs, dim=-1)


@stranger(
    "loop-of-heads",
    "the mask goes to the first head only",
    kind="subtle",
    first="named",
    verdict="named",
    says="mask for the first head only",
)
def loop_of_heads(x_q, x_kv, w_q, w_k, w_v, w_o, mask=None):
    outputs = []
    for i in range(len(w_q)):
        q, k, v = x_q @ w_q[i], x_kv @ w_k[i], x_kv @ w_v[i]
        outputs.append(scaled_dot_product_attention(q, k, v, mask)[0])
        mask = None
    return torch.cat(outputs, dim=-1) @ w_o


@stranger(
    "loop-of-heads",
    "keys of the next head AND values of the head before",
    kind="double",
    first="shown",
    verdict="named",
    says="a matrix of another head",
)
def loop_of_heads(x_q, x_kv, w_q, w_k, w_v, w_o, mask=None):
    heads = w_q.shape[0]
    outputs = []
    for i in range(heads):
        q = x_q @ w_q[i]
        k = x_kv @ w_k[(i + 1) % heads]
        v = x_kv @ w_v[i - 1]
        z, _ = scaled_dot_product_attention(q, k, v, mask)
        outputs.append(z)
    return torch.cat(outputs, dim=-1) @ w_o


@stranger(
    "loop-of-heads",
    "the values are projected by w_v of head 0 always",
    kind="subtle",
    first="shown",
    verdict="named",
    says="one of the matrices is that of head 0 for all heads",
)
def loop_of_heads(x_q, x_kv, w_q, w_k, w_v, w_o, mask=None):
    outputs = []
    for i in range(w_q.shape[0]):
        z, _ = scaled_dot_product_attention(
            x_q @ w_q[i], x_kv @ w_k[i], x_kv @ w_v[0], mask
        )
        outputs.append(z)
    return torch.cat(outputs, dim=-1) @ w_o


@stranger(
    "sum-over-heads",
    "the rows are dealt out in turn: i, i + h, i + 2h",
    kind="subtle",
    first="named",
    verdict="named",
    says="rows dealt out in turn",
)
def sum_over_heads(z, w_o):
    heads = z.shape[-3]
    result = 0
    for i in range(heads):
        result = result + z[..., i, :, :] @ w_o[i::heads]
    return result


@stranger(
    "sum-over-heads",
    "the mean over the heads",
    first="named",
    verdict="named",
    says="the mean over the heads",
)
def sum_over_heads(z, w_o):
    heads, _, width = z.shape[-3:]
    blocks = w_o.reshape(heads, width, -1)
    return (z @ blocks).mean(dim=-3)


@stranger(
    "sum-over-heads",
    "the last head is left out by the range",
    kind="subtle",
    first="shown",
    verdict="named",
    says="the last head is left out",
)
def sum_over_heads(z, w_o):
    heads, _, width = z.shape[-3:]
    result = z[..., 0, :, :] @ w_o[:width]
    for i in range(1, heads - 1):
        result = result + z[..., i, :, :] @ w_o[i * width : (i + 1) * width]
    return result


@stranger(
    "sum-over-heads",
    "summed over axis 0, which is the batch where there is one",
    kind="subtle",
    first="told",
    verdict="named",
    says="only works without a batch",
)
def sum_over_heads(z, w_o):
    heads, _, width = z.shape[-3:]
    return (z @ w_o.unflatten(0, (heads, width))).sum(dim=0)


class _Layer(nn.Module):
    """What the answers to 5.5 share: all parts as they should be."""

    def __init__(self, d_model, heads):
        super().__init__()
        if d_model % heads:
            raise ValueError("heads must divide d_model")
        self.heads = heads
        for name in "qkvo":
            matrix = torch.randn(d_model, d_model) / math.sqrt(d_model)
            setattr(self, f"w_{name}", nn.Parameter(matrix))
            setattr(self, f"b_{name}", nn.Parameter(torch.zeros(d_model)))

    def project(self, x_q, x_kv):
        q = split_heads(x_q @ self.w_q + self.b_q, self.heads)
        k = split_heads(x_kv @ self.w_k + self.b_k, self.heads)
        v = split_heads(x_kv @ self.w_v + self.b_v, self.heads)
        return q, k, v

    def attend(self, q, k, v, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o + self.b_o, weights

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        return self.attend(*self.project(x_q, x_kv), mask)


@stranger(
    "multi-head-attention",
    "the mask gets no axis for the heads, so a batch is laid over them",
    kind="subtle",
    first="named",
    verdict="named",
    says="mask laid over the heads",
)
class MultiHeadAttention(_Layer):
    def attend(self, q, k, v, mask=None):
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o + self.b_o, weights


@stranger(
    "multi-head-attention",
    "unsqueeze(1): wrong for a mask without a batch",
    kind="subtle",
    first="named",
    verdict="named",
    says="the axis for the heads is counted from the front",
)
class MultiHeadAttention(_Layer):
    def attend(self, q, k, v, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(1)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o + self.b_o, weights


@stranger(
    "multi-head-attention",
    "the bias of the values is forgotten",
    kind="subtle",
    first="told",
    verdict="named",
    says="the biases are missing",
)
class MultiHeadAttention(_Layer):
    def project(self, x_q, x_kv):
        q = split_heads(x_q @ self.w_q + self.b_q, self.heads)
        k = split_heads(x_kv @ self.w_k + self.b_k, self.heads)
        v = split_heads(x_kv @ self.w_v, self.heads)
        return q, k, v


@stranger(
    "multi-head-attention",
    "the weights are averaged over the heads",
    first="named",
    verdict="named",
    says="weights averaged over the heads",
)
class MultiHeadAttention(_Layer):
    def attend(self, q, k, v, mask=None):
        mask = None if mask is None else mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o + self.b_o, weights.mean(dim=-3)


@stranger(
    "multi-head-attention",
    "-1e9 for what is masked: an empty row attends to all alike",
    kind="subtle",
    first="named",
    verdict="named",
    says="a large negative number in place of −∞",
)
class MultiHeadAttention(_Layer):
    def attend(self, q, k, v, mask=None):
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if mask is not None:
            scores = scores.masked_fill(~mask.unsqueeze(-3), -1e9)
        weights = torch.softmax(scores, dim=-1)
        return merge_heads(weights @ v) @ self.w_o + self.b_o, weights


@stranger(
    "multi-head-attention",
    "scaled by the root of d_model AND the mask is not used in cross-attention",
    kind="double",
    first="named",
    verdict="named",
    says="mask dropped for cross-attention, and scaled by √d_model in place of √d_k",
)
class MultiHeadAttention(_Layer):
    def attend(self, q, k, v, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(-3)
        q = q / math.sqrt(self.heads)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o + self.b_o, weights

    def forward(self, x_q, x_kv=None, mask=None):
        if x_kv is None:
            return self.attend(*self.project(x_q, x_q), mask)
        return self.attend(*self.project(x_q, x_kv))


@stranger(
    "multi-head-attention",
    "the biases start as random numbers",
    kind="subtle",
    first="named",
    verdict="named",
    says="the biases do not start at zero",
)
class MultiHeadAttention(_Layer):
    def __init__(self, d_model, heads):
        super().__init__(d_model, heads)
        for name in "qkvo":
            bias = torch.randn(d_model) / math.sqrt(d_model)
            setattr(self, f"b_{name}", nn.Parameter(bias))


@stranger(
    "multi-head-attention",
    "the output's bias is added before w_o",
    kind="subtle",
    first="told",
    verdict="named",
    says="a bias is added before the product",
)
class MultiHeadAttention(_Layer):
    def attend(self, q, k, v, mask=None):
        mask = None if mask is None else mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return (merge_heads(z) + self.b_o) @ self.w_o, weights


@stranger(
    "attention-from-torch",
    "the order key, query, value",
    first="named",
    verdict="named",
    says="the three parts in another order",
)
def attention_from_torch(state):
    k, q, v = state["in_proj_weight"].chunk(3)
    b_k, b_q, b_v = state["in_proj_bias"].chunk(3)
    return {
        "w_q": q.T,
        "w_k": k.T,
        "w_v": v.T,
        "w_o": state["out_proj.weight"].T,
        "b_q": b_q,
        "b_k": b_k,
        "b_v": b_v,
        "b_o": state["out_proj.bias"],
    }


@stranger(
    "attention-from-torch",
    "the bias of the values is that of the keys AND w_o is not transposed",
    kind="double",
    first="told",
    verdict="named",
    says="a matrix is not transposed",
)
def attention_from_torch(state):
    d = state["out_proj.bias"].shape[0]
    weight, bias = state["in_proj_weight"], state["in_proj_bias"]
    return {
        "w_q": weight[:d].T,
        "w_k": weight[d : 2 * d].T,
        "w_v": weight[2 * d :].T,
        "w_o": state["out_proj.weight"],
        "b_q": bias[:d],
        "b_k": bias[d : 2 * d],
        "b_v": bias[d : 2 * d],
        "b_o": state["out_proj.bias"],
    }


@stranger(
    "attention-from-torch",
    "the rows are dealt out to query, key, value in turn",
    kind="subtle",
    first="named",
    verdict="named",
    says="rows dealt out in turn",
)
def attention_from_torch(state):
    d = state["out_proj.bias"].shape[0]
    q, k, v = state["in_proj_weight"].reshape(d, 3, d).unbind(1)
    b_q, b_k, b_v = state["in_proj_bias"].reshape(d, 3).unbind(1)
    return {
        "w_q": q.T,
        "w_k": k.T,
        "w_v": v.T,
        "w_o": state["out_proj.weight"].T,
        "b_q": b_q,
        "b_k": b_k,
        "b_v": b_v,
        "b_o": state["out_proj.bias"],
    }


@stranger(
    "attention-parameters",
    "kv_heads is taken for the number of groups",
    kind="subtle",
    first="named",
    verdict="named",
    says="kv heads of another width",
)
def attention_parameters(d_model, heads, kv_heads=None):
    kv_heads = heads if kv_heads is None else kv_heads
    width = d_model // kv_heads
    return 2 * (d_model * d_model + d_model) + 2 * (d_model * width + width)


@stranger(
    "attention-parameters",
    "the biases of keys and values are d wide when shared",
    kind="subtle",
    first="named",
    verdict="named",
    says="the biases of keys and values have the wrong width",
)
def attention_parameters(d_model, heads, kv_heads=None):
    kv_heads = kv_heads or heads
    d_kv = kv_heads * d_model // heads
    return 2 * d_model * d_model + 2 * d_model * d_kv + 4 * d_model


@stranger(
    "without-heads",
    "w_o is changed in place through a view",
    kind="subtle",
    first="named",
    verdict="named",
    says="changes its argument in place",
)
def without_heads(w_o, heads, removed):
    blocks = w_o.reshape(heads, -1, w_o.shape[1])
    blocks[removed] = 0
    return blocks.reshape(w_o.shape)


@stranger(
    "without-heads",
    "row i, not the d_v rows of head i",
    kind="plain",
    first="named",
    verdict="named",
    says="one row for each head",
)
def without_heads(w_o, heads, removed):
    result = w_o.clone()
    for i in removed:
        result[i] = 0
    return result


@stranger(
    "without-heads",
    "the width is d_model // heads: wrong unless h·d_v is d",
    kind="subtle",
    first="shown",
    verdict="named",
    says="the width of a head taken from d_model",
)
def without_heads(w_o, heads, removed):
    result = w_o.clone()
    width = w_o.shape[1] // heads
    for i in removed:
        result[i * width : (i + 1) * width] = 0.0
    return result


@stranger(
    "two-lookups",
    "the query is made of the mark, not of the constant",
    first="named",
    verdict="named",
    says="only the marked tokens ask",
)
def two_lookups():
    w_q, w_k = torch.zeros(6, 6), torch.zeros(6, 6)
    w_v, w_o = torch.zeros(6, 6), torch.eye(6)
    w_q[0, 0] = w_q[1, 3] = 60.0
    w_k[0, 0] = w_k[1, 3] = 1.0
    for i in range(3):
        w_v[2 + i, i] = 1.0
        w_v[2 + i, 3 + i] = 1.0
    return {"w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": w_o}


@stranger(
    "two-lookups",
    "a gap that is a little too small",
    kind="subtle",
    first="named",
    verdict="named",
    says="the attention is not sharp enough",
)
def two_lookups():
    w_q, w_k = torch.zeros(6, 6), torch.zeros(6, 6)
    w_v, w_o = torch.zeros(6, 6), torch.eye(6)
    w_q[5, 0] = w_q[5, 3] = 14.0
    w_k[0, 0] = w_k[1, 3] = 1.0
    for i in range(3):
        w_v[2 + i, i] = 1.0
        w_v[2 + i, 3 + i] = 1.0
    return {"w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": w_o}


@stranger(
    "two-lookups",
    "the slots are exchanged in w_o AND the values start at coordinate 3",
    kind="double",
    first="told",
    verdict="named",
    says="the slots are exchanged, and the value is taken from other coordinates",
)
def two_lookups():
    w_q, w_k = torch.zeros(6, 6), torch.zeros(6, 6)
    w_v, w_o = torch.zeros(6, 6), torch.zeros(6, 6)
    w_q[5, 0] = w_q[5, 3] = 100.0
    w_k[0, 0] = w_k[1, 3] = 1.0
    for i in range(3):
        w_v[3 + i, i] = w_v[3 + i, 3 + i] = 1.0
        w_o[i, 3 + i] = w_o[3 + i, i] = 1.0
    return {"w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": w_o}


class _Grouped(nn.Module):
    """What the answers to 5.11 share: all parts as they should be."""

    def __init__(self, d_model, heads, kv_heads):
        super().__init__()
        if d_model % heads or heads % kv_heads:
            raise ValueError("heads must divide d_model, and kv_heads heads")
        self.heads, self.kv_heads = heads, kv_heads
        d_kv = kv_heads * (d_model // heads)
        self.w_q = nn.Parameter(torch.randn(d_model, d_model) / math.sqrt(d_model))
        self.w_k = nn.Parameter(torch.randn(d_model, d_kv) / math.sqrt(d_model))
        self.w_v = nn.Parameter(torch.randn(d_model, d_kv) / math.sqrt(d_model))
        self.w_o = nn.Parameter(torch.randn(d_model, d_model) / math.sqrt(d_model))

    def keys_and_values(self, x_kv):
        times = self.heads // self.kv_heads
        k = repeat_heads(split_heads(x_kv @ self.w_k, self.kv_heads), times)
        v = repeat_heads(split_heads(x_kv @ self.w_v, self.kv_heads), times)
        return k, v

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        q = split_heads(x_q @ self.w_q, self.heads)
        k, v = self.keys_and_values(x_kv)
        mask = None if mask is None else mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o, weights


@stranger(
    "grouped-query-attention",
    "the keys are in groups, the values dealt out in turn",
    kind="subtle",
    first="named",
    verdict="named",
    says="keys and values repeated in different ways",
)
class GroupedQueryAttention(_Grouped):
    def keys_and_values(self, x_kv):
        times = self.heads // self.kv_heads
        k = repeat_heads(split_heads(x_kv @ self.w_k, self.kv_heads), times)
        v = torch.cat([split_heads(x_kv @ self.w_v, self.kv_heads)] * times, dim=-3)
        return k, v


@stranger(
    "grouped-query-attention",
    "only the first division is tested",
    kind="subtle",
    first="wrong",
    verdict="named",
    says="kv_heads that does not divide heads is accepted",
)
class GroupedQueryAttention(_Grouped):
    def __init__(self, d_model, heads, kv_heads):
        nn.Module.__init__(self)
        if d_model % heads:
            raise ValueError("heads must divide d_model")
        self.heads, self.kv_heads = heads, kv_heads
        d_kv = kv_heads * (d_model // heads)
        self.w_q = nn.Parameter(torch.randn(d_model, d_model) / math.sqrt(d_model))
        self.w_k = nn.Parameter(torch.randn(d_model, d_kv) / math.sqrt(d_model))
        self.w_v = nn.Parameter(torch.randn(d_model, d_kv) / math.sqrt(d_model))
        self.w_o = nn.Parameter(torch.randn(d_model, d_model) / math.sqrt(d_model))


@stranger(
    "grouped-query-attention",
    "w_k and w_v are drawn with the root of their own width AND the mask has no axis "
    "for the heads",
    kind="double",
    first="named",
    verdict="named",
    says="mask laid over the heads",
)
class GroupedQueryAttention(_Grouped):
    def __init__(self, d_model, heads, kv_heads):
        super().__init__(d_model, heads, kv_heads)
        d_kv = kv_heads * (d_model // heads)
        self.w_k = nn.Parameter(torch.randn(d_model, d_kv) / math.sqrt(d_kv))
        self.w_v = nn.Parameter(torch.randn(d_model, d_kv) / math.sqrt(d_kv))

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        q = split_heads(x_q @ self.w_q, self.heads)
        k, v = self.keys_and_values(x_kv)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o, weights


@stranger(
    "grouped-query-attention",
    "keys and values always from x_q",
    kind="plain",
    first="named",
    verdict="named",
    says="keys and values from x_q",
)
class GroupedQueryAttention(_Grouped):
    def forward(self, x_q, x_kv=None, mask=None):
        return super().forward(x_q, None, mask)


@stranger(
    "grouped-query-attention",
    "the mask is left out with one kv head",
    kind="subtle",
    first="named",
    verdict="named",
    says="mask ignored",
)
class GroupedQueryAttention(_Grouped):
    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        q = split_heads(x_q @ self.w_q, self.heads)
        if self.kv_heads == 1:
            k, v = (x_kv @ self.w_k).unsqueeze(-3), (x_kv @ self.w_v).unsqueeze(-3)
            weights = torch.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)
            return merge_heads(weights @ v) @ self.w_o, weights
        k, v = self.keys_and_values(x_kv)
        mask = None if mask is None else mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o, weights


# --- a second round, after the checks were mended from the first ---


@stranger(
    "split-heads",
    "features that do not fit are cut off in place of an error",
    kind="subtle",
    first="named",
    verdict="named",
    says="a width that heads does not divide is accepted",
    round=2,
)
def split_heads(x, heads):
    width = x.shape[-1] // heads
    x = x[..., : heads * width]
    return x.unflatten(-1, (heads, width)).transpose(-3, -2)


@stranger(
    "merge-heads",
    "flatten(1) counts from the front: joins the tokens, too, where there is a batch",
    kind="subtle",
    first="named",
    verdict="named",
    says="only works without a batch",
    round=2,
)
def merge_heads(x):
    return x.transpose(-3, -2).flatten(1)


@stranger(
    "loop-of-heads",
    "the heads' features are interleaved AND the mask is not used",
    kind="double",
    first="named",
    verdict="named",
    says="heads interleaved, and mask ignored",
    round=2,
)
def loop_of_heads(x_q, x_kv, w_q, w_k, w_v, w_o, mask=None):
    outputs = []
    for i in range(w_q.shape[0]):
        output, _ = scaled_dot_product_attention(
            x_q @ w_q[i], x_kv @ w_k[i], x_kv @ w_v[i]
        )
        outputs.append(output)
    z = torch.stack(outputs, dim=-1).flatten(-2)
    return z @ w_o


@stranger(
    "sum-over-heads",
    "head i gets every h-th row of w_o",
    first="named",
    verdict="named",
    says="rows dealt out in turn",
    round=2,
)
def sum_over_heads(z, w_o):
    heads = z.shape[-3]
    total = 0
    for i in range(heads):
        total = total + z[..., i, :, :] @ w_o[i::heads]
    return total


@stranger(
    "multi-head-attention",
    "the bias of the keys is added to the values",
    kind="subtle",
    first="shown",
    verdict="named",
    says="the bias of another projection",
    round=2,
)
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        if d_model % heads:
            raise ValueError("heads must divide d_model")
        self.heads = heads
        for name in "qkvo":
            weight = torch.randn(d_model, d_model) / math.sqrt(d_model)
            setattr(self, f"w_{name}", nn.Parameter(weight))
            setattr(self, f"b_{name}", nn.Parameter(torch.zeros(d_model)))

    def project(self, x_q, x_kv):
        q = split_heads(x_q @ self.w_q + self.b_q, self.heads)
        k = split_heads(x_kv @ self.w_k + self.b_k, self.heads)
        v = split_heads(x_kv @ self.w_v + self.b_k, self.heads)
        return q, k, v

    def attend(self, q, k, v, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o + self.b_o, weights

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        return self.attend(*self.project(x_q, x_kv), mask)


@stranger(
    "multi-head-attention",
    "the matrices start with 1/√d_k AND the weights are averaged over the heads",
    kind="double",
    first="named",
    verdict="named",
    says="weights averaged over the heads",
    round=2,
)
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, heads):
        super().__init__()
        if d_model % heads != 0:
            raise ValueError("heads must divide d_model")
        self.heads = heads
        d_k = d_model // heads
        self.w_q = nn.Parameter(torch.randn(d_model, d_model) / math.sqrt(d_k))
        self.w_k = nn.Parameter(torch.randn(d_model, d_model) / math.sqrt(d_k))
        self.w_v = nn.Parameter(torch.randn(d_model, d_model) / math.sqrt(d_k))
        self.w_o = nn.Parameter(torch.randn(d_model, d_model) / math.sqrt(d_k))
        self.b_q = nn.Parameter(torch.zeros(d_model))
        self.b_k = nn.Parameter(torch.zeros(d_model))
        self.b_v = nn.Parameter(torch.zeros(d_model))
        self.b_o = nn.Parameter(torch.zeros(d_model))

    def project(self, x_q, x_kv):
        q = split_heads(x_q @ self.w_q + self.b_q, self.heads)
        k = split_heads(x_kv @ self.w_k + self.b_k, self.heads)
        v = split_heads(x_kv @ self.w_v + self.b_v, self.heads)
        return q, k, v

    def attend(self, q, k, v, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o + self.b_o, weights.mean(dim=-3)

    def forward(self, x_q, x_kv=None, mask=None):
        if x_kv is None:
            x_kv = x_q
        q, k, v = self.project(x_q, x_kv)
        return self.attend(q, k, v, mask)


@stranger(
    "attention-from-torch",
    "w_k and w_v exchanged, the biases not, AND out_proj.weight not transposed",
    kind="double",
    first="named",
    verdict="named",
    round=2,
    says="out_proj.weight not transposed, and the three parts in another order",
)
def attention_from_torch(state):
    w_q, w_v, w_k = state["in_proj_weight"].chunk(3)
    b_q, b_k, b_v = state["in_proj_bias"].chunk(3)
    return {
        "w_q": w_q.T,
        "w_k": w_k.T,
        "w_v": w_v.T,
        "w_o": state["out_proj.weight"],
        "b_q": b_q,
        "b_k": b_k,
        "b_v": b_v,
        "b_o": state["out_proj.bias"],
    }


@stranger(
    "attention-parameters",
    "the biases of keys and values are counted with d_model",
    kind="subtle",
    first="named",
    verdict="named",
    says="the biases of keys and values have the wrong width",
    round=2,
)
def attention_parameters(d_model, heads, kv_heads=None):
    if kv_heads is None:
        kv_heads = heads
    width = kv_heads * (d_model // heads)
    matrices = 2 * d_model * d_model + 2 * d_model * width
    return matrices + 4 * d_model


@stranger(
    "without-heads",
    "the width of a head is taken from the columns of w_o",
    kind="subtle",
    first="named",
    verdict="named",
    says="the width of a head taken from d_model",
    round=2,
)
def without_heads(w_o, heads, removed):
    result = w_o.clone()
    d_v = w_o.shape[1] // heads
    for i in removed:
        result[i * d_v : (i + 1) * d_v] = 0
    return result


@stranger(
    "two-lookups",
    "the query is made of the mark, so only the marked token asks",
    first="named",
    verdict="named",
    says="only the marked tokens ask",
    round=2,
)
def two_lookups():
    w_q, w_k, w_v, w_o = (torch.zeros(6, 6) for _ in range(4))
    w_q[0, 0] = 100.0
    w_k[0, 0] = 1.0
    w_q[1, 3] = 100.0
    w_k[1, 3] = 1.0
    for i in range(3):
        w_v[2 + i, i] = 1.0
        w_v[2 + i, 3 + i] = 1.0
    for i in range(6):
        w_o[i, i] = 1.0
    return {"w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": w_o}


@stranger(
    "grouped-query-attention",
    "kv_heads is not checked AND w_k, w_v start with one over the root of their width",
    kind="double",
    first="named",
    verdict="named",
    says="kv_heads that does not divide heads is accepted",
    round=2,
)
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model, heads, kv_heads):
        super().__init__()
        if d_model % heads:
            raise ValueError("heads must divide d_model")
        self.heads = heads
        self.kv_heads = kv_heads
        width = kv_heads * (d_model // heads)
        self.w_q = nn.Parameter(torch.randn(d_model, d_model) / d_model**0.5)
        self.w_k = nn.Parameter(torch.randn(d_model, width) / width**0.5)
        self.w_v = nn.Parameter(torch.randn(d_model, width) / width**0.5)
        self.w_o = nn.Parameter(torch.randn(d_model, d_model) / d_model**0.5)

    def forward(self, x_q, x_kv=None, mask=None):
        if x_kv is None:
            x_kv = x_q
        times = self.heads // self.kv_heads
        q = split_heads(x_q @ self.w_q, self.heads)
        k = repeat_heads(split_heads(x_kv @ self.w_k, self.kv_heads), times)
        v = repeat_heads(split_heads(x_kv @ self.w_v, self.kv_heads), times)
        if mask is not None:
            mask = mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o, weights


# --- a third round, of what came later ---


@stranger(
    "texts-served",
    "the scale of 16 bits is counted for 16 bits, too",
    kind="subtle",
    first="named",
    verdict="named",
    says="a scale where none is needed",
    round=3,
)
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
    left = 8 * memory - parameters * weight_bits
    d_k = d_model // heads
    vector = d_k * cache_bits
    if cache_bits <= 16:
        vector += 16
    text = 2 * layers * length * kv_heads * vector
    return max(0, left // text)


@stranger(
    "texts-served",
    "one scale for each position in place of one for each vector of each head AND a text "
    "that fits in part is counted (rounded up)",
    kind="double",
    first="useless",
    verdict="named",
    says="one scale for all heads, and rounded up",
    round=3,
)
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
    bits = memory * 8
    bits -= parameters * weight_bits
    if bits < 0:
        return 0
    per_position = kv_heads * (d_model // heads) * cache_bits
    if cache_bits < 16:
        per_position = per_position + 16
    per_text = 2 * layers * length * per_position
    return -(-bits // per_text)


@stranger(
    "texts-served",
    "the parameters are counted once for each text: the memory is divided by parameters "
    "and cache together",
    kind="plain",
    first="named",
    verdict="named",
    says="the weights once for each text",
    round=3,
)
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
    scale = 16 if cache_bits < 16 else 0
    vectors = 2 * layers * length * kv_heads
    one_text = vectors * (d_model // heads * cache_bits + scale)
    return memory * 8 // (one_text + parameters * weight_bits)


@stranger(
    "texts-served",
    "if the parameters do not fit, the number of texts is negative",
    kind="subtle",
    first="named",
    verdict="named",
    says="a negative number of texts",
    round=3,
)
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
    free = memory * 8 - parameters * weight_bits
    width = d_model // heads
    bits = width * cache_bits + (16 if cache_bits < 16 else 0)
    return free // (layers * length * kv_heads * 2 * bits)
