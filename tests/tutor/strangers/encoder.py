"""Wrong answers to chapter 6, written from its notebook alone."""

# ruff: noqa: B005, B905, E501, F811, F821

import math

import torch
from torch import nn

from tests.tutor.bank import stranger


@stranger(
    "layer-norm",
    "epsilon is added to sigma, after the root",
    kind="subtle",
    first="named",
    verdict="named",
    says="epsilon outside the root",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        std = x.std(-1, keepdim=True, correction=0)
        return self.gamma * (x - mean) / (std + self.epsilon) + self.beta


@stranger(
    "layer-norm",
    "the variance divides by d - 1",
    first="named",
    verdict="named",
    says="unbiased variance",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        variance = x.var(dim=-1, keepdim=True)
        return (x - mean) / torch.sqrt(variance + self.epsilon) * self.gamma + self.beta


@stranger(
    "layer-norm",
    "the epsilon is fixed at 1e-5",
    kind="subtle",
    first="named",
    verdict="named",
    says="epsilon is always 0.00001",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        centred = x - x.mean(dim=-1, keepdim=True)
        variance = centred.square().mean(dim=-1, keepdim=True)
        return self.gamma * centred / (variance + 1e-5).sqrt() + self.beta


@stranger(
    "layer-norm",
    "beta is added before gamma multiplies AND mean and variance over tokens, too",
    kind="double",
    first="useless",
    verdict="named",
    says="statistics over the sentence, and beta added before gamma multiplies",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        axes = (-2, -1) if x.ndim > 1 else -1
        mean = x.mean(axes, keepdim=True)
        variance = x.var(axes, correction=0, keepdim=True)
        normal = (x - mean) / torch.sqrt(variance + self.epsilon)
        return self.gamma * (normal + self.beta)


@stranger(
    "layer-norm",
    "mean and variance are detached",
    kind="subtle",
    first="shown",
    verdict="named",
    says="the statistics are detached",
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True).detach()
        variance = x.var(dim=-1, correction=0, keepdim=True).detach()
        return self.gamma * (x - mean) / torch.sqrt(variance + self.epsilon) + self.beta


@stranger(
    "diagnose-norm",
    "var without correction=0 for layer norm and batch norm",
    kind="subtle",
    first="named",
    verdict="named",
    says="takes “unbiased variance” for “layer norm”",
)
def diagnose_norm(x, y):
    def normal(axes):
        mean, variance = x.mean(axes, keepdim=True), x.var(axes, keepdim=True)
        return (x - mean) / (variance + 1e-5).sqrt()

    mean = x.mean(-1, keepdim=True)
    std = x.std(-1, keepdim=True, correction=0)
    suspects = {
        "layer norm": normal(-1),
        "batch norm": normal((0, 1)),
        "whole tensor": normal((0, 1, 2)),
        "unbiased variance": normal(-1),
        "epsilon outside the root": (x - mean) / (std + 1e-5),
    }
    return min(suspects, key=lambda name: (suspects[name] - y).abs().max().item())


@stranger(
    "diagnose-norm",
    "batch norm over the batch axis only",
    kind="subtle",
    first="named",
    verdict="named",
    says="takes “batch norm” for “layer norm”",
)
def diagnose_norm(x, y):
    def normal(axes, correction=0):
        mean = x.mean(axes, keepdim=True)
        variance = x.var(axes, correction=correction, keepdim=True)
        return (x - mean) / torch.sqrt(variance + 1e-5)

    mean = x.mean(-1, keepdim=True)
    suspects = {
        "layer norm": normal(-1),
        "batch norm": normal(0),
        "whole tensor": normal((0, 1, 2)),
        "unbiased variance": normal(-1, correction=1),
        "epsilon outside the root": (x - mean)
        / (x.std(-1, False, keepdim=True) + 1e-5),
    }
    distances = {name: (each - y).abs().max().item() for name, each in suspects.items()}
    for name, distance in distances.items():
        if distance < 1e-3:
            return name
    return "layer norm"


@stranger(
    "diagnose-norm",
    "never answers 'epsilon outside the root', the fifth has no suspect of its own",
    kind="subtle",
    first="told",
    verdict="named",
    says="takes “epsilon outside the root” for “layer norm”",
)
def diagnose_norm(x, y):
    names = ["layer norm", "batch norm", "whole tensor", "unbiased variance"]
    axes = [(2,), (0, 1), (0, 1, 2), (2,)]
    best, smallest = "epsilon outside the root", 1e9
    for name, axis in zip(names, axes):
        correction = 1 if name == "unbiased variance" else 0
        mean = x.mean(axis, keepdim=True)
        variance = x.var(axis, correction=correction, keepdim=True)
        distance = ((x - mean) / (variance + 1e-5).sqrt() - y).abs().mean()
        if distance < smallest:
            best, smallest = name, distance
    return best


@stranger(
    "rms-norm",
    "the mean is subtracted first",
    first="named",
    verdict="named",
    says="the mean is subtracted",
)
class RMSNorm(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        x = x - x.mean(-1, keepdim=True)
        size = torch.sqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon)
        return self.gamma * x / size


@stranger(
    "rms-norm",
    "the root of the sum of squares AND epsilon after the root",
    kind="double",
    first="shown",
    verdict="named",
    says="the length in place of the root mean square",
)
class RMSNorm(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        return self.gamma * x / (x.norm(dim=-1, keepdim=True) + self.epsilon)


@stranger(
    "gelu",
    "the approximation with tanh",
    kind="subtle",
    first="named",
    verdict="named",
    says="the tanh approximation",
)
def gelu(x):
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + torch.tanh(inner))


@stranger(
    "gelu",
    "erf of x, not of x/√2",
    first="named",
    verdict="named",
    says="erf of x in place of x/√2",
)
def gelu(x):
    return x * 0.5 * (1 + torch.erf(x))


@stranger(
    "gelu",
    "inputs below -3 are cut to 0",
    kind="subtle",
    first="told",
    verdict="named",
    says="cut off far from 0",
)
def gelu(x):
    gate = 0.5 * (1 + torch.erf(x / math.sqrt(2)))
    return torch.where(x < -3, torch.zeros_like(x), x * gate)


@stranger(
    "feed-forward",
    "a second activation after the second matrix",
    first="named",
    verdict="named",
    says="activation after both matrices",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__()
        if activation not in ("relu", "gelu"):
            raise ValueError(f"unknown activation {activation}")
        self.f = torch.relu if activation == "relu" else gelu
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / math.sqrt(d_ff))
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        return self.f(self.f(x @ self.w_1 + self.b_1) @ self.w_2 + self.b_2)


@stranger(
    "feed-forward",
    "always ReLU, the word is only tested",
    kind="subtle",
    first="named",
    verdict="named",
    says="the activation is always ReLU",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__()
        if activation not in ("relu", "gelu"):
            raise ValueError(f"unknown activation {activation}")
        self.activation = activation
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / math.sqrt(d_ff))
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        hidden = torch.relu(x @ self.w_1 + self.b_1)
        return hidden @ self.w_2 + self.b_2


@stranger(
    "feed-forward",
    "w_2 is divided by √d_model, too",
    kind="subtle",
    first="named",
    verdict="named",
    says="the weights start too large",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__()
        if activation not in ("relu", "gelu"):
            raise ValueError(f"unknown activation {activation}")
        self.activation = activation
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / math.sqrt(d_model))
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        hidden = x @ self.w_1 + self.b_1
        hidden = hidden.clamp(min=0) if self.activation == "relu" else gelu(hidden)
        return hidden @ self.w_2 + self.b_2


@stranger(
    "feed-forward",
    "b_1 is added after the activation AND another word means ReLU",
    kind="double",
    first="named",
    verdict="named",
    says="b_1 added after the activation",
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__()
        self.activation = gelu if activation == "gelu" else torch.relu
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / math.sqrt(d_ff))
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        hidden = self.activation(x @ self.w_1) + self.b_1
        return hidden @ self.w_2 + self.b_2


@stranger(
    "swiglu",
    "the sigmoid in place of SiLU",
    first="named",
    verdict="named",
    says="sigmoid in place of SiLU",
)
class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.w_gate = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.w_up = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.w_down = nn.Parameter(torch.randn(d_ff, d_model) / math.sqrt(d_ff))

    def forward(self, x):
        return (torch.sigmoid(x @ self.w_gate) * (x @ self.w_up)) @ self.w_down


@stranger(
    "swiglu",
    "SiLU acts on the up projection AND w_down is divided by √d_model",
    kind="double",
    first="named",
    verdict="named",
    says="gate and up exchanged",
)
class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        scale = math.sqrt(d_model)
        self.w_gate = nn.Parameter(torch.randn(d_model, d_ff) / scale)
        self.w_up = nn.Parameter(torch.randn(d_model, d_ff) / scale)
        self.w_down = nn.Parameter(torch.randn(d_ff, d_model) / scale)

    def forward(self, x):
        up = x @ self.w_up
        return (x @ self.w_gate * (up * torch.sigmoid(up))) @ self.w_down


@stranger(
    "swiglu",
    "the gate overflows: u e^u / (1 + e^u)",
    kind="subtle",
    first="named",
    verdict="named",
    says="not stable for large numbers",
)
class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.w_gate = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.w_up = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_model))
        self.w_down = nn.Parameter(torch.randn(d_ff, d_model) / math.sqrt(d_ff))

    def forward(self, x):
        u = x @ self.w_gate
        gate = u * torch.exp(u) / (1 + torch.exp(u))
        return (gate * (x @ self.w_up)) @ self.w_down


class _Layer(nn.Module):
    """What the answers to 6.7 share: the parts as they should be."""

    def __init__(
        self, d_model, heads, d_ff, dropout=0.0, norm_first=False, activation="relu"
    ):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)


@stranger(
    "encoder-layer",
    "in pre-norm the normalised x is added",
    kind="subtle",
    first="named",
    verdict="named",
    says="residual from the normalised x",
)
class EncoderLayer(_Layer):
    def forward(self, x, mask=None):
        if self.norm_first:
            x = self.norm_1(x)
            x = x + self.dropout(self.attention(x, mask=mask)[0])
            x = self.norm_2(x)
            return x + self.dropout(self.feed_forward(x))
        x = self.norm_1(x + self.dropout(self.attention(x, mask=mask)[0]))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))


@stranger(
    "encoder-layer",
    "dropout after the addition",
    kind="subtle",
    first="named",
    verdict="named",
    says="dropout after the addition",
)
class EncoderLayer(_Layer):
    def forward(self, x, mask=None):
        if self.norm_first:
            x = self.dropout(x + self.attention(self.norm_1(x), mask=mask)[0])
            return self.dropout(x + self.feed_forward(self.norm_2(x)))
        x = self.norm_1(self.dropout(x + self.attention(x, mask=mask)[0]))
        return self.norm_2(self.dropout(x + self.feed_forward(x)))


@stranger(
    "encoder-layer",
    "the mask is forgotten in pre-norm",
    kind="subtle",
    first="named",
    verdict="named",
    says="mask not passed on",
)
class EncoderLayer(_Layer):
    def forward(self, x, mask=None):
        if self.norm_first:
            output, _ = self.attention(self.norm_1(x))
            x = x + self.dropout(output)
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        output, _ = self.attention(x, mask=mask)
        x = self.norm_1(x + self.dropout(output))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))


@stranger(
    "encoder-layer",
    "the second half adds the layer's input, not a",
    kind="plain",
    first="named",
    verdict="named",
    says="second residual from the layer's input",
)
class EncoderLayer(_Layer):
    def forward(self, x, mask=None):
        if self.norm_first:
            a = x + self.dropout(self.attention(self.norm_1(x), mask=mask)[0])
            return x + self.dropout(self.feed_forward(self.norm_2(a)))
        a = self.norm_1(x + self.dropout(self.attention(x, mask=mask)[0]))
        return self.norm_2(x + self.dropout(self.feed_forward(a)))


@stranger(
    "encoder-layer",
    "the activation is not handed on AND dropout is missing in the second half",
    kind="double",
    first="named",
    verdict="named",
    says="dropout only on attention",
)
class EncoderLayer(_Layer):
    def __init__(
        self, d_model, heads, d_ff, dropout=0.0, norm_first=False, activation="relu"
    ):
        super().__init__(d_model, heads, d_ff, dropout, norm_first)

    def forward(self, x, mask=None):
        if self.norm_first:
            x = x + self.dropout(self.attention(self.norm_1(x), mask=mask)[0])
            return x + self.feed_forward(self.norm_2(x))
        x = self.norm_1(x + self.dropout(self.attention(x, mask=mask)[0]))
        return self.norm_2(x + self.feed_forward(x))


@stranger(
    "encoder-layer",
    "norm_1 is used in both halves of post-norm",
    kind="subtle",
    first="named",
    verdict="named",
    says="one norm for both halves",
)
class EncoderLayer(_Layer):
    def forward(self, x, mask=None):
        if self.norm_first:
            x = x + self.dropout(self.attention(self.norm_1(x), mask=mask)[0])
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        x = self.norm_1(x + self.dropout(self.attention(x, mask=mask)[0]))
        return self.norm_1(x + self.dropout(self.feed_forward(x)))


@stranger(
    "encoder-layer",
    "post-norm normalises the branch before it is added",
    kind="subtle",
    first="named",
    verdict="named",
    says="norm on the branch's output only",
)
class EncoderLayer(_Layer):
    def forward(self, x, mask=None):
        if self.norm_first:
            x = x + self.dropout(self.attention(self.norm_1(x), mask=mask)[0])
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        x = x + self.dropout(self.norm_1(self.attention(x, mask=mask)[0]))
        return x + self.dropout(self.norm_2(self.feed_forward(x)))


@stranger(
    "encoder-layer-from-torch",
    "norm1 and norm2 are exchanged",
    kind="subtle",
    first="named",
    verdict="named",
    says="two tensors exchanged",
)
def encoder_layer_from_torch(state):
    prefix = "self_attn."
    inner = {
        k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)
    }
    result = {f"attention.{k}": v for k, v in attention_from_torch(inner).items()}
    for i in (1, 2):
        result[f"feed_forward.w_{i}"] = state[f"linear{i}.weight"].T
        result[f"feed_forward.b_{i}"] = state[f"linear{i}.bias"]
        result[f"norm_{3 - i}.gamma"] = state[f"norm{i}.weight"]
        result[f"norm_{3 - i}.beta"] = state[f"norm{i}.bias"]
    return result


@stranger(
    "encoder-layer-from-torch",
    "the matrices are reshaped, not transposed AND gamma and beta exchanged",
    kind="double",
    first="named",
    verdict="named",
    says="two tensors exchanged",
)
def encoder_layer_from_torch(state):
    prefix = "self_attn."
    inner = {
        k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)
    }
    result = {f"attention.{k}": v for k, v in attention_from_torch(inner).items()}
    for i in (1, 2):
        weight = state[f"linear{i}.weight"]
        result[f"feed_forward.w_{i}"] = weight.reshape(weight.shape[1], weight.shape[0])
        result[f"feed_forward.b_{i}"] = state[f"linear{i}.bias"]
        result[f"norm_{i}.gamma"] = state[f"norm{i}.bias"]
        result[f"norm_{i}.beta"] = state[f"norm{i}.weight"]
    return result


class _Stack(nn.Module):
    """What the answers to 6.9 share: the parts as they should be."""

    def __init__(
        self,
        layers,
        d_model,
        heads,
        d_ff,
        dropout=0.0,
        norm_first=False,
        activation="relu",
    ):
        super().__init__()
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
            for _ in range(layers)
        )
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


@stranger(
    "encoder",
    "only the first layer gets the mask",
    kind="subtle",
    first="named",
    verdict="named",
    says="mask only for the first layer",
)
class Encoder(_Stack):
    def forward(self, x, mask=None):
        x = self.layers[0](x, mask)
        for layer in self.layers[1:]:
            x = layer(x)
        return self.norm(x)


@stranger(
    "encoder",
    "the norm at the end in post-norm, too",
    kind="subtle",
    first="named",
    verdict="named",
    says="final norm in post-norm",
)
class Encoder(_Stack):
    def __init__(
        self,
        layers,
        d_model,
        heads,
        d_ff,
        dropout=0.0,
        norm_first=False,
        activation="relu",
    ):
        super().__init__(layers, d_model, heads, d_ff, dropout, norm_first, activation)
        self.norm = LayerNorm(d_model)


@stranger(
    "encoder",
    "the layers are copies of one layer with the same numbers",
    kind="subtle",
    first="named",
    verdict="named",
    says="the layers start as copies",
)
class Encoder(_Stack):
    def __init__(
        self,
        layers,
        d_model,
        heads,
        d_ff,
        dropout=0.0,
        norm_first=False,
        activation="relu",
    ):
        super().__init__(layers, d_model, heads, d_ff, dropout, norm_first, activation)
        for layer in self.layers:
            layer.load_state_dict(self.layers[0].state_dict())


@stranger(
    "encoder",
    "norm_first and activation are not handed on to the layers AND the last norm is "
    "applied after each layer",
    kind="double",
    first="useless",
    verdict="named",
    says="norm_first and activation not passed on",
)
class Encoder(_Stack):
    def __init__(
        self,
        layers,
        d_model,
        heads,
        d_ff,
        dropout=0.0,
        norm_first=False,
        activation="relu",
    ):
        super().__init__(layers, d_model, heads, d_ff, dropout, norm_first, activation)
        self.layers = nn.ModuleList(
            EncoderLayer(d_model, heads, d_ff, dropout) for _ in range(layers)
        )

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = self.norm(layer(x, mask))
        return x


@stranger(
    "mask-tokens",
    "special tokens are chosen, too",
    kind="plain",
    first="named",
    verdict="named",
    says="special tokens masked",
)
def mask_tokens(ids, uniform, kind, random_ids, mask_id, special_ids, probability=0.15):
    chosen = uniform < probability
    inputs = torch.where(chosen & (kind < 0.8), mask_id, ids)
    inputs = torch.where(chosen & (kind >= 0.8) & (kind < 0.9), random_ids, inputs)
    labels = torch.where(chosen, ids, -100)
    return inputs, labels


@stranger(
    "mask-tokens",
    "kind of exactly 0.8 is neither masked nor replaced",
    kind="subtle",
    first="passed",
    verdict="named",
    says="kind equal to 0.8 stays unchanged",
)
def mask_tokens(ids, uniform, kind, random_ids, mask_id, special_ids, probability=0.15):
    special = torch.isin(ids, torch.tensor(special_ids))
    chosen = (uniform < probability) & ~special
    inputs = torch.where(chosen & (kind < 0.8), mask_id, ids)
    inputs = torch.where(chosen & (kind > 0.8) & (kind < 0.9), random_ids, inputs)
    labels = torch.where(chosen, ids, -100)
    return inputs, labels


@stranger(
    "mask-tokens",
    "tokens that stay as they are get no label",
    kind="subtle",
    first="named",
    verdict="named",
    says="only changed tokens are scored",
)
def mask_tokens(ids, uniform, kind, random_ids, mask_id, special_ids, probability=0.15):
    special = torch.isin(ids, torch.tensor(special_ids))
    chosen = (uniform < probability) & ~special
    inputs = torch.where(chosen & (kind < 0.8), mask_id, ids)
    inputs = torch.where(chosen & (kind >= 0.8) & (kind < 0.9), random_ids, inputs)
    labels = torch.where(inputs != ids, ids, -100)
    return inputs, labels


@stranger(
    "mask-tokens",
    "15 percent fixed AND the label is read after the mask is put in",
    kind="double",
    first="named",
    verdict="named",
    says="probability is always 0.15, and the labels are what the model sees",
)
def mask_tokens(ids, uniform, kind, random_ids, mask_id, special_ids, probability=0.15):
    special = torch.isin(ids, torch.tensor(special_ids))
    chosen = (uniform < 0.15) & ~special
    inputs = ids.clone()
    inputs[chosen & (kind < 0.8)] = mask_id
    here = chosen & (kind >= 0.8) & (kind < 0.9)
    inputs[here] = random_ids[here]
    labels = torch.full_like(ids, -100)
    labels[chosen] = inputs[chosen]
    return inputs, labels


@stranger(
    "mask-tokens",
    "only the first special id is spared",
    kind="subtle",
    first="shown",
    verdict="named",
    says="only one of the special ids is spared",
)
def mask_tokens(ids, uniform, kind, random_ids, mask_id, special_ids, probability=0.15):
    chosen = (uniform < probability) & (ids != special_ids[0])
    inputs = torch.where(chosen & (kind < 0.8), mask_id, ids)
    inputs = torch.where(chosen & (kind >= 0.8) & (kind < 0.9), random_ids, inputs)
    return inputs, torch.where(chosen, ids, -100)


@stranger(
    "masked-language-model-loss",
    "divided by all positions",
    first="named",
    verdict="named",
    says="the mean over all positions",
)
def masked_language_model_loss(logits, labels):
    scored = labels != -100
    logs = torch.log_softmax(logits[scored], dim=-1)
    own = logs.gather(-1, labels[scored].unsqueeze(-1))
    return -own.sum() / labels.numel()


@stranger(
    "masked-language-model-loss",
    "the mean of the means of each sentence",
    kind="subtle",
    first="named",
    verdict="named",
    says="the mean of the sentences' means",
)
def masked_language_model_loss(logits, labels):
    scored = labels != -100
    logs = torch.log_softmax(logits, dim=-1)
    own = logs.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    own = torch.where(scored, own, 0.0)
    return -(own.sum(-1) / scored.sum(-1).clamp(min=1)).mean()


@stranger(
    "masked-language-model-loss",
    "NaN where nothing is scored is replaced at the end",
    kind="subtle",
    first="wrong",
    verdict="named",
    says="NaN when nothing is scored",
)
def masked_language_model_loss(logits, labels):
    scored = labels != -100
    logs = torch.log_softmax(logits, dim=-1)
    own = logs.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    loss = -(own * scored).sum() / scored.sum()
    return torch.nan_to_num(loss)


@stranger(
    "masked-language-model-loss",
    "the logarithm of softmax is taken in two steps AND label 0 is not scored",
    kind="double",
    first="named",
    verdict="named",
    says="label 0 is not scored",
)
def masked_language_model_loss(logits, labels):
    scored = labels > 0
    logs = torch.softmax(logits[scored], dim=-1).log()
    wanted = labels[scored]
    own = logs[torch.arange(len(wanted)), wanted]
    return -own.sum() / max(1, len(wanted))


class _Classifier(nn.Module):
    """What the answers to 6.13 share: the parts as they should be."""

    def __init__(
        self,
        vocab_size,
        classes,
        d_model,
        heads,
        layers,
        d_ff,
        max_length,
        dropout=0.0,
    ):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.class_token = ClassToken(d_model)
        self.position = SinusoidalPositionalEncoding(d_model, max_length + 1, dropout)
        self.encoder = Encoder(layers, d_model, heads, d_ff, dropout, norm_first=True)
        self.head = ClassHead(d_model, classes)


@stranger(
    "encoder-classifier",
    "positions are added before the class token",
    kind="subtle",
    first="named",
    verdict="named",
    says="positions before the class token",
)
class EncoderClassifier(_Classifier):
    def forward(self, ids, lengths):
        x = self.class_token(self.position(self.embedding(ids)))
        mask = mask_with_class_token(padding_mask(lengths, ids.shape[1]))
        return self.head(self.encoder(x, mask))


@stranger(
    "encoder-classifier",
    "padding_mask(lengths, T + 1): the last word is hidden",
    kind="subtle",
    first="named",
    verdict="named",
    says="the last word of each sentence is hidden",
)
class EncoderClassifier(_Classifier):
    def forward(self, ids, lengths):
        x = self.position(self.class_token(self.embedding(ids)))
        mask = padding_mask(lengths, ids.shape[1] + 1)
        return self.head(self.encoder(x, mask))


@stranger(
    "encoder-classifier",
    "the embedding is scaled by √d once more",
    kind="plain",
    first="named",
    verdict="named",
    says="embeddings scaled twice",
)
class EncoderClassifier(_Classifier):
    def forward(self, ids, lengths):
        x = self.embedding(ids)
        x = self.position(self.class_token(x * math.sqrt(x.shape[-1])))
        mask = mask_with_class_token(padding_mask(lengths, ids.shape[1]))
        return self.head(self.encoder(x, mask))


@stranger(
    "encoder-classifier",
    "post-norm AND the mask is not handed to the encoder",
    kind="double",
    first="named",
    verdict="named",
    says="post-norm in place of pre-norm",
)
class EncoderClassifier(_Classifier):
    def __init__(
        self,
        vocab_size,
        classes,
        d_model,
        heads,
        layers,
        d_ff,
        max_length,
        dropout=0.0,
    ):
        super().__init__(
            vocab_size, classes, d_model, heads, layers, d_ff, max_length, dropout
        )
        self.encoder = Encoder(layers, d_model, heads, d_ff, dropout)

    def forward(self, ids, lengths):
        x = self.position(self.class_token(self.embedding(ids)))
        return self.head(self.encoder(x))


@stranger(
    "encoder-classifier",
    "dropout is not handed to the positions",
    kind="subtle",
    first="named",
    verdict="named",
    says="dropout not passed to the positions",
)
class EncoderClassifier(_Classifier):
    def __init__(
        self,
        vocab_size,
        classes,
        d_model,
        heads,
        layers,
        d_ff,
        max_length,
        dropout=0.0,
    ):
        super().__init__(
            vocab_size, classes, d_model, heads, layers, d_ff, max_length, dropout
        )
        self.position = SinusoidalPositionalEncoding(d_model, max_length + 1)

    def forward(self, ids, lengths):
        x = self.position(self.class_token(self.embedding(ids)))
        mask = mask_with_class_token(padding_mask(lengths, ids.shape[1]))
        return self.head(self.encoder(x, mask))


# --- a second round, after the checks were mended from the first ---


@stranger(
    "layer-norm",
    "the root is kept from falling below epsilon; epsilon is not added to the variance",
    kind="subtle",
    first="useless",
    verdict="named",
    says="epsilon as a lower limit",
    round=2,
)
class LayerNorm(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        variance = x.var(dim=-1, correction=0, keepdim=True)
        root = variance.sqrt().clamp(min=self.epsilon)
        return self.gamma * (x - mean) / root + self.beta


@stranger(
    "diagnose-norm",
    "the first suspect within 0.1 of y is named, not the nearest",
    kind="subtle",
    first="told",
    verdict="named",
    says="the first within a tolerance in place of the nearest",
    round=2,
)
def diagnose_norm(x, y):
    def suspect(over, correction=0):
        mean = x.mean(over, keepdim=True)
        variance = x.var(over, correction=correction, keepdim=True)
        return (x - mean) / (variance + 1e-5).sqrt()

    if torch.allclose(suspect(-1), y, atol=0.1):
        return "layer norm"
    if torch.allclose(suspect((0, 1)), y, atol=0.1):
        return "batch norm"
    if torch.allclose(suspect((0, 1, 2)), y, atol=0.1):
        return "whole tensor"
    if torch.allclose(suspect(-1, correction=1), y, atol=0.1):
        return "unbiased variance"
    return "epsilon outside the root"


@stranger(
    "diagnose-norm",
    "batch norm is computed over the sentences only, for each position by itself",
    kind="subtle",
    first="told",
    verdict="told",
    says="takes “batch norm” for “whole tensor”",
    round=2,
)
def diagnose_norm(x, y):
    def suspect(over, correction=0):
        mean = x.mean(over, keepdim=True)
        variance = x.var(over, correction=correction, keepdim=True)
        return (x - mean) / torch.sqrt(variance + 1e-5)

    mean = x.mean(-1, keepdim=True)
    sigma = x.std(-1, correction=0, keepdim=True)
    made = {
        "layer norm": suspect(-1),
        "batch norm": suspect(0),
        "whole tensor": suspect((0, 1, 2)),
        "unbiased variance": suspect(-1, correction=1),
        "epsilon outside the root": (x - mean) / (sigma + 1e-5),
    }
    return min(made, key=lambda name: (made[name] - y).abs().max().item())


@stranger(
    "rms-norm",
    "the epsilon that is given is not kept: it is always 1e-5",
    kind="subtle",
    first="shown",
    verdict="named",
    says="epsilon is always 0.00001",
    round=2,
)
class RMSNorm(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.epsilon = 1e-5
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        size = torch.sqrt(x.pow(2).mean(dim=-1, keepdim=True) + self.epsilon)
        return self.gamma * x / size


@stranger(
    "gelu",
    "erf of x is divided by the root of 2, not x inside erf",
    first="named",
    verdict="named",
    says="divided by √2 after erf",
    round=2,
)
def gelu(x):
    return 0.5 * x * (1 + torch.erf(x) / math.sqrt(2))


@stranger(
    "feed-forward",
    "the two divisors of the matrices are exchanged"
    " AND any word but relu is taken for gelu",
    kind="double",
    first="named",
    verdict="named",
    says="an unknown activation is accepted",
    round=2,
)
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__()
        self.relu = activation == "relu"
        self.w_1 = nn.Parameter(torch.randn(d_model, d_ff) / math.sqrt(d_ff))
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / math.sqrt(d_model))
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        hidden = x @ self.w_1 + self.b_1
        hidden = torch.relu(hidden) if self.relu else gelu(hidden)
        return hidden @ self.w_2 + self.b_2


@stranger(
    "swiglu",
    "each matrix is divided by the root of its columns, not of its rows",
    first="named",
    verdict="named",
    says="the weights start too small",
    round=2,
)
class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.w_gate = nn.Parameter(torch.randn(d_model, d_ff) / d_ff**0.5)
        self.w_up = nn.Parameter(torch.randn(d_model, d_ff) / d_ff**0.5)
        self.w_down = nn.Parameter(torch.randn(d_ff, d_model) / d_model**0.5)

    def forward(self, x):
        u = x @ self.w_gate
        return (u * torch.sigmoid(u) * (x @ self.w_up)) @ self.w_down


@stranger(
    "encoder-layer",
    "in post-norm the mask is not handed to attention",
    kind="subtle",
    first="named",
    verdict="named",
    says="mask not passed on",
    round=2,
)
class EncoderLayer(nn.Module):
    def __init__(
        self, d_model, heads, d_ff, dropout=0.0, norm_first=False, activation="relu"
    ):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        if self.norm_first:
            x = x + self.dropout(self.attention(self.norm_1(x), mask=mask)[0])
            return x + self.dropout(self.feed_forward(self.norm_2(x)))
        x = self.norm_1(x + self.dropout(self.attention(x)[0]))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))


@stranger(
    "encoder-layer",
    "no dropout on what the network computes"
    " AND the activation is not handed to the network",
    kind="double",
    first="named",
    verdict="named",
    says="dropout only on attention",
    round=2,
)
class EncoderLayer(nn.Module):
    def __init__(
        self, d_model, heads, d_ff, dropout=0.0, norm_first=False, activation="relu"
    ):
        super().__init__()
        self.norm_first = norm_first
        self.attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = FeedForward(d_model, d_ff)
        self.norm_1 = LayerNorm(d_model)
        self.norm_2 = LayerNorm(d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, mask=None):
        if self.norm_first:
            attended, _ = self.attention(self.norm_1(x), mask=mask)
            x = x + self.dropout(attended)
            x = x + self.feed_forward(self.norm_2(x))
        else:
            attended, _ = self.attention(x, mask=mask)
            x = self.norm_1(x + self.dropout(attended))
            x = self.norm_2(x + self.feed_forward(x))
        return x


@stranger(
    "encoder-layer-from-torch",
    "strip takes letters off both ends of the name, not the prefix",
    first="wrong",
    verdict="named",
    says="the prefix self_attn. is not cut off exactly",
    round=2,
)
def encoder_layer_from_torch(state):
    inner = {}
    for name, tensor in state.items():
        if name.startswith("self_attn."):
            inner[name.strip("self_attn.")] = tensor
    result = {}
    for name, tensor in attention_from_torch(inner).items():
        result["attention." + name] = tensor
    for i in (1, 2):
        result[f"feed_forward.w_{i}"] = state[f"linear{i}.weight"].T
        result[f"feed_forward.b_{i}"] = state[f"linear{i}.bias"]
        result[f"norm_{i}.gamma"] = state[f"norm{i}.weight"]
        result[f"norm_{i}.beta"] = state[f"norm{i}.bias"]
    return result


@stranger(
    "encoder",
    "the norm at the end is applied after every layer",
    kind="subtle",
    first="named",
    verdict="named",
    says="the final norm after every layer",
    round=2,
)
class Encoder(nn.Module):
    def __init__(
        self,
        layers,
        d_model,
        heads,
        d_ff,
        dropout=0.0,
        norm_first=False,
        activation="relu",
    ):
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(layers):
            self.layers.append(
                EncoderLayer(d_model, heads, d_ff, dropout, norm_first, activation)
            )
        self.norm = LayerNorm(d_model) if norm_first else nn.Identity()

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
            x = self.norm(x)
        return x


@stranger(
    "mask-tokens",
    "only the first of the special ids is left alone",
    kind="subtle",
    first="named",
    verdict="named",
    says="only one of the special ids is spared",
    round=2,
)
def mask_tokens(ids, uniform, kind, random_ids, mask_id, special_ids, probability=0.15):
    chosen = (uniform < probability) & (ids != special_ids[0])
    inputs = ids.clone()
    masked = chosen & (kind < 0.8)
    replaced = chosen & (kind >= 0.8) & (kind < 0.9)
    inputs[masked] = mask_id
    inputs[replaced] = random_ids[replaced]
    labels = torch.where(chosen, ids, -100)
    return inputs, labels


@stranger(
    "masked-language-model-loss",
    "labels of the id 0 are not scored either",
    kind="subtle",
    first="named",
    verdict="named",
    says="label 0 is not scored",
    round=2,
)
def masked_language_model_loss(logits, labels):
    scored = labels > 0
    logs = torch.log_softmax(logits[scored], dim=-1)
    own = logs.gather(-1, labels[scored].unsqueeze(-1)).squeeze(-1)
    return -own.sum() / scored.sum().clamp(min=1)


@stranger(
    "encoder-classifier",
    "the positions are added before the class token is put in front"
    " AND the table has no row for it",
    kind="double",
    first="named",
    verdict="named",
    says="positions before the class token",
    round=2,
)
class EncoderClassifier(nn.Module):
    def __init__(
        self,
        vocab_size,
        classes,
        d_model,
        heads,
        layers,
        d_ff,
        max_length,
        dropout=0.0,
    ):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.class_token = ClassToken(d_model)
        self.position = SinusoidalPositionalEncoding(d_model, max_length, dropout)
        self.encoder = Encoder(layers, d_model, heads, d_ff, dropout, norm_first=True)
        self.head = ClassHead(d_model, classes)

    def forward(self, ids, lengths):
        x = self.position(self.embedding(ids))
        x = self.class_token(x)
        mask = mask_with_class_token(padding_mask(lengths, ids.shape[1]))
        return self.head(self.encoder(x, mask))


# --- a third round, of what came later ---


@stranger(
    "encoder-classifier",
    "positions are added before the class token is put in front: the class token has none "
    "and the first word has position 0",
    kind="subtle",
    first="named",
    verdict="named",
    says="positions before the class token",
    round=3,
)
class EncoderClassifier(nn.Module):
    def __init__(
        self, vocab_size, classes, d_model, heads, layers, d_ff, max_length, dropout=0.0
    ):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.class_token = ClassToken(d_model)
        self.position = SinusoidalPositionalEncoding(d_model, max_length + 1, dropout)
        self.encoder = Encoder(layers, d_model, heads, d_ff, dropout, norm_first=True)
        self.head = ClassHead(d_model, classes)

    def forward(self, ids, lengths):
        x = self.class_token(self.position(self.embedding(ids)))
        mask = mask_with_class_token(padding_mask(lengths, ids.shape[1]))
        return self.head(self.encoder(x, mask))


@stranger(
    "encoder-classifier",
    "the padding mask is made of T + 1 positions from the same lengths: the class token counts "
    "as a word, so the last word of each sentence is hidden",
    kind="subtle",
    first="named",
    verdict="named",
    says="the last word of each sentence is hidden",
    round=3,
)
class EncoderClassifier(nn.Module):
    def __init__(
        self, vocab_size, classes, d_model, heads, layers, d_ff, max_length, dropout=0.0
    ):
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.class_token = ClassToken(d_model)
        self.position = SinusoidalPositionalEncoding(d_model, max_length + 1, dropout)
        self.encoder = Encoder(layers, d_model, heads, d_ff, dropout, norm_first=True)
        self.head = ClassHead(d_model, classes)

    def forward(self, ids, lengths):
        x = self.embedding(ids)
        x = self.class_token(x)
        x = self.position(x)
        mask = padding_mask(lengths, x.shape[1])
        hidden = self.encoder(x, mask)
        return self.head(hidden)


@stranger(
    "encoder-classifier",
    "the encoder is post-norm (norm_first is left out) AND the embeddings are multiplied by "
    "the root of d a second time",
    kind="double",
    first="named",
    verdict="named",
    says="post-norm in place of pre-norm",
    round=3,
)
class EncoderClassifier(nn.Module):
    def __init__(
        self, vocab_size, classes, d_model, heads, layers, d_ff, max_length, dropout=0.0
    ):
        super().__init__()
        self.scale = d_model**0.5
        self.embedding = Embedding(vocab_size, d_model)
        self.class_token = ClassToken(d_model)
        self.position = SinusoidalPositionalEncoding(d_model, max_length + 1, dropout)
        self.encoder = Encoder(layers, d_model, heads, d_ff, dropout)
        self.head = ClassHead(d_model, classes)

    def forward(self, ids, lengths):
        x = self.embedding(ids) * self.scale
        x = self.position(self.class_token(x))
        mask = padding_mask(lengths, ids.shape[1])
        mask = mask_with_class_token(mask)
        return self.head(self.encoder(x, mask))
