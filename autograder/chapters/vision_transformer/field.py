"""How far an output sees: the box of pixels with a gradient."""

import contextlib
import itertools
from collections.abc import Iterator

import torch
import torch.nn.functional as F

from autograder.chapters.vision_transformer.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function, errors_named
from autograder.interface import StudentFunction


def look(gradient: torch.Tensor) -> tuple[int, int]:
    """Look at every entry."""
    channels, height, width = gradient.shape
    rows, columns = set(), set()
    for k, r, c in itertools.product(range(channels), range(height), range(width)):
        if gradient[k, r, c].item() != 0:
            rows.add(r)
            columns.add(c)
    if not rows:
        return 0, 0
    return max(rows) - min(rows) + 1, max(columns) - min(columns) + 1


field = Function("receptive-field", "receptive_field", look)

FAILS = (
    "fails when nothing is seen",
    "There is no first and no last row. Answer (0, 0) before you look.",
)


# --- what goes wrong ------------------------------------------------------------------


def _box(seen: torch.Tensor) -> tuple[int, int]:
    if not seen.any():
        return 0, 0
    places = seen.nonzero()
    return tuple((places.amax(0) - places.amin(0) + 1).tolist())


def _is_seen(gradient: torch.Tensor) -> bool:
    return bool((gradient != 0).any())


EXCHANGED = "rows and columns exchanged"
ROWS_FIRST = "Rows first: the height of the box, then its width."
field.mistake(EXCHANGED, ROWS_FIRST)(lambda gradient: look(gradient)[::-1])
field.mistake(
    "one too few",
    "From row 1 to row 2 there are two rows: last minus first, plus 1.",
    when=_is_seen,
)(lambda gradient: tuple(extent - 1 for extent in look(gradient)))
ALIKE = "A pixel counts if any of its channels does."
for name, why, ask in (
    (
        "channels added up before the test",
        "In a sum, channels of opposite sign cancel. Test first, then join: "
        "(gradient != 0).any(0).",
        lambda gradient: gradient.sum(0) != 0,
    ),
    (
        "only positive entries",
        "A negative gradient is a dependence, too: ask for != 0, not for > 0.",
        lambda gradient: (gradient > 0).any(0),
    ),
    ("only the first channel", ALIKE, lambda gradient: gradient[0] != 0),
    (
        "a pixel counts only with all channels",
        ALIKE,
        lambda gradient: (gradient != 0).all(0),
    ),
    (
        "the last row and column left out",
        "range(n) and slices leave out their end already: go up to H and W.",
        lambda gradient: (gradient[:, :-1, :-1] != 0).any(0),
    ),
    (
        "small entries left out",
        "Every entry that is not zero counts, however small: compare with 0 exactly.",
        lambda gradient: (gradient.abs() > 1e-6).any(0),
    ),
):
    field.mistake(name, why)(lambda gradient, ask=ask: _box(ask(gradient)))
    field.mistake(EXCHANGED, f"{ROWS_FIRST} And besides: {name}. {why}")(
        lambda gradient, ask=ask: _box(ask(gradient))[::-1]
    )


@field.mistake(
    "rows and columns counted, not the box",
    "Within the box there may be rows and columns of zeros, as between the taps of a "
    "dilated convolution. The extent is last minus first plus 1.",
)
def _(gradient):
    seen = (gradient != 0).any(0)
    return int(seen.any(1).sum()), int(seen.any(0).sum())


@field.mistake(
    "measured from the corner of the image",
    "The box begins at the first row and column that are seen, not at 0.",
    when=_is_seen,
)
def _(gradient):
    places = (gradient != 0).any(0).nonzero()
    return tuple((places.amax(0) + 1).tolist())


field.mistake(
    "the size of the image",
    "This is the size of the image; the box holds only what the output sees.",
)(lambda gradient: tuple(gradient.shape[1:]))


@field.mistake(
    "the area", "Two numbers are asked for, the extents; their product is the area."
)
def _(gradient):
    rows, columns = look(gradient)
    return rows * columns


field.mistake(
    "the number of pixels",
    "Two numbers are asked for, the extents of the box around these pixels.",
)(lambda gradient: int((gradient != 0).any(0).sum()))


# --- the check ------------------------------------------------------------------------


def gradients(generator: torch.Generator) -> Iterator[tuple[torch.Tensor, str]]:
    """Draw gradients that one mistake after the other measures in another way."""
    a, b, c, h, w = draw_sizes(generator, 5)
    h, w = h + 8, w + 11  # room for 5 + c, and c may be 7
    sparse = torch.zeros(3, h, w)
    for k, r, s in ((0, 2, 3), (2, 2 + a, 3 + b), (1, 3, 4)):
        sparse[k, r, s] = 1.0 + normal(generator, 1).abs().item()
    yield sparse, "three entries in three channels"
    yield -sparse, "negative entries"
    opposite = torch.zeros(2, h, w)
    opposite[0, 1, 2], opposite[1, 1, 2] = 1.5, -1.5
    opposite[0, 1 + c, 4] = 1.0
    yield opposite, "two channels of opposite sign at one pixel"
    small = torch.zeros(1, h, w)
    small[0, 3, 3], small[0, 4, 5 + c] = 1.0, 1e-12
    yield small, "an entry of 1e-12"
    for dilation in (1, 2):
        x = normal(generator, 1, 3, h, w).requires_grad_()
        y = F.conv2d(x, _kernel(generator, 2, 3, 3, 3), dilation=dilation)
        y = F.conv2d(y, _kernel(generator, 1, 2, 1, 3))
        (found,) = torch.autograd.grad(y[0, 0, 1, 2], x)
        yield found[0], f"two convolutions, the first with dilation {dilation}"
    yield normal(generator, 2, a, b), "everything is seen"
    corner = torch.zeros(2, a, b)
    corner[1, -1, -1] = -1.0
    yield corner, "one pixel, the last"
    yield torch.zeros(2, a, b), "nothing is seen"


def _kernel(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return 1 + normal(generator, *shape).abs()


@chapter.check(section="vision-receptive-field")
def receptive_field(student: StudentFunction, seed: int = 0) -> None:
    """By hand, gaps, signs and channels, stacks of convolutions, nothing seen."""
    hand = torch.zeros(1, 4, 5)
    hand[0, 1, 1] = hand[0, 2, 3] = 1.0
    wording = ("numel() == 0", "no elements", "empty", "out of ")
    for gradient, words in ((hand, "the example by hand"), *gradients(seeded(seed))):
        named = errors_named(*((each, *FAILS) for each in wording))
        on = f"a gradient {tuple(gradient.shape)}: {words}"
        with contextlib.nullcontext() if _is_seen(gradient) else named:
            field.judge(student, Case(on, (gradient.contiguous(),), what="the box"))
