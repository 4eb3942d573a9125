"""No message is long: what is shown is cut, and what is said is not."""

import random

import pytest
import torch

from autograder import expect
from autograder.exercise.length import (
    FEWEST,
    MOST_WORDS,
    count_words,
    cut_both,
    keep_short,
)
from autograder.exercise.locate import Place
from autograder.exercise.locate.outcomes import Left
from autograder.exercise.showing import show, show_both
from autograder.expect import Chapter, CheckFailure
from autograder.interface import StudentFunction
from tests import chapters
from tests.messages import assert_is_short

TOLERANCE = 1e-5
chapter = Chapter(4, "04_attention")
FRAME = 10 + 3 * FEWEST  # words of the shortest message around its reasons
WHY = "A matrix that is its own transpose hides that. " * 4


@chapter.check(section="attention-softmax")
def tables(student: StudentFunction, seed: int = 0) -> None:
    """Compare three matrices, which a name explains, and what goes with them."""
    asked = torch.arange(16.0).reshape(4, 4)
    right = (asked + 1, asked * 2, asked.sin())
    wrong = expect.Mistake("all rows in the order of another", (asked,) * 3, WHY)
    expect.equal(student(asked), right, on=f"asked = {asked}", mistakes=[wrong])


@chapter.check(section="attention-softmax")
def keys(student: StudentFunction, seed: int = 0) -> None:
    """Compare dicts."""
    expect.equal(student(), {"weight": torch.zeros(2)}, on="no argument")


def failure_of(check, answer) -> CheckFailure:
    with pytest.raises(CheckFailure) as caught:
        check(answer)
    return caught.value


def test_three_matrices_and_their_reason_are_short() -> None:
    failure = failure_of(tables, lambda x: (x, x, x))
    assert_is_short(failure)
    assert failure.mistake in str(failure)
    assert " ".join(failure.why.split()) == WHY.strip()
    assert "…" in failure.got and "…" in failure.expected
    marked = [failure.got[start:end] for start, end in failure.got.marks]
    assert marked and set(marked) <= {str(float(n)) for n in range(16)}


def test_an_answer_without_a_name_is_short() -> None:
    failure = failure_of(tables, lambda x: (x - 1, x - 2, x - 3))
    assert not failure.mistake
    assert_is_short(failure)


@pytest.mark.parametrize("many", [1, 2, 300])
def test_keys_that_hold_a_tensor_are_short(many: int) -> None:
    names = [f"w_({torch.arange(400.0) + number})" for number in range(many)]
    failure = failure_of(keys, lambda: dict.fromkeys(names, torch.ones(2)))
    assert_is_short(failure)
    assert "…" in failure.got


def test_an_exception_of_many_words_is_short() -> None:
    def answer() -> None:
        raise ValueError("too many words " * 2000)

    failure = failure_of(keys, answer)
    assert_is_short(failure)
    assert "…" in failure.got and "in test_an_exception" in failure.got


def test_an_exception_with_a_name_of_many_words_is_short() -> None:
    def answer() -> None:
        raise type("Odd " * 500, (Exception,), {})

    assert_is_short(failure_of(keys, answer))


def test_the_line_to_look_at_counts() -> None:
    failure = failure_of(tables, lambda x: (x - 1, x - 2, x - 3))
    failure.place = Place(3, "y = x", "the sign", Left("a name", 2 * WHY))
    assert count_words(failure) > MOST_WORDS
    keep_short(failure)
    assert_is_short(failure)


def test_what_is_short_stays() -> None:
    failure = CheckFailure(
        "wrong", on="x = 3", got="1  and\n2", expected="3", why="Add."
    )
    failure.call = "f(3)"
    before = str(failure)
    keep_short(failure)
    assert str(failure) == before


def test_what_is_short_enough_once_stays_as_it_is() -> None:
    failure = failure_of(tables, lambda x: (x, x, x))
    before = str(failure)
    keep_short(failure)
    assert str(failure) == before


def test_texts_that_differ_are_cut_so_that_they_still_differ() -> None:
    draw = random.Random(0)
    for _ in range(3000):
        length = draw.randrange(1, 60)
        got = "".join(draw.choices("ab \n", (5, 1, 3, 1), k=length))
        place = draw.randrange(length)
        change = draw.choice(["", "a", "b", " ", "  ", "a a"])
        expected = got[:place] + change + got[place + draw.randrange(2) :]
        cut = cut_both(got, expected, 10)
        assert (cut[0] == cut[1]) == (got == expected), (got, expected)
        assert max(map(count_words, cut)) <= 30


def test_a_difference_far_behind_is_what_is_kept() -> None:
    right = [torch.arange(40.0).reshape(2, 20) for _ in range(3)]
    wrong = [*right[:2], right[2] + torch.eye(2, 20)]
    got, expected = show_both([*wrong], [*right], TOLERANCE)
    texts = " ".join(map(str, range(90))), " ".join(map(str, [*range(89), "x"]))
    assert cut_both(*texts, 12) == ("… 89", "… x")
    assert cut_both(got, expected, 12) != (got, got)


def test_two_reasons_leave_room_for_what_is_shown() -> None:
    """Of two slips both are told, with their names."""
    for name in chapters.CHAPTERS:
        for spec in chapters.specifications(name):
            said = {f"{each.name} {each.why}" for each in spec.mistakes}
            longest = sorted(map(count_words, said))[-2:]
            assert sum(longest) <= MOST_WORDS - FRAME, spec.exercise


def test_a_module_that_is_shown_is_short() -> None:
    assert count_words(show({f"w_{n}": torch.ones(3) for n in range(500)})) < 20
