"""Answers that were written from the notebooks alone are told what they were told."""

import argparse
import json
from collections import Counter
from pathlib import Path

import pytest

from autograder.generator import ROOT
from tests import chapters
from tests.messages import assert_is_short
from tests.tutor import bank, written
from tools.measure import tutor

EVERYBODY = [
    pytest.param(chapter, entry, id=f"{chapter[:2]} {entry.exercise} {number}")
    for number, (chapter, entry) in enumerate(bank.all_strangers())
]
EXERCISES = {each: chapters.source(each).exercises for each in chapters.CHAPTERS}
RECORD = ROOT / "results" / "tutor" / "strangers.json"


@pytest.mark.parametrize(("chapter", "entry"), EVERYBODY)
def test_a_stranger_is_told_what_was_judged(chapter: str, entry: bank.Stranger) -> None:
    failure = entry.message(chapter, looking=entry.line > 0)
    if failure:
        assert_is_short(failure)
    assert (failure is None) == (entry.verdict == "passed"), entry.truth
    assert bank.name_of(failure) == entry.says, f"{entry.truth}\n{failure}"
    place = failure.place if failure else None
    assert (place.line_number if place else 0) == entry.line, f"{failure}"
    # beside a general name, such as weights that start too large, a sentence may tell
    assert (entry.verdict in ("named", "told", "wrong")) or not entry.says


def test_the_record_has_the_verdicts() -> None:
    record = json.loads(RECORD.read_text("utf-8"))
    chapters = record["chapters"]
    for chapter, row in chapters.items():
        entries = [entry for name, entry in bank.all_strangers() if name == chapter]
        assert row["answers"] == len(entries)
        assert row["kinds"] == Counter(entry.kind for entry in entries)
        assert row["now"] == Counter(entry.verdict for entry in entries)
        assert row["first"] == Counter(entry.first for entry in entries)
    for number, row in record["rounds"].items():
        entries = [
            each for _, each in bank.all_strangers() if each.round == int(number)
        ]
        assert row["first"] == Counter(entry.first for entry in entries)
    assert {name for name, _ in bank.all_strangers()} == set(chapters)


def test_nobody_waits_long_for_a_message() -> None:
    seconds = json.loads(RECORD.read_text("utf-8"))["seconds"]
    assert seconds["99 of 100"] <= 1


def test_there_are_enough_and_half_are_hard() -> None:
    kinds = [entry.kind for _, entry in bank.all_strangers()]
    assert len(kinds) >= 300
    assert sum(kind != "plain" for kind in kinds) >= len(kinds) / 2


def test_the_tutor_is_good_enough() -> None:
    """Now named 88 %, useless 2 %, wrong name 0.5 %, passed 0.5 %; see the record."""
    verdicts = [entry.verdict for _, entry in bank.all_strangers()]
    for verdict, most in (("useless", 0.02), ("wrong", 0.005), ("passed", 0.005)):
        assert verdicts.count(verdict) <= most * len(verdicts), verdict
    assert verdicts.count("named") >= 0.88 * len(verdicts)


# --- how they are kept ----------------------------------------------------------------

NEW = """\
# === exercise: {} | function: softmax | kind: plain | what is wrong: the wrong axis
def softmax(scores):
    powers = (scores - scores.amax()).exp()
    return powers / powers.sum(dim=0, keepdim=True)
"""


@pytest.mark.parametrize("named", ["4.1 · Softmax", "4.1", "softmax"])
def test_a_new_answer_is_kept_under_the_id_of_its_exercise(
    named: str, tmp_path: Path, monkeypatch
) -> None:
    number = next(e.number for e in EXERCISES["04_attention"] if e.name == "softmax")
    new, kept, verdicts = (tmp_path / each for each in ("new", "kept", "verdicts"))
    new.mkdir()
    kept.mkdir()
    (new / "04_attention.py").write_text(NEW.format(named.replace("4.1", number)))
    verdicts.write_text("04_attention 1 named\n")
    monkeypatch.setattr(written, "FOLDER", kept)
    tutor.hand_in(
        argparse.Namespace(hand_in=new, verdicts=verdicts, round=1, again=False)
    )
    text = (kept / "round_1" / "04_attention.py").read_text("utf-8")
    assert "# === exercise: softmax | function: softmax | kind: plain" in text
    assert "# now: named\n# says: softmax over the wrong axis\n" in text


def test_a_new_answer_to_an_exercise_that_is_not_there_is_refused(tmp_path) -> None:
    path = tmp_path / "04_attention.py"
    path.write_text(NEW.format("4.99 · Softmax"))
    with pytest.raises(ValueError, match=r"no such exercise: .*4\.99 · Softmax"):
        bank.read_new(path)


def test_every_answer_is_kept_under_the_id_of_an_exercise() -> None:
    for _, path in written.rounds():
        names = {each.name for each in EXERCISES[path.stem]}
        assert {each.exercise for each in written.read(path)} <= names, path
