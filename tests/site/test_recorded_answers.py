"""Recorded answers: they are what the checks say today, and no more is shown."""

import ast
import gzip

import pytest

from tests import chapters
from tests.messages import assert_is_short
from tests.tutor.bank import all_strangers
from tools.site import answer_texts, recorded_answers, recorded_pages
from tools.site.answer_texts import Text

RECORDED = {name: recorded_pages.recorded(name) for name in chapters.CHAPTERS}
EACH = [
    pytest.param(chapter, name, id=f"{chapter[:2]} {name}")
    for chapter, found in RECORDED.items()
    for name in found
]
FEW = ("encoder-classifier", "gpt2-weights")  # hardly one stands alone
AGAIN = "run: python -m tools.site.recorded_answers --record"


@pytest.mark.parametrize("chapter", chapters.CHAPTERS)
def test_no_record_is_older_than_its_check(chapter: str) -> None:
    assert recorded_answers.stale(chapter) == [], AGAIN
    names = [each.name for each in recorded_answers.exercises(chapter)]
    assert sorted(RECORDED[chapter]) == sorted(names)


@pytest.mark.parametrize("chapter", chapters.CHAPTERS)
def test_a_check_says_what_is_recorded(chapter: str) -> None:
    """The first exercise of a chapter stands for what all checks have in common."""
    name, found = next(iter(RECORDED[chapter].items()))
    for each in found["answers"]:
        failure = recorded_answers.run(chapter, name, Text("", each["code"], None))
        told = recorded_answers.facts(failure) if failure else {}
        assert told == each["failure"], AGAIN


@pytest.mark.parametrize(("chapter", "name"), EACH)
def test_an_exercise_has_wrong_answers_with_names_of_the_bank(
    chapter: str, name: str
) -> None:
    answers = RECORDED[chapter][name]["answers"]
    codes = [each["code"] for each in answers]
    assert (5 if name in FEW else 6) <= len(answers) <= 10 and len({*codes}) == len(
        codes
    )
    known = {e.mistake for e in chapters.bank(chapter) if e.exercise == name}
    known |= {e.says for _, e in all_strangers() if e.exercise == name}
    wrong = [each for each in answers if each["failure"]]
    named = [each for each in wrong if "mistake" in each["failure"]]
    assert named
    assert {each["failure"]["mistake"] for each in named} <= known
    for each in wrong:
        lines = each["code"].splitlines()
        for first, many, new in reversed(each["repair"]):
            lines[first : first + many] = new
        assert ast.parse("\n".join(lines))


@pytest.mark.parametrize(("chapter", "name"), EACH)
def test_answers_that_a_page_names_are_recorded(chapter: str, name: str) -> None:
    answers = RECORDED[chapter][name]["answers"]
    known = {each["failure"].get("mistake") for each in answers}
    assert {*recorded_answers.shown(name)} <= known, AGAIN


@pytest.mark.parametrize("chapter", chapters.CHAPTERS)
def test_a_recorded_message_is_short(chapter: str) -> None:
    for found in RECORDED[chapter].values():
        for each in found["answers"]:
            if each["failure"]:
                assert_is_short(recorded_pages.failure_of(each["failure"]))


def test_a_page_names_answers() -> None:
    assert any(recorded_answers.shown(each.values[1]) for each in EACH)


def test_most_wrong_answers_are_told_a_name() -> None:
    every = [
        a for found in RECORDED.values() for e in found.values() for a in e["answers"]
    ]
    wrong = [each["failure"] for each in every if each["failure"]]
    assert sum("mistake" in each for each in wrong) > 0.8 * len(wrong)


@pytest.mark.parametrize("chapter", chapters.CHAPTERS)
def test_what_a_chapter_loads_is_small(chapter: str) -> None:
    made = recorded_pages.of_chapter(RECORDED[chapter], "all")
    assert len(gzip.compress(recorded_pages.script(chapter, made))) < 40_000


def test_a_publisher_chooses_how_much_is_shown(tmp_path, monkeypatch) -> None:
    chapter = "04_attention"
    every = recorded_pages.of_chapter(RECORDED[chapter], "all")
    some = recorded_pages.of_chapter(RECORDED[chapter], "messages")
    assert any("card" not in each for each in every["softmax"])
    assert any("repair" in each for each in every["softmax"])
    for answers in some.values():
        assert answers and all("card" in each for each in answers)
        assert not any("repair" in each for each in answers)
    recorded_pages.write(tmp_path, tmp_path / "about.json", "none")
    assert list((tmp_path / "recorded").iterdir()) == []
    assert (tmp_path / "about.json").read_text() == "{}"
    monkeypatch.setenv("RECORDED", "some")
    with pytest.raises(ValueError, match="all, messages, none"):
        recorded_pages.choice()


def test_an_answer_of_the_bank_stands_alone() -> None:
    chapter = "04_attention"
    names = chapters.written(chapter)
    entries = [e for e in chapters.by_hand(chapter) if e.exercise == "softmax"]
    texts = [answer_texts.of_bank(entry, names) for entry in entries]
    with_helper = next(text for text in texts if "weights_of" in text.code)
    assert "def weights_of" in with_helper.code and "INF = math.inf" in with_helper.code
    assert not any("@" in text.code for text in texts)


def test_a_repair_is_the_lines_that_differ() -> None:
    assert recorded_answers.repair("a\nb\nc", "a\nB\nc") == [(1, 1, ["B"])]
    assert recorded_answers.is_near("x = y.sum(0)", "x = y.sum(1)")
    assert not recorded_answers.is_near("x = y.sum(0)", "return 1")
    right = Text("f", "def f(x):\n    return x.sum(dim=-1)", None)
    codes = [each.code for each in answer_texts.one_step_off(right)]
    assert "def f(x):\n    return x.sum(dim=-2)" in codes and right.code not in codes
