"""A mistake is named when it explains every answer; what is said if none does."""

from functools import partial

import pytest
import torch

from autograder import expect
from autograder.exercise.spec import Case, Function, judge_parts
from autograder.expect import Chapter, CheckFailure
from autograder.interface import StudentFunction

chapter = Chapter(0, "page")
TOKENS = torch.tensor([[1.0, 2.0, 4.0, 9.0], [2.0, 5.0, 6.0, 1.0]])


def spec() -> Function:
    """Twice the input, plus one; and what goes wrong with it."""
    made = Function("twice", "twice", lambda x, *_: 2 * x + 1)
    made.mistake("squared", "Twice, not the square.")(lambda x, *_: x * x + 1)
    made.mistake("the one is missing", "Add one.")(lambda x, *_: 2 * x)
    made.mistake("half", "Twice, not half.")(lambda x, *_: x / 2 + 1)
    return made


def check_on(made: Function, *inputs: torch.Tensor):
    """A check that asks for these inputs, in order."""

    @chapter.check(section="section")
    def twice(student: StudentFunction) -> None:
        made.judge_all(
            student, [Case(f"input {i}", (x,)) for i, x in enumerate(inputs)]
        )

    return twice


def said(check, answer) -> CheckFailure:
    with pytest.raises(CheckFailure) as caught:
        check(answer)
    return caught.value


def test_a_coincidence_on_a_small_input_is_not_named() -> None:
    # at 2 the square and, say, the next power of two are the same
    check = check_on(spec(), torch.tensor([2.0]), TOKENS)
    assert said(check, lambda x: x * x + 1 + 0 * x).mistake == "squared"
    failure = said(check, lambda x: torch.where(x > 4, 7.0, x * x + 1))
    assert failure.mistake is None
    assert "values are wrong" in failure.what


def test_what_is_right_elsewhere_refutes_a_name() -> None:
    check = check_on(spec(), torch.tensor([3.0]), TOKENS)
    failure = said(check, lambda x: 2 * x if x.numel() == 1 else 2 * x + 1)
    assert failure.mistake is None


def test_a_name_that_explains_all_wins_over_an_earlier_one() -> None:
    made = spec()
    made.mistakes.insert(0, made.mistakes.pop(1))  # "the one is missing" is tried first
    made.mistake("always four", "It depends on x.")(lambda x: torch.full_like(x, 4.0))
    check = check_on(made, torch.tensor([2.0]), TOKENS)
    assert said(check, lambda x: torch.full_like(x, 4.0)).mistake == "always four"


def test_two_names_that_nothing_tells_apart_are_both_said() -> None:
    made = spec()
    made.mistake("the sum with itself, less one", "Add one.")(lambda x: x + x)
    failure = said(check_on(made, TOKENS), lambda x: 2 * x)
    assert failure.mistake == "the one is missing"
    assert failure.alternatives == "the sum with itself, less one"
    assert "or       the sum with itself, less one" in str(failure)


def test_a_mistake_that_shows_on_some_inputs_only() -> None:
    made = spec()
    made.mistake("flat", "Rows.", when=lambda x: x.dim() > 1)(
        lambda x: (2 * x + 1).flip(0)
    )
    check = check_on(made, torch.tensor([3.0, 5.0]), TOKENS)
    wrong = said(check, lambda x: (2 * x + 1).flip(0) if x.dim() > 1 else 2 * x + 1)
    assert wrong.mistake == "flat"


def both_parts() -> tuple[Function, object]:
    made = Function("both", "both", lambda x: (2 * x, x + 1))
    made.mistake("squared", "Twice.")(lambda x: (x * x, x + 1))
    made.mistake("the one is missing", "Add it.")(lambda x: (2 * x, x))

    @chapter.check(section="section")
    def both(student: StudentFunction) -> None:
        for x in (TOKENS, TOKENS + 1):
            case = Case(f"x {tuple(x.shape)}", (x,))
            judge_parts(made, student(x), case, ("the double", "the successor"))

    return made, both


def test_two_slips_in_two_parts_get_two_names() -> None:
    _, check = both_parts()
    failure = said(check, lambda x: (x * x, x))
    assert failure.mistake == "squared"
    assert failure.besides.startswith("the one is missing")
    assert "and" in str(failure)
    assert said(check, lambda x: (x * x, x + 1)).besides == ""


def test_two_slips_in_one_value_are_found_by_what_they_add_up_to() -> None:
    made = Function("affine", "affine", lambda x: 3 * x + x.mean() + 1)
    made.mistake("the mean is missing", "Add the mean.")(lambda x: 3 * x + 1)
    made.mistake("the one is missing", "Add one.")(lambda x: 3 * x + x.mean())
    made.mistake("squared", "Three times.")(lambda x: x * x + x.mean() + 1)
    check = check_on(made, TOKENS, TOKENS - 7)
    failure = said(check, lambda x: 3 * x)
    assert failure.mistake == "the mean is missing"
    assert failure.besides.startswith("the one is missing")
    assert said(check, lambda x: 3 * x.sin()).mistake is None


def test_one_of_two_slips_may_show_on_some_inputs_only() -> None:
    made = Function("affine", "affine", lambda x: 3 * x + x.mean() + 1)
    made.mistake("the mean is missing", "Add the mean.")(lambda x: 3 * x + 1)
    made.mistake("the one is missing", "Add one.", when=lambda x: x.dim() > 1)(
        lambda x: 3 * x + x.mean()
    )
    row = TOKENS[0] + 2
    check = check_on(made, row, TOKENS)
    failure = said(check, lambda x: 3 * x + (x.dim() < 2))
    assert failure.mistake == "the mean is missing"
    assert failure.besides.startswith("the one is missing")
    assert failure.on == "input 1"  # the row, which is smaller, has one slip only
    assert said(check, lambda x: 3 * x).mistake is None


def test_a_branch_of_the_options_is_judged_alone() -> None:
    made = Function("branch", "branch", lambda x, up: x + 1 if up else x - 1)
    made.mistake("the sign", "Up is plus.")(lambda x, up: x - 1 if up else x + 1)

    @chapter.check(section="section")
    def branch(student: StudentFunction) -> None:
        for up in (False, True):
            made.judge(student, Case(f"up {up}", (TOKENS, up)))

    assert said(branch, lambda x, up: x - 1).mistake == "the sign"


def test_a_call_without_an_argument_is_a_branch_of_its_own() -> None:
    made = Function(
        "shift", "shift", lambda x, by=None: 2 * x + (0 if by is None else by)
    )
    made.mistake("squared", "Twice.")(
        lambda x, by=None: x * x + (0 if by is None else by)
    )

    @chapter.check(section="section")
    def shift(student: StudentFunction) -> None:
        for inputs in ((TOKENS,), (TOKENS + 1,), (TOKENS, TOKENS), (TOKENS, -TOKENS)):
            made.judge(student, Case(f"{len(inputs)} inputs", inputs))

    def twice_wrong(x, by=None):
        return x * x if by is None else x.sin() * by.exp()

    assert said(shift, twice_wrong).mistake == "squared"

    def once_like_a_mistake(x, by=None):
        return x * x if by is None and x[0, 0] == 1 else x.sin()

    assert said(shift, once_like_a_mistake).mistake is None


def test_the_smallest_wrong_input_is_shown() -> None:
    check = check_on(spec(), TOKENS, torch.tensor([3.0]), TOKENS + 1)
    assert said(check, lambda x: 2 * x).on == "input 1"
    assert said(check, lambda x: x.exp()).on == "input 1"


def test_a_wrong_value_is_shown_before_a_wrong_gradient() -> None:
    @chapter.check(section="section")
    def twice(student: StudentFunction) -> None:
        small = torch.tensor([3.0])
        expect.equal(small, 2 * small, on="small", what="the gradient of x")
        expect.equal(student(TOKENS), 2 * TOKENS, on="the tokens")

    assert said(twice, lambda x: x.exp()).on == "the tokens"
    assert said(twice, lambda x: 2 * x).on == "small"


def test_an_answer_that_changes_keeps_its_first_message() -> None:
    calls = []

    def twice(x):
        calls.append(x)
        return 2 * x if len(calls) == 1 else 2 * x + 1

    assert said(check_on(spec(), TOKENS), twice).mistake == "the one is missing"


def test_what_follows_a_wrong_value_may_fail() -> None:
    made = spec()

    @chapter.check(section="section")
    def twice(student: StudentFunction) -> None:
        got = made.judge(student, Case("the tokens", (TOKENS,)))
        expect.true(got[3, 3] > 0, "never reached by a right answer")

    assert said(twice, lambda x: 2 * x).mistake == "the one is missing"
    assert said(twice, lambda x: None).mistake is None


def by_rules() -> Function:
    """Twice the root, plus one; mistakes are rules of one function."""

    def take(x, *, power=0.5, times=2, plus=1):
        return times * x.abs() ** power + plus

    made = Function("rooted", "rooted", take)
    made.mistake("squared", "The root.")(partial(take, power=2))
    made.mistake("three times", "Twice.")(partial(take, times=3))
    made.mistake("three times", "Twice.")(partial(take, times=-3))
    made.mistake("two is added", "One.")(partial(take, plus=2))
    return made


def test_two_rules_of_one_function_are_a_pair_that_nobody_wrote() -> None:
    check = check_on(by_rules(), TOKENS, TOKENS - 7)
    failure = said(check, lambda x: 3 * x.abs() ** 2 + 1)
    assert failure.mistake == "squared, and three times"
    assert failure.why == "The root.\nTwice."
    assert said(check, lambda x: 2 * x.abs() ** 2 + 1).mistake == "squared"
    assert said(check, lambda x: 5 * x.abs() ** 2 + 1).mistake != failure.mistake


def test_a_pair_that_explains_all_goes_before_a_name_that_explains_some() -> None:
    made = by_rules()
    made.mistake("flat", "Rows.", when=lambda x: x.dim() < 2)(
        lambda x: 3 * x.abs() ** 2 + 1
    )
    check = check_on(made, TOKENS[0], TOKENS)
    both = said(check, lambda x: 3 * x.abs() ** 2 + 1)
    assert both.mistake == "squared, and three times"


def without_first(x: torch.Tensor) -> torch.Tensor:
    return (x > 2) & (torch.arange(x.shape[-1]) > 0)


@pytest.mark.parametrize("kind", [float, list, bool])
def test_two_slips_in_numbers_and_truth_values(kind) -> None:
    forms = {
        float: lambda x: float(x.sum()),
        list: lambda x: x.flatten().tolist(),
        bool: lambda x: x > 2,
    }
    form = forms[kind]
    made = Function("made", "made", lambda x: form(3 * x))
    if kind is bool:
        made = Function("made", "made", lambda x: x > 2)
        made.mistake("inverted", "Not.")(lambda x: ~(x > 2))
        made.mistake("the first column is left out", "All.")(without_first)
        answer = lambda x: ~without_first(x)  # noqa: E731
        names = ("inverted", "the first column is left out")
    else:
        made.mistake("halved", "Not half.")(lambda x: form(3 * x / 2))
        made.mistake("seven times", "Three.")(lambda x: form(7 * x))
        answer = lambda x: form(7 * x / 2)  # noqa: E731
        names = ("halved", "seven times")
    inputs = [TOKENS + step for step in range(5)]
    failure = said(check_on(made, *inputs), answer)
    assert failure.mistake == names[0]
    assert failure.besides.startswith(names[1])
