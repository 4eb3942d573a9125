"""Print the built site as one PDF, with contents, outline, numbers and working links.

    python -m tools.site.pdf [--out FILE] [PAGE …]

Chromium prints each page of the site as _toc.yml lists it; pypdf joins them behind a
title page and the contents, which stand for the home page. Figures that move stand as
they begin, answers of quizzes are unfolded, hints are not. PAGE, such as
book/04_attention, prints only what is named.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tools import browser
from tools.site.pdf_join import SITE, Listed, Printed, join, page_of
from tools.steps import ROOT

PDF = ROOT / "_build" / "transformers-by-hand.pdf"
PAPER = {"format": "A4", "prefer_css_page_size": False, "print_background": True}
MARGIN = {"top": "18mm", "bottom": "20mm", "left": "16mm", "right": "16mm"}

# Pictures are loaded and figures drawn, as they begin, before the page is printed.
# Folded code is opened where its title promises more than how something is drawn, and
# code of a few lines is not broken.
PREPARE = """async (number) => {
  document.documentElement.dataset.theme = "light";
  const all = (selector) => [...document.querySelectorAll(selector)];
  const note = (textContent) =>
    Object.assign(document.createElement("p"), { textContent });
  for (const answers of all(".quiz-answers")) {
    answers.hidden = false;
    answers.open = true;
  }
  for (const folded of all("details.hide")) {
    const title = folded.querySelector(".collapsed")?.textContent.trim() || "How";
    folded.open = !/^(How|Show) /.test(title + " ");
  }
  for (const code of all(".cell_input, .bd-article :not(.cell_input) > .highlight")) {
    if (code.innerText.trim().split("\\n").length < 13)
      code.style.setProperty("break-inside", "avoid", "important");
  }
  const heading = document.querySelector("article h1");
  if (number) heading.prepend(`${number} · `);
  if (all("article details > summary").some((it) => /^Hint/.test(it.textContent)))
    heading.after(note("Hints to each exercise open one by one on the site."));
  const address = document.querySelector("link[rel=canonical]")?.href;
  for (const figure of all(".moving-figure")) {
    const caption = figure.querySelector(".moving-figure-caption > p:last-child");
    const link = document.createElement(address ? "a" : "span");
    if (address) link.href = figure.id ? `${address}#${figure.id}` : address;
    link.textContent = "This figure moves on the site.";
    (caption || figure).append(" ", link);
  }
  for (const image of document.images) image.loading = "eager";
  dispatchEvent(new Event("beforeprint"));
  while (document.querySelector("figure[data-figure]:not([data-state])"))
    await new Promise(requestAnimationFrame);
  await Promise.all([...document.images].map((image) => image.decode().catch(() => 0)));
  await document.fonts.ready;
}"""

# Chromium names a place in a PDF only if a link of the page itself leads there. Such
# links take no room: at the end of the page they could begin a new one. A section may
# begin, with nothing to see, on the page before its heading, which is the place then.
NAME_PLACES = """(names) => {
  for (const section of document.querySelectorAll("article section[id]")) {
    const heading = section.querySelector(":scope > :is(h1, h2, h3, h4, h5, h6)");
    if (!heading) continue;
    while (heading.previousElementSibling?.matches("span[id]:empty"))
      heading.prepend(heading.previousElementSibling);
    heading.id = section.id;
    section.removeAttribute("id");
  }
  const holder = document.createElement("div");
  holder.style.cssText = "position: absolute; top: 0; height: 1px;" +
    "overflow: hidden; font-size: 1px;";
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
# The sign of a root is no text of a formula.
HEADINGS = """() => {
  const found = document.querySelectorAll("article section[id] > h2");
  return [...found].map((heading) => {
    const plain = heading.cloneNode(true);
    for (const root of plain.querySelectorAll("msqrt")) root.prepend("√");
    return {
      name: heading.parentElement.id,
      title: plain.textContent.replace(/#$/, "").replace(/\\s+/g, " ").trim(),
    };
  });
}"""


def main(words: list[str]) -> None:
    """Print, join, number and link."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=PDF)
    parser.add_argument("pages", nargs="*")
    given = parser.parse_args(words)
    if not (SITE / "index.html").is_file():
        sys.exit("make pdf: there is no site in _build/html: run `make book` first")
    pages = listed_pages()
    if given.pages:
        known = {each.name: each for each in pages}
        pages = [known.get(name, Listed(name)) for name in given.pages]
    for page in pages:
        if not (SITE / f"{page.name}.html").is_file():
            sys.exit(f"make pdf: no page {page.name} in _build/html")
    with tempfile.TemporaryDirectory() as folder:
        count = join(print_pages(pages, Path(folder)), given.out, Path(folder))
    size = given.out.stat().st_size / 1e6
    print(f"The book: {given.out} ({count} pages, {size:.1f} MB)")


def listed_pages() -> list[Listed]:
    """Name the site's pages, without the home page, in the order of _toc.yml."""
    from sphinx_external_toc.parsing import parse_toc_yaml

    site_map = parse_toc_yaml(ROOT / "_toc.yml")
    ordered: list[Listed] = []

    def walk(name: str, depth: int, part: str) -> None:
        for tree in site_map[name].subtrees:
            for item in map(str, tree.items):
                if item in site_map:
                    inside = part or tree.caption or ""
                    title = site_map[item].title or ""
                    ordered.append(Listed(item, title, depth, inside))
                    walk(item, depth + 1, inside)

    walk(site_map.root.docname, 0, "")
    return ordered


def print_pages(pages: list[Listed], folder: Path) -> list[Printed]:
    """Print each page into a file of its own."""
    printed = []
    with browser.launched() as chromium:
        tab = chromium.new_page(viewport={"width": 900, "height": 1200})
        wanted = places_linked_to(tab, [each.name for each in pages])
        for each in pages:
            print(f"  {each.name}", flush=True)
            tab.goto((SITE / f"{each.name}.html").as_uri(), wait_until="load")
            title = tab.locator("article h1").first.inner_text().rstrip("#").strip()
            headings = tab.evaluate(HEADINGS)
            tab.evaluate(PREPARE, each.number)
            tab.evaluate(NAME_PLACES, sorted(wanted.get(each.name, set())))
            file = folder / f"{len(printed):02}.pdf"
            tab.pdf(path=file, margin=MARGIN, **PAPER)
            printed.append(Printed(each, each.title or title, headings, file))
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


if __name__ == "__main__":
    main(sys.argv[1:])
