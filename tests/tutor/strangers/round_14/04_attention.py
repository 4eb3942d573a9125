# ruff: noqa
# fmt: off

# === exercise: softmax | function: softmax | kind: subtle | what is wrong: subtracts the largest score of the whole tensor instead of the row's, so a row far below it underflows to zeros
# told: named
# now: named
# says: one maximum for all rows
def softmax(scores: torch.Tensor) -> torch.Tensor:
    largest = scores.max()
    if largest == -math.inf:
        largest = torch.zeros_like(largest)
    e = torch.exp(scores - largest)
    total = e.sum(dim=-1, keepdim=True)
    total = torch.where(total == 0, torch.ones_like(total), total)
    return e / total


# === exercise: softmax | function: softmax | kind: double | what is wrong: subtracts the maximum in place, in the caller's tensor; and a row of only -inf gives NaN (-inf - (-inf)), which clamping the sum does not mend
# told: named
# now: named
# says: changes its argument in place
def softmax(scores):
    scores -= scores.max(dim=-1, keepdim=True).values
    exps = scores.exp()
    norm = exps.sum(-1, keepdim=True).clamp(min=1e-12)
    return exps / norm


# === exercise: worked-context | function: worked_context | kind: plain | what is wrong: reads "strongest" down the columns of the weights instead of along the rows: [0, 2, 2]
# told: named
# now: named
# says: rows and columns exchanged
def worked_context() -> dict:
    context = torch.tensor(
        [
            [0.5, 0.2, 1.0, 0.4],
            [0.22, 0.2, 0.72, 0.68],
            [0.16, 0.2, 0.6, 0.78],
        ]
    )
    return {
        "context": context,
        "unchanged_row": 0,
        "constant_column": 1,
        "strongest": [0, 2, 2],
    }


# === exercise: project-qkv | function: project_qkv | kind: plain | what is wrong: queries and keys come from x_kv and the values from x_q (roles of the two sequences mixed up)
# told: named
# now: named
# says: queries and keys both from x_kv
def project_qkv(
    x_q: torch.Tensor,
    x_kv: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    # the encoder's sequence gives queries and keys, the decoder's the values
    q = x_kv @ w_q
    k = x_kv @ w_k
    v = x_q @ w_v
    return q, k, v


# === exercise: project-qkv | function: project_qkv | kind: subtle | what is wrong: the einsum needs exactly one leading axis: no batch, or two leading axes, raise an error
# told: named
# now: named
# says: only works with a batch
def project_qkv(x_q, x_kv, w_q, w_k, w_v):
    def project(x, w):
        return torch.einsum("btd,dk->btk", x, w)

    return project(x_q, w_q), project(x_kv, w_k), project(x_kv, w_v)


# === exercise: causal-mask | function: causal_mask | kind: plain | what is wrong: rows and columns exchanged: allows j >= i (the upper triangle)
# told: named
# now: named
# says: upper triangle
def causal_mask(length: int) -> torch.Tensor:
    positions = torch.arange(length)
    query = positions[None, :]
    key = positions[:, None]
    return key <= query


# === exercise: causal-mask | function: causal_mask | kind: double | what is wrong: leaves the diagonal out (j < i); and returns floats in place of booleans
# told: named
# now: named
# says: numbers in place of True and False
def causal_mask(length):
    mask = torch.zeros(length, length)
    for i in range(length):
        for j in range(i):
            mask[i, j] = 1
    return mask


# === exercise: padding-mask | function: padding_mask | kind: plain | what is wrong: <= instead of <: the first padding position is allowed, too
# told: named
# now: named
# says: off by one
def padding_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    positions = torch.arange(max_length)
    return positions[None, None, :] <= lengths[:, None, None]


# === exercise: padding-mask | function: padding_mask | kind: subtle | what is wrong: the width is the longest sentence of the batch instead of max_length
# told: named
# now: named
# says: the longest length in place of max_length
def padding_mask(lengths, max_length):
    max_length = int(lengths.max())
    rows = []
    for n in lengths.tolist():
        rows.append([True] * n + [False] * (max_length - n))
    return torch.tensor(rows, dtype=torch.bool).unsqueeze(1)


# === exercise: masked-softmax | function: masked_softmax | kind: plain | what is wrong: -1e9 instead of -inf: a row in which nothing is allowed gets equal weights instead of zeros
# told: named
# now: named
# says: a large negative number in place of −∞
def masked_softmax(
    scores: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return softmax(scores)


# === exercise: masked-softmax | function: masked_softmax | kind: subtle | what is wrong: softmax first, then mask and renormalise: when a forbidden score exceeds the allowed ones by far, these have underflowed to 0 and the row becomes zeros
# told: named
# now: named
# says: renormalised after the softmax
def masked_softmax(scores, mask=None):
    weights = softmax(scores)
    if mask is None:
        return weights
    weights = torch.where(mask, weights, torch.zeros_like(weights))
    total = weights.sum(dim=-1, keepdim=True)
    total = torch.where(total > 0, total, torch.ones_like(total))
    return weights / total


# === exercise: masked-softmax | function: masked_softmax | kind: double | what is wrong: fills where the mask is True, that is the allowed keys; and fills in place, in the caller's scores
# told: named
# now: named
# says: changes its argument in place
def masked_softmax(scores, mask=None):
    if mask is None:
        return softmax(scores)
    scores.masked_fill_(mask, float("-inf"))
    return softmax(scores)


# === exercise: scaled-dot-product-attention | function: scaled_dot_product_attention | kind: subtle | what is wrong: reads d_k from axis 1 of the queries: right without a batch, with a batch it divides by the root of T_q
# told: named
# now: named
# says: only works for 2-D inputs
def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    d_k = q.size(1)
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(d_k)
    weights = masked_softmax(scores, mask)
    return torch.matmul(weights, v), weights


# === exercise: scaled-dot-product-attention | function: scaled_dot_product_attention | kind: double | what is wrong: divides by the root of d_v instead of d_k; and puts the mask on after the softmax, so the rows do not sum to 1
# told: named
# now: named
# says: scaled by √d_v in place of √d_k, and weights zeroed after the softmax without renormalising
def scaled_dot_product_attention(q, k, v, mask=None):
    width = v.shape[-1]
    similarity = torch.einsum("...id,...jd->...ij", q, k) * width**-0.5
    weights = masked_softmax(similarity)
    if mask is not None:
        weights = weights * mask
    output = torch.einsum("...ij,...jd->...id", weights, v)
    return output, weights


# === exercise: attention-module | function: Attention | kind: subtle | what is wrong: divides each matrix by the root of its second size (d_k, d_v) instead of the root of d_model
# told: named
# now: named
# says: the weights start too large
class Attention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        self.w_q = self._new(d_model, d_k)
        self.w_k = self._new(d_model, d_k)
        self.w_v = self._new(d_model, d_v)

    @staticmethod
    def _new(rows, columns):
        return nn.Parameter(torch.randn(rows, columns) / math.sqrt(columns))

    def forward(self, x_q, x_kv=None, mask=None):
        if x_kv is None:
            x_kv = x_q
        q, k, v = project_qkv(x_q, x_kv, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q, k, v, mask)


# === exercise: attention-module | function: Attention | kind: double | what is wrong: the values come from x_q instead of x_kv in cross-attention; and the mask is not passed on
# told: wrong
# now: named
# says: mask ignored
class Attention(nn.Module):
    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        scale = 1 / math.sqrt(d_model)
        self.w_q = nn.Parameter(scale * torch.randn(d_model, d_k))
        self.w_k = nn.Parameter(scale * torch.randn(d_model, d_k))
        self.w_v = nn.Parameter(scale * torch.randn(d_model, d_v))

    def forward(self, x_q, x_kv=None, mask=None):
        source = x_q if x_kv is None else x_kv
        queries = x_q @ self.w_q
        keys = source @ self.w_k
        values = x_q @ self.w_v
        output, weights = scaled_dot_product_attention(queries, keys, values)
        return output, weights


# === exercise: geometric-example | function: geometric_example | kind: subtle | what is wrong: "car_to_blue" is read as weights[0, 1], the weight with which blue attends to car
# told: named
# now: named
# says: rows and columns exchanged
def geometric_example(theta_q: float, theta_k: float, theta_v: float) -> dict:
    def rotation(theta):
        c, s = math.cos(theta), math.sin(theta)
        return torch.tensor([[c, -s], [s, c]])

    q, k, v = map(rotation, (theta_q, theta_k, theta_v))
    scores = q @ k.T
    scaled = scores / math.sqrt(2)
    weights = softmax(scaled)
    return {
        "scores": scores,
        "scaled": scaled,
        "weights": weights,
        "output": weights @ v,
        "car_to_blue": weights[0, 1].item(),
    }


# === exercise: geometric-example | function: geometric_example | kind: double | what is wrong: the rotations are applied as to column vectors (transposed matrices); and the softmax runs down the columns instead of along the rows
# told: named
# now: named
# says: rotations applied to column vectors, and softmax over the wrong axis
def geometric_example(theta_q, theta_k, theta_v):
    x = torch.eye(2)

    def turn(theta):
        R = torch.tensor(
            [[math.cos(theta), -math.sin(theta)], [math.sin(theta), math.cos(theta)]]
        )
        # turn every token: R x
        return torch.stack([R @ token for token in x])

    q, k, v = turn(theta_q), turn(theta_k), turn(theta_v)
    result = {"scores": q @ k.mT}
    result["scaled"] = result["scores"] / 2**0.5
    e = torch.exp(result["scaled"])
    result["weights"] = e / e.sum(dim=0)
    result["output"] = result["weights"] @ v
    result["car_to_blue"] = result["weights"][1, 0].item()
    return result


# === exercise: redirect-attention | function: redirecting_angles | kind: plain | what is wrong: turns the wrong way (a rotation as for column vectors): the query of car points away from the key of blue
# told: named
# now: named
# says: the difference of the angles has the wrong sign
def redirecting_angles() -> tuple[float, float]:
    # car is at 90 degrees, turn it back by 45; blue is at 0, turn it on by 45
    theta_q = math.radians(-45)
    theta_k = math.radians(45)
    return theta_q, theta_k


# === exercise: softmax-jacobian | function: softmax_jacobian | kind: plain | what is wrong: only the diagonal p_i (1 - p_i) is filled, the entries off the diagonal stay 0
# told: named
# now: named
# says: only the diagonal
def softmax_jacobian(probabilities: torch.Tensor) -> torch.Tensor:
    p = probabilities
    return torch.diag_embed(p * (1 - p))


# === exercise: softmax-jacobian | function: softmax_jacobian | kind: subtle | what is wrong: writes the diagonal by indexing the first two axes, which are batch and row when there is a batch (with B = n no error, but wrong numbers)
# told: named
# now: named
# says: only works for one row
def softmax_jacobian(probabilities):
    n = probabilities.shape[-1]
    jacobian = -probabilities.unsqueeze(-1) * probabilities.unsqueeze(-2)
    where = torch.arange(n)
    jacobian[where, where] = probabilities * (1 - probabilities)
    return jacobian


# === exercise: additive-attention | function: AdditiveAttention | kind: subtle | what is wrong: the new axes are counted from the front (1 and 2), which is right with exactly one batch axis only
# told: useless
# now: named
# says: only works with a batch
class AdditiveAttention(nn.Module):
    def __init__(self, d_q: int, d_k: int, d_hidden: int) -> None:
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_q, d_hidden) / math.sqrt(d_q))
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden) / math.sqrt(d_k))
        self.v = nn.Parameter(torch.randn(d_hidden) / math.sqrt(d_hidden))

    def forward(self, x_q, x_kv, mask=None):
        queries = (x_q @ self.w_q).unsqueeze(2)  # (B, T_q, 1, hidden)
        keys = (x_kv @ self.w_k).unsqueeze(1)  # (B, 1, T_k, hidden)
        scores = torch.tanh(queries + keys) @ self.v
        weights = masked_softmax(scores, mask)
        return weights @ x_kv, weights


# === exercise: additive-attention | function: AdditiveAttention | kind: double | what is wrong: takes the tanh of query and key separately before adding them, so the weights forget the query; and draws v without dividing by the root of d_hidden
# told: named
# now: named
# says: tanh of each part in place of their sum
class AdditiveAttention(nn.Module):
    def __init__(self, d_q, d_k, d_hidden):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_q, d_hidden) * d_q**-0.5)
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden) * d_k**-0.5)
        self.v = nn.Parameter(torch.randn(d_hidden))

    def forward(self, x_q, x_kv, mask=None):
        s = torch.tanh(x_q @ self.w_q)
        h = torch.tanh(x_kv @ self.w_k)
        pairs = s[..., :, None, :] + h[..., None, :, :]
        energy = (pairs * self.v).sum(dim=-1)
        alpha = masked_softmax(energy, mask)
        context = alpha @ x_kv
        return context, alpha


# === exercise: attention-cost | functions: attention_cost, path_length | kind: plain | what is wrong: counts multiplications and additions separately, so projections, scores and mixing are twice too large
# told: named
# now: named
# says: operations in place of multiply-adds
def attention_cost(length: int, d_model: int) -> dict:
    def flops(n, m, l):
        return 2 * n * m * l

    projections = 4 * flops(length, d_model, d_model)
    scores = flops(length, d_model, length)
    mixing = flops(length, length, d_model)
    share = (scores + mixing) / (projections + scores + mixing)
    return {
        "projections": projections,
        "scores": scores,
        "mixing": mixing,
        "quadratic_share": share,
    }


def path_length(kind: str, length: int, kernel: int = 3) -> int:
    if kind == "recurrent":
        return length
    if kind == "convolution":
        return math.ceil((length - 1) / (kernel - 1))
    if kind == "attention":
        return 1
    raise ValueError(f"unknown kind: {kind}")


# === exercise: attention-cost | functions: attention_cost, path_length | kind: double | what is wrong: counts three projections instead of four (forgets the output projection); and the number of convolution layers is rounded down
# told: named
# now: named
# says: three projections in place of four
def attention_cost(length, d_model):
    cost = {"projections": 3 * length * d_model**2}
    cost["scores"] = cost["mixing"] = length**2 * d_model
    quadratic = cost["scores"] + cost["mixing"]
    cost["quadratic_share"] = quadratic / (cost["projections"] + quadratic)
    return cost


def path_length(kind, length, kernel=3):
    match kind:
        case "recurrent":
            return length
        case "convolution":
            return (length - 1) // (kernel - 1)
        case "attention":
            return 1
        case _:
            raise ValueError(kind)


# === exercise: attention-pooling | function: AttentionPooling | kind: plain | what is wrong: forgets to divide the scores by the root of d
# told: named
# now: named
# says: the scores are not scaled
class AttentionPooling(nn.Module):
    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query = nn.Parameter(0.02 * torch.randn(d_model))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        scores = hidden @ self.query
        if mask is not None:
            mask = mask[:, 0]
        weights = masked_softmax(scores, mask)
        pooled = (weights[..., None] * hidden).sum(dim=1)
        return pooled, weights


# === exercise: attention-pooling | function: AttentionPooling | kind: double | what is wrong: the mask zeroes the hidden vectors instead of entering the softmax, so padding keeps a share of the weights; and the query starts with a standard deviation of 1
# told: named
# now: named
# says: padded scores set to 0
class AttentionPooling(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.query = nn.Parameter(torch.empty(d_model))
        nn.init.normal_(self.query)

    def forward(self, hidden, mask=None):
        if mask is not None:
            hidden = hidden * mask.transpose(1, 2)
        scores = torch.einsum("btd,d->bt", hidden, self.query) / math.sqrt(hidden.size(-1))
        weights = masked_softmax(scores)
        pooled = torch.einsum("bt,btd->bd", weights, hidden)
        return pooled, weights


# === exercise: geometric-example | function: geometric_example | kind: plain | what is wrong: the keys are not transposed (Q K instead of Q Kᵀ, which raises no error for 2×2 matrices)
# told: named
# now: named
# says: keys not transposed
def geometric_example(theta_q: float, theta_k: float, theta_v: float) -> dict:
    def rotation(theta):
        c, s = math.cos(theta), math.sin(theta)
        return torch.tensor([[c, -s], [s, c]])

    x = torch.eye(2)
    q, k, v = (x @ rotation(t) for t in (theta_q, theta_k, theta_v))
    scores = torch.matmul(q, k)
    scaled = scores / math.sqrt(2)
    weights = softmax(scaled)
    output = torch.matmul(weights, v)
    return {
        "scores": scores,
        "scaled": scaled,
        "weights": weights,
        "output": output,
        "car_to_blue": weights[1, 0].item(),
    }


# === exercise: attention-cost | functions: attention_cost, path_length | kind: plain | what is wrong: path_length rounds the number of convolution layers down instead of up
# told: named
# now: named
# says: rounded down
def attention_cost(length: int, d_model: int) -> dict:
    T, d = length, d_model
    cost = {
        "projections": 4 * T * d * d,
        "scores": T * d * T,
        "mixing": T * T * d,
    }
    quadratic = cost["scores"] + cost["mixing"]
    cost["quadratic_share"] = quadratic / (quadratic + cost["projections"])
    return cost


def path_length(kind: str, length: int, kernel: int = 3) -> int:
    match kind:
        case "recurrent":
            return length
        case "convolution":
            return max(1, (length - 1) // (kernel - 1))
        case "attention":
            return 1
        case _:
            raise ValueError(f"unknown kind {kind!r}")


# === exercise: additive-attention | function: AdditiveAttention | kind: subtle | what is wrong: w_k is drawn with a standard deviation of 1/√d_q instead of 1/√d_k (equal when the two widths are equal)
# told: named
# now: named
# says: the weights start too small
class AdditiveAttention(nn.Module):
    def __init__(self, d_q: int, d_k: int, d_hidden: int) -> None:
        super().__init__()
        scale = d_q**-0.5
        self.w_q = nn.Parameter(scale * torch.randn(d_q, d_hidden))
        self.w_k = nn.Parameter(scale * torch.randn(d_k, d_hidden))
        self.v = nn.Parameter(d_hidden**-0.5 * torch.randn(d_hidden))

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        queries = (x_q @ self.w_q)[..., :, None, :]
        keys = (x_kv @ self.w_k)[..., None, :, :]
        scores = torch.tanh(queries + keys) @ self.v
        weights = masked_softmax(scores, mask)
        return weights @ x_kv, weights


# === exercise: attention-pooling | function: AttentionPooling | kind: subtle | what is wrong: divides the scores by the root of the number of tokens T instead of the root of d
# told: named
# now: named
# says: divided by the root of the number of tokens
class AttentionPooling(nn.Module):
    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(d_model) * 0.02)

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        scores = hidden @ self.query / math.sqrt(hidden.shape[1])
        if mask is not None:
            mask = mask.squeeze(1)
        weights = masked_softmax(scores, mask)
        pooled = torch.einsum("bt,btd->bd", weights, hidden)
        return pooled, weights


# === exercise: scaled-dot-product-attention | function: scaled_dot_product_attention | kind: double | what is wrong: (1) divides by the root of d_v instead of d_k; (2) applies the mask after the softmax, so masked rows do not sum to 1
# told: named
# now: named
# says: scaled by √d_v in place of √d_k, and weights zeroed after the softmax without renormalising
def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    scores = torch.einsum("...qd,...kd->...qk", q, k)
    scores = scores / v.size(-1) ** 0.5
    weights = masked_softmax(scores)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    output = torch.einsum("...qk,...kd->...qd", weights, v)
    return output, weights


# === exercise: attention-module | function: Attention | kind: double | what is wrong: (1) the parameters are divided by d_model instead of its root; (2) the mask is dropped in cross-attention
# told: named
# now: named
# says: mask dropped for cross-attention
class Attention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) / d_model)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) / d_model)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / d_model)

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        weights = self.w_q, self.w_k, self.w_v
        if x_kv is None:
            q, k, v = project_qkv(x_q, x_q, *weights)
            return scaled_dot_product_attention(q, k, v, mask)
        q, k, v = project_qkv(x_q, x_kv, *weights)
        return scaled_dot_product_attention(q, k, v)
