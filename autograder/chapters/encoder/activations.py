"""GELU, and its relatives that are taken for it."""

import math

import torch
import torch.nn.functional as F

from autograder import forbidden
from autograder.chapters.encoder.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction

ROOT, TANH = math.sqrt(2), math.sqrt(2 / math.pi)
OTHER_GATE = "Each gate is another function of x; GELU's is Φ(x), through torch.erf."

gates = Function("gelu", "gelu", F.gelu)

for name, why, answer in (
    (
        "the tanh approximation",
        "This is the approximation with tanh, off by up to 0.0005. Here the exact "
        "function is wanted, with torch.erf.",
        lambda x: x * 0.5 * (1 + torch.tanh(TANH * (x + 0.044715 * x**3))),
    ),
    (
        "the sigmoid approximation",
        "x·σ(1.702 x) is an approximation, off by up to 0.02. Use torch.erf.",
        lambda x: x * torch.sigmoid(1.702 * x),
    ),
    ("SiLU in place of GELU", OTHER_GATE, F.silu),
    ("ReLU in place of GELU", OTHER_GATE, torch.relu),
    (
        "the factor x is missing",
        "This is the gate Φ(x) itself. It still has to multiply x.",
        torch.special.ndtr,
    ),
    (
        "the density in place of the distribution",
        "The bell curve φ(x) is the derivative of Φ(x). The gate is Φ(x), which grows "
        "from 0 to 1.",
        lambda x: x * torch.exp(-x.square() / 2) / math.sqrt(2 * math.pi),
    ),
    (
        "erf of x in place of x/√2",
        "Φ(x) = (1 + erf(x/√2))/2: divide x by the root of 2 inside erf.",
        lambda x: x * 0.5 * (1 + torch.erf(x)),
    ),
    (
        "divided by √2 after erf",
        "Φ(x) = (1 + erf(x/√2))/2: the root of 2 stands inside erf, under x.",
        lambda x: x * 0.5 * (1 + torch.erf(x) / ROOT),
    ),
    (
        "brackets are missing around the gate",
        "x · 0.5 · 1 + erf(…) multiplies first and adds then. Put 1 + erf(…) in "
        "brackets.",
        lambda x: x * 0.5 + torch.erf(x / ROOT),
    ),
    (
        "the factor one half is missing",
        "1 + erf runs from 0 to 2. Half of it is the probability Φ(x).",
        lambda x: x * (1 + torch.erf(x / ROOT)),
    ),
    (
        "the 1 is missing",
        "erf runs from −1 to 1. Add 1 and take the half: a gate from 0 to 1.",
        lambda x: x * 0.5 * torch.erf(x / ROOT),
    ),
    (
        "the gate of −x",
        "Φ(x) grows from 0 to 1: what is large passes, what is far below 0 does not.",
        lambda x: x * 0.5 * torch.special.erfc(x / ROOT),
    ),
    *(
        (
            "cut off far from 0",
            "GELU comes close to 0 and to x far from 0, but nowhere is it equal: take "
            "x · Φ(x) everywhere, without limits.",
            lambda x, limit=limit, above=above: torch.where(
                x < -limit, 0.0, torch.where(x > above, x, x * torch.special.ndtr(x))
            ),
        )
        for limit in (2.0, 3.0)
        for above in (limit, math.inf)
    ),
):
    gates.mistake(name, why)(answer)


@chapter.check(section="encoder-gelu", forbidden=(forbidden.GELU,))
def gelu(student: StudentFunction, seed: int = 0) -> None:
    """Values by hand and PyTorch's exact ones, any shape, the gradient."""
    hand = torch.tensor([-1.0, 0.0, 1.0, 2.0])
    expected = torch.tensor([-0.158655, 0.0, 0.841345, 1.954500])
    gates.judge(student, Case("gelu([-1, 0, 1, 2])", (hand,), expected))
    generator = seeded(seed)
    a, b, c = draw_sizes(generator, 3)
    for shape in ((c,), (b, c), (a, b, c)):
        x = 2 * normal(generator, *shape)
        gates.judge(student, Case(f"random x {shape}", (x,)))
    far = torch.tensor([-1000.0, -30.0, -3.5, -2.5, 2.5, 3.5, 30.0, 1000.0])
    gates.judge(student, Case(f"gelu({far.tolist()})", (far,)))
    x = torch.cat((normal(generator, b, c), hand.expand(b, -1)), 1)
    case = Case(f"x {tuple(x.shape)}, random numbers and −1, 0, 1, 2", (x,))
    gates.judge_gradient(student, case, normal(generator, *x.shape))
