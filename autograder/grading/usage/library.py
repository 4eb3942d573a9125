"""What calls of Python's and other libraries' functions mean for what is named."""

import ast
import re
from collections.abc import Callable

from autograder.grading.usage import cells, folding, ways
from autograder.grading.usage.expressions import (
    HARMLESS,
    Expressions,
    may_lead_on,
)
from autograder.grading.usage.lookups import CELLS
from autograder.grading.usage.scopes import Binding, Scope
from autograder.grading.usage.state import DEEPEST, callables
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

Arguments = list[Values]
Keywords = dict[str, Values]

BOXES = re.compile(  # whose objects hold what is put into them
    r"types\.SimpleNamespace|argparse\.Namespace|threading\.local|queue\.\w+"
    r"|collections\.\w+|contextvars\.ContextVar|builtins\.object"
)
PASS_ON = {"typing.cast": 1, "copy.copy": 0, "copy.deepcopy": 0, "builtins.iter": 0}
GROWING = frozenset(
    (
        *("append", "extend", "insert", "add", "update", "setdefault", "appendleft"),
        *("put", "set", "__setitem__", "extendleft", "push", "put_nowait"),
    )
)
RECIPES = ("__copy__", "__deepcopy__", "__reduce__", "__reduce_ex__")
COUNTING = frozenset(  # methods of a collection that look, and keep nothing
    (
        *("index", "count", "remove", "sort", "reverse", "clear", "isdisjoint"),
        *("issubset", "issuperset", "most_common", "discard", "__contains__"),
    )
)
QUIET_MAGICS = frozenset(
    (
        *("matplotlib", "autosave", "precision", "pip", "conda"),
        *("who", "pwd", "cd", "ls", "env", "pinfo", "pinfo2"),
        *("reset", "history", "doctest_mode", "xmode", "colors", "mamba", "uv"),
        *("html", "HTML", "javascript", "js", "latex", "markdown", "svg", "bash"),
        *("sh", "script", "pdoc", "psource", "pdef", "cat", "logstart"),
        *("lsmagic", "magic", "quickref", "mkdir", "less", "more"),
    )
)
RUNNING_MAGICS = frozenset(("time", "timeit", "prun", "capture", "memit", "python"))


class Library(Expressions):
    """Reads calls of what is not the notebook's own."""

    def call_library(
        self, value: Outside, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Values:
        """Return what a call of a library's object may give."""
        path = value.path
        known_call = _CALLS.get(path)
        if known_call is not None:
            return known_call(self, arguments, keywords, node)
        if path in PASS_ON and len(arguments) > PASS_ON[path]:
            self._note_recipes(path, arguments[PASS_ON[path]], node)
            return arguments[PASS_ON[path]]
        if path.startswith("IPython.") and path.endswith(".get_ipython"):
            return frozenset({Shell()})
        made = folding.call(path, arguments, lambda: self.collection(node, "made"))
        if made is not None and not keywords:
            return made
        if BOXES.fullmatch(path) or path in ("builtins.list", "builtins.dict"):
            return self._box(arguments, keywords, node)
        if path in ("builtins.tuple", "builtins.set", "builtins.reversed"):
            return self.gathered(node, [self.each(a, node) for a in arguments], "box")
        values = [*arguments, *keywords.values()]
        if not ways.keeps_nothing(path):
            self.escape(join(*values), node)
        return join(self.handed_on(values), _made(value))

    def _note_recipes(self, path: str, values: Values, node: ast.AST) -> None:
        """Flag a copy that an object of the notebook's makes in a way of its own."""
        owners = [each.of for each in values if isinstance(each, Instance)]
        copying = path.startswith("copy.")
        if copying and any(self.member(o, n, node) for o in owners for n in RECIPES):
            self.note(node, "a copy is made in a way of the object's own", always=True)

    def _box(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Values:
        found = self.collection(node, "box")
        for name, values in keywords.items():
            self.put(found, Known(name), values)
        for each in join(*arguments):
            if isinstance(each, Collection):
                for key, values in each.table.items():
                    self.put(found, Known(key), values)
                self.grow(found, join(each.rest, *(each.items or ())))
            elif callables(frozenset({each})):  # it may be called for what lacks
                made = self.call_value(each, [], {}, node)
                self.grow(found, join(made, frozenset({each})))
            elif not isinstance(each, Known):
                self.grow(found, ANYTHING)
        return frozenset({found})

    # --- by name ----------------------------------------------------------------------

    def _getattr(
        self, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Values:
        if len(arguments) < 2:
            return ANYTHING
        found = [*arguments[2:3]]
        for key in arguments[1] or ANYTHING:
            for value in arguments[0] or ANYTHING:
                found.append(self.by_name(value, key, node))
        self.touch(join(*found))
        return join(*found)

    def by_name(self, value: Value, key: Value, node: ast.AST) -> Values:
        """Return the attribute of a value that a key names."""
        if isinstance(key, Known):
            if not isinstance(key.value, str):
                return NONE
            return self.attribute(value, key.value, node)
        match value:
            case Instance() | Class():
                owner = value.of if isinstance(value, Instance) else value
                return self._any_member(owner)
            case Known() | Collection() | Text():
                return ANYTHING
            case Namespace(path=path):
                return self.entry(path, key, node)
            case Outside(path=path):
                if path.partition(".")[0] in HARMLESS or not may_lead_on(key):
                    return ANYTHING
                self.note(node, f"a name of {path} is put together while it runs")
                return ANYTHING
        words = (*ways.METHODS, *ways.FRAMES)
        if may_lead_on(key, words):
            self.note(node, "an attribute's name is put together while it runs")
        return ANYTHING

    def _any_member(self, owner: Class) -> Values:
        tables = (owner.scope.names, owner.fields)
        found = [each.values for table in tables for each in table.values()]
        return self.taken(join(ANYTHING, *found))

    def _setattr(
        self, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Values:
        if len(arguments) == 3:
            objects, keys, values = arguments
            for key in keys:
                if isinstance(key, Known) and isinstance(key.value, str):
                    self.set_attribute(objects, key.value, Binding(values), node)
                    continue
                for each in objects:
                    self._set_any(each, Binding(values), node)
        return known(None)

    def _set_any(self, value: Value, new: Binding, node: ast.AST) -> None:
        if isinstance(value, (Instance, Class)):
            owner = value.of if isinstance(value, Instance) else value
            self.changed(owner.fields, "*", new)
        else:
            self.escape(new.values, node)
        if isinstance(value, (Outside, Function)):
            what = "it sets an attribute whose name is put together while it runs"
            self.note(node, what, always=True)

    def _import(
        self, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Values:
        names = arguments[0] if arguments else keywords.get("name", NONE)
        whole = len(arguments) > 3 or "fromlist" in keywords
        return self._modules(names, node, top=not whole)

    def _import_module(
        self, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Values:
        names = arguments[0] if arguments else keywords.get("name", NONE)
        return self._modules(names, node, top=False)

    def _modules(self, names: Values, node: ast.AST, *, top: bool) -> Values:
        found: list[Values] = []
        for each in names or ANYTHING:
            if isinstance(each, Known) and isinstance(each.value, str):
                path = each.value.strip(".")
                if path == "__main__":
                    found.append(frozenset({Outside(path)}))
                else:
                    path = path.partition(".")[0] if top else path
                    found.append(self.imported(path, node))
            elif not isinstance(each, Known):
                self.note(node, "a module's name is put together while it runs")
                found.append(ANYTHING)
        return join(*found)

    def _attrgetter(
        self, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Values:
        got = Outside("operator.attrgetter()")
        return frozenset({Prepared(got, (join(*arguments),))})

    def _got(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Values:
        if len(arguments) != 2:
            return ANYTHING
        found = []
        for key in arguments[0]:
            values = arguments[1] or ANYTHING
            text = _text(key)
            parts = text.split(".") if isinstance(text, str) else [None]
            for part in parts[:20]:
                name = Text() if part is None else Known(part)
                values = join(*(self.by_name(each, name, node) for each in values))
            found.append(values)
        return join(*found)

    def _methodcaller(
        self, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Values:
        for key in arguments[0] if arguments else ():
            self.by_name(next(iter(ANYTHING)), key, node)
        return ANYTHING

    def _itemgetter(
        self, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Values:
        got = Outside("operator.itemgetter()")
        return frozenset({Prepared(got, (join(*arguments),))})

    def _item_got(
        self, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Values:
        if len(arguments) != 2:
            return ANYTHING
        return join(*(self.item(each, arguments[0], node) for each in arguments[1]))

    def _vars(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Values:
        if not arguments:
            return frozenset({Namespace("")})
        found = [
            frozenset({Namespace("" if each.path == "__main__" else each.path)})
            for each in arguments[0]
            if isinstance(each, Outside)
        ]
        return (
            join(ANYTHING, *found) if len(found) < len(arguments[0]) else join(*found)
        )

    def _type(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Values:
        found = [
            frozenset({each.of}) if isinstance(each, Instance) else ANYTHING
            for each in (arguments[0] if arguments else ())
        ]
        if len(arguments) == 3:  # type(name, bases, names) makes a class
            return self.handed_on([arguments[1], *map(_held, arguments[2])])
        return join(*found) or ANYTHING

    def _open(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Values:
        """Flag what writes a file that can be imported."""
        modes = arguments[1] if len(arguments) > 1 else keywords.get("mode", known("r"))
        reads = all(set(str(_text(each) or "w")) <= set("rbtU") for each in modes)
        names = arguments[0] if arguments else keywords.get("file", ANYTHING)
        if not reads and any(map(_may_be_imported, names or ANYTHING)):
            self.note(node, "it writes a file that can be imported", always=True)
        return ANYTHING

    def _timed(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Values:
        """Read what is measured, be it a text or a function."""
        given = [keywords.get(name, NONE) for name in ("stmt", "setup")]
        for each in join(*arguments[:2], *given):
            if isinstance(each, (Known, Text)):
                self.run_text(each, node)
        return self.handed_on([*arguments[:2], *given])

    # --- functions of functions -------------------------------------------------------

    def _partial(
        self, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Values:
        if not arguments:
            return ANYTHING
        given = tuple(arguments[1:])
        found = frozenset(Prepared(each, given) for each in arguments[0])
        if keywords:
            self.handed_on(list(keywords.values()))
        return join(found)

    def _map(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Values:
        if len(arguments) < 2:
            return ANYTHING
        exact = [self.exactly(each) for each in arguments[1:]]
        if all(each is not None for each in exact):
            rows = list(zip(*exact, strict=False))
            found = [
                join(*(self.call_value(f, list(row), {}, node) for f in arguments[0]))
                for row in rows[:64]
            ]
            return self.ordered(node, found, "map")
        rows = [self.each(each, node) for each in arguments[1:]]
        found = [self.call_value(f, rows, {}, node) for f in arguments[0]]
        return self.gathered(node, found, "map")

    def _filter(
        self, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Values:
        if len(arguments) < 2:
            return ANYTHING
        values = self.each(arguments[1], node)
        for each in arguments[0]:
            self.call_value(each, [values], {}, node)
        return self.gathered(node, [values], "filter")

    def _reduce(
        self, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Values:
        if len(arguments) < 2:
            return ANYTHING
        items = self.exactly(arguments[1])
        if items is None:
            items = [self.each(arguments[1], node)] * 2
        values = arguments[2] if len(arguments) > 2 else NONE
        for item in items[:64]:
            if not values:
                values = item
                continue
            calls = [self.call_value(f, [values, item], {}, node) for f in arguments[0]]
            values = join(*calls)
        return values or ANYTHING

    def _next(self, arguments: Arguments, keywords: Keywords, node: ast.AST) -> Values:
        first = self.each(arguments[0], node) if arguments else ANYTHING
        return join(first, *arguments[1:])

    # --- texts that are code ----------------------------------------------------------

    def _evaluate_text(
        self, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Values:
        found = []
        boxes = join(*arguments[1:], *keywords.values())
        for each in arguments[0] if arguments else NONE:
            found.append(self.run_text(each, node, boxes))
        return join(*found)

    def _compile(
        self, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Values:
        return arguments[0] if arguments else keywords.get("source", ANYTHING)

    def run_text(self, text: Value, node: ast.AST, boxes: Values = NONE) -> Values:
        """Read a text as code that runs here; return the value of an expression."""
        source = _text(text)
        if isinstance(source, bytes):
            source = source.decode("utf-8", "replace")
        if not isinstance(source, str):
            self.note(node, "it runs a text that is made while it runs", always=True)
            return ANYTHING
        try:
            tree = cells.parse(source.strip())
        except (SyntaxError, ValueError):
            return NONE
        except cells.TooLong:
            self.note(node, "it runs a text that is too long", always=True)
            return ANYTHING
        return self._run_tree(tree, node, boxes)

    def _run_tree(self, tree: ast.Module, node: ast.AST, boxes: Values) -> Values:
        if self.depth >= DEEPEST:
            self.note(node, "it runs texts that run texts", always=True)
            return ANYTHING
        before, scope = self.line, self.scope
        self.line = self.line or getattr(node, "lineno", 0)
        self.depth += 1
        try:
            with self.noting() as notes:
                value = self._statements_of(tree, scope)
                names = {each.name for each in tree.body if hasattr(each, "name")}
                made = [self.named(name, node, scope) for name in sorted(names)]
                self.touch(join(*made))
        finally:
            self.line, self.depth = before, self.depth - 1
        self.notes |= notes
        for each in boxes:
            if isinstance(each, Collection):
                for name in sorted(names):
                    self.put(each, Known(name), self.named(name, node, scope))
        return value

    def _statements_of(self, tree: ast.Module, scope: Scope) -> Values:
        if len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr):
            return self.evaluate(tree.body[0].value, scope)
        self.execute(tree.body, scope, strong=False)
        return known(None)

    def _compilation_unit(
        self, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Values:
        found = self.collection(node, "unit")
        for each in arguments[0] if arguments else NONE:
            self.run_text(each, node, frozenset({found}))
        return frozenset({found})

    # --- methods ----------------------------------------------------------------------

    def call_method(
        self, method: Method, arguments: Arguments, keywords: Keywords, node: ast.AST
    ) -> Values:
        """Return what a method of a known value may give."""
        receiver, name = method.receiver, method.name
        match receiver:
            case Known():
                return self._method_of_constant(
                    receiver, name, arguments, keywords, node
                )
            case Text():
                return frozenset({Text()})
            case Collection():
                return self._method_of_collection(
                    receiver, name, arguments, keywords, node
                )
            case Namespace():
                return self._method_of_namespace(receiver, name, arguments, node)
            case Shell():
                return self._method_of_shell(name, arguments, node)
            case Instance():
                kept = Binding(join(*arguments, *keywords.values()))
                self.changed(receiver.of.fields, "*", kept)
        return self.handed_on(arguments)

    def _method_of_constant(
        self,
        receiver: Known,
        name: str,
        arguments: Arguments,
        keywords: Keywords,
        node: ast.AST,
    ) -> Values:
        one = frozenset({receiver})
        if name == "format" and keywords:
            return frozenset({Text()})
        if name == "format":
            text = str(receiver.value)
            if re.fullmatch(r"[^{}]*(\{\}[^{}]*)*", text):
                return self._formatted(text, arguments)
        return folding.method(one, name, arguments, lambda: self.collection(node, "of"))

    def _formatted(self, text: str, arguments: Arguments) -> Values:
        pieces = text.split("{}")
        parts: list[Value] = [Known(pieces[0])]
        for piece, values in zip(pieces[1:], arguments, strict=False):
            parts.append(next(iter(values)) if len(values) == 1 else Text())
            parts.append(Known(piece))
        return folding.concatenated(parts)

    def _method_of_collection(
        self,
        receiver: Collection,
        name: str,
        arguments: Arguments,
        keywords: Keywords,
        node: ast.AST,
    ) -> Values:
        values = join(*arguments, *keywords.values())
        if name in GROWING:
            if name in ("setdefault", "__setitem__") and len(arguments) == 2:
                for key in arguments[0]:
                    self.put(receiver, key, arguments[1])
                return self.taken(receiver.everything())
            for argument, own in keywords.items():
                self.put(receiver, Known(argument), own)
            for each in values:
                if isinstance(each, Collection) and name in ("update", "extend"):
                    self._box_into(receiver, each)
            self.grow(receiver, join(*arguments))
            return known(None)
        if name in ("get", "pop", "__getitem__") and arguments:
            return join(self.item(receiver, arguments[0], node), *arguments[1:])
        if name == "items":
            keys = join(*(known(key) for key in receiver.table)) or ANYTHING
            pair = self.ordered(node, [keys, receiver.everything()], "pair")
            return self.gathered(node, [pair], "items")
        if name == "keys":
            return self.gathered(node, [known(key) for key in receiver.table], "keys")
        if name in ("values", "copy", "popitem", "pop", "popleft", "get", "elements"):
            return self.gathered(node, [receiver.everything()], name)
        if name not in COUNTING:
            self.escape(values, node)
        found = self.taken(receiver.everything()) if receiver.table else ANYTHING
        return join(self.handed_on(arguments), _no_constants(found))

    def _box_into(self, receiver: Collection, other: Collection) -> None:
        for key, values in other.table.items():
            self.put(receiver, Known(key), values)
        self.grow(receiver, join(other.rest, *(other.items or ())))

    def _method_of_namespace(
        self, receiver: Namespace, name: str, arguments: Arguments, node: ast.AST
    ) -> Values:
        if name in ("get", "pop", "__getitem__") and arguments:
            found = [self.entry(receiver.path, key, node) for key in arguments[0]]
            return join(*found, *arguments[1:])
        if name in ("update", "setdefault", "__setitem__"):
            self._enter(receiver, name, arguments, node)
            return known(None)
        if name in ("items", "values", "copy", "popitem", "keys", "__iter__"):
            if receiver.path == "" and name in ("keys", "copy"):
                return ANYTHING
            self.note(node, "it goes through all names of a module")
        return ANYTHING

    def _enter(
        self, receiver: Namespace, name: str, arguments: Arguments, node: ast.AST
    ) -> None:
        if name != "update" and len(arguments) == 2:
            self.set_entry(receiver, arguments[0], Binding(arguments[1]), node)
            return
        for each in join(*arguments):
            table = each.table if isinstance(each, Collection) else {None: ANYTHING}
            for key, values in table.items():
                keys = ANYTHING if key is None else known(key)
                self.set_entry(receiver, keys, Binding(values), node)

    def _method_of_shell(
        self, name: str, arguments: Arguments, node: ast.AST
    ) -> Values:
        first = [_text(each) for each in (arguments[0] if arguments else ())]
        magic = first[0] if len(first) == 1 and isinstance(first[0], str) else ""
        if name in ("run_line_magic", "magic", "run_cell_magic") and magic:
            magic, _, rest = magic.partition(" ")
            body = [known(rest)] if rest else arguments[1:]
            if magic in RUNNING_MAGICS:
                return join(*(self._run_magic(each, node) for each in body))
            if magic in QUIET_MAGICS or magic.startswith("who"):
                return ANYTHING
        if name in ("run_cell", "ex", "ev", "run_code", "run_line"):
            return join(*(self.run_text(e, node) for e in arguments[0]), NONE)
        if name in ("push", "update"):
            namespace = Namespace("")
            self._enter(namespace, "update", arguments[:1], node)
            return known(None)
        if name in ("system", "getoutput", "getoutput_split", "set_next_input"):
            return ANYTHING
        self.note(node, f"get_ipython().{name} {CELLS}", always=True)
        return ANYTHING

    def _run_magic(self, values: Values, node: ast.AST) -> Values:
        found = []
        for each in values:
            source = _text(each)
            if isinstance(source, str):
                # `%time -r 3 x` has options before its code
                source = re.sub(r"^\s*(-\w+\s+(\d+\s+)?)*", "", source, count=1)
                found.append(self.run_text(Known(source), node))
        return join(*found)


def _made(value: Outside) -> Values:
    """Return the object that the call of a class makes, if it leads to something."""
    name = value.path.rpartition(".")[2]
    if not value.note or not name[:1].isupper() or name.endswith("()"):
        return NONE
    return frozenset({Outside(f"{value.path}()", value.note)})


def _text(value: Value) -> object:
    return value.value if isinstance(value, Known) else None


def _held(value: Value) -> Values:
    return value.everything() if isinstance(value, Collection) else frozenset({value})


def _no_constants(values: Values) -> Values:
    """Keep what is no plain value."""
    return frozenset(each for each in values if not isinstance(each, (Known, Text)))


def _globals(self: Library, *given: object) -> Values:
    return frozenset({Namespace("")})


def _first(self: Library, arguments: Arguments, *given: object) -> Values:
    return arguments[0] if arguments else ANYTHING


def _may_be_imported(name: Value) -> bool:
    text = name.parts[-1] if isinstance(name, Text) else _text(name)
    return not isinstance(text, str) or not text or text.endswith(ways.IMPORTABLE)


_CALLS: dict[str, Callable[[Library, Arguments, Keywords, ast.AST], Values]] = {
    "builtins.open": Library._open,
    "io.open": Library._open,
    "timeit.timeit": Library._timed,
    "timeit.repeat": Library._timed,
    "timeit.Timer": Library._timed,
    "builtins.getattr": Library._getattr,
    "inspect.getattr_static": Library._getattr,
    "builtins.object.__getattribute__": Library._getattr,
    "builtins.type.__getattribute__": Library._getattr,
    "builtins.setattr": Library._setattr,
    "builtins.object.__setattr__": Library._setattr,
    "builtins.type.__setattr__": Library._setattr,
    "builtins.__import__": Library._import,
    "importlib.__import__": Library._import,
    "importlib.import_module": Library._import_module,
    "importlib.reload": _first,
    "operator.attrgetter": Library._attrgetter,
    "operator.attrgetter()": Library._got,
    "operator.methodcaller": Library._methodcaller,
    "operator.itemgetter": Library._itemgetter,
    "operator.itemgetter()": Library._item_got,
    "builtins.vars": Library._vars,
    "builtins.globals": _globals,
    "builtins.locals": _globals,
    "builtins.type": Library._type,
    "functools.partial": Library._partial,
    "functools.partialmethod": Library._partial,
    "functools.reduce": Library._reduce,
    "builtins.map": Library._map,
    "builtins.filter": Library._filter,
    "builtins.next": Library._next,
    "builtins.eval": Library._evaluate_text,
    "builtins.exec": Library._evaluate_text,
    "builtins.compile": Library._compile,
    "torch.jit.CompilationUnit": Library._compilation_unit,
    "torch.jit.script": _first,
    "torch.compile": _first,
}
