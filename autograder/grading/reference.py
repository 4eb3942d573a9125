"""The right answers of a paper, in a process of their own that takes only data.

>>> with Reference(right_answers) as reference:
...     reference.ask({"do": "call", "name": "softmax", "args": (scores,), ...})

It is trusted, but its arguments are a student's: a mask for 10⁹ tokens, a loop over
10¹² places. So it may take little memory and time, cannot open a file or start a
process, and whoever asks kills it when it does not answer. Each question stands alone:
nothing is kept from one to the next, so that no submission can prepare anything for
another.
"""

import builtins
import contextlib
import inspect
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

import autograder
from autograder.boundary.channel import Channel, ChannelError
from autograder.boundary.data import BoundaryError
from autograder.boundary.given import is_plain, tensors_of
from autograder.grading.forked import Forked
from autograder.grading.limits import MIB
from autograder.interface import Data, to_data

MODULE = "autograder.grading.reference"
START_SECONDS = 180  # PyTorch's import on a slow disk
SECONDS = 5  # of processor time for a question; most take a millisecond
LONGEST = 40  # seconds for it on a busy machine
MEMORY = 320 * MIB  # beyond what the process takes when it has read the answers
ELEMENTS = 4_000_000  # of all tensors of an answer
KEPT = (
    "PATH",
    "LD_LIBRARY_PATH",
    "LANG",
    "LC_ALL",
    "VIRTUAL_ENV",
)  # of the environment


class NoReferenceError(Exception):
    """The process does not start or does not answer; the message says why."""


@dataclass(frozen=True)
class RightAnswers:
    """The code of a paper's right answers.

    Args:
        parts: the reference modules of the chapters before, by file name.
        cells: of the notebook, in order: what belongs to the model, and all answers.
        names: what may be asked for.
    """

    parts: dict[str, str]
    cells: tuple[str, ...]
    names: tuple[str, ...]


class Reference:
    """A handle of the process; it is started when somebody asks, and again if killed.

    Args:
        answers: what it knows.
    """

    def __init__(self, answers: RightAnswers) -> None:
        self.answers = answers
        self._process: subprocess.Popen | Forked | None = None
        self._channel: Channel | None = None
        self._descriptions: dict[str, Data] = {}

    def __enter__(self) -> "Reference":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def describe(self) -> dict[str, Data]:
        """Return what there is to know of each name that can be given, but no code.

        Raises:
            NoReferenceError: the process cannot be started.
        """
        self._start()
        return self._descriptions

    def ask(self, question: dict) -> dict:
        """Ask a question whose form has been checked.

        Returns:
            "seconds" of processor time, and either what was asked for, or "raised", the
            name of an exception, or "refused", why there is no answer.

        Raises:
            NoReferenceError: it did not answer, and was ended.
        """
        self._start()
        return self._exchange(question, LONGEST)

    def close(self) -> None:
        """End the process."""
        if self._process:
            self._process.kill()
            self._process.wait()
        if self._channel:
            self._channel.close()
        self._process = self._channel = None

    def _start(self) -> None:
        if self._process and self._process.poll() is None:
            return
        self.close()
        with tempfile.TemporaryDirectory(prefix="answers-") as folder:
            ours, theirs = socket.socketpair()
            with theirs:
                self._process = _forked(theirs, folder) or _started(theirs, folder)
            self._channel = Channel(ours)
            known = {
                "parts": self.answers.parts,
                "cells": list(self.answers.cells),
                "names": list(self.answers.names),
            }
            self._descriptions = self._exchange(known, START_SECONDS)

    def _exchange(self, message: Data, seconds: float) -> Any:
        deadline = time.monotonic() + seconds
        assert self._channel is not None  # `_start` has opened it
        try:
            self._channel.send(message, deadline)
            return self._channel.receive(deadline)
        except (ChannelError, BoundaryError) as error:
            self.close()
            raise NoReferenceError(str(error)) from None
        except BaseException:  # an alarm of the caller's: an answer may be on its way
            self.close()
            raise


def _started(sock: socket.socket, folder: str) -> subprocess.Popen:
    """Start the process from nothing, which takes a second or two."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", MODULE, str(sock.fileno())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=_environment(),
        cwd=folder,
        pass_fds=[sock.fileno()],
    )


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    root = str(Path(autograder.__file__).parents[1])
    return kept | threads | {"PYTHONPATH": root, "PYTHONDONTWRITEBYTECODE": "1"}


# --- forked, where PyTorch is imported already ----------------------------------------

_asked: socket.socket | None = None  # of the process to fork from


def prepare() -> None:
    """Keep a copy of this process, from which to fork what would start slowly.

    Call it while this process has one thread, and has differentiated nothing.
    """
    global _asked
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork() == 0:
        try:
            _fork_when_asked(theirs.detach())
        finally:
            os._exit(1)
    theirs.close()
    _asked = ours


def _forked(sock: socket.socket, folder: str) -> Forked | None:
    """Fork the process, if there is one to fork from."""
    if _asked is None:
        return None
    try:
        socket.send_fds(_asked, [folder.encode()], [sock.fileno()])
        return Forked(int(_asked.recv(32)))
    except (OSError, ValueError):  # it is gone, or what it forked is
        return None


def _fork_when_asked(asked: int) -> None:
    """Fork for each message: the folder to work in, and the socket to answer on."""
    os.closerange(3, asked)
    os.closerange(asked + 1, os.sysconf("SC_OPEN_MAX"))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    for name in list(sys.modules):  # the answers bring their own
        if name.partition(".")[0] == "transformer":
            del sys.modules[name]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    with socket.socket(fileno=asked) as control:
        while True:
            folder, files, _, _ = socket.recv_fds(control, 4096, 1)
            if not folder:
                os._exit(0)
            number = os.fork()
            if number == 0:
                control.close()
                os.chdir(folder.decode())
                main(socket.socket(fileno=files[0]))
                os._exit(0)
            os.close(files[0])
            control.send(str(number).encode())


# --- in the process -------------------------------------------------------------------


class _TookTooLong(BaseException):
    """A question has used its time."""


def main(sock: socket.socket) -> None:
    """Read the answers, then answer questions until the other side closes."""
    channel = Channel(sock)
    torch.set_num_threads(1)
    known = channel.receive()
    names = _run(known["parts"], known["cells"])
    kept = {name: names[name] for name in known["names"] if _can_be_given(names[name])}
    _warm_up()
    _give_up_what_is_not_needed()
    channel.send({name: _describe(target) for name, target in kept.items()})
    signal.signal(signal.SIGPROF, _ring)
    with contextlib.suppress(ChannelError):
        while True:
            channel.send(_answer(kept, channel.receive()))


def _run(parts: dict[str, str], cells: list[str]) -> dict[str, Any]:
    """Run the cells beside the parts that they import, in the current folder."""
    for name, text in parts.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    sys.path.insert(0, os.getcwd())
    names: dict[str, Any] = {"__name__": "answers"}
    for text in cells:
        exec(text, names)
    return names


def _can_be_given(target: Any) -> bool:
    if isinstance(target, type):
        return issubclass(target, nn.Module)
    return inspect.isfunction(target)


def _warm_up() -> None:
    """Do once what reads files the first time only."""
    weight = torch.ones(2, 2, requires_grad=True)
    layer = nn.Dropout(0.5).train()
    result = layer(weight @ weight).softmax(-1)
    torch.autograd.grad((result,), (weight,), (result.detach(),), allow_unused=True)


def _give_up_what_is_not_needed() -> None:
    """Take little more memory than now; open no file, write none, start no process."""
    shutil.rmtree(os.getcwd(), ignore_errors=True)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    memory = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    for what in (resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC, resource.RLIMIT_CORE):
        resource.setrlimit(what, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))


def _ring(number: int, frame: object) -> None:
    raise _TookTooLong


def _describe(target: Any) -> dict:
    about: dict[str, Any] = {"kind": "function", "parameters": _parameters(target)}
    if isinstance(target, type):
        about |= {"kind": "class", "methods": _methods(target)}
    return about


def _parameters(target: Any) -> list[tuple]:
    """Return name, kind and default of each parameter; for no default, nothing."""
    found = []
    for each in inspect.signature(target).parameters.values():
        default = () if each.default is each.empty else (to_data(each.default),)
        found.append((each.name, int(each.kind), default))
    return found


def _methods(kind: type) -> dict[str, list]:
    """Describe the methods that a module's own classes define."""
    own = [each for each in kind.__mro__ if not each.__module__.startswith("torch.")]
    return {
        name: _parameters(method)
        for each in reversed(own)
        for name, method in vars(each).items()
        if inspect.isfunction(method) and not name.startswith("_")
    }


def _answer(kept: dict[str, Any], question: dict) -> dict:
    """Answer a question; say no more of what goes wrong than its kind."""
    began = time.process_time()
    try:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            found = _WAYS[question["do"]](kept[question["name"]], question)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except _Refused as error:
        found = {"refused": str(error)}
    except _TookTooLong:
        found = {"refused": "it takes too long"}
    except MemoryError:
        found = {"refused": "it takes too much memory"}
    except Exception as error:
        kind = type(error).__name__
        builtin = getattr(builtins, kind, None) is type(error)
        found = {"raised": kind if builtin else "RuntimeError"}
    return found | {"seconds": time.process_time() - began}


class _Refused(Exception):
    """There is no answer to a question; the text says why."""


def _build(target: type, question: dict) -> dict:
    """Build a module; describe all that is in it."""
    torch.manual_seed(question["seed"])
    return {"modules": _inside(_built(target, question))}


def _built(target: type, question: dict) -> nn.Module:
    args, kwargs = question["build"]
    return target(*args, **kwargs)


def _inside(module: nn.Module) -> dict[str, dict]:
    described = {
        path: {
            "type": type(each).__name__,
            "attributes": dict(_attributes(each)),
            "methods": _methods(type(each)) or _forward(each),
            "parameters": _sendable(dict(each.named_parameters(recurse=False))),
            "buffers": {
                name: (to_data(value), name not in each._non_persistent_buffers_set)
                for name, value in each.named_buffers(recurse=False)
            },
        }
        for path, each in module.named_modules()
    }
    return _sendable(described)


def _forward(module: nn.Module) -> dict[str, list]:
    return {"forward": _parameters(type(module).forward)}


def _attributes(module: nn.Module) -> Iterator[tuple[str, Data]]:
    """Give the plain data that a module has as attributes, such as its heads."""
    for name, value in vars(module).items():
        data = to_data(value)
        if not name.startswith("_") and name != "training" and is_plain(data):
            yield name, data


def _call(target: Any, question: dict) -> dict:
    """Return the value of a call, and which of its tensors have gradients."""
    value, _ = _value(target, question)
    depends = [each.requires_grad for each in tensors_of(value)]
    return {"value": _sendable(value), "depends": depends}


def _pull(target: Any, question: dict) -> dict:
    """Return the gradients of what was wanted, for given ones of the results."""
    value, sources = _value(target, question)
    pairs = [
        (result, cotangent)
        for result, cotangent in zip(
            tensors_of(value), question["cotangents"], strict=True
        )
        if result.requires_grad and cotangent is not None
    ]
    wanted = [source for source in sources if source.requires_grad]
    found: Iterator[torch.Tensor | None] = iter(())
    if pairs and wanted:
        results, cotangents = zip(*pairs, strict=True)
        found = iter(
            torch.autograd.grad(results, wanted, cotangents, allow_unused=True)
        )
    gradients = [next(found, None) if each.requires_grad else None for each in sources]
    return {"gradients": _sendable(gradients)}


def _value(target: Any, question: dict) -> tuple[Any, list[torch.Tensor]]:
    """Call a function, or a method of a module in the student's state.

    Returns:
        The value, and the tensors that it was made of, in the order of the question.
    """
    args, kwargs, state = (question[key] for key in ("args", "kwargs", "state"))
    inputs = list(tensors_of([args, kwargs]))
    wanted = question["wanted"]
    if len(wanted) != len(inputs) + len(state):
        raise _Refused("the question is not whole")
    for tensor, yes in zip(inputs, wanted, strict=False):
        tensor.requires_grad_(yes)
    sources = inputs
    if isinstance(target, type):
        target, owned = _in_state(target, question, wanted[len(inputs) :])
        sources = inputs + owned
    torch.manual_seed(question["seed"])
    with torch.set_grad_enabled(any(wanted)):
        return target(*args, **kwargs), sources


def _in_state(
    target: type, question: dict, wanted: list[bool]
) -> tuple[Callable, list[torch.Tensor]]:
    """Build a module with the student's tensors in it; return a method, and these."""
    module = _built(target, question)
    try:
        module = module.get_submodule(question["path"])
    except AttributeError:
        raise _Refused("there is no such module in it") from None
    owned = dict(module.named_parameters()) | dict(module.named_buffers())
    state = question["state"]
    if state.keys() != owned.keys():
        raise _Refused("its tensors have other names")
    for (name, tensor), yes in zip(state.items(), wanted, strict=True):
        owned[name].data = tensor
        owned[name].requires_grad_(yes)
    for path, each in module.named_modules():
        each.training = question["modes"].get(path, each.training)
    allowed = _methods(type(module)) or ("forward",)
    if question["method"] not in allowed:
        raise _Refused("it has no such method")
    method = module if question["method"] == "forward" else None
    return method or getattr(module, question["method"]), [owned[n] for n in state]


def _sendable(value: Any) -> Data:
    """Turn a value into data, if that is what it is, and not too much of it."""
    if sum(tensor.numel() for tensor in tensors_of(value)) > ELEMENTS:
        raise _Refused("it is too large")
    data = to_data(value)
    if not is_plain(data):
        raise _Refused("it is no data")
    return data


_WAYS = {"build": _build, "call": _call, "pull": _pull}


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
