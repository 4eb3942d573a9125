# ruff: noqa
# fmt: off

# === exercise: bits-per-byte | function: bits_per_byte | kind: plain | what is wrong: nats are turned into bits by multiplying with ln 2 in place of dividing by it, so every text with a loss above 0 comes out (ln 2)^2 = 0.48 times too small
# told: named
# now: named
# says: multiplied by ln 2
def bits_per_byte(losses: torch.Tensor, text: str) -> float:
    nats = losses.sum().item()
    bits = nats * math.log(2)
    return bits / len(text.encode("utf-8"))


# === exercise: causal-attention | function: causal_attention | kind: plain | what is wrong: the queries are divided by sqrt(d_k) before scaled_dot_product_attention divides the scores by it again, so with d_k > 1 all weights are too flat for every query that sees two keys or more
# told: told
# now: named
# says: scaled twice
def causal_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rotary: bool = False
) -> torch.Tensor:
    if rotary:
        q, k = apply_rotary(q), apply_rotary(k)
    group = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(group, dim=1)
    v = v.repeat_interleave(group, dim=1)
    q = q / math.sqrt(q.shape[-1])
    z, _ = scaled_dot_product_attention(q, k, v, causal_mask(q.shape[-2]))
    return z


# === exercise: adamw-step | function: adamw_step | kind: plain | what is wrong: the decay is not multiplied by the learning rate (the parameter loses weight_decay * parameter in place of rate * weight_decay * parameter), which shows whenever weight_decay is not 0 and rate is not 1
# told: named
# now: named
# says: the decay is not multiplied by the rate
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
    m = beta1 * first + (1 - beta1) * gradient
    v = beta2 * second + (1 - beta2) * gradient**2
    m_hat = m / (1 - beta1**step)
    v_hat = v / (1 - beta2**step)
    new = parameter - weight_decay * parameter - rate * m_hat / (v_hat.sqrt() + eps)
    return new, m, v


# === exercise: patch-activations | function: record_activations, run_patched, patching_effect | kind: plain | what is wrong: patching_effect takes the difference of the two probabilities (after a softmax) in place of the two logits, so the shares are wrong wherever a patch brings back neither nothing nor everything
# told: named
# now: named
# says: probabilities in place of logits
@torch.no_grad()
def record_activations(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    kept = []

    def keep(module, inputs, output):
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
    def replace(module, inputs, output):
        changed = output.clone()
        changed[0, position] = activation
        return changed

    handle = model.blocks[layer].register_forward_hook(replace)
    logits = model(ids)
    handle.remove()
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
        last = logits[0, -1].softmax(dim=-1)
        return last[right] - last[wrong]

    saved = record_activations(model, clean)
    top = difference(model(clean))
    bottom = difference(model(corrupted))
    effect = torch.zeros(saved.shape[:2])
    for layer in range(saved.shape[0]):
        for position in range(saved.shape[1]):
            logits = run_patched(
                model, corrupted, layer, position, saved[layer, position]
            )
            effect[layer, position] = (difference(logits) - bottom) / (top - bottom)
    return effect


# === exercise: orthogonalise | function: orthogonalise | kind: plain | what is wrong: the matrix is divided by its Frobenius norm at the start of every round in place of once before the first, so from two rounds on the singular values are wrong (too small as soon as there are several of them)
# told: named
# now: named
# says: normalised in every round
def orthogonalise(matrix: torch.Tensor, rounds: int = 5) -> torch.Tensor:
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrix.shape[-2] > matrix.shape[-1]
    x = matrix.mT if tall else matrix
    for _ in range(rounds):
        x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return x.mT if tall else x


# === exercise: pack-documents | function: pack_documents | kind: subtle | what is wrong: the number of blocks is n // T with labels made by roll(-1), so when n is a multiple of T there is one block too many, and its last label is the first token of the whole stream
# told: named
# now: named
# says: what is left over makes a block
def pack_documents(
    documents: list[list[int]], end_id: int, length: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    stream = torch.tensor([i for doc in documents for i in [*doc, end_id]])
    sizes = torch.tensor([len(doc) + 1 for doc in documents])
    owner = torch.repeat_interleave(torch.arange(len(documents)), sizes)
    place = torch.cat([torch.arange(int(size)) for size in sizes])
    blocks = len(stream) // length
    keep = blocks * length
    following = stream.roll(-1)
    inputs, labels, owners, places = (
        x[:keep].reshape(blocks, length) for x in (stream, following, owner, place)
    )
    return inputs, labels, owners, places


# === exercise: document-mask | function: document_mask | kind: subtle | what is wrong: a new document is recognised only where the number rises from one position to the next (diff > 0), so where the numbers fall, as in [[3, 3, 1, 1]], the later document can read the earlier one
# told: told
# now: named
# says: a new document only where the number rises
def document_mask(documents: torch.Tensor) -> torch.Tensor:
    batch, length = documents.shape
    # how many documents have begun up to each position
    begins = torch.zeros_like(documents)
    begins[:, 1:] = (documents.diff(dim=1) > 0).to(documents.dtype)
    segment = begins.cumsum(dim=1)
    together = segment[:, :, None] == segment[:, None, :]
    index = torch.arange(length, device=documents.device)
    earlier = index[None, :] <= index[:, None]
    return (together & earlier)[:, None]


# === exercise: block-from-configuration | function: DecoderBlock | kind: subtle | what is wrong: finish normalises with norm_1 a second time in place of norm_2 before the network, which is right in a fresh block and wrong as soon as the two norms have different gammas (or betas)
# told: named
# now: named
# says: one norm for both halves
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
        width = d_model // heads
        self.norm_q = RMSNorm(width) if qk_norm else nn.Identity()
        self.norm_k = RMSNorm(width) if qk_norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def project(
        self, x: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        h = self.norm_1(x)
        q = self.norm_q(split_heads(h @ self.attention.w_q, self.heads))
        k = self.norm_k(split_heads(h @ self.attention.w_k, self.kv_heads))
        v = split_heads(h @ self.attention.w_v, self.kv_heads)
        return q, k, v

    def finish(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        y = x + self.dropout(merge_heads(z) @ self.attention.w_o)
        return y + self.dropout(self.feed_forward(self.norm_1(y)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run both halves; x and result (B, T, d_model)."""
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


# === exercise: write-with-cache | function: write_with_cache | kind: subtle | what is wrong: the position of a new token stays len(prompt) for every later call and is never advanced, which is right up to a length of 2 and gives the model wrong positions from the third call on
# told: named
# now: named
# says: positions stand still
@torch.no_grad()
def write_with_cache(model: nn.Module, prompt: list[int], length: int) -> list[int]:
    if len(prompt) == 0:
        raise ValueError("the prompt is empty")
    text = list(prompt)
    new, start, cache = text, 0, None
    for _ in range(length):
        logits, cache = model(torch.tensor([new]), start, cache)
        best = int(logits[0, -1].argmax())
        text = text + [best]
        new, start = [best], len(prompt)
    return text


# === exercise: tiled-attention | function: attend_from_tile, tiled_attention | kind: subtle | what is wrong: the tiles of keys go up to last.max() without that key itself (range(0, last.max(), block)), so when last.max() is a multiple of block (also when it is 0) the tile that begins at this last visible key is left out
# told: named
# now: named
# says: the tile that begins with the last key is skipped
def attend_from_tile(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, block: int, last: torch.Tensor
) -> torch.Tensor:
    lead = q.shape[:-1]
    maximum = q.new_full((*lead, 1), -math.inf)
    total = q.new_zeros((*lead, 1))
    output = q.new_zeros((*lead, v.shape[-1]))
    for first in range(0, int(last.max()), block):
        keys = k[..., first : first + block, :]
        values = v[..., first : first + block, :]
        scores = q @ keys.mT / math.sqrt(q.shape[-1])
        where = torch.arange(first, first + keys.shape[-2], device=q.device)
        scores = scores.masked_fill(where > last, -math.inf)
        maximum, total, output = online_step(maximum, total, output, scores, values)
    return output / total.masked_fill(total == 0, 1.0)


def tiled_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    block: int,
    causal: bool = False,
) -> torch.Tensor:
    t_q, t_k = q.shape[-2], k.shape[-2]
    if causal:
        last = torch.arange(t_q, device=q.device) + (t_k - t_q)
    else:
        last = torch.full((t_q,), t_k - 1, device=q.device)
    last = last.unsqueeze(-1)
    pieces = []
    for q_tile, last_tile in zip(q.split(block, dim=-2), last.split(block)):
        pieces.append(attend_from_tile(q_tile, k, v, block, last_tile))
    return torch.cat(pieces, dim=-2)


# === exercise: induction-score | function: induction_scores, best_head | kind: subtle | what is wrong: 0 stands for "no earlier occurrence" although 0 is also the position of the first token, so a position whose latest earlier occurrence is position 0 is left out of the mean
# told: named
# now: named
# says: an occurrence at position 0 is left out
def induction_scores(weights: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    T = len(tokens)
    same = (tokens[:, None] == tokens[None, :]).tril(-1)
    previous = (same * torch.arange(T)).amax(dim=-1)  # latest earlier, 0 if none
    queries = previous.nonzero().squeeze(-1)
    keys = previous[queries] + 1
    return weights[:, :, queries, keys].mean(dim=-1)


def best_head(scores: torch.Tensor) -> tuple[int, int]:
    layer, head = divmod(scores.argmax().item(), scores.shape[1])
    return layer, head


# === exercise: logit-lens | function: logit_lens, lens_gain | kind: subtle | what is wrong: the rank counts all tokens whose logit is at least as large as the target's (>=) in place of 1 plus the strictly larger ones, so it is too bad where another token has exactly the same logit, as with equal rows in the table or a stream of zeros
# told: named
# now: named
# says: equal logits counted as larger
def _lens_logits(stream, gamma, table):
    mean_square = stream.square().mean(dim=-1, keepdim=True)
    normed = stream * torch.rsqrt(mean_square + 1e-5) * gamma
    return torch.einsum("ltd,vd->ltv", normed, table)


def logit_lens(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    logits = _lens_logits(stream, gamma, table)
    index = targets.expand(logits.shape[0], -1).unsqueeze(-1)
    own = logits.gather(-1, index)
    probability = logits.softmax(dim=-1).gather(-1, index).squeeze(-1)
    rank = (logits >= own).sum(dim=-1)  # the target counts itself: ranks from 1
    return probability, rank


def lens_gain(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
    order: torch.Tensor,
) -> torch.Tensor:
    logs = _lens_logits(stream, gamma, table).log_softmax(dim=-1)
    t = torch.arange(len(targets))
    return (logs[:, t, targets] - logs[:, t, targets[order]]).mean(dim=-1)


# === exercise: online-softmax | function: online_step, online_softmax | kind: double | what is wrong: first: online_step rescales the old output but not the old sum, which shows whenever a later block raises the maximum; second: online_softmax begins with the maximum 0 in place of -inf, so a query whose scores are all far below 0 (such as -10000) gets 0
# told: named
# now: named
# says: the old sum is not rescaled
def online_step(
    maximum: torch.Tensor,
    total: torch.Tensor,
    output: torch.Tensor,
    scores: torch.Tensor,
    values: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    new = torch.maximum(maximum, scores.amax(dim=-1, keepdim=True))
    base = new.masked_fill(new.isneginf(), 0.0)
    weights = torch.exp(scores - base)
    factor = torch.exp(maximum - base)
    total = total + weights.sum(dim=-1, keepdim=True)
    output = output * factor + weights @ values
    return new, total, output


def online_softmax(blocks: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    scores, values = blocks[0]
    maximum = torch.zeros_like(scores[..., :1])
    total = torch.zeros_like(maximum)
    output = maximum * values.new_zeros(values.shape[-1])
    for scores, values in blocks:
        maximum, total, output = online_step(maximum, total, output, scores, values)
    return output / total.masked_fill(total == 0, 1.0)


# === exercise: scaling-law | function: predicted_loss, fit_scaling_law, compute_optimal | kind: double | what is wrong: first: fit_scaling_law tries each pair of candidates only once, with a not behind b in the list (combinations_with_replacement), so with rising candidates a law with a > b is never found; second: compute_optimal raises C/6 to a/(a+b) in place of b/(a+b), which shows whenever a and b differ
# told: named
# now: named
# says: only half of the pairs are tried
def predicted_loss(law: dict[str, float], parameters: float, tokens: float) -> float:
    return law["E"] + law["A"] / parameters ** law["a"] + law["B"] / tokens ** law["b"]


def fit_scaling_law(
    runs: list[dict[str, float]], exponents: list[float]
) -> dict[str, float]:
    from itertools import combinations_with_replacement

    def column(values):
        return torch.tensor(list(values), dtype=torch.float64)

    N = column(run["parameters"] + run["embedding"] for run in runs)
    D = column(run["tokens"] for run in runs)
    loss = column(run["bits_per_byte"] for run in runs).unsqueeze(-1)
    best, law = math.inf, {}
    for a, b in combinations_with_replacement(exponents, 2):
        X = torch.stack((torch.ones_like(N), N**-a, D**-b), dim=1)
        solution = torch.linalg.lstsq(X, loss).solution
        error = ((X @ solution - loss) ** 2).sum().item()
        if error < best:
            best = error
            E, A, B = solution.squeeze(-1).tolist()
            law = {"E": E, "A": A, "B": B, "a": a, "b": b}
    return law


def compute_optimal(law: dict[str, float], budget: float) -> tuple[float, float]:
    A, B, a, b = law["A"], law["B"], law["a"], law["b"]
    n = (a * A / (b * B)) ** (1 / (a + b)) * (budget / 6) ** (a / (a + b))
    return n, budget / (6 * n)


# === exercise: run-budget | function: run_budget | kind: double | what is wrong: first: the operations count the parameters of the blocks and the last norm only, without the table, for every model; second: the training bytes take 4 bytes per number whatever number_bytes says, which shows when it is not 4
# told: named
# now: named
# says: the operations without the embeddings, and four bytes a number, whatever number_bytes is
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
    block = (
        2 * d_model * d_model
        + 2 * d_model * kv_heads * d_k
        + 3 * d_model * d_ff
        + 2 * d_model
    )
    body = layers * block + d_model
    parameters = body + vocab_size * d_model

    def cache(positions, n_heads):
        return 2 * layers * positions * n_heads * d_k * number_bytes

    return {
        "parameters": parameters,
        "operations": 6 * body * tokens,
        "training_bytes": 16 * parameters,
        "cache_multi_head": cache(length, heads),
        "cache_grouped": cache(length, kv_heads),
        "cache_windowed": cache(min(length, window), kv_heads),
    }


# === exercise: block-from-configuration | function: DecoderBlock | kind: double | what is wrong: first: norm_q and norm_k are one and the same module, so with qk_norm d_k parameters are missing and queries and keys cannot have gammas of their own; second: what attention adds goes through no dropout, which shows in training with dropout above 0
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

        def make_norm():
            return RMSNorm(d_model) if norm == "rms" else LayerNorm(d_model)

        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        self.feed_forward = (
            SwiGLU(d_model, d_ff)
            if feed_forward == "swiglu"
            else FeedForward(d_model, d_ff, feed_forward)
        )
        self.norm_1, self.norm_2 = make_norm(), make_norm()
        head_norm = RMSNorm(d_model // heads) if qk_norm else nn.Identity()
        self.norm_q, self.norm_k = head_norm, head_norm
        self.dropout = nn.Dropout(dropout)

    def project(
        self, x: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        normed = self.norm_1(x)
        att = self.attention
        q = split_heads(normed @ att.w_q, self.heads)
        k = split_heads(normed @ att.w_k, self.kv_heads)
        v = split_heads(normed @ att.w_v, self.kv_heads)
        return self.norm_q(q), self.norm_k(k), v

    def finish(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        x = x + merge_heads(z) @ self.attention.w_o
        x = x + self.dropout(self.feed_forward(self.norm_2(x)))
        return x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run both halves; x and result (B, T, d_model)."""
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


# === exercise: orthogonalise | function: orthogonalise | kind: double | what is wrong: first: axes 0 and 1 are compared in place of the last two, so in a stack of matrices it depends on the number of matrices whether they are transposed, and the larger of the two products is made, as for (2, 5, 3); second: the division by the norm is done in place (/=) and overwrites the caller's matrix, also with 0 rounds
# told: named
# now: named
# says: changes its argument in place
def orthogonalise(matrix: torch.Tensor, rounds: int = 5) -> torch.Tensor:
    a, b, c = 3.4445, -4.7750, 2.0315
    flip = matrix.size(0) > matrix.size(1)
    x = matrix.transpose(-2, -1) if flip else matrix
    x /= x.norm(dim=(-2, -1), keepdim=True) + 1e-7
    for _ in range(rounds):
        gram = x @ x.transpose(-2, -1)
        x = a * x + b * (gram @ x) + c * (gram @ gram @ x)
    if flip:
        x = x.transpose(-2, -1)
    return x


# === exercise: logit-lens | function: logit_lens, lens_gain | kind: double | what is wrong: first: the epsilon is added to the root in place of inside of it, which shows for streams with small entries; second: the control takes the order backwards (targets[argsort(order)], from where each position went, in place of targets[order]), which shows for every order that is not its own inverse
# told: named
# now: named
# says: the positions are shuffled in place of the tokens
def rms_norm(x, gamma, eps=1e-5):
    rms = x.pow(2).mean(dim=-1, keepdim=True).sqrt()
    return gamma * x / (rms + eps)


def logit_lens(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    logits = rms_norm(stream, gamma) @ table.T
    steps = torch.arange(targets.shape[0])
    own = logits[:, steps, targets]
    probs = torch.softmax(logits, dim=-1)[:, steps, targets]
    ranks = 1 + (logits > own.unsqueeze(-1)).sum(dim=-1)
    return probs, ranks


def lens_gain(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
    order: torch.Tensor,
) -> torch.Tensor:
    logits = rms_norm(stream, gamma) @ table.T
    logp = torch.log_softmax(logits, dim=-1)
    steps = torch.arange(targets.shape[0])
    control = targets[order.argsort()]
    return (logp[:, steps, targets] - logp[:, steps, control]).mean(dim=1)
