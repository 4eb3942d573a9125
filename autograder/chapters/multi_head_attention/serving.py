"""How many texts a memory serves, by heads and precision."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

from autograder.chapters.multi_head_attention.chapter import chapter
from autograder.exercise.inputs import WholeNumbers, draw_several
from autograder.exercise.spec import Case, Function
from autograder.expect import refuse
from autograder.interface import StudentFunction

SCALE = 16  # bits of the scale that a vector of fewer bits needs


def vector_bits(width: int, bits: int) -> int:
    """Say how many bits a key or a value of one head takes."""
    return sum(bits for _ in range(width)) + (SCALE if bits < SCALE else 0)


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
    kinds: int = 2,
    vector: Callable[[int, int], int] = vector_bits,
    shared: int = 0,
    rounded: Callable[[float], float] = math.floor,
) -> float:
    """Fill the memory; how it is counted can be varied.

    Behind the exercise's own arguments: a byte has ``unit`` bits; there are ``kinds``
    of vectors, keys and values; ``vector`` says how many bits one takes, of a width and
    precision; ``shared`` bits are kept once for each layer, kind and position; and
    ``rounded`` makes a number of texts of what fits.
    """
    kept = product(range(layers), range(kinds), range(length))
    position = kv_heads * vector(d_model // heads, cache_bits) + shared
    text = sum(position for _ in kept)
    return rounded((memory * unit - parameters * weight_bits) / text)


def _right(*given: int) -> int:
    return max(0, served(*given))


texts = Function("texts-served", "texts_served", _right)

# --- what goes wrong ------------------------------------------------------------------

NAMES = (
    *("memory", "parameters", "layers", "d_model", "heads", "kv_heads", "length"),
    *("weight_bits", "cache_bits"),
)


def _fits(*given: int) -> bool:
    memory, parameters, weight_bits = given[0], given[1], given[7]
    return memory * 8 >= parameters * weight_bits


def _small(*given: int) -> bool:
    return _fits(*given) and given[8] < SCALE


def _plain(*given: int) -> bool:
    return _fits(*given) and given[8] >= SCALE


def _without_scale(width: int, bits: int) -> int:
    return width * bits


def _one_for_each_number(width: int, bits: int) -> int:
    return width * (bits + SCALE)


def _always_a_scale(width: int, bits: int) -> int:
    return width * bits + SCALE


def _changed(**changes: Callable[[dict[str, int]], int]) -> Callable:
    """Make an answer that takes other numbers for some of its arguments."""

    def answer(*given: int) -> int:
        named = dict(zip(NAMES, given, strict=True))
        named |= {name: change(named) for name, change in changes.items()}
        return max(0, served(**named))

    return answer


for name, why, answer in (
    (
        "the weights are not subtracted",
        "The weights are in the same memory: what they take is not there for texts.",
        _changed(parameters=lambda given: 0),
    ),
    (
        "keys or values alone",
        "Each position leaves a key and a value: twice as much.",
        partial(served, kinds=1),
    ),
    (
        "the cache of one layer",
        "Each layer has keys and values of its own.",
        _changed(layers=lambda given: 1),
    ),
    (
        "one position in place of a text",
        "A text has `length` positions, and each leaves its keys and values.",
        _changed(length=lambda given: 1),
    ),
    (
        "keys and values of all heads are kept",
        "Queries are not kept. Kept are the kv_heads heads of keys and values.",
        _changed(kv_heads=lambda given: given["heads"]),
    ),
    (
        "the groups in place of the kv heads",
        "What is kept are the kv_heads heads; heads / kv_heads is how many queries "
        "share one of them.",
        _changed(kv_heads=lambda given: given["heads"] // given["kv_heads"]),
    ),
    (
        "each head as wide as the model",
        "Heads have the width d_model / heads.",
        _changed(d_model=lambda given: given["d_model"] * given["heads"]),
    ),
    *(
        (
            "bytes taken for bits",
            "The memory is given in bytes of 8 bits, the precisions in bits.",
            taken,
        )
        for taken in (
            partial(served, unit=1),
            lambda *given: max(0, served(*given, unit=1)),
        )
    ),
    (
        "the two precisions are exchanged",
        "weight_bits is for the parameters, cache_bits for keys and values.",
        _changed(
            weight_bits=lambda given: given["cache_bits"],
            cache_bits=lambda given: given["weight_bits"],
        ),
    ),
    (
        "the weights in the precision of the cache",
        "The parameters have a precision of their own: weight_bits.",
        _changed(weight_bits=lambda given: given["cache_bits"]),
    ),
    (
        "the cache in the precision of the weights",
        "Keys and values have a precision of their own: cache_bits.",
        _changed(cache_bits=lambda given: given["weight_bits"]),
    ),
    (
        "rounded up",
        "A text that fits only in part is not served: round down.",
        partial(served, rounded=math.ceil),
    ),
    (
        "a text that fits exactly is left out",
        "What fills the memory to the last bit still fits.",
        partial(served, rounded=lambda fits: math.ceil(fits) - 1),
    ),
    (
        "the weights once for each text",
        "All texts are served by the same weights, which are there once: subtract them "
        "first, then divide.",
        lambda *given: given[0] * 8 // (given[1] * given[7] + _text_bits(given)),
    ),
):
    texts.mistake(name, why, when=_fits)(answer)
texts.mistake(
    "the scale is forgotten",
    "Below 16 bits each key and each value of a head needs a scale of 16 bits.",
    when=_small,
)(partial(served, vector=_without_scale))
texts.mistake(
    "a scale for each number",
    "One scale serves all d_k numbers of a key or value.",
    when=_small,
)(partial(served, vector=_one_for_each_number))
texts.mistake(
    "one scale for all heads",
    "Each head's key, and each head's value, has a scale of its own.",
    when=_small,
)(partial(served, vector=_without_scale, shared=SCALE))
texts.mistake(
    "one scale for all heads, and rounded up",
    "Each head's key, and each head's value, has a scale of its own. And a text that "
    "fits only in part is not served: round down.",
    when=_fits,
)(
    lambda *given: served(
        *given,
        vector=_without_scale,
        shared=SCALE if given[8] < SCALE else 0,
        rounded=math.ceil,
    )
)
texts.mistake(
    "a scale where none is needed",
    "At 16 bits the numbers are stored as they are: no scale.",
    when=_plain,
)(partial(served, vector=_always_a_scale))
for way, to_whole in (("down", math.floor), ("up", math.ceil)):

    def _whole_bytes(width, bits, to_whole=to_whole):
        return 8 * to_whole(width * bits / 8) + vector_bits(0, bits)

    texts.mistake(
        f"vectors rounded {way} to bytes",
        "Vectors lie one behind the other, bit after bit. Count in bits to the end; "
        "only the texts are whole.",
        when=_fits,
    )(partial(served, vector=_whole_bytes))
texts.mistake(
    "a negative number of texts",
    "The weights alone do not fit: then no text is served, 0.",
    when=lambda *given: not _fits(*given),
)(served)


def _text_bits(given: tuple) -> int:
    """Say how many bits a text takes: the memory that serves just one."""
    layers, d_model, heads, kv_heads, length = given[2:7]
    return 2 * layers * length * kv_heads * vector_bits(d_model // heads, given[8])


# --- the check ------------------------------------------------------------------------

BY_HAND = (2000, 300, 2, 16, 4, 2, 5)
WORKED = {(): 4, (16, 8): 5, (4, 16): 5, (4, 4): 11}


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
        text = _text_bits((0, 0, *sizes, weight_bits, cache_bits))
        parameters = weight * text // weight_bits // 8 * 8
        memory = (parameters * weight_bits + count * text + int(over * text)) // 8
        yield memory, parameters, *sizes, weight_bits, cache_bits


@chapter.check(section="multi-head-grouped")
def texts_served(student: StudentFunction, seed: int = 0) -> None:
    """By hand, drawn sizes and precisions, a memory filled exactly, one too small."""
    cases = [((*BY_HAND, *bits), right) for bits, right in WORKED.items()]
    drawn = [(given, _right(*given)) for given in _configurations(seed)]
    _, *rest = drawn[0][0]
    too_small = rest[0] * rest[6] // 16  # half of the weights
    for inputs, right in (*cases, *drawn, ((too_small, *rest), 0)):
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
