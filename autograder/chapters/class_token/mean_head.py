"""The head that reads the mean of the real tokens."""

from collections.abc import Callable

import torch

from autograder import expect
from autograder.chapters.class_token.chapter import chapter
from autograder.chapters.class_token.heads import (
    BIAS,
    WEIGHT,
    WHAT,
    expect_logits,
    expect_shapes,
    expect_start,
    first,
    linear,
)
from autograder.chapters.class_token.mean import NOTHING, masked_mean
from autograder.chapters.padding import EMPTY, NO_MASK, mean_of_real, padded
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Module
from autograder.interface import StudentFunction, StudentModule

head = Module(
    "masked-mean",
    "MeanHead",
    lambda hidden, mask, weight, bias: linear(mean_of_real(hidden, mask), weight, bias),
)

# --- what goes wrong ------------------------------------------------------------------


def _everything(hidden: torch.Tensor) -> torch.Tensor:
    return torch.ones_like(hidden[:, None, :, 0]).bool()


def _from_0(hidden: torch.Tensor) -> torch.Tensor:
    """Mark the first position alone."""
    return _everything(hidden) & (torch.arange(hidden.shape[1]) == 0)


def answered(
    hidden: torch.Tensor,
    mask: torch.Tensor | None,
    weight: torch.Tensor,
    bias: torch.Tensor,
    *,
    made: Callable = _everything,
    given: Callable = lambda mask: mask,
    read: Callable = mean_of_real,
    late: bool = False,
    biased: Callable = lambda bias: bias,
    form: Callable = lambda logits: logits,
) -> torch.Tensor:
    """Answer with slips, which may be several.

    Args:
        hidden: (B, T, d).
        mask: (B, 1, T), or None.
        weight: (d, classes).
        bias: (classes,).
        made: the mask where none is given, of hidden.
        given: what is made of one that is.
        read: one row of each sequence, of hidden and mask.
        late: whether the mean is taken of the logits.
        biased: what is added.
        form: of the logits.
    """
    mask = made(hidden) if mask is None else given(mask)
    if late:
        return form(read(linear(hidden, weight, biased(bias)), mask))
    return form(linear(read(hidden, mask), weight, biased(bias)))


POSITION_0 = "the head reads position 0"
LARGEST = (
    "the maximum in place of the mean",
    "That is max pooling. This head averages.",
)
SAID = {each.name: (each.name, each.why) for each in first.mistakes}
head.slips(
    answered,
    (
        POSITION_0,
        "That is ClassHead. Without a class token, position 0 is only the first word; "
        "this head averages all real tokens.",
        {"read": lambda hidden, mask: hidden[:, 0]},
    ),
    (
        POSITION_0,
        "Without a mask every position is real, not the first one alone.",
        {"made": _from_0},
    ),
    (
        "without a mask position 0 is left out",
        "There is no class token here: without a mask every position is real, the "
        "first one, too.",
        {"made": lambda hidden: ~_from_0(hidden)},
    ),
    (
        "without a mask nothing is real",
        "True means a real token, so a mask of False leaves the bias alone. Without a "
        "mask every position is real: torch.ones, of dtype torch.bool.",
        {"made": lambda hidden: ~_everything(hidden)},
    ),
    (
        "rows of zeros are taken for padding",
        "Without a mask every position is real, a row of zeros, too. What is padding, "
        "the numbers do not say.",
        {"made": lambda hidden: hidden.any(-1)[:, None]},
    ),
    (*NO_MASK, {"made": lambda hidden: ~~None}),
    (
        "mask ignored",
        "The padding was averaged, too. Hand the mask on to masked_mean.",
        {"given": torch.ones_like},
    ),
    (
        "mask inverted",
        "The padding was averaged. True means a real token.",
        {"given": torch.logical_not},
    ),
    (
        "the padding is set to 0 and averaged",
        "The divisor must be the number of real tokens, not T: use masked_mean.",
        {"read": lambda hidden, mask: (hidden * mask.mT).mean(1)},
    ),
    (
        "the head reads every position",
        "There is one answer for each sequence, (B, classes): average first.",
        {"read": lambda hidden, mask: hidden},
    ),
    (
        "the axis of the positions is kept",
        "There is one answer for each sequence, (B, classes): the mean has no axis of "
        "positions.",
        {"read": lambda hidden, mask: mean_of_real(hidden, mask)[:, None]},
    ),
    (
        "the sum in place of the mean",
        "A sum grows with the length of the sentence: use masked_mean.",
        {"read": lambda hidden, mask: (hidden * mask.mT).sum(1)},
    ),
    (*LARGEST, {"read": lambda hidden, mask: hidden.amax(1)}),
    (
        *LARGEST,
        {"read": lambda hidden, mask: hidden.where(mask.mT, -torch.inf).amax(1)},
    ),
    (
        EMPTY,
        NOTHING,
        {"read": lambda hidden, mask: (hidden * mask.mT).sum(1) / mask.mT.sum(1)},
    ),
    (
        "the bias is masked, too",
        "The logits of the tokens were averaged. That is the same as long as there is "
        "a real token; without any, the bias is lost. First the mean, then the linear "
        "map: it is also B products in place of B·T.",
        {"late": True},
    ),
    (*SAID["the bias is not added"], {"biased": torch.zeros_like}),
    (
        *SAID["probabilities in place of logits"],
        {"form": lambda logits: logits.softmax(-1)},
    ),
    (
        *SAID["logarithms of probabilities in place of logits"],
        {"form": lambda logits: logits.log_softmax(-1)},
    ),
    (*SAID["a class in place of logits"], {"form": lambda logits: logits.argmax(-1)}),
    (*SAID["squeeze takes the axis of the batch away"], {"form": torch.squeeze}),
    (
        *SAID["no gradient comes back"],
        {"read": lambda hidden, mask: mean_of_real(hidden.detach(), mask)},
    ),
)
head.accident("None", *NO_MASK)

# --- the check ------------------------------------------------------------------------


@chapter.check(section="class-token-mean")
def mean_head(
    student: StudentModule, masked_mean_student: StudentFunction, seed: int = 0
) -> None:
    """Logits of the masked mean; without a mask, of the mean of all."""
    with expect.relying_on(masked_mean, masked_mean_student):
        expect_mean_head(student, seed)


def expect_mean_head(student: StudentModule, seed: int) -> None:
    """Expect logits with and without a mask, also of a sequence of padding."""
    expect_shapes(student)
    generator = seeded(seed)
    hand = torch.tensor([[[2.0, 4.0], [6.0, 0.0], [10.0, 8.0], [10.0, 8.0]]])
    mask = torch.tensor([[[True, True, False, False]]])
    on = f"the example by hand, hidden {hand.tolist()}, mask {mask.tolist()}"
    expect_logits(
        head, student, Case(on, (hand, mask), given=(WEIGHT, BIAS), what=WHAT)
    )
    for hidden, mask, on in padded(seed):
        classes = draw_sizes(generator, 1)[0]
        given = normal(generator, hidden.shape[2], classes), normal(generator, classes)
        expect_logits(head, student, Case(on, (hidden, mask), given=given, what=WHAT))
        everything = hidden.clamp(-9, 9)  # of garbage the mean would be imprecise
        everything[0, -1] = 0.0
        on = f"hidden {tuple(hidden.shape)}, one row of zeros, mask=None"
        expect_logits(
            head, student, Case(on, (everything, None), given=given, what=WHAT)
        )
    mask = mask.clone()
    mask[1] = False
    on = "a batch in which sequence 1 has no real token: the bias is left"
    expect_logits(head, student, Case(on, (hidden, mask), given=given, what=WHAT))
    expect_start(student)
