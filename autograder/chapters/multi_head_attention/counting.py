"""How many parameters attention with several heads has."""

from autograder.chapters.multi_head_attention.chapter import chapter, exception_named
from autograder.exercise.inputs import WholeNumbers, draw_sizes
from autograder.exercise.spec import Case, Function
from autograder.expect import refuse
from autograder.interface import StudentFunction


def _projections(d, *widths):
    """Count projections of d features to these widths, with their biases."""
    return sum(d * width + width for width in widths)


def _narrow(d, heads, kv_heads):
    return (heads if kv_heads is None else kv_heads) * (d // heads)


def _count(d, heads, kv_heads=None):
    narrow = _narrow(d, heads, kv_heads)
    return _projections(d, d, narrow, narrow, d)


counts = Function("attention-parameters", "attention_parameters", _count)


# --- what goes wrong ------------------------------------------------------------------

AS_WIDE = (
    "each head as wide as the model",
    "Heads are d/h wide, so all of them together are d wide.",
)
for name, why, answer in (
    (
        "the biases are missing",
        "Each projection has a bias, one number for each feature of its output.",
        lambda d, heads, kv: 2 * d * d + 2 * d * _narrow(d, heads, kv),
    ),
    (*AS_WIDE, lambda d, heads, kv: 4 * heads * (d * d + d)),
    (*AS_WIDE, lambda d, heads, kv: 3 * heads * (d * d + d) + heads * d * d + d),
    (
        "counted for one head only",
        "This counts one head; all heads together are d wide.",
        lambda d, heads, kv: (
            _projections(d, d // heads, d // heads, d // heads) + d // heads * d + d
        ),
    ),
    (
        "no output projection",
        "Three projections are counted; the fourth, w_o, mixes the heads.",
        lambda d, heads, kv: _count(d, heads, kv) - _projections(d, d),
    ),
    (
        "kv_heads is ignored",
        "Keys and values have kv_heads heads of the width d/h, fewer than queries.",
        lambda d, heads, kv: _projections(d, d, d, d, d),
    ),
    (
        "all four projections are shared",
        "Only keys and values have fewer heads. Queries and output keep d features.",
        lambda d, heads, kv: _projections(d, *[_narrow(d, heads, kv)] * 4),
    ),
    (
        "kv heads of another width",
        "A head of keys is as wide as a head of queries, d/h, or their product does "
        "not exist. Fewer heads make d_kv smaller, not the heads wider or narrower.",
        lambda d, heads, kv: _projections(d, d, d, d // (kv or 1), d // (kv or 1)),
    ),
    (
        "rounded down to no width at all",
        "kv_heads // heads is 0 where heads are shared. Multiply first: kv_heads · "
        "(d // heads).",
        lambda d, heads, kv: _projections(d, d, *[(kv or heads) // heads * d] * 2, d),
    ),
    (
        "one width of keys and values for all",
        "This is right for one kv head only; there are kv_heads of them.",
        lambda d, heads, kv: _projections(d, d, d, d // heads, d // heads),
    ),
    (
        "keys or values are not counted",
        "Keys and values have a projection each.",
        lambda d, heads, kv: _projections(d, d, d, _narrow(d, heads, kv)),
    ),
    (
        "the biases of keys and values have the wrong width",
        "A bias is as wide as the output of its projection: kv_heads · d_k.",
        lambda d, heads, kv: _count(d, heads, kv) + 2 * (d - _narrow(d, heads, kv)),
    ),
):
    counts.mistake(name, why)(answer)


# --- the check ------------------------------------------------------------------------


@chapter.check(section="multi-head-parameters")
def attention_parameters(student: StudentFunction, seed: int = 0) -> None:
    """Against counts by hand, and projection by projection."""
    source = WholeNumbers(seed)
    width, groups, kv_heads = draw_sizes(source, 3)
    heads = groups * kv_heads
    d = width * heads
    for inputs, expected in (
        ((36, 12, 3), 3330),
        ((6, 3), 168),
        ((6, 3, 1), 112),
        ((512, 8), 1_050_624),
        ((d, heads, kv_heads), _count(d, heads, kv_heads)),
        ((d, heads), 4 * (d * d + d)),
    ):
        on = f"attention_parameters{inputs}"
        why = "kv_heads=None means as many heads of keys and values as of queries."
        with exception_named(
            "kv_heads=None is not handled", why, ("TypeError",), "None"
        ):
            got = student(*inputs)
        given = (None,) if len(inputs) == 2 else ()
        counts.compare(got, Case(on, inputs, expected, given, 0, what="the number"))
        if type(got) is float:
            why, say = "A width is a whole number: divide with //.", {"on": on}
            say |= {"got": f"{got}", "expected": f"{expected}"}
            refuse("not a whole number", why, **say)
