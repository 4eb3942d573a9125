"""Exercises done in a page, in a real browser: a wrong answer, a right one, no end."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import expect

from autograder.exercise.chapters import exercises
from tests import browsers
from tools.browser import served

pytestmark = pytest.mark.browser
ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "_build" / "html"
PAGE = "exercises/01_embeddings/01_embeddings.html"
LONG = 120_000  # milliseconds: a loaded machine starts Python slowly
KEPT = "localStorage.getItem('course-answer:vocabulary')"

WRONG = """def build_vocabulary(tokens, special_tokens=("<pad>",)):
    return {token: i for i, token in enumerate(sorted({*special_tokens, *tokens}))}
"""
RIGHT = """def build_vocabulary(
    tokens, special_tokens=("<pad>", "<unk>", "<sos>", "<eos>")
):
    numbers = {}
    for token in [*special_tokens, *tokens]:
        numbers.setdefault(token, len(numbers))
    print("so", "many:", len(numbers))
    return numbers
"""
ENDLESS = """def build_vocabulary(tokens, special_tokens=()):
    while True:
        pass
"""
TENSORS = """import torch


def build_vocabulary(tokens, special_tokens=()):
    return torch.zeros(3)
"""
MANY = """def build_vocabulary(tokens, special_tokens=()):
    return [0] * 10**8
"""
LARGE = """def build_vocabulary(tokens, special_tokens=()):
    grown = [0]
    while True:
        grown = grown * 10
"""


def place_of(exercise: str) -> str:
    """The selector of an exercise's place on its page."""
    return f".on-page[data-number='{exercises()[exercise].number}']"


class Place:
    """One exercise of a page, as a reader meets it."""

    def __init__(self, visitor, exercise: str = "vocabulary", path: str = PAGE):
        self.visitor = visitor
        self.page = visitor.open(path)
        self.place = self.page.locator(place_of(exercise))
        self.passed = f"Exercise {exercises()[exercise].number}: passed."
        self.said = self.place.locator(".on-page-said")
        self.check = self.place.get_by_role("button", name="Check")

    def open(self) -> "Place":
        """Ask for the editor."""
        self.place.locator(".on-page-main").click()
        self.editor.wait_for(timeout=LONG)
        return self

    @property
    def editor(self):
        return self.place.get_by_role("textbox")

    def write(self, text: str) -> None:
        """Put a text in place of what stands in the editor."""
        self.editor.click()
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(text)

    def checked(self, text: str) -> str:
        """Write, check, and give what the page says."""
        self.write(text)
        self.check.click()
        expect(self.said).to_contain_text("Exercise", timeout=LONG)
        expect(self.check).to_be_enabled()
        return self.place.locator(".on-page-result").inner_text()


@pytest.fixture(scope="module")
def opened(browser, address):
    """Open one exercise's editor, once for most tests of this file."""
    context = browser.new_context(viewport=browsers.DESK, accept_downloads=True)
    yield Place(browsers.Visitor(context, address)).open()
    context.close()


def test_nothing_is_loaded_before_it_is_asked_for(visit, address):
    shown = Place(visit(address))
    shown.page.wait_for_timeout(300)
    loaded = shown.page.evaluate(
        "performance.getEntriesByType('resource').map(({ name }) => name)"
    )
    packed = [name for name in loaded if "on_page/" in name]
    assert [name.partition("?")[0].rpartition("/")[2] for name in packed] == [
        "exercises.js"
    ]
    assert shown.page.locator(".on-page").count() == 8
    assert shown.visitor.complaints == []


def test_a_wrong_answer_is_named_and_a_right_one_passes(opened):
    told = opened.checked(WRONG)
    assert "tokens in alphabetical order" in told
    assert "do not sort" in told
    assert " vocabulary · not yet right" in told
    link = opened.place.get_by_role("link", name="chapter 1, “vocabulary”")
    assert link.evaluate("(each) => each.href").endswith(
        "/book/01_embeddings.html#embeddings-vocabulary"
    )
    assert opened.checked(RIGHT).startswith("so many:")
    assert opened.said.inner_text() == opened.passed
    assert opened.place.get_by_text("✓ passed").is_visible()
    summed = opened.page.locator(".on-page-sum").inner_text()
    assert "Passed in this browser: 1 of 8." in summed
    listed = opened.page.locator(".bd-docs-nav a.current").last
    assert "1 passed in the page" in listed.inner_text()
    assert opened.visitor.complaints == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def build_vocabulary(tokens:\n    return 1\n", "cannot be read as Python"),
        (
            TENSORS,
            "torch is not in the browser",
        ),
        (LARGE, "memory"),
        (MANY, "very large"),
    ],
    ids=["syntax", "torch", "memory", "many"],
)
def test_what_cannot_run_is_said_in_words(opened, text, words):
    assert words in opened.checked(text)
    assert opened.visitor.complaints == []


def test_a_keyboard_can_enter_and_leave_the_editor(opened):
    opened.editor.focus()
    opened.page.keyboard.press("Escape")
    opened.page.keyboard.press("Tab")
    inside = "document.activeElement.closest('.on-page-editor') !== null"
    assert not opened.page.evaluate(inside)


def test_an_endless_loop_is_ended_and_the_page_goes_on(opened):
    opened.write(ENDLESS)
    opened.page.keyboard.press("Control+Enter")
    opened.page.evaluate("document.title")  # it answers meanwhile
    told = opened.place.locator(".on-page-result")
    expect(told).to_contain_text("Does a loop never end?", timeout=LONG)
    opened.write(ENDLESS)
    opened.check.click()
    expect(opened.said).to_have_text("Checking …", timeout=LONG)
    opened.place.get_by_role("button", name="Stop").click()
    expect(told).to_contain_text("You stopped it")
    opened.checked(RIGHT)
    assert opened.said.inner_text() == opened.passed
    assert opened.visitor.complaints == []


def test_what_was_written_is_kept_handed_out_and_taken_back(opened):
    opened.checked(RIGHT)
    with opened.page.expect_download() as download:
        opened.place.get_by_role("button", name="Download the notebook").click()
    notebook = json.loads(Path(download.value.path()).read_text("utf-8"))
    given = json.loads((ROOT / PAGE).with_suffix(".ipynb").read_text("utf-8"))
    for filled, empty in zip(notebook["cells"], given["cells"], strict=True):
        if filled["id"] == "vocabulary":
            assert "".join(filled["source"]) == RIGHT
        else:
            assert filled == empty
    again = Place(opened.visitor)
    assert again.place.get_by_text("✓ passed").is_visible()
    again.open()
    assert "numbers.setdefault" in again.editor.inner_text()
    again.place.get_by_role("button", name="Reset").click()
    assert "YOUR CODE HERE" in again.editor.inner_text()
    assert again.page.evaluate(KEPT) is None
    again.page.keyboard.press("Control+z")
    assert "numbers.setdefault" in again.editor.inner_text()
    opened.__dict__.update(again.__dict__)


def test_an_exercise_uses_the_answers_before_it(opened):
    merge = """def merge_pair(symbols, pair):
    merged = []
    for symbol in symbols:
        if merged and (merged[-1], symbol) == pair:
            merged[-1] += symbol
        else:
            merged.append(symbol)
    return tuple(merged)
"""
    encode = """def bpe_encode(text, merges, special_tokens=()):
    tokens = []
    for piece in split_words(text, special_tokens):
        symbols = (piece,) if piece in special_tokens else tuple(piece)
        for pair in merges:
            symbols = merge_pair(symbols, pair)
        tokens += symbols
    return tokens
"""
    later = Place(opened.visitor, "bpe-encode").open()
    assert "merge_pair, which is not written yet" in later.checked(encode)
    earlier = Place(opened.visitor, "merge-pair").open()
    earlier.checked(merge)
    later = Place(opened.visitor, "bpe-encode").open()
    later.checked(encode)
    assert later.said.inner_text() == later.passed


def test_another_tab_is_told_of_and_overwrites_nothing(opened):
    first = Place(opened.visitor, "encode-decode").open()
    first.write("mine = 1")
    second = opened.page.context.new_page()
    second.goto(first.page.url)
    place = second.locator(place_of("encode-decode"))
    place.locator(".on-page-main").click()
    place.get_by_role("textbox").click(timeout=LONG)
    second.keyboard.insert_text("theirs = 2  # ")
    expect(first.place).to_contain_text("Another tab has changed this answer")
    assert first.editor.inner_text().strip() == "mine = 1"
    first.place.get_by_role("button", name="Take its text").click()
    assert "theirs = 2" in first.editor.inner_text()
    second.close()


FORBIDDEN = (
    "Object.defineProperty(window, '{}', {{ get() {{"
    " throw new DOMException('denied', 'SecurityError'); }} }});"
)
STORAGE = {
    "its storage is full": "Storage.prototype.setItem = () => {"
    " throw new DOMException('full', 'QuotaExceededError'); };",
    "it does not allow that": FORBIDDEN.format("localStorage")
    + FORBIDDEN.format("sessionStorage"),
}


@pytest.mark.parametrize("why", STORAGE, ids=["full", "forbidden"])
def test_storage_that_is_missing_is_said_and_nothing_is_lost(visit, address, why):
    visitor = visit(address)
    visitor.page.add_init_script(STORAGE[why])
    shown = Place(visitor).open()
    shown.write(RIGHT)
    assert why in shown.said.inner_text()
    expect(shown.said).to_contain_text("Python is ready.", timeout=LONG)
    assert why in shown.said.inner_text()  # what is told of Python stands beside it
    shown.check.click()
    expect(shown.said).to_have_text(shown.passed, timeout=LONG)
    assert "numbers.setdefault" in shown.editor.inner_text()
    assert visitor.complaints == []


def test_without_webassembly_it_is_said(visit, address):
    visitor = visit(address)
    visitor.page.add_init_script("delete window.WebAssembly")
    shown = Place(visitor)
    shown.place.locator(".on-page-main").click()
    expect(shown.said).to_contain_text("lacks WebAssembly")


def test_it_works_from_a_disk_and_below_another_path(visit_both, tmp_path):
    (tmp_path / "course").symlink_to(SITE)
    with served(tmp_path) as address:
        for base in (SITE.as_uri() + "/", f"{address}course/"):
            shown = Place(visit_both(base, browsers.PHONE)).open()
            assert "alphabetical" in shown.checked(WRONG)
            assert shown.visitor.complaints == []
            width = shown.page.evaluate("document.documentElement.scrollWidth")
            assert width <= browsers.PHONE["width"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_at_an_editor_with_a_verdict(visit, address, theme):
    package = pytest.importorskip("axe_playwright_python")
    axe = Path(package.__file__).with_name("axe.min.js").read_text("utf-8")
    shown = Place(visit(address, theme=theme)).open()
    shown.checked(WRONG)
    shown.page.evaluate(axe)
    found = shown.page.evaluate(
        """async () => (await axe.run(".on-page")).violations.map(
          ({ id, nodes }) => `${id}: ${nodes[0].html}`)"""
    )
    assert found == []
