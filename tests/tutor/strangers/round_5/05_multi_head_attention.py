# ruff: noqa
# fmt: off

# === exercise: split-heads | function: split_heads | kind: subtle | what is wrong: deals the features out in turn (head i gets i, i+h, ...), not in neighbouring pieces
# told: named
# now: named
# says: features dealt out in turn
def split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    *leading, length, d = x.shape
    if d % heads:
        raise ValueError(f"{heads} heads do not divide {d} features")
    x = x.reshape(*leading, length, d // heads, heads)
    return x.movedim(-1, -3)


# === exercise: merge-heads | function: merge_heads | kind: plain | what is wrong: joins by one reshape, without exchanging heads and tokens
# told: named
# now: named
# says: merged without transpose
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    *batch, heads, length, d_v = x.shape
    return x.reshape(*batch, length, heads * d_v)


# === exercise: loop-of-heads | function: loop_of_heads | kind: double | what is wrong: stacks the heads along a new last axis, so their features interleave AND divides the scores by the root of d_model, not of d_k
# told: useless
# now: named
# says: heads interleaved, and scaled by √d_model in place of √d_k
def loop_of_heads(
    x_q: torch.Tensor,
    x_kv: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
    w_o: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    d_model = x_q.shape[-1]
    outputs = []
    for i in range(len(w_q)):
        q, k, v = x_q @ w_q[i], x_kv @ w_k[i], x_kv @ w_v[i]
        scores = q @ k.transpose(-2, -1) / math.sqrt(d_model)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
        weights = torch.softmax(scores, dim=-1).nan_to_num(0.0)
        outputs.append(weights @ v)
    joined = torch.stack(outputs, dim=-1).flatten(-2)
    return joined @ w_o


# === exercise: sum-over-heads | function: sum_over_heads | kind: subtle | what is wrong: gives head i every h-th row of w_o, from i on, not a block of neighbours
# told: named
# now: named
# says: rows dealt out in turn
def sum_over_heads(z: torch.Tensor, w_o: torch.Tensor) -> torch.Tensor:
    heads = z.shape[-3]
    return sum(z[..., i, :, :] @ w_o[i::heads] for i in range(heads))


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: plain | what is wrong: returns the weights averaged over the heads, as PyTorch's layer does by default
# told: named
# now: named
# says: weights averaged over the heads
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model % heads:
            raise ValueError("heads must divide d_model")
        self.heads = heads
        for letter in "qkvo":
            matrix = torch.randn(d_model, d_model) / math.sqrt(d_model)
            self.register_parameter(f"w_{letter}", nn.Parameter(matrix))
            self.register_parameter(f"b_{letter}", nn.Parameter(torch.zeros(d_model)))

    def project(self, x_q, x_kv):
        q = split_heads(x_q @ self.w_q + self.b_q, self.heads)
        k = split_heads(x_kv @ self.w_k + self.b_k, self.heads)
        v = split_heads(x_kv @ self.w_v + self.b_v, self.heads)
        return q, k, v

    def attend(self, q, k, v, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o + self.b_o, weights.mean(dim=-3)

    def forward(self, x_q, x_kv=None, mask=None):
        if x_kv is None:
            x_kv = x_q
        return self.attend(*self.project(x_q, x_kv), mask)


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: double | what is wrong: the matrices start with a spread of 1/√d_k, d_k the width of a head AND the output projection has no bias added
# told: named
# now: named
# says: the biases are missing
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model % heads != 0:
            raise ValueError(f"{heads} does not divide {d_model}")
        self.heads, self.d_k = heads, d_model // heads
        scale = self.d_k**-0.5
        self.w_q = nn.Parameter(scale * torch.randn(d_model, d_model))
        self.w_k = nn.Parameter(scale * torch.randn(d_model, d_model))
        self.w_v = nn.Parameter(scale * torch.randn(d_model, d_model))
        self.w_o = nn.Parameter(scale * torch.randn(d_model, d_model))
        self.b_q = nn.Parameter(torch.zeros(d_model))
        self.b_k = nn.Parameter(torch.zeros(d_model))
        self.b_v = nn.Parameter(torch.zeros(d_model))
        self.b_o = nn.Parameter(torch.zeros(d_model))

    def project(
        self, x_q: torch.Tensor, x_kv: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        projected = (
            x_q @ self.w_q + self.b_q,
            x_kv @ self.w_k + self.b_k,
            x_kv @ self.w_v + self.b_v,
        )
        return tuple(split_heads(each, self.heads) for each in projected)

    def attend(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        mask = None if mask is None else mask[..., None, :, :]
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o, weights

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        x_kv = x_q if x_kv is None else x_kv
        q, k, v = self.project(x_q, x_kv)
        return self.attend(q, k, v, mask)


# === exercise: attention-from-torch | function: attention_from_torch | kind: subtle | what is wrong: the output projection's matrix is not transposed
# told: named
# now: named
# says: out_proj.weight not transposed
def attention_from_torch(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    result = {"w_o": state["out_proj.weight"], "b_o": state["out_proj.bias"]}
    weights = state["in_proj_weight"].chunk(3)
    biases = state["in_proj_bias"].chunk(3)
    for letter, weight, bias in zip("qkv", weights, biases):
        result[f"w_{letter}"] = weight.T
        result[f"b_{letter}"] = bias
    return result


# === exercise: attention-parameters | function: attention_parameters | kind: plain | what is wrong: leaves out the biases
# told: named
# now: named
# says: the biases are missing
def attention_parameters(d_model: int, heads: int, kv_heads: int | None = None) -> int:
    kv_heads = heads if kv_heads is None else kv_heads
    d_k = d_model // heads
    queries_and_output = 2 * d_model * d_model
    keys_and_values = 2 * d_model * kv_heads * d_k
    return queries_and_output + keys_and_values


# === exercise: without-heads | function: without_heads | kind: double | what is wrong: writes into the layer's own matrix AND counts the removed heads from 1
# told: named
# now: named
# says: changes its argument in place
def without_heads(w_o: torch.Tensor, heads: int, removed: list[int]) -> torch.Tensor:
    d_v = w_o.shape[0] // heads
    result = w_o.detach()
    for head in removed:
        result[(head - 1) * d_v : head * d_v] = 0
    return result


# === exercise: without-heads | function: without_heads | kind: plain | what is wrong: puts zeros in the columns, not in the rows
# told: named
# now: named
# says: removed in the columns
def without_heads(w_o: torch.Tensor, heads: int, removed: list[int]) -> torch.Tensor:
    result = w_o.clone()
    width = w_o.shape[1] // heads
    for i in removed:
        result[:, i * width : (i + 1) * width] = 0.0
    return result


# === exercise: two-lookups | function: two_lookups | kind: subtle | what is wrong: the gap of scores is 12 before the division by √3, so about 7: the other tokens keep too much weight in long sequences
# told: named
# now: named
# says: the attention is not sharp enough
def two_lookups() -> dict[str, torch.Tensor]:
    gap = 12.0  # exp(-12) is 6e-6
    w_q, w_k, w_v = torch.zeros(6, 6), torch.zeros(6, 6), torch.zeros(6, 6)
    w_q[5, 0] = w_q[5, 3] = 1.0
    w_k[0, 0] = gap  # mark A
    w_k[1, 3] = gap  # mark B
    for i in range(3):
        w_v[2 + i, i] = 1.0
        w_v[2 + i, 3 + i] = 1.0
    return {"w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": torch.eye(6)}


# === exercise: grouped-query-attention | function: GroupedQueryAttention | kind: double | what is wrong: deals the shared heads out in turn (repeat), not in neighbouring groups AND does not refuse kv_heads that do not divide heads
# told: named
# now: named
# says: kv heads dealt out in turn
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        if d_model % heads:
            raise ValueError("heads must divide d_model")
        self.heads, self.kv_heads = heads, kv_heads
        width = kv_heads * (d_model // heads)
        root = math.sqrt(d_model)
        self.w_q = nn.Parameter(torch.randn(d_model, d_model) / root)
        self.w_k = nn.Parameter(torch.randn(d_model, width) / root)
        self.w_v = nn.Parameter(torch.randn(d_model, width) / root)
        self.w_o = nn.Parameter(torch.randn(d_model, d_model) / root)

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
        k = split_heads(x_kv @ self.w_k, self.kv_heads)
        v = split_heads(x_kv @ self.w_v, self.kv_heads)
        k = torch.cat([k] * times, dim=-3)
        v = torch.cat([v] * times, dim=-3)
        if mask is not None:
            mask = mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o, weights


# === exercise: texts-served | function: texts_served | kind: subtle | what is wrong: counts a scale at 16 bits, too (<= for <)
# told: named
# now: named
# says: a scale where none is needed
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
    vector = d_model // heads * cache_bits
    if cache_bits <= 16:
        vector += 16
    text = 2 * layers * length * kv_heads * vector
    return max(0, left // text)


# === exercise: texts-served | function: texts_served | kind: plain | what is wrong: counts the memory as if its bytes were bits
# told: useless
# now: named
# says: bytes taken for bits
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
    free = memory - parameters * weight_bits
    if free <= 0:
        return 0
    d_k = d_model // heads
    scale = 16 if cache_bits < 16 else 0
    per_token = layers * 2 * kv_heads * (d_k * cache_bits + scale)
    return free // (per_token * length)
