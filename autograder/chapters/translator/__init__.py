"""Checks of chapter 9: a translator, trained, judged, and handed in.

The oracles are PyTorch's cross-entropy and averaged model, NumPy's percentiles, loops
over entries, values worked out by hand, and sentences that no training split holds.
"""

from autograder.chapters.translator.accuracy import forced_accuracy
from autograder.chapters.translator.alignment import align
from autograder.chapters.translator.averaging import average_states
from autograder.chapters.translator.batches import fixed_batch
from autograder.chapters.translator.bootstrap import paired_bootstrap
from autograder.chapters.translator.chapter import chapter
from autograder.chapters.translator.own import exact_match, own_model
from autograder.chapters.translator.smoothing import smoothing_floor

progress = chapter.progress
sheet = chapter.sheet

__all__ = [
    "align",
    "average_states",
    "exact_match",
    "fixed_batch",
    "forced_accuracy",
    "own_model",
    "paired_bootstrap",
    "progress",
    "sheet",
    "smoothing_floor",
]
