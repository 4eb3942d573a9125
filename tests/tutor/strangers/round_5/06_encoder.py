# ruff: noqa
# fmt: off

# === exercise: layer-norm | function: LayerNorm | kind: double | what is wrong: the variance divides by d - 1 (torch.std's default) AND epsilon is added after the root, as in the Annotated Transformer
# told: named
# now: named
# says: epsilon outside the root, and unbiased variance
class LayerNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True)
        return self.gamma * (x - mean) / (std + self.epsilon) + self.beta


# === exercise: diagnose-norm | function: diagnose_norm | kind: plain | what is wrong: takes tokens of spread 1 for a sign of layer norm and forgets what epsilon does to small spreads, so layer norm and "epsilon outside the root" are exchanged
# told: named
# now: named
# says: takes “layer norm” for “epsilon outside the root”
def diagnose_norm(x: torch.Tensor, y: torch.Tensor) -> str:
    def is_one(spread):
        return (spread - 1).abs().max() < 0.02

    if y.mean(dim=-1).abs().max() < 1e-3:  # each token has the mean 0
        if is_one(y.std(dim=-1, unbiased=True)):
            return "unbiased variance"
        if is_one(y.std(dim=-1, unbiased=False)):
            return "layer norm"
        return "epsilon outside the root"
    if y.mean(dim=(0, 1)).abs().max() < 1e-3:  # each feature has
        return "batch norm"
    return "whole tensor"


# === exercise: rms-norm | function: RMSNorm | kind: subtle | what is wrong: adds epsilon to the root, not to the mean square under it
# told: named
# now: named
# says: epsilon outside the root
class RMSNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rms = x.norm(dim=-1, keepdim=True) / math.sqrt(x.shape[-1])
        return self.gamma * x / (rms + self.epsilon)


# === exercise: gelu | function: gelu, dead_units | kind: subtle | what is wrong: takes every unit with GELU for alive, though its slope underflows to exactly 0 far to the left
# told: named
# now: named
# says: with GELU nothing is ever dead
def gelu(x: torch.Tensor) -> torch.Tensor:
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def dead_units(x: torch.Tensor, activation: str) -> torch.Tensor:
    units = x.reshape(-1, x.shape[-1])
    if activation == "gelu":
        return torch.zeros(x.shape[-1], dtype=torch.bool)
    return (units <= 0).all(dim=0)


# === exercise: gelu | function: gelu, dead_units | kind: double | what is wrong: GELU by its tanh approximation AND a unit counts as dead if its slope is 0 for any token
# told: named
# now: named
# says: the tanh approximation
def gelu(x: torch.Tensor) -> torch.Tensor:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return x / 2 * (1 + torch.tanh(inner))


def dead_units(x: torch.Tensor, activation: str) -> torch.Tensor:
    x = x.detach().clone().requires_grad_()
    y = torch.relu(x) if activation == "relu" else gelu(x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    return (slope == 0).flatten(0, -2).any(dim=0)


# === exercise: feed-forward | function: FeedForward | kind: double | what is wrong: w_2 is divided by √d_model, too AND GELU is the tanh approximation
# told: named
# now: named
# says: the tanh approximation of GELU
class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, activation: str = "relu") -> None:
        super().__init__()
        if activation not in ("relu", "gelu"):
            raise ValueError(activation)
        self.activation = (
            nn.ReLU() if activation == "relu" else nn.GELU(approximate="tanh")
        )
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / math.sqrt(d_model))
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.activation(x @ self.w_1 + self.b_1)
        return hidden @ self.w_2 + self.b_2


# === exercise: feed-forward | function: FeedForward | kind: plain | what is wrong: any activation that is not "relu" is taken for GELU; nothing is refused
# told: named
# now: named
# says: an unknown activation is accepted
class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, activation: str = "relu") -> None:
        super().__init__()
        self.f = torch.relu if activation == "relu" else gelu
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) * d_model**-0.5)
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) * d_ff**-0.5)
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.f(x @ self.w_1 + self.b_1) @ self.w_2 + self.b_2


# === exercise: swiglu | function: SwiGLU | kind: plain | what is wrong: gates with σ(u) as in GLU, not with u·σ(u)
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


# === exercise: encoder-layer | function: EncoderLayer | kind: subtle | what is wrong: the activation is not handed on, so it is always ReLU
# told: named
# now: named
# says: activation not passed on
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
            x = x + self.dropout(self.attention(self.norm_1(x), mask=mask)[0])
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, mask=mask)[0]))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))


# === exercise: encoder-layer | function: EncoderLayer | kind: double | what is wrong: in pre-norm the branch is added to the normalised x, not to x itself AND in post-norm dropout acts after the addition
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
        self.norm_1, self.norm_2 = LayerNorm(d_model), LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if self.norm_first:
            x = self.norm_1(x)
            x = x + self.dropout(self.attention(x, mask=mask)[0])
            x = self.norm_2(x)
            x = x + self.dropout(self.feed_forward(x))
        else:
            attended, _ = self.attention(x, mask=mask)
            x = self.norm_1(self.dropout(x + attended))
            x = self.norm_2(self.dropout(x + self.feed_forward(x)))
        return x


# === exercise: encoder-layer-from-torch | function: encoder_layer_from_torch | kind: subtle | what is wrong: transposes the square attention matrices once more, although attention_from_torch has done so
# told: wrong
# now: named
# says: attention's matrices are PyTorch's
def encoder_layer_from_torch(state: dict) -> dict:
    prefix = "self_attn."
    attention = attention_from_torch(
        {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
    )
    result = {f"attention.{name}": tensor for name, tensor in attention.items()}
    for i in "12":
        result[f"feed_forward.w_{i}"] = state[f"linear{i}.weight"]
        result[f"feed_forward.b_{i}"] = state[f"linear{i}.bias"]
        result[f"norm_{i}.gamma"] = state[f"norm{i}.weight"]
        result[f"norm_{i}.beta"] = state[f"norm{i}.bias"]
    return {k: v.T if v.dim() == 2 else v for k, v in result.items()}


# === exercise: encoder | function: Encoder | kind: plain | what is wrong: [layer] * layers is one layer with one set of weights, run several times
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


# === exercise: mask-tokens | function: mask_tokens | kind: subtle | what is wrong: labels are kept where the input differs from the id, so a chosen token that stays (or draws itself) is not scored
# told: named
# now: named
# says: only changed tokens are scored
def mask_tokens(
    ids: torch.Tensor,
    uniform: torch.Tensor,
    kind: torch.Tensor,
    random_ids: torch.Tensor,
    mask_id: int,
    special_ids: list[int],
    probability: float = 0.15,
) -> tuple[torch.Tensor, torch.Tensor]:
    special = torch.isin(ids, torch.tensor(special_ids, dtype=ids.dtype))
    chosen = (uniform < probability) & ~special
    inputs = ids.clone()
    inputs[chosen & (kind < 0.8)] = mask_id
    replaced = chosen & (kind >= 0.8) & (kind < 0.9)
    inputs[replaced] = random_ids[replaced]
    labels = torch.where(inputs != ids, ids, -100)
    return inputs, labels


# === exercise: masked-language-model-loss | function: masked_language_model_loss | kind: plain | what is wrong: cross_entropy with ignore_index gives NaN when nothing is scored
# told: named
# now: named
# says: NaN when nothing is scored
def masked_language_model_loss(
    logits: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    return nn.functional.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=-100
    )


# === exercise: masked-language-model-loss | function: masked_language_model_loss | kind: double | what is wrong: divides by the number of all positions AND takes labels > 0 for scored, so the token 0 never counts
# told: useless
# now: named
# says: the mean over all positions, and label 0 is not scored
def masked_language_model_loss(
    logits: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    scored = labels > 0
    log_p = torch.log_softmax(logits, dim=-1)
    picked = log_p.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return -(picked * scored).sum() / labels.numel()


# === exercise: encoder-classifier | function: EncoderClassifier | kind: double | what is wrong: the positions are added before the class token is joined AND the mask gets its new entry at the end
# told: named
# now: named
# says: positions before the class token
# line: 25
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
        one = torch.ones(len(ids), 1, 1, dtype=torch.bool)
        mask = torch.cat((mask, one), dim=-1)
        return self.head(self.encoder(x, mask))
