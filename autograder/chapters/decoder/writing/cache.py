"""Attention with a cache of earlier keys and values."""

import contextlib
import re
from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F

from autograder.chapters.decoder.writing.chapter import DEEP, chapter
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.spec import Case, Function, expect_several, judge_parts
from autograder.expect import describe_error, refuse_if, show
from autograder.interface import StudentError, StudentFunction

State = dict[str, torch.Tensor]

cached = Function("attend-cached", "attend_cached")

# --- what goes wrong ------------------------------------------------------------------


def _behind(old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    return torch.cat((old, new), dim=-2)


def _in_front(old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    return torch.cat((new, old), dim=-2)


def attend_step(
    q: torch.Tensor,
    k_new: torch.Tensor,
    v_new: torch.Tensor,
    cache: State | None,
    *,
    new_keys: Callable = lambda k: k,
    join: Callable = _behind,
    join_values: Callable | None = None,
    rows: Callable = lambda causal, new: causal[len(causal) - new :],
    scale: Callable = lambda d, length: d**-0.5,
    hide: Callable = lambda scores, mask: scores.masked_fill(~mask, -torch.inf),
    weigh: Callable = lambda scores, mask: scores.softmax(-1).nan_to_num(0.0),
    keep: Callable = lambda k, v, new: {"k": k, "v": v},
    give: Callable = lambda output, weights, cache: (output, cache),
) -> tuple:
    """Attend with a cache, by rules that can be varied.

    Args:
        q: the queries.
        k_new: the keys of the new tokens.
        v_new: their values.
        cache: of the earlier ones.
        new_keys: what is made of the new keys first.
        join: earlier and new ones.
        join_values: the same of the values, if it is another.
        rows: of a causal mask of the whole length, for so many new tokens.
        scale: the factor of the scores, from d_k and the number of keys.
        hide: the scores that are forbidden.
        weigh: weights of scores; it is told the mask as well.
        keep: the new cache, of all keys and values and how many are new.
        give: what is returned.
    """
    k, v = new_keys(k_new), v_new
    if cache is not None:
        k, v = join(cache["k"], k), (join_values or join)(cache["v"], v)
    new, length = q.shape[-2], k.shape[-2]
    mask = rows(torch.ones(length, length, dtype=torch.bool).tril(), new)
    scores = q @ k.mT * scale(q.shape[-1], length)
    weights = weigh(hide(scores, mask), mask)
    return give(weights @ v, weights, keep(k, v, new))


def _last(k: torch.Tensor, v: torch.Tensor, count: int) -> State:
    return {"k": k[..., -count:, :], "v": v[..., -count:, :]}


def _old(k: torch.Tensor, v: torch.Tensor, new: int, first: bool) -> State | None:
    """Keep what was there; at the beginning the new ones, or nothing."""
    old = k.shape[-2] - new
    if not (old or first):
        return None
    return {"k": k[..., : old or new, :], "v": v[..., : old or new, :]}


def _own(causal: torch.Tensor, new: int) -> torch.Tensor:
    """Hide the past."""
    rows = causal[len(causal) - new :].clone()
    rows[:, : len(causal) - new] = False
    return rows


def _by_root(k: torch.Tensor) -> torch.Tensor:
    return k * k.shape[-1] ** -0.5


AXIS = (
    "Keys of different lengths can only be joined along the axis of the positions, the "
    "last but one: dim=-2. Axis 1 has the heads."
)
PAST = (
    "The mask has a row for each new token and a column for each token of the text. A "
    "causal mask of the new tokens alone knows nothing of the past: take the last rows "
    "of that of the whole length."
)
FRONT = (
    "the new ones in front",
    "The new positions come after the cached ones, keys and values alike; otherwise "
    "the rows of the mask hide the wrong ones: torch.cat((old, new)).",
)
SHORT = "There are more keys than values. Append to both, and cache both."
NO_CACHE = "At the beginning there is no cache: test `cache is not None` first."
SCALED = (
    "scaled keys in the cache",
    "The cache holds the keys as they came: other code, and the next call, divides "
    "their scores by the root of d_k itself. Divide the scores, not the keys.",
)
WEIGHTS = (
    "the weights in place of the cache",
    "The second result of scaled_dot_product_attention are the weights. Return the "
    "new cache in their place, a dict.",
)
UNMASKED: dict[str, Callable] = {"hide": lambda scores, mask: scores}
cached.slips(
    attend_step,
    (
        "no mask among the new tokens",
        "Of several new tokens the first looked at the later ones. With one token at a "
        "time no mask is needed; with more, take the last rows of a causal mask.",
        UNMASKED,
    ),
    (
        "the first rows of the mask",
        "These rows belong to the oldest tokens: the new ones saw the beginning of the "
        "text and neither its end nor themselves. Take the last T_new rows.",
        {"rows": lambda causal, new: causal[:new]},
    ),
    (
        "a token does not see itself",
        "New token i attends to everything up to and including its own position. The "
        "diagonal of the causal mask is True.",
        {"rows": lambda causal, new: causal.tril(-1)[len(causal) - new :]},
    ),
    (
        "off by one: one future token is visible",
        "New token i is at position T_old + i and attends to nothing after it: the "
        "last T_new rows of a causal mask of the whole length.",
        {
            "rows": lambda causal, new: torch.ones_like(causal).tril(1)[
                len(causal) - new :
            ]
        },
    ),
    (
        "True hides",
        "In this course True means 'may attend'. PyTorch's nn.Transformer has it the "
        "other way round.",
        {"rows": lambda causal, new: ~causal[len(causal) - new :]},
    ),
    (
        "the past is hidden",
        "The new tokens attend to all earlier ones, and causally to each other: a row "
        "of the mask begins with True for each cached position.",
        {"rows": _own},
    ),
    (
        "the cache holds the new ones alone",
        "What came before is lost with the next call. Return the old keys and values "
        "with the new ones behind them.",
        {"keep": _last},
    ),
    (
        "the cache holds the last position alone",
        "Later tokens attend to all earlier positions, so the cache keeps them all.",
        {"keep": lambda k, v, new: _last(k, v, 1)},
    ),
    (
        "the cache is not used",
        "The new tokens attended to each other alone. Put the cached keys and values "
        "in front.",
        {"join": lambda old, new: new},
    ),
    (*FRONT, {"join": _in_front}),
    (*FRONT, {"join": _in_front, "join_values": _behind}),
    (*FRONT, {"join_values": _in_front}),
    *(
        (
            "the old cache is returned",
            "The next call needs the new positions, too: return what was joined.",
            {"keep": partial(_old, first=first)},
        )
        for first in (True, False)
    ),
    (
        "the scores are not scaled",
        "Attention divides the scores by the root of d_k, here as in chapter 4.",
        {"scale": lambda d, length: 1},
    ),
    *(
        (
            "scaled by another number",
            "The scores are divided by the root of d_k: the last axis of q, not its "
            "square, and not the number of keys.",
            {"scale": scale},
        )
        for scale in (
            lambda d, length: 1 / d,
            lambda d, length: d**0.5,
            lambda d, length: length**-0.5,
        )
    ),
    (*SCALED, {"new_keys": _by_root, "scale": lambda d, length: 1}),
    (*SCALED, {"new_keys": _by_root}),
    (
        "softmax over the wrong axis",
        "The weights of one query add up to 1 over the keys: the last axis.",
        {"weigh": lambda scores, mask: scores.softmax(-2).nan_to_num(0.0)},
    ),
    (
        "weights zeroed after the softmax without renormalising",
        "The forbidden keys have taken their share, so the others do not add up to 1. "
        "Put −∞ in place of forbidden scores, before the softmax.",
        {**UNMASKED, "weigh": lambda scores, mask: scores.softmax(-1) * mask},
    ),
    (
        "a hidden score becomes 0, not −∞",
        "A score of 0 is a score like others and has a weight. Put −∞ in place of "
        "forbidden scores.",
        {"hide": lambda scores, mask: scores * mask},
    ),
    (
        "keys and values exchanged in the cache",
        'cache["k"] holds keys, cache["v"] holds values.',
        {"keep": lambda k, v, new: {"k": v, "v": k}},
    ),
    (
        "output and cache exchanged",
        "First the output, then the cache.",
        {"give": lambda output, weights, cache: (cache, output)},
    ),
    (
        *WEIGHTS,
        {"give": lambda output, weights, cache: (output, weights)},
    ),
    (
        "the weights in place of the output",
        "The weights say how the values are mixed: the output is weights @ values.",
        {"give": lambda output, weights, cache: (weights, cache)},
    ),
    (
        "the pair of attention is used whole",
        "Attention returns output and weights. Take the first of the two.",
        {"give": lambda output, weights, cache: ((output, weights), cache)},
    ),
    (
        "a tuple in place of the cache",
        'The cache is a dict: {"k": keys, "v": values}.',
        {"keep": lambda k, v, new: (k, v)},
    ),
    (
        "a row for each position",
        "The mask has a row for each position of the text, but only the new ones "
        "ask. Take the last T_new rows.",
        {"rows": lambda causal, new: causal},
    ),
    (
        "the mask knows nothing of the past",
        PAST,
        {"rows": lambda causal, new: causal[:new, :new]},
    ),
    (
        "the values are not appended",
        SHORT,
        {"join_values": lambda old, new: old},
    ),
    *(
        (
            "joined along the wrong axis",
            AXIS,
            {"join": lambda old, new, axis=axis: torch.cat((old, new), axis)},
        )
        for axis in (1, -1)
    ),
)
cached.mistake("the first call has no cache", NO_CACHE)(
    lambda q, k, v, cache: attend_step(q, k, v, {"k": cache["k"], "v": cache["v"]})
)
cached.accident("NoneType", "the first call has no cache", NO_CACHE)

# --- the check ------------------------------------------------------------------------


def _cases(seed: int) -> Iterator[Case]:
    """Draw texts fed in pieces of several sizes; the past of each step is right."""
    generator = seeded(seed)
    zeros = torch.zeros(1, 1, 3, 1)
    values = torch.tensor([4.0, 8.0, 3.0]).reshape(1, 1, 3, 1)
    for pieces in ([1, 1, 1], [1, 2]):
        yield from _steps("the values 4, 8, 3 by hand", zeros, zeros, values, pieces)
    b, h, d = (torch.randperm(3, generator=generator) + 2).tolist()
    for pieces in ([6], [1] * 5, [4, 1, 1], [2, 3, 2]):
        shape = b, h, sum(pieces), d
        q, k, v = (1.5 * normal(generator, *shape) for _ in range(3))
        yield from _steps(f"a text of q, k, v {shape}", q, k, v, pieces)


def _steps(kind: str, q, k, v, pieces: list[int]) -> Iterator[Case]:
    """Cut one causal attention over the whole text into pieces."""
    whole = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    begin, cache = 0, None
    for number, size in enumerate(pieces):
        end = begin + size
        inputs = *(x[..., begin:end, :].clone() for x in (q, k, v)), cache
        on = f"{kind}, fed in pieces of {pieces}; step {number}"
        cache = {"k": k[..., :end, :].clone(), "v": v[..., :end, :].clone()}
        expected = whole[..., begin:end, :].clone(), cache
        yield Case(on, inputs, expected, tolerance=DEEP)
        begin = end


@chapter.check(section="decoder-cache")
def attend_cached(student: StudentFunction, seed: int = 0) -> None:
    """Check by hand, and against one attention, fed in pieces of several sizes."""
    names = "output", "cache"
    for case in _cases(seed):
        with _errors_named(*case.inputs):
            got = student(*case.inputs)
        got = expect_several(got, names, case.on)
        say = {"on": case.on, "got": show(got), "expected": "(a tensor, a dict)"}
        refuse_if(all(isinstance(x, torch.Tensor) for x in got), *WEIGHTS, **say)
        judge_parts(cached, got, case, ("the output", "the cache"))


@contextlib.contextmanager
def _errors_named(q: torch.Tensor, k, v, cache: State | None) -> Iterator[None]:
    """Name the mistakes that an exception gives away."""
    try:
        with cached.accidents_named():
            yield
    except StudentError as error:
        if cache is not None and error.kind == "RuntimeError":
            old = cache["k"].shape[-2]
            on = f"q {tuple(q.shape)}, a cache of {old} positions"
            say = {"on": on, "got": describe_error(error)}
            sizes = re.search(r"batch2.*\[\d+, (\d+)\].*\[\d+, (\d+)\]", error.text)
            short = bool(sizes) and int(sizes[1]) > int(sizes[2])
            refuse_if(short, "the values are not appended", SHORT, **say)
            fits = "except in dimension" in error.text or "batch2" in error.text
            refuse_if(fits, "joined along the wrong axis", AXIS, **say)
            sizes = "must match the size" in error.text or "shape" in error.text
            refuse_if(sizes, "the mask knows nothing of the past", PAST, **say)
        raise
