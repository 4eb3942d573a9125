"""The last exercise, graded by result: a model for changed digits.

It is measured on the held-out fifth of the digits, changed a little by numbers whose
seed stands in the hidden tests. That protects from a model that knows only the digits
as they are, from answers looked up by their pixels, and from a choice among many models
by the very images that count. It does not protect from training on the held-out digits:
they come with the course, everybody can change them in the same ways, and no score
will tell. Against that there is only the student's word.
"""

import functools
from collections.abc import Callable

import torch

from autograder.chapters import results
from autograder.chapters.results import Demand, Submission
from autograder.chapters.vision.chapter import chapter
from autograder.exercise.inputs import seeded
from autograder.expect import refuse_if
from autograder.interface import StudentFunction
from workbench.data.augmentation import Augmentation
from workbench.data.images import ImageData, load_images

DEMAND = Demand("vit", budget=200_000, shipped="digits")
COPIES = 5  # of each held-out digit, each changed in its own way
CHANGES = Augmentation(rotate=8, scale=0.08, shift=0.5)
CLEARLY = 3.0  # percent points by which no right model is better on wrong input
LOST = 5.0  # percent points that no model trained with changes loses to them


@functools.cache
def _digits() -> ImageData:
    return load_images("digits", validation=0.1)


def _changed(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw the digits that count: (N, 1, 8, 8) from 0 to 1, and labels (N,)."""
    images, labels = (each.repeat_interleave(COPIES, 0) for each in _digits().test)
    mean = torch.tensor(_digits().mean)
    numbers = CHANGES.draw(len(images), seeded(seed))
    return CHANGES.apply(images, numbers, mean), labels


def _plain() -> tuple[torch.Tensor, torch.Tensor]:
    """Return the held-out digits as they are."""
    images, labels = _digits().test
    return images / 255, labels


def _normalised(images: torch.Tensor) -> torch.Tensor:
    mean, std = (torch.tensor(each) for each in (_digits().mean, _digits().std))
    return (images - mean[:, None, None]) / std[:, None, None]


def _right(
    model: torch.nn.Module,
    part: tuple[torch.Tensor, torch.Tensor],
    prepare: Callable[[torch.Tensor], torch.Tensor] = _normalised,
) -> float:
    """Return the share of images that a model gets right, in percent."""
    images, labels = part
    with torch.inference_mode():
        predictions = model(prepare(images)).argmax(dim=-1)
    return 100 * (predictions == labels).double().mean().item()


@chapter.check(section="trained-vision-yourself")
def changed_digits(student: StudentFunction, least: float, class_seed: int = 0) -> None:
    """The held-out digits, changed a little, which a model has to get right."""
    model = results.submitted(student, DEMAND)
    _expect_digits(model)
    part = _changed(class_seed)
    found = results.measured(model, class_seed, lambda: _right(model.model, part))
    on = f"{len(part[1])} changed digits, seed {'hidden' if class_seed else 0}"
    if found < least:
        _refuse_known(model, part, found, on)
    results.reach(
        found,
        least,
        what="accuracy",
        on=f"{on}; {model.on}",
        why="Train longer, and with images that are changed; look at the accuracy in "
        "curves.png first. More epochs help more than a larger model.",
    )


def _expect_digits(model: Submission) -> None:
    """Expect a model for 10 classes of grey images of 8 × 8 pixels."""
    config = model.config
    got = (config.channels, *config.sides, config.classes)
    refuse_if(
        got != (1, 8, 8, 10),
        "a model for other images",
        "The digits are grey, 8 × 8 pixels, of 10 classes: train with --data digits.",
        on=model.on,
        got="channels, height, width and classes " + ", ".join(map(str, got)),
        expected="1, 8, 8, 10",
    )


def _certain(share: float, found: float) -> bool:
    """Whether a model is right on other input, and clearly less so on what it got."""
    return share > max(80.0, found + CLEARLY)


def _refuse_known(model: Submission, part: tuple, found: float, on: str) -> None:
    """Name the mistake behind a poor model, where it is certain."""
    say = {"on": f"{on}; {model.on}", "got": f"{found:.1f} % right"}
    for name, prepare, why in (
        (
            "pixels not normalised",
            lambda images: images,
            "{:.0f} % are right when the pixels stay from 0 to 1. It was trained so; "
            "here it gets them normalised, by data.mean and data.std of the digits.",
        ),
        (
            "pixels not normalised",
            lambda images: 255 * images,
            "{:.0f} % are right when the pixels go from 0 to 255. It was trained so; "
            "here it gets them normalised, by data.mean and data.std of the digits.",
        ),
        (
            "rows and columns of the images exchanged",
            lambda images: _normalised(images).mT,
            "{:.0f} % are right when the images are transposed. Images are (B, C, H, "
            "W): rows stand before columns.",
        ),
        (
            "light and dark exchanged",
            lambda images: _normalised(1 - images),
            "{:.0f} % are right on the negatives. In the digits ink is 1 and paper 0.",
        ),
    ):
        share = _right(model.model, part, prepare)
        refuse_if(_certain(share, found), name, why.format(share), **say)
    for words, other in results.alike(model):
        share = _right(other, part)
        refuse_if(
            _certain(share, found),
            "config.json was changed",
            f"If {words}, {share:.0f} % are right with the same weights. Hand in the "
            "config.json that was written with them.",
            **say,
        )
    plain = _right(model.model, _plain())
    refuse_if(
        plain > found + LOST,
        "good on the digits as they are, poor on changed ones",
        f"It gets {plain:.1f} % of the held-out digits right as they are. Turned and "
        "shifted a little, nothing about them is familiar to it. Train with images "
        "that are changed, as python -m workbench train vit does.",
        **say,
    )
