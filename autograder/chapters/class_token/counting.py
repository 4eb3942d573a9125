"""How many weights a head has."""

from collections.abc import Callable

from autograder import expect
from autograder.chapters.class_token.chapter import chapter
from autograder.exercise.inputs import WholeNumbers, draw_sizes
from autograder.exercise.spec import Case, Function, errors_named
from autograder.expect import describe_error, refuse, refuse_if, show
from autograder.interface import Opaque, StudentError, StudentFunction

KINDS = ("class", "mean", "flatten")


def entries(kind: str, length: int, d_model: int, classes: int) -> int:
    """Count one long vector for flatten, one position for the others."""
    return d_model * classes * (length if kind == "flatten" else 1)


counts = Function("head-parameters", "head_parameters", entries)


def miscounted(name: str, kinds: tuple[str, ...], count: Callable, why: str) -> None:
    """Add a mistake that shows for some kinds."""
    counts.mistake(name, why, when=lambda kind, *_: kind in kinds)(count)


ALL_POSITIONS = (
    "The mean is one vector of width d_model, just as the class token's output is: the "
    "head has the same size. What saves parameters is not the class token, but to read "
    "one vector in place of T."
)
ONE_POSITION = (
    "A flattened sequence is one long vector with T · d_model entries, and each of "
    "them has a weight for every class."
)
AT_0 = "The head reads position 0 only."
AS_IT_IS = "T is the length that the head sees: here it is the argument as it is."
for name, kinds, count, why in (
    (
        "the bias is counted, too",
        KINDS,
        lambda kind, t, d, c: entries(kind, t, d, c) + c,
        "Weights only: the entries of the matrix, without the bias.",
    ),
    (
        "the class token is counted, too",
        ("class",),
        lambda kind, t, d, c: d * c + d,
        "The class token's d_model numbers belong to the input of the encoder. Count "
        "the weights of the head.",
    ),
    (
        "counted in millions",
        KINDS,
        lambda kind, t, d, c: entries(kind, t, d, c) / 1e6,
        "Return the number itself, 768000 and not 0.768.",
    ),
    (
        "added in place of multiplied",
        KINDS,
        lambda kind, t, d, c: d + c,
        "A matrix (n, m) has n · m entries.",
    ),
    (
        "the class token's head counted like flatten",
        ("class",),
        lambda kind, t, d, c: t * d * c,
        AT_0,
    ),
    (
        "the head reads one position more",
        ("class",),
        lambda kind, t, d, c: 2 * d * c,
        AT_0,
    ),
    (
        "the mean counted like flatten",
        ("mean",),
        lambda kind, t, d, c: t * d * c,
        ALL_POSITIONS,
    ),
    (
        "flatten counted like one position",
        ("flatten",),
        lambda kind, t, d, c: d * c,
        ONE_POSITION,
    ),
    (
        "one position too many",
        ("flatten",),
        lambda kind, t, d, c: (t + 1) * d * c,
        AS_IT_IS,
    ),
    (
        "one position too few",
        ("flatten",),
        lambda kind, t, d, c: (t - 1) * d * c,
        AS_IT_IS,
    ),
    (
        "one weight for a position and a class",
        ("flatten",),
        lambda kind, t, d, c: t * c,
        ONE_POSITION,
    ),
):
    miscounted(name, kinds, count, why)

MISSPELT = "flaten"
UNKNOWN = (
    "an unknown kind is accepted",
    "A misspelt kind should not get a number: raise ValueError.",
)
OTHER_ERROR = (
    "another exception than ValueError",
    "Say yourself what is wrong: raise ValueError for any other kind.",
)
REFUSED = (
    "a known kind is refused",
    "'class', 'mean' and 'flatten' are all known; only others are refused. "
    '("class" or "mean") is "class" in Python: write kind in ("class", "mean"), and '
    "look at how each of the three is spelt.",
)
RETURNED = (
    "the exception is returned",
    "An exception is raised, not returned: raise ValueError(...).",
)
miscounted(UNKNOWN[0], (MISSPELT,), entries, UNKNOWN[1])
miscounted(
    OTHER_ERROR[0],
    (MISSPELT,),
    lambda kind, t, d, c: {"class": d, "mean": d, "flatten": t * d}[kind] * c,
    OTHER_ERROR[1],
)


@chapter.check(section="class-token-parameters")
def head_parameters(student: StudentFunction, seed: int = 0) -> None:
    """ViT's numbers, by hand and at random; other kinds are refused."""
    source = WholeNumbers(seed)
    vit = (197, 768, 1000)
    drawn = [draw_sizes(source, 3, largest=8) for _ in range(3)]
    sizes = [vit, (4, 3, 2), (1, 3, 2), *(tuple(7 * n for n in each) for each in drawn)]
    for each in sizes:
        for kind in KINDS:
            on = f"head_parameters({kind!r}, {', '.join(map(str, each))})"
            what = f"the number of weights for {kind!r}"
            case = Case(on, (kind, *each), tolerance=1e-9, what=what)
            with errors_named(("ValueError", *REFUSED)):
                counts.judge(student, case)
    on = f"head_parameters({MISSPELT!r}, 197, 768, 1000)"
    try:
        got = student(MISSPELT, *vit)
        returned = isinstance(got, Opaque) and got.type_name.endswith("Error")
        say = {"on": on, "got": f"the result {show(got)}", "expected": "ValueError"}
        refuse_if(returned, *RETURNED, **say)
    except StudentError as error:
        if error.kind not in ("ValueError", "NotImplementedError"):
            got = f"{error.kind}: {describe_error(error)}"
            refuse(*OTHER_ERROR, on=on, got=got, expected="ValueError")
    name, why = UNKNOWN

    expect.raises(
        "ValueError",
        lambda: student(MISSPELT, *vit),
        on=on,
        why=why,
        mistake=name,
    )
