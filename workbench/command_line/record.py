"""``record``, ``plan`` and ``bundle``: making the records of results/."""

from __future__ import annotations

import argparse
from pathlib import Path

from workbench.command_line.options import positive
from workbench.training import bundle, plan, recording
from workbench.training.devices import choose_device


def add_commands(commands: argparse._SubParsersAction) -> None:
    """Describe ``record``, ``plan`` and ``bundle``."""
    add_record(commands)
    add_plan(commands)
    add_bundle(commands)


def add_record(commands: argparse._SubParsersAction) -> None:
    """Describe ``record``."""
    command = commands.add_parser(
        "record",
        help="train what results/runs.yml lists, and write results/NAME.json",
        description=recording.__doc__,
    )
    command.set_defaults(run=run_record)
    command.add_argument("names", nargs="*", metavar="NAME", help="runs of runs.yml")
    command.add_argument("--list", action="store_true", help="list them, and end")
    command.add_argument(
        "--verify",
        action="store_true",
        help="train again what is recorded, and compare; a record that holds says so",
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
    places = recording.Places()
    command.add_argument(
        "--work",
        type=Path,
        default=places.work,
        metavar="DIR",
        help=f"where each seed is trained ({places.work})",
    )
    command.add_argument(
        "--out", type=Path, default=places.out, metavar="DIR", help="default: results"
    )


def run_record(arguments: argparse.Namespace) -> int:
    """Make the records that were asked for; 1 if one of them does not hold."""
    if arguments.list or not arguments.names:
        print(*recording.listed(arguments.out), sep="\n")
        return 0
    places = recording.Places(arguments.out, arguments.work, arguments.data_dir)
    return recording.record(
        arguments.names, places, verify=arguments.verify, steps=arguments.steps
    )


def add_plan(commands: argparse._SubParsersAction) -> None:
    """Describe ``plan``."""
    command = commands.add_parser(
        "plan",
        help="make records for as long as there is time",
        description=plan.__doc__,
    )
    command.set_defaults(run=run_plan)
    text = "make only what the plan has of these runs (default: all that it has)"
    command.add_argument("names", nargs="*", metavar="NAME", help=text)
    command.add_argument(
        "--steps",
        type=positive,
        metavar="N",
        help="rehearse it: N steps of each training; DIR/rehearsal holds what comes "
        "out, and none of that is a record",
    )
    command.add_argument(
        "--minutes", type=float, required=True, metavar="M", help="when to have ended"
    )
    command.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="where records go"
    )
    command.add_argument(
        "--work", type=Path, metavar="DIR", help="where to train (default: DIR/work)"
    )
    command.add_argument(
        "--data-dir",
        type=Path,
        metavar="DIR",
        help="folder with a folder for each data set, as multi30k and cifar10",
    )
    command.add_argument(
        "--plan",
        type=Path,
        default=plan.TABLE_OF_PLAN,
        metavar="FILE",
        help="(gpu.yml)",
    )
    command.add_argument("--runs", type=Path, default=recording.TABLE, metavar="FILE")
    command.add_argument("--device", default="auto")


def run_plan(arguments: argparse.Namespace) -> int:
    """Make the records of a plan; 1 if there is nothing that was trained."""
    device = choose_device(arguments.device)
    wanted = plan.read_plan(arguments.plan)
    session = plan.Session(
        runs=recording.read_runs(arguments.runs),
        modes=wanted["modes"],
        minutes=arguments.minutes,
        out=arguments.out,
        work=arguments.work or arguments.out / "work",
        device=arguments.device,
        data_dir=arguments.data_dir,
        steps=arguments.steps,
    )
    return 0 if plan.record(session, wanted, device, arguments.names) else 1


def add_bundle(commands: argparse._SubParsersAction) -> None:
    """Describe ``bundle``."""
    command = commands.add_parser(
        "bundle",
        help="a folder for a GPU machine without a network",
        description=bundle.__doc__,
    )
    command.set_defaults(run=run_bundle)
    command.add_argument("folder", type=Path, metavar="FOLDER", help="to be made")
    command.add_argument(
        "--data-dir",
        type=Path,
        required=True,
        metavar="DIR",
        help="holds a folder for each data set: multi30k, and cifar10 or cifar10_jpeg",
    )


def run_bundle(arguments: argparse.Namespace) -> int:
    """Make the folder; say how large it is."""
    folder = arguments.folder
    bundle.make(folder, arguments.data_dir)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"{folder}: {size / 2**20:.1f} MiB")
    print(f"there: python3 {folder.name}/run.py --minutes 28 --out DIR")
    print("       with --steps 2 first: a rehearsal, --help says more")
    return 0
