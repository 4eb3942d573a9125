"""Checks of chapter 6, the encoder.

The oracles are PyTorch's own layers with the same weights, values worked out by hand,
and properties. A known mistake is found by computing what it would give on the same
input.
"""

from autograder.chapters.encoder.activations import gelu
from autograder.chapters.encoder.chapter import chapter
from autograder.chapters.encoder.classifier import encoder_classifier
from autograder.chapters.encoder.dead import dead_units
from autograder.chapters.encoder.diagnosis import diagnose_norm
from autograder.chapters.encoder.layer import encoder_layer
from autograder.chapters.encoder.masked_loss import masked_language_model_loss
from autograder.chapters.encoder.masking import mask_tokens
from autograder.chapters.encoder.networks import feed_forward, swiglu
from autograder.chapters.encoder.norms import layer_norm, rms_norm
from autograder.chapters.encoder.stack import encoder
from autograder.chapters.encoder.weights import encoder_layer_from_torch

progress = chapter.progress
sheet = chapter.sheet

__all__ = [
    "dead_units",
    "diagnose_norm",
    "encoder",
    "encoder_classifier",
    "encoder_layer",
    "encoder_layer_from_torch",
    "feed_forward",
    "gelu",
    "layer_norm",
    "mask_tokens",
    "masked_language_model_loss",
    "progress",
    "rms_norm",
    "sheet",
    "swiglu",
]
