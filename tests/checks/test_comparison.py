"""Two results are close exactly if PyTorch says so, however few entries they have."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder import expect

NUMBERS = st.floats(width=32) | st.sampled_from([0.0, 1.0, float("nan"), float("inf")])
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS | st.none()), max_size=5)


def by_pytorch(got: torch.Tensor, expected: torch.Tensor, tolerance: float) -> bool:
    got, expected = got.double(), expected.double()
    return torch.allclose(got, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


@given(PAIRS, st.sampled_from([0.0, 1e-5, 0.1]), st.sampled_from([1, 1 + 9e-6, 1.01]))
def test_few_entries_are_compared_as_pytorch_does(pairs, tolerance, factor) -> None:
    """A None stands for the other number, a little further off."""
    got = torch.tensor([a for a, _ in pairs])
    expected = torch.tensor([a * factor if b is None else b for a, b in pairs])
    found = expect.close(got, expected, tolerance)
    assert found == by_pytorch(got, expected, tolerance)


def test_many_entries_are_compared_alike() -> None:
    torch.manual_seed(0)
    for count in (1, expect.FEW, expect.FEW + 1, 4 * expect.FEW):
        expected = torch.randn(count)
        for change in (0.0, 5e-6, 1e-3):
            got = expected.clone()
            got[-1] += change
            assert expect.close(got, expected) == by_pytorch(got, expected, 1e-5)


def test_kinds_of_numbers_and_shapes() -> None:
    whole, mask = torch.arange(6), torch.tensor([True, False])
    assert expect.close(whole, whole.double())
    assert expect.close(mask, mask.float())
    assert not expect.close(mask, ~mask)
    assert not expect.close(whole, whole.view(2, 3))
    assert expect.close(torch.ones(2, dtype=torch.complex64), torch.ones(2) + 0j)
    assert expect.close(torch.ones(3, requires_grad=True), torch.ones(3))
