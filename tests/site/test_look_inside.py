"""The page *Look inside*: its engine beside PyTorch, changes, bad folders."""

import importlib
import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests import browsers
from tests.conftest import ROOT
from tests.figures import Figure, near
from tools.browser import served
from tools.site import live_models
from transformer.decoder import greedy_decode
from workbench.data.tokenizer import TOKENIZER_FILE, Tokenizer
from workbench.model import models
from workbench.use import looking, results

pytestmark = pytest.mark.browser
LONG = 60_000  # milliseconds
READ = "document.querySelector('figure[data-figure]').figure"
SENTENCE = "Anna helps the clever queen."
STORY = "Otto had a red bucket, and Marie had a blue trumpet."
FILES = (models.CONFIG_FILE, models.WEIGHTS_FILE, TOKENIZER_FILE)
PARTS = f"""(() => {{
  const rows = (matrix) => matrix.map((row) => [...row]);
  const {{ trace }} = {READ}.inside();
  const parts = [trace.source, trace.target].filter(Boolean)
    .flatMap(({{ layers }}) => layers.flat()).map((part) => ({{ name: part.name,
      norm: part.normName, normed: rows(part.normed), added: rows(part.added),
      weights: part.weights?.map((head) => rows(head)) }}));
  return {{ parts, ids: trace.target.ids, source: trace.source?.ids,
    logits: rows(trace.logits) }};
}})()"""


@pytest.fixture(scope="module")
def shown(figure):
    """Open the figure, once for all tests; nothing is loaded yet."""
    return figure("look_inside")


def wait(shown, condition: str) -> dict:
    """Wait until the figure's numbers fulfil something; give them."""
    shown.page.wait_for_function(
        f"(() => {{ const shown = {READ}.numbers(); return {condition}; }})()",
        timeout=LONG,
    )
    return shown.numbers()


def give(shown, folder) -> dict:
    """Choose the files of a folder, and wait for the answer."""
    there = [str(folder / name) for name in FILES if (folder / name).is_file()]
    shown.page.locator("#inside-files").set_input_files([])
    shown.page.locator("#inside-files").set_input_files(there)
    return wait(shown, "shown.notice && shown.notice !== 'Reading …'")


def type_in(shown, text: str) -> dict:
    shown.page.locator("#inside-text").fill(text)
    return shown.numbers()


def shipped(shown) -> None:
    """Open the site's translator, with its sentence and without changes."""
    shown.page.get_by_role("radio", name="translator").check()
    if not shown.numbers()["loaded"]:
        shown.page.get_by_role("button", name="Open the translator").click()
    wait(shown, "shown.loaded && shown.kind === 'translator'")
    assert type_in(shown, SENTENCE)["off"] == []


def caught(model, *given) -> tuple[dict, torch.Tensor]:
    """Give what each submodule returned, by its name, and the logits (T, V)."""
    outputs = {}

    def keep(name):
        return lambda _module, _given, output: outputs.__setitem__(name, output)

    hooks = [
        each.register_forward_hook(keep(name)) for name, each in model.named_modules()
    ]
    with torch.no_grad():
        logits = model(*given)[0]
    for hook in hooks:
        hook.remove()
    return outputs, logits


def follows(shown, model) -> None:
    """Compare all parts and the logits that the page has computed with a model's."""
    made = shown.page.evaluate(PARTS)
    ids = [torch.tensor([made[name]]) for name in ("source", "ids") if made.get(name)]
    expected, logits = caught(model, *ids)
    near(made["logits"], logits)
    maps = looking.attention_weights(model, ids[0][0]) if len(ids) == 1 else None
    first = maps is not None or model.encoder.layers[0].norm_first
    for part in made["parts"]:
        if first:
            near(part["normed"], expected[part["norm"]][0])
        if part["name"] in expected:
            output = expected[part["name"]]
            near(part["added"], (output[0] if isinstance(output, tuple) else output)[0])
        if part["weights"]:
            layer = int(part["name"].split(".")[1 if maps is not None else 2])
            known = expected[part["name"]][1][0] if maps is None else maps[layer]
            for head, rows in enumerate(part["weights"]):
                for place, row in enumerate(rows):
                    near(row, known[head, place, : len(row)])


# --- the engine -----------------------------------------------------------------------


def test_translator_computes_and_writes_what_the_reference_does(shown):
    folder = results.model_folder("everyday")
    model, config = models.load(folder)
    tokenizer = Tokenizer.load(folder / TOKENIZER_FILE)
    assert "stays in this page" in give(shown, folder)["notice"]
    for text in (SENTENCE, "Today Anna does not give the child a red apple."):
        output = type_in(shown, text)["output"]
        source = torch.tensor([tokenizer.encode(text)])
        ids = greedy_decode(
            lambda target, source=source: model(source, target),
            [Tokenizer.SOS],
            Tokenizer.EOS,
            config.max_length,
        )
        assert output == tokenizer.decode(ids[1:])
        follows(shown, model)


def test_language_model_computes_what_the_reference_does(shown):
    folder = results.model_folder("tales")
    model, _ = models.load(folder)
    assert give(shown, folder)["kind"] == "lm"
    _, tokenizer = looking.load("tales")
    type_in(shown, STORY)
    assert shown.page.evaluate(PARTS)["ids"] == tokenizer.encode(STORY)
    follows(shown, model)


OTHERS = {
    "norm last": ("everyday", {"norm_first": False, "activation": "gelu", "layers": 1}),
    "untied": ("everyday", {"tied": False, "scaled": False, "heads": 2}),
    "old": ("tales", {"norm": "layer", "feed_forward": "gelu", "positions": "learned"}),
    "grouped": ("tales", {"kv_heads": 2, "qk_norm": True, "layers": 2}),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_shapes_are_computed_too(shown, tmp_path, name):
    of, changes = OTHERS[name]
    source = results.model_folder(of)
    text = (source / models.CONFIG_FILE).read_text()
    config = models.from_json(json.dumps(json.loads(text) | changes))
    torch.manual_seed(0)
    model = models.build(config).eval()
    models.save(tmp_path, model, config)
    shutil.copy(source / TOKENIZER_FILE, tmp_path)
    give(shown, tmp_path)
    type_in(shown, SENTENCE if of == "everyday" else "Otto had a red bucket.")
    follows(shown, model)


# --- what a reader does ---------------------------------------------------------------


def test_shipped_translator_is_the_rounded_one(shown):
    shipped(shown)
    model, _ = models.load(results.model_folder("everyday"))
    follows(shown, live_models.rounded(model))
    assert shown.numbers()["output"] == "Anna hilft der klugen Königin."
    assert shown.visitor.complaints == []


def words(numbers: dict) -> str:
    """Give the translation, without what it was before the changes."""
    return numbers["output"].split(" Without")[0].removesuffix(" …")


def test_guided_path_shows_what_the_page_says(shown):
    page = shown.page
    page.get_by_role("button", name="Guided path").click()
    wait(shown, "shown.step === 0")
    steps = [shown.numbers()]
    for _ in range(9):
        page.get_by_role("button", name="Next", exact=True).click()
        steps.append(shown.numbers())
    assert [each["step"] for each in steps] == list(range(10))
    assert page.get_by_role("button", name="Next", exact=True).is_disabled()
    assert steps[8]["best"][0][0] == "der"
    assert words(steps[9]) == "Anna hilft die kluge Königin."
    made = shown.page.evaluate(PARTS)
    by_name = {part["name"]: part for part in made["parts"]}
    asked = by_name["encoder.layers.1.attention"]["weights"]
    looked = [max(range(7), key=asked[head][3].__getitem__) for head in (0, 1)]
    assert looked == [5, 1]  # queen, help
    page.get_by_label("Head 2 is on").check()
    for number in (1, 3, 4):
        page.get_by_label(f"Head {number} is on").uncheck()
        assert words(shown.numbers()) == "Anna hilft der klugen Königin."
        page.get_by_label(f"Head {number} is on").check()
    assert page.get_by_role("button", name="Undo all changes").is_disabled()
    across = {part["name"]: part for part in shown.page.evaluate(PARTS)["parts"]}
    weights = across["decoder.layers.1.cross_attention"]["weights"]
    assert all(head[2][3] > 0.9 for head in weights)
    page.get_by_role("button", name="Leave the path").click()
    assert shown.numbers()["step"] == -1


def test_words_are_masked_and_temperature_moves(shown):
    shipped(shown)
    page = shown.page
    page.get_by_role("group", name="Tokens that are read").get_by_text("clever").click()
    page.get_by_role("button", name="Mask “clever”").click()
    assert words(shown.numbers()) == "Anna hilft der Königin."
    page.get_by_role("button", name="Undo all changes").click()
    shown.page.evaluate(f"{READ}.follow('target', 3)")
    logits = torch.tensor(shown.page.evaluate(PARTS)["logits"][3])
    for value in (0.5, 2):
        shown.slide("Temperature", value)
        found = [share for _, share in shown.numbers()["best"]]
        near(found, (logits / value).softmax(0).topk(len(found)).values)
    shown.slide("Temperature", 0)
    assert shown.numbers()["best"][0][1] == 1
    shown.slide("Temperature", 1)


def test_zoom_goes_to_the_numbers_and_back(shown):
    shipped(shown)
    page = shown.page
    page.get_by_role("button", name="Cross-attention ch.\u00a05, layer 2").click()
    page.get_by_role("button", name="Look into head 1").click()
    page.get_by_role("button", name="query: 32 numbers").click()
    assert shown.numbers()["view"] == "target/1/1/0"
    assert len(page.locator(".inside-numbers span").all()) == 32
    shown_q = page.eval_on_selector_all(
        ".inside-numbers span", "all => all.map((each) => Number(each.dataset.value))"
    )
    place = shown.numbers()["place"]["target"]
    query = page.evaluate(
        f"[...{READ}.inside().trace.target.layers[1][1].q[0][{place}]]"
    )
    assert shown_q == pytest.approx(query)
    page.get_by_role("button", name="Model", exact=True).click()
    assert shown.numbers()["view"] == "map"
    chosen = page.locator(".inside-token[aria-pressed=true]")
    shown.press(chosen, "ArrowLeft")
    assert shown.numbers()["place"]["target"] == place - 1


def test_phone_zooms_into_a_box(figure):
    shown = figure("look_inside", browsers.PHONE, has_touch=True)
    page = shown.page
    page.get_by_role("button", name="Feed-forward ch.\u00a06, layer 1").first.tap()
    assert not page.locator(".inside-map").is_visible()
    page.get_by_role("button", name="Model", exact=True).tap()
    assert page.locator(".inside-map").is_visible()


def test_language_model_writes_on(shown):
    page = shown.page
    page.get_by_role("radio", name="language model").check()
    if not shown.numbers()["loaded"]:
        page.get_by_role("button", name="Open the language model").click()
    wait(shown, "shown.loaded && shown.kind === 'lm'")
    assert shown.numbers()["best"][0][0] == "ladder"
    shown.slide("Temperature", 0)
    before = shown.numbers()["place"]["target"]
    page.get_by_role("button", name="Write on").click()
    numbers = wait(shown, f"shown.place.target === {before + 24}")
    model, _ = models.load(results.model_folder("tales"))
    model, ids = live_models.rounded(model), shown.page.evaluate(PARTS)["ids"]
    with torch.no_grad():
        expected = model(torch.tensor([ids[:-1]]))[0].argmax(-1)
    assert ids[before + 1 :] == expected[before:].tolist()
    assert " her ladder" in numbers["output"]
    shown.slide("Temperature", 1)
    assert "has never read “Ü”" in type_in(shown, "Übung")["notice"]


# --- whether a translation is to be trusted -------------------------------------------


@torch.no_grad()
def probability(model, source: list[int], written: list[int]) -> float:
    """Give the probability of all tokens that were written, the end among them."""
    given = torch.tensor([[Tokenizer.SOS, *written[:-1]]])
    shares = model(torch.tensor([source]), given)[0].softmax(-1)
    return shares[range(len(written)), written].prod().item()


def test_a_translation_has_its_probability_and_no_warning(shown):
    shipped(shown)
    numbers, made = shown.numbers(), shown.page.evaluate(PARTS)
    model, _ = models.load(results.model_folder("everyday"))
    written = [*made["ids"][1:], Tokenizer.EOS]
    expected = probability(live_models.rounded(model), made["source"], written)
    assert numbers["probability"] == pytest.approx(expected, abs=1e-4)
    assert numbers["trust"] == (
        f"The model gives this translation a probability of {100 * expected:.0f}\xa0%."
    )
    assert not numbers["doubtful"]
    assert shown.page.locator(".live-doubtful").count() == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Zyx helps the qwv.", ["I do not know “Zyx”, “qwv”."]),
        ("Dog the likes bear the.", ["never learned from a sentence of this form"]),
        (
            "The dog likes the bear",
            ["Type “The dog likes the bear.”", "did not find an end"],
        ),
        ("I can't swim.", ["Type “I cannot swim.”"]),
        ("Anna, helps the queen.", ["Type “Anna helps the queen.”"]),
        ("I am hungry. I eat bread.", ["one at a time"]),
        ("😀", ["There are no words in this"]),
    ],
)
def test_what_speaks_against_a_translation_is_said(shown, text, said):
    shipped(shown)
    numbers = type_in(shown, text)
    for each in [*said, "Do not trust this translation.", "a probability of"]:
        assert each in numbers["trust"]
    assert "left out" not in numbers["trust"]  # the model has read it all
    assert numbers["doubtful"] and numbers["output"]
    marked = shown.page.locator(".inside-output .live-doubtful").inner_text()
    assert numbers["output"].startswith(marked)
    assert not type_in(shown, SENTENCE)["doubtful"]


def test_what_visitors_type_is_right_or_warned_of_here_too(shown):
    """Whole sentences alone: all others are told that they are none."""
    shipped(shown)
    lines = (ROOT / "tests" / "visitors.txt").read_text("utf-8").splitlines()
    wrong, asked = [], 0
    for line in lines:
        text, _, right = line.partition(" = ")
        if line.startswith("# ") or not text.endswith((".", "?")):
            continue
        numbers = type_in(shown, text)
        asked += 1
        good = numbers["output"].rstrip(".?") in right.split(" | ")
        if not (numbers["doubtful"] or numbers["notice"] or good):
            wrong.append((text, numbers["output"]))
    assert (wrong, asked > 50) == ([], True)


def test_of_a_readers_own_translator_only_what_it_computes_is_said(shown):
    give(shown, results.model_folder("everyday"))
    numbers = type_in(shown, "Zyx helps the clever queen.")
    assert numbers["trust"].startswith("The model gives this translation a probab")
    assert type_in(shown, "The dog likes the bear")["trust"].startswith(
        "Do not trust this translation. It did not find an end. The model gives"
    )


def test_a_language_model_translates_nothing(shown):
    give(shown, results.model_folder("tales"))
    numbers = type_in(shown, STORY)
    assert (numbers["trust"], numbers["probability"]) == ("", None)
    assert not shown.page.locator(".inside-trust").is_visible()


def test_a_long_warning_does_not_widen_a_phone(figure):
    shown = figure("look_inside", browsers.PHONE, has_touch=True)
    shipped(shown)
    word = "Donaudampfschifffahrtsgesellschaften"
    assert word[:30] in type_in(shown, f"Anna {word} likes")["trust"]
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= 360


# --- the map of the course ------------------------------------------------------------


@pytest.mark.parametrize("kind", ["translator", "language model"])
def test_map_names_what_the_chapters_build(figure, kind):
    shown = figure("model_map")
    shown.page.get_by_role("radio", name=kind).check()
    boxes = shown.page.locator(".inside-box")
    for box in boxes.all():
        chapter = int(box.get_attribute("data-chapter"))
        (page,) = (ROOT / "book").glob(f"{chapter:02}_*.md")
        if name := box.get_attribute("data-writes"):
            written = importlib.import_module(f"transformer.{page.stem[3:]}")
            assert hasattr(written, name.replace("\u200b", "")), name
        box.click()
        link = shown.page.locator(".inside-lens a")
        assert link.get_attribute("href") == f"{page.stem}.html"
    assert boxes.count() == (20 if kind == "translator" else 13)
    assert shown.numbers()["loaded"] is False
    assert shown.visitor.complaints == []


def test_map_leads_to_every_chapter_and_to_sections_that_are_there(figure):
    page = figure("model_map").page
    known = {path.stem for path in (ROOT / "book").glob("[0-9][0-9]_*.md")}
    reached = set()
    told = (ROOT / "book" / "look_inside.md").read_text("utf-8")
    for box in page.locator(".inside-box").all():
        box.click()
        hrefs = page.locator(".inside-columns a").evaluate_all(
            "all => all.map((each) => each.getAttribute('href'))"
        )
        reached |= {href.removesuffix(".html") for href in hrefs if "#" not in href}
        anchors = [href.partition("#")[2] for href in hrefs if "#" in href]
        assert anchors and all(f"({anchor})=" in told for anchor in anchors)
    towers = page.locator(".inside-towername .inside-chapter").all_inner_texts()
    assert [text.split()[-1] for text in towers] == ["6", "7"]
    assert known - reached == {"07_decoder"}  # the decoder is no box: it is the tower


def test_map_computes_when_it_is_asked_to(figure_both):
    shown = figure_both("model_map")
    assert shown.page.locator("#inside-files").count() == 0
    shown.page.get_by_role("button", name="Open the translator").click()
    wait(shown, "shown.loaded")
    assert type_in(shown, SENTENCE)["output"] == "Anna hilft der klugen Königin."
    assert shown.visitor.complaints == []


# --- folders that are given -----------------------------------------------------------


def test_a_folder_is_chosen_in_a_dialogue(figure_both):
    shown = figure_both("look_inside")
    folder = results.model_folder("everyday")
    with shown.page.expect_file_chooser() as dialogue:
        shown.page.locator("#inside-files").click()
    dialogue.value.set_files([folder / name for name in FILES])
    wait(shown, "shown.notice.startsWith('Your own translator')")
    model, _ = models.load(folder)
    type_in(shown, SENTENCE)
    follows(shown, model)
    assert shown.visitor.complaints == []


def drop(shown, folder) -> None:
    """Drop a folder as a file manager does: the browser is handed its path."""
    stage = shown.page.locator(".inside-own")
    stage.scroll_into_view_if_needed()
    box = stage.bounding_box()
    place = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    devtools = shown.page.context.new_cdp_session(shown.page)
    dragged = {"items": [], "files": [str(folder)], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver", "drop"):
        event = {"type": kind, **place, "data": dragged}
        devtools.send("Input.dispatchDragEvent", event)


@pytest.mark.parametrize("place", ["disk", "server"])
def test_a_folder_is_dropped(figure, visit, place):
    shown = figure("look_inside")
    folder = results.model_folder("tales")
    assert folder.is_dir()
    site = Path(shown.page.url.removeprefix("file://")).parent
    with served(site) as address:
        if place == "server":
            shown = Figure(visit(address), "look_inside")
        drop(shown, folder)
        wait(shown, "shown.notice.startsWith('Your own language model')")
    model, _ = models.load(folder)
    type_in(shown, STORY)
    follows(shown, model)


def test_a_browser_that_reads_no_folder_says_what_else_can_be_done(figure):
    shown = figure("look_inside")
    shown.page.evaluate("delete DataTransferItem.prototype.getAsFileSystemHandle")
    drop(shown, results.model_folder("tales"))  # on a disk, Chromium gives no entries
    assert (
        "Choose the folder's three files"
        in wait(shown, "shown.notice.startsWith('This browser')")["notice"]
    )
    assert give(shown, results.model_folder("tales"))["kind"] == "lm"


# --- folders that are none ------------------------------------------------------------


def cut(folder):
    path = folder / models.WEIGHTS_FILE
    path.write_bytes(path.read_bytes()[:-100])


def misshapen(folder):
    tensors = load_file(folder / models.WEIGHTS_FILE)
    tensors["blocks.0.attention.w_q"] = torch.zeros(3, 4)
    save_file(tensors, folder / models.WEIGHTS_FILE)


def not_a_number(folder):
    tensors = load_file(folder / models.WEIGHTS_FILE)
    tensors["norm.gamma"][0] = torch.nan
    save_file(tensors, folder / models.WEIGHTS_FILE)


def of_another(folder):
    shutil.copy(results.model_folder("everyday") / TOKENIZER_FILE, folder)


def edited(folder):
    path = folder / models.CONFIG_FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | {"heads": -1}))


BAD = {
    "There is no config.json": lambda folder: (folder / models.CONFIG_FILE).unlink(),
    "There is no tokenizer.json": lambda folder: (folder / TOKENIZER_FILE).unlink(),
    "is not JSON": lambda folder: (folder / models.CONFIG_FILE).write_text("{"),
    "names no model": lambda folder: (folder / models.CONFIG_FILE).write_text("[]"),
    "heads is -1": edited,
    "not a whole safetensors file": cut,
    "has the shape (3, 4)": misshapen,
    "NaN or infinity": not_a_number,
    "not a tokenizer of this course": of_another,
    "This is a Vision Transformer": lambda folder: shutil.copy(
        results.model_folder("digits") / models.CONFIG_FILE, folder
    ),
}


@pytest.mark.parametrize("told", BAD)
def test_bad_folder_gets_one_clear_line(shown, tmp_path, told):
    for name in FILES:
        shutil.copy(results.model_folder("induction_1") / name, tmp_path)
    BAD[told](tmp_path)
    before = shown.numbers()["output"]
    numbers = give(shown, tmp_path)
    assert told in numbers["notice"] and "\n" not in numbers["notice"]
    assert numbers["output"] == before  # the model that was there is still there


def test_files_are_dropped(figure_both):
    shown = figure_both("look_inside")
    folder = results.model_folder("induction_2")
    texts = {name: list((folder / name).read_bytes()) for name in FILES}
    shown.page.evaluate(
        """(files) => {
          const given = new DataTransfer();
          for (const [name, bytes] of Object.entries(files))
            given.items.add(new File([new Uint8Array(bytes)], name));
          document.querySelector(".moving-figure-stage").dispatchEvent(
            new DragEvent("drop", { dataTransfer: given, bubbles: true }));
        }""",
        texts,
    )
    numbers = wait(shown, "shown.notice.startsWith('Your own')")
    assert "2 layers, 4 heads" in numbers["notice"]
    model, _ = models.load(folder)
    made = shown.page.evaluate(PARTS)
    _, logits = caught(model, torch.tensor([made["ids"]]))
    assert (
        torch.tensor(made["logits"]).argmax(-1).tolist() == logits.argmax(-1).tolist()
    )
