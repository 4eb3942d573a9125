"""Two images in one: mixup, and CutMix."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F

from autograder.chapters.vision_transformer.chapter import chapter
from autograder.chapters.vision_transformer.images import count_up
from autograder.exercise.copies import expect_new
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


def _area(images: torch.Tensor, box: Box, *_: Box) -> float:
    return box[2] * box[3] / (images.shape[2] * images.shape[3])


def paste(images, targets, box, permutation) -> Pair:
    """Choose for each pixel whose it is, and mix the labels by the box's area."""
    pasted = torch.where(_inside(images, box), images[permutation], images)
    area = _area(images, box)
    return pasted, torch.lerp(targets, targets[permutation], area)


mixing = Function("mixup", "mixup", mix)
cutting = Function("cutmix", "cutmix", paste)


# --- what goes wrong ------------------------------------------------------------------


def right_shares(own: float | torch.Tensor) -> tuple:
    """Give the weight of the image itself, and the rest to its partner."""
    return own, 1 - own


def _exchanged(own: float | torch.Tensor) -> tuple:
    return 1 - own, own


def weighted(x: torch.Tensor, partner: torch.Tensor, own, other) -> torch.Tensor:
    """Add up all with their partners."""
    return own * x + other * x[partner]


def _one_by_one(x: torch.Tensor, partner: torch.Tensor, own, other) -> torch.Tensor:
    """Mix one behind the other, each with what has become of its partner."""
    mixed = x.clone()
    for i, j in enumerate(partner.tolist()):
        mixed[i] = own * mixed[i] + other * mixed[j]
    return mixed


def mix_by(
    images: torch.Tensor,
    targets: torch.Tensor,
    share: float,
    permutation: torch.Tensor,
    *,
    taken: Callable = lambda share: share,
    partners: Callable = lambda permutation: permutation,
    label_partners: Callable | None = None,
    of_images: Callable = right_shares,
    of_labels: Callable = right_shares,
    add: Callable = weighted,
    add_labels: Callable = weighted,
    finish: Callable = lambda labels: labels,
    form: Callable = lambda images, labels: (images, labels),
) -> Pair:
    """Mix by rules that can be varied.

    Args:
        images: (B, C, H, W).
        targets: (B, classes).
        share: of the image itself.
        permutation: (B,).
        taken: makes the share that is used.
        partners: are made of the permutation.
        label_partners: if those of the targets are others.
        of_images: the weights of an image and its partner.
        of_labels: the weights of a target and its partner's.
        add: mixes images.
        add_labels: mixes targets.
        finish: makes the result of the mixed targets.
        form: makes the result of images and targets.
    """
    share, partner = taken(share), partners(permutation)
    labels_of = (label_partners or partners)(permutation)
    mixed = add(images, partner, *of_images(share))
    labels = add_labels(targets, labels_of, *of_labels(share))
    return form(mixed, finish(labels))


def cut_by(
    images: torch.Tensor,
    targets: torch.Tensor,
    box: Box,
    permutation: torch.Tensor,
    *,
    read: Callable = lambda top, left, height, width: (top, left, height, width),
    area: Callable = _area,
    counted: Callable | None = None,
    around: bool = False,
    paint: Callable = lambda images, inside, partner, box: torch.where(
        inside, images[partner], images
    ),
    partners: Callable = lambda permutation: permutation,
    label_partners: Callable | None = None,
    of_labels: Callable = right_shares,
    finish: Callable = lambda labels: labels,
    form: Callable = lambda images, labels: (images, labels),
) -> Pair:
    """Paste a box by rules that can be varied; those of ``mix_by``, and others.

    Args:
        images: (B, C, H, W).
        targets: (B, classes).
        box: its top, left, height and width.
        permutation: (B,).
        read: the box that is pasted, made of these four.
        area: the partner's share, of the images, the box, and what it is read as.
        counted: the image's own share, if it is counted, of both batches.
        around: whether the box is what stays.
        paint: makes the new batch.
        partners: are made of the permutation.
        label_partners: if those of the targets are others.
        of_labels: the weights of a target and its partner's.
        finish: makes the result of the mixed targets.
        form: makes the result of images and targets.
    """
    other, partner = read(*box), partners(permutation)
    inside = _inside(images, other) ^ around
    mixed = paint(images, inside, partner, other)
    own = counted(mixed == images) if counted else 1 - area(images, box, other)
    labels_of = (label_partners or partners)(permutation)
    labels = weighted(targets, labels_of, *of_labels(own)).to(targets.dtype)
    return form(mixed, finish(labels))


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
IN_BOTH = "share belongs to the image itself, 1 − share to its partner, in both sums."
NOT_ONE = "weights that do not sum to 1", "The partner has the weight 1 − share."
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
MIXED_ALREADY = (
    "partners that are mixed already",
    "Here some partners already had a box pasted in. Take all partners from the images "
    "as they were given.",
)
OTHERS: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
    lambda permutation: permutation.argsort(),
    lambda permutation: torch.arange(len(permutation)).flip(0),
    lambda permutation: torch.arange(len(permutation)).roll(1),
    lambda permutation: torch.arange(len(permutation)).roll(-1),
)
cutting.mistake(  # first: for full boxes and others, two ways of not mixing give this
    "the area divided without a remainder",
    "// leaves out what is behind the point: of a box that is smaller than the image "
    "nothing remains, so the image keeps the whole label. Divide by /.",
)(partial(cut_by, area=lambda *given: float(int(_area(*given)))))
for spec, by in ((mixing, mix_by), (cutting, cut_by)):
    spec.slips(
        by,
        (*UNMIXED_LABELS, {"of_labels": lambda own: (1.0, 0.0)}),
        (
            *UNMIXED_LABELS,
            {"finish": lambda labels: F.one_hot(labels.argmax(-1), labels.shape[1])},
        ),
        (*UNMIXED_LABELS, {"finish": torch.round}),
        (
            "only the partner's label",
            "The target keeps both labels, each with its share.",
            {"of_labels": lambda own: (0.0, 1.0)},
        ),
        (
            "images and targets exchanged",
            "Return the images first, then the targets.",
            {"form": lambda images, labels: (labels, images)},
        ),
        *(
            (
                *(INVERSE if other is OTHERS[0] else OTHER_PARTNER),
                {"partners": other},
            )
            for other in OTHERS
        ),
        *((*OTHER_LABEL, {"label_partners": other}) for other in OTHERS),
        (
            *OTHER_LABEL,  # right in the targets alone
            {
                "partners": lambda permutation: permutation.argsort(),
                "label_partners": lambda permutation: permutation,
            },
        ),
        (
            WRONG_SHARE,
            IN_BOTH
            if spec is mixing
            else "The partner's label has the share of the box, the own one the rest.",
            {"of_labels": _exchanged},
        ),
        (*NOT_ONE, {"of_labels": lambda own: (own, 1.0)}),
        (*NOT_ONE, {"of_labels": lambda own: (1.0, 1 - own)}),
        (*NOT_ONE, {"of_labels": lambda own: (own, own)}),
    )


# --- mixup: what goes wrong -----------------------------------------------------------

mixing.slips(
    mix_by,
    (WRONG_SHARE, IN_BOTH, {"of_labels": lambda own: (0.5, 0.5)}),
    (*UNMIXED_IMAGES, {"of_images": lambda own: (1.0, 0.0)}),
    (
        "only the partner's image",
        "Both images are added, each with its share.",
        {"of_images": lambda own: (0.0, 1.0)},
    ),
    (
        "the share of image and partner exchanged",
        IN_BOTH,
        {"of_images": _exchanged, "of_labels": _exchanged},
    ),
    ("images mixed by the wrong share", IN_BOTH, {"of_images": _exchanged}),
    (
        "images mixed by the wrong share",
        IN_BOTH,
        {"of_images": lambda own: (0.5, 0.5)},
    ),
    *(
        (*NOT_ONE, {"of_images": weights} | ({"of_labels": weights} if both else {}))
        for both in (False, True)
        for weights in (
            lambda own: (own, 1.0),
            lambda own: (1.0, 1 - own),
            lambda own: (own, own),
        )
    ),
    (
        "the larger of both shares",
        "The share is given: it belongs to the image itself, also if it is the smaller "
        "part.",
        {"taken": lambda share: max(share, 1 - share)},
    ),
    *(
        (
            MIXED_ALREADY[0],
            "Here some partners had been mixed themselves. Take all partners from the "
            "batch as it was given.",
            dict.fromkeys(which, _one_by_one),
        )
        for which in (("add", "add_labels"), ("add",), ("add_labels",))
    ),
)


# --- CutMix: what goes wrong ----------------------------------------------------------


def _covered(images: torch.Tensor, box: Box, other: Box) -> float:
    return _inside(images, other).float().mean().item()


def _as_read(images: torch.Tensor, box: Box, other: Box) -> float:
    return _area(images, other)


for area in (  # of the box, and of height and width of the image
    lambda top, left, height, width, h, w: (height + width) / (h + w),
    lambda top, left, height, width, h, w: height / h,
    lambda top, left, height, width, h, w: width / w,
    lambda top, left, height, width, h, w: (
        max(0, (height - top) * (width - left)) / (h * w)
    ),
    lambda top, left, height, width, h, w: (height - 1) * (width - 1) / (h * w),
    lambda top, left, height, width, h, w: (height + 1) * (width + 1) / (h * w),
    lambda top, left, height, width, h, w: (top + height) * (left + width) / (h * w),
    lambda top, left, height, width, h, w: height * width / (h * h),
    lambda top, left, height, width, h, w: height * width / (w * w),
    lambda top, left, height, width, h, w: (height * width / (h * w)) ** 0.5,
    lambda top, left, height, width, h, w: 0.5,
    lambda top, left, height, width, h, w: round(height * width / (h * w), 1),
    lambda top, left, height, width, h, w: round(height * width / (h * w), 2),
):
    cutting.mistake(
        "the area is wrong",
        "The share is an area over an area: height · width of the box over H · W of "
        "the image, in pixels.",
    )(
        partial(
            cut_by,
            area=lambda images, box, other, area=area: area(*box, *images.shape[2:]),
        )
    )
cutting.mistake(
    "the area is wrong",
    "The share is an area over an area: height · width of the box over H · W of the "
    "image, in pixels. The channels do not count.",
)(
    partial(
        cut_by,
        area=lambda images, box, *_: _area(images, box) / images.shape[1],
    )
)


def _alone(kept: torch.Tensor) -> torch.Tensor:
    """Share of each image's numbers that are marked, (B, 1)."""
    return kept.flatten(1).double().mean(1, keepdim=True)


for counted in (
    _alone,
    lambda kept: _alone(kept.all(1)),
    lambda kept: _alone(kept[:, 0]),
    lambda kept: kept.double().mean(),
):
    cutting.mistake(
        "equal pixels counted as kept",
        "A pixel that was pasted may be as it was before, where both images are black, "
        "say. The share is that of the area: it depends on the box alone, and is the "
        "same for all images of the batch.",
    )(partial(cut_by, counted=counted))
SIDES = (
    "rows and columns of the box exchanged",
    "The box is (top, left, height, width): rows come first.",
)
SQUARE = (
    "the box is a square",
    "The box has a height and a width of its own: its third number belongs to the "
    "rows, its fourth to the columns.",
)
for name, why, read in (
    (
        "the box read as two corners",
        "The last two numbers of the box are its height and its width, not its lower "
        "right corner.",
        lambda top, left, height, width: (top, left, height - top, width - left),
    ),
    (*SIDES, lambda top, left, height, width: (left, top, width, height)),
    (*SIDES, lambda top, left, height, width: (left, top, height, width)),
    (*SIDES, lambda top, left, height, width: (top, left, width, height)),
    (*SQUARE, lambda top, left, height, width: (top, left, height, height)),
    (*SQUARE, lambda top, left, height, width: (top, left, width, width)),
    (
        "the box is one too large",
        "Rows from top to top + height, without the last; slices leave it out.",
        lambda top, left, height, width: (top, left, height + 1, width + 1),
    ),
    (
        "the box is one too small",
        "A slice leaves out its end already: rows from top up to top + height.",
        lambda top, left, height, width: (top, left, height - 1, width - 1),
    ),
    (
        "the box in the corner",
        "The box begins at row top and column left.",
        lambda top, left, height, width: (0, 0, height, width),
    ),
    (
        "the box around its first pixel",
        "top and left are where the box begins, not where its middle is.",
        lambda top, left, height, width: (
            *(top - height // 2, left - width // 2),
            *(height, width),
        ),
    ),
):
    for area in (_area, _covered, _as_read):
        rules = {} if area is _area else {"area": area}
        cutting.mistake(name, why)(partial(cut_by, read=read, **rules))


def _first_channel(images, inside, partner, box):
    first = torch.where(inside, images[partner], images)[:, :1]
    return torch.cat((first, images[:, 1:]), 1)


def _from_the_corner(images, inside, partner, box):
    top, left, height, width = box
    mixed = images.clone()
    rows, columns = slice(top, top + height), slice(left, left + width)
    mixed[..., rows, columns] = images[partner][..., :height, :width]
    return mixed


def _pasted_already(images, inside, partner, box):
    mixed = images.clone()
    for i, j in enumerate(partner.tolist()):
        mixed[i] = torch.where(inside, mixed[j], mixed[i])
    return mixed


cutting.slips(
    cut_by,
    (*UNMIXED_IMAGES, {"paint": lambda images, *_: images.clone()}),
    (
        "inside and outside exchanged",
        "Inside the box is the partner, around it the image itself.",
        {"around": True},
    ),
    (
        "inside and outside exchanged",
        "Inside the box is the partner, around it the image itself, and each label has "
        "its share.",
        {"around": True, "of_labels": _exchanged},
    ),
    (
        "only the first channel is pasted",
        "All channels are pasted: mixed[..., rows, columns].",
        {"paint": _first_channel},
    ),
    (
        "the partner's upper left corner",
        "The box is taken from the same place in the partner, with the same slices.",
        {"paint": _from_the_corner},
    ),
    (
        "the box is empty",
        "The box is filled with the partner's pixels from the same place.",
        {"paint": lambda images, inside, partner, box: images * ~inside},
    ),
    (*MIXED_ALREADY, {"paint": _pasted_already}),
)


# --- the checks -----------------------------------------------------------------------

OWN = (
    "Whoever writes into it changes what was handed in. Make new tensors in every case."
)
OWN_IMAGES = (
    "the caller's own images are returned",
    f"Where nothing is mixed in, the result is the tensor that came in. {OWN}",
)
OWN_TARGETS = "the caller's own targets are returned", OWN_IMAGES[1]


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
        if share == 1.0:
            expect_new(student, case, *OWN_IMAGES, place=0)
            expect_new(student, case, *OWN_TARGETS, place=1)
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
        if 0 in box[2:]:
            expect_new(student, case, *OWN_IMAGES, place=0)
    _expect_gradient(student, case)
