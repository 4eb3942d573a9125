"""Markdown with formulas, as HTML that can do nothing: no scripts, no requests."""

import functools
import re

from markdown_it import MarkdownIt
from markupsafe import Markup, escape
from mdit_py_plugins.dollarmath import dollarmath_plugin

from autograder import mathml


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
    """Return a formula as MathML, or as its source where that cannot be set.

    Nothing of the formula becomes an element or an attribute: what it says is text.

    Args:
        latex: without dollars.
        display: "inline" or "block".
    """
    try:
        return mathml.standing_alone(latex.strip(), display == "block")
    except Exception:  # unknown TeX, or a slip of ours: a page is never lost for it
        return f"<code>{escape(latex)}</code>"
