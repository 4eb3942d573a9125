"""Which form of a value may stand for which, and what is said if it may not."""

import numpy as np
import pytest
import torch

from autograder import expect
from autograder.expect import CheckFailure
from autograder.interface import to_data


def message(got: object, expected: object) -> str:
    """What a student reads."""
    with pytest.raises(CheckFailure) as caught:
        expect.equal(to_data(got), expected)
    assert caught.value.mistake == caught.value.what
    return f"{caught.value.what}: {caught.value.why}"


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        ([1, "a"], (1, "a")),
        ([[1, 2], [3, 4]], [(1, 2), (3, 4)]),
        ((torch.ones(2), torch.ones(1)), [torch.ones(2), torch.ones(1)]),
        (torch.ones(2, dtype=torch.int32), torch.ones(2, dtype=torch.int64)),
        ({"a": [np.float64(0.5), np.int64(2)]}, {"a": (0.5, 2)}),
        (np.bool_(True), True),
    ],
)
def test_what_loses_nothing_is_taken(got, expected) -> None:
    expect.equal(to_data(got), expected)


@pytest.mark.parametrize(
    ("got", "expected", "said"),
    [
        (torch.tensor(0.5), 0.5, "a tensor in place of a number: .*item()"),
        ([torch.tensor(1)], [1], "a tensor in place of a number: .*item()"),
        (torch.ones(2), [1.0, 1.0], "a tensor in place of a list: .*tolist()"),
        (torch.ones(2), (1.0, 1.0), "a tensor in place of a list: .*tolist()"),
        (np.ones(2), [1.0, 1.0], "a NumPy array in place of a list: .*tolist()"),
        ((1, 2), [1, 2], "a tuple in place of a list: .*list(...)"),
        (0.5, torch.tensor(0.5), "a number in place of a tensor: .*without .item()"),
        ([0.5], torch.tensor([0.5]), "a list in place of a tensor: .*torch.tensor"),
        (np.ones(1), torch.ones(1), "a NumPy array in place of a tensor: .*from_numpy"),
    ],
)
def test_what_would_fail_later_gets_one_message(got, expected, said) -> None:
    assert all(part in message(got, expected) for part in said.split(": .*"))


def test_another_dtype_says_what_to_do() -> None:
    with pytest.raises(CheckFailure) as caught:
        expect.equal(torch.ones(2).double(), torch.ones(2))
    assert caught.value.what == "the result has the wrong dtype"
    assert ".float()" in caught.value.why
