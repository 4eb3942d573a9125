"""The recipe of CONTRIBUTING.md for an exercise works as it stands there."""

import re
import shutil
import sys
import types

import pytest
import torch

from autograder import generator
from autograder.exercise.spec import Specification
from autograder.expect import CheckFailure
from autograder.generator import ROOT
from autograder.generator.modules import without_markers

TEXT = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
CHAPTER = "04_attention"


def fence(start: str) -> str:
    """The fenced block of the guide that begins with these words."""
    found = re.search(
        rf"^(`{{3,4}})\w*\n({re.escape(start)}.*?)^\1$", TEXT, re.S | re.M
    )
    assert found, start
    return found[2]


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> generator.Source:
    """The chapter with the recipe's exercise below its last one."""
    root = tmp_path_factory.mktemp("recipe")
    (root / "solutions").mkdir()
    for path in ROOT.glob("solutions/*.md"):
        shutil.copy(path, root / "solutions")
    with (root / "solutions" / f"{CHAPTER}.md").open("a", encoding="utf-8") as file:
        file.write("\n" + fence('+++ {"exercise": "row-entropy"'))
    return generator.read(CHAPTER, root)


@pytest.fixture(scope="module")
def module() -> types.ModuleType:
    made = types.ModuleType("autograder.chapters.attention.entropy")
    sys.modules[made.__name__] = made
    exec(fence("# autograder/chapters/attention/entropy.py"), vars(made))
    yield made
    del sys.modules[made.__name__]


@pytest.fixture(scope="module")
def names(source) -> dict:
    """What the notebook defines, the recipe's answer too."""
    exercise = next(each for each in source.exercises if each.name == "row-entropy")
    found: dict = {"torch": torch}
    for cell in exercise.answers:
        exec(without_markers(cell.text), found)
    return found


def test_the_source_is_an_exercise(source) -> None:
    exercise = source.exercises[-1]
    assert exercise.name == "row-entropy"
    assert (
        exercise.title
        == f"Exercise 4.{len(source.exercises)} · How spread out is a row?"
    )
    assert "### BEGIN HIDDEN TESTS" in exercise.graded[0].text


def test_the_answer_passes_its_check(module, names, capsys) -> None:
    for seed in (0, 5209):
        module.row_entropy(names["row_entropy"], seed=seed)
    assert "passed" in capsys.readouterr().out


def test_every_mistake_is_named(module, names) -> None:
    spec: Specification = module.entropy
    bank: list[tuple] = []
    marks = {"torch": torch, "wrong": marked(bank), "right": marked(bank)}
    exec(fence('@wrong("row-entropy"'), marks)
    answers = [*spec.answers(names["row_entropy"]), *bank]
    assert {name for name, _ in answers} == {None, *(e.name for e in spec.mistakes)}
    for name, answer in answers:
        for seed in (0, 5209):
            try:
                module.row_entropy(answer, seed=seed)
            except CheckFailure as failure:
                assert failure.mistake == name, str(failure)
            else:
                assert name is None


def marked(bank: list):
    """The bank's decorators: right has no name."""

    def mark(exercise: str, name: str | None = None):
        assert exercise == "row-entropy"
        return lambda answer: bank.append((name, answer))

    return mark
