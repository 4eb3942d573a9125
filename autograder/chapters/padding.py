"""Padded batches, and the mean of what is real in them."""

from collections.abc import Iterator

import torch

from autograder.exercise.inputs import draw_sizes, normal, seeded

GARBAGE = 1e6  # what stands in the padding, to see whether anybody reads it
NO_MASK = (
    "mask=None is not handled",
    "The mask is optional. Without one, every position counts as real.",
)
EMPTY = "NaN for a sequence without real tokens"
EMPTY_GRADIENT = "NaN gradient for a sequence without real tokens"


def draw_real(generator: torch.Generator, batch: int, length: int) -> torch.Tensor:
    """Draw a padding mask (B, 1, T): the last sequence full, the others not."""
    lengths = torch.randint(1, length, (batch,), generator=generator)
    lengths[-1] = length  # the first is short: of large tensors, its row is shown
    return (torch.arange(length) < lengths[:, None])[:, None]


def mean_of_real(
    hidden: torch.Tensor, mask: torch.Tensor | None = None
) -> torch.Tensor:
    """Average the rows that are real, one sequence after another."""
    if mask is None:
        return torch.stack([each.mean(0) for each in hidden])
    picked = [each[real[0]] for each, real in zip(hidden, mask, strict=True)]
    return torch.stack([rows.sum(0) / max(len(rows), 1) for rows in picked])


def padded(seed: int) -> Iterator[tuple[torch.Tensor, torch.Tensor, str]]:
    """Make padded batches: without padding, with some, scattered, with garbage."""
    generator = seeded(seed)
    for _ in range(2):
        batch, length, d = (size + 1 for size in draw_sizes(generator, 3, largest=8))
        hidden = normal(generator, batch, length, d)
        mask = draw_real(generator, batch, length)
        shapes = f"hidden {tuple(hidden.shape)}, mask {tuple(mask.shape)}"
        yield hidden, mask, f"{shapes}, some padding"
    yield hidden, torch.ones_like(mask), f"{shapes}, all real"
    scattered = torch.rand(mask.shape, generator=generator) < 0.5
    scattered[..., 0], scattered[..., -1] = False, True
    yield hidden, scattered, f"{shapes}, real tokens scattered"
    garbage = hidden.masked_fill(~mask.mT, GARBAGE)
    yield garbage, mask, f"{shapes}, {GARBAGE:g} in the padding"
