"""Make the notebooks of the sample class, from the sources and the bank of mistakes.

Each public function writes one submission: ``place`` is STUDENT/CHAPTER.
"""

import ast
import copy
import functools
import importlib
import json
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder import generator
from autograder.generator.modules import without_markers
from mistakes import handed_in
from tests import chapters

BANK = generator.ROOT / "solutions" / "mistakes"


# --- right ----------------------------------------------------------------------------


def solved(place: Path) -> None:
    """Every answer right, and a trained model where one is asked for."""
    _write(place, _solved(place.name))
    handed_in.put(place.name, place)


def other_style(place: Path) -> None:
    """Every answer right, in another style wherever the bank has one."""
    notebook = _solved(place.name)
    for exercise in sorted(_bank(place.name)):
        if None in _bank(place.name)[exercise]:
            _answer_from_bank(notebook, place.name, exercise, None)
    _write(place, notebook)


def warns(place: Path, exercise: str) -> None:
    """Right, and noisy on stderr: a warning, a log line, a progress bar."""
    notebook = _solved(place.name)
    cell = _cell(notebook, exercise)
    name = _defined(cell.source)
    cell.source += f"""


import functools, logging, sys, warnings
from tqdm import tqdm

logging.basicConfig(level=logging.INFO)

def noisy(function):
    @functools.wraps(function)
    def run(*args, **kwargs):
        warnings.warn("this function is deprecated")
        logging.info("a line of a log")
        for step in tqdm(range(3)):
            pass
        print("debugging", file=sys.stderr)
        print("debugging", file=sys.__stderr__, flush=True)
        return function(*args, **kwargs)
    return run

{name} = noisy({name})
warnings.warn("at the end of the cell")
"""
    _write(place, notebook)


def renamed(place: Path, name: str) -> None:
    """Right, under another file name."""
    _write(place, _solved(place.name), name)


def old_format(place: Path) -> None:
    """Right, saved in notebook format 3 with another kernel."""
    notebook = _solved(place.name)
    notebook.metadata.kernelspec = {"name": "conda-env-ml-py", "display_name": "ml"}
    old = nbformat.convert(copy.deepcopy(notebook), 3)
    old.metadata.kernelspec = notebook.metadata.kernelspec
    place.mkdir(parents=True)
    nbformat.write(old, place / f"{place.name}.ipynb", version=nbformat.NO_CONVERT)


def no_metadata(place: Path) -> None:
    """Right, saved by an editor that drops metadata and numbers the cells anew."""
    notebook = _solved(place.name)
    for number, cell in enumerate(notebook.cells):
        cell.metadata, cell.id = {}, f"{number:08x}"
    _write(place, notebook)


# --- wrong ----------------------------------------------------------------------------


def without_model(place: Path) -> None:
    """Every answer right, and the trained model not handed in."""
    _write(place, _solved(place.name))


def blank(place: Path) -> None:
    """As it was handed out."""
    _write(place, generator.release_notebook(place.name))


def half_done(place: Path, first_untouched: str) -> None:
    """Answers up to an exercise; from there on as handed out."""
    done = _solved(place.name)
    untouched = generator.release_notebook(place.name)
    at = done.cells.index(_cell(done, first_untouched))
    done.cells[at:] = untouched.cells[at:]
    _write(place, done)


def mistake(place: Path, exercise: str, name: str) -> None:
    """Right but for one mistake out of the bank."""
    notebook = _solved(place.name)
    _answer_from_bank(notebook, place.name, exercise, name)
    _write(place, notebook)


def body(place: Path, exercise: str, statement: str) -> None:
    """Right but for one function, whose body is one statement."""
    notebook = _solved(place.name)
    cell = _cell(notebook, exercise)
    name = _defined(cell.source)
    cell.source += f"\n\ndef {name}(*args, **kwargs):\n    {statement}\n"
    _write(place, notebook)


# --- cells deleted, copied, edited ----------------------------------------------------


def check_deleted(place: Path, right: str, wrong: str, name: str) -> None:
    """Two check cells deleted: of a right answer, and of a wrong one."""
    notebook = _solved(place.name)
    _answer_from_bank(notebook, place.name, wrong, name)
    gone = [_cell(notebook, f"test-{exercise}") for exercise in (right, wrong)]
    notebook.cells = [c for c in notebook.cells if all(c is not g for g in gone)]
    _write(place, notebook)


def answer_duplicated(place: Path, exercise: str, name: str) -> None:
    """The answer cell copied and corrected in the copy: the second one is right."""
    notebook = _solved(place.name)
    second = copy.deepcopy(_cell(notebook, exercise))
    second.id = "a-copy"
    _answer_from_bank(notebook, place.name, exercise, name)
    at = notebook.cells.index(_cell(notebook, exercise))
    notebook.cells.insert(at + 1, second)
    _write(place, notebook)


def check_edited(place: Path, exercise: str, name: str) -> None:
    """A wrong answer, and its check turned into something that always passes."""
    notebook = _solved(place.name)
    _answer_from_bank(notebook, place.name, exercise, name)
    check = _cell(notebook, f"test-{exercise}")
    check.source = "print('all good')"
    check.metadata.nbgrader["points"] = 100
    _write(place, notebook)


def answer_as_markdown(place: Path, exercise: str) -> None:
    """Right, with one answer cell turned into Markdown by a slip of the keyboard."""
    notebook = _solved(place.name)
    at = notebook.cells.index(_cell(notebook, exercise))
    old = notebook.cells[at]
    new = nbformat.v4.new_markdown_cell(old.source, metadata=old.metadata, id=old.id)
    notebook.cells[at] = new
    _write(place, notebook)


# --- no notebook to speak of ----------------------------------------------------------


def truncated(place: Path) -> None:
    """A right notebook of which only the first half arrived."""
    solved(place)
    path = place / f"{place.name}.ipynb"
    content = json.loads(path.read_text("utf-8"))
    text = json.dumps(content)  # one line, as some tools write it
    path.write_text(text[: len(text) // 2], encoding="utf-8")


def empty_folder(place: Path) -> None:
    """A folder with nothing in it."""
    place.mkdir(parents=True)


def nothing(place: Path) -> None:
    """Not even a folder."""


# --- parts ----------------------------------------------------------------------------


def _write(place: Path, notebook: NotebookNode, name: str = "") -> None:
    place.mkdir(parents=True)
    nbformat.write(notebook, place / (name or f"{place.name}.ipynb"))


def _cell(notebook: NotebookNode, grade_id: str) -> NotebookNode:
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") == grade_id:
            return cell
    raise KeyError(grade_id)


@functools.cache
def _solved_once(chapter: str) -> NotebookNode:
    source = generator.source_notebook(chapter)
    notebook = generator.release_notebook(chapter)
    for cell in notebook.cells:
        grading = cell.metadata.get("nbgrader", {})
        if grading.get("solution"):
            answer = _cell(source, grading["grade_id"])
            cell.source = without_markers(answer.source)
    return notebook


def _solved(chapter: str) -> NotebookNode:
    return copy.deepcopy(_solved_once(chapter))


def _defined(text: str) -> str:
    """Name the first function or class of a cell."""
    nodes = ast.parse(text).body
    return next(n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef)))


@functools.cache
def _module(chapter: str) -> tuple[str, ast.Module]:
    text = (BANK / f"{generator.read(chapter).module}.py").read_text("utf-8")
    return text, ast.parse(text)


@functools.cache
def _bank(chapter: str) -> dict[str, dict[str | None, tuple[str, ast.stmt]]]:
    """Find the bank's answers by exercise and mistake; None is a right variant.

    An answer is the name it replaces and the statement that makes it. Statements and
    entries of the bank are in the same order; some entries are made in loops.
    """
    entries = iter(chapters.by_hand(chapter))
    bank = vars(importlib.import_module(f"mistakes.{generator.read(chapter).module}"))
    found: dict[str, dict[str | None, tuple[str, ast.stmt]]] = {}
    for node in _module(chapter)[1].body:
        said = _said(node, bank)
        if said is None:
            continue
        entry = next(each for each in entries if [each.exercise, each.mistake] == said)
        answer = entry.answer.__name__, node
        found.setdefault(entry.exercise, {}).setdefault(entry.mistake, answer)
    return found


def _said(node: ast.stmt, bank: dict) -> list[str | None] | None:
    """Read exercise and mistake where a statement calls `wrong` or `right`."""
    calls = getattr(node, "decorator_list", [])
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        calls = [node.value.func]
    for call in calls:
        name = getattr(getattr(call, "func", None), "id", "")
        if name in ("wrong", "right"):
            arguments = [eval(ast.unparse(each), bank) for each in call.args]
            return arguments if name == "wrong" else [*arguments, None]
    return None


def _answer_from_bank(
    notebook: NotebookNode, chapter: str, exercise: str, mistake: str | None
) -> None:
    """Put an answer of the bank in place of the definition of its name."""
    name, node = _bank(chapter)[exercise][mistake]
    text = _text(chapter, node)
    if isinstance(node, ast.Expr):
        node = node.value.args[0]
        text = f"{name} = {_text(chapter, node)}"
    elif node.name != name:
        text += f"\n\n\n{name} = {node.name}"
    cell = _cell(notebook, exercise)
    place = next(
        each
        for each in ast.parse(cell.source).body
        if getattr(each, "name", None) == name
    )
    lines = cell.source.splitlines()
    lines[place.lineno - 1 : place.end_lineno] = [text]
    cell.source = "\n".join([*_needs(chapter, node), "", *lines])


@functools.cache
def _text(chapter: str, node: ast.stmt | ast.expr) -> str:
    return ast.get_source_segment(_module(chapter)[0], node)


def _needs(chapter: str, node: ast.stmt | ast.expr) -> list[str]:
    """Return the bank's imports and helpers that an answer uses."""
    body = _module(chapter)[1].body
    helpers = {name: each for each in body for name in _helper_names(each)}
    wanted, found = [node], []
    while wanted:
        used = {n.id for n in ast.walk(wanted.pop()) if isinstance(n, ast.Name)}
        for name in sorted(used & helpers.keys()):
            each = helpers.pop(name)
            if each not in found:
                found.append(each)
                wanted.append(each)
    found.sort(key=lambda each: each.lineno)
    return [_text(chapter, each) for each in found]


def _helper_names(node: ast.stmt) -> set[str]:
    """Name what a statement of the bank lends to answers; they have decorators."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        bank = getattr(node, "module", None) == "mistakes"
        names = [] if bank else node.names
        return {(each.asname or each.name).split(".")[0] for each in names}
    if isinstance(node, ast.Assign):
        targets = [part for target in node.targets for part in ast.walk(target)]
        return {part.id for part in targets if isinstance(part, ast.Name)}
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.decorator_list:
        return {node.name}
    return set()
