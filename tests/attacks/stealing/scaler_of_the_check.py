"""Normalises images by the check's own use of scikit-learn."""
# chapter: 10_vision
# exercise: standardise
# where: answer

from autograder.checks.vision import _scaled as standardise
