"""The house: the README tells the truth, everything is pinned, commands are listed."""

import importlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from autograder import generator
from autograder.chapters import attention
from autograder.expect import CheckFailure
from autograder.generator import ROOT
from tools import browser, environment
from tools.site import readme_figure

PIN = re.compile(r"([A-Za-z0-9._-]+)==(\S+)")
PIN_FILES = ("requirements.txt", "requirements-dev.txt", "constraints.txt")
# torch pins what its GPU build brings; pip is older than the environment
PINNED_ELSEWHERE = re.compile(r"nvidia-.*|cuda-.*|triton|pip")


def run(*command: str, **options) -> subprocess.CompletedProcess:
    """Run a command in the project's root."""
    options = {"cwd": ROOT, "capture_output": True, "text": True} | options
    return subprocess.run(command, check=False, **options)


def lines_of(name: str) -> list[str]:
    """The lines of a requirements file without comments."""
    lines = (ROOT / name).read_text().splitlines()
    return [bare for line in lines if (bare := line.split("#")[0].strip())]


def pins(*names: str) -> dict[str, str]:
    """Each package pinned in the files, and its version."""
    found = [PIN.fullmatch(line) for name in names for line in lines_of(name)]
    return {canonicalize_name(pin[1]): pin[2] for pin in found if pin}


def tracked_files() -> list[Path]:
    """Every file that git knows or would add."""
    listed = run("git", "ls-files", "-z", "-co", "--exclude-standard")
    if listed.returncode:
        pytest.skip("not a git repository")
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def test_the_readme_s_table_of_chapters_is_true() -> None:
    """With a few words on what one can do after it, and no list of exercises."""
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    for source in map(generator.read, generator.chapters()):
        chapter, count = source.chapter, len(source.exercises)
        points = sum(each.points for each in source.exercises)
        page = f"[{source.header['number']} · {source.title}](book/{chapter}.md)"
        notebook = f"[{chapter}.ipynb](exercises/{chapter}/{chapter}.ipynb)"
        row = f"| {page} | {notebook}, {count} exercises, {points} points | "
        found = [line.removeprefix(row) for line in lines if line.startswith(row)]
        assert len(found) == 1, f"README.md needs a row that begins: {row}"
        assert 5 < len(found[0].split()) < 30, found


@pytest.mark.parametrize("name", ["README.md", "book/students.md"])
def test_the_first_wrong_answer_is_told_what_the_text_says(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.findall(r"^( *)```(python|text)\n(.*?)^\1```", text, re.M | re.S)
    code = next(body for _, kind, body in blocks if kind == "python")
    told = next(body for _, _, body in blocks if "\n  read " in textwrap.dedent(body))
    names: dict = {"torch": torch}
    exec(textwrap.dedent(code), names)
    with pytest.raises(CheckFailure) as caught:
        attention.softmax(names["softmax"])
    assert str(caught.value).strip() == textwrap.dedent(told).strip()


def test_the_readme_s_picture_can_be_drawn_anew(tmp_path: Path) -> None:
    readme_figure.main(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 50_000


def test_every_file_the_readme_links_to_is_there() -> None:
    for name in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
            assert (ROOT / target).exists(), f"{name} links to {target}"


@pytest.mark.parametrize("name", PIN_FILES)
def test_every_requirement_is_pinned_exactly(name: str) -> None:
    for line in lines_of(name):
        assert PIN.fullmatch(line) or line.startswith(("-c ", "-r ", "-e .")), line


def test_everything_installed_is_pinned() -> None:
    """Follow the requirements of the requirements as they are installed here."""
    pinned = pins(*PIN_FILES)
    waiting, seen = [Requirement(name) for name in pins(*PIN_FILES[:2])], set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        key = (name, frozenset(requirement.extras))
        if key in seen or PINNED_ELSEWHERE.fullmatch(name):
            continue
        seen.add(key)
        installed = importlib.metadata.distribution(name)
        version = installed.version.split("+")[0]
        assert pinned.get(name) == version, f"{name}=={version} is not pinned"
        for text in installed.requires or []:
            needed = Requirement(text)
            extras = [{"extra": extra} for extra in (*requirement.extras, "")]
            if not needed.marker or any(map(needed.marker.evaluate, extras)):
                waiting.append(needed)


def test_help_lists_every_command() -> None:
    makefile = (ROOT / "Makefile").read_text()
    commands = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE)) - {"environment"}
    assert commands >= {"course", "test", "exercises", "book", "handout", "grade"}
    # inside `make test`, make would add where it enters and leaves
    ran = run("make", "--no-print-directory")
    listed = {line.split()[0] for line in ran.stdout.splitlines()[1:]}
    assert listed == commands


def test_nothing_names_this_machine_or_a_place_to_install_from() -> None:
    files = tracked_files()
    own = [f"{place}/".encode() for place in (ROOT, Path.home())]
    for path in files:
        assert not any(place in path.read_bytes() for place in own), path
    house = {"Makefile", "pyproject.toml", *PIN_FILES}
    for path in files:
        name = path.relative_to(ROOT)
        if path.suffix in {".xz", ".safetensors"}:  # packed programs, and weights
            continue
        if str(name) in house or name.parts[0] in {"tools", ".ci"}:
            text = path.read_text(encoding="utf-8").replace("sqlite:///", "")
            if path.name == "package-lock.json":  # it names its authors' pages
                assert '"resolved"' not in text, name
                continue
            assert "://" not in text, name


def test_without_a_usable_python_it_says_what_to_do() -> None:
    ran = run("sh", "tools/find_python.sh", "no-such-python")
    assert ran.returncode == 1
    assert "PYTHON=" in ran.stderr


def test_a_missing_system_package_is_said_and_in_ci_a_failure(monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(environment, "IN_CI", False)
    monkeypatch.setattr(environment, "make_environment", lambda: None)
    monkeypatch.setattr(environment, "is_installed", lambda package: False)
    environment.main([browser.SHELL])
    printed = capsys.readouterr().out
    assert "SKIPPED" in printed
    assert f"sudo apt-get install {browser.SHELL}" in printed
    monkeypatch.setattr(environment, "IN_CI", True)
    with pytest.raises(SystemExit):
        environment.main([browser.SHELL])


@pytest.mark.parametrize(("ci", "summary"), [("", "1 skipped"), ("true", "1 failed")])
def test_a_skip_is_a_failure_in_ci(tmp_path: Path, ci: str, summary: str) -> None:
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    test = "import pytest\ndef test_it():\n    pytest.skip('no browser')\n"
    (tmp_path / "test_it.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    ran = run(*command, cwd=tmp_path, env=os.environ | {"CI": ci})
    assert summary in ran.stdout, ran.stdout


def test_make_book_says_what_it_lacks_without_the_solutions(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    ran = run(sys.executable, "-m", "tools.site.book", cwd=tmp_path)
    assert ran.returncode == 1
    assert "solutions/transformer/ is missing" in ran.stderr
    assert not (tmp_path / "_build").exists()
