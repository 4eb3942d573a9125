"""Measure on this machine: models, checks, the grading of a class, and the site.

Run by `make bench`. Only ratios that were measured in one run compare; seconds are of
this machine and of what else it was doing.
"""

import argparse
from pathlib import Path

from tools.measure import (
    bench_checks,
    bench_coordinator,
    bench_endless,
    bench_grading,
    bench_language_model,
    bench_models,
    bench_site,
)

ALONE = {  # parts that are asked for by name
    "coordinator": bench_coordinator,
    "endless": bench_endless,
    "language-model": bench_language_model,
    "site": bench_site,
}


def read_arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.measure.bench",
        description="Time training steps and decoding against PyTorch's own layers, "
        "with their peaks of memory, the checks as a student waits for them, and the "
        "grading of a class against stock nbgrader; of the site, how soon it answers.",
    )
    parser.add_argument(
        "part",
        nargs="?",
        choices=["all", *ALONE, "models", "checks", "grading"],
        default="all",
        help="models: training and decoding; checks: those of the notebooks; grading: "
        "of 100 submissions by nbgrader and by ours, and of 1000 by ours; all: these "
        "three; coordinator: the process that plans and records, with graders that "
        "answer at once, for 20 000 submissions; endless: a class of 32 with one "
        "function that never returns, against the same class without; language-model: "
        "its training step, and writing with and without a cache; site: figures, a "
        "live translation and a page built again, which needs the built site and "
        "Chromium",
    )
    parser.add_argument("--device", default="auto", help="auto (the default) or a name")
    parser.add_argument(
        "--threads",
        type=int,
        default=1,
        metavar="N",
        help="on a CPU (1: processor time, which other programs do not disturb)",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="smaller batches, fewer repeats, 10 and 50 submissions, 2000 coordinated",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write the models' figures there"
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="grading, coordinator, endless, site: write results/grader/bench.json, "
        "results/grader/coordinator.json, results/grader/endless.json, "
        "results/site/bench.json",
    )
    parser.add_argument(
        "--no-rebuild", action="store_true", help="site: leave the build out"
    )
    parser.add_argument(
        "--memory-of", nargs=2, metavar=("GROUP", "CASE"), help=argparse.SUPPRESS
    )
    return parser.parse_args(words)


def main() -> None:
    """Print all parts, or the one asked for."""
    arguments = read_arguments()
    if arguments.memory_of:
        bench_models.memory_main(arguments)
        return
    if arguments.part in ALONE:
        ALONE[arguments.part].main(arguments)
        return
    if arguments.part in ("all", "models"):
        result = bench_models.main(arguments)
        if arguments.json:
            bench_models.write(arguments.json, result)
    if arguments.part == "all":
        print()
    if arguments.part in ("all", "checks"):
        bench_checks.main()
    if arguments.part == "all":
        print()
    if arguments.part in ("all", "grading"):
        bench_grading.main(arguments)


if __name__ == "__main__":
    main()
