"""formgrader in a real browser, on the gradebook of a class that was graded here.

Submissions, feedback and hand-grading work as instructors know them, and nothing that a
student handed in acts in the instructor's browser, nor in the student's feedback.
"""

import base64
import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import nbformat
import pytest
from nbgrader.api import Gradebook

from autograder import generator
from tests import chapters
from tests.sample_class import notebooks

pytestmark = [pytest.mark.browser, pytest.mark.sandbox]

CHAPTER = "04_attention"
FULL, MOST = chapters.points(CHAPTER)
WRITTEN = "explain-scaling"  # a person grades it
HONEST, MISTAKEN, HOSTILE = "ada.honest", "ben.mistaken", "eve.hostile"
NOTEBOOK = ".panel-body > #notebook"  # nbconvert's template has another inside


# --- what a stranger hands in ---------------------------------------------------------


def ran(name: str) -> str:
    """Return a script that can be seen from outside to have run."""
    return f"(window.parent||window).fetch(`/ran/{name}`)"


SVG = f'<svg xmlns="http://www.w3.org/2000/svg" onload="{ran("svg")}"></svg>'
PAGE = base64.b64encode(f"<script>{ran('page')}</script>".encode()).decode()
TEXTS = f"""
What the stranger explains.

<script>{ran("script")}</script>
<img src="/formgrader/nothing.png" onerror="{ran("image")}">
<img src="/asked/image.png">
![a picture](/asked/picture.png)
<svg onload="{ran("svg-text")}"><script>{ran("svg-script")}</script></svg>
<iframe srcdoc="<script>{ran("frame")}</script>"></iframe>
<iframe src="javascript:{ran("frame-address")}"></iframe>
<object data="data:text/html;base64,{PAGE}"></object>
<embed src="data:text/html;base64,{PAGE}">
<details open ontoggle="{ran("details")}"><summary>more</summary></details>
<input autofocus onfocus="{ran("focus")}">
<video><source onerror="{ran("video")}"></video>
<style>@import url(/asked/style.css); p {{ background: url(/asked/p.png) }}</style>
<p style="background: url(/asked/paragraph.png)">a paragraph</p>
<link rel="stylesheet" href="/asked/link.css">
<meta http-equiv="refresh" content="0;url=/ran/refresh">
<form action="javascript:{ran("form")}"><button>press</button></form>
<a href="javascript:{ran("link")}">press</a>
<a href="data:text/html;base64,{PAGE}">press</a>
<math href="javascript:{ran("math-link")}"><mtext>press</mtext></math>

[press](javascript:{ran("markdown-link")})
[press](<&#106;avascript:{ran("entity-link")}>)
<javascript:{ran("automatic-link")}>
![picture](attachment:drawing.svg) ![page](attachment:page.html)

$\\href{{javascript:{ran("formula")}}}{{press}}$
$\\style{{background:url(/asked/formula.png)}}{{x}}$

<p onclick="{ran("event")}">press</p> <p onmouseover="{ran("mouse")}">over</p>
"""
ATTACHMENTS = {
    "drawing.svg": {"image/svg+xml": base64.b64encode(SVG.encode()).decode()},
    "page.html": {"text/html": PAGE},
}
PICTURE = (  # one point
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAA"
    "AABJRU5ErkJggg=="
)
CODE = f'''
from IPython.display import HTML, SVG, Javascript, Markdown, display

text = """{TEXTS}""".replace(chr(10), " ")
display(HTML(text), Markdown(text), Javascript("{ran("javascript")}"))
display(SVG("""{SVG}"""))
picture = "{PICTURE}"
width = {{"width": "1 onload={ran("width")} ", "height": "1 onload={ran("height")} "}}
display({{"image/png": picture}}, raw=True, metadata={{"image/png": width}})
display({{"text/latex": "</div><script>{ran("latex")}</script>"}}, raw=True)
print("</pre><script>{ran("stream")}</script>")

class Odd:
    def __repr__(self):
        return "</pre><script>{ran("repr")}</script>"

display(Odd())
raise ValueError("</pre><script>{ran("error")}</script>")
'''


def hand_in_hostile(place: Path) -> None:
    """Write a solved notebook with something in every place that is shown."""
    notebooks.solved(place)
    path = place / f"{CHAPTER}.ipynb"
    notebook = json.loads(path.read_text("utf-8"))
    quote = f'"><img src="/formgrader/nothing.png" onerror="{ran("attribute")}">'
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == WRITTEN:
            cell["source"] = TEXTS
            cell["attachments"] = ATTACHMENTS
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == "causal-mask":
            error = f"raise ValueError('<script>{ran('message')}</script>')"
            cell["source"] += f"\n\n\ndef causal_mask(length):\n    {error}\n"
        cell["metadata"]["tags"] = [quote]
    own = {"grade_id": quote, "grade": True, "solution": True, "points": quote}
    own |= {
        "locked": False,
        "schema_version": 3,
        "cell_type": "markdown",
        "task": False,
    }
    markdown = {"cell_type": "markdown", "source": TEXTS, "attachments": ATTACHMENTS}
    code = {"cell_type": "code", "source": CODE, "execution_count": 1, "outputs": []}
    raw = {"cell_type": "raw", "source": f"<script>{ran('raw')}</script>"}
    notebook["cells"] += [
        markdown | {"metadata": {}, "id": quote},
        markdown | {"metadata": {"nbgrader": own}, "id": "mine"},
        code | {"metadata": {"alt": quote}, "id": "code"},
        raw | {"metadata": {"raw_mimetype": "text/html"}, "id": "raw-1"},
        raw | {"metadata": {"format": "text/html"}, "id": "raw-2"},
        raw | {"metadata": {}, "id": "raw-3"},
    ]
    notebook["metadata"] |= {
        "title": f"</title><script>{ran('title')}</script>",
        "widgets": {
            "application/vnd.jupyter.widget-state+json": {
                "state": f"</script><script>{ran('widgets')}</script>"
            }
        },
    }
    path.write_text(json.dumps(notebook), encoding="utf-8")


# --- a class, a server and a browser --------------------------------------------------


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    """A class of three, graded by the command."""
    folder = tmp_path_factory.mktemp("class")
    notebooks.solved(folder / "submissions" / HONEST / CHAPTER)
    slip = "softmax", "softmax over the wrong axis"
    notebooks.mistake(folder / "submissions" / MISTAKEN / CHAPTER, *slip)
    hand_in_hostile(folder / "submissions" / HOSTILE / CHAPTER)
    command = [sys.executable, "-m", "autograder", "grade", "--chapter", CHAPTER]
    command += ["--submissions", str(folder / "submissions")]
    command += ["--out", str(folder / "out"), "--workers", "2"]
    done = subprocess.run(
        command, cwd=generator.ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "out"


@pytest.fixture(scope="module")
def address(out):
    """formgrader's address, with the token that opens it."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    token, course = secrets.token_hex(), out / "course"
    with (out / "server.log").open("w") as log:
        server = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyter", "server", "--no-browser"),
                *(f"--port={port}", "--ServerApp.ip=127.0.0.1", "--allow-root"),
                *(
                    f"--IdentityProvider.token={token}",
                    f"--ServerApp.root_dir={course}",
                ),
            ],
            cwd=course,
            stdout=log,
            stderr=log,
            env=os.environ
            | {
                "JUPYTER_CONFIG_DIR": str(out / "jupyter"),
                "PYTHONPATH": str(generator.ROOT),
            },
        )
    try:
        wait_for(f"http://127.0.0.1:{port}/api", server, out / "server.log")
        yield f"http://127.0.0.1:{port}", token
    finally:
        server.terminate()
        server.wait(30)


def wait_for(url: str, server: subprocess.Popen, log: Path) -> None:
    """Wait until the server answers."""
    end = time.monotonic() + 120
    while True:
        try:
            urllib.request.urlopen(url).close()
            return
        except urllib.error.HTTPError:
            return  # it asks for the token: it is there
        except OSError:
            running = server.poll() is None and time.monotonic() < end
            assert running, log.read_text("utf-8")
            time.sleep(0.5)


PRESS = """(inside) => {
  for (const each of document.querySelectorAll(`${inside} *`)) {
    for (const kind of ["mouseover", "focus"]) {
      each.dispatchEvent(new Event(kind));
    }
    const grades = each.closest(".scoring-buttons");  // formgrader's own
    if (each.click && !grades && !/^http/.test(each.getAttribute("href") ?? "")) {
      each.click();
    }
  }
}"""


class Visitor:
    """A page that reaches this machine only, and the paths that it asked for."""

    def __init__(self, browser, address: str = "http://127.0.0.1") -> None:
        self.address, self.asked = address, []
        self.context = browser.new_context(viewport={"width": 1300, "height": 900})
        self.context.route("**/*", self._allow_or_refuse)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)

    def _allow_or_refuse(self, route) -> None:
        url = route.request.url
        self.asked.append(url.removeprefix(self.address))
        if url.startswith((self.address, "file:")) and not self.caught([url]):
            route.continue_()
        else:
            route.abort()

    def caught(self, asked: list[str] | None = None) -> list[str]:
        """List what only a stranger's text asks for."""
        asked = self.asked if asked is None else asked
        return [each for each in asked if re.search("/(ran|asked)/", each)]

    def open(self, path: str):
        """Open a page, and wait until all that it loads is there."""
        self.page.goto(self.address + path, wait_until="load")
        return self.page

    def press_everything(self, inside: str) -> None:
        """Do to a part of a page what a curious instructor does: press, hover."""
        self.page.wait_for_timeout(1000)
        self.page.evaluate(PRESS, inside)
        self.page.wait_for_timeout(1000)


@pytest.fixture
def visitor(browser, address):
    """A visitor whom the server knows."""
    base, token = address
    visitor = Visitor(browser, base)
    visitor.open(f"/formgrader/gradebook?token={token}")
    yield visitor
    visitor.context.close()


def submission_of(out: Path, student: str) -> str:
    """Return the id under which formgrader shows a student's notebook."""
    with Gradebook(f"sqlite:///{out / 'course' / 'gradebook.db'}") as gradebook:
        return gradebook.find_submission_notebook(CHAPTER, CHAPTER, student).id


def grade_of(out: Path, student: str, cell: str) -> tuple[float | None, bool]:
    """Return the points that a person gave, and whether one still has to."""
    with Gradebook(f"sqlite:///{out / 'course' / 'gradebook.db'}") as gradebook:
        grade = gradebook.find_grade(cell, CHAPTER, CHAPTER, student)
        return grade.manual_score, bool(grade.needs_manual_grade)


# --- what an instructor does ----------------------------------------------------------


def test_the_chapter_and_its_submissions_are_listed(visitor) -> None:
    page = visitor.open("/formgrader/gradebook")
    page.get_by_role("link", name=CHAPTER).click()
    page.get_by_role("link", name=CHAPTER, exact=True).last.click()
    rows = page.locator("#main-table tr")
    rows.nth(2).wait_for()
    assert rows.count() == 3
    page.locator("#toggle_names").click()
    texts = [row.inner_text() for row in rows.all()]
    points = {
        HONEST: f"{FULL} / {MOST}",
        MISTAKEN: f"/ {MOST}",
        HOSTILE: f"{FULL - 1} / {MOST}",
    }
    for student, score in points.items():
        (text,) = (each for each in texts if student in each)
        assert score in text


def test_the_list_of_an_assignment_shows_every_student(visitor) -> None:
    page = visitor.open(f"/formgrader/manage_submissions/{CHAPTER}")
    for student in (HONEST, MISTAKEN, HOSTILE):
        page.get_by_text(student).first.wait_for()


def test_a_submission_shows_what_was_wrong(visitor, out) -> None:
    page = visitor.open(f"/formgrader/submissions/{submission_of(out, MISTAKEN)}/")
    notebook = page.locator(NOTEBOOK)
    assert "softmax over the wrong axis" in notebook.inner_text()
    box = page.locator("input.score#test-softmax")
    box.wait_for()
    wait_until_loaded(page)
    assert float(box.get_attribute("placeholder") or box.input_value()) == 0


def test_points_and_a_comment_by_hand_are_in_the_gradebook(visitor, out) -> None:
    assert grade_of(out, HONEST, WRITTEN) == (None, True)
    path = f"/formgrader/submissions/{submission_of(out, HONEST)}/"
    page = visitor.open(path)
    wait_until_loaded(page)
    with page.expect_response(is_saved("grade")):
        page.locator(f"input.score#{WRITTEN}").fill("3.5")
        page.keyboard.press("Tab")
    with page.expect_response(is_saved("comment")):
        page.locator(f"textarea#{WRITTEN}-comment").fill("Name the **assumption**.")
        page.locator(f"textarea#{WRITTEN}-comment").blur()
    page.reload(wait_until="load")
    wait_until_loaded(page)
    assert page.locator(f"input.score#{WRITTEN}").input_value() == "3.5"
    comment = page.locator(f"textarea#{WRITTEN}-comment").input_value()
    assert comment == "Name the **assumption**."
    assert grade_of(out, HONEST, WRITTEN) == (3.5, False)


def test_the_rubric_is_beside_the_answer_and_formulas_need_no_network(
    visitor, out
) -> None:
    page = visitor.open(f"/formgrader/submissions/{submission_of(out, HONEST)}/")
    wait_until_loaded(page)
    answer, rubric = page.locator(f"{NOTEBOOK} table[width] td").all()
    assert "Rubric (4 points" in rubric.inner_text()
    left, right = answer.bounding_box(), rubric.bounding_box()
    assert left["x"] + left["width"] <= right["x"] + 1 and left["y"] == right["y"]
    assert rubric.locator("math").count() > 5
    assert "$" not in rubric.inner_text()


def wait_until_loaded(page) -> None:
    """Wait for the grades; MathJax is not here, as its host cannot be reached."""
    page.wait_for_function("formgrader.grades?.loaded && formgrader.comments?.loaded")


def is_saved(kind: str):
    """Return what recognises the server's answer to a change."""

    def matches(response) -> bool:
        put = response.request.method == "PUT"
        return put and f"/api/{kind}/" in response.url and response.ok

    return matches


# --- what a stranger cannot do --------------------------------------------------------


def test_the_strangers_texts_do_act_where_nothing_holds_them(browser) -> None:
    """Or the tests below would show nothing."""
    visitor = Visitor(browser)
    body = "<p>" + TEXTS.replace("<meta", "<p")  # it should stay on this page
    visitor.context.route(
        "**/page", lambda route: route.fulfill(body=body, content_type="text/html")
    )
    visitor.page.goto("http://127.0.0.1/page", wait_until="load")
    visitor.press_everything("body")
    names = {each.split("/ran/")[-1] for each in visitor.caught()}
    assert {"script", "image", "svg-text", "frame", "event", "link"} <= names
    assert any("/asked/" in each for each in visitor.caught())
    visitor.context.close()


def test_a_hostile_submission_does_not_act_in_formgrader(visitor, out) -> None:
    path = f"/formgrader/submissions/{submission_of(out, HOSTILE)}/"
    page = visitor.open(path)
    wait_until_loaded(page)
    assert "What the stranger explains." in page.locator(NOTEBOOK).inner_text()
    visitor.press_everything(NOTEBOOK)
    assert visitor.caught() == []
    assert path in page.url
    for pages in (
        "gradebook",
        f"gradebook/{CHAPTER}",
        f"gradebook/{CHAPTER}/{CHAPTER}",
    ):
        visitor.open(f"/formgrader/{pages}")
    visitor.open(f"/formgrader/manage_students/{HOSTILE}/{CHAPTER}")
    page.wait_for_timeout(1000)
    assert visitor.caught() == []


def test_a_hostile_answer_can_be_graded_by_hand(visitor, out) -> None:
    page = visitor.open(f"/formgrader/submissions/{submission_of(out, HOSTILE)}/")
    wait_until_loaded(page)
    assert page.locator(f"input.score#{WRITTEN}").count() == 1
    with page.expect_response(is_saved("grade")):
        page.locator(f"input.score#{WRITTEN}").fill("0")
        page.keyboard.press("Tab")
    assert grade_of(out, HOSTILE, WRITTEN) == (0.0, False)
    assert grade_of(out, HOSTILE, "test-softmax")[0] is None


def test_a_hostile_submission_does_not_act_in_its_feedback(browser, out) -> None:
    page = out / "feedback" / HOSTILE / f"{CHAPTER}.html"
    visitor = Visitor(browser, page.parent.as_uri())
    visitor.open(f"/{page.name}")
    visitor.press_everything("body")
    assert visitor.caught() == []
    assert visitor.asked == [f"/{page.name}"]  # and it needs nothing else
    visitor.context.close()


def test_what_is_kept_of_a_hostile_notebook_is_a_notebook(out) -> None:
    path = out / "course" / "autograded" / HOSTILE / CHAPTER / f"{CHAPTER}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    kinds = {
        kind
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        for kind in output.get("data", {})
    }
    assert kinds <= {"text/plain", "image/png", "image/jpeg"}
