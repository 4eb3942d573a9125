# ruff: noqa
# fmt: off

# === exercise: split-heads | function: split_heads | kind: plain | what is wrong: takes `heads` for the width of a head, so that the result has d/heads heads of width `heads` (d = 6, heads = 3 gives 2 heads of width 3), wrong unless heads happens to equal d/heads
# told: named
# now: named
# says: head width and number of heads exchanged
def split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    width = x.shape[-1]
    if width % heads:
        raise ValueError(f"{heads} heads do not divide {width} features")
    # (.., T, d) -> (.., T, pieces, piece) -> (.., pieces, T, piece)
    pieces = x.unflatten(-1, (-1, heads))
    return pieces.transpose(-3, -2)


# === exercise: split-heads | function: split_heads | kind: subtle | what is wrong: with heads = 1 it returns x as it is, (.., T, d), without the axis for the heads, where (.., 1, T, d) is asked for
# told: told
# now: named
# says: no axis for a single head
def split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    d = x.shape[-1]
    if d % heads != 0:
        raise ValueError(f"d = {d} cannot be divided by heads = {heads}")
    if heads == 1:
        return x  # nothing to split
    *lead, tokens, _ = x.shape
    x = x.reshape(*lead, tokens, heads, d // heads)
    return x.swapaxes(-2, -3)


# === exercise: split-heads | function: split_heads | kind: double | what is wrong: the features are dealt out in turn (head i gets the features i, i + heads, i + 2·heads, ...) and not in neighbouring pieces; a number of heads that does not divide d gives an AssertionError and not a ValueError
# told: named
# now: named
# says: features dealt out in turn
def split_heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    assert x.shape[-1] % heads == 0, "heads must divide the width"
    # one strided slice for each head
    pieces = [x[..., i::heads] for i in range(heads)]
    return torch.stack(pieces, dim=-3)


# === exercise: merge-heads | function: merge_heads | kind: plain | what is wrong: after the right exchange it joins the wrong two axes, tokens with heads, so the result is (.., T·heads, d_v) with a row for each head of each token in place of (.., T, heads·d_v)
# told: named
# now: named
# says: tokens joined with heads
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    by_token = x.transpose(-3, -2)  # (.., T, heads, d_v)
    return by_token.flatten(-3, -2)


# === exercise: merge-heads | function: merge_heads | kind: subtle | what is wrong: a bare squeeze() at the end removes every axis of length 1 and not only that of the heads, so a batch of one or a single token loses its axis
# told: passed
# now: named
# says: squeeze takes the axis of the batch away
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    each = x.split(1, dim=-3)  # heads times (.., 1, T, d_v)
    merged = torch.cat(each, dim=-1)  # (.., 1, T, heads*d_v)
    return merged.squeeze()


# === exercise: merge-heads | function: merge_heads | kind: double | what is wrong: the axes are joined in the order (d_v, heads), so the heads' features are interleaved and not side by side; it unpacks exactly four axes, so an input without a batch or with two leading axes gives a ValueError
# told: named
# now: named
# says: heads interleaved
def merge_heads(x: torch.Tensor) -> torch.Tensor:
    B, H, T, D = x.shape
    x = x.permute(0, 2, 3, 1).contiguous()
    return x.view(B, T, H * D)


# === exercise: loop-of-heads | function: loop_of_heads | kind: plain | what is wrong: the output projection goes through nn.functional.linear, which multiplies by the transpose of w_o: an error for h·d_v other than d, and wrong numbers where both are equal
# told: shown
# now: named
# says: w_o transposed
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
    for q_matrix, k_matrix, v_matrix in zip(w_q, w_k, w_v):
        z, _ = scaled_dot_product_attention(
            x_q @ q_matrix, x_kv @ k_matrix, x_kv @ v_matrix, mask
        )
        outputs.append(z)
    concatenated = torch.cat(outputs, dim=-1)
    return nn.functional.linear(concatenated, w_o)


# === exercise: loop-of-heads | function: loop_of_heads | kind: subtle | what is wrong: gives the mask an axis for the heads although a single head's scores (.., T_q, T_k) have none, so a mask with a batch (B, T_q, T_k) becomes (B, 1, T_q, T_k) and the output (B, B, T_q, d), while a mask (T_q, T_k) with batched inputs still works
# told: told
# now: named
# says: the mask with an axis for the heads
def loop_of_heads(
    x_q: torch.Tensor,
    x_kv: torch.Tensor,
    w_q: torch.Tensor,
    w_k: torch.Tensor,
    w_v: torch.Tensor,
    w_o: torch.Tensor,
    mask: torch.Tensor | None = None,
) -> torch.Tensor:
    if mask is not None:
        mask = mask.unsqueeze(-3)  # the same mask for all heads

    def head(i):
        q, k, v = x_q @ w_q[i], x_kv @ w_k[i], x_kv @ w_v[i]
        return scaled_dot_product_attention(q, k, v, mask)[0]

    return torch.cat([head(i) for i in range(w_q.shape[0])], dim=-1) @ w_o


# === exercise: loop-of-heads | function: loop_of_heads | kind: double | what is wrong: the outputs are stacked on a last axis and flattened, which interleaves the heads' features and does not put head after head; the mask is never handed to the attention
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
    heads = w_q.shape[0]
    zs = []
    for i in range(heads):
        queries = x_q @ w_q[i]
        keys = x_kv @ w_k[i]
        values = x_kv @ w_v[i]
        z, weights = scaled_dot_product_attention(queries, keys, values)
        zs.append(z)
    side_by_side = torch.stack(zs, dim=-1).flatten(-2)
    return side_by_side @ w_o


# === exercise: sum-over-heads | function: sum_over_heads | kind: plain | what is wrong: head i gets the rows i, i + heads, i + 2·heads, ... of w_o and not its block of neighbouring rows i·d_v to (i + 1)·d_v - 1
# told: named
# now: named
# says: rows dealt out in turn
def sum_over_heads(z: torch.Tensor, w_o: torch.Tensor) -> torch.Tensor:
    heads = z.shape[-3]
    return sum(z[..., i, :, :] @ w_o[i::heads] for i in range(heads))


# === exercise: sum-over-heads | function: sum_over_heads | kind: subtle | what is wrong: the height of a block is taken from w_o's columns, d_model // heads, in place of d_v, so it fails (shapes that cannot be multiplied) wherever heads·d_v is not d_model
# told: shown
# now: named
# says: blocks of another height than d_v
def sum_over_heads(z: torch.Tensor, w_o: torch.Tensor) -> torch.Tensor:
    heads = z.shape[-3]
    d_model = w_o.shape[1]
    head_dim = d_model // heads
    output = 0
    for i in range(heads):
        rows = w_o[i * head_dim : (i + 1) * head_dim]
        output = output + z.select(-3, i) @ rows
    return output


# === exercise: sum-over-heads | function: sum_over_heads | kind: double | what is wrong: w_o is reshaped to (heads, d_model, d_v) and turned, so each block has the right shape and numbers at wrong places (not the rows i·d_v to (i + 1)·d_v - 1 as they stand); the contributions are averaged over the heads in place of added
# told: told
# now: named
# says: the mean over the heads, and w_o reshaped in place of cut
def sum_over_heads(z: torch.Tensor, w_o: torch.Tensor) -> torch.Tensor:
    heads, d_model = z.shape[-3], w_o.shape[-1]
    blocks = w_o.reshape(heads, d_model, -1).transpose(1, 2)  # (heads, d_v, d_model)
    messages = torch.einsum("...htv,hvd->...htd", z, blocks)
    return messages.mean(dim=-3)


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: plain | what is wrong: the matrices and biases are bare tensors and not nn.Parameter, so the layer has no parameters: parameters() and state_dict() are empty and weights cannot be loaded or trained by an optimiser
# told: named
# now: named
# says: parameters are missing
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model % heads != 0:
            raise ValueError(f"{heads} heads do not divide d_model = {d_model}")
        self.heads = heads
        std = 1 / math.sqrt(d_model)
        for name in "qkvo":
            matrix = torch.randn(d_model, d_model) * std
            setattr(self, f"w_{name}", matrix.requires_grad_())
            setattr(self, f"b_{name}", torch.zeros(d_model, requires_grad=True))

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
        return merge_heads(z) @ self.w_o + self.b_o, weights

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if x_kv is None:
            x_kv = x_q
        return self.attend(*self.project(x_q, x_kv), mask)


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: plain | what is wrong: the mask is inverted before the attention, as for nn.MultiheadAttention where True means blocked, so queries attend just where they must not
# told: named
# now: named
# says: mask inverted
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model % heads:
            raise ValueError("d_model must be divisible by heads")
        self.heads = heads

        def matrix():
            return nn.Parameter(torch.empty(d_model, d_model).normal_(0, d_model**-0.5))

        def bias():
            return nn.Parameter(torch.zeros(d_model))

        self.w_q, self.w_k, self.w_v, self.w_o = matrix(), matrix(), matrix(), matrix()
        self.b_q, self.b_k, self.b_v, self.b_o = bias(), bias(), bias(), bias()

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
        # attention blocks where the mask is True
        blocked = None if mask is None else ~mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, blocked)
        return merge_heads(z) @ self.w_o + self.b_o, weights

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        q, k, v = self.project(x_q, x_q if x_kv is None else x_kv)
        return self.attend(q, k, v, mask)


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: subtle | what is wrong: its own attention fills masked scores with -1e9, so a query whose row of the mask holds no True gets equal weights for all keys in place of weights of zero and the output b_o
# told: named
# now: named
# says: a large negative number in place of −∞
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model % heads != 0:
            raise ValueError(f"d_model {d_model} is not divisible by heads {heads}")
        self.heads = heads
        self.d_k = d_model // heads
        scale = 1.0 / math.sqrt(d_model)
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
        return tuple(split_heads(each, self.heads) for each in (q, k, v))

    def attend(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(~mask.unsqueeze(-3), -1e9)
        weights = scores.softmax(dim=-1)
        output = merge_heads(weights @ v) @ self.w_o + self.b_o
        return output, weights

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


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: subtle | what is wrong: the check uses // in place of %, so the layer refuses only more heads than features, and MultiHeadAttention(6, 4) is built without a ValueError
# told: named
# now: named
# says: a width that heads does not divide is accepted
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model // heads == 0:
            raise ValueError(f"d_model = {d_model} cannot be divided into {heads} heads")
        self.heads = heads
        std = d_model**-0.5
        self.w_q = nn.Parameter(torch.randn(d_model, d_model) * std)
        self.w_k = nn.Parameter(torch.randn(d_model, d_model) * std)
        self.w_v = nn.Parameter(torch.randn(d_model, d_model) * std)
        self.w_o = nn.Parameter(torch.randn(d_model, d_model) * std)
        self.b_q = nn.Parameter(torch.zeros(d_model))
        self.b_k = nn.Parameter(torch.zeros(d_model))
        self.b_v = nn.Parameter(torch.zeros(d_model))
        self.b_o = nn.Parameter(torch.zeros(d_model))

    def project(
        self, x_q: torch.Tensor, x_kv: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        q = split_heads(x_q @ self.w_q + self.b_q, self.heads)
        k, v = (
            split_heads(x_kv @ w + b, self.heads)
            for w, b in ((self.w_k, self.b_k), (self.w_v, self.b_v))
        )
        return q, k, v

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
        return self.attend(*self.project(x_q, source), mask=mask)


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: double | what is wrong: the weights are averaged over the heads, (.., T_q, T_k), as PyTorch does by default, where they are asked for each head; b_o is never added to the output, which shows once it is not zero
# told: named
# now: named
# says: weights averaged over the heads, and the biases are missing
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model % heads:
            raise ValueError(f"heads = {heads} does not divide d_model = {d_model}")
        self.heads = heads
        for name in ("q", "k", "v", "o"):
            weight = torch.randn(d_model, d_model) / math.sqrt(d_model)
            self.register_parameter(f"w_{name}", nn.Parameter(weight))
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
        output = merge_heads(z) @ self.w_o
        return output, weights.mean(dim=-3)

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if x_kv is None:
            x_kv = x_q
        return self.attend(*self.project(x_q, x_kv), mask)


# === exercise: multi-head-attention | function: MultiHeadAttention | kind: double | what is wrong: keys and values are reshaped with the sizes of x_q, so cross-attention with T_k other than T_q fails; the mask gets no axis for the heads, so a mask (B, T_q, T_k) lays its batch over the heads
# told: shown
# now: named
# says: keys and values cut by the sizes of x_q
class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, heads: int) -> None:
        super().__init__()
        if d_model % heads != 0:
            raise ValueError("heads must divide d_model")
        self.heads = heads
        self.d_k = d_model // heads
        init = lambda: nn.Parameter(torch.randn(d_model, d_model) / d_model**0.5)
        zero = lambda: nn.Parameter(torch.zeros(d_model))
        self.w_q, self.b_q = init(), zero()
        self.w_k, self.b_k = init(), zero()
        self.w_v, self.b_v = init(), zero()
        self.w_o, self.b_o = init(), zero()

    def project(
        self, x_q: torch.Tensor, x_kv: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        shape = (*x_q.shape[:-1], self.heads, self.d_k)
        q = (x_q @ self.w_q + self.b_q).reshape(shape).transpose(-3, -2)
        k = (x_kv @ self.w_k + self.b_k).reshape(shape).transpose(-3, -2)
        v = (x_kv @ self.w_v + self.b_v).reshape(shape).transpose(-3, -2)
        return q, k, v

    def attend(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        z, weights = scaled_dot_product_attention(q, k, v, mask)  # mask broadcasts
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


# === exercise: attention-from-torch | function: attention_from_torch | kind: plain | what is wrong: in_proj_weight is reshaped to (d, 3d) in place of transposed, so w_q, w_k and w_v have the right shape and rows cut from the wrong numbers
# told: named
# now: named
# says: reshaped in place of transposed
def attention_from_torch(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    packed = state["in_proj_weight"]
    d = packed.shape[1]
    w_q, w_k, w_v = packed.reshape(d, 3 * d).chunk(3, dim=1)
    b_q, b_k, b_v = state["in_proj_bias"].chunk(3)
    return {
        "w_q": w_q,
        "w_k": w_k,
        "w_v": w_v,
        "w_o": state["out_proj.weight"].T,
        "b_q": b_q,
        "b_k": b_k,
        "b_v": b_v,
        "b_o": state["out_proj.bias"],
    }


# === exercise: attention-from-torch | function: attention_from_torch | kind: subtle | what is wrong: in_proj_bias is viewed as (d, 3) and not as (3, d), so its numbers are dealt out to b_q, b_k and b_v in turn, which shows only when the biases are not zero (in a fresh layer of PyTorch they are)
# told: named
# now: named
# says: rows dealt out in turn
def attention_from_torch(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    d = state["out_proj.bias"].numel()
    matrices = state["in_proj_weight"].view(3, d, d).transpose(1, 2)
    biases = state["in_proj_bias"].view(-1, 3).T
    new = {}
    for i, name in enumerate("qkv"):
        new[f"w_{name}"] = matrices[i]
        new[f"b_{name}"] = biases[i]
    new["w_o"] = state["out_proj.weight"].t()
    new["b_o"] = state["out_proj.bias"]
    return new


# === exercise: attention-from-torch | function: attention_from_torch | kind: double | what is wrong: the three parts are read in the order query, value, key (as Keras has its arguments), so keys and values are exchanged; out_proj.weight is not transposed
# told: named
# now: named
# says: out_proj.weight not transposed, and the three parts in another order
def attention_from_torch(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    order = ("q", "v", "k")
    weights = torch.chunk(state["in_proj_weight"], 3, dim=0)
    biases = torch.chunk(state["in_proj_bias"], 3, dim=0)
    result = {"w_" + name: weight.T for name, weight in zip(order, weights)}
    result.update({"b_" + name: bias for name, bias in zip(order, biases)})
    result["w_o"] = state["out_proj.weight"]
    result["b_o"] = state["out_proj.bias"]
    return result


# === exercise: attention-parameters | function: attention_parameters | kind: plain | what is wrong: keys and values get the width d_model // kv_heads (kv_heads read as the number of query heads that share one) in place of kv_heads · d_k, so more kv heads mean fewer parameters, and even the unshared layer comes out wrong
# told: named
# now: named
# says: kv heads of another width
def attention_parameters(d_model: int, heads: int, kv_heads: int | None = None) -> int:
    if kv_heads is None:
        kv_heads = heads
    kv_width = d_model // kv_heads

    def projection(width):
        return d_model * width + width

    return 2 * projection(d_model) + 2 * projection(kv_width)


# === exercise: attention-parameters | function: attention_parameters | kind: subtle | what is wrong: the width of keys and values is kv_heads // heads * d_model, where the whole-number division gives 0 for every kv_heads < heads, so shared heads count nothing (right only for kv_heads = heads)
# told: shown
# now: named
# says: rounded down to no width at all
def attention_parameters(d_model: int, heads: int, kv_heads: int | None = None) -> int:
    kv_heads = heads if kv_heads is None else kv_heads
    share = kv_heads // heads * d_model  # the part of d_model that keys and values have
    queries_and_output = 2 * (d_model * d_model + d_model)
    keys_and_values = 2 * (d_model * share + share)
    return queries_and_output + keys_and_values


# === exercise: attention-parameters | function: attention_parameters | kind: double | what is wrong: no projection's bias is counted; the width of a head is computed with /, so the result is a float and not a whole number
# told: named
# now: named
# says: the biases are missing
def attention_parameters(d_model: int, heads: int, kv_heads: int | None = None) -> int:
    if kv_heads is None:
        kv_heads = heads
    d_k = d_model / heads
    total = 0
    for width in (d_model, kv_heads * d_k, kv_heads * d_k, d_model):  # q, k, v, o
        total += d_model * width
    return total


# === exercise: without-heads | function: without_heads | kind: plain | what is wrong: the rows of the removed heads are cut out of the matrix and not set to zero, so the result has fewer than heads·d_v rows
# told: named
# now: named
# says: the rows are cut out
def without_heads(w_o: torch.Tensor, heads: int, removed: list[int]) -> torch.Tensor:
    blocks = w_o.unflatten(0, (heads, -1))
    kept = [head for head in range(heads) if head not in removed]
    return blocks[kept].flatten(0, 1)


# === exercise: without-heads | function: without_heads | kind: subtle | what is wrong: with an empty list it returns w_o itself and not a copy, so changing the result changes the layer's own matrix
# told: named
# now: named
# says: the caller's own matrix is returned
def without_heads(w_o: torch.Tensor, heads: int, removed: list[int]) -> torch.Tensor:
    if not removed:
        return w_o
    d_v = w_o.shape[0] // heads
    keep = torch.ones(heads, dtype=torch.bool)
    keep[removed] = False
    rows = keep.repeat_interleave(d_v)
    return torch.where(rows[:, None], w_o, torch.zeros_like(w_o))


# === exercise: without-heads | function: without_heads | kind: double | what is wrong: heads are counted from 1, so removing head i clears the rows of head i - 1 and removing head 0 clears nothing; detach() shares memory with the argument, so w_o is changed in place
# told: named
# now: named
# says: changes its argument in place
def without_heads(w_o: torch.Tensor, heads: int, removed: list[int]) -> torch.Tensor:
    result = w_o.detach()  # leaves the parameter alone
    size = result.shape[0] // heads
    for number in removed:
        start = (number - 1) * size
        result[start : start + size] = 0
    return result


# === exercise: two-lookups | function: two_lookups | kind: plain | what is wrong: the queries are made of the marks and not of coordinate 5, so only the marked token asks and every other token has a query of zero and gets the average of all values
# told: named
# now: named
# says: only the marked tokens ask
def two_lookups() -> dict[str, torch.Tensor]:
    w_q, w_k, w_v, w_o = (torch.zeros(6, 6) for _ in range(4))
    # head 0 looks for mark A
    w_q[0, 0] = 60.0
    w_k[0, 0] = 1.0
    # head 1 looks for mark B
    w_q[1, 3] = 60.0
    w_k[1, 3] = 1.0
    for i in range(3):
        w_v[2 + i, i] = 1.0
        w_v[2 + i, 3 + i] = 1.0
        w_o[i, i] = 1.0
        w_o[3 + i, 3 + i] = 1.0
    return {"w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": w_o}


# === exercise: two-lookups | function: two_lookups | kind: subtle | what is wrong: the keys are mark A minus mark B and mark B minus mark A, so a token that carries both marks has keys of zero like all others and both heads give the average of all tokens, which shows only when one token carries both marks
# told: wrong
# now: named
# says: one mark taken off the other
def two_lookups() -> dict[str, torch.Tensor]:
    sharp = 60.0
    w_q = torch.zeros(6, 6)
    w_q[5, [0, 3]] = sharp  # the constant asks, in both heads
    w_k = torch.zeros(6, 6)
    w_k[0, 0], w_k[1, 0] = 1.0, -1.0  # head 0: to A, away from B
    w_k[0, 3], w_k[1, 3] = -1.0, 1.0  # head 1: to B, away from A
    w_v = torch.zeros(6, 6)
    w_v[2:5, 0:3] = torch.eye(3)
    w_v[2:5, 3:6] = torch.eye(3)
    return {"w_q": w_q, "w_k": w_k, "w_v": w_v, "w_o": torch.eye(6)}


# === exercise: two-lookups | function: two_lookups | kind: double | what is wrong: the values are taken from the coordinates 3, 4, 5 and not 2, 3, 4, so each slot ends with the constant 1; the entries of w_q are only 5, a gap of 2.9, so the weights are not sharp and other tokens' values leak in
# told: named
# now: named
# says: the attention is not sharp enough, and the value is taken from other coordinates
def two_lookups() -> dict[str, torch.Tensor]:
    names = ("w_q", "w_k", "w_v", "w_o")
    weights = {name: torch.zeros(6, 6) for name in names}
    for head, mark in ((0, 0), (1, 1)):
        first = 3 * head
        weights["w_q"][5, first] = 5.0
        weights["w_k"][mark, first] = 1.0
        for j in range(3):
            weights["w_v"][3 + j, first + j] = 1.0
            weights["w_o"][first + j, first + j] = 1.0
    return weights


# === exercise: grouped-query-attention | function: GroupedQueryAttention | kind: plain | what is wrong: w_k and w_v have d_model // kv_heads columns in place of kv_heads · d_model/heads, which agrees only where kv_heads² = heads (as in the example with 4 and 2) and elsewhere gives wrong shapes and errors
# told: told
# now: named
# says: kv heads of another width
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        if d_model % heads != 0:
            raise ValueError(f"heads = {heads} does not divide d_model = {d_model}")
        if heads % kv_heads != 0:
            raise ValueError(f"kv_heads = {kv_heads} does not divide heads = {heads}")
        self.heads, self.kv_heads = heads, kv_heads
        kv_dim = d_model // kv_heads
        std = 1 / math.sqrt(d_model)
        self.w_q = nn.Parameter(torch.randn(d_model, d_model) * std)
        self.w_k = nn.Parameter(torch.randn(d_model, kv_dim) * std)
        self.w_v = nn.Parameter(torch.randn(d_model, kv_dim) * std)
        self.w_o = nn.Parameter(torch.randn(d_model, d_model) * std)

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
        v = repeat_heads(split_heads(x_kv @ self.w_v, self.kv_heads), times)
        if mask is not None:
            mask = mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o, weights


# === exercise: grouped-query-attention | function: GroupedQueryAttention | kind: subtle | what is wrong: the two checks are joined by `and`, so a ValueError comes only if both divisions fail, and (8, 4, 3) or (8, 3, 1) are built without one
# told: named
# now: named
# says: a width that heads does not divide is accepted
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        if d_model % heads and heads % kv_heads:
            raise ValueError(
                f"{kv_heads} must divide {heads}, and {heads} must divide {d_model}"
            )
        self.heads = heads
        self.kv_heads = kv_heads
        self.group = heads // kv_heads
        d_k = d_model // heads

        def draw(columns: int) -> nn.Parameter:
            return nn.Parameter(torch.randn(d_model, columns) / math.sqrt(d_model))

        self.w_q = draw(d_model)
        self.w_k = draw(kv_heads * d_k)
        self.w_v = draw(kv_heads * d_k)
        self.w_o = draw(d_model)

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        x_kv = x_q if x_kv is None else x_kv
        q = split_heads(x_q @ self.w_q, self.heads)
        k = split_heads(x_kv @ self.w_k, self.kv_heads)
        v = split_heads(x_kv @ self.w_v, self.kv_heads)
        k, v = repeat_heads(k, self.group), repeat_heads(v, self.group)
        mask = None if mask is None else mask.unsqueeze(-3)
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o, weights


# === exercise: grouped-query-attention | function: GroupedQueryAttention | kind: double | what is wrong: the queries are divided by √d_k before scaled_dot_product_attention divides the scores again, so they are scaled twice; the mask's new axis is counted from the front, so a mask (T_q, T_k) without a batch becomes (T_q, 1, T_k) and its rows are laid over the heads
# told: named
# now: named
# says: the axis for the heads is counted from the front, and scaled twice
class GroupedQueryAttention(nn.Module):
    def __init__(self, d_model: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        for whole, part in ((d_model, heads), (heads, kv_heads)):
            if whole % part:
                raise ValueError(f"{part} does not divide {whole}")
        self.heads, self.kv_heads, self.d_k = heads, kv_heads, d_model // heads
        widths = {
            "w_q": d_model,
            "w_k": kv_heads * self.d_k,
            "w_v": kv_heads * self.d_k,
            "w_o": d_model,
        }
        for name, width in widths.items():
            matrix = torch.empty(d_model, width)
            nn.init.normal_(matrix, std=d_model**-0.5)
            setattr(self, name, nn.Parameter(matrix))

    def forward(
        self,
        x_q: torch.Tensor,
        x_kv: torch.Tensor | None = None,
        mask: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if x_kv is None:
            x_kv = x_q
        times = self.heads // self.kv_heads
        q = split_heads(x_q @ self.w_q, self.heads) / math.sqrt(self.d_k)
        k = repeat_heads(split_heads(x_kv @ self.w_k, self.kv_heads), times)
        v = repeat_heads(split_heads(x_kv @ self.w_v, self.kv_heads), times)
        if mask is not None:
            mask = mask[:, None]
        z, weights = scaled_dot_product_attention(q, k, v, mask)
        return merge_heads(z) @ self.w_o, weights


# === exercise: texts-served | function: texts_served | kind: plain | what is wrong: below 16 bits the scale of 16 bits is added once for each text and not once for each vector
# told: named
# now: named
# says: one scale for all positions
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
    if left < 0:
        return 0
    numbers = 2 * layers * length * kv_heads * (d_model // heads)
    text = numbers * cache_bits
    if cache_bits < 16:
        text += 16  # the scale
    return left // text


# === exercise: texts-served | function: texts_served | kind: subtle | what is wrong: each vector is rounded up to whole bytes, although nothing is rounded, so too few texts fit where d_k · cache_bits is not a multiple of 8 (a head of width 4 with 3 bits has 28 bits and is counted as 32)
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
    head_dim = d_model // heads
    bits = head_dim * cache_bits + (16 if cache_bits < 16 else 0)
    vector_bytes = (bits + 7) // 8
    text_bytes = 2 * layers * kv_heads * length * vector_bytes
    free_bits = memory * 8 - parameters * weight_bits
    return max(0, free_bits // (8 * text_bytes))


# === exercise: texts-served | function: texts_served | kind: double | what is wrong: a text's vectors are counted for all query heads and not for the kv_heads that are stored; a memory too small for the parameters gives a negative number and not 0
# told: named
# now: named
# says: keys and values of all heads are kept, and a negative number of texts
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
    available = memory * 8 - parameters * weight_bits
    d_k = d_model // heads
    scale = 0 if cache_bits >= 16 else 16
    vector = d_k * cache_bits + scale
    vectors = 0
    for _ in range(layers):
        vectors += 2 * heads * length  # keys and values
    return available // (vectors * vector)
