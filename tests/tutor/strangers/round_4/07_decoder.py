# ruff: noqa
# fmt: off

# === exercise: decoder-mask | function: decoder_mask | kind: subtle | what is wrong: padding is hidden from queries as well as keys (padding & padding.T), so rows of padding are empty
# told: named
# now: named
# says: the rows of padding are empty
def decoder_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    real = padding_mask(lengths, max_length)
    return causal_mask(max_length) & real & real.transpose(1, 2)


# === exercise: decoder-mask | function: decoder_mask | kind: plain | what is wrong: combined with | in place of &
# told: named
# now: named
# says: one mask is enough (or)
def decoder_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    return causal_mask(max_length).unsqueeze(0) | padding_mask(lengths, max_length)


# === exercise: noam-rate | function: noam_rate | kind: double | what is wrong: larger of the two curves (max) AND only negative steps are refused, so step 0 is a ZeroDivisionError
# told: named
# now: named
# says: min and max exchanged
def noam_rate(step: int, d_model: int, warmup: int = 4000) -> float:
    if step < 0:
        raise ValueError("steps begin at 1")
    return d_model ** (-0.5) * max(step ** (-0.5), step * warmup ** (-1.5))


# === exercise: shift-right | function: shift_right | kind: subtle | what is wrong: T is the longest sequence, without the + 1; <eos> of the longest is cut off and so is its last input
# told: named
# now: named
# says: too narrow: the longest sentence is cut
def shift_right(
    sequences: list[list[int]], sos_id: int, eos_id: int, pad_id: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(len(sequence) for sequence in sequences)
    inputs = torch.full((len(sequences), width), pad_id)
    labels = torch.full((len(sequences), width), pad_id)
    for row, sequence in enumerate(sequences):
        a = torch.tensor([sos_id, *sequence][:width], dtype=torch.long)
        b = torch.tensor([*sequence, eos_id][:width], dtype=torch.long)
        inputs[row, : len(a)] = a
        labels[row, : len(b)] = b
    return inputs, labels


# === exercise: shift-right | function: shift_right | kind: double | what is wrong: inputs of shorter sentences contain <eos> (the padded row is cut at the end) AND pads with 0 whatever pad_id is
# told: named
# now: named
# says: <eos> among the inputs, and padded with another id
def shift_right(
    sequences: list[list[int]], sos_id: int, eos_id: int, pad_id: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    full = [torch.tensor([sos_id] + s + [eos_id]) for s in sequences]
    batch = nn.utils.rnn.pad_sequence(full, batch_first=True)
    return batch[:, :-1], batch[:, 1:]


# === exercise: sequence-loss | function: sequence_loss | kind: subtle | what is wrong: smoothing is spread over the V - 1 wrong classes only
# told: named
# now: named
# says: spread over the other classes only
def sequence_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    pad_id: int = 0,
    smoothing: float = 0.0,
) -> torch.Tensor:
    V = logits.shape[-1]
    log_p = torch.log_softmax(logits, dim=-1)
    target = torch.full_like(log_p, smoothing / (V - 1))
    target.scatter_(-1, labels.unsqueeze(-1), 1 - smoothing)
    loss = -(target * log_p).sum(dim=-1)
    real = labels != pad_id
    loss = torch.where(real, loss, torch.zeros_like(loss))
    return loss.sum() / real.sum().clamp(min=1)


# === exercise: sequence-loss | function: sequence_loss | kind: double | what is wrong: even part is averaged over all positions, padding included AND without any real label NaN comes out (division by 0)
# told: named
# now: named
# says: padding counted in the even part
def sequence_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    pad_id: int = 0,
    smoothing: float = 0.0,
) -> torch.Tensor:
    log_p = logits.log_softmax(dim=-1)
    real = (labels != pad_id).float()
    label_part = -log_p.gather(-1, labels[..., None]).squeeze(-1)
    hard = (label_part * real).sum() / real.sum()
    soft = -log_p.mean()
    return (1 - smoothing) * hard + smoothing * soft


# === exercise: decoder-only | function: DecoderOnly | kind: subtle | what is wrong: the blocks are built with ReLU, Encoder's default activation
# told: named
# now: named
# says: ReLU in place of GELU
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
        self.blocks = Encoder(layers, d_model, heads, d_ff, dropout, norm_first=True)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.position(self.embedding(ids))
        x = self.blocks(x, causal_mask(ids.shape[-1]))
        return tied_logits(x, self.embedding.weight)


# === exercise: gpt2-weights | function: weights_from_gpt2 | kind: double | what is wrong: gamma of the last norm is multiplied by the root, beta is not AND the three parts of c_attn are transposed as for PyTorch's layer
# told: named
# now: named
# says: a matrix is transposed, and beta of the last norm is not multiplied
def weights_from_gpt2(state: dict) -> dict:
    blocks = sum(name.endswith(".ln_1.weight") for name in state)
    root = math.sqrt(state["wte.weight"].shape[1])  # of d_model
    result = {
        "embedding.weight": state["wte.weight"] / root,
        "position.table": state["wpe.weight"],
        "blocks.norm.gamma": state["ln_f.weight"] * root,
        "blocks.norm.beta": state["ln_f.bias"],
    }
    for i in range(blocks):
        ours = f"blocks.layers.{i}."
        for old, new in GPT2_NAMES.items():
            result[ours + new] = state[f"h.{i}.{old}"]
        weights = state[f"h.{i}.attn.c_attn.weight"].T.chunk(3)
        biases = state[f"h.{i}.attn.c_attn.bias"].chunk(3)
        for letter, w, b in zip("qkv", weights, biases, strict=True):
            result[ours + f"attention.w_{letter}"] = w
            result[ours + f"attention.b_{letter}"] = b
    return result


# === exercise: decoder-layer | function: DecoderLayer | kind: subtle | what is wrong: in pre-norm the memory is normalised, too, by norm_2 before cross-attention
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
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)
        self.norm_3 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, memory, mask=None, memory_mask=None):
        if self.norm_first:
            x = x + self.dropout(self.self_attention(self.norm_1(x), mask=mask)[0])
            z, _ = self.cross_attention(
                self.norm_2(x), self.norm_2(memory), mask=memory_mask
            )
            x = x + self.dropout(z)
            return x + self.dropout(self.feed_forward(self.norm_3(x)))
        x = self.norm_1(x + self.dropout(self.self_attention(x, mask=mask)[0]))
        z, _ = self.cross_attention(x, memory, mask=memory_mask)
        x = self.norm_2(x + self.dropout(z))
        return self.norm_3(x + self.dropout(self.feed_forward(x)))


# === exercise: decoder-layer | function: DecoderLayer | kind: double | what is wrong: in post-norm memory_mask is forgotten AND in post-norm the second residual adds the layer's input x, not a
# told: named
# now: named
# says: residual from the layer's input
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
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm_1, self.norm_2, self.norm_3 = (LayerNorm(d_model) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, memory, mask=None, memory_mask=None):
        D = self.dropout
        if self.norm_first:
            a = x + D(self.self_attention(self.norm_1(x), mask=mask)[0])
            c = a + D(self.cross_attention(self.norm_2(a), memory, memory_mask)[0])
            return c + D(self.feed_forward(self.norm_3(c)))
        a = self.norm_1(x + D(self.self_attention(x, mask=mask)[0]))
        c = self.norm_2(x + D(self.cross_attention(a, memory)[0]))
        return self.norm_3(c + D(self.feed_forward(c)))


# === exercise: decoder | function: Decoder | kind: plain | what is wrong: norm_first is not passed to the layers, they are post-norm with a LayerNorm at the end
# told: named
# now: named
# says: norm_first not passed on
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
        self.layers = nn.ModuleList(
            DecoderLayer(d_model, heads, d_ff, dropout, activation=activation)
            for _ in range(layers)
        )
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(self, x, memory, mask=None, memory_mask=None):
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask)
        return self.norm(x)


# === exercise: transformer | function: Transformer | kind: plain | what is wrong: decoder's mask is causal only, padding in the target is not hidden
# told: named
# now: named
# says: padding of the target is not hidden
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
        self.position = SinusoidalPositionalEncoding(d_model, max_length, dropout)
        self.encoder = Encoder(*sizes)
        self.decoder = Decoder(*sizes)

    def encode(self, source: torch.Tensor) -> torch.Tensor:
        mask = (source != self.pad_id).unsqueeze(1)
        return self.encoder(self.position(self.embedding(source)), mask)

    def decode(self, target, memory, source):
        memory_mask = (source != self.pad_id).unsqueeze(1)
        x = self.position(self.embedding(target))
        return self.decoder(x, memory, causal_mask(target.shape[1]), memory_mask)

    def forward(self, source, target):
        return tied_logits(
            self.decode(target, self.encode(source), source), self.embedding.weight
        )


# === exercise: transformer | function: Transformer | kind: double | what is wrong: masks compare with 0 and not with pad_id AND embedded tokens are multiplied by the root of d_model once more
# told: named
# now: named
# says: pad_id is ignored, and embeddings scaled twice
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
        self.d_model = d_model
        sizes = (layers, d_model, heads, d_ff, dropout, norm_first, activation)
        self.embedding = Embedding(vocab_size, d_model)
        self.position = SinusoidalPositionalEncoding(d_model, max_length, dropout)
        self.encoder = Encoder(*sizes)
        self.decoder = Decoder(*sizes)

    def embed(self, ids):
        return self.position(self.embedding(ids) * math.sqrt(self.d_model))

    def encode(self, source: torch.Tensor) -> torch.Tensor:
        return self.encoder(self.embed(source), (source > 0)[:, None, :])

    def decode(self, target, memory, source):
        T = target.shape[1]
        mask = causal_mask(T) & (target > 0)[:, None, :]
        return self.decoder(self.embed(target), memory, mask, (source > 0)[:, None, :])

    def forward(self, source, target):
        hidden = self.decode(target, self.encode(source), source)
        return tied_logits(hidden, self.embedding.weight)


# === exercise: bug-hunt | function: find_bugs, repaired_epoch | kind: double | what is wrong: find_bugs names line 19 (the graph is kept) in place of line 18 (gradients never cleared) AND the epoch never clears the gradients
# told: named
# now: named
# says: a line that is right
def find_bugs() -> dict[int, str]:
    return {
        3: "no <eos>",
        5: "pointless empty leaf",
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
        19: "the graph is kept",
    }


def repaired_epoch(
    model: nn.Module,
    batches: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]],
    learning_rate: float,
) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    losses = []
    for source, inputs, labels in batches:
        loss = sequence_loss(model(source, inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# === exercise: last-real | function: last_real | kind: subtle | what is wrong: a gather made for three axes only, so hidden (B, T) or (B, T, a, b) fails
# told: named
# now: named
# says: fits one number of axes only
def last_real(hidden: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    index = (lengths - 1).view(-1, 1, 1).expand(-1, 1, hidden.size(-1))
    return hidden.gather(1, index).squeeze(1)


# === exercise: greedy-decode | function: greedy_decode | kind: subtle | what is wrong: appends to the list that was given
# told: named
# now: named
# says: changes its argument in place
@torch.no_grad()
def greedy_decode(
    model: nn.Module, prefix: list[int], eos_id: int, max_length: int
) -> list[int]:
    while len(prefix) < max_length:
        logits = model(torch.tensor(prefix).unsqueeze(0))
        next_id = int(logits[0, -1].argmax())
        prefix.append(next_id)
        if next_id == eos_id:
            break
    return prefix


# === exercise: sample-next | function: sample_next | kind: subtle | what is wrong: < in place of <=: a number that hits a running sum exactly takes the interval below, 0 draws a token of probability 0
# told: named
# now: named
# says: a token of probability 0 is drawn
def sample_next(probabilities: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    sums = torch.cumsum(probabilities, dim=-1)
    scaled = uniform * sums[..., -1]
    return (sums < scaled.unsqueeze(-1)).sum(dim=-1)


# === exercise: filter-logits | function: filter_logits | kind: subtle | what is wrong: top-p drops the token with which the sum reaches p (keeps only cumulative < p, and always the first)
# told: named
# now: named
# says: one token short
def filter_logits(
    logits: torch.Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> torch.Tensor:
    if temperature <= 0:
        raise ValueError("temperature")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k")
    if top_p is not None and (top_p <= 0 or top_p > 1):
        raise ValueError("top_p")
    logits = logits / temperature
    if top_k is not None:
        k = min(top_k, logits.shape[-1])
        kth = logits.topk(k, dim=-1).values[..., -1, None]
        logits = logits.masked_fill(logits < kth, -math.inf)
    if top_p is not None:
        values, order = torch.sort(logits, dim=-1, descending=True)
        remove = values.softmax(dim=-1).cumsum(dim=-1) > top_p
        remove[..., 0] = False
        remove = torch.zeros_like(remove).scatter(-1, order, remove)
        logits = logits.masked_fill(remove, -math.inf)
    return logits


# === exercise: filter-logits | function: filter_logits | kind: double | what is wrong: top-p uses the probabilities before top-k (of the whole vocabulary) AND top-k keeps exactly k by their places, so ties with the k-th are dropped
# told: named
# now: named
# says: ties are cut
def filter_logits(
    logits: torch.Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> torch.Tensor:
    if temperature <= 0 or (top_k is not None and top_k < 1):
        raise ValueError("temperature must be above 0 and top_k at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p must be in (0, 1]")
    logits = logits / temperature
    order = logits.argsort(dim=-1, descending=True)
    rank = order.argsort(dim=-1)
    keep = torch.ones_like(logits, dtype=torch.bool)
    if top_k is not None:
        keep &= rank < top_k
    if top_p is not None:
        sorted_p = logits.softmax(dim=-1).gather(-1, order)
        before = sorted_p.cumsum(dim=-1) - sorted_p
        keep &= (before < top_p).gather(-1, rank)
    return torch.where(keep, logits, -math.inf)


# === exercise: attend-cached | function: attend_cached | kind: subtle | what is wrong: several new tokens at a time see each other: no mask at all when there is a cache
# told: named
# now: named
# says: no mask among the new tokens
def attend_cached(
    q: torch.Tensor,
    k_new: torch.Tensor,
    v_new: torch.Tensor,
    cache: dict[str, torch.Tensor] | None,
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    if cache is None:
        output, _ = scaled_dot_product_attention(
            q, k_new, v_new, causal_mask(q.shape[-2])
        )
        return output, {"k": k_new, "v": v_new}
    k = torch.cat((cache["k"], k_new), dim=2)
    v = torch.cat((cache["v"], v_new), dim=2)
    output, _ = scaled_dot_product_attention(q, k, v)
    return output, {"k": k, "v": v}


# === exercise: beam-search | function: beam_search | kind: subtle | what is wrong: at the end only the finished hypotheses are compared, those still alive count only if none has finished
# told: named
# now: named
# says: those alive are forgotten
@torch.no_grad()
def beam_search(
    model: nn.Module,
    prefix: list[int],
    eos_id: int,
    beam_width: int,
    max_length: int,
    alpha: float = 0.0,
) -> tuple[list[int], float]:
    alive = [(0.0, list(prefix))]
    finished = []
    while alive and len(alive[0][1]) < max_length:
        extensions = []
        for total, ids in alive:
            log_p = torch.log_softmax(model(torch.tensor([ids]))[0, -1], dim=-1)
            for token, value in enumerate(log_p.tolist()):
                extensions.append((total + value, [*ids, token]))
        extensions.sort(key=lambda pair: pair[0], reverse=True)
        alive = []
        for total, ids in extensions[:beam_width]:
            (finished if ids[-1] == eos_id else alive).append((total, ids))

    def score(pair):
        return pair[0] / (len(pair[1]) - len(prefix)) ** alpha

    best = max(finished or alive, key=score)
    return best[1], score(best)


# === exercise: beam-search | function: beam_search | kind: double | what is wrong: the length in the score counts the prefix, too AND finished hypotheses free their place, the beam is filled up with living ones
# told: named
# now: named
# says: the length counts the prefix
@torch.no_grad()
def beam_search(
    model: nn.Module,
    prefix: list[int],
    eos_id: int,
    beam_width: int,
    max_length: int,
    alpha: float = 0.0,
) -> tuple[list[int], float]:
    beams = [(list(prefix), 0.0)]
    done = []
    while beams and len(beams[0][0]) < max_length:
        candidates = []
        for ids, total in beams:
            log_p = model(torch.tensor([ids]))[0, -1].log_softmax(-1)
            candidates += [(ids + [t], total + log_p[t].item()) for t in range(len(log_p))]
        candidates.sort(key=lambda c: -c[1])
        beams = []
        for ids, total in candidates:
            if len(beams) == beam_width:
                break
            if ids[-1] == eos_id:
                done.append((ids, total))
            else:
                beams.append((ids, total))
    best_ids, best_score = None, -math.inf
    for ids, total in done + beams:
        value = total / len(ids) ** alpha
        if value > best_score:
            best_ids, best_score = ids, value
    return best_ids, best_score


# === exercise: bleu | function: bleu | kind: plain | what is wrong: matches are not clipped: an n-gram counts as often as the hypothesis has it
# told: named
# now: named
# says: counts are not clipped
def bleu(
    hypotheses: list[list[str]], references: list[list[str]], maximum: int = 4
) -> float:
    total_log = 0.0
    for n in range(1, maximum + 1):
        right = total = 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            known = {tuple(reference[i : i + n]) for i in range(len(reference) - n + 1)}
            grams = [tuple(hypothesis[i : i + n]) for i in range(len(hypothesis) - n + 1)]
            right += sum(gram in known for gram in grams)
            total += len(grams)
        if right == 0:
            return 0.0
        total_log += math.log(right / total)
    c = sum(len(h) for h in hypotheses)
    r = sum(len(x) for x in references)
    penalty = 1.0 if c > r else math.exp(1 - r / c)
    return 100 * penalty * math.exp(total_log / maximum)


# === exercise: bleu | function: bleu | kind: double | what is wrong: mean of the sentences' BLEU in place of adding up over the corpus AND brevity penalty has c and r exchanged in the exponent
# told: shown
# now: named
# says: the mean of sentence scores, and the penalty grows with short texts
def bleu(
    hypotheses: list[list[str]], references: list[list[str]], maximum: int = 4
) -> float:
    def grams(tokens, n):
        return Counter(zip(*(tokens[i:] for i in range(n))))

    scores = []
    for hyp, ref in zip(hypotheses, references):
        precisions = []
        for n in range(1, maximum + 1):
            h, r = grams(hyp, n), grams(ref, n)
            matches = sum((h & r).values())
            precisions.append(matches / max(1, sum(h.values())))
        if min(precisions) == 0:
            scores.append(0.0)
            continue
        mean = math.exp(sum(math.log(p) for p in precisions) / maximum)
        c, r = len(hyp), len(ref)
        bp = 1.0 if c > r else math.exp(1 - c / r)
        scores.append(100 * bp * mean)
    return sum(scores) / len(scores)
