"""Recorded runs of small language models, for a scaling law: results/scaling.json."""

from __future__ import annotations

import json
import math
from pathlib import Path

from workbench.errors import WorkbenchError
from workbench.results import FOLDER

FILE = "scaling.json"
COUNTS = ("parameters", "embedding", "tokens")  # whole numbers
LOSSES = ("bits_per_byte", "nats_per_token")
FEWEST = 6  # a law has five numbers

Run = dict[str, float]


def recorded(folder: Path = FOLDER) -> list[Run]:
    """Return the recorded runs, the smallest budget first; an empty list if none are.

    Raises:
        WorkbenchError: the file is damaged.
    """
    path = folder / FILE
    return read(path) if path.is_file() else []


def read(path: Path) -> list[Run]:
    """Read a file of runs.

    Returns:
        For each run ``parameters`` (without those of the embedding), ``embedding``,
        ``tokens`` that it was trained on, ``bits_per_byte`` and ``nats_per_token``; the
        smallest budget first.

    Raises:
        WorkbenchError: it cannot be read, or is no list of at least six such runs.
    """
    try:
        runs = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WorkbenchError(f"{path} cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise WorkbenchError(
            f"{path} is not JSON ({error}): it was cut or edited, take a copy of the "
            "original"
        ) from None
    if not isinstance(runs, list) or len(runs) < FEWEST:
        raise WorkbenchError(
            f"{path} holds no list of at least {FEWEST} runs, which a law needs"
        )
    for number, run in enumerate(runs):
        problem = problem_of(run)
        if problem:
            raise WorkbenchError(f"{path}: run {number} {problem}")
    return sorted(runs, key=budget)


def problem_of(run: object) -> str:
    """Say what is wrong with a run; "" if nothing is."""
    if not isinstance(run, dict):
        return f"is {run!r} and no object with keys"
    for key in (*COUNTS, *LOSSES):
        value = run.get(key)
        if key not in run:
            return f"has no {key}"
        if key in COUNTS and (type(value) is not int or value < 1):
            return f"has {key} {value!r}, and must have a whole number from 1"
        if key in LOSSES and not (type(value) in (int, float) and 0 < value < math.inf):
            return f"has {key} {value!r}, and must have a number above 0"
    return ""


def budget(run: Run) -> float:
    """Return about how many operations the training took: 6 · N · D."""
    return 6.0 * (run["parameters"] + run["embedding"]) * run["tokens"]
