"""Raises the interface's own error with fields that are no texts."""
# exercise: softmax
# where: answer

import torch

from autograder.interface import StudentError


def softmax(scores):
    error = StudentError("value", "text")
    error.kind, error.text, error.call = {"passed": True}, torch.ones(2), None
    error.function, error.line = 2.0, [2]
    raise error
