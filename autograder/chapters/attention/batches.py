"""An answer that needs an axis in front of what it is given."""

import contextlib
from collections.abc import Callable, Iterator

import torch

from autograder.expect import close, describe_error, refuse
from autograder.forms import several
from autograder.interface import Data, StudentError

ONLY_A_BATCH = (
    "only works with a batch",
    "With a batch it works; without one there is an axis less, so nothing may count on "
    "it. Ask for sizes by x.shape[-1] and x.shape[-2] in place of B, T, d = x.shape, "
    "exchange axes by .mT, multiply by @, and write `...` in an einsum.",
)


@contextlib.contextmanager
def only_a_batch(
    student: Callable, inputs: tuple, right: Callable[[], Data], batched: int = 0
) -> Iterator[None]:
    """Name an exception of an answer that is right with a batch of one.

    Args:
        student: the answer.
        inputs: what it was called with.
        right: gives the right result for them.
        batched: how many of the inputs, the first ones, get an axis in front; 0: all.
    """
    try:
        yield
    except StudentError as error:
        batched = batched or len(inputs)
        one = [_in_a_batch(each) for each in inputs[:batched]]
        try:
            got = several(student(*one, *inputs[batched:]))
        except StudentError:
            got = None
        if got is not None and close(got, _in_a_batch(several(right()))):
            text = f"{error.kind}: {describe_error(error)}"
            refuse(*ONLY_A_BATCH, on=error.call, got=text)
        raise


def _in_a_batch(data: Data) -> Data:
    """Give every tensor an axis of size 1 in front."""
    if isinstance(data, tuple):
        return tuple(_in_a_batch(each) for each in data)
    return data[None] if isinstance(data, torch.Tensor) else data
