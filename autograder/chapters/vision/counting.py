"""The confusion matrix, and the two classes that are exchanged most."""

import contextlib
from collections.abc import Callable

import torch

from autograder.chapters.vision.chapter import chapter
from autograder.exercise.inputs import seeded
from autograder.exercise.spec import (
    Case,
    Function,
    errors_named,
    expect_several,
    judge_parts,
)
from autograder.interface import StudentFunction

Pair = tuple[int, int]


def _exchanged(matrix: torch.Tensor, *, last: bool = False) -> Pair:
    """Find the pair by trying all of them; the first of the largest, or the last."""
    classes = len(matrix)
    pairs = [(a, b) for a in range(classes) for b in range(a + 1, classes)]
    if last:
        pairs.reverse()
    return max(pairs, key=lambda pair: int(matrix[pair] + matrix[pair[::-1]]))


def _matrix(predictions, labels, classes) -> torch.Tensor:
    """Count the images one by one."""
    matrix = torch.zeros(classes, classes, dtype=torch.long)
    for predicted, label in zip(predictions.tolist(), labels.tolist(), strict=True):
        matrix[label, predicted] += 1
    return matrix


def counted(predictions, labels, classes) -> tuple[torch.Tensor, Pair]:
    """Give the matrix and the pair."""
    matrix = _matrix(predictions, labels, classes)
    return matrix, _exchanged(matrix)


counting = Function("confusion", "confusion", counted)


# --- the matrix: what goes wrong ------------------------------------------------------

SHARES = (
    "shares in place of counts",
    "Return numbers of images. They can be turned into shares, but not back.",
)
ABSENT = (
    "classes that do not occur are left out",
    "The matrix has a row and a column for each of the classes, in their order. "
    "bincount counts no further than the largest number it meets: give it the argument "
    "minlength.",
)
for mistake, other in (
    (
        (
            "rows and columns exchanged",
            "Rows are the labels, what is right; columns are what was said.",
        ),
        lambda matrix: matrix.T.contiguous(),
    ),
    (
        (
            "equal pairs count once",
            "matrix[labels, predictions] += 1 reads all places first and writes then: "
            "of several images at one place only one is counted. bincount, or "
            "index_put_ with accumulate=True, counts all.",
        ),
        lambda matrix: matrix.clamp(max=1),
    ),
    (SHARES, lambda matrix: matrix / matrix.sum(dim=1, keepdim=True)),
    (SHARES, lambda matrix: (matrix / matrix.sum(dim=1, keepdim=True)).nan_to_num()),
    (SHARES, lambda matrix: matrix / matrix.sum()),
    (
        (
            "right answers are left out",
            "The diagonal belongs to the matrix: it counts what was right.",
        ),
        lambda matrix: matrix - matrix.diag().diag(),
    ),
):
    for from_it in (False, True):

        @counting.mistake(*mistake)
        def _(predictions, labels, classes, other=other, from_it=from_it):
            right = _matrix(predictions, labels, classes)
            wrong = other(right)
            return wrong, _exchanged(wrong if from_it else right)


@counting.mistake(
    *ABSENT,
    when=lambda predictions, labels, classes: (
        max(labels.max(), predictions.max()) < classes - 1
    ),
)
def _(predictions, labels, classes):
    matrix, pair = counted(predictions, labels, classes)
    most = int(max(labels.max(), predictions.max())) + 1
    return matrix[:most, :most].contiguous(), pair


# --- the pair: what goes wrong --------------------------------------------------------


def _largest(counts: torch.Tensor) -> Pair:
    return divmod(int(counts.argmax()), len(counts))


def _off_diagonal(matrix: torch.Tensor) -> torch.Tensor:
    return matrix - matrix.diag().diag()


DIAGONAL = (
    "the diagonal is counted",
    "The diagonal has what was right. Look only at what was exchanged.",
)
ONE_WAY = (
    "one direction only",
    "a taken for b, and b taken for a: both count. Add the matrix and its transpose "
    "before you look for the largest.",
)
LARGER = "the larger class first", "The pair is (a, b) with a < b."
IN_LINE = (
    "the place in the line, not taken apart",
    "argmax counts through the whole matrix as one line. Divided by classes it gives "
    "the row, the remainder is the column: divmod.",
)
TENSORS = "tensors in place of integers", "Two Python integers: int(...)."
LAST = (
    "of equal pairs the last",
    "Several pairs have the largest sum. The first in reading order counts: replace "
    "the best only by a larger one, > and not >=. argmax gives the first.",
)
PAIRS: tuple[tuple[tuple[str, str], Callable], ...] = (
    (DIAGONAL, _largest),
    (DIAGONAL, lambda matrix: _largest(matrix + matrix.T)),
    (DIAGONAL, lambda matrix: _largest((matrix + matrix.T).triu())),
    (LARGER, lambda matrix: _exchanged(matrix)[::-1]),
    (ONE_WAY, lambda matrix: _largest(_off_diagonal(matrix))),
    (ONE_WAY, lambda matrix: tuple(sorted(_largest(_off_diagonal(matrix))))),
    (ONE_WAY, lambda matrix: _largest(matrix.triu(diagonal=1))),
    (IN_LINE, lambda matrix: int((matrix + matrix.T).triu(diagonal=1).argmax())),
    (TENSORS, lambda matrix: tuple(map(torch.tensor, _exchanged(matrix)))),
    (LAST, lambda matrix: _exchanged(matrix, last=True)),
    (
        (
            "of equal pairs the one with the smaller second class",
            "Several pairs have the largest sum. The first in reading order counts, "
            "(0, 3) before (1, 2): look above the diagonal, row after row.",
        ),
        lambda matrix: _largest((matrix + matrix.T).tril(-1))[::-1],
    ),
)
for mistake, found in PAIRS:

    @counting.mistake(*mistake)
    def _(predictions, labels, classes, found=found):
        matrix = _matrix(predictions, labels, classes)
        return matrix, found(matrix)


# --- the check ------------------------------------------------------------------------


def _answers(
    generator: torch.Generator, count: int, classes: int, share: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw labels, and predictions of which about this share is right."""
    labels = torch.randint(classes, (count,), generator=generator)
    others = torch.randint(classes, (count,), generator=generator)
    right = torch.rand(count, generator=generator) < share
    return torch.where(right, labels, others), labels


@chapter.check(section="trained-vision-mistakes")
def confusion(student: StudentFunction, seed: int = 0) -> None:
    """By hand, scikit-learn's matrix, every pair tried, classes that do not occur."""
    predictions = torch.tensor([0, 1, 1, 2, 2, 1, 2, 2, 2])
    hand = (predictions, torch.tensor([0, 0, 1, 1, 1, 2, 2, 2, 2]), 3)
    _expect(student, hand, "the example by hand")
    ties = (torch.tensor([1, 0, 2, 1, 2]), torch.tensor([0, 1, 1, 2, 0]), 3)
    _expect(student, ties, "two pairs with the same sum")
    ties = (torch.tensor([2, 1, 3, 0]), torch.tensor([1, 2, 0, 3]), 4)
    _expect(student, ties, "(0, 3) and (1, 2) with the same sum")
    generator = seeded(seed)
    for classes, count, share in ((5, 61, 0.6), (9, 200, 0.8), (4, 37, 0.0)):
        predictions, labels = _answers(generator, count, classes, share)
        on = f"{count} images of {classes} classes"
        _expect(student, (predictions, labels, classes), on)
    # most mistakes go from the larger class to the smaller one
    labels = torch.tensor([3, 3, 3, 3, 1, 1, 0, 0, 2, 2, 2, 2, 2])
    predictions = torch.tensor([1, 1, 1, 3, 1, 1, 2, 2, 2, 2, 0, 0, 2])
    on = "13 images of 4 classes, 0 and 2 exchanged in both directions"
    _expect(student, (predictions, labels, 4), on)
    predictions, labels = _answers(generator, 40, 3, 0.5)
    on = "40 images; of 6 classes the last 3 do not occur"
    _expect(student, (predictions, labels, 6), on)


def _expect(student: StudentFunction, given: tuple, on: str) -> None:
    predictions, labels, classes = given
    matrix = _matrix(*given)
    on = f"{on}: labels {_shown(labels)}, predictions {_shown(predictions)}"
    if classes < 7:
        on += f", matrix {matrix.tolist()}"
    last = int((labels * classes + predictions).max()) + 1
    named = errors_named((f"size {last}", *ABSENT))
    with named if last < classes**2 else contextlib.nullcontext():
        got = student(*given)
    case = Case(on, given, (matrix, _exchanged(matrix)))
    names = ("the matrix", "the pair")
    judge_parts(counting, expect_several(got, names, on), case, names)


def _shown(numbers: torch.Tensor) -> str:
    """Show up to nine numbers, and dots for the others."""
    first = numbers[:9].tolist()
    return str(first) if len(numbers) <= 9 else f"{str(first)[:-1]}, …]"
