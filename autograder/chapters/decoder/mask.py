"""The decoder's mask: no later position, and no padding."""

from collections.abc import Callable

import torch

from autograder.chapters.attention.masks import (
    ADDITIVE,
    NUMBERS,
    expect_boolean,
    lower,
    real,
)
from autograder.chapters.decoder.chapter import chapter
from autograder.exercise.inputs import draw_sizes, seeded
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction


def _right(lengths: torch.Tensor, width: int) -> torch.Tensor:
    allowed = torch.zeros(len(lengths), width, width, dtype=torch.bool)
    for sentence, length in enumerate(lengths.tolist()):
        for query in range(width):
            allowed[sentence, query, : min(query + 1, length)] = True
    return allowed


masks = Function("decoder-mask", "decoder_mask", _right)

# --- what goes wrong ------------------------------------------------------------------


def combined(name: str, why: str, *answers: Callable) -> None:
    """State a mistake by what becomes of the causal mask and the padding mask."""
    for answer in answers:
        masks.mistake(name, why)(
            lambda lengths, width, answer=answer: answer(
                lower(width), real(lengths, width)[:, None]
            )
        )


combined(
    "one mask is enough (or)",
    "A key has to pass both rules: combine the masks by &. With | a real sentence may "
    "look at its own future, because none of it is padding.",
    lambda causal, padding: causal | padding,
)
combined(
    "padding is not hidden",
    "Padding is still visible. The mask is (B, T, T): one matrix per sentence.",
    lambda causal, padding: causal,
    lambda causal, padding: causal.expand(len(padding), -1, -1),
)
combined(
    "the future is not hidden",
    "Nothing forbids position 0 to look at position 1. Add the causal mask.",
    lambda causal, padding: padding,
    lambda causal, padding: padding.expand(-1, len(causal), -1),
)
combined(
    "upper triangle",
    "Row i is the query, column j the key: query i may see the keys j ≤ i, below and "
    "on the diagonal. The upper triangle would show only the future.",
    lambda causal, padding: causal.T & padding,
)
combined(
    "off by one: the diagonal is blocked",
    "Each position may attend to itself. Without the diagonal the first position has "
    "no key at all.",
    lambda causal, padding: causal.tril(-1) & padding,
)
combined(
    "the rows of padding are empty",
    "The lengths say which *keys* are padding: they act on columns, (B, 1, T). Here "
    "rows are empty. Rows of padding are never read, but they need keys, too: a row "
    "without any has no weights (NaN in many libraries).",
    lambda causal, padding: causal & padding & padding.mT,
)
combined(
    "mask inverted",
    "In this course True means 'may attend'. PyTorch's nn.Transformer has it the other "
    "way round.",
    lambda causal, padding: ~(causal & padding),
)
for more in (-1, 1):
    masks.mistake(
        "the lengths are off by one",
        "Position p is real if p < length: positions are counted from 0.",
    )(lambda lengths, width, more=more: _right(lengths + more, width))
for name, why, triangle in (
    ("upper triangle", "Query i may see the keys j ≤ i.", lambda causal: causal.T),
    (
        "off by one: the diagonal is blocked",
        "Each position may attend to itself.",
        lambda causal: causal.tril(-1),
    ),
):
    for more in (-1, 1):
        masks.mistake(
            f"{name}, and the lengths are off by one",
            f"{why} And position p is real if p < length: both count from 0.",
        )(
            lambda lengths, width, more=more, triangle=triangle: (
                triangle(lower(width)) & real(lengths + more, width)[:, None]
            )
        )
masks.mistake(*NUMBERS)(lambda lengths, width: _right(lengths, width).int())
masks.mistake(*ADDITIVE)(lambda lengths, width: _right(lengths, width).log())
masks.mistake(
    "the longest length in place of max_length",
    "The batch is max_length wide, also where no sequence is as long as that.",
)(lambda lengths, width: _right(lengths, int(lengths.max())))

# --- the check ------------------------------------------------------------------------


@chapter.check(section="decoder-mask")
def decoder_mask(student: StudentFunction, seed: int = 0) -> None:
    """The example by hand, both rules at several sizes, compared entry by entry."""
    generator = seeded(seed)
    batch, width = draw_sizes(generator, 2)
    width += 2
    drawn = torch.randint(1, width, (batch,), generator=generator)
    drawn[1], drawn[0] = width, 1
    # the widest first, where all mistakes differ
    cases = (drawn, width + 2), (drawn, width), (torch.tensor([2, 3]), 3)
    for lengths, length in (*cases, (torch.tensor([1]), 1)):
        on = f"lengths {lengths.tolist()}, max_length {length}"
        got = student(lengths, length)
        expect_boolean(got, on)
        masks.compare(got, Case(on, (lengths, length), what="the mask"))
