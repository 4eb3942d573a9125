"""Attention in the plane, heads of the trained translator, the home page's glance."""

import functools
import math

import pytest
import torch

from tests import browsers
from tests.figures import near
from transformer.attention import (
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
)
from workbench.data.tokenizer import TOKENIZER_FILE, Tokenizer
from workbench.model import models
from workbench.use import results
from workbench.use.translator import Translator

pytestmark = pytest.mark.browser


# --- attention ------------------------------------------------------------------------


def choose(shown, name: str) -> None:
    """Choose one of a few."""
    shown.page.get_by_role("radio", name=name, exact=True).check()


def follows(numbers: dict, mask: torch.Tensor | None = None) -> None:
    """Compare what is shown with the reference, from the vectors shown."""
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


# --- heads and glance: the trained translator -----------------------------------------


@functools.cache
def translated(
    english: str, instead_of: str = ""
) -> tuple[list[str], list[str], dict, list[float]]:
    """Translate with the kept model; give tokens, weights (layers, heads, …), odds.

    With `instead_of`, that sentence's translation is what is written. The weights are
    computed layer by layer, from what each layer is given.
    """
    folder = results.model_folder("phrasebook")
    model, config = models.load(folder)
    tokenizer = Tokenizer.load(folder / TOKENIZER_FILE)
    parts, cpu = models.load_parts(), torch.device("cpu")
    translator = Translator(model, config, tokenizer, parts, cpu)
    (german,) = translator.translate([instead_of or english])
    source, target = tokenizer.encode(english), tokenizer.encode(german)
    found = {"encoder": [], "decoder": [], "cross": []}
    with torch.no_grad():
        x = model.position(model.embedding(torch.tensor([source])))
        for layer in model.encoder.layers:
            found["encoder"].append(layer.attention(layer.norm_1(x))[1][0])
            x = layer(x)
        memory = model.encoder.norm(x)
        read = torch.tensor([[Tokenizer.SOS, *target]])
        x, mask = model.position(model.embedding(read)), causal_mask(len(target) + 1)
        for layer in model.decoder.layers:
            attended, weights = layer.self_attention(layer.norm_1(x), mask=mask)
            found["decoder"].append(weights[0])
            asked = layer.norm_2(x + attended)
            found["cross"].append(layer.cross_attention(asked, memory)[1][0])
            x = layer(x, memory, mask)
        logits = model.decoder.norm(x)[0] @ model.embedding.weight.T
    odds = logits.softmax(-1)[range(len(target)), target].tolist()
    names = [[tokenizer.decode([i]).strip() for i in ids] for ids in (source, target)]
    stacked = {kind: torch.stack(weights) for kind, weights in found.items()}
    return names[0], names[1], stacked, odds


def looks_as_the_model(numbers: dict, english: str) -> None:
    """Compare a row of a head with the model's."""
    source, written, weights, _ = translated(english)
    expected = weights[numbers["kind"]][numbers["layer"], numbers["head"]]
    near(numbers["weights"], expected[numbers["row"]])
    read = ["<sos>", *written]
    assert numbers["asked"] == (read if numbers["kind"] == "decoder" else source)
    asking = {"encoder": source, "decoder": read, "cross": [*written, "<eos>"]}
    assert numbers["asking"] == asking[numbers["kind"]]


def test_heads_follow_sentence_kind_head_and_word(figure):
    shown = figure("heads")
    page = shown.page
    numbers = shown.numbers()
    looks_as_the_model(numbers, "Anna helps the clever queen.")
    assert numbers["weights"][4] > 0.9
    shown.press(page.get_by_role("radio", name="layer 2, head 2"), "ArrowLeft", 3)
    shown.press(page.get_by_role("radio", name="the", exact=True), "ArrowDown", 2)
    numbers = shown.numbers()
    assert (numbers["layer"], numbers["head"], numbers["row"]) == (0, 2, 4)
    looks_as_the_model(numbers, "Anna helps the clever queen.")

    english = "I know that Anna sees the old king."
    page.get_by_label("Sentence").select_option(label=english)
    choose(shown, "from decoder to encoder")
    page.get_by_role("radio", name="layer 2, head 4").check()
    page.get_by_role("radio", name="sieht", exact=True).check()
    numbers = shown.numbers()
    looks_as_the_model(numbers, english)
    assert "“sieht”" in page.locator(".figure-summary").last.inner_text()
    choose(shown, "decoder")
    looks_as_the_model(shown.numbers(), english)
    assert set(shown.numbers()["weights"][numbers["row"] + 1 :]) == {0}


def test_heads_look_where_the_mouse_is_and_return(figure):
    shown = figure("heads")
    before = shown.numbers()
    shown.page.locator(".heads-column label").nth(3).hover()
    during = shown.numbers()
    assert during["row"] == 3 != before["row"]
    looks_as_the_model(during, "Anna helps the clever queen.")
    shown.page.mouse.move(2, 2)
    assert shown.numbers() == before


def glances_as_the_model(numbers: dict) -> None:
    """Compare both rows of shares with the means over the last layers' heads."""
    english = f"Anna {numbers['verb']} the clever {numbers['noun']}."
    source, written, weights, odds = translated(english)
    assert (numbers["source"], numbers["written"]) == (source, written)
    looks = weights["cross"][-1].mean(0)[numbers["chosen"]]
    reads = weights["encoder"][-1].mean(0)[looks.argmax()]
    near(numbers["looks"], looks)
    near(numbers["reads"], reads)
    near([numbers["sure"]], torch.tensor([odds[numbers["chosen"]]]))
    for verb, sure in numbers["instead"].items():
        other = english.replace(numbers["verb"], verb)
        near([sure], torch.tensor([translated(other, english)[3][numbers["chosen"]]]))
    assert numbers["lines"] == int((looks >= 0.05).sum() + (reads >= 0.05).sum())


def test_glance_changes_the_article_with_verb_and_noun(figure_both):
    shown = figure_both("glance")
    articles = set()
    for verb in ("sees", "helps"):
        for noun in ("king", "queen", "girl"):
            shown.page.get_by_label("The verb").select_option(verb)
            shown.page.get_by_label("The noun").select_option(noun)
            numbers = shown.numbers()
            glances_as_the_model(numbers)
            articles.add(numbers["written"][2])
    assert articles == {"den", "die", "das", "dem", "der"}
    assert shown.visitor.complaints == []


def test_glance_writes_by_keyboard_pointer_and_finger(figure):
    shown = figure("glance", browsers.PHONE, has_touch=True)
    shown.press(shown.page.get_by_label("The verb"), "i")
    assert shown.numbers()["verb"] == "invites"
    shown.press(shown.page.get_by_role("radio", name="die", exact=True), "ArrowRight")
    assert shown.numbers()["chosen"] == 3
    glances_as_the_model(shown.numbers())
    shown.page.get_by_role("radio", name="ein", exact=True).tap()
    glances_as_the_model(shown.numbers())
    assert "“ein”" in shown.page.locator(".figure-summary").inner_text()
    for _ in range(2):
        shown.page.get_by_role("button", name="Next word").tap()
    assert shown.numbers()["chosen"] == 0
    glances_as_the_model(shown.numbers())
