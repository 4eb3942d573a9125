"""Byte-pair encoding: a text is cut by replaying the merges."""

from collections.abc import Callable

from autograder import expect
from autograder.chapters.embeddings.chapter import chapter
from autograder.chapters.embeddings.learning import learn
from autograder.chapters.embeddings.merging import merge_pair
from autograder.chapters.embeddings.texts import (
    SPECIAL,
    Merges,
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
    pieces: list[str],
    merges: Merges,
    specials: tuple[str, ...] = (),
    merge: Callable = merged,
) -> list[str]:
    """Apply all merges in order to each piece."""
    tokens: list[str] = []
    for piece in pieces:
        symbols = (piece,) if piece in specials else tuple(piece)
        for pair in merges:
            symbols = merge(symbols, pair)
        tokens += symbols
    return tokens


replaying = Function(
    "bpe-encode",
    "bpe_encode",
    lambda text, merges, specials, pieces: replay(pieces, merges, specials),
    given=lambda text, merges, specials: (split_words(text, specials),),
)


# --- what goes wrong ------------------------------------------------------------------

for cut in (
    lambda text, merges, specials, pieces: replay(pieces, merges),
    lambda text, merges, specials, pieces: replay(split_words(text), merges),
    lambda text, merges, specials, pieces: replay(split_words(text), merges, specials),
):
    replaying.mistake(
        "special tokens are cut",
        "A special token is a token of its own wherever it stands. Pass the special "
        "tokens on to split_words, and do not take tuple() of them.",
        when=lambda text, merges, specials, *_: bool(specials),
    )(cut)

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
for name, why, others in (
    (*REACHING, lambda text, specials, pieces: [text]),
    (*SPACES, lambda text, specials, pieces: text.split()),
    (*SPACES, lambda text, specials, pieces: stripped(pieces, specials)),
    (*NOT_BACK, lambda text, specials, pieces: [p for p in pieces if p.strip()]),
):
    replaying.mistake(name, why)(
        lambda text, merges, specials, pieces, others=others: replay(
            others(text, specials, pieces), merges, specials
        )
    )
for name, why, order in (
    (
        "merges in the wrong order",
        "A merge needs the symbols that earlier ones made: from the first to the last.",
        lambda merges: merges[::-1],
    ),
    (
        "merges in the wrong order",
        "A merge needs the symbols that earlier ones made: in the order in which they "
        "were learned, not by their length.",
        lambda merges: sorted(merges, key=lambda pair: -len("".join(pair))),
    ),
    (
        "the characters are not merged",
        "merge_pair returns a new tuple: keep what it returns.",
        lambda merges: [],
    ),
    (
        "only the last merge is applied",
        "Each merge starts from what the one before made: symbols = merge_pair("
        "symbols, pair).",
        lambda merges: merges[-1:],
    ),
):
    replaying.mistake(name, why)(
        lambda text, merges, specials, pieces, order=order: replay(
            pieces, order(merges), specials
        )
    )


@replaying.mistake(
    "each merge only once in a word",
    "merge_pair joins every occurrence; go on to the end of the word.",
)
def _(text, merges, specials, pieces):
    return replay(pieces, merges, specials, lambda s, pair: merged(s, pair, most=1))


@replaying.mistake(
    "only the first merge that fits",
    "All merges are replayed, one after the other: a break or return after the first "
    "one that changes the symbols ends too early.",
)
def _(text, merges, specials, pieces):
    def first(symbols, pair):
        fits = (one for one in merges if merged(symbols, one) != tuple(symbols))
        return merged(symbols, next(fits, pair))

    return [t for p in pieces for t in replay([p], [("", "")], specials, first)]


@replaying.mistake(
    "ends at the first merge that does not fit",
    "A merge that finds nothing in this piece changes nothing, and the next one may "
    "well fit: go on to the end of the list.",
)
def _(text, merges, specials, pieces):
    tokens = []
    for piece in pieces:
        symbols = (piece,) if piece in specials else tuple(piece)
        for pair in merges if piece not in specials else ():
            if merged(symbols, pair) == symbols:
                break
            symbols = merged(symbols, pair)
        tokens += symbols
    return tokens


@replaying.mistake(*REACHING)
def _(text, merges, specials, pieces):
    symbols = [s for p in pieces for s in ([p] if p in specials else p)]
    for pair in merges:
        symbols = merged(tuple(symbols), pair)
    return list(symbols)


@replaying.mistake(*SPACES)
def _(text, merges, specials, pieces):
    return [t.strip() for t in replay(pieces, merges, specials) if t.strip()]


@replaying.mistake(
    "the longest known token is taken first",
    "That is another algorithm (WordPiece cuts so). Byte-pair encoding replays the "
    "merges, and the two can cut a word differently.",
)
def _(text, merges, specials, pieces):
    known = {"".join(pair) for pair in merges}
    tokens = []
    for piece in pieces:
        rest = "" if piece in specials else piece
        tokens += [] if rest else [piece]
        while rest:
            lengths = range(len(rest), 0, -1)
            size = next(n for n in lengths if n == 1 or rest[:n] in known)
            tokens.append(rest[:size])
            rest = rest[size:]
    return tokens


@replaying.mistake(
    "unknown symbols become <unk>",
    "A character that no merge knows stays as it is: nothing may be lost.",
)
def _(text, merges, specials, pieces):
    known = {s for pair in merges for s in (*pair, "".join(pair))} | {*specials}
    tokens = replay(pieces, merges, specials)
    return [token if token in known else "<unk>" for token in tokens]


for form in (list, tuple):
    replaying.mistake(
        "the pieces are not put together",
        "One list of tokens is wanted: extend it by the symbols of each piece.",
    )(
        lambda text, merges, specials, pieces, form=form: [
            form(replay([piece], merges, specials)) for piece in pieces
        ]
    )
replaying.mistake(
    "whole words are not cut",
    "Begin with the characters of each piece, tuple(piece), and merge those.",
)(lambda text, merges, specials, pieces: list(pieces))


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
    four = [("l", "o"), ("lo", "w"), (" ", "low"), (" low", "e")]
    learned = learn(draw_pieces(source, 50), 14)
    new = draw_pieces(source, 25)
    marked = ["<sos>", "banana", ".", "<eos>", "<sos>", "can", "<eos>"]
    marked += [*draw_pieces(source, 15, SPECIAL)[1:], "<eos>"]
    eos = [("<", "e"), ("o", "s"), *learned]
    for pieces, merges, *specials in (
        (["low", " slowly"], [*four, ("l", "y")]),
        (["lowlow", " low", " lower"], four),
        (["abc"], [("b", "c"), ("a", "b"), ("ab", "c")]),
        (["low", " low"], [("w", " "), ("l", "o")]),
        (["low", " low"], []),
        (new, learned),
        (["<sos>", "low", ".", "<eos>", "low", "<eos>", "<eos>"], four, SPECIAL),
        (marked, eos, SPECIAL),
        ([], four),
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
