"""Train small language models of many sizes, for the scaling law of chapter 11.

    python -m tools.measure.scaling [--data-dir DIR] [--record]

Each model reads tiny Shakespeare, character by character. Its learning rate's schedule
ends with its last step, so that no loss is one from the middle of a longer run. What
is trained is kept in _build/scaling, and a command that was stopped goes on. With
--record, results/language_model/scaling.json is written. All take some 15 minutes on
one core.
"""

import argparse
import itertools
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from autograder.files import write_beside
from tools import provenance
from tools.steps import ROOT
from workbench.training import records

RECORD = ROOT / "results" / "language_model" / "scaling.json"
FOLDER = ROOT / "_build" / "scaling"
WIDTHS = {16: 2, 32: 2, 64: 4, 96: 6}  # d_model: heads
STEPS = (60, 120, 240, 480)
HELD_OUT = ((128, 8, 640),)  # larger and longer than all others
SEED = 1
OPTIONS = (
    "lm --data shakespeare --layers 4 --batch 2048 --context 128 --attention fused "
    "--checkpoint-every 0 --validate-every 0 --weight-decay 0.05"
)


def runs() -> list[tuple[int, int, int]]:
    """List width, heads and steps of all runs; those held out come last."""
    fitted = itertools.product(WIDTHS.items(), STEPS)
    return [(*width, steps) for width, steps in fitted] + list(HELD_OUT)


def command_of(width: int, heads: int, steps: int) -> list[str]:
    """Give the words after ``python -m workbench train``."""
    d_ff = 8 * round(width / 3)  # 8/3 of the width, as usual for three matrices
    shape = f"--d-model {width} --heads {heads} --d-ff {d_ff} --steps {steps}"
    warmup = f"--warmup {steps // 10} --seed {SEED}"
    return shlex.split(f"{OPTIONS} {shape} {warmup}")


def train(run: tuple[int, int, int], data_dir: Path | None) -> dict[str, Any]:
    """Train a model in a process of its own, unless it is there; return its record."""
    folder = FOLDER / "width_{}_heads_{}_steps_{}".format(*run)
    if not (folder / records.FILE).is_file():
        command = [sys.executable, "-m", "workbench", "train", *command_of(*run)]
        command += ["--out", str(folder)]
        if data_dir is not None:
            command += ["--data-dir", str(data_dir)]
        print(shlex.join(command[1:]), flush=True)
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        subprocess.run(command, check=True, env=environment)
    return records.read(folder / records.FILE)


def row_of(run: tuple[int, int, int], found: dict[str, Any]) -> dict[str, Any]:
    """Say what a run was, and what it reached on the test text."""
    width, _, steps = run
    ((test, scores),) = found["scores"].items()
    embedding = found["model"]["vocab_size"] * width
    return {
        "d_model": width,
        "parameters": found["parameters"] - embedding,
        "embedding": embedding,
        "tokens": steps * found["batch"],
        "test": test,
        "nats_per_character": scores["nats_per_character"][0],
        "held_out": run in HELD_OUT,
    }


def main() -> None:
    """Train what is not there yet, and print and record all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-dir", type=Path, metavar="DIR")
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    made = provenance.made_by("python -m tools.measure.scaling --record")
    found = [(run, train(run, asked.data_dir)) for run in runs()]
    rows = [row_of(run, each) for run, each in found]
    for row in rows:
        print(*(f"{value:>10}" for value in row.values()))
    if asked.record:
        RECORD.parent.mkdir(exist_ok=True)
        entry = made | {"seed": SEED, "runs": rows}
        write_beside(RECORD, json.dumps(entry, indent=1) + "\n")


if __name__ == "__main__":
    main()
