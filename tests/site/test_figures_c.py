"""The moving figures of chapters 6 to 8: the stream, decoding, rollout."""

import pytest
import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from tests import browsers
from tests.figures import TOLERANCE, near
from tools.site.figure_data import conversation, decoding, residual_stream, rollout
from tools.site.figure_data.heads import translator
from transformer.decoder import beam_search
from transformer.embeddings import tied_logits
from transformer.encoder import Encoder
from transformer.vision_transformer import attention_rollout
from workbench.data.tokenizer import Tokenizer
from workbench.model.models import load_parts
from workbench.use.decoding import Recomputing, Remembering
from workbench.use.translator import Translator

pytestmark = pytest.mark.browser


# --- chapter 6: the conversation, and the residual stream -----------------------------


def said_to(sentence: str, token: int) -> list[tuple]:
    """The stream, what was added to it, (d,) each, and the weights (T,), by stage."""
    model, _, tokenizer = translator()
    x = model.position(model.embedding(torch.tensor([tokenizer.encode(sentence)])))
    stages = [(x[0, token], None, None)]
    for layer in model.encoder.layers:
        heard, weights = layer.attention(layer.norm_1(x))
        x = x + heard
        stages.append((x[0, token], heard[0, token], weights[0, :, token].mean(0)))
        thought = layer.feed_forward(layer.norm_2(x))
        x = x + thought
        stages.append((x[0, token], thought[0, token], None))
    return stages


def test_conversation_adds_what_the_trained_encoder_adds(figure):
    shown = figure("conversation")
    for number, token in ((0, 2), (1, 5)):
        shown.page.get_by_label("Sentence").select_option(str(number))
        shown.page.locator("fieldset input").nth(token).check()
        for stage, expected in enumerate(
            said_to(conversation.SENTENCES[number], token)
        ):
            shown.slide("Stage", stage)
            numbers = shown.numbers()
            stream, added, weights = expected
            near(numbers["length"], stream.norm())
            assert (numbers["added"] is None) == (added is None)
            if added is not None:
                near(numbers["added"], added.norm())
            assert (numbers["weights"] is None) == (weights is None)
            if weights is not None:
                near(numbers["weights"], weights)


def test_conversation_goes_on_by_keyboard_and_touch(figure):
    shown = figure("conversation", browsers.PHONE, has_touch=True)
    shown.press(shown.page.get_by_role("button", name="Next"), "Enter")
    assert shown.numbers()["stage"] == 2
    shown.page.locator("polygon").nth(4).tap()
    assert shown.numbers()["token"] == 4


def stack(depth: int, norm_first: bool, seed: int) -> tuple[torch.Tensor, ...]:
    """Compute a stack's lengths and gradients, by hooks and by autograd.grad."""
    torch.manual_seed(seed)
    encoder = Encoder(depth, 32, 4, 128, norm_first=norm_first)
    start = torch.randn(4, 7, 32)
    head, labels = torch.randn(32, 10) / 32**0.5, torch.randint(10, (28,))
    lengths = [start.square().sum(-1).sqrt().mean()]
    for layer in encoder.layers:
        layer.register_forward_hook(
            lambda *call: lengths.append(call[2].square().sum(-1).sqrt().mean())
        )
    scores = encoder(start).reshape(28, 32) @ head
    loss = functional.nll_loss(scores.log_softmax(-1), labels)
    weights = [layer.feed_forward.w_2 for layer in encoder.layers]
    gradients = [
        each.square().sum().sqrt() for each in torch.autograd.grad(loss, weights)
    ]
    return torch.stack(lengths), torch.stack(gradients)


@pytest.mark.parametrize(("depth", "layer"), [(4, 1), (8, 6), (24, 24)])
def test_stream_shows_what_the_reference_encoder_does(figure, depth, layer):
    shown = figure("residual_stream")
    shown.slide("Layers in the stack", depth)
    shown.slide("Layer to read", layer)
    numbers = shown.numbers()
    assert (numbers["depth"], numbers["layer"]) == (depth, layer)
    for kind, norm_first in (("post", False), ("pre", True)):
        runs = [stack(depth, norm_first, seed) for seed in range(residual_stream.SEEDS)]
        lengths, gradients = (
            torch.stack(each).mean(0) for each in zip(*runs, strict=True)
        )
        expected = [lengths[0], lengths[layer], gradients[layer - 1], gradients[-1]]
        names = ("start", "length", "gradient", "last")
        near([numbers[kind][name] for name in names], torch.stack(expected))


def test_stream_follows_keyboard_and_pointer(figure):
    shown = figure("residual_stream")
    slider = shown.page.get_by_label("Layer to read")
    shown.press(slider, "ArrowLeft", 3)
    assert shown.numbers()["layer"] == 9
    picture = shown.page.locator("svg").nth(1)
    box = picture.bounding_box()
    scale = box["width"] / 324
    # the middle of the second layer of twelve, from y = 318 up to 58
    at = {"x": 40 * scale, "y": (318 - 260 / 12 * 1.5) * scale}
    picture.click(position=at)
    numbers = shown.numbers()
    assert numbers["layer"] == 2 and slider.input_value() == "2"
    expected = residual_stream.data()["stacks"]["12"]["pre"]["lengths"][2]
    assert numbers["pre"]["length"] == pytest.approx(expected, abs=TOLERANCE)


def test_stream_keeps_its_layer_when_the_stack_shrinks(figure):
    shown = figure("residual_stream")
    shown.slide("Layer to read", 9)
    shown.slide("Layers in the stack", 4)
    assert shown.numbers()["layer"] == 4
    shown.slide("Layers in the stack", 20)
    assert shown.numbers()["layer"] == 20, "whoever looked at the last layer still does"


def test_stream_is_read_by_touch(figure):
    shown = figure("residual_stream", browsers.PHONE, has_touch=True)
    picture = shown.page.locator("svg").first
    scale = picture.bounding_box()["width"] / 324
    picture.tap(position={"x": 40 * scale, "y": (318 - 260 / 12 * 0.5) * scale})
    assert shown.numbers()["layer"] == 1


# --- chapter 7: decoding --------------------------------------------------------------


def choose(shown, sentence: int, beam: int) -> dict:
    """Choose a sentence and how wide to search; give the numbers at its end."""
    shown.page.get_by_label("Sentence").select_option(str(sentence))
    name = {1: "greedy", 2: "beam of 2", 3: "beam of 3"}[beam]
    shown.page.get_by_role("radio", name=name).check()
    shown.press(shown.page.get_by_label("Step"), "End")
    return shown.numbers()


def writer_of(text: str):
    """The translator as chapter 7's beam_search asks for it."""
    model, _, tokenizer = translator()
    source = torch.tensor([tokenizer.encode(text)])
    memory = model.encode(source)

    def logits(ids: torch.Tensor) -> torch.Tensor:
        found = tied_logits(model.decode(ids, memory, source), model.embedding.weight)
        found[..., [model.pad_id, tokenizer.SOS]] = -torch.inf
        return found

    return logits


@pytest.mark.parametrize("number", range(len(decoding.SENTENCES)))
def test_decoding_writes_what_chapter_7_writes(figure, number):
    text = decoding.SENTENCES[number]
    model, config, tokenizer = translator()
    cpu, parts = torch.device("cpu"), load_parts()
    shown = figure("decoding")
    for beam in decoding.BEAMS:
        numbers = choose(shown, number, beam)
        arguments = [tokenizer.SOS], tokenizer.EOS, beam, decoding.LONGEST
        with torch.no_grad():
            ids, score = beam_search(writer_of(text), *arguments)
        written, probability = numbers["results"][beam - 1]
        assert written == tokenizer.decode(ids[1:])
        near(probability, torch.tensor(score).exp())
        thick = [
            next(node for node in row if node["written"])
            for row in numbers["tree"]
            if any(node["written"] for node in row)
        ]
        near(torch.tensor([node["values"][0] for node in thick]).prod(), probability)
        whole = Translator(model, config, tokenizer, parts, cpu)
        assert whole.translate([text], beam, 0.0) == [written]


@torch.no_grad()
def test_decoding_tree_has_the_probabilities_of_the_model(figure):
    shown = figure("decoding")
    tree = choose(shown, 0, 2)["tree"]
    _, _, tokenizer = translator()
    logits = writer_of(decoding.SENTENCES[0])
    begun = {0: [tokenizer.SOS]}
    totals = {0: 1.0}
    steps = decoding.data()["sentences"][0]["beams"]["2"]["steps"]
    for row, step in zip(tree, steps, strict=True):
        chances = {
            rank: logits(torch.tensor([ids]))[0, -1] for rank, ids in begun.items()
        }
        after, after_totals = {}, {}
        every = []
        for parent, scores in chances.items():
            shares = scores.double().softmax(-1)
            best = shares.topk(4)
            every += (totals[parent] * best.values).tolist()
            for share, token in zip(*best, strict=True):
                for rank, node in enumerate(row):
                    named = decoding.piece(int(token)) == node["token"]
                    if named and step[rank][3] == parent:
                        near(node["values"][0], share)
                        near(node["values"][1], share * totals[parent])
                        after[rank] = [*begun[parent], int(token)]
                        after_totals[rank] = float(share) * totals[parent]
        assert len(after) == len(row), "each of the four is an extension of one kept"
        near([node["values"][1] for node in row], sorted(every, reverse=True)[:4])
        assert [node["state"] != "dropped" for node in row] == [
            True,
            True,
            False,
            False,
        ]
        begun = {r: ids for r, ids in after.items() if row[r]["state"] == "kept"}
        totals = after_totals


def test_decoding_follows_keyboard_and_pointer(figure):
    shown = figure("decoding")
    opened = shown.numbers()
    assert (opened["step"], opened["beam"], len(opened["tree"])) == (1, 1, 1)
    whole = choose(shown, 3, 2)
    assert whole["step"] == 9 and whole["products"]["kept"][0] == 1
    shown.press(shown.page.get_by_label("Step"), "Home")
    assert shown.numbers()["tree"] == [] and shown.numbers()["cache"] == []
    shown.page.get_by_role("button", name="Next").click()
    shown.press(shown.page.get_by_label("Step"), "ArrowRight", 2)
    third = shown.numbers()
    assert third["tree"] == whole["tree"][:3] and third["cache"] == whole["cache"][:3]
    assert third["computed"] == 1
    shown.page.get_by_role("radio", name="the cache").check()
    shown.page.get_by_role("radio", name="computed again").check()
    again = shown.numbers()
    assert again["computed"] == 3 and again["cache"] == third["cache"]


@torch.inference_mode()
def test_decoding_counts_the_products_that_pytorch_counts(figure):
    shown = figure("decoding")
    model, _, tokenizer = translator()
    source = torch.tensor([tokenizer.encode(decoding.SENTENCES[0])])
    choose(shown, 0, 1)
    shown.press(shown.page.get_by_label("Step"), "Home")
    kinds = {"kept": Remembering, "again": Recomputing}
    writers = {
        name: kind(model, source, 1, decoding.LONGEST, load_parts())
        for name, kind in kinds.items()
    }
    totals = dict.fromkeys(kinds, 0.0)
    for step in range(1, 6):
        shown.press(shown.page.get_by_label("Step"), "ArrowRight")
        products = shown.numbers()["products"]
        for name, writer in writers.items():
            with FlopCounterMode(display=False) as counter:
                writer.next_logits(torch.tensor([Tokenizer.SOS]))
            counted = counter.get_total_flops() / 2
            if (
                name == "kept" and step == 1
            ):  # the source's keys and values, done before
                layers, width = (
                    len(model.decoder.layers),
                    model.embedding.weight.shape[1],
                )
                counted += layers * 2 * source.shape[1] * width**2
            totals[name] += counted
            rows = step if name == "again" else 1
            near(
                products[name], torch.tensor([rows, counted / 1e6, totals[name] / 1e6])
            )


@torch.inference_mode()
def test_decoding_shows_keys_and_values_that_a_whole_pass_has(figure):
    """The cache's rows are those of the decoder that reads all tokens at once."""
    shown = figure("decoding")
    numbers = choose(shown, 1, 2)
    model, _, tokenizer = translator()
    source = torch.tensor([tokenizer.encode(decoding.SENTENCES[1])])
    written = [tokenizer.SOS, *tokenizer.encode(numbers["results"][1][0])]
    seen = []
    for layer in model.decoder.layers:
        layer.self_attention.register_forward_hook(
            lambda module, given, _: seen.append(module.project(*given[:1] * 2)[1:])
        )
    model.decode(torch.tensor([written]), model.encode(source), source)
    for layer in model.decoder.layers:
        layer.self_attention._forward_hooks.clear()
    count = decoding.HEAD_NUMBERS
    expected = torch.cat(
        [each[0, 0, :, :count] for pair in seen for each in pair], dim=-1
    )
    near(numbers["cache"], expected)


# --- chapter 8: rollout ---------------------------------------------------------------


@torch.no_grad()
def attention(number: int) -> list[torch.Tensor]:
    """Compute each layer's weights (heads, T, T), by its own projections."""
    model, _, inputs, _ = rollout.load()
    x = model.position(model.class_token(model.patches(inputs[number : number + 1])))
    weights = []
    for layer in model.encoder.layers:
        q, k, _ = layer.attention.project(*[layer.norm_1(x)] * 2)
        scores = q[0] @ k[0].transpose(-1, -2) / q.shape[-1] ** 0.5
        weights.append(scores.softmax(-1))
        x = layer(x)
    return weights


def test_rollout_by_keyboard_and_pointer_is_the_references(figure):
    shown = figure("rollout")
    page = shown.page
    for number, token in ((0, 0), (6, 0), (6, 7), (6, 11)):
        page.locator(".figure-choice input").nth(number).check()
        if token == 7:
            page.get_by_label("row 2, column 3", exact=True).click()
        if token == 11:
            page.keyboard.press("ArrowDown")
        numbers = shown.numbers()
        assert (numbers["number"], numbers["token"]) == (number, token)
        weights = attention(number)
        near(numbers["heads"], torch.stack(weights)[:, :, token])
        near(numbers["one"], weights[0][0, token])  # the view that it begins with
        near(numbers["means"], torch.stack(weights).mean(1)[:, token])
        near(numbers["rollout"], attention_rollout(weights)[token])


def test_rollout_without_the_residual_forgets_who_asks(figure):
    shown = figure("rollout")
    before = shown.numbers()["spread"]
    first, second = (layer.mean(0) for layer in attention(0))
    shown.page.get_by_role("radio", name="the mean of a layer").check()
    near(shown.numbers()["one"], first[0])
    shown.page.get_by_role("radio", name="rollout").check()
    shown.page.get_by_role("checkbox").uncheck()
    numbers = shown.numbers()
    near(numbers["rollout"], (second @ first)[0])
    rows = second @ first
    near(numbers["spread"], (rows - rows.mean(0)).abs().sum(-1).mean() / 2)
    assert numbers["spread"] < before / 2


def test_rollout_walks_to_the_class_token_and_back_to_the_grid(figure):
    shown = figure("rollout")
    shown.press(shown.page.get_by_role("button", name="class token"), "ArrowDown")
    assert shown.numbers()["token"] == 1
    shown.page.keyboard.press("ArrowLeft")
    shown.page.keyboard.press("ArrowRight")
    assert shown.numbers()["token"] == 2
    shown.page.keyboard.press("ArrowUp")
    assert shown.numbers()["token"] == 0
    focused = shown.page.evaluate("document.activeElement.textContent")
    assert focused == "class token"


def test_rollout_is_asked_by_touch(figure):
    shown = figure("rollout", browsers.PHONE, has_touch=True)
    shown.page.get_by_label("row 4, column 4", exact=True).tap()
    assert shown.numbers()["token"] == 16


def test_rollout_shows_digits_read_rightly_and_wrongly():
    images = rollout.data()["images"]
    right = [each["label"] == each["answer"] for each in images]
    assert right.count(True) == rollout.RIGHT and right.count(False) == rollout.WRONG
