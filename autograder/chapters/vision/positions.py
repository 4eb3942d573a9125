"""Which positions resemble one another, by their learned vectors."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.vision.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction


def similar(table: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    """Compare by PyTorch's cosines, each position with each."""
    own = table[len(table) - rows * columns :].double()
    cosines = F.cosine_similarity(own[:, None], own[None], dim=-1)
    return _laid(cosines.float(), rows, columns)


def _laid(products: torch.Tensor, rows: int, columns: int) -> torch.Tensor:
    return products.reshape(rows, columns, rows, columns)


similarity = Function("position-similarity", "position_similarity", similar)


# --- what goes wrong ------------------------------------------------------------------


def _lengths(vectors: torch.Tensor, axis: int = -1) -> torch.Tensor:
    return vectors.norm(dim=axis, keepdim=True)


def _products(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    return first @ second.T


def _as_is(table: torch.Tensor) -> torch.Tensor:
    return table


def _divided(table: torch.Tensor) -> torch.Tensor:
    return table / _lengths(table)


def by_rules(
    table: torch.Tensor,
    rows: int,
    columns: int,
    *,
    before: Callable[[torch.Tensor], torch.Tensor] = _as_is,
    own: Callable[[torch.Tensor, int], torch.Tensor] = lambda table, n: table[-n:],
    moved: Callable[[torch.Tensor], torch.Tensor] = _as_is,
    first: Callable[[torch.Tensor], torch.Tensor] = _divided,
    second: Callable[[torch.Tensor], torch.Tensor] = _divided,
    compared: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = _products,
    laid: Callable[[torch.Tensor, int, int], torch.Tensor] = _laid,
) -> torch.Tensor:
    """Compare positions by rules that can be varied.

    Args:
        table: (N, d) or (N + 1, d).
        rows: of the grid.
        columns: of the grid.
        before: made of the whole table.
        own: the rows of the patches, of that and their number.
        moved: made of these.
        first: of which length they are made, for the first factor.
        second: likewise, for the second.
        compared: each of the one with each of the other, (N, N).
        laid: the pictures, of this, rows and columns.
    """
    x = moved(own(before(table), rows * columns))
    return laid(compared(first(x), second(x)), rows, columns)


def _both(rule: Callable[[torch.Tensor], torch.Tensor]) -> dict[str, Callable]:
    return {"first": rule, "second": rule}


def _centred(table: torch.Tensor) -> torch.Tensor:
    return table - table.mean(dim=0)


def _of_columns(table: torch.Tensor) -> torch.Tensor:
    return table / _lengths(table, 0)


def _of_all(table: torch.Tensor) -> torch.Tensor:
    return table / table.norm()


PRODUCTS = (
    "products in place of cosines",
    "Long vectors have large products with everything. Divide every row by its length, "
    "and only the direction is compared.",
)
ONE_LENGTH = (
    "only one of two lengths",
    "A product of two vectors grows with both lengths. Divide the rows first; then "
    "both factors have length 1.",
)
COLUMNS = (
    "lengths of the columns",
    "A position is a row: its length is over the features, dim=-1.",
)
ONE_FOR_ALL = (
    "one length for the whole table",
    "Every position has a length of its own, over the features of its row. Divided by "
    "one number for all, long rows still have large products with everything, and a "
    "position is not 1 with itself.",
)
DISTANCES = (
    "distances in place of cosines",
    "Equal directions have the cosine 1, not the distance 0.",
)
MEAN = (
    "the mean position subtracted first",
    "The positions are compared as they are; a correlation is another number.",
)
SIDES = (
    "rows and columns of the grid exchanged",
    "Patches come in reading order, row after row: split N into (rows, columns).",
)
FLAT = (
    "not laid out as pictures",
    "Both axes of length N are split into rows and columns: four axes.",
)
SLIPS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (*PRODUCTS, _both(_as_is)),
    (*PRODUCTS, _both(lambda x: x / x.shape[-1] ** 0.25)),
    (*ONE_LENGTH, {"first": _as_is}),
    (*ONE_LENGTH, {"second": _as_is}),
    (*ONE_LENGTH, {"first": lambda x: x / _lengths(x) ** 2, "second": _as_is}),
    (*ONE_LENGTH, {"first": _as_is, "second": lambda x: x / _lengths(x) ** 2}),
    (*COLUMNS, _both(_of_columns)),
    (*COLUMNS, _both(_as_is) | {"before": _of_columns}),
    (
        "the root is missing",
        "The length is the root of the sum of squares, x.norm(dim=-1).",
        _both(lambda x: x / _lengths(x) ** 2),
    ),
    (
        "short rows are not brought to length 1",
        "Learned positions are often shorter than 1. Each row is divided by its own "
        "length, also by a small one.",
        _both(lambda x: x / _lengths(x).clamp(min=1)),
    ),
    (
        "sums of absolute values in place of lengths",
        "The length is the root of the sum of squares. Divided by the sum of absolute "
        "values, a position is not 1 with itself.",
        _both(lambda x: x / x.abs().sum(dim=-1, keepdim=True)),
    ),
    (*DISTANCES, _both(_as_is) | {"compared": torch.cdist}),
    (*DISTANCES, {"compared": torch.cdist}),
    (*DISTANCES, {"compared": lambda one, other: 1 - one @ other.T}),
    (
        "a softmax of the cosines",
        "The cosines themselves are asked for, from −1 to 1. They are no scores of "
        "which shares are made.",
        {"compared": lambda one, other: _products(one, other).softmax(dim=-1)},
    ),
    (*MEAN, {"moved": _centred}),
    (*MEAN, {"before": _centred}),
    (
        "correlations in place of cosines",
        "A correlation subtracts from each row the mean of its features. The cosine "
        "compares the rows as they are.",
        {"moved": lambda x: x - x.mean(dim=-1, keepdim=True)},
    ),
    (*ONE_FOR_ALL, _both(_of_all)),
    (*ONE_FOR_ALL, _both(_as_is) | {"before": _of_all}),
    (
        "the last position left out in place of the first",
        "The class token comes first, so its position is row 0 of the table.",
        {"own": lambda table, count: table[:count]},
    ),
    (
        *SIDES,
        {"laid": lambda products, rows, columns: _laid(products, columns, rows)},
    ),
    (
        *SIDES,
        {
            "laid": lambda products, rows, columns: _laid(
                products, columns, rows
            ).permute(1, 0, 3, 2)
        },
    ),
    (
        "the axes of the pictures in another order",
        "Entry [r, c] is the picture of one position: (rows, columns, rows, columns), "
        "as the split gives them. Nothing is to be permuted.",
        {
            "laid": lambda products, rows, columns: _laid(
                products, rows, columns
            ).transpose(1, 2)
        },
    ),
    (*FLAT, {"laid": lambda products, rows, columns: products}),
    (
        *FLAT,
        {"laid": lambda products, rows, columns: products.view(rows, columns, -1)},
    ),
)
similarity.slips(by_rules, *SLIPS)


# --- the check ------------------------------------------------------------------------


@chapter.check(section="trained-vision-positions")
def position_similarity(student: StudentFunction, seed: int = 0) -> None:
    """By hand, scikit-learn's cosines, with and without a class token, refusals."""
    hand = torch.tensor([[3.0, 4.0], [4.0, 3.0]])
    right = torch.tensor([[1.0, 0.96], [0.96, 1.0]]).view(1, 2, 1, 2)
    special = torch.tensor([[5.0, -12.0]])
    for table, which in ((hand, "no"), (torch.cat((special, hand)), "a")):
        on = f"the example by hand, {which} class token"
        similarity.judge(student, Case(on, (table, 1, 2), right))
    generator = seeded(seed)
    for more, spread in ((0, 1.0), (1, 1.0), (0, 0.02)):  # the last as it is drawn
        rows, columns, d = draw_sizes(generator, 3)
        table = spread * normal(generator, rows * columns + more, d)
        on = f"a table {tuple(table.shape)}, {rows} x {columns} patches"
        on += "" if spread == 1 else f", with a spread of {spread}"
        similarity.judge(student, Case(on, (table, rows, columns)))
    why = (
        "Such a table belongs to another grid. Compare its number of rows with rows · "
        "columns before anything is computed."
    )
    for length in (5, 8, 12):
        expect.raises(
            "ValueError",
            lambda length=length: student(torch.ones(length, 4), 2, 3),
            on=f"{length} positions, 2 x 3 patches",
            why=why,
            mistake="no ValueError for a table of another grid",
        )
