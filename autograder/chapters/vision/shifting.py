"""A batch of images, each shifted by numbers of its own."""

import itertools
import math
import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from autograder.chapters.vision.chapter import chapter
from autograder.exercise.copies import expect_new
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction


def _moved(image: torch.Tensor, down: int, right: int) -> torch.Tensor:
    """Move one image (C, H, W): PyTorch's padding, of negative size where it leaves."""
    _, h, w = image.shape
    down, right = max(-h, min(h, down)), max(-w, min(w, right))
    return F.pad(image, (right, -right, down, -down))


def moved(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> torch.Tensor:
    """Move image after image."""
    pairs = zip(images, down.tolist(), right.tolist(), strict=True)
    return torch.stack([_moved(*each) for each in pairs])


shifting = Function("shift-images", "shift_images", moved)


# --- what goes wrong ------------------------------------------------------------------


def by_tables(
    images: torch.Tensor,
    down: torch.Tensor,
    right: torch.Tensor,
    *,
    alike: Callable = lambda down, right: (down, right),
    taken: Callable = lambda down, right: (down, right),
    turned: Callable = lambda down, right: (down, right),
    rows_at: Callable = lambda places, size: places,
    columns_at: Callable = lambda places, size: places,
    rows_from: float = 0,
    columns_from: float = 0,
    rows_to: Callable[[int, int], float] = lambda height, width: height,
    columns_to: Callable[[int, int], float] = lambda height, width: width,
    fetch: Callable = lambda places, size: places.clamp(0, size - 1),
    joined: Callable = operator.and_,
    kept: Callable[[torch.Tensor], torch.Tensor] = lambda inside: inside,
    fill: Callable[[torch.Tensor], torch.Tensor | float] = lambda images: 0.0,
    order: tuple[int, ...] = (0, 1, 2, 3),
    lost: Callable | None = None,
) -> torch.Tensor:
    """Fetch from tables of places, (B, H) and (B, W), by rules that can be varied.

    Args:
        images: (B, C, H, W).
        down: (B,).
        right: (B,).
        alike: makes of both shifts those of the whole batch.
        taken: makes of these the shifts that are made.
        turned: what is subtracted from the numbers of rows and of columns.
        rows_at: the rows that are meant, of their numbers and the height.
        columns_at: the columns that are.
        rows_from: the first row that is inside.
        columns_from: the first column that is.
        rows_to: where the rows inside end, of height and width.
        columns_to: where the columns do.
        fetch: the places that are fetched from, of all places and the size.
        joined: the tests of rows (B, H, 1) and columns (B, 1, W).
        kept: what is fetched and not filled, of what is inside.
        fill: what comes in.
        order: of the axes in the end.
        lost: which images become 0, of both shifts.
    """
    height, width = images.shape[2:]
    up, left = turned(*taken(*alike(down, right)))
    rows = rows_at(torch.arange(height) - up[:, None], height)
    columns = columns_at(torch.arange(width) - left[:, None], width)
    in_rows = (rows >= rows_from) & (rows < rows_to(height, width))
    in_columns = (columns >= columns_from) & (columns < columns_to(height, width))
    inside = kept(joined(in_rows[:, :, None], in_columns[:, None, :]))
    batch = torch.arange(len(images))[:, None, None]
    one, two = fetch(rows, height)[:, :, None], fetch(columns, width)[:, None, :]
    found = images[batch, :, one, two].permute(0, 3, 1, 2)
    found = found.where(inside[:, None], fill(images))
    if lost:
        found = found.masked_fill(lost(down, right)[:, None, None, None], 0.0)
    return found.permute(order)


FROM = (
    "A shift of 1 down brings row 0 to row 1, so row i of the result comes from row i "
    "minus the shift."
)
EXCHANGED = (
    "rows and columns exchanged",
    "down moves along the rows, the last axis but one; right along the last.",
)
EXCHANGED_AND_BACK = (
    f"{EXCHANGED[0]}, and the wrong way",
    f"down moves along the rows, right along the columns. {FROM}",
)
ONE_NUMBER = (
    "one number for both directions",
    "Rows are moved by `down`, columns by `right`: two numbers for each image.",
)
ONE_ONLY = (
    "moved in one direction only",
    "Every image moves by its number of rows and by its number of columns. If you do "
    "one after the other, the second begins with what the first has made.",
)
NOT_BACK = (
    "negative shifts are not made",
    "down = -1 moves up by one row, and right = -1 to the left by one column.",
)
FORTH = (
    "negative shifts taken as positive ones",
    "down = -1 moves up by one row, and right = -1 to the left by one column.",
)
ONE_FOR_ALL = (
    "one shift for the whole batch",
    "Every image has its own numbers: keep the axis of the batch in the tables, "
    "(B, H) and (B, W).",
)
OTHER_SIDE = (
    "what leaves comes in on the other side",
    "Negative indices count from the end, and roll turns in a circle. What comes in "
    "from outside is 0.",
)
REPEATED = (
    "the edge is repeated",
    "clamp fetches the outermost pixel for every place outside. That keeps the "
    "fetching legal; afterwards these places have to be set to 0, on all four sides: "
    "inside is what is at least 0 and below the size.",
)
FIRST = (
    "place 0 counts as outside",
    "Row 0 and column 0 are inside as all others are: a place is inside from 0 on.",
)
LAST = (
    "the last place counts as outside",
    "Counted from 0, the last of H rows is number H − 1, and it is inside: inside is "
    "what is below the size.",
)
SIZES = (
    "height and width exchanged",
    "Images need not be square. Rows are inside from 0 to below the height, columns "
    "from 0 to below the width.",
)
OUT_OF_IT = (
    "a place outside the image is fetched",
    "Nothing can be read there. Move every place inside before you fetch, rows to "
    "0 … H − 1 and columns to 0 … W − 1. What came from outside is set to 0 later.",
)
NOT_0 = (
    "what comes in is not 0",
    "The statement wants 0 where no pixel comes from, whatever the images hold.",
)
LOST = (
    "images that are not moved are lost",
    "A shift of 0 brings every pixel to its own place. With slices it needs a case of "
    "its own, since [:-0] is empty. Ask for each pixel where it comes from, and it "
    "needs none.",
)
OWN = (
    "the caller's own images are returned",
    "Where nothing is moved, the result is the tensor that came in. Whoever writes "
    "into it changes the images. Make a new tensor in every case.",
)
shifting.accident("out of bounds", *OUT_OF_IT)


def _first(shifts: torch.Tensor) -> torch.Tensor:
    return shifts[0].expand_as(shifts)


def _last(shifts: torch.Tensor) -> torch.Tensor:
    return shifts[-1].expand_as(shifts)


def _each(rule: str, first: Callable, second: Callable) -> dict[str, Callable]:
    """Change the two shifts, each by itself."""
    return {rule: lambda down, right: (first(down), second(right))}


def _same(shifts: torch.Tensor) -> torch.Tensor:
    return shifts


def _either(rule: str, change: Callable) -> list[dict[str, Callable]]:
    """Change both shifts, the first, the second."""
    both = ((change, change), (change, _same), (_same, change))
    return [_each(rule, *each) for each in both]


LOW = {"rows_from": -math.inf}, {"columns_from": -math.inf}
HIGH = (
    {"rows_to": lambda height, width: math.inf},
    {"columns_to": lambda height, width: math.inf},
)


def _open(sides: tuple[dict[str, Any], ...]) -> list[dict[str, Any]]:
    """Leave some sides untested: one, two of them, and so on."""
    return [
        {name: rule for side in some for name, rule in side.items()}
        for count in range(1, len(sides) + 1)
        for some in itertools.combinations(sides, count)
    ]


def _at(around: Callable) -> tuple[dict[str, Any], ...]:
    return {"rows_at": around}, {"columns_at": around}


AROUND: tuple[Callable, ...] = (  # rolled, or with negative indices, or with few zeros
    lambda places, size: places % size,
    lambda places, size: torch.where(places < 0, places % size, places),
    lambda places, size: places.clamp(min=-size) + size * (places < 0),
    lambda places, size: torch.where(places < size, places, places % size),
    lambda places, size: places % (2 * size),
)
BEYOND = (
    {"rows_to": lambda height, width: height + 1},
    {"columns_to": lambda height, width: width + 1},
)
SHORT = (
    {"rows_to": lambda height, width: height - 1},
    {"columns_to": lambda height, width: width - 1},
)
CROSSED = (
    {"rows_to": lambda height, width: width},
    {"columns_to": lambda height, width: height},
)
SLIPS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (*ONE_NUMBER, {"taken": lambda down, right: (down, down)}),
    (*ONE_NUMBER, {"taken": lambda down, right: (right, right)}),
    (
        "the wrong way, in both directions",
        FROM,
        _each("turned", operator.neg, operator.neg),
    ),
    ("up and down exchanged", FROM, _each("turned", operator.neg, _same)),
    ("left and right exchanged", FROM, _each("turned", _same, operator.neg)),
    (*EXCHANGED, {"turned": lambda down, right: (right, down)}),
    (*EXCHANGED_AND_BACK, {"turned": lambda down, right: (-right, -down)}),
    (*EXCHANGED_AND_BACK, {"turned": lambda down, right: (-right, down)}),
    (*EXCHANGED_AND_BACK, {"turned": lambda down, right: (right, -down)}),
    *((*ONE_ONLY, slip) for slip in _either("taken", torch.zeros_like)[1:]),
    *((*NOT_BACK, slip) for slip in _either("taken", lambda each: each.clamp(min=0))),
    *((*FORTH, slip) for slip in _either("taken", torch.abs)),
    *((*ONE_FOR_ALL, slip) for slip in _either("alike", _first)),
    *((*ONE_FOR_ALL, slip) for slip in _either("alike", _last)),
    *((*REPEATED, sides) for sides in _open(LOW + HIGH) + _open(BEYOND)),
    *((*OTHER_SIDE, sides) for around in AROUND for sides in _open(_at(around))),
    *((*FIRST, sides) for sides in _open(({"rows_from": 1}, {"columns_from": 1}))),
    *((*LAST, sides) for sides in _open(SHORT)),
    *((*SIZES, sides) for sides in _open(CROSSED)),
    (
        "inside by its row or by its column",
        "A place is inside if its row and its column are: join both tests by &, not by "
        "|.",
        {"joined": operator.or_},
    ),
    (
        "inside and outside exchanged",
        "What comes from inside is kept, what comes from outside is set to 0. "
        "masked_fill fills where its mask is True, where keeps it there.",
        {"kept": operator.invert},
    ),
    (*OUT_OF_IT, {"fetch": lambda places, size: places}),
    *(
        (*NOT_0, {"fill": fill})
        for fill in (
            lambda images: 1.0,
            torch.min,
            lambda images: images.amin((1, 2, 3), keepdim=True),
            lambda images: images.mean((1, 2, 3), keepdim=True),
        )
    ),
    (
        "mirrored at the diagonal",
        "What is fetched has the axes (B, H, W, C). The channels go before the rows, "
        "and the rows stay before the columns. To exchange two axes is not enough.",
        {"order": (0, 1, 3, 2)},
    ),
    (*LOST, {"lost": lambda down, right: right == 0}),
    (*LOST, {"lost": lambda down, right: down == 0}),
    (*LOST, {"lost": lambda down, right: (down == 0) | (right == 0)}),
    (*LOST, {"lost": lambda down, right: (down == 0) & (right == 0)}),
    (
        "not moved at all",
        "The result is a new tensor: return it.",
        _each("taken", torch.zeros_like, torch.zeros_like),
    ),
)
shifting.slips(by_tables, *SLIPS)


shifting.mistake(
    *OWN, when=lambda images, down, right: not (down.any() or right.any())
)(lambda images, down, right: images)


# --- the check ------------------------------------------------------------------------


@chapter.check(section="trained-vision-augmentation")
def shift_images(student: StudentFunction, seed: int = 0) -> None:
    """By hand, image by image with PyTorch's padding, far shifts, none, colours."""
    hand = torch.arange(1.0, 7.0).view(1, 1, 2, 3)
    right = torch.tensor([[[[0.0, 0, 0], [3, 0, 0]]]])
    asked = hand, torch.tensor([1]), torch.tensor([-2])
    shifting.judge(student, Case("the example by hand, down 1, right -2", asked, right))
    generator = seeded(seed)
    for channels, far in ((3, 2), (1, 3), (4, 9), (2, 0)):
        b, h, w = (size + 2 for size in draw_sizes(generator, 3))
        w, h = sorted((h, w), reverse=channels % 2 > 0)  # wide or tall
        images = normal(generator, b, channels, h, w)
        down, across = (
            torch.randint(-far, far + 1, (b,), generator=generator) for _ in range(2)
        )
        if far > 1:
            down[:2], across[:2] = torch.tensor([0, 2]), torch.tensor([-1, 1])
        shifting.judge(student, _asked(images, down, across))
    down = torch.tensor([h, 1 - h, -h, 0, 2 * h - 1, 0])
    across = torch.tensor([0, w - 1, 1, -w, 0, 1 - 2 * w])
    images = normal(generator, len(down), 2, h, w)
    shifting.judge(student, _asked(images, down, across))
    none = torch.tensor([0])
    on = "the images of the example by hand, down 0, right 0"
    expect_new(student, Case(on, (hand, none, none)), *OWN)


def _asked(images: torch.Tensor, down: torch.Tensor, right: torch.Tensor) -> Case:
    on = f"images {tuple(images.shape)}, down {down.tolist()}, right {right.tolist()}"
    return Case(on, (images, down, right))
