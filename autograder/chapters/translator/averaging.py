"""The average of several checkpoints."""

from collections.abc import Callable

import torch
from torch import nn

from autograder import expect
from autograder.chapters.translator.chapter import chapter
from autograder.exercise.copies import expect_new
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function, judge_parts
from autograder.expect import refuse_if
from autograder.interface import Data, StudentFunction

State = dict[str, torch.Tensor]
COUNTERS = (300, 520, 110, 240)  # that of the last is not the largest
STAYS = {
    torch.float32: (
        "the mean stays float32",
        "Add in float32, then return to the type that the tensors had: "
        ".to(last.dtype).",
    ),
    torch.float64: (
        "the mean stays float64",
        "After adding, return to the type that the tensors had: .to(last.dtype).",
    ),
}
COUNTER = "A counter is no weight: keep that of the last checkpoint."


def by_averaged_model(states: list[State]) -> State:
    """Let PyTorch's own averaged model do it, tensor by tensor, in double precision."""
    found = {}
    for name, last in states[-1].items():
        found[name] = last
        if last.is_floating_point():
            modules = [nn.ParameterList([state[name].double()]) for state in states]
            mean = torch.optim.swa_utils.AveragedModel(modules[0])
            for module in modules:
                mean.update_parameters(module)
            found[name] = mean.module[0].detach().to(last.dtype)
    return found


averages = Function(
    "average-states",
    "average_states",
    by_averaged_model,
    accidents=[("floating point or complex dtype", "integers averaged", COUNTER)],
)


# --- what goes wrong ------------------------------------------------------------------


def _sum(values: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack(values).float().sum(dim=0)


def _mean(values: list[torch.Tensor]) -> torch.Tensor:
    return _sum(values) / len(values)


def combined(
    states: list[State],
    *,
    combine: Callable = _mean,
    back: Callable = lambda mean, last: mean.to(last.dtype),
    counter: Callable = lambda values, mean: values[-1].clone(),
    averaged: Callable = lambda name, value: value.is_floating_point(),
    kept: Callable = lambda name, value: True,
) -> State:
    """Combine states, name by name, with slips, which may be several.

    Args:
        states: the checkpoints.
        combine: makes one tensor of several.
        back: brings it into the type of the last.
        counter: makes one tensor of those that are not averaged; it is told what
            combines the others, too.
        averaged: whether a tensor is averaged.
        kept: whether a tensor is in the result.
    """
    found = {}
    for name, last in states[-1].items():
        values = [state[name] for state in states]
        if averaged(name, last):
            found[name] = back(combine(values), last)
        elif kept(name, last):
            found[name] = counter(values, combine)
    return found


def _steps(step: Callable, there: int = 1) -> Callable:
    """Combine one after the other, beginning with the first, or with zeros.

    Args:
        step: makes of what there is, of the next, and of their number what there is.
        there: how many are there before the first step, 1 or 0.
    """

    def combine(values: list[torch.Tensor]) -> torch.Tensor:
        found = values[0].float() * there
        for each in values[there:]:
            found = step(found, each.float(), len(values))
        return found

    return combine


HALVES = (
    "an average of averages",
    "Half of it is the last checkpoint, an eighth or less the first. Add them all, "
    "then divide once.",
)
EACH = (
    "divided in each step",
    "What was added first is then divided several times. Add them all, then divide "
    "once.",
)
MOVING = (
    "a moving average in place of the mean",
    "In it the checkpoints have different weights. Add them all, then divide once.",
)
FIRST_OUT = (
    "the first checkpoint is left out",
    "All of them have the same part. Does a loop begin at the second with a sum of 0?",
)
LAST_OUT = "the last checkpoint is left out", "All of them have the same part."
FIRST_TWICE = (
    "the first checkpoint counts twice",
    "A sum that begins with the first state has it already: go on with the second.",
)
ONLY_FIRST = "only the first checkpoint", "The others have no part in it."
HALF = (
    "added up in half precision",
    "float16 ends at 65504, and the sum is larger than the mean. Convert with .float() "
    "before adding, and back after dividing.",
)
INTEGERS = "integers averaged", COUNTER
ANOTHER = "the counter of another checkpoint", COUNTER
COPIED = (
    "half precision is copied, not averaged",
    "float16 and bfloat16 are floating-point numbers, too: is_floating_point() knows "
    "them all.",
)
averages.slips(
    combined,
    (*HALF, {"combine": lambda values: sum(values[1:], values[0]) / len(values)}),
    ("added, not averaged", "Divide by the number of checkpoints.", {"combine": _sum}),
    (
        "divided by one too few",
        "A mean divides by the number of checkpoints.",
        {"combine": lambda values: _sum(values) / (len(values) - 1)},
    ),
    (
        "divided by one too many",
        "A mean divides by the number of checkpoints.",
        {"combine": lambda values: _sum(values) / (len(values) + 1)},
    ),
    (
        "divided by 3, however many there are",
        "The example has three checkpoints. A mean divides by their number.",
        {"combine": lambda values: _sum(values) / 3},
    ),
    (*HALVES, {"combine": _steps(lambda mean, x, n: (mean + x) / 2)}),
    (*HALVES, {"combine": _steps(lambda mean, x, n: (mean + x) / 2, 0)}),
    (*EACH, {"combine": _steps(lambda total, x, n: (total + x) / n)}),
    (*EACH, {"combine": _steps(lambda total, x, n: (total + x) / n, 0)}),
    (*MOVING, {"combine": _steps(lambda mean, x, n: mean + (x - mean) / n)}),
    *(
        (*MOVING, {"combine": _steps(lambda mean, x, n, a=a: a * mean + (1 - a) * x)})
        for a in (0.1, 0.9, 0.99, 0.999)
    ),
    (*FIRST_OUT, {"combine": lambda values: _mean(values[1:])}),
    (*FIRST_OUT, {"combine": lambda values: _mean(values) - values[0] / len(values)}),
    (*LAST_OUT, {"combine": lambda values: _mean(values[:-1])}),
    (*LAST_OUT, {"combine": lambda values: _mean(values) - values[-1] / len(values)}),
    (
        *FIRST_TWICE,
        {"combine": lambda values: _sum([values[0], *values]) / len(values)},
    ),
    (*FIRST_TWICE, {"combine": lambda values: _mean([values[0], *values])}),
    (
        "the median in place of the mean",
        "Return the mean of the values.",
        {"combine": lambda values: torch.stack(values).float().median(dim=0).values},
    ),
    (
        "only the last checkpoint",
        "The others have no part in it. Is the result written anew in each turn?",
        {"combine": lambda values: values[-1].clone()},
    ),
    (*ONLY_FIRST, {"combine": lambda values: values[0].clone()}),
    (
        *ONLY_FIRST,
        {
            "combine": lambda values: values[0].clone(),
            "counter": lambda values, mean: values[0].clone(),
        },
    ),
    (*STAYS[torch.float32], {"back": lambda mean, last: mean}),
    # which is refused
    (*INTEGERS, {"counter": lambda values, mean: torch.stack(values).mean()}),
    (*INTEGERS, {"counter": lambda values, mean: sum(values) // len(values)}),
    (*INTEGERS, {"counter": lambda values, mean: mean(values)}),
    (*INTEGERS, {"counter": lambda values, mean: mean(values).to(values[0].dtype)}),
    (*ANOTHER, {"counter": lambda values, mean: values[0].clone()}),
    (*ANOTHER, {"counter": lambda values, mean: torch.stack(values).amax()}),
    (
        "the counters added up",
        COUNTER,
        {"counter": lambda values, mean: torch.stack(values).sum()},
    ),
    (
        "integers left out",
        "load_state_dict wants every key. " + COUNTER,
        {"kept": lambda name, value: False},
    ),
    (*COPIED, {"averaged": lambda name, value: value.dtype == torch.float32}),
    (
        "only int64 counts as an integer",
        "There are integers of other sizes, and True and False: whatever is not a "
        "floating-point number is kept as it is. is_floating_point() says which is "
        "which.",
        {"averaged": lambda name, value: value.dtype != torch.int64},
    ),
    (
        "what has no axis is taken for a counter",
        "A tensor's type says whether it counts: is_floating_point(). A number without "
        "an axis may be a weight, and a tensor of integers may have axes.",
        {"averaged": lambda name, value: value.dim() > 0},
    ),
    (
        "only what is called weight is averaged",
        "Every floating-point tensor is, whatever its name.",
        {"averaged": lambda name, value: "weight" in name},
    ),
)
# no rule: beside another mistake it could not be told from the one above
averages.mistake(*STAYS[torch.float64])(
    lambda states: combined(states, back=lambda mean, last: mean.double())
)


# --- the check ------------------------------------------------------------------------


def _states(generator: torch.Generator, count: int) -> list[State]:
    """Draw checkpoints: two matrices, one of half precision, a number, two counters."""
    a, b, c = draw_sizes(generator, 3)
    return [
        {
            "weight": normal(generator, a, b),
            # its sums of two are infinite, its means by 3 and by 4 are exact
            "half.weight": 29_952
            + 768 * torch.randint(-2, 3, (c,), generator=generator).half(),
            "bias": normal(generator, b),
            "gain": normal(generator, 1)[0].clone(),
            "steps": torch.tensor(counter),
            "seen": torch.tensor([counter, counter // 2], dtype=torch.int32),
        }
        for counter in COUNTERS[:count]
    ]


OWN = (
    "the caller's own dict is returned",
    "Of one checkpoint the average is the checkpoint, and yet the result is a new "
    "dict: whoever changes an entry of it leaves the checkpoint as it is.",
)


@chapter.check(section="translator-averaging")
def average_states(student: StudentFunction, seed: int = 0) -> None:
    """By hand, PyTorch's averaged model, counters, half precision, one checkpoint."""
    generator = seeded(seed)
    hand = [{"w": torch.tensor([value, 2 * value])} for value in (1.0, 2.0, 6.0)]
    cases = [Case("the example by hand", (hand,), {"w": torch.tensor([3.0, 6.0])})]
    for count in (4, 3, 1):
        on = f"{count} checkpoints" if count > 1 else "one checkpoint"
        cases.append(Case(on, (_states(generator, count),)))
    for case in cases:
        right = averages.right(case)
        with averages.accidents_named():
            got = student(*case.inputs)
        _expect_types(got, right, case.on)
        judge_parts(averages, got, case, right)
    expect_new(student, cases[-1], *OWN)


def _expect_types(got: Data, right: State, on: str) -> None:
    """Expect that right values come in the type that the tensors had."""
    for name, value in right.items() if isinstance(got, dict) else ():
        came = got.get(name)
        if isinstance(came, torch.Tensor) and came.dtype in STAYS:
            refuse_if(
                came.dtype.itemsize > value.dtype.itemsize
                and expect.close(came, value),
                *STAYS[came.dtype],
                on=f"{name!r} of {on}",
                got=f"{came.dtype}",
                expected=f"{value.dtype}",
            )
