import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from workbench.errors import WorkbenchError
from workbench.training import checkpoint, devices, loop
from workbench.training.loop import TrainingConfig, fit, rate_at

CPU = torch.device("cpu")
ROOT = Path(__file__).resolve().parents[2]


class Toy:
    """Nine examples of a line with noise, in batches of two; another order an epoch."""

    def __init__(self, examples=9, size=2):
        generator = torch.Generator().manual_seed(1)
        self.x = torch.randn(examples, 3, generator=generator)
        self.y = self.x @ torch.tensor([[1.0], [-2.0], [0.5]])
        self.size = size

    def __len__(self):
        return -(-len(self.x) // self.size)

    def epoch(self, number):
        generator = torch.Generator().manual_seed(number)
        for rows in torch.randperm(len(self.x), generator=generator).split(self.size):
            yield self.x[rows], self.y[rows]


def make_model(dropout=0.2):
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Linear(3, 4), nn.Tanh(), nn.Dropout(dropout), nn.Linear(4, 1)
    )


def square_loss(model, batch):
    x, y = batch
    return (model(x) - y).square().mean()


def train(out, loss_of=square_loss, model=None, batches=None, validate=None, **options):
    resume = options.pop("resume", False)
    model = model or make_model()
    batches = Toy() if batches is None else batches
    options = {"epochs": 4, "checkpoint_every": 3, "read_every": 4, **options}
    config = TrainingConfig(**options)
    history = fit(model, loss_of, batches, validate, config, out, CPU, False, resume)
    return model, history


def same(one, other):
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def without_times(history):
    return {name: v for name, v in history.items() if "seconds" not in name}


def stop_at(step, stop):
    """A loss that ends the run in the middle of a step, by calling stop."""
    calls = []

    def loss_of(model, batch):
        calls.append(1)
        if len(calls) == step:
            stop()
        return square_loss(model, batch)

    return loss_of


class Killed(Exception):
    pass


def fall():
    raise Killed


# --- Schedules -----------------------------------------------------------------------


def test_every_schedule_warms_up_to_its_peak():
    for schedule in ("inverse-sqrt", "cosine", "one-cycle"):
        config = TrainingConfig(schedule=schedule, peak_rate=0.5, warmup=10)
        rates = [rate_at(step, 100, config) for step in range(1, 101)]
        assert rates[:10] == pytest.approx([0.05 * n for n in range(1, 11)])
        assert max(rates) == rates[9] == 0.5
        assert sorted(rates[9:], reverse=True) == rates[9:]
        assert rates[-1] > 0


def test_the_schedules_fall_as_they_say():
    def rate(schedule, step):
        config = TrainingConfig(schedule=schedule, peak_rate=1.0, warmup=20)
        return rate_at(step, 100, config)

    assert rate("inverse-sqrt", 80) == pytest.approx(0.5)
    assert rate("one-cycle", 60) == pytest.approx(41 / 81)
    assert rate("cosine", 100) < 0.001 < rate("one-cycle", 100) < 0.02


def test_noam_is_the_students_own_formula():
    from transformer.decoder import noam_rate

    config = TrainingConfig(schedule="noam", warmup=40, d_model=64)
    for step in (1, 39, 40, 41, 900):
        assert rate_at(step, 1000, config) == pytest.approx(noam_rate(step, 64, 40))


def test_a_run_shorter_than_its_warm_up_still_comes_down():
    config = TrainingConfig(warmup=1000)
    rates = [rate_at(step, 10, config) for step in range(1, 11)]
    assert max(rates) == rates[4] == config.peak_rate


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schedule", "square"),
        ("average", "mean"),
        ("precision", "float16"),
        ("attention", "flash"),
        ("epochs", 0),
        ("clip", -1.0),
        ("smoothing", 1.5),
        ("weight_decay", -0.1),
        ("minutes", 0),
        ("peak_rate", 0.0),
    ],
)
def test_impossible_options_are_named(key, value):
    with pytest.raises(WorkbenchError, match=f"{key}.*{value}"):
        TrainingConfig(**{key: value})


def test_noam_without_a_width_is_refused():
    with pytest.raises(WorkbenchError, match="d_model"):
        TrainingConfig(schedule="noam")


# --- The loop ------------------------------------------------------------------------


def test_it_learns_and_says_what_happened(tmp_path):
    seen = []

    def validate(model):
        seen.append(model.training)
        return {"error": 2.0}

    options = {"epochs": 60, "peak_rate": 0.05, "checkpoint_every": 1000}
    options["validate"] = validate
    model, history = train(tmp_path, model=make_model(0.0), **options)
    assert history["loss"][-1] < history["loss"][0] / 4
    assert history["step"][-1] == 60 * 5
    assert history["validation_step"] == [5 * n for n in range(1, 61)]
    assert history["validation_error"] == [2.0] * 60
    assert seen == [False] * 60
    assert history["examples"] == [60 * 9]
    assert history["train_seconds"][0] > 0
    assert not model.training
    assert len(history["step"]) == len(history["loss"]) == len(history["rate"])


def test_a_step_equals_adamw_written_down(tmp_path):
    """An independent oracle: the loop by hand with PyTorch's plain optimiser."""
    model, _ = train(
        tmp_path, model=make_model(0.0), epochs=3, warmup=4, weight_decay=0.1, clip=0.5
    )
    other = make_model(0.0)
    decays = [p for p in other.parameters() if p.ndim > 1]
    rest = [p for p in other.parameters() if p.ndim <= 1]
    groups = [{"params": decays}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(
        groups, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.1, foreach=False
    )
    config, step = TrainingConfig(warmup=4), 0
    for epoch in range(3):
        for batch in Toy().epoch(epoch):
            step += 1
            square_loss(other, batch).backward()
            norm = sum(p.grad.square().sum() for p in other.parameters()).sqrt()
            for p in other.parameters():
                p.grad *= min(1.0, 0.5 / (norm + 1e-6))
            for group in optimizer.param_groups:
                group["lr"] = rate_at(step, 15, config)
            optimizer.step()
            optimizer.zero_grad()
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-6)


class Waits(TorchDispatchMode):
    """Counts the operations for which a GPU would be waited for."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        names = ("_local_scalar_dense", "nonzero", "is_nonzero", "masked_select")
        self.count += any(name in str(function) for name in names)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("average", ["none", "ema", "last-k"])
def test_no_step_waits_for_the_device(tmp_path, average):
    def waits(steps):
        options = {"steps": steps, "read_every": 1000, "checkpoint_every": 1000}
        with Waits() as counter:
            train(tmp_path, average=average, **options)
        return counter.count

    assert waits(40) == waits(10)  # only the reading at the end


def test_ema_is_the_average_that_it_says(tmp_path):
    weights = []

    def spy(model, batch):
        weights.append(model[0].weight.detach().clone())
        return square_loss(model, batch)

    plain, _ = train(tmp_path, spy)
    model, _ = train(tmp_path, average="ema", ema_decay=0.5)
    expected = weights[0]
    for count, weight in enumerate([*weights[1:], plain[0].weight.detach()]):
        decay = min(0.5, (1 + count) / (10 + count))
        expected = decay * expected + (1 - decay) * weight
    torch.testing.assert_close(model[0].weight.detach(), expected)


def test_last_k_is_the_mean_of_the_last_snapshots(tmp_path):
    weights = []

    def spy(model, batch):
        weights.append(model[0].weight.detach().clone())
        return square_loss(model, batch)

    plain, _ = train(tmp_path, spy)  # weights[n] is after step n
    model, _ = train(tmp_path, average="last-k", last=3, last_every=2)
    expected = torch.stack([weights[16], weights[18], plain[0].weight.detach()])
    torch.testing.assert_close(model[0].weight.detach(), expected.mean(dim=0))


def test_validation_changes_nothing(tmp_path):
    model, _ = train(tmp_path, average="ema")
    other, _ = train(tmp_path, average="ema", validate=lambda model: {"x": 1.0})
    assert same(model, other)


def test_the_seed_decides(tmp_path):
    one, _ = train(tmp_path, seed=1)
    two, _ = train(tmp_path, seed=1)
    three, _ = train(tmp_path, seed=2)
    assert same(one, two)
    assert not same(one, three)  # dropout


def test_minutes_shorten_the_run_and_its_schedule(tmp_path, monkeypatch):
    ticks = iter(range(100_000))
    monkeypatch.setattr(loop.time, "perf_counter", lambda: float(next(ticks)))
    rarely = {"checkpoint_every": 10_000}
    _, history = train(tmp_path, epochs=1000, minutes=2.0, read_every=10_000, **rarely)
    # the clock moves by a second whenever it is asked: 20 steps took one second
    assert history["step"][-1] == 2 * 60 * 20
    assert history["rate"][-1] < 1e-5


def test_bfloat16_learns_nearly_the_same_in_float32_weights(tmp_path):
    exact, _ = train(tmp_path, model=make_model(0.0))
    half, _ = train(tmp_path, model=make_model(0.0), precision="bfloat16")
    assert half[0].weight.dtype == torch.float32
    for one, two in zip(exact.parameters(), half.parameters(), strict=True):
        torch.testing.assert_close(one, two, atol=0.03, rtol=0)


# --- Checkpoints ---------------------------------------------------------------------


@pytest.mark.parametrize("average", ["none", "ema", "last-k"])
@pytest.mark.parametrize("step", [4, 5, 6, 7, 19])
def test_a_run_that_fell_ends_in_the_same_weights(tmp_path, average, step):
    options = {"average": average, "last": 4, "last_every": 1}
    options["validate"] = lambda model: {
        "sum": float(sum(p.sum() for p in model[0].parameters()))
    }
    whole, history = train(tmp_path / "whole", **options)
    with pytest.raises(Killed):
        train(tmp_path, stop_at(step, fall), **options)
    torch.rand(7)  # the generator is somewhere else by now
    resumed, again = train(tmp_path, model=make_model(0.2), resume=True, **options)
    assert same(whole, resumed)
    assert without_times(history) == without_times(again)


def test_a_killed_process_ends_in_the_same_weights(tmp_path):
    program = (
        "import os, signal; from pathlib import Path;"
        "from tests.workbench import test_training as t;"
        "kill = lambda: os.kill(os.getpid(), signal.SIGKILL);"
        f"t.train(Path({str(tmp_path)!r}), t.stop_at(11, kill), average='ema')"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=False)
    assert ended.returncode == -signal.SIGKILL
    resumed, _ = train(tmp_path, resume=True, average="ema")
    whole, _ = train(tmp_path / "whole", average="ema")
    assert same(whole, resumed)


def test_a_fall_while_writing_leaves_the_last_good_checkpoint(tmp_path, monkeypatch):
    whole, _ = train(tmp_path / "whole")
    written = []
    replace_file = os.replace

    def fall_the_second_time(source, target):
        written.append(target)
        if len(written) == 2:
            Path(source).write_bytes(b"half")
            fall()
        replace_file(source, target)

    monkeypatch.setattr(os, "replace", fall_the_second_time)
    with pytest.raises(Killed):
        train(tmp_path)
    resumed, _ = train(tmp_path, resume=True)
    assert same(whole, resumed)


def interrupted(folder):
    with pytest.raises(Killed):
        train(folder, stop_at(8, fall))
    return folder / checkpoint.CHECKPOINT


@pytest.mark.parametrize("keep", [0, 5, 300, -1])
def test_a_cut_checkpoint_is_a_clear_error(tmp_path, keep):
    path = interrupted(tmp_path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(WorkbenchError, match=r"checkpoint.*damaged.*delete it"):
        train(tmp_path, resume=True)


def test_no_checkpoint_is_a_clear_error(tmp_path):
    with pytest.raises(WorkbenchError, match="leave out --resume"):
        train(tmp_path, resume=True)


def test_other_tensors_are_no_checkpoint(tmp_path):
    from safetensors.torch import save_file

    save_file({"x": torch.zeros(1)}, tmp_path / checkpoint.CHECKPOINT)
    with pytest.raises(WorkbenchError, match="no checkpoint of a run"):
        train(tmp_path, resume=True)


def test_other_options_are_named_but_reading_may_change(tmp_path):
    interrupted(tmp_path)
    with pytest.raises(WorkbenchError, match=r"peak_rate = 0\.001, not 0\.5"):
        train(tmp_path, resume=True, peak_rate=0.5)
    with pytest.raises(WorkbenchError, match=r"5 batches in an epoch, not 3"):
        train(tmp_path, resume=True, batches=Toy(size=3))
    train(tmp_path, resume=True, read_every=1, checkpoint_every=2)


def test_another_model_is_named(tmp_path):
    interrupted(tmp_path)
    wide = nn.Sequential(nn.Linear(3, 7), nn.Tanh(), nn.Dropout(), nn.Linear(7, 1))
    with pytest.raises(WorkbenchError, match=r"0\.weight.*\(4, 3\), not \(7, 3\)"):
        train(tmp_path, model=wide, resume=True)
    with pytest.raises(WorkbenchError, match=r"has no 'model\.3\.(weight|bias)'"):
        train(tmp_path, model=nn.Sequential(nn.Linear(3, 4)), resume=True)
    deep = nn.Sequential(*make_model(), nn.Linear(1, 1))
    with pytest.raises(WorkbenchError, match=r"lacks 'model\.4\.weight'"):
        train(tmp_path, model=deep, resume=True)


# --- What goes wrong -----------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried …"),
        MemoryError(),
    ],
)
def test_out_of_memory_says_what_to_lower_and_keeps_the_checkpoint(tmp_path, error):
    def raise_it():
        raise error

    with pytest.raises(WorkbenchError, match=r"lower --batch.*checkpoint in .* stays"):
        train(tmp_path, stop_at(5, raise_it))
    train(tmp_path, resume=True)


def test_other_errors_stay_what_they_are(tmp_path):
    def raise_it():
        raise RuntimeError("shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="multiplied"):
        train(tmp_path, stop_at(2, raise_it))


def test_a_loss_that_is_not_a_number_ends_the_run(tmp_path):
    with pytest.raises(WorkbenchError, match=r"loss is nan at step 3: lower"):
        train(tmp_path, lambda model, batch: square_loss(model, batch) * torch.nan)
    assert not (tmp_path / checkpoint.CHECKPOINT).exists()


def test_no_batch_is_a_clear_error(tmp_path):
    with pytest.raises(WorkbenchError, match="no batch to train on"):
        train(tmp_path, batches=Toy(examples=0))


def test_an_unknown_device_is_a_clear_error():
    assert devices.choose_device("cpu") == CPU
    for name in ("cuda:99", "abacus"):
        with pytest.raises(WorkbenchError, match=name):
            devices.choose_device(name)


# --- Several processes ---------------------------------------------------------------

PARALLEL = """
import json, sys
from pathlib import Path
import torch
from tests.workbench import test_training as t
from workbench.training import devices, loop
with devices.processes(t.CPU) as device:
    config = loop.TrainingConfig(epochs=3, read_every=1, checkpoint_every=4)
    history = loop.fit(
        t.make_model(0.0), t.masked_loss, t.Toy(9, 4), None, config,
        Path(sys.argv[1]), device, False, weight_of=t.count_real,
    )
    if devices.world()[0] == 0:
        print(json.dumps(history["loss"]))
"""


def masked_loss(model, batch):
    """A mean over some of the labels only, as over words that are no padding."""
    x, y = batch
    return ((model(x) - y).square() * (y > 0)).sum() / (y > 0).sum().clamp(min=1)


def count_real(batch):
    return (batch[1] > 0).sum()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def test_two_processes_have_the_losses_of_one(tmp_path):
    import json

    config = TrainingConfig(epochs=3, read_every=1, checkpoint_every=4)
    model = make_model(0.0)
    alone = fit(model, masked_loss, Toy(9, 4), None, config, tmp_path, CPU, False)
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    command = [sys.executable, "-c", PARALLEL, str(tmp_path / "two")]
    started = []
    for rank in "01":
        own = {"WORLD_SIZE": "2", "RANK": rank, "LOCAL_RANK": rank}
        environment = os.environ | place | own | {"OMP_NUM_THREADS": "1"}
        pipe = subprocess.PIPE
        started.append(
            subprocess.Popen(
                command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True
            )
        )
    outputs = [process.communicate(timeout=120) for process in started]
    assert [process.returncode for process in started] == [0, 0], outputs
    together = json.loads(outputs[0][0])
    assert together == pytest.approx(alone["loss"], rel=1e-5)
    tensors, rest = checkpoint.read_checkpoint(tmp_path / "two" / checkpoint.CHECKPOINT)
    assert rest["processes"] == 2
    assert {"random.cpu.0", "random.cpu.1"} <= set(tensors)
