"""Checks of chapter 4, attention.

The oracles are PyTorch's own functions, values worked out by hand, and properties.
"""

from autograder.chapters.attention.additive import additive_attention
from autograder.chapters.attention.by_hand import worked_context
from autograder.chapters.attention.chapter import chapter
from autograder.chapters.attention.cost import attention_cost, path_length
from autograder.chapters.attention.derivative import softmax_jacobian
from autograder.chapters.attention.dot_product import scaled_dot_product_attention
from autograder.chapters.attention.layer import attention_module
from autograder.chapters.attention.masking import masked_softmax
from autograder.chapters.attention.masks import causal_mask, padding_mask
from autograder.chapters.attention.plane import geometric_example
from autograder.chapters.attention.pooling import attention_pooling
from autograder.chapters.attention.projections import project_qkv
from autograder.chapters.attention.redirect import redirecting_angles
from autograder.chapters.attention.weights import softmax

progress = chapter.progress
sheet = chapter.sheet

__all__ = [
    "additive_attention",
    "attention_cost",
    "attention_module",
    "attention_pooling",
    "causal_mask",
    "geometric_example",
    "masked_softmax",
    "padding_mask",
    "path_length",
    "progress",
    "project_qkv",
    "redirecting_angles",
    "scaled_dot_product_attention",
    "sheet",
    "softmax",
    "softmax_jacobian",
    "worked_context",
]
