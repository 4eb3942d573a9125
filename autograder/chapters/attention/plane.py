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
ROOT = math.sqrt(2)  # of d_k


def rotation(angle: float) -> torch.Tensor:
    """Write the rotation matrix R(angle)."""
    c, s = math.cos(angle), math.sin(angle)
    return torch.tensor([[c, -s], [s, c]])


def from_differences(theta_q: float, theta_k: float, theta_v: float) -> dict:
    """Work the example out by formulas: a score depends on the angle between two."""
    delta = theta_q - theta_k
    cosine, sine, root = math.cos(delta), math.sin(delta), ROOT
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
    angled: Callable = lambda *angles: angles,
    unit: Callable = lambda angle: angle,
    rotate: Callable = rotation,
    compare: Callable = lambda q, k: q @ k.T,
    scale: float = ROOT,
    softened: float | None = None,
    axis: int = -1,
    mix: Callable = lambda weights, v, found: weights @ v,
    in_place: bool = False,
    table: str = "weights",
    read: Callable = lambda table: table[1, 0],
) -> dict:
    """Work the example out by rules that can be varied.

    Args:
        angles: of queries, keys and values.
        angled: the angles that are taken for them.
        unit: what is made of each angle.
        rotate: makes a matrix of an angle.
        compare: makes the scores of queries and keys.
        scale: what the scores are divided by.
        softened: what those in the softmax are divided by, if it is another number.
        axis: along which the softmax runs.
        mix: makes the output of weights, values, and all that is found.
        in_place: whether the scores themselves are divided.
        table: in which the weight of *car* on *blue* is looked up.
        read: this weight, of that table.
    """
    q, k, v = (rotate(unit(angle)) for angle in angled(*angles))
    scores = compare(q, k)
    weights = torch.softmax(scores / (softened or scale), axis)
    kept = scores / scale if in_place else scores
    found = {"scores": kept, "scaled": scores / scale, "weights": weights}
    found["output"] = mix(weights, v, found | {"keys": k})
    return found | {"car_to_blue": read(found[table]).item()}


DEGREES = (
    "degrees in place of radians",
    "The angles are radians, and math.cos and torch.cos take radians: use the angles "
    "as they stand.",
)
TWICE = (
    "an angle is used twice",
    "Queries, keys and values have an angle each: W_Q = R(θ_Q), W_K = R(θ_K), "
    "W_V = R(θ_V).",
)
ORDER = (
    "the angles are taken in another order",
    "The first angle is that of the queries, the second that of the keys, the third "
    "that of the values.",
)
UNSCALED = (
    "the scores are not scaled",
    "d_k is 2 here: divide the scores by √2.",
)
BY_WIDTH = (
    "scaled by d_k in place of √d_k",
    "d_k is 2 here: divide the scores by √2.",
)
A_SCORE = (
    "a score in place of a weight",
    "This is a score. The weight is what the softmax makes of its row.",
)
SMALLEST = (
    "the smallest weight in place of the entry [1, 0]",
    "With the book's angles 'car' attends to 'blue' least of all; with others it does "
    "not. Read the entry in the row of 'car' and the column of 'blue'.",
)
example.slips(
    turned,
    (
        "the angles are ignored",
        "The matrices are those of the book's angles, but the angles were others. Use "
        "the arguments theta_q, theta_k and theta_v.",
        {"angled": lambda *angles: ANGLES},
    ),
    (*TWICE, {"angled": lambda q, k, v: (q, q, v)}),
    (*TWICE, {"angled": lambda q, k, v: (q, k, q)}),
    (*TWICE, {"angled": lambda q, k, v: (k, k, v)}),
    (*ORDER, {"angled": lambda q, k, v: (q, v, k)}),
    (*ORDER, {"angled": lambda q, k, v: (v, k, q)}),
    (*ORDER, {"angled": lambda q, k, v: (v, q, k)}),
    (*ORDER, {"angled": lambda q, k, v: (k, v, q)}),
    (*DEGREES, {"unit": math.degrees}),
    (*DEGREES, {"unit": math.radians}),
    (
        "rotations applied to column vectors",
        "Vectors are rows here, on the left of the matrix: Q = X W_Q. W x (or X times "
        "the transpose) turns the other way, and the scores come out transposed.",
        {"rotate": lambda angle: rotation(-angle)},
    ),
    (
        "the minus sign in R(θ) is missing",
        "The entry in row 0, column 1 of R(θ) is −sin θ. Without the sign it is no "
        "rotation.",
        {"rotate": lambda angle: rotation(angle) * torch.tensor([[1, -1], [1, 1]])},
    ),
    (
        "sine and cosine exchanged",
        "The cosine is on the diagonal of R(θ): R(0) is the unit matrix.",
        {"rotate": lambda a: rotation(math.pi / 2 - a)},
    ),
    (
        "keys not transposed",
        "This is Q K, the columns of K in place of its rows. With (2, 2) matrices "
        "nothing fails; the scores are Q Kᵀ.",
        {"compare": torch.matmul},
    ),
    (
        "queries and keys exchanged",
        "The scores are transposed. Row i belongs to query i: the entry [1, 0] is the "
        "score of the query 'car' with the key 'blue', Q Kᵀ and not K Qᵀ.",
        {"compare": lambda q, k: k @ q.T},
    ),
    (*UNSCALED, {"scale": 1.0}),
    (*UNSCALED, {"scale": 1.0, "softened": ROOT}),  # in the entry alone
    (
        "softmax of the unscaled scores",
        "The weights are the softmax of each row of the scaled scores: divide by √2 "
        "first.",
        {"softened": 1.0},
    ),
    (
        "the scores are divided in place",
        "/= and div_ change the tensor that there is, so that 'scores' holds what is "
        "scaled, too. scores / √2 is a new tensor.",
        {"in_place": True},
    ),
    (*BY_WIDTH, {"scale": 2.0}),
    (*BY_WIDTH, {"scale": 2.0, "softened": ROOT}),
    (
        "scaled twice",
        "The weights are the softmax of the scaled scores, divided by √2 once. If your "
        "attention function divides, too, hand it queries and keys as they are.",
        {"softened": 2.0},
    ),
    (
        "multiplied by √d_k in place of divided",
        "The scores got larger still. Divide them by √2.",
        {"scale": 1 / ROOT},
    ),
    (
        "softmax over the wrong axis",
        "The columns sum to 1. Each row belongs to one query and must sum to 1.",
        {"axis": 0},
    ),
    (
        "values mixed by columns",
        "The output is weights times V, a mix of the rows of V, without a transpose.",
        {"mix": lambda weights, v, found: weights @ v.T},
    ),
    (
        "output from the tokens in place of the values",
        "X is the unit matrix, so P X is P again. What is mixed are the values, X W_V.",
        {"mix": lambda weights, v, found: weights},
    ),
    (
        "output from the keys in place of the values",
        "Keys only decide the weights; what is mixed are the values, X W_V.",
        {"mix": lambda weights, v, found: weights @ found["keys"]},
    ),
    (
        "weights and values exchanged",
        "The weights are on the left, P V: row i of the output is a mix of the rows of "
        "V. V P mixes columns; the shapes fit here only because all are (2, 2).",
        {"mix": lambda weights, v, found: v @ weights},
    ),
    (
        "weights transposed before mixing",
        "Row i of the weights mixes the values for query i: P V, without a transpose.",
        {"mix": lambda weights, v, found: weights.T @ v},
    ),
    (
        "the scores are mixed in place of the weights",
        "Scores do not sum to 1. The output is the weights times V.",
        {"mix": lambda weights, v, found: found["scaled"] @ v},
    ),
    (
        "weights and values multiplied entry by entry",
        "The output is a matrix product, P @ V; * multiplies entries.",
        {"mix": lambda weights, v, found: weights * v},
    ),
    (
        "rows and columns exchanged",
        "With this weight 'blue' (row 0, the query) attends to 'car'. The token that "
        "is being enriched is the row: 'car' is row 1.",
        {"read": lambda table: table[0, 1]},
    ),
    (
        "the weight of 'car' on itself",
        "Row 1 is right. 'blue' is the column 0.",
        {"read": lambda table: table[1, 1]},
    ),
    (
        "the weight of 'blue' on itself",
        "The token that is being enriched is the row: 'car' is row 1.",
        {"read": lambda table: table[0, 0]},
    ),
    (*SMALLEST, {"read": lambda table: table[1].min()}),
    (*SMALLEST, {"read": lambda table: table.min()}),
    (*A_SCORE, {"table": "scores"}),
    (*A_SCORE, {"table": "scaled"}),
    (
        "an entry of the output in place of a weight",
        "The output is what 'car' becomes. How much it attends to 'blue' is one of the "
        "weights.",
        {"table": "output"},
    ),
)


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
FIRST_ENTRY = (
    "the second row's first entry is smaller",
    "A smaller cosine does not make a smaller entry. An entry is a product, not an "
    "angle: the second row of the weights is longer, and output[1, 0] is larger than "
    "output[0, 0].",
)
LAST_ENTRY = torch.tensor([[0, 0], [0, 1]]) > 0
for name, why, mix in (
    (*SECOND_COLUMN, lambda p, v, _: _flipped(p @ v, 1)),
    (*SECOND_COLUMN, lambda p, v, _: torch.where(LAST_ENTRY, (p @ v)[0, 1], p @ v)),
    (*FIRST_ENTRY, lambda p, v, _: _flipped(p @ v, 0)),
    (*FIRST_ENTRY, lambda p, v, _: _flipped(p @ v, 0, 1)),
):
    example.mistake(name, why, when=_of_the_book)(partial(turned, mix=mix))


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
        # at the first 'car' attends to 'blue' more than to itself
        for angles in ((2.0, 0.3, -1.0), *drawn.tolist()):
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
