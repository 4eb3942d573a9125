# ruff: noqa
# fmt: off

# === exercise: layer-norm | function: LayerNorm | kind: plain | what is wrong: beta is added before the multiplication with gamma, so the result is gamma * (normalised + beta) and the offset gets scaled by gamma too
# told: named
# now: named
# says: beta added before gamma multiplies
class LayerNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(dim=-1, keepdim=True)
        variance = x.var(dim=-1, keepdim=True, correction=0)
        normalised = (x - mean) / torch.sqrt(variance + self.epsilon)
        return self.gamma * (normalised + self.beta)


# === exercise: layer-norm | function: LayerNorm | kind: subtle | what is wrong: epsilon is used as a lower bound of the variance (clamp) instead of being added to it, which shows only on tokens with a small spread
# told: named
# now: named
# says: epsilon as a lower limit
class LayerNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        centred = x - x.mean(-1, keepdim=True)
        var = (centred**2).mean(-1, keepdim=True)
        sigma = var.clamp(min=self.epsilon).sqrt()  # never divide by zero
        return centred / sigma * self.gamma + self.beta


# === exercise: diagnose-norm | function: diagnose_norm | kind: subtle | what is wrong: it returns the first suspect that agrees with y within 0.05 instead of the nearest one, so with small spreads or a large d the unbiased variance (and sometimes another norm) is taken for "layer norm"
# told: named
# now: named
# says: the first within a tolerance in place of the nearest
def diagnose_norm(x: torch.Tensor, y: torch.Tensor) -> str:
    eps = 1e-5

    def standardise(dims, correction=0):
        m = x.mean(dims, keepdim=True)
        v = x.var(dims, correction=correction, keepdim=True)
        return (x - m) / torch.sqrt(v + eps)

    suspects = {
        "layer norm": standardise((-1,)),
        "batch norm": standardise((0, 1)),
        "whole tensor": standardise((0, 1, 2)),
        "unbiased variance": standardise((-1,), correction=1),
    }
    for name, suspect in suspects.items():
        if torch.allclose(suspect, y, atol=5e-2):
            return name
    return "epsilon outside the root"


# === exercise: rms-norm | function: RMSNorm | kind: double | what is wrong: the norm of the token is divided by d instead of the root of d AND epsilon is added after the root instead of inside it
# told: shown
# now: named
# says: the length divided by d in place of its root
class RMSNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        d = x.shape[-1]
        rms = torch.linalg.vector_norm(x, dim=-1, keepdim=True) / d
        return self.gamma * x / (rms + self.epsilon)


# === exercise: gelu | function: gelu, dead_units | kind: plain | what is wrong: gelu multiplies x by the density of the normal distribution instead of by its distribution function
# told: named
# now: named
# says: the density in place of the distribution
def gelu(x: torch.Tensor) -> torch.Tensor:
    normal = torch.distributions.Normal(0.0, 1.0)
    phi = normal.log_prob(x).exp()
    return x * phi


def dead_units(x: torch.Tensor, activation: str) -> torch.Tensor:
    x = x.detach().clone().requires_grad_()
    with torch.enable_grad():
        y = torch.relu(x) if activation == "relu" else gelu(x)
        (slope,) = torch.autograd.grad(y.sum(), x)
    return (slope == 0).reshape(-1, x.shape[-1]).all(dim=0)


# === exercise: gelu | function: gelu, dead_units | kind: subtle | what is wrong: dead_units says for GELU that every unit lives, without looking at the slopes, although far to the left the slope is exactly 0 and such a unit is dead
# told: named
# now: named
# says: with GELU nothing is ever dead
def gelu(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def dead_units(x: torch.Tensor, activation: str) -> torch.Tensor:
    d_ff = x.size(-1)
    if activation == "gelu":
        return torch.zeros(d_ff, dtype=torch.bool, device=x.device)
    tokens = x.detach().reshape(-1, d_ff)
    has_slope = tokens > 0
    return ~has_slope.any(dim=0)


# === exercise: feed-forward | function: FeedForward | kind: double | what is wrong: b_1 is added after the activation instead of before it AND an unknown activation raises a KeyError instead of a ValueError
# told: named
# now: named
# says: b_1 added after the activation
class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, activation: str = "relu") -> None:
        super().__init__()
        functions = {"relu": torch.relu, "gelu": gelu}
        self.f = functions[activation]
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) / d_model**0.5)
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / d_ff**0.5)
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.f(x @ self.w_1) + self.b_1
        return hidden @ self.w_2 + self.b_2


# === exercise: swiglu | function: SwiGLU | kind: plain | what is wrong: SiLU is applied to the product of gate and up instead of to the gate only
# told: named
# now: named
# says: activation on the product
class SwiGLU(nn.Module):
    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.w_gate = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.w_up = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.w_down = nn.Parameter(torch.randn(d_ff, d_model) / math.sqrt(d_ff))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = torch.einsum("...d,df->...f", x, self.w_gate)
        up = torch.einsum("...d,df->...f", x, self.w_up)
        hidden = nn.functional.silu(gate * up)
        return torch.einsum("...f,fd->...d", hidden, self.w_down)


# === exercise: swiglu | function: SwiGLU | kind: double | what is wrong: the sign in the exponent is lost, u / (1 + exp(u)) in place of u / (1 + exp(-u)), AND w_down is divided by the root of d_model (its columns) instead of the root of d_ff (its rows)
# told: named
# now: named
# says: the sign in the exponent
class SwiGLU(nn.Module):
    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        scale = 1 / math.sqrt(d_model)
        self.w_gate = nn.Parameter(scale * torch.randn(d_model, d_ff))
        self.w_up = nn.Parameter(scale * torch.randn(d_model, d_ff))
        self.w_down = nn.Parameter(scale * torch.randn(d_ff, d_model))

    @staticmethod
    def silu(u: torch.Tensor) -> torch.Tensor:
        return u / (1 + torch.exp(u))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        g = self.silu(x @ self.w_gate)
        return (g * (x @ self.w_up)) @ self.w_down


# === exercise: encoder-layer | function: EncoderLayer | kind: subtle | what is wrong: in the pre-norm branch the mask is not passed to attention, so norm_first=True with a mask lets tokens attend to hidden ones
# told: named
# now: named
# says: mask not passed on
class EncoderLayer(nn.Module):
    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = False,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if self.norm_first:
            attended, _ = self.attention(self.norm_1(x))
            x = x + self.dropout(attended)
            x = x + self.dropout(self.feed_forward(self.norm_2(x)))
        else:
            attended, _ = self.attention(x, mask=mask)
            x = self.norm_1(x + self.dropout(attended))
            x = self.norm_2(x + self.dropout(self.feed_forward(x)))
        return x


# === exercise: encoder-layer | function: EncoderLayer | kind: double | what is wrong: the second residual connection adds to the layer's input x instead of to a, the result of the first half, AND the feed-forward branch gets no dropout
# told: named
# now: named
# says: second residual from the layer's input
class EncoderLayer(nn.Module):
    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = False,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation=activation)
        self.norm_1, self.norm_2 = LayerNorm(d_model), LayerNorm(d_model)
        self.dropout = nn.Dropout(p=dropout)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        def attend(stream):
            return self.dropout(self.attention(stream, mask=mask)[0])

        if self.norm_first:
            a = x + attend(self.norm_1(x))
            y = x + self.feed_forward(self.norm_2(a))
        else:
            a = self.norm_1(x + attend(x))
            y = self.norm_2(x + self.feed_forward(a))
        return y


# === exercise: encoder-layer-from-torch | function: encoder_layer_from_torch | kind: plain | what is wrong: the two matrices of the feed-forward network are reshaped to the swapped shape instead of transposed, so the shapes fit but the numbers stand in the wrong places
# told: named
# now: named
# says: reshaped in place of transposed
def encoder_layer_from_torch(state: dict) -> dict:
    prefix = "self_attn."
    inner = {}
    for key, value in state.items():
        if key.startswith(prefix):
            inner[key.removeprefix(prefix)] = value
    result = {}
    for key, value in attention_from_torch(inner).items():
        result[f"attention.{key}"] = value

    d_ff, d_model = state["linear1.weight"].shape
    result["feed_forward.w_1"] = state["linear1.weight"].reshape(d_model, d_ff)
    result["feed_forward.b_1"] = state["linear1.bias"]
    result["feed_forward.w_2"] = state["linear2.weight"].reshape(d_ff, d_model)
    result["feed_forward.b_2"] = state["linear2.bias"]
    for i in (1, 2):
        result[f"norm_{i}.gamma"] = state[f"norm{i}.weight"]
        result[f"norm_{i}.beta"] = state[f"norm{i}.bias"]
    return result


# === exercise: encoder | function: Encoder | kind: double | what is wrong: the layers are deep copies of one layer and so all start with the same random numbers AND only the first layer gets the mask
# told: named
# now: named
# says: the layers start as copies
import copy


class Encoder(nn.Module):
    def __init__(
        self,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        dropout: float = 0.0,
        norm_first: bool = False,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        prototype = EncoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
        self.layers = nn.ModuleList([copy.deepcopy(prototype) for _ in range(layers)])
        if norm_first:
            self.norm = LayerNorm(d_model)
        else:
            self.norm = nn.Identity()

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        for number, layer in enumerate(self.layers):
            if number == 0:
                x = layer(x, mask)
            else:
                x = layer(x)
        return self.norm(x)


# === exercise: mask-tokens | function: mask_tokens | kind: subtle | what is wrong: a chosen token whose kind is exactly 0.8 stays unchanged, because the random case asks for kind greater than 0.8 instead of at least 0.8
# told: named
# now: named
# says: kind equal to 0.8 stays unchanged
def mask_tokens(
    ids: torch.Tensor,
    uniform: torch.Tensor,
    kind: torch.Tensor,
    random_ids: torch.Tensor,
    mask_id: int,
    special_ids: list[int],
    probability: float = 0.15,
) -> tuple[torch.Tensor, torch.Tensor]:
    chosen = uniform < probability
    for special in special_ids:
        chosen = chosen & (ids != special)

    inputs = ids.clone()
    to_mask = chosen & (kind < 0.8)
    to_random = chosen & (kind > 0.8) & (kind < 0.9)
    inputs[to_mask] = mask_id
    inputs[to_random] = random_ids[to_random]

    labels = torch.full_like(ids, -100)
    labels[chosen] = ids[chosen]
    return inputs, labels


# === exercise: mask-tokens | function: mask_tokens | kind: double | what is wrong: 0.15 is written into the code and the argument probability is ignored AND special tokens are kept from being replaced but still get a label instead of -100
# told: named
# now: named
# says: probability is always 0.15
def mask_tokens(
    ids: torch.Tensor,
    uniform: torch.Tensor,
    kind: torch.Tensor,
    random_ids: torch.Tensor,
    mask_id: int,
    special_ids: list[int],
    probability: float = 0.15,
) -> tuple[torch.Tensor, torch.Tensor]:
    batch, length = ids.shape
    inputs = ids.clone()
    labels = torch.full_like(ids, -100)
    for b in range(batch):
        for t in range(length):
            if uniform[b, t] >= 0.15:
                continue
            labels[b, t] = ids[b, t]
            if ids[b, t].item() in special_ids:
                continue
            if kind[b, t] < 0.8:
                inputs[b, t] = mask_id
            elif kind[b, t] < 0.9:
                inputs[b, t] = random_ids[b, t]
    return inputs, labels


# === exercise: masked-language-model-loss | function: masked_language_model_loss | kind: plain | what is wrong: only labels greater than 0 count as scored, so positions whose label is the word with id 0 are left out
# told: named
# now: named
# says: label 0 is not scored
def masked_language_model_loss(
    logits: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    scored = labels > 0
    rows, wanted = logits[scored], labels[scored]
    logs = torch.log_softmax(rows, dim=-1)
    picked = logs.gather(-1, wanted.unsqueeze(-1))
    return -picked.sum() / max(1, len(wanted))


# === exercise: masked-language-model-loss | function: masked_language_model_loss | kind: subtle | what is wrong: it takes the mean within each sentence and then the mean of the sentences, instead of one mean over the scored positions of all sentences together
# told: named
# now: named
# says: the mean of the sentences' means
def masked_language_model_loss(
    logits: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    scored = labels != -100
    target = labels.masked_fill(~scored, 0)
    log_p = torch.log_softmax(logits, dim=-1)
    nll = -log_p.gather(2, target[..., None]).squeeze(2)
    nll = nll.masked_fill(~scored, 0.0)
    loss_of_sentence = nll.sum(dim=1) / scored.sum(dim=1).clamp(min=1)
    return loss_of_sentence.mean()


# === exercise: encoder-classifier | function: EncoderClassifier | kind: plain | what is wrong: the embeddings are multiplied by the root of d_model once more, although Embedding scales them itself
# told: named
# now: named
# says: embeddings scaled twice
class EncoderClassifier(nn.Module):
    def __init__(
        self,
        vocab_size: int,
        classes: int,
        d_model: int,
        heads: int,
        layers: int,
        d_ff: int,
        max_length: int,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.d_model = d_model
        self.embedding = Embedding(vocab_size, d_model)
        self.class_token = ClassToken(d_model)
        self.position = SinusoidalPositionalEncoding(d_model, max_length + 1, dropout)
        self.encoder = Encoder(layers, d_model, heads, d_ff, dropout, norm_first=True)
        self.head = ClassHead(d_model, classes)

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        tokens = self.embedding(ids) * math.sqrt(self.d_model)
        tokens = self.class_token(tokens)
        tokens = self.position(tokens)
        mask = padding_mask(lengths + 1, ids.shape[1] + 1)
        encoded = self.encoder(tokens, mask)
        return self.head(encoded)
