"""Mutated notebooks: no crash, no hang, no point that is not deserved.

The long run is ``python -m tools.measure.fuzz --count 10000 --seed 0``; this one is
short, and always the same.
"""

import json

import hypothesis
import pytest
from hypothesis import HealthCheck

from autograder.grading import sandbox
from autograder.grading.grader import Grader
from tests import strangers
from tools.measure import fuzz

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(bool(sandbox.problem()), reason=sandbox.problem() or "works"),
]


@pytest.fixture(scope="module")
def grader():
    with Grader() as made:
        fuzz.prepare(made)
        yield made


def test_mutated_notebooks(grader) -> None:
    tally = fuzz.Tally()

    @hypothesis.settings(
        max_examples=60,
        database=None,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(fuzz.submissions())
    def one(data: bytes) -> None:
        assert tally.add(data, *fuzz.grade(data, grader)) == []

    one()
    assert tally.count >= 60
    assert len(tally.statuses) == 2  # graded and ungraded
    assert len(tally.scores) > 2


def test_the_referee_disagrees_with_points_that_are_not_deserved(grader) -> None:
    """An outcome with forged points is complained about, in each of three ways."""
    wrong = strangers.solved(only=fuzz.EXERCISES)
    at = strangers.find(wrong, "softmax")
    wrong["cells"][at]["source"] = "def softmax(scores):\n    return scores"
    data = json.dumps(wrong).encode()
    outcome, seconds = fuzz.grade(data, grader)
    assert fuzz.complaints(data, outcome, seconds) == []
    (verdict,) = (each for each in outcome.verdicts if each.exercise == "softmax")
    verdict.score = verdict.points
    assert "fails in a notebook of its own" in fuzz.complaints(data, outcome, 1)[0]
    verdict.score = verdict.points / 2
    assert "of 2" in fuzz.complaints(data, outcome, 1)[0]
    verdict.score = 0
    complaints = fuzz.complaints(b'{"cells": []}', outcome, 1)
    assert any("it ran 'def softmax" in each for each in complaints)
