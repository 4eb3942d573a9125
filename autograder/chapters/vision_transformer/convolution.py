"""A convolution made of attention heads, each of which takes one fixed step."""

import functools
import itertools
from collections.abc import Callable

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.vision_transformer.chapter import DEEP, chapter
from autograder.chapters.vision_transformer.steps import (
    REPEATED,
    RUNS_ON,
    WRAPS,
    repeats,
    runs_on,
    shift,
    shift_weights,
    wraps,
)
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction


def convolve(tokens: torch.Tensor, kernel: torch.Tensor, h, w) -> torch.Tensor:
    """Convolve by PyTorch's conv2d, zeros around."""
    image = tokens.reshape(-1, h, w, tokens.shape[-1]).permute(0, 3, 1, 2)
    found = F.conv2d(image, kernel, padding=kernel.shape[-1] // 2)
    return found.flatten(2).mT.reshape(*tokens.shape[:-1], -1)


convolution = Function("convolution-by-heads", "convolution_by_heads", convolve)
NOT_TURNED = (
    "the kernel's matrix is not transposed",
    "kernel[:, :, i, j] is (C_out, C_in). Tokens are rows, so they are multiplied by "
    "its transpose, .T; with as many channels out as in, nothing complains.",
)
for words in ("cannot be multiplied", "Expected size for", "must match the size"):
    convolution.accident(words, *NOT_TURNED)
convolution.accident(
    "number of subscripts in the equation",
    "only works with one batch axis",
    "Any axes may come before the tokens, or none: (…, N, C). In einsum they are three "
    "dots, and @ takes them as they are.",
)


# --- what goes wrong ------------------------------------------------------------------


def _heads(tokens, kernel, h, w, step: Callable = shift, middle: int | None = None):
    """Give what each head adds, in the order of the kernel's places."""
    k = kernel.shape[-1]
    middle = k // 2 if middle is None else middle
    return [
        step(h, w, i - middle, j - middle) @ tokens @ kernel[:, :, i, j].T
        for i, j in itertools.product(range(k), repeat=2)
    ]


convolution.mistake(
    "the kernel is flipped",
    "Head (i, j) looks by (i − k//2, j − k//2), with the kernel as it is. PyTorch's "
    "conv2d does not flip it.",
)(lambda tokens, kernel, h, w: convolve(tokens, kernel.flip(-1, -2), h, w))
convolution.mistake(
    "rows and columns of the kernel exchanged",
    "Index i of the kernel goes down, index j to the right.",
)(lambda tokens, kernel, h, w: convolve(tokens, kernel.mT, h, w))


def _stepping(step: Callable, tokens, kernel, h, w):
    return sum(_heads(tokens, kernel, h, w, step))


for (name, _), step in ((WRAPS, wraps), (RUNS_ON, runs_on), (REPEATED, repeats)):
    convolution.mistake(name, "Outside the image there are zeros.")(
        functools.partial(_stepping, step)
    )
convolution.mistake(
    "the kernel has no middle",
    "The middle of the kernel is the step (0, 0): i − k//2 and j − k//2.",
)(lambda tokens, kernel, h, w: sum(_heads(tokens, kernel, h, w, middle=0)))
convolution.mistake(
    "the middle of the kernel is off by one",
    "The middle of the kernel is the step (0, 0): i − k//2 and j − k//2.",
)(
    lambda tokens, kernel, h, w: sum(
        _heads(tokens, kernel, h, w, middle=kernel.shape[-1] // 2 + 1)
    )
)
convolution.mistake(
    "the middle of a 3 × 3 kernel",
    "Steps of i − 1 and j − 1 fit 3 × 3 only. In general: i − k//2, j − k//2.",
)(lambda tokens, kernel, h, w: sum(_heads(tokens, kernel, h, w, middle=1)))
convolution.mistake(
    *NOT_TURNED, when=lambda tokens, kernel, h, w: kernel.shape[0] == kernel.shape[1]
)(lambda tokens, kernel, h, w: convolve(tokens, kernel.transpose(0, 1), h, w))
convolution.mistake(
    "the mean of the heads",
    "The heads are added up, one for each of the k · k places of the kernel.",
)(lambda tokens, kernel, h, w: torch.stack(_heads(tokens, kernel, h, w)).mean(0))


@convolution.mistake(
    "only the middle of the kernel",
    "The heads are added up, one for each of the k · k places of the kernel.",
)
def _(tokens, kernel, h, w):
    middle = kernel.shape[-1] // 2
    return tokens @ kernel[:, :, middle, middle].T


for mixed in (
    lambda kernel: kernel.reshape(len(kernel), *kernel.shape[2:], -1).movedim(-1, 1),
    lambda kernel: kernel.movedim(1, -1).reshape(kernel.shape),
    lambda kernel: kernel.reshape(*kernel.shape[2:], *kernel.shape[:2]).movedim(
        (0, 1), (2, 3)
    ),
):
    convolution.mistake(
        "channels and places mixed up",
        "Head (i, j) belongs to kernel[:, :, i, j]. The axes of the kernel are (C_out, "
        "C_in, k, k): flattened, it runs through all places of one channel before the "
        "next channel. What the heads found, one beside the other, runs through all "
        "channels of one place.",
    )(lambda tokens, kernel, h, w, mixed=mixed: convolve(tokens, mixed(kernel), h, w))
convolution.mistake(
    "every head looks at its own token",
    "Head (i, j) looks by (i − k//2, j − k//2): multiply by its weights first.",
)(lambda tokens, kernel, h, w: tokens @ kernel.sum((-2, -1)).T)
convolution.mistake(
    "only the last head",
    "The heads are added up, one for each of the k · k places of the kernel.",
)(lambda tokens, kernel, h, w: _heads(tokens, kernel, h, w)[-1])
convolution.mistake(
    "tokens in columns", "One token, one row: the channels are on the last axis."
)(lambda tokens, kernel, h, w: convolve(tokens, kernel, h, w).mT)


# --- the check ------------------------------------------------------------------------


@chapter.check(section="vision-convolution")
def convolution_by_heads(
    student: StudentFunction, shift_student: StudentFunction, seed: int = 0
) -> None:
    """By hand, PyTorch's conv2d, kernels of 1, 3 and 5, any leading axes, gradients."""
    with expect.relying_on(shift_weights, shift_student):
        _check_convolution(student, seed)


def _check_convolution(student: StudentFunction, seed: int) -> None:
    tokens = torch.tensor([[1.0], [2.0], [3.0]])
    kernel = torch.zeros(1, 1, 3, 3)
    kernel[0, 0, 1] = torch.tensor([1.0, 0.0, -1.0])
    right = torch.tensor([[-2.0], [-2.0], [2.0]])
    on = "the example by hand, tokens 1, 2, 3 in a row"
    convolution.judge(student, Case(on, (tokens, kernel, 1, 3), right, tolerance=DEEP))
    generator = seeded(seed)
    a, h, w, c_in, c_out = draw_sizes(generator, 5)
    for lead, come, go, k in (
        ((), c_in, c_out, 3),
        ((a,), c_in, c_out, 3),
        ((2, a), c_in, 1, 3),
        ((), c_in, c_in, 3),
        ((a,), 1, c_out, 5),
        ((), c_in, c_out, 1),
        ((), c_in, c_out, 3),
    ):
        tokens = normal(generator, *lead, h * w, come)
        kernel = normal(generator, go, come, k, k)
        on = f"tokens {tuple(tokens.shape)} on a grid of {h} x {w}"
        on += f", kernel {tuple(kernel.shape)}"
        case = Case(on, (tokens, kernel, h, w), tolerance=DEEP)
        convolution.judge(student, case)
    cotangent = normal(generator, h * w, c_out)
    convolution.judge_gradient(student, case, cotangent, wrt=(0, 1))
