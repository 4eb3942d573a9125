"""The tokenizer: every text comes back, special ids stand for nothing."""

import json
import re

import pytest

from workbench.data.tokenizer import Tokenizer
from workbench.errors import WorkbenchError

TEXTS = [
    "Bobby likes blackberries.",
    "Bobby mag Brombeeren.",
    "The small boy does not like the blackberry.",
    "Der kleine Junge mag die Brombeere nicht.",
] * 5


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(TEXTS, 330)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "  two spaces  here ",
        "Bobby mag Brombeeren.",
        "äöüß ÄÖÜ é",
        "never seen: 日本 🙂\n\ttabs",
        "<pad> <eos> <sos>",
        "a\u2028b",
        "e\u0301 is not é",
    ],
)
def test_every_text_comes_back_unchanged(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert all(4 <= each < len(tokenizer) for each in ids)


def test_frequent_words_are_one_token(tokenizer):
    assert len(tokenizer.encode("Bobby")) == 1
    assert len(tokenizer.encode("Bobby mag Bobby")) == 3


def test_a_word_is_the_same_token_first_and_later(tokenizer):
    first, _, later = tokenizer.encode("Bobby mag Bobby")
    assert first == later


def test_all_texts_at_once_are_as_one_by_one(tokenizer):
    assert tokenizer.encode_all(TEXTS) == [tokenizer.encode(text) for text in TEXTS]
    assert tokenizer.encode_all([]) == []


def test_decoding_stops_at_the_end_and_drops_special_ids(tokenizer):
    ids = tokenizer.encode("Bobby mag")
    framed = [Tokenizer.SOS, ids[0], Tokenizer.PAD, ids[1], Tokenizer.EOS, *ids]
    assert tokenizer.decode(framed) == "Bobby mag"
    assert tokenizer.decode([Tokenizer.EOS]) == tokenizer.decode([]) == ""


def test_training_is_deterministic_and_keeps_to_the_size(tokenizer):
    again = Tokenizer.train(TEXTS, 330)
    assert again.inner.to_str() == tokenizer.inner.to_str()
    assert 260 < len(tokenizer) <= 330


def test_a_vocabulary_without_room_for_the_bytes_is_refused():
    with pytest.raises(WorkbenchError, match="take 260 or more"):
        Tokenizer.train(TEXTS, 100)


def test_a_saved_tokenizer_is_the_same(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.json"
    tokenizer.save(path)
    loaded = Tokenizer.load(path)
    assert len(loaded) == len(tokenizer)
    for text in [*TEXTS, "<pad> ß"]:
        assert loaded.encode(text) == tokenizer.encode(text)
    assert [each.name for each in tmp_path.iterdir()] == ["tokenizer.json"]


def cut(text: str) -> str:
    return text[: len(text) // 2]


def swapped(text: str) -> str:
    return text.replace('"<pad>"', '"<x>"').replace('"<unk>"', '"<pad>"')


def without_decoder(text: str) -> str:
    return re.sub(r'"decoder":\{[^}]*\}', '"decoder":null', text)


@pytest.mark.parametrize(
    "breaking",
    [
        cut,
        swapped,
        without_decoder,
        lambda text: "",
        lambda text: "[]",
        lambda text: "{}",
        lambda text: "3",
    ],
)
def test_a_broken_file_is_refused_by_name(tokenizer, tmp_path, breaking):
    path = tmp_path / "tokenizer.json"
    tokenizer.save(path)
    path.write_text(breaking(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(WorkbenchError, match=r"tokenizer\.json is not a tokenizer"):
        Tokenizer.load(path)


def test_bytes_and_a_missing_file_are_refused_by_name(tmp_path):
    path = tmp_path / "tokenizer.json"
    with pytest.raises(WorkbenchError, match="is not there"):
        Tokenizer.load(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WorkbenchError, match="is not a tokenizer"):
        Tokenizer.load(path)


def test_a_tokenizer_with_settings_of_its_own_is_refused(tmp_path) -> None:
    """They may hold a regular expression that never ends."""
    path = tmp_path / "tokenizer.json"
    Tokenizer.train(["a few words"], 300).save(path)
    Tokenizer.load(path)
    content = json.loads(path.read_text())
    slow = {"Regex": "(((a|aa)+)+)+$"}
    content["normalizer"] = {"type": "Replace", "pattern": slow, "content": "a"}
    path.write_text(json.dumps(content))
    with pytest.raises(WorkbenchError, match="cuts texts in another way"):
        Tokenizer.load(path)
