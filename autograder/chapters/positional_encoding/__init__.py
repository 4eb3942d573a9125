"""Checks of chapter 3, positional encoding."""

from autograder.chapters.positional_encoding.chapter import chapter
from autograder.chapters.positional_encoding.diagnosis import diagnose_encoding
from autograder.chapters.positional_encoding.encoding import (
    sinusoidal_positional_encoding,
)
from autograder.chapters.positional_encoding.learned import learned_module
from autograder.chapters.positional_encoding.order import order_behaviour
from autograder.chapters.positional_encoding.periods import wavelengths
from autograder.chapters.positional_encoding.rotary import apply_rotary
from autograder.chapters.positional_encoding.shifts import shift_matrix
from autograder.chapters.positional_encoding.sinusoidal import sinusoidal_module

progress = chapter.progress
sheet = chapter.sheet

__all__ = [
    "apply_rotary",
    "diagnose_encoding",
    "learned_module",
    "order_behaviour",
    "progress",
    "sheet",
    "shift_matrix",
    "sinusoidal_module",
    "sinusoidal_positional_encoding",
    "wavelengths",
]
