"""A language model of two tables, which texts are written with."""

from dataclasses import dataclass

import torch

from autograder import expect
from autograder.exercise.inputs import normal
from autograder.exercise.spec import Function
from autograder.expect import show
from autograder.interface import Data, StudentInstance, StudentModule


@dataclass
class Language:
    """What the given model knows, as two tables of logits.

    Row i of ``table`` follows token i; row j of ``start`` is added in a text that
    begins with token j.
    """

    table: torch.Tensor
    start: torch.Tensor

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        """Map ids (B, T) to logits (B, T, V)."""
        return (self.table[ids] + self.start[ids[:, :1]]).double()

    def logits(self, ids: list[int]) -> torch.Tensor:
        """Return the logits of each position of one text, (T, V)."""
        return self(torch.tensor([ids]))[0]


def by_hand() -> Language:
    """The table that greedy search is tried on; an <eos> is never looked up."""
    rows = [[0, 0.5, 0.4, 0.1], [0, 0.2, 0.2, 0.6], [0, 0.1, 0, 0.9], [1, 0, 0, 0]]
    return Language(torch.tensor(rows).clamp_min(1e-9).log(), torch.zeros(4, 4))


def draw_language(
    generator: torch.Generator, size: int, end: float = 0.0, spread: float = 1.0
) -> Language:
    """Draw tables; ``end`` is added to the logits of the last token."""
    table = spread * normal(generator, size, size)
    start = spread * normal(generator, size, size)
    table[:, size - 1] += end
    return Language(table, start)


def load_model(table: StudentModule, language: Language) -> StudentInstance:
    """Build the notebook's model of these tables."""
    model = table.build(len(language.table))
    model.load_state_dict({"table": language.table, "start": language.start})
    return model


def most_probable(
    language: Language, prefix: list[int], eos_id: int, limit: int
) -> list[int]:
    """Follow the largest entry of each row."""
    if len(prefix) >= limit or (prefix[-1] == eos_id):
        return prefix
    row = language.logits(prefix)[-1].tolist()
    return most_probable(language, [*prefix, row.index(max(row))], eos_id, limit)


def expect_ids(got: Data, right: list[int], *, on: str, what: str) -> None:
    """Expect a list of whole numbers."""
    expect.form(got, right, what=what, on=on)
    say = {"on": on, "got": show(got), "expected": "a list of ids, ints"}
    why = "The function ends without `return`." if got is None else ""
    expect.true(isinstance(got, list), f"{what} is not a list", why=why, **say)
    for place, token in enumerate(got):
        expect.form(token, 0, what=f"{what}[{place}]", on=on)
    good = all(type(token) is int for token in got)
    expect.true(good, f"{what} holds something that is no id", **say)


def name_several(spec: Function) -> None:
    """Name what several numbers in place of one id give away."""
    why = (
        "One id is wanted, and here is a tensor with several entries: an argmax along "
        "an axis, over all positions. Take the last row first, logits[0, -1]."
    )
    for words in (
        "converted to Scalar",
        "to Python scalars",
        "elements cannot be converted",
    ):
        spec.accident(words, "several numbers in place of one id", why)
