"""Two angles with which 'car' attends to 'blue'."""

import math

import torch

from autograder import expect
from autograder.chapters.attention.chapter import chapter
from autograder.chapters.attention.oracles import torch_attention
from autograder.chapters.attention.plane import ANGLES, rotation
from autograder.exercise.answers import BY_HAND
from autograder.exercise.spec import Function
from autograder.expect import refuse_if, show
from autograder.interface import Data, StudentFunction

redirected = Function("redirect-attention", "redirecting_angles")


def weights_for(x: torch.Tensor, theta_q: float, theta_k: float) -> torch.Tensor:
    """Attend with queries and keys that are turned by these angles."""
    q, k = x @ rotation(theta_q), x @ rotation(theta_k)
    return torch_attention(q, k, x)[1]


def _in_degrees(x: torch.Tensor, angles: tuple) -> bool:
    return bool(weights_for(x, *map(math.radians, angles))[1, 0] > 0.6)


MISREAD = (  # name, an answer that makes it, whether an answer does, why
    (
        "the book's angles",
        ANGLES[:2],
        lambda x, angles: expect.close(angles, ANGLES[:2], BY_HAND),
        "With -π/4 and π/8 the key of 'blue' points away from the query of 'car': "
        "their score is -0.924, the smallest of the four.",
    ),
    (
        "angles in degrees",
        (120.0, 0.0),
        _in_degrees,
        "In degrees these angles would do. Give them in radians: 180° is π.",
    ),
    (
        "the difference of the angles has the wrong sign",
        (-3 * math.pi / 4, 0.0),
        lambda x, angles: weights_for(x, *angles)[0, 1] > 0.6,
        "weights[0, 1] is large, and there 'blue' is the query. It is weights[1, 0], "
        "in the row of 'car', that must grow. Mind that a row times R(θ) turns the "
        "other way than R(θ) times a column.",
    ),
    (
        "'car' attends to itself as much as to 'blue'",
        (math.pi / 4, 0.0),
        lambda x, angles: abs(weights_for(x, *angles)[1, 0] - 0.5) < BY_HAND,
        "The query of 'car' lies in the middle between both keys, so the two scores "
        "are equal. Turn it further away from its own key, towards that of 'blue'.",
    ),
    (
        "the weight is not yet above 0.6",
        (math.pi / 3, 0.0),
        lambda x, angles: weights_for(x, *angles)[1, 0] > 0.5,
        "The direction is right: 'car' prefers 'blue' by a little. Turn the query of "
        "'car' further away from its own key; a negative score there helps.",
    ),
    (
        "'car' still attends to itself more than to 'blue'",
        (0.0, 0.0),
        lambda x, angles: True,
        "A score of two unit vectors is the cosine of the angle between them. The "
        "query of 'car' must point towards the key of 'blue'; draw both.",
    ),
)
for name, angles, _, why in MISREAD:
    redirected.mistake(name, why)(lambda angles=angles: angles)


def _angles(got: Data) -> tuple[float, float]:
    on = "(theta_q, theta_k) in radians"
    pair = isinstance(got, (tuple, list)) and len(got) == 2
    what = "the result is not a pair of angles"
    expect.true(pair, what, on=on, got=show(got), expected="(theta_q, theta_k)")
    angles = tuple(x.tolist() if isinstance(x, torch.Tensor) else x for x in got)
    numbers = all(type(x) in (int, float) and math.isfinite(x) for x in angles)
    expect.true(numbers, "the angles are not numbers", on=on, got=show(got))
    return angles


@chapter.check(section="attention-geometry")
def redirecting_angles(student: StudentFunction, seed: int = 0) -> None:
    """Row 1 attends to column 0 with a weight above .6, however the pair is turned."""
    angles = _angles(student())
    x = rotation(0.7 * seed)  # turning both words changes nothing: try another
    weights = weights_for(x, *angles)
    if weights[1, 0] > 0.6:
        return
    found = f"weights {show(weights)} for {tuple(round(angle, 4) for angle in angles)}"
    say = {"on": "(theta_q, theta_k) in radians", "got": found}
    for name, _, applies, why in MISREAD:
        wrong = bool(applies(x, angles))
        refuse_if(wrong, name, why, expected="weights[1, 0] > 0.6", **say)
