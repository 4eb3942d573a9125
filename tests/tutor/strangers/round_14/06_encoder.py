# ruff: noqa
# fmt: off

# === exercise: layer-norm | function: LayerNorm | kind: plain | what is wrong: x.var with its default divides by d - 1 in place of d
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
        variance = x.var(dim=-1, keepdim=True)
        normalised = (x - mean) / torch.sqrt(variance + self.epsilon)
        return self.gamma * normalised + self.beta


# === exercise: layer-norm | function: LayerNorm | kind: subtle | what is wrong: forward uses a fixed 1e-5, so the epsilon that was asked for is ignored
# told: named
# now: named
# says: epsilon is always 0.00001
class LayerNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        centred = x - x.mean(-1, keepdim=True)
        sigma2 = centred.square().mean(-1, keepdim=True)
        return centred * torch.rsqrt(sigma2 + 1e-5) * self.gamma + self.beta


# === exercise: diagnose-norm | function: diagnose_norm | kind: plain | what is wrong: takes the variance of all suspects with the default of x.var, which divides by n - 1, so layer norm and unbiased variance are the same suspect
# told: named
# now: named
# says: takes “unbiased variance” for “layer norm”
def diagnose_norm(x: torch.Tensor, y: torch.Tensor) -> str:
    eps = 1e-5

    def normalise(axes):
        m = x.mean(axes, keepdim=True)
        v = x.var(axes, keepdim=True)
        return (x - m) / (v + eps).sqrt()

    suspects = {
        "layer norm": normalise(-1),
        "batch norm": normalise((0, 1)),
        "whole tensor": normalise((0, 1, 2)),
        "unbiased variance": normalise(-1),
        "epsilon outside the root": (x - x.mean(-1, keepdim=True))
        / (x.std(-1, keepdim=True) + eps),
    }
    return min(suspects, key=lambda name: (suspects[name] - y).abs().max().item())


# === exercise: diagnose-norm | function: diagnose_norm | kind: double | what is wrong: batch norm is taken over the axis B only in place of all B·T tokens, and whole tensor over each sentence by itself
# told: named
# now: named
# says: takes “batch norm” for “whole tensor”
def diagnose_norm(x: torch.Tensor, y: torch.Tensor) -> str:
    settings = [
        ("layer norm", (2,), 0, False),
        ("batch norm", (0,), 0, False),
        ("whole tensor", (1, 2), 0, False),
        ("unbiased variance", (2,), 1, False),
        ("epsilon outside the root", (2,), 0, True),
    ]
    best, smallest = "", float("inf")
    for name, axes, correction, outside in settings:
        variance = x.var(axes, correction=correction, keepdim=True)
        divisor = variance.sqrt() + 1e-5 if outside else (variance + 1e-5).sqrt()
        guess = (x - x.mean(axes, keepdim=True)) / divisor
        distance = (guess - y).abs().max().item()
        if distance < smallest:
            best, smallest = name, distance
    return best


# === exercise: rms-norm | function: RMSNorm | kind: subtle | what is wrong: epsilon is added after the root, which shows only on small tokens
# told: named
# now: named
# says: epsilon outside the root
class RMSNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rms = x.pow(2).mean(dim=-1, keepdim=True).sqrt()
        return self.gamma * (x / (rms + self.epsilon))


# === exercise: rms-norm | function: RMSNorm | kind: double | what is wrong: takes the sum of the squares in place of their mean, and gamma is an ordinary tensor, no parameter
# told: named
# now: named
# says: parameters are missing
class RMSNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = torch.ones(d_model, requires_grad=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        squares = torch.einsum("...d,...d->...", x, x).unsqueeze(-1)
        return x / torch.sqrt(squares + self.epsilon) * self.gamma


# === exercise: gelu | functions: gelu, dead_units | kind: plain | what is wrong: dead_units calls a unit dead when the slope is 0 for any token in place of for all
# told: named
# now: named
# says: dead for some token
def gelu(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))


def dead_units(x: torch.Tensor, activation: str) -> torch.Tensor:
    x = x.detach().clone().requires_grad_()
    y = torch.relu(x) if activation == "relu" else gelu(x)
    (slope,) = torch.autograd.grad(y.sum(), x)
    rows = slope.reshape(-1, x.shape[-1])
    return (rows == 0).any(dim=0)


# === exercise: gelu | functions: gelu, dead_units | kind: subtle | what is wrong: dead_units looks at the values in place of the slopes; the same for ReLU, but a GELU unit that gets 0 everywhere has the value 0 and a slope
# told: named
# now: named
# says: the values in place of the slopes
def gelu(x: torch.Tensor) -> torch.Tensor:
    gate = (1 + torch.erf(x / 2**0.5)) / 2
    return x * gate


def dead_units(x: torch.Tensor, activation: str) -> torch.Tensor:
    functions = {"relu": torch.relu, "gelu": gelu}
    passed = functions[activation](x.detach())
    alive = passed.flatten(0, -2).ne(0).any(dim=0)
    return ~alive


# === exercise: gelu | functions: gelu, dead_units | kind: double | what is wrong: gelu is the approximation with tanh, and dead_units joins the tokens of each sentence only, so a batch gives (B, d_ff)
# told: named
# now: named
# says: the tanh approximation
def gelu(x: torch.Tensor) -> torch.Tensor:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + torch.tanh(inner))


def dead_units(x: torch.Tensor, activation: str) -> torch.Tensor:
    leaf = x.detach().requires_grad_()
    if activation == "relu":
        y = leaf.relu()
    else:
        y = gelu(leaf)
    slopes = torch.autograd.grad(y.sum(), leaf)[0]
    return torch.all(slopes == 0, dim=-2)


# === exercise: feed-forward | function: FeedForward | kind: plain | what is wrong: the activation is applied again after the second matrix
# told: named
# now: named
# says: activation after both matrices
class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, activation: str = "relu") -> None:
        super().__init__()
        if activation not in ("relu", "gelu"):
            raise ValueError(f"unknown activation {activation!r}")
        self.f = torch.relu if activation == "relu" else gelu
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / math.sqrt(d_ff))
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for w, b in ((self.w_1, self.b_1), (self.w_2, self.b_2)):
            x = self.f(x @ w + b)
        return x


# === exercise: feed-forward | function: FeedForward | kind: subtle | what is wrong: w_2 is divided by the root of d_model, too, in place of the root of d_ff
# told: named
# now: named
# says: the weights start too large
class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, activation: str = "relu") -> None:
        super().__init__()
        if activation == "relu":
            self.activate = torch.relu
        elif activation == "gelu":
            self.activate = gelu
        else:
            raise ValueError("activation must be 'relu' or 'gelu'")
        spread = d_model**-0.5
        self.w_1 = nn.Parameter(spread * torch.randn(d_model, d_ff))
        self.w_2 = nn.Parameter(spread * torch.randn(d_ff, d_model))
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.activate(x @ self.w_1 + self.b_1)
        return hidden @ self.w_2 + self.b_2


# === exercise: swiglu | function: SwiGLU | kind: plain | what is wrong: the gate goes through the sigmoid alone in place of SiLU
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
        up = x @ self.w_up
        return (gate * up) @ self.w_down


# === exercise: swiglu | function: SwiGLU | kind: double | what is wrong: SiLU acts on the up projection in place of the gate, and w_down is divided by the root of d_model in place of its number of rows d_ff
# told: named
# now: named
# says: gate and up exchanged
class SwiGLU(nn.Module):
    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        root = math.sqrt(d_model)
        for name, shape in (
            ("w_gate", (d_model, d_ff)),
            ("w_up", (d_model, d_ff)),
            ("w_down", (d_ff, d_model)),
        ):
            setattr(self, name, nn.Parameter(torch.randn(*shape) / root))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, value = x @ self.w_gate, x @ self.w_up
        silu = value / (1 + torch.exp(-value))
        return torch.mul(gate, silu) @ self.w_down


# === exercise: encoder-layer | function: EncoderLayer | kind: plain | what is wrong: in pre-norm the branches are added to the normalised x in place of x itself
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
            x = self.norm_2(x)
            x = x + self.dropout(self.feed_forward(x))
        else:
            x = self.norm_1(x + self.dropout(self.attention(x, mask=mask)[0]))
            x = self.norm_2(x + self.dropout(self.feed_forward(x)))
        return x


# === exercise: encoder-layer | function: EncoderLayer | kind: subtle | what is wrong: nn.functional.dropout without its argument training drops in eval mode, too
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
        self.norm_1, self.norm_2 = LayerNorm(d_model), LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def _branch(self, answer):
        return nn.functional.dropout(answer, p=self.dropout.p)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if self.norm_first:
            answer, _ = self.attention(self.norm_1(x), mask=mask)
            a = x + self._branch(answer)
            return a + self._branch(self.feed_forward(self.norm_2(a)))
        answer, _ = self.attention(x, mask=mask)
        a = self.norm_1(x + self._branch(answer))
        return self.norm_2(a + self._branch(self.feed_forward(a)))


# === exercise: encoder-layer | function: EncoderLayer | kind: double | what is wrong: dropout acts after the addition, on the stream, and norm_1 is used in both halves
# told: named
# now: named
# says: one norm for both halves
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
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(p=dropout)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        def attend(tokens):
            return self.attention(tokens, mask=mask)[0]

        for branch in (attend, self.feed_forward):
            if self.norm_first:
                x = self.dropout(x + branch(self.norm_1(x)))
            else:
                x = self.norm_1(self.dropout(x + branch(x)))
        return x


# === exercise: encoder-layer-from-torch | function: encoder_layer_from_torch | kind: plain | what is wrong: the two matrices of the feed-forward network are not transposed
# told: named
# now: named
# says: a matrix is not transposed
def encoder_layer_from_torch(state: dict) -> dict:
    prefix = "self_attn."
    inner = {k[len(prefix) :]: v for k, v in state.items() if k.startswith(prefix)}
    new = {"attention." + k: v for k, v in attention_from_torch(inner).items()}
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
    for theirs, ours in names.items():
        new[ours] = state[theirs]
    return new


# === exercise: encoder-layer-from-torch | function: encoder_layer_from_torch | kind: double | what is wrong: the matrices are brought to the other shape by reshape in place of a transposition, and gamma gets the norm's bias and beta its weight
# told: named
# now: named
# says: two tensors exchanged
def encoder_layer_from_torch(state: dict) -> dict:
    attention = {}
    for name, tensor in state.items():
        if name.startswith("self_attn."):
            attention[name.removeprefix("self_attn.")] = tensor
    result = {}
    for name, tensor in attention_from_torch(attention).items():
        result[f"attention.{name}"] = tensor
    for i in (1, 2):
        weight = state[f"linear{i}.weight"]
        out_width, in_width = weight.shape
        result[f"feed_forward.w_{i}"] = weight.reshape(in_width, out_width)
        result[f"feed_forward.b_{i}"] = state[f"linear{i}.bias"]
        result[f"norm_{i}.beta"] = state[f"norm{i}.weight"]
        result[f"norm_{i}.gamma"] = state[f"norm{i}.bias"]
    return result


# === exercise: encoder | function: Encoder | kind: subtle | what is wrong: the layers are deep copies of one layer, so all start with the same numbers in place of random numbers of their own
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
        return self.norm(x)


# === exercise: encoder | function: Encoder | kind: double | what is wrong: activation is not passed on to the layers, and the last norm stands in post-norm in place of pre-norm
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
                EncoderLayer(
                    d_model, heads, d_ff, dropout=dropout, norm_first=norm_first
                )
            )
        if norm_first:
            self.norm = nn.Identity()
        else:
            self.norm = LayerNorm(d_model)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        out = x
        for block in self.layers:
            out = block(out, mask=mask)
        return self.norm(out)


# === exercise: mask-tokens | function: mask_tokens | kind: plain | what is wrong: works on ids itself, which changes the caller's batch, and with it the labels
# told: named
# now: named
# says: changes its argument in place
def mask_tokens(
    ids: torch.Tensor,
    uniform: torch.Tensor,
    kind: torch.Tensor,
    random_ids: torch.Tensor,
    mask_id: int,
    special_ids: list[int],
    probability: float = 0.15,
) -> tuple[torch.Tensor, torch.Tensor]:
    special = torch.isin(ids, torch.tensor(special_ids))
    chosen = (uniform < probability) & ~special
    hide = chosen & (kind < 0.8)
    swap = chosen & (kind >= 0.8) & (kind < 0.9)
    inputs = ids
    inputs[hide] = mask_id
    inputs[swap] = random_ids[swap]
    labels = torch.where(chosen, ids, -100)
    return inputs, labels


# === exercise: mask-tokens | function: mask_tokens | kind: subtle | what is wrong: the labels have the right values but are floats in place of integers
# told: named
# now: named
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
    inputs[chosen & (kind < 0.9)] = random_ids[chosen & (kind < 0.9)]
    inputs[chosen & (kind < 0.8)] = mask_id
    labels = -100 * torch.ones(ids.shape)
    labels[chosen] = ids[chosen].to(labels.dtype)
    return inputs, labels


# === exercise: mask-tokens | function: mask_tokens | kind: double | what is wrong: compares with a fixed 0.15 in place of the argument probability, and exchanges the last two cases (0.8 to 0.9 unchanged, from 0.9 random)
# told: named
# now: named
# says: probability is always 0.15, and random and unchanged exchanged
def mask_tokens(
    ids: torch.Tensor,
    uniform: torch.Tensor,
    kind: torch.Tensor,
    random_ids: torch.Tensor,
    mask_id: int,
    special_ids: list[int],
    probability: float = 0.15,
) -> tuple[torch.Tensor, torch.Tensor]:
    not_special = ~torch.isin(ids, torch.tensor(special_ids))
    chosen = torch.logical_and(uniform < 0.15, not_special)
    seen = torch.where(kind < 0.8, torch.full_like(ids, mask_id), ids)
    seen = torch.where(kind >= 0.9, random_ids, seen)
    inputs = torch.where(chosen, seen, ids)
    labels = ids.masked_fill(~chosen, -100)
    return inputs, labels


# === exercise: masked-language-model-loss | function: masked_language_model_loss | kind: subtle | what is wrong: when nothing is scored it returns a new constant that hangs on no graph, so backward() fails
# told: named
# now: named
# says: a constant when nothing is scored
def masked_language_model_loss(
    logits: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    scored = labels != -100
    if not scored.any():
        return torch.tensor(0.0)
    logs = torch.log_softmax(logits[scored], dim=-1)
    picked = logs.gather(-1, labels[scored].unsqueeze(-1))
    return -picked.mean()


# === exercise: masked-language-model-loss | function: masked_language_model_loss | kind: double | what is wrong: averages the means of the sentences in place of all scored positions together, and takes the logarithm of a softmax without protection from large logits
# told: named
# now: named
# says: the mean of the sentences' means
def masked_language_model_loss(
    logits: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    scored = (labels != -100).to(logits.dtype)
    powers = logits.exp()
    probabilities = powers / powers.sum(dim=-1, keepdim=True)
    wanted = labels.clamp(min=0).unsqueeze(-1)
    losses = -probabilities.gather(-1, wanted).squeeze(-1).log() * scored
    per_sentence = losses.sum(dim=1) / scored.sum(dim=1).clamp(min=1)
    return per_sentence.mean()


# === exercise: encoder-classifier | function: EncoderClassifier | kind: plain | what is wrong: makes a padding mask of the width T + 1 from the lengths without the class token, which hides the last word of each sentence
# told: named
# now: named
# says: the last word of each sentence is hidden
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
        mask = padding_mask(lengths, x.shape[1])
        return self.head(self.encoder(x, mask))


# === exercise: encoder-classifier | function: EncoderClassifier | kind: subtle | what is wrong: takes every id other than 0 for a word and ignores lengths, so what stands after a sentence's end matters
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
        self.encoder = Encoder(
            layers, d_model, heads, d_ff, dropout=dropout, norm_first=True
        )
        self.head = ClassHead(d_model, classes)

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        tokens = self.position(self.class_token(self.embedding(ids)))
        is_word = ids.ne(0).unsqueeze(1)  # (B, 1, T), padding is 0
        mask = mask_with_class_token(is_word)
        return self.head(self.encoder(tokens, mask=mask))


# === exercise: masked-language-model-loss | function: masked_language_model_loss | kind: plain | what is wrong: divides by the number of all positions instead of the scored ones
# told: named
# now: named
# says: the mean over all positions
def masked_language_model_loss(
    logits: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    log_p = torch.log_softmax(logits, dim=-1)
    scored = labels != -100
    safe = labels.masked_fill(~scored, 0)
    picked = log_p.gather(-1, safe.unsqueeze(-1)).squeeze(-1)
    losses = (-picked).masked_fill(~scored, 0.0)
    return losses.mean()


# === exercise: encoder | function: Encoder | kind: plain | what is wrong: one layer repeated, all layers share their parameters
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
        block = EncoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
        self.layers = nn.ModuleList([block] * layers)
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        for block in self.layers:
            x = block(x, mask=mask)
        return self.norm(x)


# === exercise: encoder-layer | function: EncoderLayer | kind: subtle | what is wrong: the activation is not passed on to the feed-forward network, which always uses ReLU
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
        self.activation = activation
        self.attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm_1, self.norm_2 = LayerNorm(d_model), LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def _attend(self, x, mask):
        return self.dropout(self.attention(x, mask=mask)[0])

    def _feed(self, x):
        return self.dropout(self.feed_forward(x))

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if self.norm_first:
            x = x + self._attend(self.norm_1(x), mask)
            return x + self._feed(self.norm_2(x))
        x = self.norm_1(x + self._attend(x, mask))
        return self.norm_2(x + self._feed(x))


# === exercise: mask-tokens | function: mask_tokens | kind: subtle | what is wrong: labels are set only where the input was changed, so chosen tokens that stay (kind from 0.9, or a random token equal to the original) are not scored
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
    to_mask = chosen & (kind < 0.8)
    to_random = chosen & (kind >= 0.8) & (kind < 0.9)
    inputs = ids.clone()
    inputs[to_mask] = mask_id
    inputs[to_random] = random_ids[to_random]
    labels = torch.full_like(ids, -100)
    changed = inputs != ids
    labels[changed] = ids[changed]
    return inputs, labels


# === exercise: gelu | functions: gelu, dead_units | kind: double | what is wrong: (1) gelu is the tanh approximation and not the exact function; (2) dead_units tests the values of the activation instead of its slopes
# told: named
# now: named
# says: the tanh approximation
def gelu(x: torch.Tensor) -> torch.Tensor:
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + torch.tanh(inner))


def dead_units(x: torch.Tensor, activation: str) -> torch.Tensor:
    y = torch.relu(x) if activation == "relu" else gelu(x)
    y = y.reshape(-1, x.shape[-1])
    return (y == 0).all(dim=0)


# === exercise: encoder-classifier | function: EncoderClassifier | kind: double | what is wrong: (1) positions are added before the class token is prepended; (2) the padding mask is made T + 1 wide without counting the class token in the lengths, which hides the last word
# told: told
# now: told
# says: positions before the class token
# line: 23
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
        mask = padding_mask(lengths, tokens.shape[1])
        return self.head(self.encoder(tokens, mask))
