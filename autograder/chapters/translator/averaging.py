"""The average of several checkpoints."""

from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from autograder import expect
from autograder.chapters.translator.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function, judge_parts
from autograder.expect import refuse_if
from autograder.interface import Data, StudentFunction

State = dict[str, torch.Tensor]
COUNTERS = (300, 520, 110, 240)  # that of the last is not the largest
STAYS = (
    "the mean stays float32",
    "Add in float32, then return to the type that the tensors had: .to(last.dtype).",
)
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


def _mean(values: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack(values).float().mean(dim=0)


def _sum(values: list[torch.Tensor]) -> torch.Tensor:
    return torch.stack(values).float().sum(dim=0)


def _halves(values: list[torch.Tensor]) -> torch.Tensor:
    found = values[0].float()
    for each in values[1:]:
        found = (found + each.float()) / 2
    return found


def _named(
    states: list[State],
    combine: Callable[[list], torch.Tensor] = _mean,
    counter: Callable[[list], torch.Tensor] = lambda values: values[-1].clone(),
) -> State:
    """Combine floats and integers, name by name; floats keep their type."""
    found = {}
    for name, last in states[-1].items():
        values = [state[name] for state in states]
        floats = last.is_floating_point()
        found[name] = combine(values).to(last.dtype) if floats else counter(values)
    return found


for name, why, combine in (
    (
        "added up in half precision",
        "float16 ends at 65504, and the sum is larger than the mean. Convert with "
        ".float() before adding, and back after dividing.",
        lambda values: sum(values[1:], values[0]) / len(values),
    ),
    ("added, not averaged", "Divide by the number of checkpoints.", _sum),
    (
        "divided by one too few",
        "A mean divides by the number of checkpoints.",
        lambda values: _sum(values) / (len(values) - 1),
    ),
    (
        "an average of averages",
        "Half of it is the last checkpoint, an eighth or less the first. Add them all, "
        "then divide once.",
        _halves,
    ),
    (
        "the median in place of the mean",
        "Return the mean of the values.",
        lambda values: torch.stack(values).float().median(dim=0).values,
    ),
):

    @averages.mistake(name, why)
    def _(states, combine=combine):
        return _named(states, combine)


for name, why, place in (
    (
        "only the last checkpoint",
        "The others have no part in it. Is the result written anew in each turn?",
        -1,
    ),
    ("only the first checkpoint", "The others have no part in it.", 0),
):

    @averages.mistake(name, why)
    def _(states, place=place):
        return {name: value.clone() for name, value in states[place].items()}


@averages.mistake(*STAYS)
def _(states):
    return {
        name: _mean([state[name] for state in states])
        if last.is_floating_point()
        else last.clone()
        for name, last in states[-1].items()
    }


ANOTHER = "the counter of another checkpoint"
for name, counter in (
    ("integers averaged", lambda values: torch.stack(values).mean()),  # it is refused
    ("integers averaged", lambda values: sum(values) // len(values)),
    ("integers averaged", _mean),
    ("integers averaged", lambda values: _mean(values).to(values[0].dtype)),
    (ANOTHER, lambda values: values[0].clone()),
    (ANOTHER, lambda values: torch.stack(values).amax()),
):
    averages.mistake(name, COUNTER)(partial(_named, counter=counter))


@averages.mistake("integers left out", "load_state_dict wants every key. " + COUNTER)
def _(states):
    averaged = _named(states)
    return {n: value for n, value in averaged.items() if value.is_floating_point()}


# --- the check ------------------------------------------------------------------------


def _states(generator: torch.Generator, count: int) -> list[State]:
    """Draw checkpoints: two matrices, one of half precision, and a counter."""
    a, b, c = draw_sizes(generator, 3)
    return [
        {
            "weight": normal(generator, a, b),
            # its sums of two are infinite, its means by 3 and by 4 are exact
            "half.weight": 29_952
            + 768 * torch.randint(-2, 3, (c,), generator=generator).half(),
            "bias": normal(generator, b),
            "steps": torch.tensor(counter),
        }
        for counter in COUNTERS[:count]
    ]


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


def _expect_types(got: Data, right: State, on: str) -> None:
    """Expect that right values come in the type that the tensors had."""
    for name, value in right.items() if isinstance(got, dict) else ():
        came = got.get(name)
        same = not isinstance(came, torch.Tensor) or came.dtype == value.dtype
        refuse_if(
            value.dtype == torch.float16 and not same and expect.close(came, value),
            *STAYS,
            on=f"{name!r} of {on}",
            got="" if same else f"{came.dtype}",
            expected=f"{value.dtype}",
        )
