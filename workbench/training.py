"""The training loop of the capstones: one for both, small enough to read.

Nothing in a step waits for the device: losses are gathered there and read every few
steps. A run that is killed continues from its last checkpoint and ends in the same
weights; on several devices, under ``torchrun``, each process takes its share of the
same batch.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.distributed as dist
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from tqdm import tqdm

from workbench.errors import WorkbenchError
from workbench.memory import keep_memory

CHECKPOINT = "checkpoint.safetensors"
SCHEDULES = ("inverse-sqrt", "cosine", "one-cycle", "noam")
AVERAGES = ("none", "ema", "last-k")
PRECISIONS = ("float32", "bfloat16")
PROBE = 20  # steps whose time says how many fit into config.minutes
# What a checkpoint holds of a run beside its tensors
PROGRESS = ["step", "total", "seconds", "compile_seconds", "examples"]
PROGRESS += ["measured", "history"]
FREE_TO_CHANGE = {"read_every", "checkpoint_every"}  # between a run and its resumption

Batch = tuple[torch.Tensor, ...]


class Batches(Protocol):
    """What fit trains on: the batches of an epoch, the same for the same number."""

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield the batches of an epoch; each tensor has a row an example."""

    def __len__(self) -> int:
        """Count the batches of an epoch."""


@dataclass(frozen=True)
class TrainingConfig:
    """How to train; see ``rate_at`` for the schedules.

    Raises:
        WorkbenchError: a value is impossible; the message names the key.
    """

    epochs: int = 10
    steps: int | None = None  # instead of epochs
    minutes: float | None = None  # at most; the schedule is fitted into them
    peak_rate: float = 1e-3
    warmup: int = 100  # steps
    schedule: str = "cosine"
    d_model: int | None = None  # only "noam" needs it
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-9
    weight_decay: float = 0.0  # of matrices; biases and norms are left alone
    smoothing: float = 0.0
    clip: float | None = 1.0  # largest norm of the gradient
    average: str = "none"
    ema_decay: float = 0.999
    last: int = 10  # snapshots in the average "last-k"
    last_every: int | None = None  # steps between them; None: an epoch
    seed: int = 0
    precision: str = "float32"
    compile: bool = False
    attention: str = "written"
    checkpoint_every: int | None = None  # steps; None: an epoch
    validate_every: int = 1  # epochs
    read_every: int = 20  # steps

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        choices = {
            "schedule": SCHEDULES,
            "average": AVERAGES,
            "precision": PRECISIONS,
            "attention": ("written", "fused"),
        }
        for key, allowed in choices.items():
            if getattr(self, key) not in allowed:
                names = ", ".join(allowed)
                value = getattr(self, key)
                raise WorkbenchError(f"{key} must be one of {names}, not {value!r}")
        for key in ("epochs", "warmup", "last", "validate_every", "read_every"):
            if getattr(self, key) < 1:
                raise WorkbenchError(
                    f"{key} must be at least 1, not {getattr(self, key)}"
                )
        for key in ("steps", "minutes", "clip", "last_every", "checkpoint_every"):
            value = getattr(self, key)
            if value is not None and value <= 0:
                raise WorkbenchError(f"{key} must be above 0, not {value}")
        if not 0 <= self.smoothing < 1:
            raise WorkbenchError(
                f"smoothing must be from 0 to below 1, not {self.smoothing}"
            )
        if not self.peak_rate > 0:
            raise WorkbenchError(f"peak_rate must be above 0, not {self.peak_rate}")
        if self.schedule == "noam" and not self.d_model:
            raise WorkbenchError("the schedule noam needs d_model")


def rate_at(step: int, total: int, config: TrainingConfig) -> float:
    """Return the learning rate of a step.

    All schedules rise in a straight line for ``warmup`` steps. Then "inverse-sqrt"
    falls with 1/√step, "cosine" along half a wave to 0, "one-cycle" in a straight line
    to 0. "noam" is "inverse-sqrt" with the peak of Vaswani et al. 2017, 1/√(d·warmup).

    Args:
        step: from 1.
        total: the number of steps of the run.
        config: schedule, warmup, peak_rate; d_model for "noam".
    """
    warmup = min(config.warmup, max(1, total // 2))
    peak = config.peak_rate
    if config.schedule == "noam":
        peak = (config.d_model * warmup) ** -0.5
    if step <= warmup:
        return peak * step / warmup
    if config.schedule in ("inverse-sqrt", "noam"):
        return peak * math.sqrt(warmup / step)
    left = max(0.0, (total - step + 1) / (total - warmup + 1))  # 1 -> just above 0
    if config.schedule == "one-cycle":
        return peak * left
    return peak * (1 - math.cos(math.pi * left)) / 2


class Average:
    """An average of a model's weights over the steps of training."""

    def __init__(self, model: nn.Module, config: TrainingConfig) -> None:
        self.config, self.count = config, 0
        self.weights = list(model.parameters())
        self.values: list[torch.Tensor] = []
        if config.average != "none":
            self.values = [weight.detach().clone() for weight in self.weights]

    @torch.no_grad()
    def update(self, step: int, total: int, an_epoch: int) -> None:
        """Take the weights of this step in, if it is one that counts."""
        if self.config.average == "none":
            return
        if self.config.average == "ema":
            # A young average forgets faster, or the first weights would stay in it
            share = 1 - min(self.config.ema_decay, (1 + self.count) / (10 + self.count))
        else:
            every = self.config.last_every or an_epoch
            if (total - step) % every or (total - step) // every >= self.config.last:
                return
            share = 1 / (self.count + 1)
        self.count += 1
        weights = [weight.detach() for weight in self.weights]
        torch._foreach_lerp_(self.values, weights, share)

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange the weights and their average, if there is one yet."""
        if self.count:
            kept = [weight.detach().clone() for weight in self.weights]
            torch._foreach_copy_(self.weights, self.values)
            torch._foreach_copy_(self.values, kept)


@dataclass
class Run:
    """What changes while training, and what a checkpoint holds."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    average: Average
    total: int  # steps
    step: int = 0
    seconds: float = 0.0  # of training; neither compilation nor validation
    compile_seconds: float = 0.0
    examples: int = 0
    measured: bool = False  # the total has been fitted into config.minutes
    history: dict[str, list] = field(default_factory=dict)

    def note(self, **values: float) -> None:
        """Append to the history's lists."""
        for name, value in values.items():
            self.history.setdefault(name, []).append(value)


def world() -> tuple[int, int]:
    """Return this process's rank and the number of processes."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank(), dist.get_world_size()
    return 0, 1


@contextmanager
def processes(device: torch.device) -> Iterator[torch.device]:
    """Join the processes that ``torchrun`` has started, if it has; give the device."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield device
        return
    backend = "gloo"
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        backend = "nccl"
    dist.init_process_group(backend)
    try:
        yield device
    finally:
        dist.destroy_process_group()


def choose_device(name: str = "auto") -> torch.device:
    """Return a device by name; "auto" takes CUDA, then MPS, then the CPU.

    Raises:
        WorkbenchError: this machine has no such device.
    """
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise WorkbenchError(
            f"the device {name!r} is not to be had here; try --device auto or cpu"
        ) from error
    return device


def fit(
    model: nn.Module,
    loss_of: Callable[[nn.Module, Batch], torch.Tensor],
    batches: Batches,
    validate: Callable[[nn.Module], dict[str, float]] | None,
    config: TrainingConfig,
    out: Path,
    device: torch.device,
    progress: bool = True,
    resume: bool = False,
    weight_of: Callable[[Batch], torch.Tensor] | None = None,
) -> dict[str, list]:
    """Train a model; at the end it has the averaged weights, if there is an average.

    Args:
        model: moved to the device, and changed in place.
        loss_of: the mean loss of a batch, shape (); it calls ``model(...)`` once.
        batches: what to train on; the tensors are on the device already.
        validate: scores of a model in evaluation mode, after every epoch or so.
        config: how to train.
        out: a folder, made if need be, for ``checkpoint.safetensors``.
        device: where to train.
        progress: show a bar.
        resume: continue from the checkpoint in ``out``.
        weight_of: over what loss_of takes its mean (a count, shape ()), for several
            processes; None: the rows of the batch.

    Returns:
        Lists by name: ``step``, ``loss`` (nats, mean since the last), ``rate`` and
        ``seconds`` of each reading; ``validation_step`` and ``validation_NAME``; and
        ``compile_seconds``, ``train_seconds``, ``examples`` with one value each.

    Raises:
        WorkbenchError: the checkpoint is cut or of another run; out of memory; a loss
            that is not a number.
    """
    if device.type == "cpu":
        keep_memory()
    torch.manual_seed(config.seed + world()[0])
    run = start(model.to(device), config, len(batches), device)
    if resume:
        load_checkpoint(out / CHECKPOINT, run, config, len(batches), device)
    first = run.step
    wrapped = wrap(model, config, device)
    share = share_of(weight_of or count_rows)
    try:
        if config.compile:
            run.compile_seconds += warm_up(wrapped, loss_of, batches, config, device)
        loop(run, wrapped, loss_of, share, batches, validate, config, out, progress)
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        kept = f"; the checkpoint in {out} stays" if (out / CHECKPOINT).exists() else ""
        raise WorkbenchError(
            f"out of memory on {device} after step {max(run.step, first)}: lower "
            f"--batch, or try --precision bfloat16 or --attention fused{kept}"
        ) from error
    run.average.swap()
    model.zero_grad(set_to_none=True)
    model.eval()
    run.note(compile_seconds=run.compile_seconds)
    run.note(train_seconds=run.seconds, examples=run.examples)
    return run.history


def start(
    model: nn.Module, config: TrainingConfig, an_epoch: int, device: torch.device
) -> Run:
    """Prepare a run from its first step.

    Raises:
        WorkbenchError: there is not one batch to train on.
    """
    if an_epoch < 1:
        raise WorkbenchError("no batch to train on: lower --batch, or add data")
    total = config.steps or config.epochs * an_epoch
    average = Average(model, config)
    return Run(model, make_optimizer(model, config, device), average, total)


def make_optimizer(
    model: nn.Module, config: TrainingConfig, device: torch.device
) -> torch.optim.AdamW:
    """Make AdamW, fused where it can be; only matrices decay."""
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    groups = [
        {"params": [w for w in weights if w.ndim > 1]},
        {"params": [w for w in weights if w.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=config.peak_rate,
        betas=config.betas,
        eps=config.eps,
        weight_decay=config.weight_decay,
        fused=device.type in ("cpu", "cuda", "mps"),
    )


def wrap(model: nn.Module, config: TrainingConfig, device: torch.device) -> nn.Module:
    """Let processes share gradients, and compile, where asked for."""
    wrapped = model
    if world()[1] > 1:
        devices = [device.index] if device.type == "cuda" else None
        wrapped = DistributedDataParallel(model, device_ids=devices)
    if config.compile:
        torch._dynamo.config.recompile_limit = 64  # one graph for each fixed shape
        mode = "reduce-overhead" if device.type == "cuda" else "default"
        wrapped = torch.compile(wrapped, mode=mode, dynamic=False)
    return wrapped


def warm_up(
    wrapped: nn.Module,
    loss_of: Callable[[nn.Module, Batch], torch.Tensor],
    batches: Batches,
    config: TrainingConfig,
    device: torch.device,
) -> float:
    """Compile for each shape by a step that changes nothing; return the seconds."""
    begin, seen = time.perf_counter(), set()
    state = random_state(device)
    wrapped.train()
    for batch in batches.epoch(0):
        batch = share_rows(batch)
        shapes = tuple(tensor.shape for tensor in batch)
        if shapes not in seen:
            seen.add(shapes)
            for _ in range(3 if device.type == "cuda" else 1):  # CUDA graphs: a third
                with context(config, device):
                    loss = loss_of(wrapped, batch)
                loss.backward()
                wrapped.zero_grad(set_to_none=True)
    wait(device)
    set_random_state(state, device)
    return time.perf_counter() - begin


@contextmanager
def context(config: TrainingConfig, device: torch.device) -> Iterator[None]:
    """Use the precision asked for; make new tensors on the device.

    The latter keeps a mask that the model makes for itself from being made on the CPU
    and copied at every step, for which the device would be waited for.
    """
    precision: AbstractContextManager = nullcontext()
    if config.precision == "bfloat16":
        precision = torch.autocast(device.type, dtype=torch.bfloat16)
    place = nullcontext() if device.type == "cpu" else torch.device(device)
    with precision, place:
        yield


def loop(
    run: Run,
    wrapped: nn.Module,
    loss_of: Callable[[nn.Module, Batch], torch.Tensor],
    share: Callable[[Batch], tuple[Batch, torch.Tensor | None]],
    batches: Batches,
    validate: Callable[[nn.Module], dict[str, float]] | None,
    config: TrainingConfig,
    out: Path,
    progress: bool,
) -> None:
    """Take the steps that are left, with readings, validations and checkpoints."""
    device = next(run.model.parameters()).device
    an_epoch = len(batches)
    every = config.checkpoint_every or an_epoch
    losses = torch.zeros(config.read_every, device=device)
    filled, clock, probed = 0, time.perf_counter(), run.step
    hide = not progress or world()[0] > 0
    bar = tqdm(
        total=run.total, initial=run.step, unit="step", disable=hide, desc="train"
    )
    for batch in left(batches, run, device):
        run.step += 1
        run.examples += batch[0].shape[0]
        wrapped.train()
        loss = take_step(run, wrapped, loss_of, share(batch), config, device)
        losses[filled] = loss
        filled += 1
        run.average.update(run.step, run.total, an_epoch)
        bar.update()
        at_end = run.step == run.total
        to_check = validate is not None and (
            at_end or run.step % (config.validate_every * an_epoch) == 0
        )
        to_save = run.step % every == 0 and not at_end
        fitted = not at_end and config.minutes and not run.measured
        to_fit = fitted and run.step - probed == PROBE
        if filled == config.read_every or at_end or to_check or to_save or to_fit:
            mean = read(losses[:filled])  # waits for the device
            run.seconds += time.perf_counter() - clock
            clock, filled = time.perf_counter(), 0
            note_loss(run, mean, config)
            bar.set_postfix(loss=f"{mean:.3f}", refresh=False)
        if to_fit:
            fit_into_minutes(run, config, an_epoch, probed, device)
            bar.total = run.total
        if to_check:
            scores = checked(run, validate)
            bar.set_postfix(scores | {"loss": mean}, refresh=False)
        if to_save:
            save_checkpoint(out / CHECKPOINT, run, config, an_epoch, device)
        if to_check:
            clock = time.perf_counter()
    bar.close()


def left(batches: Batches, run: Run, device: torch.device) -> Iterator[Batch]:
    """Yield the batches from the run's next step to its last."""
    an_epoch, state = len(batches), random_state(device)
    while run.step < run.total:
        number, skip = divmod(run.step, an_epoch)
        for position, batch in enumerate(batches.epoch(number)):
            if position < skip:
                continue
            if state is not None:  # as if the skipped ones had never been made
                set_random_state(state, device)
                state = None
            yield batch
            if run.step >= run.total:
                return
        if run.step < min(run.total, (number + 1) * an_epoch):
            raise WorkbenchError(
                f"epoch {number} has fewer than the {an_epoch} batches that it promised"
            )


def take_step(
    run: Run,
    wrapped: nn.Module,
    loss_of: Callable[[nn.Module, Batch], torch.Tensor],
    shared: tuple[Batch, torch.Tensor | None],
    config: TrainingConfig,
    device: torch.device,
) -> torch.Tensor:
    """Change the weights once; return the loss, shape (), on the device.

    With several processes it is this one's part of the mean: their mean is the loss.
    """
    batch, factor = shared
    if config.compile and device.type == "cuda":
        torch.compiler.cudagraph_mark_step_begin()
    with context(config, device):
        loss = loss_of(wrapped, batch)
    if factor is not None:
        loss = loss * factor
    loss.backward()
    if config.clip:
        nn.utils.clip_grad_norm_(run.model.parameters(), config.clip)
    for group in run.optimizer.param_groups:
        group["lr"] = rate_at(run.step, run.total, config)
    run.optimizer.step()
    run.optimizer.zero_grad(set_to_none=True)
    return loss.detach()


def count_rows(batch: Batch) -> torch.Tensor:
    """Return the number of examples, shape ()."""
    return torch.tensor(float(batch[0].shape[0]), device=batch[0].device)


def share_rows(batch: Batch) -> Batch:
    """Return this process's rows of a batch."""
    rank, count = world()
    return tuple(tensor[rank::count] for tensor in batch) if count > 1 else batch


def share_of(
    weight_of: Callable[[Batch], torch.Tensor],
) -> Callable[[Batch], tuple[Batch, torch.Tensor | None]]:
    """Return what splits a batch: this process's rows, and their weight.

    Processes have differently many words. Gradients are averaged over the processes,
    so that each loss is to be weighted for the mean over the words of all.
    """

    def share(batch: Batch) -> tuple[Batch, torch.Tensor | None]:
        own = share_rows(batch)
        if world()[1] == 1:
            return own, None
        all_of_it = weight_of(batch).clamp(min=1)
        return own, weight_of(own) * world()[1] / all_of_it

    return share


def read(losses: torch.Tensor) -> float:
    """Return the mean of losses, over all processes too."""
    mean = losses.mean()
    if world()[1] > 1:
        dist.all_reduce(mean)
        mean = mean / world()[1]
    return float(mean)


def note_loss(run: Run, mean: float, config: TrainingConfig) -> None:
    """Put a reading into the history.

    Raises:
        WorkbenchError: the loss is not a number.
    """
    if not math.isfinite(mean):
        raise WorkbenchError(
            f"the loss is {mean} at step {run.step}: lower the learning rate (--rate), "
            "or begin with a longer --warmup"
        )
    rate = rate_at(run.step, run.total, config)
    run.note(step=run.step, loss=mean, rate=rate, seconds=run.seconds)


def checked(
    run: Run, validate: Callable[[nn.Module], dict[str, float]]
) -> dict[str, float]:
    """Score the averaged model, and put it into the history."""
    run.average.swap()
    run.model.eval()
    with torch.no_grad():
        scores = validate(run.model)
    run.average.swap()
    run.note(validation_step=run.step)
    run.note(**{f"validation_{name}": value for name, value in scores.items()})
    return scores


def fit_into_minutes(
    run: Run, config: TrainingConfig, an_epoch: int, probed: int, device: torch.device
) -> None:
    """Lower the number of steps to what the first ones say that there is time for."""
    a_step = run.seconds / run.step
    steps = int(config.minutes * 60 / a_step)
    if world()[1] > 1:  # the first process decides for all
        agreed = torch.tensor(steps, device=device)
        dist.broadcast(agreed, src=0)
        steps = int(agreed)
    run.total = max(run.step + 1, min(run.total, steps))
    run.measured = True


# --- Checkpoints: tensors and, in the same file's header, JSON. Never pickle. ---


def random_state(device: torch.device) -> dict[str, torch.Tensor]:
    """Return the states of the generators that dropout draws from."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    if device.type == "mps":
        state["mps"] = torch.mps.get_rng_state()
    return state


def set_random_state(state: dict[str, torch.Tensor], device: torch.device) -> None:
    """Put generators back where they were."""
    torch.set_rng_state(state["cpu"])
    if "cuda" in state and device.type == "cuda":
        torch.cuda.set_rng_state(state["cuda"], device)
    if "mps" in state and device.type == "mps":
        torch.mps.set_rng_state(state["mps"])


def all_random_states(device: torch.device) -> dict[str, torch.Tensor]:
    """Return the generators' states of all processes, by name and rank."""
    states = {}
    for name, state in random_state(device).items():
        parts = [state]
        if world()[1] > 1:
            own = state.to(device)
            parts = [torch.empty_like(own) for _ in range(world()[1])]
            dist.all_gather(parts, own)
        states |= {f"random.{name}.{rank}": part for rank, part in enumerate(parts)}
    return states


def run_tensors(run: Run) -> dict[str, torch.Tensor]:
    """Return all tensors that a run needs to go on, by name."""
    tensors = {}
    for name, buffer in run.model.named_buffers():
        if name in run.model.state_dict():
            tensors[f"buffer.{name}"] = buffer
    for index, (name, weight) in enumerate(run.model.named_parameters()):
        tensors[f"model.{name}"] = weight.detach()
        for key, value in run.optimizer.state.get(weight, {}).items():
            tensors[f"optimizer.{key}.{name}"] = value
        if run.average.values:
            tensors[f"average.{name}"] = run.average.values[index]
    return tensors


def save_checkpoint(
    path: Path, run: Run, config: TrainingConfig, an_epoch: int, device: torch.device
) -> None:
    """Write a checkpoint beside, then rename it: the last good one is always whole."""
    states = all_random_states(device)  # of all processes, so before the next line
    if world()[0] > 0:
        return
    rest = {
        "config": asdict(config),
        "an_epoch": an_epoch,
        "processes": world()[1],
        "count": run.average.count,
    }
    rest |= {key: getattr(run, key) for key in PROGRESS}
    tensors = run_tensors(run) | states
    tensors = {name: value.contiguous().cpu() for name, value in tensors.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    save_file(tensors, beside, metadata={"run": json.dumps(rest)})
    with beside.open("rb+") as file:
        os.fsync(file.fileno())
    os.replace(beside, path)


def read_checkpoint(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any]]:
    """Read a checkpoint's tensors and the rest.

    Raises:
        WorkbenchError: there is none, or it is cut or not one of ours.
    """
    advice = "delete it to begin anew, or bring back a good copy"
    if not path.is_file():
        raise WorkbenchError(f"no checkpoint {path}: leave out --resume to begin anew")
    try:
        with safe_open(path, "pt", device="cpu") as file:
            rest = json.loads((file.metadata() or {})["run"])
            return {name: file.get_tensor(name) for name in file.keys()}, rest  # noqa: SIM118
    except (SafetensorError, OSError, ValueError) as error:
        raise WorkbenchError(
            f"the checkpoint {path} is damaged ({error}): {advice}"
        ) from error
    except KeyError as error:
        raise WorkbenchError(f"{path} is no checkpoint of a run: {advice}") from error


def load_checkpoint(
    path: Path, run: Run, config: TrainingConfig, an_epoch: int, device: torch.device
) -> None:
    """Bring a run back to where its checkpoint was written.

    Raises:
        WorkbenchError: the checkpoint is cut, or of a run with other options.
    """
    tensors, rest = read_checkpoint(path)
    refuse_other_run(path, rest, config, an_epoch)
    own = run_tensors(run)
    for name in tensors:
        if name.startswith(("model.", "buffer.")) and name not in own:
            raise WorkbenchError(f"{path}: this model has no {name!r}")
    with torch.no_grad():
        for name, target in own.items():
            target.copy_(taken(path, tensors, name, target.shape))
    for name, weight in run.model.named_parameters():
        state = run.optimizer.state[weight]
        for key in ("step", "exp_avg", "exp_avg_sq"):
            shape = torch.Size() if key == "step" else weight.shape
            value = taken(path, tensors, f"optimizer.{key}.{name}", shape)
            state[key] = value.to(device)
    for key in PROGRESS:
        setattr(run, key, rest[key])
    run.average.count = rest["count"]
    prefix, rank = "random.", f".{world()[0]}"
    states = {
        name.removeprefix(prefix).removesuffix(rank): state
        for name, state in tensors.items()
        if name.startswith(prefix) and name.endswith(rank)
    }
    set_random_state(states, device)


def taken(
    path: Path, tensors: dict[str, torch.Tensor], name: str, shape: torch.Size
) -> torch.Tensor:
    """Return a tensor of a checkpoint.

    Raises:
        WorkbenchError: it is missing or has another shape.
    """
    if name not in tensors:
        raise WorkbenchError(f"{path} lacks {name!r}: it is of another model")
    if tensors[name].shape != shape:
        old, new = tuple(tensors[name].shape), tuple(shape)
        raise WorkbenchError(f"{path}: {name!r} has the shape {old}, not {new}")
    return tensors[name]


def refuse_other_run(
    path: Path, rest: dict[str, Any], config: TrainingConfig, an_epoch: int
) -> None:
    """Refuse to continue with other options than the run began with.

    Raises:
        WorkbenchError: names the first option that differs.
    """
    now = json.loads(json.dumps(asdict(config)))  # tuples as lists, as in the file
    for key, value in now.items():
        old = rest["config"].get(key)
        if old != value and key not in FREE_TO_CHANGE:
            raise WorkbenchError(
                f"{path} is of a run with {key} = {old!r}, not {value!r}: "
                "resume with the options that it began with"
            )
    for key, value in (("an_epoch", an_epoch), ("processes", world()[1])):
        if rest[key] != value:
            what = "batches in an epoch" if key == "an_epoch" else "processes"
            raise WorkbenchError(
                f"{path} is of a run with {rest[key]} {what}, not {value}: resume with "
                "the same data, --batch and number of processes"
            )


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error says that memory has run out; each device has its words."""
    words = ("out of memory", "can't allocate memory", "not enough memory")
    known = isinstance(error, (torch.OutOfMemoryError, MemoryError))
    return known or any(word in str(error).lower() for word in words)


def wait(device: torch.device) -> None:
    """Wait until the device has done what it was asked for."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    if device.type == "mps":
        torch.mps.synchronize()
