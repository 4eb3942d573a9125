"""Where a run is trained: devices, the processes of ``torchrun``, random states."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist

from workbench.errors import WorkbenchError


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


def multiplies_bfloat16(device: torch.device) -> bool:
    """Tell whether a device has arithmetic for bfloat16; some CPUs imitate it."""
    if device.type != "cpu":
        return True
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def wait(device: torch.device) -> None:
    """Wait until the device has done what it was asked for."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    if device.type == "mps":
        torch.mps.synchronize()


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
