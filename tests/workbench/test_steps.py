"""How steps are taken: one graph for model and loss, and the same weights each way."""

import contextlib
import functools

import pytest
import torch

from tests.workbench.test_training import CPU, Toy, make_model, same, train
from workbench.data.augmentation import Augmentation
from workbench.data.batches import FEW_LENGTHS, PairBatches
from workbench.errors import WorkbenchError
from workbench.model import models
from workbench.training import loop
from workbench.training.loop import TrainingConfig
from workbench.training.steps import Steps, count_rows, share_of
from workbench.training.translator import translation_loss
from workbench.training.vision import image_loss

TRANSLATOR = models.TranslatorConfig(
    vocab_size=50, d_model=16, heads=2, layers=2, d_ff=32, dropout=0.1
)
VISION = models.VisionConfig(
    image_size=8, patch_size=4, channels=3, classes=5, d_model=16, heads=2, layers=2,
    d_ff=32, pooling="mean",
)  # fmt: skip


def translator_case():
    parts = models.load_parts()
    batch = tuple(torch.randint(4, 50, (3, 7)) for _ in range(3))
    return models.build(TRANSLATOR), translation_loss(parts, 0.1), batch


def vision_case():
    batch = torch.randn(3, 3, 8, 8), torch.rand(3, 5).softmax(-1)
    return models.build(VISION), image_loss(0.1), batch


class One:
    """An epoch of one batch."""

    def __init__(self, batch):
        self.batch = batch

    def __len__(self):
        return 1

    def epoch(self, number):
        yield self.batch


@contextlib.contextmanager
def steps_on_a_gpu(case, attention, monkeypatch):
    """Prepared steps, as far as a CPU has them, and what they are taken of.

    What the steps compile must be one graph; nothing is generated from it.
    """
    torch._dynamo.reset()
    whole = functools.partial(torch.compile, backend="eager", fullgraph=True)
    monkeypatch.setattr(torch, "compile", whole)
    model, loss_of, batch = case()
    parts = models.load_parts()
    config = TrainingConfig(compile=True, precision="bfloat16", attention=attention)
    with models.use_fast(attention, model, parts), models.use_masks(CPU):
        run = loop.start(model, config, 1, CPU)
        steps = Steps(run, loss_of, share_of(count_rows), config, CPU)
        steps.place = True  # where new tensors may have to be made on the device
        steps.prepare(One(batch))
        yield steps, batch


@pytest.mark.parametrize("case", [translator_case, vision_case])
@pytest.mark.parametrize("attention", ["written", "fused"])
def test_model_and_loss_of_a_step_are_one_graph(case, attention, monkeypatch):
    with steps_on_a_gpu(case, attention, monkeypatch) as (steps, batch):
        model = steps.model.eval()
        with torch.autocast("cpu", torch.bfloat16):
            expected = steps.written(model, batch)
        found = steps.take(batch, 0.1)
        assert steps.loss_of is not steps.written
        torch.testing.assert_close(found, expected.detach())


@pytest.mark.parametrize("case", [translator_case, vision_case])
def test_a_block_of_a_device_would_be_no_graph(case, monkeypatch):
    """What the test above is for: it would see the block if it came back."""
    with steps_on_a_gpu(case, "written", monkeypatch) as (steps, batch):
        assert not steps.place
        steps.place = True
        torch._dynamo.reset()
        with pytest.raises(torch._dynamo.exc.Unsupported):
            steps.take(batch, 0.1)


def test_the_augmentation_is_one_graph():
    torch._dynamo.reset()
    how = Augmentation(
        pad=2, flip=0.5, rotate=5, brightness=0.2, operations=2, erase=0.25
    )
    images = torch.randint(0, 256, (4, 3, 8, 8), dtype=torch.uint8)
    numbers = how.draw(4, torch.Generator().manual_seed(0))
    mean = torch.tensor([0.4, 0.5, 0.6])
    apply = torch.compile(how.apply, backend="eager", fullgraph=True)
    found, expected = (each(images, numbers, mean) for each in (apply, how.apply))
    torch.testing.assert_close(found, expected)


def test_a_second_model_of_the_same_shape_compiles_nothing():
    torch._dynamo.reset()
    _, loss_of, batch = translator_case()
    graphs = []

    def count(graph, inputs):
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(loss_of, backend=count, dynamic=False)
    with models.use_masks(CPU):
        for _ in range(3):
            compiled(models.build(TRANSLATOR).train(), batch)
    assert len(graphs) == 1


@pytest.mark.parametrize("average", ["none", "ema"])
def test_captured_steps_end_in_the_same_weights(tmp_path, average):
    options = {"average": average, "weight_decay": 0.1, "schedule": "cosine"}
    eager, _ = train(tmp_path / "eager", model=make_model(0.0), **options)
    options["capture"] = True
    captured, history = train(tmp_path / "own", model=make_model(0.0), **options)
    for one, two in zip(eager.parameters(), captured.parameters(), strict=True):
        torch.testing.assert_close(one, two)
    assert history["compile_seconds"][0] > 0


def test_a_captured_run_that_fell_goes_on(tmp_path):
    from tests.workbench.test_training import Killed, fall, square_loss

    calls = []

    def falls(model, batch):
        calls.append(1)
        if len(calls) == 12:
            fall()
        return square_loss(model, batch)

    options = {"capture": True, "checkpoint_every": 3}
    whole, _ = train(tmp_path / "whole", model=make_model(0.0), **options)
    with contextlib.suppress(Killed):
        train(tmp_path / "cut", falls, make_model(0.0), **options)
    assert len(calls) == 12
    model, _ = train(tmp_path / "cut", model=make_model(0.0), resume=True, **options)
    assert same(whole, model)


def test_no_checkpoint_and_no_validation_where_not_wanted(tmp_path):
    seen = []
    train(
        tmp_path,
        validate=lambda model: seen.append(1) or {"x": 1.0},
        checkpoint_every=0,
        validate_every=0,
    )
    assert len(seen) == 1
    assert list(tmp_path.iterdir()) == []


def test_validation_several_times_an_epoch(tmp_path):
    counts = {}
    for often in (1, 0.5, 0.25):
        seen = []
        train(
            tmp_path / str(often),
            validate=lambda model, seen=seen: seen.append(1) or {"x": 1.0},
            checkpoint_every=0,
            validate_every=often,
        )
        counts[often] = len(seen)
    # of 20 steps, five an epoch: every fifth, third, second, and the last
    assert counts == {1: 4, 0.5: 7, 0.25: 10}


@pytest.mark.parametrize("key", ["checkpoint_every", "validate_every"])
def test_less_than_never_is_refused(key):
    with pytest.raises(WorkbenchError, match=f"{key} must be at least 0, not -1"):
        TrainingConfig(**{key: -1})


def test_few_shapes_are_those_of_any_data():
    generator = torch.Generator().manual_seed(0)

    def shapes(count):
        lengths = torch.randint(3, 60, (2, count), generator=generator).tolist()
        sides = [[[5] * length for length in side] for side in lengths]
        batches = PairBatches(*sides, 256, CPU, lengths=FEW_LENGTHS, even=False)
        seen = {batch[0].shape for batch in batches.epoch(0)}
        words = sum(int((labels != 0).sum()) for *_, labels in batches.epoch(1))
        assert words == sum(length + 1 for length in lengths[1])  # nobody is left out
        return seen

    assert shapes(400) == shapes(700)
    assert {tuple(each) for each in shapes(400)} <= {(256 // n, n) for n in FEW_LENGTHS}


def test_toy_batches_have_two_shapes():
    """What the captured run above plays: two graphs, not one."""
    assert len({batch[0].shape for batch in Toy().epoch(0)}) == 2
