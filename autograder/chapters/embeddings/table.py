"""The embedding layer: rows of a table, times the root of their width."""

import math
from collections.abc import Callable, Iterator

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


def taken(
    ids: torch.Tensor,
    weight: torch.Tensor,
    *,
    at: Callable = lambda ids, count: ids,
    rows: Callable = lambda ids, weight: weight[ids],
    made: Callable = lambda rows, ids: rows,
    factor: Callable = lambda n, d, ids: math.sqrt(d),
    joined: Callable = torch.mul,
    form: Callable = lambda vectors: vectors,
) -> torch.Tensor:
    """Look up and scale, with slips, which may be several.

    Args:
        ids: (..., T).
        weight: (N, d).
        at: the ids that are looked up, with the number of rows.
        rows: of the table.
        made: of the rows and the ids.
        factor: of the sizes of the table, and the ids.
        joined: rows and factor.
        form: of the result.
    """
    found = made(rows(at(ids, len(weight)), weight), ids)
    return form(joined(found, factor(*weight.shape, ids)))


ROOT = (
    "The table was divided by √d_model when it was drawn; here it is multiplied. "
    "(Attention divides by √d_k: another place, another reason.)"
)
AFTER = "look-up at id + 1"
ONE_VECTOR = (
    "one vector for all tokens",
    "Every token keeps a row of its own, (..., T, d_model). Mixing tokens is the task "
    "of attention.",
)
COLUMNS = (
    "columns in place of rows",
    "The table has a row for each token: the ids go along its first axis, which has "
    "vocab_size entries. The second one has d_model.",
)
PADDING = (
    "row 0 is taken for padding",
    "The id 0 is a token like any other here: it gets its row, not zeros.",
)
FLAT = (
    "the axes of the ids are lost",
    "ids (B, T) become (B, T, d_model). Indexing, weight[ids], keeps all axes of the "
    "ids and adds one.",
)


def _once(rows: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
    """Let of equal tokens only the last one learn."""
    tokens = ids.flatten().tolist()
    last = [token not in tokens[i + 1 :] for i, token in enumerate(tokens)]
    return torch.where(torch.tensor(last).view(*ids.shape, 1), rows, rows.detach())


tables.slips(
    taken,
    (
        "no factor √d_model",
        "The rows start with entries of about 1/√d_model, 1/16 at d_model = 256; the "
        "positions that are added have entries up to 1. Multiply by √d_model.",
        {"factor": lambda n, d, ids: 1},
    ),
    (
        "scaled twice",
        "Multiplied by d_model, which is √d_model twice. The root makes the entries as "
        "large as 1.",
        {"factor": lambda n, d, ids: d},
    ),
    ("divided by √d_model", ROOT, {"factor": lambda n, d, ids: d**-0.5}),
    ("divided by d_model", ROOT, {"factor": lambda n, d, ids: 1 / d}),
    (
        "the root of the root",
        "√d_model is multiplied once: one root of the width of a vector.",
        {"factor": lambda n, d, ids: d**0.25},
    ),
    (
        "the root is cut down to a whole number",
        "√2 is 1.41 and not 1: math.isqrt and int(...) cut off what is behind the "
        "point. Take math.sqrt(d_model).",
        {"factor": lambda n, d, ids: math.isqrt(d)},
    ),
    (
        "multiplied by √vocab_size",
        "The factor is the root of the width of a vector, weight.shape[1].",
        {"factor": lambda n, d, ids: n**0.5},
    ),
    (
        "multiplied by the root of the number of ids",
        "The factor is the root of the width of a vector, weight.shape[1]. A token has "
        "the same vector in a short sentence and in a long one.",
        {"factor": lambda n, d, ids: ids.shape[-1] ** 0.5},
    ),
    (
        "√d_model is added",
        "The rows are multiplied by √d_model, so that their spread grows to 1.",
        {"joined": torch.add},
    ),
    (
        "look-up at id − 1",
        "Ids are row numbers counted from 0. With id - 1 the id 0 silently gets the "
        "last row, weight[-1], without any error.",
        {"at": lambda ids, count: ids - 1},
    ),
    (
        AFTER,
        "Ids are row numbers counted from 0: take the row of the id itself.",
        {"at": lambda ids, count: (ids + 1) % count},
    ),
    (
        "look-up from the end",
        "The id 0 is the first row: take the row of the id itself.",
        {"at": lambda ids, count: -1 - ids},
    ),
    (
        "repeated tokens are left out",
        "There is a vector for each place of the sequence, in its order, also where a "
        "token comes again: ids as they are, without unique or set.",
        {"at": lambda ids, count: ids.unique()},
    ),
    (
        "the tokens are sorted",
        "The vectors are in the order of the ids that are given.",
        {"at": lambda ids, count: ids.sort(-1).values},
    ),
    (*COLUMNS, {"rows": lambda ids, weight: weight.T[ids]}),
    (*COLUMNS, {"rows": lambda ids, weight: weight[:, ids]}),
    (
        "row 0 learns nothing",
        "padding_idx=0 keeps the first row from learning. Which id is the padding, the "
        "vocabulary says; here all rows learn.",
        {"rows": lambda ids, weight: F.embedding(ids, weight, padding_idx=0)},
    ),
    (*ONE_VECTOR, {"made": lambda rows, ids: rows.mean(-2)}),
    (*ONE_VECTOR, {"made": lambda rows, ids: rows.sum(-2)}),
    (*ONE_VECTOR, {"made": lambda rows, ids: rows.mean(1)}),
    (
        "rows of length 1",
        "The rows are taken as they are. How long a row is may be learned, too.",
        {"made": lambda rows, ids: F.normalize(rows, dim=-1)},
    ),
    (
        "the rows are normalized",
        "The rows are taken as they are. A layer norm is another layer.",
        {"made": lambda rows, ids: F.layer_norm(rows, rows.shape[-1:])},
    ),
    (*PADDING, {"made": lambda rows, ids: rows * (ids != 0)[..., None]}),
    (
        "a repeated token learns once",
        "A token that occurs three times gets the sum of three gradients.",
        {"made": _once},
    ),
    (*FLAT, {"form": lambda vectors: vectors.flatten(0, -2)}),
    (*FLAT, {"form": lambda vectors: vectors.flatten(-2)}),
    (
        "the axes of tokens and features are exchanged",
        "The features come last: (..., T, d_model).",
        {"form": lambda vectors: vectors.mT},
    ),
    (
        "only the first sequence",
        "ids (B, T) are B sequences, and all of them get their vectors.",
        {"form": lambda vectors: vectors[0]},
    ),
)
for words in ("out of bounds for dimension", "index out of range in self"):
    tables.accident(words, *COLUMNS)
TWO_AXES = (
    "only works for a batch of sequences",
    "ids may have any number of axes: (T,), (B, T) or more. Indexing, weight[ids], "
    "keeps all of them and adds one.",
)
tables.accident("values to unpack", *TWO_AXES)


@tables.mistake(*TWO_AXES)
def _(ids, weight):
    batch, length = ids.shape
    return looked_up(ids.flatten(), weight).view(batch, length, -1)


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
    wide = student.build(n, 10)  # at 2 and 3 the root, cut, is 1
    weight = normal(generator, n, 10)
    wide.load_state_dict({"weight": weight})
    on = f"Embedding(vocab_size={n}, d_model=10), ids {ids.tolist()}"
    tables.judge(wide, Case(on, (ids,), given=(weight,)))
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
        tables.compare(layer(ids), case)


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
