# ruff: noqa
# fmt: off

# === exercise: decoder-mask | function: decoder_mask | kind: plain | what is wrong: the padding mask is transposed, so it closes the rows of padding queries and not the columns of padding keys; it shows for every sentence shorter than max_length (the last row of the first matrix by hand is 0 0 0 instead of 1 1 0)
# told: named
# now: named
# says: the rows of padding are empty
def decoder_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    past = causal_mask(max_length)  # (T, T)
    real = padding_mask(lengths, max_length).transpose(1, 2)  # (B, T, 1)
    return past & real


# === exercise: noam-rate | function: noam_rate | kind: plain | what is wrong: `d_model ** -1/2` is read by Python as (1/d) divided by 2 and not as d to the power -0.5, so the rate has the wrong factor at every step (0.0156 instead of 0.0625 at step 1 for d = 4, w = 4)
# told: told
# now: named
# says: brackets are missing around the exponent
def noam_rate(step: int, d_model: int, warmup: int = 4000) -> float:
    if step < 1:
        raise ValueError(f"steps are counted from 1, got {step}")
    falling = step**-0.5
    rising = step * warmup**-1.5
    return d_model ** -1/2 * min(falling, rising)


# === exercise: shift-right | function: shift_right | kind: plain | what is wrong: the labels are the padded inputs rolled by one with <eos> written in the last column, so for each sentence shorter than the longest <eos> stands at the end of the row behind the padding instead of right after the sentence
# told: named
# now: named
# says: <eos> after the padding
def shift_right(
    sequences: list[list[int]], sos_id: int, eos_id: int, pad_id: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    T = max((len(s) for s in sequences), default=0) + 1
    inputs = torch.full((len(sequences), T), pad_id)
    inputs[:, 0] = sos_id
    for b, s in enumerate(sequences):
        for t, token in enumerate(s):
            inputs[b, t + 1] = token
    labels = torch.roll(inputs, -1, dims=1)
    labels[:, -1] = eos_id
    return inputs, labels


# === exercise: bleu | function: bleu | kind: plain | what is wrong: the n-grams are collected in sets, so each different n-gram of a sentence counts once, in the matches and in the total; it shows whenever a hypothesis repeats an n-gram (4/4 instead of 4/6 for p_1 of the first example)
# told: named
# now: named
# says: each n-gram counts once
def bleu(
    hypotheses: list[list[str]], references: list[list[str]], maximum: int = 4
) -> float:
    def grams(tokens, n):
        return {tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)}

    log_mean = 0.0
    for n in range(1, maximum + 1):
        hits, total = 0, 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            ours = grams(hypothesis, n)
            hits += len(ours & grams(reference, n))
            total += len(ours)
        if hits == 0:
            return 0.0
        log_mean += math.log(hits / total) / maximum
    c = sum(map(len, hypotheses))
    r = sum(map(len, references))
    penalty = 1.0 if c > r else math.exp(1 - r / c)
    return 100 * penalty * math.exp(log_mean)


# === exercise: decoder | function: Decoder | kind: plain | what is wrong: the norm at the end is on the wrong side of the condition, a LayerNorm in post-norm and nn.Identity in pre-norm, so the pre-norm stack ends without a norm and the post-norm stack has one too many (with 2d parameters more)
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
        self.layers = nn.ModuleList(
            [
                DecoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
                for _ in range(layers)
            ]
        )
        self.norm = nn.Identity() if norm_first else LayerNorm(d_model)

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


# === exercise: sequence-loss | function: sequence_loss | kind: subtle | what is wrong: the even part of the smoothing is averaged over all B·T positions, padding included, while the label part is averaged over the real labels only; it shows only with smoothing above 0 and padding in the batch whose mean log-probability differs (or with no real label, where the result is not 0)
# told: named
# now: named
# says: padding counted in the even part
def sequence_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    pad_id: int = 0,
    smoothing: float = 0.0,
) -> torch.Tensor:
    real = labels != pad_id
    log_p = torch.log_softmax(logits, dim=-1)
    nll = -log_p.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    nll = nll.masked_fill(~real, 0.0).sum() / real.sum().clamp(min=1)
    even = -log_p.mean(dim=-1).mean()
    return (1 - smoothing) * nll + smoothing * even


# === exercise: gpt2-weights | function: weights_from_gpt2 | kind: subtle | what is wrong: the number of the block is read as the single character name[2], so from block 10 on the rest of the name does not match and those blocks are missing in the result; it shows only for models with more than 10 blocks, such as GPT-2's 12
# told: named
# now: named
# says: the result has other names
def weights_from_gpt2(state: dict) -> dict:
    root = math.sqrt(state["wte.weight"].shape[1])  # of d_model
    result = {
        "embedding.weight": state["wte.weight"] / root,
        "position.table": state["wpe.weight"],
        "blocks.norm.gamma": state["ln_f.weight"] * root,
        "blocks.norm.beta": state["ln_f.bias"] * root,
    }
    for name, tensor in state.items():
        if not name.startswith("h."):
            continue
        i, rest = name[2], name[4:]  # "h.0.ln_1.weight" -> "0", "ln_1.weight"
        new = f"blocks.layers.{i}."
        if rest in GPT2_NAMES:
            result[new + GPT2_NAMES[rest]] = tensor
        elif rest == "attn.c_attn.weight":
            for letter, part in zip("qkv", tensor.chunk(3, dim=-1)):
                result[new + "attention.w_" + letter] = part
        elif rest == "attn.c_attn.bias":
            for letter, part in zip("qkv", tensor.chunk(3, dim=-1)):
                result[new + "attention.b_" + letter] = part
    return result


# === exercise: decoder-layer | function: DecoderLayer | kind: subtle | what is wrong: in pre-norm the feed-forward network is asked through norm_2 a second time instead of norm_3; it shows only with norm_first=True and weights in which norm_2 and norm_3 differ (not in a new layer), and norm_3 then gets no gradient
# told: named
# now: named
# says: one norm for two branches
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
        if self.norm_first:
            h = self.norm_1(x)
            x = x + self.dropout(self.self_attention(h, h, mask=mask)[0])
            h = self.norm_2(x)
            x = x + self.dropout(self.cross_attention(h, memory, mask=memory_mask)[0])
            h = self.norm_2(x)
            return x + self.dropout(self.feed_forward(h))
        a = self.self_attention(x, x, mask=mask)[0]
        x = self.norm_1(x + self.dropout(a))
        a = self.cross_attention(x, memory, mask=memory_mask)[0]
        x = self.norm_2(x + self.dropout(a))
        return self.norm_3(x + self.dropout(self.feed_forward(x)))


# === exercise: sample-next | function: sample_next | kind: subtle | what is wrong: instead of multiplying the number by the last running sum, ids that are too large are clamped to V - 1; it shows only where the last sum is below 1 and the number is at or above it, where the last token is drawn even if its probability is 0 (e.g. (0.5, 0.4999, 0) with the number 0.99995 gives 2 instead of 1)
# told: named
# now: named
# says: clamped to the last id
def sample_next(probabilities: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    sums = probabilities.cumsum(dim=-1)
    passed = sums <= uniform[..., None]
    ids = passed.sum(dim=-1)
    return ids.clamp(max=probabilities.shape[-1] - 1)


# === exercise: filter-logits | function: filter_logits | kind: subtle | what is wrong: the sorted drop mask is brought back with gather by `order` itself and not by its inverse; it shows only with top_p and where the order of sorting is not its own inverse, e.g. probabilities (.25, .15, .5, .1) with top_p=0.7 keep .15 and drop .25
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
    minus = float("-inf")
    out = logits / temperature
    if top_k is not None:
        k = min(top_k, out.shape[-1])
        smallest = out.topk(k, dim=-1).values[..., -1:]
        out = out.masked_fill(out < smallest, minus)
    if top_p is not None:
        p, order = out.softmax(dim=-1).sort(dim=-1, descending=True)
        before = p.cumsum(dim=-1) - p
        drop = (before >= top_p).gather(-1, order)
        out = out.masked_fill(drop, minus)
    return out


# === exercise: attend-cached | function: attend_cached | kind: subtle | what is wrong: the new keys are divided by sqrt(d_k) before they are put into the cache (and the scores are not divided), so the returned cache holds scaled keys, and a cache with true keys gives wrong outputs; outputs of calls that are chained from None are right, and with d_k = 1 everything is
# told: told
# now: named
# says: scaled keys in the cache
def attend_cached(
    q: torch.Tensor,
    k_new: torch.Tensor,
    v_new: torch.Tensor,
    cache: dict[str, torch.Tensor] | None,
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    keys = k_new / math.sqrt(q.shape[-1])  # scale once, when a key arrives
    values = v_new
    if cache is not None:
        keys = torch.cat((cache["k"], keys), dim=-2)
        values = torch.cat((cache["v"], values), dim=-2)
    new, total = q.shape[-2], keys.shape[-2]
    allowed = causal_mask(total)[total - new :].to(q.device)
    scores = torch.einsum("bhid,bhjd->bhij", q, keys)
    weights = scores.masked_fill(~allowed, float("-inf")).softmax(dim=-1)
    output = torch.einsum("bhij,bhjd->bhid", weights, values)
    return output, {"k": keys, "v": values}


# === exercise: greedy-decode | function: greedy_decode | kind: subtle | what is wrong: the length is tested only after a token has been appended, so a prefix that already has max_length ids gets one token more instead of coming back as it is; shorter prefixes are right
# told: named
# now: named
# says: one token too many
@torch.no_grad()
def greedy_decode(
    model: nn.Module, prefix: list[int], eos_id: int, max_length: int
) -> list[int]:
    ids = list(prefix)
    while True:
        scores = model(torch.tensor([ids]))[0, -1]
        ids.append(scores.argmax().item())
        if ids[-1] == eos_id or len(ids) >= max_length:
            return ids


# === exercise: beam-search | function: beam_search | kind: double | what is wrong: first, as soon as any hypothesis has finished, those still alive at max_length are not compared any more, so a better unfinished one is lost; second, the score that is returned is the plain sum, not divided by n**alpha, which shows for alpha other than 0 and more than one new token
# told: useless
# now: useless
@torch.no_grad()
def beam_search(
    model: nn.Module,
    prefix: list[int],
    eos_id: int,
    beam_width: int,
    max_length: int,
    alpha: float = 0.0,
) -> tuple[list[int], float]:
    start = len(prefix)
    alive, done = [(0.0, list(prefix))], []
    while alive and len(alive[0][1]) < max_length:
        candidates = []
        for total, ids in alive:
            row = model(torch.tensor([ids]))[0, -1].log_softmax(dim=-1).tolist()
            candidates += [(total + lp, [*ids, i]) for i, lp in enumerate(row)]
        candidates.sort(key=lambda pair: pair[0], reverse=True)
        alive = []
        for pair in candidates[:beam_width]:
            (done if pair[1][-1] == eos_id else alive).append(pair)

    def score(pair):
        return pair[0] / (len(pair[1]) - start) ** alpha

    total, ids = max(done or alive, key=score)
    return ids, total


# === exercise: transformer | function: Transformer | kind: double | what is wrong: first, the memory mask in decode compares the source with 0 instead of pad_id, which shows for another pad_id and source padding (or a real token 0); second, forward detaches the memory, so the logits are right but the encoder gets no gradient and never learns
# told: named
# now: named
# says: pad_id is ignored
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

    def _embed(self, ids):
        return self.position(self.embedding(ids))

    def encode(self, source: torch.Tensor) -> torch.Tensor:
        mask = (source != self.pad_id).unsqueeze(1)
        return self.encoder(self._embed(source), mask)

    def decode(
        self, target: torch.Tensor, memory: torch.Tensor, source: torch.Tensor
    ) -> torch.Tensor:
        not_pad = (target != self.pad_id).unsqueeze(1)
        mask = causal_mask(target.shape[1]).to(target.device) & not_pad
        memory_mask = (source != 0).unsqueeze(1)
        return self.decoder(self._embed(target), memory, mask, memory_mask)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        memory = self.encode(source).detach()  # the encoder is finished here
        hidden = self.decode(target, memory, source)
        return tied_logits(hidden, self.embedding.weight)


# === exercise: bug-hunt | function: find_bugs, repaired_epoch | kind: double | what is wrong: first, in find_bugs lines 3 and 15 have each other's names ("no <eos>" belongs to 3, "labels not shifted" to 15); second, the optimiser of repaired_epoch has momentum 0.9 instead of plain gradient descent, so losses are wrong from the third batch on (weights from the second step on)
# told: named
# now: named
# says: two lines have each other's names
def find_bugs() -> dict[int, str]:
    return {
        3: "labels not shifted",
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
        15: "no <eos>",
        16: "classes on the wrong axis",
        17: "a tab among spaces",
        18: "gradients never cleared",
    }


def repaired_epoch(
    model: nn.Module,
    batches: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]],
    learning_rate: float,
) -> list[float]:
    sgd = torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9)
    history = []
    for source, inputs, labels in batches:
        loss = sequence_loss(model(source, inputs), labels)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        history.append(loss.item())
    return history


# === exercise: bleu | function: bleu | kind: double | what is wrong: first, the counts of all sentences are merged before clipping, so an n-gram may be matched by the reference of another sentence (shows with more than one sentence); second, lengths n for which there are no n-grams at all are skipped and the mean is taken over the other lengths, where the result should be 0 (shows when all hypotheses are shorter than maximum)
# told: named
# now: named
# says: matched in another sentence, and lengths without n-grams are skipped
def bleu(
    hypotheses: list[list[str]], references: list[list[str]], maximum: int = 4
) -> float:
    logs = []
    for n in range(1, maximum + 1):
        ours, theirs = Counter(), Counter()
        for hyp, ref in zip(hypotheses, references):
            ours.update(zip(*(hyp[i:] for i in range(n))))
            theirs.update(zip(*(ref[i:] for i in range(n))))
        total = sum(ours.values())
        if total == 0:
            continue
        matches = sum((ours & theirs).values())
        if matches == 0:
            return 0.0
        logs.append(math.log(matches / total))
    if not logs:
        return 0.0
    c, r = sum(len(h) for h in hypotheses), sum(len(t) for t in references)
    bp = 1.0 if c > r else math.exp(1 - r / c)
    return 100 * bp * math.exp(sum(logs) / len(logs))


# === exercise: last-real | function: last_real | kind: double | what is wrong: first, `lengths -= 1` changes the caller's tensor, so a second call with the same lengths takes the position before; second, squeeze() at the end drops every axis of size 1, so the shape is wrong for B = 1 or a last axis of width 1
# told: named
# now: named
# says: changes its argument in place
def last_real(hidden: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    lengths -= 1
    rows = torch.arange(len(hidden), device=hidden.device)
    return hidden[rows, lengths].squeeze()


# === exercise: decoder-only | function: DecoderOnly | kind: double | what is wrong: first, the blocks have the activation relu instead of gelu, so all logits differ from those asked for; second, dropout is not handed to the positional encoding, so nothing is dropped from the embedded input (shows in training mode with dropout above 0)
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
        self.position = LearnedPositionalEncoding(max_length, d_model)
        self.blocks = Encoder(layers, d_model, heads, d_ff, dropout, True, "relu")

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.position(self.embedding(ids))
        x = self.blocks(x, causal_mask(ids.shape[1]).to(ids.device))
        return tied_logits(x, self.embedding.weight)
