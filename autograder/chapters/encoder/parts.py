"""The arithmetic of an encoder layer, written from its formulas, so that it varies.

Mistakes are put together from these parts. What is right comes from PyTorch's own
layers, in ``oracles``. The chapters on the decoder and the Vision Transformer use both.
"""

from collections.abc import Callable
from typing import Any, Self

import torch
import torch.nn.functional as F

from autograder.exercise.parameters import State

Map = Callable[[torch.Tensor], torch.Tensor]  # tokens in, tokens out

ACTIVATIONS: dict[str, Map] = {"relu": torch.relu, "gelu": F.gelu}


def same(x: torch.Tensor) -> torch.Tensor:
    """Leave the tokens as they are."""
    return x


def under(prefix: str, state: State) -> State:
    """Take the part of a state dict below a prefix, without the prefix."""
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}


def network(x: torch.Tensor, p: State, activation: Map) -> torch.Tensor:
    """Run a feed-forward network with the parameters w_1, b_1, w_2, b_2."""
    hidden = activation(F.linear(x, p["w_1"].T, p["b_1"]))
    return F.linear(hidden, p["w_2"].T, p["b_2"])


def attend(
    x: torch.Tensor, p: State, heads: int, mask=None, source: torch.Tensor | None = None
) -> torch.Tensor:
    """Run multi-head attention with the parameters of chapter 5, to x or a source."""
    if mask is not None:
        mask = mask.unsqueeze(-3)
    source = x if source is None else source
    q, k, v = (
        F.linear(x if each == "q" else source, p[f"w_{each}"].T, p[f"b_{each}"])
        .unflatten(-1, (heads, -1))
        .transpose(-3, -2)
        for each in "qkv"
    )
    z = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    return F.linear(z.transpose(-3, -2).flatten(-2), p["w_o"].T, p["b_o"])


def final_norm(state: State, pre: bool) -> Map:
    """Make the norm at the end of a stack, which only pre-norm has."""
    if not pre:
        return same
    gamma, beta = state["norm.gamma"], state["norm.beta"]
    return lambda x: F.layer_norm(x, x.shape[-1:], gamma, beta)


class Parts:
    """The functions that an encoder layer is made of, with given parameters.

    Args:
        state: the layer's parameters, by name.
        heads: how many its attention has.
        activation: of its feed-forward network.
        drop: what its dropout does to what a branch has computed.
    """

    def __init__(
        self, state: State, heads: int, activation: Map, drop: Map = same
    ) -> None:
        self.heads, self.activation, self.drop = heads, activation, drop
        self.attention = under("attention.", state)
        self.feed_forward = under("feed_forward.", state)
        self.norms = [under(f"norm_{i}.", state) for i in (1, 2)]

    @classmethod
    def of(cls, layer: Any) -> "Parts":
        """Take them from a layer that was built as the course builds it."""
        state = dict(layer.named_parameters(remove_duplicate=False))
        activation = layer.feed_forward.activation
        return cls(state, layer.attention.heads, activation, layer.dropout)

    def varied(self, **changes: Any) -> Self:
        """Return the same parts with another activation, dropout or count of heads."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **changes)
        return other

    def attend(
        self, x: torch.Tensor, mask=None, heads: int | None = None
    ) -> torch.Tensor:
        """Attend."""
        return attend(x, self.attention, heads or self.heads, mask)

    def feed(self, x: torch.Tensor, activation: Map | None = None) -> torch.Tensor:
        """Feed forward."""
        return network(x, self.feed_forward, activation or self.activation)

    def norm(self, i: int, x: torch.Tensor) -> torch.Tensor:
        """Normalise by the norm 1 or 2."""
        p = self.norms[i - 1]
        return F.layer_norm(x, x.shape[-1:], p["gamma"], p["beta"])

    def maps(self, mask=None) -> tuple[Map, Map, Map, Map]:
        """Return both branches, each with its dropout, and both norms."""
        return (
            lambda x: self.drop(self.attend(x, mask)),
            lambda x: self.drop(self.feed(x)),
            lambda x: self.norm(1, x),
            lambda x: self.norm(2, x),
        )


def join(
    x: torch.Tensor, attention: Map, feed: Map, n1: Map, n2: Map, pre: bool
) -> torch.Tensor:
    """Join two branches to a layer, in pre-norm or post-norm."""
    if pre:
        x = x + attention(n1(x))
        return x + feed(n2(x))
    x = n1(x + attention(x))
    return n2(x + feed(x))


def run(x: torch.Tensor, parts: Parts, mask, pre: bool) -> torch.Tensor:
    """Run one layer."""
    return join(x, *parts.maps(mask), pre)


def stack(
    x: torch.Tensor, layers: list[Parts], norm: Map, mask, pre: bool
) -> torch.Tensor:
    """Run layers one after the other, then a norm."""
    for parts in layers:
        x = run(x, parts, mask, pre)
    return norm(x)
