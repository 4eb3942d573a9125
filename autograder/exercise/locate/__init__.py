"""Where to look when an answer is wrong in a way that no check has a name for.

If one small step makes the student's own code pass, the line of that step is where to
look. What the step is stays untold: to find it is the exercise. Candidates run in the
student's process, on a copy of what they use: nothing of the student's is changed, and
nothing that goes wrong here is ever seen.
"""

import __future__

import ast
import contextlib
import copy
import inspect
import io
import itertools
import linecache
import os
import random
import time
import types
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from autograder import interface
from autograder.exercise.locate.changes import REMOVES, TORCH, Change, changes
from autograder.exercise.locate.outcomes import Known, Left, Outcome
from autograder.exercise.showing import shortened
from autograder.interface import LocalFunction, LocalModule
from autograder.time_limit import TookTooLong, can_end, limited_time

SECONDS = 2.0  # that a student waits for a place, at most
SECONDS_PER_TRY = 0.5
UNLIKELIER = (
    2  # ranks, by which a step must be so that it does not count beside another
)
LIKELY = 2  # the rank up to which steps are tried two at a time
SECONDS_PER_CALL = 0.2  # of changed code; what ends at all needs far less
DEEPEST = 12  # lists in lists of which a tensor is made
LONGEST = 60  # characters of a line that is shown
now = time.monotonic  # a test counts tries in its place
SWITCH = "COURSE_LOOK"  # environment variable; "0" leaves the search out
Target = types.FunctionType | type  # what a student wrote
Definition = ast.FunctionDef | ast.ClassDef
OUTSIDE = {  # names of what reaches out of the code: it is not tried
    *("open", "input", "print_exc", "save", "savefig", "show", "display", "exec"),
    *("eval", "exit", "quit", "globals", "setattr", "delattr", "vars", "__import__"),
    *("importlib", "os", "sys", "shutil", "subprocess", "socket", "pathlib", "Path"),
    *("requests", "urllib", "urlopen", "ctypes", "threading", "multiprocessing"),
    *("signal", "logging", "plt", "pyplot", "figure", "subplots", "plot", "imshow"),
    *("hub", "from_pretrained", "load_url", "set_default_dtype", "set_num_threads"),
    *("set_grad_enabled", "set_default_device", "use_deterministic_algorithms"),
    *("write", "write_text", "write_bytes", "to_csv", "tofile"),
    # what may not end on NaN, out of reach of an alarm
    *("linalg", "lstsq", "svd", "eig", "eigh", "pinverse", "inverse", "solve"),
}
SHARED = (types.ModuleType, types.FunctionType, types.BuiltinFunctionType, type)
UNTOLD = (  # beginnings of failures that no change of a line is the answer to
    *("not written yet", "calls ", "does not accept", "is not there"),
    *("is not a module", "uses "),
)
DECORATORS = {"no_grad", "inference_mode", "staticmethod", "classmethod", "property"}


@dataclass(frozen=True)
class Place:
    """A line of the student's code, and what to look at there.

    Args:
        line_number: in its cell, or its file.
        text: the line.
        look_at: what of it: "the axis".
        left: the known mistake that is there besides.
        other: another line that has to be looked at, too.
    """

    line_number: int
    text: str
    look_at: str
    left: Left | None = None
    other: "Place | None" = None

    def __str__(self) -> str:
        text = shortened(self.text, LONGEST)
        said = f"line {self.line_number}: `{text}`: look at {self.look_at}"
        if self.left:
            return f"Two slips. {said}. The other: {self.left.name}. {self.left.why}"
        return f"Two slips. {said}; {self.other}" if self.other else said


class _Unfit(Exception):
    """Code that cannot be changed safely, or whose text is not known."""


# --- the search -----------------------------------------------------------------------


def locate(
    student_object: object,
    judge: Callable[[object], bool | Outcome],
    budget: float = SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Place | None:
    """Look for the line where one step makes a function or class pass.

    Where no step does, one is looked for after which one known mistake explains what is
    left, and then for two steps.

    Args:
        student_object: the function or class that fails.
        judge: runs the check on a changed one, and returns whether that passes.
        budget: seconds of the clock after which no more is tried.
        clock: returns the time in seconds.

    Returns:
        The place, or None if nothing was found or places on several lines would do.
    """
    try:
        with _undisturbed():
            target = _local(student_object)
            if target is None:
                return None
            return Search(_Code(target), judge, clock() + budget, clock).place()
    except (Exception, TookTooLong):
        return None


class Search:
    """Tries steps on a piece of code, the likely ones first.

    Args:
        code: a tree, what is made of it, and the place of a change.
        judge: tells of what was made whether it passes.
        end: when no more is tried, by the clock.
        clock: returns the time in seconds.
        limit: ends a try after so many seconds.
    """

    def __init__(
        self,
        code: Any,
        judge: Callable[[object], bool | Outcome],
        end: float,
        clock: Callable[[], float],
        limit: Callable = limited_time,
    ) -> None:
        self._code, self._judge, self._end, self._clock = code, judge, end, clock
        self._limit = limit
        self._seen = {ast.dump(code.tree)}
        self._start = Outcome()
        self._helping: list[Change] = []  # with them more values come out right

    def place(self) -> Place | None:
        """Look for one step, then for one beside a known mistake, then for two."""
        self._code.made()  # raises if it cannot be built again
        self._start = self._outcome()
        if self._start.passes:
            return None  # what fails now and then has no one place
        steps = changes(self._code.tree)
        passing, leaving = self._one_step(steps)
        if passing:
            one_line = len({each.line for each in passing}) == 1
            return self._code.place(passing[0]) if one_line else None
        return self._beside_a_known_one(leaving) or self._two_steps(steps)

    def _one_step(
        self, steps: list[Change]
    ) -> tuple[list[Change], list[tuple[Change, Left]]]:
        passing: list[Change] = []
        leaving: list[tuple[Change, Left]] = []
        for change in steps:
            unlikelier = passing and change.rank > passing[0].rank + UNLIKELIER
            several = len({each.line for each in passing}) > 1
            if self._clock() >= self._end or unlikelier or several:
                break
            outcome = self._after(change)
            if outcome.passes:
                passing.append(change)
            elif outcome.left and change.look_at not in REMOVES:
                # a step that spoils something only leads into a known mistake
                if not outcome.spoils(self._start):
                    leaving.append((change, outcome.left))
            elif outcome.reached > self._start.reached:
                self._helping.append(change)
        return passing, leaving

    def _after(self, *steps: Change) -> Outcome:
        """Judge the code with some steps made; what was tried before is not again."""
        with contextlib.ExitStack() as made:
            for step in steps:
                made.enter_context(step.made())
            written = ast.dump(self._code.tree)
            if written in self._seen:
                return Outcome()
            self._seen.add(written)
            return self._outcome()

    def _outcome(self) -> Outcome:
        """Try the tree as it is now; whatever goes wrong is no pass."""
        left = max(self._end - self._clock(), 0.001)
        try:
            with self._limit(min(left, SECONDS_PER_TRY)):
                outcome = self._judge(self._code.made())
        except (Exception, SystemExit, TookTooLong):
            return Outcome()
        return outcome if isinstance(outcome, Outcome) else Outcome(bool(outcome))

    def _beside_a_known_one(self, leaving: list[tuple[Change, Left]]) -> Place | None:
        """Say a line and a name, if all likely steps agree on them."""
        if self._start.left:
            return None
        likely = [
            each for each in leaving if each[0].rank <= leaving[0][0].rank + UNLIKELIER
        ]
        said = {(change.line, left.name) for change, left in likely}
        if len(said) != 1:
            return None
        change, left = likely[0]
        return replace(self._code.place(change), left=left)

    def _two_steps(self, steps: list[Change]) -> Place | None:
        """Look for two steps: after one that makes more right, or both likely ones."""
        likely = [each for each in steps if each.rank <= LIKELY]
        pairs = itertools.chain(
            itertools.product(self._helping, steps), itertools.combinations(likely, 2)
        )
        for first, second in pairs:
            if self._clock() >= self._end:
                return None
            if self._after(first, second).passes:
                both = sorted((first, second), key=lambda step: step.line)
                one, other = map(self._code.place, both)
                return replace(one, other=other)
        return None


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Show nothing of what runs, and put random numbers and modes back."""
    drawn = random.getstate(), np.random.get_state(), torch.get_rng_state()
    graded, dtype = torch.is_grad_enabled(), torch.get_default_dtype()
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            _silent_libraries(),
            _nested_lists_refused(),
            interface.trying(SECONDS_PER_CALL),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        random.setstate(drawn[0])
        np.random.set_state(drawn[1])
        torch.set_rng_state(drawn[2])
        torch.set_grad_enabled(graded)
        torch.set_default_dtype(dtype)


@contextlib.contextmanager
def _nested_lists_refused() -> Iterator[None]:
    """Keep lists that hold themselves from PyTorch, which would end the process."""

    def guarded(make: Callable) -> Callable:
        def made(data: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
            if isinstance(data, (list, tuple)):
                _refuse_deep(data)
            return make(data, *args, **kwargs)

        return made

    before = torch.tensor, torch.as_tensor
    torch.tensor, torch.as_tensor = map(guarded, before)
    try:
        yield
    finally:
        torch.tensor, torch.as_tensor = before


def _refuse_deep(data: list | tuple, depth: int = 1) -> None:
    """Refuse what is nested more deeply than any tensor of the course.

    Raises:
        ValueError: it is, or it holds itself.
    """
    if depth > DEEPEST:
        raise ValueError("nested too deeply")
    for each in data:
        if isinstance(each, (list, tuple)):
            _refuse_deep(each, depth + 1)


@contextlib.contextmanager
def _silent_libraries() -> Iterator[None]:
    """Send what compiled libraries print nowhere: they do not write to sys.stderr."""
    with contextlib.ExitStack() as after:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        after.callback(os.close, nowhere)
        for number in (1, 2):
            with contextlib.suppress(OSError):  # of a process without a terminal
                kept = os.dup(number)
                after.callback(os.close, kept)
                after.callback(os.dup2, kept, number)
                os.dup2(nowhere, number)
        yield


# --- the code -------------------------------------------------------------------------


class _Code:
    """What a student wrote in one cell for an answer, to be built again and again."""

    def __init__(self, target: Target) -> None:
        function = _some_function(target)
        self.name = target.__name__
        self.file = function.__code__.co_filename
        self.names = function.__globals__
        self.flags = function.__code__.co_flags & __future__.annotations.compiler_flag
        self.lines = linecache.getlines(self.file)
        cell = ast.parse("".join(self.lines))
        main = _definition(cell, function, target)
        if main is None or not _has_parameters(main):
            raise _Unfit("an answer that is only a value is not looked into")
        parts = [main, *self._helpers(cell, main)]
        ordered = sorted(parts, key=lambda part: part.lineno)
        self.tree = ast.Module([*ordered], [])
        self._refuse_what_reaches_out()
        if not _holds(self._compiled(), function.__code__):
            raise _Unfit("the text is not that of the code")

    def made(self) -> object:
        """Run the tree as it is now, and return what it defines."""
        names = self._isolated()
        exec(self._compiled(), names)
        return names[self.name]

    def _compiled(self) -> types.CodeType:
        ast.fix_missing_locations(self.tree)
        return compile(self.tree, "<changed>", "exec", self.flags, True)

    def place(self, change: Change) -> Place:
        """Say where a change is made."""
        text = self.lines[change.line - 1].strip()
        return Place(change.line, text, change.look_at)

    def _helpers(self, cell: ast.Module, main: Definition) -> list[Definition]:
        """Find what the cell defines beside an answer that uses it."""
        defined = {
            node.name: node
            for node in cell.body
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node is not main
        }
        found: dict[str, Definition] = {}
        waiting = [main]
        while waiting:
            for name in _read(waiting.pop()) & defined.keys() - found.keys():
                if self._comes_from_here(name, defined[name]):
                    found[name] = defined[name]
                    waiting.append(defined[name])
        return list(found.values())

    def _comes_from_here(self, name: str, node: Definition) -> bool:
        """Tell whether a name still stands for what the cell defined."""
        with contextlib.suppress(_Unfit):
            code = _some_function(self.names.get(name)).__code__
            inside = code.co_firstlineno in _lines_of(node)
            return code.co_filename == self.file and inside
        return False

    def _reached(self) -> dict[str, Any]:
        """Return what of the student's names the code uses, also by way of others."""
        found: dict[str, Any] = {}
        waiting = [_read(self.tree)]
        while waiting:
            for name in waiting.pop() & self.names.keys() - found.keys():
                found[name] = self.names[name]
                for function in _functions(found[name]):
                    if function.__globals__ is self.names:
                        waiting.append(_names_in(function.__code__))
        return found

    def _refuse_what_reaches_out(self) -> None:
        self.reached = self._reached()
        functions = [f for each in self.reached.values() for f in _functions(each)]
        codes = [f.__code__ for f in functions if f.__globals__ is self.names]
        names = [_names_in(each) for each in (self._compiled(), *codes)]
        if set().union(*names) & OUTSIDE:
            raise _Unfit("the code reaches outside")
        nodes = list(ast.walk(self.tree))
        for part in nodes:
            for each in getattr(part, "decorator_list", ()):
                if not _read(each) & DECORATORS:
                    raise _Unfit("a decorator may do anything")
        if not can_end() and any(isinstance(each, ast.While) for each in nodes):
            raise _Unfit("nothing would end a loop")

    def _isolated(self) -> dict[str, Any]:
        """Copy the names, and of what the code uses everything that it could change."""
        names = {**self.names, TORCH: torch}
        values = [each for each in self.reached.items() if not _is_shared(each[1])]
        names.update(copy.deepcopy(dict(values)))
        for name, value in self.reached.items():
            plain = isinstance(value, types.FunctionType)
            if plain and value.__globals__ is self.names:
                names[name] = _moved(value, names)
        return names


def _some_function(target: object) -> types.FunctionType:
    """Return a function, or a method of a class, that tells where the code is from."""
    functions = _functions(inspect.unwrap(target) if callable(target) else target)
    if not functions or any(_is_closure(each) for each in functions):
        raise _Unfit("not a function or class of its own")
    return functions[0]


def _is_closure(function: types.FunctionType) -> bool:
    return bool(set(function.__code__.co_freevars) - {"__class__"})


def _functions(value: object) -> list[types.FunctionType]:
    """Return a function, or the methods that a class itself defines."""
    if isinstance(value, types.FunctionType):
        return [value]
    members = vars(value).values() if isinstance(value, type) else ()
    found = [getattr(each, "fget", getattr(each, "__func__", each)) for each in members]
    plain = [each for each in found if isinstance(each, types.FunctionType)]
    return [inspect.unwrap(each) for each in plain]


def _is_shared(value: object) -> bool:
    """Tell whether changed code may use a value itself: it is code, or PyTorch's."""
    return isinstance(value, SHARED) or type(value).__module__ == "typing"


def _moved(function: types.FunctionType, names: dict) -> types.FunctionType:
    """Let a function look up its names elsewhere."""
    moved = types.FunctionType(
        function.__code__,
        names,
        function.__name__,
        copy.deepcopy(function.__defaults__),
        function.__closure__,
    )
    moved.__kwdefaults__ = copy.deepcopy(function.__kwdefaults__)
    return moved


def _definition(
    cell: ast.Module, function: types.FunctionType, target: Target
) -> Definition | None:
    """Find the function or class of a name that a function is, or is a method of."""
    line = function.__code__.co_firstlineno
    wanted = ast.ClassDef if isinstance(target, type) else ast.FunctionDef
    for node in ast.walk(cell):
        if not isinstance(node, wanted) or node.name != target.__name__:
            continue
        lines = _lines_of(node)
        if line in lines if isinstance(node, ast.ClassDef) else line == lines[0]:
            return node
    return None


def _lines_of(node: Definition) -> range:
    """Return the numbers of a definition's lines, its decorators' among them."""
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return range(first, (node.end_lineno or first) + 1)


def _has_parameters(node: Definition) -> bool:
    if isinstance(node, ast.ClassDef):
        return True
    given = node.args
    return bool(given.args or given.posonlyargs or given.kwonlyargs or given.vararg)


def _read(tree: ast.AST) -> set[str]:
    """Return every name and attribute in a piece of code."""
    nodes = list(ast.walk(tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def _names_in(code: types.CodeType) -> set[str]:
    """Return what a code looks up: names that are not local, and attributes."""
    return set(code.co_names).union(*map(_names_in, _inside(code)))


def _inside(code: types.CodeType) -> list[types.CodeType]:
    return [each for each in code.co_consts if isinstance(each, types.CodeType)]


def _holds(compiled: types.CodeType, code: types.CodeType) -> bool:
    """Tell whether a compiled text has what runs: its file may have been edited."""
    same_line = compiled.co_firstlineno == code.co_firstlineno
    if same_line and compiled.co_name == code.co_name:
        return compiled.co_code == code.co_code
    return any(_holds(each, code) for each in _inside(compiled))


# --- the hook of a check --------------------------------------------------------------


Follow = Callable[[Callable[[], object], Known], Outcome]


def add_place(
    failure: Any,
    check: Callable,
    students: Iterable[object],
    options: dict[str, Any],
    follow: Follow,
) -> None:
    """Set ``failure.place`` if one or two steps would mend the answer.

    Args:
        failure: what the check raised.
        check: the check, undecorated.
        students: what it was called with, in this process or not.
        options: the check's other arguments.
        follow: runs the check on a changed answer, and says what comes of it.
    """
    failure.place = _of_students(check, list(students), options, follow)


def is_wanted(failure: Any) -> bool:
    """Whether a line is looked for: nothing else says what is wrong with the answer."""
    named = failure.mistake or failure.first or failure.what.startswith(UNTOLD)
    return os.environ.get(SWITCH, "1") != "0" and not named


def _of_students(
    check: Callable, students: list, options: dict, follow: Follow
) -> Place | None:
    """Look into the answer; the other students are of earlier exercises, or its own."""
    local = [_local(each) for each in students]
    objects = [each for each in local if each is not None]
    if len(objects) < len(local):
        return None
    end = now() + SECONDS
    known = Known()
    for index, target in enumerate(objects):

        def judge(candidate: object, index: int = index) -> Outcome:
            tried: list[Any] = [*objects[:index], candidate, *objects[index + 1 :]]
            return follow(lambda: check(*map(_wrapped, tried), **options), known)

        if _cell_of(target) == _cell_of(objects[0]):
            place = locate(target, judge, end - now(), now)
            if place:
                return place
    return None


def _cell_of(target: object) -> str:
    """Name the file or cell that a function or class is from; "" if it is unknown."""
    try:
        return _some_function(target).__code__.co_filename
    except _Unfit:
        return ""


def _local(student: object) -> Target | None:
    """Return the function or class itself, if it is in this process."""
    if isinstance(student, (LocalFunction, LocalModule)):
        student = student._target
    return student if isinstance(student, (type, types.FunctionType)) else None


def _wrapped(target: Target) -> LocalFunction | LocalModule:
    if isinstance(target, type):
        return LocalModule(target, target.__name__)
    return LocalFunction(target, target.__name__)
