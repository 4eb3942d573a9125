"""Wrong and right answers to chapter 11: tiles, optimizers, and what a run costs."""

import math

import torch
import torch.nn.functional as F

from mistakes import right, wrong
from transformer.language_model import online_step as right_step

# --- the online softmax ---------------------------------------------------------------


@wrong("online-softmax", "the old output is not rescaled")
def online_step(maximum, total, output, scores, values):
    highest = torch.cat((maximum, scores), dim=-1).max(dim=-1, keepdim=True).values
    shift = torch.where(highest == -math.inf, 0.0, highest)
    weights = (scores - shift).exp()
    grown = total * (maximum - shift).exp() + weights.sum(-1).unsqueeze(-1)
    return highest, grown, output + torch.einsum("...qk,...kd->...qd", weights, values)


@wrong("online-softmax", "NaN where nothing has been allowed")
def online_step(maximum, total, output, scores, values):
    """a softmax of the block, weighed with its sum"""
    highest = torch.maximum(maximum, scores.max(-1, keepdim=True)[0])
    of_block = (scores - highest).logsumexp(-1, keepdim=True).exp()
    old = (maximum - highest).exp()
    mixed = F.softmax(scores, dim=-1) @ values
    return highest, old * total + of_block, old * output + of_block * mixed


@wrong("online-softmax", "one maximum for all queries")
def online_step(maximum, total, output, scores, values):
    highest = torch.maximum(maximum, torch.full_like(maximum, scores.max().item()))
    shift = highest.nan_to_num(neginf=0.0)
    old, weights = (maximum - shift).exp(), (scores - shift).exp()
    return highest, old * total + weights.sum(-1, True), old * output + weights @ values


@wrong("online-softmax", "each block has a softmax of its own")
def online_softmax(blocks):
    output = 0
    for scores, values in blocks:
        output = output + F.softmax(scores.double(), -1).nan_to_num().float() @ values
    return output


@wrong("online-softmax", "NaN on fully masked rows")
def online_softmax(blocks):
    scores, values = blocks[0]
    state = torch.full_like(scores[..., :1], -math.inf), 0.0, 0.0
    for scores, values in blocks:
        state = right_step(*state, scores, values)
    return state[2] / state[1]


@right("online-softmax")
def online_step(maximum, total, output, scores, values):
    """the maximum cut off from the gradient, and a sum over the products"""
    highest = torch.maximum(maximum, scores.amax(-1, keepdim=True)).detach()
    shift = torch.where(highest.isneginf(), 0.0, highest)
    old, weights = (maximum - shift).exp(), (scores - shift).exp()
    added = (weights.unsqueeze(-1) * values.unsqueeze(-3)).sum(dim=-2)
    return highest, old * total + weights.sum(-1, keepdim=True), old * output + added


@wrong("online-softmax", "NaN gradient where nothing has been allowed")
def online_step(maximum, total, output, scores, values):
    """by the logarithm of the sum"""
    highest = torch.maximum(maximum, scores.amax(-1, keepdim=True))
    shift = highest.clamp(min=torch.finfo(highest.dtype).min)
    old = (maximum - shift).exp()
    found = (scores - shift).logsumexp(-1, keepdim=True).exp()
    weights = (scores - shift).exp()
    return highest, total * old + found, output * old + weights.matmul(values)


@right("online-softmax")
def online_step(maximum, total, output, scores, values):
    """the old sum as one more score"""
    both = torch.cat((maximum, scores), dim=-1)
    highest = both.max(dim=-1, keepdim=True).values
    powers = (both - highest.clamp(min=-1e30)).exp()
    old, weights = powers.split([1, scores.shape[-1]], dim=-1)
    grown = torch.cat((old * total, weights), dim=-1).sum(-1, keepdim=True)
    return highest, grown, torch.addcmul(weights @ values, old, output)


@right("online-softmax")
def online_softmax(blocks):
    """begins with numbers, and divides where there is a sum"""
    maximum, total, output = torch.tensor(-math.inf), torch.zeros(()), torch.zeros(())
    for block in blocks:
        maximum, total, output = right_step(maximum, total, output, *block)
    return torch.where(total > 0, output / torch.where(total > 0, total, 1.0), 0.0)


# --- attention in tiles ---------------------------------------------------------------


def _nothing(q, v):
    rows = q.shape[:-1]
    begin = torch.full((*rows, 1), -math.inf), torch.zeros(*rows, 1)
    return (*begin, torch.zeros(*rows, v.shape[-1]))


def _hidden(scores, first_query, first_key, shift):
    rows = torch.arange(scores.shape[-2]).unsqueeze(-1) + first_query + shift
    return scores.masked_fill(
        first_key + torch.arange(scores.shape[-1]) > rows, -math.inf
    )


def _by_tiles(q, k, v, block, causal, score=_hidden, divide=None):
    """Go through both kinds of tiles, by their numbers."""
    shift, done = k.shape[-2] - q.shape[-2], []
    for a in range(0, q.shape[-2], block):
        rows = q[..., a : a + block, :]
        three = _nothing(rows, v)
        for b in range(0, k.shape[-2], block):
            if causal and b > a + rows.shape[-2] - 1 + shift:
                break
            scores = rows @ k[..., b : b + block, :].mT / q.shape[-1] ** 0.5
            scores = score(scores, a, b, shift) if causal else scores
            three = right_step(*three, scores, v[..., b : b + block, :])
        done.append((divide or _divide)(three[2], three[1]))
    return torch.cat(done, dim=-2)


def _divide(output, total):
    return torch.where(total == 0, 0.0, output / total.clamp(min=1e-20))


@wrong("tiled-attention", "all pairs at once")
def tiled_attention(q, k, v, block, causal=False):
    """attention as in chapter 4"""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        scores = _hidden(scores, 0, 0, k.shape[-2] - q.shape[-2])
    return scores.softmax(-1).nan_to_num(0.0) @ v


@wrong("tiled-attention", "all pairs at once")
def tiled_attention(q, k, v, block, causal=False):
    """the mask is made before the loop"""
    shape = q.shape[-2], k.shape[-2]
    mask = torch.ones(shape, dtype=torch.bool)
    mask = mask.tril(shape[1] - shape[0]) if causal else mask

    def hide(scores, a, b, shift):
        rows, columns = scores.shape[-2:]
        return scores.masked_fill(~mask[a : a + rows, b : b + columns], -math.inf)

    return _by_tiles(q, k, v, block, causal, hide)


@wrong("tiled-attention", "all keys at once")
def tiled_attention(q, k, v, block, causal=False):
    """tiles of queries alone, each with all keys"""
    shift = k.shape[-2] - q.shape[-2]
    done = []
    for first in range(0, q.shape[-2], block):
        scores = q[..., first : first + block, :] @ k.mT / math.sqrt(q.shape[-1])
        scores = _hidden(scores, first, 0, shift) if causal else scores
        done.append(scores.softmax(-1).nan_to_num(0.0) @ v)
    return torch.cat(done, dim=-2)


@wrong("tiled-attention", "the scores of all tiles are kept")
def tiled_attention(q, k, v, block, causal=False):
    """a list of blocks"""
    shift, blocks = k.shape[-2] - q.shape[-2], []
    for b in range(0, k.shape[-2], block):
        scores = q @ k[..., b : b + block, :].mT / math.sqrt(q.shape[-1])
        blocks.append(_hidden(scores, 0, b, shift) if causal else scores)
    three = _nothing(q, v)
    for scores, values in zip(blocks, v.split(block, dim=-2), strict=True):
        three = right_step(*three, scores, values)
    return three[2] / three[1].clamp(min=1)


@wrong("tiled-attention", "tiles in the future are computed")
def tiled_attention(q, k, v, block, causal=False):
    shift, three = k.shape[-2] - q.shape[-2], _nothing(q, v)
    for b in range(0, k.shape[-2], block):
        scores = q @ k[..., b : b + block, :].mT / math.sqrt(q.shape[-1])
        scores = _hidden(scores, 0, b, shift) if causal else scores
        three = right_step(*three, scores, v[..., b : b + block, :])
    return three[2] / three[1].clamp(min=1)


@wrong("tiled-attention", "NaN gradient on fully masked rows")
def tiled_attention(q, k, v, block, causal=False):
    def divide(output, total):
        return (output / total).nan_to_num(0.0)

    return _by_tiles(q, k, v, block, causal, divide=divide)


@wrong("tiled-attention", "keys counted from 0 in each tile")
def tiled_attention(q, k, v, block, causal=False):
    def hide(scores, a, b, shift):
        return _hidden(scores, a, 0, shift)

    shift, three = k.shape[-2] - q.shape[-2], _nothing(q, v)
    for b in range(0, k.shape[-2], block):
        scores = q @ k[..., b : b + block, :].mT / math.sqrt(q.shape[-1])
        scores = hide(scores, 0, b, shift) if causal else scores
        three = right_step(*three, scores, v[..., b : b + block, :])
    return three[2] / three[1].clamp(min=1)


@right("tiled-attention")
def tiled_attention(q, k, v, block, causal=False):
    """both kinds of tiles by their numbers"""
    return _by_tiles(q, k, v, block, causal)


@wrong(
    "tiled-attention",
    "uses torch.nn.functional.scaled_dot_product_attention, which this exercise asks "
    "you to write yourself",
)
def tiled_attention(q, k, v, block, causal=False):
    mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool)
    mask = mask.tril(k.shape[-2] - q.shape[-2]) if causal else mask
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask).nan_to_num()


@right("tiled-attention")
def tiled_attention(q, k, v, block, causal=False):
    """a softmax for each tile, put together by the logarithms of their sums"""
    t_q, t_k = q.shape[-2], k.shape[-2]
    ends = torch.arange(t_k - t_q, t_k) if causal else torch.full((t_q,), t_k - 1)
    done = []
    for rows, last in zip(q.split(block, -2), ends.split(block), strict=True):
        mixed = rows.new_zeros(*rows.shape[:-1], v.shape[-1])
        log = rows.new_full((*rows.shape[:-1], 1), -1e30)
        for place in range(0, max(0, int(last[-1]) + 1), block):
            keys, values = k[..., place : place + block, :], v[..., place:, :]
            later = torch.arange(place, place + keys.shape[-2]) > last[:, None]
            scores = (rows @ keys.mT * q.shape[-1] ** -0.5).masked_fill(later, -1e30)
            of_tile = scores.logsumexp(-1, keepdim=True)
            both = torch.logaddexp(log, of_tile)
            mixed_here = scores.softmax(-1) @ values[..., :block, :]
            mixed = mixed * (log - both).exp() + mixed_here * (of_tile - both).exp()
            log = both
        done.append(mixed.masked_fill(last[:, None] < 0, 0.0))
    return torch.cat(done, dim=-2)


@right("tiled-attention")
def tiled_attention(q, k, v, block, causal=False):
    """the keys outside, and the queries that see any of the tile"""
    shift, three = k.shape[-2] - q.shape[-2], _nothing(q, v)
    for b in range(0, k.shape[-2], block):
        first = min(max(0, b - shift), q.shape[-2]) if causal else 0
        scores = q[..., first:, :] @ k[..., b : b + block, :].mT / q.shape[-1] ** 0.5
        scores = _hidden(scores, first, b, shift) if causal else scores
        seen = (each[..., first:, :] for each in three)
        seen = right_step(*seen, scores, v[..., b : b + block, :])
        pairs = zip(three, seen, strict=True)
        three = [torch.cat((old[..., :first, :], new), -2) for old, new in pairs]
    return three[2] / three[1].clamp(min=1)


# --- AdamW ----------------------------------------------------------------------------


def _adam(parameter, gradient, first, second, step, rate, betas, eps, decay):
    """Follow PyTorch's own order of computing, in place on copies."""
    parameter, first, second = (x.clone() for x in (parameter, first, second))
    parameter.mul_(1 - rate * decay)
    first.lerp_(gradient, 1 - betas[0])
    second.mul_(betas[1]).addcmul_(gradient, gradient, value=1 - betas[1])
    root = second.sqrt() / math.sqrt(1 - betas[1] ** step)
    size = rate / (1 - betas[0] ** step)
    return parameter.addcdiv_(first, root.add_(eps), value=-size), first, second


@wrong("adamw-step", "eps inside the root")
def adamw_step(
    parameter,
    gradient,
    first,
    second,
    step,
    rate,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.01,
):
    first = torch.lerp(gradient, first, betas[0])
    second = torch.lerp(gradient.pow(2), second, betas[1])
    speed = (second / (1 - betas[1] ** step) + eps).rsqrt()
    kept = 1 - rate * weight_decay
    moved = kept * parameter - rate * speed * first / (1 - betas[0] ** step)
    return moved, first, second


@wrong("adamw-step", "the decay is mixed into the gradient")
def adamw_step(
    parameter,
    gradient,
    first,
    second,
    step,
    rate,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.01,
):
    """torch.optim.Adam"""
    given = torch.add(gradient, parameter, alpha=weight_decay)
    return _adam(parameter, given, first, second, step, rate, betas, eps, 0.0)


@wrong("adamw-step", "no bias correction")
def adamw_step(
    parameter,
    gradient,
    first,
    second,
    step,
    rate,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.01,
):
    """as if many steps had been taken"""
    given = parameter, gradient, first, second, 10**6
    return _adam(*given, rate, betas, eps, weight_decay)


@right("adamw-step")
def adamw_step(
    parameter,
    gradient,
    first,
    second,
    step,
    rate,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.01,
):
    """in PyTorch's own order, in place on copies"""
    given = parameter, gradient, first, second, step
    return _adam(*given, rate, betas, eps, weight_decay)


@right("adamw-step")
def adamw_step(
    parameter,
    gradient,
    first,
    second,
    step,
    rate,
    betas=(0.9, 0.999),
    eps=1e-8,
    weight_decay=0.01,
):
    """each number by itself"""
    results = []
    for theta, g, m, v in zip(
        *(x.flatten().tolist() for x in (parameter, gradient, first, second)),
        strict=True,
    ):
        m, v = (b * old + (1 - b) * n for b, old, n in zip(betas, (m, v), (g, g * g)))
        mean, square = m / (1 - betas[0] ** step), v / (1 - betas[1] ** step)
        theta -= rate * (weight_decay * theta + mean / (math.sqrt(square) + eps))
        results.append((theta, m, v))
    columns = zip(*results, strict=True)
    return tuple(torch.tensor(each).view_as(parameter) for each in columns)


# --- Muon -----------------------------------------------------------------------------


@wrong("orthogonalise", "the larger product is taken")
def orthogonalise(matrix, rounds=5):
    x = F.normalize(matrix.flatten(-2), dim=-1, eps=1e-7).view_as(matrix)
    for _ in range(rounds):
        square = x @ x.transpose(-1, -2)
        once = square @ x
        x = 3.4445 * x - 4.7750 * once + 2.0315 * square @ once
    return x


@wrong("orthogonalise", "two coefficients exchanged")
def orthogonalise(matrix, rounds=5):
    """the coefficients in the wrong places, on the tall form"""
    flat = matrix.shape[-2] < matrix.shape[-1]
    x = matrix.mT if flat else matrix
    x = x / x.square().sum((-2, -1), keepdim=True).sqrt().clamp(min=1e-9)
    for _ in range(rounds):
        square = x.mT @ x
        x = 3.4445 * x + x @ (2.0315 * square - 4.7750 * square @ square)
    return x.mT if flat else x


@wrong("orthogonalise", "normalised by the largest singular value")
def orthogonalise(matrix, rounds=5):
    left, values, right_ = torch.linalg.svd(matrix, full_matrices=False)
    values = values / values[..., :1].clamp(min=1e-9)
    for _ in range(rounds):
        values = values * (3.4445 - 4.7750 * values**2 + 2.0315 * values**4)
    return left @ torch.diag_embed(values) @ right_


@wrong("orthogonalise", "NaN for a matrix of zeros")
def orthogonalise(matrix, rounds=5):
    flat = matrix.shape[-2] < matrix.shape[-1]
    x = matrix.mT if flat else matrix
    x = x / torch.linalg.matrix_norm(x, keepdim=True)
    for _ in range(rounds):
        square = x.mT @ x
        x = x @ (
            3.4445 * torch.eye(square.shape[-1])
            - 4.7750 * square
            + 2.0315 * square @ square
        )
    return x.mT if flat else x


@right("orthogonalise")
def orthogonalise(matrix, rounds=5):
    """the tall form, with the products from the right"""
    flat = matrix.shape[-2] < matrix.shape[-1]
    x = matrix.mT if flat else matrix
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=1e-7)
    for _ in range(rounds):
        square = x.mT @ x
        x = x @ (
            3.4445 * torch.eye(square.shape[-1])
            - 4.7750 * square
            + 2.0315 * square @ square
        )
    return x.mT if flat else x


@right("orthogonalise")
def orthogonalise(matrix, rounds=5):
    """calls itself for a tall matrix; by Horner"""
    if matrix.shape[-2] > matrix.shape[-1]:
        return orthogonalise(matrix.transpose(-1, -2), rounds).transpose(-1, -2)
    x = matrix / (matrix.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(rounds):
        square = x @ x.mT
        x = 3.4445 * x + square @ (-4.7750 * x + 2.0315 * (square @ x))
    return x


# --- the budget -----------------------------------------------------------------------


def _budget(shape, groups, positions, **changed):
    """Count with the layers inside, and put other numbers in place of some."""
    layers, d_model, heads, kv_heads, d_ff, vocab_size, tokens = shape[:7]
    d_k = d_model // heads
    count = d_model * (vocab_size + 1)
    for _ in range(layers):
        count += 2 * d_model * (heads + kv_heads) * d_k + 3 * d_model * d_ff
        count += 2 * d_model
    count = changed.get("count", count)
    length, _, number_bytes = shape[7:]
    return {
        "parameters": count,
        "operations": 2 * 3 * count * tokens,
        "training_bytes": 16 * count // 4 * number_bytes,
        "cache_multi_head": groups * layers * length * d_model * number_bytes,
        "cache_grouped": groups * layers * length * kv_heads * d_k * number_bytes,
        "cache_windowed": groups * layers * kv_heads * d_k * number_bytes * positions,
    }


@wrong("run-budget", "keys or values alone")
def run_budget(
    layers,
    d_model,
    heads,
    kv_heads,
    d_ff,
    vocab_size,
    tokens,
    length,
    window,
    number_bytes=4,
):
    shape = layers, d_model, heads, kv_heads, d_ff, vocab_size, tokens
    rest = length, window, number_bytes
    return _budget((*shape, *rest), 1, min(length, window))


@wrong("run-budget", "the window of a shorter text")
def run_budget(
    layers,
    d_model,
    heads,
    kv_heads,
    d_ff,
    vocab_size,
    tokens,
    length,
    window,
    number_bytes=4,
):
    shape = layers, d_model, heads, kv_heads, d_ff, vocab_size, tokens
    rest = length, window, number_bytes
    return _budget((*shape, *rest), 2, window)


@wrong("run-budget", "the norms are not counted")
def run_budget(
    layers,
    d_model,
    heads,
    kv_heads,
    d_ff,
    vocab_size,
    tokens,
    length,
    window,
    number_bytes=4,
):
    shape = layers, d_model, heads, kv_heads, d_ff, vocab_size, tokens
    shared = kv_heads * d_model // heads
    count = layers * d_model * (2 * d_model + 2 * shared + 3 * d_ff)
    count += vocab_size * d_model
    rest = length, window, number_bytes
    return _budget((*shape, *rest), 2, min(length, window), count=count)


@right("run-budget")
def run_budget(
    layers,
    d_model,
    heads,
    kv_heads,
    d_ff,
    vocab_size,
    tokens,
    length,
    window,
    number_bytes=4,
):
    """layer by layer"""
    shape = layers, d_model, heads, kv_heads, d_ff, vocab_size, tokens
    rest = length, window, number_bytes
    return _budget((*shape, *rest), 2, min(length, window))


@right("run-budget")
def run_budget(**given):
    """from a dict, with numbers that have a point"""
    d, kv_heads = given["d_model"], given["kv_heads"]
    share, layers = kv_heads / given["heads"], given["layers"]
    block = 2 * d * d * (1 + share) + 3 * d * given["d_ff"] + 2 * d
    count = layers * block + d * (given["vocab_size"] + 1)
    each = 2 * layers * d * given.get("number_bytes", 4)
    kept = min(given["length"], given["window"])
    return {
        "parameters": count,
        "operations": 6 * count * given["tokens"],
        "training_bytes": 4 * count * given.get("number_bytes", 4),
        "cache_multi_head": each * given["length"],
        "cache_grouped": each * share * given["length"],
        "cache_windowed": each * share * kept,
    }
