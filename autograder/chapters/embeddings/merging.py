"""Every occurrence of a pair, written as one symbol."""

import re
from collections.abc import Iterable

from autograder.chapters.embeddings.chapter import chapter
from autograder.chapters.embeddings.texts import Pair, merged, write
from autograder.exercise.inputs import WholeNumbers, draw_several
from autograder.exercise.spec import Case, Function
from autograder.expect import refuse_if
from autograder.interface import StudentFunction

Symbols = tuple[str, ...]


def by_replacing(symbols: Symbols, pair: Pair) -> Symbols:
    """Merge by replacing in a string in which every symbol is one character."""
    names = list(dict.fromkeys([*symbols, *pair]))
    new = chr(0xE000 + len(names))

    def write(some: Iterable[str]) -> str:
        return "".join(chr(0xE000 + names.index(symbol)) for symbol in some)

    names.append("".join(pair))
    text = write(symbols).replace(write(pair), new)
    return tuple(names[ord(character) - 0xE000] for character in text)


merging = Function("merge-pair", "merge_pair", by_replacing)
merging.accident(
    "IndexError",
    "looks beyond the last symbol",
    "The last symbol has no neighbour to its right. Compare a slice of two with the "
    "pair, or test the length first.",
)


# --- what goes wrong ------------------------------------------------------------------

NOT_JOINED = "the pair is not joined"
TEXT = (
    "text compared in place of symbols",
    "Inside a string, the borders of symbols cannot be seen any more: 'ba' and 'b' "
    "contain 'ab'. Compare symbol by symbol.",
)
for name, why, how in (
    (
        "only the first occurrence is merged",
        "The pair may occur several times in a word: go on to the end.",
        {"most": 1},
    ),
    (
        "the second symbol stays",
        "After a merge go on two symbols further. The right one has been used up.",
        {"skip": 1},
    ),
    (
        "both orders are merged",
        "(b, a) is another pair than (a, b).",
        {"is_pair": lambda two, pair: two in (pair, pair[::-1])},
    ),
    (*TEXT, {"is_pair": lambda two, pair: "".join(two) == "".join(pair)}),
    (
        NOT_JOINED,
        "Two symbols become one string: left + right.",
        {"write": lambda left, right: (left, right)},
    ),
    (
        NOT_JOINED,
        "Two symbols become one string with nothing between: left + right.",
        {"write": lambda left, right: f"{left} {right}"},
    ),
    (
        "only one half of the pair is compared",
        "Both symbols have to be those of the pair, the left and the right one.",
        {"is_pair": lambda two, pair: two[0] == pair[0]},
    ),
    (
        "only one half of the pair is compared",
        "Both symbols have to be those of the pair, the left and the right one.",
        {"is_pair": lambda two, pair: two[1] == pair[1]},
    ),
):
    merging.mistake(name, why)(
        lambda symbols, pair, how=how: merged(symbols, pair, **how)
    )


@merging.mistake(
    "a symbol is used twice",
    "In (a, a, a) the second symbol belongs to the first merge: go on behind both, two "
    "symbols further.",
)
def _(symbols, pair):
    new = []
    for i in range(len(symbols)):
        if symbols[i : i + 2] == pair:
            new.append("".join(pair))
        elif i == 0 or symbols[i - 1 : i + 1] != pair:
            new.append(symbols[i])
    return tuple(new)


@merging.mistake(
    "of two occurrences in a row one is missed",
    "A separator between two occurrences can be found as part of one of them only. Go "
    "through the symbols, and compare two at a time.",
)
def _(symbols, pair):
    mark = "\0"
    text = mark + mark.join(symbols) + mark
    new = text.replace(f"{mark}{mark.join(pair)}{mark}", f"{mark}{''.join(pair)}{mark}")
    return tuple(new.strip(mark).split(mark)) if symbols else ()


@merging.mistake(
    "merged from the right",
    "Of (a, a, a) the first two are merged: read from the left, always.",
)
def _(symbols, pair):
    turned = merged(symbols[::-1], pair[::-1], write=lambda right, left: left + right)
    return turned[::-1]


@merging.mistake(
    "the last symbol is lost",
    "The last symbol has no right neighbour, but it belongs to the word: copy it.",
)
def _(symbols, pair):
    marked = merged(symbols, pair, write=lambda left, right: (left + right,))
    kept = marked if isinstance(marked[-1], tuple) else marked[:-1]
    return tuple("".join(symbol) for symbol in kept)


@merging.mistake(*TEXT)
def _(symbols, pair):
    return tuple(" ".join(symbols).replace(" ".join(pair), "".join(pair)).split())


@merging.mistake(*TEXT)
def _(symbols, pair):
    return tuple(" ".join(symbols).replace(" ".join(pair), "".join(pair)).split(" "))


@merging.mistake(*TEXT)
def _(symbols, pair):
    parts = re.split(f"({re.escape(''.join(pair))})|", "".join(symbols))
    return tuple(part for part in parts if part)


@merging.mistake("the pair is removed", "The merged symbol takes the place of the two.")
def _(symbols, pair):
    marked = merged(symbols, pair, write=lambda left, right: None)
    return tuple(symbol for symbol in marked if symbol is not None)


merging.mistake(
    "nothing is merged", "Compare tuple with tuple: symbols[i : i + 2] == pair."
)(lambda symbols, pair: symbols)
A_LIST = (
    "a list in place of a tuple",
    "Words are keys of a dict, and a list cannot be one: tuple(...).",
)
merging.mistake(*A_LIST)(lambda symbols, pair: list(by_replacing(symbols, pair)))


# --- the check ------------------------------------------------------------------------


@chapter.check(section="embeddings-bpe")
def merge_pair(student: StudentFunction, seed: int = 0) -> None:
    """Every occurrence, overlaps, borders of symbols, random words."""
    source = WholeNumbers(seed)
    known = [
        (("a", "b", "c", "a", "b"), ("a", "b")),
        (("b", "a", "b", "c"), ("a", "b")),
        (("a", "a", "a"), ("a", "a")),
        (("c", "a", "a", "a", "a", "b"), ("a", "a")),
        (("ba", "b"), ("a", "b")),
        (("ab", "c", "a", "bc"), ("a", "bc")),
        ((" ", "low", "er", " ", "low"), (" ", "low")),
        (("<eos>",), ("<", "e")),
        ((), ("a", "b")),
    ]
    stock = ["a", "b", "ab", "ba"]
    for _ in range(8):
        symbols = tuple(stock[i] for i in draw_several(source, 0, 4, 9))
        pair = tuple(stock[i] for i in draw_several(source, 0, 3, 2))
        known.append((symbols, pair))
    for symbols, pair in known:
        case = Case(
            f"merge_pair({symbols}, {pair})",
            (symbols, pair),
            what="the tuple of symbols",
            why="Read from the left; where two symbols are the pair, write them as one "
            "and go on behind them.",
        )
        with merging.accidents_named():
            got = student(symbols, pair)
        right = merging.right(case)
        say = {"on": case.on, "got": write(got), "expected": write(right)}
        is_list = isinstance(got, list) and tuple(got) == right
        refuse_if(is_list, *A_LIST, **say)
        merging.compare(got, case)
