"""What the checks of several chapters are made of: inputs, and known mistakes."""

from collections.abc import Callable, Iterable, Iterator

import torch

from autograder.expect import CheckFailure, Mistake
from autograder.interface import Data

Candidate = tuple[str, Callable[[], Data], str]  # a mistake, what it gives, why


def seeded(seed: int) -> torch.Generator:
    """Return a source of random numbers of a check's own."""
    return torch.Generator().manual_seed(seed)


def draw_sizes(generator: torch.Generator, count: int, largest: int = 7) -> list[int]:
    """Draw sizes from 2 to the largest that are all different."""
    return (torch.randperm(largest - 1, generator=generator)[:count] + 2).tolist()


def normal(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Draw from the standard normal distribution."""
    return torch.randn(shape, generator=generator)


def draw_mask(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Draw a mask in which every row allows key 1 and forbids key 0."""
    mask = torch.rand(shape, generator=generator) < 0.6
    mask[..., 1], mask[..., 0] = True, False
    return mask


def known_mistakes(candidates: Iterable[Candidate]) -> Iterator[Mistake]:
    """Compute what each mistake gives; leave out those that do not fit the input.

    Nothing is computed before it is asked for, so a right answer costs nothing.
    """
    for name, answer, why in candidates:
        try:
            value = answer()
        except (RuntimeError, IndexError, ValueError, ZeroDivisionError):
            continue
        yield Mistake(name, value, why)


def refuse(name: str, why: str, *, on: str, got: str = "", expected: str = "") -> None:
    """Reject an answer as the known mistake of this name."""
    raise CheckFailure(name, on=on, got=got, expected=expected, why=why, mistake=name)


def refuse_if(condition: bool, name: str, why: str, **say: str) -> None:
    """Reject an answer as a known mistake, if it is one."""
    if condition:
        refuse(name, why, **say)
