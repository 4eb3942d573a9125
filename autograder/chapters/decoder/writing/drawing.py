"""A token drawn by chance: the first whose running sum exceeds a number."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from autograder import expect
from autograder.chapters.decoder.writing.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.expect import refuse, refuse_if, show
from autograder.interface import Data, StudentFunction


def _searched(probabilities: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """Find the ids with torch.searchsorted."""
    sums = probabilities.cumsum(-1).contiguous()
    number = (uniform.unsqueeze(-1) * sums[..., -1:]).contiguous()
    return torch.searchsorted(sums, number, right=True).squeeze(-1)


drawing = Function("sample-next", "sample_next", _searched)

# --- what goes wrong ------------------------------------------------------------------


def _passed(
    probabilities: torch.Tensor,
    uniform: torch.Tensor,
    *,
    axis: int = -1,
    scaled: bool = True,
    equal: bool = True,
    clamped: bool = False,
) -> torch.Tensor:
    """Count the running sums that a number has passed, by rules that can be varied."""
    sums = probabilities.cumsum(axis)
    number = uniform.unsqueeze(-1) * (sums[..., -1:] if scaled else 1)
    count = ((sums <= number) if equal else (sums < number)).sum(-1)
    return count.clamp(max=probabilities.shape[-1] - 1) if clamped else count


def _of_sorted(probabilities: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    return _passed(probabilities.sort(-1, descending=True).values, uniform)


drawing.mistake(
    "the most probable token",
    "argmax does not draw: the same token comes up whatever the number is. A token "
    "of probability 0.3 has to come up in 30 % of all draws.",
)(lambda p, u: p.argmax(-1))
drawing.mistake(
    "a token of probability 0 is drawn",
    "Its interval is empty, and so is the place where its running sum equals the "
    "number. The first sum that is *larger* counts: pass those that are equal.",
)(lambda p, u: _passed(p, u, equal=False))
drawing.mistake(
    "a number that no sum exceeds",
    "In float32 the last running sum may be a little below 1, and a number above "
    "it finds no id. Multiply the number by the last sum first.",
)(lambda p, u: _passed(p, u, scaled=False))
drawing.mistake(
    "a number that no sum exceeds",
    "In float32 the last running sum may be a little below 1. Above it nothing is "
    "True, and argmax of that is 0. Multiply the number by the last sum first.",
)(lambda p, u: (p.cumsum(-1) > u.unsqueeze(-1)).int().argmax(-1))
SUMS = (
    "The number was compared with each probability. The tokens lie end to end: "
    "compare it with the running sums, cumsum."
)
drawing.mistake("no running sums", SUMS)(lambda p, u: (p <= u.unsqueeze(-1)).sum(-1))
drawing.mistake("no running sums", SUMS)(
    lambda p, u: (p > u.unsqueeze(-1)).int().argmax(-1)
)
drawing.mistake(
    "clamped to the last id",
    "If the last token has the probability 0, it must not be drawn, not even when "
    "rounding leaves the last sum below the number. Multiply the number by the "
    "last sum; then nothing has to be clamped.",
)(lambda p, u: _passed(p, u, scaled=False, clamped=True))
drawing.mistake(
    "running sums along the wrong axis",
    "The sums ran over the rows. Each row is a distribution of its own: dim=-1.",
)(lambda p, u: _passed(p, u, axis=0))
drawing.mistake(
    "one id too far",
    "The number of sums that are not larger *is* the id, as ids begin with 0.",
)(lambda p, u: _passed(p, u) + 1)
EARLY = (
    "The id asked for is the first whose running sum is larger, not the last whose "
    "sum is not."
)
drawing.mistake("one id too early", EARLY)(lambda p, u: _passed(p, u) - 1)
drawing.mistake("one id too early", EARLY)(
    lambda p, u: (_passed(p, u) - 1).clamp(min=0)
)
drawing.mistake(
    "ids of the sorted probabilities",
    "The probabilities were sorted, and the place among the sorted was returned. "
    "Intervals may lie in any order: leave that of the vocabulary.",
)(_of_sorted)
drawing.mistake(
    "the last sum that exceeds it",
    "All later sums exceed the number, too. Take the first.",
)(lambda p, u: torch.full_like(p.argmax(-1), p.shape[-1] - 1))

# --- the check ------------------------------------------------------------------------


def _cases(seed: int) -> Iterator[Case]:
    """By hand, rows of several shapes, edges, rounding, and many numbers."""
    generator = seeded(seed)
    hand = torch.tensor([0.2, 0.5, 0.3])
    uniform = torch.tensor([0.1, 0.2001, 0.69, 0.7001, 0.0])
    on = "probabilities (.2, .5, .3), numbers .1, .2001, .69, .7001, 0"
    given = hand.expand(5, 3).clone(), uniform
    yield Case(on, given, torch.tensor([0, 1, 1, 2, 0]))
    b, t, v = draw_sizes(generator, 3)
    for shape in ((v + 4,), (b, v), (b, t, v + 1)):
        probabilities = (1.5 * normal(generator, *shape)).softmax(-1)
        uniform = torch.rand(shape[:-1], generator=generator)
        on = f"probabilities {shape}, uniform {shape[:-1]}"
        yield Case(on, (probabilities, uniform))
    zeros = torch.tensor([[0.0, 0.25, 0.0, 0.75, 0.0], [0.5, 0.0, 0.0, 0.5, 0.0]])
    on = "(0, .25, 0, .75, 0) with the number 0, (.5, 0, 0, .5, 0) with .5"
    yield Case(on, (zeros, torch.tensor([0.0, 0.5])), torch.tensor([1, 3]))
    short = torch.tensor([[0.25, 0.7499998, 0.0], [0.6, 0.3999998, 0.0]])
    uniform = torch.tensor([1 - 2**-24, 1 - 2**-24])
    on = "(.25, .7499998, 0) and (.6, .3999998, 0), with a number just below 1"
    yield Case(on, (short, uniform), torch.tensor([1, 1]))
    even = (torch.arange(4000) + 0.5) / 4000
    many = normal(generator, v).softmax(-1).expand(4000, v).clone()
    on = f"probabilities of {v} tokens, 4000 numbers evenly from 0 to 1"
    yield Case(on, (many, even))


@chapter.check(section="decoder-sampling")
def sample_next(student: StudentFunction, seed: int = 0) -> None:
    """Check by hand, rows of several shapes, edges, rounding, and frequencies."""
    cases = list(_cases(seed))
    probabilities, uniform = cases[-1].inputs
    _expect_number_used(student, probabilities, uniform)
    for case in cases:
        got = student(*case.inputs)
        _expect_tokens(got, case)
        drawing.compare(got, replace(case, what="the ids"))
    many = torch.bincount(got.long(), minlength=probabilities.shape[-1]) / len(uniform)
    what = "the frequencies of 4000 draws"
    expect.equal(many, probabilities[0], on=case.on, what=what, tolerance=1e-3)


def _expect_number_used(student, probabilities, uniform) -> None:
    one, two = (student(probabilities, uniform) for _ in range(2))
    why = (
        "The same call gave other ids: a random number of its own was drawn, as "
        "torch.multinomial does. Use the argument uniform."
    )
    say = {"on": "4000 numbers, the same call twice", "got": "different ids"}
    same = expect.close(one, two) or not isinstance(one, torch.Tensor)
    refuse_if(not same, "the number is not used", why, expected="the same", **say)


def _expect_tokens(got: Data, case: Case) -> None:
    probabilities, uniform = case.inputs
    if isinstance(got, torch.Tensor) and got.shape == probabilities.shape:
        why = "One id for each number: sum, or search, along the last axis."
        say = {"got": f"{tuple(got.shape)}", "expected": f"{tuple(uniform.shape)}"}
        refuse("a value for each token", why, on=case.on, **say)
    what = "the result"
    expect.tensor(got, shape=tuple(uniform.shape), on=case.on, what=what)
    whole = not (got.is_floating_point() or got.is_complex() or got.dtype == torch.bool)
    why = "An id is a place in the vocabulary, a whole number."
    say = {"on": case.on, "got": show(got), "expected": "integers"}
    refuse_if(not whole, "no integers", why, **say)
