"""The moving figures of chapter 11: tiles, a head that copies, the logit lens."""

import math

import pytest
import torch
from torch.nn import functional

from tests import browsers
from tests.figures import near
from tools.site.figure_data import logit_lens
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


def test_a_step_passes_over_hidden_keys(figure):
    page = figure("attention_tiles").page
    scores = torch.tensor([-math.inf, -math.inf, -math.inf, 1000.0, 999.5, 2.0])
    values = torch.arange(12.0).reshape(6, 2)
    kept = {"maximum": -math.inf, "total": 0, "output": [0, 0]}
    for first in (0, 2, 4):
        tile = scores[first : first + 2].tolist(), values[first : first + 2].tolist()
        kept = page.evaluate(
            "([kept, ...tile]) => Mathematics.onlineStep(kept, ...tile)", [kept, *tile]
        )
        if not first:
            assert kept["maximum"] == -math.inf and kept["total"] == 0
    near(torch.tensor(kept["output"]) / kept["total"], scores.softmax(0) @ values)


# --- a head that copies ---------------------------------------------------------------


def copies(numbers: dict) -> None:
    """Compare both heads with PyTorch's products, and their score by its definition."""
    tokens, sharp = numbers["tokens"], numbers["sharp"]
    ids = torch.tensor([numbers["vocabulary"].index(token) for token in tokens])
    own = functional.one_hot(ids).double()
    places = torch.eye(len(tokens), dtype=torch.float64)
    mask = causal_mask(len(tokens))

    def attend(q, k):
        weights = (sharp * q @ k.T).masked_fill(~mask, -torch.inf).softmax(-1)
        return weights, weights @ own

    back = torch.cat((torch.zeros_like(places[:1]), places[:-1]))
    first, noted = attend(back, places)
    second, expected = attend(own, noted if numbers["told"] else own)
    near(numbers["first"], first)
    near(numbers["second"], second)
    row = expected[numbers["position"]]
    assert [value for _, value in numbers["expected"]] == pytest.approx(
        row.sort(descending=True).values[:4].tolist(), abs=1e-4
    )
    for token, value in numbers["expected"]:
        near(value, row[numbers["vocabulary"].index(token)])

    looked_for = [
        second[i, max(j for j in range(i) if tokens[j] == tokens[i]) + 1]
        for i in range(len(tokens))
        if tokens[i] in tokens[:i]
    ]
    if looked_for:
        near(numbers["score"], torch.stack(looked_for).mean())
    else:
        assert numbers["score"] is None


def test_induction_copies_what_followed_and_only_with_layer_1(figure):
    shown = figure("induction")
    said = shown.page.locator(".induction-said")
    for position in range(7, 13):
        shown.slide("Position", position)
        numbers = shown.numbers()
        copies(numbers)
        following = (numbers["tokens"] + ["K"])[position + 1]
        assert numbers["expected"][0][0] == following
    assert numbers["score"] > 0.95
    assert "There the text ends" in said.inner_text()
    shown.slide("Position", 3)
    copies(shown.numbers())
    assert "nothing is copied" in said.inner_text()
    choose(shown, "Layer 1", "left out")
    shown.slide("Position", 9)
    numbers = shown.numbers()
    copies(numbers)
    assert numbers["expected"][0][0] == "Q" and numbers["score"] < 0.01


def test_induction_follows_keys_through_its_steps(figure):
    shown = figure("induction")
    said = shown.page.locator(".induction-said")
    shown.press(shown.page.get_by_label("Step"), "Home")
    for step, words in enumerate(
        (
            "as position 3 did",
            "I am “b”, and before me stood “Q”",
            "It fits at position 4",
            "98 % of the weight is on position 4",
            "The text goes on with “b”: copied",
        )
    ):
        if step:
            shown.page.get_by_role("button", name="Next").click()
        assert shown.numbers()["step"] == step
        assert words in said.inner_text().replace("\xa0", " ")
    shown.press(shown.page.get_by_label("Sharpness"), "Home")
    copies(shown.numbers())
    assert "nothing is copied" in said.inner_text()


def test_induction_reads_any_text_by_touch(figure):
    shown = figure("induction", browsers.PHONE, has_touch=True)
    shown.page.get_by_role("radio", name="abracadabra", exact=True).tap()
    copies(shown.numbers())
    shown.page.get_by_role("radio", name="your own", exact=True).tap()
    own = shown.page.get_by_label("Your text")
    for text, read in (
        ("aa aa", "aaaa"),
        ("xyz", "xyz"),
        ("🙂é🙂", "🙂é🙂"),
        ("", "?"),
        ("ab" * 20, "ab" * 6),
    ):
        own.fill(text)
        numbers = shown.numbers()
        assert "".join(numbers["tokens"][1:]) == read
        assert numbers["position"] < len(numbers["tokens"])
        copies(numbers)
    layer_2 = shown.page.locator(".induction-maps svg").last
    layer_2.scroll_into_view_if_needed()
    side = layer_2.bounding_box()["height"]
    layer_2.tap(position={"x": 5, "y": side * 5.5 / 13})
    assert shown.numbers()["position"] == 5
    copies(shown.numbers())
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert shown.visitor.complaints == []


# --- the logit lens -------------------------------------------------------------------


@torch.no_grad()
def said_by_layers(model, ids) -> torch.Tensor:
    """Read each state of the stream by PyTorch's functions, (layers + 1, T, V)."""
    states = [functional.embedding(ids, model.embedding.weight)[None]]
    states[0] = states[0] * math.sqrt(states[0].shape[-1])
    for block in model.blocks:
        states.append(block(states[-1]))  # it rotates and attends by itself
    normed = functional.rms_norm(
        torch.cat(states), states[0].shape[-1:], model.norm.gamma, 1e-5
    )
    return (normed @ model.embedding.weight.T).softmax(-1)


def test_lens_shows_what_each_block_would_say(figure):
    shown = figure("logit_lens")
    model, tokenizer, ids, start = logit_lens.load()
    assert shown.numbers()["place"] == start
    expected = said_by_layers(model, ids)
    for place in (start, 0, len(ids) - 1):
        shown.slide("Token that was read last", place)
        numbers = shown.numbers()
        assert numbers["place"] == place and len(numbers["said"]) == len(expected)
        for row, layer in zip(numbers["said"], expected[:, place], strict=True):
            best = layer.topk(len(row))
            near([value for _, value in row], best.values)
            assert row[0][0] == (tokenizer.decode([best.indices[0]]).strip() or "⏎")
        if place < len(ids) - 1:
            near(numbers["follows"], expected[:, place, ids[place + 1]])


def test_lens_follows_keys_and_touch(figure):
    shown = figure("logit_lens", browsers.PHONE, has_touch=True)
    begun = shown.numbers()["place"]
    token = shown.page.locator(".lens-story [aria-pressed=true]")
    shown.press(token, "ArrowLeft", 2)
    assert shown.numbers()["place"] == begun - 2
    shown.page.locator(".lens-story button").nth(7).tap()
    choose(shown, "Show where it looks: block", "1")
    numbers = shown.numbers()
    assert (numbers["place"], numbers["block"]) == (7, 1)
    assert all(place <= 7 for place, _ in numbers["looks"])
    assert "block 1" in shown.page.locator(".figure-summary").inner_text()
