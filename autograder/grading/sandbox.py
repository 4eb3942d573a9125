"""Run each submission's code behind walls: bubblewrap, namespaces, limits, a filter.

>>> if text := problem():
...     sys.exit(text)
>>> sandbox = Sandbox(Limits())
>>> cage = sandbox.open({"transformer/attention.py": source})
>>> Kernel(cage.socket, ...)
>>> cage.end()  # "" or why it had ended by itself
>>> sandbox.close()

A sandbox holds one process with PyTorch imported, the zygote; each cage is a fork of
it. Several sandboxes may have copies of one zygote, each behind the same first walls.
Nothing of a cage is left when ``end`` returns. Linux only.
"""

import base64
import contextlib
import copy
import functools
import itertools
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

import psutil

import autograder
from autograder.boundary import walls
from autograder.boundary.zygote import (
    FILE_HEADER,
    MESSAGE_BYTES,
    READY,
    WITHOUT_NAMESPACES,
)
from autograder.grading import control_groups, shown
from autograder.grading.forked import Forked
from autograder.grading.limits import MIB, Limits

PROGRAM = "bwrap"
ZYGOTE = "autograder.boundary.zygote"
COURSE = "/course"  # where the public part of the package is, inside
START_SECONDS = 180  # PyTorch's first import on a slow disk
OPEN_SECONDS = 30
END_SECONDS = 30
WATCH_SECONDS = 0.05
LOST = "killed (SIGKILL)"
SHARE = 0.5  # of its memory; who has less is not to blame when a system lacks memory
UNTOUCHED = 256 * MIB  # what the zygote may have been given, and not yet used
SPARE_THREADS = 16  # beyond the limit of the kernel's own: the watcher says why

SHARED = "/tmp"  # a folder that every user may enter
SYSTEM = ("lib", "lib32", "lib64", "libx32")  # of /usr, and as links of /
SYSTEM_FILES = (
    "/usr/share/fonts",
    "/usr/share/zoneinfo",
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/fonts",
    "/etc/localtime",
    "/sys/devices/system/cpu",  # how many processors there are
)
DEVICES = ("null", "zero", "full", "random", "urandom")
# packages of this course that may be installed beside the others, answers among them
HIDDEN_PACKAGES = ("autograder", "workbench", "pages", "transformer", "mistakes")
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "USER": "student",
    "LOGNAME": "student",
    "LANG": "C.UTF-8",
    "TMPDIR": "/tmp",
    "MPLBACKEND": "agg",
    "MPLCONFIGDIR": "/tmp",
    "IPYTHONDIR": "/tmp",
    "NBGRADER_EXECUTION": "autograde",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "JOBLIB_MULTIPROCESSING": "0",  # it would try out what is not there
    "MALLOC_ARENA_MAX": "2",  # each arena takes 64 MiB of the address space
    "PYTHONDONTWRITEBYTECODE": "1",
}


class SandboxError(Exception):
    """The sandbox cannot be started; the message says what to do."""


class _NoNamespacesError(SandboxError):
    """The zygote may not make namespaces of its own."""


@functools.cache
def problem() -> str:
    """Say why submissions cannot be run safely here and what to do; "" if they can."""
    if sys.platform != "linux":
        return (
            "The sandbox needs Linux. On Windows use WSL 2, on a Mac a virtual machine."
        )
    if shutil.which(PROGRAM) is None:
        return (
            "The sandbox needs bubblewrap, which is not installed. To install it: "
            "sudo apt-get install bubblewrap (or your system's own command)."
        )
    try:
        walls.filter_of_calls()
    except (ImportError, OSError, RuntimeError) as error:
        return (
            f"The sandbox needs libseccomp ({error}). To install it: "
            "sudo apt-get install libseccomp2, and pip install -r requirements.txt."
        )
    trial = [PROGRAM, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/"]
    tried = subprocess.run([*trial, "true"], capture_output=True, text=True)
    return "" if tried.returncode == 0 else _forbidden(tried.stderr.strip())


def _forbidden(message: str) -> str:
    for setting, bad, good in (
        ("kernel.apparmor_restrict_unprivileged_userns", "1", "0"),
        ("kernel.unprivileged_userns_clone", "0", "1"),
        ("user.max_user_namespaces", "0", "15000"),
    ):
        file = Path("/proc/sys", *setting.split("."))
        with contextlib.suppress(OSError):
            if file.read_text().strip() == bad:
                return (
                    f"bubblewrap may not make namespaces here ({message}). "
                    f"To allow it: sudo sysctl -w {setting}={good}"
                )
    return (
        f"bubblewrap does not work here ({message}). In a container, start that with "
        "namespaces allowed (docker run --security-opt seccomp=unconfined "
        "--security-opt apparmor=unconfined --security-opt systempaths=unconfined)."
    )


class Sandbox:
    """Opens cages, each for one submission.

    Use it from the thread that lives longest: bubblewrap ends together with the thread
    that started it.

    Args:
        limits: of each cage.
        unsafe: whether there are to be no walls.
        imports: the modules to import before any submission does; None for all.
        zygote: one that is ready, for these limits; without it one is started.
    """

    def __init__(
        self,
        limits: Limits,
        unsafe: bool = False,
        imports: tuple[str, ...] | None = None,
        zygote: "Zygote | None" = None,
    ) -> None:
        self.limits, self.unsafe, self._imports = limits, unsafe, imports
        self.nested = not unsafe  # whether the zygote's children get namespaces
        self.notice = ""  # what a user should know about how this sandbox works
        self._lent: Path | None = None  # the control group below which cages get theirs
        self._zygote = zygote
        self._watcher: _Watcher | None = None
        if zygote:
            self._lent = control_groups.lent()

    def __enter__(self) -> "Sandbox":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the zygote, unless it runs; it takes seconds to import PyTorch.

        Raises:
            SandboxError: it cannot be started.
        """
        if self._zygote and not self._zygote.alive():
            self._zygote.close()
            self._zygote = None
        if self._zygote is None:
            self._lent = None if self.unsafe else control_groups.lent()
            started = Zygote(self.limits, self.unsafe, self.nested)
            started.begin(self._imports)
            self._zygote = started
        if self._watcher is None:
            self._watcher = _Watcher(self.limits)

    def open(self, files: Mapping[str, bytes] | None = None) -> "Cage":
        """Fork a child behind walls; its current folder holds the files.

        Args:
            files: content by relative path.

        Raises:
            SandboxError: no child can be made.
        """
        files = dict(files or {})
        for name in files:
            path = PurePosixPath(name)
            if path.is_absolute() or ".." in path.parts or not path.parts:
                raise ValueError(f"{name}: no path inside the folder")
        try:
            return self._open(files)
        except _NoNamespacesError as error:
            self.close()
            self.nested = False
            self.notice = (
                f"Each submission gets a sandbox of its own, which is slower ({error})."
            )
        except SandboxError:
            if self._zygote is None or self._zygote.alive(patience=1):
                raise
        return self._open(files)  # `start` replaces a zygote that was killed

    def _open(self, files: dict[str, bytes]) -> "Cage":
        self.start()
        zygote, watcher = self._zygote, self._watcher
        assert zygote is not None and watcher is not None  # `start` has made them
        cage = Cage(zygote, files, self._lent)
        watcher.watch(cage)
        if zygote.alone:
            self._zygote = None  # it is the cage's own
        return cage

    def close(self) -> None:
        """End the zygote and every cage."""
        if self._zygote:
            self._zygote.close()
        if self._watcher:
            self._watcher.close()
        self._zygote = self._watcher = None


class Cage:
    """A process that runs one submission's code.

    Attributes:
        socket: leads to ``autograder.boundary.student.serve``; it reads as closed when
            the process has ended.
        process: its number on this side.
        lost: whether it was ended from outside, as by a person, or for lack of memory
            while it had little: code inside cannot do that to itself, being the first
            process of its namespace. It is worth another try.
    """

    def __init__(
        self, zygote: "Zygote", files: dict[str, bytes], lent: Path | None = None
    ) -> None:
        self._zygote, self._reason, self._ended = zygote, "", False
        self._group: control_groups.Group | None = None
        self.lost = False
        self._folder = _folder_for(zygote.limits.user) if zygote.unsafe else ""
        self.socket, theirs = socket.socketpair()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.settimeout(OPEN_SECONDS)
        self._pidfd: int | None = None
        try:
            with theirs:
                self._number = zygote.fork(theirs)
            self.process = self._prepare(files)
            self._pidfd = os.pidfd_open(self.process)
            self._memory_before = _resident(self.process)
            if lent:  # nothing of the submission has run yet
                self._group = _group(lent, self.process, zygote.limits)
        except BaseException:
            self._abandon()
            raise
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
        self.socket.settimeout(None)

    def _prepare(self, files: dict[str, bytes]) -> int:
        """Send the files, wait until the walls stand; return the process's number."""
        message, sender = b"", 0
        try:
            if self._folder:
                self._send_file("", self._folder.encode())
            for name, content in files.items():
                self._send_file(name, content)
            self.socket.sendall(FILE_HEADER.pack(0, 0))
        except OSError:
            pass  # it has ended: what follows says why
        with contextlib.suppress(OSError):
            message, sender = _message_and_sender(self.socket)
        if message != READY:
            failed = self._zygote.failure(self._number)
            if failed.startswith(WITHOUT_NAMESPACES):
                raise _NoNamespacesError(failed.removeprefix(WITHOUT_NAMESPACES))
            raise SandboxError(
                failed or message.decode(errors="replace") or "no answer"
            )
        return sender

    def _send_file(self, name: str, content: bytes) -> None:
        header = FILE_HEADER.pack(len(name.encode()), len(content))
        self.socket.sendall(header + name.encode() + content)

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in it, as the stop button of a notebook does."""
        self._signal(signal.SIGINT)

    def stop(self, reason: str) -> None:
        """End it at once; ``end`` will return the reason."""
        if self.alive():
            self._reason = self._reason or reason
            self._signal(signal.SIGKILL)

    def alive(self, patience: float = 0.0) -> bool:
        """Whether it still runs, after so many seconds."""
        if self._pidfd is None:
            return False
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return not poll.poll(1000 * patience)

    def end(self, patience: float = 0.0) -> str:
        """End it and wait until nothing of it is left; say why it had ended before.

        Args:
            patience: seconds to wait for a process that is about to end by itself, as
                one is whose socket is closed already.

        Returns:
            "" if it was still running; else "memory", "threads", "cpu time",
            "killed (SIGKILL)", "crashed (SIGSEGV)", "exit code 1" …
        """
        if not self._ended:
            self._ended = True
            ran = self.alive(patience)
            self._signal(signal.SIGKILL)
            how = self._zygote.wait_for(self._number)
            if self._group and self._group.end() and not ran:
                self._reason = self._reason or "memory"
            if not ran and not self._reason:
                used = replace(how, memory=how.memory - self._memory_before)
                self._reason = _reason(used, self._zygote.limits)
                self.lost = self._reason == LOST and self._zygote.tells_killers_apart
            self._abandon()
        return self._reason

    def _signal(self, number: int) -> None:
        if self._pidfd is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def _abandon(self) -> None:
        self._ended = True
        self.socket.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        if self._zygote.alone:
            self._zygote.close()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)


def _message_and_sender(sock: socket.socket) -> tuple[bytes, int]:
    """Receive a message, and the number of the process that has sent it.

    The kernel vouches for the number, and translates it from the other namespace.
    """
    space = socket.CMSG_SPACE(struct.calcsize("3i"))
    message, about, _, _ = sock.recvmsg(MESSAGE_BYTES, space)
    return message, struct.unpack("3i", about[0][2])[0] if about else 0


def _control_sockets() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


def _group(lent: Path, process: int, limits: Limits) -> control_groups.Group | None:
    """Put a process in a group of its own; without one the other limits hold."""
    memory = limits.memory_bytes + UNTOUCHED + limits.temporary_bytes
    threads = limits.threads + SPARE_THREADS
    with contextlib.suppress(OSError):
        return control_groups.Group(lent, process, memory, threads)
    return None


@dataclass(frozen=True)
class _End:
    """How a process ended: its exit code, its processor time, its largest memory."""

    code: int = -signal.SIGKILL
    cpu: float = 0.0
    memory: int = 0


def _resident(process: int) -> int:
    """Return the memory of a process; nothing of one that has ended already."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(process).memory_info().rss
    return 0


def _reason(how: _End, limits: Limits) -> str:
    code = how.code
    if code >= 0:
        return f"exit code {code}"
    if -code == signal.SIGKILL and how.cpu > limits.cpu_seconds:
        return "cpu time"
    # a system that lacks memory ends whoever has most of it
    if -code == signal.SIGKILL and how.memory > SHARE * limits.memory_bytes:
        return "memory"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"{-code}"
    verb = "killed" if -code == signal.SIGKILL else "crashed"
    return f"{verb} ({name})"


class Zygote:
    """The process with PyTorch imported, and the socket to it.

    It imports what every notebook needs; ``begin`` tells it the rest.

    Args:
        limits: of each cage.
        unsafe: whether there are to be no walls.
        nested: whether each cage gets namespaces of its own.

    Raises:
        SandboxError: it cannot be started.
    """

    def __init__(self, limits: Limits, unsafe: bool, nested: bool) -> None:
        self.limits, self.unsafe = limits, unsafe
        self.alone = not nested and not unsafe  # it can serve one submission only
        # elsewhere a submission can kill itself, or end with the same exit code
        self.tells_killers_apart = nested and not unsafe
        self._log = tempfile.TemporaryFile()  # noqa: SIM115, closed by close()
        control, theirs = _control_sockets()
        with theirs:
            self._process: subprocess.Popen | Forked = subprocess.Popen(
                _command(theirs.fileno(), limits, unsafe, self.alone),
                stdin=subprocess.DEVNULL,
                stdout=self._log,
                stderr=self._log,
                pass_fds=[theirs.fileno()],
                env=_environment() if unsafe else {"PATH": os.environ.get("PATH", "")},
                start_new_session=True,
            )
        self._listen_on(control)

    def _listen_on(self, control: socket.socket) -> None:
        self._control, self._lock = control, threading.Lock()
        self._numbers = itertools.count()
        self._messages: dict[int, dict] = {}

    def begin(
        self, imports: tuple[str, ...] | None, limits: Limits | None = None
    ) -> None:
        """Tell it for what it forks, and wait until it is ready.

        Args:
            imports: the modules to import before any submission does; None for all.
            limits: of each cage, if they were not known before.

        Raises:
            SandboxError: it has ended, or does not answer.
        """
        self.tell(imports, limits)
        self.wait_until_ready()

    def tell(
        self, imports: tuple[str, ...] | None, limits: Limits | None = None
    ) -> None:
        """Tell it for what it forks, and do not wait."""
        self.limits = limits or self.limits
        with contextlib.suppress(OSError):  # it has ended: whoever waits is told
            self._send(json.dumps(self._settings(imports)).encode())

    def wait_until_ready(self) -> None:
        """Wait until it has imported all; raise SandboxError if it does not."""
        try:
            self._control.settimeout(START_SECONDS)
            if not self._receive():
                raise SandboxError("The sandbox's process ended at once.")
        except (OSError, SandboxError) as error:
            self._end()
            said = f"{error}\n{self._said()}".strip()
            raise SandboxError(f"The sandbox does not start: {said}") from None

    def copy(self) -> "Zygote":
        """Have it forked, behind the same walls, for a sandbox of another process.

        Raises:
            OSError: it has ended, or does not answer.
        """
        control, theirs = _control_sockets()
        try:
            control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
            control.settimeout(OPEN_SECONDS)
            with theirs:
                socket.send_fds(self._control, [b'{"copy": true}'], [theirs.fileno()])
            message, number = _message_and_sender(control)
            if not message:
                raise OSError("the sandbox's process has ended")
            control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
        except OSError:
            control.close()
            raise
        made = copy.copy(self)
        made._process = Forked(number)
        made._listen_on(control)
        return made

    def _settings(self, imports: tuple[str, ...] | None) -> dict:
        limits = self.limits
        is_filtered = not self.unsafe or limits.user  # this wall needs no namespace
        calls = walls.filter_of_calls() if is_filtered else b""
        kept = [
            str(path)
            for path in _python_folders()
            if path.is_dir() and path.is_relative_to("/tmp")
        ]
        return {
            "namespaces": not self.unsafe and not self.alone,
            "alone": self.alone,
            "unsafe": self.unsafe,
            "user": limits.user if self.unsafe else 0,
            "imports": imports,
            "stubs": shown.stubs(),
            "calls": base64.b64encode(calls).decode(),
            "limits": (
                limits.memory_bytes,
                limits.cpu_seconds + 2,  # the watcher comes first, and says why
                limits.open_files,
                limits.file_bytes,
            ),
            "files": (limits.temporary_bytes, limits.temporary_files, kept),
        }

    def alive(self, patience: float = 0.0) -> bool:
        """Whether it still runs, after so many seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
            return False
        return True

    def fork(self, connection: socket.socket) -> int:
        """Have a child forked that serves the connection; return its number."""
        number = next(self._numbers)
        message = json.dumps({"fork": number}).encode()
        try:
            socket.send_fds(self._control, [message], [connection.fileno()])
        except OSError as error:
            raise SandboxError(f"The sandbox's process has ended: {error}") from None
        return number

    def failure(self, number: int) -> str:
        """Say why a child could not be forked."""
        return self._message(number).get("failed", "")

    def wait_for(self, number: int) -> _End:
        """Wait until a child has ended; return how."""
        if self.alone:
            code = self._process.wait(END_SECONDS)
            return _End(128 - code if code > 128 else code)
        message = self._message(number)
        del message["number"]
        return _End(**message)

    def _message(self, number: int) -> dict:
        """Return what the zygote says of a child; if it says nothing, end it all."""
        with self._lock:
            deadline = time.monotonic() + END_SECONDS
            while number not in self._messages:
                self._control.settimeout(max(deadline - time.monotonic(), 0.01))
                try:
                    message = self._receive()
                except OSError:
                    message = {}
                if not message:
                    self._end()
                    return {"number": number}
                self._messages[message["number"]] = message
            return self._messages.pop(number)

    def _send(self, message: bytes) -> None:
        self._control.send(message)

    def _receive(self) -> dict:
        message = self._control.recv(MESSAGE_BYTES)
        return json.loads(message) if message else {}

    def _said(self) -> str:
        """Return the end of what it wrote, as a reason why it ended."""
        self._log.seek(0)
        return self._log.read()[-2000:].decode(errors="replace").strip()

    def _end(self) -> None:
        self._control.close()  # it ends when it sees that
        try:
            self._process.wait(END_SECONDS if self.unsafe else 1)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def close(self) -> None:
        """End it with all its children."""
        self._end()
        self._log.close()

    def let_go(self) -> None:
        """Leave it to another process, which has this one's socket to it."""
        self._control.close()


class _Watcher:
    """Ends cages that use too much, and knows why; the kernel's own limits come later.

    Those do not bind root, or count for one process what several threads do.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._cages: dict[Cage, _Usage] = {}
        self._closed = threading.Event()
        threading.Thread(target=self._run, name="watcher", daemon=True).start()

    def watch(self, cage: Cage) -> None:
        with contextlib.suppress(psutil.Error):  # it has ended already
            self._cages[cage] = _Usage(cage.process)

    def close(self) -> None:
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(WATCH_SECONDS):
            for cage, usage in list(self._cages.items()):
                try:
                    excess = usage.excess(self._limits)
                except psutil.Error:
                    self._cages.pop(cage)
                    continue
                if excess:
                    cage.stop(excess)


class _Usage:
    """What a process uses, seen from outside."""

    def __init__(self, number: int) -> None:
        self._process = psutil.Process(number)
        self._memory_before = self._memory()
        times = self._process.cpu_times()
        self._time_before = times.user + times.system

    def _memory(self) -> int:
        memory = self._process.memory_info()
        return memory.rss - memory.shared

    def excess(self, limits: Limits) -> str:
        """Say of what it uses more than its limits; "" if of nothing."""
        with self._process.oneshot():
            times = self._process.cpu_times()
            if self._process.num_threads() > limits.threads:
                return "threads"
            if self._memory() - self._memory_before > limits.memory_bytes + UNTOUCHED:
                return "memory"
            if times.user + times.system - self._time_before > limits.cpu_seconds:
                return "cpu time"
        return ""


def _folder_for(user: int) -> str:
    """Make an empty folder for a submission without a sandbox."""
    if not user:
        return tempfile.mkdtemp()
    folder = tempfile.mkdtemp(dir=SHARED)  # the grader's own lets nobody else in
    os.chown(folder, user, user)
    return folder


def _command(descriptor: int, limits: Limits, unsafe: bool, alone: bool) -> list[str]:
    """Return the command line that starts the zygote, inside bubblewrap or not."""
    # without `site`: no .pth file, no sitecustomize, no user's own packages
    python = [
        os.path.realpath(sys.executable),
        "-S",
        "-P",
        "-s",
        "-m",
        ZYGOTE,
        str(descriptor),
    ]
    python += map(str, _package_folders())
    if unsafe:
        return python
    program = shutil.which(PROGRAM)
    if program is None:
        raise SandboxError(problem())
    return [program, *_walls(limits, alone), "--", *python]


def _walls(limits: Limits, alone: bool) -> Iterator[str]:
    """Give bubblewrap's options: what is seen inside, all of it read-only."""
    yield from ("--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1")
    yield from ("--hostname", "sandbox", "--clearenv", "--cap-drop", "ALL")
    # not root inside: without privileges, root may not enter namespaces of its own
    yield from ("--uid", "1000", "--gid", "1000")
    for name, value in _environment(COURSE).items():
        yield from ("--setenv", name, value)
    for name in SYSTEM:
        yield from ("--ro-bind-try", f"/usr/{name}", f"/usr/{name}")
        if Path("/", name).is_symlink():
            yield from ("--symlink", f"usr/{name}", f"/{name}")
        else:
            yield from ("--ro-bind-try", f"/{name}", f"/{name}")
    yield from ("--size", str(limits.temporary_bytes), "--tmpfs", "/tmp")
    for path in (*SYSTEM_FILES, *_python_folders()):
        yield from ("--ro-bind-try", str(path), str(path))
    for path in _hidden():
        yield from ("--tmpfs", str(path), "--remount-ro", str(path))
    for path, place in shown.files():
        yield from ("--ro-bind", str(path), f"{COURSE}/{place}")
    # what runs beside a student's code in the same namespace sees no processes at all
    yield from ("--tmpfs" if alone else "--proc", "/proc", "--tmpfs", "/dev")
    for name in DEVICES:
        yield from ("--dev-bind", f"/dev/{name}", f"/dev/{name}")
    yield from ("--remount-ro", "/dev")
    if alone:
        yield from ("--remount-ro", "/proc")
    yield from ("--remount-ro", "/", "--chdir", "/tmp")


def _environment(course: str = "") -> dict[str, str]:
    course = course or str(Path(autograder.__file__).parents[1])
    return {**ENVIRONMENT, "PYTHONPATH": course}


def _python_folders() -> list[Path]:
    """Return what this Python and its packages are made of, and nothing beside them."""
    prefixes = {sys.prefix, sys.base_prefix}
    folders = {Path(prefix, part) for prefix in prefixes for part in ("lib", "lib64")}
    folders |= {Path(os.path.realpath(sys.executable)), *_package_folders()}
    there = {
        folder for folder in folders if folder.exists() and not folder.is_symlink()
    }
    return sorted(folder for folder in there if not there & set(folder.parents))


def _package_folders() -> list[Path]:
    """Return the folders from which PyTorch and the other packages are imported."""
    names = ("site-packages", "dist-packages")
    return [Path(folder) for folder in sys.path if Path(folder).name in names]


def _hidden() -> Iterator[Path]:
    """Give the course's own packages among the installed ones: they hold answers."""
    for folder in _package_folders():
        for name in HIDDEN_PACKAGES:
            if (folder / name).is_dir():
                yield folder / name
