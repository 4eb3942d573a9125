"""Causal attention for every choice: rotated or not, with shared keys or without."""

import contextlib
from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F

from autograder import forbidden
from autograder.chapters.attention.oracles import weights_of
from autograder.chapters.language_model.chapter import chapter
from autograder.chapters.multi_head_attention.heads import (
    cut,
    in_turn,
    join,
    neighbours,
)
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.expect import describe_error, refuse_if, show
from autograder.interface import StudentError, StudentFunction

Map = Callable[[torch.Tensor], torch.Tensor]

NEAR = 2e-5  # tolerance: angles and a softmax in float32
BASE = 10_000.0


def same(x: torch.Tensor) -> torch.Tensor:
    """Leave x as it is."""
    return x


def rotated(x: torch.Tensor) -> torch.Tensor:
    """Rotate pairs by complex multiplication in double precision; x (..., T, d)."""
    length, width = x.shape[-2:]
    rates = BASE ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    angles = torch.outer(torch.arange(length, dtype=torch.float64), rates)
    pairs = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    turned = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.view_as_real(turned).flatten(-2).type_as(x)


def by_torch(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rotary: bool = False
) -> torch.Tensor:
    """Attend by PyTorch's own function, which knows groups and the causal mask."""
    if rotary:
        q, k = rotated(q), rotated(k)
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    rotary: bool = False,
    *,
    turn: tuple[Map, Map, Map] = (rotated, rotated, same),
    repeat: Callable = neighbours,
    repeat_values: Callable | None = None,
    hide: Map = torch.tril,
    power: float = -0.5,
    width: Callable = lambda q: q.shape[-1],
    soften: Callable = weights_of,
) -> torch.Tensor:
    """Attend with a step done in another way.

    Args:
        q: (B, heads, T, d_k).
        k: (B, kv_heads, T, d_k).
        v: (B, kv_heads, T, d_k).
        rotary: whether queries and keys are rotated.
        turn: how queries, keys and values are, if they are.
        repeat: makes copies of the keys for each query head.
        repeat_values: if the values are repeated in another way.
        hide: makes the mask of ones (T, T).
        power: of the width, by which the scores are multiplied.
        width: of the queries, what is taken for d_k.
        soften: makes weights of scores and mask.
    """
    if rotary:
        q, k, v = (change(each) for change, each in zip(turn, (q, k, v), strict=True))
    times = q.shape[1] // k.shape[1]
    k, v = repeat(k, times), (repeat_values or repeat)(v, times)
    mask = hide(torch.ones(q.shape[-2], q.shape[-2])).bool()
    return soften(q @ k.mT * width(q) ** power, mask) @ v


attention = Function("causal-attention", "causal_attention", by_torch)

# --- what goes wrong ------------------------------------------------------------------


def stated(name: str, why: str, when: Callable | None = None, **steps) -> None:
    """State a mistake that is one step done in another way."""
    attention.mistake(name, why, when=when)(partial(attend, **steps))


def _shares(q, k, v, rotary=False):
    return k.shape[1] > 1


def _rotates(q, k, v, rotary=False):
    return rotary


def _first(x, times):
    return x[:, :1].expand(-1, times * x.shape[1], -1, -1)


def _average(x, times):
    return x.mean(1, keepdim=True).expand(-1, times * x.shape[1], -1, -1)


CAUSAL = (
    "A model that sees the next token has nothing left to learn. Hand causal_mask(T) "
    "to your attention as it is: True = may attend."
)
stated("the future is not hidden", CAUSAL, hide=same)
stated("upper triangle", CAUSAL, hide=torch.triu)
stated("mask inverted", CAUSAL, hide=lambda ones: ones.triu(1))
stated(
    "off by one: the diagonal is blocked",
    "Each position attends to itself and to those before it.",
    hide=lambda ones: ones.tril(-1),
)
stated(
    "masked after the softmax",
    "Set to 0 afterwards, the forbidden keys have had their share of the sum already, "
    "and the weights of a row no longer sum to 1. Hide the scores before the softmax.",
    soften=lambda scores, mask: scores.softmax(dim=-1) * mask,
)
stated(
    "scaled by √d_model in place of √d_k",
    "Scores are sums over the d_k features of one head: divide by the root of d_k.",
    lambda q, k, v, rotary=False: q.shape[1] > 1,
    width=lambda q: q.shape[1] * q.shape[-1],
)
stated(
    "scaled by √d_model in place of √d_k, and masked after the softmax",
    "Divide by the root of d_k, the features of one head. And hide the scores before "
    "the softmax: afterwards the weights of a row no longer sum to 1.",
    width=lambda q: q.shape[1] * q.shape[-1],
    soften=lambda scores, mask: scores.softmax(dim=-1) * mask,
)
BOTH_TURN = (
    "The score depends on the distance only if query and key are both rotated, each by "
    "its own position."
)
stated(
    "nothing rotated",
    "With rotary=True queries and keys go through apply_rotary before they meet.",
    _rotates,
    turn=(same, same, same),
)
stated("only the queries are rotated", BOTH_TURN, _rotates, turn=(rotated, same, same))
stated("only the keys are rotated", BOTH_TURN, _rotates, turn=(same, rotated, same))
stated(
    "the values are rotated, too",
    "Positions belong into the scores. The values are what is mixed: they stay as they "
    "are.",
    _rotates,
    turn=(rotated, rotated, rotated),
)


def _by_heads(x):
    return rotated(x.transpose(1, 2)).transpose(1, 2)


def _side_by_side(x):
    return cut(rotated(join(x)), x.shape[1])


stated(
    "rotated by the number of the head",
    "apply_rotary takes positions from the last axis but one. That has to be the "
    "tokens' axis: (B, heads, T, d_k), not (B, T, heads, d_k).",
    _rotates,
    turn=(_by_heads, _by_heads, same),
)
stated(
    "rotated before the heads are split",
    "Rates depend on the width that is rotated. Each head is rotated by itself, with "
    "the rates of d_k features, not of d_model.",
    lambda q, k, v, rotary=False: rotary and q.shape[1] > 1,
    turn=(_side_by_side, _side_by_side, same),
)
attention.mistake(
    "nothing rotated where heads are shared",
    "Rotation and repeating are two questions: with rotary=True queries and keys are "
    "rotated whether heads are shared or not.",
    when=lambda q, k, v, rotary=False: rotary and q.shape[1] > k.shape[1],
)(lambda q, k, v, rotary=False: attend(q, k, v))
attention.mistake(
    "nothing rotated where no heads are shared",
    "Rotation and repeating are two questions: with rotary=True queries and keys are "
    "rotated whether heads are shared or not.",
    when=lambda q, k, v, rotary=False: rotary and q.shape[1] == k.shape[1],
)(lambda q, k, v, rotary=False: attend(q, k, v))
attention.mistake(
    "the output is rotated",
    "Rotate queries and keys, before they meet. What was mixed of the values stays as "
    "it is.",
    when=_rotates,
)(lambda q, k, v, rotary=False: rotated(attend(q, k, v)))
attention.mistake(
    "rotated whatever is asked for",
    "With rotary=False nothing is rotated: then the model has learned positions.",
    when=lambda q, k, v, rotary=False: not rotary,
)(lambda q, k, v, rotary=False: attend(q, k, v, rotary=True))
stated(
    "kv heads dealt out in turn",
    "Query head i got the keys of head i mod kv_heads. Neighbours form a group: query "
    "head i belongs to kv head i // (heads // kv_heads), as in repeat_heads.",
    _shares,
    repeat=in_turn,
)
stated(
    "keys and values repeated in different ways",
    "The keys' groups are right, the values' are not: query head i needs keys and "
    "values of the same head.",
    _shares,
    repeat_values=in_turn,
)
stated(
    "all query heads with the first kv head",
    "Only kv head 0 is used: right for kv_heads = 1 only.",
    _shares,
    repeat=_first,
)
stated(
    "kv heads averaged",
    "The heads of keys and values are averaged. Each serves its own group.",
    _shares,
    repeat=_average,
)
stated(
    "missing the scaling by 1/√d_k",
    "The scores are not divided by √d_k. Your scaled_dot_product_attention does that.",
    power=0,
)
PAIR = (
    "the weights are returned, too",
    "Your attention returns output and weights. Only the output goes on: take the "
    "first of the two.",
)
UNREPEATED = (
    "keys and values are not repeated",
    "There are fewer heads of keys and values than of queries. repeat_heads gives each "
    "query head its copy; times = heads // kv_heads.",
)

# --- the check ------------------------------------------------------------------------


def _cases(seed: int) -> Iterator[Case]:
    """By hand; one, some and all heads shared; rotated or not; a single token."""
    q = k = torch.tensor([[1.0, 0.0], [1.0, 0.0]])[None, None]
    v = torch.tensor([[4.0, 0.0], [8.0, 2.0]])[None, None]
    for rotary, second in ((False, [6.0, 1.0]), (True, [6.322223, 1.161112])):
        right = torch.tensor([[4.0, 0.0], second])[None, None]
        on = f"the example by hand, rotary={rotary}"
        yield Case(on, (q, k, v, rotary), right, tolerance=NEAR)
    generator = seeded(seed)
    length = 5 + seed % 2
    for batch, heads, kv_heads, tokens, width in (
        (3, 6, 2, length, 4),
        (2, 4, 4, length + 3, 6),
        (2, 3, 1, length, 8),
        (3, 4, 2, 4, 10),  # as many tokens as heads
        (2, 4, 2, 1, 6),
    ):
        q = 1.5 * normal(generator, batch, heads, tokens, width)
        k, v = 1.5 * normal(generator, 2, batch, kv_heads, tokens, width)
        for rotary in (False, True):
            on = f"q {tuple(q.shape)}, k and v {tuple(k.shape)}, rotary={rotary}"
            yield Case(on, (q, k, v, rotary), tolerance=NEAR)


@chapter.check(
    section="language-model-block", forbidden=(forbidden.SCALED_DOT_PRODUCT,)
)
def causal_attention(student: StudentFunction, seed: int = 0) -> None:
    """By hand, and PyTorch's grouped attention, rotated or not; gradients."""
    for case in _cases(seed):
        with _unrepeated_named(case):
            got = student(*case.inputs)
        say = {"on": case.on, "got": show(got)[:200], "expected": "one tensor"}
        refuse_if(isinstance(got, tuple), *PAIR, **say)
        attention.compare(got, case)
    generator = seeded(seed + 1)
    q, cotangent = normal(generator, 2, 2, 4, 5, 6)
    k, v = normal(generator, 2, 2, 2, 5, 6)
    case = Case(f"q {tuple(q.shape)}, k and v {tuple(k.shape)}", (q, k, v, True))
    attention.judge_gradient(student, case, cotangent, wrt=(0, 1, 2))


@contextlib.contextmanager
def _unrepeated_named(case: Case) -> Iterator[None]:
    """Name the mistake behind a call that fails only where heads are shared."""
    try:
        yield
    except StudentError as error:
        q, k, *_ = case.inputs
        sizes = error.kind == "RuntimeError" and "must match the size" in error.text
        say = {"on": case.on, "got": f"{error.kind}: {describe_error(error)}"}
        refuse_if(sizes and q.shape[1] > k.shape[1] > 1, *UNREPEATED, **say)
        raise
