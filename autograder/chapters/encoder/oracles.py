"""PyTorch's layers with the parameters of the course's, which say what is right."""

from collections.abc import Callable, Iterator

import torch
from torch import nn

from autograder.chapters.encoder.parts import State, under
from autograder.exercise.inputs import draw_sizes, normal
from autograder.exercise.parameters import Shapes

DEEP = 3e-5  # tolerance of what has gone through several matrices in float32


def layer_sizes(generator: torch.Generator) -> tuple[int, int, int, int, int]:
    """Draw b, t, heads, d and d_ff."""
    b, t, heads = draw_sizes(generator, 3)
    heads = 2 + heads % 2
    return b, t + 1, heads, 6 * heads, 6 * heads + 5


def layer_shapes(d: int, d_ff: int) -> Shapes:
    """Say which parameters an encoder layer has."""
    shapes: Shapes = {}
    for each in "qkvo":
        shapes[f"attention.w_{each}"], shapes[f"attention.b_{each}"] = (d, d), (d,)
    shapes |= {"feed_forward.w_1": (d, d_ff), "feed_forward.b_1": (d_ff,)}
    shapes |= {"feed_forward.w_2": (d_ff, d), "feed_forward.b_2": (d,)}
    for i in (1, 2):
        shapes |= {f"norm_{i}.gamma": (d,), f"norm_{i}.beta": (d,)}
    return shapes


def encoder_shapes(n: int, d: int, d_ff: int, pre: bool) -> Shapes:
    """Say which parameters a stack of n layers has."""
    layer = layer_shapes(d, d_ff)
    shapes = {f"layers.{i}.{k}": v for i in range(n) for k, v in layer.items()}
    return shapes | ({"norm.gamma": (d,), "norm.beta": (d,)} if pre else {})


def draw_state(generator: torch.Generator, shapes: Shapes) -> State:
    """Draw parameters: matrices with a spread of 1/√rows, gammas around 1."""
    state = {}
    for name, shape in shapes.items():
        value = normal(generator, *shape)
        matrix = len(shape) == 2
        value = value / shape[0] ** 0.5 if matrix else 0.5 * value
        state[name] = value + 1 if name.endswith("gamma") else value
    return state


def draw_masks(generator: torch.Generator, b: int, t: int) -> list[torch.Tensor]:
    """Draw a causal mask, a padding mask, and one for every pair."""
    causal = torch.ones(t, t).tril().bool()
    lengths = torch.randint(1, t, (b,), generator=generator)
    padding = (torch.arange(t) < lengths.unsqueeze(1)).unsqueeze(1)
    pairs = (torch.rand(b, t, t, generator=generator) < 0.5) | torch.eye(t).bool()
    return [causal, padding, pairs]


def to_torch(state: State) -> State:
    """Rename the parameters of one layer to those of nn.TransformerEncoderLayer."""
    weights = [state[f"attention.w_{each}"].T for each in "qkv"]
    result = {
        "self_attn.in_proj_weight": torch.cat(weights),
        "self_attn.in_proj_bias": torch.cat([state[f"attention.b_{e}"] for e in "qkv"]),
        "self_attn.out_proj.weight": state["attention.w_o"].T,
        "self_attn.out_proj.bias": state["attention.b_o"],
    }
    for i in (1, 2):
        result[f"linear{i}.weight"] = state[f"feed_forward.w_{i}"].T
        result[f"linear{i}.bias"] = state[f"feed_forward.b_{i}"]
        result[f"norm{i}.weight"] = state[f"norm_{i}.gamma"]
        result[f"norm{i}.bias"] = state[f"norm_{i}.beta"]
    return result


def torch_mask(mask: torch.Tensor | None, x: torch.Tensor, heads: int):
    """Turn a mask of the course into PyTorch's: True hides, one for each head."""
    if mask is None or mask.dim() == 2:
        return None if mask is None else ~mask
    length = x.shape[-2]
    return (~mask).expand(len(mask), length, length).repeat_interleave(heads, 0)


def torch_layer(d, heads, d_ff, pre, activation) -> nn.TransformerEncoderLayer:
    """Build PyTorch's layer, in training, where it takes no shortcuts."""
    return nn.TransformerEncoderLayer(
        d, heads, d_ff, 0.0, activation, batch_first=True, norm_first=pre
    )


def torch_stack(n: int, d, heads, d_ff, pre, activation) -> nn.TransformerEncoder:
    """Build PyTorch's stack, with parameters of its own."""
    layer = torch_layer(d, heads, d_ff, pre, activation)
    norm = nn.LayerNorm(d) if pre else None
    return nn.TransformerEncoder(layer, n, norm, enable_nested_tensor=False)


def stack_to_torch(
    state: State, n: int, pre: bool, rename: Callable[[State], State]
) -> State:
    """Rename the parameters of a stack to PyTorch's; ``rename`` does it for a layer."""
    theirs = {}
    for i in range(n):
        own = rename(under(f"layers.{i}.", state))
        theirs |= {f"layers.{i}.{name}": value for name, value in own.items()}
    if pre:
        theirs |= {"norm.weight": state["norm.gamma"], "norm.bias": state["norm.beta"]}
    return theirs


def torch_encoder(state: State, n: int, d, heads, d_ff, pre, activation) -> nn.Module:
    """Build PyTorch's stack with the same parameters."""
    right = torch_stack(n, d, heads, d_ff, pre, activation)
    right.load_state_dict(stack_to_torch(state, n, pre, to_torch))
    return right


def network_keeps_width(shapes: Shapes) -> Callable[..., Iterator[tuple]]:
    """Make what ``expect_parameters`` is told of a network that does not expand."""

    def own(state: State, missing: list, extra: list) -> Iterator[tuple]:
        first = next(name for name in shapes if name.endswith("w_1"))
        narrow = first in state and set(state[first].shape) == {shapes[first][0]}
        why = (
            "The network expands to d_ff and contracts again: w_1 (d_model, d_ff), "
            "w_2 (d_ff, d_model)."
        )
        yield narrow and not missing and not extra, "d_ff = d_model", why

    return own
