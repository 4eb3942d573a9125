"""Lines of random characters, each said twice: a text that one knows by copying alone.

What stands in the first half of a line cannot be known; in the second half everything
can, but how long the halves are. They are of different lengths, so that looking back by
a fixed distance is of no use: a model has to find what it has read before.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

CHARACTERS = [chr(number) for number in range(33, 127)]  # what ASCII prints
SHORTEST, LONGEST = 6, 24  # characters in half a line; in it none occurs twice
LINES = {"train": 40_000, "validation": 300, "test": 600}
ASKED, HALF = 64, 20  # lines by which a model is scored, and the length of their halves


def told(split: str) -> str:
    """Return the lines of a split, the same in each run."""
    generator = random.Random(f"repeats {split}")
    halves = (
        "".join(draw(generator, generator.randint(SHORTEST, LONGEST)))
        for _ in range(LINES[split])
    )
    return "".join(f"{half}{half}\n" for half in halves)


def draw(generator: random.Random, length: int) -> list[str]:
    """Draw so many different characters."""
    return generator.sample(CHARACTERS, length)


def asked() -> Iterator[str]:
    """Yield lines that are in no split."""
    generator = random.Random("repeats asked")
    for _ in range(ASKED):
        yield 2 * "".join(draw(generator, HALF))
