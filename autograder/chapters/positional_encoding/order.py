"""Equivariant or invariant: what a permutation of the tokens does to a model."""

import functools
import random
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F

from autograder.chapters.positional_encoding.chapter import chapter
from autograder.chapters.positional_encoding.forms import explaining
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.spec import Case, Function, errors_named
from autograder.expect import refuse_if, show
from autograder.interface import Data, StudentFunction


def verdict(equivariant: bool, invariant: bool) -> dict[str, bool]:
    """Write the answer."""
    return {"equivariant": equivariant, "invariant": invariant}


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.allclose(a, b, atol=1e-5)


def _invariant(outputs, permuted, permutation, same=_same) -> bool:
    return same(permuted, outputs)


def _equivariant(outputs, permuted, permutation, same=_same) -> bool:
    return outputs.ndim == 2 and same(permuted, outputs[permutation])


behaviour = Function("order-behaviour", "order_behaviour")

# --- what goes wrong ------------------------------------------------------------------


def _misread(
    name: str,
    why: str,
    *,
    equivariant: Callable = _equivariant,
    invariant: Callable = _invariant,
    when: Callable[..., bool] | None = None,
) -> None:
    """Add a mistake in which one of the two comparisons, or both, are others."""
    behaviour.mistake(name, why, when=when)(
        lambda *asked: verdict(equivariant(*asked), invariant(*asked))
    )


EXCHANGED = (
    "invariance and equivariance exchanged",
    "Equivariant: permuting the input permutes the output rows in the same way, "
    "f(RX) = R f(X).\nInvariant: the output stays as it was, f(RX) = f(X).",
)
_misread(
    *EXCHANGED,
    equivariant=_invariant,
    invariant=_equivariant,
)
for equal in (torch.equal, torch.allclose):  # allclose's own atol is 1e-8
    _misread(
        "no tolerance for rounding",
        "The two outputs differ by only 3e-7, even where they are 0. Compare with "
        "torch.allclose(..., atol=1e-5).",
        equivariant=functools.partial(_equivariant, same=equal),
        invariant=functools.partial(_invariant, same=equal),
    )
INVERSE = (
    "permuted by the inverse",
    "Row t of the permuted input is row permutation[t] of the input, so compare with "
    "outputs[permutation]. outputs_of_permuted[permutation] undoes nothing: it "
    "permutes a second time.",
)
_misread(
    *INVERSE,
    equivariant=lambda outputs, permuted, permutation: (
        outputs.ndim == 2 and _same(permuted[permutation], outputs)
    ),
)

OPPOSITES = (
    "the two treated as opposites",
    "Rows that are all alike stay so under any permutation: both hold. And where "
    "positions are added, neither may hold.",
)
FLAT = (
    "pooled output called equivariant",
    "Only an output with one row per token can be equivariant: test its shape.",
)
for called in (
    lambda outputs, permuted, permutation: (
        len(outputs) == len(permutation) and _same(permuted, outputs[permutation])
    ),
    lambda outputs, permuted, permutation: (
        _equivariant(outputs, permuted, permutation)
        or (outputs.ndim == 1 and _same(permuted, outputs))
    ),
    lambda outputs, permuted, permutation: (
        outputs.ndim == 1 or _same(permuted, outputs[permutation])
    ),
):
    _misread(*FLAT, equivariant=called)
    _misread(
        f"{EXCHANGED[0]}, and {FLAT[0]}",
        f"{EXCHANGED[1]}\n{FLAT[1]}",
        equivariant=_invariant,
        invariant=called,
    )
    _misread(
        f"{OPPOSITES[0]}, and {FLAT[0]}",
        f"{OPPOSITES[1]}\n{FLAT[1]}",
        equivariant=called,
        invariant=lambda *asked, called=called: (
            not called(*asked) and _invariant(*asked)
        ),
    )
_misread(
    f"{INVERSE[0]}, and {FLAT[0]}",
    f"{INVERSE[1]}\n{FLAT[1]}",
    equivariant=lambda outputs, permuted, permutation: (
        _same(permuted, outputs)
        if outputs.ndim == 1
        else _same(permuted[permutation], outputs)
    ),
)
INDEXED = (
    "pooled output indexed like a sequence",
    "A pooled output (d,) has no token axis: nothing can be permuted, so answer False "
    "for equivariant before indexing.",
)
_misread(
    *INDEXED,
    equivariant=lambda outputs, permuted, permutation: _same(
        permuted, outputs[permutation]
    ),
    when=lambda outputs, permuted, permutation: (
        outputs.ndim == 1 and len(outputs) < len(permutation)
    ),
)
_misread(
    "pooled output called invariant unseen",
    "Pooling alone makes no model invariant: with positions added, the words in "
    "another order give another mean. Compare the two outputs.",
    invariant=lambda outputs, permuted, permutation: (
        outputs.ndim == 1 or _same(permuted, outputs)
    ),
)

IGNORED = (
    "order of the rows ignored",
    "The outputs hold the same rows in another order. Compare row by row, not sums or "
    "sorted rows: invariance with outputs, equivariance with outputs[permutation].",
)
for part in (lambda rows: rows.sum(0), lambda rows: rows.sort(0).values):

    def _unordered(a, b, part=part):
        return _same(part(a), part(b))

    _misread(*IGNORED, invariant=functools.partial(_invariant, same=_unordered))
    _misread(*IGNORED, equivariant=functools.partial(_equivariant, same=_unordered))
    _misread(
        f"{IGNORED[0]}, and {FLAT[0]}",
        f"{IGNORED[1]}\n{FLAT[1]}",
        equivariant=lambda outputs, permuted, _, same=_unordered: same(
            outputs, permuted
        ),
    )

_misread(*OPPOSITES, equivariant=lambda *asked: not _invariant(*asked))
_misread(*OPPOSITES, invariant=lambda *asked: not _equivariant(*asked))
_misread(
    *OPPOSITES,
    equivariant=lambda *asked: not _invariant(*asked) and _equivariant(*asked),
)
_misread(
    *OPPOSITES,
    invariant=lambda *asked: not _equivariant(*asked) and _invariant(*asked),
)

# --- the check ------------------------------------------------------------------------


def _attend(x: torch.Tensor, causal: bool = False) -> torch.Tensor:
    """Self-attention with x as queries, keys and values."""
    return F.scaled_dot_product_attention(x, x, x, is_causal=causal)


def _models(length: int, width: int, positions: torch.Tensor) -> Iterator[tuple]:
    """Yield name, model, and whether it is equivariant and invariant."""
    yield (
        "mean-pooled attention",
        lambda x: _attend(x).mean(0) * (torch.arange(width) != 1),
        (False, True),
    )
    yield "self-attention without a mask", _attend, (True, False)
    yield (
        "a model that gives every token the mean of all tokens",
        lambda x: x.mean(0).expand(length, width),
        (True, True),
    )
    yield "a model that turns the sequence round", lambda x: x.flip(0), (False, False)
    yield (
        "self-attention with a causal mask",
        lambda x: _attend(x, causal=True),
        (False, False),
    )
    yield (
        "self-attention with positions added",
        lambda x: _attend(x + positions),
        (False, False),
    )
    yield (
        "mean-pooled attention with positions added",
        lambda x: _attend(x + positions).mean(0),
        (False, False),
    )
    yield (
        "a pooled output with as many features as tokens, all alike",
        lambda x: x.mean().expand(length),
        (False, True),
    )


BOTH = (
    "Make two separate comparisons, of all rows: neither, one or both of them can hold."
)
ROWS = (
    "The axes are (T, d): T tokens, then d features. outputs[permutation] takes the "
    "rows in the new order; a permutation matrix (T, T) goes on the left."
)
KEYS = (
    "Return a dict with these two keys, spelled like this: 'equivariant' and "
    "'invariant'."
)


@chapter.check(section="position-equivariance")
def order_behaviour(student: StudentFunction, seed: int = 0) -> None:
    """Compare the verdict on eight models with what is known of them."""
    draw, values = random.Random(seed), seeded(seed)
    length, width = draw.choice([5, 6, 7]), draw.choice([3, 4])
    permutation = torch.roll(torch.arange(length), 2)  # not its own inverse
    positions = normal(values, length, width)
    x = normal(values, length, width)
    for name, model, right in _models(length, width, positions):
        outputs, permuted = model(x).clone(), model(x[permutation])
        permuted = permuted + 3e-7 * normal(values, *permuted.shape)
        on = f"{name}, outputs of shape {tuple(outputs.shape)}"
        asked, expected = (outputs, permuted, permutation), verdict(*right)
        got = _answer(student, asked, on)
        behaviour.compare(got, Case(on, asked, expected, what="the verdict", why=BOTH))


def _answer(student: StudentFunction, asked: tuple, on: str) -> Data:
    """Ask; expect a dict of the two names, and True or False of each."""
    wordings = ("out of bounds", "too many indices", "must match", "be multiplied")
    pooled = asked[0].ndim == 1
    named = [(wording, *INDEXED) for wording in wordings if pooled]
    with explaining(RuntimeError=ROWS), errors_named(*named):
        got = student(*asked)
    wanted = "{'equivariant': True or False, 'invariant': True or False}"
    say = {"on": on, "got": show(got), "expected": wanted}
    entries = list(got.values()) if isinstance(got, dict) else []
    refuse_if(
        any(isinstance(each, torch.Tensor) for each in entries),
        "tensors in place of Python bools",
        "(a == b).all() is a tensor. torch.allclose returns a Python bool; bool(...) "
        "turns a one-element tensor into one.",
        **say,
    )
    refuse_if(
        None in entries,
        "None is no verdict",
        "Where equivariance is not defined, for a pooled output, the model is not "
        "equivariant: answer False.",
        **say,
    )
    by_name = isinstance(got, dict) and got.keys() == verdict(False, False).keys()
    unnamed = got is not None and not by_name
    refuse_if(unnamed, "the answers must have names", KEYS, **say)
    return got
