"""Numbers in texts stay in one line."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "book" / "_extensions"))

from spaces import NARROW, NO_BREAK, kept_together  # noqa: E402


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("768 000 weights against 151 296 000", "768_000 weights against 151_296_000"),
        ("in 15% of cases, 95 % of the time", "in 15_% of cases, 95_% of the time"),
        ("from 1 048 576.", "from 1_048_576."),
        ("one of 7, in 2017 100 runs", "one of 7, in 2017 100 runs"),
        ("3.14 159 and 7 12", "3.14 159 and 7 12"),
        ("Exercise 3.1 · The shift", "Exercise~3.1~· The shift"),
        ("chapters 4 and 6, source 2", "chapters~4 and 6, source~2"),
    ],
)
def test_spaces_within_numbers(typed, shown):
    expected = shown.replace("_", NARROW).replace("~", NO_BREAK)
    assert kept_together(typed) == expected
