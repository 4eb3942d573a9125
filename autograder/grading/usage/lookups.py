"""Look names and attributes up: what each of them may stand for."""

import ast
import builtins
import re
import sys

from autograder.grading.usage import folding, ways
from autograder.grading.usage.scopes import Binding, Scope
from autograder.grading.usage.state import State
from autograder.grading.usage.values import (
    ANYTHING,
    NONE,
    Class,
    Collection,
    Function,
    Instance,
    Known,
    Method,
    Namespace,
    Outside,
    Prepared,
    Shell,
    Text,
    Value,
    Values,
    join,
    known,
)

BUILTINS = frozenset(dir(builtins)) - {"_"}
HISTORY = re.compile(r"_+\d*|_i+\d*|In|Out|_oh|_ih|_dh")
PLAIN_BASES = ("torch.nn.Module", "torch.nn.modules.Module", "builtins.object")
SAYING = ("__name__", "__qualname__", "__doc__", "__module__")
KEEPING = frozenset(  # methods of a module that keep what they are given
    (
        *("add_module", "register_module", "register_buffer", "register_parameter"),
        *("register_forward_hook", "register_forward_pre_hook"),
        *("register_full_backward_hook", "register_full_backward_pre_hook"),
    )
)
CELLS = "changes how cells are run"


class Lookups(State):
    """Looks names and attributes up."""

    # --- names ------------------------------------------------------------------------

    def named(self, name: str, node: ast.AST, scope: Scope) -> Values:
        """Return what a name stands for."""
        holder = scope.finder(name)
        if holder is self.notebook:
            return self._emitted(name, self.current(name))
        if holder is not None:
            return holder.names.get(name, Binding()).values
        return self.not_bound(name, node)

    def _emitted(self, name: str, found: Binding) -> Values:
        """Take over a name of the notebook's, less what other exercises answer for."""
        judged, values = self.elsewhere.get(name, (frozenset(), NONE))
        if not judged or not found.values <= values:
            return self.emit(found)
        with self.noting() as notes:
            values = self.emit(found)
            self.touch(values)
        own = {each for each in notes if each.names and not each.names & judged}
        self.notes |= own
        return values if own == notes else ANYTHING  # nobody is to read it again

    def not_bound(self, name: str, node: ast.AST) -> Values:
        """Return what a name stands for that the notebook does not bind."""
        if name in self.patches:
            return self.emit(self.patches[name])
        for module in reversed(self.stars):
            loaded = vars(sys.modules[module]) if module in sys.modules else {}
            if name in loaded or ways.names_of(f"{module}.{name}"):
                return self.outside(f"{module}.{name}", node)
        if name == "get_ipython":
            return frozenset({Outside("IPython.get_ipython")})
        if name == "__name__":
            return known("__main__")
        if name == "__builtins__":
            return frozenset({Outside("builtins")})
        if name in BUILTINS:
            return self.outside(f"builtins.{name}", node)
        if HISTORY.fullmatch(name) and "_" in self.notebook.names:
            return self.emit(self.notebook.names["_"])
        return ANYTHING

    # --- attributes -------------------------------------------------------------------

    def attributes(self, values: Values, name: str, node: ast.AST) -> Values:
        """Return an attribute of what may be several values."""
        return join(*(self.attribute(each, name, node) for each in values or ANYTHING))

    def attribute(self, value: Value, name: str, node: ast.AST) -> Values:
        """Return an attribute of a value."""
        if name in ways.FRAMES:
            self.note(node, f".{name} leads out of an object")
            return ANYTHING
        if name == "__dict__" and isinstance(value, (Instance, Class, Function)):
            return self._held_by(value, node)
        if name in ("__getattribute__", "__getattr__"):
            return frozenset(
                {Prepared(Outside("builtins.getattr"), (frozenset({value}),))}
            )
        match value:
            case Outside():
                return self._of_library(value, name, node)
            case Instance():
                return self._of_instance(value, name, node)
            case Class():
                return self._of_class(value, name, node)
            case Function() | Prepared():
                return self._of_function(value, name)
            case Collection():
                if name in value.table:
                    return self.taken(value.table[name])
                return frozenset({Method(value, name)})
            case Shell() if name in ("user_ns", "user_global_ns"):
                return frozenset({Namespace("")})
            case Method(receiver=Shell(), name=part):
                self.note(node, f"get_ipython().{part} {CELLS}", always=True)
                return ANYTHING
            case Known() | Text() | Namespace() | Shell() | Method():
                return frozenset({Method(value, name)})
        return self._of_anything(name, node)

    def _of_library(self, value: Outside, name: str, node: ast.AST) -> Values:
        path = value.path
        if name in ("__dict__", "__globals__"):
            return frozenset({Namespace(path)})
        if path == "__main__":
            return self.named(name, node, self.notebook)
        if path == "sys" and name == "modules":
            return frozenset({Namespace("sys.modules")})
        if f"{path}.{name}" in folding.CONSTANTS:
            return known(folding.CONSTANTS[f"{path}.{name}"])
        if f"{path}.{name}" in self.modules:
            return self.emit(self.modules[f"{path}.{name}"])
        if name in self.patches:
            return join(
                self.emit(self.patches[name]), self.outside(f"{path}.{name}", node)
            )
        return self.outside(f"{path}.{name}", node)

    def _of_anything(self, name: str, node: ast.AST) -> Values:
        """Return an attribute of something that is computed, such as a tensor."""
        if name in self.patches:
            return join(ANYTHING, self.emit(self.patches[name]))
        if name in ways.WRITING:
            self.note(node, "it writes a file that can be imported", always=True)
        if name in ways.METHODS and name not in self.own_attributes:
            return self.outside(f"torch.Tensor.{name}", node)
        if name in ways.WORDS and (
            name in ways.METHODS or name not in self.own_attributes
        ):
            self.note(node, f".{name} of something that is computed")
        return ANYTHING

    def _of_function(self, value: Value, name: str) -> Values:
        if name == "__globals__":
            return frozenset({Namespace("")})
        if name in SAYING:
            return ANYTHING
        # it may be what a library has made of the function, and hold it
        found = join(ANYTHING, frozenset({value}))
        return join(found, self.emit(self.patches.get(name, Binding())))

    def _held_by(self, value: Function | Class | Instance, node: ast.AST) -> Values:
        """Return the collection of an object's attributes."""
        if isinstance(value, Function):
            found = [each.values for each in self.patches.values()]
        else:
            owner = value.of if isinstance(value, Instance) else value
            tables = (owner.scope.names, owner.fields)
            found = [each.values for table in tables for each in table.values()]
        return self.gathered(node, [ANYTHING, *found], "held")

    def _of_instance(self, value: Instance, name: str, node: ast.AST) -> Values:
        if name == "__class__":
            return frozenset({value.of})
        if name in KEEPING and self.member(value.of, name, node) is None:
            return frozenset({Method(value, name)})
        self._inherited(value.of, name)
        found = self.member(value.of, name, node, above=value.above)
        if found is None:
            kept = self.emit(value.of.fields.get("*", Binding()))
            if name in self.patches:
                return join(kept, self.emit(self.patches[name]))
            return join(kept, ANYTHING)
        return (
            join(*(self._bound(value, each) for each in found)) if found else ANYTHING
        )

    def _bound(self, value: Instance, found: Value) -> Values:
        """Return a member as an instance has it: a method with its first argument."""
        if not isinstance(found, Function) or found.owner is None:
            return frozenset({found})
        how = decorators(found)
        if "staticmethod" in how:
            return frozenset({found})
        first: Value = value.of if "classmethod" in how else Instance(value.of)
        prepared = Prepared(found, (frozenset({first}),))
        if how & {"property", "cached_property"}:
            return self.call_value(prepared, [], {}, found.node)
        return frozenset({prepared})

    def _of_class(self, value: Class, name: str, node: ast.AST) -> Values:
        self._inherited(value, name)
        found = self.member(value, name, node)
        if found is None:
            return self.emit(self.patches[name]) if name in self.patches else ANYTHING
        return found or ANYTHING

    def _inherited(self, owner: Class, name: str) -> None:
        """Read a class whose library's base may call any method of its own."""
        if name not in owner.scope.names and name not in owner.fields:
            self.touch(frozenset({owner}))

    def member(
        self,
        owner: Class,
        name: str,
        node: ast.AST,
        *,
        above: bool = False,
        depth: int = 8,
    ) -> Values | None:
        """Return what a class or a base of it has under a name; None if nothing."""
        found = None
        if not above:
            for table in (owner.scope.names, owner.fields):
                if name in table:
                    found = join(found or NONE, self.emit(table[name]))
        if found is not None or not depth:
            return found
        for base in owner.bases:
            got = None
            if isinstance(base, Class):
                got = self.member(base, name, node, depth=depth - 1)
            elif isinstance(base, Outside) and base.path not in PLAIN_BASES:
                got = self.outside(f"{base.path}.{name}", node)
            if got is not None:
                found = join(found or NONE, got)
        return found


def decorators(function: Function) -> set[str]:
    """Name the decorators of a function, by the last part of their names."""
    found = set()
    for each in getattr(function.node, "decorator_list", ()):
        if isinstance(each, ast.Name):
            found.add(each.id)
        elif isinstance(each, ast.Attribute):
            found.add(each.attr)
    return found
