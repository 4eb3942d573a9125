"""What the chapter on trained vision reads from records, and counts by itself."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
import yaml
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from pages import results_tables
from workbench.errors import WorkbenchError
from workbench.model import models
from workbench.training import recording
from workbench.use import results

PREDICTED = results.FOLDER / "predicted.yml"
WAYS: dict[str, tuple[str, dict[str, str]]] = {
    # as predicted.yml names them -> in words, and the record of each measured model
    "eager": (
        "eager",
        {"translator": "gpu/translator_written", "vit": "gpu/vit_written"},
    ),
    "compiled": ("compiled, one graph", {}),
    "captured": ("captured", {"translator": "gpu/translator_captured"}),
    "both": ("compiled and captured", {"vit": "cifar10_gpu"}),
}


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


def gpu_steps(folder: Path = results.FOLDER, predicted: Path = PREDICTED) -> str:
    """Write a Markdown table: what a step on a GPU was to take, and what it took.

    Args:
        folder: of the records.
        predicted: predicted.yml.
    """
    foreseen = read_predicted(predicted)
    head = ["a step, ms"]
    head += [f"translator, {foreseen['translator']['of']}, *predicted*"]
    head += ["8192 tokens a side, measured"]
    head += [f"ViT, {foreseen['vit']['of']}, *predicted*", "measured"]
    rows = []
    for way, (in_words, names) in WAYS.items():
        row = [in_words]
        for model in ("translator", "vit"):
            row.append("–".join(f"{each:g}" for each in ends(foreseen[model][way])))
            row.append("*not measured*")
            if model in names:
                row[-1] = f"{a_step(results.read_record(names[model], folder)):.1f}"
        rows.append(row)
    return results_tables.table(head, rows)


def times_predicted(
    model: str, way: str, folder: Path = results.FOLDER, predicted: Path = PREDICTED
) -> float:
    """Return how many times as long as predicted a measured step took.

    Args:
        model: "translator" or "vit".
        way: a key of WAYS, in which the model was measured.
        folder: of the records.
        predicted: predicted.yml.
    """
    _, names = WAYS[way]
    record = results.read_record(names[model], folder)
    foreseen = read_predicted(predicted)[model]
    return a_step(record) / (max(ends(foreseen[way])) * foreseen["as_measured"])


def read_predicted(path: Path = PREDICTED) -> dict[str, Any]:
    """Read what a step was predicted to take: model -> way -> milliseconds.

    Raises:
        WorkbenchError: the file is missing, or does not say what its numbers are from.
    """
    try:
        found: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise WorkbenchError(f"{path} cannot be read: {error}") from None
    if not found.get("source"):
        raise WorkbenchError(f"{path} has no source")
    return found


def ends(predicted: float | list[float]) -> list[float]:
    """Return the first and the last value of a range, or the one that was predicted."""
    return predicted if isinstance(predicted, list) else [predicted]


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
