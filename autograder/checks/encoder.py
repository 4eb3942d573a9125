"""Checks of chapter 6, the encoder.

The oracles are PyTorch's own layers with the same weights, values worked out by hand,
and properties. A known mistake is found by computing what it would give on the same
input.
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator

import torch
import torch.nn.functional as F
from torch import nn

from autograder import expect, forbidden
from autograder.checks.encoder_mistakes import (
    Candidate,
    Parts,
    State,
    dropped_candidates,
    encoder_candidates,
    encoder_layer_candidates,
    feed_forward_candidates,
    gelu_candidates,
    layer_norm_candidates,
    loss_candidates,
    masking_candidates,
    norms_by_name,
    parameters_candidates,
    rms_norm_candidates,
    stack,
    swiglu_candidates,
    under,
)
from autograder.checks.shared import (
    draw_sizes,
    known_mistakes,
    normal,
    refuse,
    refuse_if,
    seeded,
)
from autograder.expect import Chapter, Mistake, describe_error, show
from autograder.interface import (
    Data,
    StudentError,
    StudentFunction,
    StudentInstance,
    StudentModule,
)

chapter = Chapter(6, "06_encoder")

DEEP = 3e-5  # tolerance of what has gone through several matrices in float32


# --- shared ---------------------------------------------------------------------------


def _expect_finite(got: Data, *, on: str, mistake: str, why: str) -> None:
    """Name the mistake that NaN or infinity in a result gives away."""
    if isinstance(got, torch.Tensor) and got.is_floating_point():
        bad = not bool(got.isfinite().all())
        say = {"on": on, "got": show(got), "expected": "finite numbers"}
        refuse_if(bad, mistake, why, **say)


def _expect_gradients(found: dict[str, torch.Tensor | None], on: str) -> None:
    """Expect that a gradient reached every input and parameter."""
    why = (
        "A step cut the result off from it, so it could not learn. Stay in PyTorch: no "
        ".detach(), .item(), .numpy(), torch.no_grad() and no torch.tensor(...) of a "
        "tensor."
    )
    for name, gradient in found.items():
        where = f"the gradient with respect to {name}; {on}"
        say = {"on": where, "got": "None", "expected": "a tensor"}
        refuse_if(gradient is None, "no gradient comes back", why, **say)


@contextlib.contextmanager
def _lost_axis_named() -> Iterator[None]:
    """Name the mistake behind a mean that does not broadcast against its rows."""
    try:
        yield
    except StudentError as error:
        if error.kind == "RuntimeError" and "must match the size" in error.text:
            why = (
                "A mean or variance lost its axis and no longer fits the rows it came "
                "from, (B, T) against (B, T, d). Ask for keepdim=True."
            )
            got = describe_error(error)
            refuse("the axis of the mean is lost", why, on=error.call, got=got)
        raise


def _names(state: dict[str, torch.Tensor]) -> str:
    return ", ".join(f"{name} {tuple(x.shape)}" for name, x in state.items())


def _expect_parameters(
    student: StudentInstance,
    shapes: dict[str, tuple[int, ...]],
    on: str,
    special: Callable[[set[str], set[str]], Iterable[tuple[bool, str, str]]] = (
        lambda missing, extra: ()
    ),
) -> None:
    """Expect parameters of these names and shapes, and no others.

    ``special`` yields (whether, name, why) for mistakes of one exercise, given the
    names that are missing and those that are too many.
    """
    state, trained = student.state_dict(), set(student.parameter_names())
    missing, extra = set(shapes) - trained, trained - set(shapes)
    expected = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
    if len(shapes) > 6:
        shown = sorted(missing) or sorted(extra) or sorted(shapes)[:4]
        expected = f"{len(shapes)} parameters, among them {', '.join(shown[:5])}"
    got = _names({k: v for k, v in state.items() if not missing or k in trained})
    if len(shapes) > 6:
        shown = sorted(extra)[:5] or ["…"]
        got = f"{len(trained)} parameters, among them {', '.join(shown)}"
    say = {"on": on, "got": got or "no parameters", "expected": expected}
    for condition, name, why in special(missing, extra):
        refuse_if(condition, name, why, **say)
    lost = ", ".join(sorted(missing)[:5])
    why = (
        "nn.Linear would do the same work, but it hides the matrix and stores its "
        "transpose. Here the matrices themselves are the parameters: nn.Parameter."
    )
    linear = bool(missing) and any(name.endswith(".weight") for name in extra)
    refuse_if(linear, "PyTorch's module in place of your own", why, **say)
    why = (
        f"Not among the parameters: {lost}. Only an nn.Parameter, or a module, that "
        "is an attribute of the module is found by an optimiser."
    )
    refuse_if(bool(missing) and not extra, "parameters are missing", why, **say)
    why = "The check loads its own numbers by name: keep the names of the docstring."
    refuse_if(bool(missing), "the parameters have other names", why, **say)
    why = f"Not asked for: {', '.join(sorted(extra)[:5])}."
    refuse_if(bool(extra), "one parameter too many", why, **say)
    wrong = [name for name in shapes if state[name].shape != shapes[name]]
    if wrong:
        say["got"] = _names({name: state[name] for name in wrong})
        say["expected"] = ", ".join(f"{name} {shapes[name]}" for name in wrong)
        turned = all(state[name].shape == shapes[name][::-1] for name in wrong)
        why = (
            "Vectors are rows, y = x W, so a matrix is (width in, width out). Only "
            "torch.nn.Linear stores the transpose."
        )
        refuse_if(turned, "weights stored transposed", why, **say)
        why = "A bias or a gamma is one row of numbers: (d,), not (1, d) or (d, 1)."
        extra_axis = all(
            state[name].dim() == len(shapes[name]) + 1
            and state[name].numel() == math.prod(shapes[name])
            for name in wrong
        )
        refuse_if(extra_axis, "one axis too many", why, **say)
        inside = [
            name
            for name in wrong
            if name.rpartition(".")[2] in ("w_1", "b_1")
            and set(state[name].shape) == {shapes[name[:-3] + "w_1"][0]}
        ]
        why = (
            "The network expands to d_ff and contracts again: w_1 (d_model, d_ff), "
            "w_2 (d_ff, d_model)."
        )
        refuse_if(bool(inside), "d_ff = d_model", why, **say)
        why = "One number for each feature: the parameter has the width of the token."
        single = all(state[name].numel() == 1 for name in wrong)
        refuse_if(single, "one number for all features", why, **say)
        refuse("parameters of other shapes", f"Look at {', '.join(wrong)}.", **say)


def _expect_start(state: State, name: str, value: float, on: str) -> None:
    """Expect a parameter that starts with the same number everywhere."""
    say = {"on": f"{on}, freshly built", "got": f"{name} = {show(state[name])}"}
    mistake, why = "the biases do not start at zero", "Biases start at 0."
    if name in ("gamma", "beta"):
        mistake = "gamma and beta start with other numbers"
        why = "gamma starts at 1 and beta at 0: at first the layer only normalises."
    wrong = not bool((state[name] == value).all())
    refuse_if(wrong, mistake, why, expected=f"{value:g} everywhere", **say)


def _expect_spread(state: State, name: str, on: str) -> None:
    """Expect random numbers with a spread of one over the root of the rows."""
    matrix = state[name]
    wanted, found = matrix.shape[0] ** -0.5, matrix.std().item()
    say = {
        "on": f"{on}, freshly built",
        "got": f"{name} with a standard deviation of {found:.3f}",
        "expected": f"about 1/√{matrix.shape[0]} = {wanted:.3f}",
    }
    why = (
        f"Each sum of x @ {name} has {matrix.shape[0]} terms. Divide the random "
        "numbers by the root of that, and the sums have a spread of about 1."
    )
    refuse_if(found > 2 * wanted, "the weights start too large", why, **say)
    refuse_if(not found > wanted / 2, "the weights start too small", why, **say)


# --- norms ----------------------------------------------------------------------------


def _inputs_of_norm(generator: torch.Generator) -> Iterator[tuple[torch.Tensor, str]]:
    """Draw tokens of several shapes and scales, all of one width, the last first."""
    a, b, t, d = draw_sizes(generator, 4)
    d += 2
    yield normal(generator, t, d), "tokens of spread 1"
    yield 3 * normal(generator, b, t, d) + 1, "tokens of spread 3 and mean 1"
    small = 1e-3 * normal(generator, b, t, d)
    yield small, "tokens of spread 0.001"
    yield 0.1 * normal(generator, a, b, t, d), "four axes, spread 0.1"
    yield normal(generator, d), "a single token"


def _check_norm(
    student: StudentModule,
    hand: tuple[State, torch.Tensor, torch.Tensor],
    oracle: Callable,
    candidates: Callable,
    seed: int,
) -> None:
    generator = seeded(seed)
    state, x, expected = hand
    module = student.build(x.shape[-1])
    shapes = {name: tuple(value.shape) for name, value in state.items()}
    on = f"{student.name}({x.shape[-1]})"
    _expect_parameters(module, shapes, on, _beta_named)
    for name in state:
        _expect_start(module.state_dict(), name, float(name == "gamma"), on)
    module.load_state_dict(state)
    on = f"the example by hand, x = {show(x)}, {_shown(state)}"
    with _lost_axis_named():
        got = module(x)
    found = known_mistakes(candidates(x, *state.values(), 1e-5))
    expect.equal(got, expected, on=on, mistakes=found, tolerance=2e-4)
    for x, on in _inputs_of_norm(generator):
        d = x.shape[-1]
        state = {name: 1 + normal(generator, d) for name in shapes}
        for epsilon in (1e-5, 0.1):
            module = student.build(d) if epsilon < 1e-4 else student.build(d, epsilon)
            module.load_state_dict(state)
            say = f"{on}, {tuple(x.shape)}, epsilon {epsilon:g}, random parameters"
            with _lost_axis_named():
                got = module(x)
            expected = oracle(x, *state.values(), epsilon)
            found = known_mistakes(candidates(x, *state.values(), epsilon))
            expect.equal(got, expected, on=say, mistakes=found)


def _shown(state: State) -> str:
    return ", ".join(f"{name} = {show(value)}" for name, value in state.items())


def _beta_named(missing: set, extra: set) -> Iterator[tuple[bool, str, str]]:
    why = "RMS norm has a scale for each feature, and no offset."
    yield extra == {"beta"} and not missing, "a beta in RMS norm", why


def _expect_flat_token(
    student: StudentModule, value: float, start: float, seed: int
) -> None:
    """Expect finite values and gradients on a token whose features are all equal."""
    d = 5 + seed % 3
    module = student.build(d)
    x = torch.full((2, 3, d), value)
    x[1] = normal(seeded(seed), 3, d)
    on = f"x {tuple(x.shape)} in which every feature of x[0] is {value:g}"
    why = (
        "Such a token has the spread 0, and 0/0 is NaN. Epsilon, added before the root "
        "is taken, keeps the divisor above 0."
    )
    got = module(x)
    _expect_finite(got, on=on, mistake="NaN for a constant token", why=why)
    expected = torch.full((3, d), start)
    rounded = 1e-3  # what is left of x - mean is divided by the root of epsilon
    expect.equal(got[0], expected, on=on, what="the result for x[0]", tolerance=rounded)
    found = module.gradients(x, cotangent=normal(seeded(seed + 1), *x.shape))
    _expect_gradients({"x": found.inputs[0], **found.parameters}, on)
    why = (
        "The values are right, but somewhere the root of the variance is taken without "
        "epsilon. The root has an infinite derivative at 0, and 0 · ∞ is NaN. One "
        "such token (padding!) spoils the training of all. Write √(σ² + ε)."
    )
    name = "NaN gradient on a constant token"
    _expect_finite(found.inputs[0], on=f"the gradient; {on}", mistake=name, why=why)


def _expect_gradient_of(student: StudentModule, oracle: Callable, seed: int) -> None:
    """Compare the gradient with respect to x and to the parameters."""
    generator = seeded(seed)
    d = 7
    x, cotangent = normal(generator, 2, 3, d), normal(generator, 2, 3, d)
    module = student.build(d)
    trained = set(module.parameter_names())
    names = [name for name in ("gamma", "beta") if name in trained]  # as the oracle's
    state = {name: 1 + normal(generator, d) for name in names}
    module.load_state_dict(state)
    on = f"the gradient at random x {tuple(x.shape)}"
    found = module.gradients(x, cotangent=cotangent)
    everything = {"x": found.inputs[0]}
    everything |= {name: found.parameters[name] for name in names}
    _expect_gradients(everything, on)
    sources = [x, *state.values()]
    for source in sources:
        source.requires_grad_()
    wanted = torch.autograd.grad((oracle(*sources, 1e-5) * cotangent).sum(), sources)
    for (name, got), right in zip(everything.items(), wanted, strict=True):
        expect.equal(got, right, on=on, what=f"the gradient of {name}", tolerance=DEEP)


def _torch_layer_norm(x, gamma, beta, epsilon) -> torch.Tensor:
    return F.layer_norm(x, x.shape[-1:], gamma, beta, epsilon)


@chapter.check(section="encoder-layer-norm", forbidden=(forbidden.LAYER_NORM,))
def layer_norm(student: StudentModule, seed: int = 0) -> None:
    """Parameters, PyTorch's values at every scale, constant tokens, gradients."""
    state = {
        "gamma": torch.tensor([1.0, 1.0, 1.0, 2.0]),
        "beta": torch.tensor([0.0, 0.0, 0.0, 1.0]),
    }
    x = torch.tensor([[1.0, 2.0, 3.0, 6.0], [12.0, 6.0, 4.0, 2.0]])
    expected = torch.tensor(  # by hand; the second token is −2 times the first, + 14
        [[-1.0690, -0.5345, 0.0, 4.2071], [1.6036, 0.0, -0.5345, -1.1381]]
    )
    hand = state, x, expected
    _check_norm(student, hand, _torch_layer_norm, layer_norm_candidates, seed)
    _expect_flat_token(student, 3.0, 0.0, seed)
    _expect_gradient_of(student, _torch_layer_norm, seed)


def _torch_rms_norm(x, gamma, epsilon) -> torch.Tensor:
    return F.rms_norm(x, x.shape[-1:], gamma, epsilon)


@chapter.check(section="encoder-rms-norm", forbidden=(forbidden.RMS_NORM,))
def rms_norm(student: StudentModule, seed: int = 0) -> None:
    """Parameter, PyTorch's values at every scale, a token of zeros, gradients."""
    x = torch.tensor([[3.0, 4.0], [-6.0, 8.0], [1.0, 1.0]])
    expected = torch.tensor([[0.8485, 2.2627], [-0.8485, 2.2627], [1.0, 2.0]])
    hand = {"gamma": torch.tensor([1.0, 2.0])}, x, expected
    _check_norm(student, hand, _torch_rms_norm, rms_norm_candidates, seed)
    _expect_flat_token(student, 0.0, 0.0, seed)
    _expect_gradient_of(student, _torch_rms_norm, seed)


HOW_TO_TELL = {
    "layer norm": "Here the root mean square of a token of y is σ/√(σ² + ε), with its "
    "own biased σ: 0.30 for σ = 0.001.",
    "batch norm": "Here every feature of y has mean 0 over all B·T tokens, the axes "
    "(0, 1), and the tokens have not.",
    "whole tensor": "Here neither tokens nor features of y have mean 0, only all "
    "numbers together.",
    "unbiased variance": "Here y is a little smaller than layer norm's, by up to "
    "√((d − 1)/d). Mind that x.var() divides by d − 1 unless correction=0.",
    "epsilon outside the root": "Here the root mean square of a token of y is "
    "σ/(σ + ε): 0.99 even for σ = 0.001.",
}


@chapter.check(section="encoder-epsilon")
def diagnose_norm(student: StudentFunction, seed: int = 0) -> None:
    """Check that five normalisations are told apart at several sizes."""
    generator = seeded(seed)
    found = []
    for case in range(4):
        b, t, d = draw_sizes(generator, 3)
        d = (4, d + 2, 16, 3 * d + 4)[case]
        spread = 1e-3 * 10 ** torch.rand(b, t, 1, generator=generator)
        centred = F.layer_norm(normal(generator, b, t, d), (d,))
        x = spread * centred + 0.005 * normal(generator, b, t, 1)
        for truth, y in norms_by_name(x).items():
            on = f"x and y {tuple(x.shape)}, where y was made by {truth!r}"
            found.append((student(x, y), truth, on))
    answers = [answer for answer, _, _ in found]
    if all(isinstance(each, str) for each in answers) and len(set(answers)) == 1:
        why = "There are five possible answers, and each of them occurs in this check."
        on = "five y from different norms"
        say = {"on": on, "got": f"{answers[0]!r} each time"}
        refuse("always the same answer", why, **say)
    for answer, truth, on in found:
        say = {"on": on, "got": show(answer), "expected": f"{truth!r}"}
        if not isinstance(answer, str) or answer not in HOW_TO_TELL:
            why = f"The five are: {', '.join(HOW_TO_TELL)}."
            if answer is None:
                why += (
                    " No `return` was reached: numbers computed in two ways are hardly "
                    "ever equal, so ask which suspect is nearest."
                )
            refuse("another word than the five", why, **say)
        name = f"takes “{truth}” for “{answer}”"
        refuse_if(answer != truth, name, HOW_TO_TELL[truth], **say)


# --- activations and feed-forward networks --------------------------------------------


@chapter.check(section="encoder-gelu", forbidden=(forbidden.GELU,))
def gelu(student: StudentFunction, seed: int = 0) -> None:
    """Values by hand and PyTorch's exact ones, any shape, the gradient."""
    generator = seeded(seed)
    a, b, c = draw_sizes(generator, 3)
    hand = torch.tensor([-1.0, 0.0, 1.0, 2.0])
    expected = torch.tensor([-0.158655, 0.0, 0.841345, 1.954500])
    found = known_mistakes(gelu_candidates(hand))
    expect.equal(student(hand), expected, on="gelu([-1, 0, 1, 2])", mistakes=found)
    for shape in ((c,), (b, c), (a, b, c)):
        x = 2 * normal(generator, *shape)
        found = known_mistakes(gelu_candidates(x))
        expect.equal(student(x), F.gelu(x), on=f"random x {shape}", mistakes=found)
    x = torch.tensor([-30.0, -5.0, 5.0, 30.0, 1000.0, -1000.0])
    expect.equal(student(x), F.gelu(x), on=f"gelu({show(x)})")
    x = normal(generator, b, c)
    on = f"the gradient at random x {tuple(x.shape)}"
    gradient = student.gradients(x).inputs[0]
    _expect_gradients({"x": gradient}, on)
    (wanted,) = torch.autograd.grad(F.gelu(x.requires_grad_()).sum(), x)
    expect.equal(gradient, wanted, on=on, what="the gradient")


ACTIVATIONS = {"relu": torch.relu, "gelu": F.gelu}


@chapter.check(section="encoder-feed-forward")
def feed_forward(
    student: StudentModule, gelu_student: StudentFunction, seed: int = 0
) -> None:
    """Parameters, the example by hand, both activations, each token alone."""
    with expect.relying_on(gelu, gelu_student):
        _check_feed_forward(student, seed)


def _check_feed_forward(student: StudentModule, seed: int) -> None:
    generator = seeded(seed)
    a, b, t, d, d_ff = draw_sizes(generator, 5)
    d_ff += 6
    on = f"FeedForward(d_model={d}, d_ff={d_ff})"
    module = student.build(d, d_ff)
    shapes = {"w_1": (d, d_ff), "b_1": (d_ff,), "w_2": (d_ff, d), "b_2": (d,)}
    _expect_parameters(module, shapes, on)
    _expect_network_by_hand(student)
    for activation, function in ACTIVATIONS.items():
        module = student.build(d, d_ff, activation)
        state = {name: normal(generator, *shape) for name, shape in shapes.items()}
        module.load_state_dict(state)
        for shape in ((t, d), (b, t, d), (a, b, t, d)):
            x = normal(generator, *shape)
            where = f"{on}, activation {activation!r}, x {shape}"
            hidden = function(F.linear(x, state["w_1"].T, state["b_1"]))
            expected = F.linear(hidden, state["w_2"].T, state["b_2"])
            found = known_mistakes(feed_forward_candidates(x, state, function))
            got = module(x)
            expect.equal(got, expected, on=where, mistakes=found, tolerance=DEEP)
        found = module.gradients(x)
        _expect_gradients({"x": found.inputs[0], **found.parameters}, where)
    why = "A misspelt activation must not be replaced in silence: raise ValueError."
    name = "an unknown activation is accepted"
    where = f"FeedForward({d}, {d_ff}, 'rleu')"
    expect.raises(
        "ValueError",
        lambda: student.build(d, d_ff, "rleu"),
        on=where,
        why=why,
        mistake=name,
    )
    state = student.build(32, 512).state_dict()
    for name in ("b_1", "b_2"):
        _expect_start(state, name, 0.0, "FeedForward(32, 512)")
    for name in ("w_1", "w_2"):
        _expect_spread(state, name, "FeedForward(32, 512)")


def _expect_network_by_hand(student: StudentModule) -> None:
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
    found = known_mistakes(feed_forward_candidates(x, state, torch.relu))
    on = "the example by hand, x = (1, −2), and x = (−1, 0)"
    expect.equal(module(x), expected, on=on, mistakes=found)


@chapter.check(section="encoder-swiglu")
def swiglu(student: StudentModule, seed: int = 0) -> None:
    """Parameters, the example by hand, PyTorch's SiLU, gradients."""
    generator = seeded(seed)
    a, b, t, d, d_ff = draw_sizes(generator, 5)
    d_ff += 6
    on = f"SwiGLU(d_model={d}, d_ff={d_ff})"
    shapes = {"w_gate": (d, d_ff), "w_up": (d, d_ff), "w_down": (d_ff, d)}
    _expect_parameters(student.build(d, d_ff), shapes, on)
    module = student.build(1, 2)
    state = {
        "w_gate": torch.tensor([[1.0, -1.0]]),
        "w_up": torch.tensor([[1.0, 3.0]]),
        "w_down": torch.ones(2, 1),
    }
    module.load_state_dict(state)
    x = torch.tensor([[2.0], [0.0]])
    found = known_mistakes(swiglu_candidates(x, *state.values()))
    say = {"on": "the example by hand, x = 2, and x = 0", "mistakes": found}
    expect.equal(module(x), torch.tensor([[2.0928], [0.0]]), tolerance=1e-4, **say)
    module = student.build(d, d_ff)
    state = {name: normal(generator, *shape) for name, shape in shapes.items()}
    module.load_state_dict(state)
    for shape in ((t, d), (b, t, d), (a, b, t, d)):
        x = normal(generator, *shape)
        gate = F.silu(F.linear(x, state["w_gate"].T))
        expected = F.linear(gate * F.linear(x, state["w_up"].T), state["w_down"].T)
        found = known_mistakes(swiglu_candidates(x, *state.values()))
        say = {"on": f"{on}, x {shape}", "mistakes": found, "tolerance": DEEP}
        expect.equal(module(x), expected, **say)
    x = torch.tensor([[400.0] * d, [-400.0] * d])
    why = "exp(−u) is infinite for u = −1000, and what divides ∞ by ∞ is NaN."
    name = "not stable for large numbers"
    _expect_finite(module(x), on=f"{on}, x = ±400", mistake=name, why=why)
    found = module.gradients(normal(generator, t, d))
    _expect_gradients({"x": found.inputs[0], **found.parameters}, on)
    state = student.build(32, 512).state_dict()
    for name in shapes:
        _expect_spread(state, name, "SwiGLU(32, 512)")


# --- the layer ------------------------------------------------------------------------


def _layer_shapes(d: int, d_ff: int) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for each in "qkvo":
        shapes[f"attention.w_{each}"], shapes[f"attention.b_{each}"] = (d, d), (d,)
    shapes |= {"feed_forward.w_1": (d, d_ff), "feed_forward.b_1": (d_ff,)}
    shapes |= {"feed_forward.w_2": (d_ff, d), "feed_forward.b_2": (d,)}
    for i in (1, 2):
        shapes |= {f"norm_{i}.gamma": (d,), f"norm_{i}.beta": (d,)}
    return shapes


def _draw_state(generator: torch.Generator, shapes: dict) -> State:
    """Draw parameters: matrices with a spread of 1/√rows, gammas around 1."""
    state = {}
    for name, shape in shapes.items():
        value = normal(generator, *shape)
        matrix = len(shape) == 2
        value = value / shape[0] ** 0.5 if matrix else 0.5 * value
        state[name] = value + 1 if name.endswith("gamma") else value
    return state


def _to_torch(state: State) -> State:
    """Rename the parameters of one layer to those of nn.TransformerEncoderLayer."""
    weights = [state[f"attention.w_{each}"].T for each in "qkv"]
    result = {
        "self_attn.in_proj_weight": torch.cat(weights),
        "self_attn.in_proj_bias": torch.cat([state[f"attention.b_{e}"] for e in "qkv"]),
        "self_attn.out_proj.weight": state["attention.w_o"].T,
        "self_attn.out_proj.bias": state["attention.b_o"],
    }
    for i in (1, 2):
        result[f"linear{i}.weight"] = state[f"feed_forward.w_{i}"].T
        result[f"linear{i}.bias"] = state[f"feed_forward.b_{i}"]
        result[f"norm{i}.weight"] = state[f"norm_{i}.gamma"]
        result[f"norm{i}.bias"] = state[f"norm_{i}.beta"]
    return result


def _torch_layer(d, heads, d_ff, pre, activation) -> nn.TransformerEncoderLayer:
    """Build PyTorch's layer, in training, where it takes no shortcuts."""
    return nn.TransformerEncoderLayer(
        d, heads, d_ff, 0.0, activation, batch_first=True, norm_first=pre
    )


def _torch_mask(mask: torch.Tensor | None, x: torch.Tensor, heads: int):
    """Turn a mask of the course into PyTorch's: True hides, one for each head."""
    if mask is None or mask.dim() == 2:
        return None if mask is None else ~mask
    length = x.shape[-2]
    return (~mask).expand(len(mask), length, length).repeat_interleave(heads, 0)


def _masks(generator: torch.Generator, b: int, t: int) -> list[torch.Tensor]:
    """Draw a causal mask, a padding mask, and one for every pair."""
    causal = torch.ones(t, t).tril().bool()
    lengths = torch.randint(1, t, (b,), generator=generator)
    padding = (torch.arange(t) < lengths.unsqueeze(1)).unsqueeze(1)
    pairs = (torch.rand(b, t, t, generator=generator) < 0.5) | torch.eye(t).bool()
    return [causal, padding, pairs]


def _layer_sizes(generator: torch.Generator) -> tuple[int, int, int, int, int]:
    """Draw b, t, heads, d and d_ff."""
    b, t, heads = draw_sizes(generator, 3)
    heads = 2 + heads % 2
    return b, t + 1, heads, 6 * heads, 6 * heads + 5


@contextlib.contextmanager
def _misplaced_mask_named(mask: torch.Tensor | None) -> Iterator[None]:
    """Name the mistake behind a call that fails only when there is a mask."""
    try:
        yield
    except StudentError as error:
        if mask is not None and error.kind in ("RuntimeError", "TypeError"):
            why = (
                "Without a mask the same call succeeds. Probably the mask stands in "
                "the second place of attention, which belongs to x_kv: write "
                "mask=mask."
            )
            said = f"{error.kind}: {describe_error(error)}"
            refuse("fails as soon as there is a mask", why, on=error.call, got=said)
        raise


@contextlib.contextmanager
def _pair_named() -> Iterator[None]:
    """Name the mistake behind a pair where a tensor is wanted."""
    try:
        yield
    except StudentError as error:
        if "tuple" in error.text and error.kind in ("TypeError", "AttributeError"):
            why = (
                "MultiHeadAttention returns two things, the output and the weights. "
                "Go on with the first: attended, _ = self.attention(...)."
            )
            said = f"{error.kind}: {describe_error(error)}"
            refuse("the pair of attention is used whole", why, on=error.call, got=said)
        raise


def _expect_no_pair(got: Data, on: str) -> None:
    why = "Only the tokens go on to the next layer: return one tensor."
    say = {"on": on, "got": show(got)[:200], "expected": "one tensor"}
    refuse_if(isinstance(got, tuple), "the weights are returned, too", why, **say)


def _special_of_layer(missing: set, extra: set) -> Iterator[tuple[bool, str, str]]:
    norm = {"norm_2.gamma", "norm_2.beta"}, {"norm_1.gamma", "norm_1.beta"}
    why = "The first half has norm_1, the second norm_2, each its own parameters."
    yield missing in norm and not extra, "one norm for both halves", why
    why = "Build the norms from your own LayerNorm of exercise 6.1."
    torchs = {"norm_1.weight", "norm_1.bias", "norm_2.weight", "norm_2.bias"}
    yield torchs <= extra, "nn.LayerNorm in place of LayerNorm", why
    part = {name.partition(".")[0] for name in missing}
    why = f"The layer lacks {' and '.join(sorted(part))}."
    yield bool(missing) and not extra, "a submodule is missing", why


@chapter.check(section="encoder-layer", forbidden=(forbidden.ENCODER_LAYER,))
def encoder_layer(
    student: StudentModule,
    norm_student: StudentModule,
    network_student: StudentModule,
    seed: int = 0,
) -> None:
    """PyTorch's values with the same weights, both orders, masks, dropout."""
    with (
        expect.relying_on(layer_norm, norm_student),
        expect.relying_on(_network_alone, network_student),
    ):
        _check_layer(student, seed)


@chapter.check(section="encoder-feed-forward")
def _network_alone(student: StudentModule, seed: int = 0) -> None:
    _check_feed_forward(student, seed)


@chapter.check(section="encoder-layer")
def _layer_alone(student: StudentModule, seed: int = 0) -> None:
    _check_layer(student, seed)


def _check_layer(student: StudentModule, seed: int) -> None:
    generator = seeded(seed)
    b, t, heads, d, d_ff = _layer_sizes(generator)
    shapes = _layer_shapes(d, d_ff)
    on = f"EncoderLayer(d_model={d}, heads={heads}, d_ff={d_ff})"
    _expect_parameters(student.build(d, heads, d_ff), shapes, on, _special_of_layer)
    x = normal(generator, b, t, d) + 0.3
    for pre, activation in ((False, "relu"), (True, "relu"), (True, "gelu")):
        where = f"{on}, norm_first={pre}, activation={activation!r}"
        layer = student.build(d, heads, d_ff, 0.0, pre, activation)
        state = _draw_state(generator, shapes)
        layer.load_state_dict(state)
        right = _torch_layer(d, heads, d_ff, pre, activation)
        right.load_state_dict(_to_torch(state))
        parts = Parts(state, heads, ACTIVATIONS[activation])
        for mask in (None, *_masks(generator, b, t)):
            say = f"{where}, x {tuple(x.shape)}"
            say += "" if mask is None else f", mask {tuple(mask.shape)}"
            with _pair_named(), _misplaced_mask_named(mask):
                got = layer(x) if mask is None else layer(x, mask)
            _expect_no_pair(got, say)
            with torch.no_grad():
                expected = right(x, src_mask=_torch_mask(mask, x, heads))
            found = known_mistakes(encoder_layer_candidates(x, parts, mask, pre))
            expect.equal(got, expected, on=say, mistakes=found, tolerance=DEEP)
        one = right(x[0]).detach()
        expect.equal(layer(x[0]), one, on=f"{where}, x {(t, d)}", tolerance=DEEP)
        dropping = student.build(d, heads, d_ff, 1.0, pre, activation)
        dropping.load_state_dict(state)
        undropped = right(x).detach()
        _expect_dropout_in_branches(dropping, parts, x, pre, undropped, where)
    _expect_layer_gradient(layer, right, x, where)


def _expect_layer_gradient(layer, right, x: torch.Tensor, on: str) -> None:
    found = layer.gradients(x, cotangent=x.flip(0).contiguous())
    _expect_gradients({"x": found.inputs[0], **found.parameters}, on)
    cotangent, x = x.flip(0), x.clone().requires_grad_()
    (wanted,) = torch.autograd.grad((right(x) * cotangent).sum(), x)
    say = {"on": f"the gradient; {on}", "what": "the gradient", "tolerance": 1e-4}
    expect.equal(found.inputs[0], wanted, **say)


def _expect_dropout_in_branches(
    layer, parts, x, pre: bool, undropped: torch.Tensor, on: str
) -> None:
    """With a probability of 1, dropout shows where it stands, without any chance."""
    layer.train(True)
    where = f"{on}, dropout=1 in training: both branches give zeros"
    got = layer(x)
    expected = x if pre else parts.norm(2, parts.norm(1, x))
    found = known_mistakes(dropped_candidates(x, parts, pre))
    expect.equal(got, expected, on=where, mistakes=found, tolerance=DEEP)
    layer.train(False)
    got, where = layer(x), f"{on}, dropout=1 in evaluation: nothing is dropped"
    why = (
        "After model.eval() nothing may be dropped. nn.Dropout knows; F.dropout has to "
        "be told: training=self.training."
    )
    still = Mistake("dropout active in evaluation", expected, why)
    expect.equal(got, undropped, on=where, mistakes=[still], tolerance=DEEP)


@chapter.check(section="encoder-torch")
def encoder_layer_from_torch(student: StudentFunction, seed: int = 0) -> None:
    """Sixteen names, each with the tensor that belongs there."""
    generator = seeded(seed)
    _, _, _, d, d_ff = _layer_sizes(generator)
    expected = _draw_state(generator, _layer_shapes(d, d_ff))
    theirs = _to_torch(expected)
    on = f"the state dict of an nn.TransformerEncoderLayer with d={d}, d_ff={d_ff}"
    try:
        got = student(theirs)
    except StudentError as error:
        if error.kind == "KeyError" and "in_proj" in error.text:
            why = (
                "attention_from_torch wants the names of nn.MultiheadAttention, "
                "without the prefix: 'in_proj_weight', not 'self_attn.in_proj_weight'."
            )
            said = describe_error(error)
            refuse("the prefix self_attn. is not cut off", why, on=on, got=said)
        raise
    why = "The function ends without `return`." if got is None else ""
    expect.true(
        isinstance(got, dict),
        "the result is not a dict",
        on=on,
        got=show(got),
        expected="a dict of 16 tensors",
        why=why,
    )
    missing = [name for name in expected if name not in got]
    extra = [str(name) for name in got if name not in expected]
    say = {
        "on": on,
        "got": f"{len(got)} names, among them {', '.join(extra[:4]) or '…'}",
        "expected": f"16 names, among them {', '.join(missing[:4]) or 'no others'}",
    }
    why = "Names of submodules and parameters are joined by a dot: attention.w_q."
    bare = "attention.w_q" in missing and "w_q" in extra
    refuse_if(bare, "the prefix attention. is missing", why, **say)
    why = "Copy the biases as well: b_1 and b_2 of the network, beta of the norms."
    biases = bool(missing) and not extra
    biases = biases and all(".b_" in name or "beta" in name for name in missing)
    refuse_if(biases, "biases left out", why, **say)
    if missing or extra:
        why = "Compare the names with those of EncoderLayer(...).state_dict()."
        refuse("the result has other names", why, **say)
    _expect_tensors(got, expected, on)


def _expect_tensors(got: dict, expected: State, on: str) -> None:
    for name, right in expected.items():
        known = []
        if right.dim() == 2:
            why = "nn.Linear keeps its matrix as (out, in). Here it is (in, out): .T"
            known.append(Mistake("a matrix is not transposed", right.mT, why))
        for other, value in expected.items():
            if value.shape == right.shape and other != name:
                why = f"{name} holds what belongs to {other}."
                known.append(Mistake("two tensors exchanged", value, why))
        say = {"on": on, "what": f"the tensor {name!r}", "mistakes": known}
        expect.equal(got[name], right, **say)


# --- the stack ------------------------------------------------------------------------


def _encoder_shapes(n: int, d: int, d_ff: int, pre: bool) -> dict:
    layer = _layer_shapes(d, d_ff)
    shapes = {f"layers.{i}.{k}": v for i in range(n) for k, v in layer.items()}
    return shapes | ({"norm.gamma": (d,), "norm.beta": (d,)} if pre else {})


def _torch_stack(n: int, d, heads, d_ff, pre, activation) -> nn.TransformerEncoder:
    """Build PyTorch's stack, with parameters of its own."""
    layer = _torch_layer(d, heads, d_ff, pre, activation)
    norm = nn.LayerNorm(d) if pre else None
    return nn.TransformerEncoder(layer, n, norm, enable_nested_tensor=False)


def _stack_to_torch(state: State, n: int, pre: bool, rename: Callable) -> State:
    """Rename the parameters of a stack to PyTorch's; ``rename`` does it for a layer."""
    theirs = {}
    for i in range(n):
        own = rename(under(f"layers.{i}.", state))
        theirs |= {f"layers.{i}.{name}": value for name, value in own.items()}
    if pre:
        theirs |= {"norm.weight": state["norm.gamma"], "norm.bias": state["norm.beta"]}
    return theirs


def _torch_encoder(state: State, n: int, d, heads, d_ff, pre, activation) -> nn.Module:
    """Build PyTorch's stack with the same parameters."""
    right = _torch_stack(n, d, heads, d_ff, pre, activation)
    right.load_state_dict(_stack_to_torch(state, n, pre, _to_torch))
    return right


def _final_norm(state: State, pre: bool) -> Callable:
    if not pre:
        return lambda x: x
    gamma, beta = state["norm.gamma"], state["norm.beta"]
    return lambda x: F.layer_norm(x, x.shape[-1:], gamma, beta)


def _expect_stack_parameters(encoder: StudentInstance, shapes, n, pre, on) -> None:
    state = encoder.state_dict()

    def special(missing: set, extra: set) -> Iterator[tuple[bool, str, str]]:
        final = {"norm.gamma", "norm.beta"}
        kept = not any(name.startswith("layers.") for name in state)
        why = (
            "PyTorch looks for modules in attributes, and does not look into Python "
            "lists: nn.ModuleList([...]). An optimiser would train nothing here."
        )
        yield kept, "the layers are in a Python list", why
        repeated = {name for name in shapes if name.startswith("layers.")} - {
            name for name in shapes if name.startswith("layers.0.")
        }
        why = (
            "All layers are one and the same object, with one set of parameters. Build "
            "a new EncoderLayer for each: [EncoderLayer(...) for _ in range(layers)]."
        )
        shared = repeated <= missing and repeated <= set(state)
        yield shared, "one layer, repeated", why
        why = (
            "In pre-norm nothing normalises the stream itself, so it leaves the last "
            "layer unnormalised: self.norm = LayerNorm(d_model) if norm_first."
        )
        yield pre and final <= missing, "no final norm in pre-norm", why
        why = "In post-norm each layer ends with a norm already: nn.Identity()."
        yield not pre and final <= extra, "final norm in post-norm", why
        numbers = {name.split(".")[1] for name in state if name.startswith("layers.")}
        why = f"{n} layers were asked for, and {len(numbers)} are there."
        yield len(numbers) != n, "another number of layers", why

    _expect_parameters(encoder, shapes, on, special)
    first, second = (state[f"layers.{i}.attention.w_q"] for i in (0, 1))
    why = (
        "The layers are copies of one, with equal numbers. Draw each for itself: call "
        "EncoderLayer(...) once for each layer instead of copying one."
    )
    say = {"on": f"{on}, freshly built", "got": "equal attention.w_q in two layers"}
    refuse_if(torch.equal(first, second), "the layers start as copies", why, **say)


@chapter.check(section="encoder-stack", forbidden=(forbidden.ENCODER_LAYER,))
def encoder(
    student: StudentModule, layer_student: StudentModule, seed: int = 0
) -> None:
    """PyTorch's stack with the same weights, both orders, masks, dropout."""
    with expect.relying_on(_layer_alone, layer_student):
        _check_encoder(student, seed)


@chapter.check(section="encoder-stack")
def _encoder_alone(student: StudentModule, seed: int = 0) -> None:
    _check_encoder(student, seed)


def _check_encoder(student: StudentModule, seed: int) -> None:
    generator = seeded(seed)
    b, t, heads, d, d_ff = _layer_sizes(generator)
    n = 3
    x = normal(generator, b, t, d)
    for pre, activation in ((False, "relu"), (True, "gelu")):
        on = (
            f"Encoder(layers={n}, d_model={d}, heads={heads}, d_ff={d_ff}, "
            f"norm_first={pre}, activation={activation!r})"
        )
        built = student.build(n, d, heads, d_ff, 0.0, pre, activation)
        shapes = _encoder_shapes(n, d, d_ff, pre)
        _expect_stack_parameters(built, shapes, n, pre, on)
        state = _draw_state(generator, shapes)
        built.load_state_dict(state)
        right = _torch_encoder(state, n, d, heads, d_ff, pre, activation)
        function = ACTIVATIONS[activation]
        layers = [
            Parts(under(f"layers.{i}.", state), heads, function) for i in range(n)
        ]
        norm = _final_norm(state, pre)
        for mask in (None, *_masks(generator, b, t)):
            say = f"{on}, x {tuple(x.shape)}"
            say += "" if mask is None else f", mask {tuple(mask.shape)}"
            got = built(x) if mask is None else built(x, mask)
            with torch.no_grad():
                expected = right(x, mask=_torch_mask(mask, x, heads))
            found = known_mistakes(encoder_candidates(x, layers, norm, mask, pre))
            expect.equal(got, expected, on=say, mistakes=found, tolerance=1e-4)
        dropping = student.build(n, d, heads, d_ff, 1.0, pre, activation)
        dropping.load_state_dict(state)
        dropping.train(True)
        on = f"{on}, dropout=1 in training"
        why = "Hand dropout on to EncoderLayer(d_model, heads, d_ff, dropout, ...)."
        undropped = stack(x, layers, norm, None, pre)
        known = [Mistake("dropout not passed on", undropped, why)]
        dropped = x
        if pre:
            dropped = norm(dropped)
        for parts in () if pre else layers:
            dropped = parts.norm(2, parts.norm(1, dropped))
        expect.equal(dropping(x), dropped, on=on, mistakes=known, tolerance=1e-4)
    found = built.gradients(x)
    _expect_gradients({"x": found.inputs[0], **found.parameters}, on)


@chapter.check(section="encoder-parameters")
def encoder_layer_parameters(student: StudentFunction, seed: int = 0) -> None:
    """Compare with the number of parameters of PyTorch's layer."""
    generator = seeded(seed)
    cases = [(4, 6), (512, 2048)]
    for _ in range(3):
        d, d_ff = draw_sizes(generator, 2)
        cases.append((8 * d, 8 * d_ff + 3))
    for d, d_ff in cases:
        layer = nn.TransformerEncoderLayer(d, 1, d_ff, device="meta")
        expected = sum(parameter.numel() for parameter in layer.parameters())
        on = f"encoder_layer_parameters(d_model={d}, d_ff={d_ff})"
        got = student(d, d_ff)
        if isinstance(got, float) and got == expected:
            why = "A number of parameters is an int: use *, ** and //, not /."
            say = {"on": on, "got": f"{got}", "expected": f"{expected}"}
            refuse("not a whole number", why, **say)
        found = known_mistakes(parameters_candidates(d, d_ff))
        say = {"on": on, "what": "the number", "mistakes": found, "tolerance": 0}
        expect.equal(got, expected, **say)


# --- masked language modelling --------------------------------------------------------


def _masked(ids, uniform, kind, random_ids, mask_id, special_ids, probability):
    """Follow the rules position by position."""
    inputs, labels = ids.clone(), torch.full_like(ids, -100)
    for b, t in ((b, t) for b in range(ids.shape[0]) for t in range(ids.shape[1])):
        if uniform[b, t] < probability and int(ids[b, t]) not in special_ids:
            labels[b, t] = ids[b, t]
            if kind[b, t] < 0.8:
                inputs[b, t] = mask_id
            elif kind[b, t] < 0.9:
                inputs[b, t] = random_ids[b, t]
    return inputs, labels


@chapter.check(section="encoder-masked-language")
def mask_tokens(student: StudentFunction, seed: int = 0) -> None:
    """Check the example by hand, every position by the rules, several shares."""
    hand = (
        torch.tensor([[2, 5, 6, 7, 8, 9, 0]]),
        torch.tensor([[0.05, 0.50, 0.10, 0.02, 0.14, 0.90, 0.01]]),
        torch.tensor([[0.10, 0.10, 0.85, 0.30, 0.95, 0.10, 0.10]]),
        torch.arange(11, 18).unsqueeze(0),
    )
    expected = (
        torch.tensor([[2, 5, 13, 3, 8, 9, 0]]),
        torch.tensor([[-100, -100, 6, 7, 8, -100, -100]]),
    )
    on = "the example by hand"
    _expect_masked(student, (*hand, 3, [0, 2]), {}, 0.15, expected, on)
    generator = seeded(seed)
    b, t = draw_sizes(generator, 2)
    b, t = 3 * b + 5, 5 * t + 10
    for probability in (0.15, 0.25, 1.0):
        ids = torch.randint(0, 30, (b, t), generator=generator)
        uniform, kind = torch.rand(2, b, t, generator=generator)
        uniform[0, :4] = 0.25  # exactly the probability is not below it
        ids[0, :4] = 9
        random_ids = torch.randint(4, 30, (b, t), generator=generator)
        given = ids, uniform, kind, random_ids, 3, [0, 1, 2]
        expected = _masked(*given, probability)
        on = (
            f"ids {(b, t)}, special_ids [0, 1, 2], mask_id 3, probability {probability}"
        )
        options = {} if probability == 0.15 else {"probability": probability}
        _expect_masked(student, given, options, probability, expected, on)


def _expect_masked(student, given, options, probability, expected, on: str) -> None:
    got = student(*given, **options)
    pair = isinstance(got, (tuple, list)) and len(got) == 2
    why = "The function ends without `return`." if got is None else "Return both."
    expect.true(
        pair,
        "the result is not a pair",
        on=on,
        got=show(got),
        expected="(inputs, labels)",
        why=why,
    )
    found = list(known_mistakes(masking_candidates(*given, probability)))
    for mistake in found:
        if expect.close(tuple(got), mistake.value) and not expect.close(
            tuple(got), expected
        ):
            place = _first_difference(got, expected)
            refuse(mistake.name, mistake.why, on=on, **place)
    exchanged = expect.close(tuple(got), expected[::-1])
    why = "First what the model sees, then the labels."
    say = {"on": on, "got": "(labels, inputs)", "expected": "(inputs, labels)"}
    refuse_if(exchanged, "inputs and labels exchanged", why, **say)
    for name, part, right in zip(("inputs", "labels"), got, expected, strict=True):
        expect.equal(part, right, on=on, what=name)


def _first_difference(got: tuple, expected: tuple) -> dict[str, str]:
    for name, part, right in zip(("inputs", "labels"), got, expected, strict=True):
        differ = (part != right).nonzero()
        if len(differ):
            b, t = differ[0].tolist()
            where = f"{name}[{b}, {t}] = "
            return {
                "got": f"{where}{int(part[b, t])}",
                "expected": f"{where}{int(right[b, t])}",
            }
    return {}


@chapter.check(section="encoder-masked-language")
def masked_language_model_loss(student: StudentFunction, seed: int = 0) -> None:
    """Check the value by hand, PyTorch's, nothing scored, large logits, gradients."""
    generator = seeded(seed)
    hand = torch.tensor([[[0.0, 0.0], [math.log(3), 0.0], [5.0, -5.0]]])
    hand = hand.expand(3, -1, -1)
    labels = torch.tensor([[1, 0, -100], [-100] * 3, [-100] * 3])
    on = "the example by hand, and two sentences without labels"
    _expect_loss(student, hand, labels, torch.tensor(0.490415), on)
    b, t, v = draw_sizes(generator, 3)
    b, t, v = b + 1, t + 4, v + 5
    for share in (0.2, 0.6, 1.0):
        logits = 2 * normal(generator, b, t, v)
        labels = torch.randint(0, v, (b, t), generator=generator)
        hidden = torch.rand(b, t, generator=generator) > share
        hidden[0, 0], hidden[1, 0] = False, share < 1
        labels[hidden] = -100
        on = f"logits {(b, t, v)}, {int((labels >= 0).sum())} of {b * t} labels scored"
        right = F.cross_entropy(logits.transpose(1, 2), labels)
        _expect_loss(student, logits, labels, right, on)
    large = 1000 * torch.sign(normal(generator, b, t, v))
    on = "logits of ±1000"
    why = (
        "exp(1000) is infinite, and the logarithm of a probability that was rounded to "
        "0 is −∞. Use log_softmax, which subtracts the maximum and never leaves the "
        "logarithms."
    )
    name = "not stable for large logits"
    _expect_finite(student(large, labels), on=on, mistake=name, why=why)
    right = F.cross_entropy(large.transpose(1, 2), labels)
    expect.equal(student(large, labels), right, on=on)
    _expect_nothing_scored(student, logits)
    found = student.gradients(logits, labels).inputs[0]
    on = "the gradient with respect to the logits"
    _expect_gradients({"logits": found}, on)
    logits.requires_grad_()
    loss = F.cross_entropy(logits.transpose(1, 2), labels)
    (wanted,) = torch.autograd.grad(loss, logits)
    expect.equal(found, wanted, on=on, what="the gradient")


def _expect_loss(student, logits, labels, right, on: str) -> None:
    try:
        got = student(logits, labels)
    except StudentError as error:
        if error.kind in ("IndexError", "RuntimeError") and "bound" in error.text:
            why = (
                "The label −100 was used as an index. Select the scored positions "
                "first: scored = labels != -100."
            )
            said = describe_error(error)
            refuse("−100 is used as an index", why, on=on, got=said)
        raise
    expect.form(got, right, on=on)
    mistakes = known_mistakes(loss_candidates(logits, labels))
    expect.equal(got, right, on=on, what="the loss", mistakes=mistakes)


def _expect_nothing_scored(student: StudentFunction, logits: torch.Tensor) -> None:
    labels = torch.full(logits.shape[:2], -100)
    on = f"logits {tuple(logits.shape)}, all labels −100"
    why = (
        "The mean of nothing is 0/0. Add the losses, and divide by their number, but "
        "at least by 1."
    )
    name = "NaN when nothing is scored"
    got = student(logits, labels)
    _expect_finite(got, on=on, mistake=name, why=why)
    if isinstance(got, (int, float)):
        got = torch.tensor(float(got))
    expect.equal(got, torch.tensor(0.0), on=on, what="the loss")
    try:
        gradient = student.gradients(logits, labels).inputs[0]
    except StudentError as error:
        if error.kind == "NotImplementedError":
            raise
        gradient = None
    why = (
        "Here the loss does not depend on the logits, so backward() stops with an "
        "error. Return a 0 that is computed from them: a sum over no positions is 0, "
        "and its gradient is 0."
    )
    say = {"on": f"the gradient; {on}", "got": "none", "expected": "zeros"}
    refuse_if(gradient is None, "a constant when nothing is scored", why, **say)
    _expect_finite(gradient, on=f"the gradient; {on}", mistake=name, why=why)
    zeros = torch.zeros_like(logits)
    expect.equal(gradient, zeros, on=on, what="the gradient")


# --- the classifier -------------------------------------------------------------------


def _positions(length: int, d: int) -> torch.Tensor:
    """The sinusoidal encoding, from complex numbers."""
    position = torch.arange(length, dtype=torch.float64).unsqueeze(1)
    turns = torch.exp(-math.log(1e4) * torch.arange(0, d, 2, dtype=torch.float64) / d)
    angle = torch.polar(torch.ones(length, d // 2).double(), position * turns)
    return torch.stack((angle.imag, angle.real), -1).flatten(-2).float()


class _Classifier:
    """The right classifier and its variations, with given parameters."""

    def __init__(self, state: State, n: int, heads: int, right: nn.Module) -> None:
        self.state, self.heads, self.right = state, heads, right
        self.d = state["embedding.weight"].shape[1]
        inner = under("encoder.", state)
        parts = [under(f"layers.{i}.", inner) for i in range(n)]
        self.layers = [Parts(each, heads, torch.relu) for each in parts]
        self.norm = _final_norm(inner, True)

    def embed(self, ids, scale=1.0, token=True, late=False, positions=True):
        x = F.embedding(ids, self.state["embedding.weight"]) * self.d**0.5 * scale
        token_row = self.state["class_token.token"].expand(len(ids), 1, self.d)
        if late:
            x = x + _positions(x.shape[1], self.d)
        if token:
            x = torch.cat((token_row, x), 1)
        return x + _positions(x.shape[1], self.d) if positions and not late else x

    def mask(self, ids, lengths, more=1, first=True):
        mask = torch.arange(ids.shape[1] + 1) < (lengths + more).unsqueeze(1)
        mask[:, 0] = first
        return mask.unsqueeze(1)

    def read(self, hidden):
        weight, bias = self.state["head.weight"], self.state["head.bias"]
        return F.linear(hidden, weight.T, bias)

    def expected(self, ids, lengths) -> torch.Tensor:
        x, mask = self.embed(ids), self.mask(ids, lengths)
        with torch.no_grad():
            return self.read(self.right(x, src_key_padding_mask=~mask[:, 0])[:, 0])

    def run(self, x, mask, norm=None, pre=True):
        return stack(x, self.layers, norm or self.norm, mask, pre)

    def candidates(self, ids, lengths) -> Iterator[Candidate]:
        x, mask = self.embed(ids), self.mask(ids, lengths)

        def logits(x=x, mask=mask, at=0):
            return self.read(self.run(x, mask)[:, at])

        why = (
            "Padding must stay unseen: make padding_mask(lengths, T), extend it for "
            "the class token, and hand it to the encoder."
        )
        yield "no padding mask", lambda: logits(mask=None), why
        yield (
            "the last word of each sentence is hidden",
            lambda: logits(mask=self.mask(ids, lengths, 0)),
            "The mask has the right shape, but its lengths do not count the class "
            "token. Extend padding_mask(lengths, T) by mask_with_class_token.",
        )
        yield (
            "the class token is hidden",
            lambda: logits(mask=self.mask(ids, lengths, first=False)),
            "The class token is always real: its column of the mask is True.",
        )
        why = (
            "First the class token, then the positions: the class token is at position "
            "0 and the first word at position 1."
        )
        name = "positions before the class token"
        yield name, lambda: logits(x=self.embed(ids, late=True)), why
        why = "Without positions the encoder sees a bag of words."
        name = "no positions"
        yield name, lambda: logits(x=self.embed(ids, positions=False)), why
        yield (
            "embeddings scaled twice",
            lambda: logits(x=self.embed(ids, scale=self.d**0.5)),
            "Embedding multiplies by √d_model itself.",
        )
        yield (
            "no class token",
            lambda: self.read(self.run(x[:, 1:], mask[..., 1:])[:, 0]),
            "The head reads position 0, where the class token has to stand.",
        )
        bare = self.embed(ids, token=False)
        name = "no class token"
        why = "The head reads position 0, where the class token has to stand."
        yield name, lambda: self.read(self.run(bare, mask[..., 1:])[:, 0]), why
        yield (
            "the head reads the last token",
            lambda: logits(at=-1),
            "Position 0 is the class token's; the last may be padding.",
        )
        yield (
            "the head reads the encoder's input",
            lambda: self.read(x[:, 0]),
            "Between embedding and head stands the encoder.",
        )


@chapter.check(section="encoder-classifier")
def encoder_classifier(
    student: StudentModule, encoder_student: StudentModule, seed: int = 0
) -> None:
    """Submodules, PyTorch's encoder on the same input, padding, dropout."""
    with expect.relying_on(_encoder_alone, encoder_student):
        _check_classifier(student, seed)


def _check_classifier(student: StudentModule, seed: int) -> None:
    generator = seeded(seed)
    b, t, heads, d, d_ff = _layer_sizes(generator)
    vocabulary, classes, n = 11, 3 if b != 3 else 5, 2
    sizes = vocabulary, classes, d, heads, n, d_ff, t
    on = (
        f"EncoderClassifier(vocab_size={vocabulary}, classes={classes}, d_model={d}, "
        f"heads={heads}, layers={n}, d_ff={d_ff}, max_length={t})"
    )
    shapes = {"embedding.weight": (vocabulary, d), "class_token.token": (1, d)}
    inner = _encoder_shapes(n, d, d_ff, True)
    shapes |= {f"encoder.{name}": shape for name, shape in inner.items()}
    shapes |= {"head.weight": (d, classes), "head.bias": (classes,)}
    model = student.build(*sizes)
    _expect_parameters(model, shapes, on, _special_of_classifier)
    state = _draw_state(generator, shapes)
    model.load_state_dict(state)
    inner = under("encoder.", state)
    right = _torch_encoder(inner, n, d, heads, d_ff, True, "relu")
    classifier = _Classifier(state, n, heads, right)
    ids = torch.randint(1, vocabulary, (b, t), generator=generator)
    lengths = torch.randint(1, t, (b,), generator=generator)
    lengths[0] = t
    ids[torch.arange(t) >= lengths.unsqueeze(1)] = 0
    where = f"{on}, ids {(b, t)}, lengths {lengths.tolist()}"
    got = _classify(model, ids, lengths, where)
    expected = classifier.expected(ids, lengths)
    found = known_mistakes(classifier.candidates(ids, lengths))
    say = {"on": where, "what": "the logits", "tolerance": 1e-4}
    expect.equal(got, expected, mistakes=found, **say)
    other = torch.where(ids == 0, 5, ids)
    say["on"] = f"{where}, padded with word 5 instead of 0"
    why = (
        "With word 0 as padding the logits were right. Only `lengths` tell where a "
        "sentence ends; what stands behind may be any word, not just 0."
    )
    got = model(other, lengths)
    wrong = isinstance(got, torch.Tensor) and not expect.close(got, expected, 1e-4)
    seen = {"on": say["on"], "got": show(got), "expected": show(expected)}
    refuse_if(wrong, "the padding's words have a say", why, **seen)
    expect.equal(got, expected, **say)
    _expect_wide_batch(model, classifier, ids, (lengths - 1).clamp(min=1), on)
    _expect_dropout_everywhere(student, sizes, classifier, ids, lengths, on)
    found = model.gradients(ids, lengths, wrt=())
    _expect_gradients(found.parameters, on)


def _expect_wide_batch(model, classifier, ids, lengths, on) -> None:
    """Classify a batch that is wider than its longest sentence."""
    on += f", ids {tuple(ids.shape)}, lengths {lengths.tolist()}: none fills the width"
    try:
        got = model(ids, lengths)
    except StudentError as error:
        why = "The mask is as wide as the batch: padding_mask(lengths, ids.shape[1])."
        name = "the mask is as wide as the longest sentence"
        said = f"{error.kind}: {describe_error(error)}"
        refuse_if(error.kind == "RuntimeError", name, why, on=on, got=said)
        raise
    expected = classifier.expected(ids, lengths)
    expect.equal(got, expected, on=on, what="the logits", tolerance=1e-4)


def _special_of_classifier(missing: set, extra: set) -> Iterator[tuple]:
    final = {"encoder.norm.gamma", "encoder.norm.beta"}
    why = "The encoder of this model is pre-norm: Encoder(..., norm_first=True)."
    yield missing == final and not extra, "post-norm in place of pre-norm", why
    why = "Positions are sinusoidal: SinusoidalPositionalEncoding has no parameters."
    learned = any(name.startswith("position") for name in extra)
    yield learned, "learned positions", why
    part = {name.partition(".")[0] for name in missing}
    why = f"The model lacks {' and '.join(sorted(part))}."
    yield bool(missing) and not extra, "a submodule is missing", why


def _classify(model: StudentInstance, ids, lengths, on: str) -> Data:
    t = ids.shape[1]
    try:
        return model(ids, lengths)
    except StudentError as error:
        said = f"{error.kind}: {describe_error(error)}"
        if error.kind == "ValueError" and "position" in error.text:
            why = (
                "The class token takes a position, too: the table of positions needs "
                "max_length + 1 rows."
            )
            name = "the table of positions is one row short"
            refuse(name, why, on=on, got=said, expected="logits")
        sizes = (f"({t})", f"({t + 1})")
        if error.kind == "RuntimeError" and all(s in error.text for s in sizes):
            why = (
                "The encoder reads T + 1 tokens, and the mask has T columns. Extend it "
                "with mask_with_class_token."
            )
            name = "padding mask not extended for the class token"
            refuse(name, why, on=on, got=said, expected="logits")
        raise


def _expect_dropout_everywhere(student, sizes, classifier, ids, lengths, on) -> None:
    """With a probability of 1, nothing but the last norm and the head is left."""
    model = student.build(*sizes, 1.0)
    model.load_state_dict(classifier.state)
    model.train(True)
    x, mask = classifier.embed(ids), classifier.mask(ids, lengths)
    zero = torch.zeros_like(x)

    def read(x):
        return classifier.read(x[:, 0])

    why = "Both the positions and the encoder have a dropout: hand it on to both."
    known = [
        ("dropout not passed on", lambda: read(classifier.run(x, mask)), why),
        (
            "dropout not passed to the positions",
            lambda: read(classifier.norm(x)),
            why,
        ),
        (
            "dropout not passed to the encoder",
            lambda: read(classifier.run(zero, mask)),
            why,
        ),
    ]
    expected = read(classifier.norm(zero))
    on = f"{on}, dropout=1 in training"
    got = model(ids, lengths)
    say = {"on": on, "what": "the logits", "mistakes": known_mistakes(known)}
    expect.equal(got, expected, tolerance=1e-4, **say)
