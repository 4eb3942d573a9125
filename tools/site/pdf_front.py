"""What the printed book has besides its pages: title page, contents, lines at the foot.

tools/site/pdf.py prints them and joins them with the pages.
"""

import re
from dataclasses import dataclass, field
from html import escape

import yaml

from tools.steps import ROOT

FONT = "'DejaVu Sans', sans-serif"

# What the home page says of the course, its build and its address
ABOUT = """() => {
  const text = (selector) =>
    (document.querySelector(selector)?.textContent || "").replace(/\\s+/g, " ").trim();
  return {
    promise: text(".course-promise"),
    verified: text(".page-verified").replace(/ Text last changed.*/, ""),
    address: (document.querySelector("link[rel=canonical]")?.href || "")
      .replace(/book\\/index\\.html$/, ""),
  };
}"""

FRONT_STYLE = f"""
@page {{ size: A4; margin: 22mm 20mm 24mm }}
body {{ margin: 0; font: 10.5pt/1.45 {FONT}; color: #1c2127 }}
a {{ color: inherit; text-decoration: none }}
.title {{ break-after: page; padding-top: 62mm }}
.title h1 {{ font-size: 32pt; line-height: 1.15; margin: 0 0 8mm }}
.title .promise {{ font-size: 13pt; margin: 0 0 8mm; max-width: 130mm }}
.title .small {{ color: #555f69; font-size: 9pt; margin: 0 0 2mm }}
.title .author {{ margin: 0 0 40mm }}
.contents h1 {{ font-size: 20pt; margin: 0 0 6mm }}
.part {{ break-after: avoid; color: #555f69; margin: 7mm 0 1mm }}
.entry {{ break-inside: avoid; display: flex; gap: 2mm }}
.entry i {{ border-bottom: 1px dotted #9aa3ab; flex: 1; margin-bottom: 1.4mm }}
.page {{ break-after: avoid; font-weight: bold; margin-top: 2.4mm }}
.page:has(+ .page), .page:last-child {{ break-after: auto }}
.inner {{ font-weight: normal; margin-left: 6mm; margin-top: 0 }}
.section {{ color: #3c454d; font-size: 9pt; margin-left: 6mm }}
"""

FOOT_STYLE = f"""
@page {{ size: A4; margin: 0 }}
body {{ margin: 0; font: 9pt {FONT} }}
div {{ height: 296mm; position: relative; break-after: page }}
div:last-child {{ break-after: auto }}
span {{ position: absolute; bottom: 9mm; color: #555f69 }}
.says {{ left: 16mm }}
.number {{ right: 16mm }}
"""


@dataclass
class Entry:
    """A line of the contents: a page of the site or, in small letters, a section."""

    title: str
    link: str
    number: int
    part: str = ""
    depth: int = 0
    sections: list["Entry"] = field(default_factory=list)


def config() -> dict:
    """Read what _config.yml says of the course."""
    return yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))


def front(about: dict, entries: list[Entry]) -> str:
    """Write the title page and the contents."""
    return (
        f"<style>{FRONT_STYLE}</style>{title_page(about)}"
        f'<div class="contents"><h1>Contents</h1>{contents(entries)}</div>'
    )


def title_page(about: dict) -> str:
    """Say what the book is, whose, of which day, and where the site lies."""
    known = config()
    options = known["sphinx"]["config"]["html_theme_options"]
    notes = [
        about["verified"],
        "Figures that move on the site stand here as they begin. Hints to the "
        "exercises, which open one by one there, and code that draws figures are left "
        "out.",
        re.sub(r"<[^>]*>", "", options.get("extra_footer", "")),
    ]
    small = "".join(f'<p class="small">{escape(note)}</p>' for note in notes if note)
    if address := escape(about["address"]):
        small = f'<p>The site: <a href="{address}">{address}</a></p>{small}'
    return (
        f'<div class="title"><h1>{escape(known["title"])}</h1>'
        f'<p class="promise">{escape(about["promise"])}</p>'
        f'<p class="author">{escape(known["author"])}</p>{small}</div>'
    )


def contents(entries: list[Entry]) -> str:
    """List pages and sections with the numbers of their pages."""
    lines, part = [], None
    for entry in entries:
        if entry.part and entry.part != part:
            part = entry.part
            lines.append(f'<p class="part">{escape(part)}</p>')
        lines.append(line(entry, "page inner" if entry.depth else "page"))
        lines += [line(section, "section") for section in entry.sections]
    return "".join(lines)


def line(entry: Entry, kind: str) -> str:
    """Write one line of the contents, which leads where it says."""
    return (
        f'<a class="entry {kind}" href="{escape(entry.link)}">'
        f"<span>{escape(entry.title)}</span><i></i><span>{entry.number}</span></a>"
    )


def feet(says: list[str]) -> str:
    """Write as many pages as the book has, with nothing on them but their feet.

    A page that says nothing, such as the title page, has no number either.
    """
    pages = (
        f'<div><span class="says">{escape(said)}</span>'
        f'<span class="number">{number}</span></div>'
        if said
        else "<div></div>"
        for number, said in enumerate(says, 1)
    )
    return f"<style>{FOOT_STYLE}</style>{''.join(pages)}"
