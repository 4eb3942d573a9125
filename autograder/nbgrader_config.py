"""nbgrader's settings for this course: in autograder/, run `nbgrader autograde …`."""

from pathlib import Path

from autograder.grading.settings import configure

configure(get_config(), Path(__file__).resolve().parent)  # noqa: F821
