"""The figures of chapters 1 to 3, moved by keyboard and by pointer, against PyTorch."""

import math
import re
from pathlib import Path

import pytest
import torch

from tests import browsers, figures
from tests.figures import near
from transformer.attention import AttentionPooling
from transformer.class_token import masked_mean
from transformer.embeddings import (
    bpe_encode,
    merge_pair,
    pair_counts,
    train_bpe,
)
from transformer.positional_encoding import (
    shift_matrix,
    sinusoidal_positional_encoding,
    wavelengths,
)

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.browser
LOW = "low lower lowest"


def radio(shown, name):
    """Find one of a few choices."""
    return shown.page.get_by_role("radio", name=name, exact=True)


# Byte pairs -------------------------------------------------------------------------


def check_merges(numbers, text):
    """Compare a figure's merges, words, counts and cut with the students' functions."""
    merges = train_bpe(text, numbers["step"])
    assert [tuple(pair) for pair in numbers["merges"]] == merges
    assert numbers["steps"] == len(train_bpe(text, 80))
    assert numbers["cut"] == bpe_encode(numbers["trial"], merges)
    words = {tuple(symbols): times for symbols, times in numbers["words"]}
    assert [token for word in words for token in word] == [
        token for word in words for token in bpe_encode("".join(word), merges)
    ]
    counts = pair_counts(words)
    best = sorted(counts.items(), key=lambda item: -item[1])[:6]
    assert numbers["pairs"] == [[*pair, times] for pair, times in best]
    assert numbers["vocabulary"] == sorted(set(text)) + list(map("".join, merges))


def test_byte_pairs_merges_by_keyboard_and_by_pointer(figure_both):
    shown = figure_both("byte_pairs")
    check_merges(shown.numbers(), LOW)
    shown.press(shown.page.get_by_label("Merges"), "ArrowRight", 2)
    assert shown.numbers()["step"] == 3
    check_merges(shown.numbers(), LOW)
    shown.page.get_by_role("button", name="Next").click()
    check_merges(shown.numbers(), LOW)
    shown.press(shown.page.get_by_label("Merges"), "End")
    check_merges(shown.numbers(), LOW)
    assert "no pair is left" in shown.page.locator(".figure-summary").inner_text()


def test_byte_pairs_garden_is_the_pages(figure):
    page = (ROOT / "book" / "01_embeddings.md").read_text("utf-8")
    garden = re.search(r'GARDEN = """(.*?)"""', page, re.DOTALL)[1]
    shown = figure("byte_pairs")
    radio(shown, "the garden").click()
    check_merges(shown.numbers(), garden)
    shown.press(shown.page.get_by_label("Merges"), "End")
    numbers = shown.numbers()
    check_merges(numbers, garden)
    assert numbers["cut"] == ["Bobby", " likes", " black", "berries", "."]


@pytest.mark.parametrize(
    "text",
    [
        "Peter Piper!  aaaa aaa\n\n wo_rd 12½ ²x, don't … ",
        "Στον Μπόμπι αρέσουν τα βατόμουρα. ბობის მოსწონს მაყვალი. 日本語 日本",
        "e\u0301te\u0301 \u00e9t\u00e9 🙂🙂 👩‍🌾\u00a0\u2003x\ty \ufeff",
    ],
)
def test_byte_pairs_reads_any_text_as_python_does(figure, text):
    shown = figure("byte_pairs")
    radio(shown, "your own").click()
    shown.page.get_by_label("Your text").fill(text)
    shown.page.get_by_label("Cut a word or a sentence").fill(text.replace("\n", " "))
    for step in ("End", "Home"):
        shown.press(shown.page.get_by_label("Merges"), step)
        check_merges(shown.numbers(), text)


def test_byte_pairs_says_what_it_cannot_do(figure):
    shown = figure("byte_pairs", browsers.PHONE)
    trial = shown.page.get_by_label("Cut a word or a sentence")
    trial.fill("slow glow")
    assert "Not in the vocabulary: g" in shown.page.locator("figure").inner_text()
    assert shown.page.locator(".bpe-unknown").inner_text() == "g"
    trial.fill("x" * 10_000)
    assert len(shown.numbers()["cut"]) == 120
    assert "first 120 of 10000" in shown.page.locator("figure").inner_text()
    trial.fill("")
    assert "Type something" in shown.page.locator("figure").inner_text()
    radio(shown, "your own").click()
    shown.page.get_by_label("Your text").fill("")
    assert shown.numbers()["merges"] == shown.numbers()["pairs"] == []
    assert "the text is empty" in shown.page.locator("figure").inner_text()
    shown.page.get_by_label("Your text").fill("lower " * 2_000)
    assert "first 600 of 12000" in shown.page.locator("figure").inner_text()
    check_merges(shown.numbers(), ("lower " * 2_000)[:600])
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert shown.visitor.complaints == []


def test_byte_pairs_across_words_is_what_the_page_warns_of(figure):
    shown = figure("byte_pairs", browsers.PHONE)
    radio(shown, "the cat").click()
    shown.page.get_by_label("A slip: merge across words, too").check()
    shown.slide("Merges", 8)
    words = {tuple("the cat sat on the mat the cat ate the cat slept"): 1}
    merges = []
    for _ in range(8):
        counts = pair_counts(words)
        merges.append(max(counts, key=counts.get))
        words = {merge_pair(word, merges[-1]): 1 for word in words}
    numbers = shown.numbers()
    assert [tuple(pair) for pair in numbers["merges"]] == merges
    assert "the cat " in map("".join, merges)
    assert numbers["words"] == [[list(word), 1] for word in words]
    shown.press(shown.page.get_by_label("Merges"), "End")
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 360


# Pooling ----------------------------------------------------------------------------


def check_pooling(numbers):
    """Compare all readouts with the students' modules, with the mask and without."""
    rows = numbers["tokens"] + [numbers["padding"]] * numbers["count"]
    hidden = torch.tensor([rows], dtype=torch.float32)  # (1, T, 2)
    real = torch.arange(len(rows))[None, None] < 3  # (1, 1, T)
    attention = AttentionPooling(2)
    attention.query.data = torch.tensor(numbers["query"], dtype=torch.float32)
    for column, mask in enumerate((real, torch.ones_like(real))):
        near(numbers["results"]["mean"][column], masked_mean(hidden, mask)[0])
        near(numbers["results"]["token"][column], attention(hidden, mask)[0][0])
        largest = hidden.masked_fill(~mask.mT, -math.inf).amax(1)
        near(numbers["results"]["max"][column], largest[0])
    mask = real if numbers["masked"] else torch.ones_like(real)
    weights = mask[0, 0] / mask.sum()
    if numbers["readout"] == "token":
        weights = attention(hidden, mask)[1][0].detach()
    if numbers["readout"] != "max":
        near(numbers["weights"], [*weights[:3].tolist(), float(weights[3:].sum())])


def test_pooling_begins_with_the_pages_example(figure):
    numbers = figure("pooling").numbers()
    assert numbers["results"]["mean"] == [[2, 2], [3, 4]]
    assert numbers["masked"]
    check_pooling(numbers)


def test_pooling_by_keyboard(figure):
    shown = figure("pooling")
    shown.press(shown.page.get_by_label("Padding", exact=True), "ArrowRight", 3)
    shown.press(shown.page.get_by_label("Token Bobby"), "ArrowUp", 4)
    shown.press(radio(shown, "mean"), "ArrowLeft")
    shown.press(shown.page.get_by_label("Query of the class token"), "Shift+ArrowDown")
    numbers = shown.numbers()
    assert (numbers["count"], numbers["readout"]) == (4, "token")
    near(numbers["tokens"][0], [1, 2.4])
    near(numbers["query"], [1, -1])
    check_pooling(numbers)
    shown.press(shown.page.get_by_label("Mask"), "Space")
    assert not shown.numbers()["masked"]
    check_pooling(shown.numbers())


def test_pooling_by_pointer(figure):
    shown = figure("pooling")
    before = shown.numbers()
    shown.drag(shown.page.get_by_label("Token likes"), -40, 30)
    shown.drag(shown.page.get_by_label("Vector of the padding"), -60, 80)
    numbers = shown.numbers()
    assert numbers["tokens"][1][0] < before["tokens"][1][0]
    assert numbers["padding"][1] < before["padding"][1]
    check_pooling(numbers)
    radio(shown, "zeros").click()
    radio(shown, "max").click()
    numbers = shown.numbers()
    assert numbers["padding"] == [0, 0] and numbers["readout"] == "max"
    check_pooling(numbers)


def test_query_at_the_origin_is_the_mean(figure):
    shown = figure("pooling")
    radio(shown, "class token").click()
    query = shown.page.get_by_label("Query of the class token")
    shown.press(query, "Shift+ArrowLeft")
    numbers = shown.numbers()
    near(numbers["query"], [0, 0])
    near(numbers["results"]["token"], numbers["results"]["mean"])


def test_pooling_by_touch(figure):
    shown = figure("pooling", browsers.PHONE, has_touch=True)
    radio(shown, "class token").tap()
    shown.page.get_by_label("Mask").tap()
    numbers = shown.numbers()
    assert not numbers["masked"] and numbers["weights"][3] > 0
    check_pooling(numbers)


# Positions --------------------------------------------------------------------------


def pairs(angles):
    """Give sines in even columns and cosines in odd ones."""
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)


def slips(base, d, length=64):
    """Give the matrices of formulas with a slip, as the book's mistakes write them."""
    p = torch.arange(length, dtype=torch.float64)[:, None]
    even = torch.arange(0, d, 2, dtype=torch.float64) / d
    column = torch.arange(1, d + 1)
    single = (p + 1) / base ** (column / d)
    shifted = p / base ** (2 * (column // 2) / d)
    return {
        "exponent over p, too": pairs((p / base) ** even),
        "base 1000": pairs(p / 1000**even),
        "cosine first, no pairs": torch.where(
            column % 2 == 1, single.cos(), single.sin()
        ),
        "columns from 1": torch.where(column % 2 == 0, shifted.sin(), shifted.cos()),
    }


def check_positions(numbers, slip):
    """Compare both matrices, and what is read off them, with PyTorch."""
    base, d, k = (numbers[name] for name in ("base", "d", "k"))
    expected = [sinusoidal_positional_encoding(64, d, base), slips(base, d)[slip]]
    for i, table in enumerate(expected):
        near(numbers["tables"][i], table)
        products = (table[: 64 - k] * table[k:]).sum(1)
        squares = table.square().sum(1)
        near(numbers["products"][i], [products.min(), products.max()])
        near(numbers["lengths"][i], [squares.min(), squares.max()])
        near(numbers["steps"][i], (table[2:] - table[1:-1]).norm(dim=1).min())


@pytest.mark.parametrize("slip", slips(10, 4))
def test_positions_beside_each_slip(figure, slip):
    shown = figure("positions")
    radio(shown, slip).click()
    check_positions(shown.numbers(), slip)
    shown.slide("Width d", 6)
    shown.slide("Base", 1)
    shown.slide("Offset k", 9)
    numbers = shown.numbers()
    assert (numbers["d"], numbers["base"], numbers["k"]) == (6, 100, 9)
    check_positions(numbers, slip)


def test_positions_by_keyboard_and_by_pointer(figure):
    shown = figure("positions")
    shown.press(shown.page.get_by_label("Base", exact=True), "ArrowLeft")
    shown.press(shown.page.get_by_label("Width d"), "ArrowRight", 2)
    shown.press(shown.page.get_by_label("Hand i"), "ArrowRight", 3)
    box = shown.page.get_by_label("Offset k").bounding_box()
    shown.page.mouse.click(box["x"] + box["width"] - 9, box["y"] + box["height"] / 2)
    numbers = shown.numbers()
    assert (numbers["base"], numbers["d"], numbers["hand"]) == (1000, 20, 3)
    assert numbers["k"] == 20
    radio(shown, "exponent over p, too").press("Space")
    check_positions(shown.numbers(), "exponent over p, too")


def test_positions_begin_with_all_hands_and_without_a_slip(figure):
    shown = figure("positions")
    shown.slide("Position p", 30)
    numbers = shown.numbers()
    assert numbers["slip"] == "none"
    assert shown.page.locator("canvas:visible").count() == 1
    rows = sinusoidal_positional_encoding(64, numbers["d"])[[30, 30 + numbers["k"]]]
    near(figures.shown(shown.page, ".positions-clock span"), rows[0])
    hands = shown.page.eval_on_selector_all(
        ".positions-clock line",
        "all => all.map((each) => ['x2', 'y2'].map((name) => "
        "(each.getAttribute(name) - 32) / 26))",
    )
    clocks = torch.tensor(hands).unflatten(0, (-1, 2))  # (d/2, p or p + k, x or y)
    near(clocks[..., 0].T, rows[:, 1::2])
    near(-clocks[..., 1].T, rows[:, ::2])


def test_hands_turn_by_the_same_angle_everywhere(figure):
    shown = figure("positions")
    shown.slide("Hand i", 2)
    shown.slide("Position p", 30)
    numbers = shown.numbers()
    d, k, p = numbers["d"], numbers["k"], numbers["p"]
    table = torch.tensor(numbers["tables"][0])
    near(table[p] @ shift_matrix(k, d), table[p + k])
    turn = 2 * math.pi * k / wavelengths(d)[2]
    assert (
        f"by {turn:.2f} radians" in shown.page.locator(".figure-summary").inner_text()
    )
    hands = shown.page.eval_on_selector_all(
        "svg line[stroke-linecap]",
        "all => all.slice(0, 2).map((each) => ['x2', 'y2'].map((name) => "
        "(each.getAttribute(name) - 75) / 62))",
    )
    near([[-y, x] for x, y in hands], table[[p, p + k], 4:6])


def test_heat_map_is_painted_in_both_themes(figure):
    shown = figure("positions")
    pixel = (
        "([theme, row, column]) => { document.documentElement.dataset.theme = theme; "
        "return new Promise((done) => setTimeout(() => done([...document"
        ".querySelector('canvas').getContext('2d').getImageData(column, row, 1, 1)"
        ".data]), 50)); }"
    )
    for theme in ("light", "dark"):
        red, _, blue, _ = shown.page.evaluate(pixel, [theme, 5, 0])  # sin 5 = −0.96
        assert blue > red + 30
        red, _, blue, _ = shown.page.evaluate(pixel, [theme, 0, 1])  # cos 0 = 1
        assert red > blue + 30
