"""Equivariant or invariant: what a permutation of the tokens does to a model."""

import functools
import random
from collections.abc import Callable

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


behaviour = Function("order-behaviour", "order_behaviour")

# --- what goes wrong ------------------------------------------------------------------

Compare = Callable[[torch.Tensor, torch.Tensor], bool]


def judged(
    outputs: torch.Tensor,
    permuted: torch.Tensor,
    permutation: torch.Tensor,
    *,
    alike: Compare = _same,
    moved: Compare = _same,
    reorder: Callable = lambda outputs, permuted, order: (permuted, outputs[order]),
    pooled: Callable = lambda outputs, permuted, order, same: False,
    unseen: bool | None = None,
    both: Callable = lambda equivariant, invariant: (equivariant, invariant),
) -> dict[str, bool]:
    """Judge with slips, which may be several.

    Args:
        outputs: as in the exercise.
        permuted: the outputs of what was permuted.
        permutation: the order.
        alike: how the outputs are compared for invariance.
        moved: the same for equivariance.
        reorder: what is compared for it.
        pooled: whether a pooled output is equivariant.
        unseen: whether it is invariant, if nobody looks.
        both: the two answers, from both comparisons.
    """
    flat = outputs.ndim == 1
    given = outputs, permuted, permutation
    return verdict(
        *both(
            pooled(*given, moved) if flat else moved(*reorder(*given)),
            alike(permuted, outputs) if unseen is None or not flat else unseen,
        )
    )


def _summed(a: torch.Tensor, b: torch.Tensor) -> bool:
    return _same(a.sum(0), b.sum(0))


def _sorted(a: torch.Tensor, b: torch.Tensor) -> bool:
    return _same(a.sort(0).values, b.sort(0).values)


EXCHANGED = (
    "invariance and equivariance exchanged",
    "Equivariant: permuting the input permutes the output rows in the same way, "
    "f(RX) = R f(X).\nInvariant: the output stays as it was, f(RX) = f(X).",
)
TOLERANCE = (
    "no tolerance for rounding",
    "The two outputs differ by only 3e-7, even where they are 0. Compare with "
    "torch.allclose(..., atol=1e-5).",
)
WIDE = (
    "a tolerance that is too wide",
    "Rounding makes differences of less than 1e-5. With a wider tolerance positions "
    "that act weakly are overlooked.",
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
INDEXED = (
    "pooled output indexed like a sequence",
    "A pooled output (d,) has no token axis: nothing can be permuted, so answer False "
    "for equivariant before indexing.",
)
IGNORED = (
    "order of the rows ignored",
    "The outputs hold the same rows in another order. Compare row by row, not sums or "
    "sorted rows: invariance with outputs, equivariance with outputs[permutation].",
)
CANCEL = (
    "differences that cancel each other",
    "Differences of both signs add up to 0, though the outputs differ. Take their "
    "absolute values, or torch.allclose.",
)
ENOUGH = (
    "one equal number is enough",
    "All numbers have to agree: .all, not .any, or torch.allclose.",
)
NEGATIVE = (
    "negative differences pass",
    "A negative difference is below every limit, however large it is: take absolute "
    "values before the largest, or torch.allclose.",
)
WAYS: dict[tuple[str, str], tuple[Compare, ...]] = {  # of comparing
    WIDE: (
        lambda a, b: torch.allclose(a, b, atol=1e-2),
        lambda a, b: torch.allclose(a, b, atol=1e-1),
    ),
    IGNORED: (_summed, _sorted),
    CANCEL: (
        lambda a, b: abs(float((a - b).mean())) < 1e-5,
        lambda a, b: float((a - b).mean()) < 1e-5,
    ),
    NEGATIVE: (
        lambda a, b: float((a - b).max()) < 1e-5,
        lambda a, b: float((b - a).max()) < 1e-5,
    ),
    ENOUGH: (lambda a, b: bool(torch.isclose(a, b, atol=1e-5).any()),),
    TOLERANCE: (torch.allclose,),  # its own atol is 1e-8; == says the same here
}
behaviour.slips(
    judged,
    (*EXCHANGED, {"both": lambda equivariant, invariant: (invariant, equivariant)}),
    *(
        (*way, dict.fromkeys(which, same))
        for way, answers in WAYS.items()
        for same in answers
        for which in (("alike", "moved"), ("alike",), ("moved",))
        if way is IGNORED or len(which) > 1
    ),
    (
        "nothing is reordered",
        "For equivariance the new outputs are compared with the old rows in the new "
        "order, outputs[permutation].",
        {"reorder": lambda outputs, permuted, order: (permuted, outputs)},
    ),
    (
        "permuted by the inverse",
        "Row t of the permuted input is row permutation[t] of the input, so compare "
        "with outputs[permutation]. outputs_of_permuted[permutation] undoes nothing: "
        "it permutes a second time.",
        {"reorder": lambda outputs, permuted, order: (permuted[order], outputs)},
    ),
    *(
        (*OPPOSITES, {"both": both})
        for both in (
            lambda equivariant, invariant: (not invariant, invariant),
            lambda equivariant, invariant: (equivariant, not equivariant),
            lambda equivariant, invariant: (equivariant and not invariant, invariant),
            lambda equivariant, invariant: (equivariant, invariant and not equivariant),
        )
    ),
    *(
        (*FLAT, {"pooled": pooled})
        for pooled in (
            lambda outputs, permuted, order, same: (
                len(outputs) == len(order) and same(permuted, outputs[order])
            ),
            lambda outputs, permuted, order, same: same(permuted, outputs),
            lambda outputs, permuted, order, same: True,
        )
    ),
    (
        "pooled output called invariant unseen",
        "Pooling alone makes no model invariant: with positions added, the words in "
        "another order give another mean. Compare the two outputs.",
        {"unseen": True},
    ),
    (
        "pooled output never called invariant",
        "A pooled output is compared as it is: invariance needs no rows.",
        {"unseen": False},
    ),
)
behaviour.mistake(
    *INDEXED,
    when=lambda outputs, permuted, permutation: (
        outputs.ndim == 1 and len(outputs) < len(permutation)
    ),
)(
    functools.partial(
        judged,
        pooled=lambda outputs, permuted, order, same: same(permuted, outputs[order]),
    )
)

# --- the check ------------------------------------------------------------------------


def _attend(x: torch.Tensor, causal: bool = False) -> torch.Tensor:
    """Self-attention with x as queries, keys and values."""
    return F.scaled_dot_product_attention(x, x, x, is_causal=causal)


def _models(
    length: int, width: int, positions: torch.Tensor
) -> dict[str, tuple[Callable, bool, bool]]:
    """Give models by name, and whether each is equivariant and invariant."""
    kept = torch.arange(width) != 1  # one feature is always 0
    weak = 0.01 * positions

    def later(x: torch.Tensor) -> torch.Tensor:
        return (x.sum(1) * torch.arange(length)).sum().expand(width)

    return {
        "mean-pooled attention": (lambda x: _attend(x).mean(0) * kept, False, True),
        "self-attention without a mask": (lambda x: _attend(x) * kept, True, False),
        "a model that gives every token the mean of all tokens": (
            lambda x: (x.mean(0) * kept).expand(length, width),
            True,
            True,
        ),
        "a model that turns the sequence round": (lambda x: x.flip(0), False, False),
        "self-attention with a causal mask": (
            lambda x: _attend(x, causal=True) * kept,
            False,
            False,
        ),
        "self-attention with positions added": (
            lambda x: _attend(x + positions),
            False,
            False,
        ),
        "self-attention with positions added, and each row brought to mean 0": (
            lambda x: F.layer_norm(_attend(x + positions), (width,)),
            False,
            False,
        ),
        "self-attention with weak positions added": (
            lambda x: _attend(x + 0.1 * weak),
            False,
            False,
        ),
        "mean-pooled attention with positions added": (
            lambda x: _attend(x + positions).mean(0),
            False,
            False,
        ),
        "mean-pooled attention with weak positions added": (
            lambda x: _attend(x + weak).mean(0),
            False,
            False,
        ),
        "later tokens count for more": (later, False, False),
        "later tokens count for less": (lambda x: -later(x), False, False),
        "a pooled output with as many features as tokens, all of them 0": (
            lambda x: x.new_zeros(length),
            False,
            True,
        ),
    }


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
    """Compare the verdict on thirteen models with what is known of them."""
    draw, values = random.Random(seed), seeded(seed)
    length, width = draw.choice([5, 6, 7]), draw.choice([3, 4])
    permutation = torch.roll(torch.arange(length), 2)  # not its own inverse
    positions = normal(values, length, width)
    x = normal(values, length, width)
    for name, (model, *right) in _models(length, width, positions).items():
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
