"""What the search shows of a page beside its title: the page's words, by sections.

`write(site, cache)` makes search_texts.js of a built site. Without it the search would
read whole pages for a line of each, and could not at all from a disk.
"""

import functools
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path

from tools import lighten
from tools.section_heights import BLOCKS, UNSEEN_CLASSES, UNSEEN_TAGS, VOID

NAME = "search_texts.js"
# Besides what is not seen at all
NOT_READ = UNSEEN_TAGS | {"svg", "button", "nav", "annotation", "select"}
NOT_READ_CLASSES = UNSEEN_CLASSES | {"noprint"}
PARTED = {*BLOCKS, "h1", "pre", "td", "th"}  # from the words that follow


def write(site: Path, cache: Path) -> None:
    """Write the texts of all pages that the search index lists."""
    own = Path(__file__).read_text("utf-8")
    texts = {}
    for path in sorted(site.rglob("*.html")):
        page, _ = lighten.parted(path.read_text("utf-8"))
        work = functools.partial(text_of, page)
        if text := lighten.remembered(cache, own + page, work):
            texts[path.relative_to(site).as_posix()] = text
    content = json.dumps(texts, ensure_ascii=False, separators=(",", ":"))
    (site / NAME).write_text(f"window.searchTexts = {content};\n", "utf-8")


def text_of(page: str) -> str:
    """Give the words of a page's article, in elements that have its anchors."""
    reader = _Reader()
    reader.feed(page)
    reader.close()
    text = re.sub(r"\s+", " ", "".join(reader.parts)).strip()
    return f'<div role="main">{text}</div>' if text else ""


class _Reader(HTMLParser):
    """Collects what is read in an article; sections keep their names."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.open: list[tuple[str, bool, str]] = []  # tag, whether it is read, its end
        self.terms = 0  # of which the explanation has not come yet

    def handle_starttag(self, tag: str, attributes: list) -> None:
        if tag in VOID:
            return
        given = dict(attributes)
        classes = set((given.get("class") or "").split())
        read = tag == "article" or bool(self.open and self.open[-1][1])
        read = read and tag not in NOT_READ and not classes & NOT_READ_CLASSES
        name = html.escape(given.get("id") or "") if read else ""
        begin, end = "", " " if tag in PARTED else ""
        if name and tag == "section":
            begin, end = f'<section id="{name}">', "</section>"
        elif name and tag == "dt":  # its explanation belongs to a term
            begin, self.terms = f'<div id="{name}">', self.terms + 1
        elif tag == "dd":
            end, self.terms = " " + "</div>" * self.terms, 0
        self.open.append((tag, read, end if read else ""))
        self.parts.append(begin)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID or all(tag != name for name, _, _ in self.open):
            return
        while self.open:
            name, _, end = self.open.pop()
            self.parts.append(end)
            if name == tag:
                break

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1][1]:
            self.parts.append(html.escape(data, quote=False))
