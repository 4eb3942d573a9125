"""Read a chapter's text notebook and refuse it, with file and line, if it is bad."""

import ast
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import jupytext
from nbformat import NotebookNode

from autograder.generator import numbers

BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
BEGIN_HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
# nbgrader finds its markers as substrings of any line, so these words are reserved
RESERVED = re.compile(r"(BEGIN|END) (SOLUTION|HIDDEN TESTS|MARK SCHEME)")
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
OPTIONS = {
    "code": {"exercise", "check", "points", "module", "tags"},
    "markdown": {"exercise", "difficulty", "minutes", "manual", "points"},
}


class SourceError(Exception):
    """A text notebook is bad; says where and why."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(f"{path}:{line}: {reason}")
        self.path, self.line, self.reason = path, line, reason


@dataclass
class Cell:
    """A cell of a text notebook and the line of the file its text starts on."""

    node: NotebookNode
    line: int

    @property
    def text(self) -> str:
        """The cell's source."""
        return self.node.source

    @property
    def options(self) -> dict:
        """The options written in the text notebook."""
        return self.node.metadata

    @property
    def kind(self) -> str:
        """What the cell is for: answer, check, manual, description, or given."""
        if self.node.cell_type == "code":
            names = {"exercise": "answer", "check": "check"}
        else:
            names = {"manual": "manual", "exercise": "description"}
        return next(
            (kind for key, kind in names.items() if key in self.options), "given"
        )


@dataclass
class Exercise:
    """The cells of one exercise."""

    name: str
    description: Cell
    answers: list[Cell] = field(default_factory=list)
    graded: list[Cell] = field(default_factory=list)  # check cells, or the manual one

    @property
    def points(self) -> int:
        """Points of all graded cells together."""
        return sum(cell.options["points"] for cell in self.graded)

    @property
    def minutes(self) -> int:
        """How long it takes."""
        return self.description.options["minutes"]

    @property
    def by_hand(self) -> bool:
        """Whether a person grades it."""
        return any(cell.kind == "manual" for cell in self.graded)

    @property
    def defines(self) -> list[str]:
        """The functions and classes that its answer cells define."""
        return [
            node.name
            for cell in self.answers
            for node in ast.parse(cell.text).body
            if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        ]

    @property
    def title(self) -> str:
        """The heading of its description."""
        return self.description.text.splitlines()[0].lstrip("# ")

    @property
    def number(self) -> str:
        """Its number, such as ``4.7``, which its heading begins with."""
        return self.title.removeprefix("Exercise ").partition(" · ")[0]


class Source:
    """A chapter's text notebook, read and checked."""

    check_name = "check"  # what the notebook calls its checks
    of = ""  # the chapter that a sheet is a selection of

    def __init__(self, path: Path) -> None:
        self.path = path
        self.chapter = path.stem
        self.cells: list[Cell] = []
        self.header: dict = {}
        self._read()
        self._check_cells()
        self._check_exercises()

    @property
    def origin(self) -> str:
        """The file that it is written in, within the course."""
        return f"{self.path.parent.name}/{self.path.name}"

    @property
    def module(self) -> str:
        """The name of the reference module, such as ``attention``."""
        return self.header["module"]

    @property
    def title(self) -> str:
        """The chapter's title."""
        return self.header["title"]

    @cached_property
    def exercises(self) -> list[Exercise]:
        """The exercises in order of their descriptions."""
        found: dict[str, Exercise] = {}
        for cell in self.cells:
            if cell.kind == "description":
                name = cell.options["exercise"]
                if name in found:
                    self._refuse(cell, f"the exercise {name!r} is described twice")
                found[name] = Exercise(name, cell)
        for cell in self.cells:
            if cell.kind in ("answer", "check", "manual"):
                name = cell.options["exercise" if cell.kind == "answer" else cell.kind]
                if name not in found:
                    self._refuse(cell, f"no description of the exercise {name!r}")
                part = "answers" if cell.kind == "answer" else "graded"
                getattr(found[name], part).append(cell)
        return list(found.values())

    # --- reading ----------------------------------------------------------------------

    def _read(self) -> None:
        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SourceError(self.path, 1, f"cannot be read: {error}") from None
        try:
            notebook = jupytext.reads(text, fmt="md:myst")
        except (
            Exception
        ) as error:  # a bad header or option is YAML's or Jupytext's error
            reason = " ".join(str(error).split())
            raise SourceError(self.path, 1, f"is no text notebook: {reason}") from None
        self.header = notebook.metadata.get("course", {})
        for key in ("number", "module", "title"):
            if key not in self.header:
                raise SourceError(self.path, 1, f"the header has no course: {key}")
        position = 0
        for node in notebook.cells:
            found = text.find(node.source, position)
            position = position if found < 0 else found
            self.cells.append(Cell(node, text.count("\n", 0, position) + 1))
            position += len(node.source)
        self._number_exercises()

    def _number_exercises(self) -> None:
        """Give every exercise its number, and write it wherever it is named."""
        known = numbers.numbers(self.path.parent)
        for cell in self.cells:
            try:
                cell.node.source = numbers.with_numbers(cell.text, known)
            except numbers.UnknownExercise as unknown:
                self._refuse(cell, str(unknown), unknown.line)
            if cell.kind == "description":
                if not cell.text.startswith(numbers.HEADING):
                    start = f"the description must start with {numbers.HEADING!r}"
                    self._refuse(cell, start)
                number = known.get(str(cell.options["exercise"]), "?")
                cell.node.source = numbers.with_numbered_heading(cell.text, number)

    def _refuse(self, cell: Cell, reason: str, offset: int = 0) -> None:
        raise SourceError(self.path, cell.line + offset, reason)

    # --- cells ------------------------------------------------------------------------

    def _check_cells(self) -> None:
        for cell in self.cells:
            for option in cell.options.keys() - OPTIONS[cell.node.cell_type]:
                self._refuse(cell, f"unknown option {option!r} of the cell")
            for key in ("exercise", "check", "manual"):
                if not NAME.fullmatch(str(cell.options.get(key, "name"))):
                    self._refuse(cell, f"{key} must be words joined by hyphens")
            self._check_markers(cell)
            if cell.node.cell_type == "code":
                self._check_code(cell)

    def _check_markers(self, cell: Cell) -> None:
        allowed = {
            "answer": [(BEGIN_SOLUTION, END_SOLUTION)],
            "manual": [(BEGIN_SOLUTION, END_SOLUTION)],
            "check": [(BEGIN_HIDDEN, END_HIDDEN)],
        }.get(cell.kind, [])
        markers = {marker for pair in allowed for marker in pair}
        opened, regions, content = None, 0, ""
        for offset, line in enumerate(cell.text.splitlines()):
            word = RESERVED.search(line)
            if word is None:
                content += line.strip() if opened else ""
                continue
            if line.strip() not in markers:
                place = f"outside {_where(word.group(2))}" if not allowed else "here"
                self._refuse(
                    cell, f"marker {line.strip()!r} is misplaced {place}", offset
                )
            if word.group(1) == "BEGIN":
                if opened is not None:
                    self._refuse(cell, f"{line.strip()!r} inside another", offset)
                opened, content, regions = offset, "", regions + 1
                continue
            if opened is None:
                self._refuse(cell, f"{line.strip()!r} without its BEGIN", offset)
            if not content:
                self._refuse(cell, "the region between the markers is empty", opened)
            opened = None
        if opened is not None:
            self._refuse(cell, "the region is never closed by its END marker", opened)
        if allowed and not regions:
            self._refuse(cell, f"the cell has no {allowed[0][0]!r} … region")

    def _check_code(self, cell: Cell) -> None:
        try:
            tree = ast.parse(cell.text)
            ast.parse(without_regions(cell.text, BEGIN_SOLUTION, END_SOLUTION, STUB))
        except SyntaxError as error:
            self._refuse(cell, f"Python cannot read it: {error.msg}", error.lineno - 1)
        if cell.kind == "check":
            self._check_check(cell, tree)

    def _check_check(self, cell: Cell, tree: ast.Module) -> None:
        visible = ast.parse(without_regions(cell.text, BEGIN_HIDDEN, END_HIDDEN))
        if not any(_is_call(statement) for statement in visible.body):
            self._refuse(cell, "the check has no visible part: call a check function")
        if not isinstance(tree.body[0], ast.Expr) or _is_call(tree.body[0]):
            self._refuse(cell, "the check starts with a docstring: what it checks")
        if not _is_call(tree.body[-1]):
            # nbgrader reads a value left on the last line as partial credit
            self._refuse(cell, "the last line of a check must be a call of a check")

    # --- exercises --------------------------------------------------------------------

    def _check_exercises(self) -> None:
        if not self.exercises:
            raise SourceError(self.path, 1, "has no exercise")
        for exercise in self.exercises:
            self._check_description(exercise)
            self._check_parts(exercise)

    def _check_description(self, exercise: Exercise) -> None:
        cell = exercise.description
        if cell.options.get("difficulty") not in range(1, 6):
            self._refuse(cell, "difficulty must be 1, 2, 3, 4 or 5")
        minutes = cell.options.get("minutes")
        if type(minutes) is not int or minutes < 1:
            self._refuse(cell, "minutes must be a whole number from 1")
        wanted = ["**Goal.**"] + ([] if exercise.by_hand else ["**Shapes.**"])
        for word in wanted:
            if word not in cell.text:
                self._refuse(cell, f"the description has no paragraph {word!r}")
        if not exercise.by_hand:
            self._check_hints(exercise)

    def _check_hints(self, exercise: Exercise) -> None:
        start = self.cells.index(exercise.description)
        text = ""
        for cell in self.cells[start:]:
            if cell.node.cell_type != "markdown":
                break
            text += cell.text
        hints = re.findall(r"<summary>Hint (\d): ", text)
        if hints != ["1", "2", "3"]:
            reason = f"needs hints 1, 2 and 3 before its answer cell, has {hints}"
            self._refuse(exercise.description, reason)

    def _check_parts(self, exercise: Exercise) -> None:
        cell, name = exercise.description, exercise.name
        if not exercise.graded:
            self._refuse(cell, f"the exercise {name!r} has no check cell")
        for graded in exercise.graded:
            points = graded.options.get("points")
            if type(points) is not int or points < 1:
                self._refuse(graded, "points must be a whole number from 1")
        if exercise.by_hand:
            if len(exercise.graded) > 1 or exercise.answers:
                self._refuse(
                    cell, "an exercise graded by hand has one cell and no code"
                )
            return
        if len(exercise.answers) != 1:
            many = len(exercise.answers)
            self._refuse(cell, f"{name!r} needs one answer cell, has {many}")
        if self.cells.index(exercise.graded[0]) < self.cells.index(exercise.answers[0]):
            self._refuse(exercise.graded[0], "the check stands before its answer cell")


STUB = "raise NotImplementedError()"


def without_regions(text: str, begin: str, end: str, instead: str = "") -> str:
    """Cut the regions between two markers, putting one line in their place."""
    lines, inside = [], False
    for line in text.splitlines():
        if line.strip() == begin:
            inside = True
            if instead:
                lines.append(line.replace(begin, instead))
        elif line.strip() == end:
            inside = False
        elif not inside:
            lines.append(line)
    return "\n".join(lines)


def _where(word: str) -> str:
    return "a check cell" if word == "HIDDEN TESTS" else "an answer cell"


def _is_call(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
