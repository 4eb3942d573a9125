"""Reading: quizzes, minutes, progress, definitions, hints; publishing and the PDF.

The browser's tests read _build/html, which `make book` makes.
"""

import importlib
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unicodedata import normalize

import pytest
import torch
import yaml
from playwright.sync_api import expect
from pypdf import PdfReader
from scipy import stats

from autograder.exercise.chapters import chapters
from tests import browsers
from tools.site import pdf, pdf_front, publish
from transformer.class_token import masked_mean
from transformer.embeddings import Embedding, pair_counts
from transformer.multi_head_attention import MultiHeadAttention, split_heads
from transformer.positional_encoding import sinusoidal_positional_encoding
from transformer.vision_transformer import patchify

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
EXTENSIONS = ROOT / "book" / "_extensions"
sys.path.insert(0, str(EXTENSIONS))

definitions, notebook_links, publishing, quizzes, reading_time = map(
    importlib.import_module,
    ["definitions", "notebook_links", "publishing", "quizzes", "reading_time"],
)

CHAPTERS = reading_time.chapters()
QUIZZES = sorted(quizzes.QUIZZES.glob("*.yml"))


# ----------------------------------------------------------------------
# Quizzes: their form, and that what they say is true
# ----------------------------------------------------------------------


def near(values, expected, tolerance) -> bool:
    """Whether numbers agree."""
    values = torch.as_tensor(values, dtype=torch.float64).flatten()
    expected = torch.tensor(expected, dtype=torch.float64)
    return values.shape == expected.shape and bool(
        ((values - expected).abs() <= tolerance).all()
    )


def rows_with_gradient(ids: list[int]) -> int:
    """Count the rows of a table that get a gradient which is not zero."""
    table = Embedding(1000, 64)
    table(torch.tensor(ids)).square().sum().backward()
    (gradient,) = [parameter.grad for parameter in table.parameters()]
    return int((gradient != 0).any(dim=-1).sum())


def raises(error, function) -> bool:
    """Whether a function raises an error."""
    with pytest.raises(error):
        function()
    return True


# What a `proof` may use
PROVING = {
    "math": math,
    "torch": torch,
    "near": near,
    "raises": raises,
    "rows_with_gradient": rows_with_gradient,
    "pair_counts": pair_counts,
    "split_heads": split_heads,
    "positional": sinusoidal_positional_encoding,
    "masked_mean": lambda values, mask: masked_mean(
        torch.tensor(values).reshape(1, -1, 1), torch.tensor([[mask]])
    ).item(),
    "patches": lambda count, channels, side, size: patchify(
        torch.zeros(count, channels, side, side), size
    ),
    "parameters": lambda d_model, heads: sum(
        parameter.numel()
        for parameter in MultiHeadAttention(d_model, heads).parameters()
    ),
    "clopper_pearson": lambda right, count: list(
        stats.binomtest(right, count).proportion_ci(method="exact")
    ),
}


def test_every_chapter_has_a_quiz_and_shows_it():
    assert [path.stem for path in QUIZZES] == CHAPTERS
    for chapter in CHAPTERS:
        page = (ROOT / "book" / f"{chapter}.md").read_text("utf-8")
        assert f"```{{quiz}} {chapter}\n" in page, chapter


@pytest.mark.parametrize("path", QUIZZES, ids=lambda path: path.stem)
def test_a_quiz_has_four_or_five_questions_of_three_or_four_options(path):
    questions = quizzes.read(path)
    assert 4 <= len(questions) <= 5
    assert all(3 <= len(question["options"]) <= 4 for question in questions)


@pytest.mark.parametrize("path", QUIZZES, ids=lambda path: path.stem)
def test_what_a_quiz_says_is_true(path):
    for question in quizzes.read(path):
        proof = question.get("proof")
        assert proof is None or eval(proof, dict(PROVING)), question["question"]


def test_the_right_answer_has_no_usual_place_and_is_not_the_longest():
    asked = [question for path in QUIZZES for question in quizzes.read(path)]
    rights = [
        next(i for i, option in enumerate(question["options"]) if option.get("right"))
        for question in asked
    ]
    counts = [rights.count(place) for place in range(3)]
    assert max(counts) < 0.55 * len(asked), counts
    longest = [
        max(range(len(each["options"])), key=lambda i: len(each["options"][i]["text"]))
        for each in asked
    ]
    same = sum(a == b for a, b in zip(rights, longest, strict=True))
    assert same < 0.55 * len(asked), same


GOOD = """
questions:
  - question: Which?
    options:
      - {text: This, right: true, why: So.}
      - {text: That, why: Not so.}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("questions:", "question:", "bad.yml: needs one key, `questions`"),
        (
            "right: true, ",
            "",
            "question 1: one option must be `right: true`, and 0 are",
        ),
        ("text: That,", "text: That, right: true,", "question 1: one option .* and 2"),
        ("why: Not so.", "whi: Not so.", "question 1: option 2: unknown key `whi`"),
        (", why: Not so.", "", "question 1: option 2: `why` must be a text"),
        ("text: That", "text: 2", "option 2: `text` must be a text; put a number in"),
        ("text: That", "text: This", "question 1: two options have the same text"),
        ("question: Which?", "question: ''", "question 1: `question` must be a text"),
        ("- {text: That, why: Not so.}", "", "question 1: `options` must be a list of"),
        ("right: true", "right: false", "option 1: `right` can only be true"),
        ("Which?", "Which: what?", "line 3: not valid YAML"),
        ("- question: Which?", "- [Which?]", "bad.yml"),
    ],
)
def test_a_wrong_quiz_is_named_with_file_question_and_reason(
    tmp_path, old, new, message
):
    path = tmp_path / "bad.yml"
    assert old in GOOD
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(quizzes.QuizError, match=message) as caught:
        quizzes.read(path)
    assert str(caught.value).startswith("bad.yml: ")


def test_a_quiz_that_is_not_there_is_named(tmp_path):
    with pytest.raises(quizzes.QuizError, match=r"other\.yml: no such quiz"):
        quizzes.read(tmp_path / "other.yml")


# ----------------------------------------------------------------------
# Minutes
# ----------------------------------------------------------------------


def test_minutes_count_words_formulas_and_the_code_that_is_shown():
    words = "word " * 200
    assert reading_time.seconds_to_read(words) == pytest.approx(60)
    assert reading_time.seconds_to_read(words + "\n\n$$a = b$$\n") == 75
    cell = "```{code-cell} ipython3\nx = 1\ny = 2\n```\n"
    assert reading_time.seconds_to_read(cell) == 4
    hidden = cell.replace("x = 1", ":tags: [remove-cell]\nx = 1")
    assert reading_time.seconds_to_read(hidden) == 0
    assert reading_time.seconds_to_read("```{moving-figure} a\nalt\n```\n") == 90


def test_exercise_minutes_are_those_that_the_notebook_names():
    path = reading_time.sources("04_attention")[2]
    minutes, count = reading_time.exercise_minutes(path)
    text = path.read_text("utf-8")
    named = re.findall(r"points? · difficulty \d of 5 · about (\d+) minutes?", text)
    assert (minutes, count) == (sum(map(int, named)), len(named))


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_takes_a_plausible_time(chapter):
    times = reading_time.times(chapter)
    assert 15 <= times.read <= 120
    assert times.read < times.instructor < times.student


def test_the_short_way_takes_some_of_each_chapter_s_minutes():
    times = [reading_time.times(chapter) for chapter in CHAPTERS]
    assert all(each.read < each.short < each.student for each in times)
    assert 12 * 60 <= sum(each.marked for each in times) <= 16 * 60


def test_minutes_are_written_without_a_break():
    assert reading_time.say(45) == "45\N{NO-BREAK SPACE}min"
    assert reading_time.say(125).split() == ["2", "h", "5", "min"]
    assert reading_time.say(60).split() == ["1", "h"]


# ----------------------------------------------------------------------
# Publishing
# ----------------------------------------------------------------------


def settings(**options) -> SimpleNamespace:
    """What an extension sees of _config.yml."""
    return SimpleNamespace(html_theme_options=options, html_baseurl="")


def test_without_a_repository_a_notebook_can_be_downloaded_only():
    config = settings(launch_buttons={"notebook_interface": "jupyterlab"})
    notebook_links.take_over(None, config)
    assert notebook_links.links(config, "04_attention") == []


def test_with_a_repository_a_notebook_opens_in_what_is_named():
    config = settings(
        repository_url="https://github.com/us/course.git",
        repository_branch="main",
        launch_buttons={
            "colab_url": "https://colab.example",
            "binderhub_url": "https://binder.example/",
            "jupyterhub_url": "https://hub.example",
        },
    )
    notebook_links.take_over(None, config)
    assert config.html_theme_options["launch_buttons"] == {}  # the theme makes none
    notebook = "exercises/04_attention/04_attention.ipynb"
    assert dict(notebook_links.links(config, "04_attention")) == {
        "Colab": f"https://colab.example/github/us/course/blob/main/{notebook}",
        "Binder": "https://binder.example/v2/gh/us/course/main?urlpath=lab/tree/"
        + notebook,
        "JupyterHub": "https://hub.example/hub/user-redirect/git-pull"
        "?repo=https%3A%2F%2Fgithub.com%2Fus%2Fcourse&branch=main&urlpath="
        + f"lab/tree/course/{notebook}".replace("/", "%2F"),
    }


def test_a_repository_elsewhere_gets_the_services_that_can_open_it():
    config = settings(
        repository_url="https://git.example.org/us/course",
        course_services={
            "colab_url": "https://colab.example",
            "jupyterhub_url": "https://hub.example",
        },
    )
    assert [name for name, _ in notebook_links.links(config, "x")] == ["JupyterHub"]


PAGE = """# Attention

A {term}`mask` hides what must not be seen, and {eq}`ab` is a formula of another page.

```{quiz} 04_attention
```
"""
OTHER = """# Glossary

This page of words has a formula of its own, which another page refers to.

$$ a = b $$ (ab)

```{glossary}
mask
  It hides a {term}`token`.

token
  A piece of text.
```
"""


def build(folder: Path, **environment: str) -> Path:
    """Build a small site with the course's extensions, in another process."""
    (folder / "book").mkdir(parents=True)
    (folder / "conf.py").write_text(
        f"import sys\nsys.path.insert(0, {str(EXTENSIONS)!r})\n"
        "project = 'The course'\nhtml_theme = 'basic'\nroot_doc = 'book/04_attention'\n"
        "extensions = ['myst_parser', 'page_elements', 'quizzes', 'definitions',"
        " 'publishing', 'reading']\nmyst_enable_extensions = ['dollarmath']\n"
        f"templates_path = [{str(ROOT / 'book' / '_templates')!r}]\n"
        f"html_static_path = [{str(ROOT / 'book' / '_static')!r}]\n"
    )
    toc = "\n```{toctree}\nglossary\n../exercises/04_attention/04_attention\n```\n"
    (folder / "book" / "04_attention.md").write_text(PAGE + toc)
    (folder / "book" / "glossary.md").write_text(OTHER)
    exercises = folder / "exercises" / "04_attention"
    exercises.mkdir(parents=True)
    (exercises / "04_attention.md").write_text("# Exercises\n\nWrite attention.\n")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-n", "-b", "html"]
    ran = subprocess.run(
        [*command, str(folder), str(folder / "out")],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder / "out"


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small site without an address."""
    return build(tmp_path_factory.mktemp("small") / "site", SITE_URL="")


@pytest.fixture(scope="module")
def addressed(tmp_path_factory):
    """The same with an address, and without git."""
    return build(
        tmp_path_factory.mktemp("addressed") / "site",
        SITE_URL="https://example.org/course",
        GIT_DIR="/nowhere",
    )


def test_a_page_keeps_the_definitions_that_it_links_to_and_no_others(small):
    page = (small / "book" / "04_attention.html").read_text()
    assert re.findall('data-about="(.*?)"', page) == ["term-mask", "equation-ab"]
    kept = page.partition('<div id="definitions"')[2]
    assert 'href="glossary.html#term-token"' in kept
    assert " id=" not in kept.partition("</div>\n</div>\n</div>")[0].partition(">")[2]


def test_a_page_s_quiz_has_the_right_answers_of_its_file(small):
    page = (small / "book" / "04_attention.html").read_text()
    asked = quizzes.read(quizzes.QUIZZES / "04_attention.yml")
    rights = [[bool(o.get("right")) for o in each["options"]] for each in asked]
    shown = [int(right) for right in re.findall('data-right="(.)"', page)]
    assert shown == [right.index(True) for right in rights]


def test_without_an_address_nothing_names_one(small):
    page = (small / "book" / "04_attention.html").read_text()
    assert 'rel="canonical"' not in page
    assert "og:image" not in page
    assert 'name="description" content="A mask hides what' in page
    assert not (small / "sitemap.xml").exists()


def test_with_an_address_pages_are_canonical_listed_and_have_a_picture(addressed):
    page = (addressed / "book" / "04_attention.html").read_text()
    place = "https://example.org/course/"
    assert f'<link rel="canonical" href="{place}book/04_attention.html"' in page
    assert f'property="og:image" content="{place}_static/social.png"' in page
    assert (addressed / "_static" / "social.png").is_file()
    listed = re.findall("<loc>(.*?)</loc>", (addressed / "sitemap.xml").read_text())
    assert len(listed) == 3
    for address in listed:
        assert (addressed / address.removeprefix(place)).is_file()


def test_a_page_says_when_it_was_verified_or_that_nobody_knows(small, addressed):
    page = (small / "book" / "04_attention.html").read_text()
    said = re.search("<p[^>]*data-verified[^>]*>(.*?)</p>", page)[1]
    assert f"PyTorch {torch.__version__.partition('+')[0]}" in said
    if publishing.git("log", "-1"):
        assert re.search(r"<time.*>\d{4}-\d\d-\d\d</time> at commit <code>", said)
    other = (addressed / "book" / "04_attention.html").read_text()
    assert "(not under version control: no date, no commit)" in other


def test_stamping_twice_changes_nothing():
    page = '<p class="x" data-verified="book/a"></p>'
    once = publishing.stamp(page, "Now.", {"book/a.md": "2026-01-02"})
    assert once == (
        '<p class="x" data-verified="book/a">Now. Text last changed 2026-01-02.</p>'
    )
    assert publishing.stamp(once, "Now.", {"book/a.md": "2026-01-02"}) == once


def test_an_address_that_is_none_is_refused(monkeypatch):
    monkeypatch.setenv("SITE_URL", "example.org")
    with pytest.raises(ValueError, match="must begin with http"):
        publishing.set_address(None, settings())


@pytest.mark.browser
@pytest.mark.parametrize("depth", ["", "a/", "a/b/c/"])
def test_the_404_page_leads_home_from_any_depth(addressed, visit, depth):
    page = visit("https://example.org/").page
    page.route(
        "**/*",
        lambda route: route.fulfill(
            status=404,
            content_type="text/html",
            body=(addressed / "404.html").read_text(),
        ),
    )
    page.goto(f"https://example.org/course/{depth}nothing.html")
    home = page.get_by_role("link", name="Begin at the home page")
    where = home.evaluate("link => link.href")
    assert where == "https://example.org/course/book/index.html"
    form = page.locator("form").evaluate("form => form.action")
    assert form == "https://example.org/course/search.html"


@pytest.mark.browser
def test_the_404_page_as_a_file_leads_to_its_neighbours(addressed, visit):
    page = visit(addressed.as_uri() + "/").open("404.html")
    home = page.get_by_role("link", name="Begin at the home page")
    assert home.evaluate("a => a.href") == (addressed / "book/index.html").as_uri()


def workflow() -> dict:
    """The workflow that publishes."""
    path = ROOT / ".github" / "workflows" / "publish.yml"
    return yaml.safe_load(path.read_text("utf-8"))


def test_the_workflow_calls_commands_that_exist():
    assert set(workflow()) == {"name", "on", "permissions", "concurrency", "jobs"}
    makefile = (ROOT / "Makefile").read_text()
    commands = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    steps = [step for job in workflow()["jobs"].values() for step in job["steps"]]
    called = [
        name
        for step in steps
        for name in re.findall(r"\bmake ([a-z]+)", step.get("run", ""))
    ]
    assert called == ["publish"]
    assert set(called) <= commands
    assert all("@v" in step["uses"] for step in steps if "uses" in step)


def test_publishing_replaces_what_it_published_and_nothing_else(tmp_path, monkeypatch):
    site, target = tmp_path / "html", tmp_path / "shown"
    (site / "book").mkdir(parents=True)
    (site / "index.html").write_text("home")
    (site / "book" / "new.html").write_text("new")
    monkeypatch.setattr(publish, "SITE", site)
    target.mkdir()
    (target / ".git").mkdir()
    (target / "CNAME").write_text("example.org")
    assert publish.refusal(target) is None
    publish.publish(target)
    (target / "book" / "old.html").write_text("old")
    assert publish.refusal(target) is None
    publish.publish(target)
    assert sorted(path.name for path in target.iterdir()) == [
        ".course-site", ".git", ".nojekyll", "CNAME", "book", "index.html",
    ]  # fmt: skip
    assert [path.name for path in (target / "book").iterdir()] == ["new.html"]


def test_publishing_over_other_files_is_refused(tmp_path, monkeypatch):
    site, target = tmp_path / "html", tmp_path / "thesis"
    site.mkdir()
    monkeypatch.setattr(publish, "SITE", site)
    assert "run `make book` first" in publish.refusal(target)
    (site / "index.html").write_text("home")
    target.mkdir()
    (target / "thesis.tex").write_text("years of work")
    assert "holds other files, such as thesis.tex" in publish.refusal(target)
    assert "where the site is built" in publish.refusal(site)
    assert "holds the course itself" in publish.refusal(ROOT)
    assert "is a file" in publish.refusal(target / "thesis.tex")


# ----------------------------------------------------------------------
# In a browser
# ----------------------------------------------------------------------

needs_site = pytest.mark.skipif(
    not (SITE / "index.html").is_file(), reason="run `make book` first"
)
HOME, CHAPTER = "book/index.html", "book/04_attention.html"
EXERCISES = "exercises/04_attention/04_attention.html"


@pytest.fixture
def reader(visit):
    """Open the site from a disk; what it complains of fails the test."""
    visitors = []

    def make(**options):
        visitor = visit(SITE.as_uri() + "/", **options)
        visitors.append(visitor)
        return visitor

    yield make
    assert [each for visitor in visitors for each in visitor.complaints] == []


def marks(page) -> list[str]:
    """What the sidebar says of pages."""
    return page.locator(".bd-docs-nav .progress-mark").all_inner_texts()


@needs_site
@pytest.mark.browser
def test_a_quiz_is_solved_by_keyboard_and_remembered(reader):
    visitor = reader()
    page = visitor.open(CHAPTER)
    forms = page.locator(".quiz form")
    assert forms.count() >= 4
    for number in range(forms.count()):
        form = forms.nth(number)
        right = int(form.get_attribute("data-right"))
        count = form.locator("input").count()
        verdict = form.locator("[role=status]")
        form.get_by_role("button", name="Check").press("Enter")
        assert verdict.inner_text() == "Choose an answer first."
        form.locator("input").nth((right + 1) % count).focus()
        page.keyboard.press("Space")
        page.keyboard.press("Enter")
        assert verdict.inner_text().startswith("✗ Not so.")
        assert form.locator("details").is_hidden()
        form.locator("input").nth(right).press("Space")
        assert verdict.inner_text() == ""
        form.get_by_role("button", name="Check").press("Enter")
        assert verdict.inner_text().startswith("✓ Right.")
        assert form.locator("details").is_visible()
    assert [each.strip() for each in marks(page)] == ["(quiz solved)"]
    assert [each.strip() for each in marks(visitor.open(HOME))] == ["(quiz solved)"]


@needs_site
@pytest.mark.browser
def test_without_scripts_every_answer_can_be_unfolded(browser):
    page = browser.new_page(java_script_enabled=False)
    page.goto((SITE / CHAPTER).as_uri())
    answers = page.locator(".quiz details").first
    assert answers.locator(".quiz-why").first.is_hidden()
    answers.locator("summary").click()
    assert answers.locator(".quiz-why").count() == 3
    assert answers.locator(".quiz-why").first.is_visible()
    assert page.locator(".quiz-check").first.is_hidden()
    page.close()


@needs_site
@pytest.mark.browser
def test_progress_is_shown_counted_and_forgotten(visit, address):
    visitor = visit(address)
    visitor.page.clock.set_fixed_time(0)  # a slow machine has not read it by itself
    page = visitor.open(CHAPTER)
    button = page.get_by_role("button", name="I have read this")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    page = visitor.open(EXERCISES)
    with page.expect_download():
        page.get_by_role("link", name="Download the notebook").click()
    page = visitor.open(HOME)
    assert [each.strip() for each in marks(page)] == ["(read)", "(notebook downloaded)"]
    bar = page.locator("progress")
    assert (bar.get_attribute("value"), bar.get_attribute("max")) == (
        "1",
        f"{2 * len(CHAPTERS)}",
    )
    page.get_by_label("student").check()
    assert (bar.get_attribute("value"), bar.get_attribute("max")) == (
        "2",
        f"{3 * len(CHAPTERS)}",
    )
    page.reload()
    assert page.get_by_label("student").is_checked()
    page.get_by_role("button", name="Forget my progress").click()
    page.get_by_role("button", name="No", exact=True).click()
    assert len(marks(page)) == 2
    page.get_by_role("button", name="Forget my progress").click()
    page.get_by_role("button", name="Yes, forget all of it").click()
    assert marks(page) == []
    assert bar.get_attribute("value") == "0"
    assert page.get_by_role("button", name="Forget my progress").is_hidden()


@needs_site
@pytest.mark.browser
def test_whoever_reads_to_the_end_has_read_and_whoever_jumps_has_not(reader):
    visitor = reader()
    visitor.page.clock.install()
    page = visitor.open(CHAPTER)
    page.locator("#page-end").scroll_into_view_if_needed()
    page.clock.run_for(1000)
    assert marks(page) == []
    page.evaluate("scrollTo(0, 0)")
    page.clock.run_for(90_000)
    page.locator("#page-end").scroll_into_view_if_needed()
    page.locator(".page-read[aria-pressed=true]").wait_for()


BROKEN = {
    "refused": "const old = Storage.prototype.setItem;"
    "Storage.prototype.setItem = function (key, value) {"
    " if (key === 'course-progress') throw new Error('refused');"
    " old.call(this, key, value); }",
    "other text": "localStorage.setItem('course-progress', 'not JSON')",
    "other data": "localStorage.setItem('course-progress', "
    """'{"read": 7, "quiz": ["x"], "way": "toString"}')""",
}


@needs_site
@pytest.mark.browser
@pytest.mark.parametrize("kind", BROKEN)
def test_a_browser_that_does_not_remember_does_no_harm(reader, kind):
    visitor = reader()
    visitor.page.add_init_script(BROKEN[kind])
    visitor.page.clock.set_fixed_time(0)  # a slow machine has not read it by itself
    page = visitor.open(CHAPTER)
    page.get_by_role("button", name="I have read this").click()
    expect(page.locator(".page-read")).to_have_attribute("aria-pressed", "true")
    assert visitor.open(HOME).get_by_label("reader").is_checked()


@needs_site
@pytest.mark.browser
def test_a_word_s_definition_is_shown_by_pointer_and_keyboard(reader):
    page = reader().open(CHAPTER)
    link = page.locator('article a[href*="#term-query"]').first
    box = page.locator("#definition")
    link.hover()
    box.wait_for(state="visible")
    assert "it is compared with all keys" in box.inner_text()
    assert link.get_attribute("aria-describedby") == "definition"
    box.hover()  # it stays while one reads it
    page.wait_for_timeout(400)
    assert box.is_visible()
    page.keyboard.press("Escape")
    assert box.is_hidden()
    page.mouse.move(5, 5)
    link.focus()
    assert box.is_visible()
    link.evaluate("link => link.blur()")
    box.wait_for(state="hidden")


@pytest.mark.browser
def test_an_equation_of_another_page_is_shown_at_the_link_to_it(visit, small):
    page = visit(small.as_uri() + "/").open("book/04_attention.html")
    link = page.locator('a[href="glossary.html#equation-ab"]')
    link.focus()
    box = page.locator("#definition")
    assert box.is_visible()
    assert "a = b" in box.inner_text()
    assert box.locator("[id]").count() == 0  # no name stands twice on the page
    page.keyboard.press("Escape")
    assert box.is_hidden()
    page.goto((small / "book" / "glossary.html").as_uri())  # and of the page itself
    page.get_by_role("link", name="token", exact=True).hover()
    box.wait_for(state="visible")
    assert box.inner_text().strip() == "A piece of text."


@needs_site
@pytest.mark.browser
def test_a_touch_shows_the_definition_and_a_second_leads_to_the_glossary(reader):
    page = reader(viewport=browsers.PHONE, has_touch=True).open(CHAPTER)
    link = page.locator('article a[href*="#term-query"]').first
    link.tap()
    box = page.locator("#definition")
    box.wait_for(state="visible")
    inside = box.bounding_box()
    assert inside["x"] >= 0
    assert inside["x"] + inside["width"] <= 360
    box.get_by_role("link", name="In the glossary").tap()
    page.wait_for_url("**/glossary.html#term-query")


@needs_site
@pytest.mark.browser
def test_hints_open_one_by_one(reader):
    page = reader().open(EXERCISES)
    hints = page.locator("article details:has(summary:text-matches('^Hint [123]'))")
    one, two = hints.nth(0), hints.nth(1)
    two.locator("summary").click()
    assert two.get_attribute("open") is None
    assert "(after hint 1)" in two.inner_text()
    two.locator("summary").press("Enter")
    assert two.get_attribute("open") is None
    one.locator("summary").press("Enter")
    two.locator("summary:not([aria-disabled])").click()
    assert two.get_attribute("open") is not None
    assert hints.nth(3).locator("summary").get_attribute("aria-disabled") is None


# ----------------------------------------------------------------------
# The PDF
# ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """Some pages of the site as a book."""
    target = tmp_path_factory.mktemp("pdf") / "book.pdf"
    pages = ["book/04_attention", "exercises/04_attention/04_attention"]
    pages += ["book/notation", "book/glossary", "book/bibliography"]
    command = [sys.executable, "-m", "tools.site.pdf", "--out", str(target), *pages]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    reader = PdfReader(target)
    return SimpleNamespace(
        reader=reader,
        size=target.stat().st_size,
        texts=[normalize("NFKC", page.extract_text()) for page in reader.pages],
    )


def titles(outline: list) -> list:
    """Give the titles of an outline, those below one as a list after it."""
    return [titles(each) if isinstance(each, list) else each.title for each in outline]


@needs_site
@pytest.mark.browser
def test_the_pdf_begins_with_a_title_page_that_says_what_it_is_and_of_when(book):
    first = " ".join(book.texts[0].split())
    assert first.startswith("Transformers by hand")
    assert "the authors of this course" in first
    assert "Last verified" in first
    assert "Last verified" not in " ".join(book.texts[1:])
    assert book.reader.metadata.title == "Transformers by hand"
    assert book.reader.metadata.author == "the authors of this course"
    assert book.reader.trailer["/Root"]["/Lang"] == "en"
    assert book.reader.page_mode == "/UseOutlines"


@needs_site
@pytest.mark.browser
def test_the_contents_of_the_pdf_name_the_pages_on_which_things_begin(book):
    assert book.texts[1].startswith("Contents")
    assert "4 · Attention" in book.texts[1]
    front = [text for text in book.texts if re.search(r"^Contents$", text, re.M)]
    listed = re.findall(r"^(.+?) *\n?(\d+)$", "\n".join(front), re.M)
    squeezed = [re.sub(r"[\s√]", "", text) for text in book.texts]
    wrong = [
        (title, number)
        for title, number in listed
        if re.sub(r"[\s√]|.*·", "", title) not in squeezed[int(number) - 1]
    ]
    assert len(listed) > 25
    assert not wrong


@needs_site
@pytest.mark.browser
def test_the_outline_of_the_pdf_has_numbers_nests_exercises_and_keeps_roots(book):
    found = titles(book.reader.outline)
    pages = [each for each in found if isinstance(each, str)]
    assert pages == [
        "Contents",
        "4 · Attention",
        "Notation",
        "Glossary",
        "Bibliography",
    ]
    below = found[2]
    assert "Why the scores are divided by √dk" in below
    assert below[-2] == "4 · Exercises"
    first = chapters()["04_attention"].exercises[0]
    assert below[-1][0] == f"Exercise {first.number} · {first.title}"


@needs_site
@pytest.mark.browser
def test_pages_of_the_pdf_say_where_one_is_and_its_links_lead_inside(book):
    for number, text in enumerate(book.texts[1:], 2):
        assert text.rstrip().endswith(str(number))
    assert any(text.rstrip().startswith("4 · Attention") for text in book.texts[2:])
    links = [
        link.get_object()
        for page in book.reader.pages
        for link in page.get("/Annots") or []
    ]
    addresses = [str((link.get("/A") or {}).get("/URI", "")) for link in links]
    assert not any(each.startswith("file:") for each in addresses)
    assert sum("/Dest" in link for link in links) > 20


@needs_site
@pytest.mark.browser
def test_the_pdf_has_no_folded_bars_but_what_they_promise(book):
    text = "\n".join(book.texts)
    assert "Hint 1" not in text
    assert "How this is drawn" not in text
    assert "Scaled, not scaled, rounded" in text
    assert "open one by one on the site" in text
    assert "This figure moves on the site" in " ".join(text.split())


@needs_site
@pytest.mark.browser
def test_the_pdf_is_packed(book):
    assert book.size / len(book.texts) < 50_000


def test_without_a_browser_the_pdf_says_what_is_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(pdf.browser.shutil, "which", lambda _: None)
    with pytest.raises(SystemExit, match="apt-get install chromium-headless-shell"):
        pdf.print_pages([], tmp_path)


def test_the_title_page_names_the_address_of_the_site_where_it_is_known():
    about = {"promise": "A promise.", "verified": "", "address": ""}
    assert "The site:" not in pdf_front.title_page(about)
    known = pdf_front.title_page(about | {"address": "https://example.org/a/"})
    assert 'href="https://example.org/a/"' in known


def test_the_pdf_has_every_page_of_the_site_once():
    names = [each.name for each in pdf.listed_pages()]
    assert len(names) == len(set(names))
    assert {f"book/{chapter}" for chapter in CHAPTERS} <= set(names)
    assert {f"exercises/{chapter}/{chapter}" for chapter in CHAPTERS} <= set(names)
