"""Several results of one answer: which slip is named where, and what is not."""

import pytest
import torch

from autograder import expect
from autograder.exercise.spec import (
    Case,
    Function,
    errors_named,
    expect_several,
    judge_parts,
)
from autograder.expect import Chapter, CheckFailure
from autograder.interface import StudentError, StudentFunction

chapter = Chapter(0, "page")
NAMES = ("the sum", "the product")
both = Function("both", "both", lambda x: (x + 2, 2 * x))
both.mistake("two left out", "Both results take it.")(lambda x: (x, x))
both.mistake("three in place of two, in the sum", "Look again.")(
    lambda x: (x + 3, 2 * x)
)
both.mistake("three in place of two", "Look again.")(lambda x: (x + 3, 3 * x))
both.mistake("three in place of two, in the product", "Look again.")(
    lambda x: (x + 2, 3 * x)
)
earlier = Function("earlier", "earlier", lambda x: x + 1)
earlier.mistake("one too few", "Add 1.")(lambda x: x)
later = Function("later", "later", lambda x: 2 * x)
later.mistake("one too few", "Add once more.")(lambda x: x)


@chapter.check(section="both")
def check_both(student: StudentFunction) -> None:
    for x in (torch.tensor([1.0, 5.0]), torch.tensor([2.0, 7.0])):
        got = expect_several(student(x), NAMES, "x")
        judge_parts(both, got, Case("x", (x,)), NAMES)


@chapter.check(section="earlier")
def check_earlier(student: StudentFunction) -> None:
    earlier.judge(student, Case("x", (torch.ones(2),)))


@chapter.check(section="later")
def check_later(student: StudentFunction, first: StudentFunction) -> None:
    with expect.relying_on(check_earlier, first):
        later.judge(student, Case("x", (torch.ones(2),)))


def refused(check, *answers) -> CheckFailure:
    with pytest.raises(CheckFailure) as caught:
        check(*answers)
    return caught.value


@pytest.mark.parametrize("known", both.mistakes)
def test_a_mistake_gets_its_own_name(known) -> None:
    failure = refused(check_both, known.answer)
    assert (failure.mistake, failure.alternatives) == (known.name, "")


def test_two_slips_get_two_names() -> None:
    failure = refused(check_both, lambda x: (x + 3, x))
    assert failure.mistake == "three in place of two, in the sum"
    assert failure.besides.startswith("two left out")


def test_a_mistake_of_both_results_is_not_that_of_one() -> None:
    failure = refused(check_both, lambda x: (x + 2, x))
    assert failure.mistake is None


def test_results_that_are_missing_are_said() -> None:
    assert refused(check_both, lambda x: x).mistake == "only one of two results"
    assert refused(check_both, lambda x: None).why.startswith("The function ends")


def test_what_an_earlier_exercise_gives_refutes_no_name() -> None:
    """Both are asked for the result, and one name stands for a mistake in each."""
    failure = refused(check_later, lambda x: x, lambda x: x + 1)
    assert failure.mistake == "one too few"
    assert failure.first == ""


def test_an_exception_is_named_by_its_words_only() -> None:
    known = errors_named(("out of bounds", "not sorted out", "Test before you write."))
    with pytest.raises(CheckFailure, match="not sorted out"), known:
        raise StudentError("IndexError", "index 6 is out of bounds")
    known = errors_named(("out of bounds", "not sorted out", "Test before you write."))
    with pytest.raises(StudentError), known:
        raise StudentError("IndexError", "too many indices")
