"""What relates a wrong list, string or dict to the right one.

Each function takes an answer and the right value, of one type, and yields sentences
that hold, as (key, sentence): keys are equal where the same is said of two inputs.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import torch

from autograder.exercise.comparison import Comparison
from autograder.exercise.diagnosis.evidence import ENOUGH, NUMBERS, common, number, same
from autograder.exercise.showing import shortened
from autograder.interface import Data

LONGEST = 5_000  # items that are looked at
Said = Iterator[tuple[str, str]]


def _items(value: Data) -> list:
    return list(value)


def _equal(a: list, b: list) -> bool:
    return same(a, b, 1e-9)


def _show(item: Data) -> str:
    return shortened(repr(item), 30)


def _sorted(items: list) -> list | None:
    try:
        return sorted(items)
    except (TypeError, RuntimeError):
        return None


def in_another_order(got: list, right: list, what: str) -> Said:
    """Backwards, sorted, or moved round by one."""
    if len(got) != len(right) or len(right) < 3:
        return
    if got == right[::-1]:
        yield "reversed", f"{what} is the right one backwards."
    ordered = _sorted(right)
    if ordered is not None:
        if got == ordered:
            yield "sorted", f"{what} is sorted; the right one is not."
        if got == ordered[::-1]:
            yield "falling", f"{what} is sorted downwards; the right one is not."
        if right == ordered and _sorted(got) == right:
            yield "unsorted", f"{what} has the right items; only sort them."
    for moved, word in ((right[-1:] + right[:-1], "last"), (right[1:] + right[:1], "")):
        if got == moved:
            end = "The last item stands first" if word else "The first item stands last"
            yield f"rolled {word}", f"{end}: all others have moved by one."


def off_by_a_number(got: list, right: list, what: str) -> Said:
    """Every number too large or too small by one amount."""
    if len(got) != len(right) or not right:
        return
    if not all(type(each) in NUMBERS for each in (*got, *right)):
        return
    steps = {round(a - b, 9) for a, b in zip(got, right, strict=True)}
    if len(steps) == 1 and len(set(right)) > 1:
        (step,) = steps
        sign = "large" if step > 0 else "small"
        yield (
            f"step {step}",
            f"Every number of {what} is {number(abs(step))} too {sign}.",
        )


def each_item(got: list, right: list, what: str) -> Said:
    """Every item changed in one way: case, spaces, type, turned round."""
    ways: tuple[tuple[str, Callable], ...] = (
        ("in lower case", lambda x: x.lower() if isinstance(x, str) else x),
        ("in upper case", lambda x: x.upper() if isinstance(x, str) else x),
        (
            "without the spaces around it",
            lambda x: x.strip() if isinstance(x, str) else x,
        ),
        ("backwards", lambda x: x[::-1] if isinstance(x, (str, tuple, list)) else x),
        ("as a string", lambda x: x if isinstance(x, str) else str(x)),
        ("as a whole number", lambda x: int(x) if type(x) is float else x),
        ("without its first character", lambda x: x[1:] if isinstance(x, str) else x),
        ("as a list", lambda x: list(x) if isinstance(x, tuple) else x),
        ("joined into one string", _joined),
    )
    for name, change in ways:
        try:
            if _equal(got, [change(item) for item in right]):
                yield name, f"Every item of {what} is the right one {name}."
            elif _equal([change(item) for item in got], right):
                yield f"not {name}", f"Each item of {what} should be yours {name}."
        except (ValueError, OverflowError):
            continue


def _joined(item: Data) -> Data:
    strings = isinstance(item, tuple) and all(isinstance(x, str) for x in item)
    return "".join(item) if strings else item


def too_short_or_long(got: list, right: list, what: str) -> Said:
    """A part of the right list, or more than it."""
    if abs(len(got) - len(right)) == 0 or not got or not right:
        return
    less, more = sorted((got, right), key=len)
    missing = less is got
    count = len(more) - len(less)
    word = "missing" if missing else "too many"
    if more[: len(less)] == less:
        first = _show(more[len(less)])
        many = f"last {count} items" if count > 1 else "last item"
        verb = "are" if count > 1 else "is"
        yield f"end {count} {word}", f"The {many} of {what} {verb} {word}: {first}."
        yield f"end {word}", f"{what} agrees up to its end, where items are {word}."
    if more[-len(less) :] == less:
        many = f"first {count} items" if count > 1 else "first item"
        verb = "are" if count > 1 else "is"
        first = _show(more[0])
        yield f"start {count} {word}", f"The {many} of {what} {verb} {word}: {first}."
    if count == 1:
        place = next(
            (i for i, (a, b) in enumerate(zip(less, more, strict=False)) if a != b), -1
        )
        if place > 0 and more[:place] + more[place + 1 :] == less:
            item = _show(more[place])
            yield (
                f"one {word}",
                f"One item is {word} in {what}: {item} at index {place}.",
            )
    for item in _different(more):
        if [each for each in more if each != item] == less:
            said = (
                f"Every {_show(item)} is {word} in {what}; the other items are right."
            )
            yield f"without {item!r}", said
            yield f"one kind {word}", said
    if less == _different(more):
        words = "lacks the repetitions" if missing else "has items more than once"
        yield f"repetitions {word}", f"{what} {words}; else it is right."


def _different(items: list) -> list:
    """Keep the first of equal items, in order; items need no hash."""
    found = []
    for item in items[:LONGEST]:
        if item not in found:
            found.append(item)
        if len(found) > 200:
            return []
    return found


def one_replaced(got: list, right: list, what: str) -> Said:
    """One item stands wherever another one is expected."""
    if len(got) != len(right):
        return
    pairs = [(a, b) for a, b in zip(got, right, strict=True) if a != b]
    if pairs and all(pair == pairs[0] for pair in pairs):
        mine, other = pairs[0]
        everywhere = right.count(other) == len(pairs)
        if everywhere and len(right) > len(pairs):
            said = f"{what} has {_show(mine)} wherever {_show(other)} is expected."
            yield f"{mine!r} for {other!r}", said
            yield "one for one", said
    mine = {repr(item) for item, _ in pairs}
    others = {repr(item) for _, item in pairs}
    if len(mine) == 1 and len(others) > 1 and len(pairs) < len(right):
        yield f"wrong {mine}", f"Every wrong item of {what} is {_show(pairs[0][0])}."


def cut_elsewhere(got: list, right: list, what: str) -> Said:
    """Strings that, joined, are the same text."""
    if not all(isinstance(each, str) for each in (*got, *right)):
        return
    if "".join(got) == "".join(right) and got != right:
        first = next(b for a, b in zip(got, right, strict=False) if a != b)
        yield (
            "cut",
            f"Joined, {what} is the right text, but it is cut elsewhere, first at "
            f"{_show(first)}.",
        )


def same_items(got: list, right: list, what: str) -> Said:
    """The right items in another order."""
    mine, other = (Counter(map(repr, each)) for each in (got, right))
    if mine == other and len(right) > 2:
        first = next(
            i for i, (a, b) in enumerate(zip(got, right, strict=True)) if a != b
        )
        yield (
            "order",
            f"{what} has the right items, but in another order from index {first} on.",
        )


def nested(got: list, right: list, what: str) -> Said:
    """Lists within a list, where one flat list is asked for."""
    if not got or not all(isinstance(each, (list, tuple)) for each in got):
        return
    if _equal([item for each in got for item in each], right) and len(right) > 1:
        yield "nested", f"{what} is a list of lists; joined into one it is right."


LISTS = (
    nested,
    in_another_order,
    off_by_a_number,
    each_item,
    one_replaced,
    too_short_or_long,
    cut_elsewhere,
    same_items,
)


def of_lists(got: Sequence, right: Sequence, what: str) -> Said:
    """Relate two lists or tuples."""
    for relation in LISTS:
        yield from relation(_items(got), _items(right), what)


def of_strings(got: str, right: str, what: str) -> Said:
    """Relate two strings."""
    if got.lower() == right.lower():
        yield "case", f"{what} differs only in upper and lower case."
    elif got.strip() == right.strip():
        yield "spaces", f"{what} differs only in the spaces around it."
    elif got.split() == right.split() or "".join(got.split()) == "".join(right.split()):
        yield "inner spaces", f"{what} differs only in its spaces."
    elif len(right) >= ENOUGH and got == right[::-1]:
        yield "reversed", f"{what} is the right one backwards."
    elif len(right) > len(got) >= ENOUGH and right.startswith(got):
        rest = _show(right[len(got) :])
        yield "prefix", f"{what} stops too early: {rest} is missing."
    elif len(got) > len(right) >= ENOUGH and got.startswith(right):
        rest = _show(got[len(right) :])
        yield "longer", f"{what} goes on too long: {rest} is too much."


def of_dicts(got: dict, right: dict, what: str) -> Said:
    """Relate two dicts."""
    if got.keys() == right.keys():
        yield from _values(got, right, what)
        return
    try:
        turned = {value: key for key, value in right.items()}
    except TypeError:
        turned = {}
    if turned == got and len(turned) > 2:
        yield "turned", f"Keys and values of {what} are exchanged."
    if {str(key): value for key, value in right.items()} == got:
        yield "strings", f"The keys of {what} are strings; else it is right."
    if {str(key): value for key, value in got.items()} == right:
        yield "no strings", f"The keys of {what} should be strings; else it is right."
    pairs = all(isinstance(key, (tuple, str)) for key in right)
    if pairs and {key[::-1]: value for key, value in right.items()} == got:
        yield "pairs", f"In the keys of {what}, left and right are exchanged."
    if {_joined(key): value for key, value in right.items()} == got:
        yield "joined", f"The keys of {what} are joined strings; else it is right."
    yield from _keys(got, right, what)


def _keys(got: dict, right: dict, what: str) -> Said:
    shared = got.keys() & right.keys()
    missing = [key for key in right if key not in got]
    extra = [key for key in got if key not in right]
    if len(shared) < 2:
        return
    agree = all(same(got[key], right[key], 1e-9) for key in shared)
    after = "; the values of the others are right" if agree else ""
    if missing and extra:
        return
    keys, words = (missing, "lacks") if missing else (extra, "should not have")
    one = len(keys) == 1
    told = (
        f"the key {_show(keys[0])}"
        if one
        else f"{len(keys)} keys, first {_show(keys[0])}"
    )
    key = f"{words} {keys[0]!r}" if one else f"{words} keys"
    yield key, f"{what} {words} {told}{after}."


def _values(got: dict, right: dict, what: str) -> Said:
    mine, other = list(got.values()), [right[key] for key in got]
    if len(right) < 2:
        return
    yield from off_by_a_number(mine, other, f"the values of {what}")
    if len(other) > 2 and Counter(map(repr, mine)) == Counter(map(repr, other)):
        yield "values", f"{what} has the right values, but at other keys."
    if all(type(each) in NUMBERS for each in mine + other):
        differ = [a > b for a, b in zip(mine, other, strict=True) if a != b]
        if len(set(differ)) == 1 and len(differ) > 2:
            word = "large" if differ[0] else "small"
            said = f"Every wrong value of {what} is too {word}."
            yield f"too {word}", said
        if len(set(mine)) == 1 and len(set(other)) > 2:
            yield f"all {mine[0]}", f"Every value of {what} is {_show(mine[0])}."
        quotients = {a / b for a, b in zip(mine, other, strict=True) if b}
        if len(quotients) == 1 and len(set(other)) > 2 and all(other):
            factor = number(quotients.pop())
            yield (
                f"times {factor}",
                f"Every value of {what} is {factor} times the right.",
            )


def _said(comparison: Comparison) -> dict[str, str]:
    got, right, what = comparison.got, comparison.expected, comparison.what
    start = f"{what[:1].upper()}{what[1:]}"
    if isinstance(got, str) and isinstance(right, str):
        found = of_strings(got, right, start)
    elif isinstance(got, dict) and isinstance(right, dict):
        found = of_dicts(got, right, what)
    elif isinstance(got, (list, tuple)) and isinstance(right, (list, tuple)):
        found = of_lists(got, right, what)
    else:
        return {}
    said: dict[str, str] = {}
    for key, text in found:
        said.setdefault(key, f"{text[:1].upper()}{text[1:]}")
    return said


def _weight(comparison: Comparison) -> int:
    """Count how many items speak for a relation."""
    right = comparison.expected
    return len(right) if isinstance(right, (str, list, tuple, dict)) else 0


def _has_tensor(comparison: Comparison) -> bool:
    values = [comparison.got, comparison.expected]
    while values:
        value = values.pop()
        if isinstance(value, torch.Tensor):
            return True
        if isinstance(value, dict):
            values += value.values()
        elif isinstance(value, (list, tuple)):
            values += value
    return False


def sequences(comparisons: list[Comparison]) -> str:
    """Say what holds for all wrong lists, strings or dicts, the most specific first."""
    if any(_weight(each) > LONGEST or _has_tensor(each) for each in comparisons):
        return ""
    enough = sum(map(_weight, comparisons)) >= ENOUGH
    texts = common(map(_said, comparisons))
    return next(iter(texts.values()), "") if enough else ""
