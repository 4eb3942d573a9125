"""Workflows, containers and Binder: their files parse, and name what is there."""

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.specifiers import SpecifierSet

from autograder.generator import ROOT
from tools import dist

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
OURS = re.compile(
    r"(?:tools|exercises|solutions|binder|\.ci)/[\w./-]*\w|constraints\.txt"
)


def jobs_of(path: Path) -> dict[str, dict]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]


def commands_of(path: Path) -> list[str]:
    steps = [step for job in jobs_of(path).values() for step in job.get("steps", [])]
    return [step["run"] for step in steps if "run" in step]


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def expect_what_it_names(command: str) -> None:
    """Expect the files, modules and commands of make that a command line names."""
    for name in OURS.findall(command):
        assert (ROOT / name).exists(), f"{command}: {name} is not there"
    for name in re.findall(r"-m (tools[\w.]*)", command):
        assert importlib.util.find_spec(name), f"{command}: {name} is not there"
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"\bmake (\w+)", command):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), command


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_names_what_is_there(path: Path) -> None:
    for command in commands_of(path):
        expect_what_it_names(command)
    jobs = jobs_of(path)
    for job in jobs.values():
        needs = job.get("needs", [])
        assert {needs} if isinstance(needs, str) else {*needs} <= jobs.keys()
        if "uses" in job:
            assert (ROOT / job["uses"]).is_file()


def test_students_are_tried_on_every_system_and_python() -> None:
    student = jobs_of(ROOT / ".github/workflows/students.yml")["student"]
    matrix = student["strategy"]["matrix"]
    systems = {name.partition("-")[0] for name in matrix["system"]}
    assert systems == {"ubuntu", "macos", "windows"}
    allowed = SpecifierSet(project()["requires-python"])
    assert matrix["python"] == [f"3.{n}" for n in range(30) if f"3.{n}.0" in allowed]
    steps = [step.get("uses", "") for step in student["steps"]]
    assert not any("checkout" in each for each in steps)


def test_nothing_is_published_before_it_is_built_and_tested() -> None:
    jobs = jobs_of(ROOT / ".github/workflows/release.yml")
    publishing = [
        name
        for name, job in jobs.items()
        if any("pypi-publish" in step.get("uses", "") for step in job.get("steps", []))
    ]
    assert publishing == ["publish"]
    assert set(jobs["publish"]["needs"]) == jobs.keys() - {"publish", "build"}
    assert jobs["test"]["needs"] == jobs["students"]["needs"] == "build"
    build = [step.get("run", "") for step in jobs["build"]["steps"]]
    assert 'python -m tools.dist --tag "$GITHUB_REF_NAME"' in build


@pytest.mark.parametrize(
    ("tag", "heading", "says"),
    [
        ("v0.1.1", "## 0.1.0 · 2026-12-01", "the tag is v0.1.1, the version of"),
        ("0.1.0", "## 0.1.0 · 2026-12-01", "the tag is 0.1.0, the version of"),
        ("v0.1.0", "## 0.1.0 (unreleased)", "calls 0.1.0 unreleased"),
        ("v0.1.0", "## 0.0.9", "has no section 0.1.0"),
        ("v0.1.0", "## 0.1.0 · 2026-12-01", ""),
    ],
)
def test_a_tag_without_its_entry_is_refused(
    tag, heading, says, tmp_path, monkeypatch
) -> None:
    (tmp_path / "CHANGELOG.md").write_text(f"# Changelog\n\n{heading}\n\n- It.\n")
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "0.1.0"\n')
    monkeypatch.setattr(dist, "ROOT", tmp_path)
    monkeypatch.setattr(dist, "OUT", tmp_path / "dist")
    monkeypatch.setattr(dist, "stage", lambda folder: sys.exit("built"))
    monkeypatch.setattr(sys, "argv", ["dist.py", "--tag", tag])
    with pytest.raises(SystemExit, match=says or "built"):
        dist.main()


def test_a_container_makes_the_environment_that_it_uses() -> None:
    text = (ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8")
    container = json.loads(text)
    expect_what_it_names(container["postCreateCommand"])
    assert container["image"].rpartition(":3.")[2] in {"11", "12", "13"}
    settings = container["customizations"]["vscode"]["settings"]
    assert settings["python.defaultInterpreterPath"].endswith("/.venv/bin/python")


def test_binder_installs_what_students_install_and_the_earlier_parts() -> None:
    first = yaml.safe_load((ROOT / "binder" / "environment.yml").read_text())
    allowed = SpecifierSet(project()["requires-python"])
    (python,) = [each for each in first["dependencies"] if each.startswith("python=")]
    assert f"{python.removeprefix('python=')}.0" in allowed
    (torch,) = [each for each in project()["dependencies"] if each.startswith("torch")]
    assert torch.replace("torch", "pytorch-cpu") in first["dependencies"]
    then = (ROOT / "binder" / "postBuild").read_text().splitlines()[-1].split()
    places = [then[at + 1] for at, word in enumerate(then) if word == "-e"]
    assert places == ["'.[lab]'", "./solutions"]
    assert "lab" in project()["optional-dependencies"]
    assert os.access(ROOT / "binder" / "postBuild", os.X_OK)


@pytest.mark.parametrize(
    "path",
    [*WORKFLOWS, *(ROOT / "binder").iterdir(), *(ROOT / ".devcontainer").iterdir()],
    ids=lambda path: path.name,
)
def test_no_address_of_packages_is_written_down(path: Path) -> None:
    assert not re.search(r"(index-url|INDEX_URL)\W+http", path.read_text())


def test_a_student_is_told_of_a_wrong_answer_and_of_the_right_one() -> None:
    """The program that the workflow runs on other systems."""
    notebook = "exercises/04_attention/04_attention.ipynb"
    command = [sys.executable, "-m", "tools.student", notebook]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    wrong, _, right = ran.stdout.partition("CheckFailure:")
    assert "softmax over the wrong axis" in wrong and " passed · " in right
