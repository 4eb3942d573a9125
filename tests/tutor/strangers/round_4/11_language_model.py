# ruff: noqa
# fmt: off

# === exercise: bits-per-byte | function: bits_per_byte | kind: plain | what is wrong: divides by the characters, not by the bytes
# told: named
# now: named
# says: characters in place of bytes
def bits_per_byte(losses: torch.Tensor, text: str) -> float:
    bits = losses.sum().item() / math.log(2)
    return bits / len(text)


# === exercise: bits-per-byte | function: bits_per_byte | kind: plain | what is wrong: half-finished: prints the right number and returns nothing
# told: told
# now: told
def bits_per_byte(losses: torch.Tensor, text: str) -> float:
    bits = losses.sum() / math.log(2)
    n_bytes = len(text.encode("utf-8"))
    print("bits per byte:", (bits / n_bytes).item())


# === exercise: pack-documents | function: pack_documents | kind: subtle | what is wrong: number of blocks n // T, without the one token that the labels are ahead: one block too many if T divides n
# told: named
# now: named
# says: what is left over makes a block
def pack_documents(
    documents: list[list[int]], end_id: int, length: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    ids, numbers, positions = [], [], []
    for number, document in enumerate(documents):
        for position, token in enumerate(document + [end_id]):
            ids.append(token)
            numbers.append(number)
            positions.append(position)
    blocks = len(ids) // length
    labels = ids[1:] + [end_id]

    def cut(values):
        return torch.tensor(values[: blocks * length]).reshape(blocks, length)

    return cut(ids), cut(labels), cut(numbers), cut(positions)


# === exercise: pack-documents | function: pack_documents | kind: double | what is wrong: document numbers are recovered from the end ids (cumsum), so an end id counts to the next document AND positions begin anew in each block
# told: named
# now: named
# says: the end id belongs to the next document, and positions begin anew in each block
def pack_documents(
    documents: list[list[int]], end_id: int, length: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    stream = torch.tensor([t for document in documents for t in [*document, end_id]])
    n = (len(stream) - 1) // length
    inputs = stream[: n * length].reshape(n, length)
    labels = stream[1 : n * length + 1].reshape(n, length)
    numbers = (stream == end_id).cumsum(0)[: n * length].reshape(n, length)
    positions = torch.zeros_like(inputs)
    for b in range(n):
        p = 0
        for t in range(length):
            if t > 0 and numbers[b, t] != numbers[b, t - 1]:
                p = 0
            positions[b, t] = p
            p += 1
    return inputs, labels, numbers, positions


# === exercise: document-mask | function: document_mask | kind: plain | what is wrong: causal mask is taken over numbers of documents (>=): earlier documents can be read
# told: named
# now: named
# says: documents see each other
def document_mask(documents: torch.Tensor) -> torch.Tensor:
    T = documents.shape[1]
    query = documents.unsqueeze(2)
    key = documents.unsqueeze(1)
    return ((query >= key) & causal_mask(T)).unsqueeze(1)


# === exercise: causal-attention | function: causal_attention | kind: plain | what is wrong: values are rotated, too
# told: named
# now: named
# says: the values are rotated, too
def causal_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rotary: bool = False
) -> torch.Tensor:
    if rotary:
        q, k, v = (apply_rotary(t) for t in (q, k, v))
    times = q.shape[-3] // k.shape[-3]
    k, v = repeat_heads(k, times), repeat_heads(v, times)
    output, _ = scaled_dot_product_attention(q, k, v, causal_mask(q.shape[-2]))
    return output


# === exercise: causal-attention | function: causal_attention | kind: double | what is wrong: rotation acts on (B, T, heads, d_k) after a transpose, so positions are those of the heads AND shared heads are repeated by repeat (in turn)
# told: wrong
# now: named
# says: rotated by the number of the head, and kv heads dealt out in turn
def causal_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rotary: bool = False
) -> torch.Tensor:
    if rotary:
        q = apply_rotary(q.transpose(1, 2)).transpose(1, 2)
        k = apply_rotary(k.transpose(1, 2)).transpose(1, 2)
    group = q.size(1) // k.size(1)
    k = k.repeat(1, group, 1, 1)
    v = v.repeat(1, group, 1, 1)
    return scaled_dot_product_attention(q, k, v, causal_mask(q.size(2)))[0]


# === exercise: block-from-configuration | function: DecoderBlock | kind: subtle | what is wrong: one RMS norm, norm_q, serves queries and keys; norm_k is never used
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
        Norm = {"layer": LayerNorm, "rms": RMSNorm}[norm]
        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        if feed_forward == "swiglu":
            self.feed_forward = SwiGLU(d_model, d_ff)
        else:
            self.feed_forward = FeedForward(d_model, d_ff, feed_forward)
        self.norm_1 = Norm(d_model)
        self.norm_2 = Norm(d_model)
        self.norm_q = RMSNorm(d_model // heads) if qk_norm else nn.Identity()
        self.norm_k = RMSNorm(d_model // heads) if qk_norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def project(self, x):
        x = self.norm_1(x)
        q = split_heads(x @ self.attention.w_q, self.heads)
        k = split_heads(x @ self.attention.w_k, self.kv_heads)
        v = split_heads(x @ self.attention.w_v, self.kv_heads)
        return self.norm_q(q), self.norm_q(k), v

    def finish(self, x, z):
        y = x + self.dropout(merge_heads(z) @ self.attention.w_o)
        return y + self.dropout(self.feed_forward(self.norm_2(y)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


# === exercise: block-from-configuration | function: DecoderBlock | kind: double | what is wrong: values are made of x before its norm AND feed_forward "relu" and "gelu" both build ReLU (the argument is not passed on)
# told: named
# now: named
# says: not all three are of the normalised x
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
        d_k = d_model // heads
        make = RMSNorm if norm == "rms" else LayerNorm
        self.norm_1, self.norm_2 = make(d_model), make(d_model)
        self.norm_q = RMSNorm(d_k) if qk_norm else nn.Identity()
        self.norm_k = RMSNorm(d_k) if qk_norm else nn.Identity()
        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        self.feed_forward = (
            SwiGLU(d_model, d_ff) if feed_forward == "swiglu" else FeedForward(d_model, d_ff)
        )
        self.dropout = nn.Dropout(dropout)

    def project(self, x):
        n = self.norm_1(x)
        q = self.norm_q(split_heads(n @ self.attention.w_q, self.heads))
        k = self.norm_k(split_heads(n @ self.attention.w_k, self.kv_heads))
        v = split_heads(x @ self.attention.w_v, self.kv_heads)
        return q, k, v

    def finish(self, x, z):
        y = x + self.dropout(merge_heads(z) @ self.attention.w_o)
        return y + self.dropout(self.feed_forward(self.norm_2(y)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


# === exercise: write-with-cache | function: write_with_cache | kind: subtle | what is wrong: the last written token is read, too (one call too many), and length 0 reads the prompt
# dropped: the check forgives on purpose that the last token is read, too: the text is right and nothing is read twice
@torch.no_grad()
def write_with_cache(model: nn.Module, prompt: list[int], length: int) -> list[int]:
    if len(prompt) == 0:
        raise ValueError("the prompt is empty")
    text = list(prompt)
    logits, cache = model(torch.tensor([prompt]), 0, None)
    for _ in range(length):
        token = int(logits[0, -1].argmax())
        text.append(token)
        logits, cache = model(torch.tensor([[token]]), len(text) - 1, cache)
    return text


# === exercise: write-with-cache | function: write_with_cache | kind: double | what is wrong: the start of a new token is one too small (number of tokens before it minus 1) AND the first cache is handed back every time
# told: named
# now: named
# says: a position is used twice
@torch.no_grad()
def write_with_cache(model: nn.Module, prompt: list[int], length: int) -> list[int]:
    if not prompt:
        raise ValueError("empty prompt")
    ids = prompt[:]
    if length == 0:
        return ids
    logits, cache = model(torch.tensor(prompt)[None], 0, None)
    ids.append(logits[0, -1].argmax().item())
    while len(ids) < len(prompt) + length:
        logits, _ = model(torch.tensor([[ids[-1]]]), len(ids) - 2, cache)
        ids.append(logits[0, -1].argmax().item())
    return ids


# === exercise: online-softmax | function: online_step, online_softmax | kind: plain | what is wrong: sum is rescaled, the old output is not
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
    shape = scores.shape[:-1]
    maximum = torch.full((*shape, 1), -math.inf)
    total = torch.zeros(*shape, 1)
    output = torch.zeros(*shape, values.shape[-1])
    for scores, values in blocks:
        maximum, total, output = online_step(maximum, total, output, scores, values)
    return output / total.masked_fill(total == 0, 1.0)


# === exercise: tiled-attention | function: attend_from_tile, tiled_attention | kind: double | what is wrong: causal queries are the first T_q positions (query i at position i), wrong if T_q and T_k differ AND future tiles are masked but not skipped, so NaN in them gets through
# told: named
# now: named
# says: causal from the first key on
def attend_from_tile(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, block: int, last: torch.Tensor
) -> torch.Tensor:
    maximum = torch.full((*q.shape[:-1], 1), -math.inf)
    total = torch.zeros_like(maximum)
    output = torch.zeros(*q.shape[:-1], v.shape[-1])
    for start in range(0, k.shape[-2], block):
        keys = k[..., start : start + block, :]
        values = v[..., start : start + block, :]
        scores = q @ keys.transpose(-1, -2) / math.sqrt(q.shape[-1])
        position = torch.arange(start, start + keys.shape[-2])
        scores = scores.masked_fill(position > last, -math.inf)
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
    if causal:
        last = torch.arange(T_q).unsqueeze(1)
    else:
        last = torch.full((T_q, 1), T_k - 1)
    tiles = []
    for start in range(0, T_q, block):
        rows = slice(start, start + block)
        tiles.append(attend_from_tile(q[..., rows, :], k, v, block, last[rows]))
    return torch.cat(tiles, dim=-2)


# === exercise: adamw-step | function: adamw_step | kind: subtle | what is wrong: epsilon inside the root of the second moment
# told: named
# now: named
# says: eps inside the root
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
    first = b1 * first + (1 - b1) * gradient
    second = b2 * second + (1 - b2) * gradient * gradient
    m_hat = first / (1 - b1**step)
    v_hat = second / (1 - b2**step)
    new = parameter * (1 - rate * weight_decay) - rate * m_hat / torch.sqrt(v_hat + eps)
    return new, first, second


# === exercise: adamw-step | function: adamw_step | kind: double | what is wrong: decay goes through the gradient (Adam with L2) AND the corrected moments are returned
# told: named
# now: named
# says: the decay is mixed into the gradient, and corrected moments are returned
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
    gradient = gradient + weight_decay * parameter
    m = betas[0] * first + (1 - betas[0]) * gradient
    v = betas[1] * second + (1 - betas[1]) * gradient**2
    m = m / (1 - betas[0] ** step)
    v = v / (1 - betas[1] ** step)
    return parameter - rate * m / (v.sqrt() + eps), m, v


# === exercise: orthogonalise | function: orthogonalise | kind: subtle | what is wrong: Frobenius norm of the whole stack, not of each matrix; right for a single matrix
# told: named
# now: named
# says: one norm for the whole stack
def orthogonalise(matrix: torch.Tensor, rounds: int = 5) -> torch.Tensor:
    a, b, c = 3.4445, -4.7750, 2.0315
    transposed = matrix.size(-2) > matrix.size(-1)
    X = matrix.transpose(-2, -1) if transposed else matrix
    X = X / (X.norm() + 1e-7)
    for _ in range(rounds):
        A = X @ X.transpose(-2, -1)
        B = b * A + c * A @ A
        X = a * X + B @ X
    return X.transpose(-2, -1) if transposed else X


# === exercise: run-budget | function: run_budget | kind: double | what is wrong: the last norm is left out of the parameters AND cache_windowed takes window positions for a text shorter than the window, too
# told: named
# now: named
# says: the last norm is forgotten, and the window of a shorter text
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
    attention = 2 * d_model * d_model + 2 * d_model * kv_heads * d_k
    network = 3 * d_model * d_ff
    parameters = layers * (attention + network + 2 * d_model) + vocab_size * d_model
    per_position = 2 * layers * d_k * number_bytes
    return {
        "parameters": parameters,
        "operations": 6 * parameters * tokens,
        "training_bytes": 4 * parameters * number_bytes,
        "cache_multi_head": per_position * heads * length,
        "cache_grouped": per_position * kv_heads * length,
        "cache_windowed": per_position * kv_heads * window,
    }


# === exercise: scaling-law | function: predicted_loss, fit_scaling_law, compute_optimal | kind: double | what is wrong: N is counted without the embedding in the fit AND fit uses nats per token in place of bits per byte
# told: useless
# now: named
# says: the embedding is not counted, and nats per token in place of bits per byte
def predicted_loss(law: dict[str, float], parameters: float, tokens: float) -> float:
    return law["E"] + law["A"] / parameters ** law["a"] + law["B"] / tokens ** law["b"]


def fit_scaling_law(
    runs: list[dict[str, float]], exponents: list[float]
) -> dict[str, float]:
    N = torch.tensor([float(run["parameters"]) for run in runs], dtype=torch.float64)
    D = torch.tensor([float(run["tokens"]) for run in runs], dtype=torch.float64)
    loss = torch.tensor([run["nats_per_token"] for run in runs], dtype=torch.float64)
    best, law = math.inf, {}
    for a in exponents:
        for b in exponents:
            columns = torch.stack([torch.ones_like(N), N**-a, D**-b], dim=1)
            solution = torch.linalg.lstsq(columns, loss[:, None]).solution
            error = (columns @ solution - loss[:, None]).square().sum().item()
            if error < best:
                best = error
                E, A, B = solution[:, 0].tolist()
                law = {"E": E, "A": A, "B": B, "a": a, "b": b}
    return law


def compute_optimal(law: dict[str, float], budget: float) -> tuple[float, float]:
    a, b = law["a"], law["b"]
    N = (a * law["A"] / (b * law["B"])) ** (1 / (a + b)) * (budget / 6) ** (b / (a + b))
    return N, budget / (6 * N)


# === exercise: induction-score | function: induction_scores, best_head | kind: subtle | what is wrong: takes the first earlier occurrence of a token, not the latest; equal if no token comes three times
# told: named
# now: named
# says: the first occurrence in place of the latest
def induction_scores(weights: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    queries, keys = [], []
    ids = tokens.tolist()
    for t, token in enumerate(ids):
        first = ids.index(token)
        if first < t:
            queries.append(t)
            keys.append(first + 1)
    return weights[:, :, queries, keys].mean(dim=-1)


def best_head(scores: torch.Tensor) -> tuple[int, int]:
    layer, head = divmod(int(scores.argmax()), scores.shape[1])
    return layer, head


# === exercise: patch-activations | function: record_activations, run_patched, patching_effect | kind: subtle | what is wrong: the hook of run_patched is never removed, so later runs are patched, too
# told: named
# now: named
# says: the hook is left in the model
@torch.no_grad()
def record_activations(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    kept = []
    handles = [
        block.register_forward_hook(lambda b, i, output: kept.append(output[0].clone()))
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
    def patch(block, inputs, output):
        output = output.clone()
        output[0, position] = activation
        return output

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
    high, low = difference(model(clean)), difference(model(corrupted))
    effect = torch.zeros(activations.shape[:2])
    for layer in range(activations.shape[0]):
        for t in range(activations.shape[1]):
            patched = run_patched(model, corrupted, layer, t, activations[layer, t])
            effect[layer, t] = (difference(patched) - low) / (high - low)
    return effect


# === exercise: logit-lens | function: logit_lens, lens_gain | kind: double | what is wrong: rank counts tokens that are equally large (>=) and so begins at 2 with the + 1 AND epsilon is added to the root, not under it
# told: told
# now: named
# says: the token itself is counted, too
def logit_lens(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    rms = stream.pow(2).mean(dim=-1, keepdim=True).sqrt()
    logits = (stream / (rms + 1e-5) * gamma) @ table.T
    positions = torch.arange(len(targets))
    probability = logits.softmax(dim=-1)[:, positions, targets]
    mine = logits[:, positions, targets].unsqueeze(-1)
    rank = (logits >= mine).sum(dim=-1) + 1
    return probability, rank


def lens_gain(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
    order: torch.Tensor,
) -> torch.Tensor:
    right, _ = logit_lens(stream, gamma, table, targets)
    control, _ = logit_lens(stream, gamma, table, targets[order])
    return (right.log() - control.log()).mean(dim=-1)
