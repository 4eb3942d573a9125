"""Images brought to mean 0 and spread 1, by what the training images say."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.vision.chapter import chapter
from autograder.exercise.inputs import draw_sizes, seeded
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction

FLAT = 1e-6  # a spread below is rounding, and counts as 1
NOISE = 3e-7  # what rounding leaves of a spread is less
AXES = (0, 2, 3)
SMALL = "values between −1 and 1"


def scaled(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    """Let PyTorch's batch norm do it, with the statistics of the training images."""
    train = train.double().movedim(1, 0).flatten(1)
    variance, mean = torch.var_mean(train, dim=1, correction=0)
    variance = variance.where(variance > FLAT**2, 1.0)
    return F.batch_norm(images.double(), mean, variance, eps=0.0).float()


standardising = Function("standardise", "standardise", scaled)


# --- what goes wrong ------------------------------------------------------------------


def _spread(x: torch.Tensor, axes: tuple[int, ...], correction: int) -> torch.Tensor:
    return x.std(dim=axes, keepdim=True, correction=correction)


def _least(limit: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """Let a spread up to a limit count as 1."""
    return lambda std: std.masked_fill(std <= limit, 1.0)


ABOVE = _least(FLAT)


def by_statistics(
    images: torch.Tensor,
    train: torch.Tensor,
    *,
    own_mean: bool = False,
    own_spread: bool = False,
    mean_axes: tuple[int, ...] = AXES,
    spread_axes: tuple[int, ...] = AXES,
    correction: int = 0,
    spread: Callable = _spread,
    divisor: Callable[[torch.Tensor], torch.Tensor] = ABOVE,
    power: int = 1,
    of: Callable[[torch.Tensor], torch.Tensor] = lambda train: train,
    computed: Callable = lambda x, mean, std: (x - mean) / std,
    flat: Callable[[torch.Tensor], torch.Tensor] | None = None,
) -> torch.Tensor:
    """Standardise by rules that can be varied.

    Args:
        images: (B, C, H, W).
        train: (N, C, H, W).
        own_mean: whether the mean is that of the images themselves.
        own_spread: whether the spread is.
        mean_axes: over which the mean is taken.
        spread_axes: over which the spread is.
        correction: what the count is made less by.
        spread: measures it, of images, axes and correction.
        divisor: what is made of the spread.
        power: of the divisor.
        of: what is made of the training images before.
        computed: the result, of images, mean and divisor.
        flat: the result of channels without contrast, of the images.
    """
    train = of(train)
    mean = (images if own_mean else train).mean(dim=mean_axes, keepdim=True)
    std = spread(images if own_spread else train, spread_axes, correction)
    found = computed(images, mean, divisor(std) ** power)
    return found if flat is None else found.where(std > FLAT, flat(images))


def _by_image(power: float) -> Callable:
    """Take the mean of what single images have, their spreads or variances."""

    def spread(x: torch.Tensor, axes: tuple[int, ...], correction: int) -> torch.Tensor:
        each = x.std(dim=(2, 3), keepdim=True, correction=correction)
        return (each**power).mean(dim=0, keepdim=True) ** (1 / power)

    return spread


def _difference(rooted: Callable[[torch.Tensor], torch.Tensor]) -> Callable:
    """Take the spread from the mean of the squares less the square of the mean."""

    def spread(x: torch.Tensor, axes: tuple[int, ...], correction: int) -> torch.Tensor:
        mean, squares = (each.mean(dim=axes, keepdim=True) for each in (x, x.square()))
        return rooted(squares - mean.square()).sqrt()

    return spread


ROOTED = (torch.abs, torch.positive, lambda x: x.clamp(min=0))


def _absolute(x: torch.Tensor, axes: tuple[int, ...], correction: int) -> torch.Tensor:
    return (x - x.mean(dim=axes, keepdim=True)).abs().mean(dim=axes, keepdim=True)


OWN = (
    "statistics of the images themselves",
    "What the model gets must not depend on which images come together. Measure mean "
    "and spread once, on the training images, and use these for all others.",
)
CHANNELS = (
    "Each channel has a mean and a spread of its own, over images, rows and columns: "
    "the axes 0, 2 and 3 are averaged away, and C numbers are left."
)
ONE_MEAN = "one mean for all channels", CHANNELS
COLUMN = (
    "each column by its own statistics",
    "The axis of the channels is the second. Over the last axis the numbers would "
    "belong to columns.",
)
SINGLE = (
    "the mean of the spreads of single images",
    "The spread is that of all pixels of a channel together. A mean of the images' own "
    "spreads does not see how far the images differ from one another: take std over "
    "the axes 0, 2 and 3 at once.",
)
SQUARED = (
    "divided by the variance",
    "The variance is the square of the spread. Divide by its root.",
)
DIFFERENCE = (
    "the variance as a difference of two means",
    "The mean of the squares less the square of the mean: two numbers that are nearly "
    "equal where there is no contrast. Rounding leaves a spread of 10⁻⁴ there, or a "
    "negative variance. Subtract the mean first and then square, or take std.",
)
ROUNDING = (
    "rounding is taken for contrast",
    "0.1 is rounded, and so is the mean of many. What is left of the spread is not 0 "
    "but 10⁻⁸, and the quotient is huge. Let a spread below 10⁻⁶ count as 1.",
)
LARGE = (
    "the limit for contrast is too large",
    "A faint channel has contrast, too: divide by its spread. It is the standard "
    "deviation that is compared with 10⁻⁶, not its square, the variance.",
)
NOT_ONE = (
    "a small spread does not count as 1",
    "If you add a small number to the spread, or let it fall no lower, you still "
    "divide by it: rounding becomes huge. A spread below 10⁻⁶ counts as 1: "
    "torch.where(std < 1e-6, 1.0, std).",
)
EVERYTHING = (0, 1, 2, 3)


def _axes(*axes: int) -> dict[str, tuple[int, ...]]:
    return {"mean_axes": axes, "spread_axes": axes}


SLIPS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (*OWN, {"own_mean": True, "own_spread": True}),
    (*OWN, {"own_mean": True}),
    (*OWN, {"own_spread": True}),
    *(
        ("each image by its own statistics", OWN[1], of_mean | of_spread)
        for axes in ((2, 3), (1, 2, 3))
        for of_mean in ({"own_mean": True, "mean_axes": axes}, {})
        for of_spread in ({"own_spread": True, "spread_axes": axes}, {})
        if of_mean or of_spread
    ),
    (*ONE_MEAN, _axes(*EVERYTHING)),
    (*ONE_MEAN, {"mean_axes": EVERYTHING}),
    ("one spread for all channels", CHANNELS, {"spread_axes": EVERYTHING}),
    ("each pixel by its own statistics", CHANNELS, _axes(0)),
    (*COLUMN, _axes(0, 1, 2)),
    (*COLUMN, _axes(0, 2)),
    (
        "the sample standard deviation",
        "std divides by the count less one, an estimate for data that were not seen. "
        "Here the spread of these very images is meant: correction=0.",
        {"correction": 1},
    ),
    (*SINGLE, {"spread": _by_image(1)}),
    (*SINGLE, {"spread": _by_image(2)}),
    *((*DIFFERENCE, {"spread": _difference(rooted)}) for rooted in ROOTED),
    (
        "absolute deviations in place of squares",
        "The standard deviation is the root of the mean squared deviation. The mean of "
        "the absolute deviations is smaller.",
        {"spread": _absolute},
    ),
    (*SQUARED, {"power": 2}),
    (*SQUARED, {"power": 2, "divisor": _least(FLAT**0.5)}),
    (
        "the mean is not subtracted",
        "First subtract the mean, then divide by the spread.",
        {"computed": lambda x, mean, std: x / std},
    ),
    (
        "not divided by the spread",
        "After the mean is subtracted, divide by the spread.",
        {"computed": lambda x, mean, std: x - mean},
    ),
    (
        "only the mean is divided",
        "(x - mean) / std: the difference is divided, not the mean alone.",
        {"computed": lambda x, mean, std: x - mean / std},
    ),
    (
        "subtracted the wrong way round",
        "x - mean: what is brighter than the mean comes out above 0.",
        {"computed": lambda x, mean, std: (mean - x) / std},
    ),
    (*ROUNDING, {"divisor": _least(0.0)}),
    (*ROUNDING, {"divisor": lambda std: std + 1e-8}),
    (
        "a channel without contrast is divided by 0",
        "Such a channel has the spread 0, and dividing by it gives infinity. Let a "
        "spread below 10⁻⁶ count as 1.",
        {"divisor": lambda std: std},
    ),
    (
        "one channel without contrast decides for all",
        "Only its own spread counts as 1; the other channels keep theirs.",
        {"divisor": lambda std: std**0 if (std <= FLAT).any() else std},
    ),
    (*LARGE, {"divisor": _least(FLAT**0.5)}),
    (*NOT_ONE, {"divisor": lambda std: std.clamp(min=FLAT)}),
    *(
        (
            *NOT_ONE,
            {"divisor": lambda std, added=added, n=n: (std**n + added) ** (1 / n)},
        )
        for n in (1, 2)
        for added in (1e-6, 1e-5, 1e-4, 1e-3)
    ),
    (
        "the limit is turned round",
        "torch.where(condition, a, b) is a where the condition holds: below 10⁻⁶ the "
        "spread counts as 1, above it stays.",
        {"divisor": lambda std: std.where(std < FLAT, 1.0)},
    ),
    (
        "a channel without contrast becomes 0",
        "It is 0 only where an image has the training images' own value. Subtract the "
        "mean there, too, and divide by 1.",
        {"flat": torch.zeros_like},
    ),
    (
        "a channel without contrast is not shifted",
        "Its mean is subtracted as in any other channel. Only the spread counts as 1.",
        {"flat": lambda images: images},
    ),
    (
        "reshaped in place of transposed",
        "reshape only cuts the line of numbers anew, and in it the channels of the "
        "first image come before the second image. Average over the axes 0, 2 and 3, "
        "or bring the channels to the front by transpose(0, 1).",
        {"of": lambda x: x.reshape(x.shape[1], -1, *x.shape[2:]).transpose(0, 1)},
    ),
)
standardising.slips(by_statistics, *SLIPS)


# --- the check ------------------------------------------------------------------------


@chapter.check(section="trained-vision-data")
def standardise(student: StudentFunction, seed: int = 0) -> None:
    """By hand, scikit-learn's scaler, a channel without contrast."""
    train = torch.tensor([0.0, 0.0, 1.0, 1.0]).view(2, 1, 1, 2)
    images = torch.tensor([0.25, 1.0, 0.5, 0.75]).view(2, 1, 1, 2)
    right = torch.tensor([-0.5, 1.0, 0.0, 0.5]).view(2, 1, 1, 2)
    on = "the example by hand, and a second image"
    standardising.judge(student, Case(on, (images, train), right))
    generator = seeded(seed)
    for channels in (3, 1):
        b, n, h, w = draw_sizes(generator, 4)
        spread = 0.2 + 0.6 * _uniform(generator, channels, 1, 1)
        train = spread * _uniform(generator, n, channels, h, w)
        images = 0.5 + 0.5 * _uniform(generator, b, channels, h, w)
        on = f"images {tuple(images.shape)}, training images {tuple(train.shape)}"
        standardising.judge(student, Case(on, (images, train), tolerance=1e-4))
    _expect_flat_channels(student, generator)


def _uniform(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=generator)


def _expect_flat_channels(student: StudentFunction, generator: torch.Generator) -> None:
    """Expect channels of one value each to be shifted only, and all others divided."""
    values = [each / 10 for each in range(1, 10)]  # most of them are rounded
    values += _uniform(generator, 3).tolist()
    faint = 0.5 + 0.001 * _uniform(generator, 2, 1, 4, 3)  # is no rounding: divide
    others = torch.cat((faint, _uniform(generator, 2, 1, 4, 3)), 1)
    for flat in ([0.25, *values], *([value] for value in values)):
        train = torch.tensor(flat).view(-1, 1, 1).expand(2, -1, 4, 3)
        images = _uniform(generator, 3, len(flat), 4, 3)
        on = f"training images that are {flat[0]:g} everywhere"
        if len(flat) > 1:
            train = torch.cat((train, others), 1)
            images = torch.cat((images, others[:1].expand(3, -1, -1, -1)), 1)
            on = "channels of one value each, a faint one and one with contrast, "
            on += f"training images {tuple(train.shape)}"
        elif expect.is_collecting():
            break  # what is left of one value depends on the order of a sum
        _expect_only_shifted(student, images, train.contiguous(), len(flat), on)


def _expect_only_shifted(
    student: StudentFunction,
    images: torch.Tensor,
    train: torch.Tensor,
    flat: int,
    on: str,
) -> None:
    """Expect the first channels, those without contrast, not to be divided.

    Divided by what rounding leaves, no two answers need to agree: of such values only
    their kind is compared.
    """
    got, right = student(images, train), scaled(images, train)
    expect.tensor(got, shape=tuple(right.shape), on=on, finite=False)
    distances = (images - train.mean(AXES, keepdim=True))[:, :flat].abs()
    kind = _kind(got, distances)
    known = standardising.known(images, train)
    if kind == SMALL:
        expect.equal(got, right, on=on, mistakes=known, tolerance=1e-3)
        return
    mistakes = (replace(each, value=_kind(each.value, distances)) for each in known)
    expect.equal(kind, SMALL, on=on, mistakes=mistakes, why=NOT_ONE[1])


def _kind(values: torch.Tensor, distances: torch.Tensor) -> str:
    """Say what the first channels look like, whose values are so far from a mean."""
    if values.isinf().any() or values[:, 0].isnan().any():
        return "infinity"
    if values.isnan().any():  # but not where nothing is rounded
        return "the root of a negative number"
    flat = values[:, : distances.shape[1]].abs()
    far = flat.amax(AXES) > 10
    if not far.any():
        return SMALL
    divisor = distances[:, far].sum() / flat[:, far].sum()
    if divisor < NOISE:
        return "values above a million"
    return (
        "huge values in all channels" if far.all() else "huge values in some channels"
    )
