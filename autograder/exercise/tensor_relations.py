"""What relates all entries of a wrong tensor to the right ones.

Each function takes wrong answers of the right shape, all to one question, and returns a
sentence that holds for every one of them, or "".
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from autograder.exercise.evidence import (
    ENOUGH,
    Case,
    Relation,
    axis_name,
    common,
    distinct,
    entries_close,
    number,
    ordinal,
    same_tensors,
    sizes,
    speaks,
    tensors_given,
)

SEARCHED = 20_000  # entries of a tensor whose other orders are tried one by one
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
    (value,) = values
    if value == "0" and "gradient" in what:
        return f"All of {what} is 0: is it cut off by detach, .data or no_grad?"
    return f"Every value of {what} is {value}, and the right ones differ."


def turned_round(cases: list[Case]) -> str:
    """True where False is expected, and the other way round."""
    if not all(case.boolean and case.wrong.all() for case in cases):
        return ""
    if sum(case.wrong.numel() for case in cases) < 2 * ENOUGH:
        return ""
    return f"True and False are exchanged everywhere in {cases[0].comparison.what}."


# --- factors and differences ----------------------------------------------------------


def _fitted(case: Case, difference: bool) -> float | None:
    """Return the one factor, or the one difference, between all values, or None."""
    finite = case.got.isfinite() & case.expected.isfinite()
    if case.boolean or (case.wrong & ~finite).any() or not finite.any():
        return None
    got, right = case.got[finite], case.expected[finite]
    if difference:
        value = float((got - right).mean())
        fits = abs(value) > 10 * case.tolerance
        fits = fits and entries_close(got, right + value, case.tolerance).all()
    else:
        square = float(right @ right)
        value = float(got @ right) / square if square else 0.0
        fits = abs(value) > 1e-3
        fits = fits and entries_close(got, right * value, case.tolerance).all()
    return value if fits else None


def _precise(case: Case) -> float:
    """Say how exactly a factor follows from the values."""
    finite = case.expected[case.expected.isfinite()]
    return max(2e-5, 3 * case.tolerance / float(finite.abs().max().clamp(min=1e-12)))


def _names(cases: list[Case], values: list[float], forms: tuple) -> list[tuple]:
    """Find forms of one size that give every value: (form, sizes, whose size)."""
    found = {}
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
    owners = {}
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
    factors = [_fitted(case, difference=False) for case in cases]
    if None in factors:
        return ""
    what = _subject(cases)
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
    factors = [_fitted(case, difference=False) for case in loose]
    if None in factors or not _solid(cases) or not all(map(_far, factors)):
        return ""
    names = _names(loose, factors, FORMS)
    if len(names) != 1 or _guessed(loose, factors, names):
        return ""
    form, _, name = names[0]
    what = _subject(cases)
    return f"Every value of {what} is nearly {form} times the right, where n is {name}."


def _far(factor: float) -> bool:
    return abs(factor - 1) > 0.01


def before_softmax(cases: list[Case]) -> str:
    """Weights of scores that are a factor too large or too small."""
    factors = []
    for case in cases:
        if case.got.ndim < 1 or not _are_weights(case.got, case.expected):
            return ""
        factors.append(_temperature(case))
    if None in factors or not _solid(cases):
        return ""
    start = f"What the softmax gets for {_subject(cases)} is"
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


def constant_difference(cases: list[Case]) -> str:
    """One difference between all values, or one for each input."""
    differences = [_fitted(case, difference=True) for case in cases]
    if None in differences:
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


# --- the same numbers in another order ------------------------------------------------


def _orders(x: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """Put a tensor into other orders: exchanged axes, flipped, rolled, cut and joined.

    Yields how it was done and the result, which may have another shape.
    """
    axes = range(-1, -x.ndim - 1, -1)
    for first, second in itertools.combinations(axes, 2):
        names = f"{ordinal(second)} and {ordinal(first)}"
        yield f"with the {names} axes exchanged", x.transpose(first, second)
    for axis in axes:
        yield f"backwards along {axis_name(axis)}", x.flip(axis)
        for shift, word in ((1, "forwards"), (-1, "back")):
            name = axis_name(axis)
            yield (
                f"moved {word} by one along {name}, round the end",
                x.roll(shift, axis),
            )
    if 2 < x.ndim < 5:
        for order in itertools.permutations(range(x.ndim)):
            if sum(place != axis for place, axis in enumerate(order)) > 2:
                written = ", ".join(map(str, order))
                yield f"with its axes permuted to ({written})", x.permute(order)
    if x.numel() <= SEARCHED and x.ndim < 5:
        yield from _cut_and_joined(x)


def _cut_and_joined(x: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """Cut one axis in two, exchange two axes and join again, in the shape of x."""
    for first, second in itertools.combinations(range(x.ndim), 2):
        name = f"{ordinal(first - x.ndim)} and {ordinal(second - x.ndim)}"
        yield (
            f"after exchanging the {name} axes and a reshape back",
            x.transpose(first, second).reshape(x.shape),
        )
    for axis in range(x.ndim - 1, -1, -1):
        size = x.shape[axis]
        for pieces in range(2, size // 2 + 1):
            if size % pieces:
                continue
            cut = x.unflatten(axis, (pieces, size // pieces))
            if size // pieces == 2:
                name = axis_name(axis - x.ndim)
                yield f"with neighbours exchanged along {name}", _turned(cut, axis, x)
            name = axis_name(axis - x.ndim)
            for first, second in itertools.combinations(range(cut.ndim), 2):
                if axis not in (first, second) and axis + 1 not in (first, second):
                    continue
                moved = cut.transpose(first, second).reshape(x.shape)
                pair = [_piece_name(each, axis, x.ndim) for each in (first, second)]
                shapes = [f"({pieces}, {size // pieces})"]
                if (first, second) == (axis, axis + 1) and 2 * pieces == size:
                    yield f"with the even indices of {name} before the odd ones", moved
                if (first, second) == (axis, axis + 1) and pieces == 2:
                    yield f"with the two halves of {name} interleaved", moved
                for shape in shapes:
                    how = f"with {name} cut into {shape}, {pair[0]} and {pair[1]}"
                    yield f"{how} exchanged", moved


def _turned(cut: torch.Tensor, axis: int, x: torch.Tensor) -> torch.Tensor:
    return cut.flip(axis + 1).reshape(x.shape)


def _piece_name(place: int, axis: int, ndim: int) -> str:
    """Name an axis after another was cut: the place in what has one axis more."""
    if place in (axis, axis + 1):
        return "the pieces" if place == axis else "their entries"
    return axis_name((place if place < axis else place - 1) - ndim)


def other_order(cases: list[Case]) -> str:
    """The right numbers in an order that can be described."""
    found = []
    for case in cases:
        ways = {}
        for how, moved in _orders(case.expected):
            if moved.shape == case.got.shape and same_tensors(
                case.got, moved.reshape(case.got.shape), case.tolerance
            ):
                ways.setdefault(how, how)
        found.append(ways)
        if not ways:
            return ""
    ways = common(found)
    if not ways or not speaks(cases):
        return ""
    return f"Your answer is the right one {next(iter(ways))}{_of(cases)}."


def any_order(cases: list[Case]) -> str:
    """The right numbers, or the right rows, in some other order."""
    if not speaks(cases) or any(case.boolean for case in cases):
        return ""
    if any(distinct(case.expected, case.tolerance) < ENOUGH for case in cases):
        return ""
    what = cases[0].comparison.what
    if all(case.expected.ndim > 1 for case in cases):
        if all(_same_sorted(case.got, case.expected, case, -1) for case in cases):
            return f"Each row of {what} has the right numbers in another order."
        if all(_same_sorted(case.got, case.expected, case, -2) for case in cases):
            return f"Each column of {what} has the right numbers in another order."
    flat = ((case.got.flatten(), case.expected.flatten(), case) for case in cases)
    if all(_same_sorted(got, right, case, -1) for got, right, case in flat):
        return f"The values of {what} are right, but in another order."
    return ""


def _same_sorted(got: torch.Tensor, right: torch.Tensor, case: Case, axis: int) -> bool:
    pair = [each.sort(axis).values for each in (got, right)]
    return got.shape[axis] > 1 and same_tensors(*pair, case.tolerance)


def _subject(cases: list[Case]) -> str:
    return cases[0].comparison.what


def _of(cases: list[Case]) -> str:
    """Say which value is meant, where a sentence does not."""
    what = _subject(cases)
    return "" if what == "the result" else f" ({what})"


# --- arguments, parameters and other functions ----------------------------------------


def _given(case: Case) -> dict[str, torch.Tensor]:
    return {
        name: value
        for name, value in tensors_given(case.comparison).items()
        if distinct(value, case.tolerance) >= ENOUGH
    }


def an_argument_itself(cases: list[Case]) -> str:
    """The answer is an argument or a parameter, as it is or in another shape."""
    found = []
    for case in cases:
        ways = {}
        for name, value in _given(case).items():
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
    return f"{_subject(cases).capitalize()} {next(iter(ways.values()))}."


def a_term(cases: list[Case]) -> str:
    """The difference is an argument or a parameter, or a multiple of one."""
    found = []
    for case in cases:
        difference, ways = case.got - case.expected, {}
        if not difference.isfinite().all():
            return ""
        for name, value in _given(case).items():
            times = _multiple(difference, value, case)
            if times:
                ways[f"{name} {times}"] = (name, times)
        found.append(ways)
    ways = common(found)
    if not ways:
        return ""
    name, times = next(iter(ways.values()))
    what = _subject(cases)
    if times == "−1":
        return f"The right values are yours plus {name}: {name} is not added to {what}."
    if times == "1":
        return f"Your values are the right ones plus {name}: {what} has it too often."
    return f"Your values are the right ones plus {times} times {name}{_of(cases)}."


def the_rest(cases: list[Case]) -> str:
    """Both make up an argument, or an argument is unchanged where it is wrong."""
    found = []
    for case in cases:
        ways = {}
        for name, value in _given(case).items():
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
    return f"{next(iter(ways.values()))}{_of(cases)}." if ways else ""


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
    return f"Wherever {other} is expected, you have {mine}{_of(cases)}."


def shifted(cases: list[Case]) -> str:
    """Everything one place too early or too late along an axis."""
    if not speaks(cases) or any(case.boolean for case in cases):
        return ""
    for axis in range(-1, -min(case.got.ndim for case in cases) - 1, -1):
        for late, word in ((0, "early"), (1, "late")):
            if all(_is_shifted(case, axis, late) for case in cases):
                name = axis_name(axis)
                said = f"Along {name}, every value stands one place too {word}"
                return f"{said}{_of(cases)}."
    return ""


def _is_shifted(case: Case, axis: int, late: int) -> bool:
    length = case.got.shape[axis] - 1
    if length < 2:
        return False
    got = case.got.narrow(axis, late, length)
    right = case.expected.narrow(axis, 1 - late, length)
    return distinct(right, case.tolerance) >= 2 and same_tensors(
        got, right, case.tolerance
    )


def rearranged_argument(cases: list[Case]) -> str:
    """An argument, cut and its axes put into another order than asked for."""
    found = []
    for case in cases:
        ways = {}
        for name, value in _given(case).items():
            if value.numel() != case.got.numel() or value.numel() > SEARCHED:
                continue
            for key, how, made in _arrangements(value, case.got.shape):
                if same_tensors(made, case.got, case.tolerance):
                    ways.setdefault(f"{name} {key}", f"{name} {how}")
        found.append(ways)
    ways = common(found)
    return f"Your answer is {next(iter(ways.values()))}{_of(cases)}." if ways else ""


def _arrangements(
    x: torch.Tensor, shape: torch.Size
) -> Iterator[tuple[str, str, torch.Tensor]]:
    """Reorder the last axes of an argument, some cut in two before, or joined after."""
    places = (-3, -2, -1)
    for order in itertools.permutations(places):
        written = f"({', '.join(number(axis) for axis in order)})"
        if x.ndim > 2:
            axes = [*range(x.ndim - 3), *(axis + x.ndim for axis in order)]
            how = f"with its last axes in the order {written}, then joined"
            yield f"joined {order}", how, x.permute(axes).reshape(shape)
        for axis in (-1, -2):
            if not -x.ndim <= axis or len(shape) != x.ndim + 1:
                continue
            for pieces in range(1, x.shape[axis] + 1):
                if x.shape[axis] % pieces:
                    continue
                entries = x.shape[axis] // pieces
                cut = x.unflatten(axis, (pieces, entries))
                axes = [*range(cut.ndim - 3), *(each + cut.ndim for each in order)]
                if cut.ndim < 3 or cut.permute(axes).shape != shape:
                    continue
                how = (
                    f"with {axis_name(axis)} cut into ({pieces}, {entries}), and then "
                )
                how += f"the last axes in the order {written}"
                yield f"cut {axis} {order}", how, cut.permute(axes)


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
        for name, value in _given(case).items():
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
    what = _subject(cases)
    if key.endswith("missing"):
        return f"The right values are yours times {name}: the factor is not in {what}."
    return f"Your values are the right ones times {name}{_of(cases)}."


def _is_product(a, value, product, tolerance: float) -> bool:
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
            return f"Your values are {name} the right ones{_of(cases)}."
        if all(_maps(function, case.got, case.expected, case) for case in cases):
            return f"The right values are {name} yours{_of(cases)}."
    return ""


def _maps(function, x: torch.Tensor, y: torch.Tensor, case: Case) -> bool:
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
    start = f"The values of {_subject(cases)} are the right ones, rounded"
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
        f"Every wrong value of {_subject(cases)} is {limits.pop()}, where the right "
        f"one is {sides.pop()} it."
    )


# --- rows and columns -----------------------------------------------------------------


def row_by_row(cases: list[Case]) -> str:
    """A factor or a difference that is one for each row, or for each column."""
    if any(case.boolean or case.got.ndim < 1 for case in cases):
        return ""
    if not all(map(_all_finite, cases)) or not any(case.got.ndim > 1 for case in cases):
        return ""
    what = _subject(cases)
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
            f"Each row of {what} is the right one, shifted and stretched: a "
            "normalisation is missing, or one too many."
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
    what = _subject(cases)
    for name, excess in SUMS:
        if not all(_holds(excess, case.expected, -1, case) for case in cases):
            continue
        if any(_holds(excess, case.got, -1, case) for case in cases):
            continue
        if all(_holds(excess, case.got, -2, case) for case in cases):
            return f"The columns of {what} {name}; the rows should."
        return f"The rows of the right values {name}, yours do not{_of(cases)}."
    return ""


def _holds(excess, x: torch.Tensor, axis: int, case: Case) -> bool:
    return bool((excess(x, axis).abs() < 20 * case.tolerance).all())


RELATIONS: tuple[Relation, ...] = (
    nothing_but,
    turned_round,
    an_argument_itself,
    constant_factor,
    constant_difference,
    a_term,
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
