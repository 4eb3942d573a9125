"""How layers and stacks with a memory are called, and what lies behind an exception."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from autograder import expect
from autograder.chapters.encoder.oracles import torch_mask
from autograder.exercise.spec import Specification
from autograder.expect import describe_error, refuse
from autograder.interface import Data, StudentError, StudentInstance


@dataclass(frozen=True)
class Judged:
    """A layer or stack as it was built.

    Args:
        spec: whose mistakes are known.
        given: what they are told besides the inputs.
        on: how it was built.
        tolerance: absolute and relative.
    """

    spec: Specification
    given: tuple
    on: str
    tolerance: float


def call(layer: StudentInstance, x, memory, mask, memory_mask) -> Data:
    """Call a layer or a stack; name no mask where there is none."""
    if mask is None and memory_mask is None:
        return layer(x, memory)
    return layer(x, memory, mask, memory_mask)


def torch_masks(mask, memory_mask, x: torch.Tensor, heads: int) -> dict:
    """Write both masks as PyTorch's decoder takes them: True hides."""
    hidden = None if memory_mask is None else ~memory_mask[:, 0]
    return {
        "tgt_mask": torch_mask(mask, x, heads),
        "memory_key_padding_mask": hidden,
    }


def say_masks(on: str, x, memory, mask, memory_mask) -> str:
    """Add the shapes of all inputs to what a message says of them."""
    on = f"{on}, x {tuple(x.shape)}, memory {tuple(memory.shape)}"
    if mask is not None:
        on += f", mask {tuple(mask.shape)}"
    if memory_mask is not None:
        on += f", memory_mask {tuple(memory_mask.shape)}"
    return on


@contextlib.contextmanager
def lengths_named(
    layer: StudentInstance, x, memory, masks, judged: Judged, on: str
) -> Iterator[None]:
    """Name the mistake behind a call that fails where T_src is not T_tgt.

    The call is repeated with as many source tokens as target tokens, and what comes
    is compared with what the known mistakes give there.
    """
    try:
        yield
    except StudentError as error:
        if error.kind not in ("RuntimeError", "IndexError", "ValueError"):
            raise
        mask, memory_mask = masks
        repeated = torch.arange(x.shape[1]) % memory.shape[1]
        square = memory[:, repeated]
        if memory_mask is not None:
            memory_mask = memory_mask[..., repeated]
        try:
            got = call(layer, x, square, mask, memory_mask)
        except StudentError:
            raise error from None
        said = f"{error.kind}: {describe_error(error)}"
        given = x, square, mask, memory_mask, *judged.given
        right = expect.close(got, judged.spec.oracle(*given), judged.tolerance)
        for mistake in () if right else judged.spec.known(*given):
            if expect.close(got, mistake.value, judged.tolerance):
                refuse(mistake.name, mistake.why, on=on, got=said)
        why = (
            "With as many source tokens as target tokens the same call succeeds. Both "
            "sentences have their own length: cross-attention gives a row for each "
            "query, so its result always fits the stream it is added to."
        )
        name = "works only if both sentences have one length"
        refuse(name, why, on=on, got=said)


@contextlib.contextmanager
def masks_named(mask, memory_mask) -> Iterator[None]:
    """Name the mistake behind a call that fails only when there is a mask."""
    try:
        yield
    except StudentError as error:
        given = mask is not None or memory_mask is not None
        if given and error.kind in ("RuntimeError", "TypeError"):
            why = (
                "Without masks the same call succeeds. Probably a mask is in the "
                "second place of attention, which belongs to x_kv: write mask=mask."
            )
            said = f"{error.kind}: {describe_error(error)}"
            refuse("fails as soon as there is a mask", why, on=error.call, got=said)
        raise
