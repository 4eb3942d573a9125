"""Images cut into patches, and put together again."""

import functools
from collections.abc import Callable

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.vision_transformer.chapter import chapter
from autograder.chapters.vision_transformer.images import count_up, draw_images
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.interface import Data, StudentFunction


def cut(images: torch.Tensor, p: int) -> torch.Tensor:
    """Cut by PyTorch's unfold, which puts channels first."""
    columns = F.unfold(images, p, stride=p)  # (B, C·P·P, N)
    split = columns.unflatten(1, (images.shape[1], p * p))
    return split.permute(0, 3, 2, 1).flatten(2).contiguous()


def put_together(rows: torch.Tensor, p: int, height: int, width: int) -> torch.Tensor:
    """Put together by PyTorch's fold."""
    split = rows.unflatten(2, (p * p, -1)).permute(0, 3, 2, 1)  # (B, C, P·P, N)
    return F.fold(split.flatten(1, 2), (height, width), p, stride=p)


cutting = Function("patchify", "patchify", cut)
joining = Function("unpatchify", "unpatchify", put_together)

REMAINDER = "no ValueError for a remainder"
CHANNELS_FIRST = (
    "channels first inside a patch",
    "Inside a patch the order is (row, column, channel): the channels of one pixel "
    "stand side by side. Images keep channels first, so the channel's axis has to move "
    "to the end before the axes are joined.",
)
NOT_PERMUTED = (
    "a reshape without a permutation",
    "reshape and view never move a number, they only cut the line of numbers at other "
    "places. A patch takes a few numbers from each of several rows, so split the axes, "
    "permute them, and only then join.",
)
BY_COLUMNS = (
    "patches in column order",
    "Patches come in reading order: along the first row of patches from left to right, "
    "then the next row. The row of patches comes before the column of patches.",
)
PIXELS_TURNED = (
    "rows and columns of pixels exchanged",
    "Inside a patch, the row of pixels comes before the column of pixels.",
)
SIDES = (
    "height and width exchanged",
    "The height, H, is the last but one axis and belongs to the rows, the width, W, is "
    "the last and belongs to the columns. On square images the difference cannot be "
    "seen.",
)
STRIDED = (
    "strided slices in place of patches",
    "These are pixels taken at equal distances all over the image, not pixels that lie "
    "together. Split H into (H/P, P), in this order: first which patch, then where in "
    "the patch.",
)
UPRIGHT = (
    "patches in columns",
    "One patch, one row: (B, N, P·P·C). The encoder reads along the second axis.",
)
NOT_FLATTENED = (
    "not flattened",
    "Join the axes of the grid, and the three axes inside a patch: (B, N, P·P·C).",
)

# --- cutting: what goes wrong ---------------------------------------------------------


def _six_axes(images: torch.Tensor, p: int, order: str = "brcijk") -> torch.Tensor:
    """Split images into six named axes and put them in an order.

    b: image; r, c: row and column of patches; i, j: of pixels; k: channel
    """
    b, k, h, w = images.shape
    x = images.reshape(b, k, h // p, p, w // p, p)
    return x.permute(*("bkricj".index(axis) for axis in order))


def _rows(x: torch.Tensor, images: torch.Tensor, p: int) -> torch.Tensor:
    b, k, h, w = images.shape
    return x.reshape(b, (h // p) * (w // p), p * p * k)


def _cut_in(order: str, images: torch.Tensor, p: int) -> torch.Tensor:
    return _rows(_six_axes(images, p, order), images, p)


for mistake, order in (
    (CHANNELS_FIRST, "brckij"),
    (
        ("the channel between row and column of a patch", CHANNELS_FIRST[1]),
        "brcikj",
    ),
    (BY_COLUMNS, "bcrijk"),
    (BY_COLUMNS, "bcrkij"),
    (PIXELS_TURNED, "brcjik"),
):
    cutting.mistake(*mistake)(functools.partial(_cut_in, order))
cutting.mistake(
    "whole channels one after the other",
    "Cut by unfold, the axes are channels, rows and columns of patches, and then the "
    "pixels of each: move the channels behind the pixels before you join. A row then "
    "holds all channels of a pixel side by side.",
    when=lambda images, p: images.shape[1] > 1,
)(lambda images, p: _cut_in("bkrcij", images, p))
cutting.mistake(*NOT_PERMUTED)(lambda images, p: _rows(images, images, p))
cutting.mistake(*NOT_PERMUTED)(
    lambda images, p: _rows(images.permute(0, 2, 3, 1), images, p)
)
cutting.mistake(*SIDES)(lambda images, p: _cut_in("brcijk", images.transpose(2, 3), p))


@cutting.mistake(*SIDES)
def _(images, p):
    b, k, h, w = images.shape
    return _cut_in("brcijk", images.reshape(b, k, w, h), p)


@cutting.mistake(*STRIDED)
def _(images, p):
    b, k, h, w = images.shape
    x = images.reshape(b, k, p, h // p, p, w // p)  # b k i r j c
    return _rows(x.permute(0, 3, 5, 2, 4, 1), images, p)


@cutting.mistake(*STRIDED)
def _(images, p):
    b, k, h, w = images.shape
    x = images.reshape(b, k, p, h // p, p, w // p)
    return _rows(x.permute(0, 3, 5, 1, 2, 4), images, p)


@cutting.mistake(*STRIDED)
def _(images, p):
    slices = [images[..., i::p, j::p] for i in range(p) for j in range(p)]
    return torch.stack([each.permute(0, 2, 3, 1).flatten(1) for each in slices], 1)


cutting.mistake(*UPRIGHT)(lambda images, p: F.unfold(images, p, stride=p))
cutting.mistake(*UPRIGHT)(lambda images, p: cut(images, p).mT)
cutting.mistake(*NOT_FLATTENED)(lambda images, p: _six_axes(images, p))
cutting.mistake(*NOT_FLATTENED)(
    lambda images, p: cut(images, p).unflatten(2, (p, p, -1))
)
cutting.mistake(*NOT_FLATTENED)(lambda images, p: _six_axes(images, p).flatten(3))


# --- putting together: what goes wrong ------------------------------------------------


def _image(x: torch.Tensor, height: int, width: int) -> torch.Tensor:
    return x.reshape(len(x), -1, height, width)


def _joined_in(order: str, patches, p, height, width):
    """Read the patches' axes in an order, and bring them into an image's."""
    sizes = {"r": height // p, "c": width // p, "i": p, "j": p, "k": -1}
    x = patches.reshape(len(patches), *(sizes[axis] for axis in order))
    x = x.permute(0, *(1 + order.index(axis) for axis in "kricj"))
    return _image(x, height, width)


def _permuted(axes: tuple[int, ...], patches, p, height, width):
    x = patches.reshape(len(patches), height // p, width // p, p, p, -1)
    return _image(x.permute(axes), height, width)


joining.mistake(*NOT_PERMUTED)(
    lambda patches, p, height, width: _image(patches, height, width)
)
joining.mistake(*NOT_PERMUTED)(
    lambda patches, p, height, width: patches.reshape(
        len(patches), height, width, -1
    ).permute(0, 3, 1, 2)
)
for mistake, order in (
    (CHANNELS_FIRST, "rckij"),
    (BY_COLUMNS, "crijk"),
    (PIXELS_TURNED, "rcjik"),
):
    joining.mistake(*mistake)(functools.partial(_joined_in, order))
for mistake, axes in (
    (NOT_PERMUTED, (0, 5, 1, 2, 3, 4)),
    (STRIDED, (0, 5, 3, 1, 4, 2)),
):
    joining.mistake(*mistake)(functools.partial(_permuted, axes))
joining.mistake(*SIDES)(
    lambda patches, p, height, width: put_together(patches, p, width, height)
)
joining.mistake(*SIDES)(
    lambda patches, p, height, width: _image(
        put_together(patches, p, width, height), height, width
    )
)
joining.mistake(*SIDES)(
    lambda patches, p, height, width: put_together(patches, p, width, height).mT
)
joining.mistake(
    "channels last in the image",
    "Images are (B, C, H, W): the channels come before the pixels.",
)(
    lambda patches, p, height, width: put_together(patches, p, height, width).permute(
        0, 2, 3, 1
    )
)


# --- the checks -----------------------------------------------------------------------


@chapter.check(section="vision-patches")
def patchify(student: StudentFunction, seed: int = 0) -> None:
    """By hand, PyTorch's unfold, grey and colour, refusals, the gradient."""
    hand = count_up(1, 2, 2, 4)
    grey = torch.tensor([[[0.0, 1, 4, 5], [2, 3, 6, 7]]])
    both = torch.tensor(
        [[[0.0, 10, 1, 11, 4, 14, 5, 15], [2, 12, 3, 13, 6, 16, 7, 17]]]
    )
    generator = seeded(seed)
    cutting.judge_all(
        student,
        (
            Case(
                "the example by hand, one channel", (hand[:, :1].contiguous(), 2), grey
            ),
            Case("the example by hand, two channels", (hand, 2), both),
        ),
    )
    for channels in (3, 1, 4):
        images, p, _ = draw_images(generator, channels)
        cutting.judge(student, _asked(images, p))
    on = f"images {tuple(hand.shape)}, patch size 1: every pixel is a patch"
    cutting.judge(student, Case(on, (hand, 1)))
    square = normal(generator, 3, 2, p, p)
    on = f"images {tuple(square.shape)}, patch size {p}: the image is one patch"
    cutting.judge(student, Case(on, (square, p)))
    expect_no_remainder(lambda image, p: student(image, p))
    images, p, _ = draw_images(generator)
    cotangent = normal(generator, *cut(images, p).shape)
    cutting.judge_gradient(student, _asked(images, p), cotangent)


def _asked(images: torch.Tensor, p: int) -> Case:
    return Case(f"images {tuple(images.shape)}, patch size {p}", (images, p))


def expect_no_remainder(call: Callable[[torch.Tensor, int], Data]) -> None:
    """Expect a ValueError where rows or columns of pixels would be left over."""
    why = (
        "Rows or columns would be left over. Count with patch_count, which raises the "
        "ValueError, before anything is cut."
    )
    for height, width in ((7, 6), (6, 7), (8, 7)):
        expect.raises(
            "ValueError",
            lambda size=(height, width): call(torch.zeros(1, 3, *size), 3),
            on=f"an image of {height} x {width} pixels, patch size 3",
            why=why,
            mistake=REMAINDER,
        )


@chapter.check(section="vision-patches")
def unpatchify(student: StudentFunction, seed: int = 0) -> None:
    """By hand, PyTorch's fold, there and back again, refusals, the gradient."""
    rows = torch.tensor([[[0.0, 1, 4, 5], [2, 3, 6, 7]]])
    wide = torch.tensor([[[[0.0, 1, 2, 3], [4, 5, 6, 7]]]])
    high = torch.tensor([[[[0.0, 1], [4, 5], [2, 3], [6, 7]]]])
    for image in (wide, high):
        h, w = image.shape[2:]
        on = f"the example by hand, {h} x {w} pixels"
        joining.judge(student, Case(on, (rows, 2, h, w), image))
    generator = seeded(seed)
    for channels in (3, 1, 4):
        images, p, _ = draw_images(generator, channels)
        h, w = images.shape[2:]
        rows = cut(images, p)
        on = f"patches {tuple(rows.shape)} of size {p}, {h} x {w} pixels"
        joining.judge(student, Case(on, (rows, p, h, w), images))
    why = (
        "These patches do not make such an image. Compare N with patch_count; a "
        "reshape with -1 would silently make up other channels."
    )
    for n, height, width in ((6, 2, 6), (6, 8, 6), (4, 4, 5)):
        expect.raises(
            "ValueError",
            lambda n=n, size=(height, width): student(torch.zeros(2, n, 12), 2, *size),
            on=f"{n} patches of size 2, {height} x {width} pixels",
            why=why,
            mistake="no ValueError for another number of patches",
        )
    why = (
        "The area fits these patches, the sides do not: a row or column of pixels "
        "would be left over. patch_count raises the ValueError for this, too."
    )
    for n, height, width in ((6, 3, 8), (6, 8, 3)):
        expect.raises(
            "ValueError",
            lambda n=n, size=(height, width): student(torch.zeros(2, n, 12), 2, *size),
            on=f"{n} patches of size 2, {height} x {width} pixels",
            why=why,
            mistake=REMAINDER,
        )
    case = Case(on, (normal(generator, *rows.shape), p, h, w))
    joining.judge_gradient(student, case, normal(generator, *images.shape))
