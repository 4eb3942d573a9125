"""Tokens to ids, and ids to tokens."""

from autograder.chapters.embeddings.chapter import chapter
from autograder.chapters.embeddings.refusals import expect_refusal, mistakes_in_refusing
from autograder.exercise.inputs import Source, WholeNumbers, draw_order
from autograder.exercise.spec import Case, Function, errors_named
from autograder.interface import StudentFunction


def looked_up(tokens: list[str], words: dict[str, int]) -> list[int]:
    """Give each token the id that it has, or that of <unk>."""
    return [words[token if token in words else "<unk>"] for token in tokens]


def searched(ids: list[int], words: dict[str, int]) -> list[str]:
    """Search the whole vocabulary for each id."""
    return [list(words)[list(words.values()).index(i)] for i in ids]


encoding = Function("encode-decode", "encode", looked_up)
decoding = Function("encode-decode", "decode", searched)


# --- what goes wrong: encode ----------------------------------------------------------

STOPS = (
    "an unknown token stops the program",
    "encode must not insist on finding the token: ask the dict with .get(token, the id "
    'of "<unk>").',
)
encoding.accident("KeyError", *STOPS)
encoding.mistake(*STOPS)(lambda tokens, words: [words[token] for token in tokens])
encoding.mistake(
    "unknown tokens are left out",
    "Each token needs an id, or sequence and ids no longer match.",
)(lambda tokens, words: [words[token] for token in tokens if token in words])
NO_TOKEN, ASSUMED = "an id that no token has", "the id of <unk> is assumed"
LOOK_UP = 'Look up the id of "<unk>" in the vocabulary you are given.'
for name, why, number in (
    (
        "unknown tokens become <pad>",
        "<pad> says 'there is no token here'. An unknown token is one: <unk>.",
        lambda words: words["<pad>"],
    ),
    (
        "unknown tokens have no id",
        ".get(token) answers None for a token that is missing. Its second argument "
        'says what to answer then: vocabulary["<unk>"].',
        lambda words: None,
    ),
    (
        NO_TOKEN,
        "There is no row -1 (Python would take the last).",
        lambda words: -1,
    ),
    (NO_TOKEN, "There is no such row in the table.", len),
    (ASSUMED, LOOK_UP, lambda words: 0),
    (ASSUMED, LOOK_UP, lambda words: 1),
    (
        "the token <unk> in place of its id",
        'The answer for an unknown token is a number: vocabulary["<unk>"].',
        lambda words: "<unk>",
    ),
):
    encoding.mistake(name, why)(
        lambda tokens, words, number=number: [
            words.get(token, number(words)) for token in tokens
        ]
    )
POSITION = "the position in the dict in place of the id"
encoding.mistake(
    POSITION, "A token's place in the dict need not be its id: ask the dict itself."
)(
    lambda tokens, words: [
        list(words).index(token if token in words else "<unk>") for token in tokens
    ]
)
encoding.mistake(
    "the id 0 is taken for none",
    "0 is an id like any other, and Python takes it for False. Ask whether the token "
    "is in the vocabulary, or give `get` a second argument.",
)(lambda tokens, words: [words.get(token) or words["<unk>"] for token in tokens])


# --- what goes wrong: decode ----------------------------------------------------------


def _turned_round(words: dict[str, int]) -> dict[int, str]:
    return {i: token for token, i in words.items()}


def _known(ids: list[int], words: dict[str, int]) -> bool:
    return set(ids) <= set(words.values())


def _outside(ids: list[int], words: dict[str, int]) -> bool:
    return not _known(ids, words)


TURN_ROUND = "A token's place in the dict need not be its id: turn the dict round."
decoding.accident("list index out of range", POSITION, TURN_ROUND)
decoding.mistake(POSITION, TURN_ROUND, when=_known)(
    lambda ids, words: [list(words)[i] for i in ids]
)
for glue in ("", " "):
    decoding.mistake(
        "a string in place of a list",
        "A list of tokens is wanted. Joining them is a second step, and for special "
        "tokens not always the right one.",
    )(lambda ids, words, glue=glue: glue.join(searched(ids, words)))
decoding.mistake("the id before", "Ids count from 0 and are not shifted.")(
    lambda ids, words: [_turned_round(words).get(i - 1) for i in ids]
)
GAPS = (
    "a list that is as long as the vocabulary",
    "The largest id may be larger than the number of tokens: the ids need not be 0, 1, "
    "2, ... without a gap. Turn the dict round.",
)


def _in_a_list(ids: list[int], words: dict[str, int], length: int) -> list[str]:
    names = [None] * length
    for token, i in words.items():
        names[i] = token
    return [names[i] for i in ids]


SIZE = (
    "the size of the vocabulary taken for its largest id",
    "The ids may have gaps, so that the largest one is not smaller than the number of "
    "tokens. An id is known if it is one of the vocabulary's values: turn the dict "
    "round and ask it.",
)
REFUSED = (
    "an id that exists is refused",
    "Each of these ids is one of the vocabulary's values: only others are refused.",
)
decoding.accident("list assignment index out of range", *GAPS)
decoding.mistake(*GAPS, when=_known)(
    lambda ids, words: _in_a_list(ids, words, len(words))
)
decoding.mistake(
    "a negative id counts from the end",
    "names[-1] is the last element of a list, so a bug (an id shifted by one) would "
    "come out as an ordinary word.",
    when=lambda ids, words: min(ids, default=0) < 0,
)(lambda ids, words: _in_a_list(ids, words, max(words.values()) + 1))
for unknown in ("<unk>", None):
    decoding.mistake(
        "a wrong id becomes <unk>",
        "<unk> stands for a token that the vocabulary does not know. An id that does "
        "not exist is a bug elsewhere, and hiding it makes it hard to find.",
        when=_outside,
    )(
        lambda ids, words, unknown=unknown: [
            _turned_round(words).get(i, unknown) for i in ids
        ]
    )
decoding.mistake(
    "a wrong id is left out",
    "The tokens that come back no longer match the ids. Refuse instead.",
    when=_outside,
)(lambda ids, words: [_turned_round(words)[i] for i in ids if i in words.values()])
mistakes_in_refusing(decoding, _outside)


# --- the check ------------------------------------------------------------------------


def _draw_ids(source: Source) -> list[int]:
    """Draw seven ids, of which the fifth is not 0 and the sixth neither 0 nor 1."""
    while True:
        drawn = draw_order(source, 7)
        if drawn[4] > 0 and drawn[5] > 1 and drawn != sorted(drawn):
            return drawn


@chapter.check(section="embeddings-vocabulary")
def encode_decode(
    encode: StudentFunction, decode: StudentFunction, seed: int = 0
) -> None:
    """Unknown tokens, vocabularies in any order, ids that no token has."""
    ordered = {"<pad>": 0, "<unk>": 1, "the": 2, "dog": 3}
    names = ["cat", "dog", "sees", "the", "<pad>", "<unk>", "mice"]
    drawn = _draw_ids(WholeNumbers(seed))
    # no token has the ids 7 and 8
    shuffled = {"gap": 9, **dict(zip(names, drawn, strict=True))}
    for tokens, words in (
        (["the", "fox", "the"], ordered),
        (["mice", "fox", "the", "gap", "cat", "hen"], shuffled),
        (["dog", "sees"], shuffled),
        ([], ordered),
    ):
        on = f"encode({tokens}, {words})"
        why = (
            "One id for each token, as a list of numbers; for unknown ones that of "
            '"<unk>".'
        )
        encoding.judge(encode, Case(on, (tokens, words), what="the ids", why=why))
    for ids, words in (
        ([2, 1, 2], ordered),
        (drawn, shuffled),
        ([9, *drawn, 9], shuffled),
        ([], ordered),
    ):
        on = f"decode({ids}, {words})"
        why = "One token for each id, as a list of strings."
        case = Case(on, (ids, words), what="the tokens", why=why)
        refused = SIZE if max(ids, default=0) >= len(words) else REFUSED
        with errors_named(("ValueError", *refused)):
            decoding.judge(decode, case)
    for ids, words in (([2, -1], ordered), ([4], ordered), ([0, 8], shuffled)):
        on = f"decode({ids}, {words}): no token has the id {ids[-1]}"
        expect_refusal(
            decoding,
            decode,
            Case(on, (ids, words)),
            (
                "a wrong id gets some token",
                "No token has this id; test that it is one of the vocabulary's values.",
            ),
        )
