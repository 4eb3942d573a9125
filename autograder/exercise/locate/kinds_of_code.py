"""The kinds of small steps in conditions, calls, names and statements."""

import ast
import itertools

from autograder.exercise.locate.kinds import kind
from autograder.exercise.locate.nodes import (
    Nodes,
    Scope,
    call_like,
    called,
    exchanged,
    inner_of,
    is_library,
    is_of_self,
    method_of,
    plus,
    replaced,
    with_keyword,
)

NAMESAKES = (  # functions that are taken for each other
    *("max min", "amax amin", "argmax argmin", "amax max", "amin min", "sum mean"),
    *("sum prod", "cat stack", "sin cos", "tril triu", "any all", "zeros ones"),
    *("zeros_like ones_like", "empty zeros", "rand randn", "std var", "floor ceil"),
    *("round floor", "round ceil", "round int", "int ceil", "exp log", "log log2"),
    *("log log10", "log2 log10", "log log1p", "exp expm1", "sqrt rsqrt", "sqrt square"),
    *("softmax log_softmax", "softmax sigmoid", "sigmoid tanh", "relu gelu"),
    *("append extend", "keys values", "keys items", "values items", "train eval"),
    *("float long", "float double", "int float", "bool float", "long bool"),
    *("expand repeat", "repeat repeat_interleave", "squeeze unsqueeze", "view reshape"),
    *("cumsum cumprod", "union intersection", "add discard", "maximum minimum"),
    *("mul div", "sub add", "T mT", "sorted list", "logical_and logical_or"),
    *("startswith endswith", "find rfind", "floor trunc", "Linear Embedding"),
    *("triu_indices tril_indices", "index_fill masked_fill", "lower upper"),
    *("outer inner", "isinf isnan", "eye ones", "min sum", "max sum", "abs square"),
)
COMPARISONS = {  # the likely ones first
    ast.Lt: (ast.LtE, ast.Gt, ast.GtE),
    ast.LtE: (ast.Lt, ast.GtE, ast.Gt),
    ast.Gt: (ast.GtE, ast.Lt, ast.LtE),
    ast.GtE: (ast.Gt, ast.LtE, ast.Lt),
    ast.Eq: (ast.NotEq, ast.GtE, ast.LtE),
    ast.NotEq: (ast.Eq, ast.Lt, ast.Gt),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),  # codespell:ignore notin
    ast.NotIn: (ast.In,),  # codespell:ignore notin
}
DTYPES = ("float32", "float64", "int64", "long", "bool", "float", "double")
TORCH = "_torch"  # the name under which changed code finds PyTorch


# --- conditions -----------------------------------------------------------------------


@kind(1, "the comparison", ast.Compare)
def _comparison(node: ast.Compare, scope: Scope) -> Nodes:
    for index, op in enumerate(node.ops):
        for other in COMPARISONS[type(op)]:
            ops = replaced(node.ops, index, other())
            yield ast.Compare(node.left, ops, node.comparators)


@kind(4, "the comparison", ast.Compare)
def _compared_with(node: ast.Compare, scope: Scope) -> Nodes:
    for step in (1, -1):
        new = [plus(node.comparators[0], step), *node.comparators[1:]]
        yield ast.Compare(node.left, node.ops, new)


@kind(3, "the condition", ast.BoolOp)
def _both_or_either(node: ast.BoolOp, scope: Scope) -> Nodes:
    yield ast.BoolOp(
        ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values
    )
    yield from node.values


@kind(3, "whether it is to be turned round", ast.UnaryOp)
def _not_negated(node: ast.UnaryOp, scope: Scope) -> Nodes:
    if isinstance(node.op, (ast.Not, ast.Invert)):
        yield node.operand


@kind(4, "whether it is to be turned round", ast.Call, ast.Subscript)
def _mask_negated(node: ast.expr, scope: Scope) -> Nodes:
    if isinstance(node, ast.Subscript):
        yield ast.Subscript(
            node.value, ast.UnaryOp(ast.Invert(), node.slice), ast.Load()
        )
    elif not isinstance(node, ast.Call):
        return
    elif called(node) in ("masked_fill", "masked_fill_", "where", "masked_select"):
        turned = ast.UnaryOp(ast.Invert(), node.args[0]) if node.args else None
        yield call_like(node, [turned, *node.args[1:]]) if turned else node
    elif called(node) in ("isin", "tril", "triu", "logical_or", "logical_and"):
        yield ast.UnaryOp(ast.Invert(), node)


@kind(6, "whether it is to be turned round", ast.Name, ast.Compare, ast.BinOp)
def _negated(node: ast.expr, scope: Scope) -> Nodes:
    if isinstance(node, ast.Name) and node.id not in scope.names:
        return
    yield ast.UnaryOp(ast.Invert(), node)


@kind(3, "the condition", ast.If, ast.While, ast.IfExp)
def _condition_negated(node: ast.If | ast.While | ast.IfExp, scope: Scope) -> Nodes:
    parts = dict(ast.iter_fields(node))
    yield type(node)(**{**parts, "test": ast.UnaryOp(ast.Not(), node.test)})


@kind(3, "True and False", ast.Constant)
def _truth(node: ast.Constant, scope: Scope) -> Nodes:
    if isinstance(node.value, bool):
        yield ast.Constant(not node.value)


# --- calls ----------------------------------------------------------------------------


@kind(3, "what is called here", ast.Call)
def _namesake(node: ast.Call, scope: Scope) -> Nodes:
    for pair in map(str.split, NAMESAKES):
        if called(node) in pair:
            name = pair[1 - pair.index(called(node))]
            func: ast.expr = ast.Name(name, ast.Load())
            if isinstance(node.func, ast.Attribute):
                func = ast.Attribute(node.func.value, name, ast.Load())
            yield ast.Call(func, node.args, node.keywords)


@kind(3, "the order of the arguments", ast.Call)
def _arguments(node: ast.Call, scope: Scope) -> Nodes:
    for index in range(len(node.args) - 1):
        yield call_like(node, exchanged(node.args, index, index + 1))
    made = inner_of(node)
    if node.args and made and made[0] is not node.args[0]:
        yield method_of(node.args[0], called(node), made[0], *node.args[1:])
    for first, second in itertools.pairwise(node.keywords):
        new = [
            ast.keyword(first.arg, second.value),
            ast.keyword(second.arg, first.value),
        ]
        rest = [each for each in node.keywords if each not in (first, second)]
        yield call_like(node, None, [*rest, *new])


@kind(4, "the order", ast.Tuple, ast.List)
def _items(node: ast.Tuple | ast.List, scope: Scope) -> Nodes:
    for first, second in itertools.combinations(range(min(len(node.elts), 5)), 2):
        yield type(node)(exchanged(node.elts, first, second), ast.Load())


@kind(5, "whether everything belongs here", ast.Tuple, ast.List)
def _item_too_many(node: ast.Tuple | ast.List, scope: Scope) -> Nodes:
    for index in range(len(node.elts)):
        yield type(node)(node.elts[:index] + node.elts[index + 1 :], ast.Load())
    if isinstance(node, ast.Tuple):
        yield from node.elts


@kind(4, "the arguments", ast.Call)
def _argument_too_many(node: ast.Call, scope: Scope) -> Nodes:
    for index in range(len(node.keywords)):
        yield call_like(node, None, node.keywords[:index] + node.keywords[index + 1 :])
    for index in range(len(node.args)):
        yield call_like(node, node.args[:index] + node.args[index + 1 :])


@kind(4, "the arguments", ast.Call)
def _argument_too_few(node: ast.Call, scope: Scope) -> Nodes:
    if called(node) in ("Linear", "LayerNorm") and len(node.args) < 3:
        yield with_keyword(node, "bias", False)
    if called(node) in ("sorted", "sort", "argsort"):
        for name in ("reverse", "descending", "stable"):
            yield with_keyword(node, name, True)
    if called(node) in ("triu", "tril"):
        for diagonal in (1, -1):
            yield with_keyword(node, "diagonal", diagonal)


@kind(4, "whether this call belongs here", ast.Call)
def _call_too_many(node: ast.Call, scope: Scope) -> Nodes:
    if made := inner_of(node):
        yield made[0]


@kind(5, "the order of the calls", ast.Call)
def _order_of_calls(node: ast.Call, scope: Scope) -> Nodes:
    outer = inner_of(node)
    middle = inner_of(outer[0]) if outer else None
    if outer and middle:
        yield middle[1](outer[1](middle[0]))


@kind(7, "whether a step is missing", ast.Name, ast.Call, ast.BinOp, ast.Attribute)
def _call_too_few(node: ast.expr, scope: Scope) -> Nodes:
    if isinstance(node, ast.Name) and node.id not in scope.names:
        return
    yield ast.BinOp(node, ast.Pow(), ast.Constant(0.5))
    for name in ("exp", "log", "detach", "float", "contiguous", "clone", "abs"):
        yield method_of(node, name)


@kind(3, "the dtype", ast.Attribute)
def _dtype(node: ast.Attribute, scope: Scope) -> Nodes:
    if node.attr in DTYPES and is_library(node.value):
        for other in ("float32", "int64", "bool", "float64"):
            yield ast.Attribute(node.value, other, ast.Load())


# --- names ----------------------------------------------------------------------------


@kind(4, "the name", ast.Name)
def _name(node: ast.Name, scope: Scope) -> Nodes:
    if node.id in scope.names:
        for other in scope.names:
            yield ast.Name(other, ast.Load())


@kind(4, "the name", ast.Attribute)
def _attribute(node: ast.Attribute, scope: Scope) -> Nodes:
    if node.attr in scope.attributes:
        for other in scope.attributes:
            yield ast.Attribute(node.value, other, ast.Load())


# --- statements -----------------------------------------------------------------------


@kind(3, "whether this adds up or replaces", ast.AugAssign)
def _added_or_replaced(node: ast.AugAssign, scope: Scope) -> Nodes:
    yield ast.Assign([node.target], node.value)
    if isinstance(node.target, ast.Name):
        before = ast.Name(node.target.id, ast.Load())
        yield ast.Assign([node.target], ast.BinOp(before, node.op, node.value))


@kind(2, "the sign", ast.AugAssign)
def _sign_of_step(node: ast.AugAssign, scope: Scope) -> Nodes:
    other = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
    if type(node.op) in other:
        yield ast.AugAssign(node.target, other[type(node.op)](), node.value)


@kind(3, "whether this adds up or replaces", ast.Assign)
def _replaced_or_added(node: ast.Assign, scope: Scope) -> Nodes:
    target = node.targets[0]
    if isinstance(target, (ast.Name, ast.Subscript)) and len(node.targets) == 1:
        yield ast.AugAssign(target, ast.Add(), node.value)
    if isinstance(target, ast.Name):
        before = ast.Name(target.id, ast.Load())
        yield ast.Assign(node.targets, ast.BinOp(before, ast.Add(), node.value))


@kind(4, "whether something is to be added", ast.Assign, ast.Return)
def _residual(node: ast.Assign | ast.Return, scope: Scope) -> Nodes:
    value = node.value
    if isinstance(value, ast.Call) and is_of_self(value.func) and value.args:
        total = ast.BinOp(value.args[0], ast.Add(), value)
        yield _with_value(node, total)


def _with_value(node: ast.AST, value: ast.expr) -> ast.AST:
    parts = dict(ast.iter_fields(node))
    return type(node)(**{**parts, "value": value})


@kind(4, "what kind of object this is", ast.Assign)
def _kind_of_attribute(node: ast.Assign, scope: Scope) -> Nodes:
    if not is_of_self(node.targets[0]):
        return
    nn = ast.Attribute(ast.Name(TORCH, ast.Load()), "nn", ast.Load())
    wanted = ("ModuleList",) if _is_list(node.value) else ("Parameter",)
    for name in wanted:
        func = ast.Attribute(nn, name, ast.Load())
        yield _with_value(node, ast.Call(func, [node.value], []))


def _is_list(node: ast.expr) -> bool:
    return isinstance(node, (ast.List, ast.ListComp))


@kind(3, "whether one object is used several times", ast.BinOp)
def _same_object(node: ast.BinOp, scope: Scope) -> Nodes:
    if isinstance(node.op, ast.Mult) and isinstance(node.left, ast.List):
        count = ast.Call(ast.Name("range", ast.Load()), [node.right], [])
        loop = ast.comprehension(ast.Name("_", ast.Store()), count, [], 0)
        yield ast.ListComp(node.left.elts[0], [loop]) if node.left.elts else node


@kind(3, "what ends the loop", ast.Break, ast.Continue)
def _end_of_loop(node: ast.AST, scope: Scope) -> Nodes:
    yield ast.Continue() if isinstance(node, ast.Break) else ast.Break()
    yield ast.Pass()


@kind(4, "what the loop runs over", ast.For)
def _loop(node: ast.For, scope: Scope) -> Nodes:
    parts = dict(ast.iter_fields(node))
    iterated = inner_of(node.iter)
    if iterated:
        yield ast.For(**{**parts, "iter": iterated[0]})
    turned = ast.Call(ast.Name("reversed", ast.Load()), [node.iter], [])
    yield ast.For(**{**parts, "iter": turned})


@kind(4, "the condition", ast.If)
def _without_condition(node: ast.If, scope: Scope) -> Nodes:
    yield ast.If(ast.Constant(True), node.body, node.orelse)
    if node.orelse:
        yield ast.If(node.test, node.orelse, node.body)


@kind(4, "the condition", ast.IfExp)
def _without_choice(node: ast.IfExp, scope: Scope) -> Nodes:
    yield node.body
    yield node.orelse
