# ruff: noqa
# fmt: off

# === exercise: bits-per-byte | function: bits_per_byte | kind: plain | what is wrong: divides by the number of characters
# told: named
# now: named
# says: characters in place of bytes
def bits_per_byte(losses: torch.Tensor, text: str) -> float:
    bits = losses.sum().item() / math.log(2)
    return bits / len(text)


# === exercise: pack-documents | function: pack_documents | kind: subtle | what is wrong: n // T blocks, with labels by roll: when T divides n the last label is the first token of all
# told: named
# now: named
# says: what is left over makes a block
def pack_documents(
    documents: list[list[int]], end_id: int, length: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    stream, owners, places = [], [], []
    for number, document in enumerate(documents):
        tokens = [*document, end_id]
        stream += tokens
        owners += [number] * len(tokens)
        places += range(len(tokens))
    ids = torch.tensor(stream)
    following = ids.roll(-1)
    blocks = len(stream) // length

    def cut(row):
        return torch.as_tensor(row)[: blocks * length].reshape(blocks, length)

    return cut(ids), cut(following), cut(owners), cut(places)


# === exercise: pack-documents | function: pack_documents | kind: double | what is wrong: the end id belongs to the document that follows AND the positions begin at 0 again in each block
# told: named
# now: named
# says: the end id belongs to the next document, and positions begin anew in each block
def pack_documents(
    documents: list[list[int]], end_id: int, length: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    stream, owner = [], []
    for i, document in enumerate(documents):
        for token in document:
            stream.append(token)
            owner.append(i)
        stream.append(end_id)
        owner.append(i + 1)
    n = (len(stream) - 1) // length
    inputs = torch.tensor(stream[: n * length]).view(n, length)
    labels = torch.tensor(stream[1 : n * length + 1]).view(n, length)
    owners = torch.tensor(owner[: n * length]).view(n, length)
    positions = torch.zeros_like(owners)
    for b in range(n):
        for t in range(1, length):
            if owners[b, t] == owners[b, t - 1]:
                positions[b, t] = positions[b, t - 1] + 1
    return inputs, labels, owners, positions


# === exercise: document-mask | function: document_mask | kind: plain | what is wrong: the axis for the heads is missing, (B, T, T)
# told: named
# now: named
# says: no axis for the heads
def document_mask(documents: torch.Tensor) -> torch.Tensor:
    same = documents[:, :, None] == documents[:, None, :]
    return same & causal_mask(documents.shape[-1])


# === exercise: causal-attention | function: causal_attention | kind: double | what is wrong: deals the shared heads out in turn (repeat), not in neighbouring groups AND rotates the values, too
# told: named
# now: named
# says: the values are rotated, too, and kv heads dealt out in turn
def causal_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rotary: bool = False
) -> torch.Tensor:
    if rotary:
        q, k, v = map(apply_rotary, (q, k, v))
    groups = q.shape[1] // k.shape[1]
    k, v = k.repeat(1, groups, 1, 1), v.repeat(1, groups, 1, 1)
    output, _ = scaled_dot_product_attention(q, k, v, causal_mask(q.shape[2]))
    return output


# === exercise: block-from-configuration | function: DecoderBlock | kind: subtle | what is wrong: norm_q normalises the queries and the keys, norm_k is never used (the same as long as both gammas are)
# told: named
# now: named
# says: one norm for queries and keys
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
        kind = {"layer": LayerNorm, "rms": RMSNorm}[norm]
        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        if feed_forward == "swiglu":
            self.feed_forward = SwiGLU(d_model, d_ff)
        else:
            self.feed_forward = FeedForward(d_model, d_ff, feed_forward)
        self.norm_1, self.norm_2 = kind(d_model), kind(d_model)
        d_k = d_model // heads
        self.norm_q = RMSNorm(d_k) if qk_norm else nn.Identity()
        self.norm_k = RMSNorm(d_k) if qk_norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def project(
        self, x: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        x = self.norm_1(x)
        q = split_heads(x @ self.attention.w_q, self.heads)
        k = split_heads(x @ self.attention.w_k, self.kv_heads)
        v = split_heads(x @ self.attention.w_v, self.kv_heads)
        return self.norm_q(q), self.norm_q(k), v

    def finish(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        y = x + self.dropout(merge_heads(z) @ self.attention.w_o)
        return y + self.dropout(self.feed_forward(self.norm_2(y)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run both halves; x and result (B, T, d_model)."""
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


# === exercise: block-from-configuration | function: DecoderBlock | kind: double | what is wrong: QK norm is as wide as the model and acts before the split AND the network's half gets no dropout
# told: named
# now: named
# says: norms of queries and keys as wide as the model
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
        Norm = LayerNorm if norm == "layer" else RMSNorm
        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        self.feed_forward = (
            SwiGLU(d_model, d_ff)
            if feed_forward == "swiglu"
            else FeedForward(d_model, d_ff, feed_forward)
        )
        self.norm_1 = Norm(d_model)
        self.norm_2 = Norm(d_model)
        self.norm_q = self.norm_k = nn.Identity()
        if qk_norm:
            self.norm_q = RMSNorm(d_model)
            self.norm_k = RMSNorm(d_model // heads * kv_heads)
        self.dropout = nn.Dropout(dropout)

    def project(
        self, x: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        h = self.norm_1(x)
        q = self.norm_q(h @ self.attention.w_q)
        k = self.norm_k(h @ self.attention.w_k)
        v = h @ self.attention.w_v
        return (
            split_heads(q, self.heads),
            split_heads(k, self.kv_heads),
            split_heads(v, self.kv_heads),
        )

    def finish(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        x = x + self.dropout(merge_heads(z) @ self.attention.w_o)
        return x + self.feed_forward(self.norm_2(x))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run both halves; x and result (B, T, d_model)."""
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


# === exercise: write-with-cache | function: write_with_cache | kind: plain | what is wrong: the position of a new token is the length of the text with it, one too far
# told: named
# now: named
# says: positions one too far
@torch.no_grad()
def write_with_cache(model: nn.Module, prompt: list[int], length: int) -> list[int]:
    if not prompt:
        raise ValueError("the prompt is empty")
    text, new, start, cache = list(prompt), list(prompt), 0, None
    for _ in range(length):
        logits, cache = model(torch.tensor([new]), start, cache)
        token = logits[0, -1].argmax().item()
        text.append(token)
        new, start = [token], len(text)
    return text


# === exercise: online-softmax | function: online_step, online_softmax | kind: double | what is wrong: rescales the old sum but not the old output AND a query that may attend to nothing gives 0/0
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
    safe = new.masked_fill(new == -math.inf, 0.0)
    factor = torch.exp(maximum - safe)
    weights = torch.exp(scores - safe)
    total = total * factor + weights.sum(dim=-1, keepdim=True)
    output = output + weights @ values
    return new, total, output


def online_softmax(blocks: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    scores, values = blocks[0]
    maximum = torch.full((*scores.shape[:-1], 1), -math.inf)
    total = torch.zeros_like(maximum)
    output = torch.zeros(*scores.shape[:-1], values.shape[-1])
    for scores, values in blocks:
        maximum, total, output = online_step(maximum, total, output, scores, values)
    return output / total


# === exercise: tiled-attention | function: attend_from_tile, tiled_attention | kind: subtle | what is wrong: with causal=True query i sees the keys up to i, as if the queries were the first positions; right whenever T_q = T_k
# told: named
# now: named
# says: causal from the first key on
def attend_from_tile(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, block: int, last: torch.Tensor
) -> torch.Tensor:
    lead = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2])
    rows = q.shape[-2]
    maximum = q.new_full((*lead, rows, 1), -math.inf)
    total = q.new_zeros((*lead, rows, 1))
    output = q.new_zeros((*lead, rows, v.shape[-1]))
    for start in range(0, k.shape[-2], block):
        if start > last.max():
            break
        keys, values = k[..., start : start + block, :], v[..., start : start + block, :]
        scores = q @ keys.transpose(-1, -2) / math.sqrt(q.shape[-1])
        positions = torch.arange(start, start + keys.shape[-2])
        scores = scores.masked_fill(positions > last, -math.inf)
        maximum, total, output = online_step(maximum, total, output, scores, values)
    return output / torch.where(total == 0, torch.ones_like(total), total)


def tiled_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    block: int,
    causal: bool = False,
) -> torch.Tensor:
    T_q, T_k = q.shape[-2], k.shape[-2]
    last = torch.arange(T_q)[:, None] if causal else torch.full((T_q, 1), T_k - 1)
    tiles = [
        attend_from_tile(q[..., i : i + block, :], k, v, block, last[i : i + block])
        for i in range(0, T_q, block)
    ]
    return torch.cat(tiles, dim=-2)


# === exercise: adamw-step | function: adamw_step | kind: double | what is wrong: returns the corrected moments AND epsilon is added under the root
# told: named
# now: named
# says: eps inside the root, and corrected moments are returned
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
    b1, b2 = betas
    first = (b1 * first + (1 - b1) * gradient) / (1 - b1**step)
    second = (b2 * second + (1 - b2) * gradient**2) / (1 - b2**step)
    update = first / torch.sqrt(second + eps)
    parameter = parameter - rate * weight_decay * parameter - rate * update
    return parameter, first, second


# === exercise: adamw-step | function: adamw_step | kind: plain | what is wrong: the decay goes through the gradient and its moments: Adam with an L2 penalty
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
    g = gradient + weight_decay * parameter
    m = torch.lerp(first, g, 1 - betas[0])
    v = torch.lerp(second, g * g, 1 - betas[1])
    m_hat = m / (1 - betas[0] ** step)
    v_hat = v / (1 - betas[1] ** step)
    return parameter - rate * m_hat / (v_hat.sqrt() + eps), m, v


# === exercise: orthogonalise | function: orthogonalise | kind: double | what is wrong: divides a stack by the norm of the whole stack AND squares X·Xᵀ entry by entry
# told: named
# now: named
# says: one norm for the whole stack, and entries squared in place of a matrix product
def orthogonalise(matrix: torch.Tensor, rounds: int = 5) -> torch.Tensor:
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrix.shape[-2] > matrix.shape[-1]
    x = matrix.mT if tall else matrix
    x = x / (x.norm() + 1e-7)
    for _ in range(rounds):
        square = x @ x.mT
        x = a * x + (b * square + c * square**2) @ x
    return x.mT if tall else x


# === exercise: run-budget | function: run_budget | kind: subtle | what is wrong: the windowed cache always holds window positions, even of a shorter text
# told: named
# now: named
# says: the window of a shorter text
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
    d_k = d_model // heads
    attention = 2 * d_model**2 + 2 * d_model * kv_heads * d_k
    block = attention + 3 * d_model * d_ff + 2 * d_model
    parameters = layers * block + vocab_size * d_model + d_model

    def cache(positions, some_heads):
        return 2 * layers * positions * some_heads * d_k * number_bytes

    return {
        "parameters": parameters,
        "operations": 6 * parameters * tokens,
        "training_bytes": 4 * parameters * number_bytes,
        "cache_multi_head": cache(length, heads),
        "cache_grouped": cache(length, kv_heads),
        "cache_windowed": cache(window, kv_heads),
    }


# === exercise: run-budget | function: run_budget | kind: plain | what is wrong: counts two matrices d × d_ff, as of an ordinary network, where SwiGLU has three
# told: named
# now: named
# says: two matrices in the feed-forward network
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
    width = d_model // heads * kv_heads
    per_block = [
        d_model * d_model,  # queries
        d_model * width,  # keys
        d_model * width,  # values
        d_model * d_model,  # output
        d_model * d_ff,  # up
        d_ff * d_model,  # down
        2 * d_model,  # norms
    ]
    n = layers * sum(per_block) + vocab_size * d_model + d_model
    row = 2 * layers * number_bytes
    return dict(
        parameters=n,
        operations=6 * n * tokens,
        training_bytes=4 * n * number_bytes,
        cache_multi_head=row * length * d_model,
        cache_grouped=row * length * width,
        cache_windowed=row * min(length, window) * width,
    )


# === exercise: scaling-law | function: predicted_loss, fit_scaling_law, compute_optimal | kind: double | what is wrong: the fit leaves the embedding out of N AND the budget is raised to a/(a+b) in place of b/(a+b)
# told: named
# now: named
# says: the embedding is not counted
def predicted_loss(law: dict[str, float], parameters: float, tokens: float) -> float:
    return law["E"] + law["A"] / parameters ** law["a"] + law["B"] / tokens ** law["b"]


def fit_scaling_law(
    runs: list[dict[str, float]], exponents: list[float]
) -> dict[str, float]:
    N = torch.tensor([run["parameters"] for run in runs], dtype=torch.float64)
    D = torch.tensor([run["tokens"] for run in runs], dtype=torch.float64)
    L = torch.tensor([run["bits_per_byte"] for run in runs], dtype=torch.float64)
    best, smallest = None, math.inf
    for a in exponents:
        for b in exponents:
            columns = torch.stack((torch.ones_like(N), N**-a, D**-b), dim=1)
            solution = torch.linalg.lstsq(columns, L[:, None]).solution
            error = ((columns @ solution)[:, 0] - L).square().sum().item()
            if error < smallest:
                E, A, B = solution[:, 0].tolist()
                best, smallest = {"E": E, "A": A, "B": B, "a": a, "b": b}, error
    return best


def compute_optimal(law: dict[str, float], budget: float) -> tuple[float, float]:
    a, b = law["a"], law["b"]
    ratio = (a * law["A"]) / (b * law["B"])
    parameters = ratio ** (1 / (a + b)) * (budget / 6) ** (a / (a + b))
    return parameters, budget / (6 * parameters)


# === exercise: induction-score | function: induction_scores, best_head | kind: subtle | what is wrong: looks for the earliest occurrence of the token, not for the latest
# told: named
# now: named
# says: the first occurrence in place of the latest
def induction_scores(weights: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    seen = {}
    queries, keys = [], []
    for t, token in enumerate(tokens.tolist()):
        if token in seen:
            queries.append(t)
            keys.append(seen[token] + 1)
        else:
            seen[token] = t
    return weights[:, :, queries, keys].mean(dim=-1)


def best_head(scores: torch.Tensor) -> tuple[int, int]:
    return divmod(scores.argmax().item(), scores.shape[1])


# === exercise: induction-score | function: induction_scores, best_head | kind: plain | what is wrong: takes the weight on the earlier occurrence itself, p(t), not on what followed it
# told: named
# now: named
# says: the previous occurrence itself
def induction_scores(weights: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    same = tokens[:, None] == tokens[None, :]
    earlier = torch.tril(same, diagonal=-1)
    positions = torch.arange(len(tokens))
    latest = torch.where(earlier, positions, -1).max(dim=1).values
    t = positions[latest >= 0]
    return weights[..., t, latest[t]].mean(dim=-1)


def best_head(scores: torch.Tensor) -> tuple[int, int]:
    layer, head = torch.unravel_index(scores.argmax(), scores.shape)
    return int(layer), int(head)


# === exercise: patch-activations | function: record_activations, run_patched, patching_effect | kind: double | what is wrong: run_patched never removes its hook AND the effect is divided by the clean difference alone
# told: named
# now: named
# says: the hook is left in the model
@torch.no_grad()
def record_activations(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    kept = []
    handles = [
        block.register_forward_hook(lambda module, inputs, output: kept.append(output[0]))
        for block in model.blocks
    ]
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
    def patch(module, inputs, output):
        changed = output.clone()
        changed[:, position] = activation
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
    def delta(logits):
        return logits[0, -1, right] - logits[0, -1, wrong]

    activations = record_activations(model, clean)
    of_clean, of_corrupted = delta(model(clean)), delta(model(corrupted))
    effect = torch.zeros(activations.shape[:2])
    for layer in range(effect.shape[0]):
        for t in range(effect.shape[1]):
            logits = run_patched(model, corrupted, layer, t, activations[layer, t])
            effect[layer, t] = (delta(logits) - of_corrupted) / of_clean
    return effect


# === exercise: logit-lens | function: logit_lens, lens_gain | kind: subtle | what is wrong: in the gain takes the logarithm of the mean probabilities, not the mean of the logarithms (the same for one position)
# told: named
# now: named
# says: the logarithm of the mean
def logit_lens(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    normed = stream / (stream.square().mean(-1, keepdim=True) + 1e-5).sqrt() * gamma
    logits = normed @ table.T
    index = targets.expand(len(stream), -1).unsqueeze(-1)
    probabilities = logits.softmax(-1).gather(-1, index).squeeze(-1)
    ranks = (logits > logits.gather(-1, index)).sum(-1) + 1
    return probabilities, ranks


def lens_gain(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
    order: torch.Tensor,
) -> torch.Tensor:
    right, _ = logit_lens(stream, gamma, table, targets)
    control, _ = logit_lens(stream, gamma, table, targets[order])
    return torch.log(right.mean(dim=1)) - torch.log(control.mean(dim=1))
