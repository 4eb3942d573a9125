"""Take out of a page what a student's text must not bring into it.

formgrader shows a notebook's texts as HTML in the instructor's browser, where a script
would act with the instructor's rights, and a picture from elsewhere would tell that
and when the page was opened.
"""

import re

import bleach
from bleach.css_sanitizer import CSSSanitizer

TAGS = (
    "a abbr b blockquote br caption cite code col colgroup dd del details div dl dt em "
    "figcaption figure h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s samp "
    "small span strong sub summary sup table tbody td tfoot th thead tr u ul var"
)
ATTRIBUTES = "align alt class colspan height rowspan start style title width"
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
        return not value.strip().lower().startswith("data:")
    return name in ATTRIBUTES.split()
