"""The process that has PyTorch imported and forks one child for each submission.

It is started by autograder.grading.sandbox as

    python -m autograder.boundary.zygote FD FOLDER...

inside the sandbox: FD is a socket to the grader, each FOLDER one to import packages
from. It has one thread, sees nothing of a submission, and holds no secret: the child,
which runs the student's code, is a copy of it. Asked for it, it also forks a copy that
serves another grader: PyTorch is imported once for all of them.
"""

import base64
import contextlib
import gc
import json
import os
import select
import signal
import site
import socket
import struct
import sys
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn

from autograder.boundary import walls
from autograder.boundary.stubs import CHECKS, Stubs

MESSAGE_BYTES = 2**16
FILE_HEADER = struct.Struct("!HI")  # length of the name, length of the content
READY = b"ready"
WITHOUT_NAMESPACES = "no namespaces: "

# what every notebook needs, or what takes no time
LIBRARIES = (
    "torch",
    "torch.nn.functional",
    "torch.nn.attention.flex_attention",
    "numpy",
    "matplotlib.pyplot",
    "matplotlib.backends.backend_agg",
    "PIL.PngImagePlugin",
    "tokenizers",
    "safetensors.torch",
    "IPython.core.interactiveshell",
    "matplotlib_inline.backend_inline",
    "torch.utils.flop_counter",
)
OWN = "workbench.plots"  # the course's own that notebooks of all chapters import
OWN_PACKAGES = ("autograder.", "workbench.", "transformer.")


def main(arguments: list[str]) -> None:
    """Serve the grader until it closes the socket."""
    control = socket.socket(fileno=int(arguments[0]))
    sys.path.extend(arguments[1:])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the grader decides when to end
    walls.inherit_orphans()
    _import_all(LIBRARIES)  # before anybody says for whom
    settings = json.loads(control.recv(MESSAGE_BYTES))
    sys.meta_path.append(Stubs(settings["stubs"]))  # after all that find real modules
    if settings["user"]:  # no walls hide the checks: nothing may import them
        checks = [name for name in settings["stubs"] if name.startswith(CHECKS)]
        sys.meta_path.insert(0, Stubs(checks))
    import_before(settings["imports"])
    settings["calls"] = base64.b64decode(settings["calls"])
    control.send(json.dumps({"ready": os.getpid()}).encode())
    Zygote(control, settings).serve()


def import_before(names: list[str] | None) -> None:
    """Import what notebooks are going to import, so that none waits for it.

    What is imported here is in the memory of every submission, whatever its chapter:
    of the course's own modules only one that all chapters may see.

    Args:
        names: of modules, or of what is in them; None for what every notebook needs.
    """
    site.sethelper()  # `help`, which Python leaves out when started with -S
    theirs = [name for name in names or () if not name.startswith(OWN_PACKAGES)]
    _import_all((*LIBRARIES, OWN, *theirs))
    _warm_up()
    from autograder.boundary import student

    student.shell()
    gc.collect()
    gc.freeze()  # a collection in a child then copies no page of these objects


def _import_all(names: Iterable[str]) -> None:
    from importlib import import_module

    for name in names:
        with contextlib.suppress(Exception):
            import_module(name)


def _warm_up() -> None:
    """Do once what is slow the first time only, and starts no thread."""
    import io

    import matplotlib.pyplot as plt
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    x = torch.ones(2, 3, requires_grad=True)
    (x @ x.T).softmax(-1).detach().sum().item()
    figure = plt.figure()
    figure.add_subplot().set_title("x")
    figure.savefig(io.BytesIO(), format="png")
    plt.close(figure)


class Zygote:
    """Forks children on command and reports how each of them ended."""

    def __init__(self, control: socket.socket, settings: dict) -> None:
        self.control, self.settings = control, settings
        # pidfd: (number, process ID); a copy of this process has no number
        self.children: dict[int, tuple[int | None, int]] = {}

    def serve(self) -> None:
        """Answer the grader's messages until it closes the socket, then end all."""
        while True:
            poll = select.poll()
            for descriptor in (self.control.fileno(), *self.children):
                poll.register(descriptor, select.POLLIN)
            for descriptor, _ in poll.poll():
                if descriptor != self.control.fileno():
                    self._bury(descriptor)
                    continue
                if not self._obey():
                    self._end_all()
                    return
                break  # in a copy, the others are not its own

    def _obey(self) -> bool:
        message, received, _, _ = socket.recv_fds(self.control, MESSAGE_BYTES, 1)
        if not message:
            return False
        asked = json.loads(message)
        connection = socket.socket(fileno=received[0])
        if "copy" in asked:
            self._copy(connection)
            return True
        number = asked["fork"]
        if self.settings["alone"]:  # one submission, for which this process was made
            self._become_child(connection)
        failure = self._fork(number, connection)
        connection.close()
        if failure:
            self._report(number, failed=failure)
        return True

    def _copy(self, control: socket.socket) -> None:
        """Fork a process that serves another grader on a socket of its own."""
        copy = os.fork()
        if copy:
            control.close()
            self.children[os.pidfd_open(copy)] = (None, copy)
            return
        self.control.close()
        for descriptor in self.children:
            os.close(descriptor)
        self.control, self.children = control, {}
        walls.inherit_orphans()
        control.send(json.dumps({"ready": os.getpid()}).encode())

    def _fork(self, number: int, connection: socket.socket) -> str:
        """Fork twice: the first is not yet inside, the second begins a new world."""
        reading, writing = os.pipe()
        try:
            first = os.fork()
        except OSError as error:
            os.close(reading)
            os.close(writing)
            return str(error)
        if first == 0:
            try:
                if self.settings["namespaces"]:
                    walls.enter_namespaces()
                second = os.fork()
                if second == 0:
                    os.setsid()  # a signal to its group would reach copies of this one
                    self._become_child(connection)
                os.write(writing, b"%d" % second)
            except OSError as error:
                os.write(writing, (WITHOUT_NAMESPACES + str(error)).encode())
            os._exit(0)
        os.close(writing)
        with open(reading, "rb") as pipe:
            told = pipe.read().decode()
        os.waitpid(first, 0)
        if not told.isdigit():
            return told or "the process to fork ended"
        self.children[os.pidfd_open(int(told))] = (number, int(told))
        return ""

    def _become_child(self, connection: socket.socket) -> NoReturn:
        """Raise the walls, say so, and serve the student's code; never return."""
        try:
            self.control.close()
            connection = _close_all_but(connection)
            _raise_walls(self.settings, connection)
            connection.sendall(READY)
            from autograder.boundary import student

            student.serve(connection)
        except BaseException:
            with contextlib.suppress(OSError):
                connection.sendall(traceback.format_exc()[-2000:].encode())
            os._exit(70)
        os._exit(0)

    def _bury(self, descriptor: int) -> None:
        number, process = self.children.pop(descriptor)
        os.close(descriptor)
        _, status, used = os.wait4(process, 0)
        if number is None or not self.settings["namespaces"]:
            self._end_orphans()
        if number is None:
            return
        code = os.waitstatus_to_exitcode(status)
        facts = {"cpu": used.ru_utime + used.ru_stime, "memory": used.ru_maxrss * 1024}
        self._report(number, code=code, **facts)

    def _report(self, number: int, **facts: object) -> None:
        with contextlib.suppress(OSError):  # the grader is gone: the loop ends next
            self.control.send(json.dumps({"number": number, **facts}).encode())

    def _end_all(self) -> None:
        for descriptor, (_, process) in list(self.children.items()):
            os.kill(process, signal.SIGKILL)
            self._bury(descriptor)

    def _end_orphans(self) -> None:
        """End what a copy, or a child without namespaces, has left to this process."""
        known = {process for _, process in self.children.values()}
        while orphans := _children() - known:
            for process in orphans:
                with contextlib.suppress(OSError):
                    os.kill(process, signal.SIGKILL)
                    os.waitpid(process, 0)


def _children() -> set[int]:
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return {int(process) for process in text.split()}


def _close_all_but(connection: socket.socket) -> socket.socket:
    """Close every file but the socket; the standard ones lead nowhere."""
    kept = connection.detach()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    os.closerange(3, kept)
    os.closerange(kept + 1, os.sysconf("SC_OPEN_MAX"))
    return socket.socket(fileno=kept)


def _raise_walls(settings: dict, connection: socket.socket) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # read before /proc is covered
    walls.limit(*settings["limits"])
    if settings["namespaces"]:
        walls.own_files(*settings["files"])
    files = dict(_received_files(connection))
    folder = files.pop("", None)
    walls.work_in(Path(folder.decode()) if folder else walls.WORK, files)
    if settings["user"]:
        walls.become(settings["user"])
    if settings["user"] or not settings["unsafe"]:
        walls.give_up_privileges()
    if settings["calls"]:
        walls.refuse_calls(settings["calls"])


def _received_files(connection: socket.socket) -> Iterator[tuple[str, bytes]]:
    """Give the name and content of each file that the grader sends, until the last."""
    with connection.makefile("rb") as stream:
        while True:
            name, size = FILE_HEADER.unpack(stream.read(FILE_HEADER.size))
            if not name and not size:
                return
            yield stream.read(name).decode(), stream.read(size)


if __name__ == "__main__":
    main(sys.argv[1:])
