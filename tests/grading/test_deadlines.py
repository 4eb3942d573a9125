"""Due dates, late rules, attempts, class.yml and the dry run: what each rule costs.

Every rule is a function over data, so most tests are tables. The last ones enter
dates and penalties into a gradebook of nbgrader's and read its own export.
"""

import csv
import os
import shutil
import subprocess
import sys
import textwrap
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from nbgrader.api import Gradebook
from nbgrader.plugins import CsvExportPlugin

from autograder.grading import classfile, deadlines, dry_run
from autograder.grading.classfile import ClassError
from autograder.grading.course import Course
from autograder.grading.deadlines import (
    BEST,
    LAST,
    Attempt,
    choose,
    late_by,
    parse_rule,
    parse_time,
    penalty,
)
from autograder.grading.gradebook import Book, Lateness
from autograder.grading.settings import put_environment_on_path
from tests import chapters
from tests.sample_class import notebooks

pytestmark = pytest.mark.filterwarnings(
    "ignore:Object of type <Submitted"  # nbgrader's own way with its session
)
CHAPTERS = ["04_attention", "05_multi_head_attention", "06_encoder"]
CHAPTER = CHAPTERS[0]
DUE = datetime(2026, 12, 1, 17, 0, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
SECOND = timedelta(seconds=1)


# --- late rules -----------------------------------------------------------------------

PENALTIES = [  # rule, late by, points off of 30
    ("none", 100 * DAY, 0),
    ("10 % a day", -DAY, 0),
    ("10 % a day", timedelta(0), 0),
    ("10 % a day", SECOND, 3),
    ("10 % a day", DAY, 3),
    ("10 % a day", DAY + SECOND, 6),
    ("10 % a day", 9 * DAY, 27),
    ("10 % a day", 400 * DAY, 30),
    ("12.5% per day", DAY, 3.75),
    ("2 points a day", 3 * DAY, 6),
    ("1 point a day", HOUR, 1),
    ("2 points a day", 100 * DAY, 30),
    ("zero after 0 days", SECOND, 30),
    ("zero after 3 days", 3 * DAY, 0),
    ("zero after 3 days", 3 * DAY + SECOND, 30),
    ("10 % a day, zero after 2 days", 2 * DAY, 6),
    ("10 % a day, zero after 2 days", 2 * DAY + SECOND, 30),
    ("zero after 1 day, 1 points a day", HOUR, 1),
]


@pytest.mark.parametrize(("words", "late", "points"), PENALTIES)
def test_what_a_late_rule_takes_off(words, late, points) -> None:
    assert penalty(parse_rule(words), DUE, DUE + late, 30) == points


@pytest.mark.parametrize("words", ["none", *sorted({row[0] for row in PENALTIES})])
def test_a_rule_reads_what_it_says(words) -> None:
    assert parse_rule(str(parse_rule(words))) == parse_rule(words)


def test_a_grace_is_not_late_and_after_it_days_count_from_the_due_date() -> None:
    rule = parse_rule("10 % a day", grace=15 * MINUTE)
    assert penalty(rule, DUE, DUE + 15 * MINUTE, 30) == 0
    assert penalty(rule, DUE, DUE + 16 * MINUTE, 30) == 3
    assert penalty(rule, DUE, DUE + DAY + 5 * MINUTE, 30) == 6


def test_an_unknown_time_is_never_late() -> None:
    rule = parse_rule("zero after 0 days")
    assert penalty(rule, DUE, None, 30) == 0
    assert penalty(rule, None, DUE, 30) == 0
    assert late_by(DUE, None) == late_by(None, DUE) == timedelta(0)


@pytest.mark.parametrize(
    "words",
    ["", "10 %", "ten % a day", "-3 points a day", "10 % a day, 5 % a day", "zero",
     "101 % a day", "5 % a day, 2 points a day", "none, 2 points a day", "1e9 % a day"],
)  # fmt: skip
def test_a_rule_that_is_none_is_refused(words) -> None:
    with pytest.raises(ValueError, match=r"late rule|not both|more than"):
        parse_rule(words)


@pytest.mark.parametrize(
    ("time", "words"),
    [
        (SECOND, "1 minute"),
        (HOUR, "1 hour"),
        (DAY + 3 * HOUR, "1 day 3 hours"),
        (2 * DAY + 3 * HOUR + MINUTE, "2 days 3 hours"),
        (timedelta(0), "0 minutes"),
    ],
)
def test_a_duration_in_words(time, words) -> None:
    assert deadlines.duration(time) == words


# --- times ----------------------------------------------------------------------------

NOON = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)
STAMPS = [
    "2026-12-01 12:00:00 UTC",
    "2026-12-01 12:00:00",
    "2026-12-01 12:00",
    "2026-12-01T12:00:00Z",
    "2026-12-01T13:00:00+01:00",
    "2026-12-01 12:00:00.123456 UTC",
    "2026-12-01 04:00:00 America/Los_Angeles",
    "2026-12-01T12-00-00",
    "2026-12-01_120000",
    "2026-12-01T13-00-00+0100",
    "  2026-12-01 12:00:00 UTC\n",
]


@pytest.mark.parametrize("text", STAMPS)
def test_a_time_stamp(text) -> None:
    assert parse_time(text) == NOON


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01 12:00", "12", "\0"])
def test_what_is_no_time_stamp(text) -> None:
    with pytest.raises(ValueError, match="no date"):
        parse_time(text)


def test_the_files_own_time_is_never_used(tmp_path) -> None:
    (tmp_path / "04_attention.ipynb").write_text("{}")
    assert deadlines.read_timestamp(tmp_path) == (None, ())


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _link(path: Path) -> None:
    path.with_name("there").write_text("2026-12-01 12:00:00 UTC")
    path.symlink_to("there")


@pytest.mark.parametrize(
    "make",
    [_pipe, _link, Path.mkdir, lambda p: p.write_text("soon"),
     lambda p: p.write_bytes(b"\xff\xfe\x00"), lambda p: p.write_bytes(b"0" * 10**6)],
    ids=["pipe", "link", "folder", "words", "binary", "large"],
)  # fmt: skip
def test_a_time_stamp_that_cannot_be_used_is_noted(make, tmp_path) -> None:
    make(tmp_path / "timestamp.txt")
    time, notes = deadlines.read_timestamp(tmp_path)
    assert time is None
    assert notes == ("timestamp.txt is no date, not used",)


# --- attempts -------------------------------------------------------------------------


def hand_in(folder: Path, stamp: str = "") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{CHAPTER}.ipynb").write_text("{}")
    if stamp:
        (folder / "timestamp.txt").write_text(stamp)


def names(student: Path) -> list[str]:
    return [each.name for each in deadlines.find_attempts(student, CHAPTER)]


def test_a_chapters_folder_is_one_attempt(tmp_path) -> None:
    hand_in(tmp_path / CHAPTER, "2026-12-01 12:00:00 UTC")
    (tmp_path / CHAPTER / "translator").mkdir()  # a trained model, no attempt
    assert deadlines.find_attempts(tmp_path, CHAPTER) == [
        Attempt(tmp_path / CHAPTER, "", NOON)
    ]


def test_nothing_handed_in_is_one_attempt_too(tmp_path) -> None:
    """So that the one who grades says that there is no notebook."""
    assert names(tmp_path) == [""]


def test_a_loose_notebook_has_the_time_stamp_beside_it(tmp_path) -> None:
    hand_in(tmp_path, "2026-12-01 12:00:00 UTC")
    (attempt,) = deadlines.find_attempts(tmp_path, CHAPTER)
    assert attempt == Attempt(tmp_path / CHAPTER, "", NOON)


def test_attempts_are_in_the_order_of_their_times(tmp_path) -> None:
    folder = tmp_path / CHAPTER
    for name in ("2026-12-03T08-00-00", "2026-12-01T18:00:00+00:00"):
        hand_in(folder / name)
    hand_in(folder / "attempt-1", "2026-12-02 09:00:00 UTC")
    assert names(tmp_path) == [
        "2026-12-01T18:00:00+00:00",
        "attempt-1",
        "2026-12-03T08-00-00",
    ]


def test_a_time_stamp_counts_more_than_the_folders_name(tmp_path) -> None:
    hand_in(tmp_path / CHAPTER / "2026-12-03T08-00-00", "2026-12-01 12:00:00 UTC")
    (attempt,) = deadlines.find_attempts(tmp_path, CHAPTER)
    assert attempt.handed_in == NOON


def test_attempts_without_times_are_in_the_order_of_their_numbers(tmp_path) -> None:
    for number in (10, 9, 1):
        hand_in(tmp_path / CHAPTER / f"attempt-{number}")
    assert names(tmp_path) == ["attempt-1", "attempt-9", "attempt-10"]
    for each in deadlines.find_attempts(tmp_path, CHAPTER):
        assert "no time stamp in attempt-1, attempt-9, attempt-10" in each.notes[0]


def test_a_notebook_beside_the_attempts_is_an_attempt(tmp_path) -> None:
    hand_in(tmp_path / CHAPTER, "2026-12-02 12:00:00 UTC")
    hand_in(tmp_path / CHAPTER / "attempt-1", "2026-12-01 12:00:00 UTC")
    assert names(tmp_path) == ["attempt-1", ""]


def test_a_link_is_no_attempt(tmp_path) -> None:
    hand_in(tmp_path / "elsewhere")
    hand_in(tmp_path / CHAPTER)
    (tmp_path / CHAPTER / "attempt-1").symlink_to(tmp_path / "elsewhere")
    assert names(tmp_path) == [""]


def attempts(*hours_late: float | None) -> list[Attempt]:
    return [
        Attempt(Path(str(n)), f"attempt-{n}", None if h is None else DUE + h * HOUR)
        for n, h in enumerate(hours_late, start=1)
    ]


TEN_PERCENT = parse_rule("10 % a day")


@pytest.mark.parametrize(
    ("late", "scores", "chosen", "points"),
    [
        ([-5, -1], [20, 25], 2, 0),
        ([-5, 1], [24, 25], 1, 0),  # 24 in time is more than 25 - 3
        ([-5, 1], [20, 25], 2, 3),  # 25 - 3 is more than 20
        ([-5, -1], [25, 25], 1, 0),  # of equals the earlier
        ([-5, 1], [22, 25], 1, 0),  # equal after the penalty
        ([-5, -4, -3], [10, None, 5], 1, 0),
        ([-5, -4], [None, None], 2, 0),  # none can be graded: the last one
        ([300, 400], [10, 20], 1, 30),  # nothing is left of either
        ([None, 1], [10, 20], 2, 3),
    ],
)
def test_the_best_attempt_after_the_late_rule(late, scores, chosen, points) -> None:
    choice = choose(attempts(*late), scores, 30, TEN_PERCENT, DUE)
    assert (choice.number + 1, choice.penalty) == (chosen, points)


def test_a_choice_says_what_it_did() -> None:
    choice = choose(attempts(-5, None, 27), [10, None, 30], 30, TEN_PERCENT, DUE)
    assert choice.notes == (
        "best of 3 attempts: attempt-3 (not graded: attempt-2)",
        "late by 1 day 3 hours: -6 points",
    )
    assert choice.late == 27 * HOUR


def test_only_the_last_attempt_or_all_are_graded() -> None:
    three = attempts(-5, -4, -3)
    assert deadlines.to_grade(three, LAST) == three[-1:]
    assert deadlines.to_grade(three, BEST) == three


# --- class.yml ------------------------------------------------------------------------


@pytest.fixture
def write(tmp_path):
    def written(text: str) -> Path:
        path = tmp_path / "class.yml"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return written


FULL = """
time_zone: Europe/Berlin
late: 10 % a day, zero after 7 days
grace: 15 minutes
attempts: best
due:
  04_attention: 2026-12-01 18:00
  05_multi_head_attention: 2026-12-08
students:
  amelia.brandt: {first: Amelia, last: Brandt, email: a@example.org, canvas: 0471}
  daniel.okafor:
  ines.costa:
extensions:
  daniel.okafor:
    04_attention: 2 days
    05_multi_head_attention: 2026-12-12 12:00
  ines.costa: 1 week
"""


def test_a_class_with_everything(write) -> None:
    read = classfile.read(write(FULL), CHAPTERS)
    assert read.late == parse_rule("10 % a day, zero after 7 days", 15 * MINUTE)
    assert read.attempts == BEST
    assert read.due_for("amelia.brandt", CHAPTER) == DUE
    assert read.due_for("daniel.okafor", CHAPTER) == DUE + 2 * DAY
    assert read.due_for("ines.costa", CHAPTER) == DUE + 7 * DAY
    assert read.due_for("ines.costa", "06_encoder") is None
    night = datetime(2026, 12, 8, 22, 59, 59, tzinfo=UTC)  # the day's end in Berlin
    assert read.due_for("amelia.brandt", CHAPTERS[1]) == night
    noon = datetime(2026, 12, 12, 11, 0, tzinfo=UTC)
    assert read.due_for("daniel.okafor", CHAPTERS[1]) == noon
    assert read.students["amelia.brandt"].canvas == "0471"  # an id is no number


def test_no_file_is_a_class_without_rules(tmp_path, write) -> None:
    empty = classfile.find(None, tmp_path, CHAPTERS)
    assert empty == classfile.Class()
    assert classfile.read(write("# nothing yet"), CHAPTERS) == empty
    assert empty.due_for("amelia.brandt", CHAPTER) is None


def test_the_file_beside_the_submissions_is_found(write, tmp_path) -> None:
    write("attempts: best")
    assert classfile.find(None, tmp_path, CHAPTERS).attempts == BEST
    other = tmp_path / "other.yml"
    other.write_text("attempts: last")
    assert classfile.find(other, tmp_path, CHAPTERS).attempts == LAST


def test_the_hour_that_comes_twice_is_its_second_one(write) -> None:
    path = write(
        """
        time_zone: Europe/Berlin
        due: {04_attention: 2026-10-25 02:30}
        """
    )
    due = classfile.read(path, CHAPTERS).due[CHAPTER]
    assert due == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


BAD = {
    "dues: 3": ":1: no key is named 'dues'; did you mean due?",
    "x: 3": ":1: no key is named 'x'; allowed: time_zone, late, grace",
    "due:\n  04_atention: 2026-12-01":
        ":2: no chapter is named '04_atention'; did you mean 04_attention?",
    "due:\n  04_attention: 1.12.2026":
        ":2: '1.12.2026' is no date; write a date such as",
    "due:\n  04_attention: 2026-02-30": ":2: '2026-02-30': there is no such day",
    "due:\n  04_attention: 2026-12-01 25:00": "there is no such day or time",
    "due:\n  04_attention: [1]": ":2: expected a single value",
    "due: tomorrow": ":1: expected lines of the form",
    "due:\n  04_attention: 2026-12-01\n  04_attention: 2026-12-02":
        ":3: 04_attention stands here a second time",
    "time_zone: Europe/Berlln":
        ":1: 'Europe/Berlln' is no time zone; did you mean Europe/Berlin?",
    "time_zone: ../../etc/passwd": "is no time zone",
    "time_zone: Europe/Berlin\ndue: {04_attention: 2026-03-29 02:30}":
        ":2: '2026-03-29 02:30': clocks skip this hour",
    "late: 10 percent": ":1: '10 percent' is no late rule; allowed: none, N % a day",
    "attempts: first": ":1: 'first'; allowed: last or best",
    "grace: long": ":1: 'long' is no number of minutes",
    "extensions:\n  ines: {04_attention: 2 days}":
        ":2: 04_attention has no due date to extend",
    "due: {04_attention: 2026-12-02}\nextensions:\n  ines: {04_attention: soon}":
        ":3: 'soon' is no number of days, such as 2 days, or a date",
    "due: {04_attention: 2026-12-02}\nextensions:\n  ines: {04_attention: 2026-12-01}":
        ":3: is before the due date",
    "students: {ines.costa: }\nextensions:\n  ines.csta: 2 days":
        ":3: no student is named 'ines.csta'; did you mean ines.costa?",
    "students:\n  ines.costa: {mail: x}":
        ":2: no key is named 'mail'; did you mean email?",
    "students:\n  ines.costa: {email: }\n - x": "is no YAML",
    "- a\n- b": ":1: expected lines of the form",
    "due: !!python/object/apply:os.system [id]": ":1: expected lines of the form",
    "a: &a [*a]": ":1: no key",
    "[" * 5000: "is no YAML",
}  # fmt: skip


@pytest.mark.parametrize("text", BAD, ids=lambda text: text[:40])
def test_what_is_wrong_in_the_file_is_told_with_its_line(text, write) -> None:
    path = write(text)
    with pytest.raises(ClassError) as caught:
        classfile.read(path, CHAPTERS)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert BAD[text] in message
    assert "\n" not in message


def test_a_file_that_is_no_text(tmp_path) -> None:
    path = tmp_path / "class.yml"
    path.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(ClassError, match="is not UTF-8"):
        classfile.read(path, CHAPTERS)
    with pytest.raises(ClassError, match="No such file"):
        classfile.read(tmp_path / "none.yml", CHAPTERS)


def test_folders_and_students_that_do_not_belong_together(write) -> None:
    listed = classfile.read(write("students: {ines.costa: , priya.nair: }"), CHAPTERS)
    assert listed.unknown(["ines.costa", "ines.csta"]) == [
        "ines.csta: is in no list of students; did you mean ines.costa?"
    ]
    path = write("due: {04_attention: 2026-12-01}\nextensions: {ines.csta: 1}")
    unlisted = classfile.read(path, CHAPTERS)
    assert unlisted.unknown(["ines.costa"]) == [
        "ines.csta: has an extension, but no folder; did you mean ines.costa?"
    ]
    assert unlisted.unknown(["ines.csta", "priya.nair"]) == []


# --- the dry run ----------------------------------------------------------------------


def test_a_dry_run_says_what_would_be_done(write, tmp_path) -> None:
    of_class = classfile.read(write(FULL), CHAPTERS)
    plan = [
        dry_run.Planned("amelia.brandt", CHAPTER, dry_run.GRADE, attempts(27)[0]),
        dry_run.Planned(
            "daniel.okafor", CHAPTER, dry_run.REFUSE, attempts(27)[0], "an empty file"
        ),
        dry_run.Planned("ines.costa", CHAPTER, dry_run.GRADE, attempts(None)[0]),
        dry_run.Planned("priya.nair", CHAPTER, dry_run.REFUSE, None, "no notebook"),
    ]
    audit = tmp_path / "audit.jsonl"
    audit.write_text(
        f'{{"chapter": "{CHAPTER}", "seconds": 2}}\n'
        f'{{"chapter": "{CHAPTER}", "seconds": 4}}\n'
        f'{{"chapter": "{CHAPTER}", "seconds": 0}}\n'
    )
    speed = dry_run.speeds(audit)
    assert speed == {CHAPTER: 3}
    lines = dry_run.text(plan, of_class, {CHAPTER: 30}, speed, 2).splitlines()
    assert lines[0].split()[:3] == ["04_attention", "attempt", "handed"]
    row = "amelia.brandt  attempt-1  2026-12-02 21:00  2026-12-01 18:00"
    assert lines[1] == f"{row}  1 day 3 hours, -6  grade"
    assert "late" not in lines[2]
    assert lines[2].endswith(
        "2026-12-03 18:00                     refuse: an empty file"
    )
    assert "unknown" in lines[3]
    assert (
        "late rule: 10 % a day, zero after 7 days; attempt that counts: best" in lines
    )
    assert "2 to grade, 2 to refuse" in lines
    assert "time: about 1 minute (3.0 s a submission, 2 at a time" in lines[-2]
    assert lines[-1] == "dry run: nothing was graded or written"


def test_a_dry_run_before_any_run_knows_no_time(tmp_path) -> None:
    assert dry_run.speeds(tmp_path / "audit.jsonl") == {}
    plan = [dry_run.Planned("ines.costa", CHAPTER, dry_run.GRADE, attempts(1)[0])]
    text = dry_run.text(plan, classfile.Class(), {CHAPTER: 30}, {}, 2)
    assert "time: unknown, for no run has graded 04_attention yet" in text


# --- nbgrader's gradebook -------------------------------------------------------------


@pytest.fixture(scope="module")
def gradebook_file(tmp_path_factory) -> Path:
    """Three students' submissions, each worth 24 of 30 points by hand."""
    path = tmp_path_factory.mktemp("gradebook") / "gradebook.db"
    put_environment_on_path()
    with Gradebook(f"sqlite:///{path}") as book:
        book.add_assignment(CHAPTER)
        book.add_notebook(CHAPTER, CHAPTER)
        book.add_grade_cell(
            "task", CHAPTER, CHAPTER, max_score=30, cell_type="markdown"
        )
        for student in ("amelia", "daniel", "ines"):
            book.add_student(student)
            book.add_submission(CHAPTER, student)
            grade = book.find_grade("task", CHAPTER, CHAPTER, student)
            grade.manual_score, grade.needs_manual_grade = 24, False
        book.db.commit()
    return path


@pytest.fixture
def book(gradebook_file, tmp_path):
    copy = shutil.copy(gradebook_file, tmp_path)
    with Book(Course(tmp_path, f"sqlite:///{copy}")) as opened:
        yield opened


def stock_export(book: Book) -> dict[str, dict[str, str]]:
    """nbgrader's own export, by student."""
    with book.course.gradebook() as gradebook:
        path = book.course.root / "stock.csv"
        CsvExportPlugin(to=str(path)).export(gradebook)
    head, *rows = [line.split(",") for line in path.read_text().splitlines()]
    return {row[3]: dict(zip(head, row, strict=True)) for row in rows}


def test_nbgraders_export_has_the_same_penalties(book) -> None:
    due = {"amelia": DUE, "daniel": DUE + 2 * DAY, "ines": DUE}
    book.enter_due_dates({CHAPTER: DUE})
    for _ in range(2):  # a second grading changes nothing
        for student, late in (("amelia", 27 * HOUR), ("daniel", 27 * HOUR)):
            points = penalty(TEN_PERCENT, due[student], DUE + late, 30)
            lateness = Lateness(DUE + late, due[student], points)
            book.write_lateness(student, CHAPTER, lateness)
        book.write_lateness("ines", CHAPTER, Lateness(None, DUE, 0))
    rows = stock_export(book)
    scores = {s: (r["late_submission_penalty"], r["score"]) for s, r in rows.items()}
    assert scores == {
        "amelia": ("6.0", "18.0"),
        "daniel": ("0.0", "24.0"),
        "ines": ("0.0", "24.0"),
    }
    assert rows["amelia"]["duedate"] == "2026-12-01 17:00:00"
    assert rows["amelia"]["timestamp"] == "2026-12-02 20:00:00"
    assert rows["ines"]["timestamp"] == ""
    with book.course.gradebook() as gradebook:
        late = {
            s.student.id: s.total_seconds_late
            for s in gradebook.find_assignment(CHAPTER).submissions
        }
    assert late == {"amelia": 27 * 3600, "daniel": 0, "ines": 0}


def test_points_given_by_hand_later_keep_the_penalty(book) -> None:
    book.enter_due_dates({CHAPTER: DUE})
    cost = penalty(TEN_PERCENT, DUE, DUE + DAY, 30)
    book.write_lateness("amelia", CHAPTER, Lateness(DUE + DAY, DUE, cost))
    with book.course.gradebook() as gradebook:
        gradebook.find_grade("task", CHAPTER, CHAPTER, "amelia").manual_score = 30
        gradebook.db.commit()
    assert stock_export(book)["amelia"]["score"] == "27.0"


def test_a_penalty_can_be_taken_back(book) -> None:
    book.enter_due_dates({CHAPTER: DUE})
    book.write_lateness("amelia", CHAPTER, Lateness(DUE + DAY, DUE, 3))
    book.write_lateness("amelia", CHAPTER, Lateness(DUE + DAY, DUE + DAY, 0))
    assert stock_export(book)["amelia"]["score"] == "24.0"


# --- the command ----------------------------------------------------------------------

COMMAND = [sys.executable, "-m", "autograder"]
RULES = """
late: 10 % a day
attempts: best
due: {02_class_token: 2026-12-02 00:00}
students:
  amelia.brandt: {first: Amelia, last: Brandt, email: a@example.org}
  ines.costa:
  priya.nair:
extensions: {priya.nair: 1 day}
"""


@pytest.fixture(scope="module")
def submissions(tmp_path_factory) -> Path:
    """One handed in late, one twice and the first one broken, one nothing."""
    folder, chapter = tmp_path_factory.mktemp("class"), "02_class_token"
    (folder / "class.yml").write_text(RULES)
    late = folder / "amelia.brandt" / chapter
    late.parent.mkdir()
    notebooks.solved(late)
    (late / "timestamp.txt").write_text("2026-12-02 12:00:00 UTC")
    twice = folder / "ines.costa" / chapter
    for name in ("attempt-1", "attempt-2"):
        shutil.copytree(late, twice / name)
    (twice / "attempt-1" / "timestamp.txt").write_text("2026-12-01 12:00:00 UTC")
    (twice / "attempt-1" / f"{chapter}.ipynb").write_text("{")
    return folder


def command(*arguments: object) -> subprocess.CompletedProcess:
    line = [*COMMAND, *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def test_a_dry_run_writes_nothing(submissions, tmp_path) -> None:
    out = tmp_path / "out"
    _, most = chapters.points("02_class_token")
    done = command("grade", "--submissions", submissions, "--out", out, "--dry-run")
    assert not out.exists()
    assert f"12 hours, -{most / 10:g}" in done.stdout
    assert "attempt-1" in done.stdout
    assert "1 to refuse" in done.stdout


@pytest.mark.sandbox
def test_a_class_is_graded_and_exported_by_its_rules(submissions, tmp_path) -> None:
    out, made = tmp_path / "out", tmp_path / "canvas.csv"
    command("grade", "--submissions", submissions, "--out", out)
    with (out / "grades.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["student_id"]: row for row in csv.DictReader(file)}
    most = float(rows["amelia.brandt"]["max_score"])
    amelia, ines = rows["amelia.brandt"], rows["ines.costa"]
    full = float(amelia["raw_score"])  # less what waits for a person
    assert float(amelia["late_submission_penalty"]) == pytest.approx(most / 10)
    assert float(amelia["score"]) == pytest.approx(full - most / 10)
    assert "late by 12 hours" in amelia["reason"]
    assert ines["score"] == amelia["score"]
    assert "best of 2 attempts: attempt-2 (not graded: attempt-1)" in ines["reason"]
    assert rows["priya.nair"]["status"] == "ungraded"
    assert rows["priya.nair"]["score"] == ""
    command("export", "--grades", out / "grades.csv", "--for", "canvas", "--out", made)
    cells = {line.split(",")[-3]: line.split(",")[-1] for line in made.open()}
    assert cells["priya.nair"] == "\n"
    assert float(cells["ines.costa"]) == pytest.approx(full - most / 10)
