"""Stand-ins for modules of the course that a notebook imports and the sandbox lacks.

The sandbox shows no check, for what a check compares with is a right answer, and of the
workbench what a notebook needs. A student's own cell may import more of it: the import
works, whatever is called says in a line that it is left out, and returns None.

>>> names = ["autograder.chapters", "autograder.chapters.attention"]
>>> sys.meta_path.append(Stubs(names))
>>> from autograder.chapters import attention as check
>>> check.softmax(softmax)
attention.softmax: checks are run by the grader, later; here it does nothing
"""

import importlib.abc
import importlib.machinery
import types
from collections.abc import Callable, Iterable, Sequence

CHECKS = "autograder.chapters"
LEFT_OUT = "is left out while a notebook is graded; here it does nothing"
CHECKED_LATER = "checks are run by the grader, later; here it does nothing"


class _Stub(types.ModuleType):
    """A module in which every name is a function that does nothing."""

    def __getattr__(self, name: str) -> Callable:
        if name.startswith("__"):  # asked for by Python itself
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        where = self.__name__.rpartition(".")[2]
        checks = self.__name__.startswith(f"{CHECKS}.")
        said = f"{where}.{name}: {CHECKED_LATER if checks else LEFT_OUT}"

        def left_out(*args: object, **kwargs: object) -> None:
            print(said)

        left_out.__name__ = left_out.__qualname__ = name
        return left_out


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports stand-ins, if it comes last among ``sys.meta_path``'s finders.

    Args:
        names: of the modules, with their packages that are stand-ins themselves.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(names)
        self._packages = {name.rpartition(".")[0] for name in self._names}

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Describe a module if it is one of the names."""
        if fullname not in self._names:
            return None
        package = fullname in self._packages
        return importlib.machinery.ModuleSpec(fullname, self, is_package=package)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Make a module; a package's names are those of its modules alone."""
        package = spec.name in self._packages
        return (types.ModuleType if package else _Stub)(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Leave it as it is."""
