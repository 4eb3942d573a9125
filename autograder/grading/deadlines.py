"""Due dates, late rules and attempts: what was handed in when, and what that costs.

The rules are functions over data. What nbgrader knows as well (due dates, extensions,
the time of handing in, penalties) is entered into its gradebook by gradebook.py, so
that its export and formgrader agree with grades.csv.
"""

import contextlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from autograder.files import entries, read_regular
from autograder.grading.reading import Refused

DAY = timedelta(days=1)
TIMESTAMP = "timestamp.txt"
YEARS = range(1970, 2200)  # of a time; near the ends of the calendar no zone is left
MOST_ATTEMPTS = 100  # at a chapter
LAST, BEST = "last", "best"

# --- late rules -----------------------------------------------------------------------


@dataclass(frozen=True)
class LateRule:
    """What a day costs that work is late; a begun day counts as one.

    Attributes:
        percent: of the chapter's points, a day.
        points: a day.
        zero_after: days after which nothing is left; None: never.
        grace: up to this much after the due date is not late. Later than that, the
            days count from the due date.
    """

    percent: float = 0.0
    points: float = 0.0
    zero_after: int | None = None
    grace: timedelta = timedelta(0)

    def __str__(self) -> str:
        """Say the rule in the words that ``parse_rule`` reads."""
        parts = []
        if self.percent:
            parts.append(f"{self.percent:g} % a day")
        if self.points:
            parts.append(f"{self.points:g} points a day")
        if self.zero_after is not None:
            parts.append(f"zero after {self.zero_after} days")
        return ", ".join(parts) or "none"


_RULES = (
    ("percent", re.compile(r"(\d+(?:\.\d+)?) ?% (?:a|per) day")),
    ("points", re.compile(r"(\d+(?:\.\d+)?) points? (?:a|per) day")),
    ("zero_after", re.compile(r"zero after (\d+) days?")),
)
RULES_ALLOWED = (
    "none, N % a day, N points a day, zero after N days, or two with a comma, such as "
    "10 % a day, zero after 7 days"
)


def parse_rule(text: str, grace: timedelta = timedelta(0)) -> LateRule:
    """Read a late rule from words.

    Raises:
        ValueError: what the text may be instead.
    """
    if text.strip() == "none":
        return LateRule(grace=grace)
    found: dict[str, Any] = {}
    for part in text.split(","):
        words = " ".join(part.split())
        for name, pattern in _RULES:
            match = pattern.fullmatch(words)
            if match and name not in found:
                found[name] = (int if name == "zero_after" else float)(match[1])
                break
        else:
            raise ValueError(f"{text!r} is no late rule; allowed: {RULES_ALLOWED}")
    if {"percent", "points"} <= found.keys():
        raise ValueError(f"{text!r}: a percentage or points, not both")
    if found.get("percent", 0) > 100:
        raise ValueError(f"{text!r}: more than 100 %")
    return LateRule(**found, grace=grace)


def late_by(
    due: datetime | None,
    handed_in: datetime | None,
    grace: timedelta = timedelta(0),
) -> timedelta:
    """Return how late work is; nothing if either time is unknown."""
    if due is None or handed_in is None or handed_in <= due + grace:
        return timedelta(0)
    return handed_in - due


def penalty(
    rule: LateRule, due: datetime | None, handed_in: datetime | None, maximum: float
) -> float:
    """Return the points that lateness takes off.

    It depends on the chapter's points and not on the score: so it stays right when
    points given by hand come later.

    Args:
        rule: the class's.
        due: the student's own due date, with the extension.
        handed_in: when it came; None (unknown) is never late.
        maximum: the chapter's points.

    Returns:
        Points, at most ``maximum``.
    """
    late = late_by(due, handed_in, rule.grace)
    if not late:
        return 0.0
    if rule.zero_after is not None and late > rule.zero_after * DAY:
        return float(maximum)
    days = math.ceil(late / DAY)
    cost = days * (rule.points + rule.percent / 100 * maximum)
    return min(float(maximum), round(cost, 4))


def after_penalty(score: float, points: float) -> float:
    """Return a score less a penalty, as nbgrader's export counts it."""
    return max(0.0, score - points)


def duration(time: timedelta) -> str:
    """Say a duration in at most two units, such as ``1 day 4 hours``."""
    minutes = math.ceil(time.total_seconds() / 60)
    days, rest = divmod(minutes, 24 * 60)
    hours, minutes = divmod(rest, 60)
    parts = [
        f"{number} {unit}{'s' * (number != 1)}"
        for number, unit in ((days, "day"), (hours, "hour"), (minutes, "minute"))
        if number
    ]
    return " ".join(parts[:2]) or "0 minutes"


# --- times ----------------------------------------------------------------------------

_ISO = re.compile(  # also with what file systems allow in place of colons
    r"(\d{4}-\d\d-\d\d)[T_ ](\d\d)[:.-]?(\d\d)(?:[:.-]?(\d\d)(?:\.\d+)?)?"
    r" ?(Z|UTC|[+-]\d\d[:.-]?\d\d)?"
)


def parse_time(text: str) -> datetime:
    """Read a time stamp; one without a zone is UTC, as nbgrader has it.

    Raises:
        ValueError: it is no time.
    """
    text = text.strip()
    found = None
    with contextlib.suppress(Exception):  # the library has one for each odd text
        match = _ISO.fullmatch(text)
        if match:
            found = _iso(*match.groups())
        elif re.match(r"\d{4}-\d\d-\d\d", text):  # of "12" it would make a date, too
            from nbgrader.utils import parse_utc  # slow, and graders parse no time

            found = parse_utc(text).replace(tzinfo=UTC)
    if found is None or found.year not in YEARS:
        raise ValueError(f"{text!r} is no date and time")
    return found


def _iso(
    date: str, hour: str, minute: str, second: str | None, zone: str | None
) -> datetime:
    zone = "+0000" if zone in (None, "Z", "UTC") else zone
    zone = zone[0] + re.sub(r"\D", "", zone)
    stamp = f"{date} {hour}:{minute}:{second or '00'} {zone}"
    return datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S %z").astimezone(UTC)


def read_timestamp(folder: Path) -> tuple[datetime | None, tuple[str, ...]]:
    """Read timestamp.txt; a file's own time is never used, for copying changes it.

    Returns:
        The time or None, and a note if there is a file that could not be used.
    """
    unreadable = None, (f"{TIMESTAMP} is no date, not used",)
    try:
        data = read_regular(folder / TIMESTAMP, 200, follow=False)
        return parse_time(data.decode("utf-8", errors="replace")), ()
    except FileNotFoundError:
        return None, ()
    except (OSError, ValueError):
        return unreadable


# --- attempts -------------------------------------------------------------------------

_ATTEMPT = re.compile(r"attempt[-_ ]?(\d{1,6})", re.IGNORECASE)


@dataclass(frozen=True)
class Attempt:
    """One of the times that a student handed a chapter in."""

    folder: Path
    name: str = ""  # of a folder in the chapter's; empty: the chapter's folder itself
    handed_in: datetime | None = None
    notes: tuple[str, ...] = ()


def find_attempts(student: Path, chapter: str) -> list[Attempt]:
    """Find a student's attempts at a chapter, the earliest first.

    An attempt is a folder in CHAPTER/ that is named ``attempt-3`` or by a time, such
    as ``2026-12-01T18:00:00+00:00``; its timestamp.txt counts more than its name.
    Without such folders, what lies in CHAPTER/ is the only attempt. Attempts without
    a time come before those with one, in the order of their numbers.

    Raises:
        Refused: there are too many.
        OSError: the student's folder cannot be read.
    """
    folder = student / chapter
    attempts = []
    for path in _folders(folder):
        named = _time_of(path.name)
        if named or _ATTEMPT.fullmatch(path.name):
            written, notes = read_timestamp(path)
            attempts.append(Attempt(path, path.name, written or named, notes))
    if len(attempts) > MOST_ATTEMPTS:
        raise Refused(
            f"{len(attempts)} attempts at a chapter, at most {MOST_ATTEMPTS} are read: "
            "take the earlier ones away"
        )
    if not attempts or _has_notebook(folder) or _is_loose(student, chapter):
        # with folders beside it, a notebook in CHAPTER/ itself is an attempt, too
        attempts.append(_plain(student, chapter))
    attempts.sort(key=_order)
    unknown = [each.name for each in attempts if each.name and not each.handed_in]
    if unknown and len(attempts) > 1:
        note = f"no time stamp in {', '.join(unknown)}: taken in the order of names"
        attempts = [
            Attempt(each.folder, each.name, each.handed_in, (*each.notes, note))
            for each in attempts
        ]
    return attempts


def _plain(student: Path, chapter: str) -> Attempt:
    loose = not (student / chapter).is_dir() and _is_loose(student, chapter)
    time, notes = read_timestamp(student if loose else student / chapter)
    return Attempt(student / chapter, "", time, notes)


def _is_loose(student: Path, chapter: str) -> bool:
    return (student / f"{chapter}.ipynb").is_file()


def _has_notebook(folder: Path) -> bool:
    with contextlib.suppress(OSError):
        return any(path.suffix.lower() == ".ipynb" for path in entries(folder))
    return False


def _folders(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return [p for p in entries(folder) if p.is_dir() and not p.is_symlink()]
    return []


def _time_of(name: str) -> datetime | None:
    if _ISO.fullmatch(name):
        with contextlib.suppress(ValueError):
            return parse_time(name)
    return None


def _order(attempt: Attempt) -> tuple:
    match = _ATTEMPT.fullmatch(attempt.name)
    number = int(match[1]) if match else 0
    time = attempt.handed_in or datetime.min.replace(tzinfo=UTC)
    return time, number, attempt.name


def to_grade(attempts: Sequence[Attempt], how: str) -> list[Attempt]:
    """Return the attempts that must be graded: the last one, or all."""
    return list(attempts) if how == BEST else [attempts[-1]]


@dataclass(frozen=True)
class Choice:
    """The attempt that counts, and what its lateness costs."""

    number: int  # of the attempt in the sequence that was given
    penalty: float = 0.0
    late: timedelta = timedelta(0)
    notes: tuple[str, ...] = ()


def choose(
    attempts: Sequence[Attempt],
    scores: Sequence[float | None],
    maximum: float,
    rule: LateRule,
    due: datetime | None,
) -> Choice:
    """Choose the attempt with the best score after the late rule; of equals the first.

    Args:
        attempts: those that were graded (``to_grade``), the earliest first.
        scores: of each, None if it could not be graded.
        maximum: the chapter's points.
        rule: what being late costs.
        due: the student's due date.

    Returns:
        The attempt that counts. If none could be graded, that is the last one.
    """
    costs = [penalty(rule, due, each.handed_in, maximum) for each in attempts]
    graded = {n: score for n, score in enumerate(scores) if score is not None}
    if not graded:
        return Choice(len(attempts) - 1)
    best = max(graded, key=lambda n: (after_penalty(graded[n], costs[n]), -n))
    late = late_by(due, attempts[best].handed_in, rule.grace)
    notes = []
    if len(attempts) > 1:
        notes.append(_chosen(attempts, scores, best))
    if late:
        notes.append(f"late by {duration(late)}: {-costs[best]:+g} points")
    return Choice(best, costs[best], late, tuple(notes))


def _chosen(
    attempts: Sequence[Attempt], scores: Sequence[float | None], best: int
) -> str:
    name = attempts[best].name or "the one without a folder"
    text = f"best of {len(attempts)} attempts: {name}"
    lost = [a.name for a, score in zip(attempts, scores, strict=True) if score is None]
    return f"{text} (not graded: {', '.join(lost)})" if lost else text
