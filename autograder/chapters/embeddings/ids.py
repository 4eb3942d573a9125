"""Tokens to ids, and ids to tokens."""

from collections.abc import Callable
from functools import partial
from typing import Any

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


def encoded(
    tokens: list[str],
    words: dict[str, int],
    *,
    asked: Callable = lambda token: token,
    known: Callable = lambda token, words: token in words,
    own: Callable = lambda token, words: words[token],
    unknown: Callable | None = None,
    form: Callable = list,
) -> Any:
    """Look ids up with slips, which may be several.

    Args:
        tokens: to look up.
        words: token -> id.
        asked: what is looked up of a token.
        known: whether it is in the vocabulary.
        own: the id of a token.
        unknown: a list of what an unknown one gets; None: the id of <unk>.
        form: of the ids.
    """
    unknown = unknown or (lambda token, words: [own("<unk>", words)])
    return form(
        i
        for each in map(asked, tokens)
        for i in ([own(each, words)] if known(each, words) else unknown(each, words))
    )


STOPS = (
    "an unknown token stops the program",
    "encode must not insist on finding the token: ask the dict with .get(token, the id "
    'of "<unk>").',
)
for words in ("KeyError", "ValueError"):
    encoding.accident(words, *STOPS)
NO_TOKEN, ASSUMED = "an id that no token has", "the id of <unk> is assumed"
LOOK_UP = 'Look up the id of "<unk>" in the vocabulary you are given.'
POSITION = "the position in the dict in place of the id"
TURN_ROUND = "A token's place in the dict need not be its id: turn the dict round."
SPELT = "Another spelling is another token: look the tokens up as they are."
AFTER = "the id after", "Ids are what the dict says, and are not shifted."
ONCE = "repetitions are left out", "What comes again is there again: T in, T out."
encoding.slips(
    encoded,
    (*STOPS, {"unknown": lambda token, words: [words[token]]}),
    (
        "unknown tokens are left out",
        "Each token needs an id, or sequence and ids no longer match.",
        {"unknown": lambda *_: []},
    ),
    (
        "unknown tokens become <pad>",
        "<pad> says 'there is no token here'. An unknown token is one: <unk>.",
        {"unknown": lambda token, words: [words["<pad>"]]},
    ),
    (
        "unknown tokens have no id",
        ".get(token) answers None for a token that is missing. Its second argument "
        'says what to answer then: vocabulary["<unk>"].',
        {"unknown": lambda *_: [None]},
    ),
    (
        NO_TOKEN,
        "There is no row -1 (Python would take the last).",
        {"unknown": lambda *_: [-1]},
    ),
    (
        NO_TOKEN,
        "There is no such row in the table.",
        {"unknown": lambda token, words: [len(words)]},
    ),
    (ASSUMED, LOOK_UP, {"unknown": lambda *_: [0]}),
    (ASSUMED, LOOK_UP, {"unknown": lambda *_: [1]}),
    (
        "the token <unk> in place of its id",
        'The answer for an unknown token is a number: vocabulary["<unk>"].',
        {"unknown": lambda *_: ["<unk>"]},
    ),
    (
        POSITION,
        "A token's place in the dict need not be its id: ask the dict itself.",
        {"own": lambda token, words: list(words).index(token)},
    ),
    (*AFTER, {"own": lambda token, words: words[token] + 1}),
    (
        "the id 0 is taken for none",
        "0 is an id like any other, and Python takes it for False. Ask whether the "
        "token is in the vocabulary, or give `get` a second argument.",
        {"known": lambda token, words: words.get(token)},
    ),
    ("capital letters are lost", SPELT, {"asked": str.lower}),
    ("the spaces are lost", SPELT, {"asked": str.strip}),
    (*ONCE, {"form": lambda ids: list(dict.fromkeys(ids))}),
)


# --- what goes wrong: decode ----------------------------------------------------------


def _turned_round(i: int, words: dict[str, int]) -> str:
    return {number: token for token, number in words.items()}[i]


def decoded(
    ids: list[int],
    words: dict[str, int],
    *,
    named: Callable = _turned_round,
    shift: int = 0,
    unknown: Callable | None = None,
    form: Callable = list,
) -> Any:
    """Look tokens up with slips, which may be several.

    Args:
        ids: to look up.
        words: token -> id.
        named: the token of an id.
        shift: what is added to an id.
        unknown: a list of what an id gets that no token has; None: it is an error.
        form: of the tokens.
    """
    found = []
    for i in (each + shift for each in ids):
        outside = unknown and i not in words.values()
        found += unknown() if outside else [named(i, words)]
    return form(found)


def _in_a_list(i: int, words: dict[str, int], largest: Callable = len) -> str:
    names = [None] * largest(words)
    for token, number in words.items():
        names[number] = token
    return names[i]


def _known(ids: list[int], words: dict[str, int]) -> bool:
    return set(ids) <= set(words.values())


def _outside(ids: list[int], words: dict[str, int]) -> bool:
    return not _known(ids, words)


GAPS = (
    "a list that is as long as the vocabulary",
    "The largest id may be larger than the number of tokens: the ids need not be 0, 1, "
    "2, ... without a gap. Turn the dict round.",
)
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
EMPTY = (
    "an empty list is refused",
    "max and min of nothing stop with an error, and in an empty list there is nothing "
    "to refuse. Test each id by itself.",
)
STRING = (
    "a string in place of a list",
    "A list of tokens is wanted. Joining them is a second step, and for special tokens "
    "not always the right one.",
)
HIDDEN = (
    "a wrong id becomes <unk>",
    "<unk> stands for a token that the vocabulary does not know. An id that does not "
    "exist is a bug elsewhere, and hiding it makes it hard to find.",
)
decoding.accident("list index out of range", POSITION, TURN_ROUND)
decoding.accident("list assignment index out of range", *GAPS)
decoding.accident("empty", *EMPTY)
for name, why, slip, when in (
    (POSITION, TURN_ROUND, {"named": lambda i, words: list(words)[i]}, _known),
    (*GAPS, {"named": _in_a_list}, _known),
    (
        "a negative id counts from the end",
        "names[-1] is the last element of a list, so a bug (an id shifted by one) "
        "would come out as an ordinary word.",
        {"named": partial(_in_a_list, largest=lambda words: max(words.values()) + 1)},
        lambda ids, words: min(ids, default=0) < 0,
    ),
    (
        "the id before",
        "Ids count from 0 and are not shifted.",
        {"shift": -1, "unknown": lambda: [None]},
        None,
    ),
    (*AFTER, {"shift": 1, "unknown": lambda: [None]}, None),
    (*HIDDEN, {"unknown": lambda: ["<unk>"]}, _outside),
    (*HIDDEN, {"unknown": lambda: [None]}, _outside),
    (
        "a wrong id is left out",
        "The tokens that come back no longer match the ids. Refuse instead.",
        {"unknown": list},
        _outside,
    ),
    (*STRING, {"form": "".join}, None),
    (*STRING, {"form": " ".join}, None),
    (
        "special tokens are left out",
        "Every id has its token, special ones, too. Who wants the words alone takes "
        "the others out afterwards.",
        {"form": lambda tokens: [each for each in tokens if each[0] != "<"]},
        None,
    ),
    (*ONCE, {"form": lambda tokens: list(dict.fromkeys(tokens))}, None),
    (*EMPTY, {"form": max}, lambda ids, words: not ids),
):
    decoding.mistake(name, why, when=when)(partial(decoded, **slip))
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
        (["The", "dog", " dog"], ordered),
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
