"""A step of AdamW."""

from collections.abc import Callable, Iterator

import torch
from torch.optim.adamw import adamw as torch_adamw

from autograder.chapters.language_model.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function, expect_several, judge_parts
from autograder.interface import StudentFunction

Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
PARTS = ("the parameter", "the first moment", "the second moment")
BETAS, EPS, DECAY = (0.9, 0.999), 1e-8, 0.01  # as in PyTorch


def by_torch(
    parameter: torch.Tensor,
    gradient: torch.Tensor,
    first: torch.Tensor,
    second: torch.Tensor,
    step: int,
    rate: float,
    betas: tuple[float, float] = BETAS,
    eps: float = EPS,
    weight_decay: float = DECAY,
) -> Three:
    """Let what torch.optim.AdamW is made of take the step, in double precision.

    The optimizer itself would import a compiler, which takes seconds.
    """
    parameter, first, second = (x.double() for x in (parameter, first, second))
    torch_adamw(
        [parameter],
        [gradient.double()],
        [first],
        [second],
        [],
        [torch.tensor(step - 1.0)],
        foreach=False,
        amsgrad=False,
        beta1=betas[0],
        beta2=betas[1],
        lr=rate,
        weight_decay=weight_decay,
        eps=eps,
        maximize=False,
    )
    return parameter.float(), first.float(), second.float()


adamw = Function("adamw-step", "adamw_step", by_torch)


# --- what goes wrong ------------------------------------------------------------------


def _decayed(parameter: torch.Tensor, rate: float, decay: float) -> torch.Tensor:
    return parameter * (1 - rate * decay)


def take(
    parameter: torch.Tensor,
    gradient: torch.Tensor,
    first: torch.Tensor,
    second: torch.Tensor,
    step: int,
    rate: float,
    betas: tuple[float, float] = BETAS,
    eps: float = EPS,
    weight_decay: float = DECAY,
    *,
    mixed_in: bool = False,
    mean: Callable = lambda old, new, beta: beta * old + (1 - beta) * new,
    power: Callable = lambda value, step: value**step,
    divide: Callable = lambda moment, left: moment / (1 - left),
    corrected_by: Callable = lambda betas: betas,
    size: Callable = lambda gradient, first: gradient.square(),
    correct: tuple[bool, bool] = (True, True),
    root: Callable = lambda second, eps: second.sqrt() + eps,
    decay: Callable = _decayed,
    sign: int = -1,
    give: Callable = lambda three, corrected: three,
) -> tuple:
    """Take a step by rules that can be varied."""
    if mixed_in:
        gradient = gradient + weight_decay * parameter
    first = mean(first, gradient, betas[0])
    second = mean(second, size(gradient, first), betas[1])
    ahead, spread = (
        divide(moment, power(beta, step)) if wanted else moment
        for moment, beta, wanted in zip(
            (first, second), corrected_by(betas), correct, strict=True
        )
    )
    start = parameter if mixed_in else decay(parameter, rate, weight_decay)
    moved = start + sign * rate * ahead / root(spread, eps)
    return give((moved, first, second), (ahead, spread))


DECAY_FIRST = (
    "In AdamW the decay has nothing to do with the gradient: the parameter itself is "
    "made smaller by the share rate · weight_decay."
)
adamw.slips(
    take,
    (
        "the decay is mixed into the gradient",
        f"That is Adam with an L2 penalty. {DECAY_FIRST} In the gradient it would be "
        "divided by the root, and parameters with large gradients would hardly decay.",
        {"mixed_in": True},
    ),
    (
        "no weight decay",
        DECAY_FIRST,
        {"decay": lambda parameter, rate, decay: parameter},
    ),
    (
        "the decay is not multiplied by the rate",
        "When the rate falls, the decay has to fall with it: parameter · (1 − rate · "
        "weight_decay).",
        {"decay": lambda parameter, rate, decay: parameter * (1 - decay)},
    ),
    (
        "the decay lets the parameter grow",
        "Decay makes a parameter smaller: 1 minus rate · weight_decay.",
        {"decay": lambda parameter, rate, decay: parameter * (1 + rate * decay)},
    ),
    (
        "no bias correction",
        "Both moments begin at 0 and are too small at first. Divide them by 1 − β^t.",
        {"correct": (False, False)},
    ),
    (
        "only the first moment is corrected",
        "The second moment begins at 0, too: divide it by 1 − β₂^t.",
        {"correct": (True, False)},
    ),
    (
        "only the second moment is corrected",
        "The first moment begins at 0, too: divide it by 1 − β₁^t.",
        {"correct": (False, True)},
    ),
    (
        "multiplied by the correction",
        "The moments are too small at first. Multiplied by 1 − β^t they get smaller "
        "still: divide.",
        {"divide": lambda moment, left: moment * (1 - left)},
    ),
    (
        "the corrections exchanged",
        "The first moment is corrected with betas[0], the second with betas[1].",
        {"corrected_by": lambda betas: betas[::-1]},
    ),
    (
        "one beta for both corrections",
        "The first moment is corrected with betas[0], the second with betas[1].",
        {"corrected_by": lambda betas: (betas[0], betas[0])},
    ),
    (
        "one beta for both corrections",
        "The first moment is corrected with betas[0], the second with betas[1].",
        {"corrected_by": lambda betas: (betas[1], betas[1])},
    ),
    (
        "the steps are counted from 0",
        "The first step has the number 1, and `step` says the number: β^step. With "
        "step − 1 the first step would divide by 1 − β⁰ = 0.",
        {"power": lambda beta, step: beta ** (step - 1)},
    ),
    (
        "the power is step + 1",
        "`step` is the number of this very step, 1 at the first one: β^step.",
        {"power": lambda beta, step: beta ** (step + 1)},
    ),
    (
        "the correction without its power",
        "1 − β is right at the first step only. After t steps the moments are too "
        "small by the factor 1 − β^t.",
        {"power": lambda beta, step: beta},
    ),
    (
        "β · t in place of β^t",
        "Each step multiplies what is left of the beginning by β: a power, β**step.",
        {"power": lambda beta, step: beta * step},
    ),
    (
        "eps inside the root",
        "√(v + ε) is far larger than √v + ε if v is small: √1e-8 is 1e-4. Add eps "
        "after the root.",
        {"root": lambda second, eps: (second + eps).sqrt()},
    ),
    (
        "no eps",
        "A parameter whose gradients have all been 0 has the second moment 0, and 0/0 "
        "is NaN. Add eps to the root.",
        {"root": lambda second, eps: second.sqrt()},
    ),
    (
        "the root is missing",
        "The second moment is a square. Only its root has the unit of the gradient, so "
        "that the quotient is about 1.",
        {"root": lambda second, eps: second + eps},
    ),
    (
        "against the descent",
        "The gradient points uphill: the step is subtracted.",
        {"sign": 1},
    ),
    (
        "the new gradient enters whole",
        "A mean of old and new: β · old + (1 − β) · new. Without 1 − β the moments "
        "grow to ten and a thousand times their size.",
        {"mean": lambda old, new, beta: beta * old + new},
    ),
    (
        "β weighs the new gradient",
        "β is how much of the old mean stays, 0.9 say. The new gradient gets 1 − β.",
        {"mean": lambda old, new, beta: (1 - beta) * old + beta * new},
    ),
    (
        "the gradient is not squared",
        "The second moment is the mean of the squares.",
        {"size": lambda gradient, first: gradient},
    ),
    (
        "absolute values in place of squares",
        "The second moment is the mean of the squares.",
        {"size": lambda gradient, first: gradient.abs()},
    ),
    (
        "the first moment is squared",
        "The second moment is the mean of the gradient's squares, not the square of "
        "its mean: gradients of both signs would make it vanish.",
        {"size": lambda gradient, first: first.square()},
    ),
    (
        "corrected moments are returned",
        "The correction is for this step alone. What goes into the next step are the "
        "moments as they were before it.",
        {"give": lambda three, corrected: (three[0], *corrected)},
    ),
    (
        "moments exchanged",
        "First the parameter, then the first moment, then the second.",
        {"give": lambda three, corrected: (three[0], three[2], three[1])},
    ),
)


@adamw.mistake(
    "the betas are exchanged",
    "betas[0] belongs to the first moment, betas[1] to the second.",
)
def _(parameter, gradient, first, second, step, rate, betas, *rest):
    return take(parameter, gradient, first, second, step, rate, betas[::-1], *rest)


@adamw.mistake(
    "the decay is divided by the root",
    f"{DECAY_FIRST} Only the first moment is divided by the root of the second.",
)
def _(parameter, gradient, first, second, step, rate, betas, eps, weight_decay):
    first, second = take(parameter, gradient, first, second, step, rate, betas)[1:]
    ahead = first / (1 - betas[0] ** step) + weight_decay * parameter
    root = (second / (1 - betas[1] ** step)).sqrt() + eps
    return parameter - rate * ahead / root, first, second


for name, why, root in (
    (
        "the second moment is corrected outside the root",
        "Correct the second moment first, then take the root: √(v / (1 − β₂^t)), not "
        "√v / (1 − β₂^t).",
        lambda second, left, eps: second.sqrt() / left + eps,
    ),
    (
        "eps is added before the correction",
        "So some libraries do it, with both corrections in the rate: eps then counts "
        "more at first. Here the second moment is corrected first: √(v / (1 − β₂^t)) + "
        "eps.",
        lambda second, left, eps: (second.sqrt() + eps) / left**0.5,
    ),
):

    @adamw.mistake(name, why)
    def _(parameter, gradient, first, second, step, rate, betas, eps, decay, root=root):
        given = gradient, first, second, step, rate, betas, eps
        _, first, second = take(parameter, *given)
        divisor = root(second, 1 - betas[1] ** step, eps)
        moved = rate * first / (1 - betas[0] ** step) / divisor
        return _decayed(parameter, rate, decay) - moved, first, second


@adamw.mistake(
    "the step comes before the decay",
    "The parameter as it was decays, not the one that has been moved: PyTorch decays "
    "first.",
)
def _(parameter, gradient, first, second, step, rate, betas, eps, weight_decay):
    given = gradient, first, second, step, rate, betas, eps
    moved, *moments = take(parameter, *given, 0.0)
    return _decayed(moved, rate, weight_decay), *moments


@adamw.mistake(
    "PyTorch's own settings", "Use betas, eps and weight_decay as they are passed."
)
def _(parameter, gradient, first, second, step, rate, *_):
    return take(parameter, gradient, first, second, step, rate)


# --- the check ------------------------------------------------------------------------


def _path(
    on: str, parameter: torch.Tensor, gradients: list, rate: float, *options: object
) -> Iterator[Case]:
    """Give several steps, each from where PyTorch's step before has led."""
    three = parameter, torch.zeros_like(parameter), torch.zeros_like(parameter)
    for number, gradient in enumerate(gradients, start=1):
        inputs = three[0], gradient, *three[1:], number, rate, *options
        three = by_torch(*inputs)
        yield Case(f"{on}, step {number}", inputs, three)


def _cases(seed: int) -> Iterator[Case]:
    """By hand, a path of five steps, far on the way, tiny gradients, none at all."""
    generator = seeded(seed)
    by_hand = [torch.tensor([0.5]), torch.tensor([-1.0])]
    options = BETAS, EPS, 0.5
    yield from _path("the example by hand", torch.tensor([2.0]), by_hand, 0.1, *options)
    rows, columns, length = draw_sizes(generator, 3)
    for shape, betas in (((rows, columns), (0.8, 0.95)), ((length,), (0.9, 0.98))):
        gradients = [3 * normal(generator, *shape) for _ in range(5)]
        gradients[2].zero_()
        options = betas, 0.01, 0.3
        start = normal(generator, *shape)
        yield from _path(
            f"a parameter of shape {shape}", start, gradients, 0.2, *options
        )
    shape = columns, rows
    first, second = normal(generator, *shape), normal(generator, *shape).square()
    given = normal(generator, *shape), normal(generator, *shape), first, second
    yield Case("step 700", (*given, 700, 0.05, (0.9, 0.999), 1e-3, 0.1))
    small = 1e-3 * normal(generator, length)
    zeros = torch.zeros(length)
    given = normal(generator, length), small, zeros, zeros
    yield Case("gradients as small as eps", (*given, 1, 0.1, (0.7, 0.9), 1e-3, 0.2))
    given = normal(generator, length), zeros, zeros, zeros
    yield Case("gradients that are 0", (*given, 1, 0.1, (0.9, 0.99), 1e-8, 0.2))


@chapter.check(section="language-model-optimizers")
def adamw_step(student: StudentFunction, seed: int = 0) -> None:
    """By hand, and equal to torch.optim.AdamW over several steps."""
    for case in _cases(seed):
        got = expect_several(student(*case.inputs), PARTS, case.on)
        judge_parts(adamw, got, case, PARTS)
