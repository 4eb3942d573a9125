"""The parts together equal PyTorch's own model, forward and backward."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests import chapters
from transformer import decoder as reference
from transformer.attention import causal_mask, padding_mask
from transformer.decoder import (
    Decoder,
    DecoderOnly,
    Transformer,
    attend_cached,
    decoder_layer_from_torch,
    decoder_mask,
    sequence_loss,
)
from transformer.encoder import Encoder, encoder_layer_from_torch
from transformer.multi_head_attention import merge_heads
from transformer.positional_encoding import sinusoidal_positional_encoding
from transformer.vision_transformer import VisionTransformer

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")

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


SOURCE = torch.tensor([[5, 9, 3, 7, 2], [8, 4, 2, 0, 0], [6, 0, 0, 0, 0]])
TARGET = torch.tensor([[1, 4, 7, 3], [1, 6, 0, 0], [1, 9, 5, 0]])
VOCABULARY = 11


def torch_transformer(norm_first: bool) -> nn.Transformer:
    """PyTorch's whole model with every parameter away from its first value."""
    torch.manual_seed(6)
    theirs = nn.Transformer(
        D, HEADS, 2, 3, D_FF, dropout=0.0, batch_first=True, norm_first=norm_first
    )
    if not norm_first:  # PyTorch adds final norms here, the paper does not
        theirs.encoder.norm = theirs.decoder.norm = None
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return theirs


def in_our_names(theirs: nn.Transformer, value) -> dict[str, torch.Tensor]:
    """What value(parameter) gives for PyTorch's model, under our parameters' names."""
    stacks = (
        ("encoder", theirs.encoder, encoder_layer_from_torch),
        ("decoder", theirs.decoder, decoder_layer_from_torch),
    )
    found = {}
    for part, stack, translate in stacks:
        for number, layer in enumerate(stack.layers):
            inner = {name: value(each) for name, each in layer.named_parameters()}
            new = translate(inner)
            found |= {f"{part}.layers.{number}.{key}": new[key] for key in new}
        if stack.norm is not None:
            found[f"{part}.norm.gamma"] = value(stack.norm.weight)
            found[f"{part}.norm.beta"] = value(stack.norm.bias)
    return found


def transformer_from_torch(theirs: nn.Transformer, norm_first: bool) -> Transformer:
    """Our whole model with PyTorch's weights, and an embedding of its own."""
    ours = Transformer(VOCABULARY, D, HEADS, 2, D_FF, 16, norm_first=norm_first)
    sizes = (D, HEADS, D_FF, 0.0, norm_first)
    ours.decoder = Decoder(3, *sizes)  # as many layers as PyTorch's, not the encoder's
    state = in_our_names(theirs, torch.Tensor.detach)
    missing, unexpected = ours.load_state_dict(state, strict=False)
    assert (missing, unexpected) == (["embedding.weight"], [])
    return ours


def logits_of_torch(theirs: nn.Transformer, table: torch.Tensor) -> torch.Tensor:
    """PyTorch's model on SOURCE and TARGET, between our embedding and tied logits."""
    place = sinusoidal_positional_encoding(16, D)
    source, target = (
        F.embedding(ids, table) * D**0.5 + place[: ids.shape[1]]
        for ids in (SOURCE, TARGET)
    )
    hidden = theirs(
        source,
        target,
        tgt_mask=torch.ones(4, 4, dtype=torch.bool).triu(1),
        src_key_padding_mask=SOURCE == 0,
        tgt_key_padding_mask=TARGET == 0,
        memory_key_padding_mask=SOURCE == 0,
    )
    return F.linear(hidden, table)


@pytest.mark.parametrize("norm_first", [False, True], ids=["post-LN", "pre-LN"])
def test_the_transformer_equals_pytorchs(norm_first: bool) -> None:
    """Logits and the gradient of every parameter, with all masks, to 1e-5."""
    theirs = torch_transformer(norm_first)
    ours = transformer_from_torch(theirs, norm_first)
    table = ours.embedding.weight.detach().clone().requires_grad_()
    expected, got = logits_of_torch(theirs, table), ours(SOURCE, TARGET)
    real = TARGET != 0
    torch.testing.assert_close(got[real], expected[real], atol=1e-5, rtol=1e-5)
    labels = torch.randint(1, VOCABULARY, TARGET.shape) * real
    F.cross_entropy(expected[real], labels[real]).backward()
    sequence_loss(got, labels).backward()
    gradients = in_our_names(theirs, lambda parameter: parameter.grad)
    gradients["embedding.weight"] = table.grad
    assert gradients.keys() == dict(ours.named_parameters()).keys()
    for name, gradient in gradients.items():
        got = ours.get_parameter(name).grad
        torch.testing.assert_close(got, gradient, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("norm_first", [False, True], ids=["post-LN", "pre-LN"])
def test_the_decoder_equals_pytorchs(norm_first: bool) -> None:
    """Values and the gradients of target and memory, of other lengths, to 1e-5."""
    theirs = torch_transformer(norm_first)
    ours = transformer_from_torch(theirs, norm_first).decoder
    mask, memory_mask = decoder_mask(LENGTHS, T), SOURCE.bool().unsqueeze(1)
    real = padding_mask(LENGTHS, T).transpose(1, 2)
    cotangent = torch.randn(B, T, D) * real
    found = []
    for run in (
        lambda x, memory: ours(x, memory, mask, memory_mask),
        lambda x, memory: theirs.decoder(
            x,
            memory,
            tgt_mask=torch.ones(T, T, dtype=torch.bool).triu(1),
            tgt_key_padding_mask=~real[..., 0],
            memory_key_padding_mask=SOURCE == 0,
        ),
    ):
        random = torch.Generator().manual_seed(3)
        x = torch.randn(B, T, D, generator=random, requires_grad=True)
        memory = torch.randn(B, 5, D, generator=random, requires_grad=True)
        output = run(x, memory)
        (output * cotangent).sum().backward()
        found.append((output.detach() * real, x.grad, memory.grad))
    for got, expected in zip(*found, strict=True):
        torch.testing.assert_close(got, expected, atol=1e-5, rtol=1e-5)


def test_no_output_of_the_decoder_depends_on_the_future() -> None:
    """The Jacobian over later positions is exactly 0, and not by being 0 everywhere."""
    torch.manual_seed(7)
    decoder = Decoder(2, D, HEADS, D_FF)
    memory, mask = torch.randn(1, 5, D), causal_mask(T)
    jacobian = torch.autograd.functional.jacobian(
        lambda x: decoder(x, memory, mask)[0], torch.randn(1, T, D)
    )[:, :, 0]  # (T, D, T, D): output position and feature, input position and feature
    strength = jacobian.abs().amax(dim=(1, 3))
    assert (strength.triu(1) == 0).all()
    assert (strength[causal_mask(T)] > 0).all()


@pytest.fixture
def transformer() -> Transformer:
    torch.manual_seed(8)
    return Transformer(VOCABULARY, D, HEADS, 2, D_FF, 16).eval()


def test_prefix_by_prefix_is_what_the_parallel_pass_gives(transformer) -> None:
    """Teacher forcing in one call equals one call for each prefix."""
    source, target = SOURCE[:1], TARGET[:1]
    parallel = transformer(source, target)
    for length in range(1, target.shape[1] + 1):
        alone = transformer(source, target[:, :length])[:, -1]
        torch.testing.assert_close(alone, parallel[:, length - 1], atol=1e-5, rtol=1e-5)


def test_padding_changes_no_real_token_of_the_transformer(transformer) -> None:
    """Neither longer batches nor what stands at padded places of the memory."""
    alone = transformer(SOURCE[1:2, :3], TARGET[1:2, :2])
    together = transformer(SOURCE, TARGET)[1:2, :2]
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=1e-5)
    memory = transformer.encode(SOURCE)
    spoilt = torch.where((SOURCE == 0).unsqueeze(-1), 1e3, memory)
    torch.testing.assert_close(
        transformer.decode(TARGET, spoilt, SOURCE),
        transformer.decode(TARGET, memory, SOURCE),
    )


def step_with_cache(layer, x, memory, memory_mask, cache):
    """One post-norm decoder layer on new positions only, and its longer cache."""
    attention = layer.self_attention
    z, cache = attend_cached(*attention.project(x, x), cache)
    attended = merge_heads(z) @ attention.w_o + attention.b_o
    x = layer.norm_1(x + attended)
    x = layer.norm_2(x + layer.cross_attention(x, memory, memory_mask)[0])
    return layer.norm_3(x + layer.feed_forward(x)), cache


def test_cached_decoding_equals_recomputation(transformer) -> None:
    """The whole decoder, token by token with keys and values kept, all lengths."""
    source = SOURCE[:2]
    target = torch.tensor([[1, 4, 7, 3, 9, 2], [1, 6, 5, 8, 4, 3]])
    memory, memory_mask = transformer.encode(source), (source != 0).unsqueeze(1)
    embedded = transformer.position(transformer.embedding(target))
    caches, written = [None] * 2, []
    for x in embedded.split([2, 1, 1, 1, 1], dim=1):  # the first two at once
        for number, layer in enumerate(transformer.decoder.layers):
            x, caches[number] = step_with_cache(
                layer, x, memory, memory_mask, caches[number]
            )
        written.append(x)
    expected = transformer.decode(target, memory, source)
    torch.testing.assert_close(torch.cat(written, 1), expected, atol=1e-5, rtol=1e-5)


def test_the_decoder_only_model_equals_pytorchs_with_a_causal_mask() -> None:
    torch.manual_seed(9)
    ours = DecoderOnly(VOCABULARY, D, HEADS, 2, D_FF, 16).eval()
    layer = nn.TransformerEncoderLayer(
        D, HEADS, D_FF, 0.0, "gelu", batch_first=True, norm_first=True
    )
    theirs = nn.TransformerEncoder(
        layer, 2, nn.LayerNorm(D), enable_nested_tensor=False
    )
    for number, each in enumerate(theirs.layers):
        state = encoder_layer_from_torch(each.state_dict())
        ours.blocks.layers[number].load_state_dict(state)
    x = ours.position(ours.embedding(TARGET))
    causal = torch.ones(4, 4, dtype=torch.bool).triu(1)
    expected = F.linear(theirs(x, mask=causal), ours.embedding.weight)
    torch.testing.assert_close(ours(TARGET), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("pooling", ["class", "mean"])
def test_the_vision_transformer_equals_one_built_from_pytorchs_parts(pooling) -> None:
    """Patches by a strided convolution, blocks by nn.TransformerEncoder."""
    torch.manual_seed(10)
    ours = VisionTransformer((8, 12), 4, 3, 5, D, HEADS, 2, D_FF, pooling=pooling)
    with torch.no_grad():
        for parameter in ours.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    layer = nn.TransformerEncoderLayer(
        D, HEADS, D_FF, 0.0, "gelu", batch_first=True, norm_first=True
    )
    theirs = nn.TransformerEncoder(
        layer, 2, nn.LayerNorm(D), enable_nested_tensor=False
    )
    for number, each in enumerate(theirs.layers):
        state = encoder_layer_from_torch(each.state_dict())
        ours.encoder.layers[number].load_state_dict(state)
    ours.encoder.norm.load_state_dict({"gamma": torch.ones(D), "beta": torch.zeros(D)})
    kernel = ours.patches.weight.T.reshape(D, 4, 4, 3).permute(0, 3, 1, 2)
    images = torch.randn(2, 3, 8, 12)
    x = F.conv2d(images, kernel, ours.patches.bias, stride=4).flatten(2).mT  # (2, 6, D)
    if pooling == "class":
        x = torch.cat((ours.class_token.token.expand(2, 1, D), x), dim=1)
    z = theirs(x + ours.position.table)
    read = z[:, 0] if pooling == "class" else z.mean(dim=1)
    names = [name for name, _ in ours.head.named_parameters()]
    assert set(names) == {"weight", "bias"}
    expected = read @ ours.head.weight + ours.head.bias
    torch.testing.assert_close(ours(images), expected, atol=1e-5, rtol=1e-5)


def test_gpt2_s_weights_give_gpt2_s_logits() -> None:
    """By the notebook's own GPT-2, which is written with PyTorch's functions."""
    cells = [each.text for each in chapters.source("07_decoder").cells]
    names = {"torch": torch, "nn": nn, **vars(reference)}
    exec(next(text for text in cells if "def gpt2_logits" in text), names)
    gpt, ids = names["gpt"], names["ids"]
    with torch.no_grad():
        theirs = names["gpt2_logits"](names["state"], ids, 2, "none")
        assert theirs.std() > 1
        torch.testing.assert_close(gpt(ids), theirs, atol=2e-4, rtol=0)
