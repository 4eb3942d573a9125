"""Make the whole course and end with a table of what was made and where.

Run by `make course` with the environment's Python, after the environment was made:

    python -m tools.course SECONDS_SINCE_THE_EPOCH_WHEN_THE_COMMAND_BEGAN
"""

import csv
import json
import re
import sys
import time
from collections import Counter

from autograder.grading import sandbox
from tools.steps import ROOT, run_step

BUILD = ROOT / "_build"
SAMPLE_CLASS = BUILD / "sample_class"
STEPS = {
    "exercises": ["-m", "autograder", "generate"],
    "site": ["-m", "tools.site.book"],
    "sample class": ["-m", "tests.sample_class", "--out", str(SAMPLE_CLASS)],
}


def main(began: float) -> None:
    """Run every step, then print the table."""
    total = len(STEPS) + 1
    seconds = {"environment": time.time() - began}
    print(f"[1/{total}] environment … done in {seconds['environment']:.0f} s")
    for number, (name, arguments) in enumerate(STEPS.items(), start=2):
        log = BUILD / "logs" / f"{name.replace(' ', '_')}.log"
        command = [sys.executable, *arguments]
        seconds[name] = run_step(f"[{number}/{total}] {name}", command, log)
    where = {
        "environment": (".venv/", [f"Python {sys.version.split()[0]}"]),
        "exercises": ("exercises/", exercise_figures()),
        "site": ("_build/html/index.html", site_figures()),
        "sample class": ("_build/sample_class/grades.csv", class_figures()),
    }
    print_table(
        [
            (name, place, f"{seconds[name]:.0f} s", figures)
            for name, (place, figures) in where.items()
        ]
    )
    print(f"The course is made, in {time.time() - began:.0f} s. Open the site:")
    print(f"    {BUILD / 'html' / 'index.html'}")
    if problem := sandbox.problem():
        print(f"\nNote: the sample class was graded without a sandbox.\n{problem}")


def exercise_figures() -> list[str]:
    """Exercises and points of each chapter, counted in the notebooks."""
    lines = []
    for path in sorted((ROOT / "exercises").glob("*/*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        prose = [cell["source"] for cell in cells if cell["cell_type"] == "markdown"]
        text = "\n".join("".join(source) for source in prose)
        exercises = len(re.findall(r"^## Exercise \d+\.\d+", text, re.MULTILINE))
        graded = [cell["metadata"].get("nbgrader", {}) for cell in cells]
        points = sum(cell.get("points", 0) for cell in graded)
        lines.append(f"{path.stem}: {exercises} exercises, {points} points")
    return lines


def site_figures() -> list[str]:
    """Pages and size of the site."""
    files = [path for path in (BUILD / "html").rglob("*") if path.is_file()]
    pages = sum(path.suffix == ".html" for path in files)
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    return [f"{pages} pages, {megabytes:.1f} MB, works offline"]


def class_figures() -> list[str]:
    """How many submissions were graded, and what became of the others."""
    with (SAMPLE_CLASS / "grades.csv").open(newline="", encoding="utf-8") as file:
        status = Counter(row["status"] for row in csv.DictReader(file))
    counts = ", ".join(f"{count} {name}" for name, count in sorted(status.items()))
    return [f"{status.total()} submissions: {counts}", "every score is as expected"]


def print_table(rows: list[tuple[str, str, str, list[str]]]) -> None:
    """Print what was made, where, how long it took and its key figures."""
    lines = [("made", "where", "time", "what is in it")]
    for name, where, time_taken, figures in rows:
        lines.append((name, where, time_taken, figures[0] if figures else ""))
        lines += [("", "", "", figure) for figure in figures[1:]]
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    rule = "  ".join("─" * width for width in widths)
    print("\n" + rule)
    for number, line in enumerate(lines):
        cells = [cell.ljust(w) for cell, w in zip(line, widths, strict=True)]
        print("  ".join(cells).rstrip())
        if number == 0:
            print(rule)
    print(rule + "\n")


if __name__ == "__main__":
    main(float(sys.argv[1]))
