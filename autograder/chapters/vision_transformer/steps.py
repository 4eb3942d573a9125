"""Attention that looks a fixed number of rows and columns away."""

import itertools

import torch
import torch.nn.functional as F

from autograder.chapters.vision_transformer.chapter import chapter
from autograder.exercise.inputs import draw_sizes, seeded
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
steps.mistake(*OTHER_WAY)(lambda h, w, down, right: shift(h, w, -down, -right))
steps.mistake(
    "row and column exchanged", "row_offset goes down, column_offset to the right."
)(lambda h, w, down, right: shift(h, w, right, down))
SIDES = (
    "height and width exchanged",
    "Tokens are in reading order: token (r, c) is number r · width + c. On square "
    "grids height and width are the same.",
)
steps.mistake(*SIDES)(lambda h, w, down, right: shift(w, h, down, right))


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


for one, other in ((True, True), (True, False), (False, True)):

    @steps.mistake(*SIDES)
    def _(h, w, down, right, one=one, other=other):
        """Number by r · height + c the token that looks, the other one, or both."""
        weights = torch.zeros(h * w, h * w)
        for r, c in itertools.product(range(h), range(w)):
            row, column = r + down, c + right
            if 0 <= row < h and 0 <= column < w:
                here = r * (h if one else w) + c
                there = row * (h if other else w) + column
                weights[here % (h * w), there % (h * w)] = 1
        return weights


@steps.mistake(
    "a step beyond the grid makes the matrix grow",
    "torch.diag(ones, offset) is as large as its offset asks for, not as the side is. "
    "A step longer than the side leads every token outside: (N, N) zeros.",
    when=lambda h, w, down, right: abs(down) > h or abs(right) > w,
)
def _(h, w, down, right):
    sides = ((h, down), (w, right))
    return torch.kron(
        *(torch.diag(torch.ones(max(n - abs(k), 0)), k) for n, k in sides)
    )


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
def wraps(h, w, down, right):
    """Look at the other side of the grid, past the border."""
    row, column = _places(h, w, down, right)
    return _looking_at(row % h * w + column % w)


@steps.mistake(*RUNS_ON)
def runs_on(h, w, down, right):
    """Look at the token that stands so much further in the sequence."""
    target = torch.arange(h * w) + down * w + right
    return _looking_at(target, (target >= 0) & (target < h * w))


@steps.mistake(*REPEATED)
def repeats(h, w, down, right):
    """Look at the last place inside, past the border."""
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


@steps.mistake(
    OTHER_WAY[0],
    f"{OTHER_WAY[1]} And where there is nothing to look at, the row stays zero.",
)
def _(h, w, down, right):
    weights = shift(h, w, down, right)  # and what is at the border looks at itself
    return weights.T + torch.diag(1 - weights.sum(1))


for past_it in (wraps, runs_on, repeats):
    steps.mistake(OTHER_WAY[0], f"{OTHER_WAY[1]} And an image ends at its border.")(
        lambda h, w, down, right, past_it=past_it: past_it(h, w, down, right).T
    )


steps.mistake("the step is ignored", "Token (r, c) looks one step further.")(
    lambda h, w, down, right: torch.eye(h * w)
)


# --- the check ------------------------------------------------------------------------


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
