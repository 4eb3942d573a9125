"""Checks of chapter 5, multi-head attention.

The oracles are PyTorch's own layers, values worked out by hand, and properties. A known
mistake is found by computing what it would give on the same input.
"""

from autograder.chapters.multi_head_attention.chapter import chapter
from autograder.chapters.multi_head_attention.counting import attention_parameters
from autograder.chapters.multi_head_attention.grouped import grouped_query_attention
from autograder.chapters.multi_head_attention.heads import (
    merge_heads,
    split_heads,
)
from autograder.chapters.multi_head_attention.layer import multi_head_attention
from autograder.chapters.multi_head_attention.lookups import two_lookups
from autograder.chapters.multi_head_attention.loop import loop_of_heads, sum_over_heads
from autograder.chapters.multi_head_attention.serving import texts_served
from autograder.chapters.multi_head_attention.weights import (
    attention_from_torch,
    without_heads,
)

progress = chapter.progress
sheet = chapter.sheet

__all__ = [
    "attention_from_torch",
    "attention_parameters",
    "grouped_query_attention",
    "loop_of_heads",
    "merge_heads",
    "multi_head_attention",
    "progress",
    "sheet",
    "split_heads",
    "sum_over_heads",
    "texts_served",
    "two_lookups",
    "without_heads",
]
