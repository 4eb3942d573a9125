"""From a sheet and the text notebooks that it chooses from to a source like theirs.

An exercise comes whole: its description, what is given with it, its answer and its
checks. Of the chapter's other cells come those whose names it uses. What follows its
check, a figure for example, comes if all that it uses is there, and is left out if not.

What a cell uses is found by name, in the order of the chapter. A name may lead to the
answer of another exercise. If that one's chapter is not asked for at all, its module is
handed out with the sheet, as those of earlier chapters are. If the chapter is asked
for, the exercise must be in the sheet, too, or its answer would lie beside the
question: such a sheet is refused.
"""

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import nbformat

from autograder.boundary.stubs import CHECKS
from autograder.generator.modules import belongs_to_module, without_markers
from autograder.generator.source import Cell, Exercise, Source
from autograder.grading.needless import reads
from autograder.sheets import Sheet

PACKAGE = "transformer"
# the paragraph that says what sources are
SOURCES = re.compile(r"\*source 0\*", re.IGNORECASE)
CALL = re.compile(r"\bcheck\.(?=\w+\()")
HOW_TO = """\
Each exercise has a cell to complete (replace `raise NotImplementedError()`; keep the \
names and arguments) and a check cell below it that answers within a second: it says \
what it tried, what came out, what was expected, and which mistake it looks like. Run \
it as often as you like. The exercises use the ones before them, so take them in \
order. Their numbers are those of the book's chapters."""


class Composed(Source):
    """The source of a sheet: cells of several chapters.

    Args:
        sheet: what the instructor chose.
        chapters: the sources of all chapters, in order.
    """

    def __init__(self, sheet: Sheet, chapters: list[Source]) -> None:
        self.path, self.chapter = sheet.path, sheet.name
        composition = _Composition(sheet, chapters)
        composition.compose()
        self.cells = composition.cells
        self.modules_beside = composition.modules_beside
        self.check_name = composition.parts[0].check_name
        sources = [part.source for part in composition.parts]
        is_of_one = len(sources) == 1
        self.of = sources[0].chapter if is_of_one else ""
        module = sources[0].module if is_of_one else ""
        self.header = {"title": sheet.title, "module": module}


@dataclass(frozen=True)
class _Need:
    """A name that a cell uses, and what it takes to have it.

    ``exercise`` is the one whose answer is not there; "" if it is something else, which
    ``cell`` gives.
    """

    name: str
    exercise: str = ""
    cell: int = -1


@dataclass
class _Part:
    """A chapter that the sheet chooses from."""

    source: Source
    wanted: list[str]
    check_name: str = "check"
    placed: dict[int, Cell] = field(default_factory=dict)  # by place in the chapter

    @cached_property
    def sections(self) -> list[str]:
        """The exercise of each cell; "" before the first."""
        found, name = [], ""
        for cell in self.source.cells:
            if cell.kind == "description":
                name = cell.options["exercise"]
            found.append(name)
        return found

    @cached_property
    def ends(self) -> dict[str, int]:
        """The place of each exercise's last graded cell."""
        cells = self.source.cells
        graded = ("check", "manual")
        return {
            name: place
            for place, name in enumerate(self.sections)
            if name and cells[place].kind in graded
        }

    @cached_property
    def binds(self) -> list[set[str]]:
        """The names that each cell defines for others."""
        return [_top_level(cell) for cell in self.source.cells]

    def giver(self, name: str, place: int) -> int:
        """Return the last cell before a place that defines a name; -1 if none does."""
        before = range(place - 1, -1, -1)
        return next((each for each in before if name in self.binds[each]), -1)

    def body(self, exercise: str) -> list[int]:
        """Return the places of an exercise's cells, to its last graded one."""
        first = self.sections.index(exercise)
        return list(range(first, self.ends[exercise] + 1))

    def tail(self, exercise: str) -> list[int]:
        """Return the places of the cells that follow its last graded one."""
        after = range(self.ends[exercise] + 1, len(self.sections))
        return [place for place in after if self.sections[place] == exercise]


class _Composition:
    def __init__(self, sheet: Sheet, chapters: list[Source]) -> None:
        self.sheet, self.chapters = sheet, {each.chapter: each for each in chapters}
        self.of_module = {each.module: each for each in chapters}
        self.owner = {
            exercise.name: source
            for source in chapters
            for exercise in source.exercises
        }
        self.modules_beside: set[str] = set()
        self.defined: set[str] = set()  # names of answers that are placed
        self.cells: list[Cell] = []
        self.parts = self._parts()

    def compose(self) -> None:
        """Choose the cells, in order.

        Raises:
            SheetError: an exercise needs another that is not in the sheet before it.
        """
        for part in self.parts:
            self._place_checks(part)
            for exercise in part.wanted:
                self._place_exercise(part, exercise)
        for part in self.parts:
            code = (c for c in part.placed.values() if c.node.cell_type == "code")
            used = {name for cell in code for name in reads(_plain(cell))}
            cells = [
                self._as_handed_out(part, cell, used) for cell in part.placed.values()
            ]
            if len(self.parts) > 1:
                self.cells.append(_text(f"## Of chapter {_title(part.source)}"))
            self.cells += _notation(part.source)
            self.cells += [each for each in cells if each.text.strip()]
        self.cells = [_text(self._intro()), *self.cells]
        self._register()

    # --- what was asked for -----------------------------------------------------------

    def _parts(self) -> list[_Part]:
        """Group what is wanted by chapter."""
        parts: list[_Part] = []
        for name, points in self.sheet.use.items():
            if name not in self.owner:
                raise self.sheet.error(f"no exercise is named {name!r}", name)
            source = self.owner[name]
            if not parts or parts[-1].source is not source:
                if any(part.source is source for part in parts):
                    reason = (
                        f"{name}: the exercises of {source.chapter} must stand together"
                    )
                    raise self.sheet.error(reason, name)
                parts.append(_Part(source, []))
            parts[-1].wanted.append(name)
            graded = len(_exercise(source, name).graded)
            if points and len(points) != graded:
                cells = "1 graded cell" if graded == 1 else f"{graded} graded cells"
                reason = f"{name} has {cells}, and points for {len(points)}"
                raise self.sheet.error(reason, name)
        for part in parts if len(parts) > 1 else ():
            part.check_name = f"check_{part.source.module}"
        return parts

    # --- which cells ------------------------------------------------------------------

    def _place_checks(self, part: _Part) -> None:
        """Place the cell that imports the checks, and what it needs itself."""
        cells = part.source.cells
        place = next(n for n, cell in enumerate(cells) if _is_check_import(cell))
        for need in self._needs(part, place, part.binds[place]):
            self._place_given(part, need.cell)
        self._place_given(part, place)

    def _place_exercise(self, part: _Part, exercise: str) -> None:
        body = part.body(exercise)
        own = set().union(*(part.binds[place] for place in body))
        missing = [
            need.exercise
            for place in body
            for need in self._needs(part, place, own)
            if need.exercise and need.exercise != exercise
        ]
        if missing:
            raise self.sheet.error(self._why(exercise, missing), exercise)
        self._refuse_two_of_a_name(part, exercise)
        for place in body:
            for need in self._needs(part, place, own):
                if need.cell not in body:
                    self._place_given(part, need.cell)
        for place in body:
            part.placed[place] = part.source.cells[place]
        self.defined |= set(_exercise(part.source, exercise).defines)
        self._place_tail(part, exercise, own)

    def _needs(self, part: _Part, place: int, own: set[str]) -> list[_Need]:
        """List what the code of a cell needs, directly or through given cells."""
        cell = part.source.cells[place]
        if cell.node.cell_type != "code":
            return []
        found = []
        for name in sorted(reads(_plain(cell)) - own):
            giver = part.giver(name, place)
            if giver >= 0:
                found += self._has(part, name, giver)
        return found

    def _has(self, part: _Part, name: str, giver: int) -> list[_Need]:
        cell, exercise = part.source.cells[giver], part.sections[giver]
        if cell.kind == "answer":
            return [] if name in self.defined else [_Need(name, exercise)]
        if module := _imports_from(cell).get(name):
            missing = self._missing_of(module, name)
            return [_Need(name, missing)] if missing else [_Need(name, cell=giver)]
        own = part.binds[giver]
        return [*self._needs(part, giver, own), _Need(name, cell=giver)]

    def _missing_of(self, module: str, name: str) -> str:
        """Name the exercise that a name of an earlier chapter needs; "" if none."""
        asked = {part.source.module for part in self.parts}
        if module in asked:
            return "" if name in self.defined else self._definer(module, name)
        reached = self._reached(module)
        return self._definer(module, name) if reached & asked else ""

    def _reached(self, module: str) -> set[str]:
        """Name the modules that one is made of, itself among them."""
        found, waiting = set(), [module]
        while waiting:
            each = waiting.pop()
            if each not in found:
                found.add(each)
                source = self.of_module[each]
                cells = filter(belongs_to_module, source.cells)
                waiting += {m for cell in cells for m in _imports_from(cell).values()}
        return found

    def _definer(self, module: str, name: str) -> str:
        exercises = self.of_module[module].exercises
        definers = (each.name for each in exercises if name in each.defines)
        return next(definers, exercises[0].name)  # what is given comes with the first

    def _place_given(self, part: _Part, place: int) -> None:
        """Place a cell that is nobody's answer, and the text right before it."""
        cells = part.source.cells
        if place in part.placed or place < 0:
            return
        if not part.sections[place] and place:
            is_text = cells[place - 1].node.cell_type == "markdown"
            if is_text and any(c.node.cell_type == "code" for c in cells[:place]):
                part.placed[place - 1] = cells[place - 1]
        part.placed[place] = cells[place]

    def _place_tail(self, part: _Part, exercise: str, own: set[str]) -> None:
        """Place what follows an exercise, if all that it uses is there."""
        tail = part.tail(exercise)
        own = own | set().union(*(part.binds[place] for place in tail))
        needs = [need for place in tail for need in self._needs(part, place, own)]
        givers = {need.cell for need in needs if not need.exercise}
        is_there = all(
            place in part.placed or not part.sections[place] for place in givers
        )
        answers = set().union(*(set(e.defines) for e in self._wanted()))
        if (
            any(need.exercise for need in needs)
            or not is_there
            or own & answers - set(_exercise(part.source, exercise).defines)
        ):
            return
        for place in sorted(givers):
            self._place_given(part, place)
        for place in tail:
            part.placed[place] = part.source.cells[place]

    def _wanted(self) -> Iterator[Exercise]:
        return (_exercise(self.owner[name], name) for name in self.sheet.use)

    def _refuse_two_of_a_name(self, part: _Part, exercise: str) -> None:
        for name in _exercise(part.source, exercise).defines:
            if name in self.defined:
                reason = f"{exercise} defines {name}, and so does one before it"
                raise self.sheet.error(reason, exercise)

    def _why(self, exercise: str, missing: list[str]) -> str:
        order = list(self.owner)
        names = sorted(set(missing), key=order.index)
        later = [name for name in names if name in self.sheet.use]
        if later:
            return f"{exercise} needs {_and(later)}: put it before"
        verb = "is" if len(names) == 1 else "are"
        return f"{exercise} needs {_and(names)}, which {verb} not in the sheet"

    # --- how they are handed out ------------------------------------------------------

    def _as_handed_out(self, part: _Part, cell: Cell, used: set[str]) -> Cell:
        """Return a copy with the sheet's points, imports and names."""
        cell = Cell(copy.deepcopy(cell.node), cell.line)
        if cell.node.cell_type == "code":
            cell.node.source = self._with_imports(cell.text, used)
            if part.check_name != "check":
                text = CALL.sub(f"{part.check_name}.", cell.text)
                imported = f"import {part.source.module} as check"
                named = f"import {part.source.module} as {part.check_name}"
                cell.node.source = text.replace(imported, named)
        return cell

    def _with_imports(self, text: str, used: set[str]) -> str:
        """Import from earlier chapters what is used and not asked for in this sheet."""
        lines, asked = text.splitlines(), {part.source.module for part in self.parts}
        for node in reversed(ast.parse(text).body):
            if not _is_of_course(node):
                continue
            module = node.module.removeprefix(f"{PACKAGE}.")
            names = [] if module in asked else node.names
            kept = [each.name for each in names if each.name in used]
            if kept:
                self.modules_beside |= self._reached(module)
            if len(kept) < len(node.names):
                new = [f"from {node.module} import {', '.join(kept)}"] if kept else []
                lines[node.lineno - 1 : node.end_lineno] = new
        return "\n".join(lines)

    def _intro(self) -> str:
        texts = [f"# {self.sheet.title}", self.sheet.text, HOW_TO]
        about = (
            paragraph
            for part in self.parts
            for paragraph in part.source.cells[0].text.split("\n\n")
            if SOURCES.search(paragraph)
        )
        return "\n\n".join([*filter(None, texts), *[*about][:1]])

    def _register(self) -> None:
        """Tell the checks which exercises there are; set their points."""
        points: dict[str, list[int]] = {}
        for cell in self.cells:
            if cell.kind in ("check", "manual"):
                name = cell.options[cell.kind]
                of_sheet, found = self.sheet.use[name], points.setdefault(name, [])
                if of_sheet:
                    cell.node.metadata["points"] = of_sheet[len(found)]
                found.append(cell.options["points"])
        first = next(
            place for place, cell in enumerate(self.cells) if _is_check_import(cell)
        )
        call = f"{self.parts[0].check_name}.sheet({self.sheet.title!r}, {points!r})"
        self.cells.insert(first + 1, _code_cell(call))


# --- cells ----------------------------------------------------------------------------


def _top_level(cell: Cell) -> set[str]:
    """Name what a cell defines for other cells; of a check, nothing."""
    if cell.node.cell_type != "code" or cell.kind == "check":
        return set()
    found, waiting = set(), list(ast.parse(_plain(cell)).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = (each.asname or each.name for each in node.names)
            found |= {name.partition(".")[0] for name in names}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name):
            found |= {node.id} if isinstance(node.ctx, ast.Store) else set()
        elif not isinstance(node, (ast.Lambda, *_COMPREHENSIONS)):
            waiting += ast.iter_child_nodes(node)
    return found


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _plain(cell: Cell) -> str:
    return without_markers(cell.text)


def _is_of_course(node: ast.stmt) -> bool:
    module = getattr(node, "module", None) or ""
    return isinstance(node, ast.ImportFrom) and module.startswith(f"{PACKAGE}.")


def _imports_from(cell: Cell) -> dict[str, str]:
    """Return the names that a cell imports from the course's parts, with the module."""
    if cell.node.cell_type != "code":
        return {}
    return {
        each.name: node.module.removeprefix(f"{PACKAGE}.")
        for node in ast.parse(_plain(cell)).body
        if _is_of_course(node)
        for each in node.names
    }


def _is_check_import(cell: Cell) -> bool:
    return cell.node.cell_type == "code" and f"from {CHECKS} import " in cell.text


def _exercise(source: Source, name: str) -> Exercise:
    return next(each for each in source.exercises if each.name == name)


def _title(source: Source) -> str:
    return f"{source.header['number']}, {source.title}"


def _notation(source: Source) -> list[Cell]:
    """Return what a chapter says first of its notation, less what it is about."""
    paragraphs = source.cells[0].text.split("\n\n")[2:]
    kept = [each for each in paragraphs if not SOURCES.search(each)]
    return [_text("\n\n".join(kept))] if kept else []


def _text(text: str) -> Cell:
    return Cell(nbformat.v4.new_markdown_cell(text), 1)


def _code_cell(text: str) -> Cell:
    return Cell(nbformat.v4.new_code_cell(text), 1)


def _and(names: list[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if names[1:] else names)
