"""The trusted end of a student's process: cells go in, outputs and data come out.

Whatever arrives was written by code that the student may have changed. It is measured,
its form is compared with what was asked for, and it is never more than data. Each
request carries a number that cannot be guessed and that the reply must repeat, so that
no reply can be prepared for a question that has not been asked yet.
"""

import contextlib
import io
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch

from autograder.boundary.channel import Channel, ChannelError
from autograder.boundary.data import (
    DIMENSIONS,
    ERROR_SIZES,
    PARAMETER_NAME,
    PARAMETERS,
    BoundaryError,
)
from autograder.boundary.outputs import Outputs
from autograder.grading.limits import DEAF, TOO_LARGE, WALL, Limits
from autograder.interface import CALLS_ENDLESS, Data, Gradients, StudentError

GRACE = 3.0  # seconds between an interrupt and the end
START = 30.0  # seconds until the process answers for the first time
SENDING = 30.0  # seconds on the wall until the process has taken a request
STRETCH = 8  # how many times as long as its limit anything may take on a busy machine
ENOUGH = 1.0  # seconds for a call, when another one has met its limit; most need 0.03


class Cage(Protocol):
    """What holds a student's process, as autograder.grading.sandbox makes it."""

    socket: Any
    process: int

    def interrupt(self) -> None:
        """Send SIGINT to the student's code."""

    def end(self, patience: float = 0.0) -> str:
        """Kill all of it, after a while; return why it had died before, or ""."""


class Clock:
    """Tells a process's own time: it stands still while others have its processor.

    On a busy machine a right answer needs no more of this time than on an idle one.
    The time stands still for at most all but an eighth of what has passed, and not
    for what the process's own threads take from each other. It never goes back: that
    somebody waited for the processor is known when the wait is over, and what was told
    before counts.

    Args:
        process: its number, as seen from here.
    """

    def __init__(self, process: int) -> None:
        path = Path(f"/proc/{process}/schedstat")
        self._file: io.FileIO | None
        try:  # stays open: it is read some thousand times a notebook
            self._file = path.open("rb", buffering=0)
        except OSError:  # it has ended, or the system does not tell
            self._file = None
        # of all threads; so does the kernel number a process's clock
        self._all_threads = (~process << 3) | 2
        self._began, self._waited_before = time.monotonic(), self._waited()
        self._used_before = self._used()
        self._told = 0.0

    def now(self) -> float:
        """Return the seconds of the process's time since the clock was made."""
        passed = time.monotonic() - self._began
        own = passed - (self._waited() - self._waited_before)
        used = (self._used() - self._used_before) / _PROCESSORS
        self._told = max(self._told, passed / STRETCH, own, min(used, passed))
        return self._told

    def _used(self) -> float:
        """Return the processor time of all threads."""
        try:
            return time.clock_gettime(self._all_threads)
        except OSError:
            return 0.0

    def _waited(self) -> float:
        """Return for how many seconds the process could have run, and did not."""
        try:
            if self._file is None:
                return 0.0
            return int(os.pread(self._file.fileno(), 100, 0).split()[1]) / 1e9
        except (OSError, IndexError):
            return 0.0


_PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


class KernelGone(Exception):
    """The student's process has died, or had to be ended; ``reason`` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass
class CellResult:
    """What came of a cell.

    Args:
        outputs: in nbformat's form.
        error: the exception that ended it, "NameError: …", or "".
        line: where in the cell, from 1; 0 if it is not known.
        stopped: why it was not run to its end, or "".
        cut: whether there was more output than is kept.
    """

    outputs: list[dict] = field(default_factory=list)
    error: str = ""
    line: int = 0
    stopped: str = ""
    cut: bool = False


@dataclass(frozen=True)
class Found:
    """What a name of the student's stands for.

    Args:
        kind: "function", "class", "data" or "missing".
        name: what the object calls itself.
        handle: the number that it is asked by, if it can be called.
        value: the data.
    """

    kind: str
    name: str = ""
    handle: int = 0
    value: Data = None


@dataclass(frozen=True)
class _Reply:
    """What came back: a value or an error, and whether it was late."""

    value: Data = None
    error: StudentError | None = None
    late: bool = False


class _Unasked(Exception):
    """The reply has not the form that was asked for."""


class Kernel:
    """A student's process.

    Args:
        cage: holds the process, in which ``autograder.boundary.student.serve`` runs.
        limits: of time and size.
        end: when it is ended at the latest, by ``time.monotonic()``; without it, what
            the limits say, from now on.
        answer: answers questions that the process asks before it replies; without it,
            a question is a reply that was not asked for.

    Attributes:
        stopped: what was asked and not answered in time, or not asked for that reason.
    """

    def __init__(
        self,
        cage: Cage,
        limits: Limits,
        end: float | None = None,
        answer: Callable[[Data], Data] | None = None,
    ) -> None:
        self._cage, self._limits, self._answer_to = cage, limits, answer
        self._last = time.monotonic() + limits.wall_seconds if end is None else end
        self.stopped: list[str] = []
        self._names: dict[int, str] = {}  # by which handles were looked up
        self._endless: set[str] = set()  # names whose calls have met their limit
        self._clock = Clock(cage.process)
        self._channel = Channel(cage.socket, limit=limits.message_bytes + 2**20)
        self._left, self._room = limits.notebook_seconds, limits.output_bytes
        self._gone = ""
        self._dropped: list[int] = []
        self.requests = 0  # that were made: what was told before one may have changed
        self._abandoned: set[str] = set()  # numbers of replies that nobody waits for
        self._request({"do": "begin", "message_bytes": limits.message_bytes}, START)
        self._left = limits.notebook_seconds  # the start was not the notebook's

    @property
    def seconds_left(self) -> float:
        """What is left of the notebook's time."""
        return max(0.0, self._left)

    def run_cell(self, code: str) -> CellResult:
        """Run a cell.

        Raises:
            KernelGone: the process died, or could not be interrupted.
        """
        seconds = min(self._limits.cell_seconds, self._left)
        if seconds <= 0:
            whole = f"{self._limits.notebook_seconds:g}"
            return CellResult(stopped=f"not run: the notebook had used its {whole} s")
        room = max(0, min(self._limits.output_bytes_cell, self._room))
        request = {"do": "cell", "code": code, "output_bytes": room}
        reply = self._request(request, seconds)
        if reply.error:  # its own code failed, not the student's
            return CellResult(error=str(reply.error)[: ERROR_SIZES[1]])
        with self._checked():
            outputs = _outputs_of(reply.value, room)
            was_cut = outputs.cut or reply.value["cut"] is True
            _handle(reply.value.get("line"))
        self._room -= outputs.size
        error, line = reply.value["error"], reply.value["line"]
        result = CellResult(outputs.as_list(), error, line, cut=was_cut)
        if reply.late:
            result.stopped = f"stopped after {seconds:.3g} seconds"
            _say_why(result)
        return result

    def remember(self) -> int | None:
        """Let the process keep what its names stand for now.

        Returns:
            The moment's number; None if the process could not keep it.

        Raises:
            KernelGone: it died, or could not be interrupted.
        """
        reply = self._request({"do": "remember"}, self._limits.call_seconds)
        if reply.error:
            return None
        with self._checked():
            _handle(reply.value)
        return reply.value

    def go_back(
        self, moment: int | None, names: Sequence[str] = ()
    ) -> dict[str, Found] | None:
        """Let the names stand for what they stood for at a moment.

        Args:
            moment: its number.
            names: some to look at on the way.

        Returns:
            What these stand for, as far as that can be told; None if the moment was
            not kept, or if going back failed.

        Raises:
            KernelGone: the process died, or could not be interrupted.
        """
        if moment is None:
            return None
        request = {"do": "go_back", "moment": moment, "names": list(names)}
        reply = self._request(request, self._limits.call_seconds)
        return None if reply.error else self._found(names, reply.value)

    def _found(self, names: Sequence[str], reply: Data) -> dict[str, Found]:
        with self._checked():
            _expect(type(reply) is list and len(reply) == len(names))
            pairs = zip(names, reply, strict=True)
            found = {name: _found(each) for name, each in pairs if each is not None}
        self._names |= {each.handle: n for n, each in found.items() if each.handle}
        return found

    def look(self, name: str) -> Found:
        """Ask what a name stands for.

        Raises:
            StudentError: the student's process could not say.
            KernelGone: it died, or could not be interrupted.
        """
        reply = self._answer(f"the value of {name}", {"do": "look", "name": name})
        with self._checked():
            found = _found(reply)
        if found.handle:
            self._names[found.handle] = name
        return found

    def ask(
        self,
        method: str,
        handle: int,
        args: tuple = (),
        kwargs: dict | None = None,
        forbidden: tuple[str, ...] = (),
    ) -> Data:
        """Ask the student's process to run a method of the interface.

        Args:
            method: its name, such as "__call__" or "build".
            handle: the number of a ``Found``, or what "build" returned.
            args: data, or ``Named``.
            kwargs: the same.
            forbidden: names that the student's code may not use.

        Raises:
            StudentError: the student's code raised, or did not return; or it was not
                called, because it did not return before.
            KernelGone: the process died, or could not be interrupted.
        """
        if self._left <= 0:
            text = (
                f"the notebook had used its {self._limits.notebook_seconds:g} seconds"
            )
            raise StudentError("endless", text)
        dropped, self._dropped = self._dropped, []
        request = {
            "do": "ask",
            "method": method,
            "handle": handle,
            "args": list(args),
        }
        rest = {"kwargs": kwargs, "forbidden": list(forbidden), "drop": dropped}
        request |= {key: value for key, value in rest.items() if value}
        value = self._answer(self.name(handle), request)
        with self._checked():
            _FORMS[method](value)
        if method in ("build", "methods"):
            handles = value if method == "methods" else value[:1]
            self._names |= dict.fromkeys(handles, self.name(handle))
        return value

    def name(self, handle: int) -> str:
        """Return the name that was looked up to get a handle."""
        return self._names.get(handle, "it")

    def give_up(self, name: str, why: str) -> None:
        """Ask no more for calls of what was looked up by a name."""
        self._endless.add(name)
        self.stopped.append(f"{name} {why}")

    def try_again(self, names: Set[str]) -> None:
        """Ask again for calls of names that a cell has bound anew."""
        self._endless -= names

    def _answer(self, name: str, request: dict) -> Data:
        """Have a name's code run, unless it has not come to an end before."""
        if name in self._endless:
            self.stopped.append(f"{name} was not called again")
            text = "it had not returned before, and was not called again"
            raise StudentError("endless", text, name)
        seconds = self._limits.call_seconds
        if self._endless:
            seconds = min(seconds, ENOUGH)
            request["endless"] = sorted(self._endless)
        reply = self._request(request, seconds)
        error = reply.error
        if reply.late:
            why = f"had not returned after {seconds:g} seconds"
            self.give_up(name, why)
            known = error if error and error.kind == "endless" else _nowhere(name)
            place = known.call, known.function, known.line
            raise StudentError("endless", f"it {why}", *place)
        if error:
            if error.kind == CALLS_ENDLESS:
                self.stopped.append(f"{name} calls what was not called again")
            raise error
        return reply.value

    def give(self, descriptions: dict[str, Data]) -> None:
        """Put stand-ins for right answers into the student's process.

        Args:
            descriptions: by name, as autograder.boundary.given takes them.

        Raises:
            StudentError: the process could not take them.
        """
        request = {"do": "give", "given": descriptions}
        reply = self._request(request, self._limits.call_seconds)
        if reply.error:
            raise reply.error
        with self._checked():
            _nothing(reply.value)

    def drop(self, handle: int) -> None:
        """Let the student's process forget an object, with the next request."""
        self._names.pop(handle, None)
        self._dropped.append(handle)

    def _request(self, request: dict, seconds: float) -> _Reply:
        """Send a request, and read the reply."""
        if self._gone:
            raise KernelGone(self._gone)
        number, began = secrets.token_hex(16), self._clock.now()
        self.requests += 1
        try:
            reply, late = self._exchange(request | {"number": number}, began, seconds)
        except ChannelError as error:
            self._end(_WORDS[error.kind])
        finally:
            self._left -= self._clock.now() - began
        with self._checked():
            _expect(type(reply) is dict and reply.get("number") == number)
            facts = reply.get("error")
            if facts is not None:
                return _Reply(error=error_of(facts), late=late)
            return _Reply(reply.get("value"), late=late)

    def _exchange(
        self, request: dict, began: float, seconds: float
    ) -> tuple[Data, bool]:
        """Send a request, and wait for the reply; say whether it was late."""
        self._channel.send(request, min(time.monotonic() + SENDING, self._last))
        try:
            while True:
                reply, late = self._receive(began + seconds)
                number = reply.get("number") if type(reply) is dict else None
                if self._answers(reply, request["number"], late):
                    continue
                if type(number) is not str or number not in self._abandoned:
                    return reply, late
                self._abandoned.remove(number)
        except ChannelError:
            raise
        except BaseException:  # an alarm of the caller's: the next question must work
            self._abandoned.add(request["number"])
            self._cage.interrupt()
            raise

    def _answers(self, reply: Data, number: str, late: bool) -> bool:
        """Answer a question that was asked in time; tell whether it was one."""
        is_question = type(reply) is dict and "question" in reply
        if self._answer_to is None or not is_question:
            return False
        if late:  # whoever asks can no longer be interrupted
            raise ChannelError("late")
        if reply.get("number") == number:
            answer = self._answer_to(reply["question"])
            last = min(time.monotonic() + SENDING, self._last)
            self._channel.send({"answer": answer}, last)
        return True

    def _receive(self, deadline: float) -> tuple[Data, bool]:
        """Wait for a reply; interrupt at the deadline, and more than once."""
        with _unless_late():
            return self._wait(deadline), False
        last = self._clock.now() + GRACE
        while True:
            self._cage.interrupt()
            until = min(self._clock.now() + GRACE / 3, last)
            with _unless_late(until < last):
                return self._wait(until), True

    def _wait(self, deadline: float) -> Data:
        """Wait for a reply until a time of the process's own clock."""
        while True:
            left, now = deadline - self._clock.now(), time.monotonic()
            if now >= self._last:
                raise ChannelError("over")
            with _unless_late(left > 0):
                return self._channel.receive(min(now + max(left, 0.0), self._last))

    @contextlib.contextmanager
    def _checked(self) -> Iterator[None]:
        """End the process if what it has sent is not what was asked for."""
        try:
            yield
        except (_Unasked, BoundaryError):
            self._end(_WORDS["not data"])

    def _end(self, reason: str) -> None:
        """End the process; raise ``KernelGone``."""
        patience = GRACE if reason == _WORDS["closed"] else 0.0
        self._gone = self._cage.end(patience) or reason
        raise KernelGone(self._gone) from None


_WORDS = {
    "closed": "it ended itself",
    "late": DEAF,
    "over": WALL,
    "too large": TOO_LARGE,
    "not data": "it sent what was not asked for",
}


@contextlib.contextmanager
def _unless_late(really: bool = True) -> Iterator[None]:
    """Go on after the block if nothing has come in time."""
    try:
        yield
    except ChannelError as error:
        if error.kind != "late" or not really:
            raise


def _expect(fits: bool) -> None:
    if not fits:
        raise _Unasked


def _say_why(result: CellResult) -> None:
    """Say what the student's side does not know: why it was interrupted."""
    for output in result.outputs:
        if output.get("ename") == "KeyboardInterrupt":
            output["evalue"] = result.stopped


def _nowhere(name: str) -> StudentError:
    """An error of which only the name is known of what was called."""
    return StudentError("endless", "", name)


def error_of(facts: Any) -> StudentError:
    """Make an exception of what a student's process says of one."""
    _expect(type(facts) is tuple and len(facts) == len(ERROR_SIZES))
    _expect(all(type(fact) is str for fact in facts))
    pairs = zip(facts, ERROR_SIZES, strict=True)
    return StudentError(*(fact[:size] for fact, size in pairs))


def _outputs_of(reply: Any, room: int) -> Outputs:
    _expect(type(reply) is dict and type(reply.get("outputs")) is list)
    _expect(type(reply.get("error")) is str and len(reply["error"]) <= ERROR_SIZES[1])
    outputs = Outputs(room)
    for each in reply["outputs"]:
        outputs.add(each)
    return outputs


def _found(reply: Any) -> Found:
    _expect(type(reply) is dict)
    kind, name, handle = (reply.get(key) for key in ("kind", "name", "handle"))
    if kind == "missing":
        return Found(kind)
    if kind == "data":
        return Found(kind, value=reply.get("value"))
    _expect(kind in ("function", "class") and type(handle) is int)
    _expect(type(name) is str and len(name) <= ERROR_SIZES[0])
    return Found(kind, name, handle)


def _any_data(value: Data) -> None:
    _expect(type(value) is not Gradients)


def _several(value: Data) -> None:
    """Expect at least one answer; the last may be an error's facts."""
    _expect(type(value) is list and value != [])
    for place, each in enumerate(value, start=1):
        _expect(type(each) is tuple and len(each) == 2 and type(each[0]) is bool)
        is_right, found = each
        if is_right:
            _any_data(found)
        else:
            _expect(place == len(value))
            error_of(found)


def _gradients(value: Data) -> None:
    _expect(type(value) is Gradients)


def _sizes(value: Data) -> None:
    _expect(type(value) is tuple and len(value) == 2 and type(value[0]) is tuple)
    sizes = (*value[0], value[1])
    _expect(len(sizes) <= DIMENSIONS + 1)
    _expect(all(type(size) is int and 0 <= size < 2**63 for size in sizes))


def _state(value: Data) -> None:
    _expect(type(value) is dict and len(value) <= PARAMETERS)
    for name, tensor in value.items():
        _expect(type(name) is str and len(name) <= PARAMETER_NAME)
        _expect(type(tensor) is torch.Tensor)


def _names(value: Data) -> None:
    _expect(type(value) is list and len(value) <= PARAMETERS)
    _expect(all(type(name) is str and len(name) <= PARAMETER_NAME for name in value))


def _nothing(value: Data) -> None:
    _expect(value is None)


def _handle(value: Data) -> None:
    _expect(type(value) is int and 0 <= value < 2**63)


def _numbers(value: Data) -> None:
    """Expect handles, or places of results: few, and none negative."""
    _expect(type(value) is list and len(value) <= PARAMETERS)
    for each in value:
        _handle(each)


def _built(value: Data) -> None:
    """Expect a handle, and what is told of the module: its state, and names."""
    _expect(type(value) is tuple and len(value) == 3)
    handle, state, names = value
    _handle(handle)
    if state is not None:
        _state(state)
        _names(names)


_FORMS = {  # of what each method returns
    "__call__": _any_data,
    "several": _several,
    "gradients": _gradients,
    "memory": _sizes,
    "shared": _numbers,
    "methods": _numbers,
    "state_dict": _state,
    "parameter_names": _names,
    "buffer_names": _names,
    "load_state_dict": _nothing,
    "train": _nothing,
    "build": _built,
}
