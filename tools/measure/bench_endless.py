"""What one function that never returns costs a class: the same class with and without.

Run by `python -m tools.measure.bench endless`. The function is the one that most of a
chapter's later exercises call. It stands in the middle of the class, once in each
repeat.
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import nbformat

from autograder.files import write_beside
from autograder.generator import ROOT
from tools import provenance
from tools.measure import bench_grading

RECORD = ROOT / "results" / "grader" / "endless.json"
FUNCTION = "softmax"
ENDLESS = "def softmax(scores, dim=-1):\n    while True:\n        pass\n"
SIZE, REPEATS = 32, 3
QUICK_SIZE = 6


def write_classes(folder: Path, size: int) -> None:
    """Write a class, and the same one in which one student's function never returns."""
    for name in ("without", "with"):
        bench_grading.write_class(folder / name, size)
    student = f"student-{size // 10 * 5:04}"  # one of those who solve everything
    chapter = bench_grading.CHAPTER
    path = folder / "with" / student / chapter / f"{chapter}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == FUNCTION:
            cell.source = ENDLESS
    nbformat.write(notebook, path)


def main(arguments: argparse.Namespace) -> dict[str, Any]:
    """Grade both classes, several times in turns; print and return all figures."""
    made = provenance.made_by("python -m tools.measure.bench endless --record")
    size = QUICK_SIZE if arguments.quick else SIZE
    repeats = 1 if arguments.quick else REPEATS
    runs: dict[str, list[bench_grading.Run]] = {"without": [], "with": []}
    with tempfile.TemporaryDirectory(prefix="bench-endless-") as name:
        folder = Path(name)
        write_classes(folder, size)
        for number in range(repeats):
            for which, done in runs.items():
                out = folder / f"out-{which}-{number}"
                done.append(bench_grading.grade_by_ours(out, folder / which))
                print(f"  {which:<8} {done[-1].seconds:>6.1f} s", flush=True)
    found = made | figures(runs, size)
    print(f"  ratio {found['ratio']:.2f}, points of {found['same_scores']} unchanged")
    if arguments.record:
        write_beside(RECORD, json.dumps(found, indent=1) + "\n")
    return found


def figures(runs: dict[str, list[bench_grading.Run]], size: int) -> dict[str, Any]:
    """Work out what is compared: the median of the times, and everybody's points."""
    seconds = {which: [run.seconds for run in done] for which, done in runs.items()}
    medians = {which: statistics.median(each) for which, each in seconds.items()}
    before, after = (runs[which][0].scores for which in ("without", "with"))
    return {
        "chapter": bench_grading.CHAPTER,
        "function": FUNCTION,
        "workers": bench_grading.WORKERS,
        "students": size,
        "seconds": seconds,
        "ratio": medians["with"] / medians["without"],
        "same_scores": sum(after.get(each) == before[each] for each in before),
    }
