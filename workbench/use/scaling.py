"""Recorded runs of small language models, which ``tools/measure/scaling.py`` trains."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from workbench.errors import WorkbenchError
from workbench.use.results import FOLDER

FILE = "language_model/scaling.json"
COUNTS = ("parameters", "embedding", "tokens")  # whole numbers
LOSS = "nats_per_character"  # a token of these runs is one, and each is one byte
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
        WorkbenchError: it cannot be read, or has no list of at least six such runs.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WorkbenchError(f"{path} cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise WorkbenchError(
            f"{path} is not JSON ({error}): it was cut or edited, take a copy of the "
            "original"
        ) from None
    rows = found.get("runs") if isinstance(found, dict) else None
    if not isinstance(rows, list) or len(rows) < FEWEST:
        raise WorkbenchError(
            f"{path} holds no list of at least {FEWEST} runs, which a law needs"
        )
    for number, row in enumerate(rows):
        problem = problem_of(row)
        if problem:
            raise WorkbenchError(f"{path}: run {number} {problem}")
    return sorted(map(run_of, rows), key=budget)


def run_of(row: dict[str, float]) -> Run:
    """Give a run as the exercise has it."""
    losses = {"bits_per_byte": row[LOSS] / math.log(2), "nats_per_token": row[LOSS]}
    return {key: row[key] for key in COUNTS} | losses


def problem_of(row: object) -> str:
    """Say what is wrong with a run; "" if nothing is."""
    if not isinstance(row, dict):
        return f"is {row!r} and no object with keys"
    for key in (*COUNTS, LOSS):
        value: Any = row.get(key)
        if key not in row:
            return f"has no {key}"
        if key in COUNTS and (type(value) is not int or value < 1):
            return f"has {key} {value!r}, and must have a whole number from 1"
        if key == LOSS and not (type(value) in (int, float) and 0 < value < math.inf):
            return f"has {key} {value!r}, and must have a number above 0"
    return ""


def budget(run: Run) -> float:
    """Return about how many operations the training took: 6 · N · D."""
    return 6.0 * (run["parameters"] + run["embedding"]) * run["tokens"]
