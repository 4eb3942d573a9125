"""The mean of the real tokens, whatever stands in the padding."""

from collections.abc import Callable

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


def counted(hidden: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Add the real tokens up, and count them."""
    real = mask.mT.to(hidden.dtype)
    return (hidden * real).sum(1), real.sum(1)


def divided_by(divisor: Callable) -> Callable:
    """Make a mean whose sum is divided by a function of the counts and T."""

    def answer(hidden, mask) -> torch.Tensor:
        total, count = counted(hidden, mask)
        return total / divisor(count, hidden.shape[1])

    return answer


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
for name, answer, why in (
    (
        "the mean runs over the padding, too",
        lambda hidden, mask: hidden.mean(1),
        "All T positions were averaged, so the answer depends on how much padding "
        "happens to be in the batch. Only positions with True count.",
    ),
    (
        "the first rows in place of the real ones",
        lambda hidden, mask: mean_of_real(hidden, mask.sort(descending=True).values),
        "How many tokens are real was counted, and so many rows were taken from the "
        "front. Padding may come before or between real tokens: the mask says where.",
    ),
    (
        "mask inverted",
        lambda hidden, mask: mean_of_real(hidden, ~mask),
        "The padding was averaged. True means a real token.",
    ),
    (
        "divided by T in place of the number of real tokens",
        divided_by(lambda count, length: length),
        "The sum leaves the padding out, the number does not: short sentences get "
        "short vectors. Divide by how many entries of the mask are True, sequence by "
        "sequence.",
    ),
    (OF_ITS_OWN[0], divided_by(lambda count, length: count.mean()), OF_ITS_OWN[1]),
    (OF_ITS_OWN[0], divided_by(lambda count, length: count.sum()), OF_ITS_OWN[1]),
    (OF_ITS_OWN[0], divided_by(lambda count, length: count.max()), OF_ITS_OWN[1]),
    (OF_ITS_OWN[0], divided_by(lambda count, length: count[:1]), OF_ITS_OWN[1]),
    (OF_ITS_OWN[0], divided_by(lambda count, length: count[-1:]), OF_ITS_OWN[1]),
    (
        "the sum in place of the mean",
        divided_by(lambda count, length: 1.0),
        "A sum grows with the length of the sentence. Divide by the number of real "
        "tokens.",
    ),
    (
        "one token too many in the divisor",
        divided_by(lambda count, length: count + 1),
        "n tokens are divided by n. Against 0/0 use clamp(min=1): it changes 0 and "
        "nothing else.",
    ),
    (
        "the maximum in place of the mean",
        lambda hidden, mask: hidden.masked_fill(~mask.mT, -torch.inf).amax(1),
        "That is max pooling. Add the rows up and divide.",
    ),
    (BATCH[0], lambda hidden, mask: (hidden * mask.mT).mean(0), BATCH[1]),
    (BATCH[0], lambda hidden, mask: hidden.mean(0), BATCH[1]),
    (
        "the mean over the features",
        lambda hidden, mask: (hidden * mask.mT).mean(-1),
        "The last axis has the features of one token. Positions are axis 1.",
    ),
    (
        "the axis of the positions is kept",
        lambda hidden, mask: mean_of_real(hidden, mask)[:, None],
        "One vector for each sequence, (B, d_model): sum without keepdim=True, or take "
        "the axis away at the end.",
    ),
    (
        "the rows are not averaged",
        lambda hidden, mask: hidden * mask.mT,
        "The padding is 0 now, but there are still T rows. Add them up and divide.",
    ),
    (
        "position 0 in place of the mean",
        lambda hidden, mask: hidden[:, 0],
        "That is the readout of a class token.",
    ),
    (EMPTY, divided_by(lambda count, length: count), NOTHING),
    (
        "no gradient comes back",
        lambda hidden, mask: mean_of_real(hidden, mask).detach(),
        CUT_OFF,
    ),
):
    means.mistake(name, why)(answer)

LATE = (
    EMPTY_GRADIENT,
    "The values are right, the backward pass is not: it runs through a 0/0 that was "
    "only replaced afterwards, and NaN times 0 stays NaN. Keep the division from being "
    "0/0.",
)

for filled in (
    lambda hidden: hidden.mean(1),
    lambda hidden: hidden.sum(1),
    lambda hidden: hidden[:, 0],
):
    means.mistake(
        "padding is read for a sequence without real tokens",
        "A sequence without any real token has nothing to average: its vector is "
        "zeros. Whatever its padding holds must have no effect.",
        when=lambda hidden, mask: not mask.any(-1).all(),
    )(
        lambda hidden, mask, filled=filled: torch.where(
            mask.any(-1), mean_of_real(hidden, mask), filled(hidden)
        )
    )

for answer in (
    divided_by(lambda count, length: count.sum()),
    lambda hidden, mask: hidden[:, 0] * mask.sum() / mask[:, 0].sum(1, True).clamp(1),
    lambda hidden, mask: hidden[:, 0],
):
    means.mistake(*SQUEEZED, when=lambda hidden, mask: mask.shape[-1] == 1 < len(mask))(
        answer
    )


@means.mistake(*LATE)
def _(hidden, mask):
    total, count = counted(hidden, mask)
    return torch.where(count > 0, total / count, 0.0)


# --- the check ------------------------------------------------------------------------


@chapter.check(section="class-token-padding")
def masked_mean(student: StudentFunction, seed: int = 0) -> None:
    """The mean of the real tokens, whatever stands in the padding."""
    hand = torch.tensor([[[2.0, 4.0], [6.0, 0.0], [10.0, 8.0], [10.0, 8.0]]])
    mask = torch.tensor([[[True, True, False, False]]])
    on = f"hidden {hand.tolist()}, mask {mask.tolist()}"
    means.judge(student, Case(on, (hand, mask), torch.tensor([[4.0, 2.0]])))
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
