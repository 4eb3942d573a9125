"""Learned positions for another image size: a table resized on its grid."""

import contextlib

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


def _picture(table, old, new, special, **options) -> torch.Tensor:
    """Resize the rows of the grid by PyTorch: (d, h', w')."""
    image = table[special:].reshape(1, *old, table.shape[1]).permute(0, 3, 1, 2)
    return F.interpolate(image, size=new, **({"mode": "bilinear"} | options))[0]


def _below(table: torch.Tensor, special: int, image: torch.Tensor) -> torch.Tensor:
    return torch.cat((table[:special], image.flatten(1).T))


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
IN_FRONT = "the rows of class tokens come back unchanged, before the others."
for mistake, options in (
    (CORNERS, {"align_corners": True}),
    (NEAREST, {"mode": "nearest"}),
    (OTHER, {"mode": "nearest-exact"}),
    (OTHER, {"mode": "bicubic"}),
    (OTHER, {"mode": "area"}),
    (SMOOTHED, {"antialias": True}),
):
    interpolation.mistake(*mistake)(
        lambda table, old, new, special, options=options: _below(
            table, special, _picture(table, old, new, special, **options)
        )
    )
    interpolation.mistake(mistake[0], f"{mistake[1]} And {IN_FRONT}")(
        lambda table, old, new, special, options=options: _below(
            table, special, _picture(table, old, new, special, **options)
        ).roll(-special, 0)
    )

TRANSPOSED = (
    "the grid is transposed",
    "Grids are (rows, columns), and the rows of the table are in reading order, before "
    "and after. On square grids the difference cannot be seen.",
)
for turn in ((-1, 1), (1, -1), (-1, -1)):
    interpolation.mistake(*TRANSPOSED)(
        lambda table, old, new, special, turn=turn: resized(
            table, old[:: turn[0]], new[:: turn[1]], special
        )
    )
interpolation.mistake(*TRANSPOSED)(
    lambda table, old, new, special: _below(
        table, special, _picture(table, old, new, special).mT
    )
)


def _by_columns(table, old, new, special) -> torch.Tensor:
    """Lay the old rows out column by column."""
    image = table[special:].reshape(*old[::-1], table.shape[1]).permute(2, 1, 0)
    return F.interpolate(image[None], size=new, mode="bilinear")[0]


interpolation.mistake(*TRANSPOSED)(
    lambda table, old, new, special: _below(
        table, special, _by_columns(table, old, new, special)
    )
)
interpolation.mistake(*TRANSPOSED)(
    lambda table, old, new, special: _below(
        table, special, _by_columns(table, old, new, special).mT
    )
)
for axis in (0, 1):

    def _by_one_scale(table, old, new, special, axis=axis):
        scale = {"scale_factor": new[axis] / old[axis]}
        return _below(table, special, _picture(table, old, None, special, **scale))

    interpolation.mistake(
        "one scale for rows and columns",
        "The grid may grow by another factor in height than in width. Hand both sizes "
        "over: size=new_grid.",
    )(_by_one_scale)

MIXED_UP = (
    "features and places mixed up",
    "A row of the table holds the d features of one place. Lay it out as (h, w, d) "
    "first, then permute to (d, h, w); a reshape alone mixes them, and so does one at "
    "the end without permuting back.",
)


def _reshaped(table, old, new, special):
    image = table[special:].reshape(1, -1, *old)
    return F.interpolate(image, size=new, mode="bilinear")[0]


interpolation.mistake(*MIXED_UP)(
    lambda table, old, new, special: _below(
        table, special, _reshaped(table, old, new, special)
    )
)
for picture in (_reshaped, _picture):
    interpolation.mistake(*MIXED_UP)(
        lambda table, old, new, special, picture=picture: torch.cat(
            (
                table[:special],
                picture(table, old, new, special).reshape(-1, table.shape[1]),
            )
        )
    )


def _along(rows: torch.Tensor, count: int) -> torch.Tensor:
    return F.interpolate(rows.T[None], size=count, mode="linear")[0].T


def _has_class_token(table, old, new, special):
    return special > 0


interpolation.mistake(
    "the class token's row is interpolated, too",
    "The class token belongs to no place in the image: its row stays as it is, and "
    "only the others are interpolated, on their grid.",
    when=_has_class_token,
)(lambda table, old, new, special: _along(table, special + new[0] * new[1]))
interpolation.mistake(
    "interpolated along the list",
    "The table is a list, but what it describes is a plane: the last patch of a row "
    "and the first of the next are no neighbours.",
)(
    lambda table, old, new, special: torch.cat(
        (table[:special], _along(table[special:], new[0] * new[1]))
    )
)
LOST = (
    "the class token's row is lost",
    IN_FRONT.capitalize(),
)
interpolation.mistake(*LOST, when=_has_class_token)(
    lambda table, old, new, special: resized(table, old, new, special)[special:]
)


@interpolation.mistake(*LOST, when=_has_class_token)
def _(table, old, new, special):
    rows = resized(table, old, new, special)
    return torch.cat((torch.zeros_like(rows[:special]), rows[special:]))


interpolation.mistake(
    "the class token's row at the end", LOST[1], when=_has_class_token
)(lambda table, old, new, special: resized(table, old, new, special).roll(-special, 0))
interpolation.mistake(
    "the last rows taken for class tokens",
    "The rows of class tokens are at the front of the table.",
    when=_has_class_token,
)(lambda table, old, new, special: resized(table.roll(special, 0), old, new, special))
interpolation.mistake(*IGNORED)(
    lambda table, old, new, special: resized(table, old, new, 1)
)
interpolation.mistake(*IGNORED)(
    lambda table, old, new, special: torch.cat(
        (table[:1], resized(table, old, new, special)[special:])
    )
)
CUT_OFF = (
    "rows cut off or repeated",
    "Interpolate; rows that are cut off or repeated belong to other places.",
)
interpolation.mistake(*CUT_OFF)(
    lambda table, old, new, special: table[: special + new[0] * new[1]]
)


@interpolation.mistake(*CUT_OFF)
def _(table, old, new, special):
    count, grid = new[0] * new[1], table[special:]
    rows = grid.repeat(count // len(grid) + 1, 1)[:count]
    return torch.cat((table[:special], rows))


@interpolation.mistake(
    "two grids with as many patches are taken for the same",
    "2 × 6 patches are as many as 3 × 4, but most lie elsewhere: the table has to be "
    "interpolated. Compare the two sides of the grids, not their product, or compare "
    "nothing: on the same grid the formula gives the table itself.",
    when=lambda table, old, new, special: old[0] * old[1] == new[0] * new[1],
)
def _(table, old, new, special):
    return table.clone()


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
