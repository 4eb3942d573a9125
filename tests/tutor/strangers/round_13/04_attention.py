# ruff: noqa
# fmt: off

# === exercise: padding-mask | function: padding_mask | kind: plain | what is wrong: marks the LAST `length` positions as real (padding assumed on the left) instead of the first ones; shows for every sequence with 0 < length < max_length
# told: named
# now: named
# says: padding on the left
def padding_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    n_pad = max_length - lengths
    pos = torch.arange(max_length, device=lengths.device)
    return (pos[None, None, :] >= n_pad[:, None, None])


# === exercise: worked-context | function: worked_context | kind: plain | what is wrong: "strongest" is the position of the largest number in each row of the context Z, not of the weights P, so it is [2, 2, 3] instead of [0, 1, 1]
# told: shown
# now: named
# says: the strongest features in place of the strongest weights
def worked_context() -> dict:
    z = torch.tensor([
        [0.50, 0.20, 1.00, 0.40],
        [0.22, 0.20, 0.72, 0.68],
        [0.16, 0.20, 0.60, 0.78],
    ])
    answer = {}
    answer["context"] = z
    answer["unchanged_row"] = 0
    answer["constant_column"] = 1
    answer["strongest"] = z.argmax(dim=1).tolist()
    return answer


# === exercise: redirect-attention | function: redirecting_angles | kind: plain | what is wrong: the difference of 135 degrees is split as if the SUM of the angles counted (both 3π/8), so theta_q - theta_k is 0 and car attends to blue with 0.33 only
# told: shown
# now: told
# says: 'car' still attends to itself more than to 'blue'
def redirecting_angles() -> tuple[float, float]:
    # the best is 135 degrees, half of it for the query, half for the key
    delta = 3 * math.pi / 4
    return delta / 2, delta / 2


# === exercise: additive-attention | function: AdditiveAttention | kind: plain | what is wrong: tanh is taken of the projected query and of the projected key separately and the results are added, in place of tanh of their sum; shows on nearly all inputs, the weights no longer depend on the query
# told: named
# now: named
# says: tanh of each part in place of their sum
class AdditiveAttention(nn.Module):
    def __init__(self, d_q: int, d_k: int, d_hidden: int) -> None:
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_q, d_hidden) / math.sqrt(d_q))
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden) / math.sqrt(d_k))
        self.v = nn.Parameter(torch.randn(d_hidden) / math.sqrt(d_hidden))

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        queries = torch.tanh(x_q @ self.w_q)
        keys = torch.tanh(x_kv @ self.w_k)
        hidden = queries.unsqueeze(-2) + keys.unsqueeze(-3)
        scores = hidden @ self.v
        weights = masked_softmax(scores, mask)
        return weights @ x_kv, weights


# === exercise: project-qkv | function: project_qkv | kind: plain | what is wrong: copy and paste, the keys are made with w_q in place of w_k; shows whenever w_q and w_k differ
# told: named
# now: named
# says: w_q used for the keys, too
def project_qkv(
    x_q: torch.Tensor,
    x_kv: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    q = torch.matmul(x_q, w_q)
    k = torch.matmul(x_kv, w_q)
    v = torch.matmul(x_kv, w_v)
    return q, k, v


# === exercise: softmax | function: softmax | kind: subtle | what is wrong: the row's maximum is clamped to at least 0 (to get rid of -inf), so a row whose scores are all very negative (below about -100 in float32) underflows to zeros or loses precision instead of summing to 1
# told: named
# now: named
# says: the maximum is taken to be at least 0
def softmax(scores: torch.Tensor) -> torch.Tensor:
    # clamp turns the maximum -inf of an empty row into 0
    top = scores.amax(dim=-1, keepdim=True).clamp(min=0)
    e = (scores - top).exp()
    total = e.sum(dim=-1, keepdim=True)
    return e / total.masked_fill(total == 0, 1.0)


# === exercise: masked-softmax | function: masked_softmax | kind: subtle | what is wrong: forbidden scores are replaced by -100 rather than -inf and their weights multiplied away after the softmax, so rows whose allowed scores lie themselves around or below -90 do not sum to 1 over the allowed keys
# told: wrong
# now: wrong
# says: renormalised after the softmax
def masked_softmax(
    scores: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    if mask is None:
        return softmax(scores)
    # e^-100 is nothing, and the product makes it exactly nothing (empty rows, too)
    low = torch.full_like(scores, -100.0)
    return softmax(torch.where(mask, scores, low)) * mask


# === exercise: scaled-dot-product-attention | function: scaled_dot_product_attention | kind: subtle | what is wrong: math.isqrt rounds the root of d_k down to an integer, so the scores are wrong for every d_k that is not a square number (right for 1, 4, 16, 64)
# told: named
# now: named
# says: the root is cut down to a whole number
def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    root = math.isqrt(q.shape[-1])
    weights = masked_softmax(torch.einsum("...id,...jd->...ij", q, k) / root, mask)
    return torch.einsum("...ij,...je->...ie", weights, v), weights


# === exercise: attention-module | function: Attention | kind: subtle | what is wrong: self-attention is recognised by equal shapes, too, so in cross-attention between two different sequences of the same shape x_kv is ignored and x_q attends to itself
# told: named
# now: named
# says: x_kv is ignored
class Attention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        std = d_model ** -0.5
        self.w_q = nn.Parameter(torch.randn(d_model, d_k) * std)
        self.w_k = nn.Parameter(torch.randn(d_model, d_k) * std)
        self.w_v = nn.Parameter(torch.randn(d_model, d_v) * std)

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        is_self = x_kv is None or x_kv.shape == x_q.shape
        source = x_q if is_self else x_kv
        qkv = project_qkv(x_q, source, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(*qkv, mask=mask)


# === exercise: softmax-jacobian | function: softmax_jacobian | kind: subtle | what is wrong: all leading axes are flattened to one and never restored, and an axis of size 1 is squeezed away; right for (n,) and (B, n) with B > 1, wrong shape for (A, B, n) and for (1, n)
# told: named
# now: named
# says: only works with one batch axis
def softmax_jacobian(probabilities: torch.Tensor) -> torch.Tensor:
    n = probabilities.shape[-1]
    p = probabilities.reshape(-1, n)
    outer = torch.einsum("bi,bj->bij", p, p)
    jac = torch.diag_embed(p) - outer
    return jac.squeeze(0)


# === exercise: geometric-example | function: geometric_example | kind: subtle | what is wrong: the scores are divided in place (div_), so "scores" and "scaled" are the same tensor and "scores" holds the scaled numbers; shows at all angles, while the other entries are right
# told: told
# now: named
# says: the scores are divided in place
def geometric_example(theta_q: float, theta_k: float, theta_v: float) -> dict:
    def rotation(angle):
        c, s = math.cos(angle), math.sin(angle)
        return torch.tensor([[c, -s], [s, c]])

    x = torch.eye(2)
    q, k, v = (x @ rotation(a) for a in (theta_q, theta_k, theta_v))
    scores = q @ k.T
    scaled = scores.div_(math.sqrt(2))
    weights = softmax(scaled)
    output = weights @ v
    return {
        "scores": scores,
        "scaled": scaled,
        "weights": weights,
        "output": output,
        "car_to_blue": weights[1, 0].item(),
    }


# === exercise: attention-cost | function: attention_cost, path_length | kind: subtle | what is wrong: the layers of a convolution are length // (kernel - 1), at least 1, which agrees with rounding (length - 1) / (kernel - 1) up for a kernel of 3 only; for kernel 2 it is always one too many, for kernels from 4 on often one too few, for example length 6 and kernel 5
# told: named
# now: named
# says: the view starts from nothing, and rounded down
def attention_cost(length: int, d_model: int) -> dict:
    T, d = length, d_model
    projections = 4 * T * d * d
    scores = T * d * T
    mixing = T * T * d
    share = (scores + mixing) / (projections + scores + mixing)
    return dict(
        projections=projections, scores=scores, mixing=mixing, quadratic_share=share
    )


def path_length(kind: str, length: int, kernel: int = 3) -> int:
    if kind == "attention":
        return 1
    if kind == "recurrent":
        return length
    if kind == "convolution":
        # 10 tokens, kernel 3: 10 // 2 = 5
        return max(1, length // (kernel - 1))
    raise ValueError(f"unknown kind {kind!r}")


# === exercise: padding-mask | function: padding_mask | kind: double | what is wrong: first: the width is that of the longest sequence (lengths.max()) and max_length is ignored, shows when no sequence fills the batch; second: lengths are clamped to at least 1, so an empty sequence gets one real token
# told: named
# now: named
# says: an empty sequence keeps a token, and the longest length in place of max_length
def padding_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    lengths = lengths.clamp(min=1)  # there has to be something to look at
    longest = int(lengths.max())
    rows = []
    for n in lengths.tolist():
        rows.append([[True] * n + [False] * (longest - n)])
    return torch.tensor(rows, dtype=torch.bool)


# === exercise: masked-softmax | function: masked_softmax | kind: double | what is wrong: first: the scores are divided by the root of their last size T_k before the softmax, which nobody asked for here (shows for every T_k > 1 with unequal scores); second: a row in which nothing is allowed gets the ordinary softmax of its scores instead of zeros
# told: told
# now: told
# line: 4
def masked_softmax(
    scores: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    s = scores / math.sqrt(scores.size(-1))
    if mask is not None:
        nothing = ~mask.any(dim=-1, keepdim=True)
        allowed = mask | nothing
        s = torch.where(allowed, s, -math.inf)
    return softmax(s)


# === exercise: scaled-dot-product-attention | function: scaled_dot_product_attention | kind: double | what is wrong: first: queries and keys are both divided by the root of d_k, so the scores are divided by d_k (shows for d_k > 1); second: the mask is used for the output only, the weights that are returned are computed without it (shows with any mask that forbids something)
# told: named
# now: named
# says: scaled by d_k in place of √d_k, and the weights without the mask are returned
def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    d_k = q.size(-1)
    q, k = q / math.sqrt(d_k), k / math.sqrt(d_k)
    scores = q @ k.transpose(-2, -1)
    weights = masked_softmax(scores)
    if mask is None:
        output = weights @ v
    else:
        output = masked_softmax(scores, mask) @ v
    return output, weights


# === exercise: additive-attention | function: AdditiveAttention | kind: double | what is wrong: first: the scores are divided by the root of d_hidden as in scaled dot-product attention (shows for d_hidden > 1); second: v is drawn with a standard deviation of 1/√d_k instead of 1/√d_hidden (shows in the initial values where d_k and d_hidden differ)
# told: named
# now: named
# says: scaled as a dot product
class AdditiveAttention(nn.Module):
    def __init__(self, d_q: int, d_k: int, d_hidden: int) -> None:
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_q, d_hidden) / d_q**0.5)
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden) / d_k**0.5)
        self.v = nn.Parameter(torch.randn(d_hidden) / d_k**0.5)

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        qh = (x_q @ self.w_q)[..., :, None, :]
        kh = (x_kv @ self.w_k)[..., None, :, :]
        e = (torch.tanh(qh + kh) * self.v).sum(-1) / math.sqrt(self.v.numel())
        alpha = masked_softmax(e, mask)
        c = alpha @ x_kv
        return c, alpha


# === exercise: attention-cost | function: attention_cost, path_length | kind: double | what is wrong: first: "quadratic_share" counts only the scores in the numerator and forgets the mixing, so it is half of what it should be on all inputs; second: path_length treats every unknown kind as attention and returns 1 instead of raising a ValueError
# told: named
# now: named
# says: the mixing is left out of the share
def attention_cost(length: int, d_model: int) -> dict:
    def product(n, m, l):
        return n * m * l

    cost = {
        "projections": 4 * product(length, d_model, d_model),
        "scores": product(length, d_model, length),
        "mixing": product(length, length, d_model),
    }
    cost["quadratic_share"] = cost["scores"] / sum(cost.values())
    return cost


def path_length(kind: str, length: int, kernel: int = 3) -> int:
    if kind == "recurrent":
        return length
    elif kind == "convolution":
        layers, view = 1, kernel
        while view < length:
            layers += 1
            view += kernel - 1
        return layers
    else:
        return 1


# === exercise: attention-pooling | function: AttentionPooling | kind: double | what is wrong: first: the scores are divided by the root of the number of tokens T (hidden.shape[1]) instead of √d, shows where T and d differ; second: the query is drawn uniformly from 0 to 0.02 (torch.rand), all positive and with a standard deviation of 0.006, instead of normally with 0.02
# told: named
# now: named
# says: divided by the root of the number of tokens
class AttentionPooling(nn.Module):
    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query = nn.Parameter(0.02 * torch.rand(d_model))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        scores = hidden.matmul(self.query) / math.sqrt(hidden.shape[1])
        if mask is not None:
            mask = mask[:, 0, :]
        w = masked_softmax(scores, mask)
        pooled = torch.einsum("bt,btd->bd", w, hidden)
        return pooled, w
