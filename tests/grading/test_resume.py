"""A grading that is killed at any moment goes on where it was, and loses nothing.

The long version, with as many kills as KILLS says:
``KILLS=20 pytest tests/grading/test_resume.py``
"""

import contextlib
import errno
import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest

from autograder.grading import sandbox
from autograder.grading.journal import Journal
from tests import small_class

KILLS = int(os.environ.get("KILLS", "3"))

# --- the journal ----------------------------------------------------------------------


def entry(student: str, **more: object) -> dict:
    return {"student": student, "chapter": "c", **more}


def test_the_last_entry_counts_and_stays(tmp_path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.add(entry("a", score=1))
        journal.add(entry("b", score="ü\udcff"))
        journal.add(entry("a", score=2))
        assert journal.find("a", "c")["score"] == 2
    with Journal(tmp_path / "j") as journal:
        assert [each["score"] for each in journal.entries()] == [2, "ü\udcff"]
        assert journal.find("z", "c") is None


def test_a_group_of_entries_waits_for_the_disk_once(tmp_path, monkeypatch) -> None:
    waits = []
    monkeypatch.setattr(os, "fsync", waits.append)
    with Journal(tmp_path / "j") as journal:
        journal.add(entry("a", score=1), entry("ü", score=2), entry("c", score=3))
        assert len(waits) == 1
        assert [each["score"] for each in journal.entries()] == [1, 3, 2]
    with Journal(tmp_path / "j") as journal:
        assert journal.find("ü", "c")["score"] == 2


def test_of_a_group_that_a_kill_has_cut_the_whole_lines_count(tmp_path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.add(entry("a", score=1), entry("b", score=2))
    os.truncate(tmp_path / "j", (tmp_path / "j").stat().st_size - 3)
    with Journal(tmp_path / "j") as journal:
        assert journal.find("a", "c")["score"] == 1
        assert journal.find("b", "c") is None


@pytest.mark.parametrize("cut", range(1, 40, 6))
def test_a_line_that_a_kill_has_cut_is_dropped(cut, tmp_path) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.add(entry("a"))
        whole = path.stat().st_size
        journal.add(entry("b", score=1))
    os.truncate(path, max(whole, path.stat().st_size - cut))
    with Journal(path) as journal:
        assert journal.find("a", "c") == entry("a")
        assert journal.find("b", "c") is None
        journal.add(entry("b", score=2))
        assert journal.find("b", "c")["score"] == 2


def test_a_damaged_line_costs_itself(tmp_path) -> None:
    path = tmp_path / "j"
    lines = [json.dumps(entry("a")), "\x00\x00", "[]", json.dumps(entry("b"))]
    path.write_text("".join(f"{line}\n" for line in lines))
    with Journal(path) as journal:
        assert [each["student"] for each in journal.entries()] == ["a", "b"]


def test_a_dry_run_writes_nothing(tmp_path) -> None:
    with Journal(tmp_path / "folder" / "j", read_only=True) as journal:
        assert journal.find("a", "c") is None
    assert not (tmp_path / "folder").exists()


def test_a_full_disk_is_told(tmp_path, monkeypatch) -> None:
    def full(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with Journal(tmp_path / "j") as journal:
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            journal.add(entry("a"))
        assert journal.find("a", "c") is None


# --- the whole grading ----------------------------------------------------------------

needs_sandbox = pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem())


@pytest.fixture(scope="module")
def submissions(tmp_path_factory) -> Path:
    return small_class.build(tmp_path_factory.mktemp("class") / "submissions")


@pytest.fixture(scope="module")
def undisturbed(submissions, tmp_path_factory) -> tuple[Path, float]:
    """The class graded in one go, and the seconds that it took."""
    out, began = tmp_path_factory.mktemp("undisturbed"), time.monotonic()
    done = small_class.grade(submissions, out)
    assert done.returncode == 0, done.stderr
    return out, time.monotonic() - began


def family(process: subprocess.Popen) -> list[psutil.Process]:
    """Find the coordinator, its graders, their sandboxes and what runs in them."""
    with contextlib.suppress(psutil.NoSuchProcess):
        top = psutil.Process(process.pid)
        return [top, *top.children(recursive=True)]
    return []


@pytest.mark.sandbox
@pytest.mark.slow
@needs_sandbox
@pytest.mark.parametrize("seed", range(KILLS))
def test_kill_any_process_at_any_moment(seed, submissions, undisturbed, tmp_path):
    """Kill -9, then the same command until it ends: the same grades, once each."""
    moment = random.Random(seed)
    wanted, seconds = small_class.results(undisturbed[0]), undisturbed[1]
    line = small_class.command(submissions, tmp_path)
    first = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(moment.uniform(0.2, 1.0) * seconds)
    there = family(first)
    # one in three times the coordinator itself, else anything below it
    victims = there[:1] if seed % 3 == 0 or len(there) < 2 else there[1:]
    if victims:
        with contextlib.suppress(psutil.NoSuchProcess):
            moment.choice(victims).send_signal(signal.SIGKILL)
    code = first.wait()
    if victims == there[:1] and victims:
        psutil.wait_procs(there, timeout=60)
        assert not any(each.is_running() for each in there)  # nothing is left behind
    if code:
        done = small_class.grade(submissions, tmp_path)
        assert done.returncode == 0, done.stderr
    assert small_class.results(tmp_path) == wanted
    ours = f"sqlite:///{tmp_path / 'course' / 'gradebook.db'}"
    theirs = f"sqlite:///{undisturbed[0] / 'course' / 'gradebook.db'}"
    assert small_class.in_gradebook(ours) == small_class.in_gradebook(theirs)


@pytest.mark.sandbox
@needs_sandbox
def test_grading_again_grades_nothing_again(submissions, undisturbed) -> None:
    out, _ = undisturbed
    assert small_class.is_as_written(out)
    journal, before = out / "course" / "journal.jsonl", small_class.results(out)
    lines = journal.read_bytes()
    done = small_class.grade(submissions, out)
    assert done.returncode == 0, done.stderr
    assert small_class.results(out) == before
    assert journal.read_bytes() == lines
