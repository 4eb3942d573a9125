"""What makes a grading begin anew: code that a verdict can depend on, and no other."""

import shutil
from pathlib import Path

import pytest

from autograder import generator
from autograder.generator import ROOT, notebooks
from autograder.grading.paper import Paper
from autograder.grading.version import verdict_version

ATTENTION, POSITIONS = "04_attention", "03_positional_encoding"


@pytest.fixture(scope="module")
def papers() -> dict[str, Paper]:
    made = {}
    for chapter in (ATTENTION, POSITIONS):
        source = generator.source_notebook(chapter)
        texts = notebooks.release_notebook(source), source
        made[chapter] = Paper.of_notebooks(chapter, *map(notebooks.write, texts), {})
    return made


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The two packages, to be changed."""
    folder = tmp_path_factory.mktemp("copy")
    for package in ("autograder", "workbench"):
        for path in (ROOT / package).rglob("*.py"):
            to = folder / path.relative_to(ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, to)
    return folder


@pytest.mark.parametrize(
    ("name", "again"),
    [
        ("workbench/introduction_plots.py", set()),  # a page's
        ("workbench/commands.py", set()),
        ("autograder/collecting/canvas.py", set()),
        ("autograder/generator/table.py", set()),
        ("autograder/grading/feedback.py", set()),
        ("autograder/grading/exports.py", set()),
        ("autograder/chapters/attention/weights.py", {ATTENTION}),
        ("autograder/chapters/positional_encoding/formula.py", {POSITIONS}),
        ("autograder/interface.py", {ATTENTION, POSITIONS}),
        ("autograder/exercise/spec.py", {ATTENTION, POSITIONS}),
        ("autograder/boundary/walls.py", {ATTENTION, POSITIONS}),
        ("autograder/grading/usage/values.py", {ATTENTION, POSITIONS}),
        ("workbench/plots.py", {ATTENTION, POSITIONS}),  # a notebook may call it
    ],
)
def test_only_what_a_verdict_depends_on_is_graded_again(copy, papers, name, again):
    before = {each: verdict_version(paper, copy) for each, paper in papers.items()}
    path = copy / name
    path.write_text(path.read_text("utf-8") + "# a comment\n", "utf-8")
    after = {each: verdict_version(paper, copy) for each, paper in papers.items()}
    assert {each for each in papers if after[each] != before[each]} == again
