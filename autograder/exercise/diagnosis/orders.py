"""Right numbers in a wrong order: exchanged axes, reshapes, flips and moves.

Each relation takes wrong answers of the right shape, all to one question, and returns a
sentence that holds for every one of them, or "".
"""

import itertools
from collections.abc import Iterator

import torch

from autograder.exercise.diagnosis.evidence import (
    ENOUGH,
    Case,
    axis_name,
    common,
    distinct,
    number,
    of_what,
    ordinal,
    same_tensors,
    speaks,
    telling_arguments,
)

SEARCHED = 20_000  # entries of a tensor whose other orders are tried one by one


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
        ways: dict[str, str] = {}
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
    return f"Your answer is the right one {next(iter(ways))}{of_what(cases)}."


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
    first, second = got.sort(axis).values, right.sort(axis).values
    return got.shape[axis] > 1 and same_tensors(first, second, case.tolerance)


def shifted(cases: list[Case]) -> str:
    """Everything one place too early or too late along an axis."""
    if not speaks(cases) or any(case.boolean for case in cases):
        return ""
    for axis in range(-1, -min(case.got.ndim for case in cases) - 1, -1):
        for late, word in ((0, "early"), (1, "late")):
            if all(_is_shifted(case, axis, late) for case in cases):
                name = axis_name(axis)
                said = f"Along {name}, every value stands one place too {word}"
                return f"{said}{of_what(cases)}."
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
        ways: dict[str, str] = {}
        for name, value in telling_arguments(case).items():
            if value.numel() != case.got.numel() or value.numel() > SEARCHED:
                continue
            for key, how, made in _arrangements(value, case.got.shape):
                if same_tensors(made, case.got, case.tolerance):
                    ways.setdefault(f"{name} {key}", f"{name} {how}")
        found.append(ways)
    ways = common(found)
    if not ways:
        return ""
    return f"Your answer is {next(iter(ways.values()))}{of_what(cases)}."


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
