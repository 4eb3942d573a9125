"""Checks of chapter 7, the decoder, second part: training, writing and judging text.

The notebook reaches them through ``decoder``. The oracles are brute force over all
texts of a small table, PyTorch's own functions, sacrebleu, values worked out by hand,
and properties.
"""

from autograder.chapters.decoder.writing.beams import beam_search
from autograder.chapters.decoder.writing.bug_hunt import find_bugs
from autograder.chapters.decoder.writing.cache import attend_cached
from autograder.chapters.decoder.writing.drawing import sample_next
from autograder.chapters.decoder.writing.filters import filter_logits
from autograder.chapters.decoder.writing.greedy import greedy_decode
from autograder.chapters.decoder.writing.ngrams import bleu
from autograder.chapters.decoder.writing.training import repaired_epoch

__all__ = [
    "attend_cached",
    "beam_search",
    "bleu",
    "filter_logits",
    "find_bugs",
    "greedy_decode",
    "repaired_epoch",
    "sample_next",
]
