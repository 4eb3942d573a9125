"""Weight tying: each token is scored by its row of the embedding table."""

import torch
import torch.nn.functional as F

from autograder.chapters.embeddings.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function, errors_named
from autograder.interface import StudentFunction

tying = Function("weight-tying", "tied_logits", F.linear)


# --- what goes wrong ------------------------------------------------------------------

PROBABILITIES = "probabilities in place of logits"
for name, why, change in (
    (
        "multiplied by √d_model",
        "The factor belongs to the look-up. The logits use the small numbers of the "
        "table as they are, so that they start with a spread of about 1.",
        lambda logits, d: logits * d**0.5,
    ),
    (
        "divided by √d_model",
        "The rows already start with a length of about 1. (Attention divides its "
        "scores, whose vectors are long.)",
        lambda logits, d: logits / d**0.5,
    ),
    (
        "divided by d_model",
        "A dot product is a sum, not a mean.",
        lambda logits, d: logits / d,
    ),
    (
        PROBABILITIES,
        "Cross-entropy takes raw scores and has the softmax inside: it would be "
        "applied twice.",
        lambda logits, d: logits.softmax(-1),
    ),
    (
        PROBABILITIES,
        "Cross-entropy takes raw scores and has the logarithm of the softmax inside.",
        lambda logits, d: logits.log_softmax(-1),
    ),
    (
        "rows and columns of the result exchanged",
        "Rows are positions, columns are tokens: hidden times the transposed table.",
        lambda logits, d: logits.mT,
    ),
):
    tying.mistake(name, why)(
        lambda hidden, table, change=change: change(
            F.linear(hidden, table), table.shape[1]
        )
    )
tying.mistake(
    "cosines in place of dot products",
    "Cosines lie between -1 and 1, so no token could ever get a probability near 1. "
    "The lengths count, too.",
)(
    lambda hidden, table: F.linear(
        F.normalize(hidden, dim=-1), F.normalize(table, dim=-1)
    )
)
tying.mistake(
    "the table is not transposed",
    "A dot product with each row of the table: hidden (T, d) times (d, N), and that is "
    "the table transposed.",
)(torch.matmul)
ONE_SEQUENCE = (
    "only works for one sequence",
    "A matrix (T, d) works, hidden states with a batch do not. The operator @ and "
    "F.linear leave leading axes alone; torch.mm and .T do not.",
)
tying.mistake(*ONE_SEQUENCE, when=lambda hidden, table: hidden.dim() > 2)(
    lambda hidden, table: torch.mm(hidden, table.T)
)
FLATTENED = (
    "the leading axes are not as they were",
    "The rows were put below each other and then given the axes (B, T) whatever they "
    "had before. Any number of axes may come before d: hidden.shape[:-1] has them, and "
    "the operator @ leaves them alone.",
)
tying.mistake(*FLATTENED, when=lambda hidden, table: hidden.dim() != 3)(
    lambda hidden, table: F.linear(hidden, table).reshape(len(hidden), -1, len(table))
)
tying.mistake(*FLATTENED, when=lambda hidden, table: hidden.dim() > 2)(
    lambda hidden, table: F.linear(hidden, table).reshape(-1, len(table))
)


# --- the check ------------------------------------------------------------------------


@chapter.check(section="embeddings-tying")
def weight_tying(student: StudentFunction, seed: int = 0) -> None:
    """PyTorch's linear, leading axes, gradients to hidden states and table."""
    generator = seeded(seed)
    a, b, length, d_model, more = draw_sizes(generator, 5)
    n = 7 + more
    table = normal(generator, n, d_model)
    # where a product in the wrong order has a value, too, and the value a name
    square = normal(generator, 4, 4), normal(generator, 4, 4)
    tying.judge(student, Case("hidden and table that are both (4, 4)", square))
    hand = (
        torch.tensor([[1.0, 2.0]]),
        torch.tensor([[1.0, 0.0], [0.0, 3.0], [-1.0, 1.0]]),
    )
    right = torch.tensor([[1.0, 6.0, 1.0]])
    tying.judge(student, Case("hidden [[1, 2]], the example by hand", hand, right))
    for leading in ((), (b,), (a, b)):
        hidden = normal(generator, *leading, length, d_model)
        on = f"hidden {tuple(hidden.shape)}, table {tuple(table.shape)}"
        case = Case(on, (hidden, table))
        with errors_named(*([("Error", *ONE_SEQUENCE)] if leading else [])):
            tying.judge(student, case)
    cotangent = normal(generator, a, b, length, n)
    tying.judge_gradient(student, case, cotangent, wrt=(0, 1))
