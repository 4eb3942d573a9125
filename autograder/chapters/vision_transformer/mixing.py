"""Two images in one: mixup, and CutMix."""

from collections.abc import Callable

import torch
import torch.nn.functional as F

from autograder.chapters.vision_transformer.chapter import chapter
from autograder.chapters.vision_transformer.images import count_up
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import (
    Case,
    Function,
    Specification,
    expect_gradients,
    expect_several,
    judge_parts,
)
from autograder.interface import StudentFunction

Box = tuple[int, int, int, int]
Pair = tuple[torch.Tensor, torch.Tensor]

UNMIXED_LABELS = (
    "labels not mixed",
    "The image holds two things, and its target has to say so: mix both, and keep both "
    "labels in the target.",
)
UNMIXED_IMAGES = (
    "images not mixed",
    "Images and targets are both mixed, with the same partners.",
)
WRONG_SHARE = "labels mixed by the wrong share"
PARTNERS_LABEL = (
    "only the partner's label",
    "The target keeps both labels, each with its share.",
)
OTHER_PARTNER = (
    "another partner",
    "The partner of image i is image permutation[i]: images[permutation].",
)
INVERSE = (
    "partners by the inverse permutation",
    "The partner of image i is image permutation[i]: images[permutation]. "
    "partners[permutation] = images puts each where the inverse permutation has it.",
)
OTHER_LABEL = (
    "labels of another partner",
    "The partners of the targets are those of the images: one permutation.",
)
EXCHANGED = (
    "images and targets exchanged",
    "Return the images first, then the targets.",
)
OTHERS: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    lambda permutation: permutation.argsort(),
    lambda permutation: torch.arange(len(permutation)).flip(0),
    lambda permutation: torch.arange(len(permutation)).roll(1),
    lambda permutation: torch.arange(len(permutation)).roll(-1),
)


def mix(images, targets, share, permutation) -> Pair:
    """Mix by PyTorch's lerp."""
    return tuple(torch.lerp(x[permutation], x, share) for x in (images, targets))


def _inside(images: torch.Tensor, box: Box) -> torch.Tensor:
    """Mark the pixels (H, W) of a box."""
    top, left, height, width = box
    row = torch.arange(images.shape[2]).unsqueeze(1)
    column = torch.arange(images.shape[3])
    inside = (row >= top) & (row < top + height)
    return inside & (column >= left) & (column < left + width)


def _pasted(images: torch.Tensor, box: Box, permutation: torch.Tensor) -> torch.Tensor:
    """Choose for each pixel whose it is."""
    return torch.where(_inside(images, box), images[permutation], images)


def _by_area(targets, area: float, permutation) -> torch.Tensor:
    return torch.lerp(targets, targets[permutation], area)


def _area(images: torch.Tensor, box: Box) -> float:
    return box[2] * box[3] / (images.shape[2] * images.shape[3])


def paste(images, targets, box, permutation) -> Pair:
    """Paste the box, and mix the labels by its area."""
    labels = _by_area(targets, _area(images, box), permutation)
    return _pasted(images, box, permutation), labels


mixing = Function("mixup", "mixup", mix)
cutting = Function("cutmix", "cutmix", paste)


# --- CutMix, the share: what goes wrong -----------------------------------------------


@cutting.mistake(
    "the area divided without a remainder",
    "// leaves out what is behind the point: of a box that is smaller than the image "
    "nothing remains, so the image keeps the whole label. Divide by /.",
)
def _(images, targets, box, permutation):
    area = float(int(_area(images, box)))
    return _pasted(images, box, permutation), _by_area(targets, area, permutation)


# --- both: what goes wrong ------------------------------------------------------------


def _hardened(new: Pair, old: Pair, permutation: torch.Tensor) -> Pair:
    largest = F.one_hot(new[1].argmax(-1), new[1].shape[1])
    return new[0], largest.to(new[1])


for spec, right in ((mixing, mix), (cutting, paste)):
    for mistake, change in (
        (UNMIXED_LABELS, lambda new, old, permutation: (new[0], old[1])),
        (UNMIXED_LABELS, _hardened),
        (UNMIXED_LABELS, lambda new, old, partner: (new[0], new[1].round())),
        (UNMIXED_IMAGES, lambda new, old, permutation: (old[0], new[1])),
        (PARTNERS_LABEL, lambda new, old, partner: (new[0], old[1][partner])),
        (EXCHANGED, lambda new, old, permutation: new[::-1]),
    ):

        @spec.mistake(*mistake)
        def _(images, targets, how, permutation, right=right, change=change):
            new = right(images, targets, how, permutation)
            return change(new, (images, targets), permutation)

    for other in OTHERS:

        @spec.mistake(*(INVERSE if other is OTHERS[0] else OTHER_PARTNER))
        def _(images, targets, how, permutation, right=right, other=other):
            return right(images, targets, how, other(permutation))

        @spec.mistake(*OTHER_LABEL)
        def _(images, targets, how, permutation, right=right, other=other):
            mixed, _ = right(images, targets, how, permutation)
            return mixed, right(images, targets, how, other(permutation))[1]

        @spec.mistake(UNMIXED_LABELS[0], f"{UNMIXED_LABELS[1]} {OTHER_LABEL[1]}")
        def _(images, targets, how, permutation, right=right, other=other):
            mixed, _ = right(images, targets, how, permutation)
            return mixed, right(images, targets, how, other(permutation))[1].round()


# --- mixup: what goes wrong -----------------------------------------------------------

IN_BOTH = "share belongs to the image itself, 1 − share to its partner, in both sums."
NOT_ONE = "weights that do not sum to 1", "The partner has the weight 1 − share."
for mistake, weights in (  # of an image and its partner, of a target and its partner
    (
        ("the share of image and partner exchanged", IN_BOTH),
        lambda own, other: (other, own, other, own),
    ),
    (
        ("images mixed by the wrong share", IN_BOTH),
        lambda own, other: (other, own, own, other),
    ),
    ((WRONG_SHARE, IN_BOTH), lambda own, other: (own, other, other, own)),
    ((WRONG_SHARE, IN_BOTH), lambda own, other: (own, other, 0.5, 0.5)),
    (NOT_ONE, lambda own, other: (own, 1.0, own, other)),
    (NOT_ONE, lambda own, other: (own, 1.0, own, 1.0)),
):

    @mixing.mistake(*mistake)
    def _(images, targets, share, permutation, weights=weights):
        a, b, c, d = weights(share, 1 - share)
        labels = c * targets + d * targets[permutation]
        return a * images + b * images[permutation], labels


# --- CutMix: what goes wrong ----------------------------------------------------------


@cutting.mistake(
    WRONG_SHARE, "The partner's label has the share of the box, the own one the rest."
)
def _(images, targets, box, permutation):
    labels = _by_area(targets, 1 - _area(images, box), permutation)
    return _pasted(images, box, permutation), labels


def _other_areas(images: torch.Tensor, box: Box) -> tuple[float, ...]:
    """Give what the share of a box may be mistaken for."""
    top, left, height, width = box
    h, w = images.shape[2:]
    return (
        (height + width) / (h + w),
        height / h,
        width / w,
        max(0, (height - top) * (width - left)) / (h * w),
        (height - 1) * (width - 1) / (h * w),
        (height + 1) * (width + 1) / (h * w),
        (top + height) * (left + width) / (h * w),
        height * width / (h * h),
        height * width / (w * w),
        height * width / images[0].numel(),
        0.5,
    )


for number, _ in enumerate(_other_areas(torch.zeros(1, 1, 1, 1), (0, 0, 1, 1))):

    @cutting.mistake(
        "the area is wrong",
        "The share is an area over an area: height · width of the box over H · W of "
        "the image, in pixels.",
    )
    def _(images, targets, box, permutation, number=number):
        area = _other_areas(images, box)[number]
        return _pasted(images, box, permutation), _by_area(targets, area, permutation)


def _alone(kept: torch.Tensor) -> torch.Tensor:
    """Share of each image's numbers that are marked, (B, 1)."""
    return kept.flatten(1).double().mean(1, keepdim=True)


for count in (
    _alone,
    lambda kept: _alone(kept.all(1)),
    lambda kept: _alone(kept[:, 0]),
    lambda kept: kept.double().mean(),
):

    @cutting.mistake(
        "equal pixels counted as kept",
        "A pixel that was pasted may be as it was before, where both images are black, "
        "say. The share is that of the area: it depends on the box alone, and is the "
        "same for all images of the batch.",
    )
    def _(images, targets, box, permutation, count=count):
        mixed = _pasted(images, box, permutation)
        share = count(mixed == images).to(targets.dtype)
        return mixed, share * targets + (1 - share) * targets[permutation]


SIDES = (
    "rows and columns of the box exchanged",
    "The box is (top, left, height, width): rows come first.",
)
for mistake, misread in (
    (
        (
            "the box read as two corners",
            "The last two numbers of the box are its height and its width, not its "
            "lower right corner.",
        ),
        lambda top, left, height, width: (top, left, height - top, width - left),
    ),
    (SIDES, lambda top, left, height, width: (left, top, width, height)),
    (SIDES, lambda top, left, height, width: (left, top, height, width)),
    (SIDES, lambda top, left, height, width: (top, left, width, height)),
    (
        (
            "the box is one too large",
            "Rows from top to top + height, without the last; slices leave it out.",
        ),
        lambda top, left, height, width: (top, left, height + 1, width + 1),
    ),
    (
        ("the box in the corner", "The box begins at row top and column left."),
        lambda top, left, height, width: (0, 0, height, width),
    ),
):
    for measured in (False, True):

        @cutting.mistake(*mistake)
        def _(images, targets, box, permutation, misread=misread, measured=measured):
            other = misread(*box)
            covered = _inside(images, other).float().mean().item()
            area = covered if measured else _area(images, box)
            labels = _by_area(targets, area, permutation)
            return _pasted(images, other, permutation), labels


for turned in (False, True):

    @cutting.mistake(
        "inside and outside exchanged",
        "Inside the box is the partner, around it the image itself.",
    )
    def _(images, targets, box, permutation, turned=turned):
        area = _area(images, box)
        labels = _by_area(targets, 1 - area if turned else area, permutation)
        inside = _inside(images, box)
        return torch.where(inside, images, images[permutation]), labels


def _with_labels(paint: Callable) -> Callable:
    """Put right labels beside images that are painted in another way."""

    def answer(images, targets, box, permutation):
        labels = paste(images, targets, box, permutation)[1]
        return paint(images, box, permutation), labels

    return answer


@cutting.mistake(
    "only the first channel is pasted",
    "All channels are pasted: mixed[..., rows, columns].",
    when=lambda images, *_: images.shape[1] > 1,
)
@_with_labels
def _(images, box, permutation):
    first = _pasted(images, box, permutation)[:, :1]
    return torch.cat((first, images[:, 1:]), 1)


@cutting.mistake(
    "the partner's upper left corner",
    "The box is taken from the same place in the partner, with the same slices.",
)
@_with_labels
def _(images, box, permutation):
    top, left, height, width = box
    mixed = images.clone()
    rows, columns = slice(top, top + height), slice(left, left + width)
    mixed[..., rows, columns] = images[permutation][..., :height, :width]
    return mixed


@cutting.mistake(
    "the box is empty",
    "The box is filled with the partner's pixels from the same place.",
)
@_with_labels
def _(images, box, permutation):
    return images * ~_inside(images, box)


@cutting.mistake(
    "partners that are mixed already",
    "Here some partners already had a box pasted in. Take all partners from the images "
    "as they were given.",
)
@_with_labels
def _(images, box, permutation):
    mixed = images.clone()
    for i, partner in enumerate(permutation.tolist()):
        mixed[i] = torch.where(_inside(images, box), mixed[partner], mixed[i])
    return mixed


# --- the checks -----------------------------------------------------------------------


def _batch(generator: torch.Generator) -> tuple:
    """Draw images, one-hot targets, and a permutation that is not its own inverse."""
    b, c, h, w, classes = draw_sizes(generator, 5)
    b = b + 3
    images = normal(generator, b, 1 + c % 3, h + 4, w + 5)
    labels = torch.randperm(b, generator=generator) % (classes + 1)
    targets = F.one_hot(labels, classes + 1).float()
    order = torch.randperm(b, generator=generator)
    permutation = torch.empty(b, dtype=torch.long)
    permutation[order] = order.roll(1)  # one cycle through all of them
    return images, targets, permutation


def _expect(spec: Specification, student: StudentFunction, case: Case) -> None:
    got = expect_several(student(*case.inputs), ("images", "targets"), case.on)
    judge_parts(spec, got, case, ("the mixed images", "the mixed targets"))


def _expect_gradient(student: StudentFunction, case: Case) -> None:
    found = student.gradients(*case.inputs, output=0).inputs[0]
    expect_gradients({"images": found}, case.on)


@chapter.check(section="vision-mixing")
def mixup(student: StudentFunction, seed: int = 0) -> None:
    """By hand, PyTorch's lerp, shares of 0 and 1, soft targets, the gradient."""
    images = torch.tensor([10.0, 20.0]).view(2, 1, 1, 1)
    targets, swap = torch.eye(2), torch.tensor([1, 0])
    right = (
        torch.tensor([13.0, 17.0]).view(2, 1, 1, 1),
        torch.tensor([[0.7, 0.3], [0.3, 0.7]]),
    )
    asked = images, targets, 0.7, swap
    _expect(mixing, student, Case("the example by hand", asked, right))
    generator = seeded(seed)
    for share in (0.8, 0.35, 1.0, 0.0):
        images, targets, permutation = _batch(generator)
        on = f"images {tuple(images.shape)}, share {share}"
        on += f", permutation {permutation.tolist()}"
        case = Case(on, (images, targets, share, permutation))
        _expect(mixing, student, case)
    soft = normal(generator, *targets.shape).softmax(-1)
    on = f"targets {tuple(soft.shape)} that are not one-hot, share 0.6"
    case = Case(on, (images, soft, 0.6, permutation))
    _expect(mixing, student, case)
    _expect_gradient(student, case)


@chapter.check(section="vision-mixing")
def cutmix(student: StudentFunction, seed: int = 0) -> None:
    """By hand, the area, empty and full boxes, black backgrounds, the gradient."""
    images = count_up(2, 1, 4, 5)
    images[1] += 100
    targets, swap = torch.eye(2), torch.tensor([1, 0])
    pasted = images.clone()
    pasted[0, 0, 1:3, 2:5] += 100
    pasted[1, 0, 1:3, 2:5] -= 100
    right = pasted, torch.tensor([[0.7, 0.3], [0.3, 0.7]])
    asked = images, targets, (1, 2, 2, 3), swap
    _expect(cutting, student, Case("the example by hand", asked, right))
    generator = seeded(seed)
    for number in range(6):
        images, targets, permutation = _batch(generator)
        if number == 5:
            images = images.clamp(min=0)  # half of them black
        h, w = images.shape[2:]
        box = (
            (1, 2, h - 3, w - 4),
            (2, 1, 2, 4),
            (0, 0, h, w),
            (2, 3, 0, 2),
            (h - 2, w - 3, 2, 3),
            (1, 0, h - 1, w - 1),  # more than half of the image
        )[number]
        on = f"images {tuple(images.shape)}, box {box}"
        on += f", permutation {permutation.tolist()}"
        case = Case(on, (images, targets, box, permutation))
        _expect(cutting, student, case)
    _expect_gradient(student, case)
