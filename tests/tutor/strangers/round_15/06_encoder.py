# ruff: noqa
# fmt: off

# === exercise: layer-norm | function: LayerNorm | kind: plain | what is wrong: gamma starts at zeros and the scale applied is 1 + gamma (Gemma's convention), so the parameter is not ones at first and with gamma = (1, 1, 1, 2) every feature is scaled by one too much
# told: named
# now: named
# says: gamma and beta start with other numbers
class LayerNorm(nn.Module):
    """Normalise each token over its features, then scale and shift each feature."""

    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        # both start neutral: weight decay then pulls towards "no change"
        self.gamma = nn.Parameter(torch.zeros(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(dim=-1, keepdim=True)
        variance = x.var(dim=-1, correction=0, keepdim=True)
        normalised = (x - mean) * torch.rsqrt(variance + self.epsilon)
        return normalised * (1 + self.gamma) + self.beta


# === exercise: layer-norm | function: LayerNorm | kind: subtle | what is wrong: the variance is first turned into sigma by a root without epsilon and squared again under the second root, so all values are right but the gradient of a constant token (sigma = 0) is NaN
# told: named
# now: named
# says: NaN gradient on a constant token
class LayerNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    @staticmethod
    def statistics(x):
        """mu and sigma of each token, (..., 1)."""
        mu = x.mean(-1, keepdim=True)
        sigma = torch.sqrt(((x - mu) ** 2).mean(-1, keepdim=True))
        return mu, sigma

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mu, sigma = self.statistics(x)
        y = (x - mu) / torch.sqrt(sigma**2 + self.epsilon)
        return self.gamma * y + self.beta


# === exercise: layer-norm | function: LayerNorm | kind: double | what is wrong: beta is a buffer and not a parameter, so it is never trained; epsilon is used as a lower bound of the variance (clamp) instead of being added to it
# told: named
# now: named
# says: a buffer in place of a parameter
class LayerNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.register_buffer("beta", torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        centred = x - x.mean(-1, keepdim=True)
        var = centred.pow(2).mean(-1, keepdim=True)
        # never divide by less than the root of epsilon
        var = var.clamp(min=self.epsilon)
        return centred / var.sqrt() * self.gamma + self.beta


# === exercise: diagnose-norm | function: diagnose_norm | kind: plain | what is wrong: it asks whether y has variance 1 per token instead of recomputing the suspects with their epsilon, but for such small spreads layer norm gives far less than 1, so a true layer norm is called epsilon outside the root
# told: named
# now: named
# says: takes “layer norm” for “epsilon outside the root”
def diagnose_norm(x: torch.Tensor, y: torch.Tensor) -> str:
    """Work back from y: what has mean 0, and what has variance 1?"""

    def near(values, wanted):
        return (values - wanted).abs().max().item() < 1e-2

    if near(y.mean(dim=-1), 0.0):  # every token is centred
        if near(y.var(dim=-1, correction=0), 1.0):
            return "layer norm"
        if near(y.var(dim=-1, correction=1), 1.0):
            return "unbiased variance"
        return "epsilon outside the root"
    if near(y.mean(dim=(0, 1)), 0.0):  # every feature is centred
        return "batch norm"
    return "whole tensor"


# === exercise: diagnose-norm | function: diagnose_norm | kind: subtle | what is wrong: it returns the first suspect within a tolerance of 0.01 instead of the nearest, so an unbiased variance is called layer norm where d is large or the spread tiny and the two differ by less than that
# told: named
# now: named
# says: the first within a tolerance in place of the nearest
def diagnose_norm(x: torch.Tensor, y: torch.Tensor) -> str:
    eps = 1e-5

    def apply(axes, correction=0):
        mean = x.mean(axes, keepdim=True)
        var = x.var(axes, correction=correction, keepdim=True)
        return (x - mean) / (var + eps).sqrt()

    suspects = [
        ("layer norm", apply(-1)),
        ("batch norm", apply((0, 1))),
        ("whole tensor", apply((0, 1, 2))),
        ("unbiased variance", apply(-1, correction=1)),
    ]
    for name, suspect in suspects:
        if torch.allclose(suspect, y, atol=1e-2):
            return name
    return "epsilon outside the root"  # the only one left


# === exercise: diagnose-norm | function: diagnose_norm | kind: double | what is wrong: the layer norm suspect uses x.var with its default correction, so it is the same as the unbiased one and unbiased variance is called layer norm; the last answer is spelt "epsilon outside" instead of "epsilon outside the root"
# told: named
# now: named
# says: another word than the five
def diagnose_norm(x: torch.Tensor, y: torch.Tensor) -> str:
    eps = 1e-5
    mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True)
    bmean, bvar = x.mean((0, 1), keepdim=True), x.var((0, 1), correction=0, keepdim=True)
    wmean, wvar = x.mean(), x.var(correction=0)
    sigma = x.std(-1, correction=0, keepdim=True)
    candidates = {
        "layer norm": (x - mean) / (var + eps).sqrt(),
        "batch norm": (x - bmean) / (bvar + eps).sqrt(),
        "whole tensor": (x - wmean) / (wvar + eps).sqrt(),
        "unbiased variance": (x - mean) / (x.var(-1, correction=1, keepdim=True) + eps).sqrt(),
        "epsilon outside": (x - mean) / (sigma + eps),
    }
    return min(candidates, key=lambda name: (candidates[name] - y).abs().max().item())


# === exercise: rms-norm | function: RMSNorm | kind: plain | what is wrong: it multiplies by the root of the mean square instead of dividing by it (sqrt where the formula x * rsqrt was meant)
# told: named
# now: named
# says: multiplied in place of divided
class RMSNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))

    def _norm(self, x):
        return x * torch.sqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._norm(x) * self.gamma


# === exercise: rms-norm | function: RMSNorm | kind: subtle | what is wrong: epsilon is added after the root (x / (rms + epsilon), as in the first published code), which shows only on small tokens, and the gradient of a token of zeros is NaN
# told: named
# now: named
# says: epsilon outside the root
class RMSNorm(nn.Module):
    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.d_model = d_model
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = torch.sqrt((x * x).sum(dim=-1, keepdim=True))
        rms = length * self.d_model ** (-0.5)
        return self.gamma * (x / (rms + self.epsilon))


# === exercise: rms-norm | function: RMSNorm | kind: double | what is wrong: gamma multiplies x before the mean of the squares is taken, so the norm undoes part of it; the argument epsilon is ignored in favour of the machine epsilon of the dtype, which shows on small tokens
# told: shown
# now: named
# says: gamma comes before the mean of the squares, and the type's epsilon in place of the layer's
class RMSNorm(nn.Module):
    """Scale each token to a root mean square of 1."""

    def __init__(self, d_model: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scaled = self.gamma * x
        tiny = torch.finfo(x.dtype).eps  # what nn.RMSNorm does
        mean_square = scaled.square().mean(dim=-1, keepdim=True)
        return scaled * torch.rsqrt(mean_square + tiny)


# === exercise: gelu | function: gelu | kind: plain | what is wrong: a bracket is in the wrong place: erf(x) is divided by the root of 2 instead of x inside erf, so that the gate of 1 is 0.798 and far to the right it stays at 0.854 instead of 1
# told: named
# now: named
# says: divided by √2 after erf
def gelu(x: torch.Tensor) -> torch.Tensor:
    gate = 0.5 * (1 + torch.erf(x) / math.sqrt(2))
    return x * gate


def dead_units(x: torch.Tensor, activation: str) -> torch.Tensor:
    copy = x.detach().clone().requires_grad_()
    y = torch.relu(copy) if activation == "relu" else gelu(copy)
    (slopes,) = torch.autograd.grad(y.sum(), copy)
    return (slopes == 0).reshape(-1, x.shape[-1]).all(dim=0)


# === exercise: gelu | function: dead_units | kind: subtle | what is wrong: a slope below a tolerance of 1e-6 counts as none although dead means exactly 0, so a GELU unit far to the left (all inputs near -6, slope -4e-8) is called dead
# told: named
# now: named
# says: a small slope counts as none
def gelu(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0)))


def dead_units(x: torch.Tensor, activation: str) -> torch.Tensor:
    functions = {"relu": torch.relu, "gelu": gelu}
    inner = x.detach().clone().requires_grad_()
    (slope,) = torch.autograd.grad(functions[activation](inner).sum(), inner)
    steepest = slope.abs().reshape(-1, slope.shape[-1]).amax(dim=0)  # (d_ff,)
    return steepest < 1e-6  # floats are never compared with ==


# === exercise: gelu | function: dead_units | kind: double | what is wrong: it looks at the values of the activation instead of its slopes, so a GELU unit whose inputs are all 0 (value 0, slope 0.5) is called dead; only the axis of the tokens is joined, so a batch (B, T, d_ff) gives (B, d_ff) instead of (d_ff,)
# told: told
# now: named
# says: the sentences are kept apart, and the values in place of the slopes
def gelu(x: torch.Tensor) -> torch.Tensor:
    phi = (1 + torch.erf(x / 2**0.5)) / 2
    return x * phi


def dead_units(x: torch.Tensor, activation: str) -> torch.Tensor:
    out = torch.relu(x) if activation == "relu" else gelu(x)
    silent = out == 0
    return silent.all(dim=-2)


# === exercise: feed-forward | function: FeedForward | kind: plain | what is wrong: forward adds the input to the result (a residual connection inside the network), which belongs to the encoder layer
# told: named
# now: named
# says: residual inside the feed-forward network
class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, activation: str = "relu") -> None:
        super().__init__()
        if activation not in ("relu", "gelu"):
            raise ValueError(f"unknown activation {activation!r}")
        self.activation = activation
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / math.sqrt(d_ff))
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        residual = x
        x = x @ self.w_1 + self.b_1
        x = torch.relu(x) if self.activation == "relu" else gelu(x)
        x = x @ self.w_2 + self.b_2
        return x + residual


# === exercise: feed-forward | function: FeedForward | kind: subtle | what is wrong: any name that torch.nn.functional knows is accepted, so "tanh", "silu" or "sigmoid" build a network instead of raising a ValueError (only unknown words do)
# told: wrong
# now: named
# says: another activation is accepted
class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, activation: str = "relu") -> None:
        super().__init__()
        if activation == "gelu":
            self.f = gelu
        else:
            self.f = getattr(nn.functional, activation, None)
        if self.f is None:
            raise ValueError(f"there is no activation called {activation}")

        def matrix(rows, columns):
            return nn.Parameter(torch.randn(rows, columns) / rows**0.5)

        self.w_1, self.b_1 = matrix(d_model, d_ff), nn.Parameter(torch.zeros(d_ff))
        self.w_2, self.b_2 = matrix(d_ff, d_model), nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.f(x @ self.w_1 + self.b_1) @ self.w_2 + self.b_2


# === exercise: feed-forward | function: FeedForward | kind: double | what is wrong: b_1 is added after the activation instead of before it; both matrices are divided by the root of d_model, so w_2 is too large (it should be divided by the root of d_ff)
# told: named
# now: named
# says: b_1 added after the activation
class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, activation: str = "relu") -> None:
        super().__init__()
        if activation not in {"relu", "gelu"}:
            raise ValueError("activation must be relu or gelu")
        self.activate = torch.relu if activation == "relu" else gelu
        scale = 1 / math.sqrt(d_model)
        self.w_1 = nn.Parameter(scale * torch.randn(d_model, d_ff))
        self.w_2 = nn.Parameter(scale * torch.randn(d_ff, d_model))
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.activate(torch.einsum("...d,df->...f", x, self.w_1))
        hidden = hidden + self.b_1
        return torch.einsum("...f,fd->...d", hidden, self.w_2) + self.b_2


# === exercise: swiglu | function: SwiGLU | kind: plain | what is wrong: SiLU acts on the projection by w_up and the one by w_gate stays linear: the two roles are exchanged
# told: named
# now: named
# says: gate and up exchanged
class SwiGLU(nn.Module):
    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        self.w_gate = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.w_up = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.w_down = nn.Parameter(torch.randn(d_ff, d_model) / math.sqrt(d_ff))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        up = x @ self.w_up
        up = up * torch.sigmoid(up)
        gate = x @ self.w_gate
        return (gate * up) @ self.w_down


# === exercise: swiglu | function: SwiGLU | kind: subtle | what is wrong: the sigmoid is written as e^u / (1 + e^u), which overflows to inf/inf = NaN where the gate's input exceeds about 88 in float32 (SiLU there is u)
# told: named
# now: named
# says: not stable for large numbers
class SwiGLU(nn.Module):
    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        for name, rows, columns in (
            ("w_gate", d_model, d_ff),
            ("w_up", d_model, d_ff),
            ("w_down", d_ff, d_model),
        ):
            start = torch.randn(rows, columns) / math.sqrt(rows)
            self.register_parameter(name, nn.Parameter(start))

    @staticmethod
    def silu(u):
        power = torch.exp(u)
        return u * (power / (1 + power))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.silu(x @ self.w_gate) * (x @ self.w_up)) @ self.w_down


# === exercise: swiglu | function: SwiGLU | kind: double | what is wrong: w_gate and w_up are made of one and the same tensor, so they start with equal numbers and share their memory; the gate is the sigmoid (the older GLU) and not SiLU
# told: named
# now: named
# says: two parameters start with the same numbers
class SwiGLU(nn.Module):
    """Gated feed-forward network, no bias."""

    def __init__(self, d_model: int, d_ff: int) -> None:
        super().__init__()
        into = torch.randn(d_model, d_ff) / d_model**0.5
        back = torch.randn(d_ff, d_model) / d_ff**0.5
        self.w_gate = nn.Parameter(into)
        self.w_up = nn.Parameter(into)
        self.w_down = nn.Parameter(back)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = torch.sigmoid(x @ self.w_gate)
        return torch.matmul(gate * torch.matmul(x, self.w_up), self.w_down)


# === exercise: encoder-layer | function: EncoderLayer | kind: plain | what is wrong: the feed-forward network reads x, the input of the layer, instead of a, the result of the first half (a parallel layer), in both orders
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
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if self.norm_first:
            answer, _ = self.attention(self.norm_1(x), mask=mask)
            a = x + self.dropout(answer)
            return a + self.dropout(self.feed_forward(self.norm_2(x)))
        answer, _ = self.attention(x, mask=mask)
        a = self.norm_1(x + self.dropout(answer))
        return self.norm_2(a + self.dropout(self.feed_forward(x)))


# === exercise: encoder-layer | function: EncoderLayer | kind: subtle | what is wrong: forward calls nn.functional.dropout with the rate only, whose default is training=True, so with dropout above 0 the layer goes on dropping after eval()
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

    def drop(self, branch):
        return nn.functional.dropout(branch, self.dropout.p)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if self.norm_first:
            x = x + self.drop(self.attention(self.norm_1(x), mask=mask)[0])
            x = x + self.drop(self.feed_forward(self.norm_2(x)))
        else:
            x = self.norm_1(x + self.drop(self.attention(x, mask=mask)[0]))
            x = self.norm_2(x + self.drop(self.feed_forward(x)))
        return x


# === exercise: encoder-layer | function: EncoderLayer | kind: double | what is wrong: in pre-norm x is overwritten by its normalised copy, so the additions use the normalised tokens; the activation is not handed to FeedForward, so "gelu" still runs ReLU
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
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        if self.norm_first:
            x = self.norm_1(x)
        output, weights = self.attention(x, mask=mask)
        x = x + self.dropout(output)
        if not self.norm_first:
            x = self.norm_1(x)

        if self.norm_first:
            x = self.norm_2(x)
        x = x + self.dropout(self.feed_forward(x))
        if not self.norm_first:
            x = self.norm_2(x)
        return x


# === exercise: encoder-layer-from-torch | function: encoder_layer_from_torch | kind: plain | what is wrong: the two matrices are reshaped to the wanted shape instead of transposed, so the shapes fit and the numbers stand in the wrong places
# told: named
# now: named
# says: reshaped in place of transposed
def encoder_layer_from_torch(state: dict) -> dict:
    inner = {
        name.removeprefix("self_attn."): tensor
        for name, tensor in state.items()
        if name.startswith("self_attn.")
    }
    result = {"attention." + n: t for n, t in attention_from_torch(inner).items()}
    d_ff, d_model = state["linear1.weight"].shape
    result["feed_forward.w_1"] = state["linear1.weight"].reshape(d_model, d_ff)
    result["feed_forward.b_1"] = state["linear1.bias"]
    result["feed_forward.w_2"] = state["linear2.weight"].reshape(d_ff, d_model)
    result["feed_forward.b_2"] = state["linear2.bias"]
    for i in (1, 2):
        result[f"norm_{i}.gamma"] = state[f"norm{i}.weight"]
        result[f"norm_{i}.beta"] = state[f"norm{i}.bias"]
    return result


# === exercise: encoder-layer-from-torch | function: encoder_layer_from_torch | kind: subtle | what is wrong: a matrix is transposed only if its shape does not fit already, so where d_ff equals d_model the square matrices stay untransposed
# told: passed
# now: named
# says: a matrix is not transposed
def encoder_layer_from_torch(state: dict) -> dict:
    d_model, d_ff = state["norm1.weight"].numel(), state["linear1.bias"].numel()

    def fit(matrix, rows):
        """Turn the matrix over if it does not have as many rows as it should."""
        return matrix if matrix.shape[0] == rows else matrix.T

    attention = {}
    for name in state:
        if name.startswith("self_attn."):
            attention[name[len("self_attn."):]] = state[name]
    result = {}
    for name, tensor in attention_from_torch(attention).items():
        result[f"attention.{name}"] = tensor
    result |= {
        "feed_forward.w_1": fit(state["linear1.weight"], d_model),
        "feed_forward.b_1": state["linear1.bias"],
        "feed_forward.w_2": fit(state["linear2.weight"], d_ff),
        "feed_forward.b_2": state["linear2.bias"],
        "norm_1.gamma": state["norm1.weight"],
        "norm_1.beta": state["norm1.bias"],
        "norm_2.gamma": state["norm2.weight"],
        "norm_2.beta": state["norm2.bias"],
    }
    return result


# === exercise: encoder-layer-from-torch | function: encoder_layer_from_torch | kind: double | what is wrong: w_1 gets linear2.weight and w_2 linear1.weight, whose shapes fit without transposing, instead of their own matrices transposed; gamma gets the norm's bias and beta its weight
# told: named
# now: named
# says: two tensors exchanged
def encoder_layer_from_torch(state: dict) -> dict:
    prefix = "self_attn."
    inner = {k[len(prefix):]: v for k, v in state.items() if k.startswith(prefix)}
    names = {
        "linear2.weight": "feed_forward.w_1",  # (d, d_ff)
        "linear1.bias": "feed_forward.b_1",
        "linear1.weight": "feed_forward.w_2",  # (d_ff, d)
        "linear2.bias": "feed_forward.b_2",
        "norm1.bias": "norm_1.gamma",
        "norm1.weight": "norm_1.beta",
        "norm2.bias": "norm_2.gamma",
        "norm2.weight": "norm_2.beta",
    }
    result = {"attention." + k: v for k, v in attention_from_torch(inner).items()}
    for theirs, mine in names.items():
        result[mine] = state[theirs]
    return result


# === exercise: encoder | function: Encoder | kind: plain | what is wrong: every layer is given the encoder's input, since the loop writes to another name than it reads, so only the last layer counts
# told: named
# now: named
# says: every layer reads the first input
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
        self.layers = nn.ModuleList(
            [
                EncoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
                for _ in range(layers)
            ]
        )
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        out = x
        for layer in self.layers:
            out = layer(x, mask=mask)
        return self.norm(out)


# === exercise: encoder | function: Encoder | kind: subtle | what is wrong: the layers are deep copies of one layer, so they have parameters of their own but all start with the same random numbers
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
        layer = EncoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
        self.layers = clones(layer, layers)
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


def clones(module, n):
    """Produce n identical layers."""
    return nn.ModuleList([copy.deepcopy(module) for _ in range(n)])


# === exercise: encoder | function: Encoder | kind: double | what is wrong: the norm at the end is the wrong way round, a LayerNorm in post-norm and nn.Identity in pre-norm; only the first layer gets the mask
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
        options = dict(dropout=dropout, norm_first=norm_first, activation=activation)
        self.layers = nn.ModuleList()
        for _ in range(layers):
            self.layers.append(EncoderLayer(d_model, heads, d_ff, **options))
        # norm first: already normalised. norm last: one more at the end.
        self.norm = nn.Identity() if norm_first else LayerNorm(d_model)

    def forward(
        self, x: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        for depth, layer in enumerate(self.layers):
            # the padding has to be hidden once, on the way in
            x = layer(x, mask if depth == 0 else None)
        return self.norm(x)


# === exercise: mask-tokens | function: mask_tokens | kind: plain | what is wrong: labels are written only where the input was changed (inputs differ from ids), so chosen tokens that stay as they are, or whose random token is the same, get -100 instead of their id
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
    chosen = (uniform < probability) & ~torch.isin(ids, torch.tensor(special_ids, dtype=ids.dtype))
    hidden = chosen & (kind < 0.8)
    replaced = chosen & (kind >= 0.8) & (kind < 0.9)
    inputs = ids.clone()
    inputs[hidden] = mask_id
    inputs[replaced] = random_ids[replaced]
    labels = ids.clone()
    labels[inputs == ids] = -100
    return inputs, labels


# === exercise: mask-tokens | function: mask_tokens | kind: subtle | what is wrong: mask_id is treated as one more special id, so a token of ids that already equals mask_id is never chosen although special_ids does not list it; shows only where ids contain mask_id
# told: told
# now: named
# says: mask_id is spared, too
def mask_tokens(
    ids: torch.Tensor,
    uniform: torch.Tensor,
    kind: torch.Tensor,
    random_ids: torch.Tensor,
    mask_id: int,
    special_ids: list[int],
    probability: float = 0.15,
) -> tuple[torch.Tensor, torch.Tensor]:
    never = torch.tensor([*special_ids, mask_id], dtype=ids.dtype)
    chosen = (uniform < probability) & ~torch.isin(ids, never)
    inputs = torch.where(chosen & (kind < 0.8), mask_id, ids)
    inputs = torch.where(chosen & (kind >= 0.8) & (kind < 0.9), random_ids, inputs)
    labels = torch.where(chosen, ids, -100)
    return inputs, labels


# === exercise: mask-tokens | function: mask_tokens | kind: double | what is wrong: the loop over the special ids overwrites chosen instead of narrowing it, so only the last of them is protected; the two last cases are exchanged: from 0.8 to below 0.9 the token stays and from 0.9 it becomes the random one
# told: named
# now: named
# says: only one of the special ids is spared, and random and unchanged exchanged
def mask_tokens(
    ids: torch.Tensor,
    uniform: torch.Tensor,
    kind: torch.Tensor,
    random_ids: torch.Tensor,
    mask_id: int,
    special_ids: list[int],
    probability: float = 0.15,
) -> tuple[torch.Tensor, torch.Tensor]:
    drawn = uniform < probability
    chosen = drawn
    for special in special_ids:
        chosen = drawn & (ids != special)
    seen = ids.clone()  # 10 percent stay as they are
    seen = torch.where(kind < 0.8, torch.full_like(ids, mask_id), seen)
    seen = torch.where(kind >= 0.9, random_ids, seen)
    inputs = torch.where(chosen, seen, ids)
    labels = torch.where(chosen, ids, torch.full_like(ids, -100))
    return inputs, labels


# === exercise: masked-language-model-loss | function: masked_language_model_loss | kind: plain | what is wrong: the log-softmax runs along axis 1, the positions, instead of the last axis, the vocabulary
# told: told
# now: named
# says: softmax over the wrong axis
def masked_language_model_loss(
    logits: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    logs = torch.log_softmax(logits, dim=1)
    scored = labels != -100
    n = int(scored.sum())
    picked = logs[scored][torch.arange(n), labels[scored]]
    return -picked.sum() / max(1, n)


# === exercise: masked-language-model-loss | function: masked_language_model_loss | kind: subtle | what is wrong: it takes the logarithm of softmax + 1e-9, so a label with a very small probability never costs more than 20.7 nats and gets almost no gradient; shows with large logits such as (200, 0) and label 1
# told: told
# now: named
# says: a small number added in the logarithm
def masked_language_model_loss(
    logits: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    keep = labels.ne(-100)
    chances = torch.softmax(logits[keep], dim=-1)  # (n, V)
    right = chances.gather(-1, labels[keep].unsqueeze(-1)).squeeze(-1)
    losses = -torch.log(right + 1e-9)  # no log of 0
    return losses.sum() / keep.sum().clamp(min=1)


# === exercise: masked-language-model-loss | function: masked_language_model_loss | kind: double | what is wrong: it averages within each sentence and then over the sentences, instead of over all scored positions together; with nothing scored it returns a new constant tensor, from which backward() fails
# told: named
# now: named
# says: the mean of the sentences' means
def masked_language_model_loss(
    logits: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    losses = []
    for row, wanted in zip(logits, labels):
        scored = wanted != -100
        if not scored.any():
            continue
        logs = torch.log_softmax(row[scored], dim=-1)
        picked = logs.gather(-1, wanted[scored].unsqueeze(-1))
        losses.append(-picked.mean())
    if not losses:
        return torch.tensor(0.0)
    return torch.stack(losses).mean()


# === exercise: encoder-classifier | function: EncoderClassifier | kind: plain | what is wrong: the embedded tokens are multiplied by the root of d_model once more, although Embedding scales by it itself
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
        # section 3.4: the embeddings are multiplied by the root of d_model
        x = self.embedding(ids) * math.sqrt(self.d_model)
        x = self.position(self.class_token(x))
        mask = mask_with_class_token(padding_mask(lengths, ids.shape[1]))
        return self.head(self.encoder(x, mask))


# === exercise: encoder-classifier | function: EncoderClassifier | kind: subtle | what is wrong: the mask is made of ids != 0 and not of the lengths, so it fails where a sentence contains the id 0 or where other ids than 0 stand after its end
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
        real = (ids != 0).unsqueeze(1)  # (B, 1, T), 0 pads
        mask = mask_with_class_token(real)  # (B, 1, T + 1)
        hidden = self.class_token(self.embedding(ids))
        hidden = self.encoder(self.position(hidden), mask=mask)
        return self.head(hidden)


# === exercise: encoder-classifier | function: EncoderClassifier | kind: double | what is wrong: the encoder is built without norm_first=True, so it is post-norm; the mask is as wide as the longest sentence and not as ids, so a batch padded further than its longest sentence raises an error
# told: named
# now: named
# says: post-norm in place of pre-norm
class EncoderClassifier(nn.Module):
    """Embedding, class token, positions, encoder, head."""

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
        self.encoder = Encoder(layers, d_model, heads, d_ff, dropout)
        self.head = ClassHead(d_model, classes)

    def forward(self, ids: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids)
        x = self.class_token(x)
        x = self.position(x)
        longest = int(lengths.max())
        mask = padding_mask(lengths, longest)
        mask = mask_with_class_token(mask)
        x = self.encoder(x, mask)
        return self.head(x)
