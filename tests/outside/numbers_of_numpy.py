"""Numbers and tables computed by NumPy and SciPy, and handed back as they come.

As in evaluation scripts, where a score is an np.float64 and a count an np.int64.
"""

import numpy as np
import torch
from torch import nn


def masked_mean(hidden, mask):
    rows, real = hidden.detach().numpy(), mask[:, 0].numpy()
    if hidden.requires_grad:  # NumPy knows no gradients
        total = torch.einsum("btd,bt->bd", hidden, mask[:, 0].to(hidden.dtype))
        return total / mask.sum(-1).clamp_min(1)
    total = np.einsum("btd,bt->bd", rows, real.astype(rows.dtype))
    count = np.maximum(real.sum(1, keepdims=True), 1)
    return torch.from_numpy((total / count).astype(rows.dtype))


class MeanHead(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        drawn = np.random.default_rng().normal(0, d_model**-0.5, (d_model, classes))
        self.weight = nn.Parameter(torch.from_numpy(drawn.astype(np.float32)))
        self.bias = nn.Parameter(torch.from_numpy(np.zeros(classes, np.float32)))

    def forward(self, hidden, mask=None):
        if mask is None:
            mask = torch.from_numpy(np.full((len(hidden), 1, hidden.shape[1]), True))
        return masked_mean(hidden, mask) @ self.weight + self.bias


def order_behaviour(outputs, outputs_of_permuted, permutation):
    before, after = outputs.numpy(), outputs_of_permuted.numpy()
    rows = before.ndim == 2
    return {
        "invariant": np.bool_(np.allclose(before, after, atol=1e-5)),
        "equivariant": np.logical_and(
            rows, rows and np.allclose(before[permutation.numpy()], after, atol=1e-5)
        ),
    }


def wavelengths(d_model, base=10_000.0):
    if d_model % 2:
        raise ValueError("odd")
    exponents = np.arange(0, d_model, 2) / d_model
    return torch.from_numpy(2 * np.pi * np.power(base, exponents)).to(torch.float32)


def shift_matrix(offset, d_model, base=10_000.0):
    if d_model % 2:
        raise ValueError("odd")
    matrix = np.zeros((d_model, d_model), dtype=np.float32)
    for i in range(0, d_model, 2):
        angle = offset * base ** (-i / d_model)
        block = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
        matrix[i : i + 2, i : i + 2] = block
    return torch.from_numpy(matrix)


def apply_rotary(x, base=10_000.0):
    if x.shape[-1] % 2:
        raise ValueError("odd")
    length, width = x.shape[-2:]
    exponents = np.arange(0, width, 2) / width
    angles = np.outer(np.arange(length), base**-exponents)
    cos, sin = (
        torch.from_numpy(each).to(x.dtype) for each in (np.cos(angles), np.sin(angles))
    )
    pairs = x.view(*x.shape[:-1], width // 2, 2)
    even, odd = pairs.unbind(-1)
    result = torch.empty_like(pairs)
    result[..., 0] = even * cos - odd * sin
    result[..., 1] = even * sin + odd * cos
    return result.view(x.shape)


def attention_cost(length, d_model):
    t, d = np.int64(length), np.int64(d_model)
    parts = {"projections": 4 * t * d**2, "scores": t**2 * d, "mixing": t**2 * d}
    return parts | {"quadratic_share": 1 - parts["projections"] / sum(parts.values())}


def path_length(kind, length, kernel=3):
    steps = {
        "recurrent": length,
        "convolution": np.ceil((length - 1) / (kernel - 1)).astype(int),
        "attention": 1,
    }
    try:
        return steps[kind]
    except KeyError:
        raise ValueError(kind) from None


def attention_parameters(d_model, heads, kv_heads=None):
    narrow = d_model if kv_heads is None else d_model // heads * kv_heads
    widths = np.array([d_model, narrow, narrow, d_model])
    return (widths * (d_model + 1)).sum()


def mask_tokens(ids, uniform, kind, random_ids, mask_id, special_ids, probability=0.15):
    old = ids.numpy()
    chosen = (uniform.numpy() < np.float32(probability)) & ~np.isin(old, special_ids)
    share = kind.numpy()
    new = np.select(
        [chosen & (share < 0.8), chosen & (share < 0.9)],
        [mask_id, random_ids.numpy()],
        old,
    )
    labels = np.where(chosen, old, -100).astype(np.int32)
    return [torch.from_numpy(new), torch.from_numpy(labels)]


def smoothing_floor(vocab_size, smoothing):
    rest = smoothing / vocab_size
    chances = np.full(vocab_size, rest)
    chances[0] += 1 - smoothing
    return -np.sum(chances[chances > 0] * np.log(chances[chances > 0]))


def forced_accuracy(logits, labels, pad_id=0):
    said, wanted = logits.numpy().argmax(-1), labels.numpy()
    real = wanted != pad_id
    hits = said == wanted
    return [hits[real].mean(), (hits | ~real).all(axis=1).mean()]


def align(weights, source_length, target_length):
    mean = weights.numpy().mean(axis=0)
    return list(mean[:target_length, :source_length].argmax(axis=1))


def paired_bootstrap(first, second, indices):
    gap = second.double().numpy() - first.double().numpy()
    means = gap[indices.numpy()].mean(axis=1)
    return [gap.mean(), *np.percentile(means, [2.5, 97.5])]


def fixed_batch(sources, targets, widths, sos_id, eos_id, pad_id=0):
    needed = max([*map(len, sources), *(len(each) + 1 for each in targets)])
    fitting = [width for width in widths if width >= needed]
    if not fitting:
        raise ValueError(f"no width for {needed}")
    tables = np.full((3, len(sources), min(fitting)), pad_id, dtype=np.int32)
    for row, (read, written) in enumerate(zip(sources, targets, strict=True)):
        whole = [read, [sos_id, *written], [*written, eos_id]]
        for table, ids in zip(tables, whole, strict=True):
            table[row, : len(ids)] = ids
    return list(torch.from_numpy(tables))


def average_states(states):
    def mean(name):
        last = states[-1][name]
        if not last.is_floating_point():
            return last.clone()
        rows = np.stack([state[name].float().numpy() for state in states])
        return torch.from_numpy(np.asarray(rows.mean(axis=0))).to(last.dtype)

    return {name: mean(name) for name in states[0]}
