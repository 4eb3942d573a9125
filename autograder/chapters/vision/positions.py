"""Which positions resemble one another, by their learned vectors."""

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


def _cosines(vectors: torch.Tensor) -> torch.Tensor:
    unit = vectors / _lengths(vectors)
    return unit @ unit.T


def _lengths(vectors: torch.Tensor, axis: int = -1) -> torch.Tensor:
    return vectors.norm(dim=axis, keepdim=True)


ONE_LENGTH = (
    "only one of two lengths",
    "A product of two vectors grows with both lengths. Divide the rows first; then "
    "both factors have length 1.",
)
DISTANCES = (
    "distances in place of cosines",
    "Equal directions have the cosine 1, not the distance 0.",
)


def _by_columns(x: torch.Tensor) -> torch.Tensor:
    across = x / _lengths(x, 0)
    return across @ across.T


for mistake, compared in (
    (
        (
            "products in place of cosines",
            "Long vectors have large products with everything. Divide every row by its "
            "length, and only the direction is compared.",
        ),
        lambda x: x @ x.T,
    ),
    (ONE_LENGTH, lambda x: x @ (x / _lengths(x)).T),
    (ONE_LENGTH, lambda x: (x / _lengths(x)) @ x.T),
    (ONE_LENGTH, lambda x: x @ x.T / _lengths(x).square()),
    (ONE_LENGTH, lambda x: x @ x.T / _lengths(x).square().T),
    (
        (
            "lengths of the columns",
            "A position is a row: its length is over the features, dim=-1.",
        ),
        _by_columns,
    ),
    (DISTANCES, lambda x: torch.cdist(x, x)),
    (DISTANCES, lambda x: 1 - _cosines(x)),
    (
        (
            "the mean position subtracted first",
            "The positions are compared as they are; a correlation is another number.",
        ),
        lambda x: _cosines(x - x.mean(0)),
    ),
    (
        (
            "correlations in place of cosines",
            "A correlation subtracts from each row the mean of its features. The "
            "cosine compares the rows as they are.",
        ),
        torch.corrcoef,
    ),
):
    similarity.mistake(*mistake)(
        lambda table, rows, columns, compared=compared: _laid(
            compared(table[-rows * columns :]), rows, columns
        )
    )
for cut_first in (True, False):

    @similarity.mistake(
        "one length for the whole table",
        "Every position has a length of its own, over the features of its row. Divided "
        "by one number for all, long rows still have large products with everything, "
        "and a position is not 1 with itself.",
    )
    def _(table, rows, columns, cut_first=cut_first):
        own = table[-rows * columns :]
        unit = own / (own if cut_first else table).norm()
        return _laid(unit @ unit.T, rows, columns)


similarity.mistake(
    "the last position left out in place of the first",
    "The class token comes first, so its position is row 0 of the table.",
    when=lambda table, rows, columns: len(table) > rows * columns,
)(lambda table, rows, columns: _laid(_cosines(table[: rows * columns]), rows, columns))
SIDES = (
    "rows and columns of the grid exchanged",
    "Patches come in reading order, row after row: split N into (rows, columns).",
)
similarity.mistake(*SIDES)(
    lambda table, rows, columns: _laid(
        _cosines(table[-rows * columns :]), columns, rows
    )
)


@similarity.mistake(*SIDES)
def _(table, rows, columns):
    order = torch.arange(rows * columns).view(columns, rows).T.flatten()
    return _laid(_cosines(table[-rows * columns :][order]), rows, columns)


similarity.mistake(
    "not laid out as pictures",
    "Both axes of length N are split into rows and columns: four axes.",
)(lambda table, rows, columns: _cosines(table[-rows * columns :]))


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
    for more in (0, 1):
        rows, columns, d = draw_sizes(generator, 3)
        table = normal(generator, rows * columns + more, d)
        on = f"a table {tuple(table.shape)}, {rows} x {columns} patches"
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
