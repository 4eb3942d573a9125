"""Make the sample class, grade it, compare: ``python -m tests.sample_class``."""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from autograder.grading import sandbox
from tests import sample_class
from tests.sample_class import CELL_TIMEOUT, Submission

MARK = "MADE_BY_TESTS.txt"


def main() -> int:
    """Grade the sample class; 1 if any score, status or reason is not as written."""
    parser = argparse.ArgumentParser(prog="python -m tests.sample_class")
    parser.add_argument("--out", type=Path, default=Path("_build/sample_class"))
    out = parser.parse_args().out.resolve()
    if out.exists() and any(out.iterdir()) and not (out / MARK).exists():
        print(f"error: {out}: holds something else; choose another", file=sys.stderr)
        return 2
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / MARK).write_text("Made by python -m tests.sample_class; it may go.\n")
    submissions = sample_class.read_class()
    code = grade(out, submissions)
    if code:
        return code
    return 1 if show(sample_class.differences(out, submissions)) else 0


def grade(out: Path, submissions: list[Submission], *more: str) -> int:
    """Build the notebooks in OUT/submissions and grade them into OUT."""
    sample_class.build(out / "submissions", submissions)
    if sandbox.problem():
        # nobody else's notebooks: these are the course's own
        print(f"notice: graded without a sandbox. {sandbox.problem()}", flush=True)
        more = (*more, "--unsafe")
    command = [
        *(sys.executable, "-m", "autograder", "grade"),
        *("--submissions", str(out / "submissions"), "--out", str(out)),
        *("--cell-timeout", str(CELL_TIMEOUT), *more),
    ]
    return subprocess.run(command, check=False).returncode


def show(differences: dict[Submission, list[str]]) -> bool:
    """Print a line for each submission; return whether anything differs."""
    print(f"\n{'student':<20} {'chapter':<24} {'points':>7}  what it shows")
    for each, wrong in sorted(
        differences.items(), key=lambda pair: (pair[0].chapter, pair[0].student)
    ):
        score = "-" if each.score is None else f"{each.score:g}"
        shows = each.shows or each.ungraded
        print(f"{each.student:<20} {each.chapter:<24} {score:>7}  {shows}")
        for text in wrong:
            print(f"    DIFFERS: {text}")
    count = sum(map(bool, differences.values()))
    total = len(differences)
    print(f"\n{total - count} of {total} results are as class.yml says")
    return count > 0


if __name__ == "__main__":
    sys.exit(main())
