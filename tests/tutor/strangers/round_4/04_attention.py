# ruff: noqa
# fmt: off

# === exercise: softmax | function: softmax | kind: subtle | what is wrong: subtracts the largest score of the whole tensor in place of each row's: rows far below underflow to zeros
# told: named
# now: named
# says: one maximum for all rows
def softmax(scores: torch.Tensor) -> torch.Tensor:
    largest = scores.max()
    if largest == -math.inf:
        largest = torch.zeros(())
    e = torch.exp(scores - largest)
    total = e.sum(dim=-1, keepdim=True)
    return e / torch.where(total == 0, torch.ones_like(total), total)


# === exercise: softmax | function: softmax | kind: subtle | what is wrong: nan_to_num at the end; forward right, but the gradient of a row of -inf is NaN
# dropped: its values are right, and nan_to_num is a right variant of the bank; no gradient is asked for
def softmax(scores: torch.Tensor) -> torch.Tensor:
    m = scores.max(dim=-1, keepdim=True).values
    e = torch.exp(scores - m)
    return torch.nan_to_num(e / e.sum(dim=-1, keepdim=True), nan=0.0)


# === exercise: project-qkv | function: project_qkv | kind: plain | what is wrong: keys and queries are made of x_kv, values too; x_q is not used for queries (slip of a lecture)
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
    keys = x_kv @ w_k
    queries = x_kv @ w_q
    values = x_q @ w_v
    return queries, keys, values


# === exercise: causal-mask | function: causal_mask | kind: plain | what is wrong: PyTorch's convention, True above the diagonal means blocked
# told: named
# now: named
# says: mask inverted
def causal_mask(length: int) -> torch.Tensor:
    return torch.triu(torch.ones(length, length), diagonal=1).bool()


# === exercise: padding-mask | function: padding_mask | kind: double | what is wrong: off by one (position <= length) AND the axis for the queries stands last, (B, T, 1)
# told: named
# now: named
# says: masks queries in place of keys, and off by one
def padding_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    positions = torch.arange(max_length).unsqueeze(0)
    mask = positions <= lengths.unsqueeze(1)
    return mask.unsqueeze(-1)


# === exercise: masked-softmax | function: masked_softmax | kind: subtle | what is wrong: -1e9 in place of -inf: a row without allowed keys gets equal weights, very negative allowed scores lose
# told: named
# now: named
# says: a large negative number in place of −∞
def masked_softmax(
    scores: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    return softmax(scores)


# === exercise: masked-softmax | function: masked_softmax | kind: subtle | what is wrong: the -inf are written into the scores of the caller (masked_fill_ in place)
# told: named
# now: named
# says: changes its argument in place
def masked_softmax(
    scores: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    if mask is None:
        return softmax(scores)
    with torch.no_grad():
        scores.masked_fill_(torch.logical_not(mask), float("-inf"))
    return softmax(scores)


# === exercise: scaled-dot-product-attention | function: scaled_dot_product_attention | kind: subtle | what is wrong: divides by the root of d_v
# told: named
# now: named
# says: scaled by √d_v in place of √d_k
def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    d = v.size(-1)
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(d)
    p_attn = masked_softmax(scores, mask)
    return torch.matmul(p_attn, v), p_attn


# === exercise: scaled-dot-product-attention | function: scaled_dot_product_attention | kind: double | what is wrong: softmax runs over axis -2 (queries), so columns sum to 1 AND divides by d_k without the root
# told: shown
# now: named
# says: scaled by d_k in place of √d_k, and softmax over the wrong axis
def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    scores = torch.einsum("...id,...jd->...ij", q, k) / q.shape[-1]
    weights = masked_softmax(
        scores.transpose(-1, -2), None if mask is None else mask.transpose(-1, -2)
    ).transpose(-1, -2)
    return torch.einsum("...ij,...jd->...id", weights, v), weights


# === exercise: attention-module | function: Attention | kind: subtle | what is wrong: the mask is forgotten in self-attention (x_kv None), only the branch of cross-attention passes it on
# told: named
# now: named
# says: the mask is dropped in self-attention
class Attention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        scale = d_model**-0.5
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) * scale)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) * scale)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) * scale)

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if x_kv is None:
            q, k, v = project_qkv(x_q, x_q, self.w_q, self.w_k, self.w_v)
            return scaled_dot_product_attention(q, k, v)
        q, k, v = project_qkv(x_q, x_kv, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q, k, v, mask)


# === exercise: attention-module | function: Attention | kind: double | what is wrong: one random matrix is used for w_q and w_k (the same numbers at the start) AND each is divided by its second size, 1/√d_k and 1/√d_v
# told: useless
# now: named
# says: two parameters start with the same numbers
class Attention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        start = torch.randn(d_model, d_k) / math.sqrt(d_k)
        self.w_q = nn.Parameter(start)
        self.w_k = nn.Parameter(start)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / math.sqrt(d_v))

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        source = x_q if x_kv is None else x_kv
        return scaled_dot_product_attention(
            *project_qkv(x_q, source, self.w_q, self.w_k, self.w_v), mask=mask
        )


# === exercise: geometric-example | function: geometric_example | kind: double | what is wrong: car_to_blue reads the entry [0, 1] AND rotation matrices are transposed (counter-clockwise for row vectors)
# told: told
# now: named
# says: rotations applied to column vectors, and rows and columns exchanged
def geometric_example(theta_q: float, theta_k: float, theta_v: float) -> dict:
    def rotation(t):
        return torch.tensor(
            [[math.cos(t), math.sin(t)], [-math.sin(t), math.cos(t)]]
        )

    x = torch.eye(2)
    q, k, v = x @ rotation(theta_q), x @ rotation(theta_k), x @ rotation(theta_v)
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


# === exercise: redirect-attention | function: redirecting_angles | kind: plain | what is wrong: wrong sign of the difference; the query of car points away from the key of blue
# dropped: weights[1, 0] is above 0.6, which is all that the statement asks for
def redirecting_angles() -> tuple[float, float]:
    return math.pi / 2, 0.0


# === exercise: softmax-jacobian | function: softmax_jacobian | kind: subtle | what is wrong: works for one vector only: torch.diag and torch.outer, leading axes fail
# told: named
# now: named
# says: only works for one row
def softmax_jacobian(probabilities: torch.Tensor) -> torch.Tensor:
    p = probabilities
    n = p.shape[-1]
    return torch.eye(n) * p - p.reshape(-1, 1) @ p.reshape(1, -1)


# === exercise: additive-attention | function: AdditiveAttention | kind: double | what is wrong: v is drawn with spread 1, not divided by the root of d_hidden AND scores are divided by √d_hidden as in the scaled dot product
# told: named
# now: named
# says: scaled as a dot product
class AdditiveAttention(nn.Module):
    def __init__(self, d_q: int, d_k: int, d_hidden: int) -> None:
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_q, d_hidden) / math.sqrt(d_q))
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden) / math.sqrt(d_k))
        self.v = nn.Parameter(torch.randn(d_hidden))

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        queries = (x_q @ self.w_q).unsqueeze(-2)
        keys = (x_kv @ self.w_k).unsqueeze(-3)
        scores = torch.tanh(queries + keys) @ self.v
        scores = scores / math.sqrt(self.v.shape[0])
        weights = masked_softmax(scores, mask)
        return weights @ x_kv, weights


# === exercise: attention-cost | function: attention_cost, path_length | kind: double | what is wrong: only three projections are counted (W_O is left out) AND the number of convolutions is floored, not rounded up
# told: named
# now: named
# says: three projections in place of four
def attention_cost(length: int, d_model: int) -> dict:
    projections = 3 * length * d_model * d_model
    scores = length * length * d_model
    mixing = length * length * d_model
    return {
        "projections": projections,
        "scores": scores,
        "mixing": mixing,
        "quadratic_share": (scores + mixing) / (projections + scores + mixing),
    }


def path_length(kind: str, length: int, kernel: int = 3) -> int:
    if kind == "recurrent":
        return length
    elif kind == "convolution":
        return (length - 1) // (kernel - 1)
    elif kind == "attention":
        return 1
    else:
        raise ValueError(f"unknown kind {kind}")


# === exercise: attention-cost | function: attention_cost, path_length | kind: subtle | what is wrong: an unknown kind falls through to 1 in place of a ValueError
# told: named
# now: named
# says: an unknown kind is accepted
def attention_cost(length: int, d_model: int) -> dict:
    p = 4 * length * d_model**2
    s = d_model * length**2
    return dict(projections=p, scores=s, mixing=s, quadratic_share=2 * s / (p + 2 * s))


def path_length(kind: str, length: int, kernel: int = 3) -> int:
    if kind == "recurrent":
        return length
    if kind == "convolution":
        layers, seen = 1, kernel
        while seen < length:
            layers, seen = layers + 1, seen + kernel - 1
        return layers
    return 1


# === exercise: attention-pooling | function: AttentionPooling | kind: subtle | what is wrong: the mask (B, 1, T) is laid over the scores (B, T), which broadcasts over the batch: B x B x T, right only for B = 1 after squeeze
# told: useless
# now: named
# says: the mask of one sequence for the whole batch
class AttentionPooling(nn.Module):
    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query = nn.Parameter(0.02 * torch.randn(d_model))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        scores = hidden @ self.query / math.sqrt(hidden.shape[-1])
        if mask is not None:
            weights = masked_softmax(scores, mask)[0]
        else:
            weights = masked_softmax(scores)
        pooled = torch.einsum("bt,btd->bd", weights, hidden)
        return pooled, weights
