"""How far somebody has come: noted by checks, shown in notebooks and by a command."""

import contextlib
import html
import io
import json
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from nbclient import NotebookClient

from autograder import generator
from autograder.chapters import attention as check
from autograder.chapters import translator
from autograder.exercise import chapters, front_end, progress
from autograder.exercise.progress import FILE, Standing
from autograder.expect import CheckFailure
from autograder.generator import ROOT
from autograder.grading.needless import needless
from tests.chapters import CHAPTERS
from transformer.attention import softmax as right
from workbench import __main__

PAGE = "04_attention"
EXERCISES = chapters.exercises()
CHECKED = [each for each in chapters.chapters()[PAGE].exercises if each.cells]
DAMAGED = [
    b"",
    b"{",
    b"[1, 2]",
    b"\xff\xfe\x00",
    b'{"04_attention": 1}',
    b'{"04_attention": {"softmax()": "yes"}}',
    b"[" * 100_000,
    b'{"04_attention": {"softmax()": true}' + b" " * 2_000_000 + b"}",
]


def run(check_function, *answers, **options) -> str:
    """Run a check; return what it prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(CheckFailure):
        check_function(*answers, **options)
    return printed.getvalue()


@pytest.fixture
def opened(tmp_path: Path, monkeypatch):
    """A notebook that a person has open in a folder of its own."""
    shell = SimpleNamespace(
        kernel=object(),
        user_ns={"__vsc_ipynb_file__": str(tmp_path / f"{PAGE}.ipynb")},
        shown=[],
    )
    shell.display_pub = SimpleNamespace(publish=shell.shown.append)
    monkeypatch.setattr(front_end, "kernel", lambda: shell)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "_unsaved", {})
    return shell


def restart(monkeypatch) -> None:
    """Forget what only this process knows."""
    monkeypatch.setattr(progress, "_unsaved", {})


def state(name: str) -> str:
    """The state of an exercise of chapter 4."""
    chapter = chapters.chapters()[PAGE]
    return Standing(chapter, progress.results()).state(EXERCISES[name])


def sums(*passed: str) -> str:
    """What is said of chapter 4 where these exercises have passed, and no other."""
    points = sum(EXERCISES[name].points for name in passed)
    most = sum(each.points for each in CHECKED)
    return f"{len(passed)} of {len(CHECKED)} · {points} of {most} points"


def first_pass(name: str) -> str:
    """The line that says that an exercise of chapter 4 has passed, the first of all."""
    return f"{EXERCISES[name].number} passed · {sums(name)}\n"


# --- the table of exercises -----------------------------------------------------------


@pytest.mark.parametrize("page", CHAPTERS)
def test_every_visible_check_is_found_in_the_table(page: str) -> None:
    source, chapter = generator.read(page), chapters.chapters()[page]
    assert [each.name for each in chapter.exercises] == [
        each.name for each in source.exercises
    ]
    assert sum(each.points for each in chapter.exercises) == sum(
        each.points for each in source.exercises
    )
    for exercise in chapter.exercises:
        for call in exercise.calls:
            assert chapter.exercise_of(call.partition("(")[0]) == exercise


def test_every_chapter_of_the_course_is_in_the_table() -> None:
    assert list(chapters.chapters()) == CHAPTERS


# --- what a check notes ---------------------------------------------------------------


def test_a_check_that_passes_says_how_far_one_is(opened, tmp_path: Path) -> None:
    assert run(check.softmax, right) == first_pass("softmax")
    content = json.loads((tmp_path / FILE).read_bytes())
    assert content == {PAGE: {"softmax()": True}}
    assert [each.name for each in tmp_path.iterdir()] == [FILE]


def test_it_is_still_known_after_a_restart(opened, monkeypatch) -> None:
    run(check.softmax, right)
    restart(monkeypatch)
    assert state("softmax") == progress.PASSED


def test_an_answer_that_fails_again_is_open_again(opened) -> None:
    run(check.softmax, right)
    run(check.softmax, lambda scores: scores)
    assert state("softmax") == progress.NOT_YET


def test_what_is_not_written_was_not_tried(opened) -> None:
    def stub(scores):
        raise NotImplementedError()

    run(check.softmax, stub)
    assert state("softmax") == progress.NOT_TRIED
    run(check.softmax, right)
    run(check.softmax, stub)
    assert state("softmax") == progress.NOT_TRIED


def test_an_exercise_with_two_checks_needs_both(opened) -> None:
    def length(kind, length, kernel=3):
        table = {"recurrent": length, "attention": 1}
        if kind == "convolution":
            return -(-(length - 1) // (kernel - 1))
        if kind not in table:
            raise ValueError(kind)
        return table[kind]

    said = run(check.path_length, length)
    number = EXERCISES["attention-cost"].number
    assert said == f"{number}: 1 of 2 checks passed · {sums()}\n"
    assert state("attention-cost") == progress.NOT_YET


def test_points_count_cell_by_cell(opened) -> None:
    """One exercise of chapter 9 has a check of two points for each of four aims."""
    chapter = chapters.chapters()["09_translator"]
    exercise = next(each for each in chapter.exercises if len(each.cells) == 4)
    known = {"09_translator": dict.fromkeys(exercise.calls[:2], True)}
    standing = Standing(chapter, known)
    assert standing.counts()[0] == 0
    assert standing.counts()[2] == sum(cell.points for cell in exercise.cells[:2])
    assert translator.exact_match.__name__ in exercise.calls[1]


def test_a_check_with_options_of_its_own_notes_nothing(opened, tmp_path) -> None:
    number = EXERCISES["softmax"].number
    assert run(check.softmax, right, seed=5) == f"{number} softmax: passed\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_file_is_begun_anew(opened, tmp_path: Path, content) -> None:
    (tmp_path / FILE).write_bytes(content)
    assert run(check.softmax, right) == first_pass("softmax")
    assert state("softmax") == progress.PASSED


def test_where_no_file_can_be_written_this_session_knows(opened, tmp_path) -> None:
    (tmp_path / FILE / "full").mkdir(parents=True)
    run(check.softmax, right)
    assert state("softmax") == progress.PASSED


def test_two_kernels_add_to_one_file(opened, tmp_path: Path, monkeypatch) -> None:
    run(check.softmax, right)
    restart(monkeypatch)
    progress.passed(PAGE, "causal_mask", {})
    restart(monkeypatch)
    assert state("softmax") == progress.PASSED
    assert state("causal-mask") == progress.PASSED


def test_a_deleted_file_is_forgotten(opened, tmp_path: Path) -> None:
    run(check.softmax, right)
    (tmp_path / FILE).unlink()
    assert state("softmax") == progress.NOT_TRIED


def test_the_guide_for_students_quotes_that_line() -> None:
    guide = (ROOT / "book" / "students.md").read_text("utf-8")
    assert f"   {first_pass('softmax')}" in guide


# --- where nobody sits at the notebook ------------------------------------------------


def test_outside_of_notebooks_nothing_is_noted(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "04_attention.ipynb"))
    number = EXERCISES["softmax"].number
    assert run(check.softmax, right) == f"{number} softmax: passed\n"
    assert not list(tmp_path.iterdir())
    assert not progress.results()


@pytest.mark.parametrize("name", [None, "/elsewhere/a.ipynb", "elsewhere/a.ipynb"])
def test_a_program_that_runs_a_notebook_leaves_no_file(
    opened, tmp_path: Path, monkeypatch, name
) -> None:
    """It may have been started from another notebook, whose name it hands on."""
    opened.user_ns.clear()
    if name:
        monkeypatch.setenv("JPY_SESSION_NAME", name)
    assert run(check.softmax, right) == first_pass("softmax")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("parts", [0, 1, 2, 99])
def test_jupyters_server_names_the_notebook(opened, tmp_path, monkeypatch, parts):
    """From the folder that it shows, or from the root."""
    opened.user_ns.clear()
    steps = tmp_path.parts[-parts:] if parts else ()
    monkeypatch.setenv("JPY_SESSION_NAME", str(Path(*steps, "a.ipynb")))
    run(check.softmax, right)
    assert (tmp_path / FILE).is_file()


# --- the table in a notebook ----------------------------------------------------------


def test_the_last_cell_shows_a_table_with_links_to_what_is_open(opened) -> None:
    run(check.softmax, right)
    run(check.causal_mask, lambda length: None)
    opened.shown.clear()
    check.progress()
    (shown,) = opened.shown
    table, text = shown["text/html"], shown["text/plain"]
    done = sums("softmax").replace(" · ", " exercises · ")
    assert text.startswith(f"Chapter 4, Attention: {done}")
    rows = re.findall(r"<tr.*?</tr>", table)[1:]
    words = [html.unescape(re.sub(r"<[^>]+>", " ", row)) for row in rows]
    found = [re.split(r"[✓✗○…]", word)[1].strip() for word in words]
    names = [each.name for each in chapters.chapters()[PAGE].exercises]
    states = dict(zip(names, found, strict=True))
    assert states["softmax"] == "passed"
    assert states["causal-mask"] == "not yet"
    assert states["worked-context"] == "not tried"
    assert states["explain-scaling"] == "graded by a person"
    links = set(re.findall(r'href="#([\w-]+)"', table))
    notebook = (ROOT / "exercises" / PAGE / f"{PAGE}.ipynb").read_text("utf-8")
    anchors = set(re.findall(r'<a id=\\"([\w-]+)\\"></a>', notebook))
    assert links < anchors
    done = {EXERCISES[each].anchor for each in ("softmax", "explain-scaling")}
    assert anchors - links == done


@pytest.mark.parametrize("page", CHAPTERS)
def test_every_notebook_ends_alike_and_the_grader_leaves_it_out(page: str) -> None:
    path = ROOT / "exercises" / page / f"{page}.ipynb"
    cells = nbformat.read(path, as_version=4).cells
    assert cells[-1].source == "check.progress()"
    assert "nbgrader" not in cells[-1].metadata | cells[-2].metadata
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    given = [
        cell.source
        for cell in cells
        if cell.cell_type == "code" and "nbgrader" not in cell.metadata
    ]
    assert len(code) - 1 in needless(code, given)


def test_in_a_terminal_the_table_is_text(capsys) -> None:
    check.progress()
    lines = capsys.readouterr().out.splitlines()
    exercises = chapters.chapters()[PAGE].exercises
    numbers = [line.split()[0] for line in lines[1:]]
    assert numbers == [each.number for each in exercises]
    softmax = lines[1 + exercises.index(EXERCISES["softmax"])]
    assert softmax.split()[1:] == ["Softmax", "2", "points", "not", "tried"]


CELLS = """
import torch
from autograder.chapters import attention as check
def causal_mask(length):
    return torch.ones(length, length, dtype=torch.bool).tril()
check.causal_mask(causal_mask)
check.progress()
"""


@pytest.mark.parametrize("is_open", [True, False])
def test_a_real_kernel_notes_it_for_a_person_alone(
    tmp_path: Path, is_open: bool, monkeypatch
) -> None:
    if is_open:
        monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / "04_attention.ipynb"))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELLS)])
    where = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=120, resources=where).execute()
    printed, shown = notebook.cells[0].outputs
    assert printed.text == first_pass("causal-mask")
    assert "<table" in shown.data["text/html"]
    assert os.listdir(tmp_path) == ([FILE] if is_open else [])


# --- the command ----------------------------------------------------------------------


def test_the_command_shows_all_chapters(tmp_path: Path, capsys, monkeypatch) -> None:
    chapter = chapters.chapters()["05_multi_head_attention"]
    calls = [call for each in chapter.exercises for call in each.calls]
    done = {chapter.page: dict.fromkeys(calls, True)}
    (tmp_path / "05_multi_head_attention").mkdir()
    (tmp_path / "05_multi_head_attention" / FILE).write_text(json.dumps(done))
    (tmp_path / FILE).write_text(json.dumps({PAGE: {"softmax()": True}}))
    monkeypatch.setattr(sys, "argv", ["workbench", "progress", str(tmp_path)])
    assert __main__.main() == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(chapters.chapters())
    then = next(each for each in CHECKED if each.name != "softmax")
    said = " ".join(lines[3].split())
    assert sums("softmax").replace(" · ", " exercises ") in said
    assert said.endswith(f"next: {then.number} {then.title}")
    checked = [each for each in chapter.exercises if each.cells]
    count, points = len(checked), sum(each.points for each in checked)
    assert f"{count} of {count} exercises  {points} of {points} points" in lines[4]
    assert lines[4].endswith("all passed")
    assert "next: 10.1" in lines[9]


def test_the_command_says_so_where_there_is_no_folder(
    tmp_path: Path, capsys, monkeypatch
) -> None:
    where = str(tmp_path / "nowhere")
    monkeypatch.setattr(sys, "argv", ["workbench", "progress", where])
    assert __main__.main() == 2
    assert "there is no such folder" in capsys.readouterr().err
