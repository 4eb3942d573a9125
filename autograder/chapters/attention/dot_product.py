"""Scaled dot-product attention: the formula that gives the chapter its name."""

import math
from collections.abc import Callable, Iterator
from functools import partial

import torch
import torch.nn.functional as F

from autograder import expect, forbidden
from autograder.chapters.attention import masking
from autograder.chapters.attention.chapter import chapter
from autograder.chapters.attention.masking import (
    EMPTY,
    EMPTY_GRADIENT,
    masked,
    masked_by,
)
from autograder.chapters.attention.oracles import (
    Pair,
    attend,
    torch_attention,
    weights_of,
)
from autograder.chapters.attention.pairs import (
    MORE_AXES,
    judge_pair,
    mistakes_in_returning,
    more_axes,
)
from autograder.chapters.attention.weights import ONE_BY_ONE, UNSTABLE
from autograder.exercise.inputs import draw_mask, draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function, Known, foreseen
from autograder.interface import Data, StudentFunction

PYTORCHS_OWN = (forbidden.SCALED_DOT_PRODUCT, forbidden.MULTI_HEAD)

attention = Function(
    "scaled-dot-product-attention", "scaled_dot_product_attention", torch_attention
)

# --- what goes wrong ------------------------------------------------------------------


def root_of_width(q: torch.Tensor, *_: torch.Tensor) -> float:
    """Compute √d_k."""
    return math.sqrt(q.shape[-1])


def attention_by(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | None = None,
    *,
    compare: Callable = lambda q, k: q @ k.mT,
    divisor: Callable = root_of_width,
    weigh: Callable = masked_by,
    then: Callable = lambda weights, q: weights,
    mix: Callable = lambda found, k, v: found["weights"] @ v,
    shown: Callable = lambda found: found["weights"],
    **rules: Data,
) -> Pair:
    """Attend by rules that can be varied.

    Args:
        q: (…, T_q, d_k).
        k: (…, T_k, d_k).
        v: (…, T_k, d_v).
        mask: broadcasts to (…, T_q, T_k).
        compare: makes the scores of queries and keys.
        divisor: of the scores, made of q, k and v.
        weigh: makes weights of scores and mask.
        then: what is made of the weights before they are used.
        mix: makes the output of what is found, keys and values.
        shown: what is returned as weights, of what is found.
        rules: of ``masked_by``.
    """
    products = compare(q, k)
    scores = products / divisor(q, k, v)
    weights = then(weigh(scores, mask, **rules), q)
    found = {"products": products, "scores": scores, "mask": mask, "weights": weights}
    return mix(found, k, v), shown(found)


def without_mask(found: dict) -> torch.Tensor:
    """Compute the weights of all keys."""
    return weights_of(found["scores"])


THE_LAST = "second last axis. The width d_k is the last."
TWO_AXES = "only works for 2-D inputs", MORE_AXES
SCORES_SHOWN = (
    "scores returned in place of weights",
    "The second result is what the softmax gives: rows that sum to 1.",
)
attention.slips(
    attention_by,
    (
        "the scores are not scaled",
        "A score is a sum of d_k products, so it grows with √d_k. Divide the scores by "
        "√d_k before the softmax.",
        {"divisor": lambda q, k, v: 1.0},
    ),
    (
        "scaled by √d_v in place of √d_k",
        "A score is a sum over the d_k features of query and key; the width d_v of the "
        "values plays no part in it. Take the width from q or k.",
        {"divisor": lambda q, k, v: math.sqrt(v.shape[-1])},
    ),
    (
        "scaled by d_k in place of √d_k",
        "The root is missing, or 1/√d_k was applied twice. The variance of a score is "
        "d_k, so its spread is √d_k; dividing by d_k makes all weights nearly equal.",
        {"divisor": lambda q, k, v: q.shape[-1]},
    ),
    (
        "multiplied by √d_k in place of divided",
        "The scores got larger still. Divide them by √d_k.",
        {"divisor": lambda q, k, v: 1 / root_of_width(q)},
    ),
    (
        "the root is cut down to a whole number",
        "math.isqrt, // and int(...) drop what stands after the point: √6 is 2.449, "
        "not 2. Take math.sqrt.",
        {"divisor": lambda q, k, v: math.isqrt(q.shape[-1])},
    ),
    (
        "the divisor of the example by hand",
        "There d_k is 4, and its root 2. The width of other queries is another: take "
        "it from q.",
        {"divisor": lambda q, k, v: 2.0},
    ),
    (
        "scaled by the number of keys",
        f"The root was taken of T_k, the {THE_LAST}",
        {"divisor": lambda q, k, v: math.sqrt(k.shape[-2])},
    ),
    (
        "scaled by the number of queries",
        f"The root was taken of T_q, the {THE_LAST}",
        {"divisor": lambda q, k, v: math.sqrt(q.shape[-2])},
    ),
    (
        "scaled by the length of the first axis",
        "The first axis counts sequences, or queries. The width d_k is the last.",
        {"divisor": lambda q, k, v: math.sqrt(len(q))},
    ),
    (*TWO_AXES, {"divisor": lambda q, k, v: math.sqrt(q.shape[1])}),
    (*TWO_AXES, {"divisor": lambda q, k, v: math.sqrt(k.shape[1])}),
    (*TWO_AXES, {"compare": lambda q, k: q @ k.transpose(0, 1)}),
    (
        "scaled after the softmax",
        "The rows no longer sum to 1. The division tames the scores, so it comes "
        "before the softmax.",
        {
            "divisor": lambda q, k, v: 1.0,
            "then": lambda weights, q: weights / root_of_width(q),
        },
    ),
    (
        "queries and keys exchanged",
        "Row i of the scores belongs to query i, column j to key j: shape (…, T_q, "
        "T_k). K Qᵀ is its transpose, and its softmax sums over the queries.",
        {"compare": lambda q, k: k @ q.mT},
    ),
    (
        "keys not transposed",
        "Q K multiplies queries by the columns of K, which are no keys, and fails "
        "where T_k and d_k differ. The scores are Q Kᵀ.",
        {"compare": torch.matmul},
    ),
    (
        "queries and keys scaled to length 1",
        "These are cosines. The lengths of query and key have their say: divide by "
        "√d_k and by nothing else.",
        {"compare": lambda q, k: F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT},
    ),
)


def shows(known: Known, q, k, v, mask=None) -> bool:
    """Whether a mistake with masks shows; q has as many axes as the scores."""
    return known.when is None or known.when(q, mask)


for known in masked.mistakes:
    rules = getattr(known.answer, "keywords", {"weigh": known.answer})
    attention.mistake(known.name, known.why, when=partial(shows, known))(
        partial(attention_by, **rules)
    )


def _in_steps(scores, mask=None):
    powers = scores.exp() if mask is None else scores.exp() * mask
    return powers / powers.sum(-1, keepdim=True).clamp(min=1e-30)


attention.slips(
    attention_by,
    (*UNSTABLE, {"weigh": _in_steps}),
    (
        "mask transposed",
        "Row i of the mask belongs to query i, as in the scores. Use it as it is.",
        {"seen": lambda mask: mask.mT},
    ),
    (
        "output from the keys in place of the values",
        "The output has d_k features in place of d_v. Keys only decide the weights; "
        "what is averaged is the values.",
        {"mix": lambda found, k, v: found["weights"] @ k},
    ),
    (
        "values mixed by columns",
        "The output is a mix of the rows of V, one row per token: weights times V, "
        "without a transpose.",
        {"mix": lambda found, k, v: found["weights"] @ v.mT},
    ),
    (
        "weights transposed before mixing",
        "Row i of the weights mixes the values for query i; the transpose would mix "
        "with numbers that do not sum to 1.",
        {"mix": lambda found, k, v: found["weights"].mT @ v},
    ),
    (
        "the scores are mixed in place of the weights",
        "Scores do not sum to 1. The values are mixed with the weights that the "
        "softmax made of them.",
        {"mix": lambda found, k, v: found["scores"] @ v},
    ),
    (
        "the mean of the values in place of their mix",
        "Each query has weights of its own: multiply the values by them.",
        {"mix": lambda found, k, v: v.mean(-2, True).expand_as(found["weights"] @ v)},
    ),
    (
        "the output is mixed without the mask",
        "The weights are those of the allowed keys, but the output has others. Mix the "
        "values with the weights that you return.",
        {"mix": lambda found, k, v: without_mask(found) @ v},
    ),
    (
        "the weights without the mask are returned",
        "The output is mixed with the mask, the weights are those of all keys. Return "
        "the weights that the values were mixed with.",
        {"shown": without_mask},
    ),
    *(
        (*SCORES_SHOWN, {"shown": shown})
        for shown in (
            lambda found: found["scores"],
            lambda found: found["products"],
            lambda found: torch.where(found["mask"], found["scores"], -math.inf),
        )
    ),
)
mistakes_in_returning(attention, attend)
attention.accident("None", *masking.NO_MASK)

# --- the check ------------------------------------------------------------------------


def queries_keys_values(seed: int) -> Iterator[Case]:
    """Make inputs by hand, with all sizes equal and all different; masks; huge ones."""
    generator = seeded(seed)

    def draw(t_q, t_k, d_k, d_v, leading=()) -> tuple[torch.Tensor, ...]:
        sizes = (t_q, d_k), (t_k, d_k), (t_k, d_v)
        return tuple(normal(generator, *leading, *size) for size in sizes)

    # where a product in the wrong order has a value, too, and the value a name
    yield described(draw(4, 4, 4, 4), draw_mask(generator, 4, 4))
    t_q, t_k, d_k, d_v, batch, heads = draw_sizes(generator, 6)
    plain = draw(t_q, t_k, d_k, d_v)
    yield described(plain, None)
    yield described(draw(3, 1, 4, 2), None)  # a single key
    yield described(plain, draw_mask(generator, t_q, t_k))
    q = torch.tensor([[2.0, 0.0, 0.0, 0.0]])
    k = torch.tensor([[math.log(3), 0.0, 0.0, 0.0], [0.0, 5.0, 0.0, 0.0]])
    v = torch.tensor([[4.0, 0.0, 8.0], [0.0, 4.0, 0.0]])
    hand = torch.tensor([[3.0, 1.0, 6.0]]), torch.tensor([[0.75, 0.25]])
    yield Case("the example by hand", (q, k, v, None), hand)
    k, v = torch.cat([k, torch.ones(1, 4)]), torch.cat([v, torch.full((1, 3), 9.0)])
    third = torch.tensor([[True, True, False]])  # hidden; the score of the second is 0
    hand = hand[0], torch.tensor([[0.75, 0.25, 0.0]])
    on = "the example by hand, with a third key that is hidden"
    yield Case(on, (q, k, v, third), hand)
    for leading, mask_shape in (
        ((batch,), (t_q, t_k)),
        ((batch,), (batch, 1, t_k)),
        ((batch, heads), (batch, 1, t_q, t_k)),
        ((batch, heads), None),
    ):
        mask = mask_shape and draw_mask(generator, *mask_shape)
        yield described(draw(t_q, t_k, d_k, d_v, leading), mask)
    masks = [[[True, True, False]], [[False, True, True]], [[True, True, True]]]
    yield described(draw(4, 3, 2, 5, (3,)), torch.tensor(masks))
    q, k, v = draw(3, 5, 4, 2)
    on = "queries and keys a hundred times as large"
    inputs = (100 * q, 100 * k, v, None)
    yield Case(on, inputs, tolerance=ONE_BY_ONE, unless_finite=UNSTABLE)
    scores = q @ k.mT
    others = scores < scores.amax(-1, keepdim=True)
    on = f"{on}, a mask that hides the best key of each query"
    yield Case(on, (*inputs[:3], others), tolerance=ONE_BY_ONE)


def described(inputs: tuple[torch.Tensor, ...], mask: torch.Tensor | None) -> Case:
    """Make a case whose message says all shapes."""
    named = zip("qkv", inputs, strict=True)
    on = ", ".join(f"{name} {tuple(x.shape)}" for name, x in named)
    on += "" if mask is None else f", mask {tuple(mask.shape)}"
    return Case(on, (*inputs, mask))


def expect_attention(student: StudentFunction, seed: int) -> None:
    """Expect output, weights and gradients, and nothing from what is all masked."""
    for case in foreseen(student, queries_keys_values(seed)):
        with more_axes(case.inputs[0].dim()):
            judge_pair(attention, student, case)
    generator = seeded(seed + 1)
    # the root of the width is no whole number
    q, k = normal(generator, 3, 6), normal(generator, 5, 6)
    v = normal(generator, 5, 2)
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[1], mask[2, :2] = False, False
    on = "q (3, 6), k (5, 6), v (5, 2), a mask whose row 1 is all False"
    judge_pair(attention, student, Case(on, (q, k, v, mask), unless_finite=EMPTY))
    attention.judge_gradient(
        student,
        Case(on, (q, k, v, mask), unless_finite=EMPTY_GRADIENT),
        normal(generator, 3, 2),
        wrt=(0, 1, 2),
        output=0,
    )


@chapter.check(section="attention-weighted-average", forbidden=PYTORCHS_OWN)
def scaled_dot_product_attention(
    student: StudentFunction, masked_softmax_student: StudentFunction, seed: int = 0
) -> None:
    """By hand, and against PyTorch's own, with masks, any leading axes, gradients."""
    with expect.relying_on(masking.alone, masked_softmax_student):
        expect_attention(student, seed)


@chapter.check(section="attention-weighted-average")
def alone(student: StudentFunction, seed: int = 0) -> None:
    """Check attention without asking what it relies on."""
    expect_attention(student, seed)
