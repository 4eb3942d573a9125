"""Attention in tiles: equal to PyTorch's, and never with the scores of all pairs."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import torch

from autograder import forbidden
from autograder.chapters.attention.oracles import torch_attention
from autograder.chapters.attention.pairs import more_axes
from autograder.chapters.language_model.chapter import chapter
from autograder.chapters.language_model.online import online_step
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function, expect_finite
from autograder.expect import refuse_if, relying_on
from autograder.interface import StudentFunction

DEEP = 1e-4  # tolerance of scores of 10000, of which float32 keeps three digits


def shown(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Make the causal mask (T_q, T_k) of queries that are the last of T_k positions."""
    lengths = q.shape[-2], k.shape[-2]
    return torch.ones(lengths, dtype=torch.bool).tril(lengths[1] - lengths[0])


def by_torch(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    block: int,
    causal: bool = False,
) -> torch.Tensor:
    """Attend at once, in double precision; the tiles change nothing."""
    mask = shown(q, k) if causal else None
    return torch_attention(q.double(), k.double(), v.double(), mask)[0].float()


tiled = Function("tiled-attention", "tiled_attention", by_torch)


# --- what goes wrong ------------------------------------------------------------------


Rule = Callable[..., torch.Tensor]


def _softmax(scores: torch.Tensor) -> torch.Tensor:
    return scores.softmax(dim=-1).nan_to_num(0.0)


def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    block: int,
    causal: bool = False,
    *,
    sees: Rule = lambda i, j, shift, block: j <= i + shift,
    opened: Rule = lambda i, j, shift, block: j > -1,
    always: bool = False,
    visited: Callable | None = None,
    twice: Callable | None = None,
    divisor: Callable = lambda q, v: math.sqrt(q.shape[-1]),
    hide: float = -math.inf,
    beyond: bool = False,
    soften: Callable = _softmax,
    added: bool = False,
    joined: Callable | None = None,
    kept: Callable = lambda queries, block: queries,
) -> torch.Tensor:
    """Attend at once by rules that can be varied.

    Args:
        q: (..., T_q, d_k).
        k: (..., T_k, d_k).
        v: (..., T_k, d_v).
        block: positions of a tile.
        causal: whether later keys are hidden.
        sees: which keys j the queries i see if they are; ``shift`` is T_k − T_q.
        opened: which they see if they are not.
        always: whether later keys are hidden whatever is asked for.
        visited: which keys are in a tile that a query's tile goes to; of the same, and
            of causal.
        twice: which keys are met twice, of j and the block.
        divisor: of the scores, made of q and v.
        hide: the score of what is hidden.
        beyond: whether it is so in tiles that are to be skipped, too.
        soften: makes weights of scores.
        added: whether the last tile is filled up with keys of zeros.
        joined: makes a result of those of the tiles of keys, if each has its own.
        kept: how many queries there are in the end.
    """
    i, j = torch.arange(q.shape[-2]).unsqueeze(-1), torch.arange(k.shape[-2])
    shift = len(j) - len(i)
    mask = (sees if causal or always else opened)(i, j, shift, block).expand(
        len(i), len(j)
    )
    if visited:
        mask = mask & visited(i, j, shift, block, causal)
    if added:
        more = torch.full((len(i), -len(j) % block), not causal)
        mask, pad = torch.cat((mask, more), dim=-1), (0, 0, 0, more.shape[1])
        k, v = (torch.nn.functional.pad(x, pad) for x in (k, v))
    scores = (q @ k.mT / divisor(q, v)).masked_fill(~mask, hide)
    if not (beyond or math.isinf(hide)):
        scores = scores.masked_fill(_skipped(mask, block), -math.inf)
    if twice:
        scores = scores + (1 + twice(j, block).float()).log()
    size = block if joined else max(k.shape[-2], 1)
    parts = scores.split(size, dim=-1), v.split(size, dim=-2)
    outputs = [soften(one) @ values for one, values in zip(*parts, strict=True)]
    output = joined(outputs) if joined else outputs[0]
    return output[..., : kept(len(i), block), :]


def _skipped(mask: torch.Tensor, block: int) -> torch.Tensor:
    """Mark the tiles of keys behind the last key that a tile of queries sees."""
    numbers = torch.arange(1, mask.shape[-1] + 1)
    last = (mask * numbers).amax(dim=-1)
    last = torch.cat([part.amax().expand(len(part)) for part in last.split(block)])
    return (numbers - 1) // block * block >= last.unsqueeze(-1)


def _is_empty(q, k, v, block, causal=False):
    return causal and q.shape[-2] > k.shape[-2]


def _plain(scores: torch.Tensor) -> torch.Tensor:
    weights = scores.exp()
    return weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-30)


def _not_divided(scores: torch.Tensor) -> torch.Tensor:
    largest = scores.amax(dim=-1, keepdim=True)
    return (scores - largest.masked_fill(largest.isneginf(), 0.0)).exp()


def _last(i: torch.Tensor, shift: int, block: int) -> torch.Tensor:
    """Find the last key that any query of each one's tile may see."""
    return ((i // block + 1) * block).clamp(max=len(i)) - 1 + shift


def _before_the_last(i, j, shift, block, causal):
    """Go through tiles that begin before the last key that a tile of queries sees."""
    last = _last(i, shift, block) if causal else len(j) - 1
    return j // block * block < last


def _in_reach(sees, i, j, shift, block):
    """Hide wrongly in the tiles that a tile of queries goes to, which are right."""
    visited = j // block * block <= _last(i, shift, block)
    return sees(i, j, shift, block) & visited


SHORTER = (
    "the keys of the last, shorter tile are left out",
    "If block does not divide the number of keys, the last tile is shorter. "
    "range(0, T_k, block) begins it, and a slice ends where the tensor ends.",
)
EMPTY = (
    "NaN on fully masked rows",
    "A query before the first key may attend to nothing. Its sum is 0, and 0/0 is NaN: "
    "it gets 0. All other sums are at least 1.",
)
EMPTY_GRADIENT = (
    "NaN gradient on fully masked rows",
    "The output is right, the backward pass is not: it runs through a 0/0 or ∞ − ∞ "
    "that was only replaced afterwards, and NaN times 0 stays NaN. Divide by "
    "total.clamp(min=1): a sum is at least 1 unless its row is empty.",
)
IN_REACH = (  # also where tiles are rightly skipped
    "causal from the first key on",
    "off by one: the next token is seen",
    "causal ignored",
    "mask inverted",
    "keys counted from 0 in each tile",
)
NEGATIVE = (
    "a large negative number in place of −∞",
    "A query that may attend to nothing has equal scores then, and mixes keys that are "
    "all forbidden. Hide with −∞.",
)
ZERO = (
    "0 in place of −∞",
    "0 is an ordinary score, so a hidden key keeps some weight. Hide with −∞.",
)
for name, why, rules in (
    (
        "causal from the first key on",
        "The queries are the last T_q of T_k positions, as with the cache of chapter "
        "7: query i is at position T_k − T_q + i and sees the keys up to there.",
        {"sees": lambda i, j, shift, block: j <= i},
    ),
    (
        "shifted the other way",
        "Query i is at position T_k − T_q + i: with more keys than queries it is later "
        "than i, not earlier.",
        {"sees": lambda i, j, shift, block: j <= i - shift},
    ),
    (
        "a token does not see itself",
        "A query sees all keys up to and including its own position.",
        {"sees": lambda i, j, shift, block: j < i + shift},
    ),
    (
        "a token does not see itself",
        "A query sees all keys up to and including its last one, which is hidden here: "
        "what comes after it is hidden, > and not >=.",
        {
            "sees": lambda i, j, shift, block: j < i + shift,
            "opened": lambda i, j, shift, block: j < len(j) - 1,
        },
    ),
    (
        "off by one: the next token is seen",
        "Query i is at position T_k − T_q + i and sees the keys up to there, not the "
        "one after it.",
        {"sees": lambda i, j, shift, block: j <= i + shift + 1},
    ),
    (
        "causal ignored",
        "With causal=True later keys are hidden: their scores become −∞.",
        {"sees": lambda i, j, shift, block: j > -1},
    ),
    (
        "causal whatever is asked for",
        "With causal=False every query sees all keys.",
        {"always": True},
    ),
    (
        "the last key counted by the queries",
        "Without causal every query sees all T_k keys, so the last one is T_k − 1, "
        "however many queries there are.",
        {"opened": lambda i, j, shift, block: j < len(i)},
    ),
    (
        "mask inverted",
        "The keys after the query's position are to be hidden, not those before it.",
        {"sees": lambda i, j, shift, block: j > i + shift},
    ),
    (
        "keys counted from 0 in each tile",
        "The first key of a tile is at the position where the tile begins. Add "
        "that to the numbers 0, 1, 2, … before you compare.",
        {"sees": lambda i, j, shift, block: j % block <= i + shift},
    ),
    (
        "queries counted from 0 in each tile",
        "The first query of a tile is where the tile begins. Add that to the "
        "numbers 0, 1, 2, … before you compare.",
        {"sees": lambda i, j, shift, block: j <= i % block + shift},
    ),
    (
        "positions counted from 0 in each tile",
        "Positions in a tile begin where the tile begins. Compare positions "
        "in the whole text.",
        {"sees": lambda i, j, shift, block: j % block <= i % block},
    ),
    (
        "the tile on the diagonal is seen whole",
        "Of a tile that the diagonal goes through each query sees a part of its own: "
        "mask inside of it.",
        {"sees": lambda i, j, shift, block: j // block <= (i + shift) // block},
    ),
    (
        "the tile on the diagonal is skipped",
        "Skip a tile only if none of its queries sees any key. Where the diagonal goes "
        "through a tile, some keys are seen.",
        {"sees": lambda i, j, shift, block: j // block < (i + shift) // block},
    ),
    (
        "a tile that some queries see is skipped",
        "A tile of keys may be skipped only if the last query of the tile sees none of "
        "it. Yours asks the first one.",
        {
            "visited": lambda i, j, shift, block, causal: (
                (not causal) | (j // block * block <= i // block * block + shift)
            )
        },
    ),
    (
        "tiles skipped as if both texts began together",
        "The first query is at position T_k − T_q: add that where you decide which "
        "tiles are skipped, too.",
        {
            "visited": lambda i, j, shift, block, causal: (
                (not causal) | (j // block <= i // block)
            )
        },
    ),
    (
        "the tile that begins with the last key is skipped",
        "A range ends before its second number. A tile of keys counts, too, if it "
        "begins with the very last one that is seen.",
        {"visited": _before_the_last},
    ),
    (
        "the scores are not scaled",
        "Divide the scores by the root of d_k, the width of queries and keys.",
        {"divisor": lambda q, v: 1.0},
    ),
    (
        "scaled by √d_v in place of √d_k",
        "Divide by the root of d_k, the width of queries and keys.",
        {"divisor": lambda q, v: math.sqrt(v.shape[-1])},
    ),
    (
        "scaled by d_k in place of √d_k",
        "The root is missing, or the scores were divided twice.",
        {"divisor": lambda q, v: q.shape[-1]},
    ),
    (
        "multiplied by √d_k in place of divided",
        "The scores got larger still. Divide them by √d_k.",
        {"divisor": lambda q, v: 1 / math.sqrt(q.shape[-1])},
    ),
    (
        *SHORTER,
        {"visited": lambda i, j, shift, block, causal: j < len(j) // block * block},
    ),
    (
        *SHORTER,  # but for a single one
        {
            "visited": lambda i, j, shift, block, causal: (
                (j < len(j) // block * block) | (len(j) < block)
            )
        },
    ),
    (
        "the last key of each tile is left out",
        "A slice leaves out its end already: first : first + block are block keys.",
        {"visited": lambda i, j, shift, block, causal: j % block != block - 1},
    ),
    (
        "the first key of a tile is in the one before it, too",
        "A slice leaves out its end: first : first + block are block keys, and the "
        "next tile begins behind them. A key that is met twice counts twice.",
        {"twice": lambda j, block: (j > 0) & (j % block == 0)},
    ),
    (
        "not divided at the end",
        "The running output is a sum of values with weights that do not sum to 1. "
        "After the last tile divide it by the running sum.",
        {"soften": _not_divided},
    ),
    (
        "no maximum is subtracted",
        "exp(89) is too large for a float32, and exp(−10000) is 0. Let your "
        "online_step keep the running maximum.",
        {"soften": _plain},
    ),
    (*EMPTY, {"soften": lambda scores: scores.softmax(dim=-1)}),
    *((*NEGATIVE, {"hide": -1e9, "beyond": each}) for each in (False, True)),
    *((*ZERO, {"hide": 0.0, "beyond": each}) for each in (False, True)),
    (
        "each tile has a softmax of its own",
        "The weights of all tiles together sum to 1. Let maximum, sum and output go "
        "from tile to tile.",
        {"joined": sum},
    ),
    (
        "the last tile alone",
        "Each tile begins anew. Begin with nothing before the loop, and let maximum, "
        "sum and output go from tile to tile.",
        {"joined": lambda outputs: outputs[-1]},
    ),
    (
        "keys of zeros are added",
        "A key of zeros has the score 0, which is an ordinary one. Leave the last tile "
        "shorter, or hide what was added.",
        {"added": True},
    ),
    (
        "the queries of the last, shorter tile are left out",
        "If block does not divide the number of queries, the last tile is shorter, and "
        "belongs to the result as the others do.",
        {"kept": lambda queries, block: queries // block * block},
    ),
):
    tiled.mistake(name, why)(partial(attend, **rules))
    if name in IN_REACH:
        within = partial(_in_reach, rules["sees"])
        tiled.mistake(name, why)(partial(attend, sees=within))


@tiled.mistake(*EMPTY_GRADIENT, when=_is_empty)
def _(q, k, v, block, causal=False):
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    weights = _not_divided(scores.masked_fill(~shown(q, k), -math.inf))
    return (weights @ v / weights.sum(dim=-1, keepdim=True)).nan_to_num(0.0)


ALL_PAIRS = (
    "all pairs at once",
    "Somewhere there is a tensor for more than T_q × block pairs of queries and keys: "
    "of scores, of weights, or a mask. Make it tile by tile, inside the loop.",
)
ALL_KEYS = (
    "all keys at once",
    "A tile of queries meets all keys here: a text twice as long would make it twice "
    "as large. Cut the keys into tiles, too, and take an online_step for each.",
)
ALL_KEPT = (
    "the scores of all tiles are kept",
    "No tensor is too large, but all together they hold the scores of all pairs: a "
    "list of tiles, say. Let a tile go once maximum, sum and output know of it.",
)
FUTURE = (
    "tiles in the future are computed",
    "Where no query of a tile sees any of a tile's keys, there is nothing to do. A "
    "weight of 0 is no help if the value is NaN, and half of the work would be for "
    "nothing. End the loop over the keys at the last query of the tile.",
)


# --- the check ------------------------------------------------------------------------

Inputs = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def _said(q: torch.Tensor, k: torch.Tensor, block: int, causal: bool) -> str:
    lengths = f"{q.shape[-2]} queries, {k.shape[-2]} keys, tiles of {block}"
    return f"{lengths}, causal={causal}"


def _drawn(generator: torch.Generator, *shape: int, queries: int, keys: int) -> Inputs:
    """Draw q and k of the width 4, and v of the width 3."""
    return (
        2 * normal(generator, *shape, queries, 4),
        normal(generator, *shape, keys, 4),
        normal(generator, *shape, keys, 3),
    )


def _whole(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Draw whole numbers up to ±100: float32 has their products exactly."""
    return torch.randint(-100, 101, shape, generator=generator).float()


def _cases(seed: int) -> Iterator[Case]:
    """By hand, cut tiles, tiles of all sizes, empty rows, scores of ±10000."""
    q, v = torch.zeros(3, 1), torch.tensor([[4.0], [8.0], [3.0]])
    k = torch.tensor([[0.0], [0.0], [0.0]])
    right = torch.tensor([[4.0], [6.0], [5.0]])
    yield Case("the values 4, 8, 3 by hand", (q, k, v, 2, True), right)
    generator = seeded(seed)
    few, many = sorted(draw_sizes(generator, 2))
    for shape, queries, keys, block in (
        ((), 7, 11, 4),
        ((), 9, 9, 4),
        ((), 9, 6, 2),  # one tile holds an empty row and another one
        ((few, many), 10, 13, 5),
        ((many,), 6, 8, 20),
        ((), 3, 4, 1),
    ):
        drawn = _drawn(generator, *shape, queries=queries, keys=keys)
        for causal in (False, True):
            said = _said(*drawn[:2], block, causal)
            yield Case(f"{said}, q {tuple(drawn[0].shape)}", (*drawn, block, causal))
    q, k = _whole(generator, 9, 4), _whole(generator, 10, 4)
    for causal in (False, True):
        on = f"scores of ±10000, {_said(q, k, 3, causal)}"
        given = q, k, normal(generator, 10, 3), 3, causal
        yield Case(on, given, tolerance=DEEP)


def _expect_little_memory(student: StudentFunction) -> None:
    """Expect no tensor of more pairs than a tile has, and no heap of tiles."""
    queries, keys, block = 32, 320, 16
    given = torch.zeros(queries, 1), torch.zeros(keys, 1), torch.ones(keys, 1)
    for causal in (False, True):
        largest, most = student.memory(*given, block, causal)
        on = f"{_said(*given[:2], block, causal)}; widths of 1"
        allowed = queries * block
        numbers = math.prod(largest)
        refuse_if(
            numbers > 2 * allowed,
            *(ALL_KEYS if numbers < queries * keys else ALL_PAIRS),
            on=on,
            got=f"a tensor of shape {largest} on the way",
            expected=f"none with more than {queries} × {block} scores",
        )
        refuse_if(
            most > 3 * queries * keys // 4,
            *ALL_KEPT,
            on=on,
            got=f"{most:,} numbers at one time",
            expected=f"a few times {queries} × {block} = {allowed:,}",
        )


def _expect_skipped(student: StudentFunction, seed: int) -> None:
    """Expect that what stands in a tile of the future is never looked at."""
    q, k, v = _drawn(seeded(seed), queries=20, keys=20)
    k[12:], v[12:] = math.nan, math.nan
    on = f"{_said(q, k, 4, True)}; keys and values are NaN from position 12 on"
    expect_finite(student(q, k, v, 4, True)[:8], *FUTURE, on=on)


@chapter.check(
    section="language-model-tiles", forbidden=(forbidden.SCALED_DOT_PRODUCT,)
)
def tiled_attention(
    student: StudentFunction, step_student: StudentFunction, seed: int = 0
) -> None:
    """Values and gradients of PyTorch's attention, and the memory of a tile."""
    with relying_on(online_step, step_student):
        cases = list(_cases(seed))
        for case in cases:
            with more_axes(case.inputs[0].dim()):
                tiled.judge(student, case)
        _expect_little_memory(student)
        _expect_skipped(student, seed)
        generator = seeded(seed + 1)
        for case in cases:
            q, _, v, *_ = case.inputs
            cotangent = normal(generator, *q.shape[:-1], v.shape[-1])
            case = replace(case, unless_finite=EMPTY_GRADIENT)
            tiled.judge_gradient(student, case, cotangent, wrt=(0, 1, 2))
