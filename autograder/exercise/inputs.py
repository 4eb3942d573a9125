"""What checks draw their inputs with."""

import random
from typing import TypeAlias

import torch

WORD = 2**32  # below it are the numbers that the generator gives


class WholeNumbers:
    """A source of whole numbers that needs no PyTorch: it draws what PyTorch draws.

    PyTorch's generator is the Mersenne Twister, which Python has, too; only how a seed
    becomes its first state is another. Checks of what is no tensor draw from it, so
    that they run where PyTorch is not.
    """

    def __init__(self, seed: int) -> None:
        state = [seed % WORD]
        for i in range(1, 624):
            last = state[-1]
            state.append((1812433253 * (last ^ last >> 30) + i) % WORD)
        self._twister = random.Random()
        self._twister.setstate((3, (*state, len(state)), None))

    def below(self, limit: int) -> int:
        """Draw a whole number from 0 to below a limit."""
        return self._twister.getrandbits(32) % limit


Source: TypeAlias = torch.Generator | WholeNumbers


def seeded(seed: int) -> torch.Generator:
    """Return a source of random numbers of a check's own."""
    return torch.Generator().manual_seed(seed)


def draw_several(source: Source, low: int, high: int, count: int) -> list[int]:
    """Draw whole numbers from low to high - 1."""
    if isinstance(source, WholeNumbers):
        return [low + source.below(high - low) for _ in range(count)]
    return torch.randint(low, high, (count,), generator=source).tolist()


def draw_order(source: Source, count: int) -> list[int]:
    """Draw an order of the numbers from 0 to count - 1."""
    if not isinstance(source, WholeNumbers):
        return torch.randperm(count, generator=source).tolist()
    order = list(range(count))
    for i in range(count - 1):
        j = i + source.below(count - i)
        order[i], order[j] = order[j], order[i]
    return order


def draw_sizes(source: Source, count: int, largest: int = 7) -> list[int]:
    """Draw sizes from 2 to the largest that are all different."""
    return [2 + each for each in draw_order(source, largest - 1)[:count]]


def draw_whole(source: Source, below: int) -> int:
    """Draw a whole number from 0 to below the given one."""
    return draw_several(source, 0, below, 1)[0]


def normal(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Draw from the standard normal distribution."""
    return torch.randn(shape, generator=generator)


def draw_mask(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Draw a mask in which every row allows key 1 and forbids key 0."""
    mask = torch.rand(shape, generator=generator) < 0.6
    mask[..., 1], mask[..., 0] = True, False
    return mask
