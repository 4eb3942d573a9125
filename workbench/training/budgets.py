"""Budgets of results/budgets.yml, and whether a record keeps to its own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from workbench.errors import WorkbenchError
from workbench.use.results import FOLDER

TABLE = FOLDER / "budgets.yml"
# A score that is trained again may differ by what the seeds differ by, and at least so:
SHARE = 0.01


def read_budgets(path: Path = TABLE) -> dict[str, dict[str, Any]]:
    """Read the budgets: name -> about, minutes, and cores, unless it is of a GPU.

    Raises:
        WorkbenchError: the file is not there, or a budget lacks something.
    """
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise WorkbenchError(f"{path} cannot be read: {error}") from None
    for name, budget in found.items():
        for key in ("about", "minutes"):
            if key not in budget:
                raise WorkbenchError(f"{path}: the budget {name} has no {key}")
    return found


def excesses(record: dict[str, Any], budget: dict[str, Any]) -> list[str]:
    """Say where a record uses more than its budget, or something else."""
    found = []
    longest = max(record["train_seconds"]) / 60
    if longest > budget["minutes"]:
        found.append(f"{longest:.1f} minutes of training, not {budget['minutes']}")
    threads = re.search(r"(\d+) threads$", record["device"])
    if bool(threads) != ("cores" in budget):
        found.append(f"trained on {record['device']}, not on {budget['about']}")
    elif threads:
        cores = int(threads[1]) * record.get("processes", 1)
        if cores > budget["cores"]:
            found.append(f"{cores} cores, not {budget['cores']}")
    return found


def disagreements(entry: dict[str, Any], again: dict[str, Any]) -> list[str]:
    """Say where a record that was made again differs from the one that is there.

    Args:
        entry: the record that is there.
        again: made from the same run, perhaps on another machine.
    """
    found = []
    for key in ("task", "data", "parameters", "seeds"):
        if entry[key] != again[key]:
            found.append(f"{key}: {entry[key]} there, {again[key]} now")
    for test, metrics in entry["scores"].items():
        for metric, values in metrics.items():
            now = again["scores"].get(test, {}).get(metric)
            if now is None:
                found.append(f"{metric} on {test} is missing")
                continue
            there, here = sum(values) / len(values), sum(now) / len(now)
            allowed = max(max(values) - min(values), SHARE * abs(there))
            if abs(there - here) > allowed:
                found.append(
                    f"{metric} on {test}: {there:.2f} there, {here:.2f} now, and at "
                    f"most {allowed:.2f} apart is allowed"
                )
    return found
