"""How often each pair of neighbours occurs inside words."""

from collections.abc import Iterable
from itertools import combinations, pairwise

from autograder.chapters.embeddings.chapter import chapter
from autograder.chapters.embeddings.texts import (
    Words,
    called,
    counted,
    draw_pieces,
    neighbours,
    write,
)
from autograder.exercise.inputs import WholeNumbers, draw_several
from autograder.exercise.spec import Case, Function
from autograder.expect import refuse_if
from autograder.interface import StudentFunction


def by_index(words: Words) -> dict:
    """Count with an index, symbol by symbol."""
    expected: dict = {}
    for symbols, occurrences in words.items():
        for i in range(len(symbols) - 1):
            pair = symbols[i], symbols[i + 1]
            expected[pair] = expected.get(pair, 0) + occurrences
    return expected


counts = Function("pair-counts", "pair_counts", by_index)


# --- what goes wrong ------------------------------------------------------------------


def _without_overlap(symbols: tuple[str, ...]) -> Iterable[tuple[str, str]]:
    """List the pairs, but none that begins in an equal one."""
    last = None
    for pair in pairwise(symbols):
        last = None if pair == last else pair
        if last:
            yield pair


for name, why, found in (
    (
        "pairs that are not neighbours",
        "Only symbols that stand directly next to each other can be merged.",
        lambda symbols: combinations(symbols, 2),
    ),
    (
        "left and right exchanged",
        "The pair is (left, right): reading order.",
        lambda symbols: [(right, left) for left, right in pairwise(symbols)],
    ),
    (
        "no difference between left and right",
        "(e, r) and (r, e) are two pairs: merged, they are different tokens.",
        lambda symbols: [tuple(sorted(pair)) for pair in pairwise(symbols)],
    ),
    (
        "a pair counts once in a word",
        "In (n, a, n, a) the pair (n, a) occurs twice: count both.",
        lambda symbols: dict.fromkeys(pairwise(symbols)),
    ),
    (
        "every second pair is left out",
        "The pairs overlap: (l, o) and (o, w) in (l, o, w). Move on by one symbol.",
        lambda symbols: neighbours(symbols)[::2],
    ),
    (
        "equal pairs that overlap count once",
        "The symbol in the middle of (a, a, a) belongs to two pairs, and both count. "
        "Only merging takes a symbol once.",
        _without_overlap,
    ),
    (
        "the last pair of a word is left out",
        "A word of n symbols has n - 1 pairs: (e, r) of (l, o, w, e, r) is one, too.",
        lambda symbols: neighbours(symbols)[:-1],
    ),
    (
        "a string in place of a pair",
        "Joined, (l, ow) and (lo, w) could not be told apart. Keep the pair.",
        lambda symbols: [left + right for left, right in pairwise(symbols)],
    ),
    ("symbols in place of pairs", "These are the frequencies of single symbols.", list),
):
    counts.mistake(name, why)(lambda words, found=found: counted(words.items(), found))
counts.mistake(
    "every word counts once",
    "A word that occurs 3 times has each of its pairs 3 times: add the value that the "
    "dict holds for the word.",
)(lambda words: counted((symbols, 1) for symbols in words))
counts.mistake(
    "a later word replaces the count",
    "Add to the count that is there: counts.get(pair, 0) + occurrences.",
)(lambda words: {pair: n for word, n in words.items() for pair in pairwise(word)})


def _as_a_text(words: Words) -> Iterable[tuple[tuple, int]]:
    return [(tuple(s for word, n in words.items() for s in word * n), 1)]


def _as_one_word(words: Words) -> Iterable[tuple[tuple, int]]:
    return [(tuple(symbol for symbols in words for symbol in symbols), 1)]


def _as_a_chain(words: Words) -> Iterable[tuple[tuple, int]]:
    chain = [(symbol, n) for symbols, n in words.items() for symbol in symbols]
    return [((left, right), n) for (left, n), (right, _) in pairwise(chain)]


for joined in (_as_a_text, _as_one_word, _as_a_chain):
    counts.mistake(
        "pairs that reach from word to word",
        "Merges must stay inside words. Otherwise tokens such as 'the cat' appear, and "
        "the order of words is baked into the vocabulary.",
    )(lambda words, joined=joined: counted(joined(words)))
ORDER = (
    "right pairs in another order",
    "The order decides which of equally frequent pairs is merged. Count words in order "
    "and from left to right; do not sort, and use no set.",
)
counts.mistake(*ORDER)(lambda words: dict(sorted(by_index(words).items())))


@counts.mistake(*ORDER)
def _(words):
    found = by_index(words)
    return {pair: found[pair] for pair in sorted(found, key=found.get, reverse=True)}


# --- the check ------------------------------------------------------------------------


@chapter.check(section="embeddings-bpe")
def pair_counts(student: StudentFunction, seed: int = 0) -> None:
    """By hand, words drawn at random, words of one symbol, no words."""
    source = WholeNumbers(seed)
    drawn = {tuple(piece): 0 for piece in draw_pieces(source, 20)}
    drawn = dict(zip(drawn, draw_several(source, 2, 9, len(drawn)), strict=True))
    for words in (
        {tuple("low"): 2, tuple(" lower"): 2},
        {tuple("nana"): 3, tuple("ban"): 2, ("low", "er"): 5, tuple("aaa"): 4},
        drawn,
        {("a",): 7, ("<eos>",): 2},
        {},
    ):
        on, why = (
            called("pair_counts", words),
            "Each pair of neighbours inside a word, (left, right), counts as often as "
            "the word occurs.",
        )
        got = student(words)
        case = Case(on, (words,), what="the dict of counts", why=why)
        counts.compare(got, case)
        came, right = list(got), list(by_index(words))
        say = {"on": on, "got": write(came), "expected": write(right)}
        refuse_if(came != right, *ORDER, **say)
