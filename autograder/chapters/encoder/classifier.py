"""The classifier: embedding, class token, positions, encoder, head."""

import contextlib
import functools
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from autograder import expect
from autograder.chapters.encoder import oracles
from autograder.chapters.encoder.chapter import chapter
from autograder.chapters.encoder.parts import (
    Map,
    Parts,
    State,
    final_norm,
    same,
    stack,
    under,
)
from autograder.chapters.encoder.stack import DEEPER, encoder_alone, parts_of
from autograder.exercise.inputs import seeded
from autograder.exercise.parameters import expect_parameters
from autograder.exercise.spec import Case, Module, expect_gradients
from autograder.expect import describe_error, refuse, refuse_if, show
from autograder.interface import StudentError, StudentInstance, StudentModule


def sinusoids(length: int, d: int) -> torch.Tensor:
    """Compute the sinusoidal encoding (length, d) from complex numbers."""
    position = torch.arange(length, dtype=torch.float64).unsqueeze(1)
    turns = torch.exp(-math.log(1e4) * torch.arange(0, d, 2, dtype=torch.float64) / d)
    angle = torch.polar(torch.ones(length, d // 2).double(), position * turns)
    return torch.stack((angle.imag, angle.real), -1).flatten(-2).float()


class Classifier:
    """The functions that the classifier is made of, with given parameters.

    Args:
        state: the model's parameters, by name.
        layers: the parts of each layer of its encoder.
        drop: what the dropout of its positions does.
    """

    def __init__(self, state: State, layers: list[Parts], drop: Map = same) -> None:
        self.state, self.layers, self.drop = state, layers, drop
        self.d = state["embedding.weight"].shape[1]
        self.norm = final_norm(under("encoder.", state), True)

    @classmethod
    def of(cls, model: Any) -> "Classifier":
        """Take them from a model that was built as the course builds it."""
        layers = [Parts.of(each) for each in model.encoder.layers]
        return cls(dict(model.named_parameters()), layers, model.position.dropout)

    def dropping(self, layers: Map, positions: Map) -> "Classifier":
        """Return the same model with other dropouts."""
        parts = [each.varied(drop=layers) for each in self.layers]
        return Classifier(self.state, parts, positions)

    def words(self, ids: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        """Embed words."""
        return F.embedding(ids, self.state["embedding.weight"]) * self.d**0.5 * scale

    def joined(self, x: torch.Tensor) -> torch.Tensor:
        """Put the class token before the words."""
        token = self.state["class_token.token"].expand(len(x), 1, self.d)
        return torch.cat((token, x), 1)

    def placed(self, x: torch.Tensor) -> torch.Tensor:
        """Add the positions, and drop."""
        return self.drop(x + sinusoids(x.shape[1], self.d))

    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """Do all that stands before the encoder."""
        return self.placed(self.joined(self.words(ids)))

    def mask(self, ids, lengths, *, more: int = 1, first: bool = True) -> torch.Tensor:
        """Hide the padding; ``more`` and ``first`` say what the class token gets."""
        mask = torch.arange(ids.shape[1] + 1) < (lengths + more).unsqueeze(1)
        mask[:, 0] = first
        return mask.unsqueeze(1)

    def read(self, vector: torch.Tensor) -> torch.Tensor:
        """Run the head."""
        return vector @ self.state["head.weight"] + self.state["head.bias"]

    def encode(self, x: torch.Tensor, mask) -> torch.Tensor:
        """Run the encoder."""
        return stack(x, self.layers, self.norm, mask, True)

    def logits(self, x: torch.Tensor, mask, at: int = 0) -> torch.Tensor:
        """Run encoder and head."""
        return self.read(self.encode(x, mask)[:, at])


models = Module(
    "encoder-classifier",
    "EncoderClassifier",
    lambda ids, lengths, model: model.logits(
        model.embed(ids), model.mask(ids, lengths)
    ),
    given=lambda model: (Classifier.of(model),),
)


# --- what goes wrong ------------------------------------------------------------------

STANDS = "The head reads position 0, where the class token has to stand."

for name, why, answer in (
    (
        "no padding mask",
        "Padding must stay unseen: make padding_mask(lengths, T), extend it for the "
        "class token, and hand it to the encoder.",
        lambda ids, lengths, model: model.logits(model.embed(ids), None),
    ),
    (
        "the last word of each sentence is hidden",
        "The mask has the right shape, but its lengths do not count the class token. "
        "Extend padding_mask(lengths, T) by mask_with_class_token.",
        lambda ids, lengths, model: model.logits(
            model.embed(ids), model.mask(ids, lengths, more=0)
        ),
    ),
    (
        "the class token is hidden",
        "The class token is always real: its column of the mask is True.",
        lambda ids, lengths, model: model.logits(
            model.embed(ids), model.mask(ids, lengths, first=False)
        ),
    ),
    (
        "positions before the class token",
        "First the class token, then the positions: the class token is at position 0 "
        "and the first word at position 1.",
        lambda ids, lengths, model: model.logits(
            model.joined(model.placed(model.words(ids))), model.mask(ids, lengths)
        ),
    ),
    (
        "no positions",
        "Without positions the encoder sees a bag of words.",
        lambda ids, lengths, model: model.logits(
            model.joined(model.words(ids)), model.mask(ids, lengths)
        ),
    ),
    (
        "embeddings scaled twice",
        "Embedding multiplies by √d_model itself.",
        lambda ids, lengths, model: model.logits(
            model.placed(model.joined(model.words(ids, model.d**0.5))),
            model.mask(ids, lengths),
        ),
    ),
    (
        "no class token",
        STANDS,
        lambda ids, lengths, model: model.logits(
            model.embed(ids)[:, 1:], model.mask(ids, lengths)[..., 1:]
        ),
    ),
    (
        "no class token",
        STANDS,
        lambda ids, lengths, model: model.logits(
            model.placed(model.words(ids)), model.mask(ids, lengths)[..., 1:]
        ),
    ),
    (
        "the head reads the last token",
        "Position 0 is the class token's; the last may be padding.",
        lambda ids, lengths, model: model.logits(
            model.embed(ids), model.mask(ids, lengths), at=-1
        ),
    ),
    (
        "the head reads the encoder's input",
        "Between embedding and head stands the encoder.",
        lambda ids, lengths, model: model.read(model.embed(ids)[:, 0]),
    ),
    (
        "the mean in place of the class token",
        STANDS,
        lambda ids, lengths, model: model.read(
            model.encode(model.embed(ids), model.mask(ids, lengths)).mean(1)
        ),
    ),
):
    models.mistake(name, why)(answer)

BOTH = "Both the positions and the encoder have a dropout: hand it on to both."


def _undropped(layers: bool, positions: bool, ids, lengths, model):
    """Leave dropout out of the layers, of the positions, or of both."""
    inner = same if layers else model.layers[0].drop
    outer = same if positions else model.drop
    return models.oracle(ids, lengths, model.dropping(inner, outer))


for name, places in (
    ("dropout not passed on", (True, True)),
    ("dropout not passed to the positions", (False, True)),
    ("dropout not passed to the encoder", (True, False)),
):
    models.mistake(name, BOTH)(functools.partial(_undropped, *places))


# --- the check ------------------------------------------------------------------------


@chapter.check(section="encoder-classifier")
def encoder_classifier(
    student: StudentModule, encoder_student: StudentModule, seed: int = 0
) -> None:
    """Submodules, PyTorch's encoder on the same input, padding, dropout."""
    with expect.relying_on(encoder_alone, encoder_student):
        _check_classifier(student, seed)


def _check_classifier(student: StudentModule, seed: int) -> None:
    generator = seeded(seed)
    b, t, heads, d, d_ff = oracles.layer_sizes(generator)
    vocabulary, classes, n = 11, 3 if b != 3 else 5, 2
    sizes = vocabulary, classes, d, heads, n, d_ff, t
    on = (
        f"EncoderClassifier(vocab_size={vocabulary}, classes={classes}, d_model={d}, "
        f"heads={heads}, layers={n}, d_ff={d_ff}, max_length={t})"
    )
    shapes = {"embedding.weight": (vocabulary, d), "class_token.token": (1, d)}
    inner = oracles.encoder_shapes(n, d, d_ff, True)
    shapes |= {f"encoder.{name}": shape for name, shape in inner.items()}
    shapes |= {"head.weight": (d, classes), "head.bias": (classes,)}
    model = student.build(*sizes)
    expect_parameters(model, shapes, on, _own)
    state = oracles.draw_state(generator, shapes)
    model.load_state_dict(state)
    inner = under("encoder.", state)
    right = oracles.torch_encoder(inner, n, d, heads, d_ff, True, "relu")
    own = Classifier(state, parts_of(inner, n, heads, torch.relu))
    ids = torch.randint(1, vocabulary, (b, t), generator=generator)
    lengths = torch.randint(1, t, (b,), generator=generator)
    lengths[0], lengths[-1] = t, 1
    ids[torch.arange(t) >= lengths.unsqueeze(1)] = 0
    case = _case(right, own, ids, lengths, on)
    with _first_call_named(t):
        models.judge(model, case)
    _judge_other_padding(model, case)
    _judge_wide_batch(model, right, own, ids, (lengths - 1).clamp(min=1), on)
    dropping = student.build(*sizes, 1.0)
    dropping.load_state_dict(state)
    dropping.train(True)
    given = (own.dropping(torch.zeros_like, torch.zeros_like),)
    on_dropping = f"{on}, dropout=1 in training"
    case = Case(on_dropping, (ids, lengths), given=given, tolerance=DEEPER)
    models.judge(dropping, case)
    expect_gradients(model.gradients(ids, lengths, wrt=()).parameters, on)


def _case(right: nn.Module, own: Classifier, ids, lengths, on: str) -> Case:
    on = f"{on}, ids {tuple(ids.shape)}, lengths {lengths.tolist()}"
    with torch.no_grad():
        padding = ~own.mask(ids, lengths)[:, 0]
        expected = own.read(right(own.embed(ids), src_key_padding_mask=padding)[:, 0])
    return Case(on, (ids, lengths), expected, (own,), DEEPER, what="the logits")


def _judge_other_padding(model: StudentInstance, case: Case) -> None:
    """Pad with another word; the logits stay."""
    ids, lengths = case.inputs
    on = f"{case.on}, padded with word 5 instead of 0"
    why = (
        "With word 0 as padding the logits were right. Only `lengths` tell where a "
        "sentence ends; what follows may be any word, not just 0."
    )
    got = model(torch.where(ids == 0, 5, ids), lengths)
    wrong = isinstance(got, torch.Tensor) and not expect.close(
        got, case.expected, DEEPER
    )
    say = {"on": on, "got": show(got), "expected": show(case.expected)}
    refuse_if(wrong, "the padding's words have a say", why, **say)
    expect.equal(got, case.expected, on=on, what="the logits", tolerance=DEEPER)


def _judge_wide_batch(model, right, own: Classifier, ids, lengths, on: str) -> None:
    """Classify a batch that is wider than its longest sentence."""
    case = _case(right, own, ids, lengths, on)
    case = replace(case, on=f"{case.on}: none fills the width")
    try:
        models.judge(model, case)
    except StudentError as error:
        why = "The mask is as wide as the batch: padding_mask(lengths, ids.shape[1])."
        name = "the mask is as wide as the longest sentence"
        said = f"{error.kind}: {describe_error(error)}"
        refuse_if(error.kind == "RuntimeError", name, why, on=case.on, got=said)
        raise


def _own(state: State, missing: list, extra: list) -> Iterator[tuple]:
    final = {"encoder.norm.gamma", "encoder.norm.beta"}
    why = "The encoder of this model is pre-norm: Encoder(..., norm_first=True)."
    yield set(missing) == final and not extra, "post-norm in place of pre-norm", why
    why = "Positions are sinusoidal: SinusoidalPositionalEncoding has no parameters."
    learned = any(name.startswith("position") for name in extra)
    yield learned, "learned positions", why


@contextlib.contextmanager
def _first_call_named(t: int) -> Iterator[None]:
    """Name the mistakes behind exceptions of lengths that do not fit."""
    try:
        yield
    except StudentError as error:
        said = f"{error.kind}: {describe_error(error)}"
        say = {"on": error.call, "got": said, "expected": "logits"}
        why = (
            "The class token takes a position, too: the table of positions needs "
            "max_length + 1 rows."
        )
        short = error.kind == "ValueError" and "position" in error.text
        refuse_if(short, "the table of positions is one row short", why, **say)
        why = (
            "The encoder reads T + 1 tokens, and the mask has T columns. Extend it "
            "with mask_with_class_token."
        )
        sizes = all(size in error.text for size in (f"({t})", f"({t + 1})"))
        if error.kind == "RuntimeError" and sizes:
            refuse("padding mask not extended for the class token", why, **say)
        raise
