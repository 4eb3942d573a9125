"""The vocabulary: every token once, the special tokens first, ids from 0."""

from collections import Counter
from collections.abc import Iterable

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

ALPHABET = (
    "tokens in alphabetical order",
    "The ids follow the order in which tokens first appear: do not sort.",
)
for name, why, in_order in (
    (
        "the special tokens come last",
        "Put the special tokens first: their ids stay the same, whatever the text.",
        lambda tokens, specials: [*(t for t in tokens if t not in specials), *specials],
    ),
    (
        "the special tokens are missing",
        "Without <unk> there is no answer for a new word, without <pad> no batch.",
        lambda tokens, specials: tokens,
    ),
    (
        "the argument special_tokens is not used",
        "The ids of the default special tokens came out, although others were given.",
        lambda tokens, specials: [*DEFAULT, *tokens],
    ),
    (*ALPHABET, lambda tokens, specials: [*specials, *sorted(tokens)]),
    (*ALPHABET, lambda tokens, specials: sorted({*specials, *tokens})),
    (
        *ALPHABET,
        lambda tokens, specials: sorted([*specials, *tokens], key=str.lower),
    ),
    (
        "tokens in order of frequency",
        "The most frequent token came first. Wanted is the order of first appearance.",
        lambda tokens, specials: [*specials, *dict(Counter(tokens).most_common())],
    ),
    (
        "capital letters are lost",
        "Bobby and bobby are two tokens: take them as they are.",
        lambda tokens, specials: [*specials, *map(str.lower, tokens)],
    ),
    (
        "the spaces are lost",
        "' likes' and 'likes' are two tokens: the space belongs to the word.",
        lambda tokens, specials: [*specials, *map(str.strip, tokens)],
    ),
):
    vocabularies.mistake(name, why)(
        lambda *given, in_order=in_order: numbered(in_order(*given), ())
    )

vocabularies.mistake(
    "ids start at 1",
    "An id is the number of a row, and rows start at 0. With ids from 1 to N the last "
    "one has no row, and row 0 is never used.",
)(lambda *given: {token: i + 1 for token, i in numbered(*given).items()})
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
vocabularies.mistake(
    "a special token in the text takes a new id",
    "A special token keeps its first id, also where it occurs in the text. Number only "
    "what is not yet in the vocabulary.",
)(
    lambda tokens, specials: _renumbered(
        numbered((), specials), numbered(tokens, ()).keys()
    )
)


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
    ):
        case = Case(
            called("build_vocabulary", tokens, *specials),
            (tokens, *(specials or [DEFAULT])),
            what="the vocabulary",
            why="The special tokens get 0, 1, ...; then each further token, where it "
            "first appears, the next number.",
        )
        vocabularies.compare(student(tokens, *specials), case)
