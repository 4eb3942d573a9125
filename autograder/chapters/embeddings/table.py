"""The embedding layer: rows of a table, times the root of their width."""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F

from autograder.chapters.embeddings.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.parameters import State, expect_parameters, expect_spread
from autograder.exercise.spec import Case, Module, errors_named
from autograder.expect import refuse_if, show
from autograder.interface import StudentInstance, StudentModule


def looked_up(ids: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Look up by PyTorch's own function, and scale."""
    return F.embedding(ids, weight) * math.sqrt(weight.shape[1])


tables = Module(
    "embedding", "Embedding", looked_up, given=lambda module: (module.weight,)
)


# --- what goes wrong ------------------------------------------------------------------

ROOT = (
    "The table was divided by √d_model when it was drawn; here it is multiplied. "
    "(Attention divides by √d_k: another place, another reason.)"
)
for name, why, factor in (
    (
        "no factor √d_model",
        "The rows start with entries of about 1/√d_model, 1/16 at d_model = 256; the "
        "positions that are added have entries up to 1. Multiply by √d_model.",
        lambda n, d: 1,
    ),
    (
        "scaled twice",
        "Multiplied by d_model, which is √d_model twice. The root makes the entries as "
        "large as 1.",
        lambda n, d: d,
    ),
    ("divided by √d_model", ROOT, lambda n, d: d**-0.5),
    (
        "multiplied by √vocab_size",
        "The factor is the root of the width of a vector, weight.shape[1].",
        lambda n, d: n**0.5,
    ),
):
    tables.mistake(name, why)(
        lambda ids, weight, factor=factor: weight[ids] * factor(*weight.shape)
    )

BEFORE = (
    "look-up at id − 1",
    "Ids are row numbers counted from 0. With id - 1 the id 0 silently gets the last "
    "row, weight[-1], without any error.",
)
AFTER = "look-up at id + 1"
ONE_VECTOR = (
    "one vector for all tokens",
    "Every token keeps a row of its own, (..., T, d_model). Mixing tokens is the task "
    "of attention.",
)
LENGTH_1 = (
    "rows of length 1",
    "The rows are taken as they are. How long a row is may be learned, too.",
)
PADDING = (
    "row 0 is taken for padding",
    "The id 0 is a token like any other here: it gets its row, not zeros.",
)
for name, why, rows in (
    (*BEFORE, lambda ids, weight: weight[ids - 1]),
    (
        AFTER,
        "Ids are row numbers counted from 0: take the row of the id itself.",
        lambda ids, weight: weight[(ids + 1) % len(weight)],
    ),
    (*ONE_VECTOR, lambda ids, weight: weight[ids].mean(-2)),
    (*ONE_VECTOR, lambda ids, weight: weight[ids].sum(-2)),
    (*LENGTH_1, lambda ids, weight: F.normalize(weight[ids], dim=-1)),
    (
        *PADDING,
        lambda ids, weight: weight[ids] * (ids != 0)[..., None],
    ),
    (
        "row 0 learns nothing",
        "padding_idx=0 keeps the first row from learning. Which id is the padding, the "
        "vocabulary says; here all rows learn.",
        lambda ids, weight: F.embedding(ids, weight, padding_idx=0),
    ),
):
    tables.mistake(name, why)(
        lambda ids, weight, rows=rows: rows(ids, weight) * math.sqrt(weight.shape[1])
    )
tables.mistake(*BEFORE)(lambda ids, weight: weight[ids - 1])
tables.mistake(*LENGTH_1)(lambda ids, weight: F.normalize(weight[ids], dim=-1))


@tables.mistake(
    "a repeated token learns once",
    "A token that occurs three times gets the sum of three gradients.",
)
def _(ids, weight):
    tokens = ids.flatten().tolist()
    last = [token not in tokens[i + 1 :] for i, token in enumerate(tokens)]
    rows = looked_up(ids, weight)
    return torch.where(torch.tensor(last).view(*ids.shape, 1), rows, rows.detach())


ONE_SEQUENCE = (
    "only works for one sequence",
    "Ids (T,) work, ids with a batch do not. Indexing, weight[ids], keeps all axes of "
    "the ids and adds one.",
)
tables.mistake(*ONE_SEQUENCE, when=lambda ids, weight: ids.dim() > 1)(
    lambda ids, weight: torch.stack([weight[int(index)] for index in ids])
)


# --- the check ------------------------------------------------------------------------


@chapter.check(section="embeddings-lookup")
def embedding(student: StudentModule, seed: int = 0) -> None:
    """Parameter, rows times √d_model for ids of any shape, gradient, start."""
    generator = seeded(seed)
    a, b, length, d_model, more = draw_sizes(generator, 5)
    n = 8 + more
    build = f"Embedding(vocab_size={n}, d_model={d_model})"
    layer = student.build(n, d_model)
    expect_parameters(layer, {"weight": (n, d_model)}, build, _own)
    weight = normal(generator, n, d_model)
    layer.load_state_dict({"weight": weight})
    for shape in ((length,), (b, length), (a, b, length)):
        ids = torch.randint(1, n - 1, shape, generator=generator)
        case = Case(f"{build}, ids {shape}", (ids,), given=(weight,))
        longer = [("Error", *ONE_SEQUENCE)] if len(shape) > 1 else []
        with errors_named(*longer):
            tables.judge(layer, case)
    _expect_ends(layer, weight, build)
    ids = torch.tensor([[4, 0, 4], [2, 4, 6]])
    case = Case(f"{build}, ids {ids.tolist()}", (ids,), given=(weight,))
    cotangent = normal(generator, *ids.shape, d_model)
    tables.judge_gradient(layer, case, cotangent, wrt=(), parameters=("weight",))
    _expect_start(student)


def _own(state: State, missing: list, extra: list) -> Iterator[tuple[bool, str, str]]:
    yield (
        missing and any(name.endswith(".weight") for name in extra),
        "PyTorch's module in place of your own",
        "nn.Embedding would do the look-up, but it is what this exercise builds; its "
        "table also starts √d_model times too large. The table itself is the "
        "parameter: self.weight = nn.Parameter(...).",
    )


def _expect_ends(layer: StudentInstance, weight: torch.Tensor, build: str) -> None:
    """Ask for the first and the last row."""
    ids = torch.tensor([0, len(weight) - 1, 3, 0])
    why = (
        "The largest id is the number of the last row, vocab_size - 1. Take the row of "
        "the id itself, and build the table with vocab_size rows."
    )
    case = Case(f"{build}, ids {ids.tolist()}", (ids,), given=(weight,))
    with errors_named(("IndexError", AFTER, why)):
        tables.judge(layer, case)


def _expect_start(student: StudentModule) -> None:
    """Neither 1, 1/√vocab_size nor 1/d_model is near what is asked for."""
    n, d_model = 900, 25
    on = f"Embedding(vocab_size={n}, d_model={d_model})"
    weight = student.build(n, d_model).state_dict()["weight"]
    zeros = not weight[0].any() and bool(weight[1:].any())
    got = f"row 0 of weight = {show(weight[0])}"
    refuse_if(zeros, *PADDING, on=f"{on}, freshly built", got=got)
    expect_spread(
        weight,
        d_model**-0.5,
        on,
        name="weight",
        formula="1/√d_model",
        why="Draw from the standard normal distribution and divide by √d_model. With 1 "
        "the vectors drown the positions, and tied logits have a spread of √d_model; "
        "with 1/d_model they have a length of 1/√d_model after all. The width of a "
        "vector decides, not the number of tokens.",
    )
