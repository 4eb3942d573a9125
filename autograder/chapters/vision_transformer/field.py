"""How far an output sees: the box of pixels with a gradient."""

import contextlib
import itertools
from collections.abc import Callable, Iterator

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


def _is_seen(gradient: torch.Tensor) -> bool:
    return bool((gradient != 0).any())


def _from_first_to_last(line: list[bool]) -> int:
    return len(line) - line[::-1].index(True) - line.index(True)


def box_by(
    gradient: torch.Tensor,
    *,
    ask: Callable = lambda gradient: (gradient != 0).any(0),
    lines: Callable = lambda seen: (seen.any(1), seen.any(0)),
    extent: Callable = _from_first_to_last,
    nothing: Callable = lambda height, width: (0, 0),
    form: Callable = lambda rows, columns: (rows, columns),
) -> tuple[int, int] | int:
    """Measure by rules that can be varied.

    Args:
        gradient: (C, H, W).
        ask: which pixels (H, W) are seen.
        lines: which rows and which columns are, made of these.
        extent: of a row of truth values, one of which is true.
        nothing: the answer if none is, of the image's sides.
        form: makes the answer of both extents.
    """
    both = [line.tolist() for line in lines(ask(gradient))]
    if not all(map(any, both)):
        return nothing(*gradient.shape[1:])
    return form(*map(extent, both))


ROWS_FIRST = "Rows first: the height of the box, then its width."
SIGNS = "A negative gradient is a dependence, too: ask for != 0, not for > 0."
ALIKE = "A pixel counts if any of its channels does."
SMALL = (
    "small entries left out",
    "Every entry that is not zero counts, however small: compare the entry itself with "
    "0. The square of 1e-30 is 0 in float32.",
)
AREA = (
    "the area",
    "Two numbers are asked for, the extents; their product is the area.",
)
NOTHING = (
    "a box of nothing",
    "If no entry differs from zero, there is no box: both extents are 0.",
)
ONE = (
    "one extent for both",
    "The box need not be a square: measure rows and columns, each for itself.",
)
field.slips(
    box_by,
    (
        "rows and columns exchanged",
        ROWS_FIRST,
        {"form": lambda rows, columns: (columns, rows)},
    ),
    (
        "channels added up before the test",
        "In a sum, channels of opposite sign cancel. Test first, then join: "
        "(gradient != 0).any(0).",
        {"ask": lambda gradient: gradient.sum(0) != 0},
    ),
    (
        "only positive entries",
        SIGNS,
        {"ask": lambda gradient: (gradient > 0).any(0)},
    ),
    (
        "the largest channel alone",
        f"Of a negative number and a zero the zero is the larger. {ALIKE}",
        {"ask": lambda gradient: gradient.amax(0) != 0},
    ),
    ("only the first channel", ALIKE, {"ask": lambda gradient: gradient[0] != 0}),
    ("only the last channel", ALIKE, {"ask": lambda gradient: gradient[-1] != 0}),
    (
        "a pixel counts only with all channels",
        ALIKE,
        {"ask": lambda gradient: (gradient != 0).all(0)},
    ),
    (
        "the last row and column left out",
        "range(n) and slices leave out their end already: go up to H and W.",
        {"ask": lambda gradient: (gradient[:, :-1, :-1] != 0).any(0)},
    ),
    *(
        (*SMALL, {"ask": lambda gradient, least=least: (gradient.abs() > least).any(0)})
        for least in (1e-6, 1e-8, 1e-3)
    ),
    (*SMALL, {"ask": lambda gradient: gradient.square().sum(0) != 0}),
    (
        *SMALL,
        {"ask": lambda gradient: (gradient.abs() > 1e-3 * gradient.abs().max()).any(0)},
    ),
    (
        "one too few",
        "From row 1 to row 2 there are two rows: last minus first, plus 1.",
        {"extent": lambda line: _from_first_to_last(line) - 1},
    ),
    (
        "one too many",
        "From row 1 to row 2 there are two rows: last minus first, plus 1.",
        {"extent": lambda line: _from_first_to_last(line) + 1},
    ),
    (
        "rows and columns counted, not the box",
        "Within the box there may be rows and columns of zeros, as between the taps of "
        "a dilated convolution. The extent is last minus first plus 1.",
        {"extent": sum},
    ),
    (
        "measured from the corner of the image",
        "The box begins at the first row and column that are seen, not at 0.",
        {"extent": lambda line: len(line) - line[::-1].index(True)},
    ),
    (
        "the last row and column in place of the extent",
        "Where the box ends does not say how large it is: last minus first, plus 1.",
        {"extent": lambda line: len(line) - line[::-1].index(True) - 1},
    ),
    (
        "the size of the image",
        "This is the size of the image; the box holds only what the output sees.",
        {"extent": len, "nothing": lambda height, width: (height, width)},
    ),
    (
        "rows and columns that are seen whole",
        "A row counts if any of its pixels does, and so does a column: .any, not .all.",
        {"lines": lambda seen: (seen.all(1), seen.all(0))},
    ),
    (*AREA, {"form": lambda rows, columns: rows * columns}),
    (
        *AREA,
        {
            "form": lambda rows, columns: rows * columns,
            "nothing": lambda height, width: 0,
        },
    ),
    (*ONE, {"form": lambda rows, columns: (rows, rows)}),
    (*ONE, {"form": lambda rows, columns: (columns, columns)}),
    (*ONE, {"form": lambda rows, columns: 2 * (max(rows, columns),)}),
    (*NOTHING, {"nothing": lambda height, width: (1, 1)}),
    (*NOTHING, {"nothing": lambda height, width: (-height, -width)}),
    (*NOTHING, {"nothing": lambda height, width: (height, width)}),
)
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
    opposite[0, 1 + c, 4], opposite[:, 2, 5] = 1.0, -1.0
    yield opposite, "two channels of opposite sign at one pixel, negative at another"
    small = torch.zeros(1, h, w)
    small[0, 3, 3], small[0, 4, 5 + c] = 1.0, 1e-30
    yield small, "an entry of 1e-30"
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
