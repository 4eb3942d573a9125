"""Every idea and every mistake of the sources has a place, and the place is there.

The data are in book/coverage (pages/coverage.py says how). Places are looked for in
the pages' and exercises' sources, so that no site has to be built.
"""

import re
from collections.abc import Iterator

import pytest

from autograder.generator import ROOT
from pages import coverage
from tests.chapters import CHAPTERS, source

CONCEPTS = coverage.load("concepts")
ERRATA = coverage.load("errata")
TOLD = [row for row, entry in ERRATA.items() if entry["kind"] in coverage.TOLD]
IDEAS = {"G": 14, "E": 20, "C": 7, "P": 17, "A": 45, "M": 12, "N": 24, "D": 37}
IDEAS |= {"V": 14, "F": 14, "R": 1}
REMARKS = {"0": 19, "1": 15, "2": 9, "3": 14, "4": 22, "X": 3}
FENCED = re.MULTILINE | re.DOTALL
WAITS: dict[str, int] = {}  # ideas that a chapter still to be written takes up (again)


def page(name: str) -> str:
    return (ROOT / "book" / f"{name}.md").read_text(encoding="utf-8")


def labelled(text: str) -> dict[str, str]:
    """The text below each label: the whole section, or up to the next label."""
    found = {}
    for label in re.finditer(r"^\(([\w-]+)\)=$", text, flags=re.MULTILINE):
        below = text[label.end() :]
        title = re.match(r"(?:\s*\([\w-]+\)=)*\s*(#{1,4}) ", below)
        end = rf"^#{{1,{len(title[1])}}} " if title else r"^\([\w-]+\)=$"
        begin = title.end() if title else 0
        stop = next(ends(below, end, begin), len(below))
        found[label[1]] = below[:stop]
    return found


def ends(text: str, pattern: str, begin: int) -> Iterator[int]:
    """Where the pattern stands outside of code, from a place on."""
    code = [m.span() for m in re.finditer(r"^(`{3,})\{code-cell.*?^\1$", text, FENCED)]
    for match in re.finditer(pattern, text, flags=re.MULTILINE):
        within = any(first < match.start() < last for first, last in code)
        if match.start() >= begin and not within:
            yield match.start()


SECTIONS = {
    label: text
    for path in (ROOT / "book").glob("*.md")
    for label, text in labelled(path.read_text(encoding="utf-8")).items()
}
PLACES = {f"page:{label}" for label in SECTIONS} | {
    f"exercise:{exercise.name}"
    for chapter in CHAPTERS
    for exercise in source(chapter).exercises
}


def test_the_list_is_whole():
    ideas = [f"{letter}{n + 1}" for letter, last in IDEAS.items() for n in range(last)]
    remarks = [f"{who}.{n + 1}" for who, last in REMARKS.items() for n in range(last)]
    assert sorted(CONCEPTS) == sorted(ideas)
    assert sorted(ERRATA) == sorted(remarks)
    assert {entry["kind"] for entry in ERRATA.values()} == set(coverage.KINDS)


def test_every_idea_has_a_place():
    rows = coverage.targets()
    assert [row for row in CONCEPTS if not rows.get(row) and row not in WAITS] == []


def test_a_place_has_the_words_that_answer_its_question():
    """All of a row's words stand in one of the sections that it names."""
    for row, entry in CONCEPTS.items():
        assert entry["ask"].endswith("?") and len(entry["words"]) >= 2, row
        pages = [each for each in coverage.targets()[row] if each.startswith("page:")]
        missing = {
            page: [w for w in entry["words"] if flat(w) not in flat(SECTIONS[page[5:]])]
            for page in pages
        }
        assert [] in missing.values(), (row, missing)


def flat(text: str) -> str:
    """A text without its line breaks."""
    return " ".join(text.split()).lower()


def test_every_place_is_there():
    gone = {
        row: sorted(set(targets) - PLACES)
        for row, targets in coverage.targets().items()
        if not set(targets) <= PLACES
    }
    assert gone == {}


def test_what_waits_for_a_chapter_waits_for_good_reason():
    waiting = {row: e["planned"] for row, e in CONCEPTS.items() if "planned" in e}
    assert waiting == WAITS
    for row, number in waiting.items():
        written = list((ROOT / "book").glob(f"{number:02}_*.md"))
        assert not written, f"{row}: chapter {number} is there, name the place in it"


def test_every_remark_on_the_sources_has_a_place():
    rows = coverage.targets()
    assert [row for row in ERRATA if not rows.get(row)] == []


@pytest.mark.parametrize("row", TOLD)
def test_a_mistake_is_told_and_its_number_computed(row: str) -> None:
    """An entry on the page of disagreements; a cell follows before the part ends."""
    text = page("disagreements")
    start = text.find(f"({coverage.anchor(row)})=\n**{row} · ")
    assert start >= 0, f"no entry for {row}"
    part = text[start:].split("\n## ")[0]
    assert "```{code-cell} ipython3\n:tags: [remove-cell]" in part  # the assertions
    listed = re.search(r"where_list\((.*?)\)", part, flags=re.DOTALL)[1]
    assert f'"{row}"' in listed


@pytest.mark.parametrize("row", TOLD)
def test_a_mistake_is_told_in_its_chapter_too(row: str) -> None:
    """By an exercise, in a section that computes, or in a box on the sources."""
    targets = coverage.targets()[row]
    asked = [each for each in targets if each.startswith("exercise:")]
    sections = [SECTIONS.get(each.removeprefix("page:"), "") for each in targets]
    told = re.compile(r"\{code-cell\}|\bsources?\b", re.IGNORECASE)
    assert asked or any(told.search(text) for text in sections)


def test_a_row_without_a_known_name_is_noticed():
    known = {*CONCEPTS, *ERRATA}
    assert [row for row in coverage.targets() if row not in known] == []


def test_tables_link_to_all_that_the_site_has():
    """What is on a page that the site lists is linked in the tables of the site."""
    known = coverage.places()
    for row in CONCEPTS:
        here = [each for each in coverage.targets().get(row, []) if each in known]
        assert bool(here) == bool(coverage.links(row)), row
