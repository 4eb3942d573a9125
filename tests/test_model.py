"""The parts together equal PyTorch's own model, forward and backward."""

import pytest
import torch
from torch import nn

from transformer.attention import padding_mask
from transformer.encoder import Encoder, encoder_layer_from_torch

B, T, D, HEADS, D_FF, LAYERS = 3, 7, 24, 4, 40, 3
LENGTHS = torch.tensor([7, 4, 1])


def encoder_from_torch(theirs: nn.TransformerEncoder, norm_first: bool) -> Encoder:
    """Our encoder with PyTorch's weights."""
    ours = Encoder(LAYERS, D, HEADS, D_FF, norm_first=norm_first)
    state = {}
    for number, layer in enumerate(theirs.layers):
        converted = encoder_layer_from_torch(layer.state_dict())
        state |= {f"layers.{number}.{key}": value for key, value in converted.items()}
    if norm_first:
        state |= {"norm.gamma": theirs.norm.weight, "norm.beta": theirs.norm.bias}
    ours.load_state_dict({key: value.detach() for key, value in state.items()})
    return ours


def torch_encoder(norm_first: bool) -> nn.TransformerEncoder:
    """PyTorch's encoder with every parameter away from its first value."""
    torch.manual_seed(5)
    layer = nn.TransformerEncoderLayer(
        D, HEADS, D_FF, dropout=0.0, batch_first=True, norm_first=norm_first
    )
    norm = nn.LayerNorm(D) if norm_first else None
    theirs = nn.TransformerEncoder(layer, LAYERS, norm, enable_nested_tensor=False)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return theirs


@pytest.mark.parametrize("norm_first", [False, True], ids=["post-LN", "pre-LN"])
def test_the_encoder_equals_pytorchs(norm_first: bool) -> None:
    """Values and gradients of the input, with padding, to 1e-5."""
    theirs = torch_encoder(norm_first)
    ours = encoder_from_torch(theirs, norm_first)
    mask = padding_mask(LENGTHS, T)
    real = mask.transpose(1, 2)
    cotangent = torch.randn(B, T, D) * real
    found = []
    for run in (
        lambda x: ours(x, mask),
        lambda x: theirs(x, src_key_padding_mask=~mask[:, 0]),
    ):
        x = torch.randn(B, T, D, generator=torch.Generator().manual_seed(2))
        x.requires_grad_()
        output = run(x)
        (output * cotangent).sum().backward()
        found.append((output.detach() * real, x.grad))
    torch.testing.assert_close(found[0][0], found[1][0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found[0][1], found[1][1], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("norm_first", [False, True], ids=["post-LN", "pre-LN"])
def test_the_encoders_parameters_get_pytorchs_gradients(norm_first: bool) -> None:
    theirs = torch_encoder(norm_first)
    ours = encoder_from_torch(theirs, norm_first)
    x = torch.randn(B, T, D)
    ours(x).square().mean().backward()
    theirs(x).square().mean().backward()
    for number, layer in enumerate(theirs.layers):
        names = dict(layer.named_parameters())
        gradients = {name: parameter.grad for name, parameter in names.items()}
        for name, expected in encoder_layer_from_torch(gradients).items():
            got = ours.layers[number].get_parameter(name).grad
            torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("norm_first", [False, True], ids=["post-LN", "pre-LN"])
def test_padding_changes_no_real_token(norm_first: bool) -> None:
    ours = encoder_from_torch(torch_encoder(norm_first), norm_first)
    x = torch.randn(1, 4, D)
    padded = torch.cat([x, 1e3 * torch.randn(1, 3, D)], dim=1)
    mask = padding_mask(torch.tensor([4]), 7)
    got = ours(padded, mask)[:, :4]
    torch.testing.assert_close(got, ours(x), atol=1e-5, rtol=1e-5)
