# ruff: noqa
# fmt: off

# === exercise: decoder-mask | function: decoder_mask | kind: subtle | what is wrong: padding is hidden as query, too, so the rows of padding positions are empty (all False) instead of seeing the real keys before them; shows wherever a length is below max_length
# told: named
# now: named
# says: the rows of padding are empty
def decoder_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    real = torch.arange(max_length, device=lengths.device) < lengths[:, None]
    pairs = real[:, :, None] & real[:, None, :]
    return pairs & causal_mask(max_length)


# === exercise: noam-rate | function: noam_rate | kind: plain | what is wrong: the rising curve is step / warmup (a share of the warm-up) instead of step * warmup**-1.5, so the curves do not meet at step w; for d = 4, w = 4 step 1 gives 0.125 instead of 0.0625
# told: named
# now: named
# says: another power of warmup
def noam_rate(step: int, d_model: int, warmup: int = 4000) -> float:
    if step < 1:
        raise ValueError(f"steps are counted from 1, not {step}")
    rising = step / warmup
    falling = 1 / math.sqrt(step)
    return min(rising, falling) / math.sqrt(d_model)


# === exercise: shift-right | function: shift_right | kind: subtle | what is wrong: one table <sos> sentence <eos> is padded and then cut into [:, :-1] and [:, 1:], so the inputs of every sentence shorter than the longest contain <eos>
# told: named
# now: named
# says: <eos> among the inputs
def shift_right(
    sequences: list[list[int]], sos_id: int, eos_id: int, pad_id: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    longest = max(len(sequence) for sequence in sequences)
    table = torch.full((len(sequences), longest + 2), pad_id)
    for row, sequence in zip(table, sequences):
        row[: len(sequence) + 2] = torch.tensor([sos_id, *sequence, eos_id])
    return table[:, :-1], table[:, 1:]


# === exercise: shift-right | function: shift_right | kind: double | what is wrong: <sos> is inserted into the caller's own lists, which are changed after the call AND pad_sequence fills up with 0 whatever pad_id is
# told: named
# now: named
# says: changes its argument in place
def shift_right(
    sequences: list[list[int]], sos_id: int, eos_id: int, pad_id: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    labels = [torch.tensor([*ids, eos_id]) for ids in sequences]
    for ids in sequences:
        ids.insert(0, sos_id)
    inputs = [torch.tensor(ids) for ids in sequences]
    pad = nn.utils.rnn.pad_sequence
    return pad(inputs, batch_first=True), pad(labels, batch_first=True)


# === exercise: sequence-loss | function: sequence_loss | kind: double | what is wrong: averages within each sentence first and then over the sentences, so a token of a short sentence counts for more (sentences of different lengths) AND takes log(softmax + 1e-9) instead of log_softmax, so the loss of large logits is cut off at 20.7
# told: named
# now: named
# says: the mean of the sentences' means, and the logarithm is cut off
def sequence_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    pad_id: int = 0,
    smoothing: float = 0.0,
) -> torch.Tensor:
    real = (labels != pad_id).to(logits.dtype)
    nats = -torch.log(torch.softmax(logits, dim=-1) + 1e-9)
    hit = torch.gather(nats, 2, labels[..., None])[..., 0]
    each = (1 - smoothing) * hit + smoothing * nats.mean(dim=2)
    words = real.sum(dim=1).clamp(min=1)
    per_sentence = torch.einsum("bt,bt->b", each, real) / words
    return per_sentence.mean()


# === exercise: decoder-only | function: DecoderOnly | kind: subtle | what is wrong: hides id 0 with a padding mask on top of the causal one, which the statement rules out; the logits differ at and after every position with the id 0
# told: named
# now: named
# says: id 0 is hidden
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
        self.blocks = Encoder(layers, d_model, heads, d_ff, dropout, True, "gelu")

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        allowed = causal_mask(ids.shape[1]) & (ids != 0).unsqueeze(1)
        hidden = self.blocks(self.position(self.embedding(ids)), allowed)
        return tied_logits(hidden, self.embedding.weight)


# === exercise: gpt2-weights | function: weights_from_gpt2 | kind: subtle | what is wrong: finds the names of block i by startswith("h.i") without the dot behind, so with more than ten blocks block 1 gets the weights of block 10 or 11
# told: shown
# now: named
# says: h.10 and h.11 taken for h.1
def weights_from_gpt2(state: dict) -> dict:
    blocks = sum(name.endswith(".ln_1.weight") for name in state)
    root = math.sqrt(state["wte.weight"].shape[1])  # of d_model
    ours = {
        "embedding.weight": state["wte.weight"] / root,
        "position.table": state["wpe.weight"],
        "blocks.norm.gamma": root * state["ln_f.weight"],
        "blocks.norm.beta": root * state["ln_f.bias"],
    }
    for i in range(blocks):
        block = {
            name.split(".", 2)[2]: tensor
            for name, tensor in state.items()
            if name.startswith(f"h.{i}")
        }
        here = f"blocks.layers.{i}."
        ours.update({here + new: block[old] for old, new in GPT2_NAMES.items()})
        for letter, kind in (("w", "weight"), ("b", "bias")):
            thirds = block[f"attn.c_attn.{kind}"].chunk(3, dim=-1)
            for which, third in zip("qkv", thirds):
                ours[f"{here}attention.{letter}_{which}"] = third
    return ours


# === exercise: decoder-layer | function: DecoderLayer | kind: plain | what is wrong: with norm_first the memory goes through norm_2 as well as the queries; shows in pre-norm for any memory
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
        self.norm_1, self.norm_2, self.norm_3 = (LayerNorm(d_model) for _ in range(3))
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


# === exercise: decoder-layer | function: DecoderLayer | kind: double | what is wrong: in pre-norm the normalised x takes the place of the stream, so the branches are added to N(x) instead of x AND there is no dropout on the feed-forward branch (both orders, in training with dropout above 0)
# told: named
# now: named
# says: dropout not on all branches
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
        steps = (
            (self.norm_1, lambda a: self.dropout(self.self_attention(a, mask=mask)[0])),
            (
                self.norm_2,
                lambda a: self.dropout(
                    self.cross_attention(a, memory, mask=memory_mask)[0]
                ),
            ),
            (self.norm_3, self.feed_forward),
        )
        for norm, branch in steps:
            if self.norm_first:
                x = norm(x)
                x = x + branch(x)
            else:
                x = norm(x + branch(x))
        return x


# === exercise: decoder | function: Decoder | kind: double | what is wrong: the norm is applied after every layer, inside the loop, instead of once at the end (pre-norm, two layers or more) AND the activation is not handed to the layers, which stay with relu
# told: wrong
# now: named
# says: the final norm after every layer, and activation not passed on
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
        self.layers = nn.ModuleList()
        for _ in range(layers):
            self.layers.append(DecoderLayer(d_model, heads, d_ff, dropout, norm_first))
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(
        self,
        x: torch.Tensor,
        memory: torch.Tensor,
        mask: torch.Tensor | None = None,
        memory_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        for layer in self.layers:
            x = self.norm(layer(x, memory, mask, memory_mask))
        return x


# === exercise: transformer | function: Transformer | kind: plain | what is wrong: the encoder gets a causal mask as well as the padding mask, so no source token sees the ones after it; shows for every source of two tokens or more
# told: useless
# now: named
# says: a causal mask in the encoder
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

    def look_back(self, ids: torch.Tensor) -> torch.Tensor:
        return causal_mask(ids.shape[1]) & (ids != self.pad_id).unsqueeze(1)

    def encode(self, source: torch.Tensor) -> torch.Tensor:
        x = self.position(self.embedding(source))
        return self.encoder(x, self.look_back(source))

    def decode(
        self, target: torch.Tensor, memory: torch.Tensor, source: torch.Tensor
    ) -> torch.Tensor:
        x = self.position(self.embedding(target))
        memory_mask = (source != self.pad_id).unsqueeze(1)
        return self.decoder(x, memory, self.look_back(target), memory_mask)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        hidden = self.decode(target, self.encode(source), source)
        return tied_logits(hidden, self.embedding.weight)


# === exercise: transformer | function: Transformer | kind: double | what is wrong: dropout is not given to the positions AND the decoder's mask is only causal, so padding in the target is not hidden (rows of padding on the right, every later row if padding is at the beginning)
# told: shown
# now: named
# says: padding of the target is not hidden, and dropout not passed to the positions
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
        self.position = SinusoidalPositionalEncoding(d_model, max_length)
        self.encoder, self.decoder = Encoder(*sizes), Decoder(*sizes)

    def encode(self, source: torch.Tensor) -> torch.Tensor:
        real = source.ne(self.pad_id)[:, None]
        return self.encoder(self.position(self.embedding(source)), real)

    def decode(
        self, target: torch.Tensor, memory: torch.Tensor, source: torch.Tensor
    ) -> torch.Tensor:
        real = source.ne(self.pad_id)[:, None]
        words = self.position(self.embedding(target))
        return self.decoder(words, memory, causal_mask(target.size(1)), real)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        memory = self.encode(source)
        return tied_logits(self.decode(target, memory, source), self.embedding.weight)


# === exercise: bug-hunt | function: find_bugs | kind: double | what is wrong: lines 14 and 15 have each other's names AND line 5 is left out, and the right line 19 is called "the graph is kept" in its place
# told: named
# now: named
# says: two lines have each other's names
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
        14: "labels not shifted",
        15: "multiplied by the mask",
        16: "classes on the wrong axis",
        17: "a tab among spaces",
        18: "gradients never cleared",
        19: "the graph is kept",
    }


# === exercise: bug-hunt | function: repaired_epoch | kind: plain | what is wrong: the gradients are cleared between backward and step, so no step changes a weight; shows from the second batch on, and in the weights after one
# told: named
# now: named
# says: the weights never change
def repaired_epoch(
    model: nn.Module,
    batches: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]],
    learning_rate: float,
) -> list[float]:
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    history = []
    for source, inputs, labels in batches:
        loss = sequence_loss(model(source, inputs), labels)
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        history.append(loss.item())
    return history


# === exercise: last-real | function: last_real | kind: plain | what is wrong: takes position lengths instead of lengths - 1, held inside the batch by a clamp: lengths (2, 3) of width 3 give (12, 22), the first padding position of every sentence that has one
# told: named
# now: named
# says: off by one
def last_real(hidden: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    width = hidden.shape[1]
    columns = torch.clamp(lengths, max=width - 1).tolist()
    return torch.stack([row[column] for row, column in zip(hidden, columns)])


# === exercise: greedy-decode | function: greedy_decode | kind: subtle | what is wrong: the length is looked at only after a token has been appended, so a prefix that already has max_length ids gets one more
# told: named
# now: named
# says: one token too many
@torch.no_grad()
def greedy_decode(
    model: nn.Module, prefix: list[int], eos_id: int, max_length: int
) -> list[int]:
    text = prefix.copy()
    while True:
        scores = model(torch.tensor(text)[None])
        text.append(scores[0, -1].argmax().item())
        if text[-1] == eos_id or len(text) >= max_length:
            return text


# === exercise: sample-next | function: sample_next | kind: subtle | what is wrong: the number is not multiplied by the last running sum; the id is clamped to V - 1 instead, so where the sums end below the number and the last probabilities are 0, a token of probability 0 is drawn
# told: named
# now: named
# says: clamped to the last id
def sample_next(probabilities: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    edges = torch.cumsum(probabilities, dim=-1)
    ids = (edges <= uniform[..., None]).long().sum(dim=-1)
    return ids.clamp(max=probabilities.shape[-1] - 1)


# === exercise: filter-logits | function: filter_logits | kind: plain | what is wrong: the division by the temperature comes last, so top_p chooses its set from the probabilities at temperature 1; shows with top_p and a temperature other than 1
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
        raise ValueError("the temperature has to be above 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k has to be at least 1")
    if top_p is not None and (top_p <= 0 or top_p > 1):
        raise ValueError("top_p has to be in (0, 1]")
    never = float("-inf")
    out = logits
    if top_k is not None:
        k = min(top_k, out.size(-1))
        last = out.sort(dim=-1, descending=True).values[..., k - 1 : k]
        out = torch.where(out < last, never, out)
    if top_p is not None:
        chances, order = out.softmax(dim=-1).sort(dim=-1, descending=True)
        drop = chances.cumsum(dim=-1) - chances >= top_p
        drop = torch.zeros_like(drop).scatter(-1, order, drop)
        out = torch.where(drop, never, out)
    return out / temperature


# === exercise: filter-logits | function: filter_logits | kind: subtle | what is wrong: top-p adds up the probabilities from before top-k instead of those of what top-k has left; right with one of the two alone, wrong together, as for (.5, .25, .15, .1) with top_k=3, top_p=0.8, where three stay instead of two
# told: named
# now: named
# says: top-p before top-k
def filter_logits(
    logits: torch.Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> torch.Tensor:
    bad_k = top_k is not None and top_k < 1
    bad_p = top_p is not None and not 0 < top_p <= 1
    if not temperature > 0 or bad_k or bad_p:
        raise ValueError("temperature > 0, top_k >= 1 and 0 < top_p <= 1, please")
    logits = logits / temperature
    probabilities = torch.softmax(logits, dim=-1)
    if top_k:
        kept = logits.topk(min(top_k, logits.shape[-1]), dim=-1).values
        logits = logits.masked_fill(logits < kept[..., -1:], -math.inf)
    if top_p:
        ranked, order = torch.sort(probabilities, dim=-1, descending=True)
        before = ranked.cumsum(-1) - ranked
        drop = (before >= top_p).gather(-1, order.argsort(-1))
        logits = logits.masked_fill(drop, -math.inf)
    return logits


# === exercise: attend-cached | function: attend_cached | kind: subtle | what is wrong: a causal mask only for the first call and none with a cache; right for all at once and for one token at a time, but of several new tokens fed to a cache the earlier ones see the later ones
# told: named
# now: named
# says: no mask among the new tokens
def attend_cached(
    q: torch.Tensor,
    k_new: torch.Tensor,
    v_new: torch.Tensor,
    cache: dict[str, torch.Tensor] | None,
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    k, v = k_new, v_new
    if cache is not None:
        k = torch.cat((cache["k"], k), dim=-2)
        v = torch.cat((cache["v"], v), dim=-2)
    out = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
    return out, {"k": k, "v": v}


# === exercise: attend-cached | function: attend_cached | kind: double | what is wrong: takes the first T_new rows of the large causal mask instead of the last, so with a cache the new tokens do not see what they may AND writes the joined keys and values into the dict it was given, so the old cache changes
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
        for name, fresh in zip("kv", (k_new, v_new)):
            cache[name] = torch.cat([cache[name], fresh], dim=2)
    t_new, t_all = q.shape[2], cache["k"].shape[2]
    scores = torch.einsum("bhid,bhjd->bhij", q, cache["k"]) / q.shape[3] ** 0.5
    allowed = causal_mask(t_all)[:t_new]
    weights = scores.masked_fill(~allowed, float("-inf")).softmax(dim=-1)
    return torch.einsum("bhij,bhjd->bhid", weights, cache["v"]), cache


# === exercise: beam-search | function: beam_search | kind: plain | what is wrong: the search ends as soon as the first hypothesis is finished, so one that is still alive and would end with a better score is cut short
# told: named
# now: named
# says: stops at the first that ends
@torch.no_grad()
def beam_search(
    model: nn.Module,
    prefix: list[int],
    eos_id: int,
    beam_width: int,
    max_length: int,
    alpha: float = 0.0,
) -> tuple[list[int], float]:
    begun = len(prefix)
    alive, finished = [(0.0, list(prefix))], []
    for _ in range(max_length - begun):
        candidates = []
        for total, ids in alive:
            row = model(torch.tensor([ids]))[0, -1].log_softmax(dim=-1).tolist()
            candidates += [(total + gain, ids + [i]) for i, gain in enumerate(row)]
        kept = sorted(candidates, key=lambda pair: -pair[0])[:beam_width]
        finished = [pair for pair in kept if pair[1][-1] == eos_id]
        alive = [pair for pair in kept if pair[1][-1] != eos_id]
        if finished:
            break
    scored = [(total / (len(ids) - begun) ** alpha, ids) for total, ids in finished + alive]
    score, best = max(scored, key=lambda pair: pair[0])
    return best, score


# === exercise: beam-search | function: beam_search | kind: double | what is wrong: each finished hypothesis takes a place of the beam away for all later rounds, so fewer than beam_width extensions are kept after the first end AND n counts the prefix as well as the new tokens (alpha above 0)
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
    sums, texts = torch.zeros(1), [list(prefix)]
    done = []
    places = beam_width
    while texts and places > 0 and len(texts[0]) < max_length:
        rows = torch.stack(
            [model(torch.tensor([text]))[0, -1].log_softmax(-1) for text in texts]
        )
        totals = (sums[:, None] + rows).flatten()
        values, where = totals.topk(min(places, totals.numel()))
        alive = []
        for value, index in zip(values.tolist(), where.tolist()):
            text = texts[index // rows.shape[1]] + [index % rows.shape[1]]
            if text[-1] == eos_id:
                done.append((value, text))
                places -= 1
            else:
                alive.append((value, text))
        sums = torch.tensor([value for value, _ in alive])
        texts = [text for _, text in alive]
    everything = done + list(zip(sums.tolist(), texts))
    scores = [value / len(text) ** alpha for value, text in everything]
    winner = scores.index(max(scores))
    return everything[winner][1], scores[winner]


# === exercise: bleu | function: bleu | kind: plain | what is wrong: matches are not clipped: every n-gram that occurs in the reference counts, however often it is repeated; Bobby mag Bobby mag Beeren . has p1 = 6/6 instead of 4/6
# told: named
# now: named
# says: counts are not clipped
def bleu(
    hypotheses: list[list[str]], references: list[list[str]], maximum: int = 4
) -> float:
    def grams(tokens, n):
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    logs = []
    for n in range(1, maximum + 1):
        matches = total = 0
        for ours, theirs in zip(hypotheses, references):
            known = set(grams(theirs, n))
            found = grams(ours, n)
            matches += sum(gram in known for gram in found)
            total += len(found)
        if matches == 0:
            return 0.0
        logs.append(math.log(matches / total))
    c, r = sum(map(len, hypotheses)), sum(map(len, references))
    penalty = 1.0 if c > r else math.exp(1 - r / c)
    return 100 * penalty * math.exp(sum(logs) / maximum)


# === exercise: bleu | function: bleu | kind: double | what is wrong: matches are the intersection of two sets, so an n-gram counts once at most even if both sides have it several times AND the brevity penalty is the mean of the penalties of the single sentences instead of one from the summed lengths
# told: useless
# now: named
# says: each n-gram counts once, and a brevity penalty for each sentence
def bleu(
    hypotheses: list[list[str]], references: list[list[str]], maximum: int = 4
) -> float:
    shared, counted = Counter(), Counter()
    penalties = []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        for n in range(1, maximum + 1):
            ours = list(zip(*(hypothesis[i:] for i in range(n))))
            theirs = zip(*(reference[i:] for i in range(n)))
            shared[n] += len(set(ours) & set(theirs))
            counted[n] += len(ours)
        c, r = max(len(hypothesis), 1), len(reference)
        penalties.append(min(1.0, math.exp(1 - r / c)))
    product = 1.0
    for n in range(1, maximum + 1):
        if not shared[n]:
            return 0.0
        product *= shared[n] / counted[n]
    return 100 * sum(penalties) / len(penalties) * product ** (1 / maximum)
