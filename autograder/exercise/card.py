"""What a failed check says, as a card in a notebook: the mistake first.

The card is HTML with styles of its own and no scripts. Its colours are those around it,
so that it can be read in light and in dark themes alike. What comes from a student, or
from a student's code, is shown as text.
"""

import html
import re
from collections.abc import Sequence
from typing import Protocol

from autograder.exercise import chapters
from autograder.exercise.section import section
from autograder.exercise.showing import Span, marks_between

CARD = (
    "border:1px solid rgba(128,128,128,.5);border-left:5px solid #c2571a;"
    "border-radius:6px;padding:.7em 1em;margin:.3em 0;max-width:46em;color:inherit;"
    "font-family:system-ui,-apple-system,'Segoe UI',sans-serif;"
    "font-size:14px;line-height:1.5;overflow-wrap:anywhere;"
)
SMALL = "margin:0;font-size:13px;color:inherit;"
HEADING = "margin:.1em 0 .5em;font-size:17px;font-weight:650;color:inherit;"
TABLE = (
    "display:table;table-layout:fixed;width:100%;border-collapse:collapse;"
    "border:0;margin:.5em 0;color:inherit;font-size:14px;"
)
ROW = "background:none;border-top:1px solid rgba(128,128,128,.35);"
LABEL = (
    "width:5.5em;text-align:left;vertical-align:top;padding:.3em .6em .3em 0;"
    "font-weight:600;color:inherit;"
)
VALUE = "text-align:left;vertical-align:top;padding:.3em 0;color:inherit;"
CODE = (
    "margin:0;padding:0;background:none;border:0;color:inherit;white-space:pre-wrap;"
    "overflow-wrap:break-word;word-break:normal;"
    "font:13px/1.5 ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans Mono',monospace;"
)
MARK = (
    "background:rgba(242,150,50,.3);color:inherit;font-weight:600;"
    "text-decoration:underline;text-underline-offset:.2em;"
)
INLINE = (
    "background:rgba(128,128,128,.15);color:inherit;border-radius:3px;"
    "padding:0 .25em;font-size:13px;"
)
PARAGRAPH = "margin:.5em 0 0;color:inherit;"
QUIET = f"{PARAGRAPH}font-size:13px;font-style:italic;"


class Failure(Protocol):
    """What a card is made of; every fact is "" if there is none."""

    number: str  # of the exercise
    check: str
    what: str
    mistake: str | None
    first: str
    on: str
    call: str
    got: str
    expected: str
    read: str

    def reasons(self) -> list[str]:
        """Give the paragraphs of running text."""


def card(failure: Failure, site: str | None = None, waiting: str = "") -> str:
    """Return a failed check's message as HTML.

    Args:
        failure: what it says.
        site: the address of the book, for the link; by default the published one.
        waiting: what is being done while the card is shown; "" if it is complete.
    """
    name = f"{failure.number} {failure.check}".strip()
    title = failure.mistake or failure.what
    parts = [
        f'<p style="{SMALL}">{html.escape(name)} · not yet right</p>',
        f'<h4 style="{HEADING}">{inline(title)}</h4>',
    ]
    if failure.what != title:
        parts.append(_paragraph(inline(failure.what)))
    parts += [_paragraph(inline(line)) for line in _lines(failure.first)]
    parts.append(_table(failure))
    parts += [_paragraph(inline(line)) for line in failure.reasons()]
    if waiting:
        parts.append(f'<p style="{QUIET}">{html.escape(waiting)}</p>')
    parts.append(_reading(failure.read, chapters.site() if site is None else site))
    label = html.escape(f"{name}: not yet right")
    body = "".join(parts)
    return f'<div role="region" aria-label="{label}" style="{CARD}">{body}</div>'


def inline(text: str) -> str:
    """Return a text of a message as HTML: what stands between `backticks` is code."""
    code = rf'<code style="{INLINE}">\1</code>'
    return re.sub(r"`([^`\n]+)`", code, html.escape(text))


def _lines(text: str) -> list[str]:
    return [line for line in text.split("\n") if line]


def _paragraph(content: str) -> str:
    return f'<p style="{PARAGRAPH}">{content}</p>'


def _table(failure: Failure) -> str:
    """Return the rows of what was asked, what came and what is right."""
    got, expected = marks_between(failure.got, failure.expected)
    rows = "".join(
        f'<tr style="{ROW}"><th scope="row" style="{LABEL}">{label}</th>'
        f'<td style="{VALUE}"><pre style="{CODE}">{_marked(text, marks)}</pre>'
        "</td></tr>"
        for label, text, marks in (
            ("on", failure.on, ()),
            ("call", failure.call, ()),
            ("got", failure.got, got),
            ("expected", failure.expected, expected),
        )
        if text
    )
    return f'<table style="{TABLE}"><tbody>{rows}</tbody></table>' if rows else ""


def _marked(text: str, marks: Sequence[Span]) -> str:
    """Return a text as HTML, with its marks."""
    pieces, place = [], 0
    for start, end in marks:
        pieces.append(html.escape(text[place:start]))
        pieces.append(f'<mark style="{MARK}">{html.escape(text[start:end])}</mark>')
        place = end
    return "".join([*pieces, html.escape(text[place:])])


def _reading(read: str, site: str) -> str:
    """Return where the book explains it, as a link if it has an address."""
    words, address = section(read, site)
    if not words:
        return ""
    said = html.escape(words)
    if address:
        said = f'<a href="{html.escape(address)}" style="color:inherit">{said}</a>'
    return _paragraph(f"Read: {said}")
