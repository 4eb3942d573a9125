"""Make the records of results/: train with each seed, and put the scores together.

What is run stands in results/runs.yml. A seed that has been trained already is not
trained again, so that a recording that was stopped goes on where it was; nor is one
that the record has, on the commit that it names, so that seeds can be added to it. What
one seed's model says of the test set is kept beside the record. With --verify an entry
is made again and compared with its record, which then says so if it holds.
"""

from __future__ import annotations

import hashlib
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from autograder.files import write_beside
from workbench.data.tokenizer import TOKENIZER_FILE
from workbench.errors import WorkbenchError
from workbench.model.models import CONFIG_FILE, WEIGHTS_FILE
from workbench.training import records
from workbench.training.budgets import disagreements, excesses, read_budgets
from workbench.training.checkpoint import CHECKPOINT
from workbench.training.devices import choose_device
from workbench.use.results import FOLDER, MODELS, OUTPUTS, read_record

TABLE = FOLDER / "runs.yml"
KEPT = (WEIGHTS_FILE, CONFIG_FILE, TOKENIZER_FILE)
LARGEST = 6_000_000  # bytes of a model that is kept in the repository
LARGEST_OUTPUTS = 200_000  # bytes of what a model said of its test set
VERIFIED = ("date", "commit", "scores", "device")  # what a record says of a second time


Seeds = dict[int, dict[str, Any]]  # the record of each seed


@dataclass(frozen=True)
class Places:
    """Where runs are trained and recorded.

    Args:
        out: holds the records, ``NAME.json``.
        work: where each seed is trained.
        data_dir: holds the data sets' files; None: they are downloaded once.
    """

    out: Path = FOLDER
    work: Path = Path("_build/runs")
    data_dir: Path | None = None


def record(
    names: Sequence[str],
    places: Places,
    *,
    verify: bool = False,
    steps: int | None = None,
) -> int:
    """Make the records of some runs, one after the other.

    Args:
        names: of the runs of runs.yml.
        places: where to.
        verify: train again what is recorded, and compare, in place of recording.
        steps: verify with so few steps only.

    Returns:
        1 if a record does not hold, else 0.

    Raises:
        WorkbenchError: there is no such run, or a record would be cut short.
    """
    runs = read_runs(TABLE)
    for name in names:
        if name not in runs:
            raise WorkbenchError(
                f"{TABLE} has no run {name!r}; python -m workbench record --list"
            )
    if steps and not verify:
        raise WorkbenchError("--steps goes with --verify: a record is never cut short")
    if verify:
        return max(verify_run(name, runs[name], places, steps) for name in names)
    for name in names:
        record_run(name, runs[name], places)
    return 0


def listed(out: Path) -> Iterator[str]:
    """Say of each run whether it is recorded, and what it is about."""
    for name, each in read_runs(TABLE).items():
        made = "recorded" if (out / f"{name}.json").exists() else ""
        yield f"{name:28} {made:9} {each['about']}"


def read_runs(path: Path) -> dict[str, dict[str, Any]]:
    """Read the table of runs: name -> about, train, seeds, and what runs.yml explains.

    Raises:
        WorkbenchError: the file is not there, or a run lacks something.
    """
    try:
        runs = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise WorkbenchError(f"{path} cannot be read: {error}") from None
    for name, each in runs.items():
        for key in ("about", "train", "seeds"):
            if key not in each:
                raise WorkbenchError(f"{path}: the run {name} has no {key}")
    return runs


def record_run(name: str, about: dict[str, Any], places: Places) -> None:
    """Train every seed of a run, and write its record."""
    earlier = recorded(places.out / f"{name}.json", about, places.work / name)
    found, folders = trained(about, places.work / name, places.data_dir, earlier)
    record = records.combine(found)
    record["name"], record["about"] = name, about["about"]
    kept = about.get("keep", about["seeds"][0])
    place = about["seeds"].index(kept)
    if "keep" in about:
        # the curves shown are those of the model that is kept
        record["history_of_training"] = found[place]["history_of_training"]
        record["kept_seed"] = kept
        record["model_files"] = keep(folders[place], places.out / MODELS / name)
    said = places.out / OUTPUTS / f"{name}.txt"
    record |= keep_outputs(folders[place], said, places.data_dir)
    record |= verification(places.out / f"{name}.json", record)
    records.write(places.out / f"{name}.json", record)
    print(f"{places.out / name}.json: {len(found)} seeds, {record['scores']}")


def recorded(path: Path, about: dict[str, Any], work: Path) -> Seeds:
    """Read the seeds of a record to which others are to be added.

    They count if their command is still that of runs.yml, and if what is still to be
    trained is trained by the same commit. A run whose model is kept needs all of its
    folders.
    """
    if "keep" in about or not path.exists():
        return {}
    found = {each["seeds"][0]: each for each in records.split(records.read(path))}
    asked = f" train {shlex.join(shlex.split(about['train']))} --seed "
    found = {seed: each for seed, each in found.items() if asked in each["command"]}
    waiting = [
        seed
        for seed in about["seeds"]
        if seed not in found and not (work / f"seed_{seed}" / records.FILE).exists()
    ]
    commits = {each["commit"] for each in found.values()}
    if found and waiting and commits != {records.commit()}:
        print(
            f"{path}: the seeds {sorted(found)} are of another commit and are trained "
            f"again. To add to them, check out {', '.join(map(str, commits))}."
        )
        return {}
    return found


def trained(
    about: dict[str, Any],
    work: Path,
    data_dir: Path | None,
    earlier: Seeds | None = None,
) -> tuple[list[dict[str, Any]], list[Path]]:
    """Train the seeds of a run that are not there yet; return records and folders."""
    folders = {seed: work / f"seed_{seed}" for seed in about["seeds"]}
    files = {seed: folder / records.FILE for seed, folder in folders.items()}
    earlier = earlier or {}
    missing = [
        seed
        for seed, file in files.items()
        if seed not in earlier and not file.exists()
    ]
    if missing:
        train(about, missing, work, data_dir)
    found = [
        records.read(file) if file.exists() else earlier[seed]
        for seed, file in files.items()
    ]
    return found, list(folders.values())


def verify_run(
    name: str, about: dict[str, Any], places: Places, steps: int | None = None
) -> int:
    """Train a recorded run again, and compare; 1 if it is another result.

    A record that holds says when, and by what, it was made again. With ``steps`` it is
    only tried, and nothing is compared.

    Raises:
        WorkbenchError: it is not recorded.
    """
    entry = read_record(name, places.out)
    work = places.work / "verify" / name
    if steps:
        work = work / f"steps_{steps}"
        about = {**about, "train": f"{about['train']} --steps {steps}"}
    again = records.combine(trained(about, work, places.data_dir)[0])
    print(f"{name}: {again['scores']} now, {entry['scores']} recorded")
    if steps:
        print(f"{name}: it runs; {steps} steps count for nothing more")
        return 0
    found = disagreements(entry, again)
    if "budget" in about:
        found += excesses(again, read_budgets()[about["budget"]])
    for each in found:
        print(f"{name}: {each}")
    print(f"{name}: " + ("the record does not hold" if found else "the record holds"))
    if not found:
        entry["verified"] = {key: again[key] for key in VERIFIED}
        records.write(places.out / f"{name}.json", entry)
    return 1 if found else 0


def train(
    about: dict[str, Any], seeds: list[int], folder: Path, data_dir: Path | None
) -> None:
    """Train with some seeds in a process of their own, as one would by hand.

    Raises:
        WorkbenchError: it failed.
    """
    command = [sys.executable, "-m"]
    if about.get("processes", 1) > 1:
        command += ["torch.distributed.run", "--standalone"]
        command += ["--nproc-per-node", str(about["processes"]), "-m"]
    command += ["workbench", "train", *shlex.split(about["train"])]
    command += ["--seed", *map(str, seeds)]
    own = folder / f"seed_{seeds[0]}" if len(seeds) == 1 else folder
    command += ["--out", str(own)]
    if len(seeds) > 1 or (own / CHECKPOINT).exists():
        command.append("--resume")
    if data_dir is not None:
        command += ["--data-dir", str(data_dir)]
    if subprocess.run(command, check=False).returncode:
        raise WorkbenchError(f"{shlex.join(command)} failed: see above")


def keep(source: Path, target: Path) -> dict[str, str]:
    """Copy a trained model; return the SHA-256 of each file.

    Raises:
        WorkbenchError: it is too large for the repository.
    """
    files = [source / name for name in KEPT if (source / name).exists()]
    size = sum(path.stat().st_size for path in files)
    if size > LARGEST:
        raise WorkbenchError(
            f"{source}: {size:,} bytes are more than the {LARGEST:,} that a model in "
            "the repository may have; leave out keep"
        )
    target.mkdir(parents=True, exist_ok=True)
    digests = {}
    for path in files:
        shutil.copyfile(path, target / path.name)
        digests[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    shutil.copyfile(source / records.FILE, target / records.FILE)
    return digests


def keep_outputs(source: Path, target: Path, data_dir: Path | None) -> dict[str, Any]:
    """Keep what a trained model says of its test set: an example a line.

    Args:
        source: the folder of one seed.
        target: the file to write.
        data_dir: holds the data set's files.

    Returns:
        What its record says of it: the seed, and the file's SHA-256. Nothing of a
        language model, nor without the model, nor if it is too large.
    """
    if not all((source / name).exists() for name in (records.FILE, WEIGHTS_FILE)):
        return {}  # of a seed that was trained elsewhere
    record, device = records.read(source / records.FILE), choose_device("auto")
    if record["task"] == "lm":
        return {}
    from workbench.use import evaluation  # pages read runs.yml without sacrebleu

    asked = evaluation.Evaluation(
        kind=record["task"], folder=source, device=device, data_dir=data_dir
    )
    lines = (" ".join(each.splitlines()) for each in evaluation.answer(asked).found)
    content = "".join(f"{line}\n" for line in lines).encode()
    if len(content) > LARGEST_OUTPUTS:
        print(
            f"{target}: is not kept, {len(content):,} bytes are more than the "
            f"{LARGEST_OUTPUTS:,} that it may have in the repository"
        )
        return {}
    write_beside(target, content)
    digest = hashlib.sha256(content).hexdigest()
    return {"outputs": {"seed": record["seeds"][0], "sha256": digest}}


def verification(path: Path, record: dict[str, Any]) -> dict[str, Any]:
    """Say what verified the record that is there, if the new one has its scores."""
    if not path.exists():
        return {}
    there = records.read(path)
    same = all(there[key] == record[key] for key in ("seeds", "scores"))
    return {"verified": there["verified"]} if same and "verified" in there else {}
