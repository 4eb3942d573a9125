"""Checks of chapter 2, the class token and other ways to read a sequence.

The oracles are plain loops over sequences, PyTorch's own functions, values worked out
by hand, and properties.
"""

from autograder.chapters.class_token.behaviour import readout_behaviour
from autograder.chapters.class_token.chapter import chapter
from autograder.chapters.class_token.heads import class_head
from autograder.chapters.class_token.mask import mask_with_class_token
from autograder.chapters.class_token.mean import masked_mean
from autograder.chapters.class_token.mean_head import mean_head
from autograder.chapters.class_token.prepending import class_token
from autograder.chapters.class_token.tagging import tagging_loss
from autograder.chapters.class_token.tasks import task_heads

progress = chapter.progress
sheet = chapter.sheet

__all__ = [
    "class_head",
    "class_token",
    "mask_with_class_token",
    "masked_mean",
    "mean_head",
    "progress",
    "readout_behaviour",
    "sheet",
    "tagging_loss",
    "task_heads",
]
