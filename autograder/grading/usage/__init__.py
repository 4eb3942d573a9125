"""Read whether an answer uses what its exercise forbids, on the trusted side.

While a notebook runs, ``autograder.forbidden`` refuses; but that happens in the
student's process, where it can be switched off. For the grade the code itself is read:
nothing of it runs. A finding is *certain* (the answer names torch.softmax, however it
got there) or it *cannot be told* (a name is computed while the code runs), which is
for a person to look at. What counts is what an answer reaches by its names through the
notebook, and nothing else: a figure may use what an exercise forbids. An answer is
judged where its hidden tests run, after the last cell: with the names that its check
found, and with what cells have made of their objects since.

It reads, it does not prove. Whoever writes an interpreter of their own gets by.
"""

import ast
import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from autograder import forbidden
from autograder.expect import ADVICE, CheckFailure
from autograder.grading.clean import plain
from autograder.grading.paper import exercise_of
from autograder.grading.usage import cells
from autograder.grading.usage.interpreter import Interpreter
from autograder.grading.usage.state import Elsewhere, Moment, TooMuch
from autograder.grading.usage.values import Note

MOST_FINDINGS = 5  # of an exercise; more say nothing new
LONGEST_LINE = 200  # characters of a line that is shown
TOO_MUCH = "the notebook's code takes too long to follow"
TOO_LONG = "a cell is too long, or nested too deeply, to be read"
CHECKS = "autograder.chapters."
DOUBT = "it is used if a name stands for what it stood for before, or is bound later"


@dataclass(frozen=True)
class Demand:
    """What a check asks for, and what its answer must not use.

    Args:
        grade_id: of the check's cell.
        asked: the names that the check is called with; the answer is the first.
        forbidden: names that ``autograder.forbidden`` knows.
        check: the name of the check.
        read: where the book explains it.
    """

    grade_id: str
    asked: tuple[str, ...]
    forbidden: frozenset[str]
    check: str = ""
    read: str = ""


@dataclass(frozen=True)
class Cell:
    """A code cell of a notebook.

    Args:
        number: its place in the notebook, from 1.
        text: its code.
        grade_id: nbgrader's name of it, if it has one.
        is_given: whether it stands as it was handed out.
    """

    number: int
    text: str
    grade_id: str = ""
    is_given: bool = False


@dataclass(frozen=True)
class Finding:
    """What an answer uses, or why that cannot be told.

    Args:
        grade_id: of the check that asks for the answer.
        is_certain: whether it uses something that is forbidden.
        name: the forbidden name, if it is certain.
        what: what the line names, or why it cannot be told.
        cell: the number of the cell it stands in.
        line: the number of the line in that cell.
        text: the line.
    """

    grade_id: str
    is_certain: bool
    name: str
    what: str
    cell: int
    line: int
    text: str

    def flag(self) -> dict:
        """Return what a person is told who is to read the line."""
        return {
            "exercise": exercise_of(self.grade_id),
            "cell": self.cell,
            "line": self.line,
            "text": plain(self.text, LONGEST_LINE),
            "why": plain(self.what, LONGEST_LINE),
        }

    def failure(self, demand: Demand) -> CheckFailure:
        """Return what the check says, in the form of a refusal while it runs."""
        text = plain(self.text, LONGEST_LINE)
        what = forbidden.message(self.name)
        found = CheckFailure(
            what,
            got=f"cell {self.cell}, line {self.line}: `{text}` names {self.what}",
            why=ADVICE["forbidden"],
            mistake=what,
        )
        found.check, found.read = demand.check, demand.read
        return found


def demands(checks: Mapping[str, str], imports: Iterable[str]) -> dict[str, Demand]:
    """Return what each check that forbids something demands, by grade_id.

    No check runs: what a check forbids is read off the function that its cell calls.

    Args:
        checks: the text of the check cells, by grade_id.
        imports: import statements of the notebook, which bring the checks in.
    """
    modules = _modules(imports)
    found = {}
    for grade_id, text in checks.items():
        names, called = dict[str, None](), ("", "")
        banned: set[str] = set()
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id=alias), attr=check)
                ) if alias in modules:
                    function: Any = getattr(modules[alias], check, None)
                    if getattr(function, "forbidden", ()):
                        banned |= set(function.forbidden)
                        called = check, function.read
                    asked = [
                        each.id for each in node.args if isinstance(each, ast.Name)
                    ]
                    names |= dict.fromkeys(asked)
        if banned:
            found[grade_id] = Demand(grade_id, tuple(names), frozenset(banned), *called)
    return found


def _modules(imports: Iterable[str]) -> dict[str, ModuleType]:
    found = {}
    for statement in imports:
        for node in ast.parse(statement).body:
            if isinstance(node, ast.ImportFrom):
                for each in node.names:
                    path = f"{node.module}.{each.name}"
                    if path.startswith(CHECKS):
                        found[each.asname or each.name] = importlib.import_module(path)
    return found


def read(notebook: Sequence[Cell], wanted: Mapping[str, Demand]) -> list[Finding]:
    """Return what the answers of a notebook use that is forbidden, or may be.

    No text raises an exception, or takes longer than a moment.

    Args:
        notebook: its code cells in order; a check stands where its cell does.
        wanted: what the checks demand, by grade_id.
    """
    if not wanted:
        return []
    reading = _Reading(notebook, wanted)
    try:
        reading.read()
    except (TooMuch, RecursionError, MemoryError) as error:
        what = TOO_MUCH if isinstance(error, TooMuch) else TOO_LONG
        reading.give_up(what)
    return reading.findings()


def unread(wanted: Mapping[str, Demand]) -> list[Finding]:
    """Return what to say of a notebook that could not be read in time."""
    return [Finding(each, False, "", TOO_MUCH, 0, 0, "") for each in wanted]


class _Reading:
    """A notebook while it is read."""

    def __init__(self, notebook: Sequence[Cell], wanted: Mapping[str, Demand]) -> None:
        self.notebook, self.wanted = notebook, wanted
        self.moments: dict[str, Moment] = {}  # by check
        self.notes: dict[str, dict[Note, None]] = {name: {} for name in wanted}
        self.waiting = set(wanted)
        self.interpreter = Interpreter()
        self.unread: list[Note] = []

    def read(self) -> None:
        """Read all cells, and then judge the answers, as their hidden tests do.

        What was handed out and stands behind the last check does no more than call what
        is read in any case.
        """
        checks = [n for n, c in enumerate(self.notebook) if c.grade_id in self.wanted]
        last = max(checks, default=0)
        for place, cell in enumerate(self.notebook):
            self.place = place
            if cell.grade_id in self.wanted:
                self.moments[cell.grade_id] = self.interpreter.remember()
            elif not (self._is_check(cell) or (cell.is_given and place > last)):
                self._run(place, cell)
        self.interpreter.call_all()
        for doubting in (False, True):  # the doubts last: they find more than there is
            for name, moment in self.moments.items():
                self.interpreter.go_back(moment)
                self._judge(name, doubting=doubting)
        self.waiting.clear()

    def give_up(self, what: str) -> None:
        """Say of what is left that it cannot be told."""
        for name in self.waiting:
            self.notes[name][Note(self.place, 0, what)] = None

    def findings(self) -> list[Finding]:
        """Return what was found, by the order of the demands."""
        return [found for name in self.wanted for found in self._findings_of(name)]

    def _is_check(self, cell: Cell) -> bool:
        return cell.grade_id.startswith("test-")

    def _run(self, place: int, cell: Cell) -> None:
        try:
            tree = cells.tree(cell.text)
        except cells.TooLong:
            self.unread.append(Note(place, 0, TOO_LONG, always=True))
            return
        if tree is not None:
            try:
                self.interpreter.run(tree, place, trusted=cell.is_given)
            except RecursionError:
                self.unread.append(Note(place, 0, TOO_LONG, always=True))

    def _judge(self, name: str, *, doubting: bool) -> None:
        """Note what the answer to a demand uses, or what it may use."""
        demand = self.wanted[name]
        asked = [_name(each) for each in demand.asked]
        elsewhere = self._elsewhere(demand)
        found = self.interpreter.judge(asked, elsewhere, doubting=doubting)
        if doubting:
            found = {_doubted(each) for each in found - self.notes[name].keys()}
        self.notes[name] |= dict.fromkeys(found)

    def _elsewhere(self, demand: Demand) -> Elsewhere:
        """Return what other exercises answer for, and with which values."""
        found = {}
        for name, moment in self.moments.items():
            other = self.wanted[name]
            own = other.asked[:1]
            if own and own != demand.asked[:1] and own[0] in moment.names:
                found[own[0]] = other.forbidden, moment.names[own[0]].values
        return found

    def _findings_of(self, name: str) -> list[Finding]:
        demand = self.wanted[name]
        always = self.interpreter.always | set(self.unread)
        found = [
            each
            for each in dict.fromkeys([*self.notes[name], *always])
            if each.concerns(demand.forbidden)
        ]
        found.sort(key=lambda each: (not each.names, each.cell, each.line, each.what))
        if any(each.names for each in found):  # then nobody needs to read the rest
            found = [each for each in found if each.names]
        made = [self._finding(demand, each) for each in found]
        return list(dict.fromkeys(made))[:MOST_FINDINGS]

    def _finding(self, demand: Demand, note: Note) -> Finding:
        cell = self.notebook[note.cell]
        lines = cell.text.split("\n")
        text = lines[note.line - 1].strip() if 0 < note.line <= len(lines) else ""
        names = sorted(note.names & demand.forbidden)
        return Finding(
            demand.grade_id,
            bool(names),
            names[0] if names else "",
            note.what[:LONGEST_LINE],
            cell.number,
            note.line,
            text[:LONGEST_LINE],
        )


def _doubted(note: Note) -> Note:
    """Return a note on what is only used if a name stands for an old value."""
    if not note.names:
        return note
    what = f"{note.what}: {DOUBT}"
    return replace(note, what=what, names=frozenset(), about=note.names)


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load(), lineno=0, col_offset=0)
