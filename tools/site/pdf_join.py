"""Join the printed pages of the site: tools/site/pdf.py prints them.

In front go a title page and the contents, at the foot of each page its chapter and its
number; links lead to pages of this one file.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urldefrag

from tools import browser
from tools.site import pdf_front
from tools.steps import ROOT

SITE = ROOT / "_build" / "html"
HOME = "book/index"


@dataclass
class Listed:
    """A page as _toc.yml lists it: with a title or not, under a chapter or not."""

    name: str
    title: str = ""
    depth: int = 0
    part: str = ""

    @property
    def number(self) -> str:
        """The number of its chapter, if it has one."""
        found = re.match(r"(\d+) · ", self.title)
        return found[1] if found else ""


@dataclass
class Printed:
    """A page of the site as it was printed."""

    page: Listed
    title: str
    headings: list[dict]
    file: Path


@dataclass
class Places:
    """On which page of the book things begin."""

    starts: dict[str, int] = field(default_factory=dict)
    inside: dict[tuple[str, str], tuple[int, float]] = field(default_factory=dict)


def page_of(link: str) -> tuple[str | None, str]:
    """Say to which page of the site, and where in it, an address leads."""
    address, place = urldefrag(link)
    start = SITE.as_uri() + "/"
    if not address.startswith(start) or not address.endswith(".html"):
        return None, ""
    return unquote(address.removeprefix(start).removesuffix(".html")), unquote(place)


def join(printed: list[Printed], target: Path, folder: Path) -> int:
    """Join the files, with contents, numbers and links; give the page count."""
    from pypdf import PdfReader, PdfWriter

    places, front = Places(), folder / "front.pdf"
    readers = [PdfReader(each.file) for each in printed]
    begin = 0
    for each, reader in zip(printed, readers, strict=True):
        find_places(each.page.name, begin, reader, places)
        begin += len(reader.pages)
    print_front(printed, places, front)
    before = len(PdfReader(front).pages)
    move(places, before)
    print_front(printed, places, front)  # again, now that its own length is known
    writer = PdfWriter()
    writer.append(front, import_outline=False)
    says, owner = ["", *["Contents"] * (before - 1)], [HOME] * before
    for each, reader in zip(printed, readers, strict=True):
        says += [each.title] * len(reader.pages)
        owner += [each.page.name] * len(reader.pages)
        writer.append(reader, import_outline=False)
    places.starts.setdefault(HOME, 1)
    mend_links(writer, owner, places)
    add_outline(writer, printed, places)
    add_feet(writer, says, folder)
    finish(writer)
    target.parent.mkdir(parents=True, exist_ok=True)
    writer.write(target)
    return len(writer.pages)


def find_places(name: str, begin: int, reader, places: Places) -> None:
    """Note where a page of the site begins, and where the places inside it are."""
    places.starts[name] = begin
    for place, where in reader.named_destinations.items():
        index = reader.get_destination_page_number(where)
        if index is not None and index >= 0:
            key = (name, unquote(place.lstrip("/")))
            places.inside[key] = (begin + index, float(where.top or 0))


def move(places: Places, by: int) -> None:
    """Have everything begin later."""
    places.starts = {name: start + by for name, start in places.starts.items()}
    places.inside = {key: (at + by, top) for key, (at, top) in places.inside.items()}


def print_front(printed: list[Printed], places: Places, target: Path) -> None:
    """Print the title page, and the contents with what is known of the numbers."""
    entries = []
    for each in printed:
        name = each.page.name
        link = (SITE / f"{name}.html").as_uri()
        entry = pdf_front.Entry(each.title, link, places.starts[name] + 1)
        entry.part, entry.depth = each.page.part, each.page.depth
        for heading in each.headings if each.page.depth == 0 else []:
            if at := places.inside.get((name, heading["name"])):
                section = (heading["title"], f"{link}#{heading['name']}", at[0] + 1)
                entry.sections.append(pdf_front.Entry(*section))
        entries.append(entry)
    with browser.launched() as chromium:
        tab = chromium.new_page()
        tab.goto((SITE / f"{HOME}.html").as_uri(), wait_until="domcontentloaded")
        about = tab.evaluate(pdf_front.ABOUT)
        tab.set_content(pdf_front.front(about, entries))
        tab.pdf(path=target, prefer_css_page_size=True)


def mend_links(writer, owner: list[str], places: Places) -> None:
    """Have links lead to pages of this file: to others of the site, and to places."""
    from pypdf.generic import ArrayObject, NameObject

    for page, name in zip(writer.pages, owner, strict=True):
        kept = ArrayObject()
        for annotation in page.get("/Annots") or []:
            link = annotation.get_object()
            action = str((link.get("/A") or {}).get("/URI"))
            # of this machine's files, only what is in the book can be reached
            if action.startswith("file:") and page_of(action)[0] not in places.starts:
                continue
            kept.append(annotation)
            if link.get("/Subtype") == "/Link":
                mend_link(writer, link, name, places)
        page[NameObject("/Annots")] = kept


def mend_link(writer, link, owner: str, places: Places) -> None:
    """Have a link on a page of the site lead to a page of this file, if it can."""
    from pypdf.generic import ArrayObject, FloatObject, NameObject, NullObject

    action = (link.get("/A") or {}).get("/URI")
    if action is not None:
        name, place = page_of(str(action))
    elif "/Dest" in link and not isinstance(link["/Dest"], ArrayObject):
        name, place = owner, unquote(str(link["/Dest"]).lstrip("/"))
    else:
        return
    if name not in places.starts:
        return
    number, top = places.inside.get((name, place), (places.starts[name], None))
    height = NullObject() if top is None else FloatObject(top)
    target = writer.pages[number].indirect_reference
    link.pop("/A", None)
    link[NameObject("/Dest")] = ArrayObject(
        [target, NameObject("/XYZ"), NullObject(), height, NullObject()]
    )


def add_outline(writer, printed: list[Printed], places: Places) -> None:
    """Add the pages' titles and sections, as a reader's side panel shows them."""
    from pypdf.generic import Fit

    writer.add_outline_item("Contents", 1)
    above = {}
    for each in printed:
        parent = above[each.page.depth] = writer.add_outline_item(
            each.title,
            places.starts[each.page.name],
            parent=above.get(each.page.depth - 1),
            is_open=False,
        )
        for heading in each.headings:
            if at := places.inside.get((each.page.name, heading["name"])):
                fit = Fit.xyz(left=0, top=at[1])
                writer.add_outline_item(heading["title"], at[0], parent=parent, fit=fit)


def add_feet(writer, says: list[str], folder: Path) -> None:
    """Write at the foot of each page where one is, and its number in the book."""
    from pypdf import PdfReader

    target = folder / "feet.pdf"
    with browser.launched() as chromium:
        tab = chromium.new_page()
        tab.set_content(pdf_front.feet(says))
        tab.pdf(path=target, prefer_css_page_size=True)
    for page, foot in zip(writer.pages, PdfReader(target).pages, strict=True):
        page.merge_page(foot)


def finish(writer) -> None:
    """Say what the file is, and pack what the joining has unpacked."""
    from pypdf.generic import NameObject, TextStringObject

    config = pdf_front.config()
    writer.add_metadata({"/Title": config["title"], "/Author": config["author"]})
    language = TextStringObject(config["sphinx"]["config"]["language"])
    writer.root_object[NameObject("/Lang")] = language
    writer.page_mode = "/UseOutlines"
    for page in writer.pages:
        page.compress_content_streams()
    writer.compress_identical_objects()
