"""Batches of images for the Vision Transformer, made on the device.

batches = ImageBatches.of(data, "train", 64, device, augment=Augmentation(shift=1))
for images, labels in batches.epoch(0): ...
"""

import functools
import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F

from workbench.data.augmentation import Augmentation
from workbench.data.images import ImageData, Part
from workbench.errors import WorkbenchError

Growing = tuple[tuple[int, int], ...]  # (side in pixels, for how many epochs)


class ImageBatches:
    """All images on the device; batches are cut, changed and normalised there.

    For training (`augment` given, or shuffle=True) images come in random order and
    every batch has the same size: what is left over is left out, other images each
    epoch. Otherwise all images come once, in their order.

    The same (seed, number) gives the same batches. With an augmentation that mixes,
    labels are shares (B, classes), float32; else (B,), long.
    """

    def __init__(
        self,
        images: torch.Tensor,
        labels: torch.Tensor,
        size: int,
        device: torch.device | str,
        seed: int = 0,
        augment: Augmentation | None = None,
        *,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        classes: int,
        shuffle: bool | None = None,
        parts: Any = None,
        compiled: bool = False,
        growing: Growing = (),
    ) -> None:
        """Put the images on the device.

        Args:
            images: (N, C, H, W), uint8.
            labels: (N,), long.
            size: images in a batch.
            device: where everything is done.
            seed: of order and augmentation.
            augment: how images are changed; None: not at all.
            mean: of each channel, from 0 to 1, which becomes 0.
            std: of each channel, which becomes 1.
            classes: how many there are.
            shuffle: whether this is for training; left out: whether `augment` is given.
            parts: what has `mixup` and `cutmix`, such as a student's; None: the
                reference, which only an augmentation that mixes needs.
            compiled: whether torch.compile merges the operations of the augmentation.
            growing: sides of the images in the first epochs, and how many epochs each
                is for; then they have their own size.

        Raises:
            WorkbenchError: if no batch can be filled, or not with all repeats.
        """
        self.augment = augment or Augmentation()
        self._apply = self.augment.apply
        if compiled and self.augment.columns:
            self._apply = torch.compile(self._apply, dynamic=False)
        self.shuffle = augment is not None if shuffle is None else shuffle
        if size < 1 or (self.shuffle and size > len(images) * self.augment.repeats):
            raise WorkbenchError(
                f"a batch of {size} cannot be filled from {len(images)} images: choose "
                f"a batch size from 1 to {len(images)}"
            )
        if size % self.augment.repeats:
            raise WorkbenchError(
                f"a batch of {size} cannot hold every image {self.augment.repeats} "
                f"times: choose a multiple"
            )
        self.images, self.labels = images.to(device), labels.to(device)
        self.device = self.images.device
        self.size, self.seed, self.classes = size, seed, classes
        self.growing = growing
        self.parts = parts or self._reference()
        self.mean = torch.tensor(mean, device=device)
        self.std = torch.tensor(std, device=device)

    def _reference(self) -> Any:
        """Return the reference's module, if it is needed: not everybody has it."""
        if not self.augment.mixes:
            return None
        from transformer import vision_transformer

        return vision_transformer

    @classmethod
    def of(
        cls,
        data: ImageData,
        part: str,
        size: int,
        device: torch.device | str,
        seed: int = 0,
        augment: Augmentation | None = None,
        **options: Any,
    ) -> "ImageBatches":
        """Make the batches of a data set's "train", "validation" or "test" part.

        Raises:
            WorkbenchError: if it has no such part.
        """
        held = getattr(data, part, None)
        if held is None:
            raise WorkbenchError(f"{data.name} has no {part} images")
        options = {
            "mean": data.mean,
            "std": data.std,
            "classes": len(data.classes),
            **options,
        }
        images, labels = held
        return cls(images, labels, size, device, seed, augment, **options)

    def __len__(self) -> int:
        """How many batches an epoch has."""
        count = len(self.images) * self.augment.repeats
        return count // self.size if self.shuffle else math.ceil(count / self.size)

    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the batches that occur, the most frequent first."""
        rest = len(self.images) * self.augment.repeats % self.size
        sizes = [self.size] if len(self.images) >= self.size or self.shuffle else []
        if rest and not self.shuffle:
            sizes.append(rest)
        return [(size, *self.images.shape[1:]) for size in sizes]

    def normalise(self, images: torch.Tensor) -> torch.Tensor:
        """Bring each channel from 0 … 1 to mean 0 and standard deviation 1."""
        return (images - self.mean[:, None, None]) / self.std[:, None, None]

    def epoch(
        self, number: int, start: int = 0
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield the batches of an epoch.

        Args:
            number: of the epoch.
            start: the first batch to yield; those before are not computed, and those
                after are the same as without it.

        Yields:
            Images (B, C, H, W), float32, normalised, and labels. H and W are smaller in
            the first epochs, if they are to grow.
        """
        generator = torch.Generator(self.device)
        generator.manual_seed((self.seed * 1_000_003 + number) % 2**63)
        order = self._order(generator)
        side = side_of(number, self.growing)
        numbers = self.augment.draw(len(order), generator)
        mixes = self._mixes(number)
        for batch in range(start, len(self)):
            places = slice(batch * self.size, (batch + 1) * self.size)
            chosen = order[places]
            images = self._apply(self.images[chosen], numbers[places], self.mean)
            images, labels = self.normalise(images), self.labels[chosen]
            if self.augment.mixes:
                every = torch.arange(self.classes, device=self.device)
                labels = (labels[:, None] == every).float()  # one_hot would wait
                images, labels = mixes[batch](images, labels)
            yield (shrunk(images, side) if side else images), labels

    def _order(self, generator: torch.Generator) -> torch.Tensor:
        """Which image comes when, (N · repeats,)."""
        count = len(self.images)
        if self.shuffle:
            order = torch.randperm(count, generator=generator, device=self.device)
        else:
            order = torch.arange(count, device=self.device)
        return order.repeat_interleave(self.augment.repeats)

    def _mixes(self, number: int) -> list[Callable[..., Part]]:
        """Draw for each batch how its images are mixed.

        Drawn on the host: the share and the box are numbers of Python, which the
        students' functions want, and no device has to be asked for them.
        """
        if not self.augment.mixes:
            return []
        drawn = random.Random(f"{self.seed} {number}")
        return [self._mix(drawn) for _ in range(len(self))]

    def _mix(self, drawn: random.Random) -> Callable[..., Part]:
        """Draw one batch's mixing: by mixup, by cutmix, or none."""
        how = self.augment
        mixed, second, share_of = drawn.random(), drawn.random(), drawn.betavariate
        partner = drawn.randrange(1, max(2, self.size))
        row, column = drawn.random(), drawn.random()
        if mixed >= how.mix:
            return unmixed
        if how.cutmix and (not how.mixup or second < 0.5):
            share = share_of(how.cutmix, how.cutmix)
            height, width = self.images.shape[2:]
            box = cut_box((height, width), share, row, column)
            return functools.partial(self._mixed, self.parts.cutmix, box, partner)
        share = share_of(how.mixup, how.mixup)
        return functools.partial(self._mixed, self.parts.mixup, share, partner)

    def _mixed(
        self,
        function: Callable[..., Part],
        how: Any,
        partner: int,
        images: torch.Tensor,
        targets: torch.Tensor,
    ) -> Part:
        """Mix; an image's partner is some steps on, for the order is random anyway."""
        steps = torch.arange(len(images), device=self.device) + partner
        return function(images, targets, how, steps % len(images))


def side_of(epoch: int, growing: Growing) -> int | None:
    """Return the side of an epoch's images in pixels; None: as large as they are."""
    for side, epochs in growing:
        if epoch < epochs:
            return side
        epoch -= epochs
    return None


def shrunk(images: torch.Tensor, side: int) -> torch.Tensor:
    """Make square images (B, C, H, W) smaller: (B, C, side, side)."""
    size = (side, side)
    return F.interpolate(images, size, mode="bilinear", antialias=True)


def unmixed(images: torch.Tensor, targets: torch.Tensor) -> Part:
    """Leave a batch as it is."""
    return images, targets


def cut_box(
    size: tuple[int, int], share: float, row: float, column: float
) -> tuple[int, int, int, int]:
    """Return a box that covers 1 − share of an image: top, left, height, width.

    Args:
        size: of the image, (height, width).
        share: of the area that is left.
        row: from 0 to 1, where the box lies among the places that it can have.
        column: the same, from left to right.
    """
    side = math.sqrt(1 - share)
    height, width = (round(side * length) for length in size)
    top = int(row * (size[0] - height + 1))
    left = int(column * (size[1] - width + 1))
    return top, left, height, width
