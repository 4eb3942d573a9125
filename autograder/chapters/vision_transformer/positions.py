"""Learned positions for another image size: a table resized on its grid."""

import contextlib
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

import torch
import torch.nn.functional as F

from autograder.chapters.vision_transformer.chapter import chapter
from autograder.exercise.inputs import draw_sizes, normal, seeded
from autograder.exercise.spec import Case, Function, errors_named
from autograder.interface import StudentFunction

Grid = tuple[int, int]

IGNORED = (
    "class_tokens is ignored",
    "Set aside class_tokens rows, which may be 0, 1 or more.",
)


def _between(old: int, new: int) -> torch.Tensor:
    """Weights (new, old) of linear interpolation between the middles of old cells."""
    place = (torch.arange(new, dtype=torch.float64) + 0.5) * old / new - 0.5
    distance = (place.clamp(0, old - 1).unsqueeze(1) - torch.arange(old)).abs()
    return (1 - distance).clamp(min=0)


def resized(table: torch.Tensor, old: Grid, new: Grid, special: int) -> torch.Tensor:
    """Interpolate by a matrix for the rows and one for the columns."""
    grid = table[special:].double().unflatten(0, old)
    down, right = _between(old[0], new[0]), _between(old[1], new[1])
    rows = torch.einsum("ir,jc,rcd->ijd", down, right, grid).flatten(0, 1)
    return torch.cat((table[:special], rows.to(table.dtype)))


interpolation = Function("interpolate-positions", "interpolate_positions", resized)


# --- what goes wrong ------------------------------------------------------------------


def _laid(rows: torch.Tensor, old: Grid) -> torch.Tensor:
    """Lay the rows of a grid out as an image (d, h, w)."""
    return rows.reshape(*old, rows.shape[1]).permute(2, 0, 1)


def resize_by(
    table: torch.Tensor,
    old: Grid,
    new: Grid,
    special: int,
    *,
    kept: Callable = lambda old, new: False,
    aside: Callable = lambda table, special: (table[:special], table[special:]),
    lay: Callable = _laid,
    mode: str = "bilinear",
    options: Mapping[str, bool] = MappingProxyType({}),
    size: Callable = lambda old, new: {"size": new},
    back: Callable = lambda image, d: image.flatten(1).T,
    grow: Callable | None = None,
    join: Callable = lambda front, rows: torch.cat((front, rows)),
) -> torch.Tensor:
    """Resize by rules that can be varied.

    Args:
        table: (special + h·w, d).
        old: (h, w).
        new: (h', w').
        special: rows at the front that belong to no patch.
        kept: whether the table is left as it is.
        aside: cuts it into these and the others.
        lay: makes an image (d, h, w) of the others.
        mode: of the interpolation.
        options: of it.
        size: tells it how large the result is.
        back: makes rows of what comes.
        grow: makes all these rows at once, of the others and how many are wanted.
        join: puts both parts together.
    """
    front, rows = aside(table, special)
    if grow:
        rows = grow(rows, new[0] * new[1])
    elif not kept(old, new):
        told = {"mode": mode, **options, **size(old, new)}
        rows = back(F.interpolate(lay(rows, old)[None], **told)[0], table.shape[1])
    return join(front, rows)


CORNERS = (
    "the corners are aligned",
    "align_corners=True puts the middles of the outermost patches upon each other. A "
    "patch is an area: align_corners=False keeps the edges of the image together.",
)
NEAREST = (
    "the nearest row is copied",
    "Interpolate between the four nearest patches: mode='bilinear'.",
)
OTHER = ("another interpolation", NEAREST[1])
SMOOTHED = (
    "smoothed before it is made smaller",
    "Here the plain bilinear formula is wanted: leave antialias at False.",
)
TRANSPOSED = (
    "the grid is transposed",
    "Grids are (rows, columns), and the rows of the table are in reading order, before "
    "and after. On square grids the difference cannot be seen.",
)
ONE_SCALE = (
    "one scale for rows and columns",
    "The grid may grow by another factor in height than in width. Hand both sizes "
    "over: size=new_grid.",
)
MIXED_UP = (
    "features and places mixed up",
    "A row of the table holds the d features of one place. Lay it out as (h, w, d) "
    "first, then permute to (d, h, w); a reshape alone mixes them, and so does one at "
    "the end without permuting back.",
)
IN_FRONT = "The rows of class tokens come back unchanged, before the others."
LOST = "the class token's row is lost", IN_FRONT
CUT_OFF = (
    "rows cut off or repeated",
    "Interpolate; rows that are cut off or repeated belong to other places.",
)


def _straight(rows: torch.Tensor, old: Grid) -> torch.Tensor:
    return rows.reshape(-1, *old)


def _by_columns(rows: torch.Tensor, old: Grid) -> torch.Tensor:
    return rows.reshape(*old[::-1], rows.shape[1]).permute(2, 1, 0)


def _crossed(rows: torch.Tensor, old: Grid) -> torch.Tensor:
    return _laid(rows, old[::-1])


def _crossed_size(old: Grid, new: Grid) -> dict:
    return {"size": new[::-1]}


def _one_scale(axis: int, old: Grid, new: Grid) -> dict:
    return {"scale_factor": new[axis] / old[axis]}


def _in_columns(image: torch.Tensor, d: int) -> torch.Tensor:
    return image.mT.flatten(1).T


def _as_it_lies(image: torch.Tensor, d: int) -> torch.Tensor:
    return image.reshape(-1, d)


def _along(rows: torch.Tensor, count: int) -> torch.Tensor:
    return F.interpolate(rows.T[None], size=count, mode="linear")[0].T


def _repeated(rows: torch.Tensor, count: int) -> torch.Tensor:
    return rows.repeat(count // len(rows) + 1, 1)[:count]


interpolation.slips(
    resize_by,
    (*CORNERS, {"options": {"align_corners": True}}),
    (*NEAREST, {"mode": "nearest"}),
    *((*OTHER, {"mode": mode}) for mode in ("nearest-exact", "bicubic", "area")),
    (*SMOOTHED, {"options": {"antialias": True}}),
    (*TRANSPOSED, {"lay": _crossed}),
    (*TRANSPOSED, {"size": _crossed_size}),
    (*TRANSPOSED, {"lay": _crossed, "size": _crossed_size}),
    (*TRANSPOSED, {"back": _in_columns}),
    (*TRANSPOSED, {"lay": _by_columns}),
    (*TRANSPOSED, {"lay": _by_columns, "back": _in_columns}),
    *((*ONE_SCALE, {"size": partial(_one_scale, axis)}) for axis in (0, 1)),
    (*MIXED_UP, {"lay": _straight}),
    (*MIXED_UP, {"lay": _straight, "back": _as_it_lies}),
    (*MIXED_UP, {"back": _as_it_lies}),
    (
        "interpolated along the list",
        "The table is a list, but what it describes is a plane: the last patch of a "
        "row and the first of the next are no neighbours.",
        {"grow": _along},
    ),
    (*CUT_OFF, {"grow": lambda rows, count: rows[:count]}),
    (*CUT_OFF, {"grow": _repeated}),
    (*LOST, {"join": lambda front, rows: rows}),
    (*LOST, {"join": lambda front, rows: torch.cat((0 * front, rows))}),
    (
        "the class token's row at the end",
        IN_FRONT,
        {"join": lambda front, rows: torch.cat((rows, front))},
    ),
    (
        "the last rows taken for class tokens",
        "The rows of class tokens are at the front of the table.",
        {
            "aside": lambda table, special: (
                table[len(table) - special :],
                table[: len(table) - special],
            )
        },
    ),
    (*IGNORED, {"aside": lambda table, special: (table[:1], table[1:])}),
    (*IGNORED, {"aside": lambda table, special: (table[:1], table[special:])}),
)
interpolation.mistake(
    "the class token's row is interpolated, too",
    "The class token belongs to no place in the image: its row stays as it is, and "
    "only the others are interpolated, on their grid.",
    when=lambda table, old, new, special: special > 0,
)(lambda table, old, new, special: _along(table, special + new[0] * new[1]))
interpolation.mistake(
    "two grids with as many patches are taken for the same",
    "2 × 6 patches are as many as 3 × 4, but most lie elsewhere: the table has to be "
    "interpolated. Compare the two sides of the grids, not their product, or compare "
    "nothing: on the same grid the formula gives the table itself.",
)(partial(resize_by, kept=lambda old, new: old[0] * old[1] == new[0] * new[1]))


# --- the check ------------------------------------------------------------------------


@chapter.check(section="vision-interpolation")
def interpolate_positions(student: StudentFunction, seed: int = 0) -> None:
    """By hand, by matrices, larger and smaller, 0 to 2 class tokens, the gradient."""
    table = torch.tensor([[9.0], [0.0], [4.0]])
    right = torch.tensor([[9.0], [0.0], [1.0], [3.0], [4.0]])
    on = "the example by hand, with a class token of 9"
    asked = Case(on, (table, (1, 2), (1, 4)), right, given=(1,))
    interpolation.judge(student, asked)
    generator = seeded(seed)
    h, w, d = draw_sizes(generator, 3)
    d += 5
    for old, new, special in (
        ((h, w), (h + 3, w + 1), 1),
        ((h, w), (2 * w, 3 * h), 1),
        ((h + 3, w + 5), (h + 1, w), 1),
        ((h, w), (w, h), 0),  # as many patches in other places
        ((h + 1, w), (h + 2, w + 4), 2),
        ((h, w), (h, w), 1),
        ((h, w), (1, 1), 1),
    ):
        table = normal(generator, special + old[0] * old[1], d)
        wording = ("invalid for input", "must match", "not match", "multiply up")
        named = errors_named(*((words, *IGNORED) for words in wording))
        with contextlib.nullcontext() if special == 1 else named:
            interpolation.judge(student, _asked(table, old, new, special))
    table = normal(generator, 1 + h * w, d)
    new = (h + 1, w + 2)
    cotangent = normal(generator, 1 + new[0] * new[1], d)
    interpolation.judge_gradient(student, _asked(table, (h, w), new, 1), cotangent)


def _asked(table: torch.Tensor, old: Grid, new: Grid, special: int) -> Case:
    """Ask with class_tokens only if it is not what it is by default."""
    on = f"a table {tuple(table.shape)}, grid {old} to {new}, class_tokens={special}"
    if special == 1:
        return Case(on, (table, old, new), given=(special,))
    return Case(on, (table, old, new, special))
