"""BPE dropout: every cut is of the same text, chance is as it says, and comes again."""

import random
from collections import Counter
from itertools import islice

import pytest

from transformer.decoder import shift_right
from workbench.data.batches import PairBatches
from workbench.data.segmentations import RedrawnBatches, Segmentations, cut
from workbench.data.tokenizer import Tokenizer
from workbench.errors import WorkbenchError

TEXTS = [
    "the baker sells bread to the bakers",
    "a bakery, a baker: Süße Brötchen × 3!",
    "der Bäcker backt Brot",
    "",
] * 5
TOKENIZER = Tokenizer.train(TEXTS, 330)
PAIRS = list(zip(TEXTS, reversed(TEXTS), strict=True))


def drawn(dropout: float, number: int = 0, seed: int = 0) -> list[list[int]]:
    ways = Segmentations(TOKENIZER, TEXTS, dropout, seed)
    return ways.encode_all(random.Random(number))


def test_without_dropout_words_are_cut_as_the_library_does():
    assert drawn(0.0) == TOKENIZER.encode_all(TEXTS)


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.99])
def test_every_cut_gives_the_text_back(dropout):
    assert [TOKENIZER.decode(ids) for ids in drawn(dropout)] == TEXTS


def test_more_dropout_means_more_and_shorter_pieces():
    lengths = [sum(map(len, drawn(dropout))) for dropout in (0.0, 0.1, 0.5, 0.99)]
    assert lengths == sorted(set(lengths))


def test_cuts_come_again_from_a_seed_and_change_with_it():
    assert drawn(0.3) == drawn(0.3)
    assert drawn(0.3) != drawn(0.3, number=1)
    assert drawn(0.3) != drawn(0.3, seed=1)


def test_a_pair_is_passed_over_as_often_as_is_said():
    """Counted by hand: ab is joined with 0.7, then abc with 0.7 again."""
    draw = random.Random(0)
    ranks = {("a", "b"): 0, ("ab", "c"): 1}
    found = Counter(" ".join(cut("abc", ranks, 0.3, draw)) for _ in range(20_000))
    expected = {"abc": 0.49, "ab c": 0.21, "a b c": 0.3}
    assert set(found) == set(expected)
    for way, share in expected.items():
        assert found[way] / 20_000 == pytest.approx(share, abs=0.01)


def test_a_pair_learned_later_is_joined_where_the_earlier_is_passed_over():
    draw = random.Random(0)
    ranks = {("a", "b"): 0, ("b", "c"): 1}
    found = Counter(" ".join(cut("abc", ranks, 0.5, draw)) for _ in range(20_000))
    assert found["ab c"] / 20_000 == pytest.approx(0.5, abs=0.02)
    assert found["a bc"] / 20_000 == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize("dropout", [-0.1, 1.0])
def test_dropout_out_of_range_is_refused(dropout):
    with pytest.raises(WorkbenchError, match="from 0 to below 1"):
        Segmentations(TOKENIZER, TEXTS, dropout, 0)


def redrawn(seed: int = 0) -> RedrawnBatches:
    sources, targets = (
        Segmentations(TOKENIZER, texts, 0.3, seed) for texts in zip(*PAIRS, strict=True)
    )

    def batches_of(sources, targets):
        return PairBatches(sources, targets, 64, "cpu", seed, shift_right=shift_right)

    return RedrawnBatches(sources, targets, batches_of, seed)


def texts_of(batches) -> Counter:
    """Count the pairs of texts in batches, rows without a label left out."""
    return Counter(
        (TOKENIZER.decode(source.tolist()), TOKENIZER.decode(labels.tolist()))
        for sources, _, all_labels in batches
        for source, labels in zip(sources, all_labels, strict=True)
        if labels.any()
    )


def test_an_epoch_has_its_number_of_batches_and_is_cut_anew():
    batches = redrawn()
    epochs = [list(batches.epoch(number)) for number in range(5)]
    assert {len(epoch) for epoch in epochs} == {len(batches)}
    assert texts_of(epochs[0]) == Counter(PAIRS)
    for epoch in epochs[1:]:
        assert set(texts_of(epoch)) <= set(PAIRS)
        assert texts_of(epoch).total() > 0.6 * len(PAIRS)
    pieces = {tuple(sorted(s.ne(0).sum().item() for s, _, _ in e)) for e in epochs}
    assert len(pieces) > 1


def test_an_epoch_is_the_same_for_the_same_number():
    again = redrawn().epoch(3)
    for batch, other in zip(redrawn().epoch(3), again, strict=True):
        assert all(a.equal(b) for a, b in zip(batch, other, strict=True))
    batch, other = (next(islice(redrawn(seed).epoch(0), 1)) for seed in (0, 1))
    assert batch[0].shape != other[0].shape or not batch[0].equal(other[0])
