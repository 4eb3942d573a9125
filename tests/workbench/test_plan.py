"""Records for as long as there is time, from a bundle, rehearsed with tiny models."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from workbench.errors import WorkbenchError
from workbench.training import bundle, plan, records
from workbench.use.results import FOLDER

TINY = "translator --vocab-size 300 --layers 1 --heads 2 --d-model 16 --d-ff 16"
TINY += " --batch 256 --few-shapes --steps 4 --checkpoint-every 0 --data text:"
PLAN = {
    "modes": [["--no-such-option"], ["--capture"]],
    "runs": [
        {"name": "tiny", "seeds": [0], "minutes": 1},
        {"name": "tiny", "seeds": [1], "minutes": 1},
    ],
    "recipes": [{"of": "tiny", "change": ["--dropout", "0.1"]}],
}


def lines_of(folder):
    text = (folder / plan.LOG).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def runs(tmp_path):
    """A table with one tiny run, which learns from sentences of its own."""
    text = "".join(f"{a} {b}\t{b} {a}\n" for a in "abcdefgh" for b in "abcdefgh")
    (tmp_path / "pairs.tsv").write_text(text * 2, encoding="utf-8")
    about = {"about": "a rehearsal", "seeds": [0, 1]}
    return {"tiny": {**about, "train": f"{TINY}{tmp_path / 'pairs.tsv'}"}}


@pytest.fixture
def tables(tmp_path, runs):
    """A plan of tiny runs: the options that name it."""
    for name, content in (("plan.yml", PLAN), ("runs.yml", runs)):
        (tmp_path / name).write_text(yaml.safe_dump(content), encoding="utf-8")
    return ["--plan", tmp_path / "plan.yml", "--runs", tmp_path / "runs.yml"]


@pytest.fixture
def data(tmp_path):
    """A folder with something in the place of each data set."""
    for folder, file in (("multi30k", "train.en.gz"), ("cifar10_copy", "train.npz")):
        (tmp_path / "data" / folder).mkdir(parents=True)
        (tmp_path / "data" / folder / file).write_bytes(b"data")
    return tmp_path / "data"


def of_the_course(folder):
    """The files of the course that its commands import there, from its parent."""
    code = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
from workbench.__main__ import parser
parser()
for name, module in list(sys.modules.items()):
    if name.split(".")[0] in ("autograder", "workbench", "transformer"):
        for place in [module.__file__] if module.__file__ else module.__path__:
            print(pathlib.Path(place).relative_to(pathlib.Path(sys.argv[1]).parent))
"""
    command = [sys.executable, "-c", code, folder]
    said = subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return [Path(line) for line in said.stdout.decode().splitlines()]


def test_a_bundle_makes_its_records_alone(tmp_path, tables, data):
    made = tmp_path / "bundle"
    bundle.make(made, data)
    assert (made / "data" / "cifar10_copy" / "train.npz").is_file()
    assert (made / "packages" / "sacremoses" / "__init__.py").is_file()
    assert {path.parts[0] for path in of_the_course(made)} == {made.name}
    (made / "COMMIT").write_text("0" * 40)
    out = tmp_path / "out"
    words = ["--minutes", "10", "--out", out, "--device", "cpu", *tables]
    command = [sys.executable, made / "run.py", *words]
    done = subprocess.run(
        list(map(str, command)), cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    log = lines_of(out)
    what = [line["what"] for line in log]
    # one way fails, the other is the fastest; two seeds; a recipe; the end
    assert what == ["begin", "failed", "done", "fastest", *["done"] * 3, "end"]
    assert log[3]["mode"] == ["--capture"]
    record = records.read(out / "tiny.json")
    assert record["seeds"] == [0, 1] and len(record["wall_seconds"]) == 2
    assert record["commit"] == "0" * 40
    assert "validation" in log[6]["scores"] and "validation" not in record["scores"]
    assert (out / "tiny_model.zip").stat().st_size > 1000


def test_a_bundle_needs_no_installed_course(tmp_path, data):
    """What is installed here, and was missing on the machine with the GPU."""
    bundle.make(tmp_path / "bundle", data)
    code = """
import importlib.metadata as metadata
of = metadata.version
def version(name):
    if name == "transformers-by-hand":
        raise metadata.PackageNotFoundError(name)
    return of(name)
metadata.version = version
from workbench.__main__ import parser
parser().parse_args(["--version"])
"""
    here = {"cwd": tmp_path / "bundle", "capture_output": True, "text": True}
    said = subprocess.run([sys.executable, "-c", code], **here)
    assert said.returncode == 0, said.stderr
    assert said.stdout == "a copy that is not installed\n"


def test_a_bundle_inside_a_clone_has_its_own_commit(monkeypatch):
    monkeypatch.setenv("COURSE_COMMIT", "0" * 40)
    records.commit.cache_clear()
    assert records.commit() == "0" * 40
    monkeypatch.undo()
    records.commit.cache_clear()


def session(tmp_path, runs, minutes):
    out = tmp_path / "out"
    return plan.Session(runs, [[]], minutes, out, out / "work", "cpu")


def test_what_would_not_be_done_in_time_is_not_begun(tmp_path, runs):
    short = session(tmp_path, runs, 0.5)
    short.record("tiny", 0, minutes=3)
    (line,) = lines_of(tmp_path / "out")
    assert line["what"] == "no time" and line["need"] > line["left"]
    assert short.made == 0


def test_what_takes_too_long_is_stopped(tmp_path, runs):
    words = [*runs["tiny"]["train"].split(), "--steps", "1000000"]
    long = session(tmp_path, runs, 10)
    found = long._command(words, tmp_path / "work", 0.5)
    assert found is None
    assert lines_of(tmp_path / "out")[0]["what"] == "stopped"


def test_a_plan_that_lacks_something_is_named(tmp_path):
    path = tmp_path / "plan.yml"
    path.write_text("runs: [{name: tiny, seeds: [0]}]\nmodes: [[]]\n")
    with pytest.raises(WorkbenchError, match="has no minutes"):
        plan.read_plan(path)
    with pytest.raises(WorkbenchError, match="cannot be read"):
        plan.read_plan(tmp_path / "none.yml")


def test_the_plan_is_of_runs_that_there_are():
    known = yaml.safe_load((FOLDER / "runs.yml").read_text(encoding="utf-8"))
    wanted = plan.read_plan(plan.TABLE_OF_PLAN)
    for each in wanted["runs"]:
        assert set(each["seeds"]) <= set(known[each["name"]]["seeds"])
    assert {each["of"] for each in wanted["recipes"]} <= set(known)


def test_a_bundle_says_which_data_are_missing(tmp_path, data):
    (data / "multi30k" / "train.en.gz").unlink()
    with pytest.raises(WorkbenchError, match="no folder multi30k"):
        bundle.copy_data(data, tmp_path / "copied")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(WorkbenchError, match="is not empty"):
        bundle.make(tmp_path / "full", data)
