"""Muon's orthogonalisation: a polynomial of a matrix, and so of its singular values."""

import contextlib
import math
from collections.abc import Callable, Iterator
from functools import partial

import torch

from autograder.chapters.attention.pairs import named
from autograder.chapters.language_model.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.expect import refuse_if
from autograder.interface import StudentFunction

ROUNDS = 5
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
# the slope at 0 is 3.4445: five rounds make an error of float32 500 times larger
TOLERANCE = 3e-4


def by_singular_values(matrix: torch.Tensor, rounds: int = ROUNDS) -> torch.Tensor:
    """Take the singular values apart, and put the polynomial of each in its place."""
    left, values, right = torch.linalg.svd(matrix.double(), full_matrices=False)
    norm = values.square().sum(dim=-1, keepdim=True).sqrt()
    values = values / norm.clamp(min=1e-30)
    a, b, c = COEFFICIENTS
    for _ in range(rounds):
        values = a * values + b * values**3 + c * values**5
    return (left * values.unsqueeze(-2) @ right).to(matrix.dtype)


orthogonal = Function("orthogonalise", "orthogonalise", by_singular_values)


# --- what goes wrong ------------------------------------------------------------------


def _frobenius(matrix: torch.Tensor) -> torch.Tensor:
    return matrix.norm(dim=(-2, -1), keepdim=True)


def _quintic(
    x: torch.Tensor, a: float, b: float, c: float, of: torch.Tensor | None = None
) -> torch.Tensor:
    of = x if of is None else of
    square = of @ of.mT
    return a * x + (b * square + c * square @ square) @ x


def iterate(
    matrix: torch.Tensor,
    rounds: int = ROUNDS,
    *,
    size: Callable = _frobenius,
    coefficients: tuple[float, float, float] = COEFFICIENTS,
    once: Callable = _quintic,
    anew: bool = True,
    more: int = 0,
    turned: bool = True,
    scaled_back: bool = False,
) -> torch.Tensor:
    """Orthogonalise by rules that can be varied."""
    tall = matrix.shape[-2] > matrix.shape[-1]
    x = matrix.mT if tall else matrix
    norm = size(x) + 1e-7
    x = first = x / norm
    for _ in range(rounds + more):
        x = once(x, *coefficients) if anew else _quintic(x, *coefficients, of=first)
    x = x * norm if scaled_back else x
    return x.mT if tall and turned else x


def _is_stack(matrix, *_):
    return matrix.dim() > 2


def _is_tall(matrix, *_):
    return matrix.shape[-2] > matrix.shape[-1]


NORM = (
    "The Frobenius norm is the root of the sum of all squares of the matrix. It is at "
    "least the largest singular value, so that all of them become at most 1."
)
for name, size in (
    ("not normalised", torch.ones_like),
    ("normalised by the largest entry", lambda x: x.abs().amax((-2, -1), keepdim=True)),
    (
        "normalised by the largest singular value",
        lambda x: torch.linalg.matrix_norm(x, ord=2, keepdim=True),
    ),
    ("the root of the norm is missing", lambda x: _frobenius(x).square()),
    ("each row normalised by itself", lambda x: x.norm(dim=-1, keepdim=True)),
    ("each column normalised by itself", lambda x: x.norm(dim=-2, keepdim=True)),
):
    orthogonal.mistake(name, NORM)(partial(iterate, size=size))
orthogonal.mistake(
    "one norm for the whole stack",
    "Each matrix of a stack has a norm of its own: dim=(-2, -1), keepdim=True.",
    when=_is_stack,
)(partial(iterate, size=lambda x: x.norm()))


def _once(change: Callable) -> Callable:
    """Make a round of x, its square x xᵀ, and the coefficients."""
    return lambda x, *given: change(x, x @ x.mT, *given)


A, B, C = COEFFICIENTS
CHANGED = (
    "the last term of the changed x",
    "All three terms of a round are made of the same X. Add them in one line, or keep "
    "the old X under a name of its own.",
)
_changed = _once(lambda x, s, a, b, c: (y := a * x + b * s @ x) + c * s @ s @ y)
orthogonal.mistake(*CHANGED)(partial(iterate, once=_changed))
orthogonal.mistake(
    f"{CHANGED[0]}, and normalised by the largest entry", f"{CHANGED[1]} {NORM}"
)(partial(iterate, once=_changed, size=lambda x: x.abs().amax((-2, -1), keepdim=True)))
orthogonal.slips(
    iterate,
    (
        "two coefficients exchanged",
        "a = 3.4445 multiplies X itself, b = −4.7750 the third power, c = 2.0315 the "
        "fifth.",
        {"coefficients": (A, C, B)},
    ),
    (
        "b without its sign",
        "b is negative. Without its sign the singular values only grow.",
        {"coefficients": (A, -B, C)},
    ),
    (
        "the cubic of Newton and Schulz",
        "1.5 X − 0.5 (X Xᵀ) X brings singular values to 1 exactly, but small ones "
        "slowly. Here the three coefficients are 3.4445, −4.7750 and 2.0315.",
        {"coefficients": (1.5, -0.5, 0.0)},
    ),
    (
        "the fifth power is missing",
        "The last term is c (X Xᵀ)² X: the square of X Xᵀ, a matrix product.",
        {"once": _once(lambda x, square, a, b, c: a * x + (b + c) * square @ x)},
    ),
    (
        "entries squared in place of a matrix product",
        "(X Xᵀ)² is X Xᵀ @ X Xᵀ. square**2 squares each entry by itself.",
        {"once": _once(lambda x, s, a, b, c: a * x + (b * s + c * s**2) @ x)},
    ),
    (
        "the last factor X is missing in a term",
        "Both even powers are multiplied by X: (b S + c S²) X, with S = X Xᵀ. Without "
        "brackets X belongs to the last term alone.",
        {"once": _once(lambda x, s, a, b, c: a * x + b * s + c * s @ s @ x)},
    ),
    (
        "one round too few",
        "The iteration has as many rounds as `rounds` says: range(rounds).",
        {"more": -1},
    ),
    (
        "one round too many",
        "The iteration has as many rounds as `rounds` says: range(rounds).",
        {"more": 1},
    ),
    (
        "X Xᵀ of the first round in all rounds",
        "X is another matrix after each round, and so is X Xᵀ: compute it once in a "
        "round, not once for all.",
        {"anew": False},
    ),
    (
        "normalised in every round",
        "Only the beginning is divided by its norm. Later rounds would undo what the "
        "polynomial has done.",
        {"once": lambda x, a, b, c: _quintic(x / (_frobenius(x) + 1e-7), a, b, c)},
    ),
    (
        "the old size is put back",
        "All singular values are to be about 1 in the end, however large the matrix "
        "was. Do not multiply by its norm.",
        {"scaled_back": True},
    ),
)
orthogonal.mistake(
    "not turned back",
    "A matrix with more rows than columns was transposed before the rounds. Transpose "
    "the result, too.",
    when=_is_tall,
)(partial(iterate, turned=False))


@orthogonal.mistake(
    "all singular values exactly 1",
    "That is what the iteration comes near to. Five rounds leave them between 0.7 and "
    "1.2, small ones below; use no decomposition.",
)
def _(matrix, rounds=ROUNDS):
    left, values, right = torch.linalg.svd(matrix, full_matrices=False)
    return left * (values > 1e-6).unsqueeze(-2) @ right


orthogonal.mistake(
    "always five rounds", "Take as many rounds as `rounds` says; 5 is its default."
)(lambda matrix, rounds=ROUNDS: iterate(matrix))
WIDE = (
    "the larger product is taken",
    "Of a matrix (n, m) with n > m, X Xᵀ is n × n. Transpose it first: then the "
    "product is m × m, and the result, transposed back, is the same.",
)
STACK = (
    "only works for 2-D inputs",
    "One matrix works, a stack of them does not. Count axes from the end: .mT "
    "exchanges the last two (.T turns all of them round), the norm runs over dim=(-2, "
    "-1), and shape[-2] and shape[-1] are rows and columns.",
)
ZERO = (
    "NaN for a matrix of zeros",
    "Its norm is 0, and 0/0 is NaN. Add 1e-7 to the norm. A layer that got no gradient "
    "would spoil its weights.",
)


# --- the check ------------------------------------------------------------------------


def _cases(seed: int) -> Iterator[Case]:
    """By hand, wide, tall, square and stacked, flat in all but one direction."""
    hand = torch.tensor([[3.0, 0.0], [0.0, 4.0]])
    right = torch.tensor([[1.19327, 0.0], [0.0, 0.97648]])
    yield Case("the example by hand, one round", (hand, 1), right, tolerance=1e-3)
    generator = seeded(seed)
    rows, columns, stack = draw_sizes(generator, 3)
    few, many = sorted((rows, columns))
    for shape in ((few, many), (many, few), (few, few), (stack, many, few)):
        matrix = 5 * normal(generator, *shape)
        on = f"a matrix of shape {shape}"
        yield Case(f"{on}, one round", (matrix, 1), tolerance=TOLERANCE)
        yield Case(on, (matrix,), tolerance=TOLERANCE)
    steep = normal(generator, many, 1) @ normal(generator, 1, few)
    steep = steep + 0.01 * normal(generator, many, few)
    yield Case("a matrix with one large singular value", (steep,), tolerance=TOLERANCE)
    small = 0.01 * normal(generator, few, many)
    yield Case("small entries, two rounds", (small, 2), tolerance=TOLERANCE)


def _expect_small_products(student: StudentFunction) -> None:
    """Expect that of a tall matrix the smaller product is taken."""
    shape = 96, 4
    largest, _ = student.memory(torch.ones(shape))
    refuse_if(
        math.prod(largest) > math.prod(shape),
        *WIDE,
        on=f"a matrix of shape {shape}",
        got=f"a tensor of shape {largest} on the way",
        expected=f"none that is larger than {shape}",
    )


@chapter.check(section="language-model-optimizers")
def orthogonalise(student: StudentFunction, seed: int = 0) -> None:
    """The polynomial of the singular values, computed from a decomposition."""
    for case in _cases(seed):
        several = case.inputs[0].dim() > 2
        with named(*STACK) if several else contextlib.nullcontext():
            orthogonal.judge(student, case)
    zeros = torch.zeros(3, 2)
    case = Case("a matrix of zeros", (zeros,), zeros, unless_finite=ZERO)
    orthogonal.judge(student, case)
    _expect_small_products(student)
