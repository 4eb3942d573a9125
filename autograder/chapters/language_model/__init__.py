"""Checks of chapter 11, language model.

The oracles are PyTorch's own functions, values worked out by hand, computations step by
step in double precision, and properties.
"""

from autograder.chapters.language_model.chapter import chapter
from autograder.chapters.language_model.lengths import bits_per_byte

progress = chapter.progress
sheet = chapter.sheet

__all__ = [
    "bits_per_byte",
    "progress",
    "sheet",
]
