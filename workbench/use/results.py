"""The recorded runs of results/, for whoever shows them.

A record says how a run was made and what it scored: see ``workbench.training.records``.
Pages take their figures from here, so that none is typed by hand.
"""

from __future__ import annotations

import hashlib
import statistics
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError
from workbench.training import records

HERE = Path(__file__).resolve().parents[1]
# a wheel brings them along; in the sources they have a folder of their own
FOLDER = HERE / "recorded" if (HERE / "recorded").is_dir() else HERE.parent / "results"
MODELS, OUTPUTS = "models", "outputs"


def names(folder: Path = FOLDER) -> list[str]:
    """Name the runs that are recorded, in alphabetical order."""
    return sorted(path.stem for path in folder.glob("*.json"))


def read_record(name: str, folder: Path = FOLDER) -> dict[str, Any]:
    """Read the record of a run.

    Raises:
        WorkbenchError: there is none of this name, or it is damaged.
    """
    path = folder / f"{name}.json"
    if not path.is_file():
        there = ", ".join(names(folder)) or "nothing"
        raise WorkbenchError(
            f"{path}: no such run is recorded; there is {there}. "
            f"Make it with  python -m workbench record {name}"
        )
    return records.read(path)


def values(record: dict[str, Any], test: str, metric: str) -> list[float]:
    """Return a score of each seed.

    Raises:
        WorkbenchError: the run was not scored so.
    """
    try:
        return record["scores"][test][metric]
    except KeyError:
        there = [f"{t} {m}" for t, found in record["scores"].items() for m in found]
        raise WorkbenchError(
            f"the record has no {metric} on {test}; it has {', '.join(there)}"
        ) from None


def mean(record: dict[str, Any], test: str, metric: str) -> float:
    """Return the mean of a score over the seeds."""
    return statistics.fmean(values(record, test, metric))


def spread(record: dict[str, Any], test: str, metric: str) -> tuple[float, float]:
    """Return the lowest and the highest score of the seeds."""
    found = values(record, test, metric)
    return min(found), max(found)


def model_folder(name: str, folder: Path = FOLDER) -> Path:
    """Return where the trained model of a run is kept.

    Raises:
        WorkbenchError: the model of this run was not kept.
    """
    path = folder / MODELS / name
    if not path.is_dir():
        kept = sorted(each.name for each in (folder / MODELS).glob("*/"))
        raise WorkbenchError(
            f"{path}: no model of this run is kept; there is "
            f"{', '.join(kept) or 'none'}"
        )
    return path


def read_outputs(name: str, folder: Path = FOLDER) -> list[str]:
    """Read what the model of a run said of its test set: an example a line.

    Raises:
        WorkbenchError: it was not kept, or is not the file of the record.
    """
    record, path = read_record(name, folder), folder / OUTPUTS / f"{name}.txt"
    if "outputs" not in record:
        raise WorkbenchError(
            f"{folder / name}.json: neither the model of this run is kept nor what it "
            "said of the test set. Make the record again with  "
            f"python -m workbench record {name}"
        )
    try:
        content = path.read_bytes()
    except OSError as error:
        raise WorkbenchError(
            f"{path} cannot be read ({error.strerror}): it comes with {name}.json"
        ) from error
    if hashlib.sha256(content).hexdigest() != record["outputs"]["sha256"]:
        raise WorkbenchError(
            f"{path} is not the file of {name}.json: take both from the same commit"
        )
    return content.decode("utf-8").removesuffix("\n").split("\n")
