"""Attention followed through all layers, past the residual connections."""

import functools
import itertools
from collections.abc import Callable
from functools import partial

import torch

from autograder.chapters.vision_transformer.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction


def paths(weights: list[torch.Tensor]) -> torch.Tensor:
    """Add up all paths: in each layer either by attention or past it."""
    length = weights[0].shape[-1]
    total = torch.zeros(length, length, dtype=torch.float64)
    for choice in itertools.product((False, True), repeat=len(weights)):
        path = torch.eye(length, dtype=torch.float64)
        for layer, attends in zip(weights, choice, strict=True):
            if attends:
                path = torch.einsum("hij,jk->ik", layer.double(), path) / len(layer)
        total += path / 2 ** len(weights)
    return total.float()


rollout = Function("attention-rollout", "attention_rollout", paths)
rollout.accident(
    "expected at least 2 tensors",
    "fails for a single layer",
    "torch.linalg.multi_dot wants two matrices or more, and a model may have one "
    "layer. Begin with the first matrix, and multiply by each further one with @.",
)


# --- what goes wrong ------------------------------------------------------------------


def _mixed(matrix: torch.Tensor, own: float = 0.5, read: float = 0.5) -> torch.Tensor:
    return read * matrix + own * torch.eye(len(matrix))


def _normalised(matrix: torch.Tensor, axis: int = -1) -> torch.Tensor:
    return matrix / matrix.sum(axis, keepdim=True)


def _leftmost(matrices: list[torch.Tensor]) -> torch.Tensor:
    """Multiply so that the last one is leftmost."""
    return functools.reduce(lambda product, matrix: matrix @ product, matrices)


def roll(
    weights: list[torch.Tensor],
    *,
    apart: bool = False,
    head: Callable = lambda layer: layer.mean(0),
    bare: Callable = lambda number, count: False,
    mix: Callable = _mixed,
    kept: Callable = lambda matrices: matrices,
    combine: Callable = _leftmost,
    finish: Callable = lambda found: found,
) -> torch.Tensor:
    """Roll attention out by rules that can be varied.

    Args:
        weights: for each layer (heads, T, T).
        apart: whether each head goes through all layers by itself.
        head: makes one matrix of a layer's heads.
        bare: whether a layer has no residual connection, of its number and how many.
        mix: lets a matrix have one.
        kept: the layers that are combined.
        combine: makes one matrix of all.
        finish: makes the result of that.
    """
    if apart:
        heads = zip(*(layer.unsqueeze(1) for layer in weights), strict=True)
        rules = {"bare": bare, "mix": mix, "kept": kept, "combine": combine}
        return finish(torch.stack([roll(each, **rules) for each in heads]).mean(0))
    matrices = [
        head(layer) if bare(number, len(weights)) else mix(head(layer))
        for number, layer in enumerate(weights)
    ]
    return finish(combine(kept(matrices)))


NO_RESIDUAL = (
    "no residual connection",
    "In every layer half of what a token carries comes past attention, by the residual "
    "connection: ½ A + ½ I. Without it, a dozen layers leave all rows alike.",
)
ONE_BARE = (
    "one layer without the residual connection",
    "Every layer has a residual connection, the first one, too.",
)
NOT_NORMALISED = (
    "rows not normalised",
    "A + I has rows that sum to 2, so the product's rows sum to 2 to the number of "
    "layers. Halve both, or divide each row by its sum.",
)
BY_ENTRY = (
    "multiplied entry by entry",
    "Layers are combined by @; * multiplies entry by entry.",
)
TURNED = "rows and columns exchanged", "Row i belongs to output i, column j to input j."
ALL = "Rollout goes through all layers, from the first to the last."
ONCE = (
    "the identity only once",
    "Every layer has a residual connection: mix before you multiply.",
)


def _all_bare(number: int, count: int) -> bool:
    return True


def _entries(matrices: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack(matrices).prod(0)


rollout.slips(
    roll,
    (*NO_RESIDUAL, {"bare": _all_bare}),
    (*ONE_BARE, {"bare": lambda number, count: number == 0}),
    (*ONE_BARE, {"bare": lambda number, count: number == count - 1}),
    (*ONCE, {"bare": _all_bare, "finish": _mixed}),
    (*ONCE, {"bare": lambda number, count: number > 0}),
    (*ONCE, {"bare": lambda number, count: number < count - 1}),
    (*NOT_NORMALISED, {"mix": partial(_mixed, own=1.0, read=1.0)}),
    (*NOT_NORMALISED, {"mix": partial(_mixed, own=0.5, read=1.0)}),
    (*NOT_NORMALISED, {"mix": partial(_mixed, own=1.0, read=0.5)}),
    (
        *NOT_NORMALISED,
        {
            "mix": partial(_mixed, own=1.0, read=1.0),
            "finish": lambda found: found / 2,
        },
    ),
    (
        "columns made to sum to 1, not rows",
        "Row i holds the shares of output i, and these sum to 1: divide by "
        ".sum(-1, keepdim=True), or take halves of A and I.",
        {"mix": lambda matrix: _normalised(_mixed(matrix), axis=0)},
    ),
    (
        "a softmax of what are shares already",
        "Shares are not scores: the rows sum to 1 as they are.",
        {"mix": lambda matrix: _mixed(matrix).softmax(-1)},
    ),
    *(
        (
            f"the {which} over the heads in place of the mean",
            "The heads are averaged; a maximum or a minimum is no longer a mixture.",
            {"head": head, **more},
        )
        for which, joined in (("maximum", torch.amax), ("minimum", torch.amin))
        for head in (
            partial(joined, dim=0),
            lambda layer, joined=joined: _normalised(joined(layer, 0)),
        )
        for more in (
            {},
            {"mix": lambda matrix: _normalised(_mixed(matrix))},
            {"finish": _normalised},
        )
    ),
    (
        "only the first head",
        "All heads have a say, each with the same weight.",
        {"head": lambda layer: layer[0]},
    ),
    (
        "only the last head",
        "All heads have a say, each with the same weight.",
        {"head": lambda layer: layer[-1]},
    ),
    (
        "heads added, not averaged",
        "Divide by the number of heads: .mean(0).",
        {"head": lambda layer: layer.sum(0)},
    ),
    (
        "the heads averaged at the end",
        "Each layer's heads are averaged before the layers are multiplied: head 1 of "
        "one layer reads what all heads of the layer below have written.",
        {"apart": True},
    ),
    (*TURNED, {"finish": torch.t}),
    (*TURNED, {"head": lambda layer: layer.mean(0).T}),
    (
        "multiplied in the wrong order",
        "Going backwards from the output, the last layer comes first: it is leftmost. "
        "rollout = mixed @ rollout, from the first layer on.",
        {"combine": lambda matrices: _leftmost(matrices[::-1])},
    ),
    (
        "the mean of the layers in place of their product",
        "Paths through several layers multiply: a matrix product, not a mean.",
        {"combine": lambda matrices: torch.stack(matrices).mean(0)},
    ),
    (
        "the layers are added",
        "Paths through several layers multiply: a matrix product, not a sum.",
        {"combine": sum},
    ),
    (*BY_ENTRY, {"combine": _entries}),
    (*BY_ENTRY, {"combine": lambda matrices: _normalised(_entries(matrices))}),
    ("only the last layer", ALL, {"combine": lambda matrices: matrices[-1]}),
    ("only the first layer", ALL, {"combine": lambda matrices: matrices[0]}),
    (
        "the first layer twice",
        "If the product begins with the first layer, the loop goes on with the second.",
        {"kept": lambda matrices: [matrices[0], *matrices]},
    ),
)
for kept in (slice(1, None), slice(None, -1)):
    rollout.mistake("a layer is left out", ALL, when=lambda weights: len(weights) > 1)(
        partial(roll, kept=lambda matrices, kept=kept: matrices[kept])
    )


# --- the check ------------------------------------------------------------------------


@chapter.check(section="vision-rollout")
def attention_rollout(student: StudentFunction, seed: int = 0) -> None:
    """By hand, all paths added up, tokens that attend to themselves."""
    hand = [
        torch.tensor([[[1.0, 0.0], [1.0, 0.0]]]),
        torch.tensor([[[0.0, 1.0], [0.0, 1.0]]]),
    ]
    right = torch.tensor([[0.75, 0.25], [0.5, 0.5]])
    on = "the example by hand, two layers of one head"
    rollout.judge(student, Case(on, (hand,), right))
    generator = seeded(seed)
    heads, length = draw_sizes(generator, 2)
    for layers, h, t in (
        (3, heads, length),
        (1, heads, length + 1),
        (5, 2, length + 2),
    ):
        weights = [
            (2 * normal(generator, h, t, t)).softmax(-1).contiguous()
            for _ in range(layers)
        ]
        on = f"{layers} layers, each {(h, t, t)}"
        rollout.judge(student, Case(on, (weights,)))
    identity = [torch.eye(length).repeat(heads, 1, 1) for _ in range(4)]
    on = "4 layers in which every token attends to itself"
    rollout.judge(student, Case(on, (identity,), torch.eye(length)))
