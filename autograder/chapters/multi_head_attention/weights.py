"""PyTorch's weights in the course's layer, and heads taken out."""

import contextlib
from functools import partial

import torch
from torch import nn

from autograder import expect
from autograder.chapters.multi_head_attention.chapter import chapter
from autograder.chapters.multi_head_attention.steps import run_layer
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.parameters import State
from autograder.exercise.spec import Case, Function
from autograder.exercise.state_dicts import expect_state_dict
from autograder.expect import refuse_if
from autograder.interface import StudentError, StudentFunction

# --- weights from PyTorch: what goes wrong --------------------------------------------


def translate(state: State, order: str = "qkv", turned: str = "qkvo") -> State:
    """Translate; ``order`` names the parts, ``turned`` those that are transposed."""
    result = {"w_o": state["out_proj.weight"], "b_o": state["out_proj.bias"]}
    parts = state["in_proj_weight"].chunk(3), state["in_proj_bias"].chunk(3)
    for name, matrix, bias in zip(order, *parts, strict=True):
        result |= {f"w_{name}": matrix, f"b_{name}": bias}
    return result | {f"w_{name}": result[f"w_{name}"].T for name in turned}


def _with_matrices(state: State, matrices: list[torch.Tensor]) -> State:
    named = zip(("w_q", "w_k", "w_v"), matrices, strict=True)
    return translate(state) | dict(named)


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
    *((*ORDER, partial(translate, order=each)) for each in ("qvk", "kqv", "kvq")),
    *((*ORDER, partial(translate, order=each)) for each in ("vqk", "vkq")),
    *(
        (
            *ORDER,
            lambda state, order=order: _with_matrices(
                state,
                [translate(state, order)[f"w_{name}"] for name in "qkv"],
            ),
        )
        for order in ("qvk", "kqv", "kvq", "vqk", "vkq")
    ),
    (
        "rows dealt out in turn",
        "The first d rows belong to the queries, the next d to the keys, the last d to "
        "the values: blocks, not every third row.",
        lambda state: (
            _with_matrices(state, [state["in_proj_weight"][i::3].T for i in range(3)])
            | {f"b_{n}": state["in_proj_bias"][i::3] for i, n in enumerate("qkv")}
        ),
    ),
    (
        "transposed, then cut by the wrong axis",
        "in_proj_weight is (3d, d). Cut its rows into three, then transpose each.",
        lambda state: _with_matrices(
            state,
            [*state["in_proj_weight"].T.reshape(3, *state["out_proj.weight"].shape)],
        ),
    ),
    (
        *COLUMNS,
        lambda state: _with_matrices(
            state, [each.T for each in state["in_proj_weight"].chunk(3, 1)]
        ),
    ),
    (
        *COLUMNS,
        lambda state: _with_matrices(state, state["in_proj_weight"].chunk(3, 1)),
    ),
    (
        "reshaped in place of transposed",
        "reshape reads the numbers row after row and fills another shape with them, so "
        "rows of queries, keys and values are mixed. A transpose exchanges rows and "
        "columns: cut the rows into three, then transpose each.",
        lambda state: _with_matrices(
            state,
            state["in_proj_weight"]
            .reshape(len(state["out_proj.bias"]), -1)
            .chunk(3, 1),
        ),
    ),
    (
        "biases left out",
        "in_proj_bias holds the biases of queries, keys and values.",
        lambda state: translate(
            state | {"in_proj_bias": torch.zeros_like(state["in_proj_bias"])}
        ),
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


def _without_rows(w_o, of_row, removed):
    """Set the rows to zero whose number in ``of_row`` is among the removed."""
    return torch.where(torch.isin(of_row, _numbers(removed))[:, None], 0.0, w_o)


def _owner(w_o, heads):
    """Number the rows of w_o by the head that owns them."""
    return torch.arange(len(w_o)) // (len(w_o) // heads)


removals = Function(
    "without-heads",
    "without_heads",
    lambda w_o, heads, removed: _without_rows(w_o, _owner(w_o, heads), removed),
)

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

    def _numbered(w_o, heads, removed, number=number):
        return _without_rows(w_o, number(w_o, heads), removed)

    removals.mistake(name, why)(_numbered)
for name, why, answer in (
    (
        "the removed heads are kept, the others removed",
        "It is the other way round: `removed` lists the heads that go.",
        lambda w_o, heads, removed: w_o - removals.oracle(w_o, heads, removed),
    ),
    (*ONE_ALONE, lambda w_o, heads, gone: removals.oracle(w_o, heads, gone[:1])),
    (*ONE_ALONE, lambda w_o, heads, gone: removals.oracle(w_o, heads, gone[-1:])),
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
    _expect_a_copy(student, hand)


def _expect_a_copy(student: StudentFunction, w_o: torch.Tensor) -> None:
    """Expect that a matrix is made, too, where no head goes.

    A copy that a gradient comes through is counted. Through others, NumPy's or a list,
    none comes.
    """
    _, made = student.memory(w_o, 2, [])
    gradient = None
    if not made:
        with contextlib.suppress(StudentError):
            gradient = student.gradients(w_o, 2, []).inputs[0]
    refuse_if(
        gradient is not None,
        "the caller's own matrix is returned",
        "Where no head is to go, the result is the matrix that came in. Whoever writes "
        "into it changes the layer's W_O. Make the copy in every case.",
        on="the example by hand, heads 2, removed []",
        got="w_o itself",
        expected="a new matrix",
    )
