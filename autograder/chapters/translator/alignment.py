"""Which source token each target token looks at."""

from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F

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
alignment.accident(
    "non-zero size",
    "nothing is left by a slice of -0",
    "Where there is no padding, a slice that ends at -0 ends at 0 and is empty. Cut by "
    "the lengths themselves: [:target_length, :source_length].",
)


# --- what goes wrong ------------------------------------------------------------------


def looked(
    weights: torch.Tensor,
    source: int,
    target: int,
    *,
    rows: Callable = lambda x, source, target: x[:, :target],
    columns: Callable = lambda x, source, target: x[..., :source],
    scale: Callable = lambda x: x,
    heads: Callable = lambda x: x.mean(dim=0),
    find: Callable = lambda mean: mean.argmax(dim=-1),
    form: Callable = lambda found, source: found,
) -> list:
    """Find the positions with slips, which may be several.

    Args:
        weights: (heads, T_tgt, T_src).
        source: the number of real source tokens.
        target: the number of real target tokens.
        rows: cuts off rows.
        columns: cuts off columns.
        scale: changes the weights before the heads are joined.
        heads: joins the heads.
        find: the positions, of one table.
        form: what is made of them.
    """
    cut = columns(rows(weights, source, target), source, target)
    return form(find(heads(scale(cut))), source).tolist()


def _votes(x: torch.Tensor) -> torch.Tensor:
    """What each head votes for, as a table of 0 and 1."""
    return F.one_hot(x.argmax(dim=-1), x.shape[-1]).double()


def _first_of_the_most(x: torch.Tensor) -> torch.Tensor:
    """Count votes; of several with the most the one that was named first is ahead."""
    ahead = 0.1 ** torch.arange(1, len(x) + 1).double()
    return (_votes(x) * (1 + ahead)[:, None, None]).sum(dim=0)


def _mean_vote(x: torch.Tensor) -> torch.Tensor:
    votes = x.argmax(dim=-1).double().mean(dim=0).round().long()
    return F.one_hot(votes, x.shape[-1])


def _expected(mean: torch.Tensor) -> torch.Tensor:
    return mean @ torch.arange(mean.shape[-1], dtype=mean.dtype)


ONE_HEAD = "One head shows one part of the work: average over all of them."
VOTE = (
    "a vote of the heads",
    "If each head has one vote, it no longer counts how sure a head is. Average, then "
    "look for the largest.",
)
NOT_CUT = "padding not cut off"
COLUMNS = "Only the first source_length columns are words of the source."
EXPECTED = (
    "the mean position in place of the largest weight",
    "A row that looks at the first word and at the last does not look between them. "
    "Return the place of its largest weight.",
)
SLIPS: tuple[tuple[str, str, str, Callable], ...] = (
    ("only the first head", ONE_HEAD, "heads", lambda x: x[0]),
    ("only the last head", ONE_HEAD, "heads", lambda x: x[-1]),
    (
        "only the surest head",
        ONE_HEAD,
        "heads",
        lambda x: x[x.amax(dim=-1).mean(dim=-1).argmax()],
    ),
    (
        "the largest weight of any head",
        "One head that is sure then decides for all. Average over the heads first.",
        "heads",
        lambda x: x.amax(dim=0),
    ),
    (
        "the least weight of the heads",
        "One head that looks elsewhere then decides for all. Average over the heads.",
        "heads",
        lambda x: x.amin(dim=0),
    ),
    (
        "the median of the heads in place of their mean",
        "How sure a head is no longer counts. Average over the heads.",
        "heads",
        lambda x: x.median(dim=0).values,
    ),
    (
        "the heads multiplied",
        "In a product, or a mean of logarithms, one head that looks elsewhere decides "
        "for all. Average the weights themselves.",
        "heads",
        lambda x: x.double().log().mean(dim=0),
    ),
    (*VOTE, "heads", lambda x: _votes(x).sum(dim=0)),
    (*VOTE, "heads", _first_of_the_most),
    (
        "the mean of the heads' positions",
        "The mean of two positions is a word that neither head looks at. Average the "
        "weights, then look for the largest.",
        "heads",
        _mean_vote,
    ),
    (
        "a list for each head",
        "Return one list: average over the heads first.",
        "heads",
        lambda x: x,
    ),
    (
        "averaged over the target, not over the heads",
        "The axes are (heads, target, source): the heads are dim=0.",
        "heads",
        lambda x: x.mean(dim=1),
    ),
    (NOT_CUT, COLUMNS, "columns", lambda x, source, target: x),
    (
        NOT_CUT,
        "Only the first target_length rows are tokens of the target.",
        "rows",
        lambda x, source, target: x,
    ),
    (
        "the last word of the source is left out",
        "source_length columns are real: [:source_length] has the last of them.",
        "columns",
        lambda x, source, target: x[..., : source - 1],
    ),
    (
        "the last token of the target is left out",
        "target_length rows are real: [:target_length] has the last of them.",
        "rows",
        lambda x, source, target: x[:, : target - 1],
    ),
    (
        "one row too early",
        "Row t is where the model looks while it chooses target token t. Its input is "
        "the token before, but the row is its own.",
        "rows",
        lambda x, source, target: x[:, [0, *range(target - 1)]],
    ),
    (
        "one row too late",
        "Row t is where the model looks while it chooses target token t: its input is "
        "moved already, so the rows are not.",
        "rows",
        lambda x, source, target: x[:, 1 : target + 1],
    ),
    (
        "the rows are scaled once more",
        "What is left after the cut need not sum to 1. Divided by its sum, a head that "
        "looks at padding counts as much as the others: average what there is.",
        "scale",
        lambda x: x / x.sum(dim=-1, keepdim=True),
    ),
    (
        "softmax taken once more",
        "The weights have been through the softmax: average them as they are.",
        "scale",
        lambda x: x.softmax(dim=-1),
    ),
    (
        "rows and columns exchanged",
        "A row is a query: the target token that looks. Its largest entry is along the "
        "last axis, over the source.",
        "find",
        lambda mean: mean.argmax(dim=-2),
    ),
    (
        "one position for all rows",
        "Each row has a largest weight of its own: argmax(dim=-1).",
        "find",
        lambda mean: mean.argmax(),
    ),
    (
        "the least in place of the largest",
        "A token looks where its weight is largest.",
        "find",
        lambda mean: mean.argmin(dim=-1),
    ),
    *(
        (
            *EXPECTED,
            "find",
            lambda mean, whole=whole, total=total: whole(
                _expected(mean) / (mean.sum(dim=-1) if total else 1)
            ).long(),
        )
        for whole in (torch.round, torch.floor)
        for total in (True, False)
    ),
    (
        "weights in place of positions",
        "Return the place of the largest weight: argmax, not max.",
        "find",
        lambda mean: mean.amax(dim=-1),
    ),
    (
        "counted from 1",
        "Positions count from 0.",
        "form",
        lambda found, source: found + 1,
    ),
)
for name, why, key, rule in SLIPS:
    alignment.mistake(name, why)(partial(looked, **{key: rule}))

alignment.slips(
    looked,
    (
        NOT_CUT,
        "Only target_length rows and source_length columns are words.",
        dict.fromkeys(("rows", "columns"), lambda x, source, target: x),
    ),
    *(
        (
            NOT_CUT,
            "Where padding has the largest weight, the answer is the largest of the "
            "words: cut the columns off before you look for it.",
            {"columns": lambda x, source, target: x, "form": form},
        )
        for form in (
            lambda found, source: found.clamp(max=source - 1),
            lambda found, source: found * (found < source),
        )
    ),
    (
        "the two lengths are exchanged",
        "The axes are (heads, target, source): rows are cut at target_length, columns "
        "at source_length.",
        {
            "rows": lambda x, source, target: x[:, :source],
            "columns": lambda x, source, target: x[..., :target],
        },
    ),
)

alignment.mistake(
    "axes of length 1 squeezed away",
    "squeeze() without an axis also removes the axis of the words when there is one "
    "word. Name the axis: mean(dim=0) removes the heads alone.",
    when=lambda weights, source, target: 1 in (source, target),
)(partial(looked, heads=lambda x: x.mean(dim=0).squeeze()))


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
