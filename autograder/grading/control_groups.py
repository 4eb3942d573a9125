"""The kernel's own limits of a submission, where the system lends control groups.

A service manager can lend a command a part of the tree of control groups (version 2):

    systemd-run --user --scope -p Delegate=yes python -m autograder grade …

Then each submission gets a group of its own. The kernel counts its memory, with files
and buffers, and its threads; nothing is looked at in intervals. The sandbox's other
limits hold besides, and elsewhere they hold alone.

    the group that is lent      no process may be in it while it limits others
    ├── autograder              the grader and all that it starts
    └── submission-PROCESS      one of each submission
"""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

LENT = "user.delegate"  # the attribute by which systemd marks what it lends
CONTROLLERS = frozenset({"memory", "pids"})
GRADER = "autograder"
TRIES = 5  # processes may be started while others are moved
END_SECONDS = 2
HELD = "Control groups limit the memory and the threads of each submission."
NOT_HELD = (
    "No control groups are lent here: the sandbox's own limits hold, without them."
)


def words() -> str:
    """Say whether control groups limit submissions, for whoever grades."""
    return HELD if lent() else NOT_HELD


def lent() -> Path | None:
    """Return the group that is lent to this process, ready for use; None without one.

    The first process that asks makes it ready: it moves all processes of that group,
    itself among them, to a group below.
    """
    own = own_group()
    if own is None:
        return None
    if own.name == GRADER and _is_lent(own.parent):
        own = own.parent
    elif not _is_lent(own):
        return None
    with contextlib.suppress(OSError):
        return own if _make_ready(own) else None
    return None


def own_group(process: str = "self") -> Path | None:
    """Return the folder of a process's group; None where version 2 is not mounted."""
    try:
        groups = Path("/proc", process, "cgroup").read_text().splitlines()
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return None
    names = [line.removeprefix("0::") for line in groups if line.startswith("0::")]
    for root, place in _places(mounts):
        for name in names:
            path = Path(name)
            if ".." not in path.parts and path.is_relative_to(root):
                return place / path.relative_to(root)
    return None


def _places(mounts: list[str]) -> Iterator[tuple[Path, Path]]:
    """Give the root and the place of each mount of version 2."""
    for line in mounts:
        before, _, after = line.partition(" - ")
        if after.startswith("cgroup2 "):
            root, place = before.split()[3:5]
            yield Path(root), Path(place)


def _is_lent(group: Path) -> bool:
    try:
        if os.getxattr(group, LENT) != b"1":
            return False
        there = set((group / "cgroup.controllers").read_text().split())
    except OSError:
        return False
    return there >= CONTROLLERS and os.access(group / "cgroup.procs", os.W_OK)


def _make_ready(group: Path) -> bool:
    """Let a group limit the groups below it; say whether it does."""
    for _ in range(TRIES):
        if _limits_others(group):
            return True
        _move_below(group)
        with contextlib.suppress(OSError):  # another process has been started there
            wanted = " ".join(f"+{each}" for each in sorted(CONTROLLERS))
            (group / "cgroup.subtree_control").write_text(wanted)
    return _limits_others(group)


def _limits_others(group: Path) -> bool:
    there = (group / "cgroup.subtree_control").read_text().split()
    return set(there) >= CONTROLLERS


def _move_below(group: Path) -> None:
    """Move all processes of a group to one below it."""
    (group / GRADER).mkdir(exist_ok=True)
    for process in (group / "cgroup.procs").read_text().split():
        with contextlib.suppress(ProcessLookupError):
            (group / GRADER / "cgroup.procs").write_text(process)


class Group:
    """A group for one process, with limits; the process is in it at once.

    Args:
        above: the group that is lent.
        process: its number.
        memory: the bytes it may take from now on, with its files.
        threads: how many it may have.

    Raises:
        OSError: it cannot be made.
    """

    def __init__(self, above: Path, process: int, memory: int, threads: int) -> None:
        self._folder = above / f"submission-{process}"
        with contextlib.suppress(OSError):
            self._folder.rmdir()  # of an earlier process with this number
        self._folder.mkdir()
        try:
            (self._folder / "memory.max").write_text(str(memory))
            swap = self._folder / "memory.swap.max"
            if swap.exists():  # not every kernel counts it
                swap.write_text("0")
            (self._folder / "pids.max").write_text(str(threads))
            (self._folder / "cgroup.procs").write_text(str(process))
        except OSError:
            self.end()
            raise

    def end(self) -> bool:
        """End all that is in it and remove it; say whether it ran out of memory."""
        starved = False
        with contextlib.suppress(OSError):
            events = (self._folder / "memory.events").read_text().splitlines()
            starved = any(
                line.startswith("oom_kill ") and line != "oom_kill 0" for line in events
            )
        with contextlib.suppress(OSError):  # older kernels have no such file
            (self._folder / "cgroup.kill").write_text("1")
        self._remove()
        return starved

    def _remove(self) -> None:
        """Remove it as soon as its last process is gone."""
        deadline = time.monotonic() + END_SECONDS
        while self._folder.exists() and time.monotonic() < deadline:
            try:
                self._folder.rmdir()
            except OSError:
                time.sleep(0.01)
