"""Stock nbgrader, from release to feedback, over an exchange: as a hub runs it.

No setting of this course's is in force: what stock nbgrader makes of its notebooks.
"""

import csv
import re
import sys
from pathlib import Path

import nbformat
import pytest
from jupyter_core.application import NoStart
from nbgrader.apps import NbGraderApp

from autograder import __main__ as command_line
from autograder import generator
from autograder.generator import ROOT

CHAPTER = "short_05_multi_head_attention"  # a sheet
RIGHT, WRONG = (
    "pieces.transpose(-3, -2)",
    "x.reshape(*x.shape[:-2], heads, x.shape[-2], d_model // heads)",
)
SLIP = "view without transpose"
CONFIG = """
c = get_config()
c.CourseDirectory.course_id = "transformers"
c.Exchange.root = {exchange!r}
c.ExecutePreprocessor.timeout = 120
"""
RELEASE = ("generate_assignment", "release_assignment")
GRADE = ("collect", "autograde", "generate_feedback", "release_feedback")


def nbgrader(folder: Path, monkeypatch, *arguments: str) -> None:
    """Run a command of nbgrader's in a folder, in this process: each start is slow."""
    monkeypatch.chdir(folder)
    app = NbGraderApp.instance()
    try:
        app.initialize([*arguments, "--log-level=ERROR"])
        app.start()
    except NoStart:  # the command within it is done
        pass
    except SystemExit as end:
        assert not end.code, arguments
    finally:
        NbGraderApp.clear_instance()


@pytest.fixture
def house(tmp_path, monkeypatch) -> Path:
    """An instructor's course, a student's folder, and the exchange between them."""
    for name in ("course", "student", "exchange", "jupyter"):
        (tmp_path / name).mkdir()
    (tmp_path / "exchange").chmod(0o777)
    config = CONFIG.format(exchange=str(tmp_path / "exchange"))
    for name in ("course", "student"):
        (tmp_path / name / "nbgrader_config.py").write_text(config)
    for kind in ("CONFIG", "DATA"):
        monkeypatch.setenv(f"JUPYTER_{kind}_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # the checks, and no answers
    return tmp_path


@pytest.mark.filterwarnings("ignore:Object of type <Submitted")  # nbgrader's own
def test_release_fetch_submit_collect_autograde_feedback(house, monkeypatch) -> None:
    course, student = house / "course", house / "student"
    generator.write_nbgrader_source(CHAPTER, course / "source" / CHAPTER)
    for command in RELEASE:
        nbgrader(course, monkeypatch, command, CHAPTER)
    nbgrader(student, monkeypatch, "fetch_assignment", CHAPTER)
    answer(student / CHAPTER)
    nbgrader(student, monkeypatch, "submit", CHAPTER)
    for command in GRADE:
        nbgrader(course, monkeypatch, command, CHAPTER)
    nbgrader(course, monkeypatch, "export")
    with (course / "grades.csv").open(newline="", encoding="utf-8") as file:
        (row,) = csv.DictReader(file)
    # the rest is right, and but for merge_heads uses the wrong split_heads
    assert (float(row["score"]), float(row["max_score"])) == (2, 13)
    nbgrader(student, monkeypatch, "fetch_feedback", CHAPTER)
    (page,) = (student / CHAPTER).glob("feedback/*/*.html")
    text = re.sub("<[^>]+>", "", page.read_text("utf-8"))
    assert SLIP in text
    assert re.search(r"split_heads, seed=\d+", text)  # a hidden test, as the guide says
    collect = ["collect", "--from", "nbgrader", str(house / "exchange")]
    monkeypatch.setattr(
        sys, "argv", ["autograder", *collect, "--out", str(house / "c")]
    )
    assert command_line.main() == 0  # and the course's own grader can go on with it
    assert [path.name for path in house.glob(f"c/*/{CHAPTER}/**/*.ipynb")]


def answer(fetched: Path) -> None:
    """Write right answers into what was fetched, and one that is wrong."""
    assert (fetched / "transformer" / "attention.py").is_file()
    notebook = nbformat.read(fetched / f"{CHAPTER}.ipynb", as_version=4)
    solved = {c.id: c.source for c in generator.source_notebook(CHAPTER).cells}
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            assert "NotImplementedError" in cell.source
            cell.source = solved[cell.id].replace(RIGHT, WRONG)
    nbformat.write(notebook, fetched / f"{CHAPTER}.ipynb")
