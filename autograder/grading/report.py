"""What an instructor gets: grades.csv, audit.jsonl, and a table on the screen."""

import csv
import html
import io
import json
import platform
from dataclasses import asdict
from importlib.metadata import version

from autograder.grading.tasks import GRADED, Result

COLUMNS = (  # nbgrader's own, then ours
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    "last_name",
    "first_name",
    "email",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
    "status",
    "reason",
)
PACKAGES = {
    "autograder": "transformers-by-hand",
    "torch": "torch",
    "nbgrader": "nbgrader",
}


def grades(results: list[Result], facts: dict[str, dict]) -> str:
    """Write one CSV line a student and chapter; an ungraded one has no score at all."""
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    table.writeheader()
    for result in results:
        missing = {"assignment": result.chapter, "student_id": result.student}
        row = result.row or missing | facts[result.chapter]
        table.writerow(row | {"status": result.status, "reason": result.reason})
    return text.getvalue()


def audit(results: list[Result]) -> str:
    """Write one JSON line a student and chapter: what was done, and by what."""
    versions = {name: version(package) for name, package in PACKAGES.items()}
    versions["python"] = platform.python_version()
    lines = []
    for result in results:
        entry = asdict(result)
        del entry["row"]
        lines.append(json.dumps(entry | {"versions": versions}, ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines)


def ungraded_page(result: Result) -> str:
    """Write the page that a student gets whose submission was not graded."""
    reason, chapter = html.escape(result.reason), html.escape(result.chapter)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{chapter}: not graded</title></head>\n"
        f"<body><h1>{chapter}: not graded</h1>\n<p>Reason: {reason}.</p>\n"
        "<p>This is not a score of 0. Ask your instructor what to do.</p>\n"
        "</body></html>\n"
    )


def table(results: list[Result]) -> str:
    """Sum up a class by chapter, and list who was not graded and why."""
    lines = [f"{'chapter':<28} {'graded':>6} {'ungraded':>8} {'mean':>7} {'of':>6}"]
    for chapter in sorted({result.chapter for result in results}):
        rows = [result for result in results if result.chapter == chapter]
        scores = [float(r.row["score"]) for r in rows if r.status == GRADED]
        most = next((r.row["max_score"] for r in rows if r.status == GRADED), "")
        mean = f"{sum(scores) / len(scores):.2f}" if scores else "-"
        lines.append(
            f"{chapter:<28} {len(scores):>6} {len(rows) - len(scores):>8} "
            f"{mean:>7} {most:>6}"
        )
    lost = [result for result in results if result.status != GRADED]
    if lost:
        lines += ["", "not graded:"]
        lines += [f"  {r.student}, {r.chapter}: {r.reason}" for r in lost]
    return "\n".join(lines)
