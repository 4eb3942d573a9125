"""Make the records that a GPU is needed for, in the time that there is one.

Nobody has to be asked meanwhile: results/gpu.yml says what is wanted most, a few steps
of each task say in which way they are fastest here, every seed that is done is written
at once, and what would not be done in time is not begun. ``log.jsonl`` tells each step.
With --steps it is a rehearsal: all of it is done in so few steps, and what comes out
lies in DIR/rehearsal and is no record.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Collection
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
REHEARSAL = "rehearsal"


def record(
    session: Session,
    plan: dict[str, Any],
    device: torch.device,
    names: Collection[str] = (),
) -> int:
    """Make the records of a plan in a session.

    Args:
        session: the time there is.
        plan: what ``read_plan`` has read.
        device: what trains, for the log.
        names: of the runs that are wanted; none: all of the plan's.

    Returns:
        How many trainings were done.

    Raises:
        WorkbenchError: the plan has nothing of a name, or there is no such run.
    """
    wanted = entries_of(plan, session.runs, names)
    session.tell("begin", device=records.describe_device(device), **about_here())
    for number, entry in enumerate(wanted):
        if "change" in entry:
            session.judge(entry["name"], entry["change"], entry["minutes"], number)
            continue
        for seed in entry["seeds"]:
            session.record(entry["name"], seed, entry["minutes"])
    session.tell("end", made=session.made)
    return session.made


def entries_of(
    plan: dict[str, Any], runs: Collection[str], names: Collection[str]
) -> list[dict[str, Any]]:
    """Return the entries of some runs, or all; found out before anything is trained.

    Raises:
        WorkbenchError: the plan has nothing of a name, or there is no such run.
    """
    of_plan = {entry["name"]: entry for entry in plan["wanted"]}
    for name in of_plan:
        if name not in runs:
            raise WorkbenchError(f"the table of runs has no run {name!r}")
    for name in names:
        if name not in of_plan:
            raise WorkbenchError(f"the plan has {', '.join(of_plan)}, and no {name!r}")
    return [each for each in plan["wanted"] if not names or each["name"] in names]


def read_plan(path: Path) -> dict[str, Any]:
    """Read what is wanted.

    Raises:
        WorkbenchError: the file is not there, or a line of it lacks something.
    """
    try:
        plan = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise WorkbenchError(f"{path} cannot be read: {error}") from None
    if not plan.get("wanted") or not plan.get("modes"):
        raise WorkbenchError(f"{path}: has nothing that is wanted, or no modes")
    for entry in plan["wanted"]:
        for key in ("name", "minutes", "change" if "change" in entry else "seeds"):
            if key not in entry:
                raise WorkbenchError(f"{path}: {entry} has no {key}")
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
        steps: a rehearsal with so few steps; then folders of their own are used.
    """

    runs: dict[str, dict[str, Any]]
    modes: list[list[str]]
    minutes: float
    out: Path
    work: Path
    device: str = "auto"
    data_dir: Path | None = None
    steps: int | None = None
    begin: float = field(default_factory=time.monotonic)
    mode: dict[str, list[str] | None] = field(default_factory=dict)  # fastest, by task
    seconds: dict[str, float] = field(default_factory=dict)  # of a seed, by run
    made: int = 0  # trainings

    def __post_init__(self) -> None:
        """Keep a rehearsal away from records, and from the seeds they are made of."""
        if self.steps:
            self.out, self.work = self.out / REHEARSAL, self.work / REHEARSAL

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
        if not self._is_time(self.seconds.get(name, 60 * minutes), run=name, seed=seed):
            return
        folder = self.work / name / f"seed_{seed}"
        found = self._train(name, ["--seed", str(seed)], folder)
        if found is not None:
            self.seconds[name] = found["wall_seconds"][0]
            self._combine(name)

    def judge(self, name: str, change: list[str], minutes: float, number: int) -> None:
        """Try a run's recipe with a change, if there is time, on the validation set."""
        if self._is_time(60 * minutes, run=name, change=change):
            folder = self.work / f"recipe_{number}"
            self._train(name, [*change, "--score", "validation"], folder)

    def _is_time(self, seconds: float, **what: Any) -> bool:
        """Tell whether a training of so many seconds can be begun; log it if not."""
        need = 0 if self.steps else 1.1 * seconds
        if need < self.left:
            return True
        self.tell("no time", **what, need=need, left=self.left)
        return False

    def _combine(self, name: str) -> None:
        """Write a run's record from the seeds that are there; keep the last model."""
        seeds = sorted((self.work / name).glob(f"seed_*/{records.FILE}"))
        record = records.combine([records.read(path) for path in seeds])
        record |= {"name": name, "about": self.runs[name]["about"]}
        if self.steps:
            record[REHEARSAL] = self.steps  # no test of results/ lets it in
        records.write(self.out / f"{name}.json", record)
        shutil.make_archive(str(self.out / f"{name}_model"), "zip", seeds[0].parent)

    def _train(self, name: str, more: list[str], folder: Path) -> dict | None:
        """Train a run in the fastest way; None if it failed, or took too long."""
        words = shlex.split(self.runs[name]["train"])
        task = " ".join(words[: words.index("--data") + 2])
        if task not in self.mode:
            self.mode[task] = self._fastest(words)
        mode = self.mode[task]
        if mode is None:
            self.tell("skipped", run=name, options=more, why=f"{task}: no way works")
            return None
        few = ["--steps", str(self.steps)] if self.steps else []
        found = self._command([*words, *more, *few, *mode], folder, self.left)
        self.made += found is not None
        return found

    def _fastest(self, words: list[str]) -> list[str] | None:
        """Take a few steps in each way; return the fastest's options, None if none."""
        if len(self.modes) == 1:
            return self.modes[0]
        steps = min(TRIAL_STEPS, self.steps or TRIAL_STEPS)
        found = []
        for number, mode in enumerate(self.modes):
            trial = ["--steps", str(steps), "--score", "validation"]
            trial += ["--validate-every", "0", "--beam", "1"]
            trial = trial[: -2 if words[0] != "translator" else None]
            folder = self.work / f"trial_{words[0]}_{number}"
            shutil.rmtree(folder, ignore_errors=True)
            most = min(TRIAL_SECONDS, self.left)
            record = self._command([*words, *trial, *mode], folder, most)
            if record is not None:
                found.append((record["train_seconds"][0] / steps, mode))
        if not found:
            self.tell("no way works", task=words[0])
            return None
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
