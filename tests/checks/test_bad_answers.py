"""What a beginner's function may do besides being wrong: each is said in words."""

import warnings

import pytest
import torch

from autograder import interface
from autograder.expect import CheckFailure
from autograder.generator.source import Exercise
from tests import chapters
from tests.messages import assert_is_short

ANSWERS = [
    pytest.param(chapter, exercise, id=f"{chapter[:2]} {exercise.name}")
    for chapter in chapters.CHAPTERS
    for exercise in chapters.source(chapter).exercises
    if not exercise.by_hand
]


def spoilt(answer: object, spoil) -> object:
    """Put a function around an answer, or around the forward of a class."""
    if not isinstance(answer, type):
        return lambda *args, **kwargs: spoil(answer, *args, **kwargs)

    class Spoilt(answer):
        def forward(self, *args, **kwargs):
            return spoil(super().forward, *args, **kwargs)

    Spoilt.__name__ = answer.__name__
    return Spoilt


def message(chapter: str, exercise: Exercise, spoil) -> str:
    """The first message of the exercise's checks on a solved notebook, spoilt."""
    names = chapters.solved(chapter)
    for name in exercise.defines:
        names[name] = spoilt(names[name], spoil)
    with warnings.catch_warnings(), pytest.raises(CheckFailure) as caught:
        warnings.simplefilter("error")
        for text in chapters.check_cells(chapter, exercise.name, hidden=True):
            exec(compile(text, exercise.name, "exec"), names)
    assert_is_short(caught.value)
    return str(caught.value)


def nothing(answer, *args, **kwargs):
    answer(*args, **kwargs)


def words(answer, *args, **kwargs):
    answer(*args, **kwargs)
    return "seven"


def many_words(answer, *args, **kwargs):
    raise ValueError("an error of many words " * 500)


def not_a_number(answer, *args, **kwargs):
    return with_nan(answer(*args, **kwargs))


def with_nan(value):
    """Replace every float by NaN, in data of any nesting."""
    if isinstance(value, torch.Tensor):
        return value * torch.nan if value.is_floating_point() else value
    if isinstance(value, float):
        return float("nan")
    if isinstance(value, dict):
        return {key: with_nan(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(with_nan(item) for item in value)
    return value


def endless(answer, *args, **kwargs):
    while True:
        pass


def through_a_view(answer, *args, **kwargs):
    value = answer(*args, **kwargs)
    for arg in args:
        if isinstance(arg, torch.Tensor):
            view, first = arg.detach(), (0,) * arg.ndim
            view[first] = ~view[first] if view.dtype == torch.bool else view[first] + 1
    return value


@pytest.mark.parametrize(("chapter", "exercise"), ANSWERS)
def test_nothing_returned_is_said(chapter: str, exercise: Exercise) -> None:
    assert "None" in message(chapter, exercise, nothing)


@pytest.mark.parametrize(("chapter", "exercise"), ANSWERS)
def test_a_wrong_type_is_said(chapter: str, exercise: Exercise) -> None:
    assert "'seven'" in message(chapter, exercise, words)


@pytest.mark.parametrize(("chapter", "exercise"), ANSWERS)
def test_the_beginning_of_a_long_error_is_said(chapter, exercise) -> None:
    assert "an error of many words" in message(chapter, exercise, many_words)


@pytest.mark.parametrize(("chapter", "exercise"), ANSWERS)
def test_not_a_number_is_said(chapter: str, exercise: Exercise) -> None:
    names = chapters.solved(chapter)
    made_of_floats = []

    def look(answer, *args, **kwargs):
        made_of_floats.append(repr(with_nan(value := answer(*args, **kwargs))))
        made_of_floats.append(repr(value))
        return value

    for name in exercise.defines:
        names[name] = spoilt(names[name], look)
    for text in chapters.check_cells(chapter, exercise.name, hidden=False):
        exec(text, names)
    if made_of_floats[0] != made_of_floats[1]:
        assert "nan" in message(chapter, exercise, not_a_number).lower()


def tensors_in(value) -> list[torch.Tensor]:
    """The tensors in data of any nesting."""
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value
    nested = isinstance(value, (dict, list, tuple))
    return [each for item in items for each in tensors_in(item)] if nested else []


@pytest.mark.parametrize(("chapter", "exercise"), ANSWERS)
def test_what_an_answer_is_given_lies_row_after_row(chapter, exercise) -> None:
    """No check expands or transposes what it hands over: .view works, and writing."""
    names = chapters.solved(chapter)

    def look(answer, *args, **kwargs):
        for tensor in tensors_in([args, kwargs]):
            assert tensor.is_contiguous() and 0 not in tensor.stride()[:-1], tensor
        return answer(*args, **kwargs)

    for name in exercise.defines:
        names[name] = spoilt(names[name], look)
    for text in chapters.check_cells(chapter, exercise.name, hidden=True):
        exec(text, names)


@pytest.mark.parametrize(("chapter", "exercise"), ANSWERS)
def test_what_never_returns_is_said(chapter, exercise, monkeypatch) -> None:
    monkeypatch.setattr(interface, "SECONDS_PER_CALL", 0.05)
    assert "does not return" in message(chapter, exercise, endless)


@pytest.mark.parametrize(("chapter", "exercise"), ANSWERS)
def test_an_input_changed_through_a_view_is_said(chapter, exercise) -> None:
    names = chapters.solved(chapter)
    takes_tensors = []

    def look(answer, *args, **kwargs):
        takes_tensors.extend(isinstance(arg, torch.Tensor) for arg in args)
        return answer(*args, **kwargs)

    for name in exercise.defines:
        names[name] = spoilt(names[name], look)
    for text in chapters.check_cells(chapter, exercise.name, hidden=False):
        exec(text, names)
    if any(takes_tensors):
        said = message(chapter, exercise, through_a_view)
        assert "changes its argument in place" in said and "was changed" in said
