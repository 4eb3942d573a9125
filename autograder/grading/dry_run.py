"""Say what a grading would do, without doing any of it."""

import contextlib
import json
import statistics
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

from autograder.grading.classfile import Class
from autograder.grading.clean import line
from autograder.grading.deadlines import Attempt, duration, late_by, penalty
from autograder.grading.guard import Fault, guarded

GRADE, KEEP, REFUSE, PASS_OVER = "grade", "keep", "refuse", "pass over"


@dataclass(frozen=True)
class Planned:
    """What would be done with an attempt of a student's.

    Attributes:
        what: ``grade``; ``keep`` what a former run has graded already; ``refuse`` a
            file that cannot be graded; ``pass over`` an attempt that does not count.
        attempt: None if nothing was handed in.
        reason: why it is refused, kept or passed over.
    """

    student: str
    chapter: str
    what: str
    attempt: Attempt | None = None
    reason: str = ""


def speeds(audit: Path) -> dict[str, float]:
    """Return the usual seconds of a submission by chapter, from a former run.

    Args:
        audit: its audit.jsonl; without one, nothing is known.
    """
    seconds = defaultdict(list)
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        for text in audit.read_text(encoding="utf-8").splitlines():
            entry = json.loads(text)
            if entry["seconds"] > 0:
                seconds[entry["chapter"]].append(entry["seconds"])
    return {chapter: statistics.mean(values) for chapter, values in seconds.items()}


def text(
    plan: Sequence[Planned],
    of_class: Class,
    points: dict[str, float],
    speed: dict[str, float],
    workers: int,
    faults: list[Fault] | None = None,
) -> str:
    """Write a plan as a table a chapter, with counts and the time it would take.

    A row that cannot be written says so, and is one of those to refuse.

    Args:
        plan: what would be done, in the order to be shown.
        of_class: due dates and rules.
        points: the most a chapter gives.
        speed: seconds a submission (``speeds``).
        workers: how many are graded at a time.
        faults: takes what went wrong in rows.
    """
    written = [_written(each, of_class, points) for each in plan]
    plan = [each for each, _, _ in written]
    if faults is not None:
        faults += [fault for _, _, fault in written if fault]
    rows = [(each.chapter, row) for each, row, _ in written]
    tables = [_table(chapter, rows) for chapter in dict.fromkeys(c for c, _ in rows)]
    lines = [
        *(line for table in tables for line in (*table, "")),
        f"late rule: {of_class.late}; attempt that counts: {of_class.attempts}",
        _counts(plan),
        _time(plan, speed, workers),
        "dry run: nothing was graded or written",
    ]
    return "\n".join(lines)


def _written(
    planned: Planned, of_class: Class, points: dict[str, float]
) -> tuple[Planned, tuple, Fault | None]:
    """Write a row; if that fails, one that says so, and refuse what it is about."""
    row = guarded(_row, planned, of_class, points)
    if not isinstance(row, Fault):
        return planned, row, None
    refused = replace(planned, what=REFUSE, attempt=None, reason=str(row))
    return refused, (planned.student, "", "", "", "", f"{REFUSE}: {row}"), row


def _table(chapter: str, rows: Sequence[tuple[str, tuple]]) -> list[str]:
    title = (chapter, "attempt", "handed in", "due", "late", "")
    return _aligned([title, *(row for of, row in rows if of == chapter)])


def _row(planned: Planned, of_class: Class, points: dict[str, float]) -> tuple:
    due = of_class.due_for(planned.student, planned.chapter)
    attempt = planned.attempt
    name, handed_in, late = "", "", ""
    if attempt:
        name = attempt.name or "-"
        handed_in = _clock(attempt.handed_in, of_class.time_zone) or "unknown"
        late = _late(planned, attempt, due, of_class, points)
    what = planned.what + (f": {planned.reason}" if planned.reason else "")
    notes = "; ".join(attempt.notes) if attempt else ""
    what += f" ({notes})" if notes else ""
    until = _clock(due, of_class.time_zone)
    return planned.student, name, handed_in, until, late, what


def _late(
    planned: Planned,
    attempt: Attempt,
    due: datetime | None,
    of_class: Class,
    points: dict[str, float],
) -> str:
    late = late_by(due, attempt.handed_in, of_class.late.grace)
    if not late:
        return ""
    most = points[planned.chapter]
    cost = penalty(of_class.late, due, attempt.handed_in, most)
    return f"{duration(late)}, {-cost:+g}" if cost else duration(late)


def _clock(time: datetime | None, zone: tzinfo) -> str:
    return time.astimezone(zone).strftime("%Y-%m-%d %H:%M") if time else ""


def _aligned(rows: list[tuple]) -> list[str]:
    rows = [tuple(map(line, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) for cell, width in zip(row, widths, strict=True)
        ).rstrip()
        for row in rows
    ]


def _counts(plan: Sequence[Planned]) -> str:
    number = Counter(each.what for each in plan)
    return ", ".join(
        f"{number[what]} to {what}"
        for what in (GRADE, KEEP, REFUSE, PASS_OVER)
        if number[what]
    )


def _time(plan: Sequence[Planned], speed: dict[str, float], workers: int) -> str:
    number = Counter(each.chapter for each in plan if each.what == GRADE)
    unknown = [chapter for chapter in number if chapter not in speed]
    if not number:
        return "time: none"
    if unknown:
        return f"time: unknown, for no run has graded {', '.join(sorted(unknown))} yet"
    seconds = sum(count * speed[chapter] for chapter, count in number.items())
    in_all = duration(timedelta(seconds=seconds / workers))
    each = f"{seconds / sum(number.values()):.1f} s a submission, {workers} at a time"
    return f"time: about {in_all} ({each}, as in the last run)"


__all__ = ["GRADE", "KEEP", "PASS_OVER", "REFUSE", "Planned", "speeds", "text"]
