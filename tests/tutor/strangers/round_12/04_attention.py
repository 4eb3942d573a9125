# ruff: noqa
# fmt: off

# === exercise: softmax | function: softmax | kind: plain | what is wrong: the exponentials are divided by their Euclidean norm (root of the sum of squares) and not by their sum, so rows with more than one finite score sum to more than 1
# told: told
# now: named
# says: divided by the root of the sum of squares
def softmax(scores: torch.Tensor) -> torch.Tensor:
    largest = scores.amax(dim=-1, keepdim=True)
    largest = largest.masked_fill(largest == -math.inf, 0.0)
    exponentials = torch.exp(scores - largest)
    return nn.functional.normalize(exponentials, p=2, dim=-1)


# === exercise: project-qkv | function: project_qkv | kind: plain | what is wrong: the queries are already divided by the root of d_k here, so q is too small whenever d_k > 1 (k and v are right)
# told: named
# now: named
# says: queries scaled already
def project_qkv(
    x_q: torch.Tensor,
    x_kv: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    d_k = w_k.shape[1]
    q = torch.einsum("...td,dk->...tk", x_q, w_q) / math.sqrt(d_k)
    k = torch.einsum("...td,dk->...tk", x_kv, w_k)
    v = torch.einsum("...td,dk->...tk", x_kv, w_v)
    return q, k, v


# === exercise: redirect-attention | function: redirecting_angles | kind: plain | what is wrong: the SUM of the two angles is made 3π/4 in place of their difference; the angles are equal, their difference is 0 and car attends to blue with 0.33 only
# told: shown
# now: told
# says: 'car' still attends to itself more than to 'blue'
def redirecting_angles() -> tuple[float, float]:
    best = 3 * math.pi / 4  # sin(best) - cos(best) is largest here
    half = best / 2
    return half, best - half


# === exercise: softmax-jacobian | function: softmax_jacobian | kind: plain | what is wrong: gives 1 - p_j on the diagonal and -p_j elsewhere, the Jacobian of log-softmax: the factor p_i is missing from every row, on all inputs
# told: shown
# now: named
# says: a factor p is missing
def softmax_jacobian(probabilities: torch.Tensor) -> torch.Tensor:
    n = probabilities.size(-1)
    kronecker = torch.eye(n, dtype=probabilities.dtype)
    return kronecker - probabilities.unsqueeze(-2)


# === exercise: scaled-dot-product-attention | function: scaled_dot_product_attention | kind: plain | what is wrong: the second thing returned is the scaled scores (before mask and softmax) in place of the weights; the output is right
# told: named
# now: named
# says: scores returned in place of weights
def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    attention = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(k.size(-1))
    context = torch.matmul(masked_softmax(attention, mask), v)
    return context, attention


# === exercise: softmax | function: softmax | kind: subtle | what is wrong: the row maximum is clamped to at least 0 (to get rid of -inf), so rows whose largest score is very negative are not lifted: below about -104 (float32) all exponentials underflow and the row becomes zeros in place of weights, shortly above that it loses precision
# told: wrong
# now: named
# says: the maximum is taken to be at least 0
def softmax(scores: torch.Tensor) -> torch.Tensor:
    top = scores.amax(-1, keepdim=True).clamp(min=0)  # -inf becomes 0
    e = (scores - top).exp()
    total = e.sum(-1, keepdim=True)
    return e / torch.where(total == 0, torch.ones_like(total), total)


# === exercise: masked-softmax | function: masked_softmax | kind: subtle | what is wrong: softmax over all keys first, then hidden weights are set to 0 and the rest renormalised with a floor of 1e-9: right for ordinary scores, but where a hidden score exceeds the allowed ones by more than about 20 the row sums to less than 1 (by more than about 104 in float32: all zeros)
# told: named
# now: named
# says: renormalised after the softmax
def masked_softmax(
    scores: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    weights = softmax(scores)
    if mask is None:
        return weights
    kept = weights * mask
    return kept / kept.sum(dim=-1, keepdim=True).clamp(min=1e-9)


# === exercise: padding-mask | function: padding_mask | kind: subtle | what is wrong: the first padding position is marked by a one-hot vector whose index is cut to T-1 so that it exists; a sentence of full length (length == max_length) therefore loses its last real token
# told: shown
# now: named
# says: a full sequence loses its last token
def padding_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    first_pad = lengths.long().clamp(max=max_length - 1)
    marks = nn.functional.one_hot(first_pad, num_classes=max_length)  # (B, T)
    # 0 before the mark, 1 from it on
    is_padding = marks.cumsum(dim=-1).bool()
    return ~is_padding.unsqueeze(1)


# === exercise: attention-module | function: Attention | kind: subtle | what is wrong: w_q and w_k are two parameters on ONE storage (both wrap the same random tensor): they are equal at the start (symmetric scores in self-attention), and loading a state dict with, or stepping on, one of them changes the other
# told: named
# now: named
# says: two parameters start with the same numbers
class Attention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        std = d_model**-0.5
        start = torch.randn(d_model, d_k) * std
        self.w_q = nn.Parameter(start)
        self.w_k = nn.Parameter(start)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) * std)

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        source = x_q if x_kv is None else x_kv
        qkv = project_qkv(x_q, source, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(*qkv, mask=mask)


# === exercise: attention-pooling | function: AttentionPooling | kind: subtle | what is wrong: mask.squeeze() takes away every axis of size 1, so for sequences of one token (T = 1, B > 1) the mask becomes (B,), meets the scores (B, 1) and the weights get the shape (B, B), with pooled vectors mixed up accordingly
# told: named
# now: named
# says: squeeze takes the axis of the tokens away
class AttentionPooling(nn.Module):
    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query = nn.Parameter(0.02 * torch.randn(d_model))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if mask is not None:
            mask = mask.squeeze()
        scores = hidden @ self.query / math.sqrt(hidden.shape[-1])
        weights = masked_softmax(scores, mask)
        pooled = (weights.unsqueeze(-1) * hidden).sum(dim=1)
        return pooled, weights


# === exercise: attention-cost | function: attention_cost, path_length | kind: subtle | what is wrong: convolution layers are counted as length // (kernel - 1) in place of the ceiling of (length - 1) / (kernel - 1): always right for kernel 3, wrong for others, e.g. 5 tokens with kernel 4 give 1 (not 2), 10 tokens with kernel 2 give 10 (not 9), 3 tokens with kernel 5 give 0 (not 1)
# told: shown
# now: named
# says: the view starts from nothing, and rounded down
def attention_cost(length: int, d_model: int) -> dict:
    projections = 4 * length * d_model**2
    scores = mixing = length**2 * d_model
    return {
        "projections": projections,
        "scores": scores,
        "mixing": mixing,
        "quadratic_share": (scores + mixing) / (projections + scores + mixing),
    }


def path_length(kind: str, length: int, kernel: int = 3) -> int:
    match kind:
        case "recurrent":
            return length
        case "convolution":
            return length // (kernel - 1)
        case "attention":
            return 1
    raise ValueError(f"unknown kind: {kind}")


# === exercise: geometric-example | function: geometric_example | kind: subtle | what is wrong: "car_to_blue" is the smaller weight of car's row in place of weights[1, 0]: the same for the book's angles, wrong whenever car attends to blue more than to itself (sin(θ_Q - θ_K) > cos(θ_Q - θ_K))
# told: shown
# now: named
# says: the smallest weight in place of the entry [1, 0]
def geometric_example(theta_q: float, theta_k: float, theta_v: float) -> dict:
    def rotation(angle):
        c, s = math.cos(angle), math.sin(angle)
        return torch.tensor([[c, -s], [s, c]])

    x = torch.eye(2)
    q, k, v = (x @ rotation(a) for a in (theta_q, theta_k, theta_v))
    scores = q @ k.T
    scaled = scores / 2**0.5
    weights = softmax(scaled)
    to_blue, to_car = sorted(weights[1].tolist())  # car looks more at itself
    return {
        "scores": scores,
        "scaled": scaled,
        "weights": weights,
        "output": weights @ v,
        "car_to_blue": to_blue,
    }


# === exercise: masked-softmax | function: masked_softmax | kind: double | what is wrong: first, hidden scores are replaced by the row's minimum minus 10 and not by -inf, so hidden keys get small weights above 0 and a row in which nothing is allowed gets equal weights; second, mask=None is taken as a causal mask (lower triangle) in place of allowing everything
# told: wrong
# now: named
# says: mask=None is taken for a causal mask, and a large negative number in place of −∞
def masked_softmax(
    scores: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    if mask is None:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    far_below = scores.amin(dim=-1, keepdim=True) - 10.0
    return softmax(torch.where(mask, scores, far_below))


# === exercise: scaled-dot-product-attention | function: scaled_dot_product_attention | kind: double | what is wrong: first, the divisor is the whole-number root math.isqrt(d_k), right only where d_k is a square (d_k = 3 divides by 1, 5 by 2); second, of a mask with a batch axis only the first sentence's mask is used, for all sentences of the batch
# told: told
# now: named
# says: the root is cut down to a whole number, and the mask of one sequence for the whole batch
def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    if mask is not None and mask.ndim > 2:
        mask = mask[0]  # the same mask for the whole batch
    scores = q @ k.mT
    scores = scores / math.isqrt(q.shape[-1])
    p = masked_softmax(scores, mask)
    return p @ v, p


# === exercise: attention-module | function: Attention | kind: double | what is wrong: first, the parameters are drawn with torch.rand (uniform in 0..1, all positive, mean 0.5/√d) in place of a normal distribution; second, the mask is used in self-attention only: with x_kv given it is silently dropped
# told: named
# now: named
# says: mask dropped for cross-attention
class Attention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        for name, width in (("w_q", d_k), ("w_k", d_k), ("w_v", d_v)):
            matrix = torch.rand(d_model, width) / math.sqrt(d_model)
            self.register_parameter(name, nn.Parameter(matrix))

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if x_kv is None:
            q, k, v = project_qkv(x_q, x_q, self.w_q, self.w_k, self.w_v)
            return scaled_dot_product_attention(q, k, v, mask)
        q, k, v = project_qkv(x_q, x_kv, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q, k, v)


# === exercise: additive-attention | function: AdditiveAttention | kind: double | what is wrong: first, -inf is put into the hidden vectors before the tanh, which makes -1 of it, so a masked key gets the ordinary score -sum(v) and a weight above 0; second, w_k is divided by √d_q in place of √d_k, so its standard deviation is wrong whenever d_q and d_k differ
# told: told
# now: named
# says: the mask is put in before tanh
class AdditiveAttention(nn.Module):
    def __init__(self, d_q: int, d_k: int, d_hidden: int) -> None:
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_q, d_hidden) / d_q**0.5)
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden) / d_q**0.5)
        self.v = nn.Parameter(torch.randn(d_hidden) / d_hidden**0.5)

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        s = (x_q @ self.w_q)[..., :, None, :]
        h = (x_kv @ self.w_k)[..., None, :, :]
        pairs = s + h  # (..., T_q, T_k, hidden)
        if mask is not None:
            pairs = pairs.masked_fill(~mask[..., None], float("-inf"))
        e = pairs.tanh() @ self.v
        alpha = masked_softmax(e)
        return alpha @ x_kv, alpha


# === exercise: attention-cost | function: attention_cost, path_length | kind: double | what is wrong: first, "quadratic_share" is the ratio of scores and mixing to the projections and not their part of the whole (0.25 in place of 0.2 by hand, above 1 for long sequences); second, for an unknown kind path_length returns a ValueError object in place of raising it
# told: named
# now: named
# says: a ratio in place of a share
def attention_cost(length: int, d_model: int) -> dict:
    def product(n, m, l):
        return n * m * l

    cost = {
        "projections": sum(product(length, d_model, d_model) for _ in "QKVO"),
        "scores": product(length, d_model, length),
        "mixing": product(length, length, d_model),
    }
    cost["quadratic_share"] = (cost["scores"] + cost["mixing"]) / cost["projections"]
    return cost


def path_length(kind: str, length: int, kernel: int = 3) -> int:
    if kind == "recurrent":
        return length
    elif kind == "convolution":
        layers, view = 0, 1
        while view < length:
            view += kernel - 1
            layers += 1
        return layers
    elif kind == "attention":
        return 1
    else:
        return ValueError("kind must be recurrent, convolution or attention")


# === exercise: attention-pooling | function: AttentionPooling | kind: double | what is wrong: first, the scores are divided by the root of the number of tokens T in place of √d, wrong whenever T and d differ; second, the query is drawn with the standard deviation 0.02² = 0.0004 (0.02 squared as if a variance were asked for) in place of 0.02
# told: named
# now: named
# says: divided by the root of the number of tokens
class AttentionPooling(nn.Module):
    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.empty(d_model))
        nn.init.normal_(self.query, mean=0.0, std=0.02**2)

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        n = hidden.size(1)
        scores = torch.einsum("btd,d->bt", hidden, self.query) / n**0.5
        allowed = None if mask is None else mask[:, 0, :]
        weights = masked_softmax(scores, allowed)
        return torch.einsum("bt,btd->bd", weights, hidden), weights
