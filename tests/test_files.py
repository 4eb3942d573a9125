"""The one way in which files are written: whole, or not at all."""

import os
import re
import stat
from pathlib import Path

import pytest

from autograder.files import replacing, said, write_beside

ROOT = Path(__file__).parents[1]


def test_a_file_is_there_when_the_block_has_ended_and_not_before(tmp_path) -> None:
    path = tmp_path / "made" / "file"
    with replacing(path) as beside:
        beside.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert list(path.parent.iterdir()) == [path]


def test_what_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path) -> None:
    path = tmp_path / "file"
    write_beside(path, "old")
    with pytest.raises(KeyboardInterrupt), replacing(path) as beside:
        beside.write_text("half of")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_file_to_be_written_is_named_not_the_one_read(tmp_path) -> None:
    beside, taken = tmp_path / "beside", tmp_path / "taken"
    beside.write_text("new")
    taken.mkdir()
    with pytest.raises(OSError, match="directory") as caught:
        beside.replace(taken)
    assert said(caught.value, tmp_path) == f"{taken}: Is a directory"
    assert said(OSError("odd"), tmp_path) == f"{tmp_path}: odd"


def test_a_write_that_was_killed_is_in_nobodys_way(tmp_path) -> None:
    path = tmp_path / "file"
    with replacing(path) as beside:
        beside.write_text("whole")
    beside.write_text("left by one that was killed")
    write_beside(path, b"again", lasting=True)
    assert path.read_bytes() == b"again"
    assert list(tmp_path.iterdir()) == [path]


def test_a_private_file_is_private_while_it_is_written(tmp_path) -> None:
    path, mask = tmp_path / "secret", os.umask(0)
    try:
        with replacing(path, mode=0o600) as beside:
            assert stat.S_IMODE(beside.stat().st_mode) == 0o600
            beside.write_text("password")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_two_processes_may_write_a_shared_file(tmp_path) -> None:
    path = tmp_path / "file"
    with replacing(path, shared=True) as ours:
        assert str(os.getpid()) in ours.name
        write_beside(path, "theirs")  # under another name
        ours.write_text("ours")
    assert path.read_text() == "ours"


def test_nothing_else_puts_a_file_in_the_place_of_another() -> None:
    files = (
        path
        for folder in ("autograder", "pages", "tools", "workbench")
        for path in (ROOT / folder).rglob("*.py")
        if "node_modules" not in path.parts
    )
    found = {
        path.relative_to(ROOT).as_posix()
        for path in files
        if re.search(r"\bos\.replace\(|beside\.replace\(", path.read_text("utf-8"))
    }
    assert found == {"autograder/files.py"}
