"""Language model: the answers to the exercises of chapter 11.

Generated from solutions/11_language_model.md by `make exercises`; change that file.
"""

import math

import torch


def bits_per_byte(losses: torch.Tensor, text: str) -> float:
    """Say what a text costs a model, in a unit that no tokenizer changes.

    Args:
        losses: (T,), the cross-entropy of each token in nats.
        text: all that the tokens stand for, at least one character.

    Returns:
        Bits per byte of UTF-8.

    Defined in Exercise 11.1 · Bits per byte.
    """
    # 1. The whole text, in bits. 2. Per byte.
    return losses.sum().item() / math.log(2) / len(text.encode())


def online_step(
    maximum: torch.Tensor,
    total: torch.Tensor,
    output: torch.Tensor,
    scores: torch.Tensor,
    values: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Take one more block of keys into a softmax.

    Milakov and Gimelshein (2018).

    Args:
        maximum: (..., T, 1), the largest score so far; -inf if there is none.
        total: (..., T, 1), the sum of exp(score - maximum).
        output: (..., T, d_v), the values mixed with exp(score - maximum).
        scores: (..., T, block), of the new keys; -inf where one is forbidden.
        values: (..., block, d_v), of the new keys.

    Returns:
        The same three with the new block: maximum, total, output.

    Defined in Exercise 11.2 · Softmax, a block at a time.
    """
    # 1. The new maximum. 2. Rescale what is there. 3. Add the block.
    new = torch.maximum(maximum, scores.amax(dim=-1, keepdim=True))  # (..., T, 1)
    reference = new.masked_fill(new.isneginf(), 0.0)  # -inf - -inf would be NaN
    factor = torch.exp(maximum - reference)
    weights = torch.exp(scores - reference)  # (..., T, block)
    total = factor * total + weights.sum(dim=-1, keepdim=True)
    return new, total, factor * output + weights @ values


def online_softmax(blocks: list[tuple[torch.Tensor, torch.Tensor]]) -> torch.Tensor:
    """Mix all values with the softmax of all scores, block by block.

    Args:
        blocks: pairs of scores (..., T, block) and values (..., block, d_v), at least
            one; the blocks may have different lengths.

    Returns:
        (..., T, d_v); 0 for a query whose scores are all -inf.

    Defined in Exercise 11.2 · Softmax, a block at a time.
    """
    # 4. Begin with nothing, take a step for each block, divide.
    scores, values = blocks[0]
    maximum = scores.new_full((*scores.shape[:-1], 1), -math.inf)
    total = torch.zeros_like(maximum)
    output = scores.new_zeros(*scores.shape[:-1], values.shape[-1])
    for scores, values in blocks:
        maximum, total, output = online_step(maximum, total, output, scores, values)
    return output / total.clamp(min=1)  # 0 only in an empty row, else at least 1


def attend_from_tile(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, block: int, last: torch.Tensor
) -> torch.Tensor:
    """Attend from one tile of queries to the keys, a tile of them at a time.

    Args:
        q: (..., rows, d_k), the queries of the tile.
        k: (..., T_k, d_k), all keys.
        v: (..., T_k, d_v), all values.
        block: how many keys a tile has.
        last: (rows, 1), for each query the position of the last key that it may see;
            below 0 for a query that may see none.

    Returns:
        (..., rows, d_v).

    Defined in Exercise 11.3 · Attention in tiles.
    """
    # 1. Begin with nothing. 2. For each tile of keys that is seen: score, hide, take
    # a step. 3. Divide.
    maximum = q.new_full((*q.shape[:-1], 1), -math.inf)
    total = torch.zeros_like(maximum)
    output = q.new_zeros(*q.shape[:-1], v.shape[-1])
    for first in range(0, int(last.max()) + 1, block):
        keys, values = (each[..., first : first + block, :] for each in (k, v))
        scores = q @ keys.mT / math.sqrt(q.shape[-1])  # (..., rows, block)
        places = torch.arange(first, first + keys.shape[-2], device=q.device)
        scores = scores.masked_fill(places > last, -math.inf)
        maximum, total, output = online_step(maximum, total, output, scores, values)
    return output / total.clamp(min=1)


def tiled_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    block: int,
    causal: bool = False,
) -> torch.Tensor:
    """Attend exactly, and never hold more than T_q · block scores.

    Dao et al. (2022), without the GPU.

    Args:
        q: (..., T_q, d_k).
        k: (..., T_k, d_k).
        v: (..., T_k, d_v).
        block: positions of a tile; it need not divide T_q or T_k.
        causal: whether query i sees the keys up to position T_k - T_q + i only.

    Returns:
        (..., T_q, d_v); 0 for a query that sees nothing.

    Defined in Exercise 11.3 · Attention in tiles.
    """
    # 4. The last key of each query. 5. Tile by tile; join.
    t_q, t_k = q.shape[-2], k.shape[-2]
    last = torch.full((t_q, 1), t_k - 1, device=q.device)
    if causal:
        last = torch.arange(t_k - t_q, t_k, device=q.device).unsqueeze(-1)
    tiles = zip(q.split(block, dim=-2), last.split(block), strict=True)
    done = [attend_from_tile(rows, k, v, block, ends) for rows, ends in tiles]
    return torch.cat(done, dim=-2)  # (..., T_q, d_v)


def adamw_step(
    parameter: torch.Tensor,
    gradient: torch.Tensor,
    first: torch.Tensor,
    second: torch.Tensor,
    step: int,
    rate: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.01,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Move a parameter by one step of AdamW.

    Loshchilov and Hutter (2019); equal to torch.optim.AdamW.

    Args:
        parameter: of any shape.
        gradient: of the loss with respect to it.
        first: the running mean of the gradients, 0 at the beginning.
        second: the running mean of their squares, 0 at the beginning.
        step: the number of this step, 1 for the first one.
        rate: the learning rate.
        betas: how much of the first and of the second moment stays.
        eps: added to the root of the second moment.
        weight_decay: what the parameter loses, as a share, at a rate of 1.

    Returns:
        The new parameter, first moment and second moment.

    Defined in Exercise 11.4 · A step of AdamW.
    """
    # 1. Both moments. 2. Correct them. 3. Decay and move.
    first = betas[0] * first + (1 - betas[0]) * gradient
    second = betas[1] * second + (1 - betas[1]) * gradient**2
    mean = first / (1 - betas[0] ** step)
    size = torch.sqrt(second / (1 - betas[1] ** step))
    decay = rate * weight_decay * parameter
    return parameter - decay - rate * mean / (size + eps), first, second


def orthogonalise(matrix: torch.Tensor, rounds: int = 5) -> torch.Tensor:
    """Bring the singular values of a matrix near 1, and keep its directions.

    Jordan et al. (2024), by Newton and Schulz's iteration.

    Args:
        matrix: (..., n, m).
        rounds: of the iteration.

    Returns:
        (..., n, m).

    Defined in Exercise 11.5 · Make a step orthogonal.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    # 1. Transpose if need be. 2. Divide by the norm. 3. The rounds. 4. Turn back.
    tall = matrix.shape[-2] > matrix.shape[-1]
    x = matrix.mT if tall else matrix
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(rounds):
        square = x @ x.mT  # as small as either gets
        x = a * x + (b * square + c * square @ square) @ x
    return x.mT if tall else x
