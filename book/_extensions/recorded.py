"""Recorded answers: below checks that a page cannot run, and three on the home page.

What is shown says tools/site/recorded_pages.py in a file beside the site. Below a check
stands a box to be opened; book/_static/recorded/recorded.js loads what is in it. On the
home page everything is in the page, and works without a script:

    ```{recorded-answers} 04_attention masked-softmax
    the mistake of one answer
    the mistake of another
    ```
"""

import functools
import html
import json
from pathlib import Path

from docutils import nodes
from page_elements import element
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
ABOUT = ROOT / "_build" / "site" / "recorded.json"
WORDS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")


@functools.cache
def about() -> dict:
    """Read what is recorded of which chapters; nothing if it is not shown."""
    return json.loads(ABOUT.read_text("utf-8")) if ABOUT.is_file() else {}


def chapter_of(docname: str) -> str:
    """Name the chapter of a page of exercises; "" for all others.

    >>> chapter_of("exercises/04_attention/04_attention")
    '04_attention'
    """
    return docname.rpartition("/")[2] if docname.startswith("exercises/") else ""


# --- below the checks -----------------------------------------------------------------


def add_places(app, doctree: nodes.document, docname: str) -> None:
    """Put a box below the last check of every exercise that has recorded answers."""
    chapter = chapter_of(docname)
    known = about().get(chapter)
    if known is None:
        return
    last, name = {}, ""
    for cell in doctree.findall(nodes.container):
        graded = (cell.get("cell_metadata") or {}).get("nbgrader", {})
        if graded.get("solution"):
            name = graded["grade_id"]
        if graded.get("grade") and name in known["exercises"]:
            last[name] = cell
    for name, cell in last.items():
        found = known["exercises"][name]
        place = box(chapter, name, found, known["version"])
        cell.parent.insert(cell.parent.index(cell) + 1, place)


def box(chapter: str, name: str, found: dict, version: str) -> nodes.Node:
    """Make the box of an exercise, closed."""
    count = found["count"]
    many = WORDS[count] if count < len(WORDS) else str(count)
    return element(
        "details",
        element("summary", nodes.Text(f"{many} answers, and what this check says")),
        element(
            "p",
            nodes.Text(
                "The answers are loaded when this box is opened; that needs JavaScript."
            ),
            class_="recorded-note",
            role="status",
        ),
        class_="recorded",
        data_chapter=chapter,
        data_exercise=name,
        data_number=found["number"],
        data_version=version,
    )


def add_files(app, pagename, _template, _context, _doctree) -> None:
    """Load script and style where there are recorded answers."""
    home = "recorded-answers" in app.env.metadata.get(pagename, {})
    if home or chapter_of(pagename) in about():
        app.add_css_file("recorded.css")
    if chapter_of(pagename) in about():
        app.add_js_file("recorded/recorded.js", loading_method="defer")


# --- on the home page -----------------------------------------------------------------


class Chosen(nodes.General, nodes.Element):
    """Where answers of an exercise stand in the page itself."""


class RecordedAnswers(SphinxDirective):
    """Some wrong answers to an exercise, named by their mistakes, a line each."""

    required_arguments = 2
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Remember the choice; what is recorded is looked up when it is written."""
        chapter, exercise = self.arguments
        self.env.metadata[self.env.docname]["recorded-answers"] = exercise
        wanted = list(self.content)
        return [Chosen("", chapter=chapter, exercise=exercise, mistakes=wanted)]


def add_chosen(app, doctree: nodes.document, docname: str) -> None:
    """Put the answers in their place; nothing where a publisher shows none.

    Raises:
        LookupError: nothing is recorded under a name.
    """
    for place in list(doctree.findall(Chosen)):
        chapter = about().get(place["chapter"])
        if chapter is None:
            place.parent.remove(place)
            continue
        found = chapter["exercises"][place["exercise"]]
        answers = {each.get("title"): each for each in found["answers"]}
        missing = [name for name in place["mistakes"] if name not in answers]
        if missing:
            raise LookupError(
                f"{docname}: {place['exercise']} has no answer {missing[0]!r}; "
                f"there are {', '.join(filter(None, answers))}"
            )
        chosen = [answers[name] for name in place["mistakes"]]
        to = f"../exercises/{place['chapter']}/{place['chapter']}.html"
        to += f"#exercise-{found['number'].replace('.', '-')}"
        text = in_page(place["exercise"].replace("-", " "), chosen, to)
        place.replace_self(nodes.raw("", text, format="html"))


def in_page(exercise: str, answers: list[dict], to: str) -> str:
    """Write answers to choose from: radio buttons, and what belongs to each."""
    inputs, panels = [], []
    for number, each in enumerate(answers, 1):
        inputs.append(
            f'<input type="radio" name="recorded" id="recorded-{number}">'
            f'<label for="recorded-{number}"><code>{wrong_line(each)}</code></label>'
        )
        told = each["card"].replace('"../../book/', '"')
        panels.append(
            f'<div class="recorded-panel"><div class="highlight"><pre tabindex="0">'
            f"{marked(each)}</pre></div>"
            f'<div class="on-page-result">{told}</div></div>'
        )
    return (
        f'<fieldset class="recorded-home"><legend>{WORDS[len(answers)]} answers to '
        f'<a href="{html.escape(to)}">{html.escape(exercise)}</a>, each with one wrong '
        "line. What does the check say?</legend>"
        f'{"".join(inputs)}<div class="recorded-panels">{"".join(panels)}</div>'
        "</fieldset>"
    )


def wrong_lines(answer: dict) -> set[int]:
    """Say which lines are repaired."""
    return {
        line
        for first, many, _ in answer.get("repair", [])
        for line in range(first, first + many)
    }


def wrong_line(answer: dict) -> str:
    """Give the wrong line alone, for the button."""
    number = min(wrong_lines(answer), default=len(answer["code"]) - 1)
    return answer["code"][number].strip()


def marked(answer: dict) -> str:
    """Give the code with the wrong line marked."""
    wrong = wrong_lines(answer)
    return "\n".join(
        f"<mark>{line}</mark>" if number in wrong else line
        for number, line in enumerate(answer["code"])
    )


def setup(app) -> dict:
    """Tell Sphinx of the boxes and the directive."""
    app.setup_extension("page_elements")
    app.add_node(Chosen)
    app.add_directive("recorded-answers", RecordedAnswers)
    app.connect("doctree-resolved", add_places)
    app.connect("doctree-resolved", add_chosen)
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
