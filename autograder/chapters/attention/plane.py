"""The example in the plane: queries, keys and values turned by the book's angles."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch

from autograder import expect
from autograder.chapters.attention import dot_product
from autograder.chapters.attention.chapter import chapter
from autograder.exercise.answers import BY_HAND, expect_entries, like
from autograder.exercise.inputs import seeded
from autograder.exercise.spec import Case, Function, foreseen, judge_parts
from autograder.interface import StudentFunction

ANGLES = (-math.pi / 4, math.pi / 8, 5 * math.pi / 16)  # the book's


def rotation(angle: float) -> torch.Tensor:
    """Write the rotation matrix R(angle)."""
    c, s = math.cos(angle), math.sin(angle)
    return torch.tensor([[c, -s], [s, c]])


def from_differences(theta_q: float, theta_k: float, theta_v: float) -> dict:
    """Work the example out by formulas: a score depends on the angle between two."""
    delta = theta_q - theta_k
    cosine, sine, root = math.cos(delta), math.sin(delta), math.sqrt(2)
    blue = 1 / (1 + math.exp((-sine - cosine) / root))  # of blue on itself
    car = 1 / (1 + math.exp((cosine - sine) / root))  # of car on blue
    mixed = [
        [
            w * math.cos(theta_v) + (1 - w) * math.sin(theta_v),
            (1 - w) * math.cos(theta_v) - w * math.sin(theta_v),
        ]
        for w in (blue, car)
    ]
    scores = torch.tensor([[cosine, -sine], [sine, cosine]])
    return {
        "scores": scores,
        "scaled": scores / root,
        "weights": torch.tensor([[blue, 1 - blue], [car, 1 - car]]),
        "output": torch.tensor(mixed),
        "car_to_blue": car,
    }


example = Function("geometric-example", "geometric_example", from_differences)

# --- what goes wrong ------------------------------------------------------------------


def turned(
    *angles: float,
    matrices: Callable = lambda *angles: map(rotation, angles),
    scale: float = math.sqrt(2),
    softened: float | None = None,
    axis: int = -1,
    mix: Callable = torch.matmul,
    read: tuple[str, tuple[int, int]] = ("weights", (1, 0)),
) -> dict:
    """Work the example out by rules that can be varied.

    Args:
        angles: of queries, keys and values.
        matrices: makes q, k and v of them.
        scale: what the scores are divided by.
        softened: what those in the softmax are divided by, if it is another number.
        axis: along which the softmax runs.
        mix: makes the output of weights and values.
        read: where the weight of *car* on *blue* is read.
    """
    q, k, v = matrices(*angles)
    scores = q @ k.T
    weights = torch.softmax(scores / (softened or scale), axis)
    found = {"scores": scores, "scaled": scores / scale, "weights": weights}
    name, place = read
    one = found[name][place].item()
    return found | {"output": mix(weights, v), "car_to_blue": one}


def _without_sign(angle: float) -> torch.Tensor:
    c, s = math.cos(angle), math.sin(angle)
    return torch.tensor([[c, s], [s, c]])


DEGREES = (
    "degrees in place of radians",
    "The angles are radians, and math.cos and torch.cos take radians: use the angles "
    "as they stand.",
)
for name, rule, why in (
    (
        "the angles are ignored",
        {"matrices": lambda *angles: map(rotation, ANGLES)},
        "The matrices are those of the book's angles, but the angles were others. Use "
        "the arguments theta_q, theta_k and theta_v.",
    ),
    (
        "rotations applied to column vectors",
        {"matrices": lambda *angles: map(rotation, (-angle for angle in angles))},
        "Vectors are rows here, on the left of the matrix: Q = X W_Q. W x (or X times "
        "the transpose) turns the other way, and the scores come out transposed.",
    ),
    (
        "keys not transposed",
        {"matrices": lambda q, k, v: map(rotation, (q, -k, v))},
        "This is Q K, the columns of K in place of its rows. With (2, 2) matrices "
        "nothing fails; the scores are Q Kᵀ.",
    ),
    (
        "queries and keys exchanged",
        {"matrices": lambda q, k, v: map(rotation, (k, q, v))},
        "The scores are transposed. Row i belongs to query i: the entry [1, 0] is the "
        "score of the query 'car' with the key 'blue', Q Kᵀ and not K Qᵀ.",
    ),
    (
        "missing the scaling by 1/√d_k",
        {"scale": 1.0},
        "d_k is 2 here: divide the scores by √2.",
    ),
    (
        "softmax of the unscaled scores",
        {"softened": 1.0},
        "The weights are the softmax of each row of the scaled scores: divide by √2 "
        "first.",
    ),
    (
        "scaled by d_k in place of √d_k",
        {"scale": 2.0},
        "d_k is 2 here: divide the scores by √2.",
    ),
    (
        "softmax over the wrong axis",
        {"axis": 0},
        "The columns sum to 1. Each row belongs to one query and must sum to 1.",
    ),
    (
        "the minus sign in R(θ) is missing",
        {"matrices": lambda *angles: map(_without_sign, angles)},
        "The entry in row 0, column 1 of R(θ) is −sin θ. Without the sign it is no "
        "rotation.",
    ),
    (
        DEGREES[0],
        {"matrices": lambda *angles: map(rotation, map(math.degrees, angles))},
        DEGREES[1],
    ),
    (
        DEGREES[0],
        {"matrices": lambda *angles: map(rotation, map(math.radians, angles))},
        DEGREES[1],
    ),
):
    example.mistake(name, why)(partial(turned, **rule))


def with_output(name: str, why: str, when: Callable = lambda *_: True) -> Callable:
    """Add a mistake in the output alone, a function of weights and values."""

    def add(mix: Callable) -> None:
        example.mistake(name, why, when=when)(partial(turned, mix=mix))

    return add


with_output(
    "values mixed by columns",
    "The output is weights times V, a mix of the rows of V, without a transpose.",
)(lambda weights, v: weights @ v.T)
with_output(
    "output from the tokens in place of the values",
    "X is the unit matrix, so P X is P again. What is mixed are the values, X W_V.",
)(lambda weights, v: weights)
with_output(
    "weights and values exchanged",
    "The weights are on the left, P V: row i of the output is a mix of the rows of "
    "V. V P mixes columns; the shapes fit here only because all are (2, 2).",
)(lambda weights, v: v @ weights)


def _of_the_book(*angles: float) -> bool:
    return angles == ANGLES


def _flipped(output: torch.Tensor, *columns: int) -> torch.Tensor:
    output = output.clone()
    output[:, columns] = output[:, columns].flip(0)
    return output


SECOND_COLUMN = (
    "−0.007 written for A₂ · V⁽²⁾",
    "-0.007 is not the product of the second row of the weights with the second "
    "column of V. It is that of the first row, output[0, 1].",
)
with_output(*SECOND_COLUMN, _of_the_book)(lambda p, v: _flipped(p @ v, 1))
with_output(*SECOND_COLUMN, _of_the_book)(
    lambda p, v: torch.where(torch.tensor([[0, 0], [0, 1]]) > 0, (p @ v)[0, 1], p @ v)
)
FIRST_ENTRY = (
    "the second row's first entry is smaller",
    "A smaller cosine does not make a smaller entry. An entry is a product, not an "
    "angle: the second row of the weights is longer, and output[1, 0] is larger than "
    "output[0, 0].",
)
for columns in ((0,), (0, 1)):
    with_output(*FIRST_ENTRY, _of_the_book)(
        lambda p, v, columns=columns: _flipped(p @ v, *columns)
    )

A_SCORE = "This is a score. The weight is what the softmax makes of its row."
for name, key, place, why in (
    (
        "rows and columns exchanged",
        "weights",
        (0, 1),
        "With this weight 'blue' (row 0, the query) attends to 'car'. The token that "
        "is being enriched is the row: 'car' is row 1.",
    ),
    (
        "the weight of 'car' on itself",
        "weights",
        (1, 1),
        "Row 1 is right. 'blue' is the column 0.",
    ),
    ("a score in place of a weight", "scores", (1, 0), A_SCORE),
    ("a score in place of a weight", "scaled", (1, 0), A_SCORE),
):
    example.mistake(name, why)(partial(turned, read=(key, place)))


# --- the check ------------------------------------------------------------------------


@chapter.check(section="attention-geometry")
def geometric_example(
    student: StudentFunction, attention_student: StudentFunction, seed: int = 0
) -> None:
    """The book's angles, to 1e-3 of the values known, then others; who attends."""
    with expect.relying_on(dot_product.alone, attention_student):
        known = {  # to four decimals, worked out with a calculator
            "scores": torch.tensor([[0.3827, 0.9239], [-0.9239, 0.3827]]),
            "scaled": torch.tensor([[0.2706, 0.6533], [-0.6533, 0.2706]]),
            "weights": torch.tensor([[0.4055, 0.5945], [0.2842, 0.7158]]),
            "output": torch.tensor([[0.7196, -0.0068], [0.7531, 0.1614]]),
            "car_to_blue": 0.2842,
        }
        on = "geometric_example(-π/4, π/8, 5π/16), the book's angles"
        cases = [Case(on, ANGLES, known, tolerance=BY_HAND)]
        drawn = math.pi * (2 * torch.rand(3, 3, generator=seeded(seed)) - 1)
        for angles in drawn.tolist():
            angles = tuple(round(angle, 2) for angle in angles)
            on = f"geometric_example({', '.join(map(str, angles))})"
            cases.append(Case(on, angles, tolerance=BY_HAND))
        for case in foreseen(student, cases):
            right = example.right(case)
            got = student(*case.inputs)
            expect_entries(got, right)
            entries = {
                key: like(got[key], each, what=f"the entry {key!r}", on=case.on)
                for key, each in right.items()
            }
            judge_parts(example, entries, replace(case, expected=right), right)
