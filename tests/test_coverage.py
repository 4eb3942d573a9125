"""Every concept and every error of the sources has a place, and the place is there."""

import re

import pytest
import yaml

from autograder.generator import ROOT
from tests.chapters import CHAPTERS, source

ROWS = {
    "03_positional_encoding": {f"P{number}" for number in range(1, 17)},
    "04_attention": {f"A{number}" for number in range(1, 46)},
}
ERRORS = {
    "03_positional_encoding": {"0.4", "0.5", "4.1", "4.2"},
    "04_attention": {"0.8", "0.9", "0.10", "0.11", "0.12", "1.1", "1.3", "1.5", "1.6",
                     "3.1", "3.4"},
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
