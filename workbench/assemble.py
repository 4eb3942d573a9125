"""Make your own transformer/ from completed notebooks.

Every part that you wrote is taken out of your notebooks and put into the module of its
chapter. The notebooks' checks are run first, so that you learn which parts are missing
or wrong; with --fill these come from the reference, where you have it.
"""

import ast
import importlib.util
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from tqdm import tqdm

from workbench.errors import WorkbenchError

PACKAGE = "transformer"
SECONDS_PER_CELL = 120

YOURS, WRONG, UNWRITTEN = "yours", "yours, but fails its check", "not written"
UNREADABLE, FILLED, UNCHECKED = "not Python", "from the reference", "yours, not checked"


class BadInput(WorkbenchError):
    """A file cannot be used; says which and why."""


@dataclass
class Part:
    """What one cell gives to the module: imports, or the answer to an exercise."""

    exercise: str | None  # None: given code
    text: str
    state: str = UNCHECKED
    why: str = ""

    @property
    def names(self) -> list[str]:
        """The functions and classes that it defines."""
        return [
            node.name
            for node in ast.parse(self.text).body
            if isinstance(node, (ast.FunctionDef, ast.ClassDef))
        ]


@dataclass
class Chapter:
    """A completed notebook and the parts in it."""

    path: Path
    name: str
    module: str
    notebook: NotebookNode
    parts: list[Part] = field(default_factory=list)


def run(paths: list[Path], out: Path, *, fill: bool = False, check: bool = True) -> int:
    """Write OUT/transformer/, print a table; return 1 if a part is not right, else 0.

    Raises:
        BadInput: if a path is not there, or holds no notebook of this course.
    """
    chapters = find_chapters(paths)
    package = out / PACKAGE
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text('"""My own parts of a Transformer."""\n')
    beside = [each.path.parent / PACKAGE for each in chapters]
    for chapter in tqdm(chapters, desc="notebooks", unit="notebook", disable=not check):
        if check:
            run_checks(chapter, package)
        if fill:
            fill_from_reference(chapter, beside)
        text = module_text(chapter)
        (package / f"{chapter.module}.py").write_text(text, encoding="utf-8")
    print_table(chapters)
    parts = [part for each in chapters for part in each.parts if part.exercise]
    wrong = [part for part in parts if part.state in (WRONG, UNWRITTEN, UNREADABLE)]
    print(f"\n{package}: {len(parts) - len(wrong)} of {len(parts)} parts are there")
    if wrong and not fill:
        print("--fill takes the others from the reference, where you have it.")
    return 1 if wrong else 0


# --- reading --------------------------------------------------------------------------


def find_chapters(paths: list[Path]) -> list[Chapter]:
    """Read the course's notebooks in files and folders, in the chapters' order."""
    files = []
    for path in paths:
        if path.is_dir():
            found = sorted(path.rglob("*.ipynb"))
            files += [each for each in found if ".ipynb_checkpoints" not in each.parts]
        elif path.is_file():
            files.append(path)
        else:
            raise BadInput(f"{path}: there is no such file or folder")
    chapters: dict[str, Chapter] = {}
    for path in files:
        chapter = read_chapter(path)
        if chapter is None:
            if path in paths:
                raise BadInput(f"{path}: is not an exercise notebook of this course")
            continue
        if chapter.name in chapters:
            first = chapters[chapter.name].path
            raise BadInput(f"{path}: {first} is a notebook of the same chapter")
        chapters[chapter.name] = chapter
    if not chapters:
        places = ", ".join(map(str, paths))
        raise BadInput(f"{places}: no exercise notebook of this course")
    return [chapters[name] for name in sorted(chapters)]


def read_chapter(path: Path) -> Chapter | None:
    """Read a notebook and take out its parts; None if it is not one of the course."""
    try:
        notebook = nbformat.read(path, as_version=4)
    except (OSError, ValueError, AttributeError, nbformat.ValidationError) as error:
        reason = (
            str(error).splitlines()[0][:100] if str(error) else type(error).__name__
        )
        raise BadInput(f"{path}: cannot be read as a notebook: {reason}") from None
    course = notebook.metadata.get("course", {})
    if not {"chapter", "module"} <= set(course):
        return None
    name = course.get("of") or course["chapter"]  # a sheet is a selection of one
    chapter = Chapter(path, name, course["module"], notebook)
    for cell in notebook.cells:
        if cell.metadata.get("course", {}).get("module"):
            exercise = cell.metadata.get("nbgrader", {}).get("grade_id")
            chapter.parts.append(read_part(exercise, cell.source))
    return chapter


def read_part(exercise: str | None, source: str) -> Part:
    """Keep a cell's imports and definitions; leave out what would run."""
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        why = f"line {error.lineno}: {error.msg}"
        return Part(exercise, "", UNREADABLE, why)
    kept = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign)
    lines = source.splitlines()
    pieces = [_source_of(node, lines) for node in tree.body if isinstance(node, kept)]
    part = Part(exercise, _join(pieces))
    if exercise and "raise NotImplementedError" in source:
        part.state = UNWRITTEN
    return part


# --- checking -------------------------------------------------------------------------


def run_checks(chapter: Chapter, package: Path) -> None:
    """Run the notebook beside the parts assembled so far; note which checks fail."""
    notebook = nbformat.from_dict(chapter.notebook)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(package, Path(folder) / PACKAGE)
        stopped = _run_notebook(notebook, folder)
    messages: dict[str, str] = {}
    for cell in notebook.cells:
        grading = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code" and grading.get("grade"):
            exercise = _exercise_of(grading["grade_id"])
            messages[exercise] = messages.get(exercise) or _message(cell, stopped)
    for part in chapter.parts:
        if part.exercise and part.state == UNCHECKED:
            part.why = messages.get(part.exercise, "its check cell is missing")
            part.state = WRONG if part.why else YOURS


def _run_notebook(notebook: NotebookNode, folder: str) -> str:
    client = NotebookClient(
        notebook,
        timeout=SECONDS_PER_CELL,
        allow_errors=True,
        resources={"metadata": {"path": folder}},
    )
    try:
        client.execute()
    except CellTimeoutError:
        return f"a cell ran for more than {SECONDS_PER_CELL} seconds"
    except DeadKernelError:
        return "the kernel died"
    return ""


def _message(cell: NotebookNode, stopped: str) -> str:
    """The first line of what a check said; empty if it passed."""
    for output in cell.get("outputs", []):
        if output.output_type == "error":
            return output.evalue.splitlines()[0] if output.evalue else output.ename
    if cell.get("execution_count") is None:
        return stopped or "it was not run"
    return ""


def _exercise_of(grade_id: str) -> str:
    name = grade_id.removeprefix("test-")
    stem, _, number = name.rpartition("-")
    return stem if number.isdigit() else name


# --- filling and writing --------------------------------------------------------------


def fill_from_reference(chapter: Chapter, beside: list[Path]) -> None:
    """Replace what is missing or wrong by the reference's definitions of that name.

    A chapter's reference is handed out with the chapters after it, so it is looked for
    in every transformer/ in ``beside``.
    """
    definitions = _reference(chapter, beside)
    for part in chapter.parts:
        if part.exercise and part.state in (WRONG, UNWRITTEN, UNREADABLE):
            names = part.names or _names_to_fill(chapter, part)
            if names and all(name in definitions for name in names):
                part.text = _join([definitions[name] for name in names])
                part.state, part.why = FILLED, part.state


def _names_to_fill(chapter: Chapter, part: Part) -> list[str]:
    """What an unreadable answer should define: its own lines still say so."""
    for cell in chapter.notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == part.exercise:
            heads = [line.split("(")[0] for line in cell.source.splitlines()]
            return [
                head.split()[1].rstrip(":")
                for head in heads
                if head.startswith(("def ", "class "))
            ]
    return []


def _reference(chapter: Chapter, beside: list[Path]) -> dict[str, str]:
    """The definitions of the chapter's module beside a notebook, or installed."""
    places = [chapter.path.parent / PACKAGE, *beside]
    spec = importlib.util.find_spec(PACKAGE)
    places += map(Path, spec.submodule_search_locations or []) if spec else []
    for place in places:
        path = place / f"{chapter.module}.py"
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            lines = text.splitlines()
            return {
                node.name: _source_of(node, lines)
                for node in ast.parse(text).body
                if isinstance(node, (ast.FunctionDef, ast.ClassDef))
            }
    return {}


def module_text(chapter: Chapter) -> str:
    """Write the chapter's module."""
    head = (
        f'"""Assembled from {chapter.path.name}.\n\n'
        'Change the notebook and assemble again.\n"""\n\n'
    )
    return head + _join([part.text for part in chapter.parts]) + "\n"


def print_table(chapters: list[Chapter]) -> None:
    """Print what became of every part."""
    rows = [
        (chapter.name, part.exercise, part.state, part.why)
        for chapter in chapters
        for part in chapter.parts
        if part.exercise
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=False)]
        print("  ".join([*cells, row[3]]).rstrip())


def _join(pieces: list[str]) -> str:
    return "\n\n\n".join(piece for piece in pieces if piece)


def _source_of(node: ast.stmt, lines: list[str]) -> str:
    first = min([node.lineno, *(each.lineno for each in _decorators(node))])
    return "\n".join(lines[first - 1 : node.end_lineno])


def _decorators(node: ast.stmt) -> list[ast.expr]:
    return getattr(node, "decorator_list", [])
