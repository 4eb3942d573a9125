"""A student's process without walls: the real classes on both sides of a socket.

The processes are forked from one that has everything imported, as the grader's are.
"""

import contextlib
import multiprocessing
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

from autograder.boundary import student
from autograder.grading.kernel import Kernel
from autograder.grading.limits import Limits
from autograder.grading.remote import Names, imports_of
from tests import chapters

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.remote"])
SIGNALS = {-each: f"killed ({each.name})" for each in signal.Signals}


def _be_the_student(sock: socket.socket, folder: str) -> None:
    os.chdir(folder)
    student.serve(sock)
    os._exit(0)


class Cage:
    """A plain process of this user's."""

    def __init__(self, folder: Path) -> None:
        self.socket, theirs = socket.socketpair()
        arguments = (theirs, str(folder))
        self._process = CONTEXT.Process(target=_be_the_student, args=arguments)
        self._process.start()
        self.process = self._process.pid
        theirs.close()

    def interrupt(self) -> None:
        os.kill(self._process.pid, signal.SIGINT)

    def end(self, patience: float = 0.0) -> str:
        self._process.join(patience)
        reason = SIGNALS.get(self._process.exitcode, "")
        self._process.kill()
        self._process.join()
        self.socket.close()
        return reason


@contextlib.contextmanager
def kernel(folder: Path, **limits: float) -> Iterator[Kernel]:
    """A kernel whose working folder this is."""
    cage = Cage(folder)
    try:
        yield Kernel(cage, Limits(**limits))
    finally:
        cage.end()


def run_notebook(chapter: str, kernel: Kernel) -> Names:
    """Run a solved notebook's cells; return the names that its checks see."""
    cells = chapters.code_cells(chapter)
    for text in cells:
        result = kernel.run_cell(text)
        assert not result.error and not result.stopped, result
    return Names(kernel, imports_of(cells))
