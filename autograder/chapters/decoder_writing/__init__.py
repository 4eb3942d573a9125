"""Checks of chapter 7, the decoder, second part: training, writing and judging text.

The notebook reaches them through ``decoder``. The oracles are brute force over all
texts of a small table, PyTorch's own functions, sacrebleu, values worked out by hand,
and properties.
"""

from autograder.chapters.decoder_writing.beams import beam_search
from autograder.chapters.decoder_writing.bug_hunt import find_bugs
from autograder.chapters.decoder_writing.cache import attend_cached
from autograder.chapters.decoder_writing.drawing import sample_next
from autograder.chapters.decoder_writing.filters import filter_logits
from autograder.chapters.decoder_writing.greedy import greedy_decode
from autograder.chapters.decoder_writing.likelihood import perplexity
from autograder.chapters.decoder_writing.ngrams import bleu
from autograder.chapters.decoder_writing.training import repaired_epoch

__all__ = [
    "attend_cached",
    "beam_search",
    "bleu",
    "filter_logits",
    "find_bugs",
    "greedy_decode",
    "perplexity",
    "repaired_epoch",
    "sample_next",
]
