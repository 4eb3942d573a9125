"""One value in several forms: which may stand for which, and what is said if not.

Everywhere in the course the same counts. What loses nothing is taken: a list where a
pair or several results are asked for, tensors in a tuple as well as in a list, int32
as well as int64. NumPy's numbers are numbers already when they come here. What would
fail in the next function that uses it gets one message everywhere: a tensor or an array
is no list and no number, a number is no tensor, and nothing is appended to a tuple.
"""

import torch

from autograder.interface import Data, Opaque

Form = tuple[str, str]  # the name of the mistake, and what to do

_TO_NUMBER: Form = (
    "a tensor in place of a number",
    "A Python number is asked for: .item() makes one of a tensor with one value.",
)
_TO_TENSOR = {
    "ndarray": (
        "a NumPy array in place of a tensor",
        "NumPy keeps no record of what was computed, so no gradient could pass. Use "
        "torch's functions; where no gradient is needed, torch.from_numpy(...).float() "
        "makes a tensor of an array.",
    ),
    "list": (
        "a list in place of a tensor",
        "Of a list of numbers, torch.tensor(...) makes a tensor, of a list of tensors "
        "torch.stack(...).",
    ),
    "number": (
        "a number in place of a tensor",
        "A Python number has no gradient, so nothing could be trained. Return the "
        "tensor, without .item(); torch.tensor(number) makes one of a number.",
    ),
}
_TO_LIST = {
    "tensor": (
        "a tensor in place of a list",
        "Python numbers are asked for: .tolist() makes a list of a tensor.",
    ),
    "ndarray": (
        "a NumPy array in place of a list",
        "Python numbers are asked for: .tolist() makes a list of an array.",
    ),
    "tuple": (
        "a tuple in place of a list",
        "Nothing can be appended to a tuple, and what uses this appends: list(...).",
    ),
}


def several(got: Data) -> Data:
    """Take several results that came in a list as if they were a tuple."""
    return tuple(got) if isinstance(got, list) else got


def as_asked(got: Data, expected: Data) -> Data:
    """Bring what may stand for something else into the form of what is expected."""
    if isinstance(expected, torch.Tensor) and isinstance(got, torch.Tensor):
        whole = expected.dtype, got.dtype
        return got.long() if whole == (torch.int64, torch.int32) else got
    if isinstance(expected, dict) and isinstance(got, dict):
        return {
            key: as_asked(item, expected[key]) if key in expected else item
            for key, item in got.items()
        }
    if not isinstance(expected, (list, tuple)) or not isinstance(got, (list, tuple)):
        return got
    tensors = bool(expected) and all(map(_is_tensor, expected))
    kind = type(expected) if tensors or isinstance(expected, tuple) else type(got)
    return (
        kind(map(as_asked, got, expected)) if len(got) == len(expected) else kind(got)
    )


def other_form(got: Data, expected: Data) -> Form | None:
    """Say what was returned in place of a number, a tensor or a list.

    Returns:
        The mistake's name and what to do; None if it is none of these.
    """
    kind = _kind(got)
    if isinstance(expected, torch.Tensor):
        return _TO_TENSOR.get(kind)
    if type(expected) in (bool, int, float):
        one = isinstance(got, torch.Tensor) and got.numel() == 1
        return _TO_NUMBER if one else None
    if not isinstance(expected, (list, tuple)) or kind == type(expected).__name__:
        return None
    tensors = any(map(_is_tensor, expected))
    return None if tensors else _TO_LIST.get(kind)


def _is_tensor(value: Data) -> bool:
    return isinstance(value, torch.Tensor)


def _kind(got: Data) -> str:
    if isinstance(got, torch.Tensor):
        return "tensor"
    if isinstance(got, Opaque):
        return got.type_name
    if type(got) in (int, float):
        return "number"
    return type(got).__name__
