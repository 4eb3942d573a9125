"""The command line: ``python -m workbench COMMAND --help``."""

import argparse
import importlib.metadata
import sys
from pathlib import Path

from workbench.errors import WorkbenchError

try:
    VERSION = importlib.metadata.version("transformers-by-hand")
except importlib.metadata.PackageNotFoundError:  # in a bundle nothing is installed
    VERSION = "a copy that is not installed"
ASSEMBLE_HELP = (
    "Take every part that you wrote out of your notebooks, run the notebooks' checks, "
    "so that you learn which parts are missing or wrong, and put each into the module "
    "of its chapter."
)

PROGRESS_HELP = (
    "Show for each chapter how many of its exercises have passed their checks, and "
    "which one is open next. Notebooks note that in a file beside them when their "
    "checks are run."
)


def parser(capstones: bool = True) -> argparse.ArgumentParser:
    """Describe the commands; without the capstones', torch need not be imported."""
    top = argparse.ArgumentParser(prog="python -m workbench", description=__doc__)
    text = "say which version of the course this is"
    top.add_argument("--version", action="version", version=VERSION, help=text)
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    text = "make your own transformer/ from completed notebooks"
    command = commands.add_parser("assemble", help=text, description=ASSEMBLE_HELP)
    command.set_defaults(run=run_assemble)
    command.add_argument(
        "notebooks",
        nargs="+",
        type=Path,
        metavar="NOTEBOOKS",
        help="notebooks of this course, or folders that hold them",
    )
    command.add_argument(
        "-o",
        "--out",
        required=True,
        type=Path,
        metavar="DIR",
        help="where to put the folder transformer/",
    )
    command.add_argument(
        "--fill",
        action="store_true",
        help="take what is missing or wrong from the reference, where you have it: "
        "the transformer/ beside a notebook, or the one installed with the course",
    )
    command.add_argument(
        "--no-check",
        dest="check",
        action="store_false",
        help="do not run the notebooks' checks",
    )
    text = "show which checks have passed in your notebooks"
    command = commands.add_parser("progress", help=text, description=PROGRESS_HELP)
    command.set_defaults(run=run_progress)
    command.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path("."),
        metavar="FOLDER",
        help="where the notebooks lie, or the chapters' folders (default: this one)",
    )
    if capstones:
        from workbench.command_line import record, train, use

        train.add_command(commands)
        use.add_commands(commands)
        record.add_commands(commands)
    return top


def run_assemble(arguments: argparse.Namespace) -> int:
    """Assemble, and print what became of every part; 1 if some are not right."""
    from workbench import assemble  # its packages are not needed to train

    return assemble.run(
        arguments.notebooks, arguments.out, fill=arguments.fill, check=arguments.check
    )


def run_progress(arguments: argparse.Namespace) -> int:
    """Print how far somebody has come in each chapter."""
    from workbench import progress

    print(progress.summary(arguments.folder))
    return 0


def main() -> int:
    """Run a command; a bad input is one line and exit code 2."""
    capstones = sys.argv[1:2] not in (["assemble"], ["progress"], ["--version"])
    try:
        arguments = parser(capstones).parse_args()
    except ModuleNotFoundError as missing:
        install = 'pip install "transformers-by-hand[train]"'
        print(
            f"error: the package {missing.name} is missing: {install}", file=sys.stderr
        )
        return 2
    try:
        return arguments.run(arguments)
    except WorkbenchError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped; a training goes on with --resume", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
