"""The worked example: three words, their weights and values, by pencil and paper."""

from functools import partial

import torch

from autograder.chapters.attention.chapter import chapter
from autograder.exercise.answers import judge_by_hand
from autograder.exercise.spec import Function
from autograder.interface import StudentFunction

WEIGHTS = torch.tensor([[1.0, 0.0, 0.0], [0.3, 0.7, 0.0], [0.1, 0.8, 0.1]])
VALUES = torch.tensor(
    [[0.5, 0.2, 1.0, 0.4], [0.1, 0.2, 0.6, 0.8], [0.3, 0.2, 0.2, 1.0]]
)


def right() -> dict:
    """Give the answer, worked out by hand."""
    context = [[0.5, 0.2, 1.0, 0.4], [0.22, 0.2, 0.72, 0.68], [0.16, 0.2, 0.6, 0.78]]
    return {
        "context": torch.tensor(context),
        "unchanged_row": 0,
        "constant_column": 1,
        "strongest": [0, 1, 1],
    }


example = Function("worked-context", "worked_context", right)
FROM_ONE = (
    "counted from 1",
    "Positions are counted from 0 in this course, as in Python.",
)
BY_COLUMNS = "rows and columns exchanged"
CHAPTERS_WEIGHTS = torch.tensor([[1, 0, 0], [0.6, 0.4, 0], [0.2, 0.5, 0.3]])
CHAPTERS_VALUES = torch.tensor(
    [[0.1, 0.2, 0.3, 0.3], [0.4, 0.24, 0.9, 0.3], [0.1, 0.8, 0.3, 0.3]]
)
for name, why, wrong in (
    (
        BY_COLUMNS,
        "The weights were read by columns. Row i of the weights belongs to query i "
        "and sums to 1; the columns do not.",
        {"context": WEIGHTS.T @ VALUES},
    ),
    (
        "equal weights",
        "This is the plain mean of the values, the same in every row. Each row has "
        "weights of its own.",
        {"context": VALUES.mean(0).repeat(3, 1)},
    ),
    (
        "weights in reverse order",
        "Weight j goes with value j: the first number of a row of the weights belongs "
        "to the first row of the values.",
        {"context": WEIGHTS.flip(-1) @ VALUES},
    ),
    (
        "the values themselves",
        "These are the rows before mixing; only the first token, which sees nothing "
        "but itself, keeps its value.",
        {"context": VALUES.clone()},
    ),
    (
        "the rows are not mixed by weights but added",
        "Each row of the values counts by its weight: multiply it first, then add.",
        {"context": VALUES.cumsum(0)},
    ),
    (
        "the numbers of the chapter's example",
        "This is the context of 'attention is cool'. The exercise has weights and "
        "values of its own.",
        {"context": CHAPTERS_WEIGHTS @ CHAPTERS_VALUES},
    ),
    (*FROM_ONE, {"unchanged_row": 1}),
    (*FROM_ONE, {"constant_column": 2}),
    (
        "a row in place of a column",
        "Columns run downwards: which one repeats?",
        {"constant_column": 0},
    ),
    (
        "every token attends to itself",
        "Look for the largest number of each row: not all are on the diagonal.",
        {"strongest": [0, 1, 2]},
    ),
    (
        BY_COLUMNS,
        "You took the largest number of each column. A row is a query: row i says how "
        "token i shares out its attention.",
        {"strongest": [0, 2, 2]},
    ),
    (*FROM_ONE, {"strongest": [1, 2, 2]}),
    (
        "the strongest features in place of the strongest weights",
        "These are the columns of the context with the largest numbers. The question "
        "is about the weights: to whom does each token attend most?",
        {"strongest": [2, 2, 3]},
    ),
):
    example.mistake(name, why)(lambda wrong=wrong: right() | wrong)


def _without(row: int, term: int, column: int | slice) -> dict:
    """Leave one product out, in one number of a row or in all of them."""
    entries = right()
    entries["context"][row, column] -= WEIGHTS[row, term] * VALUES[term, column]
    return entries


for row, term in WEIGHTS[1:].nonzero().tolist():
    for column in (*range(4), slice(None)):
        example.mistake(
            "a term of the sum is forgotten",
            "Each number of row i is a sum of as many products as row i of the weights "
            "has numbers other than 0. One product is not there, a small one, perhaps.",
        )(partial(_without, row + 1, term, column))


@chapter.check(section="attention-worked-example")
def worked_context(student: StudentFunction, seed: int = 0) -> None:
    """Check the context vectors, and three questions about them."""
    reasons = {
        "context": "Row i is the sum over j of weights[i, j] times row j of the "
        "values.",
        "unchanged_row": "A position, one number: which row of the context is a row of "
        "V as it stands?",
        "constant_column": "A position, one number. Look down the columns of your "
        "context.",
        "strongest": "A list of three positions, counted from 0, not of words or "
        "weights: for each row of the weights, the column in which its largest number "
        "stands.",
    }
    judge_by_hand(example, student(), reasons)
