"""Skip-gram: every token with its neighbours."""

from collections.abc import Callable

from autograder.chapters.embeddings.chapter import chapter
from autograder.exercise.inputs import WholeNumbers, draw_several
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction

Pairs = list[tuple[int, int]]


def within(i: int, j: int, window: int) -> bool:
    """Whether two positions are different and at most `window` apart."""
    return 1 <= abs(i - j) <= window


def near(ids: list[int], window: int) -> Pairs:
    """Pair the ids at all positions near each other, by brute force."""
    places = range(len(ids))
    return [(ids[i], ids[j]) for i in places for j in places if within(i, j, window)]


pairs = Function("skip-gram-pairs", "skip_gram_pairs", near)


# --- what goes wrong ------------------------------------------------------------------


def paired(
    ids: list[int],
    window: int,
    *,
    centers: Callable = lambda count, window: range(count),
    places: Callable = lambda i, count, window: range(count),
    is_near: Callable = within,
    arranged: Callable = lambda i, found: found,
    contexts: Callable = list,
    kept: Callable = lambda center, context: True,
    pair: Callable = lambda center, context: (center, context),
    listed: Callable = list,
) -> Pairs:
    """Pair by rules that can be varied.

    Args:
        ids: of the text.
        window: how far a context may be.
        centers: positions, of how many there are and the window.
        places: where contexts are looked for, of the center's position, too.
        is_near: of two positions and the window.
        arranged: the positions that were found, of the center's and these.
        contexts: of the ids at these positions.
        kept: whether a pair is, of both ids.
        pair: of both ids.
        listed: of all pairs.
    """
    count = len(ids)
    made = []
    for i in centers(count, window):
        found = [j for j in places(i, count, window) if is_near(i, j, window)]
        for context in contexts([ids[j] for j in arranged(i, found)]):
            if kept(ids[i], context):
                made.append(pair(ids[i], context))
    return listed(made)


ONE_SIDE = "one side only", "The window reaches to the left and to the right."
EARLY = (
    "the window ends too early",
    "range stops before its end: a neighbour `window` places away belongs in.",
)
ORDER = (
    "right pairs in another order",
    "Centers from left to right, and for each its contexts from left to right.",
)
OVER = (
    "the window runs over the end",
    "The last token has no right neighbours: end the window with the text.",
)
pairs.accident("list index out of range", *OVER)
pairs.slips(
    paired,
    (
        "a token paired with itself",
        "The center is not its own context: leave out its position.",
        {"is_near": lambda i, j, window: abs(i - j) <= window},
    ),
    (*ONE_SIDE, {"is_near": lambda i, j, window: 1 <= j - i <= window}),
    (*ONE_SIDE, {"is_near": lambda i, j, window: 1 <= i - j <= window}),
    (*EARLY, {"is_near": lambda i, j, window: i != j and -window <= j - i < window}),
    (*EARLY, {"is_near": lambda i, j, window: 1 <= abs(i - j) < window}),
    (
        "the window is one wider",
        "A neighbour is at most `window` places away.",
        {"is_near": lambda i, j, window: within(i, j, window + 1)},
    ),
    (
        "half the window on each side",
        "`window` counts the neighbours on one side, not on both.",
        {"is_near": lambda i, j, window: within(i, j, window // 2)},
    ),
    (
        "only the farthest neighbours",
        "All tokens up to `window` places away are neighbours, the nearer ones, too.",
        {"is_near": lambda i, j, window: abs(i - j) == window},
    ),
    (
        "every token of the text is a neighbour",
        "A neighbour is at most `window` places away.",
        {"is_near": lambda i, j, window: i != j},
    ),
    (
        "the window wraps around at the start",
        "ids[-1] is the last token. Begin the window with max(0, i - window).",
        {"places": lambda i, count, window: range(max(-count, i - window), count)},
    ),
    (
        *OVER,
        {"places": lambda i, count, window: range(max(0, i - window), i + window + 1)},
    ),
    (
        "a slice that begins before the text",
        "ids[-2:1] begins at the last token but one, so it is empty, and the left "
        "neighbours are missing. Begin the slice with max(0, i - window).",
        {
            "places": lambda i, count, window: [
                *range(count)[i - window : i],
                *range(i + 1, count),
            ]
        },
    ),
    (
        "centers near the ends left out",
        "The first and the last token have neighbours as well, only fewer.",
        {"centers": lambda count, window: range(window, count - window)},
    ),
    (*ORDER, {"arranged": lambda i, found: sorted(found, key=lambda j: j < i)}),
    (
        *ORDER,
        {"arranged": lambda i, found: sorted(found, key=lambda j: abs(j - i + 0.1))},
    ),
    (
        *ORDER,
        {"arranged": lambda i, found: sorted(found, key=lambda j: abs(j - i - 0.1))},
    ),
    (*ORDER, {"listed": sorted}),
    (
        "a set in place of a list",
        "A set has no order and keeps no repetitions; both matter here.",
        {"contexts": set},
    ),
    (
        "contexts as a list",
        "One pair for each neighbour: (center, context), two ids.",
        {"contexts": lambda values: [tuple(values)]},
    ),
    (
        "equal neighbours left out",
        "In 'very very good' the first word is a neighbour of the second, although "
        "they are equal. Compare positions, not ids.",
        {"kept": lambda center, context: center != context},
    ),
    (
        "center and context exchanged",
        "The center comes first in each pair.",
        {"pair": lambda center, context: (context, center)},
    ),
    (
        "each pair only once",
        "Pairs that occur more often count more: repetitions stay.",
        {"listed": lambda made: list(dict.fromkeys(made))},
    ),
)
pairs.mistake(
    "positions in place of ids",
    "The pairs hold the ids at these positions: ids[i], ids[j].",
)(lambda ids, window: near(list(range(len(ids))), window))


# --- the check ------------------------------------------------------------------------


@chapter.check(section="embeddings-skip-gram")
def skip_gram_pairs(student: StudentFunction, seed: int = 0) -> None:
    """By hand, repeated ids, windows wider than the text."""
    source = WholeNumbers(seed)
    length, window = draw_several(source, 8, 12, 1)[0], draw_several(source, 2, 4, 1)[0]
    drawn = draw_several(source, 0, 5, length)
    for ids, width in (
        ([5, 2, 7, 9, 3, 8], 3),
        ([5, 2, 7, 2], 1),
        ([4, 4, 6, 4], 1),
        (drawn, window),
        ([3, 1, 4], 6),
        ([3], 2),
        ([], 1),
    ):
        case = Case(
            f"skip_gram_pairs({ids}, window={width})",
            (ids, width),
            what="the list of pairs",
            why="(center, context) for every position and every other position at most "
            "`window` away, in the order of the text.",
        )
        pairs.judge(student, case)
