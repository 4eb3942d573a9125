"""Grading: the sample class end to end, repairs one by one, and nbgrader as it is."""

import csv
import hashlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from autograder import __main__ as command_line
from autograder import generator
from autograder.grading import cluster, reading, sandbox, submission
from autograder.grading.grader import Grader
from autograder.grading.job import Job
from autograder.grading.paper import Paper
from autograder.grading.repair import repair
from autograder.grading.report import COLUMNS
from tests import sample_class
from tests.sample_class import __main__ as sample

CLASS = sample_class.read_class()
GRADED = [each for each in CLASS if not each.ungraded]
UNGRADED = [each for each in CLASS if each.ungraded]
CHAPTER = "04_attention"


def name(each: sample_class.Submission) -> str:
    return f"{each.student} {each.chapter[:2]}"


# --- the sample class -----------------------------------------------------------------


@pytest.fixture(scope="session")
def out(tmp_path_factory) -> Path:
    """The sample class, graded once for all tests."""
    folder = tmp_path_factory.mktemp("sample_class")
    assert sample.grade(folder, CLASS) == 0
    return folder


@pytest.fixture(scope="session")
def grades(out) -> dict:
    return sample_class.read_grades(out)


@pytest.fixture(scope="session")
def audit(out) -> dict:
    return sample_class.read_audit(out)


@pytest.fixture(scope="session")
def found(out) -> dict:
    return sample_class.differences(out, CLASS)


@pytest.mark.parametrize("each", CLASS, ids=name)
def test_the_result_is_as_written_in_class_yml(each, found) -> None:
    assert found[each] == []


def test_there_is_a_row_for_every_student_and_chapter(out, grades, audit) -> None:
    students = {path.name for path in (out / "submissions").iterdir()}
    chapters = {each.chapter for each in CLASS}
    wanted = {(student, chapter) for student in students for chapter in chapters}
    assert set(grades) == set(audit) == wanted


@pytest.mark.parametrize("each", UNGRADED, ids=name)
def test_ungraded_is_never_a_zero(each, out, grades) -> None:
    row = grades[each.student, each.chapter]
    assert row["status"] == "ungraded"
    assert row["reason"]
    assert row["score"] == row["raw_score"] == ""
    assert float(row["max_score"]) > 0
    with Gradebook(f"sqlite:///{out / 'course' / 'gradebook.db'}") as gradebook:
        assignment = gradebook.find_assignment(each.chapter)
        students = {entry.student.id for entry in assignment.submissions}
    assert each.student not in students  # nbgrader would export an entry as 0.0


def test_the_columns_are_nbgraders_then_ours(out, tmp_path) -> None:
    """nbgrader's own export of the gradebook has the same numbers."""
    target = tmp_path / "stock.csv"
    nbgrader(out / "course", "export", "--to", str(target))
    with target.open(newline="", encoding="utf-8") as file:
        stock = list(csv.DictReader(file))
    ours = sample_class.read_grades(out)
    assert tuple(stock[0]) == COLUMNS[:-3]
    for each in GRADED:
        key = each.student, each.chapter
        row = next(r for r in stock if (r["student_id"], r["assignment"]) == key)
        assert row == {column: ours[key][column] for column in row}


def test_the_audit_says_what_was_graded_by_what(out, audit) -> None:
    for each in GRADED:
        entry = audit[each.student, each.chapter]
        folder = out / "submissions" / each.student / each.chapter
        (path,) = folder.glob("*.ipynb")
        assert entry["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
        assert {"autograder", "torch", "nbgrader", "python"} <= set(entry["versions"])
        assert entry["paper"] == Paper.of(each.chapter).digest()
        assert entry["unsafe"] == bool(sandbox.problem())
        assert entry["seconds"] > 0
        points = {name: s["points"] for name, s in entry["scores"].items()}
        exercises = generator.read(each.chapter).exercises
        assert points == {each.name: each.points for each in exercises}


def test_feedback_keeps_hidden_tests_hidden(out) -> None:
    pages = list((out / "feedback").glob("*/*.html"))
    assert len(pages) == len(CLASS)
    for page in pages:
        text = page.read_text("utf-8")
        assert "HIDDEN TESTS" not in text
        assert not re.search(r"seed\s*=", re.sub("<[^>]*>", "", text)), page
    autograded = out / "course" / "autograded" / "amelia.brandt" / CHAPTER
    assert "HIDDEN TESTS" in (autograded / f"{CHAPTER}.ipynb").read_text("utf-8")


def test_nothing_half_written_is_left(out) -> None:
    leftovers = [path for path in out.rglob("*") if path.name.endswith(".new")]
    assert leftovers == []


# --- one student's fault is nobody else's ---------------------------------------------


@pytest.fixture(scope="session")
def alone(tmp_path_factory) -> Path:
    """Two students of the class, graded without the others, on a Dask cluster."""
    from distributed import LocalCluster

    folder = tmp_path_factory.mktemp("alone")
    chosen = [each for each in CLASS if name(each) in ALONE]
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=None
    ) as cluster:
        arguments = ("--chapter", CHAPTER, "--scheduler", cluster.scheduler_address)
        assert sample.grade(folder, chosen, *arguments) == 0
    return folder


ALONE = ("jonas.weber 04", "kenji.sato 04")
LIMITS = ("--cell-timeout", str(sample_class.CELL_TIMEOUT))


def test_without_the_faulty_students_the_others_get_the_same(alone, out) -> None:
    together, apart_from_them = map(sample_class.read_audit, (out, alone))
    assert len(apart_from_them) == len(ALONE)
    for key, entry in apart_from_them.items():
        for field in ("status", "reason", "scores", "repairs", "sha256"):
            assert entry[field] == together[key][field]


def test_grading_again_keeps_what_was_graded_by_hand(alone) -> None:
    student, exercise = "jonas.weber", "explain-scaling"
    before = sample_class.read_grades(alone)
    address = f"sqlite:///{alone / 'course' / 'gradebook.db'}"
    with Gradebook(address) as gradebook:
        by_hand = gradebook.find_grade(exercise, CHAPTER, CHAPTER, student)
        by_hand.manual_score, by_hand.needs_manual_grade = 3, False
        gradebook.db.commit()
    broken = alone / "submissions" / "kenji.sato" / CHAPTER / f"{CHAPTER}.ipynb"
    broken.write_text("{")
    assert grade(alone / "submissions", alone, "--chapter", CHAPTER, *LIMITS) == 0
    after, key = sample_class.read_grades(alone), (student, CHAPTER)
    assert float(after[key]["score"]) == float(before[key]["score"]) + 3
    assert "by hand" not in after[key]["reason"]
    row = after["kenji.sato", CHAPTER]
    assert (row["status"], row["score"]) == ("ungraded", "")
    page = (alone / "feedback" / "kenji.sato" / f"{CHAPTER}.html").read_text("utf-8")
    assert "not valid JSON" in page
    more = ("--chapter", CHAPTER, "--regrade", *LIMITS)
    assert grade(alone / "submissions", alone, *more) == 0
    again = sample_class.read_grades(alone)
    assert again[key]["score"] == after[key]["score"]
    assert f"graded by hand before, to be confirmed: {exercise}" in again[key]["reason"]


# --- bad input ------------------------------------------------------------------------


def grade(submissions: Path, out: Path, *more: str) -> int:
    """Run the command in this process."""
    arguments = ["grade", "--submissions", str(submissions), "--out", str(out), *more]
    before, sys.argv = sys.argv, ["autograder", *arguments]
    try:
        return command_line.main()
    finally:
        sys.argv = before


@pytest.fixture
def students(tmp_path) -> Path:
    """A folder with one student, who handed in something that is no notebook."""
    folder = tmp_path / "submissions" / "amelia.brandt" / CHAPTER
    folder.mkdir(parents=True)
    (folder / f"{CHAPTER}.ipynb").write_text("{")
    return tmp_path / "submissions"


def refused(capsys, code: int) -> str:
    """Expect one line on stderr and exit code 2; return the line."""
    printed = capsys.readouterr()
    assert code == 2
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    return printed.err


def test_a_folder_that_is_not_there(tmp_path, capsys) -> None:
    missing = tmp_path / "nowhere"
    line = refused(capsys, grade(missing, tmp_path / "out"))
    assert f"{missing}: no such folder" in line


def test_a_file_in_place_of_the_folder(tmp_path, capsys) -> None:
    file = tmp_path / "class.zip"
    file.write_text("")
    line = refused(capsys, grade(file, tmp_path / "out"))
    assert f"{file}: is no folder" in line


def test_an_empty_folder(tmp_path, capsys) -> None:
    (tmp_path / "submissions").mkdir()
    line = refused(capsys, grade(tmp_path / "submissions", tmp_path / "out"))
    assert "no student's folder" in line


def test_an_unknown_chapter(students, tmp_path, capsys) -> None:
    code = grade(students, tmp_path / "out", "--chapter", "04_atention")
    line = refused(capsys, code)
    assert "'04_atention'" in line
    assert all(chapter in line for chapter in generator.chapters())


def test_no_chapter_at_all(tmp_path, capsys) -> None:
    (tmp_path / "submissions" / "amelia.brandt" / "homework").mkdir(parents=True)
    line = refused(capsys, grade(tmp_path / "submissions", tmp_path / "out"))
    assert "no student's folder holds a chapter" in line


def test_results_inside_the_submissions(students, capsys) -> None:
    line = refused(capsys, grade(students, students / "out"))
    assert "inside the submissions" in line
    assert not (students / "out").exists()


def test_submissions_where_grading_would_write(tmp_path, capsys) -> None:
    folder = tmp_path / "course" / "submitted"
    (folder / "amelia.brandt" / CHAPTER).mkdir(parents=True)
    line = refused(capsys, grade(folder, tmp_path))
    assert "grading writes to" in line


def test_a_file_in_place_of_the_results(students, tmp_path, capsys) -> None:
    (tmp_path / "out").write_text("precious")
    line = refused(capsys, grade(students, tmp_path / "out"))
    assert "is a file" in line
    assert (tmp_path / "out").read_text() == "precious"


def test_without_solutions(students, tmp_path, capsys, monkeypatch) -> None:
    everywhere = generator.chapters
    monkeypatch.setattr(generator, "chapters", lambda root: everywhere(tmp_path))
    line = refused(capsys, grade(students, tmp_path / "out"))
    assert "solutions" in line
    assert not (tmp_path / "out").exists()


def test_a_scheduler_that_is_not_there(students, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(cluster, "SCHEDULER_TIMEOUT", 1)
    address = f"tcp://127.0.0.1:{free_port()}"
    line = refused(capsys, grade(students, tmp_path / "out", "--scheduler", address))
    assert f"{address}: no Dask scheduler answers" in line


def test_a_database_that_is_not_there(students, tmp_path, capsys) -> None:
    address = f"sqlite:///{tmp_path / 'nowhere' / 'gradebook.db'}"
    line = refused(capsys, grade(students, tmp_path / "out", "--db", address))
    assert "the gradebook cannot be used" in line


def test_without_bubblewrap_nothing_is_graded(
    students, tmp_path, capsys, monkeypatch
) -> None:
    why = "The sandbox needs bubblewrap. To install it: apt-get install bubblewrap"
    monkeypatch.setattr(sandbox, "problem", lambda: why)
    line = refused(capsys, grade(students, tmp_path / "out"))
    assert "apt-get install bubblewrap" in line
    assert not (tmp_path / "out").exists()


def test_unsafe_warns(students, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr(sandbox, "problem", lambda: "no bubblewrap")
    assert grade(students, tmp_path / "out", "--unsafe", "--dry-run") == 0
    assert "without a sandbox" in capsys.readouterr().err


def test_a_dry_run_grades_nothing(students, tmp_path, capsys) -> None:
    assert grade(students, tmp_path / "out", "--dry-run") == 0
    assert "1 to grade" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


# --- finding and reading --------------------------------------------------------------


def notebook_at(path: Path, **content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"cells": [], "nbformat": 4, **content}))
    return path


def test_the_right_name_wins_over_others(tmp_path) -> None:
    right = notebook_at(tmp_path / "c" / "c.ipynb")
    notebook_at(tmp_path / "c" / "c (1).ipynb")
    found = submission.find(tmp_path, "c")
    assert found.path == right
    assert found.notes == ("other files were not used: c (1).ipynb",)


def model_at(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for file in submission.MODEL_FILES:
        (folder / file).write_text(file)
    return folder


def test_a_trained_model_is_used_and_nothing_else_of_its_folder(tmp_path) -> None:
    notebook_at(tmp_path / "c" / "c.ipynb")
    folder = model_at(tmp_path / "c" / "mine")
    (folder / "curves.png").write_bytes(b"a picture")
    (folder / "run_me.py").write_text("raise SystemExit")
    content = submission.read(submission.find(tmp_path, "c"))
    assert content.notes == ()
    files = {file: file.encode() for file in submission.MODEL_FILES}
    assert content.models == {"mine": files}


def test_what_is_no_small_file_of_a_model_is_not_used(tmp_path, monkeypatch) -> None:
    for name in "abcd":
        model_at(tmp_path / "c" / name)
    monkeypatch.setattr(submission, "LARGEST_FILE", 11_000_000)
    large = tmp_path / "c" / "a" / "model.safetensors"
    large.write_bytes(bytes(11_000_001))
    link = tmp_path / "c" / "b" / "config.json"
    link.unlink()
    link.symlink_to(tmp_path / "c" / "a" / "config.json")
    models, notes = submission.read_models(tmp_path / "c")
    assert notes == [
        "a/model.safetensors was not used: it is larger than 11 MB",
        "b/config.json was not used: it is a link",
        "d/ was not used: 3 models at most",
    ]
    assert set(models) == {"a", "b", "c"}
    assert "model.safetensors" not in models["a"]


def test_two_other_names_are_refused(tmp_path) -> None:
    notebook_at(tmp_path / "c" / "a.ipynb")
    notebook_at(tmp_path / "c" / "b.ipynb")
    with pytest.raises(submission.Refused, match="several notebooks"):
        submission.find(tmp_path, "c")


def test_a_notebook_outside_its_folder_is_found(tmp_path) -> None:
    loose = notebook_at(tmp_path / "c.ipynb")
    found = submission.find(tmp_path, "c")
    assert found.path == loose
    assert found.notes == ("the notebook was not in a folder c/",)


def test_checkpoints_are_no_submission(tmp_path) -> None:
    notebook_at(tmp_path / "c" / ".ipynb_checkpoints" / "c-checkpoint.ipynb")
    with pytest.raises(submission.Refused, match="no notebook was submitted"):
        submission.find(tmp_path, "c")


ARCHIVES = ("a/c/work.zip", "a/c.tar.gz", "a.zip", "a/c/c.ipynb")


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_is_refused_and_says_what_to_do(name, tmp_path) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"PK\x03\x04 and more")
    with pytest.raises(submission.Refused, match=r"is an archive, .* unpack it"):
        submission.read(submission.find(tmp_path / "a", "c"))


@pytest.mark.parametrize("name", ["a/c", "a/c/c.ipynb", "a/c.ipynb"])
def test_a_link_to_another_student_is_not_followed(name, tmp_path) -> None:
    notebook_at(tmp_path / "b" / "c" / "c.ipynb")
    link = tmp_path / name
    link.parent.mkdir(parents=True)
    link.symlink_to(
        tmp_path / "b" / name[2:] if name != "a/c.ipynb" else "../b/c/c.ipynb"
    )
    with pytest.raises(submission.Refused, match="a link out of the student's folder"):
        submission.find(tmp_path / "a", "c")


def test_a_link_inside_the_students_folder_is_followed(tmp_path) -> None:
    notebook_at(tmp_path / "a" / "drafts" / "c.ipynb")
    (tmp_path / "a" / "c").symlink_to("drafts")
    found = submission.read(submission.find(tmp_path / "a", "c"))
    assert b"cells" in found.notebook


def test_a_pipe_is_no_notebook_and_nobody_waits_for_it(tmp_path) -> None:
    (tmp_path / "c").mkdir()
    os.mkfifo(tmp_path / "c" / "c.ipynb")
    with pytest.raises(submission.Refused, match="no notebook was submitted"):
        submission.find(tmp_path, "c")


def test_a_huge_notebook_is_not_even_read(tmp_path, monkeypatch) -> None:
    path = notebook_at(tmp_path / "c" / "c.ipynb")
    monkeypatch.setattr(submission, "LARGEST_NOTEBOOK", path.stat().st_size - 1)
    with pytest.raises(submission.Refused, match="clear its outputs"):
        submission.read(submission.find(tmp_path, "c"))


UNREADABLE = {
    "": "an empty file",
    " \n": "an empty file",
    '{"cells": [': r"not valid JSON \(line 1, column 12\)",
    "[" * 100_000: "nested too deeply",
    "[]": "not a notebook",
    '{"nbformat": 4}': "not a notebook",
    '{"cells": 3}': "not a notebook",
    '{"cells": [3]}': "not a notebook",
    '{"worksheets": [3], "nbformat": 3}': "cannot be converted",
}


@pytest.mark.parametrize("text", UNREADABLE, ids=UNREADABLE.get)
def test_what_cannot_be_read_is_refused_in_words(text) -> None:
    with pytest.raises(submission.Refused, match=UNREADABLE[text]):
        reading.parse(text.encode())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1"])
def test_any_usual_encoding_is_read(encoding) -> None:
    cell = {"cell_type": "markdown", "source": "Müller", "metadata": {}}
    text = json.dumps({"cells": [cell], "nbformat": 4}, ensure_ascii=False)
    notebook, notes = reading.parse(text.encode(encoding))
    assert notebook.cells[0].source == "Müller"
    assert bool(notes) == (encoding == "latin-1")


# --- repair ---------------------------------------------------------------------------

STUB = "def double(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()"
ANSWER = "def double(x):\n    return 2 * x"
CHECK = '"""double: twice the number"""\ncheck.double(double)'
TEXT = "Explain it.\n\nYOUR ANSWER HERE"


def cell(kind: str, text: str, key: str, **grading: object) -> nbformat.NotebookNode:
    made = getattr(nbformat.v4, f"new_{kind}_cell")(text, id=key)
    if grading:
        common = {"grade_id": key, "schema_version": 3, "task": False}
        made.metadata.nbgrader = common | grading
    return made


ROLES = {
    "answer": {"grade": False, "solution": True, "locked": False},
    "check": {"grade": True, "solution": False, "locked": True, "points": 2},
    "manual": {"grade": True, "solution": True, "locked": False, "points": 3},
}


@pytest.fixture
def release() -> nbformat.NotebookNode:
    """A released notebook with one exercise of each kind."""
    return nbformat.v4.new_notebook(
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        cells=[
            cell("markdown", "# Title", "title"),
            cell("code", "from autograder.chapters import x as check", "imports"),
            cell("code", STUB, "double", **ROLES["answer"]),
            cell("code", CHECK, "test-double", **ROLES["check"]),
            cell("markdown", "## In words", "words"),
            cell("markdown", TEXT, "explain", **ROLES["manual"]),
        ],
    )


@pytest.fixture
def submitted(release) -> nbformat.NotebookNode:
    """The released notebook, completed."""
    notebook = nbformat.from_dict(json.loads(json.dumps(release)))
    by_id(notebook, "double").source = ANSWER
    by_id(notebook, "explain").source = "Explain it.\n\nBecause."
    return notebook


def by_id(notebook, key: str) -> nbformat.NotebookNode:
    return next(each for each in notebook.cells if each.id == key)


def index(notebook, key: str) -> int:
    return notebook.cells.index(by_id(notebook, key))


def repaired(submitted, release) -> tuple[nbformat.NotebookNode, list[str]]:
    """Repair, and see that the result is valid and needs no further repair."""
    notebook, notes = repair(submitted, release)
    nbformat.validate(notebook)
    again, more = repair(notebook, release)
    assert more == [note for note in notes if "nothing put in its place" in note]
    assert again == notebook
    return notebook, notes


def texts(notebook) -> list[str]:
    return [each.source for each in notebook.cells]


def test_a_completed_notebook_needs_no_repair(submitted, release) -> None:
    notebook, notes = repaired(submitted, release)
    assert notes == []
    assert texts(notebook) == texts(submitted)


def test_an_untouched_notebook_needs_no_repair(release) -> None:
    notebook, notes = repaired(release, release)
    assert notes == []
    assert notebook.cells == release.cells


def test_outputs_go(submitted, release) -> None:
    output = nbformat.v4.new_output("stream", text="x" * 1000)
    by_id(submitted, "double").outputs = [output]
    notebook, notes = repaired(submitted, release)
    assert notes == []
    assert by_id(notebook, "double").outputs == []


def test_a_deleted_check_is_put_back_behind_its_answer(submitted, release) -> None:
    del submitted.cells[index(submitted, "test-double")]
    notebook, notes = repaired(submitted, release)
    assert notes == ["check cell test-double: missing, put back"]
    assert notebook.cells[3] == by_id(release, "test-double")


def test_a_deleted_check_comes_behind_all_copies_of_its_answer(
    submitted, release
) -> None:
    copy = nbformat.from_dict(dict(by_id(submitted, "double"), id="copy"))
    copy.source = "def double(x):\n    return x + x"
    submitted.cells[3] = copy  # in the check's place
    notebook, _ = repaired(submitted, release)
    assert texts(notebook)[2:5] == [ANSWER, copy.source, CHECK]


def test_copies_of_an_answer_stay_as_ordinary_cells(submitted, release) -> None:
    copy = nbformat.from_dict(dict(by_id(submitted, "double"), id="copy"))
    copy.source = "def double(x):\n    return x + x"
    submitted.cells.insert(3, copy)
    notebook, notes = repaired(submitted, release)
    assert notes == [
        "answer cell double: there 2 times, the other stays as an ordinary cell"
    ]
    assert texts(notebook)[2:5] == [ANSWER, copy.source, CHECK]
    assert "nbgrader" not in notebook.cells[3].metadata


def test_an_untouched_copy_of_the_stub_goes(submitted, release) -> None:
    """Below the answer it would undo it."""
    submitted.cells.insert(
        3, nbformat.from_dict(dict(by_id(release, "double"), id="s"))
    )
    notebook, notes = repaired(submitted, release)
    assert notes == ["cell double: an untouched copy of the stub dropped"]
    assert texts(notebook) == texts(submitted)[:3] + texts(submitted)[4:]


def test_copies_of_a_check_go(submitted, release) -> None:
    copy = nbformat.from_dict(dict(by_id(submitted, "test-double"), id="copy"))
    submitted.cells.insert(1, copy)
    notebook, notes = repaired(submitted, release)
    assert notes == ["check cell test-double: 1 copies dropped"]
    assert [text for text in texts(notebook) if text == CHECK] == [CHECK]
    assert index(notebook, "test-double") > index(notebook, "double")


def test_an_edited_check_is_restored(submitted, release) -> None:
    check = by_id(submitted, "test-double")
    check.source, check.metadata.nbgrader["points"] = "pass", 100
    notebook, notes = repaired(submitted, release)
    assert notes == [
        "check cell test-double: its text was changed, restored",
        "cell test-double: its nbgrader metadata were changed, restored",
    ]
    assert by_id(notebook, "test-double") == by_id(release, "test-double")


def test_an_answer_cannot_grade_itself(submitted, release) -> None:
    by_id(submitted, "double").metadata.nbgrader |= {"grade": True, "points": 50}
    notebook, _ = repaired(submitted, release)
    wanted = by_id(release, "double").metadata
    assert by_id(notebook, "double").metadata == wanted


@pytest.mark.parametrize("key", ["double", "test-double"])
@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_code_turned_into_text_is_code_again(key, kind, submitted, release) -> None:
    old = by_id(submitted, key)
    make = getattr(nbformat.v4, f"new_{kind}_cell")
    at = index(submitted, key)
    submitted.cells[at] = make(old.source, id=key, metadata=old.metadata)
    notebook, notes = repaired(submitted, release)
    assert len(notes) == 1
    assert notes[0].endswith("made a code cell again")
    assert by_id(notebook, key).cell_type == "code"
    assert texts(notebook) == texts(submitted)


def test_text_turned_into_code_is_text_again(submitted, release) -> None:
    old = by_id(submitted, "explain")
    submitted.cells[5] = nbformat.v4.new_code_cell(
        old.source, id="explain", metadata=old.metadata
    )
    notebook, notes = repaired(submitted, release)
    assert notes == ["manual cell explain: made a markdown cell again"]
    assert by_id(notebook, "explain").source == old.source


def test_lost_metadata_are_found_by_text_and_names(submitted, release) -> None:
    for number, each in enumerate(submitted.cells):
        each.metadata, each.id = nbformat.NotebookNode(), f"new-{number}"
    notebook, notes = repaired(submitted, release)
    assert len(notes) == 3
    assert all(note.endswith("found without its metadata") for note in notes)
    assert texts(notebook) == texts(submitted)
    for key in ("double", "test-double", "explain"):
        assert by_id(notebook, key).metadata == by_id(release, key).metadata


def test_a_renamed_answer_is_found_by_what_it_defines(submitted, release) -> None:
    answer = by_id(submitted, "double")
    answer.metadata.nbgrader["grade_id"], answer.id = "my-answer", "mine"
    notebook, notes = repaired(submitted, release)
    assert notes == ["cell double: found under another id"]
    assert by_id(notebook, "double").source == ANSWER


def test_an_answer_moved_into_another_cell_counts(submitted, release) -> None:
    del submitted.cells[index(submitted, "double")]
    submitted.cells.insert(2, nbformat.v4.new_code_cell(f"import math\n\n{ANSWER}"))
    notebook, notes = repaired(submitted, release)
    assert notes == ["cell double: found without its metadata"]
    assert STUB not in texts(notebook)


def test_a_missing_answer_is_not_replaced_by_its_stub(submitted, release) -> None:
    submitted.cells[2] = nbformat.v4.new_code_cell("double = lambda x: 2 * x")
    notebook, notes = repaired(submitted, release)
    assert notes == ["answer cell double: missing, nothing put in its place"]
    assert texts(notebook) == texts(submitted)


def test_a_missing_text_cell_is_put_back(submitted, release) -> None:
    del submitted.cells[5]
    notebook, notes = repaired(submitted, release)
    assert notes == ["manual cell explain: missing, put back"]
    assert notebook.cells[5] == by_id(release, "explain")


def test_missing_imports_are_put_back(submitted, release) -> None:
    del submitted.cells[1]
    notebook, notes = repaired(submitted, release)
    assert notes == ["given code imports: missing, put back"]
    assert notebook.cells[1] == by_id(release, "imports")


def test_imports_that_moved_are_not_put_back(submitted, release) -> None:
    by_id(submitted, "double").source = f"{submitted.cells.pop(1).source}\n\n{ANSWER}"
    _, notes = repaired(submitted, release)
    assert notes == []


def test_a_check_above_its_answer_moves_behind_it(submitted, release) -> None:
    submitted.cells[2], submitted.cells[3] = submitted.cells[3], submitted.cells[2]
    notebook, notes = repaired(submitted, release)
    assert notes == ["check cell test-double: moved behind its answer"]
    assert texts(notebook)[2:4] == [ANSWER, CHECK]


def test_another_kernel_is_replaced(submitted, release) -> None:
    submitted.metadata.kernelspec = {"name": "ir", "display_name": "R"}
    notebook, notes = repaired(submitted, release)
    assert notes == ["kernel 'ir' replaced by 'python3'"]
    assert notebook.metadata.kernelspec == release.metadata.kernelspec


def test_other_cells_keep_their_place_and_lose_their_metadata(
    submitted, release
) -> None:
    own = nbformat.v4.new_code_cell("double(3)")
    own.metadata.nbgrader = {"grade": True, "grade_id": "mine", "points": 99}
    submitted.cells.insert(3, own)
    notebook, notes = repaired(submitted, release)
    assert notes == []
    assert texts(notebook) == texts(submitted)
    assert notebook.cells[3].metadata == {}


def test_cells_of_any_shape_are_mended(submitted, release) -> None:
    odd = [
        {"cell_type": "code", "source": ["a = 1\n", "b = 2"]},
        {"cell_type": "heading", "source": None, "metadata": None},
        {"cell_type": 7, "metadata": {"nbgrader": "x"}, "outputs": "none"},
        {"source": "x", "metadata": {"nbgrader": {"grade_id": ["no"]}}, "id": 4},
    ]
    submitted.cells += [nbformat.from_dict(each) for each in odd]
    notebook, notes = repaired(submitted, release)
    assert notes == []
    assert notebook.cells[6].source == "a = 1\nb = 2"


# --- nbgrader as instructors know it --------------------------------------------------


def nbgrader(folder: Path, *arguments: str) -> None:
    """Run an nbgrader command in a folder, without the environment on PATH."""
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments],
        cwd=folder,
        env=os.environ | {"PATH": os.defpath},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


STOCK = ("ines.costa 04", "jonas.weber 04")  # nbgrader alone would lose both


@pytest.fixture(scope="session")
def stock(tmp_path_factory) -> Path:
    """A copy of autograder/ in which nbgrader's own commands have been run."""
    folder = tmp_path_factory.mktemp("autograder")
    chosen = [each for each in CLASS if name(each) in STOCK]
    chapter = chosen[0].chapter
    config = generator.ROOT / "autograder" / "nbgrader_config.py"
    shutil.copy(config, folder / config.name)
    generator.write_nbgrader_source(chapter, folder / "source" / chapter)
    sample_class.build(folder / "submitted", chosen)
    nbgrader(folder, "generate_assignment", chapter)
    nbgrader(folder, "autograde", chapter)
    nbgrader(folder, "generate_feedback", chapter)
    nbgrader(folder, "export")
    return folder


def test_nbgraders_own_commands_give_the_same_scores(stock) -> None:
    with (stock / "grades.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["student_id"]: row for row in csv.DictReader(file)}
    for each in CLASS:
        if name(each) in STOCK:
            assert float(rows[each.student]["score"]) == each.score
            page = stock / "feedback" / each.student / each.chapter
            text = (page / f"{each.chapter}.html").read_text("utf-8")
            assert "HIDDEN TESTS" not in text


def test_formgrader_answers(stock) -> None:
    port = free_port()
    server = subprocess.Popen(
        [
            *(sys.executable, "-m", "jupyter", "server", "--no-browser"),
            *(f"--port={port}", "--ServerApp.ip=127.0.0.1", "--allow-root"),
            *("--IdentityProvider.token=", f"--ServerApp.root_dir={stock}"),
        ],
        cwd=stock,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert "formgrader" in fetch(port, "/formgrader")
        assignments = json.loads(fetch(port, "/formgrader/api/assignments"))
        (chapter,) = (each["name"] for each in assignments)
        assert [each["num_submissions"] for each in assignments] == [len(STOCK)]
        papers = f"/formgrader/api/submitted_notebooks/{chapter}/{chapter}"
        for paper in json.loads(fetch(port, papers)):
            page = fetch(port, f"/formgrader/submissions/{paper['id']}")
            assert "HIDDEN TESTS" in page  # the instructor sees what was asked
    finally:
        server.terminate()
        server.wait(20)


def fetch(port: int, path: str, patience: float = 60) -> str:
    """Get a page from the server on this machine once it answers."""
    end = time.monotonic() + patience
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as answer:
                assert answer.status == 200
                return answer.read().decode("utf-8")
        except urllib.error.HTTPError:
            raise
        except OSError:  # it does not listen yet
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


# --- what is imported before anything is graded ---------------------------------------


def test_only_what_a_chapters_notebooks_import_is_imported_before() -> None:
    attention, vision = (Paper.of(c).imports() for c in ("04_attention", "10_vision"))
    assert {"torch", "autograder.chapters.attention", "workbench.plots"} <= attention
    assert not any(name.startswith("sklearn") for name in attention)
    # the notebook imports workbench.data.images, which imports it
    assert {"PIL", "autograder.chapters.vision"} <= vision


@pytest.mark.sandbox
@pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem())
def test_what_was_not_imported_before_is_imported_when_needed() -> None:
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell("import sklearn.datasets\nprint('there')")]
    )
    paper = Paper.of("10_vision")
    job = Job("x", "10_vision", nbformat.writes(notebook).encode(), paper)
    with Grader(imports=()) as grader:
        outcome = grader.grade(job)
    assert outcome.status == "graded", outcome.reason
    assert "there" in outcome.notebook
