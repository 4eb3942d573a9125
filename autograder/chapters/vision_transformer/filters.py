"""The principal components of the filters that a patch embedding has learned."""

import functools
from collections.abc import Callable

import torch

from autograder.chapters.vision_transformer.chapter import chapter
from autograder.chapters.vision_transformer.patches import CHANNELS_FIRST
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function, expect_several, judge_parts
from autograder.interface import Data, StudentFunction

Pair = tuple[torch.Tensor, torch.Tensor]
NAMES = ("components", "shares")


def by_covariance(weight: torch.Tensor, count: int, p: int, channels: int) -> Pair:
    """Find components and shares as eigenvectors of the pixels' covariance."""
    variances, directions = torch.linalg.eigh(torch.cov(weight.double()))
    largest = slice(-1, -count - 1, -1)
    components = torch.stack(directions.unbind(1)[largest])
    share = torch.stack(variances.unbind()[largest]) / variances.sum()
    return components.reshape(count, p, p, channels).float(), share.float()


filters = Function("principal-filters", "principal_filters", by_covariance)
ROWS = (
    "rows in place of columns",
    "Components of the rows have d_model entries and are no pictures. The columns of "
    "weight are the filters, and the samples: start from weight.T.",
)
filters.accident("invalid for input", *ROWS)
filters.accident("invalid for size", *ROWS)


# --- what goes wrong ------------------------------------------------------------------


def _decomposed(samples: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Give all components in rows, and the singular values."""
    _, s, directions = torch.linalg.svd(samples, full_matrices=False)
    return directions, s


def _centred(weight: torch.Tensor) -> torch.Tensor:
    return weight.T - weight.T.mean(0)


def _analysed(samples: torch.Tensor, count: int, p: int, channels: int) -> Pair:
    directions, s = _decomposed(samples)
    share = s.square() / s.square().sum()
    return directions[:count].reshape(count, p, p, channels), share[:count]


for name, why, samples in (
    (
        "not centred",
        "Subtract the mean filter first. Otherwise the first component is mostly this "
        "mean, and the shares are not shares of a variance.",
        lambda weight: weight.T,
    ),
    (
        "centred along the wrong axis",
        "The mean is taken over the filters, for every pixel by itself: it is a "
        "filter, too. Here each filter has lost its own brightness.",
        lambda weight: weight.T - weight.T.mean(1, keepdim=True),
    ),
    (
        "centred by one number",
        "The mean is a filter, too: one number for every pixel, taken over the d "
        "filters, not one for all.",
        lambda weight: weight.T - weight.mean(),
    ),
    (
        "every pixel divided by its spread",
        "Subtract the mean, and nothing else: how much a pixel varies is part of what "
        "the components show.",
        lambda weight: _centred(weight) / weight.T.std(0),
    ),
    (*ROWS, lambda weight: weight - weight.mean(0)),
    (*ROWS, lambda weight: weight),
):
    filters.mistake(name, why)(
        lambda weight, *sizes, samples=samples: _analysed(samples(weight), *sizes)
    )


def _right(weight, count, p, channels) -> Pair:
    return _analysed(_centred(weight), count, p, channels)


FIRST = CHANNELS_FIRST[0], "A row of weight belongs to (row, column, channel)."


@filters.mistake(*FIRST)
def _(weight, count, p, channels):
    pictures, share = _right(weight, count, p, channels)
    return pictures.reshape(count, channels, p, p), share


@filters.mistake(*FIRST)
def _(weight, count, p, channels):
    pictures, share = _right(weight, count, p, channels)
    return pictures.reshape(count, channels, p, p).permute(0, 2, 3, 1), share


@filters.mistake(
    "not laid out as pictures", "Components are pictures: (count, P, P, C)."
)
def _(weight, count, p, channels):
    pictures, share = _right(weight, count, p, channels)
    return pictures.flatten(1), share


def _with_share(
    share: Callable[[torch.Tensor, int, int], torch.Tensor], weight, count, p, channels
) -> Pair:
    """Give other shares: of the singular values, how many are asked for, and d."""
    _, s = _decomposed(_centred(weight))
    pictures, _ = _right(weight, count, p, channels)
    return pictures, share(s, count, weight.shape[1])


VARIANCES = (
    "variances in place of shares",
    "Divide by the sum over all components; the shares of all of them sum to 1.",
)
for name, why, share in (
    (
        "shares without squares",
        "The variance along a component goes with the square of its singular value.",
        lambda s, count, d: (s / s.sum())[:count],
    ),
    (
        "shares of the first components only",
        "The sum in the denominator runs over all singular values, not only over the "
        "first ones: it is the whole variance.",
        lambda s, count, d: s[:count].square() / s[:count].square().sum(),
    ),
    (*VARIANCES, lambda s, count, d: s[:count].square()),
    (*VARIANCES, lambda s, count, d: s[:count].square() / d),
    (*VARIANCES, lambda s, count, d: s[:count].square() / (d - 1)),
    (
        "singular values in place of shares",
        VARIANCES[1],
        lambda s, count, d: s[:count],
    ),
    (
        "shares added up",
        "Each component has its own share; do not add them up.",
        lambda s, count, d: (s.square() / s.square().sum()).cumsum(0)[:count],
    ),
):
    filters.mistake(name, why)(functools.partial(_with_share, share))

SMALLEST = (
    "smallest first",
    "The largest comes first. eigh sorts upwards, svd downwards.",
)


@filters.mistake(*SMALLEST)
def _(weight, count, p, channels):
    every = min(weight.shape)
    directions, s = _decomposed(_centred(weight))
    share = (s.square() / s.square().sum())[:every].flip(0)
    pictures = directions[:every].flip(0)[:count].reshape(count, p, p, channels)
    return pictures, share[:count]


filters.mistake(*SMALLEST)(
    lambda weight, count, p, channels: tuple(
        part.flip(0) for part in _right(weight, count, p, channels)
    )
)


@filters.mistake(
    "columns in place of rows of Vᵀ",
    "torch.linalg.svd gives Vᵀ as its third result: its rows are the components. "
    "Nothing is left to transpose.",
    when=lambda weight, *_: weight.shape[0] <= weight.shape[1],
)
def _(weight, count, p, channels):
    directions, _ = _decomposed(_centred(weight))
    _, share = _right(weight, count, p, channels)
    return directions.T[:count].reshape(count, p, p, channels), share


@filters.mistake(
    "components scaled by singular values", "Each component is a direction of length 1."
)
def _(weight, count, p, channels):
    directions, s = _decomposed(_centred(weight))
    scaled = (s[:, None] * directions)[:count]
    return scaled.reshape(count, p, p, channels), _right(weight, count, p, channels)[1]


filters.mistake(
    "components and shares exchanged", "Return the components first, then the shares."
)(lambda weight, count, p, channels: _right(weight, count, p, channels)[::-1])


# --- the check ------------------------------------------------------------------------


def _spread_out(generator: torch.Generator, length: int, d: int) -> torch.Tensor:
    """Draw filters whose principal components have clearly different variances."""
    rank = min(length, d)
    left, _ = torch.linalg.qr(normal(generator, length, rank))
    right, _ = torch.linalg.qr(normal(generator, d, rank))
    sizes = 2.0 * 0.75 ** torch.arange(rank)
    mean = 0.5 * normal(generator, length, 1)
    return ((left * sizes) @ right.T + mean).contiguous()


def _turned(guide: torch.Tensor, results: Data) -> Data:
    """Give each component the sign that agrees with a guide: signs are free."""
    first, *others = results
    if not torch.is_tensor(first) or first.dim() < 2 or first.numel() != guide.numel():
        return results
    along = (first.reshape(len(guide), -1) * guide.flatten(1)).sum(1)
    signs = torch.where(along >= 0, 1.0, -1.0).to(first.dtype)
    return (first * signs.view(-1, *[1] * (first.dim() - 1)), *others)


def _expect(student: StudentFunction, case: Case) -> None:
    with filters.accidents_named():
        got = expect_several(student(*case.inputs), NAMES, case.on)
    components, _ = filters.right(case)
    # what stands at right angles to the components needs a sign, too
    guide = components + 0.01 * normal(seeded(1), *components.shape)
    judge_parts(filters, got, case, NAMES, functools.partial(_turned, guide))


@chapter.check(section="vision-filters")
def principal_filters(student: StudentFunction, seed: int = 0) -> None:
    """By hand, the covariance's eigenvectors, more and fewer filters, colour."""
    weight = torch.tensor([[1.0, 2.0, 3.0], [1.0, 3.0, 5.0]])
    slope = torch.tensor([[0.447214, 0.894427], [0.894427, -0.447214]])
    right = slope.reshape(2, 1, 1, 2), torch.tensor([1.0, 0.0])
    hand = Case("the example by hand", (weight, 2, 1, 2), right, tolerance=5e-4)
    _expect(student, hand)
    generator = seeded(seed)
    a, b = draw_sizes(generator, 2)
    for p, channels, d, count in (
        (3, 1, 4 + a, 3),
        (2, 3, 20 + b, 4),
        (2, 3, 12, 5),
        (3, 3, 7 + a, 4),
        (2, 1, 6, 4),
    ):
        weight = _spread_out(generator, p * p * channels, d)
        on = (
            f"weight {tuple(weight.shape)}, {count} components, P = {p}, C = {channels}"
        )
        _expect(student, Case(on, (weight, count, p, channels), tolerance=5e-4))
