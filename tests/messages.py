"""What every message to a student keeps to."""

from autograder.exercise.length import MOST_WORDS, count_words
from autograder.expect import CheckFailure


def assert_is_short(failure: CheckFailure) -> None:
    """No message is long, and none shows two values alike that are not."""
    message = str(failure)
    assert count_words(message) <= MOST_WORDS, message
    assert failure.got != failure.expected or not failure.got, message
