"""Answers that are a dict of entries, and answers that a student works out by hand.

What is worked out by hand is refused without giving away what is right.
"""

from collections.abc import Iterable

import torch

from autograder import expect
from autograder.exercise.spec import Specification
from autograder.expect import refuse, show
from autograder.interface import Data

BY_HAND = 1e-3  # tolerance of numbers that a student may have rounded to 3 decimals


def expect_entries(got: Data, keys: Iterable[str]) -> None:
    """Expect a dict that has these keys."""
    what, wanted = "the result is not a dict", f"{list(keys)}"
    why = "The function ends without `return`." if got is None else ""
    expect.true(isinstance(got, dict), what, got=show(got), expected=wanted, why=why)
    if any(key not in got for key in keys):
        why = "The dict needs every key below 'expected', spelt exactly so."
        on = "the keys of the result"
        refuse("an entry is missing", why, on=on, got=f"{list(got)}", expected=wanted)


def like(value: Data, right: Data, *, what: str, on: str = "") -> Data:
    """Bring an entry into the form of the right one; refuse a tensor of another shape.

    Numbers of any dtype may stand for each other, and a tensor for numbers.
    """
    if isinstance(right, torch.Tensor):
        shape = tuple(right.shape)
        expect.tensor(value, shape=shape, finite=False, what=what, on=on)
        return value.to(right.dtype)
    value = value.tolist() if isinstance(value, torch.Tensor) else value
    return list(value) if isinstance(value, tuple) else value


def judge_by_hand(spec: Specification, got: Data, reasons: dict[str, str]) -> None:
    """Expect the entries that the oracle gives, without giving them away.

    Args:
        spec: its mistakes give all entries, one of them wrong.
        got: what came.
        reasons: for each key what a message says where no mistake explains the entry.
    """
    right = spec.ask_oracle()
    expect_entries(got, right)
    for key, why in reasons.items():
        on, wanted = f"the entry {key!r}", right[key]
        value = like(got[key], wanted, what=on)
        if expect.close(value, wanted, BY_HAND):
            continue
        for each in spec.known():
            if expect.close(value, each.value[key], BY_HAND):
                refuse(each.name, each.why, on=on, got=show(value))
        expect.true(
            False, _described(key, value, wanted), on=on, got=show(value), why=why
        )


def _described(key: str, value: Data, wanted: Data) -> str:
    if not isinstance(wanted, torch.Tensor):
        return f"{key!r} is wrong"
    wrong = ~torch.isclose(value, wanted, rtol=BY_HAND, atol=BY_HAND)
    first = wrong.nonzero()[0].tolist()
    count = f"{int(wrong.sum())} of {wrong.numel()} numbers are wrong"
    return f"{key!r}: {count}, first at index {first}"
