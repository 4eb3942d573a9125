"""What a run costs: parameters, operations, and bytes."""

import math
from collections.abc import Callable, Iterator

from autograder.chapters.language_model.chapter import chapter
from autograder.exercise.answers import expect_entries
from autograder.exercise.inputs import draw_whole, seeded
from autograder.exercise.spec import Case, Function, judge_parts
from autograder.interface import StudentFunction

NAMES = (
    "layers",
    "d_model",
    "heads",
    "kv_heads",
    "d_ff",
    "vocab_size",
    "tokens",
    "length",
    "window",
    "number_bytes",
)


def matrices(d: int, heads: int, kv_heads: int, d_ff: int) -> list[tuple[int, ...]]:
    """List the shapes of a block's parameters."""
    shared = (d, d * kv_heads // heads)
    feed_forward = [(d, d_ff), (d, d_ff), (d_ff, d)]
    return [(d, d), shared, shared, (d, d), *feed_forward, (d,), (d,)]


def budget(
    layers: int,
    d_model: int,
    heads: int,
    kv_heads: int,
    d_ff: int,
    vocab_size: int,
    tokens: int,
    length: int,
    window: int,
    number_bytes: int = 4,
    *,
    parameters: int | None = None,
    cached: Callable = lambda kept: kept,
    windowed: Callable = min,
    windowed_heads: str = "kv_heads",
) -> dict[str, int]:
    """Count from the shapes, parameter by parameter; what is counted can be varied."""
    if parameters is None:
        block = sum(map(math.prod, matrices(d_model, heads, kv_heads, d_ff)))
        parameters = layers * block + vocab_size * d_model + d_model
    groups = {"heads": heads, "kv_heads": kv_heads}
    kept = {
        "cache_multi_head": (heads, length),
        "cache_grouped": (kv_heads, length),
        "cache_windowed": (groups[windowed_heads], windowed(window, length)),
    }
    kinds = ("keys", "values")
    caches = {
        name: len(kinds) * layers * count * places * (d_model // heads) * number_bytes
        for name, (count, places) in kept.items()
    }
    return {
        "parameters": parameters,
        "operations": 6 * parameters * tokens,
        "training_bytes": 4 * parameters * number_bytes,
        **{name: cached(value) for name, value in caches.items()},
    }


budgets = Function("run-budget", "run_budget", budget)


# --- what goes wrong ------------------------------------------------------------------


def _counted(layers, d, heads, kv_heads, d_ff, vocab_size, change: Callable) -> int:
    """Count parameters of a block, a table and the last norm, after a change."""
    shapes = matrices(d, heads, kv_heads, d_ff)
    block, table, last = change(shapes, (vocab_size, d), (d,))
    return sum(math.prod(shape) for shape in (*layers * block, *table, *last))


for name, why, change in (
    (
        "the table is counted twice",
        "The logits are products with the rows of the embedding: one table for both.",
        lambda block, table, last: (block, [table, table], [last]),
    ),
    (
        "the table is not counted",
        "The embedding's table has a row of d_model numbers for each token of the "
        "vocabulary.",
        lambda block, table, last: (block, [], [last]),
    ),
    (
        "keys and values as wide as the queries",
        "There are kv_heads heads of keys and values, each d_model / heads wide.",
        lambda block, table, last: (
            [*4 * block[:1], *block[4:]],
            [table],
            [last],
        ),
    ),
    (
        "two matrices in the feed-forward network",
        "SwiGLU has three: gate, up and down.",
        lambda block, table, last: ([*block[:4], *block[5:]], [table], [last]),
    ),
    (
        "the output projection is forgotten",
        "Attention has four matrices: W_Q, W_K, W_V and, at the end, W_O.",
        lambda block, table, last: (block[1:], [table], [last]),
    ),
    (
        "the norms are not counted",
        "An RMS norm has d_model numbers: two norms in each block, and one at the end.",
        lambda block, table, last: (block[:-2], [table], []),
    ),
    (
        "each norm has a bias, too",
        "An RMS norm has a gain alone, d_model numbers: there is no bias.",
        lambda block, table, last: ([*block, *block[-2:]], [table], [last, last]),
    ),
    (
        "one norm in a block",
        "A block has two norms, one before attention and one before the feed-forward "
        "network.",
        lambda block, table, last: (block[:-1], [table], [last]),
    ),
    (
        "the last norm is forgotten",
        "After the last block there is one more norm, before the logits.",
        lambda block, table, last: (block, [table], []),
    ),
):
    budgets.mistake(name, why)(
        lambda *given, change=change: budget(
            *given, parameters=_counted(*given[:6], change)
        )
    )
for biased in (slice(0, 4), slice(4, 7), slice(0, 7)):  # attention, SwiGLU, both
    budgets.mistake(
        "the biases are counted, too",
        "None of these projections has a bias: only the matrices count, and the norms.",
    )(
        lambda *given, biased=biased: budget(
            *given,
            parameters=_counted(
                *given[:6],
                lambda block, table, last: (
                    [*block, *(shape[-1:] for shape in block[biased])],
                    [table],
                    [last],
                ),
            ),
        )
    )
budgets.mistake(
    "one block in place of all",
    "Every block has matrices of its own: multiply by the number of layers.",
)(
    lambda *given: budget(
        *given, parameters=_counted(1, *given[1:6], lambda b, t, n: (b, [t], [n]))
    )
)


def _replaced(name: str, why: str, entry: str, value: Callable) -> None:
    """Add a mistake in one entry, made of the right budget and the arguments."""
    budgets.mistake(name, why)(
        lambda *given: (
            budget(*given)
            | {entry: value(budget(*given), dict(zip(NAMES, given, strict=True)))}
        )
    )


SIX = (
    "For each token every parameter takes part in a multiplication and an addition "
    "forward, and in twice as many backward: 2 + 4 = 6."
)
for name, why, value in (
    (
        "the way forward alone",
        SIX,
        lambda right, given: 2 * right["parameters"] * given["tokens"],
    ),
    (
        "the way backward alone",
        SIX,
        lambda right, given: 4 * right["parameters"] * given["tokens"],
    ),
    (
        "multiply-adds in place of operations",
        "A multiplication and the addition after it are two operations here.",
        lambda right, given: 3 * right["parameters"] * given["tokens"],
    ),
    (
        "the operations of one token",
        "6 N is for one token. The run reads `tokens` of them.",
        lambda right, given: 6 * right["parameters"],
    ),
    (
        "the length of the text in place of the tokens of the run",
        "`tokens` is what the run learns from; `length` is the text of the cache.",
        lambda right, given: 6 * right["parameters"] * given["length"],
    ),
):
    _replaced(name, why, "operations", value)
for last in (0, 1):  # without the last norm or with it
    _replaced(
        "the operations without the embeddings",
        "6 N counts all parameters: the table gives the logits, so it takes part in "
        "every token, too.",
        "operations",
        lambda right, given, last=last: (
            6
            * (right["parameters"] - given["d_model"] * (given["vocab_size"] + last))
            * given["tokens"]
        ),
    )
FOUR = (
    "Each parameter takes four numbers while it is trained: itself, its gradient, and "
    "Adam's two moments."
)
for name, factor in (
    ("the parameters alone", 1),
    ("parameters and gradients alone", 2),
    ("three numbers a parameter", 3),
):
    _replaced(
        name,
        FOUR,
        "training_bytes",
        lambda right, given, factor=factor: (
            factor * right["parameters"] * given["number_bytes"]
        ),
    )
_replaced(
    "numbers in place of bytes",
    "A number takes number_bytes bytes, 4 for float32.",
    "training_bytes",
    lambda right, given: 4 * right["parameters"],
)
_replaced(
    "four bytes a number, whatever number_bytes is",
    "A number takes number_bytes bytes, 2 in bfloat16.",
    "training_bytes",
    lambda right, given: 4 * right["parameters"] * 4,
)
for name, why, per in (
    (
        "keys or values alone",
        "The cache holds a key and a value for each position: twice as much.",
        lambda given: 2,
    ),
    (
        "the cache of one layer",
        "Each layer has keys and values of its own.",
        lambda given: given["layers"],
    ),
    (
        "the cache in numbers, not bytes",
        "A number takes number_bytes bytes, 4 for float32.",
        lambda given: given["number_bytes"],
    ),
):
    budgets.mistake(name, why)(
        lambda *given, per=per: budget(
            *given,
            cached=lambda kept: kept // per(dict(zip(NAMES, given, strict=True))),
        )
    )
budgets.mistake(
    "each head as wide as the model",
    "Heads have the width d_model / heads.",
)(lambda *given: budget(*given, cached=lambda kept: kept * given[2]))
for name, why, rule in (
    (
        "the window of a shorter text",
        "A text shorter than the window fills only a part of it: the smaller of both.",
        {"windowed": lambda window, length: window},
    ),
    (
        "the window is not used",
        "With a window each layer keeps the last `window` positions at most.",
        {"windowed": lambda window, length: length},
    ),
    (
        "the larger of window and length",
        "No more than the window is kept, and no more than there is: min.",
        {"windowed": max},
    ),
    (
        "the window has the heads of the queries",
        "The windowed cache is the grouped one, cut off: kv_heads heads.",
        {"windowed_heads": "heads"},
    ),
):
    budgets.mistake(name, why)(
        lambda *given, rule=rule: budget(*given, **rule),
    )
_replaced(
    "the groups in place of the kv heads",
    "What is kept are the kv_heads heads; heads / kv_heads is how many queries share "
    "one of them.",
    "cache_grouped",
    lambda right, given: right["cache_multi_head"] // given["kv_heads"],
)


# --- the check ------------------------------------------------------------------------

BY_HAND = {
    "layers": 2,
    "d_model": 8,
    "heads": 4,
    "kv_heads": 2,
    "d_ff": 16,
    "vocab_size": 10,
    "tokens": 1000,
    "length": 12,
    "window": 5,
}
WORKED = {
    "parameters": 1272,
    "operations": 7_632_000,
    "training_bytes": 20_352,
    "cache_multi_head": 1536,
    "cache_grouped": 768,
    "cache_windowed": 320,
}


def _configurations(seed: int) -> Iterator[dict[str, int]]:
    """Draw shapes, with windows that are shorter and longer than the text."""
    generator = seeded(seed)
    for longer, number_bytes in ((False, 2), (True, 4), (False, 4)):
        kv_heads = 4 + draw_whole(generator, 3)
        heads = kv_heads * (2 + draw_whole(generator, 2))
        length = 40 + draw_whole(generator, 30)
        window = length + 7 if longer else length - 11
        yield {
            "layers": 5 + draw_whole(generator, 5),
            "d_model": heads * 2 * (3 + draw_whole(generator, 4)),
            "heads": heads,
            "kv_heads": kv_heads,
            "d_ff": 100 + draw_whole(generator, 99),
            "vocab_size": 301 + draw_whole(generator, 99),
            "tokens": 10_000 + draw_whole(generator, 999),
            "length": length,
            "window": window,
            "number_bytes": number_bytes,
        }


@chapter.check(section="language-model-budget")
def run_budget(student: StudentFunction, seed: int = 0) -> None:
    """By hand, and counted from the shapes."""
    for given in (BY_HAND, *_configurations(seed)):
        right = WORKED if given is BY_HAND else budget(**given)
        said = ", ".join(f"{name}={value}" for name, value in given.items())
        got = student(**given)
        expect_entries(got, right)
        inputs = tuple(({"number_bytes": 4} | given)[name] for name in NAMES)
        case = Case(f"run_budget({said})", inputs, right, tolerance=1e-9)
        judge_parts(budgets, got, case, right)
