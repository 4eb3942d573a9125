"""Follow a notebook's code from cell to cell without running any of it.

At the top level one assignment replaces another, as it does when the cells run; inside
functions, and inside loops and branches, a name may stand for all that is ever assigned
to it. What an exercise uses is then read from the names that its check asks for.
"""

import ast
from collections.abc import Iterable, Sequence

from autograder.grading.usage import stops, ways
from autograder.grading.usage.library import GROWING, Library
from autograder.grading.usage.lookups import SAYING
from autograder.grading.usage.scopes import Binding, Scope, own_names
from autograder.grading.usage.state import Elsewhere, inside
from autograder.grading.usage.values import (
    ANY_TEXT,
    ANYTHING,
    GIVEN,
    NONE,
    Class,
    Collection,
    Defining,
    Function,
    Instance,
    Known,
    Namespace,
    Note,
    Outside,
    Text,
    Values,
    join,
    known,
)

BY_A_CHECK = ("__init__", "__call__", "__new__", "__post_init__")
_UNKNOWN_TEXT = ANY_TEXT | ANYTHING
PASSES = 3  # through a body, for names that a loop or a closure binds later
ROUNDS = 4  # of an exercise, until no argument of any call is new


class Interpreter(Library):
    """Reads cells in their order; answers for exercises in between."""

    # --- cells and exercises ----------------------------------------------------------

    def run(self, tree: ast.Module, cell: int, *, trusted: bool) -> None:
        """Read a cell."""
        self.cell, self.line, self.trusted, self.unsure = cell, 0, trusted, False
        self.notes = set()
        self.execute(tree.body, self.notebook, strong=True)
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            with self.noting() as notes:
                values = self.evaluate(tree.body[-1].value, self.notebook)
            shown = Binding(values, frozenset(notes))
            self.changed(self.notebook.names, "_", shown)

    def call_all(self) -> None:
        """Read all functions for what they change: any check may have called them."""
        self.trusted = False
        with self.noting():
            self.touch(frozenset([*self.functions.values(), *self.classes.values()]))

    def judge(
        self, asked: Sequence[ast.expr], elsewhere: Elsewhere, *, doubting: bool = False
    ) -> set[Note]:
        """Return what the values of some expressions use.

        Args:
            asked: what a check is called with.
            elsewhere: names that another exercise answers for: what it forbids, and
                the values that it was judged with.
            doubting: whether names may stand for what they stood for before, where a
                cell may have stopped, and for what functions bind them to.
        """
        kept = self.parameters, self.scopes
        self.elsewhere, self.parameters, self.scopes = elsewhere, {}, {}
        self.trusted, self.doubting = False, doubting
        notes: set[Note] = set()
        try:
            for _ in range(ROUNDS):
                before = self.epoch
                self.results.clear()
                with self.noting() as notes:
                    for each in asked:
                        self.evaluate(each, self.notebook)
                if self.epoch == before:
                    break
        finally:
            self.elsewhere, self.doubting = {}, False
            self.parameters, self.scopes = kept
            self.results.clear()
        return notes

    # --- functions and classes --------------------------------------------------------

    def touch(self, values: Values) -> None:
        """Read the bodies of what is used."""
        for each in list(inside(values)):
            if isinstance(each, Function):
                self.notes |= self.body(each).notes
            elif isinstance(each, (Class, Instance)):
                self._touch_class(each.of if isinstance(each, Instance) else each)

    def _touch_class(self, owner: Class) -> None:
        if owner in self.touching:
            return
        self.touching.add(owner)
        try:
            names = sorted(owner.scope.names, key=_calling_first)
            for name in names:
                found = owner.scope.names[name]
                self.notes |= found.notes
                self.touch(found.values)
            self.touch(self.emit(owner.fields.get("*", Binding())))
            for each in owner.bases:
                if isinstance(each, Class):
                    self._touch_class(each)
        finally:
            self.touching.discard(owner)

    def function(
        self, node: Defining, scope: Scope, owner: Class | None = None
    ) -> Function:
        """Return the function that is defined at a place of the text."""
        key = node, id(scope)
        if key not in self.functions:
            made = Function(node, scope, self.cell, owner, self.line)
            self.functions[key] = made
        return self.functions[key]

    def called_by_others(self, function: Function) -> None:
        """Note that a function is called with arguments that nobody knows."""
        given = function.node.args
        names = [
            each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)
        ]
        own = names[1:] if function.owner is not None else names
        self._record(function, dict.fromkeys(own, ANYTHING))
        self.notes |= self.body(function).notes

    def call_function(
        self, function: Function, arguments: list[Values], keywords: dict[str, Values]
    ) -> Values:
        """Return what a function of the notebook's may give."""
        given = function.node.args
        names = [each.arg for each in (*given.posonlyargs, *given.args)]
        found = dict(zip(names, arguments, strict=False))
        known_names = {*names, *(each.arg for each in given.kwonlyargs)}
        found |= {name: v for name, v in keywords.items() if name in known_names}
        if given.vararg is not None:
            rest = self.gathered(given.vararg, [NONE, *arguments[len(names) :]])
            found[given.vararg.arg] = rest
        if given.kwarg is not None:
            others = self.collection(given.kwarg)
            for name in keywords.keys() - known_names:
                self.put(others, Known(name), keywords[name])
            found[given.kwarg.arg] = frozenset({others})
        self._record(function, found)
        result = self.body(function)
        self.notes |= result.notes
        return result.values

    def _record(self, function: Function, found: dict[str, Values]) -> None:
        seen = self.parameters.setdefault(function, {})
        for name, values in found.items():
            old = seen.get(name, NONE)
            if not values <= old:
                seen[name] = join(old, values)
                if seen[name] != old:
                    self.epoch += 1

    def body(self, function: Function) -> Binding:
        """Return what a function's body may return, and what it uses."""
        kept = self.results.get(function)
        if kept is not None and kept[0] == self.epoch:
            return kept[1]
        if function in self.running:
            return kept[1] if kept else Binding()
        self.running.add(function)
        before = self.cell, self.line, self.trusted
        self.cell, self.line = function.cell, function.line
        self.trusted = self.trusted and function.cell == before[0]
        try:
            with self.noting() as notes:
                values = self._read_body(function)
        finally:
            self.cell, self.line, self.trusted = before
            self.running.discard(function)
        found = Binding(values, frozenset(notes))
        self.results[function] = self.epoch, found
        return found

    def _read_body(self, function: Function) -> Values:
        scope = self._scope_of(function)
        values = NONE
        for _ in range(PASSES):
            before = dict(scope.names)
            self._enter_parameters(function, scope)
            if isinstance(function.node, ast.Lambda):
                values = self.evaluate(function.node.body, scope)
                break
            self.execute(function.node.body, scope, strong=False)
            values = scope.names.get("return", Binding()).values
            if "yield" in scope.names:
                made = scope.names["yield"].values
                values = join(values, self.gathered(function.node, [made], "yields"))
            if scope.names == before:
                break
        return values or known(None)

    def _scope_of(self, function: Function) -> Scope:
        if function not in self.scopes:
            node = function.node
            body: Sequence[ast.stmt] = (
                [ast.Expr(node.body)] if isinstance(node, ast.Lambda) else node.body
            )
            bound, shared = own_names(body)
            given = node.args
            names = {each.arg for each in ast.walk(given) if isinstance(each, ast.arg)}
            found = Scope("function", function.scope, bound | names, shared)
            self.scopes[function] = found
        return self.scopes[function]

    def _enter_parameters(self, function: Function, scope: Scope) -> None:
        given, seen = function.node.args, self.parameters.get(function, {})
        for place, each in enumerate(
            [*given.posonlyargs, *given.args, *given.kwonlyargs]
        ):
            default = function.parameters.get(each.arg, NONE)
            values = join(seen.get(each.arg, NONE), default)
            if each.arg not in seen:
                values = join(values, _UNKNOWN_TEXT if _is_pythons(function) else GIVEN)
                if place == 0 and function.owner is not None:
                    values = self._first_parameter(function)
            scope.names[each.arg] = Binding(values)
        for rest in (given.vararg, given.kwarg):
            if rest is not None:
                values = seen.get(rest.arg) or self.gathered(rest, [ANYTHING])
                scope.names[rest.arg] = Binding(values)

    def _first_parameter(self, function: Function) -> Values:
        decorated = getattr(function.node, "decorator_list", [])  # no lambda is
        how = {getattr(each, "id", "") for each in decorated}
        owner = function.owner
        if "staticmethod" in how or owner is None:
            return ANYTHING
        return frozenset({owner if "classmethod" in how else Instance(owner)})

    # --- statements -------------------------------------------------------------------

    def execute(self, body: Iterable[ast.stmt], scope: Scope, *, strong: bool) -> None:
        """Read statements in their order."""
        for node in body:
            self.step()
            if scope is self.notebook:
                self.unsure = self.unsure or stops.may_stop(node, self.notebook.names)
            read = getattr(self, f"_do_{type(node).__name__.lower()}", None)
            if read is not None:
                read(node, scope, strong)
            else:
                self._do_other(node, scope, strong)

    def _do_other(self, node: ast.stmt, scope: Scope, strong: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.evaluate(child, scope)

    def _evaluated(self, node: ast.expr | None, scope: Scope) -> Binding:
        """Return what an expression may stand for, with what it uses."""
        with self.noting() as notes:
            values = self.evaluate(node, scope)
        self.notes |= notes
        return Binding(values, frozenset(notes))

    def _do_expr(self, node: ast.Expr, scope: Scope, strong: bool) -> None:
        found = self._evaluated(node.value, scope)
        if scope is self.notebook:
            self._attach(node.value, found)

    def _attach(self, node: ast.expr, found: Binding) -> None:
        """Let a collection of the notebook's know what is put into it."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=how)) if (
                name in self.notebook.names and how in GROWING
            ):
                old = self.notebook.names[name]
                if any(isinstance(each, Collection) for each in old.values):
                    new = old | Binding(NONE, found.notes)
                    self.bind(name, new, self.notebook, strong=True)

    def _do_assign(self, node: ast.Assign, scope: Scope, strong: bool) -> None:
        found = self._evaluated(node.value, scope)
        for target in node.targets:
            self.assign(target, found, scope, strong=strong)

    def _do_annassign(self, node: ast.AnnAssign, scope: Scope, strong: bool) -> None:
        self.evaluate(node.annotation, scope)
        if node.value is not None:
            found = self._evaluated(node.value, scope)
            self.assign(node.target, found, scope, strong=strong)

    def _do_augassign(self, node: ast.AugAssign, scope: Scope, strong: bool) -> None:
        value = self._evaluated(node.value, scope)
        if node not in self.sums:
            load = ast.copy_location(_loaded(node.target), node.target)
            made = ast.BinOp(load, node.op, node.value)
            self.sums[node] = ast.copy_location(made, node)
        made = self.sums[node]
        old = self.evaluate(made.left, scope)
        if not all(isinstance(each, (Collection, Known, Text)) for each in old):
            self.escape(value.values, node)
        for each in old:
            if isinstance(each, Collection):
                added = [
                    e.everything() for e in value.values if isinstance(e, Collection)
                ]
                self.grow(each, join(*added))
        if scope is self.notebook:
            found = self._evaluated(made, scope) | Binding(NONE, value.notes)
        else:  # a loop may go on for ever: a text that grows is any text
            found = Binding(join(self.evaluate(made, scope), _grown(old)))
        self.assign(node.target, found, scope, strong=strong)

    def assign(
        self, target: ast.expr, found: Binding, scope: Scope, *, strong: bool = False
    ) -> None:
        """Enter what a target of an assignment stands for."""
        match target:
            case ast.Name(id=name):
                self.bind(name, found, scope, strong=strong)
            case ast.Starred(value=value):
                everything = self.gathered(target, [found.values])
                self.assign(
                    value, Binding(everything, found.notes), scope, strong=strong
                )
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                self._unpack(targets, found, scope, strong)
            case ast.Attribute(value=value, attr=name):
                objects = self.callee(value, scope)
                self.set_attribute(objects, name, found, target)
            case ast.Subscript(value=value, slice=key):
                keys = self.evaluate(key, scope)
                for each in self.callee(value, scope):
                    self._set_item(each, keys, found, target)
                if scope is self.notebook and isinstance(value, ast.Name):
                    old = self.notebook.names.get(value.id, Binding())
                    if any(isinstance(each, Collection) for each in old.values):
                        new = old | Binding(NONE, found.notes)
                        self.bind(value.id, new, scope, strong=True)

    def _unpack(
        self, targets: list[ast.expr], found: Binding, scope: Scope, strong: bool
    ) -> None:
        exact = self.exactly(found.values)
        plain = not any(isinstance(each, ast.Starred) for each in targets)
        if exact is not None and plain and len(exact) == len(targets):
            for each, values in zip(targets, exact, strict=True):
                notes = frozenset(
                    v.note for v in inside(values) if isinstance(v, Outside) and v.note
                )
                results = values <= ANYTHING
                notes = found.notes if results else notes
                self.assign(each, Binding(values, notes), scope, strong=strong)
            return
        values = self.each(found.values, targets[0]) if targets else NONE
        for each in targets:
            self.assign(each, Binding(values, found.notes), scope, strong=strong)

    def set_attribute(
        self, objects: Values, name: str, found: Binding, node: ast.AST
    ) -> None:
        """Enter an attribute that is set."""
        for each in objects:
            match each:
                case Instance() | Class():
                    owner = each.of if isinstance(each, Instance) else each
                    self.own_attributes.add(name)
                    self.changed(owner.fields, name, found)
                case Outside(path="__main__"):
                    self.bind(name, found, self.notebook, strong=False)
                case Outside(path=path):
                    self._set_of_library(path, name, found, node)
                case Function():
                    if name in ways.FRAMES or name.startswith("__"):
                        self.note(node, f"it sets {name} of a function", always=True)
                    self.changed(self.patches, name, found)
                case Collection():
                    self.put(each, Known(name), found.values)
                case _:
                    self.escape(found.values, node)
            if isinstance(each, Function) or name in SAYING or not _is_dunder(name):
                continue
            if not isinstance(each, Outside):
                self.note(node, f"it sets {name} of an object", always=True)

    def _set_of_library(
        self, path: str, name: str, found: Binding, node: ast.AST
    ) -> None:
        if path.partition(".")[0] == "autograder" or name in ways.FRAMES:
            self.note(node, f"it sets {path}.{name}", always=True)
        self.changed(self.patches, name, found)
        self.changed(self.modules, f"{path}.{name}", found)

    def _set_item(
        self, value: object, keys: Values, found: Binding, node: ast.AST
    ) -> None:
        if isinstance(value, Collection):
            for key in keys or ANYTHING:
                self.put(value, key, found.values)
        elif isinstance(value, Namespace):
            self.set_entry(value, keys, found, node)
        elif isinstance(value, Instance):
            setters = self.attribute(value, "__setitem__", node)
            for each in setters:
                self.call_value(each, [keys, found.values], {}, node)
        else:
            self.escape(found.values, node)

    def set_entry(
        self, namespace: Namespace, keys: Values, found: Binding, node: ast.AST
    ) -> None:
        """Enter a name into a namespace."""
        for key in keys or ANYTHING:
            name = key.value if isinstance(key, Known) else None
            if not isinstance(name, str):
                self.note(node, "it sets a name that is put together", always=True)
            elif namespace.path == "":
                self.bind(name, found, self.notebook, strong=False)
            elif namespace.path == "sys.modules":
                self.changed(self.modules, name, found)
            else:
                self._set_of_library(namespace.path, name, found, node)

    # --- definitions and imports ------------------------------------------------------

    def _do_functiondef(
        self, node: ast.FunctionDef, scope: Scope, strong: bool
    ) -> None:
        owner = self.owners.get(scope)
        found = self.function(node, scope, owner)
        with self.noting() as notes:
            self._defaults(node.args, found, scope)
            values: Values = frozenset({found})
            for each in reversed(node.decorator_list):
                values = self._decorated(each, values, scope)
            for part in ast.walk(node.args):
                if isinstance(part, ast.arg) and part.annotation is not None:
                    self._annotation(part.annotation, scope)
            if node.returns is not None:
                self._annotation(node.returns, scope)
        self.notes |= notes
        binding = Binding(values, frozenset(notes))
        self.bind(node.name, binding, scope, strong=strong)

    _do_asyncfunctiondef = _do_functiondef

    def _annotation(self, node: ast.expr, scope: Scope) -> None:
        """Read an annotation for what it binds; a type that it names is not used."""
        with self.noting():
            self.evaluate(node, scope)

    def _decorated(self, node: ast.expr, values: Values, scope: Scope) -> Values:
        found = [values]
        for each in self.callee(node, scope):
            if isinstance(each, Outside) and not each.note:
                continue
            found.append(self.call_value(each, [values], {}, node))
        return join(*found) if len(found) == 1 else join(values, *found[1:])

    def _do_classdef(self, node: ast.ClassDef, scope: Scope, strong: bool) -> None:
        with self.noting() as notes:
            bases = [self.evaluate(each, scope) for each in node.bases]
            for keyword in node.keywords:
                self.evaluate(keyword.value, scope)
            key = node, id(scope)
            if key not in self.classes:
                inner = Scope("class", scope, *own_names(node.body))
                self.classes[key] = Class(node.name, NONE, inner)
                self.owners[inner] = self.classes[key]
            found = self.classes[key]
            found.bases = join(found.bases, *bases)
            self.own_attributes |= found.scope.bound
            self.execute(node.body, found.scope, strong=False)
            values: Values = frozenset({found})
            for each in reversed(node.decorator_list):
                values = self._decorated(each, values, scope)
        self.notes |= notes
        self.bind(node.name, Binding(values, frozenset(notes)), scope, strong=strong)

    def _do_import(self, node: ast.Import, scope: Scope, strong: bool) -> None:
        for each in node.names:
            path = each.name if each.asname else each.name.partition(".")[0]
            name = each.asname or path
            if path == "__main__":
                found = Binding(frozenset({Outside(path)}))
            else:
                with self.noting() as notes:
                    found = Binding(self.imported(path, node), frozenset(notes))
                    self.imported(each.name, node)
                found = Binding(found.values, frozenset(notes))
                self.notes |= notes
            self.bind(name, found, scope, strong=strong)

    def _do_importfrom(self, node: ast.ImportFrom, scope: Scope, strong: bool) -> None:
        module = node.module or ""
        for each in node.names:
            if each.name == "*":
                self.stars.append(module)
                continue
            with self.noting() as notes:
                values = self._from(module, each.name, node)
            self.notes |= notes
            found = Binding(values, frozenset(notes))
            self.bind(each.asname or each.name, found, scope, strong=strong)

    def _from(self, module: str, name: str, node: ast.AST) -> Values:
        if module in self.modules:
            return self.attributes(self.emit(self.modules[module]), name, node)
        self.imported(module, node)
        return self.attribute(Outside(module), name, node)

    # --- the rest ---------------------------------------------------------------------

    def _do_raise(self, node: ast.Raise, scope: Scope, strong: bool) -> None:
        for each in (node.exc, node.cause):
            self.escape(self.evaluate(each, scope), node)

    def _do_return(self, node: ast.Return, scope: Scope, strong: bool) -> None:
        values = self.evaluate(node.value, scope) if node.value else known(None)
        self.bind("return", Binding(values), scope, strong=False)

    def _do_for(self, node: ast.For, scope: Scope, strong: bool) -> None:
        found = self._evaluated(node.iter, scope)
        values = self.each(found.values, node.iter)
        self.assign(node.target, Binding(values, found.notes), scope, strong=False)
        for _ in range(2 if scope is self.notebook else 1):
            self.execute(node.body, scope, strong=False)
        self.execute(node.orelse, scope, strong=False)

    _do_asyncfor = _do_for

    def _do_while(self, node: ast.While, scope: Scope, strong: bool) -> None:
        for _ in range(2 if scope is self.notebook else 1):
            self.evaluate(node.test, scope)
            self.execute(node.body, scope, strong=False)
        self.execute(node.orelse, scope, strong=False)

    def _do_if(self, node: ast.If, scope: Scope, strong: bool) -> None:
        self.evaluate(node.test, scope)
        self.execute(node.body, scope, strong=False)
        self.execute(node.orelse, scope, strong=False)

    def _do_with(self, node: ast.With, scope: Scope, strong: bool) -> None:
        for each in node.items:
            found = self._evaluated(each.context_expr, scope)
            if each.optional_vars is not None:
                new = Binding(join(found.values, ANYTHING), found.notes)
                self.assign(each.optional_vars, new, scope, strong=strong)
        self.execute(node.body, scope, strong=strong)

    _do_asyncwith = _do_with

    def _do_try(self, node: ast.Try, scope: Scope, strong: bool) -> None:
        self.execute(node.body, scope, strong=False)
        for each in node.handlers:
            self.evaluate(each.type, scope)
            if each.name:
                self.bind(each.name, Binding(ANYTHING), scope, strong=False)
            self.execute(each.body, scope, strong=False)
        self.execute(node.orelse, scope, strong=False)
        self.execute(node.finalbody, scope, strong=strong)

    _do_trystar = _do_try

    def _do_match(self, node: ast.Match, scope: Scope, strong: bool) -> None:
        found = self._evaluated(node.subject, scope)
        for case in node.cases:
            for each in ast.walk(case.pattern):
                self._pattern(each, found, scope)
            self.evaluate(case.guard, scope)
            self.execute(case.body, scope, strong=False)

    def _pattern(self, node: ast.AST, found: Binding, scope: Scope) -> None:
        match node:
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                held = self.each(found.values, node) if found.values else NONE
                new = Binding(join(found.values, held), found.notes)
                self.bind(name, new, scope, strong=False)
            case ast.MatchClass(kwd_attrs=names, kwd_patterns=patterns):
                for name, pattern in zip(names, patterns, strict=True):
                    values = self.attributes(found.values, name, node)
                    if isinstance(pattern, ast.MatchAs) and pattern.name:
                        self.bind(pattern.name, Binding(values), scope, strong=False)


def _is_pythons(function: Function) -> bool:
    """Tell whether it is a method that Python calls, with names of its own choice."""
    name = getattr(function.node, "name", "")
    return function.owner is not None and _is_dunder(name) and name not in BY_A_CHECK


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _calling_first(name: str) -> tuple[bool, str]:
    """Put methods that Python or PyTorch calls before those that they call."""
    return not (name.startswith("__") or name == "forward"), name


def _loaded(target: ast.expr) -> ast.expr:
    match target:
        case ast.Name(id=name):
            return ast.Name(name, ast.Load())
        case ast.Attribute(value=value, attr=name):
            return ast.copy_location(ast.Attribute(value, name, ast.Load()), target)
    return ast.Constant(None)


def _grown(values: Values) -> Values:
    texts = any(isinstance(e, Known) and isinstance(e.value, str) for e in values)
    return ANY_TEXT if texts else NONE
