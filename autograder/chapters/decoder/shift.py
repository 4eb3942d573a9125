"""What the decoder reads and what it is to predict: one step apart."""

from collections.abc import Callable
from functools import partial

import torch

from autograder import expect
from autograder.chapters.decoder.chapter import chapter
from autograder.exercise.inputs import seeded
from autograder.exercise.spec import Case, Function, judge_parts
from autograder.expect import refuse_if, show
from autograder.forms import several
from autograder.interface import StudentFunction

Words = list[int]


def _right(sequences, sos, eos, pad=0):
    """Fill both tensors entry by entry."""
    width = max(map(len, sequences)) + 1
    inputs = torch.full((len(sequences), width), pad)
    labels = inputs.clone()
    for row, words in enumerate(sequences):
        inputs[row, 0], labels[row, len(words)] = sos, eos
        for place, word in enumerate(words):
            inputs[row, place + 1] = labels[row, place] = word
    return inputs, labels


shifts = Function("shift-right", "shift_right", _right)
shifts.accident(
    "expected sequence of length",
    "the rows have different lengths",
    "Rows of one tensor have one length: fill up before making it.",
)

# --- what goes wrong ------------------------------------------------------------------


def rows(
    sequences: list[Words],
    sos: int,
    eos: int,
    pad: int = 0,
    *,
    reads: Callable = lambda words, sos, eos, width: [sos, *words],
    says: Callable = lambda words, sos, eos, width: [*words, eos],
    wide: int = 1,
    broad: int = 1,
    longest: Callable = lambda sequences: max(map(len, sequences)),
    fill: Callable | None = None,
    blank: Callable | None = None,
    turned: bool = False,
    left: bool = False,
    empty: bool = True,
    form: Callable = lambda inputs, labels: (inputs, labels),
) -> tuple[torch.Tensor, ...]:
    """Make both tensors with slips, which may be several.

    Args:
        sequences: the sentences.
        sos: stands before each input.
        eos: stands after each label.
        pad: fills up.
        reads: a row of inputs, None for padding, of words, ids and width.
        says: a row of labels.
        wide: how much wider than the longest sentence the inputs are.
        broad: the same, of the labels.
        longest: the length of the longest sentence.
        fill: what fills the inputs up in place of ``pad``, of the three ids.
        blank: the same, of the labels.
        turned: whether the two special ids are exchanged.
        left: whether padding stands on the left.
        empty: whether an empty sentence has a row.
        form: what is made of the two.
    """
    special = (eos, sos) if turned else (sos, eos)
    kept = [words for words in sequences if words or empty]

    def filled(make: Callable, more: int, other: Callable | None) -> torch.Tensor:
        width, fills = longest(sequences) + more, other(sos, eos, pad) if other else pad
        made = []
        for words in kept:
            row = [*make(words, *special, width)][:width]
            padding = [None] * (width - len(row))
            row = [*padding, *row] if left else [*row, *padding]
            made += [[fills if each is None else each for each in row]]
        return torch.tensor(made)

    return form(filled(reads, wide, fill), filled(says, broad, blank))


def _start(words: Words, sos: int, eos: int, width: int) -> Words:
    return [sos, *words]


def _end(words: Words, sos: int, eos: int, width: int) -> Words:
    return [*words, eos]


def _whole(words: Words, sos: int, eos: int, width: int) -> Words:
    return [sos, *words, eos]


def _plain(words: Words, sos: int, eos: int, width: int) -> Words:
    return words


def _at(place: Callable[[int, int], int]) -> Callable:
    """Put the last id at a place, of the number of words and the width."""

    def row(words: Words, sos: int, eos: int, width: int) -> list:
        made: list = [*words, *[None] * (width - len(words))]
        made[place(len(words), width)] = eos
        return made

    return row


COPIED = (
    "the labels are the inputs",
    "The labels are the sentence itself and <eos>, one step to the left of the inputs. "
    "With labels = inputs the answer is where the model reads, and it learns to "
    "copy.",
)
NO_START = (
    "<sos> is missing",
    "Without <sos> the first label has nothing to be predicted from, and inputs and "
    "labels begin with the same token.",
)
NO_END = (
    "<eos> is missing",
    "A model that never sees <eos> as a label never learns to stop.",
)
READ = "<eos> among the inputs"
NEVER_READ = (
    "<eos> is the end: nothing is to be predicted after it, so the decoder never reads "
    "it. Inputs are <sos> and the sentence."
)
SAID = (
    "<sos> among the labels",
    "The model is not asked for <sos>: labels begin with the first word.",
)
OTHER_ID = "padded with another id", "Fill up with pad_id, both of them."
PADS: tuple[Callable, ...] = (
    lambda sos, eos, pad: 0,
    lambda sos, eos, pad: eos,
    lambda sos, eos, pad: -100,
    lambda sos, eos, pad: sos,
)
for name, why, slip in (
    (*COPIED, {"says": _start}),
    (*COPIED, {"reads": _end}),
    (*COPIED, {"reads": _whole, "says": _whole, "wide": 2, "broad": 2}),
    (
        "inputs and labels exchanged",
        "inputs first, labels second.",
        {"form": lambda inputs, labels: (labels, inputs)},
    ),
    (*NO_START, {"reads": _plain}),
    (*NO_START, {"reads": _plain, "wide": 0}),
    (*NO_END, {"says": _plain}),
    (*NO_END, {"says": _plain, "broad": 0}),
    (*NO_END, {"says": _plain, "wide": 0, "broad": 0}),
    (
        "<eos> is missing in the longest sentence",
        "The rows are longest + 1 wide, so <eos> fits behind the longest sentence, "
        "too: it follows the last word of every sentence.",
        {"says": lambda words, sos, eos, t: [*words, eos][: t - 1]},
    ),
    (
        READ,
        "Cutting the last column of the padded batch takes <eos> from the longest "
        "sentence only; the shorter ones keep it in their inputs.",
        {"reads": _whole},
    ),
    (READ, NEVER_READ, {"reads": _whole, "wide": 2}),
    (READ, NEVER_READ, {"reads": _whole, "wide": 2, "broad": 2}),
    (*SAID, {"says": _whole}),
    (*SAID, {"says": _whole, "broad": 2}),
    (*SAID, {"says": _whole, "wide": 2, "broad": 2}),
    (
        "<sos> at the end of the labels",
        "torch.roll brings what leaves on the left back in on the right. The labels "
        "are the sentence and <eos>, and then padding.",
        {"says": lambda words, sos, eos, t: _at(lambda n, t: -1)(words, sos, sos, t)},
    ),
    (
        "the labels are shifted twice",
        "inputs and labels are one step apart, not two: the first word is the first "
        "label.",
        {"says": lambda words, sos, eos, t: [*words[1:], eos]},
    ),
    (
        "<sos> in place of the first word",
        "<sos> stands before the sentence, and all of its words follow.",
        {"reads": lambda words, sos, eos, t: [sos, *words[1:]]},
    ),
    (
        "the last word is not read",
        "Inputs are <sos> and the whole sentence: <eos> is predicted from the last "
        "word.",
        {"reads": lambda words, sos, eos, t: [sos, *words[:-1]]},
    ),
    *(
        (
            "<eos> in place of the last word",
            "<eos> stands after the sentence, at the place len(sentence), and no word "
            "is lost.",
            {"says": says},
        )
        for says in (
            lambda words, sos, eos, t: [*words[:-1], eos],
            _at(lambda n, t: n - 1),
        )
    ),
    (
        "padding on the left",
        "Fill up on the right, after the sentence.",
        {"left": True},
    ),
    (
        "an empty sentence is left out",
        "An empty sentence has a row, too: <sos> in, <eos> out.",
        {"empty": False},
    ),
    (
        "the axes are exchanged",
        "A row for each sentence, a column for each position: (B, T). batch_first?",
        {"form": lambda inputs, labels: (inputs.T, labels.T)},
    ),
    (
        "too wide by one",
        "Both rows hold the sentence and one special token: longest + 1.",
        {"wide": 2, "broad": 2},
    ),
    (
        "too narrow: the longest sentence is cut",
        "Both rows hold the sentence and one special token: longest + 1.",
        {"wide": 0, "broad": 0},
    ),
    (
        "as wide as the first sentence",
        "The longest sentence, plus 1, is the width, and it need not be the first.",
        {"longest": lambda sequences: len(sequences[0])},
    ),
    (
        "<eos> after the padding",
        "<eos> follows the last word directly; padding comes after it.",
        {"says": _at(lambda n, t: -1)},
    ),
    *(
        (*OTHER_ID, dict.fromkeys(sides, other))
        for sides in (("fill", "blank"), ("blank",), ("fill",))
        for other in PADS
    ),
    (
        "<sos> and <eos> exchanged",
        "The ids are those of the arguments: sos_id before, eos_id after.",
        {"turned": True},
    ),
):
    shifts.mistake(
        name,
        why,
        when=(lambda sequences, *_: any(sequences)) if "empty" in slip else None,
    )(partial(rows, **slip))
FLOATS = "ids that are floats", "Ids are integers; an embedding takes nothing else."
shifts.mistake(*FLOATS)(
    partial(rows, form=lambda inputs, labels: (inputs.float(), labels.float()))
)

# --- the check ------------------------------------------------------------------------


@chapter.check(section="decoder-shift")
def shift_right(student: StudentFunction, seed: int = 0) -> None:
    """The example by hand, several lengths, an empty sentence, other special ids."""
    generator = seeded(seed)
    hand = (
        torch.tensor([[2, 5, 6, 7, 8, 9], [2, 6, 0, 0, 0, 0]]),
        torch.tensor([[5, 6, 7, 8, 9, 3], [6, 3, 0, 0, 0, 0]]),
    )
    on = "the example by hand"
    _judge(student, Case(on, ([[5, 6, 7, 8, 9], [6]], 2, 3), hand))
    drawn = []
    for length in (*torch.randperm(5, generator=generator).tolist(), 6):
        ids = torch.randint(10, 30, (length,), generator=generator)
        drawn.append(ids.tolist())
    on = f"{drawn}, sos_id 1, eos_id 4, pad_id 7"
    _judge(student, Case(on, (drawn, 1, 4, 7)))
    single = torch.tensor([[2]]), torch.tensor([[3]])
    _judge(student, Case("one empty sentence", ([[]], 2, 3), single))


def _judge(student: StudentFunction, case: Case) -> None:
    with shifts.accidents_named():
        got = student(*case.inputs)
    one = isinstance(got, torch.Tensor)
    why = "Two tensors are wanted: return inputs, labels."
    say = {"on": case.on, "got": show(got), "expected": "two tensors"}
    refuse_if(one, "one tensor in place of two", why, **say)
    got = several(got)
    values = isinstance(got, tuple) and expect.close(got, shifts.right(case))
    floats = values and any(each.is_floating_point() for each in got)
    refuse_if(floats, *FLOATS, **say)
    judge_parts(shifts, got, case, ("the inputs", "the labels"))
