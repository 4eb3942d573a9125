# ruff: noqa
# fmt: off

# === exercise: bits-per-byte | function: bits_per_byte | kind: plain | what is wrong: divides by the number of characters, not of bytes
# told: named
# now: named
# says: characters in place of bytes
def bits_per_byte(losses: torch.Tensor, text: str) -> float:
    nats = losses.sum().item()
    bits = nats / math.log(2)
    return bits / len(text)


# === exercise: bits-per-byte | function: bits_per_byte | kind: double | what is wrong: (1) the mean loss of a token in place of the sum; (2) nats times ln 2 in place of divided by it
# told: named
# now: named
# says: a mean in place of the sum, and multiplied by ln 2
def bits_per_byte(losses: torch.Tensor, text: str) -> float:
    bits = float(losses.mean()) * math.log(2)
    return bits / len(text.encode("utf-8"))


# === exercise: pack-documents | function: pack_documents | kind: subtle | what is wrong: as many blocks as n // T: if n is a multiple of T there is one block too many, and its last label is the first token of the stream (roll goes in a circle)
# told: named
# now: named
# says: what is left over makes a block
def pack_documents(
    documents: list[list[int]], end_id: int, length: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    rows = []
    for number, document in enumerate(documents):
        for place, token in enumerate([*document, end_id]):
            rows.append((token, number, place))
    ids, owners, places = torch.tensor(rows).T
    labels = ids.roll(-1)  # the label is the token that follows
    kept = len(rows) // length * length
    return tuple(
        each[:kept].reshape(-1, length) for each in (ids, labels, owners, places)
    )


# === exercise: pack-documents | function: pack_documents | kind: double | what is wrong: (1) an empty document is left out, without its end id; (2) blocks begin T + 1 apart, so a token between two blocks is never an input
# told: named
# now: named
# says: a token is lost between two blocks, and an empty document is left out
def pack_documents(
    documents: list[list[int]], end_id: int, length: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    ids, owners, positions = [], [], []
    for d, doc in enumerate(documents):
        if not doc:
            continue
        ids += doc + [end_id]
        owners += [d] * (len(doc) + 1)
        positions += range(len(doc) + 1)
    size = length + 1  # the inputs and one label more
    count = len(ids) // size

    def cut(numbers):
        kept = torch.tensor(numbers[: count * size], dtype=torch.int64)
        return kept.view(count, size)

    ids, owners, positions = cut(ids), cut(owners), cut(positions)
    return ids[:, :-1], ids[:, 1:], owners[:, :-1], positions[:, :-1]


# === exercise: document-mask | function: document_mask | kind: subtle | what is wrong: puts triangles along the diagonal in the order of the sorted numbers: wrong where the numbers of a row do not rise
# told: named
# now: named
# says: documents in the order of their numbers
def document_mask(documents: torch.Tensor) -> torch.Tensor:
    masks = []
    for row in documents:
        _, sizes = torch.unique(row, return_counts=True)
        triangles = [torch.ones(n, n).tril() for n in sizes.tolist()]
        masks.append(torch.block_diag(*triangles).bool())
    return torch.stack(masks).unsqueeze(1)


# === exercise: causal-attention | function: causal_attention | kind: plain | what is wrong: repeat deals the heads of keys and values out in turn, neighbours do not share
# told: named
# now: named
# says: kv heads dealt out in turn
def causal_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rotary: bool = False
) -> torch.Tensor:
    if rotary:
        q, k = apply_rotary(q), apply_rotary(k)
    times = q.shape[1] // k.shape[1]
    k = k.repeat(1, times, 1, 1)
    v = v.repeat(1, times, 1, 1)
    z, _ = scaled_dot_product_attention(q, k, v, causal_mask(q.shape[2]))
    return z


# === exercise: causal-attention | function: causal_attention | kind: double | what is wrong: (1) rotates with heads and positions exchanged, by the number of the head and not by the position; (2) rotates the values, too
# told: told
# now: told
# says: the values are rotated, too
# line: 5
def causal_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rotary: bool = False
) -> torch.Tensor:
    def turn(x):
        return apply_rotary(x.transpose(1, 2)).transpose(1, 2)

    if rotary:
        q, k, v = turn(q), turn(k), turn(v)
    g = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(g, dim=1) for x in (k, v))
    mask = causal_mask(q.shape[-2])
    return scaled_dot_product_attention(q, k, v, mask)[0]


# === exercise: block-from-configuration | function: DecoderBlock | kind: plain | what is wrong: in finish the network's result is added to the normalised y, not to y
# told: named
# now: named
# says: residual from the normalised x
def causal_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rotary: bool = False
) -> torch.Tensor:
    if rotary:
        q, k = apply_rotary(q), apply_rotary(k)
    g = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(g, dim=1), v.repeat_interleave(g, dim=1)
    return scaled_dot_product_attention(q, k, v, causal_mask(q.shape[-2]))[0]


class DecoderBlock(nn.Module):
    def __init__(
        self,
        d_model: int,
        heads: int,
        kv_heads: int,
        d_ff: int,
        norm: str = "rms",
        feed_forward: str = "swiglu",
        positions: str = "rotary",
        qk_norm: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        self.rotary = positions == "rotary"
        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        if feed_forward == "swiglu":
            self.feed_forward = SwiGLU(d_model, d_ff)
        else:
            self.feed_forward = FeedForward(d_model, d_ff, feed_forward)
        Norm = RMSNorm if norm == "rms" else LayerNorm
        self.norm_1 = Norm(d_model)
        self.norm_2 = Norm(d_model)
        d_k = d_model // heads
        self.norm_q = RMSNorm(d_k) if qk_norm else nn.Identity()
        self.norm_k = RMSNorm(d_k) if qk_norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def project(
        self, x: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        n = self.norm_1(x)
        q = split_heads(n @ self.attention.w_q, self.heads)
        k = split_heads(n @ self.attention.w_k, self.kv_heads)
        v = split_heads(n @ self.attention.w_v, self.kv_heads)
        return self.norm_q(q), self.norm_k(k), v

    def finish(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        x = x + self.dropout(merge_heads(z) @ self.attention.w_o)
        x = self.norm_2(x)
        x = x + self.dropout(self.feed_forward(x))
        return x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run both halves; x and result (B, T, d_model)."""
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


# === exercise: block-from-configuration | function: DecoderBlock | kind: subtle | what is wrong: nn.functional.dropout without training=self.training drops in evaluation mode, too
# told: named
# now: named
# says: dropout active in evaluation
def causal_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rotary: bool = False
) -> torch.Tensor:
    if rotary:
        q, k = apply_rotary(q), apply_rotary(k)
    g = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(g, dim=1), v.repeat_interleave(g, dim=1)
    return scaled_dot_product_attention(q, k, v, causal_mask(q.shape[-2]))[0]


class DecoderBlock(nn.Module):
    """Causal self-attention and a feed-forward network, each after its norm."""

    def __init__(
        self,
        d_model: int,
        heads: int,
        kv_heads: int,
        d_ff: int,
        norm: str = "rms",
        feed_forward: str = "swiglu",
        positions: str = "rotary",
        qk_norm: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        self.rotary = positions == "rotary"
        norms = {"layer": LayerNorm, "rms": RMSNorm}
        width = d_model // heads
        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        self.feed_forward = (
            SwiGLU(d_model, d_ff)
            if feed_forward == "swiglu"
            else FeedForward(d_model, d_ff, feed_forward)
        )
        self.norm_1, self.norm_2 = norms[norm](d_model), norms[norm](d_model)
        if qk_norm:
            self.norm_q, self.norm_k = RMSNorm(width), RMSNorm(width)
        else:
            self.norm_q, self.norm_k = nn.Identity(), nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def project(
        self, x: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        normed, own = self.norm_1(x), self.attention
        q = self.norm_q(split_heads(normed @ own.w_q, self.heads))
        k = self.norm_k(split_heads(normed @ own.w_k, self.kv_heads))
        return q, k, split_heads(normed @ own.w_v, self.kv_heads)

    def finish(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        p = self.dropout.p
        mixed = merge_heads(z) @ self.attention.w_o
        y = x + nn.functional.dropout(mixed, p)
        return y + nn.functional.dropout(self.feed_forward(self.norm_2(y)), p)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run both halves; x and result (B, T, d_model)."""
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


# === exercise: write-with-cache | function: write_with_cache | kind: subtle | what is wrong: appends to the caller's prompt, which is changed in place
# told: named
# now: named
# says: changes its argument in place
@torch.no_grad()
def write_with_cache(model: nn.Module, prompt: list[int], length: int) -> list[int]:
    if not prompt:
        raise ValueError("the prompt is empty")
    ids, start, cache = prompt, 0, None
    for _ in range(length):
        new = torch.tensor([ids[start:]])
        logits, cache = model(new, start, cache)
        start = len(ids)
        ids.append(logits[0, -1].argmax().item())
    return ids


# === exercise: write-with-cache | function: write_with_cache | kind: double | what is wrong: (1) the new token is read at the position behind its own; (2) the last token is read, too, and for a length of 0 the prompt
# told: named
# now: named
# says: positions one too far
@torch.no_grad()
def write_with_cache(model: nn.Module, prompt: list[int], length: int) -> list[int]:
    if len(prompt) == 0:
        raise ValueError("there is nothing to begin with")
    text = list(prompt)
    logits, cache = model(torch.tensor([text]), 0, None)
    while len(text) < len(prompt) + length:
        token = int(logits[0, -1].argmax())
        text.append(token)
        logits, cache = model(torch.tensor([[token]]), len(text), cache)
    return text


# === exercise: online-softmax | functions: online_step, online_softmax | kind: plain | what is wrong: only the old sum is rescaled, the old output is not
# told: named
# now: named
# says: the old output is not rescaled
def online_step(
    maximum: torch.Tensor,
    total: torch.Tensor,
    output: torch.Tensor,
    scores: torch.Tensor,
    values: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    new = torch.maximum(maximum, scores.amax(dim=-1, keepdim=True))
    reference = new.masked_fill(new.isneginf(), 0.0)
    weights = torch.exp(scores - reference)
    total = total * torch.exp(maximum - reference) + weights.sum(dim=-1, keepdim=True)
    output = output + weights @ values
    return new, total, output


def online_softmax(blocks: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    scores, values = blocks[0]
    maximum = torch.full_like(scores[..., :1], -math.inf)
    total = torch.zeros_like(maximum)
    output = scores.new_zeros(*scores.shape[:-1], values.shape[-1])
    for scores, values in blocks:
        maximum, total, output = online_step(maximum, total, output, scores, values)
    return output / total.masked_fill(total == 0, 1.0)


# === exercise: online-softmax | functions: online_step, online_softmax | kind: subtle | what is wrong: online_softmax begins with a maximum of 0 in place of -inf: if all scores are far below 0 every exp is 0, and so is the result
# told: named
# now: named
# says: the maximum begins at 0
def online_step(
    maximum: torch.Tensor,
    total: torch.Tensor,
    output: torch.Tensor,
    scores: torch.Tensor,
    values: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    highest = torch.maximum(maximum, scores.max(dim=-1, keepdim=True).values)
    anchor = torch.where(highest == -math.inf, torch.zeros_like(highest), highest)
    shrink = (maximum - anchor).exp()
    e = (scores - anchor).exp()
    return highest, shrink * total + e.sum(-1, keepdim=True), shrink * output + e @ values


def online_softmax(blocks: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    first_scores, first_values = blocks[0]
    shape = first_scores.shape[:-1]
    state = (
        first_scores.new_zeros(*shape, 1),
        first_scores.new_zeros(*shape, 1),
        first_scores.new_zeros(*shape, first_values.shape[-1]),
    )
    for s, v in blocks:
        state = online_step(*state, s, v)
    _, total, output = state
    return output / torch.where(total == 0, torch.ones_like(total), total)


# === exercise: tiled-attention | functions: attend_from_tile, tiled_attention | kind: subtle | what is wrong: causal counts the queries from position 0: right for T_q = T_k only, the queries are the last T_q of T_k positions
# told: named
# now: named
# says: causal from the first key on
def online_step(maximum, total, output, scores, values):
    new = torch.maximum(maximum, scores.amax(dim=-1, keepdim=True))
    reference = new.masked_fill(new.isneginf(), 0.0)
    factor, weights = (maximum - reference).exp(), (scores - reference).exp()
    total = total * factor + weights.sum(dim=-1, keepdim=True)
    return new, total, output * factor + weights @ values


def attend_from_tile(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, block: int, last: torch.Tensor
) -> torch.Tensor:
    maximum = q.new_full((*q.shape[:-1], 1), -math.inf)
    total = q.new_zeros((*q.shape[:-1], 1))
    output = q.new_zeros((*q.shape[:-1], v.shape[-1]))
    end = min(int(last.max()) + 1, k.shape[-2])
    for first in range(0, end, block):
        keys = k[..., first : first + block, :]
        values = v[..., first : first + block, :]
        scores = q @ keys.transpose(-2, -1) / math.sqrt(q.shape[-1])
        places = torch.arange(first, first + keys.shape[-2], device=q.device)
        scores = scores.masked_fill(places > last, -math.inf)
        maximum, total, output = online_step(maximum, total, output, scores, values)
    return output / total.masked_fill(total == 0, 1.0)


def tiled_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    block: int,
    causal: bool = False,
) -> torch.Tensor:
    queries, keys = q.shape[-2], k.shape[-2]
    if causal:
        last = torch.arange(queries, device=q.device).unsqueeze(-1)
    else:
        last = torch.full((queries, 1), keys - 1, device=q.device)
    tiles = zip(q.split(block, dim=-2), last.split(block, dim=0), strict=True)
    return torch.cat(
        [attend_from_tile(tile, k, v, block, ends) for tile, ends in tiles], dim=-2
    )


# === exercise: tiled-attention | functions: attend_from_tile, tiled_attention | kind: double | what is wrong: (1) the scores are not divided by the root of d_k; (2) keys are counted from 0 in each tile when the future is hidden
# told: named
# now: named
# says: keys counted from 0 in each tile, and the scores are not scaled
def online_step(maximum, total, output, scores, values):
    new = torch.maximum(maximum, scores.amax(dim=-1, keepdim=True))
    reference = new.masked_fill(new.isneginf(), 0.0)
    factor, weights = (maximum - reference).exp(), (scores - reference).exp()
    total = total * factor + weights.sum(dim=-1, keepdim=True)
    return new, total, output * factor + weights @ values


def attend_from_tile(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, block: int, last: torch.Tensor
) -> torch.Tensor:
    m = torch.full_like(q[..., :1], float("-inf"))
    l = torch.zeros_like(m)
    o = q.new_zeros(q.shape[:-1] + v.shape[-1:])
    start, stop = 0, last.max().item() + 1
    while start < stop:
        k_tile, v_tile = k[..., start : start + block, :], v[..., start : start + block, :]
        s = torch.einsum("...qd,...kd->...qk", q, k_tile)
        hidden = torch.arange(k_tile.shape[-2]) > last
        s = s.masked_fill(hidden, float("-inf"))
        m, l, o = online_step(m, l, o, s, v_tile)
        start += block
    return o / torch.where(l > 0, l, torch.ones_like(l))


def tiled_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    block: int,
    causal: bool = False,
) -> torch.Tensor:
    t_q, t_k = q.size(-2), k.size(-2)
    parts = []
    for begin in range(0, t_q, block):
        tile = q[..., begin : begin + block, :]
        number = torch.arange(begin, begin + tile.size(-2))
        last = t_k - t_q + number if causal else torch.full_like(number, t_k - 1)
        parts.append(attend_from_tile(tile, k, v, block, last[:, None]))
    return torch.cat(parts, dim=-2)


# === exercise: adamw-step | function: adamw_step | kind: plain | what is wrong: returns the corrected moments, which the next step would correct again
# told: named
# now: named
# says: corrected moments are returned
def adamw_step(
    parameter: torch.Tensor,
    gradient: torch.Tensor,
    first: torch.Tensor,
    second: torch.Tensor,
    step: int,
    rate: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.01,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    beta_1, beta_2 = betas
    first = beta_1 * first + (1 - beta_1) * gradient
    second = beta_2 * second + (1 - beta_2) * gradient**2
    first = first / (1 - beta_1**step)
    second = second / (1 - beta_2**step)
    move = rate * first / (second.sqrt() + eps)
    parameter = parameter - rate * weight_decay * parameter - move
    return parameter, first, second


# === exercise: adamw-step | function: adamw_step | kind: double | what is wrong: (1) the decay is mixed into the gradient (L2), not beside it; (2) ε is inside of the root
# told: named
# now: named
# says: the decay is mixed into the gradient, and eps inside the root
def adamw_step(
    parameter: torch.Tensor,
    gradient: torch.Tensor,
    first: torch.Tensor,
    second: torch.Tensor,
    step: int,
    rate: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.01,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    g = gradient + weight_decay * parameter
    m = torch.lerp(first, g, 1 - betas[0])
    v = torch.lerp(second, g.square(), 1 - betas[1])
    m_hat, v_hat = (x / (1 - b**step) for x, b in zip((m, v), betas, strict=True))
    return parameter - rate * m_hat / torch.sqrt(v_hat + eps), m, v


# === exercise: orthogonalise | function: orthogonalise | kind: plain | what is wrong: square**2 squares entry by entry, it is not the product of the matrix with itself
# told: named
# now: named
# says: entries squared in place of a matrix product
def orthogonalise(matrix: torch.Tensor, rounds: int = 5) -> torch.Tensor:
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrix.shape[-2] > matrix.shape[-1]
    x = matrix.mT if tall else matrix
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(rounds):
        square = x @ x.mT
        x = a * x + (b * square + c * square**2) @ x
    return x.mT if tall else x


# === exercise: run-budget | function: run_budget | kind: plain | what is wrong: the matrices of keys and values are as wide as that of the queries
# told: named
# now: named
# says: keys and values as wide as the queries
def run_budget(
    layers: int,
    d_model: int,
    heads: int,
    kv_heads: int,
    d_ff: int,
    vocab_size: int,
    tokens: int,
    length: int,
    window: int,
    number_bytes: int = 4,
) -> dict[str, int]:
    attention = 4 * d_model * d_model
    network = 3 * d_model * d_ff
    block = attention + network + 2 * d_model
    parameters = layers * block + vocab_size * d_model + d_model
    d_k = d_model // heads

    def cache(some_heads, positions):
        return 2 * layers * positions * some_heads * d_k * number_bytes

    return {
        "parameters": parameters,
        "operations": 6 * parameters * tokens,
        "training_bytes": 4 * parameters * number_bytes,
        "cache_multi_head": cache(heads, length),
        "cache_grouped": cache(kv_heads, length),
        "cache_windowed": cache(kv_heads, min(window, length)),
    }


# === exercise: run-budget | function: run_budget | kind: double | what is wrong: (1) the table is counted twice, as embedding and as output; (2) the window is kept whole even if the text is shorter
# told: named
# now: named
# says: the table is counted twice, and the window of a shorter text
def run_budget(
    layers: int,
    d_model: int,
    heads: int,
    kv_heads: int,
    d_ff: int,
    vocab_size: int,
    tokens: int,
    length: int,
    window: int,
    number_bytes: int = 4,
) -> dict[str, int]:
    head_width = d_model // heads
    kv_width = kv_heads * head_width
    shapes = [(d_model, d_model)] * 2  # queries, output
    shapes += [(d_model, kv_width)] * 2  # keys, values
    shapes += [(d_model, d_ff)] * 3  # gate, up, down
    shapes += [(1, d_model)] * 2  # norms
    per_block = sum(n * m for n, m in shapes)
    embedding = head = vocab_size * d_model
    total = embedding + layers * per_block + d_model + head

    budget = {"parameters": total}
    budget["operations"] = 6 * total * tokens
    budget["training_bytes"] = 4 * number_bytes * total
    per_position = 2 * layers * number_bytes
    budget["cache_multi_head"] = per_position * d_model * length
    budget["cache_grouped"] = per_position * kv_width * length
    budget["cache_windowed"] = per_position * kv_width * window
    return budget


# === exercise: scaling-law | functions: predicted_loss, fit_scaling_law, compute_optimal | kind: subtle | what is wrong: compute_optimal has the exponent a / (a + b) in place of b / (a + b) for the budget: right only if a = b
# told: named
# now: named
# says: exponents exchanged
def predicted_loss(law: dict[str, float], parameters: float, tokens: float) -> float:
    return law["E"] + law["A"] / parameters ** law["a"] + law["B"] / tokens ** law["b"]


def fit_scaling_law(
    runs: list[dict[str, float]], exponents: list[float]
) -> dict[str, float]:
    N = torch.tensor(
        [run["parameters"] + run["embedding"] for run in runs], dtype=torch.float64
    )
    D = torch.tensor([run["tokens"] for run in runs], dtype=torch.float64)
    losses = torch.tensor([run["bits_per_byte"] for run in runs], dtype=torch.float64)
    losses = losses.unsqueeze(-1)
    best, least = {}, math.inf
    for a in exponents:
        for b in exponents:
            columns = torch.stack((torch.ones_like(N), N**-a, D**-b), dim=1)
            solution = torch.linalg.lstsq(columns, losses).solution
            error = ((columns @ solution - losses) ** 2).sum().item()
            if error < least:
                least = error
                E, A, B = solution.flatten().tolist()
                best = {"E": E, "A": A, "B": B, "a": a, "b": b}
    return best


def compute_optimal(law: dict[str, float], budget: float) -> tuple[float, float]:
    a, b = law["a"], law["b"]
    ratio = (a * law["A"] / (b * law["B"])) ** (1 / (a + b))
    N = ratio * (budget / 6) ** (a / (a + b))
    return N, budget / (6 * N)


# === exercise: scaling-law | functions: predicted_loss, fit_scaling_law, compute_optimal | kind: double | what is wrong: (1) N leaves the embedding out; (2) each candidate is tried as a and b at once, pairs of two different exponents are not
# told: named
# now: named
# says: the embedding is not counted, and only equal exponents are tried
def predicted_loss(law: dict[str, float], parameters: float, tokens: float) -> float:
    E, A, B, a, b = (law[key] for key in "EABab")
    return E + A * parameters**-a + B * tokens**-b


def fit_scaling_law(
    runs: list[dict[str, float]], exponents: list[float]
) -> dict[str, float]:
    def column(name):
        return torch.tensor([float(run[name]) for run in runs], dtype=torch.float64)

    sizes, texts, y = column("parameters"), column("tokens"), column("bits_per_byte")
    fits = []
    for a, b in zip(exponents, exponents, strict=True):
        X = torch.stack([sizes**0, sizes ** (-a), texts ** (-b)], dim=-1)
        solution = torch.linalg.lstsq(X, y[:, None]).solution[:, 0]
        wrong = (X @ solution - y).square().sum().item()
        fits.append((wrong, *solution.tolist(), a, b))
    _, E, A, B, a, b = min(fits)
    return {"E": E, "A": A, "B": B, "a": a, "b": b}


def compute_optimal(law: dict[str, float], budget: float) -> tuple[float, float]:
    a, b = law["a"], law["b"]
    power = 1 / (a + b)
    n = (a * law["A"] / b / law["B"]) ** power * (budget / 6) ** (b * power)
    return n, budget / 6 / n


# === exercise: induction-score | functions: induction_scores, best_head | kind: subtle | what is wrong: p(t) is the earliest occurrence of the token, not the latest earlier one: equal if no token occurs three times
# told: named
# now: named
# says: the first occurrence in place of the latest
def induction_scores(weights: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    seen, queries, keys = {}, [], []
    for t, token in enumerate(tokens.tolist()):
        if token in seen:
            queries.append(t)
            keys.append(seen[token] + 1)
        else:
            seen[token] = t
    picked = weights[:, :, torch.tensor(queries), torch.tensor(keys)]
    return picked.mean(dim=-1)


def best_head(scores: torch.Tensor) -> tuple[int, int]:
    place = scores.argmax().item()
    return divmod(place, scores.shape[1])


# === exercise: patch-activations | functions: record_activations, run_patched, patching_effect | kind: plain | what is wrong: run_patched leaves its hook in the model
# told: named
# now: named
# says: the hook is left in the model
@torch.no_grad()
def record_activations(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    kept = []

    def keep(block, inputs, output):
        kept.append(output[0].clone())

    handles = [block.register_forward_hook(keep) for block in model.blocks]
    model(ids)
    for handle in handles:
        handle.remove()
    return torch.stack(kept)


@torch.no_grad()
def run_patched(
    model: nn.Module,
    ids: torch.Tensor,
    layer: int,
    position: int,
    activation: torch.Tensor,
) -> torch.Tensor:
    def patch(block, inputs, output):
        changed = output.clone()
        changed[0, position] = activation
        return changed

    model.blocks[layer].register_forward_hook(patch)
    return model(ids)


@torch.no_grad()
def patching_effect(
    model: nn.Module,
    clean: torch.Tensor,
    corrupted: torch.Tensor,
    right: int,
    wrong: int,
) -> torch.Tensor:
    def difference(logits):
        return logits[0, -1, right] - logits[0, -1, wrong]

    activations = record_activations(model, clean)
    best, worst = difference(model(clean)), difference(model(corrupted))
    layers, length, _ = activations.shape
    effect = torch.zeros(layers, length)
    for layer in range(layers):
        for t in range(length):
            logits = run_patched(model, corrupted, layer, t, activations[layer, t])
            effect[layer, t] = (difference(logits) - worst) / (best - worst)
    return effect


# === exercise: patch-activations | functions: record_activations, run_patched, patching_effect | kind: subtle | what is wrong: to remove its hooks record_activations clears all hooks of the blocks, those of others too
# told: named
# now: named
# says: hooks of others are removed
@torch.no_grad()
def record_activations(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    outputs = {}
    for number, block in enumerate(model.blocks):

        def keep(module, inputs, output, number=number):
            outputs[number] = output.squeeze(0).clone()

        block.register_forward_hook(keep)
    model(ids)
    for block in model.blocks:
        block._forward_hooks.clear()
    return torch.stack([outputs[number] for number in range(len(model.blocks))])


@torch.no_grad()
def run_patched(
    model: nn.Module,
    ids: torch.Tensor,
    layer: int,
    position: int,
    activation: torch.Tensor,
) -> torch.Tensor:
    def replace(module, inputs, output):
        output = output.clone()
        output[:, position] = activation
        return output

    hook = model.blocks[layer].register_forward_hook(replace)
    try:
        return model(ids)
    finally:
        hook.remove()


@torch.no_grad()
def patching_effect(
    model: nn.Module,
    clean: torch.Tensor,
    corrupted: torch.Tensor,
    right: int,
    wrong: int,
) -> torch.Tensor:
    stored = record_activations(model, clean)

    def delta(logits):
        last = logits[0, -1]
        return last[right] - last[wrong]

    low = delta(model(corrupted))
    span = delta(model(clean)) - low
    rows = [
        torch.stack(
            [
                (delta(run_patched(model, corrupted, l, t, stored[l, t])) - low) / span
                for t in range(stored.shape[1])
            ]
        )
        for l in range(stored.shape[0])
    ]
    return torch.stack(rows)


# === exercise: logit-lens | functions: logit_lens, lens_gain | kind: plain | what is wrong: ranks are counted from 0
# told: named
# now: named
# says: ranks counted from 0
def logit_lens(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    mean_square = (stream**2).mean(dim=-1, keepdim=True)
    normed = stream / torch.sqrt(mean_square + 1e-5) * gamma
    logits = normed @ table.T
    t = torch.arange(len(targets))
    probability = logits.softmax(dim=-1)[:, t, targets]
    own = logits[:, t, targets].unsqueeze(-1)
    rank = (logits > own).sum(dim=-1)
    return probability, rank


def lens_gain(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
    order: torch.Tensor,
) -> torch.Tensor:
    mean_square = (stream**2).mean(dim=-1, keepdim=True)
    normed = stream / torch.sqrt(mean_square + 1e-5) * gamma
    logs = torch.log_softmax(normed @ table.T, dim=-1)
    t = torch.arange(len(targets))
    return (logs[:, t, targets] - logs[:, t, targets[order]]).mean(dim=-1)


# === exercise: logit-lens | functions: logit_lens, lens_gain | kind: double | what is wrong: (1) the rank counts tokens with an equal logit as ahead (>= in place of 1 plus >); (2) lens_gain shuffles the positions of the stream in place of the targets
# told: named
# now: named
# says: equal logits counted as larger
def logit_lens(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    x = stream * torch.rsqrt(stream.square().mean(-1, keepdim=True) + 1e-5) * gamma
    logits = torch.einsum("ltd,vd->ltv", x, table)
    index = targets.expand(len(stream), -1).unsqueeze(-1)  # (L + 1, T, 1)
    own = logits.gather(-1, index)
    rank = (logits >= own).sum(dim=-1)  # the token itself is the 1
    return torch.softmax(logits, -1).gather(-1, index).squeeze(-1), rank


def lens_gain(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
    order: torch.Tensor,
) -> torch.Tensor:
    right, _ = logit_lens(stream, gamma, table, targets)
    control, _ = logit_lens(stream[:, order], gamma, table, targets)
    return (right.log() - control.log()).mean(dim=1)


# === exercise: adamw-step | function: adamw_step | kind: plain | what is wrong: the weight decay is mixed into the gradient (Adam with an L2 penalty) instead of acting on the parameter beside it
# told: named
# now: named
# says: the decay is mixed into the gradient
def adamw_step(
    parameter: torch.Tensor,
    gradient: torch.Tensor,
    first: torch.Tensor,
    second: torch.Tensor,
    step: int,
    rate: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.01,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    beta1, beta2 = betas
    g = gradient + weight_decay * parameter
    m = torch.lerp(first, g, 1 - beta1)
    v = torch.lerp(second, g.square(), 1 - beta2)
    m_hat = m / (1 - beta1**step)
    v_hat = v / (1 - beta2**step)
    return parameter - rate * m_hat / (v_hat.sqrt() + eps), m, v


# === exercise: run-budget | function: run_budget | kind: plain | what is wrong: the table is counted twice, once for the embedding and once for the logits
# told: named
# now: named
# says: the table is counted twice
def run_budget(
    layers: int,
    d_model: int,
    heads: int,
    kv_heads: int,
    d_ff: int,
    vocab_size: int,
    tokens: int,
    length: int,
    window: int,
    number_bytes: int = 4,
) -> dict[str, int]:
    d_head = d_model // heads
    attention = 2 * d_model**2 + 2 * d_model * kv_heads * d_head
    swiglu = 3 * d_model * d_ff
    block = attention + swiglu + 2 * d_model
    embedding = vocab_size * d_model
    output = d_model * vocab_size
    parameters = embedding + layers * block + d_model + output

    def cache(positions, kept_heads):
        return 2 * layers * positions * kept_heads * d_head * number_bytes

    return dict(
        parameters=parameters,
        operations=6 * parameters * tokens,
        training_bytes=4 * parameters * number_bytes,
        cache_multi_head=cache(length, heads),
        cache_grouped=cache(length, kv_heads),
        cache_windowed=cache(min(length, window), kv_heads),
    )


# === exercise: induction-score | functions: induction_scores, best_head | kind: subtle | what is wrong: takes the earliest instead of the latest earlier occurrence of the token (argmax finds the first True; equal for tokens that occur twice)
# told: named
# now: named
# says: the first occurrence in place of the latest
def induction_scores(weights: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    same = (tokens.unsqueeze(1) == tokens.unsqueeze(0)).tril(diagonal=-1)
    queries = same.any(dim=-1).nonzero().squeeze(-1)
    previous = same[queries].long().argmax(dim=-1)
    return weights[:, :, queries, previous + 1].mean(dim=-1)


def best_head(scores: torch.Tensor) -> tuple[int, int]:
    layer, head = divmod(scores.argmax().item(), scores.shape[1])
    return layer, head


# === exercise: patch-activations | functions: record_activations, run_patched, patching_effect | kind: subtle | what is wrong: run_patched clears all hooks of the block after the run, so hooks of others are gone, too
# told: named
# now: named
# says: hooks of others are removed
@torch.no_grad()
def record_activations(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    kept, handles = [], []
    for block in model.blocks:
        handles.append(
            block.register_forward_hook(lambda _, __, output: kept.append(output[0].clone()))
        )
    model(ids)
    for handle in handles:
        handle.remove()
    return torch.stack(kept)


@torch.no_grad()
def run_patched(
    model: nn.Module,
    ids: torch.Tensor,
    layer: int,
    position: int,
    activation: torch.Tensor,
) -> torch.Tensor:
    def patch(block, inputs, output):
        output = output.clone()
        output[:, position] = activation
        return output

    block = model.blocks[layer]
    block.register_forward_hook(patch)
    logits = model(ids)
    block._forward_hooks.clear()  # leave nothing behind
    return logits


@torch.no_grad()
def patching_effect(
    model: nn.Module,
    clean: torch.Tensor,
    corrupted: torch.Tensor,
    right: int,
    wrong: int,
) -> torch.Tensor:
    def difference(logits):
        return logits[0, -1, right] - logits[0, -1, wrong]

    activations = record_activations(model, clean)
    best, worst = difference(model(clean)), difference(model(corrupted))
    layers, T, _ = activations.shape
    effect = torch.zeros(layers, T)
    for l in range(layers):
        for t in range(T):
            logits = run_patched(model, corrupted, l, t, activations[l, t])
            effect[l, t] = (difference(logits) - worst) / (best - worst)
    return effect


# === exercise: orthogonalise | function: orthogonalise | kind: double | what is wrong: (1) one Frobenius norm for the whole stack of matrices; (2) the second power of X Xᵀ is taken entry by entry instead of as a matrix product
# told: named
# now: named
# says: one norm for the whole stack, and entries squared in place of a matrix product
def orthogonalise(matrix: torch.Tensor, rounds: int = 5) -> torch.Tensor:
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrix.shape[-2] > matrix.shape[-1]
    x = matrix.mT if tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(rounds):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram**2) @ x
    if tall:
        x = x.mT
    return x


# === exercise: logit-lens | functions: logit_lens, lens_gain | kind: double | what is wrong: (1) the rank counts tokens with an equal logit as ahead; (2) lens_gain takes the order the wrong way round (control[order] = targets instead of targets[order])
# told: named
# now: named
# says: equal logits counted as larger
def logit_lens(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    rms = (stream.pow(2).mean(dim=-1, keepdim=True) + 1e-5).sqrt()
    logits = (stream / rms * gamma) @ table.T
    index = targets.expand(logits.shape[0], -1).unsqueeze(-1)
    own = logits.gather(-1, index)
    chance = logits.softmax(dim=-1).gather(-1, index).squeeze(-1)
    rank = (logits >= own).sum(dim=-1)
    return chance, rank


def lens_gain(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
    order: torch.Tensor,
) -> torch.Tensor:
    control = targets.clone()
    control[order] = targets
    right, _ = logit_lens(stream, gamma, table, targets)
    other, _ = logit_lens(stream, gamma, table, control)
    return (right.log() - other.log()).mean(dim=-1)
