"""Exercises that are done in the page: a place below their answer cells, and a script.

What runs in a page, and how much of it travels, says tools/site/on_page.py in a file of
the site. The script is book/_static/on_page/exercises.js; without it nothing is seen.
"""

import functools
import json
from pathlib import Path

from docutils import nodes
from page_elements import element

ROOT = Path(__file__).resolve().parents[2]
ABOUT = ROOT / "_build" / "site" / "static" / "on_page" / "about.json"


@functools.cache
def about() -> dict:
    """Read which exercises run in which chapter's page; none if nothing was made."""
    return json.loads(ABOUT.read_text("utf-8")) if ABOUT.is_file() else {}


def chapter_of(docname: str) -> str:
    """Name the chapter of a page of exercises; "" for all others.

    >>> chapter_of("exercises/04_attention/04_attention")
    '04_attention'
    """
    return docname.rpartition("/")[2] if docname.startswith("exercises/") else ""


def add_places(app, doctree: nodes.document, docname: str) -> None:
    """Put a place for the editor below every answer cell that a page can check."""
    chapter = chapter_of(docname)
    known = about().get(chapter)
    if known is None:
        return
    for cell in list(doctree.findall(nodes.container)):
        metadata = cell.get("cell_metadata") or {}
        graded = metadata.get("nbgrader", {})
        name = graded.get("grade_id")
        if graded.get("solution") and name in known["exercises"]:
            torch = {"data_torch": True} if name in known["torch"] else {}
            size = known["bytes"] + (known["torch_bytes"] if torch else 0)
            place = element(
                "div",
                class_="on-page",
                data_chapter=chapter,
                data_exercise=name,
                data_number=known["exercises"][name],
                data_version=known["version"],
                data_megabytes=f"{size / 1e6:.1f}",
                **torch,
            )
            cell.parent.insert(cell.parent.index(cell) + 1, place)


def add_script(app, pagename, _template, context, _doctree) -> None:
    """Load on those pages what makes the places work, and nothing on the others."""
    known = about().get(chapter_of(pagename))
    if known is None:
        return
    app.add_js_file("on_page/exercises.js", loading_method="defer")
    app.add_css_file("on_page.css")
    numbers = list(known["exercises"].values())
    context["on_page"] = {
        "many": "One" if len(numbers) == 1 else len(numbers),
        "first": numbers[0],
        "anchor": f"exercise-{numbers[0].replace('.', '-')}",
    }


def setup(app) -> dict:
    """Tell Sphinx what to do with pages of exercises."""
    app.setup_extension("page_elements")
    app.connect("doctree-resolved", add_places)
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
