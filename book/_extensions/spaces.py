"""Numbers stay in one line: 151 296 000 and 95 % are not broken at their spaces."""

import re

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

NO_BREAK = "\N{NO-BREAK SPACE}"
NARROW = "\N{NARROW NO-BREAK SPACE}"
THOUSANDS = re.compile(r"(?<![\d.])\d{1,3}(?: \d{3})+(?![\d.]*\d)")
DOT = re.compile(r" (?=· )")
NUMBERED = re.compile(r"\b((?:chapter|exercise|source|question)s?) (?=\d)", re.I)
PERCENT = re.compile(r"(?<=\d) ?%")
AS_TYPED = (nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw)


class KeepNumbersTogether(SphinxPostTransform):
    """Change the spaces within numbers, in all texts but code and formulas."""

    default_priority = 890
    formats = ("html",)

    def run(self, **_options) -> None:
        """Change every text that needs it."""
        for text in list(self.document.findall(nodes.Text)):
            together = kept_together(text.astext())
            if together != text.astext() and not isinstance(text.parent, AS_TYPED):
                text.parent.replace(text, nodes.Text(together))


def kept_together(text: str) -> str:
    """Put spaces that no line breaks at between thousands, before % and before a dot.

    No line begins with the number of "chapter 6", or with a heading's dot.
    """
    text = NUMBERED.sub(rf"\1{NO_BREAK}", DOT.sub(NO_BREAK, text))
    text = THOUSANDS.sub(lambda match: match[0].replace(" ", NARROW), text)
    return PERCENT.sub(f"{NARROW}%", text)


def setup(app) -> dict:
    """Tell Sphinx of the change."""
    app.add_post_transform(KeepNumbersTogether)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
