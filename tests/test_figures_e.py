"""The moving figures of chapter 11: attention in tiles."""

import math

import pytest
import torch
from torch.nn import functional

from tests import browsers
from tests.figures import near
from transformer.attention import causal_mask

pytestmark = pytest.mark.browser
T = 16


# --- attention in tiles ---------------------------------------------------------------


def choose(shown, group: str, name: str) -> None:
    """Choose one of a few."""
    few = shown.page.get_by_role("group", name=group)
    few.get_by_role("radio", name=name, exact=True).check()


def follows(numbers: dict) -> None:
    """Compare what a query keeps, and all outputs, with PyTorch's attention at once."""
    q, k, v = (torch.tensor(numbers[name], dtype=torch.float64) for name in "qkv")
    mask = causal_mask(T) if numbers["causal"] else torch.ones(T, T, dtype=torch.bool)
    whole = functional.scaled_dot_product_attention(q * numbers["times"], k, v, mask)
    near(numbers["ends"], whole[:, 0])
    near(numbers["atOnce"], whole[numbers["query"], 0])

    scores = numbers["times"] * q @ k.T / math.sqrt(2)
    scores = scores.masked_fill(~mask, -torch.inf)[numbers["query"]]
    end = numbers["step"] * numbers["block"]
    seen, before = scores[:end], scores[: end - numbers["block"]]
    for column, part in ((0, before), (3, seen)):
        m = part.max() if len(part) else torch.tensor(-torch.inf)
        powers = (part - m).exp()
        kept = m, powers.sum(), powers @ v[: len(part), 0]
        near([numbers["ledger"][name][column] for name in "mlo"], torch.stack(kept))
    if len(before):
        near(numbers["factor"], (before.max() - seen.max()).exp())
    running = seen.softmax(0) @ v[:end, 0]
    near(numbers["ways"]["running"][2], running)
    near(numbers["outputs"][numbers["query"]], running)


def test_tiles_end_at_the_softmax_of_the_whole_row(figure):
    shown = figure("attention_tiles")
    follows(shown.numbers())
    assert shown.numbers()["ledger"]["m"][3] > shown.numbers()["ledger"]["m"][0]
    for block in ("1", "2", "8", "4"):
        choose(shown, "Size of a tile", block)
        shown.press(shown.page.get_by_label("Tiles met"), "End")
        numbers = shown.numbers()
        assert numbers["step"] == numbers["tiles"] == T / int(block)
        follows(numbers)
        near(numbers["ways"]["running"][2], numbers["atOnce"])
        near(numbers["ways"]["plain"][2], numbers["atOnce"])
        assert "equals the softmax" in shown.page.locator(".tiles-said").inner_text()
    shown.page.get_by_role("button", name="Back").click()
    follows(shown.numbers())
    shown.press(shown.page.get_by_label("Tiles met"), "Home")
    numbers = shown.numbers()
    assert numbers["ledger"]["m"][3] == -math.inf and numbers["ledger"]["l"][3] == 0


def test_tiles_without_the_maximum_overflow_and_vanish(figure):
    shown = figure("attention_tiles")
    choose(shown, "Scores times", "10\u202f000")
    numbers = shown.numbers()
    follows(numbers)
    assert numbers["ways"]["plain"][0] == math.inf
    assert math.isnan(numbers["ways"]["plain"][2])
    assert "∞ / ∞ is NaN" in shown.page.locator("figure").inner_text()
    choose(shown, "Size of a tile", "1")
    shown.slide("Query", 4)
    shown.slide("Tiles met", 1)
    numbers = shown.numbers()
    follows(numbers)
    assert numbers["ways"]["plain"][0] == 0
    assert math.isnan(numbers["ways"]["plain"][2])
    assert "0 / 0 is NaN" in shown.page.locator("figure").inner_text()


def test_tiles_in_the_future_of_all_queries_are_skipped(figure):
    shown = figure("attention_tiles")
    shown.page.get_by_label("causal").check()
    notes = shown.page.locator(".tiles-note").first
    for together, query, tiles, scores in (
        ("one", 5, 2, 4),
        ("a tile", 5, 2, 16),
        ("a tile", 12, 4, 16),
        ("all 16", 5, 4, 64),
    ):
        choose(shown, "Queries at once", together)
        shown.slide("Query", query)
        shown.press(shown.page.get_by_label("Tiles met"), "End")
        numbers = shown.numbers()
        assert numbers["step"] == numbers["tiles"] == tiles
        follows(numbers)
        asked = [not math.isnan(value) for value in numbers["outputs"]]
        near(
            torch.tensor(numbers["outputs"])[asked],
            torch.tensor(numbers["ends"])[asked],
        )
        assert sum(asked) * numbers["block"] == scores
        assert numbers["counts"]["scores"][0] == scores
        assert numbers["counts"]["pairs"][0] == T * T
        assert ("are skipped" in notes.inner_text()) == (tiles < 4)


def test_tiles_are_tapped_in_the_map(figure):
    shown = figure("attention_tiles", browsers.PHONE, has_touch=True)
    map_of_pairs = shown.page.locator("svg.figure-drawing")
    map_of_pairs.scroll_into_view_if_needed()
    scale = map_of_pairs.bounding_box()["width"] / 320
    at = {"x": (20 + 14 * 13.5) * scale, "y": (18 + 14 * 2.5) * scale}
    map_of_pairs.tap(position=at)
    numbers = shown.numbers()
    assert (numbers["query"], numbers["step"]) == (2, 4)
    follows(numbers)
    shown.page.get_by_role("button", name="Back").tap()
    assert shown.numbers()["step"] == 3
    follows(shown.numbers())
