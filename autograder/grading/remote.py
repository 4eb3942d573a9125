"""The interface with a student's process behind it; a check cannot tell.

``Names`` is what an instructor's grade cell runs in: the modules that it uses are the
trusted side's own, everything else is looked up in the student's process.
"""

import ast
import builtins
import dis
import functools
import operator
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Any

import torch

from autograder.boundary.data import Named
from autograder.grading.kernel import Found, Kernel, error_of
from autograder.interface import (
    Data,
    Gradients,
    StudentError,
    StudentFunction,
    StudentInstance,
    StudentModule,
    note_call,
)

TRUSTED = ("autograder.chapters", "torch", "math", "numpy")  # packages of grade cells


MOST_TOGETHER = 32  # calls that are asked for at a time
NUMBERS_TOGETHER = 200_000  # in their tensors


def _named(value: Data) -> Data:
    if type(value) is tuple:
        return tuple(map(_named, value))
    return Named(value.handle) if isinstance(value, RemoteFunction) else value


def _are_the_same(one: tuple, other: tuple) -> bool:
    """Tell whether two calls are given the very same objects."""
    return len(one) == len(other) and all(map(operator.is_, one, other))


def _few(calls: Iterable[tuple]) -> Iterator[tuple]:
    """Give the first call, and those after it that go with it in one message."""
    numbers = 0
    for place, call in enumerate(calls):
        numbers += sum(each.numel() for each in call if isinstance(each, torch.Tensor))
        if place == MOST_TOGETHER or (place and numbers > NUMBERS_TOGETHER):
            return
        yield call


class RemoteFunction(StudentFunction):
    """A function in the student's process.

    Args:
        kernel: the process.
        handle: the number that it is asked by.
        name: what it calls itself.
    """

    def __init__(self, kernel: Kernel, handle: int, name: str) -> None:
        self._kernel, self.handle, self.name = kernel, handle, name
        self._coming: deque[tuple] = deque()  # calls that were foreseen
        self._came: deque[tuple[bool, Data]] = deque()  # and the first ones' answers
        self._end = weakref.finalize(self, kernel.drop, handle)
        self._end.atexit = False

    def _ask(self, method: str, args: tuple = (), kwargs: dict | None = None) -> Data:
        self._coming.clear()  # what is asked now may change what comes then
        self._came.clear()
        return self._ask_only(method, args, kwargs or {})

    def _ask_only(self, method: str, args: tuple, kwargs: dict) -> Data:
        args = tuple(map(_named, args))
        kwargs = {key: _named(value) for key, value in kwargs.items()}
        return self._kernel.ask(method, self.handle, args, kwargs, self.forbidden)

    def ahead(self, calls: Iterable[tuple]) -> None:
        """Ask for these calls together, as soon as the first of them is made."""
        self._coming, self._came = deque(calls), deque()

    def __call__(self, *args: Data, **kwargs: Data) -> Data:
        """Call it."""
        return note_call(self, args, kwargs, lambda: self._value(args, kwargs))

    def _value(self, args: tuple, kwargs: dict) -> Data:
        """Give the answer to a call: one that came with others before, or a new one."""
        if kwargs or not self._coming or not _are_the_same(self._coming[0], args):
            return self._ask("__call__", args, kwargs)
        if not self._came:
            together = tuple(_few(self._coming))
            found = self._ask_only("several", together, {})
            self._came.extend(found[: len(together)])
        self._coming.popleft()
        is_right, found = self._came.popleft()
        if not is_right:
            self._came.clear()
            raise error_of(found)
        return found

    def gradients(self, *args: Data, **kwargs: Any) -> Gradients:
        """Call it and differentiate; the arguments are those of the interface."""
        found = self._ask("gradients", args, kwargs)
        shapes = [args[index].shape for index in kwargs.get("wrt", (0,))]
        if len(found.inputs) != len(shapes) or any(
            gradient is not None and gradient.shape != shape
            for gradient, shape in zip(found.inputs, shapes, strict=True)
        ):
            text = "the gradients that came back have other shapes than the inputs"
            raise StudentError("gradients", text, self.name)
        return found

    def memory(self, *args: Data, **kwargs: Data) -> tuple[tuple[int, ...], int]:
        """Call it, and say what it holds, as the student's process counts it."""
        return note_call(self, args, kwargs, lambda: self._ask("memory", args, kwargs))

    def shared(self, *args: Data, **kwargs: Data) -> list[int]:
        """Call it, and say which results are the caller's own, as it is told there."""
        return note_call(self, args, kwargs, lambda: self._ask("shared", args, kwargs))

    def build(self, *args: Data, **kwargs: Data) -> StudentInstance:
        """Refuse: a check that builds wants a class."""
        raise StudentError("missing", f"{self.name} is not a class", self.name)


class RemoteInstance(RemoteFunction, StudentInstance):
    """A built module in the student's process.

    Args:
        told: what the process told of it when it was built, by the method that asks
            for it. It counts as long as nothing else has been asked.
    """

    def __init__(
        self, kernel: Kernel, handle: int, name: str, told: dict[str, Data]
    ) -> None:
        super().__init__(kernel, handle, name)
        self._told, self._requests = told, kernel.requests

    def _ask_or_take(self, method: str) -> Data:
        if self._requests == self._kernel.requests and method in self._told:
            return self._told.pop(method)
        return self._ask(method)

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return copies of the parameters and buffers, by name."""
        return self._ask_or_take("state_dict")

    def parameter_names(self) -> list[str]:
        """Return the names of what is trained, in order."""
        return self._ask_or_take("parameter_names")

    def buffer_names(self) -> list[str]:
        """Return the names of what moves with the module without being trained."""
        return self._ask("buffer_names")

    def load_state_dict(self, state: dict[str, torch.Tensor]) -> None:
        """Copy the tensors in."""
        self._ask("load_state_dict", (state,))
        self.loaded = state

    def train(self, mode: bool = True) -> None:
        """Switch to training (True) or evaluation (False)."""
        self._ask("train", (mode,))
        self.training = mode

    def methods(self, *names: str) -> list[StudentFunction]:
        """Return methods that the exercise asks for."""
        handles = self._ask("methods", names)
        if len(handles) != len(names):
            text = "as many methods as were asked for have to come back"
            raise StudentError("missing", text, self.name)
        return [
            self._lend(RemoteFunction(self._kernel, handle, f"{self.name}.{name}"))
            for handle, name in zip(handles, names, strict=True)
        ]


class RemoteModule(RemoteFunction, StudentModule):
    """A class in the student's process."""

    def build(self, *args: Data, **kwargs: Data) -> RemoteInstance:
        """Construct an instance."""
        handle, state, names = self._ask("build", args, kwargs)
        told = {"state_dict": state, "parameter_names": names}
        known = told if state is not None else {}
        built = RemoteInstance(self._kernel, handle, self.name, known)
        built.forbidden = self.forbidden
        built.built_with = (*args, *kwargs.values())
        return built


class NotDefined(StudentError, NameError):
    """A name that the notebook has not; the message is a student's to read."""


class Names(dict):
    """The names of a grade cell, to be given to ``exec`` as its globals.

    What the notebook imports from ``TRUSTED`` packages, and Python's own functions,
    are the trusted side's. Any other name is looked up in the student's process each
    time that it is used.

    Args:
        kernel: the student's process.
        imports: import statements of the notebook as it was handed out.
    """

    def __init__(self, kernel: Kernel, imports: Iterable[str] = ()) -> None:
        super().__init__(__name__="__main__", __builtins__=builtins)
        self._kernel = kernel
        for statement in imports:
            exec(statement, self)
        self._looked_at: dict[str, Found] = {}

    def asked_by(self, code: CodeType) -> list[str]:
        """Name what code of a grade cell is going to look up in the process."""
        return [
            name
            for name in _loaded_by(code)
            if name not in self and not hasattr(builtins, name)
        ]

    def take(self, found: dict[str, Found]) -> None:
        """Take what was looked up for the next use of each name."""
        for each in self._looked_at.values():  # which nobody has used
            if each.handle:
                self._kernel.drop(each.handle)
        self._looked_at = found

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name):
            raise KeyError(name)  # Python then takes its own
        found = self._looked_at.pop(name, None) or self._kernel.look(name)
        if found.kind == "missing":
            raise NotDefined("missing", f"the name {name} is not defined", name)
        if found.kind == "data":
            return found.value
        kind = RemoteModule if found.kind == "class" else RemoteFunction
        return kind(self._kernel, found.handle, found.name)


@functools.cache
def _loaded_by(code: CodeType) -> tuple[str, ...]:
    """Name what code loads by name and does not bind itself, each once."""
    steps = [(each.opname, each.argval) for each in dis.get_instructions(code)]
    bound = {name for step, name in steps if step == "STORE_NAME"}
    loaded = [name for step, name in steps if step == "LOAD_NAME"]
    return tuple(name for name in dict.fromkeys(loaded) if name not in bound)


def imports_of(cells: Iterable[str]) -> list[str]:
    """Find what the cells of a notebook import from packages that can be trusted.

    >>> imports_of(["from autograder.chapters import attention as check", "import os"])
    ['from autograder.chapters import attention as check']
    """
    found = []
    for text in cells:
        try:
            statements = ast.parse(text).body
        except SyntaxError:
            continue  # a cell with a magic
        for statement in statements:
            match statement:
                case ast.Import(names=names):
                    modules = [each.name for each in names]
                case ast.ImportFrom(module=str(module), level=0):
                    modules = [module]
                case _:
                    continue
            if all(map(_is_trusted, modules)):
                found.append(ast.unparse(statement))
    return found


def _is_trusted(module: str) -> bool:
    return any(module == each or module.startswith(f"{each}.") for each in TRUSTED)
