"""The confusion matrix, and the two classes that are exchanged most."""

import contextlib
import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

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


def _above(classes: int) -> list[Pair]:
    """All pairs of two classes, in reading order."""
    return list(itertools.combinations(range(classes), 2))


def _exchanged(matrix: torch.Tensor) -> Pair:
    """Find the pair by trying all of them; the first of the largest."""
    pairs = _above(len(matrix))
    return max(pairs, key=lambda pair: int(matrix[pair] + matrix[pair[::-1]]))


def _matrix(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> torch.Tensor:
    """Count the images one by one."""
    matrix = torch.zeros(classes, classes, dtype=torch.long)
    for predicted, label in zip(predictions.tolist(), labels.tolist(), strict=True):
        matrix[label, predicted] += 1
    return matrix


def counted(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> tuple[torch.Tensor, Pair]:
    """Give the matrix and the pair."""
    matrix = _matrix(predictions, labels, classes)
    return matrix, _exchanged(matrix)


counting = Function("confusion", "confusion", counted)


# --- what goes wrong ------------------------------------------------------------------


def by_sums(
    predictions: torch.Tensor,
    labels: torch.Tensor,
    classes: int,
    *,
    counts: Callable[[torch.Tensor], torch.Tensor] = lambda matrix: matrix,
    returned: Callable[[torch.Tensor], torch.Tensor] = lambda matrix: matrix,
    sums: Callable[[torch.Tensor], torch.Tensor] = lambda matrix: matrix + matrix.T,
    pairs: Callable[[int], list[Pair]] = _above,
    last: bool = False,
    choose: Callable[[torch.Tensor], Pair] | None = None,
    form: Callable[[Pair, int], Any] = lambda pair, classes: pair,
) -> tuple[torch.Tensor, Any]:
    """Count and choose by rules that can be varied.

    Args:
        predictions: (N,).
        labels: (N,).
        classes: how many there are.
        counts: made of the matrix, for all that follows.
        returned: the first result, made of that.
        sums: (classes, classes), of which the largest is wanted.
        pairs: among which, in order.
        last: whether of equal ones the last is taken.
        choose: takes the pair in another way, from the matrix.
        form: of the pair, and the number of classes.
    """
    places = torch.bincount(labels * classes + predictions, minlength=classes**2)
    matrix = counts(places.view(classes, classes))
    among = pairs(len(matrix))[:: -1 if last else 1]
    table = sums(matrix).tolist()
    pair = max(among, key=lambda pair: table[pair[0]][pair[1]])
    pair = choose(matrix) if choose else pair
    return returned(matrix), form(pair, len(matrix))


def _off_diagonal(matrix: torch.Tensor) -> torch.Tensor:
    return matrix - matrix.diag().diag()


def _by_label(matrix: torch.Tensor) -> torch.Tensor:
    """Divide each row by its sum; a row of zeros stays."""
    return (matrix / matrix.sum(dim=1, keepdim=True)).nan_to_num()


def _all_mistakes(matrix: torch.Tensor) -> torch.Tensor:
    """Count how often a class was taken for another, or another for it."""
    wrong = _off_diagonal(matrix)
    return wrong.sum(dim=0) + wrong.sum(dim=1)


def _two_of(
    totals: Callable[[torch.Tensor], torch.Tensor], first: bool
) -> Callable[[torch.Tensor], Pair]:
    """Take the two classes with the largest totals; of equal ones the first, or any."""

    def two(matrix: torch.Tensor) -> Pair:
        of_class = totals(matrix)
        in_order = of_class.sort(descending=True, stable=True).indices[:2]
        found = in_order if first else of_class.topk(2).indices
        one, other = sorted(found.tolist())
        return one, other

    return two


def _occurring(matrix: torch.Tensor) -> torch.Tensor:
    """Leave out what is behind the last class that occurs."""
    most = int(matrix.nonzero().max()) + 1
    return matrix[:most, :most].contiguous()


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
MATRICES: tuple[tuple[str, str, Callable], ...] = (
    (
        "rows and columns exchanged",
        "Rows are the labels, what is right; columns are what was said.",
        lambda matrix: matrix.T.contiguous(),
    ),
    (
        "equal pairs count once",
        "matrix[labels, predictions] += 1 reads all places first and writes then: of "
        "several images at one place only one is counted. bincount, or index_put_ with "
        "accumulate=True, counts all.",
        lambda matrix: matrix.clamp(max=1),
    ),
    (*SHARES, lambda matrix: matrix / matrix.sum(dim=1, keepdim=True)),
    (*SHARES, _by_label),
    (*SHARES, lambda matrix: (matrix / matrix.sum(dim=0)).nan_to_num()),
    (*SHARES, lambda matrix: matrix / matrix.sum()),
    (
        "right answers are left out",
        "The diagonal belongs to the matrix: it counts what was right.",
        _off_diagonal,
    ),
    (
        "both directions in the matrix",
        "Only for the pair a taken for b and b taken for a are added. The matrix keeps "
        "them apart, row i, column j.",
        lambda matrix: matrix + matrix.T,
    ),
    (*ABSENT, _occurring),
)


for name, why, other in MATRICES:
    counting.mistake(name, why)(partial(by_sums, counts=other))
    counting.mistake(name, why)(partial(by_sums, returned=other))


def _beside(classes: int) -> list[Pair]:
    """All places off the diagonal, in reading order."""
    return list(itertools.permutations(range(classes), 2))


def _everywhere(classes: int) -> list[Pair]:
    return [(a, b) for a in range(classes) for b in range(classes)]


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
ALTOGETHER = (
    "the two classes with the most mistakes altogether",
    "A class may be taken for many others, a few times each. Wanted are two that are "
    "exchanged with one another: a taken for b, and b taken for a.",
)


def _sorted(pair: Pair, classes: int) -> Any:
    return tuple(sorted(pair))


PAIRS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (*DIAGONAL, {"pairs": _everywhere, "sums": lambda matrix: matrix}),
    (*DIAGONAL, {"pairs": _everywhere}),
    (
        *DIAGONAL,
        {
            "pairs": lambda classes: list(
                itertools.combinations_with_replacement(range(classes), 2)
            )
        },
    ),
    (*LARGER, {"form": lambda pair, classes: pair[::-1]}),
    (
        *LARGER,
        {"pairs": lambda classes: [(a, b) for a, b in _beside(classes) if a > b]},
    ),
    (*ONE_WAY, {"sums": lambda matrix: matrix, "pairs": _beside}),
    (*ONE_WAY, {"sums": lambda matrix: matrix, "pairs": _beside, "form": _sorted}),
    (*ONE_WAY, {"sums": lambda matrix: matrix}),
    (*ONE_WAY, {"sums": lambda matrix: matrix.T}),
    (*ONE_WAY, {"sums": lambda matrix: torch.maximum(matrix, matrix.T)}),
    (
        "shares decide on the pair",
        "The most often exchanged are meant: how many images, not what share of their "
        "classes. Add up the counts.",
        {"sums": lambda matrix: _by_label(matrix) + _by_label(matrix).T},
    ),
    *(
        (*ALTOGETHER, {"choose": _two_of(totals, first)})
        for totals in (
            _all_mistakes,
            lambda matrix: _off_diagonal(matrix).sum(dim=1),
            lambda matrix: _off_diagonal(matrix).sum(dim=0),
        )
        for first in (True, False)
    ),
    (
        "the place in the line, not taken apart",
        "argmax counts through the whole matrix as one line. Divided by classes it "
        "gives the row, the remainder is the column: divmod.",
        {"form": lambda pair, classes: pair[0] * classes + pair[1]},
    ),
    (
        "tensors in place of integers",
        "Two Python integers: int(...).",
        {"form": lambda pair, classes: tuple(map(torch.tensor, pair))},
    ),
    (
        "of equal pairs the last",
        "Several pairs have the largest sum. The first in reading order counts: "
        "replace the best only by a larger one, > and not >=. argmax gives the first.",
        {"last": True},
    ),
    (
        "of equal pairs the one with the smaller second class",
        "Several pairs have the largest sum. The first in reading order counts, (0, 3) "
        "before (1, 2): look above the diagonal, row after row.",
        {"pairs": lambda classes: sorted(_above(classes), key=lambda pair: pair[1])},
    ),
)
counting.slips(by_sums, *PAIRS)


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
    # most mistakes go from the larger class to the smaller one, then the other way
    labels = torch.tensor([3, 3, 3, 3, 1, 1, 0, 0, 2, 2, 2, 2, 2])
    predictions = torch.tensor([1, 1, 1, 3, 1, 1, 2, 2, 2, 2, 0, 0, 2])
    on = "13 images of 4 classes, 0 and 2 exchanged in both directions"
    _expect(student, (predictions, labels, 4), on)
    _expect(student, (labels, predictions, 4), on)
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
