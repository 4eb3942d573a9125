"""Factors and differences between wrong and right values, and what they are made of.

Each relation takes wrong answers of the right shape, all to one question, and returns a
sentence that holds for every one of them, or "".
"""

import itertools
import math
from collections.abc import Iterable
from dataclasses import replace

import torch

from autograder.exercise.diagnosis.evidence import (
    ENOUGH,
    Case,
    common,
    distinct,
    entries_close,
    number,
    same_tensors,
    sizes,
    subject,
)

FORMS = (  # what a factor may be made of a size n
    ("n", lambda n: n),
    ("1/n", lambda n: 1 / n),
    ("√n", lambda n: math.sqrt(n)),
    ("1/√n", lambda n: 1 / math.sqrt(n)),
    ("n/(n−1)", lambda n: n / (n - 1)),
    ("(n−1)/n", lambda n: (n - 1) / n),
    ("√(n/(n−1))", lambda n: math.sqrt(n / (n - 1))),
    ("√((n−1)/n)", lambda n: math.sqrt((n - 1) / n)),
)


PAIRS = (  # and of two sizes n and m
    ("n/m", lambda n, m: n / m),
    ("√(n/m)", lambda n, m: math.sqrt(n / m)),
)


PLAIN = {
    "ln 2": math.log(2),
    "1/ln 2": 1 / math.log(2),
    "ln 10": math.log(10),
    "1/ln 10": 1 / math.log(10),
    "√2": math.sqrt(2),
    "1/√2": math.sqrt(0.5),
    "2π": 2 * math.pi,
    "1/(2π)": 0.5 / math.pi,
    "π/180": math.pi / 180,
}


ROUND = (2.0, 0.5, -1.0, 3.0, 4.0, 0.25, 10.0, 0.1)  # factors that explain themselves


TERMS = (  # what a constant difference of whole numbers may be
    *((f"{k} · n" if k > 1 else "n", lambda n, k=k: k * n) for k in (1, 2, 3, 4, 6, 8)),
    ("n² + n", lambda n: n * n + n),
    *((f"{k} · n²" if k > 1 else "n²", lambda n, k=k: k * n * n) for k in (1, 2, 3, 4)),
)


def _fitted(case: Case, difference: bool) -> float | None:
    """Return the one factor, or the one difference, between all values, or None."""
    finite = case.got.isfinite() & case.expected.isfinite()
    if case.boolean or (case.wrong & ~finite).any() or not finite.any():
        return None
    got, right = case.got[finite], case.expected[finite]
    if difference:
        value = float((got - right).mean())
        fits = abs(value) > 10 * case.tolerance
        fits = fits and bool(entries_close(got, right + value, case.tolerance).all())
    else:
        square = float(right @ right)
        value = float(got @ right) / square if square else 0.0
        fits = abs(value) > 1e-3
        fits = fits and bool(entries_close(got, right * value, case.tolerance).all())
    return value if fits else None


def _all(values: Iterable[float | None]) -> list[float]:
    """List the values; none, if one of them is missing."""
    found = list(values)
    given = [each for each in found if each is not None]
    return given if len(given) == len(found) else []


def _precise(case: Case) -> float:
    """Say how exactly a factor follows from the values."""
    finite = case.expected[case.expected.isfinite()]
    return max(2e-5, 3 * case.tolerance / float(finite.abs().max().clamp(min=1e-12)))


def _names(cases: list[Case], values: list[float], forms: tuple) -> list[tuple]:
    """Find forms of one size that give every value: (form, sizes, whose size)."""
    found: dict[tuple, str] = {}
    known = [sizes(case.comparison) for case in cases]
    for name in common({key: key for key in each} for each in known):
        numbers = tuple(each[name] for each in known)
        if min(numbers) < 2:
            continue
        for form, function in forms:
            if all(
                abs(value / function(n) - 1) < _precise(case)
                for case, value, n in zip(cases, values, numbers, strict=True)
            ):
                found.setdefault((form, numbers), name)
    return [(form, numbers, name) for (form, numbers), name in found.items()]


def _pairs_of_sizes(cases: list[Case], values: list[float]) -> list[tuple]:
    """Find forms of two sizes that give every value: (form, whose n, whose m)."""
    known = [sizes(case.comparison) for case in cases]
    shared = common({key: key for key in each} for each in known)
    owners: dict[tuple, str] = {}
    for name in shared:
        owners.setdefault(tuple(each[name] for each in known), name)
    found = []
    for above, below in itertools.permutations(owners, 2):
        if min(*above, *below) < 2:
            continue
        for form, function in PAIRS:
            if all(
                abs(value / function(n, m) - 1) < _precise(case)
                for case, value, n, m in zip(cases, values, above, below, strict=True)
            ):
                found.append((form, owners[above], owners[below]))
    return found


def _guessed(cases: list[Case], values: list[float], names: list[tuple]) -> bool:
    """Say whether n − 1 in a form may as well be another size."""
    neighbours = any("−1" in form for form, *_ in names)
    return neighbours and bool(_pairs_of_sizes(cases, values))


def _solid(cases: list[Case]) -> bool:
    """Say whether each tensor by itself has enough different values."""
    return all(
        distinct(case.expected, 100 * case.tolerance) >= ENOUGH for case in cases
    )


def _enough_together(cases: list[Case]) -> bool:
    together = torch.cat([case.expected.flatten() for case in cases])
    return distinct(together, 100 * cases[0].tolerance) >= ENOUGH


def _explained(value: float, names: list[tuple], precise: float) -> str:
    """Say what a factor is, if there is one way to read it."""
    if precise > 1e-3 or any(abs(value / plain - 1) < precise for plain in ROUND):
        return ""
    plain = [name for name, each in PLAIN.items() if abs(value / each - 1) < precise]
    if plain:
        return f": that is {plain[0]}"
    if len(names) != 1:
        return ""
    form, (n, *_), name = names[0]
    written = form.replace("(n−1)", "n−1") if form == "n/(n−1)" else form
    written = written.replace("(n/(n−1))", "(n/n−1)").replace("((n−1)/n)", "(n−1/n)")
    written = written.replace("n−1", str(n - 1)).replace("n", str(n))
    if written == str(n):
        return f": that is {name}"
    return f": that is {written}, and {n} is {name}"


def constant_factor(cases: list[Case]) -> str:
    """One factor between all values, or one for each input."""
    factors = _all(_fitted(case, difference=False) for case in cases)
    if not factors:
        return ""
    what = subject(cases)
    if max(abs(factor + 1) for factor in factors) < max(map(_precise, cases)):
        if not _enough_together(cases):
            return ""
        return f"The sign is wrong: every value of {what} is minus the right one."
    return _told(cases, factors, f"Every value of {what} is", "times the expected one")


def _told(cases: list[Case], factors: list[float], start: str, end: str) -> str:
    """Tell a factor of every input, and what it is made of if that is clear."""
    names = _names(cases, factors, FORMS)
    if _guessed(cases, factors, names):
        names = []
    precise = max(map(_precise, cases))
    low, high = min(factors), max(factors)
    if abs(high - low) <= 2 * precise * abs(high):
        if not _enough_together(cases):
            return ""
        return f"{start} {number(low)} {end}{_explained(low, names, precise)}."
    if len(names) == 1 and (_solid(cases) or len(cases) > 2):
        form, _, name = names[0]
        return f"{start} {form} {end}, where n is {name}."
    if not _solid(cases):
        return ""
    pairs = _pairs_of_sizes(cases, factors)
    if len(pairs) == 1 and not names:
        form, above, below = pairs[0]
        return f"{start} {form} {end}, where n is {above} and m {below}."
    return (
        f"On each input, {start[0].lower()}{start[1:]} one factor {end}: "
        f"{number(factors[0])} on the first, {number(factors[1])} on the second."
    )


def nearly_a_factor(cases: list[Case]) -> str:
    """A factor up to an epsilon, if it can be named."""
    loose = []
    for case in cases:
        comparison = replace(case.comparison, tolerance=3e-4)
        loose.append(Case(comparison, case.got, case.expected, case.wrong))
    factors = _all(_fitted(case, difference=False) for case in loose)
    if not factors or not _solid(cases) or not all(map(_far, factors)):
        return ""
    names = _names(loose, factors, FORMS)
    if len(names) != 1 or _guessed(loose, factors, names):
        return ""
    form, _, name = names[0]
    what = subject(cases)
    return f"Every value of {what} is nearly {form} times the right, where n is {name}."


def _far(factor: float) -> bool:
    return abs(factor - 1) > 0.01


def before_softmax(cases: list[Case]) -> str:
    """Weights of scores that are a factor too large or too small."""
    if any(case.got.ndim < 1 for case in cases) or not all(
        _are_weights(case.got, case.expected) for case in cases
    ):
        return ""
    factors = _all(map(_temperature, cases))
    if not factors or not _solid(cases):
        return ""
    start = f"What the softmax gets for {subject(cases)} is"
    return _told(cases, factors, start, "times as large as it should be")


def _are_weights(*tensors: torch.Tensor) -> bool:
    for each in tensors:
        sums = each.sum(-1)
        one = (sums - 1).abs() < 1e-4
        if not each.isfinite().all() or each.min() < 0 or not (one | (sums == 0)).all():
            return False
        if not one.any():
            return False
    return True


def _temperature(case: Case) -> float | None:
    """Fit the factor between the logarithms of two rows of weights."""
    known = (case.expected > 1e-6) & (case.got > 1e-6)
    logs = [each.clamp(min=1e-6).log() for each in (case.got, case.expected)]
    count = known.sum(-1, keepdim=True).clamp(min=1)
    got, right = (
        (each - (each * known).sum(-1, keepdim=True) / count) * known for each in logs
    )
    square = float(right.square().sum())
    factor = float((got * right).sum()) / square if square else 0.0
    made = (case.expected.log() * factor).softmax(-1).nan_to_num()
    fits = abs(factor) > 1e-3 and same_tensors(made, case.got, 3 * case.tolerance)
    return factor if fits else None


def constant_difference(cases: list[Case]) -> str:
    """One difference between all values, or one for each input."""
    differences = _all(_fitted(case, difference=True) for case in cases)
    if not differences:
        return ""
    what = cases[0].comparison.what
    low, high = min(differences), max(differences)
    sign = "large" if low > 0 else "small"
    if high - low <= 20 * cases[0].tolerance * max(1, abs(high)):
        if not _enough_together(cases):
            return ""
        return f"Every value of {what} is {number(abs(low))} too {sign}."
    if low * high < 0:
        return ""
    whole = all(float(case.expected.flatten()[0]).is_integer() for case in cases)
    names = _names(cases, [abs(each) for each in differences], TERMS) if whole else []
    if len(names) == 1 and len(set(names[0][1])) > 2:
        form, _, name = names[0]
        whose = f"({name})" if " " in name and form != "n" else name
        amount = form.replace("n", whose)
        return f"The value of {what} is too {sign} by {amount}."
    if not _solid(cases):
        return ""
    return f"On each input, all values of {what} are too {sign} by one number."
