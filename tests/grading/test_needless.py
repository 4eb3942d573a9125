"""Which given cells are left out while a class is graded, and which never are."""

import pytest

from autograder import generator
from autograder.grading.needless import needless
from autograder.grading.repair import kind_of

SHOW = "figure, axes = plt.subplots()\naxes.plot(softmax(scores))\nplt.show()"
IMPORTS = "import torch\nplt = plots.plt"
ANSWER = "def softmax(x):\n    y = torch.exp(x)\n    return y / y.sum()"
CHECK = "check.softmax(softmax)"


def left_out(*cells: str, given: tuple[str, ...] = ()) -> list[str]:
    found = needless(cells, given)
    return [cells[place] for place in sorted(found)]


def test_a_figure_is_left_out() -> None:
    scores = "scores = torch.ones(3)"
    cells = (IMPORTS, ANSWER, CHECK, scores, SHOW)
    assert left_out(*cells, given=(IMPORTS, scores, SHOW)) == [scores, SHOW]


def test_what_a_student_wrote_or_changed_runs() -> None:
    cells = (IMPORTS, ANSWER, CHECK, "scores = torch.ones(3)", SHOW + "  # mine")
    assert left_out(*cells, given=(IMPORTS, SHOW)) == []


NEEDED = {
    "scores = torch.ones(3)": "def softmax(x):\n    return x / scores.sum()",
    "import math": "def softmax(x):\n    return math.exp(x)",
    "def attend(x):\n    return x": "def softmax(x):\n    return attend(x)",
    "class Table:\n    size = 3": "def softmax(x):\n    return x[: Table.size]",
    "for scores in range(3): pass": "softmax = lambda x: x + scores",
    "with torch.no_grad() as scores: pass": "softmax = partial(add, scores)",
    "[last := each for each in range(3)]": "def softmax(x):\n    return last",
}


@pytest.mark.parametrize("given", NEEDED)
def test_what_an_answer_reads_runs(given) -> None:
    assert left_out(given, NEEDED[given], given=(given,)) == []


CHANGES = (
    "softmax.size = 3",
    "table['x'] = 1",
    "del softmax",
    "train(model)\nplt.show()",
    "model.reset()\nplt.show()",
    "print(next(model))",
    "model += 1",
)


@pytest.mark.parametrize("given", CHANGES)
def test_what_may_change_the_students_data_runs(given) -> None:
    answer = "model = Model()\n\ndef softmax(x):\n    return model(x)"
    assert left_out(answer, given, given=(given,)) == []


@pytest.mark.parametrize(
    "odd", ["eval('scores')", "globals()[name]", "%run x.py", "import __main__"]
)
def test_with_names_looked_up_in_odd_ways_everything_runs(odd) -> None:
    scores = "scores = torch.ones(3)"
    answer = f"def softmax(x):\n    return {odd}"
    if odd.startswith(("%", "import")):
        answer = f"{odd}\nscores"
    assert left_out(scores, answer, given=(scores,)) == []


@pytest.mark.parametrize("chapter", generator.chapters())
def test_every_chapter_has_demonstrations_and_keeps_what_its_answers_need(
    chapter,
) -> None:
    release = generator.release_notebook(chapter)
    code = [cell for cell in release.cells if cell.cell_type == "code"]
    given = [cell.source for cell in code if kind_of(cell) == "given"]
    gone = left_out(*(cell.source for cell in code), given=tuple(given))
    assert 3 < len(gone) < len(given)
    assert not any("autograder.chapters" in text for text in gone)
