"""The rooms of the house: who may import whom, and what only the door knows."""

import importlib.util
from pathlib import Path

import pytest

from autograder.generator import ROOT
from autograder.grading.imports import files_behind, modules_of

PAGES, TOOLS = ROOT / "pages", ROOT / "tools"
ROOMS = ("data", "model", "training", "use")


def modules_in(folder: str) -> list[str]:
    """Name the modules of a package, or of a part of it."""
    paths = sorted((ROOT / folder).rglob("*.py"))
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]
    return [name.removesuffix(".__init__") for name in names]


def imported_in(module: str) -> set[str]:
    """Name what a module imports, anywhere in it."""
    path = Path(importlib.util.find_spec(module).origin)
    return modules_of([path.read_text(encoding="utf-8")], ours=())


@pytest.mark.parametrize("package", ["autograder", "workbench"])
def test_nothing_that_is_installed_needs_a_page_or_a_tool(package) -> None:
    """So no check imports a page's plot, and no submission can see one."""
    behind = files_behind(modules_in(package), ROOT)
    assert len(behind) > 50
    assert [path for path in behind if PAGES in path.parents] == []
    assert [path for path in behind if TOOLS in path.parents] == []


def test_a_page_is_made_without_the_door() -> None:
    for module in modules_in("pages"):
        for name in imported_in(module):
            assert not name.startswith(("workbench.command_line", "tools", "argparse"))


def test_only_the_door_of_the_workbench_knows_what_is_typed() -> None:
    """What is behind it takes typed values: no namespace of options is handed on."""
    for room in ROOMS:
        for module in modules_in(f"workbench/{room}"):
            names = imported_in(module)
            assert "argparse" not in names, module
            assert not any(each.startswith("workbench.command") for each in names)


@pytest.mark.parametrize("room", ["data", "model"])
def test_data_and_models_do_without_training_and_use(room) -> None:
    for module in modules_in(f"workbench/{room}"):
        for name in imported_in(module):
            assert not name.startswith(("workbench.training", "workbench.use")), module


def test_every_module_of_the_workbench_has_a_room() -> None:
    at_the_top = {path.stem for path in (ROOT / "workbench").glob("*.py")}
    # what notebooks draw with, what students call, and what all may raise
    assert at_the_top == {
        *("__init__", "__main__", "assemble", "errors", "plots", "progress")
    }
    rooms = {path.parent.name for path in (ROOT / "workbench").glob("*/__init__.py")}
    assert rooms == {*ROOMS, "command_line"}
