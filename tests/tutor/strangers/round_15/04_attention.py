# ruff: noqa
# fmt: off

# === exercise: softmax | function: softmax | kind: plain | what is wrong: rows that hold at least one -inf (any) are set to zero, where only rows of nothing but -inf (all) should be: (0, -inf, 0) gives (0, 0, 0) in place of (0.5, 0, 0.5)
# told: named
# now: named
# says: a row with any −∞ is taken for an empty one
def softmax(scores: torch.Tensor) -> torch.Tensor:
    largest = scores.amax(dim=-1, keepdim=True)
    largest = largest.masked_fill(largest == -math.inf, 0.0)
    exponentials = torch.exp(scores - largest)
    total = exponentials.sum(dim=-1, keepdim=True)
    total = total.masked_fill(total == 0, 1.0)
    weights = exponentials / total
    # rows with "never" in them get nothing but zeros
    never = torch.isneginf(scores).any(dim=-1, keepdim=True)
    return weights.masked_fill(never, 0.0)


# === exercise: softmax | function: softmax | kind: subtle | what is wrong: the maximum is clamped at 0 to get rid of -inf, so a row whose scores are all far below 0 (such as -1000, -999) is not shifted by its largest score, underflows and comes out as zeros
# told: named
# now: named
# says: the maximum is taken to be at least 0
def softmax(scores: torch.Tensor) -> torch.Tensor:
    # clamp(min=0) turns the -inf of an empty row into 0
    top = scores.amax(-1, keepdim=True).clamp(min=0.0)
    e = (scores - top).exp()
    z = e.sum(-1, keepdim=True)
    return e / torch.where(z == 0, torch.ones_like(z), z)


# === exercise: softmax | function: softmax | kind: double | what is wrong: the largest score is not subtracted, so exp overflows and scores around 1000 give NaN; the sum runs along dim=1 in place of the last axis, so one row (1-D) raises an IndexError and a 3-D tensor is normalised along the wrong axis
# told: named
# now: named
# says: softmax over the wrong axis
def softmax(scores: torch.Tensor) -> torch.Tensor:
    exps = torch.exp(scores)
    denominator = exps.sum(dim=1, keepdim=True)
    # rows of only -inf: 0 / 1 instead of 0 / 0
    denominator = torch.where(denominator == 0, 1.0, denominator)
    return exps / denominator


# === exercise: worked-context | function: worked_context | kind: plain | what is wrong: "strongest" is the argmax along the rows of the context (which feature is largest), [2, 2, 3], in place of the argmax along the rows of the weights, [0, 1, 1]
# told: told
# now: named
# says: the strongest features in place of the strongest weights
def worked_context() -> dict:
    P = torch.tensor([[1.0, 0.0, 0.0], [0.3, 0.7, 0.0], [0.1, 0.8, 0.1]])
    V = torch.tensor(
        [[0.5, 0.2, 1.0, 0.4], [0.1, 0.2, 0.6, 0.8], [0.3, 0.2, 0.2, 1.0]]
    )
    Z = P @ V
    return {
        "context": Z,
        "unchanged_row": 0,
        "constant_column": 1,
        "strongest": Z.argmax(dim=1).tolist(),
    }


# === exercise: worked-context | function: worked_context | kind: double | what is wrong: "unchanged_row" and "constant_column" are counted from 1 (1 and 2 in place of 0 and 1); "strongest" holds the largest weights themselves (1.0, 0.7, 0.8) in place of their positions
# told: named
# now: named
# says: counted from 1
def worked_context() -> dict:
    # berries: 1 * V[0]
    # ripen:   0.3 * V[0] + 0.7 * V[1]
    # slowly:  0.1 * V[0] + 0.8 * V[1] + 0.1 * V[2]
    context = torch.tensor(
        [
            [0.50, 0.20, 1.00, 0.40],
            [0.22, 0.20, 0.72, 0.68],
            [0.16, 0.20, 0.60, 0.78],
        ]
    )
    return dict(
        context=context,
        unchanged_row=1,  # the first row
        constant_column=2,  # the second column, 0.2 everywhere
        strongest=[1.0, 0.7, 0.8],
    )


# === exercise: project-qkv | function: project_qkv | kind: plain | what is wrong: the results are returned in the order query, value, key (as Keras orders them) in place of query, key, value
# told: wrong
# now: named
# says: returned in another order
def project_qkv(
    x_q: torch.Tensor,
    x_kv: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    query = torch.matmul(x_q, w_q)
    value = torch.matmul(x_kv, w_v)
    key = torch.matmul(x_kv, w_k)
    return query, value, key


# === exercise: project-qkv | function: project_qkv | kind: subtle | what is wrong: keys and values are made in one product and cut with chunk(2) into halves of (nearly) equal width, so whenever d_v differs from d_k (except d_v = d_k - 1) columns of the one end up in the other and the widths are wrong
# told: named
# now: named
# says: keys and values cut in the middle
def project_qkv(
    x_q: torch.Tensor,
    x_kv: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    q = x_q @ w_q
    # one big product is faster than two small ones
    w_kv = torch.cat((w_k, w_v), dim=-1)
    k, v = (x_kv @ w_kv).chunk(2, dim=-1)
    return q, k, v


# === exercise: project-qkv | function: project_qkv | kind: double | what is wrong: the queries are already divided by the root of d_k, which is no part of the projection; the values are made from x_q in place of x_kv
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

    scale = w_q.shape[-1] ** -0.5
    q = project(x_q, w_q) * scale
    k = project(x_kv, w_k)
    v = project(x_q, w_v)
    return q, k, v


# === exercise: causal-mask | function: causal_mask | kind: plain | what is wrong: two extra axes for batch and heads are put in front: the shape is (1, 1, T, T) in place of (T, T)
# told: told
# now: named
# says: axes of batch and heads in front
def causal_mask(length: int) -> torch.Tensor:
    tril = torch.tril(torch.ones(length, length, dtype=torch.bool))
    # broadcast over batch and heads
    return tril.view(1, 1, length, length)


# === exercise: causal-mask | function: causal_mask | kind: subtle | what is wrong: the slice [:-ahead] is empty when nothing lies ahead (-0 is 0), so the last row of the mask is False everywhere in place of True everywhere, and for T = 1 the only entry is False
# told: wrong
# now: named
# says: the last row is hidden by a slice of -0
def causal_mask(length: int) -> torch.Tensor:
    mask = torch.zeros((length, length), dtype=torch.bool)
    for i in range(length):
        ahead = length - 1 - i  # this many positions lie in the future of i
        mask[i, :-ahead] = True
    return mask


# === exercise: padding-mask | function: padding_mask | kind: plain | what is wrong: the axis of size 1 is at the end, (B, T, 1) in place of (B, 1, T), so the padding queries are hidden and not the padding keys
# told: named
# now: named
# says: masks queries in place of keys
def padding_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    positions = torch.arange(max_length, device=lengths.device)
    real = positions < lengths[:, None]  # (B, T)
    return real.unsqueeze(-1)


# === exercise: padding-mask | function: padding_mask | kind: subtle | what is wrong: the last real token is marked at index lengths - 1, which for a length of 0 is -1, the last position, so a sequence without real tokens comes out as True everywhere in place of False everywhere
# told: shown
# now: named
# says: an empty sequence is taken for a full one
def padding_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    batch = lengths.shape[0]
    last = torch.zeros(batch, max_length, dtype=torch.long, device=lengths.device)
    rows = torch.arange(batch, device=lengths.device)
    last[rows, lengths.long() - 1] = 1
    # a running sum from the right: 1 up to the last real token, 0 behind it
    real = last.flip(-1).cumsum(dim=-1).flip(-1) > 0
    return real[:, None, :]


# === exercise: padding-mask | function: padding_mask | kind: double | what is wrong: True stands for padding in place of real tokens (the convention of key_padding_mask in nn.MultiheadAttention); the shape is (B, 1, 1, T), with an axis for heads, in place of (B, 1, T)
# told: named
# now: named
# says: one axis too many, and mask inverted
def padding_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    steps = torch.arange(max_length, device=lengths.device).unsqueeze(0)
    key_padding = steps >= lengths.unsqueeze(1)
    return key_padding[:, None, None, :]


# === exercise: masked-softmax | function: masked_softmax | kind: plain | what is wrong: forbidden scores are replaced by 1e-9 (a slip for -1e9, and -inf is wanted), which is an ordinary score of about 0, so forbidden keys get weight
# told: told
# now: named
# says: a hidden score becomes 0, not −∞
def masked_softmax(
    scores: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    if mask is not None:
        scores = scores.masked_fill(mask == 0, 1e-9)
    return softmax(scores)


# === exercise: masked-softmax | function: masked_softmax | kind: subtle | what is wrong: the softmax is taken over all keys, then masked and renormalised, so where a forbidden score is far above the allowed ones (0, 0, 200 with the last forbidden) the allowed weights underflow to 0 and the row comes out as zeros in place of summing to 1
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
    total = kept.sum(dim=-1, keepdim=True)
    # the allowed ones share the rest; an empty row stays zero
    total = torch.where(total > 0, total, torch.ones_like(total))
    return kept / total


# === exercise: masked-softmax | function: masked_softmax | kind: double | what is wrong: masked_fill_ writes into the scores of the caller; the lowest finite number stands in place of -inf, so a row in which nothing is allowed gets equal weights in place of zeros
# told: named
# now: named
# says: changes its argument in place
def masked_softmax(
    scores: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    if mask is None:
        return softmax(scores)
    lowest = torch.finfo(scores.dtype).min
    scores.masked_fill_(~mask, lowest)
    return softmax(scores)


# === exercise: scaled-dot-product-attention | function: scaled_dot_product_attention | kind: plain | what is wrong: the width is read off the keys after they were transposed, so the scores are divided by the root of T_k, the number of keys, in place of the root of d_k
# told: named
# now: named
# says: scaled by the number of keys
def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    k = k.transpose(-2, -1)
    d_k = k.size(-1)
    scores = torch.matmul(q, k) / math.sqrt(d_k)
    p_attn = masked_softmax(scores, mask)
    return torch.matmul(p_attn, v), p_attn


# === exercise: scaled-dot-product-attention | function: scaled_dot_product_attention | kind: subtle | what is wrong: math.isqrt rounds the root down to an integer, so the divisor is right only where d_k is a square number (4, 9, 16) and too small otherwise (2 in place of 2.236 for d_k = 5)
# told: named
# now: named
# says: the root is cut down to a whole number
def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    divisor = math.isqrt(q.shape[-1])
    scores = (q @ k.mT) / divisor
    weights = masked_softmax(scores, mask)
    output = weights @ v
    return output, weights


# === exercise: scaled-dot-product-attention | function: scaled_dot_product_attention | kind: double | what is wrong: the scores are divided by d_k in place of its root; the second result is the scaled scores before mask and softmax in place of the weights
# told: named
# now: named
# says: scaled by d_k in place of √d_k, and scores returned in place of weights
def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    d_k = k.shape[-1]
    attention = torch.einsum("...id,...jd->...ij", q, k) / d_k
    mixed = torch.einsum("...ij,...je->...ie", masked_softmax(attention, mask), v)
    return mixed, attention


# === exercise: attention-module | function: Attention | kind: plain | what is wrong: `x_kv or x_q` asks a whole tensor for its truth value, so cross-attention raises a RuntimeError (Boolean value of Tensor is ambiguous) and only self-attention works
# told: named
# now: named
class Attention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        std = 1 / math.sqrt(d_model)
        self.w_q = nn.Parameter(std * torch.randn(d_model, d_k))
        self.w_k = nn.Parameter(std * torch.randn(d_model, d_k))
        self.w_v = nn.Parameter(std * torch.randn(d_model, d_v))

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        source = x_kv or x_q
        q, k, v = project_qkv(x_q, source, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(q, k, v, mask)


# === exercise: attention-module | function: Attention | kind: subtle | what is wrong: w_q and w_k are two parameters made from one and the same tensor, they share its memory: they are equal at the start, a change of one (a training step, load_state_dict) changes the other, and the scores of self-attention are symmetric
# told: named
# now: named
# says: two parameters start with the same numbers
class Attention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        # queries and keys have the same shape and the same distribution
        w_qk = torch.randn(d_model, d_k) / math.sqrt(d_model)
        w_v = torch.randn(d_model, d_v) / math.sqrt(d_model)
        self.w_q = nn.Parameter(w_qk)
        self.w_k = nn.Parameter(w_qk)
        self.w_v = nn.Parameter(w_v)

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if x_kv is None:
            x_kv = x_q
        qkv = project_qkv(x_q, x_kv, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(*qkv, mask=mask)


# === exercise: attention-module | function: Attention | kind: double | what is wrong: the parameters are drawn with torch.rand, uniform in [0, 1) and never negative, in place of the normal distribution of torch.randn; the mask is not passed on to the attention, so it has no effect
# told: named
# now: named
# says: mask ignored
class Attention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        for name, width in (("w_q", d_k), ("w_k", d_k), ("w_v", d_v)):
            matrix = torch.rand(d_model, width) / d_model**0.5
            self.register_parameter(name, nn.Parameter(matrix))

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        x_kv = x_q if x_kv is None else x_kv
        q, k, v = project_qkv(x_q, x_kv, self.w_q, self.w_k, self.w_v)
        output, weights = scaled_dot_product_attention(q, k, v)
        return output, weights


# === exercise: geometric-example | function: geometric_example | kind: plain | what is wrong: the weights are the softmax of the unscaled scores, so "weights", "output" and "car_to_blue" are too sharp (only "scaled" is divided by the root of 2)
# told: named
# now: named
# says: softmax of the unscaled scores
def geometric_example(theta_q: float, theta_k: float, theta_v: float) -> dict:
    def rotation(angle):
        c, s = math.cos(angle), math.sin(angle)
        return torch.tensor([[c, -s], [s, c]])

    x = torch.eye(2)
    q = x @ rotation(theta_q)
    k = x @ rotation(theta_k)
    v = x @ rotation(theta_v)

    scores = q @ k.T
    scaled = scores / math.sqrt(2)
    weights = softmax(scores)
    output = weights @ v
    return {
        "scores": scores,
        "scaled": scaled,
        "weights": weights,
        "output": output,
        "car_to_blue": weights[1, 0].item(),
    }


# === exercise: geometric-example | function: geometric_example | kind: double | what is wrong: the scores are divided by d_k = 2 in place of its root; "car_to_blue" is weights[0, 1], the weight with which blue attends to car, in place of weights[1, 0]
# told: named
# now: named
# says: scaled by d_k in place of √d_k, and rows and columns exchanged
def geometric_example(theta_q: float, theta_k: float, theta_v: float) -> dict:
    matrices = []
    for theta in (theta_q, theta_k, theta_v):
        matrices.append(
            torch.tensor(
                [
                    [math.cos(theta), -math.sin(theta)],
                    [math.sin(theta), math.cos(theta)],
                ]
            )
        )
    q, k, v = matrices  # X is the unit matrix
    result = {}
    result["scores"] = q @ k.mT
    result["scaled"] = result["scores"] / q.shape[-1]
    result["weights"] = softmax(result["scaled"])
    result["output"] = result["weights"] @ v
    blue, car = 0, 1
    result["car_to_blue"] = float(result["weights"][blue, car])
    return result


# === exercise: redirect-attention | function: redirecting_angles | kind: plain | what is wrong: the two angles are returned in the wrong order, (theta_k, theta_q) in place of (theta_q, theta_k), so their difference is -135 degrees and the weight is 0.5
# told: named
# now: named
# says: the difference of the angles has the wrong sign
def redirecting_angles() -> tuple[float, float]:
    # scores of car: sin(delta) for blue, cos(delta) for car, delta = theta_q - theta_k;
    # sin - cos is largest at 135 degrees
    theta_k = 0.0
    theta_q = theta_k + 3 * math.pi / 4
    return theta_k, theta_q


# === exercise: redirect-attention | function: redirecting_angles | kind: subtle | what is wrong: the search takes the softmax of the scores without dividing them by the root of 2, so it stops too early, at a difference of 1.10, where the weight is 0.577 and not yet above 0.6
# told: named
# now: named
# says: the weight is not yet above 0.6
def redirecting_angles() -> tuple[float, float]:
    theta_q, theta_k = 0.0, 0.0
    while True:
        delta = theta_q - theta_k
        to_blue, to_car = math.sin(delta), math.cos(delta)
        weight = math.exp(to_blue) / (math.exp(to_blue) + math.exp(to_car))
        if weight > 0.6:
            return theta_q, theta_k
        theta_q += 0.05


# === exercise: softmax-jacobian | function: softmax_jacobian | kind: subtle | what is wrong: the row factor gets its new axis at the very front (p[None]) in place of before the last axis, so a batch (B, n) raises a size error, or for B = n silently multiplies probabilities of different rows (only a single row or a batch of one is right)
# told: named
# now: named
# says: only works for one row
def softmax_jacobian(probabilities: torch.Tensor) -> torch.Tensor:
    p = probabilities
    column = p[..., None]
    row = p[None]
    return torch.diag_embed(p) - column * row


# === exercise: softmax-jacobian | function: softmax_jacobian | kind: double | what is wrong: the argument is taken for scores and sent through softmax once more, although it already holds probabilities; the entries off the diagonal are +p_i p_j in place of -p_i p_j
# told: named
# now: named
# says: the sign off the diagonal is missing, and softmax taken twice
def softmax_jacobian(probabilities: torch.Tensor) -> torch.Tensor:
    p = softmax(probabilities)
    n = p.shape[-1]
    same = torch.eye(n, dtype=p.dtype, device=p.device)
    products = torch.einsum("...i,...j->...ij", p, p)
    # case i = j on the diagonal, case i != j everywhere else
    return torch.diag_embed(p * (1 - p)) + products * (1 - same)


# === exercise: additive-attention | function: AdditiveAttention | kind: plain | what is wrong: the weights mix the projected keys x_kv W_K in place of the rows of x_kv, so the output is (..., T_q, d_hidden) with other numbers
# told: named
# now: named
# says: output from the projected keys
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
        queries = x_q @ self.w_q
        keys = x_kv @ self.w_k
        hidden = torch.tanh(queries[..., :, None, :] + keys[..., None, :, :])
        scores = hidden @ self.v
        weights = masked_softmax(scores, mask)
        return weights @ keys, weights


# === exercise: additive-attention | function: AdditiveAttention | kind: subtle | what is wrong: squeeze() without an axis removes every axis of size 1 from the scores, so with one query, one key or a batch of one the axes T_q, T_k or B are lost and weights and output have wrong shapes (or an error)
# told: named
# now: named
# says: squeeze takes the axis of the queries away
class AdditiveAttention(nn.Module):
    def __init__(self, d_q: int, d_k: int, d_hidden: int) -> None:
        super().__init__()

        def draw(*shape):
            return nn.Parameter(torch.randn(*shape) / shape[0] ** 0.5)

        self.w_q = draw(d_q, d_hidden)
        self.w_k = draw(d_k, d_hidden)
        self.v = draw(d_hidden)

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        q = torch.matmul(x_q, self.w_q).unsqueeze(-2)
        k = torch.matmul(x_kv, self.w_k).unsqueeze(-3)
        pairs = torch.tanh(q + k)
        energy = torch.matmul(pairs, self.v.unsqueeze(-1)).squeeze()
        alpha = masked_softmax(energy, mask)
        context = torch.matmul(alpha, x_kv)
        return context, alpha


# === exercise: additive-attention | function: AdditiveAttention | kind: double | what is wrong: tanh is applied to queries and keys separately, before they are added, so the weights do not depend on the query; the scores are divided by the root of d_hidden, which the formula does not do
# told: named
# now: named
# says: tanh of each part in place of their sum, and scaled as a dot product
class AdditiveAttention(nn.Module):
    def __init__(self, d_q: int, d_k: int, d_hidden: int) -> None:
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(d_q, d_hidden) * d_q**-0.5)
        self.w_k = nn.Parameter(torch.randn(d_k, d_hidden) * d_k**-0.5)
        self.v = nn.Parameter(torch.randn(d_hidden) * d_hidden**-0.5)
        self.scale = math.sqrt(d_hidden)

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        queries = torch.tanh(x_q @ self.w_q).unsqueeze(-2)
        keys = torch.tanh(x_kv @ self.w_k).unsqueeze(-3)
        scores = torch.einsum("...qkh,h->...qk", queries + keys, self.v) / self.scale
        weights = masked_softmax(scores, mask)
        return weights @ x_kv, weights


# === exercise: attention-cost | function: path_length | kind: subtle | what is wrong: (length - 1) // (kernel - 1) + 1 is one layer too many whenever kernel - 1 divides length - 1 (9 tokens and a kernel of 3 give 5 in place of 4), it is right only where there is a remainder
# told: named
# now: named
# says: the view starts from nothing
def attention_cost(length: int, d_model: int) -> dict:
    projections = 4 * length * d_model**2
    scores = length * d_model * length
    mixing = length * length * d_model
    quadratic = scores + mixing
    return {
        "projections": projections,
        "scores": scores,
        "mixing": mixing,
        "quadratic_share": quadratic / (projections + quadratic),
    }


def path_length(kind: str, length: int, kernel: int = 3) -> int:
    if kind == "recurrent":
        return length
    if kind == "convolution":
        # every layer adds kernel - 1 tokens; one more layer for the rest
        return (length - 1) // (kernel - 1) + 1
    if kind == "attention":
        return 1
    raise ValueError(f"unknown kind: {kind}")


# === exercise: attention-cost | function: attention_cost | kind: double | what is wrong: only three projections are counted (queries, keys, values), the output projection is missing; "quadratic_share" is the ratio of scores and mixing to the projections in place of their part of the whole
# told: named
# now: named
# says: three projections in place of four, and a ratio in place of a share
def attention_cost(length: int, d_model: int) -> dict:
    def product(n, m, l):
        return n * m * l

    qkv = sum(product(length, d_model, d_model) for _ in "qkv")
    scores = product(length, d_model, length)
    mixing = product(length, length, d_model)
    return {
        "projections": qkv,
        "scores": scores,
        "mixing": mixing,
        "quadratic_share": (scores + mixing) / qkv,
    }


def path_length(kind: str, length: int, kernel: int = 3) -> int:
    if kind == "attention":
        return 1
    elif kind == "recurrent":
        return length
    elif kind == "convolution":
        return math.ceil((length - 1) / (kernel - 1))
    else:
        raise ValueError(kind)


# === exercise: attention-pooling | function: AttentionPooling | kind: plain | what is wrong: the weighted vectors are averaged (mean) in place of summed, although the weights already sum to 1, so what is pooled is too small by the factor T
# told: named
# now: named
# says: divided by T after the weights
class AttentionPooling(nn.Module):
    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query = nn.Parameter(0.02 * torch.randn(d_model))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        scores = hidden @ self.query / math.sqrt(hidden.shape[-1])
        key_mask = None if mask is None else mask[:, 0]
        weights = masked_softmax(scores, key_mask)
        # weighted mean over the tokens
        pooled = (weights[..., None] * hidden).mean(dim=1)
        return pooled, weights


# === exercise: attention-pooling | function: AttentionPooling | kind: subtle | what is wrong: the second argument of nn.init.normal_ is the mean, not the standard deviation, so the query is drawn with mean 0.02 and standard deviation 1, and training does not start from the mean (forward is right)
# told: named
# now: named
# says: the weights start too large
class AttentionPooling(nn.Module):
    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.empty(d_model))
        nn.init.normal_(self.query, 0.02)

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        d = self.query.numel()
        s = torch.einsum("btd,d->bt", hidden, self.query) / d**0.5
        if mask is not None:
            mask = mask.squeeze(1)
        w = masked_softmax(s, mask)
        return torch.einsum("bt,btd->bd", w, hidden), w


# === exercise: attention-pooling | function: AttentionPooling | kind: double | what is wrong: the scores are not divided by the root of d; the weights are returned as (B, 1, T), with the axis of the single query, in place of (B, T)
# told: named
# now: named
# says: the scores are not scaled
class AttentionPooling(nn.Module):
    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.randn(d_model) * 0.02)

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        # attention with one query: (1, d) times (B, d, T)
        scores = self.query[None, :] @ hidden.transpose(1, 2)  # (B, 1, T)
        weights = masked_softmax(scores, mask)
        pooled = (weights @ hidden)[:, 0]
        return pooled, weights
