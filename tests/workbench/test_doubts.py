"""What the command line says against a translation; its output is the translation."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
import torch

from workbench import __main__
from workbench.data import everyday, phrasebook
from workbench.data.tokenizer import Tokenizer
from workbench.training import records
from workbench.use import doubts, results
from workbench.use.translator import Translation, Translator

KNOWN = "Anna helps the clever queen."
STRANGE = "Zyx helps the qwv."
ENDLESS = "The dog likes the bear"  # it has read no sentence without a sign at its end


@pytest.fixture(scope="module")
def folder() -> Path:
    """Where the translator is that visitors type into."""
    return results.model_folder("everyday")


@pytest.fixture(scope="module")
def translator(folder) -> Translator:
    return Translator.load(folder, torch.device("cpu"))


def translate(capsys, monkeypatch, *words) -> tuple[list[str], list[str]]:
    """Run the command: the lines of its output, and of its errors."""
    typed = ["workbench", "translate", *map(str, words), "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", typed)
    assert __main__.main() == 0
    found = capsys.readouterr()
    return found.out.splitlines(), found.err.splitlines()


# --- The command line -----------------------------------------------------------------


def test_a_translation_without_doubts_stands_alone(folder, capsys, monkeypatch):
    output, errors = translate(capsys, monkeypatch, folder, KNOWN, "")
    assert (output, errors) == (["Anna hilft der klugen Königin.", ""], [])


def test_doubts_are_said_apart_from_the_translations(folder, capsys, monkeypatch):
    output, errors = translate(capsys, monkeypatch, folder, KNOWN, STRANGE, ENDLESS)
    assert len(output) == 3 and output[0] == "Anna hilft der klugen Königin."
    assert errors[0] == "sentence 2: the model has never read “Zyx”, “qwv”"
    stopped = [each for each in errors if each.startswith("sentence 3: ")]
    assert len(stopped) == 1 and stopped[0].endswith("tokens without an end")


def test_probabilities_are_said_if_they_are_asked_for(
    folder, translator, capsys, monkeypatch
):
    words = [folder, KNOWN, "", "--probability"]
    output, errors = translate(capsys, monkeypatch, *words)
    assert output == ["Anna hilft der klugen Königin.", ""]
    (said,) = errors
    (written,) = translator.translations([KNOWN])
    share = translator.probability(KNOWN, written)
    assert said == (
        f"sentence 1: the model gives this translation a probability of {share:.2f}"
    )


# --- What a translation says of itself ------------------------------------------------


def test_a_translation_says_whether_it_came_to_an_end(translator):
    ended, empty, endless = translator.translations([KNOWN, " ", ENDLESS])
    assert ended.ended and ended.text == "Anna hilft der klugen Königin."
    assert ended.text == translator.tokenizer.decode(ended.ids)
    assert empty == Translation() and empty.ended
    assert not endless.ended
    width = max(len(translator.tokenizer.encode(each)) for each in (KNOWN, ENDLESS))
    assert len(endless.ids) == 2 * width + 15


@pytest.mark.parametrize("text", [KNOWN, ENDLESS])
def test_its_probability_is_that_of_all_its_tokens(translator, text):
    (written,) = translator.translations([text])
    ids = [*written.ids, Tokenizer.EOS][: len(written.ids) + written.ended]
    source, share = torch.tensor([translator.tokenizer.encode(text)]), 1.0
    for place, token in enumerate(ids):
        before = torch.tensor([[Tokenizer.SOS, *ids[:place]]])
        with torch.no_grad():
            logits = translator.model(source, before)[0, -1]
        share *= logits.softmax(dim=-1)[token].item()
    assert translator.probability(text, written) == pytest.approx(share, rel=1e-3)


# --- Words ----------------------------------------------------------------------------


@pytest.mark.parametrize("grammar", [phrasebook, everyday])
def test_no_sentence_of_a_grammar_has_a_word_that_was_never_read(grammar):
    name = grammar.__name__.rpartition(".")[2]
    often = phrasebook.often_in(grammar.draw(random.Random(0), "train", 8000, set()))
    drawn = grammar.draw(random.Random(7), "test", 300, often)
    asked = [english for english, _ in drawn]
    found = doubts.unread_words(results.model_folder(name), "en", asked)
    assert found == [[] for _ in asked]


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("anna helps the queen.", ["anna"]),
        ("The Queen helps; the DOG helps!", ["Queen", ";", "DOG", "!"]),
        ("Queens help. Queens help.", []),
        ("I don't know.", ["don't"]),
        ("Zyx likes Zyx.", ["Zyx"]),
        ("", []),
        ("  ", []),
    ],
)
def test_words_are_unread_as_they_are_written(folder, text, unread):
    assert doubts.unread_words(folder, "en", [text]) == [unread]


def test_nothing_is_listed_where_nothing_is_known(folder, tmp_path):
    assert doubts.unread_words(folder, "de", [STRANGE]) == [[]]
    assert doubts.unread_words(tmp_path, "en", [STRANGE, ""]) == [[], []]
    record = records.read(folder / records.FILE)
    record["data"] = {"name": "text:pairs.tsv"}
    records.write(tmp_path / records.FILE, record)
    assert doubts.unread_words(tmp_path, "en", [STRANGE]) == [[]]
