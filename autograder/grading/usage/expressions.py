"""Read expressions: what each of them may stand for."""

import ast
import itertools
import sys

from autograder.grading.usage import folding, ways
from autograder.grading.usage.lookups import Lookups
from autograder.grading.usage.scopes import Binding, Scope, own_names
from autograder.grading.usage.state import callables, inside
from autograder.grading.usage.values import (
    ANY_TEXT,
    ANYTHING,
    MOST_FORMS,
    MOST_ITEMS,
    NONE,
    Class,
    Collection,
    Function,
    Given,
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

HARMLESS = frozenset(  # packages of which a computed name is no way to anything
    (
        *("math", "cmath", "random", "itertools", "string", "collections", "numpy"),
        *("matplotlib", "time", "statistics", "re", *ways.COURSE),
    )
)


Gathering = ast.ListComp | ast.SetComp | ast.GeneratorExp


class Expressions(Lookups):
    """Reads expressions."""

    scope: Scope  # in which a call stands

    def evaluate(self, node: ast.expr | None, scope: Scope) -> Values:
        """Return what an expression may stand for."""
        if node is None:
            return NONE
        self.step()
        read = getattr(self, f"_{type(node).__name__.lower()}", None)
        if read is not None:
            return read(node, scope)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.evaluate(child, scope)
        return ANYTHING

    def _constant(self, node: ast.Constant, scope: Scope) -> Values:
        return known(node.value)

    def _name(self, node: ast.Name, scope: Scope) -> Values:
        values = self.named(node.id, node, scope)
        self.touch(values)
        return values

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Values:
        values = self.attributes(self.callee(node.value, scope), node.attr, node)
        self.touch(values)
        return values

    def callee(self, node: ast.expr, scope: Scope) -> Values:
        """Return what is called; the body of a function is read with its arguments."""
        self.step()
        if isinstance(node, ast.Name):
            return self.named(node.id, node, scope)
        if isinstance(node, ast.Attribute):
            return self.attributes(self.callee(node.value, scope), node.attr, node)
        return self.evaluate(node, scope)

    # --- texts and numbers ------------------------------------------------------------

    def _joinedstr(self, node: ast.JoinedStr, scope: Scope) -> Values:
        parts = [self._part(each, scope) for each in node.values]
        products = itertools.islice(itertools.product(*parts), MOST_FORMS)
        return join(*(folding.concatenated(each) for each in products))

    def _part(self, node: ast.expr, scope: Scope) -> Values:
        if not isinstance(node, ast.FormattedValue):
            return self.evaluate(node, scope)
        values = self.evaluate(node.value, scope) or ANYTHING
        if node.format_spec is None and node.conversion in (-1, 115):
            return values
        self.evaluate(node.format_spec, scope)
        return ANY_TEXT

    def _binop(self, node: ast.BinOp, scope: Scope) -> Values:
        left = self.evaluate(node.left, scope)
        right = self.evaluate(node.right, scope)
        kind = type(node.op).__name__
        both = [each for each in left | right if isinstance(each, Collection)]
        if len(both) > 1 or (both and kind == "BitOr"):
            return self.gathered(node, [each.everything() for each in both])
        return folding.binary(kind, left, right, lambda: self.collection(node))

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Values:
        values = self.evaluate(node.operand, scope)
        if isinstance(node.op, ast.USub) and len(values) == 1:
            (value,) = values
            if isinstance(value, Known) and isinstance(value.value, (int, float)):
                return known(-value.value)
        return ANYTHING

    def _boolop(self, node: ast.BoolOp, scope: Scope) -> Values:
        return join(*(self.evaluate(each, scope) for each in node.values))

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> Values:
        self.evaluate(node.test, scope)
        parts = self.evaluate(node.body, scope), self.evaluate(node.orelse, scope)
        return join(*parts)

    def _slice(self, node: ast.Slice, scope: Scope) -> Values:
        ends = [self.evaluate(e, scope) for e in (node.lower, node.upper, node.step)]
        try:
            given = [folding.concrete(each) if each else None for each in ends]
        except folding._Unclear:
            return ANYTHING
        return known(slice(*given))

    # --- collections ------------------------------------------------------------------

    def gathered(self, node: ast.AST, parts: list[Values], part: str = "") -> Values:
        """Return the collection of some values in no known order."""
        found = self.collection(node, part)
        self.grow(found, join(*parts))
        return frozenset({found})

    def ordered(self, node: ast.AST, items: list[Values], part: str = "") -> Values:
        """Return the collection of values in their order."""
        found = self.collection(node, part)
        if len(items) > MOST_ITEMS:
            return self.gathered(node, items, part)
        if found.items is None or len(found.items) != len(items):
            if found.items is not None:
                self.grow(found, found.everything())
            found.items = items
        else:
            pairs = zip(found.items, items, strict=True)
            found.items = [join(old, new) for old, new in pairs]
        return frozenset({found})

    def _display(self, node: ast.List | ast.Tuple | ast.Set, scope: Scope) -> Values:
        items: list[Values] = []
        for each in node.elts:
            if not isinstance(each, ast.Starred):
                items.append(self.evaluate(each, scope))
                continue
            values = self.evaluate(each.value, scope)
            exact = self.exactly(values)
            if exact is None:
                rest = [self.evaluate(other, scope) for other in node.elts]
                return self.gathered(node, [*items, self.each(values, node), *rest])
            items += exact
        return self.ordered(node, items)

    _list = _tuple = _set = _display

    def _starred(self, node: ast.Starred, scope: Scope) -> Values:
        return self.each(self.evaluate(node.value, scope), node)

    def _dict(self, node: ast.Dict, scope: Scope) -> Values:
        found = self.collection(node)
        for key, value in zip(node.keys, node.values, strict=True):
            values = self.evaluate(value, scope)
            if key is None:
                for each in values:
                    if isinstance(each, Collection):
                        found.table |= each.table
                        self.grow(found, each.rest)
                continue
            for name in self.evaluate(key, scope):
                self.put(found, name, values)
        return frozenset({found})

    def put(self, found: Collection, key: Value, values: Values) -> None:
        """Put values under a key into a collection."""
        if isinstance(key, Known) and isinstance(key.value, folding.SCALARS):
            old = found.table.get(key.value, NONE)
            if not values <= old:
                found.table[key.value] = join(old, values)
                if not values <= ANYTHING:
                    self.epoch += 1
        else:
            self.grow(found, values)

    def exactly(self, values: Values) -> list[Values] | None:
        """Return the elements in their order, if there is only one way."""
        if len(values) != 1:
            return None
        (value,) = values
        if isinstance(value, Collection) and not value.rest:
            return value.items if not value.table else None
        if isinstance(value, Known):
            return folding.elements(value.value)
        return None

    def each(self, values: Values, node: ast.AST) -> Values:
        """Return what one may get by going through values."""
        found = [NONE]
        for value in values:
            if isinstance(value, Collection):
                keys = [known(key) for key in value.table]
                found += [*(value.items or ()), value.rest, *keys]
            elif isinstance(value, Known):
                found += folding.elements(value.value) or [ANYTHING]
            elif isinstance(value, Text):
                found.append(ANY_TEXT)
            elif isinstance(value, Namespace):
                self.note(node, "it goes through all names of a module")
                found.append(ANYTHING)
            else:
                found.append(join(ANYTHING, callables(frozenset({value}))))
        return self.taken(join(*found))

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Values:
        values = self.evaluate(node.value, scope)
        key = self.evaluate(node.slice, scope)
        found = join(*(self.item(each, key, node) for each in values or ANYTHING))
        self.touch(found)
        return found

    def item(self, value: Value, key: Values, node: ast.AST) -> Values:
        """Return an element of a value."""
        match value:
            case Known():
                one = frozenset({value})
                return folding.subscript(one, key, lambda: self.collection(node, "of"))
            case Text():
                return ANY_TEXT
            case Collection():
                return self.taken(join(*(self._item(value, each) for each in key)))
            case Namespace():
                return join(*(self.entry(value.path, each, node) for each in key))
            case Outside():
                texts = [
                    each.value
                    for each in key
                    if isinstance(each, Known) and isinstance(each.value, str)
                ]
                parts = [
                    self.attribute(value, text, node)
                    for text in texts
                    if text.isidentifier()
                ]
                own = frozenset({value}) if value.note else NONE
                return join(ANYTHING, own, *parts)
            case Function() | Class() | Instance() | Prepared():
                return join(ANYTHING, frozenset({value}))  # or what holds it
        return ANYTHING

    def _item(self, value: Collection, key: Value) -> Values:
        if not isinstance(key, Known):
            return value.everything()
        if isinstance(key.value, slice):
            return frozenset({value})
        if isinstance(key.value, folding.SCALARS) and key.value in value.table:
            return join(value.table[key.value], value.rest)
        items = value.items or []
        if isinstance(key.value, int) and -len(items) <= key.value < len(items):
            return join(items[key.value], value.rest)
        return value.rest or value.everything()

    def entry(self, path: str, key: Value, node: ast.AST) -> Values:
        """Return what a namespace has under a key."""
        if isinstance(key, Known) and isinstance(key.value, str):
            if path == "":
                return self.named(key.value, node, self.notebook)
            if path == "sys.modules":
                return self.imported(key.value, node)
            return self.attribute(Outside(path), key.value, node)
        if may_lead_on(key):
            self.note(node, "a name is put together while it runs")
        return ANYTHING

    def imported(self, path: str, node: ast.AST) -> Values:
        """Return a module."""
        if path in self.modules:
            return self.emit(self.modules[path])
        if not ways.is_known_module(path):
            what = f"{path}: no module of the course, of Python or of its packages"
            self.note(node, what, always=True)
        return self.outside(path, node)

    # --- comprehensions, lambdas and the like -----------------------------------------

    def _comprehension(self, node: Gathering, scope: Scope) -> Values:
        inner = Scope("function", scope, _targets(node.generators))
        (first, *others) = node.generators
        values = self.evaluate(first.iter, scope)
        exact = self.exactly(values)
        if exact is not None and not others and not first.ifs and exact:
            found = []
            for item in exact:
                inner.names.clear()
                self.assign(first.target, Binding(item), inner)
                found.append(self._element(node, inner))
            return self.ordered(node, found)
        self.assign(first.target, Binding(self.each(values, first.iter)), inner)
        for each in others:
            gone_through = self.each(self.evaluate(each.iter, inner), each.iter)
            self.assign(each.target, Binding(gone_through), inner)
        for each in node.generators:
            for test in each.ifs:
                self.evaluate(test, inner)
        return self.gathered(node, [self._element(node, inner)])

    _listcomp = _setcomp = _generatorexp = _comprehension

    def _element(self, node: Gathering, scope: Scope) -> Values:
        return self.evaluate(node.elt, scope)

    def _dictcomp(self, node: ast.DictComp, scope: Scope) -> Values:
        inner = Scope("function", scope, _targets(node.generators))
        found = self.collection(node)
        for each in node.generators:
            values = self.each(self.evaluate(each.iter, inner), each.iter)
            self.assign(each.target, Binding(values), inner)
            for test in each.ifs:
                self.evaluate(test, inner)
        keys, values = self.evaluate(node.key, inner), self.evaluate(node.value, inner)
        for key in keys or ANYTHING:
            self.put(found, key, values)
        return frozenset({found})

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Values:
        found = self.function(node, scope)
        self._defaults(node.args, found, scope)
        return frozenset({found})

    def _defaults(self, given: ast.arguments, found: Function, scope: Scope) -> None:
        positional = [*given.posonlyargs, *given.args]
        late = positional[len(positional) - len(given.defaults) :]
        pairs: list[tuple[ast.arg, ast.expr | None]] = []
        pairs += zip(late, given.defaults, strict=True)
        pairs += zip(given.kwonlyargs, given.kw_defaults, strict=True)
        for parameter, default in pairs:
            values = self.evaluate(default, scope)
            old = found.parameters.get(parameter.arg, NONE)
            found.parameters[parameter.arg] = join(old, values)

    def _namedexpr(self, node: ast.NamedExpr, scope: Scope) -> Values:
        with self.noting() as notes:
            values = self.evaluate(node.value, scope)
        self.notes |= notes
        while (
            scope.kind == "function"
            and scope.parent
            and node.target.id not in scope.bound
        ):
            if scope.parent.kind == "class" or node.target.id in scope.shared:
                break
            scope = scope.parent
        self.bind(
            node.target.id, Binding(values, frozenset(notes)), scope, strong=False
        )
        return values

    def _await(self, node: ast.Await, scope: Scope) -> Values:
        return self.evaluate(node.value, scope)

    def _yield(self, node: ast.Yield, scope: Scope) -> Values:
        values = self.evaluate(node.value, scope) if node.value else NONE
        self.bind("yield", Binding(values), scope, strong=False)
        return ANYTHING

    def _yieldfrom(self, node: ast.YieldFrom, scope: Scope) -> Values:
        values = self.each(self.evaluate(node.value, scope), node)
        self.bind("yield", Binding(values), scope, strong=False)
        return ANYTHING

    # --- calls ------------------------------------------------------------------------

    def _call(self, node: ast.Call, scope: Scope) -> Values:
        functions = self.callee(node.func, scope)
        arguments: list[Values] = []
        for each in node.args:
            if isinstance(each, ast.Starred):
                values = self.evaluate(each.value, scope)
                exact = self.exactly(values)
                arguments += (
                    exact if exact is not None else [self.each(values, each)] * 4
                )
            else:
                arguments.append(self.evaluate(each, scope))
        keywords: dict[str, Values] = {}
        for keyword in node.keywords:
            values = self.evaluate(keyword.value, scope)
            if keyword.arg is not None:
                keywords[keyword.arg] = values
                continue
            for value in values:
                table = value.table if isinstance(value, Collection) else {}
                keywords |= {k: v for k, v in table.items() if isinstance(k, str)}
        if (
            isinstance(node.func, ast.Name)
            and node.func.id == "super"
            and not arguments
        ):
            return self._super(scope)
        found = []
        for function in functions or ANYTHING:
            self.scope = scope  # of whatever reads a text as code
            found.append(self.call_value(function, arguments, keywords, node))
        return join(*found)

    def _super(self, scope: Scope) -> Values:
        while scope.parent is not None and scope.kind != "class":
            first = next(iter(scope.names.values()), Binding())
            owner = next((e.of for e in first.values if isinstance(e, Instance)), None)
            if owner is not None:
                return frozenset({Instance(owner, above=True)})
            scope = scope.parent
        return ANYTHING

    def call_value(
        self,
        value: Value,
        arguments: list[Values],
        keywords: dict[str, Values],
        node: ast.AST,
    ) -> Values:
        """Return what the call of a value may give."""
        match value:
            case Function():
                return self.call_function(value, arguments, keywords)
            case Class():
                return self.call_class(value, arguments, keywords, node)
            case Instance():
                parts = [
                    self.call_value(each, arguments, keywords, node)
                    for name in ("__call__", "forward")
                    for each in self.attribute(value, name, node)
                    if isinstance(each, Prepared)
                ]
                return join(*parts) or ANYTHING
            case Prepared():
                given = [*value.arguments, *arguments]
                return self.call_value(value.function, given, keywords, node)
            case Outside():
                return self.call_library(value, arguments, keywords, node)
            case Method():
                return self.call_method(value, arguments, keywords, node)
        values = [*arguments, *keywords.values()]
        self.escape(join(*values), node)
        return self.handed_on(values)

    def handed_on(self, arguments: list[Values]) -> Values:
        """Return what a function may give that we do not know."""
        values = join(*arguments)
        for each in inside(values):
            if isinstance(each, Function):
                self.called_by_others(each)
        return join(ANYTHING, callables(values))

    # --- what cannot be followed ------------------------------------------------------

    def escape(self, values: Values, node: ast.AST) -> None:
        """Flag what leads to something forbidden, and goes where nobody can follow."""
        for each in dict.fromkeys(inside(values)):
            about = self._leads_to(each)
            if about is not None:
                what = f"{_named(each)} goes where it cannot be followed"
                self.note(node, what, always=True, about=about)

    def _leads_to(self, value: Value) -> frozenset[str] | None:
        """Return the forbidden names that a value leads to; None if to none.

        No names: it may lead to any.
        """
        if isinstance(value, (Namespace, Shell)):
            return frozenset()
        if isinstance(value, Outside):
            return self._outside_leads_to(value)
        if not isinstance(value, (Function, Class, Instance)):
            return None
        with self.noting() as notes:
            self.touch(frozenset({value}))
        found = [each for each in notes if not each.always]
        if any(not each.names and not each.about for each in found):
            return frozenset()
        names = frozenset().union(*(each.names | each.about for each in found))
        return names or None

    def _outside_leads_to(self, value: Outside) -> frozenset[str] | None:
        path = value.path
        if value.note:
            return value.note.names
        is_module = path in sys.modules and path.partition(".")[0] not in HARMLESS
        return frozenset() if is_module or ways.why_computed(path) else None

    def call_class(
        self,
        value: Class,
        arguments: list[Values],
        keywords: dict[str, Values],
        node: ast.AST,
    ) -> Values:
        """Return what a class makes."""
        made = frozenset({Instance(value)})
        for name in ("__init__", "__new__", "__post_init__"):
            for each in self.member(value, name, node) or ():
                if isinstance(each, Function):
                    self.call_function(each, [made, *arguments], keywords)
        self.touch(made)
        return made


def _named(value: Value) -> str:
    """Say what a value is called in the notebook."""
    match value:
        case Outside(path=path):
            return path
        case Class(name=name) | Instance(of=Class(name=name)):
            return name
        case Function():
            return getattr(value.node, "name", "a lambda")
    return "the table of the notebook's names"


def may_lead_on(
    key: Value, words: tuple[str, ...] = (*ways.WORDS, *ways.GATES)
) -> bool:
    """Tell whether a name that is put together may be one that leads to a way."""
    return not isinstance(key, (Known, Text, Given)) or (
        isinstance(key, Text) and any(map(key.can_be, words))
    )


def _targets(generators: list[ast.comprehension]) -> frozenset[str]:
    return own_names([ast.Expr(each.target) for each in generators])[0]
