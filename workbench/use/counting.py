"""What a language model is set beside: counting, and a packer of files.

Counting is Witten and Bell's interpolation (1991): the shares of what followed the last
characters, mixed with the same for fewer characters, so that nothing is impossible. The
more different characters have followed, the more the shorter beginning counts.
"""

from __future__ import annotations

import lzma
import math
from collections.abc import Iterator, Sequence

import numpy as np

ORDERS = range(1, 7)


def counted(
    train: str, test: str, alphabet: Sequence[str], orders: Sequence[int] = ORDERS
) -> Iterator[tuple[int, float]]:
    """Yield orders, and the nats that counting needs for a text.

    Args:
        train: the text that is counted.
        test: the text that is told; its first characters have shorter beginnings.
        alphabet: all characters there are; unknown, each is as probable as another.
        orders: 1 counts characters alone, n what follows n - 1 others; ascending.
    """
    known, asked = (numbers(text, alphabet) for text in (train, test))
    shares = np.full(len(asked), 1 / len(alphabet))
    for order in range(1, max(orders) + 1):
        shares = one_more(known, asked, shares, order, len(alphabet))
        if order in orders:
            yield order, float(-np.log(shares).sum())


def one_more(
    known: np.ndarray, asked: np.ndarray, shares: np.ndarray, order: int, size: int
) -> np.ndarray:
    """Mix shares of order n - 1 with the counts of n characters.

    P_n(x | c) = (count(c, x) + different(c) · P_{n-1}(x | c')) / (count(c) +
    different(c)), where c' is c without its first character.
    """
    grams = windows(known, order, size)  # n characters as one number
    different_grams, of_gram = np.unique(grams, return_counts=True)
    contexts, place = np.unique(different_grams // size, return_inverse=True)
    of_context = np.bincount(place, weights=of_gram)
    different = np.bincount(place)
    wanted = windows(asked, order, size)
    followed = looked_up(different_grams, of_gram, wanted)
    before = looked_up(contexts, of_context, wanted // size)
    kinds = looked_up(contexts, different, wanted // size)
    result = shares.copy()
    long = shares[order - 1 :]  # the first characters have no n - 1 before them
    mixed = (followed + kinds * long) / np.maximum(before + kinds, 1)
    result[order - 1 :] = np.where(before > 0, mixed, long)
    return result


def numbers(text: str, alphabet: Sequence[str]) -> np.ndarray:
    """Number the characters of a text."""
    places = {character: number for number, character in enumerate(alphabet)}
    return np.array([places[each] for each in text], dtype=np.int64)


def windows(text: np.ndarray, order: int, size: int) -> np.ndarray:
    """Return each run of n characters as one number, the last character its last digit.

    So ``// size`` is the run without its last character. Of an alphabet of more than a
    thousand characters six would not fit into 64 bits.
    """
    found = text[: len(text) - order + 1].copy()
    for offset in range(1, order):
        found = found * size + text[offset : len(text) - order + 1 + offset]
    return found


def looked_up(keys: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the values of sorted keys, 0 for a key that is not there."""
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, values[place], 0)


def packed(train: str, test: str) -> float:
    """Return the nats that xz needs for a text once it has packed another."""
    both, alone = (
        len(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
        for text in (train + test, train)
    )
    return 8 * (both - alone) * math.log(2)
