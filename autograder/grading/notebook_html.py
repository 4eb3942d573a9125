"""Take out of a page what a student's text must not bring into it.

formgrader shows a notebook's texts as HTML in the instructor's browser, where a script
would act with the instructor's rights, and a picture from elsewhere would tell that
and when the page was opened.
"""

import re

import bleach
import jinja2
from bleach.css_sanitizer import CSSSanitizer
from markupsafe import escape
from nbconvert.filters.markdown_mistune import (
    InvalidNotebook,
    IPythonRenderer,
    MarkdownWithMath,
)

TAGS = (
    "a abbr b blockquote br caption cite code col colgroup dd del details div dl dt em "
    "figcaption figure h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp "
    "small span strong sub summary sup table tbody td tfoot th thead tr u ul var"
)
ATTRIBUTES = "align alt class colspan height rowspan start style title width"
LINKS = ("http://", "https://", "mailto:", "#")
PICTURES = ("data:image/png;", "data:image/jpeg;", "data:image/gif;")
ACTIVE_MATHS = re.compile(r"\\(?=(?:href|require|cssId|class|style)\b)")


def clean_html(text: str | bytes) -> str:
    """Clean HTML that was made of a student's text; what is not allowed is shown."""
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    return bleach.clean(
        ACTIVE_MATHS.sub("", text),  # MathJax would make links of it
        tags=TAGS.split(),
        attributes=_is_allowed,
        protocols={"http", "https", "mailto", "data"},
        css_sanitizer=CSSSanitizer(allowed_css_properties=["text-align"]),
    )


def _is_allowed(tag: str, name: str, value: str) -> bool:
    if tag == "img" and name == "src":
        return value.startswith(PICTURES)
    if tag == "a" and name == "href":
        return value.lower().startswith(LINKS)
    return name in ATTRIBUTES.split()


class _Renderer(IPythonRenderer):
    """nbconvert's, which gives up the whole page for one picture that is missing."""

    def _embed_image_or_attachment(self, src: str) -> str:
        try:
            return super()._embed_image_or_attachment(src)
        except InvalidNotebook:
            return ""


@jinja2.pass_context
def markdown_to_html(context: jinja2.runtime.Context, text: str) -> str:
    """Make HTML of a cell's Markdown, whatever it holds; it must still be cleaned."""
    cell = context.get("cell") or {}
    renderer = _Renderer(escape=False, attachments=cell.get("attachments") or {})
    try:
        return MarkdownWithMath(renderer=renderer).render(text)
    except Exception:  # too deeply nested, or a slip in the library
        return f"<pre>{escape(text)}</pre>"
