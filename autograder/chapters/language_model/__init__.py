"""Checks of chapter 11, language model.

The oracles are PyTorch's own functions, values worked out by hand, computations step by
step in double precision, and properties.
"""

from autograder.chapters.language_model.adamw import adamw_step
from autograder.chapters.language_model.blocks import block_parts, decoder_block
from autograder.chapters.language_model.budget import run_budget
from autograder.chapters.language_model.cached_writing import write_with_cache
from autograder.chapters.language_model.chapter import chapter
from autograder.chapters.language_model.documents import document_mask, pack_documents
from autograder.chapters.language_model.grouped import causal_attention
from autograder.chapters.language_model.induction import best_head, induction_scores
from autograder.chapters.language_model.lengths import bits_per_byte
from autograder.chapters.language_model.lens import lens_gain, logit_lens
from autograder.chapters.language_model.muon import orthogonalise
from autograder.chapters.language_model.online import online_softmax, online_step
from autograder.chapters.language_model.own import agreement, new_stories, own_model
from autograder.chapters.language_model.patching import (
    patching_effect,
    record_activations,
    run_patched,
)
from autograder.chapters.language_model.scaling import (
    compute_optimal,
    fit_scaling_law,
    predicted_loss,
)
from autograder.chapters.language_model.tiles import tiled_attention

progress = chapter.progress
sheet = chapter.sheet

__all__ = [
    "adamw_step",
    "agreement",
    "best_head",
    "bits_per_byte",
    "block_parts",
    "causal_attention",
    "compute_optimal",
    "decoder_block",
    "document_mask",
    "fit_scaling_law",
    "induction_scores",
    "lens_gain",
    "logit_lens",
    "new_stories",
    "online_softmax",
    "online_step",
    "orthogonalise",
    "own_model",
    "pack_documents",
    "patching_effect",
    "predicted_loss",
    "progress",
    "record_activations",
    "run_budget",
    "run_patched",
    "sheet",
    "tiled_attention",
    "write_with_cache",
]
