"""What the chapter on trained vision reads from records, and counts by itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from workbench import models, recording, results

# Published by their authors: who, accuracy in percent, parameters, what it took
CIFAR10 = (
    ("UvA deep learning tutorial 15", "75.6", "3.2 M", "180 passes, TitanRTX, < 1 h"),
    ("kentaroy47, patch 4", "80, 85, 89", "", "200, 500, 1000 passes"),
    ("omihub777/ViT-CIFAR", "90.92", "6.3 M", "200 passes, V100, 2 h 14 min"),
    ("Lee et al. 2021, plain ViT", "93.58", "2.7 M", "300 passes, as its code counts"),
    ("airbench94, convolutional", "94.01", "", "A100, 2.59 s"),
)


def accuracy_by_size(
    prefix: str, whole: int, folder: Path = results.FOLDER
) -> dict[int, list[float]]:
    """Read the records PREFIX_N, trained on N images, and PREFIX, trained on all.

    Args:
        prefix: such as "digits".
        whole: how many images PREFIX itself was trained on.
        folder: of the records.

    Returns:
        Number of images -> accuracy of each seed in percent, fewest images first.
    """
    curve = {}
    for name in results.names(folder):
        if match := re.fullmatch(rf"{re.escape(prefix)}(?:_(\d+))?", name):
            record = results.read_record(name, folder)
            size = int(match[1] or whole)
            curve[size] = results.values(record, "test", "accuracy")
    return dict(sorted(curve.items()))


def cifar10_table(folder: Path = results.FOLDER, table: Path = recording.TABLE) -> str:
    """Write a Markdown table: what is published, and our runs, recorded or not yet.

    Args:
        folder: of the records.
        table: runs.yml, which lists what is to be run.
    """
    lines = ["| who | accuracy, % | parameters | what it took |", "|---|---|---|---|"]
    lines += [
        f"| {who}, *published* | {accuracy} | {size} | {cost} |"
        for who, accuracy, size, cost in CIFAR10
    ]
    for name, run in recording.read_runs(table).items():
        if "--data cifar10" not in run["train"]:
            continue
        if name in results.names(folder):
            lines.append(recorded_row(name, results.read_record(name, folder)))
        else:
            command = f"`python -m workbench record {name}`"
            lines.append(f"| ours, `{name}` | *still to be run* | | {command} |")
    return "\n".join(lines)


def recorded_row(name: str, record: dict[str, Any]) -> str:
    """Write the row of one of our runs."""
    accuracy = results.mean(record, "test", "accuracy")
    low, high = results.spread(record, "test", "accuracy")
    seconds = sum(record["train_seconds"]) / len(record["train_seconds"])
    score = f"{accuracy:.2f} ({low:.2f} to {high:.2f}, {len(record['seeds'])} seeds)"
    size = f"{record['parameters'] / 1e6:.1f} M"
    cost = f"{record['training']['epochs']} passes, {record['device']}, {seconds:.0f} s"
    copy = record["data"].get("copy", "")
    return f"| ours, `{name}`, {copy} | {score} | {size} | {cost} |"


class Requests(TorchDispatchMode):
    """Count the operations that a device is asked for; a view of a tensor is none."""

    count = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple = (), kwargs: Any = None
    ) -> Any:
        """Count an operation, and do it."""
        self.count += not (function.is_view or "view" in function.__name__)
        return function(*args, **(kwargs or {}))


def cost_of_step(config: models.VisionConfig, batch: int) -> tuple[int, int]:
    """Count what one training step asks for, without memory for it.

    The augmentation and the optimiser are not counted.

    Args:
        config: of the model.
        batch: images.

    Returns:
        Floating-point operations of its matrix products, forward and backward, and the
        number of operations that PyTorch asks the device for, one by one.
    """
    with torch.device("meta"):
        model = models.build(config)
        images = torch.zeros(batch, config.channels, *config.sides)
        labels = torch.zeros(batch, dtype=torch.long)
    with FlopCounterMode(display=False) as products, Requests() as requests:
        F.cross_entropy(model(images), labels).backward()
    return products.get_total_flops(), requests.count
