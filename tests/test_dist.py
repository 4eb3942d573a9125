"""What anybody may install: it holds what is listed, and nothing that answers."""

import gc
import importlib
import importlib.metadata
import multiprocessing
import os
import resource
import subprocess
import sys
import tarfile
import types
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
import torch

from autograder import generator, interface
from autograder.chapters.attention import oracles
from autograder.grading import sandbox
from autograder.grading.paper import Paper
from autograder.grading.sheet import sheet_of
from tests.grading.test_shown import answers_among

ROOT = Path(__file__).resolve().parents[1]
OURS = ("autograder.", "workbench.")
# they end, fork or change the process that calls them, write files or fetch data
NOT_CALLED = (
    *(f"autograder.{name}" for name in ("boundary", "collecting", "generator")),
    *("autograder.grading", "autograder.command_line", "autograder.nbgrader_config"),
    *("autograder.__main__", "workbench.__main__"),
    *("workbench.command_line", "workbench.data.corpora", "workbench.data.texts"),
    *(
        f"workbench.training.{name}"
        for name in ("bundle", "language_model", "plan", "recording", "runs")
    ),
    *("workbench.training.translator", "workbench.training.vision"),
    *("workbench.use.evaluation", "workbench.use.language_model"),
)
MEMORY = 4 * 2**30  # bytes


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> dict[str, dict[str, bytes]]:
    """The files of the wheel and of the source archive, by their names in them."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "tools.dist", "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = out.glob("*.whl")
    (archive,) = out.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        in_wheel = {name: opened.read(name) for name in names}
    with tarfile.open(archive) as opened:
        files = [each for each in opened if each.isfile()]
        in_archive = {
            each.name.partition("/")[2]: opened.extractfile(each).read()
            for each in files
        }
    return {"wheel": in_wheel, "archive": in_archive}


@pytest.mark.parametrize("which", ["wheel", "archive"])
def test_only_what_is_listed_is_in_it(made, which) -> None:
    tops = {name.partition("/")[0] for name in made[which]}
    told = {name for name in tops if name.endswith((".dist-info", ".egg-info"))}
    files = {"CHANGELOG.md", "LICENSE", "LICENSE-TEXT", "README.md", "pyproject.toml"}
    files |= {"PKG-INFO", "setup.cfg"}
    assert tops - told <= {"autograder", "workbench"} | files
    for name in made[which]:
        folders = name.split("/")
        assert not {"transformer", "solutions", "mistakes", "tests"} & set(folders)


@pytest.mark.parametrize("which", ["wheel", "archive"])
def test_no_part_of_the_reference_is_in_it(made, which) -> None:
    bodies = [
        path.read_bytes() for path in (ROOT / "solutions/transformer").glob("?*.py")
    ]
    assert bodies
    for name, contents in made[which].items():
        assert contents not in bodies or not contents, name


def test_every_module_and_the_models_are_in_the_wheel(made) -> None:
    modules = {
        str(path.relative_to(ROOT))
        for package in ("autograder", "workbench")
        for init in (ROOT / package).rglob("__init__.py")
        for path in init.parent.glob("*.py")
    }
    missing = modules - set(made["wheel"])
    assert missing == set()
    recorded = "workbench/recorded/models"
    for model in ("digits", "phrasebook"):
        assert f"{recorded}/{model}/model.safetensors" in made["wheel"]
    assert "autograder/exercise/chapters.json" in made["wheel"]
    assert "autograder/grading/templates/feedback.html" in made["wheel"]


# --- nothing in it answers ------------------------------------------------------------


def in_the_wheel() -> dict[str, object]:
    """Whatever can be called in its modules, and whatever they hold in memory."""
    for package in ("autograder", "workbench"):
        for path in sorted((ROOT / package).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            if not name.startswith(NOT_CALLED):
                importlib.import_module(name.removesuffix(".__init__"))
    found = {}
    for each in gc.get_objects():
        if isinstance(each, (type, types.FunctionType)):
            module = str(getattr(each, "__module__", ""))
            if module.startswith(OURS) and not module.startswith(NOT_CALLED):
                found[f"{module}:{each.__qualname__} {id(each)}"] = each
    return found


def tried(chapter: str) -> tuple[int, list[tuple[str, str]]]:
    """How much was tried as the answers of a chapter, and what of it passes a check."""
    interface.SECONDS_PER_CALL = 0.2
    found = in_the_wheel()
    there = {name: each for name, each in found.items() if not is_refused(each)}
    return len(found), answers_among(there, sheet_of(Paper.of(chapter)))


def is_refused(each: object) -> bool:
    """Whether it is a check's own, which is no answer of any exercise."""
    try:
        interface.wrap(each, interface.StudentFunction)
    except interface.StudentError:
        return True
    return False


def _with_little_memory(folder: Path) -> None:
    """What is called with anything may want anything, and leave anything."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    torch.set_num_threads(1)
    os.chdir(folder)


class Apart:
    """A process of its own for what is called with arguments that are not its own.

    Such a call may end the process, as when memory is short. That is no answer to any
    exercise: a new process tries again, once.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pool = self.started()

    def started(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            max_workers=1,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_with_little_memory,
            initargs=(self.folder,),
        )

    def call(self, function: Callable, *arguments):
        try:
            return self.pool.submit(function, *arguments).result()
        except BrokenProcessPool:
            self.pool = self.started()
            return self.pool.submit(function, *arguments).result()


@pytest.fixture(scope="module")
def apart(tmp_path_factory) -> Iterator[Apart]:
    process = Apart(tmp_path_factory.mktemp("apart"))
    yield process
    process.pool.shutdown()


@pytest.mark.parametrize("chapter", generator.chapters())
def test_nothing_in_it_passes_a_check(chapter, apart) -> None:
    number, answers = apart.call(tried, chapter)
    assert number > 1000
    assert answers == []


def test_an_oracle_is_no_answer_and_the_same_written_again_is() -> None:
    wanted = interface.StudentFunction
    with pytest.raises(interface.StudentError, match="belongs to the checks"):
        interface.wrap(oracles.weights_of, wanted)

    def mine(scores, mask=None):
        return oracles.weights_of(scores, mask)

    assert interface.wrap(mine, wanted).name == "mine"


# --- where something is missing -------------------------------------------------------


@pytest.mark.parametrize(
    ("package", "hidden", "says"),
    [
        ("autograder", "nbgrader", 'pip install "transformers-by-hand[grade]"'),
        ("autograder", "pwd", "grading needs Linux"),
        ("workbench", "sacrebleu", 'pip install "transformers-by-hand[train]"'),
    ],
)
def test_a_command_says_what_it_lacks(package, hidden, says) -> None:
    code = f"""
import sys
sys.modules[{hidden!r}] = None
sys.argv = [{package!r}, "--help"]
from {package}.__main__ import main
sys.exit(main())
"""
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 2
    assert ran.stderr.startswith("error: ") and says in ran.stderr
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(
    ("package", "hidden"), [("autograder", "nbgrader"), ("workbench", "sacrebleu")]
)
def test_a_command_says_its_version_where_extras_are_missing(package, hidden) -> None:
    code = f"""
import sys
sys.modules[{hidden!r}] = None
sys.argv = [{package!r}, "--version"]
from {package}.__main__ import main
sys.exit(main())
"""
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout == f"{importlib.metadata.version('transformers-by-hand')}\n"


def test_on_a_mac_grading_says_in_one_line_that_it_needs_linux(monkeypatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    says = sandbox.problem.__wrapped__()
    assert says.startswith("The sandbox needs Linux.") and "\n" not in says


def test_the_checks_need_nothing_that_only_unix_has(tmp_path) -> None:
    chapters = [generator.read(chapter).module for chapter in generator.chapters()]
    code = f"""
import importlib, os, pathlib, signal, sys
import matplotlib.pyplot, torch
for name in ("fork", "geteuid", "killpg", "O_DIRECTORY", "O_NOFOLLOW", "O_NONBLOCK"):
    delattr(os, name)
for name in ("fcntl", "grp", "pwd", "resource", "termios", "pyseccomp"):
    sys.modules[name] = None
for name in ("SIGALRM", "SIGKILL", "ITIMER_REAL", "setitimer"):
    delattr(signal, name)
for chapter in {chapters}:
    importlib.import_module("autograder.chapters." + chapter)
from autograder.chapters import attention
import torch
def softmax(scores):
    weights = (scores - scores.amax(-1, keepdim=True).clamp(min=-1e30)).exp()
    total = weights.sum(-1, keepdim=True)
    return weights / torch.where(total == 0, 1.0, total)
attention.softmax(softmax)
import workbench.plots, workbench.assemble, workbench.progress
from autograder.files import read_regular, write_beside
write_beside(pathlib.Path({str(tmp_path)!r}, "kept"), "so far")
print(read_regular(pathlib.Path({str(tmp_path)!r}, "kept"), 9).decode())
"""
    command = [sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "passed" in ran.stdout and "so far" in ran.stdout
