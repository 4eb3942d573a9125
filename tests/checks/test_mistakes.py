"""The checks are tested: each wrong answer is named, each right one passes."""

import ast
import warnings

import pytest

from autograder.expect import CheckFailure
from autograder.generator import ROOT
from tests import chapters
from tests.messages import assert_is_short

ENTRIES = [
    pytest.param(chapter, entry, id=f"{chapter[:2]} {entry.label} {number}")
    for chapter in chapters.CHAPTERS
    for number, entry in enumerate(chapters.bank(chapter))
]
WRONG = [each for each in ENTRIES if each.values[1].mistake]
RIGHT = [each for each in ENTRIES if not each.values[1].mistake]
EXERCISES = [
    pytest.param(chapter, exercise, id=f"{chapter[:2]} {exercise.name}")
    for chapter in chapters.CHAPTERS
    for exercise in chapters.source(chapter).exercises
    if not exercise.by_hand
]


@pytest.mark.parametrize(("chapter", "entry"), WRONG)
def test_a_mistake_is_rejected_by_its_name(chapter: str, entry, capsys) -> None:
    """The part of the check that the student sees names it, and says what to read."""
    with pytest.raises(CheckFailure) as caught:
        chapters.run_checks(chapter, entry, hidden=False)
    assert caught.value.mistake == entry.mistake, str(caught.value)
    message = str(caught.value)
    assert entry.mistake in message
    for part in ("on       ", "why      ", "read     "):
        assert part in message, message
    assert_is_short(caught.value)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("chapter", "entry"), RIGHT)
def test_a_correct_variant_passes(chapter: str, entry, capsys) -> None:
    chapters.solved(chapter)  # what its figures warn of is not the variant's
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chapters.run_checks(chapter, entry, hidden=True)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("chapter", "exercise"), EXERCISES)
def test_the_reference_passes_every_check(chapter: str, exercise, capsys) -> None:
    names = chapters.solved(chapter)
    for text in chapters.check_cells(chapter, exercise.name, hidden=True):
        exec(text, names)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("chapter", "exercise"), EXERCISES)
def test_an_exercise_has_three_mistakes(chapter: str, exercise) -> None:
    names = {
        entry.mistake
        for entry in chapters.bank(chapter)
        if entry.exercise == exercise.name and entry.mistake
    }
    assert len(names) >= 3, sorted(names)


@pytest.mark.parametrize("chapter", chapters.CHAPTERS)
def test_the_bank_names_exercises_that_exist(chapter: str) -> None:
    names = {exercise.name for exercise in chapters.source(chapter).exercises}
    assert {entry.exercise for entry in chapters.bank(chapter)} <= names


@pytest.mark.parametrize("chapter", chapters.CHAPTERS)
def test_checks_point_to_sections_of_the_book_that_exist(chapter: str) -> None:
    module = chapters.source(chapter).module
    place = ROOT / "autograder" / "chapters" / module
    files = place.glob("*.py") if place.is_dir() else [place.with_suffix(".py")]
    text = "\n".join(path.read_text("utf-8") for path in sorted(files))
    page = (ROOT / "book" / f"{chapter}.md").read_text("utf-8")
    sections = [
        keyword.value.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        for keyword in node.keywords
        if keyword.arg == "section" and isinstance(keyword.value, ast.Constant)
    ]
    assert sections
    for section in sections:
        assert f"({section})=" in page, section


def test_checks_never_see_the_solutions() -> None:
    for path in (ROOT / "autograder").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, (ast.Import, ast.ImportFrom)):
                continue
            named = getattr(node, "module", None)
            names = [named] if named else [alias.name for alias in node.names]
            assert not any(
                name.split(".")[0] in ("transformer", "mistakes", "solutions")
                for name in names
            ), f"{path}:{node.lineno}"
