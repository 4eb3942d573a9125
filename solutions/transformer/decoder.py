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
from transformer.multi_head_attention import MultiHeadAttention, attention_from_torch
from transformer.positional_encoding import (
    LearnedPositionalEncoding,
    SinusoidalPositionalEncoding,
)


def decoder_mask(lengths: torch.Tensor, max_length: int) -> torch.Tensor:
    """Let each position attend to the real tokens that are not after it."""
    return causal_mask(max_length) & padding_mask(lengths, max_length)  # (B, T, T)


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention and a feed-forward network.

    Submodules: self_attention, cross_attention, feed_forward, norm_1, norm_2, norm_3,
    dropout.
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
        drop, norms = self.dropout, (self.norm_1, self.norm_2, self.norm_3)
        branches = (
            lambda y: self.self_attention(y, mask=mask)[0],
            lambda y: self.cross_attention(y, memory, memory_mask)[0],
            self.feed_forward,
        )
        for norm, branch in zip(norms, branches, strict=True):
            if self.norm_first:
                x = x + drop(branch(norm(x)))
            else:
                x = norm(x + drop(branch(x)))
        return x


def decoder_layer_from_torch(state: dict) -> dict:
    """Translate the weights of PyTorch's decoder layer."""
    result = {}
    for theirs, ours in (
        ("self_attn.", "self_attention."),
        ("multihead_attn.", "cross_attention."),
    ):
        inner = {
            k.removeprefix(theirs): v for k, v in state.items() if k.startswith(theirs)
        }
        result |= {ours + k: v for k, v in attention_from_torch(inner).items()}
    for i in (1, 2):
        result[f"feed_forward.w_{i}"] = state[f"linear{i}.weight"].T
        result[f"feed_forward.b_{i}"] = state[f"linear{i}.bias"]
    for i in (1, 2, 3):
        result[f"norm_{i}.gamma"] = state[f"norm{i}.weight"]
        result[f"norm_{i}.beta"] = state[f"norm{i}.bias"]
    return result


class Decoder(nn.Module):
    """A stack of decoder layers; submodules layers (nn.ModuleList), norm."""

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
            DecoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
            for _ in range(layers)
        )
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(self, x, memory, mask=None, memory_mask=None):
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask)
        return self.norm(x)


class Transformer(nn.Module):
    """Encoder and decoder over one shared vocabulary, with one tied embedding."""

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
        sizes = layers, d_model, heads, d_ff, dropout, norm_first, activation
        self.embedding = Embedding(vocab_size, d_model)
        self.position = SinusoidalPositionalEncoding(d_model, max_length, dropout)
        self.encoder = Encoder(*sizes)
        self.decoder = Decoder(*sizes)

    def encode(self, source):
        mask = (source != self.pad_id).unsqueeze(1)  # (B, 1, T_src)
        return self.encoder(self.position(self.embedding(source)), mask)

    def decode(self, target, memory, source):
        memory_mask = (source != self.pad_id).unsqueeze(1)  # (B, 1, T_src)
        real = (target != self.pad_id).unsqueeze(1)  # (B, 1, T_tgt)
        mask = causal_mask(target.shape[1]).to(real.device) & real  # (B, T_tgt, T_tgt)
        x = self.position(self.embedding(target))
        return self.decoder(x, memory, mask, memory_mask)

    def forward(self, source, target):
        hidden = self.decode(target, self.encode(source), source)
        return tied_logits(hidden, self.embedding.weight)


def shift_right(sequences, sos_id, eos_id, pad_id=0):
    """Make what the decoder reads and what it is to predict, padded."""
    width = max(len(sequence) for sequence in sequences) + 1
    rows_in, rows_out = [], []
    for sequence in sequences:
        padding = [pad_id] * (width - len(sequence) - 1)
        rows_in.append([sos_id, *sequence, *padding])
        rows_out.append([*sequence, eos_id, *padding])
    return torch.tensor(rows_in), torch.tensor(rows_out)


def sequence_loss(logits, labels, pad_id=0, smoothing=0.0):
    """Average the cross-entropy over the real labels, with label smoothing."""
    real = labels != pad_id
    logarithms = torch.log_softmax(logits[real], dim=-1)  # (n, V)
    own = logarithms.gather(-1, labels[real].unsqueeze(-1)).squeeze(-1)  # (n,)
    uniform = logarithms.mean(dim=-1)  # (n,)
    losses = -(1 - smoothing) * own - smoothing * uniform
    return losses.sum() / max(1, losses.numel())


def noam_rate(step: int, d_model: int, warmup: int = 4000) -> float:
    """Return the learning rate of a step, counted from 1."""
    if step < 1:
        raise ValueError(f"steps are counted from 1, got {step}")
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def greedy_decode(model, prefix, eos_id, max_length):
    """Append the most probable token until <eos> or max_length."""
    ids = list(prefix)
    with torch.no_grad():
        while len(ids) < max_length:
            logits = model(torch.tensor([ids]))  # (1, t, V)
            ids.append(int(logits[0, -1].argmax()))
            if ids[-1] == eos_id:
                break
    return ids


def filter_logits(logits, temperature=1.0, top_k=None, top_p=None):
    """Divide by the temperature and put -inf where a token is not to be drawn."""
    if temperature <= 0:
        raise ValueError(f"temperature must be positive, got {temperature}")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be at least 1, got {top_k}")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must be in (0, 1], got {top_p}")
    logits = logits / temperature
    if top_k is not None:
        kth = logits.topk(min(top_k, logits.shape[-1])).values[..., -1:]
        logits = logits.masked_fill(logits < kth, -math.inf)
    if top_p is not None:
        probabilities, order = torch.sort(
            logits.softmax(dim=-1), dim=-1, descending=True, stable=True
        )
        drop = probabilities.cumsum(-1) - probabilities >= top_p
        logits = logits.masked_fill(drop.gather(-1, order.argsort(-1)), -math.inf)
    return logits


def sample_next(probabilities, uniform):
    """Draw by inverse transform: the first id whose cumulative sum exceeds uniform."""
    cumulative = probabilities.cumsum(dim=-1)  # (..., V)
    threshold = uniform.unsqueeze(-1) * cumulative[..., -1:]  # (..., 1)
    return (cumulative <= threshold).sum(dim=-1)


def beam_search(model, prefix, eos_id, beam_width, max_length, alpha=0.0):
    """Keep the beam_width best beginnings; return the best hypothesis, its score."""
    alive, finished = [(0.0, list(prefix))], []
    while alive and len(alive[0][1]) < max_length:
        grown = []
        for total, ids in alive:
            with torch.no_grad():
                row = model(torch.tensor([ids]))[0, -1].log_softmax(-1)
            grown += [(total + p, [*ids, i]) for i, p in enumerate(row.tolist())]
        best = sorted(grown, key=lambda each: -each[0])[:beam_width]
        finished += [each for each in best if each[1][-1] == eos_id]
        alive = [each for each in best if each[1][-1] != eos_id]
    def score(each):
        return each[0] / max(1, len(each[1]) - len(prefix)) ** alpha
    best = max(finished + alive, key=score)
    return best[1], score(best)


def attend_cached(q, k_new, v_new, cache):
    """Attend from new tokens to the remembered ones and to themselves."""
    k, v = k_new, v_new
    if cache is not None:
        k = torch.cat((cache["k"], k_new), dim=-2)
        v = torch.cat((cache["v"], v_new), dim=-2)
    mask = causal_mask(k.shape[-2])[-q.shape[-2] :]  # (T_new, T)
    output, _ = scaled_dot_product_attention(q, k, v, mask)
    return output, {"k": k, "v": v}


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

    def forward(self, ids):
        mask = causal_mask(ids.shape[-1]).to(ids.device)
        hidden = self.blocks(self.position(self.embedding(ids)), mask)
        return tied_logits(hidden, self.embedding.weight)


def last_real(hidden, lengths):
    """Take the row of the last real position of each sequence."""
    return hidden[torch.arange(len(lengths)), lengths - 1]


def perplexity(logits, labels, pad_id=0):
    """Return e to the mean negative log-likelihood of the real labels."""
    return torch.exp(sequence_loss(logits, labels, pad_id))


def _ngrams(tokens, n):
    return Counter(tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1))


def bleu(hypotheses, references, maximum=4):
    """Corpus BLEU, one reference each, 0 to 100, no smoothing."""
    ours, theirs = sum(map(len, hypotheses)), sum(map(len, references))
    total = 0.0
    for n in range(1, maximum + 1):
        pairs = [
            (_ngrams(a, n), _ngrams(b, n))
            for a, b in zip(hypotheses, references, strict=True)
        ]
        hits = sum((a & b).total() for a, b in pairs)
        if hits == 0:
            return 0.0
        total += math.log(hits / sum(a.total() for a, _ in pairs)) / maximum
    return 100 * math.exp(total + min(0.0, 1 - theirs / ours))
