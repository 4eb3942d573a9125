"""A visitor's session: twenty things that a person would try, one after the other.

From the home page to a passed exercise, in one browser profile, in Chromium and in
Firefox, each by pointer or keys as a person would; a page that complains fails.
"""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.site.test_exercises_in_page import RIGHT, WRONG, Place
from tests.site.test_recorded_in_page import ANSWERS
from workbench.use import results

pytestmark = pytest.mark.browser
LONG = 120_000  # milliseconds: a loaded machine starts Python slowly
HOME, MAP = "book/index.html", "book/introduction.html"
INSIDE, ATTENTION = "book/look_inside.html", "book/04_attention.html"
EXERCISE = "exercises/01_embeddings/01_embeddings.html"


def figure(page, name: str):
    """Bring a figure into view; give it once it is drawn."""
    found = page.locator(f"#figure-{name}")
    found.scroll_into_view_if_needed()
    page.locator(f"#figure-{name}[data-state=ready]").wait_for()
    return found


def shown(found, condition: str = "true") -> dict:
    """Wait until a figure's numbers fulfil something; give them."""
    found.page.wait_for_function(
        f"(each) => {{ const shown = each.figure.numbers(); return {condition}; }}",
        arg=found.element_handle(),
        timeout=LONG,
    )
    return found.evaluate("(each) => each.figure.numbers()")


def open_model(found, name: str) -> None:
    found.get_by_role("button", name=f"Open the {name}").click()
    shown(found, "shown.loaded")


# --- the twenty -----------------------------------------------------------------------


def choose_a_wrong_answer_on_the_home_page(visitor):
    page = visitor.open(HOME)
    page.locator(".recorded-home label").nth(1).click()
    panel = page.locator(".recorded-panel").nth(1)
    panel.wait_for()
    assert "not yet right" in panel.inner_text()


def change_the_noun_and_see_the_article_change(visitor):
    found = figure(visitor.page, "glance")
    before = shown(found)["written"][2]
    found.get_by_label("The noun").select_option("king")
    assert {before, shown(found)["written"][2]} == {"der", "dem"}


def choose_the_dark_theme(visitor):
    page = visitor.page
    for _ in range(3):  # automatic, light, dark
        if page.locator("html").get_attribute("data-theme") == "dark":
            break
        page.locator("button.theme-switch-button:visible").first.click()
    assert page.locator("html").get_attribute("data-theme") == "dark"


def begin_to_read_and_keep_the_theme(visitor):
    page = visitor.page
    page.locator(".course-ways .sd-card").first.click()
    page.wait_for_url("**/introduction.html")
    assert page.locator("html").get_attribute("data-theme") == "dark"


def ask_the_map_where_attention_is_written(visitor):
    found = figure(visitor.page, "model_map")
    found.get_by_role("button", name="Cross-attention").first.click()
    found.get_by_role("link", name="chapter 5, Multi-head attention").click()
    visitor.page.wait_for_url("**/05_multi_head_attention.html")


def open_the_translator_in_the_map(visitor):
    found = figure(visitor.open(MAP), "model_map")
    open_model(found, "translator")
    found.get_by_label("English sentence").fill("Anna helps the queen.")
    assert shown(found)["output"] == "Anna hilft der Königin."


def search_while_typing(visitor):
    page = visitor.page
    page.keyboard.press("Escape")
    page.keyboard.press("Control+k")
    page.keyboard.type("causal mas")
    dialog = page.locator("#pst-search-dialog")
    found = dialog.locator(".search-found a").first  # of all that was typed
    expect(found).to_have_attribute("href", re.compile("causal"), timeout=LONG)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/book/*.html#*mask*")


def light_up_a_symbol(visitor):
    page = visitor.open(ATTENTION)
    entry = page.locator('.light[data-lights="V"]').first
    page.mouse.move(0, 0)  # what moves under the pointer would light up instead
    entry.press("Enter")  # a click is lost if the page is laid out between down and up
    for place in (".math", "pre"):
        lit = page.locator(f'{place} .lit[data-lights="V"]')
        expect(lit.first).to_be_attached()


def turn_a_query(visitor):
    found = figure(visitor.page, "attention")
    query = found.get_by_label("query of car")
    before = shown(found)["weights"][1]
    query.focus()
    visitor.page.keyboard.press("Shift+ArrowRight")
    assert shown(found)["weights"][1] != before


def move_a_number_of_a_sentence(visitor):
    slider = visitor.page.locator(".move input").first
    slider.scroll_into_view_if_needed()
    said = slider.locator("..").inner_text()
    slider.press("End")
    assert slider.locator("..").inner_text() != said


def read_what_a_word_means(visitor):
    page = visitor.page
    page.evaluate("scrollTo(0, 0)")
    page.locator('article a[href*="#term-query"]').first.hover()
    page.locator("#definition", has_text="compared with all keys").wait_for()
    page.keyboard.press("Escape")


def solve_a_question(visitor):
    form = visitor.page.locator(".quiz form").first
    form.scroll_into_view_if_needed()
    right = int(form.get_attribute("data-right"))
    for chosen, said in ((1 - min(right, 1), "✗"), (right, "✓")):
        form.locator("label").nth(chosen).click()
        form.get_by_role("button", name="Check").click()
        form.locator("[role=status]", has_text=said).wait_for()


def translate_a_sentence_of_ones_own(visitor):
    found = figure(visitor.open("book/09_translator.html"), "translate")
    found.get_by_role("button", name="Load the model").click()
    shown(found, "shown.loaded && !shown.busy")
    found.get_by_label("Your sentence").fill("Bobby likes blackberries.")
    visitor.page.keyboard.press("Enter")
    shown(found, "shown.translation === 'Bobby mag Brombeeren.'")


def draw_a_seven(visitor):
    found = figure(visitor.open("book/10_vision.html"), "draw")
    found.get_by_role("button", name="Load the model").click()
    shown(found, "shown.loaded && !shown.busy")
    found.get_by_role("button", name="Clear").click()
    pad = found.locator(".live-pad")
    pad.scroll_into_view_if_needed()
    box, mouse = pad.bounding_box(), visitor.page.mouse
    for number, (x, y) in enumerate([(0.25, 0.15), (0.75, 0.15), (0.45, 0.9)]):
        place = box["x"] + x * box["width"], box["y"] + y * box["height"]
        mouse.move(*place, steps=4)
        if number == 0:
            mouse.down()
    mouse.up()
    shown(found, "shown.summary.startsWith('It reads 7')")


def walk_the_guided_path(visitor):
    found = figure(visitor.open(INSIDE), "look_inside")
    found.get_by_role("button", name="Guided path").click()
    shown(found, "shown.step === 0")
    for _ in range(9):
        found.get_by_role("button", name="Next", exact=True).click()
    assert "die kluge Königin" in shown(found, "shown.step === 9")["output"]
    found.get_by_role("button", name="Leave the path").click()
    found.get_by_role("button", name="Undo all changes").click()
    assert shown(found)["output"] == "Anna hilft der klugen Königin."


def let_the_language_model_write_on(visitor):
    found = figure(visitor.page, "look_inside")
    found.get_by_role("radio", name="language model").check()
    open_model(found, "language model")
    before = shown(found)["place"]["target"]
    found.get_by_role("button", name="Write on").click()
    shown(found, f"shown.place.target === {before + 24}")


def open_a_model_of_ones_own(visitor):
    found = figure(visitor.page, "look_inside")
    folder = results.model_folder("induction_2")
    files = ("config.json", "model.safetensors", "tokenizer.json")
    found.locator("#inside-files").set_input_files([folder / name for name in files])
    notice = shown(found, "shown.notice.startsWith('Your own')")["notice"]
    assert "It stays in this page." in notice


def read_what_a_check_says_of_a_recorded_answer(visitor):
    page = visitor.open("exercises/04_attention/04_attention.html")
    box = page.locator("details.recorded[data-exercise='softmax']")
    box.locator("summary").first.click()
    wrong = next(i for i, each in enumerate(ANSWERS, 1) if each["failure"])
    box.get_by_role("button", name=f"Answer {wrong}", exact=True).click()
    box.locator(".on-page-result", has_text="not yet right").wait_for()


def be_told_a_mistake_and_take_a_hint(visitor):
    exercise = Place(visitor, "vocabulary", EXERCISE).open()
    assert "tokens in alphabetical order" in exercise.checked(WRONG)
    hint = visitor.page.locator("article details:has(summary:text('Hint 1'))").first
    hint.locator("summary").first.click()
    hint.locator(":scope > :not(summary)").first.wait_for()


def pass_an_exercise_and_keep_it(visitor):
    exercise = Place(visitor, "vocabulary", EXERCISE).open()
    assert "sorted" in exercise.editor.inner_text()  # as it was left
    exercise.checked(RIGHT)
    expect(exercise.said).to_have_text(exercise.passed, timeout=LONG)
    page = visitor.page
    with page.expect_download() as download:
        exercise.place.get_by_role("button", name="Download the notebook").click()
    cells = json.loads(Path(download.value.path()).read_text("utf-8"))["cells"]
    assert any("numbers.setdefault" in "".join(cell["source"]) for cell in cells)
    visitor.open(HOME)
    page.locator(".bd-docs-nav", has_text="1 passed in the page").wait_for()


TASKS = (
    choose_a_wrong_answer_on_the_home_page,
    change_the_noun_and_see_the_article_change,
    choose_the_dark_theme,
    begin_to_read_and_keep_the_theme,
    ask_the_map_where_attention_is_written,
    open_the_translator_in_the_map,
    search_while_typing,
    light_up_a_symbol,
    turn_a_query,
    move_a_number_of_a_sentence,
    read_what_a_word_means,
    solve_a_question,
    translate_a_sentence_of_ones_own,
    draw_a_seven,
    walk_the_guided_path,
    let_the_language_model_write_on,
    open_a_model_of_ones_own,
    read_what_a_check_says_of_a_recorded_answer,
    be_told_a_mistake_and_take_a_hint,
    pass_an_exercise_and_keep_it,
)


def test_a_visitor_does_twenty_things(visit_both, address):
    visitor, failed = visit_both(address, theme="light"), {}
    visitor.page.set_default_timeout(LONG)
    for task in TASKS:
        try:
            task(visitor)
            assert visitor.complaints == []
        except Exception as error:  # the others are tried all the same
            failed[task.__name__] = str(error)[:600]
    assert len(TASKS) == 20
    assert not failed, "\n".join(f"{name}: {error}" for name, error in failed.items())
