"""Stand-ins for right answers: they know a name, ask for the rest, and hold no code.

When answers that fail use an earlier one that is wrong, the grader judges them once
more with a right one in its place. That one stays on the trusted side. Here is an
object of its name: a call of it sends the arguments over, as data, and waits for what
comes back. Gradients are asked for in the same way, so that a stand-in can be trained
and differentiated like what it stands for. A module has its parameters and buffers
here, under their own names, and sends them along with every call.

All of this runs beside the student's code, which can reach and change it; who answers
believes none of it (``autograder.grading.given``).
"""

import builtins
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.autograd.function import once_differentiable

from autograder.interface import Data, Opaque, to_data

Ask = Callable[[dict], dict]


class CannotBeGivenError(RuntimeError):
    """A stand-in was used in a way that no question can be made of."""


class _Line:
    """The way to the other side; one question at a time is on it."""

    ask: Ask | None = None
    busy = False


def stand_ins(descriptions: dict[str, dict], ask: Ask) -> dict[str, Any]:
    """Make the objects that stand for right answers.

    Args:
        descriptions: by name: kind, parameters, and of a class its methods.
        ask: sends a question and returns the answer to it.
    """
    _Line.ask = staticmethod(ask)
    makers = {"function": _function, "class": _class}
    return {
        name: makers[about["kind"]](name, about) for name, about in descriptions.items()
    }


# --- questions ------------------------------------------------------------------------


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """Give the tensors in nested lists, tuples and dicts, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_of(item)
    elif isinstance(value, dict):
        yield from tensors_of(list(value.values()))


def with_tensors(value: Data, tensors: Iterator[torch.Tensor]) -> Data:
    """Return data with other tensors in the places of its own."""
    if isinstance(value, torch.Tensor):
        return next(tensors)
    if isinstance(value, (list, tuple)):
        items = [with_tensors(item, tensors) for item in value]
        return items if isinstance(value, list) else tuple(items)
    if isinstance(value, dict):
        return {key: with_tensors(item, tensors) for key, item in value.items()}
    return value


def is_plain(value: Data) -> bool:
    """Tell whether data hold nothing that has stayed on the other side."""
    if isinstance(value, (list, tuple)):
        return all(map(is_plain, value))
    if isinstance(value, dict):
        return is_plain(list(value)) and is_plain(list(value.values()))
    return not isinstance(value, Opaque)


def _asked(question: dict) -> dict:
    """Ask; raise what the right answer raises, in words of our own."""
    name = question["name"]
    if threading.current_thread() is not threading.main_thread() or _Line.busy:
        raise CannotBeGivenError(f"a right {name} answers one question at a time")
    data = {key: to_data(value) for key, value in question.items()}
    if not is_plain(data):
        raise CannotBeGivenError(f"a right {name} takes data only: tensors, numbers …")
    assert _Line.ask is not None  # what asks was made by `stand_ins`
    _Line.busy = True
    try:
        answer = _Line.ask(data)
    finally:
        _Line.busy = False
    if "raised" in answer:
        raise getattr(builtins, answer["raised"])(f"raised by a right {name}")
    if "refused" in answer:
        raise CannotBeGivenError(f"a right {name} gave no answer: {answer['refused']}")
    return answer


def _call(target: dict, args: tuple, kwargs: dict, state: dict) -> Any:
    """Ask for the value of a call, which can be differentiated if its parts can."""
    given = {"args": args, "kwargs": kwargs, "state": state}
    tensors = list(tensors_of(list(given.values())))
    wanted = [torch.is_grad_enabled() and each.requires_grad for each in tensors]
    question = target | given | {"do": "call", "wanted": wanted}
    answer = _asked(question)
    value, depends = answer["value"], answer["depends"]
    if not any(depends):
        return value
    question = {key: to_data(each) for key, each in question.items()}
    results = list(tensors_of(value))
    return with_tensors(
        value, iter(_Answered.apply(question, results, depends, *tensors))
    )


class _Answered(torch.autograd.Function):
    """The results of a call, whose gradients are asked for when they are needed."""

    @staticmethod
    def forward(
        ctx: Any, question: dict, results: list, depends: list, *tensors: torch.Tensor
    ) -> tuple:
        ctx.question = question
        ctx.set_materialize_grads(False)
        constant = [each for each, yes in zip(results, depends, strict=True) if not yes]
        ctx.mark_non_differentiable(*constant)
        return tuple(results)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> tuple:
        question = ctx.question | {"do": "pull", "cotangents": cotangents}
        return None, None, None, *_asked(question)["gradients"]


# --- functions and classes ------------------------------------------------------------


def _signature(parameters: list[tuple]) -> inspect.Signature:
    """Build a signature of names, kinds and defaults."""
    return inspect.Signature(
        [
            inspect.Parameter(
                name,
                inspect._ParameterKind(kind),
                default=default[0] if default else inspect.Parameter.empty,
            )
            for name, kind, default in parameters
        ]
    )


def _function(name: str, about: dict) -> Callable:
    signature = _signature(about["parameters"])

    def given(*args: Any, **kwargs: Any) -> Any:
        signature.bind(*args, **kwargs)
        return _call({"name": name, "seed": 0}, args, kwargs, {})

    return _named(given, name, signature)


def _named(function: Callable, name: str, signature: inspect.Signature) -> Callable:
    """Give a function the name and the signature of the one that it stands for."""
    function.__name__ = function.__qualname__ = name
    vars(function)["__signature__"] = signature
    return function


class _Module(nn.Module):
    """Stands for a module, or for one inside of it.

    ``_given`` is what it is asked by: the class's name, the arguments that it was built
    with, and the path to the inner module; ``_own`` the names of its tensors.
    """

    def __init__(self) -> None:
        super().__init__()
        self._given: dict[str, Any] = {}
        self._own: list[str] = []

    def _ask_method(self, method: str, args: tuple, kwargs: dict) -> Any:
        tensors = dict(self.named_parameters()) | dict(self.named_buffers())
        if not set(self._own) <= tensors.keys():
            raise CannotBeGivenError(f"tensors of a right {self._given['name']} lack")
        state = {name: tensors[name] for name in self._own}
        modes = {path: module.training for path, module in self.named_modules()}
        seed = _seed() if self.training else 0
        target = self._given | {"method": method, "modes": modes, "seed": seed}
        return _call(target, args, kwargs, state)


def _seed() -> int:
    """Draw a number: what is drawn over there then depends on this side's seed."""
    return int(torch.randint(2**31, ()))


def _class(name: str, about: dict) -> type:
    signature = _signature(about["parameters"])

    def build(self: _Module, *args: Any, **kwargs: Any) -> None:
        signature.bind(*args, **kwargs)
        _Module.__init__(self)
        given = {"name": name, "build": (args, kwargs)}
        answer = _asked(given | {"do": "build", "seed": _seed()})
        _fill(self, given, answer["modules"])

    own = {"__init__": build, "__signature__": signature}
    return type(name, (_Module,), own | _methods(about["methods"]))


def _methods(described: dict[str, list]) -> dict[str, Callable]:
    return {name: _method(name, each) for name, each in described.items()}


def _method(name: str, parameters: list[tuple]) -> Callable:
    signature = _signature(parameters)

    def given(self: _Module, *args: Any, **kwargs: Any) -> Any:
        signature.bind(self, *args, **kwargs)
        return self._ask_method(name, args, kwargs)

    return _named(given, name, signature)


def _fill(module: nn.Module, given: dict, described: dict[str, dict]) -> None:
    """Put parameters, buffers, plain attributes and inner modules where they belong."""
    for path, about in described.items():
        parent, _, last = path.rpartition(".")
        each = module
        if path:
            each = _INNER.get(about["type"], _inner)(about)
            module.get_submodule(parent).add_module(last, each)
        for name, value in about["attributes"].items():
            setattr(each, name, value)
        for name, value in about["parameters"].items():
            each.register_parameter(name, nn.Parameter(value))
        for name, (value, persistent) in about["buffers"].items():
            each.register_buffer(name, value, persistent=persistent)
    for path in described:
        each = module.get_submodule(path)
        if isinstance(each, _Module):
            own = [*dict(each.named_parameters()), *dict(each.named_buffers())]
            each._given, each._own = given | {"path": path}, own


def _inner(about: dict) -> nn.Module:
    return type(about["type"], (_Module,), _methods(about["methods"]))()


_INNER = {
    "ModuleList": lambda about: nn.ModuleList(),
    "Identity": lambda about: nn.Identity(),
    "Dropout": lambda about: nn.Dropout(),
}
