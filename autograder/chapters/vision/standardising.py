"""Images brought to mean 0 and spread 1, by what the training images say."""

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.vision.chapter import chapter
from autograder.exercise.inputs import draw_sizes, seeded
from autograder.exercise.spec import Case, Function
from autograder.expect import refuse_if
from autograder.interface import StudentFunction

FLAT = 1e-6  # a spread below is rounding, and counts as 1


def scaled(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    """Let PyTorch's batch norm do it, with the statistics of the training images."""
    train = train.double().movedim(1, 0).flatten(1)
    variance, mean = torch.var_mean(train, dim=1, correction=0)
    variance = variance.where(variance > FLAT**2, 1.0)
    return F.batch_norm(images.double(), mean, variance, eps=0.0).float()


standardising = Function("standardise", "standardise", scaled)


# --- what goes wrong ------------------------------------------------------------------


def _statistics(
    source: torch.Tensor,
    axes: tuple[int, ...] = (0, 2, 3),
    correction: int = 0,
    flat: float = FLAT,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Measure mean and spread; a spread up to ``flat`` counts as 1."""
    mean = source.mean(dim=axes, keepdim=True)
    std = source.std(dim=axes, keepdim=True, correction=correction)
    return mean, std.where(std > flat, 1.0)


OTHERS = (
    "What the model gets must not depend on which images come together. Measure mean "
    "and spread once, on the training images, and use these for all others."
)
OWN_VARIANCE = (
    "statistics of the images themselves",
    f"{OTHERS} And it is the spread that divides, not its square, the variance.",
)
EACH = "each image by its own statistics"
CHANNELS = (
    "Each channel has a mean and a spread of its own, over images, rows and columns: "
    "the axes 0, 2 and 3 are averaged away, and C numbers are left."
)
for name, why, own, axes in (
    ("statistics of the images themselves", OTHERS, True, (0, 2, 3)),
    (EACH, OTHERS, True, (2, 3)),
    (EACH, OTHERS, True, (1, 2, 3)),
    ("one mean for all channels", CHANNELS, False, (0, 1, 2, 3)),
    ("each pixel by its own statistics", CHANNELS, False, (0,)),
    (
        "each column by its own statistics",
        "The axis of the channels is the second. Over the last axis the numbers would "
        "belong to columns.",
        False,
        (0, 1, 2),
    ),
):

    @standardising.mistake(name, why)
    def _(images, train, own=own, axes=axes):
        mean, std = _statistics(images if own else train, axes)
        return (images - mean) / std


for axes in ((0, 2, 3), (2, 3), (1, 2, 3)):

    @standardising.mistake(*OWN_VARIANCE)
    def _(images, train, axes=axes):
        mean, std = _statistics(images, axes, flat=FLAT**0.5)
        return (images - mean) / std.square()


@standardising.mistake(
    "the sample standard deviation",
    "std divides by the count less one, an estimate for data that were not seen. Here "
    "the spread of these very images is meant: correction=0.",
)
def _(images, train):
    mean, std = _statistics(train, correction=1)
    return (images - mean) / std


for first, correction in ((True, 0), (False, 0), (True, 1), (False, 1)):

    @standardising.mistake(
        "the mean of the spreads of single images",
        "The spread is that of all pixels of a channel together. A mean of the images' "
        "own spreads does not see how far the images differ from one another: take "
        "std over the axes 0, 2 and 3 at once.",
        when=lambda images, train: len(train) > 1,
    )
    def _(images, train, first=first, correction=correction):
        std = train.std(dim=(2, 3), correction=correction, keepdim=True)
        std = std.where(std > FLAT, 1.0) if first else std
        std = std.mean(dim=0, keepdim=True)
        return (images - _statistics(train)[0]) / std.where(std > FLAT, 1.0)


for name, why, computed in (
    (
        "divided by the variance",
        "The variance is the square of the spread. Divide by its root.",
        lambda x, mean, std: (x - mean) / std.square(),
    ),
    (
        "the mean is not subtracted",
        "First subtract the mean, then divide by the spread.",
        lambda x, mean, std: x / std,
    ),
    (
        "not divided by the spread",
        "After the mean is subtracted, divide by the spread.",
        lambda x, mean, std: x - mean,
    ),
    (
        "only the mean is divided",
        "(x - mean) / std: the difference is divided, not the mean alone.",
        lambda x, mean, std: x - mean / std,
    ),
):
    standardising.mistake(name, why)(
        lambda images, train, computed=computed: computed(images, *_statistics(train))
    )

CONTRAST = (
    "a channel without contrast is divided by 0",
    "Such a channel has the spread 0, and dividing by it gives infinity. Let a spread "
    "below 10⁻⁶ count as 1.",
)
ROUNDING = (
    "rounding is taken for contrast",
    "0.1 is rounded, and so is the mean of many. What is left of the spread is not 0 "
    "but 10⁻⁸, and the quotient is huge. Let a spread below 10⁻⁶ count as 1.",
)
NOT_ONE = (
    "a small spread does not count as 1",
    "If you add a small number to the spread, or let it fall no lower, you still "
    "divide by it: rounding becomes huge. A spread below 10⁻⁶ counts as 1: "
    "torch.where(std < 1e-6, 1.0, std).",
)


@standardising.mistake(*CONTRAST)
def _(images, train):
    mean, std = _statistics(train, flat=-1.0)
    return (images - mean) / std


@standardising.mistake(
    "one channel without contrast decides for all",
    "Only its own spread counts as 1; the other channels keep theirs.",
    when=lambda images, train: bool((_statistics(train, flat=-1.0)[1] <= FLAT).any()),
)
def _(images, train):
    mean, _ = _statistics(train)
    return images - mean


@standardising.mistake(*ROUNDING)
def _(images, train):
    mean, std = _statistics(train, flat=0.0)
    return (images - mean) / std


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
    """Expect channels of one value each to be shifted only, and a faint one divided."""
    values = [each / 10 for each in range(1, 10)]  # most of them are rounded
    values += _uniform(generator, 3).tolist()
    faint = 0.5 + 0.001 * _uniform(generator, 2, 1, 4, 3)  # is no rounding: divide
    for flat in ([0.25, *values], *([value] for value in values)):
        train = torch.tensor(flat).view(-1, 1, 1).expand(2, -1, 4, 3)
        images = _uniform(generator, 3, len(flat), 4, 3)
        on = f"training images that are {flat[0]:g} everywhere"
        if len(flat) > 1:
            train, on = torch.cat((train, faint), 1), "channels of one value each"
            images = torch.cat((images, faint[:1].expand(3, -1, -1, -1)), 1)
            on += f", and a faint one, training images {tuple(train.shape)}"
        _expect_only_shifted(student, images, train.contiguous(), len(flat), on)


def _expect_only_shifted(
    student: StudentFunction,
    images: torch.Tensor,
    train: torch.Tensor,
    flat: int,
    on: str,
) -> None:
    """Expect the first channels, those without contrast, not to be divided."""
    got, right = student(images, train), scaled(images, train)
    expect.tensor(got, shape=tuple(right.shape), on=on, finite=False)
    finite = bool(got.isfinite().all())
    refuse_if(not finite, *CONTRAST, on=on, got=expect.show(got))
    far = got[:, :flat].abs().max().item()
    say = {"got": f"a value of {far:.3g}", "expected": "values between −1 and 1"}
    distances = (images - train.mean((0, 2, 3), keepdim=True))[:, :flat].abs()
    divisor = (distances.sum() / got[:, :flat].abs().sum()).item()
    # by what is left of the spread after rounding it would be smaller
    refuse_if(far > 10 and divisor > 3e-7, *NOT_ONE, on=on, **say)
    refuse_if(far > 10, *ROUNDING, on=on, **say)
    expect.equal(
        got,
        right,
        on=on,
        mistakes=standardising.known(images, train),
        why=ROUNDING[1],
        tolerance=1e-3,
    )
