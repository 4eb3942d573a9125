"""How the loss falls with parameters and tokens, fitted to runs and put to use."""

import math
import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch

from autograder.chapters.language_model.chapter import chapter
from autograder.exercise.answers import expect_entries
from autograder.exercise.inputs import draw_whole, seeded
from autograder.exercise.spec import Case, Function, expect_several, judge_parts
from autograder.expect import refuse
from autograder.forms import several
from autograder.interface import StudentFunction

Law = dict[str, float]
Runs = list[dict[str, float]]

KEYS = ("E", "A", "B", "a", "b")
OPERATIONS = 6  # for each parameter and token

# --- the loss that a law predicts -----------------------------------------------------


def loss_of(law: Law, parameters: float, tokens: float) -> float:
    """Add up the three parts, by logarithms."""
    parts = (
        math.log(law[factor]) - law[exponent] * math.log(count)
        for factor, exponent, count in (("A", "a", parameters), ("B", "b", tokens))
    )
    return math.fsum((law["E"], *map(math.exp, parts)))


predicted = Function("scaling-law", "predicted_loss", loss_of)
predicted.mistake(
    "the loss that stays is left out",
    "No model gets below E: add it, whatever N and D are.",
)(lambda law, n, d: loss_of(law | {"E": 0.0}, n, d))
predicted.mistake(
    "exponents exchanged", "a belongs to the parameters, b to the tokens: A / N**a."
)(lambda law, n, d: loss_of(law | {"a": law["b"], "b": law["a"]}, n, d))
predicted.mistake(
    "factors exchanged", "A belongs to the parameters, B to the tokens: A / N**a."
)(lambda law, n, d: loss_of(law | {"A": law["B"], "B": law["A"]}, n, d))
predicted.mistake(
    "parameters and tokens exchanged", "N is the number of parameters, D of tokens."
)(lambda law, n, d: loss_of(law, d, n))
predicted.mistake(
    "multiplied in place of divided",
    "More parameters and more tokens make the loss smaller: divide by N**a and D**b.",
)(lambda law, n, d: law["E"] + law["A"] * n ** law["a"] + law["B"] * d ** law["b"])
predicted.mistake(
    "the power of the quotient",
    "Only N is raised to the power a: A / N**a, not (A / N)**a.",
)(lambda law, n, d: law["E"] + (law["A"] / n) ** law["a"] + (law["B"] / d) ** law["b"])
predicted.mistake(
    "the two terms are multiplied",
    "The three parts are added: what is lost for want of parameters, and for want of "
    "text.",
)(lambda law, n, d: law["E"] + law["A"] / n ** law["a"] * law["B"] / d ** law["b"])
predicted.mistake(
    "divided by the number itself", "Divide by N**a and by D**b, not by N and D."
)(lambda law, n, d: law["E"] + law["A"] / n + law["B"] / d)


# --- the law that fits ----------------------------------------------------------------


def best_fit(runs: Runs, exponents: list[float]) -> Law:
    """Solve each pair of exponents by NumPy, its columns scaled, and keep the best."""
    counts = [run["parameters"] + run["embedding"] for run in runs]
    losses = np.array([run["bits_per_byte"] for run in runs], dtype=np.float64)
    tokens = np.log([run["tokens"] for run in runs])
    found = []
    for a in exponents:
        for b in exponents:
            columns = np.stack(
                (np.ones(len(runs)), np.exp(-a * np.log(counts)), np.exp(-b * tokens))
            )
            scale = np.linalg.norm(columns, axis=1)
            solved = np.linalg.lstsq((columns.T / scale), losses, rcond=None)[0] / scale
            left = columns.T @ solved - losses
            found.append((float(left @ left), (*solved.tolist(), a, b)))
    return dict(zip(KEYS, min(found)[1], strict=True))


fit = Function("scaling-law", "fit_scaling_law", best_fit)

# --- what goes wrong in fitting -------------------------------------------------------


def _all(run: dict[str, float]) -> float:
    return run["parameters"] + run["embedding"]


def _fitted(
    runs: Runs,
    exponents: list[float],
    *,
    size: Callable = _all,
    loss: Callable = lambda run: run["bits_per_byte"],
    tried: Callable = lambda a, b: True,
    choose: Callable = min,
    stays: bool = True,
    sign: int = -1,
) -> Law:
    """Fit in a way that can be varied."""
    sizes = torch.tensor([size(run) for run in runs], dtype=torch.float64)
    tokens = torch.tensor([run["tokens"] for run in runs], dtype=torch.float64)
    losses = torch.tensor([loss(run) for run in runs], dtype=torch.float64)
    found = []
    for a, b in ((a, b) for a in exponents for b in exponents if tried(a, b)):
        powers = (sizes ** (sign * a), tokens ** (sign * b))
        columns = torch.stack(((torch.ones_like(sizes),) if stays else ()) + powers, -1)
        solved = torch.linalg.lstsq(columns, losses.unsqueeze(-1)).solution.squeeze(-1)
        left = (columns @ solved - losses).square().sum().item()
        found.append((left, (*(() if stays else (0.0,)), *solved.tolist(), a, b)))
    return dict(zip(KEYS, choose(found)[1], strict=True))


EMBEDDING = (
    "the embedding is not counted",
    "So Kaplan et al. counted in 2020. In a small model most parameters are in the "
    "table of embeddings, so without it small models look far smaller than they are, "
    "and growing seems to pay more than it does. N is run['parameters'] + "
    "run['embedding'].",
)


fit.mistake(*EMBEDDING)(partial(_fitted, size=lambda run: run["parameters"]))


fit.mistake(
    "the embedding is counted twice",
    "One table serves at both ends, and run['embedding'] is all of it. N is "
    "run['parameters'] + run['embedding'].",
)(partial(_fitted, size=lambda run: run["parameters"] + 2 * run["embedding"]))


fit.mistake(
    "only the embedding is counted",
    "N is all parameters: run['parameters'] + run['embedding'].",
)(partial(_fitted, size=lambda run: run["embedding"]))


fit.mistake(
    "nats per token in place of bits per byte",
    "A loss per token depends on the tokenizer. The loss is run['bits_per_byte'].",
)(partial(_fitted, loss=lambda run: run["nats_per_token"]))


fit.mistake(
    "the loss that stays is left out",
    "E needs a column of its own, of ones: it counts the same in every run.",
)(partial(_fitted, stays=False))


fit.mistake(
    "only equal exponents are tried",
    "a and b need not be equal: try every b with every a, a loop inside a loop.",
)(partial(_fitted, tried=lambda a, b: a == b))


def _several(runs: Runs, exponents: list[float]) -> bool:
    return len(exponents) > 1


for tried in (operator.le, operator.lt, operator.ge, operator.gt):
    fit.mistake(
        "only half of the pairs are tried",
        "Of two candidates either may belong to the parameters and the other to the "
        "tokens: try every b with every a, the larger and the smaller ones.",
        when=_several,
    )(partial(_fitted, tried=tried))


fit.mistake(
    "a sign is missing in the exponent",
    "A / N**a is A times N**-a: the columns hold N**-a and D**-b, which fall.",
)(partial(_fitted, sign=1))


fit.mistake(
    "logarithms of the losses",
    "The law is a sum, and its logarithm is none. The losses themselves are fitted.",
)(partial(_fitted, loss=lambda run: math.log(run["bits_per_byte"])))


fit.mistake(
    "the worst fit is kept",
    "The fit with the smallest sum of squares is the best: keep it if error < best.",
)(partial(_fitted, choose=max))


fit.mistake(
    "the last fit is kept",
    "The loop ends with the last pair of exponents, not with the best. Keep what was "
    "best so far, and overwrite it only if the error is smaller.",
)(partial(_fitted, choose=lambda found: found[-1]))


LEFT_OUT = (
    "a candidate is left out",
    "Every exponent of the list is tried, the first and the last one, too.",
)
for kept in (slice(1, None), slice(None, -1)):

    @fit.mistake(*LEFT_OUT, when=_several)
    def _(runs, exponents, kept=kept):
        return best_fit(runs, exponents[kept])


@fit.mistake("exponents exchanged", "a belongs to the parameters, b to the tokens.")
def _(runs, exponents):
    law = best_fit(runs, exponents)
    return law | {"a": law["b"], "b": law["a"]}


@fit.mistake(
    "factors exchanged",
    "The solution has the order of the columns: E, then A of the parameters, then B.",
)
def _(runs, exponents):
    law = best_fit(runs, exponents)
    return law | {"A": law["B"], "B": law["A"]}


ANOTHER = (
    "not the best pair of exponents",
    "E, A and B are right for the exponents beside them, but another pair fits better. "
    "Compare sums of squares: (columns @ solution - losses).square().sum(). Added up "
    "before they are squared, errors above and below cancel.",
)


def _is_solved(law: Law, runs: Runs, exponents: list[float]) -> bool:
    """Whether E, A and B are the best for the exponents beside them."""
    pair = law["a"], law["b"]
    if not set(pair) <= set(exponents):
        return False
    return _is_near(law, _fitted(runs, exponents, tried=lambda a, b: (a, b) == pair))


def _are_explained(laws: list[Law], cases: list[Case]) -> bool:
    """Whether one mistake gives all of these laws, as far as it shows."""
    found: dict[Any, list[bool]] = {}
    for law, case in zip(laws, cases, strict=True):
        for each in fit.known(*case.inputs):
            found.setdefault(each.variant, []).append(_is_near(law, each.value))
    return any(map(all, found.values()))


def expect_best_pair(laws: list[Law], cases: list[Case]) -> None:
    """Name a choice among the pairs that no known mistake makes in all cases."""
    numbers = (isinstance(law[key], float | int) for law in laws for key in KEYS)
    if not all(numbers):
        return
    pairs = zip(laws, cases, strict=True)
    wrong = [each for each in pairs if not _is_near(each[0], fit.right(each[1]))]
    if not wrong or not all(_is_solved(law, *case.inputs) for law, case in wrong):
        return
    if _are_explained(laws, cases):
        return
    law, case = wrong[0]
    both = {"got": law, "expected": fit.right(case)}
    say = {key: f"a = {each['a']}, b = {each['b']}" for key, each in both.items()}
    refuse(*ANOTHER, on=case.on, **say)


def _is_near(first: Law, second: Law) -> bool:
    return all(math.isclose(first[key], second[key], rel_tol=1e-3) for key in KEYS)


# --- the best model for a budget ------------------------------------------------------


def best_split(law: Law, budget: float) -> tuple[float, float]:
    """Look for the size at which one more parameter is worth as much as its tokens."""
    pairs = math.log(budget / OPERATIONS)  # of ln N + ln D
    low, high = -300.0, 300.0
    for _ in range(200):
        size = (low + high) / 2
        gain = math.log(law["a"] * law["A"]) - law["a"] * size
        price = math.log(law["b"] * law["B"]) - law["b"] * (pairs - size)
        low, high = (size, high) if gain > price else (low, size)
    return math.exp(low), math.exp(pairs - low)


optimal = Function("scaling-law", "compute_optimal", best_split)

# --- what goes wrong in splitting -----------------------------------------------------


def _split(
    law: Law,
    budget: float,
    *,
    ratio: Callable = lambda law: law["a"] * law["A"] / law["b"] / law["B"],
    power: Callable = lambda law: law["b"],
    operations: float = OPERATIONS,
    root: Callable = lambda law: law["a"] + law["b"],
) -> tuple[float, float]:
    pairs, whole = budget / operations, law["a"] + law["b"]
    parameters = ratio(law) ** (1 / root(law)) * pairs ** (power(law) / whole)
    return parameters, pairs / parameters


NOT_BY_RULE = (
    "The rule of thumb fits the runs of Hoffmann et al. Here the law decides: use its "
    "A, B, a and b."
)


optimal.mistake(
    "the 6 is left out", "A run takes 6 · N · D operations: N · D is budget / 6."
)(partial(_split, operations=1))


optimal.mistake(
    "exponents exchanged",
    "N grows with the budget to the power b / (a + b): the faster tokens help, the "
    "more is spent on parameters.",
    when=lambda law, budget: law["a"] != law["b"],
)(partial(_split, power=lambda law: law["a"]))


@optimal.mistake(
    "the quotient is turned round",
    "The larger A is, the more growing the model is worth: aA is divided by bB.",
)
def _(law, budget):
    turned = law["b"] * law["B"] / (law["a"] * law["A"])
    return _split(law, budget, ratio=lambda law: turned)


optimal.mistake(
    "a and b are missing in the quotient",
    "The derivative brings the exponents down: a·A over b·B, not A over B.",
    when=lambda law, budget: law["a"] != law["b"],
)(partial(_split, ratio=lambda law: law["A"] / law["B"]))


optimal.mistake(
    "A and B are not used",
    "How the budget is split depends on both factors, too: (aA / bB) ** (1 / (a + b)).",
)(partial(_split, ratio=lambda law: 1.0))


optimal.mistake(
    "the root of the quotient is missing",
    "aA / bB is raised to the power 1 / (a + b).",
    when=lambda law, budget: law["a"] + law["b"] != 1,
)(partial(_split, root=lambda law: 1.0))


@optimal.mistake(
    "** 1 / (a + b) without brackets",
    "Python raises to a power before it divides: ratio ** 1 / (a + b) is ratio / "
    "(a + b). Put the whole exponent in brackets, ratio ** (1 / (a + b)).",
    when=lambda law, budget: law["a"] + law["b"] != 1,
)
def _(law, budget):
    whole = law["a"] + law["b"]
    ratio = law["a"] * law["A"] / law["b"] / law["B"] / whole
    return _split(law, budget, ratio=lambda law: ratio, root=lambda law: 1.0)


@optimal.mistake(
    "multiplied by N in place of divided",
    "N · D is budget / 6, so D is budget / (6 · N). budget / 6 * N multiplies by N: "
    "put 6 * N in brackets.",
)
def _(law, budget):
    parameters, _ = _split(law, budget)
    return parameters, budget / OPERATIONS * parameters


optimal.mistake(
    "1 / a + b in place of 1 / (a + b)",
    "Python divides before it adds: put a + b in brackets.",
)(partial(_split, root=lambda law: 1 / (1 / law["a"] + law["b"])))


@optimal.mistake(
    "b / a + b in place of b / (a + b)",
    "Python divides before it adds: put a + b in brackets.",
)
def _(law, budget):
    whole, a, b = law["a"] + law["b"], law["a"], law["b"]
    return _split(law, budget, power=lambda law: (b / a + b) * whole)


@optimal.mistake(
    "the parameters' power for the tokens, too",
    "D grows with the power a / (a + b). It needs no formula of its own: D = budget / "
    "(6 · N).",
    when=lambda law, budget: law["a"] != law["b"],
)
def _(law, budget):
    parameters, _ = _split(law, budget)
    power = (budget / OPERATIONS) ** (law["b"] / (law["a"] + law["b"]))
    return parameters, power**2 / parameters


@optimal.mistake("twenty tokens for each parameter", NOT_BY_RULE)
def _(law, budget):
    parameters = math.sqrt(budget / OPERATIONS / 20)
    return parameters, 20 * parameters


@optimal.mistake("as many tokens as parameters", NOT_BY_RULE)
def _(law, budget):
    return (math.sqrt(budget / OPERATIONS),) * 2


@optimal.mistake(
    "all of the budget for the tokens, too",
    "The tokens are what is left of the budget: D = budget / (6 · N).",
)
def _(law, budget):
    whole = law["a"] + law["b"]
    ratio = (law["b"] * law["B"] / law["a"] / law["A"]) ** (1 / whole)
    return _split(law, budget)[0], ratio * (budget / OPERATIONS)


@optimal.mistake("parameters and tokens exchanged", "Return (N, D): parameters first.")
def _(law, budget):
    return _split(law, budget)[::-1]


# --- the checks -----------------------------------------------------------------------

NEARLY = (
    "If all five numbers are nearly right, compute in float64: float32 keeps seven "
    "digits, and the columns are small numbers."
)
BY_HAND = {"E": 1.0, "A": 100.0, "B": 1000.0, "a": 0.5, "b": 0.5}


def _draw_law(generator: torch.Generator, exponents: list[float]) -> Law:
    """Draw a law whose exponents are two different ones of a list."""
    first, second = torch.randperm(len(exponents), generator=generator)[:2].tolist()
    return {
        "E": (5 + draw_whole(generator, 9)) / 10,
        "A": 30.0 + 10 * draw_whole(generator, 40),
        "B": 200.0 + 50 * draw_whole(generator, 90),
        "a": exponents[first],
        "b": exponents[second],
    }


def _draw_runs(
    generator: torch.Generator, law: Law, sizes: int, lengths: int, noise: float
) -> Runs:
    """Draw runs of every size and length; small models are mostly embedding."""
    runs = []
    for size in range(sizes):
        inside = 7_000 * 4**size + draw_whole(generator, 5_000)
        table = 9_000 * 2**size + draw_whole(generator, 3_000)
        for length in range(lengths):
            tokens = 150_000 * 5**length + draw_whole(generator, 50_000)
            loss = loss_of(law, inside + table, tokens)
            loss += noise * torch.randn((), generator=generator).item()
            nats = loss * (2 + draw_whole(generator, 100) / 400)
            runs.append(
                {
                    "parameters": inside,
                    "embedding": table,
                    "tokens": tokens,
                    "bits_per_byte": loss,
                    "nats_per_token": nats,
                }
            )
    return runs


def _prices(seed: int) -> Iterator[Case]:
    """The example by hand, then laws and models of any kind."""
    on = "the example by hand, N = 10,000, D = 1,000,000"
    yield Case(on, (BY_HAND, 10_000, 1_000_000), 3.0)
    generator = seeded(seed)
    for _ in range(4):
        law = _draw_law(generator, [0.2, 0.28, 0.35, 0.45, 0.6])
        n, d = (10**4 + draw_whole(generator, 10**power) for power in (7, 9))
        yield Case(f"a law {law}, N = {n:,}, D = {d:,}", (law, n, d))


def _fits(seed: int) -> Iterator[Case]:
    """The example by hand, runs that keep a law exactly, and runs that do not quite."""
    rows = (
        (60, 40, 10_000, 3.0, 5.0),
        (300, 100, 10_000, 2.5, 4.0),
        (60, 40, 40_000, 2.5, 4.5),
    )
    keys = ("parameters", "embedding", "tokens", "bits_per_byte", "nats_per_token")
    runs = [dict(zip(keys, row, strict=True)) for row in rows]
    right = {"E": 1.0, "A": 10.0, "B": 100.0, "a": 0.5, "b": 0.5}
    say = {"what": "the law", "tolerance": 1e-3, "why": NEARLY}
    yield Case("the example by hand, three runs", (runs, [0.5]), right, **say)
    generator = seeded(seed)
    exponents = [0.24, 0.3, 0.36, 0.45, 0.52, 0.6]
    ends = {"a": exponents[-1], "b": exponents[0]}
    rising = {"a": exponents[1], "b": exponents[-2]}
    for sizes, lengths, noise, fixed in (
        (3, 4, 0.0, rising),
        (4, 3, 0.0, ends),
        (4, 4, 0.004, {}),
        (3, 5, 0.002, {}),
    ):
        law = _draw_law(generator, exponents[1:-1]) | fixed
        runs = _draw_runs(generator, law, sizes, lengths, noise)
        about = "that keep a law exactly" if not noise else "with some chance in them"
        yield Case(f"{len(runs)} runs {about}", (runs, exponents), **say)


def _budgets(seed: int) -> Iterator[Case]:
    """The example by hand, then laws and budgets of any kind."""
    on = "the example by hand, 6 · 10¹⁰ operations"
    yield Case(on, (BY_HAND, 6e10), (1e4, 1e6))
    generator = seeded(seed)
    for power in (12, 16, 19, 22):
        law = _draw_law(generator, [0.2, 0.28, 0.35, 0.45, 0.6])
        budget = (1 + draw_whole(generator, 80) / 10) * 10.0**power
        yield Case(f"a law {law}, {budget:.2g} operations", (law, budget))


@chapter.check(section="language-model-scaling")
def predicted_loss(student: StudentFunction, seed: int = 0) -> None:
    """By hand, laws with two different exponents."""
    predicted.judge_all(student, _prices(seed))


@chapter.check(section="language-model-scaling")
def fit_scaling_law(student: StudentFunction, seed: int = 0) -> None:
    """By hand, runs drawn from a known law, runs with some chance in them."""
    cases = list(_fits(seed))
    laws = [student(*case.passed) for case in cases]
    for law in laws:
        expect_entries(law, KEYS)
    expect_best_pair(laws, cases)
    for law, case in zip(laws, cases, strict=True):
        fit.compare(law, case)


@chapter.check(section="language-model-scaling")
def compute_optimal(student: StudentFunction, seed: int = 0) -> None:
    """By hand, against a search, budgets of any size."""
    names = ("the parameters", "the tokens")
    for case in _budgets(seed):
        got = expect_several(student(*case.passed), names, case.on)
        judge_parts(optimal, got, case, names, several)
