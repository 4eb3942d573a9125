"""Wrong and right answers to chapter 11: attention for all choices, and the block."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from mistakes import right, wrong
from transformer import language_model as reference
from transformer.attention import causal_mask, scaled_dot_product_attention
from transformer.encoder import FeedForward, LayerNorm, RMSNorm, SwiGLU
from transformer.multi_head_attention import (
    GroupedQueryAttention,
    merge_heads,
    repeat_heads,
    split_heads,
)
from transformer.positional_encoding import apply_rotary

# --- attention ------------------------------------------------------------------------


@wrong("causal-attention", "the weights are returned, too")
def causal_attention(q, k, v, rotary=False):
    """the pair of attention"""
    if rotary:
        q, k = apply_rotary(q), apply_rotary(k)
    k, v = (repeat_heads(each, q.shape[1] // each.shape[1]) for each in (k, v))
    return scaled_dot_product_attention(q, k, v, causal_mask(q.shape[2]))


@wrong("causal-attention", "keys and values are not repeated")
def causal_attention(q, k, v, rotary=False):
    if rotary:
        q, k = map(apply_rotary, (q, k))
    return scaled_dot_product_attention(q, k, v, causal_mask(q.shape[-2]))[0]


@wrong("causal-attention", "kv heads dealt out in turn")
def causal_attention(q, k, v, rotary=False):
    """with expand, the groups outside"""
    if rotary:
        q, k = apply_rotary(q), apply_rotary(k)
    groups = q.unflatten(1, (-1, k.shape[1]))  # (B, g, kv_heads, T, d_k)
    mask = causal_mask(q.shape[-2])
    z, _ = scaled_dot_product_attention(groups, k[:, None], v[:, None], mask)
    return z.flatten(1, 2)


@wrong("causal-attention", "rotated by the number of the head")
def causal_attention(q, k, v, rotary=False):
    """rotated while the tokens stand in front"""
    if rotary:
        q, k = (apply_rotary(each.mT.permute(0, 3, 1, 2)).transpose(1, 2)
                for each in (q, k))  # fmt: skip
    times = q.shape[1] // k.shape[1]
    k, v = repeat_heads(k, times), repeat_heads(v, times)
    return scaled_dot_product_attention(q, k, v, causal_mask(q.shape[-2]))[0]


@wrong("causal-attention", "upper triangle")
def causal_attention(q, k, v, rotary=False):
    """its own softmax"""
    if rotary:
        q, k = apply_rotary(q), apply_rotary(k)
    times = q.shape[1] // k.shape[1]
    k, v = repeat_heads(k, times), repeat_heads(v, times)
    scores = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(q.shape[-1])
    past = torch.ones_like(scores).tril(-1).bool()
    return scores.masked_fill(past, -math.inf).softmax(-1) @ v


@right("causal-attention")
def causal_attention(q, k, v, rotary=False):
    """group by group, without copies"""
    if rotary:
        q, k = apply_rotary(q), apply_rotary(k)
    groups = q.unflatten(1, (k.shape[1], -1))  # (B, kv_heads, g, T, d_k)
    scores = torch.einsum("bngid,bnjd->bngij", groups, k) / q.shape[-1] ** 0.5
    future = torch.ones(q.shape[-2], q.shape[-2]).triu(1).bool()
    weights = scores.masked_fill(future, -math.inf).softmax(dim=-1)
    return torch.einsum("bngij,bnjd->bngid", weights, v).flatten(1, 2)


@right("causal-attention")
def causal_attention(q, k, v, rotary=False):
    """head after head"""
    turn = apply_rotary if rotary else nn.Identity()
    share = q.shape[1] // k.shape[1]
    z = [
        scaled_dot_product_attention(
            turn(q[:, head]),
            turn(k[:, head // share]),
            v[:, head // share],
            causal_mask(q.shape[2]),
        )[0]
        for head in range(q.shape[1])
    ]
    return torch.stack(z, dim=1)


# --- the block: its parts -------------------------------------------------------------


class _Block(reference.DecoderBlock):
    """A block of which some parts are exchanged after it was built."""

    def __init__(self, d_model, heads, kv_heads, d_ff, *choices, **named):
        super().__init__(d_model, heads, kv_heads, d_ff, *choices, **named)
        names = ("norm", "feed_forward", "positions", "qk_norm", "dropout")
        usual = ("rms", "swiglu", "rotary", True, 0.0)
        chosen = dict(zip(names, usual, strict=True))
        chosen |= dict(zip(names, choices, strict=False)) | named
        self.exchange(d_model, heads, d_ff, chosen)


@wrong("block-from-configuration", "keys and values as wide as the queries")
class DecoderBlock(_Block):
    def exchange(self, d, heads, d_ff, chosen):
        self.attention = GroupedQueryAttention(d, heads, heads)
        self.kv_heads = heads


@wrong("block-from-configuration", "layer norm in place of RMS norm")
class DecoderBlock(_Block):
    def exchange(self, d, heads, d_ff, chosen):
        self.norm_1, self.norm_2 = LayerNorm(d), LayerNorm(d)


@wrong("block-from-configuration", "RMS norm in place of layer norm")
class DecoderBlock(_Block):
    def exchange(self, d, heads, d_ff, chosen):
        self.norm_1, self.norm_2 = RMSNorm(d), RMSNorm(d)


@wrong("block-from-configuration", "no norms for queries and keys")
class DecoderBlock(_Block):
    def exchange(self, d, heads, d_ff, chosen):
        self.norm_q = self.norm_k = nn.Identity()


@wrong("block-from-configuration", "norms for queries and keys in every block")
class DecoderBlock(_Block):
    def exchange(self, d, heads, d_ff, chosen):
        self.norm_q, self.norm_k = RMSNorm(d // heads), RMSNorm(d // heads)


@wrong("block-from-configuration", "layer norm for queries and keys")
class DecoderBlock(_Block):
    def exchange(self, d, heads, d_ff, chosen):
        if chosen["qk_norm"] and chosen["norm"] == "layer":
            self.norm_q, self.norm_k = LayerNorm(d // heads), LayerNorm(d // heads)


@wrong("block-from-configuration", "norms of queries and keys as wide as the model")
class DecoderBlock(_Block):
    def exchange(self, d, heads, d_ff, chosen):
        if chosen["qk_norm"]:
            self.norm_q, self.norm_k = RMSNorm(d), RMSNorm(d)


@wrong("block-from-configuration", "one norm for queries and keys")
class DecoderBlock(_Block):
    """the very same module"""

    def exchange(self, d, heads, d_ff, chosen):
        self.norm_k = self.norm_q


@wrong("block-from-configuration", "one norm for both halves")
class DecoderBlock(_Block):
    """the very same module"""

    def exchange(self, d, heads, d_ff, chosen):
        self.norm_2 = self.norm_1


@wrong("block-from-configuration", "the other feed-forward network")
class DecoderBlock(_Block):
    def exchange(self, d, heads, d_ff, chosen):
        self.feed_forward = SwiGLU(d, d_ff)


@wrong("block-from-configuration", "d_model and d_ff exchanged")
class DecoderBlock(_Block):
    def exchange(self, d, heads, d_ff, chosen):
        if chosen["feed_forward"] == "swiglu":
            self.feed_forward = SwiGLU(d_ff, d)


@wrong("block-from-configuration", "layer norm for queries and keys")
class DecoderBlock(_Block):
    """of one of the two"""

    def exchange(self, d, heads, d_ff, chosen):
        if chosen["qk_norm"]:
            self.norm_q = LayerNorm(d // heads)


@wrong("block-from-configuration", "PyTorch's module in place of your own")
class DecoderBlock(_Block):
    def exchange(self, d, heads, d_ff, chosen):
        if chosen["norm"] == "layer":
            self.norm_1, self.norm_2 = nn.LayerNorm(d), nn.LayerNorm(d)


# --- the block: its halves ------------------------------------------------------------


@wrong("block-from-configuration", "post-norm in place of pre-norm")
class DecoderBlock(reference.DecoderBlock):
    """as in 2017"""

    def project(self, x):
        q, k = x @ self.attention.w_q, x @ self.attention.w_k
        q, k = split_heads(q, self.heads), split_heads(k, self.kv_heads)
        v = split_heads(x @ self.attention.w_v, self.kv_heads)
        return self.norm_q(q), self.norm_k(k), v

    def finish(self, x, z):
        x = self.norm_1(x + self.dropout(merge_heads(z) @ self.attention.w_o))
        return self.norm_2(x + self.dropout(self.feed_forward(x)))


@wrong("block-from-configuration", "dropout active in evaluation")
class DecoderBlock(reference.DecoderBlock):
    def finish(self, x, z):
        x = x + F.dropout(merge_heads(z) @ self.attention.w_o, self.dropout.p)
        return x + F.dropout(self.feed_forward(self.norm_2(x)), self.dropout.p)


@wrong("block-from-configuration", "residual from the normalised x")
class DecoderBlock(reference.DecoderBlock):
    """x is overwritten"""

    def finish(self, x, z):
        x = self.norm_1(x)
        x = x + self.dropout(merge_heads(z) @ self.attention.w_o)
        return x + self.dropout(self.feed_forward(self.norm_2(x)))


@wrong("block-from-configuration", "rotated twice")
class DecoderBlock(reference.DecoderBlock):
    """in project, too"""

    def project(self, x):
        q, k, v = super().project(x)
        return (apply_rotary(q), apply_rotary(k), v) if self.rotary else (q, k, v)


@wrong(
    "block-from-configuration",
    "keys and values split into as many heads as the queries",
)
class DecoderBlock(reference.DecoderBlock):
    def project(self, x):
        x, p = self.norm_1(x), self.attention
        q, k, v = (split_heads(x @ w, self.heads) for w in (p.w_q, p.w_k, p.w_v))
        return self.norm_q(q), self.norm_k(k), v


@wrong("block-from-configuration", "normalised before the heads are split")
class DecoderBlock(reference.DecoderBlock):
    def project(self, x):
        x, p = self.norm_1(x), self.attention
        q = split_heads(self.norm_q(x @ p.w_q), self.heads)
        k = split_heads(self.norm_k(x @ p.w_k), self.kv_heads)
        return q, k, split_heads(x @ p.w_v, self.kv_heads)


@wrong("block-from-configuration", "the weights are returned, too")
class DecoderBlock(reference.DecoderBlock):
    def finish(self, x, z):
        return super().finish(x, z), z


@wrong("block-from-configuration", "no gradient comes back")
class DecoderBlock(reference.DecoderBlock):
    """the first half does not learn"""

    def finish(self, x, z):
        return super().finish(x, z.detach())


@right("block-from-configuration")
class DecoderBlock(nn.Module):
    """one product for all three, and no module where nothing is done"""

    def __init__(
        self,
        d_model,
        heads,
        kv_heads,
        d_ff,
        norm="rms",
        feed_forward="swiglu",
        positions="rotary",
        qk_norm=True,
        dropout=0.0,
    ):
        super().__init__()
        self.heads, self.kv_heads = heads, kv_heads
        self.rotary = positions == "rotary"
        norms = {"layer": LayerNorm, "rms": RMSNorm}
        networks = {
            "relu": lambda: FeedForward(d_model, d_ff),
            "gelu": lambda: FeedForward(d_model, d_ff, "gelu"),
            "swiglu": lambda: SwiGLU(d_model, d_ff),
        }
        self.dropout = nn.Dropout(dropout)
        self.attention = GroupedQueryAttention(d_model, heads, kv_heads)
        self.feed_forward = networks[feed_forward]()
        for name in ("norm_1", "norm_2"):
            setattr(self, name, norms[norm](d_model))
        self.qk_norm = qk_norm
        if qk_norm:
            self.norm_q, self.norm_k = (RMSNorm(d_model // heads) for _ in "qk")

    def project(self, x):
        p, d_k = self.attention, x.shape[-1] // self.heads
        joined = self.norm_1(x) @ torch.cat((p.w_q, p.w_k, p.w_v), dim=1)
        heads = joined.unflatten(-1, (-1, d_k)).transpose(1, 2)
        counts = (self.heads, self.kv_heads, self.kv_heads)
        q, k, v = heads.split(counts, dim=1)
        return (self.norm_q(q), self.norm_k(k), v) if self.qk_norm else (q, k, v)

    def finish(self, x, z):
        rows = self.attention.w_o.unflatten(0, (self.heads, -1))
        x = x + self.dropout(torch.einsum("bhtd,hdm->btm", z, rows))
        return self.dropout(self.feed_forward(self.norm_2(x))) + x

    def forward(self, x):
        q, k, v = self.project(x)
        return self.finish(x, reference.causal_attention(q, k, v, self.rotary))


@right("block-from-configuration")
class DecoderBlock(reference.DecoderBlock):
    """F.dropout that is told when, and one matrix after the other"""

    def project(self, x):
        x, found = self.norm_1(x), []
        for name, count in (("q", self.heads), ("k", self.kv_heads)):
            part = split_heads(x @ getattr(self.attention, f"w_{name}"), count)
            found.append(getattr(self, f"norm_{name}")(part))
        return *found, split_heads(x @ self.attention.w_v, self.kv_heads)

    def finish(self, x, z):
        drop = {"p": self.dropout.p, "training": self.training}
        x = x + F.dropout(z.transpose(1, 2).flatten(2) @ self.attention.w_o, **drop)
        return x + F.dropout(self.feed_forward(self.norm_2(x)), **drop)


# --- the block: its methods, where forward is right -----------------------------------


class _Apart(reference.DecoderBlock):
    """A block whose forward is right, whatever its two methods do."""

    def forward(self, x):
        q, k, v = reference.DecoderBlock.project(self, x)
        z = reference.causal_attention(q, k, v, self.rotary)
        return reference.DecoderBlock.finish(self, x, z)


@wrong("block-from-configuration", "no norm in the first half")
class DecoderBlock(_Apart):
    """project wants what is normalised already"""

    def project(self, x):
        p = self.attention
        q = self.norm_q(split_heads(x @ p.w_q, self.heads))
        k = self.norm_k(split_heads(x @ p.w_k, self.kv_heads))
        return q, k, split_heads(x @ p.w_v, self.kv_heads)


@wrong("block-from-configuration", "rotated twice")
class DecoderBlock(_Apart):
    """forward does not rotate what project has rotated"""

    def project(self, x):
        q, k, v = super().project(x)
        return (apply_rotary(q), apply_rotary(k), v) if self.rotary else (q, k, v)


@wrong("block-from-configuration", "keys and values exchanged")
class DecoderBlock(reference.DecoderBlock):
    """and exchanged once more"""

    def project(self, x):
        q, k, v = super().project(x)
        return q, v, k

    def forward(self, x):
        q, v, k = self.project(x)
        return self.finish(x, reference.causal_attention(q, k, v, self.rotary))


@wrong("block-from-configuration", "no residual around attention")
class DecoderBlock(_Apart):
    def finish(self, x, z):
        x = self.dropout(merge_heads(z) @ self.attention.w_o)
        return x + self.dropout(self.feed_forward(self.norm_2(x)))


@wrong("block-from-configuration", "no feed-forward half")
class DecoderBlock(_Apart):
    """the network is left to forward"""

    def finish(self, x, z):
        return x + self.dropout(merge_heads(z) @ self.attention.w_o)


@wrong("block-from-configuration", "forward does without a method that is asked for")
class DecoderBlock(_Apart):
    """everything in one"""

    finish = project = None


@right("block-from-configuration")
class DecoderBlock(_Apart):
    """forward by itself, and both methods besides"""
