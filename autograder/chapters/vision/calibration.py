"""How far confidence and accuracy lie apart."""

import contextlib
import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

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


def _members(place: torch.Tensor, bins: int) -> torch.Tensor:
    """Mark the bin of each image, (N, bins); a place beyond is in none."""
    return (place[:, None] == torch.arange(bins)).float()


def _floor(sure: torch.Tensor, bins: int) -> torch.Tensor:
    return _members((sure * bins).long().clamp(max=bins - 1), bins)


def by_rules(
    probabilities: torch.Tensor,
    labels: torch.Tensor,
    bins: int,
    *,
    sure: Callable = lambda probabilities, labels: probabilities.amax(dim=-1),
    found_by: Callable | None = None,
    hit: Callable = operator.eq,
    cut: Callable[[torch.Tensor, int], torch.Tensor] = _floor,
    meant: Callable[[torch.Tensor, int], torch.Tensor] | None = None,
    empty: float = 0.0,
    sized: Callable[[torch.Tensor], torch.Tensor] = torch.abs,
    joined: Callable = lambda gaps, sizes, count, bins: (gaps * sizes).sum() / count,
    last: Callable[[torch.Tensor], torch.Tensor] = torch.positive,
) -> torch.Tensor:
    """Compute the error by rules that can be varied.

    Args:
        probabilities: (N, classes).
        labels: (N,).
        bins: how many.
        sure: the confidences, of probabilities and labels.
        found_by: by what an image finds its bin, if that is another number.
        hit: what is right, of what was said and the labels.
        cut: marks the bin of each image, (N, bins), of confidences and bins.
        meant: a bin's confidence, of its number and bins; None: the mean of its images.
        empty: the difference in an empty bin.
        sized: what is made of the differences.
        joined: one number, of these, the bins' sizes, N and bins.
        last: the result, made of that.
    """
    confidence = sure(probabilities, labels)
    right = hit(probabilities.argmax(dim=-1), labels).float()
    place = found_by(probabilities, labels) if found_by else confidence
    members = cut(place, bins)
    sizes = members.sum(dim=0)
    gaps = (right - confidence) @ members / sizes
    if meant:
        gaps = right @ members / sizes - meant(torch.arange(len(sizes)), bins)
    gaps = sized(gaps.where(sizes > 0, empty))
    return last(joined(gaps, sizes, len(labels), bins))


def _edges(sure: torch.Tensor, bins: int) -> torch.Tensor:
    """Mark what lies on an edge, (N, 1)."""
    return (sure * bins == (sure * bins).round()).float()[:, None]


def _below(sure: torch.Tensor, bins: int) -> torch.Tensor:
    return _members((sure * bins).ceil().long().sub(1).clamp(min=0), bins)


def _between(sure: torch.Tensor, bins: int) -> torch.Tensor:
    """Cut the range of the confidences that occur."""
    low, high = sure.min(), sure.max()
    return _floor((sure - low) / (high - low), bins)


def _alike(sure: torch.Tensor, bins: int) -> torch.Tensor:
    """Give each bin as many images as any other."""
    parts = sure.argsort().tensor_split(bins)
    return torch.stack([F.one_hot(part, len(sure)).sum(0) for part in parts], 1).float()


def _unclamped(sure: torch.Tensor, bins: int) -> torch.Tensor:
    return (sure * bins).long()


TRUE = (
    "the probability of the right class",
    "The confidence is the probability of what the model says, right or wrong: the "
    "largest of the row.",
)
BELOW = (
    "an edge belongs to the bin below",
    "c = 0.5 with two bins lies in bin 1: an edge belongs to the bin above it.",
)
FEWER = (
    "one bin too few",
    "The number of the bin is c times M, rounded down: M bins have M + 1 edges. Only a "
    "confidence of 1 is put one lower, with clamp; do not multiply by M − 1.",
)
MIDDLE = (
    "the middle of the bin in place of the mean confidence",
    "In a bin from 0.9 to 1 all may be 0.99 sure. conf is the mean of the confidences "
    "that lie in it.",
)
EDGE = "the edge of the bin in place of the mean confidence", MIDDLE[1]
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


def _of_label(probabilities: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return probabilities.gather(1, labels[:, None])[:, 0]


SLIPS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (*TRUE, {"sure": _of_label}),
    (
        *TRUE,
        {
            "sure": _of_label,
            "found_by": lambda probabilities, _: probabilities.amax(-1),
        },
    ),
    (
        "a softmax of what are probabilities already",
        "They sum to 1, and no logits are asked for. A second softmax makes the model "
        "less sure than it is.",
        {"sure": lambda probabilities, _: probabilities.softmax(-1).amax(-1)},
    ),
    (*LAST_BIN, {"cut": lambda sure, bins: _members(_unclamped(sure, bins), bins)}),
    (
        *LAST_BIN,
        {
            "cut": lambda sure, bins: _members(_unclamped(sure, bins), bins),
            "joined": lambda gaps, sizes, *_: (gaps * sizes).sum() / sizes.sum(),
        },
    ),
    (
        "a confidence of 1 has a bin of its own",
        "There are M bins, and the last holds the confidence 1, too: right and wrong "
        "images meet there before the absolute value.",
        {"cut": lambda sure, bins: _members(_unclamped(sure, bins), bins + 1)},
    ),
    (
        "a confidence of 1 falls into the first bin",
        "bins % bins is 0, and so 1 would lie beside the smallest confidences. It lies "
        "in the last bin: clamp(max=bins - 1).",
        {"cut": lambda sure, bins: _members(_unclamped(sure, bins) % bins, bins)},
    ),
    (*BELOW, {"cut": _below}),
    (
        "an edge lies in no bin",
        "A bin holds its lower edge, c ≥ m/M, and not its upper one; only the last "
        "holds both.",
        {"cut": lambda sure, bins: _floor(sure, bins) * (1 - _edges(sure, bins))},
    ),
    (
        "an edge lies in two bins",
        "Such an image counts twice. A bin holds its lower edge and not its upper one, "
        "c < (m + 1)/M; only the last holds both.",
        {"cut": lambda sure, bins: _floor(sure, bins).maximum(_below(sure, bins))},
    ),
    (
        "bins rounded to the nearest",
        "Bin m begins at m/M: round down, by floor or by .long().",
        {
            "cut": lambda sure, bins: _members(
                (sure * bins).round().long().clamp(max=bins - 1), bins
            )
        },
    ),
    (*FEWER, {"cut": lambda sure, bins: _members(_unclamped(sure, bins - 1), bins)}),
    (*FEWER, {"cut": lambda sure, bins: _floor(sure, max(bins - 1, 1))}),
    (
        "bins between the smallest and the largest confidence",
        "The bins cut the range from 0 to 1 into equal parts, whatever confidences "
        "occur. Confidence c lies in bin floor(c · M).",
        {"cut": _between},
    ),
    (
        "bins with equally many images",
        "The bins cut the range from 0 to 1 into equal parts, and some hold many "
        "images, some none. Confidence c lies in bin floor(c · M).",
        {"cut": _alike},
    ),
    (
        "absolute values image by image",
        "A single image is right or wrong, never 90 % right. Only the mean over a bin "
        "can be compared with the confidence: sum first, then the absolute value.",
        {"cut": lambda sure, bins: torch.eye(len(sure))},
    ),
    (
        "wrong answers counted in place of right ones",
        "acc is the share of a bin's images that is right: predictions == labels.",
        {"hit": operator.ne},
    ),
    (
        "the accuracy of all images in every bin",
        "Each bin has an accuracy of its own: the share of its own images that is "
        "right.",
        {"hit": lambda said, labels: (said == labels).float().mean().expand(len(said))},
    ),
    (*MIDDLE, {"meant": lambda number, bins: (number + 0.5) / bins}),
    (*EDGE, {"meant": lambda number, bins: number / bins}),
    (*EDGE, {"meant": lambda number, bins: (number + 1) / bins}),
    (*ALIKE, {"joined": lambda gaps, sizes, count, bins: gaps.sum() / bins}),
    (*ALIKE, {"joined": lambda gaps, sizes, *_: gaps.sum() / (sizes > 0).sum()}),
    (*ALIKE, {"joined": lambda gaps, *_: gaps.sum()}),
    (
        "divided by the number of bins",
        "The weights are shares of the images, n/N: divide by N.",
        {"joined": lambda gaps, sizes, count, bins: (gaps * sizes).sum() / bins},
    ),
    (
        "not divided by the number of images",
        "The weights n/N of the bins sum to 1: divide by N.",
        {"joined": lambda gaps, sizes, *_: (gaps * sizes).sum()},
    ),
    (
        "the largest difference in place of the sum",
        "All bins count, each by its share of the images.",
        {"joined": lambda gaps, *_: gaps.max()},
    ),
    (*CANCEL, {"sized": torch.positive}),
    (*CANCEL, {"sized": torch.neg}),
    (*CANCEL, {"sized": torch.positive, "last": torch.abs}),
    (*SQUARES, {"sized": torch.square}),
    (*SQUARES, {"sized": torch.square, "last": torch.sqrt}),
    (
        "percent in place of shares",
        "The result is from 0 to 1.",
        {"last": lambda error: 100 * error},
    ),
    (*EMPTY, {"empty": math.nan}),
)
calibration.slips(by_rules, *SLIPS)


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
        hits = torch.rand(count, generator=generator) < 0.5
        labels = torch.where(hits, predictions, others)
        keep = _clear(rows, bins)
        rows, labels = rows[keep], labels[keep]
        on = f"{len(labels)} images of {classes} classes, {bins} bins"
        _expect(student, Case(on, (rows, labels, bins), unless_finite=EMPTY))
    sure = torch.tensor([0.25, 0.5, 0.625, 0.75, 0.75, 0.875, 1.0, 0.5, 0.375])
    rows = torch.cat((sure[:, None], ((1 - sure) / 4)[:, None].expand(-1, 4)), 1)
    labels = torch.tensor([3, 0, 4, 4, 0, 0, 3, 0, 0])
    for bins in (2, 4, 8):
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
