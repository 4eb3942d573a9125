"""Markdown with formulas, as HTML that can do nothing: no scripts, no requests."""

import functools
import re
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markupsafe import Markup, escape
from mdit_py_plugins.dollarmath import dollarmath_plugin

MATHML = "http://www.w3.org/1998/Math/MathML"
ElementTree.register_namespace("", MATHML)
ELEMENTS = re.compile(
    "math|m[ino]|mtext|mspace|mrow|mfrac|msqrt|mroot|msub|msup|msubsup|munder|mover|"
    "munderover|mtable|mtr|mtd|mstyle"
)
ATTRIBUTES = re.compile(
    "display|stretchy|width|mathvariant|fence|minsize|maxsize|displaystyle|form|"
    "scriptlevel|columnalign|rowspacing|columnspacing|accent|accentunder|lspace|rspace|"
    "separator"
)


def render(text: str) -> Markup:
    """Return Markdown as HTML; HTML in it is shown as text, and images are dropped."""
    return Markup(_parser().render(text))


def inline(text: str) -> Markup:
    """Return a text of a message as HTML: what stands between `backticks` is code."""
    return Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", str(escape(text))))


@functools.cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    dollarmath_plugin(parser, allow_labels=False, renderer=_formula)
    return parser


def _formula(latex: str, options: dict) -> str:
    return formula(latex, "block" if options.get("display_mode") else "inline")


def formula(latex: str, display: str) -> str:
    """Return a formula as MathML, or as its source where that cannot be trusted.

    Args:
        latex: without dollars.
        display: "inline" or "block".
    """
    try:
        tree = ElementTree.fromstring(convert(latex.strip(), display=display))
    except Exception:  # the converter has an exception of its own for each slip
        tree = None
    if tree is None or not all(map(_is_harmless, tree.iter())):
        return f"<code>{escape(latex)}</code>"
    # written anew: what XML passes over, such as a comment, may be live in HTML
    return ElementTree.tostring(tree, encoding="unicode")


def _is_harmless(node: ElementTree.Element) -> bool:
    """Tell whether it is presentation only: a formula may carry links, and HTML."""
    name = node.tag.removeprefix(f"{{{MATHML}}}")
    return bool(ELEMENTS.fullmatch(name)) and all(
        map(ATTRIBUTES.fullmatch, node.attrib)
    )
