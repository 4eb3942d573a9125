"""Write values so that a student can read them, compare them and type them in again.

What counts as different never prints alike: digits are added until it does not. What is
left out leaves "…" behind. Lists of numbers are ready for ``torch.tensor(...)``.
"""

import itertools
import re
from collections.abc import Iterable, Sequence

import torch

from autograder.interface import Data, Opaque, describe

WHOLE = 20  # values of a tensor that is written whole
PART = 6  # entries of a row that stand for a larger one
TENSORS = 3  # of a dict, that are written where more differ
DIGITS = 4  # significant, unless two values need more to differ
NUMBER_DIGITS = 6  # of a single number
ALL_DIGITS = 17  # with so many, two different floats differ in print
NAME = 60  # characters of one of several names
AROUND = 20  # characters before and after the place where two texts first differ

WORD = re.compile(r"[^\s\[\](){},:]+")  # an entry of a list, or of a dict

Span = tuple[int, int]


class Shown(str):
    """A value as text, with the spans of the text in which it differs from another.

    Args:
        text: what is written.
        marks: start and end of each entry that differs, in order.
        value: what it was written of.
    """

    marks: tuple[Span, ...]
    value: Data

    def __new__(
        cls, text: str, marks: Sequence[Span] = (), value: Data = None
    ) -> "Shown":
        """Make the text, and keep marks and value with it."""
        made = super().__new__(cls, text)
        made.marks, made.value = tuple(marks), value
        return made


Pair = tuple[Shown, Shown]


def show(value: Data, limit: int = WHOLE) -> Shown:
    """Write a value shortly: small tensors whole, large ones by shape and first row."""
    return Shown(_shown(value, limit), value=value)


def _shown(value: Data, limit: int) -> str:
    if isinstance(value, Opaque):
        return f"a {value.type_name}"
    if isinstance(value, tuple) and any(isinstance(x, torch.Tensor) for x in value):
        return "(" + ",\n".join(_shown(each, limit) for each in value) + ")"
    if not isinstance(value, torch.Tensor):
        return _number(value)
    if value.numel() <= limit:
        return nested(list(map(_entry, flat(value))), tuple(value.shape))[0]
    row = value.reshape(-1, value.shape[-1])[0]
    entries = list(map(_entry, row[:PART].tolist()))
    more = ["…"] if row.numel() > PART else []
    return f"{describe(value)}, first row [{', '.join(entries + more)}]…"


def show_both(got: Data, expected: Data, tolerance: float) -> Pair:
    """Write two values, with marks where they differ by more than the tolerance.

    Of large tensors it is the part of a row where they first differ.
    """
    pair = _pair(got, expected, tolerance)
    if pair[0] == pair[1]:
        sides = zip((got, expected), pair, strict=True)
        first, second = (Shown(_with_kind(value, text)) for value, text in sides)
        pair = first, second
    return Shown(pair[0], pair[0].marks, got), Shown(pair[1], pair[1].marks, expected)


def differ(got: torch.Tensor, expected: torch.Tensor, tolerance: float) -> torch.Tensor:
    """Mark the values that differ, of two tensors of one shape; NaN equals NaN."""
    widest = torch.complex128 if got.is_complex() else torch.float64
    return ~torch.isclose(
        got.to(widest),
        expected.to(widest),
        rtol=tolerance,
        atol=tolerance,
        equal_nan=True,
    )


def shortened(text: str, most: int) -> str:
    """Cut a text to so many characters; what is cut leaves "…" behind."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def first_few(names: Iterable[str], most: int) -> str:
    """List so many names, none of them at length; "…" stands for the others."""
    some = [shortened(name, NAME) for name in itertools.islice(names, most + 1)]
    return ", ".join(some if len(some) <= most else [*some[:most], "…"])


def show_keys(value: dict) -> str:
    """List the keys of a dict, none of them at length."""
    return f"[{', '.join(shortened(repr(key), NAME) for key in value)}]"


def marks_between(got: str, expected: str) -> tuple[Sequence[Span], Sequence[Span]]:
    """Say where two texts differ: by their values, or word by word if they match."""
    if getattr(got, "marks", ()) or getattr(expected, "marks", ()):
        return getattr(got, "marks", ()), getattr(expected, "marks", ())
    if WORD.sub("", got) != WORD.sub("", expected):
        return (), ()
    found = [
        (a.span(), b.span())
        for a, b in zip(WORD.finditer(got), WORD.finditer(expected), strict=False)
        if a.group() != b.group()
    ]
    return [a for a, _ in found], [b for _, b in found]


# --- two values -----------------------------------------------------------------------


def _pair(got: Data, expected: Data, tolerance: float) -> Pair:
    both = got, expected
    if all(isinstance(each, torch.Tensor) for each in both):
        return _show_tensors(got, expected, tolerance)
    if all(map(_are_results, both)) and len(got) == len(expected):
        return _show_results(got, expected, tolerance)
    if all(isinstance(each, dict) for each in both) and any(
        isinstance(value, torch.Tensor) for each in both for value in each.values()
    ):
        return _show_dicts(got, expected, tolerance)
    if all(type(each) in (int, float) for each in both):
        return _show_numbers(got, expected)
    pair = Shown(_show_rows(got)), Shown(_show_rows(expected))
    if pair[0] == pair[1] and type(got) is type(expected):
        return show_first_difference(repr(got), repr(expected))
    return pair


def _show_tensors(got: torch.Tensor, expected: torch.Tensor, tolerance: float) -> Pair:
    if got.shape != expected.shape or got.is_complex() != expected.is_complex():
        return Shown(_show_rows(got)), Shown(_show_rows(expected))
    wrong = differ(got, expected, tolerance)
    before, place = "", ()
    if got.numel() > WHOLE:
        *row, column = wrong.nonzero()[0].tolist() if wrong.any() else [0] * got.ndim
        first = max(0, min(column, got.shape[-1] - PART))
        last = min(first + PART, got.shape[-1])
        before = f"[{', '.join([*map(str, row), f'{first}:{last}'])}] is "
        place = (*row, slice(first, last))
    entries = _entries(got[place], expected[place], wrong[place])
    shape, marked = tuple(got[place].shape), flat(wrong[place])
    first, second = (_marked(before, each, shape, marked) for each in entries)
    return first, second


def _entries(
    got: torch.Tensor, expected: torch.Tensor, wrong: torch.Tensor
) -> tuple[list[str], list[str]]:
    """Write the entries; two that differ get as many digits as show it."""
    pairs = [
        _apart(a, b) if differs else (_entry(a), _entry(b))
        for a, b, differs in zip(flat(got), flat(expected), flat(wrong), strict=True)
    ]
    return [a for a, _ in pairs], [b for _, b in pairs]


def _marked(
    before: str, entries: list[str], shape: tuple[int, ...], wrong: list[bool]
) -> Shown:
    text, spans = nested(entries, shape, by_row=len(shape) == 2)
    marks = [
        (len(before) + start, len(before) + end)
        for (start, end), differs in zip(spans, wrong, strict=True)
        if differs
    ]
    return Shown(before + text, marks)


def _are_results(value: Data) -> bool:
    """Tell whether it is a tuple of results, with a tensor among them."""
    return isinstance(value, tuple) and any(
        isinstance(each, torch.Tensor) for each in value
    )


def _show_results(got: tuple, expected: tuple, tolerance: float) -> Pair:
    """Write several results, one below the other."""
    pairs = [
        (_pair if same(a, b, tolerance) else show_both)(a, b, tolerance)
        for a, b in zip(got, expected, strict=True)
    ]
    first, second = ([("", pair[side]) for pair in pairs] for side in (0, 1))
    return _joined(first, "()"), _joined(second, "()")


def _joined(
    parts: Sequence[tuple[str, Shown]], brackets: str, more: bool = False
) -> Shown:
    """Write named values one below the other, with their marks; ``more``: then "…"."""
    text, marks = brackets[0], []
    for number, (name, part) in enumerate(parts):
        text += (",\n " if number else "") + name
        marks += [(len(text) + start, len(text) + end) for start, end in part.marks]
        text += part
    text += ("," if parts else "") + " …" if more else ""
    return Shown(text + brackets[1], marks)


def _show_dicts(got: dict, expected: dict, tolerance: float) -> Pair:
    """Write the entries of two dicts that differ; "…" stands for the others.

    Of tensors that differ, as those of a state dict, the first few are enough.
    """
    shared = [key for key in got if key in expected]
    alike = {key for key in shared if same(got[key], expected[key], tolerance)}
    different = [key for key in shared if key not in alike]
    tensors = [key for key in different if isinstance(got[key], torch.Tensor)]
    alike |= set(tensors[TENSORS:])
    both = {
        key: show_both(got[key], expected[key], tolerance)
        for key in different
        if key not in alike
    }
    sides = []
    for side, value in enumerate((got, expected)):
        texts = {
            key: both[key][side] if key in both else Shown(show(value[key]))
            for key in value
            if key not in alike
        }
        parts = [(f"{shortened(repr(key), NAME)}: ", t) for key, t in texts.items()]
        sides.append(_joined(parts, "{}", more=bool(alike)))
    first, second = sides
    return first, second


def _show_numbers(got: float, expected: float) -> Pair:
    for digits in range(NUMBER_DIGITS, ALL_DIGITS + 1):
        texts = _number(got, digits), _number(expected, digits)
        if texts[0] != texts[1]:
            first, second = (Shown(text, [(0, len(text))]) for text in texts)
            return first, second
    return show_first_difference(repr(got), repr(expected))


def show_first_difference(got: str, expected: str) -> Pair:
    """Write the part of two long texts where they first differ."""
    first = first_difference(got, expected)
    return Shown(_around(got, first)), Shown(_around(expected, first))


def first_difference(got: str, expected: str) -> int:
    """Say at which character two texts first differ; 0 if they do not."""
    pairs = enumerate(itertools.zip_longest(got, expected))
    return next((place for place, (a, b) in pairs if a != b), 0)


def _around(text: str, place: int) -> str:
    """Write the part of a text around a place, with "…" for what is left out."""
    start, end = max(0, place - AROUND), place + AROUND
    before, after = "…" if start else "", "…" if end < len(text) else ""
    return f"{before}{text[start:end]}{after}"


def _with_kind(value: Data, text: str) -> str:
    """Say of what kind a value is that prints like another one."""
    if not isinstance(value, torch.Tensor):
        return f"{text}, of type {type(value).__name__}"
    if not 0 < value.numel() <= WHOLE:  # not written whole
        return f"{text}, a {describe(value)}"
    usual = value.dtype in (torch.float32, torch.int64, torch.bool)
    dtype = "" if usual else f", dtype={value.dtype}"
    return f"torch.tensor({text}{dtype})"


def same(a: Data, b: Data, tolerance: float) -> bool:
    """Tell whether two values are to be taken for one: type, form and numbers."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        pairs = zip(a, b, strict=False)
        return len(a) == len(b) and all(same(x, y, tolerance) for x, y in pairs)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(
            same(a[key], b[key], tolerance) for key in a
        )
    if not isinstance(a, torch.Tensor):
        return a == b
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return not bool(differ(a, b, tolerance).any())


# --- one value ------------------------------------------------------------------------


def _show_rows(value: Data) -> str:
    """Write a value; a small matrix with a line for each row."""
    small = isinstance(value, torch.Tensor) and value.numel() <= WHOLE
    if small and value.ndim == 2:
        entries = list(map(_entry, flat(value)))
        return nested(entries, tuple(value.shape), by_row=True)[0]
    return show(value)


def _number(value: float, digits: int = NUMBER_DIGITS) -> str:
    """Write a Python number."""
    return f"{value:.{digits}g}" if isinstance(value, float) else describe(value)


def flat(value: torch.Tensor) -> list:
    """List a tensor's values, the last axis running fastest."""
    return value.reshape(-1).tolist()


def _entry(item: complex, digits: int = DIGITS) -> str:
    """Write one value of a tensor: bool, int, float or complex."""
    if isinstance(item, float):
        return str(float(f"{item:.{digits}g}"))
    if isinstance(item, complex):
        return f"{item:.{digits}g}"
    return str(item)


def _apart(a: complex, b: complex) -> tuple[str, str]:
    """Write two values that differ with the fewest digits that show it."""
    for digits in range(DIGITS, ALL_DIGITS + 1):
        texts = _entry(a, digits), _entry(b, digits)
        if texts[0] != texts[1]:
            break
    return texts


def nested(
    entries: Sequence[str], shape: tuple[int, ...], by_row: bool = False
) -> tuple[str, list[Span]]:
    """Write entries as nested lists; return where in the text each of them stands.

    Args:
        entries: as many as the shape says, the last axis running fastest.
        shape: of the tensor.
        by_row: whether each item of the first axis gets a line.
    """
    pieces, spans, remaining = [], [], iter(entries)

    def write(text: str) -> None:
        pieces.append(text)

    def walk(axis: int) -> None:
        if axis == len(shape):
            start, entry = sum(map(len, pieces)), next(remaining)
            write(entry)
            spans.append((start, start + len(entry)))
            return
        write("[")
        for number in range(shape[axis]):
            if number:
                write(",\n " if by_row and axis == 0 else ", ")
            walk(axis + 1)
        write("]")

    walk(0)
    return "".join(pieces), spans
