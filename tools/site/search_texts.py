"""What the search knows: the words of all pages, by sections.

`write(site, cache)` makes search_texts.js of a built site, for book/_static/search.js.
It is a script, since a page from a disk may load nothing else.
"""

import functools
import json
import re
from html.parser import HTMLParser
from pathlib import Path

from tools.site import lighten
from tools.site.section_heights import BLOCKS, UNSEEN_CLASSES, UNSEEN_TAGS, VOID

NAME = "search_texts.js"
# Besides what is not seen at all
NOT_READ = UNSEEN_TAGS | {"svg", "button", "nav", "annotation", "select"}
NOT_READ_CLASSES = UNSEEN_CLASSES | {"noprint", "headerlink"}
PARTED = {*BLOCKS, "h1", "pre", "td", "th"}  # from the words that follow
HEADINGS = {"h1", "h2", "h3", "h4", "h5", "h6"}


def write(site: Path, cache: Path) -> None:
    """Write the texts of all pages that have an article."""
    own = Path(__file__).read_text("utf-8")
    texts = {}
    for path in sorted(site.rglob("*.html")):
        page, _ = lighten.parted(path.read_text("utf-8"))
        work = functools.partial(text_of, page)
        if sections := json.loads(lighten.remembered(cache, own + page, work)):
            title = next((heading for _, heading, _ in sections if heading), "")
            texts[path.relative_to(site).as_posix()] = [title, sections]
    content = json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
    (site / NAME).write_text(f"window.searchTexts = {content};\n", "utf-8")


def text_of(page: str) -> str:
    """Give the sections of a page's article as JSON: anchor, heading, words of each."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    sections = [
        [section.anchor, together(section.heading), together(section.text)]
        for section in reader.sections
    ]
    found = [section for section in sections if section[1] or section[2]]
    return json.dumps(found, ensure_ascii=False)


def together(parts: list[str]) -> str:
    """Join words, with one space between them."""
    return re.sub(r"\s+", " ", "".join(parts)).strip()


class _Section:
    """A section, or a term with its explanation: what leads to it, and its words."""

    def __init__(self, anchor: str):
        self.anchor = anchor
        self.heading: list[str] = []
        self.text: list[str] = []


class _Reader(HTMLParser):
    """Collects what is read in an article, each section for itself."""

    def __init__(self) -> None:
        super().__init__()
        self.sections = [_Section("")]
        self.inside = [self.sections[0]]
        # tag, whether it is read, whether it is a heading, the section that it ends
        self.open: list[tuple[str, bool, bool, _Section | None]] = []
        self.terms: list[_Section] = []  # whose explanation has not come yet

    def handle_starttag(self, tag: str, attributes: list) -> None:
        if tag in VOID:
            return
        given = dict(attributes)
        classes = set((given.get("class") or "").split())
        _, was_read, was_heading, _ = self.open[-1] if self.open else ("", 0, 0, None)
        read = tag == "article" or bool(was_read)
        read = read and tag not in NOT_READ and not classes & NOT_READ_CLASSES
        anchor, own = given.get("id") if read else None, None
        if anchor and tag in {"section", "dt"}:
            own = _Section(anchor)
            self.sections.append(own)
            self.inside.append(own)
            self.terms += [own] if tag == "dt" else []
        elif read and tag == "dd" and self.terms:  # it explains the terms before it
            own, self.terms = self.terms[-1], []
            self.inside.append(own)
        heading = bool(was_heading) or tag in HEADINGS or bool(own and tag == "dt")
        self.open.append((tag, read, heading, own))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID or all(tag != name for name, *_ in self.open):
            return
        while self.open:
            name, read, heading, own = self.open.pop()
            if own:
                self.inside.pop()
            if read and name in PARTED:
                self.put(" ", heading)
            if name == tag:
                break

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1][1]:
            self.put(data, self.open[-1][2])

    def put(self, words: str, heading: bool) -> None:
        section = self.inside[-1]
        (section.heading if heading else section.text).append(words)
