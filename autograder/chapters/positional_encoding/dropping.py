"""Dropout on the sum: what a module keeps of it in training."""

import itertools
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.positional_encoding.adding import (
    added,
    first_rows,
    specifications,
)
from autograder.chapters.positional_encoding.forms import NEAR
from autograder.exercise.spec import Module
from autograder.expect import refuse, refuse_if
from autograder.interface import Data, StudentInstance

PROBABILITY = 0.2  # that is not 1 − p, too

sinusoids, rows = specifications()

# --- what goes wrong ------------------------------------------------------------------

ON_THE_SUM = (
    "Dropout acts on the sum of embedding and encoding (section 5.4 of the paper): an "
    "entry is either 0 or the sum times 1 / (1 - p)."
)
RESCALED = (
    "What is kept must grow by 1 / (1 - p), so that the mean stays: nn.Dropout does it."
)
TOGETHER = (
    "entries are dropped together",
    "Each entry of the sum is dropped or kept on its own: draw a number for each of "
    "them, as nn.Dropout does, not one for a whole token, feature or batch.",
)


def _together(axis: int) -> Callable:
    """Draw one number for all entries along an axis."""

    def dropped(x, table, drop):
        total = x + first_rows(x, table)
        shape = [1 if at == axis else size for at, size in enumerate(total.shape)]
        return total * drop(torch.ones(shape))

    return dropped


for name, dropping, why in (
    (
        "no dropout",
        lambda x, table, drop: x + first_rows(x, table),
        "Make an nn.Dropout and apply it.",
    ),
    (
        "dropout without rescaling",
        lambda x, table, drop: (
            added(x, table, drop) * (1 - drop.p if drop.training else 1)
        ),
        RESCALED,
    ),
    (
        "divided by p in place of 1 − p",
        lambda x, table, drop: (
            added(x, table, drop) * ((1 - drop.p) / drop.p if drop.training else 1)
        ),
        RESCALED,
    ),
    (
        "dropout on the encoding only",
        lambda x, table, drop: x + drop(first_rows(x, table).expand_as(x)),
        ON_THE_SUM,
    ),
    (
        "dropout on the embeddings only",
        lambda x, table, drop: drop(x) + first_rows(x, table),
        ON_THE_SUM,
    ),
    (
        "dropout on embedding and encoding apart",
        lambda x, table, drop: drop(x) + drop(first_rows(x, table).expand_as(x)),
        ON_THE_SUM,
    ),
    *((TOGETHER[0], _together(axis), TOGETHER[1]) for axis in range(3)),
):
    for spec in (sinusoids, rows):
        spec.mistake(
            name, why, when=lambda x, table, drop: drop.training and drop.p > 0
        )(dropping)


# --- the check ------------------------------------------------------------------------


def judge_dropout(
    spec: Module,
    plain: StudentInstance,
    dropping: StudentInstance,
    table: torch.Tensor,
) -> None:
    """Expect dropout on the sum in training, none with p = 0 or in evaluation mode.

    Args:
        spec: what the exercise is checked by.
        plain: built with dropout left at 0.
        dropping: built with dropout = PROBABILITY.
        table: of both, (max_length, d_model), with entries from -1 to 1.
    """
    x = torch.full((8, *table.shape), 4.0)
    total = x + table  # at least 3, so that no kept entry is 0
    on = f"x of shape {tuple(x.shape)}, all 4; dropout = {PROBABILITY}, "
    dropping.train(False)
    _expect_all_kept(
        dropping(x),
        total,
        "dropout in evaluation mode",
        "After module.eval() nothing is dropped. F.dropout drops by default: pass "
        "training=self.training, or use an nn.Dropout made in __init__.",
        on=f"{on}evaluation mode",
    )
    plain.train(True)
    _expect_all_kept(
        plain(x),
        total,
        "dropout although dropout = 0",
        "Use the constructor's argument as the probability.",
        on=f"x of shape {tuple(x.shape)}, all 4; dropout left at 0, training mode",
    )
    dropping.train(True)
    got, on = dropping(x), f"{on}training mode"
    expect.tensor(got, shape=tuple(x.shape), dtype=x.dtype, on=on)
    _expect_some_dropped(spec, got, x, table, on)


def _expect_all_kept(got: Data, total: torch.Tensor, name: str, why: str, on: str):
    say = {"on": on, "got": _first_row(got), "expected": _first_row(total)}
    refuse_if(not expect.close(got, total, NEAR), name, why, **say)


def _expect_some_dropped(spec: Module, got, x, table, on: str) -> None:
    """Expect 0 or the rescaled sum, each entry for itself, and the share p of zeros."""
    growth = 1 / (1 - PROBABILITY)
    wanted = (
        f"each entry 0 or {growth:g} times that of the sum: {_first_row(x + table)}"
    )
    say = {"on": on, "got": _first_row(got), "expected": wanted}
    right, dropped = _among(got, _outcomes(added, x, table)), got == 0
    share, together = float(dropped.double().mean()), _alike_along_an_axis(dropped)
    too_many = share > 1.5 * PROBABILITY
    too_few = right and share < PROBABILITY / 2
    refuse_if(
        (too_many or too_few) and not together,
        "the share of dropped entries does not fit p",
        "Hand the constructor's dropout on to nn.Dropout: it is the probability of "
        "being dropped, not of being kept.",
        on=on,
        got=f"{share:.3f} of the entries are 0",
        expected=f"about {PROBABILITY} of them",
    )
    if not right:
        for each in spec.mistakes:
            if _among(got, _outcomes(each.answer, x, table)):
                refuse(each.name, each.why, **say)
        what = "the output in training mode is no sum after dropout"
        expect.true(False, what, why=ON_THE_SUM, **say)
    refuse_if(together, *TOGETHER, **say)


def _alike_along_an_axis(dropped: torch.Tensor) -> bool:
    return any(
        bool((dropped == dropped.narrow(axis, 0, 1)).all())
        for axis in range(dropped.dim())
    )


class _Pattern:
    """A dropout that keeps all of one input and nothing of another, as it is told."""

    p, training = PROBABILITY, True

    def __init__(self, kept: tuple[bool, ...]) -> None:
        self._kept = iter(kept)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, 0.0 if next(self._kept) else 1.0) / (1 - self.p)


def _outcomes(answer: Callable, x, table) -> Iterator[torch.Tensor]:
    """Yield what comes out where its first and second dropout keep, or drop, all."""
    for kept in itertools.product((False, True), repeat=2):
        yield answer(x, table, _Pattern(kept))


def _among(got: torch.Tensor, values: Iterator[torch.Tensor]) -> bool:
    """Say whether every entry equals that of one of the tensors."""
    near = [torch.isclose(got, value, rtol=NEAR, atol=NEAR) for value in values]
    return bool(torch.stack(near).any(0).all())


def _first_row(x: Data) -> str:
    if not isinstance(x, torch.Tensor) or not x.ndim or not x.numel():
        return expect.show(x)
    more = " …" if x.shape[-1] > 6 else ""
    return "first row " + expect.show(x.reshape(-1, x.shape[-1])[0][:6]) + more
