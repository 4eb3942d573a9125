"""Byte-pair encoding: which pairs are merged, in which order."""

import functools
from collections import Counter
from collections.abc import Callable
from typing import Any

from autograder import expect
from autograder.chapters.embeddings.chapter import chapter
from autograder.chapters.embeddings.counting import pair_counts
from autograder.chapters.embeddings.merging import merge_pair
from autograder.chapters.embeddings.texts import (
    SPECIAL,
    Merges,
    Pair,
    called,
    counted,
    draw_pieces,
    merged,
    split_words,
    stripped,
    write,
)
from autograder.exercise.inputs import Source, WholeNumbers
from autograder.exercise.spec import Case, Function
from autograder.expect import refuse_if
from autograder.interface import StudentFunction


def learn(
    pieces: list[str],
    merges: int,
    specials: tuple[str, ...] = (),
    *,
    choose: Callable[[dict], Pair] = lambda counts: max(counts, key=counts.get),
    across: bool = False,
    once: bool = False,
    moved: bool = False,
    least: int = 1,
    stops: bool = True,
) -> Merges:
    """Learn merges by counting all pieces of the text again in each step.

    Args:
        pieces: of the text, in order.
        merges: how many at most.
        specials: pieces that are one symbol.
        choose: the pair to merge, of the counts.
        across: whether pairs reach from piece to piece.
        once: whether a piece that is repeated counts once.
        moved: whether words that are changed go to the end.
        least: how often a pair has to occur.
        stops: whether it ends when no pair is left.
    """
    words = [(p,) if p in specials else tuple(p) for p in pieces]
    words = [tuple(s for word in words for s in word)] if across else words
    words = list(dict.fromkeys(words)) if once else words
    found: Merges = []
    for _ in range(merges):
        counts = counted((word, 1) for word in words)
        counts = {pair: n for pair, n in counts.items() if n >= least}
        if stops and not counts:
            break
        found.append(choose(counts))
        after = [(merged(word, found[-1]), word) for word in words]
        if moved:
            after.sort(key=lambda pair: pair[0] != pair[1])
        words = [word for word, _ in after]
    return found


learning = Function(
    "train-bpe",
    "train_bpe",
    lambda text, merges, specials, pieces: learn(pieces, merges, specials),
    given=lambda text, merges, specials: (split_words(text, specials),),
)


# --- what goes wrong ------------------------------------------------------------------


def slipped(
    text: str,
    merges: int,
    specials: tuple[str, ...],
    pieces: list[str],
    *,
    others: Callable | None = None,
    known: bool = True,
    more: int = 0,
    form: Callable = tuple,
    **rules: Any,
) -> list:
    """Learn with slips, which may be several.

    Args:
        text: what is learned from.
        merges: how many at most.
        specials: the special tokens.
        pieces: of the text, cut with them.
        others: the pieces that are taken instead, of the text and those three.
        known: whether a special token is one symbol.
        more: merges beyond those that are wanted.
        form: of a pair.
        rules: of ``learn``.
    """
    pieces = others(text, specials, pieces) if others else pieces
    found = learn(pieces, merges + more, specials if known else (), **rules)
    return [form(pair) for pair in found]


def _by_frequency(pieces: list[str]) -> list[str]:
    return [piece for piece, n in Counter(pieces).most_common() for _ in range(n)]


CUT = (
    "special tokens are cut",
    "A special token is one symbol from the start, ('<eos>',), and has no pairs. Pass "
    "the special tokens on to split_words and do not take tuple() of them.",
)
for slip in (
    {"known": False},
    {"others": lambda text, *_: split_words(text), "known": False},
    {"others": lambda text, *_: split_words(text)},
):
    learning.mistake(*CUT, when=lambda text, merges, specials, *_: bool(specials))(
        functools.partial(slipped, **slip)
    )

ACROSS = (
    "merges reach from word to word",
    "Pairs are counted inside the pieces of split_words. Over the whole text, tokens "
    "such as 'the cat' would be learned.",
)
SPACES = (
    "the spaces are lost",
    "A space is the first symbol of the word after it and takes part in merges. "
    "split_words keeps it; split() and strip() do not.",
)
LAST = (
    "ties go to the last pair",
    "Of several pairs with the largest count the first one is merged.",
)
ALPHABET = (
    "ties go by the alphabet",
    "Of several pairs with the largest count the one that appears first is merged, not "
    "the one that sorts first or last.",
)
LISTS = (
    "lists in place of tuples",
    "A list is never equal to a tuple of symbols, so a later comparison with such a "
    "pair finds nothing. Keep the pairs as they are counted.",
)
NO_STOP = (
    "does not stop when no pair is left",
    "Without counts there is no largest one. When every word has become a single "
    "symbol, no pair is left: return what has been found.",
)
learning.accident("empty", *NO_STOP)
learning.accident("list index out of range", *NO_STOP)
learning.slips(
    slipped,
    (*ACROSS, {"others": lambda text, *_: [text]}),
    (*SPACES, {"others": lambda text, specials, pieces: stripped(pieces, specials)}),
    (*SPACES, {"others": lambda text, *_: text.split()}),
    (
        "capital letters are lost",
        "B and b are two symbols. Made small, a text could never be put together again "
        "as it was: take the pieces as they are.",
        {"others": lambda text, specials, pieces: [each.lower() for each in pieces]},
    ),
    (*ACROSS, {"across": True}),
    (
        "the words in order of frequency",
        "Of equally frequent pairs the first of the text is merged. most_common() "
        "puts the most frequent words first: leave them in their order.",
        {"others": lambda text, specials, pieces: _by_frequency(pieces)},
    ),
    (
        "every word counts once",
        "A frequent word has frequent pairs: count how often each piece occurs.",
        {"once": True},
    ),
    (
        "the words change places",
        "A merged word that is taken out of the dict and put back comes last, "
        "and ties are then settled in another order. Build a new dict instead.",
        {"moved": True},
    ),
    (*LAST, {"choose": lambda counts: max(reversed(counts), key=counts.get)}),
    (*LAST, {"choose": lambda counts: sorted(counts, key=counts.get)[-1]}),
    (
        *ALPHABET,
        {"choose": lambda counts: max(counts, key=lambda pair: (counts[pair], pair))},
    ),
    (
        *ALPHABET,
        {"choose": lambda counts: min(counts, key=lambda pair: (-counts[pair], pair))},
    ),
    (
        "the rarest pair is merged",
        "A token is worth its place when it is frequent: take the largest count.",
        {"choose": lambda counts: min(counts, key=counts.get)},
    ),
    (
        "the longest pair is merged",
        "max of a dict looks at the keys; max(counts, key=counts.get) at the counts.",
        {"choose": max},
    ),
    (
        "stops while there are pairs left",
        "Some programs stop when every pair occurs once. Here a merge is made as long "
        "as any pair is left.",
        {"least": 2},
    ),
    (*NO_STOP, {"stops": False}),
    (
        "strings in place of pairs",
        "Joined, nobody can tell (l, ow) from (lo, w). Keep the pairs.",
        {"form": "".join},
    ),
    (*LISTS, {"form": list}),
    (
        "one merge too many",
        "`merges` says how many merges there are at most.",
        {"more": 1},
    ),
    (
        "one merge too few",
        "`merges` says how many merges there are, the last one included.",
        {"more": -1},
    ),
)


@learning.mistake(
    "the counts are never renewed",
    "After a merge there are new symbols and new pairs, and old ones have become "
    "rarer. Count again in each step.",
)
def _(text, merges, specials, pieces):
    words = [((p,) if p in specials else tuple(p), 1) for p in pieces]
    counts = counted(words)
    return sorted(counts, key=counts.get, reverse=True)[:merges]


# --- the check ------------------------------------------------------------------------


@chapter.check(section="embeddings-bpe")
def train_bpe(
    student: StudentFunction,
    pair_counts_student: StudentFunction,
    merge_pair_student: StudentFunction,
    seed: int = 0,
) -> None:
    """By hand, ties, word borders, special tokens, the end of all pairs."""
    with (
        expect.relying_on(pair_counts, pair_counts_student),
        expect.relying_on(merge_pair, merge_pair_student),
    ):
        _check(student, WholeNumbers(seed))


def _check(student: StudentFunction, source: Source) -> None:
    hand = ["low", " lower", " lowest"]
    drawn = draw_pieces(source, 60)
    marked = [*draw_pieces(source, 60, SPECIAL), ".", "<eos>", "<eos>"]
    repeated = ["na", " na", " na", " na", " bca", " bca", " cab"]
    for pieces, merges, *specials in (
        (["bdacb", " bdacb", " zz"], 1),
        (hand, 4),
        (["a", " nana", " nana", " to", " to"], 2),
        (repeated, 3),
        (drawn, 12),
        (marked, 9, SPECIAL),
        (["<sos>", "ab", "<eos>"], 6, SPECIAL),
        (["ab", " ab"], 1),
        (["Bobby", " bob"], 2),
        (["ab"], 0),
    ):
        text = "".join(pieces)
        case = Case(
            called("train_bpe", text, merges, *specials),
            (text, merges, *(specials or [()])),
            given=(pieces,),
            what="the list of merges",
            why="In each step: count pairs inside the pieces, merge the most frequent, "
            "of several the one that appears first.",
        )
        with learning.accidents_named():
            got = student(text, merges, *specials)
        learning.compare(got, case)
        say = {
            "on": case.on,
            "got": write(got),
            "expected": write(learning.right(case)),
        }
        refuse_if(any(type(pair) is not tuple for pair in got), *LISTS, **say)
