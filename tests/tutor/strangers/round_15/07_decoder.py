# ruff: noqa
# fmt: off

# === exercise: decoder-mask | function: decoder_mask | kind: plain | what is wrong: the padding mask is transposed, so it blanks the rows (queries) of padding instead of the columns (keys): rows of padding come out all False, where the example has 1 1 0
# told: named
# now: named
# says: the rows of padding are empty
def decoder_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    """Let each position attend to the real tokens that are not after it."""
    causal = causal_mask(max_length)  # (T, T)
    # padding is not allowed to do anything
    real = padding_mask(lengths, max_length).transpose(1, 2)  # (B, T, 1)
    return causal & real


# === exercise: decoder-mask | function: decoder_mask | kind: subtle | what is wrong: the width is taken from the longest sentence instead of max_length, so the shape is too small (not (B, T, T)) as soon as no sentence fills the batch's width
# told: named
# now: named
# says: the longest length in place of max_length
def decoder_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    """Let each position attend to the real tokens that are not after it."""
    width = int(lengths.max())
    positions = torch.arange(width, device=lengths.device)
    not_later = positions[None, :] <= positions[:, None]  # (T, T)
    not_padding = positions[None, :] < lengths[:, None]  # (B, T)
    return not_later[None, :, :] & not_padding[:, None, :]


# === exercise: noam-rate | function: noam_rate | kind: plain | what is wrong: the warm-up branch is step/warmup instead of step * warmup**-1.5, so the two curves do not meet at the step w (for d = w = 4 step 1 gives 0.125 instead of 0.0625)
# told: named
# now: named
# says: another power of warmup
def noam_rate(step: int, d_model: int, warmup: int = 4000) -> float:
    """Return the learning rate of a step (Vaswani et al. 2017, section 5.3)."""
    if step < 1:
        raise ValueError(f"steps are counted from 1, not {step}")
    ramp = step / warmup  # from 0 to 1 during the warm-up
    decay = 1 / math.sqrt(step)
    return min(ramp, decay) / math.sqrt(d_model)


# === exercise: noam-rate | function: noam_rate | kind: double | what is wrong: d_model ** -1 / 2 is 1/(2d) by precedence, not 1/sqrt(d), so every rate is too small; steps below 1 are silently taken for step 1 instead of raising a ValueError
# told: named
# now: named
# says: brackets are missing around the exponent
def noam_rate(step: int, d_model: int, warmup: int = 4000) -> float:
    """Return the learning rate of a step (Vaswani et al. 2017, section 5.3)."""
    # schedulers start to count at 0, and 0 ** -0.5 is not defined
    step = max(step, 1)
    rising = step * warmup ** -1.5
    falling = step ** -0.5
    return d_model ** -1 / 2 * min(rising, falling)


# === exercise: shift-right | function: shift_right | kind: subtle | what is wrong: one padded row <sos> ... <eos> is cut by its last and its first column, so the inputs of every sentence that is shorter than the longest still contain <eos> (the second example gives 2 6 3 0 0 0)
# told: named
# now: named
# says: <eos> among the inputs
def shift_right(
    sequences: list[list[int]], sos_id: int, eos_id: int, pad_id: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Make what the decoder reads and what it is to predict, padded on the right."""
    longest = max(len(sequence) for sequence in sequences)
    rows = []
    for sequence in sequences:
        row = [sos_id, *sequence, eos_id]
        row = row + [pad_id] * (longest + 2 - len(row))
        rows.append(row)
    everything = torch.tensor(rows)  # (B, longest + 2)
    inputs = everything[:, :-1]
    labels = everything[:, 1:]
    return inputs, labels


# === exercise: shift-right | function: shift_right | kind: double | what is wrong: labels drop the first token of the sentence (shifted twice, since the sequences have no <sos>), so below <sos> stands the second word; labels are filled up with -100 instead of pad_id
# told: named
# now: named
# says: the labels are shifted twice, and padded with another id
def shift_right(
    sequences: list[list[int]], sos_id: int, eos_id: int, pad_id: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Make what the decoder reads and what it is to predict, padded on the right."""
    batch = len(sequences)
    width = max(map(len, sequences)) + 1
    inputs = torch.full((batch, width), pad_id, dtype=torch.long)
    labels = torch.full((batch, width), -100, dtype=torch.long)  # ignored by the loss
    for i, sequence in enumerate(sequences):
        read = [sos_id] + list(sequence)
        predict = list(sequence[1:]) + [eos_id]  # one step to the left
        inputs[i, : len(read)] = torch.tensor(read)
        labels[i, : len(predict)] = torch.tensor(predict)
    return inputs, labels


# === exercise: sequence-loss | function: sequence_loss | kind: plain | what is wrong: the mean of the sentences' own means instead of one mean over all real labels together, so a short sentence counts as much as a long one (differs when the lengths differ)
# told: named
# now: named
# says: the mean of the sentences' means
def sequence_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    pad_id: int = 0,
    smoothing: float = 0.0,
) -> torch.Tensor:
    """Average the cross-entropy over the real labels, with label smoothing."""
    real = labels != pad_id  # (B, T)
    logs = torch.log_softmax(logits, dim=-1)  # (B, T, V)
    sharp = -logs.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    even = -logs.mean(dim=-1)
    losses = (1 - smoothing) * sharp + smoothing * even
    losses = losses.masked_fill(~real, 0.0)
    of_sentences = losses.sum(dim=1) / real.sum(dim=1).clamp(min=1)
    return of_sentences.mean()


# === exercise: sequence-loss | function: sequence_loss | kind: double | what is wrong: the smoothing is spread over the V - 1 other classes and the label gets only 1 - smoothing, instead of over all V with the label included; the sum is divided by the number of sentences B instead of the number of real labels
# told: named
# now: named
# says: divided by the number of sentences, and spread over the other classes only
def sequence_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    pad_id: int = 0,
    smoothing: float = 0.0,
) -> torch.Tensor:
    """Average the cross-entropy over the real labels, with label smoothing."""
    batch, _, vocabulary = logits.shape
    logs = torch.log_softmax(logits, dim=-1)
    # the soft target: most of it on the label, the rest on all others
    confidence = 1.0 - smoothing
    wanted = torch.full_like(logs, smoothing / (vocabulary - 1))
    wanted.scatter_(-1, labels.unsqueeze(-1), confidence)
    losses = -torch.einsum("btv,btv->bt", wanted, logs)
    losses = losses.masked_fill(labels == pad_id, 0.0)
    return losses.sum() / batch


# === exercise: decoder-only | function: DecoderOnly | kind: subtle | what is wrong: the causal mask is kept from the longest text so far and handed to the blocks without being cut to T, so a shorter text after a longer one gets a mask that is too large (an error)
# told: told
# now: told
# line: 26
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
        """Build the three parts; the blocks are pre-norm with GELU."""
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.position = LearnedPositionalEncoding(max_length, d_model, dropout)
        self.blocks = Encoder(
            layers, d_model, heads, d_ff, dropout, norm_first=True, activation="gelu"
        )
        self.past = None  # the mask, made when it is first needed

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Score the next token at each position: ids (B, T) -> logits (B, T, V)."""
        length = ids.shape[1]
        if self.past is None or self.past.shape[0] < length:
            self.past = causal_mask(length)
        x = self.embedding(ids)
        x = self.position(x)
        x = self.blocks(x, self.past)
        return tied_logits(x, self.embedding.weight)


# === exercise: decoder-only | function: DecoderOnly | kind: double | what is wrong: the embeddings are multiplied by sqrt(d_model) once more, which Embedding does already; the blocks keep the default activation ReLU instead of GELU
# told: told
# now: told
# says: ReLU in place of GELU
# line: 24
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
        """Build the three parts."""
        super().__init__()
        self.scale = math.sqrt(d_model)
        self.embedding = Embedding(vocab_size, d_model)
        self.position = LearnedPositionalEncoding(max_length, d_model, dropout)
        self.blocks = Encoder(layers, d_model, heads, d_ff, dropout, norm_first=True)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Score the next token at each position: ids (B, T) -> logits (B, T, V)."""
        steps = ids.size(1)
        h = self.position(self.scale * self.embedding(ids))
        h = self.blocks(h, causal_mask(steps))
        return tied_logits(h, self.embedding.weight)


# === exercise: gpt2-weights | function: weights_from_gpt2 | kind: subtle | what is wrong: the names of block i are found by startswith("h.i") without the dot behind it, so "h.1" also matches h.10, h.11, ... and block 1 gets the weights of a later block; shows only with more than ten blocks
# told: named
# now: named
# says: h.10 and h.11 taken for h.1
def weights_from_gpt2(state: dict) -> dict:
    """Translate the weights of GPT-2."""
    blocks = sum(name.endswith(".ln_1.weight") for name in state)
    root = math.sqrt(state["wte.weight"].shape[1])  # of d_model
    result = {
        "embedding.weight": state["wte.weight"] / root,
        "position.table": state["wpe.weight"],
        "blocks.norm.gamma": state["ln_f.weight"] * root,
        "blocks.norm.beta": state["ln_f.bias"] * root,
    }
    for i in range(blocks):
        ours = f"blocks.layers.{i}."
        for name, tensor in state.items():
            if not name.startswith(f"h.{i}"):
                continue
            _, _, rest = name.split(".", 2)  # without "h" and the number
            if rest in GPT2_NAMES:
                result[ours + GPT2_NAMES[rest]] = tensor
            elif rest in ("attn.c_attn.weight", "attn.c_attn.bias"):
                kind = "w" if rest.endswith("weight") else "b"
                parts = tensor.chunk(3, dim=-1)
                for letter, part in zip("qkv", parts, strict=True):
                    result[f"{ours}attention.{kind}_{letter}"] = part
    return result


# === exercise: gpt2-weights | function: weights_from_gpt2 | kind: double | what is wrong: the position table is divided by sqrt(d) as the word table is, although nothing multiplies it again; of the last norm only gamma is multiplied by sqrt(d), beta is left as it is
# told: named
# now: named
# says: the positions are divided, too
def weights_from_gpt2(state: dict) -> dict:
    """Translate the weights of GPT-2."""
    blocks = sum(name.endswith(".ln_1.weight") for name in state)
    root = math.sqrt(state["wte.weight"].shape[1])  # of d_model
    result = {}
    # both tables: our model scales them up again
    for old, new in {"wte.weight": "embedding.weight", "wpe.weight": "position.table"}.items():
        result[new] = state[old] / root
    # the last norm: the gain carries the factor, the offset is only added
    result["blocks.norm.gamma"] = root * state["ln_f.weight"]
    result["blocks.norm.beta"] = state["ln_f.bias"]
    for i in range(blocks):
        old_block, new_block = f"h.{i}", f"blocks.layers.{i}"
        for old, new in GPT2_NAMES.items():
            result[f"{new_block}.{new}"] = state[f"{old_block}.{old}"]
        w_q, w_k, w_v = state[f"{old_block}.attn.c_attn.weight"].chunk(3, dim=-1)
        b_q, b_k, b_v = state[f"{old_block}.attn.c_attn.bias"].chunk(3, dim=-1)
        packed = {"w_q": w_q, "w_k": w_k, "w_v": w_v, "b_q": b_q, "b_k": b_k, "b_v": b_v}
        for short, tensor in packed.items():
            result[f"{new_block}.attention.{short}"] = tensor
    return result


# === exercise: decoder-layer | function: DecoderLayer | kind: plain | what is wrong: in pre-norm the stream itself is replaced by its normalised version before each branch, so the residual connection adds the branch to N(x) instead of to x
# told: named
# now: named
# says: residual from the normalised x
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
        """Build the three sub-layers, a norm for each, and dropout."""
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
        """Look back, look across, think."""
        # look back
        if self.norm_first:
            x = self.norm_1(x)
        found, _ = self.self_attention(x, mask=mask)
        x = x + self.dropout(found)
        if not self.norm_first:
            x = self.norm_1(x)
        # look across
        if self.norm_first:
            x = self.norm_2(x)
        found, _ = self.cross_attention(x, memory, memory_mask)
        x = x + self.dropout(found)
        if not self.norm_first:
            x = self.norm_2(x)
        # think
        if self.norm_first:
            x = self.norm_3(x)
        x = x + self.dropout(self.feed_forward(x))
        if not self.norm_first:
            x = self.norm_3(x)
        return x


# === exercise: decoder-layer | function: DecoderLayer | kind: subtle | what is wrong: the result of cross-attention is added without dropout, in both orders; shows only in training mode with dropout above 0
# told: named
# now: named
# says: dropout not on all branches
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
        """Build the three sub-layers, a norm for each, and dropout."""
        super().__init__()
        self.norm_first = norm_first
        self.self_attention = MultiHeadAttention(d_model, heads)
        self.cross_attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm_1, self.norm_2, self.norm_3 = (LayerNorm(d_model) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def look_back(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """Self-attention and its dropout."""
        output, _ = self.self_attention(x, x, mask)
        return self.dropout(output)

    def look_across(
        self, x: torch.Tensor, memory: torch.Tensor, mask: torch.Tensor | None
    ) -> torch.Tensor:
        """Cross-attention: queries from x, keys and values from the memory."""
        output, _ = self.cross_attention(x, memory, mask)
        return output

    def think(self, x: torch.Tensor) -> torch.Tensor:
        """Feed-forward network and its dropout."""
        return self.dropout(self.feed_forward(x))

    def forward(
        self,
        x: torch.Tensor,
        memory: torch.Tensor,
        mask: torch.Tensor | None = None,
        memory_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Look back, look across, think."""
        if self.norm_first:
            x = x + self.look_back(self.norm_1(x), mask)
            x = x + self.look_across(self.norm_2(x), memory, memory_mask)
            return x + self.think(self.norm_3(x))
        x = self.norm_1(x + self.look_back(x, mask))
        x = self.norm_2(x + self.look_across(x, memory, memory_mask))
        return self.norm_3(x + self.think(x))


# === exercise: decoder | function: Decoder | kind: plain | what is wrong: the last norm is always a LayerNorm, in post-norm too, where it has to be nn.Identity() (extra parameters, and the output is normalised twice)
# told: named
# now: named
# says: final norm in post-norm
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
        """Build the layers and the norm at the end."""
        super().__init__()
        stack = []
        for _ in range(layers):
            stack.append(
                DecoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
            )
        self.layers = nn.ModuleList(stack)
        self.norm = LayerNorm(d_model)

    def forward(
        self,
        x: torch.Tensor,
        memory: torch.Tensor,
        mask: torch.Tensor | None = None,
        memory_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Run the layers in order, all with the same memory and the same masks."""
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask)
        return self.norm(x)


# === exercise: decoder | function: Decoder | kind: double | what is wrong: one single layer is repeated, so all layers share the same weights; the last norm is applied inside the loop after every layer instead of once at the end (shows in pre-norm)
# told: named
# now: named
# says: one layer, repeated
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
        """Build the layers; norm is a LayerNorm in pre-norm, nn.Identity otherwise."""
        super().__init__()
        layer = DecoderLayer(
            d_model,
            heads,
            d_ff,
            dropout=dropout,
            norm_first=norm_first,
            activation=activation,
        )
        self.layers = nn.ModuleList(layer for _ in range(layers))
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(
        self,
        x: torch.Tensor,
        memory: torch.Tensor,
        mask: torch.Tensor | None = None,
        memory_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Run the layers in order, all with the same memory and the same masks."""
        hidden = x
        for layer in self.layers:
            hidden = layer(hidden, memory, mask=mask, memory_mask=memory_mask)
            hidden = self.norm(hidden)
        return hidden


# === exercise: transformer | function: Transformer | kind: subtle | what is wrong: the decoder's mask is only causal and does not hide padding in the target; with padding on the right only the rows of padding change, with padding before a real token the real rows too
# told: named
# now: named
# says: padding of the target is not hidden
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
        """Build the four parts; encoder and decoder have `layers` layers each."""
        super().__init__()
        self.pad_id = pad_id
        sizes = (layers, d_model, heads, d_ff, dropout, norm_first, activation)
        self.embedding = Embedding(vocab_size, d_model)
        self.position = SinusoidalPositionalEncoding(d_model, max_length, dropout)
        self.encoder = Encoder(*sizes)
        self.decoder = Decoder(*sizes)

    def real(self, ids: torch.Tensor) -> torch.Tensor:
        """Where the keys are no padding, (B, 1, T)."""
        return (ids != self.pad_id).unsqueeze(1)

    def vectors(self, ids: torch.Tensor) -> torch.Tensor:
        """Embed and add positions."""
        return self.position(self.embedding(ids))

    def encode(self, source: torch.Tensor) -> torch.Tensor:
        """Read the source: ids (B, T_src) -> memory (B, T_src, d_model)."""
        return self.encoder(self.vectors(source), self.real(source))

    def decode(
        self, target: torch.Tensor, memory: torch.Tensor, source: torch.Tensor
    ) -> torch.Tensor:
        """Read what is written so far, and the memory."""
        # padding is at the end, where a causal mask never looks
        mask = causal_mask(target.shape[1])
        return self.decoder(self.vectors(target), memory, mask, self.real(source))

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Score the next token at each position: logits (B, T_tgt, vocab_size)."""
        hidden = self.decode(target, self.encode(source), source)
        return tied_logits(hidden, self.embedding.weight)


# === exercise: transformer | function: Transformer | kind: double | what is wrong: the logits come from an nn.Linear with a table of its own instead of tied_logits with the embedding's table; decode hands no memory_mask to the decoder, so cross-attention looks at padding of the source
# told: named
# now: named
# says: more than one table
class Transformer(nn.Module):
    """Encoder and decoder over one shared vocabulary."""

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
        """Build the parts; encoder and decoder have `layers` layers each."""
        super().__init__()
        self.pad_id = pad_id
        sizes = (layers, d_model, heads, d_ff, dropout, norm_first, activation)
        self.embedding = Embedding(vocab_size, d_model)
        self.position = SinusoidalPositionalEncoding(d_model, max_length, dropout)
        self.encoder = Encoder(*sizes)
        self.decoder = Decoder(*sizes)
        self.to_vocabulary = nn.Linear(d_model, vocab_size, bias=False)

    def encode(self, source: torch.Tensor) -> torch.Tensor:
        """Read the source: ids (B, T_src) -> memory (B, T_src, d_model)."""
        source_mask = (source != self.pad_id).unsqueeze(1)
        x = self.embedding(source)
        x = self.position(x)
        return self.encoder(x, source_mask)

    def decode(
        self, target: torch.Tensor, memory: torch.Tensor, source: torch.Tensor
    ) -> torch.Tensor:
        """Read what is written so far, and the memory (already masked by encode)."""
        look_ahead = causal_mask(target.size(1))
        target_mask = (target != self.pad_id).unsqueeze(1) & look_ahead
        x = self.embedding(target)
        x = self.position(x)
        return self.decoder(x, memory, target_mask)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Score the next token at each position: logits (B, T_tgt, vocab_size)."""
        memory = self.encode(source)
        hidden = self.decode(target, memory, source)
        return self.to_vocabulary(hidden)


# === exercise: bug-hunt | function: find_bugs | kind: plain | what is wrong: the lines 11 and 13 have each other's names: line 11 appends the scores of all positions again, line 13 feeds the model's own predictions
# told: named
# now: named
# says: two lines have each other's names
def find_bugs() -> dict[int, str]:
    """Name the bug of each broken line."""
    return {
        3: "no <eos>",
        5: "pointless empty leaf",
        6: "starts from the source",
        7: "counts the source",
        8: "the source never gets in",
        9: "a name never assigned",
        10: "softmax before the loss",
        11: "own predictions as input",
        12: "argmax over positions",
        13: "all positions appended again",  # the text doubles in every turn
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
    """Train a translator on each batch once, by gradient descent."""
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    losses = []
    for source, inputs, labels in batches:
        loss = sequence_loss(model(source, inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


# === exercise: bug-hunt | function: repaired_epoch | kind: double | what is wrong: inputs and labels, which shift_right has shifted already, are shifted once more ([:, :-1] and [:, 1:]), so each position is to predict the token after the next; the losses are kept as tensors with their graph instead of floats
# told: named
# now: named
# says: tensors in place of numbers
def find_bugs() -> dict[int, str]:
    """Name the bug of each broken line."""
    bugs = {}
    # the preparation
    bugs[3] = "no <eos>"
    bugs[5] = "pointless empty leaf"
    bugs[6] = "starts from the source"
    # the inner loop
    bugs[7] = "counts the source"
    bugs[8] = "the source never gets in"
    bugs[9] = "a name never assigned"
    bugs[10] = "softmax before the loss"
    bugs[11] = "all positions appended again"
    bugs[12] = "argmax over positions"
    bugs[13] = "own predictions as input"
    # loss and step
    bugs[14] = "multiplied by the mask"
    bugs[15] = "labels not shifted"
    bugs[16] = "classes on the wrong axis"
    bugs[17] = "a tab among spaces"
    bugs[18] = "gradients never cleared"
    return bugs


def repaired_epoch(
    model: nn.Module,
    batches: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]],
    learning_rate: float,
) -> list[float]:
    """Train a translator on each batch once, by gradient descent."""
    sgd = torch.optim.SGD(model.parameters(), lr=learning_rate)
    history = []
    for source, inputs, labels in batches:
        # teacher forcing: read all but the last, predict all but the first
        logits = model(source, inputs[:, :-1])
        loss = sequence_loss(logits, labels[:, 1:], pad_id=0)
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        history.append(loss)
    return history


# === exercise: last-real | function: last_real | kind: plain | what is wrong: one column, that of the longest sentence, is taken for all rows, so every shorter sentence gives what was computed from padding (the example gives (12, 22))
# told: named
# now: named
# says: one length for all sentences
def last_real(hidden: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Take what stands at the last real position of each sequence."""
    # positions start at 0
    position = int(lengths.max()) - 1
    return hidden[:, position]


# === exercise: last-real | function: last_real | kind: subtle | what is wrong: squeeze() without an axis also drops a batch axis of size 1 (and a feature axis of size 1), so a batch of one gives (d,) instead of (1, d)
# told: told
# now: named
# says: squeeze takes the axis of the batch away
def last_real(hidden: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Take what stands at the last real position of each sequence."""
    trailing = hidden.shape[2:]
    index = (lengths - 1).view(-1, 1, *[1] * len(trailing))  # (B, 1, 1, ...)
    index = index.expand(-1, 1, *trailing)  # (B, 1, ...)
    return hidden.gather(1, index).squeeze()


# === exercise: greedy-decode | function: greedy_decode | kind: plain | what is wrong: max_length is taken for the number of new tokens instead of the number of all ids, prefix included, so without <eos> the text is too long by the length of the prefix
# told: named
# now: named
# says: max_length counts the new tokens alone
@torch.no_grad()
def greedy_decode(
    model: nn.Module, prefix: list[int], eos_id: int, max_length: int
) -> list[int]:
    """Append the most probable token until the end token or a length is reached."""
    ids = list(prefix)
    for _ in range(max_length):
        logits = model(torch.tensor([ids]))  # (1, t, V)
        best = int(logits[0, -1].argmax())
        ids.append(best)
        if best == eos_id:
            break
    return ids


# === exercise: greedy-decode | function: greedy_decode | kind: double | what is wrong: the model is given only the last token instead of everything written so far (shows when the model looks further back, such as at the first token); the loop breaks before eos_id is appended, so it is missing from the result
# told: shown
# now: named
# says: only the last token is read, and the end token is left out
@torch.no_grad()
def greedy_decode(
    model: nn.Module, prefix: list[int], eos_id: int, max_length: int
) -> list[int]:
    """Append the most probable token until the end token or a length is reached."""
    text = [*prefix]
    current = text[-1]
    while len(text) < max_length:
        scores = model(torch.tensor([[current]]))  # the rest has been read before
        current = scores[0, -1].argmax().item()
        if current == eos_id:
            break
        text.append(current)
    return text


# === exercise: sample-next | function: sample_next | kind: plain | what is wrong: counts the intervals that begin at or before the number but does not subtract 1, so every id is one too large (.1 -> 1 in the example, and the last token gives V)
# told: named
# now: named
# says: one id too far
def sample_next(probabilities: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """Draw ids by inverse transform."""
    ends = probabilities.cumsum(dim=-1)  # (..., V)
    # where each token's interval begins: 0, p_0, p_0 + p_1, ...
    starts = torch.cat((torch.zeros_like(ends[..., :1]), ends[..., :-1]), dim=-1)
    number = uniform.unsqueeze(-1) * ends[..., -1:]  # the last sum may not be 1
    return (starts <= number).sum(dim=-1)


# === exercise: sample-next | function: sample_next | kind: subtle | what is wrong: instead of multiplying the number by the last sum, a number beyond it is clamped to the last id; when the sums end below 1 by rounding and the last token has the probability 0, that token is drawn by a number just below 1
# told: named
# now: named
# says: clamped to the last id
def sample_next(probabilities: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """Draw ids by inverse transform."""
    sums = probabilities.cumsum(dim=-1).contiguous()
    wanted = uniform.unsqueeze(-1).contiguous()
    # right=True: the first position whose sum is larger than the number
    ids = torch.searchsorted(sums, wanted, right=True).squeeze(-1)
    # the last sum may be 0.9999999: do not run over the end
    return ids.clamp(max=probabilities.shape[-1] - 1)


# === exercise: filter-logits | function: filter_logits | kind: subtle | what is wrong: top-k keeps exactly k tokens by their indices, so of several tokens that tie with the k-th largest only some stay, although all that equal it should
# told: named
# now: named
# says: ties are cut
def filter_logits(
    logits: torch.Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> torch.Tensor:
    """Divide by the temperature, and put -inf where a token is not to be drawn."""
    if temperature <= 0:
        raise ValueError("the temperature must be above 0")
    if top_k is not None and top_k < 1:
        raise ValueError("top_k must be at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p must be in (0, 1]")
    never = float("-inf")
    logits = logits / temperature
    if top_k is not None:
        k = min(top_k, logits.shape[-1])
        values, indices = logits.topk(k, dim=-1)
        logits = torch.full_like(logits, never).scatter(-1, indices, values)
    if top_p is not None:
        order = logits.argsort(dim=-1, descending=True)
        chances = logits.softmax(dim=-1).gather(-1, order)
        before = chances.cumsum(dim=-1) - chances
        drop = (before >= top_p).gather(-1, order.argsort(dim=-1))
        logits = logits.masked_fill(drop, never)
    return logits


# === exercise: filter-logits | function: filter_logits | kind: double | what is wrong: the temperature divides at the end, so top-p chooses by the probabilities without temperature (temperature=0.5, top_p=0.7 keeps two tokens instead of one); temperature 0 is answered with the most probable token alone instead of a ValueError
# told: named
# now: named
# says: top-p without the temperature
def filter_logits(
    logits: torch.Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> torch.Tensor:
    """Divide by the temperature, and put -inf where a token is not to be drawn."""
    if temperature < 0:
        raise ValueError(f"temperature {temperature} is negative")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k {top_k} is below 1")
    if top_p is not None and (top_p <= 0 or top_p > 1):
        raise ValueError(f"top_p {top_p} is not in (0, 1]")

    if temperature == 0:  # the limit: greedy
        best = logits.argmax(dim=-1, keepdim=True)
        greedy = torch.full_like(logits, -torch.inf)
        return greedy.scatter(-1, best, 0.0)

    if top_k is not None:
        smallest = logits.topk(min(top_k, logits.size(-1)), dim=-1).values[..., -1:]
        logits = torch.where(logits < smallest, -torch.inf, logits)

    if top_p is not None:
        probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
        before = probabilities.cumsum(dim=-1) - probabilities
        drop = before >= top_p
        drop = torch.zeros_like(drop).scatter(-1, order, drop)  # back into place
        logits = torch.where(drop, -torch.inf, logits)

    return logits / temperature


# === exercise: attend-cached | function: attend_cached | kind: plain | what is wrong: is_causal=True aligns the mask at the upper left, which are the first rows of the causal mask instead of the last: with a cache new token i sees only the keys 0 to i instead of everything up to T_old + i
# told: named
# now: named
# says: the first rows of the mask
def attend_cached(
    q: torch.Tensor,
    k_new: torch.Tensor,
    v_new: torch.Tensor,
    cache: dict[str, torch.Tensor] | None,
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Attend from new tokens to the remembered ones and, causally, to each other."""
    if cache is None:
        keys, values = k_new, v_new
    else:
        keys = torch.cat((cache["k"], k_new), dim=-2)
        values = torch.cat((cache["v"], v_new), dim=-2)
    output = nn.functional.scaled_dot_product_attention(q, keys, values, is_causal=True)
    return output, {"k": keys, "v": values}


# === exercise: attend-cached | function: attend_cached | kind: subtle | what is wrong: the new keys and values are written into the dict that was given, so the caller's old cache has grown, too; shows only when the old cache is used again, as by a second hypothesis of a beam
# told: named
# now: named
# says: changes its argument in place
def attend_cached(
    q: torch.Tensor,
    k_new: torch.Tensor,
    v_new: torch.Tensor,
    cache: dict[str, torch.Tensor] | None,
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Attend from new tokens to the remembered ones and, causally, to each other."""
    if cache is None:
        cache = {"k": k_new, "v": v_new}
    else:
        for name, new in (("k", k_new), ("v", v_new)):
            cache[name] = torch.cat([cache[name], new], dim=2)
    total = cache["k"].shape[2]
    seen = total - q.shape[2]  # T_old
    mask = causal_mask(total)[seen:]  # (T_new, T)
    output, _ = scaled_dot_product_attention(q, cache["k"], cache["v"], mask)
    return output, cache


# === exercise: beam-search | function: beam_search | kind: plain | what is wrong: the logits themselves are added up instead of log-probabilities (no log-softmax), so sums of different hypotheses cannot be compared and the score is no logarithm of a probability; shows whenever the rows of logits are not normalised
# told: named
# now: named
# says: logits in place of log-probabilities
@torch.no_grad()
def beam_search(
    model: nn.Module,
    prefix: list[int],
    eos_id: int,
    beam_width: int,
    max_length: int,
    alpha: float = 0.0,
) -> tuple[list[int], float]:
    """Find a continuation of high probability by keeping several beginnings."""
    alive = [(0.0, list(prefix))]
    finished = []
    while alive and len(alive[0][1]) < max_length:
        candidates = []
        for total, ids in alive:
            # as in greedy_decode no softmax is needed: the order stays the same
            row = model(torch.tensor([ids]))[0, -1].tolist()
            for token, value in enumerate(row):
                candidates.append((total + value, [*ids, token]))
        candidates.sort(key=lambda pair: pair[0], reverse=True)
        alive = []
        for total, ids in candidates[:beam_width]:
            if ids[-1] == eos_id:
                finished.append((total, ids))
            else:
                alive.append((total, ids))

    def score(pair: tuple[float, list[int]]) -> float:
        total, ids = pair
        return total / (len(ids) - len(prefix)) ** alpha

    best = max(finished + alive, key=score)
    return best[1], score(best)


# === exercise: beam-search | function: beam_search | kind: subtle | what is wrong: the living hypotheses are considered only if none has finished, so one that is still alive at max_length with a better score than every finished one is not returned
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
    """Find a continuation of high probability by keeping several beginnings."""
    begun = len(prefix)
    beams: list[tuple[float, list[int]]] = [(0.0, list(prefix))]
    done: list[tuple[float, list[int]]] = []
    for _ in range(max_length - begun):
        if not beams:
            break
        grown = []
        for logp, ids in beams:
            logits = model(torch.tensor(ids).unsqueeze(0))[0, -1]
            row = torch.log_softmax(logits, dim=-1).tolist()
            grown += [(logp + row[i], ids + [i]) for i in range(len(row))]
        best_first = sorted(grown, key=lambda beam: -beam[0])[:beam_width]
        done += [beam for beam in best_first if beam[1][-1] == eos_id]
        beams = [beam for beam in best_first if beam[1][-1] != eos_id]
    # complete sentences; unfinished ones only if there is nothing else
    pool = done if done else beams
    scored = [(logp / (len(ids) - begun) ** alpha, ids) for logp, ids in pool]
    score, ids = max(scored, key=lambda item: item[0])
    return ids, score


# === exercise: beam-search | function: beam_search | kind: double | what is wrong: every extension by eos_id is set aside as finished before the cut, and the beam_width best are chosen among the others only, so sentences that should have been pruned can win and finished ones take no place in the beam; the sum is divided by ((5 + n)/6)**alpha (the penalty of Google's translator) instead of n**alpha
# told: named
# now: named
# says: finished ones take no place in the beam, and another length penalty
@torch.no_grad()
def beam_search(
    model: nn.Module,
    prefix: list[int],
    eos_id: int,
    beam_width: int,
    max_length: int,
    alpha: float = 0.0,
) -> tuple[list[int], float]:
    """Find a continuation of high probability by keeping several beginnings."""

    def length_penalty(ids: list[int]) -> float:
        new = len(ids) - len(prefix)
        return ((5 + new) / 6) ** alpha

    alive, finished = [(0.0, list(prefix))], []
    length = len(prefix)
    while alive and length < max_length:
        extended = []
        for total, ids in alive:
            row = model(torch.tensor([ids]))[0, -1].log_softmax(dim=-1).tolist()
            for token, logp in enumerate(row):
                hypothesis = (total + logp, [*ids, token])
                if token == eos_id:
                    finished.append(hypothesis)
                else:
                    extended.append(hypothesis)
        extended.sort(key=lambda hypothesis: hypothesis[0], reverse=True)
        alive = extended[:beam_width]
        length += 1

    scores = [(total / length_penalty(ids), ids) for total, ids in finished + alive]
    best_score, best_ids = max(scores, key=lambda entry: entry[0])
    return best_ids, best_score


# === exercise: bleu | function: bleu | kind: plain | what is wrong: the matches are divided by the number of n-grams of the references (a recall) instead of those of the hypotheses (the first example gives p_1 = 4/5 instead of 4/6)
# told: named
# now: named
# says: recall in place of precision
def bleu(
    hypotheses: list[list[str]], references: list[list[str]], maximum: int = 4
) -> float:
    """Compute corpus BLEU without smoothing (Papineni et al. 2002)."""

    def grams(tokens: list[str], n: int) -> Counter:
        return Counter(zip(*(tokens[i:] for i in range(n))))

    mean = 0.0
    for n in range(1, maximum + 1):
        matches = total = 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            ours, theirs = grams(hypothesis, n), grams(reference, n)
            matches += sum((ours & theirs).values())
            total += sum(theirs.values())
        if matches == 0:
            return 0.0
        mean += math.log(matches / total) / maximum
    c = sum(map(len, hypotheses))
    r = sum(map(len, references))
    penalty = 1.0 if c > r else math.exp(1 - r / c)
    return 100 * penalty * math.exp(mean)


# === exercise: bleu | function: bleu | kind: subtle | what is wrong: orders for which the hypotheses have no n-grams are left out and the mean is taken over the remaining ones, instead of returning 0; shows only when every hypothesis has fewer than N tokens
# told: named
# now: named
# says: lengths without n-grams are skipped
def bleu(
    hypotheses: list[list[str]], references: list[list[str]], maximum: int = 4
) -> float:
    """Compute corpus BLEU without smoothing (Papineni et al. 2002)."""
    logarithms = []
    for n in range(1, maximum + 1):
        matches, everything = 0, 0
        for hypothesis, reference in zip(hypotheses, references):
            ours = Counter(
                tuple(hypothesis[i : i + n]) for i in range(len(hypothesis) - n + 1)
            )
            theirs = Counter(
                tuple(reference[i : i + n]) for i in range(len(reference) - n + 1)
            )
            for gram, count in ours.items():
                matches += min(count, theirs[gram])
            everything += sum(ours.values())
        if everything == 0:
            break  # no sentence is as long as this
        if matches == 0:
            return 0.0
        logarithms.append(math.log(matches / everything))
    if not logarithms:
        return 0.0
    c = sum(len(hypothesis) for hypothesis in hypotheses)
    r = sum(len(reference) for reference in references)
    penalty = 1.0
    if c <= r:
        penalty = math.exp(1 - r / c)
    return 100 * penalty * math.exp(sum(logarithms) / len(logarithms))


# === exercise: bleu | function: bleu | kind: double | what is wrong: the counts are not clipped: an n-gram of the hypothesis counts as often as it stands there if the reference has it at all (the first example gives p_1 = 6/6); the brevity penalty is the ratio min(1, c/r) instead of exp(1 - r/c)
# told: named
# now: named
# says: counts are not clipped, and a ratio in place of the exponential
def bleu(
    hypotheses: list[list[str]], references: list[list[str]], maximum: int = 4
) -> float:
    """Compute corpus BLEU without smoothing (Papineni et al. 2002)."""

    def ngrams(tokens: list[str], n: int) -> list[tuple[str, ...]]:
        return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]

    product = 1.0
    for n in range(1, maximum + 1):
        hits = 0
        total = 0
        for ours, theirs in zip(hypotheses, references, strict=True):
            known = set(ngrams(theirs, n))
            mine = ngrams(ours, n)
            hits += sum(gram in known for gram in mine)
            total += len(mine)
        if hits == 0:
            return 0.0
        product *= hits / total
    written = sum(len(tokens) for tokens in hypotheses)
    wanted = sum(len(tokens) for tokens in references)
    brevity = min(1.0, written / wanted)
    return 100 * brevity * product ** (1 / maximum)
