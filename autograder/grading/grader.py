"""The process in which submissions are examined, one after the other; replaced if dead.

>>> with Grader() as grader:
...     outcome = grader.grade(job)

It is trusted: it holds checks, hidden tests and verdicts. The student's code runs in
the sandbox below it. Whoever asks gets an outcome whatever happens to the process: it
may be killed, hang, or fail to start. When whoever asks is gone, the process ends.
"""

import contextlib
import gc
import importlib
import os
import pkgutil
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import TYPE_CHECKING

import psutil

from autograder.grading.clean import plain
from autograder.grading.environment import trusted_environment
from autograder.grading.fork_server import ForkServer
from autograder.grading.forked import Forked
from autograder.grading.job import Job, Outcome
from autograder.grading.limits import WALL, Limits
from autograder.grading.version import versions

if TYPE_CHECKING:
    from autograder.grading.sandbox import Sandbox

MODULE = "autograder.grading.grader"
START_SECONDS = 300  # for the imports of this process and of the one in the sandbox
END_SECONDS = 10  # for a process that was killed
# A submission's time on the wall is up to the process itself; it is killed only if it
# cannot keep it, as when one step in a library takes minutes.
LATER, SPARE_SECONDS = 1.1, 5
# by which a process is ended from outside; by others it ends itself
FROM_OUTSIDE = tuple(map(int, (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)))
LOG, LONGEST_LOG = "log.txt", 20_000  # characters
TRACEBACK = "Traceback (most recent call last)"


@dataclass(frozen=True)
class _Running:
    """A process that grades, and how this side holds it.

    Args:
        process: itself.
        pipe: for jobs and what comes of them.
        life: it ends when this one is closed.
        folder: its current one, with its log.
    """

    process: subprocess.Popen | Forked
    pipe: Connection
    life: Connection
    folder: str


class Grader:
    """A handle of the process; it is started when there is something to grade.

    One thread at a time may use it. The process is below the one that uses it, not
    below the thread, and not in its group: a Ctrl-C at the terminal does not reach it.

    Args:
        imports: the modules that submissions are going to import; None for all. Those
            that are missing here are imported when they are needed.
        server: what forks the process, prepared for these imports; without it, or if
            it has ended, the process is started as a program.
    """

    def __init__(
        self,
        imports: tuple[str, ...] | None = None,
        server: ForkServer | None = None,
    ) -> None:
        self._imports, self._server = imports, server
        self._running: _Running | None = None

    def __enter__(self) -> "Grader":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @property
    def process(self) -> int | None:
        """The number of the process, while there is one."""
        return self._running.process.pid if self._running else None

    def start(self, limits: Limits, unsafe: bool = False) -> None:
        """Start the process and its sandbox, and do not wait: the first job will.

        If it fails, ``grade`` tries again and says why.
        """
        with contextlib.suppress(OSError):
            self._start().pipe.send((limits, unsafe))

    def grade(self, job: Job, deadline: float | None = None) -> Outcome:
        """Grade a submission.

        Args:
            job: the submission.
            deadline: the seconds after which the process is killed, from when it has
                begun; without one, what the job's own limits come to.

        Returns:
            The outcome; ungraded if the process failed, and worth another try if the
            submission cannot have caused it.
        """
        running = self._running
        if running is None or running.process.poll() is not None:
            try:
                running = self._start()
            except OSError as error:
                self.close()
                return _failed(job, f"the grading process does not start ({error})")
        most = LATER * job.limits.wall_seconds + SPARE_SECONDS
        timer, where = _Timer(running.process, START_SECONDS), ""
        try:
            running.pipe.send(job)
            while True:
                kind, content = running.pipe.recv()
                if kind == "outcome":
                    content.versions = versions()  # known here, and slow to find out
                    return content
                if not where:  # all is ready: what follows is the submission's time
                    timer.cancel()
                    timer = _Timer(running.process, deadline or most)
                where = content
        except (OSError, EOFError):
            return self._ended(job, running, timer, where)
        finally:
            timer.cancel()

    def _ended(
        self, job: Job, running: "_Running", timer: "_Timer", where: str
    ) -> Outcome:
        """Say why the process has ended, and whether that came from outside."""
        late = timer.rang.is_set()
        why = f"stopped after {timer.seconds:g} seconds" if late else ""
        reason, code, log = self._end(running, why)
        if not where:
            return _failed(job, reason, log)
        outcome = _failed(job, f"{reason}, while running {where}", log)
        outcome.again = not late and code is not None and -code in FROM_OUTSIDE
        if late:
            outcome.limited.append(f"{where}: {job.limits.words(WALL)}")
        return outcome

    def close(self) -> None:
        """End the process and all below it."""
        if self._running:
            self._end(self._running, "closed")

    # --- the process ------------------------------------------------------------------

    def _start(self) -> "_Running":
        """Start the process; if it does not start, nothing of it is left.

        Raises:
            OSError: it does not start, or has ended at once.
        """
        self.close()
        with contextlib.ExitStack() as left:
            folder = tempfile.mkdtemp(prefix="autograder-")
            left.callback(shutil.rmtree, folder, ignore_errors=True)
            pipe, theirs = Pipe()
            left.callback(pipe.close)
            life, ours = Pipe(duplex=False)
            left.callback(ours.close)
            with theirs, life, Path(folder, LOG).open("wb") as log:
                files = theirs.fileno(), life.fileno(), log.fileno()
                forked = self._server and self._server.fork(folder, files)
                process = forked or _started(folder, *files)
            left.pop_all()
        self._running = _Running(process, pipe, ours, folder)
        if not forked:
            pipe.send(self._imports)
        return self._running

    def _end(self, running: "_Running", reason: str) -> tuple[str, int | None, str]:
        """End the process with all below it.

        Returns:
            Why it ended, if that is not known, its exit code if it had ended, and the
            traceback that it left, if it did.
        """
        if not reason:
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.process.wait(10)  # it may be about to end, and say why
        code = running.process.poll()
        _kill(running.process)
        for connection in (running.pipe, running.life):
            connection.close()
        said = ""
        with contextlib.suppress(FileNotFoundError):  # ended by two threads at once
            said = Path(running.folder, LOG).read_text("utf-8", "replace")
        said = said[-LONGEST_LOG:]
        shutil.rmtree(running.folder, ignore_errors=True)
        self._running = None
        traceback = said if TRACEBACK in said and not reason else ""
        return reason or _why(code, said.strip()), code, plain(traceback, LONGEST_LOG)


def _started(folder: str, pipe: int, life: int, log: int) -> subprocess.Popen:
    """Start the process as a program, which takes seconds to import."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", MODULE, str(pipe), str(life), folder],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        env=trusted_environment(),
        cwd=folder,
        pass_fds=(pipe, life),
        start_new_session=True,
    )


def _failed(job: Job, reason: str, log: str = "") -> Outcome:
    outcome = job.ungraded(reason)
    outcome.again, outcome.log = True, log
    return outcome


def _why(code: int | None, said: str) -> str:
    if code is None:
        return "the grading process was ended"
    if code < 0:
        return f"the grading process was killed ({signal.Signals(-code).name})"
    last = f": {plain(said.splitlines()[-1], 200)}" if said else ""
    if TRACEBACK in said:  # its own fault, and not what somebody has done to it
        return f"the grading process failed{last}"
    return f"the grading process ended with code {code}{last}"


class _Timer(threading.Timer):
    """Kills a process that takes too long: whoever waits for it reads its end."""

    def __init__(self, process: subprocess.Popen | Forked, seconds: float) -> None:
        super().__init__(seconds, self._ring, [process])
        self.seconds, self.rang = seconds, threading.Event()
        self.start()

    def _ring(self, process: subprocess.Popen | Forked) -> None:
        self.rang.set()
        _kill(process)


def _kill(process: subprocess.Popen | Forked) -> None:
    """Kill a process and all below it, from the top: nothing is started anew."""
    below = _below(process.pid)
    process.kill()
    process.wait()
    _kill_all(below)


def _below(process: int) -> list[psutil.Process]:
    try:
        return psutil.Process(process).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _kill_all(processes: list[psutil.Process]) -> None:
    for each in processes:
        with contextlib.suppress(psutil.Error):
            each.kill()
    end = time.monotonic() + END_SECONDS
    while time.monotonic() < end and not all(map(_has_ended, processes)):
        time.sleep(0.01)


def _has_ended(process: psutil.Process) -> bool:
    """Whether it runs no more, be it that somebody has yet to ask how it ended."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


# --- in the process -------------------------------------------------------------------


def main(pipe: Connection, life: Connection, folder: str) -> None:
    """Import what is asked for, and serve."""
    tempfile.tempdir = folder
    imports = pipe.recv()
    prepare(imports)
    serve(pipe, life, folder, imports)


def serve(
    pipe: Connection,
    life: Connection,
    folder: str,
    imports: tuple[str, ...] | None,
    sandbox: "Sandbox | None" = None,
) -> None:
    """Examine one job after the other, until there is nobody who sends them.

    Args:
        pipe: for jobs and what comes of them.
        life: this process ends when the other end is closed.
        folder: its own.
        imports: the modules that submissions import; None for all.
        sandbox: one that is ready; without it one is made.
    """
    from autograder.grading import reference
    from autograder.grading.examine import examine
    from autograder.grading.sandbox import Sandbox, SandboxError

    reference.prepare()  # before there is a second thread
    threading.Thread(target=_end_with, args=(life, folder), daemon=True).start()
    while (asked := _next(pipe)) is not None:
        terms = (asked.limits, asked.unsafe) if isinstance(asked, Job) else asked
        if sandbox is None or terms != (sandbox.limits, sandbox.unsafe):
            if sandbox:
                sandbox.close()
            sandbox = Sandbox(*terms, imports)
        if isinstance(asked, Job):
            outcome = examine(asked, sandbox, lambda where: pipe.send(("where", where)))
            pipe.send(("outcome", outcome))
        else:
            with contextlib.suppress(SandboxError):  # the first job will say it
                sandbox.start()
    if sandbox:
        sandbox.close()


def _next(pipe: Connection) -> Job | tuple[Limits, bool] | None:
    """Wait for a job, or for the terms of jobs to come; None at the end."""
    try:
        return pipe.recv()
    except EOFError:
        return None


def prepare(imports: tuple[str, ...] | None) -> None:
    """Import the checks; what is there now will stay, and need not be collected."""
    import torch

    from autograder import chapters

    torch.set_num_threads(1)
    for module in pkgutil.iter_modules(chapters.__path__, f"{chapters.__name__}."):
        if imports is None or module.name in imports:
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


def _end_with(life: Connection, folder: str) -> None:
    """End this process, and all below it, when the other end of the pipe is gone."""
    with contextlib.suppress(OSError, EOFError):
        life.recv_bytes()
    _kill_all(_below(os.getpid()))
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    main(Connection(int(sys.argv[1])), Connection(int(sys.argv[2])), sys.argv[3])
