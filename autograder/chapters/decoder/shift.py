"""What the decoder reads and what it is to predict: one step apart."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from autograder import expect
from autograder.chapters.decoder.chapter import chapter
from autograder.exercise.inputs import seeded
from autograder.exercise.spec import Case, Function, judge_parts
from autograder.expect import refuse_if, show
from autograder.forms import several
from autograder.interface import StudentFunction


@dataclass
class Batch:
    """Sentences and special ids, from which rows are made in any way."""

    sequences: list[list[int]]
    sos: int
    eos: int
    pad: int

    def rows(
        self, make: Callable, more: int = 1, fill: int | None = None, *, left=False
    ) -> torch.Tensor:
        """Make a row of each sentence, ``more`` wider than the longest of them."""
        width = max(map(len, self.sequences)) + more
        fill = self.pad if fill is None else fill
        made = []
        for row in ([*make(sequence)][:width] for sequence in self.sequences):
            padding = [fill] * (width - len(row))
            made.append([*padding, *row] if left else [*row, *padding])
        return torch.tensor(made)

    def inputs(self, *changes: int, **options: bool) -> torch.Tensor:
        """Make rows of <sos> and the sentence."""
        return self.rows(lambda row: [self.sos, *row], *changes, **options)

    def labels(self, *changes: int, **options: bool) -> torch.Tensor:
        """Make rows of the sentence and <eos>."""
        return self.rows(lambda row: [*row, self.eos], *changes, **options)

    def whole(self, more: int = 2) -> torch.Tensor:
        """Make rows of <sos>, the sentence and <eos>."""
        return self.rows(lambda row: [self.sos, *row, self.eos], more)

    def without_last(self) -> torch.Tensor:
        """Make labels without the <eos> of the longest sentences."""
        labels = self.labels()
        labels[:, -1] = self.pad
        return labels

    def without_empty(self) -> "Batch":
        """Leave the empty sentences out."""
        return replace(self, sequences=[row for row in self.sequences if row])

    def late(self) -> torch.Tensor:
        """Make labels with <eos> in the last column."""
        longest = max(map(len, self.sequences))

        def row(words: list[int]) -> list[int]:
            return [*words, *[self.pad] * (longest - len(words)), self.eos]

        return self.rows(row)


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


def made(name: str, why: str, *answers: Callable, when: Callable | None = None) -> None:
    """State a mistake by the two tensors that it makes of a batch."""

    def of(answer: Callable) -> Callable:
        return lambda sequences, sos, eos, pad=0: answer(
            Batch(sequences, sos, eos, pad)
        )

    for answer in answers:
        shifts.mistake(name, why, when=when)(of(answer))


made(
    "the labels are the inputs",
    "The labels are the sentence itself and <eos>, one step to the left of the inputs. "
    "With labels = inputs the answer is where the model reads, and it learns to "
    "copy.",
    lambda b: (b.inputs(), b.inputs()),
    lambda b: (b.labels(), b.labels()),
    lambda b: (b.whole(), b.whole()),
)
made(
    "inputs and labels exchanged",
    "inputs first, labels second.",
    lambda b: (b.labels(), b.inputs()),
)
made(
    "<sos> is missing",
    "Without <sos> the first label has nothing to be predicted from, and inputs and "
    "labels begin with the same token.",
    lambda b: (b.rows(list), b.labels()),
    lambda b: (b.rows(list, 0), b.labels()),
)
made(
    "<eos> is missing",
    "A model that never sees <eos> as a label never learns to stop.",
    lambda b: (b.inputs(), b.rows(list)),
    lambda b: (b.inputs(), b.rows(list, 0)),
    lambda b: (b.inputs(0), b.rows(list, 0)),
)
made(
    "<eos> is missing in the longest sentence",
    "The rows are longest + 1 wide, so <eos> fits behind the longest sentence, too: it "
    "follows the last word of every sentence.",
    lambda b: (b.inputs(), b.without_last()),
)
NEVER_READ = (
    "<eos> is the end: nothing is to be predicted after it, so the decoder never reads "
    "it. Inputs are <sos> and the sentence."
)
made(
    "<eos> among the inputs",
    NEVER_READ,
    lambda b: (b.whole(), b.labels()),
    lambda b: (b.whole(), b.labels(2)),
    lambda b: (b.whole(1), b.labels()),
)
made(
    "<eos> among the inputs",
    "Cutting the last column of the padded batch takes <eos> from the longest sentence "
    "only; the shorter ones keep it in their inputs.",
    lambda b: (b.whole()[:, :-1], b.whole()[:, 1:]),
)
made(
    "<sos> among the labels",
    "The model is not asked for <sos>: labels begin with the first word.",
    lambda b: (b.inputs(), b.whole(1)),
    lambda b: (b.inputs(), b.whole()),
    lambda b: (b.inputs(2), b.whole()),
)
made(
    "the labels are shifted twice",
    "inputs and labels are one step apart, not two: the first word is the first label.",
    lambda b: (b.inputs(), b.rows(lambda row: [*row[1:], b.eos])),
)
made(
    "an empty sentence is left out",
    "An empty sentence has a row, too: <sos> in, <eos> out.",
    lambda b: _right([row for row in b.sequences if row], b.sos, b.eos, b.pad),
    when=lambda sequences, *_: any(sequences),
)
made(
    "the axes are exchanged",
    "A row for each sentence, a column for each position: (B, T). batch_first?",
    lambda b: (b.inputs().T, b.labels().T),
)
made(
    "too wide by one",
    "Both rows hold the sentence and one special token: longest + 1.",
    lambda b: (b.inputs(2), b.labels(2)),
)
made(
    "too narrow: the longest sentence is cut",
    "Both rows hold the sentence and one special token: longest + 1.",
    lambda b: (b.inputs(0), b.labels(0)),
)
made(
    "padding on the left",
    "Fill up on the right, after the sentence.",
    lambda b: (b.inputs(left=True), b.labels(left=True)),
)
made(
    "padding on the left, and an empty sentence is left out",
    "Fill up on the right, after the sentence. An empty sentence has a row, too: <sos> "
    "in, <eos> out.",
    lambda b: (
        b.without_empty().inputs(left=True),
        b.without_empty().labels(left=True),
    ),
    when=lambda sequences, *_: any(sequences),
)
made(
    "<eos> after the padding",
    "<eos> follows the last word directly; padding comes after it.",
    lambda b: (b.inputs(), b.late()),
)
made(
    "padded with another id",
    "Fill up with pad_id, both of them.",
    lambda b: (b.inputs(1, 0), b.labels(1, 0)),
    lambda b: (b.inputs(1, b.eos), b.labels(1, b.eos)),
    lambda b: (b.inputs(1, -100), b.labels(1, -100)),
    lambda b: (b.inputs(), b.labels(1, -100)),
    lambda b: (b.inputs(1, b.eos), b.labels()),
    lambda b: (b.inputs(), b.labels(1, b.eos)),
)
made(
    "<sos> and <eos> exchanged",
    "The ids are those of the arguments: sos_id before, eos_id after.",
    lambda b: _right(b.sequences, b.eos, b.sos, b.pad),
)
FLOATS = "ids that are floats", "Ids are integers; an embedding takes nothing else."
made(*FLOATS, lambda b: (b.inputs().float(), b.labels().float()))

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
