"""A process that has imported what grading needs, and forks the graders.

>>> server = ForkServer()
>>> server.prepare(limits, imports)  # it goes on importing meanwhile
>>> process = server.fork(folder, (pipe, life, log))

Each grader and each sandbox would otherwise import PyTorch anew. The server starts the
sandbox's process as well, and gives every grader a copy of it. It is trusted, and sees
nothing of a submission. Whoever needs a grader and has no server, or one that has
ended, starts it as a program.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Sequence
from dataclasses import asdict
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING

from autograder.boundary import walls
from autograder.grading.environment import trusted_environment
from autograder.grading.forked import Forked
from autograder.grading.limits import Limits

if TYPE_CHECKING:
    from autograder.grading.sandbox import Zygote

MODULE = "autograder.grading.fork_server"
START_SECONDS = 300  # for the imports of this process and of the one in the sandbox
LARGEST = 2**16  # bytes of a message
LOST = -signal.SIGKILL  # how a grader has ended whose server is gone: with it


class ForkServer:
    """A handle of the process; it ends when this one does, or closes the handle."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._control.settimeout(START_SECONDS)
        self._folder = tempfile.mkdtemp(prefix="autograder-")
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", MODULE, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=trusted_environment(),
                cwd=self._folder,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )

    @property
    def process(self) -> int:
        """The number of the process."""
        return self._process.pid

    def prepare(self, limits: Limits, imports: tuple[str, ...] | None) -> None:
        """Say for what it is going to fork graders; it does not answer.

        Args:
            limits: of each submission.
            imports: the modules that submissions import; None for all.
        """
        message = json.dumps({"limits": asdict(limits), "imports": imports})
        with contextlib.suppress(OSError):  # it has ended: `fork` will tell
            self._control.send(message.encode())

    def fork(self, folder: str, files: Sequence[int]) -> Forked | None:
        """Fork a grader, or return None if there is nothing to fork from.

        Args:
            folder: its current one.
            files: the descriptors of its pipe, of the one by which it lives, of its
                log.
        """
        number = self._ask({"fork": folder}, files)
        if number is not None:
            with contextlib.suppress(OSError):
                return Forked(number, self._code_of)
        return None

    def _code_of(self, number: int) -> int:
        """Return the exit code of a grader that has ended."""
        code = self._ask({"ended": number})
        return LOST if code is None else code

    def _ask(self, question: dict, files: Sequence[int] = ()) -> int | None:
        """Ask, and wait for the answer; a server that gives none is asked no more."""
        with self._lock:
            try:
                message = json.dumps(question).encode()
                socket.send_fds(self._control, [message], files)
                return int(self._control.recv(LARGEST))
            except (OSError, ValueError):
                self._control.close()
                return None

    def close(self) -> None:
        """End it, with all that it has forked."""
        self._control.close()
        self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


# --- of this process, from early on ---------------------------------------------------

_begun: ForkServer | None = None
# of the command that grades: with one of these, this machine runs no submission in a
# sandbox; shortened ones are not known here, and only start a server in vain
WITHOUT = ("-h", "--help", "--dry-run", "--unsafe", "--scheduler")


def begin(arguments: Sequence[str]) -> None:
    """Start the one server of this process, if the command is going to need it.

    Args:
        arguments: of the command that grades.
    """
    global _begun
    given = {word.partition("=")[0] for word in arguments}
    if sys.platform == "linux" and not given.intersection(WITHOUT):
        with contextlib.suppress(OSError):
            _begun = ForkServer()


def begun() -> ForkServer | None:
    """Return the server of this process, if one has been started."""
    return _begun


def end() -> None:
    """End the server of this process, if there is one."""
    global _begun
    if _begun:
        _begun.close()
    _begun = None


# --- in the process -------------------------------------------------------------------


def main(control: socket.socket) -> None:
    """Import, and fork graders for whoever asks, until there is nobody who does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    from autograder.grading import sandbox

    zygote: sandbox.Zygote | None = None
    with contextlib.suppress(OSError, sandbox.SandboxError):  # a grader will say why
        zygote = sandbox.Zygote(Limits(), unsafe=False, nested=True)  # imports as well
    from autograder.grading import examine, grader

    del examine  # it has to be there, and is not used here
    known = json.loads(control.recv(LARGEST) or "null")
    if known is None:
        return
    imports = None if known["imports"] is None else tuple(known["imports"])
    if zygote:
        zygote.tell(imports, Limits(**known["limits"]))
    grader.prepare(imports)
    if zygote:
        with contextlib.suppress(sandbox.SandboxError):
            zygote.wait_until_ready()
    _Server(control, zygote, imports).serve()


class _Server:
    """Forks graders, and tells how they have ended."""

    def __init__(
        self,
        control: socket.socket,
        zygote: "Zygote | None",
        imports: tuple[str, ...] | None,
    ) -> None:
        self.control, self.zygote, self.imports = control, zygote, imports
        self.process = os.getpid()

    def serve(self) -> None:
        """Answer one question after the other."""
        while True:
            message, files, _, _ = socket.recv_fds(self.control, LARGEST, 3)
            if not message:
                return
            asked = json.loads(message)
            if "fork" in asked:
                answer = self._fork(asked["fork"], files)
            else:
                answer = os.waitstatus_to_exitcode(os.waitpid(asked["ended"], 0)[1])
            self.control.send(str(answer).encode())

    def _fork(self, folder: str, files: list[int]) -> int:
        """Fork a grader; return its number."""
        copy: Zygote | None = None
        if self.zygote:
            with contextlib.suppress(OSError):
                copy = self.zygote.copy()
        number = os.fork()
        if number == 0:
            try:
                self._become_grader(folder, files, copy)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        for each in files:
            os.close(each)
        if copy:
            copy.let_go()
        return number

    def _become_grader(
        self, folder: str, files: list[int], zygote: "Zygote | None"
    ) -> None:
        """Leave all that is the server's own, and grade."""
        from autograder.grading.grader import serve
        from autograder.grading.sandbox import Sandbox

        walls.end_with_parent(self.process)
        os.setsid()
        self.control.close()
        if self.zygote:
            self.zygote.let_go()
        pipe, life, log = files
        for standard in (1, 2):
            os.dup2(log, standard)
        os.close(log)
        os.chdir(folder)
        tempfile.tempdir = folder
        sandbox = None
        if zygote:
            sandbox = Sandbox(zygote.limits, imports=self.imports, zygote=zygote)
        connections = Connection(pipe), Connection(life)
        serve(*connections, folder, self.imports, sandbox)


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
