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
    linear,
    misread,
    mistakes_in_answering,
)
from autograder.chapters.class_token.mean import masked_mean
from autograder.chapters.padding import NO_MASK, mean_of_real, padded
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Module
from autograder.interface import StudentFunction, StudentModule

head = Module(
    "masked-mean",
    "MeanHead",
    lambda hidden, mask, weight, bias: linear(mean_of_real(hidden, mask), weight, bias),
)

# --- what goes wrong ------------------------------------------------------------------


def _without_mask(made: Callable[[torch.Tensor], torch.Tensor]) -> Callable:
    """Read the mean by a mask that is made of the vectors where none is given."""
    return lambda hidden, mask: mean_of_real(
        hidden, made(hidden) if mask is None else mask
    )


for name, read, why in (
    (
        "the head reads position 0",
        lambda hidden, mask: hidden[:, 0],
        "That is ClassHead. Without a class token, position 0 is only the first word; "
        "this head averages all real tokens.",
    ),
    (
        "the mask is not used",
        lambda hidden, mask: hidden.mean(1),
        "The padding was averaged, too. Hand the mask on to masked_mean.",
    ),
    (
        "the padding is set to 0 and averaged",
        lambda hidden, mask: (hidden if mask is None else hidden * mask.mT).mean(1),
        "The divisor must be the number of real tokens, not T: use masked_mean.",
    ),
    (
        "the head reads every position",
        lambda hidden, mask: hidden,
        "There is one answer for each sequence, (B, classes): average first.",
    ),
    (
        "the sum in place of the mean",
        lambda hidden, mask: (hidden if mask is None else hidden * mask.mT).sum(1),
        "A sum grows with the length of the sentence: use masked_mean.",
    ),
    (
        "the maximum in place of the mean",
        lambda hidden, mask: hidden.amax(1),
        "That is max pooling. This head averages.",
    ),
    (
        "mask inverted",
        lambda hidden, mask: mean_of_real(hidden, mask if mask is None else ~mask),
        "The padding was averaged. True means a real token.",
    ),
    (NO_MASK[0], lambda hidden, mask: mean_of_real(hidden, ~~mask), NO_MASK[1]),
    (
        "without a mask nothing is real",
        _without_mask(lambda hidden: torch.zeros_like(hidden[:, None, :, 0]).bool()),
        "True means a real token, so a mask of False leaves the bias alone. Without a "
        "mask every position is real: torch.ones, of dtype torch.bool.",
    ),
    (
        "rows of zeros are taken for padding",
        _without_mask(lambda hidden: hidden.any(-1)[:, None]),
        "Without a mask every position is real, a row of zeros, too. What is padding, "
        "the numbers do not say.",
    ),
):
    misread(head, name, read, why)
head.mistake(
    "the bias is masked, too",
    "The logits of the tokens were averaged. That is the same as long as there is a "
    "real token; without any, the bias is lost. First the mean, then the linear map: "
    "it is also B products in place of B·T.",
)(lambda hidden, mask, weight, bias: mean_of_real(linear(hidden, weight, bias), mask))
mistakes_in_answering(head)
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
