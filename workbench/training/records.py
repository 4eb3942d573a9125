"""What a run leaves behind: metrics.json, and several seeds of the same run as one."""

from __future__ import annotations

import datetime
import functools
import importlib.metadata
import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from autograder.files import write_beside
from workbench.errors import WorkbenchError

FILE = "metrics.json"
PACKAGES = ("torch", "numpy", "tokenizers", "sacrebleu", "sacremoses", "scikit-learn")
# Every record has these keys; it may have more.
KEYS = (
    *("task", "data", "command", "seeds", "device", "versions", "commit", "date"),
    *("parameters", "train_seconds", "compile_seconds", "throughput", "scores"),
)
# Of these each seed has its own; in all else the seeds of one record must agree.
A_VALUE_A_SEED = ("train_seconds", "compile_seconds", "throughput", "wall_seconds")


def make_record(
    task: str,
    data: dict[str, Any],
    *,
    seed: int,
    device: torch.device,
    parameters: int,
    history: dict[str, list],
    scores: dict[str, dict[str, float]],
    **more: Any,
) -> dict[str, Any]:
    """Describe a run completely.

    Args:
        task: "translator", "vit", "cnn" or "lm".
        data: the name of the data set, and which form or copy of it was used.
        seed: of the run.
        device: it was trained on.
        parameters: how many the model has.
        history: what ``training.fit`` returned.
        scores: a value for each test set and metric.
        more: whatever else is to be known, such as the configurations.

    Returns:
        A dictionary for JSON with at least KEYS. Times are in seconds; compilation is
        not part of the training time. Each score, time and throughput (examples a
        second) is a list with one value a seed.
    """
    seconds, examples = history["train_seconds"][0], history["examples"][0]
    return {
        "task": task,
        "data": data,
        "command": command(),
        "seeds": [seed],
        "device": describe_device(device),
        "versions": versions(),
        "commit": commit(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "parameters": parameters,
        "train_seconds": [round(seconds, 3)],
        "compile_seconds": [round(history["compile_seconds"][0], 3)],
        "throughput": [round(examples / seconds, 1) if seconds else None],
        "scores": {
            name: {metric: [value] for metric, value in values.items()}
            for name, values in scores.items()
        },
        **more,
    }


def combine(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Make one record of several that differ in their seed alone.

    Raises:
        WorkbenchError: no record, a seed that occurs twice, or other differences.
    """
    if not records:
        raise WorkbenchError("no record to combine")
    first, seeds = records[0], [seed for each in records for seed in each["seeds"]]
    if len(set(seeds)) < len(seeds):
        raise WorkbenchError(f"a seed occurs twice in {seeds}: leave one record out")
    for key in ("task", "data", "device", "versions", "commit", "parameters"):
        for other in records[1:]:
            if other[key] != first[key]:
                raise WorkbenchError(
                    f"the records differ in {key}: {first[key]!r} and {other[key]!r}; "
                    "combine runs of the same kind only"
                )
    result = {**first, "seeds": seeds, "date": max(each["date"] for each in records)}
    result["command"] = [each["command"] for each in records]
    for key in set(A_VALUE_A_SEED) & first.keys():
        result[key] = [value for each in records for value in each[key]]
    result["scores"] = {
        name: {
            metric: [
                value for each in records for value in each["scores"][name][metric]
            ]
            for metric in metrics
        }
        for name, metrics in first["scores"].items()
    }
    return result


def split(record: dict[str, Any]) -> list[dict[str, Any]]:
    """Undo ``combine``: make a record of each seed. Its history is the first one's.

    What verified the whole is left out.
    """
    others = {key: value for key, value in record.items() if key != "verified"}
    commands = record["command"]
    found = []
    for place, seed in enumerate(record["seeds"]):
        own: dict[str, Any] = {
            key: [record[key][place]] for key in A_VALUE_A_SEED if key in record
        }
        scores = {
            name: {metric: [values[place]] for metric, values in metrics.items()}
            for name, metrics in record["scores"].items()
        }
        command = commands if isinstance(commands, str) else commands[place]
        own |= {"seeds": [seed], "scores": scores, "command": command}
        found.append(others | own)
    return found


def write(path: Path, record: dict[str, Any]) -> None:
    """Write a record; nobody ever meets half of one."""
    text = json.dumps(record, indent=2, ensure_ascii=False)
    write_beside(path, f"{text}\n")


def read(path: Path) -> dict[str, Any]:
    """Read a record.

    Raises:
        WorkbenchError: it is not there, not JSON, or lacks a key.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WorkbenchError(
            f"{path} cannot be read ({error.strerror}): is it the folder of a run?"
        ) from error
    except ValueError as error:
        raise WorkbenchError(
            f"{path} is not JSON ({error}): it was cut or edited, train again"
        ) from error
    for key in KEYS:
        if not isinstance(record, dict) or key not in record:
            raise WorkbenchError(f"{path} lacks {key!r}: it is no record of a run")
    return record


def command() -> str:
    """Return the command that is running, as one would type it.

    Where the data lie on this machine is nobody else's business: "--data-dir DIR".
    """
    words = sys.argv[1:]
    for place, word in enumerate(words):
        if word.startswith("--data-dir="):
            words[place] = "--data-dir=DIR"
        elif place and words[place - 1] == "--data-dir":
            words[place] = "DIR"
    return shlex.join(["python", "-m", "workbench", *words])


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that scores depend on."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


@functools.cache
def commit() -> str | None:
    """Return the commit of this copy of the course, "+" if files differ from it.

    It is the one at the first call, early in a process: what runs was read then.
    A copy without git is told it by the variable COURSE_COMMIT, which counts more: the
    copy may lie in a clone of something else.
    """
    if told := os.environ.get("COURSE_COMMIT"):
        return told
    git = ["git", "-C", str(Path(__file__).parent)]
    try:
        name = subprocess.check_output(
            [*git, "rev-parse", "HEAD"], text=True, stderr=subprocess.DEVNULL
        ).strip()
        changed = subprocess.check_output(
            [*git, "status", "--porcelain", "--untracked-files=no"],
            text=True,
            stderr=subprocess.DEVNULL,
        )
    except (OSError, subprocess.CalledProcessError):
        return None  # not a clone, or no git
    return name + "+" * bool(changed.strip())


def describe_device(device: torch.device) -> str:
    """Name the hardware: the accelerator, or the processor with the threads in use."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "mps":
        return f"{platform.processor()} GPU"
    return f"{processor()}, {torch.get_num_threads()} threads"


def processor() -> str:
    """Name the CPU."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.split(":", 1)[1] for line in lines if line.startswith("model name")]
    name = names[0].strip() if names else platform.processor()
    return name or platform.machine()
