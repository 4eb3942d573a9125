"""The student's side of the boundary: a process that holds one submission's objects.

``serve`` runs the notebook's cells and answers what a check asks about the functions
and classes in it. All of this runs beside the student's code, which can reach and
change it: what is sent from here is the student's word. The other side reads it so.
"""

import contextlib
import functools
import io
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from socket import socket
from types import FrameType
from typing import Any

import torch
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

import workbench
from autograder import forbidden, interface
from autograder.boundary import endless, given
from autograder.boundary.channel import Channel, ChannelError
from autograder.boundary.data import (
    ERROR_SIZES,
    PARAMETER_NAME,
    PARAMETERS,
    BoundaryError,
    Named,
)
from autograder.boundary.moments import Moment
from autograder.boundary.outputs import Outputs
from autograder.interface import (
    Data,
    LocalFunction,
    LocalInstance,
    LocalMethod,
    LocalModule,
    StudentError,
)

METHODS = (
    "__call__",
    "gradients",
    "memory",
    "shared",
    "state_dict",
    "parameter_names",
    "buffer_names",
    "load_state_dict",
    "train",
)
FEW_NUMBERS = 20_000  # in the tensors of a module that is described when it is built
SECONDS_TOGETHER = 0.2  # after which no other call is answered with those before
NUMBERS_TOGETHER = 200_000  # in the tensors of answers that are sent together
NAMING = ("state_dict", "parameter_names", "buffer_names")  # what a module consists of
ALARMS = (signal.SIGINT, signal.SIGALRM)  # which would tear a message in two
_MISSING = object()

Kept = LocalFunction | LocalModule | LocalInstance  # the other side has a handle of it

# --- cells ----------------------------------------------------------------------------


class _Shell(InteractiveShell):
    """IPython without a terminal, a history or files; it shows on ``outputs``."""

    outputs = Outputs(0)
    busy = False  # with the student's code, which may be interrupted

    def showtraceback(self, *args: Any, **kwargs: Any) -> None:
        self.busy = False  # writing a traceback is not
        super().showtraceback(*args, **kwargs)

    def ask_exit(self) -> None:
        """Go on: `exit` ends a kernel, and here the next cells are still to run."""

    def enable_gui(self, gui: str | None = None) -> None:
        """Open no window; ``%matplotlib inline`` asks for none, too."""

    def _showtraceback(
        self, etype: type, evalue: BaseException, stb: Iterable[str]
    ) -> None:
        stopped = etype is KeyboardInterrupt and not evalue.args
        text = "stopped" if stopped else _text(evalue)
        self.outputs.fail(etype.__name__, text, list(stb))


class _DisplayHook(DisplayHook):
    """Shows a cell's result."""

    def write_output_prompt(self) -> None:
        pass

    def write_format_data(self, format_dict: dict, md_dict: dict | None = None) -> None:
        shell().outputs.show(format_dict, result=True)

    def finish_displayhook(self) -> None:
        pass


class _DisplayPublisher(DisplayPublisher):
    """Shows what ``display`` is given."""

    def publish(self, data: dict, *args: Any, **kwargs: Any) -> None:
        shell().outputs.show(data)

    def clear_output(self, wait: bool = False) -> None:
        pass


class _Stream(io.TextIOBase):
    """Stands for stdout or stderr."""

    def __init__(self, shell: _Shell, name: str) -> None:
        self._shell, self._name = shell, name

    encoding = "utf-8"

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() takes a string, not {type(text).__name__}")
        self._shell.outputs.write(self._name, text)
        return len(text)


@functools.cache
def shell() -> _Shell:
    """Make the one IPython of this process; a process may do so before it forks."""
    config = Config()
    config.HistoryManager.enabled = False
    # whoever reads the code cannot tell a magic that has no sign from a slip
    config.InteractiveShell.automagic = False
    config.HistoryManager.hist_file = ":memory:"
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.warn_venv = False
    config.InteractiveShell.display_page = True
    with tempfile.TemporaryDirectory() as folder:  # IPython makes a profile in any case
        made = _Shell.instance(
            config=config,
            ipython_dir=folder,
            displayhook_class=_DisplayHook,
            display_pub_class=_DisplayPublisher,
        )
    return made


# --- requests -------------------------------------------------------------------------


def serve(sock: socket) -> None:
    """Run cells and answer requests until the other side closes the socket.

    Whatever the process writes to its own standard files goes nowhere: what a cell
    prints is collected, and sent.
    """
    _Student(Channel(sock, named=True), shell()).serve()


class _Student:
    """One submission's names and objects."""

    def __init__(self, channel: Channel, shell: _Shell) -> None:
        self.channel, self.shell = channel, shell
        self.objects: dict[int, Kept] = {}
        self.moments: list[Moment] = []
        self.made = 0
        self.forbidden: tuple[str, ...] = ()
        self.holding = contextlib.ExitStack()
        self.interrupted = False
        self.asked: dict[str, Any] = {}  # what is being answered

    def serve(self) -> None:
        _standard_files_lead_nowhere()
        _import_as_in_a_notebook()
        signal.signal(signal.SIGINT, self._on_interrupt)
        with contextlib.suppress(ChannelError):
            while True:
                request = self.channel.receive()
                if "do" in request:  # else an answer that came too late
                    self._reply(request)

    def _on_interrupt(self, number: int, frame: FrameType | None) -> None:
        if not self.shell.busy:
            return
        self.interrupted = True
        if self.asked["do"] == "cell":
            raise KeyboardInterrupt
        known = {
            name: self.shell.user_ns.get(name) for name in self.asked.get("endless", ())
        }
        endless.end_those_that_run(known, frame)
        raise interface.TookTooLong("it had not returned when its time was over")

    @contextlib.contextmanager
    def _students_turn(self) -> Iterator[None]:
        """Let the grader interrupt what is done in the block, and nothing else."""
        # each time anew: the cell before may have put something in their place
        sys.stdout = _Stream(self.shell, "stdout")
        sys.stderr = _Stream(self.shell, "stderr")
        signal.signal(signal.SIGINT, self._on_interrupt)
        self.interrupted, self.shell.busy = False, True
        try:
            yield
        finally:
            self.shell.busy = False

    def _reply(self, request: dict) -> None:
        process, self.asked = os.getpid(), request
        try:
            with self._students_turn():
                reply = {"value": getattr(self, f"_{request['do']}")(request)}
        except BaseException as error:  # student code may raise anything
            self.shell.busy = False
            reply = {"error": self._facts(error, request)}
        if os.getpid() != process:
            os._exit(0)  # the student's code has forked; only one of the two answers
        number = {"number": request["number"]}
        try:
            self.channel.send(reply | number)
        except BoundaryError as error:
            facts = self._facts(_too_much(error), request)
            self.channel.send({"error": facts} | number)

    def _facts(self, error: BaseException, request: dict) -> tuple[str, ...]:
        if not isinstance(error, StudentError):
            kind, text = type(error).__name__, _text(error)
            if self.interrupted:
                kind, text = "endless", "it had not returned when its time was over"
            error = StudentError(kind, text, str(request.get("method", "")))
        facts = error.kind, error.text, error.call, error.function, error.line
        pairs = zip(facts, ERROR_SIZES, strict=True)
        return tuple(_encodable(_text(fact))[:size] for fact, size in pairs)

    def _begin(self, request: dict) -> None:
        interface.SECONDS_PER_CALL = 0.0  # the other side counts the time
        self.channel.limit = request["message_bytes"]

    def _give(self, request: dict) -> None:
        """Put stand-ins for right answers in the place of the student's."""
        stand_ins = given.stand_ins(request["given"], self._question)
        self.shell.user_ns.update(stand_ins)

    def _question(self, question: dict) -> dict:
        """Ask the other side, which waits for the reply to its own request."""
        apart = signal.pthread_sigmask(signal.SIG_BLOCK, ALARMS)
        try:
            self.channel.send({"question": question, "number": self.asked["number"]})
            return self.channel.receive()["answer"]
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, apart)

    def _forbid(self, names: tuple[str, ...]) -> None:
        """Forbid names until others are; the next question often forbids the same."""
        if names != self.forbidden:
            self.holding.close()
            self.holding.enter_context(forbidden.hold(names))
            self.forbidden = names

    def _cell(self, request: dict) -> dict:
        """Run a cell; return its outputs and the exception that ended it, if any."""
        self._forbid(())
        outputs = self.shell.outputs = Outputs(request["output_bytes"])
        error = None
        try:
            result = self.shell.run_cell(request["code"], store_history=True)
            error = result.error_before_exec or result.error_in_exec
        except BaseException as raised:
            error = raised
        self.shell.busy = False
        self.shell.outputs = Outputs(0)
        words = "" if error is None else f"{type(error).__name__}: {_said(error)}"
        return {
            "outputs": outputs.as_list(),
            "error": _encodable(words)[: ERROR_SIZES[1]],
            "line": self._line(error),
            "cut": outputs.cut,
        }

    def _line(self, error: BaseException | None) -> int:
        """Return the line of the cell that an error left, or 0."""
        if isinstance(error, SyntaxError):
            return error.lineno or 0
        for frame, number in traceback.walk_tb(getattr(error, "__traceback__", None)):
            is_cell = frame.f_globals is self.shell.user_ns
            if is_cell and frame.f_code.co_name == "<module>":
                return number
        return 0

    def _remember(self, request: dict) -> int:
        """Keep what the notebook's names stand for now; return the moment's number."""
        del request
        self.moments.append(Moment(self.shell.user_ns))
        return len(self.moments) - 1

    def _go_back(self, request: dict) -> list[dict | None]:
        """Let the names stand for what they stood for at a moment, and look at some."""
        self._forbid(())
        self.moments[request["moment"]].bring_back(self.shell.user_ns)
        return self._look_at(request)

    def _look_at(self, request: dict) -> list[dict | None]:
        """Say what names stand for; None of one that cannot be told."""
        found: list[dict | None] = []
        for name in request["names"]:
            found.append(None)
            with contextlib.suppress(Exception):
                found[-1] = self._look({"name": name})
        return found

    def _look(self, request: dict) -> dict:
        """Say what a name stands for; keep the object if it can be called."""
        found = self.shell.user_ns.get(request["name"], _MISSING)
        if found is _MISSING:
            return {"kind": "missing"}
        if not callable(found):
            return {"kind": "data", "value": interface.to_data(found)}
        name = getattr(found, "__name__", type(found).__name__)
        name = _text(name)[: ERROR_SIZES[0]]
        if isinstance(found, type):
            handle = self._keep(LocalModule(found, name))
            return {"kind": "class", "name": name, "handle": handle}
        handle = self._keep(LocalFunction(found, name))
        return {"kind": "function", "name": name, "handle": handle}

    def _keep(self, wrapped: Kept) -> int:
        self.made += 1
        self.objects[self.made] = wrapped
        return self.made

    def _ask(self, request: dict) -> Any:
        """Carry out one method of the interface."""
        for handle in request.get("drop", ()):
            self.objects.pop(handle, None)
        target, method = self.objects[request["handle"]], request["method"]
        args = [self._found(value) for value in request["args"]]
        given = request.get("kwargs", {})
        kwargs = {key: self._found(each) for key, each in given.items()}
        names = tuple(request.get("forbidden", ()))
        self._forbid(names)
        if method == "build" and isinstance(target, LocalModule):
            target.forbidden = names
            built = target.build(*args, **kwargs)
            return self._keep(built), *_described(built)
        function = _as_function(target)
        function.forbidden = names
        if method == "several":
            return self._several(function, args)
        if method == "methods" and isinstance(function, LocalInstance):
            return [self._keep(LocalMethod(function, name)) for name in args]
        if method not in METHODS:
            raise ValueError(f"no method {method}")
        value = getattr(function, method)(*args, **kwargs)
        if method == "state_dict":
            _expect_state(value)
        if method in NAMING:
            _expect_few(value)
        return value

    def _several(
        self, function: LocalFunction | LocalInstance, calls: list[tuple]
    ) -> list[tuple]:
        """Answer the first calls, up to an error, or until it is time to reply.

        What is left is asked again: one reply holds no more than one call's time.
        """
        began, numbers = time.perf_counter(), 0
        found: list[tuple] = []
        for args in calls:
            try:
                answer = True, function(*args)
            except StudentError as error:
                if error.kind == "endless":
                    raise  # the other side knows what to do with it
                return [*found, (False, self._facts(error, self.asked))]
            numbers += _numbers(answer[1])
            if found and numbers > NUMBERS_TOGETHER:
                break
            found.append(answer)
            if time.perf_counter() - began > SECONDS_TOGETHER:
                break
        return found

    def _found(self, value: Any) -> Any:
        if type(value) is tuple:
            return tuple(map(self._found, value))
        if isinstance(value, Named):
            return _as_function(self.objects[value.handle])
        return value


def _described(built: LocalInstance) -> tuple[dict | None, list[str] | None]:
    """Give the state and the parameters' names of a small module: both come next.

    What goes wrong here does so again when it is asked for.
    """
    try:
        module = torch.nn.Module.parameters(built._target)
        if sum(parameter.numel() for parameter in module) > FEW_NUMBERS:
            return None, None
        state, names = built.state_dict(), built.parameter_names()
        _expect_state(state)
        _expect_few(state)
        _expect_few(names)
        return (state, names) if _numbers(state) <= FEW_NUMBERS else (None, None)
    except Exception:
        return None, None


def _as_function(wrapped: Kept) -> LocalFunction | LocalInstance:
    """A class can be called, too, where a check wanted a function."""
    if isinstance(wrapped, LocalModule):
        return LocalFunction(wrapped._target, wrapped.name)
    return wrapped


def _numbers(value: Data) -> int:
    """Count the numbers of all tensors in data."""
    if isinstance(value, torch.Tensor):
        return value.numel()
    items = value.values() if isinstance(value, dict) else value
    return sum(map(_numbers, items)) if isinstance(value, (dict, list, tuple)) else 0


def _expect_state(value: Any) -> None:
    items = value.items() if isinstance(value, dict) else [(None, None)]
    if not all(type(k) is str and isinstance(v, torch.Tensor) for k, v in items):
        raise TypeError("state_dict() has to return a dict of tensors by their names")


def _expect_few(names: Iterable[str]) -> None:
    """Send no more names than the other side takes: it would end the process."""
    names = list(names)
    if len(names) > PARAMETERS:
        raise _too_much(f"a module of more than {PARAMETERS:,} tensors")
    if any(len(name) > PARAMETER_NAME for name in names):
        raise _too_much(f"a tensor's name of more than {PARAMETER_NAME:,} characters")


def _too_much(what: object) -> StudentError:
    text = f"the result cannot be handed to the check: {what}"
    return StudentError("TooMuchData", text)


def _text(value: object) -> str:
    try:
        return "".join(str(value))
    except BaseException:
        return f"a {type(value).__name__} that cannot be written"


def _said(error: BaseException) -> str:
    """Return an error's text; of a syntax error without the name of a file."""
    return _text(error.msg if isinstance(error, SyntaxError) else error)


def _encodable(text: str) -> str:
    """Write halves of characters out, before the text is cut: that makes it longer."""
    return text.encode("utf-8", "backslashreplace").decode()


def _standard_files_lead_nowhere() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    os.close(nowhere)


def _import_as_in_a_notebook() -> None:
    """Import from the working folder first, and nothing that was read before.

    What is given to the chapter of the course's own package lies there as well.
    """
    if sys.path[:1] != [""]:
        sys.path.insert(0, "")
    workbench.__path__.append(os.path.abspath("workbench"))
    for name in [each for each in sys.modules if each.split(".")[0] == "transformer"]:
        del sys.modules[name]
