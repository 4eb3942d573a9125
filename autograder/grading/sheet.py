"""A paper as it is graded by: its checks, taken apart; read once in a process."""

import ast
import copy
from dataclasses import dataclass
from types import CodeType

import nbformat
from nbformat import NotebookNode

from autograder.grading import usage
from autograder.grading.paper import RUBRIC, Paper
from autograder.grading.remote import imports_of
from autograder.grading.seeds import with_drawn_seeds

BEGIN_HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
VISIBLE, HIDDEN = "visible", "hidden"  # parts of a check


@dataclass(frozen=True)
class Check:
    """An instructor's check cell: what it says it checks, and its two parts."""

    cell: NotebookNode
    title: str
    parts: dict[str, CodeType]  # visible and hidden


@dataclass(frozen=True)
class Sheet:
    """A paper, read: once in a process, because all of a class have the same."""

    paper: Paper
    release: NotebookNode
    checks: dict[str, Check]
    given: frozenset[str]  # the code that is nobody's answer
    imports: list[str]  # the statements that bring the checks in
    order: dict[str, int]  # of the graded cells
    blank: dict[str, str]  # what was handed out for an answer, by grade_id
    demands: dict[str, usage.Demand]  # of checks that forbid something
    rubrics: dict[str, str]  # model answers and rubrics of written answers


_sheets: dict[str, Sheet] = {}  # by chapter


def sheet_of(paper: Paper) -> Sheet:
    """Read a paper, unless it was the last one of its chapter that was read."""
    known = _sheets.get(paper.chapter)
    if known is None or known.paper != paper:
        known = _sheets[paper.chapter] = _read(paper)
    return known


def _read(paper: Paper) -> Sheet:
    release = nbformat.reads(paper.released, as_version=4)
    source = nbformat.reads(paper.source, as_version=4)
    metadata = {
        cell.metadata.nbgrader.grade_id: cell.metadata
        for cell in release.cells
        if "nbgrader" in cell.metadata
    }
    checks = {}
    for cell in source.cells:
        grading = cell.metadata.get("nbgrader", {})
        if grading.get("grade") and not grading.get("solution"):
            cell.metadata = copy.deepcopy(metadata[grading.grade_id])
            cell.metadata.nbgrader.checksum = paper.checksums[grading.grade_id]
            checks[grading.grade_id] = _check_of(cell)
    given = [
        cell.source
        for cell in source.cells
        if cell.cell_type == "code" and "nbgrader" not in cell.metadata
    ]
    order = {grade_id: place for place, grade_id in enumerate(paper.points)}
    imports, blank = imports_of(given), {}
    for cell in release.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            blank[cell.metadata.nbgrader.grade_id] = cell.source
    demands = usage.demands({n: c.cell.source for n, c in checks.items()}, imports)
    rubrics = {
        cell.metadata.nbgrader.grade_id: _between_markers(cell.source)
        for cell in source.cells
        if is_written(cell)
    }
    graded = checks, frozenset(given), imports, order, blank, demands, rubrics
    return Sheet(paper, release, *graded)


def _check_of(cell: NotebookNode) -> Check:
    name = cell.metadata.nbgrader.grade_id
    visible, hidden = split(cell.source)
    title = ast.get_docstring(ast.parse(visible)) or name
    drawn = with_drawn_seeds(hidden, name)
    parts = {
        VISIBLE: compile(visible, f"<{name}>", "exec"),
        HIDDEN: compile(drawn, f"<{name}, hidden tests>", "exec"),
    }
    return Check(cell, title, parts)


def is_written(cell: NotebookNode) -> bool:
    """Tell whether a person grades a cell."""
    grading = cell.metadata.get("nbgrader", {})
    return bool(grading.get("grade") and grading.get("solution"))


def _between_markers(text: str) -> str:
    _, _, behind = text.partition(BEGIN_SOLUTION)
    return behind.partition(END_SOLUTION)[0].strip()


def put_rubrics_beside(notebook: NotebookNode, sheet: Sheet) -> None:
    """Give formgrader what a person grades by; take out what calls itself so."""
    for cell in notebook.cells:
        cell.metadata.pop(RUBRIC, None)
        if is_written(cell) and grade_id_of(cell) in sheet.rubrics:
            cell.metadata[RUBRIC] = sheet.rubrics[grade_id_of(cell)]


def split(text: str) -> tuple[str, str]:
    """Take the hidden tests out of a check cell; lines keep their numbers."""
    visible, hidden, inside = [], [], False
    for line in text.splitlines():
        marker = line.strip() in (BEGIN_HIDDEN, END_HIDDEN)
        inside = line.strip() == BEGIN_HIDDEN if marker else inside
        visible.append("" if inside or marker else line)
        hidden.append(line if inside and not marker else "")
    return "\n".join(visible), "\n".join(hidden)


def grade_id_of(cell: NotebookNode) -> str:
    """Return the name that nbgrader knows a cell by; "" if it knows none."""
    return cell.metadata.get("nbgrader", {}).get("grade_id", "")
