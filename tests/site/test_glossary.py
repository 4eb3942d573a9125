"""The glossary and the pages hang together: every word is linked, every link kept."""

import re
from pathlib import Path

import pytest

from autograder.generator import ROOT

GLOSSARY = ROOT / "book" / "glossary.md"
PAGES = sorted(path for path in GLOSSARY.parent.glob("*.md") if path != GLOSSARY)
ROLE = re.compile(r"\{term\}`(?:[^`<]*<)?([^`<>]+)>?`")


def terms() -> list[str]:
    """The words of the glossary, in its order."""
    text = GLOSSARY.read_text(encoding="utf-8")
    _, inside = text.split("```{glossary}\n")
    return re.findall(r"^(?! |`)(.+)$", inside, flags=re.MULTILINE)


def links(path: Path) -> list[str]:
    """The words that a page links to the glossary, in the order of the page."""
    found = ROLE.findall(path.read_text(encoding="utf-8"))
    return [" ".join(target.split()) for target in found]


def test_words_are_sorted_and_stand_once():
    assert len(terms()) > 100
    assert terms() == sorted(set(terms()), key=str.casefold)


def test_every_word_is_linked_from_a_page():
    linked = {target for path in PAGES for target in links(path)}
    assert set(terms()) - linked == set()


@pytest.mark.parametrize("path", [*PAGES, GLOSSARY], ids=lambda path: path.stem)
def test_every_link_leads_to_a_word(path):
    assert set(links(path)) - set(terms()) == set()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_links_a_word_only_once(path):
    found = links(path)
    assert sorted(found) == sorted(set(found))
