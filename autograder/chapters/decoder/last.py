"""The last real token of each sentence."""

import torch

from autograder.chapters.decoder.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function, squeezed
from autograder.interface import StudentFunction


def _right(hidden: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    rows = zip(hidden, lengths.tolist(), strict=True)
    return torch.stack([row[length - 1] for row, length in rows])


last = Function("last-real", "last_real", _right)
OFF_BY_ONE = "off by one", "Positions are counted from 0: the last of five is 4."
last.accident("out of bounds", *OFF_BY_ONE)
for words in ("same number of dimensions", "too many indices", "values to unpack"):
    last.accident(
        words,
        "fits one number of axes only",
        "Anything may follow (B, T): two more axes, or none. hidden[rows, lengths - 1] "
        "takes whatever follows as it is.",
    )

# --- what goes wrong ------------------------------------------------------------------


def _picked(hidden: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    return hidden[torch.arange(len(hidden)), positions]


FIRST = "The first position has read nothing but itself; the last has read all."
LENGTHS = "Each sentence has its own length."
AVERAGED = "One position is picked; nothing is averaged."
for name, why, answer in (
    (
        "the last column, padding or not",
        "The last column of a batch padded on the right is padding, except in the "
        "longest sentence. Take position lengths − 1 of each row.",
        lambda hidden, lengths: hidden[:, -1],
    ),
    (*OFF_BY_ONE, _picked),
    (
        *OFF_BY_ONE,
        lambda hidden, lengths: _picked(hidden, lengths.clamp_max(hidden.shape[1] - 1)),
    ),
    (*OFF_BY_ONE, lambda hidden, lengths: _picked(hidden, lengths - 2)),
    (*OFF_BY_ONE, lambda hidden, lengths: _picked(hidden, (lengths - 2).clamp_min(0))),
    (
        "every row for every length",
        "hidden[:, lengths − 1] takes, for every row, the positions of all rows. Give "
        "the rows an index of their own: hidden[arange(B), lengths − 1].",
        lambda hidden, lengths: hidden[:, lengths - 1],
    ),
    (
        "one length for all sentences",
        LENGTHS,
        lambda hidden, lengths: hidden[:, int(lengths[0]) - 1],
    ),
    (
        "one length for all sentences",
        LENGTHS,
        lambda hidden, lengths: hidden[:, int(lengths.max()) - 1],
    ),
    ("the first token", FIRST, lambda hidden, lengths: hidden[:, 0]),
    (
        "counted from the end of the padded row",
        "[-length] counts back from the end of the row, padding included. A sentence "
        "begins at 0, so its last token is at length − 1.",
        lambda hidden, lengths: _picked(hidden, -lengths),
    ),
    (
        "one axis too many",
        "One entry for each sentence: (B, ...), without the axis of the positions.",
        lambda hidden, lengths: _right(hidden, lengths).unsqueeze(1),
    ),
    (
        "the mean of the sentence",
        AVERAGED,
        lambda hidden, lengths: torch.stack(
            [
                row[:length].float().mean(0)
                for row, length in zip(hidden, lengths.tolist(), strict=True)
            ]
        ),
    ),
    (
        "the mean of the sentence",
        AVERAGED,
        lambda hidden, lengths: hidden.float().mean(1),
    ),
):
    last.mistake(name, why)(answer)
last.mistake(
    *squeezed("batch", "for a batch of one"),
    when=lambda hidden, lengths: len(hidden) == 1,
)(lambda hidden, lengths: _right(hidden, lengths).squeeze())
last.mistake(
    "multiplied by zeros and ones",
    "0 times −∞ is not a number, and neither is 0 times NaN. What stands at other "
    "positions may be anything, logits of −∞ as well: pick the position, do not add "
    "up products.",
    when=lambda hidden, lengths: not hidden.isfinite().all(),
)(
    lambda hidden, lengths: torch.stack(
        [
            (row.mT * (torch.arange(len(row)) == length - 1)).sum(-1)
            for row, length in zip(hidden, lengths.tolist(), strict=True)
        ]
    )
)

# --- the check ------------------------------------------------------------------------


@chapter.check(section="decoder-only")
def last_real(student: StudentFunction, seed: int = 0) -> None:
    """By hand, states and logits, gradients to the right rows only."""
    generator = seeded(seed)
    b, t, d, other = draw_sizes(generator, 4)
    b, t = b + 1, t + 1
    lengths = torch.randint(2, t, (b,), generator=generator)
    lengths[1], lengths[-1] = t, 1
    for shape in ((b, t, d), (b, t, d + 1, other), (b, t)):
        on = f"hidden {shape}, lengths {lengths.tolist()}"
        last.judge(student, Case(on, (normal(generator, *shape), lengths)))
    hand = torch.tensor([[10.0, 11.0, 12.0], [20.0, 21.0, 22.0]])
    ids = torch.arange(20).view(4, 5)
    # in the last batch no sentence fills the width
    for hidden, sizes in (
        (hand, [2, 3]),
        (ids, [5, 1, 3, 2]),
        (normal(generator, 3, 6, 2), [2, 4, 3]),
    ):
        on = f"hidden {tuple(hidden.shape)}, lengths {sizes}"
        last.judge(student, Case(on, (hidden, torch.tensor(sizes))))
    masked = torch.tensor([[[1.0, -2.0], [0.5, 3.0], [-torch.inf, 4.0]]])
    on = "hidden (1, 3, 2), lengths [2], logits of which one is −∞"
    last.judge(student, Case(on, (masked, torch.tensor([2]))))
    on = f"hidden {(b, t, d)}, lengths {lengths.tolist()}"
    case = Case(on, (normal(generator, b, t, d), lengths))
    last.judge_gradient(student, case, normal(generator, b, d))
