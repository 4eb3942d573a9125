"""The boundary: data cross and nothing else; checks work as in an open notebook.

Whatever a student's process sends is data, a failed check, or the end of that process.
"""

import contextlib
import io
import math
import os
import re
import socket
import struct
import time
from collections.abc import Iterator

import hypothesis.strategies as st
import msgpack
import pytest
import torch
from hypothesis import HealthCheck, given, settings

from autograder.boundary import data
from autograder.boundary.channel import Channel, ChannelError
from autograder.boundary.data import BoundaryError, Named, pack, unpack
from autograder.boundary.outputs import Outputs
from autograder.expect import CheckFailure
from autograder.grading.kernel import KernelGone
from autograder.grading.remote import Names
from autograder.interface import (
    Gradients,
    LocalFunction,
    LocalModule,
    Opaque,
    StudentError,
)
from mistakes import handed_in
from tests import chapters, remote

# --- the chapters ---------------------------------------------------------------------


def check_all(chapter: str, names: dict) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        for exercise in chapters.source(chapter).exercises:
            for text in chapters.check_cells(chapter, exercise.name, hidden=True):
                exec(text, names)


def message(chapter: str, exercise: str, names: dict) -> str:
    with contextlib.redirect_stdout(io.StringIO()), pytest.raises(CheckFailure) as said:
        for text in chapters.check_cells(chapter, exercise, hidden=False):
            exec(text, names)
    # weights that a student's code draws itself differ from run to run
    return re.sub(r"-?\d+\.\d+", "#", str(said.value))


def local(answer: object) -> object:
    """An answer of the bank in this process, as an open notebook has it."""
    wrapped = LocalModule if isinstance(answer, type) else LocalFunction
    return wrapped(answer, answer.__name__)


# test_examine sends every chapter across; these have most kinds of answers
@pytest.mark.parametrize("chapter", ["02_class_token", "04_attention", "07_decoder"])
def test_checks_cannot_tell(chapter: str, tmp_path) -> None:
    """The solved notebook passes; wrong answers get the message they get locally."""
    if chapter in handed_in.CHAPTERS:
        handed_in.right(handed_in.CHAPTERS[chapter])
    wrong = [each for each in chapters.by_hand(chapter) if each.mistake]
    with remote.kernel(tmp_path) as kernel:
        names = remote.run_notebook(chapter, kernel)
        check_all(chapter, names)
        kernel.run_cell("from tests import chapters")
        for number, entry in list(enumerate(wrong))[:: max(1, len(wrong) // 3)]:
            if entry.name == "my_model":
                continue  # it trains a model first; the check then reads the same files
            kept = Names(kernel)
            here = names | {entry.name: local(entry.answer)}
            expected = message(chapter, entry.exercise, Overlaid(names, here))
            with replaced(kernel, chapter, entry, f"by_hand({chapter!r})", number):
                assert message(chapter, entry.exercise, names) == expected, entry.label
            del kept


@pytest.mark.parametrize(
    "chapter", [c for c in chapters.CHAPTERS if chapters.derived(c)]
)
def test_every_mistake_is_named_across_the_boundary(chapter: str, tmp_path) -> None:
    """On the hidden tests' inputs too; test_mistakes tries them in this process.

    Where two mistakes give the same on all that was drawn, both are said. Every
    twentieth is tried, and with BANK=all in the environment all are.
    """
    wrong = list(enumerate(chapters.derived(chapter)))
    if os.environ.get("BANK") != "all":
        wrong = wrong[int(chapter[:2]) :: 20]
    with remote.kernel(tmp_path) as kernel, contextlib.redirect_stdout(io.StringIO()):
        names = remote.run_notebook(chapter, kernel)
        kernel.run_cell("from tests import chapters")
        for number, entry in wrong:
            with replaced(kernel, chapter, entry, f"derived({chapter!r})", number):
                found = refused(chapter, entry.exercise, names)
            said = [found.mistake, *found.alternatives.split("; ")]
            assert entry.mistake in said, f"{entry.label}: {found}"


def refused(chapter: str, exercise: str, names: dict) -> CheckFailure:
    with pytest.raises(CheckFailure) as said:
        for text in chapters.hidden_tests(chapter, exercise):
            exec(text, names)
    return said.value


@contextlib.contextmanager
def replaced(kernel, chapter: str, entry, entries: str, number: int) -> Iterator[None]:
    """Put a wrong answer of the bank into the student's process, for a while."""
    if entries.startswith("by_hand"):
        entries = f"[each for each in chapters.{entries} if each.mistake]"
    else:
        entries = f"chapters.{entries}"
    kernel.run_cell(f"kept = {entry.name}\n{entries}[{number}].hand_in(globals())")
    yield
    kernel.run_cell(f"{entry.name} = kept")


class Overlaid(dict):
    """Names of which some are here and the others in the student's process."""

    def __init__(self, names: Names, here: dict) -> None:
        super().__init__(here)
        self._names = names

    def __missing__(self, name: str) -> object:
        return self._names[name]


# --- data -----------------------------------------------------------------------------

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(10**3999), 10**3999),
    st.floats(),
    st.text(max_size=20),
)
DTYPES = st.sampled_from(data._DTYPES)
TENSORS = st.builds(
    lambda dtype, shape: torch.arange(math.prod(shape)).reshape(shape).to(dtype),
    DTYPES,
    st.lists(st.integers(0, 4), max_size=4),
)
KEYS = st.one_of(SCALARS, st.tuples(SCALARS, SCALARS))
LEAVES = st.one_of(SCALARS, TENSORS, st.builds(Opaque, st.text(max_size=9)))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(KEYS, inner, max_size=4),
    ),
    max_leaves=12,
)
FEW = settings(
    max_examples=80,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def same(a: object, b: object) -> bool:
    """Whether two data are the same to the last bit and type."""
    if type(a) is not type(b):
        return False
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b) or a != a != b != b
    return a == b


@FEW
@given(VALUES)
def test_data_come_back_as_they_were(value: object) -> None:
    assert same(unpack(pack(value)), value)


def read(content: bytes) -> None:
    """Read bytes: data or a BoundaryError, nothing else."""
    with contextlib.suppress(BoundaryError):
        pack(unpack(content))


@FEW
@given(st.binary(max_size=200))
def test_any_bytes_are_data_or_refused(content: bytes) -> None:
    read(content)


@FEW
@given(VALUES, st.data())
def test_any_changed_frame_is_data_or_refused(value: object, choice) -> None:
    content = bytearray(pack(value))
    for _ in range(choice.draw(st.integers(1, 3))):
        place = choice.draw(st.integers(0, len(content) - 1))
        content[place] = choice.draw(st.integers(0, 255))
    read(bytes(content))
    read(bytes(content[: choice.draw(st.integers(0, len(content)))]))


def header(code: int, content: bytes) -> bytes:
    return msgpack.packb(msgpack.ExtType(code, content))


def tensor(number: int, shape: tuple[int, ...], values: bytes) -> bytes:
    sizes = struct.pack(f">{len(shape)}q", *shape)
    return header(data._TENSOR, bytes([number]) + sizes) + msgpack.packb(values)


MANY = struct.pack(">I", 2**32 - 1)
ONE, TWO = struct.pack(">I", 1), struct.pack(">I", 2)
FLOAT32 = data._DTYPES.index(torch.float32)
HOSTILE = {
    "nothing": b"",
    "more items than bytes": header(data._LIST, MANY),
    "more pairs than bytes": header(data._DICT, MANY),
    "a list of msgpack's own": msgpack.packb([1, 2]),
    "a dict of msgpack's own": msgpack.packb({}),
    "bytes": msgpack.packb(b"abc"),
    "a time": msgpack.packb(msgpack.Timestamp(1)),
    "a kind that is none": header(99, b""),
    "a key that is a list": header(data._DICT, ONE) + pack([1]) + pack(1),
    "a key twice": header(data._DICT, TWO) + 2 * (pack("a") + pack(1)),
    "1 and True as keys": header(data._DICT, TWO) + pack(1) * 2 + pack(True) * 2,
    "nested without end": header(data._LIST, ONE) * 10_000,
    "something after the end": pack(1) + pack(2),
    "a string that is none": b"\xa2\xff\xfe",
    "a type's name without end": header(data._OPAQUE, b"x" * 1000),
    "a name of an object": pack(Named(1)),
    "a dtype that is none": tensor(250, (1,), b"abcd"),
    "a negative dimension": tensor(FLOAT32, (-1,), b"abcd"),
    "two negative dimensions": tensor(FLOAT32, (-1, -1), b"abcd"),
    "a huge dimension": tensor(FLOAT32, (2**62,), b"abcd"),
    "a huge empty tensor": tensor(FLOAT32, (0, 2**62, 2**62), b""),
    "too few values": tensor(FLOAT32, (2,), b"abcd"),
    "half a dimension": header(data._TENSOR, bytes([FLOAT32, 0, 0])) + b"\xc4\x00",
    "a tensor without values": header(data._TENSOR, bytes([FLOAT32])) + pack(1),
    "gradients deep inside": pack([[Gradients(1, ())]]),
    "gradients that are text": header(data._GRADIENTS, b"")
    + pack(1)
    + pack(("a",))
    + pack({}),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_frame_is_refused(content: bytes) -> None:
    with pytest.raises(BoundaryError):
        unpack(content)


def test_what_is_too_large_is_refused_before_it_is_written() -> None:
    with pytest.raises(BoundaryError, match="bytes"):
        pack(torch.zeros(1).expand(2**36))
    with pytest.raises(BoundaryError, match="items"):
        pack([[0] * 600_000, [0] * 600_000])
    with pytest.raises(BoundaryError, match="keys"):
        pack(dict.fromkeys(range(5_000)))
    nested: list = []
    nested.append(nested)
    with pytest.raises(BoundaryError, match="nested"):
        pack(nested)
    with pytest.raises(BoundaryError, match="is no data"):
        pack(object())


def test_what_has_no_form_here_is_opaque() -> None:
    assert unpack(pack(10**5000)) == Opaque("int")
    assert isinstance(unpack(pack(torch.ones(2).to(torch.float8_e5m2))), Opaque)
    assert unpack(pack("\ud800")) == "\\ud800"


def test_odd_tensors_arrive_as_their_values() -> None:
    weights = torch.rand(3, 4, dtype=torch.complex64)
    assert torch.equal(unpack(pack(weights.T.conj()[1:])), weights.T.conj()[1:])
    parameter = torch.nn.Parameter(torch.ones(2))
    assert not unpack(pack(parameter)).requires_grad
    assert unpack(pack(torch.zeros(1).expand(3))).add_(1).tolist() == [1, 1, 1]
    # a byte of a boolean can be anything; here it is True
    odd = unpack(tensor(data._DTYPES.index(torch.bool), (2,), b"\x00\x07"))
    assert odd.tolist() == [False, True] and int(odd.sum()) == 1
    assert type(unpack(pack(torch.Size([2, 3])))) is tuple


# --- the channel ----------------------------------------------------------------------


@contextlib.contextmanager
def connected(**options):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Channel(ours, **options), theirs


def soon(seconds: float = 20.0) -> float:
    return time.monotonic() + seconds


@pytest.mark.parametrize(
    ("sent", "kind"),
    [
        (b"", "closed"),
        (b"\0\0", "closed"),
        (b"\0\0\0\x09abc", "closed"),
        (b"\xff\xff\xff\xff", "too large"),
        (b"\0\0\0\1\xc1", "not data"),
        (b"\0\0\0\0", "not data"),
    ],
)
def test_what_is_no_frame_is_named(sent: bytes, kind: str) -> None:
    with connected() as (channel, theirs):
        theirs.sendall(sent)
        theirs.close()
        with pytest.raises(ChannelError) as caught:
            channel.receive(soon())
    assert caught.value.kind == kind


def test_a_frame_that_comes_in_two_parts_can_be_waited_for_twice() -> None:
    content = pack(["a", 1])
    frame = struct.pack(">I", len(content)) + content
    with connected() as (channel, theirs):
        theirs.sendall(frame[:5])
        with pytest.raises(ChannelError, match="late"):
            channel.receive(soon(0.05))
        theirs.sendall(frame[5:])
        assert channel.receive(soon()) == ["a", 1]


def test_nobody_who_reads_is_not_waited_for() -> None:
    with connected() as (channel, _), pytest.raises(ChannelError, match="late"):
        channel.send(torch.zeros(2**21), soon(0.2))


# --- outputs --------------------------------------------------------------------------


def test_outputs_are_cut_and_say_so() -> None:
    outputs = Outputs(1000)
    for _ in range(500):
        outputs.write("stdout", "ten bytes\n")
    outputs.fail("ValueError", "in the end", ["line"] * 50)
    kept = outputs.as_list()
    assert outputs.cut and len(kept) == 3
    assert len(kept[0]["text"]) < 1000
    assert kept[1]["text"] == "\n[output cut: more than 1,000 bytes]\n"
    assert kept[2]["evalue"] == "in the end"


def test_only_text_and_images_are_kept() -> None:
    outputs = Outputs(1000)
    script = "<script>alert(1)</script>"
    outputs.show({"text/html": script, "image/svg+xml": script, "text/plain": "x"})
    outputs.show({"image/png": f'"{script}', "image/jpeg": "aGVsbG8="})
    assert outputs.as_list() == [
        {"output_type": "display_data", "data": {"text/plain": "x"}, "metadata": {}}
    ]


@pytest.mark.parametrize(
    "output",
    [
        3,
        {},
        {"output_type": "stream", "name": "stdlog", "text": "x"},
        {"output_type": "stream", "name": "stdout", "text": 3},
        {"output_type": "display_data", "data": "x"},
        {"output_type": "error", "ename": "x", "evalue": "x", "traceback": [3]},
        {"output_type": "update", "data": {}},
    ],
)
def test_an_output_of_another_form_is_refused(output: object) -> None:
    with pytest.raises(BoundaryError):
        Outputs(1000).add(output)


# --- a student's process --------------------------------------------------------------


def texts(result) -> str:
    return "".join(each.get("text", "") for each in result.outputs)


def test_cells_run_as_in_a_notebook(tmp_path) -> None:
    (tmp_path / "transformer").mkdir()
    (tmp_path / "transformer" / "__init__.py").touch()
    (tmp_path / "transformer" / "attention.py").write_text("mine = 'my own'")
    with remote.kernel(tmp_path) as kernel:
        result = kernel.run_cell(
            "import sys\nprint('out')\nprint('err', file=sys.stderr)\n6 * 7"
        )
        streams = [each["name"] for each in result.outputs[:2]]
        assert streams == ["stdout", "stderr"] and texts(result) == "out\nerr\n"
        assert result.outputs[2]["data"] == {"text/plain": "42"}
        kernel.run_cell("from transformer.attention import mine")
        assert kernel.look("mine").value == "my own"
        result = kernel.run_cell("first = 1\nfirst / 0\nsecond = 2")
        assert result.error == "ZeroDivisionError: division by zero"
        assert result.outputs[0]["ename"] == "ZeroDivisionError"
        assert kernel.look("first").value == 1
        assert kernel.look("second").kind == "missing"
        # none of these ends the process, or the notebook
        for code in ("exit()", "import sys; sys.exit(1)", "input()", "x = ("):
            kernel.run_cell(code)
        kernel.run_cell("import os\nos.write(1, b'x')\nos.fork()\nkept = 'still here'")
        assert kernel.look("kept").value == "still here"


def test_names_are_the_students_and_imports_are_ours(tmp_path) -> None:
    with remote.kernel(tmp_path) as kernel:
        kernel.run_cell("def f(x):\n    return 2 * x\nmath, len, n = f, f, (3, [4])")
        names = Names(kernel, ["import math"])
        exec("found = [f(x) for x in n[1]], (lambda: f(1))(), math.pi, len(n)", names)
        assert names["found"] == ([8], 2, math.pi, 2)
        with pytest.raises(NameError, match="the name g is not defined") as caught:
            exec("g(f)", names)
        assert isinstance(caught.value, StudentError) and caught.value.kind == "missing"


HOSTILE_ANSWERS = """
import os, sys, torch

class Words(Exception):
    def __str__(self):
        raise ValueError

def interrupts(): raise KeyboardInterrupt
def leaves(): sys.exit(3)
def raises_in_words(): raise Words
def too_much(): return torch.zeros(2**25)
def too_many(): return dict.fromkeys(range(10_001))
def strange(): return [object()]
def forks():
    os.fork()
    return 7
def loops():
    while True:
        pass
class Many(torch.nn.Module):
    def __init__(self, count, length):
        super().__init__()
        for number in range(count):
            name = f"{number:0{length}}"
            self.register_parameter(name, torch.nn.Parameter(torch.zeros(1)))
class Exits(type):
    def __getattribute__(self, name): raise SystemExit
class odd(metaclass=Exits): pass
"""


def test_whatever_a_function_does_is_a_students_error(tmp_path) -> None:
    with remote.kernel(tmp_path, call_seconds=2) as kernel:
        assert not kernel.run_cell(HOSTILE_ANSWERS).error
        names = Names(kernel)
        kinds = {}
        for name in (
            *("interrupts", "leaves", "raises_in_words"),
            *("too_much", "too_many", "loops", "odd"),
        ):
            with pytest.raises(StudentError) as caught:
                exec(f"{name}()", names)
            kinds[name] = caught.value.kind
        assert kinds["leaves"] == "SystemExit"
        assert kinds["too_much"] == kinds["too_many"] == "TooMuchData"
        assert kinds["loops"] == "endless"
        for count, length in ((10_001, 5), (1, 1_001)):
            many = names["Many"].build(count, length)
            for method in (many.state_dict, many.parameter_names):
                with pytest.raises(StudentError, match="handed to the check"):
                    method()
        assert names["strange"]() == [Opaque("object")]
        assert names["forks"]() == 7
        assert kernel.run_cell("1").error == ""


def test_a_cell_without_end_is_interrupted(tmp_path) -> None:
    with remote.kernel(tmp_path, cell_seconds=4, notebook_seconds=6) as kernel:
        result = kernel.run_cell("print('begun')\nwhile True:\n    pass")
        assert result.stopped == "stopped after 4 seconds" and "begun" in texts(result)
        assert result.error.startswith("KeyboardInterrupt")
        assert result.outputs[-1]["evalue"] == "stopped after 4 seconds"
        kernel.run_cell("while True:\n    pass")
        assert kernel.run_cell("1").stopped.startswith("not run: the notebook had used")


def test_a_wait_that_is_known_later_gives_no_time_back(tmp_path, monkeypatch) -> None:
    """It is known when it is over: here one of a second, after the interruption."""
    with remote.kernel(tmp_path, cell_seconds=2, notebook_seconds=2) as kernel:
        interrupt, waited, known = kernel._cage.interrupt, kernel._clock._waited, []

        def interrupted() -> None:
            interrupt()
            known.append(1.0)

        monkeypatch.setattr(kernel._cage, "interrupt", interrupted)
        monkeypatch.setattr(kernel._clock, "_waited", lambda: waited() + sum(known[:1]))
        assert kernel.run_cell("while True:\n    pass").stopped
        assert kernel.run_cell("1").stopped.startswith("not run: the notebook had used")


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; os._exit(3)", "it ended itself"),
        ("import os; os.kill(os.getpid(), 9)", "killed (SIGKILL)"),
        ("import os; os.closerange(3, 100)", "it ended itself"),
        (
            "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
            "while True:\n    pass",
            "it could not be interrupted",
        ),
    ],
    ids=["leaves", "is killed", "closes its files", "cannot be interrupted"],
)
def test_a_process_that_is_gone_says_why(code: str, reason: str, tmp_path) -> None:
    with remote.kernel(tmp_path, cell_seconds=2) as kernel:
        for _ in range(2):  # the second time it is known
            with pytest.raises(KernelGone) as caught:
                kernel.run_cell(code)
            assert caught.value.reason == reason


FORGING = """
import gc, socket
from autograder.boundary.channel import Channel
from autograder.boundary.data import pack
channel = next(each for each in gc.get_objects() if type(each) is Channel)
line = channel._socket
def send(content):
    line.sendall(len(content).to_bytes(4, "big") + content)
"""


@pytest.mark.parametrize(
    "attack",
    [
        "send(pack({'value': 42, 'number': '0' * 32}))",
        "send(pack({'value': 42, 'number': None}))",
        "send(pack([1, 2]))",
        "send(b'x' * 10)",
        "line.sendall(b'\\xff' * 8)",
        "print('{\"value\": 42}'); line.sendall(b'\\0')",
        "Channel.send = lambda self, reply: send(pack({**reply, 'value': 42}))",
        "Channel.send = lambda self, reply: send(pack({**reply, 'error': 'none'}))",
    ],
)
def test_a_forged_reply_ends_the_process(attack: str, tmp_path) -> None:
    with remote.kernel(tmp_path) as kernel, pytest.raises(KernelGone):
        kernel.run_cell(FORGING + attack)
        Names(kernel)["f"]()
        pytest.fail("something was taken for an answer")


def test_a_changed_process_returns_data_and_no_more(tmp_path) -> None:
    """Replies with the right number are the student's own word: wrong, or data."""
    with remote.kernel(tmp_path) as kernel:
        kernel.run_cell(
            "from torch import nn\nclass Layer(nn.Linear): pass\n"
            "def f(x): return x\n"
            "from autograder.interface import LocalFunction, Gradients\n"
            "import torch\n"
            "LocalFunction.gradients = lambda *a, **k: "
            "Gradients(1, (torch.ones(9),), {})\n"
        )
        names = Names(kernel)
        layer = names["Layer"].build(2, 2)
        assert layer.parameter_names() == ["weight", "bias"]
        with pytest.raises(StudentError, match="other shapes than the inputs"):
            names["f"].gradients(torch.ones(2))
        with pytest.raises(StudentError, match="f is not a class"):
            names["f"].build()
        kernel.run_cell("Layer.state_dict = lambda self, *a, **k: {'weight': 'mine'}")
        with pytest.raises(StudentError, match="dict of tensors"):
            layer.state_dict()


@pytest.mark.parametrize("sizes", ["((2, -1), 3)", "((2, '3'), 3)", "([2], 3)", "9"])
def test_sizes_that_are_none_end_the_process(sizes: str, tmp_path) -> None:
    with remote.kernel(tmp_path) as kernel:
        kernel.run_cell(
            "from autograder.interface import LocalFunction\ndef f(x): return x\n"
            f"LocalFunction.memory = lambda *a, **k: {sizes}"
        )
        with pytest.raises(KernelGone):
            Names(kernel)["f"].memory(1)


METHODS = """
import torch
from torch import nn
class Layer(nn.Linear):
    secret = 42
    def twice(self, x): return self(self(x))
    def same(self, x): return x
"""


def test_methods_are_called_by_the_names_that_a_check_gives(tmp_path) -> None:
    with remote.kernel(tmp_path) as kernel:
        kernel.run_cell(METHODS)
        layer, x = Names(kernel)["Layer"].build(2, 2), torch.ones(2)
        twice, same = layer.methods("twice", "same")
        assert torch.equal(twice(x), layer(layer(x)))
        assert set(twice.gradients(x).parameters) == {"weight", "bias"}
        assert (twice.shared(x), same.shared(x)) == ([], [0])
        for name in ("absent", "secret", "__init__", "load_state_dict"):
            with pytest.raises(StudentError, match=f"has no method {name}"):
                layer.methods(name)


@pytest.mark.parametrize(
    "changed",
    [
        "student._Student._keep = lambda *a: 'mine'",
        "student._Student._keep = lambda *a: -1",
        "student.LocalInstance.shared = lambda *a: [0.5]",
        "student.LocalInstance.shared = lambda *a: 0",
    ],
)
def test_no_handle_and_no_place_end_the_process(changed: str, tmp_path) -> None:
    with remote.kernel(tmp_path) as kernel:
        kernel.run_cell(METHODS)
        layer = Names(kernel)["Layer"].build(2, 2)
        kernel.run_cell(f"from autograder.boundary import student\n{changed}")
        with pytest.raises(KernelGone):
            layer.methods("same")
            layer.shared(torch.ones(2))


def test_an_alarm_while_an_answer_is_awaited_shifts_no_answer(
    tmp_path, monkeypatch
) -> None:
    """A check that is stopped in the middle must not leave its answer to the next."""
    with remote.kernel(tmp_path) as kernel:
        kernel.run_cell("import time\ndef f(x):\n    time.sleep(x)\n    return x")
        f = Names(kernel)["f"]

        def stop(deadline):
            raise TimeoutError("the check took too long")

        with monkeypatch.context() as changed, pytest.raises(TimeoutError):
            changed.setattr(kernel, "_receive", stop)
            f(2)
        assert f(0) == 0


def test_what_a_check_has_built_is_forgotten_with_it(tmp_path) -> None:
    with remote.kernel(tmp_path) as kernel:
        kernel.run_cell(
            "from torch import nn\nclass Layer(nn.Linear): pass\n"
            "def alive():\n    import gc\n    gc.collect()\n"
            "    return sum(isinstance(each, Layer) for each in gc.get_objects())"
        )
        layer, alive = Names(kernel)["Layer"], Names(kernel)["alive"]
        kept = [layer.build(2, 2) for _ in range(3)]
        assert alive() == 3
        del kept[1:]
        assert alive() == 1
        assert kept[0](torch.ones(2)).shape == (2,)


FORESEEN = """
calls = []
def f(x):
    calls.append(x)
    return 1 / x
def asked(): return list(calls)
def slow(x):
    import time
    time.sleep(0.15)
    return x
def stuck(x):
    while x == 2:
        pass
    return x
def large(x):
    import torch
    return torch.full((200_000,), float(x))
"""


def test_calls_that_were_foreseen_are_answered_as_any(tmp_path) -> None:
    with remote.kernel(tmp_path, call_seconds=2) as kernel:
        kernel.run_cell(FORESEEN)
        f, asked, slow, stuck, large = (
            Names(kernel)[name] for name in ("f", "asked", "slow", "stuck", "large")
        )
        f.ahead([(1,), (2,), (0,), (4,)])
        assert f(1) == 1 and f.last.value == 1
        assert asked() == [1, 2, 0]  # an error is the last answer
        assert f(2) == 0.5
        with pytest.raises(StudentError, match="ZeroDivisionError") as caught:
            f(0)
        assert caught.value.line.endswith("return 1 / x")
        assert f(4) == 0.25 and asked() == [1, 2, 0, 4]

        f.ahead([(5,), (6,)])
        assert f(8) == 1 / 8 and f(5) == 1 / 5  # another one than was foreseen
        assert asked()[4:] == [8, 5]

        slow.ahead([(number,) for number in range(4)])  # each reply in its own time
        assert [slow(number) for number in range(4)] == [0, 1, 2, 3]
        large.ahead([(1,), (2,)])
        assert large(1)[0] == 1 and large(2)[0] == 2
        stuck.ahead([(1,), (2,), (3,)])
        with pytest.raises(StudentError) as caught:
            stuck(1)
        assert caught.value.kind == "endless"
        assert kernel.stopped == ["stuck had not returned after 2 seconds"]


def test_what_changes_a_module_comes_before_what_was_foreseen(tmp_path) -> None:
    with remote.kernel(tmp_path) as kernel:
        kernel.run_cell("from torch import nn\nclass Layer(nn.Linear): pass")
        layer = Names(kernel)["Layer"].build(1, 1, False)
        one = torch.ones(1)
        for weight in (2.0, 3.0):
            layer.ahead([(one,), (one,)])
            layer(one)
            layer.load_state_dict({"weight": torch.full((1, 1), weight)})
            assert layer(one) == weight


@pytest.mark.parametrize(
    "forged", ["[]", "7", "[(True, 1)] * 9", "[(False, ('',) * 5), (True, 1)]", "[1]"]
)
def test_forged_answers_to_what_was_foreseen_are_wrong_or_none(
    forged: str, tmp_path
) -> None:
    with remote.kernel(tmp_path) as kernel:
        kernel.run_cell(
            "from autograder.boundary.student import _Student\ndef f(x): return x\n"
            f"_Student._several = lambda *a: {forged}"
        )
        f = Names(kernel)["f"]
        f.ahead([(1,), (2,)])
        if forged.endswith("9"):
            assert [f(1), f(2), f(3)] == [1, 1, 3]  # no more than was asked
        else:
            with pytest.raises(KernelGone):
                f(1)
