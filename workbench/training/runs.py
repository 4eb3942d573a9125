"""What every training command does before and after the training itself."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from workbench.errors import WorkbenchError
from workbench.model import models
from workbench.training import curves, records
from workbench.training.checkpoint import CHECKPOINT
from workbench.training.devices import choose_device, processes, world
from workbench.training.loop import TrainingConfig

CURVES_FILE = "curves.png"
NO_CURVES = ("compile_seconds", "train_seconds", "examples")


def train_each(
    arguments: argparse.Namespace,
    train: Callable[[argparse.Namespace, torch.device], None],
) -> int:
    """Train with one seed after the other, in one process: data are read once."""
    records.commit()  # before another one is made
    with processes(choose_device(arguments.device)) as device:
        for seed in arguments.seed:
            one = argparse.Namespace(**{**vars(arguments), "seed": seed})
            if len(arguments.seed) > 1:
                one.out = arguments.out / f"seed_{seed}"
                if arguments.resume and (one.out / records.FILE).exists():
                    continue
                one.resume = arguments.resume and (one.out / CHECKPOINT).exists()
            train(one, device)
    return 0


def prepare_folder(out: Path, resume: bool) -> None:
    """Make the folder; keep an unfinished run from being overwritten.

    Raises:
        WorkbenchError: it cannot be made, or holds a checkpoint and resume is not set.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WorkbenchError(f"{out} cannot be made ({error.strerror})") from error
    path = out / CHECKPOINT
    if path.exists() and not resume:
        raise WorkbenchError(
            f"{path} is of a run that did not end: go on with --resume, or delete it "
            "to begin anew"
        )


@dataclass(frozen=True)
class Trained:
    """A model after training, and what is to be known about it."""

    model: nn.Module
    config: models.Config
    training: TrainingConfig
    history: dict[str, list]
    device: torch.device
    begun: float  # by time.perf_counter()


def finish(
    task: str,
    arguments: argparse.Namespace,
    trained: Trained,
    data: dict[str, Any],
    scores: dict[str, float],
    **more: Any,
) -> None:
    """Write the curves and the record, print the scores, drop the checkpoint."""
    out = arguments.out
    drawn = {k: v for k, v in trained.history.items() if k not in NO_CURVES}
    curves.draw(drawn, out / CURVES_FILE)
    record = records.make_record(
        task,
        data,
        seed=trained.training.seed,
        device=trained.device,
        parameters=models.parameters(trained.model),
        history=trained.history,
        scores={data["test"]: scores},
        processes=world()[1],
        wall_seconds=[round(time.perf_counter() - trained.begun, 3)],
        model=asdict(trained.config),
        training=asdict(trained.training),
        history_of_training=drawn,
        **more,
    )
    records.write(out / records.FILE, record)
    (out / CHECKPOINT).unlink(missing_ok=True)
    print(f"{task} with {record['parameters']:,} parameters in {out}")
    print(f"trained for {trained.history['train_seconds'][0]:.1f} s on ", end="")
    print(record["device"])
    for name, value in scores.items():
        print(f"{name:28} {value:.2f}")
