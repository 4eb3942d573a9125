"""Checks of chapter 7, the decoder.

The oracles are PyTorch's own layers, stacks and losses with the same weights, values
worked out by hand, and properties.
"""

from autograder.chapters.decoder.alone import decoder_only
from autograder.chapters.decoder.chapter import chapter
from autograder.chapters.decoder.gpt2 import weights_from_gpt2
from autograder.chapters.decoder.last import last_real
from autograder.chapters.decoder.layer import decoder_layer
from autograder.chapters.decoder.loss import sequence_loss
from autograder.chapters.decoder.mask import decoder_mask
from autograder.chapters.decoder.schedule import noam_rate
from autograder.chapters.decoder.shift import shift_right
from autograder.chapters.decoder.stack import decoder
from autograder.chapters.decoder.transformer import transformer
from autograder.chapters.decoder.writing import (
    attend_cached,
    beam_search,
    bleu,
    filter_logits,
    find_bugs,
    greedy_decode,
    repaired_epoch,
    sample_next,
)

progress = chapter.progress
sheet = chapter.sheet

__all__ = [
    "attend_cached",
    "beam_search",
    "bleu",
    "decoder",
    "decoder_layer",
    "decoder_mask",
    "decoder_only",
    "filter_logits",
    "find_bugs",
    "greedy_decode",
    "last_real",
    "noam_rate",
    "progress",
    "repaired_epoch",
    "sample_next",
    "sequence_loss",
    "sheet",
    "shift_right",
    "transformer",
    "weights_from_gpt2",
]
