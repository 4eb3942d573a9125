"""What an answer uses is read from its code: ways round a refusal, and honest code.

Each attack is judged as it is read; none of it runs. Honest code has no finding at all.
"""

import ast
import functools
import importlib
import inspect
import os
import sys
import time
import types

import nbformat
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder import forbidden
from autograder.generator.modules import without_markers
from autograder.grading import usage
from autograder.grading.paper import Paper
from autograder.grading.remote import imports_of
from autograder.grading.usage import Cell, Finding, ways
from tests import chapters

IMPORTS = "import math\n\nimport torch\nfrom torch import nn"
RIGHT = "def softmax(x):\n    e = torch.exp(x)\n    return e / e.sum(-1, keepdim=True)"


def read(*cells: str, name: str = forbidden.SOFTMAX, asked: str = "softmax"):
    """Read a notebook of some cells, and a check at its end."""
    texts = [IMPORTS, *cells]
    notebook = [Cell(number, text) for number, text in enumerate(texts, start=1)]
    demand = usage.Demand(f"test-{asked}", (asked,), frozenset({name}))
    end = Cell(len(texts) + 1, f"check.{asked}({asked})", demand.grade_id)
    return usage.read([*notebook, end], {demand.grade_id: demand})


def certain(found: list[Finding]) -> list[Finding]:
    return [each for each in found if each.is_certain]


def softmax(body: str) -> str:
    """An answer with one line."""
    return f"def softmax(scores):\n    return {body}"


CERTAIN = {
    "its name": [softmax("torch.softmax(scores, -1)")],
    "a method": [softmax("scores.softmax(-1)")],
    "a method of a result": [softmax("(scores * 1.0).exp().log().softmax(-1)")],
    "the class of tensors": [softmax("torch.Tensor.softmax(scores, -1)")],
    "the class of the scores": [softmax("type(scores).softmax(scores, -1)")],
    "its logarithm": [softmax("scores.log_softmax(-1).exp()")],
    "a module": [softmax("nn.Softmax(-1)(scores)")],
    "a loss": [
        "import torch.nn.functional as F",
        softmax("F.cross_entropy(scores, 1)"),
    ],
    "a distribution": [
        softmax("torch.distributions.Categorical(logits=scores).probs"),
    ],
    "SciPy": ["from scipy.special import softmax as s", softmax("s(scores, -1)")],
    "scikit-learn": [
        "import sklearn.utils.extmath as m",
        softmax("torch.tensor(m.softmax(scores.numpy()))"),
    ],
    "private references": [
        "import torch._refs as r",
        softmax("r.softmax(scores, -1)"),
    ],
    "decompositions": [softmax("torch._decomp.decompositions._softmax(scores, -1, 0)")],
    "the dispatcher": [softmax("torch.ops.aten.softmax.int(scores, -1)")],
    "below the public functions": [
        softmax("torch._C._VariableFunctions.softmax(scores)")
    ],
    "special functions": [softmax("torch.special.softmax(scores, -1)")],
    "attention": [
        softmax("nn.functional.scaled_dot_product_attention(scores, scores, scores)")
    ],
    "another name of it": ["softmax = torch.softmax"],
    "another name in another cell": ["go = torch.softmax", softmax("go(scores, -1)")],
    "a tuple of names": ["a, b = torch.exp, torch.softmax", softmax("b(scores, -1)")],
    "a default argument": ["def softmax(x, f=torch.softmax):\n    return f(x, -1)"],
    "a lambda": ["go = lambda x: x.softmax(-1)", softmax("go(scores)")],
    "a partial function": [
        "import functools\ngo = functools.partial(torch.softmax, dim=-1)",
        softmax("go(scores)"),
    ],
    "a table": ["f = {'go': torch.softmax}", softmax("f['go'](scores, -1)")],
    "a list that grows": [
        "f = []\nf.append(torch.softmax)",
        softmax("f[0](scores, -1)"),
    ],
    "a table that is filled": [
        "f = {}",
        "f['go'] = torch.softmax",
        softmax("f['go'](scores, -1)"),
    ],
    "a table that a function fills": [
        "f = []\ndef keep(where, what):\n    where.append(what)",
        "keep(f, torch.softmax)",
        softmax("f[0](scores, -1)"),
    ],
    "a class attribute": [
        "class Tools:\n    go = torch.softmax",
        softmax("Tools.go(scores, -1)"),
    ],
    "a field": [
        "class Tools:\n    def __init__(self):\n        self.go = nn.Softmax(-1)",
        "tools = Tools()",
        softmax("tools.go(scores)"),
    ],
    "a namespace": [
        "import types\nbox = types.SimpleNamespace()\nbox.go = torch.softmax",
        softmax("box.go(scores, -1)"),
    ],
    "a walrus": [softmax("(go := torch.softmax)(scores, -1)")],
    "a walrus in an annotation": [
        "def f(x: (go := torch.softmax)):\n    return x",
        softmax("go(scores, -1)"),
    ],
    "a loop": ["for go in (torch.softmax,):\n    pass", softmax("go(scores, -1)")],
    "a function of the answer": [
        "import sys\nsoftmax.f = torch.softmax",
        "def softmax(x):\n    return x\nsoftmax.f = torch.softmax",
        "def other(x):\n    return softmax.f(x, -1)",
        "softmax = other",
    ],
    "a patched method": [
        "torch.Tensor.mine = torch.Tensor.softmax",
        softmax("scores.mine(-1)"),
    ],
    "a patched function": [
        "torch.exp = torch.softmax",
        softmax("torch.exp(scores, -1)"),
    ],
    "a patched builtin": [
        "import builtins\nbuiltins.go = torch.softmax",
        softmax("go(scores, -1)"),
    ],
    "a module of one's own": [
        "import sys\nsys.modules['tools'] = torch.special",
        "import tools",
        softmax("tools.softmax(scores, -1)"),
    ],
    "getattr": [softmax("getattr(torch, 'soft' + 'max')(scores, -1)")],
    "getattr by a loop over letters": [
        "name = ''.join(c for c in 'softmax')",
        softmax("getattr(torch, name)(scores, -1)"),
    ],
    "getattr backwards": [softmax("getattr(scores, 'xamtfos'[::-1])(-1)")],
    "getattr by numbers": [
        softmax("getattr(torch, bytes([115,111,102,116,109,97,120]).decode())(scores)")
    ],
    "getattr by a map": [
        "name = ''.join(map(chr, [115, 111, 102, 116, 109, 97, 120]))",
        softmax("getattr(torch, name)(scores, -1)"),
    ],
    "getattr by base64": [
        "import base64\nname = base64.b64decode('c29mdG1heA==').decode()",
        softmax("getattr(torch, name)(scores, -1)"),
    ],
    "getattr by rot13": [
        "import codecs",
        softmax("getattr(torch, codecs.decode('fbsgznk', 'rot13'))(scores, -1)"),
    ],
    "getattr by a format": [
        softmax("getattr(torch, '{}{}'.format('soft', 'max'))(scores)")
    ],
    "getattr by an f-string": [
        "end = 'max'",
        softmax("getattr(torch, f'soft{end}')(scores)"),
    ],
    "getattr by a percent sign": [softmax("getattr(torch, '%smax' % 'soft')(scores)")],
    "getattr by a replacement": [
        softmax("getattr(torch, 'sXoXfXtmax'.replace('X', ''))(scores)")
    ],
    "getattr in a helper": [
        "def get(name):\n    return getattr(torch, name)",
        softmax("get('softmax')(scores, -1)"),
    ],
    "getattr by reduce": [
        "import functools\nway = ['nn', 'functional', 'softmax']",
        softmax("functools.reduce(getattr, way, torch)(scores, -1)"),
    ],
    "__getattribute__": [softmax("torch.__getattribute__('softmax')(scores, -1)")],
    "vars": [softmax("vars(torch)['softmax'](scores, -1)")],
    "a dict of names": [softmax("torch.__dict__.get('softmax')(scores, -1)")],
    "globals of a function": [
        softmax("nn.functional.relu.__globals__['softmax'](scores, -1)")
    ],
    "an attrgetter": [
        "import operator",
        softmax("operator.attrgetter('nn.functional.softmax')(torch)(scores, -1)"),
    ],
    "a methodcaller": [
        "from operator import methodcaller",
        softmax("methodcaller('softmax', -1)(scores)"),
    ],
    "modules of the system": [
        "import sys",
        softmax("sys.modules['torch'].softmax(scores, -1)"),
    ],
    "__import__": [softmax("__import__('to' + 'rch').softmax(scores, -1)")],
    "import_module": [
        "import importlib",
        softmax("importlib.import_module('torch.nn.functional').softmax(scores, -1)"),
    ],
    "names of everything": [
        "from torch.nn.functional import *\ngo = softmax",
        "softmax = go",
    ],
    "eval": [softmax("eval('torch.soft' + 'max')(scores, -1)")],
    "exec": ["exec('def softmax(x):\\n    return x.softmax(-1)')"],
    "exec in a function": [
        "def softmax(x):\n    names = {}\n    exec('go = torch.softmax', names)\n"
        "    return names['go'](x, -1)"
    ],
    "compile": [softmax("eval(compile('torch.softmax', 'f', 'eval'))(scores, -1)")],
    "the shell": ["get_ipython().run_cell('softmax = torch.softmax')"],
    "the shell's names": ["get_ipython().push({'softmax': torch.softmax})"],
    "a cell magic": ["%%time\nsoftmax = torch.softmax"],
    "a script's text": [
        "unit = torch.jit.CompilationUnit('def f(x):\\n    return x.softmax(-1)')",
        softmax("unit.f(scores)"),
    ],
    "a script": [
        "@torch.jit.script\ndef go(x: torch.Tensor):\n    return torch.softmax(x, -1)",
        softmax("go(scores)"),
    ],
    "a compiled function": ["softmax = torch.compile(torch.softmax)"],
    "globals": ["globals()['softmax'] = torch.softmax"],
    "the main module": ["import __main__\n__main__.softmax = torch.softmax"],
    "setattr of the main module": [
        "import sys\nsetattr(sys.modules['__main__'], 'softmax', torch.softmax)"
    ],
    "a class pattern": [
        "def softmax(x):\n    match x:\n        case torch.Tensor(softmax=go):\n"
        "            return go(-1)"
    ],
    "a property": [
        "class T:\n    @property\n    def go(self):\n        return torch.softmax",
        "t = T()",
        softmax("t.go(scores, -1)"),
    ],
    "a decorator": [
        "def use(f):\n    return lambda x: torch.softmax(x, -1)",
        "@use\ndef softmax(x):\n    return x",
    ],
    "a derived class": [
        "class T(torch.Tensor):\n    def go(self):\n        return self.softmax(-1)",
        softmax("scores.as_subclass(T).go()"),
    ],
    "a module of torch's modules": [
        softmax("torch.nn.modules.activation.F.softmax(scores, -1)")
    ],
    "a module of the course's": [
        "from transformer import attention as a",
        softmax("a.torch.softmax(scores, -1)"),
    ],
    "what was shown last": ["torch.softmax", "go = _", softmax("go(scores, -1)")],
    "a class whose base calls it": [
        "class F(torch.autograd.Function):\n    @staticmethod\n"
        "    def forward(context, x):\n        return x.softmax(-1)",
        softmax("F.apply(scores)"),
    ],
    "a try": [
        "try:\n    from torch import softmax\nexcept ImportError:\n    softmax = None"
    ],
    "a generator": [
        "def all():\n    yield torch.softmax",
        softmax("next(all())(scores, -1)"),
    ],
    "a nested function": [
        "def make():\n    inner = torch.softmax\n    def go(x):\n"
        "        return inner(x, -1)\n    return go",
        "softmax = make()",
    ],
}
UNCLEAR = {
    "a name from a file": [
        softmax("getattr(torch, open('name').read())(scores, -1)"),
    ],
    "a name out of a list of names": [
        softmax("getattr(torch, dir(torch)[900])(scores)")
    ],
    "a name by arithmetic": [
        "def name(key):\n    return ''.join(chr(c ^ key) for c in keys)",
        "keys = [int(x) for x in open('keys')]",
        softmax("getattr(torch, name(7))(scores)"),
    ],
    "all names of a module": [
        softmax("[f for n, f in vars(torch).items() if n[:5] == 'softm'][0](scores)")
    ],
    "eval of a text from a file": [softmax("eval(open('code').read())(scores)")],
    "exec in a cell": ["exec(open('code').read())", RIGHT],
    "a module by a computed name": [
        "import importlib",
        softmax("importlib.import_module(open('name').read()).f(scores)"),
    ],
    "a pickle": ["import pickle", softmax("pickle.loads(b'...')(scores)")],
    "code of bytes": [
        "import marshal, types\ncode = marshal.loads(b'...')",
        softmax("types.FunctionType(code, globals())(scores)"),
    ],
    "memory": ["import ctypes", softmax("ctypes.CDLL(None).f(scores)")],
    "an operator by a computed name": [
        softmax("getattr(torch.ops.aten, open('name').read())(scores, -1)")
    ],
    "subclasses of everything": [
        softmax("().__class__.__base__.__subclasses__()[99](scores)")
    ],
    "another module that was written": [softmax("torch.fx.symbolic_trace(scores)")],
    "the tables of the refusal": [
        "import autograder.forbidden\nautograder.forbidden._COMPILED.clear()",
        RIGHT,
    ],
    "the refusal replaced": [
        "from autograder import forbidden\nforbidden.refuse = lambda name: None",
        RIGHT,
    ],
    "the library taken away": [
        "import gc\nfor each in gc.get_objects():\n    pass",
        RIGHT,
    ],
    "a library of one's own": [
        "mine = torch.library.Library('aten', 'IMPL')",
        RIGHT,
    ],
    "the code of a function": [f"{RIGHT}\nsoftmax.__code__ = other.__code__"],
    "the stack": ["import sys\nsys._getframe(1).f_globals['x'] = 1", RIGHT],
    "the caller": ["import inspect", "inspect.currentframe()", RIGHT],
    "the interpreter's steps": ["import sys\nsys.settrace(print)", RIGHT],
    "a cell's transformer": ["get_ipython().ast_transformers.append(1)", RIGHT],
    "a file that is run": ["%run other.py", RIGHT],
    "names that are set": [
        "for n in open('names'):\n    globals()[n] = torch.exp",
        RIGHT,
    ],
    "a class of one's own in between": [
        "class Mine:\n    def softmax(self):\n        pass",
        softmax("scores.softmax(-1)"),
    ],
}
HONEST = {
    "a right answer": [RIGHT],
    "an attempt in a cell that stops": ["softmax = torch.softmax\n1 / 0", RIGHT],
    "a layer of PyTorch's to compare with": [
        RIGHT,
        "theirs = nn.Softmax(-1)\nx = torch.randn(3)\nprint(theirs, theirs(x))\n"
        "seen = []\nseen.append(theirs(x))\nx.backward(theirs(x))",
    ],
    "a hook that looks": [
        RIGHT,
        "seen = []\nlayer = nn.Linear(2, 2)\n"
        "layer.register_forward_hook(lambda *given: seen.append(given))",
    ],
    "a function that is transformed": [
        RIGHT,
        "torch.func.vmap(torch.softmax)(torch.ones(2), -1)",
    ],
    "a global that counts": [
        "calls = 0\ndef count():\n    global calls\n    calls += 1",
        RIGHT,
    ],
    "a file that is no code": [
        "with open('losses.txt', 'w') as file:\n    file.write('1')",
        RIGHT,
    ],
    "a package that is not here": ["import seaborn", RIGHT],
    "a comparison in the answer's cell": [
        f"{RIGHT}\n\nx = torch.randn(3)\ntorch.allclose(softmax(x), x.softmax(-1))"
    ],
    "a helper that compares": [
        RIGHT,
        "def compare(f, g):\n    return f(torch.ones(3)), g(torch.ones(3), -1)",
        "compare(softmax, torch.softmax)",
    ],
    "a table of what is compared": [
        RIGHT,
        "both = {'mine': softmax, 'torch': torch.softmax}",
        "for f in both.values():\n    f",
    ],
    "an attempt that was given up": ["softmax = torch.softmax", RIGHT],
    "a figure": [RIGHT, "weights = torch.softmax(torch.randn(3), -1)\nprint(weights)"],
    "a comment and a docstring": [
        'def softmax(x):\n    """As torch.softmax."""\n    # torch.softmax(x)\n'
        "    return torch.exp(x) / torch.exp(x).sum()"
    ],
    "a method of one's own class": [
        "class A:\n    def softmax(self, x):\n        return x.exp()\n"
        "    def go(self, x):\n        return self.softmax(x)",
        softmax("A().go(scores)"),
    ],
    "the course's own part": [
        "from transformer.attention import softmax as theirs",
        softmax("theirs(scores)"),
    ],
    "an annotation": [
        "def f(x: nn.Softmax) -> torch.Tensor:\n    return x",
        softmax("f(scores).exp()"),
    ],
    "logarithms": [softmax("(scores - scores.logsumexp(-1, keepdim=True)).exp()")],
    "names that are put together": [
        "class A(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        for n in 'qkv':\n"
        "            setattr(self, f'w_{n}', nn.Linear(2, 2))\n"
        "    def forward(self, x, which='q'):\n"
        "        return getattr(self, f'w_{which}')(x)",
        softmax("A()(scores)"),
    ],
    "a name of a function of torch": [
        "def apply(x, name):\n    return getattr(torch, name)(x)",
        softmax("apply(scores, 'exp')"),
    ],
    "magics": ["%matplotlib inline\n!ls\n%timeit 1 + 1", RIGHT, "%%time\nsoftmax(1)"],
    "a look at the source": ["import inspect", RIGHT, "inspect.getsource(softmax)"],
    "a name that a check gives": [
        "class A(nn.Module):\n    def __init__(self, activation='relu'):\n"
        "        super().__init__()\n        self.f = getattr(torch, activation)\n",
        "def softmax(scores, name=None):\n    return A(name)(scores)",
    ],
    "NumPy": [
        "import numpy as np",
        softmax("torch.from_numpy(np.exp(scores.numpy()))"),
    ],
    "compiled": [
        "@torch.jit.script\ndef e(x: torch.Tensor):\n    return x.exp()",
        RIGHT,
    ],
    "the check called": [
        *("from autograder.chapters import attention as check", RIGHT),
        "check.softmax(softmax)",
    ],
    "a broken cell": ["def softmax(:", RIGHT],
}


@pytest.mark.parametrize("attack", CERTAIN)
def test_a_use_is_certain(attack: str) -> None:
    found = certain(read(*CERTAIN[attack]))
    assert found
    assert {each.name for each in found} == {forbidden.SOFTMAX}
    assert all(each.text for each in found)


@pytest.mark.parametrize("attack", UNCLEAR)
def test_what_cannot_be_told_is_flagged(attack: str) -> None:
    found = read(*UNCLEAR[attack])
    assert found
    assert not certain(found)


@pytest.mark.parametrize("code", HONEST)
def test_honest_code_has_no_finding(code: str) -> None:
    assert read(*HONEST[code]) == []


def test_there_are_enough_attacks() -> None:
    assert len(CERTAIN) + len(UNCLEAR) >= 40


# --- other exercises ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (forbidden.MULTI_HEAD, "class A(nn.MultiheadAttention):\n    pass"),
        (forbidden.MULTI_HEAD, "A = nn.TransformerEncoderLayer"),
        (
            forbidden.SCALED_DOT_PRODUCT,
            "A = nn.functional.scaled_dot_product_attention",
        ),
        (
            forbidden.SCALED_DOT_PRODUCT,
            "from torch.nn.attention import flex_attention as f\nA = f.flex_attention",
        ),
        (forbidden.LAYER_NORM, "def A(x):\n    return torch.native_layer_norm(x, 4)"),
        (forbidden.LAYER_NORM, "def A(x):\n    return nn.functional.layer_norm(x, 4)"),
        (forbidden.RMS_NORM, "class A(nn.RMSNorm):\n    pass"),
        (forbidden.GELU, "def A(x):\n    return torch._C._nn.gelu(x)"),
        (forbidden.GELU, "A = nn.GELU()"),
        (forbidden.ENCODER_LAYER, "A = nn.TransformerEncoder"),
        (forbidden.DECODER_LAYER, "def A(x):\n    return nn.Transformer().decoder"),
        (forbidden.TRANSFORMER, "A = nn.Transformer"),
    ],
)
def test_every_forbidden_name_is_found(name: str, code: str) -> None:
    assert {each.name for each in certain(read(code, name=name, asked="A"))} == {name}


def test_what_one_exercise_answers_for_costs_no_other_its_points() -> None:
    cells = [
        Cell(1, IMPORTS),
        Cell(2, "attend = nn.functional.scaled_dot_product_attention"),
        Cell(3, "check.attend(attend)", "test-attend"),
        Cell(4, "class A(nn.Module):\n    def forward(self, x):\n        attend(x)"),
        Cell(5, "check.A(A, attend)", "test-a"),
    ]
    names = frozenset({forbidden.SCALED_DOT_PRODUCT, forbidden.MULTI_HEAD})
    wanted = {
        "test-attend": usage.Demand("test-attend", ("attend",), names),
        "test-a": usage.Demand("test-a", ("A", "attend"), names),
    }
    assert [each.grade_id for each in usage.read(cells, wanted)] == ["test-attend"]


# --- real notebooks -------------------------------------------------------------------


@functools.cache
def solved(chapter: str) -> tuple[Cell, ...]:
    """A solved notebook's code."""
    source = nbformat.reads(Paper.of(chapter).source, as_version=4)
    found = []
    for number, cell in enumerate(source.cells, start=1):
        name = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        if cell.cell_type == "code":
            text = (
                cell.source
                if name.startswith("test-")
                else without_markers(cell.source)
            )
            found.append(Cell(number, text, name, is_given=not name))
    return tuple(found)


@functools.cache
def demands(chapter: str) -> dict[str, usage.Demand]:
    code = solved(chapter)
    checks = {each.grade_id: each.text for each in code if each.text.startswith('"""')}
    return usage.demands(checks, imports_of(each.text for each in code))


def with_answers(chapter: str, answers: dict[str, str]) -> list[Cell]:
    return [
        Cell(
            each.number,
            answers.get(each.grade_id, each.text),
            each.grade_id,
            each.is_given,
        )
        for each in solved(chapter)
    ]


FORBIDDING = [each for each in chapters.CHAPTERS if demands(each)]


def test_every_check_that_forbids_something_is_read() -> None:
    found = {
        name: each for chapter in FORBIDDING for name, each in demands(chapter).items()
    }
    assert len(found) == 16
    assert found["test-softmax"].forbidden == {forbidden.SOFTMAX}
    assert found["test-encoder-layer"].asked[0] == "EncoderLayer"
    assert found["test-gelu"].check == "gelu"
    assert "chapter 6" in found["test-gelu"].read


@pytest.mark.parametrize("chapter", FORBIDDING)
def test_a_solved_notebook_has_no_finding(chapter: str) -> None:
    assert usage.read(solved(chapter), demands(chapter)) == []


def bank_cell(entry) -> str | None:
    """Write an answer of the bank as a cell, with the helpers that it uses."""
    module = sys.modules[entry.answer.__module__]
    body = ast.parse(inspect.getsource(module)).body
    node = next((each for each in body if _is_of(each, entry.answer, module)), None)
    if node is None:
        return None
    node.decorator_list = [each for each in node.decorator_list if not _marks(each)]
    helpers = {name: each for each in body for name in _defined(each)}
    found, waiting = [node], [node]
    while waiting:
        for each in ast.walk(waiting.pop()):
            helper = helpers.get(each.id) if isinstance(each, ast.Name) else None
            if helper is not None and helper not in found:
                found.append(helper)
                waiting.append(helper)
    imports = [each for each in body if isinstance(each, (ast.Import, ast.ImportFrom))]
    ours = [
        each
        for each in imports
        if "mistakes" not in (getattr(each, "module", "") or "")
    ]
    return "\n".join(map(ast.unparse, [*ours, *reversed(found)]))


def _marks(node: ast.expr) -> bool:
    return getattr(getattr(node, "func", None), "id", "") in ("wrong", "right")


def _is_of(node: ast.stmt, answer: object, module: types.ModuleType) -> bool:
    """Tell whether an answer was made by a definition."""
    if not any(map(_marks, getattr(node, "decorator_list", ()))):
        return False
    functions = [answer] if inspect.isfunction(answer) else vars(answer).values()
    lines = [
        each.__code__.co_firstlineno
        for each in functions
        if inspect.isfunction(each) and each.__code__.co_filename == module.__file__
    ]
    first = node.decorator_list[0].lineno
    return bool(lines) and first <= lines[0] <= node.end_lineno


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Assign):
        names = [each for target in node.targets for each in ast.walk(target)]
        return [each.id for each in names if isinstance(each, ast.Name)]
    if any(map(_marks, getattr(node, "decorator_list", ()))):
        return []
    return [node.name] if hasattr(node, "name") else []


FEW = 4


def rounds(chapter: str, asked: dict) -> list[dict[str, tuple]]:
    """Deal the bank's answers out: in each round one of an exercise, few in all.

    A notebook with many answers in unusual forms takes too long to follow.
    """
    dealt: list[dict[str, tuple]] = []
    for entry in chapters.bank(chapter):
        text = bank_cell(entry) if f"test-{entry.exercise}" in asked else None
        if text is not None:
            free = [each for each in dealt if len(each) < FEW]
            free = [each for each in free if entry.exercise not in each]
            if not free:
                dealt.append({})
            (free or dealt[-1:])[0][entry.exercise] = entry, text
    return dealt


# a use as well, where the exercise asks for what that module does
OF_PYTORCH = "PyTorch's module in place of your own"


@pytest.mark.parametrize("chapter", FORBIDDING)
def test_the_bank_has_findings_where_a_forbidden_name_is_used(chapter: str) -> None:
    """A few at a time: to read a notebook takes a second.

    The first half of the rounds are, the fuller ones, and with BANK=all in the
    environment all.
    """
    asked = demands(chapter)
    tried = 0
    dealt = rounds(chapter, asked)
    if os.environ.get("BANK") != "all":
        dealt = dealt[: (len(dealt) + 1) // 2]
    for entries in dealt:
        tried += len(entries)
        texts = {name: text for name, (_, text) in entries.items()}
        found = usage.read(with_answers(chapter, texts), asked)
        for name, (entry, _) in entries.items():
            own = [each for each in found if each.grade_id == f"test-{name}"]
            uses = "which this exercise asks" in (entry.mistake or "")
            if uses or (own and entry.mistake == OF_PYTORCH):
                assert certain(own), entry.label
            else:
                assert own == [], entry.label
    assert tried > 10


@pytest.mark.parametrize("chapter", FORBIDDING)
def test_right_answers_of_other_exercises_have_no_finding(chapter: str) -> None:
    """Every variant of the bank, all at once: the last of each exercise."""
    answers = {
        entry.exercise: text
        for entry in chapters.bank(chapter)
        if not entry.mistake and (text := bank_cell(entry)) is not None
    }
    assert usage.read(with_answers(chapter, answers), demands(chapter)) == []


def test_right_answers_in_the_manner_of_other_texts_have_no_finding() -> None:
    from tests.checks.test_outside import ANSWERS

    for style, found in ANSWERS.items():
        for chapter in set(found) & set(FORBIDDING):
            code = with_answers(chapter, found[chapter])
            assert usage.read(code, demands(chapter)) == [], style


# --- the table ------------------------------------------------------------------------

ROOTS = (
    *("torch", "torch.nn", "torch.nn.functional", "torch.special", "torch._C._nn"),
    *("torch._C._special", "torch._C._sparse", "torch.Tensor", "torch.ops.aten"),
    *("torch._refs", "torch._refs.nn.functional", "torch._decomp.decompositions"),
    *("torch.nn.modules", "torch.nn.modules.transformer", "torch.nn.attention"),
    *("torch.nn.attention.flex_attention", "torch.nn.attention.varlen"),
    *("torch._higher_order_ops.flex_attention", "torch.distributions"),
    *("torch.distributions.utils", "torch.distributions.categorical"),
    *("torch.distributions.multinomial", "torch._inductor.inductor_prims"),
    *("torch.ops.prims", "torch.ops.quantized"),
)
NOWHERE = {"prepare_softmax_online", "gelu_impl"}  # only with a compiler, or made late


def holders() -> list[object]:
    found = []
    for root in ROOTS:
        try:
            found.append(importlib.import_module(root))
        except ImportError:
            found.append(functools.reduce(getattr, root.split(".")[1:], torch))
    return found


def test_every_entry_of_the_table_is_there() -> None:
    places = holders()
    for entry in sorted({way for found in ways.WAYS.values() for way in found}):
        name = entry.rpartition(".")[2]
        if "*" not in name and "?" not in name and name not in NOWHERE:
            assert any(hasattr(place, name) for place in places), entry


def test_the_table_has_all_that_is_refused_while_a_notebook_runs() -> None:
    assert ways.WAYS.keys() == forbidden._COMPILED.keys() | forbidden._WRITTEN.keys()
    for name, functions in forbidden._COMPILED.items():
        for function in functions:
            path = f"torch.ops.aten.{function.partition('.')[0]}"
            assert name in ways.names_of(path), path
    for name, paths in forbidden._WRITTEN.items():
        for path in paths:
            assert name in ways.names_of(path), path


# --- any text -------------------------------------------------------------------------

ODD = {
    "brackets": "(" * 5000,
    "a deep sum": "x = " + "+".join(["1"] * 20_000),
    "a deep chain": "x = torch" + ".nn" * 5_000,
    "deep calls": "x = " + "f(" * 150 + ")" * 150,
    "a long cell": "x = [" + "1," * 500_000 + "]",
    "magics": "%time x\n" * 5_000,
    "a text that runs itself": "s = 'exec(s)'\nexec(s)",
    "a power": "x = 9 ** 9 ** 9 ** 9\ny = 'a' * 10 ** 12\nz = '%1000000000d' % 1",
    "a power in a format": "x = '{:>999999999}'.format(1)\ny = f'{1:>999999999}'",
    "a shift": "x = 1 << 10 ** 9\ny = 'a'.center(10 ** 10)\nz = list(range(10 ** 12))",
    "doubling": "x = 'ab'\n" + "x = x + x\n" * 60,
    "doubling lists": "x = [1]\n" + "x = [x, x]\n" * 200,
    "functions that call each other": "\n".join(
        f"def f{n}(x): return f{n + 1}(f{n + 1}(x))" for n in range(60)
    )
    + "\nsoftmax = f0",
    "recursion": "def softmax(f): return softmax(lambda: softmax(f))",
    "a class that is its own base": "class A: pass\nclass A(A): pass\nsoftmax = A",
    "surrogates": "x = '\\ud800'\nsoftmax = getattr(torch, x)",
    "nothing": "",
    "zeros": "\0\0",
    "a bomb": "import zlib, base64\nx = zlib.decompress(base64.b64decode('eJzLSM3J'))",
    "star imports": "from torch import *\nfrom os import *\nsoftmax = path",
    "binding everything": "global x\nnonlocal y\ndel z\nsoftmax: int",
    "unions": "def softmax(x):\n" + "".join(f"    x = x.a{n}(x)\n" for n in range(300)),
}


@pytest.mark.parametrize("text", ODD)
def test_any_text_is_read_in_bounded_time(text: str) -> None:
    before = time.process_time()
    found = read(ODD[text], "def other(x):\n    return softmax(x)")
    assert time.process_time() - before < 15
    assert not certain(found)


PIECES = st.sampled_from(
    [
        *("torch", "softmax", "getattr", "'soft'", "'max'", "x", "self", "lambda x:"),
        *("def f(x):\n    ", "class A:\n    ", "return ", "yield ", "for x in ", "\n"),
        *("(", ")", "[", "]", "{", "}", ".", ",", "=", "+", "*", "**", ":", "@", "%"),
        *("import ", "from ", "exec(", "eval(", "globals()", "f'{x}'", "if ", "with "),
        *("0", "1", " ", "\n    ", "match x:\n    case ", "!", "?", "%%time\n"),
    ]
)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=40))
def test_no_text_raises(pieces: list[str]) -> None:
    text = "".join(pieces)
    for each in read(text, f"def softmax(x):\n    {text}"):
        assert each.flag()["why"] or each.is_certain


def programs() -> st.SearchStrategy[str]:
    """Expressions that Python can read."""
    leaves = st.sampled_from(
        ["torch", "x", "'so'", "1", "f", "self", "globals()", "A()"]
    )

    def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pair = st.tuples(inner, inner)
        return st.one_of(
            pair.map("getattr({0[0]}, {0[1]})".format),
            pair.map("({0[0]} + {0[1]})".format),
            pair.map("{0[0]}({0[1]})".format),
            pair.map("[{0[0]} for x in {0[1]}]".format),
            pair.map("{{{0[0]}: {0[1]}}}".format),
            pair.map("(x := {0[0]})[{0[1]}]".format),
            pair.map("(lambda x: {0[0]})(*{0[1]})".format),
            pair.map("exec({0[0]}, {0[1]})".format),
            inner.map("{}.nn".format),
            inner.map("vars({})".format),
            inner.map("f'{{{0}}}max'".format),
        )

    return st.recursive(leaves, grown, max_leaves=12)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.lists(programs(), min_size=1, max_size=4))
def test_no_program_raises(lines: list[str]) -> None:
    cell = "class A:\n    def f(self, x):\n        self.x = x\n        return self.x\n"
    cell += "def f(x, *y, **z):\n    return x\n"
    body = "".join(f"    y = {each}\n" for each in lines)
    cells = [cell, "\n".join(f"x = {each}" for each in lines)]
    read(*cells, f"def softmax(x):\n{body}    return y")
