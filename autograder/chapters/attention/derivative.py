"""The derivative of softmax, which explains why scores are scaled."""

from collections.abc import Callable, Iterator
from functools import partial

import torch

from autograder import expect
from autograder.chapters.attention.batches import only_a_batch
from autograder.chapters.attention.chapter import chapter
from autograder.chapters.attention.pairs import named
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function, foreseen
from autograder.expect import refuse_if, show
from autograder.interface import StudentFunction


def by_autograd(p: torch.Tensor) -> torch.Tensor:
    """Differentiate softmax at each row; a row's sum depends on no other row."""
    rows = p.reshape(-1, p.shape[-1]).log()

    def summed(scores: torch.Tensor) -> torch.Tensor:
        return torch.softmax(scores, -1).sum(0)

    found = torch.autograd.functional.jacobian(summed, rows).transpose(0, 1)
    return found.reshape(*p.shape, p.shape[-1])


jacobian = Function("softmax-jacobian", "softmax_jacobian", by_autograd)


def outer(p: torch.Tensor) -> torch.Tensor:
    """Multiply each probability with each."""
    return p[..., :, None] * p[..., None, :]


def made(
    p: torch.Tensor,
    *,
    on: Callable = lambda p: p - p * p,
    off: Callable = lambda p: -outer(p),
    taken: Callable = lambda p: p,
    rows: Callable = lambda p: p,
) -> torch.Tensor:
    """Make the matrices by rules that can be varied.

    Args:
        p: (…, n).
        on: the diagonals, (…, n).
        off: what stands beside them, (…, n, n).
        taken: what is made of the probabilities first.
        rows: in which axes the rows are laid out.
    """
    p = rows(taken(p))
    diagonal = torch.eye(p.shape[-1], dtype=torch.bool)
    return torch.where(diagonal, torch.diag_embed(on(p)), off(p))


def _column(p: torch.Tensor) -> torch.Tensor:
    return p[..., :, None]


def _row(p: torch.Tensor) -> torch.Tensor:
    return p[..., None, :]


def _inner(p: torch.Tensor) -> torch.Tensor:
    return (p * p).sum(-1, keepdim=True)


ONE_ROW = (
    "only works for one row",
    "One vector of probabilities works, several at once do not. Every row has its own "
    "matrix: (…, n) becomes (…, n, n). Multiply p as a column, (…, n, 1), with p as a "
    "row, (…, 1, n), and look for the batched form of torch.diag.",
)
ONE_AXIS = (
    "only works with one batch axis",
    "One axis before the probabilities works, two do not. However many there are, "
    "they stay: (…, n) becomes (…, n, n). Count axes from the end.",
)
A_FACTOR = (
    "a factor p is missing",
    "Two factors stand everywhere: p_i (1 − p_i) on the diagonal, −p_i p_j beside it. "
    "δ_ij − p_j alone is the derivative of the logarithm of p_i.",
)
ONE_CASE = (
    "p_i (1 − p_j) everywhere",
    "That is the case i = j only. For i ≠ j the 1 is a 0: −p_i p_j.",
)
SQUARES = (
    "squares in place of the outer product",
    "p times p entry by entry is p_i p_i, one for each row. Multiply p as a column, "
    "(…, n, 1), with p as a row, (…, 1, n): every p_i with every p_j.",
)
jacobian.slips(
    made,
    (
        "only the diagonal",
        "Every probability depends on every score: raising one score lowers the "
        "others, so off the diagonal stands −p_i p_j.",
        {"off": lambda p: 0 * outer(p)},
    ),
    (
        "plus in place of minus",
        "Raising one score takes weight from the others: the entries off the diagonal "
        "are negative, and every row sums to 0.",
        {"on": lambda p: p + p * p, "off": outer},
    ),
    (
        "the sign is reversed",
        "Raising a score raises its own probability: the diagonal is positive.",
        {"on": lambda p: p * p - p, "off": outer},
    ),
    (
        "the sign off the diagonal is missing",
        "Raising one score takes weight from the others: off the diagonal stands "
        "−p_i p_j, and every row sums to 0.",
        {"off": outer},
    ),
    (  # by itself: sums of two other mistakes give this, too
        "the sign off the diagonal is missing, and the diagonal is p",
        "Off the diagonal stands −p_i p_j, on it p_i − p_i p_i: the product is "
        "subtracted everywhere, and every row sums to 0.",
        {"on": lambda p: p, "off": outer},
    ),
    (
        "the diagonal is p in place of p (1 − p)",
        "The product p_i p_j is subtracted on the diagonal, too: p_i − p_i p_i.",
        {"on": lambda p: p},
    ),
    (
        "the diagonal lacks its own term",
        "−p_i p_j holds off the diagonal. On the diagonal it is p_i − p_i p_i.",
        {"on": lambda p: -p * p},
    ),
    (
        "the diagonal subtracted twice",
        "p_i (1 − p_i) holds the term −p_i p_i already, and the product of column and "
        "row takes it away again. Put p alone on the diagonal.",
        {"on": lambda p: p - 2 * p * p},
    ),
    (
        "squares on the diagonal",
        "diag(p) has p on its diagonal, not its squares: p_i − p_i p_i, which is 0 "
        "only where p_i is 0 or 1.",
        {"on": lambda p: 0 * p},
    ),
    (
        "ones on the diagonal",
        "diag(p) has p on its diagonal, not ones: p_i − p_i p_i is p_i (1 − p_i).",
        {"on": lambda p: 1 - p * p},
    ),
    (
        "the outer product is missing",
        "diag(p) is what would come out if the denominator did not change. It does: "
        "subtract p_i p_j everywhere.",
        {"on": lambda p: p, "off": lambda p: 0 * outer(p)},
    ),
    (*ONE_CASE, {"off": lambda p: _column(p) * (1 - _row(p))}),
    (*ONE_CASE, {"off": lambda p: _row(p) * (1 - _column(p))}),
    (*ONE_CASE, {"off": lambda p: -_column(p) * (1 - _row(p))}),
    (*A_FACTOR, {"on": lambda p: 1 - p, "off": lambda p: -_row(p)}),
    (*A_FACTOR, {"on": lambda p: 1 - p, "off": lambda p: -_column(p)}),
    (*A_FACTOR, {"on": lambda p: 1 - p}),
    (*A_FACTOR, {"off": lambda p: -_row(p)}),
    (*A_FACTOR, {"off": lambda p: -_column(p)}),
    (*SQUARES, {"off": lambda p: -_row(p * p)}),
    (*SQUARES, {"off": lambda p: -_column(p * p)}),
    (
        "the inner product in place of the outer product",
        "p @ p of two vectors is one number, the sum of their products. Multiply p as "
        "a column, (…, n, 1), with p as a row, (…, 1, n).",
        {"on": lambda p: p - _inner(p), "off": lambda p: -_column(_inner(p))},
    ),
    (
        "softmax taken twice",
        "The argument is the probabilities already, not the scores.",
        {"taken": lambda p: torch.softmax(p, -1)},
    ),
    (
        "the leading axes are joined into one",
        "The matrices are in one row, whatever axes p had. They stay: (…, n) becomes "
        "(…, n, n), and (n,) becomes (n, n).",
        {"rows": lambda p: p.reshape(-1, p.shape[-1])},
    ),
)
for answer in (
    lambda p: torch.diag(p) - torch.outer(p, p),
    lambda p: torch.diag(p) - outer(p),
):
    jacobian.mistake(*ONE_ROW)(answer)


def probabilities(seed: int) -> Iterator[Case]:
    """Make probabilities by hand, at random with any leading axes, and a certainty."""
    generator = seeded(seed)
    hand = torch.tensor(
        [[0.25, -0.15, -0.10], [-0.15, 0.21, -0.06], [-0.10, -0.06, 0.16]]
    )
    p = torch.tensor([0.5, 0.3, 0.2])
    yield Case("p = [0.5, 0.3, 0.2]", (p,), hand, what="the Jacobian")
    a, b, n = draw_sizes(generator, 3)
    for shape in ((n,), (b, n), (a, b, n)):
        p = torch.softmax(2 * normal(generator, *shape), -1)
        yield Case(f"p of shape {shape}", (p,), what="the Jacobian")
    certain = torch.tensor([1.0, 0.0, 0.0, 0.0])
    zero = torch.zeros(4, 4)
    yield Case("p = [1, 0, 0, 0]", (certain,), zero, what="the Jacobian")


def judge_batch(student: StudentFunction, case: Case) -> None:
    """Expect the matrix of every row; say so if one axis less would be right."""
    (p,) = case.inputs
    too_many = ONE_ROW if p.dim() == 2 else ONE_AXIS
    with named(*too_many):
        got = student(p)
    right = jacobian.right(case)
    if not expect.close(got, right, case.tolerance):
        parts = zip(p, right, strict=True)
        alone = all(expect.close(student(part), each) for part, each in parts)
        say = {"on": case.on, "got": show(got), "expected": show(right)}
        refuse_if(alone, *too_many, **say)
    jacobian.compare(got, case)


@chapter.check(section="attention-jacobian")
def softmax_jacobian(student: StudentFunction, seed: int = 0) -> None:
    """Check by hand, against autograd's Jacobian, for any leading axes, saturated."""
    for case in foreseen(student, probabilities(seed)):
        if case.inputs[0].dim() == 1:
            right = partial(jacobian.right, case)
            with only_a_batch(student, case.inputs, right):
                jacobian.judge(student, case)
        else:
            judge_batch(student, case)
