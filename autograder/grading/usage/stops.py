"""Tell which statements may stop a cell: behind them, a name may have its old value.

What stands behind an error never runs, and IPython goes on with the next cell; behind
a ``with`` that suppresses errors it goes on in the same. So a name that is bound there
may still stand for what it stood for before.
"""

import ast
import builtins
import sys
from collections.abc import Mapping

from autograder.grading.usage.scopes import Binding
from autograder.grading.usage.values import Class, Outside

Names = Mapping[str, Binding]


def may_stop(node: ast.stmt, names: Names) -> bool:
    """Tell whether a statement of the notebook may raise an exception.

    Args:
        node: the statement.
        names: the notebook's, with what they stand for when the statement begins.
    """
    match node:
        case ast.Pass() | ast.Global() | ast.Expr(value=ast.Constant()):
            return False
        case ast.Assign(targets=[ast.Name()], value=value):
            return not _is_plain(value, names)
        case ast.Import(names=aliases):
            return any(each.name not in sys.modules for each in aliases)
        case ast.ImportFrom(module=str(module), names=aliases):
            held = vars(sys.modules[module]) if module in sys.modules else {}
            return any(each.name not in held for each in aliases)
        case ast.FunctionDef(decorator_list=[], args=arguments, returns=returns):
            return not all(_is_plain(e, names) for e in _read(arguments, returns))
        case ast.ClassDef(decorator_list=[], keywords=[], bases=bases, body=body):
            inner = {**names, **{e.name: Binding() for e in body if hasattr(e, "name")}}
            own = any(may_stop(each, inner) for each in body)
            return own or not all(_is_a_librarys(each, names) for each in bases)
    return True


def _read(arguments: ast.arguments, returns: ast.expr | None) -> list[ast.expr]:
    """Return what a definition computes: defaults and annotations."""
    given = [each for each in ast.walk(arguments) if isinstance(each, ast.arg)]
    found = [*arguments.defaults, *arguments.kw_defaults, returns]
    found += [each.annotation for each in given]
    return [each for each in found if each is not None]


def _is_plain(node: ast.expr, names: Names) -> bool:
    """Tell whether to compute an expression cannot raise."""
    match node:
        case ast.Constant():
            return True
        case ast.Name(id=name):
            return name in names or hasattr(builtins, name)
        case ast.Attribute():
            return _is_a_librarys(node, names)
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
            return True
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return all(_is_plain(each, names) for each in items)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _is_a_type(left, names) and _is_a_type(right, names)
        case ast.Subscript(value=value, slice=inner):
            return _is_a_type(value, names) and _is_plain(inner, names)
    return False


def _is_a_type(node: ast.expr, names: Names) -> bool:
    """Tell whether it can stand in an annotation beside another type."""
    match node:
        case ast.Constant(value=None):
            return True
        case ast.Name(id=name) if name not in names:
            return isinstance(getattr(builtins, name, None), type)
        case ast.Name(id=name):
            values = names[name].values
            return bool(values) and all(isinstance(e, (Class, Outside)) for e in values)
        case ast.BinOp() | ast.Subscript():
            return _is_plain(node, names)
    return _is_a_librarys(node, names)


def _is_a_librarys(node: ast.expr, names: Names) -> bool:
    """Tell whether it is an object of a library that is there."""
    path = _path(node, names)
    module, _, name = path.rpartition(".")
    return name in vars(sys.modules[module]) if module in sys.modules else False


def _path(node: ast.expr, names: Names) -> str:
    """Return the dotted name of a library's object, or ""."""
    match node:
        case ast.Name(id=name) if name in names:
            paths = [e.path for e in names[name].values if isinstance(e, Outside)]
            return paths[0] if len(paths) == len(names[name].values) == 1 else ""
        case ast.Attribute(value=value, attr=name):
            above = _path(value, names)
            return f"{above}.{name}" if above else ""
    return ""
