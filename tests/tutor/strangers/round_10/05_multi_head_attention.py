# ruff: noqa
# fmt: off

# === exercise: split-heads | function: split_heads | kind: subtle | what is wrong: it relies on chunk to complain when heads does not divide d, but chunk makes fewer pieces instead (d = 6, heads = 4 gives three heads), so no ValueError is raised.
# told: named
# now: named
# says: a width that heads does not divide is accepted
def split_heads(x, heads):
    pieces = x.chunk(heads, dim=-1)
    return torch.stack(pieces, dim=-3)


# === exercise: merge-heads | function: merge_heads | kind: plain | what is wrong: the axis of the heads is put behind the features before joining, so the heads' features are interleaved (feature 0 of all heads, feature 1 of all heads, ...) instead of head 0 first.
# told: named
# now: named
# says: heads interleaved
def merge_heads(x):
    *lead, h, t, d_v = x.shape
    y = x.movedim(-3, -1)
    return y.reshape(*lead, t, h * d_v)


# === exercise: loop-of-heads | function: loop_of_heads | kind: double | what is wrong: (1) the matrices of queries and keys are exchanged: x_q is multiplied by w_k and x_kv by w_q; (2) the mask is not handed on to the attention.
# told: named
# now: named
# says: mask ignored, and w_q and w_k exchanged
def loop_of_heads(x_q, x_kv, w_q, w_k, w_v, w_o, mask=None):
    outs = []
    for wq_i, wk_i, wv_i in zip(w_q, w_k, w_v):
        queries = x_q @ wk_i
        keys = x_kv @ wq_i
        values = x_kv @ wv_i
        z, _ = scaled_dot_product_attention(queries, keys, values)
        outs.append(z)
    return torch.cat(outs, dim=-1) @ w_o


# === exercise: sum-over-heads | function: sum_over_heads | kind: plain | what is wrong: the rows of w_o are dealt out in turn (head i gets the rows i, i + h, i + 2h, ...) instead of a block of d_v consecutive rows for each head.
# told: named
# now: named
# says: rows dealt out in turn
def sum_over_heads(z, w_o):
    h = z.shape[-3]
    total = 0
    for i in range(h):
        rows = w_o[i::h]
        total = total + z[..., i, :, :] @ rows
    return total


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: subtle | what is wrong: the heads' axis of the mask is always inserted at position 1, which is right for masks with a batch axis, but a mask (T_q, T_k) becomes (T_q, 1, T_k), with its queries laid over the heads.
# told: named
# now: named
# says: the axis for the heads is counted from the front
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model % heads:
            raise ValueError(f"{heads} heads do not divide d_model = {d_model}")
        self.heads = heads
        for name in ("q", "k", "v", "o"):
            w = torch.randn(d_model, d_model) / math.sqrt(d_model)
            setattr(self, f"w_{name}", nn.Parameter(w))
            setattr(self, f"b_{name}", nn.Parameter(torch.zeros(d_model)))

    def project(self, x_q, x_kv):
        q = split_heads(x_q @ self.w_q + self.b_q, self.heads)
        k = split_heads(x_kv @ self.w_k + self.b_k, self.heads)
        v = split_heads(x_kv @ self.w_v + self.b_v, self.heads)
        return q, k, v

    def attend(self, q, k, v, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(1)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        out = merge_heads(z) @ self.w_o + self.b_o
        return out, weights

    def forward(self, x_q, x_kv=None, mask=None):
        if x_kv is None:
            x_kv = x_q
        return self.attend(*self.project(x_q, x_kv), mask)


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: double | what is wrong: (1) the matrices are drawn with the standard deviation 1/√d_k (the width of a head) instead of 1/√d_model; (2) the weights are averaged over the heads instead of returned for each head.
# told: named
# now: named
# says: weights averaged over the heads
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model % heads != 0:
            raise ValueError("d_model must be divisible by heads")
        self.heads = heads
        self.d_k = d_model // heads
        std = self.d_k ** -0.5
        self.w_q = nn.Parameter(std * torch.randn(d_model, d_model))
        self.w_k = nn.Parameter(std * torch.randn(d_model, d_model))
        self.w_v = nn.Parameter(std * torch.randn(d_model, d_model))
        self.w_o = nn.Parameter(std * torch.randn(d_model, d_model))
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
        if mask is not None:
            mask = mask.unsqueeze(-3)
        heads_out, attn = scaled_dot_product_attention(q, k, v, mask)
        output = merge_heads(heads_out) @ self.w_o + self.b_o
        return output, attn.mean(dim=-3)

    def forward(self, x_q, x_kv=None, mask=None):
        source = x_q if x_kv is None else x_kv
        q, k, v = self.project(x_q, source)
        return self.attend(q, k, v, mask)


# === exercise: attention-from-torch | function: attention_from_torch | kind: plain | what is wrong: in_proj_weight is transposed first and then cut with reshape(3, d, d), which scrambles the three matrices; it has to be cut into blocks of rows first and each block transposed.
# told: named
# now: named
# says: transposed, then cut by the wrong axis
def attention_from_torch(state):
    d = state["out_proj.bias"].numel()
    w_q, w_k, w_v = state["in_proj_weight"].T.reshape(3, d, d)
    b_q, b_k, b_v = state["in_proj_bias"].reshape(3, d)
    return {
        "w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": state["out_proj.weight"].T,
        "b_q": b_q, "b_k": b_k, "b_v": b_v, "b_o": state["out_proj.bias"],
    }


# === exercise: attention-parameters | function: attention_parameters | kind: plain | what is wrong: the biases of keys and values are counted as d_model wide even when fewer kv heads make their output narrower.
# told: named
# now: named
# says: the biases of keys and values have the wrong width
def attention_parameters(d_model, heads, kv_heads=None):
    if kv_heads is None:
        kv_heads = heads
    d_k = d_model // heads
    weights = 2 * d_model * d_model + 2 * d_model * kv_heads * d_k
    biases = 4 * d_model
    return weights + biases


# === exercise: without-heads | function: without_heads | kind: subtle | what is wrong: reshape gives a view and no copy here, so the zeros are written into the layer's own w_o as well; the returned matrix is right.
# told: named
# now: named
# says: changes its argument in place
def without_heads(w_o, heads, removed):
    blocks = w_o.detach().reshape(heads, -1, w_o.shape[-1])
    for h in removed:
        blocks[h] = 0.0
    return blocks.reshape(w_o.shape)


# === exercise: without-heads | function: without_heads | kind: double | what is wrong: (1) columns of w_o are zeroed instead of rows, which removes features of the output and not heads; (2) the heads are counted from 1 instead of from 0.
# told: shown
# now: named
# says: removed in the columns, and heads counted from 1
def without_heads(w_o, heads, removed):
    result = w_o.clone()
    width = w_o.shape[1] // heads
    for number in removed:
        first = (number - 1) * width
        last = number * width
        result[:, max(first, 0):last] = 0
    return result


# === exercise: two-lookups | function: two_lookups | kind: subtle | what is wrong: the gap of the scores is too small: 15/√3 = 8.7 leaves each other token e^-8.7 = 0.00017 of the weight, enough for three tokens, but with up to eleven others the error exceeds 0.001.
# told: named
# now: named
# says: the attention is not sharp enough
def two_lookups():
    w_q, w_k, w_v, w_o = (torch.zeros(6, 6) for _ in range(4))
    w_q[5, 0] = 3.0
    w_q[5, 3] = 3.0
    w_k[0, 0] = 5.0
    w_k[1, 3] = 5.0
    for j in range(3):
        w_v[2 + j, j] = 1.0
        w_v[2 + j, 3 + j] = 1.0
        w_o[j, j] = 1.0
        w_o[3 + j, 3 + j] = 1.0
    return {"w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": w_o}


# === exercise: two-lookups | function: two_lookups | kind: double | what is wrong: (1) the queries are made of the marks instead of the constant coordinate 5, so only the marked tokens ask and all others average over the sequence; (2) head 1 takes its values from the coordinates 3 to 5 instead of 2 to 4.
# told: told
# now: named
# says: the value is taken from other coordinates, and only the marked tokens ask
def two_lookups():
    w_q = torch.zeros(6, 6)
    w_q[0, 0] = 10
    w_q[1, 3] = 10
    w_k = torch.zeros(6, 6)
    w_k[0, 0] = 10
    w_k[1, 3] = 10
    w_v = torch.zeros(6, 6)
    w_v[[2, 3, 4], [0, 1, 2]] = 1
    w_v[[3, 4, 5], [3, 4, 5]] = 1
    return dict(w_q=w_q, w_k=w_k, w_v=w_v, w_o=torch.eye(6))


# === exercise: grouped-query-attention | function: GroupedQueryAttention | kind: subtle | what is wrong: the kv heads are repeated as a whole (0, 1, 0, 1) instead of each for its group of neighbours (0, 0, 1, 1); right only for kv_heads = 1 or kv_heads = heads.
# told: named
# now: named
# says: kv heads dealt out in turn
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        if d_model % heads != 0 or heads % kv_heads != 0:
            raise ValueError("heads must divide d_model and kv_heads must divide heads")
        self.heads, self.kv_heads = heads, kv_heads
        kv_width = kv_heads * (d_model // heads)
        scale = 1 / math.sqrt(d_model)
        self.w_q = nn.Parameter(torch.randn(d_model, d_model) * scale)
        self.w_k = nn.Parameter(torch.randn(d_model, kv_width) * scale)
        self.w_v = nn.Parameter(torch.randn(d_model, kv_width) * scale)
        self.w_o = nn.Parameter(torch.randn(d_model, d_model) * scale)

    def forward(self, x_q, x_kv=None, mask=None):
        if x_kv is None:
            x_kv = x_q
        q = split_heads(x_q @ self.w_q, self.heads)
        k = split_heads(x_kv @ self.w_k, self.kv_heads)
        v = split_heads(x_kv @ self.w_v, self.kv_heads)
        group = self.heads // self.kv_heads
        k = torch.cat([k] * group, dim=-3)
        v = torch.cat([v] * group, dim=-3)
        if mask is not None:
            mask = mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o, weights


# === exercise: grouped-query-attention | function: GroupedQueryAttention | kind: double | what is wrong: (1) the values are projected from x_q also in cross-attention, instead of from x_kv; (2) the mask gets no axis for the heads, so the batch axis of a mask is laid over the heads.
# told: wrong
# now: named
# says: the values (or the keys) come from x_q
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        if d_model % heads:
            raise ValueError("d_model % heads != 0")
        if heads % kv_heads:
            raise ValueError("heads % kv_heads != 0")
        self.h = heads
        self.h_kv = kv_heads
        d_k = d_model // heads

        def draw(rows, columns):
            return nn.Parameter(torch.normal(0.0, d_model ** -0.5, (rows, columns)))

        self.w_q = draw(d_model, d_model)
        self.w_k = draw(d_model, kv_heads * d_k)
        self.w_v = draw(d_model, kv_heads * d_k)
        self.w_o = draw(d_model, d_model)

    def forward(self, x_q, x_kv=None, mask=None):
        context = x_q if x_kv is None else x_kv
        times = self.h // self.h_kv
        Q = split_heads(x_q @ self.w_q, self.h)
        K = repeat_heads(split_heads(context @ self.w_k, self.h_kv), times)
        V = repeat_heads(split_heads(x_q @ self.w_v, self.h_kv), times)
        out, A = scaled_dot_product_attention(Q, K, V, mask)
        return merge_heads(out) @ self.w_o, A


# === exercise: texts-served | function: texts_served | kind: subtle | what is wrong: it calculates in whole bytes and rounds the parameters and every vector down to bytes; right where the bits are multiples of 8, too many texts otherwise.
# told: passed
# now: named
# says: vectors rounded down to bytes
def texts_served(
    memory, parameters, layers, d_model, heads, kv_heads, length,
    weight_bits=16, cache_bits=16,
):
    free = memory - parameters * weight_bits // 8
    if free <= 0:
        return 0
    d_k = d_model // heads
    vector = d_k * cache_bits // 8
    if cache_bits < 16:
        vector += 2
    per_text = 2 * layers * length * kv_heads * vector
    return free // per_text


# === exercise: texts-served | function: texts_served | kind: plain | what is wrong: each head stores one vector per token and layer here; the factor 2 for a key and a value is missing, so about twice as many texts seem to fit.
# told: named
# now: named
# says: keys or values alone
def texts_served(
    memory, parameters, layers, d_model, heads, kv_heads, length,
    weight_bits=16, cache_bits=16,
):
    bits_left = 8 * memory - weight_bits * parameters
    head_width = d_model // heads
    bits_of_vector = head_width * cache_bits
    if cache_bits < 16:
        bits_of_vector = bits_of_vector + 16
    vectors = layers * length * kv_heads
    return max(bits_left // (vectors * bits_of_vector), 0)
