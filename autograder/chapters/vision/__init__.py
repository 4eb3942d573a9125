"""Checks of chapter 10, vision.

The oracles are PyTorch's batch norm and cosines, images counted one by one, PyTorch's
padding of one image after the other, bins filled one by one in NumPy, the gradient of
what is pooled, values worked out by hand, and properties.
"""

from autograder.chapters.vision.calibration import calibration_error
from autograder.chapters.vision.chapter import chapter
from autograder.chapters.vision.counting import confusion
from autograder.chapters.vision.digits import changed_digits
from autograder.chapters.vision.positions import position_similarity
from autograder.chapters.vision.reading import read_by_the_head
from autograder.chapters.vision.shifting import shift_images
from autograder.chapters.vision.standardising import standardise

progress = chapter.progress
sheet = chapter.sheet

__all__ = [
    "calibration_error",
    "changed_digits",
    "confusion",
    "position_similarity",
    "progress",
    "read_by_the_head",
    "sheet",
    "shift_images",
    "standardise",
]
