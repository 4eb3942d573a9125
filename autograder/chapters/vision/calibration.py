"""How far confidence and accuracy lie apart."""

import contextlib
import itertools
import math
from collections.abc import Callable

import numpy as np
import torch

from autograder.chapters.vision.chapter import chapter
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.spec import Case, Function, errors_named
from autograder.interface import StudentFunction

LAST_BIN = (
    "a confidence of 1 has no bin",
    "1 times bins is bins, one more than the number of the last bin. A confidence of 1 "
    "lies in the last one: clamp(max=bins - 1).",
)
EMPTY = (
    "an empty bin gives NaN",
    "A bin without images has no mean: 0 divided by 0 is NaN. It adds nothing to the "
    "sum, so leave it out, or sum before you divide.",
)


def by_bins(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> torch.Tensor:
    """Fill the bins one by one, in NumPy."""
    rows, truth = probabilities.double().numpy(), labels.numpy()
    sure, said = rows.max(axis=1), rows.argmax(axis=1)
    total = 0.0
    for low, high in itertools.pairwise(np.linspace(0, 1, bins + 1)):
        inside = (sure >= low) & ((sure < high) | ((high == 1) & (sure == 1)))
        if inside.any():
            accuracy = (said[inside] == truth[inside]).mean()
            total += inside.mean() * abs(accuracy - sure[inside].mean())
    return torch.tensor(total, dtype=torch.float32)


calibration = Function("calibration-error", "calibration_error", by_bins)


# --- what goes wrong ------------------------------------------------------------------


def _sure(probabilities, labels) -> tuple[torch.Tensor, torch.Tensor]:
    """Give the confidences, and which answers are right."""
    sure, said = probabilities.max(dim=-1)
    return sure, (said == labels).float()


def _place(sure: torch.Tensor, bins: int) -> torch.Tensor:
    return (sure * bins).long().clamp(max=bins - 1)


def _gaps(probabilities, labels, bins) -> tuple[torch.Tensor, torch.Tensor]:
    """Sum right less confidence over each bin, and count the bin's images."""
    sure, hit = _sure(probabilities, labels)
    return _sums(hit - sure, _place(sure, bins), bins)


def _sums(
    differences: torch.Tensor,
    place: torch.Tensor,
    bins: int,
    held: torch.Tensor | float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Sum over each bin, and count its images; only those count that are held."""
    zeros, count = torch.zeros(bins), held * torch.ones_like(differences)
    sums = zeros.index_add(0, place, count * differences)
    return sums, zeros.index_add(0, place, count)


ALIKE = (
    "every bin counts alike",
    "A bin with three images would weigh as much as one with three hundred. Weight "
    "each by the share of images that it holds, n/N.",
)
CANCEL = (
    "differences of opposite signs cancel",
    "A bin that is too sure and one that is not sure enough would make up for one "
    "another. Take the absolute value of each bin, then add.",
)
SQUARES = (
    "squares in place of absolute values",
    "The formula has absolute values: |acc - conf|.",
)
BOTH = f"{ALIKE[0]}, and {CANCEL[0]}", f"{ALIKE[1]} {CANCEL[1]}"


def _unweighted(sized: Callable[[torch.Tensor], torch.Tensor]) -> tuple:
    """Make one number of the bins' means in three ways, however many each holds."""

    def means(gaps: torch.Tensor, sizes: torch.Tensor) -> torch.Tensor:
        return sized(gaps / sizes.clamp(min=1))

    return (
        lambda gaps, sizes: means(gaps, sizes).mean(),
        lambda gaps, sizes: means(gaps, sizes).sum() / (sizes > 0).sum(),
        lambda gaps, sizes: means(gaps, sizes).sum(),
    )


UNWEIGHTED = _unweighted(torch.abs)
for mistake, joined in (
    *((ALIKE, each) for each in UNWEIGHTED),
    *((BOTH, each) for each in _unweighted(torch.positive)),
    (
        (
            "not divided by the number of images",
            "The weights n/N of the bins sum to 1: divide by N.",
        ),
        lambda gaps, sizes: gaps.abs().sum(),
    ),
    (CANCEL, lambda gaps, sizes: gaps.sum() / sizes.sum()),
    (CANCEL, lambda gaps, sizes: -gaps.sum() / sizes.sum()),
    (CANCEL, lambda gaps, sizes: gaps.sum().abs() / sizes.sum()),
    (
        SQUARES,
        lambda gaps, sizes: (gaps.square() / sizes.clamp(min=1)).sum() / sizes.sum(),
    ),
    (
        SQUARES,
        lambda gaps, sizes: (
            (gaps.square() / sizes.clamp(min=1)).sum() / sizes.sum()
        ).sqrt(),
    ),
    (
        (
            "the largest difference in place of the sum",
            "All bins count, each by its share of the images.",
        ),
        lambda gaps, sizes: (gaps / sizes.clamp(min=1)).abs().max(),
    ),
):
    calibration.mistake(*mistake)(
        lambda probabilities, labels, bins, joined=joined: joined(
            *_gaps(probabilities, labels, bins)
        )
    )


@calibration.mistake(
    "absolute values image by image",
    "A single image is right or wrong, never 90 % right. Only the mean over a bin can "
    "be compared with the confidence: sum first, then the absolute value.",
)
def _(probabilities, labels, bins):
    sure, hit = _sure(probabilities, labels)
    return (hit - sure).abs().mean()


def _error(differences: torch.Tensor, place: torch.Tensor, bins: int) -> torch.Tensor:
    gaps, _ = _sums(differences, place, bins)
    return gaps.abs().sum() / len(differences)


TRUE = (
    "the probability of the right class",
    "The confidence is the probability of what the model says, right or wrong: the "
    "largest of the row.",
)
for by_it in (True, False):

    @calibration.mistake(*TRUE)
    def _(probabilities, labels, bins, by_it=by_it):
        sure, hit = _sure(probabilities, labels)
        true = probabilities.gather(1, labels[:, None])[:, 0]
        return _error(hit - true, _place(true if by_it else sure, bins), bins)

    for joined in UNWEIGHTED:

        @calibration.mistake(f"{TRUE[0]}, and {ALIKE[0]}", f"{TRUE[1]} {ALIKE[1]}")
        def _(probabilities, labels, bins, by_it=by_it, joined=joined):
            sure, hit = _sure(probabilities, labels)
            true = probabilities.gather(1, labels[:, None])[:, 0]
            place = _place(true if by_it else sure, bins)
            return joined(*_sums(hit - true, place, bins))


def _below(sure: torch.Tensor, bins: int) -> torch.Tensor:
    return (sure * bins).ceil().long().sub(1).clamp(min=0)


def _nearest(sure: torch.Tensor, bins: int) -> torch.Tensor:
    return (sure * bins).round().long().clamp(max=bins - 1)


BELOW = (
    "an edge belongs to the bin below",
    "c = 0.5 with two bins lies in bin 1: an edge belongs to the bin above it.",
)
NEAREST = (
    "bins rounded to the nearest",
    "Bin m begins at m/M: round down, by floor or by .long().",
)
for name, why, placed, left_out in (
    (*LAST_BIN, _place, 1.0),
    (*BELOW, _below, math.inf),
    (*NEAREST, _nearest, math.inf),
):
    for joined in (None, *UNWEIGHTED):

        @calibration.mistake(
            f"{name}, and {ALIKE[0]}" if joined else name,
            f"{why} {ALIKE[1]}" if joined else why,
        )
        def _(
            probabilities,
            labels,
            bins,
            placed=placed,
            left_out=left_out,
            joined=joined,
        ):
            sure, hit = _sure(probabilities, labels)
            held = (sure < left_out).float()
            gaps, sizes = _sums(hit - sure, placed(sure, bins), bins, held)
            return joined(gaps, sizes) if joined else gaps.abs().sum() / len(sure)


def _between(sure: torch.Tensor, bins: int) -> torch.Tensor:
    """Cut the range of the confidences that occur."""
    low, high = sure.min(), sure.max()
    return ((sure - low) / (high - low) * bins).long().clamp(0, bins - 1)


for divided in (True, False):

    @calibration.mistake(
        "bins between the smallest and the largest confidence",
        "The bins cut the range from 0 to 1 into equal parts, whatever confidences "
        "occur. Confidence c lies in bin floor(c · M)."
        + ("" if divided else " And the sum is divided by the number of images."),
    )
    def _(probabilities, labels, bins, divided=divided):
        sure, hit = _sure(probabilities, labels)
        error = _error(hit - sure, _between(sure, bins), bins)
        return error if divided else error * len(sure)


@calibration.mistake(*EMPTY)
def _(probabilities, labels, bins):
    gaps, sizes = _gaps(probabilities, labels, bins)
    return (gaps / sizes).abs() @ sizes / sizes.sum()


# --- the check ------------------------------------------------------------------------


def _clear(probabilities: torch.Tensor, bins: int) -> torch.Tensor:
    """Mark the rows whose confidence is not near the edge of a bin."""
    place = probabilities.amax(dim=-1).double() * bins
    return (place - place.round()).abs() > 1e-3


@chapter.check(section="trained-vision-mistakes")
def calibration_error(student: StudentFunction, seed: int = 0) -> None:
    """By hand, bin by bin in NumPy, empty bins, a confidence of 1."""
    sure = torch.tensor([0.65, 0.85, 0.95, 0.95])
    rows = torch.stack((sure, 1 - sure), dim=1)
    labels = torch.tensor([0, 1, 1, 0])
    for bins, right in ((2, 0.35), (10, 0.525)):
        on, asked = f"the example by hand, {bins} bins", (rows, labels, bins)
        _expect(student, Case(on, asked, torch.tensor(right), unless_finite=EMPTY))
    generator = seeded(seed)
    for count, classes, bins in ((97, 5, 10), (300, 3, 4), (41, 7, 15), (60, 4, 1)):
        rows = (2.5 * normal(generator, count, classes)).softmax(dim=-1)
        predictions = rows.argmax(dim=-1)
        others = torch.randint(classes, (count,), generator=generator)
        right = torch.rand(count, generator=generator) < 0.5
        labels = torch.where(right, predictions, others)
        keep = _clear(rows, bins)
        rows, labels = rows[keep], labels[keep]
        on = f"{len(labels)} images of {classes} classes, {bins} bins"
        _expect(student, Case(on, (rows, labels, bins), unless_finite=EMPTY))
    sure = torch.tensor([0.25, 0.5, 0.625, 0.75, 0.75, 0.875, 1.0, 0.5, 0.375])
    rows = torch.cat((sure[:, None], ((1 - sure) / 4)[:, None].expand(-1, 4)), 1)
    labels = torch.tensor([3, 0, 4, 4, 0, 0, 3, 0, 0])
    for bins in (4, 8):
        on = f"nine images, {bins} bins; confidences on an edge: 0.25, 0.5, 0.75, 1"
        _expect(student, Case(on, (rows, labels, bins), unless_finite=EMPTY))
    first = torch.tensor([1.0, 0.0, 0.55, 1.0, 0.25])
    rows, labels = torch.stack((first, 1 - first), 1), torch.tensor([0, 1, 0, 1, 0])
    on = "five images, 10 bins; three confidences are exactly 1"
    _expect(student, Case(on, (rows, labels, 10), unless_finite=EMPTY))


def _expect(student: StudentFunction, case: Case) -> None:
    certain = bool((case.inputs[0] == 1).any())
    named = errors_named(("ind", *LAST_BIN), ("Ind", *LAST_BIN))
    with named if certain else contextlib.nullcontext():
        calibration.judge(student, case)
