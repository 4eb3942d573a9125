"""How many texts a memory serves, by heads and precision."""

import math
from collections.abc import Callable, Iterator

from autograder.chapters.multi_head_attention.chapter import chapter
from autograder.exercise.inputs import WholeNumbers, draw_several
from autograder.exercise.spec import Case, Function
from autograder.expect import refuse
from autograder.interface import StudentFunction

SCALE = 16  # bits of the scale that a vector of fewer bits needs

Rule = Callable[..., float]


def served(
    memory: int,
    parameters: int,
    layers: int,
    d_model: int,
    heads: int,
    kv_heads: int,
    length: int,
    weight_bits: int = 16,
    cache_bits: int = 16,
    *,
    unit: int = 8,
    stored: Rule = lambda weight_bits, cache_bits: weight_bits,
    cached: Rule = lambda weight_bits, cache_bits: cache_bits,
    layered: Rule = lambda layers: layers,
    placed: Rule = lambda length: length,
    kinds: int = 2,
    shared: Rule = lambda heads, kv: kv,
    width: Rule = lambda d, heads, kv: d // heads,
    needed: Rule = lambda cache_bits, weight_bits: cache_bits < SCALE,
    scales: Rule = lambda layers, kinds, length, kv, d_k: layers * kinds * length * kv,
    scale: Rule = lambda bits: SCALE,
    numbers: Rule = lambda bits: bits,
    divided: Rule = lambda memory, weights, text: (memory - weights) / text,
    rounded: Rule = math.floor,
    least: float = 0,
) -> float:
    """Fill the memory; how it is counted can be varied.

    Behind the exercise's own arguments: bits of a byte; the bits of a parameter and of
    a number in the cache; layers and positions; keys and values; heads that are kept,
    and how wide one is; whether a scale is needed, how many there are, and its bits;
    what the numbers of a vector take; what fits, of the bits of the memory, the weights
    and a text; and what number of texts that is.
    """
    bits = cached(weight_bits, cache_bits)
    kv, d_k = shared(heads, kv_heads), width(d_model, heads, kv_heads)
    count = layered(layers), kinds, placed(length), kv
    text = math.prod(count) * numbers(d_k * bits)
    if needed(cache_bits, weight_bits):
        text += scales(*count, d_k) * scale(bits)
    weights = parameters * stored(weight_bits, cache_bits)
    return max(least, rounded(divided(memory * unit, weights, text)))


texts = Function("texts-served", "texts_served", served)

# --- what goes wrong ------------------------------------------------------------------

NAMES = (
    *("memory", "parameters", "layers", "d_model", "heads", "kv_heads", "length"),
    *("weight_bits", "cache_bits"),
)
EXCHANGED = (
    "the two precisions are exchanged",
    "weight_bits is for the parameters, cache_bits for keys and values.",
)
LIKE_WEIGHTS = (
    "the cache in the precision of the weights",
    "Keys and values have a precision of their own: cache_bits.",
)
ALWAYS_16 = (
    "16 bits, whatever cache_bits is",
    "A number in the cache takes cache_bits bits, of which 16 is only the default.",
)
ALL_POSITIONS = (
    "one scale for all positions",
    "Each position's key, and its value, has a scale of its own: a new position brings "
    "new scales.",
)
ALL_HEADS = (
    "one scale for all heads",
    "Each head's key, and each head's value, has a scale of its own.",
)
BYTES = (
    "Vectors lie one behind the other, bit after bit. Count in bits to the end; only "
    "the texts are whole."
)


def _of_weights(weight_bits: int, cache_bits: int) -> int:
    return weight_bits


def _of_cache(weight_bits: int, cache_bits: int) -> int:
    return cache_bits


def _sixteen(weight_bits: int, cache_bits: int) -> int:
    return 16


def _few_for_weights(cache_bits: int, weight_bits: int) -> bool:
    return weight_bits < SCALE


texts.slips(
    served,
    (
        "the weights are not subtracted",
        "The weights are in the same memory: what they take is not there for texts.",
        {"divided": lambda memory, weights, text: memory / text},
    ),
    (
        "the weights once for each text",
        "All texts are served by the same weights, which are there once: subtract them "
        "first, then divide.",
        {"divided": lambda memory, weights, text: memory / (weights + text)},
    ),
    (
        "keys or values alone",
        "Each position leaves a key and a value: twice as much.",
        {"kinds": 1},
    ),
    (
        "the cache of one layer",
        "Each layer has keys and values of its own.",
        {"layered": lambda layers: 1},
    ),
    (
        "one position in place of a text",
        "A text has `length` positions, and each leaves its keys and values.",
        {"placed": lambda length: 1},
    ),
    (
        "keys and values of all heads are kept",
        "Queries are not kept. Kept are the kv_heads heads of keys and values.",
        {"shared": lambda heads, kv: heads},
    ),
    (
        "the groups in place of the kv heads",
        "What is kept are the kv_heads heads; heads / kv_heads is how many queries "
        "share one of them.",
        {"shared": lambda heads, kv: heads // kv},
    ),
    (
        "keys and values of one head",
        "All kv_heads heads of a position are kept.",
        {"shared": lambda heads, kv: 1},
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
        "bytes taken for bits",
        "The memory is given in bytes of 8 bits, the precisions in bits.",
        {"unit": 1},
    ),
    (*EXCHANGED, {"stored": _of_cache, "cached": _of_weights}),
    (
        *EXCHANGED,
        {"stored": _of_cache, "cached": _of_weights, "needed": _few_for_weights},
    ),
    (
        "the weights in the precision of the cache",
        "The parameters have a precision of their own: weight_bits.",
        {"stored": _of_cache},
    ),
    (*LIKE_WEIGHTS, {"cached": _of_weights}),
    (*LIKE_WEIGHTS, {"cached": _of_weights, "needed": _few_for_weights}),
    (
        "16 bits, whatever weight_bits is",
        "A parameter takes weight_bits bits, of which 16 is only the default.",
        {"stored": _sixteen},
    ),
    (*ALWAYS_16, {"cached": _sixteen}),
    (*ALWAYS_16, {"cached": _sixteen, "needed": lambda cache_bits, weight_bits: False}),
    (
        "the scale is forgotten",
        "Below 16 bits each key and each value of a head needs a scale of 16 bits.",
        {"needed": lambda cache_bits, weight_bits: False},
    ),
    (
        "a scale where none is needed",
        "At 16 bits the numbers are stored as they are: no scale.",
        {"needed": lambda cache_bits, weight_bits: True},
    ),
    (
        "a scale where the cache has fewer bits than the weights",
        "Whether a vector needs a scale is a matter of its own bits: below 16.",
        {"needed": lambda cache_bits, weight_bits: cache_bits < weight_bits},
    ),
    (
        "a scale where the weights have few bits",
        "Whether a vector needs a scale is a matter of its own bits, cache_bits: below "
        "16.",
        {"needed": _few_for_weights},
    ),
    (
        "a scale for each number",
        "One scale serves all d_k numbers of a key or value.",
        {
            "scales": lambda layers, kinds, length, kv, d_k: (
                layers * kinds * length * kv * d_k
            )
        },
    ),
    (*ALL_HEADS, {"scales": lambda layers, kinds, length, *_: layers * kinds * length}),
    (*ALL_HEADS, {"scales": lambda layers, kinds, length, *_: layers * length}),
    (
        "one scale for a key and its value",
        "Keys and values are vectors of their own, and each has its scale.",
        {"scales": lambda layers, kinds, length, kv, d_k: layers * length * kv},
    ),
    *(
        (*ALL_POSITIONS, {"scales": scales})
        for scales in (
            lambda layers, kinds, length, kv, d_k: layers * kinds * kv,
            lambda layers, kinds, length, kv, d_k: layers * kinds,
            lambda layers, kinds, length, kv, d_k: layers * kv,
            lambda layers, kinds, length, kv, d_k: layers,
            lambda layers, kinds, length, kv, d_k: 1,
        )
    ),
    (
        "the scale as wide as a number",
        "A scale has 16 bits, however few the numbers have.",
        {"scale": lambda bits: bits},
    ),
    (
        "vectors rounded down to bytes",
        BYTES,
        {"numbers": lambda bits: 8 * (bits // 8)},
    ),
    (
        "vectors rounded up to bytes",
        BYTES,
        {"numbers": lambda bits: 8 * -(-bits // 8)},
    ),
    (
        "rounded up",
        "A text that fits only in part is not served: round down.",
        {"rounded": math.ceil},
    ),
    (
        "rounded to the nearest number",
        "A text that fits only in part is not served, also if it is a large part: "
        "round down.",
        {"rounded": round},
    ),
    (
        "a text that fits exactly is left out",
        "What fills the memory to the last bit still fits.",
        {"rounded": lambda fits: math.ceil(fits) - 1},
    ),
    (
        "a negative number of texts",
        "The weights alone do not fit: then no text is served, 0.",
        {"least": -math.inf},
    ),
    (
        "one text at least",
        "If not even the weights fit, no text is served: 0.",
        {"least": 1},
    ),
)


# --- the check ------------------------------------------------------------------------

BY_HAND = (2000, 300, 2, 16, 4, 2, 5)
WORKED = {(): 4, (16, 8): 5, (4, 16): 5, (4, 4): 11}
MUCH = (50_000, 300, 3, 24, 6, 3, 5, 8, 4)  # an eighth of it would serve texts, too


def _text_bits(layers, d_model, heads, kv_heads, length, cache_bits) -> int:
    """Say how many bits a text takes, vector by vector."""
    vector = d_model // heads * cache_bits + (SCALE if cache_bits < SCALE else 0)
    return 2 * layers * length * kv_heads * vector


def _configurations(seed: int) -> Iterator[tuple[int, ...]]:
    """Draw sizes, and a memory that some dozens of texts fill, one of them exactly."""
    source = WholeNumbers(seed)
    for weight_bits, cache_bits, over in (
        (16, 16, 0.6),
        (8, 4, 0.4),
        (4, 8, 0.7),
        (16, 8, 0.0),
        (8, 16, 0.3),
        (8, 3, 0.5),
    ):
        layers, kv_heads, weight = draw_several(source, 5, 9, 3)
        width, length, count = draw_several(source, 20, 60, 3)
        heads = kv_heads * (2 + source.below(3))
        d_k = 8 * width if cache_bits % 4 == 0 else 5  # 15 bits are no whole bytes
        sizes = layers, heads * d_k, heads, kv_heads, length
        text = _text_bits(*sizes, cache_bits)
        parameters = weight * text // weight_bits // 8 * 8
        memory = (parameters * weight_bits + count * text + int(over * text)) // 8
        yield memory, parameters, *sizes, weight_bits, cache_bits


@chapter.check(section="multi-head-grouped")
def texts_served(student: StudentFunction, seed: int = 0) -> None:
    """By hand, drawn sizes and precisions, a memory filled exactly, one too small."""
    cases = [((*BY_HAND, *bits), right) for bits, right in WORKED.items()]
    drawn = [(given, served(*given)) for given in _configurations(seed)]
    _, *rest = drawn[0][0]
    too_small = rest[0] * rest[6] // 16  # half of the weights
    for inputs, right in (*cases, *drawn, (MUCH, 138), ((too_small, *rest), 0)):
        said = ", ".join(
            f"{name}={value}" for name, value in zip(NAMES, inputs, strict=False)
        )
        given = (16, 16)[: len(NAMES) - len(inputs)]
        case = Case(f"texts_served({said})", inputs, right, given, 0, what="the number")
        got = student(*inputs)
        texts.compare(got, case)
        if type(got) is float:
            why = "A number of texts is whole: divide with //."
            say = {"on": case.on, "got": f"{got}", "expected": f"{right}"}
            refuse("not a whole number", why, **say)
