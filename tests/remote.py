"""The interface with another process behind it, to prove that checks pass data only.

This is no sandbox: it shows that nothing but plain data has to cross, in either
direction, for every check to reach the same verdict as in an open notebook.
"""

import multiprocessing
import pickle
from dataclasses import dataclass

import torch

from autograder.interface import (
    Gradients,
    LocalFunction,
    LocalModule,
    Opaque,
    StudentError,
    StudentFunction,
    StudentInstance,
    StudentModule,
)

PLAIN = (type(None), bool, int, float, str)


@dataclass(frozen=True)
class Named:
    """Stands for an object in the student's process that a check passes back to it."""

    key: str


def only_data(value: object) -> object:
    """Return the value if it is data all the way down; TypeError if not."""
    if isinstance(value, (list, tuple)):
        for item in value:
            only_data(item)
    elif isinstance(value, dict):
        only_data([*value.keys(), *value.values()])
    elif isinstance(value, Gradients):
        only_data([value.value, list(value.inputs), value.parameters])
    elif type(value) not in (*PLAIN, torch.Tensor, Opaque, Named):
        raise TypeError(f"a {type(value)} crossed between check and student")
    return value


def serve(connection, chapter: str, overlay: tuple[str, int] | None) -> None:
    """Be the student's process: hold the notebook's names, answer requests."""
    from tests import chapters

    torch.set_num_threads(1)
    names = chapters.solved(chapter)
    if overlay:
        entry = chapters.bank(chapter)[overlay[1]]
        names[overlay[0]] = entry.answer
    objects = dict(names)
    while request := connection.recv():
        try:
            reply = ("value", answer(objects, *request))
        except StudentError as error:
            facts = error.kind, error.text, error.call, error.function, error.line
            reply = ("error", facts)
        connection.send(pickle.dumps(reply))


def answer(objects: dict, method: str, name: str, args: tuple, kwargs: dict) -> object:
    """Carry out one request."""
    if method == "build":
        instance = LocalModule(objects[name], name).build(*args, **kwargs)
        key = f"{name}#{len(objects)}"
        objects[key] = instance
        return key
    args = [_found(objects, value) for value in args]
    kwargs = {key: _found(objects, value) for key, value in kwargs.items()}
    return getattr(_function(objects, name), method)(*args, **kwargs)


def _function(objects: dict, key: str) -> StudentFunction:
    target = objects[key]
    if isinstance(target, StudentFunction):
        return target
    return LocalFunction(target, key)


def _found(objects: dict, value: object) -> object:
    return _function(objects, value.key) if isinstance(value, Named) else value


def _name(value: object) -> object:
    return Named(value.key) if isinstance(value, RemoteFunction) else value


class Process:
    """A student's process with a solved notebook in it."""

    def __init__(self, chapter: str, overlay: tuple[str, int] | None = None) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        arguments = (theirs, chapter, overlay)
        self.process = context.Process(target=serve, args=arguments, daemon=True)
        self.process.start()

    def ask(self, method: str, name: str, args: tuple = (), kwargs: dict | None = None):
        """Send a request, wait for the reply; data only in both directions."""
        args = tuple(_name(value) for value in args)
        kwargs = {key: _name(value) for key, value in (kwargs or {}).items()}
        self.connection.send((method, name, only_data(args), only_data(kwargs)))
        kind, value = pickle.loads(self.connection.recv())
        if kind == "error":
            raise StudentError(*value)
        return only_data(value)

    def close(self) -> None:
        """End the process."""
        self.connection.send(None)
        self.process.join(10)


class RemoteFunction(StudentFunction):
    """A function in the student's process."""

    def __init__(self, process: Process, key: str) -> None:
        self.process, self.key = process, key
        self.name = key.partition("#")[0]

    def __call__(self, *args, **kwargs):
        return self.process.ask("__call__", self.key, args, kwargs)

    def gradients(self, *args, **kwargs):
        return self.process.ask("gradients", self.key, args, kwargs)


class RemoteInstance(RemoteFunction, StudentInstance):
    """A built module in the student's process."""

    def buffer_names(self):
        return self.process.ask("buffer_names", self.key)

    def parameter_names(self):
        return self.process.ask("parameter_names", self.key)

    def state_dict(self):
        return self.process.ask("state_dict", self.key)

    def load_state_dict(self, state):
        self.process.ask("load_state_dict", self.key, (state,))

    def train(self, mode: bool = True):
        self.process.ask("train", self.key, (mode,))


class RemoteModule(StudentModule):
    """A class in the student's process."""

    def __init__(self, process: Process, name: str) -> None:
        self.process, self.name = process, name

    def build(self, *args, **kwargs):
        return RemoteInstance(
            self.process, self.process.ask("build", self.name, args, kwargs)
        )


def remote_names(process: Process, names: dict) -> dict:
    """Put proxies in the place of the notebook's functions and classes."""
    proxies = dict(names)
    for name, value in names.items():
        if isinstance(value, type) and issubclass(value, torch.nn.Module):
            proxies[name] = RemoteModule(process, name)
        elif callable(value) and getattr(value, "__module__", None) == "__main__":
            proxies[name] = RemoteFunction(process, name)
    return proxies
