"""What is right in chapter 7: PyTorch's own layers with the course's parameters.

Nothing here asks a student's object: what an answer is compared with must not be one
that was handed in.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from autograder.chapters.encoder.classifier import sinusoids
from autograder.chapters.encoder.oracles import (
    encoder_shapes,
    layer_shapes,
    stack_to_torch,
    to_torch,
    torch_encoder,
    torch_stack,
)
from autograder.chapters.encoder.parts import State, under

# --- the parameters -------------------------------------------------------------------


def decoder_layer_shapes(d: int, d_ff: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a layer's parameters, by name."""
    encoder = layer_shapes(d, d_ff)
    attention = under("attention.", encoder)
    shapes = {f"self_attention.{name}": shape for name, shape in attention.items()}
    shapes |= {f"cross_attention.{name}": shape for name, shape in attention.items()}
    shapes |= {k: v for k, v in encoder.items() if not k.startswith("attention.")}
    return shapes | {"norm_3.gamma": (d,), "norm_3.beta": (d,)}


def decoder_shapes(n: int, d: int, d_ff: int, pre: bool) -> dict:
    """Return the shapes of a stack's parameters, by name."""
    layer = decoder_layer_shapes(d, d_ff)
    shapes = {f"layers.{i}.{k}": v for i in range(n) for k, v in layer.items()}
    return shapes | ({"norm.gamma": (d,), "norm.beta": (d,)} if pre else {})


def transformer_shapes(vocabulary, n, d, d_ff, pre) -> dict:
    """Return the shapes of the whole model's parameters, by name."""
    shapes = {"embedding.weight": (vocabulary, d)}
    inner = encoder_shapes(n, d, d_ff, pre)
    outer = decoder_shapes(n, d, d_ff, pre)
    shapes |= {f"encoder.{name}": shape for name, shape in inner.items()}
    return shapes | {f"decoder.{name}": shape for name, shape in outer.items()}


# --- the models -----------------------------------------------------------------------


def layer_to_torch(state: State) -> State:
    """Rename the parameters of one layer to those of nn.TransformerDecoderLayer."""
    rest = {k: v for k, v in state.items() if "attention" not in k}
    result = to_torch(rest | _own("self_attention.", state))
    cross = to_torch(rest | _own("cross_attention.", state))
    for name, value in under("self_attn.", cross).items():
        result[f"multihead_attn.{name}"] = value
    result["norm3.weight"] = state["norm_3.gamma"]
    result["norm3.bias"] = state["norm_3.beta"]
    return result


def _own(prefix: str, state: State) -> State:
    return {f"attention.{name}": x for name, x in under(prefix, state).items()}


def torch_layer(d, heads, d_ff, pre, activation) -> nn.TransformerDecoderLayer:
    """Build PyTorch's layer, in training, where it takes no shortcuts."""
    return nn.TransformerDecoderLayer(
        d, heads, d_ff, 0.0, activation, batch_first=True, norm_first=pre
    )


def _torch_decoder_stack(
    n: int, d, heads, d_ff, pre, activation
) -> nn.TransformerDecoder:
    """Build PyTorch's stack, with parameters of its own."""
    layer = torch_layer(d, heads, d_ff, pre, activation)
    return nn.TransformerDecoder(layer, n, nn.LayerNorm(d) if pre else None)


def torch_decoder(state: State, n: int, d, heads, d_ff, pre, activation) -> nn.Module:
    """Build PyTorch's stack with the same parameters."""
    right = _torch_decoder_stack(n, d, heads, d_ff, pre, activation)
    right.load_state_dict(stack_to_torch(state, n, pre, layer_to_torch))
    return right


def torch_transformer(n, d, heads, d_ff, pre, activation, pad) -> Callable:
    """Build nn.Transformer.

    Returns:
        A function of the parameters, source ids (B, S) and target ids (B, T) that gives
        the logits (B, T, V), and can be differentiated by the parameters.
    """
    right = nn.Transformer(
        d,
        heads,
        custom_encoder=torch_stack(n, d, heads, d_ff, pre, activation),
        custom_decoder=_torch_decoder_stack(n, d, heads, d_ff, pre, activation),
        batch_first=True,
    )

    def run(state: State, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        table, length = state["embedding.weight"], target.shape[1]
        x, y = (_placed(table, ids) for ids in (source, target))
        masks = {
            "tgt_mask": torch.ones(length, length).triu(1).bool(),
            "src_key_padding_mask": source == pad,
            "tgt_key_padding_mask": target == pad,
            "memory_key_padding_mask": source == pad,
        }
        theirs = _transformer_to_torch(state, n, pre)
        hidden = torch.func.functional_call(right, theirs, (x, y), masks)
        return F.linear(hidden, table)

    return run


def torch_encode(state: State, source, n, d, heads, d_ff, pre, activation, pad):
    """Let nn.TransformerEncoder read source ids (B, S): the memory (B, S, d)."""
    own = under("encoder.", state)
    right = torch_encoder(own, n, d, heads, d_ff, pre, activation)
    x = _placed(state["embedding.weight"], source)
    with torch.no_grad():
        return right(x, src_key_padding_mask=source == pad)


def torch_decode(
    state: State, target, memory, source, n, d, heads, d_ff, pre, activation, pad
) -> torch.Tensor:
    """Let nn.TransformerDecoder read target ids (B, T): the hidden states (B, T, d)."""
    own, length = under("decoder.", state), target.shape[1]
    right = torch_decoder(own, n, d, heads, d_ff, pre, activation)
    x = _placed(state["embedding.weight"], target)
    masks = {
        "tgt_mask": torch.ones(length, length).triu(1).bool(),
        "tgt_key_padding_mask": target == pad,
        "memory_key_padding_mask": source == pad,
    }
    with torch.no_grad():
        return right(x, memory, **masks)


def _placed(table: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Embed ids (B, T), and add their positions: (B, T, d)."""
    d = table.shape[1]
    return math.sqrt(d) * F.embedding(ids, table) + sinusoids(ids.shape[1], d)


def _transformer_to_torch(state: State, n: int, pre: bool) -> State:
    """Rename the parameters of encoder and decoder to those of nn.Transformer."""
    theirs = {}
    for part, rename in (("encoder", to_torch), ("decoder", layer_to_torch)):
        own = stack_to_torch(under(f"{part}.", state), n, pre, rename)
        theirs |= {f"{part}.{name}": value for name, value in own.items()}
    return theirs
