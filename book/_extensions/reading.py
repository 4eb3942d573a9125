"""What helps to read: minutes at a chapter's top, a way through on the home page.

    ```{ways-through}
    ```

makes a table of all chapters with estimated minutes for three kinds of people. What the
browser remembers (which page was read, which quiz solved) is book/_static/reading.js;
here the pages are told what they are. See reading_time.py for the estimates.
"""

import re

import notebook_links
import reading_time
from docutils import nodes
from page_elements import element
from sphinx.util.docutils import SphinxDirective

WAYS = {
    "reader": ("Reader", "the pages, their figures and the quizzes"),
    "student": ("Student", "the pages and all exercises"),
    "short": (
        "Short way",
        "the pages, and the exercises that the models are made of, which say so",
    ),
    "instructor": (
        "Instructor",
        "the pages, and a look at each exercise and its mistakes",
    ),
}
CHAPTER = re.compile(r"book/(\d\d)_\w+")
EXERCISE = re.compile(r"exercises/(\w+)/\1")


class WaysThrough(SphinxDirective):
    """The chapters with their minutes, and what the browser remembers."""

    def run(self) -> list[nodes.Node]:
        """Make the table; reading.js adds the choice of a way and the bar."""
        rows, sums = [], dict.fromkeys(WAYS, 0)
        for chapter in reading_time.chapters():
            self.note_dependencies(chapter)
            times = reading_time.times(chapter)
            minutes = {
                "reader": times.read,
                "student": times.student,
                "short": times.short,
                "instructor": times.instructor,
            }
            for way in WAYS:
                sums[way] += minutes[way]
            rows.append(self.row(chapter, minutes))
        total = element(
            "tr",
            element("th", nodes.Text("All"), scope="row"),
            element("td"),
            *(self.cell(way, sums[way]) for way in WAYS),
        )
        heads = [
            element("th", nodes.Text(title), scope="col", class_=f"way way-{way}")
            for way, (title, _) in WAYS.items()
        ]
        head = element(
            "tr",
            element("th", nodes.Text("Chapter"), scope="col"),
            element("th", nodes.Text("Do"), scope="col"),
            *heads,
        )
        table = element(
            "table",
            element(
                "caption",
                nodes.Text(
                    "Chapters, and how long each takes. "
                    + " ".join(f"{name}: {what}." for name, what in WAYS.values())
                ),
            ),
            element("thead", head),
            element("tbody", *rows),
            element("tfoot", total),
            class_="table ways-table",
        )
        scroller = element(
            "div",
            table,
            class_="ways-scroll",
            tabindex="0",
            role="region",
            aria_label="Chapters and their minutes",
        )
        return [element("div", scroller, class_="ways-through")]

    def row(self, chapter: str, minutes: dict[str, int]) -> nodes.Node:
        """Make the row of a chapter."""
        title = self.env.titles.get(f"book/{chapter}")
        number = chapter[:2].lstrip("0")
        name = title.astext() if title else heading(chapter)
        page = link(f"book/{chapter}", f"{number} · {name}", self.env.docname)
        notebook = link(f"exercises/{chapter}/{chapter}", "Exercises", self.env.docname)
        return element(
            "tr",
            element("th", page, scope="row"),
            element("td", notebook),
            *(self.cell(way, minutes[way]) for way in WAYS),
            data_chapter=chapter,
        )

    def cell(self, way: str, minutes: int) -> nodes.Node:
        """Make a cell with minutes."""
        said = nodes.Text(reading_time.say(minutes))
        return element("td", said, class_=f"way way-{way}")

    def note_dependencies(self, chapter: str) -> None:
        """Have the page made anew when what is counted has changed."""
        for path in reading_time.sources(chapter):
            self.env.note_dependency(str(path))


def heading(chapter: str) -> str:
    """Give the first heading of a chapter's page."""
    text = (reading_time.ROOT / "book" / f"{chapter}.md").read_text("utf-8")
    return re.search(r"^# (.*)$", text, re.MULTILINE)[1]


def link(target: str, text: str, docname: str) -> nodes.Node:
    """Make a link to another page, as Sphinx itself would write it."""
    up = "../" * docname.count("/")
    return nodes.reference("", text, internal=True, refuri=f"{up}{target}.html")


def tell_page(app, pagename, _template, context, _doctree) -> None:
    """Give page.html what it says about its own page."""
    reading = {"page": "", "kind": ""}
    if match := EXERCISE.fullmatch(pagename):
        reading = {"page": match[1], "kind": "exercises"}
        reading["links"] = notebook_links.links(app.config, match[1])
    elif CHAPTER.fullmatch(pagename):
        chapter = pagename.removeprefix("book/")
        times = reading_time.times(chapter)
        reading = {
            "page": chapter,
            "kind": "chapter",
            "read": reading_time.say(times.read),
            "exercises": reading_time.say(times.exercises),
            "instructor": reading_time.say(times.instructor),
            "count": times.count,
            "links": notebook_links.links(app.config, chapter),
        }
    elif pagename == "book/introduction":
        reading = {"page": "introduction", "kind": "chapter"}
    context["reading"] = reading


def setup(app) -> dict:
    """Tell Sphinx of the directive, and of what all pages load."""
    app.setup_extension("page_elements")
    app.add_directive("ways-through", WaysThrough)
    app.connect("config-inited", notebook_links.take_over)
    app.connect("html-page-context", tell_page)
    app.add_css_file("reading.css")
    app.add_js_file("reading.js", loading_method="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True, "version": "1"}
