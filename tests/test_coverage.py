"""Every concept and every error of the sources has a place, and the place is there."""

import re

import pytest
import yaml

from autograder.generator import ROOT
from tests.chapters import CHAPTERS, source


def numbered(letter: str, last: int) -> set[str]:
    return {f"{letter}{number}" for number in range(1, last + 1)}


ROWS = {
    "01_embeddings": numbered("E", 20),
    "02_class_token": numbered("C", 7) | {"G3"},
    "03_positional_encoding": numbered("P", 16),
    "04_attention": numbered("A", 45),
    "05_multi_head_attention": numbered("M", 12),
    "06_encoder": numbered("N", 24) | {"G7", "G8", "G9", "F3", "F10"},
}
ERRORS = {
    "01_embeddings": {"0.1", "3.2", "3.3", "4.4", "4.5", "4.21"},
    "02_class_token": {"0.3"},
    "03_positional_encoding": {"0.4", "0.5", "4.1", "4.2"},
    "04_attention": {"0.8", "0.9", "0.10", "0.11", "0.12", "1.1", "1.3", "1.5", "1.6",
                     "3.1", "3.4"},
    "05_multi_head_attention": {"0.13", "1.7", "4.17"},
    "06_encoder": {"0.14", "2.3", "3.6", "3.10", "4.6", "4.7", "4.8", "4.15", "4.18"},
}  # fmt: skip


def coverage(chapter: str) -> dict[str, list[str]]:
    path = ROOT / "book" / "coverage" / f"{chapter}.yml"
    groups = yaml.load(path.read_text(encoding="utf-8"), yaml.BaseLoader)
    rows = {row: targets for group in groups.values() for row, targets in group.items()}
    assert all(isinstance(targets, list) and targets for targets in rows.values())
    return rows


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_row_has_a_place(chapter: str) -> None:
    wanted = ROWS.get(chapter, set()) | ERRORS.get(chapter, set())
    assert wanted <= coverage(chapter).keys(), wanted - coverage(chapter).keys()


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_place_is_there(chapter: str) -> None:
    page = (ROOT / "book" / f"{chapter}.md").read_text(encoding="utf-8")
    labels = set(re.findall(r"^\(([\w-]+)\)=$", page, flags=re.MULTILINE))
    places = {f"page:{label}" for label in labels}
    places |= {f"exercise:{exercise.name}" for exercise in source(chapter).exercises}
    for row, targets in coverage(chapter).items():
        assert set(targets) <= places, f"{row}: {set(targets) - places}"


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_an_error_of_the_sources_is_told_where_the_page_says_so(chapter: str) -> None:
    """A box of its own in that section, or an exercise that asks for it."""
    page = (ROOT / "book" / f"{chapter}.md").read_text(encoding="utf-8")
    sections = re.split(r"^\(([\w-]+)\)=$", page, flags=re.MULTILINE)
    boxes = {
        f"page:{label}"
        for label, text in zip(sections[1::2], sections[2::2], strict=True)
        if ":class: sources" in text
    }
    for row in ERRORS.get(chapter, set()):
        targets = coverage(chapter)[row]
        asked = [target for target in targets if target.startswith("exercise:")]
        assert asked or boxes & set(targets), row
