# ruff: noqa
# fmt: off

# === exercise: softmax | function: softmax | kind: subtle | what is wrong: the largest score of the whole tensor is subtracted, not that of each row, so a row far below the others underflows to zeros
# told: named
# now: named
# says: one maximum for all rows
def softmax(scores: torch.Tensor) -> torch.Tensor:
    # 1. Softmax only depends on differences, so any shift will do as long as
    #    nothing is larger than 0 afterwards: take the largest score there is.
    largest = scores.max()
    if torch.isinf(largest):
        # nothing but -inf anywhere
        largest = torch.zeros_like(largest)
    # 2.
    exponentials = torch.exp(scores - largest)
    # 3. a row of only -inf has the sum 0: divide by 1 there
    total = exponentials.sum(dim=-1, keepdim=True)
    total = torch.where(total == 0, torch.ones_like(total), total)
    return exponentials / total


# === exercise: worked-context | function: worked_context | kind: plain | what is wrong: strongest is read down the columns of P (who attends most to this token) in place of along the rows
# told: named
# now: named
# says: rows and columns exchanged
def worked_context() -> dict:
    context = torch.tensor(
        [
            [0.50, 0.20, 1.00, 0.40],  # berries: its own row of V
            [0.22, 0.20, 0.72, 0.68],  # ripen
            [0.16, 0.20, 0.60, 0.78],  # slowly
        ]
    )
    return {
        "context": context,
        "unchanged_row": 0,
        "constant_column": 1,
        # columns of P: (1, .3, .1), (0, .7, .8), (0, 0, .1)
        "strongest": [0, 2, 2],
    }


# === exercise: project-qkv | function: project_qkv | kind: plain | what is wrong: the values are made from x_q, the sequence that asks, and not from x_kv
# told: named
# now: named
# says: values from x_q
def project_qkv(
    x_q: torch.Tensor,
    x_kv: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    def project(x, w):
        return torch.einsum("...td,dk->...tk", x, w)

    # the asking sequence brings its own content, the other one is only compared with
    q, v = project(x_q, w_q), project(x_q, w_v)
    k = project(x_kv, w_k)
    return q, k, v


# === exercise: causal-mask | function: causal_mask | kind: double | what is wrong: the diagonal is excluded (a token does not see itself) AND the mask is of floats and not of booleans
# told: named
# now: named
# says: numbers in place of True and False
def causal_mask(length: int) -> torch.Tensor:
    mask = torch.zeros(length, length)
    for i in range(length):
        for j in range(i):  # the keys before i
            mask[i, j] = True
    return mask


# === exercise: padding-mask | function: padding_mask | kind: subtle | what is wrong: the padding is cut off with a negative slice, so a sentence of full length (no padding, slice -0) is hidden entirely
# told: shown
# now: named
# says: a full sequence hidden by a slice of -0
def padding_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    mask = torch.ones(len(lengths), 1, max_length, dtype=torch.bool)
    for b, n in enumerate(lengths.tolist()):
        padding = max_length - n
        # the last `padding` positions are not real
        mask[b, 0, -padding:] = False
    return mask


# === exercise: masked-softmax | function: masked_softmax | kind: subtle | what is wrong: forbidden keys take part in the softmax and the rest is rescaled afterwards, so a forbidden score far above the allowed ones leaves a row of zeros that does not sum to 1
# told: named
# now: named
# says: renormalised after the softmax
def masked_softmax(
    scores: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    weights = softmax(scores)
    if mask is None:
        return weights
    # Softmax, then mask, and share out again so that the rows sum to 1.
    weights = torch.where(mask, weights, torch.zeros_like(weights))
    row_sum = weights.sum(-1, keepdim=True)
    return weights / row_sum.masked_fill(row_sum == 0, 1.0)


# === exercise: masked-softmax | function: masked_softmax | kind: double | what is wrong: the scores of the caller are overwritten in place AND -1e9 in place of -inf gives equal weights, not zeros, to a row in which nothing is allowed
# told: named
# now: named
# says: changes its argument in place
def masked_softmax(
    scores: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    if mask is not None:
        # .data, or else autograd complains about a leaf
        scores.data.masked_fill_(~mask, -1e9)
    return softmax(scores)


# === exercise: scaled-dot-product-attention | function: scaled_dot_product_attention | kind: subtle | what is wrong: d_k is read off axis 1, which is the number of queries (or another leading axis) as soon as there is a batch
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
    scores = torch.matmul(q, k.transpose(-2, -1)) * d_k**-0.5
    weights = masked_softmax(scores, mask)
    return torch.matmul(weights, v), weights


# === exercise: scaled-dot-product-attention | function: scaled_dot_product_attention | kind: double | what is wrong: the scores are divided by the root of d_v AND the mask is applied to the weights after the softmax, so that masked rows do not sum to 1
# told: named
# now: named
# says: scaled by √d_v in place of √d_k, and weights zeroed after the softmax without renormalising
def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    width = v.shape[-1]
    scores = torch.einsum("...id,...jd->...ij", q, k) / math.sqrt(width)
    weights = masked_softmax(scores)
    if mask is not None:
        weights = weights.masked_fill(~mask, 0.0)
    output = torch.einsum("...ij,...jd->...id", weights, v)
    return output, weights


# === exercise: attention-module | function: Attention | kind: subtle | what is wrong: the mask is used in self-attention only, in cross-attention it is dropped
# told: named
# now: named
# says: mask dropped for cross-attention
class Attention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        scale = 1 / math.sqrt(d_model)
        self.w_q = nn.Parameter(scale * torch.randn(d_model, d_k))
        self.w_k = nn.Parameter(scale * torch.randn(d_model, d_k))
        self.w_v = nn.Parameter(scale * torch.randn(d_model, d_v))

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if x_kv is None:
            # self-attention: nobody may look ahead
            q, k, v = project_qkv(x_q, x_q, self.w_q, self.w_k, self.w_v)
            return scaled_dot_product_attention(q, k, v, mask=mask)
        # cross-attention: the whole source may be seen
        q, k, v = project_qkv(x_q, x_kv, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q, k, v)


# === exercise: geometric-example | function: geometric_example | kind: double | what is wrong: the scores are divided by 2 and not by the root of 2 AND car_to_blue takes the entry of blue attending to car
# told: named
# now: named
# says: scaled by d_k in place of √d_k, and rows and columns exchanged
def geometric_example(theta_q: float, theta_k: float, theta_v: float) -> dict:
    def rotation(theta):
        c, s = math.cos(theta), math.sin(theta)
        return torch.tensor([[c, -s], [s, c]])

    q = rotation(theta_q)
    k = rotation(theta_k)
    v = rotation(theta_v)
    d_k = k.shape[-1]
    scores = q @ k.T
    scaled = scores / d_k
    weights = softmax(scaled)
    blue, car = 0, 1
    return {
        "scores": scores,
        "scaled": scaled,
        "weights": weights,
        "output": weights @ v,
        "car_to_blue": weights[blue, car].item(),
    }


# === exercise: redirect-attention | function: redirecting_angles | kind: plain | what is wrong: the search takes the softmax of the unscaled scores, so the first angle it accepts gives a weight of about 0.57 with the division by the root of 2
# told: named
# now: named
# says: the weight is not yet above 0.6
def redirecting_angles() -> tuple[float, float]:
    theta_k = 0.0
    # turn the query of car, one degree at a time, until it likes blue enough
    for degrees in range(360):
        theta_q = math.radians(degrees)
        to_blue = math.sin(theta_q - theta_k)
        to_car = math.cos(theta_q - theta_k)
        weight = math.exp(to_blue) / (math.exp(to_blue) + math.exp(to_car))
        if weight > 0.6:
            return theta_q, theta_k


# === exercise: softmax-jacobian | function: softmax_jacobian | kind: plain | what is wrong: p(1 - p) is put on the diagonal and p_i squared is subtracted there once more with the product, so the diagonal is p - 2 p^2
# told: named
# now: named
# says: the diagonal subtracted twice
def softmax_jacobian(probabilities: torch.Tensor) -> torch.Tensor:
    p = probabilities
    diagonal = torch.diag_embed(p * (1 - p))  # case i = j
    product = p.unsqueeze(-1) * p.unsqueeze(-2)  # case i != j
    return diagonal - product


# === exercise: additive-attention | function: AdditiveAttention | kind: double | what is wrong: the tanh is taken of queries and keys apart, before they are added, so the weights do not depend on the query AND w_q and w_k are divided by the root of d_hidden and not of their first size
# told: named
# now: named
# says: tanh of each part in place of their sum
class AdditiveAttention(nn.Module):
    def __init__(self, d_q: int, d_k: int, d_hidden: int) -> None:
        super().__init__()
        root = math.sqrt(d_hidden)
        self.w_q = nn.Parameter(torch.randn(d_q, d_hidden) / root)
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden) / root)
        self.v = nn.Parameter(torch.randn(d_hidden) / root)

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        queries = torch.tanh(x_q @ self.w_q).unsqueeze(-2)  # (.., T_q, 1, hidden)
        keys = torch.tanh(x_kv @ self.w_k).unsqueeze(-3)  # (.., 1, T_k, hidden)
        hidden = queries + keys
        scores = hidden @ self.v
        weights = masked_softmax(scores, mask)
        return weights @ x_kv, weights


# === exercise: attention-cost | functions: attention_cost, path_length | kind: subtle | what is wrong: the convolution needs ceil((length - 1) / (kernel - 1)) layers, here the - 1 of the length is missing, which is right for 10 tokens and a kernel of 3 and too many for 11
# told: named
# now: named
# says: the view starts from nothing
def attention_cost(length: int, d_model: int) -> dict:
    def product(n, m, l):
        return n * m * l

    projections = 4 * product(length, d_model, d_model)
    scores = product(length, d_model, length)
    mixing = product(length, length, d_model)
    quadratic = scores + mixing
    return {
        "projections": projections,
        "scores": scores,
        "mixing": mixing,
        "quadratic_share": quadratic / (quadratic + projections),
    }


def path_length(kind: str, length: int, kernel: int = 3) -> int:
    match kind:
        case "recurrent":
            return length
        case "convolution":
            # every layer widens the view by kernel - 1
            return math.ceil(length / (kernel - 1))
        case "attention":
            return 1
        case _:
            raise ValueError(f"unknown kind {kind!r}")


# === exercise: attention-pooling | function: AttentionPooling | kind: subtle | what is wrong: squeeze() takes every axis of size 1 from the mask, so with sequences of one token the mask becomes (B,) and the weights (B, B)
# told: named
# now: named
# says: squeeze takes the axis of the tokens away
class AttentionPooling(nn.Module):
    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(d_model) * 0.02)

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        scores = hidden @ self.query / math.sqrt(hidden.shape[-1])  # (B, T)
        if mask is not None:
            mask = mask.squeeze()  # (B, 1, T) -> (B, T)
        weights = masked_softmax(scores, mask)
        pooled = (weights.unsqueeze(-1) * hidden).sum(dim=1)
        return pooled, weights
