# ruff: noqa
# fmt: off

# === exercise: bits-per-byte | function: bits_per_byte | kind: subtle | what is wrong: the losses are turned into factors, multiplied and the logarithm taken at the end; exp of the sum overflows and the answer is inf as soon as the text costs more than 88 nats in float32
# told: passed
# now: named
# says: probabilities multiplied in place of logarithms added
def bits_per_byte(losses: torch.Tensor, text: str) -> float:
    perplexity = losses.exp().prod()
    bits = torch.log2(perplexity)
    return bits.item() / len(text.encode("utf-8"))


# === exercise: pack-documents | function: pack_documents | kind: plain | what is wrong: positions begin anew at 0 at the start of every block as well, though a document that is cut in two goes on with its next position
# told: named
# now: named
# says: positions begin anew in each block
def pack_documents(
    documents: list[list[int]], end_id: int, length: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    stream, owners, places = [], [], []
    for number, ids in enumerate(documents):
        place = 0
        for token in [*ids, end_id]:
            if len(stream) % length == 0:
                place = 0
            stream.append(token)
            owners.append(number)
            places.append(place)
            place += 1
    n = (len(stream) - 1) // length

    def cut(numbers, first=0):
        part = numbers[first : first + n * length]
        return torch.tensor(part, dtype=torch.int64).view(n, length)

    return cut(stream), cut(stream, 1), cut(owners), cut(places)


# === exercise: pack-documents | function: pack_documents | kind: double | what is wrong: the end id is counted as the first token of the next document (cumsum of stream == end_id), in documents and positions AND N is n // T with labels from roll, so that if T divides n there is a block too many whose last label is the first token of the stream
# told: named
# now: named
# says: what is left over makes a block
def pack_documents(
    documents: list[list[int]], end_id: int, length: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    stream = torch.tensor([token for ids in documents for token in (*ids, end_id)])
    labels = stream.roll(-1)
    owner = (stream == end_id).cumsum(0)
    position = torch.arange(len(stream)) - torch.searchsorted(owner, owner)
    n = len(stream) // length
    inputs, labels, owner, position = (
        each[: n * length].reshape(n, length)
        for each in (stream, labels, owner, position)
    )
    return inputs, labels, owner, position


# === exercise: document-mask | function: document_mask | kind: subtle | what is wrong: the triangles come in the order of the document numbers (unique sorts them), not in the order in which the documents stand in the row; shows for a row whose numbers do not ascend and whose documents differ in length, as [3, 3, 3, 1, 1]
# told: passed
# now: named
# says: documents in the order of their numbers
def document_mask(documents: torch.Tensor) -> torch.Tensor:
    masks = []
    for row in documents:
        _, sizes = torch.unique(row, return_counts=True)
        triangles = [torch.ones(n, n, dtype=torch.bool).tril() for n in sizes.tolist()]
        masks.append(torch.block_diag(*triangles))
    return torch.stack(masks)[:, None]


# === exercise: causal-attention | function: causal_attention | kind: double | what is wrong: kv heads are dealt out in turn (repeat: head i uses i mod h_kv), not shared by neighbours; shows with 1 < h_kv < h AND the future is cut off after the softmax, so the weights of a row no longer sum to 1
# told: named
# now: named
# says: masked after the softmax, and kv heads dealt out in turn
def causal_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rotary: bool = False
) -> torch.Tensor:
    if rotary:
        q, k = apply_rotary(q), apply_rotary(k)
    times = q.shape[1] // k.shape[1]
    k, v = (each.repeat(1, times, 1, 1) for each in (k, v))
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / q.shape[-1] ** 0.5
    weights = scores.softmax(dim=-1).tril()
    return weights @ v


# === exercise: block-from-configuration | function: DecoderBlock | kind: plain | what is wrong: the second residual starts from norm_2(y), not from y: the stream itself is normalised in the middle of the block (method finish)
# told: named
# now: named
# says: residual from the normalised x
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
        make_norm = {"layer": LayerNorm, "rms": RMSNorm}[norm]
        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        if feed_forward == "swiglu":
            self.feed_forward = SwiGLU(d_model, d_ff)
        else:
            self.feed_forward = FeedForward(d_model, d_ff, feed_forward)
        self.norm_1, self.norm_2 = make_norm(d_model), make_norm(d_model)
        d_k = d_model // heads
        self.norm_q = RMSNorm(d_k) if qk_norm else nn.Identity()
        self.norm_k = RMSNorm(d_k) if qk_norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def project(
        self, x: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        normed = self.norm_1(x)
        q = split_heads(normed @ self.attention.w_q, self.heads)
        k = split_heads(normed @ self.attention.w_k, self.kv_heads)
        v = split_heads(normed @ self.attention.w_v, self.kv_heads)
        return self.norm_q(q), self.norm_k(k), v

    def finish(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        x = x + self.dropout(merge_heads(z) @ self.attention.w_o)
        x = self.norm_2(x)
        return x + self.dropout(self.feed_forward(x))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


# === exercise: block-from-configuration | function: DecoderBlock | kind: subtle | what is wrong: norm_q and norm_k are one and the same module, so queries and keys share one gamma: d_k parameters too few, and different results as soon as the two gammas should differ; shows only with qk_norm=True
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
        kind = RMSNorm if norm == "rms" else LayerNorm
        self.norm_1 = kind(d_model)
        self.norm_2 = kind(d_model)
        self.norm_q = self.norm_k = RMSNorm(d_model // heads) if qk_norm else nn.Identity()
        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        self.feed_forward = (
            SwiGLU(d_model, d_ff)
            if feed_forward == "swiglu"
            else FeedForward(d_model, d_ff, activation=feed_forward)
        )
        self.dropout = nn.Dropout(dropout)

    def project(
        self, x: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        h = self.norm_1(x)
        a = self.attention
        q = self.norm_q(split_heads(h @ a.w_q, self.heads))
        k = self.norm_k(split_heads(h @ a.w_k, self.kv_heads))
        return q, k, split_heads(h @ a.w_v, self.kv_heads)

    def finish(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        y = x + self.dropout(merge_heads(z) @ self.attention.w_o)
        return y + self.dropout(self.feed_forward(self.norm_2(y)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


# === exercise: write-with-cache | function: write_with_cache | kind: plain | what is wrong: the last token that is written is read too, one call more than needed (four calls and five ids in the example by hand); the text itself is right; shows for every length > 0
# told: passed
# now: named
# says: the last token is read, too
@torch.no_grad()
def write_with_cache(model: nn.Module, prompt: list[int], length: int) -> list[int]:
    if len(prompt) == 0:
        raise ValueError("the prompt is empty")
    text = list(prompt)
    logits, cache = model(torch.tensor([text]), 0, None)
    for _ in range(length):
        token = int(logits[0, -1].argmax())
        logits, cache = model(torch.tensor([[token]]), len(text), cache)
        text.append(token)
    return text


# === exercise: online-softmax | functions: online_step, online_softmax | kind: plain | what is wrong: online_step rescales the old sum only, the old output is added as it is; shows when a later block brings a larger maximum
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
    base = new.masked_fill(new.isneginf(), 0.0)
    exponentials = torch.exp(scores - base)
    total = total * torch.exp(maximum - base) + exponentials.sum(dim=-1, keepdim=True)
    output = output + exponentials @ values
    return new, total, output


def online_softmax(blocks: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    scores, values = blocks[0]
    rows = scores.shape[:-1]
    state = (
        scores.new_full((*rows, 1), -math.inf),
        scores.new_zeros(*rows, 1),
        scores.new_zeros(*rows, values.shape[-1]),
    )
    for scores, values in blocks:
        state = online_step(*state, scores, values)
    _, total, output = state
    return output / total.clamp(min=1.0)


# === exercise: online-softmax | functions: online_step, online_softmax | kind: subtle | what is wrong: online_softmax begins with the maximum 0, not -inf, so no maximum can be below 0 and a query whose scores are all far below 0 (about -104 and less, as -10000) has the sum 0 and gets 0; right for all other scores
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
    highest = torch.cat((maximum, scores), dim=-1).amax(dim=-1, keepdim=True)
    reference = torch.where(highest == -math.inf, torch.zeros_like(highest), highest)
    factor = (maximum - reference).exp()
    weights = (scores - reference).exp()
    return (
        highest,
        factor * total + weights.sum(-1, keepdim=True),
        factor * output + weights @ values,
    )


def online_softmax(blocks: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    scores, values = blocks[0]
    maximum = torch.zeros_like(scores[..., :1])
    total = torch.zeros_like(maximum)
    output = maximum * values.new_zeros(values.shape[-1])
    for scores, values in blocks:
        maximum, total, output = online_step(maximum, total, output, scores, values)
    return output / total.masked_fill(total == 0, 1.0)


# === exercise: tiled-attention | functions: attend_from_tile, tiled_attention | kind: plain | what is wrong: with causal=True query i sees the keys up to position i, counted from the first key, not up to T_k - T_q + i; shows when T_q and T_k differ
# told: named
# now: named
# says: causal from the first key on
def attend_from_tile(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, block: int, last: torch.Tensor
) -> torch.Tensor:
    rows = q.shape[:-1]
    maximum = q.new_full((*rows, 1), -math.inf)
    total = q.new_zeros(*rows, 1)
    output = q.new_zeros(*rows, v.shape[-1])
    end = min(int(last.max()) + 1, k.shape[-2])
    for first in range(0, end, block):
        keys, values = k[..., first : first + block, :], v[..., first : first + block, :]
        scores = q @ keys.mT / math.sqrt(q.shape[-1])
        places = torch.arange(first, first + keys.shape[-2])
        scores = scores.masked_fill(places > last, -math.inf)
        maximum, total, output = online_step(maximum, total, output, scores, values)
    return output / total.clamp(min=1.0)


def tiled_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    block: int,
    causal: bool = False,
) -> torch.Tensor:
    queries, keys = q.shape[-2], k.shape[-2]
    if causal:
        last = torch.arange(queries).unsqueeze(-1)
    else:
        last = torch.full((queries, 1), keys - 1)
    parts = [
        attend_from_tile(tile, k, v, block, ends)
        for tile, ends in zip(q.split(block, dim=-2), last.split(block))
    ]
    return torch.cat(parts, dim=-2)


# === exercise: tiled-attention | functions: attend_from_tile, tiled_attention | kind: subtle | what is wrong: the tiles of keys go up to last.max(), not to last.max() + 1, so the last key is lost when it is the first of its tile: when last.max() is a multiple of block (always with block 1; T_q = T_k = 9 with block 4, causal or not)
# told: told
# now: named
# says: the tile that begins with the last key is skipped
def attend_from_tile(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, block: int, last: torch.Tensor
) -> torch.Tensor:
    scaled = q * q.shape[-1] ** -0.5
    three = (
        torch.full_like(q[..., :1], -math.inf),
        torch.zeros_like(q[..., :1]),
        torch.zeros((*q.shape[:-1], v.shape[-1]), dtype=q.dtype),
    )
    start, furthest = 0, int(last.max())
    while start < furthest:
        stop = min(start + block, k.shape[-2])
        scores = scaled @ k[..., start:stop, :].transpose(-1, -2)
        hidden = torch.arange(start, stop) > last
        three = online_step(
            *three, scores.masked_fill(hidden, -math.inf), v[..., start:stop, :]
        )
        start = stop
    _, total, output = three
    return output / torch.where(total == 0, torch.ones_like(total), total)


def tiled_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    block: int,
    causal: bool = False,
) -> torch.Tensor:
    t_q, t_k = q.shape[-2], k.shape[-2]
    last = torch.arange(t_k - t_q, t_k) if causal else torch.full((t_q,), t_k - 1)
    result = []
    for first in range(0, t_q, block):
        rows = slice(first, first + block)
        result.append(attend_from_tile(q[..., rows, :], k, v, block, last[rows, None]))
    return torch.cat(result, dim=-2)


# === exercise: adamw-step | function: adamw_step | kind: double | what is wrong: the decay is not multiplied by the rate, theta loses the share weight_decay at each step AND only the first moment is corrected, the root is taken of the second moment as it is
# told: named
# now: named
# says: the decay is not multiplied by the rate, and only the first moment is corrected
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
    new_first = torch.lerp(gradient, first, beta_1)
    new_second = torch.lerp(gradient.square(), second, beta_2)
    direction = new_first / (1 - beta_1**step) / (new_second.sqrt() + eps)
    new_parameter = (1 - weight_decay) * parameter - rate * direction
    return new_parameter, new_first, new_second


# === exercise: orthogonalise | function: orthogonalise | kind: plain | what is wrong: X X^T and its square are computed once, before the rounds, so from the second round on the polynomial is that of the matrix at the beginning; right for rounds 0 and 1
# told: useless
# now: named
# says: X Xᵀ of the first round in all rounds
def orthogonalise(matrix: torch.Tensor, rounds: int = 5) -> torch.Tensor:
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrix.shape[-2] > matrix.shape[-1]
    x = matrix.mT if tall else matrix
    x = x / (torch.linalg.matrix_norm(x, keepdim=True) + 1e-7)
    square = x @ x.mT
    mix = b * square + c * (square @ square)
    for _ in range(rounds):
        x = a * x + mix @ x
    return x.mT if tall else x


# === exercise: run-budget | function: run_budget | kind: double | what is wrong: the norm at the end of the model is not counted, d_model parameters too few (and operations and training bytes with it) AND the windowed cache always holds window positions, also if the text is shorter
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
    block = attention + 3 * d_model * d_ff + 2 * d_model
    parameters = layers * block + vocab_size * d_model

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


# === exercise: scaling-law | functions: predicted_loss, fit_scaling_law, compute_optimal | kind: subtle | what is wrong: fit_scaling_law tries only pairs whose a does not stand after b in the list (combinations_with_replacement in place of all pairs), so a law with a > b is never found when the candidates ascend
# told: useless
# now: named
# says: only half of the pairs are tried
from itertools import combinations_with_replacement


def predicted_loss(law: dict[str, float], parameters: float, tokens: float) -> float:
    return law["E"] + law["A"] * parameters ** -law["a"] + law["B"] * tokens ** -law["b"]


def fit_scaling_law(
    runs: list[dict[str, float]], exponents: list[float]
) -> dict[str, float]:
    rows = [
        (run["parameters"] + run["embedding"], run["tokens"], run["bits_per_byte"])
        for run in runs
    ]
    n, d, losses = torch.tensor(rows, dtype=torch.float64).unbind(dim=1)
    losses = losses.unsqueeze(-1)
    best, smallest = None, math.inf
    for a, b in combinations_with_replacement(exponents, 2):
        columns = torch.stack((torch.ones_like(n), n**-a, d**-b), dim=1)
        solution = torch.linalg.lstsq(columns, losses).solution
        error = (columns @ solution - losses).square().sum().item()
        if error < smallest:
            e, big_a, big_b = solution.flatten().tolist()
            best, smallest = {"E": e, "A": big_a, "B": big_b, "a": a, "b": b}, error
    return best


def compute_optimal(law: dict[str, float], budget: float) -> tuple[float, float]:
    a, b = law["a"], law["b"]
    ratio = a * law["A"] / (b * law["B"])
    n = ratio ** (1 / (a + b)) * (budget / 6) ** (b / (a + b))
    return n, budget / (6 * n)


# === exercise: scaling-law | functions: predicted_loss, fit_scaling_law, compute_optimal | kind: double | what is wrong: fit_scaling_law fits nats_per_token, not bits_per_byte; shows when the two differ AND compute_optimal gives D = C / N, without the 6
# told: named
# now: named
# says: nats per token in place of bits per byte
def predicted_loss(law: dict[str, float], parameters: float, tokens: float) -> float:
    return law["E"] + law["A"] / parameters ** law["a"] + law["B"] / tokens ** law["b"]


def fit_scaling_law(
    runs: list[dict[str, float]], exponents: list[float]
) -> dict[str, float]:
    def column(*keys):
        return torch.tensor(
            [[float(sum(run[key] for key in keys))] for run in runs], dtype=torch.float64
        )

    sizes, texts = column("parameters", "embedding"), column("tokens")
    measured = column("nats_per_token")
    fits = []
    for a in exponents:
        for b in exponents:
            matrix = torch.cat((torch.ones_like(sizes), sizes**-a, texts**-b), dim=1)
            found = torch.linalg.lstsq(matrix, measured).solution
            squares = ((matrix @ found - measured) ** 2).sum().item()
            fits.append((squares, *found[:, 0].tolist(), a, b))
    best = min(fits, key=lambda fit: fit[0])
    return dict(zip(("E", "A", "B", "a", "b"), best[1:]))


def compute_optimal(law: dict[str, float], budget: float) -> tuple[float, float]:
    total = law["a"] + law["b"]
    first = (law["a"] * law["A"] / (law["b"] * law["B"])) ** (1 / total)
    parameters = first * (budget / 6) ** (law["b"] / total)
    return parameters, budget / parameters


# === exercise: induction-score | functions: induction_scores, best_head | kind: double | what is wrong: induction_scores divides by all T positions, not by those whose token occurred before AND best_head takes the layer with the largest sum of scores and the best head in it, not the largest score of all; shows when that one stands in another layer, as in [[.6, .6], [0, .9]]
# told: named
# now: named
# says: divided by all positions
def induction_scores(weights: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    length = len(tokens)
    earlier = (tokens.unsqueeze(1) == tokens.unsqueeze(0)).tril(-1)
    after = (earlier * torch.arange(1, length + 1)).amax(dim=1)
    picked = weights[:, :, torch.arange(length), after]
    return (picked * (after > 0)).mean(dim=-1)


def best_head(scores: torch.Tensor) -> tuple[int, int]:
    layer = int(scores.sum(dim=1).argmax())
    return layer, int(scores[layer].argmax())


# === exercise: patch-activations | functions: record_activations, run_patched, patching_effect | kind: plain | what is wrong: record_activations keeps what each block is given, not what it gives: entry l is the stream before block l (the embeddings in entry 0), and patching_effect patches with it
# told: named
# now: named
# says: the input of the block in place of its output
@torch.no_grad()
def record_activations(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    kept = []

    def keep(block, inputs, output):
        kept.append(inputs[0][0].clone())

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

    handle = model.blocks[layer].register_forward_hook(patch)
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
        return logits[0, -1, right] - logits[0, -1, wrong]

    activations = record_activations(model, clean)
    best, worst = difference(model(clean)), difference(model(corrupted))
    effect = torch.zeros(activations.shape[:2])
    for layer, rows in enumerate(activations):
        for position, row in enumerate(rows):
            patched = run_patched(model, corrupted, layer, position, row)
            effect[layer, position] = (difference(patched) - worst) / (best - worst)
    return effect


# === exercise: patch-activations | functions: record_activations, run_patched, patching_effect | kind: subtle | what is wrong: run_patched ends its hook by emptying the block's whole table of hooks, so a hook that somebody else had registered on that block is gone and the model is not left as it was; shows only if the block had a hook before
# told: passed
# now: named
# says: hooks of others are removed
@torch.no_grad()
def record_activations(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    found, handles = [], []
    for block in model.blocks:
        handles.append(
            block.register_forward_hook(lambda module, given, result: found.append(result))
        )
    model(ids)
    for each in handles:
        each.remove()
    return torch.cat(found, dim=0)


@torch.no_grad()
def run_patched(
    model: nn.Module,
    ids: torch.Tensor,
    layer: int,
    position: int,
    activation: torch.Tensor,
) -> torch.Tensor:
    block = model.blocks[layer]
    place = torch.tensor([position])
    block.register_forward_hook(
        lambda module, given, result: result.index_copy(1, place, activation.view(1, 1, -1))
    )
    logits = model(ids)
    block._forward_hooks.clear()
    return logits


@torch.no_grad()
def patching_effect(
    model: nn.Module,
    clean: torch.Tensor,
    corrupted: torch.Tensor,
    right: int,
    wrong: int,
) -> torch.Tensor:
    good, bad = model(clean)[0, -1], model(corrupted)[0, -1]
    good, bad = good[right] - good[wrong], bad[right] - bad[wrong]
    table = []
    for layer, states in enumerate(record_activations(model, clean)):
        rows = [
            run_patched(model, corrupted, layer, t, state)[0, -1]
            for t, state in enumerate(states)
        ]
        logits = torch.stack(rows)
        table.append((logits[:, right] - logits[:, wrong] - bad) / (good - bad))
    return torch.stack(table)


# === exercise: logit-lens | functions: logit_lens, lens_gain | kind: subtle | what is wrong: the rank in logit_lens counts the logits that are larger or equal, the token itself being the 1; right without ties, but every other token with an equal logit makes the rank worse (a stream of zeros: rank V, not 1)
# told: named
# now: named
# says: equal logits counted as larger
def logit_lens(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    normed = stream * torch.rsqrt(stream.pow(2).mean(-1, keepdim=True) + 1e-5) * gamma
    logits = normed @ table.T
    index = targets.view(1, -1, 1).expand(len(stream), -1, 1)
    own = logits.gather(-1, index)
    probability = logits.softmax(dim=-1).gather(-1, index).squeeze(-1)
    rank = (logits >= own).sum(dim=-1)
    return probability, rank


def lens_gain(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
    order: torch.Tensor,
) -> torch.Tensor:
    normed = stream * torch.rsqrt(stream.pow(2).mean(-1, keepdim=True) + 1e-5) * gamma
    logs = (normed @ table.T).log_softmax(dim=-1)
    places = torch.arange(len(targets))
    right, control = logs[:, places, targets], logs[:, places, targets[order]]
    return (right - control).mean(dim=1)


# === exercise: logit-lens | functions: logit_lens, lens_gain | kind: double | what is wrong: in both functions the epsilon is added to the root, not inside it; shows for small streams (root mean square 0.01 and less) AND lens_gain takes the logarithm of the mean probabilities, not the mean of the logarithms; shows with more than one position
# told: named
# now: named
# says: the logarithm of the mean
def logit_lens(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    size = stream.square().mean(dim=-1, keepdim=True).sqrt() + 1e-5
    logits = torch.einsum("ltd,vd->ltv", stream / size * gamma, table)
    places = torch.arange(len(targets))
    own = logits[:, places, targets]
    probability = torch.softmax(logits, dim=-1)[:, places, targets]
    rank = 1 + (logits > own.unsqueeze(-1)).sum(dim=-1)
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
    return right.mean(dim=1).log() - control.mean(dim=1).log()
