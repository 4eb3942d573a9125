"""The mean of the real tokens, whatever stands in the padding."""

from collections.abc import Callable
from functools import partial

import torch

from autograder.chapters.class_token.chapter import chapter
from autograder.chapters.class_token.mask import SQUEEZED
from autograder.chapters.padding import (
    EMPTY,
    EMPTY_GRADIENT,
    mean_of_real,
    padded,
)
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.spec import CUT_OFF, Case, Function, errors_named
from autograder.interface import StudentFunction

means = Function("masked-mean", "masked_mean", mean_of_real)

# --- what goes wrong ------------------------------------------------------------------


def _real(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Bring the mask into the form (B, T, 1)."""
    return mask.mT.to(hidden.dtype)


def _everything(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return _real(hidden, torch.ones_like(mask))


def _padding(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return _real(hidden, ~mask)


def _in_front(hidden: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return _real(hidden, mask.sort(descending=True).values)


def averaged(
    hidden: torch.Tensor,
    mask: torch.Tensor,
    *,
    added: Callable = _real,
    counted: Callable = _real,
    total: Callable = lambda rows, real: rows.sum(1),
    number: Callable = lambda count, rows: count,
    least: Callable = lambda number: number.clamp(min=1),
    empty: Callable | None = None,
    form: Callable = lambda mean: mean,
) -> torch.Tensor:
    """Average with slips, which may be several.

    Args:
        hidden: (B, T, d).
        mask: (B, 1, T).
        added: 1 where a row is added up, of both, (B, T, 1).
        counted: 1 where it counts.
        total: of the rows, which are 0 where they are not added, and of these 1 and 0.
        number: what the total is divided by, of the counts (B, 1) and the rows.
        least: of that number.
        empty: of the vectors, what a sequence without real tokens gets.
        form: of the mean.
    """
    real = added(hidden, mask)
    rows = hidden * real
    divisor = number(counted(hidden, mask).sum(1), rows)
    mean = total(rows, real) / least(torch.as_tensor(divisor, dtype=hidden.dtype))
    if empty:
        mean = torch.where(mask.any(-1), mean, empty(hidden))
    return form(mean)


OF_ITS_OWN = (
    "one number of tokens for the whole batch",
    "Each sequence has a number of real tokens of its own: sum the mask along the "
    "positions only.",
)
NOTHING = (
    "0 tokens were divided by their number: 0/0 is NaN. Give the divisor a smallest "
    "value of 1, clamp(min=1); the sum is 0 and stays 0."
)
BATCH = (
    "the mean over the batch",
    "Axis 0 is the batch: different sentences were mixed. Positions are axis 1.",
)
INVERTED = (
    "mask inverted",
    "The padding was averaged. True means a real token.",
)
FIRST = (
    "the first rows in place of the real ones",
    "How many tokens are real was counted, and so many rows were taken from the front. "
    "Padding may come before or between real tokens: the mask says where.",
)
ZEROS = (
    "zeros are taken for padding",
    "Which positions are padding, the mask says. A number that is 0 counts like any "
    "other: count the entries of the mask.",
)
LARGEST = (
    "the maximum in place of the mean",
    "That is max pooling. Add the rows up and divide.",
)
UNDIVIDED: dict[str, Callable] = {"number": lambda count, rows: 1.0}
INSTEAD = (
    "padding is read for a sequence without real tokens",
    "A sequence without any real token has nothing to average: its vector is zeros. "
    "Whatever its padding holds must have no effect.",
)
SHOWS: dict[str, Callable] = {
    INSTEAD[0]: lambda hidden, mask: not mask.any(-1).all(),
    SQUEEZED[0]: lambda hidden, mask: mask.shape[-1] == 1 < len(mask),
}
for name, why, slip in (
    (
        "the mean runs over the padding, too",
        "All T positions were averaged, so the answer depends on how much padding "
        "happens to be in the batch. Only positions with True count.",
        {"added": _everything, "counted": _everything},
    ),
    (
        "the padding is added up, too",
        "The number leaves the padding out, the sum does not: put 0 where there is "
        "padding before you add up.",
        {"added": _everything},
    ),
    (*FIRST, {"added": _in_front}),
    (*INVERTED, {"added": _padding, "counted": _padding}),
    (
        INVERTED[0],
        "The padding was added up: masked_fill puts 0 where its mask is True, and here "
        "True means a real token.",
        {"added": _padding},
    ),
    (
        INVERTED[0],
        "The padding was counted. True means a real token.",
        {"counted": _padding},
    ),
    (
        "divided by T in place of the number of real tokens",
        "The sum leaves the padding out, the number does not: short sentences get "
        "short vectors. Divide by how many entries of the mask are True, sequence by "
        "sequence.",
        {"counted": _everything},
    ),
    (*OF_ITS_OWN, {"number": lambda count, rows: count.mean()}),
    (*OF_ITS_OWN, {"number": lambda count, rows: count.mean(), "least": torch.clone}),
    (*OF_ITS_OWN, {"number": lambda count, rows: count.sum()}),
    (*OF_ITS_OWN, {"number": lambda count, rows: count.max()}),
    (*OF_ITS_OWN, {"number": lambda count, rows: count.min()}),
    (*OF_ITS_OWN, {"number": lambda count, rows: count[:1]}),
    (*OF_ITS_OWN, {"number": lambda count, rows: count[-1:]}),
    (
        "the sum in place of the mean",
        "A sum grows with the length of the sentence. Divide by the number of real "
        "tokens.",
        UNDIVIDED,
    ),
    (
        "divided by the number of features",
        "The mean runs over the positions: divide by the number of real tokens.",
        {"number": lambda count, rows: rows.shape[2]},
    ),
    (
        "divided by the number of sequences",
        "The mean runs over the positions of each sequence: divide by its number of "
        "real tokens.",
        {"number": lambda count, rows: len(rows)},
    ),
    (
        "divided by the root of the number",
        "A mean is the sum divided by the number itself.",
        {"number": lambda count, rows: count.sqrt()},
    ),
    (*ZEROS, {"number": lambda count, rows: (rows != 0).sum(1)}),
    (*ZEROS, {"number": lambda count, rows: rows.any(-1).sum(1)[:, None]}),
    (
        "one token too many in the divisor",
        "n tokens are divided by n. Against 0/0 use clamp(min=1): it changes 0 and "
        "nothing else.",
        {"least": lambda number: number + 1},
    ),
    (
        "one token too few in the divisor",
        "n tokens are divided by n; n - 1 belongs to the variance.",
        {"least": lambda number: (number - 1).clamp(min=1)},
    ),
    (EMPTY, NOTHING, {"least": lambda number: number}),
    (*LARGEST, {"total": lambda rows, real: rows.amax(1)} | UNDIVIDED),
    (
        *LARGEST,
        {"total": lambda rows, real: torch.where(real > 0, rows, -torch.inf).amax(1)}
        | UNDIVIDED,
    ),
    (*BATCH, {"total": lambda rows, real: rows.mean(0)} | UNDIVIDED),
    (
        *BATCH,
        {"total": lambda rows, real: rows.mean(0), "added": _everything} | UNDIVIDED,
    ),
    (
        "the mean over the features",
        "The last axis has the features of one token. Positions are axis 1.",
        {"total": lambda rows, real: rows.mean(-1)} | UNDIVIDED,
    ),
    (
        "the rows are not averaged",
        "The padding is 0 now, but there are still T rows. Add them up and divide.",
        {"total": lambda rows, real: rows} | UNDIVIDED,
    ),
    (
        "position 0 in place of the mean",
        "That is the readout of a class token.",
        {"total": lambda rows, real: rows[:, 0], "added": _everything} | UNDIVIDED,
    ),
    (
        "the axis of the positions is kept",
        "One vector for each sequence, (B, d_model): sum without keepdim=True, or take "
        "the axis away at the end.",
        {"form": lambda mean: mean[:, None]},
    ),
    ("no gradient comes back", CUT_OFF, {"form": torch.detach}),
    (*INSTEAD, {"empty": lambda hidden: hidden.mean(1)}),
    (*INSTEAD, {"empty": lambda hidden: hidden.sum(1)}),
    (*INSTEAD, {"empty": lambda hidden: hidden[:, 0]}),
    (*SQUEEZED, {"number": lambda count, rows: count.sum()}),
    (*SQUEEZED, {"added": lambda hidden, mask: mask.sum()}),
    (
        *SQUEEZED,
        {"total": lambda rows, real: rows[:, 0], "added": _everything} | UNDIVIDED,
    ),
):
    means.mistake(name, why, when=SHOWS.get(name))(partial(averaged, **slip))


LATE = (
    EMPTY_GRADIENT,
    "The values are right, the backward pass is not: it runs through a 0/0 that was "
    "only replaced afterwards, and NaN times 0 stays NaN. Keep the division from being "
    "0/0.",
)


@means.mistake(*LATE)
def _(hidden, mask):
    mean = averaged(hidden, mask, least=torch.clone)
    return torch.where(mask.any(-1), mean, 0.0)


# --- the check ------------------------------------------------------------------------


@chapter.check(section="class-token-padding")
def masked_mean(student: StudentFunction, seed: int = 0) -> None:
    """The mean of the real tokens, whatever stands in the padding."""
    rows = [[2.0, 4.0], [6.0, 0.0], [10.0, 8.0], [10.0, 8.0]]
    zeros = [[0.0, 4.0], [6.0, 0.0], [0.0, 0.0], [9.0, 9.0]]
    for by_hand, count in ((rows, 2), (zeros, 3)):
        given = torch.tensor([by_hand]), torch.arange(4)[None, None] < count
        on = f"hidden {given[0].tolist()}, mask {given[1].tolist()}"
        means.judge(student, Case(on, given, what="the mean"))
    for hidden, mask, on in padded(seed):
        means.judge(student, Case(on, (hidden, mask), what="the mean"))
    cotangent = normal(seeded(seed + 1), len(hidden), hidden.shape[2])
    means.judge_gradient(student, Case(on, (hidden, mask)), cotangent)
    hidden = normal(seeded(seed + 2), *hidden.shape)
    mask = mask.clone()
    mask[1] = False
    on = "a batch in which sequence 1 has no real token"
    case = Case(on, (hidden, mask), what="the mean", unless_finite=(EMPTY, NOTHING))
    means.judge(student, case)
    case = Case(on, (hidden, mask), unless_finite=LATE)
    means.judge_gradient(student, case, cotangent)
    short = hidden[:3, :1, :2], torch.tensor([[[True]], [[False]], [[True]]])
    on = "three sequences of one token, one of them padding"
    with errors_named(("Error", *SQUEEZED)):
        means.judge(student, Case(on, short, what="the mean"))
