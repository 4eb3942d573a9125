"""Change images at random, a whole batch at once, on the device where they are.

What is random is drawn first, as one tensor of uniform numbers with a row for each
image; everything after that is arithmetic without a branch on the data. So nothing
waits for the device, the same numbers give the same images whatever the size of the
batch, and a run that goes on in the middle of an epoch sees what it would have seen.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields

import torch
import torch.nn.functional as F

from workbench.errors import WorkbenchError

Draws = dict[str, torch.Tensor]

FILLS = {"black": "zeros", "edge": "border", "mirror": "reflection"}
GREY = (0.299, 0.587, 0.114)  # how bright red, green and blue look (ITU-R BT.601)

GEOMETRIC = ("rotate", "shear-x", "shear-y", "shift-x", "shift-y")
COLOUR = ("brightness", "contrast", "saturation", "sharpness", "posterize", "solarize")
# Of these RandAugment chooses (Cubuk et al. 2020, less equalize)
OPERATIONS = ("identity", *GEOMETRIC, *COLOUR, "autocontrast")

COLUMNS = (
    *("top", "left", "flip"),
    *("rotate", "scale-y", "scale-x", "shear", "shift-y", "shift-x"),
    *("brightness", "contrast", "saturation"),
    *("erase", "erase-area", "erase-aspect", "erase-top", "erase-left"),
)


@dataclass(frozen=True)
class Augmentation:
    """How images are changed while a model is trained; as it stands, not at all.

    Attributes:
        pad: pixels added on every side, of which a window of the old size is cut.
        flip: probability that left and right are exchanged.
        rotate: degrees at most, either way.
        scale: each side is stretched by a factor from 1 − scale to 1 + scale.
        shear: columns that a row moves at most for each row from the middle.
        shift: pixels at most, fractions of one too, up or down and left or right.
        brightness: factor from 1 − brightness to 1 + brightness.
        contrast: the same about the image's mean grey.
        saturation: the same about each pixel's grey.
        operations: how many of OPERATIONS each image gets (RandAugment).
        magnitude: how strong these are at most, from 0 to 1.
        erase: probability that a box of the image is set to the mean colour.
        erase_area: smallest and largest share of the image that the box covers.
        fill: what is put where an image ends: "black", "edge" or "mirror".
        mixup: Beta's parameter of the share that is left of an image; 0 for none.
        cutmix: the same for the area. With both, each batch gets one or the other.
        mix: probability that a batch is mixed at all.
        repeats: how often an image occurs in the same batch, changed differently.
    """

    pad: int = 0
    flip: float = 0.0
    rotate: float = 0.0
    scale: float = 0.0
    shear: float = 0.0
    shift: float = 0.0
    brightness: float = 0.0
    contrast: float = 0.0
    saturation: float = 0.0
    operations: int = 0
    magnitude: float = 0.5
    erase: float = 0.0
    erase_area: tuple[float, float] = (0.02, 0.33)
    fill: str = "black"
    mixup: float = 0.0
    cutmix: float = 0.0
    mix: float = 1.0
    repeats: int = 1

    def __post_init__(self) -> None:
        """Refuse what has no meaning, by name."""
        for name in ("flip", "erase", "mix", "magnitude", "scale"):
            if not 0 <= getattr(self, name) <= 1:
                raise WorkbenchError(f"{name} must be from 0 to 1: {self}")
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, (int, float)) and not value >= 0:
                raise WorkbenchError(f"{field.name} must not be negative: {value}")
        low, high = self.erase_area
        if not 0 < low <= high <= 1:
            raise WorkbenchError(f"erase_area must be two shares: {self.erase_area}")
        if self.fill not in FILLS:
            raise WorkbenchError(f"fill must be one of {', '.join(FILLS)}: {self.fill}")
        if self.repeats < 1:
            raise WorkbenchError(f"repeats must be at least 1: {self.repeats}")

    @property
    def mixes(self) -> bool:
        """Whether images of a batch are mixed, which makes the labels shares."""
        return self.mix > 0 and (self.mixup > 0 or self.cutmix > 0)

    @property
    def columns(self) -> tuple[str, ...]:
        """What is drawn for each image, in order."""
        rounds = range(self.operations)
        pairs = [(f"operation-{i}", f"amount-{i}") for i in rounds]
        return COLUMNS + tuple(name for pair in pairs for name in pair)

    def draw(self, count: int, generator: torch.Generator) -> torch.Tensor:
        """Draw what is random, (count, columns), uniform from 0 to 1."""
        return torch.rand(
            count, len(self.columns), generator=generator, device=generator.device
        )

    def apply(
        self, images: torch.Tensor, numbers: torch.Tensor, mean: torch.Tensor
    ) -> torch.Tensor:
        """Change images.

        Args:
            images: (B, C, H, W), uint8.
            numbers: (B, columns), as `draw` gives them.
            mean: (C,), the colour that is put where a box is erased, from 0 to 1.

        Returns:
            (B, C, H, W), float32, from 0 to 1.
        """
        draws: Draws = dict(zip(self.columns, numbers.unbind(dim=1), strict=True))
        if self.pad or self.flip:
            images = crop_and_flip(images, draws, self)
        x = images.float() / 255
        if self.operations or self.rotate or self.scale or self.shear or self.shift:
            x = warp(x, affine_maps(draws, self, x.shape), self.fill)
        if self.brightness or self.contrast or self.saturation:
            x = jitter_colours(x, draws, self)
        for number in range(self.operations):
            x = colour_operation(x, draws, number, self.magnitude)
        if self.erase:
            box = erased(draws, self, x.shape)
            x = torch.where(box, mean[:, None, None], x)
        return x


def spread(numbers: torch.Tensor, reach: float) -> torch.Tensor:
    """Map numbers from [0, 1) to [−reach, reach)."""
    return (2 * numbers - 1) * reach


def each(values: torch.Tensor) -> torch.Tensor:
    """Give one value an image, (B,), the axes of a batch of images, (B, 1, 1, 1)."""
    return values[:, None, None, None]


def crop_and_flip(
    images: torch.Tensor, draws: Draws, how: Augmentation
) -> torch.Tensor:
    """Cut a window out of each padded image, and mirror some; any type of number.

    Each pixel is fetched from its place by index, in one step for the whole batch.
    """
    _, _, height, width = images.shape
    rows = torch.arange(height, device=images.device)
    columns = torch.arange(width, device=images.device)
    columns = torch.where(
        (draws["flip"] < how.flip)[:, None], columns.flip(0), columns
    )  # (B, W)
    steps = 2 * how.pad + 1
    rows = rows + (draws["top"] * steps).long()[:, None] - how.pad  # (B, H)
    columns = columns + (draws["left"] * steps).long()[:, None] - how.pad
    (rows, row_inside), (columns, column_inside) = (
        inside(rows, height, how.fill),
        inside(columns, width, how.fill),
    )
    batch = torch.arange(len(images), device=images.device)[:, None, None]
    cut = images[batch, :, rows[:, :, None], columns[:, None, :]]  # (B, H, W, C)
    cut = cut.permute(0, 3, 1, 2)
    if how.fill == "black" and how.pad:
        cut = cut * (row_inside[:, None, :, None] & column_inside[:, None, None, :])
    return cut


def inside(
    places: torch.Tensor, size: int, fill: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Bring indices back into an axis of `size`; say also which were inside."""
    was_inside = (places >= 0) & (places < size)
    if fill == "mirror":  # about the middle of the outermost pixel's outer edge
        places = places.remainder(2 * size)
        places = torch.minimum(places, 2 * size - 1 - places)
    return places.clamp(0, size - 1), was_inside


def affine_maps(draws: Draws, how: Augmentation, shape: torch.Size) -> torch.Tensor:
    """Return, for each image, the map from places in the result to places in the image.

    Args:
        draws: uniform numbers (B,), by name.
        how: what is to be done.
        shape: of the images, (B, C, H, W).

    Returns:
        (B, 2, 3), for coordinates (x, y) that are −1 and 1 at the image's edges.
    """
    _, _, height, width = shape
    maps = affine(
        spread(draws["rotate"], math.radians(how.rotate)),
        spread(draws["shear"], how.shear),
        torch.zeros_like(draws["shear"]),
        spread(draws["shift-x"], how.shift),
        spread(draws["shift-y"], how.shift),
    )
    across = 1 / (1 + spread(draws["scale-x"], how.scale)).clamp(min=0.05)
    down = 1 / (1 + spread(draws["scale-y"], how.scale)).clamp(min=0.05)
    ones = torch.ones_like(across)
    maps = maps * torch.stack((across, down, ones), dim=1)[:, None, :]
    for number in range(how.operations):
        maps = maps @ geometric_operation(draws, number, how.magnitude, height, width)
    return halves_of_sides(maps, height, width)


def halves_of_sides(maps: torch.Tensor, height: int, width: int) -> torch.Tensor:
    """Change a map's unit from pixels to halves of the image's sides.

    Entry by entry, with numbers of Python: a small tensor made on the host would have
    to be sent to the device, which waits.
    """
    (a, b, x), (c, d, y) = (maps[:, row].unbind(dim=-1) for row in range(2))
    first = torch.stack((a, b * (height / width), x * (2 / width)), dim=-1)
    second = torch.stack((c * (width / height), d, y * (2 / height)), dim=-1)
    return torch.stack((first, second), dim=1)


def affine(
    angle: torch.Tensor,
    shear_x: torch.Tensor,
    shear_y: torch.Tensor,
    shift_x: torch.Tensor,
    shift_y: torch.Tensor,
) -> torch.Tensor:
    """Return matrices (B, 3, 3) that shear, turn and shift, in pixels; each (B,)."""
    cosine, sine, zero, one = (
        angle.cos(),
        angle.sin(),
        torch.zeros_like(angle),
        torch.ones_like(angle),
    )
    rows = (
        (cosine - sine * shear_y, cosine * shear_x - sine, shift_x),
        (sine + cosine * shear_y, sine * shear_x + cosine, shift_y),
        (zero, zero, one),
    )
    return torch.stack([torch.stack(row, dim=-1) for row in rows], dim=-2)


def chosen(draws: Draws, number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Which of OPERATIONS each image gets in a round, and how much, from −1 to 1."""
    which = (draws[f"operation-{number}"] * len(OPERATIONS)).long()
    return which, spread(draws[f"amount-{number}"], 1.0)


def geometric_operation(
    draws: Draws, number: int, magnitude: float, height: int, width: int
) -> torch.Tensor:
    """Return the matrices (B, 3, 3) of a round; the identity for the other operations.

    At magnitude 1: 30 degrees, shears by 0.3, shifts by a third of the side.
    """
    which, amount = chosen(draws, number)
    most = (math.radians(30), 0.3, 0.3, width / 3, height / 3)
    parts = [
        torch.where(which == OPERATIONS.index(name), amount * magnitude * reach, 0.0)
        for name, reach in zip(GEOMETRIC, most, strict=True)
    ]
    return affine(*parts)


def warp(images: torch.Tensor, maps: torch.Tensor, fill: str) -> torch.Tensor:
    """Fetch each pixel from the place that its map (B, 2, 3) gives, bilinearly."""
    places = F.affine_grid(maps, list(images.shape), align_corners=False)
    return F.grid_sample(images, places, padding_mode=FILLS[fill], align_corners=False)


def grey(images: torch.Tensor) -> torch.Tensor:
    """Return how bright each pixel is, (B, 1, H, W)."""
    if images.shape[1] != 3:
        return images.mean(dim=1, keepdim=True)
    red, green, blue = images.unbind(dim=1)
    return (GREY[0] * red + GREY[1] * green + GREY[2] * blue)[:, None]


def between(
    far: torch.Tensor | float, near: torch.Tensor, factor: torch.Tensor
) -> torch.Tensor:
    """Go from `far` past `near` by a factor; 1 is `near`. Stays from 0 to 1."""
    return (far + (near - far) * factor).clamp(0, 1)


def jitter_colours(
    images: torch.Tensor, draws: Draws, how: Augmentation
) -> torch.Tensor:
    """Change brightness, contrast and saturation of each image by a factor."""
    names = ("brightness", "contrast", "saturation")
    light, contrast, colour = (
        each(1 + spread(draws[name], getattr(how, name))) for name in names
    )
    images = between(0.0, images, light)
    images = between(grey(images).mean(dim=(2, 3), keepdim=True), images, contrast)
    return between(grey(images), images, colour)


def colour_operation(
    images: torch.Tensor, draws: Draws, number: int, magnitude: float
) -> torch.Tensor:
    """Do a round's operation on the colours of those images that drew one.

    At magnitude 1 factors are from 0.1 to 1.9, 4 of 8 bits are left, and everything
    brighter than 0 is turned to its opposite.
    """
    which, amount = chosen(draws, number)
    factor = each(1 + 0.9 * magnitude * amount)
    strength = each(magnitude * amount.abs())
    done: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "brightness": lambda x: between(0.0, x, factor),
        "contrast": lambda x: between(
            grey(x).mean(dim=(2, 3), keepdim=True), x, factor
        ),
        "saturation": lambda x: between(grey(x), x, factor),
        "sharpness": lambda x: between(blurred(x), x, factor),
        "posterize": lambda x: posterized(x, strength),
        "solarize": lambda x: torch.where(x > 1 - strength, 1 - x, x),
        "autocontrast": stretched,
    }
    result = images
    for name, operation in done.items():
        mine = each(which == OPERATIONS.index(name))
        result = torch.where(mine, operation(images), result)
    return result


def blurred(images: torch.Tensor) -> torch.Tensor:
    """Return the mean of each pixel and its eight neighbours; edges are repeated."""
    return F.avg_pool2d(F.pad(images, (1, 1, 1, 1), mode="replicate"), 3, stride=1)


def posterized(images: torch.Tensor, strength: torch.Tensor) -> torch.Tensor:
    """Leave 8 bits at strength 0, down to 4 at strength 1."""
    levels = torch.exp2((8 - 4 * strength).round()) - 1
    return (images * levels).round() / levels


def stretched(images: torch.Tensor) -> torch.Tensor:
    """Stretch each channel so that its darkest pixel is 0 and its brightest 1."""
    low = images.amin(dim=(2, 3), keepdim=True)
    high = images.amax(dim=(2, 3), keepdim=True)
    flat = high == low
    return torch.where(flat, images, (images - low) / (high - low + flat))


def erased(draws: Draws, how: Augmentation, shape: torch.Size) -> torch.Tensor:
    """Return the boxes to be erased, (B, 1, H, W), boolean (Zhong et al. 2020)."""
    _, _, height, width = shape
    low, high = how.erase_area
    area = low + (high - low) * draws["erase-area"]
    aspect = torch.exp(spread(draws["erase-aspect"], math.log(3.0)))
    tall = ((area * aspect).sqrt().clamp(max=1) * height).round()
    wide = ((area / aspect).sqrt().clamp(max=1) * width).round()
    within = []
    for side, size, name in ((height, tall, "erase-top"), (width, wide, "erase-left")):
        first = (draws[name] * (side - size + 1)).floor()[:, None]
        places = torch.arange(side, device=area.device)
        within.append((places >= first) & (places < first + size[:, None]))
    rows, columns = within
    drawn = each(draws["erase"] < how.erase)
    return drawn & rows[:, None, :, None] & columns[:, None, None, :]
