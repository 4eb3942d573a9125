"""Queries, keys and values: three projections of two sequences."""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F

from autograder.chapters.attention.batches import only_a_batch
from autograder.chapters.attention.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function, foreseen, judge_parts
from autograder.interface import StudentFunction


def right(x_q, x_kv, w_q, w_k, w_v) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Project by PyTorch's own layer, which stores the transpose."""
    return F.linear(x_q, w_q.mT), F.linear(x_kv, w_k.mT), F.linear(x_kv, w_v.mT)


WHAT = "(q, k, v)"
projected = Function("project-qkv", "project_qkv", right)

ORIGIN = (
    "In cross-attention the queries come from the sequence that is being enriched (the "
    "decoder's), keys and values from the one that is looked up (the encoder's): Q "
    "from x_q, K and V from x_kv."
)
ORIGINS = {  # of queries, keys and values: 0 is x_q, 1 is x_kv
    "queries and keys both from x_kv": (1, 1, 0),
    "queries from x_kv, too": (1, 1, 1),
    "x_kv is ignored": (0, 0, 0),
    "keys from x_q": (0, 0, 1),
    "values from x_q": (0, 1, 0),
    "x_q and x_kv exchanged": (1, 0, 0),
}
for name, origins in ORIGINS.items():
    projected.mistake(name, ORIGIN)(
        lambda x_q, x_kv, *matrices, origins=origins: tuple(
            (x_q, x_kv)[origin] @ matrix
            for origin, matrix in zip(origins, matrices, strict=True)
        )
    )
OWN = "Each of the three has a matrix of its own: w_q, w_k and w_v, in this order."
projected.mistake("w_k used for the values, too", OWN)(
    lambda x_q, x_kv, w_q, w_k, w_v: (x_q @ w_q, x_kv @ w_k, x_kv @ w_k)
)
projected.mistake("w_q used for the keys, too", OWN)(
    lambda x_q, x_kv, w_q, w_k, w_v: (x_q @ w_q, x_kv @ w_q, x_kv @ w_v)
)
projected.mistake(
    "w_q and w_k exchanged",
    "w_q makes queries and w_k makes keys. They have the same shape, so nothing fails, "
    "but the scores change.",
)(lambda x_q, x_kv, w_q, w_k, w_v: (x_q @ w_k, x_kv @ w_q, x_kv @ w_v))
for order in [(1, 0, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0), (2, 0, 1)]:
    projected.mistake("returned in another order", "The order is query, key, value.")(
        lambda *inputs, order=order: tuple(right(*inputs)[place] for place in order)
    )
projected.mistake(
    "weights transposed",
    "Vectors are rows here and w_q has shape (d_model, d_k), so the product is x times "
    "w. Only torch.nn.Linear stores its weight the other way round.",
)(lambda x_q, x_kv, w_q, w_k, w_v: (x_q @ w_q.mT, x_kv @ w_k.mT, x_kv @ w_v.mT))
projected.mistake(
    "projects along the sequence",
    "The weights act on the d_model features of each token, not on the T tokens: w_q "
    "is (d_model, d_k), and one layer serves sequences of any length.",
)(lambda x_q, x_kv, w_q, w_k, w_v: (x_q.mT @ w_q, x_kv.mT @ w_k, x_kv.mT @ w_v))
projected.mistake(
    "keys and values cut in the middle",
    "Keys have d_k features and values d_v, and the two widths may differ. Whoever "
    "makes both in one product has to cut it after the features of the keys.",
)(
    lambda x_q, x_kv, w_q, w_k, w_v: (
        x_q @ w_q,
        *(x_kv @ torch.cat((w_k, w_v), -1)).chunk(2, -1),
    )
)
projected.mistake(
    "queries scaled already",
    "The division by √d_k belongs to the scores, in a later exercise; done here as "
    "well it would be done twice.",
    when=lambda x_q, x_kv, w_q, *_: w_q.shape[-1] > 1,
)(
    lambda x_q, x_kv, w_q, w_k, w_v: (
        x_q @ w_q / math.sqrt(w_q.shape[-1]),
        x_kv @ w_k,
        x_kv @ w_v,
    )
)


def sequences(seed: int) -> Iterator[Case]:
    """Make two sequences and matrices: all sizes equal, by hand, all different."""
    generator = seeded(seed)
    # where a product in the wrong order has a value, too, and the value a name
    square = tuple(normal(generator, 4, 4) for _ in range(5))
    yield Case("sequences and matrices that are all (4, 4)", square, what=WHAT)
    hand = (
        torch.tensor([[1.0, 2.0], [0.0, 1.0], [3.0, 0.0]]),
        torch.tensor([[1.0, 1.0], [2.0, 0.0]]),
        torch.tensor([[1.0], [-1.0]]),
        torch.tensor([[0.0], [2.0]]),
        torch.tensor([[1.0, 0.0, 2.0], [0.0, 1.0, 1.0]]),
    )
    yield Case("the example by hand, with x_kv = [[1, 1], [2, 0]]", hand, what=WHAT)
    for leading in ((), (2,), (3, 2)):
        t_q, t_kv, d_model, d_k, d_v = draw_sizes(generator, 5)
        x_q = normal(generator, *leading, t_q, d_model)
        x_kv = normal(generator, *leading, t_kv, d_model)
        w_q, w_k = normal(generator, 2, d_model, d_k)
        w_v = normal(generator, d_model, d_v)
        on = (
            f"x_q {tuple(x_q.shape)}, x_kv {tuple(x_kv.shape)}, "
            f"w_q and w_k {tuple(w_q.shape)}, w_v {tuple(w_v.shape)}"
        )
        yield Case(on, (x_q, x_kv, w_q, w_k, w_v), what=WHAT)


@chapter.check(section="attention-projections")
def project_qkv(student: StudentFunction, seed: int = 0) -> None:
    """Self- and cross-attention inputs, by hand and at random, any leading axes."""
    for case in foreseen(student, sequences(seed)):
        with only_a_batch(student, case.inputs, lambda c=case: projected.right(c), 2):
            got = student(*case.inputs)
        judge_parts(projected, got, case, ("q", "k", "v"))
