"""What a grading leaves: grades.csv, audit.jsonl, and a table on the screen."""

from autograder.grading.clean import csv_file, json_line, line, plain
from autograder.grading.gradebook import Row
from autograder.grading.guard import Fault
from autograder.grading.job import GRADED, flag_text

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
    "flags",
)
AUDIT = (  # of a journal's entry
    "student",
    "chapter",
    "status",
    "reason",
    "repairs",
    "limited",
    "tried",
    "flags",
    "unseen",
    "stopped",
    "packages",
    "notes",
    "unsafe",
    "attempt",
    "handed_in",
    "due",
    "penalty",
    "sha256",
    "paper",
    "seeds",
    "seconds",
    "versions",
    "log",
)
LONGEST = 10_000  # characters of a reason; a spreadsheet's cell holds three times that
UNSAFE = "graded without a sandbox"


def grade(entry: dict, row: Row | None, facts: dict[str, str]) -> dict[str, str]:
    """Return a line of grades.csv; an ungraded one has no score at all.

    Args:
        entry: the journal's.
        row: the gradebook's.
        facts: the columns that a student has without a grade, too.
    """
    missing = {"assignment": entry["chapter"], "student_id": entry["student"]}
    columns = row.columns if row else missing | facts
    flags = "; ".join(map(flag_text, entry["flags"]))
    said = {"reason": reason(entry, row), "flags": flags}
    return columns | {"status": entry["status"]} | said


def reason(entry: dict, row: Row | None) -> str:
    """Say why there is no grade, or what an instructor should know about it."""
    parts = [entry["reason"]] if entry["reason"] else []
    if row and row.by_hand:
        parts.append(f"to be graded by hand: {', '.join(row.by_hand)}")
    if row and row.confirm:
        again = ", ".join(row.confirm)
        parts.append(f"graded by hand before, to be confirmed: {again}")
    if entry["status"] == GRADED:
        for what, found in (
            ("repaired", entry["repairs"]),
            ("limited", entry["limited"] + entry["unseen"]),
        ):
            if found:
                parts.append(f"{what}: {'; '.join(found)}")
        parts += entry["notes"]
        if entry["unsafe"]:
            parts.append(UNSAFE)
    return plain(". ".join(parts), LONGEST)


def grades(rows: list[dict[str, str]]) -> str:
    """Write grades.csv."""
    return csv_file([COLUMNS, *([row.get(c, "") for c in COLUMNS] for row in rows)])


def audit(entry: dict, row: Row | None) -> str:
    """Write a line of audit.jsonl: what was done to a submission, and by what."""
    facts = {name: entry[name] for name in AUDIT}
    facts |= {"reason": reason(entry, row), "scores": row.scores if row else {}}
    facts["given"] = {
        verdict["exercise"]: verdict["given"]
        for verdict in entry["verdicts"]
        if verdict.get("given")
    }
    return json_line(facts)


def of_a_fault(entry: dict, own: dict[str, str]) -> tuple[dict[str, str], str]:
    """Return the row and the line of a submission over which the grader failed.

    It may have failed in ``grade`` or ``audit``, so these are not asked again.
    """
    row = {"assignment": entry["chapter"], "student_id": entry["student"]} | own
    facts = {name: entry[name] for name in AUDIT} | {"scores": {}}
    said = {"status": entry["status"], "reason": entry["reason"]}
    return row | said, json_line(facts)


def audit_of_the_report(fault: Fault) -> str:
    """Write a line of audit.jsonl: why there is no report on the class."""
    nobody = dict.fromkeys(AUDIT) | {"seconds": 0.0, "status": "no report"}
    return json_line(nobody | {"reason": str(fault), "log": fault.log})


def table(rows: list[dict[str, str]]) -> str:
    """Sum up a class by chapter, and list who was not graded and why."""
    lines = [f"{'chapter':<28} {'graded':>6} {'ungraded':>8} {'mean':>7} {'of':>6}"]
    for chapter in sorted({row["assignment"] for row in rows}):
        of_chapter = [row for row in rows if row["assignment"] == chapter]
        scores = [float(row["score"]) for row in of_chapter if row["status"] == GRADED]
        mean = f"{sum(scores) / len(scores):.2f}" if scores else "-"
        lines.append(
            f"{chapter:<28} {len(scores):>6} {len(of_chapter) - len(scores):>8} "
            f"{mean:>7} {of_chapter[0]['max_score']:>6}"
        )
    lost = [row for row in rows if row["status"] != GRADED]
    if lost:
        lines += ["", "not graded:"]
        lines += [
            line(f"  {r['student_id']}, {r['assignment']}: {r['reason']}") for r in lost
        ]
    return "\n".join(lines)
