"""Print the built site as one PDF, with an outline, page numbers and working links.

    python tools/pdf.py [--out FILE] [PAGE …]

Chromium prints each page of the site as _toc.yml lists it; pypdf joins them. Figures
that move stand as they begin, answers of quizzes are unfolded, hints are not. PAGE,
such as book/04_attention, prints only what is named.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urldefrag

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools import browser  # noqa: E402

SITE = ROOT / "_build" / "html"
PDF = ROOT / "_build" / "transformers-by-hand.pdf"
PAPER = {"format": "A4", "prefer_css_page_size": False, "print_background": True}
MARGIN = {"top": "18mm", "bottom": "20mm", "left": "16mm", "right": "16mm"}

# Pictures are loaded and figures drawn, as they begin, before the page is printed.
PREPARE = """async () => {
  document.documentElement.dataset.theme = "light";
  for (const answers of document.querySelectorAll(".quiz-answers")) {
    answers.hidden = false;
    answers.open = true;
  }
  for (const image of document.images) image.loading = "eager";
  dispatchEvent(new Event("beforeprint"));
  await Promise.all([...document.images].map((image) => image.decode().catch(() => 0)));
  await document.fonts.ready;
}"""

# Chromium names a place in a PDF only if a link of the page itself leads there.
NAME_PLACES = """(names) => {
  const holder = document.createElement("div");
  holder.style.cssText = "height: 1px; overflow: hidden; font-size: 1px;";
  for (const name of names) {
    if (!document.getElementById(name)) continue;
    const link = document.createElement("a");
    link.href = "#" + name;
    link.textContent = ".";
    link.style.color = "transparent";
    holder.append(link);
  }
  document.querySelector("article").append(holder);
}"""

LINKS = """() => [...document.querySelectorAll("article a[href]")].map((a) => a.href)"""
HEADINGS = """() => {
  const found = document.querySelectorAll("article section[id] > h2");
  return [...found].map((heading) => ({
    name: heading.parentElement.id,
    title: heading.textContent.replace(/#$/, "").trim(),
  }));
}"""


@dataclass
class Printed:
    """A page of the site as it was printed."""

    name: str
    title: str
    headings: list[dict]
    file: Path


def main(words: list[str]) -> None:
    """Print, join, number and link."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=PDF)
    parser.add_argument("pages", nargs="*")
    given = parser.parse_args(words)
    if not (SITE / "index.html").is_file():
        sys.exit("make pdf: there is no site in _build/html: run `make book` first")
    pages = given.pages or listed_pages()
    for name in pages:
        if not (SITE / f"{name}.html").is_file():
            sys.exit(f"make pdf: no page {name} in _build/html")
    with tempfile.TemporaryDirectory() as folder:
        count = join(print_pages(pages, Path(folder)), given.out, Path(folder))
    size = given.out.stat().st_size / 1e6
    print(f"The book: {given.out} ({count} pages, {size:.1f} MB)")


def listed_pages() -> list[str]:
    """Name the site's pages in the order of _toc.yml."""
    from sphinx_external_toc.parsing import parse_toc_yaml

    site_map = parse_toc_yaml(ROOT / "_toc.yml")
    ordered: list[str] = []

    def walk(name: str) -> None:
        ordered.append(name)
        for tree in site_map[name].subtrees:
            for item in tree.items:
                if str(item) in site_map:
                    walk(str(item))

    walk(site_map.root.docname)
    return ordered


def print_pages(names: list[str], folder: Path) -> list[Printed]:
    """Print each page into a file of its own."""
    printed = []
    with browser.launched() as chromium:
        page = chromium.new_page(viewport={"width": 900, "height": 1200})
        wanted = places_linked_to(page, names)
        for number, name in enumerate(names):
            print(f"  {name}", flush=True)
            page.goto((SITE / f"{name}.html").as_uri(), wait_until="load")
            page.evaluate(PREPARE)
            page.evaluate(NAME_PLACES, sorted(wanted.get(name, set())))
            title = page.locator("article h1").first.inner_text().rstrip("#").strip()
            headings = page.evaluate(HEADINGS)
            file = folder / f"{number:02}.pdf"
            page.pdf(path=file, margin=MARGIN, **PAPER)
            printed.append(Printed(name, title, headings, file))
    return printed


def places_linked_to(page, names: list[str]) -> dict[str, set[str]]:
    """Find the places inside each page that other pages, or its outline, lead to."""
    wanted: dict[str, set[str]] = {name: set() for name in names}
    page.route("**/*.js", lambda route: route.abort())
    for name in names:
        page.goto((SITE / f"{name}.html").as_uri(), wait_until="domcontentloaded")
        wanted[name] |= {each["name"] for each in page.evaluate(HEADINGS)}
        for link in page.evaluate(LINKS):
            target, place = page_of(link)
            if target in wanted and place:
                wanted[target].add(place)
    page.unroute("**/*.js")
    return wanted


def page_of(link: str) -> tuple[str | None, str]:
    """Say to which page of the site, and where in it, an address leads."""
    address, place = urldefrag(link)
    start = SITE.as_uri() + "/"
    if not address.startswith(start) or not address.endswith(".html"):
        return None, ""
    return unquote(address.removeprefix(start).removesuffix(".html")), unquote(place)


def join(printed: list[Printed], target: Path, folder: Path) -> int:
    """Join the files, with outline, page numbers and links; give the page count."""
    from pypdf import PdfReader, PdfWriter

    readers = [PdfReader(each.file) for each in printed]
    writer = PdfWriter()
    starts, places = {}, {}
    for each, reader in zip(printed, readers, strict=True):
        starts[each.name] = len(writer.pages)
        for name, where in reader.named_destinations.items():
            index = reader.get_destination_page_number(where)
            if index is not None and index >= 0:
                top = where.top
                key = (each.name, unquote(name.lstrip("/")))
                places[key] = (starts[each.name] + index, float(top or 0))
        writer.append(reader, import_outline=False)
    mend_links(writer, printed, starts, places)
    add_outline(writer, printed, starts, places)
    add_numbers(writer, folder)
    writer.add_metadata({"/Title": "Transformers by hand"})
    target.parent.mkdir(parents=True, exist_ok=True)
    writer.write(target)
    return len(writer.pages)


def mend_links(writer, printed: list[Printed], starts: dict, places: dict) -> None:
    """Have links lead to pages of this file: to others of the site, and to places."""
    from pypdf.generic import ArrayObject, FloatObject, NameObject, NullObject

    ends = [*list(starts.values())[1:], len(writer.pages)]
    owner = {}
    for each, end in zip(printed, ends, strict=True):
        owner |= dict.fromkeys(range(starts[each.name], end), each.name)
    for index, page in enumerate(writer.pages):
        kept = ArrayObject()
        for annotation in page.get("/Annots") or []:
            link = annotation.get_object()
            action = (link.get("/A") or {}).get("/URI")
            # of this machine's files, only what is in the book can be reached
            if not str(action).startswith("file:") or page_of(str(action))[0] in starts:
                kept.append(annotation)
        page[NameObject("/Annots")] = kept
        for annotation in kept:
            link = annotation.get_object()
            if link.get("/Subtype") != "/Link":
                continue
            action = (link.get("/A") or {}).get("/URI")
            if action is not None:
                name, place = page_of(str(action))
            elif "/Dest" in link and not isinstance(link["/Dest"], ArrayObject):
                name, place = owner[index], unquote(str(link["/Dest"]).lstrip("/"))
            else:
                continue
            if name not in starts:
                continue
            number, top = places.get((name, place), (starts[name], None))
            height = NullObject() if top is None else FloatObject(top)
            if "/A" in link:
                del link["/A"]
            link[NameObject("/Dest")] = ArrayObject(
                [
                    writer.pages[number].indirect_reference,
                    NameObject("/XYZ"),
                    NullObject(),
                    height,
                    NullObject(),
                ]
            )


def add_outline(writer, printed: list[Printed], starts: dict, places: dict) -> None:
    """Add the pages' titles and sections, as a reader's side panel shows them."""
    from pypdf.generic import Fit

    for each in printed:
        parent = writer.add_outline_item(
            title=each.title, page_number=starts[each.name]
        )
        for heading in each.headings:
            place = places.get((each.name, heading["name"]))
            if place is not None:
                fit = Fit.xyz(left=0, top=place[1])
                writer.add_outline_item(
                    title=heading["title"], page_number=place[0], parent=parent, fit=fit
                )


def add_numbers(writer, folder: Path) -> None:
    """Write its number at the foot of each page, counted through the book."""
    from pypdf import PdfReader

    numbers = folder / "numbers.pdf"
    print_numbers(len(writer.pages), numbers)
    for page, number in zip(writer.pages, PdfReader(numbers).pages, strict=True):
        page.merge_page(number)


def print_numbers(count: int, target: Path) -> None:
    """Print as many pages as the book has, with nothing on them but their numbers."""
    style = (
        "@page { size: A4; margin: 0 } body { margin: 0; font: 9pt sans-serif }"
        "div { height: 296mm; position: relative; break-after: page }"
        "div:last-child { break-after: auto }"
        "span { position: absolute; bottom: 9mm; width: 100%; text-align: center;"
        " color: #555f69 }"
    )
    pages = "".join(f"<div><span>{number + 1}</span></div>" for number in range(count))
    with browser.launched() as chromium:
        page = chromium.new_page()
        page.set_content(f"<style>{style}</style>{pages}")
        page.pdf(path=target, prefer_css_page_size=True)


if __name__ == "__main__":
    main(sys.argv[1:])
