"""The images that several checks of this chapter draw."""

import torch

from autograder.exercise.inputs import draw_sizes, normal


def draw_images(
    generator: torch.Generator, channels: int = 3
) -> tuple[torch.Tensor, int, tuple[int, int]]:
    """Draw images that are not square, a patch size, and the grid of patches."""
    others = [size for size in draw_sizes(generator, 6) if size != channels]
    p = next(size for size in others if size < 6)
    others.remove(p)
    b, rows, columns = others[:3]
    images = normal(generator, b, channels, rows * p, columns * p)
    return images, p, (rows, columns)


def count_up(b: int, channels: int, height: int, width: int) -> torch.Tensor:
    """Make an image of the numbers 0, 1, 2, ..., each channel 10 higher."""
    first = torch.arange(float(height * width)).view(1, 1, height, width)
    offset = 10 * torch.arange(float(channels)).view(1, channels, 1, 1)
    return (first + offset).repeat(b, 1, 1, 1)
