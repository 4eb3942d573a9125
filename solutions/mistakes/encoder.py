"""Wrong and right answers to the exercises of chapter 6."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import nn

from mistakes import right, wrong
from transformer import encoder as reference
from transformer.attention import padding_mask
from transformer.class_token import ClassHead, ClassToken, mask_with_class_token
from transformer.embeddings import Embedding
from transformer.encoder import FeedForward as Network
from transformer.encoder import LayerNorm as Norm
from transformer.multi_head_attention import MultiHeadAttention, attention_from_torch
from transformer.positional_encoding import SinusoidalPositionalEncoding

# --- layer norm -----------------------------------------------------------------------


class LayerNormBase(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.beta = nn.Parameter(torch.zeros(d_model))


@wrong("layer-norm", "epsilon outside the root")
class LayerNorm(LayerNormBase):
    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        spread = x.std(-1, correction=0, keepdim=True)
        return self.gamma * (x - mean) / (spread + self.epsilon) + self.beta


@wrong("layer-norm", "NaN gradient on a constant token")
class LayerNorm(LayerNormBase):
    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        spread = centred.square().mean(-1, keepdim=True).sqrt()
        return self.gamma * centred / (spread**2 + self.epsilon).sqrt() + self.beta


@wrong("layer-norm", "the variance loses its digits")
class LayerNorm(LayerNormBase):
    def forward(self, x):
        mean = x.mean(-1, keepdim=True)
        variance = (x**2).mean(-1, keepdim=True) - mean**2
        root = (variance.clamp(min=0) + self.epsilon).sqrt()
        return self.gamma * (x - mean) / root + self.beta


@wrong("layer-norm", "the axis of the mean is lost")
class LayerNorm(LayerNormBase):
    def forward(self, x):
        centred = x - x.mean(-1)
        variance = centred.square().mean(-1)
        return self.gamma * centred / torch.sqrt(variance + self.epsilon) + self.beta


@wrong("layer-norm", "gamma and beta start with other numbers")
class LayerNorm(LayerNormBase):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__(d_model, epsilon)
        self.gamma = nn.Parameter(torch.randn(d_model))

    def forward(self, x):
        return self.gamma * rescaled(x, inside=self.epsilon) + self.beta


@wrong("layer-norm", "parameters are missing")
class LayerNorm(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.gamma, self.beta = torch.ones(d_model), torch.zeros(d_model)

    def forward(self, x):
        return self.gamma * rescaled(x) + self.beta


@wrong("layer-norm", "the parameters have other names")
class LayerNorm(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(d_model))
        self.shift = nn.Parameter(torch.zeros(d_model))


@wrong("layer-norm", "PyTorch's module in place of your own")
class LayerNorm(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=epsilon)

    def forward(self, x):
        return self.norm(x)


@wrong("layer-norm", "parameters of other shapes")
class LayerNorm(nn.Module):
    """The width of a batch in place of that of a token."""

    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d_model + 1))
        self.beta = nn.Parameter(torch.zeros(d_model + 1))


@wrong("layer-norm", "one number for all features")
class LayerNorm(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(1))
        self.beta = nn.Parameter(torch.zeros(1))


@wrong(
    "layer-norm",
    "uses torch.nn.functional.layer_norm, which this exercise asks you to write "
    "yourself",
)
class LayerNorm(LayerNormBase):
    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:], self.gamma, self.beta, self.epsilon)


@right("layer-norm")
class LayerNorm(nn.Module):
    """beta before gamma"""

    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        return self.gamma * rescaled(x, inside=self.epsilon) + self.beta


@right("layer-norm")
class LayerNorm(LayerNormBase):
    """torch.var_mean and rsqrt"""

    def forward(self, x):
        variance, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        return (x - mean) * (variance + self.epsilon).rsqrt() * self.gamma + self.beta


@right("layer-norm")
class LayerNorm(nn.Module):
    """beta built first, sums divided by the width"""

    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.gamma = nn.Parameter(torch.ones(d_model))
        self.epsilon = epsilon

    def forward(self, x):
        centred = x - x.sum(-1, keepdim=True) / x.shape[-1]
        variance = (centred * centred).sum(-1, keepdim=True) / x.shape[-1]
        return self.beta + centred * self.gamma / (variance + self.epsilon) ** 0.5


# --- which norm was that --------------------------------------------------------------


def rescaled(x, axes=-1, correction=0, inside=1e-5, outside=0.0):
    centred = x - x.mean(axes, keepdim=True)
    variance = x.var(axes, correction=correction, keepdim=True)
    return centred / ((variance + inside).sqrt() + outside)


def suspects_of(x):
    return {
        "layer norm": rescaled(x),
        "batch norm": rescaled(x, (0, 1)),
        "whole tensor": rescaled(x, (0, 1, 2)),
        "unbiased variance": rescaled(x, correction=1),
        "epsilon outside the root": rescaled(x, inside=0.0, outside=1e-5),
    }


def nearest(y, suspects):
    return min(suspects, key=lambda name: (suspects[name] - y).abs().max().item())


@wrong("diagnose-norm", "always the same answer")
def diagnose_norm(x, y):
    return "layer norm"


@wrong("diagnose-norm", "takes “layer norm” for “unbiased variance”")
def diagnose_norm(x, y):
    """Fixed limits on the size of y."""
    token_means = y.mean(-1).abs().max()
    if token_means > 1e-2:
        return "whole tensor" if y.mean((0, 1)).abs().max() > 1e-2 else "batch norm"
    size = y.square().mean(-1).max()
    if size > 0.95:
        return "epsilon outside the root"
    return "unbiased variance" if size < 0.98 else "layer norm"


@wrong("diagnose-norm", "the first within a tolerance in place of the nearest")
def diagnose_norm(x, y):
    for name, suspect in suspects_of(x).items():
        if (suspect - y).abs().max() < 0.001:
            return name


@wrong("diagnose-norm", "another word than the five")
def diagnose_norm(x, y):
    return nearest(y, suspects_of(x)).title()


@right("diagnose-norm")
def diagnose_norm(x, y):
    """mean distance, PyTorch's functions"""
    suspects = suspects_of(x) | {"layer norm": F.layer_norm(x, x.shape[-1:])}
    distances = [(each - y).square().mean() for each in suspects.values()]
    return list(suspects)[int(torch.stack(distances).argmin())]


# --- RMS norm -------------------------------------------------------------------------


class RMSNormBase(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.epsilon = epsilon
        self.gamma = nn.Parameter(torch.ones(d_model))


@wrong("rms-norm", "epsilon outside the root")
class RMSNorm(RMSNormBase):
    def forward(self, x):
        size = x.square().mean(-1, keepdim=True).sqrt()
        return self.gamma * x / (size + self.epsilon)


@wrong(
    "rms-norm",
    "uses torch.nn.functional.rms_norm, which this exercise asks you to write yourself",
)
class RMSNorm(RMSNormBase):
    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.gamma, self.epsilon)


@wrong("rms-norm", "a beta in RMS norm")
class RMSNorm(RMSNormBase):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__(d_model, epsilon)
        self.beta = nn.Parameter(torch.zeros(d_model))


@right("rms-norm")
class RMSNorm(RMSNormBase):
    """rsqrt"""

    def forward(self, x):
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon)
        return x * scale * self.gamma


# --- GELU -----------------------------------------------------------------------------


@wrong("gelu", "no gradient comes back")
def gelu(x):
    return x.detach() * torch.special.ndtr(x.detach())


@wrong(
    "gelu",
    "uses torch.nn.functional.gelu, which this exercise asks you to write yourself",
)
def gelu(x):
    return nn.GELU()(x)


@right("gelu")
def gelu(x):
    """by torch.special.ndtr"""
    return x * torch.special.ndtr(x)


@right("gelu")
def gelu(x):
    """erfc"""
    return 0.5 * x * torch.erfc(-x / 2**0.5)


def slopes_of(x, activation):
    x = x.detach().clone().requires_grad_()
    y = torch.relu(x) if activation == "relu" else x * torch.special.ndtr(x)
    y.sum().backward()
    return x.grad


@wrong("gelu", "dead for some token")
def dead_units(x, activation):
    columns = slopes_of(x, activation).reshape(-1, x.shape[-1]).unbind(1)
    return torch.tensor([bool((column == 0).sum()) for column in columns])


@wrong("gelu", "the sentences are kept apart")
def dead_units(x, activation):
    return slopes_of(x, activation).abs().sum(dim=-2) == 0


@wrong("gelu", "the number of dead units")
def dead_units(x, activation):
    silent = slopes_of(x, activation).abs().amax(tuple(range(x.dim() - 1))) == 0
    return silent.count_nonzero()


@wrong("gelu", "ReLU's slopes for GELU, too")
def dead_units(x, activation):
    return x.reshape(-1, x.shape[-1]).amax(0) <= 0


@wrong("gelu", "the values in place of the slopes")
def dead_units(x, activation):
    y = torch.relu(x) if activation == "relu" else F.gelu(x)
    return y.reshape(-1, y.shape[-1]).count_nonzero(0) == 0


@wrong("gelu", "a small slope counts as none")
def dead_units(x, activation):
    largest = slopes_of(x, activation).abs().flatten(0, -2).amax(0)
    return largest < 1e-6


@right("gelu")
def dead_units(x, activation):
    """by backward(), and the largest slope"""
    slopes = slopes_of(x, activation).abs()
    while slopes.dim() > 1:
        slopes = slopes.amax(0)
    return slopes == 0


@right("gelu")
def dead_units(x, activation):
    """column by column"""
    slopes = slopes_of(x, activation)
    return torch.tensor([not column.any() for column in slopes.unbind(-1)])


# --- feed-forward ---------------------------------------------------------------------


@wrong("feed-forward", "d_ff = d_model")
class FeedForward(Network):
    """Both matrices d × d, as source 3 draws them."""

    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__(d_model, d_model, activation)


@wrong("feed-forward", "one axis too many")
class FeedForward(Network):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__(d_model, d_ff, activation)
        self.b_1 = nn.Parameter(torch.zeros(1, d_ff))
        self.b_2 = nn.Parameter(torch.zeros(1, d_model))


@wrong("feed-forward", "one axis too many")
class FeedForward(Network):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__(d_model, d_ff, activation)
        self.b_1 = nn.Parameter(torch.zeros(d_ff, 1))


@wrong("feed-forward", "the activation is always ReLU")
class FeedForward(Network):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__(d_model, d_ff, activation)
        self.activation = torch.relu


@wrong("feed-forward", "the tanh approximation of GELU")
class FeedForward(Network):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__(d_model, d_ff, activation)
        if activation == "gelu":
            self.activation = nn.GELU(approximate="tanh")


@wrong("feed-forward", "an unknown activation is accepted")
class FeedForward(Network):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__(d_model, d_ff, "relu" if activation == "relu" else "gelu")


@wrong("feed-forward", "another activation is accepted")
class FeedForward(Network):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__(d_model, d_ff)
        if not hasattr(torch.nn.functional, activation):
            raise ValueError(activation)
        self.activation = getattr(torch.nn.functional, activation)


@wrong("feed-forward", "a part of a name is accepted")
class FeedForward(Network):
    def __init__(self, d_model, d_ff, activation="relu"):
        known = [name for name in ("relu", "gelu") if activation in name]
        if not known:
            raise ValueError(activation)
        super().__init__(d_model, d_ff, known[0])


@wrong("feed-forward", "the weights start too large")
class FeedForward(Network):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__(d_model, d_ff, activation)
        self.w_2 = nn.Parameter(torch.randn(d_ff, d_model) / math.sqrt(d_model))


@wrong("feed-forward", "the biases do not start at zero")
class FeedForward(Network):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__(d_model, d_ff, activation)
        self.b_1 = nn.Parameter(torch.randn(d_ff))


@wrong("feed-forward", "weights stored transposed")
class FeedForward(Network):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__(d_model, d_ff, activation)
        self.w_1 = nn.Parameter(self.w_1.detach().T)
        self.w_2 = nn.Parameter(self.w_2.detach().T)


@wrong("feed-forward", "PyTorch's module in place of your own")
class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__()
        self.linear_1, self.linear_2 = (
            nn.Linear(d_model, d_ff),
            nn.Linear(d_ff, d_model),
        )


@right("feed-forward")
class FeedForward(nn.Module):
    """F.linear, and the activation chosen when called"""

    def __init__(self, d_model, d_ff, activation="relu"):
        super().__init__()
        if activation not in {"relu", "gelu"}:
            raise ValueError(activation)
        self.name = activation
        self.w_1 = nn.Parameter(torch.empty(d_model, d_ff).normal_(std=d_model**-0.5))
        self.w_2 = nn.Parameter(torch.empty(d_ff, d_model).normal_(std=d_ff**-0.5))
        self.b_1 = nn.Parameter(torch.zeros(d_ff))
        self.b_2 = nn.Parameter(torch.zeros(d_model))

    def forward(self, x):
        hidden = F.linear(x, self.w_1.T, self.b_1)
        hidden = hidden.clamp(min=0) if self.name == "relu" else F.gelu(hidden)
        return F.linear(hidden, self.w_2.T, self.b_2)


# --- SwiGLU ---------------------------------------------------------------------------


class Gated(reference.SwiGLU):
    def forward(self, x):
        return self.mix(x @ self.w_gate, x @ self.w_up) @ self.w_down


@wrong("swiglu", "the sign in the exponent")
class SwiGLU(Gated):
    def mix(self, gate, up):
        return gate / (1 + torch.exp(gate)) * up


@wrong("swiglu", "not stable for large numbers")
class SwiGLU(Gated):
    def mix(self, gate, up):
        return gate * torch.exp(gate) / (1 + torch.exp(gate)) * up


@wrong("swiglu", "the projections have a bias")
class SwiGLU(Gated):
    def __init__(self, d_model, d_ff):
        super().__init__(d_model, d_ff)
        self.b_down = nn.Parameter(torch.zeros(d_model))


@right("swiglu")
class SwiGLU(Gated):
    """F.silu"""

    def mix(self, gate, up):
        return up * F.silu(gate)


@right("swiglu")
class SwiGLU(Gated):
    """the sigmoid by its formula"""

    def mix(self, gate, up):
        return gate / (1 + torch.exp(-gate)) * up


# --- the layer ------------------------------------------------------------------------


class LayerBase(nn.Module):
    def __init__(self, d_model, heads, d_ff, dropout=0.0, norm_first=False,
                 activation="relu"):  # fmt: skip
        super().__init__()
        self.attention = MultiHeadAttention(d_model, heads)
        self.feed_forward = Network(d_model, d_ff, activation)
        self.norm_1, self.norm_2 = Norm(d_model), Norm(d_model)
        self.dropout = nn.Dropout(dropout)
        self.norm_first, self.p = norm_first, dropout

    def first(self, x, mask=None):
        return self.dropout(self.attention(x, mask=mask)[0])

    def second(self, x):
        return self.dropout(self.feed_forward(x))

    def forward(self, x, mask=None):
        if self.norm_first:
            x = x + self.first(self.norm_1(x), mask)
            return x + self.second(self.norm_2(x))
        x = self.norm_1(x + self.first(x, mask))
        return self.norm_2(x + self.second(x))


@wrong("encoder-layer", "pre-norm in place of post-norm")
class EncoderLayer(LayerBase):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.norm_first = not self.norm_first


@wrong("encoder-layer", "pre-norm in place of post-norm")
class EncoderLayer(LayerBase):
    def forward(self, x, mask=None):
        x = x + self.first(self.norm_1(x), mask)
        return x + self.second(self.norm_2(x))


@wrong("encoder-layer", "residual from the normalised x")
class EncoderLayer(LayerBase):
    def forward(self, x, mask=None):
        if not self.norm_first:
            return super().forward(x, mask)
        x = self.norm_1(x)
        x = x + self.first(x, mask)
        x = self.norm_2(x)
        return x + self.second(x)


@wrong("encoder-layer", "residual from the normalised x")
class EncoderLayer(LayerBase):
    def forward(self, x, mask=None):
        if not self.norm_first:
            return super().forward(x, mask)
        x = x + self.first(self.norm_1(x), mask)
        x = self.norm_2(x)
        return x + self.second(x)


@wrong("encoder-layer", "fails as soon as there is a mask")
class EncoderLayer(LayerBase):
    def first(self, x, mask=None):
        return self.dropout(self.attention(x, mask)[0])


@wrong("encoder-layer", "only the queries are normalised")
class EncoderLayer(LayerBase):
    def forward(self, x, mask=None):
        if not self.norm_first:
            return super().forward(x, mask)
        x = x + self.dropout(self.attention(self.norm_1(x), x, mask)[0])
        return x + self.second(self.norm_2(x))


@wrong("encoder-layer", "one norm for both halves")
class EncoderLayer(LayerBase):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.norm_2 = self.norm_1


@wrong("encoder-layer", "one norm for both halves")
class EncoderLayer(LayerBase):
    def forward(self, x, mask=None):
        x = self.norm_1(x + self.first(x, mask))
        return self.norm_1(x + self.second(x))


@wrong("encoder-layer", "dropout after the addition")
class EncoderLayer(LayerBase):
    def forward(self, x, mask=None):
        drop = self.dropout
        if self.norm_first:
            x = drop(x + self.attention(self.norm_1(x), mask=mask)[0])
            return drop(x + self.feed_forward(self.norm_2(x)))
        x = self.norm_1(drop(x + self.attention(x, mask=mask)[0]))
        return self.norm_2(drop(x + self.feed_forward(x)))


@wrong("encoder-layer", "no dropout")
class EncoderLayer(LayerBase):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.dropout = nn.Identity()


@wrong("encoder-layer", "dropout active in evaluation")
class EncoderLayer(LayerBase):
    def first(self, x, mask=None):
        return F.dropout(self.attention(x, mask=mask)[0], self.p)

    def second(self, x):
        return F.dropout(self.feed_forward(x), self.p)


@wrong("encoder-layer", "the pair of attention is used whole")
class EncoderLayer(LayerBase):
    def first(self, x, mask=None):
        return self.dropout(self.attention(x, mask=mask))


@wrong("encoder-layer", "the weights are returned, too")
class EncoderLayer(LayerBase):
    def forward(self, x, mask=None):
        return super().forward(x, mask), self.attention(x, mask=mask)[1]


@wrong("encoder-layer", "activation not passed on")
class EncoderLayer(LayerBase):
    def __init__(self, d_model, heads, d_ff, dropout=0.0, norm_first=False,
                 activation="relu"):  # fmt: skip
        super().__init__(d_model, heads, d_ff, dropout, norm_first)


@wrong("encoder-layer", "heads not passed on")
class EncoderLayer(LayerBase):
    def __init__(self, d_model, heads, *args, **kwargs):
        super().__init__(d_model, 1, *args, **kwargs)


@wrong("encoder-layer", "PyTorch's module in place of your own")
class EncoderLayer(LayerBase):
    def __init__(self, d_model, *args, **kwargs):
        super().__init__(d_model, *args, **kwargs)
        self.norm_1, self.norm_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)


@wrong("encoder-layer", "d_ff = d_model")
class EncoderLayer(LayerBase):
    def __init__(self, d_model, heads, d_ff, *args, **kwargs):
        super().__init__(d_model, heads, d_model, *args, **kwargs)


@right("encoder-layer")
class EncoderLayer(LayerBase):
    """F.dropout that is told whether it is training, both orders in one line each"""

    def drop(self, x):
        return F.dropout(x, self.p, training=self.training)

    def forward(self, x, mask=None):
        pre = self.norm_first
        h = self.norm_1(x) if pre else x
        attended, _ = self.attention(h, h, mask)
        x = x + self.drop(attended)
        x = x if pre else self.norm_1(x)
        x = x + self.drop(self.feed_forward(self.norm_2(x) if pre else x))
        return x if pre else self.norm_2(x)


# --- PyTorch's weights ----------------------------------------------------------------


def translated(state):
    return reference.encoder_layer_from_torch(state)


@wrong("encoder-layer-from-torch", "a matrix is not transposed")
def encoder_layer_from_torch(state):
    result = translated(state)
    for i in (1, 2):
        result[f"feed_forward.w_{i}"] = state[f"linear{i}.weight"]
    return result


@wrong("encoder-layer-from-torch", "a matrix is not transposed")
def encoder_layer_from_torch(state):
    result = translated(state)
    return result | {"attention.w_o": state["self_attn.out_proj.weight"]}


@wrong("encoder-layer-from-torch", "attention's matrices are PyTorch's")
def encoder_layer_from_torch(state):
    result = translated(state)
    attention = {f"attention.w_{each}" for each in "qkvo"}
    return {k: v.T if k in attention else v for k, v in result.items()}


@wrong("encoder-layer-from-torch", "reshaped in place of transposed")
def encoder_layer_from_torch(state):
    result = translated(state)
    for i in (1, 2):
        weight = state[f"linear{i}.weight"]
        result[f"feed_forward.w_{i}"] = weight.reshape(weight.shape[::-1])
    return result


@wrong("encoder-layer-from-torch", "a matrix is not transposed")
def encoder_layer_from_torch(state):
    result = translated(state)
    if len(state["linear1.bias"]) == len(state["linear2.bias"]):
        result |= {f"feed_forward.w_{i}": state[f"linear{i}.weight"] for i in (1, 2)}
    return result


@wrong("encoder-layer-from-torch", "two tensors exchanged")
def encoder_layer_from_torch(state):
    result = translated(state)
    one, two = result["norm_1.gamma"], result["norm_2.gamma"]
    return result | {"norm_1.gamma": two, "norm_2.gamma": one}


@wrong("encoder-layer-from-torch", "two tensors exchanged")
def encoder_layer_from_torch(state):
    result = translated(state)
    for i in (1, 2):
        result[f"norm_{i}.gamma"] = state[f"norm{i}.bias"]
        result[f"norm_{i}.beta"] = state[f"norm{i}.weight"]
    return result


@wrong("encoder-layer-from-torch", "one tensor under two names")
def encoder_layer_from_torch(state):
    result = translated(state)
    return result | {"norm_2.gamma": result["norm_1.gamma"]}


@wrong("encoder-layer-from-torch", "biases left out")
def encoder_layer_from_torch(state):
    result = translated(state)
    return {k: v for k, v in result.items() if "feed_forward.b_" not in k}


@wrong("encoder-layer-from-torch", "the prefix self_attn. is not cut off exactly")
def encoder_layer_from_torch(state):
    inner = {k: v for k, v in state.items() if k.startswith("self_attn")}
    return {f"attention.{k}": v for k, v in attention_from_torch(inner).items()}


@wrong("encoder-layer-from-torch", "the prefix attention. is missing")
def encoder_layer_from_torch(state):
    return {k.removeprefix("attention."): v for k, v in translated(state).items()}


@wrong("encoder-layer-from-torch", "the result has other names")
def encoder_layer_from_torch(state):
    result = translated(state)
    return {k.replace("feed_forward.", "network."): v for k, v in result.items()}


@right("encoder-layer-from-torch")
def encoder_layer_from_torch(state):
    """name by name, in three chunks"""
    weights = state["self_attn.in_proj_weight"].chunk(3)
    biases = state["self_attn.in_proj_bias"].chunk(3)
    result = {}
    for name, weight, bias in zip("qkv", weights, biases, strict=True):
        result[f"attention.w_{name}"] = weight.T.contiguous()
        result[f"attention.b_{name}"] = bias.clone()
    result["attention.w_o"] = state["self_attn.out_proj.weight"].t()
    result["attention.b_o"] = state["self_attn.out_proj.bias"]
    names = {"linear": "feed_forward.w_", "norm": "norm_"}
    for i in "12":
        result[names["linear"] + i] = state[f"linear{i}.weight"].mT
        result[f"feed_forward.b_{i}"] = state[f"linear{i}.bias"]
        result[names["norm"] + i + ".gamma"] = state[f"norm{i}.weight"]
        result[names["norm"] + i + ".beta"] = state[f"norm{i}.bias"]
    return result


# --- the stack ------------------------------------------------------------------------


class EncoderBase(nn.Module):
    def __init__(self, layers, d_model, heads, d_ff, dropout=0.0, norm_first=False,
                 activation="relu"):  # fmt: skip
        super().__init__()
        given = d_model, heads, d_ff, dropout, norm_first, activation
        self.layers = nn.ModuleList(self.layer(*given) for _ in range(layers))
        self.norm = Norm(d_model) if norm_first else nn.Identity()
        self.norm_first = norm_first

    def layer(self, *given):
        return reference.EncoderLayer(*given)

    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


@wrong("encoder", "one layer, repeated")
class Encoder(EncoderBase):
    def __init__(self, layers, *args, **kwargs):
        super().__init__(layers, *args, **kwargs)
        self.layers = nn.ModuleList([self.layers[0]] * layers)


@wrong("encoder", "the layers start as copies")
class Encoder(EncoderBase):
    def __init__(self, layers, *args, **kwargs):
        super().__init__(layers, *args, **kwargs)
        first = self.layers[0]
        self.layers = nn.ModuleList(copy.deepcopy(first) for _ in range(layers))


@wrong("encoder", "the layers are in a Python list")
class Encoder(EncoderBase):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        layers = list(self.layers)
        del self.layers
        self.layers = layers


@wrong("encoder", "another number of layers")
class Encoder(EncoderBase):
    def __init__(self, layers, *args, **kwargs):
        super().__init__(layers - 1, *args, **kwargs)


@wrong("encoder", "no final norm in pre-norm")
class Encoder(EncoderBase):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.norm = nn.Identity()


@wrong("encoder", "no final norm in pre-norm")
class Encoder(EncoderBase):
    def forward(self, x, mask=None):
        for layer in self.layers:
            x = layer(x, mask)
        return x


@wrong("encoder", "final norm in post-norm")
class Encoder(EncoderBase):
    def __init__(self, layers, d_model, *args, **kwargs):
        super().__init__(layers, d_model, *args, **kwargs)
        self.norm = Norm(d_model)


@wrong("encoder", "mask only for the first layer")
class Encoder(EncoderBase):
    def forward(self, x, mask=None):
        for layer in self.layers:
            x, mask = layer(x, mask), None
        return self.norm(x)


@wrong("encoder", "norm_first not passed on")
class Encoder(EncoderBase):
    def layer(self, d_model, heads, d_ff, dropout, norm_first, activation):
        return reference.EncoderLayer(
            d_model, heads, d_ff, dropout, activation=activation
        )


@wrong("encoder", "activation not passed on")
class Encoder(EncoderBase):
    def layer(self, *given):
        return reference.EncoderLayer(*given[:-1])


@wrong("encoder", "dropout not passed on")
class Encoder(EncoderBase):
    def layer(self, d_model, heads, d_ff, dropout, norm_first, activation):
        return reference.EncoderLayer(d_model, heads, d_ff, 0.0, norm_first, activation)


@wrong("encoder", "d_ff = d_model")
class Encoder(EncoderBase):
    def layer(self, d_model, heads, d_ff, *given):
        return reference.EncoderLayer(d_model, heads, d_model, *given)


@right("encoder")
class Encoder(nn.Module):
    """appended one by one, the norm chosen when called"""

    def __init__(self, layers, d_model, heads, d_ff, dropout=0.0, norm_first=False,
                 activation="relu"):  # fmt: skip
        super().__init__()
        self.layers = nn.ModuleList()
        for _ in range(layers):
            self.layers.append(
                reference.EncoderLayer(
                    d_model, heads, d_ff, dropout, norm_first, activation
                )
            )
        self.norm = Norm(d_model) if norm_first else None

    def forward(self, x, mask=None):
        for number in range(len(self.layers)):
            x = self.layers[number](x, mask=mask)
        return x if self.norm is None else self.norm(x)


# --- masked language modelling --------------------------------------------------------


def masked(ids, chosen, kind, random_ids, mask_id):
    inputs = ids.clone()
    inputs[chosen & (kind < 0.8)] = mask_id
    replaced = chosen & (kind >= 0.8) & (kind < 0.9)
    inputs[replaced] = random_ids[replaced]
    return inputs, torch.where(chosen, ids, -100)


def choice(ids, uniform, special_ids, probability):
    special = torch.zeros_like(ids, dtype=torch.bool)
    for each in special_ids:
        special |= ids == each
    return (uniform < probability) & ~special


@wrong("mask-tokens", "the wrong side of probability is chosen")
def mask_tokens(ids, uniform, kind, random_ids, mask_id, special_ids, probability=0.15):
    chosen = choice(ids, -uniform, special_ids, -probability)
    return masked(ids, chosen, kind, random_ids, mask_id)


@wrong("mask-tokens", "changes its argument in place")
def mask_tokens(ids, uniform, kind, random_ids, mask_id, special_ids, probability=0.15):
    chosen = choice(ids, uniform, special_ids, probability)
    labels = torch.where(chosen, ids, -100)
    ids[chosen & (kind < 0.8)] = mask_id
    return ids, labels


@wrong("mask-tokens", "the caller's own ids are returned")
def mask_tokens(ids, uniform, kind, random_ids, mask_id, special_ids, probability=0.15):
    """no copy where nothing is to be hidden"""
    chosen = choice(ids, uniform, special_ids, probability)
    if not chosen.any():
        return ids, torch.full_like(ids, -100)
    return masked(ids, chosen, kind, random_ids, mask_id)


@right("mask-tokens")
def mask_tokens(ids, uniform, kind, random_ids, mask_id, special_ids, probability=0.15):
    """boolean indices on a copy"""
    chosen = choice(ids, uniform, special_ids, probability)
    return masked(ids, chosen, kind, random_ids, mask_id)


@right("mask-tokens")
def mask_tokens(ids, uniform, kind, random_ids, mask_id, special_ids, probability=0.15):
    """token by token"""
    inputs, labels = ids.clone(), torch.full_like(ids, -100)
    rows = zip(
        ids.tolist(), uniform.tolist(), kind.tolist(), random_ids.tolist(), strict=True
    )
    for b, row in enumerate(rows):
        for t, (token, u, k, other) in enumerate(zip(*row, strict=True)):
            if u < probability and token not in special_ids:
                labels[b, t] = token
                inputs[b, t] = mask_id if k < 0.8 else other if k < 0.9 else token
    return inputs, labels


# --- its loss -------------------------------------------------------------------------


def losses(logits, labels):
    scored = labels != -100
    return F.cross_entropy(logits[scored], labels[scored], reduction="none")


@wrong("masked-language-model-loss", "the mean of the sentences' means")
def masked_language_model_loss(logits, labels):
    pairs = zip(logits, labels, strict=True)
    rows = [losses(*row).mean() for row in pairs if (row[1] >= 0).any()]
    return torch.stack(rows).mean() if rows else logits.sum() * 0


@wrong("masked-language-model-loss", "the mean of the sentences' means")
def masked_language_model_loss(logits, labels):
    each = F.cross_entropy(logits.mT, labels, reduction="none")
    return (each.sum(-1) / (labels != -100).sum(-1).clamp(min=1)).mean()


@wrong("masked-language-model-loss", "label 0 is not scored")
def masked_language_model_loss(logits, labels):
    scored = labels > 0
    each = F.cross_entropy(logits[scored], labels[scored], reduction="sum")
    return each / scored.sum().clamp(min=1)


@wrong("masked-language-model-loss", "every position with every label")
def masked_language_model_loss(logits, labels):
    scored = labels != -100
    logs = torch.log_softmax(logits[scored], -1)[:, labels[scored]]
    return -logs.sum() / max(1, logs.numel())


@wrong("masked-language-model-loss", "−100 is used as an index")
def masked_language_model_loss(logits, labels):
    logs = torch.log_softmax(logits, -1)
    return -logs.gather(-1, labels.unsqueeze(-1)).mean()


@wrong("masked-language-model-loss", "NaN when nothing is scored")
def masked_language_model_loss(logits, labels):
    return F.cross_entropy(logits.transpose(1, 2), labels)


@wrong("masked-language-model-loss", "a constant when nothing is scored")
def masked_language_model_loss(logits, labels):
    if not (labels >= 0).any():
        return torch.tensor(0.0)
    return losses(logits, labels).mean()


@wrong("masked-language-model-loss", "not stable for large logits")
def masked_language_model_loss(logits, labels):
    scored = labels != -100
    own = logits[scored].softmax(-1).gather(-1, labels[scored].unsqueeze(-1))
    return -own.log().sum() / max(1, own.numel())


@wrong("masked-language-model-loss", "a number in place of a tensor")
def masked_language_model_loss(logits, labels):
    return losses(logits, labels).mean().item()


@right("masked-language-model-loss")
def masked_language_model_loss(logits, labels):
    """F.cross_entropy with a sum, divided afterwards"""
    total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    return total / (labels != -100).sum().clamp(min=1)


@right("masked-language-model-loss")
def masked_language_model_loss(logits, labels):
    """all positions, unscored ones multiplied by 0"""
    scored = labels != -100
    logs = logits - logits.logsumexp(-1, keepdim=True)
    own = logs.gather(-1, labels.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return -(own * scored).sum() / scored.sum().clamp(min=1)


# --- the classifier -------------------------------------------------------------------


class ClassifierBase(nn.Module):
    more = 1
    pre = True

    def __init__(self, vocab_size, classes, d_model, heads, layers, d_ff, max_length,
                 dropout=0.0):  # fmt: skip
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.class_token = ClassToken(d_model)
        rows = max_length + self.more
        self.position = SinusoidalPositionalEncoding(d_model, rows, dropout)
        self.encoder = reference.Encoder(
            layers, d_model, heads, d_ff, dropout, norm_first=self.pre
        )
        self.head = ClassHead(d_model, classes)

    def embed(self, ids):
        return self.position(self.class_token(self.embedding(ids)))

    def mask(self, ids, lengths):
        return mask_with_class_token(padding_mask(lengths, ids.shape[1]))

    def forward(self, ids, lengths):
        return self.head(self.encoder(self.embed(ids), self.mask(ids, lengths)))


@wrong("encoder-classifier", "padding mask not extended for the class token")
class EncoderClassifier(ClassifierBase):
    def mask(self, ids, lengths):
        return padding_mask(lengths, ids.shape[1])


@wrong("encoder-classifier", "the padding's words have a say")
class EncoderClassifier(ClassifierBase):
    def mask(self, ids, lengths):
        return mask_with_class_token((ids != 0).unsqueeze(1))


@wrong("encoder-classifier", "the mask is as wide as the longest sentence")
class EncoderClassifier(ClassifierBase):
    def mask(self, ids, lengths):
        return mask_with_class_token(padding_mask(lengths, int(lengths.max())))


@wrong("encoder-classifier", "no class token")
class EncoderClassifier(ClassifierBase):
    def forward(self, ids, lengths):
        x = self.position(self.embedding(ids))
        return self.head(self.encoder(x, padding_mask(lengths, ids.shape[1])))


@wrong("encoder-classifier", "the table of positions is one row short")
class EncoderClassifier(ClassifierBase):
    more = 0


@wrong("encoder-classifier", "post-norm in place of pre-norm")
class EncoderClassifier(ClassifierBase):
    pre = False


@wrong("encoder-classifier", "dropout not passed on")
class EncoderClassifier(ClassifierBase):
    def __init__(self, *sizes):
        super().__init__(*sizes[:7])


@wrong("encoder-classifier", "dropout not passed to the positions")
class EncoderClassifier(ClassifierBase):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.position.dropout = nn.Identity()


@wrong("encoder-classifier", "dropout not passed to the encoder")
class EncoderClassifier(ClassifierBase):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        _, _, d_model, heads, layers, d_ff, *_ = sizes
        self.encoder = reference.Encoder(layers, d_model, heads, d_ff, norm_first=True)


@wrong("encoder-classifier", "parameters are missing")
class EncoderClassifier(ClassifierBase):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        del self.class_token


@right("encoder-classifier")
class EncoderClassifier(ClassifierBase):
    """the class token counted in the lengths"""

    def mask(self, ids, lengths):
        return padding_mask(lengths + 1, ids.shape[1] + 1)


@right("encoder-classifier")
class EncoderClassifier(ClassifierBase):
    """mask by comparison, for every pair"""

    def mask(self, ids, lengths):
        width = ids.shape[1] + 1
        real = torch.arange(width) <= lengths.unsqueeze(1)
        return real.unsqueeze(1).expand(-1, width, -1)
