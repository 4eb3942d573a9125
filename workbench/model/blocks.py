"""The block that is trained: one that somebody wrote, and what else it must do.

The block itself, with its choices between 2017's parts and today's, is ``DecoderBlock``
of chapter 11's exercises. Here it learns to attend by PyTorch's one kernel, and to
remember what it has read: the same numbers, sooner.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import nn

from workbench.model.attention import attention_kernel

if TYPE_CHECKING:
    from workbench.model.models import LanguageModelConfig, Parts

# "k" and "v", (B, kv_heads, T, d_k); perhaps the room that they are the beginnings of
Cache = dict[str, torch.Tensor]
LEAST_ROOM = 32  # positions


def build_block(config: LanguageModelConfig, parts: Parts) -> nn.Module:
    """Build the block that the parts have, with what ``Trained`` adds to it."""
    block = _trained(parts.DecoderBlock)(
        config.d_model,
        config.heads,
        config.kv_heads,
        config.d_ff,
        config.norm,
        config.feed_forward,
        config.positions,
        config.qk_norm,
        config.dropout,
    )
    block.attend_cached, block.repeat = parts.attend_cached, parts.repeat_heads
    return block


@functools.cache
def _trained(written: type[nn.Module]) -> type[nn.Module]:
    """Derive a class, one for all blocks of somebody's parts."""
    return type(written.__name__, (Trained, written), {"__module__": __name__})


class Trained:
    """What training and writing add to a block that somebody wrote.

    Its parameters, ``project`` and ``finish`` are always the writer's; all of it is,
    if neither a cache nor the kernel is asked for.
    """

    attend_cached: Any  # functions of the same parts
    repeat: Any
    project: Any  # what somebody wrote
    finish: Any

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
        if cache is None and not fused:
            written: Any = super()
            return written.forward(x)
        q, k, v = self.project(x)
        if turns is not None:
            q, k = rotate(q, turns), rotate(k, turns)
        if cache is None:
            return self.finish(x, self.attend_fused(q, k, v))
        if fused and cache and x.shape[1] == 1:
            return self.finish(x, self.attend_from_newest(q, k, v, cache))
        return self.finish(x, self.attend_to_all(q, k, v, cache))

    def attend_fused(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
    ) -> torch.Tensor:
        """Attend to the positions up to one's own; (B, heads, T, d_k)."""
        if q.shape[1] > k.shape[1]:
            times = q.shape[1] // k.shape[1]
            k, v = self.repeat(k, times), self.repeat(v, times)
        return attention_kernel(q, k, v, is_causal=True)

    def attend_to_all(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cache: Cache
    ) -> torch.Tensor:
        """Attend to what is remembered and, causally, each other; (B, heads, T, d_k).

        Only the kv_heads are remembered. The queries that share one stand where the
        exercise's function has the heads, and each group where it has the batch.
        """
        rows, heads, length, d_k = q.shape
        kv_heads = k.shape[1]
        q = q.reshape(rows * kv_heads, heads // kv_heads, length, d_k)
        k, v = (each.flatten(0, 1).unsqueeze(1) for each in (k, v))
        known = {name: cache[name].flatten(0, 1).unsqueeze(1) for name in "kv" if cache}
        z, grown = self.attend_cached(q, k, v, known or None)
        cache.clear()
        cache |= {n: x.view(rows, kv_heads, -1, d_k) for n, x in grown.items()}
        return z.reshape(rows, heads, length, d_k)

    @staticmethod
    def attend_from_newest(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, cache: Cache
    ) -> torch.Tensor:
        """Attend from one position, which may see everything; (B, heads, 1, d_k).

        The queries that share a head of keys stand where the kernel has the positions.
        """
        remember(cache, k, v)
        shared = q.reshape(q.shape[0], k.shape[1], -1, q.shape[-1])
        z = F.scaled_dot_product_attention(shared, cache["k"], cache["v"])
        return z.reshape(q.shape)


def remember(cache: Cache, k: torch.Tensor, v: torch.Tensor) -> None:
    """Append the newest key and value to a cache that is not empty.

    There is room beyond what is remembered, so that nothing is copied for each token.

    Args:
        cache: changed in place.
        k: (B, kv_heads, 1, d_k).
        v: likewise.
    """
    for name, newest in (("k", k), ("v", v)):
        known = cache[name]
        held, room = known.shape[-2], cache.get(f"room for {name}")
        if room is None or held == room.shape[-2]:
            size = 2 * max(held, LEAST_ROOM)
            room = known.new_empty(*known.shape[:2], size, known.shape[-1])
            room.narrow(2, 0, held).copy_(known)
            cache[f"room for {name}"] = room
        room.narrow(2, held, 1).copy_(newest)
        cache[name] = room.narrow(2, 0, held + 1)


def make_norm(config: LanguageModelConfig, parts: Parts) -> nn.Module:
    """Build one of chapter 6's norms, as the configuration says."""
    kind = parts.RMSNorm if config.norm == "rms" else parts.LayerNorm
    return kind(config.d_model)


def turns_of(length: int, d_k: int, parts: Parts) -> torch.Tensor:
    """Return the cosine and the sine of each pair's angle, (length, d_k/2, 2).

    ``apply_rotary`` begins at position 0. What it makes of pairs (1, 0) is all that is
    needed for positions that begin later, too.
    """
    pairs = torch.tensor([1.0, 0.0]).repeat(length, d_k // 2)  # (length, d_k)
    return parts.apply_rotary(pairs).float().unflatten(-1, (-1, 2)).contiguous()


def rotate(x: torch.Tensor, turns: torch.Tensor) -> torch.Tensor:
    """Rotate the pairs of x (B, heads, T, d_k) by turns (T, d_k/2, 2)."""
    pairs = x.float().unflatten(-1, (-1, 2))  # (B, heads, T, d_k/2, 2)
    if torch.compiler.is_compiling():  # which merges these, but nothing complex
        (even, odd), (cos, sin) = pairs.unbind(-1), turns.unbind(-1)
        both = (even * cos - odd * sin, even * sin + odd * cos)
        return torch.stack(both, dim=-1).flatten(-2).type_as(x)
    turned = torch.view_as_complex(pairs) * torch.view_as_complex(turns)
    return torch.view_as_real(turned).flatten(-2).type_as(x)
