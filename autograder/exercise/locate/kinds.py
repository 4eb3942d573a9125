"""The kinds of small steps by which an answer goes wrong, in tensors and numbers.

Each kind yields what may stand in the place of a node. To add one, write a function
here or in ``kinds_of_code`` and say how likely it is and what a student should look at:
in words that fit every change of the kind, and tell none.
"""

import ast
import itertools
from collections.abc import Callable
from typing import Any

from autograder.exercise.locate.nodes import (
    Nodes,
    Scope,
    call_like,
    called,
    exchanged,
    inner_of,
    is_integer,
    method_of,
    number,
    plus,
    replaced,
    value_of,
    with_keyword,
)

AXES = (-1, -2, 0, 1, 2)
TAKES_AXIS = {
    *("sum", "mean", "max", "min", "amax", "amin", "argmax", "argmin", "softmax"),
    *("log_softmax", "logsumexp", "cumsum", "cumprod", "prod", "std", "var", "norm"),
    *("cat", "concat", "concatenate", "stack", "unsqueeze", "squeeze", "flatten"),
    *("split", "chunk", "transpose", "swapaxes", "movedim", "select", "index_select"),
    *("gather", "topk", "sort", "argsort", "size", "unbind", "flip", "all", "any"),
    *("unflatten", "repeat_interleave", "scatter", "median", "normalize"),
    *("cross_entropy", "glu"),
}
REDUCES = {
    *("sum", "mean", "max", "min", "amax", "amin", "argmax", "argmin", "prod", "std"),
    *("var", "norm", "logsumexp"),
}
OPERATORS = {
    ast.Mult: (ast.Div, ast.MatMult, ast.Add, ast.Pow),
    ast.Div: (ast.Mult, ast.FloorDiv),
    ast.FloorDiv: (ast.Div, ast.Mod),
    ast.Mod: (ast.FloorDiv,),
    ast.MatMult: (ast.Mult,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitXor: (ast.BitOr, ast.BitAnd),
}
Kind = Callable[[ast.AST, Scope], Nodes]
KINDS: list[tuple[int, str, tuple[type, ...], Kind]] = []


def kind(rank: int, look_at: str, *types: type) -> Callable:
    """Register what yields nodes that may stand in the place of a node."""

    def decorate(function: Callable) -> Callable:
        KINDS.append((rank, look_at, types, function))
        return function

    return decorate


# --- axes and shapes ------------------------------------------------------------------


@kind(1, "the axis", ast.Call)
def _axis(node: ast.Call, scope: Scope) -> Nodes:
    for index, argument in enumerate(node.args):
        if is_integer(argument) and called(node) in TAKES_AXIS:
            for axis in AXES:
                yield call_like(node, replaced(node.args, index, number(axis)))
    for index, keyword in enumerate(node.keywords):
        if keyword.arg in ("dim", "axis", "dim0", "dim1", "start_dim", "end_dim"):
            for axis in AXES:
                new = ast.keyword(keyword.arg, number(axis))
                yield call_like(node, None, replaced(node.keywords, index, new))


@kind(1, "the axis", ast.Subscript)
def _size_of_axis(node: ast.Subscript, scope: Scope) -> Nodes:
    of_shape = isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    for axis in (*AXES, -3) if of_shape and is_integer(node.slice) else ():
        yield ast.Subscript(node.value, number(axis), ast.Load())


@kind(4, "the axis", ast.Call)
def _axis_too_few_or_many(node: ast.Call, scope: Scope) -> Nodes:
    if called(node) not in REDUCES | {"cat", "stack", "flatten", "squeeze", "softmax"}:
        return
    if any(each.arg in ("dim", "axis") for each in node.keywords):
        yield call_like(
            node, None, [k for k in node.keywords if k.arg not in ("dim", "axis")]
        )
    elif node.args and is_integer(node.args[-1]):
        yield call_like(node, node.args[:-1])
    else:
        for axis in AXES:
            yield call_like(
                node, None, [*node.keywords, ast.keyword("dim", number(axis))]
            )


@kind(2, "whether the axis is kept", ast.Call)
def _keepdim(node: ast.Call, scope: Scope) -> Nodes:
    kept = [each for each in node.keywords if each.arg == "keepdim"]
    if kept and isinstance(kept[0].value, ast.Constant):
        yield with_keyword(node, "keepdim", not kept[0].value.value)
    elif called(node) in REDUCES:
        yield with_keyword(node, "keepdim", True)


@kind(2, "the divisor of the variance", ast.Call)
def _divisor(node: ast.Call, scope: Scope) -> Nodes:
    if called(node) in ("var", "std", "var_mean", "std_mean"):
        plain = [k for k in node.keywords if k.arg not in ("unbiased", "correction")]
        for value in (0, 1):
            yield with_keyword(call_like(node, None, plain), "correction", value)


@kind(3, "the order of the axes", ast.Call)
def _order_of_axes(node: ast.Call, scope: Scope) -> Nodes:
    if called(node) in ("permute", "view", "reshape", "expand", "repeat", "unflatten"):
        for first, second in itertools.combinations(range(len(node.args)), 2):
            yield call_like(node, exchanged(node.args, first, second))


@kind(3, "the two axes", ast.Call)
def _both_axes(node: ast.Call, scope: Scope) -> Nodes:
    if called(node) in ("transpose", "swapaxes", "movedim") and len(node.args) == 2:
        for pair in ((-2, -1), (0, 1), (1, 2), (0, 2), (1, 3), (2, 3), (-3, -2)):
            yield call_like(node, [number(axis) for axis in pair])


@kind(2, "what is transposed", ast.BinOp)
def _transposed(node: ast.BinOp, scope: Scope) -> Nodes:
    if isinstance(node.op, ast.MatMult):
        for field in ("left", "right"):
            operand = getattr(node, field)
            parts = {"left": node.left, "right": node.right}
            turned: ast.expr = ast.Attribute(operand, "mT", ast.Load())
            if isinstance(operand, ast.Attribute) and operand.attr in ("T", "mT"):
                turned = operand.value
            elif isinstance(operand, ast.Call) and called(operand) == "transpose":
                turned = getattr(operand.func, "value", turned)
            parts[field] = turned
            yield ast.BinOp(parts["left"], node.op, parts["right"])


@kind(5, "what is transposed", ast.Attribute)
def _without_transpose(node: ast.Attribute, scope: Scope) -> Nodes:
    if node.attr in ("T", "mT"):
        yield node.value


@kind(6, "what is transposed", ast.Name, ast.Call)
def _with_transpose(node: ast.expr, scope: Scope) -> Nodes:
    if isinstance(node, ast.Call) or getattr(node, "id", "") in scope.names:
        yield ast.Attribute(node, "mT", ast.Load())


@kind(5, "how the values are laid out", ast.Call)
def _transposed_before(node: ast.Call, scope: Scope) -> Nodes:
    made = inner_of(node)
    if called(node) in ("view", "reshape", "flatten") and made:
        inner = made[0]
        for pair in ((1, 2), (-1, -2), (2, 3), (0, 1)):
            turned = method_of(inner, "transpose", *map(number, pair))
            yield method_of(turned, "reshape", *node.args)
            yield method_of(node, "transpose", *map(number, pair))
    if called(node) == "reshape" or called(node) == "view":
        for pair in ((1, 2), (-1, -2), (2, 3)):
            if len(node.args) >= 2:
                args = exchanged(node.args, len(node.args) - 2, len(node.args) - 1)
                yield method_of(call_like(node, args), "transpose", *map(number, pair))


# --- numbers and operators ------------------------------------------------------------


@kind(3, "the number", ast.Constant, ast.UnaryOp)
def _number(node: ast.expr, scope: Scope) -> Nodes:
    value = value_of(node)
    if type(value) is int:
        for other in (value + 1, value - 1, 0, 1, 2, -1, -value):
            if other != value:
                yield number(other)
    elif type(value) is float:
        known = (0.5, 2.0, -0.5, -2.0, 1.0, 0.0, 1e-5, 1e-6, 1e-8, 1e-9, 1e-12)
        for other in (
            *known,
            -value,
            value * 10,
            value / 10,
            1 / value if value else 1.0,
        ):
            if other != value:
                yield number(other)


@kind(3, "the sign of infinity", ast.Constant)
def _infinity(node: ast.Constant, scope: Scope) -> Nodes:
    turned = {"inf": "-inf", "-inf": "inf"}
    if node.value in turned and isinstance(node.value, str):
        yield ast.Constant(turned[node.value])


@kind(6, "the number", ast.UnaryOp, ast.Constant)
def _large_number(node: ast.expr, scope: Scope) -> Nodes:
    value = value_of(node)
    if value is not None and abs(value) >= 1000:
        yield number(-1e400) if value < 0 else number(1e400)
    if value == 0 and type(value) in (int, float):
        yield ast.UnaryOp(ast.USub(), ast.Constant(1e400))


@kind(4, "the exponent", ast.BinOp)
def _exponent(node: ast.BinOp, scope: Scope) -> Nodes:
    if isinstance(node.op, ast.Pow):
        for value in (0.5, -0.5, 2, -2, -1, 1, 1.5, -1.5):
            yield ast.BinOp(node.left, node.op, number(value))
        yield ast.BinOp(node.left, node.op, ast.UnaryOp(ast.USub(), node.right))


@kind(2, "the sign", ast.BinOp)
def _sign(node: ast.BinOp, scope: Scope) -> Nodes:
    other = {ast.Add: ast.Sub, ast.Sub: ast.Add}.get(type(node.op))
    if other:
        yield ast.BinOp(node.left, other(), node.right)


@kind(2, "the sign", ast.UnaryOp)
def _no_sign(node: ast.UnaryOp, scope: Scope) -> Nodes:
    if isinstance(node.op, ast.USub):
        yield node.operand


@kind(5, "the sign", ast.Name, ast.Call, ast.BinOp, ast.Attribute)
def _with_sign(node: ast.expr, scope: Scope) -> Nodes:
    if not isinstance(node, ast.Name) or node.id in scope.names:
        yield ast.UnaryOp(ast.USub(), node)


@kind(2, "the divisor", ast.BinOp)
def _root_of_divisor(node: ast.BinOp, scope: Scope) -> Nodes:
    if not isinstance(node.op, ast.Div):
        return
    if value_of(node.right) is None:
        root = ast.BinOp(node.right, ast.Pow(), ast.Constant(0.5))
        yield ast.BinOp(node.left, node.op, root)
    inside = inner_of(node.right)
    if isinstance(node.right, ast.Call) and inside:
        if called(node.right) == "sqrt":
            yield ast.BinOp(node.left, node.op, inside[0])
    elif isinstance(node.right, ast.BinOp) and isinstance(node.right.op, ast.Pow):
        yield ast.BinOp(node.left, node.op, node.right.left)


@kind(3, "the order of the two sides", ast.BinOp)
def _sides(node: ast.BinOp, scope: Scope) -> Nodes:
    if isinstance(
        node.op, (ast.MatMult, ast.Sub, ast.Div, ast.FloorDiv, ast.Pow, ast.Mod)
    ):
        yield ast.BinOp(node.right, node.op, node.left)


@kind(4, "the operator", ast.BinOp)
def _operator(node: ast.BinOp, scope: Scope) -> Nodes:
    for other in OPERATORS.get(type(node.op), ()):
        yield ast.BinOp(node.left, other(), node.right)


@kind(5, "whether both parts belong here", ast.BinOp)
def _one_side(node: ast.BinOp, scope: Scope) -> Nodes:
    yield node.left
    yield node.right


@kind(4, "the brackets", ast.BinOp)
def _brackets(node: ast.BinOp, scope: Scope) -> Nodes:
    left, right = node.left, node.right
    if isinstance(left, ast.BinOp):  # (a b) c -> a (b c)
        yield ast.BinOp(left.left, left.op, ast.BinOp(left.right, node.op, right))
    if isinstance(right, ast.BinOp):
        yield ast.BinOp(ast.BinOp(left, node.op, right.left), right.op, right.right)


@kind(3, "what stands inside the brackets", ast.Call)
def _out_of_call(node: ast.Call, scope: Scope) -> Nodes:
    made = inner_of(node)
    inner = made[0] if made else None
    if made and isinstance(inner, ast.BinOp):
        made_on = made[1]
        yield ast.BinOp(made_on(inner.left), inner.op, inner.right)
        yield ast.BinOp(inner.left, inner.op, made_on(inner.right))


@kind(3, "what stands inside the brackets", ast.BinOp)
def _into_call(node: ast.BinOp, scope: Scope) -> Nodes:
    if left := inner_of(node.left):
        inner, made_on = left
        yield made_on(ast.BinOp(inner, node.op, node.right))
    if right := inner_of(node.right):
        inner, made_on = right
        yield made_on(ast.BinOp(node.left, node.op, inner))
    if isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Pow):
        inner = ast.BinOp(node.left.left, node.op, node.right)
        yield ast.BinOp(inner, ast.Pow(), node.left.right)


# --- bounds ---------------------------------------------------------------------------


@kind(1, "where it begins and ends", ast.Slice)
def _bounds(node: ast.Slice, scope: Scope) -> Nodes:
    for field in ("lower", "upper"):
        bound = getattr(node, field)
        new: dict[str, Any] = {
            "lower": node.lower,
            "upper": node.upper,
            "step": node.step,
        }
        options = [None, *(plus(bound, step) for step in (1, -1))] if bound else []
        if bound is None:
            options = [number(1)] if field == "lower" else [number(-1)]
        for option in options:
            yield ast.Slice(**{**new, field: option})
    if not (node.lower and node.upper):
        yield ast.Slice(node.upper, node.lower, node.step)
    turned = [None, number(1)] if node.lower is None else [number(-1), None]
    yield ast.Slice(turned[1], turned[0], node.step)
    if node.lower is not None and node.upper is None:
        yield ast.Slice(None, number(-1), node.step)
    if node.upper is not None and node.lower is None:
        yield ast.Slice(number(1), None, node.step)
        yield ast.Slice(ast.UnaryOp(ast.USub(), node.upper), None, node.step)


@kind(2, "where it begins and ends", ast.Call)
def _range(node: ast.Call, scope: Scope) -> Nodes:
    if called(node) not in ("range", "arange", "enumerate", "linspace"):
        return
    for index, argument in enumerate(node.args):
        for step in (1, -1):
            yield call_like(node, replaced(node.args, index, plus(argument, step)))
    if len(node.args) == 1:
        yield call_like(node, [number(1), *node.args])
        yield call_like(node, [number(1), plus(node.args[0], 1)])
        yield call_like(node, [*node.args, number(1)])
    elif len(node.args) == 2:
        yield call_like(node, node.args[1:])
        yield call_like(node, node.args[:1])


@kind(2, "the index", ast.Subscript)
def _index(node: ast.Subscript, scope: Scope) -> Nodes:
    if not isinstance(node.slice, (ast.Slice, ast.Tuple, ast.Compare)):
        for new in (plus(node.slice, 1), plus(node.slice, -1), number(-1), number(0)):
            yield ast.Subscript(node.value, new, ast.Load())
    if isinstance(node.slice, ast.Tuple):
        items = node.slice.elts
        for first, second in itertools.combinations(range(len(items)), 2):
            new = ast.Tuple(exchanged(items, first, second), ast.Load())
            yield ast.Subscript(node.value, new, ast.Load())


@kind(6, "whether it is one too many or too few", ast.Name, ast.Call, ast.Attribute)
def _off_by_one(node: ast.expr, scope: Scope) -> Nodes:
    if not isinstance(node, ast.Name) or node.id in scope.names:
        yield from (plus(node, 1), plus(node, -1))


@kind(5, "whether it is one too many or too few", ast.BinOp)
def _off_by_one_sum(node: ast.BinOp, scope: Scope) -> Nodes:
    yield from (plus(node, 1), plus(node, -1))
