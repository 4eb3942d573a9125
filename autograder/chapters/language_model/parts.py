"""The arithmetic of a block of a language model, taken apart so that it varies."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from autograder.chapters.language_model.grouped import Map, attend, same
from autograder.chapters.multi_head_attention.heads import cut, join
from autograder.exercise.parameters import State

Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
ACTIVATIONS: dict[str, Map] = {"relu": F.relu, "gelu": F.gelu, "swiglu": F.silu}


@dataclass(frozen=True)
class Parts:
    """The functions that a block is made of, with given parameters, so that it varies.

    Args:
        state: the block's parameters, by name.
        heads: of queries.
        kv_heads: of keys and values.
        rotary: whether queries and keys are rotated.
        activation: of the feed-forward network.
        drop: what dropout does to what a branch has computed.
        attention: of queries, keys, values and ``rotary``.
    """

    state: State
    heads: int
    kv_heads: int
    rotary: bool
    activation: Map
    drop: Map = same
    attention: Callable = attend

    @classmethod
    def of(cls, block: Any) -> "Parts":
        """Take them from a block that was built as the course builds it."""
        state = dict(block.named_parameters())
        activation = getattr(block.feed_forward, "activation", F.silu)
        given = block.heads, block.kv_heads, block.rotary
        return cls(state, *given, activation, block.dropout)

    def norm(self, name: str, x: torch.Tensor) -> torch.Tensor:
        """Normalise by the norm of this name; by none if it has no parameters."""
        gamma, beta = (self.state.get(f"{name}.{each}") for each in ("gamma", "beta"))
        if gamma is None:
            return x
        centred = x if beta is None else x - x.mean(-1, keepdim=True)
        x = centred * (centred.square().mean(-1, keepdim=True) + 1e-5).rsqrt()
        return gamma * x + (0 if beta is None else beta)

    def split(self, x: torch.Tensor) -> Three:
        """Project the tokens, and cut them into heads."""
        counts = {"q": self.heads, "k": self.kv_heads, "v": self.kv_heads}
        q, k, v = (
            cut(x @ self.state[f"attention.w_{name}"], count)
            for name, count in counts.items()
        )
        return q, k, v

    def project(self, x: torch.Tensor) -> Three:
        """Make queries, keys and values."""
        q, k, v = self.split(x)
        return self.norm("norm_q", q), self.norm("norm_k", k), v

    def mix(self, q, k, v, merge: Map = join) -> torch.Tensor:
        """Attend, and put the heads together."""
        return merge(self.attention(q, k, v, self.rotary)) @ self.state["attention.w_o"]

    def feed(self, x: torch.Tensor) -> torch.Tensor:
        """Feed forward."""
        p = {k.partition(".")[2]: v for k, v in self.state.items() if "forward" in k}
        if "w_gate" in p:
            return (self.activation(x @ p["w_gate"]) * (x @ p["w_up"])) @ p["w_down"]
        return self.activation(x @ p["w_1"] + p["b_1"]) @ p["w_2"] + p["b_2"]

    def maps(self, mix: Callable | None = None) -> tuple[Map, Map, Map, Map]:
        """Return both branches, each with its dropout, and both norms."""
        mix = mix or (lambda x: self.mix(*self.project(x)))
        return (
            lambda x: self.drop(mix(x)),
            lambda x: self.drop(self.feed(x)),
            lambda x: self.norm("norm_1", x),
            lambda x: self.norm("norm_2", x),
        )


class Torchs(Parts):
    """The same by PyTorch's own norms and attention, which say what is right."""

    def norm(self, name: str, x: torch.Tensor) -> torch.Tensor:
        """Normalise by F.rms_norm or F.layer_norm."""
        gamma, beta = (self.state.get(f"{name}.{each}") for each in ("gamma", "beta"))
        if gamma is None:
            return x
        if beta is None:
            return F.rms_norm(x, gamma.shape, gamma, 1e-5)
        return F.layer_norm(x, gamma.shape, gamma, beta, 1e-5)
