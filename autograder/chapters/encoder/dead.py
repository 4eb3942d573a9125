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


def _dead(x: torch.Tensor, activation: str) -> torch.Tensor:
    return (_rows(_slopes(x, activation)) == 0).all(0)


units = Function("gelu", "dead_units", _dead)

# --- what goes wrong ------------------------------------------------------------------


def _smooth(x: torch.Tensor, activation: str) -> bool:
    return activation == "gelu"


def _values(x: torch.Tensor, activation: str) -> torch.Tensor:
    if activation == "relu":
        return torch.relu(x)
    return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))  # 0 sooner than x Φ(x) is


def _by_sentence(x: torch.Tensor, activation: str) -> bool:
    return x.dim() > 2


APART = (
    "the sentences are kept apart",
    "A unit is dead if no token of any sentence gets a gradient through it: join all "
    "axes but the last.",
)
for name, why, answer, when in (
    (
        "dead for some token",
        "A unit that is silent for a few tokens learns from the others. Dead is what "
        "is silent for all: all, not any.",
        lambda x, kind: (_rows(_slopes(x, kind)) == 0).any(0),
        None,
    ),
    (
        "the living units are marked",
        "True is for a unit that no gradient comes through.",
        lambda x, kind: ~_dead(x, kind),
        None,
    ),
    (
        "the values in place of the slopes",
        "A value of 0 may have a slope: GELU's at 0 is ½. What learns, the slope says.",
        lambda x, kind: (_rows(_values(x, kind)) == 0).all(0),
        _smooth,
    ),
    (
        "ReLU's slopes for GELU, too",
        "GELU's slope left of 0 is small, and not 0: only far to the left it is.",
        lambda x, kind: _dead(x, "relu"),
        _smooth,
    ),
    (
        "GELU's slopes for ReLU, too",
        "ReLU's slope left of 0 is exactly 0.",
        lambda x, kind: _dead(x, "gelu"),
        lambda x, kind: kind == "relu",
    ),
    (
        "with GELU nothing is ever dead",
        "Far to the left, at −100, GELU's slope is 0 as well, in numbers of 32 bits.",
        lambda x, kind: torch.zeros(x.shape[-1], dtype=torch.bool),
        _smooth,
    ),
    (
        "a small slope counts as none",
        "However small a slope is, the unit may come back. Compare with 0 exactly.",
        lambda x, kind: (_rows(_slopes(x, kind)).abs() < 1e-3).all(0),
        _smooth,
    ),
    (
        "0 counts as alive",
        "At 0 PyTorch's ReLU has the slope 0.",
        lambda x, kind: (_rows(x) < 0).all(0),
        lambda x, kind: kind == "relu",
    ),
    (
        "the mean of the inputs is negative",
        "One token on the right side is enough for a unit to learn, whatever the mean.",
        lambda x, kind: _rows(x).mean(0) <= 0,
        None,
    ),
    (
        "tokens in place of units",
        "A unit is a column: the last axis stays, all others go.",
        lambda x, kind: (_slopes(x, kind) == 0).all(-1),
        None,
    ),
    (
        "the share of silent tokens",
        "For each unit True or False is asked for, not how often it is silent.",
        lambda x, kind: (_rows(_slopes(x, kind)) == 0).float().mean(0),
        None,
    ),
    (
        "the number of dead units",
        "For each unit True or False is asked for, (d_ff,). Whoever wants the number "
        "takes the sum.",
        lambda x, kind: _dead(x, kind).sum(),
        None,
    ),
    (*APART, lambda x, kind: (_slopes(x, kind) == 0).all(-2), _by_sentence),
    (*APART, lambda x, kind: (_slopes(x, kind) == 0).all(0), _by_sentence),
):
    units.mistake(name, why, when=when)(answer)

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
