"""Put a submitted notebook into a state that can be graded.

Students delete, copy, edit, split and retype cells, and other editors drop metadata.
``repair`` compares a submission with the released notebook, puts right what grading
needs, and says in words what it did. What a student wrote keeps running, in the order
in which it stands. Nothing here runs or imports anything of the student's.
"""

import ast
import copy
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from nbformat import NotebookNode
from rapidfuzz import fuzz

from autograder.grading.trees import parse_flat

ALIKE = 75  # how similar, in percent, two texts must be to count as the same check
PLACE_OF_ANSWER = "YOUR ANSWER HERE"  # nbgrader's stub of a text answer
DEFINITION = re.compile(r"^(?:def|class)\s+(\w+)", re.MULTILINE)


@dataclass(eq=False)
class _Cell:
    """A cell of the submission, and the released cell that it answers to, if any."""

    node: NotebookNode
    grading: dict | None  # the nbgrader metadata it came with
    id: str | None
    key: str | None = None  # the id of the released cell


@dataclass
class _Work:
    """What the steps of a repair share."""

    cells: list[_Cell]
    released: dict[str, NotebookNode]  # by cell id, in order
    notes: list[str] = field(default_factory=list)
    names: dict[str, set[str]] = field(default_factory=dict)  # that a text binds

    def of(self, key: str) -> list[_Cell]:
        """Return the submitted cells that answer to a released one."""
        return [cell for cell in self.cells if cell.key == key]


def repair(
    submitted: NotebookNode, release: NotebookNode
) -> tuple[NotebookNode, list[str]]:
    """Return a repaired copy of a submission, and what was done to it, in words."""
    work = _Work(
        [_read_cell(cell) for cell in submitted.get("cells", [])],
        {_key(cell, number): cell for number, cell in enumerate(release.cells)},
    )
    _match(work)
    for key, released in work.released.items():
        kind = kind_of(released)
        if kind == "check":
            _restore_check(work, key, released)
        elif kind in ("answer", "manual"):
            _restore_answer(work, key, released, kind)
    _put_back_missing(work)
    _move_checks_behind_answers(work)
    return _notebook(work, submitted, release), work.notes


def kind_of(cell: NotebookNode) -> str:
    """Say what a released cell is for: check, answer, manual, or given."""
    grading = cell.metadata.get("nbgrader", {})
    if grading.get("grade"):
        return "manual" if grading.get("solution") else "check"
    return "answer" if grading.get("solution") else "given"


# --- reading --------------------------------------------------------------------------


def _read_cell(cell: NotebookNode) -> _Cell:
    """Keep a cell's type, text and attachments; take its metadata apart."""
    kind = cell.get("cell_type")
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(map(str, source))
    kind = kind if kind in ("code", "markdown") else "raw"
    node = _new_cell(kind, str(source))
    if kind == "markdown" and isinstance(cell.get("attachments"), dict):
        node.attachments = copy.deepcopy(cell.attachments)
    metadata = cell.get("metadata")
    grading = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grading = grading if isinstance(grading, dict) else None
    return _Cell(node, grading, cell.get("id"))


def _new_cell(kind: str, source: str) -> NotebookNode:
    """Make a cell; nbformat's own way validates each, which takes longer than all."""
    node = NotebookNode(cell_type=kind, metadata=NotebookNode(), source=source, id="")
    if kind == "code":
        node.update(execution_count=None, outputs=[])
    return node


def _key(cell: NotebookNode, number: int) -> str:
    grading = cell.metadata.get("nbgrader", {})
    return grading.get("grade_id") or cell.get("id") or f"cell-{number}"


def _defined(text: str) -> set[str]:
    """Name the functions and classes that a text defines, even one with errors."""
    return set(DEFINITION.findall(text))


def _same_text(cell: _Cell, released: NotebookNode) -> bool:
    return cell.node.source.strip() == released.source.strip()


# --- matching -------------------------------------------------------------------------


def _match(work: _Work) -> None:
    """Find the submitted cells of every released one: by id, by names, by text."""
    for cell in work.cells:
        name = (cell.grading or {}).get("grade_id")
        if isinstance(name, str) and name in work.released:
            cell.key = name
    for same in (_same_id, _same_text):
        for key, released in work.released.items():
            if not work.of(key):
                _claim(work, key, [c for c in _free(work) if same(c, released)])
    finders = {"answer": _find_answer, "check": _find_check, "manual": _find_manual}
    for key, released in work.released.items():
        kind = kind_of(released)
        if kind in finders and not work.of(key):
            _claim(work, key, finders[kind](work, key, released))


def _free(work: _Work) -> list[_Cell]:
    return [cell for cell in work.cells if cell.key is None]


def _claim(work: _Work, key: str, candidates: Iterable[_Cell]) -> None:
    """Take the last candidate for a released cell; say so where grades depend on it."""
    for cell in list(candidates)[-1:]:
        cell.key = key
        if kind_of(work.released[key]) != "given":
            how = "without its metadata" if cell.grading is None else "under another id"
            work.notes.append(f"cell {key}: found {how}")


def _same_id(cell: _Cell, released: NotebookNode) -> bool:
    return cell.id is not None and cell.id == released.get("id")


def _find_answer(work: _Work, key: str, released: NotebookNode) -> list[_Cell]:
    """Find the cells that define what the answer defines."""
    del key
    names = _defined(released.source)
    return [cell for cell in _free(work) if names & _defined(cell.node.source)]


def _find_check(work: _Work, key: str, released: NotebookNode) -> list[_Cell]:
    """Find the cell whose text is most like the check's, if it is like enough."""
    del key
    scored = [
        (_likeness(cell.node.source, released.source), number, cell)
        for number, cell in enumerate(_free(work))
    ]
    likeness, _, best = max(scored, default=(0, 0, None))
    return [best] if best is not None and likeness >= ALIKE else []


def _likeness(text: str, other: str) -> float:
    """Compare two texts, in percent; 0 if they are not alike enough to matter."""
    return fuzz.ratio(text, other, score_cutoff=ALIKE)


def _find_manual(work: _Work, key: str, released: NotebookNode) -> list[_Cell]:
    """Find a text that starts like the released cell, or stands in its place."""
    opening = released.source.partition(PLACE_OF_ANSWER)[0].strip()
    free = _free(work)
    if opening:
        found = [cell for cell in free if opening in cell.node.source]
        if found:
            return found
    place = _place(work, key)
    return [
        cell
        for cell in work.cells[place : place + 1]
        if cell.key is None and cell.node.cell_type != "code"
    ]


# --- restoring ------------------------------------------------------------------------


def _restore_check(work: _Work, key: str, released: NotebookNode) -> None:
    """Keep the last copy of a check cell, as it was released; drop the others."""
    found = work.of(key)
    if not found:
        return
    kept = found[-1]
    if len(found) > 1:
        work.notes.append(f"check cell {key}: {len(found) - 1} copies dropped")
        work.cells = [cell for cell in work.cells if cell is kept or cell.key != key]
    if kept.node.cell_type != released.cell_type:
        work.notes.append(f"check cell {key}: made a {released.cell_type} cell again")
    if kept.node.source.rstrip() != released.source.rstrip():
        work.notes.append(f"check cell {key}: its text was changed, restored")
    _note_changed_metadata(work, kept, key, released)
    kept.node = copy.deepcopy(released)


def _restore_answer(work: _Work, key: str, released: NotebookNode, kind: str) -> None:
    """Keep one copy as the answer; the others stay and run as ordinary cells."""
    found = _drop_untouched_copies(work, key, released)
    if not found:
        return
    kept = found[0]
    if len(found) > 1:
        others = (
            "the other stays as an ordinary cell"
            if len(found) == 2
            else "the others stay as ordinary cells"
        )
        work.notes.append(f"{kind} cell {key}: there {len(found)} times, {others}")
    for cell in found:
        if cell.node.cell_type != released.cell_type:
            work.notes.append(
                f"{kind} cell {key}: made a {released.cell_type} cell again"
            )
            cell.node = _new_cell(released.cell_type, cell.node.source)
    _note_changed_metadata(work, kept, key, released)
    kept.node.metadata = copy.deepcopy(released.metadata)


def _drop_untouched_copies(
    work: _Work, key: str, released: NotebookNode
) -> list[_Cell]:
    """Drop copies of the stub where the student has written an answer in another."""
    found = work.of(key)
    stubs = [cell for cell in found if _same_text(cell, released)]
    if stubs and len(stubs) < len(found):
        work.notes.append(f"cell {key}: an untouched copy of the stub dropped")
        work.cells = [
            cell for cell in work.cells if all(cell is not stub for stub in stubs)
        ]
    return work.of(key)


def _note_changed_metadata(
    work: _Work, cell: _Cell, key: str, released: NotebookNode
) -> None:
    wanted = released.metadata.nbgrader
    given = cell.grading
    if given is None or given.get("grade_id") != key:
        return  # the note says already that it was found by other means
    fields = ("grade", "solution", "locked", "points")
    if any(given.get(name) != wanted.get(name) for name in fields):
        work.notes.append(f"cell {key}: its nbgrader metadata were changed, restored")


# --- putting back ---------------------------------------------------------------------


def _put_back_missing(work: _Work) -> None:
    """Put missing cells back behind the cell they stood behind.

    A missing answer is not put back: its stub would stand where the student, who may
    have written the function elsewhere, did not put it.
    """
    for key, released in work.released.items():
        if work.of(key):
            continue
        kind = kind_of(released)
        if kind == "answer":
            work.notes.append(f"answer cell {key}: missing, nothing put in its place")
        elif kind != "given" or _is_needed(work, released):
            node = copy.deepcopy(released)
            cell = _Cell(node, node.metadata.get("nbgrader"), node.get("id"), key)
            work.cells.insert(_place(work, key), cell)
            what = "given code" if kind == "given" else f"{kind} cell"
            work.notes.append(f"{what} {key}: missing, put back")


def _place(work: _Work, key: str) -> int:
    """Say where a released cell belongs: behind the nearest one before it."""
    keys = list(work.released)
    for before in reversed(keys[: keys.index(key)]):
        at = [index for index, cell in enumerate(work.cells) if cell.key == before]
        if at:
            return at[-1] + 1
    return 0


def _is_needed(work: _Work, released: NotebookNode) -> bool:
    """Tell whether given code binds a name that nothing else in the notebook binds."""
    if released.cell_type != "code":
        return False
    code = [cell.node.source for cell in work.cells if cell.node.cell_type == "code"]
    for text in code:
        if text not in work.names:
            work.names[text] = _bound(text)
    elsewhere = set().union(*(work.names[text] for text in code))
    return bool(_bound(released.source) - elsewhere)


def _bound(text: str) -> set[str]:
    """Name what a cell imports, defines or assigns at its top level."""
    tree = parse_flat(text)
    if tree is None:
        return _defined(text)
    names: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            aliases = statement.names
            names |= {(a.asname or a.name).partition(".")[0] for a in aliases}
        elif isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            names.add(statement.name)
        elif isinstance(statement, ast.Assign):
            targets = [node for t in statement.targets for node in ast.walk(t)]
            names |= {node.id for node in targets if isinstance(node, ast.Name)}
    return names


def _move_checks_behind_answers(work: _Work) -> None:
    """Move a check that stands before its answer behind it: it could only fail."""
    answer: str | None = None
    for key, released in work.released.items():
        kind = kind_of(released)
        if kind == "answer":
            answer = key
        if kind != "check" or answer is None or not work.of(answer):
            continue
        check = work.of(key)[0]
        target = work.of(answer)[-1]
        if work.cells.index(check) < work.cells.index(work.of(answer)[0]):
            work.cells.remove(check)
            work.cells.insert(work.cells.index(target) + 1, check)
            work.notes.append(f"check cell {key}: moved behind its answer")


# --- writing --------------------------------------------------------------------------


def _notebook(
    work: _Work, submitted: NotebookNode, release: NotebookNode
) -> NotebookNode:
    """Assemble the notebook: the release's kernel, no outputs, ids that are unique."""
    given = submitted.get("metadata")
    kernel = given.get("kernelspec") if isinstance(given, dict) else None
    name = kernel.get("name") if isinstance(kernel, dict) else None
    wanted = release.metadata.get("kernelspec", {}).get("name")
    if name is not None and name != wanted:
        work.notes.append(f"kernel {name!r} replaced by {wanted!r}")
    notebook = NotebookNode(
        nbformat=4,
        nbformat_minor=5,
        metadata=copy.deepcopy(release.metadata),
        cells=[],
    )
    used: set[str] = set()
    for number, cell in enumerate(work.cells):
        ident = cell.key if cell.key and cell.key not in used else f"cell-{number}-own"
        used.add(ident)
        cell.node.id = ident
        notebook.cells.append(cell.node)
    return notebook
