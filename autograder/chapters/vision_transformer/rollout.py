"""Attention followed through all layers, past the residual connections."""

import itertools

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


# --- what goes wrong ------------------------------------------------------------------


def _identity(weights: list[torch.Tensor]) -> torch.Tensor:
    return torch.eye(weights[0].shape[-1])


def _means(weights: list[torch.Tensor]) -> list[torch.Tensor]:
    return [layer.mean(0) for layer in weights]


def _product(matrices: list[torch.Tensor], *, backwards: bool = False) -> torch.Tensor:
    result = torch.eye(matrices[0].shape[-1])
    for matrix in matrices:
        result = result @ matrix if backwards else matrix @ result
    return result


def _mixed(matrices: list[torch.Tensor]) -> list[torch.Tensor]:
    identity = torch.eye(matrices[0].shape[-1])
    return [0.5 * matrix + 0.5 * identity for matrix in matrices]


def _normalised(matrices: list[torch.Tensor], axis: int = -1) -> list[torch.Tensor]:
    return [matrix / matrix.sum(axis, keepdim=True) for matrix in matrices]


NO_RESIDUAL = (
    "no residual connection",
    "In every layer half of what a token carries comes past attention, by the residual "
    "connection: ½ A + ½ I. Without it, a dozen layers leave all rows alike.",
)
ONE_BARE = (
    "one layer without the residual connection",
    "Every layer has a residual connection, the first one, too.",
)
rollout.mistake(*NO_RESIDUAL)(lambda weights: _product(_means(weights)))
rollout.mistake(*NO_RESIDUAL)(lambda weights: _product(_means(weights), backwards=True))


@rollout.mistake(*ONE_BARE)
def _(weights):
    first, *others = _means(weights)
    return _product([first, *_mixed(others)] if others else [first])


@rollout.mistake(*ONE_BARE)
def _(weights):
    *others, last = _means(weights)
    return _product([*_mixed(others), last] if others else [last])


rollout.mistake(
    "multiplied in the wrong order",
    "Going backwards from the output, the last layer comes first: it is leftmost. "
    "rollout = mixed @ rollout, from the first layer on.",
)(lambda weights: _product(_mixed(_means(weights)), backwards=True))
NOT_NORMALISED = (
    "rows not normalised",
    "A + I has rows that sum to 2, so the product's rows sum to 2 to the number of "
    "layers. Halve both, or divide each row by its sum.",
)
for own in (1.0, 0.5):
    rollout.mistake(*NOT_NORMALISED)(
        lambda weights, own=own: _product(
            [matrix + own * _identity(weights) for matrix in _means(weights)]
        )
    )
rollout.mistake(
    "columns made to sum to 1, not rows",
    "Row i holds the shares of output i, and these sum to 1: divide by "
    ".sum(-1, keepdim=True), or take halves of A and I.",
)(lambda weights: _product(_normalised(_mixed(_means(weights)), axis=0)))
for name, joined in (("maximum", torch.amax), ("minimum", torch.amin)):
    for order in (
        lambda heads: _mixed(heads),
        lambda heads: _mixed(_normalised(heads)),
        lambda heads: _normalised(_mixed(heads)),
    ):
        rollout.mistake(
            f"the {name} over the heads in place of the mean",
            "The heads are averaged; a maximum or a minimum is no longer a mixture.",
        )(
            lambda weights, joined=joined, order=order: _product(
                order([joined(layer, 0) for layer in weights])
            )
        )


@rollout.mistake(
    "the heads averaged at the end",
    "Each layer's heads are averaged before the layers are multiplied: head 1 of one "
    "layer reads what all heads of the layer below have written.",
)
def _(weights):
    by_head = [_product(_mixed(each)) for each in zip(*weights, strict=True)]
    return torch.stack(by_head).mean(0)


rollout.mistake(
    "only the first head", "All heads have a say, each with the same weight."
)(lambda weights: _product(_mixed([layer[0] for layer in weights])))
rollout.mistake(
    "heads added, not averaged", "Divide by the number of heads: .mean(0)."
)(lambda weights: _product(_mixed([layer.sum(0) for layer in weights])))
rollout.mistake(
    "rows and columns exchanged", "Row i belongs to output i, column j to input j."
)(lambda weights: paths(weights).T)
MEAN = (
    "the mean of the layers in place of their product",
    "Paths through several layers multiply: a matrix product, not a mean.",
)
BY_ENTRY = (
    "multiplied entry by entry",
    "Layers are combined by @; * multiplies entry by entry.",
)
LAST = (
    "only the last layer",
    "Rollout goes through all layers, from the first to the last.",
)
for mistake, combine in (
    (MEAN, lambda layers: torch.stack(layers).mean(0)),
    (BY_ENTRY, lambda layers: torch.stack(layers).prod(0)),
    (LAST, lambda layers: layers[-1]),
):
    rollout.mistake(*mistake)(
        lambda weights, combine=combine: combine(_mixed(_means(weights)))
    )
    rollout.mistake(*mistake)(lambda weights, combine=combine: combine(_means(weights)))
for layers in (lambda heads: _mixed(heads), lambda heads: heads):
    rollout.mistake(*BY_ENTRY)(  # and the rows made to sum to 1 in the end
        lambda weights, layers=layers: _normalised(
            [torch.stack(layers(_means(weights))).prod(0)]
        )[0]
    )
rollout.mistake("only the first layer", LAST[1])(
    lambda weights: _mixed(_means(weights))[0]
)
for kept in (slice(1, None), slice(None, -1)):
    rollout.mistake(
        "a layer is left out", LAST[1], when=lambda weights: len(weights) > 1
    )(lambda weights, kept=kept: _product(_mixed(_means(weights))[kept]))
ONCE = (
    "the identity only once",
    "Every layer has a residual connection: mix before you multiply.",
)
for backwards in (False, True):
    rollout.mistake(*ONCE)(
        lambda weights, backwards=backwards: _mixed(
            [_product(_means(weights), backwards=backwards)]
        )[0]
    )
for joined in (torch.amax, torch.amin):
    for order in (lambda heads: heads, lambda heads: _normalised(heads)):
        rollout.mistake(
            ONCE[0],
            f"{ONCE[1]} And the heads are averaged; a maximum or a minimum is no "
            "longer a mixture.",
        )(
            lambda weights, joined=joined, order=order: _mixed(
                [_product(order([joined(layer, 0) for layer in weights]))]
            )[0]
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
