"""The matrix of a patch embedding as the weight of a convolution."""

import torch
import torch.nn.functional as F

from autograder import expect
from autograder.chapters.embeddings.chapter import chapter
from autograder.chapters.embeddings.refusals import expect_refusal, mistakes_in_refusing
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function
from autograder.interface import StudentFunction


def row_by_row(matrix: torch.Tensor, p: int, channels: int) -> torch.Tensor:
    """Put row by row of the matrix in its place."""
    kernel = torch.zeros(matrix.shape[1], channels, p, p)
    for row in range(p):
        for column in range(p):
            for channel in range(channels):
                place = (row * p + column) * channels + channel
                kernel[:, channel, row, column] = matrix[place]
    return kernel


kernels = Function("patch-kernel", "patch_kernel", row_by_row)


# --- what goes wrong ------------------------------------------------------------------


def _too_many(matrix: torch.Tensor, p: int, channels: int) -> bool:
    return len(matrix) > p * p * channels


def _outside(matrix: torch.Tensor, p: int, channels: int) -> bool:
    return len(matrix) != p * p * channels


def _inside(matrix: torch.Tensor, p: int, channels: int) -> bool:
    return not _outside(matrix, p, channels)


RENAMED = (
    "a matrix is not transposed",
    "The first axis of the matrix is the patch, the second the width. A reshape cannot "
    "exchange them; it only renames. Transpose or permute.",
)
for name, why, sort in (
    (
        "a patch read as (channel, row, column)",
        "The shape is right, the numbers are not: a patch is flattened in the order "
        "(row, column, channel). Split the axis in that order first, then permute.",
        lambda m, p, c: m.T.reshape(-1, c, p, p),
    ),
    (
        "rows and columns exchanged",
        "Every patch is mirrored along its diagonal. Rows come before columns.",
        lambda m, p, c: m.reshape(p, p, c, -1).permute(3, 2, 1, 0),
    ),
    (
        "channels last",
        "PyTorch's convolution wants the channels before rows and columns.",
        lambda m, p, c: m.reshape(p, p, c, -1).permute(3, 0, 1, 2),
    ),
    (*RENAMED, lambda m, p, c: m.reshape(-1, c, p, p)),
    (*RENAMED, lambda m, p, c: m.reshape(-1, p, p, c).permute(0, 3, 1, 2)),
    (
        "the kernel is turned round",
        "What PyTorch calls convolution does not turn the kernel: no flip.",
        lambda m, p, c: m.reshape(p, p, c, -1).permute(3, 2, 0, 1).flip(-1, -2),
    ),
    (
        "input and output exchanged",
        "The weight begins with the output channels: (d_model, channels, P, P).",
        lambda m, p, c: m.reshape(p, p, c, -1).permute(2, 3, 0, 1),
    ),
    (
        "axes not reordered",
        "The weight of a convolution is (output, input, rows, columns): permute.",
        lambda m, p, c: m.reshape(p, p, c, -1),
    ),
):
    kernels.mistake(name, why, when=_inside)(sort)
ACCEPTED = (
    "a wrong number of rows is accepted",
    "A patch has P · P · C numbers, and each has one row (16 · 16 · 3 = 768, not 769). "
    "A row left over is somebody's mistake: say so.",
)
kernels.mistake(*ACCEPTED, when=_too_many)(row_by_row)
mistakes_in_refusing(kernels, _outside)


# --- the check ------------------------------------------------------------------------


@chapter.check(section="embeddings-patches")
def patch_kernel(student: StudentFunction, seed: int = 0) -> None:
    """The weight row by row, the convolution patch by patch, wrong numbers of rows."""
    generator = seeded(seed)
    size, channels, width = draw_sizes(generator, 3)
    for p, c, d in ((2, 3, 5), (size, channels, width + 6), (3, 1, 4), (1, 3, 2)):
        matrix = normal(generator, p * p * c, d)
        case = Case(
            f"matrix {tuple(matrix.shape)}, patch_size {p}, channels {c}",
            (matrix, p, c),
            what="the weight",
            why="Row (r · P + c) · C + k of the matrix becomes weight[:, k, r, c].",
        )
        got = kernels.judge(student, case)
        _expect_same_embedding(got, case, generator)
    for rows in (19, 36, 17):
        matrix = normal(generator, rows, 5)
        on = f"matrix ({rows}, 5), patch_size 3, channels 2: a patch has 18 numbers"
        expect_refusal(kernels, student, Case(on, (matrix, 3, 2)), ACCEPTED)


def _expect_same_embedding(
    kernel: torch.Tensor, case: Case, generator: torch.Generator
) -> None:
    """Expect the convolution to give what patches times matrix give."""
    matrix, p, c = case.inputs
    image = normal(generator, 1, c, 2 * p, 3 * p)
    rows = []
    for top in range(0, 2 * p, p):
        for left in range(0, 3 * p, p):
            patch = image[0, :, top : top + p, left : left + p]
            rows.append(torch.stack([patch[k] for k in range(c)], dim=-1).flatten())
    tokens = F.conv2d(image, kernel, stride=p).flatten(2)[0].mT
    on = f"an image {tuple(image.shape)}; {case.on}"
    wanted = torch.stack(rows) @ matrix
    expect.equal(tokens, wanted, on=on, what="the convolution", tolerance=1e-4)
