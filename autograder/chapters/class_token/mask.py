"""The mask of a sequence that has got class tokens."""

import torch

from autograder.chapters.class_token.chapter import chapter
from autograder.chapters.padding import draw_real
from autograder.exercise.inputs import draw_sizes, seeded
from autograder.exercise.spec import Case, Function, errors_named, squeezed
from autograder.expect import refuse
from autograder.interface import Data, StudentFunction


def row_by_row(mask: torch.Tensor, count: int = 1) -> torch.Tensor:
    """Write the longer mask one sequence after another."""
    return torch.tensor([[[True] * count + row[0]] for row in mask.tolist()])


longer = Function("mask-with-class-token", "mask_with_class_token", row_by_row)

# --- what goes wrong ------------------------------------------------------------------


def real(mask: torch.Tensor, count: int) -> torch.Tensor:
    """Make the entries of the class tokens."""
    return mask.new_ones(len(mask), 1, count)


longer.mistake(
    "the mask is not extended",
    "The sequence has grown by count positions, the mask has not. The two shapes no "
    "longer fit; or, worse, they fit and every entry is one place off.",
)(lambda mask, count=1: mask.clone())
longer.mistake(
    "the mask is extended with False",
    "False means padding: nobody could attend to the class token, not even itself. It "
    "is always real, so it gets True.",
)(lambda mask, count=1: torch.cat((~real(mask, count), mask), -1))
longer.mistake(
    "the mask is extended at the end",
    "The class tokens come first, so their entries do, too. At the end, every "
    "token gets the entry of its neighbour, and the last padding is real.",
)(lambda mask, count=1: torch.cat((mask, real(mask, count)), -1))
for invert in (
    lambda mask, count=1: torch.cat((real(mask, count), ~mask), -1),
    lambda mask, count=1: ~row_by_row(mask, count),
):
    longer.mistake(
        "mask inverted",
        "True means a real token, before and after. (PyTorch's src_key_padding_mask is "
        "the other way round; invert only there.)",
    )(invert)
longer.mistake(
    "the first entry is copied",
    "That is True only where the first token is real. In an empty sequence it is not, "
    "and then nothing at all may be attended to. Class tokens are always real: True.",
)(lambda mask, count=1: torch.cat((mask[..., :1].expand(-1, -1, count), mask), -1))
longer.mistake(
    "one entry whatever count is",
    "Each of the count class tokens needs an entry of its own.",
)(lambda mask, count=1: row_by_row(mask))
longer.mistake(
    "no more new entries than the mask is long",
    "The new entries were cut out of the old mask, or made after a part of it, and it "
    "has T entries only. There may be more class tokens than that: make count entries.",
    when=lambda mask, count=1: count > mask.shape[-1],
)(lambda mask, count=1: row_by_row(mask, min(count, mask.shape[-1])))
longer.mistake(
    "the mask loses its middle axis",
    "Keep (B, 1, count + T): the axis in the middle is there to broadcast over the "
    "queries.",
)(lambda mask, count=1: row_by_row(mask, count)[:, 0])
longer.mistake(
    "the mask grows along the wrong axis",
    "Keys are the last axis, dim=-1. The axis in the middle stays at 1.",
)(lambda mask, count=1: torch.cat((torch.ones_like(mask).repeat(1, count, 1), mask), 1))
longer.mistake(
    "everything is real",
    "The padding must stay hidden: keep the entries of the old mask.",
)(lambda mask, count=1: torch.ones_like(row_by_row(mask, count)))
longer.mistake(
    "the old entries are made anew from their number",
    "Padding may be in front or in between, too: keep the entries of the old mask "
    "as they are, and put the new ones before them.",
    when=lambda mask, count=1: bool((mask[..., 1:] & ~mask[..., :-1]).any()),
)(
    lambda mask, count=1: (
        torch.arange(count + mask.shape[-1]) < mask.sum(-1, keepdim=True) + count
    )
)
ROWS = 8  # of a mask that are shown
NUMBERS = (
    "numbers in place of True and False",
    "torch.ones(...) gives numbers unless it is told dtype=torch.bool, and torch.cat "
    "of numbers and booleans gives numbers. Masks of the course are boolean: ~mask and "
    "masked_fill need that.",
)
longer.mistake(*NUMBERS)(lambda mask, count=1: row_by_row(mask, count).float())
SQUEEZED = squeezed("tokens", "for sequences of a single token")

# --- the check ------------------------------------------------------------------------


def expect_boolean(got: Data, on: str) -> None:
    """Expect True and False, if it is a mask at all."""
    if isinstance(got, torch.Tensor) and got.dtype != torch.bool:
        refuse(*NUMBERS, on=on, got=f"{got.dtype}", expected="torch.bool")


def rows(mask: torch.Tensor) -> str:
    """Write a mask as rows of 1 and 0."""
    written = mask.reshape(-1, mask.shape[-1]).int().tolist()
    lines = [" ".join(map(str, row)) for row in written[:ROWS]]
    more = ["…"] if len(written) > ROWS else []
    return "\n".join([f"shape {tuple(mask.shape)}", *lines, *more])


@chapter.check(section="class-token-mask")
def mask_with_class_token(student: StudentFunction, seed: int = 0) -> None:
    """(B, 1, T) becomes (B, 1, count + T), the new places True, the old unchanged."""
    generator = seeded(seed)
    hand = torch.tensor([[[True, True, True]], [[True, False, False]]])
    masks = [(hand, ())]
    for count in (1, 2, 3):
        batch, length = draw_sizes(generator, 2, largest=8)
        mask = draw_real(generator, batch, length)
        mask[-1] = False  # a sequence without any real token
        masks.append((mask, (count,)))
    single = torch.tensor([[[True]], [[False]], [[True]]])
    masks += [(draw_real(generator, 4, 2), (3,)), (single, (1,))]
    holes = torch.tensor([[[False, False, True, True]], [[True, False, True, False]]])
    masks.append((holes, (2,)))
    for mask, count in masks:
        accidents = [("Error", *SQUEEZED)] if mask is single else []
        with errors_named(*accidents):
            got = student(mask, *count)
        on = f"count={(*count, 1)[0]}, mask of {rows(mask)}"
        expect_boolean(got, on)
        longer.compare(got, Case(on, (mask, *count), what="the mask"))
