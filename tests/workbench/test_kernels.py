"""What training exchanges for speed computes what was written."""

import math

import pytest
import torch
from torch import nn

from tests.workbench.test_models import (
    SOURCE,
    TARGET,
    TRANSLATOR,
    VISION,
    copy_of_the_reference,
    output_of,
)
from transformer.decoder import sequence_loss
from workbench.data.image_batches import ImageBatches, side_of
from workbench.data.images import load_images
from workbench.errors import WorkbenchError
from workbench.model import models
from workbench.model.dropout import ByteDropout, drop_by_bytes
from workbench.model.sizes import use_sizes
from workbench.model.tied_loss import ROWS, tied_loss
from workbench.training import presets
from workbench.training.agreement import divergence
from workbench.training.optimizers import orthogonal
from workbench.training.vision import growing_of

PARTS = models.load_parts()
NORM_AFTER = models.TranslatorConfig(11, 16, 4, 2, 24, 20, 0.0, norm_first=False)


# --- norms, networks, projections -----------------------------------------------------


@pytest.mark.parametrize("config", [TRANSLATOR, VISION], ids=["text", "vit"])
@pytest.mark.parametrize("kind", ["written", "fused"])
def test_a_model_computes_the_same_either_way(config, kind) -> None:
    """Outputs and the gradient of every parameter, with a sentence of padding."""
    torch.manual_seed(2)
    model = models.build(config).eval()
    with torch.no_grad():  # or biases are zero, and what they do is not seen
        for weight in model.parameters():
            weight += 0.1 * torch.randn_like(weight)
    expected = output_of(model, config)
    expected.square().mean().backward()
    gradients = [weight.grad.clone() for weight in model.parameters()]
    model.zero_grad()
    with models.use_fast(kind, model, PARTS):
        found = output_of(model, config)
    found.square().mean().backward()
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    for weight, gradient in zip(model.parameters(), gradients, strict=True):
        torch.testing.assert_close(weight.grad, gradient, atol=1e-5, rtol=1e-4)


def test_kernels_are_used_in_the_block_and_only_there() -> None:
    model = models.build(VISION)
    with models.use_fast("fused", model, PARTS):
        names = [
            name for name, each in model.named_modules() if "forward" in vars(each)
        ]
        projecting = [each for each in model.modules() if "project" in vars(each)]
        # in each of two layers two norms and a network; a last norm
        assert len(names) == 7
        assert len(projecting) == 2
    assert not any({"forward", "project"} & set(vars(m)) for m in model.modules())


def test_a_block_that_ends_by_an_error_takes_the_kernels_back() -> None:
    model = models.build(VISION)
    with pytest.raises(KeyError), models.use_fast("fused", model, PARTS):
        raise KeyError
    assert not any("forward" in vars(each) for each in model.modules())


def test_what_somebody_wrote_otherwise_stays_as_it_is(tmp_path) -> None:
    """A layer norm without the usual attribute has no kernel, and still works."""
    folder = copy_of_the_reference(tmp_path)
    path = folder / "transformer/encoder.py"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("self.epsilon", "self.small"), encoding="utf-8")
    own = models.load_parts(folder)
    torch.manual_seed(4)
    model = models.build(VISION, own).eval()
    expected = output_of(model, VISION)
    with models.use_fast("fused", model, own):
        norms = [each for each in model.modules() if hasattr(each, "gamma")]
        assert norms and not any("forward" in vars(each) for each in norms)
        torch.testing.assert_close(output_of(model, VISION), expected)


# --- dropout --------------------------------------------------------------------------


def test_dropped_bytes_are_as_many_and_keep_the_mean() -> None:
    """Within five standard deviations of what the share says."""
    torch.manual_seed(0)
    count, kept = 200_003, round(256 * 0.7) / 256
    dropped = ByteDropout(0.3)(torch.ones(count))
    values = dropped.unique()
    torch.testing.assert_close(values, torch.tensor([0.0, 1 / kept]))
    slack = 5 * math.sqrt(kept * (1 - kept) / count)
    assert abs(float((dropped > 0).float().mean()) - kept) < slack
    assert abs(float(dropped.mean()) - 1) < slack / kept


def test_neighbours_are_dropped_independently() -> None:
    torch.manual_seed(1)
    zero = (ByteDropout(0.5)(torch.ones(100_000)) == 0).float()
    for step in (1, 2, 7, 8):
        both = float((zero[step:] * zero[:-step]).mean())
        assert abs(both - 0.25) < 5 * math.sqrt(0.25 * 0.75 / 100_000), step


def test_dropout_is_off_in_evaluation_and_passes_gradients_of_what_is_kept() -> None:
    torch.manual_seed(2)
    x = torch.rand(3, 5, 7, requires_grad=True)
    layer = ByteDropout(0.4)
    y = layer(x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient * x, y)
    assert layer.eval()(x) is x
    assert ByteDropout(0.0)(x) is x
    assert not ByteDropout(1.0)(x).any()


def test_every_dropout_of_a_model_draws_bytes() -> None:
    model = models.build(models.TranslatorConfig(11, 16, 4, 1, 24, 20, dropout=0.3))
    drop_by_bytes(model)
    kinds = {type(each) for each in model.modules() if isinstance(each, nn.Dropout)}
    assert kinds == {ByteDropout}


# --- the loss -------------------------------------------------------------------------


def assert_alike(found, expected, leaves) -> None:
    """Up to bfloat16's hundredths: the value, and the gradients of all leaves."""
    torch.testing.assert_close(found, expected, rtol=0.01, atol=0.01)
    pairs = (torch.autograd.grad(loss, leaves) for loss in (found, expected))
    for ours, written in zip(*pairs, strict=True):
        assert (ours - written).norm() < 0.03 * written.norm()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("count", [1, ROWS, 2 * ROWS + 3])
def test_the_loss_of_few_logits_at_a_time_is_that_of_all(smoothing, count) -> None:
    torch.manual_seed(3)
    hidden = torch.randn(1, count, 16, requires_grad=True)
    table = torch.randn(50, 16, requires_grad=True)
    labels = torch.randint(1, 50, (1, count))
    labels[:, 1::3] = 0  # padding
    found = tied_loss(hidden, table, labels, 0, smoothing)
    expected = sequence_loss(hidden @ table.mT, labels, 0, smoothing)
    assert_alike(found, expected, (hidden, table))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("count", [1, ROWS, 2 * ROWS + 3])
def test_two_passes_are_drawn_together_a_few_logits_at_a_time(smoothing, count) -> None:
    torch.manual_seed(3)
    first = torch.randn(1, count, 16)
    hidden = torch.cat([first, first + torch.randn(first.shape) / 4]).requires_grad_()
    table = torch.randn(50, 16, requires_grad=True)
    labels = torch.randint(1, 50, (1, count))
    labels[:, 1::3] = 0  # padding
    logits = hidden @ table.mT
    apart = divergence(*logits.chunk(2), labels != 0)
    twice = torch.cat([labels, labels])
    expected = sequence_loss(logits, twice, 0, smoothing) + 5 / 2 * apart
    found = tied_loss(hidden, table, labels, 0, smoothing, agreement=5.0)
    assert_alike(found, expected, (hidden, table))


def test_without_a_real_label_the_loss_is_zero() -> None:
    hidden, table = torch.randn(2, 3, 4), torch.randn(5, 4, requires_grad=True)
    loss = tied_loss(hidden, table, torch.zeros(2, 3, dtype=torch.long), 0, 0.1)
    loss.backward()
    assert float(loss.detach()) == 0
    assert not table.grad.any()


def test_hidden_states_are_returned_in_the_block_only() -> None:
    model = models.build(NORM_AFTER).eval()
    logits = model(SOURCE, TARGET)
    with models.use_hidden(PARTS):
        hidden = model(SOURCE, TARGET)
    torch.testing.assert_close(hidden @ model.embedding.weight.mT, logits)
    torch.testing.assert_close(model(SOURCE, TARGET), logits)


# --- images that grow -----------------------------------------------------------------


def test_sides_follow_the_epochs() -> None:
    growing = ((16, 2), (24, 1))
    assert [side_of(n, growing) for n in range(5)] == [16, 16, 24, None, None]
    assert side_of(0, ()) is None


def test_batches_grow_and_show_the_same_images() -> None:
    pixels = torch.randint(0, 256, (6, 3, 8, 8), dtype=torch.uint8)
    plain = {"mean": (0.0,) * 3, "std": (1.0,) * 3, "classes": 2, "shuffle": True}
    batches = ImageBatches(
        pixels, torch.arange(6) % 2, 3, "cpu", growing=((4, 1),), **plain
    )
    whole = ImageBatches(pixels, torch.arange(6) % 2, 3, "cpu", **plain)
    for (small, labels), (images, same) in zip(
        batches.epoch(0), whole.epoch(0), strict=True
    ):
        assert small.shape == (3, 3, 4, 4)
        assert torch.equal(labels, same)
        torch.testing.assert_close(
            small.mean((2, 3)), images.mean((2, 3)), atol=0.05, rtol=0
        )
    assert {tuple(x.shape) for x, _ in batches.epoch(1)} == {(3, 3, 8, 8)}


def test_images_that_are_too_small_to_begin_smaller_are_refused() -> None:
    digits = load_images("digits", None, 0.1)
    with pytest.raises(WorkbenchError, match="8 x 8 pixels cannot begin with 16"):
        growing_of(presets.VISION["cifar10_hours"], digits)
    assert growing_of(presets.VISION["digits"], digits) == ()


@pytest.mark.parametrize("pooling", ["mean", "class"])
def test_a_smaller_image_is_read_as_a_model_of_that_size_would(pooling) -> None:
    """One built for it, with the same weights and the table that is fitted to it."""
    torch.manual_seed(5)
    shape = (4, 3, 5, 16, 2, 2, 24)
    model = models.build(models.VisionConfig(16, *shape, pooling=pooling)).eval()
    small = models.build(models.VisionConfig(8, *shape, pooling=pooling)).eval()
    special = int(pooling == "class")
    state = model.state_dict()
    name = "position.table"
    table = PARTS.vision_transformer.interpolate_positions(
        state[name], (4, 4), (2, 2), special
    )
    small.load_state_dict(state | {name: table})
    images = torch.rand(2, 3, 8, 8)
    with pytest.raises(ValueError, match="are not"):
        model(images)
    with use_sizes(model, PARTS):
        torch.testing.assert_close(model(images), small(images))
        large = torch.rand(2, 3, 16, 16)
        inside = model(large)
    torch.testing.assert_close(model(large), inside)


# --- Muon's rounds --------------------------------------------------------------------


def test_rounds_in_bfloat16_end_near_one_too() -> None:
    torch.manual_seed(6)
    matrices = torch.randn(3, 24, 40)
    found = orthogonal(matrices.bfloat16()).float()
    assert (
        0.5
        < torch.linalg.svdvals(found).min()
        < torch.linalg.svdvals(found).max()
        < 1.4
    )
    same = (found * orthogonal(matrices)).sum() / (
        found.norm() * orthogonal(matrices).norm()
    )
    assert same > 0.99
