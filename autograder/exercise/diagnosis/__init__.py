"""What can be said of a wrong answer that no known mistake explains.

From the data alone: what relates the answers to the right values, where they differ,
and which inputs are answered rightly. A sentence is told only if it holds for every
wrong value that it speaks of, and could hardly hold by chance.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from autograder.exercise.comparison import Comparison
from autograder.exercise.diagnosis import places, relations, sequences
from autograder.exercise.diagnosis.evidence import (
    ENOUGH,
    LARGEST,
    NUMBERS,
    Case,
    axis_name,
    case_of,
    distinct,
    is_right,
    real,
    same,
)
from autograder.exercise.showing import shortened
from autograder.interface import Data

MANY = 60  # comparisons that are looked at
TENSORS = (  # relations of answers of the right shape, the most specific first
    *relations.RELATIONS,
    *places.RELATIONS,
)
AXES = " has more than "
EDGES = ("−∞", "above 80", "without True", "is empty", "repetitions")


def diagnose(comparisons: Sequence[Comparison]) -> str:
    """Say what relates the wrong answers to the right ones; "" if nothing does.

    Args:
        comparisons: all that a check made of this answer, right and wrong, in order.

    Returns:
        One or two sentences for a student.
    """
    whole = _looked_at(comparisons)
    if all(map(is_right, whole)):
        return ""
    parts = _divided(whole)[: 4 * MANY]
    for said in (
        _random(whole),
        _exchanged_results(whole),
        _without_effect(parts),
        _of_groups(whole),
        _of_groups(parts),
        _only_gradients(parts),
        _same_answer(whole),
        _contrast_of_groups(parts),
        _late(parts),
        _other_results_right(parts),
    ):
        if said:
            return said
    return ""


def _looked_at(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Take the first comparisons, not more than can be searched in a moment."""
    taken: list[Comparison] = []
    entries = 0
    for each in comparisons[:MANY]:
        size = _entries(each.expected)
        entries += size if size <= LARGEST else 0
        if taken and entries > LARGEST:
            break
        taken.append(each)
    return taken


def _entries(value: Data) -> int:
    """Count the entries of all tensors in a value."""
    if isinstance(value, torch.Tensor):
        return value.numel()
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return 0
    return sum(map(_entries, value))


# --- groups ---------------------------------------------------------------------------


def _keys(comparison: Comparison) -> tuple:
    """Return what the parts of an answer are found by, if it has the right ones."""
    got, expected = comparison.got, comparison.expected
    if isinstance(got, dict) and isinstance(expected, dict):
        return tuple(expected) if got.keys() == expected.keys() else ()
    if isinstance(expected, (list, tuple)) and isinstance(got, (list, tuple)):
        tensors = any(isinstance(each, torch.Tensor) for each in expected)
        fits = len(got) == len(expected) and tensors
        return tuple(range(len(expected))) if fits else ()
    return ()


def _divided(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Compare the items of tuples and dicts one by one, where all have the same."""
    found: dict[tuple[str, str], list[Comparison]] = {}
    for each in comparisons:
        found.setdefault((each.call, each.what), []).append(each)
    parts = []
    for group in found.values():
        keys = set(map(_keys, group))
        shared = keys.pop()
        if keys or not 0 < len(shared) <= 40:
            parts += group
            continue
        for key in shared:
            parts += _divided(
                [
                    replace(
                        each,
                        got=each.got[key],
                        expected=each.expected[key],
                        what=f"{each.what}[{key!r}]",
                    )
                    for each in group
                ]
            )
    return parts


def _groups(comparisons: Sequence[Comparison]) -> list[list[Comparison]]:
    """Put together what was asked of one function; those with a wrong answer."""
    found: dict[tuple[str, str], list[Comparison]] = {}
    for each in comparisons:
        found.setdefault((each.call, each.what), []).append(each)
    return [group for group in found.values() if not all(map(is_right, group))]


def _wrong(group: Sequence[Comparison]) -> list[Comparison]:
    return [each for each in group if not is_right(each)]


def _cases(wrong: Sequence[Comparison]) -> list[Case] | None:
    """Prepare answers of the right shape; None if one has no or another shape."""
    cases = [case for each in wrong if (case := case_of(each)) is not None]
    return cases if len(cases) == len(wrong) else None


def _of_groups(comparisons: Sequence[Comparison]) -> str:
    return next(filter(None, map(_of_group, _groups(comparisons))), "")


def _of_group(group: list[Comparison]) -> str:
    """Relate the wrong answers to one question."""
    wrong = _wrong(group)
    if all(each.got is None and "gradient" in each.what for each in wrong):
        return (
            f"There is no {wrong[0].what.removeprefix('the ')}: nothing leads back to "
            "it. Was it detached, or turned into a number?"
        )
    said = _dtype(wrong)
    if said:
        return said
    cases = _cases(wrong)
    if cases:
        return next(filter(None, (relation(cases) for relation in TENSORS)), "")
    if all(isinstance(each.expected, torch.Tensor) for each in wrong):
        return places.shape(wrong) if any(map(_other_shape, wrong)) else ""
    return sequences.sequences(wrong)


def _other_shape(comparison: Comparison) -> bool:
    got, expected = comparison.got, comparison.expected
    return not isinstance(got, torch.Tensor) or got.shape != expected.shape


def _only_gradients(parts: Sequence[Comparison]) -> str:
    """Finite gradients that are wrong where every value is right."""
    wrong = _wrong(parts)
    values = [each for each in parts if "gradient" not in each.what]
    known = [each.got for each in wrong if isinstance(each.got, torch.Tensor)]
    if len(known) < len(wrong) or not any(_telling(v.expected) for v in values):
        return ""
    finite = all(bool(each.isfinite().all()) for each in known)
    if not finite or any("gradient" not in each.what for each in wrong):
        return ""
    return (
        f"All values are right and {wrong[0].what} is not: is a part of the way to "
        "them cut off, by .detach(), .data, .item() or no_grad?"
    )


def _dtype(wrong: Sequence[Comparison]) -> str:
    """Right values of another type of number."""
    kinds = set()
    for each in wrong:
        both = (
            isinstance(each.got, torch.Tensor),
            isinstance(each.expected, torch.Tensor),
        )
        if not all(both) or each.got.dtype == each.expected.dtype:
            return ""
        if not same(each.got, each.expected, each.tolerance):
            return ""
        kinds.add((str(each.got.dtype), str(each.expected.dtype)))
    if len(kinds) != 1:
        return ""
    got, expected = (kind.removeprefix("torch.") for kind in kinds.pop())
    what = wrong[0].what
    return (
        f"The values of {what} are right, but they are {got} and should be {expected}."
    )


def _late(parts: Sequence[Comparison]) -> str:
    """What is true of rows and columns, told if nothing else relates the values."""
    for group in _groups(parts):
        cases = _cases(_wrong(group))
        for relation in relations.LATE:
            if cases and (said := relation(cases)):
                return said
    return ""


# --- several calls --------------------------------------------------------------------


def _pairs(
    comparisons: Sequence[Comparison],
) -> Iterator[tuple[Comparison, Comparison]]:
    """Pair the comparisons of one call whose arguments are known."""
    for first, second in itertools.combinations(comparisons, 2):
        asked = (first.call, first.what, first.training)
        known = first.arguments is not None and second.arguments is not None
        if known and asked == (second.call, second.what, second.training):
            yield first, second


def _differing(first: Comparison, second: Comparison) -> list[str]:
    """Name the arguments, and "" for the parameters, that differ."""
    a, b = first.arguments or {}, second.arguments or {}
    names = [n for n in {**a, **b} if not same(a.get(n), b.get(n), 0.0)]
    others = first.parameters or {}, second.parameters or {}
    return names if same(*others, 0.0) else [*names, ""]


def _random(comparisons: Sequence[Comparison]) -> str:
    """Two calls with the same arguments that gave different answers."""
    for first, second in _pairs(comparisons):
        if first.training or _differing(first, second):
            continue
        alike = same(first.expected, second.expected, first.tolerance)
        if alike and not same(first.got, second.got, first.tolerance):
            return (
                f"Two calls with the same arguments gave different answers "
                f"({first.what}): is something random, or kept from call to call?"
            )
    return ""


def _telling(value: Data) -> bool:
    """Say whether a value is no accident: a tensor with different numbers, a list."""
    numbers = real(value)
    if numbers is not None:
        return distinct(numbers, 1e-6) >= ENOUGH
    return isinstance(value, (list, tuple, dict)) and len(value) >= ENOUGH


def _without_effect(comparisons: Sequence[Comparison]) -> str:
    """An argument that changes the right answer, and never this one."""
    idle: dict[str, bool] = {}
    works = set()
    for first, second in _pairs(comparisons):
        names = _differing(first, second)
        if len(names) != 1:
            continue
        if not same(first.got, second.got, first.tolerance):
            works.add(names[0])
        elif not same(first.expected, second.expected, first.tolerance):
            idle[names[0]] = idle.get(names[0], False) or _telling(first.got)
    for name, telling in idle.items():
        if telling and name and name not in works:
            return (
                f"Another {name} gives the same answer, although it should not: is "
                f"{name} used?"
            )
    return ""


def _exchanged_results(comparisons: Sequence[Comparison]) -> str:
    """Two entries of a tuple or dict in each other's place, on every input."""
    found = []
    for each in _wrong(comparisons):
        got, right = each.got, each.expected
        if (
            isinstance(right, dict)
            and isinstance(got, dict)
            and got.keys() == right.keys()
        ):
            keys = list(right)
        elif isinstance(right, tuple) and type(got) is tuple and len(got) == len(right):
            keys = list(range(len(right)))
        else:
            return ""
        pairs = set()
        for a, b in itertools.combinations(keys[:10], 2):
            crossed = same(got[a], right[b], each.tolerance)
            crossed = crossed and same(got[b], right[a], each.tolerance)
            both = _telling(right[a]) or _telling(right[b])
            if crossed and both and not same(right[a], right[b], each.tolerance):
                pairs.add((a, b))
        found.append(pairs)
        what = each.what
    shared = sorted(set.intersection(*found), key=repr) if found else []
    if not shared:
        return ""
    a, b = shared[0]
    return f"{what[:1].upper()}{what[1:]}[{a!r}] and {what}[{b!r}] are exchanged."


def _same_answer(comparisons: Sequence[Comparison]) -> str:
    """One answer for all inputs, or an answer that belongs to another input."""
    for group in _groups(comparisons):
        if len(group) < 3:
            continue
        first, *others = group
        constant = all(same(first.got, each.got, first.tolerance) for each in others)
        kinds = {repr(each.expected) for each in group}
        if constant and len(kinds) > 1:
            return (
                f"You give the same answer for all {len(group)} inputs ({first.what})."
            )
    for group in _groups(comparisons):
        if _from_the_first(group):
            return (
                f"From the second call on, {group[0].what} is the one of the first "
                "call: is something kept?"
            )
    return ""


def _from_the_first(group: Sequence[Comparison]) -> bool:
    first, *others = group
    if not others or not is_right(first) or not _telling(first.expected):
        return False
    return all(
        not is_right(each) and same(each.got, first.expected, each.tolerance)
        for each in others
    )


def _other_results_right(parts: Sequence[Comparison]) -> str:
    """Which of several results are right on every input."""
    verdicts: dict[str, list[bool]] = {}
    for each in parts:
        verdicts.setdefault(each.what, []).append(is_right(each))
    right = [what for what, each in verdicts.items() if all(each)]
    wrong = [what for what, each in verdicts.items() if not any(each)]
    calls = {each.call for each in parts}
    if len(calls) > 1 or len(wrong) != 1 or not 0 < len(right) <= 3:
        return ""
    verb = "are" if len(right) > 1 else "is"
    return f"{' and '.join(right).capitalize()} {verb} right; only {wrong[0]} is wrong."


# --- what separates right from wrong answers ------------------------------------------


def _of_value(name: str, value: Data) -> Iterator[tuple[str, bool]]:
    """List what may be true of an argument, the most telling first."""
    yield f"{name} is None", value is None
    if isinstance(value, bool):
        yield f"{name} is True", value
    elif type(value) in NUMBERS:
        yield f"{name} is 0", value == 0
        yield f"{name} is 1", value == 1
        yield f"{name} is negative", value < 0
        yield f"{name} is odd", value % 2 == 1
    elif isinstance(value, str):
        yield f"{name} is {shortened(repr(value), 30)}", True
        yield f"{name} is empty", not value
    elif isinstance(value, (list, tuple, dict)):
        yield f"{name} is empty", not value
        words = [repr(each) for each in value][:1000]
        yield f"{name} has repetitions", len(set(words)) < len(words)
    elif isinstance(value, torch.Tensor):
        yield from _of_tensor(name, value)


def _of_tensor(name: str, value: torch.Tensor) -> Iterator[tuple[str, bool]]:
    numbers = real(value)
    if numbers is None:
        return
    yield f"{name} is empty", not value.numel()
    yield f"{name} is of type {str(value.dtype).removeprefix('torch.')}", True
    for axes in (1, 2, 3):
        word = "axis" if axes == 1 else "axes"
        yield f"{name} has more than {axes} {word}", value.ndim > axes
    if value.dtype == torch.bool:
        rows = value.any(-1) if value.ndim else value
        yield f"{name} has a row without True", not rows.all()
        yield f"{name} is True throughout", bool(value.all())
        return
    yield f"{name} has −∞", bool((numbers == -math.inf).any())
    yield f"{name} has negative numbers", bool((numbers < 0).any())
    yield f"{name} has zeros", bool((numbers == 0).any())
    yield f"{name} has numbers above 80", bool((numbers > 80).any())
    if value.ndim > 2:
        yield f"the first size of {name} is 1", value.shape[0] == 1
    for axis in range(-1, -value.ndim - 1, -1):
        size = axis_name(axis).replace("axis", "size")
        yield f"{size} of {name} is 1", value.shape[axis] == 1
        yield f"{size} of {name} is odd", value.shape[axis] % 2 == 1
    if value.ndim > 1:
        square = value.shape[-1] == value.shape[-2]
        yield f"the last two sizes of {name} are equal", square


def _properties(comparison: Comparison, names: list[str]) -> dict[str, bool]:
    """List what may be true of a call."""
    found = {"the module is in training mode": comparison.training}
    arguments = comparison.arguments or {}
    for name in names:
        found |= dict(_of_value(name, arguments.get(name)))
    tensors = [n for n in names if isinstance(arguments.get(n), torch.Tensor)]
    for first, second in itertools.combinations(tensors, 2):
        a, b = arguments[first], arguments[second]
        if a.ndim > 1 and b.ndim > 1:
            equal = a.shape[-2] == b.shape[-2]
            found[f"{first} and {second} have as many rows"] = equal
        found[f"{first} and {second} have as many axes"] = a.ndim == b.ndim
    return found


def _contrast_of_groups(parts: Sequence[Comparison]) -> str:
    return next(filter(None, map(_contrast, _groups(parts))), "")


def _contrast(group: list[Comparison]) -> str:
    """Find what is true of all wrong calls and of no right one, or the reverse.

    With few calls something always is, so it is told of the mode; of an option or the
    number of axes if five divisions into right and wrong are possible; and otherwise
    of many calls if it is the one such property.
    """
    right = [each for each in group if is_right(each)]
    wrong = _wrong(group)
    if not right or any(each.arguments is None for each in group):
        return ""
    names = list({name: 0 for each in group for name in each.arguments or {}})
    truths = [[_properties(each, names) for each in part] for part in (right, wrong)]
    found = []
    for key in dict.fromkeys(key for part in truths for each in part for key in each):
        good, bad = ({each.get(key, False) for each in part} for part in truths)
        if len(good) == len(bad) == 1 and good != bad:
            found.append((key, good.pop()))
    if found and found[0][0].endswith("training mode"):
        return _told(group, *found[0])
    options = [each for each in found if _is_option(*each)]
    axes = all(AXES in key for key, _ in options)
    one = axes or len({key.split()[0] for key, _ in options}) == 1
    if options and one and math.comb(len(group), len(right)) > 4:
        return _told(group, *options[0])
    if len(found) != 1:
        return ""
    key, right_if = found[0]
    extreme = not right_if and key.endswith(EDGES) and len(right) > 2
    often = min(len(right), len(wrong)) > 2
    return _told(group, key, right_if) if extreme or often else ""


def _is_option(key: str, right_if: bool) -> bool:
    """Say whether it is an option, or more axes, that make the answer wrong."""
    if key.endswith(" is None"):
        return right_if
    return key.endswith(" is True") or (AXES in key and not right_if)


def _told(group: list[Comparison], key: str, right_if: bool) -> str:
    what = group[0].what
    if key.endswith(" is None"):
        name = key.removesuffix(" is None")
        good, bad = f"without {name}", f"with {name}"
        good, bad = (good, bad) if right_if else (bad, good)
        return f"{what[:1].upper()}{what[1:]} is right {good} and wrong {bad}."
    if right_if:
        return (
            f"{what[:1].upper()}{what[1:]} is right where {key}, and wrong elsewhere."
        )
    return f"{what[:1].upper()}{what[1:]} is wrong where {key}, and right elsewhere."
