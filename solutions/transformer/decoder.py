"""Decoder: the answers to the exercises of chapter 7.

Generated from solutions/07_decoder.md by `make exercises`; change that file.
"""

import math
from collections import Counter

import torch
from torch import nn


from transformer.attention import (
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
)
from transformer.embeddings import Embedding, tied_logits
from transformer.encoder import Encoder, FeedForward, LayerNorm
from transformer.multi_head_attention import MultiHeadAttention
from transformer.positional_encoding import (
    LearnedPositionalEncoding,
    SinusoidalPositionalEncoding,
)


def decoder_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    """Let each position attend to the real tokens that are not after it.

    Args:
        lengths: (B,), how many real tokens each sequence has, at least 1.
        max_length: T, the width of the padded batch.

    Returns:
        Boolean (B, T, T), True where query i (row) may attend to key j (column).

    Defined in Exercise 7.1 · The decoder's mask.
    """
    # 1. No later position. 2. And no padding.
    return causal_mask(max_length) & padding_mask(lengths, max_length)  # (B, T, T)


def noam_rate(step: int, d_model: int, warmup: int = 4000) -> float:
    """Return the learning rate of a step (Vaswani et al. 2017, section 5.3).

    Args:
        step: the number of the step, from 1.
        d_model: the width d.
        warmup: the step at which the rate is largest.

    Returns:
        The learning rate.

    Raises:
        ValueError: if step is below 1.

    Defined in Exercise 7.2 · A learning rate that warms up.
    """
    # 1. Refuse step 0. 2. The smaller of two curves, scaled.
    if step < 1:
        raise ValueError(f"steps are counted from 1, got {step}")
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def shift_right(
    sequences: list[list[int]], sos_id: int, eos_id: int, pad_id: int = 0
) -> tuple[torch.Tensor, torch.Tensor]:
    """Make what the decoder reads and what it is to predict, padded on the right.

    Args:
        sequences: B lists of ids, without special tokens; they may be empty.
        sos_id: stands before each input.
        eos_id: stands after each label.
        pad_id: fills up.

    Returns:
        Inputs and labels, integers (B, T), T = longest sequence + 1.

    Defined in Exercise 7.3 · One step to the right.
    """
    # 1. The width. 2. The rows of both, padded. 3. Two tensors.
    width = max(len(sequence) for sequence in sequences) + 1
    inputs, labels = [], []
    for sequence in sequences:
        padding = [pad_id] * (width - len(sequence) - 1)
        inputs.append([sos_id, *sequence, *padding])
        labels.append([*sequence, eos_id, *padding])
    return torch.tensor(inputs), torch.tensor(labels)


def sequence_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    pad_id: int = 0,
    smoothing: float = 0.0,
) -> torch.Tensor:
    """Average the cross-entropy over the real labels, with label smoothing.

    Args:
        logits: (B, T, V).
        labels: (B, T), ids; where they equal pad_id nothing is scored.
        pad_id: the id of padding.
        smoothing: the share of the target that is spread over all V classes.

    Returns:
        The mean in nats, shape (); 0 if no label is real. Szegedy et al. 2016.

    Defined in Exercise 7.4 · The loss of a batch of sentences.
    """
    # 1. What is real. 2. Log-softmax. 3. Both parts. 4. The mean over what is real.
    real = labels != pad_id  # (B, T)
    logarithms = torch.log_softmax(logits, dim=-1)  # (B, T, V)
    own = -logarithms.gather(-1, labels.unsqueeze(-1)).squeeze(-1)  # (B, T)
    even = -logarithms.mean(dim=-1)  # (B, T)
    mixed = (1 - smoothing) * own + smoothing * even  # (B, T)
    return mixed.masked_fill(~real, 0.0).sum() / real.sum().clamp(min=1)


class DecoderOnly(nn.Module):
    """A language model: causal self-attention, no encoder, no cross-attention.

    Submodules: embedding, position, blocks. Radford et al. 2018 and 2019.

    Defined in Exercise 7.5 · A decoder without an encoder.
    """

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
        # 1. The three submodules.
        self.embedding = Embedding(vocab_size, d_model)
        self.position = LearnedPositionalEncoding(max_length, d_model, dropout)
        self.blocks = Encoder(
            layers, d_model, heads, d_ff, dropout, norm_first=True, activation="gelu"
        )

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Score the next token at each position: ids (B, T) -> logits (B, T, V)."""
        # 2. Embed, positions. 3. Blocks with a causal mask. 4. Logits.
        mask = causal_mask(ids.shape[-1]).to(ids.device)  # (T, T)
        hidden = self.blocks(self.position(self.embedding(ids)), mask)  # (B, T, d)
        return tied_logits(hidden, self.embedding.weight)  # (B, T, V)


GPT2_NAMES = {  # of a block: GPT-2's name -> ours
    "ln_1.weight": "norm_1.gamma",
    "ln_1.bias": "norm_1.beta",
    "attn.c_proj.weight": "attention.w_o",
    "attn.c_proj.bias": "attention.b_o",
    "ln_2.weight": "norm_2.gamma",
    "ln_2.bias": "norm_2.beta",
    "mlp.c_fc.weight": "feed_forward.w_1",
    "mlp.c_fc.bias": "feed_forward.b_1",
    "mlp.c_proj.weight": "feed_forward.w_2",
    "mlp.c_proj.bias": "feed_forward.b_2",
}


def weights_from_gpt2(state: dict) -> dict:
    """Translate the weights of GPT-2.

    Args:
        state: state dict of a GPT-2, with names such as "h.0.attn.c_attn.weight".

    Returns:
        State dict of a DecoderOnly that computes the same logits.

    Defined in Exercise 7.6 · GPT-2's weights in your model.
    """
    blocks = sum(name.endswith(".ln_1.weight") for name in state)
    root = math.sqrt(state["wte.weight"].shape[1])  # of d_model
    # 1. The tables, the last norm. 2. Names of each block. 3. Its queries, keys, values.
    result = {"embedding.weight": state["wte.weight"] / root}
    result["position.table"] = state["wpe.weight"]
    result["blocks.norm.gamma"] = state["ln_f.weight"] * root
    result["blocks.norm.beta"] = state["ln_f.bias"] * root
    for i in range(blocks):
        new = f"blocks.layers.{i}."
        result |= {new + ours: state[f"h.{i}.{n}"] for n, ours in GPT2_NAMES.items()}
        for letter, kind in (("w", "weight"), ("b", "bias")):
            packed = state[f"h.{i}.attn.c_attn.{kind}"]
            for part, value in zip("qkv", packed.chunk(3, dim=-1), strict=True):
                result[f"{new}attention.{letter}_{part}"] = value
    return result


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention and a feed-forward network.

    Submodules: self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3,
    dropout. Vaswani et al. 2017, section 3.1.

    Defined in Exercise 7.7 · The decoder layer.
    """

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
        # 1. Two attentions, feed-forward network, three norms, dropout.
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
        """Look back, look across, think.

        Args:
            x: (..., T_tgt, d_model).
            memory: (..., T_src, d_model), the encoder's output.
            mask: boolean (T_tgt, T_tgt) or (B, T_tgt, T_tgt); True = may attend.
            memory_mask: boolean (B, 1, T_src), True for real source tokens.

        Returns:
            (..., T_tgt, d_model).
        """
        # 2. Pre-norm, if norm_first. 3. Post-norm otherwise.
        drop = self.dropout
        if self.norm_first:
            x = x + drop(self.self_attention(self.norm_1(x), mask=mask)[0])
            x = x + drop(self.cross_attention(self.norm_2(x), memory, memory_mask)[0])
            return x + drop(self.feed_forward(self.norm_3(x)))
        x = self.norm_1(x + drop(self.self_attention(x, mask=mask)[0]))
        x = self.norm_2(x + drop(self.cross_attention(x, memory, memory_mask)[0]))
        return self.norm_3(x + drop(self.feed_forward(x)))


def decoder_layer_from_torch(state: dict) -> dict:
    """Translate the weights of PyTorch's decoder layer.

    Args:
        state: state dict of an nn.TransformerDecoderLayer.

    Returns:
        State dict of a DecoderLayer that computes the same function.
    """
    result = {}
    for old, new in (("self_attn", "self"), ("multihead_attn", "cross")):
        weights = state[f"{old}.in_proj_weight"].chunk(3)  # three times (d, d)
        biases = state[f"{old}.in_proj_bias"].chunk(3)
        for part, weight, bias in zip("qkv", weights, biases, strict=True):
            result[f"{new}_attention.w_{part}"] = weight.T
            result[f"{new}_attention.b_{part}"] = bias
        result[f"{new}_attention.w_o"] = state[f"{old}.out_proj.weight"].T
        result[f"{new}_attention.b_o"] = state[f"{old}.out_proj.bias"]
    for i in (1, 2):
        result[f"feed_forward.w_{i}"] = state[f"linear{i}.weight"].T
        result[f"feed_forward.b_{i}"] = state[f"linear{i}.bias"]
    for i in (1, 2, 3):
        result[f"norm_{i}.gamma"] = state[f"norm{i}.weight"]
        result[f"norm_{i}.beta"] = state[f"norm{i}.bias"]
    return result


class Decoder(nn.Module):
    """A stack of decoder layers, all with the same memory.

    Submodules: layers (nn.ModuleList of DecoderLayer), norm.

    Defined in Exercise 7.8 · The stack.
    """

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
        # 1. The layers. 2. The norm at the end.
        self.layers = nn.ModuleList(
            DecoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
            for _ in range(layers)
        )
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(
        self,
        x: torch.Tensor,
        memory: torch.Tensor,
        mask: torch.Tensor | None = None,
        memory_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Run the layers in order, all with the same memory and the same masks."""
        # 3. One layer after the other. 4. The norm.
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask)
        return self.norm(x)


class Transformer(nn.Module):
    """Encoder and decoder over one shared vocabulary, with one embedding for all.

    Submodules: embedding, position, encoder, decoder. Vaswani et al. 2017.

    Defined in Exercise 7.9 · The Transformer.
    """

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
        # 1. The four submodules.
        self.embedding = Embedding(vocab_size, d_model)
        self.position = SinusoidalPositionalEncoding(d_model, max_length, dropout)
        self.encoder = Encoder(*sizes)
        self.decoder = Decoder(*sizes)

    def encode(self, source: torch.Tensor) -> torch.Tensor:
        """Read the source: ids (B, T_src) -> memory (B, T_src, d_model)."""
        # 2. The mask. 3. Embed, positions, encoder.
        source_mask = (source != self.pad_id).unsqueeze(1)  # (B, 1, T_src)
        return self.encoder(self.position(self.embedding(source)), source_mask)

    def decode(
        self, target: torch.Tensor, memory: torch.Tensor, source: torch.Tensor
    ) -> torch.Tensor:
        """Read what is written so far, and the memory.

        Args:
            target: (B, T_tgt), ids.
            memory: (B, T_src, d_model), what encode made of the source.
            source: (B, T_src), ids; they tell where the memory is padding.

        Returns:
            Hidden states (B, T_tgt, d_model).
        """
        # 4. Both masks. 5. Embed, positions, decoder.
        real = (target != self.pad_id).unsqueeze(1)  # (B, 1, T_tgt)
        target_mask = real & causal_mask(target.shape[1]).to(target.device)
        memory_mask = (source != self.pad_id).unsqueeze(1)  # (B, 1, T_src)
        x = self.position(self.embedding(target))  # (B, T_tgt, d)
        return self.decoder(x, memory, target_mask, memory_mask)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Score the next token at each position: logits (B, T_tgt, vocab_size)."""
        # 6. Encode, decode, logits.
        hidden = self.decode(target, self.encode(source), source)  # (B, T_tgt, d)
        return tied_logits(hidden, self.embedding.weight)  # (B, T_tgt, V)


def last_real(hidden: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Take what stands at the last real position of each sequence.

    Args:
        hidden: (B, T, ...).
        lengths: (B,), at least 1.

    Returns:
        (B, ...).

    Defined in Exercise 7.11 · The last token that is one.
    """
    # 1. One position for each row.
    rows = torch.arange(len(lengths), device=hidden.device)
    return hidden[rows, lengths - 1]


@torch.no_grad()
def greedy_decode(
    model: nn.Module, prefix: list[int], eos_id: int, max_length: int
) -> list[int]:
    """Append the most probable token until the end token or a length is reached.

    Args:
        model: maps ids (1, t) to logits (1, t, V).
        prefix: ids to begin with, at least one.
        eos_id: the token that ends a text.
        max_length: the largest number of ids, prefix included.

    Returns:
        The ids, prefix included, up to and including eos_id if it was reached.

    Defined in Exercise 7.12 · Write the most probable token.
    """
    # 1. A copy. 2. The last row of logits. 3. Append the largest. 4. Stop.
    ids = list(prefix)
    while len(ids) < max_length:
        logits = model(torch.tensor([ids]))  # (1, t, V)
        ids.append(int(logits[0, -1].argmax()))
        if ids[-1] == eos_id:
            break
    return ids


def sample_next(probabilities: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """Draw ids by inverse transform.

    Args:
        probabilities: (..., V); each row sums to 1, up to rounding.
        uniform: (...), in [0, 1).

    Returns:
        (...), integers: the first id whose running sum exceeds the number.

    Defined in Exercise 7.13 · Draw the next token.
    """
    # 1. Running sums. 2. The number, scaled. 3. Count the sums it has passed.
    cumulative = probabilities.cumsum(dim=-1)  # (..., V)
    threshold = uniform.unsqueeze(-1) * cumulative[..., -1:]  # (..., 1)
    return (cumulative <= threshold).sum(dim=-1)


def filter_logits(
    logits: torch.Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> torch.Tensor:
    """Divide by the temperature, and put -inf where a token is not to be drawn.

    Args:
        logits: (..., V).
        temperature: above 0; small is tame, large is bold.
        top_k: how many tokens to keep; what ties with the last of them stays, too.
        top_p: keep the smallest set whose probability reaches it (Holtzman et al.
            2019), of what top_k has left.

    Returns:
        (..., V).

    Raises:
        ValueError: temperature not above 0, top_k below 1, top_p not in (0, 1].

    Defined in Exercise 7.14 · Temperature, top-k, top-p.
    """
    # 1. Refuse.
    if temperature <= 0 or (top_k is not None and top_k < 1):
        raise ValueError("temperature must be above 0, and top_k at least 1")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError("top_p must be above 0 and at most 1")
    # 2. Temperature. 3. Top-k. 4. Top-p.
    logits = logits / temperature
    if top_k is not None:
        smallest = logits.topk(min(top_k, logits.shape[-1])).values[..., -1:]
        logits = logits.masked_fill(logits < smallest, -math.inf)
    if top_p is not None:
        probabilities, order = logits.softmax(dim=-1).sort(dim=-1, descending=True)
        before = probabilities.cumsum(dim=-1) - probabilities  # (..., V)
        drop = (before >= top_p).gather(-1, order.argsort(dim=-1))
        logits = logits.masked_fill(drop, -math.inf)
    return logits


def attend_cached(
    q: torch.Tensor,
    k_new: torch.Tensor,
    v_new: torch.Tensor,
    cache: dict[str, torch.Tensor] | None,
) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    """Attend from new tokens to the remembered ones and, causally, to each other.

    Args:
        q: (B, heads, T_new, d_k).
        k_new: (B, heads, T_new, d_k).
        v_new: (B, heads, T_new, d_k).
        cache: {"k", "v"} of (B, heads, T_old, d_k), or None at the beginning.

    Returns:
        Output (B, heads, T_new, d_k), and the cache with the new positions appended.

    Defined in Exercise 7.15 · Remember keys and values.
    """
    # 1. Append. 2. The mask. 3. Attend; return the new cache, too.
    k, v = k_new, v_new
    if cache is not None:
        k = torch.cat((cache["k"], k_new), dim=-2)  # (B, heads, T, d_k)
        v = torch.cat((cache["v"], v_new), dim=-2)
    mask = causal_mask(k.shape[-2])[-q.shape[-2] :].to(q.device)  # (T_new, T)
    output, _ = scaled_dot_product_attention(q, k, v, mask)
    return output, {"k": k, "v": v}


@torch.no_grad()
def beam_search(
    model: nn.Module,
    prefix: list[int],
    eos_id: int,
    beam_width: int,
    max_length: int,
    alpha: float = 0.0,
) -> tuple[list[int], float]:
    """Find a continuation of high probability by keeping several beginnings.

    Args:
        model: maps ids (1, t) to logits (1, t, V).
        prefix: ids to begin with; shorter than max_length.
        eos_id: the token that ends a hypothesis.
        beam_width: how many extensions are kept in each round.
        max_length: the largest number of ids, prefix included.
        alpha: the sum of log-probabilities is divided by (new tokens)**alpha.

    Returns:
        The ids of the best hypothesis, prefix included, and its score.

    Defined in Exercise 7.17 · Beam search.
    """
    # 1. Start. 2. Extend all, keep the best. 3. Set aside what has ended.
    # 4. The best score.
    alive, finished = [(0.0, list(prefix))], []
    while alive and len(alive[0][1]) < max_length:
        grown = []
        for total, ids in alive:
            row = model(torch.tensor([ids]))[0, -1].log_softmax(dim=-1).tolist()
            grown += [(total + gain, [*ids, new]) for new, gain in enumerate(row)]
        kept = sorted(grown, key=lambda each: each[0], reverse=True)[:beam_width]
        finished += [each for each in kept if each[1][-1] == eos_id]
        alive = [each for each in kept if each[1][-1] != eos_id]
    rated = [(s / (len(x) - len(prefix)) ** alpha, x) for s, x in finished + alive]
    score, ids = max(rated, key=lambda each: each[0])
    return ids, score


def bleu(
    hypotheses: list[list[str]], references: list[list[str]], maximum: int = 4
) -> float:
    """Compute corpus BLEU without smoothing (Papineni et al. 2002).

    Args:
        hypotheses: token lists.
        references: token lists, one for each hypothesis.
        maximum: the longest n-grams.

    Returns:
        From 0 to 100.

    Defined in Exercise 7.18 · BLEU.
    """
    # 1. Precisions of the whole corpus. 2. Their geometric mean. 3. Brevity penalty.
    mean = 0.0
    for n in range(1, maximum + 1):
        matches = total = 0
        for pair in zip(hypotheses, references, strict=True):
            grams = [zip(*(each[i:] for i in range(n)), strict=False) for each in pair]
            ours, theirs = map(Counter, grams)
            matches, total = matches + (ours & theirs).total(), total + ours.total()
        if matches == 0:
            return 0.0
        mean += math.log(matches / total) / maximum
    c, r = sum(map(len, hypotheses)), sum(map(len, references))
    return 100 * math.exp(mean + min(0.0, 1 - r / c))
