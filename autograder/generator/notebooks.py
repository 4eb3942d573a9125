"""From a text notebook to nbgrader's source notebook and to what a student gets."""

import copy
import logging
from collections.abc import Collection

import nbformat
from nbformat import NotebookNode
from nbgrader.preprocessors import (
    CheckCellMetadata,
    ClearHiddenTests,
    ClearOutput,
    ClearSolutions,
    ComputeChecksums,
    LockCells,
)

from autograder.exercise.chapters import anchor_of
from autograder.generator.modules import belongs_to_module, has_module
from autograder.generator.source import Cell, Exercise, Source

# nbgrader's own steps and order (GenerateAssignment), less those that need a gradebook
RELEASE_STEPS = (
    LockCells,
    ClearSolutions,
    ClearOutput,
    CheckCellMetadata,
    ClearHiddenTests,
    ComputeChecksums,
    CheckCellMetadata,
)
SHORT_WAY = "on the short way"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
# nothing of it is graded; where the package is there, it does nothing
OPENING = """\
# Is the course's package here? On Colab it is installed, elsewhere you are told how.
import importlib.util
import sys

if importlib.util.find_spec("autograder"):
    pass
elif "google.colab" in sys.modules:
    get_ipython().run_line_magic("pip", "install --quiet transformers-by-hand")
else:
    error = ModuleNotFoundError(
        "The course's package is missing: run  %pip install transformers-by-hand  in a "
        "cell, or the same without % in a terminal, and restart the kernel."
    )
    error._render_traceback_ = lambda: [str(error)]  # one line, without the rest
    raise error"""
PROGRESS = """## How far have you come?

This cell shows which checks have passed, and leads to what is still open. It gives no \
points."""


def source_notebook(source: Source, short_way: Collection[str] = ()) -> NotebookNode:
    """Build nbgrader's source notebook: answers and hidden tests in, metadata on.

    Args:
        source: of a chapter or a sheet.
        short_way: the exercises to mark as those of the short way through the course.
    """
    course = {"chapter": source.chapter}
    if has_module(source):
        course["module"] = source.module
        if source.of:
            course["of"] = source.of
    notebook = nbformat.v4.new_notebook(
        metadata={
            "kernelspec": KERNEL,
            "language_info": {"name": "python"},
            "course": course,
        }
    )
    exercises = {exercise.name: exercise for exercise in source.exercises}
    graded_so_far: dict[str, int] = {}
    for number, cell in enumerate(source.cells):
        text, grading = cell.text, None
        if cell.kind == "description":
            name = cell.options["exercise"]
            text = _with_facts(exercises[name], name in short_way)
        elif cell.kind != "given":
            grading = _nbgrader_metadata(cell, graded_so_far)
        if number == 0:
            text = f"{_banner(source)}\n{text}"
        name = grading["grade_id"] if grading else f"cell-{number:03}"
        notebook.cells.append(_new_cell(cell, text, grading, name))
    notebook.cells.insert(_first_code(notebook), _opening_cell())
    notebook.cells += _progress_cells(source.check_name)
    return notebook


def release_notebook(source: NotebookNode) -> NotebookNode:
    """Cut answers and hidden tests, as nbgrader's ``generate_assignment`` does."""
    notebook, resources = copy.deepcopy(source), {}
    for step in RELEASE_STEPS:
        preprocessor = step()
        preprocessor.log.setLevel(logging.ERROR)
        notebook, resources = preprocessor.preprocess(notebook, resources)
    return notebook


def write(notebook: NotebookNode) -> str:
    """Serialise a notebook; equal notebooks give equal bytes."""
    nbformat.validate(notebook)
    return nbformat.writes(notebook, indent=1, sort_keys=True) + "\n"


def _first_code(notebook: NotebookNode) -> int:
    """Find the place of the first cell that is run."""
    kinds = [cell.cell_type for cell in notebook.cells]
    return kinds.index("code") if "code" in kinds else len(kinds)


def _opening_cell() -> NotebookNode:
    """Make the first cell that is run: it gets the course's package, or says how."""
    return nbformat.v4.new_code_cell(OPENING, id="opening")


def _progress_cells(check_name: str) -> list[NotebookNode]:
    """Make the end of every notebook: which checks have passed so far."""
    return [
        nbformat.v4.new_markdown_cell(PROGRESS, id="progress-text"),
        nbformat.v4.new_code_cell(f"{check_name}.progress()", id="progress"),
    ]


def _banner(source: Source) -> str:
    return (
        f"<!-- Generated from {source.origin} by `make exercises`; "
        "change that file, not this one. -->"
    )


def _with_facts(exercise: Exercise, is_marked: bool) -> str:
    title, _, rest = exercise.description.text.partition("\n")
    anchor = f'<a id="{anchor_of(exercise.number)}"></a>'
    options = exercise.description.options
    plural = "point" if exercise.points == 1 else "points"
    by_hand = " · graded by a person" if exercise.by_hand else ""
    mark = f" · {SHORT_WAY}" if is_marked else ""
    facts = (
        f"*{exercise.points} {plural} · difficulty {options['difficulty']} of 5 · "
        f"about {options['minutes']} minutes{by_hand}{mark}*"
    )
    return f"{anchor}\n\n{title}\n\n{facts}\n{rest}"


def _nbgrader_metadata(cell: Cell, graded_so_far: dict[str, int]) -> dict:
    common = {"schema_version": 3, "task": False, "cell_type": cell.node.cell_type}
    if cell.kind == "answer":
        name = cell.options["exercise"]
        own = {"grade": False, "solution": True, "locked": False, "grade_id": name}
        return common | own
    name = cell.options[cell.kind]
    points = {"grade": True, "points": cell.options["points"]}
    if cell.kind == "manual":
        own = {"solution": True, "locked": False, "grade_id": name}
        return common | points | own
    graded_so_far[name] = graded_so_far.get(name, 0) + 1
    suffix = f"-{graded_so_far[name]}" if graded_so_far[name] > 1 else ""
    own = {"solution": False, "locked": True, "grade_id": f"test-{name}{suffix}"}
    return common | points | own


def _new_cell(cell: Cell, text: str, grading: dict | None, name: str) -> NotebookNode:
    make = getattr(nbformat.v4, f"new_{cell.node.cell_type}_cell")
    metadata = {"tags": cell.options["tags"]} if "tags" in cell.options else {}
    if grading:
        metadata["nbgrader"] = grading
    if belongs_to_module(cell):
        metadata["course"] = {"module": True}  # `workbench assemble` takes it out again
    return make(text, id=name, metadata=metadata)
