"""PyTorch's weights in a decoder layer of the course."""

import functools
from collections.abc import Iterator

from autograder import expect
from autograder.chapters.decoder import oracles
from autograder.chapters.decoder.chapter import chapter
from autograder.chapters.decoder.inputs import draw_sizes
from autograder.chapters.encoder.oracles import draw_state
from autograder.exercise.inputs import seeded
from autograder.exercise.spec import Specification
from autograder.exercise.state_dicts import State, expect_state_dict
from autograder.interface import Data, StudentFunction

translation = Specification("decoder-layer-from-torch", "decoder_layer_from_torch")
translation.accident(
    "in_proj",
    "a prefix is not cut off exactly",
    "attention_from_torch wants the names of nn.MultiheadAttention: 'in_proj_weight'. "
    "It has no 'self_attn.' before it and has lost nothing else. removeprefix does "
    "that; strip takes single letters, and from both ends: 'in_proj_weigh'.",
)


@chapter.check(section="decoder-torch")
def decoder_layer_from_torch(student: StudentFunction, seed: int = 0) -> None:
    """Twenty-six names, each with the tensor that belongs there."""
    generator = seeded(seed)
    *_, d, d_ff, _ = draw_sizes(generator)
    expected = draw_state(generator, oracles.decoder_layer_shapes(d, d_ff))
    theirs = oracles.layer_to_torch(expected)
    on = f"the state dict of an nn.TransformerDecoderLayer with d={d}, d_ff={d_ff}"
    with translation.accidents_named():
        got = student({name: value.contiguous() for name, value in theirs.items()})
    expect_state_dict(got, expected, on, functools.partial(_own, got, expected))


def _own(
    got: Data, expected: State, missing: list[str], extra: list[str]
) -> Iterator[tuple]:
    def only(prefix: str) -> bool:
        lost = bool(missing) and not extra
        return lost and all(name.startswith(prefix) for name in missing)

    why = "multihead_attn is PyTorch's name of the cross-attention: translate it, too."
    yield only("cross_"), "cross-attention is left out", why
    why = "A decoder layer has three norms: norm1, norm2, norm3."
    yield only("norm_3."), "norm_3 is left out", why
    why = "Names of submodules and parameters are joined by a dot: self_attention.w_q."
    yield "w_q" in extra, "a new prefix is missing", why
    why = "self_attn is self_attention, multihead_attn is cross_attention."
    swapped = not missing and any(
        expect.close(got[f"self_attention.{each}"], expected[f"cross_attention.{each}"])
        for each in ("w_q", "w_k", "w_v", "w_o")
    )
    yield swapped, "the two attentions are exchanged", why
