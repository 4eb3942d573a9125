"""The moving figures of chapters 6 to 8: the stream, decoding, rollout."""

import pytest
import torch
from torch.nn import functional

from tests import browsers
from tests.figures import TOLERANCE
from tools.figure_data import residual_stream
from transformer.encoder import Encoder

pytestmark = pytest.mark.browser


def near(values, expected) -> None:
    """Compare what is shown with the reference."""
    values = torch.as_tensor(values, dtype=torch.float64)
    expected = torch.as_tensor(expected).detach().double()
    torch.testing.assert_close(values, expected, atol=TOLERANCE, rtol=0)


# --- chapter 6: the residual stream ---------------------------------------------------


def stack(depth: int, norm_first: bool, seed: int) -> tuple[torch.Tensor, ...]:
    """Compute a stack's lengths and gradients, by hooks and by autograd.grad."""
    torch.manual_seed(seed)
    encoder = Encoder(depth, 32, 4, 128, norm_first=norm_first)
    start = torch.randn(4, 7, 32)
    head, labels = torch.randn(32, 10) / 32**0.5, torch.randint(10, (28,))
    lengths = [start.square().sum(-1).sqrt().mean()]
    for layer in encoder.layers:
        layer.register_forward_hook(
            lambda *call: lengths.append(call[2].square().sum(-1).sqrt().mean())
        )
    scores = encoder(start).reshape(28, 32) @ head
    loss = functional.nll_loss(scores.log_softmax(-1), labels)
    weights = [layer.feed_forward.w_2 for layer in encoder.layers]
    gradients = [
        each.square().sum().sqrt() for each in torch.autograd.grad(loss, weights)
    ]
    return torch.stack(lengths), torch.stack(gradients)


@pytest.mark.parametrize(("depth", "layer"), [(4, 1), (8, 6), (24, 24)])
def test_stream_shows_what_the_reference_encoder_does(figure, depth, layer):
    shown = figure("residual_stream")
    shown.slide("Layers in the stack", depth)
    shown.slide("Layer to read", layer)
    numbers = shown.numbers()
    assert (numbers["depth"], numbers["layer"]) == (depth, layer)
    for kind, norm_first in (("post", False), ("pre", True)):
        runs = [stack(depth, norm_first, seed) for seed in range(residual_stream.SEEDS)]
        lengths, gradients = (
            torch.stack(each).mean(0) for each in zip(*runs, strict=True)
        )
        expected = [lengths[0], lengths[layer], gradients[layer - 1], gradients[-1]]
        names = ("start", "length", "gradient", "last")
        near([numbers[kind][name] for name in names], torch.stack(expected))


def test_stream_follows_keyboard_and_pointer(figure):
    shown = figure("residual_stream")
    slider = shown.page.get_by_label("Layer to read")
    shown.press(slider, "ArrowLeft", 3)
    assert shown.numbers()["layer"] == 9
    picture = shown.page.locator("svg").nth(1)
    box = picture.bounding_box()
    scale = box["width"] / 324
    # the middle of the second layer of twelve, from y = 318 up to 58
    at = {"x": 40 * scale, "y": (318 - 260 / 12 * 1.5) * scale}
    picture.click(position=at)
    numbers = shown.numbers()
    assert numbers["layer"] == 2 and slider.input_value() == "2"
    expected = residual_stream.data()["stacks"]["12"]["pre"]["lengths"][2]
    assert numbers["pre"]["length"] == pytest.approx(expected, abs=TOLERANCE)


def test_stream_keeps_its_layer_when_the_stack_shrinks(figure):
    shown = figure("residual_stream")
    shown.slide("Layer to read", 9)
    shown.slide("Layers in the stack", 4)
    assert shown.numbers()["layer"] == 4
    shown.slide("Layers in the stack", 20)
    assert shown.numbers()["layer"] == 20, "whoever looked at the last layer still does"


def test_stream_is_read_by_touch(figure):
    shown = figure("residual_stream", browsers.PHONE, has_touch=True)
    picture = shown.page.locator("svg").first
    scale = picture.bounding_box()["width"] / 324
    picture.tap(position={"x": 40 * scale, "y": (318 - 260 / 12 * 0.5) * scale})
    assert shown.numbers()["layer"] == 1
