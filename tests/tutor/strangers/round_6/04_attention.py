# ruff: noqa
# fmt: off

# === exercise: softmax | function: softmax | kind: subtle | what is wrong: a row of only -inf is caught only if the WHOLE tensor is -inf; one such row among ordinary rows comes out as NaN
# told: named
# now: named
# says: NaN for a row of only −∞
def softmax(scores: torch.Tensor) -> torch.Tensor:
    if torch.isneginf(scores).all():
        return torch.zeros_like(scores)
    powers = torch.exp(scores - scores.amax(dim=-1, keepdim=True))
    return powers / powers.sum(dim=-1, keepdim=True)


# === exercise: softmax | function: softmax | kind: double | what is wrong: the maximum is clamped to at least 0, so a row of very negative scores such as (-200, -201) underflows to zeros AND the subtraction is done in place, so the caller's scores are changed (whenever a maximum is above 0)
# told: named
# now: named
# says: changes its argument in place
def softmax(scores: torch.Tensor) -> torch.Tensor:
    scores -= scores.amax(dim=-1, keepdim=True).clamp(min=0)
    weights = scores.exp()
    total = weights.sum(dim=-1, keepdim=True)
    return weights / torch.where(total > 0, total, torch.ones_like(total))


# === exercise: worked-context | function: worked_context | kind: double | what is wrong: entry [2, 3] is 0.68 and not 0.78 (the third term 0.1 * 1.0 is forgotten) AND "strongest" is read down the columns of the weights, [0, 2, 2] and not [0, 1, 1]
# told: shown
# now: named
# says: a term of the sum is forgotten
def worked_context() -> dict:
    berries = [0.5, 0.2, 1.0, 0.4]
    ripen = [0.22, 0.2, 0.72, 0.68]
    slowly = [0.16, 0.2, 0.6, 0.68]
    return {
        "context": torch.tensor([berries, ripen, slowly]),
        "unchanged_row": 0,
        "constant_column": 1,
        "strongest": [0, 2, 2],
    }


# === exercise: project-qkv | function: project_qkv | kind: subtle | what is wrong: keys and values are computed in one product that is then cut into two halves; wrong (keys hold features of values or the other way round) where d_k and d_v differ, apart from d_k = d_v + 1
# told: shown
# now: named
# says: keys and values cut in the middle
def project_qkv(
    x_q: torch.Tensor,
    x_kv: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    keys_values = x_kv @ torch.cat([w_k, w_v], dim=-1)
    k, v = keys_values.chunk(2, dim=-1)
    return x_q @ w_q, k, v


# === exercise: causal-mask | function: causal_mask | kind: plain | what is wrong: only the very first token may see itself; for all positions from 1 on the diagonal is False (shows for length 2 and more)
# told: named
# now: named
# says: only the first position sees itself
def causal_mask(length: int) -> torch.Tensor:
    allowed = torch.ones(length, length, dtype=torch.bool).tril(diagonal=-1)
    allowed[0, 0] = True
    return allowed


# === exercise: padding-mask | function: padding_mask | kind: subtle | what is wrong: the mask is as wide as the longest sentence and not max_length; wrong shape where no sentence fills the whole width (as in lengths 2, 4, 1 with width 5)
# told: named
# now: named
# says: the longest length in place of max_length
def padding_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    rows = [torch.ones(int(n), dtype=torch.bool) for n in lengths]
    table = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=False)
    return table[:, None, :]


# === exercise: masked-softmax | function: masked_softmax | kind: subtle | what is wrong: softmax over all keys first, then the hidden ones are taken out and the row is divided by what is left; where a hidden score is far above the allowed ones (e.g. 1000 beside 1 and -2) the allowed weights underflow and the row is zeros
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
    rest = weights.sum(dim=-1, keepdim=True)
    return weights / rest.clamp(min=1e-12)


# === exercise: masked-softmax | function: masked_softmax | kind: double | what is wrong: hidden scores are multiplied to 0 and every 0 is then replaced by -inf, so that an allowed score of exactly 0 gets the weight 0 AND torch.softmax gives NaN for a row in which nothing is allowed
# told: wrong
# now: named
# says: a score of 0 is taken for a hidden one, and NaN on fully masked rows
def masked_softmax(
    scores: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    if mask is None:
        return softmax(scores)
    visible = scores * mask
    visible = visible.masked_fill(visible == 0, float("-inf"))
    return torch.softmax(visible, dim=-1)


# === exercise: scaled-dot-product-attention | function: scaled_dot_product_attention | kind: plain | what is wrong: d_k is taken for the number of keys, so the scores are divided by the root of T_k, k.size(-2); shows wherever T_k differs from d_k
# told: named
# now: named
# says: scaled by the number of keys
def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    d_k = k.size(-2)
    scores = torch.einsum("...id,...jd->...ij", q, k) / math.sqrt(d_k)
    weights = masked_softmax(scores, mask)
    return torch.einsum("...ij,...jv->...iv", weights, v), weights


# === exercise: scaled-dot-product-attention | function: scaled_dot_product_attention | kind: double | what is wrong: the weights that are returned are those without the mask, although the output is made with it AND the scores are divided by the root of d_v, not of d_k
# told: named
# now: named
# says: scaled by √d_v in place of √d_k, and the weights without the mask are returned
def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    scale = v.shape[-1] ** -0.5
    scores = torch.matmul(q, k.transpose(-1, -2)) * scale
    weights = masked_softmax(scores)
    if mask is None:
        return weights @ v, weights
    return masked_softmax(scores, mask) @ v, weights


# === exercise: attention-module | function: Attention | kind: plain | what is wrong: the mask is not handed on to the attention: hidden keys get weights as if there were no mask
# told: named
# now: named
# says: mask ignored
class Attention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        std = 1 / math.sqrt(d_model)
        self.w_q = nn.Parameter(torch.empty(d_model, d_k).normal_(0, std))
        self.w_k = nn.Parameter(torch.empty(d_model, d_k).normal_(0, std))
        self.w_v = nn.Parameter(torch.empty(d_model, d_v).normal_(0, std))

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        source = x_q if x_kv is None else x_kv
        projected = project_qkv(x_q, source, self.w_q, self.w_k, self.w_v)
        return scaled_dot_product_attention(*projected)


# === exercise: attention-module | function: Attention | kind: subtle | what is wrong: w_q and w_k are made from one and the same random tensor: they are equal at the start and share their memory, so an optimiser's step (or load_state_dict) on one changes the other; scores of self-attention are symmetric
# told: named
# now: named
# says: two parameters start with the same numbers
class Attention(nn.Module):
    def __init__(self, d_model: int, d_k: int, d_v: int) -> None:
        super().__init__()
        start_qk = torch.randn(d_model, d_k) / math.sqrt(d_model)
        start_v = torch.randn(d_model, d_v) / math.sqrt(d_model)
        self.w_q = nn.Parameter(start_qk)
        self.w_k = nn.Parameter(start_qk)
        self.w_v = nn.Parameter(start_v)

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


# === exercise: geometric-example | function: geometric_example | kind: plain | what is wrong: the product of the two rotations is written as the rotation by theta_k - theta_q and not theta_q - theta_k: the scores are transposed, and with them all that follows (shows unless theta_q - theta_k is a multiple of pi)
# told: named
# now: named
# says: queries and keys exchanged
def geometric_example(theta_q: float, theta_k: float, theta_v: float) -> dict:
    def turn(angle):
        c, s = math.cos(angle), math.sin(angle)
        return torch.tensor([[c, -s], [s, c]])

    scores = turn(theta_k - theta_q)
    scaled = scores / math.sqrt(2)
    weights = softmax(scaled)
    return {
        "scores": scores,
        "scaled": scaled,
        "weights": weights,
        "output": weights @ turn(theta_v),
        "car_to_blue": weights[1, 0].item(),
    }


# === exercise: redirect-attention | function: redirecting_angles | kind: plain | what is wrong: the query of car is turned by -90 degrees, as if R(theta) acted on columns: it becomes (-1, 0), opposite to the key of blue, and the weight is 0.33
# told: wrong
# now: named
# says: the difference of the angles has the wrong sign
def redirecting_angles() -> tuple[float, float]:
    angle_of_car = math.radians(90)
    angle_of_blue = 0.0
    return angle_of_blue - angle_of_car, 0.0


# === exercise: softmax-jacobian | function: softmax_jacobian | kind: double | what is wrong: the diagonal gets p(1 - p) and the square is subtracted from it once more, p - 2p^2 AND all leading axes are flattened into one: a single row gives (1, n, n), and (2, 3, n) gives (6, n, n)
# told: shown
# now: named
# says: the diagonal subtracted twice, and the leading axes are joined into one
def softmax_jacobian(probabilities: torch.Tensor) -> torch.Tensor:
    n = probabilities.shape[-1]
    p = probabilities.reshape(-1, n)
    same = torch.diag_embed(p * (1 - p))
    different = torch.einsum("bi,bj->bij", p, p)
    return same - different


# === exercise: additive-attention | function: AdditiveAttention | kind: plain | what is wrong: tanh is taken of the projected queries and of the projected keys before they are added, not of their sum: the weights do not depend on the query
# told: named
# now: named
# says: tanh of each part in place of their sum
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
        asked = (x_q @ self.w_q).tanh()[..., :, None, :]
        answered = (x_kv @ self.w_k).tanh()[..., None, :, :]
        energies = (asked + answered) @ self.v
        weights = masked_softmax(energies, mask)
        return weights @ x_kv, weights


# === exercise: additive-attention | function: AdditiveAttention | kind: double | what is wrong: the output mixes the projected keys (T_k, d_hidden) in place of the rows of x_kv AND the scores are divided by the root of d_hidden, which the formula does not do
# told: named
# now: named
# says: scaled as a dot product, and output from the projected keys
class AdditiveAttention(nn.Module):
    def __init__(self, d_q: int, d_k: int, d_hidden: int) -> None:
        super().__init__()

        def draw(*shape):
            return nn.Parameter(torch.randn(*shape) / math.sqrt(shape[0]))

        self.w_q, self.w_k, self.v = draw(d_q, d_hidden), draw(d_k, d_hidden), draw(d_hidden)

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        queries = torch.matmul(x_q, self.w_q)
        keys = torch.matmul(x_kv, self.w_k)
        hidden = torch.tanh(queries.unsqueeze(-2) + keys.unsqueeze(-3))
        scores = torch.matmul(hidden, self.v) / math.sqrt(hidden.shape[-1])
        weights = masked_softmax(scores, mask)
        return torch.matmul(weights, keys), weights


# === exercise: attention-cost | functions: attention_cost, path_length | kind: subtle | what is wrong: the layers of a convolution are ceil(length / (kernel - 1)), without the token that the view begins with: one layer too many where length - 1 is a multiple of kernel - 1 (11 tokens, kernel 3: 6 and not 5); right for the example by hand
# told: named
# now: named
# says: the view starts from nothing
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
            return math.ceil(length / (kernel - 1))
        case "attention":
            return 1
        case _:
            raise ValueError(f"unknown kind: {kind}")


# === exercise: attention-pooling | function: AttentionPooling | kind: subtle | what is wrong: mask.squeeze() takes away every axis of length 1: for sequences of one token in a batch of several, the mask (B, 1, 1) becomes (B,), meets the scores (B, 1) and gives weights (B, B)
# told: passed
# now: named
# says: squeeze takes the axis of the tokens away
class AttentionPooling(nn.Module):
    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query = nn.Parameter(0.02 * torch.randn(d_model))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        scores = (hidden * self.query).sum(dim=-1) / math.sqrt(hidden.shape[-1])
        if mask is not None:
            mask = mask.squeeze()
        weights = masked_softmax(scores, mask)
        return (weights.unsqueeze(-1) * hidden).sum(dim=1), weights


# === exercise: attention-pooling | function: AttentionPooling | kind: double | what is wrong: the scores are divided by the root of T, hidden.shape[1], not of d AND the weighted vectors are averaged (divided by T once more) and not summed
# told: named
# now: named
# says: divided by the root of the number of tokens
class AttentionPooling(nn.Module):
    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.normal(0.0, 0.02, (d_model,)))

    def forward(
        self, hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        scores = hidden.matmul(self.query).div(hidden.shape[1] ** 0.5)
        real = mask if mask is None else mask[:, 0, :]
        weights = masked_softmax(scores, real)
        pooled = torch.mean(weights[:, :, None] * hidden, dim=1)
        return pooled, weights
