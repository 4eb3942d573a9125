# ruff: noqa
# fmt: off

# === exercise: layer-norm | function: LayerNorm | kind: subtle | what is wrong: epsilon is always 1e-5, the argument is stored and not used
# told: named
# now: named
# says: epsilon is always 0.00001
class LayerNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True, unbiased=False)
        return self.gamma * (x - mean) * torch.rsqrt(var + 1e-5) + self.beta


# === exercise: layer-norm | function: LayerNorm | kind: double | what is wrong: variance as mean of squares without subtracting the mean AND beta is added before gamma multiplies
# told: named
# now: named
# says: beta added before gamma multiplies, and the variance of what is not centred
class LayerNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        mu = x.mean(-1, keepdim=True)
        sigma2 = x.pow(2).mean(-1, keepdim=True)
        normal = (x - mu) / torch.sqrt(sigma2 + self.epsilon)
        return (normal + self.beta) * self.gamma


# === exercise: diagnose-norm | function: diagnose_norm | kind: subtle | what is wrong: batch norm takes mean and variance over the batch axis alone, not over all tokens
# told: named
# now: named
# says: takes “batch norm” for “whole tensor”
def diagnose_norm(x, y):
    eps = 1e-5

    def norm(dims):
        return (x - x.mean(dims, keepdim=True)) / (x.var(dims, correction=0, keepdim=True) + eps).sqrt()

    m = x.mean(-1, keepdim=True)
    found = {
        "layer norm": norm((2,)),
        "batch norm": norm((0,)),
        "whole tensor": norm((0, 1, 2)),
        "unbiased variance": (x - m) / (x.var(-1, keepdim=True) + eps).sqrt(),
        "epsilon outside the root": (x - m) / (x.std(-1, correction=0, keepdim=True) + eps),
    }
    return min(found, key=lambda name: (found[name] - y).abs().max().item())


# === exercise: diagnose-norm | function: diagnose_norm | kind: double | what is wrong: the names of layer norm and unbiased variance are exchanged AND the farthest and not the nearest is returned
# told: told
# now: named
# says: the farthest in place of the nearest
def diagnose_norm(x, y):
    m, e = x.mean(-1, keepdim=True), 1e-5
    v, u = x.var(-1, keepdim=True, correction=0), x.var(-1, keepdim=True)
    rows = x.reshape(-1, x.shape[-1])
    guesses = [
        ("unbiased variance", (x - m) / (v + e).sqrt()),
        ("layer norm", (x - m) / (u + e).sqrt()),
        ("batch norm", ((rows - rows.mean(0)) / (rows.var(0, correction=0) + e).sqrt()).view_as(x)),
        ("whole tensor", (x - x.mean()) / (x.var(correction=0) + e).sqrt()),
        ("epsilon outside the root", (x - m) / (v.sqrt() + e)),
    ]
    return max(guesses, key=lambda g: float((g[1] - y).norm()))[0]


# === exercise: rms-norm | function: RMSNorm | kind: plain | what is wrong: divides by the length of the token (the root of the sum of squares) and not by the root of the mean
# told: named
# now: named
# says: the sum in place of the mean
class RMSNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        return self.gamma * x / torch.sqrt((x * x).sum(-1, keepdim=True) + self.epsilon)


# === exercise: rms-norm | function: RMSNorm | kind: double | what is wrong: epsilon is outside the root AND gamma starts at zero as an offset, (1 + gamma)
# told: named
# now: named
# says: gamma and beta start with other numbers
class RMSNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        rms = x.square().mean(-1, keepdim=True).sqrt() + self.epsilon
        return (1 + self.gamma) * x / rms


# === exercise: gelu | functions: gelu, dead_units | kind: subtle | what is wrong: a unit is dead if one token has slope 0 (any in place of all)
# told: named
# now: named
# says: dead for some token
def gelu(x):
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def dead_units(x, activation):
    x = x.detach().clone().requires_grad_()
    y = torch.relu(x) if activation == "relu" else gelu(x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    return (slope.flatten(0, -2) == 0).any(dim=0)


# === exercise: gelu | functions: gelu, dead_units | kind: double | what is wrong: the tanh approximation AND with two axes of tokens only the sentences' axis is joined, so the result is (T, d_ff)
# told: named
# now: named
# says: the tanh approximation
def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def dead_units(x, activation):
    if activation == "gelu":
        return torch.zeros(x.shape[-1], dtype=torch.bool)
    return (x <= 0).all(dim=0)


# === exercise: gelu | functions: gelu, dead_units | kind: subtle | what is wrong: a unit of ReLU that gets exactly 0 for a token counts as living (x < 0)
# told: named
# now: named
# says: 0 counts as alive
def gelu(x):
    return x * torch.special.ndtr(x)


def dead_units(x, activation):
    rows = x.reshape(-1, x.shape[-1])
    if activation == "relu":
        return (rows < 0).all(0)
    z = rows.detach().requires_grad_(True)
    g = torch.autograd.grad(gelu(z).sum(), z)[0]
    return (g == 0).all(0)


# === exercise: feed-forward | function: FeedForward | kind: subtle | what is wrong: an unknown activation is not refused, it is taken for ReLU
# told: named
# now: named
# says: an unknown activation is accepted
class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, activation: str = "relu") -> None:
        super().__init__()
        self.f = gelu if activation == "gelu" else torch.relu
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / math.sqrt(d_ff))
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        return self.f(x @ self.w_1 + self.b_1) @ self.w_2 + self.b_2


# === exercise: feed-forward | function: FeedForward | kind: double | what is wrong: the spreads of the two matrices are exchanged AND the first bias is added after the activation
# told: named
# now: named
# says: b_1 added after the activation
class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, activation: str = "relu") -> None:
        super().__init__()
        if activation not in ("relu", "gelu"):
            raise ValueError(f"unknown activation {activation!r}")
        self.activation = activation
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) * d_ff**-0.5)
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) * d_model**-0.5)
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        h = x @ self.w_1
        h = gelu(h) if self.activation == "gelu" else h.clamp(min=0)
        return (h + self.b_1) @ self.w_2 + self.b_2


# === exercise: swiglu | function: SwiGLU | kind: plain | what is wrong: the gate is a plain sigmoid (GLU), not SiLU
# told: named
# now: named
# says: sigmoid in place of SiLU
class SwiGLU(nn.Module):
    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.w_gate = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.w_up = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.w_down = nn.Parameter(torch.randn(d_ff, d_model) / math.sqrt(d_ff))

    def forward(self, x):
        return (torch.sigmoid(x @ self.w_gate) * (x @ self.w_up)) @ self.w_down


# === exercise: encoder-layer | function: EncoderLayer | kind: subtle | what is wrong: in pre-norm the second half is normalised with norm_1 again
# told: named
# now: named
# says: one norm for both halves
class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff, dropout=0.0, norm_first=False, activation="relu"):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm_1, self.norm_2 = LayerNorm(d_model), LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        if self.norm_first:
            a = x + self.dropout(self.attention(self.norm_1(x), mask=mask)[0])
            return a + self.dropout(self.feed_forward(self.norm_1(a)))
        a = self.norm_1(x + self.dropout(self.attention(x, mask=mask)[0]))
        return self.norm_2(a + self.dropout(self.feed_forward(a)))


# === exercise: encoder-layer | function: EncoderLayer | kind: double | what is wrong: the activation is not handed on (always ReLU) AND the second residual adds x and not a
# told: named
# now: named
# says: second residual from the layer's input
class EncoderLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff, dropout=0.0, norm_first=False, activation="relu"):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        if self.norm_first:
            out, _ = self.attention(self.norm_1(x), mask=mask)
            a = x + self.dropout(out)
            return x + self.dropout(self.feed_forward(self.norm_2(a)))
        out, _ = self.attention(x, mask=mask)
        a = self.norm_1(x + self.dropout(out))
        return self.norm_2(x + self.dropout(self.feed_forward(a)))


# === exercise: encoder-layer-from-torch | function: encoder_layer_from_torch | kind: plain | what is wrong: gamma and beta of both norms are exchanged
# told: named
# now: named
# says: two tensors exchanged
def encoder_layer_from_torch(state):
    inner = {k[len("self_attn."):]: v for k, v in state.items() if k.startswith("self_attn.")}
    out = {"attention." + k: v for k, v in attention_from_torch(inner).items()}
    for i in (1, 2):
        out[f"feed_forward.w_{i}"] = state[f"linear{i}.weight"].T
        out[f"feed_forward.b_{i}"] = state[f"linear{i}.bias"]
        out[f"norm_{i}.beta"] = state[f"norm{i}.weight"]
        out[f"norm_{i}.gamma"] = state[f"norm{i}.bias"]
    return out


# === exercise: encoder | function: Encoder | kind: subtle | what is wrong: only the first layer gets the mask
# told: named
# now: named
# says: mask only for the first layer
class Encoder(nn.Module):
    def __init__(self, layers, d_model, heads, d_ff, dropout=0.0, norm_first=False, activation="relu"):
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, heads, d_ff, dropout, norm_first, activation) for _ in range(layers)
        )
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
            mask = None
        return self.norm(x)


# === exercise: encoder | function: Encoder | kind: double | what is wrong: the norm at the end is there in post-norm and missing in pre-norm AND the layers run in reverse order
# told: named
# now: named
# says: final norm in post-norm
class Encoder(nn.Module):
    def __init__(self, layers, d_model, heads, d_ff, dropout=0.0, norm_first=False, activation="relu"):
        super().__init__()
        made = [EncoderLayer(d_model, heads, d_ff, dropout, norm_first, activation) for _ in range(layers)]
        self.layers = nn.ModuleList(made)
        self.norm = nn.Identity() if norm_first else LayerNorm(d_model)

    def forward(self, x, mask=None):
        for i in range(len(self.layers) - 1, -1, -1):
            x = self.layers[i](x, mask)
        return self.norm(x)


# === exercise: mask-tokens | function: mask_tokens | kind: subtle | what is wrong: the labels are taken after the replacement, so they hold what was put in
# told: named
# now: named
# says: the labels are what the model sees
def mask_tokens(ids, uniform, kind, random_ids, mask_id, special_ids, probability=0.15):
    special = torch.isin(ids, torch.tensor(special_ids, dtype=ids.dtype))
    chosen = (uniform < probability) & ~special
    inputs = ids.clone()
    inputs[chosen & (kind < 0.8)] = mask_id
    swap = chosen & (kind >= 0.8) & (kind < 0.9)
    inputs[swap] = random_ids[swap]
    labels = inputs.clone()
    labels[~chosen] = -100
    return inputs, labels


# === exercise: mask-tokens | function: mask_tokens | kind: double | what is wrong: the kept tenth is not scored AND special tokens may be chosen
# told: named
# now: named
# says: special tokens masked
def mask_tokens(ids, uniform, kind, random_ids, mask_id, special_ids, probability=0.15):
    inputs, labels = ids.clone(), torch.full_like(ids, -100)
    for b in range(ids.shape[0]):
        for t in range(ids.shape[1]):
            if uniform[b, t] < probability:
                if kind[b, t] < 0.8:
                    inputs[b, t] = mask_id
                    labels[b, t] = ids[b, t]
                elif kind[b, t] < 0.9:
                    inputs[b, t] = random_ids[b, t]
                    labels[b, t] = ids[b, t]
    return inputs, labels


# === exercise: masked-language-model-loss | function: masked_language_model_loss | kind: subtle | what is wrong: the mean is taken over each sentence first, then over the sentences that have any
# told: named
# now: named
# says: the mean of the sentences' means
def masked_language_model_loss(logits, labels):
    losses = []
    for l, y in zip(logits, labels):
        keep = y != -100
        if keep.any():
            losses.append(nn.functional.cross_entropy(l[keep], y[keep]))
    if not losses:
        return logits.sum() * 0
    return torch.stack(losses).mean()


# === exercise: masked-language-model-loss | function: masked_language_model_loss | kind: double | what is wrong: the sum is divided by all positions AND NaN-free only because log(softmax + 1e-9) is taken, which is wrong for large logits
# told: shown
# now: named
# says: the mean over all positions, and a small number added in the logarithm
def masked_language_model_loss(logits, labels):
    p = torch.softmax(logits, dim=-1)
    y = labels.clamp(min=0).unsqueeze(-1)
    nll = -torch.log(p.gather(-1, y).squeeze(-1) + 1e-9)
    return (nll * (labels != -100)).sum() / labels.numel()
