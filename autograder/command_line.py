"""The commands of ``python -m autograder``: options only."""

import argparse
import fnmatch
import subprocess
import sys
from pathlib import Path

from autograder import generator, sheets
from autograder.collecting import command as collecting
from autograder.generator import ROOT, Missing, SourceError
from autograder.gradescope import build as gradescope
from autograder.grading import command as grading
from autograder.grading import exports
from autograder.grading.seeds import SecretError, secret_of
from autograder.grading.settings import put_environment_on_path
from autograder.grading.version import code_version
from autograder.sheets import SheetError


def generate(arguments: argparse.Namespace) -> int:
    """Write exercises/ and solutions/transformer/ from the text notebooks."""
    del arguments
    sources = generator.write_exercises()
    print(f"{'chapter':<28} {'exercises':>9} {'points':>7} {'minutes':>8}")
    for source in [*sources, *generator.read_sheets(sources)]:
        points = sum(exercise.points for exercise in source.exercises)
        minutes = sum(exercise.minutes for exercise in source.exercises)
        numbers = f"{len(source.exercises):>9} {points:>7} {minutes:>8}"
        print(f"{source.chapter:<28} {numbers}")
    return 0


def handout(arguments: argparse.Namespace) -> int:
    """Write what students get: one chapter with the parts before it, or the course."""
    agents = None if arguments.no_agents else arguments.agents
    asked = arguments.chapter
    if asked and "*" not in asked:
        folder = arguments.out / asked
        generator.write_handout(asked, folder, agents=agents)
        beside = "and transformer/ of the chapters before it"
        if asked in sheets.names():
            beside = "and of transformer/ what it uses and does not ask for"
        print(f"{folder}: the notebook, {beside}")
        return 0
    names = generator.chapters()
    if asked:
        names = fnmatch.filter(generator.assignments(), asked)
        if not names:
            raise Missing(f"no chapter and no sheet has a name like {asked!r}")
    folder = arguments.out / ((asked or "course").strip("*_") or "all")
    generator.write_course(folder, agents=agents, names=names)
    print(f"{folder}: {len(names)} notebooks, without transformer/ and any answer")
    return 0


def release(arguments: argparse.Namespace) -> int:
    """Make nbgrader's source/ and release/ in autograder/."""
    course = ROOT / "autograder"
    secret_of(course)
    chapters = arguments.chapter or generator.chapters()
    for chapter in chapters:
        generator.write_nbgrader_source(chapter, course / "source" / chapter)
    put_environment_on_path()
    for chapter in chapters:
        subprocess.run(
            [
                sys.executable,
                "-m",
                "nbgrader",
                "generate_assignment",
                chapter,
                "--force",
            ],
            cwd=course,
            check=True,
        )
        print(f"{course / 'release' / chapter}: ready to hand out")
    return 0


class _Version(argparse.Action):
    """Work the version out only when it is asked for: it reads most of the course."""

    def __call__(self, parser, *_) -> None:
        parser.exit(message=f"{code_version()}\n")


def parser() -> argparse.ArgumentParser:
    """Describe the commands."""
    top = argparse.ArgumentParser(prog="python -m autograder", description=__doc__)
    top.add_argument("--version", action=_Version, nargs=0, help="say which this is")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")

    def add(function, name: str) -> argparse.ArgumentParser:
        text = function.__doc__.splitlines()[0]
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(run=function)
        return command

    add(generate, "generate")
    one = add(handout, "handout")
    one.add_argument(
        "chapter",
        nargs="?",
        metavar="CHAPTER",
        help="such as 04_attention, or a sheet of your own; 'short_*' puts all of such "
        "names into one folder (default: all chapters, in one folder)",
    )
    one.add_argument(
        "--agents",
        type=Path,
        default=generator.AGENTS,
        metavar="FILE",
        help="what coding assistants are asked to keep to, in place of the course's "
        "own AGENTS.md",
    )
    one.add_argument("--no-agents", action="store_true", help="leave AGENTS.md out")
    one.add_argument(
        "--out",
        type=Path,
        default=ROOT / "_build" / "handout",
        metavar="DIR",
        help="where to put the folder (default: _build/handout)",
    )
    many = add(release, "release")
    many.add_argument(
        "chapter",
        nargs="*",
        metavar="CHAPTER",
        help="chapters and sheets (default: all chapters)",
    )
    collecting.add_arguments(add(collecting.run, "collect"))
    grading.add_arguments(add(grading.run, "grade"))
    exports.add_arguments(add(exports.run, "export"))
    gradescope.add_arguments(add(gradescope.run, "gradescope"))
    return top


def main() -> int:
    """Run a command; a bad input is one line and exit code 2."""
    arguments = parser().parse_args()
    try:
        return arguments.run(arguments)
    except (Missing, SecretError, SheetError, SourceError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
