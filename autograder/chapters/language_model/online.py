"""The online softmax: scores come in blocks, and three numbers a query are kept."""

import itertools
import math
from collections.abc import Callable, Iterator
from functools import partial

import torch

from autograder.chapters.language_model.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import (
    Case,
    Function,
    expect_finite,
    expect_gradients,
    expect_several,
    judge_parts,
)
from autograder.expect import relying_on
from autograder.interface import StudentFunction

Block = tuple[torch.Tensor, torch.Tensor]  # scores (…, T, block), values (…, block, d)
Three = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
PARTS = ("the maximum", "the sum", "the output")
LARGE = 10_000.0


def joined(blocks: list[Block]) -> Block:
    """Put all scores and all values side by side, in double precision."""
    scores, values = zip(*blocks, strict=True)
    return torch.cat(scores, dim=-1).double(), torch.cat(values, dim=-2).double()


def kept(blocks: list[Block]) -> Three:
    """Compute the three numbers of all blocks at once."""
    scores, values = joined(blocks)
    maximum = scores.amax(dim=-1, keepdim=True)
    weights = torch.where(scores.isneginf(), 0.0, (scores - maximum).exp())
    three = maximum, weights.sum(dim=-1, keepdim=True), weights @ values
    return tuple(each.float() for each in three)


def mixed(blocks: list[Block]) -> torch.Tensor:
    """Mix all values with the softmax of all scores; an empty row gives zeros."""
    scores, values = joined(blocks)
    return (scores.softmax(dim=-1).nan_to_num(0.0) @ values).float()


def start(scores: torch.Tensor, values: torch.Tensor) -> Three:
    """Make the three of a query that has seen nothing."""
    rows = scores.shape[:-1]
    nothing = torch.zeros(*rows, 1)
    return nothing - math.inf, nothing, torch.zeros(*rows, values.shape[-1])


steps = Function("online-softmax", "online_step")
softmaxes = Function("online-softmax", "online_softmax", mixed)


# --- a step: what goes wrong ----------------------------------------------------------


def step(
    maximum: torch.Tensor,
    total: torch.Tensor,
    output: torch.Tensor,
    scores: torch.Tensor,
    values: torch.Tensor,
    *,
    largest: Callable = lambda scores: scores.amax(dim=-1, keepdim=True),
    join: Callable = torch.maximum,
    old: Callable = lambda before, after: (before - after).exp(),
    new: Callable = lambda scores, before, after: (scores - after).exp(),
    rescaled: tuple[bool, bool] = (True, True),
    share: Callable = lambda weights: weights,
    give: Callable = lambda found, total, output: (found, total, output),
) -> tuple:
    """Take a step by rules that can be varied."""
    found = join(maximum, largest(scores))
    safe = found.masked_fill(found.isneginf(), 0.0)
    factor, weights = old(maximum, safe), new(scores, maximum, safe)
    of_total, of_output = (factor if each else 1 for each in rescaled)
    total = of_total * total + weights.sum(dim=-1, keepdim=True)
    return give(found, total, of_output * output + share(weights) @ values)


RESCALE = (
    "What was summed up so far was measured from the old maximum. If that grows from m "
    "to m', every term exp(s − m) has to become exp(s − m'): multiply by exp(m − m')."
)
for name, which in (
    ("the old sum is not rescaled", (False, True)),
    ("the old output is not rescaled", (True, False)),
):
    steps.mistake(name, RESCALE)(partial(step, rescaled=which))
steps.mistake(
    "the rescaling turned round",
    "The factor is exp(old − new). It is at most 1, since the maximum only grows; the "
    "other way round it is at least 1, and infinite at the very beginning.",
)(partial(step, old=lambda before, after: (after - before).exp()))
steps.mistake(
    "the maximum of the new block alone",
    "An earlier block may hold a larger score. The new maximum is the larger of the "
    "old one and that of the block: torch.maximum.",
)(partial(step, join=lambda before, found: found))
steps.mistake(
    "the new scores measured from the old maximum",
    "At the first block the old maximum is −∞, and later a new score may lie far above "
    "it: exp overflows. Find the new maximum first, and subtract that one.",
)(partial(step, new=lambda scores, before, after: (scores - before).exp()))
OWN = (
    "the new scores measured from the maximum of their block",
    "Old and new terms are added, so both have to be measured from one place: from the "
    "new maximum, which may be in an earlier block.",
)
for guard in (lambda place: place, lambda place: place.nan_to_num(neginf=0.0)):
    steps.mistake(*OWN)(
        partial(
            step,
            new=lambda scores, before, after, guard=guard: (
                scores - guard(scores.amax(dim=-1, keepdim=True))
            ).exp(),
        )
    )
steps.mistake(
    "no maximum is subtracted",
    "exp(89) is too large for a float32. Subtract the maximum from the scores before "
    "you take the exponential: then no term is larger than 1.",
)(partial(step, new=lambda scores, before, after: scores.exp()))
steps.mistake(
    "one maximum for all queries",
    "Each query has a softmax of its own: the maximum runs over the keys of its row, "
    "scores.amax(dim=-1, keepdim=True). With that of another row a query whose scores "
    "are all far smaller would be left with a sum of 0.",
    when=lambda maximum, *_: maximum.numel() > 1,
)(partial(step, largest=lambda scores: scores.amax().expand(*scores.shape[:-1], 1)))
steps.mistake(
    "the maximum of the absolute values",
    "The largest score is meant, not the one furthest from 0: of −3 and 1 it is 1.",
)(partial(step, largest=lambda scores: scores.abs().amax(dim=-1, keepdim=True)))
DIVIDED = (
    "divided in every step",
    "The running output stays undivided, factor · output + weights @ values, so that "
    "the next block can be added to it. Divide once, after the last block.",
)
for least in (0.0, 1.0):  # without and with care for the rows that have seen nothing
    steps.mistake(*DIVIDED)(
        partial(
            step,
            give=lambda found, total, output, least=least: (
                found,
                total,
                output / total.clamp(min=least),
            ),
        )
    )

    @steps.mistake(*DIVIDED)
    def _(maximum, total, output, scores, values, least=least):
        found, grown, summed = step(maximum, total, total * output, scores, values)
        return found, grown, summed / grown.clamp(min=least)


steps.mistake(
    "each block is normalised by itself",
    "The softmax of one block makes its weights sum to 1, however small all of its "
    "scores are. Use exp(scores − maximum) as it is.",
)(
    partial(
        step,
        share=lambda weights: (
            weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-30)
        ),
    )
)
steps.mistake(
    "the old maximum is returned",
    "The next block needs to know from where the sum is measured: return the new one.",
)(lambda maximum, *rest: (maximum, *step(maximum, *rest)[1:]))
steps.mistake(
    "0 in place of −∞ as the maximum of nothing",
    "A row that has seen no key yet keeps the maximum −∞. With 0 in its place all "
    "later scores are measured from 0, and exp(−10000) is 0. Subtract 0, but return "
    "−∞.",
)(
    partial(
        step,
        give=lambda found, total, output: (
            found.masked_fill(found.isneginf(), 0.0),
            total,
            output,
        ),
    )
)


def _from_its_block(maximum, total, output, scores, values, *, own: bool):
    """Take a step with 0 as the maximum of a block in which nothing is allowed."""
    place = scores.amax(dim=-1, keepdim=True)
    place = place.masked_fill(place.isneginf(), 0.0)
    found = torch.maximum(maximum, place)
    factor, weights = (
        (maximum - found).exp(),
        (scores - (place if own else found)).exp(),
    )
    total = factor * total + weights.sum(dim=-1, keepdim=True)
    return found, total, factor * output + weights @ values


steps.mistake(
    "0 in place of −∞ as the maximum of an empty block",
    "A block without an allowed key has the maximum −∞, which leaves the old maximum "
    "as it is. 0 may lie far above the old one, and exp(−10000) is 0. Put 0 in place "
    "of the new maximum, and for the subtraction only.",
)(partial(_from_its_block, own=False))
steps.mistake(
    f"{OWN[0]}, and 0 in place of −∞ as the maximum of an empty block",
    f"{OWN[1]} A block without an allowed key has the maximum −∞, not 0.",
)(partial(_from_its_block, own=True))
for places in list(itertools.permutations(range(3)))[1:]:
    steps.mistake(
        "the three in another order",
        "First the maximum, then the sum, then the output.",
    )(lambda *given, places=places: tuple(step(*given)[place] for place in places))
NOTHING = (
    "NaN where nothing has been allowed",
    "As long as a query has seen no key, old and new maximum are −∞, and −∞ − (−∞) is "
    "NaN. Where the new maximum is −∞, subtract 0 in its place: exp(−∞ − 0) is 0.",
)


@steps.mistake(*NOTHING)
def careless(maximum, total, output, scores, values):
    """Take a step that subtracts −∞ from −∞."""
    found = torch.maximum(maximum, scores.amax(dim=-1, keepdim=True))
    factor, weights = (maximum - found).exp(), (scores - found).exp()
    total = factor * total + weights.sum(dim=-1, keepdim=True)
    return found, total, factor * output + weights @ values


NOTHING_BACK = (
    "NaN gradient where nothing has been allowed",
    "The values are right, the backward pass is not: it runs through a −∞ − (−∞) that "
    "was only replaced afterwards, and NaN times 0 stays NaN. Replace the maximum "
    "before you subtract it, not the result.",
)


@steps.mistake(*NOTHING_BACK)
def _(maximum, total, output, scores, values):
    found = torch.maximum(maximum, scores.amax(dim=-1, keepdim=True))
    factor = torch.where(found.isneginf(), 0.0, (maximum - found).exp())
    weights = torch.where(found.isneginf(), 0.0, (scores - found).exp())
    total = factor * total + weights.sum(dim=-1, keepdim=True)
    return found, total, factor * output + weights @ values


# --- all blocks: what goes wrong ------------------------------------------------------


def _all(blocks: list[Block], take: Callable = step) -> Three:
    three = start(*blocks[0])
    for block in blocks:
        three = take(*three, *block)
    return three


softmaxes.mistake(
    "not divided at the end",
    "The running output is a sum of values with weights that do not sum to 1. After "
    "the last block divide it by the running sum.",
)(lambda blocks: _all(blocks)[2])
EMPTY = (
    "NaN on fully masked rows",
    "A query that may attend to nothing has the sum 0, and 0/0 is NaN. It gets 0, as "
    "in chapter 4. All other sums are at least 1: the largest score adds exp(0).",
)
softmaxes.mistake(*EMPTY)(lambda blocks: _all(blocks)[2] / _all(blocks)[1])
softmaxes.mistake(*NOTHING)(
    lambda blocks: _all(blocks, careless)[2] / _all(blocks, careless)[1]
)
THREE = "Let the three numbers go from block to block."
softmaxes.mistake(
    "each block has a softmax of its own",
    f"The weights of all blocks together sum to 1. {THREE}",
)(lambda blocks: sum(mixed([block]) for block in blocks))
softmaxes.mistake(
    "the mean of the blocks",
    f"A block with small scores counts less than one with large scores. {THREE}",
)(lambda blocks: sum(mixed([block]) for block in blocks) / len(blocks))
softmaxes.mistake(
    "the last block alone",
    "What a step returns goes into the next step. Yours begins anew with each block.",
)(lambda blocks: mixed(blocks[-1:]))
softmaxes.mistake("the first block alone", "A return inside the loop ends it.")(
    lambda blocks: mixed(blocks[:1])
)
softmaxes.mistake(
    "the maximum begins at 0",
    "The largest of no scores is −∞. With 0 every score is measured from 0 or above, "
    "and where all of them are −10000 each weight is exp(−10000) = 0.",
)(lambda blocks: mixed(blocks).where(kept(blocks)[0] > -90, 0.0))


# --- the checks -----------------------------------------------------------------------


def _by_hand() -> list[Block]:
    scores = torch.tensor([[0.0, math.log(3), math.log(4)]])
    values = torch.tensor([[8.0], [16.0], [2.0]])
    return [(scores[:, :2], values[:2]), (scores[:, 2:], values[2:])]


def _drawn(generator: torch.Generator, *rows: int) -> list[Block]:
    """Draw blocks of several lengths; some keys, a block and two rows are masked."""
    blocks = []
    for length in (3, 1, 4, 2):
        scores = 2 * normal(generator, *rows, length)
        hidden = torch.rand(scores.shape, generator=generator) < 0.2
        scores = scores.masked_fill(hidden, -math.inf)
        scores[..., 2, :] = -math.inf  # this query may attend to nothing
        blocks.append((scores, normal(generator, *rows[:-1], length, 5)))
    blocks[0][0][..., 1, :] = -math.inf  # and this one to nothing in the first block
    blocks[2][0].fill_(-math.inf)
    return blocks


def _large(generator: torch.Generator) -> list[Block]:
    """Draw blocks around ±10000: all large, all small, growing and falling."""
    centres = torch.tensor([[1.0, 1, 1], [-1, -1, -1], [-1, 0, 1], [1, 0, -1]])
    near = [(4 * normal(generator, 4, 2)).round() / 4 for _ in range(3)]
    return [
        (LARGE * centre.unsqueeze(-1) + scores, normal(generator, 2, 3))
        for centre, scores in zip(centres.T, near, strict=True)
    ]


def _rows(seed: int) -> Iterator[tuple[str, list[Block]]]:
    """Give rows of blocks: by hand, drawn, large."""
    generator = seeded(seed)
    yield "the example by hand", _by_hand()
    queries, heads = draw_sizes(generator, 2)
    for rows in ((queries + 2,), (heads, queries + 2)):
        shape = ", ".join(map(str, rows))
        yield f"scores of shape ({shape}, block)", _drawn(generator, *rows)
    yield "scores of ±10000", _large(generator)


def _steps(seed: int) -> Iterator[Case]:
    """Give each step of the rows: what is kept before it and after it is known."""
    for on, blocks in _rows(seed):
        before = start(*blocks[0])
        for number, block in enumerate(blocks, start=1):
            after = kept(blocks[:number])
            yield Case(f"{on}; block {number}", (*before, *block), after)
            before = after


def _expect_gradients(student: StudentFunction, case: Case) -> None:
    """Expect gradients that are finite; what they are depends on all steps together.

    A maximum that is cut off from them is as good as one that is not.
    """
    arguments = ("maximum", "total", "output", "scores", "values")
    for number, part in ((1, PARTS[1]), (2, PARTS[2])):
        every = tuple(range(len(arguments)))
        found = student.gradients(*case.inputs, wrt=every, output=number)
        back = dict(zip(arguments, found.inputs, strict=True))
        for name, gradient in back.items():
            on = f"the gradient of {part} with respect to {name}; {case.on}"
            if gradient is not None:
                expect_finite(gradient, *NOTHING_BACK, on=on)
    expect_gradients({name: back[name] for name in arguments[2:]}, case.on)


@chapter.check(section="language-model-tiles")
def online_step(student: StudentFunction, seed: int = 0) -> None:
    """By hand, blocks and rows that are masked, scores of ±10000, gradients."""
    cases = list(_steps(seed))
    for case in cases:
        got = expect_several(student(*case.inputs), PARTS, case.on)
        judge_parts(steps, got, case, PARTS)
    for case in cases[:8]:
        _expect_gradients(student, case)


@chapter.check(section="language-model-tiles")
def online_softmax(
    student: StudentFunction, step_student: StudentFunction, seed: int = 0
) -> None:
    """By hand, blocks of several lengths, empty rows, scores of ±10000."""
    with relying_on(online_step, step_student):
        for on, blocks in _rows(seed):
            softmaxes.judge(student, Case(f"{on}; {len(blocks)} blocks", (blocks,)))
