"""How many parameters an encoder layer has."""

import functools
import itertools
import math
from collections import Counter
from collections.abc import Iterable

from autograder.chapters.encoder.chapter import chapter
from autograder.chapters.encoder.oracles import layer_shapes
from autograder.exercise.inputs import WholeNumbers, draw_sizes
from autograder.exercise.spec import Case, Function, Known
from autograder.expect import refuse
from autograder.interface import StudentFunction


def _right(d: int, d_ff: int) -> int:
    """Add up what the shapes of all parameters of a layer hold."""
    return sum(map(math.prod, layer_shapes(d, d_ff).values()))


counting = Function("encoder-layer-parameters", "encoder_layer_parameters", _right)

for name, why, answer in (
    (
        "biases and norms left out",
        "These are the matrices alone, the rule of thumb 12 d². Here all counts.",
        lambda d, d_ff: 4 * d * d + 2 * d * d_ff,
    ),
    (
        "the rule of thumb 12 d²",
        "The rule of thumb assumes d_ff = 4 d and leaves out biases and norms.",
        lambda d, d_ff: 12 * d * d,
    ),
    (
        "biases left out",
        "All six matrices have a bias.",
        lambda d, d_ff: 4 * d * d + 2 * d * d_ff + 4 * d,
    ),
    (
        "norms or biases of attention left out",
        "4 d are missing. Two groups have this size: gamma and beta of both norms, and "
        "the four biases of attention, b_q, b_k, b_v and b_o.",
        lambda d, d_ff: _right(d, d_ff) - 4 * d,
    ),
    (
        "biases of the network left out",
        "The network has b_1 (d_ff,) and b_2 (d,).",
        lambda d, d_ff: 4 * (d * d + d) + 2 * d * d_ff + 4 * d,
    ),
    (
        "half of the norms left out",
        "Two norms, each with gamma (d,) and beta (d,): together 4 d.",
        lambda d, d_ff: _right(d, d_ff) - 2 * d,
    ),
    (
        "d_ff = d_model",
        "This takes both matrices of the network as d × d. They are d × d_ff and "
        "d_ff × d.",
        lambda d, d_ff: _right(d, d),
    ),
    (
        "w_o left out",
        "Attention has four projections: for queries, keys, values, and w_o.",
        lambda d, d_ff: 3 * (d * d + d) + 2 * d * d_ff + d_ff + d + 4 * d,
    ),
    (
        "only one matrix in the network",
        "The network has two matrices: it expands and contracts.",
        lambda d, d_ff: 4 * (d * d + d) + d * d_ff + d_ff + d + 4 * d,
    ),
    (
        "b_2 counted with d_ff",
        "b_2 is added to the network's result: (d,).",
        lambda d, d_ff: 4 * (d * d + d) + 2 * (d * d_ff + d_ff) + 4 * d,
    ),
    (
        "b_1 counted with d_model",
        "b_1 is as wide as the hidden layer: (d_ff,).",
        lambda d, d_ff: 4 * (d * d + d) + 2 * (d * d_ff + d) + 4 * d,
    ),
):
    counting.mistake(name, why)(answer)


def _two_slips(one: Known, other: Known, d: int, d_ff: int) -> int:
    return one.answer(d, d_ff) + other.answer(d, d_ff) - _right(d, d_ff)


def add_pairs(names: Iterable[str]) -> None:
    """Add what two slips give together, unless some other slips give the same."""
    single = [each for each in counting.mistakes if each.name in set(names)]
    both = list(itertools.combinations(single, 2))
    probe = 41, 89
    met = Counter([_right(*probe)])
    met.update(each.answer(*probe) for each in counting.mistakes)
    met.update(_two_slips(*pair, *probe) for pair in both)
    for one, other in both:
        if met[_two_slips(one, other, *probe)] == 1:
            why = f"{one.why} And: {other.name}. {other.why}"
            counting.mistake(one.name, why)(functools.partial(_two_slips, one, other))


add_pairs(
    (
        "w_o left out",
        "only one matrix in the network",
        "norms or biases of attention left out",
        "half of the norms left out",
        "biases of the network left out",
        "b_2 counted with d_ff",
        "b_1 counted with d_model",
    )
)


@chapter.check(section="encoder-parameters")
def encoder_layer_parameters(student: StudentFunction, seed: int = 0) -> None:
    """Compare with the number of parameters of PyTorch's layer."""
    source = WholeNumbers(seed)
    sizes = [(4, 6), (512, 2048)]
    for _ in range(3):
        d, d_ff = draw_sizes(source, 2)
        sizes.append((8 * d, 8 * d_ff + 3))
    for d, d_ff in sizes:
        on = f"encoder_layer_parameters(d_model={d}, d_ff={d_ff})"
        case = Case(on, (d, d_ff), tolerance=0, what="the number")
        got = counting.judge(student, case)
        if isinstance(got, float):
            why = "A number of parameters is an int: use *, ** and //, not /."
            expected = f"{counting.right(case)}"
            refuse("not a whole number", why, on=on, got=f"{got}", expected=expected)
