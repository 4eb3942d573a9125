"""The training loop of the capstones: one for both, small enough to read.

Nothing in a step waits for the device: losses are gathered there and read every few
steps. A run that is killed continues from its last checkpoint and ends in the same
weights; on several devices, under ``torchrun``, each process takes its share of the
same batch.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import nn
from tqdm import tqdm

from workbench.errors import WorkbenchError
from workbench.model.dropout import drop_by_bytes
from workbench.training.checkpoint import CHECKPOINT, load_checkpoint, save_checkpoint
from workbench.training.devices import random_state, set_random_state, world
from workbench.training.memory import keep_memory
from workbench.training.optimizers import OPTIMIZERS, make_optimizer
from workbench.training.steps import Batch, Loss, Steps, count_rows, share_of

SCHEDULES = ("inverse-sqrt", "cosine", "one-cycle", "noam")
AVERAGES = ("none", "ema", "last-k")
PRECISIONS = ("float32", "bfloat16")
PROBE = 20  # steps whose time says how many fit into config.minutes
READ_EVERY = {"cuda": 100}  # steps; a GPU has nothing to do while one reads


Validate = Callable[[Any], dict[str, float]]  # scores of a model, by name


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
    optimizer: str = "adamw"
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
    compile: bool = False  # see workbench.training.steps
    capture: bool = False  # likewise
    attention: str = "written"
    checkpoint_every: int | None = None  # steps; None: an epoch; 0: never
    validate_every: float = 1  # epochs, or parts of one; 0: only at the end
    read_every: int = 20  # steps

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        choices = {
            "schedule": SCHEDULES,
            "optimizer": OPTIMIZERS,
            "average": AVERAGES,
            "precision": PRECISIONS,
            "attention": ("written", "fused"),
        }
        for key, allowed in choices.items():
            if getattr(self, key) not in allowed:
                names = ", ".join(allowed)
                value = getattr(self, key)
                raise WorkbenchError(f"{key} must be one of {names}, not {value!r}")
        for key in ("epochs", "warmup", "last", "read_every"):
            if getattr(self, key) < 1:
                raise WorkbenchError(
                    f"{key} must be at least 1, not {getattr(self, key)}"
                )
        for key in ("validate_every", "checkpoint_every", "weight_decay"):
            if not (getattr(self, key) or 0) >= 0:
                raise WorkbenchError(
                    f"{key} must be at least 0, not {getattr(self, key)}"
                )
        for key in ("steps", "minutes", "clip", "last_every"):
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
    if config.schedule == "noam" and config.d_model:
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
            torch._foreach_copy_([*self.weights], self.values)
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


def fit(
    model: nn.Module,
    loss_of: Loss,
    batches: Batches,
    validate: Validate | None,
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
        if not config.compile:  # which merges drawing with what is around it
            drop_by_bytes(model)
    if device.type == "cuda":  # the first choice on a Hopper, a plan for each shape
        torch.backends.cuda.enable_cudnn_sdp(False)
    torch.manual_seed(config.seed + world()[0])
    run = start(model.to(device), config, len(batches), device)
    if resume:
        load_checkpoint(out / CHECKPOINT, run, config, len(batches), device)
    first = run.step
    try:
        share = share_of(weight_of or count_rows)
        steps = Steps(run, loss_of, share, config, device)
        run.compile_seconds += steps.prepare(batches)
        loop(run, steps, batches, validate, config, out, progress)
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


def loop(
    run: Run,
    steps: Steps,
    batches: Batches,
    validate: Validate | None,
    config: TrainingConfig,
    out: Path,
    progress: bool,
) -> None:
    """Take the steps that are left, with readings, validations and checkpoints."""
    device = next(run.model.parameters()).device
    an_epoch = len(batches)
    every = an_epoch if config.checkpoint_every is None else config.checkpoint_every
    checks = math.ceil(config.validate_every * an_epoch)  # steps between two
    losses = torch.zeros(config.read_every, device=device)
    filled, clock, probed = 0, time.perf_counter(), run.step
    hide = not progress or world()[0] > 0
    bar = tqdm(
        total=run.total, initial=run.step, unit="step", disable=hide, desc="train"
    )
    run.model.train()
    for batch in left(batches, run, device):
        run.step += 1
        run.examples += batch[0].shape[0]
        losses[filled] = steps.take(batch, rate_at(run.step, run.total, config))
        filled += 1
        run.average.update(run.step, run.total, an_epoch)
        bar.update()
        at_end = run.step == run.total
        to_check = at_end or is_multiple(run.step, checks)
        to_check = to_check and validate is not None
        to_save = is_multiple(run.step, every) and not at_end
        fitted = config.minutes is not None and not at_end and not run.measured
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
        if to_check and validate is not None:
            scores = checked(run, validate)
            bar.set_postfix(scores | {"loss": mean}, refresh=False)
        if to_save:
            save_checkpoint(out / CHECKPOINT, run, config, an_epoch, device)
        if to_check:
            clock = time.perf_counter()
    bar.close()


def is_multiple(step: int, every: int) -> bool:
    """Tell whether something is due that comes every so many steps, or never: 0."""
    return every > 0 and step % every == 0


def left(batches: Batches, run: Run, device: torch.device) -> Iterator[Batch]:
    """Yield the batches from the run's next step to its last."""
    an_epoch = len(batches)
    state: dict[str, torch.Tensor] | None = random_state(device)
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


def checked(run: Run, validate: Validate) -> dict[str, float]:
    """Score the averaged model, and put it into the history."""
    run.average.swap()
    run.model.eval()
    with torch.no_grad():
        scores = validate(run.model)
    run.model.train()
    run.average.swap()
    run.note(validation_step=run.step)
    run.note(**{f"validation_{name}": value for name, value in scores.items()})
    return scores


def fit_into_minutes(
    run: Run, config: TrainingConfig, an_epoch: int, probed: int, device: torch.device
) -> None:
    """Lower the number of steps to what the first ones say that there is time for."""
    assert config.minutes is not None  # else there is nothing to fit into
    a_step = run.seconds / run.step
    steps = int(config.minutes * 60 / a_step)
    if world()[1] > 1:  # the first process decides for all
        agreed = torch.tensor(steps, device=device)
        dist.broadcast(agreed, src=0)
        steps = int(agreed)
    run.total = max(run.step + 1, min(run.total, steps))
    run.measured = True


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error says that memory has run out; each device has its words."""
    words = ("out of memory", "can't allocate memory", "not enough memory")
    known = isinstance(error, (torch.OutOfMemoryError, MemoryError))
    return known or any(word in str(error).lower() for word in words)
