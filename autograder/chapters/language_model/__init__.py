"""Checks of chapter 11, language model.

The oracles are PyTorch's own functions, values worked out by hand, computations step by
step in double precision, and properties.
"""

from autograder.chapters.language_model.blocks import block_parts, decoder_block
from autograder.chapters.language_model.cached_writing import write_with_cache
from autograder.chapters.language_model.chapter import chapter
from autograder.chapters.language_model.documents import document_mask, pack_documents
from autograder.chapters.language_model.grouped import causal_attention
from autograder.chapters.language_model.lengths import bits_per_byte

progress = chapter.progress
sheet = chapter.sheet

__all__ = [
    "bits_per_byte",
    "block_parts",
    "causal_attention",
    "decoder_block",
    "document_mask",
    "pack_documents",
    "progress",
    "sheet",
    "write_with_cache",
]
