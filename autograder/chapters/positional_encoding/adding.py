"""What both modules do with their table: its first rows are added."""

import random
from collections.abc import Callable

import torch
from torch import nn

from autograder import expect
from autograder.chapters.positional_encoding.forms import NEAR, wrong_axis_named
from autograder.exercise.inputs import normal
from autograder.exercise.spec import Case, Module
from autograder.expect import refuse_if
from autograder.interface import Data, StudentError, StudentInstance

Build = Callable[..., StudentInstance]


def first_rows(x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Take a row for each token."""
    if x.shape[-2] > len(table):
        raise ValueError(f"{x.shape[-2]} tokens, {len(table)} rows")
    return table[: x.shape[-2]]


def added(x: torch.Tensor, table: torch.Tensor, drop: Callable) -> torch.Tensor:
    """Return the sum after dropout."""
    return drop(x + first_rows(x, table))


def specifications() -> tuple[Module, Module]:
    """Make the same specification for both exercises: sinusoids, and trained rows."""

    def given(module: nn.Module) -> tuple:
        return module.table, module.dropout

    return (
        Module("sinusoidal-module", "SinusoidalPositionalEncoding", added, given=given),
        Module("learned-module", "LearnedPositionalEncoding", added, given=given),
    )


sinusoids, rows = specifications()


# --- the sum: what goes wrong ---------------------------------------------------------


def _misread(name: str, why: str, total: Callable, **options) -> None:
    """Add a mistake in the sum, a function of x and the table, to both exercises."""
    for spec in (sinusoids, rows):
        spec.mistake(name, why, **options)(lambda x, table, drop: drop(total(x, table)))


_misread(
    "added along the batch axis",
    "Every token of sentence b got row b. The batch comes first: row t belongs to "
    "x[:, t], so slice by x.shape[-2]. (With B = T the shapes would not tell.)",
    lambda x, table: x + table[: x.shape[0]].unsqueeze(1),
    when=lambda x, table, drop: x.dim() == 3,
)
_misread(
    "positions from 1",
    "The first token gets row 0 of the table: slice [:T].",
    lambda x, table: x + table[1 : x.shape[-2] + 1],
)
for number in (lambda length: length, lambda length: length - 1, lambda length: 0):
    _misread(
        "one row for all tokens",
        "Every token got the same row: an index picks a single one. Slice the first T.",
        lambda x, table, number=number: x + table[number(x.shape[-2])],
        when=lambda x, table, drop: x.shape[-2] < len(table),
    )
_misread(
    "the last rows in place of the first",
    "A sequence starts at position 0 whatever its length: the first T rows.",
    lambda x, table: x + table[-x.shape[-2] :],
)
_misread(
    "the first rows in the opposite order",
    "Row t belongs to token t: nothing is turned round.",
    lambda x, table: x + first_rows(x, table).flip(0),
)
AXIS = (
    "length read from the wrong axis",
    "The tokens lie along the last but one axis, however many axes come before it. "
    "Take T from x.shape[-2], not from x.shape[0] or x.shape[1].",
)
_misread(
    *AXIS,
    lambda x, table: x + table[: x.shape[1]],
    when=lambda x, table, drop: x.dim() != 3,
)
_misread(
    "scaled by the square root of the width",
    "The factor √d_model belongs to the embedding (chapter 1); this module only adds.",
    lambda x, table: x * x.shape[-1] ** 0.5 + first_rows(x, table),
)
_misread(
    "the encoding alone",
    "Return the sum of x and the encoding, not the encoding.",
    lambda x, table: first_rows(x, table).expand_as(x),
)
_misread(
    "nothing added",
    "The output equals x: add the first T rows.",
    lambda x, table: x.clone(),
)
_misread(
    "added twice",
    "The encoding is added once: in the sum, nowhere else.",
    lambda x, table: x + 2 * first_rows(x, table),
)


# --- the checks -----------------------------------------------------------------------

CAUSES = {
    "AttributeError": "If it speaks of Module.__init__: super().__init__() must be the "
    "first line of __init__. Otherwise forward uses a name that __init__ never set.",
    "TypeError": "If it says 'not callable': self.dropout must be the module "
    "nn.Dropout(dropout), not the number.",
    "RuntimeError": "The tokens lie along the last but one axis: T = x.shape[-2]. Add "
    "the first T rows of the table, table[:T].",
}


def judge_sum(
    spec: Module,
    module: StudentInstance,
    table: torch.Tensor,
    values: torch.Generator,
    draw: random.Random,
) -> None:
    """Expect x + table[:T] for inputs with one batch axis, with none, and with two."""
    limit, width = table.shape
    short, batch = draw.choice([5, 6]), draw.choice([2, 3])
    tens = 10.0 * torch.arange(1, batch + 1)[:, None, None]
    module.train(False)
    for x, said in (
        (tens.repeat(1, short, width), ": all 10 in the first sequence, then 20"),
        (normal(values, batch + 2, limit, width), ""),
        (normal(values, short, width), ""),
        (normal(values, 2, 1, short, width), ""),
        (normal(values, batch, 1, width), ""),
    ):
        on = f"x of shape {tuple(x.shape)}{said}; evaluation mode, max_length = {limit}"
        why = f"Expected x + table[:{x.shape[-2]}], the same for every leading index."
        given = table, nn.Dropout(0.0)
        asked = Case(on, (x,), given=given, tolerance=NEAR, what="the sum", why=why)
        with wrong_axis_named(*AXIS, axes=x.dim()):
            got = _of_full_table(module, x, limit, on)
        spec.compare(got, asked)


def _of_full_table(module, x: torch.Tensor, limit: int, on: str) -> Data:
    """Ask; name what refuses a sequence that just fits."""
    try:
        return module(x)
    except StudentError as error:
        refuse_if(
            error.kind == "ValueError" and x.shape[-2] == limit,
            "refused, although the table has a row for each token",
            "As many tokens as rows just fit: refuse T > max_length, not T >= "
            "max_length. The number to compare T with is the table's number of rows.",
            on=on,
            got=f"{error.kind}: {expect.describe_error(error)}",
            expected=f"a tensor of shape {tuple(x.shape)}",
        )
        raise


def expect_limit(build: Build, width: int, limit: int) -> None:
    """Expect ValueError one token beyond max_length, and where one row broadcasts."""
    for count, length in ((limit, limit + 1), (1, 3)):
        module = build(count)
        module.train(False)
        expect.raises(
            "ValueError",
            lambda module=module, length=length: module(torch.ones(2, length, width)),
            on=f"{length} tokens, max_length = {count}",
            why="Row T of a table with T rows does not exist. Wrapping round, "
            "repeating the last row or adding one row to all tokens gives two tokens "
            "the same position; compare T with the table and raise ValueError.",
            mistake="longer than the table, not refused",
        )


def judge_gradients(
    spec: Module,
    module: StudentInstance,
    table: torch.Tensor,
    values: torch.Generator,
) -> None:
    """Expect the gradient to reach x, and, where it is trained, the table."""
    module.train(False)
    x, cotangent = normal(values, 2, 3, 4, table.shape[1])
    given = table, nn.Dropout(0.0)
    case = Case(f"3 sequences of 4 tokens, {tuple(x.shape)}", (x,), given=given)
    spec.judge_gradient(module, case, cotangent, tolerance=NEAR)
