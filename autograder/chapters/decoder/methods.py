"""``encode`` and ``decode`` by themselves: who translates calls them apart."""

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.decoder import oracles
from autograder.chapters.decoder.model import Model
from autograder.chapters.decoder.stack import DEEPER
from autograder.chapters.encoder.parts import State
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.methods import Method, methods_of, unwritten_named
from autograder.exercise.spec import Case
from autograder.interface import StudentInstance


def _memory_of(source: torch.Tensor, model: Model, **changes) -> torch.Tensor:
    """Read a source; rows of padding, which nobody looks at, are 0."""
    memory = model.varied(**changes).encode(source)
    return _without_padding(memory, source, model.pad)


def _without_padding(memory, source: torch.Tensor, pad: int):
    fits = isinstance(memory, torch.Tensor) and memory.shape[:2] == source.shape
    blank = fits and memory.dim() == 3
    return memory.masked_fill((source == pad).unsqueeze(-1), 0.0) if blank else memory


ANSWER = "transformer", "Transformer"
encoding = Method(
    *ANSWER, method="encode", given=lambda model: (Model.of(model),), oracle=_memory_of
)
decoding = Method(
    *ANSWER,
    method="decode",
    given=encoding.given,
    oracle=lambda target, memory, source, model: model.decode(target, memory, source),
)

# --- what goes wrong, where forward is right ------------------------------------------

PAD = "Padding is where an id equals self.pad_id, which need not be 0, here, too."
PLACED = "encode and decode both let what is embedded go through self.position."
for name, why, changes in (
    (
        "the encoder sees padding",
        "encode makes the mask itself, of the source that it is given, and hands it to "
        "the encoder.",
        {"hides_source": False},
    ),
    ("pad_id is ignored", PAD, {"zero": (True, True, True)}),
    ("no positions in the encoder", PLACED, {"placed": (False, True)}),
    ("embeddings not scaled", "Embedding multiplies by √d_model.", {"power": 0.0}),
    (
        "a causal mask in the encoder",
        "The encoder's mask hides padding only.",
        {"causal_source": True},
    ),
):
    encoding.mistake(
        name,
        why,
        when=(lambda source, model: model.pad != 0) if "zero" in changes else None,
    )(lambda source, model, changes=changes: _memory_of(source, model, **changes))


@encoding.mistake(
    "the encoder is left out",
    "encode returns what the encoder made of the source, not its embeddings.",
)
def _(source, model):
    return _without_padding(model.embed(source), source, model.pad)


for name, why, changes in (
    (
        "the decoder sees the future",
        "decode makes the mask itself: causal, and without the padding of the target.",
        {"causal": False},
    ),
    (
        "padding of the target is not hidden",
        "decode joins the causal mask and the padding mask of the target by &.",
        {"hides_target": False},
    ),
    (
        "cross-attention sees padding",
        "decode is given the source for this: its padding mask is the memory_mask.",
        {"hides_memory": False},
    ),
    ("pad_id is ignored", PAD, {"zero": (True, True, True)}),
    ("no positions in the decoder", PLACED, {"placed": (True, False)}),
):
    decoding.mistake(
        name,
        why,
        when=(lambda t, m, s, model: model.pad != 0) if "zero" in changes else None,
    )(lambda *given, changes=changes: given[3].varied(**changes).decode(*given[:3]))


@decoding.mistake(
    "logits in place of hidden states",
    "decode returns the hidden states, (B, T_tgt, d_model). forward makes logits of "
    "them; who writes word by word needs those of the last position only.",
)
def _(target, memory, source, model):
    return F.linear(model.decode(target, memory, source), model.table)


@decoding.mistake(
    "the memory that is handed in is not used",
    "decode attends to the memory that it is given. To read the source again for every "
    "word is what encode saves.",
)
def _(target, memory, source, model):
    return model.decode(target, model.encode(source), source)


@decoding.mistake(
    "hidden states of the last position only",
    "decode returns those of all positions, (B, T_tgt, d_model): training needs them.",
)
def _(target, memory, source, model):
    return model.decode(target, memory, source)[:, -1:]


# --- the check ------------------------------------------------------------------------


def judge_methods(
    student: StudentInstance,
    seed: int,
    inputs: tuple[torch.Tensor, torch.Tensor],
    state: State,
    settings: tuple,
    own: Model,
    on: str,
) -> None:
    """Judge both methods of a model whose ``forward`` is right.

    Args:
        student: with its parameters loaded.
        seed: of the memory, which is not what ``encode`` returns.
        inputs: ids of source and target.
        state: the parameters.
        settings: what PyTorch's stacks are told besides.
        own: the model, taken apart.
        on: how it was built.
    """
    encode, decode = methods_of(student, "encode", "decode")
    source, target = inputs
    with unwritten_named():
        got = _without_padding(encode(source), source, own.pad)
    right = oracles.torch_encode(state, source, *settings)
    on_source = f"encode of {on}, source {tuple(source.shape)}"
    what = "the memory, without the rows of padding"
    case = Case(on_source, (source,), _without_padding(right, source, own.pad), (own,))
    _compare(encoding, got, case, what)
    memory = normal(seeded(seed), *source.shape, own.d)
    given = target, memory, source
    with unwritten_named():
        got = decode(*given)
    right = oracles.torch_decode(state, *given, *settings)
    shapes = ", ".join(f"{tuple(each.shape)}" for each in given)
    on_target = f"decode of {on}, target, memory and source {shapes}"
    _compare(decoding, got, Case(on_target, given, right, (own,)), "the hidden states")


def _compare(spec: Method, got, case: Case, what: str) -> None:
    expect.equal(
        got,
        spec.right(case),
        what=what,
        on=case.on,
        mistakes=spec.known(*case.inputs, *case.given),
        tolerance=DEEPER,
    )
