"""The language model: equal to PyTorch's own, scored rightly, trained and let write."""

import itertools
import json
import math
import re
import shutil

import pytest
import torch
import torch.nn.functional as F

from tests.workbench import test_commands
from tests.workbench.test_commands import run
from workbench.data import corpora
from workbench.data.block_batches import BlockBatches
from workbench.data.tales.stories import Prompt
from workbench.data.text_tokenizer import TextTokenizer
from workbench.errors import WorkbenchError
from workbench.model import models
from workbench.model.blocks import remember
from workbench.model.models import LanguageModelConfig
from workbench.training import records
from workbench.training.checkpoint import CHECKPOINT
from workbench.training.optimizers import Muon, orthogonal
from workbench.use import counting, scoring, writing

PARTS = models.load_parts()
OLD = LanguageModelConfig(
    11, 16, 4, 4, 2, 24, 12, 0.0, "layer", "relu", "learned", qk_norm=False
)
NEW = LanguageModelConfig(11, 16, 4, 2, 2, 24, 12, 0.0, "rms", "swiglu", "rotary")
CHOICES = pytest.mark.parametrize("config", [OLD, NEW], ids=["2017", "2025"])


def built(config: LanguageModelConfig) -> torch.nn.Module:
    """A model in which no parameter is still 0 or 1, in evaluation mode."""
    torch.manual_seed(0)
    model = models.build(config, PARTS)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.1 * torch.randn_like(weight)
    return model.eval()


# --- The model ------------------------------------------------------------------------


def rotated(x: torch.Tensor) -> torch.Tensor:
    """Rotary positions by complex numbers, in double precision; x (B, heads, T, d)."""
    length, width = x.shape[-2:]
    rates = 10_000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.outer(torch.arange(length, dtype=torch.float64), rates)
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    turned = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(turned).flatten(-2).float()


def by_pytorch(config: LanguageModelConfig, w: dict, ids: torch.Tensor) -> torch.Tensor:
    """The logits from a state dict and PyTorch's functions alone."""
    width, d_k = config.d_model, config.d_model // config.heads

    def norm(x, name):
        gamma = w[f"{name}.gamma"]
        if config.norm == "rms":
            return F.rms_norm(x, (width,), gamma, 1e-5)
        return F.layer_norm(x, (width,), gamma, w[f"{name}.beta"], 1e-5)

    def heads(x, block, name):
        x = (x @ w[f"{block}.attention.w_{name}"]).unflatten(-1, (-1, d_k))
        x = x.transpose(1, 2)
        if name != "v" and config.qk_norm:
            x = F.rms_norm(x, (d_k,), w[f"{block}.norm_{name}.gamma"], 1e-5)
        return rotated(x) if name != "v" and config.positions == "rotary" else x

    x = F.embedding(ids, w["embedding.weight"]) * math.sqrt(width)
    if config.positions == "learned":
        x = x + w["position.table"][: ids.shape[1]]
    for number in range(config.layers):
        block = f"blocks.{number}"
        before = norm(x, f"{block}.norm_1")
        q, k, v = (heads(before, block, name) for name in "qkv")
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + z.transpose(1, 2).flatten(2) @ w[f"{block}.attention.w_o"]
        before, inside = norm(x, f"{block}.norm_2"), f"{block}.feed_forward"
        if config.feed_forward == "swiglu":
            hidden = F.silu(before @ w[f"{inside}.w_gate"])
            x = x + hidden * (before @ w[f"{inside}.w_up"]) @ w[f"{inside}.w_down"]
        else:
            hidden = F.relu(before @ w[f"{inside}.w_1"] + w[f"{inside}.b_1"])
            x = x + hidden @ w[f"{inside}.w_2"] + w[f"{inside}.b_2"]
    return norm(x, "norm") @ w["embedding.weight"].T


@CHOICES
@pytest.mark.parametrize("fused", [False, True], ids=["written", "fused"])
def test_it_computes_what_pytorch_computes(config, fused):
    model, ids = built(config), torch.randint(11, (3, 12))
    model.fused = fused
    expected = by_pytorch(config, model.state_dict(), ids)
    torch.testing.assert_close(model(ids), expected, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("way", ["written", "fused", "cached"])
def test_its_blocks_are_what_somebody_wrote(way, monkeypatch):
    """Whichever way they attend, what is around attention is the writer's own."""
    model, called = built(NEW), []
    model.fused = way == "fused"
    for name in ("project", "finish"):
        own = getattr(PARTS.DecoderBlock, name)

        def noted(block, *given, own=own, name=name):
            called.append(name)
            return own(block, *given)

        monkeypatch.setattr(PARTS.DecoderBlock, name, noted)
    model(torch.zeros(1, 3, dtype=int), model.new_caches() if way == "cached" else None)
    assert called == ["project", "finish"] * NEW.layers


def test_one_of_its_shapes_is_chapter_7_s_model():
    """Without biases in its attention, that is what a GPT of 2019 has."""
    config = LanguageModelConfig(
        11, 16, 4, 4, 2, 24, 12, 0.0, "layer", "gelu", "learned", qk_norm=False
    )
    ours, ids = built(config), torch.randint(11, (2, 9))
    theirs = PARTS.DecoderOnly(11, 16, 4, 2, 24, 12)
    state = {
        name.replace("blocks.", "blocks.layers.", 1): value
        for name, value in ours.state_dict().items()
    }
    state |= {
        f"blocks.norm.{name}": state.pop(f"norm.{name}") for name in ("gamma", "beta")
    }
    missing = theirs.load_state_dict(state, strict=False)
    assert not missing.unexpected_keys
    assert all(".attention.b_" in name for name in missing.missing_keys)
    torch.testing.assert_close(ours(ids), theirs.eval()(ids), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"norm": "batch"}, "norm must be layer or rms"),
        ({"kv_heads": 3}, "kv_heads: 3 do not divide"),
        ({"d_model": 12}, "heads: each has 3 features"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(change, message):
    values = {"kind": "lm", **NEW.__dict__, **change}
    with pytest.raises(WorkbenchError, match=message):
        models.from_json(json.dumps(values))


# --- Writing --------------------------------------------------------------------------


@CHOICES
@pytest.mark.parametrize("fused", [False, True], ids=["written", "fused"])
def test_with_a_cache_it_writes_the_same(config, fused):
    model = built(config)
    model.fused = fused
    for greedy in (0.0, 1.0):  # 40 tokens: more than the model looks back on
        texts = [
            list(writing.write(model, [1, 2, 3], 40, PARTS, greedy, 0.9, 7, cache))
            for cache in (True, False)
        ]
        assert texts[0] == texts[1]
    with_cache, without = (
        writing.Reading(model, PARTS, cache) for cache in (True, False)
    )
    for ids in ([1, 2, 3], *([number % 11] for number in range(30))):
        torch.testing.assert_close(
            with_cache.read(ids), without.read(ids), atol=2e-5, rtol=1e-4
        )
    kept = with_cache.caches[0]["k"].shape
    assert kept[0] * kept[1] == config.kv_heads  # shared heads are kept once


def test_what_is_remembered_is_all_that_was_told_in_its_order():
    told = torch.randn(2, 1, 2, 150, 3)  # of keys and values
    cache = {name: each[:, :, :5] for name, each in zip("kv", told, strict=True)}
    rooms = set()
    for place in range(5, 150):
        remember(cache, *told[..., place : place + 1, :])
        rooms.add(cache["k"].data_ptr())
    torch.testing.assert_close(torch.stack((cache["k"], cache["v"])), told)
    assert len(rooms) <= 3  # and it was seldom copied


def test_the_window_is_read_anew_only_once_in_half_a_context():
    looked_at = [writing.window(count, 12) for count in range(1, 40)]
    assert looked_at[:12] == list(range(1, 13))
    again = [a >= b for a, b in itertools.pairwise(looked_at)]
    assert max(looked_at) == 12 and min(looked_at[12:]) == 6 and sum(again) == 4


def test_a_prompt_that_does_not_fit_is_refused():
    with pytest.raises(WorkbenchError, match="13 tokens, and this model reads 12"):
        next(writing.write(built(OLD), [1] * 13, 5, PARTS))
    with pytest.raises(WorkbenchError, match="prompt is empty"):
        next(writing.write(built(OLD), [], 5, PARTS))


# --- Text and tokens ------------------------------------------------------------------


@pytest.mark.parametrize("merges", [0, 20])
def test_a_tokenizer_gives_every_text_back(merges, tmp_path):
    text = "One fox, two foxes.\nThree geese and a goose.\n" * 3
    tokenizer = TextTokenizer.train(text, sorted(set(text)), merges, PARTS)
    tokenizer.save(tmp_path)
    again = TextTokenizer.load(tmp_path, PARTS)
    ids = again.encode(text)
    assert again.decode(ids) == text and again.name == tokenizer.name
    assert (len(ids) < len(text)) == bool(merges) and max(ids) < len(again)
    with pytest.raises(WorkbenchError, match=r"character 'ß'.*leave it out"):
        again.encode("groß")


def test_blocks_hold_the_text_and_what_follows():
    ids = list(range(100))
    batches = BlockBatches(ids, 9, 4, "cpu")
    seen = [row for batch in batches.epoch(0) for row in zip(*batch, strict=True)]
    assert len(seen) == 4 * len(batches) >= 8
    for inputs, labels in seen:
        assert (labels == inputs + 1).all()
    starts = [int(inputs[0]) for inputs, _ in seen]
    assert len(set(starts)) == len(starts) and starts != sorted(starts)
    with pytest.raises(WorkbenchError, match=r"9 tokens, and a block .* 10"):
        BlockBatches(ids[:9], 9, 4, "cpu")


def test_blocks_of_stories_begin_with_one_and_lose_none():
    stories = [[1] * 3, [2] * 4, [3] * 2, [4] * 30, [5] * 3]
    ids = [each for story in stories for each in [*story, 0]]
    batches = BlockBatches(ids, 10, 1, "cpu", newline=0)
    begins = [0, 4, 9, 12, 43]
    starts = batches.starts.tolist()
    assert starts[:3] == [0, 9, 12]
    whole = [story for story in (0, 1, 2, 4) if any(
        start <= begins[story] and begins[story] + len(stories[story]) <= start + 10
        for start in starts
    )]  # fmt: skip
    assert whole == [0, 1, 2, 4]
    read = {place for start in starts for place in range(start, start + 11)}
    assert read == set(range(len(ids)))


def test_a_text_is_cut_in_three(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("".join(chr(97 + number % 26) for number in range(1000)))
    texts = corpora.load_texts(f"text:{path}")
    assert [len(texts.train), len(texts.validation), len(texts.test)] == [880, 20, 100]
    assert texts.train + texts.validation + texts.test == path.read_text()


# --- Scores ---------------------------------------------------------------------------


def test_the_code_length_is_the_sum_over_all_tokens():
    model, ids = built(NEW), torch.randint(11, (12,)).tolist()
    logits = model(torch.tensor([ids[:-1]]))[0].log_softmax(-1)
    each = [-logits[n, following].item() for n, following in enumerate(ids[1:])]
    found = scoring.code_length(model, ids, 12)
    assert found == pytest.approx(math.log(11) + sum(each), rel=1e-5)
    bits = scoring.text_scores(found, "ä" * 6)["bits_per_byte"]
    assert bits == pytest.approx(found / math.log(2) / 12)


def test_in_blocks_each_token_is_scored_once():
    class Uniform(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = torch.nn.Embedding(5, 1)

        def forward(self, ids):
            return torch.zeros(*ids.shape, 5)

    for tokens in (1, 2, 7, 8, 9, 23):
        found = scoring.code_length(Uniform(), [0] * tokens, 8)
        assert found == pytest.approx(tokens * math.log(5))


def test_an_agreement_is_kept_only_if_all_of_it_is_right():
    model, tokenizer = built(NEW), TextTokenizer("abcdefghijk")
    best = list(writing.write(model, [1, 2, 3], 3, PARTS, 0.0))
    right, begun = tokenizer.decode(best), tokenizer.decode([1, 2, 3])
    wrong = right[:-1] + ("a" if right[-1] != "a" else "b")
    asked = [Prompt("verb", begun, each, ()) for each in (right, wrong, right[:1])]
    assert scoring.keeps(model, tokenizer, asked) == [True, False, True]
    scores = scoring.agreement_scores(model, tokenizer, {"verb": asked})
    assert scores == {"agreement_verb": pytest.approx(200 / 3)}


def share(train: str, before: str, character: str, size: int) -> float:
    """Witten and Bell's share, by its definition."""
    shorter = share(train, before[1:], character, size) if before else 1 / size
    places = [n for n in range(len(before), len(train)) if train[:n].endswith(before)]
    followed = [train[n] for n in places]
    if not followed:
        return shorter
    kinds = len(set(followed))
    return (followed.count(character) + kinds * shorter) / (len(followed) + kinds)


def test_counting_is_witten_and_bell_s():
    train, test = "abracadabra, alakazam! abraham " * 3, "abrakadabra, zambra!"
    alphabet = sorted(set(train + test))
    found = dict(counting.counted(train, test, alphabet, [1, 3]))
    for order in (1, 3):
        expected = -sum(
            math.log(
                share(train, test[max(0, n - order + 1) : n], test[n], len(alphabet))
            )
            for n in range(len(test))
        )
        assert found[order] == pytest.approx(expected)


def test_a_packer_needs_little_for_what_it_has_seen():
    text = "The quick brown fox jumps over the lazy dog. " * 40
    assert counting.packed(text, text[:900]) < counting.packed(text, text[899::-1])


# --- Muon -----------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 24, 24), (2, 16, 40), (40, 16)])
def test_newton_and_schulz_bring_singular_values_near_1(shape):
    torch.manual_seed(0)
    matrices = torch.randn(shape) * 7
    found = orthogonal(matrices)
    u, before, v = torch.linalg.svd(matrices, full_matrices=False)
    values = torch.linalg.svdvals(found)
    kept = before / before.norm(dim=-1, keepdim=True) > 0.01
    assert values[kept].min() > 0.6 and values[kept].max() < 1.3
    turned = u.mT @ found @ v.mT  # diagonal: the singular vectors are the same
    rest = turned - torch.diag_embed(turned.diagonal(dim1=-2, dim2=-1))
    assert rest.abs().max() < 1e-3


def test_muon_is_pytorch_s():
    theirs = getattr(torch.optim, "Muon", None)
    if theirs is None:
        pytest.skip("this PyTorch has no Muon")
    torch.manual_seed(0)
    start, gradients = torch.randn(12, 20), torch.randn(3, 12, 20)
    found = []
    for make in (
        lambda w: Muon([{"params": [w], "muon": True}], lr=0.1, weight_decay=0.2),
        lambda w: theirs([w], lr=0.1, weight_decay=0.2, adjust_lr_fn="match_rms_adamw"),
    ):
        weight = torch.nn.Parameter(start.clone())
        optimizer = make(weight)
        for gradient in gradients:
            weight.grad = gradient.clone()
            optimizer.step()
        found.append(weight.detach())
    moved = (found[1] - start).norm()
    assert (found[0] - found[1]).norm() < 0.02 * moved  # theirs computes in bfloat16


# --- The commands ---------------------------------------------------------------------

SMALL = [*test_commands.SMALL, "--context", "16", "--batch", "128"]


@pytest.fixture(scope="module")
def song(tmp_path_factory):
    """A text of 3,000 characters."""
    lines = [f"{n} green bottles, hanging on the wall.\n" for n in range(90, 10, -1)]
    path = tmp_path_factory.mktemp("song") / "song.txt"
    path.write_text("".join(lines))
    return path


def train(song, out, *more):
    return ["train", "lm", "--data", f"text:{song}", "--out", out, *SMALL, *more]


def test_a_model_is_trained_scored_and_writes(tmp_path, song, capsys, monkeypatch):
    """Of somebody's own parts, as ``assemble`` makes them."""
    out, mine = tmp_path / "out", tmp_path / "mine"
    shutil.copytree(PARTS.place, mine / "transformer")
    words = train(song, out, "--epochs", "12", "--optimizer", "muon")
    words += ["--rate", "0.02", "--merges", "10", "--kv-heads", "1", "--parts", mine]
    words += ["--weight-decay", "0.01"]
    assert run(capsys, monkeypatch, *words)[0] == 0
    names = {path.name for path in out.iterdir()}
    files = {"model.safetensors", "config.json", "tokenizer.json", "metrics.json"}
    assert names == files | {"curves.png"}
    record = records.read(out / "metrics.json")
    assert (record["task"], record["merges"]) == ("lm", 10)
    how = record["training"]
    assert (how["optimizer"], how["weight_decay"]) == ("muon", 0.01)
    (nats,) = record["scores"]["test"]["nats_per_character"]
    code, output, _ = run(capsys, monkeypatch, "evaluate", "lm", out)
    rows = [line.rsplit(maxsplit=2) for line in output.splitlines()]
    table = {row[0]: row[1:] for row in rows}
    assert code == 0 and table["this model"][0] == f"{nats:.3f}"
    counts = [float(table[f"counting {n} characters"][0]) for n in range(2, 7)]
    assert float(table["xz"][0]) > 0
    assert nats < counts[0] < float(table["counting 1 character"][0])

    texts = []
    for more in ([], ["--no-cache"], ["--temperature", "0", "--length", "5"]):
        code, output, _ = run(
            capsys, monkeypatch, "write", out, "9 green", "--length", "30", *more
        )
        assert code == 0 and output.startswith("9 green")
        texts.append(output)
    assert texts[0] == texts[1] and len(texts[2]) < len(texts[0])


def test_a_stopped_run_goes_on_and_ends_the_same(tmp_path, song, capsys, monkeypatch):
    code_length, calls = scoring.code_length, []

    def stop(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return code_length(*arguments)

    more = ["--epochs", "3", "--dropout", "0.1", "--optimizer", "muon"]
    assert run(capsys, monkeypatch, *train(song, tmp_path / "whole", *more))[0] == 0
    words = train(song, tmp_path / "cut", *more)
    monkeypatch.setattr(scoring, "code_length", stop)
    assert run(capsys, monkeypatch, *words)[0] == 130
    assert (tmp_path / "cut" / CHECKPOINT).exists()
    monkeypatch.setattr(scoring, "code_length", code_length)
    assert run(capsys, monkeypatch, *words, "--resume")[0] == 0
    whole, cut = (
        (tmp_path / name / "model.safetensors").read_bytes()
        for name in ("whole", "cut")
    )
    assert whole == cut


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """The folder of a model that has not learned anything."""
    folder = tmp_path_factory.mktemp("trained")
    tokenizer = TextTokenizer("abcdefghijk", parts=PARTS)
    config = LanguageModelConfig(**NEW.__dict__ | {"tokenizer": tokenizer.name})
    models.save(folder, models.build(config, PARTS), config)
    tokenizer.save(folder)
    return folder


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "lm", "--data", "text:OUT/empty"], "OUT/empty is empty"),
        (["train", "lm", "--data", "text:OUT/short"], "a block .* shorter --context"),
        (["train", "lm", "--data", "text:OUT/latin"], "OUT/latin is not UTF-8"),
        (["train", "lm", "--data", "text:OUT/none"], "OUT/none is not a file"),
        (["train", "lm", "--data", "plays"], "'plays'.*tales"),
        (["train", "lm", "--data", "shakespeare", "--data-dir", "OUT"], "no input.txt"),
        (["train", "lm", "--data", "shakespeare", "--data-dir", "OUT/bad"], "SHA-256"),
        (["write", "OUT/lm", "abcdefghijkabc"], "14 tokens, and this model reads 12"),
        (["write", "OUT/lm", "Once"], "character 'O'"),
        (["write", "OUT/lm", "abc", "--top-p", "0"], "--top-p"),
        (["write", "OUT/other", "abc"], "of different runs"),
        (["write", "OUT/none", "abc"], "none.*config.json"),
    ],
)
def test_bad_input_is_one_line(tmp_path, trained, capsys, monkeypatch, words, message):
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "short").write_text("to be\n" * 3)
    (tmp_path / "latin").write_bytes("größer".encode("latin-1"))
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "input.txt").write_text("First Citizen:")
    for name in ("lm", "other"):
        shutil.copytree(trained, tmp_path / name)
    TextTokenizer("kjihgfedcba").save(tmp_path / "other")
    words = [word.replace("OUT", str(tmp_path)) for word in words]
    if words[0] == "train":
        words += ["--out", str(tmp_path / "new"), "--device", "cpu"]
    code, output, errors = run(capsys, monkeypatch, *words)
    assert (code, output) == (2, "")
    assert errors.startswith("error: ") and errors.count("\n") == 1
    assert re.search(message.replace("OUT", str(tmp_path)), errors)
