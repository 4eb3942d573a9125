"""Formulas as MathML, written when the site is built: pages need no script for them."""

import html
import itertools
import re

from docutils import nodes
from sphinx.locale import _
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

from autograder.mathml import UnknownTeX, to_mathml

logger = logging.getLogger(__name__)

# How many letters beside a formula are kept in its line
TOUCHING = 8


def visit_math(self, node: nodes.math) -> None:
    """Write a formula within a line."""
    self.body.append(self.starttag(node, "span", "", CLASS="math notranslate"))
    self.body.append(converted(node, node.astext(), display=False) + "</span>")
    raise nodes.SkipNode


def visit_displaymath(self, node: nodes.math_block) -> None:
    """Write a formula of its own, with its number where it has one."""
    numbered = bool(node.get("number"))
    names = "math numbered notranslate" if numbered else "math notranslate"
    self.body.append(self.starttag(node, "div", CLASS=names))
    parts = [part for part in node.astext().split("\n\n") if part.strip()]
    tex = r" \\ ".join(
        rf"\begin{{split}}{part}\end{{split}}" if r"\\" in part else part
        for part in parts
    )
    if len(parts) > 1:
        tex = rf"\begin{{aligned}}{tex}\end{{aligned}}"
    formula = converted(node, tex, display=True)
    self.body.append(f'<div class="formula">{formula}</div>' if numbered else formula)
    if numbered:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, _("Link to this equation"))
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def converted(node: nodes.Node, tex: str, display: bool) -> str:
    """Convert a node's formula; warn of one that cannot be converted."""
    try:
        return to_mathml(tex, display, node.get("symbols"))
    except UnknownTeX as problem:
        logger.warning("no MathML for %s in: %s", problem, tex, location=node)
        return f"<code>{html.escape(tex)}</code>"


class BindFormulas(SphinxPostTransform):
    """Keep a formula in one line with the signs and letters that touch it.

    Browsers break a line on either side of a formula, even before a comma.
    """

    default_priority = 900
    formats = ("html",)

    def run(self, **_options) -> None:
        """Change every text that holds a formula."""
        formulas = list(self.document.findall(nodes.math))
        for holder in {id(each.parent): each.parent for each in formulas}.values():
            parts = bound(holder.children)
            holder.children = []
            holder.extend(parts)


def bound(children: list[nodes.Node]) -> list[nodes.Node]:
    """Put formulas and what touches them into elements that stay in one line."""
    pieces: list[nodes.Node] = []
    for child in children:
        if isinstance(child, nodes.Text):
            pieces += map(nodes.Text, touching_parts(child.astext()))
        else:
            pieces.append(child)
    found: list[nodes.Node] = []
    for together, group in itertools.groupby(pieces, is_touching):
        run = list(group)
        if together and len(run) > 1 and any(isinstance(n, nodes.math) for n in run):
            found.append(nodes.inline("", "", *run, classes=["bound"]))
        else:
            found += run
    return found


def touching_parts(text: str) -> list[str]:
    """Split a text into white space, short words, and words with their outer signs."""
    parts = re.findall(r"\s+|\S+", text)
    found = []
    for part in parts:
        if len(part) <= TOUCHING or part.isspace():
            found.append(part)
        else:
            found += filter(None, re.fullmatch(r"(\W*)(.*?)(\W*)", part).groups())
    return found


def is_touching(node: nodes.Node) -> bool:
    """Whether a piece may be bound to a formula beside it."""
    if isinstance(node, nodes.Text):
        return 0 < len(node.astext().strip()) <= TOUCHING
    return isinstance(node, nodes.math)


def setup(app) -> dict:
    """Tell Sphinx of the renderer."""
    app.add_post_transform(BindFormulas)
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
