"""One process imports for all graders and sandboxes of a command, and forks them.

What a grader does is the same however it was started (test_examine.py,
test_sandbox.py); here is what the server adds: copies that know nothing of each other,
how each has ended, and that nothing is left.
"""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from autograder.generator import ROOT
from autograder.grading import fork_server, sandbox
from autograder.grading.fork_server import ForkServer
from autograder.grading.grader import Grader
from autograder.grading.job import GRADED
from autograder.grading.limits import Limits
from autograder.grading.sandbox import Sandbox, Zygote
from tests import strangers
from tests.grading.test_sandbox import run, wait_until

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem() or "works"),
]
IMPORTS = ("autograder.chapters.attention",)


@pytest.fixture(scope="module")
def server():
    with_all = ForkServer()
    with_all.prepare(Limits(), IMPORTS)
    yield with_all
    with_all.close()


def below(process: int) -> list[psutil.Process]:
    return psutil.Process(process).children(recursive=True)


def has_ended(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def solved():
    return strangers.job(strangers.solved(), limits=Limits())


# --- graders --------------------------------------------------------------------------


def test_its_graders_grade_as_those_that_were_started_as_programs(server) -> None:
    with Grader(IMPORTS, server) as one, Grader(IMPORTS, server) as two:
        forked = [one.grade(solved()), two.grade(solved())]
        numbers = {one.process, two.process}
        assert numbers <= {each.pid for each in below(server.process)}
    with Grader(IMPORTS) as program:
        forked.append(program.grade(solved()))
    assert {each.status for each in forked} == {GRADED}
    scores = [{v.grade_id: v.score for v in each.verdicts} for each in forked]
    assert scores[0] == scores[1] == scores[2]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_grader_that_is_killed_tries_again_and_is_forked_anew(number, server) -> None:
    with Grader(IMPORTS, server) as grader:
        endless = strangers.put(
            strangers.solved(), "softmax", "after", "while True: pass"
        )
        limits = Limits(cell_seconds=100)
        assert grader.grade(solved()).status == GRADED
        victim = grader.process
        left = below(victim)
        kill = threading.Timer(2, os.kill, (victim, number))
        kill.start()
        outcome = grader.grade(strangers.job(endless, limits=limits))
        kill.join()
        assert outcome.again
        assert signal.Signals(number).name in outcome.reason
        assert wait_until(lambda: all(map(has_ended, left)))
        assert grader.grade(solved()).status == GRADED
        assert grader.process != victim


def test_without_its_server_a_grader_is_started_as_a_program() -> None:
    gone = ForkServer()
    gone.prepare(Limits(), IMPORTS)
    with Grader(IMPORTS, gone) as grader:
        assert grader.grade(solved()).status == GRADED
        forked = psutil.Process(grader.process)
        psutil.Process(gone.process).kill()
        assert wait_until(lambda: has_ended(forked))  # it does not outlive the server
        outcome = grader.grade(solved())
        if outcome.again:  # the end was not noticed before the job was sent
            outcome = grader.grade(solved())
        assert outcome.status == GRADED
    gone.close()


def test_nothing_is_left_of_it() -> None:
    closed = ForkServer()
    closed.prepare(Limits(), IMPORTS)
    grader = Grader(IMPORTS, closed)
    assert grader.grade(solved()).status == GRADED
    processes = [psutil.Process(closed.process), *below(closed.process)]
    assert len(processes) >= 4  # itself, a grader, the sandbox and its copy
    folders = {each.cwd() for each in processes[:1]} | {
        psutil.Process(grader.process).cwd()
    }
    grader.close()
    closed.close()
    assert wait_until(lambda: all(map(has_ended, processes)))
    assert not any(Path(folder).exists() for folder in folders)


OWNER = """
import time
from autograder.grading.fork_server import ForkServer
from autograder.grading.grader import Grader
from autograder.grading.limits import Limits
server = ForkServer()
server.prepare(Limits(), ("autograder.chapters.attention",))
grader = Grader((), server)
grader.start(Limits())
print(server.process, grader.process, flush=True)
time.sleep(99)
"""


def test_all_end_with_the_process_that_uses_it() -> None:
    line = [sys.executable, "-c", OWNER]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, cwd=ROOT) as owner:
        numbers = [int(each) for each in owner.stdout.readline().split()]
        processes = [*map(psutil.Process, numbers), *below(numbers[0])]
        owner.kill()
    assert wait_until(lambda: all(map(has_ended, processes)))


@pytest.mark.parametrize(
    "arguments", [["--dry-run"], ["--unsafe"], ["--scheduler=tls://a:1"], ["-h"]]
)
def test_a_command_that_forks_no_grader_starts_none(arguments) -> None:
    fork_server.begin(["--submissions", "class", *arguments])
    assert fork_server.begun() is None


def test_it_imports_nothing_that_only_the_coordinator_needs() -> None:
    code = (
        "import sys\n"
        "from autograder.grading import examine, fork_server, grader\n"
        f"grader.prepare({IMPORTS})\n"
        "print({name.partition('.')[0] for name in sys.modules})"
    )
    line = [sys.executable, "-c", code]
    said = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=True)
    slow = {"nbgrader", "sqlalchemy", "nbconvert", "matplotlib", "distributed"}
    assert not slow & eval(said.stdout)


# --- sandboxes ------------------------------------------------------------------------


@pytest.fixture
def zygote():
    started = Zygote(Limits(), unsafe=False, nested=True)
    started.begin(())
    yield started
    started.close()


@pytest.fixture
def pair(zygote):
    """A cage each of two sandboxes with a copy of one zygote."""
    boxes = [Sandbox(Limits(), zygote=zygote.copy()) for _ in range(2)]
    yield boxes, [box.open() for box in boxes]
    for box in boxes:
        box.close()


SEEN = {
    "processes": "import os; others = [n for n in os.listdir('/proc') if n.isdigit()]; "
    "print(os.getpid() == 1 and set(others) <= {'1'})",
    "files": "import os; print('mine' not in os.listdir('.') + os.listdir('/tmp'))",
}


@pytest.mark.parametrize("what", SEEN)
def test_two_cages_at_a_time_see_nothing_of_each_other(what, pair) -> None:
    _, (one, two) = pair
    leave = "open('mine', 'w').write('x'); open('/tmp/mine', 'w').write('x')"
    assert run(one, leave + "; print('left')") == "left"
    assert run(two, SEEN[what]) == "True"
    kill = "import os\ntry: os.kill(-1, 9)\nexcept OSError as error: print('nobody')"
    run(one, kill)
    assert run(two, "print('alive')") == "alive"
    worlds = [
        os.readlink(f"/proc/{cage.process}/ns/{kind}")
        for cage in (one, two)
        for kind in ("user", "pid", "mnt", "ipc")
    ]
    assert len(set(worlds)) == 8


def test_what_ends_one_sandbox_does_not_end_the_other(pair) -> None:
    (first, second), (one, two) = pair
    one.stop("test")
    assert one.end() == "test"
    first.close()
    assert run(two, "print('alive')") == "alive"
    assert two.end() == ""
    again = second.open()
    assert run(again, "print(2)") == "2"


def test_a_copy_whose_zygote_was_killed_is_replaced(zygote, pair) -> None:
    (box, _), (cage, _) = pair
    for process in below(zygote._process.pid):
        if "zygote" in " ".join(process.cmdline()):
            process.kill()
            break
    assert wait_until(lambda: not cage.alive())
    cage.end()
    assert cage.lost  # from outside: worth another try
    again = box.open()
    assert run(again, "print(3)") == "3"
    assert again.end() == ""
