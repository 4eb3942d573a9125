"""What attention costs, and how far apart two tokens are."""

import math
from collections.abc import Iterator

from autograder import expect
from autograder.chapters.attention.chapter import chapter
from autograder.exercise.answers import expect_entries
from autograder.exercise.inputs import WholeNumbers, draw_several, draw_sizes
from autograder.exercise.spec import Case, Function, judge_parts
from autograder.interface import StudentFunction

# --- multiply-adds --------------------------------------------------------------------


def cost(projections: float, scores: float, mixing: float) -> dict:
    """Write the answer, with the share of what grows with T²."""
    share = (scores + mixing) / (projections + scores + mixing)
    return {
        "projections": projections,
        "scores": scores,
        "mixing": mixing,
        "quadratic_share": share,
    }


def counted(t: int, d: int) -> dict:
    """Count the multiply-adds of each product (n, m) times (m, l) as n · m · l."""
    products = [[(t, d, d)] * 4, [(t, d, t)], [(t, t, d)]]
    return cost(*(sum(map(math.prod, shapes)) for shapes in products))


costs = Function("attention-cost", "attention_cost", counted)

CUBE = (
    "T³ in place of T²d",
    "Each of the T² scores is a sum over d features: T² · d. T³ would be the product "
    "of two T × T matrices, which attention never forms.",
)
for name, count, why in (
    (
        "the mixing is forgotten",
        lambda t, d: (4 * t * d * d, t * t * d, 0),
        "P V multiplies as often as Q Kᵀ does: T² rows of weights times d features.",
    ),
    (CUBE[0], lambda t, d: (4 * t * d * d, t**3, t**3), CUBE[1]),
    (CUBE[0], lambda t, d: (4 * t * d * d, t * t * d, t**3), CUBE[1]),
    (
        "the width is forgotten",
        lambda t, d: (4 * t * d * d, t * t, t * t),
        "T² is the number of scores; each of them costs d multiplications.",
    ),
    (
        "three projections in place of four",
        lambda t, d: (3 * t * d * d, t * t * d, t * t * d),
        "W_Q, W_K, W_V and, at the end, the output projection W_O: four.",
    ),
    (
        "the tokens of the projections are forgotten",
        lambda t, d: (4 * d * d, t * t * d, t * t * d),
        "4d² is the number of parameters. Every one of the T tokens is multiplied with "
        "them.",
    ),
    (
        "operations in place of multiply-adds",
        lambda t, d: (8 * t * d * d, 2 * t * t * d, 2 * t * t * d),
        "A multiplication and the addition after it count as one here.",
    ),
):
    costs.mistake(name, why)(lambda t, d, count=count: cost(*count(t, d)))

LEFT_OUT = (
    "the mixing is left out of the share",
    "Both products of size T² count: scores and mixing.",
)
for name, share, why in (  # of projections and of the two products, each of size s
    (LEFT_OUT[0], lambda p, s: s / (p + s), LEFT_OUT[1]),
    (LEFT_OUT[0], lambda p, s: s / (p + 2 * s), LEFT_OUT[1]),
    (
        "the share is turned round",
        lambda p, s: p / (p + 2 * s),
        "This is the share of the projections; that of scores and mixing is wanted.",
    ),
    (
        "the share cut down to a whole number",
        lambda p, s: 2 * s // (p + 2 * s),
        "// and int(...) drop what stands after the point. A share needs /.",
    ),
    (
        "a percentage in place of a share",
        lambda p, s: 200 * s / (p + 2 * s),
        "A share of the whole lies between 0 and 1: do not multiply by 100.",
    ),
    (
        "a ratio in place of a share",
        lambda p, s: 2 * s / p,
        "A share is a part of the whole: divide by the sum of all three.",
    ),
):
    costs.mistake(name, why)(
        lambda t, d, share=share: (
            counted(t, d) | {"quadratic_share": share(4 * t * d * d, t * t * d)}
        )
    )


@chapter.check(section="attention-cost")
def attention_cost(student: StudentFunction, seed: int = 0) -> None:
    """Multiply-adds of the three parts, counted from the shapes, and the share."""
    source = WholeNumbers(seed)
    drawn = [[8 * x for x in draw_sizes(source, 2)] for _ in range(2)]
    sizes = [(4, 8), *map(tuple, drawn), (512, 256)]
    student.ahead(sizes)
    for t, d in sizes:
        got = student(t, d)
        hand = cost(1024, 128, 128) if (t, d) == (4, 8) else counted(t, d)
        expect_entries(got, hand)
        case = Case(f"attention_cost(length={t}, d_model={d})", (t, d), hand)
        judge_parts(costs, got, case, hand)


# --- steps ----------------------------------------------------------------------------


def steps(kind: str, length: int, kernel: int = 3) -> int:
    """Widen the view step by step until it has all tokens."""
    if kind != "convolution":
        return 1 if kind == "attention" else length
    return next(s for s in range(length) if s * (kernel - 1) + 1 >= length)


paths = Function("attention-cost", "path_length", steps)

for kind, name, count, why in (
    (
        "attention",
        "attention takes a step for each token",
        lambda n, k: n,
        "Every token sees all others in one layer, however far away: 1.",
    ),
    (
        "recurrent",
        "a recurrent network in one step",
        lambda n, k: 1,
        "The state passes the tokens one after another: as many steps as tokens.",
    ),
    (
        "recurrent",
        "the first token's own step is not counted",
        lambda n, k: n - 1,
        "Reading the first token is a step, too: n steps for n tokens.",
    ),
    *(
        (
            "convolution",
            "rounded down",
            lambda n, k, least=least: max((n - 1) // (k - 1), least),
            "A layer that is needed only in part is still a layer: round up.",
        )
        for least in (0, 1)
    ),
    *(
        (
            "convolution",
            "rounded to the nearest",
            nearest,
            "A layer that is needed only in part is still a layer: round up, by "
            "math.ceil. round() makes 4 of 4.5, and 2 of 2.25.",
        )
        for nearest in (
            lambda n, k: round((n - 1) / (k - 1)),
            lambda n, k: int((n - 1) / (k - 1) + 0.5),
        )
    ),
    (
        "convolution",
        "each layer is taken to add a whole kernel",
        lambda n, k: math.ceil(n / k),
        "The windows overlap: a layer widens the view by kernel − 1 tokens, from 1 at "
        "the start.",
    ),
    (
        "convolution",
        "the view starts from nothing",
        lambda n, k: math.ceil(n / (k - 1)),
        "Before the first layer an output sees 1 token, itself: n − 1 are missing.",
    ),
    (
        "convolution",
        "not a whole number",
        lambda n, k: (n - 1) / (k - 1),
        "Layers are counted in whole numbers: round up.",
    ),
    (
        "convolution",
        "the view is taken to be multiplied",
        lambda n, k: math.ceil(math.log(n, k)),
        "A layer adds kernel − 1 tokens to the view: 3, 5, 7, …, not 3, 9, 27.",
    ),
):
    paths.mistake(name, why, when=lambda asked, n, k, kind=kind: asked == kind)(
        lambda kind, n, k, count=count: count(n, k)
    )
UNKNOWN = "an unknown kind is accepted"
paths.mistake(
    UNKNOWN,
    "A misspelt kind should not get a number: raise ValueError.",
    when=lambda kind, *_: kind not in ("attention", "recurrent", "convolution"),
)(lambda *_: 1)


def lengths(seed: int) -> Iterator[Case]:
    """Ask for every kind by several lengths, and for kernels of several widths."""
    for n in (12, 9, 10, 2, 3, *draw_several(WholeNumbers(seed), 3, 40, 4)):
        for kind, kernels in (
            ("attention", (3,)),
            ("recurrent", (3,)),
            ("convolution", (3, 2, 5)),
        ):
            for kernel in kernels:
                on = f"path_length({kind!r}, length={n}, kernel={kernel})"
                what = f"the number of steps of {kind!r}"
                yield Case(on, (kind, n, kernel), tolerance=0, what=what)


@chapter.check(section="attention-cost")
def path_length(student: StudentFunction, seed: int = 0) -> None:
    """Check steps until one output depends on all tokens, against a simulation."""
    paths.judge_all(student, lengths(seed))
    expect.raises(
        "ValueError",
        lambda: student("attentoin", 10),
        on="path_length('attentoin', 10)",
        why="A misspelt kind should not get a number: raise ValueError.",
        mistake=UNKNOWN,
    )
