"""Numbers in texts stay in one line."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "book" / "_extensions"))

from spaces import NARROW, kept_together  # noqa: E402


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("768 000 weights against 151 296 000", "768_000 weights against 151_296_000"),
        ("in 15% of cases, 95 % of the time", "in 15_% of cases, 95_% of the time"),
        ("from 1 048 576.", "from 1_048_576."),
        ("chapters 4 and 6, in 2017 100 runs", "chapters 4 and 6, in 2017 100 runs"),
        ("3.14 159 and 7 12", "3.14 159 and 7 12"),
        ("Exercise 3.1 · The shift", "Exercise 3.1\N{NO-BREAK SPACE}· The shift"),
    ],
)
def test_spaces_within_numbers(typed, shown):
    assert kept_together(typed) == shown.replace("_", NARROW)
