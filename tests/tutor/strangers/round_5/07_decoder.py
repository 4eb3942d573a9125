# ruff: noqa
# fmt: off

# === exercise: decoder-mask | function: decoder_mask | kind: plain | what is wrong: a key has to pass one of the two masks (|), not both (&)
# told: named
# now: named
# says: one mask is enough (or)
def decoder_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    return causal_mask(max_length) | padding_mask(lengths, max_length)


# === exercise: noam-rate | function: noam_rate | kind: subtle | what is wrong: step 0 is not refused but has the rate 0
# told: named
# now: named
# says: step 0 is not refused
def noam_rate(step: int, d_model: int, warmup: int = 4000) -> float:
    if step < 0:
        raise ValueError("steps are not negative")
    linear = step * warmup**-1.5
    if step < warmup:
        return d_model**-0.5 * linear
    return d_model**-0.5 * step**-0.5


# === exercise: shift-right | function: shift_right | kind: subtle | what is wrong: pads the whole row and then cuts it, so the inputs of shorter sentences hold <eos>
# told: named
# now: named
# says: <eos> among the inputs
def shift_right(
    sequences: list[list[int]], sos_id: int, eos_id: int, pad_id: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(len(sequence) for sequence in sequences) + 2
    rows = []
    for sequence in sequences:
        row = [sos_id] + sequence + [eos_id]
        rows.append(row + [pad_id] * (width - len(row)))
    full = torch.tensor(rows)
    return full[:, :-1], full[:, 1:]


# === exercise: sequence-loss | function: sequence_loss | kind: subtle | what is wrong: spreads epsilon over the V-1 other classes, without the label
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
    target = torch.full_like(logits, smoothing / (V - 1))
    target.scatter_(-1, labels.unsqueeze(-1), 1 - smoothing)
    losses = -(target * torch.log_softmax(logits, dim=-1)).sum(-1)
    real = labels != pad_id
    return torch.where(real, losses, 0.0).sum() / real.sum().clamp(min=1)


# === exercise: sequence-loss | function: sequence_loss | kind: double | what is wrong: averages each sentence first and then the sentences AND the even part is a sum over the classes, not divided by V
# told: named
# now: named
# says: the mean of the sentences' means, and the sum over the classes in place of their mean
def sequence_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    pad_id: int = 0,
    smoothing: float = 0.0,
) -> torch.Tensor:
    real = (labels != pad_id).float()
    negative = -torch.log_softmax(logits, -1)
    nll = negative.gather(-1, labels[..., None]).squeeze(-1)
    even = negative.sum(-1)
    losses = ((1 - smoothing) * nll + smoothing * even) * real
    return (losses.sum(1) / real.sum(1).clamp(min=1)).mean()


# === exercise: decoder-only | function: DecoderOnly | kind: double | what is wrong: the blocks have ReLU, Encoder's default AND the logits are taken with the table times √d
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
        self.scale = math.sqrt(d_model)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.position(self.embedding(ids))
        x = self.blocks(x, causal_mask(ids.shape[1]))
        return tied_logits(x, self.embedding.weight * self.scale)


# === exercise: gpt2-weights | function: weights_from_gpt2 | kind: subtle | what is wrong: the last norm's weight is multiplied by √d, its bias is not
# told: named
# now: named
# says: beta of the last norm is not multiplied
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
        for theirs, ours in GPT2_NAMES.items():
            result[f"blocks.layers.{i}.{ours}"] = state[f"h.{i}.{theirs}"]
        weights = state[f"h.{i}.attn.c_attn.weight"].chunk(3, dim=1)
        biases = state[f"h.{i}.attn.c_attn.bias"].chunk(3)
        for letter, weight, bias in zip("qkv", weights, biases):
            result[f"blocks.layers.{i}.attention.w_{letter}"] = weight
            result[f"blocks.layers.{i}.attention.b_{letter}"] = bias
    return result


# === exercise: decoder-layer | function: DecoderLayer | kind: subtle | what is wrong: in pre-norm the memory is normalised again by norm_2
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

    def forward(
        self,
        x: torch.Tensor,
        memory: torch.Tensor,
        mask: torch.Tensor | None = None,
        memory_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        drop = self.dropout
        if self.norm_first:
            x = x + drop(self.self_attention(self.norm_1(x), mask=mask)[0])
            asked, looked_at = self.norm_2(x), self.norm_2(memory)
            x = x + drop(self.cross_attention(asked, looked_at, memory_mask)[0])
            return x + drop(self.feed_forward(self.norm_3(x)))
        x = self.norm_1(x + drop(self.self_attention(x, mask=mask)[0]))
        x = self.norm_2(x + drop(self.cross_attention(x, memory, memory_mask)[0]))
        return self.norm_3(x + drop(self.feed_forward(x)))


# === exercise: decoder-layer | function: DecoderLayer | kind: double | what is wrong: cross-attention does not get memory_mask AND in post-norm the network's output is added to what came before cross-attention
# told: named
# now: named
# says: memory_mask not passed on
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
        for i in (1, 2, 3):
            setattr(self, f"norm_{i}", LayerNorm(d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: torch.Tensor,
        memory: torch.Tensor,
        mask: torch.Tensor | None = None,
        memory_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        def back(z):
            return self.dropout(self.self_attention(z, mask=mask)[0])

        def across(z):
            return self.dropout(self.cross_attention(z, memory)[0])

        def think(z):
            return self.dropout(self.feed_forward(z))

        if self.norm_first:
            a = x + back(self.norm_1(x))
            c = a + across(self.norm_2(a))
            return c + think(self.norm_3(c))
        a = self.norm_1(x + back(x))
        c = self.norm_2(a + across(a))
        return self.norm_3(a + think(c))


# === exercise: decoder | function: Decoder | kind: plain | what is wrong: a LayerNorm stands at the end in post-norm, too
# told: named
# now: named
# says: final norm in post-norm
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
        sizes = (d_model, heads, d_ff, dropout, norm_first, activation)
        self.layers = nn.ModuleList(DecoderLayer(*sizes) for _ in range(layers))
        self.norm = LayerNorm(d_model)

    def forward(
        self,
        x: torch.Tensor,
        memory: torch.Tensor,
        mask: torch.Tensor | None = None,
        memory_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask)
        return self.norm(x)


# === exercise: transformer | function: Transformer | kind: subtle | what is wrong: the target's mask is causal only, padding in the target is not hidden
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
        real = (source != self.pad_id).unsqueeze(1)
        return self.encoder(self.position(self.embedding(source)), real)

    def decode(
        self, target: torch.Tensor, memory: torch.Tensor, source: torch.Tensor
    ) -> torch.Tensor:
        mask = causal_mask(target.shape[1])
        memory_mask = (source != self.pad_id).unsqueeze(1)
        x = self.position(self.embedding(target))
        return self.decoder(x, memory, mask, memory_mask)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        hidden = self.decode(target, self.encode(source), source)
        return tied_logits(hidden, self.embedding.weight)


# === exercise: transformer | function: Transformer | kind: double | what is wrong: padding is taken to be the id 0, whatever pad_id is AND the target gets no positions
# told: named
# now: named
# says: pad_id is ignored, and no positions in the decoder
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
        x = self.position(self.embedding(source))
        return self.encoder(x, (source != 0)[:, None, :])

    def decode(
        self, target: torch.Tensor, memory: torch.Tensor, source: torch.Tensor
    ) -> torch.Tensor:
        x = self.embedding(target)
        mask = causal_mask(target.shape[1]) & (target != 0)[:, None, :]
        return self.decoder(x, memory, mask, (source != 0)[:, None, :])

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        memory = self.encode(source)
        return tied_logits(self.decode(target, memory, source), self.embedding.weight)


# === exercise: bug-hunt | function: find_bugs, repaired_epoch | kind: plain | what is wrong: repaired_epoch never clears the gradients, one of the very bugs
# told: named
# now: named
# says: gradients never cleared
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
        18: "gradients never cleared",
    }


def repaired_epoch(
    model: nn.Module,
    batches: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]],
    learning_rate: float,
) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    optimizer.zero_grad()
    losses = []
    for source, inputs, labels in batches:
        loss = sequence_loss(model(source, inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# === exercise: bug-hunt | function: find_bugs, repaired_epoch | kind: double | what is wrong: in find_bugs the missing zero_grad is looked for in line 19 as a kept graph AND the loss of a batch is measured again after its step
# told: named
# now: named
# says: a line that is right
def find_bugs() -> dict[int, str]:
    names = {
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
    }
    names[19] = "the graph is kept"
    return names


def repaired_epoch(
    model: nn.Module,
    batches: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]],
    learning_rate: float,
) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    history = []
    for source, inputs, labels in batches:
        optimizer.zero_grad()
        sequence_loss(model(source, inputs), labels).backward()
        optimizer.step()
        with torch.no_grad():
            history.append(float(sequence_loss(model(source, inputs), labels)))
    return history


# === exercise: last-real | function: last_real | kind: plain | what is wrong: counts the length from the end of the padded row
# told: wrong
# now: named
# says: counted from the end of the padded row
def last_real(hidden: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    return torch.stack([row[-n] for row, n in zip(hidden, lengths.tolist())])


# === exercise: greedy-decode | function: greedy_decode | kind: subtle | what is wrong: looks at the length only after appending, so a prefix that is already max_length long grows by one
# told: named
# now: named
# says: one token too many
@torch.no_grad()
def greedy_decode(
    model: nn.Module, prefix: list[int], eos_id: int, max_length: int
) -> list[int]:
    ids = list(prefix)
    while True:
        logits = model(torch.tensor([ids]))
        ids.append(logits[0, -1].argmax().item())
        if ids[-1] == eos_id or len(ids) >= max_length:
            return ids


# === exercise: sample-next | function: sample_next | kind: subtle | what is wrong: does not scale the number by the last sum but clamps to V-1, so a last token of probability 0 can be drawn when the sums end below 1
# told: named
# now: named
# says: clamped to the last id
def sample_next(probabilities: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    sums = probabilities.cumsum(dim=-1)
    ids = (sums <= uniform.unsqueeze(-1)).sum(dim=-1)
    return ids.clamp(max=probabilities.shape[-1] - 1)


# === exercise: filter-logits | function: filter_logits | kind: plain | what is wrong: top-p leaves out the token with which the sum reaches p
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
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p")
    logits = logits / temperature
    if top_k is not None:
        kept = logits.topk(min(top_k, logits.shape[-1]), dim=-1).values
        logits = logits.masked_fill(logits < kept[..., -1:], -math.inf)
    if top_p is not None:
        probabilities, order = logits.softmax(-1).sort(dim=-1, descending=True)
        remove = probabilities.cumsum(-1) > top_p
        remove[..., 0] = False  # one is always kept
        remove = torch.zeros_like(remove).scatter(-1, order, remove)
        logits = logits.masked_fill(remove, -math.inf)
    return logits


# === exercise: filter-logits | function: filter_logits | kind: double | what is wrong: top-p comes before top-k, on the probabilities of all tokens AND top-k keeps exactly k, whatever ties
# told: named
# now: named
# says: ties are cut
def filter_logits(
    logits: torch.Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> torch.Tensor:
    if temperature <= 0:
        raise ValueError("temperature must be above 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be at least 1")
    if top_p is not None and (top_p <= 0 or top_p > 1):
        raise ValueError("top_p must be in (0, 1]")
    result = logits / temperature
    if top_p is not None:
        p, order = torch.softmax(result, -1).sort(-1, descending=True)
        before = p.cumsum(-1) - p
        keep = torch.empty_like(before, dtype=torch.bool).scatter(-1, order, before < top_p)
        result = result.masked_fill(~keep, -math.inf)
    if top_k is not None:
        values, indices = result.topk(min(top_k, result.shape[-1]), dim=-1)
        result = torch.full_like(result, -math.inf).scatter(-1, indices, values)
    return result


# === exercise: attend-cached | function: attend_cached | kind: plain | what is wrong: takes the first T_new rows of the causal mask, not the last
# told: named
# now: named
# says: the first rows of the mask
def attend_cached(
    q: torch.Tensor,
    k_new: torch.Tensor,
    v_new: torch.Tensor,
    cache: dict[str, torch.Tensor] | None,
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    if cache is None:
        k, v = k_new, v_new
    else:
        k = torch.cat((cache["k"], k_new), dim=2)
        v = torch.cat((cache["v"], v_new), dim=2)
    mask = causal_mask(k.shape[2])[: q.shape[2]]
    output, _ = scaled_dot_product_attention(q, k, v, mask)
    return output, {"k": k, "v": v}


# === exercise: beam-search | function: beam_search | kind: double | what is wrong: the length in the score includes the prefix AND what is still alive is looked at only if nothing has finished
# told: useless
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
    living = [(0.0, list(prefix))]
    finished = []
    while living and len(living[0][1]) < max_length:
        extended = []
        for total, ids in living:
            log_p = torch.log_softmax(model(torch.tensor([ids]))[0, -1], dim=-1)
            extended += [(total + lp, [*ids, v]) for v, lp in enumerate(log_p.tolist())]
        extended.sort(key=lambda pair: pair[0], reverse=True)
        best = extended[:beam_width]
        finished += [pair for pair in best if pair[1][-1] == eos_id]
        living = [pair for pair in best if pair[1][-1] != eos_id]
    candidates = finished if finished else living
    scored = [(total / len(ids) ** alpha, ids) for total, ids in candidates]
    score, ids = max(scored, key=lambda pair: pair[0])
    return ids, score


# === exercise: bleu | function: bleu | kind: plain | what is wrong: does not clip the counts
# told: named
# now: named
# says: counts are not clipped
def bleu(
    hypotheses: list[list[str]], references: list[list[str]], maximum: int = 4
) -> float:
    def ngrams(tokens, n):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    logs = 0.0
    for n in range(1, maximum + 1):
        matches = total = 0
        for hypothesis, reference in zip(hypotheses, references):
            known = set(ngrams(reference, n))
            grams = ngrams(hypothesis, n)
            matches += sum(gram in known for gram in grams)
            total += len(grams)
        if matches == 0:
            return 0.0
        logs += math.log(matches / total) / maximum
    c, r = sum(map(len, hypotheses)), sum(map(len, references))
    penalty = 1.0 if c > r else math.exp(1 - r / c)
    return 100 * penalty * math.exp(logs)
