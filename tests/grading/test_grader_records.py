"""The records of the grader: full runs, and as good as they must be.

They take most of an hour on a machine that does nothing else, so they are made by hand:
CONTRIBUTING.md, "Keep grading fast and safe", says how. What they measure is tested, on
a smaller scale, in test_bench.py, test_fuzz.py and test_grading.py.
"""

import json

import pytest

from tests.conftest import ROOT

FOLDER = ROOT / "results" / "grader"
BENCH = json.loads((FOLDER / "bench.json").read_text("utf-8"))
COORDINATOR = json.loads((FOLDER / "coordinator.json").read_text("utf-8"))
FUZZ = json.loads((FOLDER / "fuzz.json").read_text("utf-8"))


@pytest.mark.parametrize(
    "record", [BENCH, COORDINATOR, FUZZ], ids=["bench", "coordinator", "fuzz"]
)
def test_a_record_says_where_it_comes_from(record) -> None:
    for fact in ("command", "date", "commit", "hardware", "python", "load"):
        assert record[fact], fact


def test_grading_is_twenty_times_as_fast_as_by_nbgrader_alone() -> None:
    seconds = BENCH["seconds"]
    assert BENCH["compared"] >= 100
    assert BENCH["seconds_stock"] / seconds["compared"] >= 20
    assert BENCH["same_scores"] == BENCH["compared"]


def test_a_large_class_takes_minutes_and_costs_no_more_for_each() -> None:
    assert BENCH["many"] >= 1000
    assert BENCH["seconds"]["many"] <= 300
    assert BENCH["one_of_many"] <= 1.1 * BENCH["one_of_compared"]


def test_the_trusted_side_does_not_grow_with_the_class() -> None:
    assert BENCH["memory_end"] <= 1.05 * BENCH["memory_begin"]


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_coordinator_keeps_two_hundred_graders_busy(database) -> None:
    """20 ms each, the class as large as it likes."""
    found = COORDINATOR["databases"][database]
    assert found["submissions"] >= 20_000
    assert found["milliseconds"] <= 20
    tenths, memory = found["milliseconds_of_tenths"], found["memory_of_tenths"]
    assert tenths[-1] <= 1.25 * tenths[1]
    assert memory[-1] <= 1.05 * memory[1]


def test_one_endless_function_hardly_delays_a_class() -> None:
    record = json.loads((FOLDER / "endless.json").read_text("utf-8"))
    assert (record["students"], record["same_scores"]) == (32, 31)
    assert record["ratio"] <= 1.3


def test_no_mutated_notebook_got_the_better_of_the_grader() -> None:
    assert FUZZ["submissions"] >= 10_000
    assert FUZZ["different"] >= 0.95 * FUZZ["submissions"]
    assert sum(FUZZ["statuses"].values()) == FUZZ["submissions"]
    assert set(FUZZ["statuses"]) == {"graded", "ungraded"}
    assert FUZZ["wrong"] == []
    assert FUZZ["longest_seconds"] < 60
