r"""The directive `lights`: a symbol lights up in the formula, the code and the picture.

    ```{lights} Q K d_k softmax V
    ---
    alt: What the picture shows, for whoever does not see it.
    ---
    Q[4x3] \cdot K^\top[3x4] \div\sqrt{d_k} \to P[4x4] \cdot V[4x2] \to Z[4x2]
    ```

writes a legend of these symbols and a picture of the formula. Whatever shows one of
them in the same section, without its subsections, gets `data-lights`: parts of
formulas, names in code, parts of the picture. A figure of book/_static/figures/ marks
its own parts. lights.js lights what belongs together. book/lights.yml says for each
chapter how a symbol is written in TeX and what it is called in code.

A picture is a line of TeX. What has a size in brackets, rows by columns, is drawn as a
matrix. `!` and a digit for each cell colour it (0 empty, 1 and 2), with a slash after
each row; `=` and numbers, divided by commas and slashes, are written into the cells.
"""

import html
import re
from pathlib import Path
from typing import ClassVar

import yaml
from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

from autograder import mathml

TABLE = Path(__file__).resolve().parents[1] / "lights.yml"
PART = re.compile(
    r"(?P<tex>[^\s\[!=]+)\[(?P<rows>\d+)x(?P<columns>\d+)\]"
    r"(?:!(?P<fill>[0-2/]+))?(?:=(?P<numbers>[^\s]+))?"
)
NAMED = re.compile(r' data-lights="([^"]*)"')
CELL = 15  # pixels
NUMBER = (52, 22)  # pixels of a cell with a number in it
# What a block of highlighted code consists of
PIECE = re.compile(r"<span[^>]*>[^<]*</span>|<[^>]*>|[^<]+")
BLOCK = re.compile(
    r'(<div class="[^"]*?) ?\blights-code-([^\s"]+)([^>]*>.*?<pre>)(.*?</pre>)',
    re.DOTALL,
)
NAMES = re.compile(r"\"[^\"]*\"|\w+|[^\w\s]+")


class Lights(SphinxDirective):
    """The legend and the picture of a formula."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar = {"alt": directives.unchanged_required}

    def run(self) -> list[nodes.Node]:
        """Write both; what the section holds is marked when the page is written."""
        chapter = Path(self.env.docname).name
        self.env.note_dependency(str(TABLE))
        known = table().get(chapter, {})
        keys = self.arguments[0].split()
        if missing := [key for key in keys if key not in known]:
            raise self.error(f"book/lights.yml has no {missing} for {chapter}")
        if self.content and not self.options.get("alt"):
            raise self.error("a picture needs alt: what it shows, in words")
        self.env.metadata[self.env.docname]["lights"] = True
        symbols = {key: known[key] for key in keys}
        written = legend(symbols)
        if self.content:
            line = " ".join(self.content)
            written += picture(line, symbols, self.options["alt"])
        block = f'<div class="lights">{written}</div>'
        return [nodes.raw("", block, format="html", lights=keys)]


def table() -> dict:
    """Give what book/lights.yml says of each chapter's symbols."""
    return yaml.safe_load(TABLE.read_text("utf-8"))


def forms(symbols: dict) -> dict[tuple, str]:
    """Give the forms of all symbols, with their keys."""
    return {
        mathml.form_of(tex): key
        for key, symbol in symbols.items()
        for tex in symbol["tex"]
    }


# ----------------------------------------------------------------------
# Legend and picture
# ----------------------------------------------------------------------


def legend(symbols: dict) -> str:
    """Write what each symbol is; lights.js makes a button of each."""
    entries = []
    for key, symbol in symbols.items():
        written = mathml.to_mathml(symbol["tex"][0])
        entries.append(
            f'<li><span class="light" data-lights="{html.escape(key)}" '
            f'style="--symbol: var(--figure-{symbol["color"]})">{written} '
            f"{html.escape(symbol['says'])}</span></li>"
        )
    return f'<ul class="lights-legend">{"".join(entries)}</ul>'


def picture(line: str, symbols: dict, alt: str) -> str:
    """Draw a line of matrices and signs."""
    parts = [drawn(part, symbols) for part in line.split()]
    return (
        f'<div class="lights-picture" role="img" aria-label="{html.escape(alt)}">'
        f"{''.join(parts)}</div>"
    )


def drawn(part: str, symbols: dict) -> str:
    """Draw one matrix or one sign."""
    match = PART.fullmatch(part)
    written = mathml.to_mathml(match["tex"] if match else part, symbols=forms(symbols))
    lit = ""
    if found := NAMED.search(written):
        key = html.unescape(found[1])
        color = symbols[key]["color"]
        written = NAMED.sub("", written)  # the whole part lights up
        lit = (
            f' data-lights="{html.escape(key)}" style="--symbol: var(--figure-{color})"'
        )
    if not match:
        return f'<span class="lights-sign"{lit}>{written}</span>'
    return f'<span class="lights-matrix"{lit}>{cells(match)}{written}</span>'


def cells(match: re.Match) -> str:
    """Draw the cells of a matrix, with colours or numbers."""
    rows, columns = int(match["rows"]), int(match["columns"])
    fill = (match["fill"] or "/".join(["1" * columns] * rows)).split("/")
    numbers = [row.split(",") for row in (match["numbers"] or "").split("/") if row]
    wide, high = NUMBER if numbers else (CELL, CELL)
    if [len(row) for row in fill] != [columns] * rows:
        raise ValueError(f"{match[0]}: not a digit for each cell")
    if numbers and [len(row) for row in numbers] != [columns] * rows:
        raise ValueError(f"{match[0]}: not a number for each cell")
    drawn = []
    for i in range(rows):
        for j in range(columns):
            x, y = j * wide, i * high
            place = f'x="{x + 1}" y="{y + 1}" width="{wide - 2}" height="{high - 2}"'
            drawn.append(f'<rect {place} class="lights-cell-{fill[i][j]}"></rect>')
            if numbers:
                middle = f'x="{x + wide / 2}" y="{y + high / 2}"'
                drawn.append(f"<text {middle}>{html.escape(numbers[i][j])}</text>")
    size = f'width="{columns * wide}" height="{rows * high}"'
    return f'<svg {size} aria-hidden="true">{"".join(drawn)}</svg>'


# ----------------------------------------------------------------------
# The section around
# ----------------------------------------------------------------------


class MarkSections(SphinxPostTransform):
    """Tell formulas and code of which symbols their section gives a legend."""

    default_priority = 880
    formats = ("html",)

    def run(self, **_options) -> None:
        """Mark every section that has a legend, or several."""
        chapter = table().get(Path(self.env.docname).name, {})
        legends = list(self.document.findall(has_legend))
        for section in {id(node.parent): node.parent for node in legends}.values():
            keys = [
                key
                for node in legends
                if node.parent is section
                for key in node["lights"]
            ]
            symbols = forms({key: chapter[key] for key in keys})
            for part in own_parts(section):
                if isinstance(part, nodes.literal_block):
                    part["classes"].append(f"lights-code-{'.'.join(keys)}")
                else:
                    part["symbols"] = symbols


def has_legend(node: nodes.Node) -> bool:
    """Whether a node is the legend that the directive wrote."""
    return isinstance(node, nodes.raw) and "lights" in node


def own_parts(section: nodes.Element):
    """Give the formulas and the code of a section, not those of its subsections."""
    for child in section.children:
        if isinstance(child, nodes.math | nodes.math_block | nodes.literal_block):
            yield child
        elif isinstance(child, nodes.Element) and not isinstance(child, nodes.section):
            yield from own_parts(child)


def mark_code(_app, pagename, _template, context, _doctree) -> None:
    """Mark names in highlighted code."""
    chapter = table().get(Path(pagename).name)
    if chapter and "body" in context:
        context["body"] = BLOCK.sub(
            lambda match: match[1] + match[3] + with_marks(match[4], match[2], chapter),
            context["body"],
        )


def with_marks(code: str, keys: str, chapter: dict) -> str:
    """Put what the code calls a symbol into an element that says so."""
    names = {
        tuple(NAMES.findall(name)): key
        for key in keys.split(".")
        for name in chapter[key].get("code", [])
    }
    pieces = PIECE.findall(code)
    texts = [html.unescape(re.sub(r"<[^>]*>", "", piece)).strip() for piece in pieces]
    written, at = "", 0
    while at < len(pieces):
        length, key = longest(texts, at, names)
        run = "".join(pieces[at : at + length])
        if key:
            run = f'<span data-lights="{html.escape(key)}">{run}</span>'
        written += run
        at += length
    return written


def longest(texts: list[str], at: int, names: dict) -> tuple[int, str | None]:
    """Give how many pieces from here on name a symbol, and its key, or 1 and None."""
    words: list[str] = []
    found: tuple[int, str | None] = (1, None)
    for end in range(at, min(at + 20, len(texts))):
        words += NAMES.findall(texts[end])
        if texts[at] and texts[end] and (key := names.get(tuple(words))):
            found = (end - at + 1, key)
    return found


def add_files(app, pagename, _template, _context, _doctree) -> None:
    """Load script and style where a page has a legend."""
    if app.env.metadata.get(pagename, {}).get("lights"):
        app.add_js_file("lights.js", loading_method="defer")
        app.add_css_file("figures.css")
        app.add_css_file("lights.css")


def setup(app) -> dict:
    """Tell Sphinx of the directive."""
    app.add_directive("lights", Lights)
    app.add_post_transform(MarkSections)
    app.connect("html-page-context", mark_code)
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
