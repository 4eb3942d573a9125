"""One more token on a CPU, from weights that are put side by side: the same logits.

As the parts are written, a token passes some forty operations a block, each of which
takes longer to begin than to do. What can be worked out before the first token is: the
norms' gammas and the scale of the scores are multiplied into the weights, and what has
the same input is one product. A norm is then one number. And NumPy begins an operation
in half of PyTorch's time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from workbench.model.blocks import Cache
from workbench.model.kernels import is_whole

if TYPE_CHECKING:
    from workbench.model.language_model import LanguageModel
    from workbench.model.models import Parts

Array = np.ndarray  # of float32


@dataclass(frozen=True)
class Packed:
    """A block's weights, and where it remembers keys and values.

    Args:
        qkv: w_q, w_k, w_v, (d_model + 2·kv_heads·d_k, d_model), with the first gamma.
        gains: of queries and keys divided by their lengths, (heads + kv_heads, d_k),
            with the scale of the scores; None: they are not normalised.
        least_square: d_k·ε of their norms; x / √(|x|²/d_k + ε) is √d_k times
            x / √(|x|² + d_k·ε).
        out: w_o, (d_model, d_model).
        gate_up: both, (2·d_ff, d_model), with the second gamma.
        down: (d_model, d_ff).
        epsilons: of the first and the second norm.
        keys: (kv_heads, d_k, max_length).
        values: (kv_heads, max_length, d_k).
    """

    qkv: Array
    gains: Array | None
    least_square: float
    out: Array
    gate_up: Array
    down: Array
    epsilons: tuple[float, float]
    keys: Array
    values: Array


class NextToken:
    """Reads one token at a time, after a text that the model itself has read."""

    def __init__(self, model: LanguageModel) -> None:
        """Pack the weights as they are now; the model ``can_be_packed``."""
        self.model, self.held = model, 0
        turns = model.turns  # cos and sin in the last axis
        self.turns = None if turns is None else array_of(torch.view_as_complex(turns))
        self.layers = [packed(block, model.max_length) for block in model.blocks]
        norm: Any = model.norm
        self.gamma = array_of(norm.gamma)
        every = torch.arange(len(model.embedding.weight))
        self.embedded = array_of(model.embedding(every))  # (V, d)

    def begin(self, caches: Sequence[Cache]) -> None:
        """Take over what the model has read, from its caches of one text."""
        self.held = caches[0]["k"].shape[-2]
        for layer, cache in zip(self.layers, caches, strict=True):
            layer.keys[:, :, : self.held] = array_of(cache["k"][0].mT)
            layer.values[:, : self.held] = array_of(cache["v"][0])

    @torch.inference_mode()
    def read(self, token: int) -> torch.Tensor:
        """Read one token; return the logits (V,) of the next."""
        model: Any = self.model
        place, x = self.held, self.embedded[token]  # (d,)
        if model.position is not None:  # it begins at 0
            padded = F.pad(torch.from_numpy(x)[None, None], (0, 0, place, 0))
            x = array_of(model.position(padded)[0, place])
        turn = None if self.turns is None else self.turns[place]
        self.held = place + 1
        with np.errstate(over="ignore"):  # e^800 is infinity, and 1 over it 0, as meant
            for layer in self.layers:
                x = step(layer, x, turn, self.held)
        hidden = torch.from_numpy(normalised(x, model.norm.epsilon) * self.gamma)
        logits: torch.Tensor = model.tied_logits(hidden[None], model.embedding.weight)
        return logits[0]


def step(layer: Packed, x: Array, turn: Array | None, held: int) -> Array:
    """Pass a block, and remember.

    Args:
        layer: the block.
        x: (d_model,).
        turn: of this position, complex, (d_k/2,); None: nothing is rotated.
        held: T, positions that are remembered with this one.

    Returns:
        (d_model,).
    """
    first, second = layer.epsilons
    kv_heads, d_k, _ = layer.keys.shape
    qkv = layer.qkv.dot(normalised(x, first)).reshape(-1, d_k)
    qk = qkv[:-kv_heads]  # (heads + kv_heads, d_k)
    if layer.gains is not None:
        squares = (qk * qk).sum(-1, keepdims=True) + layer.least_square
        qk = qk / np.sqrt(squares) * layer.gains
    if turn is not None:
        qk = (qk.view(np.complex64) * turn).view(np.float32)
    layer.keys[:, :, held - 1] = qk[-kv_heads:]
    layer.values[:, held - 1] = qkv[-kv_heads:]
    # queries that share a head of keys stand beside each other
    q = qk[:-kv_heads].reshape(kv_heads, -1, d_k)
    scores = q @ layer.keys[:, :, :held]  # (kv_heads, shared, T)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    z = weights @ layer.values[:, :held]
    x = x + layer.out.dot(z.reshape(-1))
    gate, up = layer.gate_up.dot(normalised(x, second)).reshape(2, -1)
    return x + layer.down.dot(gate / (1 + np.exp(-gate)) * up)


def normalised(x: Array, epsilon: float) -> Array:
    """Return the RMS norm of a token (d,) before its gamma."""
    return x * (1 / math.sqrt(float(x.dot(x)) / len(x) + epsilon))


def array_of(tensor: torch.Tensor) -> Array:
    """Return a tensor as an array with the same numbers."""
    return tensor.detach().numpy()


# --- packing --------------------------------------------------------------------------


def can_be_packed(model: LanguageModel, parts: Parts) -> bool:
    """Tell whether a model is on a CPU, and its blocks are today's: RMS norm, SwiGLU.

    Args:
        model: made of these parts.
        parts: RMSNorm, SwiGLU, GroupedQueryAttention and the block are meant; a model
            with other attributes than their exercises ask for is not packed.
    """
    weight = model.embedding.weight
    on_cpu = weight.device.type == "cpu" and weight.dtype == torch.float32
    last = is_whole(model.norm, vars(parts.encoder).get("RMSNorm"), "gamma", "epsilon")
    return on_cpu and last and all(is_todays(each, parts) for each in model.blocks)


def is_todays(block: Any, parts: Parts) -> bool:
    """Tell whether all of a block can be packed."""
    encoder, attention = vars(parts.encoder), vars(parts.multi_head_attention)
    rms_norm, inner = encoder.get("RMSNorm"), (block.norm_q, block.norm_k)
    outer = (block.norm_1, block.norm_2)
    normed = [is_whole(each, rms_norm, "gamma", "epsilon") for each in (*outer, *inner)]
    plain = all(isinstance(each, nn.Identity) for each in inner)
    alike = all(normed[2:]) and inner[0].epsilon == inner[1].epsilon
    grouped = attention.get("GroupedQueryAttention")
    return (
        all(normed[:2])
        and (plain or alike)
        and is_whole(block.attention, grouped, "w_q", "w_k", "w_v", "w_o")
        and is_whole(
            block.feed_forward, encoder.get("SwiGLU"), "w_gate", "w_up", "w_down"
        )
    )


@torch.no_grad()
def packed(block: Any, max_length: int) -> Packed:
    """Put a block's weights side by side, and make room for keys and values."""
    attention, network = block.attention, block.feed_forward
    d_k = len(attention.w_q) // block.heads
    scale, normed = d_k**-0.5, not isinstance(block.norm_q, nn.Identity)
    gains, w_q = None, attention.w_q
    if normed:
        of_queries = (block.norm_q.gamma * scale).expand(block.heads, -1)
        of_keys = block.norm_k.gamma.expand(block.kv_heads, -1)
        gains = array_of(d_k**0.5 * torch.cat([of_queries, of_keys]))
    else:
        w_q = w_q * scale
    qkv = torch.cat([w_q, attention.w_k, attention.w_v], dim=1)
    gate_up = torch.cat([network.w_gate, network.w_up], dim=1)

    def rows(matrix: torch.Tensor) -> Array:
        return array_of(matrix.mT.contiguous())

    return Packed(
        rows(block.norm_1.gamma.unsqueeze(1) * qkv),
        gains,
        d_k * block.norm_q.epsilon if normed else 0.0,
        rows(attention.w_o),
        rows(block.norm_2.gamma.unsqueeze(1) * gate_up),
        rows(network.w_down),
        (block.norm_1.epsilon, block.norm_2.epsilon),
        np.zeros((block.kv_heads, d_k, max_length), np.float32),
        np.zeros((block.kv_heads, max_length, d_k), np.float32),
    )
