"""Recorded answers in a real browser: below a check, and on the home page."""

from pathlib import Path

import pytest

from tests import browsers
from tools.site import recorded_pages

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
CHAPTER, EXERCISE = "04_attention", "softmax"
PAGE = f"exercises/{CHAPTER}/{CHAPTER}.html"
ANSWERS = recorded_pages.recorded(CHAPTER)[EXERCISE]["answers"]


def opened(visitor):
    """Open the box of an exercise."""
    page = visitor.open(PAGE)
    box = page.locator(f"details.recorded[data-exercise='{EXERCISE}']")
    box.locator("summary").first.click()
    box.get_by_role("button", name="Answer 1", exact=True).wait_for()
    return box


@pytest.mark.parametrize("place", ["server", "disk"])
def test_a_reader_chooses_an_answer_and_reads_what_the_check_says(
    visit_both, address, place
):
    visitor = visit_both(address if place == "server" else SITE.as_uri() + "/")
    box = opened(visitor)
    for number, answer in enumerate(ANSWERS, 1):
        box.get_by_role("button", name=f"Answer {number}", exact=True).click()
        code = box.locator(".recorded-shown pre").first.inner_text()
        assert code.rstrip() == answer["code"]
        if answer["failure"]:
            said = box.locator("[role=status]").inner_text()
            assert answer["failure"]["mistake"] in said
            assert "not yet right" in box.locator(".on-page-result").inner_text()
        else:
            assert box.get_by_text("The check passes").is_visible()
        if answer["repair"]:
            box.get_by_text("The repair").click()
            new = [line for _, _, lines in answer["repair"] for line in lines]
            shown = box.locator(".recorded-new").all_inner_texts()
            assert [line.removeprefix("+ ").rstrip() for line in shown] == new
    assert visitor.complaints == []


def test_nothing_is_loaded_before_a_box_is_opened(visit, address):
    page = visit(address).open(PAGE)
    names = page.evaluate(
        "performance.getEntriesByType('resource').map(({ name }) => name)"
    )
    assert not any(f"recorded/{CHAPTER}" in name for name in names)
    assert page.locator("details.recorded[open]").count() == 0


def test_the_home_page_shows_three_answers_without_scripts(visit):
    visitor = visit(SITE.as_uri() + "/", java_script_enabled=False)
    page = visitor.open("book/index.html")
    panels = page.locator(".recorded-panel")
    assert panels.count() == 3 and not any(each.is_visible() for each in panels.all())
    for number, panel in enumerate(panels.all()):
        page.locator(".recorded-home label").nth(number).click()
        assert panel.is_visible()
        assert "not yet right" in panel.inner_text()


def test_the_figure_of_the_home_page_stays_on_its_first_screen(visit, address):
    page = visit(address).open("book/index.html")
    figure = page.locator("figure.moving-figure").first.bounding_box()
    shown = browsers.DESK["height"] - figure["y"]
    assert shown >= 0.75 * figure["height"]
    first = page.locator(".recorded-home label").first.bounding_box()
    assert first["y"] + first["height"] < browsers.DESK["height"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_at_a_recorded_answer(visit, address, theme):
    package = pytest.importorskip("axe_playwright_python")
    axe = Path(package.__file__).with_name("axe.min.js").read_text("utf-8")
    box = opened(visit(address, theme=theme))
    wrong = next(i for i, each in enumerate(ANSWERS, 1) if each["repair"])
    box.get_by_role("button", name=f"Answer {wrong}", exact=True).click()
    box.get_by_text("The repair").click()
    box.page.evaluate(axe)
    found = box.page.evaluate(
        """async () => (await axe.run("details.recorded[open]")).violations.map(
          ({ id, nodes }) => `${id}: ${nodes[0].html}`)"""
    )
    assert found == []
