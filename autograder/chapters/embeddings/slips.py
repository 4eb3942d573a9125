"""The slips of a printed table: ids without a row, and a text with a loss."""

from autograder import expect
from autograder.chapters.embeddings.chapter import chapter
from autograder.chapters.embeddings.texts import write
from autograder.exercise.answers import judge_by_hand
from autograder.exercise.spec import Function
from autograder.expect import refuse_if
from autograder.interface import Data, StudentFunction

SENTENCE = "Bobby mag Brombeeren."


def right() -> dict:
    """Give the answer, worked out by hand."""
    return {
        "outside": [0],
        "refused": [7],
        "rows_needed": 8,
        "row_of_zero": 6,
        "same_vector": [0, 7],
        "decoded": "Bobby mag Brombeeren",
        "lost": ".",
        "repaired": ["<sos>", "Bobby", " mag", " Brom", "beeren", ".", "<eos>"],
    }


table = Function("find-the-slips", "token_table_slips", right)


# --- what goes wrong ------------------------------------------------------------------

FROM_ONE = (
    "rows counted from 1",
    "The lecture's rows are w_1 to w_7; Python's are 0 to 6. A table of 7 rows has no "
    "row 7.",
)
NO_END = (
    "the set without its end",
    "{1, ..., 7} contains 7; only one printed id is not in it.",
)
SPECIALS_GONE = (
    "the special tokens are gone",
    "The list still begins with <sos> and ends with <eos>.",
)
MARKED = (
    "<EOW> still there",
    "In this course's manner the space itself is kept, before the word it belongs to. "
    "A mark for the end of a word is then not needed.",
)
NO_STOP = (
    "the full stop still has no token",
    "The full stop needs a token of its own, or it is lost again.",
)
NO_SPACES = (
    "the spaces are lost",
    "Joined, the words run into each other. Write ' mag', with its space.",
)
BEHIND = (
    "the space stands behind the word",
    "In this course a space belongs to the word after it, not before it.",
)
OTHER_CUT = (
    "another cut",
    "Keep the cut: ' Brom' and 'beeren' are two tokens, the full stop a third.",
)
for name, why, wrong in (
    (
        "nothing found outside",
        "Compare every printed id with 1 to 7.",
        {"outside": []},
    ),
    (*NO_END, {"outside": [7]}),
    (*NO_END, {"outside": [0, 7]}),
    (*FROM_ONE, {"refused": [0]}),
    (*FROM_ONE, {"refused": []}),
    (
        "0 counted as no row",
        "0 is the first row in Python, so it is not refused.",
        {"refused": [0, 7]},
    ),
    (*FROM_ONE, {"rows_needed": 7}),
    (
        "the tokens counted in place of the rows",
        "The sentence has six tokens, but a table needs a row for each number up to "
        "the largest id.",
        {"rows_needed": 6},
    ),
    (
        "the index in place of the row",
        "-1 is what Python is asked for. Which row does it take, counted from 0?",
        {"row_of_zero": -1},
    ),
    (*FROM_ONE, {"row_of_zero": 7}),
    (
        "the wrong look-up",
        "E[id] takes row 0. Here someone wrote E[id - 1].",
        {"row_of_zero": 0},
    ),
    (
        "the larger id first",
        "The two are right; the smaller first.",
        {"same_vector": [7, 0]},
    ),
    (
        "rows in place of ids",
        "That is the row both get. Which two printed ids get it?",
        {"same_vector": [6, 6]},
    ),
    (
        "id 0 and id 1 exchanged for the same",
        "id 1 takes row 0, id 0 takes row -1: not the same.",
        {"same_vector": [0, 1]},
    ),
    (
        "the sentence in place of the decoded text",
        "That is what was meant. Only what is in the tokens can come back.",
        {"decoded": "Bobby mag Brombeeren."},
    ),
    (
        "a space after every token",
        "Brom does not end a word: it has no <EOW>, so no space follows.",
        {"decoded": "Bobby mag Brom beeren"},
    ),
    (
        "a space left at the end",
        "The last <EOW> became a space, too; drop it.",
        {"decoded": "Bobby mag Brombeeren "},
    ),
    ("nothing found lost", "Compare the ends of the two texts.", {"lost": ""}),
    (
        "the space in place of the full stop",
        "Every <EOW> gives its space back. Look at the very end.",
        {"lost": " "},
    ),
    (
        "a mark in place of text",
        "<EOW> was never in the sentence; it was added and removed.",
        {"lost": "<EOW>"},
    ),
    (*SPECIALS_GONE, {"repaired": ["Bobby", " mag", " Brom", "beeren", "."]}),
):
    table.mistake(name, why)(lambda wrong=wrong: right() | wrong)
for (name, why), inner in (
    (MARKED, ["Bobby<EOW>", "mag<EOW>", "Brom", "beeren<EOW>", "."]),
    (NO_STOP, ["Bobby", " mag", " Brom", "beeren"]),
    (NO_SPACES, ["Bobby", "mag", "Brom", "beeren", "."]),
    (BEHIND, ["Bobby ", "mag ", "Brom", "beeren", "."]),
    (OTHER_CUT, ["Bobby", " mag", " Brombeeren", "."]),
):
    table.mistake(name, why)(
        lambda inner=inner: right() | {"repaired": ["<sos>", *inner, "<eos>"]}
    )


# --- the check ------------------------------------------------------------------------

REASONS = {
    "outside": "A list: which printed ids are not in {1, ..., 7}?",
    "refused": "A list: nn.Embedding(7, 4) has the rows 0 to 6.",
    "rows_needed": "A whole number: the rows start with 0 and must include every "
    "printed id.",
    "row_of_zero": "A whole number from 0 to 6: what does Python do with the index -1?",
    "same_vector": "A list of two printed ids, the smaller first, whose id - 1 is the "
    "same row.",
    "decoded": "A string: four tokens joined, <EOW> a space, no space at the end.",
    "lost": "A string of one character: compare the sentence with what came back.",
}


@chapter.check(section="embeddings-mistakes")
def find_the_slips(student: StudentFunction, seed: int = 0) -> None:
    """Eight entries about the printed table, each named when a known slip is made."""
    got = student()
    judge_by_hand(table, got, REASONS)
    _expect_repaired(got["repaired"])


def _expect_repaired(value: Data) -> None:
    value = list(value) if isinstance(value, tuple) else value
    say = {"on": "the entry 'repaired'", "got": write(value)}
    strings = isinstance(value, list) and all(isinstance(each, str) for each in value)
    why = "A list of strings, from '<sos>' to '<eos>'."
    expect.true(strings, "'repaired' is no list of strings", why=why, **say)
    ends = value[:1] == ["<sos>"] and value[-1:] == ["<eos>"]
    refuse_if(not ends, *SPECIALS_GONE, **say)
    inner = value[1:-1]
    text = "".join(inner)
    refuse_if("<EOW>" in text, *MARKED, **say)
    refuse_if(text == SENTENCE[:-1], *NO_STOP, **say)
    refuse_if(text == SENTENCE.replace(" ", ""), *NO_SPACES, **say)
    wanted = f"tokens that, joined, are {SENTENCE!r}"
    expect.true(text == SENTENCE, "'repaired' is wrong", expected=wanted, **say)
    refuse_if(any(token != token.rstrip() for token in inner), *BEHIND, **say)
    refuse_if(" Brom" not in inner or "beeren" not in inner, *OTHER_CUT, **say)
