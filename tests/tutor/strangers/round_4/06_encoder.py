# ruff: noqa
# fmt: off

# === exercise: layer-norm | function: LayerNorm | kind: subtle | what is wrong: the variance divides by d - 1 (torch.var's default)
# told: named
# now: named
# says: unbiased variance
class LayerNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(dim=-1, keepdim=True)
        var = x.var(dim=-1, keepdim=True)
        return self.gamma * (x - mean) / torch.sqrt(var + self.epsilon) + self.beta


# === exercise: layer-norm | function: LayerNorm | kind: double | what is wrong: epsilon is added to the standard deviation, after the root AND mean and spread are detached (no gradient through them)
# told: named
# now: named
# says: epsilon outside the root
class LayerNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            mean = x.mean(-1, keepdim=True)
            std = x.std(-1, keepdim=True, unbiased=False)
        return self.gamma * (x - mean) / (std + self.epsilon) + self.beta


# === exercise: diagnose-norm | function: diagnose_norm | kind: subtle | what is wrong: batch norm is taken over the first axis only (mean over B, not B and T), and the std of epsilon outside and whole tensor is unbiased
# told: named
# now: named
# says: takes “batch norm” for “whole tensor”
def diagnose_norm(x: torch.Tensor, y: torch.Tensor) -> str:
    eps = 1e-5
    mean = x.mean(-1, keepdim=True)
    candidates = {
        "layer norm": (x - mean) / (x.var(-1, keepdim=True, correction=0) + eps).sqrt(),
        "unbiased variance": (x - mean) / (x.var(-1, keepdim=True) + eps).sqrt(),
        "epsilon outside the root": (x - mean) / (x.std(-1, keepdim=True) + eps),
        "whole tensor": (x - x.mean()) / (x.var() + eps).sqrt(),
        "batch norm": (x - x.mean(0)) / (x.var(0, correction=0) + eps).sqrt(),
    }
    errors = {name: (value - y).abs().max().item() for name, value in candidates.items()}
    return min(errors, key=errors.get)


# === exercise: rms-norm | function: RMSNorm | kind: plain | what is wrong: divides by the root of the sum of squares (the norm), not of their mean
# told: named
# now: named
# says: the sum in place of the mean
class RMSNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = torch.sqrt(torch.sum(x**2, dim=-1, keepdim=True) + self.epsilon)
        return self.gamma * x / length


# === exercise: gelu | function: gelu, dead_units | kind: double | what is wrong: gelu is the tanh approximation AND dead_units looks along the tokens only, so a batch gives (B, d_ff)
# told: named
# now: named
# says: the tanh approximation
def gelu(x: torch.Tensor) -> torch.Tensor:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + torch.tanh(inner))


def dead_units(x: torch.Tensor, activation: str) -> torch.Tensor:
    x = x.detach().clone().requires_grad_(True)
    y = torch.relu(x) if activation == "relu" else gelu(x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    return (slope == 0).all(dim=-2)


# === exercise: gelu | function: gelu, dead_units | kind: subtle | what is wrong: dead means no output (below 0.001) for any token, not no slope: with GELU inputs of 0 or -5 count as dead
# told: shown
# now: named
# says: the values in place of the slopes
def gelu(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5 * (1.0 + torch.erf(x / 2**0.5))


def dead_units(x: torch.Tensor, activation: str) -> torch.Tensor:
    y = torch.relu(x) if activation == "relu" else gelu(x)
    y = y.reshape(-1, x.shape[-1])
    return (y.abs() < 1e-3).all(dim=0)


# === exercise: feed-forward | function: FeedForward | kind: subtle | what is wrong: an unknown activation raises only in forward, in __init__ nothing is refused
# told: named
# now: named
# says: an unknown activation is accepted
class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, activation: str = "relu") -> None:
        super().__init__()
        self.activation = activation
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / math.sqrt(d_ff))
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = x @ self.w_1 + self.b_1
        if self.activation == "relu":
            hidden = hidden.clamp(min=0)
        elif self.activation == "gelu":
            hidden = gelu(hidden)
        else:
            raise ValueError(self.activation)
        return hidden @ self.w_2 + self.b_2


# === exercise: swiglu | function: SwiGLU | kind: plain | what is wrong: sigmoid in place of SiLU on the gate (GLU)
# told: named
# now: named
# says: sigmoid in place of SiLU
class SwiGLU(nn.Module):
    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.w_gate = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.w_up = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.w_down = nn.Parameter(torch.randn(d_ff, d_model) / math.sqrt(d_ff))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = torch.sigmoid(x @ self.w_gate)
        return (gate * (x @ self.w_up)) @ self.w_down


# === exercise: encoder-layer | function: EncoderLayer | kind: subtle | what is wrong: in pre-norm the residual adds the normalised x (x is overwritten by norm_1(x))
# told: named
# now: named
# says: residual from the normalised x
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
            x = self.norm_1(x)
            x = x + self.dropout(self.attention(x, mask=mask)[0])
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, mask=mask)[0]))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))


# === exercise: encoder-layer | function: EncoderLayer | kind: double | what is wrong: dropout acts on the sum, after the addition AND the activation is not passed on to the network
# told: named
# now: named
# says: dropout after the addition
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
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if self.norm_first:
            z, _ = self.attention(self.norm_1(x), mask=mask)
            a = self.dropout(x + z)
            return self.dropout(a + self.feed_forward(self.norm_2(a)))
        z, _ = self.attention(x, mask=mask)
        a = self.norm_1(self.dropout(x + z))
        return self.norm_2(self.dropout(a + self.feed_forward(a)))


# === exercise: encoder-layer-from-torch | function: encoder_layer_from_torch | kind: plain | what is wrong: the matrices of the feed-forward network are not transposed
# told: named
# now: named
# says: a matrix is not transposed
def encoder_layer_from_torch(state: dict) -> dict:
    attention = {
        name.removeprefix("self_attn."): value
        for name, value in state.items()
        if name.startswith("self_attn.")
    }
    result = {
        "attention." + name: value
        for name, value in attention_from_torch(attention).items()
    }
    names = {
        "linear1.weight": "feed_forward.w_1",
        "linear1.bias": "feed_forward.b_1",
        "linear2.weight": "feed_forward.w_2",
        "linear2.bias": "feed_forward.b_2",
        "norm1.weight": "norm_1.gamma",
        "norm1.bias": "norm_1.beta",
        "norm2.weight": "norm_2.gamma",
        "norm2.bias": "norm_2.beta",
    }
    for old, new in names.items():
        result[new] = state[old]
    return result


# === exercise: encoder | function: Encoder | kind: subtle | what is wrong: the same layer object is repeated, [layer] * n: one set of weights for all
# told: named
# now: named
# says: one layer, repeated
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
        layer = EncoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
        self.layers = nn.ModuleList([layer] * layers)
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


# === exercise: encoder | function: Encoder | kind: double | what is wrong: a LayerNorm at the end in post-norm, too AND mask is given to the first layer only
# told: named
# now: named
# says: final norm in post-norm
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
        self.layers = nn.ModuleList()
        for _ in range(layers):
            self.layers.append(
                EncoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
            )
        self.norm = LayerNorm(d_model)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        x = self.layers[0](x, mask)
        for layer in self.layers[1:]:
            x = layer(x)
        return self.norm(x)


# === exercise: mask-tokens | function: mask_tokens | kind: plain | what is wrong: labels are written from the changed inputs (the original is overwritten by the mask first)
# told: named
# now: named
# says: the labels are what the model sees
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
        chosen &= ids != special
    inputs = ids.clone()
    inputs[chosen & (kind < 0.8)] = mask_id
    replaced = chosen & (kind >= 0.8) & (kind < 0.9)
    inputs[replaced] = random_ids[replaced]
    labels = torch.full_like(ids, -100)
    labels[chosen] = inputs[chosen]
    return inputs, labels


# === exercise: mask-tokens | function: mask_tokens | kind: double | what is wrong: unchanged tokens (kind from 0.9) are not scored AND a random token that is a special id is rejected
# told: shown
# now: told
# line: 16
def mask_tokens(
    ids: torch.Tensor,
    uniform: torch.Tensor,
    kind: torch.Tensor,
    random_ids: torch.Tensor,
    mask_id: int,
    special_ids: list[int],
    probability: float = 0.15,
) -> tuple[torch.Tensor, torch.Tensor]:
    special = torch.tensor(special_ids, dtype=ids.dtype)
    chosen = (uniform < probability) & ~torch.isin(ids, special)
    masked = chosen & (kind < 0.8)
    swapped = chosen & (kind >= 0.8) & (kind < 0.9) & ~torch.isin(random_ids, special)
    inputs = torch.where(masked, mask_id, ids)
    inputs = torch.where(swapped, random_ids, inputs)
    labels = torch.where(masked | swapped, ids, -100)
    return inputs, labels


# === exercise: masked-language-model-loss | function: masked_language_model_loss | kind: subtle | what is wrong: F.cross_entropy with ignore_index: NaN if no position is scored
# told: named
# now: named
# says: NaN when nothing is scored
def masked_language_model_loss(
    logits: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    return nn.functional.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=-100
    )


# === exercise: encoder-classifier | function: EncoderClassifier | kind: double | what is wrong: positions are added before the class token is prepended, so words begin at position 0 AND the mask is extended at the end (F.pad to the right), not at the front
# told: useless
# now: named
# says: positions before the class token
# line: 24
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
        self.embedding = Embedding(vocab_size, d_model)
        self.class_token = ClassToken(d_model)
        self.position = SinusoidalPositionalEncoding(d_model, max_length + 1, dropout)
        self.encoder = Encoder(layers, d_model, heads, d_ff, dropout, norm_first=True)
        self.head = ClassHead(d_model, classes)

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        x = self.position(self.embedding(ids))
        x = self.class_token(x)
        mask = padding_mask(lengths, ids.shape[1])
        mask = nn.functional.pad(mask, (0, 1), value=True)
        return self.head(self.encoder(x, mask))
