"""Who may attend to whom: the causal mask and the padding mask."""

from collections.abc import Callable, Iterator

import torch

from autograder.chapters.attention.chapter import chapter
from autograder.exercise.inputs import draw_sizes, seeded
from autograder.exercise.spec import Case, Function
from autograder.expect import refuse
from autograder.interface import Data, StudentFunction


def lower(length: int, diagonal: int = 0) -> torch.Tensor:
    """Draw a lower triangle of True."""
    position = torch.arange(length)
    return position[:, None] + diagonal >= position[None, :]


def real(lengths: torch.Tensor, width: int) -> torch.Tensor:
    """Mark the real tokens of each sequence: (B, T)."""
    rows = [[j < length for j in range(width)] for length in lengths.tolist()]
    return torch.tensor(rows)


causal = Function("causal-mask", "causal_mask", lower)
padding = Function(
    "padding-mask", "padding_mask", lambda lengths, width: real(lengths, width)[:, None]
)

# --- what goes wrong ------------------------------------------------------------------

NUMBERS = (
    "numbers in place of True and False",
    "The course's masks are boolean. A mask of numbers invites arithmetic with the "
    "scores (0 times a score is an ordinary score, not 'never'), and ~mask fails.",
)
ADDITIVE = (
    "an additive mask of 0 and −∞",
    "The formula adds such a mask to the scores. In this course a mask is boolean, "
    "True where a query may attend; the next functions turn it into −∞ themselves.",
)
for spec in (causal, padding):
    spec.mistake(*NUMBERS)(lambda *given, spec=spec: spec.oracle(*given).float())
    spec.mistake(*ADDITIVE)(lambda *given, spec=spec: spec.oracle(*given).log())

causal.mistake(
    "upper triangle",
    "Here every token attends to itself and to the future. Row i is the query at "
    "position i; it may attend to the columns j <= i.",
)(lambda length: lower(length).T)
causal.mistake(
    "mask inverted",
    "True marks what is forbidden. In this course, as in PyTorch's "
    "scaled_dot_product_attention, True means 'may attend'.",
)(lambda length: ~lower(length))
causal.mistake(
    "off by one: the diagonal is blocked",
    "A token may attend to itself. Without the diagonal the first token would have "
    "nothing to attend to at all.",
)(lambda length: lower(length, -1))
causal.mistake(
    "only the first position sees itself",
    "Every position sees itself, not the first alone: the whole diagonal is True.",
    when=lambda length: length > 1,
)(
    lambda length: (
        lower(length, -1) | (torch.arange(length * length) == 0).view(length, -1)
    )
)
causal.mistake(
    "off by one: one future token is visible",
    "Position i sees position i + 1, the very token a decoder is to predict: such a "
    "model looks brilliant in training and fails at generation.",
)(lambda length: lower(length, 1))
causal.mistake(
    "nothing is masked",
    "Every token may attend to every other; the future must be hidden.",
)(lambda length: lower(length, length))

causal.mistake(
    "the last row is hidden by a slice of -0",
    "Nothing lies ahead of the last token, and a slice that ends at -0 ends at 0: it "
    "is empty. Row i takes the columns up to i, [: i + 1].",
)(lambda length: lower(length) & (torch.arange(length) < length - 1)[:, None])
for axes in (1, 2):
    causal.mistake(
        "axes of batch and heads in front",
        "The mask is (T, T), for one sequence and one head. It broadcasts over a batch "
        "and heads that come before these two axes.",
    )(lambda length, axes=axes: lower(length)[(None,) * axes])
causal.mistake(
    "one position too few",
    "The mask is for the positions 0 to length − 1, length of them. torch.arange stops "
    "before its end: torch.arange(length) has them all.",
)(lambda length: lower(length - 1))
causal.mistake(
    "one position too many",
    "The mask is for the positions 0 to length − 1. They are counted from 0, so length "
    "itself is none of them.",
)(lambda length: lower(length + 1))


def padded(
    lengths: torch.Tensor,
    width: int,
    *,
    wide: Callable = lambda lengths, width: width,
    until: Callable = lambda lengths, width: lengths,
    compare: Callable = torch.lt,
    order: Callable = lambda marked: marked,
    placed: Callable = lambda marked: marked[:, None],
) -> torch.Tensor:
    """Mark the real tokens by rules that can be varied.

    Args:
        lengths: (B,).
        width: of the padded batch.
        wide: the width that is taken.
        until: the first position of padding in each sequence.
        compare: compares a position with it.
        order: what is made of the marks (B, T).
        placed: brings them into the shape of the mask.
    """
    taken = wide(lengths, width)
    marked = compare(torch.arange(taken), until(lengths, width)[:, None])
    return placed(order(marked))


OFF_BY_ONE = "off by one"
ONE_LENGTH = (
    "one length for all sequences",
    "Every sequence has its own length: compare the positions with a column of them.",
)
padding.slips(
    padded,
    (
        "masks queries in place of keys",
        "The last axis of the scores is the keys', and padding must not be attended to "
        "as a key: shape (B, 1, T). With (B, T, 1) all keys stay visible, and the rows "
        "of padding have nothing to attend to.",
        {"placed": lambda marked: marked[:, :, None]},
    ),
    (
        "the axis of the queries is missing",
        "(B, T) does not line up with scores (B, T_q, T_k): broadcasting would take "
        "the batch for the queries. An axis of size 1 in the middle, (B, 1, T), serves "
        "all queries.",
        {"placed": lambda marked: marked},
    ),
    (
        "masks queries, too",
        "Only keys need hiding. Rows of padding that may attend to nothing are rows of "
        "only −∞; leave them be and ignore their output.",
        {"placed": lambda marked: marked[:, :, None] & marked[:, None]},
    ),
    (
        "the new axis stands first",
        "The batch stays in front: (B, 1, T). The axis of size 1 comes after it, where "
        "the scores (B, T_q, T_k) have their queries.",
        {"placed": lambda marked: marked[None]},
    ),
    (
        "the mask is repeated for every query",
        "An axis of size 1 serves all queries, however many there are: (B, 1, T) "
        "broadcasts, and there need not be as many queries as keys.",
        {"placed": lambda marked: marked[:, None].repeat(1, marked.shape[1], 1)},
    ),
    (
        "the future is hidden, too",
        "This mask hides padding and nothing else. Where the future is to be hidden as "
        "well, it is joined with the causal mask by &.",
        {"placed": lambda marked: marked[:, None] & lower(marked.shape[1])},
    ),
    (
        "one axis too many",
        "The scores are (B, T_q, T_k), without an axis for heads: (B, 1, T).",
        {"placed": lambda marked: marked[:, None, None]},
    ),
    (
        "sequences and positions exchanged",
        "The batch is the first axis and the positions are the last one: compare a "
        "column of lengths with a row of positions.",
        {"placed": lambda marked: marked.T[:, None]},
    ),
    (
        "mask inverted",
        "True marks the padding. In this course True means 'may attend', so it marks "
        "the real tokens (torch.nn.MultiheadAttention has it the other way round).",
        {"compare": torch.ge},
    ),
    (
        "only one position is marked",
        "A position is real if its number is smaller than the length, not equal to it.",
        {"compare": torch.eq},
    ),
    (
        OFF_BY_ONE,
        "A sequence of length n has its tokens at the positions 0 … n-1, so position n "
        "is padding already.",
        {"until": lambda lengths, width: lengths + 1},
    ),
    (
        OFF_BY_ONE,
        "A sequence of length n has its tokens at the positions 0 … n-1; position n-1 "
        "is the last real one, and it was lost.",
        {"until": lambda lengths, width: lengths - 1},
    ),
    (
        "padding on the left",
        "The real tokens come first and the padding fills up the end.",
        {"order": lambda marked: marked.flip(-1)},
    ),
    (
        "a full sequence hidden by a slice of -0",
        "Without padding the slice begins at -0, which is 0: it is the whole sequence. "
        "Count from the front, or compare torch.arange(max_length) with the length.",
        {"until": lambda lengths, width: lengths % width},
    ),
    (
        "a full sequence loses its last token",
        "A sequence that fills its row has no padding, so no position is the first of "
        "it. Compare every position with the length.",
        {"until": lambda lengths, width: lengths.clamp(max=width - 1)},
    ),
    (
        "an empty sequence is taken for a full one",
        "The last real token is at length − 1, and for a length of 0 that is -1, which "
        "Python takes for the last position. Compare every position with the length.",
        {"until": lambda lengths, width: torch.where(lengths > 0, lengths, width)},
    ),
    (
        "an empty sequence keeps a token",
        "A sequence of length 0 has no real token: its row is all False.",
        {"until": lambda lengths, width: lengths.clamp(min=1)},
    ),
    (*ONE_LENGTH, {"until": lambda lengths, width: lengths.max().expand_as(lengths)}),
    (*ONE_LENGTH, {"until": lambda lengths, width: lengths[:1].expand_as(lengths)}),
    (
        "nothing is masked",
        "All positions are marked as real; padding must not be attended to.",
        {"until": lambda lengths, width: lengths * 0 + width},
    ),
    (
        "the longest length in place of max_length",
        "The batch is max_length wide, also where no sequence is as long as that.",
        {"wide": lambda lengths, width: int(lengths.max())},
    ),
    (
        "one position too few",
        "The positions are 0 to max_length − 1, max_length of them: "
        "torch.arange(max_length) has them all.",
        {"wide": lambda lengths, width: width - 1},
    ),
    (
        "one position too many",
        "The positions are counted from 0, so max_length itself is none of them.",
        {"wide": lambda lengths, width: width + 1},
    ),
)

# --- the checks -----------------------------------------------------------------------


def expect_boolean(got: Data, on: str) -> None:
    """Name the two other kinds of mask: numbers 0 and 1, and 0 and -inf to add."""
    if isinstance(got, torch.Tensor) and got.dtype != torch.bool:
        mistake = ADDITIVE if got.isneginf().any() else NUMBERS
        refuse(*mistake, on=on, got=f"{got.dtype}", expected="torch.bool")


@chapter.check(section="attention-masks")
def causal_mask(student: StudentFunction, seed: int = 0) -> None:
    """Lower triangular, boolean, for several lengths."""
    lengths = (4, *draw_sizes(seeded(seed), 2), 1)
    student.ahead([(length,) for length in lengths])
    for length in lengths:
        got = student(length)
        on = f"causal_mask({length})"
        expect_boolean(got, on)
        causal.compare(got, Case(on, (length,), what="the mask"))


def batches(seed: int) -> Iterator[tuple[torch.Tensor, int]]:
    """Draw lengths, of which some are 0, 1 or the whole width."""
    generator = seeded(seed)
    yield torch.tensor([2, 4, 1]), 5
    batch, width = draw_sizes(generator, 2)
    drawn = torch.randint(0, width, (batch,), generator=generator)
    drawn[0] = width  # one sequence fills its row
    yield drawn, width
    yield torch.tensor([0, 1, width - 1, width]), width
    yield torch.tensor([3]), 4


@chapter.check(section="attention-padding")
def padding_mask(student: StudentFunction, seed: int = 0) -> None:
    """Shape (B, 1, T), boolean, True for real tokens, whatever the lengths."""
    asked = list(batches(seed))
    student.ahead(asked)
    for lengths, width in asked:
        on = f"padding_mask(lengths={lengths.tolist()}, max_length={width})"
        got = student(lengths, width)
        expect_boolean(got, on)
        padding.compare(got, Case(on, (lengths, width), what="the mask"))
