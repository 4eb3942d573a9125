# ruff: noqa
# fmt: off

# === exercise: bits-per-byte | function: bits_per_byte | kind: subtle | what is wrong: every character that is not ASCII is counted as two bytes, but UTF-8 takes three or four for many (Chinese, the euro sign, emoji).
# told: useless
# now: named
# says: two bytes for every letter beyond ASCII
def bits_per_byte(losses: torch.Tensor, text: str) -> float:
    nats = losses.sum().item()
    bits = nats / math.log(2)
    n_bytes = 0
    for char in text:
        if ord(char) < 128:
            n_bytes += 1
        else:
            n_bytes += 2
    return bits / n_bytes


# === exercise: pack-documents | function: pack_documents | kind: subtle | what is wrong: empty documents are skipped altogether, so their end id is missing from the stream.
# told: named
# now: named
# says: an empty document is left out
def pack_documents(documents, end_id, length):
    stream = []
    for number, doc in enumerate(documents):
        if len(doc) == 0:
            continue
        for place, token in enumerate(doc + [end_id]):
            stream.append((token, number, place))

    blocks = (len(stream) - 1) // length
    use = blocks * length
    ids = torch.tensor([s[0] for s in stream], dtype=torch.long)
    docs = torch.tensor([s[1] for s in stream], dtype=torch.long)
    places = torch.tensor([s[2] for s in stream], dtype=torch.long)

    shape = (blocks, length)
    return (
        ids[:use].reshape(shape),
        ids[1 : use + 1].reshape(shape),
        docs[:use].reshape(shape),
        places[:use].reshape(shape),
    )


# === exercise: document-mask | function: document_mask | kind: subtle | what is wrong: where a document begins is taken to be the number of tokens with a smaller document number, which is true only if the numbers rise along the row.
# told: shown
# now: named
# says: documents in the order of their numbers
def document_mask(documents: torch.Tensor) -> torch.Tensor:
    T = documents.shape[1]
    index = torch.arange(T, device=documents.device)
    begin = (documents[:, None, :] < documents[:, :, None]).sum(dim=-1)  # (B, T)
    not_after = index[None, :] <= index[:, None]  # (T, T)
    not_before = index[None, None, :] >= begin[:, :, None]  # (B, T, T)
    return (not_after & not_before)[:, None]


# === exercise: causal-attention | function: causal_attention | kind: double | what is wrong: the values are rotated together with queries and keys, and keys and values are tiled (0, 1, 0, 1) instead of repeated next to each other (0, 0, 1, 1), so query heads get the wrong group.
# told: named
# now: named
# says: the values are rotated, too, and kv heads dealt out in turn
def causal_attention(q, k, v, rotary=False):
    if rotary:
        q, k, v = (apply_rotary(t) for t in (q, k, v))
    groups = q.shape[1] // k.shape[1]
    k = k.repeat(1, groups, 1, 1)
    v = v.repeat(1, groups, 1, 1)
    out, weights = scaled_dot_product_attention(q, k, v, causal_mask(q.shape[-2]))
    return out


# === exercise: block-from-configuration | function: DecoderBlock | kind: plain | what is wrong: only the queries are made from the normalised x; keys and values are projected from x without norm_1.
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
        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        if feed_forward == "swiglu":
            self.feed_forward = SwiGLU(d_model, d_ff)
        else:
            self.feed_forward = FeedForward(d_model, d_ff, activation=feed_forward)
        norm_class = {"layer": LayerNorm, "rms": RMSNorm}[norm]
        self.norm_1 = norm_class(d_model)
        self.norm_2 = norm_class(d_model)
        d_k = d_model // heads
        self.norm_q = RMSNorm(d_k) if qk_norm else nn.Identity()
        self.norm_k = RMSNorm(d_k) if qk_norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def project(self, x):
        att = self.attention
        q = split_heads(self.norm_1(x) @ att.w_q, self.heads)
        k = split_heads(x @ att.w_k, self.kv_heads)
        v = split_heads(x @ att.w_v, self.kv_heads)
        return self.norm_q(q), self.norm_k(k), v

    def finish(self, x, z):
        y = x + self.dropout(merge_heads(z) @ self.attention.w_o)
        return y + self.dropout(self.feed_forward(self.norm_2(y)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


# === exercise: write-with-cache | function: write_with_cache | kind: plain | what is wrong: the start handed to the model is the number of tokens written so far (1, 2, ...), not the position in the text, which has the prompt before it.
# told: named
# now: named
# says: positions count what was written alone
@torch.no_grad()
def write_with_cache(model, prompt, length):
    if len(prompt) == 0:
        raise ValueError("the prompt is empty")
    text = list(prompt)
    new, cache = list(prompt), None
    for written in range(length):
        logits, cache = model(torch.tensor([new]), written, cache)
        best = logits[0, -1].argmax().item()
        text.append(best)
        new = [best]
    return text


# === exercise: online-softmax | function: online_step | kind: plain | what is wrong: only the old sum is rescaled to the new maximum, the old output is not.
# told: named
# now: named
# says: the old output is not rescaled
def online_step(maximum, total, output, scores, values):
    top = torch.maximum(maximum, scores.amax(dim=-1, keepdim=True))
    ref = torch.where(top == -math.inf, torch.zeros_like(top), top)
    part = torch.exp(scores - ref)
    shrink = torch.exp(maximum - ref)
    total = total * shrink + part.sum(dim=-1, keepdim=True)
    output = output + part @ values
    return top, total, output


def online_softmax(blocks):
    scores, values = blocks[0]
    maximum = torch.full_like(scores[..., :1], -math.inf)
    total = torch.zeros_like(scores[..., :1])
    output = torch.zeros_like(scores[..., :1] @ values[..., :1, :])
    for scores, values in blocks:
        maximum, total, output = online_step(maximum, total, output, scores, values)
    return output / torch.where(total == 0, torch.ones_like(total), total)


# === exercise: tiled-attention | function: tiled_attention | kind: subtle | what is wrong: the loop over the tiles of keys ends as soon as the first query of the tile sees nothing more, though later queries of the same tile may still see keys there; right only if the tiles of queries and keys are aligned (T_k - T_q a multiple of block).
# told: named
# now: named
# says: a tile that some queries see is skipped
def attend_from_tile(q, k, v, block, last):
    rows = q.shape[:-1]
    m = q.new_full((*rows, 1), -math.inf)
    l = q.new_zeros((*rows, 1))
    o = q.new_zeros((*rows, v.shape[-1]))
    for start in range(0, k.shape[-2], block):
        if start > last[0].item():
            break
        k_tile = k[..., start : start + block, :]
        v_tile = v[..., start : start + block, :]
        s = q @ k_tile.transpose(-1, -2) / math.sqrt(q.shape[-1])
        where = torch.arange(start, start + k_tile.shape[-2], device=q.device)
        s = s.masked_fill(where > last, -math.inf)
        m_new = torch.maximum(m, s.detach().amax(dim=-1, keepdim=True))
        base = m_new.masked_fill(m_new == -math.inf, 0.0)
        p = torch.exp(s - base)
        old = torch.exp(m - base)
        l = l * old + p.sum(dim=-1, keepdim=True)
        o = o * old + p @ v_tile
        m = m_new
    return o / l.masked_fill(l == 0, 1.0)


def tiled_attention(q, k, v, block, causal=False):
    t_q, t_k = q.shape[-2], k.shape[-2]
    if causal:
        last = torch.arange(t_k - t_q, t_k, device=q.device)[:, None]
    else:
        last = torch.full((t_q, 1), t_k - 1, device=q.device)
    done = []
    for i in range(0, t_q, block):
        done.append(
            attend_from_tile(q[..., i : i + block, :], k, v, block, last[i : i + block])
        )
    return torch.cat(done, dim=-2)


# === exercise: adamw-step | function: adamw_step | kind: plain | what is wrong: the decay is taken from the parameter after it has moved, not from the parameter as it was before the step.
# told: named
# now: named
# says: the step comes before the decay
def adamw_step(
    parameter,
    gradient,
    first,
    second,
    step,
    rate,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.01,
):
    beta1, beta2 = betas
    first = beta1 * first + (1 - beta1) * gradient
    second = beta2 * second + (1 - beta2) * gradient**2
    m_hat = first / (1 - beta1**step)
    v_hat = second / (1 - beta2**step)
    parameter = parameter - rate * m_hat / (v_hat.sqrt() + eps)
    parameter = parameter - rate * weight_decay * parameter
    return parameter, first, second


# === exercise: adamw-step | function: adamw_step | kind: double | what is wrong: the weight decay is added to the gradient and so goes through both moments (Adam with L2), and the moments are returned with the correction in them.
# told: named
# now: named
# says: the decay is mixed into the gradient, and corrected moments are returned
def adamw_step(
    parameter,
    gradient,
    first,
    second,
    step,
    rate,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.01,
):
    g = gradient + weight_decay * parameter
    m = betas[0] * first + (1 - betas[0]) * g
    v = betas[1] * second + (1 - betas[1]) * g * g
    m = m / (1 - betas[0] ** step)
    v = v / (1 - betas[1] ** step)
    new = parameter - rate * m / (torch.sqrt(v) + eps)
    return new, m, v


# === exercise: orthogonalise | function: orthogonalise | kind: subtle | what is wrong: the square of X X^T is taken entry by entry instead of as a matrix product, which is the same for diagonal matrices only.
# told: named
# now: named
# says: entries squared in place of a matrix product
def orthogonalise(matrix: torch.Tensor, rounds: int = 5) -> torch.Tensor:
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrix.shape[-2] > matrix.shape[-1]
    X = matrix.transpose(-2, -1) if tall else matrix
    frobenius = X.pow(2).sum(dim=(-2, -1), keepdim=True).sqrt()
    X = X / (frobenius + 1e-7)
    for _ in range(rounds):
        gram = X @ X.transpose(-2, -1)
        X = a * X + (b * gram + c * gram**2) @ X
    return X.transpose(-2, -1) if tall else X


# === exercise: run-budget | function: run_budget | kind: plain | what is wrong: every RMS norm is counted with a gain and a bias (2 d), but it has only a gain (d).
# told: told
# now: named
# says: each norm has a bias, too
def run_budget(
    layers,
    d_model,
    heads,
    kv_heads,
    d_ff,
    vocab_size,
    tokens,
    length,
    window,
    number_bytes=4,
):
    d_head = d_model // heads
    attention = 2 * d_model**2 + 2 * d_model * kv_heads * d_head
    swiglu = 3 * d_model * d_ff
    norm = 2 * d_model
    n = layers * (attention + swiglu + 2 * norm) + vocab_size * d_model + norm

    def cache(heads_kept, positions):
        return 2 * layers * positions * heads_kept * d_head * number_bytes

    return {
        "parameters": n,
        "operations": 6 * n * tokens,
        "training_bytes": 4 * n * number_bytes,
        "cache_multi_head": cache(heads, length),
        "cache_grouped": cache(kv_heads, length),
        "cache_windowed": cache(kv_heads, min(window, length)),
    }


# === exercise: run-budget | function: run_budget | kind: double | what is wrong: the windowed cache always has `window` positions, also for a text that is shorter, and the training bytes are fixed at 16 per parameter whatever number_bytes is.
# told: shown
# now: named
# says: four bytes a number, whatever number_bytes is, and the window of a shorter text
def run_budget(
    layers,
    d_model,
    heads,
    kv_heads,
    d_ff,
    vocab_size,
    tokens,
    length,
    window,
    number_bytes=4,
):
    budget = {}
    kv_width = kv_heads * (d_model // heads)

    block = 0
    block += 2 * d_model * d_model
    block += 2 * d_model * kv_width
    block += 3 * d_model * d_ff
    block += 2 * d_model
    budget["parameters"] = layers * block + vocab_size * d_model + d_model

    budget["operations"] = 6 * budget["parameters"] * tokens
    budget["training_bytes"] = 16 * budget["parameters"]

    per_position = 2 * layers * number_bytes
    budget["cache_multi_head"] = per_position * length * d_model
    budget["cache_grouped"] = per_position * length * kv_width
    budget["cache_windowed"] = per_position * window * kv_width
    return budget


# === exercise: scaling-law | function: compute_optimal | kind: subtle | what is wrong: N grows with the budget to the power a / (a + b) instead of b / (a + b), which is the same only for a = b.
# told: named
# now: named
# says: exponents exchanged
def predicted_loss(law, parameters, tokens):
    return law["E"] + law["A"] / parameters ** law["a"] + law["B"] / tokens ** law["b"]


def fit_scaling_law(runs, exponents):
    N = torch.tensor([r["parameters"] + r["embedding"] for r in runs], dtype=torch.float64)
    D = torch.tensor([r["tokens"] for r in runs], dtype=torch.float64)
    y = torch.tensor([r["bits_per_byte"] for r in runs], dtype=torch.float64)
    best, best_error = None, math.inf
    for a in exponents:
        for b in exponents:
            X = torch.stack([torch.ones_like(N), N**-a, D**-b], dim=1)
            solution = torch.linalg.lstsq(X, y[:, None]).solution[:, 0]
            error = ((X @ solution - y) ** 2).sum().item()
            if error < best_error:
                best_error = error
                E, A, B = solution.tolist()
                best = {"E": E, "A": A, "B": B, "a": a, "b": b}
    return best


def compute_optimal(law, budget):
    a, b = law["a"], law["b"]
    factor = (a * law["A"] / (b * law["B"])) ** (1 / (a + b))
    n = factor * (budget / 6) ** (a / (a + b))
    d = budget / (6 * n)
    return n, d


# === exercise: scaling-law | function: fit_scaling_law | kind: double | what is wrong: N is counted without the embedding, and one exponent is tried for both terms (a = b) instead of every pair.
# told: named
# now: named
# says: the embedding is not counted, and only equal exponents are tried
def predicted_loss(law, parameters, tokens):
    return law["E"] + law["A"] * parameters ** -law["a"] + law["B"] * tokens ** -law["b"]


def fit_scaling_law(runs, exponents):
    losses = torch.tensor([[run["bits_per_byte"]] for run in runs], dtype=torch.float64)
    fits = []
    for power in exponents:
        rows = [
            [1.0, run["parameters"] ** -power, run["tokens"] ** -power] for run in runs
        ]
        rows = torch.tensor(rows, dtype=torch.float64)
        found = torch.linalg.lstsq(rows, losses).solution
        squared = float((rows @ found - losses).square().sum())
        fits.append((squared, power, found.flatten().tolist()))
    squared, power, (E, A, B) = min(fits, key=lambda fit: fit[0])
    return {"E": E, "A": A, "B": B, "a": power, "b": power}


def compute_optimal(law, budget):
    total = law["a"] + law["b"]
    ratio = law["a"] * law["A"] / (law["b"] * law["B"])
    n = ratio ** (1 / total) * (budget / 6) ** (law["b"] / total)
    return n, budget / 6 / n


# === exercise: induction-score | function: best_head | kind: subtle | what is wrong: the layer is chosen by its mean over the heads, and the best head is then looked for in this layer only; the largest single score may be in another layer.
# told: named
# now: named
# says: the best layer first, then its best head
def induction_scores(weights, tokens):
    picked = []
    ids = tokens.tolist()
    for t in range(len(ids)):
        for p in range(t - 1, -1, -1):
            if ids[p] == ids[t]:
                picked.append(weights[:, :, t, p + 1])
                break
    return torch.stack(picked).mean(dim=0)


def best_head(scores):
    layer = scores.mean(dim=1).argmax().item()
    head = scores[layer].argmax().item()
    return layer, head


# === exercise: induction-score | function: induction_scores | kind: double | what is wrong: the first occurrence of the token is used instead of the latest earlier one, and the sum is divided by all T positions instead of those that have an earlier occurrence.
# told: named
# now: named
# says: the first occurrence in place of the latest
def induction_scores(weights, tokens):
    layers, heads, T, _ = weights.shape
    total = weights.new_zeros(layers, heads)
    seen = {}
    for t, token in enumerate(tokens.tolist()):
        if token in seen:
            total = total + weights[:, :, t, seen[token] + 1]
        else:
            seen[token] = t
    return total / T


def best_head(scores):
    index = int(scores.flatten().argmax())
    return divmod(index, scores.shape[1])


# === exercise: patch-activations | function: run_patched | kind: subtle | what is wrong: afterwards all forward hooks of the block are cleared instead of the own one being removed, so the hooks of others are gone too.
# told: named
# now: named
# says: hooks of others are removed
@torch.no_grad()
def record_activations(model, ids):
    kept = []

    def keep(block, inputs, output):
        kept.append(output[0].clone())

    handles = [block.register_forward_hook(keep) for block in model.blocks]
    model(ids)
    for handle in handles:
        handle.remove()
    return torch.stack(kept)


@torch.no_grad()
def run_patched(model, ids, layer, position, activation):
    def patch(block, inputs, output):
        changed = output.clone()
        changed[0, position] = activation
        return changed

    target = model.blocks[layer]
    target.register_forward_hook(patch)
    logits = model(ids)
    target._forward_hooks.clear()
    return logits


@torch.no_grad()
def patching_effect(model, clean, corrupted, right, wrong):
    def difference(logits):
        return logits[0, -1, right] - logits[0, -1, wrong]

    activations = record_activations(model, clean)
    good = difference(model(clean))
    bad = difference(model(corrupted))
    layers, T, _ = activations.shape
    effect = torch.zeros(layers, T)
    for layer in range(layers):
        for t in range(T):
            logits = run_patched(model, corrupted, layer, t, activations[layer, t])
            effect[layer, t] = (difference(logits) - bad) / (good - bad)
    return effect


# === exercise: patch-activations | function: patching_effect | kind: double | what is wrong: the logit difference of the patched run is read at the patched position instead of the last one, and the share is divided by the clean difference alone instead of clean minus corrupted.
# told: named
# now: named
# says: divided by the clean difference alone
@torch.no_grad()
def record_activations(model, ids):
    store = {}
    hooks = []
    for number, block in enumerate(model.blocks):

        def hook(module, inputs, output, number=number):
            store[number] = output.detach().clone()

        hooks.append(block.register_forward_hook(hook))
    model(ids)
    for each in hooks:
        each.remove()
    return torch.cat([store[number] for number in range(len(model.blocks))])


@torch.no_grad()
def run_patched(model, ids, layer, position, activation):
    def hook(module, inputs, output):
        new = output.clone()
        new[:, position, :] = activation
        return new

    handle = model.blocks[layer].register_forward_hook(hook)
    try:
        return model(ids)
    finally:
        handle.remove()


@torch.no_grad()
def patching_effect(model, clean, corrupted, right, wrong):
    acts = record_activations(model, clean)
    clean_logits = model(clean)[0, -1]
    corrupted_logits = model(corrupted)[0, -1]
    delta_clean = clean_logits[right] - clean_logits[wrong]
    delta_corrupted = corrupted_logits[right] - corrupted_logits[wrong]

    rows = []
    for layer in range(acts.shape[0]):
        row = []
        for position in range(acts.shape[1]):
            logits = run_patched(model, corrupted, layer, position, acts[layer, position])
            at = logits[0, position]
            row.append((at[right] - at[wrong] - delta_corrupted) / delta_clean)
        rows.append(torch.stack(row))
    return torch.stack(rows)


# === exercise: logit-lens | function: lens_gain | kind: plain | what is wrong: the control is the other position's own probability of its own target (log p at position order[t]), instead of the other target's probability at the same position t; for a permutation the gain is always 0.
# told: named
# now: named
# says: the right tokens once more
def _log_probabilities(stream, gamma, table):
    size = torch.sqrt(stream.pow(2).mean(dim=-1, keepdim=True) + 1e-5)
    logits = (stream / size * gamma) @ table.T
    return logits, torch.log_softmax(logits, dim=-1)


def logit_lens(stream, gamma, table, targets):
    logits, logs = _log_probabilities(stream, gamma, table)
    index = torch.arange(len(targets))
    own = logits[:, index, targets]
    ranks = 1 + (logits > own[..., None]).sum(dim=-1)
    return logs[:, index, targets].exp(), ranks


def lens_gain(stream, gamma, table, targets, order):
    _, logs = _log_probabilities(stream, gamma, table)
    right = logs[:, torch.arange(len(targets)), targets]
    control = right[:, order]
    return (right - control).mean(dim=1)
