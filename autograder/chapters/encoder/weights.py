"""PyTorch's weights in a layer of the course."""

from collections.abc import Iterator

from autograder.chapters.encoder import oracles
from autograder.chapters.encoder.chapter import chapter
from autograder.exercise.inputs import seeded
from autograder.exercise.naming import Mistake
from autograder.exercise.parameters import State
from autograder.exercise.spec import Specification
from autograder.exercise.state_dicts import expect_state_dict
from autograder.interface import StudentFunction

# --- PyTorch's weights ----------------------------------------------------------------

NETWORK = "feed_forward.w_1", "feed_forward.w_2"
translation = Specification("encoder-layer-from-torch", "encoder_layer_from_torch")
translation.accident(
    "in_proj",
    "the prefix self_attn. is not cut off exactly",
    "attention_from_torch wants the names of nn.MultiheadAttention: 'in_proj_weight'. "
    "It has no 'self_attn.' before it and has lost nothing else. removeprefix does "
    "that; strip takes single letters, and from both ends: 'in_proj_weigh'.",
)


@chapter.check(section="encoder-torch")
def encoder_layer_from_torch(student: StudentFunction, seed: int = 0) -> None:
    """Sixteen names, each with the tensor that belongs there."""
    generator = seeded(seed)
    _, _, _, d, d_ff = oracles.layer_sizes(generator)
    for width, known in ((d_ff, _reshaped), (d, _as_they_are)):
        expected = oracles.draw_state(generator, oracles.layer_shapes(d, width))
        on = f"the state dict of an nn.TransformerEncoderLayer with d={d}, d_ff={width}"
        with translation.accidents_named():
            got = student(oracles.to_torch(expected))
        mistakes = [_once_more(expected), known(expected)]
        expect_state_dict(got, expected, on, _prefix_missing, mistakes)


def _once_more(expected: State) -> Mistake:
    """What comes of transposing all that comes of attention_from_torch."""
    names = [f"attention.w_{each}" for each in "qkvo"]
    return Mistake(
        "attention's matrices are PyTorch's",
        expected | {name: expected[name].T for name in names},
        "attention_from_torch returns them as the course has them, (in, out). "
        "Transposed once more they are PyTorch's again: leave them as they come.",
    )


def _reshaped(expected: State) -> Mistake:
    """What comes of giving PyTorch's matrices the right shape alone."""
    return Mistake(
        "reshaped in place of transposed",
        expected
        | {name: expected[name].T.reshape_as(expected[name]) for name in NETWORK},
        "The shapes of the network's matrices are right, the numbers are not in their "
        "places: reshape reads them row after row. A transpose exchanges rows and "
        "columns.",
    )


def _as_they_are(expected: State) -> Mistake:
    """What comes of transposing only what has another shape."""
    return Mistake(
        "a matrix is not transposed",
        expected | {name: expected[name].T for name in NETWORK},
        "PyTorch's matrices are (out, in): transpose them always, also where d_ff "
        "equals d and the shape fits either way.",
    )


def _prefix_missing(missing: list[str], extra: list[str]) -> Iterator[tuple]:
    bare = "attention.w_q" in missing and "w_q" in extra
    why = "Names of submodules and parameters are joined by a dot: attention.w_q."
    yield bare, "the prefix attention. is missing", why
