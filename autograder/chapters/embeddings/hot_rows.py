"""One-hot rows: a single 1 in the column of the id."""

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.embeddings.chapter import chapter
from autograder.chapters.embeddings.refusals import expect_refusal, mistakes_in_refusing
from autograder.exercise.inputs import draw_sizes, seeded
from autograder.exercise.spec import Case, Function, errors_named
from autograder.expect import refuse_if, show
from autograder.interface import StudentFunction

hot = Function("one-hot", "one_hot", lambda ids, n: F.one_hot(ids, n).float())


# --- what goes wrong ------------------------------------------------------------------


def _outside(ids: torch.Tensor, n: int) -> bool:
    return not 0 <= ids.min() <= ids.max() < n


def _inside(ids: torch.Tensor, n: int) -> bool:
    return not _outside(ids, n)


ONE_ROW = (
    "one row for all ids",
    "Every id needs a row of its own, or the order of the tokens is lost.",
)
NO_FLOATS = (
    "no floats",
    "One-hot rows are there to be multiplied by a table of floats, and PyTorch does "
    "not multiply integers by floats: .float().",
)
OTHER_FLOATS = (
    "float32 expected",
    "One-hot rows are there to be multiplied by a table, which is float32, and PyTorch "
    "does not multiply float64 by float32: .float().",
)
for name, why, change in (
    (*OTHER_FLOATS, lambda right: right.double()),
    (
        "columns counted from 1",
        "The 1 is one column too far to the left: the id 0 belongs to column 0.",
        lambda right: right.roll(-1, -1),
    ),
    (*ONE_ROW, lambda right: right.amax(-2)),
    (*ONE_ROW, lambda right: right.sum(-2)),
    (
        "rows and columns exchanged",
        "A token is a row (T, N), so that rows times a table give rows.",
        lambda right: right.mT,
    ),
    (
        "0 and 1 exchanged",
        "The column whose number is the id holds the 1, all others 0.",
        lambda right: 1 - right,
    ),
    (
        "one column too many",
        "Ids from 0 to vocab_size - 1 need vocab_size columns.",
        lambda right: F.pad(right, (0, 1)),
    ),
    (*NO_FLOATS, lambda right: right.long()),
    (*NO_FLOATS, lambda right: right.bool()),
):
    hot.mistake(name, why, when=_inside)(
        lambda ids, n, change=change: change(F.one_hot(ids, n).float())
    )
hot.mistake(
    "as wide as the largest id",
    "The width is vocab_size, also when the largest ids do not occur.",
    when=_inside,
)(lambda ids, n: F.one_hot(ids).float())
hot.mistake(
    "the id in place of 1",
    "The column says which id it is; the entry there is 1.",
    when=_inside,
)(lambda ids, n: F.one_hot(ids, n).float() * ids[..., None])
ONE_SEQUENCE = (
    "only works for one sequence",
    "Ids (T,) work, ids with a batch do not. Write the columns into a new last axis: "
    "ids[..., None] compared with torch.arange(vocab_size).",
)
hot.mistake(*ONE_SEQUENCE, when=lambda ids, n: ids.dim() > 1)(
    lambda ids, n: torch.stack([torch.eye(n)[int(index)] for index in ids])
)
hot.mistake(
    "the leading axes are lost",
    "The ids of all sentences came into one long list. Each id becomes a row, and all "
    "axes before it stay: (…, T) becomes (…, T, N).",
    when=lambda ids, n: ids.dim() > 1 and _inside(ids, n),
)(lambda ids, n: F.one_hot(ids.flatten(), n).float())
hot.mistake(
    "a negative id takes the last row",
    "An index of -1 means the last row in Python. An id shifted by one would become an "
    "ordinary token without a word.",
    when=lambda ids, n: bool(ids.min() < 0),
)(lambda ids, n: torch.eye(n)[ids])
hot.mistake(
    "an id outside becomes a row of zeros",
    "Times a table, such a row gives the zero vector: a bug that nobody sees.",
    when=_outside,
)(lambda ids, n: (ids[..., None] == torch.arange(n)).float())
hot.mistake(
    "an id outside is moved inside",
    "clamp makes another token of it, one that does exist. Refuse it instead.",
    when=_outside,
)(lambda ids, n: torch.eye(n)[ids.clamp(0, n - 1)])
mistakes_in_refusing(hot, _outside)


# --- the check ------------------------------------------------------------------------


@chapter.check(section="embeddings-one-hot")
def one_hot(student: StudentFunction, seed: int = 0) -> None:
    """PyTorch's own, ids with leading axes, ids outside the vocabulary."""
    generator = seeded(seed)
    a, b, length, width = draw_sizes(generator, 4)
    n = width + 6
    _judge(student, torch.tensor([2, 0]), 4, "one_hot(tensor([2, 0]), 4)")
    for shape in ((length,), (b, length), (a, b, length)):
        ids = torch.randint(0, n - 1, shape, generator=generator)
        _judge(student, ids, n, f"ids {shape}, vocab_size {n}")
    for bad in (-1, 4, 9):
        on = f"one_hot(tensor([2, {bad}]), 4): there is no column {bad}"
        expect_refusal(
            hot,
            student,
            Case(on, (torch.tensor([2, bad]), 4)),
            (
                "an id outside is accepted",
                "The vocabulary has the ids from 0 to vocab_size - 1, no others: raise "
                "ValueError.",
            ),
        )
    for ids, size in (([0, 3], 4), ([[3], [0]], 4), ([0, 0], 1)):
        on = f"one_hot(tensor({ids}), {size}), the smallest and the largest id"
        _judge(student, torch.tensor(ids), size, on)


def _judge(student: StudentFunction, ids: torch.Tensor, n: int, on: str) -> None:
    case = Case(on, (ids, n))
    longer = [("Error", *ONE_SEQUENCE)] if ids.dim() > 1 else []
    with errors_named(*longer):
        got = student(ids, n)
    if isinstance(got, torch.Tensor) and got.dtype != torch.float32:
        right = expect.close(got, hot.right(case))
        say = {"on": on, "got": show(got.dtype), "expected": "torch.float32"}
        named = OTHER_FLOATS if got.is_floating_point() else NO_FLOATS
        refuse_if(right, *named, **say)
    hot.compare(got, case)
