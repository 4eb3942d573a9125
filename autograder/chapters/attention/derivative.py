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
    matrix: Callable[[torch.Tensor], torch.Tensor] = by_autograd,
    rows: Callable[[torch.Tensor], torch.Tensor] = lambda p: p,
) -> torch.Tensor:
    """Make the matrices by rules that can be varied, of rows that are laid out so."""
    return matrix(rows(p))


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
for name, answer, why in (
    (
        "only the diagonal",
        lambda p: torch.diag_embed(p * (1 - p)),
        "Every probability depends on every score: raising one score lowers the "
        "others, so off the diagonal stands −p_i p_j.",
    ),
    (
        "plus in place of minus",
        lambda p: torch.diag_embed(p) + outer(p),
        "Raising one score takes weight from the others: the entries off the diagonal "
        "are negative, and every row sums to 0.",
    ),
    (
        "the sign is reversed",
        lambda p: outer(p) - torch.diag_embed(p),
        "Raising a score raises its own probability: the diagonal is positive.",
    ),
    (
        "the sign off the diagonal is missing",
        lambda p: outer(p) + torch.diag_embed(p - 2 * p * p),
        "Raising one score takes weight from the others: off the diagonal stands "
        "−p_i p_j, and every row sums to 0.",
    ),
    (
        "the sign off the diagonal is missing, and the diagonal is p",
        lambda p: outer(p) + torch.diag_embed(p - p * p),
        "Off the diagonal stands −p_i p_j, on it p_i − p_i p_i: the product is "
        "subtracted everywhere, and every row sums to 0.",
    ),
    (
        "the diagonal is p in place of p (1 − p)",
        lambda p: torch.diag_embed(p + p * p) - outer(p),
        "The product p_i p_j is subtracted on the diagonal, too: p_i − p_i p_i.",
    ),
    (
        "the diagonal lacks its own term",
        lambda p: -outer(p),
        "−p_i p_j holds off the diagonal. On the diagonal it is p_i − p_i p_i.",
    ),
    (
        "the diagonal subtracted twice",
        lambda p: torch.diag_embed(p * (1 - p)) - outer(p),
        "p_i (1 − p_i) holds the term −p_i p_i already, and the product of column and "
        "row takes it away again. Put p alone on the diagonal.",
    ),
    (
        "ones on the diagonal",
        lambda p: torch.eye(p.shape[-1]) - outer(p),
        "diag(p) has p on its diagonal, not ones: p_i − p_i p_i is p_i (1 − p_i).",
    ),
    (
        "the outer product is missing",
        torch.diag_embed,
        "diag(p) is what would come out if the denominator did not change. It does: "
        "subtract p_i p_j everywhere.",
    ),
    (
        "p_i (1 − p_j) everywhere",
        lambda p: p[..., :, None] * (1 - p[..., None, :]),
        "That is the case i = j only. For i ≠ j the 1 is a 0: −p_i p_j.",
    ),
    (
        "softmax applied again",
        lambda p: by_autograd(torch.softmax(p, -1)),
        "The argument is the probabilities already, not the scores.",
    ),
    (ONE_ROW[0], lambda p: torch.diag(p) - torch.outer(p, p), ONE_ROW[1]),
    (ONE_ROW[0], lambda p: torch.diag(p) - outer(p), ONE_ROW[1]),
):
    jacobian.mistake(name, why)(partial(made, matrix=answer))
jacobian.mistake(
    "the leading axes are joined into one",
    "The matrices are in one row, whatever axes p had. They stay: (…, n) becomes "
    "(…, n, n), and (n,) becomes (n, n).",
)(partial(made, rows=lambda p: p.reshape(-1, p.shape[-1])))


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
