"""Attention in the plane, heads of the trained translator, the home page's glance."""

import math

import pytest
import torch

from tests import browsers
from tests.figures import TOLERANCE
from transformer.attention import (
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
)

pytestmark = pytest.mark.browser


def near(values, expected) -> None:
    """Compare what a figure shows with the reference."""
    values = torch.tensor(values, dtype=torch.float64)
    torch.testing.assert_close(values, expected.double(), atol=TOLERANCE, rtol=0)


# --- attention ------------------------------------------------------------------------


def choose(shown, name: str) -> None:
    """Choose one of a few."""
    shown.page.get_by_role("radio", name=name, exact=True).check()


def follows(numbers: dict, mask: torch.Tensor | None = None) -> None:
    """Compare scores, weights and outputs with the reference, from the vectors shown."""
    q, k, v = (torch.tensor(numbers[letter]).double() for letter in "qkv")
    root = math.sqrt(2) if numbers["scaled"] else 1
    unscaled = q if numbers["scaled"] else q * math.sqrt(2)
    output, weights = scaled_dot_product_attention(unscaled, k, v, mask)
    scores = q @ k.T
    near(numbers["scores"], scores)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    near(numbers["masked"], scores / root)
    near(numbers["weights"], weights)
    near(numbers["output"], output)


def test_attention_begins_with_the_chapters_example(figure):
    numbers = figure("attention").numbers()
    follows(numbers)
    near(numbers["q"], torch.tensor([[0.70711, 0.70711], [-0.70711, 0.70711]]))
    for name, expected in {
        "scores": [[0.3827, 0.9239], [-0.9239, 0.3827]],
        "masked": [[0.2706, 0.6533], [-0.6533, 0.2706]],
        "weights": [[0.4055, 0.5945], [0.2842, 0.7158]],
        "output": [[0.7196, -0.0068], [0.7531, 0.1614]],
    }.items():
        near(numbers[name], torch.tensor(expected))


def test_attention_follows_a_query_that_keys_and_pointer_move(figure):
    shown = figure("attention")
    query = shown.page.get_by_label("query of car")
    before = shown.numbers()
    shown.press(query, "Shift+ArrowRight", 2)
    after = shown.numbers()
    near(after["q"][1], torch.tensor([before["q"][1][0] + 1, before["q"][1][1]]))
    follows(after)
    shown.drag(query, 30, 200)
    dragged = shown.numbers()
    assert dragged["q"][1][0] > after["q"][1][0]
    assert dragged["q"][1][1] < after["q"][1][1] - 1
    follows(dragged)
    assert dragged["weights"][1][0] > 0.6
    assert "Reached" in shown.page.locator(".figure-summary").inner_text()


def test_attention_follows_key_value_scale_and_masks(figure):
    shown = figure("attention")
    shown.drag(shown.page.get_by_label("key of blue"), -60, -90)
    shown.press(shown.page.get_by_label("value of car"), "ArrowUp", 5)
    choose(shown, "3")
    shown.press(shown.page.get_by_label("value of drives"), "ArrowDown", 7)
    shown.drag(shown.page.get_by_label("key of drives"), 40, 12)
    shown.page.get_by_label("divide scores").uncheck()
    follows(shown.numbers())
    choose(shown, "causal")
    numbers = shown.numbers()
    follows(numbers, causal_mask(3))
    assert numbers["masked"][0][1] == -math.inf and numbers["weights"][0] == [1, 0, 0]
    choose(shown, "padding")
    follows(shown.numbers(), padding_mask(torch.tensor([2]), 3)[0])
    assert shown.visitor.complaints == []


def test_attention_thickens_the_keys_of_who_asks(figure):
    shown = figure("attention")
    widths = "all => all.map((line) => Number(line.getAttribute('stroke-width')))"
    for row, name in enumerate(["blue", "car"]):
        choose(shown, name)
        weights = torch.tensor(shown.numbers()["weights"][row])
        lines = shown.page.eval_on_selector_all("svg:first-of-type > line", widths)
        near([width - 1.5 for width in lines[2:4]], 7 * weights)


def test_attention_point_stays_in_the_plane_under_a_finger(figure):
    shown = figure("attention", browsers.PHONE, has_touch=True)
    point = shown.page.get_by_label("value of blue")
    point.scroll_into_view_if_needed()
    box = point.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    client = shown.page.context.new_cdp_session(shown.page)
    for kind, points in [
        ("touchStart", [{"x": x, "y": y}]),
        ("touchMove", [{"x": x - 50, "y": y + 150}]),
        ("touchMove", [{"x": x - 60, "y": y + 290}]),
        ("touchEnd", []),
    ]:
        client.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    numbers = shown.numbers()
    assert numbers["v"][0][1] == pytest.approx(-1.6)
    assert numbers["v"][0][0] < 0.2
    follows(numbers)
