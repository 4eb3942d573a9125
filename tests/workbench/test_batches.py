"""Batches: every pair once an epoch, few shapes, the same again from the same seed."""

import random
from collections import Counter

import pytest
import torch

from transformer.decoder import sequence_loss, shift_right
from workbench.data.batches import PairBatches
from workbench.data.tokenizer import Tokenizer
from workbench.errors import WorkbenchError

PAD, SOS, EOS = Tokenizer.PAD, Tokenizer.SOS, Tokenizer.EOS


def corpus(pairs: int, longest: int = 20, seed: int = 0):
    """Draw sequences of different length, also empty ones."""
    draw = random.Random(seed)
    return [
        [
            [draw.randrange(4, 99) for _ in range(draw.randrange(longest))]
            for _ in range(pairs)
        ]
        for _ in "st"
    ]


def real(row: torch.Tensor) -> tuple[int, ...]:
    return tuple(each for each in row.tolist() if each != PAD)


def pairs_of(batches) -> Counter:
    """Count the pairs in batches, rows without a label left out."""
    found = Counter()
    for source, inputs, labels in batches:
        for s, i, t in zip(source, inputs, labels, strict=True):
            if real(t):
                assert real(i) == (SOS, *real(t)[:-1]) and real(t)[-1] == EOS
                found[real(s), real(t)[:-1]] += 1
    return found


@pytest.mark.parametrize("pairs", [1, 2, 97, 300])
def test_every_pair_comes_exactly_once_an_epoch(pairs):
    sources, targets = corpus(pairs)
    batches = PairBatches(sources, targets, 100, "cpu")
    expected = Counter(zip(map(tuple, sources), map(tuple, targets), strict=True))
    for number in (0, 1):
        epoch = list(batches.epoch(number))
        assert len(epoch) == len(batches)
        assert pairs_of(epoch) == expected


def test_inputs_and_labels_are_those_of_shift_right():
    sources, targets = [[5], [6, 7], [8]], [[9, 8, 7], [], [4]]
    ((source, inputs, labels),) = PairBatches(
        sources, targets, 99, "cpu", lengths=(4,)
    ).epoch(0)
    order = [sources.index(list(real(row))) for row in source]
    expected = shift_right([targets[each] for each in order], SOS, EOS, PAD)
    assert torch.equal(inputs, expected[0]) and torch.equal(labels, expected[1])
    assert source.dtype == inputs.dtype == labels.dtype == torch.long


def test_batches_have_few_shapes_and_no_more_tokens_than_allowed():
    batches = PairBatches(*corpus(400), 128, "cpu", lengths=(8, 16, 32))
    shapes = {tuple(each.shape) for batch in batches.epoch(0) for each in batch}
    assert shapes == set(batches.shapes())
    assert len(shapes) <= 3 and all(rows * width <= 128 for rows, width in shapes)


def test_a_pair_is_as_wide_as_its_longer_side_needs():
    sources, targets = [[5] * 8, [5] * 3, [5] * 9], [[6], [6] * 8, [6] * 7]
    batches = PairBatches(sources, targets, 16, "cpu", lengths=(16, 8))
    assert batches.shapes() == [(1, 8), (1, 16)] and len(batches) == 3


def test_a_few_long_pairs_are_joined_by_the_longest_of_the_others():
    sources = [[5] * 20] * 3 + [[6] * 7] * 2 + [[7] * 4] * 95
    batches = PairBatches(sources, [[8]] * 100, 160, "cpu", lengths=(8, 32))
    assert batches.shapes() == [(19, 8), (5, 32)] and len(batches) == 6
    wide = [batch[0] for batch in batches.epoch(0) if batch[0].shape[1] == 32]
    assert sorted(wide[0][:, 0].tolist()) == [5, 5, 5, 6, 6]
    assert sum(pairs_of(batches.epoch(0)).values()) == 100


def test_no_batch_is_mostly_empty():
    batches = PairBatches([[5]] * 520, [[6]] * 520, 512 * 4, "cpu", lengths=(4,))
    assert batches.shapes() == [(260, 4)] and len(batches) == 2


def test_empty_rows_attend_to_something_and_weigh_nothing():
    batches = PairBatches([[5]] * 7, [[6]] * 7, 3 * 4, "cpu", lengths=(4,))
    assert batches.shapes() == [(3, 4)] and len(batches) == 3
    rows = [row for batch in batches.epoch(0) for row in zip(*batch, strict=True)]
    empty = [row for row in rows if not real(row[2])]
    assert len(empty) == 2
    for source, inputs, _ in empty:
        assert real(source) and real(inputs)
    labels = torch.stack([row[2] for row in rows])
    logits = torch.randn(*labels.shape, 9, generator=torch.Generator().manual_seed(0))
    full = torch.tensor([bool(real(row)) for row in labels])
    assert torch.equal(
        sequence_loss(logits, labels), sequence_loss(logits[full], labels[full])
    )


def same(first, second) -> bool:
    pairs = zip(first, second, strict=True)
    return all(torch.equal(a, b) for both in pairs for a, b in zip(*both, strict=True))


def test_seed_and_number_decide_the_order_and_nothing_else_does():
    def epoch(number, seed=0):
        return list(PairBatches(*data, 64, "cpu", seed, lengths=(32,)).epoch(number))

    data = corpus(60)
    state = torch.get_rng_state()
    first = epoch(3)
    torch.rand(5)
    assert same(first, epoch(3))
    torch.set_rng_state(state)
    assert not same(first, epoch(4))
    assert not same(first, epoch(3, seed=1))
    assert not same(epoch(1, seed=0), epoch(0, seed=1))
    assert torch.equal(torch.get_rng_state(), state)


def test_an_epoch_begun_twice_at_once_is_not_mixed_up():
    batches = PairBatches(*corpus(60), 64, "cpu", lengths=(32,))
    one, two = batches.epoch(0), batches.epoch(0)
    assert same(list(one), list(two))


def test_drop_last_leaves_out_other_pairs_in_each_epoch():
    sources = [[5 + each] for each in range(10)]
    batches = PairBatches(sources, sources, 4 * 4, "cpu", lengths=(4,), drop_last=True)
    assert batches.shapes() == [(4, 4)] and len(batches) == 2
    seen = [set(pairs_of(batches.epoch(number))) for number in range(6)]
    assert all(len(each) == 8 for each in seen)
    assert len(set.union(*seen)) == 10


def test_everything_is_on_the_device_that_is_named():
    """The meta device has no values; what is put on it cannot have stayed behind."""
    batches = PairBatches([[5]] * 3, [[6]] * 3, 99, "meta", lengths=(4,))
    for batch in batches.epoch(0):
        assert [each.device.type for each in batch] == ["meta"] * 3


@pytest.mark.parametrize(
    "sources, targets, tokens, words",
    [
        ([[5]], [[6], [7]], 99, "1 sources but 2 targets"),
        ([], [], 99, "the corpus is empty"),
        ([[5]], [[6] * 8], 99, "pair 1 needs 9 tokens"),
        ([[5]], [[6]], 3, "allow at least 8 tokens"),
    ],
)
def test_bad_input_is_refused(sources, targets, tokens, words):
    with pytest.raises(WorkbenchError, match=words):
        PairBatches(sources, targets, tokens, "cpu", lengths=(8,))
