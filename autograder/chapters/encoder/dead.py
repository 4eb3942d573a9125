"""Units through which no gradient comes, whatever the token."""

import math
from collections.abc import Callable, Iterator

import torch

from autograder import expect
from autograder.chapters.encoder.activations import gelu
from autograder.chapters.encoder.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction


def _slopes(x: torch.Tensor, activation: str) -> torch.Tensor:
    """Say how much of a gradient comes through, by the derivatives' formulas."""
    if activation == "relu":
        return (x > 0).to(x.dtype)
    density = torch.exp(-x.square() / 2) / math.sqrt(2 * math.pi)
    return torch.special.ndtr(x) + x * density


def _rows(x: torch.Tensor) -> torch.Tensor:
    return x.flatten(0, -2)


units = Function(
    "gelu",
    "dead_units",
    lambda x, activation: (_rows(_slopes(x, activation)) == 0).all(0),
)

# --- what goes wrong ------------------------------------------------------------------


def _smooth(x: torch.Tensor, activation: str) -> bool:
    return activation == "gelu"


def _values(x: torch.Tensor, activation: str) -> torch.Tensor:
    if activation == "relu":
        return torch.relu(x)
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))  # 0 sooner than x Φ(x) is


def _by_sentence(x: torch.Tensor, activation: str) -> bool:
    return x.dim() > 2


def dead_by(
    x: torch.Tensor,
    activation: str,
    *,
    silent: Callable = lambda x, activation: _slopes(x, activation) == 0,
    joined: Callable = lambda silent: _rows(silent).all(0),
) -> torch.Tensor:
    """Say which units are dead, by rules that can be varied.

    Args:
        x: (..., d_ff), the units' inputs.
        activation: "relu" or "gelu".
        silent: where no gradient comes through, as x.
        joined: what is made of that.
    """
    return joined(silent(x, activation))


APART = (
    "the sentences are kept apart",
    "A unit is dead if no token of any sentence gets a gradient through it: join all "
    "axes but the last.",
)
units.slips(
    dead_by,
    (
        "dead for some token",
        "A unit that is silent for a few tokens learns from the others. Dead is what "
        "is silent for all: all, not any.",
        {"joined": lambda silent: _rows(silent).any(0)},
    ),
    (
        "the living units are marked",
        "True is for a unit that no gradient comes through.",
        {"joined": lambda silent: ~_rows(silent).all(0)},
    ),
    (
        "tokens in place of units",
        "A unit is a column: the last axis stays, all others go.",
        {"joined": lambda silent: silent.all(-1)},
    ),
    (
        "the share of silent tokens",
        "For each unit True or False is asked for, not how often it is silent.",
        {"joined": lambda silent: _rows(silent).float().mean(0)},
    ),
    (
        "the number of dead units",
        "For each unit True or False is asked for, (d_ff,). Whoever wants the number "
        "takes the sum.",
        {"joined": lambda silent: _rows(silent).all(0).sum()},
    ),
)
units.slips(
    dead_by,
    (*APART, {"joined": lambda silent: silent.all(-2)}),
    (*APART, {"joined": lambda silent: silent.all(0)}),
    when=_by_sentence,
)
units.slips(
    dead_by,
    (
        "the values in place of the slopes",
        "A value of 0 may have a slope: GELU's at 0 is ½. What learns, the slope says.",
        {"silent": lambda x, kind: _values(x, kind) == 0},
    ),
    (
        "ReLU's slopes for GELU, too",
        "GELU's slope left of 0 is small, and not 0: only far to the left it is.",
        {"silent": lambda x, kind: _slopes(x, "relu") == 0},
    ),
    (
        "with GELU nothing is ever dead",
        "Far to the left, at −100, GELU's slope is 0 as well, in numbers of 32 bits.",
        {"silent": lambda x, kind: x != x},
    ),
    (
        "a small slope counts as none",
        "However small a slope is, the unit may come back. Compare with 0 exactly.",
        {"silent": lambda x, kind: _slopes(x, kind).abs() < 1e-3},
    ),
    when=_smooth,
)
units.slips(
    dead_by,
    (
        "GELU's slopes for ReLU, too",
        "ReLU's slope left of 0 is exactly 0.",
        {"silent": lambda x, kind: _slopes(x, "gelu") == 0},
    ),
    (
        "0 counts as alive",
        "At 0 PyTorch's ReLU has the slope 0.",
        {"silent": lambda x, kind: x < 0},
    ),
    when=lambda x, activation: activation == "relu",
)
units.mistake(
    "the mean of the inputs is negative",
    "One token on the right side is enough for a unit to learn, whatever the mean.",
)(lambda x, activation: _rows(x).mean(0) <= 0)

# --- the check ------------------------------------------------------------------------


def _drawn(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Draw inputs of units of every kind: by their columns, in turn."""
    x = normal(generator, *shape)
    kinds: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
        lambda column: column,  # alive
        lambda column: -0.1 - column.abs(),  # left of 0
        lambda column: torch.zeros_like(column),
        # where GELU's slope is less than 1e-7, and nowhere 0, however it is computed
        lambda column: -5.9 - 0.1 * column.abs().clamp(max=1),
        lambda column: -100 - column.abs(),  # and where it is 0
        lambda column: torch.where(column < column.amax(), -5.0, 0.5),  # once alive
        lambda column: -column.abs() * (column < column.amax()),  # up to 0
    )
    columns = [
        kinds[number % len(kinds)](column) for number, column in enumerate(x.unbind(-1))
    ]
    return torch.stack(columns, dim=-1)


def _cases(seed: int) -> Iterator[Case]:
    """By hand, and units of every kind, with one axis of tokens and with two."""
    hand = torch.tensor([[-1.0, 2.0, -3.0], [-2.0, -1.0, 0.0]])
    dead = torch.tensor([True, False, True])
    for activation, right in (("relu", dead), ("gelu", torch.zeros(3).bool())):
        on = f"the example by hand, activation {activation!r}"
        yield Case(on, (hand, activation), right)
    generator = seeded(seed)
    batch, length, more = draw_sizes(generator, 3)
    for shape in ((length + 1, 7 + more), (batch, length, 15)):
        x = _drawn(generator, *shape)
        for activation in ("relu", "gelu"):
            yield Case(f"x {shape}, activation {activation!r}", (x, activation))


@chapter.check(section="encoder-gelu")
def dead_units(
    student: StudentFunction, gelu_student: StudentFunction, seed: int = 0
) -> None:
    """By hand; units on the left, at 0, far to the left; one and two axes of tokens."""
    with expect.relying_on(gelu, gelu_student):
        units.judge_all(student, _cases(seed))
