"""The patch embedding: one matrix and a bias for every patch."""

import functools
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.vision_transformer.chapter import DEEP, chapter
from autograder.chapters.vision_transformer.images import draw_images
from autograder.chapters.vision_transformer.patches import (
    NOT_FLATTENED,
    UPRIGHT,
    cut,
    cutting,
    expect_no_remainder,
    patchify,
)
from autograder.exercise.inputs import normal, seeded
from autograder.exercise.parameters import (
    State,
    expect_biases_of_zero,
    expect_parameters,
    expect_spread,
)
from autograder.exercise.spec import Case, Module
from autograder.interface import StudentFunction, StudentModule


def convolved(images, weight, bias, p):
    """Embed by PyTorch's convolution of stride P, with the matrix as its kernel."""
    kernel = weight.unflatten(0, (p, p, images.shape[1])).permute(3, 2, 0, 1)
    return F.conv2d(images, kernel, bias, stride=p).flatten(2).mT.contiguous()


embedding = Module(
    "patch-embedding",
    "PatchEmbedding",
    convolved,
    given=lambda module: (module.weight, module.bias, module.patch_size),
)
embedding.mistake("the bias is not added", "Add the bias: x E + b.")(
    lambda images, weight, bias, p: cut(images, p) @ weight
)
embedding.mistake(
    "embeddings scaled by the root of d_model",
    "The paper scales the embeddings of words; those of patches stay as they are.",
)(lambda images, weight, bias, p: convolved(images, weight, bias, p) * len(bias) ** 0.5)


def _embed(cut_wrongly: Callable, images, weight, bias, p):
    return cut_wrongly(images, p) @ weight + bias


def _gives_rows(cut_wrongly: Callable) -> bool:
    return cut_wrongly(torch.zeros(1, 2, 4, 6), 2).shape == (1, 6, 8)


for known in cutting.mistakes:
    if _gives_rows(known.answer):
        wrong = functools.partial(_embed, known.answer)
        embedding.mistake(known.name, known.why)(wrong)
embedding.mistake(
    UPRIGHT[0],
    "One patch, one row: the features are on the last axis, (B, N, d_model).",
)(lambda images, weight, bias, p: convolved(images, weight, bias, p).mT)


@embedding.mistake(
    NOT_FLATTENED[0], "Join the rows and columns of the grid: (B, N, d_model)."
)
def _(images, weight, bias, p):
    rows = images.shape[2] // p
    return convolved(images, weight, bias, p).unflatten(1, (rows, -1))


embedding.mistake(
    "an activation after the embedding",
    "The embedding is linear; the first activation comes in the encoder.",
)(lambda images, weight, bias, p: torch.relu(convolved(images, weight, bias, p)))


# --- the check ------------------------------------------------------------------------


@chapter.check(section="vision-embedding")
def patch_embedding(
    student: StudentModule, patchify_student: StudentFunction, seed: int = 0
) -> None:
    """Parameters, by hand, PyTorch's convolution of stride P, gradients."""
    with expect.relying_on(patchify, patchify_student):
        _check(student, seed)


@chapter.check(section="vision-embedding")
def embedding_alone(student: StudentModule, seed: int = 0) -> None:
    """Check without a look at what it may use."""
    _check(student, seed)


def _check(student: StudentModule, seed: int) -> None:
    generator = seeded(seed)
    for channels in (3, 1):
        images, p, _ = draw_images(generator, channels)
        d, length = 8 + p, p * p * channels
        on = f"PatchEmbedding(patch_size={p}, channels={channels}, d_model={d})"
        layer = student.build(p, channels, d)
        shapes = {"weight": (length, d), "bias": (d,)}
        own = functools.partial(_own, p, channels, d)
        expect_parameters(layer, shapes, on, own)
        if channels == 3:
            _expect_by_hand(student)
        weight = normal(generator, length, d) / length**0.5
        bias = normal(generator, d)
        layer.load_state_dict({"weight": weight, "bias": bias})
        on = f"{on}, images {tuple(images.shape)}"
        case = Case(on, (images,), given=(weight, bias, p), tolerance=DEEP)
        embedding.judge(layer, case)
    cotangent = normal(generator, *embedding.right(case).shape)
    embedding.judge_gradient(layer, case, cotangent, parameters=("weight", "bias"))
    expect_no_remainder(lambda image, p: student.build(p, 3, 5)(image))
    _expect_start(student)


def _own(
    p: int, channels: int, d: int, state: State, missing: list, extra: list
) -> Iterator[tuple[bool, str, str]]:
    shape, length = tuple(state.get("weight", torch.empty(0)).shape), p * p * channels
    yield (
        shape == (length + 1, d),
        "a row too many in the matrix",
        f"A patch has P · P · C = {length} numbers, so the matrix has {length} rows. "
        "One more fits only if a constant 1 is appended to every patch, and then the "
        "last row is the bias. Here bias is a parameter of its own.",
    )
    why = f"A patch has P · P · C numbers: count all {channels} channels."
    yield channels > 1 and shape == (p * p, d), "channels not counted", why


def _expect_by_hand(student: StudentModule) -> None:
    layer = student.build(2, 1, 2)
    weight = torch.tensor([[1.0, 0.25], [0.0, 0.25], [0.0, 0.25], [-1.0, 0.25]])
    bias = torch.tensor([0.5, 0.0])
    layer.load_state_dict({"weight": weight, "bias": bias})
    image = torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
    on = "the example by hand, the patch (1, 2, 3, 4)"
    right = torch.tensor([[[-2.5, 2.5]]])
    embedding.judge(layer, Case(on, (image,), right, given=(weight, bias, 2)))


def _expect_start(student: StudentModule) -> None:
    """Neither 1/√d_model nor 1/√(P · P) nor 1/P² is near what is asked for."""
    p, channels, d = 4, 16, 24
    on, length = f"PatchEmbedding({p}, {channels}, {d})", p * p * channels
    state = student.build(p, channels, d).state_dict()
    expect_biases_of_zero(state, ("bias",), on)
    expect_spread(
        state["weight"],
        length**-0.5,
        on,
        name="weight",
        formula=f"1/√{length}",
        why=f"Each sum of x @ weight has P · P · C = {length} terms. Divide the random "
        "numbers by the root of that, and the sums have a spread of about 1.",
    )
