"""Make the records that a GPU is needed for, in the time that there is one.

Nobody has to be asked meanwhile: results/gpu.yml says what is wanted most, a few steps
of each task say in which way they are fastest here, every seed that is done is written
at once, and what would not be done in time is not begun. ``log.jsonl`` tells each step.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import yaml

from workbench.errors import WorkbenchError
from workbench.training import records
from workbench.use.results import FOLDER

TABLE_OF_PLAN = FOLDER / "gpu.yml"
TRIAL_STEPS = 40
TRIAL_SECONDS = 200  # for compilation, too
SPARE_SECONDS = 10  # of the whole time, to write the last lines
LOG = "log.jsonl"


def record(session: Session, plan: dict[str, Any], device: torch.device) -> int:
    """Make the records of a plan in a session; return how many seeds were trained."""
    session.tell("begin", device=records.describe_device(device), **about_here())
    for wanted in plan["runs"]:
        for seed in wanted["seeds"]:
            session.record(wanted["name"], seed, wanted["minutes"])
    for number, recipe in enumerate(plan.get("recipes", [])):
        session.judge(recipe["of"], recipe["change"], number)
    session.tell("end", made=session.made)
    return session.made


def read_plan(path: Path) -> dict[str, Any]:
    """Read what is wanted.

    Raises:
        WorkbenchError: the file is not there, or a line of it lacks something.
    """
    try:
        plan = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise WorkbenchError(f"{path} cannot be read: {error}") from None
    wanted = {"runs": ("name", "seeds", "minutes"), "recipes": ("of", "change")}
    for part, keys in wanted.items():
        for each in plan.get(part, []):
            for key in keys:
                if key not in each:
                    raise WorkbenchError(f"{path}: {each} has no {key}")
    if not plan.get("runs") or not plan.get("modes"):
        raise WorkbenchError(f"{path}: has no runs, or no modes")
    return plan


def about_here() -> dict[str, Any]:
    """Say what the machine has, for whoever reads the log."""
    return {"versions": records.versions(), "cuda": torch.version.cuda}


@dataclass
class Session:
    """The time there is, and what has been found out in it.

    Args:
        runs: the table of runs, by name.
        modes: the ways in which steps are tried, each as options of ``train``.
        minutes: until the end.
        out: where records go.
        work: where seeds are trained.
        device: the name of the device that trains.
        data_dir: holds a folder for each data set.
    """

    runs: dict[str, dict[str, Any]]
    modes: list[list[str]]
    minutes: float
    out: Path
    work: Path
    device: str = "auto"
    data_dir: Path | None = None
    begin: float = field(default_factory=time.monotonic)
    mode: dict[str, list[str]] = field(default_factory=dict)  # the fastest, by task
    seconds: dict[str, float] = field(default_factory=dict)  # of a seed, by run
    made: int = 0  # seeds

    @property
    def left(self) -> float:
        """The seconds that are left."""
        end = self.begin + 60 * self.minutes - SPARE_SECONDS
        return end - time.monotonic()

    def tell(self, what: str, **facts: Any) -> None:
        """Add a line to the log, and print it."""
        passed = round(time.monotonic() - self.begin, 1)
        line = json.dumps({"seconds": passed, "what": what, **facts})
        print(line, flush=True)
        self.out.mkdir(parents=True, exist_ok=True)
        with (self.out / LOG).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")

    def record(self, name: str, seed: int, minutes: float) -> None:
        """Train a seed of a run, if there is time, and write the run's record anew."""
        if name not in self.runs:
            raise WorkbenchError(f"the table of runs has no run {name!r}")
        need = 1.1 * self.seconds.get(name, 60 * minutes)
        if need > self.left:
            self.tell("no time", run=name, seed=seed, need=need, left=self.left)
            return
        words = shlex.split(self.runs[name]["train"])
        folder = self.work / name / f"seed_{seed}"
        found = self._train([*words, "--seed", str(seed)], folder, self.left)
        if found is None:
            return
        self.made += 1
        self.seconds[name] = found["wall_seconds"][0]
        self._combine(name)

    def judge(self, name: str, change: list[str], number: int) -> None:
        """Try a recipe, if there is time, and score it on the validation set."""
        if self.seconds.get(name, self.left) * 1.1 > self.left:
            return
        words = [*shlex.split(self.runs[name]["train"]), *change]
        folder = self.work / f"recipe_{number}"
        self._train([*words, "--score", "validation"], folder, self.left)

    def _combine(self, name: str) -> None:
        """Write a run's record from the seeds that are there; keep the last model."""
        seeds = sorted((self.work / name).glob(f"seed_*/{records.FILE}"))
        record = records.combine([records.read(path) for path in seeds])
        record |= {"name": name, "about": self.runs[name]["about"]}
        records.write(self.out / f"{name}.json", record)
        shutil.make_archive(str(self.out / f"{name}_model"), "zip", seeds[0].parent)

    def _train(self, words: list[str], folder: Path, most: float) -> dict | None:
        """Train in the fastest way; None if it failed, or took too long."""
        task = " ".join(words[: words.index("--data") + 2])
        if task not in self.mode:
            self.mode[task] = self._fastest(words)
        return self._command([*words, *self.mode[task]], folder, most)

    def _fastest(self, words: list[str]) -> list[str]:
        """Take a few steps in each way; return the options of the fastest."""
        if len(self.modes) == 1:
            return self.modes[0]
        found = []
        for number, mode in enumerate(self.modes):
            trial = ["--steps", str(TRIAL_STEPS), "--score", "validation"]
            trial += ["--validate-every", "0", "--beam", "1"]
            trial = trial[: -2 if words[0] != "translator" else None]
            folder = self.work / f"trial_{words[0]}_{number}"
            shutil.rmtree(folder, ignore_errors=True)
            most = min(TRIAL_SECONDS, self.left)
            record = self._command([*words, *trial, *mode], folder, most)
            if record is not None:
                found.append((record["train_seconds"][0] / TRIAL_STEPS, mode))
        if not found:
            raise WorkbenchError(
                f"{words[0]}: no way of training works here, see {LOG}"
            )
        a_step, mode = min(found)
        self.tell("fastest", task=words[0], mode=mode, seconds_a_step=round(a_step, 6))
        return mode

    def _command(self, words: list[str], folder: Path, most: float) -> dict | None:
        """Run ``train``, and stop it after so many seconds; tell what came of it."""
        command = [sys.executable, "-m", "workbench", "train", *words]
        command += ["--out", str(folder), "--device", self.device]
        if self.data_dir is not None:
            data = words[words.index("--data") + 1].partition(":")[0]
            for place in sorted(self.data_dir.glob(f"{data}*/"))[:1]:
                command += ["--data-dir", str(place)]
        shown = shlex.join(["train", *words])
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=most)
        except subprocess.TimeoutExpired:
            self.tell("stopped", command=shown, after=round(most, 1))
            return None
        if done.returncode:
            self.tell("failed", command=shown, said=done.stderr[-2000:])
            return None
        record = records.read(folder / records.FILE)
        facts = ("train_seconds", "compile_seconds", "wall_seconds", "scores")
        loss = record["history_of_training"]["loss"][-1]
        validation = {
            key: values[-1]
            for key, values in record["history_of_training"].items()
            if key.startswith("validation_")
        }
        told = {key: record[key] for key in facts} | validation
        self.tell("done", command=shown, loss=loss, **told)
        return record
