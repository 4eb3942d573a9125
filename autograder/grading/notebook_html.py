"""Take out of a page what a student's text must not bring into it.

formgrader shows a notebook's texts as HTML in the instructor's browser, where a script
would act with the instructor's rights, and a picture from elsewhere would tell that
and when the page was opened.

Formulas are set here, as MathML, so that they need no script and no network. A written
answer stands beside its rubric, where a person grades it.
"""

import html
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

from autograder.grading import markdown
from autograder.grading.paper import RUBRIC

TAGS = (
    "a abbr b blockquote br caption cite code col colgroup dd del details div dl dt em "
    "figcaption figure h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp "
    "small span strong sub summary sup table tbody td tfoot th thead tr u ul var"
)
ATTRIBUTES = "align alt class colspan height rowspan start style title width"
STYLES = ("text-align", "vertical-align")
LINKS = ("http://", "https://", "mailto:", "#")
PICTURES = ("data:image/png;", "data:image/jpeg;", "data:image/gif;")
GRADED_HERE = "submission_id"  # what formgrader tells its pages, and nobody else theirs
BESIDE = """\
<table width="100%"><tr><th width="55%">The answer</th>
<th>Model answer and rubric: nobody else sees them</th></tr>
<tr><td style="vertical-align: top; text-align: left">{answer}</td>
<td style="vertical-align: top; text-align: left">{rubric}</td></tr></table>"""
HELD = '<span class="held-formula {display}" title="{latex}"></span>'
FORMULA = re.compile(
    r'<span class="held-formula (inline|block)" title="([^"]*)"></span>'
)
LONGEST = 2_000  # characters of a formula; the converter is slow
ACTIVE_MATHS = re.compile(r"\\(?=(?:href|require|cssId|class|style)\b)")


def clean_html(text: str | bytes) -> str:
    """Clean HTML that was made of a student's text, and set its formulas.

    What is not allowed is shown. MathML comes in here, behind what cleans, and only the
    converter's own.
    """
    return FORMULA.sub(_set, _cleaned(text))


def _set(held: re.Match) -> str:
    display, latex = held[1], html.unescape(held[2])
    if len(latex) > LONGEST:
        return f"<code>{escape(latex)}</code>"
    return markdown.formula(latex, display)


def _cleaned(text: str | bytes) -> str:
    text = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    return bleach.clean(
        ACTIVE_MATHS.sub("", text),  # MathJax would make links of it
        tags=TAGS.split(),
        attributes=_is_allowed,
        protocols={"http", "https", "mailto", "data"},
        css_sanitizer=CSSSanitizer(
            allowed_css_properties=["text-align", "vertical-align"]
        ),
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

    def inline_math(self, body: str) -> str:
        """Hold a formula in a line, for ``clean_html``."""
        return HELD.format(display="inline", latex=escape(body))

    def block_math(self, body: str) -> str:
        """Hold a formula that stands alone."""
        return HELD.format(display="block", latex=escape(body))

    def latex_environment(self, name: str, body: str) -> str:
        """Hold a formula of several lines."""
        return self.block_math(f"\\begin{{{name}}}{body}\\end{{{name}}}")


@jinja2.pass_context
def markdown_to_html(context: jinja2.runtime.Context, text: str) -> str:
    """Make HTML of a cell's Markdown, whatever it holds; it must still be cleaned."""
    cell = context.get("cell") or {}
    answer = _rendered(text, cell.get("attachments") or {})
    rubric = (cell.get("metadata") or {}).get(RUBRIC)
    if not rubric or GRADED_HERE not in (context.get("resources") or {}):
        return answer
    # cleaned alone: no tag of the answer's reaches into the rubric
    return BESIDE.format(answer=_cleaned(answer), rubric=_rendered(str(rubric), {}))


def _rendered(text: str, attachments: dict) -> str:
    renderer = _Renderer(escape=False, attachments=attachments)
    try:
        return MarkdownWithMath(renderer=renderer).render(text)
    except Exception:  # too deeply nested, or a slip in the library
        return f"<pre>{escape(text)}</pre>"
