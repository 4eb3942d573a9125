"""A batch whose width is one of a few."""

import functools
import itertools
from collections.abc import Callable, Iterable

import torch

from autograder import expect
from autograder.chapters.translator.chapter import chapter
from autograder.exercise.inputs import draw_sizes, seeded
from autograder.exercise.spec import Case, Function, expect_several, judge_parts
from autograder.interface import StudentFunction

Rows = list[list[int]]
NAMES = ("source", "inputs", "labels")
ONE_SIDE = "only one side decides the width"
EXACT = "What needs 8 places fits into a width of 8: >= and not >."
TOO_LONG = (
    "what is too long is not refused",
    "With <sos> or <eos> it needs 9 places. A cut sentence silently loses its end.",
)


def by_entries(sources: Rows, targets: Rows, widths: tuple, sos, eos, pad=0) -> tuple:
    """Try the widths in order, then write three padded tensors, entry by entry."""
    width = next(
        each
        for each in sorted(widths)
        if all(len(row) <= each for row in sources)
        and all(len(row) < each for row in targets)
    )
    source, inputs, labels = (
        torch.full((len(sources), width), pad, dtype=torch.long) for _ in range(3)
    )
    for row, (read, written) in enumerate(zip(sources, targets, strict=True)):
        inputs[row, 0], labels[row, len(written)] = sos, eos
        for place, token in enumerate(read):
            source[row, place] = token
        for place, token in enumerate(written):
            inputs[row, place + 1] = labels[row, place] = token
    return source, inputs, labels


batch = Function(
    "fixed-batch",
    "fixed_batch",
    by_entries,
    accidents=[
        (
            "expected sequence of length",
            "the rows have different lengths",
            "Rows of one tensor have one length: fill up before making it.",
        )
    ],
)


# --- the width: what goes wrong -------------------------------------------------------


def _fill(rows: Rows, width: int, pad: int, *, left: bool = False) -> torch.Tensor:
    """Pad, or cut, rows to a width."""
    found = []
    for row in rows:
        padding = [pad] * (width - len(row))
        found.append((padding + row if left else row + padding)[:width])
    return torch.tensor(found)


def _rows(sources: Rows, targets: Rows, sos: int, eos: int) -> tuple[Rows, Rows, Rows]:
    """Give the rows of source, inputs and labels."""
    return sources, [[sos, *row] for row in targets], [[*row, eos] for row in targets]


def _longest(*tables: Rows) -> int:
    return max(len(row) for rows in tables for row in rows)


def _narrowest(widths: tuple[int, ...], need: int) -> int:
    return min(width for width in widths if width >= need)


WIDTHS: tuple[tuple[str, str, Callable], ...] = (
    (
        "no place for the special token",
        "Inputs and labels are one longer than the target: it needs a width of its "
        "length plus 1. Without it, the last token or <eos> is cut off.",
        lambda widths, read, written: _narrowest(widths, max(read, written)),
    ),
    (
        ONE_SIDE,
        "The targets are in the batch, too: the width has to hold the longest of both "
        "sides.",
        lambda widths, read, written: _narrowest(widths, read),
    ),
    (
        ONE_SIDE,
        "The sources are in the batch, too: the width has to hold the longest of both "
        "sides.",
        lambda widths, read, written: _narrowest(widths, written + 1),
    ),
    (
        "a place for a special token in the source, too",
        "The source is given as it is: only a target needs one place more than it has "
        "tokens.",
        lambda widths, read, written: _narrowest(widths, max(read, written) + 1),
    ),
    (
        "a width that fits exactly is passed over",
        EXACT,
        lambda widths, read, written: _narrowest(widths, max(read, written + 1) + 1),
    ),
    (
        "not one of the widths",
        "Then nearly every batch has a shape of its own. Take the narrowest of the "
        "given widths that holds it.",
        lambda widths, read, written: max(read, written + 1),
    ),
    (
        "the widest in place of the narrowest",
        "It fits, but most of it is padding, which costs as much as words do.",
        lambda widths, read, written: max(widths),
    ),
    (
        "the first width that fits, not the narrowest",
        "The widths need not be in order: take the minimum of those that fit.",
        lambda widths, read, written: next(
            each for each in widths if each >= max(read, written + 1)
        ),
    ),
)
for name, why, choose in WIDTHS:

    @batch.mistake(name, why)
    def _(sources, targets, widths, sos, eos, pad=0, choose=choose):
        width = choose(widths, _longest(sources), _longest(targets))
        return tuple(_fill(x, width, pad) for x in _rows(sources, targets, sos, eos))


@batch.mistake(
    *TOO_LONG,
    when=lambda sources, targets, widths, sos, eos, *_: (
        _longest(*_rows(sources, targets, sos, eos)) > max(widths)
    ),
)
def _(sources, targets, widths, sos, eos, pad=0):
    rows = _rows(sources, [row[: max(widths) - 1] for row in targets], sos, eos)
    return tuple(_fill(each, max(widths), pad) for each in rows)


@batch.mistake(
    "source and target of two widths",
    "All three tensors have one width, the narrowest that holds both sides.",
)
def _(sources, targets, widths, sos, eos, pad=0):
    rows = _rows(sources, targets, sos, eos)
    return tuple(_fill(x, _narrowest(widths, _longest(x)), pad) for x in rows)


# --- the rows: what goes wrong --------------------------------------------------------


@batch.mistake(
    "padding on the left",
    "Words come first, padding after them: positions count from the first word.",
)
def _(sources, targets, widths, sos, eos, pad=0):
    rows = _rows(sources, targets, sos, eos)
    width = _narrowest(widths, _longest(*rows))
    return tuple(_fill(each, width, pad, left=True) for each in rows)


def _framed(before, after, counted, spare, sources, targets, widths, sos, eos, pad=0):
    """Put special tokens around the source, which count for the width or do not."""
    framed = [[sos] * before + row + [eos] * after for row in sources]
    rows = _rows(framed, targets, sos, eos)
    need = _longest(framed if counted else sources, *rows[1:])
    return tuple(_fill(x, _narrowest(widths, need + spare), pad) for x in rows)


for before, after, counted, spare in itertools.product((0, 1), repeat=4):
    if before or after:
        batch.mistake(
            "the source with special tokens",
            "Only the decoder needs <sos> and <eos>; the source is given as it is."
            + spare * f" And it may fill the width. {EXACT}",
        )(functools.partial(_framed, before, after, counted, spare))


@batch.mistake(
    "inputs and labels exchanged",
    "The decoder reads what begins with <sos> and predicts what ends with <eos>.",
)
def _(sources, targets, widths, sos, eos, pad=0):
    source, inputs, labels = by_entries(sources, targets, widths, sos, eos, pad)
    return source, labels, inputs


@batch.mistake(
    "targets not shifted",
    "Inputs and labels are the same, so the model only learns to repeat what it reads. "
    "Use shift_right.",
)
def _(sources, targets, widths, sos, eos, pad=0):
    source, *_ = by_entries(sources, targets, widths, sos, eos, pad)
    both = _fill([[sos, *row, eos] for row in targets], source.shape[1], pad)
    return source, both, both.clone()


for those, near, far in (  # up to the longest row, and beyond: pad_id or 0
    ((0, 1, 2), False, False),
    ((0,), False, False),
    ((1, 2), False, False),
    ((1, 2), True, False),  # shift_right was told, and F.pad was not
    ((1, 2), False, True),
):

    @batch.mistake(
        "filled with 0 in place of pad_id",
        "pad_id is an argument, and need not be 0. F.pad, too, fills with 0 unless it "
        "is given value=pad_id.",
    )
    def _(sources, targets, widths, sos, eos, pad=0, those=those, near=near, far=far):
        found = list(by_entries(sources, targets, widths, sos, eos, pad))
        rows = _rows(sources, targets, sos, eos)
        for place in those:
            start = _fill(rows[place], _longest(rows[place]), near * pad)
            found[place] = _fill(start.tolist(), found[place].shape[1], far * pad)
        return tuple(found)


@batch.mistake(
    "the labels padded with <eos>",
    "One <eos> ends a sentence. After it comes pad_id, which the loss leaves out.",
)
def _(sources, targets, widths, sos, eos, pad=0):
    source, inputs, _ = by_entries(sources, targets, widths, sos, eos, pad)
    return source, inputs, _fill(targets, source.shape[1], eos)


# --- the check ------------------------------------------------------------------------


def _sentences(generator: torch.Generator, lengths: Iterable[int]) -> Rows:
    return [
        torch.randint(10, 40, (length,), generator=generator).tolist()
        for length in lengths
    ]


@chapter.check(section="translator-batches")
def fixed_batch(student: StudentFunction, seed: int = 0) -> None:
    """By hand, several widths, a sentence as long as a width, what fits nowhere."""
    generator = seeded(seed)
    a, b, c = draw_sizes(generator, 3)
    hand = ([[11, 12, 13], [14]], [[21, 22], [23, 24, 25]], (4, 8), 2, 3)

    def drawn(read: tuple, written: tuple) -> tuple[Rows, Rows]:
        return _sentences(generator, read), _sentences(generator, written)

    several, special = (6, 24, 17, 9, 32), (2, 3, 1)
    for given, on in (
        (hand, "the example by hand"),
        (
            (*drawn((a, 1, b), (c, 8, a)), (16, 12, 8, 7), 5, 4, 7),
            "a target of 8 tokens, widths (16, 12, 8, 7)",
        ),
        (
            (*drawn((10 + a % 3, 2), (3, b % 4 + 1)), several, *special),
            f"a source of 10 to 12 tokens, widths {several}",
        ),
        (
            (*drawn((3, 1), (2, 1)), (20, 6, 4, 3), *special),
            "a source of 3 tokens, widths (20, 6, 4, 3)",
        ),
    ):
        with batch.accidents_named():
            got = expect_several(student(*given), NAMES, on)
        judge_parts(batch, got, Case(on, given), NAMES)
    too_long = drawn((3,), (8,))
    expect.raises(
        "ValueError",
        lambda: student(*too_long, (4, 8), 2, 3),
        on="a target of 8 tokens, widths (4, 8)",
        why=TOO_LONG[1],
        mistake=TOO_LONG[0],
    )
