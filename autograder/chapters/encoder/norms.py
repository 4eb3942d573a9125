"""Layer norm, RMS norm, and the mistakes that keep most of a token."""

import functools
import itertools
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F

from autograder import forbidden
from autograder.chapters.encoder.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.parameters import Shapes, expect_constant, expect_parameters
from autograder.exercise.spec import Case, Module, Specification
from autograder.expect import close, refuse_if, show_both
from autograder.interface import StudentModule

EPSILON = 1e-5
NO_AXIS = (
    "must match the size",
    "the axis of the mean is lost",
    "A mean or variance lost its axis and no longer fits the rows it came from, (B, T) "
    "against (B, T, d). Ask for keepdim=True.",
)
CONSTANT = (
    "NaN for a constant token",
    "Such a token has the spread 0, and 0/0 is NaN. Epsilon, added before the root is "
    "taken, keeps the divisor above 0.",
)
ROOT = (
    "NaN gradient on a constant token",
    "The values are right, but somewhere the root of the variance is taken without "
    "epsilon. The root has an infinite derivative at 0, and 0 · ∞ is NaN. One such "
    "token (padding!) spoils the training of all. Write √(σ² + ε).",
)
START = (
    "gamma and beta start with other numbers",
    "gamma starts at 1 and beta at 0: at first the layer only normalises.",
)

layers = Module(
    "layer-norm",
    "LayerNorm",
    lambda x, gamma, beta, epsilon: F.layer_norm(x, gamma.shape, gamma, beta, epsilon),
    accidents=[NO_AXIS],
    given=lambda module: (module.gamma, module.beta, module.epsilon),
)
sizes = Module(
    "rms-norm",
    "RMSNorm",
    lambda x, gamma, epsilon: F.rms_norm(x, gamma.shape, gamma, epsilon),
    accidents=[NO_AXIS],
    given=lambda module: (module.gamma, module.epsilon),
)


# --- layer norm: what goes wrong ------------------------------------------------------


def _mean(x: torch.Tensor, axes: int | tuple = -1) -> torch.Tensor:
    return x.mean(axes, keepdim=True)


def _variance(x: torch.Tensor, axes: int | tuple = -1) -> torch.Tensor:
    return x.var(axes, correction=0, keepdim=True)


def _rescaled(x: torch.Tensor, epsilon: float, axes: int | tuple = -1) -> torch.Tensor:
    return (x - _mean(x, axes)) / (_variance(x, axes) + epsilon).sqrt()


UNDER_THE_ROOT = (
    "Divide by √(σ² + ε), not by σ + ε. For σ = 0.001 and ε = 0.00001 the two divisors "
    "are 0.0033 and 0.00101; and at σ = 0 the root of σ² alone has an infinite "
    "derivative."
)
BIASED = (
    "The variance of a norm is biased: the mean of the squares, divided by d. x.var() "
    "and x.std() divide by d − 1 unless you pass correction=0."
)


@layers.mistake("epsilon outside the root", UNDER_THE_ROOT)
def _(x, gamma, beta, epsilon):
    return gamma * (x - _mean(x)) / (_variance(x).sqrt() + epsilon) + beta


@layers.mistake("unbiased variance", BIASED)
def _(x, gamma, beta, epsilon):
    return gamma * (x - _mean(x)) / (x.var(-1, keepdim=True) + epsilon).sqrt() + beta


@layers.mistake("unbiased variance", BIASED)
def _(x, gamma, beta, epsilon):
    return gamma * (x - _mean(x)) / (x.std(-1, keepdim=True) + epsilon) + beta


def over(axes: Callable[[int], tuple], x, gamma, beta, epsilon):
    """Take the statistics over these axes of the tensor."""
    return gamma * _rescaled(x, epsilon, axes(x.dim())) + beta


def _has_rows(x, *_):
    return x.dim() > 1


def _has_sentences(x, *_):
    return x.dim() > 2


OWN = (
    "Mean and variance belong to one token: take them along the last axis only "
    "(dim=-1, keepdim=True). Otherwise the other tokens have a say, in a decoder even "
    "those that are still to come."
)
for name, when, axes in (
    ("statistics over the whole tensor", _has_rows, lambda n: tuple(range(n))),
    ("statistics over the batch", _has_rows, lambda n: tuple(range(n - 1))),
    ("statistics over the batch", _has_rows, lambda n: (0,)),
    ("statistics over the sentence", _has_rows, lambda n: (-2, -1)),
    ("statistics over the sentence", _has_sentences, lambda n: (-2, -1)),
    ("statistics over the sentence", _has_rows, lambda n: (-2,)),
):
    layers.mistake(name, OWN, when=when)(functools.partial(over, axes))


@layers.mistake(
    "gamma added",
    "gamma is a scale: it multiplies, feature by feature. Only beta is added.",
)
def _(x, gamma, beta, epsilon):
    return _rescaled(x, epsilon) + gamma + beta


@layers.mistake(
    "beta added before gamma multiplies",
    "Scale first, then shift: gamma · normalised + beta.",
)
def _(x, gamma, beta, epsilon):
    return gamma * (_rescaled(x, epsilon) + beta)


BOTH = "Both parameters act on the normalised token: gamma · normalised + beta."


@layers.mistake("beta left out", BOTH)
def _(x, gamma, beta, epsilon):
    return gamma * _rescaled(x, epsilon)


@layers.mistake("gamma left out", BOTH)
def _(x, gamma, beta, epsilon):
    return _rescaled(x, epsilon) + beta


@layers.mistake("gamma and beta left out", BOTH)
def _(x, gamma, beta, epsilon):
    return _rescaled(x, epsilon)


@layers.mistake(
    "divided by the variance",
    "Divide by the standard deviation, the root of the variance; only then the result "
    "has variance 1.",
)
def _(x, gamma, beta, epsilon):
    return gamma * (x - _mean(x)) / (_variance(x) + epsilon) + beta


CENTRED = "Subtract the mean of the token first; y has mean 0 before gamma and beta."


@layers.mistake("the mean is not subtracted", CENTRED)
def _(x, gamma, beta, epsilon):
    return gamma * x / (_variance(x) + epsilon).sqrt() + beta


@layers.mistake("the mean is not subtracted", CENTRED)
def _(x, gamma, beta, epsilon):
    return gamma * x / (_mean(x.square()) + epsilon).sqrt() + beta


BRACKETS = (
    "Products and quotients come before differences: only the mean was divided. Write "
    "gamma * (x − mean) / root + beta."
)


@layers.mistake("brackets are missing around x − mean", BRACKETS)
def _(x, gamma, beta, epsilon):
    return gamma * (x - _mean(x) / (_variance(x) + epsilon).sqrt()) + beta


@layers.mistake("brackets are missing around x − mean", BRACKETS)
def _(x, gamma, beta, epsilon):
    return gamma * x - _mean(x) / (_variance(x) + epsilon).sqrt() + beta


@layers.mistake(
    "the variance of what is not centred",
    "The variance is the mean of the squares of x − mean, not of x.",
)
def _(x, gamma, beta, epsilon):
    return gamma * (x - _mean(x)) / (_mean(x.square()) + epsilon).sqrt() + beta


@layers.mistake(
    "no epsilon",
    "Add epsilon to the variance. Without it a token of almost equal features is blown "
    "up to full size, and one of equal features becomes 0/0.",
)
def _(x, gamma, beta, epsilon):
    return gamma * (x - _mean(x)) / _variance(x).sqrt() + beta


@layers.mistake(
    "epsilon is always 0.00001",
    "The layer was built with another epsilon: keep what __init__ is given.",
)
def _(x, gamma, beta, epsilon):
    return gamma * _rescaled(x, EPSILON) + beta


LIMIT = (
    "epsilon as a lower limit",
    "clamp and max keep the divisor from falling below epsilon, and change nothing "
    "above it. Epsilon is added under the root, to every token: √(… + ε).",
)
for spec, centred in ((layers, True), (sizes, False)):
    for under in (True, False):  # the root, or on it

        @spec.mistake(*LIMIT)
        def _(x, gamma, *others, centred=centred, under=under):
            *beta, epsilon = others
            x = x - _mean(x) if centred else x
            square = _mean(x.square())
            root = (
                square.clamp(min=epsilon).sqrt()
                if under
                else square.sqrt().clamp(min=epsilon)
            )
            return sum(beta, gamma * x / root)


@sizes.mistake(
    "epsilon is always 0.00001",
    "The layer was built with another epsilon: keep what __init__ is given.",
)
def _(x, gamma, epsilon):
    return gamma * x / (_mean(x.square()) + EPSILON).sqrt()


DETACHED = (
    "the statistics are detached",
    "The values are right, the gradient is not: it must flow through mean and size of "
    "the token, too. No .detach(), .data, .item() or torch.no_grad() on the way.",
)
for mean, variance in itertools.product((True, False), repeat=2):
    if mean or variance:

        @layers.mistake(*DETACHED)
        def _(x, gamma, beta, epsilon, mean=mean, variance=variance):
            centre, spread = _mean(x), _variance(x) + epsilon
            centred = x - (centre.detach() if mean else centre)
            root = spread.sqrt()
            return gamma * centred / (root.detach() if variance else root) + beta


@sizes.mistake(*DETACHED)
def _(x, gamma, epsilon):
    return gamma * x / (_mean(x.square()) + epsilon).sqrt().detach()


# --- RMS norm: what goes wrong --------------------------------------------------------


SIZE_ALONE = "RMS norm leaves the mean where it is: only the size is brought to 1."


@sizes.mistake("the mean is subtracted", SIZE_ALONE)
def _(x, gamma, epsilon):
    return gamma * _rescaled(x, epsilon)


@sizes.mistake("the mean is subtracted", SIZE_ALONE)
def _(x, gamma, epsilon):
    return gamma * (x - _mean(x)) / (_mean(x.square()) + epsilon).sqrt()


@sizes.mistake(
    "divided by the standard deviation",
    "The divisor is the root of the mean square, without subtracting the mean.",
)
def _(x, gamma, epsilon):
    return gamma * x / (_variance(x) + epsilon).sqrt()


@sizes.mistake(
    "epsilon outside the root",
    "Add epsilon to the mean square, before the root. At a token of zeros the root "
    "alone has an infinite derivative.",
)
def _(x, gamma, epsilon):
    return gamma * x / (_mean(x.square()).sqrt() + epsilon)


@sizes.mistake(
    "the sum in place of the mean",
    "Divide the sum of the squares by d. With the sum alone, which .norm() takes, the "
    "token gets length 1 instead of √d.",
)
def _(x, gamma, epsilon):
    return gamma * x / (x.square().sum(-1, keepdim=True) + epsilon).sqrt()


for least in (0.0, 1.0):  # times epsilon

    @sizes.mistake(
        "the length in place of the root mean square",
        "x.norm() is the root of the SUM of the squares: the token gets length 1 "
        "instead of √d. And epsilon belongs under the root.",
    )
    def _(x, gamma, epsilon, least=least):
        return gamma * x / (x.norm(dim=-1, keepdim=True) + least * epsilon)


for under in (False, True):  # epsilon, the root

    @sizes.mistake(
        "the length divided by d in place of its root",
        "The root of the mean square is x.norm() / √d: d belongs under the root, too. "
        "And so does epsilon.",
    )
    def _(x, gamma, epsilon, under=under):
        mean = x.square().sum(-1, keepdim=True) / x.shape[-1] ** 2
        divisor = (mean + epsilon).sqrt() if under else mean.sqrt() + epsilon
        return gamma * x / divisor


@sizes.mistake(
    "the square of the mean",
    "First each feature is squared, then the mean is taken: x.square().mean(-1).",
)
def _(x, gamma, epsilon):
    return gamma * x / (_mean(x).square() + epsilon).sqrt()


@sizes.mistake("divided by the mean square", "The root is missing.")
def _(x, gamma, epsilon):
    return gamma * x / (_mean(x.square()) + epsilon)


@sizes.mistake(
    "statistics over the whole tensor",
    "Each token has its own mean square: dim=-1, keepdim=True.",
    when=_has_rows,
)
def _(x, gamma, epsilon):
    return gamma * x / (x.square().mean() + epsilon).sqrt()


@sizes.mistake(
    "the mean of the absolute values",
    "Root mean square: square first, then the mean, then the root.",
)
def _(x, gamma, epsilon):
    return gamma * x / (_mean(x.abs()) + epsilon)


@sizes.mistake("gamma left out", "Multiply each feature by its gamma.")
def _(x, gamma, epsilon):
    return x / (_mean(x.square()) + epsilon).sqrt()


@sizes.mistake("gamma added", "gamma is a scale: it multiplies.")
def _(x, gamma, epsilon):
    return x / (_mean(x.square()) + epsilon).sqrt() + gamma


@sizes.mistake(
    "no epsilon",
    "Add epsilon to the mean square; a token of zeros would become 0/0.",
)
def _(x, gamma, epsilon):
    return gamma * x / _mean(x.square()).sqrt()


# --- the checks -----------------------------------------------------------------------


def tokens(seed: int) -> Iterator[tuple[torch.Tensor, str]]:
    """Draw tokens of several shapes and scales."""
    generator = seeded(seed)
    a, b, t, d = draw_sizes(generator, 4)
    d += 2
    yield normal(generator, t, d), "tokens of spread 1"
    yield 3 * normal(generator, b, t, d) + 1, "tokens of spread 3 and mean 1"
    yield 1e-3 * normal(generator, b, t, d), "tokens of spread 0.001"
    yield 0.1 * normal(generator, a, b, t, d), "four axes, spread 0.1"
    yield normal(generator, d), "a single token"


def check_norm(
    spec: Specification,
    student: StudentModule,
    names: tuple[str, ...],
    hand: tuple[Case, dict[str, torch.Tensor]],
    constant: float,
    seed: int,
) -> None:
    """Parameters, the example by hand, every scale, a constant token, the gradient."""
    case, state = hand
    width = case.inputs[0].shape[-1]
    on = f"{student.name}({width})"
    module = student.build(width)
    expect_parameters(module, dict.fromkeys(names, (width,)), on, _no_beta)
    for name in names:
        expect_constant(module.state_dict(), name, float(name == "gamma"), on, *START)
    module.load_state_dict(state)
    spec.judge(module, case)
    generator = seeded(seed + 1)
    for x, on in tokens(seed):
        for epsilon in (EPSILON, 0.1):
            state = {name: 1 + normal(generator, x.shape[-1]) for name in names}
            where = f"{on}, {tuple(x.shape)}, epsilon {epsilon:g}, random parameters"
            build = (x.shape[-1],) if epsilon == EPSILON else (x.shape[-1], epsilon)
            module = student.build(*build)
            module.load_state_dict(state)
            spec.judge(module, Case(where, (x,), given=(*state.values(), epsilon)))
    check_constant_token(spec, student, names, constant, seed)
    x, cotangent = normal(generator, 2, 3, 7), normal(generator, 2, 3, 7)
    state = {name: 1 + normal(generator, 7) for name in names}
    module = student.build(7)
    module.load_state_dict(state)
    case = Case(f"random x {tuple(x.shape)}", (x,), given=(*state.values(), EPSILON))
    spec.judge_gradient(module, case, cotangent, parameters=names)


def check_far_from_zero(student: StudentModule, seed: int) -> None:
    """Expect that the spread is not lost beside a mean that is far larger."""
    x = normal(seeded(seed), 5, 6, 8) + 1000
    module = student.build(8)
    got, right = module(x), F.layer_norm(x, (8,))
    refuse_if(
        not close(got, right, 2e-3),
        "the variance loses its digits",
        "Tokens of the same spread around 0 came out right. The mean of the squares, "
        "1,000,001, minus the square of the mean, 1,000,000, is 1 on paper, but in "
        "float32 only two or three digits of it are left. Subtract the mean first, "
        "then square.",
        on=f"x {tuple(x.shape)} of mean 1000 and spread 1",
        got=show_both(got, right, 2e-3)[0],
        expected=show_both(got, right, 2e-3)[1],
    )


def check_constant_token(
    spec: Specification,
    student: StudentModule,
    names: tuple[str, ...],
    value: float,
    seed: int,
) -> None:
    """Expect finite values and gradients where all features of a token are equal."""
    d = 5 + seed % 3
    x = torch.full((2, 3, d), value)
    x[1] = normal(seeded(seed), 3, d)
    module = student.build(d)
    state = {name: torch.full((d,), float(name == "gamma")) for name in names}
    module.load_state_dict(state)
    on = f"x {tuple(x.shape)} in which every feature of x[0] is {value:g}"
    given = (*state.values(), EPSILON)
    # what is left of x - mean is divided by the root of epsilon
    case = Case(on, (x,), given=given, tolerance=1e-3, unless_finite=CONSTANT)
    spec.judge(module, case)
    spec.judge_gradient(
        module,
        Case(on, (x,), given=given, unless_finite=ROOT),
        normal(seeded(seed + 1), *x.shape),
        parameters=names,
        tolerance=1e-3,
    )


def _no_beta(state: Shapes, missing: list, extra: list) -> Iterator[tuple]:
    why = "RMS norm has a scale for each feature, and no offset."
    yield extra == ["beta"] and not missing, "a beta in RMS norm", why


@chapter.check(section="encoder-layer-norm", forbidden=(forbidden.LAYER_NORM,))
def layer_norm(student: StudentModule, seed: int = 0) -> None:
    """Parameters, PyTorch's values at every scale, constant tokens, gradients."""
    x = torch.tensor([[1.0, 2.0, 3.0, 6.0], [12.0, 6.0, 4.0, 2.0]])
    state = {
        "gamma": torch.tensor([1.0, 1.0, 1.0, 2.0]),
        "beta": torch.tensor([0.0, 0.0, 0.0, 1.0]),
    }
    # the second token is −2 times the first, + 14
    expected = [[-1.0690, -0.5345, 0.0, 4.2071], [1.6036, 0.0, -0.5345, -1.1381]]
    hand = _by_hand(x, state, torch.tensor(expected))
    check_norm(layers, student, ("gamma", "beta"), hand, 3.0, seed)
    check_far_from_zero(student, seed)


@chapter.check(section="encoder-rms-norm", forbidden=(forbidden.RMS_NORM,))
def rms_norm(student: StudentModule, seed: int = 0) -> None:
    """Parameter, PyTorch's values at every scale, a token of zeros, gradients."""
    x = torch.tensor([[3.0, 4.0], [-6.0, 8.0], [1.0, 1.0]])
    expected = torch.tensor([[0.8485, 2.2627], [-0.8485, 2.2627], [1.0, 2.0]])
    hand = _by_hand(x, {"gamma": torch.tensor([1.0, 2.0])}, expected)
    check_norm(sizes, student, ("gamma",), hand, 0.0, seed)


def _by_hand(x: torch.Tensor, state: dict, expected: torch.Tensor) -> tuple[Case, dict]:
    numbers = ", ".join(f"{name} = {value.tolist()}" for name, value in state.items())
    on = f"the example by hand, x = {x.tolist()}, {numbers}"
    given = (*state.values(), EPSILON)
    return Case(on, (x,), expected, given, tolerance=2e-4), state
