"""An interval for what a change does, from runs with several seeds."""

from collections.abc import Callable, Iterator
from functools import partial

import torch

from autograder.chapters.vision_transformer.chapter import chapter
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.spec import Case, Function, expect_several, judge_parts
from autograder.interface import StudentFunction


def interval(
    changed: torch.Tensor,
    usual: torch.Tensor,
    quantile: float,
    *,
    error: Callable[[list[float]], float] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute both ends, seed by seed; ``error`` is that of the mean."""
    pairs = zip(changed.tolist(), usual.tolist(), strict=True)
    differences = [with_it - without for with_it, without in pairs]
    mean = sum(differences) / len(differences)
    width = quantile * (error or _of_mean)(differences)
    return torch.tensor(mean - width), torch.tensor(mean + width)


def _squares(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values)


def _of_mean(values: list[float]) -> float:
    return (_squares(values) / (len(values) - 1) / len(values)) ** 0.5


intervals = Function("mixup", "seed_interval", interval)

# --- what goes wrong ------------------------------------------------------------------

FEWER = (
    "divided by n in place of n − 1",
    "The mean was computed from the same differences, so their squares are a little "
    "too small: divide by n − 1, as std() does.",
)
ROOT = "The error of a mean of n numbers is their spread divided by √n."
for name, why, error in (
    (*FEWER, lambda values: _squares(values) ** 0.5 / len(values)),
    (
        "divided by √(n − 1) in place of √n",
        "n − 1 has its place in the spread, and std() has it there already. The error "
        "of a mean of n numbers is this spread divided by √n.",
        lambda values: (_squares(values) ** 0.5) / (len(values) - 1),
    ),
    (
        "the spread of one seed",
        f"{ROOT} Without the root it says where a single run lies.",
        lambda values: (_squares(values) / (len(values) - 1)) ** 0.5,
    ),
    (
        "divided by n in place of its root",
        ROOT,
        lambda values: (_squares(values) / (len(values) - 1)) ** 0.5 / len(values),
    ),
    (
        "the variance in place of the spread",
        "The spread is the root of the variance: std(), not var().",
        lambda values: _squares(values) / (len(values) - 1) / len(values) ** 0.5,
    ),
    (
        "the variance in place of the spread",
        "The spread is the root of the variance: std(), not var().",
        lambda values: _squares(values) / (len(values) - 1) / len(values),
    ),
):
    intervals.mistake(name, why)(partial(interval, error=error))


def _apart(changed, usual, quantile, *, fewer: int = 1):
    spreads = changed.var(correction=fewer) + usual.var(correction=fewer)
    width = quantile * (spreads / len(usual)).sqrt()
    mean = changed.mean() - usual.mean()
    return mean - width, mean + width


PAIRS = (
    "the seeds are not paired",
    "Runs of the same seed share their start and their batches. Subtract seed by seed "
    "first; what both have in common is then gone.",
)
intervals.mistake(*PAIRS)(_apart)
intervals.mistake(f"{PAIRS[0]}, and {FEWER[0]}", f"{PAIRS[1]} {FEWER[1]}")(
    partial(_apart, fewer=0)
)


for name, why, value in (
    (
        "the difference the wrong way round",
        "What the change adds is asked for: with it minus without it.",
        lambda changed, usual, quantile: interval(usual, changed, quantile),
    ),
    (
        "1.96 in place of the quantile",
        "1.96 is right for very many seeds. For few it is too small: the spread itself "
        "is only guessed from them. Use the argument.",
        lambda changed, usual, quantile: interval(changed, usual, 1.96),
    ),
    (
        "1.96 in place of the quantile",
        "For many seeds the quantile of 95 % comes near to 1.96. Which share the "
        "interval is for, the argument says: use it always.",
        lambda changed, usual, quantile: interval(
            changed, usual, quantile if len(usual) < 30 else 1.96
        ),
    ),
    (
        "the quantile is not used",
        "One error to each side holds the true mean too seldom: multiply by quantile.",
        lambda changed, usual, quantile: interval(changed, usual, 1.0),
    ),
    (
        "the upper end first",
        "Return the lower end first, then the upper one.",
        lambda *given: interval(*given)[::-1],
    ),
    (
        "mean and half width in place of the ends",
        "Return both ends: mean − half width, mean + half width.",
        lambda changed, usual, quantile: (
            (changed - usual).mean(),
            interval(changed, usual, quantile)[1] - (changed - usual).mean(),
        ),
    ),
    (
        "the smallest and the largest difference",
        "The interval is for the mean of all seeds that there could be, not a list of "
        "those that were run.",
        lambda changed, usual, quantile: (
            (changed - usual).min(),
            (changed - usual).max(),
        ),
    ),
    (
        "the interval is not around the mean",
        "Its middle is the mean of the differences.",
        lambda changed, usual, quantile: tuple(
            end - (changed - usual).mean() for end in interval(changed, usual, quantile)
        ),
    ),
):
    intervals.mistake(name, why)(value)

# --- the check ------------------------------------------------------------------------


def _cases(seed: int) -> Iterator[Case]:
    """By hand, two seeds, many, and a difference that is always the same."""
    by_hand = torch.tensor([4.0, 7.0, 9.0]), torch.tensor([3.0, 5.0, 6.0]), 4.303
    right = torch.tensor(-0.484338), torch.tensor(4.484338)
    yield Case("the example by hand", by_hand, right)
    generator = seeded(seed)
    sizes = ((3, 4.303), (2, 12.706), (5, 2.776), (8, 2.365), (40, 2.708))
    for count, quantile in sizes:
        common = 3 * normal(generator, count)
        usual = common + normal(generator, count)
        changed = common + normal(generator, count) + 0.5
        on = f"{count} seeds, quantile {quantile}"
        yield Case(on, (changed, usual, quantile))
    usual = torch.tensor([1.0, 2.5, 4.0])
    yield Case("the same difference for all seeds", (usual + 0.25, usual, 4.303))


@chapter.check(section="vision-mixing")
def seed_interval(student: StudentFunction, seed: int = 0) -> None:
    """By hand, and from the differences of each seed."""
    ends = "the lower end", "the upper end"
    for case in _cases(seed):
        got = expect_several(student(*case.inputs), ends, case.on)
        got = tuple(
            torch.tensor(end) if isinstance(end, (int, float)) else end for end in got
        )
        judge_parts(intervals, got, case, ends)
