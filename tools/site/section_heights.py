"""Estimate how high each section of a page is, so that a browser need not lay it out.

A browser passes over a section that is far from what is seen (course.css), and takes
these heights in its place until it comes near. They need not be exact: links lead to
the right place in any case, and the scroll bar's thumb is about as long as it will be.
"""

import math
import re
from html.parser import HTMLParser

# Of the column of text on a phone and on a desk: its width in pixels, letters a line
COLUMNS = {"narrow": (380, 44), "wide": (740, 92)}
LINE = 26.4
# Tags that begin a line: the height of their line, and the space around them
BLOCKS = {
    **dict.fromkeys(("p", "dd", "dt", "blockquote", "figcaption"), (LINE, 18)),
    **dict.fromkeys(("li", "summary", "label", "legend", "caption"), (LINE, 6)),
    **dict.fromkeys(("div", "section", "ul", "ol", "dl", "table", "form"), (LINE, 0)),
    **dict.fromkeys(("details", "fieldset", "tr", "thead", "tbody"), (LINE, 0)),
    "h2": (38, 56),
    "h3": (30, 44),
    "h4": (26, 36),
}
FRAMES = {"admonition": 44, "quiz-question": 60, "cell": 16, "moving-figure": 70}
UNSEEN_TAGS = {"script", "style", "noscript", "template"}
UNSEEN_CLASSES = {"visually-hidden", "headerlink", "onlyprint"}
VOID = {"img", "input", "br", "hr", "meta", "link", "source", "wbr", "col"}
CODE_LINE = 21
FORMULA = 30  # of a displayed one, besides a line for each of its rows


def with_heights(text: str) -> str:
    """Write into each section below a page's title how high it will be."""
    reader = Reader(text)
    lines = text.split("\n")
    for (line, column), heights in sorted(reader.found, reverse=True):
        style = ";".join(f"--{name}-height:{height}px" for name, height in heights)
        at = column + len("<section")
        lines[line - 1] = (
            f'{lines[line - 1][:at]} style="{style}"{lines[line - 1][at:]}'
        )
    return "\n".join(lines)


class Reader(HTMLParser):
    """Adds heights up, for all sections that are open."""

    def __init__(self, text: str):
        super().__init__()
        self.found: list[tuple[tuple[int, int], list[tuple[str, int]]]] = []
        self.open: list[str] = []  # tags
        self.sections: list[tuple[tuple[int, int], dict[str, float]]] = []
        self.unseen_from: int | None = None  # how many tags were open there
        self.letters = 0
        self.feed(text)

    def add(self, narrow: float, wide: float) -> None:
        """Add to all open sections."""
        for _, heights in self.sections:
            heights["narrow"] += narrow
            heights["wide"] += wide

    def flush(self, tag: str) -> None:
        """End the line of text that stands in a block."""
        line, space = BLOCKS.get(tag, (LINE, 0))
        if self.letters:
            larger = line / LINE
            self.add(
                *(
                    math.ceil(self.letters * larger / letters) * line + space
                    for _, letters in COLUMNS.values()
                )
            )
        self.letters = 0

    def handle_starttag(self, tag: str, attributes: list) -> None:
        """Begin a block, or add what has a height of its own."""
        known = {name: value or "" for name, value in attributes}
        classes = set(known.get("class", "").split())
        if tag in BLOCKS:
            self.flush(self.block())
        if self.unseen_from is None and self.sections:
            self.add_own(tag, known, classes)
        if tag in VOID:
            return
        if self.unseen_from is None and self.is_unseen(tag, known, classes):
            self.unseen_from = len(self.open)
        folded = tag == "details" and "open" not in known
        self.open.append("closed" if folded else tag)
        if tag == "section" and self.unseen_from is None:
            self.sections.append((self.getpos(), {"narrow": 0.0, "wide": 0.0}))

    def is_unseen(self, tag: str, known: dict, classes: set[str]) -> bool:
        """Whether an element shows nothing: what is folded shows its title alone."""
        folded = bool(self.open) and self.open[-1] == "closed" and tag != "summary"
        return (
            folded
            or tag in UNSEEN_TAGS
            or "hidden" in known
            or bool(classes & UNSEEN_CLASSES)
        )

    def add_own(self, tag: str, known: dict, classes: set[str]) -> None:
        """Add an element's own height: frames, pictures, formulas, rows."""
        for name in classes & set(FRAMES):
            self.add(FRAMES[name], FRAMES[name])
        if tag == "img" and known.get("width", "").isdigit():
            width, height = int(known["width"]), int(known.get("height") or 0)
            self.add(
                *(
                    height * min(1, column / width) + 12
                    for column, _ in COLUMNS.values()
                )
            )
        elif tag == "math" and known.get("display") == "block":
            self.add(FORMULA, FORMULA)
        elif tag in {"mtr", "mfrac"}:
            self.add(LINE, LINE)
        elif "moving-figure" in classes:
            sizes = dict(re.findall(r"--(\w+): (\d+)px", known.get("style", "")))
            self.add(float(sizes.get("narrow", 600)), float(sizes.get("wide", 400)))

    def handle_endtag(self, tag: str) -> None:
        """End a block, or a section."""
        if tag in VOID:
            return
        if tag in BLOCKS:
            self.flush(tag)
        self.open.pop()
        if self.unseen_from is not None:
            if len(self.open) <= self.unseen_from:
                self.unseen_from = None
        elif tag == "section" and self.sections:
            place, heights = self.sections.pop()
            if self.sections:  # not the page itself
                self.found.append((place, [(n, round(h)) for n, h in heights.items()]))

    def handle_data(self, data: str) -> None:
        """Count letters; lines, in code."""
        if self.unseen_from is not None or not self.sections:
            return
        if "pre" in self.open:
            lines = data.count("\n") * CODE_LINE
            self.add(lines, lines)
        else:
            self.letters += len(re.sub(r"\s+", " ", data).strip())

    def block(self) -> str:
        """Give the block that is open."""
        return next((tag for tag in reversed(self.open) if tag in BLOCKS), "div")
