"""Right answers in the manner of other texts earn all points, graded in both ways."""

import ast
import functools
import warnings
from pathlib import Path

import matplotlib
import nbformat
import pytest
from IPython.core.compilerop import CachingCompiler

from autograder import generator
from autograder.grading.grader import Grader
from autograder.grading.job import GRADED, Job
from autograder.grading.needless import needless
from autograder.grading.paper import Paper
from tests import chapters
from tests.sample_class import notebooks
from tests.strangers import models_of

FOLDER = Path(__file__).parents[1] / "outside"


class Outside:
    """A file of answers in one tradition, and the cells that they make.

    What a file imports from ``transformer`` a notebook has, so these lines are left
    out. A helper goes into every cell that uses it.
    """

    def __init__(self, path: Path) -> None:
        self.text = path.read_text("utf-8")
        body = ast.parse(self.text).body
        self.defined = {each.name: each for each in body if hasattr(each, "name")}
        self.imports = [
            self._cut(each)
            for each in body
            if isinstance(each, ast.Import)
            or (isinstance(each, ast.ImportFrom) and "transformer" not in each.module)
        ]

    def answers(self) -> dict[str, dict[str, str]]:
        """Return the cells by chapter and exercise."""
        found: dict[str, dict[str, str]] = {}
        for chapter in chapters.CHAPTERS:
            for exercise in chapters.source(chapter).exercises:
                names = exercise.defines
                if names and self.defined.keys() >= set(names):
                    cells = found.setdefault(chapter, {})
                    cells[exercise.name] = self._cell(names)
        return found

    def _cell(self, names: list[str]) -> str:
        wanted, found = list(names), set()
        while wanted:
            name = wanted.pop()
            found.add(name)
            nodes = ast.walk(self.defined[name])
            used = {node.id for node in nodes if isinstance(node, ast.Name)}
            wanted += (used & self.defined.keys()) - _asked_for() - found
        parts = [
            self._cut(node) for name, node in self.defined.items() if name in found
        ]
        return "\n\n\n".join(["\n".join(self.imports), *parts])

    def _cut(self, node: ast.stmt) -> str:
        decorators = getattr(node, "decorator_list", [])
        first = min(each.lineno for each in (node, *decorators))
        return "\n".join(self.text.splitlines()[first - 1 : node.end_lineno])


@functools.cache
def _asked_for() -> set[str]:
    """Every name that some exercise asks for: no helper, but an answer of its own."""
    sources = map(chapters.source, chapters.CHAPTERS)
    return {name for each in sources for one in each.exercises for name in one.defines}


ANSWERS = {path.stem: Outside(path).answers() for path in sorted(FOLDER.glob("*.py"))}
CASES = [(style, chapter) for style, found in ANSWERS.items() for chapter in found]
FIRST = [(style, next(iter(found))) for style, found in ANSWERS.items()]


@pytest.fixture(scope="module")
def grader():
    with Grader() as process:
        yield process


@functools.cache
def paper(chapter: str) -> Paper:
    return Paper.of(chapter)


def answered(style: str, chapter: str) -> nbformat.NotebookNode:
    """A solved notebook with the answers of a style in place of ours."""
    notebook = notebooks._solved(chapter)
    for exercise, text in ANSWERS[style][chapter].items():
        notebooks._cell(notebook, exercise).source = text
    return notebook


def in_a_notebook(notebook: nbformat.NotebookNode, chapter: str) -> dict[str, float]:
    """Run the cells from top to bottom, as a student does; checks with hidden tests."""
    matplotlib.use("agg")
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    grade_ids = [cell.metadata.get("nbgrader", {}).get("grade_id") for cell in cells]
    texts = [cell.source for cell in cells]
    pairs = list(zip(texts, grade_ids, strict=True))
    left_out = needless(texts, [text for text, grade_id in pairs if not grade_id])
    most, full = paper(chapter).points, generator.source_notebook(chapter)
    compiler, names, scores = CachingCompiler(), {"__name__": "__main__"}, {}
    for place, (text, grade_id) in enumerate(pairs):
        if grade_id in most:
            text = notebooks._cell(full, grade_id).source
            scores[grade_id] = most[grade_id]
        if place not in left_out:
            exec(compiler(text, compiler.cache(text), "exec"), names)
    return scores


@pytest.mark.parametrize(("style", "chapter"), CASES)
def test_all_points(style: str, chapter: str, grader) -> None:
    content = nbformat.writes(answered(style, chapter)).encode()
    job = Job("a", chapter, content, paper(chapter), models=models_of(chapter))
    outcome = grader.grade(job)
    assert outcome.status == GRADED, outcome.reason
    failed = [each.failure["text"] for each in outcome.verdicts if each.failure]
    assert not failed, "\n\n".join(failed)
    assert not outcome.repairs
    assert {each.grade_id: each.score for each in outcome.verdicts} == {
        name: most
        for name, most in paper(chapter).points.items()
        if name not in {each["grade_id"] for each in outcome.by_hand}
    }


@pytest.mark.parametrize(("style", "chapter"), FIRST)
def test_a_students_own_notebook_says_the_same(style: str, chapter: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's, of TorchScript
        scores = in_a_notebook(answered(style, chapter), chapter)
    assert scores.items() <= paper(chapter).points.items()


def test_the_styles_answer_what_other_texts_write() -> None:
    answered = {
        exercise
        for found in ANSWERS.values()
        for exercises in found.values()
        for exercise in exercises
    }
    wanted = {
        *("sinusoidal-positional-encoding", "masked-softmax", "patch-embedding"),
        *("scaled-dot-product-attention", "multi-head-attention", "layer-norm"),
        *("encoder-layer", "encoder", "decoder-layer", "decoder"),
    }
    assert answered >= wanted
    assert len(ANSWERS) >= 8
