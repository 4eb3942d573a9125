"""Symbols that light up together, and numbers of a sentence that its reader moves."""

import re
import sys
from pathlib import Path

import pytest
from playwright.sync_api import expect
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from pages.moving_numbers import MovingNumbers, grouped
from tests import browsers

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
sys.path.insert(0, str(ROOT / "book" / "_extensions"))

import lights  # noqa: E402
import moving_numbers  # noqa: E402

# A page, one of its symbols, and where this has to light up besides the legend
LIT = [
    ("03_positional_encoding", "p", ["math", "pre", "#figure-positions"]),
    ("04_attention", "Q", ["math", "pre", ".lights-picture", "#figure-attention"]),
    ("04_attention", "M", ["math", "pre", ".lights-picture"]),
    ("05_multi_head_attention", "W_O", ["math", "pre", ".lights-picture"]),
    ("06_encoder", "gamma", ["math", "pre", ".lights-picture"]),
    ("06_encoder", "W_1", ["math", "pre", ".lights-picture"]),
]
NUMBERS = [
    ("03_positional_encoding", "hands", 2),
    ("04_attention", "scaling", 3),
    ("04_attention", "teal", 4),
    ("04_attention", "cost", 2),
    ("05_multi_head_attention", "heads", 2),
    ("06_encoder", "work", 3),
]

# How far down something is in its section, and how high that is
PLACE = """(element) => {
  const section = element.closest("section").getBoundingClientRect();
  return [element.getBoundingClientRect().top - section.top, section.height];
}"""
# else a section has the height that is guessed for it until it comes into view
DRAWN = "section { content-visibility: visible !important }"


def opened(visit, chapter: str, **options):
    """A visitor on a chapter's page, whose figures have been drawn."""
    visitor = visit(SITE.as_uri() + "/", **options)
    page = visitor.open(f"book/{chapter}.html")
    page.add_style_tag(content=DRAWN)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    return visitor, page


@pytest.mark.browser
@pytest.mark.parametrize(("chapter", "key", "places"), LIT)
def test_a_symbol_lights_up_wherever_it_is_shown(visit, chapter, key, places):
    visitor, page = opened(visit, chapter)
    entry = page.locator(f'.light[data-lights="{key}"]').first
    entry.scroll_into_view_if_needed()
    before = entry.evaluate(PLACE)
    entry.focus()
    for place in places:
        assert page.locator(f'{place} .lit[data-lights="{key}"]').count(), place
    lit = page.locator(".lit").evaluate_all("all => all.map((e) => e.dataset.lights)")
    assert set(lit) == {key}
    assert entry.evaluate(PLACE) == pytest.approx(before, abs=1)  # nothing jumps
    entry.press("Enter")
    assert entry.get_attribute("aria-pressed") == "true"
    entry.press("ArrowRight")  # one stop for Tab, arrows within
    assert page.locator(f'.lit[data-lights="{key}"]').count() == 0
    page.keyboard.press("Escape")
    assert page.locator(".lit, [aria-pressed=true].light").count() == 0
    assert visitor.complaints == []


@pytest.mark.browser
def test_pointer_and_finger_light_a_symbol_in_the_formula(visit):
    _, page = opened(visit, "04_attention")
    symbol = page.locator('.math mi[data-lights="V"]').first
    symbol.hover()
    assert page.locator('pre .lit[data-lights="V"]').count()
    page.locator("article h1").hover()
    assert page.locator(".lit").count() == 0
    _, page = opened(visit, "04_attention", viewport=browsers.PHONE, has_touch=True)
    page.locator('.math mi[data-lights="V"]').first.tap()
    assert page.locator('.lights-picture .lit[data-lights="V"]').count()
    page.locator("article h1").tap()
    assert page.locator(".lit").count() == 0


@pytest.mark.browser
@pytest.mark.parametrize(("chapter", "name", "following"), NUMBERS)
def test_numbers_follow_the_one_that_is_moved(visit, chapter, name, following):
    visitor, page = opened(visit, chapter)
    table = page.evaluate(
        "name => [...document.querySelectorAll('.numbers-table')]"
        ".map((e) => JSON.parse(e.dataset.table)).find((e) => e.name === name)",
        name,
    )
    moved = page.locator(f'.moved[data-numbers^="{name}."]')
    assert moved.count() == following
    slider = page.locator(f'.move[data-numbers^="{name}."] input')
    slider.scroll_into_view_if_needed()
    place_before = moved.last.evaluate(PLACE)
    for key, at in (("Home", 0), ("End", -1)):
        slider.press(key)
        for place in moved.all():
            column = place.get_attribute("data-numbers").partition(".")[2]
            assert place.inner_text() == table["columns"][column][at]
    assert moved.last.evaluate(PLACE) == pytest.approx(
        place_before, abs=1
    )  # nothing jumps
    expect(slider).to_have_attribute(
        "aria-valuetext", slider.locator("..").inner_text()
    )
    assert visitor.complaints == []


def test_without_scripts_a_sentence_says_what_its_cell_has_computed():
    shown = MovingNumbers("cost", "2", length=["1", "2"], scores=["1", grouped(4000)])
    first = re.compile(r">([^<>]+)<")
    tables = [moving_numbers.TABLE.search(shown._repr_html_())[1]]
    body = "".join(
        f'<span class="{kind}" data-numbers="cost.{column}"></span>'
        for kind, column in (("move", "length"), ("moved", "scores"))
    )
    written = moving_numbers.written(body, tables, "page")
    assert first.findall(written) == ["2", "4\u202f000"]
    with pytest.raises(ValueError, match="no cell shows the column cost price"):
        moving_numbers.written(body.replace("scores", "price"), tables, "page")
    with pytest.raises(ValueError, match="differ in number"):
        MovingNumbers("cost", "2", length=["1", "2"], scores=["1"])


def test_names_in_code_are_marked_whole_and_the_longest_first():
    chapter = {"w": {"code": ["w"]}, "share": {"code": ["w / sum(w)"]}}
    code = highlight("w / sum(w)\nw_2 = w", PythonLexer(), HtmlFormatter(nowrap=True))
    marked = lights.with_marks(code, "w.share", chapter)
    assert re.sub(r'<span class="\w+">([^<]*)</span>', r"\1", marked) == (
        '<span data-lights="share">w / sum(w)</span>\n'
        'w_2 = <span data-lights="w">w</span>\n'
    )


def test_a_picture_must_have_a_number_for_each_cell():
    symbols = {"x": {"tex": ["x"], "color": 1, "says": "token"}}
    drawn = lights.picture("x[1x2]=1,2 + x[2x2]!10/11", symbols, "Two matrices")
    assert drawn.count("<rect") == 6
    assert drawn.count("<text") == 2
    with pytest.raises(ValueError, match="not a number for each cell"):
        lights.picture("x[1x2]=1,2,3", symbols, "Too many")
