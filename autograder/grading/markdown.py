"""Markdown with formulas, as HTML that can do nothing: no scripts, no requests."""

import functools
import re
from xml.etree import ElementTree

from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markupsafe import Markup, escape
from mdit_py_plugins.dollarmath import dollarmath_plugin

MATHML = "http://www.w3.org/1998/Math/MathML"
ELEMENTS = re.compile(
    "math|m[ino]|mtext|mspace|mrow|mfrac|msqrt|mroot|msub|msup|msubsup|munder|mover|"
    "munderover|mtable|mtr|mtd|mstyle"
)
ATTRIBUTES = re.compile(
    "display|stretchy|width|mathvariant|fence|minsize|maxsize|displaystyle|form|"
    "scriptlevel|columnalign|accent|accentunder|lspace|rspace|separator"
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
    """Return a formula as MathML, or as its source where that cannot be trusted."""
    display = "block" if options.get("display_mode") else "inline"
    try:
        mathml = convert(latex.strip(), display=display)
        harmless = _is_harmless(mathml)
    except Exception:  # the converter has an exception of its own for each slip
        harmless = False
    return mathml if harmless else f"<code>{escape(latex)}</code>"


def _is_harmless(mathml: str) -> bool:
    """Tell whether it is presentation only: a formula may carry links, and HTML."""
    return all(
        ELEMENTS.fullmatch(node.tag.removeprefix(f"{{{MATHML}}}"))
        and all(map(ATTRIBUTES.fullmatch, node.attrib))
        for node in ElementTree.fromstring(mathml).iter()
    )
