"""The known mistakes of chapter 10: what each gives on an input, and why it is wrong.

Each function whose name ends in ``_candidates`` yields (name, what it gives, why) for
the inputs of one exercise. The checks compare a wrong answer with them, in this order.
"""

from collections.abc import Iterator

import torch

from autograder.exercise.naming import Candidate

# --- images ---------------------------------------------------------------------------

WHY_TRAIN = (
    "What the model gets must not depend on which images come together. Measure mean "
    "and spread once, on the training images, and use these for all others."
)
WHY_CHANNEL = (
    "Each channel has a mean and a spread of its own, over images, rows and columns: "
    "the axes 0, 2 and 3 are averaged away, and C numbers are left."
)


FLAT = 1e-6  # a spread below is rounding, and counts as 1


def standardise_candidates(
    images: torch.Tensor, train: torch.Tensor
) -> Iterator[Candidate]:
    """Normalise images in a wrong way."""

    def by(source, axes=(0, 2, 3), correction=0, power=1):
        mean = source.mean(dim=axes, keepdim=True)
        std = source.std(dim=axes, keepdim=True, correction=correction)
        return (images - mean) / std.where(std > FLAT, 1.0) ** power

    mean = train.mean(dim=(0, 2, 3), keepdim=True)
    std = train.std(dim=(0, 2, 3), keepdim=True, correction=0)
    std = std.where(std > FLAT, 1.0)
    yield "statistics of the images themselves", lambda: by(images), WHY_TRAIN
    name = "each image by its own statistics"
    yield name, lambda: by(images, (2, 3)), WHY_TRAIN
    yield name, lambda: by(images, (1, 2, 3)), WHY_TRAIN
    name = "one mean for all channels"
    yield name, lambda: by(train, (0, 1, 2, 3)), WHY_CHANNEL
    yield "each pixel by its own statistics", lambda: by(train, (0,)), WHY_CHANNEL
    why = (
        "std divides by the count less one, an estimate for data that were not seen. "
        "Here the spread of these very images is meant: correction=0."
    )
    yield "the sample standard deviation", lambda: by(train, correction=1), why
    why = "The variance is the square of the spread. Divide by its root."
    yield "divided by the variance", lambda: by(train, power=2), why
    why = "First subtract the mean, then divide by the spread."
    yield "the mean is not subtracted", lambda: images / std, why
    why = "After the mean is subtracted, divide by the spread."
    yield "not divided by the spread", lambda: images - mean, why
    why = "(x - mean) / std: the difference is divided, not the mean alone."
    yield "only the mean is divided", lambda: images - mean / std, why
    why = (
        "The axis of the channels is the second. Over the last axis the numbers would "
        "belong to columns."
    )
    yield "each column by its own statistics", lambda: by(train, (0, 1, 2)), why


WHY_FROM = (
    "A shift of 1 down brings row 0 to row 1, so row i of the result comes from row i "
    "minus the shift."
)


def _shifted(
    images: torch.Tensor,
    down: torch.Tensor,
    right: torch.Tensor,
    fill: str = "zeros",
) -> torch.Tensor:
    """Shift each image; put zeros, the edge or the other side where it ends."""
    result = []
    for image, one, two in zip(images, down.tolist(), right.tolist(), strict=True):
        _, h, w = image.shape
        rows, columns = torch.arange(h) - one, torch.arange(w) - two
        inside = ((rows >= 0) & (rows < h))[:, None]
        inside = inside & ((columns >= 0) & (columns < w))
        if fill == "circle":
            found = image[:, rows.remainder(h)][:, :, columns.remainder(w)]
        else:
            found = image[:, rows.clamp(0, h - 1)][:, :, columns.clamp(0, w - 1)]
        result.append(found * inside if fill == "zeros" else found)
    return torch.stack(result)


def shift_candidates(
    images: torch.Tensor, down: torch.Tensor, right: torch.Tensor
) -> Iterator[Candidate]:
    """Shift a batch in a wrong way."""

    def all_by(place):
        one, two = down[place].expand_as(down), right[place].expand_as(right)
        return _shifted(images, one, two)

    name = "one shift for the whole batch"
    why = (
        "Every image has its own numbers: keep the axis of the batch in the tables, "
        "(B, H) and (B, W)."
    )
    if len(images) > 1:
        yield name, lambda: all_by(0), why
        yield name, lambda: all_by(-1), why
    name = "the wrong way, in both directions"
    yield name, lambda: _shifted(images, -down, -right), WHY_FROM
    yield "up and down exchanged", lambda: _shifted(images, -down, right), WHY_FROM
    name = "left and right exchanged"
    yield name, lambda: _shifted(images, down, -right), WHY_FROM
    name = "rows and columns exchanged"
    why = "down moves along the rows, the last axis but one; right along the last."
    yield name, lambda: _shifted(images, right, down), why
    name = "what leaves comes in on the other side"
    why = (
        "Negative indices count from the end, and roll turns in a circle. What comes "
        "in from outside is 0."
    )
    yield name, lambda: _shifted(images, down, right, "circle"), why
    name = "the edge is repeated"
    why = (
        "clamp fetches the outermost pixel for every place outside. That keeps the "
        "fetching legal; afterwards these places have to be set to 0."
    )
    yield name, lambda: _shifted(images, down, right, "edge"), why
    name = "not moved at all"
    yield name, lambda: images, "The result is a new tensor: return it."


# --- how good -------------------------------------------------------------------------


def confusion_candidates(
    predictions: torch.Tensor, labels: torch.Tensor, classes: int
) -> Iterator[Candidate]:
    """Count in a wrong way."""
    places = labels * classes + predictions
    matrix = torch.bincount(places, minlength=classes**2).view(classes, classes)
    why = "Rows are the labels, what is right; columns are what was said."
    yield "rows and columns exchanged", lambda: matrix.T.contiguous(), why
    why = (
        "matrix[labels, predictions] += 1 reads all places first and writes then: of "
        "several images at one place only one is counted. bincount, or index_put_ "
        "with accumulate=True, counts all."
    )
    yield "equal pairs count once", lambda: matrix.clamp(max=1), why
    name = "shares in place of counts"
    why = "Numbers of images are asked for. They can be made into shares, not back."
    share = matrix / matrix.sum(dim=1, keepdim=True)
    yield name, lambda: share, why
    yield name, lambda: share.nan_to_num(), why
    yield name, lambda: matrix / matrix.sum(), why
    name = "the counts are no integers"
    yield name, lambda: matrix.float(), "Counts are integers: leave them so."
    name = "right answers are left out"
    why = "The diagonal belongs to the matrix: it counts what was right."
    yield name, lambda: matrix - matrix.diag().diag(), why
    most = int(max(labels.max(), predictions.max())) + 1
    name = "classes that do not occur are left out"
    why = "The matrix has a row and a column for each of the classes, in their order."
    if most < classes:
        yield name, lambda: matrix[:most, :most].contiguous(), why


def pair_candidates(matrix: torch.Tensor) -> Iterator[Candidate]:
    """Find the pair in a wrong way."""
    classes = len(matrix)
    both = (matrix + matrix.T).triu(diagonal=1)
    best = divmod(int(both.argmax()), classes)
    empty = matrix - matrix.diag().diag()

    def place(counts):
        return divmod(int(counts.argmax()), classes)

    name = "the diagonal is counted"
    why = "On the diagonal stands what was right. Look at what was exchanged only."
    yield name, lambda: place(matrix), why
    yield name, lambda: place(matrix + matrix.T), why
    yield name, lambda: place((matrix + matrix.T).triu()), why
    name = "the larger class first"
    yield name, lambda: best[::-1], "The pair is (a, b) with a < b."
    name = "one direction only"
    why = (
        "a taken for b, and b taken for a: both count. Add the matrix and its "
        "transpose before you look for the largest."
    )
    yield name, lambda: place(empty), why
    yield name, lambda: tuple(sorted(place(empty))), why
    yield name, lambda: place(matrix.triu(diagonal=1)), why
    name = "the place in the line, not taken apart"
    why = (
        "argmax counts through the whole matrix as one line. Divided by classes it "
        "gives the row, the remainder is the column: divmod."
    )
    yield name, lambda: int(both.argmax()), why
    name = "tensors in place of integers"
    yield name, lambda: tuple(map(torch.tensor, best)), "Two Python integers: int(...)."
    name = "a list in place of a pair"
    yield name, lambda: list(best), "Return a tuple: (a, b)."


WHY_LAST_BIN = (
    "1 times bins is bins, one more than the number of the last bin. A confidence of 1 "
    "lies in the last one: clamp(max=bins - 1)."
)


def calibration_candidates(
    probabilities: torch.Tensor, labels: torch.Tensor, bins: int
) -> Iterator[Candidate]:
    """Measure the calibration in a wrong way."""
    count = len(labels)
    sure, said = probabilities.max(dim=-1)
    hit = (said == labels).float()
    place = (sure * bins).long().clamp(max=bins - 1)

    def summed(values, where=place):
        return torch.zeros(bins).index_add(0, where, values)

    gaps = summed(hit - sure)
    sizes = summed(torch.ones(count))
    means = gaps / sizes.clamp(min=1)
    name = "every bin counts alike"
    why = (
        "A bin with three images would weigh as much as one with three hundred. Weight "
        "each by the share of images that it holds, n/N."
    )
    yield name, lambda: means.abs().sum() / bins, why
    yield name, lambda: means.abs().sum() / (sizes > 0).sum(), why
    yield name, lambda: means.abs().sum(), why
    name = "not divided by the number of images"
    why = "The weights n/N of the bins sum to 1: divide by N."
    yield name, lambda: gaps.abs().sum(), why
    name = "differences of opposite signs cancel"
    why = (
        "A bin that is too sure and one that is not sure enough would make up for one "
        "another. Take the absolute value of each bin, then add."
    )
    yield name, lambda: gaps.sum() / count, why
    yield name, lambda: -gaps.sum() / count, why
    yield name, lambda: gaps.sum().abs() / count, why
    name = "absolute values image by image"
    why = (
        "A single image is right or wrong, never 90 % right. Only the mean over a bin "
        "can be compared with the confidence: sum first, then the absolute value."
    )
    yield name, lambda: (hit - sure).abs().sum() / count, why
    name = "the probability of the right class"
    why = (
        "The confidence is the probability of what the model says, right or wrong: the "
        "largest of the row."
    )
    true = probabilities.gather(1, labels[:, None])[:, 0]
    there = (true * bins).long().clamp(max=bins - 1)
    yield name, lambda: summed(hit - true, there).abs().sum() / count, why
    yield name, lambda: summed(hit - true).abs().sum() / count, why
    name = "squares in place of absolute values"
    why = "The formula has absolute values: |acc - conf|."
    yield name, lambda: (sizes / count * means.square()).sum(), why
    yield name, lambda: (sizes / count * means.square()).sum().sqrt(), why
    name = "the largest difference in place of the sum"
    why = "All bins count, each by its share of the images."
    yield name, lambda: means.abs().max(), why
    name = "a confidence of 1 has no bin"
    inside = (sure < 1).float()
    yield name, lambda: summed((hit - sure) * inside).abs().sum() / count, WHY_LAST_BIN
    name = "an edge belongs to the bin below"
    why = "c = 0.5 with two bins lies in bin 1: an edge belongs to the bin above it."
    below = (sure * bins).ceil().long().sub(1).clamp(min=0)
    yield name, lambda: summed(hit - sure, below).abs().sum() / count, why
    name = "bins rounded to the nearest"
    why = "Bin m begins at m/M: round down, by floor or by .long()."
    near = (sure * bins).round().long().clamp(max=bins - 1)
    yield name, lambda: summed(hit - sure, near).abs().sum() / count, why


# --- inside ---------------------------------------------------------------------------


def position_candidates(
    table: torch.Tensor, rows: int, columns: int
) -> Iterator[Candidate]:
    """Compare positions in a wrong way."""
    count = rows * columns
    special = len(table) > count

    def laid(products, grid=(rows, columns)):
        return products.reshape(*grid, *grid)

    def cosines(vectors):
        unit = vectors / vectors.norm(dim=-1, keepdim=True)
        return unit @ unit.T

    patches = table[-count:]
    lengths = patches.norm(dim=-1, keepdim=True)
    if special:
        name = "the last position left out in place of the first"
        why = "The class token stands first, so its position is row 0 of the table."
        yield name, lambda: laid(cosines(table[:count])), why
    name = "products in place of cosines"
    why = (
        "Long vectors have large products with everything. Divide every row by its "
        "length, and only the direction is compared."
    )
    yield name, lambda: laid(patches @ patches.T), why
    name = "only one of two lengths"
    why = (
        "A product of two vectors grows with both lengths. Divide the rows first; then "
        "both factors have length 1."
    )
    yield name, lambda: laid(patches @ (patches / lengths).T), why
    yield name, lambda: laid((patches / lengths) @ patches.T), why
    yield name, lambda: laid(patches @ patches.T / lengths.square()), why
    yield name, lambda: laid(patches @ patches.T / lengths.square().T), why
    name = "lengths of the columns"
    why = "A position is a row: its length is over the features, dim=-1."
    across = patches / patches.norm(dim=0, keepdim=True)
    yield name, lambda: laid(across @ across.T), why
    name = "rows and columns of the grid exchanged"
    why = "Patches come in reading order, row after row: split N into (rows, columns)."
    if rows != columns:
        yield name, lambda: laid(cosines(patches), (columns, rows)), why
    column_order = torch.arange(count).view(columns, rows).T.flatten()
    yield name, lambda: laid(cosines(patches[column_order])), why
    name = "not laid out as pictures"
    why = "Both axes of length N are split into rows and columns: four axes."
    yield name, lambda: cosines(patches), why
    name = "distances in place of cosines"
    why = "Equal directions have the cosine 1, not the distance 0."
    yield name, lambda: laid(torch.cdist(patches, patches)), why
    yield name, lambda: laid(1 - cosines(patches)), why
    name = "the mean position subtracted first"
    why = "The positions are compared as they are; a correlation is another number."
    yield name, lambda: laid(cosines(patches - patches.mean(0))), why


def head_candidates(
    rollouts: torch.Tensor, rows: int, columns: int, pooling: str
) -> Iterator[Candidate]:
    """Make the pictures in a wrong way."""
    count = rows * columns

    def laid(shares):
        return shares.reshape(-1, rows, columns)

    def whole(shares):
        return shares / shares.sum(dim=-1, keepdim=True)

    if pooling == "class":
        name = "the column in place of the row"
        why = (
            "Row 0 says what the class token has read. Column 0 says how much of the "
            "class token the others have read."
        )
        yield name, lambda: laid(whole(rollouts[:, 1:, 0])), why
        yield name, lambda: laid(rollouts[:, 1:, 0]), why
        name = "the sum is not 1"
        why = (
            "Without the class token's own share the rest is less than 1. Divide by "
            "it, or pictures of different images cannot be compared."
        )
        yield name, lambda: laid(rollouts[:, 0, 1:]), why
        name = "the class token's share in itself is kept"
        why = "Input 0 is the class token and no patch: leave out column 0."
        yield name, lambda: laid(rollouts[:, 0, :count]), why
        yield name, lambda: laid(whole(rollouts[:, 0, :count])), why
        name = "the mean over the outputs, with a class token"
        why = "The head reads output 0 alone. The other outputs go nowhere."
        yield name, lambda: laid(whole(rollouts.mean(dim=1)[:, 1:])), why
        yield name, lambda: laid(rollouts.mean(dim=1)[:, 1:]), why
        yield name, lambda: laid(whole(rollouts[:, 1:, 1:].mean(dim=1))), why
        name = "a softmax of what are shares already"
        why = "Shares are not scores. Divide them by their sum."
        yield name, lambda: laid(rollouts[:, 0, 1:].softmax(dim=-1)), why
    else:
        name = "the mean over the inputs"
        why = (
            "Every row sums to 1, so its mean is 1/T for every image. What is pooled "
            "are outputs, and outputs are rows: average over axis 1."
        )
        yield name, lambda: laid(rollouts.mean(dim=2)), why
        name = "one output in place of the mean"
        why = 'With pooling="mean" the head reads all outputs alike.'
        yield name, lambda: laid(rollouts[:, 0]), why
        yield name, lambda: laid(rollouts[:, -1]), why
        name = "the sum is not 1"
        why = "The mean divides by the number of outputs."
        yield name, lambda: laid(rollouts.sum(dim=1)), why
        name = "each token's share in itself"
        why = "The diagonal leaves out all that tokens have read of one another."
        own = rollouts.diagonal(dim1=1, dim2=2)
        yield name, lambda: laid(own), why
        yield name, lambda: laid(whole(own)), why
    name = "rows and columns of the grid exchanged"
    why = "Patches come in reading order, row after row: split N into (rows, columns)."
    shares = whole(rollouts[:, 0, 1:]) if pooling == "class" else rollouts.mean(dim=1)
    if rows != columns:
        yield name, lambda: shares.reshape(-1, columns, rows), why
    yield name, lambda: shares.reshape(-1, columns, rows).mT, why
    name = "one picture for the whole batch"
    why = "Every image has its own picture: keep axis 0."
    yield name, lambda: laid(shares).mean(dim=0), why
