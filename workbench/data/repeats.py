"""Lines of random characters, each said twice: a text that one knows by copying alone.

What stands in the first half of a line cannot be known; in the second half everything
can, but how long the halves are. They are of different lengths, so that looking back by
a fixed distance is of no use: a model has to find what it has read before.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from workbench.model.language_model import LanguageModel
from workbench.use.looking import attention_weights

if TYPE_CHECKING:
    from workbench.data.text_tokenizer import TextTokenizer
    from workbench.model.models import Parts

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


@torch.no_grad()
def copying_scores(
    model: LanguageModel, tokenizer: TextTokenizer, parts: Parts
) -> dict[str, float]:
    """Say how well a model copies, and by how much of an induction head.

    Returns:
        ``copied``, of the characters that could be copied those that the model takes
        for the most probable, in percent; ``induction``, the largest score that
        exercise 11's induction_scores gives one of its heads, from 0 to 1.
    """
    ids = torch.tensor([tokenizer.encode(line) for line in asked()])  # (B, T)
    ids = ids.to(model.embedding.weight.device)
    best = model(ids)[:, HALF:-1].argmax(dim=-1)
    copied = (best == ids[:, HALF + 1 :]).float().mean()
    found = [parts.induction_scores(attention_weights(model, row), row) for row in ids]
    scores = torch.stack(found).mean(dim=0)  # (layers, heads)
    return {"copied": 100 * copied.item(), "induction": scores.max().item()}
