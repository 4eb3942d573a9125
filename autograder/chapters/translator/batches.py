"""A batch whose width is one of a few."""

from collections.abc import Callable, Iterable
from itertools import combinations
from operator import add

import torch

from autograder import expect
from autograder.chapters.translator.chapter import chapter
from autograder.exercise.inputs import draw_sizes, seeded
from autograder.exercise.spec import (
    Case,
    Function,
    errors_named,
    expect_several,
    judge_parts,
)
from autograder.interface import Data, StudentFunction

Rows = list[list[int]]
NAMES = ("source", "inputs", "labels")
TOO_LONG = (
    "what is too long is not refused",
    "With <sos> or <eos> it needs 9 places. A cut sentence silently loses its end.",
)
OTHER_ERROR = (
    "another error than a ValueError",
    "Ask whether a width is large enough before you take one, and raise ValueError "
    "with a sentence that says what would have been needed.",
)
TOO_NARROW = (
    "the width is too small for a row",
    "The width has to hold the longest row of both sides, and a target needs one place "
    "more than it has tokens.",
)
RAGGED = "expected sequence of length"
NARROW = (RAGGED, *TOO_NARROW), ("expanded size", *TOO_NARROW)


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
            RAGGED,
            "the rows have different lengths",
            "Rows of one tensor have one length: fill up before making it.",
        )
    ],
)


# --- what goes wrong ------------------------------------------------------------------


def _longest(rows: Rows) -> int:
    return max(map(len, rows))


def _fill_in(beyond: bool, pad: int, eos: int) -> int:
    return pad


def laid_out(
    sources: Rows,
    targets: Rows,
    widths: tuple[int, ...],
    sos: int,
    eos: int,
    pad: int = 0,
    *,
    need: Callable = lambda sources, targets: max(
        _longest(sources), _longest(targets) + 1
    ),
    choose: Callable = lambda widths, need: min(w for w in widths if w >= need),
    own: Callable = lambda width, place, longest, widths: width,
    reads: Callable = lambda row, sos, eos: row,
    inputs: Callable = lambda row, sos, eos: [sos, *row],
    labels: Callable = lambda row, sos, eos: [*row, eos],
    fills: Callable = _fill_in,
    fills_inputs: Callable = _fill_in,
    fills_labels: Callable = _fill_in,
    left: tuple[int, ...] = (),
    cut: bool = True,
) -> tuple[torch.Tensor, ...]:
    """Make a batch with slips, which may be several.

    Args:
        sources: the sentences that are read.
        targets: the sentences that are to be written.
        widths: that a batch may have.
        sos: stands before each input.
        eos: stands after each label.
        pad: fills up.
        need: how many places are needed.
        choose: the width, of the widths and of what is needed.
        own: the width of a tensor, of that, its place, its longest row and all widths.
        reads: a row of the source, of the sentence and both special ids.
        inputs: the same, of a target.
        labels: the same.
        fills: what fills the source up, of whether the place is beyond its longest row,
            of pad and eos.
        fills_inputs: the same, of the inputs.
        fills_labels: the same, of the labels.
        left: which of the tensors have padding on the left.
        cut: whether a row that is too long is cut.
    """
    width = choose(widths, need(sources, targets))
    tables = (
        (sources, reads, fills),
        (targets, inputs, fills_inputs),
        (targets, labels, fills_labels),
    )
    made = []
    for place, (sentences, form, fill) in enumerate(tables):
        rows = [form(row, sos, eos) for row in sentences]
        longest = _longest(rows)
        last = own(width, place, longest, widths)
        for number, row in enumerate(rows):
            padding = [fill(at >= longest, pad, eos) for at in range(len(row), last)]
            row = padding + row if place in left else row + padding
            rows[number] = row[:last] if cut else row
        made.append(torch.tensor(rows))
    return tuple(made)


def _framed(before: int, after: int) -> Callable:
    return lambda row, sos, eos: [sos] * before + row + [eos] * after


def _fits_or_widest(widths: tuple[int, ...], need: int) -> int:
    return min((width for width in widths if width >= need), default=max(widths))


def _too_long(sources: Rows, targets: Rows, widths: tuple[int, ...], *_: int) -> bool:
    return max(_longest(sources), _longest(targets) + 1) > max(widths)


ONE_SIDE = "only one side decides the width"
NOT_LONGEST = (
    "a row that is not the longest decides the width",
    "max(rows) gives the row that would come last in a dictionary, and the first or "
    "the last row may be short. The longest is max(map(len, rows)).",
)
FILLED = (
    "not filled up to the width",
    "All three tensors have the width, each row of it.",
)
LEFT = (
    "padding on the left",
    "Words come first, padding after them: positions count from the first word.",
)
FRAMED = (
    "the source with special tokens",
    "Only the decoder needs <sos> and <eos>; the source is given as it is.",
)
NOT_SHIFTED = (
    "Inputs and labels are the same, so the model only learns to repeat what it reads. "
    "Use shift_right."
)
ZERO = (
    "filled with 0 in place of pad_id",
    "pad_id is an argument, and need not be 0. F.pad, too, fills with 0 unless it is "
    "given value=pad_id.",
)
ENDS = (
    "the labels padded with <eos>",
    "One <eos> ends a sentence. After it comes pad_id, which the loss leaves out.",
)
IGNORED = (
    "the labels padded with -100",
    "-100 is what PyTorch's cross_entropy leaves out by default. Here padding is "
    "pad_id, in all three tensors: the loss of chapter 7 looks for it.",
)


def _filled(value: int, near: bool, far: bool) -> Callable:
    """Fill with a value up to the longest row, or beyond it, or both."""
    return lambda beyond, pad, eos: value if (far if beyond else near) else pad


SLIPS: tuple[tuple[str, str, dict], ...] = (
    (
        "no place for the special token",
        "Inputs and labels are one longer than the target: it needs a width of its "
        "length plus 1. Without it, the last token or <eos> is cut off.",
        {"need": lambda sources, targets: _longest(sources + targets)},
    ),
    (
        ONE_SIDE,
        "The targets are in the batch, too: the width has to hold the longest of both "
        "sides.",
        {"need": lambda sources, targets: _longest(sources)},
    ),
    (
        ONE_SIDE,
        "The sources are in the batch, too: the width has to hold the longest of both "
        "sides.",
        {"need": lambda sources, targets: _longest(targets) + 1},
    ),
    (
        "a place for a special token in the source, too",
        "The source is given as it is: only a target needs one place more than it has "
        "tokens.",
        {"need": lambda sources, targets: _longest(sources + targets) + 1},
    ),
    (
        "places for two special tokens",
        "Inputs begin with <sos>, labels end with <eos>: each has one of the two.",
        {
            "need": lambda sources, targets: max(
                _longest(sources), _longest(targets) + 2
            )
        },
    ),
    *(
        (
            "source and target added up",
            "They are in tensors of their own: the width has to hold the longer of "
            "the two.",
            {"need": need},
        )
        for need in (
            lambda sources, targets: _longest(list(map(add, sources, targets))) + 1,
            lambda sources, targets: _longest(sources) + _longest(targets) + 1,
        )
    ),
    *(
        (
            *NOT_LONGEST,
            {
                "need": lambda sources, targets, read=read, written=written: max(
                    read(sources), written(targets) + 1
                )
            },
        )
        for read, written in (
            (lambda rows: len(max(rows)), lambda rows: len(max(rows))),
            (_longest, lambda rows: len(max(rows))),
            (lambda rows: len(max(rows)), _longest),
            (lambda rows: len(rows[0]), lambda rows: len(rows[0])),
            (lambda rows: len(rows[-1]), lambda rows: len(rows[-1])),
        )
    ),
    (
        "a width that fits exactly is passed over",
        "What needs 8 places fits into a width of 8: >= and not >.",
        {"choose": lambda widths, need: min(w for w in widths if w > need)},
    ),
    (
        "not one of the widths",
        "Then nearly every batch has a shape of its own. Take the narrowest of the "
        "given widths that holds it.",
        {"choose": lambda widths, need: need},
    ),
    (
        "the widest in place of the narrowest",
        "It fits, but most of it is padding, which costs as much as words do.",
        {"choose": lambda widths, need: max(widths)},
    ),
    (
        "the first width that fits, not the narrowest",
        "The widths need not be in order: take the minimum of those that fit.",
        {
            "choose": lambda widths, need: min(
                (w for w in widths if w >= need), key=widths.index
            )
        },
    ),
    (
        "the nearest width, not the narrowest",
        "Take the least of those that are large enough.",
        {"choose": lambda widths, need: min(widths, key=lambda w: abs(w - need))},
    ),
    (
        "source and target of two widths",
        "All three tensors have one width, the narrowest that holds both sides.",
        {
            "own": lambda width, place, longest, widths: min(
                w for w in widths if w >= longest
            )
        },
    ),
    (
        "the special token is not counted when the targets are filled up",
        "Inputs and labels have one token more than the target, so width - longest - 1 "
        "places are left to fill, and all three tensors have one width.",
        {"own": lambda width, place, longest, widths: width + (place > 0)},
    ),
    (*FILLED, {"own": lambda width, place, longest, widths: longest}),
    (
        *FILLED,
        {"own": lambda width, place, longest, widths: longest if place else width},
    ),
    (
        *FILLED,
        {"own": lambda width, place, longest, widths: width if place else longest},
    ),
    (*LEFT, {"left": (0, 1, 2)}),
    (*LEFT, {"left": (0,)}),
    (*LEFT, {"left": (1, 2)}),
    *(
        (*FRAMED, {"reads": _framed(before, after)} | counted)
        for before, after in ((1, 0), (0, 1), (1, 1))
        for counted in (
            {},
            {
                "need": lambda sources, targets, more=before + after: max(
                    _longest(sources) + more, _longest(targets) + 1
                )
            },
        )
    ),
    (
        "inputs and labels exchanged",
        "The decoder reads what begins with <sos> and predicts what ends with <eos>.",
        {"inputs": _framed(0, 1), "labels": _framed(1, 0)},
    ),
    (
        "targets not shifted",
        NOT_SHIFTED,
        {"inputs": _framed(1, 1), "labels": _framed(1, 1)},
    ),
    ("the inputs are the labels", NOT_SHIFTED, {"inputs": _framed(0, 1)}),
    ("the labels are the inputs", NOT_SHIFTED, {"labels": _framed(1, 0)}),
    (
        "<sos> is missing",
        "Without <sos> the first label has nothing to be predicted from, and inputs "
        "and labels begin with the same token.",
        {"inputs": _framed(0, 0)},
    ),
    (
        "<eos> is missing",
        "A model that never sees <eos> as a label never learns to stop.",
        {"labels": _framed(0, 0)},
    ),
    (
        "<eos> among the inputs",
        "<eos> is the end: nothing is to be predicted after it, so the decoder never "
        "reads it. Inputs are <sos> and the sentence.",
        {"inputs": _framed(1, 1)},
    ),
    (
        "<sos> among the labels",
        "The model is not asked for <sos>: labels begin with the first word.",
        {"labels": _framed(1, 1)},
    ),
    (
        "<sos> and <eos> exchanged",
        "The ids are those of the arguments: sos_id before, eos_id after.",
        {
            "inputs": lambda row, sos, eos: [eos, *row],
            "labels": lambda row, sos, eos: [*row, sos],
        },
    ),
    *(
        (*ZERO, dict.fromkeys(those, _filled(0, near, far)))
        for count in (1, 2, 3)
        for those in combinations(("fills", "fills_inputs", "fills_labels"), count)
        # F.pad was not told pad_id, or shift_right, or neither
        for near, far in ((False, True), (True, False), (True, True))
    ),
    (*ENDS, {"fills_labels": lambda beyond, pad, eos: eos}),
    (*ENDS, {"fills_labels": lambda beyond, pad, eos: eos if beyond else pad}),
    (*IGNORED, {"fills_labels": _filled(-100, True, True)}),
    (*IGNORED, {"fills_labels": _filled(-100, False, True)}),
)
batch.slips(laid_out, *SLIPS)
# what shows in an error has no value that could be one of two mistakes
batch.mistake(*TOO_LONG, when=_too_long)(
    lambda *given: laid_out(*given, choose=_fits_or_widest)
)
batch.mistake(*OTHER_ERROR, when=_too_long)(
    lambda *given: laid_out(*given, choose=lambda widths, need: widths[len(widths)])
)
batch.mistake(*TOO_NARROW)(
    lambda *given: laid_out(*given, need=lambda _, rows: _longest(rows) + 1, cut=False)
)


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
    # each number of places that may be needed is a width of its own
    dense = (3, 6, 9, 5, 2, 7, 4)
    one, two, words = [[20], [22]], [[20, 21], [22]], [11, 12, 13, 14]
    last, first = [[30, 31, 32], [*words, 15]], [words, [30, 31]]
    for given, on in (
        (hand, "the example by hand"),
        ((last, one, dense, *special), f"a source of 5 tokens, widths {dense}"),
        ((two, first, dense, *special), f"a target of 4 tokens, widths {dense}"),
        (
            (*drawn((a, 1, b), (c, 8, a)), (12, 8, 7), 5, 4, 7),
            "a target of 8 tokens, widths (12, 8, 7)",
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
        # what fits into the widths of the example need not fit into all
        accidents = batch.accidents if given is hand else NARROW
        with errors_named(*accidents):
            got = expect_several(student(*given), NAMES, on)
        judge_parts(batch, got, Case(on, given), NAMES)
    too_long = drawn((3,), (8,))

    def refused() -> Data:
        kinds = ("IndexError", "StopIteration", "UnboundLocalError", "TypeError")
        with errors_named(*((kind, *OTHER_ERROR) for kind in kinds)):
            return student(*too_long, (4, 8), 2, 3)

    expect.raises(
        "ValueError",
        refused,
        on="a target of 8 tokens, widths (4, 8)",
        why=TOO_LONG[1],
        mistake=TOO_LONG[0],
    )
