"""Layer norm, RMS norm, and the mistakes that keep most of a token."""

import functools
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


# --- what goes wrong ------------------------------------------------------------------

Axes = tuple[int, ...]


def _mean(x: torch.Tensor, axes: Axes) -> torch.Tensor:
    return x.mean(axes, keepdim=True)


def _variance(x: torch.Tensor, mean: torch.Tensor, axes: Axes) -> torch.Tensor:
    return _mean((x - mean).square(), axes)


def _unbiased(x: torch.Tensor, mean: torch.Tensor, axes: Axes) -> torch.Tensor:
    return x.var(axes, keepdim=True)


def _mean_square(x: torch.Tensor, mean: torch.Tensor, axes: Axes) -> torch.Tensor:
    return _mean(x.square(), axes)


def _sum_of_squares(x: torch.Tensor, mean: torch.Tensor, axes: Axes) -> torch.Tensor:
    return x.square().sum(axes, keepdim=True)


def _centred(x: torch.Tensor, mean: torch.Tensor, root: torch.Tensor) -> torch.Tensor:
    return (x - mean) / root


def _divided(x: torch.Tensor, mean: torch.Tensor, root: torch.Tensor) -> torch.Tensor:
    return x / root


def normalised(
    x: torch.Tensor,
    gamma: torch.Tensor,
    beta: torch.Tensor,
    epsilon: float,
    *,
    means: Callable[[int], Axes] = lambda n: (-1,),
    spreads: Callable[[int], Axes] = lambda n: (-1,),
    square: Callable = _variance,
    divisor: Callable = lambda square, epsilon: (square + epsilon).sqrt(),
    fixed: float | None = None,
    first: Callable = lambda x, gamma: x,
    join: Callable = _centred,
    scale: Callable = lambda y, gamma, beta: gamma * y + beta,
) -> torch.Tensor:
    """Normalise tokens with slips, which may be several.

    Args:
        x: the tokens.
        gamma: the scale.
        beta: the offset.
        epsilon: as in the exercise.
        means: the axes of the mean, from the number of axes.
        spreads: those of the spread.
        square: the square of the spread, of x, mean and axes.
        divisor: from that and epsilon.
        fixed: an epsilon in place of the one that is given.
        first: what is done to the tokens before, with gamma.
        join: x, mean and divisor.
        scale: by the parameters.
    """
    x = first(x, gamma)
    mean = _mean(x, means(x.dim()))
    root = divisor(square(x, mean, spreads(x.dim())), fixed or epsilon)
    return scale(join(x, mean, root), gamma, beta)


def scaled(
    x: torch.Tensor, gamma: torch.Tensor, epsilon: float, **slips: Callable
) -> torch.Tensor:
    """Scale tokens with the same slips, without mean and beta."""
    right = {"square": _mean_square, "join": _divided, "scale": _by_gamma}
    return normalised(x, gamma, gamma, epsilon, **(right | slips))


def _by_gamma(y: torch.Tensor, gamma: torch.Tensor, beta: torch.Tensor) -> torch.Tensor:
    return gamma * y


def _has_rows(x, *_):
    return x.dim() > 1


def _has_sentences(x, *_):
    return x.dim() > 2


OUTSIDE = "epsilon outside the root"
BIASED = (
    "unbiased variance",
    "The variance of a norm is biased: the mean of the squares, divided by d. x.var() "
    "and x.std() divide by d − 1 unless you pass correction=0.",
)
OWN = (
    "Mean and variance belong to one token: take them along the last axis only "
    "(dim=-1, keepdim=True). Otherwise the other tokens have a say, in a decoder even "
    "those that are still to come."
)
LIMIT = (
    "epsilon as a lower limit",
    "clamp and max keep the divisor from falling below epsilon, and change nothing "
    "above it. Epsilon is added under the root, to every token: √(… + ε).",
)
ALWAYS = (
    "epsilon is always 0.00001",
    "The layer was built with another epsilon: keep what __init__ is given.",
)
PRODUCT = (
    "multiplied in place of divided",
    "Divide by the root; or multiply by its inverse, which torch.rsqrt gives.",
)
BOTH = "Both parameters act on the normalised token: gamma · normalised + beta."
CENTRED = (
    "the mean is not subtracted",
    "Subtract the mean of the token first; y has mean 0 before gamma and beta.",
)
BRACKETS = (
    "brackets are missing around x − mean",
    "Products and quotients come before differences: only the mean was divided. Write "
    "gamma * (x − mean) / root + beta.",
)
DETACHED = (
    "the statistics are detached",
    "The values are right, the gradient is not: it must flow through mean and size of "
    "the token, too. No .detach(), .data, .item() or torch.no_grad() on the way.",
)
SIZE_ALONE = (
    "the mean is subtracted",
    "RMS norm leaves the mean where it is: only the size is brought to 1.",
)
LENGTH = (
    "the length in place of the root mean square",
    "x.norm() is the root of the SUM of the squares: the token gets length 1 "
    "instead of √d. And epsilon belongs under the root.",
)
BY_D = (
    "the length divided by d in place of its root",
    "The root of the mean square is x.norm() / √d: d belongs under the root, too. "
    "And so does epsilon.",
)
NORMS = (layers, normalised), (sizes, scaled)
for spec, norm in NORMS:
    for name, when, axes in (
        ("statistics over the whole tensor", _has_rows, lambda n: tuple(range(n))),
        ("statistics over the batch", _has_rows, lambda n: tuple(range(n - 1))),
        ("statistics over the batch", _has_rows, lambda n: (0,)),
        ("statistics over the sentence", _has_rows, lambda n: (-2, -1)),
        ("statistics over the sentence", _has_sentences, lambda n: (-2, -1)),
        ("statistics over the sentence", _has_rows, lambda n: (-2,)),
    ):
        for which in ("means", "spreads"), ("means",), ("spreads",):
            if spec is layers or which == ("spreads",):  # RMS norm has no mean
                spec.mistake(name, OWN, when=when)(
                    functools.partial(norm, **dict.fromkeys(which, axes))
                )
layers.slips(
    normalised,
    (
        OUTSIDE,
        "Divide by √(σ² + ε), not by σ + ε. For σ = 0.001 and ε = 0.00001 the two "
        "divisors are 0.0033 and 0.00101; and at σ = 0 the root of σ² alone has an "
        "infinite derivative.",
        {"divisor": lambda square, epsilon: square.sqrt() + epsilon},
    ),
    (*BIASED, {"square": _unbiased}),
    (
        "gamma added",
        "gamma is a scale: it multiplies, feature by feature. Only beta is added.",
        {"scale": lambda y, gamma, beta: y + gamma + beta},
    ),
    (
        "beta added before gamma multiplies",
        "Scale first, then shift: gamma · normalised + beta.",
        {"scale": lambda y, gamma, beta: gamma * (y + beta)},
    ),
    ("beta left out", BOTH, {"scale": _by_gamma}),
    ("gamma left out", BOTH, {"scale": lambda y, gamma, beta: y + beta}),
    ("gamma and beta left out", BOTH, {"scale": lambda y, gamma, beta: y}),
    (
        "gamma and beta exchanged",
        "gamma multiplies, beta is added.",
        {"scale": lambda y, gamma, beta: beta * y + gamma},
    ),
    (
        "divided by the variance",
        "Divide by the standard deviation, the root of the variance; only then the "
        "result has variance 1.",
        {"divisor": lambda square, epsilon: square + epsilon},
    ),
    (*CENTRED, {"join": _divided}),
    (*CENTRED, {"join": _divided, "square": _mean_square}),
    (*BRACKETS, {"join": lambda x, mean, root: x - mean / root}),
    (
        "the variance of what is not centred",
        "The variance is the mean of the squares of x − mean, not of x.",
        {"square": _mean_square},
    ),
    (
        "the sum in place of the mean",
        "The variance is the mean of the squares: divide their sum by d.",
        {"square": lambda x, mean, axes: _sum_of_squares(x - mean, mean, axes)},
    ),
    (
        "the mean of the absolute values",
        "The standard deviation is the root of the variance: square first, then the "
        "mean, then the root.",
        {
            "square": lambda x, mean, axes: _mean((x - mean).abs(), axes),
            "divisor": lambda spread, epsilon: spread + epsilon,
        },
    ),
    (
        "no epsilon",
        "Add epsilon to the variance. Without it a token of almost equal features is "
        "blown up to full size, and one of equal features becomes 0/0.",
        {"divisor": lambda square, epsilon: square.sqrt()},
    ),
    (*DETACHED, {"join": lambda x, mean, root: (x - mean.detach()) / root}),
    (*DETACHED, {"join": lambda x, mean, root: (x - mean) / root.detach()}),
    (*DETACHED, {"join": lambda x, mean, root: (x - mean.detach()) / root.detach()}),
    (*PRODUCT, {"join": lambda x, mean, root: (x - mean) * root}),
)


@layers.mistake(*BRACKETS)
def _(x, gamma, beta, epsilon):
    mean = _mean(x, (-1,))
    return gamma * x - mean / (_variance(x, mean, (-1,)) + epsilon).sqrt() + beta


sizes.slips(
    scaled,
    (*SIZE_ALONE, {"join": _centred, "square": _variance}),
    (*SIZE_ALONE, {"join": _centred}),
    *(
        (
            "divided by the standard deviation",
            "The divisor is the root of the mean square, without subtracting the mean.",
            {"square": square},
        )
        for square in (_variance, _unbiased)
    ),
    (
        "divided by d − 1 in place of d",
        "A mean of d squares is their sum divided by d.",
        {"square": lambda x, *_: _sum_of_squares(x, *_) / (x.shape[-1] - 1)},
    ),
    (
        OUTSIDE,
        "Add epsilon to the mean square, before the root. At a token of zeros the root "
        "alone has an infinite derivative.",
        {"divisor": lambda square, epsilon: square.sqrt() + epsilon},
    ),
    (
        "the sum in place of the mean",
        "Divide the sum of the squares by d. With the sum alone, which .norm() takes, "
        "the token gets length 1 instead of √d.",
        {"square": _sum_of_squares},
    ),
    *(
        (
            *LENGTH,
            {
                "square": _sum_of_squares,
                "divisor": lambda square, epsilon, n=n: square.sqrt() + n * epsilon,
            },
        )
        for n in (0, 1)
    ),
    *(
        (
            *BY_D,
            {"square": lambda *x: _sum_of_squares(*x) / x[0].shape[-1] ** 2, **divisor},
        )
        for divisor in ({"divisor": lambda square, e: square.sqrt() + e}, {})
    ),
    (
        "the square of the mean",
        "First each feature is squared, then the mean is taken: x.square().mean(-1).",
        {"square": lambda x, mean, axes: mean.square()},
    ),
    (
        "divided by the mean square",
        "The root is missing.",
        {"divisor": lambda square, epsilon: square + epsilon},
    ),
    (
        "the mean of the absolute values",
        "Root mean square: square first, then the mean, then the root.",
        {
            "square": lambda x, mean, axes: _mean(x.abs(), axes),
            "divisor": lambda size, epsilon: size + epsilon,
        },
    ),
    (
        "gamma left out",
        "Multiply each feature by its gamma.",
        {"scale": lambda y, gamma, beta: y},
    ),
    (
        "gamma added",
        "gamma is a scale: it multiplies.",
        {"scale": lambda y, gamma, beta: y + gamma},
    ),
    (
        "no epsilon",
        "Add epsilon to the mean square; a token of zeros would become 0/0.",
        {"divisor": lambda square, epsilon: square.sqrt()},
    ),
    (
        "gamma comes before the mean of the squares",
        "The norm then undoes a part of gamma. First bring the token to size 1, then "
        "multiply each feature by its gamma.",
        {"first": torch.mul, "scale": lambda y, gamma, beta: y},
    ),
    (*DETACHED, {"join": lambda x, mean, root: x / root.detach()}),
    (*PRODUCT, {"join": lambda x, mean, root: x * root}),
)
for spec, norm in NORMS:
    spec.slips(
        norm,
        (*ALWAYS, {"fixed": EPSILON}),
        (
            "the type's epsilon in place of the layer's",
            "That is what PyTorch takes if it is given none. Here the layer was built "
            "with an epsilon: keep it in __init__.",
            {"fixed": torch.finfo(torch.float32).eps},
        ),
        (
            "epsilon squared",
            "Epsilon is added to the square of the spread as it is: σ² + ε.",
            {"divisor": lambda square, epsilon: (square + epsilon**2).sqrt()},
        ),
        (*LIMIT, {"divisor": lambda square, least: square.clamp(min=least).sqrt()}),
        (*LIMIT, {"divisor": lambda square, least: square.sqrt().clamp(min=least)}),
    )


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
