"""The block of a language model, from a configuration and the parts of the exercises.

Every choice is one line: 2017's layer norm, ReLU and one key for each query, or today's
RMS norm, SwiGLU and shared keys. What is computed is what chapters 3 to 7 ask for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import nn

if TYPE_CHECKING:
    from workbench.models import LanguageModelConfig, Parts

Cache = dict[str, torch.Tensor]  # "k" and "v", (B, kv_heads, T, d_k)


class DecoderBlock(nn.Module):
    """Causal self-attention and a feed-forward network, each after its norm.

    Submodules: attention, feed_forward, norm_1, norm_2, dropout; norm_q and norm_k.
    """

    def __init__(self, config: LanguageModelConfig, parts: Parts) -> None:
        """Choose and build the parts."""
        super().__init__()
        self.heads, self.kv_heads = config.heads, config.kv_heads
        self.attention = parts.GroupedQueryAttention(
            config.d_model, config.heads, config.kv_heads
        )
        self.norm_1 = make_norm(config, parts)
        self.norm_2 = make_norm(config, parts)
        d_k = config.d_model // config.heads
        self.norm_q = parts.RMSNorm(d_k) if config.qk_norm else nn.Identity()
        self.norm_k = parts.RMSNorm(d_k) if config.qk_norm else nn.Identity()
        self.feed_forward = make_feed_forward(config, parts)
        self.dropout = nn.Dropout(config.dropout)
        self.split, self.merge = parts.split_heads, parts.merge_heads
        self.repeat, self.attend_cached = parts.repeat_heads, parts.attend_cached
        self.written = parts.scaled_dot_product_attention
        self.causal_mask = parts.causal_mask

    def forward(
        self,
        x: torch.Tensor,
        turns: torch.Tensor | None = None,
        cache: Cache | None = None,
        fused: bool = False,
    ) -> torch.Tensor:
        """Run both halves.

        Args:
            x: (B, T, d_model).
            turns: of the positions, (T, d_k/2, 2); None: nothing is rotated.
            cache: of the positions before x, empty at the beginning; x is added to it.
            fused: let PyTorch's one kernel attend; the same numbers.

        Returns:
            (B, T, d_model).
        """
        q, k, v = self.project(self.norm_1(x), turns)
        if cache is None:
            z = self.attend(q, k, v, fused)
        else:
            z = self.attend_to_all(q, k, v, cache, fused)
        x = x + self.dropout(self.merge(z) @ self.attention.w_o)
        return x + self.dropout(self.feed_forward(self.norm_2(x)))

    def project(
        self, x: torch.Tensor, turns: torch.Tensor | None
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return queries (B, heads, T, d_k), keys and values (B, kv_heads, T, d_k)."""
        q = self.norm_q(self.split(x @ self.attention.w_q, self.heads))
        k = self.norm_k(self.split(x @ self.attention.w_k, self.kv_heads))
        v = self.split(x @ self.attention.w_v, self.kv_heads)
        if turns is not None:
            q, k = rotate(q, turns), rotate(k, turns)
        return q, k, v

    def attend(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        fused: bool,
    ) -> torch.Tensor:
        """Attend to the positions up to one's own; (B, heads, T, d_k)."""
        if self.heads > self.kv_heads:
            times = self.heads // self.kv_heads
            k, v = self.repeat(k, times), self.repeat(v, times)
        if fused:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        mask = self.causal_mask(q.shape[-2]).to(q.device)  # (T, T)
        return self.written(q, k, v, mask)[0]

    def attend_to_all(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        cache: Cache,
        fused: bool,
    ) -> torch.Tensor:
        """Attend to what is remembered and, causally, each other; (B, heads, T, d_k).

        Only the kv_heads are remembered. The queries that share one stand where the
        exercise's function has the heads, and each group where it has the batch.
        """
        rows, _, length, d_k = q.shape
        times = self.heads // self.kv_heads
        q = q.reshape(rows * self.kv_heads, times, length, d_k)
        k, v = (each.flatten(0, 1).unsqueeze(1) for each in (k, v))
        if fused and length == 1 and cache:  # the newest may attend to everything
            k = torch.cat((cache["k"], k), dim=-2)
            v = torch.cat((cache["v"], v), dim=-2)
            z, grown = F.scaled_dot_product_attention(q, k, v), {"k": k, "v": v}
        else:
            z, grown = self.attend_cached(q, k, v, cache or None)
        cache.update(grown)
        return z.reshape(rows, self.heads, length, d_k)


def make_norm(config: LanguageModelConfig, parts: Parts) -> nn.Module:
    """Build a norm of exercise 6.1 or 6.3."""
    kind = parts.RMSNorm if config.norm == "rms" else parts.LayerNorm
    return kind(config.d_model)


def make_feed_forward(config: LanguageModelConfig, parts: Parts) -> nn.Module:
    """Build a network of exercise 6.5 or 6.6."""
    if config.feed_forward == "swiglu":
        return parts.SwiGLU(config.d_model, config.d_ff)
    return parts.FeedForward(config.d_model, config.d_ff, config.feed_forward)


def turns_of(length: int, d_k: int, parts: Parts) -> torch.Tensor:
    """Return the cosine and the sine of each pair's angle, (length, d_k/2, 2).

    Exercise 3.8 rotates from position 0. What it makes of pairs (1, 0) is all that is
    needed for positions that begin later, too.
    """
    pairs = torch.tensor([1.0, 0.0]).repeat(length, d_k // 2)  # (length, d_k)
    return parts.apply_rotary(pairs).float().unflatten(-1, (-1, 2)).contiguous()


def rotate(x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """Rotate the pairs of x (B, heads, T, d_k) by turns (T, d_k/2, 2)."""
    pairs = x.float().unflatten(-1, (-1, 2))  # (B, heads, T, d_k/2, 2)
    if torch.compiler.is_compiling():  # which merges these, but nothing complex
        (even, odd), (cos, sin) = pairs.unbind(-1), turns.unbind(-1)
        turned = (even * cos - odd * sin, even * sin + odd * cos)
        return torch.stack(turned, dim=-1).flatten(-2).type_as(x)
    turned = torch.view_as_complex(pairs) * torch.view_as_complex(turns)
    return torch.view_as_real(turned).flatten(-2).type_as(x)
