"""What a run costs: parameters, operations, and bytes."""

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

Rule = Callable[..., float]


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
    squares: int = 2,
    pairs: int = 2,
    shared: Rule = lambda d, heads, kv: d * kv // heads,
    networks: int = 3,
    norms: int = 2,
    gains: int = 1,
    more: Rule = lambda d, shared, d_ff, d_k: 0,
    blocks: Rule = lambda layers: layers,
    rows: Rule = lambda vocab_size, layers, length: vocab_size,
    last: Rule = lambda layers: 1,
    factor: int = 6,
    read: Rule = lambda tokens, length: tokens,
    idle: Rule = lambda vocab_size: 0,
    scores: int = 0,
    copies: int = 4,
    untrained: Rule = lambda vocab_size: 0,
    trained: Rule = lambda number_bytes: number_bytes,
    kinds: int = 2,
    caching: Rule = lambda layers: layers,
    width: Rule = lambda d, heads, kv: d // heads,
    cached: Rule = lambda number_bytes: number_bytes,
    kept: Rule = lambda length, tokens: length,
    full: Rule = lambda heads, kv: heads,
    grouped: Rule = lambda heads, kv: kv,
    windowed_heads: Rule | None = None,
    windowed: Rule = min,
) -> dict[str, float]:
    """Count all costs by rules that can be varied.

    Behind the exercise's own arguments, of a block: its matrices (d, d), its matrices
    of keys and values, how wide these are, the matrices of its network, its norms, what
    a norm has for each feature, and ``more`` than that. How many blocks, rows of tables
    and last norms there are. Of a token: operations for a parameter, which tokens are
    read, rows of the table without a part, operations for a score. Of the training: how
    often a parameter is there, rows that do not learn, bytes. Of the caches: keys and
    values, layers, the width of a head, bytes, positions, the heads of each, and what a
    window leaves.
    """
    block = squares * d_model**2 + pairs * d_model * shared(d_model, heads, kv_heads)
    block += networks * d_model * d_ff + norms * gains * d_model
    block += more(d_model, shared(d_model, heads, kv_heads), d_ff, d_model // heads)
    once = rows(vocab_size, layers, length) + last(layers) * gains
    parameters = blocks(layers) * block + once * d_model
    used = parameters - idle(vocab_size) * d_model
    learned = parameters - untrained(vocab_size) * d_model
    attended = scores * layers * d_model * length
    position = kinds * caching(layers) * width(d_model, heads, kv_heads)
    position *= cached(number_bytes)
    places = kept(length, tokens)
    seen = position * (windowed_heads or grouped)(heads, kv_heads)
    return {
        "parameters": parameters,
        "operations": (factor * used + attended) * read(tokens, length),
        "training_bytes": copies * learned * trained(number_bytes),
        "cache_multi_head": position * full(heads, kv_heads) * places,
        "cache_grouped": position * grouped(heads, kv_heads) * places,
        "cache_windowed": seen * windowed(window, places),
    }


budgets = Function("run-budget", "run_budget", budget)


# --- what goes wrong ------------------------------------------------------------------

BIASED = (
    "the biases are counted, too",
    "None of these projections has a bias: only the matrices count, and the norms.",
)
ALL_HEADS = (
    "keys and values as wide as the queries",
    "There are kv_heads heads of keys and values, each d_model / heads wide.",
)
GROUPS = (
    "the groups in place of the kv heads",
    "What is kept are the kv_heads heads; heads / kv_heads is how many queries share "
    "one of them.",
)
NORMS = (
    "the norms are not counted",
    "An RMS norm has d_model numbers: two norms in each block, and one at the end.",
)
SIX = (
    "For each token every parameter takes part in a multiplication and an addition "
    "forward, and in twice as many backward: 2 + 4 = 6."
)
IDLE = (
    "the operations without the embeddings",
    "6 N counts all parameters: the table gives the logits, so it takes part in "
    "every token, too.",
)
FOUR = (
    "Each parameter takes four numbers while it is trained: itself, its gradient, and "
    "Adam's two moments."
)
NUMBERS = "A number takes number_bytes bytes, 4 for float32."
FIXED = (
    "four bytes a number, whatever number_bytes is",
    "A number takes number_bytes bytes, 2 in bfloat16.",
)
budgets.slips(
    budget,
    (
        "the table is counted twice",
        "The logits are products with the rows of the embedding: one table for both.",
        {"rows": lambda vocab_size, layers, length: 2 * vocab_size},
    ),
    (
        "the table is not counted",
        "The embedding's table has a row of d_model numbers for each token of the "
        "vocabulary.",
        {"rows": lambda vocab_size, layers, length: 0},
    ),
    (
        "a table in each block",
        "There is one table in the whole model: add it once, after the blocks.",
        {"rows": lambda vocab_size, layers, length: layers * vocab_size},
    ),
    (
        "a table of positions is counted",
        "Rotary positions have no parameters.",
        {"rows": lambda vocab_size, layers, length: vocab_size + length},
    ),
    (*ALL_HEADS, {"shared": lambda d, heads, kv: d}),
    (
        "keys and values of one head",
        "All kv_heads heads have keys and values of their own, each d_model / heads "
        "wide.",
        {"shared": lambda d, heads, kv: d // heads},
    ),
    (
        "each head as wide as the model",
        "Heads have the width d_model / heads.",
        {"shared": lambda d, heads, kv: d * kv},
    ),
    (*GROUPS, {"shared": lambda d, heads, kv: d // kv}),
    (
        "one matrix for keys and values",
        "Keys and values are two projections of a token, W_K and W_V.",
        {"pairs": 1},
    ),
    (
        "two matrices in the feed-forward network",
        "SwiGLU has three: gate, up and down.",
        {"networks": 2},
    ),
    (
        "the output projection is forgotten",
        "Attention has four matrices: W_Q, W_K, W_V and, at the end, W_O.",
        {"squares": 1},
    ),
    (*NORMS, {"norms": 0, "last": lambda layers: 0}),
    (*NORMS, {"norms": 0}),
    (
        "each norm has a bias, too",
        "An RMS norm has a gain alone, d_model numbers: there is no bias.",
        {"gains": 2},
    ),
    (
        "one norm in a block",
        "A block has two norms, one before attention and one before the feed-forward "
        "network.",
        {"norms": 1},
    ),
    (
        "the last norm is forgotten",
        "After the last block there is one more norm, before the logits.",
        {"last": lambda layers: 0},
    ),
    (
        "the last norm in each block",
        "After the last block there is one more norm, once in the whole model.",
        {"last": lambda layers: layers},
    ),
    (*BIASED, {"more": lambda d, shared, d_ff, d_k: 2 * d + 2 * shared}),
    (*BIASED, {"more": lambda d, shared, d_ff, d_k: d + 2 * shared}),
    (*BIASED, {"more": lambda d, shared, d_ff, d_k: 2 * d_ff + d}),
    (*BIASED, {"more": lambda d, shared, d_ff, d_k: 3 * d + 2 * shared + 2 * d_ff}),
    (
        "norms of queries and keys are counted",
        "The blocks of this exercise have two norms, one before attention and one "
        "before the network. Queries and keys are not normalised here.",
        {"more": lambda d, shared, d_ff, d_k: 2 * d_k},
    ),
    (
        "one block in place of all",
        "Every block has matrices of its own: multiply by the number of layers.",
        {"blocks": lambda layers: 1},
    ),
    ("the way forward alone", SIX, {"factor": 2}),
    ("the way backward alone", SIX, {"factor": 4}),
    (
        "multiply-adds in place of operations",
        "A multiplication and the addition after it are two operations here.",
        {"factor": 3},
    ),
    (
        "the operations of one token",
        "6 N is for one token. The run reads `tokens` of them.",
        {"read": lambda tokens, length: 1},
    ),
    (
        "the length of the text in place of the tokens of the run",
        "`tokens` is what the run learns from; `length` is the text of the cache.",
        {"read": lambda tokens, length: length},
    ),
    (
        "the length of the text and the tokens of the run",
        "`tokens` are all that the run learns from; `length` is the text of the cache, "
        "and has no part in the training.",
        {"read": lambda tokens, length: tokens * length},
    ),
    (*IDLE, {"idle": lambda vocab_size: vocab_size}),
    (*IDLE, {"idle": lambda vocab_size: vocab_size + 1}),  # and the last norm
    (
        "the scores of attention are counted",
        "6 N leaves them out: they belong to no parameter, and of short texts they are "
        "few.",
        {"scores": 12},
    ),
    (
        "the training without the embeddings",
        "The table is trained as the matrices are: all parameters count.",
        {"untrained": lambda vocab_size: vocab_size},
    ),
    ("the parameters alone", FOUR, {"copies": 1}),
    ("parameters and gradients alone", FOUR, {"copies": 2}),
    ("three numbers a parameter", FOUR, {"copies": 3}),
    ("numbers in place of bytes", NUMBERS, {"trained": lambda number_bytes: 1}),
    (*FIXED, {"trained": lambda number_bytes: 4}),
    (*FIXED, {"trained": lambda number_bytes: 2 + number_bytes // 2}),  # of the moments
    (*FIXED, {"cached": lambda number_bytes: 4}),
    (
        *FIXED,
        {"trained": lambda number_bytes: 4, "cached": lambda number_bytes: 4},
    ),
    (
        "keys or values alone",
        "The cache holds a key and a value for each position: twice as much.",
        {"kinds": 1},
    ),
    (
        "the cache of one layer",
        "Each layer has keys and values of its own.",
        {"caching": lambda layers: 1},
    ),
    (
        "the cache in numbers, not bytes",
        NUMBERS,
        {"cached": lambda number_bytes: 1},
    ),
    (
        "each head as wide as the model",
        "Heads have the width d_model / heads.",
        {"width": lambda d, heads, kv: d},
    ),
    (
        "heads as wide as d_model / kv_heads",
        "All heads have the width d_model / heads, those of keys and values, too: "
        "there are only fewer of them.",
        {"width": lambda d, heads, kv: d // kv},
    ),
    (
        "the tokens of the run in place of the text",
        "`length` is the text in the cache; `tokens` is what the run learns from.",
        {"kept": lambda length, tokens: tokens},
    ),
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
        {"windowed_heads": lambda heads, kv: heads},
    ),
    (
        "keys and values of all heads are kept",
        "Queries are not kept. Kept are the kv_heads heads of keys and values.",
        {"grouped": lambda heads, kv: heads},
    ),
    (
        "kv_heads in place of all heads",
        "cache_multi_head is what it would be if all heads had keys and values of "
        "their own.",
        {"full": lambda heads, kv: kv},
    ),
    (*GROUPS, {"grouped": lambda heads, kv: heads // kv}),
    (
        *GROUPS,
        {
            "grouped": lambda heads, kv: heads // kv,
            "windowed_heads": lambda heads, kv: kv,
        },
    ),
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
        right = WORKED if given is BY_HAND else budget(*given.values())
        said = ", ".join(f"{name}={value}" for name, value in given.items())
        got = student(**given)
        expect_entries(got, right)
        inputs = tuple(({"number_bytes": 4} | given)[name] for name in NAMES)
        case = Case(f"run_budget({said})", inputs, right, tolerance=1e-9)
        judge_parts(budgets, got, case, right)
