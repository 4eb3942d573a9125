"""Records for as long as there is time, from a bundle, rehearsed with tiny models."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import yaml

from workbench import __main__
from workbench.errors import WorkbenchError
from workbench.training import bundle, plan, records
from workbench.training.recording import read_runs
from workbench.use.results import FOLDER

TINY = "translator --vocab-size 300 --layers 1 --heads 2 --d-model 16 --d-ff 16"
TINY += " --batch 256 --few-shapes --steps 4 --checkpoint-every 0 --data text:"
PLAN = {
    "modes": [["--no-such-option"], ["--capture"]],
    "wanted": [
        {"name": "tiny", "seeds": [0], "minutes": 1},
        {"name": "tiny", "change": ["--dropout", "0.1"], "minutes": 1},
        {"name": "tiny", "seeds": [1], "minutes": 1},
    ],
}
ALONE = """
import sys

def refuse(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo"):
        raise OSError("there is no network")

sys.addaudithook(refuse)
"""


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


@pytest.fixture
def alone(tmp_path, data):
    """A bundle in a folder of its own, with neither a network nor programs: run it."""
    made = tmp_path / "bundle"
    bundle.make(made, data)
    (made / "COMMIT").write_text("0" * 40)
    (made / "sitecustomize.py").write_text(ALONE)  # each of its processes begins so

    def run(*words):
        command = [sys.executable, made / "run.py", *words, "--device", "cpu"]
        return subprocess.run(
            list(map(str, command)),
            cwd=tmp_path,
            env=os.environ | {"PATH": str(tmp_path / "no_programs")},
            capture_output=True,
            text=True,
        )

    return run


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


def test_a_bundle_has_the_course_and_the_data(tmp_path, data):
    made = tmp_path / "bundle"
    bundle.make(made, data)
    assert (made / "data" / "cifar10_copy" / "train.npz").is_file()
    assert (made / "packages" / "sacremoses" / "__init__.py").is_file()
    assert {path.parts[0] for path in of_the_course(made)} == {made.name}


def test_a_bundle_makes_its_records_alone(tmp_path, tables, alone):
    out = tmp_path / "out"
    done = alone("--minutes", 10, "--out", out, *tables)
    assert done.returncode == 0, done.stdout + done.stderr
    log = lines_of(out)
    what = [line["what"] for line in log]
    # one way fails, the other is the fastest; a seed; a recipe; a seed; the end
    assert what == ["begin", "failed", "done", "fastest", *["done"] * 3, "end"]
    assert log[3]["mode"] == ["--capture"] and log[-1]["made"] == 3
    record = records.read(out / "tiny.json")
    assert record["seeds"] == [0, 1] and len(record["wall_seconds"]) == 2
    assert record["commit"] == "0" * 40
    assert "validation" in log[5]["scores"] and "validation" not in record["scores"]
    assert (out / "tiny_model.zip").stat().st_size > 1000


def test_a_bundle_is_rehearsed_and_leaves_no_record(tmp_path, runs, tables, alone):
    """A few steps of one run of the plan: all that training needs is in the bundle."""
    other = {"name": "other", "seeds": [0], "minutes": 1}
    tiny = {"name": "tiny", "seeds": [0], "minutes": 1000}  # of the whole run
    content = {"modes": [[]], "wanted": [other, tiny]}
    (tmp_path / "plan.yml").write_text(yaml.safe_dump(content), encoding="utf-8")
    table = runs | {"other": runs["tiny"]}
    (tmp_path / "runs.yml").write_text(yaml.safe_dump(table), encoding="utf-8")
    out = tmp_path / "out"
    done = alone("tiny", "--steps", 2, "--minutes", 10, "--out", out, *tables)
    assert done.returncode == 0, done.stdout + done.stderr
    log = lines_of(out / plan.REHEARSAL)
    assert [line["what"] for line in log] == ["begin", "done", "end"]
    assert " --steps 2" in log[1]["command"]
    assert not list(out.glob("*.json"))
    record = records.read(out / plan.REHEARSAL / "tiny.json")
    assert record[plan.REHEARSAL] == 2 and record["training"]["steps"] == 2


def test_help_says_how_to_rehearse_a_plan(capsys):
    with pytest.raises(SystemExit):
        __main__.parser().parse_args(["plan", "--help"])
    said = capsys.readouterr().out
    assert "NAME" in said and "--steps N" in said and "rehears" in said


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


def session(tmp_path, runs, minutes, modes=((),)):
    out = tmp_path / "out"
    return plan.Session(runs, list(map(list, modes)), minutes, out, out / "work", "cpu")


def test_a_task_that_works_in_no_way_is_left_out(tmp_path, runs):
    """The next task is another one, by its name on the command line."""
    broken = {"about": "", "seeds": [0], "train": "vit --data images:none"}
    names = ("broken", "broken", "tiny")
    wanted = [{"name": name, "seeds": [0], "minutes": 1} for name in names]
    own = session(tmp_path, runs | {"broken": broken}, 10, modes=[[], ["--capture"]])
    assert plan.record(own, {"wanted": wanted}, torch.device("cpu")) == 1
    what = [line["what"] for line in lines_of(tmp_path / "out")]
    no_way = ["failed", "failed", "no way works", "skipped", "skipped"]
    assert what == ["begin", *no_way, "done", "done", "fastest", "done", "end"]
    assert (tmp_path / "out" / "tiny.json").is_file()


class Clock:
    """Stands still but for trainings, which take the seconds that a test gives them."""

    def __init__(self, *seconds):
        self.now, self.seconds = 0.0, list(seconds)

    def monotonic(self):
        return self.now

    def run(self, command, **options):
        try:
            return subprocess.run(command, **options)
        finally:
            self.now += self.seconds.pop(0)


def test_a_plan_out_of_time_is_stopped_and_keeps_what_is_done(
    tmp_path, runs, monkeypatch
):
    """A seed is done, the next one is cut off a second later, a third never begun."""
    clock = Clock(60 * 10 - plan.SPARE_SECONDS - 1, 1)
    expired = subprocess.TimeoutExpired
    own = SimpleNamespace(run=clock.run, TimeoutExpired=expired)
    monkeypatch.setattr(plan, "time", clock)
    monkeypatch.setattr(plan, "subprocess", own)
    endless = runs["tiny"] | {"train": runs["tiny"]["train"] + " --steps 1000000"}
    wanted = [
        {"name": "tiny", "seeds": [0], "minutes": 1},
        {"name": "endless", "seeds": [0], "minutes": 0.01},
        {"name": "tiny", "seeds": [1], "minutes": 1},
    ]
    short = plan.Session(
        runs | {"endless": endless},
        [[]],
        10,
        tmp_path / "out",
        tmp_path / "work",
        "cpu",
        begin=0,
    )
    assert plan.record(short, {"wanted": wanted}, torch.device("cpu")) == 1
    log = lines_of(tmp_path / "out")
    what = [line["what"] for line in log]
    assert what == ["begin", "done", "stopped", "no time", "end"]
    assert log[2]["after"] == 1
    assert [path.name for path in (tmp_path / "out").glob("*.json")] == ["tiny.json"]
    assert records.read(tmp_path / "out" / "tiny.json")["seeds"] == [0]


def test_a_plan_is_read_whole_before_anything_is_trained(tmp_path, runs):
    wanted = [
        {"name": "tiny", "seeds": [0], "minutes": 1},
        {"name": "unknown", "change": [], "minutes": 1},
    ]
    with pytest.raises(WorkbenchError, match="no run 'unknown'"):
        plan.entries_of({"wanted": wanted}, runs, ())
    with pytest.raises(WorkbenchError, match="the plan has tiny, and no 'digits'"):
        plan.entries_of({"wanted": wanted[:1]}, runs, ["digits"])
    assert plan.entries_of({"wanted": wanted[:1]}, runs, ["tiny"]) == wanted[:1]


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
    for entry, key in (("seeds: [0]", "minutes"), ("minutes: 1", "seeds")):
        path.write_text(f"wanted: [{{name: tiny, {entry}}}]\nmodes: [[]]\n")
        with pytest.raises(WorkbenchError, match=f"has no {key}"):
            plan.read_plan(path)
    path.write_text("modes: [[]]\n")
    with pytest.raises(WorkbenchError, match="nothing that is wanted"):
        plan.read_plan(path)
    with pytest.raises(WorkbenchError, match="cannot be read"):
        plan.read_plan(tmp_path / "none.yml")


def test_the_plan_is_of_runs_that_there_are_and_its_options_are_known():
    known = read_runs(FOLDER / "runs.yml")
    wanted = plan.read_plan(plan.TABLE_OF_PLAN)
    parser = __main__.parser()
    for each in plan.entries_of(wanted, known, ()):
        run = known[each["name"]]
        assert set(each.get("seeds", [])) <= set(run["seeds"])
        for mode in wanted["modes"]:
            words = [*shlex.split(run["train"]), *each.get("change", []), *mode]
            parser.parse_args(["train", *words, "--out", "x"])


def test_to_train_nothing_is_imported_that_only_notebooks_and_downloads_need():
    """Such packages are missing where nothing but training is to be done."""
    command = [sys.executable, "-X", "importtime", "-m", "workbench", "train", "--help"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    imported = {line.rpartition("|")[2].strip() for line in said.splitlines()}
    assert {"workbench.command_line.train", "torch"} <= imported
    assert not imported & {"workbench.assemble", "workbench.progress"}
    notebooks = {"nbformat", "nbclient", "zmq", "traitlets", "jsonschema", "rpds"}
    downloads = {"pooch", "platformdirs"}
    assert not imported & (notebooks | downloads)


def test_a_bundle_says_which_data_are_missing(tmp_path, data):
    (data / "multi30k" / "train.en.gz").unlink()
    with pytest.raises(WorkbenchError, match="no folder multi30k"):
        bundle.copy_data(data, tmp_path / "copied")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(WorkbenchError, match="is not empty"):
        bundle.make(tmp_path / "full", data)
