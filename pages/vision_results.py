"""What the chapter on trained vision reads from records, and counts by itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from pages import results_tables
from workbench.model import models
from workbench.training import recording
from workbench.use import results


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
    published = results_tables.published("cifar10")
    lines = [published.replace("system (published)", "system")]
    for name, run in results_tables.runs_of("cifar10", table).items():
        cells = [results_tables.why_not(run), "", results_tables.command(name)]
        if name in results.names(folder):
            cells = recorded_cells(results.read_record(name, folder))
        lines.append(f"| ours, `{name}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def recorded_cells(record: dict[str, Any]) -> list[str]:
    """Write the score, the size and the cost of one of our runs."""
    score = results_tables.score(record, "test", "accuracy")
    seeds = len(record["seeds"])
    seconds = results_tables.seconds(record)
    device = results_tables.device(record)
    cost = f"{record['training']['epochs']} passes, {seconds} s on {device}"
    return [
        f"{score}, {seeds} seed{'s' * (seeds > 1)}, {results_tables.copy_of(record)}",
        f"{record['parameters'] / 1e6:.1f} M",
        cost,
    ]


def gpu_steps(folder: Path = results.FOLDER) -> str:
    """Write a Markdown table: how long a step took on a GPU, in each way."""
    ways = {
        "as the loop asks for it": ("gpu/translator_written", "gpu/vit_written"),
        "captured": ("gpu/translator_captured", None),
        "compiled and captured": (None, "cifar10_gpu"),
    }
    rows = []
    for way, names in ways.items():
        records = [
            results.read_record(name, folder) if name else None for name in names
        ]
        rows.append([way, *("–" if r is None else f"{a_step(r):.1f}" for r in records)])
    head = ["a step, ms", "translator, 8192 tokens a side", "ViT, 512 images"]
    return results_tables.table(head, rows)


def a_step(record: dict[str, Any]) -> float:
    """Return the milliseconds of a step of training, of the first seed."""
    steps = record["history_of_training"]["step"][-1]
    return float(1e3 * record["train_seconds"][0] / steps)


def attention_of(model: Any, images: torch.Tensor) -> torch.Tensor:
    """Return the attention weights of a Vision Transformer, (layers, B, heads, T, T).

    Args:
        model: built of the course's parts; every layer's attention returns its weights.
        images: (B, C, H, W), normalised as in training.
    """
    seen: list[torch.Tensor] = []
    handles = [
        layer.attention.register_forward_hook(lambda *call: seen.append(call[2][1]))
        for layer in model.encoder.layers
    ]
    try:
        with torch.no_grad():
            model(images)
    finally:
        for handle in handles:
            handle.remove()
    return torch.stack(seen)


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
