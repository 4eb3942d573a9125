"""Checkpoints: tensors and, in the same file's header, JSON. Never pickle."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from autograder.files import replacing
from workbench.errors import WorkbenchError
from workbench.training.devices import random_state, set_random_state, world
from workbench.training.optimizers import state_names

if TYPE_CHECKING:
    from workbench.training.loop import Run, TrainingConfig

CHECKPOINT = "checkpoint.safetensors"
# What a checkpoint holds of a run beside its tensors
PROGRESS = ["step", "total", "seconds", "compile_seconds", "examples"]
PROGRESS += ["measured", "history"]
FREE_TO_CHANGE = {"read_every", "checkpoint_every"}  # between a run and its resumption


def all_random_states(device: torch.device) -> dict[str, torch.Tensor]:
    """Return the generators' states of all processes, by name and rank."""
    states: dict[str, torch.Tensor] = {}
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
    with replacing(path, lasting=True) as beside:
        save_file(tensors, beside, metadata={"run": json.dumps(rest)})


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
        for key in state_names(run.optimizer, weight):
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
