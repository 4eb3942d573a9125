"""Checks of chapter 1, embeddings.

The oracles are PyTorch's own functions, brute force, values worked out by hand, and
properties.
"""

from autograder.chapters.embeddings.chapter import chapter
from autograder.chapters.embeddings.counting import pair_counts
from autograder.chapters.embeddings.hot_rows import one_hot
from autograder.chapters.embeddings.ids import encode_decode
from autograder.chapters.embeddings.kernel import patch_kernel
from autograder.chapters.embeddings.learning import train_bpe
from autograder.chapters.embeddings.merging import merge_pair
from autograder.chapters.embeddings.replaying import bpe_encode
from autograder.chapters.embeddings.sampling import skip_gram_loss
from autograder.chapters.embeddings.slips import find_the_slips
from autograder.chapters.embeddings.table import embedding
from autograder.chapters.embeddings.tying import weight_tying
from autograder.chapters.embeddings.vocabularies import vocabulary
from autograder.chapters.embeddings.weighting import tf_idf
from autograder.chapters.embeddings.windows import skip_gram_pairs

progress = chapter.progress
sheet = chapter.sheet

__all__ = [
    "bpe_encode",
    "embedding",
    "encode_decode",
    "find_the_slips",
    "merge_pair",
    "one_hot",
    "pair_counts",
    "patch_kernel",
    "progress",
    "sheet",
    "skip_gram_loss",
    "skip_gram_pairs",
    "tf_idf",
    "train_bpe",
    "vocabulary",
    "weight_tying",
]
