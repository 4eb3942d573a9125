"""What the checks of several chapters are made of: inputs, and known mistakes."""

from collections.abc import Callable, Iterable, Iterator

import torch

from autograder import expect
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


class Examples:
    """Expects answers, one example after the other, and names what is wrong.

    Two mistakes may give the same on a small example. Then the next ones decide, and
    only if none does, the first example speaks.
    """

    def __init__(self, **say: Data) -> None:
        self.say, self.unclear = say, []

    def equal(
        self, got: Data, right: Data, candidates: Iterable[Candidate], *, on: str
    ) -> None:
        """Expect the right answer, now or in ``finish``."""
        known = []
        if not expect.close(got, right):
            known = list(known_mistakes(candidates))
            names = {each.name for each in known if expect.close(got, each.value)}
            if len(names) > 1:
                self.unclear.append((got, right, known, on))
                return
        expect.equal(got, right, on=on, mistakes=known, **self.say)

    def finish(self) -> None:
        """Refuse what no example has made clear."""
        for got, right, known, on in self.unclear:
            expect.equal(got, right, on=on, mistakes=known, **self.say)
