"""Modules that keep more than is asked for, and in another order.

Masks and positions are buffers, made at once or when first needed, saved or not. As in
GPT-2's code, where each block saves a triangle, in nanoGPT and in BERT's.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from transformer.attention import scaled_dot_product_attention
from transformer.decoder import Decoder
from transformer.embeddings import Embedding
from transformer.encoder import Encoder, FeedForward
from transformer.positional_encoding import (
    sinusoidal_positional_encoding,
)


@dataclass(frozen=True)
class Sizes:
    width: int
    classes: int = 2
    epsilon: float = 1e-5


class ClassToken(nn.Module):
    def __init__(self, d_model: int, count: int = 1) -> None:
        super().__init__()
        self.register_buffer("one", torch.ones(1, dtype=torch.bool))
        self.token = nn.Parameter(
            nn.init.trunc_normal_(torch.empty(count, d_model), std=0.02)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.token.unsqueeze(0).expand(x.size(0), -1, -1)
        return torch.cat([first, x], 1)


class Linear(nn.Module):
    """A base class with more methods than are needed."""

    def __init__(self, d_model: int, classes: int) -> None:
        super().__init__()
        self.sizes = Sizes(d_model, classes)
        self.bias = nn.Parameter(torch.zeros(classes))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))
        self.weight = nn.Parameter(torch.empty(d_model, classes))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        with torch.no_grad():
            self.weight.normal_().div_(self.sizes.width**0.5)

    def extra_repr(self) -> str:
        return f"{self.sizes}"

    def read(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return F.linear(x, self.weight.t(), self.bias)


class ClassHead(Linear):
    def forward(self, hidden):
        return self.read(hidden.select(1, 0))


class TaskHeads(nn.Module):
    def __init__(self, d_model, classes):
        super().__init__()
        self.register_buffer("sizes", torch.tensor(classes), persistent=True)
        self.heads = nn.ModuleList(ClassHead(d_model, count) for count in classes)

    def forward(self, hidden):
        rows = hidden.unbind(1)
        return tuple(
            head(row[:, None]) for head, row in zip(self.heads, rows, strict=False)
        )


class AttentionPooling(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.all_real = None
        self.query = nn.Parameter(0.02 * torch.randn(d_model))

    def forward(self, hidden, mask=None):
        scores = hidden.mv(self.query) if hidden.dim() == 2 else hidden @ self.query
        scores = scores * self.query.numel() ** -0.5
        if mask is None:
            self.all_real = torch.ones_like(scores).bool()
        real = self.all_real if mask is None else mask.view(scores.shape)
        weights = scores.masked_fill(~real, -1e30).softmax(-1) * real
        return [torch.bmm(weights.unsqueeze(1), hidden).squeeze(1), weights]


class SinusoidalPositionalEncoding(nn.Module):
    """Two buffers, neither saved; the numbers of the rows beside the rows."""

    def __init__(self, d_model, max_length=5000, dropout=0.0):
        super().__init__()
        self.drop = nn.Dropout(p=dropout)
        rows = sinusoidal_positional_encoding(max_length, d_model)
        self.register_buffer("pe", rows[None], persistent=False)
        self.register_buffer("ids", torch.arange(max_length), persistent=False)

    def forward(self, x):
        if x.shape[-2] > self.pe.shape[1]:
            raise ValueError(f"{x.shape[-2]} positions")
        return self.drop(x + self.pe[0].index_select(0, self.ids[: x.shape[-2]]))


class LearnedPositionalEncoding(nn.Module):
    """BERT saves its position ids, too."""

    def __init__(self, max_length, d_model, dropout=0.0):
        super().__init__()
        self.register_buffer("position_ids", torch.arange(max_length).view(1, -1))
        self.table = nn.Parameter(torch.zeros(max_length, d_model).normal_(std=0.02))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        length = x.size(-2)
        if length > self.position_ids.size(1):
            raise ValueError("the sequence is too long")
        return self.dropout(x + F.embedding(self.position_ids[0, :length], self.table))


class Attention(nn.Module):
    """A triangle is saved that is never used; matrices in another order."""

    def __init__(self, d_model, d_k, d_v):
        super().__init__()
        self.register_buffer("bias", torch.tril(torch.ones(64, 64)).view(1, 1, 64, 64))
        self.register_buffer("scale", torch.tensor(float(d_k) ** -0.5))
        for name, width in (("w_v", d_v), ("w_k", d_k), ("w_q", d_k)):
            value = torch.normal(0.0, d_model**-0.5, (d_model, width))
            self.register_parameter(name, nn.Parameter(value))

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        return scaled_dot_product_attention(
            x_q @ self.w_q, x_kv @ self.w_k, x_kv @ self.w_v, mask
        )


class MultiHeadAttention(nn.Module):
    """The triangle is built when it is first needed, and then kept."""

    def __init__(self, d_model, heads):
        super().__init__()
        if d_model % heads:
            raise ValueError("n_embd % n_head")
        self.heads = heads
        self.register_buffer("masked_bias", torch.tensor(-1e4))
        self.register_buffer("last_mask", None)
        for name in "ovkq":
            setattr(self, f"b_{name}", nn.Parameter(torch.zeros(d_model)))
            scaled = torch.randn(d_model, d_model).mul_(d_model**-0.5)
            setattr(self, f"w_{name}", nn.Parameter(scaled))

    def project(self, x_q, x_kv):
        def cut(x, name):
            x = torch.matmul(x, getattr(self, f"w_{name}")) + getattr(self, f"b_{name}")
            return x.reshape(*x.shape[:-1], self.heads, -1).swapaxes(-2, -3)

        return [cut(x_q, "q"), cut(x_kv, "k"), cut(x_kv, "v")]

    def attend(self, q, k, v, mask=None):
        if mask is not None:
            self.last_mask = mask.unsqueeze(-3)
        allowed = None if mask is None else self.last_mask
        z, weights = scaled_dot_product_attention(q, k, v, allowed)
        z = z.swapaxes(-2, -3).flatten(-2)
        return [z @ self.w_o + self.b_o, weights]

    def forward(self, x_q, x_kv=None, mask=None):
        x_kv = x_q if x_kv is None else x_kv
        return self.attend(*self.project(x_q, x_kv), mask)


class LayerNorm(nn.Module):
    """The offset first, and running numbers that nobody reads."""

    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.sizes = Sizes(d_model, epsilon=epsilon)
        self.register_buffer("num_batches_tracked", torch.tensor(0))
        self.beta = nn.Parameter(torch.zeros(d_model))
        self.gamma = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        self.num_batches_tracked.add_(1)
        centred = x - x.mean(-1, keepdim=True)
        square = torch.einsum("...d,...d->...", centred, centred) / self.sizes.width
        spread = torch.rsqrt(square.unsqueeze(-1) + self.sizes.epsilon)
        return torch.addcmul(self.beta, centred * spread, self.gamma)


class RMSNorm(nn.Module):
    def __init__(self, d_model, epsilon=1e-5):
        super().__init__()
        self.register_buffer("eps", torch.tensor(epsilon))
        self.gamma = nn.ParameterList([torch.ones(d_model)])[0]

    def forward(self, x):
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return self.gamma * x * (length**2 / x.shape[-1] + self.eps).rsqrt()


class SwiGLU(nn.Module):
    def __init__(self, d_model, d_ff):
        super().__init__()
        self.w_down = nn.Parameter(torch.randn(d_ff, d_model) / d_ff**0.5)
        self.w_up = nn.Parameter(torch.randn(d_model, d_ff) / d_model**0.5)
        self.w_gate = nn.Parameter(torch.randn(d_model, d_ff) / d_model**0.5)

    def forward(self, x):
        both = F.linear(x, torch.cat([self.w_gate, self.w_up], 1).t())
        gate, up = both.chunk(2, dim=-1)
        return F.linear(
            gate.div(1 + torch.exp(-gate.clamp(min=-80))) * up, self.w_down.t()
        )


class EncoderLayer(nn.Module):
    """Parts registered from the last to the first, and a mask of the largest width."""

    def __init__(
        self, d_model, heads, d_ff, dropout=0.0, norm_first=False, activation="relu"
    ):
        super().__init__()
        self.norm_first = norm_first
        self.register_buffer("mask", torch.ones(32, 32, dtype=torch.bool).tril())
        self.dropout = nn.Dropout(dropout)
        self.norm_2, self.norm_1 = LayerNorm(d_model), LayerNorm(d_model)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.attention = MultiHeadAttention(d_model, heads)

    def forward(self, x, mask=None):
        def around(x, norm, part):
            if self.norm_first:
                return x + self.dropout(part(norm(x)))
            return norm(x + self.dropout(part(x)))

        x = around(x, self.norm_1, lambda x: self.attention(x, mask=mask)[0])
        return around(x, self.norm_2, self.feed_forward)


class DecoderOnly(nn.Module):
    """As in GPT-2: the triangle is saved with the model."""

    def __init__(
        self, vocab_size, d_model, heads, layers, d_ff, max_length, dropout=0.0
    ):
        super().__init__()
        triangle = torch.ones(max_length, max_length, dtype=torch.bool).tril_()
        self.register_buffer("tril", triangle)
        self.blocks = Encoder(layers, d_model, heads, d_ff, dropout, True, "gelu")
        self.position = LearnedPositionalEncoding(max_length, d_model, dropout)
        self.embedding = Embedding(vocab_size, d_model)

    def forward(self, ids):
        length = ids.size(1)
        hidden = self.blocks(
            self.position(self.embedding(ids)), self.tril[:length, :length]
        )
        return hidden @ self.embedding.weight.t()


class Transformer(nn.Module):
    """Masks of the future from a buffer; a cache of nothing beside the parameters."""

    def __init__(
        self,
        vocab_size,
        d_model,
        heads,
        layers,
        d_ff,
        max_length,
        dropout=0.0,
        norm_first=False,
        activation="relu",
        pad_id=0,
    ):
        super().__init__()
        self.pad_id = pad_id
        sizes = (layers, d_model, heads, d_ff, dropout, norm_first, activation)
        self.register_buffer("past", torch.ones(max_length, max_length).tril().bool())
        self.register_buffer("sorted_lengths", torch.zeros(3, 4))
        self.decoder, self.encoder = Decoder(*sizes), Encoder(*sizes)
        self.position = SinusoidalPositionalEncoding(d_model, max_length, dropout)
        self.embedding = Embedding(vocab_size, d_model)

    def real(self, ids):
        return ids.ne(self.pad_id).unsqueeze(1)

    def encode(self, source):
        return self.encoder(self.position(self.embedding(source)), self.real(source))

    def decode(self, target, memory, source):
        length = target.shape[1]
        mask = self.real(target) & self.past[:length, :length]
        x = self.position(self.embedding(target))
        return self.decoder(x, memory, mask, self.real(source))

    def forward(self, source, target):
        hidden = self.decode(target, self.encode(source), source)
        return torch.einsum("btd,vd->btv", hidden, self.embedding.weight)
