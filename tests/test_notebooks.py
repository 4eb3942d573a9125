"""The notebooks as a person runs them: untouched, solved, validated, cell by cell."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

from autograder import generator
from autograder.generator import ROOT
from mistakes import handed_in
from tests.chapters import CHAPTERS

VALIDATED = ["04_attention"]
WITHOUT_SOLUTIONS = ["01_embeddings", "07_decoder", "11_language_model"]
BIN = Path(sys.executable).parent
ENVIRONMENT = os.environ | {
    "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}",
    "OMP_NUM_THREADS": "1",
}


def run_notebook(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Run a notebook in a folder of its own, going on after errors."""
    client = NotebookClient(
        notebook,
        timeout=120,
        allow_errors=True,
        resources={"metadata": {"path": str(folder)}},
    )
    return client.execute()


def errors_of(cell: NotebookNode) -> list[NotebookNode]:
    """The error outputs of a code cell."""
    return [each for each in cell.get("outputs", []) if each.output_type == "error"]


def is_check(cell: NotebookNode) -> bool:
    """Whether a cell gives points and is run."""
    return cell.cell_type == "code" and cell.metadata.get("nbgrader", {}).get("grade")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_an_untouched_notebook_earns_nothing(chapter: str, tmp_path: Path) -> None:
    """Every check fails, and nothing but a stub that is not written stops a cell."""
    path = ROOT / "exercises" / chapter / f"{chapter}.ipynb"
    notebook = run_notebook(nbformat.read(path, as_version=4), tmp_path)
    for cell in notebook.cells:
        names = {error.ename for error in errors_of(cell)}
        if is_check(cell):
            assert names == {"CheckFailure"}, cell.source
            assert "not written yet" in errors_of(cell)[0].evalue
        else:
            assert names <= {"NotImplementedError"}, cell.source


@pytest.mark.parametrize("chapter", WITHOUT_SOLUTIONS)
def test_exercises_and_checks_work_without_the_solutions(
    chapter: str, tmp_path: Path
) -> None:
    """A student's copy has no solutions/: notebooks and checks run all the same."""
    of_nbgrader = ("source", "release", "submitted", "autograded", "feedback")
    ignore = shutil.ignore_patterns("__pycache__", *of_nbgrader)
    for name in ("autograder", "workbench", "exercises"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignore)
    folder = tmp_path / "exercises" / chapter
    notebook = nbformat.read(folder / f"{chapter}.ipynb", as_version=4)
    set_up = (
        "import sys\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "sys.modules['transformer'] = None  # importing it fails\n"
        "import autograder\n"
        "print(autograder.__file__)"
    )
    notebook.cells.insert(0, nbformat.v4.new_code_cell(set_up))
    notebook = run_notebook(notebook, folder)
    assert str(tmp_path) in notebook.cells[0].outputs[0].text
    checks = [cell for cell in notebook.cells if is_check(cell)]
    assert checks
    for cell in checks:
        assert "not written yet" in errors_of(cell)[0].evalue


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_solved_notebook_earns_everything(chapter: str, tmp_path: Path) -> None:
    """No error, nothing on stderr, and no value a grader could take for points."""
    handed_in.put(chapter, tmp_path)
    notebook = run_notebook(generator.source_notebook(chapter), tmp_path)
    for cell in notebook.cells:
        assert not errors_of(cell), cell.source
        if is_check(cell):
            kinds = {(out.output_type, out.get("name")) for out in cell.outputs}
            assert kinds == {("stream", "stdout")}, cell.source


@pytest.fixture
def solved(chapter: str, tmp_path: Path) -> Path:
    """The solved notebook of a chapter, as a file."""
    generator.write_nbgrader_source(chapter, tmp_path)
    handed_in.put(chapter, tmp_path)
    return tmp_path / f"{chapter}.ipynb"


def run(*command: str | Path, folder: Path) -> subprocess.CompletedProcess:
    """Run one of the environment's commands."""
    return subprocess.run(
        [sys.executable, "-m", *map(str, command)],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )


# nbgrader's own word and nbval's; the tests above ask more
@pytest.mark.parametrize("chapter", VALIDATED)
def test_nbgrader_validate_passes_what_is_solved(solved) -> None:
    ran = run("nbgrader", "validate", solved.name, folder=solved.parent)
    assert ran.returncode == 0, ran.stderr
    assert "Success! Your notebook passes all the tests." in ran.stdout


@pytest.mark.parametrize("chapter", VALIDATED)
def test_nbgrader_validate_invert_fails_every_test(chapter: str, tmp_path) -> None:
    shutil.copy(ROOT / "exercises" / chapter / f"{chapter}.ipynb", tmp_path)
    ran = run("nbgrader", "validate", "--invert", f"{chapter}.ipynb", folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "Success! The notebook does not pass any tests." in ran.stdout


@pytest.mark.parametrize("chapter", VALIDATED)
def test_nbval_runs_every_cell_of_what_is_solved(solved) -> None:
    ran = run("pytest", "--nbval-lax", "-q", "-p", "no:cacheprovider", solved.name,
              folder=solved.parent)  # fmt: skip
    assert ran.returncode == 0, ran.stdout
