"""Scores of translations: by hand, and against Multi30k's own tokenised files."""

import gzip
import math
from pathlib import Path

import pytest

from transformer.decoder import bleu
from workbench.errors import WorkbenchError
from workbench.use.metrics import bleu_scores, exact_match, lowercase_and_tokenise

MULTI30K = Path(__file__).resolve().parents[3] / "shared/data/multi30k"

REFERENCES = [
    "Ein Mann fährt mit dem Fahrrad.",
    "Bobby mag Brombeeren.",
    'Das Boot heißt "El Corazon" und ist rot.',
]
HYPOTHESES = [
    "Ein Mann fährt mit dem Rad.",
    "bobby mag brombeeren.",
    'Das Boot heißt "El Corazon" und ist rot.',
]


def test_a_perfect_translation_scores_100() -> None:
    scores = bleu_scores(REFERENCES, REFERENCES, "de")
    assert scores["bleu_cased"] == pytest.approx(100)
    assert scores["bleu_lowercased_tokenised"] == pytest.approx(100)


def test_both_scores_are_chapter_7s_on_their_tokens() -> None:
    """An independent oracle: the BLEU that students write, on each kind of tokens."""
    scores = bleu_scores(HYPOTHESES, REFERENCES, "de")
    pairs = (HYPOTHESES, REFERENCES)
    lowered = [
        [lowercase_and_tokenise(x, "de").split() for x in each] for each in pairs
    ]
    assert scores["bleu_lowercased_tokenised"] == pytest.approx(bleu(*lowered))
    spaced = [
        [x.replace(".", " .").replace('"', ' " ').split() for x in each]
        for each in pairs
    ]
    assert scores["bleu_cased"] == pytest.approx(bleu(*spaced))
    assert scores["bleu_cased"] < scores["bleu_lowercased_tokenised"]


def test_a_value_by_hand() -> None:
    """7 of 8 words, 5 of 7 pairs, 3 of 6 triples, 2 of 5 fours, of the right length."""
    reference, hypothesis = "a b c d e f g h", "a b c d e x g h"
    score = bleu_scores([hypothesis], [reference], "en", form="lowercased")
    by_hand = 100 * math.exp(sum(map(math.log, (7 / 8, 5 / 7, 3 / 6, 2 / 5))) / 4)
    assert score["bleu_lowercased_tokenised"] == pytest.approx(by_hand)


def test_signatures_say_how_each_was_counted() -> None:
    signatures = bleu_scores(HYPOTHESES, REFERENCES, "de")["signatures"]
    assert "case:mixed|eff:no|tok:13a" in signatures["bleu_cased"]
    lowered = signatures["bleu_lowercased_tokenised"]
    assert "case:lc|eff:no|tok:none" in lowered
    assert "sacremoses" in lowered
    assert lowered.endswith("-de")


def test_text_that_is_lowercased_already_has_no_cased_score() -> None:
    tokens = [lowercase_and_tokenise(each, "de") for each in REFERENCES]
    scores = bleu_scores(tokens, tokens, "de", form="lowercased")
    assert set(scores) == {"bleu_lowercased_tokenised", "signatures"}
    assert scores["bleu_lowercased_tokenised"] == pytest.approx(100)


def test_quotes_and_apostrophes_are_written_as_moses_does() -> None:
    assert lowercase_and_tokenise("The boy’s “dog” runs.", "en") == (
        "the boy &apos;s &quot; dog &quot; runs ."
    )


@pytest.mark.parametrize("language", ["en", "de"])
def test_the_text_is_tokenised_as_multi30ks_own_files(language: str) -> None:
    if not MULTI30K.is_dir():
        pytest.skip(f"{MULTI30K} is not here")
    raw, tokenised = (
        gzip.decompress((MULTI30K / f"{name}{language}.gz").read_bytes())
        .decode("utf-8")
        .splitlines()
        for name in ("test_2016_flickr.", "test_2016_flickr.lc.norm.tok.")
    )
    assert len(raw) == 1000
    assert [lowercase_and_tokenise(each, language) for each in raw] == tokenised


def test_nothing_is_written_to_stderr(capsys) -> None:
    tokens = [lowercase_and_tokenise(each, "de") for each in REFERENCES]
    bleu_scores(tokens, tokens, "de", form="lowercased")
    assert capsys.readouterr().err == ""


def test_exact_match_counts_case_and_punctuation_but_not_the_ends() -> None:
    assert exact_match(HYPOTHESES, REFERENCES) == pytest.approx(100 / 3)
    assert exact_match([" a. \n", "b"], ["a.", "b."]) == 50


@pytest.mark.parametrize("score", [exact_match, lambda a, b: bleu_scores(a, b, "de")])
@pytest.mark.parametrize(
    ("ours", "theirs"), [(["a"], []), ([], []), (["a"], ["b"] * 2)]
)
def test_what_does_not_pair_up_is_refused(score, ours, theirs) -> None:
    with pytest.raises(WorkbenchError, match="as many of both"):
        score(ours, theirs)


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(WorkbenchError, match="'upper'"):
        bleu_scores(["a"], ["a"], "de", form="upper")
