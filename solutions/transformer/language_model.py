"""Language model: the answers to the exercises of chapter 11.

Generated from solutions/11_language_model.md by `make exercises`; change that file.
"""

import math

import torch
from torch import nn


from transformer.attention import causal_mask, scaled_dot_product_attention
from transformer.encoder import FeedForward, LayerNorm, RMSNorm, SwiGLU
from transformer.multi_head_attention import (
    GroupedQueryAttention,
    merge_heads,
    repeat_heads,
    split_heads,
)
from transformer.positional_encoding import apply_rotary


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


def pack_documents(
    documents: list[list[int]], end_id: int, length: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Put documents one behind the other, and cut them into blocks of one length.

    Args:
        documents: the ids of each, at least one document; some may be empty.
        end_id: put behind each document; it belongs to the document.
        length: T, of a block.

    Returns:
        Inputs and labels, the document of each input (from 0) and its position in that
        document (from 0), integers (N, T). N = (number of tokens - 1) // T.

    Defined in Exercise 11.2 · Documents into blocks.
    """
    # 1. A stream of ids, documents and positions. 2. How many have a label and fill
    # blocks. 3. Cut; the labels are one ahead.
    ids, owners, positions = [], [], []
    for number, document in enumerate(documents):
        ids += [*document, end_id]
        owners += [number] * (len(document) + 1)
        positions += range(len(document) + 1)
    blocks = (len(ids) - 1) // length
    end = blocks * length
    rows = (ids[:end], ids[1 : end + 1], owners[:end], positions[:end])
    return tuple(torch.tensor(row).long().view(blocks, length) for row in rows)


def document_mask(documents: torch.Tensor) -> torch.Tensor:
    """Let each position attend to those of its own document that are not after it.

    Args:
        documents: (B, T), the number of each position's document. A document's tokens
            stand side by side; the numbers need not rise.

    Returns:
        Boolean (B, 1, T, T), True where query i (row) may attend to key j (column).

    Defined in Exercise 11.3 · A mask between documents.
    """
    # 1. The same document. 2. And not later. 3. An axis for the heads.
    same = documents.unsqueeze(2) == documents.unsqueeze(1)  # (B, T, T)
    causal = causal_mask(documents.shape[1]).to(documents.device)  # (T, T)
    return (same & causal).unsqueeze(1)


def causal_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rotary: bool = False
) -> torch.Tensor:
    """Attend from each position to itself and to those before it.

    Args:
        q: (B, heads, T, d_k).
        k: (B, kv_heads, T, d_k); neighbouring query heads share one.
        v: (B, kv_heads, T, d_k).
        rotary: rotate queries and keys by their positions, 0 to T - 1.

    Returns:
        (B, heads, T, d_k).

    Defined in Exercise 11.4 · One attention for all choices.
    """
    # 1. Rotate. 2. Repeat. 3. Attend, with a causal mask.
    if rotary:
        q, k = apply_rotary(q), apply_rotary(k)
    times = q.shape[1] // k.shape[1]
    k, v = repeat_heads(k, times), repeat_heads(v, times)  # (B, heads, T, d_k)
    mask = causal_mask(q.shape[-2]).to(q.device)  # (T, T)
    return scaled_dot_product_attention(q, k, v, mask)[0]


class DecoderBlock(nn.Module):
    """Causal self-attention and a feed-forward network, each after its norm.

    Submodules: attention (GroupedQueryAttention), feed_forward, norm_1, norm_2, norm_q,
    norm_k, dropout.

    Defined in Exercise 11.5 · The block, from a configuration.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        kv_heads: int,
        d_ff: int,
        norm: str = "rms",
        feed_forward: str = "swiglu",
        positions: str = "rotary",
        qk_norm: bool = True,
        dropout: float = 0.0,
    ) -> None:
        """Choose and build the parts.

        Args:
            d_model: the width of the tokens.
            heads: of queries.
            kv_heads: of keys and values.
            d_ff: the width inside the network.
            norm: of both halves, "layer" or "rms".
            feed_forward: "relu", "gelu" or "swiglu".
            positions: "rotary", or "learned": then nothing is rotated.
            qk_norm: whether norm_q and norm_k are RMS norms of each head.
            dropout: of what each half adds.
        """
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        self.rotary = positions == "rotary"
        # 1. Attention, the network, two norms, two more for queries and keys, dropout.
        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        if feed_forward == "swiglu":
            self.feed_forward = SwiGLU(d_model, d_ff)
        else:
            self.feed_forward = FeedForward(d_model, d_ff, feed_forward)
        kind = RMSNorm if norm == "rms" else LayerNorm
        self.norm_1, self.norm_2 = kind(d_model), kind(d_model)
        d_k = d_model // heads
        self.norm_q = RMSNorm(d_k) if qk_norm else nn.Identity()
        self.norm_k = RMSNorm(d_k) if qk_norm else nn.Identity()
        self.dropout = nn.Dropout(dropout)

    def project(
        self, x: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Make queries, keys and values; nothing is rotated yet.

        Args:
            x: (B, T, d_model), before its norm.

        Returns:
            q (B, heads, T, d_k), k and v (B, kv_heads, T, d_k).
        """
        # 2. Normalise. 3. Project and split. 4. Normalise queries and keys.
        normalised, weights = self.norm_1(x), self.attention
        q = self.norm_q(split_heads(normalised @ weights.w_q, self.heads))
        k = self.norm_k(split_heads(normalised @ weights.w_k, self.kv_heads))
        v = split_heads(normalised @ weights.w_v, self.kv_heads)
        return q, k, v

    def finish(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        """Add what attention has found, then what the network makes of it.

        Args:
            x: (B, T, d_model), as it came in.
            z: (B, heads, T, d_k), what causal_attention has returned.

        Returns:
            (B, T, d_model).
        """
        # 5. Merge, mix, add. 6. Normalise, feed forward, add.
        x = x + self.dropout(merge_heads(z) @ self.attention.w_o)  # (B, T, d_model)
        return x + self.dropout(self.feed_forward(self.norm_2(x)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Run both halves; x and result (B, T, d_model)."""
        q, k, v = self.project(x)
        return self.finish(x, causal_attention(q, k, v, self.rotary))


@torch.no_grad()
def write_with_cache(model: nn.Module, prompt: list[int], length: int) -> list[int]:
    """Write the most probable token again and again, and read nothing twice.

    Args:
        model: called as model(ids, start, cache): new ids (1, T), the position of the
            first, and the cache that it returned before, None at the beginning. Returns
            logits (1, T, V) and the new cache.
        prompt: ids to begin with, at least one.
        length: how many tokens to write, from 0.

    Returns:
        The ids, prompt included.

    Raises:
        ValueError: the prompt is empty.

    Defined in Exercise 11.6 · Write with a cache.
    """
    # 1. Refuse. 2. Read what is new, where it stands. 3. Append the most probable.
    if not prompt:
        raise ValueError("the prompt is empty")
    ids, read, cache = list(prompt), 0, None
    for _ in range(length):
        logits, cache = model(torch.tensor([ids[read:]]), read, cache)
        read = len(ids)
        ids.append(int(logits[0, -1].argmax()))
    return ids


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

    Defined in Exercise 11.7 · Softmax, a block at a time.
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

    Defined in Exercise 11.7 · Softmax, a block at a time.
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

    Defined in Exercise 11.8 · Attention in tiles.
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

    Defined in Exercise 11.8 · Attention in tiles.
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

    Defined in Exercise 11.9 · A step of AdamW.
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

    Defined in Exercise 11.10 · Make a step orthogonal.
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


def predicted_loss(law: dict[str, float], parameters: float, tokens: float) -> float:
    """Say what a model loses by a law.

    Args:
        law: E, A, B, a and b.
        parameters: N, all of them.
        tokens: D, that it is trained on.

    Returns:
        L(N, D).

    Defined in Exercise 11.12 · A law of scale.
    """
    # 1. Three terms.
    size, text = law["A"] / parameters ** law["a"], law["B"] / tokens ** law["b"]
    return law["E"] + size + text


def fit_scaling_law(
    runs: list[dict[str, float]], exponents: list[float]
) -> dict[str, float]:
    """Find the law that fits runs best.

    Args:
        runs: R dicts with parameters (without the embedding), embedding, tokens,
            bits_per_byte, nats_per_token.
        exponents: the candidates, each tried as a and as b.

    Returns:
        E, A, B, a and b, with the smallest sum of squared errors in bits per byte.

    Defined in Exercise 11.12 · A law of scale.
    """
    # 2. N, D and the losses. 3. For each a and each b: columns, least squares, error.
    # 4. Keep the best.
    keys = ("parameters", "embedding", "tokens", "bits_per_byte")
    rows = [[run[key] for key in keys] for run in runs]
    rows = torch.tensor(rows, dtype=torch.float64)  # (R, 4)
    sizes, tokens, losses = rows[:, 0] + rows[:, 1], rows[:, 2], rows[:, 3:]
    fits = []
    for a in exponents:
        for b in exponents:
            columns = torch.stack((torch.ones_like(sizes), sizes**-a, tokens**-b), -1)
            found = torch.linalg.lstsq(columns, losses).solution  # (3, 1)
            error = (columns @ found - losses).square().sum().item()
            fits.append((error, *found.flatten().tolist(), a, b))
    return dict(zip("EABab", min(fits)[1:], strict=True))


def compute_optimal(law: dict[str, float], budget: float) -> tuple[float, float]:
    """Split a budget between the model and its text.

    Args:
        law: E, A, B, a and b.
        budget: C, operations.

    Returns:
        N and D with the smallest loss of all with 6 · N · D = C.

    Defined in Exercise 11.12 · A law of scale.
    """
    # 5. The parameters. 6. The tokens that are left.
    a, b, pairs = law["a"], law["b"], budget / 6
    ratio = a * law["A"] / (b * law["B"])
    parameters = ratio ** (1 / (a + b)) * pairs ** (b / (a + b))
    return parameters, pairs / parameters


def induction_scores(weights: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Say of each head how much it looks at what followed the same token before.

    Args:
        weights: (layers, heads, T, T), each row sums to 1.
        tokens: (T,), integers, at least one of which occurs twice.

    Returns:
        (layers, heads), the mean weight on the position after the previous occurrence,
        over the positions that have one.

    Defined in Exercise 11.13 · A head that looks at what came next last time.
    """
    # 1. The latest earlier position of each token. 2. Where there is one. 3. The mean.
    places = torch.arange(len(tokens), device=tokens.device)
    earlier = (tokens.unsqueeze(-1) == tokens).tril(-1)  # (T, T)
    after = (earlier * (places + 1)).amax(dim=-1)  # (T,), 0 if there is none
    queries = places[after > 0]
    return weights[..., queries, after[queries]].mean(dim=-1)


def best_head(scores: torch.Tensor) -> tuple[int, int]:
    """Return layer and head of the largest score, both counted from 0.

    Args:
        scores: (layers, heads).

    Defined in Exercise 11.13 · A head that looks at what came next last time.
    """
    # 4. The largest of all, and where it stands.
    return divmod(scores.argmax().item(), scores.shape[1])


@torch.no_grad()
def record_activations(model: nn.Module, ids: torch.Tensor) -> torch.Tensor:
    """Keep what each block gives while a model reads.

    Args:
        model: has a list of blocks, model.blocks.
        ids: (1, T), integers.

    Returns:
        (layers, T, d_model).

    Defined in Exercise 11.14 · What if it had been another?.
    """
    # 1. A hook on each block that keeps the output. 2. Run. 3. Remove the hooks.
    kept = []

    def keep(block, inputs, output):
        kept.append(output[0])  # (T, d_model)

    hooks = [block.register_forward_hook(keep) for block in model.blocks]
    model(ids)
    for each in hooks:
        each.remove()
    return torch.stack(kept)


@torch.no_grad()
def run_patched(
    model: nn.Module,
    ids: torch.Tensor,
    layer: int,
    position: int,
    activation: torch.Tensor,
) -> torch.Tensor:
    """Run a model with one activation replaced, and leave it as it was.

    Args:
        model: has a list of blocks, model.blocks.
        ids: (1, T), integers.
        layer: the block after which the stream is changed, from 0.
        position: where, from 0.
        activation: (d_model,), what is to stand there.

    Returns:
        The logits of this run, (1, T, V).

    Defined in Exercise 11.14 · What if it had been another?.
    """

    # 4. A hook that returns a changed copy. 5. Run. 6. Remove the hook.
    def change(block, inputs, output):
        changed = output.clone()  # (1, T, d_model)
        changed[:, position] = activation
        return changed

    hook = model.blocks[layer].register_forward_hook(change)
    logits = model(ids)
    hook.remove()
    return logits


@torch.no_grad()
def patching_effect(
    model: nn.Module,
    clean: torch.Tensor,
    corrupted: torch.Tensor,
    right: int,
    wrong: int,
) -> torch.Tensor:
    """Say how much each activation of the clean run brings back in the corrupted one.

    Args:
        model: has a list of blocks, model.blocks.
        clean: (1, T), integers.
        corrupted: (1, T), integers.
        right: the token that should follow the clean text.
        wrong: the one that it is compared with.

    Returns:
        (layers, T), shares of the logit difference.

    Defined in Exercise 11.14 · What if it had been another?.
    """

    # 7. The clean activations, and both differences. 8. Patch each layer and position.
    # 9. The share that came back.
    def difference(logits):
        return (logits[0, -1, right] - logits[0, -1, wrong]).item()

    kept = record_activations(model, clean)  # (layers, T, d_model)
    high, low = difference(model(clean)), difference(model(corrupted))
    effects = [
        difference(run_patched(model, corrupted, layer, place, kept[layer, place]))
        for layer in range(len(kept))
        for place in range(clean.shape[1])
    ]
    return (torch.tensor(effects).view(kept.shape[:2]) - low) / (high - low)


def logit_lens(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Read every layer of the residual stream as if the model ended there.

    Args:
        stream: (layers + 1, T, d_model).
        gamma: (d_model,), of the final RMS norm; its epsilon is 1e-5.
        table: (V, d_model), the output matrix.
        targets: (T,), the token that follows each position.

    Returns:
        Probability and rank of the targets, both (layers + 1, T); rank 1 is the best.

    Defined in Exercise 11.15 · Layer by layer.
    """
    # 1. The norm. 2. The logits. 3. The targets' probability. 4. How many are ahead.
    scale = (stream.square().mean(dim=-1, keepdim=True) + 1e-5).rsqrt()
    logits = stream * scale * gamma @ table.T  # (layers + 1, T, V)
    places = torch.arange(len(targets))
    own = logits[:, places, targets]  # (layers + 1, T)
    ranks = 1 + (logits > own.unsqueeze(-1)).sum(dim=-1)
    return logits.softmax(dim=-1)[:, places, targets], ranks


def lens_gain(
    stream: torch.Tensor,
    gamma: torch.Tensor,
    table: torch.Tensor,
    targets: torch.Tensor,
    order: torch.Tensor,
) -> torch.Tensor:
    """Say how much more each layer says for the right tokens than for others.

    Args:
        stream: (layers + 1, T, d_model).
        gamma: (d_model,), of the final RMS norm; its epsilon is 1e-5.
        table: (V, d_model), the output matrix.
        targets: (T,), the token that follows each position.
        order: (T,), for each position another one, whose target is the control.

    Returns:
        (layers + 1,), the mean difference of the logarithms of both probabilities.

    Defined in Exercise 11.15 · Layer by layer.
    """
    # 5. The right tokens. 6. The control. 7. The mean of the differences.
    right, _ = logit_lens(stream, gamma, table, targets)
    control, _ = logit_lens(stream, gamma, table, targets[order])
    return (right.log() - control.log()).mean(dim=-1)
