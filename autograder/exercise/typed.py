"""The call of a student's function that showed a mistake, to be typed in again."""

from collections.abc import Iterable

import torch

from autograder.exercise.showing import WHOLE, Shown, flat, nested, same
from autograder.interface import Call, Data, describe_call

LONGEST = 160  # characters; a longer call is not written


def typed_call(calls: Iterable[Call | None], on: str, got: str) -> str:
    """Write a call if it is what a message is about, and all of it is small.

    Args:
        calls: what the check may have been at.
        on: what the message says that the answer was tried on.
        got: what the message says that came.

    Returns:
        Python that makes the same call, "" if that cannot be told, or would be long.
    """
    for call in calls:
        if call is not None and call.built_with is None and _is_about(call, on, got):
            text = _written(call)
            return text if len(text) <= LONGEST else ""
    return ""


def _is_about(call: Call, on: str, got: str) -> bool:
    if not call.returned:
        return on == describe_call(call.name, call.args, call.kwargs)
    return isinstance(got, Shown) and same(got.value, call.value, 0.0)


def _written(call: Call) -> str:
    parts = [_typed(value) for value in call.args]
    parts += [f"{name}={_typed(value)}" for name, value in call.kwargs.items()]
    return f"{call.name}({', '.join(parts)})" if all(parts) else ""


def _typed(value: Data) -> str:
    """Write a value as Python; "" for one that is large, or no data."""
    if isinstance(value, torch.Tensor):
        return _typed_tensor(value)
    if value is None or type(value) in (bool, int, str):
        return repr(value)[: LONGEST + 1]
    if type(value) is float:
        return _number(repr(value))
    if type(value) in (list, tuple) and len(value) <= WHOLE:
        items = [_typed(item) for item in value]
        inside = ", ".join(items)
        if not all(items):
            return ""
        if isinstance(value, list):
            return f"[{inside}]"
        return f"({inside},)" if len(items) == 1 else f"({inside})"
    return ""


def _typed_tensor(value: torch.Tensor) -> str:
    if not 0 < value.numel() <= WHOLE or value.is_complex():
        return ""
    entries = list(map(str, flat(value)))
    if value.is_floating_point():
        exact = value if value.dtype == torch.float64 else value.float()
        entries = [_number(str(item)) for item in exact.reshape(-1).numpy()]
    inferred = value.dtype in (torch.float32, torch.int64, torch.bool)
    dtype = "" if inferred else f", dtype={value.dtype}"
    return f"torch.tensor({nested(entries, tuple(value.shape))[0]}{dtype})"


def _number(text: str) -> str:
    """Write a float as Python reads it where torch is imported."""
    return text.replace("nan", "torch.nan").replace("inf", "torch.inf")
