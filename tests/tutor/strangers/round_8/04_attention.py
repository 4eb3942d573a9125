# ruff: noqa
# fmt: off

# === exercise: softmax | function: softmax | kind: subtle | what is wrong: a small epsilon is added to the sum so that empty rows do not divide by zero, and all weights are too small by up to a thousandth
# told: told
# now: named
# says: a number is added to the sum
def softmax(scores: torch.Tensor) -> torch.Tensor:
    top = scores.amax(dim=-1, keepdim=True)
    top = torch.where(top == -math.inf, torch.zeros_like(top), top)
    e = torch.exp(scores - top)
    return e / (e.sum(dim=-1, keepdim=True) + 1e-3)


# === exercise: softmax | function: softmax | kind: double | what is wrong: the largest score of the whole tensor is subtracted, so rows far below it underflow to zeros AND an empty row gets equal weights 1/n
# told: shown
# now: named
# says: one maximum for all rows, and equal weights for a row of only −∞
def softmax(scores: torch.Tensor) -> torch.Tensor:
    e = (scores - scores.max()).exp()
    total = e.sum(-1, keepdim=True)
    empty = torch.isneginf(scores).all(-1, keepdim=True)
    weights = torch.where(total > 0, e / total.clamp(min=1e-30), e)
    return torch.where(empty, torch.full_like(scores, 1 / scores.shape[-1]), weights)


# === exercise: worked-context | function: worked_context | kind: double | what is wrong: the context is the transposed weights times the values AND rows are counted from 1
# told: named
# now: named
# says: rows and columns exchanged
def worked_context() -> dict:
    P = torch.tensor([[1.0, 0, 0], [0.3, 0.7, 0], [0.1, 0.8, 0.1]])
    V = torch.tensor([[0.5, 0.2, 1.0, 0.4], [0.1, 0.2, 0.6, 0.8], [0.3, 0.2, 0.2, 1.0]])
    return {"context": P.T @ V, "unchanged_row": 1, "constant_column": 2, "strongest": [1, 2, 2]}


# === exercise: project-qkv | function: project_qkv | kind: plain | what is wrong: keys are made with w_q
# told: named
# now: named
# says: w_q used for the keys, too
def project_qkv(x_q, x_kv, w_q, w_k, w_v):
    queries = torch.einsum("...td,dk->...tk", x_q, w_q)
    keys = torch.einsum("...td,dk->...tk", x_kv, w_q)
    values = torch.einsum("...td,dv->...tv", x_kv, w_v)
    return queries, keys, values


# === exercise: causal-mask | function: causal_mask | kind: plain | what is wrong: True above the diagonal, as PyTorch's modules mark what is blocked
# told: named
# now: named
# says: mask inverted
def causal_mask(length: int) -> torch.Tensor:
    return torch.ones(length, length, dtype=torch.bool).triu(diagonal=1)


# === exercise: padding-mask | function: padding_mask | kind: subtle | what is wrong: the width is that of the longest sentence and not max_length
# told: named
# now: named
# says: the longest length in place of max_length
def padding_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    positions = torch.arange(int(lengths.max()))
    return (positions[None, :] < lengths[:, None]).unsqueeze(1)


# === exercise: padding-mask | function: padding_mask | kind: double | what is wrong: the first padding is real, too (<=) AND the axis for the queries is the last one
# told: named
# now: named
# says: masks queries in place of keys, and off by one
def padding_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    rows = []
    for n in lengths.tolist():
        rows.append([[j <= n] for j in range(max_length)])
    return torch.tensor(rows)


# === exercise: masked-softmax | function: masked_softmax | kind: subtle | what is wrong: the result has no NaN, but the gradient of a row in which nothing is allowed is NaN, since nan_to_num comes after torch.softmax
# dropped: masked_fill gives no gradient back, so it is right
def masked_softmax(scores, mask=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return torch.nan_to_num(torch.softmax(scores, dim=-1), nan=0.0)


# === exercise: masked-softmax | function: masked_softmax | kind: double | what is wrong: -100 in place of minus infinity, so forbidden keys keep a little weight and large negative scores lose AND an empty row gets equal weights
# told: named
# now: named
# says: a large negative number in place of −∞
def masked_softmax(scores, mask=None):
    if mask is None:
        return softmax(scores)
    blocked = torch.where(mask, scores, torch.tensor(-100.0))
    return softmax(blocked)


# === exercise: scaled-dot-product-attention | function: scaled_dot_product_attention | kind: subtle | what is wrong: divided by the root of the number of keys, T_k
# told: named
# now: named
# says: scaled by the number of keys
def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.mT / math.sqrt(k.shape[-2])
    weights = masked_softmax(scores, mask)
    return weights @ v, weights


# === exercise: scaled-dot-product-attention | function: scaled_dot_product_attention | kind: double | what is wrong: the scaling is applied to the weights and not to the scores AND weights and output are returned in the other order
# told: shown
# now: named
# says: scaled after the softmax, and weights returned first
def scaled_dot_product_attention(q, k, v, mask=None):
    d_k = q.size(-1)
    attention = masked_softmax(torch.matmul(q, k.transpose(-2, -1)), mask) / d_k**0.5
    return attention, torch.matmul(attention, v)


# === exercise: attention-module | function: Attention | kind: subtle | what is wrong: in cross-attention the mask is not handed on, only in self-attention
# told: named
# now: named
# says: mask dropped for cross-attention
class Attention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        scale = d_model**-0.5
        self.w_q = nn.Parameter(scale * torch.randn(d_model, d_k))
        self.w_k = nn.Parameter(scale * torch.randn(d_model, d_k))
        self.w_v = nn.Parameter(scale * torch.randn(d_model, d_v))

    def forward(self, x_q, x_kv=None, mask=None):
        if x_kv is not None:
            q, k, v = project_qkv(x_q, x_kv, self.w_q, self.w_k, self.w_v)
            return scaled_dot_product_attention(q, k, v)
        q, k, v = project_qkv(x_q, x_q, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q, k, v, mask)


# === exercise: attention-module | function: Attention | kind: double | what is wrong: each matrix is divided by the root of its own number of columns AND with x_kv given the values still come from x_q
# told: named
# now: named
# says: values from x_q
class Attention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / math.sqrt(d_k))
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / math.sqrt(d_k))
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / math.sqrt(d_v))

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        q, k = x_q @ self.w_q, x_kv @ self.w_k
        v = x_q @ self.w_v
        if v.shape[-2] != k.shape[-2]:
            v = x_kv @ self.w_v
        return scaled_dot_product_attention(q, k, v, mask)


# === exercise: geometric-example | function: geometric_example | kind: subtle | what is wrong: car_to_blue is read with row and column exchanged
# told: named
# now: named
# says: rows and columns exchanged
def geometric_example(theta_q, theta_k, theta_v):
    def R(t):
        c, s = math.cos(t), math.sin(t)
        return torch.tensor([[c, -s], [s, c]])

    q, k, v = R(theta_q), R(theta_k), R(theta_v)
    out, weights = scaled_dot_product_attention(q, k, v)
    scores = q @ k.T
    return dict(scores=scores, scaled=scores / math.sqrt(2), weights=weights, output=out,
                car_to_blue=float(weights[0, 1]))


# === exercise: geometric-example | function: geometric_example | kind: double | what is wrong: the rotations turn the other way round AND the scaled scores are divided by 2 and not by the root of 2
# told: named
# now: named
# says: rotations applied to column vectors, and scaled by d_k in place of √d_k
def geometric_example(theta_q, theta_k, theta_v):
    def turn(angle):
        c, s = math.cos(angle), math.sin(angle)
        return torch.tensor([[c, s], [-s, c]])

    x = torch.eye(2)
    q, k, v = x @ turn(theta_q), x @ turn(theta_k), x @ turn(theta_v)
    scores = q @ k.mT
    scaled = scores / 2
    weights = softmax(scaled)
    return {"scores": scores, "scaled": scaled, "weights": weights, "output": weights @ v,
            "car_to_blue": weights[1, 0].item()}


# === exercise: softmax-jacobian | function: softmax_jacobian | kind: double | what is wrong: the sign off the diagonal is plus AND the diagonal is p and not p(1 - p)
# told: wrong
# now: named
# says: the sign off the diagonal is missing, and the diagonal is p
def softmax_jacobian(p: torch.Tensor) -> torch.Tensor:
    outer = p[..., :, None] * p[..., None, :]
    off = outer - torch.diag_embed(torch.diagonal(outer, dim1=-2, dim2=-1))
    return torch.diag_embed(p) + off


# === exercise: additive-attention | function: AdditiveAttention | kind: subtle | what is wrong: v is divided by nothing at the start: drawn with standard deviation 1 and not 1/sqrt(d_hidden)
# told: named
# now: named
# says: the weights start too large
class AdditiveAttention(nn.Module):
    def __init__(self, d_q: int, d_k: int, d_hidden: int) -> None:
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_q, d_hidden) / d_q**0.5)
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden) / d_k**0.5)
        self.v = nn.Parameter(torch.randn(d_hidden))

    def forward(self, x_q, x_kv, mask=None):
        hidden = (x_q @ self.w_q).unsqueeze(-2) + (x_kv @ self.w_k).unsqueeze(-3)
        weights = masked_softmax(hidden.tanh() @ self.v, mask)
        return weights @ x_kv, weights


# === exercise: additive-attention | function: AdditiveAttention | kind: double | what is wrong: tanh is applied after the product with v AND the values are the projected keys
# told: named
# now: named
# says: tanh after the product with v, and output from the projected keys
class AdditiveAttention(nn.Module):
    def __init__(self, d_q: int, d_k: int, d_hidden: int) -> None:
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_q, d_hidden) / math.sqrt(d_q))
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden) / math.sqrt(d_k))
        self.v = nn.Parameter(torch.randn(d_hidden) / math.sqrt(d_hidden))

    def forward(self, x_q, x_kv, mask=None):
        q = x_q @ self.w_q
        k = x_kv @ self.w_k
        e = torch.tanh((q[..., :, None, :] + k[..., None, :, :]) @ self.v)
        a = masked_softmax(e, mask)
        return a @ k, a


# === exercise: attention-cost | functions: attention_cost, path_length | kind: subtle | what is wrong: the number of convolution layers is rounded down, so the last tokens are not seen unless it fits exactly
# told: named
# now: named
# says: rounded down
def attention_cost(length, d_model):
    projections = 4 * length * d_model**2
    scores = mixing = length**2 * d_model
    return {"projections": projections, "scores": scores, "mixing": mixing,
            "quadratic_share": (scores + mixing) / (projections + scores + mixing)}


def path_length(kind, length, kernel=3):
    match kind:
        case "recurrent":
            return length
        case "convolution":
            return max(1, (length - 1) // (kernel - 1))
        case "attention":
            return 1
    raise ValueError(kind)


# === exercise: attention-cost | functions: attention_cost, path_length | kind: double | what is wrong: three projections in place of four AND the quadratic part is compared with the projections and not with the whole
# told: named
# now: named
# says: three projections in place of four, and a ratio in place of a share
def attention_cost(length, d_model):
    p = 3 * length * d_model * d_model
    s = length * length * d_model
    m = length * length * d_model
    return {"projections": p, "scores": s, "mixing": m, "quadratic_share": (s + m) / p}


def path_length(kind, length, kernel=3):
    if kind == "recurrent":
        return length
    if kind == "attention":
        return 1
    if kind == "convolution":
        return math.ceil((length - 1) / (kernel - 1))
    raise ValueError(f"unknown kind {kind!r}")


# === exercise: attention-pooling | function: AttentionPooling | kind: subtle | what is wrong: without a mask it works, with one the mask (B, 1, T) is not flattened, and the first sequence's mask is used for all
# told: named
# now: named
# says: the mask of one sequence for the whole batch
class AttentionPooling(nn.Module):
    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query = nn.Parameter(0.02 * torch.randn(d_model))

    def forward(self, hidden, mask=None):
        scores = hidden @ self.query / math.sqrt(hidden.shape[-1])
        if mask is not None:
            mask = mask[0, 0]
        weights = masked_softmax(scores, mask)
        return torch.einsum("bt,btd->bd", weights, hidden), weights


# === exercise: attention-pooling | function: AttentionPooling | kind: double | what is wrong: not divided by the root of d AND the query starts with a standard deviation of 1
# told: named
# now: named
# says: the scores are not scaled
class AttentionPooling(nn.Module):
    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(d_model))

    def forward(self, hidden, mask=None):
        m = None if mask is None else mask.squeeze(1)
        w = masked_softmax((hidden * self.query).sum(-1), m)
        return (w.unsqueeze(-1) * hidden).sum(1), w
