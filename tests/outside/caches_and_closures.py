"""Masks that are made once and kept, helpers inside of functions, work in place.

In the manner of answers on question-and-answer sites: short, and by other operations
than the text's.
"""

import functools
import math

import torch
import torch.nn.functional as F


def one_hot(ids: torch.Tensor, vocab_size: int) -> torch.Tensor:
    if ids.numel() and not 0 <= int(ids.min()) <= int(ids.max()) < vocab_size:
        raise ValueError("an id outside of the vocabulary")
    rows = torch.zeros(*ids.shape, vocab_size)
    return rows.scatter_(-1, ids.unsqueeze(-1), 1.0)


def tied_logits(hidden, table):
    return F.linear(hidden, table)


def softmax(scores):
    top = scores.detach().amax(dim=-1, keepdim=True).clone()
    top[top == -math.inf] = 0  # in place, of our own
    powers = (scores - top).exp()
    total = powers.sum(dim=-1, keepdim=True)
    return powers / torch.where(total > 0, total, torch.ones_like(total))


@functools.cache
def triangle(length: int) -> torch.Tensor:
    return torch.ones(length, length, dtype=torch.bool).tril()


def causal_mask(length):
    return triangle(length)


def padding_mask(lengths, max_length):
    rows = [[position < length for position in range(max_length)] for length in lengths]
    return torch.tensor(rows).view(len(lengths), 1, max_length)


def masked_softmax(scores, mask=None):
    if mask is None:
        return scores.softmax(dim=-1)
    some = mask.any(dim=-1, keepdim=True)
    lowest = torch.finfo(scores.dtype).min
    hidden = torch.where(mask, scores, scores.new_full((), lowest))
    return torch.where(mask & some, hidden.softmax(dim=-1), scores.new_zeros(()))


def scaled_dot_product_attention(q, k, v, mask=None):
    def scored(a, b):
        return torch.matmul(a / math.sqrt(a.size(-1)), b.transpose(-1, -2))

    scores = scored(q, k)
    bias = torch.zeros_like(scores)
    if mask is not None:
        bias = bias.masked_fill(mask.logical_not(), float("-inf"))
    weights = torch.softmax(scores + bias, dim=-1)
    if mask is not None:
        weights = weights.masked_fill(mask.logical_not(), 0.0)
        weights = weights.nan_to_num(0.0)
        nothing = mask.any(-1, keepdim=True).logical_not()
        safe = torch.softmax((scores + bias).masked_fill(nothing, 0.0), dim=-1)
        weights = safe.masked_fill(nothing | mask.logical_not(), 0.0)
    return [weights @ v, weights]


def project_qkv(x_q, x_kv, w_q, w_k, w_v):
    pairs = ((x_q, w_q), (x_kv, w_k), (x_kv, w_v))
    return [F.linear(x, w.t()) for x, w in pairs]


def split_heads(x, heads):
    width = x.size(-1)
    if width % heads != 0:
        raise ValueError(f"{width} features for {heads} heads")
    return torch.stack(x.split(width // heads, dim=-1), dim=-3)


def merge_heads(x):
    return torch.cat(x.unbind(dim=-3), dim=-1)


def repeat_heads(x, times):
    *batch, heads, length, width = x.shape
    copies = x.unsqueeze(-3).expand(*batch, heads, times, length, width)
    return copies.reshape(*batch, heads * times, length, width)


def without_heads(w_o, heads, removed):
    keep = w_o.new_ones(heads)
    keep[list(removed)] = 0
    return w_o * keep.repeat_interleave(w_o.size(0) // heads).unsqueeze(-1)


def sum_over_heads(z, w_o):
    rows = w_o.chunk(z.shape[-3])
    return sum(part @ rows[i] for i, part in enumerate(z.unbind(-3)))


def last_real(hidden, lengths):
    index = (lengths - 1).view(-1, *[1] * (hidden.dim() - 1))
    return hidden.take_along_dim(index.expand(-1, 1, *hidden.shape[2:]), 1).squeeze(1)


def decoder_mask(lengths, max_length):
    steps = torch.arange(max_length)
    real = torch.stack([steps < length for length in lengths])
    return torch.einsum("ij,bj->bij", triangle(max_length).int(), real.int()).bool()
