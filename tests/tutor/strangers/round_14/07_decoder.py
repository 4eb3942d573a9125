# ruff: noqa
# fmt: off

# === exercise: decoder-mask | function: decoder_mask | kind: plain | what is wrong: the padding condition is put on the queries (rows) instead of the keys, so rows of padding have no key at all
# told: named
# now: named
# says: the rows of padding are empty
def decoder_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    positions = torch.arange(max_length, device=lengths.device)
    not_later = positions[None, :] <= positions[:, None]  # (T, T)
    real = positions < lengths[:, None]  # (B, T)
    return not_later & real.unsqueeze(-1)


# === exercise: decoder-mask | function: decoder_mask | kind: double | what is wrong: (1) triu in place of tril, so each position sees the later ones; (2) <= lengths, so one padding token too many is allowed
# told: named
# now: named
# says: upper triangle, and the lengths are off by one
def decoder_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    # 1. No later position.
    causal = torch.ones(max_length, max_length).triu().bool()
    # 2. And no padding.
    columns = torch.arange(max_length).expand(len(lengths), max_length)
    no_padding = columns <= lengths.unsqueeze(1)
    return causal.unsqueeze(0) & no_padding.unsqueeze(1)


# === exercise: noam-rate | function: noam_rate | kind: plain | what is wrong: after the warm-up the rate falls with 1/step instead of 1/sqrt(step)
# told: useless
# now: named
# says: falls with the step itself
def noam_rate(step: int, d_model: int, warmup: int = 4000) -> float:
    if step < 1:
        raise ValueError(f"steps are counted from 1, got {step}")
    peak = 1 / math.sqrt(d_model * warmup)
    if step < warmup:
        return peak * step / warmup
    return peak * warmup / step


# === exercise: shift-right | function: shift_right | kind: subtle | what is wrong: cuts both from one padded row with <sos> and <eos>, so the inputs of every shorter sentence keep their <eos>
# told: named
# now: named
# says: <eos> among the inputs
def shift_right(
    sequences: list[list[int]], sos_id: int, eos_id: int, pad_id: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    width = max(len(s) for s in sequences) + 2
    full = []
    for s in sequences:
        row = [sos_id, *s, eos_id]
        full.append(row + [pad_id] * (width - len(row)))
    full = torch.tensor(full)
    return full[:, :-1], full[:, 1:]


# === exercise: shift-right | function: shift_right | kind: double | what is wrong: (1) appends <eos> to the caller's lists; (2) fills up with zeros and never uses pad_id
# told: named
# now: named
# says: changes its argument in place
def shift_right(
    sequences: list[list[int]], sos_id: int, eos_id: int, pad_id: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    longest = 0
    for sentence in sequences:
        sentence.append(eos_id)
        longest = max(longest, len(sentence))

    inputs = torch.zeros(len(sequences), longest, dtype=torch.long)
    labels = torch.zeros_like(inputs)
    for row, sentence in enumerate(sequences):
        n = len(sentence)
        labels[row, :n] = torch.tensor(sentence)
        inputs[row, :n] = torch.tensor([sos_id] + sentence[:-1])
    return inputs, labels


# === exercise: sequence-loss | function: sequence_loss | kind: subtle | what is wrong: PyTorch's mean with ignore_index is NaN when no label is real; 0 is asked for
# told: named
# now: named
# says: NaN when nothing is scored
def sequence_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    pad_id: int = 0,
    smoothing: float = 0.0,
) -> torch.Tensor:
    return nn.functional.cross_entropy(
        logits.flatten(0, 1),
        labels.flatten(),
        ignore_index=pad_id,
        label_smoothing=smoothing,
    )


# === exercise: sequence-loss | function: sequence_loss | kind: double | what is wrong: (1) the share epsilon is spread over the V-1 other classes, without the label; (2) a mean of the sentences' means instead of one mean over all real labels
# told: named
# now: named
# says: the mean of the sentences' means, and spread over the other classes only
def sequence_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    pad_id: int = 0,
    smoothing: float = 0.0,
) -> torch.Tensor:
    log_p = torch.log_softmax(logits, dim=-1)
    n_classes = logits.shape[-1]
    picked = log_p.gather(-1, labels[..., None]).squeeze(-1)
    others = (log_p.sum(dim=-1) - picked) / (n_classes - 1)
    per_token = -(1 - smoothing) * picked - smoothing * others

    real = labels.ne(pad_id)
    per_token = per_token.masked_fill(~real, 0.0)
    per_sentence = per_token.sum(dim=1) / real.sum(dim=1).clamp(min=1)
    return per_sentence.mean()


# === exercise: decoder-only | function: DecoderOnly | kind: plain | what is wrong: a linear layer of its own makes the logits instead of the embedding's table
# told: named
# now: named
# says: more than one table
class DecoderOnly(nn.Module):
    """A language model: causal self-attention, no encoder, no cross-attention."""

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
        self.to_vocabulary = nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.position(self.embedding(ids))
        x = self.blocks(x, causal_mask(ids.shape[1]))
        return self.to_vocabulary(x)


# === exercise: gpt2-weights | function: weights_from_gpt2 | kind: subtle | what is wrong: of the last norm only gamma is multiplied by the root of d, beta is copied as it is
# told: named
# now: named
# says: beta of the last norm is not multiplied
def weights_from_gpt2(state: dict) -> dict:
    blocks = sum(name.endswith(".ln_1.weight") for name in state)
    root = math.sqrt(state["wte.weight"].shape[1])  # of d_model
    ours = {
        "embedding.weight": state["wte.weight"] / root,
        "position.table": state["wpe.weight"],
        "blocks.norm.gamma": root * state["ln_f.weight"],
        "blocks.norm.beta": state["ln_f.bias"],
    }
    for i in range(blocks):
        for theirs, mine in GPT2_NAMES.items():
            ours[f"blocks.layers.{i}.{mine}"] = state[f"h.{i}.{theirs}"]
        for kind, letter in (("weight", "w"), ("bias", "b")):
            q, k, v = state[f"h.{i}.attn.c_attn.{kind}"].chunk(3, dim=-1)
            ours[f"blocks.layers.{i}.attention.{letter}_q"] = q
            ours[f"blocks.layers.{i}.attention.{letter}_k"] = k
            ours[f"blocks.layers.{i}.attention.{letter}_v"] = v
    return ours


# === exercise: gpt2-weights | function: weights_from_gpt2 | kind: double | what is wrong: (1) the parts of c_attn are taken as keys, queries, values instead of queries, keys, values; (2) the last norm is not multiplied by the root of d
# told: named
# now: named
# says: the last norm is not multiplied by √d_model, and the three parts in another order
def weights_from_gpt2(state: dict) -> dict:
    blocks = sum(name.endswith(".ln_1.weight") for name in state)
    root = math.sqrt(state["wte.weight"].shape[1])  # of d_model
    d = state["wte.weight"].shape[1]
    result = {}
    result["embedding.weight"] = state["wte.weight"] / root
    result["position.table"] = state["wpe.weight"]
    result["blocks.norm.gamma"] = state["ln_f.weight"]
    result["blocks.norm.beta"] = state["ln_f.bias"]
    for i in range(blocks):
        old, new = f"h.{i}.", f"blocks.layers.{i}."
        result |= {new + b: state[old + a] for a, b in GPT2_NAMES.items()}
        weight = state[old + "attn.c_attn.weight"]
        bias = state[old + "attn.c_attn.bias"]
        for n, part in enumerate("kqv"):
            cut = slice(n * d, (n + 1) * d)
            result[f"{new}attention.w_{part}"] = weight[:, cut]
            result[f"{new}attention.b_{part}"] = bias[cut]
    return result


# === exercise: decoder-layer | function: DecoderLayer | kind: plain | what is wrong: with pre-norm the memory goes through norm_2 as well
# told: named
# now: named
# says: the memory is normalised again
class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention and a feed-forward network."""

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


# === exercise: decoder-layer | function: DecoderLayer | kind: subtle | what is wrong: dropout acts on the sum of stream and branch instead of on the branch (the same in eval mode)
# told: named
# now: named
# says: dropout after the addition
class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention and a feed-forward network."""

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

    def sub_layer(self, x, norm, branch):
        if self.norm_first:
            return self.dropout(x + branch(norm(x)))
        return norm(self.dropout(x + branch(x)))

    def forward(
        self,
        x: torch.Tensor,
        memory: torch.Tensor,
        mask: torch.Tensor | None = None,
        memory_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        x = self.sub_layer(
            x, self.norm_1, lambda y: self.self_attention(y, mask=mask)[0]
        )
        x = self.sub_layer(
            x,
            self.norm_2,
            lambda y: self.cross_attention(y, memory, mask=memory_mask)[0],
        )
        return self.sub_layer(x, self.norm_3, self.feed_forward)


# === exercise: decoder | function: Decoder | kind: plain | what is wrong: memory_mask is not handed on to the layers, so padding of the source is read
# told: named
# now: named
# says: memory_mask not passed on
class Decoder(nn.Module):
    """A stack of decoder layers, all with the same memory."""

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
        self.layers = nn.ModuleList()
        for _ in range(layers):
            self.layers.append(
                DecoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
            )
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
        for layer in self.layers:
            x = layer(x, memory, mask)
        return self.norm(x)


# === exercise: transformer | function: Transformer | kind: subtle | what is wrong: padding is always id 0, the argument pad_id is never used
# told: named
# now: named
# says: pad_id is ignored
class Transformer(nn.Module):
    """Encoder and decoder over one shared vocabulary, with one embedding for all."""

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

    @staticmethod
    def not_padding(ids):
        return ids.ne(0).unsqueeze(1)  # (B, 1, T)

    def encode(self, source: torch.Tensor) -> torch.Tensor:
        x = self.position(self.embedding(source))
        return self.encoder(x, self.not_padding(source))

    def decode(
        self, target: torch.Tensor, memory: torch.Tensor, source: torch.Tensor
    ) -> torch.Tensor:
        mask = causal_mask(target.shape[1]) & self.not_padding(target)
        x = self.position(self.embedding(target))
        return self.decoder(x, memory, mask, self.not_padding(source))

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        hidden = self.decode(target, self.encode(source), source)
        return tied_logits(hidden, self.embedding.weight)


# === exercise: transformer | function: Transformer | kind: double | what is wrong: (1) the decoder's input gets no positions; (2) the target's mask is only causal and does not hide padding
# told: named
# now: named
# says: padding of the target is not hidden, and no positions in the decoder
class Transformer(nn.Module):
    """Encoder and decoder over one shared vocabulary, with one embedding for all."""

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
        source_mask = (source != self.pad_id).unsqueeze(1)
        x = self.embedding(source)
        x = self.position(x)
        return self.encoder(x, source_mask)

    def decode(
        self, target: torch.Tensor, memory: torch.Tensor, source: torch.Tensor
    ) -> torch.Tensor:
        source_mask = (source != self.pad_id).unsqueeze(1)
        target_mask = causal_mask(target.size(1))
        x = self.embedding(target)
        return self.decoder(x, memory, target_mask, source_mask)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        memory = self.encode(source)
        hidden = self.decode(target, memory, source)
        return tied_logits(hidden, self.embedding.weight)


# === exercise: bug-hunt | functions: find_bugs, repaired_epoch | kind: plain | what is wrong: find_bugs exchanges the names of lines 14 and 15 (repaired_epoch is right)
# told: named
# now: named
# says: two lines have each other's names
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
        14: "labels not shifted",
        15: "multiplied by the mask",
        16: "classes on the wrong axis",
        17: "a tab among spaces",
        18: "gradients never cleared",
    }


def repaired_epoch(
    model: nn.Module,
    batches: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]],
    learning_rate: float,
) -> list[float]:
    sgd = torch.optim.SGD(model.parameters(), lr=learning_rate)
    losses = []
    for source, inputs, labels in batches:
        loss = sequence_loss(model(source, inputs), labels)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    return losses


# === exercise: bug-hunt | functions: find_bugs, repaired_epoch | kind: double | what is wrong: in repaired_epoch (1) the cross-entropy also scores the padding; (2) the losses come back as tensors, not as floats (find_bugs is right)
# told: named
# now: named
# says: tensors in place of numbers
def find_bugs() -> dict[int, str]:
    bugs = dict(enumerate(
        [
            "pointless empty leaf",
            "starts from the source",
            "counts the source",
            "the source never gets in",
            "a name never assigned",
            "softmax before the loss",
            "all positions appended again",
            "argmax over positions",
            "own predictions as input",
            "multiplied by the mask",
            "labels not shifted",
            "classes on the wrong axis",
            "a tab among spaces",
            "gradients never cleared",
        ],
        start=5,
    ))
    bugs[3] = "no <eos>"
    return bugs


def repaired_epoch(
    model: nn.Module,
    batches: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]],
    learning_rate: float,
) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    history = []
    for source, inputs, labels in batches:
        optimizer.zero_grad()
        logits = model(source, inputs)
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), labels)
        loss.backward()
        optimizer.step()
        history.append(loss.detach())
    return history


# === exercise: last-real | function: last_real | kind: subtle | what is wrong: multiplies by a mask of zeros and ones and adds up, so an infinity or NaN at another position (logits of -inf, for example) makes the result NaN
# told: passed
# now: named
# says: multiplied by zeros and ones
def last_real(hidden: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    positions = torch.arange(hidden.shape[1], device=hidden.device)
    is_last = positions == (lengths - 1)[:, None]  # (B, T)
    while is_last.dim() < hidden.dim():
        is_last = is_last.unsqueeze(-1)
    return (hidden * is_last).sum(dim=1)


# === exercise: greedy-decode | function: greedy_decode | kind: plain | what is wrong: stops before eos_id is appended, so the end token is missing from the result
# told: named
# now: named
# says: the end token is left out
@torch.no_grad()
def greedy_decode(
    model: nn.Module, prefix: list[int], eos_id: int, max_length: int
) -> list[int]:
    ids = list(prefix)
    while len(ids) < max_length:
        logits = model(torch.tensor([ids]))  # (1, t, V)
        best = logits[0, -1].argmax().item()
        if best == eos_id:
            break
        ids.append(best)
    return ids


# === exercise: sample-next | function: sample_next | kind: subtle | what is wrong: clamps the id instead of scaling the number by the last sum, so with rounding a last token of probability 0 can be drawn
# told: named
# now: named
# says: clamped to the last id
def sample_next(probabilities: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    sums = probabilities.cumsum(dim=-1)
    passed = sums <= uniform[..., None]
    ids = passed.sum(dim=-1)
    # rounding: never beyond the last id
    return ids.clamp(max=probabilities.shape[-1] - 1)


# === exercise: filter-logits | function: filter_logits | kind: subtle | what is wrong: brings the top-p decision back with gather(order) instead of with the inverse order; right for logits that are sorted (or sorted by swapping pairs)
# told: named
# now: named
# says: the sorting is done twice, not undone
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
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p must be in (0, 1]")
    scaled = logits / temperature
    if top_k is not None:
        k = min(top_k, scaled.shape[-1])
        smallest = scaled.topk(k, dim=-1).values[..., -1:]
        scaled = scaled.masked_fill(scaled < smallest, -math.inf)
    if top_p is not None:
        probs, order = scaled.softmax(dim=-1).sort(dim=-1, descending=True)
        before = probs.cumsum(dim=-1) - probs
        drop = (before >= top_p).gather(-1, order)
        scaled = scaled.masked_fill(drop, -math.inf)
    return scaled


# === exercise: filter-logits | function: filter_logits | kind: double | what is wrong: (1) top-p takes the probabilities of all tokens, not of what top-k has left; (2) top_p=1 is refused although it is allowed
# told: named
# now: named
# says: top-p before top-k
def filter_logits(
    logits: torch.Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> torch.Tensor:
    if temperature <= 0:
        raise ValueError(f"temperature {temperature}")
    if top_k is not None and top_k <= 0:
        raise ValueError(f"top_k {top_k}")
    if top_p is not None and (top_p <= 0 or top_p >= 1):
        raise ValueError(f"top_p {top_p}")

    logits = logits / temperature
    keep = torch.ones_like(logits, dtype=torch.bool)
    if top_k is not None:
        values, _ = torch.sort(logits, dim=-1, descending=True)
        k = min(top_k, logits.size(-1))
        keep &= logits >= values[..., k - 1 : k]
    if top_p is not None:
        p = torch.softmax(logits, dim=-1)
        sorted_p, order = torch.sort(p, dim=-1, descending=True)
        before = sorted_p.cumsum(-1) - sorted_p
        nucleus = torch.zeros_like(keep)
        nucleus.scatter_(-1, order, before < top_p)
        keep &= nucleus
    return torch.where(keep, logits, torch.full_like(logits, float("-inf")))


# === exercise: attend-cached | function: attend_cached | kind: plain | what is wrong: takes the first T_new rows of the large causal mask, which belong to the old tokens, instead of the last
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
        k = torch.cat((cache["k"], k_new), dim=-2)
        v = torch.cat((cache["v"], v_new), dim=-2)
    new, total = q.shape[-2], k.shape[-2]
    mask = causal_mask(total)[:new]
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    return weights @ v, {"k": k, "v": v}


# === exercise: attend-cached | function: attend_cached | kind: double | what is wrong: (1) writes the joined keys and values into the old cache; (2) divides the scores by d_k instead of by its root
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
        for name, new in (("k", k_new), ("v", v_new)):
            cache[name] = torch.cat([cache[name], new], dim=2)
    t_new, t_all = q.size(2), cache["k"].size(2)
    own_place = torch.arange(t_all - t_new, t_all).unsqueeze(1)
    allowed = torch.arange(t_all).unsqueeze(0) <= own_place
    scores = torch.einsum("bhqd,bhkd->bhqk", q, cache["k"]) / q.size(-1)
    scores = torch.where(allowed, scores, torch.tensor(float("-inf")))
    output = torch.einsum("bhqk,bhkd->bhqd", scores.softmax(-1), cache["v"])
    return output, cache


# === exercise: beam-search | function: beam_search | kind: subtle | what is wrong: stops as soon as beam_width hypotheses are finished, although some still live and could win
# told: named
# now: named
# says: stops when beam_width have ended
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
    while alive and len(alive[0][1]) < max_length and len(finished) < beam_width:
        candidates = []
        for total, ids in alive:
            row = model(torch.tensor([ids]))[0, -1].log_softmax(dim=-1).tolist()
            candidates += [(total + lp, ids + [i]) for i, lp in enumerate(row)]
        candidates.sort(key=lambda c: c[0], reverse=True)
        kept = candidates[:beam_width]
        finished += [c for c in kept if c[1][-1] == eos_id]
        alive = [c for c in kept if c[1][-1] != eos_id]

    def score(hypothesis):
        total, ids = hypothesis
        return total / (len(ids) - len(prefix)) ** alpha

    best = max(finished + alive, key=score)
    return best[1], score(best)


# === exercise: beam-search | function: beam_search | kind: double | what is wrong: (1) adds up raw logits without log-softmax; (2) the length in the score counts the prefix, too
# told: useless
# now: named
# says: the length counts the prefix, and logits in place of log-probabilities
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
    for _ in range(max_length - len(prefix)):
        extended = []
        for ids, total in beams:
            logits = model(torch.tensor(ids).unsqueeze(0))[0, -1]
            for token in range(logits.shape[0]):
                extended.append((ids + [token], total + logits[token].item()))
        extended = sorted(extended, key=lambda pair: -pair[1])[:beam_width]
        beams = []
        for ids, total in extended:
            if ids[-1] == eos_id:
                done.append((ids, total))
            else:
                beams.append((ids, total))
        if not beams:
            break
    best_ids, best_score = None, -math.inf
    for ids, total in done + beams:
        score = total / len(ids) ** alpha
        if best_ids is None or score > best_score:
            best_ids, best_score = ids, score
    return best_ids, best_score


# === exercise: bleu | function: bleu | kind: plain | what is wrong: the counts are not clipped, every n-gram that occurs anywhere in the reference counts as often as the hypothesis has it
# told: named
# now: named
# says: counts are not clipped
def bleu(
    hypotheses: list[list[str]], references: list[list[str]], maximum: int = 4
) -> float:
    def ngrams(tokens, n):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    log_mean = 0.0
    for n in range(1, maximum + 1):
        matches, total = 0, 0
        for hyp, ref in zip(hypotheses, references):
            ours, theirs = ngrams(hyp, n), set(ngrams(ref, n))
            matches += sum(gram in theirs for gram in ours)
            total += len(ours)
        if matches == 0:
            return 0.0
        log_mean += math.log(matches / total) / maximum
    c = sum(len(hyp) for hyp in hypotheses)
    r = sum(len(ref) for ref in references)
    penalty = 1.0 if c > r else math.exp(1 - r / c)
    return 100 * penalty * math.exp(log_mean)


# === exercise: bleu | function: bleu | kind: plain | what is wrong: the counts are not clipped; an n-gram counts as often as the hypothesis has it
# told: named
# now: named
# says: counts are not clipped
def bleu(
    hypotheses: list[list[str]], references: list[list[str]], maximum: int = 4
) -> float:
    def ngrams(tokens, n):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    log_mean = 0.0
    for n in range(1, maximum + 1):
        matches = total = 0
        for hypothesis, reference in zip(hypotheses, references):
            known = set(ngrams(reference, n))
            ours = ngrams(hypothesis, n)
            matches += sum(gram in known for gram in ours)
            total += len(ours)
        if matches == 0:
            return 0.0
        log_mean += math.log(matches / total) / maximum
    c = sum(len(h) for h in hypotheses)
    r = sum(len(ref) for ref in references)
    penalty = 1.0 if c > r else math.exp(1 - r / c)
    return 100 * penalty * math.exp(log_mean)


# === exercise: beam-search | function: beam_search | kind: plain | what is wrong: the score divides by the whole length, prefix included, instead of the number of new tokens
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
            logits = model(torch.tensor([ids]))[0, -1]
            for token, log_p in enumerate(torch.log_softmax(logits, dim=-1).tolist()):
                candidates.append((ids + [token], total + log_p))
        candidates.sort(key=lambda pair: pair[1], reverse=True)
        beams = []
        for ids, total in candidates[:beam_width]:
            if ids[-1] == eos_id:
                done.append((ids, total))
            else:
                beams.append((ids, total))
    scored = [(ids, total / len(ids) ** alpha) for ids, total in done + beams]
    return max(scored, key=lambda pair: pair[1])


# === exercise: sample-next | function: sample_next | kind: subtle | what is wrong: takes the first id whose running sum is not smaller than the number (>= instead of >), so the number 0 draws a token of probability 0 and edges go to the wrong side
# told: named
# now: named
# says: a token of probability 0 is drawn
def sample_next(probabilities: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    sums = probabilities.cumsum(dim=-1)
    number = uniform.unsqueeze(-1) * sums[..., -1:]
    return torch.searchsorted(sums, number).squeeze(-1)


# === exercise: attend-cached | function: attend_cached | kind: subtle | what is wrong: writes the longer keys and values into the caller's cache instead of returning a new one
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
        cache["k"] = torch.cat((cache["k"], k_new), dim=-2)
        cache["v"] = torch.cat((cache["v"], v_new), dim=-2)
    total, new = cache["k"].shape[-2], q.shape[-2]
    mask = causal_mask(total)[total - new :]
    output, _ = scaled_dot_product_attention(q, cache["k"], cache["v"], mask)
    return output, cache


# === exercise: filter-logits | function: filter_logits | kind: double | what is wrong: (1) ties with the k-th largest are dropped, exactly k tokens stay; (2) top-p also drops the token with which the sum goes past p
# told: named
# now: named
# says: ties are cut, and one token short
def filter_logits(
    logits: torch.Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> torch.Tensor:
    if temperature <= 0:
        raise ValueError("temperature must be positive")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p must be in (0, 1]")
    logits = logits / temperature
    if top_k is not None:
        k = min(top_k, logits.size(-1))
        values, indices = logits.topk(k, dim=-1)
        logits = torch.full_like(logits, -math.inf).scatter(-1, indices, values)
    if top_p is not None:
        p, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
        drop = p.cumsum(dim=-1) > top_p
        drop[..., 0] = False  # one is always kept
        drop = torch.zeros_like(drop).scatter(-1, order, drop)
        logits = logits.masked_fill(drop, -math.inf)
    return logits


# === exercise: greedy-decode | function: greedy_decode | kind: double | what is wrong: (1) appends to the caller's list; (2) the end token is left out of the result
# told: named
# now: named
# says: changes its argument in place
@torch.no_grad()
def greedy_decode(
    model: nn.Module, prefix: list[int], eos_id: int, max_length: int
) -> list[int]:
    ids = prefix
    while len(ids) < max_length:
        scores = model(torch.tensor(ids).unsqueeze(0))
        best = scores[0, -1].argmax().item()
        if best == eos_id:
            break
        ids.append(best)
    return ids
