"""A gradebook in PostgreSQL, in a real server that goes away and comes back."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.grading import sandbox
from autograder.grading.build import build
from autograder.grading.clean import sql
from autograder.grading.course import Course
from autograder.grading.gradebook import Book, GradebookError, Lateness
from autograder.grading.paper import Paper
from tests import small_class
from tests.grading.test_clean import NASTY
from tests.grading.test_gradebook import CHAPTER, STUDENT, executed, rows

DEBIAN = sorted(
    Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parts[4])
)
PROGRAMS = str(DEBIAN[-1]) if DEBIAN else None
INITDB = shutil.which("initdb", path=PROGRAMS)
USER = "grader"

pytestmark = pytest.mark.skipif(
    INITDB is None, reason="to run it: sudo apt-get install postgresql"
)


class Server:
    """A server of its own, on a free port of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data"
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            self.port = one.getsockname()[1]
        if os.geteuid() == 0:  # the server refuses to be root
            account = pwd.getpwnam("postgres")
            os.chown(folder, account.pw_uid, account.pw_gid)
        self._run("initdb", "--auth=trust", f"--username={USER}", "--no-sync")
        self.start()

    @property
    def address(self) -> str:
        """The URL of a gradebook."""
        return f"postgresql+psycopg://{USER}@127.0.0.1:{self.port}/postgres"

    def _run(self, program: str, *arguments: str) -> None:
        line = [str(Path(INITDB).with_name(program)), "-D", str(self.data), *arguments]
        if os.geteuid() == 0:
            line = ["runuser", "-u", "postgres", "--", *line]
        log = (self.folder / "log.txt").open("ab")
        with log:
            subprocess.run(line, cwd=self.folder, stdout=log, stderr=log, check=True)

    def start(self) -> None:
        """Start it and wait until it answers."""
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1"
        self._run("pg_ctl", "--wait", "-o", options, "start")

    def stop(self) -> None:
        """Stop it at once; connections break."""
        self._run("pg_ctl", "--wait", "-m", "immediate", "stop")


@pytest.fixture(scope="module")
def server():
    # pytest's own folders are closed to the user that the server runs as
    with tempfile.TemporaryDirectory(prefix="postgresql-") as folder:
        started = Server(Path(folder))
        yield started
        started.stop()


@pytest.fixture
def address(server) -> str:
    """An empty database; stopped servers are started again."""
    import psycopg

    with psycopg.connect(
        server.address.replace("+psycopg", ""), autocommit=True
    ) as base:
        base.execute("DROP SCHEMA public CASCADE")
        base.execute("CREATE SCHEMA public")
    return server.address


def test_the_rows_are_as_in_sqlite(address, tmp_path) -> None:
    paper = Paper.of(CHAPTER)
    found = []
    for name, db in (("a", address), ("b", "")):
        course = Course(tmp_path / name, db)
        build(course, [paper])
        with Book(course) as book:
            book.enter_students({STUDENT: {}})
            for _ in range(2):
                book.write(executed(paper), Lateness())
            (row,) = book.rows(CHAPTER).values()
        found.append((row, {k: sorted(map(str, v)) for k, v in rows(course).items()}))
    assert found[0][0] == found[1][0]
    assert _numbers(found[0][1]) == _numbers(found[1][1])


def test_any_text_is_taken(address, tmp_path) -> None:
    """PostgreSQL refuses NUL, and its driver what is no UTF-8."""
    names = {"first_name": "".join(NASTY), "last_name": "\0", "email": "\ud800"}
    with Book(Course(tmp_path, address)) as book:
        book.enter_students({STUDENT: names})
        found = book.students()[STUDENT]
    assert found == {name: sql(text, 128) for name, text in names.items()}


def _numbers(tables: dict) -> dict:
    """SQLite has 0 and 1 for what PostgreSQL has as truth values."""
    words = {"True": "1", "False": "0"}
    return {
        name: sorted(_replaced(line, words) for line in lines)
        for name, lines in tables.items()
    }


def _replaced(line: str, words: dict[str, str]) -> str:
    for old, new in words.items():
        line = line.replace(old, new)
    return line


def test_a_connection_that_broke_is_made_anew(server, address, tmp_path) -> None:
    paper, course = Paper.of(CHAPTER), Course(tmp_path, address)
    build(course, [paper])
    with Book(course) as book:
        book.enter_students({STUDENT: {}})
        server.stop()
        server.start()
        book.write(executed(paper), Lateness())
        assert book.handed_in() == {(STUDENT, CHAPTER)}


def test_a_server_that_is_gone_is_told_in_one_line(
    server, address, tmp_path, monkeypatch
) -> None:
    monkeypatch.setattr("autograder.grading.gradebook.PATIENCE", 0)
    paper, course = Paper.of(CHAPTER), Course(tmp_path, address)
    build(course, [paper])
    with Book(course) as book:
        book.enter_students({STUDENT: {}})
        server.stop()
        try:
            with pytest.raises(GradebookError, match="cannot be used") as error:
                book.write(executed(paper), Lateness())
        finally:
            server.start()
        assert "\n" not in str(error.value)
        book.write(executed(paper), Lateness())
    with Gradebook(address) as gradebook:
        assert gradebook.find_submission(CHAPTER, STUDENT).score > 0


@pytest.mark.sandbox
@pytest.mark.slow
@pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem())
def test_a_class_whose_database_goes_away(server, address, tmp_path) -> None:
    """The grading stops with one line; the same command goes on where it was."""
    submissions = small_class.build(tmp_path / "submissions")
    out = tmp_path / "out"
    line = small_class.command(submissions, out, "--db", address, "--workers", "1")
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as grading:
        small_class.wait_for_line(out / "course" / "journal.jsonl", grading)
        server.stop()
        _, said = grading.communicate()
    server.start()
    assert grading.returncode == 2, said
    errors = [text for text in said.splitlines() if text.startswith("error: ")]
    assert len(errors) == 1
    assert "the gradebook cannot be used" in errors[0]
    done = small_class.grade(submissions, out, "--db", address)
    assert done.returncode == 0, done.stderr
    assert small_class.is_as_written(out)
    scores = small_class.in_gradebook(address)
    assert scores == {each.student: each.score for each in small_class.CLASS}
