"""Make the records of results/: train with each seed, and put the scores together.

What is run stands in results/runs.yml. A seed that has been trained already is not
trained again, so that a recording that was stopped goes on where it was. With --verify
an entry is made again beside its record, and compared with it.
"""

from __future__ import annotations

import argparse
import hashlib
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from workbench.data.tokenizer import TOKENIZER_FILE
from workbench.errors import WorkbenchError
from workbench.model.models import CONFIG_FILE, WEIGHTS_FILE
from workbench.training import records
from workbench.training.budgets import disagreements, excesses, read_budgets
from workbench.training.checkpoint import CHECKPOINT
from workbench.training.options import positive
from workbench.use.results import FOLDER, MODELS, read_record

TABLE = FOLDER / "runs.yml"
KEPT = (WEIGHTS_FILE, CONFIG_FILE, TOKENIZER_FILE)
LARGEST = 6_000_000  # bytes of a model that is kept in the repository


def add_command(commands: argparse._SubParsersAction) -> None:
    """Describe ``record``."""
    command = commands.add_parser(
        "record",
        help="train what results/runs.yml lists, and write results/NAME.json",
        description=__doc__,
    )
    command.set_defaults(run=run)
    command.add_argument("names", nargs="*", metavar="NAME", help="runs of runs.yml")
    command.add_argument("--list", action="store_true", help="list them, and end")
    command.add_argument(
        "--verify",
        action="store_true",
        help="train again what is recorded, and compare; results/ stays as it is",
    )
    command.add_argument(
        "--steps",
        type=positive,
        metavar="N",
        help="with --verify: try it with so few steps; scores are not compared then",
    )
    command.add_argument(
        "--data-dir", type=Path, metavar="DIR", help="folder with the data's files"
    )
    command.add_argument(
        "--work",
        type=Path,
        default=Path("_build/runs"),
        metavar="DIR",
        help="where each seed is trained (_build/runs)",
    )
    command.add_argument(
        "--out", type=Path, default=FOLDER, metavar="DIR", help="default: results"
    )


def run(arguments: argparse.Namespace) -> int:
    """Make the records that were asked for, one after the other."""
    runs = read_runs(TABLE)
    if arguments.list or not arguments.names:
        for name, each in runs.items():
            made = "recorded" if (arguments.out / f"{name}.json").exists() else ""
            print(f"{name:28} {made:9} {each['about']}")
        return 0
    for name in arguments.names:
        if name not in runs:
            raise WorkbenchError(
                f"{TABLE} has no run {name!r}; python -m workbench record --list"
            )
    if arguments.steps and not arguments.verify:
        raise WorkbenchError("--steps goes with --verify: a record is never cut short")
    if arguments.verify:
        return max(verify_run(name, runs[name], arguments) for name in arguments.names)
    for name in arguments.names:
        record_run(name, runs[name], arguments)
    return 0


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


def record_run(name: str, about: dict[str, Any], arguments: argparse.Namespace) -> None:
    """Train every seed of a run, and write its record."""
    found, folders = trained(about, arguments.work / name, arguments.data_dir)
    record = records.combine(found)
    record["name"], record["about"] = name, about["about"]
    kept = about.get("keep")
    if kept is not None:
        place = about["seeds"].index(kept)
        # the curves shown are those of the model that is kept
        record["history_of_training"] = found[place]["history_of_training"]
        record["kept_seed"] = kept
        record["model_files"] = keep(folders[place], arguments.out / MODELS / name)
    records.write(arguments.out / f"{name}.json", record)
    print(f"{arguments.out / name}.json: {len(found)} seeds, {record['scores']}")


def trained(
    about: dict[str, Any], work: Path, data_dir: Path | None
) -> tuple[list[dict[str, Any]], list[Path]]:
    """Train the seeds of a run that are not there yet; return records and folders."""
    folders = [work / f"seed_{seed}" for seed in about["seeds"]]
    missing = [
        seed
        for seed, folder in zip(about["seeds"], folders, strict=True)
        if not (folder / records.FILE).exists()
    ]
    if missing:
        train(about, missing, work, data_dir)
    return [records.read(folder / records.FILE) for folder in folders], folders


def verify_run(name: str, about: dict[str, Any], arguments: argparse.Namespace) -> int:
    """Train a recorded run again, and compare; 1 if it is another result.

    Raises:
        WorkbenchError: it is not recorded.
    """
    entry = read_record(name, arguments.out)
    work = arguments.work / "verify" / name
    if arguments.steps:
        work = work / f"steps_{arguments.steps}"
        about = {**about, "train": f"{about['train']} --steps {arguments.steps}"}
    again = records.combine(trained(about, work, arguments.data_dir)[0])
    print(f"{name}: {again['scores']} now, {entry['scores']} recorded")
    if arguments.steps:
        print(f"{name}: it runs; {arguments.steps} steps count for nothing more")
        return 0
    found = disagreements(entry, again)
    if "budget" in about:
        found += excesses(again, read_budgets()[about["budget"]])
    for each in found:
        print(f"{name}: {each}")
    print(f"{name}: " + ("the record does not hold" if found else "the record holds"))
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
