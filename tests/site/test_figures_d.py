"""The figures translate and draw: trained models in a page, beside the reference."""

import random

import pytest
import torch

from tests import browsers
from tests.conftest import ROOT
from tests.figures import TOLERANCE, Figure
from tools.browser import served
from tools.site import live_models
from transformer.vision_transformer import attention_rollout
from workbench.data import everyday, phrasebook
from workbench.data.images import load_images
from workbench.data.tokenizer import TOKENIZER_FILE, Tokenizer
from workbench.model import models
from workbench.training import presets
from workbench.use import results
from workbench.use.translator import Translator

pytestmark = pytest.mark.browser
LONG = 120_000  # milliseconds: a loaded machine compiles the runtime slowly
DEVIATION = 1e-3  # of logits between -25 and 25, in another library's arithmetic
READ = "document.querySelector('figure[data-figure]').figure"


def wait(shown: Figure, condition: str) -> None:
    """Wait until the figure's numbers fulfil something."""
    shown.page.wait_for_function(
        f"(() => {{ const shown = {READ}.numbers(); return {condition}; }})()",
        timeout=LONG,
    )


def loaded(shown: Figure) -> Figure:
    """Press the button, and wait for the model."""
    shown.page.get_by_role("button", name="Load the model").click()
    wait(shown, "shown.loaded && !shown.busy")
    assert shown.visitor.complaints == []
    return shown


@pytest.fixture(scope="module")
def translator():
    """Give the model as the page has it, its configuration and its tokenizer."""
    folder = results.model_folder("everyday")
    model, config = models.load(folder)
    tokenizer = Tokenizer.load(folder / TOKENIZER_FILE)
    return live_models.rounded(model), config, tokenizer


@pytest.fixture(scope="module")
def live(figure):
    """Load the translator, once for all tests of this file, from a disk."""
    return loaded(figure("translate", browsers.PHONE))


def type_in(live: Figure, text: str) -> dict:
    """Type a sentence, have it translated, give what is shown."""
    live.page.get_by_label("Your sentence").fill(text)
    live.page.keyboard.press("Enter")
    wait(live, "!shown.busy")
    return live.numbers()


@torch.no_grad()
def looked(translator, source: list[int], target: list[int]) -> torch.Tensor:
    """Give the weights of the cross-attention (layers, heads, T, S)."""
    caught, model = [], translator[0]
    hooks = [
        layer.cross_attention.register_forward_hook(
            lambda _module, _given, output: caught.append(output[1][0])
        )
        for layer in model.decoder.layers
    ]
    model(torch.tensor([source]), torch.tensor([[Tokenizer.SOS, *target]]))
    for hook in hooks:
        hook.remove()
    return torch.stack(caught)


def ids(translator, pieces: list[str]) -> list[int]:
    return [translator[2].inner.token_to_id(piece) for piece in pieces]


def agrees(translator, numbers: dict, layer: int, head) -> None:
    """Compare the weights shown with the reference's."""
    source, written = (ids(translator, numbers[side]) for side in ("source", "written"))
    weights = looked(translator, source, written[:-1])[layer, :, numbers["step"]]
    expected = weights.mean(0) if head == "mean" else weights[head]
    assert numbers["weights"] == pytest.approx(expected.tolist(), abs=TOLERANCE)


# --- the translator, recorded ---------------------------------------------------------


def test_recorded_sentence_follows_pointer_and_keyboard(figure, translator):
    shown = figure("translate")
    assert not shown.numbers()["loaded"]
    shown.page.get_by_label("German tokens").get_by_role("button").nth(2).click()
    assert shown.numbers()["step"] == 2
    agrees(translator, shown.numbers(), 1, "mean")
    shown.press(shown.page.get_by_label("Token", exact=True), "ArrowRight", 2)
    assert shown.numbers()["step"] == 4
    shown.page.get_by_role("group", name="Head").get_by_label("3").check()
    agrees(translator, shown.numbers(), 1, 2)
    shown.page.get_by_role("group", name="Layer").get_by_label("1").check()
    agrees(translator, shown.numbers(), 0, 2)
    shown.page.get_by_label("Example").select_option(index=2)
    assert shown.numbers()["translation"] == (
        "Heute gibt Anna dem Kind keinen roten Apfel."
    )
    agrees(translator, shown.numbers(), 0, 2)
    assert shown.visitor.complaints == []


def test_recorded_sentence_follows_a_finger(figure):
    shown = figure("translate", browsers.PHONE, has_touch=True)
    shown.page.get_by_label("German tokens").get_by_role("button").nth(1).tap()
    assert shown.numbers()["step"] == 1


def test_without_webassembly_recorded_sentences_remain(figure, browser):
    address = figure("translate").page.url
    page = browser.new_page()
    page.add_init_script("delete window.WebAssembly")
    page.goto(address)
    said = page.locator(".live-offer").inner_text()
    assert "lacks WebAssembly" in said and "when this page was made" in said
    assert page.get_by_role("button", name="Load the model").count() == 0
    page.get_by_label("Example").select_option(index=1)
    assert page.evaluate(f"{READ}.numbers().translation").startswith("Mag der Hund")
    page.close()


def test_a_file_that_does_not_come_is_said(figure):
    shown = figure("translate")
    shown.page.route("**/everyday.js*", lambda route: route.abort())
    shown.page.get_by_role("button", name="Load the model").click()
    said = shown.page.locator(".live-offer [role=status]")
    shown.page.wait_for_function(
        "document.querySelector('.live-offer [role=status]').textContent"
        ".includes('could not be loaded')",
        timeout=LONG,
    )
    assert "everyday.js" in said.inner_text()
    assert shown.page.get_by_role("button", name="Load the model").is_enabled()


# --- the translator, live -------------------------------------------------------------


def test_held_out_sentences_are_translated_as_python_does(live, translator):
    model, config, tokenizer = translator
    known = phrasebook.often_in(everyday.draw(random.Random(0), "train", 8000))
    pairs = everyday.draw(random.Random(7), "test", 25, known)
    english = [pair[0] for pair in pairs]
    whole = Translator(
        model, config, tokenizer, models.load_parts(), torch.device("cpu")
    )
    expected = whole.translate(english)
    assert [type_in(live, text)["translation"] for text in english] == expected
    assert live.visitor.complaints == []


@pytest.mark.parametrize("figure_both", ["firefox"], indirect=True)
def test_firefox_translates_too(figure_both):
    shown = loaded(figure_both("translate"))
    numbers = type_in(shown, "Bobby likes blackberries.")
    assert numbers["translation"] == "Bobby mag Brombeeren."
    assert shown.visitor.complaints == []


def test_logits_are_those_of_the_reference(live, translator):
    model = translator[0]
    numbers = type_in(live, "I know that Bobby does not like sweet blackberries.")
    source, written = (ids(translator, numbers[side]) for side in ("source", "written"))
    with torch.no_grad():
        inputs = torch.tensor([[Tokenizer.SOS, *written[:-1]]])
        expected = model(torch.tensor([source]), inputs)[0]
    found = live.page.evaluate(
        f"{READ}.numbers().written.map((_, place) => {READ}.logits(place))"
    )
    torch.testing.assert_close(torch.tensor(found), expected, atol=DEVIATION, rtol=0)
    agrees(translator, numbers, 1, "mean")
    best = expected[0].softmax(-1).topk(5).values.tolist()
    assert [share for _, share in numbers["best"]] == pytest.approx(best, abs=TOLERANCE)


def test_tokens_are_those_of_python(live, translator):
    tokenizer, chance = translator[2], random.Random(1)
    signs = "abc ABCxyz'éüßäö漢字😀\t\n \x85\xa0\ufeff\u2003.,!?<pad>0123४²\x1cठि\u0301"
    texts = [text for pair in everyday.draw(chance, "train", 300) for text in pair]
    for _ in range(600):
        texts.append("".join(chance.choices(signs, k=chance.randrange(30))))
    for _ in range(600):
        codes = [chance.randrange(32, 0x3000), chance.randrange(0x10000, 0x1FFFF)]
        texts.append("x" + "".join(map(chr, codes)) + "’s 12")
    found = live.page.evaluate(f"(texts) => texts.map({READ}.encode)", texts)
    assert found == tokenizer.encode_all(text.strip() for text in texts)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing to translate"),
        ("   ", "nothing to translate"),
        ("apple " * 1667, "at least"),
        ("apple " * 200, "200 tokens"),
        ("x" * 10_000, "at least"),
        ("\u0000", "no words"),
        ("🦆" * 9, "no words"),
        ("I am hungry. I eat bread.", "one at a time"),
    ],
)
def test_what_cannot_be_translated_is_refused(live, text, said):
    numbers = type_in(live, text)
    assert said in numbers["notice"]
    assert (numbers["translation"], numbers["written"]) == (
        "",
        [],
    )  # the old one is gone
    assert type_in(live, "Bobby likes blackberries.")["translation"] == (
        "Bobby mag Brombeeren."
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Zyx likes qwv!", "do not know “Zyx”, “qwv”"),
        ("猫は魚が好きです。", "do not know “猫は魚が好きです”"),
        ("dog the likes bear the", "never learned from a sentence of this form"),
        ("The dog, the cat", "left out “,”"),
    ],
)
def test_what_it_never_learned_is_said(live, text, said):
    numbers = type_in(live, text)
    assert said in numbers["notice"] and "Do not trust" in numbers["notice"]
    assert numbers["doubtful"] and numbers["written"]
    assert live.visitor.complaints == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "the dog likes the bear",
            ["the full stop", "“The dog likes the bear.”"],
        ),
        ("does the dog like the bear", ["added the question mark"]),
        ("i don't know", ["“I do not know.”"]),
        ("THE DOG HAS 2 CATS.", ["“The dog has two cats.”"]),
        ("“Bobby’s tired”", ["added the full stop"]),
    ],
)
def test_what_was_done_to_a_sentence_is_said(live, text, said):
    numbers = type_in(live, text)
    for each in [*said, "probability of"]:
        assert each in numbers["notice"]


VISITORS = (ROOT / "tests" / "visitors.txt").read_text(encoding="utf-8").splitlines()


def test_what_visitors_type_is_right_or_warned_of(live):
    """All but the last nine were written before the model was trained."""
    wrong, warned, asked = [], [], 0
    for line in VISITORS:
        if line.startswith("# "):
            continue
        text, _, right = line.partition(" = ")
        live.page.evaluate(f"(text) => {READ}.translate(text)", text)
        numbers = live.numbers()
        german = numbers["translation"].rstrip(".?")
        good = german in right.split(" | ") and bool(right)
        asked += bool(right)
        if right and (numbers["doubtful"] or not german):
            warned.append(text)
        elif german and not numbers["doubtful"] and not good:
            wrong.append((text, german))
    assert wrong == []
    assert len(warned) <= asked / 10, warned


def test_words_are_chosen_from_a_list(live):
    live.page.get_by_label("Your sentence").fill("Bobby likes the")
    live.page.locator(".live-chips summary").click()
    live.page.get_by_role("button", name="owl", exact=True).click()
    assert live.numbers()["text"] == "Bobby likes the owl"
    assert live.page.evaluate("document.documentElement.scrollWidth") <= 360
    live.page.locator(".live-chips summary").click()


def test_a_translation_can_be_stopped(live):
    live.page.get_by_label("Your sentence").fill("The dog sees the cat " * 12)
    live.page.evaluate(
        "() => { document.querySelector('.live-form').requestSubmit();"
        " [...document.querySelectorAll('.live-form button')].at(-1).click(); }"
    )
    wait(live, "!shown.busy")
    assert "Stopped" in live.numbers()["notice"]
    assert type_in(live, "Bobby knows me.")["translation"] == "Bobby kennt mich."


def test_loaded_figure_does_not_widen_a_phone(live):
    type_in(live, "I know that Bobby likes Donaudampfschifffahrtsgesellschaften.")
    assert live.page.evaluate("document.documentElement.scrollWidth") <= 360


# --- the Vision Transformer -----------------------------------------------------------


@pytest.fixture(scope="module")
def reader():
    """Give the reference's reading of 64 counts of ink."""
    model, _ = models.load(results.model_folder("digits"))
    data = load_images("digits", validation=presets.VISION["digits"].held_out)

    @torch.no_grad()
    def read(counts: list[int]) -> dict:
        pixels = (torch.tensor(counts).view(1, 1, 8, 8) * 255 / 16).round() / 255
        caught = []
        hooks = [
            layer.attention.register_forward_hook(
                lambda _module, _given, output: caught.append(output[1][0])
            )
            for layer in model.encoder.layers
        ]
        tokens = model.position(
            model.patches((pixels - data.mean[0]) / data.std[0])
        )  # (1, 4, d)
        shares = model.head(model.encoder(tokens)).softmax(-1)[0]
        rollout = attention_rollout(caught).mean(0)
        for hook in hooks:
            hook.remove()
        best = shares.argmax()
        needed = []
        for patch in range(4):
            rest = [each for each in range(4) if each != patch]
            less = model.head(model.encoder(tokens[:, rest])).softmax(-1)[0]
            needed.append((shares - less)[best].item())
        return {
            "probabilities": shares.tolist(),
            "rollout": rollout.tolist(),
            "needed": needed,
        }

    return read


@pytest.fixture(scope="module")
def pad(figure):
    """Load the Vision Transformer, once for all tests of this file, from a disk."""
    return loaded(figure("draw"))


def reads_as(shown: Figure, reader) -> dict:
    """Compare all that is shown with the reference's reading of the same pixels."""
    wait(shown, "!shown.busy")
    numbers = shown.numbers()
    for name, expected in reader(numbers["counts"]).items():
        assert numbers[name] == pytest.approx(expected, abs=TOLERANCE), name
    assert numbers["patches"] == pytest.approx(numbers["rollout"])
    return numbers


def clear(shown: Figure) -> None:
    shown.page.get_by_role("button", name="Clear").click()


def draw_line(shown: Figure, points: list[tuple[float, float]]) -> None:
    """Draw with the pointer; points are shares of the field's sides."""
    box = shown.page.locator(".live-pad").bounding_box()
    for number, (x, y) in enumerate(points):
        place = box["x"] + x * box["width"], box["y"] + y * box["height"]
        shown.page.mouse.move(*place, steps=4)
        if number == 0:
            shown.page.mouse.down()
    shown.page.mouse.up()


SEVEN = [(0.25, 0.15), (0.75, 0.15), (0.45, 0.9)]


def test_recorded_images_are_read_as_the_reference_does(figure, reader):
    shown = figure("draw")
    for _ in range(3):
        shown.press(shown.page.get_by_label("Shown"), "ArrowDown")
        reads_as(shown, reader)
    assert shown.visitor.complaints == []


def test_a_digit_drawn_with_the_pointer_is_read(pad, reader):
    clear(pad)
    draw_line(pad, SEVEN)
    numbers = reads_as(pad, reader)
    assert numbers["summary"].startswith("It reads 7")
    large = numbers["counts"]
    clear(pad)
    draw_line(pad, [(x / 2, y / 2) for x, y in SEVEN])
    small = reads_as(pad, reader)["counts"]
    assert sum(abs(a - b) for a, b in zip(small, large, strict=True)) <= 40
    pad.page.get_by_label("Bring it to size").uncheck(force=True)
    assert sum(reads_as(pad, reader)["counts"][32:]) < sum(large[32:]) / 4
    pad.page.get_by_label("Bring it to size").check(force=True)


def test_a_digit_drawn_by_keyboard_is_read(pad, reader):
    clear(pad)
    pad.press(pad.page.locator(".live-pad"), "Space")
    pad.page.keyboard.press("Shift+ArrowDown")
    for _ in range(5):
        pad.page.keyboard.press("Shift+ArrowDown")
    pad.page.keyboard.press("Space")
    pad.page.keyboard.press("ArrowLeft")  # lifted: nothing is drawn
    numbers = reads_as(pad, reader)
    assert numbers["strokes"] == [7]
    assert numbers["summary"].startswith("It reads 1")
    pad.page.get_by_role("button", name="Undo").click()
    wait(pad, "!shown.busy && shown.strokes.length === 0")


def test_an_empty_field_is_answered_with_a_warning(pad, reader):
    clear(pad)
    numbers = reads_as(pad, reader)
    assert sum(numbers["counts"]) == 0
    assert "field is empty" in numbers["summary"]


def test_a_finger_draws(figure):
    shown = figure("draw", browsers.PHONE, has_touch=True)
    shown.page.locator(".live-pad").scroll_into_view_if_needed()
    box = shown.page.locator(".live-pad").bounding_box()
    touch = shown.page.context.new_cdp_session(shown.page)
    for kind, share in (("touchStart", 0.2), ("touchMove", 0.5), ("touchMove", 0.8)):
        place = {
            "x": box["x"] + box["width"] / 2,
            "y": box["y"] + share * box["height"],
        }
        given = {"type": kind, "touchPoints": [place]}
        touch.send("Input.dispatchTouchEvent", given)
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    numbers = shown.numbers()
    assert len(numbers["strokes"]) == 1 and numbers["strokes"][0] >= 3
    assert "Load the model" in numbers["summary"]


def test_model_runs_from_a_server_too(figure, visit, reader):
    folder = figure("draw").page.url.removeprefix("file://").rsplit("/", 1)[0]
    with served(folder) as address:
        reads_as(loaded(Figure(visit(address), "draw")), reader)


def test_progress_is_shown_while_the_model_loads(figure, visit):
    """All bytes that travel are counted, from a server; the bar never goes back."""
    folder = figure("draw").page.url.removeprefix("file://").rsplit("/", 1)[0]
    with served(folder) as address:
        shown = Figure(visit(address), "draw")
        bar = shown.page.locator(".live-offer progress")
        assert not bar.is_visible()
        shown.page.evaluate("""() => {
          window.seen = [];
          const bar = document.querySelector(".live-offer progress");
          const words = bar.nextSibling;
          new MutationObserver(() => window.seen.push([bar.value, words.textContent]))
            .observe(words, { childList: true, characterData: true, subtree: true });
        }""")
        files = shown.page.evaluate("Figures.data.draw.files")
        loaded(shown)
    seen = shown.page.evaluate("window.seen")
    values, words = zip(*seen, strict=True)
    assert list(values) == sorted(values) and len(set(values)) > 3
    assert values[-1] == sum(file["bytes"] for file in files)
    assert words[0].startswith("0.0 of") and words[-1].startswith("All is here")


def test_loading_button_names_what_travels(figure):
    for name in ("draw", "translate"):
        shown = figure(name)
        files = shown.page.evaluate(f"Figures.data.{name}.files")
        megabytes = sum(file["bytes"] for file in files) / 1e6
        button = shown.page.get_by_role("button", name="Load the model")
        assert f"{megabytes:.1f} MB" in button.inner_text()
