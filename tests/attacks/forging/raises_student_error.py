"""Raises the interface's own error with a kind that it does not have."""
# exercise: softmax
# where: answer

from autograder.interface import StudentError


def softmax(scores):
    raise StudentError("", "passed", "softmax(scores)", "softmax", "line 1")
