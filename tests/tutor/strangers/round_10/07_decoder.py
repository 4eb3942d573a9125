# ruff: noqa
# fmt: off

# === exercise: decoder-mask | function: decoder_mask | kind: plain | what is wrong: the padding rule is applied to the queries (rows) instead of the keys (columns), so the rows of padding are all False (by hand: the last row of the first matrix is 0 0 0 instead of 1 1 0)
# told: named
# now: named
# says: the rows of padding are empty
def decoder_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    pos = torch.arange(max_length, device=lengths.device)
    no_future = pos[None, :] <= pos[:, None]
    is_token = pos[None, :] < lengths[:, None]
    return no_future[None] & is_token[:, :, None]


# === exercise: shift-right | function: shift_right | kind: plain | what is wrong: pads <sos> + sentence + <eos> first and then cuts off the last column for the inputs, so every sentence shorter than the longest keeps its <eos> in the inputs
# told: named
# now: named
# says: <eos> among the inputs
def shift_right(
    sequences: list[list[int]], sos_id: int, eos_id: int, pad_id: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    full = [[sos_id] + list(s) + [eos_id] for s in sequences]
    longest = max(len(s) for s in full)
    batch = torch.tensor([s + [pad_id] * (longest - len(s)) for s in full])
    return batch[:, :-1], batch[:, 1:]


# === exercise: sequence-loss | function: sequence_loss | kind: subtle | what is wrong: averages within each sentence first and then over the sentences, so a short sentence weighs as much as a long one, instead of one mean over all real labels of the batch
# told: named
# now: named
# says: the mean of the sentences' means
def sequence_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    pad_id: int = 0,
    smoothing: float = 0.0,
) -> torch.Tensor:
    valid = (labels != pad_id).to(logits.dtype)
    nll = -torch.log_softmax(logits, dim=-1)
    hard = torch.gather(nll, 2, labels[:, :, None])[:, :, 0]
    soft = nll.mean(dim=2)
    per_token = ((1 - smoothing) * hard + smoothing * soft) * valid
    tokens = valid.sum(dim=1).clamp(min=1)
    per_sentence = per_token.sum(dim=1) / tokens
    return per_sentence.mean()


# === exercise: decoder-only | function: DecoderOnly | kind: plain | what is wrong: the blocks are called without a causal mask, so every position sees the future
# told: named
# now: named
# says: sees the future
class DecoderOnly(nn.Module):
    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        heads: int,
        layers: int,
        d_ff: int,
        max_length: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.position = LearnedPositionalEncoding(max_length, d_model, dropout)
        self.blocks = Encoder(
            layers, d_model, heads, d_ff, dropout, norm_first=True, activation="gelu"
        )

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        h = self.embedding(ids)
        h = self.position(h)
        h = self.blocks(h)
        return tied_logits(h, self.embedding.weight)


# === exercise: gpt2-weights | function: weights_from_gpt2 | kind: double | what is wrong: c_attn is taken apart as if q, k, v were interleaved column by column (reshape to (d, d, 3)) instead of three contiguous blocks of columns; and only gamma of the last norm is multiplied by root d, not beta
# told: named
# now: named
# says: beta of the last norm is not multiplied, and every third column
def weights_from_gpt2(state: dict) -> dict:
    blocks = sum(name.endswith(".ln_1.weight") for name in state)
    root = math.sqrt(state["wte.weight"].shape[1])  # of d_model
    d = state["wte.weight"].shape[1]
    new = {}
    new["embedding.weight"] = state["wte.weight"] / root
    new["position.table"] = state["wpe.weight"]
    new["blocks.norm.gamma"] = state["ln_f.weight"] * root
    new["blocks.norm.beta"] = state["ln_f.bias"]
    for n in range(blocks):
        for theirs, ours in GPT2_NAMES.items():
            new[f"blocks.layers.{n}.{ours}"] = state[f"h.{n}.{theirs}"]
        w = state[f"h.{n}.attn.c_attn.weight"].reshape(d, d, 3)
        b = state[f"h.{n}.attn.c_attn.bias"].reshape(d, 3)
        for j, letter in enumerate("qkv"):
            new[f"blocks.layers.{n}.attention.w_{letter}"] = w[:, :, j]
            new[f"blocks.layers.{n}.attention.b_{letter}"] = b[:, j]
    return new


# === exercise: decoder-layer | function: DecoderLayer | kind: subtle | what is wrong: in pre-norm the memory is normalised as well (with norm_2) before cross-attention, although it is the encoder's finished output; post-norm is right
# told: named
# now: named
# says: the memory is normalised again
class DecoderLayer(nn.Module):
    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = False,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.cross_attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation=activation)
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)
        self.norm_3 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: torch.Tensor,
        memory: torch.Tensor,
        mask: torch.Tensor | None = None,
        memory_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        if self.norm_first:
            back, _ = self.self_attention(self.norm_1(x), mask=mask)
            x = x + self.dropout(back)
            across, _ = self.cross_attention(
                self.norm_2(x), self.norm_2(memory), mask=memory_mask
            )
            x = x + self.dropout(across)
            return x + self.dropout(self.feed_forward(self.norm_3(x)))
        back, _ = self.self_attention(x, mask=mask)
        x = self.norm_1(x + self.dropout(back))
        across, _ = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm_2(x + self.dropout(across))
        return self.norm_3(x + self.dropout(self.feed_forward(x)))


# === exercise: decoder | function: Decoder | kind: subtle | what is wrong: one DecoderLayer object is repeated in the list ([layer] * layers), so all layers share the same weights; right only for a single layer
# told: named
# now: named
# says: one layer, repeated
class Decoder(nn.Module):
    def __init__(
        self,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = False,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        one = DecoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
        self.layers = nn.ModuleList([one] * layers)
        if norm_first:
            self.norm = LayerNorm(d_model)
        else:
            self.norm = nn.Identity()

    def forward(
        self,
        x: torch.Tensor,
        memory: torch.Tensor,
        mask: torch.Tensor | None = None,
        memory_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        out = x
        for step in self.layers:
            out = step(out, memory, mask, memory_mask)
        return self.norm(out)


# === exercise: transformer | function: Transformer | kind: double | what is wrong: padding is tested against a hard-coded 0 instead of pad_id; and the target gets no positional encoding in decode
# dropped: it exchanges arguments of SinusoidalPositionalEncoding that the statement had not named
class Transformer(nn.Module):
    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        heads: int,
        layers: int,
        d_ff: int,
        max_length: int,
        dropout: float = 0.0,
        norm_first: bool = False,
        activation: str = "relu",
        pad_id: int = 0,
    ) -> None:
        super().__init__()
        self.pad_id = pad_id
        sizes = (layers, d_model, heads, d_ff, dropout, norm_first, activation)
        self.embedding = Embedding(vocab_size, d_model)
        self.position = SinusoidalPositionalEncoding(max_length, d_model, dropout)
        self.encoder = Encoder(*sizes)
        self.decoder = Decoder(*sizes)

    def encode(self, source: torch.Tensor) -> torch.Tensor:
        keys = (source != 0).unsqueeze(1)
        vectors = self.position(self.embedding(source))
        return self.encoder(vectors, keys)

    def decode(
        self, target: torch.Tensor, memory: torch.Tensor, source: torch.Tensor
    ) -> torch.Tensor:
        look_back = causal_mask(target.shape[1]).to(target.device)
        look_back = look_back & (target != 0).unsqueeze(1)
        look_across = (source != 0).unsqueeze(1)
        vectors = self.embedding(target)
        return self.decoder(vectors, memory, look_back, look_across)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        hidden = self.decode(target, self.encode(source), source)
        return tied_logits(hidden, self.embedding.weight)


# === exercise: bug-hunt | function: find_bugs | kind: plain | what is wrong: line 19 is called "the graph is kept" although .item() stores a plain number without history, and line 5 ("pointless empty leaf") is missed; repaired_epoch is right
# told: named
# now: named
# says: a line that is right
def find_bugs() -> dict[int, str]:
    return {
        3: "no <eos>",
        6: "starts from the source",
        7: "counts the source",
        8: "the source never gets in",
        9: "a name never assigned",
        10: "softmax before the loss",
        11: "all positions appended again",
        12: "argmax over positions",
        13: "own predictions as input",
        14: "multiplied by the mask",
        15: "labels not shifted",
        16: "classes on the wrong axis",
        17: "a tab among spaces",
        18: "gradients never cleared",
        19: "the graph is kept",
    }


def repaired_epoch(
    model: nn.Module,
    batches: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]],
    learning_rate: float,
) -> list[float]:
    sgd = torch.optim.SGD(model.parameters(), lr=learning_rate)
    history = []
    for src, inp, lab in batches:
        sgd.zero_grad()
        batch_loss = sequence_loss(model(src, inp), lab)
        batch_loss.backward()
        sgd.step()
        history.append(batch_loss.item())
    return history


# === exercise: last-real | function: last_real | kind: plain | what is wrong: hidden[:, lengths - 1] takes every sentence at the positions of all sentences, giving (B, B, ...), instead of pairing sentence b with its own length
# told: named
# now: named
# says: every row for every length
def last_real(hidden: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    last = lengths - 1
    return hidden[:, last]


# === exercise: greedy-decode | function: greedy_decode | kind: double | what is wrong: max_length is taken as the number of new tokens, not of all ids with the prefix; and the tokens are appended to the caller's own prefix list
# told: named
# now: named
# says: changes its argument in place
@torch.no_grad()
def greedy_decode(
    model: nn.Module, prefix: list[int], eos_id: int, max_length: int
) -> list[int]:
    text = prefix
    for _ in range(max_length):
        scores = model(torch.tensor(text).unsqueeze(0))
        token = int(scores[0, -1].argmax())
        text.append(token)
        if token == eos_id:
            break
    return text


# === exercise: sample-next | function: sample_next | kind: subtle | what is wrong: instead of scaling the number by the last sum, an id past the end is clamped to V - 1, so if the running sums end below 1 a last token of probability 0 can be drawn
# told: named
# now: named
# says: clamped to the last id
def sample_next(probabilities: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    edges = torch.cumsum(probabilities, dim=-1)
    passed = edges <= uniform.unsqueeze(-1)
    ids = passed.sum(dim=-1)
    return ids.clamp(max=probabilities.shape[-1] - 1)


# === exercise: filter-logits | function: filter_logits | kind: double | what is wrong: the temperature is applied last, so top-p works on the probabilities without it; and top-k keeps exactly k indices, so tokens that tie with the k-th are dropped
# told: named
# now: named
# says: top-p without the temperature
def filter_logits(
    logits: torch.Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> torch.Tensor:
    if temperature <= 0:
        raise ValueError("temperature has to be positive")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k has to be at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p has to be in (0, 1]")

    result = logits.clone()
    if top_k is not None:
        best = result.topk(min(top_k, result.shape[-1]), dim=-1).indices
        keep = torch.zeros_like(result, dtype=torch.bool).scatter(-1, best, True)
        result = result.masked_fill(~keep, -math.inf)
    if top_p is not None:
        probs, order = result.softmax(dim=-1).sort(dim=-1, descending=True)
        sum_before = probs.cumsum(dim=-1) - probs
        drop_sorted = sum_before >= top_p
        drop = torch.zeros_like(drop_sorted).scatter(-1, order, drop_sorted)
        result = result.masked_fill(drop, -math.inf)
    return result / temperature


# === exercise: attend-cached | function: attend_cached | kind: subtle | what is wrong: the new keys and values are written into the dict that was passed in, so the old cache changes although a beam may still need it; the outputs are right
# told: named
# now: named
# says: changes its argument in place
def attend_cached(
    q: torch.Tensor,
    k_new: torch.Tensor,
    v_new: torch.Tensor,
    cache: dict[str, torch.Tensor] | None,
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    if cache is None:
        cache = {"k": k_new, "v": v_new}
    else:
        cache["k"] = torch.cat([cache["k"], k_new], dim=2)
        cache["v"] = torch.cat([cache["v"], v_new], dim=2)
    total, fresh = cache["k"].shape[2], q.shape[2]
    allowed = causal_mask(total)[total - fresh :]
    out, _ = scaled_dot_product_attention(q, cache["k"], cache["v"], allowed)
    return out, cache


# === exercise: beam-search | function: beam_search | kind: double | what is wrong: the sum is divided by the length of all ids, prefix included, to the alpha, instead of the number of new tokens; and hypotheses still alive at max_length are ignored as soon as any has finished
# told: shown
# now: named
# says: those alive are forgotten, and the length counts the prefix
@torch.no_grad()
def beam_search(
    model: nn.Module,
    prefix: list[int],
    eos_id: int,
    beam_width: int,
    max_length: int,
    alpha: float = 0.0,
) -> tuple[list[int], float]:
    beam = [(list(prefix), 0.0)]
    complete = []
    while beam and len(beam[0][0]) < max_length:
        options = []
        for ids, total in beam:
            logp = torch.log_softmax(model(torch.tensor([ids]))[0, -1], dim=-1)
            for token, value in enumerate(logp.tolist()):
                options.append((ids + [token], total + value))
        options = sorted(options, key=lambda option: option[1], reverse=True)
        beam = []
        for ids, total in options[:beam_width]:
            if ids[-1] == eos_id:
                complete.append((ids, total))
            else:
                beam.append((ids, total))
    candidates = complete if complete else beam
    scored = [(ids, total / len(ids) ** alpha) for ids, total in candidates]
    return max(scored, key=lambda pair: pair[1])


# === exercise: bleu | function: bleu | kind: subtle | what is wrong: the n-grams of all hypotheses and of all references are pooled before clipping, so an n-gram may be matched in the reference of another sentence; right for a single sentence
# told: useless
# now: named
# says: matched in another sentence
def bleu(
    hypotheses: list[list[str]], references: list[list[str]], maximum: int = 4
) -> float:
    def ngrams(sentences, n):
        bag = Counter()
        for s in sentences:
            for i in range(len(s) - n + 1):
                bag[tuple(s[i : i + n])] += 1
        return bag

    log_sum = 0.0
    for n in range(1, maximum + 1):
        ours, theirs = ngrams(hypotheses, n), ngrams(references, n)
        hits = sum(min(count, theirs[gram]) for gram, count in ours.items())
        total = sum(ours.values())
        if hits == 0 or total == 0:
            return 0.0
        log_sum += math.log(hits / total)
    c = sum(len(h) for h in hypotheses)
    r = sum(len(s) for s in references)
    penalty = 1.0 if c > r else math.exp(1 - r / c)
    return 100 * penalty * math.exp(log_sum / maximum)
