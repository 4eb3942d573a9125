"""Heads in a loop, and the sum that their concatenation times w_o is."""

import contextlib
import itertools
import math
from collections.abc import Callable
from functools import partial

import torch

from autograder import forbidden
from autograder.chapters.attention.oracles import torch_attention, weights_of
from autograder.chapters.multi_head_attention.chapter import (
    NO_BATCH,
    ONLY_A_BATCH,
    chapter,
    exception_named,
    judge_axes,
    pair_named,
)
from autograder.chapters.multi_head_attention.heads import (
    INTERLEAVED,
    UNMERGED,
    interleaved,
    join,
    unviewed,
)
from autograder.exercise.inputs import draw_mask, draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.expect import close, refuse, show
from autograder.interface import StudentFunction


def per_head(x_q, x_kv, w_q, w_k, w_v, mask=None) -> tuple[torch.Tensor, torch.Tensor]:
    """Compute outputs and weights of all heads, (..., h, T, d_v) and (..., h, T, T)."""
    mask = None if mask is None else mask.unsqueeze(-3)
    x_q, x_kv = x_q.unsqueeze(-3), x_kv.unsqueeze(-3)
    return torch_attention(x_q @ w_q, x_kv @ w_k, x_kv @ w_v, mask)


def _heads(*inputs) -> torch.Tensor:
    return per_head(*inputs)[0]


def _right(x_q, x_kv, w_q, w_k, w_v, w_o, mask=None):
    return join(_heads(x_q, x_kv, w_q, w_k, w_v, mask)) @ w_o


loops = Function("loop-of-heads", "loop_of_heads", _right)
sums = Function("sum-over-heads", "sum_over_heads", lambda z, w_o: join(z) @ w_o)


# --- the loop: what goes wrong --------------------------------------------------------

NO_W_O = (
    "no output projection",
    "The result is as wide as all heads side by side, and nothing mixes them: each "
    "feature still belongs to one head. Multiply by w_o, which also gives the output "
    "the width d_model again.",
)
TWICE = (
    "scaled twice",
    "The scores are divided by d_k. Your attention function divides them by √d_k "
    "already: hand the queries over as they are.",
)
SCORES = (
    "concatenation of the scores",
    "The heads' scores or weights stand side by side. What is joined are their "
    "outputs, the mixed values.",
)
SOURCES = "Queries come from x_q; keys and values come from x_kv."


def _masked(*given):
    return given[-1] is not None


def _scores(x_q, x_kv, w_q, w_k):
    return (x_q.unsqueeze(-3) @ w_q) @ (x_kv.unsqueeze(-3) @ w_k).mT


def loop_by(
    x_q,
    x_kv,
    w_q,
    w_k,
    w_v,
    w_o,
    mask,
    *,
    read=lambda x_q, x_kv: (x_q, x_kv),
    choose=lambda *matrices: matrices,
    allow=lambda mask: mask,
    width=lambda x_q, w_q: w_q.shape[-1],
    combine=lambda z, w_o: join(z) @ w_o,
):
    """Compute all heads by rules that can be varied.

    Args:
        x_q: (..., T_q, d_model).
        x_kv: (..., T_k, d_model).
        w_q: (h, d_model, d_k).
        w_k: (h, d_model, d_k).
        w_v: (h, d_model, d_v).
        w_o: (h·d_v, d_model).
        mask: broadcasts to (..., T_q, T_k), or None.
        read: gives what queries and what keys and values are made of.
        choose: gives the three matrices that are used.
        allow: gives the mask that is used.
        width: whose root the scores are divided by.
        combine: makes the result of the outputs (..., h, T_q, d_v) and w_o.
    """
    x_q, x_kv = read(x_q, x_kv)
    w_q, w_k, w_v = choose(w_q, w_k, w_v)
    allowed = allow(mask)
    allowed = None if allowed is None else allowed.unsqueeze(-3)
    scores = _scores(x_q, x_kv, w_q, w_k) / width(x_q, w_q) ** 0.5
    return combine(weights_of(scores, allowed) @ (x_kv.unsqueeze(-3) @ w_v), w_o)


for name, why, combine in (
    (*NO_W_O, lambda z, w_o: join(z)),
    (
        "only one head is used",
        "Only head 0 reaches the output. Is `return` inside the loop, or does the loop "
        "run over one head?",
        lambda z, w_o: z[..., 0, :, :] @ w_o[: z.shape[-1]],
    ),
    (
        "all heads with the matrices of head 0",
        "All heads give the same. Take w_q[head], w_k[head] and w_v[head] in the loop.",
        lambda z, w_o: join(z[..., :1, :, :].expand(z.shape)) @ w_o,
    ),
    (
        "all heads with the matrices of the last head",
        "All heads give the same. A lambda that is made in a loop looks the number up "
        "when it is called, and then it is the last one. Take w_q[head], w_k[head] and "
        "w_v[head] in the loop itself.",
        lambda z, w_o: join(z[..., -1:, :, :].expand(z.shape)) @ w_o,
    ),
    (*UNMERGED, lambda z, w_o: unviewed(z) @ w_o),
    (*INTERLEAVED, lambda z, w_o: interleaved(z) @ w_o),
    (
        "the last head comes first",
        "Rows 0 to d_v − 1 of w_o belong to head 0, so head 0 comes first.",
        lambda z, w_o: join(z.flip(-3)) @ w_o,
    ),
    (
        "the heads are averaged",
        "The outputs are divided by the number of heads. They stand side by side and "
        "keep their size.",
        lambda z, w_o: join(z) @ w_o / z.shape[-3],
    ),
):
    loops.mistake(name, why)(partial(loop_by, combine=combine))


@loops.mistake(*SCORES)
def _(x_q, x_kv, w_q, w_k, w_v, w_o, mask):
    return join(per_head(x_q, x_kv, w_q, w_k, w_v, mask)[1])


@loops.mistake(*SCORES)
def _(x_q, x_kv, w_q, w_k, w_v, w_o, mask):
    return join(_scores(x_q, x_kv, w_q, w_k)) / math.sqrt(w_q.shape[-1])


def _own(x_q, _):
    return x_q, x_q


for name, why, when, rules in (
    (
        "mask ignored",
        "The result is the one without a mask. Hand the mask on to every head.",
        _masked,
        {"allow": lambda mask: None},
    ),
    (
        "mask inverted",
        'True means "may attend", here and in scaled_dot_product_attention.',
        _masked,
        {"allow": lambda mask: None if mask is None else ~mask},
    ),
    (
        "keys and values from x_q",
        SOURCES,
        lambda x_q, x_kv, *given: given[-1] is None or x_q.shape == x_kv.shape,
        {"read": _own},
    ),
    (
        "keys and values from x_q",
        SOURCES,
        None,
        {"read": _own, "allow": lambda mask: None},
    ),
    (
        "queries from x_kv",
        SOURCES,
        lambda x_q, x_kv, *_: x_q.shape != x_kv.shape,
        {"read": lambda _, x_kv: (x_kv, x_kv), "allow": lambda mask: None},
    ),
    (
        "w_q and w_k exchanged",
        "Queries are x_q times w_q, keys are x_kv times w_k.",
        None,
        {"choose": lambda w_q, w_k, w_v: (w_k, w_q, w_v)},
    ),
    (
        "scaled by √d_model in place of √d_k",
        "A score is a sum over the d_k features of a head: divide by √d_k. Your "
        "attention function does that by itself.",
        None,
        {"width": lambda x_q, w_q: x_q.shape[-1]},
    ),
    (
        "the scores are not scaled",
        "The scores are not divided by √d_k. Your attention function does that.",
        None,
        {"width": lambda x_q, w_q: 1},
    ),
    (*TWICE, None, {"width": lambda x_q, w_q: w_q.shape[-1] ** 2}),
    (
        "the mask with an axis for the heads",
        "In the loop there is one head at a time, whose scores are (…, T_q, T_k): the "
        "mask fits as it is.",
        lambda *given: given[-1] is not None and given[-1].dim() > 2,
        {"allow": lambda mask: mask.unsqueeze(-3)},
    ),
    (
        "w_o transposed",
        "Rows times w_o: join the heads, then @ w_o. nn.functional.linear multiplies "
        "by the transpose of what it is given.",
        lambda x_q, x_kv, w_q, w_k, w_v, w_o, mask: w_o.shape[0] == w_o.shape[1],
        {"combine": lambda z, w_o: join(z) @ w_o.mT},
    ),
):
    loops.mistake(name, why, when=when)(partial(loop_by, **rules))


SAME = "Head i has w_q[i], w_k[i] and w_v[i]: all three with the same i."
for which in itertools.product((False, True), repeat=3):
    if any(which) and not all(which):

        def _first(*matrices, which=which):
            pairs = zip(matrices, which, strict=True)
            return [w[:1].expand(w.shape) if first else w for w, first in pairs]

        loops.mistake("one of the matrices is that of head 0 for all heads", SAME)(
            partial(loop_by, choose=_first)
        )
for shifts in itertools.product((-1, 0, 1), repeat=3):
    if len(set(shifts)) > 1:  # the same for all three is another order of the heads

        def _rolled(*matrices, shifts=shifts):
            return [w.roll(n, 0) for w, n in zip(matrices, shifts, strict=True)]

        loops.mistake("a matrix of another head", SAME)(
            partial(loop_by, choose=_rolled)
        )


@loops.mistake(
    "mask for the first head only",
    "Head 0 obeys the mask, the others do not. It is the same for all heads.",
    when=_masked,
)
def _(x_q, x_kv, w_q, w_k, w_v, w_o, mask):
    seen = _heads(x_q, x_kv, w_q[:1], w_k[:1], w_v[:1], mask)
    unmasked = _heads(x_q, x_kv, w_q[1:], w_k[1:], w_v[1:])
    return join(torch.cat([seen, unmasked], dim=-3)) @ w_o


@loops.mistake(
    "heads stacked in place of parallel",
    "Each head reads what the heads before it have written. Heads are parallel: all "
    "read the same x_q and x_kv.",
)
def _(x_q, x_kv, w_q, w_k, w_v, w_o, mask):
    x, total = x_q, 0
    for q, k, v, rows in zip(w_q, w_k, w_v, w_o.chunk(len(w_q)), strict=True):
        x = torch_attention(x @ q, x_kv @ k, x_kv @ v, mask)[0] @ rows
        total = total + x
    return total


# --- the sum: what goes wrong ---------------------------------------------------------


def _in_blocks(w_o: torch.Tensor, heads: int) -> torch.Tensor:
    return w_o.unflatten(0, (heads, -1))


def sum_by(
    z: torch.Tensor,
    w_o: torch.Tensor,
    *,
    cut: Callable = _in_blocks,
    add: Callable = lambda contributions: contributions.sum(-3),
) -> torch.Tensor:
    """Add up by rules that can be varied.

    Args:
        z: (…, h, T, d_v).
        w_o: (h·d_v, d_model).
        cut: makes (h, d_v, d_model) of w_o and the number of heads.
        add: makes the result of the contributions (…, h, T, d_model).
    """
    return add(z @ cut(w_o, z.shape[-3]))


def _each(part: Callable) -> Callable:
    """Cut w_o so that head i gets the part that is chosen for i, h and d_v."""

    def cut(w_o: torch.Tensor, heads: int) -> torch.Tensor:
        width = len(w_o) // heads
        return torch.stack([w_o[part(i, heads, width)] for i in range(heads)])

    return cut


MISSING = "the sum is missing"
ONE = "only one head is used"
COLUMNS = (
    "w_o cut by columns",
    "Head i owns the rows i·d_v to (i + 1)·d_v − 1 of w_o, with all their columns. A "
    "block of columns makes some features of the output, out of all heads.",
)


def _is_square(z, w_o):
    return w_o.shape[0] == w_o.shape[1]


sums.slips(
    sum_by,
    (
        MISSING,
        "The result still has an axis for the heads. Add up over it: dim=-3.",
        {"add": lambda contributions: contributions},
    ),
    (
        MISSING,
        "The contributions are stacked on a new axis. Add them up.",
        {"add": lambda contributions: contributions.movedim(-3, 0)},
    ),
    (
        "the rows of the heads overlap",
        "Head i got the rows from i on. Each head owns d_v rows, so those of head i "
        "begin at i·d_v.",
        {"cut": _each(lambda i, heads, width: slice(i, i + width))},
    ),
    (
        "summed over the tokens",
        "The tokens were added up. The heads' axis is the third from the end: dim=-3.",
        {"add": lambda contributions: contributions.sum(-2)},
    ),
    (
        "the mean over the heads",
        "The contributions are added, not averaged: side by side, then times w_o is a "
        "sum.",
        {"add": lambda contributions: contributions.mean(-3)},
    ),
    (
        "every head with the rows of head 0",
        "All heads use the first d_v rows of w_o. Head i has its own: i·d_v onwards.",
        {"cut": _each(lambda i, heads, width: slice(0, width))},
    ),
    (
        "rows dealt out in turn",
        "Head i got the rows i, i + h, … of w_o. Its rows stand together: cut w_o into "
        "(h, d_v, d_model), in this order.",
        {"cut": _each(lambda i, heads, width: slice(i, None, heads))},
    ),
    (
        "w_o reshaped in place of cut",
        "reshape fills a shape row after row, so numbers of different columns are "
        "mixed. Only the rows are cut: (h, d_v, d_model).",
        {"cut": lambda w_o, heads: w_o.reshape(heads, w_o.shape[1], -1).mT},
    ),
    (
        "the last head's rows come first",
        "Head 0 owns the first d_v rows of w_o.",
        {"cut": lambda w_o, heads: _in_blocks(w_o, heads).flip(0)},
    ),
    (
        ONE,
        "Only head 0 reaches the output. Is `return` inside the loop?",
        {"add": lambda contributions: contributions[..., 0, :, :]},
    ),
    (
        ONE,
        "Only the last head reaches the output: add each contribution to the sum of "
        "those before it.",
        {"add": lambda contributions: contributions[..., -1, :, :]},
    ),
)
for words in ("cannot be multiplied", "batch2 tensor to be"):
    sums.accident(
        words,
        "blocks of another height than d_v",
        "A head's output has d_v features, and so many rows has its block of w_o: "
        "z.shape[-1] of them, or w_o.shape[0] // heads. The columns, d_model of them, "
        "stay together.",
    )
sums.mistake(*UNMERGED)(lambda z, w_o: unviewed(z) @ w_o)
sums.slips(
    sum_by,
    (*COLUMNS, {"cut": lambda w_o, heads: _in_blocks(w_o.mT, heads)}),
    when=_is_square,
)
for axis, name_and_why in ((1, ONLY_A_BATCH), (0, NO_BATCH)):
    sums.slips(
        sum_by,
        (
            *name_and_why,
            {"add": lambda contributions, axis=axis: contributions.sum(axis)},
        ),
        when=lambda z, w_o, axis=axis: z.dim() != axis + 3,
    )
sums.slips(
    sum_by,
    (
        "the last head is left out",
        "Where does the loop end? range(h) goes from 0 to h − 1: all heads are added.",
        {"add": lambda contributions: contributions[..., :-1, :, :].sum(-3)},
    ),
    (
        "the first head is left out",
        "Where does the loop begin? Heads are counted from 0: all are added.",
        {"add": lambda contributions: contributions[..., 1:, :, :].sum(-3)},
    ),
    when=lambda z, w_o: z.shape[-3] > 2,
)

# --- the checks -----------------------------------------------------------------------


@chapter.check(section="multi-head-loop", forbidden=(forbidden.MULTI_HEAD,))
def loop_of_heads(student: StudentFunction, seed: int = 0) -> None:
    """Against PyTorch's attention, with all sizes different, masks, and by hand."""
    generator = seeded(seed)
    t_q, t_k, d_k, d_v, batch, heads = draw_sizes(generator, 6)
    d_model = heads * d_v + 1
    d_model += d_model == d_k**2  # else √d_model would be d_k
    shapes = (d_model, d_k), (d_model, d_k), (d_model, d_v)
    matrices = [normal(generator, heads, *shape) / d_model**0.5 for shape in shapes]
    matrices.append(normal(generator, heads * d_v, d_model) / d_model**0.5)
    x_q = normal(generator, batch, t_q, d_model)
    x_kv = normal(generator, batch, t_k, d_model)
    x = torch.tensor([[3.0, 5.0]])
    anything = normal(generator, 2, 2, 3)
    w_v = torch.tensor([[[1.0], [0.0]], [[0.0], [2.0]]])
    w_o = torch.tensor([[1.0, 1.0], [0.0, -1.0]])
    inputs, hand = (x, x, anything, anything, w_v, w_o), torch.tensor([[3.0, -7.0]])
    _judge_loop(student, Case("the example by hand", inputs, hand, (None,)))
    for q, kv, shape in (
        (x_q[0], x_kv[0], None),
        (x_q, x_kv, None),
        (x_q, x_kv, (batch, 1, t_k)),
        (x_q, x_q, (t_q, t_q)),
        (x_q[None], x_kv[None], (1, batch, t_q, t_k)),
    ):
        on = f"x_q {tuple(q.shape)}, x_kv {tuple(kv.shape)}, {heads} heads, "
        on += f"d_k {d_k}, d_v {d_v}" + (f", mask {shape}" if shape else "")
        if shape is None:
            _judge_loop(student, Case(on, (q, kv, *matrices), given=(None,)))
        else:
            mask = draw_mask(generator, *shape)
            _judge_loop(student, Case(on, (q, kv, *matrices, mask)))
    case = Case(f"x_q {tuple(x_q.shape)}", (x_q, x_kv, *matrices))
    cotangent = normal(generator, batch, t_q, d_model)
    loops.judge_gradient(student, case, cotangent, wrt=(0, 1, 2, 3, 4, 5))


def _judge_loop(student: StudentFunction, case: Case) -> None:
    unmasked = case.given == (None,)
    why = "There may be no mask. Ask `if mask is not None` before you change it."
    kinds = ("AttributeError", "TypeError")
    no_mask = exception_named("mask=None is not handled", why, kinds, "None")
    with pair_named(), no_mask if unmasked else contextlib.nullcontext():
        got = student(*case.inputs)
    if isinstance(got, tuple) and got and close(got[0], loops.right(case)):
        why, one = "Return the output alone, no weights.", "one tensor"
        refuse("a tuple is returned", why, on=case.on, got=show(got), expected=one)
    loops.compare(got, case)


@chapter.check(section="multi-head-sum")
def sum_over_heads(student: StudentFunction, seed: int = 0) -> None:
    """Against concatenation times w_o; each head alone; by hand; the gradient."""
    generator = seeded(seed)
    batch, length, heads, d_v, d_model, more = draw_sizes(generator, 6)
    w_o = normal(generator, heads * d_v, d_model)
    z = normal(generator, batch, heads, length, d_v)
    square = normal(generator, heads * d_v, heads * d_v)
    three = normal(generator, 3, length, d_v), normal(generator, 3 * d_v, d_model)
    for inputs in (
        (z, w_o),
        (z, square),
        (z[0], w_o),
        (normal(generator, more, *z.shape), w_o),
        three,  # with two, what leaves one out uses one only
    ):
        judge_axes(sums, student, _sum_case(*inputs), 3)
    z = torch.tensor([[[1.0, 2.0]], [[3.0, -1.0]]])
    w_o = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
    case = Case("the example by hand", (z, w_o))
    sums.judge(student, case)
    sums.judge_gradient(student, case, torch.tensor([[1.0, 10.0]]), wrt=(0, 1))


def _sum_case(z: torch.Tensor, w_o: torch.Tensor) -> Case:
    return Case(f"z {tuple(z.shape)}, w_o {tuple(w_o.shape)}", (z, w_o))
