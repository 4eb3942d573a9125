"""What can be typed about any model and any training, and how it is read."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from workbench.training.devices import multiplies_bfloat16
from workbench.training.loop import (
    PRECISIONS,
    READ_EVERY,
    SCHEDULES,
    TrainingConfig,
)
from workbench.training.optimizers import OPTIMIZERS

IMITATED = (
    "this processor has no arithmetic for bfloat16 and imitates it, which takes "
    "several times as long as float32: leave --precision bfloat16 out"
)

# --- What is typed --------------------------------------------------------------------


def add_folder(command: argparse.ArgumentParser) -> None:
    """Describe the folder of a trained model."""
    command.add_argument(
        "folder", type=Path, metavar="DIR", help="the folder that train wrote"
    )


def add_data_folder(command: argparse.ArgumentParser) -> None:
    """Describe where data are."""
    command.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="folder with the data set's files; default: download them once",
    )


def add_place(command: argparse.ArgumentParser, parts: bool = True) -> None:
    """Describe where to compute, and with whose parts."""
    command.add_argument(
        "--device", default="auto", help="auto (CUDA, then MPS, then cpu) or a name"
    )
    if not parts:
        command.set_defaults(parts=None)
        return
    command.add_argument(
        "--parts",
        type=Path,
        metavar="DIR",
        help="folder with your own transformer/, as assemble makes it",
    )


def add_beam(command: argparse.ArgumentParser, beam: str, alpha: str) -> None:
    """Describe the search for a translation, and what it is if nothing is typed."""
    command.add_argument(
        "--beam",
        type=positive,
        metavar="N",
        help=f"hypotheses kept; 1 is greedy (default: {beam})",
    )
    command.add_argument(
        "--alpha", type=float, help=f"length penalty of the beam (default: {alpha})"
    )


def positive(text: str) -> int:
    """Read a whole number above 0."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def not_negative(text: str) -> int:
    """Read a whole number from 0 upwards."""
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must be at least 0, not {number}")
    return number


def add_score(command: argparse.ArgumentParser, text: str) -> None:
    """Describe the split that a model is scored on."""
    command.add_argument(
        "--score", choices=["test", "validation"], default="test", help=text
    )


def add_training(
    command: argparse.ArgumentParser,
    default: str,
    names: str,
    unit: str,
    shape: tuple[str, ...] = ("layers", "heads", "d-model", "d-ff"),
) -> None:
    """Describe what all kinds of training have in common."""
    ours = "heads" in shape  # made of the course's parts
    command.add_argument("--data", default=default, metavar="NAME", help=names)
    add_data_folder(command)
    command.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="where to write"
    )
    command.add_argument(
        "--resume",
        action="store_true",
        help="go on where it stopped; of several seeds, those that are done are kept",
    )
    add_place(command, parts=ours)
    add_score(
        command, "on what to score at the end; recipes are compared on validation"
    )
    length = command.add_argument_group("how long")
    length.add_argument("--epochs", type=positive, metavar="N")
    length.add_argument("--steps", type=positive, metavar="N", help="instead of epochs")
    length.add_argument(
        "--minutes",
        type=float,
        help="at most about so long; the learning rate's schedule is fitted into it",
    )
    fast = command.add_argument_group("how fast")
    fast.add_argument("--batch", type=positive, metavar="N", help=f"{unit}, in a step")
    if ours:
        fast.add_argument(
            "--attention",
            choices=["written", "fused"],
            help="as the exercises write it; fused: attention, norms, networks and "
            "projections by one kernel of PyTorch each (the same numbers)",
        )
    fast.add_argument("--compile", action="store_true", help="use torch.compile")
    fast.add_argument(
        "--capture",
        action="store_true",
        help="record a whole step as one CUDA graph for each shape of batch",
    )
    fast.add_argument(
        "--few-shapes",
        action="store_true",
        help="batches of few fixed shapes, the same for all data: less to compile",
    )
    fast.add_argument(
        "--checkpoint-every",
        type=int,
        metavar="STEPS",
        help="0: never (default: every epoch)",
    )
    fast.add_argument(
        "--validate-every",
        type=float,
        metavar="EPOCHS",
        help="0.2: five times an epoch; 0: only at the end",
    )
    fast.add_argument(
        "--precision",
        choices=["auto", *PRECISIONS],
        default="auto",
        help="auto: bfloat16 on CUDA, float32 elsewhere",
    )
    how = command.add_argument_group("what to change (default: the data set's preset)")
    how.add_argument(
        "--seed",
        type=int,
        nargs="+",
        default=[0],
        metavar="N",
        help="several are trained one after the other, each into its own folder "
        "seed_N in DIR (0)",
    )
    how.add_argument("--rate", type=float, help="the largest learning rate")
    how.add_argument("--warmup", type=positive, metavar="STEPS")
    how.add_argument("--schedule", choices=SCHEDULES)
    text = "muon: AdamW, but Muon for the matrices of the layers"
    how.add_argument("--optimizer", choices=OPTIMIZERS, help=text)
    text = "of matrices: a step takes this times the rate off each weight"
    how.add_argument("--weight-decay", type=float, help=text)
    how.add_argument("--smoothing", type=float, help="of the labels, from 0 to 1")
    how.add_argument("--average", choices=["none", "ema", "last-k"])
    how.add_argument("--dropout", type=float)
    for name in shape:
        how.add_argument(f"--{name}", type=positive, metavar="N")


# --- What is read ---------------------------------------------------------------------


def changed(preset: Any, arguments: argparse.Namespace, **names: str) -> Any:
    """Return a preset with the options that were given; names: field=option."""
    given = {}
    for field, option in names.items():
        value = getattr(arguments, option, None)
        if value is not None:
            given[field] = value
    return replace(preset, **given)


def shaped(preset: Any, arguments: argparse.Namespace, **names: str) -> Any:
    """Return a preset with the options about the model's shape."""
    shape = {name: name for name in ("dropout", "layers", "heads", "d_model", "d_ff")}
    return changed(preset, arguments, **shape, **names)


def training_config(
    preset: TrainingConfig, arguments: argparse.Namespace, device: torch.device
) -> TrainingConfig:
    """Return a preset's training with the options that were given."""
    names = (
        *("epochs", "steps", "minutes", "warmup", "schedule", "smoothing"),
        "average",
        "optimizer",
        "weight_decay",
        "seed",
        "attention",
        "checkpoint_every",
        "validate_every",
    )
    precision = arguments.precision
    if precision == "auto":
        precision = "bfloat16" if device.type == "cuda" else "float32"
    if precision == "bfloat16" and not multiplies_bfloat16(device):
        print(IMITATED, file=sys.stderr)
    preset = replace(
        preset,
        precision=precision,
        compile=arguments.compile,
        capture=arguments.capture,
        read_every=READ_EVERY.get(device.type, preset.read_every),
    )
    if arguments.schedule == "noam":
        width = getattr(arguments, "d_model", None) or 128
        preset = replace(preset, d_model=width)
    own = {name: name for name in names}
    return changed(preset, arguments, peak_rate="rate", **own)
