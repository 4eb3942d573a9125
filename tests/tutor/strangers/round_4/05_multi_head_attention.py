# ruff: noqa
# fmt: off

# === exercise: split-heads | function: split_heads | kind: plain | what is wrong: one reshape to (..., h, T, d/h) without exchanging axes: the tokens' pieces are mixed
# told: named
# now: named
# says: view without transpose
def split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    *batch, T, d = x.shape
    if d % heads != 0:
        raise ValueError(f"{heads} heads do not divide {d}")
    return x.reshape(*batch, heads, T, d // heads)


# === exercise: split-heads | function: split_heads | kind: subtle | what is wrong: splits the features in the order (d/h, h): head i gets every h-th feature
# told: named
# now: named
# says: features dealt out in turn
def split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    if x.shape[-1] % heads:
        raise ValueError("heads must divide d")
    pieces = x.reshape(*x.shape[:-1], x.shape[-1] // heads, heads)
    return pieces.movedim(-1, -3)


# === exercise: merge-heads | function: merge_heads | kind: plain | what is wrong: flattens (d_v, h), the features of the heads are interleaved
# told: named
# now: named
# says: heads interleaved
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    y = x.movedim(-3, -1)  # (..., T, d_v, h)
    return y.flatten(-2)


# === exercise: loop-of-heads | function: loop_of_heads | kind: plain | what is wrong: all heads use the query matrix of head 0 (w_q[0])
# told: named
# now: named
# says: one of the matrices is that of head 0 for all heads
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
    for i in range(w_q.shape[0]):
        z, _ = scaled_dot_product_attention(x_q @ w_q[0], x_kv @ w_k[i], x_kv @ w_v[i], mask)
        outputs.append(z)
    return torch.cat(outputs, dim=-1) @ w_o


# === exercise: loop-of-heads | function: loop_of_heads | kind: double | what is wrong: heads are stacked on a last axis and flattened (interleaved) AND mask is not passed to the heads
# told: named
# now: named
# says: heads interleaved, and mask ignored
def loop_of_heads(
    x_q: torch.Tensor,
    x_kv: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
    w_o: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    heads = []
    for wq, wk, wv in zip(w_q, w_k, w_v, strict=True):
        z, _ = scaled_dot_product_attention(x_q @ wq, x_kv @ wk, x_kv @ wv)
        heads.append(z)
    return torch.stack(heads, dim=-1).flatten(-2) @ w_o


# === exercise: sum-over-heads | function: sum_over_heads | kind: subtle | what is wrong: head i gets every h-th row of w_o (rows i, i+h, ...) and not its block
# told: named
# now: named
# says: rows dealt out in turn
def sum_over_heads(z: torch.Tensor, w_o: torch.Tensor) -> torch.Tensor:
    heads = z.shape[-3]
    total = 0
    for i in range(heads):
        total = total + z[..., i, :, :] @ w_o[i::heads]
    return total


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: subtle | what is wrong: the new axis of a mask with three axes stands at the front, unsqueeze(0): (1, B, T, T), so the batch is laid over the heads
# told: named
# now: named
# says: mask laid over the heads
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model % heads != 0:
            raise ValueError(f"{heads} heads do not divide d_model = {d_model}")
        self.heads = heads

        def matrix():
            return nn.Parameter(torch.randn(d_model, d_model) / math.sqrt(d_model))

        self.w_q, self.w_k, self.w_v, self.w_o = (matrix() for _ in range(4))
        self.b_q = nn.Parameter(torch.zeros(d_model))
        self.b_k = nn.Parameter(torch.zeros(d_model))
        self.b_v = nn.Parameter(torch.zeros(d_model))
        self.b_o = nn.Parameter(torch.zeros(d_model))

    def project(self, x_q, x_kv):
        q = split_heads(x_q @ self.w_q + self.b_q, self.heads)
        k = split_heads(x_kv @ self.w_k + self.b_k, self.heads)
        v = split_heads(x_kv @ self.w_v + self.b_v, self.heads)
        return q, k, v

    def attend(self, q, k, v, mask=None):
        if mask is not None and mask.ndim == 3:
            mask = mask.unsqueeze(0)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o + self.b_o, weights

    def forward(self, x_q, x_kv=None, mask=None):
        if x_kv is None:
            x_kv = x_q
        q, k, v = self.project(x_q, x_kv)
        return self.attend(q, k, v, mask)


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: double | what is wrong: weights are averaged over the heads as nn.MultiheadAttention does AND the output bias is added before w_o
# told: named
# now: named
# says: weights averaged over the heads, and a bias is added before the product
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model % heads:
            raise ValueError("d_model must be divisible by heads")
        self.heads = heads
        for name in ("q", "k", "v", "o"):
            w = torch.randn(d_model, d_model) * d_model**-0.5
            self.register_parameter("w_" + name, nn.Parameter(w))
            self.register_parameter("b_" + name, nn.Parameter(torch.zeros(d_model)))

    def project(self, x_q, x_kv):
        return (
            split_heads(x_q @ self.w_q + self.b_q, self.heads),
            split_heads(x_kv @ self.w_k + self.b_k, self.heads),
            split_heads(x_kv @ self.w_v + self.b_v, self.heads),
        )

    def attend(self, q, k, v, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        output = (merge_heads(z) + self.b_o) @ self.w_o
        return output, weights.mean(dim=-3)

    def forward(self, x_q, x_kv=None, mask=None):
        return self.attend(*self.project(x_q, x_q if x_kv is None else x_kv), mask)


# === exercise: attention-from-torch | function: attention_from_torch | kind: plain | what is wrong: the output projection is not transposed, the other three are
# told: named
# now: named
# says: out_proj.weight not transposed
def attention_from_torch(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    w_q, w_k, w_v = state["in_proj_weight"].chunk(3, dim=0)
    b_q, b_k, b_v = state["in_proj_bias"].chunk(3)
    return {
        "w_q": w_q.T,
        "w_k": w_k.T,
        "w_v": w_v.T,
        "w_o": state["out_proj.weight"],
        "b_q": b_q,
        "b_k": b_k,
        "b_v": b_v,
        "b_o": state["out_proj.bias"],
    }


# === exercise: attention-parameters | function: attention_parameters | kind: double | what is wrong: keys' and values' biases are counted with d_model numbers AND result is a float (true division)
# told: named
# now: named
# says: the biases of keys and values have the wrong width
def attention_parameters(d_model: int, heads: int, kv_heads: int | None = None) -> int:
    if kv_heads is None:
        kv_heads = heads
    d_k = d_model / heads
    queries = output = d_model * d_model + d_model
    keys = values = d_model * kv_heads * d_k + d_model
    return queries + keys + values + output


# === exercise: without-heads | function: without_heads | kind: subtle | what is wrong: no copy is made if reshape returns a view: the layer's own w_o is zeroed
# told: named
# now: named
# says: changes its argument in place
def without_heads(w_o: torch.Tensor, heads: int, removed: list[int]) -> torch.Tensor:
    blocks = w_o.reshape(heads, -1, w_o.shape[-1])
    blocks[removed] = 0
    return blocks.reshape(w_o.shape)


# === exercise: two-lookups | function: two_lookups | kind: subtle | what is wrong: the gap of scores is too small (a factor of 10, divided by √3 leaves e^-5.8 = 0.003 for each other token)
# told: named
# now: named
# says: the attention is not sharp enough
def two_lookups() -> dict[str, torch.Tensor]:
    w_q, w_k, w_v, w_o = (torch.zeros(6, 6) for _ in range(4))
    w_q[5, 0] = 10.0
    w_q[5, 3] = 10.0
    w_k[0, 0] = 1.0
    w_k[1, 3] = 1.0
    for i in range(3):
        w_v[2 + i, i] = 1.0
        w_v[2 + i, 3 + i] = 1.0
        w_o[i, i] = 1.0
        w_o[3 + i, 3 + i] = 1.0
    return {"w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": w_o}


# === exercise: grouped-query-attention | function: GroupedQueryAttention | kind: subtle | what is wrong: keys and values are dealt out in turn (repeat in place of repeat_heads); equal for one kv head or as many as heads
# told: named
# now: named
# says: kv heads dealt out in turn
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        if d_model % heads or heads % kv_heads:
            raise ValueError("sizes do not fit")
        self.heads, self.kv_heads = heads, kv_heads
        d_kv = kv_heads * (d_model // heads)
        s = d_model**-0.5
        self.w_q = nn.Parameter(torch.randn(d_model, d_model) * s)
        self.w_k = nn.Parameter(torch.randn(d_model, d_kv) * s)
        self.w_v = nn.Parameter(torch.randn(d_model, d_kv) * s)
        self.w_o = nn.Parameter(torch.randn(d_model, d_model) * s)

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        q = split_heads(x_q @ self.w_q, self.heads)
        k = split_heads(x_kv @ self.w_k, self.kv_heads)
        v = split_heads(x_kv @ self.w_v, self.kv_heads)
        times = self.heads // self.kv_heads
        k = torch.cat([k] * times, dim=-3)
        v = torch.cat([v] * times, dim=-3)
        if mask is not None:
            mask = mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o, weights


# === exercise: grouped-query-attention | function: GroupedQueryAttention | kind: double | what is wrong: w_k and w_v are drawn with the root of their second size AND kv_heads that does not divide heads is not refused but rounded down
# told: named
# now: named
# says: kv_heads that does not divide heads is accepted
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        if d_model % heads != 0:
            raise ValueError(f"heads = {heads} does not divide d_model = {d_model}")
        self.heads = heads
        self.group = max(heads // kv_heads, 1)
        self.kv_heads = heads // self.group
        d_k = d_model // heads
        width = self.kv_heads * d_k
        self.w_q = nn.Parameter(torch.randn(d_model, d_model) / math.sqrt(d_model))
        self.w_k = nn.Parameter(torch.randn(d_model, width) / math.sqrt(width))
        self.w_v = nn.Parameter(torch.randn(d_model, width) / math.sqrt(width))
        self.w_o = nn.Parameter(torch.randn(d_model, d_model) / math.sqrt(d_model))

    def forward(self, x_q, x_kv=None, mask=None):
        if x_kv is None:
            x_kv = x_q
        if mask is not None:
            mask = mask[..., None, :, :]
        q = split_heads(x_q @ self.w_q, self.heads)
        k = repeat_heads(split_heads(x_kv @ self.w_k, self.kv_heads), self.group)
        v = repeat_heads(split_heads(x_kv @ self.w_v, self.kv_heads), self.group)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o, weights


# === exercise: texts-served | function: texts_served | kind: double | what is wrong: one scale for each text and layer rather than each vector AND a negative number comes out if the parameters do not fit
# told: named
# now: named
# says: one scale for all positions, and a negative number of texts
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
    left = 8 * memory - parameters * weight_bits
    d_k = d_model // heads
    per_layer = 2 * kv_heads * d_k * length * cache_bits
    if cache_bits < 16:
        per_layer += 2 * 16
    return left // (layers * per_layer)


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: subtle | what is wrong: values are projected with w_k (copy and paste), w_v is never used
# told: named
# now: named
# says: values made by the keys' matrix
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model % heads != 0:
            raise ValueError("heads must divide d_model")
        self.heads = heads
        for letter in "qkvo":
            w = nn.Parameter(torch.randn(d_model, d_model) / math.sqrt(d_model))
            setattr(self, f"w_{letter}", w)
            setattr(self, f"b_{letter}", nn.Parameter(torch.zeros(d_model)))

    def project(self, x_q, x_kv):
        q = x_q @ self.w_q + self.b_q
        k = x_kv @ self.w_k + self.b_k
        v = x_kv @ self.w_k + self.b_v
        return tuple(split_heads(t, self.heads) for t in (q, k, v))

    def attend(self, q, k, v, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(-3)
        z, w = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o + self.b_o, w

    def forward(self, x_q, x_kv=None, mask=None):
        if x_kv is None:
            x_kv = x_q
        return self.attend(*self.project(x_q, x_kv), mask=mask)
