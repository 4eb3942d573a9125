"""A line to look at: found by a small step, told without it, and nothing is changed."""

import copy
import itertools
import linecache
import random
import textwrap

import pytest
import torch

from autograder import expect
from autograder.exercise import locate as locating
from autograder.exercise.locate import Place, locate
from autograder.exercise.locate.kinds import KINDS
from autograder.exercise.spec import Case, Function
from autograder.expect import Chapter, CheckFailure, refuse
from autograder.interface import StudentFunction, StudentModule, wrap

CHECK = Chapter(0, "00_example")
NUMBERS = itertools.count()
X = torch.tensor([[0.3, -1.2, 0.5], [2.0, 0.7, 1.1], [0.2, 0.4, -0.6]])
CUBE = torch.arange(24.0).reshape(2, 3, 4)
MASK = X > 0


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Let a busy machine take its time: what is found depends on no clock."""
    monkeypatch.setattr(locating, "SECONDS", 300.0)
    monkeypatch.setattr(locating, "SECONDS_PER_TRY", 30.0)
    monkeypatch.setattr(locating, "SECONDS_PER_CALL", 30.0)


def stopped() -> float:
    """A clock that stands still: there is always time."""
    return 0.0


def run_cell(text: str, **names) -> dict:
    """Run a text as a notebook runs a cell, and return its names."""
    text = textwrap.dedent(text).lstrip("\n")
    file = f"<cell {next(NUMBERS)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    given = {"__name__": "__main__", "torch": torch, "nn": torch.nn, **names}
    exec(compile(text, file, "exec"), given)
    return given


def look(text: str, right: str, *inputs, **options) -> Place | None:
    """Look into the function f of a cell for what makes it as the right line does."""
    wanted = run_cell(repaired(text, right))["f"](*inputs)
    answer = run_cell(text)["f"]
    options = {"clock": stopped, **options}
    return locate(
        answer, lambda f: expect.close(f(*copy.deepcopy(inputs)), wanted), **options
    )


def repaired(text: str, right: str) -> str:
    """Put the right line in the place of the one that is marked with #!."""
    lines = textwrap.dedent(text).strip("\n").split("\n")
    marked = next(line for line in lines if line.endswith("#!"))
    return "\n".join(right if line is marked else line for line in lines)


# What is wrong on the line marked with #!, the right line, inputs, words of the message
SLIPS = {
    "axis": (
        """
        def f(x):
            total = x.sum(0)  #!
            return total
     """,
        "    total = x.sum(1)",
        (X,),
        "the axis",
    ),
    "size of an axis": (
        """
        def f(x):
            return x / x.shape[1]  #!
     """,
        "    return x / x.shape[2]",
        (CUBE,),
        "the axis",
    ),
    "kept axis": (
        """
        def f(x):
            top = x.amax(-1)  #!
            return x - top
     """,
        "    top = x.amax(-1, keepdim=True)",
        (X,),
        "the axis is kept",
    ),
    "divisor": (
        """
        def f(x):
            spread = x.var(-1)  #!
            return spread + 1
     """,
        "    spread = x.var(-1, correction=0)",
        (X,),
        "the divisor",
    ),
    "transposed": (
        """
        def f(x):
            scores = x @ x  #!
            return scores
     """,
        "    scores = x @ x.T",
        (X,),
        "transposed",
    ),
    "order of axes": (
        """
        def f(x):
            return x.permute(2, 1, 0)  #!
     """,
        "    return x.permute(2, 0, 1)",
        (CUBE,),
        "the axis|order of the axes",
    ),
    "sign": (
        """
        def f(x):
            y = x + 3 * x * x  #!
            return y.exp()
     """,
        "    y = x - 3 * x * x",
        (X,),
        "the sign",
    ),
    "infinity": (
        """
        def f(x, mask):
            return x.masked_fill(mask, float("inf"))  #!
     """,
        '    return x.masked_fill(mask, float("-inf"))',
        (X, MASK),
        "infinity",
    ),
    "exponent": (
        """
        def f(x):
            return x * x.shape[-1] ** 0.5  #!
     """,
        "    return x * x.shape[-1] ** -0.5",
        (X,),
        "the number|exponent",
    ),
    "number": (
        """
        def f(x):
            return 2.0 * x.exp()  #!
     """,
        "    return 0.5 * x.exp()",
        (X,),
        "the number",
    ),
    "whole division": (
        """
        def f(n):
            return n // 3  #!
     """,
        "    return n / 3",
        (7,),
        "the operator",
    ),
    "sides": (
        """
        def f(x, y):
            return x @ y - x  #!
     """,
        "    return y @ x - x",
        (X, X.exp()),
        "the two sides",
    ),
    "brackets": (
        """
        def f(x):
            return x * 3 + x.exp()  #!
     """,
        "    return x * (3 + x.exp())",
        (X,),
        "the brackets",
    ),
    "epsilon": (
        """
        def f(x):
            spread = torch.sqrt(x * x) + 0.1  #!
            return x / spread
     """,
        "    spread = torch.sqrt(x * x + 0.1)",
        (X,),
        "inside the brackets",
    ),
    "one side too many": (
        """
        def f(x, y):
            z = y.exp()
            return x.exp() + z  #!
     """,
        "    return x.exp()",
        (X, X),
        "both parts",
    ),
    "slice": (
        """
        def f(x):
            return x[:-1].exp()  #!
     """,
        "    return x[1:].exp()",
        (X,),
        "begins and ends",
    ),
    "step of a slice": (
        """
        def f(x):
            return x[:, ::2]  #!
     """,
        "    return x[:, 1::2]",
        (CUBE,),
        "begins and ends",
    ),
    "range": (
        """
        def f(n):
            return [i * i for i in range(n)]  #!
     """,
        "    return [i * i for i in range(1, n + 1)]",
        (5,),
        "begins and ends",
    ),
    "index": (
        """
        def f(x):
            return x[:, 0]  #!
     """,
        "    return x[0, :]",
        (X,),
        "the index",
    ),
    "off by one": (
        """
        def f(x):
            k = len(x)  #!
            return torch.eye(k) * k
     """,
        "    k = len(x) - 1",
        (X,),
        "one too many",
    ),
    "comparison": (
        """
        def f(x):
            order = torch.arange(3)
            return order[:, None] > order  #!
     """,
        "    return order[:, None] >= order",
        (X,),
        "the comparison",
    ),
    "and": (
        """
        def f(a, b):
            return [x for x in a if x > 1 or x in b]  #!
     """,
        "    return [x for x in a if x > 1 and x in b]",
        ([1, 2, 3], [1, 3]),
        "condition",
    ),
    "mask": (
        """
        def f(x, mask):
            return x.masked_fill(mask, 7.0)  #!
     """,
        "    return x.masked_fill(~mask, 7.0)",
        (X, MASK),
        "turned round",
    ),
    "negation": (
        """
        def f(x, mask):
            mask = ~mask  #!
            return mask & (x < 1)
     """,
        "    mask = mask",
        (X, MASK),
        "turned round",
    ),
    "truth": (
        """
        def f(a):
            return sorted(a, reverse=False)  #!
     """,
        "    return sorted(a, reverse=True)",
        ([2, 3, 1],),
        "True and False",
    ),
    "namesake": (
        """
        def f(x):
            return torch.cat([x, x], dim=0)  #!
     """,
        "    return torch.stack([x, x], dim=0)",
        (X,),
        "what is called here",
    ),
    "arguments": (
        """
        def f(x, mask):
            zero = torch.zeros(3, 3)
            return torch.where(mask, zero, x)  #!
     """,
        "    return torch.where(mask, x, zero)",
        (X, MASK),
        "order of the arguments",
    ),
    "pair": (
        """
        def f(x):
            return x + 1, x.exp()  #!
     """,
        "    return x.exp(), x + 1",
        (X,),
        "the order",
    ),
    "call too many": (
        """
        def f(x):
            x = x.abs()  #!
            return x * 2
     """,
        "    x = x",
        (X,),
        "call belongs here",
    ),
    "call too few": (
        """
        def f(x):
            y = x  #!
            return y / y.sum(-1)
     """,
        "    y = x.exp()",
        (X,),
        "a step is missing",
    ),
    "order of calls": (
        """
        def f(x):
            return x.sum(-1).abs()  #!
     """,
        "    return x.abs().sum(-1)",
        (X,),
        "order of the calls",
    ),
    "dtype": (
        """
        def f(x):
            return torch.arange(3, dtype=torch.bool) * x  #!
     """,
        "    return torch.arange(3, dtype=torch.float32) * x",
        (X,),
        "the dtype",
    ),
    "name": (
        """
        def f(x, y):
            top = x.amax()  #!
            return x + y / top
     """,
        "    top = y.amax()",
        (X, X.exp()),
        "the name",
    ),
    "order of lines": (
        """
        def f(x):
            x = x.cos()  #!
            y = x + 1
            return x * y
     """,
        "    y = x + 1; x = x.cos(); return x * y",
        (X,),
        "this line and the next",
    ),
    "line too many": (
        """
        def f(x):
            y = x.exp()
            y *= torch.tensor([1.0, 3.0, 5.0])  #!
            return y
     """,
        "    pass",
        (X,),
        "line belongs here",
    ),
    "sum": (
        """
        def f(n):
            total = 0
            for i in range(n):
                total = i * i + 5  #!
            return total
     """,
        "        total += i * i + 5",
        (4,),
        "adds up or replaces",
    ),
    "early return": (
        """
        def f(n):
            total = 0
            for i in range(n):
                total += i * i + 5
                return total  #!
     """,
        "    return total",
        (4,),
        "indented",
    ),
    "end of a loop": (
        """
        def f(a):
            found = []
            for x in a:
                if x < 0:
                    break  #!
                found.append(x)
            return found
     """,
        "            continue",
        ([1, -2, 3],),
        "ends the loop",
    ),
    "order of a loop": (
        """
        def f(a):
            text = ""
            for x in a:  #!
                text += str(x)
            return text
     """,
        "    for x in reversed(a):",
        ([1, 2, 3],),
        "runs over",
    ),
}


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_is_found_on_its_line_and_not_repaired(name: str) -> None:
    text, right, inputs, words = SLIPS[name]
    place = look(text, right, *inputs)
    assert place is not None
    lines = textwrap.dedent(text).strip("\n").split("\n")
    assert lines[place.line_number - 1].endswith("#!"), place
    assert any(each in place.look_at for each in words.split("|")), place
    assert place.text == lines[place.line_number - 1].strip()
    assert right.strip() not in str(place).replace(place.text, "")


def test_no_message_holds_code() -> None:
    """What to look at is one of a few phrases, whatever the step was."""
    for _, look_at, _, _ in KINDS:
        assert look_at.replace(" ", "").replace(",", "").isalpha(), look_at
        assert "look at" in str(Place(3, "return x", look_at))


def module_answer(text: str) -> type:
    return run_cell(text)["Layer"]


@CHECK.check(section="here")
def layer(student: StudentModule) -> None:
    """Two blocks of their own, and their sum beside the input."""
    built = student.build(3)
    expect.true(len(built.parameter_names()) == 2, "parameters are missing")
    first, second = built.state_dict().values()
    expect.true(not torch.equal(first, second), "all alike")
    expect.equal(built(X), X + X @ first + X @ second)


LAYER = """
    class Layer(nn.Module):
        def __init__(self, width):
            super().__init__()
            drawn = [nn.Parameter(torch.randn(width, width)) for _ in range(2)]
            self.blocks = nn.ParameterList(drawn)

        def forward(self, x):
            return x + self.mixed(x)

        def mixed(self, x):
            return sum(x @ block for block in self.blocks)
"""


@pytest.mark.parametrize(
    ("right", "slip", "line"),
    [
        ("for _ in range(2)]", "for _ in range(3)]", 4),
        ("x + self.mixed(x)", "x - self.mixed(x)", 8),
        ("x + self.mixed(x)", "self.mixed(x)", 8),
        ("x @ block for", "block @ x for", 11),
    ],
)
def test_a_slip_in_a_method_is_found(right, slip, line, monkeypatch) -> None:
    monkeypatch.setenv(locating.SWITCH, "1")
    layer(module_answer(LAYER))
    with pytest.raises(CheckFailure) as caught:
        layer(module_answer(LAYER.replace(right, slip)))
    assert caught.value.place.line_number == line


def test_parameters_that_are_none_are_found() -> None:
    text = """
        class Layer(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = torch.zeros(3)
    """
    place = locate(module_answer(text), lambda kind: list(kind().parameters()) != [])
    assert (place.line_number, place.look_at) == (4, "what kind of object this is")


def test_a_slip_in_a_helper_of_the_same_cell_is_found() -> None:
    text = """
        def scale(x):
            return x / x.shape[-1] ** 0.25

        def f(x):
            return scale(x).softmax(-1)
    """
    answer = run_cell(text)["f"]
    wanted = (X / 3**0.5).softmax(-1)
    place = locate(answer, lambda f: expect.close(f(X), wanted), clock=stopped)
    assert place.line_number == 2


def test_a_helper_of_another_cell_stays_as_it_is() -> None:
    names = run_cell("def scale(x):\n    return x / x.shape[-1] ** 0.25")
    answer = run_cell("def f(x):\n    return scale(x).exp()", **names)["f"]
    wanted = (X / 3**0.5).exp()
    assert locate(answer, lambda f: expect.close(f(X), wanted), clock=stopped) is None


def test_where_two_lines_would_do_none_is_named() -> None:
    text = """
        def f(x):
            y = x + 1
            z = y + 1
            return z
    """
    answer = run_cell(text)["f"]
    place = locate(answer, lambda f: expect.close(f(X), X), clock=stopped)
    assert place is None


def test_loops_that_never_end_are_left(monkeypatch) -> None:
    monkeypatch.setattr(locating, "SECONDS_PER_TRY", 0.3)
    text = """
        def f(n):
            i, found = 0, []
            while i <= n:  #!
                found.append(i)
                i += 1
            return found
    """
    place = look(text, "    while i < n:", 3)
    assert (place.line_number, place.look_at) == (3, "the comparison")
    endless = run_cell("def f(n):\n    while n < 9:\n        n += 0\n    return n")["f"]
    assert locate(endless, lambda f: f(3) == 10**6, clock=stopped) is None


STATE = """
    kept, seen = [1, 2], {}
    table = torch.zeros(3)

    def f(x, history=[]):
        kept.append(3)
        seen[len(seen)] = x
        table.add_(1.0)
        history.append(torch.rand(1))
        print("f was called")
        torch.set_grad_enabled
        return x.exp() + 1
"""


def test_nothing_of_the_student_s_is_changed(capfd) -> None:
    names = run_cell(STATE.replace("        torch.set_grad_enabled\n", ""))
    answer = names["f"]
    before = dict(names), answer.__code__, torch.get_rng_state(), random.getstate()
    place = locate(answer, lambda f: expect.close(f(X), X.exp() - 1), clock=stopped)
    assert place.look_at == "the sign"
    assert names == before[0] and answer.__code__ is before[1]
    assert torch.equal(torch.get_rng_state(), before[2])
    assert random.getstate() == before[3]
    assert (names["kept"], names["seen"]) == ([1, 2], {})
    assert torch.equal(names["table"], torch.zeros(3))
    assert answer.__defaults__ == ([],)
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "")


def test_a_function_of_another_cell_changes_only_copies() -> None:
    names = run_cell("kept = []\ndef note(x):\n    kept.append(x)\n    return x")
    text = "def f(x):\n    return note(x).exp() + 1"
    linecache.cache["<own>"] = (len(text), None, text.splitlines(True), "<own>")
    exec(compile(text, "<own>", "exec"), names)
    wanted = X.exp() - 1
    place = locate(names["f"], lambda f: expect.close(f(X), wanted), clock=stopped)
    assert place.line_number == 2
    assert names["kept"] == []


UNFIT = {
    "only a value": "def f():\n    return 1",
    "a file": "def f(x):\n    open('there', 'w')\n    return x + 1",
    "a file, by a helper": "def g():\n    open('there', 'w')\ndef f(x):\n    g()\n"
    "    return x + 1",
    "a decorator": "def keep(g):\n    return g\n@keep\ndef f(x):\n    return x + 1",
    "a mode": STATE,
    "no copy": "rows = (i for i in range(9))\ndef f(x):\n    return next(rows)",
}


@pytest.mark.parametrize("name", UNFIT)
def test_code_that_cannot_be_tried_safely_is_not(name: str) -> None:
    tried = []
    assert locate(run_cell(UNFIT[name])["f"], tried.append, clock=stopped) is None
    assert not tried


def test_a_closure_and_a_text_that_was_edited_are_not_tried() -> None:
    names = run_cell("def f(x):\n    return x + 1")
    file = names["f"].__code__.co_filename
    text = "def f(x):\n    return x * 1"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    tried = []
    assert locate(names["f"], tried.append, clock=stopped) is None

    def closure(x):
        return x + len(tried)

    assert locate(closure, tried.append, clock=stopped) is None
    assert locate(len, tried.append, clock=stopped) is None
    assert locate(3, tried.append, clock=stopped) is None
    assert not tried


def test_what_fails_only_now_and_then_has_no_place() -> None:
    answer = run_cell("def f(x):\n    return x + 1")["f"]
    assert locate(answer, lambda f: True, clock=stopped) is None


def test_no_more_is_tried_when_the_time_is_over() -> None:
    ticks = itertools.count()
    answer = run_cell("def f(x):\n    return x + x.exp() * x.sum(-1)")["f"]
    tried = []
    place = locate(answer, tried.append, 20.0, lambda: float(next(ticks)))
    assert place is None
    assert 5 <= len(tried) <= 20


# --- the hook -------------------------------------------------------------------------


@CHECK.check(section="here")
def increased(student: StudentFunction, step: float = 1.0) -> None:
    got = student(X)
    mistakes = [expect.Mistake("one too few", X, "nothing was added")]
    expect.equal(got, X.exp() + step, on="X", mistakes=mistakes)


def said_of(text: str) -> str:
    with pytest.raises(CheckFailure) as caught:
        increased(run_cell(text)["f"])
    return str(caught.value)


@pytest.fixture
def looking(monkeypatch):
    monkeypatch.setenv(locating.SWITCH, "1")


@pytest.mark.usefixtures("looking")
def test_a_check_says_where_to_look() -> None:
    said = said_of("def f(x):\n    return x.exp() - 1")
    assert "  look     line 2: `return x.exp() - 1`: look at the sign\n" in said
    assert said.index("  look ") < said.index("  read ")


@pytest.mark.usefixtures("looking")
def test_a_failure_that_says_enough_has_no_place() -> None:
    assert "one too few" in said_of("def f(x):\n    return x")
    for text in (
        "def f(x):\n    return x",
        "def f(x):\n    raise NotImplementedError",
        "def f(x, y):\n    return x.exp() - 1",
        "def f(x):\n    return x.exp() @ x",
    ):
        assert "  look " not in said_of(text)


@CHECK.check(section="here")
def there_and_back(there: StudentFunction, back: StudentFunction) -> None:
    expect.equal(back(there(X)), X.exp())


@pytest.mark.usefixtures("looking")
def test_an_answer_of_two_functions_is_looked_into_but_no_earlier_one() -> None:
    text = "def there(x):\n    return x.exp()\ndef back(x):\n    return x + 1 + 1"
    names = run_cell(text)
    with pytest.raises(CheckFailure) as caught:
        there_and_back(names["there"], names["back"])
    assert caught.value.place.line_number == 4
    earlier = run_cell("def back(x):\n    return -x")["back"]
    with pytest.raises(CheckFailure) as caught:
        there_and_back(run_cell("def there(x):\n    return x.exp()")["there"], earlier)
    assert caught.value.place is None or caught.value.place.text != "return -x"


def test_the_search_can_be_switched_off(monkeypatch) -> None:
    monkeypatch.setenv(locating.SWITCH, "0")
    assert "  look " not in said_of("def f(x):\n    return x.exp() - 1")


class Elsewhere(StudentFunction):
    """A student's function in another process, as far as a check can tell."""

    def __init__(self, target) -> None:
        self._target, self.name = wrap(target, StudentFunction), "f"

    def __call__(self, *args, **kwargs):
        return self._target(*args, **kwargs)

    def gradients(self, *args, **kwargs):
        return self._target.gradients(*args, **kwargs)

    def memory(self, *args, **kwargs):
        return self._target.memory(*args, **kwargs)

    def shared(self, *args, **kwargs):
        return self._target.shared(*args, **kwargs)


@pytest.mark.usefixtures("looking")
def test_a_student_in_another_process_is_not_looked_into() -> None:
    answer = run_cell("def f(x):\n    return x.exp() - 1")["f"]
    with pytest.raises(CheckFailure) as caught:
        increased(Elsewhere(answer))
    assert caught.value.place is None


@pytest.mark.usefixtures("looking")
def test_who_interrupts_the_search_still_gets_the_message(monkeypatch) -> None:
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(locating, "locate", interrupted)
    assert "increased" in said_of("def f(x):\n    return x.exp() - 1")


# --- two slips ------------------------------------------------------------------------


def look_beside(text: str) -> Place | None:
    """Look into f of a cell; a check knows one mistake, and the slip is another."""
    spec = Function("two", "f", lambda x: x.softmax(-1) * 2 - x.mean(-1, keepdim=True))
    spec.mistake("the mean is added", "Subtract it.")(
        lambda x: x.softmax(-1) * 2 + x.mean(-1, keepdim=True)
    )

    @CHECK.check(section="here")
    def two(student: StudentFunction) -> None:
        spec.judge_all(student, [Case("rows", (X,)), Case("others", (X + X.T,))])

    try:
        two(run_cell(text)["f"])
    except CheckFailure as failure:
        return failure.place
    return None


def test_of_two_slips_a_line_and_a_name_are_said(monkeypatch) -> None:
    monkeypatch.setenv(locating.SWITCH, "1")
    place = look_beside(
        """
        def f(x):
            weights = x.softmax(0)
            return weights * 2 + x.mean(-1, keepdim=True)
        """
    )
    assert place is not None and place.line_number == 2
    assert place.left is not None and place.left.name == "the mean is added"
    assert "softmax(-1)" not in str(place) and "Two slips" in str(place)


def test_a_step_into_a_known_mistake_is_no_slip(monkeypatch) -> None:
    """What was right must not become wrong: max(0, …) would be the known mistake."""
    monkeypatch.setenv(locating.SWITCH, "1")
    spec = Function("fourths", "f", lambda n: -(-n // 4))
    spec.mistake("rounded down", "Round up.")(lambda n: n // 4)

    @CHECK.check(section="here")
    def fourths(student: StudentFunction) -> None:
        spec.judge_all(student, [Case(f"{n}", (n,)) for n in (5, 9, 14, 17, 8, 1)])

    with pytest.raises(CheckFailure) as caught:
        fourths(run_cell("def f(n):\n    return max(1, n // 4)")["f"])
    place = caught.value.place
    assert not caught.value.mistake
    assert place is None or place.left is None


@pytest.mark.parametrize("first", [0, 6], ids=["sooner", "hardly later"])
def test_a_refusal_that_a_step_has_brought_is_no_slip(first, monkeypatch) -> None:
    """With / in place of * the first number is right, and refused for its type."""
    monkeypatch.setenv(locating.SWITCH, "1")
    spec = Function("halves", "f", lambda n: n // 2 + 5 * (n > 8))

    @CHECK.check(section="here")
    def halves(student: StudentFunction) -> None:
        for n in (first, 7, 9, 11):
            got = student(n)
            spec.compare(got, Case(f"{n}", (n,)))
            if type(got) is float:
                refuse("not a whole number", "Divide with //.", on=f"{n}")

    with pytest.raises(CheckFailure) as caught:
        halves(run_cell("def f(n):\n    return n * 2")["f"])
    place = caught.value.place
    assert place is None or place.left is None


def test_of_two_slips_without_a_name_two_lines_are_said(monkeypatch) -> None:
    monkeypatch.setenv(locating.SWITCH, "1")
    place = look_beside(
        """
        def f(x):
            weights = x.softmax(0)
            return weights * 2 - x.mean(0, keepdim=True)
        """
    )
    assert place is not None and place.left is None
    assert place.other is not None
    assert (place.line_number, place.other.line_number) == (2, 3)


def test_a_list_that_holds_itself_does_not_end_the_process() -> None:
    rows: list = []
    rows.append(rows)
    with locating._nested_lists_refused(), pytest.raises(ValueError, match="deeply"):
        torch.tensor(rows)
    assert torch.tensor([[1.0]]).shape == (1, 1)
