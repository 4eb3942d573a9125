"""What the head has read of each patch, as a picture."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from autograder.chapters.vision.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function, squeezed
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


def _whole(shares: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
    return shares / shares.sum(dim=-1, keepdim=True)


def _as_is(shares: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
    return shares


def by_rules(
    rollouts: torch.Tensor,
    rows: int,
    columns: int,
    pooling: str,
    *,
    output: Callable[[torch.Tensor], torch.Tensor] = lambda x: x[:, 0],
    cut: Callable[[torch.Tensor], torch.Tensor] = lambda row: row[:, 1:],
    whole: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = _whole,
    mean: Callable[[torch.Tensor], torch.Tensor] = lambda x: x.mean(dim=1),
    then: Callable[[torch.Tensor], torch.Tensor] = _as_is,
    laid: Callable = lambda shares, rows, columns: shares.reshape(-1, rows, columns),
    pictures: Callable[[torch.Tensor], torch.Tensor] = _as_is,
) -> torch.Tensor:
    """Make pictures by rules that can be varied.

    Args:
        rollouts: (B, T, T).
        rows: of the grid.
        columns: of the grid.
        pooling: "class", which follows the first three rules, or "mean", the next two.
        output: the row that is read, (B, T).
        cut: the patches' part of it.
        whole: made of that, and of the row, so that the sum is 1.
        mean: the shares that are read, (B, T).
        then: what is made of them.
        laid: the grid, of shares, rows and columns.
        pictures: the result, made of that.
    """
    if pooling == "class":
        row = output(rollouts)
        shares = whole(cut(row), row)
    else:
        shares = then(mean(rollouts))
    return pictures(laid(shares, rows, columns))


def _diagonal(x: torch.Tensor) -> torch.Tensor:
    return x.diagonal(dim1=1, dim2=2)


def _softmax(shares: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
    return shares.softmax(dim=-1)


COLUMN = (
    "the column in place of the row",
    "Row 0 says what the class token has read. Column 0 says how much of the class "
    "token the others have read.",
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
NOT_ONE = "the sum is not 1"
SOFTMAX = (
    "a softmax of what are shares already",
    "Shares are not scores. Divide them by their sum.",
)
BY_BATCH = (
    "one sum for the whole batch",
    "Each picture has a sum of its own: sum over the last axis, with keepdim=True.",
)
DIVIDED: tuple[tuple[str, str, Callable], ...] = (  # in both poolings
    (*SOFTMAX, _softmax),
    (*SOFTMAX, lambda shares, *_: _softmax(_whole(shares))),
    (*BY_BATCH, lambda shares, *_: shares / shares.sum()),
    (
        "one sum for each patch",
        "The sum of a picture is over its patches, the last axis. Over the images, "
        "axis 0, one picture would depend on the others.",
        lambda shares, *_: shares / shares.sum(dim=0),
    ),
    (
        "divided by the largest",
        "The largest share becomes 1, not the sum. Divide by the sum.",
        lambda shares, *_: shares / shares.amax(dim=-1, keepdim=True),
    ),
    (
        "divided by the length",
        "`F.normalize` divides by the root of the sum of squares, unless it is told "
        "p=1. Shares have the sum 1: divide by the sum.",
        lambda shares, *_: F.normalize(shares, dim=-1),
    ),
)
SIDES = (
    "rows and columns of the grid exchanged",
    "Patches come in reading order, row after row: split N into (rows, columns).",
)
OF_CLASS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (*COLUMN, {"output": lambda x: x[:, :, 0]}),
    (
        "the class token's share in itself is kept",
        "Input 0 is the class token and no patch: leave out column 0.",
        {"cut": lambda row: row[:, :-1]},
    ),
    (*ALL_OUTPUTS, {"output": lambda x: x.mean(dim=1)}),
    (*ALL_OUTPUTS, {"output": lambda x: x[:, 1:].mean(dim=1)}),
    (
        "the last output in place of the first",
        "The class token is the first, and the head reads its output: row 0.",
        {"output": lambda x: x[:, -1]},
    ),
    (*DIAGONAL, {"output": _diagonal}),
    (
        NOT_ONE,
        "Without the class token's own share the rest is less than 1. Divide by it, or "
        "pictures of different images cannot be compared.",
        {"whole": _as_is},
    ),
    (
        "the class token's own share given out in equal parts",
        "Every patch gets the same on top, also one that was hardly read. Divide by "
        "what is left: then each share grows by the same factor.",
        {"whole": lambda shares, row: shares + row[:, :1] / shares.shape[-1]},
    ),
    (
        "divided by what the class token kept",
        "What is left is 1 less that. Divide by the rest, the sum of the patches' "
        "shares.",
        {"whole": lambda shares, row: shares / row[:, :1]},
    ),
    (*SOFTMAX, {"output": lambda x: _softmax(x[:, 0]), "whole": _as_is}),
    (*BY_BATCH, {"whole": lambda shares, row: shares / shares.sum() * len(shares)}),
    *((name, why, {"whole": rule}) for name, why, rule in DIVIDED),
)
OF_MEAN: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (
        "the mean over the inputs",
        "Every row sums to 1, so its mean is 1/T for every image. What is pooled are "
        "outputs, and outputs are rows: average over axis 1.",
        {"mean": lambda x: x.mean(dim=2)},
    ),
    (*ONE_OUTPUT, {"mean": lambda x: x[:, 0]}),
    (*ONE_OUTPUT, {"mean": lambda x: x[:, -1]}),
    (
        "output 0 left out of the mean",
        'With pooling="mean" there is no class token: output 0 is that of a patch.',
        {"mean": lambda x: x[:, 1:].mean(dim=1)},
    ),
    (
        NOT_ONE,
        "The mean divides by the number of outputs.",
        {"mean": lambda x: x.sum(dim=1)},
    ),
    (*DIAGONAL, {"mean": _diagonal}),
    (*DIAGONAL, {"mean": lambda x: _whole(_diagonal(x))}),
    *((name, why, {"then": rule}) for name, why, rule in DIVIDED),
)
OF_BOTH: tuple[tuple[str, str, dict[str, Any]], ...] = (
    *((name, why, {"whole": rule, "then": rule}) for name, why, rule in DIVIDED),
    (*DIAGONAL, {"output": _diagonal, "mean": lambda x: _whole(_diagonal(x))}),
    (*SIDES, {"laid": lambda shares, *sides: shares.reshape(-1, *sides[::-1])}),
    (*SIDES, {"laid": lambda shares, *sides: shares.reshape(-1, *sides[::-1]).mT}),
    (
        "not laid out as pictures",
        "The axis of the patches is split into rows and columns: (B, rows, columns).",
        {"laid": _as_is},
    ),
    (*squeezed("batch", "for a batch of one"), {"pictures": torch.squeeze}),
    (
        "one picture for the whole batch",
        "Every image has its own picture: keep axis 0.",
        {"pictures": lambda pictures: pictures.mean(dim=0)},
    ),
)
for only, slips in (("class", OF_CLASS), ("mean", OF_MEAN), ("", OF_BOTH)):
    reading.slips(
        by_rules,
        *slips,
        when=lambda x, rows, columns, pooling, only=only: only in ("", pooling),
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
        _judge(student, Case(on, (rollouts, 1, 2, pooling), right))
    generator = seeded(seed)
    for pooling in ("mean", "class", "mean", "class"):
        b, rows, columns = draw_sizes(generator, 3, largest=6)
        size = rows * columns + (pooling == "class")
        rollouts = (2 * normal(generator, b, size, size)).softmax(dim=-1)
        on = (
            f"rollouts {tuple(rollouts.shape)}, {rows} x {columns} patches, "
            f"pooling {pooling!r}"
        )
        _judge(student, Case(on, (rollouts, rows, columns, pooling)))


def _judge(student: StudentFunction, case: Case) -> None:
    """Ask with the pooling by name: what is wrong in one branch is judged by itself."""
    *given, pooling = case.inputs
    reading.compare(student(*given, pooling=pooling), case)
