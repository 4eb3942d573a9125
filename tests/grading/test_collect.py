"""Collecting: what Canvas, Moodle, nbgrader and git give becomes the class folder."""

import contextlib
import csv
import dataclasses
import errno
import hashlib
import io
import json
import os
import re
import stat
import struct
import sys
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from autograder import command_line, generator
from autograder.collecting import (
    canvas,
    command,
    moodle,
    placing,
    repositories,
    sources,
    times,
)
from autograder.collecting.archives import list_zip
from autograder.collecting.people import made_id
from autograder.collecting.sources import (
    File,
    Limits,
    Listing,
    NotUnderstood,
    checked_path,
    clean_name,
)
from autograder.collecting.times import Times
from autograder.grading import deadlines, submission
from autograder.grading.planning import is_id
from tests import downloads, small_class, strangers
from tests.downloads import CHAPTER, Student

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
FOUND = settings(
    max_examples=200,
    database=None,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


def notebook(number: int = 0, chapter: str = CHAPTER) -> bytes:
    """A notebook of a chapter, unlike those of other numbers."""
    made = strangers.blank(chapter)
    made["cells"].append(strangers.code_cell(f"mine = {number}"))
    return json.dumps(made).encode()


def student(which: int, **more: object) -> Student:
    """A student unlike the others."""
    facts = {
        "id": f"s{which:02d}",
        "first": f"Ada{which}",
        "last": "Brandt-Ó",
        "number": 12_000 + which,
        "login": f"ada{which}",
        "notebook": notebook(which),
        "handed_in": NOON + timedelta(minutes=which),
    }
    return Student(**facts | more)


ADA, BEN, CLEO = (student(number) for number in range(1, 4))
CLASS = (ADA, BEN, CLEO)


def collect(form: str, out: Path, *paths: Path, **options: object) -> int:
    """Run the command in this process; return its exit code."""
    words = ["collect", "--from", form, "--out", str(out), *map(str, paths)]
    for name, value in options.items():
        words += [f"--{name.replace('_', '-')}"]
        words += [] if value is True else [str(value)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["autograder", *words])
        return command_line.main()


def listed(out: Path, name: str = command.LIST_CSV) -> list[dict[str, str]]:
    """The rows of a list."""
    path = out / ".collected" / name
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def reasons(out: Path) -> str:
    return "\n".join(f"{row['where']}: {row['reason']}" for row in listed(out))


def attempts(out: Path, of: Student, chapter: str = CHAPTER) -> list[tuple]:
    """What the grader finds of a student: names, times, and notebooks, in order."""
    folder = out / of.id
    return [
        (each.name, each.handed_in, submission.find(folder, chapter, each.folder).path)
        for each in deadlines.find_attempts(folder, chapter)
    ]


def mark(data: bytes) -> str:
    """What tells a notebook from others, and is short to look at."""
    return hashlib.sha256(data).hexdigest()[:12]


def held(out: Path, of: Student, chapter: str = CHAPTER) -> list[str]:
    """The marks of a student's notebooks, in the order of the attempts."""
    return [mark(found.read_bytes()) for _, _, found in attempts(out, of, chapter)]


def marks(*notebooks: bytes) -> list[str]:
    """The marks of notebooks."""
    return list(map(mark, notebooks))


def tree(folder: Path) -> dict[str, str | bool]:
    """All that lies in a folder."""
    return {
        str(path.relative_to(folder)): mark(path.read_bytes())
        if path.is_file()
        else None
        for path in sorted(folder.rglob("*"))
    }


def make(form: str, folder: Path, students=CLASS) -> tuple[Path, dict[str, Path]]:
    """Make a download of a form, and the options that it needs."""
    folder.mkdir(parents=True, exist_ok=True)
    options = {"ids": downloads.ids(folder / "ids.csv", students)}
    if form == "canvas":
        options["times"] = downloads.times(folder / "times.csv", students)
        return downloads.canvas(folder / "submissions.zip", students), options
    if form == "moodle":
        options["times"] = downloads.worksheet(folder / "worksheet.csv", students)
        return downloads.moodle(folder / "CS-04-1234.zip", students), options
    if form == "nbgrader":
        return downloads.exchange(folder / "exchange", students), options
    return downloads.repositories(folder / "clones", students), options


# --- the four forms -------------------------------------------------------------------


@pytest.mark.parametrize("form", command.FORMS)
def test_everybody_is_found_with_time_and_notebook(form, tmp_path, capsys) -> None:
    path, options = make(form, tmp_path)
    out = tmp_path / "class"
    assert collect(form, out, path, **options) == 0
    for each in CLASS:
        [(name, when, _)] = attempts(out, each)
        assert held(out, each) == marks(each.notebook)
        assert (when, name) == (each.handed_in, f"{each.handed_in:%Y-%m-%dT%H-%M-%S}")
    assert listed(out) == []
    rows = listed(out, command.COLLECTED_CSV)
    assert [row["student"] for row in rows] == [each.id for each in CLASS]
    assert re.search(rf"{CHAPTER} +3 +3 +0 +0\n", capsys.readouterr().out)


@pytest.mark.parametrize("form", command.FORMS)
def test_collecting_again_changes_nothing(form, tmp_path, capsys) -> None:
    path, options = make(form, tmp_path)
    out, before = tmp_path / "class", tree(path) if path.is_dir() else path.read_bytes()
    assert collect(form, out, path, **options) == 0
    first = tree(out)
    assert collect(form, out, path, **options) == 0
    assert tree(out) == first
    assert re.search(rf"{CHAPTER} +3 +0 +3 +0\n", capsys.readouterr().out)
    assert before == (tree(path) if path.is_dir() else path.read_bytes())


@pytest.mark.parametrize("form", command.FORMS)
def test_a_later_download_adds_what_is_new(form, tmp_path) -> None:
    path, options = make(form, tmp_path / "first")
    out = tmp_path / "class"
    assert collect(form, out, path, **options) == 0
    before = tree(out / ADA.id)
    later = NOON + timedelta(days=1)
    again = dataclasses.replace(ADA, notebook=notebook(99), handed_in=later)
    if form == "git":  # the clone was pulled
        folder = path / f"chapter-4-{ADA.login}"
        downloads.commit(folder, {f"{CHAPTER}/{ADA.name}": again.notebook}, later)
    else:
        path, options = make(form, tmp_path / "second", (again, BEN, CLEO))
    assert collect(form, out, path, **options) == 0
    assert held(out, ADA) == marks(ADA.notebook, again.notebook)
    assert before.items() <= tree(out / ADA.id).items()
    assert len(attempts(out, BEN)) == len(attempts(out, CLEO)) == 1


@pytest.mark.parametrize("form", command.FORMS)
def test_a_dry_run_writes_nothing(form, tmp_path, capsys) -> None:
    path, options = make(form, tmp_path)
    assert collect(form, tmp_path / "class", path, dry_run=True, **options) == 0
    assert not (tmp_path / "class").exists()
    printed = capsys.readouterr().out
    assert f"{CHAPTER}  {ADA.id}  2026-12-01T12-01-00  new" in printed


@pytest.mark.parametrize("form", command.FORMS)
def test_without_a_list_everybody_gets_an_id_of_the_downloads(form, tmp_path) -> None:
    path, _ = make(form, tmp_path)
    out = tmp_path / "class"
    assert collect(form, out, path) == 0
    found = {each.name for each in out.iterdir() if each.name != ".collected"}
    wanted = {
        "canvas": {f"brandtóada{n}_{12_000 + n}" for n in (1, 2, 3)},
        "moodle": {f"ada{n}.brandt-ó" for n in (1, 2, 3)},
    }
    assert found == wanted.get(form, {each.login for each in CLASS})


@pytest.mark.parametrize("form", command.FORMS)
def test_who_is_in_no_list_is_listed_and_comes_later(form, tmp_path, capsys) -> None:
    path, options = make(form, tmp_path)
    out, short = tmp_path / "class", dict(options)
    short["ids"] = downloads.ids(tmp_path / "short.csv", CLASS[:2])
    assert collect(form, out, path, **short) == 1
    assert not (out / CLEO.id).exists() and len(attempts(out, BEN)) == 1
    [row] = listed(out)
    assert "is in no list of students" in row["reason"]
    assert "not understood, or to be looked at: 1" in capsys.readouterr().out
    assert collect(form, out, path, **options) == 0
    assert listed(out) == [] and len(attempts(out, CLEO)) == 1


def test_class_yml_knows_people_and_the_zone(tmp_path) -> None:
    out = tmp_path / "class"
    out.mkdir()
    (out / "class.yml").write_text(
        "time_zone: Europe/Berlin\nstudents:\n"
        f"  s01: {{first: Ada1, last: Brandt-Ó}}\n"
        f"  s02: {{email: ADA2@example.org}}\n"
        f"  s03: {{canvas: '{CLEO.number}'}}\n",
        encoding="utf-8",
    )
    sheet = downloads.worksheet(tmp_path / "w.csv", CLASS)
    path = downloads.moodle(tmp_path / "m.zip", CLASS)
    assert collect("moodle", out, path, times=sheet) == 1  # not Canvas's number
    assert "Ada3" in listed(out)[0]["reason"]
    assert attempts(out, ADA)[0][1] == ADA.handed_in - timedelta(hours=1)
    assert len(attempts(out, BEN)) == 1
    assert collect("canvas", out, downloads.canvas(tmp_path / "c.zip", [CLEO])) == 0
    assert len(attempts(out, CLEO)) == 1


@pytest.mark.parametrize("name", ["Ada1 Brandt-Ó", "Brandt-Ó, Ada1", "ADA1 BRANDT O"])
def test_names_are_compared_by_their_letters(name, tmp_path) -> None:
    known = tmp_path / "ids.csv"
    known.write_text(f'student,name\ns01,"{name}"\n', "utf-8")
    for form, make_zip in (("canvas", downloads.canvas), ("moodle", downloads.moodle)):
        path = make_zip(tmp_path / f"{form}.zip", [ADA])
        assert collect(form, tmp_path / form, path, ids=known) == 0
        assert len(attempts(tmp_path / form, ADA)) == 1


def test_the_roster_of_github_classroom_is_a_list_of_ids(tmp_path) -> None:
    roster = tmp_path / "classroom_roster.csv"
    lines = ['"identifier","github_username","github_id","name"']
    lines += [f'"{s.id}","{s.login}","{BEN.number}",""' for s in (ADA, CLEO)]
    roster.write_text("\n".join(lines))
    path = downloads.repositories(tmp_path / "hw4-submissions", [ADA, CLEO])
    for each in (ADA, CLEO):
        (path / f"chapter-4-{each.login}").rename(path / f"hw4-{each.login}")
    assert collect("git", tmp_path / "class", path, ids=roster) == 0
    for each in (ADA, CLEO):
        assert held(tmp_path / "class", each) == marks(each.notebook)
    zipped = downloads.canvas(tmp_path / "s.zip", [BEN])  # another kind of number
    assert collect("canvas", tmp_path / "other", zipped, ids=roster) == 1
    assert "is in no list" in reasons(tmp_path / "other")


def test_two_people_who_are_taken_for_one_are_said(tmp_path) -> None:
    known = tmp_path / "ids.csv"
    known.write_text("student,canvas\ns01,12001\ns01,12002\n", "utf-8")
    path = downloads.canvas(tmp_path / "s.zip", [ADA, BEN])
    assert collect("canvas", tmp_path / "class", path, ids=known) == 1
    assert "is taken for s01, as is brandtóada1" in reasons(tmp_path / "class")
    assert len(attempts(tmp_path / "class", ADA)) == 2


def test_two_people_of_a_name_are_nobody(tmp_path) -> None:
    known = tmp_path / "ids.csv"
    known.write_text("student,name\ns01,Ada1 Brandt-Ó\ns02,Ada1 Brandt-Ó\n", "utf-8")
    path = downloads.canvas(tmp_path / "s.zip", [ADA])
    assert collect("canvas", tmp_path / "class", path, ids=known) == 1
    assert "may be s01 or s02" in reasons(tmp_path / "class")


# --- Canvas ---------------------------------------------------------------------------

NAMES = {
    "brandtamelia_12345_67890_04_attention.ipynb": ("brandtamelia", "12345", 67890),
    "brandtamelia_LATE_12345_67890_04_attention-2.ipynb": ("brandtamelia", "12345", 0),
    "von_derheide_12345_67890_a_1_2_b.ipynb": ("von_derheide", "12345", 67890),
    "bob2_12345_67890_x.ipynb": ("bob2", "12345", 67890),
    "anon_Ab1cD_67890_x.ipynb": ("", "anon_Ab1cD", 67890),
    "LATE_anon_Ab1cD_67890_x.ipynb": ("", "anon_Ab1cD", 67890),
}


def seen(*names: str) -> Listing:
    """Files of these names."""
    return Listing([File(name, 1, lambda: b"{}", mark="0") for name in names])


@pytest.mark.parametrize("name", NAMES)
def test_canvas_names(name) -> None:
    found, lines = canvas.handed_in(seen(name), "x.zip")
    [each] = found
    person, number, attachment = NAMES[name]
    assert each.person.keys[0] == ("canvas", number) and lines == []
    assert each.person.name == (person or number)
    assert each.files[0].order == (attachment or 67890)
    assert each.is_late == ("LATE" in name)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("brandtamelia_12345_text.html", "a text typed into Canvas"),
        ("brandtamelia_12345_link.html", "is a link"),
        ("notes.txt", "is not named as Canvas names"),
        ("_12345_.ipynb", "is not named as Canvas names"),
    ],
)
def test_what_is_no_file_of_canvas_is_listed(name, reason) -> None:
    found, [line] = canvas.handed_in(seen(name), "x.zip")
    assert found == [] and reason in line.reason


def test_a_name_of_ones_own_choice_stands_for_nobody_else(tmp_path) -> None:
    files = [
        ("eve_12001_555_99_666_04_attention.ipynb", notebook(6)),  # calls herself so
        (downloads.canvas_name(ADA), ADA.notebook),
        (downloads.canvas_name(BEN), BEN.notebook),
    ]
    path = downloads.write_zip(tmp_path / "s.zip", files)
    assert collect("canvas", tmp_path / "class", path) == 1
    assert "the number 12001 has several names" in reasons(tmp_path / "class")
    rows = listed(tmp_path / "class", command.COLLECTED_CSV)
    assert [row["person"] for row in rows] == ["brandtóada2"]


def test_late_work_without_a_time_is_said(tmp_path) -> None:
    out, due = tmp_path / "class", BEN.handed_in
    path = downloads.canvas(tmp_path / "s.zip", CLASS, due)
    known = {"ids": downloads.ids(tmp_path / "ids.csv", CLASS)}
    assert collect("canvas", out, path, **known) == 1
    assert "is marked as late" in reasons(out) and len(listed(out)) == 1
    late = [row["student"] for row in listed(out, command.COLLECTED_CSV) if row["late"]]
    assert late == [CLEO.id]
    assert attempts(out, CLEO)[0][:2] == ("attempt-1", None)
    # with times, the same attempts get them
    known["times"] = downloads.times(tmp_path / "times.csv", CLASS)
    assert collect("canvas", out, path, **known) == 0
    assert [each[:2] for each in attempts(out, CLEO)] == [("attempt-1", CLEO.handed_in)]


def test_attempts_without_times_keep_their_order(tmp_path) -> None:
    out, paths = tmp_path / "class", []
    for number in (1, 2, 3):  # the third is the first again
        of = dataclasses.replace(ADA, notebook=notebook(number % 2))
        name = downloads.canvas_name(of, attachment=500 + number)
        files = [(name, of.notebook)]
        paths.append(downloads.write_zip(tmp_path / f"{number}.zip", files))
    for path in (*paths, *paths):
        assert collect("canvas", out, path) == 0
    [folder] = [each for each in out.iterdir() if each.name != ".collected"]
    of = dataclasses.replace(ADA, id=folder.name)
    assert held(out, of) == marks(notebook(1), notebook(0), notebook(1))
    assert [each[0] for each in attempts(out, of)] == [
        f"attempt-{n}" for n in (1, 2, 3)
    ]


def test_an_older_download_is_not_taken_for_the_latest(tmp_path) -> None:
    out, paths = tmp_path / "class", []
    for number in (1, 2):
        name = downloads.canvas_name(ADA, attachment=500 + number)
        files = [(name, notebook(number))]
        paths.append(downloads.write_zip(tmp_path / f"{number}.zip", files))
    assert collect("canvas", out, paths[1]) == 0
    assert collect("canvas", out, paths[0]) == 1
    assert "is older than attempt-1" in reasons(out)
    kept = {each.name[:2] for each in (out / ".collected" / "downloads").iterdir()}
    assert kept == {"1-", "2-"}


# --- Moodle ---------------------------------------------------------------------------


@pytest.mark.parametrize("in_folders", [True, False])
def test_moodle_in_folders_and_flat(in_folders, tmp_path) -> None:
    path = downloads.moodle(tmp_path / "m.zip", CLASS, in_folders)
    known = downloads.ids(tmp_path / "ids.csv", CLASS)
    assert collect("moodle", tmp_path / "class", path, ids=known) == 0
    for each in CLASS:
        [(name, when, _)] = attempts(tmp_path / "class", each)
        assert (name, when) == ("attempt-1", None)
        assert held(tmp_path / "class", each) == marks(each.notebook)


@pytest.mark.parametrize("in_folders", [True, False])
@pytest.mark.parametrize("above", ["", "CS-04-1234/"])
def test_a_file_named_like_anothers_folder_stays_its_owners(in_folders, above) -> None:
    for between in ("", "/"):
        name = f"Ben_2_assignsubmission_file_{between}{CHAPTER}.ipynb"
        eve = student(5, first="Eve", last="X", name=name)
        path = above + downloads.moodle_name(eve, in_folders)
        [found], _ = moodle.handed_in(seen(path), "m.zip", Times())
        assert found.person.name == "Eve X" and found.files[0].path == name


def test_people_of_one_name_are_told_apart_by_the_worksheet(tmp_path) -> None:
    two = [student(n, first="Ada", last="Brandt") for n in (1, 2)]
    path = downloads.moodle(tmp_path / "m.zip", two)
    out = tmp_path / "class"
    assert collect("moodle", out, path) == 0
    folders = {each.name for each in out.iterdir()} - {".collected"}
    assert folders == {"ada.brandt.12001", "ada.brandt.12002"}
    sheet = downloads.worksheet(tmp_path / "w.csv", two)
    known = tmp_path / "ids.csv"
    known.write_text("student,email\ns01,ada1@example.org\ns02,ada2@example.org\n")
    out = tmp_path / "known"
    assert collect("moodle", out, path, ids=known, times=sheet) == 0
    assert all(held(out, each) == marks(each.notebook) for each in two)


def test_a_text_typed_into_moodle_is_listed(tmp_path) -> None:
    name = "Ada Brandt_7_assignsubmission_onlinetext_/onlinetext.html"
    path = downloads.write_zip(tmp_path / "m.zip", [(name, b"<p>")])
    assert collect("moodle", tmp_path / "class", path) == 1
    assert "is a text typed into Moodle" in reasons(tmp_path / "class")


def test_the_same_again_in_a_later_download_is_no_attempt(tmp_path) -> None:
    out = tmp_path / "class"
    first = downloads.moodle(tmp_path / "1.zip", [ADA])
    second = downloads.moodle(tmp_path / "2.zip", CLASS)
    changed = dataclasses.replace(ADA, notebook=notebook(9))
    third = downloads.moodle(tmp_path / "3.zip", [changed, BEN, CLEO])
    known = downloads.ids(tmp_path / "ids.csv", CLASS)
    for path in (first, second, third, first, second, third):
        assert collect("moodle", out, path, ids=known) == 0
    assert held(out, ADA) == marks(ADA.notebook, changed.notebook)
    assert len(attempts(out, BEN)) == 1


def test_what_has_no_time_does_not_come_before_what_has_one(tmp_path) -> None:
    out, (first, options) = tmp_path / "class", make("moodle", tmp_path)
    assert collect("moodle", out, first, **options) == 0
    changed = dataclasses.replace(ADA, notebook=notebook(9))
    second = downloads.moodle(tmp_path / "2.zip", [changed, BEN, CLEO])
    assert collect("moodle", out, second, ids=options["ids"]) == 1
    assert "has no time, and 2026-12-01T12-01-00 has one" in reasons(out)
    assert held(out, ADA) == marks(ADA.notebook)
    later = dataclasses.replace(changed, handed_in=NOON + timedelta(days=1))
    options["times"] = downloads.worksheet(tmp_path / "2.csv", [later, BEN, CLEO])
    assert collect("moodle", out, second, **options) == 0
    assert held(out, ADA) == marks(ADA.notebook, changed.notebook)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Tuesday, 1 December 2026, 12:05 AM", "2026-12-01T00:05:00+00:00"),
        ("1 December 2026, 12:05 PM", "2026-12-01T12:05:00+00:00"),
        ("Tuesday, 1 December 2026, 18:09", "2026-12-01T18:09:00+00:00"),
        ("2026-12-01T18:09:00Z", "2026-12-01T18:09:00+00:00"),
        ("2026-12-01 18:09", "2026-12-01T18:09:00+00:00"),
        ("2026-12-01T18:09:00+01:00", "2026-12-01T17:09:00+00:00"),
    ],
)
def test_times_are_read(text, wanted) -> None:
    assert times.read_time(text, UTC).isoformat() == wanted


@pytest.mark.parametrize("text", ["soon", "Mardi, 1 décembre 2026, 18:09", "12"])
def test_what_is_no_time_is_refused(text, tmp_path) -> None:
    path = tmp_path / "times.csv"
    path.write_text(f'student,time\ns01,"{text}"\n')
    with pytest.raises(sources.CollectError, match=r"times.csv:2: "):
        Times(path)


# --- nbgrader -------------------------------------------------------------------------


def test_each_time_that_somebody_submitted_is_an_attempt(tmp_path) -> None:
    again = dataclasses.replace(
        ADA, notebook=notebook(8), handed_in=NOON + timedelta(hours=5)
    )
    root = downloads.exchange(tmp_path / "exchange", [again, ADA])
    for path in (root, root / "transformers", root / "transformers" / "inbound"):
        out = tmp_path / f"class-{path.name}"
        known = downloads.ids(tmp_path / "ids.csv", CLASS)
        assert collect("nbgrader", out, path, ids=known) == 0
        assert held(out, ADA) == marks(ADA.notebook, again.notebook)


def test_a_login_with_a_plus_and_another_timestamp_in_the_folder(tmp_path) -> None:
    ada = dataclasses.replace(ADA, login="ada+b")
    root = downloads.exchange(tmp_path / "exchange", [ada])
    [folder] = (root / "transformers" / "inbound").iterdir()
    (folder / "timestamp.txt").write_text("2026-11-01 00:00:00 UTC")
    out = tmp_path / "class"
    assert collect("nbgrader", out, root) == 0
    [row] = listed(out, command.COLLECTED_CSV)
    assert (row["student"], row["attempt"]) == ("ada+b", "2026-12-01T12-01-00")
    assert "timestamp.txt says another time" in row["notes"]


def test_a_courses_submitted_folder(tmp_path) -> None:
    folder = tmp_path / "course" / "submitted" / ADA.id / CHAPTER
    folder.mkdir(parents=True)
    (folder / "other.ipynb").write_bytes(ADA.notebook)
    (folder / "timestamp.txt").write_text("2026-12-01 12:01:00 UTC")
    (folder / "plot.png").write_bytes(b"png")
    (tmp_path / "course" / "submitted" / "empty" / CHAPTER).mkdir(parents=True)
    out = tmp_path / "class"
    assert collect("nbgrader", out, tmp_path / "course") == 1
    assert attempts(out, ADA)[0][1] == ADA.handed_in
    assert reasons(out) == f"empty/{CHAPTER}: holds no file"
    [kept] = (out / ".collected" / "originals").rglob("*.png")
    assert kept.read_bytes() == b"png"


def test_links_in_an_exchange_are_not_followed(tmp_path) -> None:
    root = downloads.exchange(tmp_path / "exchange", [ADA, BEN])
    secret = tmp_path / "secret.ipynb"
    secret.write_bytes(notebook(7))
    [folder] = (root / "transformers" / "inbound").glob(f"{BEN.login}+*")
    (folder / BEN.name).unlink()
    (folder / BEN.name).symlink_to(secret)
    (folder.parent / f"eve+{CHAPTER}+2026-12-01 10:00:00 UTC+aaaa").symlink_to(tmp_path)
    out = tmp_path / "class"
    assert collect("nbgrader", out, root) == 1
    assert mark(notebook(7)) not in tree(out).values()
    assert reasons(out).count("is a link, not followed") == 2


def test_a_folder_of_many_files_costs_its_owner_alone(tmp_path) -> None:
    root = downloads.exchange(tmp_path / "exchange", [ADA, BEN])
    [folder] = (root / "transformers" / "inbound").glob(f"{BEN.login}+*")
    for number in range(2_001):
        (folder / f"{number}.txt").touch()
    out = tmp_path / "class"
    assert collect("nbgrader", out, root) == 1
    assert "holds more than 2000 files" in reasons(out)
    assert len(attempts(out, dataclasses.replace(ADA, id=ADA.login))) == 1


def test_of_too_many_attempts_the_latest_are_graded(tmp_path) -> None:
    many = [
        dataclasses.replace(ADA, handed_in=NOON + timedelta(hours=n), number=n)
        for n in range(deadlines.MOST_ATTEMPTS + 3)
    ]
    out, root = tmp_path / "class", downloads.exchange(tmp_path / "exchange", many)
    assert collect("nbgrader", out, root) == 1
    of = dataclasses.replace(ADA, id=ADA.login)
    assert [when for _, when, _ in attempts(out, of)] == [
        each.handed_in for each in many[3:]
    ]
    assert reasons(out).count("has 100 attempts after it") == 3


def test_a_folder_of_somebody_elses_is_said(tmp_path, monkeypatch) -> None:
    root = downloads.exchange(tmp_path / "exchange", [ADA])
    monkeypatch.setattr(os, "getuid", lambda: os.stat(root).st_uid + 1)
    assert collect("nbgrader", tmp_path / "class", root) == 1
    assert "the folder says ada1, and belongs to" in reasons(tmp_path / "class")


def test_a_folder_that_became_a_link_is_not_read(tmp_path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x").write_bytes(b"secret")
    (tmp_path / "inside" / "x").write_bytes(b"mine")
    [file, _] = sources.list_folder(tmp_path).files
    assert file.read() == b"mine"
    (tmp_path / "inside" / "x").unlink()
    (tmp_path / "inside").rmdir()
    (tmp_path / "inside").symlink_to("outside")
    with pytest.raises(NotUnderstood, match="cannot be read"):
        file.read()


# --- git ------------------------------------------------------------------------------


def test_the_time_is_that_of_the_chapters_last_commit(tmp_path) -> None:
    folder = tmp_path / "clones" / ADA.login
    downloads.commit(folder, {"ch4/04_attention.ipynb": ADA.notebook}, NOON)
    later = NOON + timedelta(days=9)
    files = {"05.ipynb": notebook(5, "05_multi_head_attention"), "x.ipynb": b"{}"}
    downloads.commit(folder, files, later)
    (folder / "ch4" / "04_attention.ipynb").write_text("not committed")
    out = tmp_path / "class"
    of = dataclasses.replace(ADA, id=ADA.login)
    assert collect("git", out, tmp_path / "clones") == 0
    assert attempts(out, of)[0][1] == NOON and held(out, of) == marks(ADA.notebook)
    assert attempts(out, of, "05_multi_head_attention")[0][1] == later


def test_a_model_that_was_trained_later_is_handed_in_later(tmp_path) -> None:
    folder, later = tmp_path / "clones" / ADA.login, NOON + timedelta(days=9)
    files = {"09_translator.ipynb": notebook(1, "09_translator")}
    downloads.commit(folder, files, NOON)
    downloads.commit(folder, {"translator/config.json": b"{}"}, later)
    out = tmp_path / "class"
    assert collect("git", out, tmp_path / "clones") == 0
    of = dataclasses.replace(ADA, id=ADA.login)
    assert attempts(out, of, "09_translator")[0][1] == later


def test_packed_shallow_and_detached_clones(tmp_path) -> None:
    origin = tmp_path / "origin"
    downloads.commit(origin, {f"{CHAPTER}.ipynb": notebook(0)}, NOON)
    downloads.commit(origin, {f"{CHAPTER}.ipynb": notebook(1)}, NOON)
    clones = tmp_path / "clones"
    clones.mkdir()
    downloads.git(clones, "clone", "--depth", "1", f"file://{origin}", "shallow")
    downloads.git(clones, "clone", f"file://{origin}", "packed")
    downloads.git(clones / "packed", "gc")
    downloads.git(clones / "packed", "pack-refs", "--all")
    downloads.git(clones, "clone", "--bare", f"file://{origin}", "bare.git")
    downloads.git(clones, "clone", f"file://{origin}", "detached")
    downloads.git(clones / "detached", "checkout", "--detach")
    (clones / "plain").mkdir()
    out = tmp_path / "class"
    assert collect("git", out, clones) == 1
    assert reasons(out) == "plain: is no git repository, passed over"
    for name in ("shallow", "packed", "bare", "detached"):
        of = dataclasses.replace(ADA, id=name)
        assert attempts(out, of)[0][1] == NOON and held(out, of) == marks(notebook(1))


def test_a_repositorys_own_settings_run_nothing(tmp_path) -> None:
    folder, trap = tmp_path / "clones" / "eve", tmp_path / "ran"
    downloads.commit(folder, {f"{CHAPTER}.ipynb": ADA.notebook}, NOON)
    program = tmp_path / "trap.sh"
    program.write_text(f"#!/bin/sh\ntouch {trap}\n")
    program.chmod(0o755)
    with (folder / ".git" / "config").open("a") as file:
        file.write(
            f"[log]\n\tshowSignature = true\n[gpg]\n\tprogram = {program}\n"
            f"[core]\n\tfsmonitor = {program}\n\tpager = {program}\n"
            f"\tsshCommand = {program}\n[pager]\n\tlog = {program}\n"
            f'[remote "origin"]\n\tpromisor = true\n\turl = ext::{program}\n'
        )
    for hook in ("post-index-change", "post-checkout", "reference-transaction"):
        path = folder / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(program.read_bytes())
        path.chmod(0o755)
    out = tmp_path / "class"
    assert collect("git", out, tmp_path / "clones") == 0
    assert len(attempts(out, dataclasses.replace(ADA, id="eve"))) == 1
    assert not trap.exists()


def odd_empty(folder: Path) -> None:
    downloads.git(folder, "init")


def odd_elsewhere(folder: Path) -> None:
    (folder / ".git").write_text("gitdir: ../ada/.git\n")


def odd_link(folder: Path) -> None:
    (folder / ".git").symlink_to("../ada/.git")


def odd_alternates(folder: Path) -> None:
    downloads.git(folder, "clone", "--shared", "../ada", ".")


def odd_damaged(folder: Path) -> None:
    downloads.commit(folder, {"04_attention.ipynb": b"{}"}, NOON)
    for path in (folder / ".git" / "objects").rglob("*"):
        if path.is_file():
            path.chmod(0o600)
            path.write_bytes(b"x")


def odd_head(folder: Path) -> None:
    downloads.git(folder, "init")
    (folder / ".git" / "HEAD").write_text("ref: refs/../../../ada/.git/HEAD\n")


def odd_notebook_link(folder: Path) -> None:
    folder.joinpath(f"{CHAPTER}.ipynb").symlink_to("../../../secret")
    downloads.commit(folder, {"x": b"x"}, NOON)


@pytest.mark.parametrize(
    "make_odd",
    [
        *(odd_empty, odd_elsewhere, odd_link, odd_alternates, odd_damaged, odd_head),
        odd_notebook_link,
    ],
)
def test_an_odd_repository_is_a_line_and_stops_nobody(make_odd, tmp_path) -> None:
    clones = tmp_path / "clones"
    downloads.commit(clones / "ada", {f"{CHAPTER}.ipynb": ADA.notebook}, NOON)
    (clones / "odd").mkdir()
    make_odd(clones / "odd")
    out = tmp_path / "class"
    assert collect("git", out, clones) == 1
    assert len(listed(out)) == 1 and listed(out)[0]["where"] == "odd"
    assert len(attempts(out, dataclasses.replace(ADA, id="ada"))) == 1
    assert not (out / "odd").exists()


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["hw4-ada1", "hw4-ada2", "template"], ["s01", "s02", None]),
        (["hw4-ada1", "hw4-mary-ada2"], ["s01", None]),  # she is another
        (["ada1", "ada2"], ["s01", "s02"]),
        (["a-b_ada1", "a-b_ada2.git"], ["s01", "s02"]),
    ],
)
def test_whose_a_repository_is_by_the_classs_list(names, wanted, tmp_path) -> None:
    people = command.People(command.Class(), downloads.ids(tmp_path / "i.csv", CLASS))
    found = repositories.people_of(names, "clones", people)

    def find(name: str) -> str | None:
        with contextlib.suppress(NotUnderstood):
            return people.find(found[name])

    assert [find(name) for name in names] == wanted


@pytest.mark.parametrize(
    ("folder", "names", "wanted"),
    [
        ("hw4-submissions", ["hw4-ada", "hw4-ben-x"], ["ada", "ben-x"]),
        ("clones", ["04-attention-ada", "04-attention-ben"], ["ada", "ben"]),
        ("clones", ["hw-4-ada", "hw-4-ben", "hw-4-cleo"], ["ada", "ben", "cleo"]),
        ("clones", ["hw-ada", "hw-ben"], ["hw-ada", "hw-ben"]),
        ("clones", ["ada", "ben", "cleo"], ["ada", "ben", "cleo"]),
    ],
)
def test_whose_a_repository_is(folder, names, wanted) -> None:
    people = command.People(command.Class())
    found = repositories.people_of(names, folder, people)
    assert [found[name].own for name in names] == wanted


# --- chapters and notebooks -----------------------------------------------------------


def one(tmp_path: Path, files: list[tuple[str, bytes]], **options: object) -> Path:
    """Collect what one person has handed in in Moodle; return the class folder."""
    start = "Ada Brandt_7_assignsubmission_file_/"
    path = tmp_path / "m.zip"
    downloads.write_zip(path, [(f"{start}{name}", data) for name, data in files])
    collect("moodle", tmp_path / "class", path, **options)
    return tmp_path / "class"


OF_ONE = dataclasses.replace(ADA, id="ada.brandt")


def test_the_cells_tell_the_chapter_whatever_the_name_says(tmp_path) -> None:
    out = one(tmp_path, [("05_multi_head_attention.ipynb", ADA.notebook)])
    assert held(out, OF_ONE) == marks(ADA.notebook)


def test_a_broken_notebook_is_placed_by_its_name(tmp_path) -> None:
    out = one(tmp_path, [("My 04-Attention (1).ipynb", b'{"cells": [')])
    assert attempts(out, OF_ONE)[0][2].read_bytes() == b'{"cells": ['


def test_what_nothing_tells_is_listed_and_then_told_by_the_option(tmp_path) -> None:
    files = [("Untitled.ipynb", b'{"cells": []}')]
    out = one(tmp_path, files)
    assert "holds no notebook of a chapter that can be told" in reasons(out)
    assert not (out / OF_ONE.id).exists()
    one(tmp_path, files, chapter=CHAPTER)
    assert len(attempts(out, OF_ONE)) == 1 and listed(out) == []


def test_what_nothing_tells_is_of_the_chapter_of_all_others(tmp_path) -> None:
    odd = student(9, name="Untitled.ipynb", notebook=b"[]")
    path = downloads.moodle(tmp_path / "m.zip", [*CLASS, odd])
    known = downloads.ids(tmp_path / "ids.csv", [*CLASS, odd])
    assert collect("moodle", tmp_path / "class", path, ids=known) == 0
    assert len(attempts(tmp_path / "class", odd)) == 1
    rows = listed(tmp_path / "class", command.COLLECTED_CSV)
    assert "neither cells nor name tell the chapter" in rows[-1]["notes"]


def test_other_chapters_are_left_out(tmp_path) -> None:
    other = "05_multi_head_attention"
    out = one(tmp_path, [("a.ipynb", notebook(1)), ("b.ipynb", notebook(1, other))])
    assert len(attempts(out, OF_ONE)) == len(attempts(out, OF_ONE, other)) == 1
    files = [("a.ipynb", notebook(2)), ("b.ipynb", notebook(2, other))]
    one(tmp_path, files, chapter=other)
    assert len(attempts(out, OF_ONE)) == 1
    assert len(attempts(out, OF_ONE, other)) == 2
    assert f"is of {CHAPTER}, and only {other}" in reasons(out)


def test_of_several_notebooks_the_one_of_the_chapters_name_counts(tmp_path) -> None:
    files = [
        ("04_attention.ipynb", notebook(1)),
        ("backup/04_attention.ipynb", notebook(2)),
        ("04_attention-1.ipynb", notebook(3)),
        ("draft.ipynb", notebook(4)),
    ]
    out = one(tmp_path, files)
    assert held(out, OF_ONE) == marks(notebook(1))
    kept = tree(out / ".collected" / "originals").values()
    assert set(marks(*map(notebook, (2, 3, 4)))) <= set(kept)
    [row] = listed(out, command.COLLECTED_CSV)
    assert "several notebooks, of which 04_attention.ipynb counts" in row["notes"]


def test_notebooks_of_which_it_is_unclear_which_counts_are_for_a_person(tmp_path):
    files = [("first.ipynb", notebook(1)), ("second.ipynb", notebook(2))]
    out = one(tmp_path, files)
    assert "several notebooks, and it is unclear which counts" in reasons(out)
    with pytest.raises(submission.Refused, match="several notebooks and none is named"):
        attempts(out, OF_ONE)


def test_what_holds_no_notebook_is_placed_so_that_nobody_is_forgotten(tmp_path) -> None:
    out = one(tmp_path, [("work.7z", b"7z\xbc\xaf")], chapter=CHAPTER)
    assert "holds no notebook" in reasons(out)
    with pytest.raises(submission.Refused, match=r"work\.7z is an archive"):
        attempts(out, OF_ONE)


def test_a_trained_model_lies_beside_its_notebook(tmp_path) -> None:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr(
            "work/09_translator.ipynb", notebook(1, chapter="09_translator")
        )
        archive.writestr("work/translator/config.json", b"{}")
        archive.writestr("work/translator/model.safetensors", b"weights")
        archive.writestr("work/notes.txt", b"notes")
    out = one(tmp_path, [("work.zip", inner.getvalue())])
    [attempt] = deadlines.find_attempts(out / OF_ONE.id, "09_translator")
    found = submission.find(out / OF_ONE.id, "09_translator", attempt.folder)
    models = submission.read(found).models
    assert models == {
        "translator": {"config.json": b"{}", "model.safetensors": b"weights"}
    }
    assert found.notes == ()
    [kept] = (out / ".collected" / "originals").rglob("work.zip")
    assert kept.read_bytes() == inner.getvalue()


# --- hostile archives -----------------------------------------------------------------


def entry(name: str, mode: int = stat.S_IFREG | 0o644) -> zipfile.ZipInfo:
    """An entry of an archive, as Unix packs it."""
    made = zipfile.ZipInfo(name)
    made.create_system, made.external_attr = 3, mode << 16
    made.compress_type = zipfile.ZIP_DEFLATED
    return made


def packed(*files: tuple[zipfile.ZipInfo | str, bytes]) -> bytes:
    """An archive; ``zipfile`` warns of names that are there twice."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return data.getvalue()


def with_flag(data: bytes, name: bytes, flag: int) -> bytes:
    """Set a flag of an entry, in both of its heads."""
    changed = bytearray(data)
    for signature, at_flag, at_name in ((b"PK\3\4", 6, 30), (b"PK\1\2", 8, 46)):
        at = -1
        while (at := data.find(signature, at + 1)) >= 0:
            if data[at + at_name : at + at_name + len(name)] == name:
                old = struct.unpack_from("<H", data, at + at_flag)[0]
                struct.pack_into("<H", changed, at + at_flag, old | flag)
    return bytes(changed)


BOMB = b"\0" * 30_000_000
HOSTILE = {  # the archive, and what is said of it
    "outside": (packed(("../../evil.ipynb", b"{}")), "holds .., which leads outside"),
    "absolute": (packed(("/etc/evil.ipynb", b"{}")), "is an absolute path"),
    "drive": (packed(("C:\\evil.ipynb", b"{}")), "is an absolute path"),
    "backslash": (packed(("..\\evil.ipynb", b"{}")), "which leads outside"),
    "link": (packed((entry("a.ipynb", stat.S_IFLNK), b"/etc/passwd")), "is a link"),
    "device": (packed((entry("a.ipynb", stat.S_IFCHR), b"")), "is no regular file"),
    "pipe": (packed((entry("a.ipynb", stat.S_IFIFO), b"")), "is no regular file"),
    "bomb": (packed(("a.ipynb", BOMB)), "as a bomb is"),
    "deep": (packed(("d/" * 50 + "a.ipynb", b"{}")), "too deep"),
    "twice": (
        packed(("A.ipynb", b"{}"), ("a.ipynb", b"{}")),
        "a second file of this name",
    ),
    "encrypted": (
        with_flag(packed(("a.ipynb", b"{}")), b"a.ipynb", 1),
        "is encrypted",
    ),
    "many": (packed(*((f"{n}.txt", b"") for n in range(2_001))), "more than 2000"),
    "no archive": (b"PK\3\4 and nothing else", "damaged zip archive"),
    "another": (b"Rar!\x1a\7", "no zip archive"),
    "cut off": (packed(("a.ipynb", b"{}" * 500))[:-30], "damaged zip archive"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_students_hostile_archive_is_a_line_and_stops_nobody(kind, tmp_path) -> None:
    data, reason = HOSTILE[kind]
    eve = student(6, first="Eve", name="work.zip", notebook=data)
    path = downloads.moodle(tmp_path / "in" / "m.zip", [eve, *CLASS])
    known = downloads.ids(tmp_path / "ids.csv", [eve, *CLASS])
    out = tmp_path / "in" / "class"
    assert collect("moodle", out, path, ids=known, chapter=CHAPTER) == 1
    assert reason in reasons(out)
    for each in CLASS:
        assert held(out, each) == marks(each.notebook)
    files = [path for path in out.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 2_000_000
    inside = {path.name for path in tmp_path.iterdir()}
    assert inside == {"in", "ids.csv"}
    kept = [found for name, found in tree(out).items() if name.endswith("work.zip")]
    assert kept == marks(data)


@pytest.mark.parametrize("kind", ["outside", "absolute", "link", "bomb", "encrypted"])
def test_a_hostile_entry_of_a_download_stops_nobody_either(kind, tmp_path) -> None:
    start = "Eve X_9_assignsubmission_file_/"
    data = {
        "outside": packed((f"../{start}x.ipynb", b"{}")),
        "absolute": packed((f"/{start}x.ipynb", b"{}")),
        "link": packed((entry(f"{start}x.ipynb", stat.S_IFLNK), b"/etc/passwd")),
        "bomb": packed((f"{start}x.ipynb", BOMB)),
        "encrypted": with_flag(
            packed((f"{start}x.ipynb", b"{}")), f"{start}x.ipynb".encode(), 1
        ),
    }[kind]
    path = tmp_path / "m.zip"
    path.write_bytes(data)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(downloads.moodle_name(ADA), ADA.notebook)
    assert collect("moodle", tmp_path / "class", path) == 1
    [line] = listed(tmp_path / "class")
    assert "x.ipynb" in line["where"]
    [folder] = {each.name for each in (tmp_path / "class").iterdir()} - {".collected"}
    assert folder == "ada1.brandt-ó"


def test_a_size_that_is_a_lie_is_found_while_reading() -> None:
    data = bytearray(packed(("a.txt", b"a" * 5_000_000)))
    for signature, at_size in ((b"PK\3\4", 22), (b"PK\1\2", 24)):
        struct.pack_into("<L", data, data.find(signature) + at_size, 10)
    [file] = list_zip(io.BytesIO(data)).files
    with pytest.raises(NotUnderstood, match="is damaged"):
        file.read()


def test_a_changed_byte_is_found() -> None:
    data = bytearray(packed(("a.txt", os.urandom(1000))))
    data[100] ^= 255
    [file] = list_zip(io.BytesIO(data)).files
    with pytest.raises(NotUnderstood, match="is damaged"):
        file.read()


def test_a_name_that_is_no_utf_8_is_read_as_bytes() -> None:
    data = packed(("nä.txt", b"1"), ("b.txt", b"2"))
    raw = data.replace("nä.txt".encode(), b"n\xe4\xff.txt"[:7])
    assert raw != data
    listing = list_zip(io.BytesIO(raw))
    assert [file.read() for file in listing.files] == [b"1", b"2"]
    assert [file.name for file in listing.files][1] == "b.txt"


def test_a_long_list_of_contents_is_not_read() -> None:
    data = packed(*((f"{n:0200d}", b"") for n in range(100)))
    with pytest.raises(NotUnderstood, match="list of contents is too long"):
        list_zip(io.BytesIO(data), Limits(directory_bytes=10_000))
    assert len(list_zip(io.BytesIO(data)).files) == 100


def test_one_persons_archives_share_a_limit(tmp_path, monkeypatch) -> None:
    small = Limits(person_bytes=300_000, ratio=10**6)
    monkeypatch.setattr(command, "LIMITS", small)
    begin = command._begin
    monkeypatch.setattr(command, "_begin", lambda words: begin(words, small))
    inner = packed(("a.bin", b"\0" * 200_000))
    files = [("04_attention.ipynb", ADA.notebook), ("1.zip", inner), ("2.zip", inner)]
    out = one(tmp_path, files)
    assert "holds too much, with the archives before it" in reasons(out)
    assert len(attempts(out, OF_ONE)) == 1


def test_without_room_on_the_disk_small_ones_come_first(tmp_path, monkeypatch) -> None:
    big = student(8, notebook=ADA.notebook + b" " * 3_000_000)
    path, options = make("nbgrader", tmp_path, [big, *CLASS])
    monkeypatch.setattr(command, "free_bytes", lambda folder: 1_000_000)
    out = tmp_path / "class"
    assert collect("nbgrader", out, path, **options) == 1
    assert "no room left" in reasons(out) and not (out / big.id).exists()
    assert all(len(attempts(out, each)) == 1 for each in CLASS)


# --- properties -----------------------------------------------------------------------

TEXTS = st.text(st.characters(codec=None), max_size=300)


@FOUND
@given(TEXTS)
@example("../../etc/passwd")
@example("a" * 500)
@example("é" * 200 + ".ipynb")
def test_a_cleaned_name_is_one_name_that_is_seen(text) -> None:
    name = clean_name(text)
    assert name not in ("", ".", "..") and not name.startswith(".")
    assert not set(name) & set('/\\\0\n:*?"<>|') and name.isprintable()
    assert name == name.strip()
    assert len(os.fsencode(name)) <= 200


@FOUND
@given(TEXTS)
@example("class.yml")
@example(".collected")
def test_a_made_id_is_one_that_the_grader_takes(text) -> None:
    name = made_id(text)
    assert is_id(name) and "/" not in name and name != "class.yml"
    assert len(os.fsencode(name)) <= 200


@FOUND
@given(
    st.lists(st.sampled_from(["..", ".", "", "a", "C:", "b.ipynb", "\\", "/", "\0"]))
)
def test_no_path_leads_outside(parts) -> None:
    try:
        path = checked_path("/".join(parts))
    except NotUnderstood:
        return
    root = Path("/some/place")
    assert Path(os.path.normpath(root / path)).is_relative_to(root)
    assert path and not path.startswith("/") and "\0" not in path


@FOUND
@given(st.data())
def test_any_bytes_are_an_archive_or_none(data) -> None:
    whole = bytearray(packed(("a/b.ipynb", b"{}" * 100), ("nä.txt", b"x")))
    places = st.integers(0, len(whole) - 1)
    for at, value in data.draw(st.lists(st.tuples(places, st.integers(0, 255)))):
        whole[at] = value
    try:
        listing = list_zip(io.BytesIO(bytes(whole)))
    except NotUnderstood:
        return
    for file in listing.files:
        assert checked_path(file.path) == file.path
        with contextlib.suppress(NotUnderstood):
            assert len(file.read()) <= sources.LIMITS.file_bytes


@FOUND
@given(st.lists(TEXTS.filter(bool), max_size=5), st.sampled_from(["canvas", "moodle"]))
def test_any_names_are_somebodys_or_a_line(names, form) -> None:
    listing = seen(*dict.fromkeys(names))
    read = canvas.handed_in if form == "canvas" else moodle.handed_in
    more = () if form == "canvas" else (Times(),)
    found, lines = read(listing, "x.zip", *more)
    assert sum(len(each.files) for each in found) + len(lines) == len(listing.files)


# --- the command ----------------------------------------------------------------------


def test_a_class_folder_with_work_of_other_ways_is_left_as_it_is(tmp_path) -> None:
    out = tmp_path / "class"
    by_hand = out / ADA.id / CHAPTER / f"{CHAPTER}.ipynb"
    by_hand.parent.mkdir(parents=True)
    by_hand.write_bytes(notebook(50))
    before = tree(out)
    path, options = make("nbgrader", tmp_path)
    assert collect("nbgrader", out, path, **options) == 0
    assert before.items() <= tree(out).items()
    assert held(out, ADA) == marks(notebook(50), ADA.notebook)


def test_a_link_in_the_class_folder_is_not_written_through(tmp_path) -> None:
    out, other = tmp_path / "class", tmp_path / "other"
    out.mkdir()
    other.mkdir()
    (out / ADA.id).symlink_to(other)
    path, options = make("nbgrader", tmp_path)
    assert collect("nbgrader", out, path, **options) == 1
    assert list(other.iterdir()) == [] and "is no folder" in reasons(out)


def test_a_kill_between_two_steps_leaves_nothing_half(tmp_path, monkeypatch) -> None:
    path, options = make("moodle", tmp_path)
    out, rename = tmp_path / "class", os.rename

    def killed(source, place):
        if BEN.id in str(place):
            raise KeyboardInterrupt
        rename(source, place)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", killed)
        assert collect("moodle", out, path, **options) == 130
    assert list((out / BEN.id).rglob("*.ipynb")) == []
    assert collect("moodle", out, path, **options) == 0
    assert all(len(attempts(out, each)) == 1 for each in CLASS)
    assert not (out / ".collected" / "unfinished").exists()


def test_a_fault_of_our_own_costs_one_student(tmp_path, monkeypatch, capsys) -> None:
    path, options = make("moodle", tmp_path)
    out, place = tmp_path / "class", placing.Class.place

    def slips(self, attempt):
        if attempt.student == BEN.id:
            raise KeyError("slip")
        return place(self, attempt)

    with monkeypatch.context() as patch:
        patch.setattr(placing.Class, "place", slips)
        assert collect("moodle", out, path, **options) == 1
    assert "KeyError" in reasons(out) and "Traceback" in capsys.readouterr().err
    assert len(attempts(out, ADA)) == len(attempts(out, CLEO)) == 1
    assert collect("moodle", out, path, **options) == 0


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, 2), (errno.EACCES, 1)])
def test_a_full_disk_ends_it_and_a_locked_folder_does_not(
    number, code, tmp_path, monkeypatch, capsys
) -> None:
    path, options = make("moodle", tmp_path)

    def fails(self, attempt, place):
        raise OSError(number, os.strerror(number), str(place))

    monkeypatch.setattr(placing.Class, "_write", fails)
    assert collect("moodle", tmp_path / "class", path, **options) == code
    said = capsys.readouterr()
    assert os.strerror(number) in said.out + said.err and "Traceback" not in said.err


def test_cells_of_the_lists_begin_no_formula(tmp_path) -> None:
    name = "=cmd_9_9_04_attention.ipynb"
    path = downloads.write_zip(
        tmp_path / "s.zip", [(name, ADA.notebook), ("=1+1", b""), ("\x1b[2J", b"")]
    )
    assert collect("canvas", tmp_path / "class", path) == 1
    for file in (command.LIST_CSV, command.COLLECTED_CSV):
        for row in listed(tmp_path / "class", file):
            assert not any(value.startswith("=") for value in row.values())
            assert "\x1b" not in "".join(row.values())


def test_the_list_keeps_what_is_open_of_other_downloads(tmp_path) -> None:
    out = tmp_path / "class"
    paths = [
        downloads.write_zip(tmp_path / f"{name}.zip", [(f"{name}.txt", b"")])
        for name in ("a", "b")
    ]
    for path in (*paths, paths[0]):
        assert collect("canvas", out, path) == 1
    assert sorted(row["where"] for row in listed(out)) == ["a.txt", "b.txt"]


BAD = {
    "not there": ("canvas", "nowhere.zip", {}, "no such file or folder"),
    "no zip": ("canvas", "text.zip", {}, "is a damaged zip archive"),
    "a file for git": ("git", "text.zip", {}, "is no folder"),
    "no repositories": ("git", "empty", {}, "holds no git repository"),
    "no exchange": ("nbgrader", "empty", {}, "expected an exchange"),
    "nothing": ("moodle", "empty", {}, "holds nothing that was handed in"),
    "no chapter": ("canvas", "empty", {"chapter": "99_x"}, "no chapter is named"),
    "no ids": ("canvas", "empty", {"ids": "text.zip"}, "needs a first line"),
    "no times": ("canvas", "empty", {"times": "text.zip"}, "no column of times"),
    "bad id": ("canvas", "empty", {"ids": "bad.csv"}, "cannot be a student's id"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_one_line_and_nothing_is_placed(kind, tmp_path, capsys) -> None:
    form, name, options, message = BAD[kind]
    (tmp_path / "text.zip").write_text("words, and more\n")
    (tmp_path / "bad.csv").write_text("student,canvas\n../x,1\n")
    (tmp_path / "empty").mkdir()
    for option in ("ids", "times"):
        if option in options:
            options = options | {option: tmp_path / options[option]}
    assert collect(form, tmp_path / "class", tmp_path / name, **options) == 2
    printed = capsys.readouterr()
    assert printed.err.startswith("error: ") and message in printed.err
    assert not list(tmp_path.glob("class/*/*/*"))


def test_the_class_folder_and_the_download_are_apart(tmp_path, capsys) -> None:
    path, _ = make("nbgrader", tmp_path)
    assert collect("nbgrader", path / "class", path) == 2
    assert "is inside the download" in capsys.readouterr().err
    assert collect("nbgrader", tmp_path, path) == 2
    assert "is inside the class folder" in capsys.readouterr().err


def test_help_says_the_forms_and_the_exit_codes(capsys) -> None:
    parser = command_line.parser()
    with pytest.raises(SystemExit):
        parser.parse_args(["collect", "--help"])
    printed = capsys.readouterr().out
    assert all(form in printed for form in command.FORMS)
    assert "Exit codes: 0" in printed


def test_the_grader_finds_all_and_says_nothing_of_our_lists(tmp_path, capsys) -> None:
    path, options = make("nbgrader", tmp_path)
    out = tmp_path / "class"
    assert collect("nbgrader", out, path, **options) == 0
    words = ["grade", "--submissions", str(out), "--out", str(tmp_path / "out")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["autograder", *words, "--dry-run"])
        assert command_line.main() == 0
    said = capsys.readouterr()
    assert "3 to grade" in said.out and "passed over" not in said.err
    assert "2026-12-01 12:01" in said.out


# --- a class of forty, graded ---------------------------------------------------------

SIZE = 40
KINDS = ("right", "softmax", "blank", "broken")
DUE = NOON + timedelta(hours=1)
RULES = f"late: 1 point a day\ndue:\n  {CHAPTER}: 2026-12-01 13:00\n"
UPSIDE_DOWN = (
    "def softmax(scores):\n"
    "    exponentials = torch.exp(scores - scores.amax(0, keepdim=True))\n"
    "    return exponentials / exponentials.sum(0, keepdim=True)\n"
)


def kind_of(number: int) -> str:
    return KINDS[number % len(KINDS)]


def is_late(number: int) -> bool:
    return number % 5 == 0


def handed_in(number: int) -> bytes:
    """The notebook of a student, unlike everybody else's."""
    kind = kind_of(number)
    if kind == "broken":
        return b'{"cells": [' + str(number).encode()
    of = strangers.blank if kind == "blank" else strangers.solved
    made = of(CHAPTER, strangers.FEW)
    if kind == "softmax":
        made = strangers.put(made, "softmax", "answer", UPSIDE_DOWN)
    made["cells"].append(strangers.code_cell(f"mine = {number}"))
    return json.dumps(made).encode()


def wanted(number: int) -> str:
    """The score that a student must have, with what lateness costs."""
    points = {
        each.name: each.points
        for each in generator.read(CHAPTER).exercises
        if each.name in strangers.FEW
    }
    full = sum(points.values())
    scores = {"right": full, "softmax": full - points["softmax"], "blank": 0}
    if kind_of(number) == "broken":
        return ""
    return str(float(max(0, scores[kind_of(number)] - is_late(number))))


def class_of_forty() -> list[Student]:
    """Forty students; some handed in late, some under another name."""
    return [
        student(
            number,
            notebook=handed_in(number),
            name=f"{CHAPTER}{'-1' if number % 3 == 0 else ''}.ipynb",
            handed_in=NOON + timedelta(minutes=number, days=is_late(number)),
        )
        for number in range(SIZE)
    ]


@pytest.mark.slow
@pytest.mark.sandbox
def test_a_class_of_forty_from_each_form_is_graded_as_expected(tmp_path) -> None:
    students, out = class_of_forty(), tmp_path / "class"
    out.mkdir()
    (out / "class.yml").write_text(RULES, "utf-8")
    for form in command.FORMS:
        path, options = make(form, tmp_path / form, students)
        downloads.ids(options["ids"], students, prefix=f"{form}-")
        if form == "canvas":
            named = [dataclasses.replace(s, id=f"{form}-{s.id}") for s in students]
            downloads.times(options["times"], named)
        assert collect(form, out, path, **options) == 0
        assert listed(out) == []
    ran = small_class.grade(out, tmp_path / "out", "--chapter", CHAPTER)
    assert ran.returncode == 0, ran.stderr
    assert "passed over" not in ran.stderr
    with (tmp_path / "out" / "grades.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["assignment"] == CHAPTER]
    found = {row["student_id"]: row["score"] for row in rows}
    assert found == {
        f"{form}-s{number:02d}": wanted(number)
        for form in command.FORMS
        for number in range(SIZE)
    }
