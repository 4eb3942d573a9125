"""Checks of chapter 8, the Vision Transformer.

The oracles are PyTorch's own unfold, fold, conv2d and encoder with the same weights,
eigenvectors of a covariance, loops over pixels, values worked out by hand, and
properties.
"""

from autograder.chapters.vision_transformer.chapter import chapter
from autograder.chapters.vision_transformer.convolution import convolution_by_heads
from autograder.chapters.vision_transformer.embedding import patch_embedding
from autograder.chapters.vision_transformer.field import receptive_field
from autograder.chapters.vision_transformer.filters import principal_filters
from autograder.chapters.vision_transformer.mixing import cutmix, mixup
from autograder.chapters.vision_transformer.model import vision_transformer
from autograder.chapters.vision_transformer.patches import patchify, unpatchify
from autograder.chapters.vision_transformer.positions import interpolate_positions
from autograder.chapters.vision_transformer.rollout import attention_rollout
from autograder.chapters.vision_transformer.seeds import seed_interval
from autograder.chapters.vision_transformer.steps import shift_weights

progress = chapter.progress
sheet = chapter.sheet

__all__ = [
    "attention_rollout",
    "convolution_by_heads",
    "cutmix",
    "interpolate_positions",
    "mixup",
    "patch_embedding",
    "patchify",
    "principal_filters",
    "progress",
    "receptive_field",
    "seed_interval",
    "sheet",
    "shift_weights",
    "unpatchify",
    "vision_transformer",
]
