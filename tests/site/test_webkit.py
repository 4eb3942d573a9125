"""The site's key pages in WebKit, where it can be had: drawn, computed, checked."""

import pytest

from tests import webkit
from tests.conftest import ROOT
from tests.site.test_exercises_in_page import RIGHT, WRONG, place_of
from tests.site.test_look_inside import SENTENCE

pytestmark = pytest.mark.browser
if webkit.find() is None:
    pytest.skip(
        "WebKit is missing: apt-get install webkit2gtk-driver xvfb",
        allow_module_level=True,
    )

PAGES = (
    "book/index.html",
    "book/introduction.html",
    "book/look_inside.html",
    "book/04_attention.html",
    "book/09_translator.html",
    "exercises/01_embeddings/01_embeddings.html",
)
# Figures that were not drawn, formulas that take no place, and how wide the page is
FAULTS = """const undrawn = [...document.querySelectorAll("figure[data-figure]")]
    .filter(({ dataset }) => dataset.state !== "ready").map(({ id }) => id);
  const unset = [...document.querySelectorAll("article math")].filter((each) =>
    each.checkVisibility() && !each.getBoundingClientRect().width).length;
  return [undrawn, unset, document.documentElement.scrollWidth > innerWidth];"""
FIGURE = "document.querySelector('figure[data-figure=look_inside]').figure.numbers()"
WRITE = """const [place, text] = arguments;
  const editor = document.querySelector(`${place} [role=textbox]`);
  editor.focus();
  document.execCommand("selectAll");
  document.execCommand("insertText", false, text);
  [...document.querySelectorAll(`${place} button`)]
    .find((each) => each.textContent === "Check").click();"""
PLACE = place_of("vocabulary")


@pytest.fixture
def window():
    """A window of the test's own."""
    with webkit.opened() as found:
        yield found


@pytest.mark.parametrize("width", [500, 1280])  # its window is no narrower than 447
@pytest.mark.parametrize("page", PAGES)
def test_page_is_drawn(window, address, page, width):
    window.open(address + page, width)
    window.wait("document.readyState === 'complete'")
    window.run('dispatchEvent(new Event("beforeprint"));')
    window.wait("!document.querySelector('figure[data-figure]:not([data-state])')")
    assert window.run(FAULTS) == [[], 0, False]


def test_page_is_drawn_from_a_disk(window):
    window.open((ROOT / "_build/html/book/04_attention.html").as_uri())
    window.run('dispatchEvent(new Event("beforeprint"));')
    assert window.run(FAULTS) == [[], 0, False]


def test_a_trained_model_computes(window, address):
    window.open(address + "book/look_inside.html")
    window.run("document.querySelector('#figure-look_inside').scrollIntoView()")
    window.wait("document.querySelector('#figure-look_inside').dataset.state")
    window.run("document.querySelector('.inside-offer button').click()")
    window.wait(f"{FIGURE}.loaded")
    found = window.run(f"return {FIGURE};")
    assert (found["text"], found["output"]) == (
        SENTENCE,
        "Anna hilft der klugen Königin.",
    )


def test_an_exercise_is_checked(window, address):
    window.open(address + PAGES[-1])
    window.run(f'document.querySelector("{PLACE} .on-page-main").click()')
    window.wait(f'document.querySelector("{PLACE} [role=textbox]") !== null')
    said = f'document.querySelector("{PLACE}").innerText'
    window.run(WRITE, PLACE, WRONG)
    window.wait(f"{said}.includes('tokens in alphabetical order')")
    window.run(WRITE, PLACE, RIGHT)
    window.wait(f"{said}.includes(': passed.')")
