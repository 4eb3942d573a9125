"""Where a wrong tensor is wrong, and how its shape differs from the right one.

A place is told only if wrong entries drawn at random would hardly ever all lie there.
"""

import math
from collections.abc import Iterator

import torch

from autograder.exercise.comparison import Comparison
from autograder.exercise.diagnosis.evidence import (
    ENOUGH,
    Case,
    Relation,
    axis_name,
    common,
    number,
    ordinal,
    real,
    same_tensors,
    sizes,
    tensors_given,
)

CHANCE = 1e-4  # that random entries all lie in the place that is told
OVERFLOW = 80.0  # exp of more leaves float32


def _lies_in(pairs: list[tuple[torch.Tensor, torch.Tensor]]) -> bool:
    """Say whether what is wrong fills a place, and no chance.

    ``pairs`` has for each input which entries are wrong, and which lie in the place.
    """
    logarithm, filled = 0.0, 0.0
    for wrong, place in pairs:
        share = float(place.double().mean())
        if not share or (wrong & ~place).any():
            return False
        if int(wrong.sum()) * 4 < int(place.sum()):
            return False
        count, size = int(wrong.sum()), wrong.numel()
        logarithm += count * math.log(share)
        exact = count == int(place.sum())
        filled -= math.log(math.comb(size, count)) if exact else -math.inf
    return logarithm < math.log(CHANCE) or filled < math.log(10 * CHANCE)


def _counted(cases: list[Case], places: list[torch.Tensor]) -> list[tuple]:
    """Pair wrong entries and places; what is 0 in both tensors says nothing."""
    pairs = []
    for case, place in zip(cases, places, strict=True):
        says = (case.got != 0) | (case.expected != 0)
        says = says | case.boolean
        pairs.append((case.wrong[says], place[says]))
    return pairs


# --- an index of one axis -------------------------------------------------------------


def _patterns(bad: torch.Tensor) -> dict[str, str]:
    """Name the indices of an axis that are marked: {python index: words}."""
    size = len(bad)
    if size < 2 or not 0 < int(bad.sum()) < size:
        return {}
    index = torch.arange(size)
    known = {
        "0": (index == 0, "index 0"),
        "-1": (index == size - 1, "the last index"),
        "1:": (index > 0, "all but index 0"),
        ":-1": (index < size - 1, "all but the last index"),
        "::2": (index % 2 == 0, "the even indices"),
        "1::2": (index % 2 == 1, "the odd indices"),
        f":{size // 2}": (index < size // 2, "the first half"),
        f"{size // 2}:": (index >= size // 2, "the second half"),
    }
    found = {
        key: words for key, (marked, words) in known.items() if (marked == bad).all()
    }
    for only, sort in ((bad, ""), (~bad, "all but ")):
        if int(only.sum()) == 1:
            place = int(only.nonzero()[0, 0])
            found.setdefault(f"{sort}{place}", f"{sort}index {place}")
    return found


def one_index(cases: list[Case]) -> str:
    """Wrong only at some indices of one axis."""
    least = min(case.got.ndim for case in cases)
    for axis in range(-1, -least - 1, -1):
        marks, pairs = [], []
        for case in cases:
            others = [
                each for each in range(case.got.ndim) if each != axis + case.got.ndim
            ]
            bad = case.wrong
            for each in reversed(others):
                bad = bad.any(each)
            marks.append(_patterns(bad))
            shape = [1] * case.got.ndim
            shape[axis] = len(bad)
            pairs.append((case.wrong, bad.reshape(shape).expand(case.got.shape)))
        found = common(marks)
        if found and _lies_in(pairs):
            return _at_index(cases[0], axis, *next(iter(found.items())))
    return ""


def _at_index(case: Case, axis: int, key: str, words: str) -> str:
    what = case.comparison.what
    name = axis_name(axis)
    if words.startswith("all but"):
        return f"Along {name} of {what} only {words[8:]} is right."
    verb = "are" if words.endswith("indices") else "is"
    return f"Along {name} of {what} only {words} {verb} wrong; the others are right."


def diagonal(cases: list[Case]) -> str:
    """Wrong only on, above or below the diagonal of square matrices."""
    if any(
        case.got.ndim < 2 or case.got.shape[-1] != case.got.shape[-2] for case in cases
    ):
        return ""
    names = {
        "on the diagonal": lambda x: x.tril().triu(),
        "off the diagonal": lambda x: ~x.tril().triu(),
        "just above the diagonal": lambda x: x.tril(1).triu(1),
        "just below the diagonal": lambda x: x.tril(-1).triu(-1),
        "above the diagonal": lambda x: x.triu(1),
        "below the diagonal": lambda x: x.tril(-1),
        "on and below the diagonal": lambda x: x.tril(),
        "on and above the diagonal": lambda x: x.triu(),
    }
    for name, keep in names.items():
        pairs = [(c.wrong, keep(torch.ones_like(c.wrong))) for c in cases]
        if _lies_in(pairs):
            return f"{_start(cases)} wrong only {name}."
    return ""


def _start(cases: list[Case]) -> str:
    what = cases[0].comparison.what
    return f"{what[:1].upper()}{what[1:]} is"


# --- where an argument is this or that ------------------------------------------------


def _entries(name: str, value: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    if value.dtype == torch.bool:
        yield f"where {name} is False", ~value
        yield f"where {name} is True", value
        return
    yield f"where {name} is −∞", value == -math.inf
    yield f"where {name} is 0", value == 0
    yield f"where {name} is negative", value < 0
    yield f"where {name} is positive", value > 0


def _rows(name: str, value: torch.Tensor) -> Iterator[tuple[str, torch.Tensor]]:
    """Mark rows of an argument, as a column."""
    if value.ndim == 0:
        return
    if value.dtype == torch.bool:
        yield f"in rows where {name} is False throughout", ~value.any(-1, keepdim=True)
        yield f"in rows where {name} has a False", ~value.all(-1, keepdim=True)
        return
    low = value == -math.inf
    yield f"in rows where {name} is −∞ throughout", low.all(-1, keepdim=True)
    yield f"in rows where {name} has −∞", low.any(-1, keepdim=True)
    large = value > OVERFLOW
    yield f"in rows where {name} has numbers above 80", large.any(-1, keepdim=True)
    zeros = value == 0
    yield f"in rows where {name} is 0 throughout", zeros.all(-1, keepdim=True)


def _beyond(
    name: str, value: torch.Tensor, shape: torch.Size
) -> Iterator[tuple[str, torch.Tensor]]:
    """Mark the positions from a sentence's length on; sentences are the first axis."""
    if value.ndim != 1 or len(shape) < 2 or len(value) != shape[0]:
        return
    if value.is_floating_point() or value.dtype == torch.bool:
        return
    for axis in {1, len(shape) - 1}:
        position = torch.arange(shape[axis]) - value.unsqueeze(1)
        form = [len(value)] + [1] * (len(shape) - 1)
        form[axis] = shape[axis]
        position = position.reshape(form)
        along = axis_name(axis - len(shape))
        yield f"at the index that {name} says, along {along}", position == 0
        yield f"in the padding, from the index {name} on, along {along}", position >= 0
        yield f"in front of the padding, within {name}, along {along}", position < 0


def _of_ids(arguments: dict) -> Iterator[tuple[str, torch.Tensor]]:
    """Mark where ids are one of a list of ids that was given, too."""
    for name, ids in arguments.items():
        if not isinstance(ids, torch.Tensor) or ids.dtype != torch.int64:
            continue
        if real(ids) is None:
            continue
        for other, known in arguments.items():
            known = [known] if type(known) is int else known
            if not isinstance(known, (list, tuple)) or not known:
                continue
            if all(type(each) is int for each in known):
                place = torch.isin(ids, torch.tensor(known))
                yield f"where {name} is one of {other}", place


def _predicates(case: Case) -> dict[str, torch.Tensor]:
    """List the places that arguments and right values mark, each (shape of result)."""
    shape, found = case.got.shape, {}
    arguments = case.comparison.arguments or {}
    for words, place in _of_ids(arguments):
        fitting = _spread(place, shape)
        if fitting is not None:
            found[words] = fitting
    for name, value in arguments.items():
        if not isinstance(value, torch.Tensor) or real(value) is None:
            continue
        for words, place in (
            *_entries(name, value),
            *_rows(name, value),
            *_beyond(name, value, shape),
        ):
            fitting = _spread(place, shape)
            if fitting is not None:
                found[words] = fitting
    return found


def _spread(place: torch.Tensor, shape: torch.Size) -> torch.Tensor | None:
    """Broadcast a mark to the result; None if it does not go, or says nothing."""
    if place.numel() < 2:
        return None
    try:
        return place.broadcast_to(shape)
    except RuntimeError:
        if place.ndim == len(shape) - 1 and place.ndim > 1:  # a mask without heads
            return _spread(place.unsqueeze(-3), shape)
        return None


def where_arguments(cases: list[Case]) -> str:
    """Wrong only where an argument is False, negative, −∞ or the like."""
    marks = [_predicates(case) for case in cases]
    fitting = {}
    for words in common({key: key for key in each} for each in marks):
        places = [mark[words] for mark in marks]
        if _lies_in(_counted(cases, places)):
            fitting[words] = sum(int(place.sum()) for place in places)
    if fitting:
        return f"{_start(cases)} wrong only {min(fitting, key=fitting.__getitem__)}."
    return _beyond_a_threshold(cases)


def _beyond_a_threshold(cases: list[Case]) -> str:
    """Wrong only where an argument is larger, or smaller, than some number."""
    found = []
    for case in cases:
        given = tensors_given(case.comparison)
        fits = {n: v for n, v in given.items() if v.shape == case.got.shape}
        found.append({n: v for n, v in fits.items() if v.isfinite().all()})
    for name in common({key: key for key in each} for each in found):
        values = [each[name] for each in found]
        inside = torch.cat([v[c.wrong] for c, v in zip(cases, values, strict=True)])
        low, high = inside.min(), inside.max()
        for words, places in (
            (f"{number(low.item())} or more", [value >= low for value in values]),
            (f"{number(high.item())} or less", [value <= high for value in values]),
            (
                f"between {number(low.item())} and {number(high.item())}",
                [(value >= low) & (value <= high) for value in values],
            ),
        ):
            share = torch.cat([p.flatten() for p in places]).double().mean()
            if share < 0.6 and _lies_in(_counted(cases, places)):
                return f"{_start(cases)} wrong only where {name} is {words}."
    return ""


def not_finite(cases: list[Case]) -> str:
    """NaN or infinity, and where it comes from."""
    bad = [~case.got.isfinite() & case.expected.isfinite() for case in cases]
    if not all(each.any() for each in bad):
        return ""
    nan = any(case.got.isnan().any() for case in cases)
    name = "NaN" if nan else "infinite"
    marks = [_predicates(case) for case in cases]
    for words in common({key: key for key in each} for each in marks):
        pairs = [(each, m[words]) for each, m in zip(bad, marks, strict=True)]
        total = sum(int(each.sum()) for each in bad)
        filled = all((wrong == place).all() for wrong, place in pairs)
        if _lies_in(pairs) or (filled and total >= ENOUGH):
            return f"{_start(cases)} {name} only {words}."
    return ""


def where_zero(cases: list[Case]) -> str:
    """Not zero where zero is expected, or the other way round."""
    if any(case.boolean for case in cases):
        return ""
    what = cases[0].comparison.what
    pairs = [(case.wrong, case.expected == 0) for case in cases]
    if _lies_in(pairs):
        return f"Only where {what} should be 0, it is something else."
    pairs = [(case.wrong, case.expected != 0) for case in cases]
    if all((case.got[case.wrong] == 0).all() for case in cases) and _lies_in(pairs):
        return f"Every wrong value of {what} is 0, where it should not be."
    return ""


def one_way(cases: list[Case]) -> str:
    """True where False is expected, and never the other way round."""
    if not all(case.boolean for case in cases):
        return ""
    if sum(int(case.wrong.sum()) for case in cases) < 2 * ENOUGH:
        return ""
    for value, other in ((True, False), (False, True)):
        if all((case.got[case.wrong] == value).all() for case in cases):
            return f"{_start(cases)} {value} too often, and never {other} too often."
    return ""


RELATIONS: tuple[Relation, ...] = (
    not_finite,
    where_arguments,
    diagonal,
    one_index,
    where_zero,
    one_way,
)


# --- shapes ---------------------------------------------------------------------------


REDUCTIONS = (
    ("summed over", lambda x, axis: x.sum(axis)),
    ("averaged over", lambda x, axis: x.mean(axis)),
    ("the largest along", lambda x, axis: x.amax(axis)),
    ("the first along", lambda x, axis: x.select(axis, 0)),
    ("the last along", lambda x, axis: x.select(axis, -1)),
)


def shape(comparisons: list[Comparison]) -> str:
    """Say how the shapes differ, the same way on every input."""
    found = []
    for comparison in comparisons:
        got, expected = real(comparison.got), real(comparison.expected)
        if got is None or expected is None:
            return ""
        found.append({text: text for text in _differences(got, expected, comparison)})
    return next(iter(common(found)), "")


def _differences(
    got: torch.Tensor, expected: torch.Tensor, comparison: Comparison
) -> Iterator[str]:
    yield from _one_axis_of_one(got, expected, comparison)
    yield from _reduced(got, expected, comparison)
    yield from _repeated(got, expected, comparison)
    if got.ndim == expected.ndim:
        yield from _exchanged(got, expected, comparison)
        yield from _other_length(got, expected, comparison)
    if got.numel() == expected.numel() and same_tensors(
        got.flatten(), expected.flatten(), comparison.tolerance
    ):
        yield f"The values of {comparison.what} are right; only the shape is not."


def _one_axis_of_one(
    got: torch.Tensor, expected: torch.Tensor, comparison: Comparison
) -> Iterator[str]:
    what, tolerance = comparison.what, comparison.tolerance
    start = f"{what[:1].upper()}{what[1:]}"
    for more, less, words in (
        (got, expected, "has one axis too many"),
        (expected, got, "lacks an axis"),
    ):
        for axis in range(-1, -more.ndim - 1, -1):
            if more.shape[axis] == 1 and more.squeeze(axis).shape == less.shape:
                right = same_tensors(more.squeeze(axis), less, tolerance)
                after = " The values are right." if right else ""
                yield f"{start} {words} of length 1, {axis_name(axis)}.{after}"


def _reduced(
    got: torch.Tensor, expected: torch.Tensor, comparison: Comparison
) -> Iterator[str]:
    what, tolerance = comparison.what, comparison.tolerance
    for more, less, order in ((expected, got, 0), (got, expected, 1)):
        for axis in range(-1, -more.ndim - 1, -1):
            if not more.shape[axis] > 1 or less.numel() < 2 or less.ndim >= more.ndim:
                continue
            for words, reduce in REDUCTIONS:
                if same_tensors(reduce(more, axis), less, tolerance):
                    name = axis_name(axis)
                    pair = ("Your answer", "the right one"), ("The right one", "yours")
                    first, second = pair[order]
                    after = "" if what == "the result" else f" ({what})"
                    yield f"{first} is {second} {words} {name}{after}."


def _repeated(
    got: torch.Tensor, expected: torch.Tensor, comparison: Comparison
) -> Iterator[str]:
    if got.ndim != expected.ndim or not expected.numel():
        return
    for axis in range(-1, -got.ndim - 1, -1):
        times, rest = divmod(got.shape[axis], expected.shape[axis])
        if rest or times < 2:
            continue
        for made, words in (
            (expected.repeat_interleave(times, axis), "one after the other"),
            (torch.cat([expected] * times, axis), "as a whole"),
        ):
            if same_tensors(made, got, comparison.tolerance):
                name = axis_name(axis)
                yield f"Every value is there {times} times along {name}, {words}."


def _exchanged(
    got: torch.Tensor, expected: torch.Tensor, comparison: Comparison
) -> Iterator[str]:
    for first in range(-1, -got.ndim - 1, -1):
        for second in range(first - 1, -got.ndim - 1, -1):
            moved = expected.transpose(first, second)
            if moved.shape != got.shape:
                continue
            names = f"the {ordinal(second)} and the {ordinal(first)} axis"
            start = f"In {comparison.what} {names} are exchanged"
            if same_tensors(moved, got, comparison.tolerance):
                yield f"{start}; the values are right."
            if got.shape != expected.shape:
                yield f"{start}."


def _other_length(
    got: torch.Tensor, expected: torch.Tensor, comparison: Comparison
) -> Iterator[str]:
    differing = [a for a in range(got.ndim) if got.shape[a] != expected.shape[a]]
    if len(differing) != 1:
        return
    axis = differing[0] - got.ndim
    name = axis_name(axis)
    is_, should = got.shape[axis], expected.shape[axis]
    least = min(is_, should)
    what = comparison.what
    for from_start, words in ((True, "end"), (False, "beginning")):
        first, second = (
            each.narrow(axis, 0 if from_start else each.shape[axis] - least, least)
            for each in (got, expected)
        )
        if same_tensors(first, second, comparison.tolerance) and (
            first.numel() >= ENOUGH
        ):
            count = abs(is_ - should)
            verb = "are" if count > 1 else "is"
            more = f"{verb} too many" if is_ > should else f"{verb} missing"
            along = f"Along {name} of {what}, {count} at the {words}"
            yield f"{along} {more}; the others are right."
            more = "has too much" if is_ > should else "lacks something"
            yield f"Along {name}, {what} {more} at the {words}; the rest is right."
    known = sizes(comparison)
    for own in (size for size, n in known.items() if n == is_ > 1):
        for right in (size for size, n in known.items() if n == should > 1):
            start = f"{name.capitalize()} of {what} is as long as"
            yield f"{start} {own}, and should be as long as {right}."
