"""BPE dropout: the words of a text, cut in another way each time they are read.

Provilkov, Emelianenko and Voita 2020, algorithm 1: while the pairs of a word are
joined, each that could be joined is passed over with some probability. A model that has
read "bak ery" as well as "bakery" knows more of both. The library that cuts whole texts
can do this, too, but not the same again from a seed.
"""

import json
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, cycle, islice, pairwise

from workbench.data.batches import Batch, PairBatches
from workbench.data.tokenizer import Tokenizer
from workbench.errors import WorkbenchError

WAYS = 16  # to cut a word, drawn once; an epoch chooses among them
Ids = tuple[int, ...]


class Segmentations:
    """Some ways to cut each word of some texts."""

    def __init__(
        self, tokenizer: Tokenizer, texts: Iterable[str], dropout: float, seed: int
    ) -> None:
        """Draw the ways.

        Args:
            tokenizer: whose words and merges.
            texts: that will be read; other texts cannot be.
            dropout: the probability that a pair is passed over, from 0 to below 1.
            seed: of the draw.

        Raises:
            WorkbenchError: if dropout is out of range.
        """
        if not 0 <= dropout < 1:
            raise WorkbenchError(
                f"BPE dropout must be from 0 to below 1, not {dropout}"
            )
        self._words = [words_of(tokenizer, text) for text in texts]
        model = json.loads(tokenizer.inner.to_str())["model"]
        ranks = {tuple(pair): rank for rank, pair in enumerate(model["merges"])}
        draw = random.Random(seed)
        distinct = dict.fromkeys(chain.from_iterable(self._words))
        self._ways = {
            word: [
                tuple(model["vocab"][part] for part in cut(word, ranks, dropout, draw))
                for _ in range(WAYS)
            ]
            for word in distinct
        }

    def encode_all(self, draw: random.Random) -> list[list[int]]:
        """Cut all texts, each word in one of its ways: ids without special ones."""
        return [
            list(chain.from_iterable(draw.choice(self._ways[word]) for word in words))
            for words in self._words
        ]


def words_of(tokenizer: Tokenizer, text: str) -> list[str]:
    """Return the pieces inside of which pairs are joined, in the letters of bytes."""
    pieces = tokenizer.inner.pre_tokenizer.pre_tokenize_str(f" {text}")
    return [piece for piece, _ in pieces]


def cut(
    word: str, ranks: dict[tuple[str, str], int], dropout: float, draw: random.Random
) -> list[str]:
    """Join a word's letters, pair by pair, passing some over.

    Args:
        word: at least one letter.
        ranks: the merges, the earliest learned first.
        dropout: the probability that a pair is passed over, anew each time.
        draw: where chance is from.
    """
    parts = list(word)
    while True:
        found = (
            (ranks[pair], place)
            for place, pair in enumerate(pairwise(parts))
            if pair in ranks and draw.random() >= dropout
        )
        _, place = min(found, default=(0, None))
        if place is None:
            return parts
        parts[place : place + 2] = ["".join(parts[place : place + 2])]


class RedrawnBatches:
    """Batches of pairs whose words are cut anew in each epoch.

    Each epoch has as many batches as the first: where its pairs need more, the last of
    its order are left out; where fewer, the first are read again.
    """

    def __init__(
        self,
        sources: Segmentations,
        targets: Segmentations,
        batches_of: Callable[[list[list[int]], list[list[int]]], PairBatches],
        seed: int,
    ) -> None:
        """Count the batches of the first epoch.

        Args:
            sources: of each pair.
            targets: of each pair.
            batches_of: makes the batches of sources and targets that are cut.
            seed: of the cuts.
        """
        self._sources, self._targets = sources, targets
        self._batches_of, self.seed = batches_of, seed
        self._length = len(self._batches(0))

    def __len__(self) -> int:
        """Return the number of batches an epoch."""
        return self._length

    def epoch(self, number: int) -> Iterator[Batch]:
        """Yield the batches of an epoch, the same again for the same number."""
        return islice(cycle(self._batches(number).epoch(number)), self._length)

    def _batches(self, number: int) -> PairBatches:
        draw = random.Random(self.seed * 1_000_003 + number)
        sources, targets = self._sources, self._targets
        return self._batches_of(sources.encode_all(draw), targets.encode_all(draw))
