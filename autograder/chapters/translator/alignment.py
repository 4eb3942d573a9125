"""Which source token each target token looks at."""

import itertools
from collections import Counter
from collections.abc import Callable

import torch

from autograder.chapters.translator.chapter import chapter
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction


def head_by_head(weights: torch.Tensor, source: int, target: int) -> list[int]:
    """Find the source token of each target token by adding up, head by head."""
    found = []
    for row in range(target):
        sums = [
            sum(weights[head, row, column].item() for head in range(len(weights)))
            for column in range(source)
        ]
        found.append(sums.index(max(sums)))
    return found


alignment = Function("align", "align", head_by_head)


# --- what goes wrong ------------------------------------------------------------------


def _first_of_the_most(x: torch.Tensor) -> torch.Tensor:
    """Elect what most heads vote for; of several the one that was named first."""
    votes = x.argmax(dim=-1).T.tolist()
    return torch.tensor([Counter(row).most_common(1)[0][0] for row in votes])


ONE_HEAD = "One head shows one part of the work: average over all of them."
HEADS: tuple[tuple[str, str, Callable], ...] = (
    ("", "", lambda x: x.mean(dim=0).argmax(dim=-1)),
    ("only the first head", ONE_HEAD, lambda x: x[0].argmax(dim=-1)),
    ("only the last head", ONE_HEAD, lambda x: x[-1].argmax(dim=-1)),
    (
        "the largest weight of any head",
        "One head that is sure then decides for all. Average over the heads first.",
        lambda x: x.amax(dim=0).argmax(dim=-1),
    ),
    *(
        (
            "a vote of the heads",
            "If each head has one vote, it no longer counts how sure a head is. "
            "Average, then look for the largest.",
            elected,
        )
        for elected in (
            lambda x: x.argmax(dim=-1).mode(dim=0).values,
            _first_of_the_most,
        )
    ),
    (
        "a list for each head",
        "Return one list: average over the heads first.",
        lambda x: x.argmax(dim=-1),
    ),
)
CUTS: tuple[tuple[str, Callable], ...] = (
    ("", lambda x, source, target: x[:, :target, :source]),
    (
        "Only the first source_length columns are words of the source.",
        lambda x, source, target: x[:, :target],
    ),
    (
        "Only the first target_length rows are tokens of the target.",
        lambda x, source, target: x[:, :, :source],
    ),
    (
        "Only target_length rows and source_length columns are words.",
        lambda x, source, target: x,
    ),
)
for (name, why, look), (not_cut, cut) in itertools.product(HEADS, CUTS):
    if name or not_cut:

        @alignment.mistake(name or "padding not cut off", f"{why} {not_cut}".strip())
        def _(weights, source, target, look=look, cut=cut):
            return look(cut(weights, source, target)).tolist()


for name, why, found in (
    (
        "rows and columns exchanged",
        "A row is a query: the target token that looks. Its largest entry is along the "
        "last axis, over the source.",
        lambda mean: mean.argmax(dim=0),
    ),
    (
        "the least in place of the largest",
        "A token looks where its weight is largest.",
        lambda mean: mean.argmin(dim=-1),
    ),
    (
        "counted from 1",
        "Positions count from 0.",
        lambda mean: mean.argmax(dim=-1) + 1,
    ),
    (
        "weights in place of positions",
        "Return the place of the largest weight: argmax, not max.",
        lambda mean: mean.amax(dim=-1),
    ),
):

    @alignment.mistake(name, why)
    def _(weights, source, target, found=found):
        return found(weights[:, :target, :source].mean(dim=0)).tolist()


@alignment.mistake(
    "one row too late",
    "Row t is where the model looks while it chooses target token t: its input is "
    "moved already, so the rows are not.",
)
def _(weights, source, target):
    return weights.mean(0)[1 : target + 1, :source].argmax(dim=-1).tolist()


# --- the check ------------------------------------------------------------------------


@chapter.check(section="translator-attention")
def align(student: StudentFunction, seed: int = 0) -> None:
    """By hand, several heads, rows and columns that are padding, no padding at all."""
    generator = seeded(seed)
    hand = torch.tensor(
        [
            [[0.6, 0.3, 0.1], [0.2, 0.4, 0.4], [0.1, 0.2, 0.7]],
            [[0.5, 0.2, 0.3], [0.1, 0.8, 0.1], [0.6, 0.2, 0.2]],
        ]
    )
    alignment.judge(student, Case("the example by hand", (hand, 3, 2), [0, 1]))
    for heads, rows, columns, padding in (
        (3, 9, 11, 2),
        (4, 12, 8, 2),
        (5, 10, 13, 2),
        (2, 13, 14, 0),
        (1, 3, 9, 2),  # one head, one target token
    ):
        weights = (3 * normal(generator, heads, rows, columns)).softmax(-1)
        source, target = columns - padding - (padding > 0), rows - padding
        on = f"weights {tuple(weights.shape)}, {source} source and {target} target"
        case = Case(on, (weights.contiguous(), source, target))
        alignment.judge(student, case)
