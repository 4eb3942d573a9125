"""Gradescope's zip: laid out as its documentation says, and run as there."""

import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest

from autograder import __main__ as command_line
from autograder import generator
from autograder.exercise.chapters import exercises
from autograder.generator import ROOT
from autograder.gradescope import RESULTS, ROOT_VARIABLE, build, run
from autograder.grading import sandbox, seeds

SHEET = "short_05_multi_head_attention"  # four exercises
WHEEL = "transformers_by_hand-0.1.0-py3-none-any.whl"
RIGHT, WRONG = (
    "pieces.transpose(-3, -2)",
    "x.reshape(*x.shape[:-2], heads, x.shape[-2], d_model // heads)",
)
SLIP = "view without transpose"


@pytest.fixture(scope="module")
def packed(tmp_path_factory) -> Path:
    """The zip, made by the command."""
    folder = tmp_path_factory.mktemp("gradescope")
    (folder / WHEEL).write_bytes(b"stands for the wheel")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(seeds, "secret_of", lambda folder: b"5" * seeds.SECRET_BYTES)
        line = ["gradescope", SHEET, "--wheel", str(folder / WHEEL)]
        line += ["--out", str(folder / "it.zip"), "--extra-index-url", "of/a mirror"]
        patched.setattr(sys, "argv", ["autograder", *line])
        assert command_line.main() == 0
    return folder / "it.zip"


@pytest.fixture
def place(packed, tmp_path) -> Path:
    """Gradescope's folder, as its image and its harness make it."""
    for name in ("source", "submission", "results"):
        (tmp_path / name).mkdir()
    with zipfile.ZipFile(packed) as files:
        files.extractall(tmp_path / "source")
    shutil.copy(tmp_path / "source" / "run_autograder", tmp_path)
    (tmp_path / "venv").symlink_to(sys.prefix)
    return tmp_path


def hand_in(place: Path, split: str = RIGHT, more: str = "") -> None:
    """Write a solved notebook under a name of the student's.

    Args:
        place: Gradescope's folder.
        split: what split_heads returns.
        more: code behind split_heads.
    """
    notebook = generator.source_notebook(SHEET)
    at = next(n for n, cell in enumerate(notebook.cells) if cell.id == "split-heads")
    notebook.cells[at].source = notebook.cells[at].source.replace(RIGHT, split)
    notebook.cells.insert(at + 1, nbformat.v4.new_code_cell(more))
    nbformat.write(notebook, place / "submission" / "my work.ipynb")


def results(place: Path) -> dict:
    """Read what Gradescope would show; check the keys and values of its format."""
    found = json.loads((place / RESULTS).read_text("utf-8"))
    assert found.keys() <= {"output", "output_format", "stdout_visibility", "tests"}
    assert found["stdout_visibility"] == "hidden"
    for test in found["tests"]:
        assert 0 <= test["score"] <= test["max_score"]
        assert test["status"] in ("passed", "failed")
        assert test["visibility"] == "visible"
        assert isinstance(test["name"], str) and isinstance(test["output"], str)
    return found


def test_both_scripts_lie_at_the_top_and_can_be_run(packed) -> None:
    with zipfile.ZipFile(packed) as files:
        modes = {
            e.filename: stat.S_IMODE(e.external_attr >> 16) for e in files.filelist
        }
        texts = {name: files.read(name).decode() for name in modes if "." not in name}
        setup = files.read("setup.sh").decode()
    assert modes["setup.sh"] == modes["run_autograder"] == 0o755
    assert {WHEEL, "paper.json", "settings.json", seeds.FILE} <= modes.keys()
    assert texts["run_autograder"].startswith("#!/usr/bin/env bash\n")
    assert "--extra-index-url 'of/a mirror'" in setup and f"{WHEEL}[grade]" in setup
    for text in (setup, *texts.values()):
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)
    assert stat.S_IMODE(packed.stat().st_mode) == 0o600  # it holds the answers


@pytest.mark.sandbox
@pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem() or "works")
def test_a_right_and_a_wrong_answer_as_gradescope_would_run_it(place) -> None:
    hand_in(place, WRONG)
    environment = os.environ | {ROOT_VARIABLE: str(place), "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        ["bash", place / "run_autograder"], env=environment, capture_output=True
    )
    assert ran.returncode == 0, ran.stderr.decode()
    found = results(place)
    tests = {test["number"]: test for test in found["tests"]}
    split, merge = (
        tests[exercises()[name].number] for name in ("split-heads", "merge-heads")
    )
    assert merge["score"] == merge["max_score"]
    assert split["score"] == 0
    assert SLIP in split["output"]
    assert json.loads(ran.stdout)["status"] == "graded"  # for instructors
    assert "my work.ipynb" in found["output"]


@pytest.mark.sandbox
@pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem() or "works")
def test_right_answers_have_all_points(place, capsys) -> None:
    hand_in(place)
    assert run.main(place) == 0
    tests = results(place)["tests"]
    assert [test["score"] for test in tests] == [2, 2, 5, 4]
    assert not any(test["output"] for test in tests)


def test_what_is_no_notebook_says_why_in_every_test(place) -> None:
    (place / "submission" / f"{SHEET}.zip").write_bytes(b"PK\x03\x04")
    assert run.main(place) == 0
    tests = results(place)["tests"]
    assert [test["max_score"] for test in tests] == [2, 2, 5, 4]
    assert {test["score"] for test in tests} == {0}
    assert all("is an archive" in test["output"] for test in tests)


def test_without_any_wall_nothing_is_graded(place, monkeypatch, capsys) -> None:
    hand_in(place)
    monkeypatch.setattr(sandbox, "problem", lambda: "bubblewrap is missing")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert run.main(place) == run.FAILED
    assert not (place / RESULTS).exists()
    assert "bubblewrap is missing\nNothing was graded" in capsys.readouterr().err


def readable_by_all(path: str) -> bool:
    """Tell whether other users may use this Python."""
    folders = Path(os.path.realpath(path)).parents
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in folders)


# elsewhere nobody can become another user, and nothing is graded so: see above
if os.geteuid() == 0 and readable_by_all(sys.executable):

    def test_without_bubblewrap_it_runs_as_another_user(place, monkeypatch) -> None:
        secret = place / "source" / seeds.FILE
        place.chmod(0o755)
        secret.chmod(0o600)
        tries = f"""
import os, socket
from autograder.chapters import multi_head_attention
for attempt in (
    lambda: open({str(secret)!r}).read(),
    lambda: open({str(place / RESULTS)!r}, "w"),
    lambda: socket.create_connection(("127.0.0.1", 9)),
    lambda: os.kill(os.getppid(), 9),
    lambda: os.execv("/bin/true", ["true"]),
    lambda: multi_head_attention.split_heads.__wrapped__,
):
    try:
        attempt()
    except (OSError, AttributeError):
        continue
    def split_heads(x, heads):
        return "it was possible"
"""
        hand_in(place, more=tries)
        monkeypatch.setattr(sandbox, "problem", lambda: "bubblewrap is missing")
        assert run.main(place) == 0
        assert [test["score"] for test in results(place)["tests"]] == [2, 2, 5, 4]


def test_without_a_wheel_it_says_what_to_type(tmp_path) -> None:
    with pytest.raises(generator.Missing, match="`make dist` builds one"):
        build._wheel(tmp_path / "none.whl")
