# ruff: noqa
# fmt: off

# === exercise: sum-over-heads | function: sum_over_heads | kind: plain | what is wrong: head i is given the rows i, i + h, i + 2h, … of w_o (a stride) in place of its contiguous block i·d_v to (i + 1)·d_v - 1; shows whenever h > 1 and d_v > 1
# told: named
# now: named
# says: rows dealt out in turn
def sum_over_heads(z: torch.Tensor, w_o: torch.Tensor) -> torch.Tensor:
    heads = z.size(-3)
    contributions = []
    for i in range(heads):
        rows_of_head = w_o[i::heads]
        contributions.append(z[..., i, :, :] @ rows_of_head)
    return sum(contributions)


# === exercise: attention-from-torch | function: attention_from_torch | kind: plain | what is wrong: in_proj_weight is reshaped to (d, 3, d) in place of (3, d, d), so every third row goes to the queries, keys and values in turn, not the first d rows to the queries; shows for every d > 1
# told: shown
# now: named
# says: rows dealt out in turn
def attention_from_torch(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    d = state["out_proj.bias"].numel()
    stacked = state["in_proj_weight"].reshape(d, 3, d)
    biases = state["in_proj_bias"].reshape(3, d)
    new = {}
    for n, letter in enumerate("qkv"):
        new["w_" + letter] = stacked[:, n].T
        new["b_" + letter] = biases[n]
    new["w_o"] = state["out_proj.weight"].T
    new["b_o"] = state["out_proj.bias"]
    return new


# === exercise: attention-parameters | function: attention_parameters | kind: plain | what is wrong: the width of a key/value head is d_model // kv_heads in place of d_model // heads, so keys and values are always d_model wide and sharing saves nothing; shows whenever kv_heads < heads
# told: named
# now: named
# says: kv_heads is ignored
def attention_parameters(d_model: int, heads: int, kv_heads: int | None = None) -> int:
    if kv_heads is None:
        kv_heads = heads

    def linear(n_in, n_out):
        return n_in * n_out + n_out

    kv_width = kv_heads * (d_model // kv_heads)
    return 2 * linear(d_model, d_model) + 2 * linear(d_model, kv_width)


# === exercise: two-lookups | function: two_lookups | kind: plain | what is wrong: the queries are made of the marks (rows 0 and 1 of w_q) in place of coordinate 5, so only the marked tokens themselves ask and all other positions get the plain average of the values; shows on every sequence at the positions without the mark
# told: named
# now: named
# says: only the marked tokens ask
def two_lookups() -> dict[str, torch.Tensor]:
    w_q, w_k, w_v, w_o = (torch.zeros(6, 6) for _ in range(4))
    for head, mark in enumerate((0, 1)):
        first = 3 * head
        w_q[mark, first] = 60.0
        w_k[mark, first] = 1.0
        for c in range(3):
            w_v[2 + c, first + c] = 1.0
            w_o[first + c, first + c] = 1.0
    return {"w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": w_o}


# === exercise: grouped-query-attention | function: GroupedQueryAttention | kind: plain | what is wrong: the values are projected with w_k in place of w_v (copied line), so w_v is never used; shows in the output on every input, the weights are right
# told: named
# now: named
# says: values made by the keys' matrix
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        if d_model % heads != 0:
            raise ValueError(f"heads={heads} does not divide d_model={d_model}")
        if heads % kv_heads != 0:
            raise ValueError(f"kv_heads={kv_heads} does not divide heads={heads}")
        self.heads = heads
        self.kv_heads = kv_heads
        d_kv = kv_heads * (d_model // heads)
        std = 1 / math.sqrt(d_model)
        self.w_q = nn.Parameter(std * torch.randn(d_model, d_model))
        self.w_k = nn.Parameter(std * torch.randn(d_model, d_kv))
        self.w_v = nn.Parameter(std * torch.randn(d_model, d_kv))
        self.w_o = nn.Parameter(std * torch.randn(d_model, d_model))

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
        v = repeat_heads(split_heads(x_kv @ self.w_k, self.kv_heads), times)
        if mask is not None:
            mask = mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o, weights


# === exercise: merge-heads | function: merge_heads | kind: subtle | what is wrong: the result is filled into torch.zeros without the dtype of x, so it is always float32; shows for float64 (digits beyond float32 lost, wrong dtype) and for integers (become floats)
# told: passed
# now: passed
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    *batch, heads, tokens, d_v = x.shape
    merged = torch.zeros(*batch, tokens, heads * d_v)
    for head in range(heads):
        start = head * d_v
        merged[..., start : start + d_v] = x[..., head, :, :]
    return merged


# === exercise: loop-of-heads | function: loop_of_heads | kind: subtle | what is wrong: the lambdas of the list bind i late, so every head projects with the matrices of the last head; shows whenever there is more than one head (with one head it is right)
# told: useless
# now: named
# says: all heads with the matrices of the last head
def loop_of_heads(
    x_q: torch.Tensor,
    x_kv: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
    w_o: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    head_projections = [lambda x, w: x @ w[i] for i in range(len(w_q))]
    outputs = []
    for project in head_projections:
        q = project(x_q, w_q)
        k = project(x_kv, w_k)
        v = project(x_kv, w_v)
        z, _ = scaled_dot_product_attention(q, k, v, mask)
        outputs.append(z)
    return torch.cat(outputs, dim=-1) @ w_o


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: subtle | what is wrong: nn.Parameter does not copy, so the four matrices share the memory of one tensor (and the four biases that of another); shows as w_q = w_k = w_v = w_o in a fresh layer, and after load_state_dict or a step of training, where what is written last overwrites the others
# told: named
# now: named
# says: two parameters start with the same numbers
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model % heads:
            raise ValueError(f"d_model {d_model} is not divisible by {heads} heads")
        self.heads = heads
        start = torch.randn(d_model, d_model) / math.sqrt(d_model)
        zeros = torch.zeros(d_model)
        for name in ("q", "k", "v", "o"):
            setattr(self, f"w_{name}", nn.Parameter(start))
            setattr(self, f"b_{name}", nn.Parameter(zeros))

    def project(
        self, x_q: torch.Tensor, x_kv: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        q = x_q @ self.w_q + self.b_q
        k = x_kv @ self.w_k + self.b_k
        v = x_kv @ self.w_v + self.b_v
        return tuple(split_heads(t, self.heads) for t in (q, k, v))

    def attend(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if mask is not None:
            mask = mask[..., None, :, :]
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o + self.b_o, weights

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        source = x_q if x_kv is None else x_kv
        q, k, v = self.project(x_q, source)
        return self.attend(q, k, v, mask)


# === exercise: without-heads | function: without_heads | kind: subtle | what is wrong: everything from the smallest to the largest removed head is zeroed in one slice; shows when the removed heads are not neighbours, such as [0, 2] of 3, where head 1 goes, too
# told: shown
# now: named
# says: all from the first to the last that is to go
def without_heads(w_o: torch.Tensor, heads: int, removed: list[int]) -> torch.Tensor:
    new = w_o.clone()
    if removed:
        d_v = w_o.shape[0] // heads
        new[min(removed) * d_v : (max(removed) + 1) * d_v] = 0
    return new


# === exercise: two-lookups | function: two_lookups | kind: subtle | what is wrong: each head's key is its own mark MINUS the other mark, so a token that carries both marks has key 0 like an unmarked one and the head averages over all tokens; shows only when one token carries both marks
# told: wrong
# now: named
# says: one mark taken off the other
def two_lookups() -> dict[str, torch.Tensor]:
    ones = torch.eye(6)
    always, mark_a, mark_b = ones[5], ones[0], ones[1]

    w_q = torch.zeros(6, 6)
    w_q[:, 0] = 100 * always
    w_q[:, 3] = 100 * always

    w_k = torch.zeros(6, 6)
    w_k[:, 0] = mark_a - mark_b  # towards A, away from B
    w_k[:, 3] = mark_b - mark_a  # towards B, away from A

    w_v = torch.zeros(6, 6)
    w_v[2:5, 0:3] = torch.eye(3)
    w_v[2:5, 3:6] = torch.eye(3)
    return dict(w_q=w_q, w_k=w_k, w_v=w_v, w_o=torch.eye(6))


# === exercise: grouped-query-attention | function: GroupedQueryAttention | kind: subtle | what is wrong: the second check tests whether kv_heads divides d_model in place of heads; shows when kv_heads divides d_model but not heads, such as (12, 6, 4) or (12, 4, 3), which raise no ValueError when built
# told: named
# now: named
# says: kv_heads that does not divide heads is accepted
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        for name, n in (("heads", heads), ("kv_heads", kv_heads)):
            if d_model % n:
                raise ValueError(f"{name} = {n} must divide {d_model}")
        self.heads, self.kv_heads = heads, kv_heads
        self.group = heads // kv_heads
        d_kv = kv_heads * (d_model // heads)

        def draw(columns):
            return nn.Parameter(torch.normal(0.0, d_model**-0.5, (d_model, columns)))

        self.w_q, self.w_o = draw(d_model), draw(d_model)
        self.w_k, self.w_v = draw(d_kv), draw(d_kv)

    def _shared(self, x, w):
        return repeat_heads(split_heads(x @ w, self.kv_heads), self.group)

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        x_kv = x_q if x_kv is None else x_kv
        z, weights = scaled_dot_product_attention(
            split_heads(x_q @ self.w_q, self.heads),
            self._shared(x_kv, self.w_k),
            self._shared(x_kv, self.w_v),
            None if mask is None else mask.unsqueeze(-3),
        )
        return merge_heads(z) @ self.w_o, weights


# === exercise: texts-served | function: texts_served | kind: subtle | what is wrong: the size of the parameters is rounded down to whole bytes before it is subtracted; shows when parameters·weight_bits is not a multiple of 8 and the up to 7 bits too many just complete one more text, such as memory=2000, parameters=301, weight_bits=4, cache_bits=4, layers=1, d_model=heads=kv_heads=1, length=370 (1 in place of 0)
# told: passed
# now: passed
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
    weight_bytes = parameters * weight_bits // 8
    free_bits = (memory - weight_bytes) * 8
    if free_bits <= 0:
        return 0
    vector = d_model // heads * cache_bits
    if cache_bits < 16:
        vector += 16
    text = 2 * layers * length * kv_heads * vector
    return free_bits // text


# === exercise: split-heads | function: split_heads | kind: double | what is wrong: first, a number of heads that does not divide d raises an AssertionError in place of a ValueError; second, the heads' axis is put at position 1 counted from the front, which is wrong for two or more leading axes: x (A, B, T, d) becomes (A, h, B, T, d/h) in place of (A, B, h, T, d/h)
# told: named
# now: named
# says: only works with a batch
def split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    d = x.shape[-1]
    assert d % heads == 0, f"{heads} heads do not divide {d} features"
    pieces = torch.stack(x.split(d // heads, dim=-1))  # heads first
    if x.dim() == 2:
        return pieces
    return pieces.transpose(0, 1)


# === exercise: sum-over-heads | function: sum_over_heads | kind: double | what is wrong: first, the contributions are averaged over the heads in place of summed (shows for h > 1); second, squeeze() at the end drops every axis of size 1 (shows for a batch of one, one token or d_model = 1)
# told: told
# now: named
# says: the mean over the heads
# line: 2
def sum_over_heads(z: torch.Tensor, w_o: torch.Tensor) -> torch.Tensor:
    h, d_v = z.shape[-3], z.shape[-1]
    blocks = w_o.view(h, d_v, -1)
    messages = torch.einsum("...htv,hvd->...htd", z, blocks)
    return messages.mean(dim=-3, keepdim=True).squeeze()


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: double | what is wrong: first, the matrices are drawn uniformly from -1/√d to 1/√d, whose standard deviation is 1/√(3d) in place of 1/√d; second, the output of a query that may attend to nothing is set to 0 in place of b_O (shows for a row of the mask without True once b_o is not zero)
# told: told
# now: told
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model % heads != 0:
            raise ValueError("d_model must be divisible by heads")
        self.heads = heads
        bound = d_model**-0.5
        self.w_q = nn.Parameter(torch.empty(d_model, d_model).uniform_(-bound, bound))
        self.w_k = nn.Parameter(torch.empty(d_model, d_model).uniform_(-bound, bound))
        self.w_v = nn.Parameter(torch.empty(d_model, d_model).uniform_(-bound, bound))
        self.w_o = nn.Parameter(torch.empty(d_model, d_model).uniform_(-bound, bound))
        self.b_q = nn.Parameter(torch.zeros(d_model))
        self.b_k = nn.Parameter(torch.zeros(d_model))
        self.b_v = nn.Parameter(torch.zeros(d_model))
        self.b_o = nn.Parameter(torch.zeros(d_model))

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
        head_mask = mask.unsqueeze(-3) if mask is not None else None
        z, weights = scaled_dot_product_attention(q, k, v, head_mask)
        output = merge_heads(z) @ self.w_o + self.b_o
        if mask is not None:
            # queries that see nothing say nothing
            blocked = ~mask.any(dim=-1, keepdim=True)
            output = output.masked_fill(blocked, 0.0)
        return output, weights

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if x_kv is None:
            x_kv = x_q
        return self.attend(*self.project(x_q, x_kv), mask=mask)


# === exercise: attention-from-torch | function: attention_from_torch | kind: double | what is wrong: first, in_proj_bias is cut with view(-1, 3).T, so its entries are dealt out in turn to b_q, b_k and b_v in place of three contiguous pieces; second, b_o is set to zeros in place of out_proj.bias; both show only when the biases are not zero (a fresh PyTorch layer has zero biases)
# told: shown
# now: shown
def attention_from_torch(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    w_out = state["out_proj.weight"]
    d = w_out.shape[0]
    w_q, w_k, w_v = state["in_proj_weight"].T.split(d, dim=1)
    b_q, b_k, b_v = state["in_proj_bias"].view(-1, 3).T
    return {
        "w_q": w_q,
        "w_k": w_k,
        "w_v": w_v,
        "w_o": w_out.T,
        "b_q": b_q,
        "b_k": b_k,
        "b_v": b_v,
        "b_o": torch.zeros(d),
    }


# === exercise: without-heads | function: without_heads | kind: double | what is wrong: first, d_v is taken from the columns (d_model // heads) in place of the rows of w_o, which zeroes the wrong rows when h·d_v is not d_model; second, with an empty list w_o itself is returned in place of a copy, so a change of the result changes the layer's matrix
# told: named
# now: named
# says: the width of a head taken from d_model
def without_heads(w_o: torch.Tensor, heads: int, removed: list[int]) -> torch.Tensor:
    if not removed:
        return w_o
    d_model = w_o.shape[1]
    d_v = d_model // heads
    keep = torch.ones_like(w_o)
    for head in removed:
        keep[head * d_v : (head + 1) * d_v, :] = 0
    return w_o * keep


# === exercise: texts-served | function: texts_served | kind: double | what is wrong: first, the scale of 16 bits is added when cache_bits < weight_bits in place of cache_bits < 16, so it is missing for weight_bits=4, cache_bits=4 (or 8 and 8) and present for weight_bits=32, cache_bits=16; second, the texts must take strictly less than what is left, so a memory filled exactly gives one text too few
# told: named
# now: named
# says: a scale where the cache has fewer bits than the weights, and a text that fits exactly is left out
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
    scale = 16 if cache_bits < weight_bits else 0
    bits_per_vector = (d_model // heads) * cache_bits + scale
    bits_per_text = 2 * kv_heads * layers * length * bits_per_vector
    # texts · bits_per_text < left
    return max(0, (left - 1) // bits_per_text)
