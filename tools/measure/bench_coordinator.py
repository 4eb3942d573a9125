"""Time the process that coordinates a grading, whose graders answer at once.

``python -m tools.measure.bench coordinator``. Everything is real but the cluster:
planning, reading, notebooks, feedback, gradebook, journal, tables. A few submissions
are graded once; a stand-in for the cluster then gives their outcomes to a large class,
in which each student has written something of his own. So what is measured is how many
graders one coordinator keeps busy, with SQLite and with PostgreSQL.
"""

import argparse
import contextlib
import dataclasses
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import psutil

from autograder.files import write_beside
from autograder.grading import cluster, command
from autograder.grading.grader import Grader
from autograder.grading.job import GRADED, Job, Outcome
from autograder.grading.paper import Paper
from autograder.grading.settings import put_environment_on_path
from tests.grading.test_postgresql import INITDB, Server
from tests.sample_class import notebooks
from tools import provenance
from tools.measure import bench_grading
from tools.steps import ROOT

CHAPTER = bench_grading.CHAPTER
RECORD = ROOT / "results" / "grader" / "coordinator.json"
FULL, QUICK = 20_000, 2_000
MISTAKES = 8  # submissions with one; two more are right
TENTHS = 10
MIB = 2**20
MARK = 987_654_321  # stands for what a student has written himself
OWN = f"\nown = ({', '.join([str(MARK)] * 9)})\n"


# --- the class ------------------------------------------------------------------------


def write_templates(folder: Path) -> None:
    """Make a few submissions, and grade them once."""
    kinds = {"solved": notebooks.solved, "other": notebooks.other_style}
    for number, pair in enumerate(bench_grading._mistakes()[::9][:MISTAKES]):
        kinds[f"mistake-{number}"] = lambda place, pair=pair: notebooks.mistake(
            place, *pair
        )
    paper = Paper.of(CHAPTER)
    grader = Grader(tuple(sorted(paper.imports())))
    try:
        for name, make in kinds.items():
            make(folder / name / CHAPTER)
            path = folder / name / CHAPTER / f"{CHAPTER}.ipynb"
            path.write_text(_with_own_code(path.read_text("utf-8")), "utf-8")
            job = Job(name, CHAPTER, path.read_bytes(), paper)
            outcome = grader.grade(job)
            if outcome.status != GRADED:
                raise SystemExit(f"{name}: {outcome.reason}")
            text = json.dumps(outcome.to_dict())
            (folder / f"{name}.json").write_text(text, "utf-8")
    finally:
        grader.close()


def _with_own_code(text: str) -> str:
    """Add to every answer something that no other student has."""
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        grading = cell["metadata"].get("nbgrader", {})
        if grading.get("solution") and cell["cell_type"] == "code":
            cell["source"] = "".join(cell["source"]) + OWN
    return json.dumps(notebook, ensure_ascii=False, indent=1)


def write_class(folder: Path, templates: Path, count: int) -> None:
    """Write as many submissions, of the templates in turn."""
    names = sorted(path.stem for path in templates.glob("*.json"))
    texts = {
        name: (templates / name / CHAPTER / f"{CHAPTER}.ipynb").read_text("utf-8")
        for name in names
    }
    for number in range(count):
        place = folder / student(number) / CHAPTER
        place.mkdir(parents=True)
        text = _marked(texts[names[number % len(names)]], number)
        (place / f"{CHAPTER}.ipynb").write_text(text, "utf-8")


def student(number: int) -> str:
    """Name a student."""
    return f"student-{number:05}"


def _marked(text: str, number: int) -> str:
    return text.replace(str(MARK), str(MARK + 1 + number))


# --- in the process that is measured --------------------------------------------------


class StandIn:
    """A cluster whose graders answer at once, and note how far the grading is."""

    def __init__(self, templates: Path, every: int) -> None:
        self._every, self.notes = every, []
        self._outcomes = [
            Outcome.from_dict(json.loads(path.read_text("utf-8")))
            for path in sorted(templates.glob("*.json"))
        ]

    def __call__(self, *arguments: object) -> "StandIn":
        """Be made, with whatever a cluster is made of."""
        return self

    def __enter__(self) -> "StandIn":
        return self

    def __exit__(self, *error: object) -> None:
        self.note(None)

    def grade_in_groups(
        self, jobs: Iterable[tuple[Any, Job]]
    ) -> Iterator[list[tuple[Any, Outcome]]]:
        """Give each job the outcome that one like it had, as if all were done."""
        done, waiting = 0, iter(jobs)
        self.note(done)
        while group := list(itertools.islice(waiting, cluster.TOGETHER)):
            yield [(label, self._outcome(job)) for label, job in group]
            before, done = done, done + len(group)
            if done // self._every > before // self._every:
                self.note(done)
        if done % self._every:
            self.note(done)

    def _outcome(self, job: Job) -> Outcome:
        number = int(job.student.partition("-")[2])
        like = self._outcomes[number % len(self._outcomes)]
        text = _marked(like.notebook, number)
        return dataclasses.replace(like, student=job.student, notebook=text)

    def note(self, done: int | None) -> None:
        """Keep the time, and the memory of this process."""
        self.notes.append(
            (done, time.perf_counter(), psutil.Process().memory_info().rss)
        )


def coordinate(words: list[str]) -> None:
    """Grade a class by the stand-in; write what was noted to a file."""
    templates, every, notes, *rest = words
    put_environment_on_path()
    stand_in = StandIn(Path(templates), int(every))
    cluster.Cluster = stand_in
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    code = command.run(parser.parse_args(rest))
    Path(notes).write_text(json.dumps(stand_in.notes))
    raise SystemExit(code)


# --- outside --------------------------------------------------------------------------


def measure(folder: Path, name: str, count: int, db: str) -> dict[str, Any]:
    """Grade the class in a process of its own, with a database."""
    every, notes = count // TENTHS, folder / f"{name}.json"
    line = [sys.executable, "-m", "tools.measure.bench_coordinator"]
    line += [str(folder / "templates"), str(every), str(notes)]
    line += ["--submissions", str(folder / "class"), "--out", str(folder / name)]
    line += ["--chapter", CHAPTER, *(["--db", db] if db else [])]
    environment = bench_grading._environment()
    with (folder / f"{name}.log").open("w+") as log:
        done = subprocess.run(
            line, cwd=ROOT, stdout=log, stderr=log, env=environment, check=False
        )
        log.seek(0)
        bench_grading._finish(line, done, log.read())
    return figures(json.loads(notes.read_text()))


def figures(notes: list[tuple[int | None, float, int]]) -> dict[str, Any]:
    """Work out what a submission takes, and how it grows."""
    *parts, end = notes
    tenths = [
        1000 * (after[1] - before[1]) / (after[0] - before[0])
        for before, after in itertools.pairwise(parts)
    ]
    count = parts[-1][0]
    return {
        "submissions": count,
        "milliseconds": 1000 * (parts[-1][1] - parts[0][1]) / count,
        "milliseconds_of_tenths": [round(each, 3) for each in tenths],
        "memory_of_tenths": [each[2] for each in parts[1:]],
        "milliseconds_with_tables": 1000 * (end[1] - parts[0][1]) / count,
        "memory_with_tables": end[2],
    }


@contextlib.contextmanager
def databases() -> Iterator[dict[str, str]]:
    """Give the addresses of the gradebooks by name; start PostgreSQL if it is here."""
    if INITDB is None:
        yield {"sqlite": ""}
        return
    with tempfile.TemporaryDirectory(prefix="postgresql-") as folder:
        server = Server(Path(folder))
        try:
            yield {"sqlite": "", "postgresql": server.address}
        finally:
            server.stop()


def main(arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure with each database, print a table, return all figures."""
    made = provenance.made_by("python -m tools.measure.bench coordinator --record")
    count = QUICK if arguments.quick else FULL
    found: dict[str, Any] = {"chapter": CHAPTER, "databases": {}}
    print(f"coordinating {count} submissions of {CHAPTER}", flush=True)
    with tempfile.TemporaryDirectory(prefix="bench-coordinator-") as name:
        folder = Path(name)
        write_templates(folder / "templates")
        write_class(folder / "class", folder / "templates", count)
        with databases() as addresses:
            for kind, address in addresses.items():
                found["databases"][kind] = measure(folder, kind, count, address)
                _print(kind, found["databases"][kind])
    if arguments.record:
        write_beside(RECORD, json.dumps(made | found, indent=1) + "\n")
    return found


def _print(name: str, found: dict[str, Any]) -> None:
    tenths, memory = found["milliseconds_of_tenths"], found["memory_of_tenths"]
    print(
        f"  {name:<12} {found['milliseconds']:6.2f} ms a submission (second tenth "
        f"{tenths[1]:.2f}, last {tenths[-1]:.2f}), with tables "
        f"{found['milliseconds_with_tables']:.2f}; memory {memory[1] / MIB:.0f} MiB in "
        f"the second tenth, {memory[-1] / MIB:.0f} in the last, "
        f"{found['memory_with_tables'] / MIB:.0f} after the tables",
        flush=True,
    )


if __name__ == "__main__":
    coordinate(sys.argv[1:])
