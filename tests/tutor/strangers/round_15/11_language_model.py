# ruff: noqa
# fmt: off

# === exercise: bits-per-byte | function: bits_per_byte | kind: subtle | what is wrong: the text is stripped before its bytes are counted, so a text that begins or ends with spaces or a line break gets too few bytes and too many bits per byte (a text of white space alone divides by zero), though those characters are in the tokens, too
# told: named
# now: named
# says: the text is stripped
def bits_per_byte(losses: torch.Tensor, text: str) -> float:
    """Say what a text costs a model, in a unit that no tokenizer changes."""
    # a line break at the end of a file is not part of what the text says
    text = text.strip()
    n_bytes = len(text.encode("utf-8"))
    total_nats = losses.sum().item()
    total_bits = total_nats / math.log(2)
    return total_bits / n_bytes


# === exercise: bits-per-byte | function: bits_per_byte | kind: double | what is wrong: nats are multiplied by ln 2 in place of divided by it to become bits; sys.getsizeof measures the Python object with its header (33 bytes more) in place of the length of the encoded text
# told: shown
# now: named
# says: multiplied by ln 2, and the size of Python's object
import sys


def bits_per_byte(losses: torch.Tensor, text: str) -> float:
    """Say what a text costs a model, in a unit that no tokenizer changes."""
    NATS_TO_BITS = math.log(2)
    bits = 0.0
    for loss in losses.tolist():
        bits += loss * NATS_TO_BITS
    size = sys.getsizeof(text.encode("utf-8"))  # in bytes
    return bits / size


# === exercise: pack-documents | function: pack_documents | kind: plain | what is wrong: the positions are counted inside of each block, so a document that is cut in two begins at position 0 again in the next block in place of going on
# told: named
# now: named
# says: positions begin anew in each block
def pack_documents(
    documents: list[list[int]], end_id: int, length: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Put documents one behind the other, and cut them into blocks of one length."""
    stream, owner = [], []
    for number, document in enumerate(documents):
        stream.extend(document)
        stream.append(end_id)
        owner.extend([number] * (len(document) + 1))

    blocks = (len(stream) - 1) // length
    used = blocks * length
    ids = torch.tensor(stream)
    inputs = ids[:used].view(blocks, length)
    labels = ids[1 : used + 1].view(blocks, length)
    owners = torch.tensor(owner)[:used].view(blocks, length)

    positions = torch.zeros_like(owners)
    for row in range(blocks):
        for column in range(1, length):
            if owners[row, column] == owners[row, column - 1]:
                positions[row, column] = positions[row, column - 1] + 1
    return inputs, labels, owners, positions


# === exercise: pack-documents | function: pack_documents | kind: subtle | what is wrong: if there are too few tokens for a single block (N = 0), torch.tensor of an empty list gives float tensors of shape (0,) in place of integers of shape (0, T)
# dropped: where there is no block nothing is in the tensors, and any empty tensor counts as right
def pack_documents(
    documents: list[list[int]], end_id: int, length: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Put documents one behind the other, and cut them into blocks of one length."""
    triples = []
    for d, doc in enumerate(documents):
        for p, token in enumerate([*doc, end_id]):
            triples.append((token, d, p))

    inputs, labels, numbers, places = [], [], [], []
    # a block needs length tokens and one more for its last label
    for start in range(0, len(triples) - length, length):
        piece = triples[start : start + length + 1]
        inputs.append([t for t, _, _ in piece[:-1]])
        labels.append([t for t, _, _ in piece[1:]])
        numbers.append([d for _, d, _ in piece[:-1]])
        places.append([p for _, _, p in piece[:-1]])
    return (
        torch.tensor(inputs),
        torch.tensor(labels),
        torch.tensor(numbers),
        torch.tensor(places),
    )


# === exercise: document-mask | function: document_mask | kind: subtle | what is wrong: a new document is only noticed where the number rises, so where a smaller number follows a larger one (the numbers need not rise) the second document may read the first
# told: named
# now: named
# says: a new document only where the number rises
def document_mask(documents: torch.Tensor) -> torch.Tensor:
    """Let each position attend to those of its own document that are not after it."""
    T = documents.shape[1]
    # 1 where a new document begins, then counted up along the row
    begins = torch.zeros_like(documents)
    begins[:, 1:] = documents[:, 1:] > documents[:, :-1]
    segment = begins.cumsum(dim=1)
    same = segment[:, :, None] == segment[:, None, :]
    allowed = same & causal_mask(T)
    return allowed[:, None]


# === exercise: document-mask | function: document_mask | kind: double | what is wrong: the mask is made of floats 1 and 0 in place of booleans; the new axis is put in front of the batch, (1, B, T, T) in place of (B, 1, T, T), which shows as soon as the batch has more than one row
# told: named
# now: named
# says: numbers in place of True and False
def document_mask(documents: torch.Tensor) -> torch.Tensor:
    """Let each position attend to those of its own document that are not after it."""
    length = documents.size(-1)
    queries = documents.unsqueeze(-1)  # (B, T, 1)
    keys = documents.unsqueeze(-2)  # (B, 1, T)
    mask = torch.logical_and(queries == keys, causal_mask(length))
    # ones and zeros, with an axis that broadcasts over the heads
    return mask.float().unsqueeze(0)


# === exercise: causal-attention | function: causal_attention | kind: subtle | what is wrong: the heads of the queries are taken apart as (groups, kv_heads) in place of (kv_heads, groups), so query head i uses the keys of head i mod kv_heads and not of i // g, which shows only if 1 < kv_heads < heads
# told: named
# now: named
# says: kv heads dealt out in turn
def causal_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rotary: bool = False
) -> torch.Tensor:
    """Attend from each position to itself and to those before it."""
    batch, heads, length, width = q.shape
    shared = k.shape[1]
    if rotary:
        q, k = apply_rotary(q), apply_rotary(k)
    # no copies of k and v: an axis for the group is enough
    q = q.reshape(batch, heads // shared, shared, length, width)
    scores = torch.einsum("bgkqd,bksd->bgkqs", q, k) / math.sqrt(width)
    scores = scores.masked_fill(~causal_mask(length), -math.inf)
    weights = torch.softmax(scores, dim=-1)
    z = torch.einsum("bgkqs,bksd->bgkqd", weights, v)
    return z.reshape(batch, heads, length, width)


# === exercise: causal-attention | function: causal_attention | kind: double | what is wrong: q and k are turned to (B, T, heads, d_k) before apply_rotary, so they are rotated by the number of their head and not by their position; the scores are not divided by the root of d_k
# told: named
# now: named
# says: the scores are not scaled, and rotated by the number of the head
def causal_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rotary: bool = False
) -> torch.Tensor:
    """Attend from each position to itself and to those before it."""
    if rotary:
        # rotary embeddings want (B, T, heads, d_k)
        q = apply_rotary(q.transpose(1, 2)).transpose(1, 2)
        k = apply_rotary(k.transpose(1, 2)).transpose(1, 2)
    group = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(group, dim=1)
    v = v.repeat_interleave(group, dim=1)
    scores = q @ k.transpose(-2, -1)
    visible = causal_mask(q.shape[-2])
    scores = scores.masked_fill(visible.logical_not(), float("-inf"))
    return scores.softmax(dim=-1) @ v


# === exercise: block-from-configuration | function: DecoderBlock | kind: plain | what is wrong: a parallel block as in GPT-J: the network reads norm_2 of x as it came in, and not of y, to which the result of attention has been added
# dropped: w_q is a parameter in chapter 5, and cannot be called; the slip that was meant never shows
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
        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        if feed_forward == "swiglu":
            self.feed_forward = SwiGLU(d_model, d_ff)
        else:
            self.feed_forward = FeedForward(d_model, d_ff, feed_forward)
        make_norm = RMSNorm if norm == "rms" else LayerNorm
        self.norm_1 = make_norm(d_model)
        self.norm_2 = make_norm(d_model)
        self.norm_q = RMSNorm(d_model // heads) if qk_norm else nn.Identity()
        self.norm_k = RMSNorm(d_model // heads) if qk_norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def project(
        self, x: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Make queries, keys and values; nothing is rotated yet."""
        normed = self.norm_1(x)
        q = split_heads(self.attention.w_q(normed), self.heads)
        k = split_heads(self.attention.w_k(normed), self.kv_heads)
        v = split_heads(self.attention.w_v(normed), self.kv_heads)
        return self.norm_q(q), self.norm_k(k), v

    def finish(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        """Add what attention has found, then what the network makes of it."""
        attended = self.attention.w_o(merge_heads(z))
        hidden = self.feed_forward(self.norm_2(x))
        return x + self.dropout(attended) + self.dropout(hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run both halves; x and result (B, T, d_model)."""
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


# === exercise: block-from-configuration | function: DecoderBlock | kind: subtle | what is wrong: with qk_norm, norm_q and norm_k are one and the same module (a chained assignment), so queries and keys share a gamma and the block has d_k parameters too few (a fresh block computes the right thing, so it shows only in the count and when the two gammas are to differ)
# told: named
# now: named
# says: one norm for queries and keys
class DecoderBlock(nn.Module):
    """Causal self-attention and a feed-forward network, each after its norm."""

    NORMS = {"layer": LayerNorm, "rms": RMSNorm}

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

        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        self.feed_forward = (
            SwiGLU(d_model, d_ff)
            if feed_forward == "swiglu"
            else FeedForward(d_model, d_ff, feed_forward)
        )
        self.norm_1 = self.NORMS[norm](d_model)
        self.norm_2 = self.NORMS[norm](d_model)
        self.norm_q = self.norm_k = RMSNorm(d_k) if qk_norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def project(
        self, x: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Make queries, keys and values; nothing is rotated yet."""
        h = self.norm_1(x)
        q = self.attention.w_q(h).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        k = self.attention.w_k(h).unflatten(-1, (self.kv_heads, -1)).transpose(1, 2)
        v = self.attention.w_v(h).unflatten(-1, (self.kv_heads, -1)).transpose(1, 2)
        return self.norm_q(q), self.norm_k(k), v

    def finish(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        """Add what attention has found, then what the network makes of it."""
        y = x + self.dropout(self.attention.w_o(merge_heads(z)))
        return y + self.dropout(self.feed_forward(self.norm_2(y)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run both halves; x and result (B, T, d_model)."""
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


# === exercise: block-from-configuration | function: DecoderBlock | kind: double | what is wrong: QK norm is taken over all heads together, before the split, with norms of width heads * d_k and kv_heads * d_k in place of one of width d_k that all heads share; what attention adds goes without dropout, only the network's half has it
# told: named
# now: named
# says: norms of queries and keys as wide as the model
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
        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        if feed_forward in ("relu", "gelu"):
            self.feed_forward = FeedForward(d_model, d_ff, feed_forward)
        else:
            self.feed_forward = SwiGLU(d_model, d_ff)
        if norm == "layer":
            self.norm_1, self.norm_2 = LayerNorm(d_model), LayerNorm(d_model)
        else:
            self.norm_1, self.norm_2 = RMSNorm(d_model), RMSNorm(d_model)
        if qk_norm:
            # as wide as what w_q and w_k give
            self.norm_q = RMSNorm(d_model)
            self.norm_k = RMSNorm(kv_heads * (d_model // heads))
        else:
            self.norm_q, self.norm_k = nn.Identity(), nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def _split(self, x: torch.Tensor, heads: int) -> torch.Tensor:
        batch, length, width = x.shape
        return x.reshape(batch, length, heads, width // heads).transpose(1, 2)

    def project(
        self, x: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Make queries, keys and values; nothing is rotated yet."""
        x = self.norm_1(x)
        q = self.norm_q(self.attention.w_q(x))
        k = self.norm_k(self.attention.w_k(x))
        v = self.attention.w_v(x)
        return (
            self._split(q, self.heads),
            self._split(k, self.kv_heads),
            self._split(v, self.kv_heads),
        )

    def finish(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        """Add what attention has found, then what the network makes of it."""
        z = z.transpose(1, 2).flatten(2)  # (B, T, d_model)
        x = x + self.attention.w_o(z)
        x = x + self.dropout(self.feed_forward(self.norm_2(x)))
        return x

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run both halves; x and result (B, T, d_model)."""
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


# === exercise: write-with-cache | function: write_with_cache | kind: plain | what is wrong: start is the length of the text after the new token has been appended, so each written token is read one position too far to the right (it stands at len(text) - 1)
# told: named
# now: named
# says: positions one too far
@torch.no_grad()
def write_with_cache(model: nn.Module, prompt: list[int], length: int) -> list[int]:
    """Write the most probable token again and again, and read nothing twice."""
    if not prompt:
        raise ValueError("the prompt is empty")
    text = list(prompt)
    new, start, cache = list(prompt), 0, None
    for _ in range(length):
        logits, cache = model(torch.tensor([new]), start, cache)
        token = int(logits[0, -1].argmax())
        text.append(token)
        new, start = [token], len(text)
    return text


# === exercise: write-with-cache | function: write_with_cache | kind: double | what is wrong: an empty prompt is refused by an assert, which raises an AssertionError and not the ValueError that is asked for; only the written tokens are returned, without the prompt in front
# told: named
# now: named
# says: the prompt is left out
@torch.no_grad()
def write_with_cache(model: nn.Module, prompt: list[int], length: int) -> list[int]:
    """Write the most probable token again and again, and read nothing twice."""
    assert len(prompt) > 0, "the prompt needs at least one id"
    ids = torch.tensor([prompt])
    start, cache = 0, None
    written: list[int] = []
    while len(written) < length:
        logits, cache = model(ids, start, cache)
        best = logits[0, -1].argmax().item()
        written.append(best)
        start += ids.shape[1]
        ids = torch.tensor([[best]])
    return written


# === exercise: online-softmax | function: online_step | kind: plain | what is wrong: the new maximum is that of the new block alone, not the larger of it and the old one, so the maximum falls if a block brings smaller scores, the factor becomes larger than 1 (infinite for scores of 10000), and a block that is all forbidden makes the next step forget what was summed up
# told: named
# now: named
# says: the maximum of the new block alone
def online_step(
    maximum: torch.Tensor,
    total: torch.Tensor,
    output: torch.Tensor,
    scores: torch.Tensor,
    values: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Take one more block of keys into a softmax."""
    new = scores.amax(dim=-1, keepdim=True)
    reference = new.masked_fill(new.isneginf(), 0.0)
    factor = torch.exp(maximum - reference)
    weights = torch.exp(scores - reference)
    total = total * factor + weights.sum(dim=-1, keepdim=True)
    output = output * factor + weights @ values
    return new, total, output


def online_softmax(blocks: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    """Mix all values with the softmax of all scores, block by block."""
    scores, values = blocks[0]
    maximum = torch.full_like(scores[..., :1], -math.inf)
    total = torch.zeros_like(maximum)
    output = scores.new_zeros(*scores.shape[:-1], values.shape[-1])
    for scores, values in blocks:
        maximum, total, output = online_step(maximum, total, output, scores, values)
    return output / torch.where(total == 0, torch.ones_like(total), total)


# === exercise: online-softmax | function: online_softmax | kind: subtle | what is wrong: the softmax begins with a maximum of 0 in place of minus infinity, so if all scores of a query are far below 0 (such as -10000) every exponential underflows, the sum stays 0 and the result is 0 in place of the mixture
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
    """Take one more block of keys into a softmax."""
    block_max = scores.amax(-1, keepdim=True)
    new_max = torch.maximum(maximum, block_max)
    safe = torch.where(new_max.isneginf(), torch.zeros_like(new_max), new_max)
    rescale = (maximum - safe).exp()
    p = (scores - safe).exp()
    new_total = rescale * total + p.sum(-1, keepdim=True)
    new_output = rescale * output + torch.einsum("...tb,...bd->...td", p, values)
    return new_max, new_total, new_output


def online_softmax(blocks: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    """Mix all values with the softmax of all scores, block by block."""
    first_scores, first_values = blocks[0]
    lead = first_scores.shape[:-1]
    # nothing has been seen: all three are zero
    state = (
        first_scores.new_zeros(*lead, 1),
        first_scores.new_zeros(*lead, 1),
        first_scores.new_zeros(*lead, first_values.shape[-1]),
    )
    for scores, values in blocks:
        state = online_step(*state, scores, values)
    _, total, output = state
    return output / total.masked_fill(total == 0, 1.0)


# === exercise: tiled-attention | function: tiled_attention | kind: plain | what is wrong: with causal=True the queries are counted from 0 again in each tile (the beginning of the tile is not added), so all tiles of queries but the first see too few keys
# told: named
# now: named
# says: queries counted from 0 in each tile
def attend_from_tile(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, block: int, last: torch.Tensor
) -> torch.Tensor:
    """Attend from one tile of queries to the keys, a tile of them at a time."""
    maximum = q.new_full((*q.shape[:-1], 1), -math.inf)
    total = q.new_zeros((*q.shape[:-1], 1))
    output = q.new_zeros((*q.shape[:-1], v.shape[-1]))
    seen = min(k.shape[-2], int(last.max()) + 1)
    for first in range(0, seen, block):
        keys = k[..., first : first + block, :]
        values = v[..., first : first + block, :]
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
    """Attend exactly, and never hold more than T_q · block scores."""
    n_queries, n_keys = q.shape[-2], k.shape[-2]
    results = []
    for start in range(0, n_queries, block):
        tile = q[..., start : start + block, :]
        rows = tile.shape[-2]
        if causal:
            last = torch.arange(rows).unsqueeze(-1) + (n_keys - n_queries)
        else:
            last = torch.full((rows, 1), n_keys - 1)
        results.append(attend_from_tile(tile, k, v, block, last))
    return torch.cat(results, dim=-2)


# === exercise: tiled-attention | function: tiled_attention | kind: subtle | what is wrong: a tile of keys that no query of the tile sees is masked but not skipped, so its weights of 0 are multiplied with its values, and a NaN that stands there gets into the results of earlier queries, while with ordinary numbers nothing is seen of it but the needless work
# told: named
# now: named
# says: tiles in the future are computed
def attend_from_tile(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, block: int, last: torch.Tensor
) -> torch.Tensor:
    """Attend from one tile of queries to the keys, a tile of them at a time."""
    lead = q.shape[:-1]
    m = torch.full((*lead, 1), -math.inf, dtype=q.dtype, device=q.device)
    l = torch.zeros((*lead, 1), dtype=q.dtype, device=q.device)
    o = torch.zeros((*lead, v.shape[-1]), dtype=q.dtype, device=q.device)
    scale = q.shape[-1] ** -0.5

    first = 0
    for k_tile, v_tile in zip(k.split(block, dim=-2), v.split(block, dim=-2)):
        s = torch.einsum("...qd,...kd->...qk", q, k_tile) * scale
        j = first + torch.arange(k_tile.shape[-2], device=q.device)
        s = s.masked_fill(j[None, :] > last, -math.inf)  # the future weighs 0
        m, l, o = online_step(m, l, o, s, v_tile)
        first += k_tile.shape[-2]
    return o / l.clamp(min=1)


def tiled_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    block: int,
    causal: bool = False,
) -> torch.Tensor:
    """Attend exactly, and never hold more than T_q · block scores."""
    t_q, t_k = q.shape[-2], k.shape[-2]
    if causal:
        last = torch.arange(t_k - t_q, t_k, device=q.device)[:, None]
    else:
        last = torch.full((t_q, 1), t_k - 1, device=q.device)
    pieces = [
        attend_from_tile(q_tile, k, v, block, last_tile)
        for q_tile, last_tile in zip(q.split(block, dim=-2), last.split(block))
    ]
    return torch.cat(pieces, dim=-2)


# === exercise: tiled-attention | function: tiled_attention | kind: double | what is wrong: the number of tiles of keys is rounded down, so the keys of a shorter last tile are never read if block does not divide T_k; query i is taken to be at position i and not at T_k - T_q + i, which shows if there are more keys than queries or fewer
# told: named
# now: named
# says: causal from the first key on, and the keys of the last, shorter tile are left out
def attend_from_tile(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, block: int, last: torch.Tensor
) -> torch.Tensor:
    """Attend from one tile of queries to the keys, a tile of them at a time."""
    running = (
        torch.full_like(q[..., :1], -math.inf),
        torch.zeros_like(q[..., :1]),
        q.new_zeros(*q.shape[:-1], v.size(-1)),
    )
    num_tiles = k.size(-2) // block
    for tile in range(num_tiles):
        lo, hi = tile * block, (tile + 1) * block
        if lo > last.max():
            break  # only the future from here on
        scores = (q @ k[..., lo:hi, :].transpose(-1, -2)) / q.size(-1) ** 0.5
        hidden = torch.arange(lo, hi) > last
        scores = scores.masked_fill(hidden, -math.inf)
        running = online_step(*running, scores, v[..., lo:hi, :])
    _, total, output = running
    return output / torch.clamp(total, min=1.0)


def tiled_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    block: int,
    causal: bool = False,
) -> torch.Tensor:
    """Attend exactly, and never hold more than T_q · block scores."""
    if causal:
        last = torch.arange(q.size(-2)).reshape(-1, 1)
    else:
        last = torch.full((q.size(-2), 1), k.size(-2) - 1)
    out = []
    for q_tile, last_tile in zip(q.split(block, dim=-2), last.split(block, dim=0)):
        out.append(attend_from_tile(q_tile, k, v, block, last_tile))
    return torch.cat(out, dim=-2)


# === exercise: adamw-step | function: adamw_step | kind: plain | what is wrong: the decay is not multiplied by the learning rate: the parameter loses weight_decay * parameter in place of rate * weight_decay * parameter
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
    """Move a parameter by one step of AdamW."""
    beta_1, beta_2 = betas
    first = beta_1 * first + (1 - beta_1) * gradient
    second = beta_2 * second + (1 - beta_2) * gradient**2
    first_hat = first / (1 - beta_1**step)
    second_hat = second / (1 - beta_2**step)
    # decoupled: the decay does not go through Adam
    decay = weight_decay * parameter
    move = rate * first_hat / (second_hat.sqrt() + eps)
    return parameter - decay - move, first, second


# === exercise: adamw-step | function: adamw_step | kind: subtle | what is wrong: both corrections are drawn into the rate, as Keras does it, so eps is added to the root of the second moment before its correction, which makes eps up to 1 / sqrt(1 - beta_2^t) times as large (32 times at step 1), which shows if eps is not small beside the gradient
# told: shown
# now: named
# says: eps is added before the correction
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
    """Move a parameter by one step of AdamW."""
    b1, b2 = betas
    m = first + (gradient - first) * (1.0 - b1)
    v = second + (gradient.square() - second) * (1.0 - b2)
    # both corrections in a single number
    alpha = rate * math.sqrt(1.0 - b2**step) / (1.0 - b1**step)
    new = parameter - rate * weight_decay * parameter
    new = new - alpha * m / (v.sqrt() + eps)
    return new, m, v


# === exercise: adamw-step | function: adamw_step | kind: double | what is wrong: mul_ and add_ write both moments into the caller's tensors; the decay is taken of the parameter after it has moved, not of the parameter as it was before
# told: named
# now: named
# says: changes its argument in place
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
    """Move a parameter by one step of AdamW."""
    beta1, beta2 = betas
    first.mul_(beta1).add_(gradient, alpha=1 - beta1)
    second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)

    bias_correction1 = 1 - beta1**step
    bias_correction2 = 1 - beta2**step
    denom = (second / bias_correction2).sqrt() + eps
    updated = parameter - rate * (first / bias_correction1) / denom
    updated = updated * (1 - rate * weight_decay)
    return updated, first, second


# === exercise: orthogonalise | function: orthogonalise | kind: plain | what is wrong: the matrix is divided by its spectral norm (the largest singular value) in place of its Frobenius norm, so all singular values begin too large as soon as there is more than one
# told: named
# now: named
# says: normalised by the largest singular value
def orthogonalise(matrix: torch.Tensor, rounds: int = 5) -> torch.Tensor:
    """Bring the singular values of a matrix near 1, and keep its directions."""
    a, b, c = 3.4445, -4.7750, 2.0315
    tall = matrix.shape[-2] > matrix.shape[-1]
    x = matrix.mT if tall else matrix
    # afterwards the largest singular value is 1
    largest = torch.linalg.matrix_norm(x, ord=2, keepdim=True)
    x = x / (largest + 1e-7)
    for _ in range(rounds):
        square = x @ x.mT
        x = a * x + (b * square + c * square @ square) @ x
    return x.mT if tall else x


# === exercise: orthogonalise | function: orthogonalise | kind: double | what is wrong: X X^T is computed once before the loop and not again from the new X of each round, which shows from the second round on; what was transposed is not turned back, so a matrix with more rows than columns comes back as (m, n)
# told: named
# now: named
# says: X Xᵀ of the first round in all rounds, and not turned back
def orthogonalise(matrix: torch.Tensor, rounds: int = 5) -> torch.Tensor:
    """Bring the singular values of a matrix near 1, and keep its directions."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = matrix
    if x.size(-2) > x.size(-1):
        x = x.transpose(-2, -1)
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)

    gram = x @ x.transpose(-2, -1)  # occurs twice in the formula, computed once
    polynomial = b * gram + c * (gram @ gram)
    for _ in range(rounds):
        x = a * x + polynomial @ x
    return x


# === exercise: run-budget | function: run_budget | kind: subtle | what is wrong: the bytes to train are the rule of thumb of 16 bytes per parameter, in place of four times number_bytes, so they are wrong for numbers that do not have 4 bytes
# told: named
# now: named
# says: four bytes a number, whatever number_bytes is
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
    """Count what it costs to train a language model, and to write with it."""
    head_dim = d_model // heads
    attention = 2 * d_model * d_model + 2 * d_model * kv_heads * head_dim
    swiglu = 3 * d_model * d_ff
    norms = 2 * d_model
    parameters = layers * (attention + swiglu + norms) + vocab_size * d_model + d_model

    def cache(n_heads, positions):
        return 2 * layers * positions * n_heads * head_dim * number_bytes

    return {
        "parameters": parameters,
        "operations": 6 * parameters * tokens,
        "training_bytes": 16 * parameters,  # weight, gradient, two moments
        "cache_multi_head": cache(heads, length),
        "cache_grouped": cache(kv_heads, length),
        "cache_windowed": cache(kv_heads, min(length, window)),
    }


# === exercise: run-budget | function: run_budget | kind: double | what is wrong: the operations leave the table out of N (as Kaplan et al. counted), though each of the N parameters counts; cache_windowed takes the whole window even if the text is shorter than it
# told: named
# now: named
# says: the operations without the embeddings, and the window of a shorter text
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
    """Count what it costs to train a language model, and to write with it."""
    d_k = d_model // heads
    kv_width = kv_heads * d_k
    shapes = [
        (d_model, d_model),  # queries
        (d_model, kv_width),  # keys
        (d_model, kv_width),  # values
        (d_model, d_model),  # output
        (d_model, d_ff),  # gate
        (d_model, d_ff),  # up
        (d_ff, d_model),  # down
        (1, d_model),  # norm 1
        (1, d_model),  # norm 2
    ]
    block = sum(n * m for n, m in shapes)
    body = layers * block + d_model
    table = vocab_size * d_model  # looked up, not multiplied
    parameters = body + table

    per_position = 2 * layers * number_bytes
    budget = {}
    budget["parameters"] = parameters
    budget["operations"] = 6 * body * tokens
    budget["training_bytes"] = 4 * parameters * number_bytes
    budget["cache_multi_head"] = per_position * length * d_model
    budget["cache_grouped"] = per_position * length * kv_width
    budget["cache_windowed"] = per_position * window * kv_width
    return budget


# === exercise: scaling-law | function: fit_scaling_law | kind: plain | what is wrong: the law is fitted to run["nats_per_token"] in place of run["bits_per_byte"]
# told: named
# now: named
# says: nats per token in place of bits per byte
def predicted_loss(law: dict[str, float], parameters: float, tokens: float) -> float:
    """Say what a model loses by a law."""
    return law["E"] + law["A"] / parameters ** law["a"] + law["B"] / tokens ** law["b"]


def fit_scaling_law(
    runs: list[dict[str, float]], exponents: list[float]
) -> dict[str, float]:
    """Find the law that fits runs best."""
    N = torch.tensor(
        [run["parameters"] + run["embedding"] for run in runs], dtype=torch.float64
    )
    D = torch.tensor([run["tokens"] for run in runs], dtype=torch.float64)
    # the cross-entropy that training minimises
    loss = torch.tensor([run["nats_per_token"] for run in runs], dtype=torch.float64)
    loss = loss.unsqueeze(-1)

    best, smallest = {}, math.inf
    for a in exponents:
        for b in exponents:
            columns = torch.stack([torch.ones_like(N), N**-a, D**-b], dim=1)
            solution = torch.linalg.lstsq(columns, loss).solution
            error = ((columns @ solution - loss) ** 2).sum().item()
            if error < smallest:
                smallest = error
                E, A, B = solution.squeeze(-1).tolist()
                best = {"E": E, "A": A, "B": B, "a": a, "b": b}
    return best


def compute_optimal(law: dict[str, float], budget: float) -> tuple[float, float]:
    """Split a budget between the model and its text."""
    a, b = law["a"], law["b"]
    ratio = (a * law["A"]) / (b * law["B"])
    parameters = ratio ** (1 / (a + b)) * (budget / 6) ** (b / (a + b))
    return parameters, budget / (6 * parameters)


# === exercise: scaling-law | function: compute_optimal | kind: subtle | what is wrong: the model grows with the exponent a / (a + b) of the budget in place of b / (a + b), which shows only if a and b differ
# told: named
# now: named
# says: exponents exchanged
def predicted_loss(law: dict[str, float], parameters: float, tokens: float) -> float:
    """Say what a model loses by a law."""
    from_size = law["A"] * parameters ** -law["a"]
    from_text = law["B"] * tokens ** -law["b"]
    return law["E"] + from_size + from_text


def fit_scaling_law(
    runs: list[dict[str, float]], exponents: list[float]
) -> dict[str, float]:
    """Find the law that fits runs best."""
    table = torch.tensor(
        [
            [r["parameters"] + r["embedding"], r["tokens"], r["bits_per_byte"]]
            for r in runs
        ],
        dtype=torch.float64,
    )
    sizes, texts, losses = table.unbind(dim=1)
    ones = torch.ones_like(sizes)
    candidates = []
    for a in exponents:
        for b in exponents:
            X = torch.stack((ones, sizes ** (-a), texts ** (-b)), dim=-1)
            w = torch.linalg.lstsq(X, losses[:, None]).solution[:, 0]
            squared = float((X @ w - losses).pow(2).sum())
            candidates.append((squared, a, b, w.tolist()))
    _, a, b, (E, A, B) = min(candidates, key=lambda each: each[0])
    return {"E": E, "A": A, "B": B, "a": a, "b": b}


def compute_optimal(law: dict[str, float], budget: float) -> tuple[float, float]:
    """Split a budget between the model and its text."""
    E, A, B, a, b = (law[key] for key in ("E", "A", "B", "a", "b"))
    share = a / (a + b)
    n = (a * A / (b * B)) ** (1 / (a + b)) * (budget / 6) ** share
    d = budget / (6 * n)
    return n, d


# === exercise: scaling-law | function: fit_scaling_law | kind: double | what is wrong: combinations_with_replacement tries only the pairs in which a stands no later than b in the list, so a law with a larger than b is not found; the embedding is counted twice (as table and as output matrix), though N is parameters plus embedding
# told: useless
# now: named
# says: the embedding is counted twice, and only half of the pairs are tried
import itertools


def predicted_loss(law: dict[str, float], parameters: float, tokens: float) -> float:
    """Say what a model loses by a law."""
    return law["E"] + law["A"] / parameters ** law["a"] + law["B"] / tokens ** law["b"]


def fit_scaling_law(
    runs: list[dict[str, float]], exponents: list[float]
) -> dict[str, float]:
    """Find the law that fits runs best."""

    def column(values):
        return torch.tensor(list(values), dtype=torch.float64)

    # the rows of the vocabulary stand at the input and at the output
    n = column(run["parameters"] + 2 * run["embedding"] for run in runs)
    d = column(run["tokens"] for run in runs)
    y = column(run["bits_per_byte"] for run in runs).unsqueeze(1)

    best_error, best_law = None, None
    for a, b in itertools.combinations_with_replacement(exponents, 2):
        design = torch.stack([torch.ones_like(n), n.pow(-a), d.pow(-b)], dim=1)
        coefficients = torch.linalg.lstsq(design, y).solution
        error = (design @ coefficients - y).square().sum().item()
        if best_error is None or error < best_error:
            best_error = error
            best_law = dict(zip("EAB", coefficients.flatten().tolist()))
            best_law.update(a=a, b=b)
    return best_law


def compute_optimal(law: dict[str, float], budget: float) -> tuple[float, float]:
    """Split a budget between the model and its text."""
    total = law["a"] + law["b"]
    ratio = law["a"] * law["A"] / (law["b"] * law["B"])
    parameters = ratio ** (1 / total) * (budget / 6) ** (law["b"] / total)
    tokens = budget / 6 / parameters
    return parameters, tokens


# === exercise: induction-score | function: best_head | kind: plain | what is wrong: the layer with the largest mean score is chosen first and then the best head in it, in place of the largest of all scores, so a single strong head in a layer that is weak otherwise is missed
# told: named
# now: named
# says: the best layer first, then its best head
def induction_scores(weights: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Say of each head how much it looks at what followed the same token before."""
    same = (tokens.unsqueeze(1) == tokens.unsqueeze(0)).tril(-1)
    following = same * torch.arange(1, len(tokens) + 1)
    key = following.amax(dim=1)  # p + 1, and 0 where there is none
    query = key.nonzero().squeeze(1)
    return weights[..., query, key[query]].mean(dim=-1)


def best_head(scores: torch.Tensor) -> tuple[int, int]:
    """Return layer and head of the largest score, both counted from 0."""
    layer = int(scores.mean(dim=1).argmax())
    head = int(scores[layer].argmax())
    return layer, head


# === exercise: induction-score | function: induction_scores | kind: subtle | what is wrong: positions whose token stands twice in a row are left out (p + 1 has to be smaller than t), though p + 1 may be t itself and such positions count in the mean
# told: named
# now: named
# says: a token that stands twice in a row is left out
def induction_scores(weights: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Say of each head how much it looks at what followed the same token before."""
    latest = {}
    queries, keys = [], []
    for t, token in enumerate(tokens.tolist()):
        # a look at itself is no look back
        if token in latest and latest[token] + 1 < t:
            queries.append(t)
            keys.append(latest[token] + 1)
        latest[token] = t
    picked = weights[:, :, torch.tensor(queries), torch.tensor(keys)]
    return picked.mean(dim=-1)


def best_head(scores: torch.Tensor) -> tuple[int, int]:
    """Return layer and head of the largest score, both counted from 0."""
    return divmod(int(scores.argmax()), scores.shape[1])


# === exercise: induction-score | function: induction_scores | kind: double | what is wrong: the first earlier occurrence is taken in place of the latest, which shows for a token that occurs three times; positions whose token is new are not left out but, with a p of -1, count in the mean with their weight on key 0
# told: shown
# now: named
# says: new tokens count, too
def induction_scores(weights: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Say of each head how much it looks at what followed the same token before."""
    T = tokens.shape[0]
    previous = torch.full((T,), -1)  # -1: not seen before
    for t in range(T):
        earlier = (tokens[:t] == tokens[t]).nonzero()
        if len(earlier) > 0:
            previous[t] = earlier[0, 0]
    looked_at = weights[:, :, torch.arange(T), previous + 1]  # (layers, heads, T)
    return looked_at.mean(dim=2)


def best_head(scores: torch.Tensor) -> tuple[int, int]:
    """Return layer and head of the largest score, both counted from 0."""
    best = scores.flatten().argmax().item()
    return best // scores.size(1), best % scores.size(1)


# === exercise: patch-activations | function: patching_effect | kind: plain | what is wrong: the difference is taken between the probabilities of the right and the wrong token after a softmax, in place of between their logits
# told: named
# now: named
# says: probabilities in place of logits
@torch.no_grad()
def record_activations(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    """Keep what each block gives while a model reads."""
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
    """Run a model with one activation replaced, and leave it as it was."""

    def replace(block, inputs, output):
        changed = output.clone()
        changed[0, position] = activation
        return changed

    handle = model.blocks[layer].register_forward_hook(replace)
    try:
        return model(ids)
    finally:
        handle.remove()


@torch.no_grad()
def patching_effect(
    model: nn.Module,
    clean: torch.Tensor,
    corrupted: torch.Tensor,
    right: int,
    wrong: int,
) -> torch.Tensor:
    """Say how much each activation of the clean run brings back in the corrupted one."""

    def difference(logits):
        chances = torch.softmax(logits[0, -1], dim=-1)
        return chances[right] - chances[wrong]

    activations = record_activations(model, clean)
    best, worst = difference(model(clean)), difference(model(corrupted))
    layers, length, _ = activations.shape
    effect = activations.new_zeros(layers, length)
    for layer in range(layers):
        for position in range(length):
            activation = activations[layer, position]
            logits = run_patched(model, corrupted, layer, position, activation)
            effect[layer, position] = (difference(logits) - worst) / (best - worst)
    return effect


# === exercise: patch-activations | function: run_patched | kind: double | what is wrong: the hook is removed by clearing all hooks of the block, so hooks of others, such as the one that counts the runs, are gone, too; only the logits of the last position are returned, (1, V) in place of (1, T, V)
# told: named
# now: named
# says: only the last position
@torch.no_grad()
def record_activations(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    """Keep what each block gives while a model reads."""
    outputs, hooks = {}, []
    for number, block in enumerate(model.blocks):

        def hook(module, inputs, output, number=number):
            outputs[number] = output.detach().clone()

        hooks.append(block.register_forward_hook(hook))
    model(ids)
    for each in hooks:
        each.remove()
    return torch.cat([outputs[number] for number in range(len(hooks))], dim=0)


@torch.no_grad()
def run_patched(
    model: nn.Module,
    ids: torch.Tensor,
    layer: int,
    position: int,
    activation: torch.Tensor,
) -> torch.Tensor:
    """Run a model with one activation replaced, and leave it as it was."""
    block = model.blocks[layer]

    def patch(module, inputs, output):
        output = output.clone()
        output[:, position, :] = activation
        return output

    block.register_forward_hook(patch)
    logits = model(ids)
    block._forward_hooks.clear()
    # what should follow the text
    return logits[:, -1]


@torch.no_grad()
def patching_effect(
    model: nn.Module,
    clean: torch.Tensor,
    corrupted: torch.Tensor,
    right: int,
    wrong: int,
) -> torch.Tensor:
    """Say how much each activation of the clean run brings back in the corrupted one."""
    source = record_activations(model, clean)

    def delta(last_logits):  # (1, V)
        return (last_logits[0, right] - last_logits[0, wrong]).item()

    delta_clean = delta(model(clean)[:, -1])
    delta_corrupted = delta(model(corrupted)[:, -1])
    rows = []
    for layer in range(source.shape[0]):
        row = []
        for position in range(source.shape[1]):
            patched = delta(
                run_patched(model, corrupted, layer, position, source[layer, position])
            )
            row.append((patched - delta_corrupted) / (delta_clean - delta_corrupted))
        rows.append(row)
    return torch.tensor(rows)


# === exercise: logit-lens | function: logit_lens | kind: plain | what is wrong: the stream goes through a layer norm, which subtracts the mean and divides by the standard deviation, in place of the RMS norm
# told: named
# now: named
# says: layer norm in place of RMS norm
def logit_lens(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Read every layer of the residual stream as if the model ended there."""
    normed = nn.functional.layer_norm(stream, gamma.shape, weight=gamma, eps=1e-5)
    logits = normed @ table.T
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
    """Say how much more each layer says for the right tokens than for others."""
    right, _ = logit_lens(stream, gamma, table, targets)
    control, _ = logit_lens(stream, gamma, table, targets[order])
    return (right.log() - control.log()).mean(dim=-1)


# === exercise: logit-lens | function: logit_lens | kind: subtle | what is wrong: the rank counts all tokens whose logit is at least as large as the target's, so with ties (two equal rows of the table, a stream of zeros) it is too large, where it should be 1 plus the number of tokens with a larger logit
# told: named
# now: named
# says: equal logits counted as larger
def _lens_logits(stream, gamma, table):
    scale = torch.rsqrt(stream.pow(2).mean(dim=-1, keepdim=True) + 1e-5)
    return torch.einsum("ltd,vd->ltv", stream * scale * gamma, table)


def _pick(numbers, tokens):
    """(L, T, V) and (T,) -> (L, T)"""
    index = tokens.view(1, -1, 1).expand(numbers.shape[0], -1, 1)
    return numbers.gather(-1, index).squeeze(-1)


def logit_lens(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Read every layer of the residual stream as if the model ended there."""
    logits = _lens_logits(stream, gamma, table)
    probability = _pick(logits.softmax(dim=-1), targets)
    own = _pick(logits, targets)
    # the target counts itself, so the best one has rank 1
    rank = (logits >= own.unsqueeze(-1)).sum(dim=-1)
    return probability, rank


def lens_gain(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
    order: torch.Tensor,
) -> torch.Tensor:
    """Say how much more each layer says for the right tokens than for others."""
    logs = _lens_logits(stream, gamma, table).log_softmax(dim=-1)
    return (_pick(logs, targets) - _pick(logs, targets[order])).mean(dim=1)


# === exercise: own-language-model | function: my_model | kind: plain | what is wrong: what is returned is the path that --out got, seen from the course's folder, in place of the name of the folder beside the notebook ("lm"), so beside the notebook there is no such folder
# told: named
# now: named
# says: a path in place of the folder's name
def my_model() -> str:
    """Return the name of the folder, beside this notebook, that holds your model."""
    # python -m workbench train lm --parts mine --out exercises/11_language_model/lm
    return "exercises/11_language_model/lm"
