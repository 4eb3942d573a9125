"""Causal attention for every choice: rotated or not, with shared keys or without."""

import contextlib
import re
from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F

from autograder import forbidden
from autograder.chapters.attention.oracles import weights_of
from autograder.chapters.language_model.chapter import chapter
from autograder.chapters.multi_head_attention.heads import (
    OTHER_GROUPS,
    cut,
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
    rotates: Callable = lambda rotary, shared: rotary,
    turn_q: Map = rotated,
    turn_k: Map = rotated,
    turn_v: Map = same,
    repeat: Callable = neighbours,
    repeat_values: Callable | None = None,
    values: Callable = lambda keys, turned, v: v,
    hide: Map = torch.tril,
    power: float = -0.5,
    width: Callable = lambda q: q.shape[-1],
    soften: Callable = weights_of,
    finish: Callable = lambda z, rotary: z,
) -> torch.Tensor:
    """Attend with steps done in another way.

    Args:
        q: (B, heads, T, d_k).
        k: (B, kv_heads, T, d_k).
        v: (B, kv_heads, T, d_k).
        rotary: whether queries and keys are rotated.
        rotates: whether they are, of what is asked for and whether heads are shared.
        turn_q: how queries are, if they are.
        turn_k: keys.
        turn_v: values.
        repeat: makes copies of the keys for each query head.
        repeat_values: if the values are repeated in another way.
        values: what is mixed, of the keys, rotated or not, and the values.
        hide: makes the mask of ones (T, T).
        power: of the width, by which the scores are multiplied.
        width: of the queries, what is taken for d_k.
        soften: makes weights of scores and mask.
        finish: makes the result of what is mixed.
    """
    keys, times = k, q.shape[1] // k.shape[1]
    if rotates(rotary, times > 1):
        q, k, v = turn_q(q), turn_k(k), turn_v(v)
    v = values(keys, k, v)
    k, v = repeat(k, times), (repeat_values or repeat)(v, times)
    mask = hide(torch.ones(q.shape[-2], q.shape[-2])).bool()
    return finish(soften(q @ k.mT * width(q) ** power, mask) @ v, rotary)


attention = Function("causal-attention", "causal_attention", by_torch)

# --- what goes wrong ------------------------------------------------------------------


def stated(name: str, why: str, when: Callable | None = None, **steps) -> None:
    """State a mistake that is one step done in another way."""
    attention.mistake(name, why, when=when)(partial(attend, **steps))


def _shares(q, k, v, rotary=False):
    return k.shape[1] > 1


def _rotates(q, k, v, rotary=False):
    return rotary


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
    "off by one: the next token is seen",
    CAUSAL,
    hide=lambda ones: ones.tril(1),
)
TWICE = (
    "scaled twice",
    "The scores are divided by d_k. Your scaled_dot_product_attention divides them by "
    "√d_k already: hand queries and keys over as they are.",
)
for name, why, steps in (
    (
        "scaled by √d_model in place of √d_k",
        "Scores are sums over the d_k features of one head: divide by the root of d_k.",
        {"width": lambda q: q.shape[1] * q.shape[-1]},
    ),
    (
        "scaled by the number of keys",
        "The root was taken of T, the last axis but one. The width d_k is the last.",
        {"width": lambda q: q.shape[-2]},
    ),
    (
        "the scores are not scaled",
        "The scores are not divided by √d_k. Your scaled_dot_product_attention does "
        "that.",
        {"power": 0},
    ),
    (*TWICE, {"power": -1}),
    (TWICE[0], f"{TWICE[1]} Both were divided here.", {"power": -1.5}),
    (
        "multiplied by √d_k in place of divided",
        "The scores got larger still. Divide them by √d_k.",
        {"power": 0.5},
    ),
):
    stated(name, why, **steps)
HIDDEN = "Hide the scores before the softmax: −∞ where the mask is False."
for name, why, soften in (
    (
        "masked after the softmax",
        "Set to 0 afterwards, the forbidden keys have had their share of the sum "
        "already, and the weights of a row no longer sum to 1. Hide the scores before "
        "the softmax.",
        lambda scores, mask: scores.softmax(dim=-1) * mask,
    ),
    (
        "a hidden score becomes 0, not −∞",
        f"0 is an ordinary score, so a hidden key keeps some weight. {HIDDEN}",
        lambda scores, mask: (scores * mask).softmax(dim=-1),
    ),
    (
        "mask added as 0 and 1",
        f"Adding 1 to an allowed score is a nudge, not a prohibition. {HIDDEN}",
        lambda scores, mask: (scores + mask).softmax(dim=-1),
    ),
    (
        "softmax over the wrong axis",
        "The weights sum to 1 along another axis. Each row, along the last axis, "
        "belongs to a query.",
        partial(weights_of, axis=-2),
    ),
    (
        "no softmax",
        "Scores are no weights: the softmax makes shares of them that sum to 1.",
        lambda scores, mask: scores * mask,
    ),
):
    stated(name, why, soften=soften)
BOTH_TURN = (
    "The score depends on the distance only if query and key are both rotated, each by "
    "its own position."
)
APART = (
    "Rotation and repeating are two questions: with rotary=True queries and keys are "
    "rotated whether heads are shared or not."
)


def _by_heads(x):
    return rotated(x.transpose(1, 2)).transpose(1, 2)


def _side_by_side(x):
    return cut(rotated(join(x)), x.shape[1])


def _twice(x):
    return rotated(rotated(x))


stated(
    "nothing rotated",
    "With rotary=True queries and keys go through apply_rotary before they meet.",
    _rotates,
    rotates=lambda rotary, shared: False,
)
stated(
    "nothing rotated where heads are shared",
    APART,
    lambda q, k, v, rotary=False: rotary and q.shape[1] > k.shape[1],
    rotates=lambda rotary, shared: rotary and not shared,
)
stated(
    "nothing rotated where no heads are shared",
    APART,
    lambda q, k, v, rotary=False: rotary and q.shape[1] == k.shape[1],
    rotates=lambda rotary, shared: rotary and shared,
)
stated(
    "rotated whatever is asked for",
    "With rotary=False nothing is rotated: then the model has learned positions.",
    lambda q, k, v, rotary=False: not rotary,
    rotates=lambda rotary, shared: True,
)
stated(
    "rotated only where nothing is to be",
    "rotary=True asks for the rotation; with rotary=False the model has learned "
    "positions.",
    rotates=lambda rotary, shared: not rotary,
)
for name, why, turns in (
    ("only the queries are rotated", BOTH_TURN, {"turn_k": same}),
    ("only the keys are rotated", BOTH_TURN, {"turn_q": same}),
    (
        "the values are rotated, too",
        "Positions belong into the scores. The values are what is mixed: they stay as "
        "they are.",
        {"turn_v": rotated},
    ),
    (
        "rotated twice",
        "Rotated twice, a token is at twice its position. Rotate once.",
        {"turn_q": _twice, "turn_k": _twice},
    ),
    (
        "rotated by the number of the head",
        "apply_rotary takes positions from the last axis but one. That has to be the "
        "tokens' axis: (B, heads, T, d_k), not (B, T, heads, d_k).",
        {"turn_q": _by_heads, "turn_k": _by_heads},
    ),
):
    stated(name, why, _rotates, **turns)
stated(
    "rotated before the heads are split",
    "Rates depend on the width that is rotated. Each head is rotated by itself, with "
    "the rates of d_k features, not of d_model.",
    lambda q, k, v, rotary=False: rotary and q.shape[1] > 1,
    turn_q=_side_by_side,
    turn_k=_side_by_side,
)
stated(
    "the output is rotated",
    "Rotate queries and keys, before they meet. What was mixed of the values stays as "
    "it is.",
    _rotates,
    finish=lambda z, rotary: rotated(z) if rotary else z,
)
stated(
    "the heads are merged, too",
    "The result is (B, heads, T, d_k), as the queries are: the block merges the heads.",
    finish=lambda z, rotary: join(z),
)
FROM_KEYS = (
    "output from the keys in place of the values",
    "Keys only decide the weights; what is averaged is the values.",
)
stated(*FROM_KEYS, values=lambda keys, turned, v: keys)
stated(*FROM_KEYS, values=lambda keys, turned, v: turned)
for name, why, repeats in OTHER_GROUPS:
    stated(name, why, _shares, **repeats)
TIMES = (
    "heads repeated another number of times",
    "Each of the kv heads is there for heads // kv_heads query heads: so many copies "
    "are needed, and then there are as many as queries have.",
)
stated(*TIMES, repeat=lambda x, times: neighbours(x, x.shape[1]))
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
        say = {"on": case.on, "got": show(got), "expected": "one tensor"}
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
        say = {"on": case.on, "got": f"{error.kind}: {describe_error(error)}"}
        sizes = re.search(r"\((\d+)\) must match .* \((\d+)\) at .* (\d)", error.text)
        if sizes and error.kind == "RuntimeError" and q.shape[1] > k.shape[1] > 1:
            *met, axis = map(int, sizes.groups())
            refuse_if({q.shape[1], k.shape[1]} == {*met}, *UNREPEATED, **say)
            refuse_if(axis == 1 and q.shape[1] in met, *TIMES, **say)
        raise
