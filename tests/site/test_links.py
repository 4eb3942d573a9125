"""Links: inside the site, inside the repository's text files, and to other hosts."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"

if not (SITE / "index.html").is_file():
    pytest.fail(f"no site at {SITE}: run `make book` first", pytrace=False)

HTML_PAGES = sorted(
    path for path in SITE.rglob("*.html") if "_static" not in path.parts
)
TEXTS = sorted(ROOT.glob("*.md"))  # the others are pages of the site


class Page(HTMLParser):
    """What a page links to, what it loads, and what can be linked to in it."""

    def __init__(self, path: Path):
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if "id" in attributes:
            self.ids.add(attributes["id"])
        if tag == "a" and attributes.get("href"):
            self.links.append(attributes["href"])
        elif tag == "link" and attributes.get("href"):
            self.loads.append(attributes["href"])
        if attributes.get("src"):
            self.loads.append(attributes["src"])


PARSED = {path: Page(path) for path in HTML_PAGES}


def problem(page: Path, link: str) -> str | None:
    """What is wrong with a link of a page, if it stays in the site."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    start = page.parent
    if page == SITE / "404.html":  # shown at any depth, so from the site's top
        start, link = SITE, link.removeprefix("/")
        parts = urlsplit(link)
    target = (start / unquote(parts.path)).resolve() if parts.path else page
    if not target.is_file():
        return f"no file {link}"
    anchors = PARSED[target].ids if target in PARSED else set()
    if parts.fragment and unquote(parts.fragment) not in anchors:
        return f"nothing named {link}"
    return None


@pytest.mark.parametrize("page", HTML_PAGES, ids=lambda path: path.stem)
def test_links_inside_the_site_lead_somewhere(page):
    parsed = PARSED[page]
    links = [link for link in parsed.links if link not in {"#", ""}]
    problems = [problem(page, link) for link in [*links, *parsed.loads]]
    assert sorted(set(filter(None, problems))) == []


@pytest.mark.parametrize("page", HTML_PAGES, ids=lambda path: path.stem)
def test_nothing_is_loaded_from_another_host(page):
    outside = [load for load in PARSED[page].loads if urlsplit(load).netloc]
    assert outside == []


@pytest.mark.parametrize("sheet", sorted(SITE.rglob("*.css")), ids=lambda p: p.name)
def test_style_sheets_load_nothing_from_another_host(sheet):
    text = sheet.read_text("utf-8")
    addresses = re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)\"';]*", text)
    assert addresses == []


def test_links_to_other_hosts_are_encrypted():
    links = {link for page in PARSED.values() for link in page.links}
    outside = sorted(link for link in links if urlsplit(link).scheme == "http")
    assert outside == []


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.name)
def test_relative_links_in_text_files_lead_somewhere(text):
    source = re.sub(r"```.*?```", "", text.read_text("utf-8"), flags=re.DOTALL)
    links = map(urlsplit, re.findall(r"\]\(([^)\s]+)", source))
    paths = [unquote(link.path) for link in links if not link.scheme and link.path]
    assert [path for path in paths if not (text.parent / path).exists()] == []


def test_contents_list_every_chapter_that_exists_and_no_other():
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    listed = {contents["root"]}
    entries = [entry for part in contents["parts"] for entry in part["chapters"]]
    for entry in entries:
        listed.add(entry["file"])
        entries.extend(entry.get("sections", []))
    pages = [*ROOT.glob("book/*.md"), *ROOT.glob("exercises/*/*.ipynb")]
    there = {str(path.relative_to(ROOT).with_suffix("")) for path in pages}
    assert listed == there
