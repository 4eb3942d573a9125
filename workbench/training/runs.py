"""What every training does before and after the training itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from workbench.errors import WorkbenchError
from workbench.model import models
from workbench.training import curves, records
from workbench.training.checkpoint import CHECKPOINT
from workbench.training.devices import processes, world
from workbench.training.loop import TrainingConfig

CURVES_FILE = "curves.png"
NO_CURVES = ("compile_seconds", "train_seconds", "examples")


@dataclass(frozen=True, kw_only=True)
class TrainingRun:
    """What is to be trained, whatever the model: the data, how, and where to write.

    Args:
        data: the data set, such as ``phrasebook`` or ``text:FILE.tsv``.
        training: its seed is that of the run.
        out: the folder of what is trained.
        data_dir: holds the data set's files; None: they are downloaded once.
        parts: a folder with somebody's ``transformer/``; None: the reference.
        resume: go on from the checkpoint in ``out``.
        split: of the data, "test" or "validation", to score on at the end.
    """

    data: str
    training: TrainingConfig
    out: Path
    data_dir: Path | None = None
    parts: Path | None = None
    resume: bool = False
    split: str = "test"


Run = TypeVar("Run", bound=TrainingRun)


def train_each(
    run: Run,
    seeds: Sequence[int],
    device: torch.device,
    train: Callable[[Run, torch.device], None],
) -> None:
    """Train with one seed after the other, in one process: data are read once.

    Several seeds have folders of their own, ``seed_N`` in the run's.
    """
    records.commit()  # before another one is made
    with processes(device) as place:
        for seed in seeds:
            one = replace(run, training=replace(run.training, seed=seed))
            if len(seeds) > 1:
                out = run.out / f"seed_{seed}"
                if run.resume and (out / records.FILE).exists():
                    continue
                resume = run.resume and (out / CHECKPOINT).exists()
                one = replace(one, out=out, resume=resume)
            train(one, place)


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
    out: Path,
    trained: Trained,
    data: dict[str, Any],
    scores: dict[str, float],
    **more: Any,
) -> None:
    """Write the curves and the record, print the scores, drop the checkpoint."""
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
