"""A batch of images, each shifted by numbers of its own."""

import functools
import itertools
import math

import torch
import torch.nn.functional as F

from autograder.chapters.vision.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction


def _moved(image: torch.Tensor, down: int, right: int) -> torch.Tensor:
    """Move one image (C, H, W): PyTorch's padding, of negative size where it leaves."""
    _, h, w = image.shape
    down, right = max(-h, min(h, down)), max(-w, min(w, right))
    return F.pad(image, (right, -right, down, -down))


def moved(images: torch.Tensor, down: torch.Tensor, right: torch.Tensor):
    """Move image after image."""
    pairs = zip(images, down.tolist(), right.tolist(), strict=True)
    return torch.stack([_moved(*each) for each in pairs])


shifting = Function("shift-images", "shift_images", moved)


# --- what goes wrong ------------------------------------------------------------------

FROM = (
    "A shift of 1 down brings row 0 to row 1, so row i of the result comes from row i "
    "minus the shift."
)
TURNED = (
    (
        "the wrong way, in both directions",
        FROM,
        lambda down, right: (-down, -right),
    ),
    ("up and down exchanged", FROM, lambda down, right: (-down, right)),
    ("left and right exchanged", FROM, lambda down, right: (down, -right)),
    (
        "rows and columns exchanged",
        "down moves along the rows, the last axis but one; right along the last.",
        lambda down, right: (right, down),
    ),
    *(
        (
            "rows and columns exchanged, and the wrong way",
            f"down moves along the rows, right along the columns. {FROM}",
            lambda down, right, signs=signs: (signs[0] * right, signs[1] * down),
        )
        for signs in ((-1, -1), (-1, 1), (1, -1))
    ),
)
for name, why, turned in TURNED:
    shifting.mistake(name, why)(
        lambda images, down, right, turned=turned: moved(images, *turned(down, right))
    )

ONE_FOR_ALL = (
    "one shift for the whole batch",
    "Every image has its own numbers: keep the axis of the batch in the tables, "
    "(B, H) and (B, W).",
)


def _first(shifts: torch.Tensor) -> torch.Tensor:
    return shifts[0].expand_as(shifts)


def _last(shifts: torch.Tensor) -> torch.Tensor:
    return shifts[-1].expand_as(shifts)


for alike in (_first, _last):
    for turned in (
        lambda down, right, alike: (alike(down), alike(right)),
        lambda down, right, alike: (down, alike(right)),
        lambda down, right, alike: (alike(down), right),
        # with a sign exchanged besides
        lambda down, right, alike: (-down, alike(right)),
        lambda down, right, alike: (down, -alike(right)),
        lambda down, right, alike: (alike(down), -right),
        lambda down, right, alike: (-alike(down), right),
        lambda down, right, alike: (-alike(down), -alike(right)),
    ):
        shifting.mistake(
            *ONE_FOR_ALL, when=lambda images, down, right: len(images) > 1
        )(
            lambda images, down, right, alike=alike, turned=turned: moved(
                images, *turned(down, right, alike)
            )
        )


def _fetched(images: torch.Tensor, rows: torch.Tensor, columns: torch.Tensor):
    """Fetch by tables (B, H) and (B, W) of places that are all inside."""
    batch = torch.arange(len(images))[:, None, None]
    found = images[batch, :, rows[:, :, None], columns[:, None, :]]
    return found.permute(0, 3, 1, 2)


def _tables(images, down, right) -> tuple[torch.Tensor, torch.Tensor]:
    height, width = images.shape[2:]
    return torch.arange(height) - down[:, None], torch.arange(width) - right[:, None]


OTHER_SIDE = (
    "what leaves comes in on the other side",
    "Negative indices count from the end, and roll turns in a circle. What comes in "
    "from outside is 0.",
)


@shifting.mistake(*OTHER_SIDE)
def _(images, down, right):
    rows, columns = _tables(images, down, right)
    return _fetched(images, rows % images.shape[2], columns % images.shape[3])


for untested in ((True, True), (True, False), (False, True)):
    for fetch in (
        lambda places, count: places.clamp(-count, count - 1) % count,
        lambda places, count: places % count,
    ):

        @shifting.mistake(*OTHER_SIDE)
        def _(images, down, right, untested=untested, fetch=fetch):
            tables, sizes = _tables(images, down, right), images.shape[2:]
            rows, columns = (
                (places < size) & (without | (places >= 0))  # only the end is tested
                for places, size, without in zip(tables, sizes, untested, strict=True)
            )
            found = _fetched(images, *map(fetch, tables, sizes))
            return found * (rows[:, :, None] & columns[:, None, :])[:, None]


def _clamped(images, down, right) -> torch.Tensor:
    rows, columns = _tables(images, down, right)
    height, width = images.shape[2:]
    return _fetched(images, rows.clamp(0, height - 1), columns.clamp(0, width - 1))


def _within(images, down, right, low=(0, 0), beyond=(0, 0)):
    """Mark rows (B, H, 1) and columns (B, 1, W) from low on, and up to beyond."""
    tables, sizes = _tables(images, down, right), images.shape[2:]
    rows, columns = [
        (places >= first) & (places < size + more)
        for places, size, first, more in zip(tables, sizes, low, beyond, strict=True)
    ]
    return rows[:, :, None], columns[:, None, :]


REPEATED = (
    "the edge is repeated",
    "clamp fetches the outermost pixel for every place outside. That keeps the "
    "fetching legal; afterwards these places have to be set to 0, on all four sides: "
    "inside is what is at least 0 and below the size.",
)
EITHER = (
    "inside by its row or by its column",
    "A place is inside if its row and its column are: join both tests by &, not by |.",
)


def _by_either(images, down, right):
    rows, columns = _within(images, down, right)
    return _clamped(images, down, right) * (rows | columns)[:, None]


shifting.mistake(*EITHER)(_by_either)
for (one, why, turned), (other, filled) in itertools.product(
    TURNED, ((REPEATED, _clamped), (EITHER, _by_either))
):
    shifting.mistake(f"{one}, and {other[0]}", f"{why} {other[1]}")(
        lambda images, down, right, turned=turned, filled=filled: filled(
            images, *turned(down, right)
        )
    )


def by_tables(
    images: torch.Tensor,
    down: torch.Tensor,
    right: torch.Tensor,
    *,
    low: tuple[float, float] = (0, 0),
    beyond: tuple[float, float] = (0, 0),
    order: tuple[int, ...] = (0, 1, 2, 3),
) -> torch.Tensor:
    """Fetch by rules that can be varied.

    Args:
        images: (B, C, H, W).
        down: (B,).
        right: (B,).
        low: the first row and the first column that are inside.
        beyond: how far behind the end of rows and of columns the inside ends.
        order: of the axes in the end.
    """
    rows, columns = _within(images, down, right, low, beyond)
    found = _clamped(images, down, right) * (rows & columns)[:, None]
    return found.permute(order)


OPEN = itertools.product((0, -math.inf), (0, -math.inf), (0, math.inf), (0, math.inf))
for sides in OPEN:
    if any(sides):
        shifting.mistake(*REPEATED)(
            functools.partial(by_tables, low=sides[:2], beyond=sides[2:])
        )
for rows, columns in ((1, 1), (1, 0), (0, 1)):
    shifting.mistake(
        "place 0 counts as outside",
        "Row 0 and column 0 are inside as all others are: a place is inside from 0 on.",
    )(functools.partial(by_tables, low=(rows, columns)))
    shifting.mistake(
        "the last place counts as outside",
        "Counted from 0, the last of H rows is number H − 1, and it is inside: inside "
        "is what is below the size.",
    )(functools.partial(by_tables, beyond=(-rows, -columns)))
    shifting.mistake(*REPEATED)(functools.partial(by_tables, beyond=(rows, columns)))
shifting.mistake(
    "mirrored at the diagonal",
    "What is fetched has the axes (B, H, W, C). The channels go before the rows, and "
    "the rows stay before the columns. To exchange two axes is not enough.",
)(functools.partial(by_tables, order=(0, 1, 3, 2)))


for stays in (
    lambda down, right: right == 0,
    lambda down, right: down == 0,
    lambda down, right: (down == 0) | (right == 0),
    lambda down, right: (down == 0) & (right == 0),
):

    @shifting.mistake(
        "images that are not moved are lost",
        "A shift of 0 brings every pixel to its own place. With slices it needs a case "
        "of its own, since [:-0] is empty. Ask for each pixel where it comes from, and "
        "it needs none.",
        when=lambda images, down, right, stays=stays: bool(stays(down, right).any()),
    )
    def _(images, down, right, stays=stays):
        lost = stays(down, right)[:, None, None, None]
        return moved(images, down, right).masked_fill(lost, 0.0)


shifting.mistake("not moved at all", "The result is a new tensor: return it.")(
    lambda images, down, right: images
)


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
        images = normal(generator, b, channels, h, w)
        down, across = (
            torch.randint(-far, far + 1, (b,), generator=generator) for _ in range(2)
        )
        if far > 1:
            down[:2], across[:2] = torch.tensor([0, 2]), torch.tensor([-1, 1])
        shifting.judge(student, _asked(images, down, across))
    down, across = torch.tensor([h, 1 - h, -h, 0]), torch.tensor([0, w - 1, 1, -w])
    images = normal(generator, 4, 2, h, w)
    shifting.judge(student, _asked(images, down, across))


def _asked(images: torch.Tensor, down: torch.Tensor, right: torch.Tensor) -> Case:
    on = f"images {tuple(images.shape)}, down {down.tolist()}, right {right.tolist()}"
    return Case(on, (images, down, right))
