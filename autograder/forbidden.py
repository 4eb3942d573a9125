"""Names that an exercise forbids: PyTorch's own attention where attention is written.

While a check runs a student's code, what the exercise forbids raises, whichever way it
was reached. A function that PyTorch has compiled is refused by PyTorch's dispatcher,
which every call of it passes: through another name, as a tensor's method, from a
compiled script. One that is written in Python gets another body, so that every
reference to it meets that one. Before and after the student's turn all is as it was: a
check may compare with the very function that it forbids.

This is a reminder, not a wall: whoever copies the source of PyTorch's Python layers, or
compiles it in a cell before, has written it as far as anybody can tell.
"""

import contextlib
import functools
import importlib
import types
import warnings
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

import torch

SCALED_DOT_PRODUCT = "torch.nn.functional.scaled_dot_product_attention"
MULTI_HEAD = "torch.nn.MultiheadAttention"
ENCODER_LAYER = "torch.nn.TransformerEncoderLayer"
DECODER_LAYER = "torch.nn.TransformerDecoderLayer"
TRANSFORMER = "torch.nn.Transformer"
SOFTMAX = "torch.softmax"
LAYER_NORM = "torch.nn.functional.layer_norm"
RMS_NORM = "torch.nn.functional.rms_norm"
GELU = "torch.nn.functional.gelu"

# A name stands for functions of the dispatcher and for what is written in Python. Of a
# function that is made of others, its inner steps stand here: they can be called alone.
_ATTENTION = (
    "scaled_dot_product_attention",
    "_scaled_dot_product_attention_math",
    "_scaled_dot_product_flash_attention_for_cpu",
)
_COMPILED = {
    SCALED_DOT_PRODUCT: _ATTENTION,
    MULTI_HEAD: ("_native_multi_head_attention",),
    ENCODER_LAYER: ("_transformer_encoder_layer_fwd",),
    SOFTMAX: (
        *("softmax.int", "_softmax", "_softmax.out"),
        *("log_softmax.int", "_log_softmax", "_log_softmax.out"),
        *("_safe_softmax", "_masked_softmax", "_sparse_softmax", *_ATTENTION),
    ),
    LAYER_NORM: ("layer_norm", "native_layer_norm", "native_layer_norm.out"),
    RMS_NORM: ("rms_norm", "_fused_rms_norm"),
    GELU: ("gelu", "gelu.out", "gelu_"),
}
_WRITTEN = {
    SCALED_DOT_PRODUCT: ("torch.nn.attention.flex_attention.flex_attention",),
    MULTI_HEAD: (MULTI_HEAD, "torch.nn.functional.multi_head_attention_forward"),
    ENCODER_LAYER: (ENCODER_LAYER, "torch.nn.TransformerEncoder"),
    DECODER_LAYER: (DECODER_LAYER, "torch.nn.TransformerDecoder"),
    TRANSFORMER: (TRANSFORMER,),
}

# Of the keys by which the dispatcher chooses, those that a call meets first: inside
# vmap and grad, with gradients or without, in inference mode.
_KEYS = ("FuncTorchDynamicLayerFrontMode", "Autograd", "AutogradNestedTensor", "CPU")


class _Refused(Exception):
    """A forbidden name was used."""


_used: list[str] = []  # forbidden names, since the student's turn began
_held: list[str] = []  # names that are forbidden between the turns, too


def refuse(name: str) -> None:
    """Note that a name was used, and raise; an ``except`` does not undo the note."""
    _used.append(name)
    raise _Refused(message(name))


def message(name: str) -> str:
    """Say what is wrong with an answer that uses a name."""
    return f"uses {name}, which this exercise asks you to write yourself"


@contextlib.contextmanager
def while_running(names: tuple[str, ...]) -> Iterator[list[str]]:
    """Forbid the names; yield a list into which those that are used are put."""
    _used.clear()
    with contextlib.ExitStack() as after:
        for name in names:
            if name not in _held:
                _forbid(name, after)
        yield _used


@contextlib.contextmanager
def hold(names: tuple[str, ...]) -> Iterator[None]:
    """Forbid the names for many turns, in a process where nobody else needs them.

    To begin and end it takes longer than a student's turn.
    """
    with contextlib.ExitStack() as after:
        for name in names:
            _forbid(name, after)
        after.callback(_held.clear)
        _held.extend(names)
        yield


def _forbid(name: str, after: contextlib.ExitStack) -> None:
    if name not in _COMPILED.keys() | _WRITTEN.keys():
        raise KeyError(f"autograder/forbidden.py does not know {name}")
    _forbid_compiled(name, after)
    _forbid_written(name, after)


def _forbid_compiled(name: str, after: contextlib.ExitStack) -> None:
    if name not in _COMPILED:
        return
    library = torch.library.Library("aten", "IMPL")
    after.callback(library._destroy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a kernel is replaced is what we want
        for function in _COMPILED[name]:
            for key in _KEYS:
                library.impl(function, _kernel(name), key)


@functools.cache
def _kernel(name: str) -> Callable:
    def forbidden(*args: Any, **kwargs: Any) -> None:
        refuse(name)

    return forbidden


def _forbid_written(name: str, after: contextlib.ExitStack) -> None:
    for function in _written(name):
        after.callback(setattr, function, "__code__", function.__code__)
        function.__code__ = _body(name, function.__code__.co_freevars)


@functools.cache
def _written(name: str) -> tuple[types.FunctionType, ...]:
    """Find the functions that carry out a name; of a class, two of its methods."""
    found = []
    for path in _WRITTEN.get(name, ()):
        module, _, attribute = path.rpartition(".")
        target = attrgetter(attribute)(importlib.import_module(module))
        methods = [target.__init__, target.forward] if isinstance(target, type) else []
        found += methods or [target]
    return tuple(found)


@functools.cache
def _body(name: str, enclosed: tuple[str, ...]) -> types.CodeType:
    """Compile a body that refuses; it must have the enclosed variables of the old."""
    text = f"""
def outer({", ".join(enclosed)}):
    def forbidden(*args, **kwargs):
        from autograder.forbidden import refuse
        refuse({name!r})
        return ({"".join(f"{each}, " for each in enclosed)})
    return forbidden
"""
    codes = [compile(text, __file__, "exec")]
    while codes[-1].co_name != "forbidden":
        parts = codes[-1].co_consts
        codes.append(next(x for x in parts if isinstance(x, types.CodeType)))
    return codes[-1]
