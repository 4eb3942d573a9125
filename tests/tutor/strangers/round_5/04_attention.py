# ruff: noqa
# fmt: off

# === exercise: softmax | function: softmax | kind: subtle | what is wrong: subtracts the largest score of the whole tensor, so rows far below it underflow to zeros
# told: named
# now: named
# says: one maximum for all rows
def softmax(scores: torch.Tensor) -> torch.Tensor:
    largest = scores.max()
    if torch.isinf(largest):
        largest = torch.zeros(())
    exponentials = torch.exp(scores - largest)
    total = exponentials.sum(dim=-1, keepdim=True)
    return exponentials / torch.where(total == 0, torch.ones_like(total), total)


# === exercise: worked-context | function: worked_context | kind: plain | what is wrong: all positions are counted from 1
# told: named
# now: named
# says: counted from 1
def worked_context() -> dict:
    P = torch.tensor([[1, 0, 0], [0.3, 0.7, 0], [0.1, 0.8, 0.1]])
    V = torch.tensor([[0.5, 0.2, 1.0, 0.4], [0.1, 0.2, 0.6, 0.8], [0.3, 0.2, 0.2, 1.0]])
    return {
        "context": P @ V,
        "unchanged_row": 1,
        "constant_column": 2,
        "strongest": [1, 2, 2],
    }


# === exercise: project-qkv | function: project_qkv | kind: plain | what is wrong: makes the keys from the sequence that asks
# told: named
# now: named
# says: keys from x_q
def project_qkv(
    x_q: torch.Tensor,
    x_kv: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    q = torch.matmul(x_q, w_q)
    k = torch.matmul(x_q, w_k)
    v = torch.matmul(x_kv, w_v)
    return q, k, v


# === exercise: causal-mask | function: causal_mask | kind: double | what is wrong: leaves out the diagonal AND returns floats, not booleans
# told: named
# now: named
# says: numbers in place of True and False
def causal_mask(length: int) -> torch.Tensor:
    return torch.tril(torch.ones(length, length), diagonal=-1)


# === exercise: padding-mask | function: padding_mask | kind: double | what is wrong: position <= length lets one padding token through AND the extra axis is last, (B, T, 1)
# told: named
# now: named
# says: masks queries in place of keys, and off by one
def padding_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    positions = torch.arange(max_length)
    mask = positions[None, :] <= lengths[:, None]
    return mask.unsqueeze(-1)


# === exercise: masked-softmax | function: masked_softmax | kind: subtle | what is wrong: -1e9 in place of -inf, so a row in which nothing is allowed gets uniform weights
# told: named
# now: named
# says: a large negative number in place of −∞
def masked_softmax(
    scores: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return softmax(scores)


# === exercise: masked-softmax | function: masked_softmax | kind: subtle | what is wrong: softmax over all keys, then masked and renormalised: if a forbidden score is far larger, the allowed weights underflow to zeros
# told: named
# now: named
# says: renormalised after the softmax
def masked_softmax(
    scores: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    weights = softmax(scores)
    if mask is None:
        return weights
    weights = weights * mask
    total = weights.sum(dim=-1, keepdim=True)
    return weights / torch.where(total > 0, total, 1.0)


# === exercise: scaled-dot-product-attention | function: scaled_dot_product_attention | kind: plain | what is wrong: divides by d_k, not by its root
# told: named
# now: named
# says: scaled by d_k in place of √d_k
def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    scores = torch.einsum("...qd,...kd->...qk", q, k) / k.shape[-1]
    weights = masked_softmax(scores, mask)
    return weights @ v, weights


# === exercise: scaled-dot-product-attention | function: scaled_dot_product_attention | kind: double | what is wrong: divides by the root of d_v AND reads the mask as nn.MultiheadAttention does, True = blocked
# told: named
# now: named
# says: scaled by √d_v in place of √d_k, and mask inverted
def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    d = v.size(-1)
    scores = q @ k.transpose(-1, -2) * d**-0.5
    if mask is not None:
        mask = ~mask
    weights = masked_softmax(scores, mask)
    return torch.matmul(weights, v), weights


# === exercise: attention-module | function: Attention | kind: subtle | what is wrong: w_q and w_k are made of one tensor and share their memory, so they stay equal for ever
# told: named
# now: named
# says: two parameters start with the same numbers
class Attention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        start = torch.randn(d_model, d_k) / math.sqrt(d_model)
        self.w_q = nn.Parameter(start)
        self.w_k = nn.Parameter(start)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) / math.sqrt(d_model))

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if x_kv is None:
            x_kv = x_q
        q, k, v = project_qkv(x_q, x_kv, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q, k, v, mask)


# === exercise: attention-module | function: Attention | kind: double | what is wrong: each matrix is divided by the root of its columns, not of d_model AND self-attention forgets the mask
# told: named
# now: named
# says: the mask is dropped in self-attention
class Attention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        for name, width in (("w_q", d_k), ("w_k", d_k), ("w_v", d_v)):
            matrix = torch.randn(d_model, width) / width**0.5
            setattr(self, name, nn.Parameter(matrix))

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        matrices = self.w_q, self.w_k, self.w_v
        if x_kv is None:
            return scaled_dot_product_attention(*project_qkv(x_q, x_q, *matrices))
        return scaled_dot_product_attention(*project_qkv(x_q, x_kv, *matrices), mask)


# === exercise: geometric-example | function: geometric_example | kind: plain | what is wrong: the softmax runs down the columns (dim=0)
# told: named
# now: named
# says: softmax over the wrong axis
def geometric_example(theta_q: float, theta_k: float, theta_v: float) -> dict:
    def R(t):
        return torch.tensor([[math.cos(t), -math.sin(t)], [math.sin(t), math.cos(t)]])

    x = torch.eye(2)
    q, k, v = x @ R(theta_q), x @ R(theta_k), x @ R(theta_v)
    scores = q @ k.T
    scaled = scores / math.sqrt(2)
    weights = torch.exp(scaled) / torch.exp(scaled).sum(dim=0)
    return {
        "scores": scores,
        "scaled": scaled,
        "weights": weights,
        "output": weights @ v,
        "car_to_blue": weights[1, 0].item(),
    }


# === exercise: redirect-attention | function: redirecting_angles | kind: plain | what is wrong: turns the key and not the query by a right angle, so the difference has the wrong sign
# told: named
# now: named
# says: the difference of the angles has the wrong sign
def redirecting_angles() -> tuple[float, float]:
    # the query of "car" is (0, 1); turn the key of "blue" until it points there, too
    return 0.0, math.pi / 2


# === exercise: softmax-jacobian | function: softmax_jacobian | kind: subtle | what is wrong: puts p(1-p) on the diagonal and then subtracts p·pᵀ there once more
# told: named
# now: named
# says: the diagonal subtracted twice
def softmax_jacobian(probabilities: torch.Tensor) -> torch.Tensor:
    p = probabilities
    diagonal = torch.diag_embed(p * (1 - p))
    return diagonal - p.unsqueeze(-1) * p.unsqueeze(-2)


# === exercise: additive-attention | function: AdditiveAttention | kind: double | what is wrong: takes tanh of query and key one by one before adding AND v is not divided by the root of d_hidden
# told: named
# now: named
# says: tanh of each part in place of their sum
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
        queries = torch.tanh(x_q @ self.w_q).unsqueeze(-2)
        keys = torch.tanh(x_kv @ self.w_k).unsqueeze(-3)
        scores = (queries + keys) @ self.v
        weights = masked_softmax(scores, mask)
        return weights @ x_kv, weights


# === exercise: additive-attention | function: AdditiveAttention | kind: plain | what is wrong: mixes the projected keys, (…, d_hidden), not the h_j themselves
# told: named
# now: named
# says: output from the projected keys
class AdditiveAttention(nn.Module):
    def __init__(self, d_q: int, d_k: int, d_hidden: int) -> None:
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_q, d_hidden) / d_q**0.5)
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden) / d_k**0.5)
        self.v = nn.Parameter(torch.randn(d_hidden) / d_hidden**0.5)

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        q, k = x_q @ self.w_q, x_kv @ self.w_k
        hidden = torch.tanh(q[..., :, None, :] + k[..., None, :, :])
        weights = masked_softmax(hidden @ self.v, mask)
        return weights @ k, weights


# === exercise: attention-cost | function: attention_cost, path_length | kind: subtle | what is wrong: rounds the number of convolution layers down, which is right only when kernel-1 divides length-1
# told: wrong
# now: named
# says: rounded down
def attention_cost(length: int, d_model: int) -> dict:
    projections = 4 * length * d_model * d_model
    scores = length * d_model * length
    mixing = length * length * d_model
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
        return max(1, (length - 1) // (kernel - 1))
    if kind == "attention":
        return 1
    raise ValueError(kind)


# === exercise: attention-pooling | function: AttentionPooling | kind: double | what is wrong: the query starts with a spread of 1/√d, not 0.02 AND the scores are not divided by √d
# told: named
# now: named
# says: the scores are not scaled
class AttentionPooling(nn.Module):
    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(d_model) / math.sqrt(d_model))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        scores = (hidden @ self.query)[:, None, :]
        weights = masked_softmax(scores, mask)
        return (weights @ hidden)[:, 0], weights[:, 0]
