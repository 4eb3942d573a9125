"""Attention by fixed steps, and a convolution made of such heads."""

import functools
import itertools
from collections.abc import Callable

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.vision_transformer.chapter import DEEP, chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction

OUTSIDE = (
    "places outside the grid are not sorted out",
    "A place outside the grid was used as an index. Test whether row and column lie in "
    "the grid before you write.",
)
EMPTY = (
    "a softmax over a row with nothing left",
    "Where a token has nothing to look at, softmax divides 0 by 0. No softmax is "
    "needed: write zeros and ones.",
)


def shift(h: int, w: int, down: int, right: int) -> torch.Tensor:
    """Shift the rows of an identity on a grid that is continued by zeros."""
    margin = max(abs(down), abs(right))
    eye = torch.eye(h * w).view(1, h, w, h * w).permute(0, 3, 1, 2)
    padded = F.pad(eye, (margin,) * 4)
    top, left = margin + down, margin + right
    return padded[0, :, top : top + h, left : left + w].flatten(1).T.contiguous()


steps = Function(
    "shift-weights",
    "shift_weights",
    shift,
    accidents=[("out of bounds", *OUTSIDE), ("out of range", *OUTSIDE)],
)


# --- a step: what goes wrong ----------------------------------------------------------


def _places(h, w, down, right) -> tuple[torch.Tensor, torch.Tensor]:
    """Give the row and the column that each token looks at."""
    tokens = torch.arange(h * w)
    return tokens // w + down, tokens % w + right


def _looking_at(target: torch.Tensor, seen: torch.Tensor | bool = True) -> torch.Tensor:
    """Write a one where a token looks, if it sees something."""
    n = len(target)
    seen = torch.as_tensor(seen).expand(n)
    weights = torch.zeros(n, n)
    weights[seen] = torch.eye(n)[target[seen]]
    return weights


OTHER_WAY = (
    "looks the other way",
    "The step has the wrong sign. Row i of the weights belongs to the token that "
    "looks, column j to the one that is looked at: a 1 at "
    "[r · W + c, (r + row_offset) · W + (c + column_offset)].",
)


@steps.mistake(*OTHER_WAY)
def _(h, w, down, right):
    return shift(h, w, -down, -right)


@steps.mistake(
    "row and column exchanged", "row_offset goes down, column_offset to the right."
)
def _(h, w, down, right):
    return shift(h, w, right, down)


SIDES = (
    "height and width exchanged",
    "Tokens are in reading order: token (r, c) is number r · width + c. On square "
    "grids height and width are the same.",
)


@steps.mistake(*SIDES)
def _(h, w, down, right):
    return shift(w, h, down, right)


@steps.mistake(*SIDES)
def _(h, w, down, right):
    order = torch.arange(h * w).view(w, h).T.flatten()  # numbered by columns
    weights = torch.zeros(h * w, h * w)
    weights[order.unsqueeze(1), order] = shift(h, w, down, right)
    return weights


@steps.mistake(*SIDES)
def _(h, w, down, right):
    tokens = torch.arange(h * w)
    row, column = tokens // h + down, tokens % h + right
    seen = (row >= 0) & (row < h) & (column >= 0) & (column < w)
    return _looking_at(row * w + column, seen)


WRAPS = (
    "wraps around the border",
    "An image ends at its border. A place outside is not the one on the opposite side: "
    "leave this row at zeros.",
)
RUNS_ON = (
    "runs on into the next row",
    "After the last token of a row comes, in the sequence, the first of the next row, "
    "which is no neighbour. Test the row and the column by themselves; the number of "
    "the token alone does not show that a row has ended.",
)
REPEATED = (
    "the border is repeated",
    "A place outside the image is not its nearest one inside: the row stays zero.",
)
NEGATIVE = (
    "negative places wrap around",
    "A negative index counts from the end, in Python and in PyTorch, without an error. "
    "Test 0 <= row as well as row < height, and the columns likewise.",
)


@steps.mistake(*WRAPS)
def _wraps(h, w, down, right):
    row, column = _places(h, w, down, right)
    return _looking_at(row % h * w + column % w)


@steps.mistake(*RUNS_ON)
def _runs_on(h, w, down, right):
    target = torch.arange(h * w) + down * w + right
    return _looking_at(target, (target >= 0) & (target < h * w))


@steps.mistake(*REPEATED)
def _repeats(h, w, down, right):
    row, column = _places(h, w, down, right)
    return _looking_at(row.clamp(0, h - 1) * w + column.clamp(0, w - 1))


@steps.mistake(*NEGATIVE)
def _(h, w, down, right):
    row, column = _places(h, w, down, right)
    return _looking_at(row * w + column, (row < h) & (column < w))


@steps.mistake(
    "row 0 and column 0 are left out",
    "Row 0 and column 0 lie in the grid, too: 0 <= row, not 0 < row.",
)
def _(h, w, down, right):
    row, column = _places(h, w, down, right)
    return shift(h, w, down, right) * ((row > 0) & (column > 0)).unsqueeze(1)


@steps.mistake(
    "a token at the border looks at itself",
    "Where there is nothing to look at, the row stays zero.",
)
def _(h, w, down, right):
    weights = shift(h, w, down, right)
    return weights + torch.diag(1 - weights.sum(1))


@steps.mistake(
    "a token at the border looks everywhere",
    "Where there is nothing to look at, the row stays zero.",
)
def _(h, w, down, right):
    weights = shift(h, w, down, right)
    return weights + (1 - weights.sum(1, keepdim=True)) / (h * w)


@steps.mistake("the step is ignored", "Token (r, c) looks one step further.")
def _(h, w, down, right):
    return torch.eye(h * w)


# --- a convolution: what goes wrong ---------------------------------------------------


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


def _heads(tokens, kernel, h, w, step: Callable = shift, middle: int | None = None):
    """Give what each head adds, in the order of the kernel's places."""
    k = kernel.shape[-1]
    middle = k // 2 if middle is None else middle
    return [
        step(h, w, i - middle, j - middle) @ tokens @ kernel[:, :, i, j].T
        for i, j in itertools.product(range(k), repeat=2)
    ]


@convolution.mistake(
    "the kernel is flipped",
    "Head (i, j) looks by (i − k//2, j − k//2), with the kernel as it is. PyTorch's "
    "conv2d does not flip it.",
)
def _(tokens, kernel, h, w):
    return convolve(tokens, kernel.flip(-1, -2), h, w)


@convolution.mistake(
    "rows and columns of the kernel exchanged",
    "Index i of the kernel goes down, index j to the right.",
)
def _(tokens, kernel, h, w):
    return convolve(tokens, kernel.mT, h, w)


def _stepping(step: Callable, tokens, kernel, h, w):
    return sum(_heads(tokens, kernel, h, w, step))


for (name, _), step in ((WRAPS, _wraps), (RUNS_ON, _runs_on), (REPEATED, _repeats)):
    convolution.mistake(name, "Outside the image there are zeros.")(
        functools.partial(_stepping, step)
    )


@convolution.mistake(
    "the kernel has no middle",
    "The middle of the kernel is the step (0, 0): i − k//2 and j − k//2.",
)
def _(tokens, kernel, h, w):
    return sum(_heads(tokens, kernel, h, w, middle=0))


@convolution.mistake(
    "the middle of the kernel is off by one",
    "The middle of the kernel is the step (0, 0): i − k//2 and j − k//2.",
)
def _(tokens, kernel, h, w):
    return sum(_heads(tokens, kernel, h, w, middle=kernel.shape[-1] // 2 + 1))


@convolution.mistake(
    "the middle of a 3 × 3 kernel",
    "Steps of i − 1 and j − 1 fit 3 × 3 only. In general: i − k//2, j − k//2.",
)
def _(tokens, kernel, h, w):
    return sum(_heads(tokens, kernel, h, w, middle=1))


@convolution.mistake(
    *NOT_TURNED, when=lambda tokens, kernel, h, w: kernel.shape[0] == kernel.shape[1]
)
def _(tokens, kernel, h, w):
    return convolve(tokens, kernel.transpose(0, 1), h, w)


@convolution.mistake(
    "the mean of the heads",
    "The heads are added up, one for each of the k · k places of the kernel.",
)
def _(tokens, kernel, h, w):
    return torch.stack(_heads(tokens, kernel, h, w)).mean(0)


@convolution.mistake(
    "only the middle of the kernel",
    "The heads are added up, one for each of the k · k places of the kernel.",
)
def _(tokens, kernel, h, w):
    middle = kernel.shape[-1] // 2
    return tokens @ kernel[:, :, middle, middle].T


@convolution.mistake(
    "every head looks at its own token",
    "Head (i, j) looks by (i − k//2, j − k//2): multiply by its weights first.",
)
def _(tokens, kernel, h, w):
    return tokens @ kernel.sum((-2, -1)).T


@convolution.mistake(
    "only the last head",
    "The heads are added up, one for each of the k · k places of the kernel.",
)
def _(tokens, kernel, h, w):
    return _heads(tokens, kernel, h, w)[-1]


@convolution.mistake(
    "tokens in columns", "One token, one row: the channels stand in the last axis."
)
def _(tokens, kernel, h, w):
    return convolve(tokens, kernel, h, w).mT


# --- the checks -----------------------------------------------------------------------


@chapter.check(section="vision-convolution")
def shift_weights(student: StudentFunction, seed: int = 0) -> None:
    """By hand, every step on several grids, steps beyond the border."""
    right = torch.zeros(6, 6)
    for token, neighbour in ((0, 1), (1, 2), (3, 4), (4, 5)):
        right[token, neighbour] = 1.0
    a, b, c, d = draw_sizes(seeded(seed), 4)
    cases = [((2, 3, 0, 1), right)]
    for h, w in ((a, b), (c, d), (1, 4), (3, 3), (1, 1)):
        offsets = itertools.product((-1, 2, 0, -2, 1), (1, -2, 0, 2, -1))
        cases += [((h, w, *offset), shift(h, w, *offset)) for offset in offsets]
    for offset in ((a, 0), (0, -b)):
        cases.append(((a, b, *offset), torch.zeros(a * b, a * b)))
    for numbers, expected in cases:
        on = f"shift_weights({', '.join(map(str, numbers))})"
        steps.judge(student, Case(on, numbers, expected, unless_finite=EMPTY))


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
