"""What attention costs, and how far apart two tokens are."""

import math
from collections.abc import Callable, Iterator
from functools import partial

from autograder import expect
from autograder.chapters.attention.chapter import chapter
from autograder.exercise.answers import expect_entries
from autograder.exercise.inputs import WholeNumbers, draw_several, draw_sizes
from autograder.exercise.spec import Case, Function, judge_parts
from autograder.interface import Data, StudentFunction

# --- multiply-adds --------------------------------------------------------------------


def share_of(projections: float, scores: float, mixing: float) -> float:
    """Compute the share of what grows with T²."""
    return (scores + mixing) / (projections + scores + mixing)


def counted(t: int, d: int) -> dict:
    """Count the multiply-adds of each product (n, m) times (m, l) as n · m · l."""
    products = [[(t, d, d)] * 4, [(t, d, t)], [(t, t, d)]]
    parts = [sum(map(math.prod, shapes)) for shapes in products]
    return dict(zip(PARTS, parts, strict=True)) | {"quadratic_share": share_of(*parts)}


PARTS = "projections", "scores", "mixing"
costs = Function("attention-cost", "attention_cost", counted)

# --- what goes wrong ------------------------------------------------------------------

Count = Callable[[int, int], float]  # of length and width


def costing(
    t: int,
    d: int,
    *,
    sizes: Callable = lambda t, d: (t, d),
    projections: Count = lambda t, d: 4 * t * d * d,
    scores: Count = lambda t, d: t * t * d,
    mixing: Count = lambda t, d: t * t * d,
    each: int = 1,
    share: Callable = share_of,
) -> dict:
    """Count by rules that can be varied.

    Args:
        t: the number of tokens.
        d: the width.
        sizes: what is taken for the two.
        projections: multiply-adds of all of them.
        scores: those of the scores.
        mixing: those of the mixing.
        each: operations of a multiply-add.
        share: of the three numbers.
    """
    t, d = sizes(t, d)
    parts = [each * count(t, d) for count in (projections, scores, mixing)]
    return dict(zip(PARTS, parts, strict=True)) | {"quadratic_share": share(*parts)}


def cube(t: int, d: int) -> int:
    """Count a product of two T × T matrices."""
    return t**3


def projection(t: int, d: int) -> int:
    """Count one projection."""
    return t * d * d


def square(t: int, d: int) -> int:
    """Count the scores, not what each costs."""
    return t * t


CUBE = (
    "T³ in place of T²d",
    "Each of the T² scores is a sum over d features: T² · d. T³ would be the product "
    "of two T × T matrices, which attention never forms.",
)
NO_WIDTH = (
    "the width is forgotten",
    "T² is the number of scores; each of them costs d multiplications.",
)
LIKE_PROJECTIONS = (
    "T d² in place of T²d",
    "T queries meet T keys, and T rows of weights mix T values: both products have T² "
    "times d multiply-adds.",
)
LEFT_OUT = (
    "the mixing is left out of the share",
    "Both products of size T² count: scores and mixing.",
)
costs.slips(
    costing,
    (
        "the mixing is forgotten",
        "P V multiplies as often as Q Kᵀ does: T² rows of weights times d features.",
        {"mixing": lambda t, d: 0},
    ),
    (*CUBE, {"scores": cube, "mixing": cube}),
    (*CUBE, {"scores": cube}),
    (*CUBE, {"mixing": cube}),
    (*NO_WIDTH, {"scores": square, "mixing": square}),
    (*NO_WIDTH, {"scores": square}),
    (*NO_WIDTH, {"mixing": square}),
    (*LIKE_PROJECTIONS, {"scores": projection, "mixing": projection}),
    (*LIKE_PROJECTIONS, {"scores": projection}),
    (*LIKE_PROJECTIONS, {"mixing": projection}),
    (
        "the softmax is counted, too",
        "The softmax counts nothing here: the scores are T² · d multiply-adds.",
        {"scores": lambda t, d: t * t * d + t * t},
    ),
    *(
        (
            f"{count} in place of four",
            "W_Q, W_K, W_V and, at the end, the output projection W_O: four.",
            {"projections": lambda t, d, number=number: number * t * d * d},
        )
        for number, count in (
            (1, "one projection"),
            (2, "two projections"),
            (3, "three projections"),
        )
    ),
    (
        "the tokens of the projections are forgotten",
        "4d² is the number of parameters. Every one of the T tokens is multiplied with "
        "them.",
        {"projections": lambda t, d: 4 * d * d},
    ),
    (
        "a projection is taken to grow with T²",
        "A projection is (T, d) times (d, d): T · d · d multiply-adds.",
        {"projections": lambda t, d: 4 * t * t * d},
    ),
    (
        "length and width exchanged",
        "length is T, the number of tokens, and d_model the width of each.",
        {"sizes": lambda t, d: (d, t)},
    ),
    (
        "operations in place of multiply-adds",
        "A multiplication and the addition after it count as one here.",
        {"each": 2},
    ),
    (*LEFT_OUT, {"share": lambda p, s, m: s / (p + s)}),
    (*LEFT_OUT, {"share": lambda p, s, m: s / (p + s + m)}),
    (*LEFT_OUT, {"share": lambda p, s, m: (s + m) / (p + s)}),
    (
        "the share is turned round",
        "This is the share of the projections; that of scores and mixing is wanted.",
        {"share": lambda p, s, m: p / (p + s + m)},
    ),
    (
        "the share cut down to a whole number",
        "// and int(...) drop what stands after the point. A share needs /.",
        {"share": lambda p, s, m: (s + m) // (p + s + m)},
    ),
    (
        "a percentage in place of a share",
        "A share of the whole lies between 0 and 1: do not multiply by 100.",
        {"share": lambda *parts: 100 * share_of(*parts)},
    ),
    (
        "a ratio in place of a share",
        "A share is a part of the whole: divide by the sum of all three.",
        {"share": lambda p, s, m: (s + m) / p},
    ),
    (*LEFT_OUT, {"share": lambda p, s, m: s / p}),
    (
        "the ratio of the whole to the projections",
        "The share is what scores and mixing are of the whole: they come above the "
        "line, the sum of all three below it.",
        {"share": lambda p, s, m: (p + s + m) / p},
    ),
    *(
        (
            "the share is rounded",
            "Give the share as it comes out: whoever shows it may round it.",
            {"share": lambda *parts, digits=digits: round(share_of(*parts), digits)},
        )
        for digits in (1, 2, 3, 4)
    ),
)

# --- the check ------------------------------------------------------------------------


@chapter.check(section="attention-cost")
def attention_cost(student: StudentFunction, seed: int = 0) -> None:
    """Multiply-adds of the three parts, counted from the shapes, and the share."""
    source = WholeNumbers(seed)
    drawn = [[8 * x for x in draw_sizes(source, 2)] for _ in range(2)]
    sizes = [(4, 8), (3, 5), *map(tuple, drawn), (512, 256)]
    student.ahead(sizes)
    for t, d in sizes:
        got = student(t, d)
        hand = counted(t, d)
        if (t, d) == (4, 8):
            hand = dict(zip(hand, (1024, 128, 128, 0.2), strict=True))
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


def stepping(
    kind: str,
    length: int,
    kernel: int = 3,
    *,
    attention: Callable[[int], int] = lambda n: 1,
    recurrent: Callable[[int], int] = lambda n: n,
    missing: Callable[[int], int] = lambda n: n - 1,
    wider: Callable[[int], float] = lambda k: k - 1,
    rounded: Callable[[float], float] = math.ceil,
    layers: Callable[[int, int], int] | None = None,
) -> float:
    """Count the steps by rules that can be varied.

    Args:
        kind: of network.
        length: the number of tokens.
        kernel: how many neighbours a convolution sees.
        attention: the steps of attention.
        recurrent: the steps of a recurrent network.
        missing: the tokens that are not seen before the first layer.
        wider: by how much a layer widens the view.
        rounded: makes layers of what the two give.
        layers: of tokens and kernel, if it is not from these.
    """
    if kind == "attention":
        return attention(length)
    if kind == "recurrent":
        return recurrent(length)
    if layers:
        return layers(length, kernel)
    return rounded(missing(length) / wider(kernel))


DOWN = (
    "rounded down",
    "A layer that is needed only in part is still a layer: round up.",
)
NEAREST = (
    "rounded to the nearest",
    "A layer that is needed only in part is still a layer: round up, by math.ceil. "
    "round() makes 4 of 4.5, and 2 of 2.25.",
)
WHOLE_KERNEL = (
    "each layer is taken to add a whole kernel",
    "The windows overlap: a layer widens the view by kernel − 1 tokens, from 1 at the "
    "start.",
)
ONE_SIDE = (
    "only one side of the kernel is counted",
    "A window reaches to both sides: a layer widens the view by kernel − 1 tokens.",
)
MULTIPLIED = (
    "the view is taken to be multiplied",
    "A layer adds kernel − 1 tokens to the view: 3, 5, 7, …, not 3, 9, 27.",
)
for kind, name, why, rules in (
    (
        "attention",
        "attention takes a step for each token",
        "Every token sees all others in one layer, however far away: 1.",
        {"attention": lambda n: n},
    ),
    (
        "attention",
        "the cost of attention in place of its steps",
        "T² products are made, but all in the same layer: 1.",
        {"attention": lambda n: n * n},
    ),
    (
        "recurrent",
        "a recurrent network in one step",
        "The state passes the tokens one after another: as many steps as tokens.",
        {"recurrent": lambda n: 1},
    ),
    (
        "recurrent",
        "the first token's own step is not counted",
        "Reading the first token is a step, too: n steps for n tokens.",
        {"recurrent": lambda n: n - 1},
    ),
    (
        "convolution",
        "the view starts from nothing",
        "Before the first layer an output sees 1 token, itself: n − 1 are missing. And "
        "when the view has just as many tokens as there are, no layer is needed more.",
        {"missing": lambda n: n},
    ),
    ("convolution", *WHOLE_KERNEL, {"wider": lambda k: k, "missing": lambda n: n}),
    ("convolution", *WHOLE_KERNEL, {"wider": lambda k: k}),
    ("convolution", *ONE_SIDE, {"wider": lambda k: (k - 1) / 2}),
    ("convolution", *ONE_SIDE, {"wider": lambda k: k // 2}),
    (
        "convolution",
        "a kernel of 3, whatever kernel says",
        "A layer widens the view by kernel − 1 tokens: 2 only for a kernel of 3.",
        {"wider": lambda k: 2},
    ),
    ("convolution", *DOWN, {"rounded": math.floor}),
    ("convolution", *DOWN, {"rounded": lambda x: max(math.floor(x), 1)}),
    ("convolution", *NEAREST, {"rounded": round}),
    ("convolution", *NEAREST, {"rounded": lambda x: int(x + 0.5)}),
    (
        "convolution",
        "not a whole number",
        "Layers are counted in whole numbers: round up.",
        {"rounded": lambda x: x},
    ),
    (
        "convolution",
        "one layer too few",
        "The first layer counts, too: it makes a view of kernel tokens out of 1.",
        {"rounded": lambda x: math.ceil(x) - 1},
    ),
    (
        "convolution",
        "one layer too many",
        "Stop when the view has all tokens: 1 + layers · (kernel − 1) may be as large "
        "as length, and need not be larger.",
        {"rounded": lambda x: math.ceil(x) + 1},
    ),
    ("convolution", *MULTIPLIED, {"layers": lambda n, k: math.ceil(math.log(n, k))}),
    ("convolution", *MULTIPLIED, {"layers": lambda n, k: math.ceil(math.log2(n))}),
    (
        "convolution",
        *MULTIPLIED,
        {"layers": lambda n, k: next(s for s in range(n) if k**s >= n)},
    ),
):
    paths.mistake(name, why, when=lambda asked, n, k, kind=kind: asked == kind)(
        partial(stepping, **rules)
    )
UNKNOWN = "an unknown kind is accepted"
OTHER = (
    "another exception than ValueError",
    "Whoever calls with a misspelt kind expects a ValueError. Ask whether the kind is "
    "known, and raise it if not.",
)


def _is_unknown(kind: str, *_: int) -> bool:
    return kind not in ("attention", "recurrent", "convolution")


paths.mistake(
    UNKNOWN,
    "A misspelt kind should not get a number: raise ValueError.",
    when=_is_unknown,
)(lambda *_: 1)
paths.mistake(*OTHER, when=_is_unknown)(lambda kind, *_: {}[kind])
for words in ("KeyError", "AssertionError", "UnboundLocalError"):
    paths.accident(words, *OTHER)


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

    def misspelt() -> Data:
        with paths.accidents_named():
            return student("attentoin", 10)

    expect.raises(
        "ValueError",
        misspelt,
        on="path_length('attentoin', 10)",
        why="A misspelt kind should not get a number: raise ValueError.",
        mistake=UNKNOWN,
    )
