"""What stands for PyTorch and NumPy where they are not: names and nothing behind them.

Modules of the checks name `torch.Tensor` in annotations, and ask whether a value is
one. Here no value is. Nothing is ever computed: what is called says that it is absent.
"""

import sys
from importlib.machinery import ModuleSpec
from typing import Any, NoReturn


class Absent:
    """A module, class, function or constant of a library that is not there."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> "Absent":
        if name.startswith("__"):
            raise AttributeError(name)
        found = Absent(f"{self.__name__}.{name}")
        setattr(self, name, found)  # one name is one object, which may be a key
        return found

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Say that it is absent."""
        library = self.__name__.partition(".")[0]
        raise ModuleNotFoundError(
            f"{self.__name__} cannot be used here: {library} is not in the browser. "
            "This exercise needs Python alone",
            name=library,
        )

    def __instancecheck__(self, value: Any) -> bool:
        return False

    def __subclasscheck__(self, kind: type) -> bool:
        return False

    def __mro_entries__(self, bases: tuple) -> tuple:
        return ()

    def __or__(self, other: Any) -> "Absent":
        return self

    __ror__ = __or__


class _Finder:
    """Finds the libraries' modules before anything else does."""

    def __init__(self, libraries: tuple[str, ...]) -> None:
        self.libraries = libraries

    def find_spec(self, name: str, path=None, target=None) -> ModuleSpec | None:
        """Find a library's module, and leave all others to whoever comes next."""
        if name.partition(".")[0] in self.libraries:
            return ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> Absent:
        """Give a name in place of the module."""
        return Absent(spec.name)

    def exec_module(self, module: Absent) -> None:
        """Nothing is there to be run."""


def stand_in(*libraries: str) -> None:
    """Let libraries be imported from here on, without anything in them."""
    sys.meta_path.insert(0, _Finder(libraries))
