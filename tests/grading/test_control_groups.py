"""Control groups: used where the system lends them, and done without elsewhere.

Where it does, as below `systemd-run --user --scope -p Delegate=yes`, the tests use the
kernel's own files; elsewhere they see to it that the other limits hold, and it is said.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from autograder.grading import control_groups
from autograder.grading import sandbox as sandbox_module
from autograder.grading.limits import MIB, Limits
from autograder.grading.sandbox import SPARE_THREADS, UNTOUCHED, Sandbox, problem
from tests.grading.test_sandbox import run

LIMITS = Limits(memory_bytes=300 * MIB, threads=20)
TAKE_MEMORY = """
import sys, threading
sys.stdin.readline()
try:
    for _ in range(9):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
except RuntimeError:
    print("no thread", flush=True)
print(len(bytearray(200 << 20)), flush=True)
"""
MOUNTS = [
    "25 30 0:23 / /sys/fs/cgroup/pids rw shared:9 - cgroup cgroup rw,pids",
    "26 30 0:24 /a/b /sys/fs/cgroup/unified rw,nosuid shared:4 - cgroup2 none rw",
]


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    if problem():
        pytest.fail(problem())
    with Sandbox(LIMITS) as opened:
        yield opened


def test_a_submission_has_a_group_of_its_own_where_the_system_lends_one(sandbox):
    cage = sandbox.open()
    group, lent = control_groups.own_group(str(cage.process)), control_groups.lent()
    if lent is None:
        assert group == control_groups.own_group()
        assert control_groups.words() == control_groups.NOT_HELD
    else:
        assert control_groups.words() == control_groups.HELD
        assert group.parent == lent
        memory = LIMITS.memory_bytes + UNTOUCHED + LIMITS.temporary_bytes
        assert int((group / "memory.max").read_text()) == memory
        threads = LIMITS.threads + SPARE_THREADS
        assert int((group / "pids.max").read_text()) == threads
        assert control_groups.own_group().name == control_groups.GRADER
    assert run(cage, "print('runs')") == "runs"
    assert cage.end() == ""
    assert group is None or lent is None or not group.exists()


def test_the_kernel_ends_what_takes_more_than_its_group_may(tmp_path):
    lent = control_groups.lent()
    line = [sys.executable, "-c", TAKE_MEMORY]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(line, text=True, **pipes) as process:
        if lent is None:
            assert sandbox_module._group(tmp_path / "none", process.pid, LIMITS) is None
        else:
            group = control_groups.Group(lent, process.pid, 64 * MIB, threads=5)
        said, _ = process.communicate("go\n", timeout=60)
    if lent is None:
        assert (process.returncode, said) == (0, f"{200 << 20}\n")
    else:
        assert (process.returncode, said) == (-signal.SIGKILL, "no thread\n")
        assert group.end()
        assert not any(lent.glob("submission-*"))


def test_where_a_group_is_follows_from_the_mounts():
    ((root, place),) = control_groups._places(MOUNTS)
    assert (str(root), str(place)) == ("/a/b", "/sys/fs/cgroup/unified")


@pytest.mark.parametrize(
    ("mark", "controllers", "is_lent"),
    [
        (b"1", "cpu memory pids", True),
        (b"0", "cpu memory pids", False),
        (b"1", "hugetlb", False),
        (None, "cpu memory pids", False),
    ],
)
def test_only_what_is_marked_and_can_limit_is_used(
    mark, controllers, is_lent, tmp_path, monkeypatch
):
    def attribute(path: os.PathLike, name: str) -> bytes:
        assert (path, name) == (tmp_path, "user.delegate")
        if mark is None:
            raise OSError("no such attribute")
        return mark

    (tmp_path / "cgroup.controllers").write_text(controllers + "\n")
    (tmp_path / "cgroup.procs").touch()
    monkeypatch.setattr(os, "getxattr", attribute)
    assert control_groups._is_lent(tmp_path) is is_lent


def test_a_group_that_cannot_be_made_ready_is_not_used(tmp_path, monkeypatch):
    (tmp_path / "cgroup.procs").write_text("")
    (tmp_path / "cgroup.subtree_control").write_text("")
    monkeypatch.setattr(control_groups, "own_group", lambda: tmp_path)
    monkeypatch.setattr(control_groups, "_is_lent", lambda group: group == tmp_path)
    assert control_groups.lent() is None  # these files enable nothing
    (tmp_path / "cgroup.subtree_control").write_text("memory pids\n")
    assert control_groups.lent() == tmp_path
