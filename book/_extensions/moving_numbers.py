"""Numbers in a sentence that the reader moves, and those that follow.

A cell shows a `pages.moving_numbers.MovingNumbers`: a column of values to choose
from, and a column for each number that depends on them. In the text,

    At $d_k =$ {move}`scaling width`, scores vary by {moved}`scaling variance`.

stands for the values that are shown first: what the cell has computed, also where
scripts are off. moving_numbers.js puts a slider beside the first, and has the others
follow.
"""

import html
import json
import re

from docutils import nodes
from docutils.parsers.rst.states import Struct

TABLE = re.compile(r'<span class="numbers-table" hidden data-table="([^"]*)"></span>')
PLACE = re.compile(r'<span class="(move|moved)" data-numbers="(\w+)\.(\w+)"></span>')


def place(kind: str):
    """Make the role `kind`, which leaves a place for a number: "name column"."""

    def role(_name, rawtext, text, line, inliner: Struct, options=None, content=None):
        parts = text.split()
        if len(parts) != 2:
            problem = f"{{{kind}}}`{text}`: a table and a column are wanted"
            message = inliner.reporter.error(problem, line=line)
            return [inliner.problematic(rawtext, rawtext, message)], [message]
        written = f'<span class="{kind}" data-numbers="{".".join(parts)}"></span>'
        return [nodes.raw(rawtext, written, format="html")], []

    return role


def fill(app, pagename, _template, context, _doctree) -> None:
    """Put numbers into their places, and what is needed to move them into the page."""
    body = context.get("body") or ""
    if "data-numbers=" not in body:
        return
    context["body"] = written(body, TABLE.findall(body), pagename)
    app.add_js_file("moving_numbers.js", loading_method="defer")
    app.add_css_file("moving_numbers.css")


def written(body: str, found: list[str], page: str) -> str:
    """Write the first values of all tables into a page."""
    tables = {}
    for text in found:
        table = json.loads(html.unescape(text))
        tables[table["name"]] = table
    return PLACE.sub(lambda match: filled(match, tables, page), body)


def filled(match: re.Match, tables: dict, page: str) -> str:
    """Write one number as it is at first, as wide as the widest that may follow."""
    kind, name, column = match.groups()
    try:
        values = tables[name]["columns"][column]
    except KeyError:
        raise ValueError(f"{page}: no cell shows the column {name} {column}") from None
    first = html.escape(values[tables[name]["start"]])
    wide = f'style="--wide: {max(map(len, values))}ch"'
    place = f'data-numbers="{name}.{column}" {wide}'
    if kind == "moved":
        return f'<output class="moved" {place}>{first}</output>'
    return f'<span class="move" {place}><span class="move-value">{first}</span></span>'


def setup(app) -> dict:
    """Tell Sphinx of the roles."""
    for kind in ("move", "moved"):
        app.add_role(kind, place(kind))
    app.connect("html-page-context", fill)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
