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
from autograder.expect import describe_error, refuse_if
from autograder.interface import StudentError, StudentFunction

State = dict[str, torch.Tensor]

cached = Function("attend-cached", "attend_cached")

# --- what goes wrong ------------------------------------------------------------------


def attend_step(
    q: torch.Tensor,
    k_new: torch.Tensor,
    v_new: torch.Tensor,
    cache: State | None,
    *,
    join: Callable = lambda old, new: torch.cat((old, new), dim=-2),
    join_values: Callable | None = None,
    rows: str = "last",
    scaled: bool = True,
    give: Callable = lambda output, weights, k, v: (output, {"k": k, "v": v}),
) -> tuple:
    """Attend with a cache, by rules that can be varied."""
    k, v = k_new, v_new
    if cache is not None:
        k, v = join(cache["k"], k), (join_values or join)(cache["v"], v)
    new, length = q.shape[-2], k.shape[-2]
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    mask = {
        "last": causal[length - new :],
        "first": causal[:new],
        "all": causal,
        "none": causal | True,
        "own": causal[:new, :new],
        "strict": causal.tril(-1)[length - new :],
        "hidden": ~causal[length - new :],
    }[rows]
    scores = q @ k.mT / (q.shape[-1] ** 0.5 if scaled else 1)
    if rows == "none":
        mask = torch.ones_like(scores, dtype=torch.bool)
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1).nan_to_num(0.0)
    return give(weights @ v, weights, k, v)


def _last(k: torch.Tensor, v: torch.Tensor, count: int) -> State:
    return {"k": k[..., -count:, :], "v": v[..., -count:, :]}


AXIS = (
    "Keys of different lengths can only be joined along the axis of the positions, the "
    "last but one: dim=-2. Axis 1 has the heads."
)
PAST = (
    "The mask has a row for each new token and a column for each token of the text. A "
    "causal mask of the new tokens alone knows nothing of the past: take the last rows "
    "of that of the whole length."
)
SHORT = "There are more keys than values. Append to both, and cache both."
NO_CACHE = "At the beginning there is no cache: test `cache is not None` first."

cached.mistake(
    "no mask among the new tokens",
    "Of several new tokens the first looked at the later ones. With one token at a "
    "time no mask is needed; with more, take the last rows of a causal mask.",
)(partial(attend_step, rows="none"))
cached.mistake(
    "the first rows of the mask",
    "These rows belong to the oldest tokens: the new ones saw the beginning of the "
    "text and neither its end nor themselves. Take the last T_new rows.",
)(partial(attend_step, rows="first"))
cached.mistake(
    "a token does not see itself",
    "New token i attends to everything up to and including its own position. The "
    "diagonal of the causal mask is True.",
)(partial(attend_step, rows="strict"))
cached.mistake(
    "True hides",
    "In this course True means 'may attend'. PyTorch's nn.Transformer has it the "
    "other way round.",
)(partial(attend_step, rows="hidden"))
cached.mistake(
    "the cache holds the new ones alone",
    "What came before is lost with the next call. Return the old keys and values "
    "with the new ones behind them.",
)(partial(attend_step, give=lambda out, _, k, v: (out, _last(k, v, out.shape[-2]))))
cached.mistake(
    "the cache holds the last position alone",
    "Later tokens attend to all earlier positions, so the cache keeps them all.",
)(partial(attend_step, give=lambda out, _, k, v: (out, _last(k, v, 1))))
cached.mistake(
    "the cache is not used",
    "The new tokens attended to each other alone. Put the cached keys and values "
    "in front.",
)(partial(attend_step, join=lambda old, new: new))
cached.mistake(
    "the new ones in front",
    "The new positions come after the cached ones; otherwise the rows of the mask "
    "hide the wrong keys: torch.cat((old, new)).",
)(partial(attend_step, join=lambda old, new: torch.cat((new, old), dim=-2)))
cached.mistake(
    "the scores are not scaled",
    "Attention divides the scores by the root of d_k, here as in chapter 4.",
)(partial(attend_step, scaled=False))
cached.mistake(
    "keys and values exchanged in the cache",
    'cache["k"] holds keys, cache["v"] holds values.',
)(partial(attend_step, give=lambda out, _, k, v: (out, {"k": v, "v": k})))

cached.mistake("output and cache exchanged", "First the output, then the cache.")(
    lambda *given: attend_step(*given)[::-1]
)
cached.mistake(
    "the weights in place of the cache",
    "The second result of scaled_dot_product_attention are the weights. Return the "
    "new cache in their place, a dict.",
)(partial(attend_step, give=lambda out, weights, *_: (out, weights)))
cached.mistake(
    "the pair of attention is used whole",
    "Attention returns output and weights. Take the first of the two.",
)(
    partial(
        attend_step, give=lambda out, weights, k, v: ((out, weights), {"k": k, "v": v})
    )
)
cached.mistake(
    "a row for each position",
    "The mask has a row for each position of the text, but only the new ones "
    "ask. Take the last T_new rows.",
)(partial(attend_step, rows="all"))
cached.mistake("the mask knows nothing of the past", PAST)(
    partial(attend_step, rows="own")
)
cached.mistake("the values are not appended", SHORT)(
    partial(attend_step, join_values=lambda old, new: old)
)
for axis in (1, -1):
    cached.mistake("joined along the wrong axis", AXIS)(
        partial(
            attend_step, join=lambda old, new, axis=axis: torch.cat((old, new), axis)
        )
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
