"""PyTorch's weights in the course's layer, and heads taken out."""

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import nn

from autograder import expect
from autograder.chapters.multi_head_attention.chapter import chapter
from autograder.chapters.multi_head_attention.steps import run_layer
from autograder.exercise.copies import expect_new
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.parameters import State
from autograder.exercise.spec import Case, Function
from autograder.exercise.state_dicts import expect_state_dict
from autograder.interface import StudentFunction

# --- weights from PyTorch: what goes wrong --------------------------------------------


def translate(
    state: State,
    *,
    order: str = "qkv",
    matrices: str = "qkv",
    turned: str = "qkvo",
    cut: Callable[[torch.Tensor, int], Sequence[torch.Tensor]] = torch.chunk,
    dealt: bool = False,
    without: tuple[str, ...] = (),
) -> State:
    """Translate by rules that can be varied.

    Args:
        state: of PyTorch's layer.
        order: of the three parts.
        matrices: of the three matrices alone.
        turned: the matrices that are transposed.
        cut: makes three matrices of in_proj_weight.
        dealt: whether the biases are dealt out in turn.
        without: biases of the result that are zeros.
    """
    result = {"w_o": state["out_proj.weight"], "b_o": state["out_proj.bias"]}
    packed = state["in_proj_bias"]
    biases = [packed[i::3] for i in range(3)] if dealt else packed.chunk(3)
    of_place = dict(zip(matrices, cut(state["in_proj_weight"], 3), strict=True))
    for name, bias, place in zip(order, biases, "qkv", strict=True):
        result |= {f"w_{name}": of_place[place], f"b_{name}": bias}
    result |= {f"w_{name}": result[f"w_{name}"].T for name in turned}
    return result | {name: torch.zeros_like(result[name]) for name in without}


translations = Function("attention-from-torch", "attention_from_torch", translate)

ORDER = (
    "the three parts in another order",
    "PyTorch stacks them in the order query, key, value.",
)
COLUMNS = (
    "cut into columns",
    "in_proj_weight is (3d, d): queries, keys and values stand below each other. Cut "
    "its rows into three, then transpose each.",
)


def _every_third(w: torch.Tensor, count: int) -> list[torch.Tensor]:
    return [w[i::count] for i in range(count)]


for name, why, answer in (
    (
        "weights not transposed",
        "PyTorch stores (width out, width in) and multiplies by the transpose. As all "
        "four are square, no shape complains: transpose each.",
        partial(translate, turned=""),
    ),
    (
        "in_proj_weight not transposed",
        "w_o is turned, the other three are not: in_proj_weight needs it, too.",
        partial(translate, turned="o"),
    ),
    (
        "out_proj.weight not transposed",
        "out_proj is an nn.Linear: its weight is (width out, width in), too.",
        partial(translate, turned="qkv"),
    ),
    *(
        (*ORDER, partial(translate, **{which: each}))
        for which in ("order", "matrices")
        for each in ("qvk", "kqv", "kvq", "vqk", "vkq")
    ),
    *(
        (
            "rows dealt out in turn",
            "The first d rows belong to the queries, the next d to the keys, the last "
            "d to the values: blocks, not every third row.",
            partial(translate, **rules),
        )
        for rules in (
            {"cut": _every_third},
            {"dealt": True},
            {"cut": _every_third, "dealt": True},
        )
    ),
    (
        "transposed, then cut by the wrong axis",
        "in_proj_weight is (3d, d). Cut its rows into three, then transpose each.",
        partial(translate, cut=lambda w, n: w.T.reshape(n, -1, w.shape[1]).mT),
    ),
    (*COLUMNS, partial(translate, cut=lambda w, n: w.chunk(n, 1))),
    (*COLUMNS, partial(translate, cut=lambda w, n: [x.T for x in w.chunk(n, 1)])),
    (
        "reshaped in place of transposed",
        "reshape reads the numbers row after row and fills another shape with them, so "
        "rows of queries, keys and values are mixed. A transpose exchanges rows and "
        "columns: cut the rows into three, then transpose each.",
        partial(
            translate,
            cut=lambda w, n: [x.T for x in w.reshape(w.shape[1], -1).chunk(n, 1)],
        ),
    ),
    *(
        (
            "biases left out",
            "in_proj_bias holds the biases of queries, keys and values.",
            partial(translate, without=parts),
        )
        for parts in (("b_q", "b_k", "b_v"), ("b_q", "b_k", "b_v", "b_o"))
    ),
    (
        "the bias of the output left out",
        "out_proj.bias is added at the end: it is the layer's b_o.",
        partial(translate, without=("b_o",)),
    ),
):
    translations.mistake(name, why)(answer)


@chapter.check(section="multi-head-torch")
def attention_from_torch(student: StudentFunction, seed: int = 0) -> None:
    """Every entry in its place; and the same output as PyTorch's layer."""
    generator = seeded(seed)
    heads, width, length, batch = draw_sizes(generator, 4)
    d = heads * width
    for packed, on in (
        (normal(generator, 3 * d, d), f"the state of a layer with d_model = {d}"),
        (torch.arange(1.0, 13.0).reshape(6, 2), "the example by hand"),
    ):
        size = packed.shape[1]
        state = {
            "in_proj_weight": packed,
            "in_proj_bias": normal(generator, 3 * size),
            "out_proj.weight": normal(generator, size, size),
            "out_proj.bias": normal(generator, size),
        }
        got, known = student(state), list(translations.known(state))
        expect_state_dict(got, translate(state), on, known=known)
    layer = nn.MultiheadAttention(d, heads, batch_first=True)
    layer.load_state_dict(
        {
            name: normal(generator, *value.shape) / d**0.5
            for name, value in layer.state_dict().items()
        }
    )
    x = normal(generator, batch, length, d)
    got = student({name: x.detach() for name, x in layer.state_dict().items()})
    on = f"nn.MultiheadAttention({d}, {heads}) and its translation, on the same x"
    with torch.no_grad():
        expected = layer(x, x, x)[0]
    expect.equal(run_layer(x, x, got, heads)[0], expected, on=on, what="the output")


# --- removing: what goes wrong --------------------------------------------------------


def _numbers(removed):
    return torch.tensor(list(removed), dtype=torch.long)


def _owner(w_o, heads):
    """Number the rows of w_o by the head that owns them."""
    return torch.arange(len(w_o)) // (len(w_o) // heads)


def without_rows(w_o, heads, removed, *, number=_owner, gone=list):
    """Set rows to zero by rules that can be varied.

    Args:
        w_o: (h·d_v, d_model).
        heads: h.
        removed: the heads that are to go.
        number: gives the number of each row, of w_o and h.
        gone: the numbers whose rows go, made of the removed.
    """
    of_row = torch.isin(number(w_o, heads), _numbers(gone(removed)))
    return torch.where(of_row[:, None], 0.0, w_o)


removals = Function("without-heads", "without_heads", without_rows)

BY_COLUMNS = (
    "removed in the columns",
    "Columns of w_o are features of the output, made by all heads together. Head i "
    "owns the rows i·d_v to (i + 1)·d_v − 1: what it found is multiplied by them.",
)
FROM_1 = "heads counted from 1", "Heads count from 0."
ONE_ALONE = (
    "only one of the heads is removed",
    "Several heads are to go. Is `return` inside the loop, or does each round begin "
    "with a fresh copy?",
)


def _without_columns(width, w_o, heads, removed, first=0):
    columns = torch.arange(w_o.shape[1]) // max(1, width(w_o, heads)) + first
    return w_o.masked_fill(torch.isin(columns, _numbers(removed)), 0.0)


for width in (
    lambda w_o, heads: w_o.shape[0] // heads,
    lambda w_o, heads: -(-w_o.shape[1] // heads),
    lambda w_o, heads: w_o.shape[1] // heads,
):
    removals.mistake(*BY_COLUMNS)(partial(_without_columns, width))
    removals.mistake(
        f"{BY_COLUMNS[0]}, and {FROM_1[0]}", f"{BY_COLUMNS[1]} {FROM_1[1]}"
    )(partial(_without_columns, width, first=1))
for name, why, number in (  # by which number of its rows a head is found
    (
        "one row for each head",
        "A head has d_v rows; only one was set to zero.",
        lambda w_o, heads: torch.arange(len(w_o)),
    ),
    (
        "rows dealt out in turn",
        "A head's rows stand together: head i owns i·d_v to (i + 1)·d_v − 1.",
        lambda w_o, heads: torch.arange(len(w_o)) % heads,
    ),
    (
        "blocks of `heads` rows",
        "A head owns d_v rows, the number of rows divided by the number of heads.",
        lambda w_o, heads: torch.arange(len(w_o)) // heads,
    ),
    (
        "the width of a head taken from d_model",
        "d_v is the number of ROWS of w_o divided by heads; the columns of w_o are "
        "d_model features of the output.",
        lambda w_o, heads: torch.arange(len(w_o)) // max(1, w_o.shape[1] // heads),
    ),
    (
        *FROM_1,
        lambda w_o, heads: _owner(w_o, heads) + 1,
    ),
    (
        "heads counted from the end",
        "Head 0 owns the first rows.",
        lambda w_o, heads: heads - 1 - _owner(w_o, heads),
    ),
):
    removals.mistake(name, why)(partial(without_rows, number=number))
for name, why, gone in (
    (*ONE_ALONE, lambda removed: removed[:1]),
    (*ONE_ALONE, lambda removed: removed[-1:]),
    (
        "all from the first to the last that is to go",
        "Heads that are to go need not be neighbours: with 0 and 2, head 1 stays. Set "
        "the rows of each to zero by themselves.",
        lambda removed: range(min(removed, default=0), max(removed, default=-1) + 1),
    ),
):
    removals.mistake(name, why)(partial(without_rows, gone=gone))
for name, why, answer in (
    (
        "the removed heads are kept, the others removed",
        "It is the other way round: `removed` lists the heads that go.",
        lambda w_o, heads, removed: w_o - without_rows(w_o, heads, removed),
    ),
    (
        "the rows are cut out",
        "The shape changes, so the layer cannot use it. Put zeros into the rows.",
        lambda w_o, heads, removed: w_o[
            ~torch.isin(_owner(w_o, heads), _numbers(removed))
        ],
    ),
    (
        "nothing is removed",
        "The matrix is as it was. Was a copy of some rows changed, or is the slice "
        "empty, as w_o[4:4] is?",
        lambda w_o, heads, removed: w_o.clone(),
    ),
):
    removals.mistake(name, why)(answer)


OWN = (
    "the caller's own matrix is returned",
    "Where no head is to go, the result is the matrix that came in. Whoever writes "
    "into it changes the layer's W_O. Make the copy in every case.",
)


@chapter.check(section="multi-head-ablation")
def without_heads(student: StudentFunction, seed: int = 0) -> None:
    """Rows of the removed heads zero, all others unchanged, in a new matrix."""
    generator = seeded(seed)
    d_v, d_model, _ = draw_sizes(generator, 3)
    heads = 4 if d_v != 4 else 5
    w_o = normal(generator, heads * d_v, d_model)
    for removed in ([1], [0, 1], [heads - 1, 1, 2], [], list(range(heads))):
        on = f"w_o {tuple(w_o.shape)}, heads {heads}, removed {removed}"
        removals.judge(student, Case(on, (w_o, heads, removed)))
    square = normal(generator, heads * d_v, heads * d_v)
    on = f"w_o {tuple(square.shape)}, heads {heads}, removed [2]"
    removals.judge(student, Case(on, (square, heads, [2])))
    hand = torch.tensor([[1.0, 0.0], [0.0, 1.0], [2.0, 0.0], [1.0, 1.0]])
    on = "the example by hand, heads 2, removed [1]"
    removals.judge(student, Case(on, (hand, 2, [1])))
    none = Case("the example by hand, heads 2, removed []", (hand, 2, []))
    expect_new(student, none, *OWN)
