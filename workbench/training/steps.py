"""How one step of training is taken: as it is written, compiled, or captured.

A small model's step is some thousand short operations, and a GPU that is handed them
one by one spends its time waiting for the next. ``compile`` merges them; ``capture``
records a whole step, from the forward pass to the optimizer, as one CUDA graph for
each shape of batch, and then only plays it again. The two can be combined.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from workbench.errors import WorkbenchError
from workbench.training.checkpoint import run_tensors
from workbench.training.devices import random_state, set_random_state, wait, world

if TYPE_CHECKING:
    from workbench.training.loop import Batches, Run, TrainingConfig

Batch = tuple[torch.Tensor, ...]
Loss = Callable[[nn.Module, Batch], torch.Tensor]
Share = Callable[[Batch], tuple[Batch, torch.Tensor | None]]

MOST_GRAPHS = 64  # one for each fixed shape of a batch
WARM = {"cuda": 3}  # steps before a CUDA graph is recorded; one compiles elsewhere


@dataclass(frozen=True)
class Recorded:
    """A step that is played again, on whatever its own tensors hold."""

    batch: Batch
    play: Callable[[], object]
    loss: torch.Tensor


class Steps:
    """Takes the steps of a run.

    Args:
        run: whose weights are changed.
        loss_of: the mean loss of a batch, shape (); it calls ``model(...)`` once.
        share: gives this process's rows of a batch, and their weight or None.
        config: says whether to compile and to capture.
        device: where the run is.

    Raises:
        WorkbenchError: several processes are to capture, which has never been tried.
    """

    def __init__(
        self,
        run: Run,
        loss_of: Loss,
        share: Share,
        config: TrainingConfig,
        device: torch.device,
    ) -> None:
        self.run, self.share, self.config, self.device = run, share, config, device
        self.model, self.loss_of = distributed(run.model, device), loss_of
        self.written = loss_of  # as it stands, whatever is compiled
        self.recorded: dict[tuple, Recorded] = {}
        self.pool: Any = None  # the memory that all graphs share: one plays at a time
        self.place = device.type in ("cuda", "mps")
        if config.capture and world()[1] > 1:
            raise WorkbenchError("--capture is for one process: leave it out")
        if config.compile:
            self._compile()

    def _compile(self) -> None:
        """Compile model and loss together: half of what is merged lies between them."""
        torch._dynamo.config.recompile_limit = MOST_GRAPHS
        # what is captured as a whole must not record graphs of its own
        by_itself = self.device.type == "cuda" and not self.config.capture
        mode = "reduce-overhead" if by_itself else "default"
        if world()[1] > 1:  # gradients are shared between its pieces
            self.model = cast(
                nn.Module, torch.compile(self.model, mode=mode, dynamic=False)
            )
        else:
            self.loss_of = torch.compile(self.loss_of, mode=mode, dynamic=False)

    def prepare(self, batches: Batches) -> float:
        """Compile and record for each shape, by steps that are undone.

        Returns:
            The seconds that it took.
        """
        if not (self.config.compile or self.config.capture or self.place):
            return 0.0
        begin = time.perf_counter()
        seen: set[tuple] = set()
        state = random_state(self.device)
        self.run.model.train()
        for batch in batches.epoch(0):
            own, factor = self.share(batch)
            if shapes_of(own) in seen:
                continue
            if not seen:
                self.place = self.place and self._misses_device(own)
            seen.add(shapes_of(own))
            if self.config.compile or self.config.capture:
                with undone(self.run), aside(self.device):
                    for _ in range(WARM.get(self.device.type, 1)):
                        self._step(own, factor)
            if self.config.capture:
                self._record(own)
            elif not self.config.compile:
                break  # there is nothing to prepare
        wait(self.device)
        set_random_state(state, self.device)
        return time.perf_counter() - begin

    def _misses_device(self, batch: Batch) -> bool:
        """Tell whether the model makes tensors, such as masks, on the CPU.

        Then they are to be made on the device, which nothing can be compiled under.
        """
        self.place = False
        try:
            with torch.no_grad(), self._context():
                self.written(self.model, batch)
        except RuntimeError as error:
            if "same device" in str(error) or "device" in type(error).__name__.lower():
                return True
            raise
        return False

    def take(self, batch: Batch, rate: float) -> torch.Tensor:
        """Change the weights once; return the loss, shape (), on the device.

        With several processes it is this one's part of the mean: their mean is the
        loss. It holds until the next step.
        """
        own, factor = self.share(batch)
        for group in self.run.optimizer.param_groups:
            if isinstance(group["lr"], torch.Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate
        recorded = self.recorded.get(shapes_of(own))
        if recorded is None:
            return self._step(own, factor)
        torch._foreach_copy_(list(recorded.batch), list(own))
        recorded.play()
        return recorded.loss

    def _step(self, batch: Batch, factor: torch.Tensor | None) -> torch.Tensor:
        if self.config.compile and self.device.type == "cuda":
            torch.compiler.cudagraph_mark_step_begin()
        with self._context():
            loss = self.loss_of(self.model, batch)
        if factor is not None:
            loss = loss * factor
        loss.backward()
        if self.config.clip:
            nn.utils.clip_grad_norm_(self.run.model.parameters(), self.config.clip)
        self.run.optimizer.step()
        self.run.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def _record(self, batch: Batch) -> None:
        own = tuple(tensor.clone() for tensor in batch)
        if self.device.type != "cuda":  # no graphs there: the same, step by step
            loss = torch.zeros((), device=self.device)
            play = lambda: loss.copy_(self._step(own, None))  # noqa: E731
            self.recorded[shapes_of(own)] = Recorded(own, play, loss)
            return
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self.pool):
                loss = self._step(own, None)
        except RuntimeError as error:
            raise WorkbenchError(
                f"a step cannot be captured ({str(error).splitlines()[0]}): leave out "
                "--capture"
            ) from error
        self.pool = self.pool or graph.pool()
        self.recorded[shapes_of(own)] = Recorded(own, graph.replay, loss)

    @contextmanager
    def _context(self) -> Iterator[None]:
        """Use the precision asked for; if need be, make new tensors on the device."""
        precision: AbstractContextManager = nullcontext()
        if self.config.precision == "bfloat16":
            precision = torch.autocast(
                self.device.type,
                dtype=torch.bfloat16,
                cache_enabled=not self.config.capture,  # it would play old casts again
            )
        with precision, self.device if self.place else nullcontext():
            yield


def distributed(model: nn.Module, device: torch.device) -> nn.Module:
    """Let the processes of ``torchrun`` share gradients, if there are several."""
    if world()[1] == 1:
        return model
    devices = [device.index] if device.type == "cuda" else None
    return DistributedDataParallel(model, device_ids=devices)


def shapes_of(batch: Batch) -> tuple:
    """Return the shapes of a batch's tensors: one graph serves all alike."""
    return tuple(tensor.shape for tensor in batch)


@contextmanager
def aside(device: torch.device) -> Iterator[None]:
    """Use a stream of its own, as what is to be captured wants its first steps."""
    if device.type != "cuda":
        yield
        return
    stream, usual = torch.cuda.Stream(device), torch.cuda.current_stream(device)
    stream.wait_stream(usual)
    with torch.cuda.stream(stream):
        yield
    usual.wait_stream(stream)


@contextmanager
def undone(run: Run) -> Iterator[None]:
    """Put weights and the optimizer's state back behind the block, in their place."""
    before = {name: value.clone() for name, value in run_tensors(run).items()}
    yield
    with torch.no_grad():
        for name, value in run_tensors(run).items():
            if name in before:
                value.copy_(before[name])
            else:  # the optimizer had none yet
                value.zero_()


def count_rows(batch: Batch) -> torch.Tensor:
    """Return the number of examples, shape ()."""
    return torch.tensor(float(batch[0].shape[0]), device=batch[0].device)


def share_of(weight_of: Callable[[Batch], torch.Tensor]) -> Share:
    """Return what splits a batch: this process's rows, and their weight.

    Processes have differently many words. Gradients are averaged over the processes,
    so that each loss is to be weighted for the mean over the words of all.
    """

    def share(batch: Batch) -> tuple[Batch, torch.Tensor | None]:
        rank, count = world()
        if count == 1:
            return batch, None
        own = tuple(tensor[rank::count] for tensor in batch)
        all_of_it = weight_of(batch).clamp(min=1)
        return own, weight_of(own) * count / all_of_it

    return share
