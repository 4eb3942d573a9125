"""Checks of chapter 10, vision.

The oracles are scikit-learn's scaler, confusion matrix and cosines, PyTorch's padding
of one image after the other, bins filled one by one in NumPy, the gradient of what is
pooled, values worked out by hand, and properties. A known mistake is found by computing
what it would give on the same input.

The last exercise is graded by result, on the held-out fifth of the digits, changed a
little by numbers whose seed stands in the hidden tests. That protects from a model that
knows only the digits as they are, from answers looked up by their pixels, and from a
choice among many models by the very images that count. It does not protect from
training on the held-out digits: they come with scikit-learn, everybody can change them
in the same ways, and no score will tell. Against that there is only the student's word.
"""

import functools
import itertools
from collections.abc import Callable

import numpy as np
import sklearn.metrics
import torch
import torch.nn.functional as F
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import StandardScaler

from autograder import expect
from autograder.chapters import results
from autograder.chapters.results import Demand, Submission
from autograder.chapters.vision_mistakes import (
    WHY_LAST_BIN,
    calibration_candidates,
    confusion_candidates,
    head_candidates,
    pair_candidates,
    position_candidates,
    shift_candidates,
    standardise_candidates,
)
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.naming import known_mistakes
from autograder.expect import Chapter, refuse_if
from autograder.forms import several
from autograder.interface import StudentError, StudentFunction
from workbench.augmentation import Augmentation
from workbench.images import ImageData, load_images

chapter = Chapter(10, "10_vision")
progress = chapter.progress


def _uniform(generator: torch.Generator, *shape: int) -> torch.Tensor:
    return torch.rand(shape, generator=generator)


# --- images ---------------------------------------------------------------------------


def _scaled(images: torch.Tensor, train: torch.Tensor) -> torch.Tensor:
    """Let scikit-learn's scaler do it: a pixel is an example, a channel a feature."""
    scaler = StandardScaler().fit(train.movedim(1, -1).flatten(0, 2).double().numpy())
    last = images.movedim(1, -1)
    rows = scaler.transform(last.flatten(0, 2).double().numpy())
    found = torch.from_numpy(rows).view(last.shape).movedim(-1, 1)
    return found.float().contiguous()


@chapter.check(section="trained-vision-data")
def standardise(student: StudentFunction, seed: int = 0) -> None:
    """By hand, scikit-learn's scaler, a channel without contrast."""
    train = torch.tensor([0.0, 0.0, 1.0, 1.0]).view(2, 1, 1, 2)
    images = torch.tensor([0.25, 1.0, 0.5, 0.75]).view(2, 1, 1, 2)
    right = torch.tensor([-0.5, 1.0, 0.0, 0.5]).view(2, 1, 1, 2)
    found = known_mistakes(standardise_candidates(images, train))
    on = "the example by hand, and a second image"
    expect.equal(student(images, train), right, on=on, mistakes=found)
    generator = seeded(seed)
    for channels in (3, 1):
        b, n, h, w = draw_sizes(generator, 4)
        spread = 0.2 + 0.6 * _uniform(generator, channels, 1, 1)
        train = spread * _uniform(generator, n, channels, h, w)
        images = 0.5 + 0.5 * _uniform(generator, b, channels, h, w)
        on = f"images {tuple(images.shape)}, training images {tuple(train.shape)}"
        found = known_mistakes(standardise_candidates(images, train))
        got, right = student(images, train), _scaled(images, train)
        expect.equal(got, right, on=on, mistakes=found, tolerance=1e-4)
    _expect_flat_channels(student, generator)


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
    got, right = student(images, train), _scaled(images, train)
    expect.tensor(got, shape=tuple(right.shape), on=on, finite=False)
    why = (
        "Such a channel has the spread 0, and dividing by it gives infinity. Let a "
        "spread below 10⁻⁶ count as 1."
    )
    name = "a channel without contrast is divided by 0"
    refuse_if(not bool(got.isfinite().all()), name, why, on=on, got=expect.show(got))
    far = got[:, :flat].abs().max().item()
    why = (
        "0.1 is rounded, and so is the mean of many. What is left of the spread is "
        "not 0 but 10⁻⁸, and the quotient is huge. Let a spread below 10⁻⁶ count as 1."
    )
    say = {"got": f"a value of {far:.3g}", "expected": "values between −1 and 1"}
    refuse_if(far > 10, "rounding is taken for contrast", why, on=on, **say)
    found = known_mistakes(standardise_candidates(images, train))
    expect.equal(got, right, on=on, mistakes=found, why=why, tolerance=1e-3)


def _moved(image: torch.Tensor, down: int, right: int) -> torch.Tensor:
    """Move one image (C, H, W): PyTorch's padding, of negative size where it leaves."""
    _, h, w = image.shape
    down, right = max(-h, min(h, down)), max(-w, min(w, right))
    return F.pad(image, (right, -right, down, -down))


@chapter.check(section="trained-vision-augmentation")
def shift_images(student: StudentFunction, seed: int = 0) -> None:
    """By hand, image by image with PyTorch's padding, far shifts, none, colours."""
    hand = torch.arange(1.0, 7.0).view(1, 1, 2, 3)
    right = torch.tensor([[[[0.0, 0, 0], [3, 0, 0]]]])
    how = torch.tensor([1]), torch.tensor([-2])
    found = known_mistakes(shift_candidates(hand, *how))
    on = "the example by hand, down 1, right -2"
    expect.equal(student(hand, *how), right, on=on, mistakes=found)
    generator = seeded(seed)
    for channels, far in ((3, 2), (1, 3), (4, 9), (2, 0)):
        b, h, w = (size + 2 for size in draw_sizes(generator, 3))
        images = normal(generator, b, channels, h, w)
        down, across = (
            torch.randint(-far, far + 1, (b,), generator=generator) for _ in range(2)
        )
        if far > 1:
            down[:2], across[:2] = torch.tensor([0, 2]), torch.tensor([-1, 1])
        pairs = zip(images, down.tolist(), across.tolist(), strict=True)
        right = torch.stack([_moved(*each) for each in pairs])
        on = (
            f"images {tuple(images.shape)}, down {down.tolist()}, "
            f"right {across.tolist()}"
        )
        found = known_mistakes(shift_candidates(images, down, across))
        expect.equal(student(images, down, across), right, on=on, mistakes=found)


# --- how good -------------------------------------------------------------------------


def _exchanged(matrix: torch.Tensor) -> tuple[int, int]:
    """Find the pair by trying all of them; the first of the largest."""
    classes = len(matrix)
    pairs = [(a, b) for a in range(classes) for b in range(a + 1, classes)]
    return max(pairs, key=lambda pair: int(matrix[pair] + matrix[pair[::-1]]))


def _answers(
    generator: torch.Generator, count: int, classes: int, share: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw labels, and predictions of which about this share is right."""
    labels = torch.randint(classes, (count,), generator=generator)
    others = torch.randint(classes, (count,), generator=generator)
    right = _uniform(generator, count) < share
    return torch.where(right, labels, others), labels


@chapter.check(section="trained-vision-mistakes")
def confusion(student: StudentFunction, seed: int = 0) -> None:
    """By hand, scikit-learn's matrix, every pair tried, classes that do not occur."""
    predictions = torch.tensor([0, 1, 1, 2, 2, 1, 2, 2, 2])
    hand = (predictions, torch.tensor([0, 0, 1, 1, 1, 2, 2, 2, 2]), 3)
    _expect_confusion(student, hand, "the example by hand")
    generator = seeded(seed)
    for classes, count, share in ((5, 61, 0.6), (9, 200, 0.8), (4, 37, 0.0)):
        predictions, labels = _answers(generator, count, classes, share)
        on = f"{count} images of {classes} classes"
        _expect_confusion(student, (predictions, labels, classes), on)
    # most mistakes go from the larger class to the smaller one
    labels = torch.tensor([3, 3, 3, 3, 1, 1, 0, 0, 2, 2, 2, 2, 2])
    predictions = torch.tensor([1, 1, 1, 3, 1, 1, 2, 2, 2, 2, 0, 0, 2])
    on = "13 images of 4 classes, 0 and 2 exchanged in both directions"
    _expect_confusion(student, (predictions, labels, 4), on)
    predictions, labels = _answers(generator, 40, 3, 0.5)
    on = "40 images; of 6 classes the last 3 do not occur"
    _expect_confusion(student, (predictions, labels, 6), on)


def _expect_confusion(student: StudentFunction, given: tuple, on: str) -> None:
    predictions, labels, classes = given
    numbers = sklearn.metrics.confusion_matrix(
        labels.numpy(), predictions.numpy(), labels=range(classes)
    )
    right = torch.from_numpy(numbers).long()
    try:
        got = student(predictions, labels, classes)
    except StudentError as error:
        last = int((labels * classes + predictions).max()) + 1
        missing = last < classes**2 and f"size {last}" in error.text
        why = (
            "bincount counts no further than the largest number it meets, and here the "
            "last place of the matrix is empty. Give it the argument minlength."
        )
        name = "classes that do not occur are left out"
        say = {"on": on, "got": f"{error.kind}: {error.text}"}
        refuse_if(missing, name, why, **say)
        raise
    got = several(got)
    pair = isinstance(got, tuple) and len(got) == 2
    expect.true(
        pair,
        "the result is not the matrix and the pair",
        on=on,
        got=expect.show(got),
        expected="two results: a matrix, and a pair of integers",
    )
    matrix, exchanged = got
    found = known_mistakes(confusion_candidates(predictions, labels, classes))
    say = {"on": f"{on}: labels {labels.tolist()[:8]}", "what": "the matrix"}
    expect.equal(matrix, right, mistakes=found, **say)
    best = _exchanged(right)
    found = known_mistakes(pair_candidates(right))
    say = {"on": f"{on}; matrix {right.tolist()}", "what": "the pair"}
    expect.equal(exchanged, best, mistakes=found, **say)


def _by_bins(probabilities: torch.Tensor, labels: torch.Tensor, bins: int) -> float:
    """Fill the bins one by one, in NumPy."""
    rows, truth = probabilities.double().numpy(), labels.numpy()
    sure, said = rows.max(axis=1), rows.argmax(axis=1)
    edges = np.linspace(0, 1, bins + 1)
    total = 0.0
    for low, high in itertools.pairwise(edges):
        inside = (sure >= low) & ((sure < high) | ((high == 1) & (sure == 1)))
        if inside.any():
            accuracy = (said[inside] == truth[inside]).mean()
            total += inside.mean() * abs(accuracy - sure[inside].mean())
    return total


def _clear(probabilities: torch.Tensor, bins: int) -> torch.Tensor:
    """Mark the rows whose confidence is not near the edge of a bin."""
    place = probabilities.amax(dim=-1).double() * bins
    return (place - place.round()).abs() > 1e-3


@chapter.check(section="trained-vision-mistakes")
def calibration_error(student: StudentFunction, seed: int = 0) -> None:
    """By hand, bin by bin in NumPy, empty bins, a confidence of 1."""
    sure = torch.tensor([0.65, 0.85, 0.95, 0.95])
    rows = torch.stack((sure, 1 - sure), dim=1)
    labels = torch.tensor([0, 1, 1, 0])
    for bins, right in ((2, 0.35), (10, 0.525)):
        on = f"the example by hand, {bins} bins"
        _expect_error(student, rows, labels, bins, right, on)
    generator = seeded(seed)
    for count, classes, bins in ((97, 5, 10), (300, 3, 4), (41, 7, 15), (60, 4, 1)):
        logits = 2.5 * normal(generator, count, classes)
        rows = logits.softmax(dim=-1)
        predictions = rows.argmax(dim=-1)
        others = torch.randint(classes, (count,), generator=generator)
        right = _uniform(generator, count) < 0.5
        labels = torch.where(right, predictions, others)
        keep = _clear(rows, bins)
        rows, labels = rows[keep], labels[keep]
        on = f"{len(labels)} images of {classes} classes, {bins} bins"
        value = _by_bins(rows, labels, bins)
        _expect_error(student, rows, labels, bins, value, on)
    sure = torch.tensor([0.25, 0.5, 0.625, 0.75, 0.75, 0.875, 1.0, 0.5, 0.375])
    rows = torch.cat((sure[:, None], ((1 - sure) / 4)[:, None].expand(-1, 4)), 1)
    labels = torch.tensor([3, 0, 4, 4, 0, 0, 3, 0, 0])
    for bins in (4, 8):
        on = f"nine images, {bins} bins; confidences on an edge: 0.25, 0.5, 0.75, 1"
        _expect_error(student, rows, labels, bins, _by_bins(rows, labels, bins), on)
    first = torch.tensor([1.0, 0.0, 0.55, 1.0, 0.25])
    rows, labels = torch.stack((first, 1 - first), 1), torch.tensor([0, 1, 0, 1, 0])
    on = "five images, 10 bins; three confidences are exactly 1"
    _expect_error(student, rows, labels, 10, _by_bins(rows, labels, 10), on)


def _expect_error(
    student: StudentFunction,
    rows: torch.Tensor,
    labels: torch.Tensor,
    bins: int,
    right: float,
    on: str,
) -> None:
    name = "a confidence of 1 has no bin"
    try:
        got = student(rows, labels, bins)
    except StudentError as error:
        whole = bool((rows == 1).any()) and "ind" in error.text.lower()
        say = {"on": on, "got": f"{error.kind}: {error.text}"}
        refuse_if(whole, name, WHY_LAST_BIN, **say)
        raise
    empty = isinstance(got, torch.Tensor) and bool(got.isnan().any())
    why = (
        "A bin without images has no mean: 0 divided by 0 is NaN. It adds nothing to "
        "the sum, so leave it out, or sum before you divide."
    )
    refuse_if(empty, "an empty bin gives NaN", why, on=on, got=expect.show(got))
    found = known_mistakes(calibration_candidates(rows, labels, bins))
    expected = torch.tensor(right, dtype=torch.float32)
    expect.equal(got, expected, on=on, mistakes=found)


# --- inside ---------------------------------------------------------------------------


@chapter.check(section="trained-vision-positions")
def position_similarity(student: StudentFunction, seed: int = 0) -> None:
    """By hand, scikit-learn's cosines, with and without a class token, refusals."""
    hand = torch.tensor([[3.0, 4.0], [4.0, 3.0]])
    right = torch.tensor([[1.0, 0.96], [0.96, 1.0]]).view(1, 2, 1, 2)
    special = torch.tensor([[5.0, -12.0]])
    for table, which in ((hand, "no"), (torch.cat((special, hand)), "a")):
        found = known_mistakes(position_candidates(table, 1, 2))
        on = f"the example by hand, {which} class token"
        expect.equal(student(table, 1, 2), right, on=on, mistakes=found)
    generator = seeded(seed)
    for more in (0, 1):
        rows, columns, d = draw_sizes(generator, 3)
        table = normal(generator, rows * columns + more, d)
        cosines = cosine_similarity(table[more:].double().numpy())
        right = torch.from_numpy(cosines).float().view(rows, columns, rows, columns)
        on = f"a table {tuple(table.shape)}, {rows} x {columns} patches"
        found = known_mistakes(position_candidates(table, rows, columns))
        expect.equal(student(table, rows, columns), right, on=on, mistakes=found)
    why = (
        "Such a table belongs to another grid. Compare its number of rows with rows · "
        "columns before anything is computed."
    )
    for length in (5, 8, 12):
        expect.raises(
            "ValueError",
            lambda length=length: student(torch.ones(length, 4), 2, 3),
            on=f"{length} positions, 2 x 3 patches",
            why=why,
            mistake="no ValueError for a table of another grid",
        )


def _pooled(rollouts: torch.Tensor, pooling: str) -> torch.Tensor:
    """How much each input moves what the head reads, by its gradient: (B, T).

    A rollout stands for a map from inputs to outputs; what is pooled is their mean, or
    the first.
    """
    inputs = torch.zeros(rollouts.shape[:2], dtype=torch.float64, requires_grad=True)
    outputs = (rollouts.double() @ inputs.unsqueeze(-1)).squeeze(-1)  # (B, T)
    read = outputs[:, 0] if pooling == "class" else outputs.mean(dim=1)
    (gradient,) = torch.autograd.grad(read.sum(), inputs)
    return gradient


@chapter.check(section="trained-vision-rollout")
def read_by_the_head(student: StudentFunction, seed: int = 0) -> None:
    """By hand, the gradient of what is pooled, both poolings, grids of all shapes."""
    hand = torch.tensor([[[0.75, 0.25], [0.5, 0.5]]])
    token = torch.tensor([[[0.4, 0.45, 0.15], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]]])
    for rollouts, pooling, shares in (
        (hand, "mean", [0.625, 0.375]),
        (token, "class", [0.75, 0.25]),
    ):
        right = torch.tensor(shares).view(1, 1, 2)
        found = known_mistakes(head_candidates(rollouts, 1, 2, pooling))
        on = f"the example by hand, pooling {pooling!r}"
        got = student(rollouts, 1, 2, pooling)
        expect.equal(got, right, on=on, mistakes=found)
    generator = seeded(seed)
    for pooling in ("mean", "class", "mean", "class"):
        b, rows, columns = draw_sizes(generator, 3, largest=6)
        size = rows * columns + (pooling == "class")
        rollouts = (2 * normal(generator, b, size, size)).softmax(dim=-1)
        shares = _pooled(rollouts, pooling)
        if pooling == "class":
            shares = F.normalize(shares[:, 1:], p=1, dim=-1)
        right = shares.float().view(b, rows, columns)
        on = (
            f"rollouts {tuple(rollouts.shape)}, {rows} x {columns} patches, "
            f"pooling {pooling!r}"
        )
        found = known_mistakes(head_candidates(rollouts, rows, columns, pooling))
        got = student(rollouts, rows, columns, pooling)
        expect.equal(got, right, on=on, mistakes=found)


# --- the student's own model ----------------------------------------------------------

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
