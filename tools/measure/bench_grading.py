"""Grade the same class by stock nbgrader and by ours, on this machine, in one run.

Run by `make bench`. The submissions are made like those of the sample class: solved
notebooks, right ones in another style, and ones with a single mistake of the bank. The
same command then grades ten times as many, to see what grows with the class.
"""

import argparse
import csv
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from nbgrader.api import Gradebook

from autograder.files import write_beside
from autograder.generator import ROOT, write_nbgrader_source
from autograder.grading.settings import put_environment_on_path
from tests import chapters
from tests.sample_class import notebooks
from tools import provenance

CHAPTER = "04_attention"
WORKERS = 2
MIB = 2**20
RECORD = ROOT / "results" / "grader" / "bench.json"
SECONDS_BETWEEN_LOOKS = 0.5  # at the memory


@dataclass(frozen=True)
class Sizes:
    """How many submissions are graded."""

    compared: int  # by both
    many: int  # by ours alone


FULL = Sizes(compared=100, many=1000)
QUICK = Sizes(compared=10, many=50)


@dataclass
class Run:
    """What came of grading a class once."""

    submissions: int
    seconds: float
    scores: dict[str, float]  # by student
    memory: list[int] = field(default_factory=list)  # bytes of the trusted side
    start: float = 0.0  # seconds until the first feedback page was there

    @property
    def cost_of_one(self) -> float:
        """Seconds that each submission but the first adds, start-up taken off."""
        return (self.seconds - self.start) / max(1, self.submissions - 1)

    @property
    def a_minute(self) -> float:
        """Submissions a minute, from the command's start to its end."""
        return 60 * self.submissions / self.seconds


# --- the class ------------------------------------------------------------------------


def write_class(folder: Path, count: int) -> None:
    """Write submissions: of five, two solved, one in another style, two mistaken."""
    mistakes = itertools.cycle(_mistakes())
    for number in range(count):
        place = folder / f"student-{number:04}" / CHAPTER
        place.parent.mkdir(parents=True)
        if number % 5 in (0, 1):
            notebooks.solved(place)
        elif number % 5 == 2:
            notebooks.other_style(place)
        else:
            notebooks.mistake(place, *next(mistakes))


def _mistakes() -> list[tuple[str, str]]:
    """Name what is written out in the bank, each once; neighbours differ."""
    entries = chapters.by_hand(CHAPTER)
    found = {(each.exercise, each.mistake) for each in entries if each.mistake}
    return sorted(found, key=lambda pair: pair[::-1])


# --- stock nbgrader -------------------------------------------------------------------


def grade_by_nbgrader(course: Path, submissions: Path) -> Run:
    """Release the chapter in a new course and run `nbgrader autograde`, as it comes."""
    put_environment_on_path()
    write_nbgrader_source(CHAPTER, course / "source" / CHAPTER)
    (course / "nbgrader_config.py").write_text("c = get_config()\n", encoding="utf-8")
    (course / "submitted").symlink_to(submissions)
    _nbgrader(course, "generate_assignment")
    begin = time.perf_counter()
    _nbgrader(course, "autograde")
    seconds = time.perf_counter() - begin
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        scores = {
            each.student.id: each.score
            for each in gradebook.assignment_submissions(CHAPTER)
        }
    return Run(len(list(submissions.iterdir())), seconds, scores)


def _nbgrader(course: Path, step: str) -> None:
    command = [sys.executable, "-m", "nbgrader", step, CHAPTER]
    _finish(command, subprocess.run(command, cwd=course, **_OUTPUT, env=_environment()))


# --- ours -----------------------------------------------------------------------------


def grade_by_ours(out: Path, submissions: Path) -> Run:
    """Run `python -m autograder grade`, and look at its memory meanwhile.

    No mistake is carried forward: nbgrader does not judge an answer once more with a
    right one in another's place, and both are to give the same points.
    """
    rules = out.with_suffix(".yml")
    rules.write_text("carried_forward: 0\n", encoding="utf-8")
    command = [sys.executable, "-m", "autograder", "grade", "--chapter", CHAPTER]
    command += ["--submissions", str(submissions), "--out", str(out)]
    command += ["--workers", str(WORKERS), "--class", str(rules)]
    memory, begin, begin_of_files = [], time.perf_counter(), time.time()
    with tempfile.TemporaryFile("w+") as log:
        with subprocess.Popen(
            command, cwd=ROOT, stdout=log, stderr=log, text=True, env=_environment()
        ) as process:
            while process.poll() is None:
                memory.append(trusted_memory(process.pid))
                time.sleep(SECONDS_BETWEEN_LOOKS)
        seconds = time.perf_counter() - begin
        log.seek(0)
        _finish(command, process, log.read())
    with (out / "grades.csv").open(newline="", encoding="utf-8") as file:
        scores = {
            row["student_id"]: float(row["raw_score"])
            for row in csv.DictReader(file)
            if row["status"] == "graded"
        }
    first = min(page.stat().st_mtime for page in out.glob("feedback/*/*.html"))
    count = len(list(submissions.iterdir()))
    return Run(count, seconds, scores, memory, first - begin_of_files)


def trusted_memory(pid: int) -> int:
    """Add up the memory of the coordinator and the graders, shared pages in part.

    What runs behind a sandbox's wall, and the zygote before it, is not counted.
    """
    return sum(map(_proportional_size, _trusted_processes(pid)))


def _trusted_processes(pid: int) -> Iterator[psutil.Process]:
    waiting = [pid]
    while waiting:
        try:
            process = psutil.Process(waiting.pop())
            command = " ".join(process.cmdline())
            if "bwrap" in command or "autograder.boundary" in command:
                continue
            waiting += [child.pid for child in process.children()]
            yield process
        except psutil.Error:  # it has ended
            continue


def _proportional_size(process: psutil.Process) -> int:
    try:
        return process.memory_full_info().pss
    except psutil.Error:
        return 0


# --- both -----------------------------------------------------------------------------

_OUTPUT = {"capture_output": True, "text": True}


def _environment() -> dict[str, str]:
    """Let every process use one thread, and find the course's packages."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}


def _finish(command: list[str], done: Any, output: str = "") -> None:
    if done.returncode:
        output = output or done.stdout + done.stderr
        raise SystemExit(f"{' '.join(command)}: failed\n{output[-2000:]}")


def main(arguments: argparse.Namespace) -> dict[str, Any]:
    """Grade the classes, print a table, return all figures."""
    made = provenance.made_by("python -m tools.measure.bench grading --record")
    sizes = QUICK if arguments.quick else FULL
    with tempfile.TemporaryDirectory(prefix="bench-grading-") as name:
        folder = Path(name)
        counts = {"one": 1, "compared": sizes.compared, "many": sizes.many}
        for group, count in counts.items():
            write_class(folder / group, count)
        print(f"grading {CHAPTER}, {WORKERS} workers", flush=True)
        stock = grade_by_nbgrader(folder / "stock", folder / "compared")
        _print_row("nbgrader autograde", stock, stock)
        ours = {}
        for group in counts:
            ours[group] = grade_by_ours(folder / f"out-{group}", folder / group)
            _print_row("autograder grade", ours[group], stock)
    _print_rest(stock, ours)
    found = figures(stock, ours)
    if arguments.record:
        record(made | found)
    return found


def record(found: dict[str, Any]) -> None:
    """Write down what was measured."""
    write_beside(RECORD, json.dumps(found, indent=1) + "\n")


def _print_row(name: str, run: Run, stock: Run) -> None:
    print(
        f"  {name:<20} {run.submissions:>5} submissions {run.seconds:>8.1f} s "
        f"{run.a_minute:>7.1f} a minute   x {run.a_minute / stock.a_minute:.1f}",
        flush=True,
    )


def _print_rest(stock: Run, ours: dict[str, Run]) -> None:
    found = figures(stock, ours)
    print(
        f"  same scores: {found['same_scores']} of {found['compared']}\n"
        f"  one submission, start-up taken off: {found['one_of_compared']:.3f} s of "
        f"{found['compared']}, {found['one_of_many']:.3f} s of {found['many']}\n"
        f"  memory of the trusted side, {found['many']} submissions: "
        f"{found['memory_begin'] / MIB:.0f} MiB in the second tenth of the time, "
        f"{found['memory_end'] / MIB:.0f} MiB in the last but one"
    )


def figures(stock: Run, ours: dict[str, Run]) -> dict[str, Any]:
    """Work out what is compared."""
    compared, many = ours["compared"], ours["many"]
    same = [
        student
        for student, score in stock.scores.items()
        if compared.scores.get(student) == score
    ]
    return {
        "chapter": CHAPTER,
        "workers": WORKERS,
        "compared": compared.submissions,
        "many": many.submissions,
        "seconds_stock": stock.seconds,
        "seconds": {name: run.seconds for name, run in ours.items()},
        "ratio": compared.a_minute / stock.a_minute,
        "same_scores": len(same),
        "seconds_to_first": {name: run.start for name, run in ours.items()},
        "one_of_compared": compared.cost_of_one,
        "one_of_many": many.cost_of_one,
        "memory_begin": _in_tenth(many.memory, 1),
        "memory_end": _in_tenth(many.memory, 8),
    }


def _in_tenth(memory: list[int], tenth: int) -> float:
    begin, end = (len(memory) * part // 10 for part in (tenth, tenth + 1))
    return statistics.median(memory[begin : max(end, begin + 1)])
