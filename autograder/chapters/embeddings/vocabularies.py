"""The vocabulary: every token once, the special tokens first, ids from 0."""

from collections import Counter
from collections.abc import Callable, Iterable

from autograder.chapters.embeddings.chapter import chapter
from autograder.chapters.embeddings.texts import called
from autograder.exercise.inputs import WholeNumbers, draw_several
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction

DEFAULT = ("<pad>", "<unk>", "<sos>", "<eos>")


def numbered(tokens: Iterable[str], specials: Iterable[str]) -> dict[str, int]:
    """Number by searching a list, which is slow and plain."""
    seen: list[str] = []
    for token in [*specials, *tokens]:
        if token not in seen:
            seen.append(token)
    return {token: seen.index(token) for token in seen}


vocabularies = Function("vocabulary", "build_vocabulary", numbered)


# --- what goes wrong ------------------------------------------------------------------


def numbering(
    tokens: Iterable[str],
    specials: Iterable[str],
    *,
    given: Callable = lambda specials: specials,
    ordered: Callable = tuple,
    listed: Callable | None = None,
    again: Callable | None = None,
    start: int = 0,
    left_out: int = 0,
) -> dict[str, int]:
    """Number with slips, which may be several.

    Args:
        tokens: of the text.
        specials: the special tokens.
        given: what is taken for the special tokens.
        ordered: what is made of the text's tokens first.
        listed: all tokens in order, of both; None: the special ones come first.
        again: the next id of a special token that is in the text, of the ids so far and
            how many were given; None: it keeps the one that it has.
        start: the first id.
        left_out: ids between the special tokens and the others.
    """
    tokens, specials = ordered(tokens), given(specials)
    if listed:
        return {t: i + start for t, i in numbered(listed(tokens, specials), ()).items()}
    words = {token: i + start for token, i in numbered((), specials).items()}
    count = len(words) + left_out
    for token in dict.fromkeys(tokens):
        if again or token not in specials:
            words[token] = start + (again(words, count) if again else count)
            count += 1
    return words


ALPHABET = (
    "tokens in alphabetical order",
    "The ids follow the order in which tokens first appear: do not sort.",
)
AGAIN = (
    "a special token in the text takes a new id",
    "A special token keeps its first id, also where it occurs in the text. Number only "
    "what is not yet in the vocabulary.",
)
vocabularies.slips(
    numbering,
    (
        "the special tokens come last",
        "Put the special tokens first: their ids stay the same, whatever the text.",
        {"listed": lambda tokens, specials: [*_others(tokens, specials), *specials]},
    ),
    (
        "the special tokens are missing",
        "Without <unk> there is no answer for a new word, without <pad> no batch.",
        {"listed": lambda tokens, specials: tokens},
    ),
    (
        "the argument special_tokens is not used",
        "The ids of the default special tokens came out, although others were given.",
        {"listed": lambda tokens, specials: [*DEFAULT, *tokens]},
    ),
    (
        "an empty tuple is taken for none given",
        "Python takes () for False, so `special_tokens or …` puts the default ones in "
        "its place. Who gives an empty tuple wants no special tokens.",
        {"given": lambda specials: specials or DEFAULT},
    ),
    (*ALPHABET, {"ordered": sorted}),
    (*ALPHABET, {"listed": lambda tokens, specials: sorted({*specials, *tokens})}),
    (
        *ALPHABET,
        {
            "listed": lambda tokens, specials: sorted(
                [*specials, *tokens], key=str.lower
            )
        },
    ),
    (
        "tokens in order of frequency",
        "The most frequent token came first. Wanted is the order of first appearance.",
        {"ordered": lambda tokens: dict(Counter(tokens).most_common())},
    ),
    (
        "capital letters are lost",
        "Bobby and bobby are two tokens: take them as they are.",
        {"ordered": lambda tokens: [token.lower() for token in tokens]},
    ),
    (
        "the spaces are lost",
        "' likes' and 'likes' are two tokens: the space belongs to the word.",
        {"ordered": lambda tokens: [token.strip() for token in tokens]},
    ),
    (
        "ids start at 1",
        "An id is the number of a row, and rows start at 0. With ids from 1 to N the "
        "last one has no row, and row 0 is never used.",
        {"start": 1},
    ),
    (
        "an id is left out after the special tokens",
        "Ids follow one another without a gap: the first token after the special ones "
        "gets len(special_tokens).",
        {"left_out": 1},
    ),
    (*AGAIN, {"again": lambda words, given: len(words)}),
    (*AGAIN, {"again": lambda words, given: given}),
)


def _others(tokens: Iterable[str], specials: Iterable[str]) -> list[str]:
    return [token for token in tokens if token not in specials]


NEW_ID = "a repeated token takes a new id"
vocabularies.mistake(
    NEW_ID,
    "A number was given to every entry of the list, and a later one replaced the "
    "earlier. Remove repetitions first, so that there are no gaps.",
)(lambda tokens, specials: {t: i for i, t in enumerate([*specials, *tokens])})


def _renumbered(words: dict[str, int], tokens: Iterable[str]) -> dict[str, int]:
    for token in tokens:
        words[token] = len(words)
    return words


vocabularies.mistake(
    NEW_ID,
    "vocabulary[token] = len(vocabulary) also writes over the id of a token that has "
    "one, and then two tokens share a number. Ask first whether it is there.",
)(lambda tokens, specials: _renumbered({}, [*specials, *tokens]))


@vocabularies.mistake(
    "gaps between the ids",
    "The id is the place in a text with repetitions, so some numbers belong to no "
    "token. Take the size that the vocabulary has so far.",
)
def _(tokens, specials):
    listed = [*specials, *tokens]
    return {token: listed.index(token) for token in listed}


vocabularies.mistake(
    "id to token in place of token to id",
    "The dict is the wrong way round: look up a token, find its id.",
)(lambda *given: dict(enumerate(numbered(*given))))
vocabularies.mistake(
    "a list in place of a dict",
    "A list has to be searched for a token; a dict answers at once.",
)(lambda *given: list(numbered(*given)))


# --- the check ------------------------------------------------------------------------


@chapter.check(section="embeddings-vocabulary")
def vocabulary(student: StudentFunction, seed: int = 0) -> None:
    """By hand, the running example, random tokens, no tokens at all."""
    source = WholeNumbers(seed)
    english = ["<sos>", "Bobby", " likes", " blackberries", ".", "<eos>"]
    letters = ["dcbafeg"[i] for i in draw_several(source, 0, 7, 20)]
    letters += letters[-1:] * 3
    for tokens, *specials in (
        (["the", "dog", "sees", "the", "cat"], ("<pad>", "<unk>")),
        (english,),
        (letters, ("<unk>", "<end>", "<pad>")),
        ([], ("<unk>",)),
        (["the", "dog", "the"], ()),
    ):
        case = Case(
            called("build_vocabulary", tokens, *specials),
            (tokens, *(specials or [DEFAULT])),
            what="the vocabulary",
            why="The special tokens get 0, 1, ...; then each further token, where it "
            "first appears, the next number.",
        )
        vocabularies.compare(student(tokens, *specials), case)
