"""One student never stops a class: what lies in a folder, and what is raised over it.

The graders are a stand-in that answers at once. A class is graded with an odd
submission in it and without, and the others' rows are the same.
"""

import errno
import os
import random
import socket
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy

from autograder.grading import (
    class_report,
    control_groups,
    deadlines,
    dry_run,
    feedback,
    gradebook,
    likeness,
    planning,
    report,
    submission,
)
from autograder.grading import cluster as clusters
from autograder.grading.gradebook import Book, GradebookError
from autograder.grading.guard import Fault, guarded
from autograder.grading.journal import Journal
from autograder.grading.record import Record
from tests import stand_in
from tests.stand_in import CHAPTER, audit, grade, hand_in, rows

HONEST = ("ada", "cleo")


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> Path:
    return stand_in.released(tmp_path_factory.mktemp("fresh"))


@pytest.fixture
def students(tmp_path) -> Path:
    """A class of two honest students."""
    for name in HONEST:
        hand_in(tmp_path / "class" / name)
    return tmp_path / "class"


@pytest.fixture(scope="module")
def honest(tmp_path_factory, fresh) -> dict[str, dict[str, str]]:
    """The rows of the class without anybody odd."""
    folder = tmp_path_factory.mktemp("honest")
    for name in HONEST:
        hand_in(folder / "class" / name)
    assert grade(folder / "class", folder / "out", fresh) == 0
    return rows(folder / "out")


def others(out: Path) -> dict[str, dict[str, str]]:
    return {name: row for name, row in rows(out).items() if name in HONEST}


# --- our own code fails ---------------------------------------------------------------


class Slip(Exception):
    """What a fault of the grader's own code raises."""


def _name_of(value: object) -> str:
    """The student whom an argument is about, if it is about one."""
    if isinstance(value, Path):
        return value.name
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return str(value.get("student", ""))
    for name in ("student", "student_id", "id"):
        if hasattr(value, name):
            return _name_of(getattr(value, name))
    return ""


def slipping(function: Callable, error: Callable[[], Exception]) -> Callable:
    """The same function, which fails for one student."""

    def slips(*arguments, **more):
        if any(_name_of(each) == "ben" for each in (*arguments, *more.values())):
            raise error()
        return function(*arguments, **more)

    return slips


STAGES = [
    (planning, "_refuse_odd_folder"),
    (deadlines, "find_attempts"),
    (submission, "find"),
    (submission, "read"),
    (planning.Work, "read"),
    (planning.Work, "jobs"),
    (Record, "keep"),
    (Record, "_choose"),
    (Record, "_write_notebooks"),
    (feedback, "page"),
    (gradebook._Result, "of"),
    (Journal, "add"),
    (gradebook, "_columns"),
    (report, "grade"),
    (report, "audit"),
    (class_report, "_enter"),
    (likeness.Class, "add"),
]


def slip() -> Exception:
    return Slip("a\x1b[31m =slip")


@pytest.mark.parametrize(
    ("owner", "name"), STAGES, ids=[f"{o.__name__}.{n}" for o, n in STAGES]
)
def test_a_fault_of_our_own_costs_one_student(
    owner, name, students, honest, fresh, tmp_path, monkeypatch, capsys
) -> None:
    hand_in(students / "ben")
    out, function = tmp_path / "out", getattr(owner, name)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, slipping(function, slip))
        assert grade(students, out, fresh) == 3
    assert others(out) == honest
    row, entry = rows(out)["ben"], audit(out)["ben"]
    assert (row["status"], row["score"]) == ("ungraded", "")
    assert "Slip in the grader: a =slip" in row["reason"]
    assert "Traceback" in entry["log"] and "Slip" in entry["log"]
    assert {audit(out)[each]["log"] for each in HONEST} == {""}
    said = capsys.readouterr().err
    assert "the grader itself failed once" in said and "Traceback" not in said
    page = out / "feedback" / "ben" / f"{CHAPTER}.html"
    assert not page.exists() or "not a score of 0" in page.read_text("utf-8")
    # mended, the same command grades what is left
    assert grade(students, out, fresh) == 0
    assert rows(out)["ben"]["score"] == honest["ada"]["score"]
    assert others(out) == honest


def test_a_fault_in_the_report_on_all_leaves_the_grades(
    students, honest, fresh, tmp_path, monkeypatch
) -> None:
    out = tmp_path / "out"

    def slips(chapters):
        raise Slip("no page")

    monkeypatch.setattr(class_report, "_page", slips)
    assert grade(students, out, fresh) == 3
    assert rows(out) == honest
    assert "Traceback" in audit(out)[None]["log"]


@pytest.mark.parametrize("name", ["find_attempts", "read_timestamp"])
def test_a_fault_in_a_dry_run_is_told_and_the_rest_is_planned(
    name, students, fresh, tmp_path, monkeypatch, capsys
) -> None:
    hand_in(students / "ben")
    function = getattr(deadlines, name)

    def slips(folder, *more):
        if "ben" in str(folder):
            raise slip()
        return function(folder, *more)

    monkeypatch.setattr(deadlines, name, slips)
    assert grade(students, tmp_path / "out", fresh, "--dry-run") == 3
    said = capsys.readouterr()
    assert said.out.count("grade\n") == 2 and "refuse: Slip in the grader" in said.out
    assert "Traceback" in said.err and "\x1b" not in said.out + said.err


def test_a_row_that_fails_in_a_dry_run_is_told_and_the_others_stand(
    students, fresh, tmp_path, monkeypatch, capsys
) -> None:
    hand_in(students / "ben")
    function = dry_run._row

    def slips(planned, *more):
        if planned.student == "ben":
            raise slip()
        return function(planned, *more)

    monkeypatch.setattr(dry_run, "_row", slips)
    assert grade(students, tmp_path / "out", fresh, "--dry-run") == 3
    said = capsys.readouterr()
    assert said.out.count("grade\n") == 2 and "refuse: Slip in the grader" in said.out
    assert "2 to grade, 1 to refuse" in said.out
    assert "Traceback" in said.err and "\x1b" not in said.out + said.err


@pytest.mark.parametrize("odd", ["a link", "an empty file", "a link to a notebook"])
def test_a_name_of_a_chapter_brings_it_into_nobodys_grading(
    odd, students, fresh, tmp_path, capsys
) -> None:
    place = students / "ada" / "05_multi_head_attention"
    if odd == "an empty file":
        place.touch()
    elif odd == "a link":
        place.symlink_to("nowhere")
    else:
        notebook = students / "ada" / CHAPTER / f"{CHAPTER}.ipynb"
        place.with_suffix(".ipynb").symlink_to(notebook)
    assert grade(students, tmp_path / "out", fresh, "--dry-run") == 0
    assert place.name not in capsys.readouterr().out


def test_a_grader_that_raises_costs_one_submission() -> None:
    class Done:
        def result(self):
            raise slip()

    job = planning.Job("ben", CHAPTER, b"", None)
    outcome = clusters._outcome(Done(), job)
    assert not outcome.again and "Slip in the grader" in outcome.reason
    assert "Traceback" in outcome.log


# --- what concerns everybody ----------------------------------------------------------


def test_a_full_disk_ends_the_command_whoever_meets_it(
    students, fresh, tmp_path, monkeypatch, capsys
) -> None:
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(tmp_path / "out"))

    monkeypatch.setattr(Record, "_write_notebooks", full)
    assert grade(students, tmp_path / "out", fresh) == 2
    assert capsys.readouterr().err.endswith("/out: No space left on device\n")


def test_a_gradebook_that_is_gone_ends_the_command(
    students, fresh, tmp_path, monkeypatch, capsys
) -> None:
    def gone(*_):
        raise GradebookError("db: the gradebook cannot be used (gone)")

    monkeypatch.setattr(Book, "write_all", gone)
    assert grade(students, tmp_path / "out", fresh) == 2
    assert "error: db: the gradebook cannot be used" in capsys.readouterr().err


def test_what_a_database_says_of_one_value_costs_one_student(
    students, honest, fresh, tmp_path, monkeypatch
) -> None:
    hand_in(students / "ben")

    def refusal() -> Exception:
        return sqlalchemy.exc.DataError("insert", {}, Exception("a value"))

    slips = slipping(gradebook._rows_of, refusal)
    monkeypatch.setattr(gradebook, "_rows_of", slips)
    assert grade(students, tmp_path / "out", fresh) == 3
    assert others(tmp_path / "out") == honest


@pytest.mark.parametrize("number", [errno.ENAMETOOLONG, errno.EILSEQ, None])
def test_a_name_that_the_disk_cannot_hold_is_one_students(number) -> None:
    def write() -> None:
        raise OSError(number, "a name")

    assert isinstance(guarded(write), Fault)


# --- what lies in a folder ------------------------------------------------------------


def circle(folder: Path) -> None:
    folder.mkdir()
    (folder / CHAPTER).symlink_to(CHAPTER)


def circle_of_two(folder: Path) -> None:
    folder.mkdir()
    (folder / CHAPTER).symlink_to("other")
    (folder / "other").symlink_to(CHAPTER)


def circle_in_place_of_the_student(folder: Path) -> None:
    folder.symlink_to(folder.name)


def circle_of_a_notebook(folder: Path) -> None:
    (folder / CHAPTER).mkdir(parents=True)
    (folder / CHAPTER / f"{CHAPTER}.ipynb").symlink_to(f"{CHAPTER}.ipynb")


def link_to_another_student(folder: Path) -> None:
    folder.symlink_to("ada")


def link_to_nothing(folder: Path) -> None:
    folder.symlink_to("nobody")


def link_to_the_root(folder: Path) -> None:
    folder.mkdir()
    (folder / CHAPTER).symlink_to("/")


def file_in_place_of_the_chapter(folder: Path) -> None:
    folder.mkdir()
    (folder / CHAPTER).write_text("x")


def pipe_in_place_of_the_chapter(folder: Path) -> None:
    folder.mkdir()
    os.mkfifo(folder / CHAPTER)


def link_to_a_device(folder: Path) -> None:
    (folder / CHAPTER).mkdir(parents=True)
    (folder / CHAPTER / f"{CHAPTER}.ipynb").symlink_to("/dev/zero")


def socket_in_place_of_the_notebook(folder: Path) -> None:
    (folder / CHAPTER).mkdir(parents=True)
    before = os.getcwd()
    os.chdir(folder / CHAPTER)  # the name of a socket is short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"{CHAPTER}.ipynb")
    os.chdir(before)


def archive_in_the_folder(folder: Path) -> None:
    folder.mkdir()
    with zipfile.ZipFile(folder / f"{CHAPTER}.zip", "w") as archive:
        archive.writestr(f"{CHAPTER}.ipynb", "{}")


def many_files(folder: Path) -> None:
    hand_in(folder)
    for number in range(100_000):
        os.mknod(folder / CHAPTER / f"{number}.ipynb")


def many_attempts(folder: Path) -> None:
    for number in range(500):
        (folder / CHAPTER / f"attempt-{number}").mkdir(parents=True)


def huge_notebook(folder: Path) -> None:
    os.truncate(hand_in(folder), 10**12)


def name_that_is_no_utf_8(folder: Path) -> None:
    hand_in(folder.with_name("ren\udce9"))


def name_with_control_characters(folder: Path) -> None:
    hand_in(folder.with_name("a\x1b[2J\r\n\x07da"))


def name_that_turns_round(folder: Path) -> None:
    hand_in(folder.with_name("ada\u202egpj"))


def name_that_begins_with_a_dot(folder: Path) -> None:
    hand_in(folder.with_name(".hidden"))


def name_that_is_long(folder: Path) -> None:
    hand_in(folder.with_name("x" * 255))


ODD = [
    circle,
    circle_of_two,
    circle_in_place_of_the_student,
    circle_of_a_notebook,
    link_to_another_student,
    link_to_nothing,
    link_to_the_root,
    file_in_place_of_the_chapter,
    pipe_in_place_of_the_chapter,
    link_to_a_device,
    socket_in_place_of_the_notebook,
    archive_in_the_folder,
    many_files,
    many_attempts,
    huge_notebook,
    name_that_is_no_utf_8,
    name_with_control_characters,
    name_that_turns_round,
    name_that_begins_with_a_dot,
    name_that_is_long,
]


def times_at_the_ends(folder: Path) -> None:
    stamps = ("0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "9999-12-31")
    for number, stamp in enumerate(stamps):
        attempt = folder / CHAPTER / f"attempt-{number}"
        attempt.mkdir(parents=True)
        (attempt / "timestamp.txt").write_text(stamp)
        path = attempt / f"{CHAPTER}.ipynb"
        path.write_text("{}")
        os.utime(path, (-(2**31), 2**33))


def times_in_the_names(folder: Path) -> None:
    for stamp in ("0001-01-01T00-00-00+1400", "9999-12-31T23-59-59-1200"):
        (folder / CHAPTER / stamp).mkdir(parents=True)
    (folder / CHAPTER / f"{CHAPTER}.ipynb").write_text("{}")


def circle_beside_the_notebook(folder: Path) -> None:
    hand_in(folder)
    (folder / CHAPTER / "here").symlink_to(".")
    (folder / CHAPTER / "timestamp.txt").symlink_to("timestamp.txt")
    (folder / "other.ipynb").symlink_to("other.ipynb")


def deep_folders(folder: Path) -> None:
    hand_in(folder)
    before = os.getcwd()
    os.chdir(folder / CHAPTER)
    for _ in range(40):  # deeper than a path can name
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    os.chdir(before)


def files_with_odd_names(folder: Path) -> None:
    hand_in(folder)
    for name in (b"\xff\xfe", b"a\n=b", "\u202e".encode(), b"\x1b[2J"):
        (folder / CHAPTER / os.fsdecode(name)).mkdir()
        (folder / CHAPTER / os.fsdecode(name) / "config.json").write_text("{}")


def name_like_a_formula(folder: Path) -> None:
    hand_in(folder.with_name("=1+1"))


HARMLESS = [
    times_at_the_ends,
    times_in_the_names,
    circle_beside_the_notebook,
    deep_folders,
    files_with_odd_names,
    name_like_a_formula,
]
CLASS = f"""
time_zone: America/Los_Angeles
late: 10 % a day
attempts: best
due:
  {CHAPTER}: 2026-12-01 18:00
"""


def test_no_folder_stops_a_class(students, honest, fresh, tmp_path, capsys) -> None:
    for make in (*ODD, *HARMLESS):
        make(students / make.__name__)
    (students / ".git").mkdir()
    out = tmp_path / "out"
    assert grade(students, out, fresh, "--dry-run") == 0
    planned = capsys.readouterr().out
    assert grade(students, out, fresh) == 0
    said = capsys.readouterr()
    for text in (planned, said.out, said.err):
        assert not set(text) & {"\x1b", "\x07", "\u202e"} and "Traceback" not in text
    found = rows(out)
    assert others(out) == honest
    assert len(found) == len(HONEST) + len(ODD) + len(HARMLESS)
    ungraded = {name for name, row in found.items() if row["status"] == "ungraded"}
    assert len(ungraded) == len(ODD)
    assert all(found[name]["reason"] for name in ungraded)
    assert planned.count("refuse: ") == len(ODD)
    assert {entry["log"] for entry in audit(out).values()} == {""}
    assert f"{students / '.git'}: is no student's folder, passed over" in said.err
    assert control_groups.words() in said.err
    reasons = {name: row["reason"] for name, row in found.items()}
    assert "levels of symbolic links" in reasons["circle"]
    assert "is a link" in reasons["link_to_another_student"]
    assert "more than 10000 files" in reasons["many_files"]
    assert "more than" not in reasons["deep_folders"]
    assert "begins with a dot" in reasons[".hidden"]
    assert found["'=1+1"]["status"] == "graded"


def test_no_time_stamp_stops_a_class_with_due_dates(
    students, fresh, tmp_path, capsys
) -> None:
    (students / "class.yml").write_text(CLASS)
    for make in (times_at_the_ends, times_in_the_names):
        make(students / make.__name__)
    assert grade(students, tmp_path / "out", fresh, "--dry-run") == 0
    assert grade(students, tmp_path / "out", fresh) == 0
    assert {row["status"] for row in rows(tmp_path / "out").values()} == {"graded"}


@pytest.mark.parametrize("denied", ["", CHAPTER, f"{CHAPTER}/{CHAPTER}.ipynb"])
def test_what_may_not_be_read_is_one_students(
    denied, students, honest, fresh, tmp_path, monkeypatch
) -> None:
    """Root may read everything, so the system's functions are made to refuse."""
    hand_in(students / "ben")
    place = str(students / "ben" / denied)

    def refusing(function: Callable, inside: str) -> Callable:
        def refuses(path, *more, **options):
            if isinstance(path, (str, Path)) and str(path).startswith(place + inside):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
            return function(path, *more, **options)

        return refuses

    with monkeypatch.context() as patch:
        for name, inside in (("scandir", ""), ("open", ""), ("stat", "/")):
            patch.setattr(os, name, refusing(getattr(os, name), inside))
        assert grade(students, tmp_path / "out", fresh, "--chapter", CHAPTER) == 0
    assert others(tmp_path / "out") == honest
    assert "Permission denied" in rows(tmp_path / "out")["ben"]["reason"]


# --- many random folders --------------------------------------------------------------

NAMES = ("a", "b.ipynb", f"{CHAPTER}.ipynb", CHAPTER, "timestamp.txt", "config.json")
NAMES += ("attempt-1", "2026-12-01T10-00-00", "0001-01-01T00-00-00", "..x", "-", "=1")
NAMES += (
    "\udcff",
    "\n",
    "\x7f",
    "é",
    "e\u0301",
    "model.safetensors",
    "x.zip",
    "y" * 255,
)


def litter(folder: Path, generator: random.Random, depth: int = 0) -> None:
    """Fill a folder with whatever a file system takes."""
    for name in generator.sample(NAMES, generator.randint(0, 5)):
        path = folder / name
        kind = generator.randint(0, 7)
        if kind < 3 and depth < 3:
            path.mkdir()
            litter(path, generator, depth + 1)
        elif kind == 3:
            targets = (name, ".", "..", "../..", "/dev/zero", "/", *NAMES)
            path.symlink_to(generator.choice(targets))
        elif kind == 4:
            os.mkfifo(path)
        else:
            path.write_bytes(
                generator.choice((b"", b"{}", b"PK\x03\x04", b"9999-12-31"))
            )


def test_two_hundred_random_folders(students, honest, fresh, tmp_path) -> None:
    generator = random.Random(17)
    for number in range(200):
        folder = students / f"{generator.choice(NAMES)[:100]}{number}"
        folder.mkdir()
        litter(folder, generator)
        if generator.random() < 0.5 and not os.path.lexists(folder / CHAPTER):
            (folder / CHAPTER).mkdir()
            litter(folder / CHAPTER, generator)
    out = tmp_path / "out"
    assert grade(students, out, fresh, "--dry-run", "--chapter", CHAPTER) == 0
    assert grade(students, out, fresh, "--chapter", CHAPTER) == 0
    assert others(out) == honest
    statuses = [row["status"] for row in rows(out).values()]
    # all but a few folders that begin with a dot and hold no chapter
    assert len(statuses) > 190 and set(statuses) == {"graded", "ungraded"}
