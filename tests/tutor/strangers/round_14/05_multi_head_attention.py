# ruff: noqa
# fmt: off

# === exercise: split-heads | function: split_heads | kind: plain | what is wrong: cuts the last axis into (d/h, h), so the features are dealt out to the heads in turn
# told: named
# now: named
# says: features dealt out in turn
def split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    width = x.shape[-1]
    if width % heads != 0:
        raise ValueError(f"{heads} heads do not divide d = {width}")
    pieces = x.unflatten(-1, (width // heads, heads))
    return pieces.movedim(-1, -3)


# === exercise: split-heads | function: split_heads | kind: subtle | what is wrong: stacks the heads on axis 0, which is right only without a batch; with leading axes the heads come before the batch
# told: named
# now: named
# says: the heads stand before the batch
def split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    d = x.size(-1)
    if d % heads:
        raise ValueError("heads must divide d, got d=%d and heads=%d" % (d, heads))
    per_head = torch.split(x, d // heads, dim=-1)  # every piece has all tokens
    return torch.stack(per_head, dim=0)


# === exercise: split-heads | function: split_heads | kind: double | what is wrong: reshapes in one step without exchanging tokens and heads, and refuses with an AssertionError in place of a ValueError
# told: named
# now: named
# says: view without transpose
def split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    *lead, T, d = x.shape
    assert d % heads == 0, "heads must divide the number of features"
    d_k = d // heads
    return x.reshape(*lead, heads, T, d_k)


# === exercise: merge-heads | function: merge_heads | kind: plain | what is wrong: reshapes without exchanging heads and tokens first
# told: named
# now: named
# says: merged without transpose
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    h, T, d_v = x.shape[-3:]
    return x.contiguous().view(*x.shape[:-3], T, h * d_v)


# === exercise: merge-heads | function: merge_heads | kind: subtle | what is wrong: takes the heads from axis 1 counted from the front, which is right only with exactly one batch axis
# told: named
# now: named
# says: only works with a batch
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    side_by_side = [x[:, i] for i in range(x.shape[1])]
    return torch.cat(side_by_side, dim=-1)


# === exercise: merge-heads | function: merge_heads | kind: double | what is wrong: joins the axes in the order (d_v, h), which interleaves the heads, and melts all leading axes into the axis of the tokens
# told: shown
# now: named
# says: heads interleaved, and the leading axes are lost
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    heads, d_v = x.shape[-3], x.shape[-1]
    tokens_first = x.transpose(-3, -2).transpose(-2, -1)
    return tokens_first.reshape(-1, heads * d_v)


# === exercise: loop-of-heads | function: loop_of_heads | kind: plain | what is wrong: stops after putting the heads side by side, w_o is never used
# told: named
# now: named
# says: no output projection
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
        z, _ = scaled_dot_product_attention(x_q @ wq, x_kv @ wk, x_kv @ wv, mask)
        outputs.append(z)
    return torch.cat(outputs, dim=-1)


# === exercise: loop-of-heads | function: loop_of_heads | kind: subtle | what is wrong: stacks the heads behind the features and flattens, which interleaves them; the same only for d_v = 1 as in the example by hand
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
    def head(i):
        q = x_q @ w_q[i]
        k = x_kv @ w_k[i]
        v = x_kv @ w_v[i]
        return scaled_dot_product_attention(q, k, v, mask)[0]

    z = torch.stack([head(i) for i in range(w_q.shape[0])], dim=-1)
    return z.flatten(start_dim=-2) @ w_o


# === exercise: loop-of-heads | function: loop_of_heads | kind: double | what is wrong: inverts the mask as for nn.MultiheadAttention, and averages the heads' contributions in place of adding them
# told: named
# now: named
# says: the heads are averaged, and mask inverted
def loop_of_heads(
    x_q: torch.Tensor,
    x_kv: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
    w_o: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    h, _, d_v = w_v.shape
    blocked = None if mask is None else ~mask
    total = 0
    for i in range(h):
        z_i, _w = scaled_dot_product_attention(
            x_q @ w_q[i], x_kv @ w_k[i], x_kv @ w_v[i], blocked
        )
        total = total + z_i @ w_o[i * d_v : (i + 1) * d_v]
    return total / h


# === exercise: sum-over-heads | function: sum_over_heads | kind: plain | what is wrong: sums over the axis of the tokens in place of the axis of the heads
# told: named
# now: named
# says: summed over the tokens
def sum_over_heads(z: torch.Tensor, w_o: torch.Tensor) -> torch.Tensor:
    h, d_v = z.shape[-3], z.shape[-1]
    blocks = w_o.reshape(h, d_v, -1)
    contributions = z @ blocks
    return contributions.sum(dim=-2)


# === exercise: sum-over-heads | function: sum_over_heads | kind: double | what is wrong: gives head i every h-th row of w_o in place of its own block of rows, and takes the mean over the heads in place of the sum
# told: named
# now: named
# says: the mean over the heads, and rows dealt out in turn
def sum_over_heads(z: torch.Tensor, w_o: torch.Tensor) -> torch.Tensor:
    heads = z.shape[-3]
    parts = []
    for i in range(heads):
        rows = w_o[i::heads]
        parts.append(torch.einsum("...tv,vd->...td", z[..., i, :, :], rows))
    return torch.stack(parts).mean(dim=0)


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: plain | what is wrong: hands on the mask without an axis for the heads, so the mask's batch is laid over the heads
# told: named
# now: named
# says: mask laid over the heads
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model % heads:
            raise ValueError(f"{heads} heads do not divide d_model = {d_model}")
        self.heads = heads
        for letter in "qkvo":
            w = nn.Parameter(torch.randn(d_model, d_model) / math.sqrt(d_model))
            b = nn.Parameter(torch.zeros(d_model))
            setattr(self, "w_" + letter, w)
            setattr(self, "b_" + letter, b)

    def project(
        self, x_q: torch.Tensor, x_kv: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        q = split_heads(x_q @ self.w_q + self.b_q, self.heads)
        k = split_heads(x_kv @ self.w_k + self.b_k, self.heads)
        v = split_heads(x_kv @ self.w_v + self.b_v, self.heads)
        return q, k, v

    def attend(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o + self.b_o, weights

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if x_kv is None:
            x_kv = x_q
        q, k, v = self.project(x_q, x_kv)
        return self.attend(q, k, v, mask)


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: subtle | what is wrong: the four biases are one and the same parameter under four names, so they cannot be loaded or learnt separately
# told: wrong
# now: named
# says: one parameter under several names
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model % heads != 0:
            raise ValueError("heads has to divide d_model")
        self.heads = heads
        std = d_model**-0.5

        def matrix():
            return nn.Parameter(torch.empty(d_model, d_model).normal_(0.0, std))

        self.w_q, self.w_k, self.w_v, self.w_o = (matrix() for _ in range(4))
        self.b_q = self.b_k = self.b_v = self.b_o = nn.Parameter(torch.zeros(d_model))

    def project(
        self, x_q: torch.Tensor, x_kv: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        queries = x_q @ self.w_q + self.b_q
        keys = x_kv @ self.w_k + self.b_k
        values = x_kv @ self.w_v + self.b_v
        return tuple(split_heads(part, self.heads) for part in (queries, keys, values))

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
        output = merge_heads(z) @ self.w_o + self.b_o
        return output, weights

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        x_kv = x_q if x_kv is None else x_kv
        return self.attend(*self.project(x_q, x_kv), mask)


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: double | what is wrong: returns the weights averaged over the heads, and forgets b_o in the output projection
# told: named
# now: named
# says: weights averaged over the heads, and the biases are missing
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model % heads:
            raise ValueError("d_model is not a multiple of heads")
        self.h = heads
        scale = 1 / math.sqrt(d_model)
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
        q = x_q @ self.w_q + self.b_q
        k = x_kv @ self.w_k + self.b_k
        v = x_kv @ self.w_v + self.b_v
        return split_heads(q, self.h), split_heads(k, self.h), split_heads(v, self.h)

    def attend(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        head_mask = mask[..., None, :, :] if mask is not None else None
        z, weights = scaled_dot_product_attention(q, k, v, head_mask)
        return merge_heads(z) @ self.w_o, weights.mean(dim=-3)

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        source = x_q if x_kv is None else x_kv
        q, k, v = self.project(x_q, source)
        return self.attend(q, k, v, mask=mask)


# === exercise: attention-from-torch | function: attention_from_torch | kind: plain | what is wrong: no matrix is transposed
# told: named
# now: named
# says: weights not transposed
def attention_from_torch(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    w_q, w_k, w_v = state["in_proj_weight"].chunk(3)
    b_q, b_k, b_v = state["in_proj_bias"].chunk(3)
    return {
        "w_q": w_q,
        "w_k": w_k,
        "w_v": w_v,
        "w_o": state["out_proj.weight"],
        "b_q": b_q,
        "b_k": b_k,
        "b_v": b_v,
        "b_o": state["out_proj.bias"],
    }


# === exercise: attention-from-torch | function: attention_from_torch | kind: double | what is wrong: cuts the stack in the order key, query, value, and leaves out_proj.weight as it is, not transposed
# told: named
# now: named
# says: out_proj.weight not transposed, and the three parts in another order
def attention_from_torch(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    d = state["out_proj.bias"].shape[0]
    translated = {}
    for number, letter in enumerate("kqv"):
        rows = slice(number * d, (number + 1) * d)
        translated[f"w_{letter}"] = state["in_proj_weight"][rows].T.clone()
        translated[f"b_{letter}"] = state["in_proj_bias"][rows].clone()
    translated["w_o"] = state["out_proj.weight"].clone()
    translated["b_o"] = state["out_proj.bias"].clone()
    return translated


# === exercise: attention-parameters | function: attention_parameters | kind: subtle | what is wrong: counts d biases for keys and values, too, which is right only when as many kv heads as heads
# told: named
# now: named
# says: the biases of keys and values have the wrong width
def attention_parameters(d_model: int, heads: int, kv_heads: int | None = None) -> int:
    if kv_heads is None:
        kv_heads = heads
    kv_width = kv_heads * (d_model // heads)
    matrices = 2 * d_model * d_model + 2 * d_model * kv_width
    biases = 4 * d_model
    return matrices + biases


# === exercise: attention-parameters | function: attention_parameters | kind: double | what is wrong: divides with / and so returns a float, and counts no biases
# told: named
# now: named
# says: the biases are missing
def attention_parameters(d_model: int, heads: int, kv_heads: int | None = None) -> int:
    n_kv = heads if kv_heads is None else kv_heads
    d_k = d_model / heads
    query = output = d_model**2
    key = value = d_model * n_kv * d_k
    return sum([query, key, value, output])


# === exercise: without-heads | function: without_heads | kind: plain | what is wrong: puts the zeros into columns in place of rows
# told: named
# now: named
# says: removed in the columns
def without_heads(w_o: torch.Tensor, heads: int, removed: list[int]) -> torch.Tensor:
    result = w_o.clone()
    width = result.shape[0] // heads
    for head in removed:
        result[:, head * width : (head + 1) * width] = 0
    return result


# === exercise: without-heads | function: without_heads | kind: subtle | what is wrong: with an empty list returns the caller's matrix itself in place of a copy
# told: named
# now: named
# says: the caller's own matrix is returned
def without_heads(w_o: torch.Tensor, heads: int, removed: list[int]) -> torch.Tensor:
    if len(removed) == 0:
        return w_o  # nothing to switch off
    owner = torch.arange(w_o.shape[0]) // (w_o.shape[0] // heads)
    gone = torch.isin(owner, torch.tensor(removed))
    return w_o.masked_fill(gone[:, None], 0.0)


# === exercise: two-lookups | function: two_lookups | kind: plain | what is wrong: the queries are made of the marks in place of the coordinate that is always 1, so only the marked tokens look something up
# told: named
# now: named
# says: only the marked tokens ask
def two_lookups() -> dict[str, torch.Tensor]:
    w_q, w_k, w_v, w_o = (torch.zeros(6, 6) for _ in range(4))
    # head 0 searches mark A
    w_q[0, 0] = 100.0
    w_k[0, 0] = 1.0
    # head 1 searches mark B
    w_q[1, 3] = 100.0
    w_k[1, 3] = 1.0
    for i in range(3):
        w_v[2 + i, i] = 1.0
        w_v[2 + i, 3 + i] = 1.0
        w_o[i, i] = 1.0
        w_o[3 + i, 3 + i] = 1.0
    return {"w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": w_o}


# === exercise: two-lookups | function: two_lookups | kind: subtle | what is wrong: chooses the gap from 44·exp(-s) below 0.001 but forgets the division by the root of 3, so the attention is not sharp enough
# told: named
# now: named
# says: the attention is not sharp enough
def two_lookups() -> dict[str, torch.Tensor]:
    # 11 other tokens, each at most 4 away: 44 * exp(-s) has to be below 0.001
    gap = math.ceil(math.log(44 / 0.001))
    w_q = torch.zeros(6, 6)
    w_q[5, [0, 3]] = float(gap)
    w_k = torch.zeros(6, 6)
    w_k[0, 0] = w_k[1, 3] = 1.0
    w_v = torch.zeros(6, 6)
    w_v[2:5, :3] = torch.eye(3)
    w_v[2:5, 3:] = torch.eye(3)
    return dict(w_q=w_q, w_k=w_k, w_v=w_v, w_o=torch.eye(6))


# === exercise: grouped-query-attention | function: GroupedQueryAttention | kind: plain | what is wrong: the shared heads are dealt out in turn (0, 1, 0, 1) in place of to neighbours
# told: named
# now: named
# says: kv heads dealt out in turn
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        if d_model % heads or heads % kv_heads:
            raise ValueError("heads must divide d_model and kv_heads must divide heads")
        self.heads, self.kv_heads = heads, kv_heads
        d_kv = kv_heads * (d_model // heads)
        root = math.sqrt(d_model)
        self.w_q = nn.Parameter(torch.randn(d_model, d_model) / root)
        self.w_k = nn.Parameter(torch.randn(d_model, d_kv) / root)
        self.w_v = nn.Parameter(torch.randn(d_model, d_kv) / root)
        self.w_o = nn.Parameter(torch.randn(d_model, d_model) / root)

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if x_kv is None:
            x_kv = x_q
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


# === exercise: grouped-query-attention | function: GroupedQueryAttention | kind: subtle | what is wrong: an attention of its own with -1e9 gives a query that may attend to nothing equal weights in place of zeros
# told: named
# now: named
# says: a large negative number in place of −∞
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        if d_model % heads != 0:
            raise ValueError(f"d_model={d_model} cannot be cut into {heads} heads")
        if heads % kv_heads != 0:
            raise ValueError(f"{heads} heads cannot share {kv_heads} kv heads")
        self.heads = heads
        self.kv_heads = kv_heads
        self.d_k = d_model // heads

        def draw(columns):
            return nn.Parameter(torch.randn(d_model, columns) * d_model**-0.5)

        self.w_q = draw(d_model)
        self.w_k = draw(kv_heads * self.d_k)
        self.w_v = draw(kv_heads * self.d_k)
        self.w_o = draw(d_model)

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
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(~mask.unsqueeze(-3), -1e9)
        weights = scores.softmax(dim=-1)
        output = merge_heads(weights @ v) @ self.w_o
        return output, weights


# === exercise: grouped-query-attention | function: GroupedQueryAttention | kind: double | what is wrong: does not refuse kv_heads that do not divide heads, and draws w_k and w_v with 1 over the root of their width out in place of the root of d_model
# told: named
# now: named
# says: kv_heads that does not divide heads is accepted
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        if d_model % heads:
            raise ValueError("heads does not divide d_model")
        self.heads = heads
        self.kv_heads = kv_heads
        shapes = {
            "w_q": (d_model, d_model),
            "w_k": (d_model, kv_heads * d_model // heads),
            "w_v": (d_model, kv_heads * d_model // heads),
            "w_o": (d_model, d_model),
        }
        for name, shape in shapes.items():
            values = torch.randn(shape) / math.sqrt(shape[1])
            self.register_parameter(name, nn.Parameter(values))

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
        k, v = (
            repeat_heads(split_heads(x_kv @ w, self.kv_heads), times)
            for w in (self.w_k, self.w_v)
        )
        mask = None if mask is None else mask[..., None, :, :]
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o, weights


# === exercise: texts-served | function: texts_served | kind: subtle | what is wrong: counts in bytes and rounds every vector up to whole bytes, which shows only when the bits of a vector are no multiple of 8
# told: named
# now: named
# says: vectors rounded up to bytes
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
    def to_bytes(bits):
        return -(-bits // 8)  # round up

    free = memory - to_bytes(parameters * weight_bits)
    d_k = d_model // heads
    scale = 16 if cache_bits < 16 else 0
    vector = to_bytes(d_k * cache_bits + scale)
    text = 2 * layers * length * kv_heads * vector
    return max(0, free // text)


# === exercise: texts-served | function: texts_served | kind: double | what is wrong: gives a negative number when the parameters do not fit, and counts one scale for a key and its value together in place of one for each vector
# told: named
# now: named
# says: one scale for a key and its value, and a negative number of texts
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
    bits_left = 8 * memory - parameters * weight_bits
    head_width = d_model // heads
    key_and_value = 2 * head_width * cache_bits
    if cache_bits < 16:
        key_and_value += 16
    bits_of_text = layers * length * kv_heads * key_and_value
    return bits_left // bits_of_text


# === exercise: without-heads | function: without_heads | kind: plain | what is wrong: puts the zeros into columns instead of the rows of the removed heads
# told: named
# now: named
# says: removed in the columns
def without_heads(w_o: torch.Tensor, heads: int, removed: list[int]) -> torch.Tensor:
    new = w_o.clone()
    d_v = w_o.shape[0] // heads
    for head in removed:
        begin = head * d_v
        new[:, begin : begin + d_v] = 0.0
    return new


# === exercise: attention-from-torch | function: attention_from_torch | kind: plain | what is wrong: out_proj.weight is not transposed
# told: named
# now: named
# says: out_proj.weight not transposed
def attention_from_torch(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    new = {}
    matrices = state["in_proj_weight"].chunk(3, dim=0)
    biases = state["in_proj_bias"].chunk(3, dim=0)
    for letter, matrix, bias in zip("qkv", matrices, biases):
        new[f"w_{letter}"] = matrix.T.contiguous()
        new[f"b_{letter}"] = bias.clone()
    new["w_o"] = state["out_proj.weight"].clone()
    new["b_o"] = state["out_proj.bias"].clone()
    return new


# === exercise: grouped-query-attention | function: GroupedQueryAttention | kind: subtle | what is wrong: deals the kv heads out in turn (0, 1, 0, 1) instead of giving neighbours the same head (equal for 1 kv head and for as many as heads)
# told: named
# now: named
# says: kv heads dealt out in turn
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        if d_model % heads != 0:
            raise ValueError(f"{heads} heads do not divide {d_model}")
        if heads % kv_heads != 0:
            raise ValueError(f"{kv_heads} kv heads do not divide {heads} heads")
        self.heads, self.kv_heads = heads, kv_heads
        width = kv_heads * (d_model // heads)

        def matrix(columns):
            return nn.Parameter(torch.randn(d_model, columns) / math.sqrt(d_model))

        self.w_q, self.w_o = matrix(d_model), matrix(d_model)
        self.w_k, self.w_v = matrix(width), matrix(width)

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        source = x_q if x_kv is None else x_kv
        q = split_heads(x_q @ self.w_q, self.heads)
        k = split_heads(source @ self.w_k, self.kv_heads)
        v = split_heads(source @ self.w_v, self.kv_heads)
        group = self.heads // self.kv_heads
        k = torch.cat([k] * group, dim=-3)
        v = torch.cat([v] * group, dim=-3)
        if mask is not None:
            mask = mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o, weights


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: subtle | what is wrong: merges the heads with exactly one batch axis taken for granted, so inputs (T, d) or with two leading axes come out with a wrong shape
# told: shown
# now: named
# says: only works with a batch
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model % heads:
            raise ValueError("heads must divide d_model")
        self.d_model = d_model
        self.heads = heads
        for name in ("q", "k", "v", "o"):
            w = torch.randn(d_model, d_model) / math.sqrt(d_model)
            self.register_parameter(f"w_{name}", nn.Parameter(w))
            self.register_parameter(f"b_{name}", nn.Parameter(torch.zeros(d_model)))

    def project(
        self, x_q: torch.Tensor, x_kv: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        q = split_heads(x_q @ self.w_q + self.b_q, self.heads)
        k = split_heads(x_kv @ self.w_k + self.b_k, self.heads)
        v = split_heads(x_kv @ self.w_v + self.b_v, self.heads)
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
        batch = q.size(0)
        z = z.transpose(-3, -2).reshape(batch, -1, self.d_model)
        return z @ self.w_o + self.b_o, weights

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if x_kv is None:
            x_kv = x_q
        return self.attend(*self.project(x_q, x_kv), mask=mask)


# === exercise: sum-over-heads | function: sum_over_heads | kind: double | what is wrong: (1) deals the rows of w_o out to the heads in turn instead of in blocks; (2) sums over axis 0, which is the batch when there is one
# told: shown
# now: named
# says: rows dealt out in turn, and only works without a batch
def sum_over_heads(z: torch.Tensor, w_o: torch.Tensor) -> torch.Tensor:
    heads = z.shape[-3]
    blocks = torch.stack([w_o[head::heads] for head in range(heads)])
    contributions = z @ blocks
    return contributions.sum(dim=0)


# === exercise: texts-served | function: texts_served | kind: double | what is wrong: (1) key and value of a position share one scale of 16 bits instead of one for each vector; (2) a negative number comes out when the parameters do not fit
# told: named
# now: named
# says: one scale for a key and its value, and a negative number of texts
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
    free_bits = 8 * memory - parameters * weight_bits
    width = d_model // heads
    bits_per_position = 2 * width * cache_bits
    if cache_bits < 16:
        bits_per_position += 16  # the scale
    bits_per_text = layers * kv_heads * length * bits_per_position
    return free_bits // bits_per_text
