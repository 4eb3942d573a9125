"""What the head has read of each patch, as a picture."""

import torch
import torch.nn.functional as F

from autograder.chapters.vision.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction


def read(rollouts: torch.Tensor, rows: int, columns: int, pooling: str) -> torch.Tensor:
    """Ask how much each input moves what the head reads, by its gradient.

    A rollout stands for a map from inputs to outputs; what is pooled is their mean, or
    the first.
    """
    inputs = torch.zeros(rollouts.shape[:2], dtype=torch.float64, requires_grad=True)
    outputs = (rollouts.double() @ inputs.unsqueeze(-1)).squeeze(-1)  # (B, T)
    pooled = outputs[:, 0] if pooling == "class" else outputs.mean(dim=1)
    (shares,) = torch.autograd.grad(pooled.sum(), inputs)
    if pooling == "class":
        shares = F.normalize(shares[:, 1:], p=1, dim=-1)
    return shares.float().view(-1, rows, columns)


reading = Function("read-by-the-head", "read_by_the_head", read)


# --- what goes wrong ------------------------------------------------------------------


def _whole(shares: torch.Tensor) -> torch.Tensor:
    return shares / shares.sum(dim=-1, keepdim=True)


def _share_of_all(shares: torch.Tensor) -> torch.Tensor:
    return shares / shares.sum()


COLUMN = (
    "the column in place of the row",
    "Row 0 says what the class token has read. Column 0 says how much of the class "
    "token the others have read.",
)
NOT_ONE = "the sum is not 1"
SOFTMAX = (
    "a softmax of what are shares already",
    "Shares are not scores. Divide them by their sum.",
)
BY_BATCH = (
    "one sum for the whole batch",
    "Each picture has a sum of its own: sum over the last axis, with keepdim=True.",
)
SELF = (
    "the class token's share in itself is kept",
    "Input 0 is the class token and no patch: leave out column 0.",
)
ALL_OUTPUTS = (
    "the mean over the outputs, with a class token",
    "The head reads output 0 alone. The other outputs go nowhere.",
)
ONE_OUTPUT = (
    "one output in place of the mean",
    'With pooling="mean" the head reads all outputs alike.',
)
DIAGONAL = (
    "each token's share in itself",
    "The diagonal leaves out all that tokens have read of one another.",
)
for pooling, mistake, shares in (
    ("class", COLUMN, lambda x: _whole(x[:, 1:, 0])),
    ("class", COLUMN, lambda x: x[:, 1:, 0]),
    (
        "class",
        (
            NOT_ONE,
            "Without the class token's own share the rest is less than 1. Divide by "
            "it, or pictures of different images cannot be compared.",
        ),
        lambda x: x[:, 0, 1:],
    ),
    ("class", SELF, lambda x: x[:, 0, :-1]),
    ("class", SELF, lambda x: _whole(x[:, 0, :-1])),
    ("class", ALL_OUTPUTS, lambda x: _whole(x.mean(dim=1)[:, 1:])),
    ("class", ALL_OUTPUTS, lambda x: x.mean(dim=1)[:, 1:]),
    ("class", ALL_OUTPUTS, lambda x: _whole(x[:, 1:, 1:].mean(dim=1))),
    (
        "class",
        (ALL_OUTPUTS[0], f"{ALL_OUTPUTS[1]} And shares are no scores: no softmax."),
        lambda x: x.mean(dim=1)[:, 1:].softmax(dim=-1),
    ),
    (
        "class",
        (
            "the class token's own share given out in equal parts",
            "Every patch gets the same on top, also one that was hardly read. Divide "
            "by what is left: then each share grows by the same factor.",
        ),
        lambda x: x[:, 0, 1:] + x[:, 0, :1] / (x.shape[-1] - 1),
    ),
    ("class", SOFTMAX, lambda x: x[:, 0, 1:].softmax(dim=-1)),
    ("class", SOFTMAX, lambda x: _whole(x[:, 0, 1:]).softmax(dim=-1)),
    ("class", SOFTMAX, lambda x: x[:, 0].softmax(dim=-1)[:, 1:]),
    ("mean", SOFTMAX, lambda x: x.mean(dim=1).softmax(dim=-1)),
    ("class", BY_BATCH, lambda x: _share_of_all(x[:, 0, 1:])),
    ("class", BY_BATCH, lambda x: _share_of_all(x[:, 0, 1:]) * len(x)),
    ("mean", BY_BATCH, lambda x: _share_of_all(x.mean(dim=1))),
    (
        "mean",
        (
            "the mean over the inputs",
            "Every row sums to 1, so its mean is 1/T for every image. What is pooled "
            "are outputs, and outputs are rows: average over axis 1.",
        ),
        lambda x: x.mean(dim=2),
    ),
    ("mean", ONE_OUTPUT, lambda x: x[:, 0]),
    ("mean", ONE_OUTPUT, lambda x: x[:, -1]),
    (
        "mean",
        (NOT_ONE, "The mean divides by the number of outputs."),
        lambda x: x.sum(dim=1),
    ),
    ("mean", DIAGONAL, lambda x: x.diagonal(dim1=1, dim2=2)),
    ("mean", DIAGONAL, lambda x: _whole(x.diagonal(dim1=1, dim2=2))),
):
    reading.mistake(
        *mistake, when=lambda x, rows, columns, which, pooling=pooling: which == pooling
    )(
        lambda rollouts, rows, columns, which, shares=shares: shares(rollouts).reshape(
            -1, rows, columns
        )
    )
SIDES = (
    "rows and columns of the grid exchanged",
    "Patches come in reading order, row after row: split N into (rows, columns).",
)
reading.mistake(*SIDES)(
    lambda rollouts, rows, columns, pooling: read(rollouts, columns, rows, pooling)
)
reading.mistake(*SIDES)(
    lambda rollouts, rows, columns, pooling: read(rollouts, columns, rows, pooling).mT
)


@reading.mistake(f"{SOFTMAX[0]}, and {SIDES[0]}", f"{SOFTMAX[1]} {SIDES[1]}")
def _(rollouts, rows, columns, pooling):
    if pooling == "mean":
        return read(rollouts, columns, rows, pooling).mT
    shares = rollouts[:, 0, 1:].softmax(dim=-1)
    return shares.reshape(-1, columns, rows).mT


reading.mistake(
    "one picture for the whole batch", "Every image has its own picture: keep axis 0."
)(
    lambda rollouts, rows, columns, pooling: read(
        rollouts, rows, columns, pooling
    ).mean(dim=0)
)


# --- the check ------------------------------------------------------------------------


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
        on = f"the example by hand, pooling {pooling!r}"
        reading.judge(student, Case(on, (rollouts, 1, 2, pooling), right))
    generator = seeded(seed)
    for pooling in ("mean", "class", "mean", "class"):
        b, rows, columns = draw_sizes(generator, 3, largest=6)
        size = rows * columns + (pooling == "class")
        rollouts = (2 * normal(generator, b, size, size)).softmax(dim=-1)
        on = (
            f"rollouts {tuple(rollouts.shape)}, {rows} x {columns} patches, "
            f"pooling {pooling!r}"
        )
        reading.judge(student, Case(on, (rollouts, rows, columns, pooling)))
