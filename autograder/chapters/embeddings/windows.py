"""Skip-gram: every token with its neighbours."""

from collections.abc import Callable

from autograder.chapters.embeddings.chapter import chapter
from autograder.exercise.inputs import WholeNumbers, draw_several
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction

Pairs = list[tuple[int, int]]
Near = Callable[[int, int, int], bool]  # of two positions and the window


def near(ids: list[int], window: int, is_near: Near) -> Pairs:
    """Pair the ids at all positions that pass a test, by brute force."""
    places = range(len(ids))
    return [(ids[i], ids[j]) for i in places for j in places if is_near(i, j, window)]


def within(i: int, j: int, window: int) -> bool:
    """Whether two positions are different and at most `window` apart."""
    return 1 <= abs(i - j) <= window


pairs = Function(
    "skip-gram-pairs", "skip_gram_pairs", lambda ids, window: near(ids, window, within)
)


# --- what goes wrong ------------------------------------------------------------------

ONE_SIDE = "one side only", "The window reaches to the left and to the right."
EARLY = (
    "the window ends too early",
    "range stops before its end: a neighbour `window` places away belongs in.",
)
for name, why, is_near in (
    (
        "a token paired with itself",
        "The center is not its own context: leave out its position.",
        lambda i, j, window: abs(i - j) <= window,
    ),
    (*ONE_SIDE, lambda i, j, window: 1 <= j - i <= window),
    (*ONE_SIDE, lambda i, j, window: 1 <= i - j <= window),
    (*EARLY, lambda i, j, window: i != j and -window <= j - i < window),
    (*EARLY, lambda i, j, window: 1 <= abs(i - j) < window),
    (
        "the window is one wider",
        "A neighbour is at most `window` places away.",
        lambda i, j, window: within(i, j, window + 1),
    ),
    (
        "half the window on each side",
        "`window` counts the neighbours on one side, not on both.",
        lambda i, j, window: within(i, j, window // 2),
    ),
    (
        "only the farthest neighbours",
        "All tokens up to `window` places away are neighbours, the nearer ones, too.",
        lambda i, j, window: abs(i - j) == window,
    ),
    (
        "every token of the text is a neighbour",
        "A neighbour is at most `window` places away.",
        lambda i, j, window: i != j,
    ),
):
    pairs.mistake(name, why)(
        lambda ids, window, is_near=is_near: near(ids, window, is_near)
    )

ORDER = (
    "right pairs in another order",
    "Centers from left to right, and for each its contexts from left to right.",
)
for name, why, change in (
    (
        "center and context exchanged",
        "The center comes first in each pair.",
        lambda right: [(context, center) for center, context in right],
    ),
    (
        "equal neighbours left out",
        "In 'very very good' the first word is a neighbour of the second, although "
        "they are equal. Compare positions, not ids.",
        lambda right: [
            (center, context) for center, context in right if center != context
        ],
    ),
    (
        "each pair only once",
        "Pairs that occur more often count more: repetitions stay.",
        lambda right: list(dict.fromkeys(right)),
    ),
    (*ORDER, sorted),
):
    pairs.mistake(name, why)(
        lambda ids, window, change=change: change(near(ids, window, within))
    )
pairs.mistake(
    "positions in place of ids",
    "The pairs hold the ids at these positions: ids[i], ids[j].",
)(lambda ids, window: near(list(range(len(ids))), window, within))


def _by_sides(ids: list[int], window: int, around: Callable) -> Pairs:
    """Pair each center with what a function makes of its two sides."""
    return [
        (center, context)
        for i, center in enumerate(ids)
        for context in around(ids[max(0, i - window) : i], ids[i + 1 : i + 1 + window])
    ]


def _nearest_first(before: list[int], behind: list[int]) -> list[int]:
    found = []
    for step in range(max(len(before), len(behind))):
        found += [*before[::-1][step : step + 1], *behind[step : step + 1]]
    return found


for name, why, around in (
    (*ORDER, lambda before, behind: [*behind, *before]),
    (*ORDER, _nearest_first),
    (
        "a set in place of a list",
        "A set has no order and keeps no repetitions; both matter here.",
        lambda before, behind: {*before, *behind},
    ),
    (
        "contexts as a list",
        "One pair for each neighbour: (center, context), two ids.",
        lambda before, behind: [(*before, *behind)],
    ),
):
    pairs.mistake(name, why)(
        lambda ids, window, around=around: _by_sides(ids, window, around)
    )


def _by_places(ids: list[int], centers: range, places: Callable) -> Pairs:
    """Pair positions without a look at where the text ends."""
    return [(ids[i], ids[j]) for i in centers for j in places(i) if j != i]


pairs.mistake(
    "the window wraps around at the start",
    "ids[-1] is the last token. Begin the window with max(0, i - window).",
)(
    lambda ids, window: _by_places(
        ids,
        range(len(ids)),
        lambda i: range(max(-len(ids), i - window), min(len(ids), i + window + 1)),
    )
)
OVER = (
    "the window runs over the end",
    "The last token has no right neighbours: end the window with the text.",
)
pairs.accident("list index out of range", *OVER)
pairs.mistake(*OVER)(
    lambda ids, window: _by_places(
        ids, range(len(ids)), lambda i: range(max(0, i - window), i + window + 1)
    )
)
pairs.mistake(
    "centers near the ends left out",
    "The first and the last token have neighbours as well, only fewer.",
)(
    lambda ids, window: _by_places(
        ids,
        range(window, len(ids) - window),
        lambda i: range(i - window, i + window + 1),
    )
)
pairs.mistake(
    "a slice that begins before the text",
    "ids[-2:1] begins at the last token but one, so it is empty, and the left "
    "neighbours are missing. Begin the slice with max(0, i - window).",
)(
    lambda ids, window: [
        (center, context)
        for i, center in enumerate(ids)
        for context in [*ids[i - window : i], *ids[i + 1 : i + 1 + window]]
    ]
)


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
