# ruff: noqa
# fmt: off

# === exercise: layer-norm | function: LayerNorm | kind: plain | what is wrong: mean and variance are taken over all tokens and features of a sentence, the last two axes, in place of over the features of each token; shows for more than one token
# told: named
# now: named
# says: statistics over the sentence
class LayerNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        variance, mean = torch.var_mean(x, dim=(-2, -1), correction=0, keepdim=True)
        normal = (x - mean) / torch.sqrt(variance + self.epsilon)
        return self.gamma * normal + self.beta


# === exercise: layer-norm | function: LayerNorm | kind: subtle | what is wrong: the variance is computed as mean of squares minus square of the mean, which loses all digits in float32 where the mean of a token is large against its spread (tokens around 1000 with a spread of 0.1: wrong values, or NaN when the difference gets negative)
# told: named
# now: named
# says: the variance loses its digits
class LayerNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        d = x.shape[-1]
        mu = x.sum(-1, keepdim=True) / d
        sigma_2 = (x * x).sum(-1, keepdim=True) / d - mu * mu
        return (x - mu) * torch.rsqrt(sigma_2 + self.epsilon) * self.gamma + self.beta


# === exercise: diagnose-norm | function: diagnose_norm | kind: subtle | what is wrong: the first suspect within a tolerance of 0.01 is returned in place of the nearest: where d is large or the spread small (0.001), "unbiased variance" differs from layer norm by less, and is taken for "layer norm"
# told: passed
# now: named
# says: the first within a tolerance in place of the nearest
def diagnose_norm(x: torch.Tensor, y: torch.Tensor) -> str:
    eps = 1e-5

    def normalise(axes, correction=0):
        mean = x.mean(axes, keepdim=True)
        variance = x.var(axes, correction=correction, keepdim=True)
        return (x - mean) / (variance + eps).sqrt()

    centred = x - x.mean(-1, keepdim=True)
    sigma = centred.pow(2).mean(-1, keepdim=True).sqrt()
    suspects = [
        ("layer norm", normalise(-1)),
        ("batch norm", normalise((0, 1))),
        ("whole tensor", normalise((0, 1, 2))),
        ("unbiased variance", normalise(-1, correction=1)),
    ]
    for name, suspect in suspects:
        if torch.allclose(suspect, y, rtol=1e-2, atol=1e-2):
            return name
    return "epsilon outside the root"


# === exercise: rms-norm | function: RMSNorm | kind: plain | what is wrong: x is divided by its standard deviation (the variance around the mean, plus epsilon, under the root) in place of the root of the mean of the squares; shows on tokens whose mean is not 0, such as (3, 4)
# told: named
# now: named
# says: divided by the standard deviation
class RMSNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spread = (x.var(dim=-1, correction=0, keepdim=True) + self.epsilon).sqrt()
        return self.gamma * x / spread


# === exercise: gelu | functions: gelu, dead_units | kind: subtle | what is wrong: dead_units takes slopes below 1e-6 in absolute value for 0, the statement wants exactly 0: a GELU unit that gets only numbers around -6 (slope about -4e-8) is called dead; gelu is right
# told: passed
# now: named
# says: a small slope counts as none
def gelu(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def dead_units(x: torch.Tensor, activation: str) -> torch.Tensor:
    inner = x.detach().clone().requires_grad_()
    active = torch.relu(inner) if activation == "relu" else gelu(inner)
    (slopes,) = torch.autograd.grad(active.sum(), inner)
    largest = slopes.abs().flatten(0, -2).amax(dim=0)
    return largest < 1e-6


# === exercise: gelu | functions: gelu, dead_units | kind: double | what is wrong: in dead_units a ReLU unit counts as dead only where all its inputs are below 0, so one with an input of exactly 0 (slope 0 in PyTorch) lives AND with "gelu" no unit is ever dead, though far to the left (float32 inputs of -20 and less) the slope is exactly 0; gelu is right
# told: named
# now: named
# says: 0 counts as alive
def gelu(x: torch.Tensor) -> torch.Tensor:
    phi = (1 + torch.erf(x / 2**0.5)) / 2
    return x * phi


def dead_units(x: torch.Tensor, activation: str) -> torch.Tensor:
    units = x.shape[-1]
    if activation == "gelu":
        return torch.zeros(units, dtype=torch.bool)
    return (x.reshape(-1, units) < 0).all(dim=0)


# === exercise: feed-forward | function: FeedForward | kind: subtle | what is wrong: the comma between the two names is missing, so the test is for a part of the string "relugelu": names such as "elu", "lu" or "" raise no ValueError; everything else is right
# told: passed
# now: named
# says: a part of a name is accepted
class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, activation: str = "relu") -> None:
        super().__init__()
        if activation not in ("relu" "gelu"):
            raise ValueError(f"unknown activation {activation!r}")
        self.f = torch.relu if activation == "relu" else gelu
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / math.sqrt(d_ff))
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.f(x @ self.w_1 + self.b_1) @ self.w_2 + self.b_2


# === exercise: feed-forward | function: FeedForward | kind: double | what is wrong: each matrix is divided by the root of its number of columns (w_1 by sqrt(d_ff), w_2 by sqrt(d_model)) in place of its rows AND b_1 is added after the activation in place of before (shows for b_1 other than 0)
# told: named
# now: named
# says: b_1 added after the activation
class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, activation: str = "relu") -> None:
        super().__init__()
        functions = {"relu": torch.relu, "gelu": gelu}
        if activation not in functions:
            raise ValueError(f"activation is 'relu' or 'gelu', not {activation!r}")
        self.activate = functions[activation]
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) / d_ff**0.5)
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / d_model**0.5)
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.activate(x @ self.w_1) + self.b_1
        return hidden @ self.w_2 + self.b_2


# === exercise: swiglu | function: SwiGLU | kind: plain | what is wrong: SiLU is applied to the product of gate and value, SiLU(gate * up), in place of to the gate only, SiLU(gate) * up; shows on the example by hand (3.928, not 2.0928)
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
        product = (x @ self.w_gate) * (x @ self.w_up)
        hidden = product * torch.sigmoid(product)
        return hidden @ self.w_down


# === exercise: encoder-layer | function: EncoderLayer | kind: subtle | what is wrong: nn.functional.dropout is called without training=self.training, so dropout also acts after eval(); shows for dropout > 0 in evaluation
# told: named
# now: named
# says: dropout active in evaluation
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
        def drop(branch):
            return nn.functional.dropout(branch, self.dropout.p)

        if self.norm_first:
            attended, _ = self.attention(self.norm_1(x), mask=mask)
            x = x + drop(attended)
            return x + drop(self.feed_forward(self.norm_2(x)))
        attended, _ = self.attention(x, mask=mask)
        x = self.norm_1(x + drop(attended))
        return self.norm_2(x + drop(self.feed_forward(x)))


# === exercise: encoder-layer | function: EncoderLayer | kind: double | what is wrong: in pre-norm the feed-forward network reads the layer's input x in place of the stream a after attention, the two branches run side by side AND activation is not handed to FeedForward, which stays at ReLU (shows for activation="gelu"); post-norm with ReLU is right
# told: named
# now: named
# says: feed-forward does not read what attention gave
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
        self.norm_1, self.norm_2 = LayerNorm(d_model), LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if self.norm_first:
            a = x + self.dropout(self.attention(self.norm_1(x), mask=mask)[0])
            return a + self.dropout(self.feed_forward(self.norm_2(x)))
        a = self.norm_1(x + self.dropout(self.attention(x, mask=mask)[0]))
        return self.norm_2(a + self.dropout(self.feed_forward(a)))


# === exercise: encoder-layer-from-torch | function: encoder_layer_from_torch | kind: plain | what is wrong: at the end every matrix is transposed, those of attention too, which attention_from_torch has transposed already: w_q, w_k, w_v and w_o are turned back (square, so no shape complains)
# told: named
# now: named
# says: attention's matrices are PyTorch's
def encoder_layer_from_torch(state: dict) -> dict:
    attention, result = {}, {}
    for name, tensor in state.items():
        module, _, rest = name.partition(".")
        if module == "self_attn":
            attention[rest] = tensor
        elif module.startswith("linear"):
            letter = "w" if rest == "weight" else "b"
            result[f"feed_forward.{letter}_{module[-1]}"] = tensor
        else:
            word = "gamma" if rest == "weight" else "beta"
            result[f"norm_{module[-1]}.{word}"] = tensor
    for name, tensor in attention_from_torch(attention).items():
        result[f"attention.{name}"] = tensor
    return {name: t.T if t.dim() == 2 else t for name, t in result.items()}


# === exercise: encoder | function: Encoder | kind: double | what is wrong: the layers are deep copies of one layer, so all start with the same random numbers in place of each with its own AND only the first layer gets the mask, the others attend to padding; both show for more than one layer
# told: named
# now: named
# says: the layers start as copies
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
        from copy import deepcopy

        layer = EncoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
        self.layers = nn.ModuleList([deepcopy(layer) for _ in range(layers)])
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x, mask)
            mask = None
        return self.norm(x)


# === exercise: mask-tokens | function: mask_tokens | kind: plain | what is wrong: labels are kept only where the input was changed: a chosen token that stays (kind from 0.9) gets -100 in place of its id, and so does one whose random id happens to be its own; "berries" in the example by hand
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
    chosen = uniform < probability
    for special in special_ids:
        chosen = chosen & (ids != special)
    inputs = ids.clone()
    inputs[chosen & (kind < 0.8)] = mask_id
    swap = chosen & (kind >= 0.8) & (kind < 0.9)
    inputs[swap] = random_ids[swap]
    labels = torch.full_like(ids, -100)
    hidden = inputs != ids
    labels[hidden] = ids[hidden]
    return inputs, labels


# === exercise: masked-language-model-loss | function: masked_language_model_loss | kind: double | what is wrong: scored is where the label is above 0, so positions whose label is the id 0 are left out AND the logarithm is taken of the finished softmax, which gives an infinite loss where a label's probability underflows to 0 (logits 200 apart)
# told: named
# now: named
# says: label 0 is not scored
def masked_language_model_loss(
    logits: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    scored = labels > 0
    probabilities = logits[scored].softmax(dim=-1)
    wanted = labels[scored].unsqueeze(-1)
    losses = -torch.log(probabilities.gather(-1, wanted))
    return losses.sum() / scored.sum().clamp(min=1)


# === exercise: encoder-classifier | function: EncoderClassifier | kind: plain | what is wrong: positions are added to the words before the class token is prepended: the first word stands at position 0 and the class token has no position
# told: named
# now: named
# says: positions before the class token
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
        words = self.position(self.embedding(ids))
        tokens = self.class_token(words)
        mask = mask_with_class_token(padding_mask(lengths, ids.shape[-1]))
        return self.head(self.encoder(tokens, mask))


# === exercise: encoder-classifier | function: EncoderClassifier | kind: subtle | what is wrong: the padding mask is made of ids != 0 and lengths is ignored: wrong where something other than 0 stands after a sentence's end, or where a sentence contains the id 0 as a word
# told: named
# now: named
# says: the padding's words have a say
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
        x = self.embedding(ids)
        x = self.class_token(x)
        x = self.position(x)
        words = (ids != 0).unsqueeze(-2)
        return self.head(self.encoder(x, mask_with_class_token(words)))
