"""The figures that move: what all of them promise, and the mathematics they share."""

import json

import pytest
import torch
from torch.nn import functional

from tests import browsers
from tests.figures import TOLERANCE, near
from tools.site import figure_pictures as pictures
from transformer.positional_encoding import sinusoidal_positional_encoding

NAMES = pictures.moving_figures.names()
pytestmark = pytest.mark.browser


@pytest.mark.parametrize("name", NAMES)
def test_figure_is_drawn_on_a_phone_and_does_not_widen_it(figure, name):
    page = figure(name, browsers.PHONE).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.mark.parametrize("name", NAMES)
def test_figure_without_scripts_is_a_picture(browser, tmp_path, name):
    page = browser.new_page(java_script_enabled=False)
    page.goto(pictures.preview(name, tmp_path).as_uri())
    picture = page.locator("figure img")
    picture.scroll_into_view_if_needed()
    assert picture.get_attribute("alt")
    assert (
        picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 0
    )
    page.close()


@pytest.mark.parametrize("name", NAMES)
def test_picture_and_height_are_known(name):
    sizes = json.loads(pictures.moving_figures.SIZES.read_text())
    assert sizes[name]["wide"] > 0
    assert (pictures.STATIC / "figures" / "pictures" / f"{name}.png").is_file()


@pytest.fixture(scope="module")
def compute(figure):
    """Call a function of mathematics.js."""
    page = figure("softmax").page

    def call(name, *arguments):
        values = page.evaluate(
            f"(given) => Mathematics.{name}(...given)", list(arguments)
        )
        return torch.tensor(values, dtype=torch.float64)

    return call


def test_softmax_is_pytorchs(compute):
    scores = torch.tensor([3.0, -1.0, 1000.0, 999.5, -50.0])
    near(compute("softmax", scores.tolist()), scores.softmax(0))


def test_layer_norm_is_pytorchs(compute):
    vector = torch.randn(16, generator=torch.Generator().manual_seed(0)) * 5 + 2
    near(compute("layerNorm", vector.tolist()), functional.layer_norm(vector, (16,)))


def test_product_is_pytorchs(compute):
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(n, m, generator=generator) for n, m in ((3, 5), (5, 2)))
    near(compute("multiply", a.tolist(), b.tolist()), a @ b)


@pytest.mark.parametrize("position", [0, 1, 77])
def test_positions_are_the_students(compute, position):
    expected = sinusoidal_positional_encoding(78, 12)[position]
    near(compute("sinusoidal", position, 12), expected)


def test_softmax_figure_follows_keyboard_and_slider(figure):
    shown = figure("softmax")
    before = shown.numbers()
    shown.press(shown.page.get_by_label("Score 3"), "ArrowRight", 5)
    shown.slide("All scores times", 2.5)
    after = shown.numbers()
    assert after["scores"][2] == pytest.approx(before["scores"][2] + 0.5)
    expected = (torch.tensor(after["scores"]) * 2.5).softmax(0)
    assert after["weights"] == pytest.approx(expected.tolist(), abs=TOLERANCE)
