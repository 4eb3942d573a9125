"""What checks draw their inputs with."""

import torch


def seeded(seed: int) -> torch.Generator:
    """Return a source of random numbers of a check's own."""
    return torch.Generator().manual_seed(seed)


def draw_sizes(generator: torch.Generator, count: int, largest: int = 7) -> list[int]:
    """Draw sizes from 2 to the largest that are all different."""
    return (torch.randperm(largest - 1, generator=generator)[:count] + 2).tolist()


def draw_whole(generator: torch.Generator, below: int) -> int:
    """Draw a whole number from 0 to below the given one."""
    return int(torch.randint(below, (), generator=generator))


def normal(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Draw from the standard normal distribution."""
    return torch.randn(shape, generator=generator)


def draw_mask(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Draw a mask in which every row allows key 1 and forbids key 0."""
    mask = torch.rand(shape, generator=generator) < 0.6
    mask[..., 1], mask[..., 0] = True, False
    return mask
