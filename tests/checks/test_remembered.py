"""What known mistakes gave is looked up, and never that of another input."""

import math
from functools import partial

import pytest
import torch

from autograder.exercise.remembered import NotKept, Remembered, key_of
from autograder.exercise.spec import Specification

COUNTED = torch.arange(6.0)


@pytest.fixture
def calls():
    return []


def counting(calls, value):
    def compute():
        calls.append(1)
        return value

    return compute


def test_what_is_known_is_not_computed_again(calls):
    kept = Remembered()
    first = kept.value("key", counting(calls, (COUNTED,)))
    second = kept.value("key", counting(calls, (COUNTED,)))
    assert len(calls) == 1
    assert torch.equal(first[0], second[0])


def test_an_input_that_is_changed_later_changes_nothing_that_is_kept(calls):
    """A mistake may give the very input back, or a view of it."""
    kept, given = Remembered(), torch.arange(4.0)
    kept.value("key", lambda: (given[:2],))
    given.zero_()
    (found,) = kept.value("key", counting(calls, ()))
    assert found.tolist() == [0, 1] and not calls


@pytest.mark.parametrize(
    "compute", [lambda: torch.rand(2), lambda: torch.ones(2, requires_grad=True)]
)
def test_what_is_random_or_has_a_gradient_is_computed_each_time(compute, calls):
    kept = Remembered()

    def noted():
        calls.append(1)
        return compute()

    kept.value("key", noted)
    kept.value("key", noted)
    assert len(calls) == 2


def test_the_longest_unused_goes_first(calls):
    kept = Remembered(most=3 * 2000)
    large = torch.zeros(300)  # 1200 bytes, and 600 for its entry
    for key in "abc":
        kept.value(key, lambda: large)
    kept.value("a", counting(calls, large))
    kept.value("d", lambda: large)
    assert not calls
    kept.value("a", counting(calls, large))
    assert not calls
    kept.value("b", counting(calls, large))
    assert len(calls) == 1


ALIKE_BUT_OTHER = [
    (1, 1.0),
    (1, True),
    (0.0, -0.0),
    ([1], (1,)),
    (torch.zeros(2, 3), torch.zeros(3, 2)),
    (torch.zeros(2), torch.zeros(2, dtype=torch.float64)),
    (torch.tensor([0.0]), torch.tensor([-0.0])),
    (COUNTED.view(2, 3).mT, COUNTED.view(2, 3).mT.contiguous()),
    ({"a": 1}, {"b": 1}),
    (partial(max, key=abs), partial(max, key=len)),
    (None, 0),
]


@pytest.mark.parametrize(("one", "other"), ALIKE_BUT_OTHER)
def test_what_looks_alike_is_told_apart(one, other):
    assert key_of([one]) != key_of([other])
    assert key_of([one]) == key_of([one])


def test_not_a_number_is_itself():
    assert key_of(math.nan) == key_of(float("nan"))
    assert key_of(torch.tensor(math.nan)) == key_of(torch.tensor(math.nan))


def closure():
    held = [1]
    return lambda: held


@pytest.mark.parametrize(
    "value",
    [torch.nn.Linear(1, 1), closure(), torch.ones(1, requires_grad=True), {1, 2}],
    ids=["module", "closure", "gradient", "set"],
)
def test_what_may_change_unseen_has_no_key(value):
    with pytest.raises(NotKept):
        key_of((1, [value]))


def test_a_specification_asks_a_mistake_once_for_an_input(calls):
    exercise = Specification("double", "double", lambda x: 2 * x)

    @exercise.mistake("the input as it is", "It is to be doubled.")
    def unchanged(x):
        calls.append(1)
        return x

    @exercise.mistake("fits larger inputs alone", "It is to be doubled.")
    def unfit(x):
        calls.append(1)
        return x.view(100)

    for _ in range(3):
        (found,) = exercise.known(COUNTED.clone())
        assert found.name == "the input as it is" and torch.equal(found.value, COUNTED)
    assert len(calls) == 2
    assert [each.value.tolist() for each in exercise.known(COUNTED + 1)] == [
        (COUNTED + 1).tolist()
    ]
    assert len(calls) == 4
