"""Time and memory of one submission: bounded by the wall, spent once, counted here.

What single attacks try is in ``tests/attacks/starving``; this is what holds them all.
"""

import hashlib
import json
import os
import threading
import time
from pathlib import Path

import psutil
import pytest

from autograder.chapters import attention
from autograder.grading import cluster, sandbox
from autograder.grading.examine import examine
from autograder.grading.grader import Grader
from autograder.grading.job import GRADED, UNGRADED, Job, Outcome
from autograder.grading.kernel import ENOUGH, STRETCH, Clock
from autograder.grading.limits import MIB, Limits
from autograder.grading.paper import Paper
from autograder.grading.sandbox import Sandbox
from tests import strangers

WALL = 6.0
SHORT = Limits(wall_seconds=WALL)
MOST_MEMORY = 400 * MIB  # of a trusted process, above its start


@pytest.fixture(scope="module")
def unsafe():
    with Sandbox(Limits(), unsafe=True, imports=()) as made:
        examined("pass", made)  # what is imported once does not count
        yield made


def examined(code: str, box: Sandbox, limits: Limits = Limits()) -> Outcome:  # noqa: B008
    """Grade a solved notebook in which code follows the answer `softmax`."""
    notebook = strangers.put(strangers.solved(), "softmax", "after", code)
    return examine(strangers.job(notebook, limits=limits, unsafe=True), box)


def lost(outcome: Outcome) -> set[str]:
    return {each.exercise for each in outcome.verdicts if each.score < each.points}


# --- the wall -------------------------------------------------------------------------

NEVER_DONE = {
    "sleeps": "import time; time.sleep(1000)",
    "computes": "while True: pass",
    "catches everything": """
while True:
    try:
        while True: pass
    except BaseException: pass
""",
    "starves itself": """
import hashlib, threading
def spin():
    while True: hashlib.sha256(bytes(50_000_000))
for _ in range(20): threading.Thread(target=spin, daemon=True).start()
while True: pass
""",
    "sends a byte now and then": """
import gc, time
from autograder.boundary.channel import Channel
line = next(each for each in gc.get_objects() if type(each) is Channel)._socket
line.sendall((1_000_000).to_bytes(4, "big"))
while True:
    time.sleep(0.2)
    line.sendall(b"x")
""",
}


@pytest.mark.parametrize("code", NEVER_DONE.values(), ids=NEVER_DONE)
def test_nothing_outlasts_the_time_on_the_wall(code, unsafe) -> None:
    outcome = examined(code, unsafe, SHORT)
    assert (outcome.status, outcome.again) == (UNGRADED, False)
    wanted = "the submission was stopped after 6 seconds on the wall, while running "
    assert outcome.reason.startswith(wanted)
    assert outcome.seconds < 2 * WALL
    assert "time on the wall: at most 6 seconds" in " | ".join(outcome.limited)


def test_a_check_s_own_work_is_stopped_too(unsafe, monkeypatch) -> None:
    """An answer can be such that comparing it takes for ever."""

    def slow(student, seed=0):
        while True:
            time.sleep(0.01)  # no processor time, so no other alarm rings

    monkeypatch.setattr(attention, "softmax", slow)
    outcome = examined("pass", unsafe, SHORT)
    assert (outcome.status, outcome.again) == (UNGRADED, False)
    assert "6 seconds on the wall, while running exercise softmax" in outcome.reason
    assert outcome.seconds < 2 * WALL


def test_a_process_s_own_threads_do_not_stop_its_clock() -> None:
    """They take the processors from each other, and would have stretched its limits."""
    stop, clock = threading.Event(), Clock(os.getpid())

    def spin() -> None:
        while not stop.is_set():
            hashlib.sha256(bytes(10_000_000)).digest()

    threads = [threading.Thread(target=spin) for _ in range(16)]
    used, began = time.process_time(), clock.now()
    for each in threads:
        each.start()
    time.sleep(1)
    stop.set()
    for each in threads:
        each.join()
    used = time.process_time() - used
    assert clock.now() - began >= 0.9 * used / len(os.sched_getaffinity(0))
    assert STRETCH == 8


# --- once -----------------------------------------------------------------------------

ENDLESS = """
def softmax(scores):
    while True: pass
"""


def test_an_endless_function_costs_its_limit_once(unsafe) -> None:
    notebook = strangers.put(strangers.solved(), "softmax", "answer", ENDLESS)
    notebook = strangers.put(
        notebook,
        "masked-softmax",
        "answer",
        "def masked_softmax(scores, mask): return softmax(scores)",
    )
    limits = Limits(call_seconds=3)
    outcome = examine(strangers.job(notebook, limits=limits, unsafe=True), unsafe)
    assert outcome.status == GRADED
    assert {"softmax", "masked-softmax"} <= lost(outcome)
    assert outcome.limited[0] == (
        "check test-softmax: softmax had not returned after 3 seconds"
    )
    again = [each for each in outcome.limited if "had not returned after" in each]
    assert len(again) == 2  # by itself, and once in what calls it
    assert again[1].endswith(f"after {ENOUGH:g} seconds")


def test_what_calls_an_endless_function_later_is_told_so(unsafe) -> None:
    notebook = strangers.put(strangers.solved(), "softmax", "answer", ENDLESS)
    for name, code in (
        ("masked-softmax", "def masked_softmax(scores, mask): return softmax(scores)"),
        (
            "scaled-dot-product-attention",
            "def scaled_dot_product_attention(q, k, v, mask=None): return softmax(q)",
        ),
    ):
        notebook = strangers.put(notebook, name, "answer", code)
    limits = Limits(call_seconds=2)
    outcome = examine(strangers.job(notebook, limits=limits, unsafe=True), unsafe)
    what = {
        each.exercise: (each.failure or {}).get("what") for each in outcome.verdicts
    }
    assert what["softmax"] == what["masked-softmax"] == "does not return"
    wanted = "calls softmax, which does not return"
    assert what["scaled-dot-product-attention"] == wanted
    assert "calls what was not called again" in " | ".join(outcome.limited)


def test_a_right_answer_after_an_endless_one_keeps_its_points(unsafe) -> None:
    notebook = strangers.put(strangers.solved(), "softmax", "answer", ENDLESS)
    limits = Limits(call_seconds=2)
    outcome = examine(strangers.job(notebook, limits=limits, unsafe=True), unsafe)
    assert not {"worked-context", "project-qkv", "causal-mask"} & lost(outcome)


def test_a_function_that_is_defined_anew_is_called_again(unsafe) -> None:
    notebook = strangers.put(strangers.solved(), "softmax", "answer", ENDLESS)
    again = "def softmax(scores):\n    return torch.softmax(scores, -1)"
    notebook = strangers.put(notebook, "masked-softmax", "before", again)
    uses = "def masked_softmax(scores, mask):\n    return softmax(scores)"
    notebook = strangers.put(notebook, "masked-softmax", "answer", uses)
    limits = Limits(call_seconds=2)
    outcome = examine(strangers.job(notebook, limits=limits, unsafe=True), unsafe)
    failures = {each.exercise: each.failure for each in outcome.verdicts}
    assert failures["softmax"]["what"] == "does not return"
    assert "not return" not in failures["masked-softmax"]["text"]


# --- tries ----------------------------------------------------------------------------

ENDS_ITSELF = (
    "import os; os._exit(0)",
    "import os; os._exit(137)",
    "import os; os.kill(os.getpid(), 9)",
    "import os; os.closerange(3, 1000)",
    "import ctypes; ctypes.string_at(0)",
)


@pytest.mark.parametrize("code", ENDS_ITSELF)
def test_what_a_submission_does_to_itself_is_not_tried_again(code, unsafe) -> None:
    outcome = examined(code, unsafe)
    assert (outcome.status, outcome.again) == (UNGRADED, False)


class _Unlucky(cluster.Graders):
    """Graders that are killed twice before they come to an end."""

    def setup(self, threads) -> None:
        """Start none."""
        self.killed = 0

    def teardown(self) -> None:
        """Close none."""

    def grade(self, job: Job) -> Outcome:
        """Give an outcome."""
        outcome = job.ungraded("" if self.killed >= 2 else f"kill {self.killed}")
        outcome.again = self.killed < 2
        self.killed += 1
        return outcome


def test_tries_are_counted_with_what_ended_them(monkeypatch) -> None:
    monkeypatch.setattr(cluster, "Graders", _Unlucky)
    paper = Paper("c", "{}", "{}", {}, {}, {})
    with cluster.Cluster(1, None, unsafe=True) as one:
        ((_, outcome),) = one.grade([(0, Job("a", "c", b"{}", paper))])
    assert outcome.tried == ["kill 0", "kill 1"]
    assert not outcome.again


# --- memory ---------------------------------------------------------------------------

HEAVY = {  # each as large as it may be, or larger
    "bytes": "torch.ones(8_000_000, dtype=torch.uint8)",
    "booleans": "torch.ones(8_000_000, dtype=torch.bool)",
    "numbers": "torch.ones(2_000_000)",
    "too many numbers": "torch.ones(40_000_000)",
    "a text": "'ä' * 3_000_000",
    "a text in a list": "['x' * 400 for _ in range(19_000)]",
    "texts that are keys": "{f'{n:0400}': n for n in range(9_900)}",
    "colliding keys": "{n * (2**61 - 1): n for n in range(1000)}",
    "colliding numbers": "[n * (2**61 - 1) for n in range(19_000)]",
    "integers of many digits": "[10**3999] * 4000",
    "tensors": "[torch.zeros(90) for _ in range(19_000)]",
    "empty lists": "[[] for _ in range(19_000)]",
    "too many items": "list(range(1_000_000))",
    "lists in lists": "[[[[[[[n]]]]]] for n in range(3_000)]",
    "an error": "(_ for _ in ()).throw(ValueError('x' * 8_000_000))",
}
HEAVY_CELL = """
import torch
for number in range(20_000):
    print("x" * 1000)
"""
HEAVY_MODULE = """
import torch
class Attention(torch.nn.Module):
    def __init__(self, *sizes, **more):
        super().__init__()
        for number in range({count}):
            weight = torch.nn.Parameter(torch.zeros({size}))
            self.register_parameter(f"p{{number}}", weight)
    def forward(self, x_q, x_kv=None, mask=None):
        return x_q * sum(each.sum() for each in self.parameters())
"""


def peak(process: int) -> int:
    """The most memory that a process has had."""
    status = Path(f"/proc/{process}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def heavy_jobs():
    """Give submissions whose answers are as large as possible."""
    for value in HEAVY.values():
        code = f"import torch\ndef softmax(scores):\n    return {value}"
        notebook = strangers.put(strangers.solved(), "softmax", "answer", code)
        code = f"import torch\ndef worked_context():\n    return {{'context': {value}}}"
        yield strangers.put(notebook, "worked-context", "answer", code)
    yield strangers.put(strangers.solved(), "softmax", "after", HEAVY_CELL)
    for count, size in ((2000, 1000), (1, 2_000_000), (10_000, 1)):
        code = HEAVY_MODULE.format(count=count, size=size)
        yield strangers.put(strangers.solved(), "attention-module", "answer", code)


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem() or "works")
def test_no_answer_makes_the_trusted_process_large() -> None:
    with Grader(()) as grader:
        assert grader.grade(strangers.job(strangers.solved())).status == GRADED
        process, before = grader.process, psutil.Process(grader.process).memory_info()
        for notebook in heavy_jobs():
            outcome = grader.grade(strangers.job(notebook, limits=Limits()))
            assert outcome.seconds < 60
            assert not outcome.again
            assert len(json.dumps(outcome.to_dict())) < 5_000_000
        assert grader.process == process
        assert peak(process) - before.rss < MOST_MEMORY
