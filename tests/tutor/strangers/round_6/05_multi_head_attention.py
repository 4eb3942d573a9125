# ruff: noqa
# fmt: off

# === exercise: split-heads | function: split_heads | kind: double | what is wrong: only more heads than features are refused; where heads does not divide d (d = 7, 2 heads) the surplus features are dropped without a ValueError (or too many heads come out: d = 8, 5 heads) AND the heads' axis goes to the very front, before the batch, so (B, T, d) becomes (heads, B, T, d/heads); right only for (T, d)
# told: named
# now: named
# says: the heads stand before the batch
def split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    width = x.shape[-1] // heads
    if width == 0:
        raise ValueError(f"{heads} heads cannot share {x.shape[-1]} features")
    pieces = x.unfold(-1, width, width)
    return pieces.movedim(-2, 0)


# === exercise: merge-heads | function: merge_heads | kind: subtle | what is wrong: the values are right, but transpose_ exchanges the axes of the caller's tensor in place: after the call x has the shape (..., T, heads, d_v); shows whenever heads and T differ or x is used again
# told: named
# now: named
# says: changes its argument in place
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    x.transpose_(-3, -2)
    return x.flatten(start_dim=-2)


# === exercise: loop-of-heads | function: loop_of_heads | kind: plain | what is wrong: the queries are divided by sqrt(d_k) although scaled_dot_product_attention divides the scores already, so the scores are scaled twice (by d_k); shows for d_k > 1 and more than one key
# told: told
# now: named
# says: scaled twice
def loop_of_heads(
    x_q: torch.Tensor,
    x_kv: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
    w_o: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    outputs = []
    for wq, wk, wv in zip(w_q, w_k, w_v):
        query = x_q @ wq / math.sqrt(wq.shape[-1])
        key = x_kv @ wk
        value = x_kv @ wv
        outputs.append(scaled_dot_product_attention(query, key, value, mask)[0])
    return torch.cat(outputs, dim=-1) @ w_o


# === exercise: loop-of-heads | function: loop_of_heads | kind: double | what is wrong: the mask multiplies the weights after the softmax, so the weights of a partly masked row do not sum to 1 AND the heads' outputs are stacked on a new last axis and flattened, which interleaves the features of the heads (feature 0 of all heads first); the second shows for heads > 1 and d_v > 1
# told: named
# now: named
# says: heads interleaved
def loop_of_heads(
    x_q: torch.Tensor,
    x_kv: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
    w_o: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    found = []
    for i in range(len(w_q)):
        q, k, v = x_q @ w_q[i], x_kv @ w_k[i], x_kv @ w_v[i]
        scores = torch.einsum("...qc,...kc->...qk", q, k) / math.sqrt(q.size(-1))
        weights = scores.softmax(dim=-1)
        if mask is not None:
            weights = weights * mask
        found.append(torch.einsum("...qk,...kc->...qc", weights, v))
    together = torch.stack(found, dim=-1).flatten(-2)
    return together @ w_o


# === exercise: sum-over-heads | function: sum_over_heads | kind: plain | what is wrong: head i gets the rows i, i + heads, i + 2·heads, ... of w_o (dealt out in turn) in place of its block i·d_v to (i + 1)·d_v - 1; shows for heads > 1 and d_v > 1
# told: named
# now: named
# says: rows dealt out in turn
def sum_over_heads(z: torch.Tensor, w_o: torch.Tensor) -> torch.Tensor:
    heads = z.shape[-3]
    return sum(z[..., i, :, :] @ w_o[i::heads] for i in range(heads))


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: subtle | what is wrong: b_v is added after the weighted mean (merge(z) + b_v) and not in project: the same where the weights of a query sum to 1, but a query that may attend to nothing gets b_v·W_O + b_O in place of b_O (shows for b_v other than 0); project returns v without its bias
# told: wrong
# now: named
# says: b_v added after the weighted mean
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model % heads != 0:
            raise ValueError(f"{heads} heads do not divide d_model = {d_model}")
        self.heads = heads
        for name in "qkvo":
            matrix = torch.randn(d_model, d_model) / math.sqrt(d_model)
            self.register_parameter(f"w_{name}", nn.Parameter(matrix))
            self.register_parameter(f"b_{name}", nn.Parameter(torch.zeros(d_model)))

    def project(
        self, x_q: torch.Tensor, x_kv: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        q = split_heads(x_q @ self.w_q + self.b_q, self.heads)
        k = split_heads(x_kv @ self.w_k + self.b_k, self.heads)
        v = split_heads(x_kv @ self.w_v, self.heads)
        return q, k, v

    def attend(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if mask is not None:
            mask = mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        merged = merge_heads(z) + self.b_v
        return merged @ self.w_o + self.b_o, weights

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if x_kv is None:
            x_kv = x_q
        return self.attend(*self.project(x_q, x_kv), mask)


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: double | what is wrong: the matrices are drawn with a standard deviation of 1/sqrt(d_k), the width of a head, in place of 1/sqrt(d_model) (shows for heads > 1) AND the weights are averaged over the heads, (..., T_q, T_k), in place of one matrix for each head
# told: named
# now: named
# says: weights averaged over the heads
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        d_k, rest = divmod(d_model, heads)
        if rest:
            raise ValueError("d_model must be a multiple of heads")
        self.heads = heads
        spread = d_k**-0.5
        self.w_q = nn.Parameter(spread * torch.randn(d_model, d_model))
        self.w_k = nn.Parameter(spread * torch.randn(d_model, d_model))
        self.w_v = nn.Parameter(spread * torch.randn(d_model, d_model))
        self.w_o = nn.Parameter(spread * torch.randn(d_model, d_model))
        self.b_q = nn.Parameter(torch.zeros(d_model))
        self.b_k = nn.Parameter(torch.zeros(d_model))
        self.b_v = nn.Parameter(torch.zeros(d_model))
        self.b_o = nn.Parameter(torch.zeros(d_model))

    def project(
        self, x_q: torch.Tensor, x_kv: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        return (
            split_heads(x_q @ self.w_q + self.b_q, self.heads),
            split_heads(x_kv @ self.w_k + self.b_k, self.heads),
            split_heads(x_kv @ self.w_v + self.b_v, self.heads),
        )

    def attend(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        per_head = None if mask is None else mask[..., None, :, :]
        z, weights = scaled_dot_product_attention(q, k, v, per_head)
        output = merge_heads(z) @ self.w_o + self.b_o
        return output, weights.mean(dim=-3)

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        source = x_q if x_kv is None else x_kv
        q, k, v = self.project(x_q, source)
        return self.attend(q, k, v, mask)


# === exercise: attention-from-torch | function: attention_from_torch | kind: plain | what is wrong: reshape(d, 3·d) is taken for the transpose of in_proj_weight (3·d, d), then cut along the columns: the shapes are right, but w_q, w_k and w_v hold the numbers in another order, each a mixture of queries', keys' and values' rows (for the example by hand w_q = [[1, 2], [7, 8]]); biases and w_o are right
# told: told
# now: named
# says: reshaped in place of transposed
def attention_from_torch(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    d = state["out_proj.bias"].numel()
    turned = state["in_proj_weight"].reshape(d, 3 * d)
    result = {}
    for i, name in enumerate("qkv"):
        piece = slice(i * d, (i + 1) * d)
        result[f"w_{name}"] = turned[:, piece]
        result[f"b_{name}"] = state["in_proj_bias"][piece]
    result["w_o"] = state["out_proj.weight"].t()
    result["b_o"] = state["out_proj.bias"]
    return result


# === exercise: attention-parameters | function: attention_parameters | kind: subtle | what is wrong: the biases of keys and values are counted d_model wide even when the heads are shared; right for kv_heads None or equal to heads, wrong for fewer (d = 6, 3 heads, 1 kv head gives 120 in place of 112)
# told: named
# now: named
# says: the biases of keys and values have the wrong width
def attention_parameters(d_model: int, heads: int, kv_heads: int | None = None) -> int:
    if kv_heads is None:
        kv_heads = heads
    kv_width = kv_heads * (d_model // heads)
    weights = 2 * d_model * d_model + 2 * d_model * kv_width
    biases = 4 * d_model
    return weights + biases


# === exercise: without-heads | function: without_heads | kind: subtle | what is wrong: for an empty list of removed heads the caller's own matrix comes back in place of a copy, so a change of the result changes the layer's w_o; right in all other cases
# told: passed
# now: named
# says: the caller's own matrix is returned
def without_heads(w_o: torch.Tensor, heads: int, removed: list[int]) -> torch.Tensor:
    if not removed:
        return w_o
    blocks = list(w_o.chunk(heads, dim=0))
    for head in removed:
        blocks[head] = torch.zeros_like(blocks[head])
    return torch.cat(blocks, dim=0)


# === exercise: two-lookups | function: two_lookups | kind: plain | what is wrong: query and key change their roles: the mark goes into the query and the constant 1 into the key, so every query scores all keys alike, the weights are uniform, and the output is the mean of all values in both slots
# told: named
# now: named
# says: queries and keys exchanged
def two_lookups() -> dict[str, torch.Tensor]:
    w_q, w_k, w_v, w_o = (torch.zeros(6, 6) for _ in range(4))
    for head in (0, 1):
        first = 3 * head
        w_q[head, first] = 50.0
        w_k[5, first] = 1.0
        for j in range(3):
            w_v[2 + j, first + j] = 1.0
            w_o[first + j, first + j] = 1.0
    return {"w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": w_o}


# === exercise: grouped-query-attention | function: GroupedQueryAttention | kind: subtle | what is wrong: the second check asks whether kv_heads divides d_model in place of heads: GroupedQueryAttention(12, 4, 3) and (8, 2, 4) are built without a ValueError; all valid combinations are right
# told: named
# now: named
# says: kv_heads that does not divide heads is accepted
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        for number in (heads, kv_heads):
            if d_model % number:
                raise ValueError(f"{number} heads do not fit into {d_model} features")
        self.heads, self.kv_heads = heads, kv_heads
        d_kv = d_model // heads * kv_heads

        def draw(columns):
            return nn.Parameter(torch.randn(d_model, columns) / math.sqrt(d_model))

        self.w_q, self.w_o = draw(d_model), draw(d_model)
        self.w_k, self.w_v = draw(d_kv), draw(d_kv)

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        x_kv = x_q if x_kv is None else x_kv
        group = self.heads // self.kv_heads
        q = split_heads(x_q @ self.w_q, self.heads)
        k = repeat_heads(split_heads(x_kv @ self.w_k, self.kv_heads), group)
        v = repeat_heads(split_heads(x_kv @ self.w_v, self.kv_heads), group)
        if mask is not None:
            mask = mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o, weights


# === exercise: grouped-query-attention | function: GroupedQueryAttention | kind: double | what is wrong: w_k and w_v are drawn with a standard deviation of one over the root of their columns (kv_heads·d_k) in place of 1/sqrt(d_model), too large where heads are shared AND the heads of the values (not those of the keys) are repeated in turn, 0, 1, 0, 1, in place of 0, 0, 1, 1; shows for 1 < kv_heads < heads
# told: named
# now: named
# says: keys and values repeated in different ways
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        if d_model % heads != 0 or heads % kv_heads != 0:
            raise ValueError("heads must divide d_model, and kv_heads must divide heads")
        self.heads = heads
        self.kv_heads = kv_heads
        widths = {
            "w_q": d_model,
            "w_k": kv_heads * (d_model // heads),
            "w_v": kv_heads * (d_model // heads),
            "w_o": d_model,
        }
        for name, width in widths.items():
            setattr(self, name, nn.Parameter(torch.randn(d_model, width) / width**0.5))

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if x_kv is None:
            x_kv = x_q
        times = self.heads // self.kv_heads
        q = split_heads(x_q @ self.w_q, self.heads)
        k = repeat_heads(split_heads(x_kv @ self.w_k, self.kv_heads), times)
        v = split_heads(x_kv @ self.w_v, self.kv_heads)
        v = torch.cat([v] * times, dim=-3)
        if mask is not None:
            mask = mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o, weights


# === exercise: texts-served | function: texts_served | kind: plain | what is wrong: every text is charged for the parameters: memory is divided by weights plus cache of one text, in place of subtracting the weights once (first row of the example: 16000 // (4800 + 2560) = 2 in place of 4)
# told: named
# now: named
# says: the weights once for each text
def texts_served(
    memory: int,
    parameters: int,
    layers: int,
    d_model: int,
    heads: int,
    kv_heads: int,
    length: int,
    weight_bits: int = 16,
    cache_bits: int = 16,
) -> int:
    available = 8 * memory
    vector = d_model // heads * cache_bits
    if cache_bits < 16:
        vector += 16
    cache = 2 * layers * length * kv_heads * vector
    needed = parameters * weight_bits + cache
    return available // needed


# === exercise: texts-served | function: texts_served | kind: double | what is wrong: the width of a vector is d_model // kv_heads in place of d_model // heads (shows where kv_heads differs from heads) AND a scale is counted where the cache has fewer bits than the weights, not where it has fewer than 16 (weights and cache of 4 bits get no scale, cache of 16 beside weights of 32 bits gets one)
# told: wrong
# now: named
# says: heads as wide as d_model / kv_heads, and a scale where the cache has fewer bits than the weights
def texts_served(
    memory: int,
    parameters: int,
    layers: int,
    d_model: int,
    heads: int,
    kv_heads: int,
    length: int,
    weight_bits: int = 16,
    cache_bits: int = 16,
) -> int:
    free = memory * 8 - parameters * weight_bits
    if free < 0:
        return 0
    scale = 16 if cache_bits < weight_bits else 0
    bits_of_vector = (d_model // kv_heads) * cache_bits + scale
    vectors = 2 * layers * kv_heads * length
    return free // (vectors * bits_of_vector)
