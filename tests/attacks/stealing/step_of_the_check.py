"""Attends with a cache as the known mistakes of the check do when they are right."""
# chapter: 07_decoder
# exercise: attend-cached
# where: answer

from autograder.chapters.decoder.writing import cache

attend_cached = cache.attend_step
