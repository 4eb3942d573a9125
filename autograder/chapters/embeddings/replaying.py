"""Byte-pair encoding: a text is cut by replaying the merges."""

from collections.abc import Callable
from functools import partial

from autograder import expect
from autograder.chapters.embeddings.chapter import chapter
from autograder.chapters.embeddings.learning import learn
from autograder.chapters.embeddings.merging import merge_pair
from autograder.chapters.embeddings.texts import (
    SPECIAL,
    Merges,
    Pair,
    called,
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


def replay(
    pieces: list[str], merges: Merges, specials: tuple[str, ...] = ()
) -> list[str]:
    """Apply all merges in order to each piece."""
    tokens: list[str] = []
    for piece in pieces:
        symbols = (piece,) if piece in specials else tuple(piece)
        for pair in merges:
            symbols = merged(symbols, pair)
        tokens += symbols
    return tokens


replaying = Function(
    "bpe-encode",
    "bpe_encode",
    lambda text, merges, specials, pieces: replay(pieces, merges, specials),
    given=lambda text, merges, specials: (split_words(text, specials),),
)


# --- what goes wrong ------------------------------------------------------------------


def _whole(piece: str) -> tuple[str, ...]:
    return (piece,)


def _none(piece: str) -> tuple[str, ...]:
    return ()


def cut_by(
    text: str,
    merges: Merges,
    specials: tuple[str, ...],
    pieces: list[str],
    *,
    others: Callable = lambda text, specials, pieces: pieces,
    special: Callable = _whole,
    blank: Callable = tuple,
    across: bool = False,
    order: Callable = list,
    ends: Callable = lambda fits: False,
    merge: Callable = merged,
    longest: bool = False,
    kept: Callable = lambda token, merges, specials: [token],
    form: Callable | None = None,
) -> list:
    """Replay merges with slips, which may be several.

    Args:
        text: what is cut.
        merges: pairs in their order.
        specials: the special tokens.
        pieces: of the text, cut with them.
        others: the pieces that are taken instead, of the text and those two.
        special: the first symbols of a special token.
        blank: the first symbols of white space.
        across: whether merges reach from piece to piece.
        order: the merges that are replayed, in order.
        ends: whether a piece is left, of which merges have changed it so far.
        merge: joins one pair.
        longest: whether the longest known token is taken, in place of merges.
        kept: what becomes of a token, of the merges and special tokens, too.
        form: of a piece's tokens; None: all go into one list.
    """
    ordered = order(merges)
    words = [
        (special if each in specials else tuple if each.strip() else blank)(each)
        for each in others(text, specials, pieces)
    ]
    words = [tuple(s for word in words for s in word)] if across else words
    found: list = []
    for word in words:
        symbols, fits = word, []
        for pair in [] if longest else ordered:
            if ends(fits):
                break
            after = merge(symbols, pair)
            fits.append(after != symbols)
            symbols = after
        if longest and len(word) > 1:
            symbols = _longest("".join(word), ordered)
        tokens = [new for each in symbols for new in kept(each, merges, specials)]
        found += [form(tokens)] if form else tokens
    return found


def _longest(rest: str, merges: Merges) -> tuple[str, ...]:
    """Take the longest token that a merge makes, from the left."""
    known, tokens = {"".join(pair) for pair in merges}, []
    while rest:
        sizes = range(len(rest), 0, -1)
        size = next(n for n in sizes if n == 1 or rest[:n] in known)
        tokens.append(rest[:size])
        rest = rest[size:]
    return tuple(tokens)


def _replaced(symbols: tuple, pair: Pair) -> tuple[str, ...]:
    """Search the pair in the symbols as one string."""
    written = "\0".join(symbols).replace("\0".join(pair), "".join(pair))
    return tuple(written.split("\0")) if symbols else ()


def _known_only(token: str, merges: Merges, specials: tuple[str, ...]) -> list[str]:
    symbols = {s for pair in merges for s in (*pair, "".join(pair))} | {*specials}
    return [token if token in symbols else "<unk>"]


CUT = (
    "special tokens are cut",
    "A special token is a token of its own wherever it stands. Pass the special "
    "tokens on to split_words, and do not take tuple() of them.",
)
SPACES = (
    "the spaces are lost",
    "The space belongs to the word after it and is part of its tokens. split_words "
    "keeps it; split() and strip() do not.",
)
REACHING = (
    "merges reach from word to word",
    "Merges were learned inside words and apply inside words: piece by piece.",
)
NOT_BACK = (
    "the text does not come back",
    "Something was lost on the way. White space and punctuation belong to the text: "
    "take all pieces of split_words, and all their symbols.",
)
UNKNOWN = "A character that no merge knows stays as it is: nothing may be lost."
WRONG_ORDER = "merges in the wrong order"
EARLY = (
    "ends at the first merge that does not fit",
    "A merge that finds nothing in this piece changes nothing, and the next one may "
    "well fit: go on to the end of the list.",
)
NO_MERGES = "without merges the words stay whole"
APART = (
    "the pieces are not put together",
    "One list of tokens is wanted: extend it by the symbols of each piece.",
)
LEFT_OUT = "special tokens are left out"
SHOWS: dict[str, Callable] = {
    CUT[0]: lambda text, merges, specials, *_: bool(specials),
    LEFT_OUT: lambda text, merges, specials, *_: bool(specials),
    NO_MERGES: lambda text, merges, *_: not merges,
}
for name, why, slip in (
    (*CUT, {"special": tuple}),
    (*CUT, {"others": lambda text, *_: split_words(text), "special": tuple}),
    (*CUT, {"others": lambda text, *_: split_words(text)}),
    (
        LEFT_OUT,
        "A special token is not merged, but it is a token: it goes into the list.",
        {"special": _none},
    ),
    (*REACHING, {"others": lambda text, *_: [text]}),
    (*REACHING, {"across": True}),
    (*SPACES, {"others": lambda text, *_: text.split()}),
    (*SPACES, {"others": lambda text, specials, pieces: stripped(pieces, specials)}),
    (
        *SPACES,
        {"kept": lambda token, *_: [token.strip()] if token.strip() else []},
    ),
    (*NOT_BACK, {"blank": _none}),
    (
        "white space is not cut",
        "Only a special token is a symbol from the start. Every other piece is cut "
        "into its characters, spaces and new lines, too.",
        {"blank": _whole},
    ),
    (
        "capital letters are lost",
        "B and b are two symbols, and the tokens joined have to be the text: take the "
        "pieces as they are.",
        {"others": lambda text, specials, pieces: [p.lower() for p in pieces]},
    ),
    (
        "repeated words are left out",
        "Every piece of the text has its tokens, also one that came before.",
        {"others": lambda text, specials, pieces: list(dict.fromkeys(pieces))},
    ),
    (
        WRONG_ORDER,
        "A merge needs the symbols that earlier ones made: from the first to the last.",
        {"order": lambda merges: merges[::-1]},
    ),
    (
        WRONG_ORDER,
        "A merge needs the symbols that earlier ones made: in the order in which they "
        "were learned, not by their length.",
        {"order": lambda merges: sorted(merges, key=lambda p: -len("".join(p)))},
    ),
    (
        WRONG_ORDER,
        "A merge needs the symbols that earlier ones made: in the order in which they "
        "were learned, not in that of the alphabet.",
        {"order": sorted},
    ),
    (
        "the characters are not merged",
        "merge_pair returns a new tuple: keep what it returns.",
        {"order": lambda merges: []},
    ),
    (
        "only the last merge is applied",
        "Each merge starts from what the one before made: symbols = merge_pair("
        "symbols, pair).",
        {"order": lambda merges: merges[-1:]},
    ),
    (
        "only the first merge is applied",
        "All merges are replayed, one after the other: a return inside the loop ends "
        "it too early.",
        {"order": lambda merges: merges[:1]},
    ),
    (
        "the last merge is left out",
        "All merges are replayed, the last one included.",
        {"order": lambda merges: merges[:-1]},
    ),
    (
        "the first merge is left out",
        "All merges are replayed, the first one included.",
        {"order": lambda merges: merges[1:]},
    ),
    (
        "left and right exchanged",
        "A pair is (left, right): left comes before right in the text.",
        {"order": lambda merges: [pair[::-1] for pair in merges]},
    ),
    (
        "each merge only once in a word",
        "merge_pair joins every occurrence; go on to the end of the word.",
        {"merge": partial(merged, most=1)},
    ),
    (
        "text compared in place of symbols",
        "replace finds the pair (a, b) in a, bc, too. A pair is two whole symbols: use "
        "merge_pair.",
        {"merge": _replaced},
    ),
    (
        "only the first merge that fits",
        "All merges are replayed, one after the other: a break or return after the "
        "first one that changes the symbols ends too early.",
        {"ends": any},
    ),
    (*EARLY, {"ends": lambda fits: not all(fits)}),
    (*EARLY, {"ends": lambda fits: any(fits) and not fits[-1]}),
    (
        "the longest known token is taken first",
        "That is another algorithm (WordPiece cuts so). Byte-pair encoding replays the "
        "merges, and the two can cut a word differently.",
        {"longest": True},
    ),
    (
        "unknown symbols become <unk>",
        UNKNOWN,
        {"kept": _known_only},
    ),
    (
        "unknown symbols are left out",
        UNKNOWN,
        {"kept": lambda *given: [t for t in _known_only(*given) if t != "<unk>"]},
    ),
    (*APART, {"form": list}),
    (*APART, {"form": tuple}),
    (
        "whole words are not cut",
        "Begin with the characters of each piece, tuple(piece), and merge those.",
        {"form": "".join},
    ),
    (
        NO_MERGES,
        "Every piece begins as single characters, and without merges it stays so.",
        {"form": "".join},
    ),
):
    replaying.mistake(name, why, when=SHOWS.get(name))(partial(cut_by, **slip))
FOUR = [("l", "o"), ("lo", "w"), (" ", "low"), (" low", "e")]
THREE = [("b", "c"), ("a", "b"), ("ab", "c")]
# with which merges the check asks for these pieces first
FIRST = {"low": FOUR, " low": FOUR, "abc": THREE}


@replaying.mistake(
    "kept from a call with other merges",
    "A cache whose key is the piece alone answers as it did with the merges of an "
    "earlier call. The merges belong to the key, too; or keep nothing.",
)
def _(text, merges, specials, pieces):
    return [t for p in pieces for t in replay([p], FIRST.get(p, merges), specials)]


for glue in ("", " "):
    replaying.mistake(
        "a string in place of a list",
        "A list of tokens is wanted: joined, nobody can tell where one ends.",
    )(lambda *given, glue=glue: glue.join(cut_by(*given)))


# --- the check ------------------------------------------------------------------------

ODD = (
    "Bobby likes blackberries.",
    "Bobby mag Brombeeren, süße Brombeeren!",
    "snake_case 2026  two spaces\n\tand a new line\n",
    " ... (space first) ",
)


@chapter.check(section="embeddings-bpe-encoding")
def bpe_encode(
    student: StudentFunction, merge_pair_student: StudentFunction, seed: int = 0
) -> None:
    """By hand, learned merges on new text, odd texts, special tokens."""
    with expect.relying_on(merge_pair, merge_pair_student):
        _check(student, WholeNumbers(seed))


def _check(student: StudentFunction, source: Source) -> None:
    learned = learn(draw_pieces(source, 50), 14)
    new = draw_pieces(source, 25)
    marked = ["<sos>", "banana", ".", "<eos>", "<sos>", "can", "<eos>"]
    marked += [*draw_pieces(source, 15, SPECIAL)[1:], "<eos>"]
    eos = [("<", "e"), ("o", "s"), *learned]
    for pieces, merges, *specials in (
        (["low", " slowly"], [*FOUR, ("l", "y")]),
        (["lowlow", " low", " lower"], FOUR),
        (["abc"], THREE),
        (["abc"], [("b", "c"), ("a", "b")]),
        (["low", " low"], [("w", " "), ("l", "o")]),
        (["low", " low"], []),
        (["Low", "  ", " low", " low", "\n"], FOUR),
        (new, learned),
        (["<sos>", "low", ".", "<eos>", "low", "<eos>", "<eos>"], FOUR, SPECIAL),
        (marked, eos, SPECIAL),
        ([], FOUR),
    ):
        text = "".join(pieces)
        case = Case(
            called("bpe_encode", text, merges, *specials),
            (text, merges, *(specials or [()])),
            given=(pieces,),
            what="the list of tokens",
            why="Cut the text with split_words, each piece into characters (special "
            "tokens not), and replay all merges in order in each piece.",
        )
        replaying.compare(student(text, merges, *specials), case)
    for text in ODD:
        on = f"bpe_encode({text!r}, merges): the tokens, joined again"
        got = student(text, learned)
        strings = isinstance(got, list) and all(isinstance(each, str) for each in got)
        expect.true(strings, "the result is no list of strings", on=on, got=write(got))
        back = "".join(got)
        say = {"on": on, "got": repr(back), "expected": repr(text)}
        refuse_if(back != text, *NOT_BACK, **say)
