"""Splitting into heads, and merging them."""

from collections.abc import Callable

import torch

from autograder import expect
from autograder.chapters.multi_head_attention.chapter import (
    NO_BATCH,
    ONLY_A_BATCH,
    chapter,
    judge_axes,
    refusal_named,
)
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function, squeezed
from autograder.interface import StudentFunction


def cut(x: torch.Tensor, heads: int) -> torch.Tensor:
    """Split by taking the columns of each head: (..., T, d) -> (..., h, T, d/h)."""
    width = x.shape[-1] // heads
    pieces = [x[..., i * width : (i + 1) * width] for i in range(heads)]
    return torch.stack(pieces, dim=-3)


def join(x: torch.Tensor) -> torch.Tensor:
    """Merge by concatenation: (..., h, T, d_v) -> (..., T, h·d_v)."""
    return torch.cat(x.unbind(-3), dim=-1)


def neighbours(x: torch.Tensor, times: int) -> torch.Tensor:
    """Repeat each head: (..., h, T, d) -> (..., h·times, T, d)."""
    copies = [x.select(-3, i // times) for i in range(x.shape[-3] * times)]
    return torch.stack(copies, dim=-3)


def in_turn(x: torch.Tensor, times: int) -> torch.Tensor:
    """Lay the whole row of heads again and again, which deals them out in turn."""
    return torch.cat([x] * times, dim=-3)


def _first_head(x, times):
    return torch.cat([x[..., :1, :, :]] * (times * x.shape[-3]), dim=-3)


def _average(x, times):
    return torch.cat([x.mean(-3, keepdim=True)] * (times * x.shape[-3]), dim=-3)


# how heads of keys and values can be given to the wrong heads of queries
OTHER_GROUPS = (
    (
        "kv heads dealt out in turn",
        "Query head i got the keys of head i mod kv_heads. Neighbours form a group: "
        "query head i belongs to kv head i // (heads // kv_heads), as in repeat_heads.",
        {"repeat": in_turn},
    ),
    (
        "keys and values repeated in different ways",
        "The keys' groups are right, the values' are not: query head i needs keys and "
        "values of the same head.",
        {"repeat_values": in_turn},
    ),
    (
        "all query heads with the first kv head",
        "Only kv head 0 is used: right for kv_heads = 1 only.",
        {"repeat": _first_head},
    ),
    (
        "kv heads averaged",
        "The heads of keys and values are averaged. Each serves its own group.",
        {"repeat": _average},
    ),
)


splits = Function("split-heads", "split_heads", cut)
merges = Function("merge-heads", "merge_heads", join)
merges.accident(
    "view size",
    "view of exchanged axes",
    "view wants the numbers in the order of memory. After an exchange of axes they are "
    "not: use reshape or flatten, which copy when they must.",
)


# --- split: what goes wrong -----------------------------------------------------------

VIEW = (
    "view without transpose",
    "One view or reshape goes straight to the shape (…, h, T, d/h). It reads the "
    "numbers in the order of memory, so a head gets pieces of its first tokens that "
    "pose as tokens. Cut the last axis first, (…, T, h, d/h), then exchange T and h.",
)
DEALT = (
    "features dealt out in turn",
    "Head i got the features i, i + h, i + 2h, … Head 0 has the first d/h features, "
    "side by side: cut the last axis into (h, d/h), in this order.",
)


def _has_no_batch(x: torch.Tensor, *_) -> bool:
    return x.dim() != 3


@splits.mistake(*VIEW)
def viewed(x, heads):
    """Let the numbers stay in the order of memory."""
    return x.reshape(*x.shape[:-2], heads, x.shape[-2], x.shape[-1] // heads)


@splits.mistake(*DEALT)
def dealt(x, heads):
    """Give feature c to head c mod h."""
    return torch.stack([x[..., i::heads] for i in range(heads)], dim=-3)


for name, why, answer in (
    (
        "heads and tokens not exchanged",
        "The shape is (…, T, h, d/h): the cut is right, the exchange is missing. As "
        "the product @ works on the last two axes, the tokens must be one of them.",
        lambda x, heads: x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads),
    ),
    (
        "the heads stand before the batch",
        "The pieces are right, but the heads' axis came first of all; torch.stack puts "
        "its new axis there unless you say where. It is the third from the end.",
        lambda x, heads: torch.stack(x.chunk(heads, -1)),
    ),
    (
        "features before tokens",
        "The last two axes of each head are exchanged: wanted is (…, h, T, d/h).",
        lambda x, heads: cut(x, heads).mT,
    ),
    (
        "head width and number of heads exchanged",
        "The features were cut into pieces as wide as there are heads. They are to be "
        "cut into as many pieces as there are heads.",
        lambda x, heads: cut(x, x.shape[-1] // heads),
    ),
    (
        "the last head comes first",
        "Head 0 has the first features.",
        lambda x, heads: cut(x, heads).flip(-3),
    ),
):
    splits.mistake(name, why)(answer)


@splits.mistake(
    "no axis for a single head",
    "One head is a case like others: (…, T, d) becomes (…, 1, T, d), so that whoever "
    "goes on finds the axis where it always is.",
    when=lambda x, heads: heads == 1,
)
def _(x, heads):
    return x


@splits.mistake(
    "the tokens are split in place of the features",
    "Each head got some tokens with all features. It needs all tokens with some of the "
    "features: cut the last axis.",
    when=lambda x, heads: x.shape[-2] % heads == 0,
)
def _(x, heads):
    return x.reshape(*x.shape[:-2], heads, x.shape[-2] // heads, x.shape[-1])


for axis, name_and_why, when in (
    (1, ONLY_A_BATCH, _has_no_batch),
    (0, NO_BATCH, lambda x, heads: x.dim() != 2),
):

    @splits.mistake(*name_and_why, when=when)
    def _(x, heads, axis=axis):
        parts = x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads)
        return parts.transpose(axis, axis + 1)


# --- merge: what goes wrong -----------------------------------------------------------

UNMERGED = (
    "merged without transpose",
    "One view or reshape joins what lies side by side in memory: tokens of the same "
    "head. Exchange heads and tokens first, (…, T, h, d_v), then join the last two.",
)
INTERLEAVED = (
    "heads interleaved",
    "First come the first features of all heads, then the second. A head's features "
    "stay together: join the axes in the order (h, d_v).",
)


def unviewed(x: torch.Tensor) -> torch.Tensor:
    """Let the numbers stay in the order of memory."""
    heads, length, width = x.shape[-3:]
    return x.reshape(*x.shape[:-3], length, heads * width)


def interleaved(x: torch.Tensor) -> torch.Tensor:
    """Join features and heads in the wrong order."""
    return torch.stack(x.unbind(-3), dim=-1).flatten(-2)


def merge_by(
    x: torch.Tensor,
    *,
    first: Callable = lambda x: x,
    put: Callable = join,
    then: Callable = lambda merged: merged,
) -> torch.Tensor:
    """Merge by rules that can be varied.

    Args:
        x: (…, h, T, d_v).
        first: what is done to it before.
        put: makes (…, T, h·d_v) of it.
        then: what is done to that.
    """
    return then(put(first(x)))


def _has_no_batch_of_heads(x: torch.Tensor, *_) -> bool:
    return x.dim() != 4


def _has_batch_of_heads(x: torch.Tensor, *_) -> bool:
    return x.dim() != 3


merges.slips(
    merge_by,
    (*UNMERGED, {"put": unviewed}),
    (*INTERLEAVED, {"put": interleaved}),
    (
        "the heads are added up",
        "Outputs of different heads stand side by side; their features mean different "
        "things, so they are not added.",
        {"put": lambda x: x.sum(-3)},
    ),
    (
        "the heads are averaged",
        "Outputs of different heads stand side by side; an average would throw away "
        "which head found what.",
        {"put": lambda x: x.mean(-3)},
    ),
    (
        "the heads are put below each other",
        "The result has h·T rows. There is one row for each token: join along the "
        "features, not along the tokens.",
        {"put": lambda x: torch.cat(x.unbind(-3), dim=-2)},
    ),
    (
        "tokens joined with heads",
        "After the exchange the axes are (…, T, h, d_v). The last two are to be "
        "joined, heads and features; here tokens and heads were.",
        {"put": lambda x: x.transpose(-3, -2).flatten(-3, -2)},
    ),
    (
        "tokens and features exchanged",
        "The axes to exchange are those of heads and tokens, −3 and −2; the features "
        "stay where they are.",
        {"put": lambda x: x.mT.flatten(-2)},
    ),
    (
        "the last head comes first",
        "Head 0 comes first, then head 1, and so on.",
        {"first": lambda x: x.flip(-3)},
    ),
    (
        "heads exchanged but not joined",
        "The shape is (…, T, h, d_v). Join the last two axes, for example with "
        "flatten(-2).",
        {"put": lambda x: x.transpose(-3, -2)},
    ),
)
merges.slips(
    merge_by,
    (
        "the leading axes are lost",
        "The tokens of all sequences came into one long list. Only heads and features "
        "are joined: what comes before them stays, (…, h, T, d_v) becomes "
        "(…, T, h·d_v).",
        {"then": lambda merged: merged.flatten(0, -2)},
    ),
    (*NO_BATCH, {"put": lambda x: x.transpose(0, 1).flatten(1)}),
    when=_has_batch_of_heads,
)
merges.slips(
    merge_by,
    (*squeezed("batch", "for a batch of one sequence"), {"then": torch.squeeze}),
    when=lambda x: 1 in (*x.shape[:-3], x.shape[-2]),
)
merges.slips(
    merge_by,
    (*ONLY_A_BATCH, {"put": lambda x: x.transpose(1, 2).flatten(2)}),
    when=_has_no_batch_of_heads,
)


# --- the checks -----------------------------------------------------------------------


@chapter.check(section="multi-head-split")
def split_heads(student: StudentFunction, seed: int = 0) -> None:
    """Each head's columns of all tokens; any leading axes; what cannot be divided."""
    generator = seeded(seed)
    batch, length, heads, width, more = draw_sizes(generator, 5)
    d = heads * width
    x = normal(generator, batch, length, d)
    with refusal_named(
        "a width that heads divides is refused",
        "Here heads divides the features, d % heads is 0. Is it the last axis that you "
        "test, and is it divided by heads? Raise only where something is left over.",
    ):
        judge_axes(splits, student, _split_case(x, heads), 2)
    hand = 10.0 * torch.arange(2)[:, None] + torch.arange(6)
    four = normal(generator, more, batch, length, d)
    for case in (
        Case("the example by hand, x (2, 6), heads 3", (hand, 3)),
        _split_case(x[0], heads),
        _split_case(four, heads),
    ):
        judge_axes(splits, student, case, 2)
    as_many = normal(generator, batch, 2 * heads, d)  # the tokens can be cut, too
    splits.judge(student, _split_case(as_many, heads))
    splits.judge(student, _split_case(x, 1))
    splits.judge(student, _split_case(x, d))
    uneven = normal(generator, length, d + 1)
    expect.raises(
        "ValueError",
        lambda: student(uneven, heads),
        on=f"split_heads(tensor {(length, d + 1)}, {heads})",
        why="Some features would be left over. Test d % heads yourself, and raise a "
        "ValueError that says what does not fit.",
        mistake="a width that heads does not divide is accepted",
    )
    cotangent = normal(generator, batch, heads, length, width)
    splits.judge_gradient(student, _split_case(x, heads), cotangent)


def _split_case(x: torch.Tensor, heads: int) -> Case:
    return Case(f"x {tuple(x.shape)}, heads {heads}", (x, heads))


@chapter.check(section="multi-head-merge")
def merge_heads(student: StudentFunction, seed: int = 0) -> None:
    """The heads side by side; any leading axes; the gradient."""
    generator = seeded(seed)
    batch, length, heads, width, more = draw_sizes(generator, 5)
    x = normal(generator, batch, heads, length, width)
    case = Case(f"x {tuple(x.shape)}", (x,))
    head = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    hand = torch.stack([head, 10 * head])
    five = normal(generator, more, batch, heads, length, width)
    for each in (
        case,
        Case("the example by hand, x (2, 3, 2)", (hand,)),
        Case(f"x {tuple(x[0].shape)}", (x[0],)),
        Case(f"x {tuple(five.shape)}", (five,)),
    ):
        judge_axes(merges, student, each, 3)
    one = normal(generator, batch, 1, length, width)
    merges.judge(student, Case(f"x {tuple(one.shape)}, a single head", (one,)))
    merges.judge(student, Case(f"x {tuple(x[:1].shape)}, a batch of one", (x[:1],)))
    merges.judge_gradient(
        student, case, normal(generator, batch, length, heads * width)
    )
