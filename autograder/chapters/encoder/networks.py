"""The feed-forward network and SwiGLU."""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.encoder.activations import gelu
from autograder.chapters.encoder.chapter import chapter
from autograder.chapters.encoder.oracles import DEEP, network_keeps_width
from autograder.chapters.encoder.parts import ACTIVATIONS, State
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.parameters import (
    Shapes,
    expect_biases_of_zero,
    expect_parameters,
    expect_spread,
)
from autograder.exercise.spec import Case, Module
from autograder.interface import StudentFunction, StudentModule


def _network(x, w_1, b_1, w_2, b_2, activation):
    return F.linear(activation(F.linear(x, w_1.T, b_1)), w_2.T, b_2)


def _gated(x, w_gate, w_up, w_down):
    gate = F.silu(F.linear(x, w_gate.T))
    return F.linear(gate * F.linear(x, w_up.T), w_down.T)


networks = Module(
    "feed-forward",
    "FeedForward",
    _network,
    given=lambda it: (it.w_1, it.b_1, it.w_2, it.b_2, it.activation),
)
gated = Module(
    "swiglu", "SwiGLU", _gated, given=lambda it: (it.w_gate, it.w_up, it.w_down)
)


# --- feed-forward: what goes wrong ----------------------------------------------------


def _is_relu(*given):
    return given[-1] is torch.relu


def _is_gelu(*given):
    return given[-1] is not torch.relu


BIASES = "Both matrices are followed by their bias: x W₁ + b₁, and … W₂ + b₂."
AS_BUILT = "Use the activation that the module was built with."

for name, why, answer, *when in (
    (
        "activation after the second matrix",
        "The non-linearity stands between the two matrices. After the second one it "
        "would let nothing negative into the residual stream, and the two matrices "
        "would be one.",
        lambda x, w_1, b_1, w_2, b_2, f: f((x @ w_1 + b_1) @ w_2 + b_2),
    ),
    (
        "activation after both matrices",
        "Nothing comes after the second matrix: an activation there would let nothing "
        "negative into the residual stream.",
        lambda x, w_1, b_1, w_2, b_2, f: f(f(x @ w_1 + b_1) @ w_2 + b_2),
    ),
    (
        "no activation",
        "Without a non-linearity between them, two matrices are only one matrix.",
        lambda x, w_1, b_1, w_2, b_2, f: (x @ w_1 + b_1) @ w_2 + b_2,
    ),
    (
        "activation before the first matrix",
        "The non-linearity acts on the hidden layer, after the first matrix.",
        lambda x, w_1, b_1, w_2, b_2, f: (f(x) @ w_1 + b_1) @ w_2 + b_2,
    ),
    (
        "both biases left out",
        BIASES,
        lambda x, w_1, b_1, w_2, b_2, f: f(x @ w_1) @ w_2,
    ),
    (
        "b_1 left out",
        BIASES,
        lambda x, w_1, b_1, w_2, b_2, f: f(x @ w_1) @ w_2 + b_2,
    ),
    (
        "b_2 left out",
        BIASES,
        lambda x, w_1, b_1, w_2, b_2, f: f(x @ w_1 + b_1) @ w_2,
    ),
    (
        "b_1 added after the activation",
        "The bias moves the point at which a neuron starts to answer, so it is added "
        "before the activation.",
        lambda x, w_1, b_1, w_2, b_2, f: (f(x @ w_1) + b_1) @ w_2 + b_2,
    ),
    (
        "residual inside the feed-forward network",
        "The layer adds the residual, and should not do so twice.",
        lambda x, *given: x + _network(x, *given),
    ),
    (
        "the activation is always ReLU",
        AS_BUILT,
        lambda *given: _network(*given[:-1], torch.relu),
        _is_gelu,
    ),
    (
        "the tanh approximation of GELU",
        "Use your own gelu, the exact one.",
        lambda *given: _network(*given[:-1], lambda u: F.gelu(u, approximate="tanh")),
        _is_gelu,
    ),
    (
        "the activation is always GELU",
        AS_BUILT,
        lambda *given: _network(*given[:-1], F.gelu),
        _is_relu,
    ),
):
    networks.mistake(name, why, when=when[0] if when else None)(answer)


# --- SwiGLU: what goes wrong ----------------------------------------------------------

SILU = "The gate of SwiGLU is SiLU, u·σ(u)."

for name, why, mix in (
    (
        "gate and up exchanged",
        "SiLU acts on x·w_gate. The two have the same shape, so nothing fails.",
        lambda gate, up: gate * F.silu(up),
    ),
    (
        "sigmoid in place of SiLU",
        "SiLU(u) = u·σ(u): the sigmoid still has to be multiplied by u. (With the "
        "sigmoid alone this is the older GLU.)",
        lambda gate, up: torch.sigmoid(gate) * up,
    ),
    (
        "the sign in the exponent",
        "σ(u) = 1/(1 + e⁻ᵘ): the exponent has a minus. Large u pass, small do not.",
        lambda gate, up: gate * torch.sigmoid(-gate) * up,
    ),
    ("GELU in place of SiLU", SILU, lambda gate, up: F.gelu(gate) * up),
    ("ReLU in place of SiLU", SILU, lambda gate, up: torch.relu(gate) * up),
    ("no activation", SILU, lambda gate, up: gate * up),
    (
        "added in place of multiplied",
        "The gate says how much of each feature passes: multiply entry by entry.",
        lambda gate, up: F.silu(gate) + up,
    ),
    (
        "activation on the product",
        "Only the gate is activated; then it multiplies the other projection.",
        lambda gate, up: F.silu(gate * up),
    ),
    (
        "activation on both projections",
        "Only the gate is activated; x·w_up passes as it is.",
        lambda gate, up: F.silu(gate) * F.silu(up),
    ),
    (
        "w_up is not used",
        "The activated gate multiplies a second projection, x·w_up.",
        lambda gate, up: F.silu(gate),
    ),
    (
        "w_gate is not used",
        "Two projections of x: x·w_gate is activated, x·w_up is multiplied by it.",
        lambda gate, up: F.silu(up) * up,
    ),
):
    gated.mistake(name, why)(
        lambda x, w_gate, w_up, w_down, mix=mix: mix(x @ w_gate, x @ w_up) @ w_down
    )


# --- the checks -----------------------------------------------------------------------


@chapter.check(section="encoder-feed-forward")
def feed_forward(
    student: StudentModule, gelu_student: StudentFunction, seed: int = 0
) -> None:
    """Parameters, the example by hand, both activations, each token alone."""
    with expect.relying_on(gelu, gelu_student):
        check_feed_forward(student, seed)


@chapter.check(section="encoder-feed-forward")
def network_alone(student: StudentModule, seed: int = 0) -> None:
    """Check the network for what is built on it."""
    check_feed_forward(student, seed)


WORDS = (  # for activations that are none
    (
        "an unknown activation is accepted",
        "A misspelt activation must not be replaced in silence: raise ValueError.",
        "rleu",
    ),
    (
        "another activation is accepted",
        "There are two activations here, relu and gelu. Looked up among all that "
        "PyTorch has, a wrong word may be found: ask for the two names.",
        "tanh",
    ),
    (
        "a part of a name is accepted",
        "Of several strings `in` finds one that is equal; in one string it finds every "
        "part. Is there a comma between the two names?",
        "elu",
    ),
)


def check_feed_forward(student: StudentModule, seed: int) -> None:
    """Judge parameters, values, gradients, an unknown activation, and the start."""
    generator = seeded(seed)
    a, b, t, d, d_ff = draw_sizes(generator, 5)
    d_ff += 6
    on = f"FeedForward(d_model={d}, d_ff={d_ff})"
    shapes = {"w_1": (d, d_ff), "b_1": (d_ff,), "w_2": (d_ff, d), "b_2": (d,)}
    expect_parameters(student.build(d, d_ff), shapes, on, network_keeps_width(shapes))
    _judge_network_by_hand(student)
    for activation, function in ACTIVATIONS.items():
        module, state = _loaded(student, (d, d_ff, activation), shapes, generator)
        given = (*state.values(), function)
        for x, where in _batches(generator, a, b, t, d):
            on_this = f"{on}, activation {activation!r}, {where}"
            case = Case(on_this, (x,), given=given, tolerance=DEEP)
            networks.judge(module, case)
        networks.judge_gradient(module, case, normal(generator, *x.shape))
    for name, why, word in WORDS:
        expect.raises(
            "ValueError",
            lambda word=word: student.build(d, d_ff, word),
            on=f"FeedForward({d}, {d_ff}, {word!r})",
            why=why,
            mistake=name,
        )
    state = _expect_start(student, "FeedForward", ("w_1", "w_2"))
    expect_biases_of_zero(state, ("b_1", "b_2"), "FeedForward(32, 512)")


def _judge_network_by_hand(student: StudentModule) -> None:
    state = {
        "w_1": torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]),
        "b_1": torch.tensor([0.0, 0.0, 1.0]),
        "w_2": torch.tensor([[1.0, 0.0], [5.0, 5.0], [0.0, 2.0]]),
        "b_2": torch.tensor([0.5, 0.0]),
    }
    module = student.build(2, 3)
    module.load_state_dict(state)
    x = torch.tensor([[1.0, -2.0], [-1.0, 0.0]])
    expected = torch.tensor([[1.5, 2.0], [0.5, 0.0]])
    on = "the example by hand, x = (1, −2), and x = (−1, 0)"
    networks.judge(module, Case(on, (x,), expected, (*state.values(), torch.relu)))


@chapter.check(section="encoder-swiglu")
def swiglu(student: StudentModule, seed: int = 0) -> None:
    """Parameters, the example by hand, PyTorch's SiLU, gradients."""
    generator = seeded(seed)
    a, b, t, d, d_ff = draw_sizes(generator, 5)
    d_ff += 6
    on = f"SwiGLU(d_model={d}, d_ff={d_ff})"
    shapes = {"w_gate": (d, d_ff), "w_up": (d, d_ff), "w_down": (d_ff, d)}
    expect_parameters(student.build(d, d_ff), shapes, on)
    _judge_gate_by_hand(student)
    module, state = _loaded(student, (d, d_ff), shapes, generator)
    given = tuple(state.values())
    for x, where in _batches(generator, a, b, t, d):
        case = Case(f"{on}, {where}", (x,), given=given, tolerance=DEEP)
        gated.judge(module, case)
    gated.judge_gradient(module, case, normal(generator, *x.shape), tolerance=1e-3)
    overflow = (
        "not stable for large numbers",
        "exp overflows for numbers of this size, and ∞/∞ is NaN: use torch.sigmoid.",
    )
    x, on = torch.tensor([[400.0] * d, [-400.0] * d]), f"{on}, x = ±400"
    case = Case(on, (x,), given=given, tolerance=DEEP, unless_finite=overflow)
    gated.judge(module, case)
    _expect_start(student, "SwiGLU", shapes)


def _judge_gate_by_hand(student: StudentModule) -> None:
    module = student.build(1, 2)
    state = {
        "w_gate": torch.tensor([[1.0, -1.0]]),
        "w_up": torch.tensor([[1.0, 3.0]]),
        "w_down": torch.ones(2, 1),
    }
    module.load_state_dict(state)
    x, expected = torch.tensor([[2.0], [0.0]]), torch.tensor([[2.0928], [0.0]])
    on, given = "the example by hand, x = 2, and x = 0", tuple(state.values())
    gated.judge(module, Case(on, (x,), expected, given, tolerance=1e-4))


def _loaded(student: StudentModule, sizes: tuple, shapes: Shapes, generator):
    """Build a module and load random parameters."""
    module = student.build(*sizes)
    state = {name: normal(generator, *shape) for name, shape in shapes.items()}
    module.load_state_dict(state)
    return module, state


def _batches(generator, a, b, t, d) -> Iterator[tuple[torch.Tensor, str]]:
    for shape in ((t, d), (a, b, t, d), (b, t, d)):
        yield normal(generator, *shape), f"x {shape}"


def _expect_start(student: StudentModule, answer: str, names) -> State:
    """Expect matrices with a spread of one over the root of their rows."""
    state, on = student.build(32, 512).state_dict(), f"{answer}(32, 512)"
    for name in names:
        rows = len(state[name])
        why = (
            f"Each sum of x @ {name} has {rows} terms. Divide the random numbers by "
            "the root of that, and the sums have a spread of about 1."
        )
        formula = f"1/√{rows}"
        wanted = 1 / math.sqrt(rows)
        expect_spread(state[name], wanted, on, name=name, formula=formula, why=why)
    return state
