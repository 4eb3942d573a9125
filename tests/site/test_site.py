"""The built site: in a browser with the network refused, and without any answer.

Reads _build/html, which `make book` makes.
"""

import html
import json
import re
from pathlib import Path

import pytest
import tinycss2
from playwright.sync_api import expect

from tests import browsers
from tools.site import lighten, math_font

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
if not (SITE / "index.html").is_file():
    pytest.fail(f"no site at {SITE}: run `make book` first", pytrace=False)

PAGES = sorted(
    str(path.relative_to(SITE))
    for folder in ("book", "exercises")
    for path in (SITE / folder).rglob("*.html")
)
EXERCISES = sorted(
    path.relative_to(ROOT) for path in (ROOT / "exercises").glob("*/*.ipynb")
)

# ----------------------------------------------------------------------
# In a browser
# ----------------------------------------------------------------------


def source_of(page: str) -> str:
    """The text that a page of the site is made from."""
    source = ROOT / page
    candidates = [source.with_suffix(suffix) for suffix in (".md", ".ipynb")]
    return next(path for path in candidates if path.is_file()).read_text("utf-8")


# Formulas that were not converted, lie outside their element, or are left as text.
UNSET_FORMULAS = """() => {
  const article = document.querySelector("article");
  const wrong = [...article.querySelectorAll(".math")]
    .filter((element) => !element.querySelector("math") || (element.checkVisibility()
      && !element.querySelector("math").getBoundingClientRect().width))
    .map((element) => "not set: " + element.textContent);
  const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode;
    const parent = text.parentElement;
    if (parent.closest("pre, code, script, style, noscript, math")) continue;
    if (/\\\\[([]|\\$|\\\\[a-z]{2,}/.test(text.data)) wrong.push("raw: " + text.data);
  }
  return wrong;
}"""

# Of the text that axe cannot judge, such as what lies partly under a drawing: that
# whose contrast with the backgrounds of what it is in is below WCAG AA.
PALE_TEXT = """() => {
  const canvas = document.createElement("canvas").getContext("2d");
  const known = new Map();
  const rgba = (css) => {
    if (!known.has(css)) known.set(css, paint(css));
    return known.get(css);
  };
  const paint = (css) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = css;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, below) =>
    [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const luminance = (color) => {
    const [r, g, b] = color.map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const grounds = new Map();
  const background = (element) => {
    if (!element) return [255, 255, 255, 1];
    if (!grounds.has(element)) {
      const layer = rgba(getComputedStyle(element).backgroundColor);
      grounds.set(element, over(layer, background(element.parentElement)));
    }
    return grounds.get(element);
  };
  const pale = new Set();
  for (const element of window.unjudged) {
    const style = getComputedStyle(element);
    const behind = background(element);
    const light = [over(rgba(style.color), behind), behind].map(luminance);
    const ratio = (Math.max(...light) + 0.05) / (Math.min(...light) + 0.05);
    const large = parseFloat(style.fontSize) >= 24
      || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5))
      pale.add(`${ratio.toFixed(2)} ${element.tagName}.${element.className}: `
        + element.textContent.trim().slice(0, 40));
  }
  return [...pale];
}"""

# A chapter has thousands of texts, and axe needs seconds to judge the colours of all.
# Those that look alike, and stand in what looks alike, are one kind: it judges one of
# each, code too. This marks those, and links.
ONE_OF_EACH_KIND = """() => {
  const known = new Map([[null, 0]]), numbers = new Map(), seen = new Set();
  const kind = (element) => {
    if (!known.has(element)) {
      const style = getComputedStyle(element);
      const looks = [kind(element.parentElement), element.tagName,
        element.getAttribute("class"), style.color, style.backgroundColor,
        style.backgroundImage, style.opacity, style.fontSize, style.fontWeight].join();
      if (!numbers.has(looks)) numbers.set(looks, numbers.size + 1);
      known.set(element, numbers.get(looks));
    }
    return known.get(element);
  };
  const written = ({ nodeType, data }) => nodeType === Node.TEXT_NODE && data.trim();
  for (const element of document.querySelectorAll("body *")) {
    element.removeAttribute("data-judged");
    const judged = element.matches("a[href]") || [...element.childNodes].some(written);
    if (!judged || !element.checkVisibility()) continue;
    if (!seen.has(kind(element))) element.dataset.judged = "";
    seen.add(kind(element));
  }
}"""
JUDGED = {
    "rules": [
        {"id": "color-contrast", "selector": "[data-judged]"},
        {"id": "link-in-text-block", "selector": "a[href][data-judged]"},
    ]
}

# What axe finds; whose contrast it cannot judge is kept. It takes a formula for
# nothing, where screen readers read MathML: it can be a name.
VIOLATIONS = """async ([context, rules]) => {
  const formula = ({ element }) => [element, ...(element.labels || [])]
    .some((each) => each.querySelector("math"));
  const contrast = ({ id }) => id === "color-contrast";
  const { violations, incomplete, passes } = await axe.run(context,
    { elementRef: true, resultTypes: ["violations", "incomplete"], ...rules });
  window.judged = passes.some(contrast);
  window.unjudged = incomplete.filter(contrast)
    .flatMap(({ nodes }) => nodes.map(({ element }) => element));
  return violations.flatMap(({ id, nodes }) => {
    const left = ["label", "empty-table-header"].includes(id)
      ? nodes.filter((node) => !formula(node)) : nodes;
    return left.slice(0, 3).map((node) => `${id}: ${node.target} ${node.html}`);
  });
}"""
AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
NEW_RULES = ("label-content-name-mismatch", "td-has-header")  # not yet part of any tag
OF_COLOURS = [rule["id"] for rule in JUDGED["rules"]]
BUT_COLOURS = {
    "runOnly": {"type": "tag", "values": AXE_TAGS},
    "rules": {rule: {"enabled": False} for rule in OF_COLOURS}
    | {rule: {"enabled": True} for rule in NEW_RULES},
}
# Sections far from what is seen are passed over, and colours change slowly
ALL_SHOWN = """* { transition: none !important; }
  .bd-article section { content-visibility: visible !important; }"""
WIDTHS = (360, 768, 1280, 2560)

# What the page loaded, with its bytes as they are before any compression.
WEIGHTS = """() => Object.fromEntries(performance.getEntriesByType("resource").map(
  (entry) => [new URL(entry.name).pathname.slice(1), entry.decodedBodySize]))"""


def colours(page) -> list[str]:
    """What axe has against a page's colours, and we where it cannot judge."""
    page.evaluate(ONE_OF_EACH_KIND)
    found = page.evaluate(
        VIOLATIONS, [{"exclude": [["math"]]}, {"runOnly": OF_COLOURS}]
    )
    assert page.evaluate("window.judged"), "axe has judged no contrast"
    return found + page.evaluate(PALE_TEXT)


@pytest.fixture(scope="module")
def findings(browser, address):
    """What is wrong with each page, served to a desk: path -> kind -> list."""
    package = pytest.importorskip("axe_playwright_python")
    axe = Path(package.__file__).with_name("axe.min.js").read_text("utf-8")
    found = {}
    context = browser.new_context(viewport=browsers.DESK, color_scheme="light")
    visitor = browsers.Visitor(context, address)
    for path in PAGES:
        page = visitor.open(path)
        page.add_style_tag(content=ALL_SHOWN)
        page.wait_for_timeout(50)  # what scrolls is found when it is shown
        found[path] = {
            "complaints": [*visitor.complaints],
            "formulas": page.evaluate(UNSET_FORMULAS),
            "formulas set": page.locator("math").count(),
            "weights": page.evaluate(WEIGHTS),
        }
        page.evaluate(axe)
        page.evaluate("(rules) => axe.configure(rules)", JUDGED)
        everything = {"exclude": [["math"], ["pre"]]}
        found[path]["axe"] = page.evaluate(VIOLATIONS, [everything, BUT_COLOURS])
        for theme in ("light", "dark"):
            page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
            found[path][theme] = colours(page)
        found[path]["too wide"] = []
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            needed = page.evaluate("document.documentElement.scrollWidth")
            if needed > width:
                found[path]["too wide"].append(f"{needed} px at {width}")
        page.set_viewport_size(browsers.DESK)
    context.close()
    return found


@pytest.mark.browser
@pytest.mark.parametrize("path", PAGES)
def test_page_asks_no_other_host_and_raises_no_error(findings, path):
    assert findings[path]["complaints"] == []


@pytest.mark.browser
@pytest.mark.parametrize("path", PAGES)
def test_formulas_are_set(findings, path):
    assert findings[path]["formulas"] == []
    prose = re.sub(r"```.*?```|`[^`]*`", "", source_of(path), flags=re.DOTALL)
    assert findings[path]["formulas set"] > 0 or "$" not in prose


@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_text_stands_out_from_its_background(findings, path, theme):
    assert findings[path][theme] == []


@pytest.mark.browser
@pytest.mark.parametrize("path", PAGES)
def test_axe_finds_no_violation(findings, path):
    assert findings[path]["axe"] == []


@pytest.mark.browser
@pytest.mark.parametrize("path", PAGES)
def test_page_never_scrolls_sideways(findings, path):
    assert findings[path]["too wide"] == []


@pytest.mark.browser
def test_chapter_can_be_read_without_scripts(visit):
    visitor = visit(SITE.as_uri() + "/", java_script_enabled=False)
    page = visitor.open("book/04_attention.html")
    assert page.locator("div.math math").first.is_visible()
    assert page.locator("figure.moving-figure noscript img").first.is_visible()
    assert page.locator("article p").first.is_visible()
    assert visitor.complaints == []


@pytest.mark.browser
def test_the_contents_mark_where_one_reads_and_nothing_at_the_top(visit):
    page = visit(SITE.as_uri() + "/").open("exercises/04_attention/04_attention.html")
    links = page.locator("#pst-page-toc-nav a")
    marked = page.locator("#pst-page-toc-nav a[aria-current]")
    expect(marked).to_have_count(0)
    names = links.all_inner_texts()
    links.nth(4).evaluate(
        "(link) => document.getElementById(link.hash.slice(1)).scrollIntoView()"
    )
    expect(marked).to_have_text(names[4])
    page.mouse.move(600, 400)
    for _ in range(6):  # as with a wheel, into the section before
        page.mouse.wheel(0, -60)
        page.wait_for_timeout(50)
    expect(marked).to_have_text(names[3])
    page.keyboard.press("Home")
    expect(marked).to_have_count(0)


@pytest.mark.browser
@pytest.mark.parametrize("size", [browsers.PHONE, browsers.DESK], ids=["phone", "desk"])
def test_far_sections_are_passed_over_and_links_lead_to_them(visit, address, size):
    """Heights are estimated well enough for the scroll bar, and places found."""
    page = visit(address, size).open("book/04_attention.html")
    height = "document.documentElement.scrollHeight"
    estimated = page.evaluate(height)
    sections = page.locator("article section section[id]")
    names = sections.evaluate_all("all => all.map((each) => each.id)")
    passed_over = """all => all.filter((each) => !each.firstElementChild
      .checkVisibility({ contentVisibilityAuto: true })).length"""
    assert sections.evaluate_all(passed_over) > len(names) / 2
    for name in (names[1], names[len(names) // 2], names[-1]):
        page.goto("about:blank")
        page.goto(f"{address}book/04_attention.html#{name}")
        heading = page.locator(f"[id='{name}'] > :is(h2, h3)").first
        page.wait_for_timeout(300)
        assert 0 <= heading.bounding_box()["y"] < size["height"], name
    page.add_style_tag(content=ALL_SHOWN)
    page.wait_for_timeout(100)
    assert 0.75 < estimated / page.evaluate(height) < 1.25


@pytest.mark.browser
def test_figures_are_drawn_when_they_come_near_and_on_paper(visit, address):
    page = visit(address, browsers.PHONE).open("book/04_attention.html")
    figure = page.locator("#figure-softmax")
    page.wait_for_timeout(300)
    assert figure.get_attribute("data-state") is None
    figure.scroll_into_view_if_needed()
    page.locator("#figure-softmax[data-state=ready]").wait_for()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("figure[data-figure]:not([data-state=ready])").count() == 0


def test_font_of_formulas_has_every_character_of_them():
    known = {chr(code) for code in math_font.characters()}
    used = set()
    for path in PAGES:
        text = (SITE / path).read_text("utf-8")
        for formula in re.findall(r"<math.*?</math>", text, re.DOTALL):
            used |= set(html.unescape(re.sub(r"<[^>]*>", "", formula)))
    assert sorted(used - known - set("\n")) == []


@pytest.mark.browser
def test_every_page_works_from_a_disk_on_a_phone(visit):
    visitor = visit(SITE.as_uri() + "/", browsers.PHONE)
    for path in PAGES:
        page = visitor.open(path)
        assert visitor.complaints == [], path
        assert page.evaluate(UNSET_FORMULAS) == [], path
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= browsers.PHONE["width"], (
            f"{path} scrolls sideways: {width} px wide"
        )


@pytest.mark.browser
def test_front_page_leads_home(visit):
    visitor = visit(SITE.as_uri() + "/")
    visitor.page.goto(visitor.base + "index.html")
    visitor.page.wait_for_url("**/book/index.html")
    assert (
        visitor.page.locator("article h1")
        .inner_text()
        .startswith("Transformers by hand")
    )
    assert visitor.complaints == []


@pytest.mark.browser
@pytest.mark.parametrize("place", ["server", "disk"])
def test_search_finds_a_chapter_by_keyboard(visit_both, address, place):
    visitor = visit_both(address if place == "server" else SITE.as_uri() + "/")
    page = visitor.open("book/index.html")
    page.keyboard.press("Control+k")
    page.keyboard.type("softmax")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=softmax")
    results = page.locator("#search-results li a")
    results.first.wait_for()
    targets = [results.nth(i).get_attribute("href") for i in range(results.count())]
    assert any("book/04_attention.html#" in target for target in targets[:5])
    found = page.locator("#search-results li:has(p.context)").all_inner_texts()
    assert len(found) == results.count()  # each result shows where it is said
    assert all("softmax" in text.lower() for text in found)
    results.first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/book/**")
    assert page.locator("article mark, article .highlighted").count() == 0
    assert visitor.complaints == []


@pytest.mark.browser
def test_search_answers_while_one_types_and_forgives_a_slip(visit):
    visitor = visit(SITE.as_uri() + "/")
    page = visitor.open("book/04_attention.html")
    page.keyboard.press("Control+k")
    found = page.locator("#pst-search-dialog .search-found a")
    for typed, section in (("causal mas", "causal-mask"), ("sofmtax", "softmax")):
        page.keyboard.type(typed)
        expect(found.first).to_be_visible()
        expect(page.locator("#pst-search-dialog")).to_contain_text("sections")
        targets = [link.get_attribute("href") for link in found.all()]
        assert any(section in target.partition("#")[2] for target in targets), targets
        page.locator("#pst-search-dialog input").fill("")
        expect(found).to_have_count(0)
    page.keyboard.type("causal mask")
    expect(found.first).to_be_visible()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.tagName") == "A"
    page.keyboard.press("Enter")
    page.wait_for_url("**#*")
    assert page.locator("article mark, article .highlighted").count() == 0
    assert visitor.complaints == []


@pytest.mark.browser
def test_dark_theme_can_be_chosen_and_stays(visit):
    visitor = visit(SITE.as_uri() + "/", theme="light")
    page = visitor.open("book/index.html")
    root = page.locator("html")
    assert root.get_attribute("data-theme") == "light"
    page.wait_for_load_state("networkidle")  # the button's script may come last
    for _ in range(3):  # the button goes through automatic, light and dark
        page.locator("button.theme-switch-button:visible").first.click()
        if root.get_attribute("data-theme") == "dark":
            break
    expect(root).to_have_attribute("data-theme", "dark")
    visitor.open("book/notation.html")
    assert root.get_attribute("data-theme") == "dark"
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert max(map(int, re.findall(r"\d+", background)[:3])) < 64
    assert visitor.complaints == []


@pytest.mark.browser
@pytest.mark.parametrize("notebook", EXERCISES, ids=lambda path: path.stem)
def test_exercise_page_gives_its_notebook_and_its_hints(visit, address, notebook):
    page = visit(address).open(notebook.with_suffix(".html").as_posix())
    with page.expect_download() as download:
        page.locator("a.exercise-download").click()
    assert download.value.suggested_filename == notebook.name
    assert Path(download.value.path()).read_bytes() == (ROOT / notebook).read_bytes()

    hints = page.locator("article details:has(summary:text-matches('^Hint [123]'))")
    assert hints.count() >= 3 * 7  # three for each of at least seven exercises
    for index in range(3):
        hint = hints.nth(index)
        inside = hint.locator(":scope > :not(summary)").first
        assert not inside.is_visible()
        hint.locator("summary").click()
        assert inside.is_visible()
        assert "**" not in hint.inner_text()  # its Markdown was read as Markdown


@pytest.mark.browser
@pytest.mark.parametrize("path", PAGES)
def test_page_stays_light(findings, path):
    """Styles, scripts and fonts, which all pages share, weigh little, uncompressed."""
    weights = findings[path]["weights"]
    shared = {
        name: size
        for name, size in weights.items()
        if not name.startswith(("book/", "_images/", "_static/data/"))
    }
    assert not any("searchindex" in name or "bootstrap" in name for name in shared)
    assert 0 < sum(shared.values()) < 500_000, shared


def selectors_of(sheet: Path) -> set[str]:
    """All selectors of a style sheet, those within at-rules, too."""
    found = set()
    open_rules = tinycss2.parse_stylesheet(
        sheet.read_text("utf-8"), skip_comments=True, skip_whitespace=True
    )
    while open_rules:
        rule = open_rules.pop()
        if rule.type == "qualified-rule":
            split = lighten.split_selectors(rule.prelude)
            found |= {lighten.written(each) for each in split}
        elif rule.content and rule.lower_at_keyword in {"media", "container"}:
            open_rules += tinycss2.parse_rule_list(
                rule.content, skip_comments=True, skip_whitespace=True
            )
    return found


def test_no_rule_of_a_figure_is_lost():
    """A script may put the name of a class together: its rule stays all the same."""
    built = list((SITE / "_static").glob("site_*figures*.css"))
    kept = set().union(*map(selectors_of, built))
    assert built and not selectors_of(ROOT / "book/_static/figures.css") - kept


# ----------------------------------------------------------------------
# Without any answer
# ----------------------------------------------------------------------

REGION = re.compile(
    r"### BEGIN (SOLUTION|HIDDEN TESTS)\n(.*?)### END \1", re.DOTALL | re.MULTILINE
)


MARKERS = ["BEGIN SOLUTION", "END SOLUTION", "BEGIN HIDDEN", "END HIDDEN"]


def squeeze(text: str) -> str:
    """Make every run of white space one space."""
    return " ".join(text.split())


def secret_lines() -> dict[str, str]:
    """Lines of answers and hidden tests that students do not get; line -> source.

    What the recorded answers show, wrong ones above all, is no secret.
    """
    given = "\n".join(read(ROOT / path) for path in EXERCISES)
    for path in sorted((ROOT / "solutions" / "recorded").glob("*.json")):
        recorded = json.loads(path.read_text("utf-8"))
        shown = [a["code"] for each in recorded.values() for a in each["answers"]]
        given += squeeze("\n".join(shown))
    lines = {}
    for source in sorted((ROOT / "solutions").glob("*.md")):
        text = re.sub(r"[ \t]+$", "", source.read_text("utf-8"), flags=re.MULTILINE)
        regions = re.sub(r"^[ \t]+(?=### )", "", text, flags=re.MULTILINE)
        for _, region in REGION.findall(regions):
            for line in map(squeeze, region.splitlines()):
                if len(line) >= 12 and line not in given:
                    lines[line] = source.name
    return lines


def read(path: Path) -> str:
    """A file's text as a reader sees it, white space squeezed."""
    text = path.read_text("utf-8")
    if path.suffix == ".html":
        text = html.unescape(re.sub(r"<[^>]*>", "", text))
    elif path.suffix == ".ipynb":
        text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return squeeze(text)


def is_text(path: Path) -> bool:
    """Whether a file of the site can carry lines of code (_static/ cannot)."""
    return (
        path.is_file()
        and path.suffix in {".html", ".js", ".ipynb", ".md", ".txt", ".py", ".json"}
        and "_static" not in path.relative_to(SITE).parts
    )


def test_no_answer_and_no_hidden_test_is_in_the_site():
    secrets = secret_lines()
    assert len(secrets) > 50, "the answers' lines were not found"
    files = [path for path in sorted(SITE.rglob("*")) if is_text(path)]
    assert SITE / "search_texts.js" in files
    found = []
    for path in files:
        text = read(path)
        where = path.relative_to(SITE)
        found += [f"{where}: {line}" for line in secrets if line in text]
        if "instructors" in str(where) or path.name == "search_texts.js":
            continue  # the guide says how a written answer is marked
        found += [
            f"{where}: {mark}" for mark in ("### BEGIN", "### END") if mark in text
        ]
    assert found == []


def test_nothing_of_the_instructor_is_copied_to_the_site():
    parts = {"solutions", "autograder", "tests", ".venv", "gradebook.db"}
    files = [path.relative_to(SITE) for path in SITE.rglob("*")]
    assert [str(path) for path in files if parts & set(path.parts)] == []
    assert [str(path) for path in files if path.suffix in {".py", ".db"}] == []


def test_search_knows_the_listed_pages_only():
    script = (SITE / "search_texts.js").read_text("utf-8")
    texts = json.loads(script[script.index("{") : script.rindex("}") + 1])
    assert sorted(set(texts) - {"404.html"}) == PAGES


@pytest.mark.parametrize("page", [*PAGES, "404.html", "search.html"])
def test_a_page_says_what_site_it_belongs_to(page):
    text = (SITE / page).read_text("utf-8")
    assert "Transformers by hand" in text.partition("</head>")[0]
    assert "Project name not set" not in text
