"""Checks of chapter 11, language model.

The oracles are PyTorch's own functions, values worked out by hand, computations step by
step in double precision, and properties.
"""

from autograder.chapters.language_model.adamw import adamw_step
from autograder.chapters.language_model.budget import run_budget
from autograder.chapters.language_model.chapter import chapter
from autograder.chapters.language_model.lengths import bits_per_byte
from autograder.chapters.language_model.muon import orthogonalise
from autograder.chapters.language_model.online import online_softmax, online_step
from autograder.chapters.language_model.tiles import tiled_attention

progress = chapter.progress
sheet = chapter.sheet

__all__ = [
    "adamw_step",
    "bits_per_byte",
    "online_softmax",
    "online_step",
    "orthogonalise",
    "progress",
    "run_budget",
    "sheet",
    "tiled_attention",
]
