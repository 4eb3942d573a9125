"""What relates all entries of a wrong tensor to the right ones.

Each relation takes wrong answers of the right shape, all to one question, and returns a
sentence that holds for every one of them, or "".
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from autograder.exercise.diagnosis.evidence import (
    ENOUGH,
    Case,
    Relation,
    common,
    distinct,
    entries_close,
    number,
    of_what,
    same_tensors,
    speaks,
    subject,
    telling_arguments,
    tensors_given,
)
from autograder.exercise.diagnosis.factors import (
    before_softmax,
    constant_difference,
    constant_factor,
    nearly_a_factor,
)
from autograder.exercise.diagnosis.orders import (
    any_order,
    other_order,
    rearranged_argument,
    shifted,
)


def nothing_but(cases: list[Case]) -> str:
    """One number everywhere, where the right values differ."""
    values = set()
    for case in cases:
        if distinct(case.expected, case.tolerance) < 2 or case.got.numel() < ENOUGH:
            return ""
        value = case.got.flatten()[0]
        if not entries_close(case.got, value, case.tolerance).all():
            return ""
        values.add(str(bool(value)) if case.boolean else number(value.item()))
    what = cases[0].comparison.what
    if values == {"nan"}:
        return f"Every value of {what} is NaN."
    if len(values) > 1:
        return f"All values of {what} are equal, and the right ones are not."
    (constant,) = values
    if constant == "0" and "gradient" in what:
        return f"All of {what} is 0: is it cut off by detach, .data or no_grad?"
    return f"Every value of {what} is {value}, and the right ones differ."


def turned_round(cases: list[Case]) -> str:
    """True where False is expected, and the other way round."""
    if not all(case.boolean and case.wrong.all() for case in cases):
        return ""
    if sum(case.wrong.numel() for case in cases) < 2 * ENOUGH:
        return ""
    return f"True and False are exchanged everywhere in {cases[0].comparison.what}."


def apart_from_a_bias(cases: list[Case]) -> str:
    """A factor between the values before a parameter is added."""
    known = [tensors_given(replace(c.comparison, arguments=None)) for c in cases]
    for name in common({key: key for key in each} for each in known):
        before = []
        for case, given in zip(cases, known, strict=True):
            bias = given[name]
            if bias.ndim != 1 or case.got.ndim < 1 or len(bias) != case.got.shape[-1]:
                break
            if not bias.any():
                break
            got, right = case.got - bias, case.expected - bias
            before.append(Case(case.comparison, got, right, case.wrong))
        if len(before) < len(cases):
            continue
        for relation in (constant_factor, nearly_a_factor, a_product):
            if said := relation(before):
                return f"Before {name} is added, {said[0].lower()}{said[1:]}"
    return ""


def an_argument_itself(cases: list[Case]) -> str:
    """The answer is an argument or a parameter, as it is or in another shape."""
    found = []
    for case in cases:
        ways = {}
        for name, value in telling_arguments(case).items():
            if same_tensors(case.got, value, case.tolerance):
                ways[name] = f"is {name} itself, unchanged"
            elif value.ndim > 1 and same_tensors(case.got, value.mT, case.tolerance):
                ways[name] = f"is {name} with its last two axes exchanged"
            elif value.numel() == case.got.numel() and same_tensors(
                case.got, value.reshape(case.got.shape), case.tolerance
            ):
                ways[name] = f"has the numbers of {name} in their old order, as after a"
                ways[name] += " reshape alone"
        found.append({f"{name} {how}": how for name, how in ways.items()})
    ways = common(found)
    if not ways:
        return ""
    return f"{subject(cases).capitalize()} {next(iter(ways.values()))}."


def a_term(cases: list[Case]) -> str:
    """The difference is an argument or a parameter, or a multiple of one."""
    found = []
    for case in cases:
        difference = case.got - case.expected
        ways: dict[str, tuple[str, str]] = {}
        if not difference.isfinite().all():
            return ""
        for name, value in telling_arguments(case).items():
            times = _multiple(difference, value, case)
            if times:
                ways[f"{name} {times}"] = (name, times)
        found.append(ways)
    ways = common(found)
    if not ways:
        return ""
    name, times = next(iter(ways.values()))
    what = subject(cases)
    if times == "−1":
        return f"The right values are yours plus {name}: {name} is not added to {what}."
    if times == "1":
        return f"Your values are the right ones plus {name}: {what} has it too often."
    return f"Your values are the right ones plus {times} times {name}{of_what(cases)}."


def a_bias_and_a_matrix(cases: list[Case]) -> str:
    """A bias that is missing before a product, or is added before it, not after it."""
    found = []
    for case in cases:
        ways = {}
        for bias, matrix, product in _products_of_parameters(case):
            if _multiple(case.got - case.expected, product, case) == "−1":
                ways[f"{bias} {matrix}"] = (
                    f"The right values are yours plus {bias} @ {matrix}: {bias} is not "
                    f"added before the product with {matrix}."
                )
            after = tensors_given(case.comparison)[bias]
            if len(after) != product.shape[-1]:
                continue
            if _multiple(case.got - case.expected, product - after, case) == "1":
                ways[f"{bias} before {matrix}"] = (
                    f"You add {bias} before the product with {matrix}, not after it."
                )
        found.append(ways)
    return next(iter(common(found).values()), "")


def _products_of_parameters(case: Case) -> Iterator[tuple[str, str, torch.Tensor]]:
    """List vector times matrix for the parameters, where it is as wide as a row."""
    own = tensors_given(replace(case.comparison, arguments=None))
    width = case.got.shape[-1:]
    for bias, matrix in itertools.product(own, repeat=2):
        vector, table = own[bias], own[matrix]
        if vector.ndim == len(width) == 1 and table.shape == (*vector.shape, *width):
            yield bias, matrix, vector @ table


def the_rest(cases: list[Case]) -> str:
    """Both make up an argument, or an argument is unchanged where it is wrong."""
    found = []
    for case in cases:
        ways = {}
        for name, value in telling_arguments(case).items():
            if value.shape != case.got.shape:
                continue
            if same_tensors(case.got + case.expected, value, case.tolerance):
                ways[f"{name} rest"] = f"Yours and the right values add up to {name}"
            there = case.got[case.wrong], value[case.wrong]
            telling = distinct(there[0], case.tolerance) >= ENOUGH
            if telling and same_tensors(*there, case.tolerance):
                ways[f"{name} there"] = (
                    f"Every wrong value is the one of {name}, unchanged"
                )
        found.append(ways)
    ways = common(found)
    return f"{next(iter(ways.values()))}{of_what(cases)}." if ways else ""


def one_for_another(cases: list[Case]) -> str:
    """One value stands wherever another one is expected."""
    found = set()
    for case in cases:
        got, right = case.got[case.wrong], case.expected[case.wrong]
        everywhere = (case.expected == right[0]) == case.wrong
        if not (got == got[0]).all() or not everywhere.all() or case.wrong.all():
            return ""
        found.add((number(got[0].item()), number(right[0].item())))
    total = sum(int(case.wrong.sum()) for case in cases)
    if len(found) > 1 or total < ENOUGH or any(case.boolean for case in cases):
        return ""
    ((mine, other),) = found
    if mine == "nan":
        return ""
    return f"Wherever {other} is expected, you have {mine}{of_what(cases)}."


def _multiple(difference: torch.Tensor, value: torch.Tensor, case: Case) -> str:
    """Say how many times a tensor of this or a smaller shape is in the difference."""
    try:
        spread = value.broadcast_to(difference.shape)
    except RuntimeError:
        return ""
    if not spread.isfinite().all():
        return ""
    times = float((difference * spread).sum() / spread.square().sum())
    enough = distinct(difference, case.tolerance) >= ENOUGH
    if (
        not enough
        or not entries_close(
            case.got, case.expected + times * spread, case.tolerance
        ).all()
    ):
        return ""
    return number(round(times, 3))


def a_product(cases: list[Case]) -> str:
    """The answer and the right one differ by a factor that is one of those given."""
    found = []
    for case in cases:
        ways = {}
        for name, value in telling_arguments(case).items():
            for key, a, b in (
                (f"{name} missing", case.got, case.expected),
                (f"{name} twice", case.expected, case.got),
            ):
                if value.ndim <= a.ndim and _is_product(a, value, b, case.tolerance):
                    ways[key] = name
        found.append(ways)
    ways = common(found)
    if not ways or not speaks(cases):
        return ""
    (key, name), *_ = ways.items()
    what = subject(cases)
    if key.endswith("missing"):
        return f"The right values are yours times {name}: the factor is not in {what}."
    return f"Your values are the right ones times {name}{of_what(cases)}."


def _is_product(
    a: torch.Tensor, value: torch.Tensor, product: torch.Tensor, tolerance: float
) -> bool:
    try:
        made = a * value
    except RuntimeError:
        return False
    return same_tensors(made, product, tolerance)


def _normalised(x: torch.Tensor) -> torch.Tensor:
    spread = x.var(-1, correction=0, keepdim=True) + 1e-5
    return (x - x.mean(-1, keepdim=True)) / spread.sqrt()


FUNCTIONS = (
    ("the square", lambda x: x.square(), 0),
    ("the square root", lambda x: x.sqrt(), 0),
    ("the exponential", lambda x: x.exp(), 0),
    ("the logarithm", lambda x: x.log(), 0),
    ("one over", lambda x: 1 / x, 0),
    ("the absolute value", lambda x: x.abs(), 0),
    ("one minus", lambda x: 1 - x, 0),
    ("the sigmoid", lambda x: x.sigmoid(), 0),
    ("the tanh", lambda x: x.tanh(), 0),
    ("the softmax over the last axis", lambda x: x.softmax(-1), 1),
    ("the softmax over the second last axis", lambda x: x.softmax(-2), 2),
    ("the running sum along the last axis", lambda x: x.cumsum(-1), 1),
    ("the normalised row", _normalised, 1),
)


def a_function(cases: list[Case]) -> str:
    """One is a known function of the other."""
    if not speaks(cases) or any(case.boolean for case in cases):
        return ""
    least = min(case.got.ndim for case in cases)
    for name, function, ndim in FUNCTIONS:
        name = name if name.startswith("one") else f"{name} of"
        if least < ndim or any(0 in case.got.shape for case in cases):
            continue
        if all(_maps(function, case.expected, case.got, case) for case in cases):
            return f"Your values are {name} the right ones{of_what(cases)}."
        if all(_maps(function, case.got, case.expected, case) for case in cases):
            return f"The right values are {name} yours{of_what(cases)}."
    return ""


def _maps(
    function: Callable[[torch.Tensor], torch.Tensor],
    x: torch.Tensor,
    y: torch.Tensor,
    case: Case,
) -> bool:
    return same_tensors(function(x), y, case.tolerance)


def rounded(cases: list[Case]) -> str:
    """The right values, rounded, cut off at a whole number, or in half precision."""
    ways = (
        ("to whole numbers", torch.round),
        ("down to whole numbers", torch.floor),
        ("towards zero to whole numbers", torch.trunc),
        ("to half precision", lambda x: x.half().double()),
        ("to bfloat16, 8 bits", lambda x: x.bfloat16().double()),
    )
    if any(case.boolean for case in cases) or not all(map(_all_finite, cases)):
        return ""
    wrong = sum(distinct(c.expected[c.wrong], c.tolerance) for c in cases)
    if wrong < ENOUGH:
        return ""
    start = f"The values of {subject(cases)} are the right ones, rounded"
    for how, function in ways:
        if all(same_tensors(c.got, function(c.expected), 1e-7) for c in cases):
            return f"{start} {how}."
    for decimals in (1, 2, 3, 4):
        if all(_has_decimals(case, decimals) for case in cases):
            return f"{start} to {decimals} decimal{'s' * (decimals > 1)}."
    return ""


def _has_decimals(case: Case, decimals: int) -> bool:
    """Say whether values have few decimals and are the nearest to the right ones."""
    near = (case.got - case.expected).abs() <= 0.5 * 10.0**-decimals + 1e-6
    few = entries_close(case.got, case.got.round(decimals=decimals), 2e-7)
    return bool(near.all() and few.all())


def _all_finite(case: Case) -> bool:
    return bool(case.got.isfinite().all() and case.expected.isfinite().all())


def clipped(cases: list[Case]) -> str:
    """Every wrong value is one limit, and the right one lies beyond it."""
    limits, sides = set(), set()
    for case in cases:
        got, right = case.got[case.wrong], case.expected[case.wrong]
        if not (got == got[0]).all() or not right.isfinite().all():
            return ""
        limits.add(number(got[0].item()))
        side = torch.sign(got - right)
        beyond = case.expected[~case.wrong] * side[0] <= got[0] * side[0]
        if not (side == side[0]).all() or beyond.float().mean() > 0.5:
            return ""
        sides.add("below" if side[0] > 0 else "above")
        inside = case.got * side[0] >= got[0] * side[0] - case.tolerance
        if not inside.all() or distinct(right, case.tolerance) < ENOUGH:
            return ""
    if len(limits) > 1 or len(sides) > 1 or limits & {"nan", "inf", "−inf"}:
        return ""
    return (
        f"Every wrong value of {subject(cases)} is {limits.pop()}, where the right "
        f"one is {sides.pop()} it."
    )


def row_by_row(cases: list[Case]) -> str:
    """A factor or a difference that is one for each row, or for each column."""
    if any(case.boolean or case.got.ndim < 1 for case in cases):
        return ""
    if not all(map(_all_finite, cases)) or not any(case.got.ndim > 1 for case in cases):
        return ""
    what = subject(cases)
    if _same_in_every_row(cases):
        return f"Every row of {what} differs from the right row by the same numbers."
    rows = [(case, case.got, case.expected) for case in cases]
    if _all_rows(rows, _moved, 1):
        return f"Each row of {what} is off by a number of its own, the same in the row."
    if _all_rows(rows, _scaled, 1):
        return f"Each row of {what} is the right one times a factor of its own."
    if all(case.got.ndim > 1 for case in cases):
        columns = [(case, case.got.mT, case.expected.mT) for case in cases]
        if _all_rows(columns, _scaled, 1):
            return f"Each column of {what} is the right one times a factor of its own."
    if _all_rows(rows, _stretched, 2):
        return (
            f"Each row of {what} is the right one, shifted and stretched: "
            "compare what is normalised, and over what."
        )
    return ""


def _same_in_every_row(cases: list[Case]) -> bool:
    if len({case.got.shape[-1] for case in cases}) > 1:
        return False
    width = cases[0].got.shape[-1]
    rows = torch.cat([(c.got - c.expected).reshape(-1, width) for c in cases])
    tolerance = 4 * cases[0].tolerance
    close = entries_close(rows, rows[:1], tolerance).all()
    return bool(close) and len(rows) > 2 and distinct(rows[0], tolerance) >= ENOUGH


def _all_rows(pairs: list[tuple], make: Callable, free: int) -> bool:
    """Say whether each right row becomes the one that came, and more than by chance.

    ``make`` fits ``free`` numbers to a row; the other different values speak for it.
    """
    evidence, telling = 0, 0
    for case, got, right in pairs:
        if not entries_close(got, make(got, right), case.tolerance).all():
            return False
        wrong = ~entries_close(got, right, case.tolerance)
        for g, r, w in zip(
            got.reshape(-1, got.shape[-1]),
            right.reshape(-1, got.shape[-1]),
            wrong.reshape(-1, got.shape[-1]),
            strict=True,
        ):
            spare = min(distinct(g, 1e-3), distinct(r[r != 0], 1e-3)) - free
            if w.any() and spare > 0:
                evidence, telling = evidence + spare, telling + 1
    return telling > 1 and evidence >= ENOUGH


def _moved(got: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    return right + (got - right).mean(-1, keepdim=True)


def _scaled(got: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    squares = right.square().sum(-1, keepdim=True).clamp(min=1e-12)
    return (got * right).sum(-1, keepdim=True) / squares * right


def _stretched(got: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    means = [each.mean(-1, keepdim=True) for each in (got, right)]
    return means[0] + _scaled(got - means[0], right - means[1])


SUMS = (  # a property that all rows have: name, of a row
    ("sum to 1", lambda x, axis: x.sum(axis) - 1),
    ("have a mean of 0", lambda x, axis: x.mean(axis)),
    ("have a length of 1", lambda x, axis: x.square().sum(axis) - 1),
)


def sums(cases: list[Case]) -> str:
    """What all right rows have, and the wrong ones not, or its columns instead."""
    if not all(case.got.ndim > 1 and _all_finite(case) for case in cases):
        return ""
    if any(case.boolean or min(case.got.shape[-2:]) < 2 for case in cases):
        return ""
    if any(distinct(case.expected, case.tolerance) < ENOUGH for case in cases):
        return ""
    what = subject(cases)
    for name, excess in SUMS:
        if not all(_holds(excess, case.expected, -1, case) for case in cases):
            continue
        if any(_holds(excess, case.got, -1, case) for case in cases):
            continue
        if all(_holds(excess, case.got, -2, case) for case in cases):
            return f"The columns of {what} {name}; the rows should."
        return f"The rows of the right values {name}, yours do not{of_what(cases)}."
    return ""


def _holds(
    excess: Callable[[torch.Tensor, int], torch.Tensor],
    x: torch.Tensor,
    axis: int,
    case: Case,
) -> bool:
    return bool((excess(x, axis).abs() < 20 * case.tolerance).all())


RELATIONS: tuple[Relation, ...] = (
    nothing_but,
    turned_round,
    an_argument_itself,
    constant_factor,
    constant_difference,
    a_term,
    a_bias_and_a_matrix,
    a_product,
    other_order,
    rounded,
    a_function,
    one_for_another,
    the_rest,
    rearranged_argument,
    shifted,
    before_softmax,
    any_order,
    nearly_a_factor,
    apart_from_a_bias,
)


LATE: tuple[Relation, ...] = (clipped, row_by_row, sums)
