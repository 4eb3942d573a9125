"""A folder for results on a disk that is full, or that cannot be written to."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import small_class

FULL_GRADEBOOK = "the gradebook cannot be used (database or disk is full)"

# A disk of a few hundred kilobytes, then the same with room, then read-only: seen by
# these commands alone.
SCRIPT = """
mount -t tmpfs -o size={size} none {disk} || exit 9
{command} > {said}/full 2>&1; echo $? > {said}/full.code
mount -o remount,size=100m {disk}
{command} > {said}/room 2>&1; echo $? > {said}/room.code
cp -r {disk}/out {said}/out
mount -o remount,ro {disk}
{command} > {said}/read_only 2>&1; echo $? > {said}/read_only.code
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> Path:
    """What the commands said: the folder `full`, `room` and `read_only` lie in."""
    disk, said = tmp_path_factory.mktemp("disk"), tmp_path_factory.mktemp("said")
    submissions = small_class.build(tmp_path_factory.mktemp("submissions"))
    line = small_class.command(submissions, disk / "out")
    script = SCRIPT.format(
        size="700k", disk=disk, said=said, command=subprocess.list2cmdline(line)
    )
    own = ["unshare", "--mount"]
    own += [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    done = subprocess.run([*own, "sh", "-c", script], check=False)
    if done.returncode == 9 or shutil.which("unshare") is None:
        pytest.skip("this system lets nobody mount a disk of their own")
    return said


def read(said: Path, name: str) -> tuple[int, str]:
    """A command's exit status and last line."""
    lines = (said / name).read_text("utf-8").splitlines()
    return int((said / f"{name}.code").read_text()), lines[-1]


def test_a_full_disk_is_named_and_costs_nothing(said) -> None:
    code, line = read(said, "full")
    assert code == 2
    file, reason = line.removeprefix("error: ").split(": ", 1)
    assert "/out" in file  # what is written first when the last block is taken
    assert reason in ("No space left on device", FULL_GRADEBOOK)
    assert read(said, "room")[0] == 0
    assert "graded before and not changed since: kept" in (said / "room").read_text()
    assert small_class.is_as_written(said / "out")


def test_a_disk_that_is_read_only_is_named(said) -> None:
    code, line = read(said, "read_only")
    assert code == 2
    assert line.startswith("error: /")
    assert line.endswith("Read-only file system")
    assert "Traceback" not in (said / "read_only").read_text()
