"""What chapter 10 reads from records, and what a training step costs."""

import json
from pathlib import Path

import pytest
import torch

from pages import results_tables, vision_results
from workbench.errors import WorkbenchError
from workbench.model import models
from workbench.training import records

RUNS = """
cifar10_gpu: {about: a run, needs: gpu, train: vit --data cifar10, seeds: [0, 1]}
digits: {about: another, train: vit --data digits, seeds: [0]}
"""


def write(folder: Path, name: str, accuracies: list[float]) -> None:
    record = dict.fromkeys(records.KEYS, "") | {
        "data": {"name": "cifar10", "copy": "official binary files"},
        "device": "a GPU",
        "parameters": 2_697_610,
        "seeds": list(range(len(accuracies))),
        "train_seconds": [50.0] * len(accuracies),
        "compile_seconds": [0.0] * len(accuracies),
        "training": {"epochs": 200},
        "scores": {"test": {"accuracy": accuracies}},
    }
    (folder / f"{name}.json").write_text(json.dumps(record), encoding="utf-8")


def test_records_are_put_together_by_the_number_of_images(tmp_path: Path) -> None:
    for name, accuracy in [("digits", 99.0), ("digits_400", 97.0), ("digits_50", 80.0)]:
        write(tmp_path, name, [accuracy, accuracy + 1])
    for other in ("digits_class", "digits_cnn", "digits_cnn_50"):
        write(tmp_path, other, [1.0])
    curve = vision_results.accuracy_by_size("digits", 1295, tmp_path)
    assert list(curve.items()) == [(50, [80, 81]), (400, [97, 98]), (1295, [99, 100])]
    assert list(vision_results.accuracy_by_size("digits_cnn", 7, tmp_path)) == [7, 50]


def test_a_run_that_is_not_recorded_is_said_to_be_missing(tmp_path: Path) -> None:
    (tmp_path / "runs.yml").write_text(RUNS, encoding="utf-8")
    table = vision_results.cifar10_table(tmp_path, tmp_path / "runs.yml")
    ours = [line for line in table.splitlines() if "ours" in line]
    assert len(ours) == 1 and "no time was left on a GPU" in ours[0]
    assert "python -m workbench record cifar10_gpu" in ours[0]
    published = results_tables.read_published()["cifar10"]
    assert table.count("*published*") == len(published)


def test_a_recorded_run_shows_mean_spread_seeds_and_copy(tmp_path: Path) -> None:
    (tmp_path / "runs.yml").write_text(RUNS, encoding="utf-8")
    write(tmp_path, "cifar10_gpu", [94.0, 95.0])
    table = vision_results.cifar10_table(tmp_path, tmp_path / "runs.yml")
    row = table.splitlines()[-1]
    assert "94.50 (94.00–\u206095.00), 2 seeds" in row and "no GPU" not in table
    for part in ("official binary files", "2.7 M", "200 passes", "a GPU", "50 s"):
        assert part in row


def test_a_step_on_a_gpu_stands_beside_what_was_predicted(tmp_path: Path) -> None:
    (tmp_path / "gpu").mkdir()
    steps = {"gpu/translator_written": 30, "gpu/vit_written": 40}
    steps |= {"gpu/translator_captured": 13, "cifar10_gpu": 14}
    for name, milliseconds in steps.items():
        write(tmp_path, name, [90.0])
        record = records.read(tmp_path / f"{name}.json")
        record["train_seconds"] = [milliseconds / 10]
        record["history_of_training"] = {"step": [50, 100]}
        records.write(tmp_path / f"{name}.json", record)
    predicted = tmp_path / "predicted.yml"
    ways = "eager: 5, compiled: 2, captured: 4, both: [1, 1.5]"
    predicted.write_text(
        "source: counted\n"
        f"translator: {{of: 1 token, as_measured: 1.3, {ways}}}\n"
        f"vit: {{of: 1 image, as_measured: 1, {ways.replace('5', '7')}}}\n"
    )
    rows = vision_results.gpu_steps(tmp_path, predicted).splitlines()[2:]
    missing = "*not measured*"
    assert [row.strip("| ").split(" | ") for row in rows] == [
        ["eager", "5", "30.0", "7", "40.0"],
        ["compiled, one graph", "2", missing, "2", missing],
        ["captured", "4", "13.0", "4", missing],
        ["compiled and captured", "1–1.5", missing, "1–1.7", "14.0"],
    ]
    places = tmp_path, predicted
    times = vision_results.times_predicted
    assert times("translator", "captured", *places) == pytest.approx(13 / 4 / 1.3)
    assert times("vit", "both", *places) == pytest.approx(14 / 1.7)


def test_predictions_are_of_every_way_and_have_a_source(tmp_path: Path) -> None:
    predicted = vision_results.read_predicted()
    for model in ("translator", "vit"):
        assert predicted[model].keys() >= vision_results.WAYS.keys()
    (tmp_path / "predicted.yml").write_text("vit: {eager: 1}\n")
    with pytest.raises(WorkbenchError, match="has no source"):
        vision_results.read_predicted(tmp_path / "predicted.yml")


@pytest.mark.parametrize("batch", [1, 3])
def test_a_step_costs_what_its_matrix_products_add_up_to(batch: int) -> None:
    """Two operations for each product and sum, three products for each forward one."""
    d, layers, d_ff, patch, tokens, classes = 12, 2, 20, 2, 7, 5
    config = models.VisionConfig((4, 6), patch, 3, classes, d, 3, layers, d_ff)
    products = 4 * tokens * d * d + 2 * tokens * d * d_ff + 2 * tokens * tokens * d
    embedding = (tokens - 1) * patch * patch * 3 * d
    forward = batch * (layers * products + embedding + d * classes)
    flops, requests = vision_results.cost_of_step(config, batch)
    # backward: both factors' gradients, but none of the images'
    assert flops == 2 * (3 * forward - batch * embedding)
    assert 100 < requests < 2000


def test_the_number_of_requests_does_not_depend_on_the_batch() -> None:
    config = models.VisionConfig(8, 4, 1, 10, 16, 2, 2, 32)
    assert (
        vision_results.cost_of_step(config, 2)[1]
        == (vision_results.cost_of_step(config, 64)[1])
    )


def test_attention_of_all_layers_is_returned_and_no_hook_stays() -> None:
    config = models.VisionConfig(8, 2, 1, 10, 12, 3, 2, 20)
    model = models.build(config)
    weights = vision_results.attention_of(model, torch.randn(5, 1, 8, 8))
    assert weights.shape == (2, 5, 3, 17, 17)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 5, 3, 17))
    assert not any(part._forward_hooks for part in model.modules())
